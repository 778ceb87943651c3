"""Classes of a measure that are variables: found, refused where too narrow, and of no use to readers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import ceil

import numpy as np
import pytest

from lustrum.model import Dataset, InputError, Measure, Variable
from lustrum.model.records import Records
from lustrum.protect.magnitudes.check import audit_contributors
from lustrum.protect.magnitudes.hidden import OPEN, Known, is_hidden, known_classes
from lustrum.protect.magnitudes.method import ProtectedMagnitudes

KEY = b"sixteen bytes ok"
SPEC = ProtectedMagnitudes(p=5, sweeps=2, existence="public")
P = SPEC.share


def register(
    values: np.ndarray,
    edges: tuple[float, ...],
    *,
    described: bool = True,
    decimals: int = 0,
    owner: np.ndarray | None = None,
    **more: np.ndarray,
) -> Records:
    """Firms in cells of their own, with the class of a number beside them."""
    whole = np.array([*(e * 10**decimals for e in edges), OPEN])
    texts = tuple(str(k) for k in range(len(edges)))
    places = tuple(str(k) for k in range(values.size))
    dataset = Dataset(
        "firms",
        "Firms",
        (
            Variable("size", "size", texts, texts, edges=edges if described else ()),
            Variable("place", "place", places, places),
        ),
        (
            Measure("staff", "staff", holding="owner", decimals=decimals),
            *(Measure(n, n, holding="owner") for n in more),
        ),
        record_id="id",
        identifiers=("owner",),
    )
    number = np.arange(values.size)
    size = np.searchsorted(whole, values, side="right") - 1
    return Records(
        dataset,
        codes={"size": size.astype(np.uint8), "place": number.astype(np.uint16)},
        numbers={"staff": values, **more},
        ids={"id": number, "owner": number if owner is None else owner},
    )


def sources(shown: int, first: int, last: int, spec: ProtectedMagnitudes = SPEC) -> list[int]:
    """Every contribution of a class that can show a number, one by one."""
    low, high = spec.factors.least, spec.factors.most
    found = []
    for x in range(max(first, 0), last + 1):
        most = ceil(high * x)
        if ceil(low * x) <= abs(shown - x) <= (max(most, 2) if x >= 3 else most):
            found.append(x)
    return found


def certain(left: list[int], share: Fraction = P) -> bool:
    return bool(left) and (1 - share) * max(left) <= (1 + share) * min(left)


@pytest.mark.parametrize("p", [1, 5, 10, 20])
@pytest.mark.parametrize("ends", [(0, 9), (2, 9), (10, 19), (20, 49), (50, 249), (3, 4), (7, 40)])
@pytest.mark.parametrize("way", [None, 1, -1])
def test_a_shown_number_is_hidden_as_a_list_of_all_contributions_says(
    p: int, ends: tuple[int, int], way: int | None
) -> None:
    """To readers who do not know which way it went, and to those who do."""
    spec = replace(SPEC, p=float(p))
    shown = np.arange(0, 2 * ends[1] + 4)
    directed = np.full(shown.shape, way is not None)
    known = Known(*(np.full((2, shown.size), end) for end in ends), np.zeros_like(shown), directed)
    found = is_hidden(shown, known, spec.factors, spec.share, np.full(shown.shape, way == 1))
    for y in shown.tolist():
        left = [
            x
            for x in sources(y, *ends, spec)
            if way is None or (y - x) * way > 0 or x == y == 0 > way
        ]
        assert found[y] == (bool(left) and not certain(left, spec.share)), y


@pytest.mark.parametrize("held", [False, True])
def test_no_firm_is_certain_to_readers_who_know_its_class(held: bool) -> None:
    """All sizes from 2 to 400 in classes of the demo, drawn four times; in holdings of three too."""
    edges = (0, 2, 10, 20, 50, 250)
    values = np.tile(np.arange(2, 401), 4)
    owner = np.arange(values.size) // 3 if held else None
    records = register(values, edges, owner=owner)
    made = SPEC.protect(records, KEY)
    shown = made.records["staff"]
    ends = [*edges, 10**6]
    size = records.codes["size"]
    for x, y, code in zip(values.tolist(), shown.tolist(), size.tolist(), strict=True):
        left = sources(y, ends[code], min(ends[code + 1] - 1, 2 * x + 9))
        assert x in left
        assert not certain(left), (x, y)
    audit = audit_contributors(records, shown, "staff", SPEC.factors, P)
    assert (audit.certain_with_class, audit.by_class) == (0, 0)
    assert audit.safe
    assert made.public.classes == {"staff": ("size",)}


def test_without_regard_to_classes_some_firms_are_certain_and_the_audit_counts_them() -> None:
    values = np.tile(np.arange(2, 401), 4)
    edges = (0, 2, 10, 20, 50, 250)
    records = register(values, edges)
    share = np.random.default_rng(3).integers(SPEC.factors.low, SPEC.factors.high, values.size)
    sign = np.random.default_rng(4).choice([-1, 1], values.size)
    shown = values + sign * -(-values * share // 2**20)
    ends = [*edges, 10**6]
    size = records.codes["size"]
    slow = sum(
        certain(sources(y, ends[c], min(ends[c + 1] - 1, 2 * x + 9)))
        for x, y, c in zip(values.tolist(), shown.tolist(), size.tolist(), strict=True)
    )
    found = audit_contributors(records, shown, "staff", SPEC.factors, P)
    assert found.certain_with_class == slow > 30
    assert not found.safe


def test_a_class_that_gives_values_away_is_refused_unless_it_is_public() -> None:
    values = np.r_[np.arange(2, 60), 1, 1, 0]
    records = register(values, (0, 2, 20))
    with pytest.raises(InputError, match="'size' is so narrow that it gives away 'staff'"):
        SPEC.protect(records, KEY)
    spec = replace(SPEC, public_classes=("size",))
    made = spec.protect(records, KEY)
    found = audit_contributors(records, made.records["staff"], "staff", spec.factors, P)
    assert (found.by_class, found.certain_with_class) == (2, 0)
    assert found.safe
    # A firm without staff shows that it has none, so a class of 0 alone gives nothing else away.
    SPEC.protect(register(np.r_[np.arange(2, 60), 0], (0, 2, 20)), KEY)


def test_a_class_in_which_no_number_hides_anybody_is_refused_even_if_it_is_public() -> None:
    """One shows 0 or 2, and two show 1 or 3: whatever is shown, it is certain."""
    records = register(np.r_[np.arange(3, 60), 1, 2], (1, 3, 20))
    for public in ((), ("size",)):
        with pytest.raises(InputError, match="cannot be hidden from readers who know their class"):
            replace(SPEC, public_classes=public).protect(records, KEY)


def test_classes_are_found_by_their_edges_in_units_of_the_measure() -> None:
    values = np.array([5, 14, 15, 99, 250])
    found = known_classes(register(values, (0.5, 1.5, 10.0), decimals=1), ["staff"])
    assert found.variables == {"staff": ("size",)}
    assert [e.tolist() for e in found.ends["staff"]] == [
        [5, 5, 15, 15, 100], [14, 14, 99, 99, OPEN]
    ]  # fmt: skip


def test_classes_without_edges_are_found_by_their_order_unless_that_may_be_chance() -> None:
    many = np.random.default_rng(1).permutation(400) + 1
    records = register(many, (0, 100, 300), described=False, other=np.arange(400))
    found = known_classes(records, ["staff", "other"])
    assert found.variables == {"staff": ("size",)}
    low, high = found.ends["staff"]
    middle = (many >= 100) & (many < 300)
    assert set(low[middle].tolist()) == {100}
    assert set(high[middle].tolist()) == {299}
    assert set(low[many < 100].tolist()) == {0}
    assert set(high[many >= 300].tolist()) == {OPEN}
    assert known_classes(register(np.arange(1, 9), (0, 5), described=False), ["staff"]).ends == {}
    one_off = many.copy()
    one_off[many == 1] = 350
    wrong = replace(records, numbers={**records.numbers, "staff": one_off})
    assert known_classes(wrong, ["staff"]).ends == {}


def test_losses_have_classes_too() -> None:
    values = np.r_[np.arange(-60, -9), np.arange(10, 61)]
    records = register(values, (-100, -20, 0, 30))
    classes = known_classes(records, ["staff"])
    least, most = classes.sizes("staff", values)
    assert (least[values == -30], most[values == -30]) == (21, 100)
    assert (least[values == -10], most[values == -10]) == (1, 20)
    assert (least[values == 10], most[values == 10]) == (0, 29)
    made = SPEC.protect(records, KEY)
    found = audit_contributors(records, made.records["staff"], "staff", SPEC.factors, P)
    assert found.certain_with_class == 0
