"""A pattern is looked for among the cells of tables, and counts only if it is safe with their cube."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import linprog

from lustrum.model.arrays import Mask
from lustrum.protect.suppression import Pattern, SuppressionProblem, suppress
from lustrum.protect.suppression.check import audit_pattern
from lustrum.publish.programme.audit import judge
from lustrum.publish.programme.protect import method_of
from lustrum.publish.programme.read import bound_to, parse_programme

# The problem before cells are left out of it.
from lustrum.publish.programme.suppress import _problem, pattern_of_tables, without_cube
from lustrum.publish.programme.system import ProgrammeSystem, open_records, systems_of
from lustrum.sensitivity.rule import ranks_of
from publish.programme.conftest import DESCRIPTION, programme_text, write_records

HEAD = """
[[sets]]
name = "one"
unshown = "{unshown}"
{relations}
[[sets.rules]]
rule = "p-percent"
p = 10
"""
TABLE = """
[[sets.tables]]
name = "table-{number}"
by = [{by}]
measures = [{measures}]
"""
ACT, FINEST, SECTION, REGION, SIZE = (
    f"{{{words}, total = true}}"
    for words in (
        'variable = "act", levels = ["finest", "section"]',
        'variable = "act"',
        'variable = "act", level = "section"',
        'variable = "region"',
        'variable = "size"',
    )
)
RELATION = 'relations = ["turnover = domestic + export"]'
TWO = (((ACT, REGION), '"turnover", "domestic"'), ((SECTION, SIZE), '"turnover"'))
THREE = tuple((by, '"turnover"') for by in ((FINEST, REGION), (FINEST, SIZE), (REGION, SIZE)))
Tables = tuple[tuple[tuple[str, str], str], ...]
Made = tuple[ProgrammeSystem, SuppressionProblem]


def made(
    folder: Path, tables: Tables, *, seed: int, unshown: str = "differences", relations: str = ""
) -> Made:
    write_records(folder, seed, 50)
    (folder / "description.toml").write_text(DESCRIPTION)
    body = HEAD.format(unshown=unshown, relations=relations)
    for number, (by, measures) in enumerate(tables):
        body += TABLE.format(number=number, by=", ".join(by), measures=measures)
    programme = parse_programme(programme_text(body).encode(), "tables.toml", folder)
    records = open_records(programme.source, folder, 1)
    own = bound_to(programme, records.dataset).sets[0]
    (system,) = systems_of(own, records, ranks_of(*(one.rule for one in own.rules)))
    # What the cube tells is told to outsiders.
    spec = replace(method_of(own), attacker="outsider")  # type: ignore[call-arg, type-var]
    return system, _problem(own, spec, system, judge(own, system, records.background))  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("two"), TWO, seed=3, relations=RELATION)


@pytest.fixture(scope="module")
def three(tmp_path_factory: pytest.TempPathFactory) -> Made:
    return made(tmp_path_factory.mktemp("three"), THREE, seed=1)


def most(problem: SuppressionProblem, suppressed: Mask, cell: int, sign: int) -> float:
    """The most that a cell, or its opposite, can be, by a program that knows nothing of the package."""
    weight = np.zeros(len(problem))
    weight[cell] = -sign
    ends = np.where(
        suppressed[:, None], np.stack([problem.low, problem.high], axis=1), problem.values[:, None]
    )
    relations = problem.relations
    found = linprog(
        weight, A_eq=relations, b_eq=np.zeros(relations.shape[0]), bounds=ends, method="highs"
    )
    return -float(found.fun)


class Searches:
    """Counts searches, and can spoil the verdict on the first pattern."""

    def __init__(self, *, unsafe: bool = False) -> None:
        self.sizes: list[int] = []
        self.patterns: list[Pattern] = []
        self.unsafe = unsafe

    def __call__(self, problem: SuppressionProblem, previous: Mask | None) -> Pattern:
        assert previous is None or previous.size == len(problem)
        found = suppress(problem, algorithm="quick", previous=previous, workers=1)
        self.sizes.append(len(problem))
        self.patterns.append(found)
        return replace(found, safe=False) if self.unsafe and len(self.sizes) == 1 else found


def hidden_patterns(problem: SuppressionProblem, count: int) -> Iterator[Mask]:
    luck = np.random.default_rng(5)
    for share in np.linspace(0.3, 0.7, count):
        yield problem.fixed | (~problem.frozen & (luck.random(len(problem)) < share))


def test_the_cube_of_two_tables_rules_nothing_out(two: Made) -> None:
    system, problem = two
    small = without_cube(system, problem)
    assert len(small.problem) == 3 * (7 * 4 + 3 * 4) < len(problem)
    luck = np.random.default_rng(1)
    for suppressed in hidden_patterns(problem, 3):
        inside = suppressed[small.cells]
        for place in luck.choice(np.flatnonzero(inside), 4, replace=False).tolist():
            for sign in (1, -1):
                less = most(small.problem, inside, place, sign)
                assert less == pytest.approx(
                    most(problem, suppressed, int(small.cells[place]), sign), abs=1e-6
                )


def test_a_pattern_of_two_tables_is_found_without_the_cube_and_audited_with_it(two: Made) -> None:
    system, problem = two
    search = Searches()
    previous = np.zeros(len(problem), dtype=np.bool_)
    previous[::5] = True
    found = pattern_of_tables(system, problem, previous, search, 1)
    assert search.sizes == [120]
    assert found.safe
    assert audit_pattern(problem, found.suppressed).safe
    assert not found.suppressed[problem.frozen].any()
    assert (found.primary == problem.primary).all()
    assert (found.secondary == (found.suppressed & problem.choice)).all()
    assert found.audited.cells.tolist() == np.flatnonzero(problem.primary).tolist()
    assert found.changes.kept.tolist() == np.flatnonzero(found.suppressed & previous).tolist()
    assert found.changes.added.tolist() == np.flatnonzero(found.suppressed & ~previous).tolist()
    assert found.changes.dropped.tolist() == np.flatnonzero(~found.suppressed & previous).tolist()


def test_three_tables_that_contradict_each_other_are_searched_with_their_cube(three: Made) -> None:
    system, problem = three
    small = without_cube(system, problem)
    search = Searches()
    found = pattern_of_tables(system, problem, None, search, 1)
    assert search.sizes == [len(small.problem), len(problem)]
    # The first pattern is safe for whoever does not think of the cube.
    assert search.patterns[0].safe
    alone = problem.fixed.copy()
    alone[small.cells] = search.patterns[0].suppressed
    cell, attacker = audit_pattern(problem, alone).short[0]
    assert attacker == -1
    up = most(problem, alone, cell, 1) - problem.values[cell]
    down = most(problem, alone, cell, -1) + problem.values[cell]
    assert up < problem.upper[cell] or down < problem.lower[cell]
    assert found is search.patterns[1]
    assert audit_pattern(problem, found.suppressed).safe


def test_a_search_without_the_cube_that_fails_is_made_again_with_it(two: Made) -> None:
    system, problem = two
    search = Searches(unsafe=True)
    found = pattern_of_tables(system, problem, None, search, 1)
    assert search.sizes == [120, len(problem)]
    assert found is search.patterns[1]


def test_a_cell_of_the_cube_that_needs_protection_keeps_it_in(two: Made) -> None:
    system, problem = two
    cube = np.flatnonzero(~np.isin(np.arange(len(problem)), without_cube(system, problem).cells))  # type: ignore[union-attr]
    primary = problem.primary.copy()
    primary[cube[0]] = True
    asked = replace(problem, primary=primary, never=problem.never & ~primary)
    assert without_cube(system, asked) is None
    never = problem.never.copy()
    never[cube[-1]] = False
    assert without_cube(system, replace(problem, never=never)) is None
