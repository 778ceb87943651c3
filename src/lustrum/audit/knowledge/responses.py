"""Tables of several responses that are tied to each other: turnover is domestic plus export turnover.

Such a relation holds for every group of units, so it ties every cell of one response to the same cell of
the others, also where one of them was never published. Each response is known like the tables of one
population (:func:`~lustrum.audit.knowledge.published.from_tables`); the relations are additional facts.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from scipy import sparse

from lustrum.audit.knowledge.facts import Knowledge
from lustrum.audit.knowledge.published import PublishedTable, from_tables, hidden_cube
from lustrum.model import InputError, Variable
from lustrum.model.errors import check_known
from lustrum.numeric.structure import UNBOUNDED, TableLayout

RelationLike: TypeAlias = (
    "Relation | str | tuple[str, Sequence[str]] | tuple[Mapping[str, int], int]"
)

_SIGNS = {"=": (0, 0), "==": (0, 0), ">=": (0, UNBOUNDED), "<=": (-UNBOUNDED, 0)}
# A name with blanks or signs, or of digits, stands in quotes or backquotes.
_TERM = re.compile(
    r"""\s*([+-]?)\s*(?:(\d+)\s*\*?\s*)?([^\W\d][\w.-]*|'[^']+'|"[^"]+"|`[^`]+`)\s*"""
)


@dataclass(frozen=True)
class Relation:
    """A weighted sum of responses that is 0, or at least 0, or at most 0, in every cell.

    >>> Relation.of("turnover = domestic + export").weights
    {'turnover': 1, 'domestic': -1, 'export': -1}
    >>> Relation.of(("turnover", ("domestic", "export"))) == Relation.of("turnover = domestic + export")
    True
    """

    weights: Mapping[str, int]
    low: int = 0
    high: int = 0

    def __post_init__(self) -> None:
        if any(w != int(w) or w == 0 for w in self.weights.values()) or not self.weights:
            raise InputError("The weights of a relation are whole numbers other than 0.")
        if (self.low, self.high) not in _SIGNS.values():
            raise InputError(
                "A relation holds for every group of units, so it is '= 0', '>= 0' or '<= 0'."
            )

    @classmethod
    def of(cls, given: RelationLike) -> Relation:
        """A relation from words, from a total and its parts, or from weights and 0."""
        if isinstance(given, Relation):
            return given
        if isinstance(given, str):
            return cls._parsed(given)
        first, second = given
        if isinstance(first, str) and not isinstance(second, int):
            weights = {first: 1}
            for part in second:
                weights[part] = weights.get(part, 0) - 1
            return cls(weights)
        if isinstance(first, Mapping) and second == 0:
            return cls(dict(first))
        raise InputError(
            "A relation is a total with its parts, weights with 0, or words such as 'a = b + c'."
        )

    @classmethod
    def _parsed(cls, relation: str) -> Relation:
        parts = re.split(r"(<=|>=|==|=)", relation)
        if len(parts) != 3:
            raise InputError(f"The relation {relation!r} needs one '=', '<=' or '>='.")
        weights: dict[str, int] = {}
        for text, side in ((parts[0], 1), (parts[2], -1)):
            for sign, times, name in _terms(text, relation):
                weight = side * (-1 if sign == "-" else 1) * int(times or 1)
                weights[name] = weights.get(name, 0) + weight
        low, high = _SIGNS[parts[1]]
        return cls({name: weight for name, weight in weights.items() if weight}, low, high)


def _terms(text: str, relation: str) -> Iterator[tuple[str, str, str]]:
    if text.strip() == "0":
        return
    position = 0
    while position < len(text) or position == 0:
        match = _TERM.match(text, position)
        if match is None or (position > 0 and not match[1]):
            raise InputError(
                f"The relation {relation!r} cannot be read; write it like 'turnover = domestic + export'."
            )
        yield match[1], match[2], match[3].strip("'\"`")
        position = match.end()


@dataclass(frozen=True, eq=False)
class Related:
    """What tables of several responses reveal together, and the places of each table's cells.

    Every response has the cells of all ``layouts``, one after the other; ``spans`` are those of its own tables.
    """

    known: Knowledge
    spans: Mapping[str, tuple[slice, ...]]
    layouts: tuple[TableLayout, ...] = ()


def from_responses(
    tables: Mapping[str, PublishedTable | Sequence[PublishedTable]],
    relations: Iterable[RelationLike] = (),
    *,
    low: int | Mapping[str, int] = 0,
) -> Knowledge:
    """What tables of several responses reveal together; names of cells begin with their response.

    The tables of different responses may have different variables and different suppressed cells.
    Cells that no table of a response shows are not below ``low``, for all responses or by response;
    give ``-UNBOUNDED`` for one that may be negative.

    >>> from lustrum.model import TableAxis
    >>> act = TableAxis.plain("act", ["a", "b"])
    >>> known = from_responses(
    ...     {
    ...         "turnover": PublishedTable.exact([act], [9, 5]),
    ...         "domestic": PublishedTable.exact([act], [6, 0], [False, True]),
    ...         "export": PublishedTable.hidden([act]),
    ...     },
    ...     ["turnover = domestic + export"],
    ... )
    >>> from lustrum.audit.bounding.compute import bounds
    >>> found = bounds(known, ["export: act=a", "export: act=b"])
    >>> found.low.tolist(), found.high.tolist()
    ([3.0, 0.0], [3.0, 5.0])
    """
    return related(tables, relations, low=low).known


def related(
    tables: Mapping[str, PublishedTable | Sequence[PublishedTable]],
    relations: Iterable[RelationLike] = (),
    *,
    low: int | Mapping[str, int] = 0,
    variables: Iterable[Variable] = (),
) -> Related:
    """The same as :func:`from_responses`, with the places of all tables.

    ``variables`` give the number of codes, which matters where a filter leaves out people.
    """
    seen = {
        name: [published] if isinstance(published, PublishedTable) else list(published)
        for name, published in tables.items()
    }
    every = [table for published in seen.values() for table in published]
    if not every:
        raise InputError("Knowledge needs at least one table.")
    if len({table.decimals for table in every}) > 1:
        raise InputError("The tables have different decimals; give all of them in the same unit.")
    layouts = {layout_key(table.layout): table.layout for table in every}
    described = tuple(variables)
    cube = hidden_cube(list(layouts.values()), described)
    if cube is not None:
        layouts.setdefault(layout_key(cube), cube)
    parts = {}
    for name, published in seen.items():
        least = low if isinstance(low, int) else low.get(name, 0)
        filled = _filled(layouts, published, least, every[0].decimals)
        parts[name] = from_tables(filled, variables=described)
    known = _joined(parts, [Relation.of(r) for r in relations])
    places = {key: i for i, key in enumerate(layouts)}
    spans = {}
    for number, (name, published) in enumerate(seen.items()):
        start = number * len(parts[name])
        inside = [parts[name].table(places[layout_key(table.layout)]) for table in published]
        spans[name] = tuple(slice(start + s.start, start + s.stop) for s in inside)
    return Related(known, spans, tuple(layouts.values()))


def layout_key(layout: TableLayout) -> tuple[object, ...]:
    """A key that is equal for layouts with the same groups in the same order."""
    axes = (
        tuple((a.name, tuple(c.members for c in a.categories)) for a in part)
        for part in (layout.axes, layout.filters)
    )
    return tuple(axes)


def _filled(
    layouts: Mapping[tuple[object, ...], TableLayout],
    published: Sequence[PublishedTable],
    low: int,
    decimals: int,
) -> list[PublishedTable]:
    """A table for every layout: the published one, or a hidden one."""
    out = {
        key: PublishedTable.hidden(layout, low=low, decimals=decimals)
        for key, layout in layouts.items()
    }
    shown: set[tuple[object, ...]] = set()
    for table in published:
        key = layout_key(table.layout)
        if key in shown:
            table = replace(
                table,
                low=np.maximum(table.low, out[key].low),
                high=np.minimum(table.high, out[key].high),
            )
        out[key] = table
        shown.add(key)
    return list(out.values())


def _joined(parts: Mapping[str, Knowledge], relations: Sequence[Relation]) -> Knowledge:
    """All responses side by side, and the relations between their cells."""
    names, known = list(parts), list(parts.values())
    cells = len(known[0])
    blocks, lows, highs = [sparse.block_diag([k.matrix for k in known], format="csr")], [], []
    for relation in relations:
        weights = np.zeros((1, len(names)), dtype=np.int64)
        check_known(relation.weights, names, "There is no response")
        for name, weight in relation.weights.items():
            weights[0, names.index(name)] = weight
        same = sparse.eye_array(cells, dtype=np.int64, format="csr")
        blocks.append(sparse.kron(sparse.csr_array(weights), same, format="csr"))
        lows.append(np.full(cells, relation.low, dtype=np.int64))
        highs.append(np.full(cells, relation.high, dtype=np.int64))
    return Knowledge(
        names=_Prefixed(tuple(names), tuple(k.names for k in known)),
        low=np.concatenate([k.low for k in known]),
        high=np.concatenate([k.high for k in known]),
        matrix=sparse.csr_array(sparse.vstack(blocks, format="csr")),
        fact_low=np.concatenate([*(k.fact_low for k in known), *lows]),
        fact_high=np.concatenate([*(k.fact_high for k in known), *highs]),
        decimals=known[0].decimals,
    )


@dataclass(frozen=True, eq=False)
class _Prefixed(Sequence[str]):
    """Names of cells with the name of their response in front, made on demand."""

    responses: tuple[str, ...]
    names: tuple[Sequence[str], ...]

    def __len__(self) -> int:
        return sum(map(len, self.names))

    def __getitem__(self, index: int) -> str:  # type: ignore[override]
        response, cell = divmod(index, len(self.names[0]))
        return f"{self.responses[response]}: {self.names[response][cell]}"

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))
