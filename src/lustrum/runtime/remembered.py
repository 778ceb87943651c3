"""What was worked out once and may be asked for again: a bounded memory, the longest unused goes first."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Generic, TypeVar
from weakref import WeakSet

V = TypeVar("V")
_named: WeakSet[Remembered[Any]] = WeakSet()
_names_lock = threading.Lock()


class Remembered(Generic[V]):
    """Values by key, up to a sum of sizes; safe to share between threads.

    Two threads that ask for the same missing value both make it: nobody waits for a value under way.

    >>> squares = Remembered[int](most=2)
    >>> [squares.get(n, lambda n=n: n * n) for n in (1, 2, 3)], len(squares)
    ([1, 4, 9], 2)
    """

    def __init__(self, most: int, size: Callable[[V], int] = lambda _: 1, name: str = "") -> None:
        self._most, self._size, self.name = most, size, name
        self._lock = threading.Lock()
        self._held: OrderedDict[Hashable, tuple[V, int]] = OrderedDict()
        self._sum = 0
        if name:  # its size is in bytes, and is told to whoever watches
            with _names_lock:
                _named.add(self)

    def __len__(self) -> int:
        return len(self._held)

    def find(self, key: Hashable) -> V | None:
        """The value of a key, if it is still there."""
        with self._lock:
            entry = self._held.get(key)
            if entry is None:
                return None
            self._held.move_to_end(key)
            return entry[0]

    def keep(self, key: Hashable, value: V) -> None:
        """Keep a value; one that is larger than the whole memory is not kept."""
        size = self._size(value)
        with self._lock:
            before = self._held.pop(key, None)
            if before is not None:
                self._sum -= before[1]
            if size > self._most:
                return
            self._held[key] = value, size
            self._sum += size
            while self._sum > self._most:
                _, (_, gone) = self._held.popitem(last=False)
                self._sum -= gone

    def get(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key, made where it is not there."""
        cached = self.find(key)
        if cached is None:
            cached = make()
            self.keep(key, cached)
        return cached

    def clear(self) -> None:
        with self._lock:
            self._held.clear()
            self._sum = 0


def bytes_held() -> dict[str, int]:
    """The bytes that memories with a name hold in this process, by that name.

    >>> words = Remembered[bytes](most=10, size=len, name="words")
    >>> words.keep("a", b"four"), bytes_held()["words"]
    (None, 4)
    """
    with _names_lock:
        memories = list(_named)
    held: dict[str, int] = {}
    for memory in memories:
        held[memory.name] = held.get(memory.name, 0) + memory._sum
    return held
