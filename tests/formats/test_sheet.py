"""Published tables read back: gaps are not zeros, and mistakes are one sentence."""

from __future__ import annotations

import numpy as np
import pytest

from lustrum.formats import Csv
from lustrum.formats.sheet import read_sheet, releases_of
from lustrum.model import InputError, Release, Table
from lustrum.protect import RandomRounding

TEXT = (
    "area,area_label,job,value,status\nn,North,a,3,F\nn,North,b,,A\nn,North,_T,9,F\ns,South,a,4,D\n"
)


def test_what_is_not_published_is_not_known() -> None:
    (release,) = releases_of([read_sheet(TEXT, "x.csv")])
    assert release.shape == (2, 3)
    assert release.axes[0].labels == ("North", "South")
    # Empty, a status other than F, and no row at all: none of them is a zero.
    assert release.shown.tolist() == [[True, False, True], [False, False, False]]
    assert release.published[0].tolist() == [3, 0, 9]


def test_a_written_release_reads_back() -> None:
    table = Table.from_counts(np.arange(12).reshape(3, 4), names=["area", "job"])
    release = RandomRounding().apply(table, np.random.default_rng(1))
    (back,) = releases_of([read_sheet(Csv().write(release), "x.csv")])
    assert np.array_equal(back.published, release.published)
    assert back.axes[1].codes == release.axes[1].codes
    assert back.shown.all()


def test_decimals_are_exact() -> None:
    (release,) = releases_of([read_sheet("a,value\n1,0.1\n2,12.25\n", "x.csv")])
    assert release.decimals == 2
    assert release.published.tolist() == [10, 1225]


def test_a_code_means_the_same_in_every_table() -> None:
    first, second = releases_of(
        [read_sheet("a,value\n1,1\n2,2\n", "x"), read_sheet("a,value\n2,2\n3,3\n_T,6\n", "y")]
    )
    assert first.axes[0].categories[1].members == second.axes[0].categories[0].members == (1,)
    assert second.axes[0].categories[2].members == (0, 1, 2)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\n1,2\n", "no column 'value'"),
        ("value\n1\n", "no column of codes"),
        ("a,a,value\n1,1,1\n", "the column 'a' stands twice"),
        ("a,value\n1,2,3\n", "line 2: there are 3 fields"),
        ("a,value\n1,2\n1,3\n", "line 3: the cell stands in line 2 already"),
        ("a,value\n1,two\n", "line 2: the value is not a number"),
        ("a,value\n1,inf\n", "line 2: the value is not a number"),
        ("a,value\n", "there is no cell"),
        ("", "no column 'value'"),
    ],
)
def test_a_mistake_is_one_sentence_with_its_line(text: str, sentence: str) -> None:
    with pytest.raises(InputError, match=sentence) as caught:
        read_sheet(text, "x.csv")
    assert "x.csv" in str(caught.value)


def test_a_release_read_back_says_that_its_method_is_unknown() -> None:
    (release,) = releases_of([read_sheet(TEXT, "x.csv")])
    assert isinstance(release, Release)
    assert release.method == {"method": "unknown"}
