"""Files of CSV, Parquet and JSON-stat tell of each cell what the release tells, and nothing else."""

from __future__ import annotations

import csv
import io
import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from formats.told_cells import AREA, HIDDEN, RELEASES, SEX, axis, made, names_beside, told
from lustrum.client import Answer
from lustrum.formats import Csv, JsonStat, Parquet, cell_text, release_as_arrow, write_release
from lustrum.formats import parquet as parquet_file
from lustrum.formats.jsonstat import dataset
from lustrum.formats.parquet import spread
from lustrum.model import CellStatus, InputError, Release, TableAxis

NUMBERS = ("value", "low", "high", "standard_error", "margin")


def wanted(release: Release, *, plain: bool = False) -> tuple[list[str], list[list[Any]]]:
    """The names of the columns and the rows; with ``plain`` those of :func:`write_release`."""
    cells = told(release, own_decimals=not plain)
    called = names_beside(release)
    facts = ["value", *(["unit"] if release.label and not plain else []), "status"]
    if any(cell["low"] is not None for cell in cells):
        facts += ["low", "high"]
    if release.errors is not None and release.grades is not None and not plain:
        facts += ["standard_error", "reliability"]
    if (release.margin is not None or release.margins is not None) and not plain:
        facts += ["margin"]
    noted = [any(c.note for c in own.categories) and not plain for own in release.axes]
    labelled = [not plain or own.labels != own.codes for own in release.axes]
    head: list[str] = []
    for own, both, more in zip(release.axes, labelled, noted, strict=True):
        head += [own.name, *([called[f"{own.name}_label"]] if both else [])]
        head += [called[f"{own.name}_members"]] if more else []
    rows = []
    for cell in cells:
        row: list[Any] = []
        for k in range(len(release.axes)):
            row += [cell["codes"][k], *([cell["labels"][k]] if labelled[k] else [])]
            row += [cell["notes"][k]] if noted[k] else []
        rows.append(row + [cell[fact] for fact in facts])
    return [*head, *(called[fact] for fact in facts)], rows


def parsed(text: str) -> tuple[list[str], list[list[str]]]:
    head, *rows = csv.reader(io.StringIO(text, newline=""))
    return head, rows


def as_text(value: Any) -> str:
    return "" if value is None else f"{value:f}" if isinstance(value, Decimal) else str(value)


def of_arrow(table: pa.Table) -> tuple[list[str], list[list[Any]]]:
    rows = [
        [Decimal(v) if isinstance(v, (int, Decimal)) else v for v in row.values()]
        for row in table.to_pylist()
    ]
    return table.column_names, rows


@pytest.mark.parametrize("name", RELEASES)
def test_csv_and_parquet_tell_of_each_cell_what_the_release_tells(name: str) -> None:
    release = RELEASES[name]
    head, rows = wanted(release)
    text = Csv().write(release)
    # Every digit: numbers have the decimals of their statistic, no more and no fewer.
    assert parsed(text) == (head, [[as_text(v) for v in row] for row in rows])
    data = Parquet().write(release)
    table = parquet.read_table(io.BytesIO(data))
    assert of_arrow(table) == (head, rows)
    kind = pa.decimal128(38, release.decimals) if release.decimals else pa.int64()
    assert table.schema.field(names_beside(release)["value"]).type == kind
    assert str(HIDDEN) not in text.replace(".", "")
    assert HIDDEN.to_bytes(8, "little") not in data
    assert len(set(head)) == len(head)


@pytest.mark.parametrize("name", RELEASES)
def test_files_that_are_read_back_have_the_same_columns_and_cells(
    name: str, tmp_path: Path
) -> None:
    release = RELEASES[name]
    head, rows = wanted(release, plain=True)
    write_release(release, tmp_path / "out.csv")
    texts = [[as_text(v) for v in row] for row in rows]
    assert parsed((tmp_path / "out.csv").read_text()) == (head, texts)
    write_release(release, tmp_path / "out.parquet")
    assert of_arrow(parquet.read_table(tmp_path / "out.parquet")) == (head, rows)
    assert of_arrow(release_as_arrow(release)) == (head, rows)


@pytest.mark.parametrize("name", RELEASES)
def test_json_stat_tells_of_each_cell_what_the_release_tells(name: str) -> None:
    release = RELEASES[name]
    cells = told(release)
    text = JsonStat().write(release)
    assert str(HIDDEN) not in text.replace(".", "")
    exact = name != "large numbers"  # readers of JSON have numbers of 53 bits
    found = json.loads(text, parse_float=Decimal)
    more = found["extension"]
    assert found["id"] == [own.name for own in release.axes]
    assert found["size"] == list(release.shape)
    for own in release.axes:
        category = found["dimension"][own.name]["category"]
        assert found["dimension"][own.name]["label"] == own.label
        assert category["index"] == list(own.codes)
        assert category["label"] == dict(zip(own.codes, own.labels, strict=True))
        notes = {c.code: [c.note] for c in own.categories if c.note}
        assert category.get("note") == (notes or None)
    values = [cell["value"] for cell in cells]
    assert found["value"] == (values if exact else pytest.approx(values, rel=Decimal("1e-15")))
    whole = [
        c["value"] is None or c["decimals"] > 0 or type(v) is int
        for c, v in zip(cells, found["value"], strict=True)
    ]
    assert all(whole)
    status = [cell["status"] for cell in cells]
    assert found.get("status") == (None if set(status) == {"F"} else status)
    assert more.get("status", {}) == {
        s: CellStatus(s).meaning for s in set(status) if set(status) != {"F"}
    }
    ends = {end: [cell[end] for cell in cells] for end in ("low", "high")}
    stated = any(v is not None for v in ends["low"])
    assert more.get("interval") == (ends if stated else None)
    graded = release.errors is not None and release.grades is not None
    for fact in ("standard_error", "reliability"):
        assert more.get(fact) == ([cell[fact] for cell in cells] if graded else None)
    assert more["protection"] == {"method": "by hand", "base": 3}
    assert more["unit"] == release.unit
    said = (more.get("statistic"), more.get("decimals"))
    assert said == ((release.label, release.decimals) if release.label else (None, None))
    if release.statistics:
        assert found["role"] == {"metric": ["what"]}
        assert found["dimension"]["what"]["category"]["unit"] == {
            s.code: {"label": s.unit, "decimals": s.decimals} for s in release.statistics
        }
    else:
        assert "role" not in found


def test_the_title_of_a_dataset_is_the_one_given_or_its_variables() -> None:
    release = RELEASES["counts"]
    assert dataset(release)["label"] == "Area by Sex"
    assert dataset(release, "People")["label"] == "People"
    assert json.loads(JsonStat().write(release, "People"))["label"] == "People"
    assert dataset(release)["note"] == ["Rounded."]
    # A text of any alphabet stands as it is.
    assert "Łódź" in JsonStat().write(made(TableAxis.plain("a", ["1"], ["Łódź"]), values=[1]))


@pytest.mark.parametrize("name", ["names of columns", "hidden", "estimates", "nobody else"])
def test_the_client_names_the_columns_of_its_frames_as_files_do(name: str) -> None:
    release = RELEASES[name]
    body = {"id": "1", "decision": "answer", "reasons": [], "notes": [], "links": {}, "query": {}}
    answer = Answer.of({**body, "table": json.loads(JsonStat().write(release))})
    head, rows = wanted(release)
    kept = [at for at, one in enumerate(head) if one not in ("low", "high")]
    table = answer.to_arrow()
    assert table.column_names == [head[at] for at in kept]
    found = [list(row.values()) for row in table.to_pylist()]
    assert found == [[row[at] for at in kept] for row in rows]


def test_no_column_of_a_wide_frame_of_the_client_is_lost() -> None:
    axes = (axis("value", "x y"), TableAxis.plain("w", list("123"), ["value", "same", "same"]))
    body = {"id": "1", "decision": "answer", "reasons": [], "notes": [], "links": {}, "query": {}}
    table = json.loads(JsonStat().write(made(*axes, values=range(6))))
    found = Answer.of({**body, "table": table}).to_arrow(wide=True)
    assert found.column_names == ["value", "value (1)", "same", "same (3)"]
    assert [list(row.values())[1:] for row in found.to_pylist()] == [[0, 1, 2], [3, 4, 5]]
    alone = json.loads(JsonStat().write(made(axes[0], values=[3, 4])))
    one = Answer.of({**body, "table": alone}).to_arrow(wide=True)
    assert one.to_pydict() == {"value": ["x", "y"], "value_": [3, 4]}


def shown_by(writer: Any, release: Release) -> bytes:
    written = writer.write(release, "A title")
    return written if isinstance(written, bytes) else written.encode()


@pytest.mark.parametrize("writer", [Csv(), JsonStat(), Parquet()], ids=lambda w: w.name)
def test_a_file_is_made_of_a_release_only(writer: Any) -> None:
    with pytest.raises(InputError, match="needs a lustrum Release, not a list"):
        writer.write([1, 2])
    if hasattr(writer, "pieces"):
        with pytest.raises(InputError, match="needs a lustrum Release, not a list"):
            writer.pieces([1, 2])


@pytest.mark.parametrize("writer", [Csv(), JsonStat(), Parquet()], ids=lambda w: w.name)
@pytest.mark.parametrize("name", ["hidden", "intervals", "statistics", "estimates"])
def test_the_bytes_do_not_depend_on_what_is_not_told(writer: Any, name: str) -> None:
    release = RELEASES[name]
    hidden = np.array([cell["value"] is None for cell in told(release)]).reshape(release.shape)
    silent = hidden & ~np.array([c["low"] is not None for c in told(release)]).reshape(hidden.shape)
    words: dict[str, Any] = {"numbers": np.where(hidden, 777_777, release.numbers)}
    if release.errors is not None:
        unsaid = hidden | (release.errors < 0)
        words["errors"] = np.where(hidden, 3, release.errors)
        words["grades"] = np.where(unsaid, release.grades.ravel()[0], release.grades)
    if release.least is not None and release.most is not None:
        # Other ends that say nothing: a single value, and nothing at all.
        words["least"] = np.where(silent, 5, release.least)
        words["most"] = np.where(silent, 5, release.most)
    fields = {f: getattr(release, f) for f in release.__dataclass_fields__}
    assert shown_by(writer, Release(**{**fields, **words})) == shown_by(writer, release)


@pytest.mark.parametrize(
    "name", ["four variables", "statistics", "estimates", "intervals", "own groups"]
)
@pytest.mark.parametrize("piece", [1, 2, 3, 5, 7, 36])
def test_a_file_says_the_same_in_pieces_of_any_size(
    name: str, piece: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = RELEASES[name]
    whole = Csv().write(release), parquet.read_table(io.BytesIO(Parquet().write(release)))
    monkeypatch.setattr(cell_text, "_PIECE", piece)
    monkeypatch.setattr(parquet_file, "ROWS", piece)
    pieces = list(Csv().pieces(release))
    assert "".join(pieces) == whole[0]
    rows = max(piece, release.shape[-1])
    assert all(0 < part.count("\r\n") <= rows for part in pieces)
    made_of = list(Parquet().pieces(release))
    file = parquet.ParquetFile(io.BytesIO(b"".join(made_of)))
    assert file.read().to_pylist() == whole[1].to_pylist()
    size = release.published.size
    groups = [file.metadata.row_group(g).num_rows for g in range(file.metadata.num_row_groups)]
    assert groups == [min(piece, size - at) for at in range(0, size, piece)]
    # What is written is handed on at once: a piece for each group, and one for the end.
    assert len(made_of) == len(groups) + 1
    assert all(made_of)


def test_no_text_stands_twice_among_those_that_a_file_stores() -> None:
    """Arrow would fill the room of the second with whatever stands in memory, and publish that."""
    names = pa.array(["euro", "people", "euro", "euro", "people"])
    found = spread(names, 2, 1, 9, coded=True)
    assert found.to_pylist() == [
        "euro",
        "people",
        "people",
        "euro",
        "euro",
        "euro",
        "euro",
        "people",
    ]
    assert sorted(found.dictionary.to_pylist()) == ["euro", "people"]
    assert spread(names, 2, 6, 8, coded=True).dictionary.to_pylist() == ["euro"]
    same = TableAxis.plain("a", list("123456"), ["the same label"] * 6)
    release = made(same, AREA, values=range(18), label="Turnover", unit="thousand euro")
    held = parquet.ParquetFile(io.BytesIO(Parquet().write(release))).metadata.row_group(0)
    sizes = {
        held.column(i).path_in_schema: held.column(i).total_uncompressed_size
        for i in range(held.num_columns)
    }
    # One text of 14 letters, 18 numbers of texts, and headers: no room for six texts.
    assert sizes["a_label"] < 6 * 18
    assert sizes["unit"] < 6 * 18
    assert len({Parquet().write(release) for _ in range(8)}) == 1


def test_an_empty_table_is_a_file_without_rows() -> None:
    release = made(axis("area", ""), SEX, values=[])
    found = parquet.read_table(io.BytesIO(Parquet().write(release)))
    assert found.num_rows == 0
    assert found.column_names == ["area", "area_label", "sex", "sex_label", "value", "status"]
    for one in (release, made(SEX, axis("area", ""), values=[])):
        assert Csv().write(one).count("\r\n") == 1


def test_files_say_how_they_are_called() -> None:
    assert AREA.codes == ("a0", "a1", "a2")
    assert {w.name: (w.media_type, w.ending) for w in (Csv, JsonStat, Parquet)} == {
        "csv": ("text/csv", "csv"),
        "json-stat": ("application/json", "json"),
        "parquet": ("application/vnd.apache.parquet", "parquet"),
    }


def test_a_part_of_the_statistics_keeps_their_words() -> None:
    whole = RELEASES["statistics"]
    last = whole.shape[-1] - 1
    part = whole.take([*map(range, whole.shape[:-1]), [last, 0]])
    assert part.statistics == (whole.statistics[last], whole.statistics[0])
    assert part.known.tolist() == whole.known[..., [last, 0]].tolist()
