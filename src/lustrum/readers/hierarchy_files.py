"""Groups of codes from a file: a tree as tau-ARGUS writes it, a list of parents, or groups in TOML.

``.hrc``
    A code a line; each ``@`` before it is one level down from the line above it with fewer of them.
``.csv``
    Columns ``code`` and ``parent``. A code may stand twice with two parents, as where two classifications share
    their finest codes.
``.toml``
    ``XGSO = ["G", "H", "I"]``, a group and its parts a line.
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from lustrum.model import InputError
from lustrum.readers.container import csv_grid

Groups = dict[str, tuple[str, ...]]
"""The parts of each group; parts may be groups themselves."""


def read_groups(path: Path) -> Groups:
    """Read groups of codes by the ending of the file."""
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror or error}.") from None
    except UnicodeDecodeError:
        raise InputError(f"{path} is not UTF-8; save it in that encoding.") from None
    return groups_of_text(text, str(path), path.suffix.lower())


def groups_of_text(text: str, source: str, ending: str) -> Groups:
    """Groups of codes, checked: no group holds itself.

    >>> groups_of_text("C\\n@C10\\n@C11\\n@@C11a\\n@@C11b\\n", "nace.hrc", ".hrc")
    {'C': ('C10', 'C11'), 'C11': ('C11a', 'C11b')}
    """
    kinds = {".hrc": _tree, ".csv": _parents, ".toml": _toml}
    if ending not in kinds:
        raise InputError(f"{source}: a hierarchy is a file of .hrc, .csv or .toml.")
    groups = kinds[ending](text.removeprefix("\ufeff"), source)
    if not groups:
        raise InputError(f"{source}: there is no group of codes; a hierarchy needs one.")
    check_circles(groups, source)
    return groups


def _tree(text: str, source: str) -> Groups:
    groups: dict[str, dict[str, None]] = {}
    above: list[str] = []
    for number, line in enumerate(text.splitlines(), start=1):
        code = line.strip().lstrip("@").strip()
        depth = len(line.strip()) - len(line.strip().lstrip("@"))
        if not code:
            continue
        if depth > len(above):
            raise InputError(
                f"{source}, line {number}: there are {depth} '@', which skips a level; the line above has "
                f"{max(len(above) - 1, 0)}."
            )
        del above[depth:]
        if above:
            groups.setdefault(above[-1], {})[code] = None
        above.append(code)
    return {group: tuple(parts) for group, parts in groups.items()}


def _parents(text: str, source: str) -> Groups:
    head, *lines = csv_grid(text, source).lines
    if not {"code", "parent"} <= set(head):
        raise InputError(f"{source}: a list of parents needs the columns 'code' and 'parent'.")
    groups: dict[str, dict[str, None]] = {}
    for number, line in enumerate(lines, start=2):
        fields = dict(zip(head, (*line, *[""] * len(head)), strict=False))
        if not fields["code"]:
            raise InputError(f"{source}, line {number}: a parent has no code; name it.")
        if fields["parent"]:
            groups.setdefault(fields["parent"], {})[fields["code"]] = None
    return {group: tuple(parts) for group, parts in groups.items()}


def _toml(text: str, source: str) -> Groups:
    try:
        groups = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InputError(f"{source} is not TOML: {error}.") from None
    for group, parts in groups.items():
        if (
            not isinstance(parts, list)
            or not parts
            or not all(isinstance(p, str) and p for p in parts)
        ):
            raise InputError(f"{source}: the group {group!r} needs a list of codes in quotes.")
    return {group: tuple(dict.fromkeys(parts)) for group, parts in groups.items()}


def check_circles(groups: Groups, source: str) -> None:
    """Refuse a group that holds itself, through other groups too."""
    done: set[str] = set()
    for top in groups:
        path: list[tuple[str, int]] = [(top, 0)]
        inside = {top}
        while path:
            code, index = path.pop()
            parts = groups.get(code, ())
            if index == len(parts) or code in done:
                inside.discard(code)
                done.add(code)
                continue
            path.append((code, index + 1))
            part = parts[index]
            if part in inside:
                raise InputError(f"{source}: the group {part!r} holds itself.")
            if part not in done:
                inside.add(part)
                path.append((part, 0))
