"""The door of the agency's pages: where they listen, whom they let in, and what another site cannot do.

Everybody with an account on this machine reaches a port of it. So an address with a key is printed: it lets one
browser in, once, which then shows a cookie. All else is closed, whatever the route. A cookie is sent to every
port of its host, other people's too; so it counts only for the account of this machine that came in with the
key, where the system tells accounts. Or the pages listen on a file that only its owner may open.
"""

from __future__ import annotations

import html
import ipaddress
import os
import re
import secrets
import socket
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lustrum.model import InputError
from lustrum.runtime.durable import outages, write_whole

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cache-Control": "no-store",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    # 'no-referrer' would take the origin from forms too; it is sent where an address may hold a key.
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
}
"""Sent with every response: nothing is kept, framed or loaded from elsewhere."""

ENTER = "/enter"
_OPEN = "/static/"  # styles and scripts, the same for everybody
_BYTES = 32
_CLOSED = "These pages are closed to you: each address that lets somebody in does so once."
_ESTABLISHED = "01"


class Door:
    """Lets in who shows the key, once; from then on the cookie that they got.

    ``refused`` makes a page of a sentence, and ``again`` says how a new address is had. Without keys, who may
    open the file on which the pages listen is inside.
    """

    def __init__(self, refused: Callable[[str], str], again: str, *, keys: bool = True) -> None:
        self._refused, self._again, self._keys = refused, again, keys
        self.key = secrets.token_urlsafe(_BYTES)
        self._inside: dict[str, int | None] = {}
        self._file: tuple[Path, str] | None = None

    def before(self, app: ASGIApp) -> ASGIApp:
        """The application behind the door."""

        async def behind(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] == "lifespan":
                await app(scope, receive, send)
                return
            if scope["type"] != "http":
                await send({"type": "websocket.close", "code": 1008})
                return
            answer = self._answer(Request(scope))

            async def complete(message: Message) -> None:
                if message["type"] == "http.response.start":
                    headers = MutableHeaders(scope=message)
                    for name, value in HEADERS.items():
                        headers.setdefault(name, value)
                await send(message)

            await (app if answer is None else answer)(scope, receive, complete)

        return behind

    def _answer(self, request: Request) -> Response | None:
        """What is answered at the door; nothing to who is inside and may ask what is asked."""
        host, site = request.headers.get("host", ""), request.headers.get("sec-fetch-site")
        if self._keys and not _is_here(request, host):
            return self._refusal(request, "These pages answer this machine only, by its own name.")
        # As the routes have it: an address that is put together from headers may tell another.
        path = request.scope["path"]
        if path == ENTER and request.method == "GET":
            cookie = self._entered(request)
            if cookie is not None or self._knows(request):
                return _welcome(request, cookie)
        reading = request.method in ("GET", "HEAD")
        if site not in ("same-origin", None, *(["none"] if reading else [])):
            # A picture, a frame or a form of another site must not reach what is here.
            return self._refusal(request, "These pages are for no other site; open them anew.")
        own = [f"http://{host}"] if self._keys else [f"http://{host}", f"https://{host}"]
        if not reading and (not host or request.headers.get("origin") not in own):
            return self._refusal(request, "Only the pages themselves may change something.")
        if self._knows(request) or (reading and path.startswith(_OPEN)):
            return None
        return self._refusal(request, f"{_CLOSED} {self._again}")

    def _entered(self, request: Request) -> str | None:
        """A cookie for who shows the key, which opens nothing any more."""
        given = request.query_params.get("key", "")
        if not self._keys or not secrets.compare_digest(given.encode(), self.key.encode()):
            return None
        self.key = secrets.token_urlsafe(_BYTES)
        with suppress(OSError):  # without its file the next key is had by starting the pages anew
            self._write()
        cookie = secrets.token_urlsafe(_BYTES)
        self._inside[cookie] = account_of(request.scope)
        return cookie

    def _knows(self, request: Request) -> bool:
        """Whether a request comes from somebody inside."""
        if not self._keys:
            return True
        given = request.cookies.get(_cookie_name(request), "").encode()
        owners = [
            owner
            for cookie, owner in self._inside.items()
            if secrets.compare_digest(cookie.encode(), given)
        ]
        return bool(owners) and owners[0] == account_of(request.scope)

    def _refusal(self, request: Request, sentence: str) -> Response:
        headers = {"Referrer-Policy": "no-referrer"}
        if "text/html" in request.headers.get("accept", ""):
            return HTMLResponse(self._refused(sentence), 403, headers)
        return PlainTextResponse(sentence, 403, headers)

    def address(self, pages: str) -> str:
        return f"{pages}{ENTER}?key={self.key}"

    @contextmanager
    def kept(self, path: Path, pages: str) -> Iterator[None]:
        """Keep the next address in a file for its owner alone, as a page that leads to it."""
        self._file = path, pages
        with outages(path):
            self._write()
        try:
            yield
        finally:
            self._file = None
            path.unlink(missing_ok=True)

    def _write(self) -> None:
        if self._file is not None:
            path, pages = self._file
            address = html.escape(self.address(pages))
            text = (
                '<!doctype html><html lang="en"><meta charset="utf-8"><title>Lustrum</title>'
                '<meta name="referrer" content="no-referrer">'
                f'<meta http-equiv="refresh" content="0; url={address}">'
                f'<p><a href="{address}">The agency\'s pages</a></p></html>\n'
            )
            write_whole(path, text.encode(), 0o600)


def key_file(folder: Path, port: int | str) -> Path:
    """Where the next address of the pages on a port is kept."""
    return folder / f".agency-{port}.html"


def kept_addresses(folder: Path) -> list[str]:
    """The next addresses of the pages that run over a data folder, for their owner."""
    with outages(folder):
        texts = [
            path.read_text("utf-8") for path in sorted(folder.glob(key_file(Path(), "*").name))
        ]
    return [
        html.unescape(match[1]) for text in texts if (match := re.search('href="([^"]+)"', text))
    ]


def _welcome(request: Request, cookie: str | None) -> Response:
    # A redirection would still count as the word of the page that led here, and get no cookie.
    page = (
        '<!doctype html><html lang="en"><title>Lustrum</title><p><a href="/">Go on</a></p></html>'
    )
    answer = HTMLResponse(page, headers={"Refresh": "0; url=/", "Referrer-Policy": "no-referrer"})
    if cookie is not None:
        answer.set_cookie(_cookie_name(request), cookie, httponly=True, samesite="strict")
    return answer


def _cookie_name(request: Request) -> str:
    return f"lustrum-agency-{(request.scope.get('server') or ('', ''))[1]}"


def _is_here(request: Request, host: str) -> bool:
    """Whether a request comes from this machine and asks for the name on which the pages listen."""
    client, server = request.scope.get("client"), request.scope.get("server")
    if client is None or server is None or not _is_loopback(client[0]):
        return False
    name = f"[{server[0]}]" if ":" in server[0] else server[0]
    return bool(re.fullmatch(rf"(?:localhost|{re.escape(name)})(?::[0-9]{{1,5}})?", host.lower()))


def _is_loopback(address: str) -> bool:
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def account_of(scope: Scope) -> int | None:
    """The account that holds the other end of a connection within this machine; None where nothing tells it."""
    try:
        ends = [
            (ipaddress.ip_address(host), int(port))
            for host, port in (scope["client"], scope["server"])
        ]
    except (KeyError, TypeError, ValueError):
        return None
    for name in ("tcp", "tcp6"):
        with suppress(OSError):
            wanted = [_as_listed(address.packed, port, name == "tcp6") for address, port in ends]
            for line in Path("/proc/net", name).read_text("ascii").splitlines()[1:]:
                listed = line.split()
                if listed[1:4] == [*wanted, _ESTABLISHED]:
                    return int(listed[7])
    return None


def _as_listed(address: bytes, port: int, long: bool) -> str:
    """An end of a connection as the system lists it: words in the order of the processor."""
    if long and len(address) == 4:
        address = bytes(10) + b"\xff\xff" + address
    words = (address[i : i + 4] for i in range(0, len(address), 4))
    return "".join(f"{int.from_bytes(w, sys.byteorder):08X}" for w in words) + f":{port:04X}"


# --- Where the pages listen


def listen(host: str, port: int) -> socket.socket:
    """A socket on a loopback address; any other address is refused before and after binding."""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        raise InputError(
            f"The page listens on a loopback address such as 127.0.0.1, not {host!r}."
        ) from None
    if not address.is_loopback:
        raise InputError(
            f"The page shows true counts and listens on this machine only; {host} is not a loopback address."
        )
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((str(address), port))
        listening.listen()  # a browser that is opened now waits until the pages answer
        bound = ipaddress.ip_address(listening.getsockname()[0])
        if not bound.is_loopback:
            raise InputError("The page could not be bound to a loopback address.")
    except OSError as error:
        listening.close()
        raise InputError(f"Port {port} of {host} cannot be used: {error.strerror}.") from None
    except InputError:
        listening.close()
        raise
    return listening


@contextmanager
def listen_on_file(path: Path) -> Iterator[socket.socket]:
    """A socket as a file that its owner alone may open, from the first moment on; removed at the end."""
    with outages(path.parent):
        folder = path.parent.stat()
    if folder.st_uid not in (0, os.getuid()) or folder.st_mode & 0o022:
        raise InputError(
            f"Others may put a file of their own into {path.parent}; name a socket in a folder that you alone "
            "may write to."
        )
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listening:
        before = os.umask(0o177)
        try:
            if path.is_socket() and _is_left_over(path):
                path.unlink()
            listening.bind(str(path))
        except OSError as error:
            raise InputError(f"{path} cannot be used: {error.strerror or error}.") from None
        finally:
            os.umask(before)
        try:
            made = path.lstat()
            if stat.S_IMODE(made.st_mode) != 0o600 or made.st_uid != os.getuid():
                raise InputError(f"{path} is open to others on this kind of disk; name another.")
            yield listening
        finally:
            path.unlink(missing_ok=True)


def _is_left_over(path: Path) -> bool:
    """Whether nobody listens on a socket any more."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as asking:
        try:
            asking.connect(str(path))
        except ConnectionRefusedError:
            return True
    return False
