"""The risk of a series: what overlapping questions about one population give away together.

Questions go from coarse to fine over one base table: margins, merged categories, the table itself, then nested
groups of its categories, whose differences are single cells again. After each question the attacker narrows the
base cells along the sums until nothing moves any more (:func:`lustrum.audit.from_tables`). The page on
risk-utility maps says what ``redrawn``, ``keyed``, ``once`` and ``budget`` are worth; the figure for ``budget``
is that of the whole budget spent on the base table.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from scipy import sparse

from lustrum.audit import PublishedTable, from_tables
from lustrum.audit.belief.posterior import likelihood
from lustrum.audit.knowledge.facts import Knowledge
from lustrum.audit.knowledge.reduce import as_floats, narrowed
from lustrum.model import Category, Channel, InputError, Release, Table, TableAxis
from lustrum.model.arrays import Floats, Indices, Ints, Mask, Sparse, Words
from lustrum.model.channel import ObservedChannel
from lustrum.numeric.arithmetic import exp2, log2
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.abilities import Rehearses, abilities_of
from lustrum.rumap.cases import protected, protects_populations
from lustrum.rumap.grids import MapMethod, labels
from lustrum.rumap.sweep import method_rng
from lustrum.runtime.stop import check_stop
from lustrum.utility import hellinger_utility

if TYPE_CHECKING:
    import pyarrow as pa


How = Literal["keyed", "redrawn", "once", "budget"]

_HOW = ("keyed", "redrawn", "once", "budget")


@dataclass(frozen=True)
class Question:
    """A question about a base table: for each axis that it keeps, groups of the base categories.

    Axes that are left out are summed over; categories in no group are not selected.
    """

    name: str
    groups: Mapping[str, tuple[tuple[int, ...], ...]]


@dataclass(frozen=True)
class Answering:
    """A method and how it answers a series of questions: keyed, redrawn, once, or from a budget."""

    method: MapMethod
    how: How

    def __post_init__(self) -> None:
        if self.how not in _HOW:
            raise InputError(
                f"A series is answered {', '.join(map(repr, _HOW))}, not {self.how!r}."
            )
        if self.how == "keyed" and not abilities_of(self.method).keyed_per_cell:
            raise InputError(
                f"The method {self.method.name!r} does not give the same people the same number in every "
                "table; let it answer 'redrawn' or 'once'."
            )

    @classmethod
    def of(cls, method: MapMethod | Answering) -> Answering:
        """How a method answers by itself: as its kind is meant to be used."""
        if isinstance(method, Answering):
            return method
        if abilities_of(method).keyed_per_cell:
            return cls(method, "keyed")
        if isinstance(method, Rehearses):
            return cls(method, "budget")
        return cls(method, "once" if protects_populations(method) else "redrawn")


@dataclass(frozen=True)
class SeriesPoint:
    """After k questions: the mean certainty about the small base cells, and the utility of the answers."""

    label: str
    how: How
    questions: int
    question: str
    risk: float
    disclosed: float
    utility: float
    draws: int


@dataclass(frozen=True, eq=False)
class SeriesMap:
    """How risk and utility of each method move on with the number of questions."""

    points: tuple[SeriesPoint, ...]
    questions: tuple[Question, ...]

    def __repr__(self) -> str:
        return f"SeriesMap({len(self.questions)} questions, {len(self.points)} points)"

    def of(self, label: str) -> tuple[SeriesPoint, ...]:
        return tuple(p for p in self.points if p.label == label)

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(p.label for p in self.points))

    def to_arrow(self) -> pa.Table:
        """A row for each method and number of questions."""
        import pyarrow as pa

        return pa.Table.from_pylist([vars(p) for p in self.points])

    def to_pandas(self) -> Any:
        return self.to_arrow().to_pandas()


def series(table: Table, k: int = 8) -> tuple[Question, ...]:
    """k overlapping questions about a table: margins, merged categories, the table itself, then nested
    groups of the categories of each axis, and now and then the table again.

    >>> table = Table.from_counts([[1, 2, 3], [4, 5, 6]], names=["area", "faith"])
    >>> [q.name for q in series(table, 5)]
    ['by area', 'by faith', 'faith merged', 'the table', 'area first 2 merged']
    """
    if type(k) is not int or k < 1:
        raise InputError(f"A series has one question or more, not {k!r}.")
    axes = {axis.name: len(axis) for axis in table.axes}
    single = {name: tuple((i,) for i in range(n)) for name, n in axes.items()}
    longest = max(axes, key=lambda name: axes[name])
    questions = [Question(f"by {name}", {name: single[name]}) for name in axes if len(axes) > 1]
    pairs = tuple(tuple(range(i, min(i + 2, axes[longest]))) for i in range(0, axes[longest], 2))
    questions.append(Question(f"{longest} merged", {**single, longest: pairs}))
    questions.append(Question("the table", single))
    size = 2
    while len(questions) < k:
        for name, n in axes.items():
            if size <= n:
                groups = {**single, name: (tuple(range(size)),)}
                questions.append(Question(f"{name} first {size} merged", groups))
        questions.append(Question("the table again", single))
        size += 1
    return tuple(questions[:k])


def series_map(
    table: Table,
    methods: Iterable[MapMethod | Answering],
    questions: Sequence[Question] | int = 8,
    *,
    up_to: int = 5,
    replications: int = 3,
    seed: int = 0,
) -> SeriesMap:
    """The risk of each method after 1, 2, ... questions about one population.

    ``questions`` are given, or their number. Judged are the cells of the table whose count lies between 1
    and ``up_to``: the mean of ``2**-H`` over them, as in
    :class:`~lustrum.risk.cell_certainty.CellCertainty`, and the share that is known exactly.

    >>> from lustrum.rumap import grid
    >>> table = Table.from_counts([[1, 2, 9], [14, 3, 0], [5, 8, 1]])
    >>> found = series_map(table, grid("random-rounding", base=3), 4)
    >>> [p.questions for p in found.points], found.points[0].risk <= found.points[-1].risk
    ([1, 2, 3, 4], True)
    """
    if not table.inner.all():
        raise InputError("A series is asked of a table without totals; the questions make them.")
    asked = series(table, questions) if isinstance(questions, int) else tuple(questions)
    answering = [Answering.of(m) for m in methods]
    if not answering:
        raise InputError("A series needs one method or more.")
    # One method may answer in several ways; it has one label.
    specs = list({repr(a.method): a.method for a in answering}.values())
    named = dict(zip(map(repr, specs), labels(specs), strict=True))
    names = [f"{named[repr(a.method)]}, {a.how}" for a in answering]
    judged = np.flatnonzero((table.values > 0) & (table.values <= up_to))
    points: list[SeriesPoint] = []
    for name, approach in zip(names, answering, strict=True):
        figures = []
        for replication in range(replications):
            check_stop()
            figures.append(_answered(table, approach, asked, judged, seed, replication))
        mean = np.mean(figures, axis=0)
        points += [
            SeriesPoint(name, approach.how, k, q.name, risk, disclosed, utility, replications)
            for k, (q, (risk, disclosed, utility)) in enumerate(
                zip(asked, mean.tolist(), strict=True), start=1
            )
        ]
    return SeriesMap(tuple(points), asked)


def _answered(
    base: Table,
    approach: Answering,
    questions: Sequence[Question],
    judged: Indices,
    seed: int,
    replication: int,
) -> list[tuple[float, float, float]]:
    """Risk, share disclosed and utility after each question, in one draw."""
    rng = method_rng(approach.method, seed, replication)
    tables = [_table(base, question) for question in questions]
    if approach.how == "budget":
        return _budgeted(base, approach.method, tables, judged, rng)
    if approach.how == "once":
        whole = protected(approach.method, base, rng)
        releases = [_added_up(base, whole, q, t) for q, t in zip(questions, tables, strict=True)]
        looks_at_base: list[Release] = [whole]
    elif approach.how == "keyed":
        keys = _keys(base, seed, replication)
        keyed = replace(base, keys=keys)
        releases = [approach.method.apply(_table(keyed, question)) for question in questions]
        looks_at_base = []
    else:
        releases = [protected(approach.method, table, rng) for table in tables]
        looks_at_base = []
    known = from_tables(
        [PublishedTable.hidden(base.axes), *(PublishedTable.of_release(r) for r in releases)]
    )
    spans = [known.table(i + 1) for i in range(len(releases))]
    figures = []
    utilities: list[float] = []
    rests: list[Sparse] = []
    for k in range(1, len(questions) + 1):
        utilities.append(hellinger_utility(tables[k - 1].values, releases[k - 1].numbers))
        part = _up_to(known, spans[k - 1].stop, int(spans[-1].stop))
        if approach.how == "keyed":
            rests.append(same_people(base.axes, releases[:k]))
            part = with_someone_in(part, sparse.vstack(rests, format="csr"))
        low, high = narrowed(part)
        looks = looks_at_base or _looks(base, questions[:k], releases[:k], approach.how)
        asked_base = approach.how != "once" or any(_is_base(base, q) for q in questions[:k])
        certainty = base_certainty(
            base, judged, as_floats(low), as_floats(high), looks if asked_base else []
        )
        figures.append((_mean(certainty), _mean(certainty >= 1 - 1e-12), float(np.mean(utilities))))
    return figures


def _mean(values: npt.NDArray[Any]) -> float:
    return float(values.mean()) if values.size else 0.0


def _up_to(known: Knowledge, stop: int, end: int) -> Knowledge:
    """What is known before the answers from ``stop`` on are published: their cells are open."""
    low, high = known.low.copy(), known.high.copy()
    low[stop:end], high[stop:end] = 0, UNBOUNDED
    return replace(known, low=low, high=high)


def _table(base: Table, question: Question) -> Table:
    values: npt.NDArray[Any] = base.values
    keys: npt.NDArray[Any] | None = base.keys
    axes = []
    for position, axis in reversed(list(enumerate(base.axes))):
        groups = question.groups.get(axis.name)
        if groups is None:
            values = values.sum(axis=position)
            keys = None if keys is None else keys.sum(axis=position, dtype=np.uint64)
            continue
        values = _grouped(values, groups, position)
        keys = None if keys is None else _grouped(keys, groups, position)
        axes.append(replace(axis, categories=tuple(_merged(axis, g) for g in groups)))
    ordered_axes = tuple(reversed(axes))
    return Table(
        axes=ordered_axes,
        values=np.asarray(values),
        keys=None if keys is None else np.asarray(keys),
    )


def _grouped(
    array: npt.NDArray[Any], groups: Sequence[tuple[int, ...]], axis: int
) -> npt.NDArray[Any]:
    parts = [array.take(list(g), axis=axis).sum(axis=axis, dtype=array.dtype) for g in groups]
    return np.stack(parts, axis=axis)


def _merged(axis: TableAxis, group: Sequence[int]) -> Category:
    if len(group) == 1:
        return axis.categories[group[0]]
    categories = [axis.categories[i] for i in group]
    members = tuple(sorted(m for c in categories for m in c.members))
    name = f"{categories[0].code} to {categories[-1].code}"
    return Category(name, name, members)


def _keys(base: Table, seed: int, replication: int) -> Words:
    """The record keys of the cells: the table's own in the first draw, otherwise drawn, 0 where nobody is."""
    if base.keys is not None and replication == 0:
        return base.keys
    digest = hashlib.sha256(f"keys {seed} {replication}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest, "big"))
    drawn = rng.integers(0, 2**64, size=base.shape, dtype=np.uint64)
    return np.where(base.values > 0, drawn, np.uint64(0))


def _added_up(base: Table, whole: Release, question: Question, table: Table) -> Release:
    if not whole.shown.all():
        raise InputError("A release with suppressed cells cannot answer a series once and for all.")

    def counted(values: Ints) -> Ints:
        return _table(replace(base, values=values, keys=None, kind="magnitude"), question).values

    low = np.zeros(table.shape, dtype=np.int64)
    high = np.full(table.shape, UNBOUNDED, dtype=np.int64)
    if whole.least is not None and whole.most is not None and not (whole.most >= UNBOUNDED).any():
        low, high = counted(whole.least), counted(whole.most)
    return replace(
        whole,
        axes=table.axes,
        numbers=counted(np.maximum(whole.numbers, 0)),
        status=np.full(table.shape, whole.status.flat[0]),
        least=low,
        most=high,
    )


def _is_base(base: Table, question: Question) -> bool:
    single = {axis.name: tuple((i,) for i in range(len(axis))) for axis in base.axes}
    return dict(question.groups) == single


def _looks(
    base: Table, questions: Sequence[Question], releases: Sequence[Release], how: How
) -> list[Release]:
    """The answers that show the base cells themselves; keyed ones say the same each time."""
    looks = [r for q, r in zip(questions, releases, strict=True) if _is_base(base, q)]
    return looks[:1] if how == "keyed" else looks


def _budgeted(
    base: Table,
    method: MapMethod,
    tables: Sequence[Table],
    judged: Indices,
    rng: np.random.Generator,
) -> list[tuple[float, float, float]]:
    """The ceiling of the risk, and the utility where k questions share the budget."""
    whole = protected(method, base, rng)
    infinite = np.full(base.values.size, np.inf)
    ceiling = base_certainty(base, judged, np.zeros(base.values.size), infinite, [whole])
    risk, disclosed = _mean(ceiling), _mean(ceiling >= 1 - 1e-12)
    figures = []
    for k in range(1, len(tables) + 1):
        share = method.split(k)
        releases = [protected(share, table, rng) for table in tables[:k]]
        utility = np.mean(
            [
                hellinger_utility(t.values, np.maximum(r.numbers, 0))
                for t, r in zip(tables[:k], releases, strict=True)
            ]
        )
        figures.append((risk, disclosed, float(utility)))
    return figures


_PAIRS = 4_000_000
"""Pairs of cells that are compared at most for two tables."""
_VALUES = 4096
"""Most values of one cell that are weighed one by one."""


def base_certainty(
    base: Table, judged: Indices, low: Floats, high: Floats, looks: Sequence[Release]
) -> Floats:
    """``2**-H`` of each judged cell, from its bounds and all answers that show it."""
    out = np.zeros(judged.size)
    channels = [(release, _channel_of(base, release)) for release in looks if release.shown.all()]
    for index, cell in enumerate(judged.tolist()):
        least, most = low[cell], high[cell]
        values = [int(release.numbers.flat[cell]) for release, _ in channels]
        if not np.isfinite(most):
            if not values:
                continue
            most = max(values) + _VALUES // 4
        if most - least >= _VALUES and not values:
            out[index] = 1.0 / (most - least + 1)
            continue
        candidates = np.arange(int(least), int(min(most, least + _VALUES)) + 1)
        weights = np.ones(candidates.size)
        for value, (_, channel) in zip(values, channels, strict=True):
            weights = weights * likelihood(value, channel, candidates)
        total = weights.sum()
        if total <= 0:
            weights, total = np.ones(candidates.size), float(candidates.size)
        p = weights[weights > 0] / total
        out[index] = exp2((p * log2(p)).sum())
    return out


def _channel_of(base: Table, release: Release) -> Channel:
    return release.channel or ObservedChannel(base.values, release.numbers)


def same_people(base: Sequence[TableAxis], releases: Sequence[Release]) -> Sparse:
    """The same-people rule for the last of some keyed releases beside all before it.

    With keys the same people get the same number. So where a cell lies inside another and shows a
    different number, at least one person is in the rest: each row marks the base cells of such a rest.
    """
    last = releases[-1]
    membership = _membership(last.axes, base)
    rows = []
    for other in releases[:-1]:
        if last.numbers.size * other.numbers.size > _PAIRS:
            continue
        theirs = _membership(other.axes, base)
        for part, whole, in_part, in_whole in (
            (last, other, membership, theirs),
            (other, last, theirs, membership),
        ):
            inside = _nested(part.axes, whole.axes)
            differ = part.numbers.ravel()[:, None] != whole.numbers.ravel()[None, :]
            smaller, larger = np.nonzero(inside & differ)
            rows.append(in_whole[larger] - in_part[smaller])
    cells = int(np.prod([len(axis) for axis in base]))
    if not rows:
        return sparse.csr_array((0, cells), dtype=np.int64)
    return sparse.csr_array(sparse.vstack(rows, format="csr"))


def with_someone_in(known: Knowledge, rests: Sparse) -> Knowledge:
    """The same knowledge, and that each of these groups of the first cells holds somebody."""
    count = rests.shape[0]
    if not count:
        return known
    wide = sparse.csr_array((rests.data, rests.indices, rests.indptr), shape=(count, len(known)))
    return replace(
        known,
        matrix=sparse.vstack([known.matrix, wide], format="csr"),
        fact_low=np.concatenate([known.fact_low, np.ones(count, np.int64)]),
        fact_high=np.concatenate([known.fact_high, np.full(count, UNBOUNDED, np.int64)]),
    )


def _membership(axes: Sequence[TableAxis], base: Sequence[TableAxis]) -> Sparse:
    """Which base cells each cell of a table holds, as rows of 0 and 1."""
    by = {axis.name: axis for axis in axes}
    membership = sparse.csr_array(np.ones((1, 1), dtype=np.int64))
    for axis in base:
        table_axis = by.get(axis.name)
        if table_axis is None:
            held = np.ones((1, len(axis)), dtype=np.int64)
        else:
            held = np.array(
                [
                    [c.member_set <= d.member_set for c in axis.categories]
                    for d in table_axis.categories
                ],
                dtype=np.int64,
            )
        membership = sparse.csr_array(sparse.kron(membership, held, format="csr"))
    return membership


def _nested(axes: Sequence[TableAxis], others: Sequence[TableAxis]) -> Mask:
    """Which cells of the first table lie inside which of the second, and are not the same cell."""
    by = {axis.name: axis for axis in others}
    names = [axis.name for axis in axes]
    shape = [len(axis) for axis in axes]
    size = [len(axis) for axis in others]
    inside = np.ones((*shape, *size), dtype=np.bool_)
    same = np.ones((*shape, *size), dtype=np.bool_)
    for position, axis in enumerate(axes):
        if axis.name not in by:
            same[:] = False  # the other sums over an axis that this one splits
            continue
        other_position = len(names) + [a.name for a in others].index(axis.name)
        categories, other = axis.categories, by[axis.name].categories
        within = np.array([[c.member_set <= d.member_set for d in other] for c in categories])
        equal = np.array([[c.member_set == d.member_set for d in other] for c in categories])
        view = [1] * inside.ndim
        view[position], view[other_position] = within.shape
        inside &= within.reshape(view)
        same &= equal.reshape(view)
    if any(axis.name not in names for axis in others):
        inside[:] = False  # this one sums over an axis that the other splits
    cells = int(np.prod(shape)), int(np.prod(size))
    return np.asarray((inside & ~same).reshape(cells))
