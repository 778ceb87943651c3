"""Letters and columns beside values: what a reader can take from them is not left out."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lustrum.cli import app
from lustrum.model import CellStatus
from lustrum.readers import ColumnNames, releases_of, table_of_csv
from lustrum.readers.status_letters import Meaning, StatusList, list_of, meaning

SAFE = {
    ("n", "a"): "",
    ("n", "b"): "",
    ("n", "c"): "40",
    ("n", "Total"): "90",
    ("s", "a"): "",
    ("s", "b"): "",
    ("s", "c"): "50",
    ("s", "Total"): "120",
    ("Total", "a"): "60",
    ("Total", "b"): "60",
    ("Total", "c"): "90",
    ("Total", "Total"): "210",
}


def audit(path: Path, *words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["audit", str(path), *words])
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    return done.exit_code, " ".join(done.output.split())


def written(path: Path, column: str, beside: dict[tuple[str, str], str]) -> Path:
    lines = [f"area,job,value,{column}"]
    lines += [f"{a},{j},{value},{beside.get((a, j), '')}" for (a, j), value in SAFE.items()]
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.mark.parametrize(
    ("letter", "stated", "expected"),
    [
        ("", None, Meaning.PUBLISHED),
        ("F", None, Meaning.PUBLISHED),
        ("A", None, Meaning.UNCLEAR),
        ("f", None, Meaning.UNCLEAR),
        ("provisional", None, Meaning.UNCLEAR),
        ("A", "observation", Meaning.PUBLISHED),
        ("Q", "observation", Meaning.HIDDEN),
        ("f", "observation", Meaning.UNCLEAR),
        ("F", "confidentiality", Meaning.PUBLISHED),
        ("A", "confidentiality", Meaning.HIDDEN),
        ("D", "confidentiality", Meaning.HIDDEN),
        ("f", "confidentiality", Meaning.UNCLEAR),
        ("AD", "confidentiality", Meaning.UNCLEAR),
    ],
)
def test_the_code_list_decides_what_a_letter_means(
    letter: str, stated: StatusList | None, expected: Meaning
) -> None:
    assert meaning(letter, stated) is expected


def test_the_name_of_a_column_states_its_code_list() -> None:
    assert list_of("conf_status") == list_of("CONF_STATUS") == "confidentiality"
    assert list_of("OBS_STATUS") == list_of("obs status") == "observation"
    assert list_of("status") is None
    assert list_of("Flags") == list_of("OBS_FLAG") == "flags"


@pytest.mark.parametrize("column", ["status", "CONF_STATUS", "OBS_STATUS"])
def test_a_table_without_numbers_beside_letters_is_judged(tmp_path: Path, column: str) -> None:
    hidden = {"CONF_STATUS": "A", "OBS_STATUS": "Q", "status": "D"}[column]
    normal = {"CONF_STATUS": "F", "OBS_STATUS": "A", "status": "F"}[column]
    letters = {key: normal if value else hidden for key, value in SAFE.items()}
    assert audit(written(tmp_path / "t.csv", column, letters))[0] == 0


def test_a_number_beside_a_hidden_status_is_disclosed(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "CONF_STATUS", {("n", "c"): "A"})
    code, said = audit(path)
    assert code == 3
    assert "1 value stands in the file beside a status of hidden (first: line 4)" in said


@pytest.mark.parametrize("letter", ["A", "f", "c", "revised"])
def test_a_letter_of_no_known_list_beside_a_number_is_not_judged(
    tmp_path: Path, letter: str
) -> None:
    path = written(tmp_path / "t.csv", "status", {("n", "c"): letter})
    code, said = audit(path)
    assert code == 4
    assert "Not judged" in said
    if letter == "A":
        assert audit(path, "--status-codes", "observation")[0] == 0
        assert audit(path, "--status-codes", "confidentiality")[0] == 3


def test_a_mistaken_code_list_is_one_sentence(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "status", {})
    done = CliRunner().invoke(app, ["audit", str(path), "--status-codes", "sdmx"])
    assert "not 'sdmx'" in str(done.exception)


@pytest.mark.parametrize("column", ["mean", "percent", "x1", "lower", "upper", "firms_per_head"])
def test_numbers_that_nobody_explained_stop_an_all_clear(tmp_path: Path, column: str) -> None:
    beside = dict.fromkeys(SAFE, "7.5")
    path = written(tmp_path / "t.csv", column, beside)
    code, said = audit(path)
    assert code == 4
    assert repr(column) in said
    assert audit(path, "--beside", column)[0] == 0


def test_a_disclosure_counts_more_than_a_doubt(tmp_path: Path) -> None:
    path = written(tmp_path / "t.csv", "mean", dict.fromkeys(SAFE, "7.5"))
    path.write_text(path.read_text().replace("n,a,,", "n,a,20,"))
    assert audit(path)[0] == 3


def test_doubts_name_the_file_and_no_number() -> None:
    file = table_of_csv("a,value,status,mean\n1,731,A,3\n2,,D,4\nTotal,800,F,5\n", "x.csv")
    assert len(file.doubts) == 2
    assert all(doubt.startswith("x.csv: ") and "731" not in doubt for doubt in file.doubts)
    said = table_of_csv(
        "a,value,status,mean\n1,731,A,3\n2,,D,4\nTotal,800,F,5\n",
        "x.csv",
        ColumnNames(status_list="confidentiality", beside=("mean",)),
    )
    assert said.doubts == ()
    assert said.standing["value"] == (0,)


@pytest.mark.parametrize("letter", ["F", ""])
def test_a_cell_without_a_value_is_never_read_as_published(letter: str) -> None:
    """Whatever letter stands beside it, and where the file has no row for it at all."""
    lines = [
        "area,job,value,status",
        *("n,a,3,F", f"n,b,,{letter}", "n,Total,9,F", "s,a,5,F", "s,Total,9,F"),
        *("Total,a,8,F", "Total,b,10,F", "Total,Total,18,F"),
    ]
    read = table_of_csv("\n".join(lines) + "\n", "t.csv", ColumnNames())
    release = releases_of([read])[0]
    assert (~release.shown).sum() == 2
    assert set(release.status[~release.shown].tolist()) == {CellStatus.NOT_FOR_PUBLICATION.value}
