"""Maps: the same for any number of workers, resumable, honest about what was not measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import lustrum as lu
from lustrum.demo import businesses, description_path
from lustrum.model import InputError, Table, TableQuery
from lustrum.rumap import (
    BeforeCounting,
    Cache,
    HypercubeTables,
    HypercubeView,
    default_methods,
    grid,
    growing_map,
    sweep_of,
)
from lustrum.rumap.choose import best_of
from lustrum.rumap.grids import MapMethod
from lustrum.runtime.stop import Stopped, stopping
from lustrum.tabulate import read_description
from lustrum.utility import AverageDistance

COUNTS = np.random.default_rng(7).negative_binomial(1, 0.1, size=(6, 5, 3))
TABLE = Table.from_counts(COUNTS, names=["area", "age", "faith"])
METHODS = [
    *grid("random-rounding", base=[3, 5]),
    *grid("conventional-rounding", base=3),
    *grid("markov-perturbation", theta=0.2),
    *grid("differential-privacy", epsilon=1.0),
    *grid("none"),
]


def test_the_figures_do_not_depend_on_workers_or_on_the_other_methods() -> None:
    one = lu.rumap(TABLE, METHODS, replications=4, workers=1)
    two = lu.rumap(TABLE, METHODS, replications=4, workers=2)
    assert one.to_arrow().equals(two.to_arrow())
    assert one.draws_to_arrow().equals(two.draws_to_arrow())
    last = lu.rumap(TABLE, METHODS[3:4], replications=4, workers=1)
    assert last.points[-1].figures == one.points[5].figures


def test_another_seed_gives_other_draws() -> None:
    first, second = (lu.rumap(TABLE, METHODS[:1], replications=2, seed=s) for s in (1, 2))
    assert first.points[-1].utility != second.points[-1].utility


def test_a_method_without_chance_is_drawn_twice_and_no_more() -> None:
    found = lu.rumap(TABLE, METHODS, replications=6)
    draws = {p.label: p.draws for p in found.points}
    assert draws["conventional-rounding"] == draws["none"] == 1
    assert draws["random-rounding base 3"] == 6
    fixed = next(p for p in found.points if p.label == "conventional-rounding")
    assert fixed.risk_range == (fixed.risk, fixed.risk)
    assert fixed.region() == [(fixed.utility, fixed.risk)]


def test_the_corners_are_the_original_data_and_no_data() -> None:
    found = lu.rumap(TABLE, grid("none"))
    nothing, original, unchanged = found.points
    assert (nothing.risk, nothing.utility) == (0.0, 0.0)
    assert original.risk == pytest.approx(lu.risk.EntropyRisk().before(TABLE))
    assert original.utility == 1.0
    # A release of everything as it is scores as the original data do.
    assert (unchanged.risk, unchanged.utility) == pytest.approx((original.risk, original.utility))


def test_a_method_that_does_not_fit_says_why_and_the_others_are_measured() -> None:
    found = lu.rumap(TABLE, [*grid("multiplicative-noise"), *grid("random-rounding", base=3)])
    odd, fine = found.points[2:]
    assert np.isnan(odd.risk)
    assert "magnitudes" in odd.note
    assert np.isfinite(fine.risk)
    assert found.dominators() == [-2, -2, -2, -1]
    row = found.to_arrow().to_pylist()[2]
    assert not row["frontier"]
    assert "magnitudes" in row["note"]


def test_a_stopped_map_goes_on_from_its_cache(tmp_path: Path) -> None:
    path = tmp_path / "map.jsonl"
    seen = []

    def progress(done: int, total: int) -> None:
        seen.append(done)

    with stopping(lambda: len(seen) >= 5), pytest.raises(Stopped):
        lu.rumap(TABLE, METHODS, replications=4, workers=1, cache=path, progress=progress)
    kept = len(Cache(path))
    assert 5 <= kept < 4 * len(METHODS)
    assert path.stat().st_mode & 0o077 == 0
    with path.open("a", encoding="utf-8") as file:
        file.write('{"key": "cut o')
    resumed = lu.rumap(TABLE, METHODS, replications=4, workers=1, cache=path)
    assert resumed.to_arrow().equals(lu.rumap(TABLE, METHODS, replications=4).to_arrow())


def test_a_cache_of_other_data_or_another_seed_is_not_used(tmp_path: Path) -> None:
    cache = Cache(tmp_path / "map.jsonl")
    first = lu.rumap(TABLE, METHODS[:1], replications=2, cache=cache)
    size = len(cache)
    changed = COUNTS.copy()
    changed[0, 0, 0] += 1
    other = Table.from_counts(changed, names=["area", "age", "faith"])
    lu.rumap(other, METHODS[:1], replications=2, cache=cache)
    lu.rumap(TABLE, METHODS[:1], replications=2, seed=5, cache=cache)
    assert len(cache) == 3 * size
    again = lu.rumap(TABLE, METHODS[:1], replications=2, cache=cache)
    assert len(cache) == 3 * size
    assert again.to_arrow().equals(first.to_arrow())


def test_a_map_grows_by_one_draw_at_a_time() -> None:
    maps = list(growing_map(sweep_of(TABLE, METHODS[:2], replications=3)))
    assert [len(m.draws) for m in maps] == [1, 2, 3, 4, 5, 6]
    # With one draw an interval is a point: no method may be named before all are drawn.
    chosen = [best_of(one, 1.0) for one in maps]
    assert all(choice.method is None and "to come" in choice.reason for choice in chosen[:-1])
    assert chosen[-1].method is not None


def test_the_confidence_region_holds_the_mean_as_often_as_it_says() -> None:
    """Hotelling's ellipse of 10 draws, 400 times: fewer than 355 hits happen once in a million runs."""
    from lustrum.rumap.points import Draw, point_of

    rng = np.random.default_rng(3)
    hits = 0
    for _ in range(400):
        pair = rng.multivariate_normal([0.5, 0.9], [[4e-4, 1e-4], [1e-4, 1e-4]], size=10)
        draws = [Draw("t", 0, i, {"r": r, "u": u}) for i, (r, u) in enumerate(pair.tolist())]
        point = point_of(draws, "x", "x", {}, "r", "u")
        outline = np.array(point.region(200))
        # Inside a convex outline every edge turns the same way around the point.
        edge = np.roll(outline, -1, axis=0) - outline
        to = np.array([0.9, 0.5]) - outline
        hits += bool((edge[:, 0] * to[:, 1] - edge[:, 1] * to[:, 0] >= 0).all())
    assert 355 <= hits <= 399


def test_several_tables_are_judged_by_the_worst_or_on_average() -> None:
    tables = {"whole": TABLE, "part": TABLE.take([[0, 1], range(5), range(3)])}
    found = lu.rumap(tables, METHODS[:2], replications=3)
    own = [p for p in found.points if p.label == "random-rounding base 3"]
    worst = next(p for p in found.over("worst") if p.label == own[0].label)
    mean = next(p for p in found.over("mean") if p.label == own[0].label)
    assert (worst.risk, worst.utility) == (max(p.risk for p in own), min(p.utility for p in own))
    assert mean.risk == pytest.approx(np.mean([p.risk for p in own]))
    with pytest.raises(InputError, match="several tables"):
        found.of()


def test_a_measure_that_is_better_when_lower_turns_the_frontier_around() -> None:
    methods = grid("conventional-rounding", base=[3, 10])
    higher = lu.rumap(TABLE, methods, ["table-entropy", "hellinger"])
    lower = lu.rumap(TABLE, methods, ["table-entropy", AverageDistance()])
    assert [p.label for p in higher.frontier()] == [p.label for p in lower.frontier()]
    assert lower.sign == -1.0


def test_a_hypercube_can_be_protected_before_anything_is_counted() -> None:
    cube = HypercubeTables(TABLE, {"t": HypercubeView(("age", "faith"), {"area": ("1", "2")})})
    assert np.array_equal(cube.tables["t"].values, COUNTS[:2].sum(axis=0))
    method = grid("random-rounding", base=3)[0]
    release = cube.protect(BeforeCounting(method), np.random.default_rng(1))["t"]
    assert (release.published % 3 == 0).all()
    kept = BeforeCounting(grid("semi-controlled-rounding", base=3)[0], within="area")
    before = cube.protect(kept, np.random.default_rng(1))["t"]
    assert abs(int(before.published.sum()) - int(COUNTS[:2].sum())) < 6
    found = lu.rumap(cube, [method, BeforeCounting(method)], replications=3)
    after, pre = found.points[2:]
    assert pre.label == "random-rounding before counting"
    # Rounding errors of the hypercube add up.
    assert pre.utility < after.utility


def test_magnitudes_have_a_map_of_their_own() -> None:
    values = np.random.default_rng(2).integers(10, 5000, size=(4, 3))
    table = Table(TABLE.take([range(4), range(3), [0]]).axes[:2], values, kind="magnitude")
    found = lu.rumap(table, grid("multiplicative-noise", level="cell"), replications=3)
    assert found.risk == "close-estimates"
    assert found.points[1].risk == 1.0
    assert 0 <= found.points[2].risk <= 1


def test_magnitudes_of_a_register_are_judged_by_who_contributes() -> None:
    description = read_description(description_path("businesses"))
    query = TableQuery.from_mapping(
        {"dataset": "businesses", "by": ["size", "region"], "measure": "turnover", "totals": True}
    )
    frame = businesses(1500, 1)
    table = Table.from_frame(frame, query, dataset=description, ranks=2)
    found = lu.rumap(table, replications=2)
    assert found.risk == "close-estimates"
    points = {p.family: p for p in found.points}
    assert set(points) >= {"suppression", "multiplicative-noise", "cell-key-magnitude"}
    assert all(np.isfinite(p.risk) and np.isfinite(p.utility) for p in points.values())
    # What is suppressed by the rule that judges is never known exactly; the true table is.
    assert points["suppression"].risk < 0.6 < points["original data"].risk == 1.0


def test_samples_are_judged_by_r2() -> None:
    methods = grid("simple-sampling", fraction=[0.05, 0.5])
    few, many = lu.rumap(TABLE, methods, ["r2", "hellinger-shares"], replications=4).points[2:]
    assert few.risk < many.risk
    assert few.utility > many.utility  # a distance: lower is better


def test_the_default_methods_fit_counts() -> None:
    small = TABLE.take([range(3), range(3), range(2)])
    found = lu.rumap(small, default_methods(small), replications=2, attackers=["outsider"])
    assert found.risk == "cell-certainty: outsider"
    assert [p.label for p in found.points if not np.isfinite(p.risk)] == []


def test_mistakes_are_one_sentence() -> None:
    with pytest.raises(InputError, match="one method or more"):
        lu.rumap(TABLE, [])
    with pytest.raises(InputError, match="unprotected tables only"):
        lu.rumap(TABLE, METHODS, ["uniques"])
    with pytest.raises(InputError, match="has no parameter 'bass'"):
        grid("random-rounding", bass=3)
    with pytest.raises(InputError, match="one replication"):
        lu.rumap(TABLE, METHODS, replications=0)


@pytest.mark.parametrize(
    "method",
    [
        *grid("protected-population", base=3, max_variables=2, sweeps=3),
        *grid("proven-population", rho=2.56),
    ],
)
def test_a_protected_population_adds_up_in_every_table_of_its_hypercube(method: MapMethod) -> None:
    cube = HypercubeTables(
        TABLE, {"fine": HypercubeView(("area", "age")), "coarse": HypercubeView(("age",))}
    )
    made = cube.protect(method, np.random.default_rng(1))
    assert np.array_equal(made["fine"].published.sum(axis=0), made["coarse"].published)
    for name, release in made.items():
        true = cube.tables[name].values
        assert ((release.least <= true) & (true <= release.most)).all()
