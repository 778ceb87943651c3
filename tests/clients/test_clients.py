"""Programs of others read what a running server publishes: the right numbers, labels, missing cells and notes.

They run in an environment of their own, which ``scripts/ensure_clients.py`` makes.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import lustrum.demo
from lustrum.answer import TableService
from lustrum.policy.read import sealed
from lustrum.public.bundle.files import overall_digest
from lustrum.server import Settings, create_app
from publish.programme.conftest import TURNOVER, make_workplace
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
        "key": "_T._T._T.*.1+2+3+4+5+6+7+8+9+11+12._T._T._T.count",
        "contents": "count",
        "note": "one protected population",
    },
    "means over nobody": {
        "table": "survey",
        "by": ["district", "education"],
        "select": {"district": ["*"], "education": ["*"], "ContentsCode": ["mean:hours"]},
        "contents": "mean:hours",
        "key": "*._T._T._T.*.mean$3A$hours",
        "weight": "weight",
        "note": "this is not zero|does not exist",
    },
    "partial": {
        "table": "demo",
        "by": ["area", "sex"],
        "key": "_T.*._T.*._T._T._T._T.count",
        "select": {"area": ["*"], "sex": ["*"]},
        "contents": "count",
        "note": "one protected population",
    },
    "suppressed": {"by": ["act", "region"], "note": "suppress", "key": "*.*.*"},
    "suppressed, by its files": {"by": ["act", "region"], "note": "suppress", "by_file": True},
}
QUESTIONS = [name for name in TABLES if not name.startswith("suppressed")]
CLIENTS = (
    "pxwebpy", "pyjstat", "pyaxis", "csvw", "openpyxl", "polars", "duckdb", "arrow", "sdmx1", "sdmx21",
    "pysdmx",
)  # fmt: skip
FORMATS = (
    "json-stat", "px", "csv", "csvw", "xlsx", "parquet", "arrow", "html", "sdmx-csv",
    "sdmx-structure",
)  # fmt: skip


def ensured() -> Path:
    """The Python of the clients."""
    script = ROOT / "scripts" / "ensure_clients.py"
    spec = importlib.util.spec_from_file_location("ensure_clients", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return Path(module.ensure())


@pytest.fixture(scope="module")
def python() -> Path:
    return ensured()


def with_rules(bundle: Path, first: str = "") -> None:
    """Give a bundle a policy that shows areas one by one, two variables at a time, and no occupations."""
    policy, manifest = bundle / "policy.toml", bundle / "manifest.json"
    rules = f'per_area = "area"\nmin_area_population = {LEAST}\nmax_dimensions = 2\n'
    rules += 'disallowed = [["occupation"]]\n'
    lines = policy.read_text().splitlines()
    kept = "\n".join(line for line in lines if not line.startswith("max_dimensions"))
    content = (first + kept).replace("[rules]\n", f"[rules]\n{rules}").encode() + b"\n"
    content = sealed(content, "policy.toml")
    policy.write_bytes(content)
    said = json.loads(manifest.read_text())
    digest = hashlib.sha256(content).hexdigest()
    said["files"]["policy.toml"] = {"bytes": len(content), "sha256": digest}
    said["digest"] = overall_digest(said["format"], said["dataset"], said["files"])
    manifest.write_text(json.dumps(said))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A server over two bundles and tables that were suppressed; one policy shows areas one by one."""
    folder = tmp_path_factory.mktemp("bundles")
    for name in ("demo", "survey"):
        shutil.copytree(BUNDLES / name, folder / name)
    with_rules(folder / "demo")
    made = tmp_path_factory.mktemp("made")
    make_workplace(made).run(TURNOVER, head=f"formats = {json.dumps(FORMATS)}")
    service = TableService(
        bundles=[folder / "demo", folder / "survey"], prepared=[made / "public"], workers=1
    )
    with served(create_app(service, Settings(rate=""))) as address:
        yield address
    service.close()


def fetched(address: str, **parameters: Any) -> Any:
    query = urllib.parse.urlencode(parameters, doseq=True)
    with urllib.request.urlopen(f"{address}?{query}") as answer:
        return json.loads(answer.read())


def plainly(asked: dict[str, Any]) -> dict[str, Any]:
    """The same question in the words of our own API, or where the files of a prepared table are."""
    words: dict[str, Any] = {"dataset": asked["table"], "by": asked["by"]}
    words["codes"] = [f"{name}:{codes}" for name, codes in asked.get("codes", {}).items()]
    words["statistic"] = [asked["contents"]]
    return words | ({"weight": asked["weight"]} if "weight" in asked else {})


def full(address: str, name: str) -> dict[str, Any]:
    """A question with all that the clients need to know of it."""
    asked = TABLES[name]
    if name in QUESTIONS:
        return asked | {"plain": plainly(asked), "flow": asked["table"]}
    first = fetched(f"{address}/api/v1/prepared/biz-2025")["tables"][0]
    [table] = [t["id"] for t in fetched(f"{address}/pxapi/v2/tables", query="region")["tables"]][:1]
    asked = asked | {"table": table, "select": {name: ["*"] for name in asked["by"]}}
    asked["flow"] = table.replace(".", "_")
    listed = first["files"]
    files = {
        form: f"/{one.split('/', 3)[3]}" if "://" in one else one for form, one in listed.items()
    }
    return asked | {"files": files}


def expected(address: str, asked: dict[str, Any]) -> tuple[list[Any], list[bool]]:
    """The cells of our own answer, with labels, and which are hidden."""
    if "files" in asked:
        table = fetched(f"{address}{asked['files']['json-stat']}")
    else:
        table = fetched(f"{address}/api/v1/tables", **asked["plain"])["table"]
    cells: list[Any] = [[]]
    for name in asked["by"]:
        labels = table["dimension"][name]["category"]["label"].values()
        cells = [[*cell, label] for cell in cells for label in labels]
    values = [None if value is None else float(value) for value in table["value"]]
    hidden = [status not in ("F", None) for status in table.get("status", [None] * len(values))]
    return [list(pair) for pair in zip(cells, values, strict=True)], hidden


def read(python: Path, client: str, address: str, asked: list[dict[str, Any]]) -> Any:
    done = subprocess.run(
        [python, READING, client, address, json.dumps(asked)],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_reads_numbers_labels_missing_cells_and_notes(
    python: Path, server: str, client: str
) -> None:
    asked = [full(server, name) for name in TABLES]
    for name, one, found in zip(TABLES, asked, read(python, client, server, asked), strict=True):
        cells, hidden = expected(server, one)
        assert sorted(map(str, found)) == sorted(map(str, cells)), name
        assert all(cells[place][1] is None for place, secret in enumerate(hidden) if secret)
        assert any(hidden) == (name not in QUESTIONS)
        gaps = any(value is None for _, value in cells)
        assert gaps == (any(hidden) or name == "means over nobody")


def test_the_partial_table_leaves_areas_out(server: str) -> None:
    cells, _ = expected(server, full(server, "partial"))
    listed = fetched(f"{server}/api/v1/datasets/demo/variables/area/categories")["total"]
    assert 0 < len(cells) < 2 * listed


if __name__ == "__main__":
    print(ensured())
