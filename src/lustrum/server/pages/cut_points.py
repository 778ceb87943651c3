"""Own groups of a variable that counts something, such as age, from the points where they are cut.

::

    cut.age=0, 15, 65           0 to 14, 15 to 64, 65+
    cut.age=15, 65&ends.age=on  0 to 14, every class from 15 to 64, 65+

The page turns them into groups of the question, so that addresses, files and the API know groups alone.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from itertools import pairwise

from lustrum.model import Axis, Dataset, Group, QueryError, TableQuery, Variable
from lustrum.model.text import say
from lustrum.server.http.languages import current

CUT, ENDS = "cut.", "ends."
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
Pairs = list[tuple[str, str]]


def split(pairs: Iterable[tuple[str, str]]) -> tuple[dict[str, str], set[str], Pairs]:
    """The cut points by variable, the variables of which only the ends are joined, and the other parameters."""
    cuts: dict[str, str] = {}
    ends: set[str] = set()
    rest: Pairs = []
    for name, value in pairs:
        if name.startswith(CUT):
            if value.strip():
                cuts[name.removeprefix(CUT)] = value
        elif name.startswith(ENDS):
            ends.add(name.removeprefix(ENDS))
        else:
            rest.append((name, value))
    return cuts, ends, rest


def example(variable: Variable) -> str:
    """Points at which a variable could be cut; nothing where its codes are no classes of a number."""
    begins = variable.edges[: len(variable.codes)]
    if len(begins) < 3:
        return ""
    some = (begins[0], begins[len(begins) // 3], begins[2 * len(begins) // 3])
    return ", ".join(f"{point:g}" for point in some)


def cut_all(
    query: TableQuery, dataset: Dataset, cuts: Mapping[str, str], ends: Collection[str]
) -> TableQuery:
    """The question with each of these variables cut into own groups, which are judged as any own groups."""
    for name, text in cuts.items():
        query = cut(query, dataset.variable(name), text, ends=name in ends)
    return query


def cut(query: TableQuery, variable: Variable, text: str, *, ends: bool) -> TableQuery:
    """The question with a variable of the table cut at some points; a mistake is one sentence."""
    if variable.name not in {axis.variable for axis in query.by}:
        raise QueryError(
            say("{variable!r} is not in the table, so it cannot be cut.", variable=variable.name)
        )
    cut_groups = tuple(groups(variable, text, ends=ends))
    return replace(
        query,
        by=tuple(
            Axis(axis.variable, groups=cut_groups, total=axis.total)
            if axis.variable == variable.name
            else axis
            for axis in query.by
        ),
    )


def groups(variable: Variable, text: str, *, ends: bool = False) -> list[Group]:
    """The groups between cut points; with ``ends``, only what lies outside them is joined."""
    points = _points(variable, text)
    begins = list(variable.edges[: len(variable.codes)])
    if ends and len(points) > 2:
        raise QueryError(say("To join the ends only, give one point or two."))
    cut_groups: list[Group] = []
    bounds: list[float | None] = [None, *points, None]
    for low, high in pairwise(bounds):
        inside = [
            code
            for code, begin in zip(variable.codes, begins, strict=True)
            if (low is None or begin >= low) and (high is None or begin < high)
        ]
        # One point joins what lies above it, two points what lies outside them.
        single = ends and (low is None if len(points) == 1 else None not in (low, high))
        if single:
            cut_groups += [_alone(variable, code) for code in inside]
        elif inside:
            cut_groups.append(Group(_label(variable, low, high), tuple(inside)))
    return cut_groups


def _alone(variable: Variable, code: str) -> Group:
    return Group(str(current().say(variable.category(code).label)), (code,))


def _points(variable: Variable, text: str) -> list[float]:
    if not variable.edges:
        raise QueryError(
            say(
                "The categories of {variable!r} are no classes of a number, so they cannot be cut.",
                variable=variable.name,
            )
        )
    words = [word for word in re.split(r"[,;\s]+", text.strip()) if word]
    wrong = next((word for word in words if not _NUMBER.fullmatch(word)), None)
    if wrong is not None or not words:
        raise QueryError(
            say("Cut points are numbers, such as 0, 15, 65, not {given!r}.", given=wrong or text)
        )
    points = sorted({float(word) for word in words})
    begins = variable.edges[: len(variable.codes)]
    for point in points:
        if point not in begins:
            near = sorted(begins, key=lambda begin: (abs(begin - point), begin))[:2]
            raise QueryError(
                say(
                    "No category of {variable!r} begins at {point}; cut at {first} or {second} instead.",
                    variable=variable.name,
                    point=_written(point),
                    first=_written(near[0]),
                    second=_written(near[-1]),
                )
            )
    # What begins with the first category cuts nothing off.
    cut_points = [point for point in points if point > begins[0]]
    if not cut_points:
        raise QueryError(
            say(
                "Give a cut point above {first}, where the first category begins.",
                first=_written(begins[0]),
            )
        )
    return cut_points


def _label(variable: Variable, low: float | None, high: float | None) -> str:
    """The name of a group in the language of the page."""
    whole = all(edge == int(edge) for edge in variable.edges)
    closed = variable.edges[-1] if len(variable.edges) > len(variable.codes) else None
    first = variable.edges[0]
    if low is None and first != 0:
        said = f"<{_written(high or 0)}"
    else:
        low = first if low is None else low
        top = closed if high is None else high
        if top is None:
            said = f"{_written(low)}+"
        elif whole:
            said = say("{low} to {high}", low=_written(low), high=_written(top - 1))
        else:
            said = f"[{_written(low)}, {_written(top)})"
    text = str(current().say(said))
    return text[:1].upper() + text[1:]


def _written(value: float) -> str:
    return str(int(value)) if value == int(value) else str(value)
