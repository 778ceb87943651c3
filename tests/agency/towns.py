"""A small data folder for the agency's pages, an invented town protected once; and who is let in to them."""

from __future__ import annotations

import random
from pathlib import Path

from rich.console import Console
from starlette.applications import Starlette
from starlette.testclient import TestClient

from lustrum.cli.protect import protect_dataset
from lustrum.policy.presets import preset
from lustrum.tabulate import FileSource, Secret, Store, ingest, read_description

DESCRIPTION = """
[dataset]
name = "town"
title = "The town"
unit = "person"
units = "people"
record_id = "id"

[[variables]]
name = "area"
label = "Area"
codes = [["N", "North"], ["S", "South"], ["E", "East"]]

[[variables]]
name = "sex"
label = "Sex"
codes = [["m", "Male"], ["f", "Female"]]

[[variables]]
name = "age"
label = "Age"
codes = [["0", "0 to 14"], ["1", "15 to 64"], ["2", "65 and over"]]
"""


HERE = "http://127.0.0.1:8001"


def stranger(app: Starlette, machine: str = "127.0.0.1", **headers: str) -> TestClient:
    """A client of the pages that was not let in, and else does all that a browser does."""
    usual = {"Origin": HERE, "Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
    return TestClient(app, base_url=HERE, client=(machine, 5000), headers={**usual, **headers})


def let_in(app: Starlette, **headers: str) -> TestClient:
    """A client that was let in by the key."""
    client = stranger(app, **headers)
    assert client.get(app.state.door.address("")).status_code == 200
    return client


def people(path: Path, number: int = 600, seed: int = 11) -> Path:
    """Invented people as a file."""
    draw = random.Random(seed)
    rows = [
        f"{i},{draw.choice('NNSE')},{draw.choice('mf')},{draw.choice('0112')}"
        for i in range(1, number + 1)
    ]
    path.write_text("id,area,sex,age\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def town(data: Path) -> Path:
    """The data folder."""
    description = data.parent / "town.toml"
    description.write_text(DESCRIPTION, encoding="utf-8")
    source = FileSource(people(data.parent / "town.csv"))
    dataset = read_description(description)
    ingest(source, dataset, Store(data), secret=Secret(bytes(range(32))))
    policies = data / "policies"
    policies.mkdir()
    (policies / "town.toml").write_text(preset("strict", dataset), encoding="utf-8")
    protect_dataset("town", data, Console(quiet=True), workers=1)
    return data
