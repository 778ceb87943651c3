"""The smaller files of tau-ARGUS: a-priori changes, code lists, recodings and batch files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Mask
from lustrum.readers.argus.metadata import exact_text, text_of_file

_CHANGES = {"S": 0, "U": 0, "P": 0, "M": 0, "ML": 0, "C": 1, "W": 1, "PL": 2, "AB": 2}
"""What an a-priori file can change, and with how many numbers."""

_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")


def _lines(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.strip().startswith("//"):
            yield number, line.strip()


@dataclass(frozen=True)
class Apriori:
    """Changes of cells: their codes, what changes (``U``, ``P``, ``S``, ``C`` ...) and its numbers."""

    changes: tuple[tuple[tuple[str, ...], str, tuple[str, ...]], ...]
    separator: str = ";"

    @classmethod
    def of_table(
        cls,
        table: Table | Release,
        primary: Mask,
        lower: Sequence[int] = (),
        upper: Sequence[int] = (),
    ) -> Apriori:
        """Primary cells (``U``) with the levels that they need; those of a release are ``~release.shown``.

        >>> Apriori.of_table(Table.from_counts([4, 9]), [True, False], [1, 0], [2, 0]).text
        '1;U\\n1;PL;1;2\\n'
        """
        names = list(product(*(axis.codes for axis in table.axes)))
        every = [code for axis in table.axes for code in axis.codes]
        wrong = ('"', ";", "\r", "\n", "//")
        if any(code != code.strip() or not code or any(w in code for w in wrong) for code in every):
            raise InputError(
                "An a-priori file cannot hold empty codes, nor codes with quotes, line breaks, blanks around "
                "them, '//' or ';'."
            )
        changes: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = []
        for cell in np.flatnonzero(primary).tolist():
            changes.append((names[cell], "U", ()))
            if len(lower) and len(upper):
                levels = (int(lower[cell]), int(upper[cell]))
                said = tuple(exact_text(level, table.decimals) for level in levels)
                changes.append((names[cell], "PL", said))
        return cls(tuple(changes))

    @property
    def text(self) -> str:
        """The file."""
        joined = (self.separator.join((*codes, kind, *said)) for codes, kind, said in self.changes)
        return "".join(f"{line}\n" for line in joined)


def read_apriori(path: Path | str, variables: int, separator: str = "") -> Apriori:
    """Read a ``.hst`` about cells of so many variables; the separator is found if none is said."""
    return parse_apriori(text_of_file(path), variables, str(path), separator)


def parse_apriori(text: str, variables: int, source: str, separator: str = "") -> Apriori:
    """The changes from their text.

    >>> parse_apriori("Nr;4;u\\nZd;6;pl;3;5\\n", 2, "a.hst").changes[1]
    (('Zd', '6'), 'PL', ('3', '5'))
    """
    changes = []
    for number, line in _lines(text):
        separator = separator or next((s for s in ";,\t" if s in line), ";")
        fields = [field.strip().strip('"') for field in line.split(separator)]
        codes, said = tuple(fields[:variables]), fields[variables + 1 :]
        kind = "".join(fields[variables : variables + 1]).upper()
        if kind not in _CHANGES:
            raise InputError(
                f"{source}, line {number}: after {variables} codes comes one of {', '.join(_CHANGES)}, not "
                f"{kind[:20]!r}."
            )
        if len(said) != _CHANGES[kind] or not all(map(_NUMBER.fullmatch, said)):
            raise InputError(f"{source}, line {number}: {kind} goes with {_CHANGES[kind]} numbers.")
        changes.append((codes, kind, tuple(said)))
    return Apriori(tuple(changes), separator or ";")


def read_code_list(path: Path | str) -> dict[str, str]:
    """Read a ``.cdl``: labels by code."""
    return parse_code_list(text_of_file(path), str(path))


def parse_code_list(text: str, source: str) -> dict[str, str]:
    """Labels by code from the text of a list.

    >>> parse_code_list(" 1,Groningen\\nNr,North, all of it\\n", "region.cdl")
    {'1': 'Groningen', 'Nr': 'North, all of it'}
    """
    found: dict[str, str] = {}
    for number, line in _lines(text):
        code, comma, label = line.partition("," if "," in line else ";")
        code = code.strip().strip('"')
        if not comma or code in found:
            why = (
                "the code stands twice"
                if code in found
                else "a code, a comma and a label are needed"
            )
            raise InputError(f"{source}, line {number}: {why}.")
        found[code] = label.strip().strip('"')
    return found


@dataclass(frozen=True)
class Recoding:
    """A recoding: groups of codes and ranges by their new code, or the codes at which a tree is cut."""

    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()
    closed: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    code_list: str = ""

    @property
    def text(self) -> str:
        """The file."""
        lines = [f"{new}:{','.join(parts)}" for new, parts in self.groups]
        lines = ["<TREERECODE>", *self.closed] if self.closed else lines
        lines += [f"<MISSING> {' '.join(self.missing)}"] if self.missing else []
        lines += [f'<CODELIST> "{self.code_list}"'] if self.code_list else []
        return "".join(f"{line}\n" for line in lines)


def read_recoding(path: Path | str) -> Recoding:
    """Read a ``.grc``."""
    return parse_recoding(text_of_file(path), str(path))


def parse_recoding(text: str, source: str) -> Recoding:
    """A recoding from its text.

    >>> parse_recoding("1:1-5,8\\n", "GK.grc").groups
    (('1', ('1-5', '8')),)
    """
    groups: list[tuple[str, tuple[str, ...]]] = []
    closed: list[str] = []
    missing: tuple[str, ...] = ()
    code_list, tree = "", False
    for number, line in _lines(text):
        word, _, rest = line.partition(" ")
        new, colon, parts = line.partition(":")
        if word.upper() == "<TREERECODE>":
            tree = True
        elif word.upper() == "<MISSING>":
            missing = tuple(rest.split())
        elif word.upper() == "<CODELIST>":
            code_list = rest.strip().strip('"')
        elif tree:
            closed.append(line)
        elif colon and new.strip() and parts.strip():
            groups.append((new.strip(), tuple(part.strip() for part in parts.split(","))))
        else:
            raise InputError(
                f"{source}, line {number}: a new code, a colon and old codes are needed."
            )
    return Recoding(tuple(groups), tuple(closed), missing, code_list)


@dataclass(frozen=True)
class BatchCommand:
    """A command of a batch file, with what stands behind it."""

    name: str
    words: str
    line: int


def read_batch(path: Path | str) -> tuple[BatchCommand, ...]:
    """Read a ``.arb``: its commands in their order."""
    return parse_batch(text_of_file(path), str(path))


def parse_batch(text: str, source: str) -> tuple[BatchCommand, ...]:
    """The commands from their text.

    >>> parse_batch('//made\\n<SAFETYRULE>  NK(2,75)|\\n', "a.arb")
    (BatchCommand(name='SAFETYRULE', words='NK(2,75)|', line=2),)
    """
    commands = []
    for number, line in _lines(text):
        found = re.fullmatch(r"<([A-Z]+)>\s*(.*)", line, re.IGNORECASE)
        if found is None:
            raise InputError(
                f"{source}, line {number}: a command such as <READMICRODATA> is expected."
            )
        commands.append(BatchCommand(found[1].upper(), found[2], number))
    return tuple(commands)
