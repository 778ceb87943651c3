"""Risks of samples, slices and close estimates on tables so small that each figure can be worked out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from lustrum.model import InputError, Release, Table
from lustrum.model.table import Contributions
from lustrum.risk.batch import risks_of_many
from lustrum.risk.close_estimates import CloseEstimates
from lustrum.risk.counts import Cells, cells_of
from lustrum.risk.estimate import (
    QUANTILES,
    ModelChoice,
    SampleRisk,
    _folds,
    choose_model,
    draw_risks,
    estimate_risk,
)
from lustrum.risk.population import KnownPopulation, LogLinear, PolyaUrn
from lustrum.risk.r1 import R1, r1, r1_values
from lustrum.risk.r2 import R2, r2, r2_values
from lustrum.risk.slices import slice_risks

WEIGHTS = (0.3, 0.5, 0.2)


# Many populations at once


def test_compiled_risks_hold_where_several_cells_are_empty_in_both():
    """Four empty cells of the population and seven of the sample, of which one to four are the same."""
    sample = np.array([3, 2, 1, 0, 0, 0, 0, 0, 0, 0])
    rows = np.zeros((4, 10), dtype=int)
    for row, empty in enumerate(([0, 1, 2, 9], [0, 1, 8, 9], [0, 7, 8, 9], [6, 7, 8, 9])):
        rows[row] = [4, 3, 5, 2, 6, 1, 2, 3, 7, 1]
        rows[row, empty] = 0
    for weights in (WEIGHTS, (1, 0, 0), (0, 1, 0), (0, 0, 1)):
        first, second = risks_of_many(rows, sample, weights)
        assert first == pytest.approx(r1_values(rows, weights), abs=1e-12)
        assert second == pytest.approx(r2_values(rows, sample, weights), abs=1e-12)


def test_counts_beyond_the_lookup_and_beyond_64_bits_are_measured():
    large = np.array([[3_000_000, 5_000_000, 0, 2], [10**9, 1, 1, 1]])
    sample = np.array([2_000_000, 7, 0, 0])
    first, second = risks_of_many(large, sample, WEIGHTS)
    assert first == pytest.approx(r1_values(large, WEIGHTS))
    assert second == pytest.approx(r2_values(large, sample, WEIGHTS))
    # Products of the totals at 2**62 and above go the plain way; n N F would not fit 64 bits.
    huge = np.array([[1, 2, 3], [2**40, 2**40, 2**41]])
    wide = np.array([2**20, 0, 2**20])
    first, second = risks_of_many(huge, wide, WEIGHTS)
    assert first == pytest.approx(r1_values(huge, WEIGHTS))
    assert second == pytest.approx(r2_values(huge, wide, WEIGHTS))


# Estimates


class Listed:
    """A model that draws populations from a list, one after the other."""

    label = "listed"

    def __init__(self, populations):
        self.populations = np.array(populations)
        self.place = 0

    def draw(self, sample, N, rng, draws=1000):
        picks = (self.place + np.arange(draws)) % len(self.populations)
        self.place += draws
        return self.populations[picks]

    def details(self, sample, N):
        return {"N": N}


POPULATIONS = [[8, 2, 0], [4, 4, 2], [6, 3, 1], [9, 1, 0]]


def test_an_estimate_is_the_mean_over_what_is_drawn(monkeypatch):
    sample = [2, 1, 0]
    risks = [r2(p, sample) for p in POPULATIONS]
    for at_once in (1, 6, 7, 1 << 22):
        monkeypatch.setattr("lustrum.risk.estimate._CELLS_AT_ONCE", at_once)
        drawn = draw_risks(Listed(POPULATIONS), sample, 10, R2(), 4, np.random.default_rng(0))
        assert drawn == pytest.approx(risks)
        five = draw_risks(Listed(POPULATIONS), sample, 10, R2(), 5, np.random.default_rng(0))
        assert five == pytest.approx([*risks, risks[0]])
    first = draw_risks(Listed(POPULATIONS), sample, 10, R1(), 4, np.random.default_rng(0))
    assert first == pytest.approx([r1(p) for p in POPULATIONS])
    own = R2(weights=(0.6, 0.1, 0.3))
    found = draw_risks(Listed(POPULATIONS), sample, 10, own, 4, np.random.default_rng(0))
    assert found == pytest.approx([r2(p, sample, own.weights) for p in POPULATIONS])
    with pytest.raises(InputError, match="not the L2 norm"):
        draw_risks(Listed(POPULATIONS), sample, 10, R1(weights="l2"), 4, np.random.default_rng(0))


def test_an_estimate_states_mean_spread_and_quantiles():
    sample = [2, 1, 0]
    found = estimate_risk(sample, 10, [Listed(POPULATIONS)], draws=4, rng=7)
    risks = np.array([r2(p, sample) for p in POPULATIONS])
    (model,) = found.models
    assert model.mean == pytest.approx(risks.mean())
    assert model.sd == pytest.approx(np.sqrt(((risks - risks.mean()) ** 2).sum() / 3))
    assert model.standard_error == pytest.approx(model.sd / 2)
    assert QUANTILES == (0.05, 0.25, 0.5, 0.75, 0.95)
    assert [level for level, _ in model.quantiles] == list(QUANTILES)
    assert dict(model.quantiles)[0.5] == pytest.approx(np.median(risks))
    assert (model.draws, model.details) == (4, {"N": 10})
    assert (found.people, found.sampled, found.fraction) == (10, 3, 0.3)
    assert found.provenance["seed"] == 7
    assert found.provenance["draws"] == 4
    assert found.provenance["models"] == ["listed"]
    pair = estimate_risk(sample, 10, [Listed(POPULATIONS)], draws=2, rng=7).models[0]
    assert pair.sd == pytest.approx(abs(risks[0] - risks[1]) / np.sqrt(2))
    for no_scale in ([5], [0, 0]):
        with pytest.raises(InputError, match="The sample has"):
            estimate_risk(no_scale, 10, [Listed(POPULATIONS)], draws=1)
    one = estimate_risk(sample, 10, [Listed(POPULATIONS)], draws=1, rng=np.random.default_rng(1))
    assert (one.models[0].sd, one.provenance["seed"]) == (0.0, None)
    with pytest.raises(InputError, match="one or more"):
        estimate_risk(sample, 10, [])
    with pytest.raises(InputError, match="R1 or R2"):
        estimate_risk(sample, 10, measure=object())
    labels = [m.label for m in (LogLinear(), PolyaUrn())]
    assert [m.model for m in estimate_risk(sample, 10, draws=1, rng=1).models] == labels


def test_two_samples_of_one_digest_are_one_sample():
    digests = [
        estimate_risk(s, 10, [Listed([np.array(s) * 2])], draws=1, rng=1).provenance[
            "sample_sha256"
        ]
        for s in ([[2, 1, 1, 0]], [[2, 1], [1, 0]], [[2, 1], [1, 0]], [[2, 1], [0, 1]])
    ]
    assert len(set(digests)) == 3
    assert digests[1] == digests[2]


def shown(table: Table, values) -> Release:
    published = np.array(values, dtype=np.int64)
    return Release(table.axes, published, np.full(published.shape, "F"), {"method": "by-hand"})


def test_the_risk_of_a_sample_is_r2_over_populations_of_its_size():
    table = Table.from_counts([[4, 0], [1, 1]])
    people = [[8, 1], [2, 1]]
    known = SampleRisk(fraction=0.5, model=KnownPopulation(people), draws=2)
    assert known.before(table) == pytest.approx(r2(people, table))
    other = shown(table, [[3, 0], [3, 0]])
    assert known.after(table, other) == pytest.approx(r2(people, [[3, 0], [3, 0]]))
    assert known.of(table) == known.before(table)
    assert known.of(table, other) == known.after(table, other)
    weighted = SampleRisk(
        fraction=0.5, model=KnownPopulation(people), weights=(0.2, 0.2, 0.6), draws=1
    )
    assert weighted.before(table) == pytest.approx(r2(people, table, (0.2, 0.2, 0.6)))
    # A census is its own population.
    whole = SampleRisk(fraction=1, model=KnownPopulation(table), draws=1)
    assert whole.before(table) == pytest.approx(r1(table))
    # The size is rounded, and never below the sample.
    third = SampleRisk(fraction=0.55, model=KnownPopulation([[8, 1], [1, 1]]), draws=1)
    assert third.before(table) == pytest.approx(r2([[8, 1], [1, 1]], table))


def test_models_of_a_sample_by_name_and_seed():
    table = Table.from_counts([[4, 0], [1, 1]])
    for word, model in (("polya-urn", PolyaUrn()), ("log-linear", LogLinear())):
        drawn = model.draw(table, 12, np.random.default_rng(3), 20).reshape(20, 4)
        wanted = r2_values(drawn, table.values.ravel()).mean()
        own = SampleRisk(fraction=0.5, model=word, draws=20, seed=3)
        assert own.before(table) == pytest.approx(wanted)
    # A sample with the same counts and an impossible cell is another one.
    mask = np.array([[False, True], [False, False]])
    marked = replace(table, structural=mask)
    own = SampleRisk(fraction=0.5, draws=20, seed=3)
    drawn = PolyaUrn().draw(marked, 12, np.random.default_rng(3), 20)[:, ~mask]
    assert own.before(marked) == pytest.approx(r2_values(drawn, table.values[~mask]).mean())
    assert own.before(marked) != own.before(table)
    assert SampleRisk(fraction=0.5, weights=[0.3, 0.5, 0.2]).weights == (0.3, 0.5, 0.2)
    with pytest.raises(InputError, match="different shapes"):
        own.after(table, shown(Table.from_counts([1, 2]), [1, 2]))
    for no_scale in ([5], [0, 0]):
        with pytest.raises(InputError, match="The sample has"):
            own.before(Table.from_counts(no_scale))
    same = [[4, 0], [1, 1]]
    for wrong in (
        lambda: own.before(same),
        lambda: own.after(table, same),
        lambda: own.after(same, shown(table, same)),
    ):
        with pytest.raises(InputError, match="risk measure 'sample-r2'"):
            wrong()
    for wrong in (
        {"fraction": 0.5, "weights": (1, 1, 1)},
        {},
        {"fraction": 0.0},
        {"fraction": 1.5},
        {"fraction": 0.5, "model": "urn"},
    ):
        with pytest.raises(InputError):
            SampleRisk(**wrong)


# The choice of a model


def test_a_model_is_chosen_by_its_score():
    sample = [[30, 10], [10, 30]]
    models = [LogLinear(), LogLinear(order=2)]
    found = choose_model(sample, models)
    assert [label for label, _ in found.scores] == [m.label for m in models]
    assert [score for _, score in found.scores] == [m.fit(sample).aic for m in models]
    assert found.best is models[1]
    # The first of equals.
    twice = [LogLinear(order=2), LogLinear([(0, 1)])]
    assert choose_model(sample, twice).best is twice[0]
    text = str(ModelChoice("aic", models[1], (("log-linear, independence", 1.5),)))
    assert text == "log-linear, independence: 1.5000"
    assert str(found).endswith(" *")
    assert choose_model(sample, models, N=80).best is models[1]


class Even:
    """A model that predicts the same shares whatever it was fitted to, and notes what it saw."""

    label = "even"

    def __init__(self, shares):
        self.shares, self.seen = np.array(shares), []

    def predictive(self, sample, N):
        self.seen.append((sample.counts.tolist(), N))
        return self.shares


def test_cross_validation_predicts_each_fold_from_the_others():
    sample = np.array([[3, 1], [2, 0]])
    shares = np.array([[0.5, 0.25], [0.25, 0.0]])
    model = Even(shares)
    found = choose_model(sample, [model], by="cv", rng=1, folds=3, N=60)
    # Two of six people are held back each time; one more person is spread over the four cells.
    mixed = (4 * shares + 0.25) / 5
    loss = -(sample[sample > 0] * np.log(mixed[sample > 0])).sum() / 6
    assert found.scores[0][1] == pytest.approx(loss)
    assert [N for _, N in model.seen] == [60] * 3
    held = [sample - np.array(rest) for rest, _ in model.seen]
    assert [part.sum() for part in held] == [2, 2, 2]
    assert sum(held).tolist() == sample.tolist()
    assert choose_model(sample, [LogLinear()], by="cv", rng=1, folds=6).scores[0][1] > 0
    parts = _folds(cells_of(sample), 6, np.random.default_rng(2))
    assert [part.sum() for part in parts] == [1] * 6
    # Everybody is put into folds at random: with one seed and another they differ.
    seeds = [_folds(cells_of(sample), 3, np.random.default_rng(s))[0].tolist() for s in range(9)]
    assert len({tuple(part) for part in seeds}) > 1
    # Without the size of the population a log-linear model is told the sample's.
    noted = Even(shares)
    noted.__class__ = type("EvenLogLinear", (Even, LogLinear), {"label": "even"})
    choose_model(sample, [noted], by="cv", rng=1, folds=2)
    assert [N for _, N in noted.seen] == [6, 6]
    # An impossible cell gets nothing of the person who is spread.
    possible = np.array([[True, True], [True, False]])
    model = Even(shares)
    choose_model(Cells(sample, possible, ("a", "b")), [model], by="cv", rng=1, folds=2, N=60)
    score = choose_model(
        Cells(sample, possible, ("a", "b")), [Even(shares)], by="cv", rng=1, folds=2, N=60
    ).scores[0][1]
    mixed = (3 * shares + possible / 3) / 4
    assert score == pytest.approx(-(sample[possible] * np.log(mixed[possible])).sum() / 6)


# Slices


class Noted:
    """A measure that notes the parts of a release that it is asked about."""

    def __init__(self):
        self.parts = []

    def before(self, table):
        return 0.25

    def after(self, table, release):
        self.parts.append((table, release))
        return 0.5


def test_a_release_is_cut_in_all_its_parts():
    table = Table.from_counts([[4, 5, 6], [7, 8, 9]])
    numbers = np.arange(6).reshape(2, 3)
    release = Release(
        table.axes,
        numbers,
        np.array([["F", "D", "F"], ["F", "F", "D"]]),
        {"method": "by-hand"},
        least=numbers - 1,
        most=numbers + 1,
        structural=numbers == 4,
        undefined=numbers == 5,
        errors=numbers * 2,
        grades=np.array([["a", "b", "c"], ["d", "e", "f"]]),
    )
    measure = Noted()
    found = slice_risks(measure, table, [1], release)
    assert [s.risk for s in found] == [0.5] * 3
    for place, (part, cut) in enumerate(measure.parts):
        assert part.values.tolist() == table.values[:, [place]].tolist()
        assert cut.axes == part.axes
        for name in (
            "numbers",
            "status",
            "least",
            "most",
            "structural",
            "undefined",
            "errors",
            "grades",
        ):
            whole = getattr(release, name)
            assert getattr(cut, name).tolist() == whole[:, [place]].tolist(), name
    plain = Noted()
    slice_risks(plain, table, [0], shown(table, table.values))
    assert plain.parts[0][1].low is None
    assert [s.risk for s in slice_risks(Noted(), table, [0])] == [0.25, 0.25]
    # A sample is cut like a release.
    sample = Noted()
    slice_risks(sample, table, [0], [[1, 2, 3], [4, 5, 6]])
    assert sample.parts[1][1].values.ravel().tolist() == [4, 5, 6]
    with pytest.raises(InputError, match="different shapes"):
        slice_risks(R2(), table, [0], [[1, 2], [3, 4]])
    # So is a table, with its totals and impossible cells.
    whole = Noted()
    mask = np.array([[False, True, False], [False, False, False]])
    slice_risks(whole, table, [0], replace(table, structural=mask))
    assert whole.parts[0][1].structural.tolist() == [[False, True, False]]


# Close estimates


def released(table: Table, values, low, high, status=None) -> Release:
    made = shown(table, values)
    return replace(
        made,
        least=np.array(low, dtype=np.int64),
        most=np.array(high, dtype=np.int64),
        status=made.status if status is None else np.array(status),
    )


def test_close_estimates_by_hand():
    table = Table.from_counts([40, 100, 0, 20])
    # 43 is within 10 percent of 40 by 4, 120 is not of 100; the hidden 20 has a range of 10; 0 is not judged.
    release = released(
        table, [44, 120, 3, 0], [36, 60, 0, 15], [52, 160, 6, 25], ["F", "F", "F", "D"]
    )
    measure = CloseEstimates(audit="cell")
    assert measure.cells(table, release).tolist() == pytest.approx([1.0, 20 / 100, 4 / 10])
    assert measure.after(table, release) == pytest.approx((1 + 0.2 + 0.4) / 3)
    assert measure.before(table) == 1.0
    assert measure.judged(table).tolist() == [True, True, False, True]
    # 45 is no longer close to 40, and the range is wide: 8 of 16.
    farther = released(table, [45, 120, 3, 0], [36, 60, 0, 15], [52, 160, 6, 25])
    assert measure.cells(table, farther)[0] == pytest.approx(8 / 16)
    # A range of one value, or one no wider than the interval, gives the cell away.
    sure = released(table, [0, 0, 0, 0], [40, 95, 0, 0], [40, 105, 0, 10**6], ["D", "D", "D", "D"])
    assert measure.cells(table, sure)[:2].tolist() == [1.0, 1.0]
    assert measure.cells(table, sure)[2] == pytest.approx(4 / 10**6)
    twice = CloseEstimates(audit="cell", percent=20.0)
    assert twice.cells(table, farther).tolist() == pytest.approx([1.0, 1.0, 8 / 10])
    # Without an upper end nothing is close; nobody above 0 is nobody to protect.
    open_end = shown(table, [0, 0, 0, 0])
    open_end = replace(open_end, status=np.full(4, "D"))
    assert measure.cells(table, open_end).tolist() == [0.0, 0.0, 0.0]
    nobody = Table.from_counts([0, 0])
    assert measure.before(nobody) == 0.0
    assert measure.after(nobody, shown(nobody, [0, 0])) == 0.0
    assert measure.cells(nobody, shown(nobody, [0, 0])).size == 0


def test_readers_calculate_as_far_as_they_are_said_to():
    from audit.fibres import axis

    line = axis("r", [0], [1], [2], [0, 1, 2])
    table = replace(Table.from_counts([10, 10, 10, 30]), axes=(line,))
    values = np.array([9, 9, 9, 30])
    low, high = np.array([5, 5, 5, 30]), np.array([12, 12, 12, 30])
    release = Release(
        table.axes, values, np.full(4, "F"), {"method": "by-hand"}, least=low, most=high
    )
    # 9 is not within 5 percent of 10: widths of 7, and of 6 where the total says that each is 6 or more.
    for audit, width in (("cell", 7), ("propagate", 6), ("sharp", 6)):
        measure = CloseEstimates(percent=5.0, audit=audit)
        assert measure.cells(table, release).tolist() == pytest.approx([1 / width] * 3)
    with pytest.raises(InputError, match="differ in shape or decimals"):
        CloseEstimates().cells(table, replace(release, decimals=1))
    with pytest.raises(InputError, match="differ in shape or decimals"):
        CloseEstimates().cells(Table.from_counts([1, 2, 3]), release)
    for percent in (0, -1, np.inf, np.nan, True, "5"):
        with pytest.raises(InputError, match="'percent' must be a number above 0"):
            CloseEstimates(percent=percent)
    with pytest.raises(InputError, match="'cell', 'propagate' or 'sharp'"):
        CloseEstimates(audit="far")
    assert CloseEstimates(percent=0.5).percent == 0.5
    for wrong in (
        lambda: CloseEstimates().judged([1, 2]),
        lambda: CloseEstimates().cells([1, 2], release),
        lambda: CloseEstimates().cells(table, [1, 2]),
    ):
        with pytest.raises(InputError):
            wrong()
    mapping = CloseEstimates(percent=5.0).to_mapping()
    assert mapping == {"measure": "close-estimates", "percent": 5.0, "audit": "propagate"}


def test_a_sharp_reader_searches_among_whole_numbers():
    from audit.fibres import axis

    # Sums of pairs settle each part, which narrowing one sum at a time does not see.
    pairs = axis("r", [0], [1], [2], [0, 1], [1, 2], [0, 2])
    table = replace(Table.from_counts([20, 30, 20, 50, 50, 40]), axes=(pairs,))
    release = shown(table, [0, 0, 0, 50, 50, 40])
    release = replace(release, status=np.array(["D"] * 3 + ["F"] * 3))
    assert CloseEstimates(audit="sharp").cells(table, release).tolist() == [1.0] * 3
    # Propagation leaves 0 to 40, 10 to 50 and 0 to 40.
    found = CloseEstimates().cells(table, release)
    assert found.tolist() == pytest.approx([4 / 40, 6 / 40, 4 / 40])


def test_negative_values_and_narrow_ranges():
    table = replace(
        Table.from_counts([20, 2, 2, 5]), values=np.array([-20, 2, 2, 5]), kind="magnitude"
    )
    release = released(table, [0, 0, 0, 5], [-30, 2, 2, 5], [0, 2, 3, 5], ["D", "D", "D", "F"])
    # Nobody is below -20, so that the first range is 20 wide; a range of one value is certain.
    found = CloseEstimates(audit="cell").cells(table, release)
    assert found.tolist() == pytest.approx([4 / 20, 1.0, 0.4, 1.0])


def test_the_rule_of_p_percent_judges_known_contributions():
    # 90 and 12 of 102 beside 1: within 10 percent the second knows the first; 50, 30 and 20 are safe.
    value = np.array([[90, 12], [50, 30]])
    table = Table.from_counts([103, 100])
    table = replace(
        table, contributions=Contributions(value, np.array([[1, 2], [3, 4]])), kind="magnitude"
    )
    assert CloseEstimates(percent=10.0).judged(table).tolist() == [True, False]
    assert CloseEstimates(percent=50.0).judged(table).tolist() == [True, True]
    # From 100 percent on there is no such rule, and every cell above 0 counts.
    alone = np.array([[3, 2], [2, 2]])
    small = replace(table, contributions=Contributions(alone, np.array([[1, 2], [3, 4]])))
    assert CloseEstimates(percent=99.5).judged(small).tolist() == [False, False]
    for percent in (100, 100.5):
        assert CloseEstimates(percent=percent).judged(small).tolist() == [True, True]


def test_structural_zeros_and_rules_decide_who_is_judged():
    class Odd:
        def judge(self, table):
            release = shown(table, table.values)
            return replace(release, status=np.where(table.values % 2 == 1, "D", "F"))

        def __repr__(self):
            return "Odd()"

    table = Table.from_counts([3, 4, 5])
    measure = CloseEstimates(rule=Odd())
    assert measure.judged(table).tolist() == [True, False, True]
    assert measure.to_mapping()["rule"] == "Odd()"
    marked = replace(table, structural=np.array([True, False, False]))
    assert measure.judged(marked).tolist() == [False, False, True]
    assert CloseEstimates().judged(marked).tolist() == [False, True, True]
