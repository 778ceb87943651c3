"""Neighbours, in a quick form: they find people in a file of true cells, and not in one with a proof."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from attacks.neighbours import Judged, Publish, Report, Trees, attack
from attacks.neighbours_report import (
    insertions,
    kin,
    most_gained,
    most_named,
    paid,
    paid_planted,
    planted,
    power,
    proven,
    within_promise,
)
from attacks.sums.amounts import attack_amounts

from lustrum.protect.privacy.mechanism import Measured, measure
from lustrum.protect.proven import measure as measuring
from lustrum.protect.proven.method import ProvenPopulation

FALSE_ALARM = 1e-4
"""How often a test of a file that tells nothing fails by chance, at most: noise has no seed."""
RHO = 0.1
proof: Publish = proven(ProvenPopulation(rho=RHO))


@pytest.mark.parametrize("publish", [planted, proof])
def test_neighbours_name_people_in_the_file_only_where_it_shows_true_cells(
    publish: Publish,
) -> None:
    make = partial(kin, types=40, own=0.3)
    found = attack(
        make(2000), publish, shadows=1, targets=2, most=1000, known=make(10_000), fewest=500
    )
    gains = {r: found.worst(r, FALSE_ALARM)[2] for r in found.readers}
    members = {reader: found.membership(reader)[1] for reader in found.members}
    assert gains.pop("no file") <= 0
    if publish is planted:
        assert min(gains.values()) > 0.05
        assert gains["learnt"] > 0.2
        assert members["learnt"] > 0.2
    else:
        assert set(gains) == {"row", "all rows", "learnt", "noisy tables"}
        assert max(gains.values()) <= 0.01
        # The promise allows 3 %; chance among 2,000 people in and out adds 2.5 points less often than stated.
        assert max(members.values()) <= power(RHO) + 0.025


@pytest.mark.parametrize("publish", [planted, proof])
def test_insertions_name_counts_only_where_true_cells_are_shown(publish: Publish) -> None:
    found = insertions(kin(3000, 40, 0.25), publish, 100, 4)
    if publish is planted:
        assert found["file"].named.odds == 1.0
    else:
        # Four releases cost four times rho; the rest is chance among 300 cells.
        assert set(found) == {"file", "noisy tables", "no file"}
        for reader in ("file", "noisy tables"):
            assert found[reader].named.odds <= most_named(4 * RHO) + 4 * (0.25 / 300) ** 0.5


def test_what_a_promise_allows() -> None:
    assert [round(100 * power(rho)) for rho in (0.5, 2.56, 5.12)] == [9, 47, 81]
    assert [round(100 * most_named(rho)) for rho in (0.0, 2.56)] == [33, 83]


def test_a_gain_is_bounded_for_all_bins_together() -> None:
    one = Judged([400, 400], [200, 160])
    assert one.gain == pytest.approx(0.1)
    assert one.at_least(1) == pytest.approx(0.1 - 1.645 * (0.49 / 400) ** 0.5, abs=1e-4)
    assert one.at_least(50) < one.at_least(1)
    report = Report(
        ("v",), 300, {("v", 0.0, "row"): one, ("v", 5.0, "row"): Judged([9, 9], [9, 0])}
    )
    assert report.worst("row") == ("v, rows of 0 or more", one, one.at_least(1))


def test_membership_takes_as_many_of_equal_scores_as_keep_to_the_rate() -> None:
    report = Report(("v",))
    report.members["row"] = ([np.repeat([0.0, 1.0], 50)], [np.repeat([0.0, 1.0], [98, 2])])
    area, found = report.membership("row")
    assert area == pytest.approx(0.5 + 0.5 * (0.5 - 0.02))
    assert found == pytest.approx(0.25)


def test_trees_learn_what_two_features_say_together() -> None:
    features = np.random.default_rng(1).random((4000, 3))
    true = (features[:, 0] > 0.5) != (features[:, 1] > 0.3)
    said = Trees(features[:3000], true[:3000].astype(float)).score(features[3000:]) > 0
    assert (said == true[3000:]).mean() > 0.9


THIRD, EACH = 1 / 3, 1.28
"""What is left of the noise, and what counts and sums cost: that noise is then told apart for certain."""


def a_third_of_the_noise(values: np.ndarray, mechanism: str, **cost: float) -> Measured:
    drawn = measure(values, mechanism, **cost)  # type: ignore[arg-type]
    near = values + np.rint(THIRD * (drawn.values - values)).astype(np.int64)
    return Measured(near, THIRD * drawn.scale)


@pytest.mark.parametrize("case", ["proof", "a third of the noise", "true tables"])
def test_amounts_are_read_off_sums_only_where_the_noise_is_not_what_was_paid_for(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The insider knows everybody else, so that rho alone stops this reader."""
    if case == "a third of the noise":
        monkeypatch.setattr(measuring, "measure", a_third_of_the_noise)
    publish = paid_planted if case == "true tables" else paid(EACH, EACH)
    found = attack_amounts(publish, 8000, fewest=1000)
    assert found.worst("no file", FALSE_ALARM)[2] <= 0
    allowed = most_gained(2 * EACH), power(2 * EACH)
    assert within_promise(found, allowed) == (case == "proof")
    if case == "proof":
        gains = [found.worst(reader, FALSE_ALARM)[2] for reader in ("file", "noisy tables")]
        assert max(gains) <= 0.01
