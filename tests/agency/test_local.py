"""The page stays on this machine: where it listens, whom it answers, what another site cannot do."""

from __future__ import annotations

import base64
import socket
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from lustrum.agency import create_agency_app
from lustrum.agency.app import listen
from lustrum.model import InputError

HERE = "http://127.0.0.1:8001"


def client_of(app: Starlette, machine: str = "127.0.0.1") -> TestClient:
    return TestClient(app, base_url=HERE, client=(machine, 5000))


@pytest.fixture
def local(tmp_path: Path) -> Starlette:
    return create_agency_app(policy=tmp_path / "policy.toml")


def right(app: Starlette) -> dict[str, str]:
    return {"Origin": HERE, "X-Lustrum-Token": app.state.token, "Sec-Fetch-Site": "same-origin"}


def asked(table_file: Path, **more: Any) -> dict[str, Any]:
    content = base64.b64encode(table_file.read_bytes()).decode()
    files = [{"name": "faith.csv", "content": content}]
    return {"files": files, "methods": {"conventional-rounding": "3"}, "replications": 2, **more}


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "", "127.0.0.1.evil"]
)
def test_no_address_but_a_loopback_one_is_listened_on(host: str) -> None:
    with pytest.raises(InputError, match="loopback"):
        listen(host, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.9"])
def test_a_loopback_address_is_bound_to_itself(host: str) -> None:
    with listen(host, 0) as listening:
        assert listening.getsockname()[0].startswith("127.")


def test_a_port_in_use_is_one_sentence() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot be used"):
            listen("127.0.0.1", taken.getsockname()[1])


def test_another_machine_gets_nothing(local: Starlette) -> None:
    assert client_of(local, "192.0.2.7").get("/").status_code == 403


@pytest.mark.parametrize(
    "host",
    [
        "maps.example.org",
        "127.0.0.1.example.org",
        "",
        "[::1",
        "evil@localhost",
        "evil@127.0.0.1",
        "localhost/x",
        "2130706433",
        "localhost:x",
    ],
)
def test_a_name_that_somebody_points_to_this_machine_gets_nothing(
    local: Starlette, host: str
) -> None:
    assert client_of(local).get("/", headers={"Host": host}).status_code == 403


def test_another_site_can_neither_read_nor_change(local: Starlette, table_file: Path) -> None:
    client = client_of(local)
    assert client.get("/", headers={"Sec-Fetch-Site": "cross-site"}).status_code == 403
    assert client.get("/", headers={"Sec-Fetch-Site": "same-site"}).status_code == 403
    good = right(local)
    assert client.post("/maps", json=asked(table_file), headers=good).status_code == 200
    for change in (
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": "null"},
        {"X-Lustrum-Token": "guess"},
        {"Sec-Fetch-Site": "cross-site"},
    ):
        answer = client.post("/maps", json=asked(table_file), headers={**good, **change})
        assert answer.status_code == 403, change
    for missing in ("Origin", "X-Lustrum-Token"):
        rest = {k: v for k, v in good.items() if k != missing}
        assert client.post("/maps", json=asked(table_file), headers=rest).status_code == 403
    assert len(local.state.jobs.all()) == 1


def test_what_another_site_cannot_do_to_the_policy(
    local: Starlette, table_file: Path, tmp_path: Path
) -> None:
    client = client_of(local)
    client.post("/maps", json=asked(table_file, limit=0.5), headers=right(local))
    local.state.jobs.get(1).wait(300)
    address = "/maps/1/points/0/policy"
    assert client.post(address, headers={"Origin": "http://evil.example"}).status_code == 403
    assert client.get(address).status_code == 405
    assert not (tmp_path / "policy.toml").exists()
    assert client.post(address, headers=right(local)).status_code == 200
    assert (tmp_path / "policy.toml").read_text().endswith("end = true\n")


def test_every_answer_forbids_frames_other_hosts_and_keeping(local: Starlette) -> None:
    client = client_of(local)
    for path in ("/", "/static/agency.js", "/nothing", "/maps/7"):
        headers = client.get(path).headers
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"files": []}, "Drop in"),
        ({"methods": {}}, "No method"),
        ({"methods": {"rm": ""}}, "no method 'rm'"),
        ({"methods": {"random-rounding": "three"}}, "commas"),
        ({"replications": 0}, "whole number"),
        ({"limit": "much"}, "limit"),
        ({"files": [{"name": "x.csv", "content": "%%"}]}, "did not arrive"),
        ({"risk": "uniques"}, "unprotected tables only"),
    ],
)
def test_mistakes_are_one_sentence(
    local: Starlette, table_file: Path, change: dict[str, Any], words: str
) -> None:
    answer = client_of(local).post(
        "/maps", json={**asked(table_file), **change}, headers=right(local)
    )
    assert answer.status_code == 422
    assert words in answer.text


def test_the_public_server_does_not_know_the_page() -> None:
    import subprocess
    import sys

    code = (
        "import sys, lustrum.server, lustrum.server.app; "
        "print([m for m in sys.modules if m.startswith('lustrum.agency')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_a_method_without_a_place_on_the_map_is_named_beside_it(
    local: Starlette, table_file: Path
) -> None:
    """The table-level risk needs all cells, so suppression has no point; the page says so."""
    client = client_of(local)
    methods = {"conventional-rounding": "3", "suppression": ""}
    client.post("/maps", json=asked(table_file, methods=methods), headers=right(local))
    local.state.jobs.get(1).wait(300)
    page = client.get("/maps/1").text
    assert "<strong>suppression</strong> is not on the map." in page
    assert "the entropy risk is for methods that show all" in page
    assert "<strong>conventional-rounding" not in page
