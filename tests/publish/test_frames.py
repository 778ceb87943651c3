"""One call from records to a protected table: contributions, holdings and groups are those of the records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from lustrum.formats import release_as_arrow, write_release
from lustrum.model import InputError
from lustrum.publish.frames import suppress, table_of_records
from lustrum.sensitivity import AnyOf, PPercent, Request, Threshold
from lustrum.tabulate.keys import Secret

RNG = np.random.default_rng(8)
FIRMS = pd.DataFrame(
    {
        "nace": RNG.choice(["C10", "C11", "D1", "D2", "E"], 300),
        "area": RNG.choice(["n", "s", "w"], 300),
        "turnover": np.round(RNG.lognormal(4, 1.6, 300), 2),
        "group": RNG.integers(0, 120, 300).astype(str),
    }
)
GROUPS = {"nace": {"C": ["C10", "C11"], "D": ["D1", "D2"], "XDE": ["D", "E"]}}


def test_totals_groups_and_contributions_are_those_of_the_records() -> None:
    table = table_of_records(
        FIRMS, ["nace", "area"], measure="turnover", holding="group", groups=GROUPS, ranks=3
    )
    assert table.decimals == 2
    assert table.axes[0].codes == ("C10", "C11", "D1", "D2", "E", "C", "D", "XDE", "_T")
    parts = {c: [c] for c in ("C10", "C11", "D1", "D2", "E")}
    parts |= {"C": ["C10", "C11"], "D": ["D1", "D2"], "XDE": ["D1", "D2", "E"], "_T": list(parts)}
    assert table.contributions is not None
    assert table.contributors is not None
    for (i, code), (j, area) in (
        (a, b) for a in enumerate(table.axes[0].codes) for b in enumerate(table.axes[1].codes)
    ):
        own = FIRMS[FIRMS.nace.isin(parts[code]) & ((FIRMS.area == area) | (area == "_T"))]
        held = own.groupby("group").turnover.sum().sort_values(ascending=False)
        assert table.values[i, j] == round(own.turnover.sum() * 100)
        assert table.contributors[i, j] == len(held)
        assert table.contributions.value[i, j].tolist() == [round(v * 100) for v in held.head(3)]


def test_a_protected_table_shows_true_values_or_nothing() -> None:
    release = suppress(
        FIRMS, ["nace", "area"], PPercent(p=15), measure="turnover", holding="group", groups=GROUPS
    )
    table = table_of_records(
        FIRMS, ["nace", "area"], measure="turnover", holding="group", groups=GROUPS
    )
    sensitive = PPercent(p=15).judge(table).mask
    assert sensitive.any()
    assert not release.shown[sensitive].any()
    assert np.array_equal(release.published[release.shown], table.values[release.shown])
    other = suppress(
        pl.from_pandas(FIRMS),
        ["nace", "area"],
        {"rule": "p-percent", "p": 15},
        measure="turnover",
        holding="group",
        groups=GROUPS,
    )
    assert np.array_equal(other.status, release.status)


def test_a_protected_table_can_be_written_and_turned_into_a_frame(tmp_path: Path) -> None:
    release = suppress(
        FIRMS, ["nace", "area"], PPercent(p=15), measure="turnover", holding="group", groups=GROUPS
    )
    frame = release_as_arrow(release).to_pandas()
    labels = ["nace", "nace_label", "area", "area_label"]
    assert frame.columns.tolist() == [*labels, "value", "status"]
    assert frame.value.isna().sum() == (~release.shown).sum() > 0
    assert (frame.status[frame.value.notna()] == "F").all()
    write_release(release, str(tmp_path / "public.csv"))
    again = pd.read_csv(tmp_path / "public.csv")
    assert again.value.isna().tolist() == frame.value.isna().tolist()


def test_records_are_counted_without_a_measure() -> None:
    release = suppress(FIRMS, ["nace", "area"], Threshold(16), partial=True)
    hidden = ~release.shown
    assert hidden.any()
    assert np.array_equal(release.stated, hidden)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"by": "nace"}, "must be a list of columns"),
        ({"measure": "sales"}, "no column 'sales'"),
        ({"rule": PPercent(p=10)}, "name the column that is added up as 'measure'"),
        ({"rule": AnyOf(Threshold(3), PPercent(p=10))}, "name the column that is added up"),
        ({"rule": Request(), "measure": "turnover"}, "nobody is named here"),
        ({"rule": AnyOf(Threshold(3), Request()), "measure": "turnover"}, "nobody is named here"),
        ({"rule": "p=10"}, "'rule' must be a Rule or a Mapping"),
        ({"groups": {"size": {"x": ["y"]}}}, "do not span the table"),
        ({"groups": {"nace": {"C": ["C10", "C12"]}}}, "holds 'C12', which is no code"),
    ],
)
def test_a_mistake_is_one_sentence(words: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        suppress(FIRMS, **({"by": ["nace", "area"], "rule": Threshold(3)} | words))  # type: ignore[arg-type]


SMALL = {
    "area": ["n", "n", "s", "s", "s"],
    "job": ["a", "b", "a", "a", "b"],
    "pay": [1.5, 2.0, 4.5, 8.0, 16.0],
    "w": [1, 2, 3, 4, 5],
    "who": ["x", "y", "z", "z", "x"],
    "no": ["r7", "r8", "r3", "r4", "r5"],
}


def test_a_table_of_records_is_what_was_asked_for() -> None:
    counted = table_of_records(SMALL, ["area", "job"])
    assert counted.values.tolist() == [[1, 1, 2], [2, 1, 3], [3, 2, 5]]
    assert counted.contributions is None
    assert counted.kind == "count"
    bare = table_of_records(SMALL, ["area"], totals=False)
    assert bare.values.tolist() == [2, 3]
    assert bare.keys is None
    summed = table_of_records(SMALL, ["area"], measure="pay", holding="who", ranks=2)
    assert (summed.values.tolist(), summed.decimals) == ([35, 285, 320], 1)
    assert summed.contributors.tolist() == [2, 2, 3]
    assert summed.contributions.value.tolist() == [[20, 15], [160, 125], [175, 125]]
    cents = table_of_records(SMALL, ["area"], measure="pay", decimals=2)
    assert (cents.values.tolist(), cents.decimals) == ([350, 2850, 3200], 2)
    weighted = table_of_records(SMALL, ["area"], weight="w")
    assert weighted.values.tolist() == [3, 12, 15]
    # A column that is not used need not be one that anything can be made of.
    odd = SMALL | {"odd": [1, "x", None, 2.5, b"y"]}
    assert table_of_records(odd, ["area"]).values.tolist() == [2, 3, 5]
    assert table_of_records(pd.DataFrame(SMALL), ["area"]).values.tolist() == [2, 3, 5]
    none = table_of_records(SMALL, ["area"], groups={"area": {}})
    assert none.axes[0].codes == ("n", "s", "_T")


def test_record_keys_follow_from_the_secret_and_the_record() -> None:
    first, second = (Secret(bytes([k] * 32)) for k in (1, 2))

    def keys(rows: list[int], secret: Secret = first, record_id: str | None = "no") -> Any:
        frame = {name: [column[k] for k in rows] for name, column in SMALL.items()}
        return table_of_records(frame, ["area"], secret=secret, record_id=record_id).keys.tolist()  # type: ignore[union-attr]

    order = [4, 2, 0, 3, 1]
    assert keys([0, 1, 2, 3, 4]) == keys(order)
    assert keys([0, 1, 2, 3, 4]) != keys([0, 1, 2, 3, 4], second)
    assert keys([0, 1, 2, 3, 4], record_id=None) != keys([0, 1, 2, 3, 4])


def test_groups_are_summed_whatever_order_they_are_named_in() -> None:
    groups = {"job": {"All": ["B", "a"], "B": ["b"], "A": ["a"]}}
    table = table_of_records(SMALL, ["area", "job"], groups=groups, totals=False)
    assert table.axes[1].codes == ("a", "b", "All", "B", "A")
    assert table.values.tolist() == [[1, 1, 2, 1, 1], [2, 1, 3, 1, 2]]
    assert [axis.label for axis in table.axes] == ["area", "job"]
    with pytest.raises(InputError, match="The group 'A' of 'job' holds 'c', which is no code"):
        table_of_records(SMALL, ["job"], groups={"job": {"B": ["b"], "A": ["b", "c"]}})
