"""R, Node and LibreOffice read tables of a running server: R by our own client, Node by jsonstat-toolkit."""

from __future__ import annotations

import csv
import io
import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from pathlib import Path

import pytest

from clients.test_clients import ROOT, TABLES, expected, full, server

__all__ = ["server"]

SCRIPT = """
library(lustrum)
words <- commandArgs(TRUE)
stopifnot("demo" %in% lu_datasets(words[1])$name)
stopifnot("ten-year" %in% unlist(lu_variables(words[1], "demo")$levels))
refused <- tryCatch(
  lu_table(words[1], "demo", c("sex", "age", "education")), lustrum_refusal = function(one) one$reasons
)
stopifnot(is.character(refused), length(refused) > 0)
if (words[2] %in% lu_prepared(words[1])$table) {
  table <- lu_prepared_table(words[1], words[2])
  stopifnot(table$status[is.na(table$value)] != "F", table$status[!is.na(table$value)] == "F")
} else {
  weight <- if (words[6] != "") words[6]
  table <- lu_table(words[1], words[2], words[3:4], statistic = words[5], weight = weight)
}
stopifnot(length(attr(table, "notes")) > 0)
write.csv(as.data.frame(table), stdout(), row.names = FALSE)
"""


@pytest.mark.deep
@pytest.mark.parametrize("name", TABLES)
def test_r_reads_numbers_labels_and_missing_cells(server: str, tmp_path: Path, name: str) -> None:
    if shutil.which("Rscript") is None:
        pytest.fail(
            "R is not here; install it (Debian: r-cran-httr2, r-cran-jsonlite and r-cran-tibble)."
        )
    library = tmp_path / "library"
    library.mkdir()
    install = ["R", "CMD", "INSTALL", f"--library={library}", str(ROOT / "clients" / "r")]
    subprocess.run(install, check=True, capture_output=True)
    asked = full(server, name)
    if "plain" in asked:
        asked |= {"plain": {k: v for k, v in asked["plain"].items() if k != "codes"}}
    (tmp_path / "ask.R").write_text(SCRIPT)
    words = [
        server, asked["table"], *asked["by"], asked.get("contents", ""), asked.get("weight", ""),
    ]  # fmt: skip
    done = subprocess.run(
        ["Rscript", tmp_path / "ask.R", *words],
        env={"R_LIBS": str(library), "PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    told = [
        [
            [row[f"{one}_label"] for one in asked["by"]],
            None if row["value"] == "NA" else float(row["value"]),
        ]
        for row in rows
    ]
    assert told == expected(server, asked)[0]


@pytest.mark.deep
@pytest.mark.parametrize("name", TABLES)
def test_jsonstat_toolkit_reads_numbers_labels_and_missing_cells(
    server: str, tmp_path: Path, name: str
) -> None:
    for file in ("package.json", "package-lock.json"):
        shutil.copy(ROOT / "requirements" / "node" / file, tmp_path)
    install = ["npm", "ci", "--ignore-scripts", "--silent"]
    subprocess.run(install, cwd=tmp_path, check=True, capture_output=True)
    asked = full(server, name)
    if "files" in asked:
        address = f"{server}{asked['files']['json-stat']}"
    else:
        query = urllib.parse.urlencode({"format": "json-stat", **asked["plain"]}, doseq=True)
        address = f"{server}/api/v1/tables?{query}"
    toolkit = tmp_path / "node_modules" / "jsonstat-toolkit" / "module.mjs"
    script = Path(__file__).with_name("reading.mjs")
    done = subprocess.run(["node", script, toolkit, address], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    cells, hidden = expected(server, asked)
    assert [[labels, value] for labels, value, _ in found["cells"]] == cells
    assert [status != "F" for _, _, status in found["cells"]] == hidden


# All sheets, each cell as it is stored, in UTF-8.
_SHEETS = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,false,false,false,false,-1"


@pytest.mark.deep
@pytest.mark.parametrize("form", ["xlsx", "csv"])
@pytest.mark.parametrize("name", TABLES)
def test_libreoffice_reads_numbers_labels_and_missing_cells(
    server: str, tmp_path: Path, name: str, form: str
) -> None:
    office = shutil.which("soffice")
    if office is None:
        pytest.fail("LibreOffice is not here; install it (Debian: libreoffice-calc-nogui).")
    asked = full(server, name)
    if "files" in asked:
        address = f"{server}{asked['files'][form]}"
    else:
        query = urllib.parse.urlencode({"format": form, **asked["plain"]}, doseq=True)
        address = f"{server}/api/v1/tables?{query}"
    with urllib.request.urlopen(address) as answer:
        (tmp_path / f"table.{form}").write_bytes(answer.read())
    (tmp_path / "read").mkdir()
    done = subprocess.run(
        [
            office,
            "--headless",
            f"-env:UserInstallation={(tmp_path / 'profile').as_uri()}",
            *(["--infilter=CSV:44,34,76,1"] if form == "csv" else []),
            "--convert-to",
            _SHEETS,
            "--outdir",
            tmp_path / "read",
            tmp_path / f"table.{form}",
        ],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    sheet = "table-Cells.csv" if form == "xlsx" else "table-table.csv"
    rows = list(csv.DictReader((tmp_path / "read" / sheet).read_text().splitlines()))
    told = []
    for row in rows:
        text = row["value"]
        value = None if not text or text.isalpha() or text == "–" else float(text)
        told.append([[row[f"{one}_label"] for one in asked["by"]], value])
    cells, _ = expected(server, asked)
    assert sorted(map(str, told)) == sorted(map(str, cells))
