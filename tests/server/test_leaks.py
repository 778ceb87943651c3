"""A refusal tells nothing that depends on the data beyond that it is one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from lustrum.demo import description_path, people
from lustrum.local import local_service
from lustrum.policy import read_policy
from lustrum.server import create_app
from lustrum.tabulate import FrameSource, Store, ingest, read_description

STRICT = """
dataset = "demo"
[rules]
min_population = 2500
[risk]
limit = 0.0
[protect]
method = "random-rounding"
end = true
"""
REFUSED = [
    "by=age&by=occupation",  # by its risk after protection
    "by=area&by=age&by=occupation",  # by its number of cells, or its risk
    "by=sex&where=area:2-06-001",  # by its population
    "by=sex&by=age&by=region&by=education",  # by its variables
    "by=age:labour-market",  # by its categories
]


@pytest.fixture(scope="module")
def houses(tmp_path_factory: pytest.TempPathFactory) -> list[TestClient]:
    """Two agencies with the same policy and different people."""
    clients = []
    for persons, seed in ((6000, 1), (7001, 2)):
        root = tmp_path_factory.mktemp("house")
        ingest(
            FrameSource(people(persons, seed)),
            read_description(description_path("demo")),
            Store(root),
        )
        (root / "policies").mkdir()
        (root / "policies" / "demo.toml").write_text(STRICT)
        clients.append(
            TestClient(create_app(local_service(root, workers=1)), base_url="http://x.test")
        )
    return clients


def _still(headers: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in headers.items() if name != "ratelimit"}


@pytest.mark.parametrize("query", REFUSED)
def test_the_same_refusal_is_the_same_bytes_for_any_people(
    houses: list[TestClient], query: str
) -> None:
    for path in (f"/api/v1/tables?dataset=demo&{query}", f"/datasets/demo/table?{query}"):
        asked = {"X-Request-ID": "the-same"}
        first, second = (house.get(path, headers=asked) for house in houses)
        assert "refusal" in first.text or "cannot be shown" in first.text
        assert first.content == second.content
        # How often one may still ask depends on when one asked, not on the people.
        assert _still(first.headers) == _still(second.headers)


@pytest.mark.parametrize("query", ["by=age&by=occupation", "by=sex&where=area:2-06-001"])
def test_a_refusal_holds_no_number_but_the_limits_of_the_policy(
    houses: list[TestClient], query: str, tmp_path: Path
) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(STRICT)
    policy = read_policy(path)
    base = str(policy.protect.spec.base)
    limits = {f"{policy.rules.min_population:,}", f"{policy.risk.limit:g}", base}
    body = houses[0].get(f"/api/v1/tables?dataset=demo&{query}").json()
    assert body["decision"] == "refusal"
    said = {key: body[key] for key in ("reasons", "table", "risk", "utility", "trace", "notes")}
    found = set(re.findall(r"\d[\d,.]*\d|\d", json.dumps(said)))
    assert found <= limits
