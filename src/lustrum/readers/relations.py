"""The roles of codes as linear relations over a cube, and the evidence that a file itself gives for them.

Every role becomes the same thing: a weighted sum of cells along one variable that lies between two ends.
Totals, differences, subsets, other units, shares and equal codes differ in their weights only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, lcm, prod

import numpy as np
from scipy import sparse

from lustrum.audit import Knowledge
from lustrum.model import InputError
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import NotJudgedError, choices
from lustrum.numeric.structure import UNBOUNDED
from lustrum.readers.cells import CellCube
from lustrum.readers.layout import UNIT, CodeRoles, Layout, bare

CHANCE = 1e-4
"""A sum counts as shown by the numbers if a wrong one would hold by chance less often than this."""


@dataclass(frozen=True)
class CodeRelation:
    """A weighted sum of codes of one variable, for every combination of the others, lies between two ends."""

    axis: str
    terms: tuple[tuple[str, int], ...]
    low: int = 0
    high: int = 0

    @classmethod
    def total(cls, axis: str, total: str, parts: Sequence[str]) -> CodeRelation:
        return cls(axis, ((total, -1), *((part, 1) for part in parts)))


def relations_of(name: str, dimension: CodeRoles, *, complete: bool = False) -> list[CodeRelation]:
    """All relations along one variable; with ``complete``, subsets that may be all of a code are all of it."""
    out = [CodeRelation.total(name, total, parts) for total, parts in dimension.totals.items()]
    for code, (first, *others) in dimension.differences.items():
        out.append(CodeRelation(name, ((code, -1), (first, 1), *((other, -1) for other in others))))
    for code, other in dimension.same.items():
        out.append(CodeRelation(name, ((code, 1), (other, -1))))
    for code, group in dimension.subsets.items():
        if group.complete or (complete and group.complete is None and group.disjoint):
            out.append(CodeRelation.total(name, code, group.codes))
            continue
        sets = [group.codes] if group.disjoint else [(one,) for one in group.codes]
        for codes in sets:
            terms = ((code, 1), *((one, -1) for one in codes))
            out.append(CodeRelation(name, terms, 0, UNBOUNDED))
    return out


def knowledge_of(cube: CellCube, layout: Layout, relations: Sequence[CodeRelation]) -> Knowledge:
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


def with_sums(known: Knowledge, sums: Sequence[tuple[int, ...]]) -> Knowledge:
    """The same facts with one more cell for each sum of cells."""
    lengths, size = [len(cells) for cells in sums], len(known)
    row = np.repeat(np.arange(len(sums)), lengths)
    inside = sparse.csr_array(
        (np.ones(row.size, np.int64), (row, [cell for cells in sums for cell in cells])),
        shape=(len(sums), size),
    )
    more = sparse.block_array(
        [[known.matrix, None], [inside, -sparse.eye_array(len(sums), dtype=np.int64)]], format="csr"
    )
    zero = np.zeros(len(sums), dtype=np.int64)
    return Knowledge(
        names=tuple(map(str, range(size + len(sums)))),
        low=np.concatenate([known.low, zero - UNBOUNDED]),
        high=np.concatenate([known.high, zero + UNBOUNDED]),
        matrix=more,
        fact_low=np.concatenate([known.fact_low, zero]),
        fact_high=np.concatenate([known.fact_high, zero]),
        decimals=known.decimals,
    )


def _less(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return (*shape[:axis], *shape[axis + 1 :])


class _Names(Sequence[str]):
    """The names of all cells of a cube, put together when one is asked for."""

    def __init__(self, cube: CellCube) -> None:
        self._cube = cube

    def __len__(self) -> int:
        return int(self._cube.value.size)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        if isinstance(index, slice):
            return [self._cube.name_of(i) for i in range(*index.indices(len(self)))]
        if not 0 <= index < len(self):
            raise IndexError(index)
        return self._cube.name_of(int(index))


def _additive(cube: CellCube, layout: Layout) -> dict[str, Mask]:
    """For each variable with codes that do not add up along others: which of its codes do."""
    out = {}
    for name, codes in zip(cube.names, cube.codes, strict=True):
        dimension = layout.dimensions.get(name)
        if dimension is not None and (dimension.units or dimension.not_additive):
            without = {*dimension.units, *dimension.not_additive}
            out[name] = np.array([code not in without for code in codes])
    return out


@dataclass(frozen=True)
class ComputedFigure:
    """A figure: ``factor`` times the sum of cells, divided by ``whole`` if there is one, plus ``constant``.

    ``figure`` is None where it is hidden. With an ``end`` it is a bound of the cell. ``half`` is half a unit of
    its last digit.
    """

    at: tuple[int, ...]
    figure: Decimal | None
    cells: tuple[int, ...]
    whole: int | None
    factor: Fraction
    constant: Fraction
    end: str
    half: Fraction


def computed_figures(cube: CellCube, layout: Layout) -> Iterator[ComputedFigure]:
    """The figures of all codes that are units of others."""
    for axis, name in enumerate(cube.names):
        units = layout.dimensions.get(name, CodeRoles()).units
        for code, text in units.items():
            formula = UNIT.fullmatch(text)
            if formula is None:
                raise InputError(
                    f"The unit {code!r} of {name!r} cannot be read; write it like '100 * EUR / "
                    "EUR[geo=Total]', 'EUR / 1000', 'EUR running over month' or '<= EUR'."
                )
            if code not in cube.codes[axis]:
                continue
            number = next(
                (n for n in formula.group("factor", "divisor") if n in cube.codes[axis]), ""
            )
            if number:
                raise InputError(
                    f"{number} in the unit {code!r} is also a code of {name!r}; put the code in quotes, or "
                    f"write the number as {number}.0."
                )
            chain = next((c for c in formula.group("value", "base") if c and bare(c) in units), "")
            if chain:
                raise InputError(
                    f"The unit {code!r} of {name!r} is computed from {bare(chain)!r}, which is computed "
                    "itself; write it from what stands behind that."
                )
            own = cube.codes[axis].index(code)
            figures = {at: figure for at, figure in cube.figures.items() if at[axis] == own}
            shown = [
                figure.as_tuple().exponent for figure in figures.values() if figure is not None
            ]
            places = max([0, *(-int(exponent) for exponent in shown)])
            half = Fraction(1, 2 * 10**places) if shown else Fraction(0)
            factor = Fraction(formula["factor"] or 1) / Fraction(formula["divisor"] or 1)
            constant = Fraction(formula["constant"] or 0) * (-1 if formula["sign"] == "-" else 1)
            source = _place(formula["value"], cube, axis)
            base = None if formula["base"] is None else _place(formula["base"], cube, axis)
            other, along = _elsewhere(formula["codes"] or "", cube), formula["along"]
            for at, figure in figures.items():
                run = _steps(bare(along), at, cube, layout) if along else [{}]
                cells = tuple(_flat(cube, at, {axis: source, **step}) for step in run)
                whole = None if base is None else _flat(cube, at, {axis: base, **other})
                yield ComputedFigure(
                    at, figure, cells, whole, factor, constant, formula["end"] or "", half
                )


def _unit_facts(cube: CellCube, layout: Layout) -> Iterator[tuple[list[tuple[int, int]], int, int]]:
    """What numbers in another unit, shares, means and stated ends say of the cells that they are about."""
    unit = 10**cube.decimals
    for one in computed_figures(cube, layout):
        if one.figure is None:
            continue
        middle, cells = Fraction(one.figure) - one.constant, [(cell, 1) for cell in one.cells]
        low, high = middle - one.half, middle + one.half
        if one.end == "<=":
            yield cells, ceil(middle * unit), UNBOUNDED
        elif one.end == ">=":
            yield cells, -UNBOUNDED, floor(middle * unit)
        elif one.whole is None:
            yield cells, ceil(low / one.factor * unit), floor(high / one.factor * unit)
        else:
            yield from _share(cube, one.cells[0], one.whole, one.factor, low, high)


def _steps(name: str, at: tuple[int, ...], cube: CellCube, layout: Layout) -> list[dict[int, int]]:
    """The codes of a variable up to one of them, in the order of the file and without those that are sums."""
    if name not in cube.names:
        raise InputError(f"Sums run over a variable; {choices(name, cube.names)}.")
    axis = cube.names.index(name)
    roles = layout.dimensions.get(name, CodeRoles())
    sums = {*roles.totals, *roles.differences, *roles.subsets, *roles.same, *roles.units}
    if cube.codes[axis][at[axis]] in sums:
        raise NotJudgedError(
            f"A running sum at {cube.codes[axis][at[axis]]!r} of {name!r}, which is a sum itself, is not "
            "judged; leave the figure out."
        )
    return [{axis: i} for i in range(at[axis] + 1) if cube.codes[axis][i] not in sums]


def _share(
    cube: CellCube, target: int, whole: int, factor: Fraction, low: Fraction, high: Fraction
) -> Iterator[tuple[list[tuple[int, int]], int, int]]:
    if whole == target:
        return
    if cube.signed and not (cube.known.flat[whole] and cube.value.flat[whole] > 0):
        raise NotJudgedError(
            f"A share of {cube.name_of(whole)}, which can be negative, is not judged; leave the figure out."
        )
    for end, ends in ((low, (0, UNBOUNDED)), (high, (-UNBOUNDED, 0))):
        times = lcm(factor.denominator, end.denominator)
        yield [(target, int(factor * times)), (whole, -int(end * times))], *ends


def _flat(cube: CellCube, at: tuple[int, ...], other: Mapping[int, int]) -> int:
    place = tuple(other.get(axis, index) for axis, index in enumerate(at))
    return int(np.ravel_multi_index(place, cube.value.shape))


def _place(text: str, cube: CellCube, axis: int) -> int:
    return cube.codes[axis].index(_code(text, cube.names[axis], cube.codes[axis]))


def _code(text: str, name: str, codes: Sequence[str]) -> str:
    code = bare(text)
    if code not in codes:
        raise InputError(f"{name!r} has no code {code!r}; {choices(code, codes)}.")
    return code


def _elsewhere(text: str, cube: CellCube) -> dict[int, int]:
    """Codes of other variables in brackets, as axes and places."""
    out = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, equals, code = part.partition("=")
        if not equals or name.strip() not in cube.names:
            names = choices(name.strip(), cube.names)
            raise InputError(f"A unit names cells like [geo=Total]; {names}.")
        axis = cube.names.index(name.strip())
        out[axis] = _place(code.strip(), cube, axis)
    return out


def evidence(
    value: Ints, known: Mask, total: int, parts: Sequence[int]
) -> tuple[int, float] | None:
    """In how many fully shown lines a total is the sum of its parts, and by what chance a wrong part would fit.

    ``value`` and ``known`` have a row for each code. A part that stands for another row would have to be
    equal to it in every line, by a chance of one in ``1 + v`` for a number ``v``; zeros and hidden numbers
    show nothing. A line in another unit shows nothing more, nor do digits that all numbers of a line have in
    common. None if a line contradicts the sum.
    """
    rows = [total, *parts]
    full = known[rows].all(axis=0)
    numbers = value[rows][:, full]
    if bool((numbers[0] != numbers[1:].sum(axis=0)).any()):
        return None
    lines = np.unique(numbers // np.maximum(np.gcd.reduce(numbers, axis=0), 1), axis=1)
    fits = min((prod(1 + abs(int(v)) for v in part) for part in lines[1:]), default=1)
    return int(full.sum()), 1 / fits
