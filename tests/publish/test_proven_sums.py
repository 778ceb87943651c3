"""Sums with a proof: clipped, measured with noise for their bound, paid for, and answered with margins."""

from __future__ import annotations

import json
from fractions import Fraction
from math import sqrt
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from tests.examples import examples

from lustrum.answer import TableService
from lustrum.cli.protect import protect_dataset
from lustrum.model import (
    Axis,
    Category,
    Dataset,
    DatasetError,
    InputError,
    LustrumError,
    TableQuery,
)
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.policy.presets import preset
from lustrum.protect.privacy.mechanism import Measured
from lustrum.protect.proven import measure as measuring
from lustrum.protect.proven.domain import Domain, Placed, axes_of
from lustrum.protect.proven.margins import FittedNumbers, NoiseMargins
from lustrum.protect.proven.measure import measure_sums, measure_tables
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.noisy import NoisySums, NoisyTables
from lustrum.protect.proven.plan import LinearEstimate, total_of
from lustrum.protect.proven.sums import ProvenSums
from lustrum.public.bundle.files import read_bundle
from lustrum.publish.budget import BudgetLedger
from lustrum.publish.bundles.proven import ERRORS, ProvenBundle
from lustrum.tabulate import FrameSource, Store, ingest, read_description

SIZES = {"area": 6, "sex": 2, "age": 4, "work": 2, "job": 3}
ZEROS = [
    # Those who do not work (1) have no job (2): four of six pairs can exist, so that both are one axis.
    {"reason": "a job", "where": {"work": ["1"], "job": ["0", "1"]}}
]
DATASET = Dataset.from_mapping(
    {
        "dataset": {"name": "town"},
        "variables": [
            {"name": name, "codes": [[str(i), f"{name} {i}"] for i in range(size)]}
            for name, size in SIZES.items()
        ],
        "measures": [
            {"name": name, "label": name, "unit": "euros", "decimals": 1}
            for name in ("pay", "rent")
        ],
        "structural_zeros": ZEROS,
    }
)
DOMAIN = Domain.of(DATASET)
SPEC = ProvenSums(rho=0.5, bounds={"pay": 300.0, "rent": 0.4})


def drawn(people: int, seed: int) -> Records:
    """Invented people with pay of both signs and of up to some thousands."""
    rng = np.random.default_rng(seed)
    codes = {name: rng.integers(size, size=people) for name, size in SIZES.items()}
    codes["job"] = np.where(codes["work"] == 1, 2, codes["job"])
    pay = rng.lognormal(6.5 + codes["job"] * 0.5, 0.7, size=people).astype(np.int64) - 200
    return Records(DATASET, codes, {"pay": pay, "rent": rng.integers(-3, 9, size=people)})


def cells_of(records: Records, values: np.ndarray | None = None) -> np.ndarray:
    """People, or what they have, by all variables."""
    table = np.zeros(tuple(SIZES.values()))
    np.add.at(table, tuple(records.codes[name] for name in SIZES), 1 if values is None else values)
    return table


def people_of(records: Records) -> FinestCells:
    counts = cells_of(records).astype(np.int64)
    return FinestCells(DATASET, np.array(counts.nonzero()), counts[counts > 0])


def replaced(records: Records, seed: int) -> Records:
    """The same with another record in the place of one."""
    other, at = drawn(len(records), seed + 1), seed % len(records)

    def changed(old: np.ndarray, new: np.ndarray) -> np.ndarray:
        return np.where(np.arange(old.size) == at, new, old)

    return Records(
        DATASET,
        {n: changed(c, other.codes[n]) for n, c in records.codes.items()},
        {n: changed(c, other.numbers[n]) for n, c in records.numbers.items()},
    )


def measured(records: Records) -> NoisyTables:
    noisy = measure_tables(DOMAIN, ProvenPopulation(50.0).plan(DOMAIN), people_of(records))
    return NoisyTables(
        **{**vars(noisy), "sums": measure_sums(DOMAIN, SPEC, records)}  # type: ignore[arg-type]
    )


@given(st.integers(0, 2**32))
@settings(max_examples=examples(10, 100), deadline=None)
def test_a_replaced_record_changes_what_is_measured_by_no_more_than_noise_is_drawn_for(
    seed: int,
) -> None:
    seen: list[tuple[np.ndarray, float]] = []

    def without_noise(
        values: np.ndarray, _: str, cells: int, records: int, cost: float
    ) -> Measured:
        seen.append((values, records * sqrt(cells)))
        return Measured(values, 1.0)

    records = drawn(40, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measuring, "measure", without_noise)
        measure_sums(DOMAIN, SPEC, records)
        one, seen[:] = list(seen), []
        measure_sums(DOMAIN, SPEC, replaced(records, seed))
    assert len(one) == len(seen) == 2 * (len(DOMAIN.subsets(2)) + 1)
    for (values, stated), (others, _) in zip(one, seen, strict=True):
        assert sqrt(float(((values - others) ** 2).sum())) <= stated * (1 + 1e-12)


def test_divergence_of_neighbours_stays_below_alpha_times_rho() -> None:
    """Renyi divergence of all that is measured of one measure, exactly: a record moves the whole bound."""
    spec = ProvenSums(rho=0.5, bounds={"rent": 0.4})
    sums = measure_sums(DOMAIN, spec, drawn(50, 1))["rent"]
    moves = [(scale, sums.bound, 2) for scale in sums.scales.values()]
    for alpha in (1.5, 2, 8, 32):
        total = 0.0
        for scale, step, cells in [*moves, (sums.clipped_scale, 1, 1)]:
            reach = int(40 * scale + 40 * alpha * step)
            steps = np.arange(-reach, reach + 1)
            log_chance, moved = (-0.5 * ((steps - by) / scale) ** 2 for by in (0, step))
            log_chance -= np.logaddexp.reduce(log_chance)
            moved -= np.logaddexp.reduce(moved)
            one = np.logaddexp.reduce(alpha * log_chance + (1 - alpha) * moved) / (alpha - 1)
            total += cells * one
        assert 0.99 * alpha * spec.rho <= total <= alpha * spec.rho * (1 + 1e-9)


def test_costs_add_up_exactly_and_stand_in_one_file() -> None:
    noisy = measured(drawn(200, 3))
    assert noisy.rho == 50 + Fraction("0.5")
    assert NoisyTables.from_bytes(noisy.to_bytes(), DATASET).to_bytes() == noisy.to_bytes()
    with pytest.raises(InputError, match="no file of noisy tables"):
        NoisyTables.from_bytes(noisy.to_bytes().replace(b'"101/2"', b'"50"', 1), DATASET)


def test_margins_are_those_of_the_linear_estimate() -> None:
    """By the responses to noise in every single cell of every noisy table."""
    sums = measured(drawn(100, 5)).sums["pay"]
    nothing = FittedNumbers(
        Placed.of(DOMAIN, people_of(drawn(100, 5))), LinearEstimate(sums.plan, sums.tables, 0)
    )
    words = NoiseMargins.of(DOMAIN, sums.plan, nothing, [], 1, sums.bound)
    plan = sums.plan
    groups = [(0, 1, 2), (3,), (4, 5)]
    levels = tuple(Category(str(i), "", members) for i, members in enumerate(groups))
    jobs = tuple(Category(str(i), "", (i,)) for i in range(3))
    passing = {"age": frozenset({1, 3})}
    asked = [
        ((("area", levels),), {}),
        ((("job", jobs),), {}),
        ((("area", levels), ("job", jobs)), {}),
        ((("area", levels),), passing),
        ((), {}),
    ]
    names = [[DATASET.variables[v].name for v in axis.variables] for axis in axes_of(DATASET)]
    assert ["work", "job"] in names
    for axes, limits in asked:
        shape = [len(categories) for _, categories in axes]
        margins = words.margins(DATASET, axes, limits, np.zeros(shape))
        variance = np.zeros(shape)
        for subset, scale in sums.scales.items():
            for place in np.ndindex(DOMAIN.table_shape(subset)):
                unit = {s: np.zeros(DOMAIN.table_shape(s), dtype=np.int64) for s in plan.shares}
                unit[subset][place] = 1
                variance += (scale * _response(unit, plan, axes, limits)) ** 2
        assert np.allclose(margins, 1.96 * np.sqrt(variance), atol=0.51)
    three = (
        ("area", levels),
        ("job", jobs),
        ("age", tuple(Category(str(i), "", (i,)) for i in range(4))),
    )
    assert (words.margins(DATASET, three, {}, np.zeros((3, 3, 4))) == -1).all()


def _response(unit, plan, axes, limits) -> np.ndarray:  # type: ignore[no-untyped-def]
    """What one table shows, by adding up all finest cells of the linear estimate by two axes."""
    estimate = LinearEstimate(plan, unit, total_of(plan, unit))
    wanted = {name for name, _ in axes} | set(limits)
    place = {
        DATASET.variables[v].name: a for a, axis in enumerate(DOMAIN.axes) for v in axis.variables
    }
    subset = tuple(sorted({place[name] for name in wanted}))
    table = estimate.table(subset)
    shown = np.zeros([len(c) for _, c in axes])
    for at in np.ndindex(shown.shape):
        inside = [np.ones(DOMAIN.sizes[a], dtype=bool) for a in subset]
        for name, members in [
            *((n, c[i].members) for (n, c), i in zip(axes, at, strict=True)),
            *limits.items(),
        ]:
            axis = DOMAIN.axes[place[name]]
            row = axis.codes[axis.variables.index([v.name for v in DATASET.variables].index(name))]
            inside[subset.index(place[name])] &= np.isin(row, list(members))
        shown[at] = table[np.ix_(*inside)].sum() if subset else table.sum()
    return shown


SUMS = 'method = "proven-sums"\nrho = 0.44\nbounds = { pay = 300 }'
POLICY = preset("proven", "town").replace("rho = 2.56", f"rho = 2.56\n\n[[before]]\n{SUMS}")
DESCRIPTION = (
    '[dataset]\nname = "town"\nrecord_id = "id"\npopulation = "merrow"\n'
    + "".join(
        f'[[variables]]\nname = "{name}"\n'
        f"codes = {json.dumps([[str(i), f'{name} {i}'] for i in range(size)])}\n"
        for name, size in SIZES.items()
    )
    + '[[measures]]\nname = "pay"\nlabel = "Pay"\nunit = "euros"\ndecimals = 1\n'
)


def ingested(root: Path, policy: str = POLICY) -> Path:
    records = drawn(900, 4)
    columns = {"id": [str(i) for i in range(900)]}
    columns |= {n: [str(c) for c in codes] for n, codes in records.codes.items()}
    table = pa.table({**columns, "pay": records.numbers["pay"] / 10})
    described = root / "town.toml"
    described.write_text(DESCRIPTION)
    data = root / "data"
    ingest(FrameSource(table), read_description(described), Store(data))
    (data / "policies").mkdir(exist_ok=True)
    (data / "policies" / "town.toml").write_text(policy)
    return data


def protect(data: Path) -> ProvenBundle:
    made = protect_dataset("town", data, Console(quiet=True))
    assert isinstance(made, ProvenBundle)
    return made


def test_sums_are_charged_with_the_counts_and_answered_with_margins(tmp_path: Path) -> None:
    data = ingested(tmp_path)
    ledger = BudgetLedger(data, "merrow")
    ledger.set_limit(Fraction(5), "the board")
    made = protect(data)
    assert (made.charged, made.rho, made.left) == (True, Fraction(3), Fraction(2))
    assert not protect(data).charged
    assert read_bundle(data / "bundles" / "town").report.proof["rho"] == "3"  # type: ignore[index]
    errors = json.loads((data / "reports" / "town" / ERRORS).read_bytes())
    given = drawn(900, 4).numbers["pay"]
    assert errors["sums"][0]["clipped off"] == int((given - np.clip(given, 0, 3000)).sum())
    service = TableService(data)
    for by, stated in ((("area",), True), (("area", "sex", "age"), False)):
        release = service.answer(TableQuery("town", by=tuple(map(Axis, by)), measure="pay")).release
        assert release is not None
        assert release.margins is not None
        inner = release.inner & ~(release.structural if release.structural is not None else False)
        assert (release.margins[inner] >= 0).all() == stated
        said = " ".join(map(str, release.notes))
        assert "more than 300.0 counts as 300.0" in said
        assert ("No margin of error of Pay" in said) != stated
    service.close()
    # Another bound is another measurement.
    policy = data / "policies" / "town.toml"
    policy.write_text(POLICY.replace("pay = 300", "pay = 400"))
    with pytest.raises(DatasetError, match="or for other sums"):
        protect(data)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("bounds = { pay = 300 }", ""), "need the most that one record counts"),
        (("{ pay = 300 }", "{ pay = 0.05 }"), "at most 1 decimals"),
        (("{ pay = 300 }", "{ wage = 300 }"), "wage"),
        ((SUMS, 'method = "protected-magnitudes"'), "'protected-magnitudes' does not go with"),
        (
            ("end = true", '[weights]\nweight = "w"\nend = true'),
            "weighted numbers have no proof yet",
        ),
    ],
)
def test_what_has_no_proof_is_refused_before_anything_is_paid(
    tmp_path: Path, change: tuple[str, str], said: str
) -> None:
    data = ingested(tmp_path, POLICY.replace(*change))
    BudgetLedger(data, "merrow").set_limit(Fraction(5), "the board")
    with pytest.raises(LustrumError, match=said):
        protect(data)
    assert BudgetLedger(data, "merrow").spent == 0


def test_what_is_asked_for_decides_what_is_measured() -> None:
    def shares(**words: object) -> dict[tuple[int, ...], Fraction]:
        spec = ProvenSums(**{"rho": 0.5, "bounds": {"pay": 1.0}, **words})  # type: ignore[arg-type]
        return dict(spec.shares(DOMAIN)[0].shares)

    usual = shares()
    assert sum(shares(rho=1.0).values()) == 2 * sum(usual.values())
    assert set(map(len, usual)) == {1, 2}
    assert set(map(len, shares(max_variables=1))) == {1}
    more = shares(one_way=1000.0)
    assert all(more[s] > usual[s] for s in usual if s == (0,))


def test_noise_grows_with_the_bound() -> None:
    sums: dict[str, NoisySums] = measure_sums(DOMAIN, SPEC, drawn(10, 1))
    ratios = [sums["pay"].scales[s] / sums["rent"].scales[s] for s in sums["pay"].scales]
    assert ratios == pytest.approx([750.0] * len(ratios))
