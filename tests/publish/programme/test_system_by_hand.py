"""Tables of a tiny register as one system: what stands in it, which values, and what follows from what."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from lustrum.audit import bounds
from lustrum.model import InputError
from lustrum.numeric.structure import UNBOUNDED
from lustrum.protect.method import kept_cells
from lustrum.protect.suppression import Suppression
from lustrum.publish.programme import system as system_module
from lustrum.publish.programme.audit import Protected, least_value, public_knowledge, spans_of

# The problem before cells are left out of it, and releases that hide any places.
from lustrum.publish.programme.suppress import _problem, _release, without_cube
from lustrum.publish.programme.system import named_cells
from publish.programme.tiny import BY_BOTH, FIRMS, PAY, PERCENT, added_up, judged, systems, table

AREA = 'by = [{variable = "area", total = true}]'
ANSWERED = 'by = ["area"]\nwhere = {job = ["a", "b"]}'
WORKERS = 'by = ["area", "sex"]\nwhere = {job = ["a", "b"]}'
SEX = 'by = ["area", "sex"]\ntotals = true'
# One job of three: those of the others are in every total.
CHOSEN = 'by = ["area", {variable = "job", codes = ["a"]}]'


def check_values(system: Any, rows: Any = FIRMS) -> None:
    """Every cell of every layout of every response is the sum of its records, in the system's units."""
    scale = 10**system.decimals
    wanted = [
        value
        for response in system.responses
        for layout in system.layouts
        for value in added_up(rows, layout, response, 1 if response == "count" else scale)
    ]
    assert system.values.tolist() == wanted


def test_cells_named_by_codes_are_those_and_no_others() -> None:
    held = 'frozen = [{area = "n", job = "b"}]\nnever = [{job = "c"}, {area = "s", job = "a"}]'
    _, (system,) = systems(table("t", f"{BY_BOTH}\n{held}"))
    (part,) = system.parts
    codes = [axis.codes for axis in part.true.axes]
    frozen = [
        cell for cell, hit in zip(product(*codes), named_cells(part, "frozen"), strict=True) if hit
    ]
    never = [
        cell for cell, hit in zip(product(*codes), named_cells(part, "never"), strict=True) if hit
    ]
    assert frozen == [("n", "b")]
    assert never == [("n", "c"), ("s", "a"), ("s", "c"), ("_T", "c")]
    _, (other,) = systems(table("t", BY_BOTH + '\nnever = [{job = "z"}]'))
    with pytest.raises(InputError, match=r"^Table 't': 'never' names the code 'z' of 'job'"):
        named_cells(other.parts[0], "never")


@pytest.mark.parametrize(
    ("measures", "one", "groups"),
    [
        (["count"], "", [("count",)]),
        (["pay", "count"], "", [("pay",), ("count",)]),
        (["pay", "base"], PAY, [("pay", "base", "tips")]),
        (["pay", "count"], PAY, [("pay", "base", "tips"), ("count",)]),
        # A relation between measures that no table shows says nothing here.
        (["count"], PAY, [("count",)]),
    ],
)
def test_responses_that_relations_tie_make_one_system(
    measures: list[str], one: str, groups: list[tuple[str, ...]]
) -> None:
    own, found = systems(table("t", AREA, *measures), one=one)
    assert [system.responses for system in found] == groups
    for system in found:
        assert system.relations == (own.relations if len(system.responses) > 1 else ())
        check_values(system)
        assert system.counts is (system.responses == ("count",))


def test_two_measures_that_are_the_same_are_tied() -> None:
    rows = [dict(row, tips=0, pay=row["base"]) for row in FIRMS]
    same = 'relations = ["pay = base"]'
    _, (system,) = systems(table("t", AREA, "pay", "base"), one=same, rows=rows)
    assert system.relations == ("pay = base",)
    releases = hidden_releases(system, {"t, base": {0, 1}})
    found = bounds(public_knowledge(system, releases).known, [0, 1, 2, 3, 4, 5], workers=1)
    assert found.low.tolist() == found.high.tolist() == system.values.tolist()


def test_parts_stand_by_their_measures() -> None:
    _, (system,) = systems(table("t", AREA, "pay", "tips"), table("u", SEX, "pay"), one=PAY)
    assert [part.name for part in system.parts if part.shown] == ["t, pay", "u, pay", "t, tips"]
    assert [part.response for part in system.parts] == ["pay"] * 2 + ["tips"] * 2 + ["base"] * 2


def test_a_chain_of_relations_ties_its_ends() -> None:
    tied = system_module._tied
    relation = system_module.Relation.of
    names = ["a", "b", "c", "d", "e", "f"]
    assert tied(names, [relation("b = c"), relation("a = b"), relation("e = f")]) == [
        ("a", "b", "c"),
        ("d",),
        ("e", "f"),
    ]
    assert tied(names, []) == [(name,) for name in names]
    assert tied(["a", "b", "c"], [relation("c = a"), relation("b = a")]) == [("a", "b", "c")]


def test_units_of_a_system_are_the_finest_of_its_measures() -> None:
    _, (system,) = systems(table("t", AREA, "pay", "tips"), one=PAY)
    assert system.decimals == 1
    assert {part.response: system.scale(part) for part in system.parts} == {
        "pay": 1,
        "base": 1,
        "tips": 10,
    }
    check_values(system)
    # The base is not shown, and follows from what is.
    assert [(part.response, part.shown, part.name) for part in system.parts] == [
        ("pay", True, "t, pay"),
        ("tips", True, "t, tips"),
        ("base", False, "base"),
    ]
    assert repr(system) == "ProgrammeSystem(pay, tips, base: 3 tables)"


@pytest.mark.parametrize("unshown", ["differences", "nothing", "all"])
def test_those_whom_a_filter_leaves_out_are_judged_unless_nothing_is_asked(unshown: str) -> None:
    tables = table("all", AREA), table("some", ANSWERED)
    _, (system,) = systems(*tables, one=f'unshown = "{unshown}"')
    hidden = [part for part in system.parts if not part.shown]
    check_values(system)
    if unshown == "nothing":
        assert hidden == []
        return
    (rest,) = hidden
    assert not named_cells(rest, "never").any()
    assert [axis.name for axis in rest.layout.axes] == ["area", "job"]
    members = [[c.members for c in axis.categories] for axis in rest.layout.axes]
    assert members[0] == [(0,), (1,)]
    assert sorted(members[1]) == [(0, 1), (2,)]
    assert rest.true.values.ravel().tolist() == added_up(FIRMS, rest.layout, "count")
    assert rest.true.contributors is None or (rest.true.contributors >= 0).all()


@pytest.mark.parametrize("unshown", ["differences", "nothing", "all"])
def test_a_measure_of_some_is_of_those_alone(unshown: str) -> None:
    tables = table("all", AREA, "pay"), table("some", ANSWERED, "pay")
    _, (system,) = systems(*tables, one=f'unshown = "{unshown}"', rules=PERCENT)
    check_values(system)
    some = next(part for part in system.parts if part.name == "some, pay")
    assert some.true.values.tolist() == added_up(FIRMS, some.layout, "pay", 10)


@pytest.mark.parametrize("unshown", ["differences", "nothing", "all"])
def test_codes_that_no_table_shows_are_in_the_totals_of_all(unshown: str) -> None:
    tables = table("some", CHOSEN), table("two", SEX)
    _, system, found = judged(*tables, one=f'unshown = "{unshown}"')
    check_values(system)
    hidden = [list(part.true.shape) for part in system.parts if not part.shown]
    wanted = {"differences": [[2, 2]], "nothing": [], "all": [[2, 2], [2, 2, 2]]}
    assert hidden == wanted[unshown]
    known = public_knowledge(system, hidden_releases(system, {})).known
    assert len(known) == system.values.size
    assert not (known.matrix @ system.values).any()
    own, _ = systems(*tables, one=f'unshown = "{unshown}"')
    problem = _problem(own, Suppression(attacker="outsider"), system, found)
    small = without_cube(system, problem)
    assert (small is None) is (unshown == "all")
    if small is not None:
        assert not (small.problem.relations @ small.problem.values).any()


def test_all_pieces_of_a_table_that_holds_them_are_judged_already() -> None:
    _, (system,) = systems(table("one", BY_BOTH), one='unshown = "all"')
    assert [part.shown for part in system.parts] == [True]


def test_a_relation_judges_the_measures_that_no_table_shows_where_it_is_asked() -> None:
    for unshown, number in (("differences", 2), ("nothing", 0)):
        _, (system,) = systems(
            table("t", AREA, "pay"), one=f'{PAY}\nunshown = "{unshown}"', rules=PERCENT
        )
        hidden = [part for part in system.parts if not part.shown]
        assert [part.response for part in hidden] == ["base", "tips"][:number]
        check_values(system)
        # They are tied although nobody judges them.
        assert system.values.size == 3 * system.parts[0].true.values.size
        for part in hidden:
            assert part.true.contributions.value.shape[-1] == 3


def test_all_pieces_of_two_tables_are_judged_where_that_is_asked_for() -> None:
    tables = table("one", BY_BOTH), table("two", SEX)
    for unshown, shapes in (("differences", []), ("all", [(2, 3, 2)])):
        _, (system,) = systems(*tables, one=f'unshown = "{unshown}"')
        hidden = [part for part in system.parts if not part.shown]
        assert [part.true.shape for part in hidden] == shapes
        check_values(system)
        for part in hidden:
            assert part.true.values.ravel().tolist() == added_up(FIRMS, part.layout, "count")


@pytest.mark.parametrize(
    ("others", "pieces"),
    [
        # Both tables together tell of job c by area and sex.
        ([("all", SEX), ("some", WORKERS)], [[2, 2, 2]]),
        # Nobody counts those of job c.
        ([("some", WORKERS)], []),
        # A table without sex counts everybody by area, so that job c by area follows, not by sex.
        ([("all", AREA), ("some", ANSWERED)], [[2, 2]]),
        # So it does where everybody is counted by sex too.
        ([("sexes", SEX), ("some", ANSWERED)], [[2, 2]]),
        # Finer jobs by sex tell nothing of jobs by area.
        (
            [
                ("fine", 'by = ["job", "sex"]'),
                ("coarse", 'by = [{variable = "job", level = "broad"}, "area"]'),
            ],
            [],
        ),
        # A coarser table of the same variables is no news beside the finer one.
        ([("fine", BY_BOTH), ("coarse", 'by = ["area", {variable = "job", level = "broad"}]')], []),
        # Two overlapping groups of codes: what is in one and not in the other follows.
        (
            [
                ("ab", 'by = [{variable = "job", codes = ["X"]}]'),
                ("c", 'by = [{variable = "job", codes = ["a"]}]'),
            ],
            [[2]],
        ),
    ],
)
def test_pieces_that_follow_by_subtraction(
    others: list[tuple[str, str]], pieces: list[list[int]]
) -> None:
    _, (system,) = systems(*(table(name, words) for name, words in others))
    hidden = [part for part in system.parts if not part.shown]
    assert [list(part.true.shape) for part in hidden] == pieces
    check_values(system)
    # What is judged does follow: shown tables fix every piece.
    shown = np.zeros(system.values.size, dtype=bool)
    for part, span in zip(system.parts, system.spans, strict=True):
        shown[span] = part.shown
    low = np.where(shown, system.values, 0)
    high = np.where(shown, system.values, 10**6)
    told = replace(system.known.known, low=low, high=high)
    for part, span in zip(system.parts, system.spans, strict=True):
        if not part.shown:
            found = bounds(told, list(range(span.start, span.stop)), integer=True, workers=1)
            assert found.low.tolist() == found.high.tolist() == system.values[span].tolist()


def test_the_same_cells_twice_are_refused_and_two_measures_of_them_are_not() -> None:
    with pytest.raises(InputError) as error:
        systems(table("t", AREA), table("u", AREA))
    assert "Tables 't' and 'u' show the same cells of 'count'" in str(error.value)
    _, found = systems(table("t", AREA), table("u", AREA, "pay"))
    assert [system.responses for system in found] == [("count",), ("pay",)]
    assert all(system.single for system in found)
    _, (two,) = systems(table("t", AREA), table("u", SEX))
    assert not two.single
    # One table is not alone where a measure that nobody shows stands beside it.
    _, (tied,) = systems(table("t", AREA, "pay"), one=f'{PAY}\nunshown = "nothing"')
    assert len(tied.parts) == 1
    assert not tied.single


def test_a_sum_by_another_way_must_agree() -> None:
    _, (system,) = systems(table("t", AREA, "tips"))
    system_module._check_values(system, "one")
    values = system.values.copy()
    values[0] += 1
    with pytest.raises(InputError, match="Set 'one': t, tips does not agree with its own records"):
        system_module._check_values(replace(system, values=values), "one")


def test_a_set_is_as_large_as_it_may_be(monkeypatch: pytest.MonkeyPatch) -> None:
    # Two tables of 12 and 9 cells, and 12 of the cube behind them.
    tables = table("one", BY_BOTH), table("two", SEX)
    for most in (33, 32):
        monkeypatch.setattr(system_module, "MOST_CELLS", most)
        if most == 33:
            systems(*tables)
            continue
        with pytest.raises(InputError, match=r"its tables have 33 cells .* at most 32 can"):
            systems(*tables)
    for words, most, cells in (
        # The pieces that follow count where they are judged.
        ((AREA, ANSWERED, "differences"), 12, 13),
        ((AREA, ANSWERED, "nothing"), 8, 9),
        # The jobs that no table shows are a piece of the cube.
        ((CHOSEN, SEX, "nothing"), 18, 19),
    ):
        monkeypatch.setattr(system_module, "MOST_CELLS", most)
        one, two, unshown = words
        with pytest.raises(InputError, match=f"its tables have {cells} cells"):
            systems(table("one", one), table("two", two), one=f'unshown = "{unshown}"')
        monkeypatch.setattr(system_module, "MOST_CELLS", cells)
        systems(table("one", one), table("two", two), one=f'unshown = "{unshown}"')
    monkeypatch.setattr(system_module, "MOST_CELLS", 32)
    # Three measures that are tied have three times as many.
    with pytest.raises(InputError, match=r"have (\d+) cells") as error:
        systems(*(table(n, w, "pay") for n, w in (("one", BY_BOTH), ("two", SEX))), one=PAY)
    assert "99 cells" in str(error.value)


def hidden_releases(system: Any, hide: dict[str, set[int]]) -> list[Any]:
    """Releases that hide these places of tables, by name, and show everything else."""
    found: list[Any] = []
    for part in system.parts:
        if not part.shown:
            found.append(None)
            continue
        mask = np.zeros(part.true.values.size, dtype=bool)
        mask[list(hide.get(part.name, ()))] = True
        mask = mask.reshape(part.true.shape)
        status = np.where(mask, "N", "F")
        found.append(_release(part, {"method": "suppression"}, mask, status, 0))
    return found


def test_a_reader_of_releases_knows_what_they_show_in_the_units_of_the_system() -> None:
    _, (system,) = systems(table("t", AREA, "pay", "tips"), one=PAY)
    releases = hidden_releases(system, {"t, tips": {0, 1}})
    seen = public_knowledge(system, releases)
    places = spans_of(system, seen)
    assert places == list(system.spans)
    for part, span in zip(system.parts, places, strict=True):
        low, high = seen.known.low[span].tolist(), seen.known.high[span].tolist()
        true = system.values[span].tolist()
        if part.response == "base":
            assert (low, high) == ([0] * 3, [UNBOUNDED] * 3)
        elif part.response == "pay":
            assert low == high == true
        else:
            assert (low, high) == ([0, 0, true[2]], [UNBOUNDED, UNBOUNDED, true[2]])
    # Base and tips of an area add up to its pay, and nothing more is known of either.
    pay, tips, base = places
    found = bounds(seen.known, [tips.start, base.start], workers=1)
    north, every = int(system.values[pay][0]), int(system.values[tips][2])
    assert found.low.tolist() == [0, north - every]
    assert found.high.tolist() == [every, north]
    assert repr(Protected(tuple(releases))) == "Protected(2 tables)"


def test_a_measure_without_a_table_is_hidden_and_not_left_out() -> None:
    _, (system,) = systems(table("t", AREA, "pay"), one=f'{PAY}\nunshown = "nothing"')
    seen = public_knowledge(system, hidden_releases(system, {}))
    assert len(seen.known) == 9
    assert not (seen.known.matrix @ system.values).any()
    low, high = seen.known.low, seen.known.high
    assert low.tolist() == [*system.values[:3].tolist(), *[0] * 6]
    assert high.tolist() == [*system.values[:3].tolist(), *[UNBOUNDED] * 6]


def test_nothing_bounds_a_hidden_sum_where_one_is_negative() -> None:
    rows = [dict(row) for row in FIRMS]
    for row in rows:
        row["tips"] = -5 if row["area"] == "n" else 5
        row["pay"] = row["base"] + row["tips"]
    _, (system,) = systems(table("t", AREA, "tips", "pay"), one=PAY, rows=rows)
    assert least_value(system) == -UNBOUNDED
    seen = public_knowledge(system, hidden_releases(system, {"t, tips": {0}}))
    tips = system.spans[[part.response for part in system.parts].index("tips")]
    base = system.spans[[part.response for part in system.parts].index("base")]
    for span in (slice(tips.start, tips.start + 1), base):
        assert set(seen.known.low[span].tolist()) <= {-UNBOUNDED, 0}
    assert seen.known.low[base].tolist() == [-UNBOUNDED] * 3
    one = f'{PAY}\nunshown = "nothing"'
    _, (alone,) = systems(table("t", AREA, "tips", "pay"), one=one, rows=rows)
    told = public_knowledge(alone, hidden_releases(alone, {})).known
    assert told.low[6:].tolist() == [-UNBOUNDED] * 3
    _, (plain,) = systems(table("t", AREA, "tips"))
    assert least_value(plain) == 0
    zero = [dict(row, tips=0) for row in FIRMS]
    assert least_value(systems(table("t", AREA, "tips"), rows=zero)[1][0]) == 0


def problem_of(*tables: str, **words: Any) -> tuple[Any, Any]:
    own, system, found = judged(*tables, **words)
    spec = Suppression(attacker="outsider")
    return system, _problem(own, spec, system, found)


@pytest.mark.parametrize("total", ["true", "false"])
@pytest.mark.parametrize("others", [(), (table("two", AREA),)])
def test_a_grand_total_means_the_same_in_one_table_and_in_several(
    total: str, others: tuple[str, ...]
) -> None:
    by = f'by = [{{variable = "sex", total = true}}, {{variable = "job", total = {total}}}]'
    own, system, found = judged(table("one", by), *others)
    spec = Suppression(attacker="outsider", keep="grand-total", zeros=True)
    problem = _problem(own, spec, system, found)
    kept = kept_cells(system.parts[0].true, "grand-total").ravel()
    assert kept.sum() == (total == "true")
    span = system.spans[0]
    assert problem.frozen[span].tolist() == (kept & ~problem.primary[span]).tolist()


@pytest.mark.parametrize(("measure", "one"), [("count", ""), ("pay", PAY)])
def test_tables_without_their_cube_keep_every_relation_between_them(measure: str, one: str) -> None:
    tables = table("one", BY_BOTH, measure), table("two", SEX, measure)
    system, problem = problem_of(*tables, one=one)
    small = without_cube(system, problem)
    number = len(system.responses)
    assert len(small.problem) == number * (12 + 9)
    # The cells are those of the tables, response by response, and their values obey the relations.
    block = system.values.size // number
    wanted = [block * k + i for k in range(number) for i in range(21)]
    assert small.cells.tolist() == wanted
    assert small.problem.values.tolist() == system.values[wanted].tolist()
    assert small.problem.primary.tolist() == problem.primary[wanted].tolist()
    matrix = small.problem.relations.toarray()
    assert not (matrix @ small.problem.values).any()
    # As many free directions as sums of records have: of tables 2 + 2 * 2 + 2 * 1, by response but one.
    free = np.linalg.matrix_rank(matrix)
    each = 2 * 3 + 2 * 2 - 2
    assert len(small.problem) - free == each * (number if number == 1 else number - 1)


def test_several_relations_tie_the_measures_that_they_name() -> None:
    rows = [dict(row, tips=2, pay=row["base"] + 2) for row in FIRMS]
    relations = 'relations = ["pay = base + tips", "tips = 2 count"]'
    tables = table("one", BY_BOTH, "pay", "count"), table("two", SEX, "pay")
    own, system, found = judged(*tables, one=relations, rows=rows)
    assert set(system.responses) == {"pay", "base", "tips", "count"}
    problem = _problem(own, Suppression(attacker="outsider"), system, found)
    small = without_cube(system, problem)
    assert not (small.problem.relations @ small.problem.values).any()


def test_a_cube_that_a_table_holds_or_that_is_judged_stays_in() -> None:
    system, problem = problem_of(table("one", 'by = ["area", "job", "sex"]'), table("two", SEX))
    assert without_cube(system, problem) is None
    tables = table("one", BY_BOTH), table("two", SEX)
    system, problem = problem_of(*tables, one='unshown = "all"')
    assert without_cube(system, problem) is None
