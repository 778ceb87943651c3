"""A drafted description can be read, ingests the file it was made from, and guesses no more than it must."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Dataset, IngestError
from lustrum.tabulate import FileSource, Store, draft_description, ingest, read_description
from lustrum.tabulate.encode import encode
from tabulate.worlds import SECRET


def drafted(path: Path) -> Dataset:
    target = path.with_suffix(".toml")
    target.write_text(draft_description(FileSource(path)), encoding="utf-8")
    return read_description(target)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "Town People.csv"
    rows = [
        f"{i},{'NSE'[i % 3]},{i % 2 + 1},{i % 90},{100 + i}.50,{1 + i / 8},Street {i},"
        for i in range(1200)
    ]
    path.write_text("id,area,sex,age,income,weight,address,note\n" + "\n".join(rows) + "\n")
    return path


def test_roles_follow_from_the_columns(people: Path) -> None:
    dataset = drafted(people)
    assert dataset.name == "town-people"
    assert dataset.record_id == "id"
    assert {v.name: len(v.codes) for v in dataset.variables} == {"area": 3, "sex": 2, "age": 90}
    # Incomes end in .50, of which one decimal is enough.
    assert {m.name: m.decimals for m in dataset.measures} == {"income": 1}
    assert {w.name: w.decimals for w in dataset.weights} == {"weight": 3}


def test_a_column_that_can_be_nothing_is_left_out_in_words(people: Path) -> None:
    text = draft_description(FileSource(people), "town")
    assert text.startswith("# A draft")
    assert "# Left out: 'address' (more than 1,000 values), 'note' (empty)." in text
    assert 'name = "town"' in text


def test_the_draft_ingests_its_own_file(people: Path, tmp_path: Path) -> None:
    assert (
        ingest(FileSource(people), drafted(people), Store(tmp_path / "data"), secret=SECRET) == 1200
    )


def test_empty_values_of_a_variable_get_a_code_that_is_free(tmp_path: Path) -> None:
    path = tmp_path / "few.csv"
    path.write_text("area,sex\n-,f\n,m\nN,f\n")
    variable = drafted(path).variables[0]
    assert variable.missing == "missing"
    assert ingest(FileSource(path), drafted(path), Store(tmp_path / "data"), secret=SECRET) == 3


def test_parquet_and_columns_that_hold_lists(tmp_path: Path) -> None:
    path = tmp_path / "few.parquet"
    pq.write_table(
        pa.table({"area": ["N", "S"], "tags": [[1], [2, 3]], "two words": ["a", "b"]}), path
    )
    dataset = drafted(path)
    assert dataset.record_id is None  # in two rows all values differ: that proves nothing
    assert [v.name for v in dataset.variables] == ["area"]
    assert "'two words' (its name)" in draft_description(FileSource(path))
    assert "'tags'" in draft_description(FileSource(path))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "is empty; it needs a header"),
        ("area,sex\n", "has no rows"),
        ("the area,1st\nN,f\n", "has no column that can be described"),
    ],
)
def test_a_file_that_cannot_be_described_is_one_sentence(
    text: str, sentence: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.csv"
    path.write_text(text)
    with pytest.raises(IngestError, match=sentence):
        draft_description(FileSource(path))


def test_a_column_with_a_code_that_is_kept_for_totals_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "totals.csv"
    path.write_text("area,sex\n_T,f\nN,f\nN,m\n")
    text = draft_description(FileSource(path))
    (tmp_path / "totals.toml").write_text(text)
    assert "'area' (a code that is kept for totals)" in text
    assert [v.name for v in read_description(tmp_path / "totals.toml").variables] == ["sex"]


@settings(max_examples=examples(10, 100), deadline=None)
@given(
    st.lists(
        st.tuples(st.text(max_size=4), st.text(st.characters(codec="utf-8"), max_size=4)),
        min_size=1,
        max_size=8,
    )
)
def test_any_text_survives_the_draft(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str]]
) -> None:
    folder = tmp_path_factory.mktemp("any")
    table = pa.table({"one": [r[0] for r in rows], "two": [r[1] for r in rows]})
    path = folder / "any.parquet"
    pq.write_table(table, path)
    text = draft_description(FileSource(path))
    (folder / "any.toml").write_text(text, encoding="utf-8", newline="")
    if "[[variables]]" in text:
        dataset = read_description(folder / "any.toml")
        assert encode(table, dataset, "any", 1, SECRET).rows == len(rows)
