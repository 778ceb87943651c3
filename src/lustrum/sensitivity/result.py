"""What a rule finds: sensitive cells, why, and how much protection each needs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model import CellStatus, InputError, Reason, Table
from lustrum.model.arrays import Ints, Mask


@dataclass(frozen=True, eq=False, repr=False)
class Finding:
    """One kind of sensitive cell: the reason in words, the status letter, and where."""

    reason: Reason
    status: CellStatus
    cells: Mask

    def __repr__(self) -> str:
        return f"Finding({self.reason.rule!r}, {self.status.value!r})"

    def within(self, cells: Mask) -> Finding:
        return Finding(self.reason, self.status, _frozen(self.cells & cells))


@dataclass(frozen=True, eq=False, repr=False)
class Sensitivity:
    """The outcome of a rule, cell by cell, in the shape of the table.

    ``lower``, ``upper`` and ``sliding`` are the protection levels in the integer units of the table
    (Fischetti and Salazar 2000): an attacker must be left with an interval that reaches at least
    from ``value - lower`` to ``value + upper`` and is at least ``sliding`` wide. They are 0 where a
    cell is not sensitive, and ``sliding`` is 0 where a rule implies no width of its own.

    These arrays follow from confidential values; the ``repr`` shows none.

    >>> from lustrum.sensitivity import Threshold
    >>> found = Threshold(3).judge(Table.from_counts([[1, 5], [0, 2]]))
    >>> found.status.tolist(), found.reasons_at((0, 0))[0].text
    ([['A', 'F'], ['F', 'A']], 'few contributors')
    """

    rule: Mapping[str, Any]
    findings: tuple[Finding, ...]
    lower: Ints
    upper: Ints
    sliding: Ints

    def __post_init__(self) -> None:
        for name in ("lower", "upper", "sliding"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))

    def __repr__(self) -> str:
        shape = " x ".join(map(str, self.lower.shape)) or "1"
        return f"Sensitivity({shape} cells by {self.rule.get('rule')})"

    @classmethod
    def of(
        cls,
        table: Table,
        rule: Mapping[str, Any],
        findings: Iterable[Finding],
        lower: npt.NDArray[Any],
        upper: npt.NDArray[Any],
        sliding: npt.NDArray[Any] | None = None,
    ) -> Sensitivity:
        """Put a result together; a cell that cannot hold anybody is never sensitive."""
        possible = np.ones(table.shape, np.bool_) if table.structural is None else ~table.structural
        restricted = tuple(f.within(possible) for f in findings)
        mask = _any([f.cells for f in restricted], table.shape)
        wide = np.zeros(table.shape, np.int64) if sliding is None else sliding
        levels = [_level(level, mask, table.shape) for level in (lower, upper, wide)]
        return cls(rule, restricted, *levels)

    @cached_property
    def mask(self) -> Mask:
        return _frozen(_any([f.cells for f in self.findings], self.lower.shape))

    @cached_property
    def status(self) -> npt.NDArray[np.str_]:
        """The letter of each cell: that of its first finding, or ``F`` where it is free."""
        letters = np.full(self.lower.shape, CellStatus.FREE.value, dtype="<U1")
        for finding in reversed(self.findings):
            letters[finding.cells] = finding.status.value
        return _frozen(letters)

    @property
    def reasons(self) -> tuple[Reason, ...]:
        """Every reason that holds for some cell, once, in words that show no value."""
        return tuple(dict.fromkeys(f.reason for f in self.findings if f.cells.any()))

    def reasons_at(self, cell: Sequence[int]) -> tuple[Reason, ...]:
        """Why one cell is sensitive; empty where it is not."""
        index = tuple(cell)
        if len(index) != self.lower.ndim:
            raise InputError(f"A cell of this table has {self.lower.ndim} positions.")
        return tuple(dict.fromkeys(f.reason for f in self.findings if f.cells[index]))


def _any(masks: Sequence[Mask], shape: tuple[int, ...]) -> Mask:
    out = np.zeros(shape, dtype=np.bool_)
    for mask in masks:
        out |= mask
    return out


def _level(level: npt.NDArray[Any], mask: Mask, shape: tuple[int, ...]) -> Ints:
    inside = np.where(mask, level.reshape(shape), 0)
    # Exact whole numbers of any size; a level beyond 64 bits is as good as no limit.
    return np.minimum(inside, np.iinfo(np.int64).max).astype(np.int64)


def _frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    view = np.asarray(array).view()
    view.setflags(write=False)
    return view
