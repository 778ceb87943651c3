"""The roles of codes as linear relations over a cube, and the evidence that a file itself gives for them.

Every role becomes the same thing: a weighted sum of cells along one variable that lies between two ends.
Totals, differences, subsets, other units, shares and equal codes differ in their weights only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor, lcm, log

import numpy as np
from scipy import sparse

from lustrum.audit import Knowledge
from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import NotJudgedError, choices
from lustrum.numeric.structure import UNBOUNDED
from lustrum.readers.cells import Cube
from lustrum.readers.layout import Dimension, Layout

CHANCE = 1e-4
"""A sum counts as shown by the numbers if a wrong one would hold by chance less often than this."""

_NAME = r"(?:'[^']+'|`[^`]+`|[^\s*/\[\]+]+)"
_UNIT = re.compile(
    rf"\s*(?:(?P<factor>\d+(?:\.\d+)?)\s*\*\s*)?(?P<value>{_NAME})"
    rf"(?:\s*/\s*(?:(?P<divisor>\d+(?:\.\d+)?)|(?P<base>{_NAME})(?:\[(?P<codes>[^\]]*)\])?))?"
    r"(?:\s*(?P<sign>[+-])\s*(?P<constant>\d+(?:\.\d+)?))?\s*"
)
_BOUND = re.compile(rf"\s*(?P<sign><=|>=)\s*(?P<value>{_NAME})\s*")


@dataclass(frozen=True)
class Relation:
    """A weighted sum of codes of one variable, for every combination of the others, lies between two ends."""

    axis: str
    terms: tuple[tuple[str, int], ...]
    low: int = 0
    high: int = 0

    @classmethod
    def total(cls, axis: str, total: str, parts: Sequence[str]) -> Relation:
        """A total is the sum of its parts."""
        return cls(axis, ((total, -1), *((part, 1) for part in parts)))


def relations_of(name: str, dimension: Dimension, *, complete: bool = False) -> list[Relation]:
    """All relations along one variable; with ``complete``, subsets that may be all of a code are all of it."""
    out = [Relation.total(name, total, parts) for total, parts in dimension.totals.items()]
    for code, (first, *others) in dimension.differences.items():
        out.append(Relation(name, ((code, -1), (first, 1), *((other, -1) for other in others))))
    for code, other in dimension.same.items():
        out.append(Relation(name, ((code, 1), (other, -1))))
    for code, group in dimension.subsets.items():
        if group.complete or (complete and group.complete is None and group.disjoint):
            out.append(Relation.total(name, code, group.codes))
            continue
        sets = [group.codes] if group.disjoint else [(one,) for one in group.codes]
        for codes in sets:
            terms = ((code, 1), *((one, -1) for one in codes))
            out.append(Relation(name, terms, 0, UNBOUNDED))
    return out


def knowledge_of(cube: Cube, layout: Layout, relations: Sequence[Relation]) -> Knowledge:
    """What a reader knows of all cells of a cube: its numbers, what it states, and the relations."""
    matrices, ends = [], []
    cells = cube.value.size
    number = np.arange(cells).reshape(cube.value.shape)
    additive = _additive(cube, layout)
    for relation in relations:
        axis = cube.names.index(relation.axis)
        codes = cube.codes[axis]
        slices = [np.take(number, codes.index(code), axis=axis) for code, _ in relation.terms]
        keep = np.ones(slices[0].shape, dtype=np.bool_)
        for other, mask in additive.items():
            if other != relation.axis:
                at = [n for n in cube.names if n != relation.axis].index(other)
                keep &= np.moveaxis(
                    np.broadcast_to(mask, (*_less(keep.shape, at), mask.size)), -1, at
                )
        columns = np.stack([one[keep] for one in slices], axis=1)
        weights = np.array([weight for _, weight in relation.terms], dtype=np.int64)
        rows = np.repeat(np.arange(len(columns)), len(weights))
        matrices.append(
            sparse.csr_array(
                (np.tile(weights, len(columns)), (rows, columns.ravel())),
                shape=(len(columns), cells),
            )
        )
        ends.append((np.full(len(columns), relation.low), np.full(len(columns), relation.high)))
    for terms, least, most in _unit_facts(cube, layout):
        row = sparse.csr_array(
            ([w for _, w in terms], ([0] * len(terms), [c for c, _ in terms])),
            shape=(1, cells),
            dtype=np.int64,
        )
        matrices.append(row)
        ends.append((np.array([least]), np.array([most])))
    matrix = (
        sparse.vstack(matrices, format="csr")
        if matrices
        else sparse.csr_array((0, cells), dtype=np.int64)
    )
    none = np.zeros(0, dtype=np.int64)
    return Knowledge(
        names=_Names(cube),
        low=cube.low.ravel(),
        high=cube.high.ravel(),
        matrix=matrix,
        fact_low=np.concatenate([e[0] for e in ends]) if ends else none,
        fact_high=np.concatenate([e[1] for e in ends]) if ends else none,
        decimals=cube.decimals,
    )


def _less(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


class _Names(Sequence[str]):
    """The names of all cells of a cube, put together when one is asked for."""

    def __init__(self, cube: Cube) -> None:
        self._cube = cube

    def __len__(self) -> int:
        return int(self._cube.value.size)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return [self._cube.name_of(i) for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._cube.name_of(int(index))


def _additive(cube: Cube, layout: Layout) -> dict[str, Mask]:
    """For each variable with codes that do not add up along others: which of its codes do."""
    out = {}
    for name, codes in zip(cube.names, cube.codes, strict=True):
        dimension = layout.dimensions.get(name)
        if dimension is not None and (dimension.units or dimension.not_additive):
            without = {*dimension.units, *dimension.not_additive}
            out[name] = np.array([code not in without for code in codes])
    return out


def _unit_facts(cube: Cube, layout: Layout) -> Iterator[tuple[list[tuple[int, int]], int, int]]:
    """What numbers in another unit, shares and means say of the cells that they are computed from."""
    unit = 10**cube.decimals
    for axis, name in enumerate(cube.names):
        dimension = layout.dimensions.get(name)
        for code, text in ({} if dimension is None else dimension.units).items():
            bound = _BOUND.fullmatch(text)
            if bound is not None and code in cube.codes[axis]:
                yield from _stated_bounds(cube, axis, code, bound)
                continue
            formula = _UNIT.fullmatch(text)
            if formula is None:
                raise InputError(
                    f"The unit {code!r} of {name!r} cannot be read; write it like '100 * EUR / "
                    f"EUR[geo=Total]' or "
                    "'EUR / 1000'."
                )
            if code not in cube.codes[axis]:
                continue
            factor = Fraction(formula["factor"] or 1) / Fraction(formula["divisor"] or 1)
            constant = Fraction(formula["constant"] or 0) * (-1 if formula["sign"] == "-" else 1)
            source = _code(formula["value"], name, cube.codes[axis])
            base = formula["base"] and _code(formula["base"], name, cube.codes[axis])
            other = _elsewhere(formula["codes"] or "", cube)
            half = Fraction(1, 2 * 10 ** _printed_decimals(cube, axis, code))
            slice_ = [slice(None)] * len(cube.names)
            slice_[axis] = slice(cube.codes[axis].index(code), cube.codes[axis].index(code) + 1)
            for at in np.argwhere(cube.known[tuple(slice_)]):
                at[axis] = cube.codes[axis].index(code)
                middle = Fraction(int(cube.value[tuple(at)]), unit) - constant
                at[axis] = cube.codes[axis].index(source)
                target = int(np.ravel_multi_index(tuple(at), cube.value.shape))
                ends = (middle - half, middle + half)
                if base is None:
                    low, high = (end / factor * unit for end in ends)
                    yield [(target, 1)], ceil(low), floor(high)
                    continue
                at[axis] = cube.codes[axis].index(base)
                for a, c in other:
                    at[a] = c
                whole = int(np.ravel_multi_index(tuple(at), cube.value.shape))
                if whole == target:
                    continue
                if cube.signed and not (
                    cube.known.ravel()[whole] and cube.value.ravel()[whole] > 0
                ):
                    raise NotJudgedError(
                        f"The unit {code!r} of {name!r} is a share of a number that can be "
                        f"negative; such shares "
                        "are not judged."
                    )
                for end, upper in ((ends[0], False), (ends[1], True)):
                    times = lcm(factor.denominator, end.denominator)
                    terms = [(target, int(factor * times)), (whole, -int(end * times))]
                    yield terms, *((-UNBOUNDED, 0) if upper else (0, UNBOUNDED))


def _stated_bounds(
    cube: Cube, axis: int, code: str, bound: re.Match[str]
) -> Iterator[tuple[list[tuple[int, int]], int, int]]:
    """Numbers that are the lower or upper ends of others."""
    target = cube.codes[axis].index(_code(bound["value"], cube.names[axis], cube.codes[axis]))
    own = cube.codes[axis].index(code)
    for at in np.argwhere(cube.known):
        if at[axis] == own:
            end = int(cube.value[tuple(at)])
            at[axis] = target
            cell = int(np.ravel_multi_index(tuple(at), cube.value.shape))
            yield [(cell, 1)], *((end, UNBOUNDED) if bound["sign"] == "<=" else (-UNBOUNDED, end))


def _printed_decimals(cube: Cube, axis: int, code: str) -> int:
    values = np.take(cube.value, cube.codes[axis].index(code), axis=axis)
    shown = values[np.take(cube.known, cube.codes[axis].index(code), axis=axis)]
    for decimals in range(cube.decimals + 1):
        if not (shown % 10 ** (cube.decimals - decimals)).any():
            return decimals
    return cube.decimals


def _code(text: str, name: str, codes: Sequence[str]) -> str:
    code = text[1:-1] if text[:1] in "'`" and len(text) > 1 else text
    if code not in codes:
        raise InputError(f"{name!r} has no code {code!r}; {choices(code, codes)}.")
    return code


def _elsewhere(text: str, cube: Cube) -> list[tuple[int, int]]:
    """Codes of other variables in brackets, as axes and places."""
    out = []
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, code = part.partition("=")
        if not equals or name.strip() not in cube.names:
            raise InputError(
                f"A unit names cells like [geo=Total]; {choices(name.strip(), cube.names)}."
            )
        axis = cube.names.index(name.strip())
        out.append(
            (axis, cube.codes[axis].index(_code(code.strip(), name.strip(), cube.codes[axis])))
        )
    return out


def evidence(
    value: Ints, known: Mask, total: int, parts: Sequence[int]
) -> tuple[int, float] | None:
    """In how many fully shown lines a total is the sum of its parts, and by what chance a wrong part would fit.

    ``value`` and ``known`` have a row for each code. A part that stands for another row would have to be
    equal to it in every line, by a chance of one in ``1 + v`` for a number ``v``; zeros and hidden numbers
    show nothing. None if a line contradicts the sum.
    """
    rows = [total, *parts]
    full = known[rows].all(axis=0)
    numbers = value[:, full]
    if bool((numbers[total] != numbers[list(parts)].sum(axis=0)).any()):
        return None
    chances = [sum(log(1 + abs(int(v))) for v in numbers[part]) for part in parts]
    return int(full.sum()), float(np.exp(-min(chances, default=0.0)))
