"""The picture of a pattern shows every cell once, in its kind, and nothing of a hidden value."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from lustrum.formats import JsonStat
from lustrum.formats.pattern_picture import pattern_page, pattern_svg
from lustrum.model import InputError, Release, Table, TableAxis
from lustrum.protect.suppression import Suppression


def kinds(picture: str) -> list[str]:
    found = []
    for node in ElementTree.fromstring(picture).iter():
        own = node.get("class", "").split()
        if own[:1] == ["cell"] and node.find("{*}title") is not None:
            found.append(own[1])
    return found


@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 2), (80, 70)])
def test_every_cell_is_drawn_once_in_its_kind(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(3)
    status = rng.choice(["F", "A", "M", "D", "N"], shape)
    axes = tuple(
        TableAxis.plain(f"<{i}>", [f"c{k}&" for k in range(n)]) for i, n in enumerate(shape)
    )
    release = Release(axes, np.full(shape, 987654321), status, {"method": "x"})
    found = kinds(pattern_svg(release, "a < b"))
    assert len(found) == status.size
    assert found.count("primary") == np.isin(status, ["A", "M"]).sum()
    assert found.count("secondary") == (status == "D").sum()
    assert found.count("never") == (status == "N").sum()
    page = pattern_page(release)
    assert page.count("987654321") in (0, (status == "F").sum())


def test_a_stated_interval_stands_in_the_page_and_in_json_stat() -> None:
    table = Table.from_counts([[1, 8, 9], [9, 7, 16], [10, 15, 25]])
    plain = Suppression(partial=True).apply(table)
    assert not plain.stated.any()  # without totals nothing bounds a hidden cell from above
    low, high = np.where(plain.shown, plain.numbers, 0), np.where(plain.shown, plain.numbers, 6)
    stated = Release(plain.axes, plain.numbers, plain.status, plain.method, least=low, most=high)
    assert stated.stated.sum() == 1
    assert "0–6" in pattern_page(stated)
    assert '"interval": {"low": [0, null' in JsonStat().write(stated)


def test_a_picture_of_too_many_cells_is_refused_in_one_sentence() -> None:
    axes = tuple(TableAxis.plain(name, [str(i) for i in range(300)]) for name in "ab")
    release = Release(
        axes, np.zeros((300, 300), np.int64), np.full((300, 300), "F"), {"method": "x"}
    )
    with pytest.raises(InputError, match="at most 60,000 cells"):
        pattern_svg(release)
