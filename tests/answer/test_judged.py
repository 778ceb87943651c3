"""Every table behind an answer keeps the rules: whole answers against a count of the records by hand."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.answer import answer
from lustrum.model import Dataset, TableQuery, Verdict
from lustrum.policy import Policy
from lustrum.publish.records import EngineNumbers
from lustrum.tabulate import FrameEngine, Secret

CODES = {"a": ("1", "2", "3"), "b": ("x", "y"), "year": ("1", "2"), "age": ("u", "v")}
VARIABLES = tuple(CODES)
IMPOSSIBLE = {("3", "y")}
DATASET = Dataset.from_mapping(
    {
        "dataset": {"name": "d"},
        "variables": [
            {"name": name, "codes": list(codes)} | ({"edges": [0, 10, 20]} if name == "age" else {})
            for name, codes in CODES.items()
        ],
        "structural_zeros": [{"reason": "Never.", "where": {"a": ["3"], "b": ["y"]}}],
    }
)
CELLS = [cell for cell in product(*CODES.values()) if (cell[0], cell[1]) not in IMPOSSIBLE]
Selection = dict[str, tuple[str, ...]]


@st.composite
def questions(draw: st.DrawFn) -> tuple[TableQuery, list[tuple[Selection, Selection]]]:
    """A question, and every table that is judged for it: its axes and its filters by code."""
    by = draw(st.sampled_from([("a",), ("a", "b"), ("b", "a")]))
    shown: Selection = {
        name: tuple(draw(st.lists(st.sampled_from(CODES[name]), min_size=1, unique=True)))
        for name in by
    }
    filtered = draw(st.sampled_from([name for name in ("b", "year", "") if name not in by]))
    where: Selection = {filtered: (draw(st.sampled_from(CODES[filtered])),)} if filtered else {}
    statistics = ["count", "median:age"]
    if where.get("year") == ("2",):
        statistics.append("growth:count:year=1")
    statistic = draw(st.sampled_from(statistics))
    wide: Selection = {name: CODES[name] for name in by}
    tables: list[tuple[Selection, Selection]] = [(wide, {}), (wide, where), (shown, where)]
    if statistic == "median:age":
        classes = {"age": CODES["age"]}
        # Without a filter the classes are judged as they are shown.
        tables += [(wide | classes, where)] if where else []
        tables += [(shown | classes, where)]
    elif statistic != "count":
        tables += [(wide, {"year": ("1",)}), (shown, {"year": ("1",)})]
    query = TableQuery.from_mapping(
        {
            "dataset": "d",
            "by": [{"variable": name, "codes": list(codes)} for name, codes in shown.items()],
            "where": {name: list(codes) for name, codes in where.items()},
            "statistics": [statistic],
        }
    )
    return query, tables


def counted(
    people: dict[tuple[str, ...], int], axes: Selection, where: Selection
) -> dict[tuple[str, ...], tuple[int, bool]]:
    """How many people each cell of a table holds, and whether it can hold any."""
    table = {}
    for codes in product(*axes.values()):
        wanted = where | {name: (code,) for name, code in zip(axes, codes, strict=True)}
        held = [
            number
            for cell, number in people.items()
            if all(cell[VARIABLES.index(name)] in some for name, some in wanted.items())
        ]
        table[codes] = sum(held), bool(held)
    return table


def is_sparse(cells: list[tuple[int, bool]], limits: dict[str, Any]) -> Iterator[str]:
    """Which rules about the size of cells some cells break."""
    people, possible = sum(n for n, _ in cells), [n for n, can in cells if can]
    if people < limits["min_mean_cell_size"] * len(cells):
        yield "mean-cell-size"
    small = sum(n <= limits["small_up_to"] for n in possible)
    if possible and small / len(possible) > limits["max_small_share"]:
        yield "small-cells"


@st.composite
def limits_near(draw: st.DrawFn, cells: dict[tuple[str, ...], tuple[int, bool]], at: int) -> Any:
    """Rules of which one is just kept, or just broken, by a table or by one of its areas."""
    area = draw(st.sampled_from(["", *sorted({codes[at] for codes in cells})]))
    own = [cell for codes, cell in cells.items() if area in ("", codes[at])]
    people, possible = sum(n for n, _ in own), [n for n, can in own if can]
    just = draw(st.booleans())
    limits: dict[str, Any] = {"per_area": "a"} if area else {}
    match draw(st.sampled_from(["population", "mean", "small"])):
        case "population":
            limits["min_area_population" if area else "min_population"] = people + just
        case "mean":
            limits["min_mean_cell_size"] = people // len(own) + just
        case "small":
            limits["small_up_to"] = draw(st.sampled_from([2, 3, 6]))
            small = sum(n <= limits["small_up_to"] for n in possible)
            share = small / len(possible) if possible else 0.0
            limits["max_small_share"] = max(0.0, share - 0.01) if just else share
    return USUAL | limits


USUAL = {
    "min_population": 0,
    "min_area_population": 0,
    "min_mean_cell_size": 0.0,
    "max_small_share": 1.0,
    "small_up_to": 5,
}


@settings(max_examples=examples(200, 4000), deadline=None)
@given(questions(), st.data())
def test_each_table_behind_an_answer_keeps_every_rule(
    asked: tuple[TableQuery, list[tuple[Selection, Selection]]], data: st.DataObject
) -> None:
    """Multiples of three stay as they are, so that the records themselves say what the rules must."""
    query, tables = asked
    sizes = data.draw(
        st.lists(st.integers(0, 3).map(lambda n: 3 * n), min_size=len(CELLS), max_size=len(CELLS))
    )
    people = dict(zip(CELLS, sizes, strict=True))
    table = data.draw(st.sampled_from(tables))
    limits = data.draw(limits_near(counted(people, *table), list(table[0]).index("a")))
    rows = [cell for cell, number in people.items() for _ in range(number)]
    columns = {name: [row[i] for row in rows] for i, name in enumerate(VARIABLES)}
    policy = Policy.model_validate(
        {
            "protect": {"method": "random-rounding", "base": 3},
            "risk": {"limit": 1.0},
            "rules": {k: v for k, v in limits.items() if "per_area" in limits or "area" not in k},
        }
    )
    engine = FrameEngine(columns, DATASET, Secret(bytes(32)))
    decision = answer(query, EngineNumbers(engine, policy), policy)

    broken: list[str] = []
    failing: set[str] = set()
    for axes, where in tables:
        cells = counted(people, axes, where)
        if sum(n for n, _ in cells.values()) < limits["min_population"]:
            broken.append("population")
        if "per_area" not in limits:
            broken += is_sparse(list(cells.values()), limits)
        if broken:
            break
        for area in axes["a"] if "per_area" in limits else ():
            of_area = [
                cell for codes, cell in cells.items() if codes[list(axes).index("a")] == area
            ]
            few = sum(n for n, _ in of_area) < limits["min_area_population"]
            failing |= {area} if few or any(is_sparse(of_area, limits)) else set()
    asked_axes = {axis.variable: axis.codes or () for axis in query.by}
    in_table = counted(people, asked_axes, {f.variable: f.codes for f in query.where})
    possible = [n for n, can in in_table.values() if can]
    left = tuple(code for code in asked_axes["a"] if code not in failing)
    if broken:
        assert [reason.rule for reason in decision.reasons] == broken
    elif len(possible) < 2 or not any(possible):
        assert [reason.rule for reason in decision.reasons] == ["too-little"]
    elif not left:
        assert [reason.rule for reason in decision.reasons] == ["areas"]
    else:
        # An area that fails is said to be left out, also where it was not asked for.
        assert [reason.rule for reason in decision.reasons] == ["areas"] * bool(failing)
        shown = {axis.name: axis.codes for axis in decision.release.axes}
        assert shown["a"] == left
    assert decision.released == (not broken and decision.verdict is not Verdict.REFUSAL)
