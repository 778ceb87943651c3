"""Margins of a population with a proof, and of its sums: 93 to 98 of 100 true numbers lie within them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pytest
from tests.publish.test_proven_sums import DATASET, DOMAIN, SPEC, cells_of, drawn, people_of

from lustrum.model import InputError
from lustrum.model.finest import FinestCells, FinestSums
from lustrum.protect.population.public import margin_class
from lustrum.protect.proven.domain import Placed
from lustrum.protect.proven.margins import NoiseMargins, compared
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.noisy import NoisySums, NoisyTables
from lustrum.protect.proven.report import Remade, public_report, public_sums, simulated

METHOD, PEOPLE, DRAWS = ProvenPopulation(0.3), 6000, 24
Pair = tuple[Placed, Placed]


def truth() -> tuple[FinestCells, FinestSums]:
    """Invented people, and their clipped pay and rent."""
    records = drawn(PEOPLE, 1)
    cells = people_of(records)
    sums = {
        name: cells_of(records, np.clip(records.numbers[name], 0, bound))[tuple(cells.codes)]
        for name, bound in SPEC.bounds_of(DATASET, PEOPLE).items()
    }
    return cells, FinestSums(DATASET, cells.codes, {n: s.astype(int) for n, s in sums.items()})


def unmeasured() -> NoisyTables:
    """Plans and scales of noise, as they would be measured."""
    plan, (of_sums, clipped) = METHOD.plan(DOMAIN), SPEC.shares(DOMAIN)
    sums = {
        name: NoisySums(
            bound,
            of_sums,
            {},
            {s: bound * float(share) ** -0.5 for s, share in of_sums.shares.items()},
            0,
            1.0,
            clipped,
        )
        for name, bound in SPEC.bounds_of(DATASET, PEOPLE).items()
    }
    scales = {s: float(share) ** -0.5 for s, share in plan.shares.items()}
    return NoisyTables(DOMAIN, plan, PEOPLE, {}, scales, {}, sums)


@pytest.fixture(scope="module")
def draws() -> tuple[dict[str, NoiseMargins], list[dict[str, Pair]]]:
    """Margins as one draw states them, and true numbers beside those of many draws."""
    cells, sums = truth()
    rng, beside, stated = np.random.default_rng(4), [], {}
    for number in range(DRAWS):
        noisy = simulated(unmeasured(), cells, rng, sums)
        made = Remade.of(METHOD, noisy)
        assert made.sums is not None
        if number == 0:
            again = made.again(METHOD)
            report = public_report(METHOD, made, again, {})
            assert report.noise is not None
            words = public_sums(SPEC, made, again)
            stated = {"people": NoiseMargins.from_mapping(report.noise)}
            stated |= {name: one.noise for name, one in words.measures.items()}
        people = Placed.of(DOMAIN, made.people)
        pairs = {"people": (Placed.of(DOMAIN, cells), people)}
        for name, given in made.sums.sums.items():
            pairs[name] = (
                Placed.of(DOMAIN, cells, sums.sums[name]),
                Placed.of(DOMAIN, made.people, given),
            )
        beside.append(pairs)
    return stated, beside


def within(
    noise: NoiseMargins, pairs: Iterator[Pair], by_size: bool
) -> dict[tuple[int, int], list[int]]:
    """Cells, and those that lie within their margins, by axes and by the size of the number shown."""
    found: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for pair in pairs:
        for subset, true, shown, deviation in compared(DOMAIN, noise, *pair):
            margins = noise.rounded(deviation, np.full(shown.shape, len(subset)), shown)
            sizes = margin_class(shown) if by_size else np.zeros(shown.shape, dtype=int)
            for size in np.unique(sizes):
                near = np.abs(true - shown)[sizes == size] <= margins[sizes == size]
                found[len(subset), int(size)][0] += near.size
                found[len(subset), int(size)][1] += int(near.sum())
    return found


@pytest.mark.parametrize("what", ["people", "pay", "rent"])
def test_margins_cover_95_of_100_in_every_class(what: str, draws) -> None:  # type: ignore[no-untyped-def]
    stated, beside = draws
    found = within(stated[what], (pairs[what] for pairs in beside), what == "people")
    assert {axes for axes, _ in found} == set(range(4 if what == "people" else 3))
    for (axes, size), (cells, near) in found.items():
        if axes and cells >= 400:
            most = 0.98 + 2 * (0.98 * 0.02 / cells) ** 0.5  # that some more lie within is chance
            assert 0.93 <= near / cells <= most, (axes, size, near / cells)
    if what == "people":
        assert found[0, 3] == [DRAWS, DRAWS]  # their number is public


def test_margins_survive_a_bundle_and_earlier_ones_have_plain_noise(draws) -> None:  # type: ignore[no-untyped-def]
    stated = draws[0]["pay"]
    assert NoiseMargins.from_mapping(stated.to_mapping()) == stated
    earlier = {"variances": stated.to_mapping()["variances"]}
    assert NoiseMargins.from_mapping(earlier).factors == {}
    with pytest.raises(InputError, match="margins of error are damaged"):
        NoiseMargins.from_mapping({**earlier, "factors": {"1": [1.0]}})
