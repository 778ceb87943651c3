"""Readers who signed in at a provider of OpenID Connect, through a proxy; all in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import numpy as np
import pytest

from lustrum.ledger.releases import PUBLIC, ReleaseBook
from lustrum.server import Settings, create_app
from server.conftest import served
from server.houses import SHAPE, house
from server.test_fuzz_leaks import METHODS, RISKY
from services import free_port
from waiting import until

TESTS = Path(__file__).parents[1]
TABLE = "/api/v1/tables?dataset=marked&by=sex&by=area"


@contextmanager
def running(*words: object) -> Iterator[str]:
    """A process, once it answers on the port that it was given."""
    process = subprocess.Popen(
        [sys.executable, "-m", "server.oidc", *map(str, words)],
        cwd=TESTS,
        env={**os.environ, "PYTHONPATH": str(TESTS), "AUTHLIB_INSECURE_TRANSPORT": "1"},
    )
    address = f"http://127.0.0.1:{words[1]}"

    def answers() -> bool:
        assert process.poll() is None
        try:
            return httpx.get(f"{address}/keys", timeout=5).status_code < 600
        except httpx.TransportError:
            return False

    try:
        until(answers)
        yield address
    finally:
        process.terminate()
        process.wait(20)


def test_readers_sign_in_at_a_provider_and_a_proxy_vouches_for_them(tmp_path: Path) -> None:
    counts = 400 + 7 * np.arange(np.prod(SHAPE)).reshape(SHAPE)
    method = RISKY + METHODS["random-rounding"] + "[ledger]\nlimit = 1\n"
    one = house(tmp_path / "data", counts, method, "[rules]\nmax_dimensions = 1\n")
    policies = tmp_path / "data" / "policies"
    wide = (
        (policies / "marked.toml").read_text().replace("max_dimensions = 1", "max_dimensions = 2")
    )
    (policies / "marked.licensed.toml").write_text(f'role = "licensed"\n{wide}')
    app = create_app(
        one.service,
        Settings(
            rate="",
            trusted_proxies="127.0.0.1",
            reader_header="X-Forwarded-User",
            roles_header="X-Forwarded-Groups",
        ),
    )
    provider, proxy = free_port(), free_port()
    with ExitStack() as open_:
        server = open_.enter_context(served(app, proxy_headers=False))
        open_.enter_context(running("provider", provider, proxy))
        front = open_.enter_context(running("proxy", proxy, provider, server))

        def browser(user: str | None) -> httpx.Client:
            found = open_.enter_context(httpx.Client(base_url=front, follow_redirects=True))
            if user is not None:
                found.cookies.set("provider-session", user, domain="127.0.0.1")
                assert found.get("/login").url.path == "/"
            return found

        decisions = {
            user: browser(user).get(TABLE).json()["decision"] for user in ("anna", "ben", None)
        }
        assert decisions == {"anna": "answer", "ben": "refusal", None: "refusal"}
        # What a browser says of itself does not reach the server, and a stranger does not get in.
        forged = {"X-Forwarded-User": "anna", "X-Forwarded-Groups": "staff"}
        assert browser(None).get(TABLE, headers=forged).json()["decision"] == "refusal"
        assert browser(None).get("/callback?state=x&code=y").status_code == 400
        mallory = open_.enter_context(httpx.Client(base_url=front, follow_redirects=True))
        mallory.cookies.set("provider-session", "mallory", domain="127.0.0.1")
        mallory.get("/login")
        assert "proxy-session" not in mallory.cookies
        assert mallory.get(TABLE).json()["decision"] == "refusal"
    book = ReleaseBook(tmp_path / "data")
    assert [book.names().get(one.audience, PUBLIC) for one in book.entries()] == ["anna"]
    one.service.close()


@pytest.mark.parametrize("name", ["authlib", "joserfc"])
def test_the_server_needs_none_of_it(name: str) -> None:
    code = f"import sys, lustrum.server; sys.exit({name!r} in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
