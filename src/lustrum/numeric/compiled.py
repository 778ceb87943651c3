"""How hot loops are compiled: at the first call, without the interpreter's lock, kept on disk."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar, cast

F = TypeVar("F", bound=Callable[..., Any])

PLAIN_WORK = 2_000_000
"""The work of a process up to which small loops run as they are written: loading the compiler takes longer."""
_plain_work_left = PLAIN_WORK
_STEPS, _ELEMENTS = 16, 128
"""Steps of a loop for each element, and elements that a twin in numpy takes in one step."""
_loaded = False
_thread = threading.local()
_compiling = threading.RLock()
_patience = 120.0
"""Seconds that this process waits in all for others that compile the same loops: they may hang."""
_alone_with: set[str] = set()


def compiled(function: F, **options: Any) -> F:
    """Compile when first called, and keep the result on disk where there is a place to write.

    A result that was kept is used again only while the files of the loop and of all loops that it calls, and
    the constants that they name, are what they were.
    """
    return cast(F, Loop(function, options))


def compiled_if_large(function: F) -> F:
    """Compile only in a process that has more to do than :data:`PLAIN_WORK`; until then run it as written.

    It is for loops over 64-bit integers and floats, which compute the same either way. The work of a call is
    taken for the square of the number of elements that it is given.
    """
    return cast(F, Loop(function, {}, small=True))


def compiled_after(twin: Callable[..., Any] | None = None) -> Callable[[F], F]:
    """:func:`compiled_if_large` for loops whose work grows as their arrays do; until then a numpy twin runs."""

    def decorate(function: F) -> F:
        return cast(F, Loop(function, {}, small=True, linear=True, twin=twin))

    return decorate


def always_compile() -> None:
    """Compile every loop from now on, however small its work."""
    global _plain_work_left
    _plain_work_left = 0


def compile_beside(run: Callable[[], None]) -> None:
    """Run something with every loop compiled, while other threads do without, and compile always afterwards."""
    _thread.compiles = True
    try:
        run()
    finally:
        _thread.compiles = False
        always_compile()


def has_compiler() -> bool:
    """Whether the compiler is loaded, or this thread loads it for the next loop."""
    return _loaded or _plain_work_left <= 0 or getattr(_thread, "compiles", False)


def is_compiling() -> bool:
    """Whether this process is busy with compiling, which takes long on a machine that has not run it before."""
    module = sys.modules.get("lustrum.numeric.compile_notice")
    # Another thread may be importing it just now; then it has not compiled anything.
    notice = getattr(module, "notice", None)
    return notice is not None and bool(notice.is_long)


class Loop:
    """A function that is compiled when it is first called; numba is not imported before."""

    def __init__(
        self,
        function: Callable[..., Any],
        options: dict[str, Any],
        *,
        small: bool = False,
        linear: bool = False,
        twin: Callable[..., Any] | None = None,
    ):
        functools.update_wrapper(self, function)
        self.py_func: Any = function
        self.options = options
        self.small = small
        self.linear = linear
        self.twin = twin
        self.keep = True

    def __call__(self, *args: Any) -> Any:
        """Run the loop."""
        global _plain_work_left
        if self.small and _plain_work_left > 0 and not getattr(_thread, "compiles", False):
            size = sum(getattr(value, "size", 1) for value in args)
            linear = size * _STEPS if self.twin is None else size // _ELEMENTS
            _plain_work_left -= linear if self.linear else size**2
            if _plain_work_left >= 0:
                return (self.twin or self.py_func)(*args)
        return self.kernel(*args)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.kernel, name)

    @functools.cached_property
    def kernel(self) -> Any:
        """The compiled loop. Loops that it calls are compiled too, and take their places among its names."""
        global _loaded
        import numba

        from lustrum.numeric.compile_notice import notice

        with _compiling:
            _loaded = True
            names = self.py_func.__globals__
            for word in _words(self.py_func.__code__):
                if isinstance(names.get(word), Loop):
                    names[word] = names[word].kernel
            options = {"nogil": True, **self.options}
            try:
                dispatcher = numba.njit(cache=self.keep, **options)(self.py_func)
            except RuntimeError:  # nowhere to keep it: an installation that may only be read
                notice.stored = False
                dispatcher = numba.njit(**options)(self.py_func)
            cache_file = getattr(getattr(dispatcher, "_cache", None), "_cache_file", None)
            if cache_file is not None:
                # Numba looks at the loop's own file only, and reads types by name before it looks, so a type
                # that moved is an error. A version that differs sends it to the compiler before it reads.
                cache_file._version = f"{numba.__version__} {_made_of(dispatcher, {})!r}"
                cache_file._load_index = functools.partial(_read_index, cache_file._load_index)
                dispatcher.compile = functools.partial(
                    _compile_once, dispatcher.compile, self.py_func
                )
        return dispatcher


def _compile_once(compile_loop: Callable[..., Any], function: Any, *args: Any) -> Any:
    """Compile while no other process compiles loops of the file, and so find what another one kept."""
    from numba.core.compiler_lock import global_compiler_lock

    # The compiler's own lock comes first, so that no two threads wait for each other.
    with global_compiler_lock, _alone(function.__code__.co_filename):
        return compile_loop(*args)


@contextlib.contextmanager
def _alone(path: str) -> Iterator[None]:
    """Lock a file against other processes while patience lasts; at worst a loop is compiled twice."""
    global _patience
    try:
        import fcntl

        file = os.open(path, os.O_RDONLY)
    except (ImportError, OSError):  # a system without such locks, or a file that may not be read
        yield
        return
    first = path not in _alone_with
    _alone_with.add(path)
    try:
        while first and _patience > 0:
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            time.sleep(0.05)
            _patience -= 0.05
        yield
    finally:
        if first:
            _alone_with.discard(path)
        os.close(file)


def _read_index(read: Callable[[], dict[Any, Any]]) -> dict[Any, Any]:
    """What was kept; nothing where it was made for types that moved or have other names now."""
    try:
        return read()
    except (AttributeError, ImportError):
        return {}


def _words(code: CodeType) -> Iterator[str]:
    """The names that a function uses, those of functions and comprehensions inside it too."""
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _words(inner)


def _made_of(loop: Any, known: dict[str, Any]) -> dict[str, Any]:
    """Add to what is known the files of a loop and of all it calls, and the constants that they name."""
    function = loop.py_func
    name = f"{function.__module__}.{function.__qualname__}"
    if name not in known:
        file = Path(function.__code__.co_filename).stat()
        known[name] = (file.st_mtime_ns, file.st_size)
        for word in _words(function.__code__):
            value = function.__globals__.get(word)
            if hasattr(value, "py_func"):
                _made_of(value, known)
            elif isinstance(value, int | float | str | tuple):
                known[f"{name}.{word}"] = repr(value)
    return known
