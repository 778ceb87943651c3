"""Programs of others read what a running server publishes: the right numbers, labels, missing cells and notes.

They run in an environment of their own, which ``scripts/ensure_clients.py`` makes.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lustrum.demo
from lustrum.answer import TableService
from lustrum.server import Settings, create_app
from server.conftest import served

ROOT = Path(__file__).parents[2]
READING = Path(__file__).with_name("reading.py")
BUNDLES = Path(lustrum.demo.__file__).parent / "bundles"
LEAST = 4000
"""People of an area, below which the partial table leaves it out."""

TABLES: dict[str, dict[str, Any]] = {
    "perturbed": {
        "table": "demo",
        "by": ["sex", "age"],
        "select": {"sex": ["*"], "age": ["?", "TOP(2,10)"]},
        "codes": {"age": "1..9,11,12"},
        "contents": "count",
        "note": "one protected population",
    },
    "suppressed": {
        "table": "survey",
        "by": ["district", "education"],
        "select": {"district": ["*"], "education": ["*"], "ContentsCode": ["mean:hours"]},
        "contents": "mean:hours",
        "weight": "weight",
        "note": "not shown",
    },
    "partial": {
        "table": "demo",
        "by": ["area", "sex"],
        "select": {"area": ["*"], "sex": ["*"]},
        "contents": "count",
        "note": "one protected population",
    },
}
CLIENTS = ("pxwebpy", "pyjstat", "pyaxis", "csvw", "openpyxl", "polars", "duckdb", "arrow")


def ensured() -> Path:
    script = ROOT / "scripts" / "ensure_clients.py"
    spec = importlib.util.spec_from_file_location("ensure_clients", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Path(module.ensure())


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python of the clients."""
    return ensured()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over two bundles; one policy shows areas one by one, and keeps occupations back."""
    folder = tmp_path_factory.mktemp("bundles")
    for name in ("demo", "survey"):
        shutil.copytree(BUNDLES / name, folder / name)
    policy = folder / "demo" / "policy.toml"
    rules = f'per_area = "area"\nmin_area_population = {LEAST}\nmax_dimensions = 2\ndisallowed = [["occupation"]]\n'
    kept = [
        line for line in policy.read_text().splitlines() if not line.startswith("max_dimensions")
    ]
    policy.write_text("\n".join(kept).replace("[rules]\n", f"[rules]\n{rules}"))
    service = TableService(bundles=[folder / "demo", folder / "survey"], workers=1)
    with served(create_app(service, Settings(rate=""))) as address:
        yield address
    service.close()


def fetched(address: str, **parameters: Any) -> Any:
    query = urllib.parse.urlencode(parameters, doseq=True)
    with urllib.request.urlopen(f"{address}?{query}") as answer:
        return json.loads(answer.read())


def plainly(asked: dict[str, Any]) -> dict[str, Any]:
    """The same question in the words of our own API."""
    words: dict[str, Any] = {"dataset": asked["table"], "by": asked["by"]}
    words["codes"] = [f"{name}:{codes}" for name, codes in asked.get("codes", {}).items()]
    words["statistic"] = [asked["contents"]]
    return words | ({"weight": asked["weight"]} if "weight" in asked else {})


def expected(address: str, asked: dict[str, Any]) -> tuple[list[Any], list[bool]]:
    """The cells of our own answer, with labels, and which are hidden."""
    table = fetched(f"{address}/api/v1/tables", **plainly(asked))["table"]
    cells: list[Any] = [[]]
    for name in asked["by"]:
        labels = table["dimension"][name]["category"]["label"].values()
        cells = [[*cell, label] for cell in cells for label in labels]
    values = [None if value is None else float(value) for value in table["value"]]
    hidden = [status not in ("F", None) for status in table.get("status", [None] * len(values))]
    return [list(pair) for pair in zip(cells, values, strict=True)], hidden


def read(python: Path, client: str, address: str, asked: dict[str, Any]) -> Any:
    words = json.dumps(asked | {"plain": plainly(asked)})
    done = subprocess.run(
        [python, READING, client, address, words], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reads_numbers_labels_and_missing_cells(
    python: Path, server: str, client: str, name: str
) -> None:
    asked = TABLES[name]
    cells, hidden = expected(server, asked)
    assert any(hidden) == (name == "suppressed")
    found = read(python, client, server, asked)
    assert sorted(map(str, found)) == sorted(map(str, cells))
    assert [
        v for (_, v), secret in zip(cells, hidden, strict=True) if secret and v is not None
    ] == []
    if name == "partial":
        listed = fetched(f"{server}/api/v1/datasets/demo/variables/area/categories")["total"]
        assert 0 < len(cells) < 2 * listed


if __name__ == "__main__":
    sys.exit(ensured().exists() - 1)
