"""What the user says about the files of 'audit' and 'suppress': columns, totals, hierarchies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from lustrum.model import InputError
from lustrum.readers import ColumnNames, Groups, StatedTotals, read_groups

_EVERY = "all"

Words: TypeAlias = Sequence[str] | None
"""An option that may be repeated."""


@dataclass(frozen=True)
class FileOptions:
    """Options as they stand on the command line; ``DIM=`` before a code or a file names a dimension."""

    values: Sequence[str] = ()
    by: str = ""
    total: Sequence[str] = ()
    hierarchy: Sequence[str] = ()
    no_totals: Sequence[str] = ()
    rest: Sequence[str] = ()
    hidden: Sequence[str] = ()
    contributors: str = ""
    largest: str = ""
    holdings: str = ""
    decimals: int | None = None

    @classmethod
    def of(
        cls, values: Words, by: str, total: Words, hierarchy: Words, no_totals: Words, rest: Words,
        hidden: Words = None,
    ) -> FileOptions:  # fmt: skip
        """The options of a command, where one that was not used is None."""
        return cls(
            values or (),
            by,
            total or (),
            hierarchy or (),
            no_totals or (),
            rest or (),
            hidden or (),
        )

    def columns(self) -> ColumnNames:
        """The columns that are named."""
        return ColumnNames(
            values=tuple(self.values) or ("value",),
            by=_names(self.by),
            count=self.contributors or None,
            largest=_names(self.largest),
            holdings=_names(self.holdings),
        )

    def said(self) -> StatedTotals:
        """What is said about totals.

        >>> FileOptions(total=["Total", "sex=T"], no_totals=["all"]).said().named["sex"]
        frozenset({'T'})
        """
        named: dict[str, frozenset[str]] = {}
        for word in self.total:
            dimension, equals, code = word.partition("=")
            axis_name, total_code = (dimension, code) if equals else ("", word)
            named[axis_name] = named.get(axis_name, frozenset()) | {total_code}
        groups: dict[str, Groups] = {}
        for word in self.hierarchy:
            dimension, equals, file = word.partition("=")
            if not equals:
                raise InputError(
                    f"--hierarchy is DIMENSION=FILE, such as nace=nace.hrc, not {word!r}."
                )
            groups[dimension] = {**groups.get(dimension, {}), **read_groups(Path(file))}
        whole = [word for word in self.rest if "=" not in word]
        parts: dict[str, frozenset[str]] = {}
        for word in self.rest:
            dimension, equals, code = word.partition("=")
            if equals:
                parts[dimension] = parts.get(dimension, frozenset()) | {code}
        return StatedTotals(
            named,
            groups,
            dimensions(self.no_totals),
            dimensions(whole),
            open_groups=parts,
        )


def _names(text: str) -> tuple[str, ...] | None:
    return tuple(name.strip() for name in text.split(",")) if text else None


def dimensions(names: Sequence[str]) -> frozenset[str]:
    """Dimensions that an option names; an empty name stands for all of them."""
    return frozenset("" if name == _EVERY else name for name in names)
