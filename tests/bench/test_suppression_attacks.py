"""The attack suite finds what it must find, blames nothing else, and shares no code with what it attacks."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from attacks.suppression.attackers import insiders, pairs
from attacks.suppression.cells import Content, Population, Record, Variable
from attacks.suppression.drive import run
from attacks.suppression.faults import FAULTS, Fault, found_by
from attacks.suppression.files import read, reason_of
from attacks.suppression.judge import judge
from attacks.suppression.kinds import KINDS, plain, problem
from attacks.suppression.log import append, of_outcome, read_log, table
from attacks.suppression.planted import Planted, finders, planted, release
from attacks.suppression.problems import Problem
from attacks.suppression.programs import ContradictionError, Fact, Facts, Program
from attacks.suppression.rules import Rule

SUITE = Path(__file__).parents[2] / "bench" / "attacks" / "suppression"
FORBIDDEN = ("protect", "audit", "solve", "structure", "sensitivity")


def test_the_suite_imports_nothing_from_the_code_that_protects() -> None:
    files = [*SUITE.glob("*.py"), SUITE.parents[1] / "suppression_attacks.py"]
    assert len(files) > 8
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [f"{node.module}.{a.name}" for a in node.names]
            for name in names:
                parts = name.split(".")
                assert parts[0] != "lustrum" or parts[1:2] == [] or parts[1] not in FORBIDDEN, (
                    path,
                    name,
                )


@pytest.mark.parametrize("leak", planted(), ids=lambda leak: leak.name)
def test_every_planted_leak_is_found_and_no_harmless_file_is_blamed(
    leak: Planted, tmp_path: Path
) -> None:
    found = finders(leak.attack(tmp_path))
    if leak.finder == "nobody":
        assert found == {"nobody"}
    else:
        assert leak.finder in found


def test_ranges_are_those_of_all_tables_that_fit() -> None:
    shape = (2, 2, 2)
    people = Population(
        tuple(plain(name, 2) for name in "abc"),
        tuple(
            Record(codes, f"{codes}{i}")
            for codes, n in zip(
                itertools.product(*map(range, shape)), (1, 0, 2, 1, 0, 1, 1, 2), strict=True
            )
            for i in range(n)
        ),
    )
    hidden = [{"a": "a1", "b": b} for b in ("b1", "b2")] + [
        {"a": "a2", "b": b} for b in ("b1", "b2")
    ]
    places = [people.leaves(w) for w in hidden]
    facts = Facts()
    for names in (("a", "b"), ("b", "c")):
        for where in people.table(names):
            leaves = people.leaves(where)
            if leaves not in places:
                value = people.content(leaves).value
                facts.add(Fact(leaves, value, value))
    program = Program(people.size, facts, whole=True, free=False, also=places)
    fitting = [
        cube
        for cube in itertools.product(range(5), repeat=8)
        if all(
            low <= sum(cube[i] for i in leaves) <= high
            for leaves, (low, high) in facts.bounds.items()
        )
    ]
    assert people.values in fitting
    for leaves in places:
        sums = {sum(cube[i] for i in leaves) for cube in fitting}
        assert program.range(leaves) == pytest.approx((min(sums), max(sums)))
    known = {places[0]: (1.0, 1.0)}
    sums = {sum(c[i] for i in places[1]) for c in fitting if sum(c[i] for i in places[0]) == 1}
    assert program.range(places[1], known) == pytest.approx((min(sums), max(sums)))


def test_a_count_that_is_empty_or_large_has_a_gap() -> None:
    facts = Facts()
    facts.add(Fact(frozenset({0, 1}), 4, 4))
    facts.add(Fact(frozenset({0}), 0, 9, 3))
    facts.add(Fact(frozenset({1}), 1, 2))
    program = Program(2, facts, whole=True, free=False)
    assert program.range(frozenset({0})) == pytest.approx((3, 3))
    assert facts.broken([2, 2]) == [frozenset({0})]


def test_one_contributor_is_the_same_in_all_cells_that_hold_each_other() -> None:
    variables = tuple(plain(name, 2) for name in "abc")
    others = tuple(
        Record((1, j, k), f"o{j}{k}{i}", 10) for j in (0, 1) for k in (0, 1) for i in range(5)
    )
    people = Population(variables, (Record((0, 0, 0), "f", 100), *others))
    made = Problem("test", 0, people, (("a", "b"), ("a", "c")), (Rule("p", (10,)),), "n")
    inside = insiders(made, made.cells())
    assert len(inside) == 1
    assert inside[0].knows == {
        people.leaves(w) for w in ({"a": "a1"}, {"a": "a1", "b": "b1"}, {"a": "a1", "c": "c1"})
    }


def test_facts_that_no_table_fits_are_a_contradiction() -> None:
    facts = Facts()
    facts.add(Fact(frozenset({0, 1}), 3, 3))
    facts.add(Fact(frozenset({0}), 4, 9))
    with pytest.raises(ContradictionError):
        Program(2, facts, whole=True, free=False).range(frozenset({0}))
    assert facts.broken([3, 0]) == [frozenset({0})]


def cell(*parts: int) -> Content:
    return Content(sum(parts), tuple((x, f"f{i}") for i, x in enumerate(parts)))


@pytest.mark.parametrize(
    ("rule", "parts", "level"),
    [
        (Rule("p", (10,)), (6907, 90, 16), Fraction(6747, 10)),
        (Rule("p", (10,)), (50, 40, 30), None),
        (Rule("p", (10,)), (1000,), Fraction(100)),
        (Rule("p", (10, 2)), (100, 40, 8, 3), Fraction(7)),
        (Rule("pq", (10, 50)), (100, 40, 8), Fraction(12)),
        (Rule("nk", (2, 80)), (60, 30, 10), Fraction(25, 2)),
        (Rule("nk", (1, 70)), (60, 40), None),
        (Rule("threshold", (3,)), (600, 400), Fraction(100)),
        (Rule("threshold", (3,)), (1, 1, 1), None),
        (Rule("threshold", (3,)), (), None),
    ],
)
def test_levels_are_those_of_the_literature(
    rule: Rule, parts: tuple[int, ...], level: Fraction | None
) -> None:
    assert rule.level(cell(*parts)) == level


def test_the_second_largest_needs_the_level_of_the_rule() -> None:
    dominated = cell(6907, 90, 16)
    rule = Rule("p", (10,))
    assert rule.against(dominated, 90) == rule.level(dominated)
    assert rule.against(dominated, 6907) < rule.level(dominated)


@pytest.mark.parametrize(
    ("column", "letter", "value", "reason"),
    [
        ("CONF_STATUS", "N", None, "hidden"),
        ("CONF_STATUS", "A", None, "primary"),
        ("status", "D", None, "secondary"),
        ("OBS_STATUS", "Q", None, "hidden"),
        ("OBS_STATUS", "A", 4.0, "shown"),
        ("CONF_STATUS", "N", 4.0, "shown"),
        ("", "", None, "hidden"),
    ],
)
def test_the_name_of_a_column_says_what_a_letter_means(
    column: str, letter: str, value: float | None, reason: str
) -> None:
    assert reason_of(column, letter, value) == reason


def test_a_drawn_problem_is_the_same_everywhere_and_its_files_add_up(tmp_path: Path) -> None:
    for kind in KINDS:
        drawn = problem(kind, 3)
        assert problem(kind, 3) == drawn
        assert problem(kind, 4) != drawn
        for names in drawn.tables:
            for where in drawn.population.table(names):
                leaves = drawn.population.leaves(where)
                assert drawn.population.content(leaves).value == sum(
                    drawn.population.values[i] for i in leaves
                )
        folder = tmp_path / kind.replace(" ", "-")
        folder.mkdir()
        assert len(drawn.write(folder)) == len(drawn.tables)


def test_a_group_covers_the_finest_codes_below_it() -> None:
    nace = Variable("nace", ("D1", "D21", "D22"), {"D": ("D1", "D2"), "D2": ("D21", "D22")})
    assert nace.codes == ("D", "D1", "D2", "D21", "D22", "Total")
    assert nace.below("D") == nace.below("_T") == {0, 1, 2}
    assert nace.below("D2") == {1, 2}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sums, 2 ways", "hierarchy file", "xlsx", "programme", "frame"])
def test_what_the_product_writes_is_read_as_it_is(kind: str, tmp_path: Path) -> None:
    """Every cell of every file is read, and everything that is shown is the truth."""
    drawn = problem(kind, 1)
    ran = run(drawn, tmp_path)
    outcome = judge(drawn, ran)
    assert outcome.result in ("released", "withheld", "not judged"), ran.said
    assert not outcome.untrue
    names = [v.name for v in drawn.population.variables]
    for path in ran.files:
        cells = read(path, names).cells
        assert {drawn.population.leaves(c.where) for c in cells} <= set(drawn.cells())
        assert len(cells) in {len(drawn.population.table(t)) for t in drawn.tables}


def test_a_changed_value_in_a_file_is_found_untrue(tmp_path: Path) -> None:
    made = next(p for p in planted() if p.finder == "nobody")
    text = made.files["t.csv"].replace(",9,", ",8,", 1)
    changed = Planted("changed", made.problem, {"t.csv": text}, "untrue")
    assert finders(changed.attack(tmp_path)) == {"untrue"}


def test_pairs_fail_a_run_that_was_asked_to_withstand_them(tmp_path: Path) -> None:
    leak = next(p for p in planted() if p.finder == "pair")
    assert not leak.attack(tmp_path).fails
    asked = replace(leak, problem=replace(leak.problem, options=("--attacker", "pairs")))
    outcome = asked.attack(tmp_path)
    assert outcome.fails
    assert of_outcome(outcome, 0.0).fails


def test_a_table_on_the_way_to_another_that_fits_needs_no_program() -> None:
    facts = Facts()
    facts.add(Fact(frozenset({0, 1, 2}), 30, 30))
    program = Program(3, facts, whole=False, free=False, also=[frozenset({i}) for i in range(3)])
    first = frozenset({0})
    assert program.witnesses((10, 10, 10)).seen(first) == (10, 10)
    assert program.range(first) == pytest.approx((0, 30))
    assert program.witnesses((10, 10, 10)).seen(first) == pytest.approx((0, 30))
    # Somebody knows that another cell is at least 5: half of the way up is left.
    low, high = program.witnesses((10, 10, 10), {frozenset({1}): (5.0, 30.0)}).seen(first)
    assert 10 <= high <= 25.000001
    assert high <= program.range(first, {frozenset({1}): (5.0, 30.0)})[1] + 1e-6
    assert low == pytest.approx(0)
    assert program.witnesses((10, 10, 10), {first: (10.0, 10.0)}).seen(first) == (10, 10)


def test_three_who_are_alone_in_a_row_are_short_to_two_of_them_only(tmp_path: Path) -> None:
    people = Population((plain("a", 3),), tuple(Record((i,), f"f{i}", 100) for i in range(3)))
    made = Problem("test", 0, people, (("a",),), (Rule("nk", (1, 80)),), "n")
    hidden = {(c,): "N" for c in ("a1", "a2", "a3")}
    text = release(made, ("a",), hidden)
    assert finders(Planted("row", made, {"t.csv": text}, "pair").attack(tmp_path)) == {"pair"}


CROSSED = (
    ("a1 b1", "f0", 22), ("a1 b2", "f2", 44), ("a1 b2", "g6", 23), ("a1 b2", "f3", 20), ("a1 b2", "f4", 10),
    ("a1 b3", "f5", 62), ("a1 b3", "f6", 12), ("a2 b1", "f7", 19), ("a2 b2", "f8", 19), ("a2 b2", "f9", 1),
    ("a2 b3", "f10", 1310),
)  # fmt: skip
"""A total of 1542 of which f0 and f10 contribute 1332; the one row and the one column with f10 cross."""


def _crossed() -> Problem:
    codes = {f"a{i + 1} b{j + 1}": (i, j) for i in range(2) for j in range(3)}
    people = Population(
        (plain("a", 2), plain("b", 3)),
        tuple(Record(codes[where], who, amount) for where, who, amount in CROSSED),
    )
    rule, asked = Rule("nk", (1, 70)), ("--attacker", "pairs")
    return Problem("test", 0, people, (("a", "b"),), (rule,), "holdings", asked)


def test_nothing_is_demanded_below_what_two_contribute_themselves(tmp_path: Path) -> None:
    made = _crossed()
    hidden = {tuple(where.values()): "N" for where in made.population.table(("a", "b"))}
    text = release(made, ("a", "b"), hidden)
    assert finders(Planted("all", made, {"t.csv": text}, "nobody").attack(tmp_path)) == {"nobody"}
    cells = made.cells()
    two = [who for who in insiders(made, cells) if who.name in ("f0", "f10")]
    both = next(pairs(two, cells, most=None))
    total = made.population.leaves({})
    assert both.least(total, cells, made.population.size) == pytest.approx(1332)


def test_the_least_value_of_a_cell_to_two_lies_between_a_sum_of_parts_and_their_contributions() -> (
    None
):
    more = 0
    for made in (_crossed(), *(problem("asked for pairs", seed) for seed in range(12))):
        cells = made.cells()
        if made.free or made.columns != "holdings":
            continue
        for both in itertools.islice(pairs(insiders(made, cells), cells, most=None), 12):
            names = both.name.split(" and ")
            for leaves, cell in cells.items():
                true = sum(amount for amount, who in cell.parts if who in names)
                least = both.least(leaves, cells, made.population.size)
                assert both.part(leaves) - 1e-6 <= least <= true + 1e-6
                more += least > both.part(leaves) + 0.5
    assert more > 0


def test_a_log_is_gone_on_from_and_its_last_word_counts(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    assert read_log(log) == {}
    made = next(p for p in planted() if p.finder == "outsider")
    line = of_outcome(made.attack(tmp_path), 1.0)
    assert line.fails
    append(log, line)
    append(log, replace(line, outsider=0, said="mended"))
    assert read_log(log) == {(line.kind, line.number): replace(line, outsider=0, said="mended")}
    rows = table([line], [line.kind])
    assert rows[-1]["kind"] == "all"
    assert (rows[-1]["problems"], rows[-1]["released"]) == (1, 1)


TAKE_LONG = (
    "nobody inside attacks linked tables",
    "no cube behind linked files",
    "levels are halved",
)


@pytest.mark.parametrize(
    "fault",
    [
        pytest.param(one, id=one.name, marks=[pytest.mark.deep] * (one.name in TAKE_LONG))
        for one in FAULTS
    ],
)
def test_the_suite_reports_a_fault_that_is_put_into_the_product(fault: Fault) -> None:
    assert found_by(fault, most=3)


def test_what_a_fault_replaces_is_put_back() -> None:
    from lustrum.model import labelled_counts

    before = labelled_counts._named_total
    fault = next(f for f in FAULTS if "crosstab" in f.kinds)
    assert found_by(replace(fault, first=10**6), most=0) == ""
    assert labelled_counts._named_total is before
