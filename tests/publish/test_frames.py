"""One call from records to a protected table: contributions, holdings and groups are those of the records."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest

from lustrum.formats import release_as_arrow, write_release
from lustrum.model import InputError
from lustrum.publish.frames import suppress, table_of_records
from lustrum.sensitivity import AnyOf, PPercent, Request, Threshold

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
        ({"groups": {"size": {"x": ["y"]}}}, "which does not span the table"),
        ({"groups": {"nace": {"C": ["C10", "C12"]}}}, "holds 'C12', which is no code"),
    ],
)
def test_a_mistake_is_one_sentence(words: dict[str, object], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        suppress(FIRMS, **({"by": ["nace", "area"], "rule": Threshold(3)} | words))  # type: ignore[arg-type]
