"""The attacks on a public file succeed where nothing protects, and not on a protected one."""

from __future__ import annotations

import numpy as np
import pytest
from attacks.file_report import FileReport, JointReport, attack_areas
from attacks.joint import Joint

from lustrum.protect.population.attributes import AttributeRisk
from lustrum.protect.population.method import ProtectedPopulation
from protect.population.worlds import KEY, cells_of, town

SIZES = (60, 5, 4, 4)


@pytest.fixture(scope="module")
def report() -> JointReport:
    rng = np.random.default_rng(3)
    shares = [rng.dirichlet(np.full(n, 2.0)) for n in SIZES[1:]]
    chance = np.einsum("i,j,k->ijk", *shares)
    counts = rng.poisson(40 * chance, SIZES)
    cells = cells_of(town(SIZES, zeros=False), counts)
    shown = ProtectedPopulation(sweeps=4).protect(cells, KEY).cells
    return attack_areas(cells, shown, 3, "v0", fewest=30, sweeps=4_000)


def test_the_joint_attack_names_ones_and_twos_only_where_tables_are_exact(
    report: JointReport,
) -> None:
    assert report.exact.succeeds
    assert report.exact.better > 0.1
    assert not report.protected.succeeds
    assert report.protected.right[99] <= report.protected.prior_right[99]


def test_the_joint_attack_is_no_worse_than_its_prior(report: JointReport) -> None:
    """One that does worse uses what it knows wrongly, and proves nothing."""
    assert report.protected.better > -0.01


def test_a_report_of_rows_holds_only_if_nothing_is_found_and_the_attack_works() -> None:
    bad = AttributeRisk("v", 0.0, 500, 0.9, 0.2)
    good = AttributeRisk("v", 0.0, 500, 0.5, 0.2)
    assert FileReport(((good,),), (bad,)).holds
    assert not FileReport(((bad,),), (bad,)).holds
    assert not FileReport(((good,), (bad,)), (bad,)).holds, "under one of two keys"
    assert not FileReport(((good,),), (good,)).holds
    rows = list(FileReport(((good,), (good,)), (bad,)).rows())
    assert "500/500 people: named 50/50 %, guessed 20/20 %" in rows[0][1]
    assert rows[1][1].startswith("50.0% of 500 people")


def test_a_joint_report_holds_only_if_nothing_is_found_and_the_attack_works() -> None:
    none = {95: 0, 99: 0}
    works = Joint(100, 60, {95: 40, 99: 40}, {95: 39, 99: 39}, none, none, 0.5)
    fails = Joint(100, 60, none, none, none, none, 0.0)
    wrong = Joint(100, 60, {95: 40, 99: 40}, {95: 30, 99: 30}, none, none, 0.1)
    assert JointReport(fails, works).holds
    assert not JointReport(works, works).holds
    assert not JointReport(fails, fails).holds
    assert not JointReport(fails, wrong).holds, "claims that are often wrong are no attack"
    assert len(list(JointReport(fails, works).rows())) == 2
