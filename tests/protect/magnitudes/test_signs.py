"""Gains and losses of one owner: noise that adds up, no common factor, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Dataset, InputError, Measure, Variable
from lustrum.model.records import Records
from lustrum.protect.magnitudes.check import audit_contributors
from lustrum.protect.magnitudes.method import ProtectedMagnitudes
from lustrum.publish.bundles.sum_memory import remembered_sums, sums_bytes
from magnitude_registers import register

SPEC = ProtectedMagnitudes(p=10, sweeps=2, max_variables=2, existence="public")
PERIODS = (
    Measure("turnover", "turnover", holding="owner", earlier="before"),
    Measure("before", "before", holding="owner"),
)
VALUES = st.integers(-900, 900)


def key(number: int) -> bytes:
    return bytes(range(number, number + 32))


@settings(max_examples=examples(15, 150), deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 2), VALUES, VALUES), min_size=1, max_size=5),
    st.integers(0, 200),
)
def test_every_set_of_values_of_an_owner_errs_by_p_percent_of_gains_and_losses(
    firms: list[tuple[int, int, int]], number: int
) -> None:
    """Giants beside them keep the sums of use, so that nothing is refused."""
    rows = [(owner, 0, 0, now) for owner, now, _ in firms]
    rows += [(owner, owner % 2, owner // 2 % 2, 10**6) for owner in range(3, 15)]
    before = [earlier for _, _, earlier in firms] + [10**6 + 1] * 12
    records = register(rows, measures=PERIODS, before=before)
    made = SPEC.protect(records, key(number)).records
    for owner in (1, 2):
        mine = [k for k, firm in enumerate(firms) if firm[0] == owner]
        true = [int(records.numbers[n][k]) for n in made for k in mine]
        noise = [int(made[n][k]) - int(records.numbers[n][k]) for n in made for k in mine]
        places = range(len(true))
        for some in chain.from_iterable(combinations(places, n) for n in range(1, 4)):
            error = abs(sum(noise[k] for k in some))
            assert 10 * error >= sum(abs(true[k]) for k in some)
        for x, error in zip(true, noise, strict=True):
            assert np.sign(x + error) in (np.sign(x), 0)


def test_no_two_values_of_an_owner_have_a_factor_in_common() -> None:
    """The share of a loss says of that of a gain what shares of two gains say of each other."""
    count = 400
    signs = np.where(np.arange(count) % 2, 1, -1)
    rows = [(k, k % 2, k // 2 % 2, 100_000) for k in range(count)]
    rows += [(k, k % 2, k // 2 % 2, 10**8) for k in range(count, count + 40)]
    shares = []
    for side in (signs, np.ones_like(signs)):
        earlier = (side * 80_000).tolist() + [10**8 + 1] * 40
        records = register(rows, measures=PERIODS, before=earlier)
        made = SPEC.protect(records, key(1)).records
        now = made["turnover"][:count] / 100_000 - 1
        before = made["before"][:count] / 80_000 - side
        assert (np.sign(now) == np.sign(before)).all()
        shares.append((np.abs(now), np.abs(before)))
    apart = np.abs(shares[0][0] - shares[0][1])
    assert (apart < 0.001).mean() < 0.05
    assert 0.3 < np.corrcoef(*shares[0])[0, 1] < 0.8


def test_sums_of_gains_and_losses_that_cancel_are_refused() -> None:
    rows = [(k, k % 2, k // 2 % 2, 1000 * (-1) ** (k // 4)) for k in range(40)]
    with pytest.raises(InputError, match="Gains and losses of 'turnover' nearly cancel"):
        SPEC.protect(register(rows), key(2))
    SPEC.protect(register([(*row[:3], abs(row[3])) for row in rows]), key(2))
    # So are losses alone, which cannot cancel.
    SPEC.protect(register([(*row[:3], -abs(row[3])) for row in rows]), key(2))


def test_classes_of_what_gains_and_losses_leave_are_refused() -> None:
    texts = ("loss", "little", "much")
    values = np.array([-500 + 17 * k for k in range(90)])
    dataset = Dataset(
        "firms",
        "Firms",
        (Variable("class", "class", texts, texts, edges=(-9000, 0, 500)),),
        (
            Measure("profit", "profit", parts=("gains", "costs")),
            Measure("gains", "gains"),
            Measure("costs", "costs"),
        ),
        record_id="id",
    )
    gains = 2000 + 13 * np.arange(90)
    records = Records(
        dataset,
        codes={"class": np.searchsorted([0, 500], values, side="right").astype(np.uint8)},
        numbers={"profit": values, "gains": gains, "costs": values - gains},
        ids={"id": np.arange(90)},
    )
    with pytest.raises(InputError, match="'class' tell readers what is left of the gains and loss"):
        replace(SPEC, public_classes=("class",)).protect(records, key(3))


ROWS = [(1, 0, 0, 5000), (1, 0, 1, -700), (2, 0, 0, 900), (3, 1, 0, 4000), (4, 1, 1, -300)]
GIANTS = [(k, k % 2, k // 2 % 2, 10**6) for k in range(5, 17)]


def changed(
    rows: list[tuple[int, int, int, int]], **values: int
) -> list[tuple[int, int, int, int]]:
    return [(*row[:3], values.get(f"r{k}", row[3])) for k, row in enumerate(rows)]


def test_a_gain_that_becomes_a_loss_moves_as_before_and_shows_the_same_when_it_is_back() -> None:
    """The third firm makes a loss, and the fourth becomes one with both; the directions stay for good."""
    rows = ROWS + GIANTS
    for number in range(6):
        first = SPEC.protect(register(rows), key(number))
        noise = first.records["turnover"] - np.array([row[3] for row in rows])
        turned = changed(rows, r2=-850, r3=-4000)
        second = SPEC.protect(register(turned), key(number), previous=first.memory)
        later = second.records["turnover"] - np.array([row[3] for row in turned])
        assert np.sign(later[:5]).tolist() == np.sign(noise[:5]).tolist()
        assert (later[[0, 1, 4]] == noise[[0, 1, 4]]).all()
        memory = remembered_sums(sums_bytes(second.memory))
        third = SPEC.protect(register(rows), key(number), previous=memory)
        assert third.records["turnover"].tolist() == first.records["turnover"].tolist()


def test_a_memory_of_the_first_version_is_read_unless_it_shows_gains_and_losses_of_one_owner() -> (
    None
):
    alone = [row for row in ROWS + GIANTS if row[0] != 1]
    made = SPEC.protect(register(alone), key(4))
    # The first version turned the noise of losses, and said nothing of itself.
    data = sums_bytes(made.memory).replace(b'"version": 2', b'"versi_n": 2')
    memory = remembered_sums(data)
    assert memory.version == 1
    again = SPEC.protect(register(alone), key(4), previous=memory)
    assert again.records["turnover"].tolist() == made.records["turnover"].tolist()
    assert again.memory.version == remembered_sums(sums_bytes(again.memory)).version == 2
    both = SPEC.protect(register(ROWS + GIANTS), key(4))
    older = replace(both.memory, version=1)
    said = "1 owners with gains and losses of 'turnover' by one factor each"
    with pytest.raises(InputError, match=said):
        SPEC.protect(register(ROWS + GIANTS), key(4), previous=older)
    # Also where the records are gone, as far as one of them had both.
    periods = register(alone, measures=PERIODS, before=[-800] + [1] * (len(alone) - 1))
    older = replace(SPEC.protect(periods, key(4)).memory, version=1)
    with pytest.raises(InputError, match="by one factor each"):
        SPEC.protect(periods.take(np.arange(1, len(alone))), key(4), previous=older)


def test_with_secret_directions_readers_who_know_another_value_are_certain_and_the_audit_says_so() -> (
    None
):
    records = register(
        ROWS + GIANTS, measures=PERIODS, before=[row[3] // 2 for row in ROWS + GIANTS]
    )
    for directions, safe in (("known", True), ("secret", False)):
        spec = replace(SPEC, directions=directions)
        made = spec.protect(records, key(5)).records
        found = audit_contributors(
            records, made["turnover"], "turnover", spec.factors, spec.share, others=made
        )
        assert found.several == len(records)
        assert found.safe == safe
        assert (found.known_large == len(records)) != safe
        assert found.growth == (0 if safe else len(records)), "narrow shares give growth away too"
