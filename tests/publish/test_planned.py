"""What a release with a proof would be worth is said before anything is spent: counts, sums, every level."""

from __future__ import annotations

from fractions import Fraction
from math import pi, sqrt
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient
from tests.publish.test_proven_sums import DATASET, DOMAIN, POLICY, ingested
from typer.testing import CliRunner

from lustrum.agency import create_agency_app
from lustrum.cli import app
from lustrum.model import InputError
from lustrum.policy.presets import preset
from lustrum.policy.read import parse_policy
from lustrum.protect.proven.measure import measure_sums
from lustrum.protect.proven.plan import LinearEstimate, total_of
from lustrum.protect.proven.sums import ProvenSums
from lustrum.publish.budget import BudgetLedger, PlannedReleases

PLANNED = parse_policy(POLICY.encode(), "The policy")


def errors(planned: PlannedReleases, measure: str | None) -> dict[tuple[str, ...], float]:
    return {table.shown: table.error for table in planned.tables if table.measure == measure}


def test_planned_errors_of_sums_are_those_of_the_noise() -> None:
    """Against what is measured: 100 draws of noise on nobody's sums; within a tenth for 24 tables."""
    from lustrum.model.records import Records

    codes = {v.name: np.zeros(1, dtype=np.int64) for v in DATASET.variables}
    nothing = Records(
        DATASET, codes, {m.name: np.zeros(1, dtype=np.int64) for m in DATASET.measures}
    )
    spec = PLANNED.magnitudes
    assert isinstance(spec, ProvenSums)
    planned = errors(PlannedReleases.of(DATASET, PLANNED), "pay")
    names = [
        " and ".join(DATASET.variables[v].name for v in axis.variables) for axis in DOMAIN.axes
    ]
    off: dict[tuple[str, ...], list[float]] = {}
    clipped = []
    for _ in range(100):
        sums = measure_sums(DOMAIN, spec, nothing)["pay"]
        clipped.append(abs(sums.clipped))
        estimate = LinearEstimate(sums.plan, sums.tables, total_of(sums.plan, sums.tables))
        for subset in DOMAIN.subsets(2):
            table = np.abs(estimate.table(subset)) / 10  # in euros
            off.setdefault(tuple(names[a] for a in subset), []).append(float(table.mean()))
    for shown, found in off.items():
        assert planned[shown] == pytest.approx(np.mean(found), rel=0.25), shown
    stated = PlannedReleases.of(DATASET, PLANNED).clipped["pay"]
    assert stated == pytest.approx(sqrt(2 / pi) * sums.clipped_scale)
    assert stated == pytest.approx(np.mean(clipped), rel=0.4)


def test_releases_share_what_all_may_cost() -> None:
    one, twelve = (PlannedReleases.of(DATASET, PLANNED, releases=n) for n in (1, 12))
    assert (one.rho, twelve.rho) == (3, Fraction(1, 4))
    for measure in (None, "pay"):
        more, less = errors(twelve, measure), errors(one, measure)
        assert set(more) == set(less)
        assert all(more[s] == pytest.approx(sqrt(12) * less[s], rel=0.01) for s in more)
    half = PlannedReleases.of(DATASET, PLANNED, rho=Fraction(3, 2))
    assert half.rho == Fraction(3, 2)
    assert PlannedReleases.of(DATASET).rho == Fraction("2.56")
    assert not PlannedReleases.of(DATASET).clipped


def test_a_policy_without_a_proof_has_no_plan() -> None:
    strict = parse_policy(preset("strict", "town").encode(), "The policy")
    with pytest.raises(InputError, match="no population with a proof"):
        PlannedReleases.of(DATASET, strict)


def test_the_command_prints_counts_sums_and_every_level(tmp_path: Path) -> None:
    data = ingested(tmp_path)
    asked = ["budget", "plan", str(tmp_path / "town.toml"), "--levels", "--releases", "2"]
    printed = CliRunner().invoke(
        app, [*asked, "--policy", str(data / "policies" / "town.toml"), "--people", "900"]
    )
    assert printed.exit_code == 0, printed.output
    lines = " ".join(printed.output.split())
    assert "rho 1.5 a release, for one person's record that is replaced by another" in lines
    assert "Typical error of a sum of pay in the linear estimate, in euros" in lines
    assert "contributions that were clipped" in lines
    assert "900 people are few for these tables" in lines
    assert len(printed.output.splitlines()) > 40
    assert BudgetLedger(data, "merrow").entries() == ()


def test_the_agency_sees_the_plan_on_a_page(tmp_path: Path) -> None:
    data = ingested(tmp_path)
    BudgetLedger(data, "merrow").set_limit(Fraction(5), "the board")
    with TestClient(
        create_agency_app(data=data, keys=False), base_url="http://127.0.0.1"
    ) as client:
        assert "/datasets/town/budget" in client.get("/datasets/town").text
        page = client.get("/datasets/town/budget?releases=12").text
        refused = client.get("/datasets/town/budget?releases=0&rho=x")
    said = " ".join(page.split())
    assert "Rho 0 of 5 is spent for the population merrow; 5 is left" in said
    assert "Each release would cost rho 0.25" in said
    assert "Typical errors of sums of Pay, in euros" in said
    assert "area by age" in said
    assert refused.status_code == 422
    assert BudgetLedger(data, "merrow").spent == 0
