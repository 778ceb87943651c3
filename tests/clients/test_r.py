"""The client for R reads tables of a running server; R and its packages come from Debian's."""

from __future__ import annotations

import csv
import io
import shutil
import subprocess
from pathlib import Path

import pytest

from clients.test_clients import ROOT, expected, full, server

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
table <- lu_table(words[1], words[2], words[3:4], statistic = words[5], weight = if (words[6] != "") words[6])
stopifnot(length(attr(table, "notes")) > 0)
write.csv(as.data.frame(table), stdout(), row.names = FALSE)
"""


@pytest.mark.deep
@pytest.mark.parametrize("name", ["perturbed", "means over nobody", "partial"])
def test_r_reads_numbers_labels_and_missing_cells(server: str, tmp_path: Path, name: str) -> None:
    if shutil.which("Rscript") is None:
        pytest.fail("R is not here; install it (Debian: r-cran-httr2 and r-cran-tibble).")
    library = tmp_path / "library"
    library.mkdir()
    install = ["R", "CMD", "INSTALL", f"--library={library}", str(ROOT / "clients" / "r")]
    subprocess.run(install, check=True, capture_output=True)
    asked = full(server, name)
    asked = asked | {"plain": {k: v for k, v in asked["plain"].items() if k != "codes"}}
    (tmp_path / "ask.R").write_text(SCRIPT)
    words = [server, asked["table"], *asked["by"], asked["contents"], asked.get("weight", "")]
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
