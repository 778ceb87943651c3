"""Sockets to listen on; several processes may each have one on the same port."""

from __future__ import annotations

import socket
from typing import Any


class OwnSocket:
    """A socket that every process makes for itself: the system spreads connections over all of them.

    It is sent to a process as the words that make it.
    """

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def __reduce__(self) -> tuple[Any, ...]:
        return own_socket, (self.host, self.port)


def own_socket(host: str, port: int) -> socket.socket:
    """A socket on a port that other sockets of this user may have too; it does not listen yet."""
    sock = tcp_socket(host)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((host, port))
    except OSError:
        sock.close()
        raise
    return sock


def tcp_socket(host: str) -> socket.socket:
    """A socket of the family of an address, ready to be bound."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Named as TCP, for asyncio switches off the delay of small packets only where it reads so.
    sock = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock
