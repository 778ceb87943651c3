"""Which cells follow from tables by subtraction, and are therefore protected though no table shows them."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.protect.method import kept_cells
from lustrum.protect.suppression import Suppression
from lustrum.publish.programme.judge import judge, ranks_for
from lustrum.publish.programme.read import bound_to, parse_programme
from lustrum.publish.programme.spec import PreparedSet
from lustrum.publish.programme.suppress import _problem
from lustrum.publish.programme.system import ProgrammeSystem, open_records, systems_of
from lustrum.sensitivity.background import NOTHING
from publish.programme.conftest import Workplace, programme_text

HEAD = """
[[sets]]
name = "one"
method = "suppression"
unshown = "{unshown}"

[[sets.rules]]
rule = "p-percent"
p = 10
"""
TABLE = """
[[sets.tables]]
name = "{name}"
by = {by}
measures = ["turnover"]
{where}
"""
FINE = ("fine", '["act", "size"]', "")
COARSE = ("coarse", '[{variable = "act", level = "section"}, "region"]', "")
EVERYBODY = ("everybody", '["region"]', "")
SMALL = ("small", '["region"]', 'where = {size = ["s", "m"]}')


def set_and_system(
    workplace: Workplace, *tables: tuple[str, str, str], unshown: str = "differences"
) -> tuple[PreparedSet, ProgrammeSystem]:
    body = HEAD.format(unshown=unshown)
    body += "".join(TABLE.format(name=n, by=by, where=where) for n, by, where in tables)
    programme = parse_programme(programme_text(body).encode(), "tables.toml", workplace.folder)
    records = open_records(programme.source, workplace.folder, 1)
    own = bound_to(programme, records.dataset).sets[0]
    (only,) = systems_of(own, records, ranks_for(own))
    return own, only


def system(
    workplace: Workplace, *tables: tuple[str, str, str], unshown: str = "differences"
) -> ProgrammeSystem:
    return set_and_system(workplace, *tables, unshown=unshown)[1]


def unshown(found: ProgrammeSystem) -> list[tuple[tuple[str, int], ...]]:
    return [
        tuple((axis.name, len(axis)) for axis in part.layout.axes)
        for part in found.parts
        if not part.shown
    ]


@pytest.mark.parametrize("first", [EVERYBODY, COARSE])
def test_those_whom_a_filter_leaves_out_follow_by_subtraction(
    made: Workplace, first: tuple[str, str, str]
) -> None:
    assert unshown(system(made, first, SMALL)) == [(("region", 3), ("size", 2))]


def test_finer_categories_in_a_table_of_other_variables_follow_from_nothing(
    made: Workplace,
) -> None:
    assert unshown(system(made, FINE, COARSE)) == []


def test_a_filter_that_no_other_table_contradicts_leaves_nothing_to_follow(made: Workplace) -> None:
    assert unshown(system(made, SMALL)) == []


def test_all_combinations_are_judged_where_that_is_asked_for(made: Workplace) -> None:
    found = unshown(system(made, FINE, COARSE, unshown="all"))
    assert [dict(axes) for axes in found] == [{"act": 4, "size": 3, "region": 3}]
    assert unshown(system(made, EVERYBODY, SMALL, unshown="nothing")) == []


def test_cells_of_the_system_are_sums_of_its_records(made: Workplace) -> None:
    found = system(made, FINE, COARSE, SMALL)
    assert found.values.size > sum(part.true.values.size for part in found.parts)
    assert not (found.known.known.matrix @ found.values).any()


@pytest.mark.parametrize("total", ["true", "false"])
@pytest.mark.parametrize("others", [(), (EVERYBODY,)])
def test_a_grand_total_means_the_same_in_one_table_and_in_several(
    made: Workplace, total: str, others: tuple[tuple[str, str, str], ...]
) -> None:
    by = f'[{{variable = "act", total = true}}, {{variable = "region", total = {total}}}]'
    own, found = set_and_system(made, ("t", by, ""), *others)
    spec = Suppression(keep="grand-total", zeros=True)
    problem = _problem(own, spec, found, judge(own, found, NOTHING))
    for part, span in zip(found.parts, found.spans, strict=True):
        if part.shown and len(part.true.axes) == 2:
            kept = kept_cells(part.true, "grand-total")
            assert kept.sum() == (total == "true")
            wanted = kept.ravel() & ~problem.primary[span]
            assert np.array_equal(problem.frozen[span], wanted)
