"""Every route for every role: what a reader gets is what everybody gets where their policy is the only one.

The routes are those of the application, held to it by ``test_every_route_is_asked_below``. Two houses serve as
oracles: one has the policy for the public alone, the other that for the licensed, as everybody's. A house that
has both must answer each reader with the bytes of one of them, whoever asked before.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

from lustrum.answer.readers import Reader, reading_as
from lustrum.answer.tokens import Tokens
from lustrum.policy.policy import Role
from lustrum.publish.bundles.make import make_bundle
from lustrum.server import Settings, create_app
from lustrum.tabulate import Store
from server.houses import ROUTES, SHAPE, Asked, House, house
from server.test_fuzz_leaks import CHANGING, METHODS, RISKY, STRICT

PROXY = "10.0.0.1"
SETTINGS = Settings(
    rate="",
    trusted_proxies=PROXY,
    reader_header="X-Forwarded-User",
    roles_header="X-Forwarded-Groups",
)
NARROW = "[rules]\nmax_dimensions = 1\nmax_filters = 0\nmax_cells = 9\n"
WIDE = "[rules]\nmax_dimensions = 2\nmax_filters = 1\nmax_cells = 9\n"
FOR_ALL = {"vary", "access-control-allow-origin", "content-security-policy", "etag"}
"""Headers of which more is said to readers who are recognised, and tags of what chance named."""

OF_ALL = ("GET /health/ready", "GET /pxapi/v2/config")
"""What is said of the server as a whole: that it is ready, and whether pages of other sites may read it."""

ASKED = [(name, one.sure) for name, one in ROUTES.items() if "picture.js" not in name]
TWO = "by=sex&by=area"
FINER = [
    (asked.path, asked)
    for asked in (
        Asked("POST", "/api/v1/tables", body={"dataset": "marked", "by": ["sex", "area"]}),
        *(Asked("GET", f"/api/v1/tables?dataset=marked&{TWO}{f}") for f in ("", "&format=csv")),
        Asked("GET", f"/api/v1/hints?dataset=marked&{TWO}"),
        *(Asked("GET", f"/datasets/marked/{page}?{TWO}") for page in ("table", "embed")),
        Asked("GET", f"/fr/datasets/marked?{TWO}"),
        Asked("GET", "/pxapi/v2/tables/marked/data?valueCodes[sex]=*&valueCodes[area]=*"),
        Asked("GET", "/sdmx/v2/data/dataflow/LUSTRUM/marked/1.0/*?c[sex]=f,m&c[area]=n1,n2,s1"),
        Asked("GET", "/api/dissemination/statistics/1.0/data/marked?sex=f&area=n1&area=s1"),
    )
]
"""Questions that the policy for the licensed alone answers."""

SERVED: dict[Role, Role] = {
    "public": "public",
    "registered": "public",
    "licensed": "licensed",
    "staff": "licensed",
}

ORDERS: tuple[tuple[Role, ...], ...] = (
    ("public", "licensed", "registered", "staff"),
    ("licensed", "public", "staff", "registered"),
)
"""Both policies take turns, and either comes first."""


class Agency:
    """A house for several roles, and for each policy a house that has no other."""

    def __init__(self, root: Path, kind: str) -> None:
        root.mkdir()
        counts = 400 + 7 * np.arange(np.prod(SHAPE)).reshape(SHAPE)
        method = STRICT if kind == "bundle" else RISKY + METHODS["random-rounding"]
        self.only = kind == "licensed only"
        self.alone = {
            "public": house(root / "public", counts, method, NARROW),
            "licensed": house(root / "licensed", counts, method, WIDE),
        }
        both = house(root / "both", counts, method, NARROW)
        policies = root / "both" / "policies"
        if kind == "bundle":
            place = root / "both" / "bundles" / "marked"
            make_bundle(Store(root / "both"), "marked", policies / "marked.toml", place, workers=1)
            for name in self.alone:
                shutil.copytree(place, root / name / "bundles" / "marked")
        wide = (root / "licensed" / "policies" / "marked.toml").read_text()
        (policies / "marked.licensed.toml").write_text(f'role = "licensed"\n{wide}')
        if self.only:
            (policies / "marked.toml").unlink()
            (root / "public" / "policies" / "marked.toml").unlink()
        app = create_app(both.service, SETTINGS)
        client = TestClient(app, base_url="http://house.test", client=(PROXY, 1))
        self.both = replace(both, app=app, client=client)
        self.known: dict[Role, dict[str, str]] = {}
        for role in ("licensed",) if self.only else ("licensed", "public"):
            with reading_as(Reader(role=role)):
                self.both.make_job()
            self.known[role] = self.both.known
            self.alone[role].make_job()
        self.known.setdefault("public", self.known["licensed"])
        if self.only:
            self.alone["public"].known = self.known["licensed"]  # where they name no job
        tokens = Tokens(root / "both")
        bearer = {r: f"Bearer {tokens.add('anna', r, 1)}" for r in ("registered", "staff")}
        self.names: dict[Role, dict[str, str]] = {
            "public": {},
            "registered": {"Authorization": bearer["registered"]},
            "licensed": {"X-Forwarded-User": "ben", "X-Forwarded-Groups": "paris, licensed"},
            "staff": {"Authorization": bearer["staff"]},
        }

    def ask(self, asked: Asked, role: Role) -> Any:
        """What a reader gets."""
        self.both.known = self.known[SERVED[role]]
        return self.both.ask(replace(asked, headers={**asked.headers, **self.names[role]}))


@pytest.fixture(scope="module", params=["records", "bundle", "licensed only"])
def agency(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Agency]:
    one = Agency(tmp_path_factory.mktemp("roles") / "data", request.param)
    yield one
    for each in (one.both, *one.alone.values()):
        each.service.close()


def _still(at: House, text: str) -> str:
    for word, name in at.known.items():
        text = text.replace(name, word)
    return CHANGING.sub("", text)


def test_each_role_gets_what_everybody_gets_under_its_policy_alone(agency: Agency) -> None:
    differ = set()
    for at, (name, sure) in enumerate((*ASKED, *FINER)):
        seen, alone = {}, {}
        for role in ORDERS[at % 2]:
            got, ours, other = agency.ask(sure, role), agency.both, agency.alone[SERVED[role]]
            if SERVED[role] not in alone or sure.method != "GET":
                alone[SERVED[role]] = other.ask(sure)
            expected = alone[SERVED[role]]
            where = (name, role)
            if agency.only and name in OF_ALL and SERVED[role] == "public":
                # That something is served, and from records, is no secret; what it is they do not say.
                assert got.status_code == 200
                assert "marked" not in got.text
                seen[role] = b""
                continue
            assert got.status_code == expected.status_code < 500, where
            if re.match(r"text/|application/(problem\+)?json", got.headers.get("content-type", "")):
                assert _still(ours, got.text) == _still(other, expected.text), where
            else:
                assert got.content == expected.content, where
            heads = [
                {k: _still(o, v) for k, v in a.headers.items() if k not in FOR_ALL}
                for o, a in ((ours, got), (other, expected))
            ]
            assert heads[0] == heads[1], where
            seen[role] = got.content
            vary = got.headers["vary"].lower()
            assert all(
                h in vary for h in ("authorization", "x-forwarded-user", "x-forwarded-groups")
            ), where
            kept = got.headers["cache-control"]
            assert kept in ("no-store", "private, no-cache"), where
            if role != "public":
                assert "access-control-allow-origin" not in got.headers, where
                assert "frame-ancestors 'none'" in got.headers["content-security-policy"], where
        differ |= {name} if seen["public"] != seen["licensed"] else set()
    # The oracles differ where it matters.
    assert {name for name, _ in FINER} <= differ


def test_whoever_is_not_recognised_is_never_answered(agency: Agency) -> None:
    wrong = Tokens(agency.both.service.root).add("cleo", "staff", 1)
    wrong = wrong[:-1] + ("A" if wrong[-1] != "A" else "B")
    for name, one in ROUTES.items():
        agency.both.known = agency.known["public"]
        got = agency.both.ask(
            replace(one.sure, headers={**one.sure.headers, "Authorization": f"Bearer {wrong}"})
        )
        assert got.status_code == 401, name
        assert got.headers["www-authenticate"] == "Bearer"
        assert got.headers["cache-control"] == "no-store"
        assert wrong not in got.text + "".join(agency.both.lines)
        if name.split()[1].startswith(("/api", "/pxapi", "/sdmx")):
            assert got.headers["content-type"].startswith("application/problem+json"), name


def test_a_job_is_found_by_those_alone_whose_policy_made_it(agency: Agency) -> None:
    licensed, names = agency.known["licensed"], agency.names
    for path in ("/api/v1/jobs/{job}", "/api/v1/jobs/{job}/result", "/jobs/{job}"):
        path = path.format(job=licensed["{job}"])
        for role, status in (("public", 404), ("registered", 404), ("licensed", 0), ("staff", 0)):
            got = agency.both.client.get(path, headers=names[role], follow_redirects=False)
            assert (got.status_code == 404) == (status == 404), (path, role)
    gone = agency.both.client.delete(
        f"/api/v1/jobs/{licensed['{job}']}", headers={"Cancel-Token": licensed["{token}"]}
    )
    assert gone.status_code == 404


def test_a_frame_says_the_same_to_everybody_however_its_code_was_made(agency: Agency) -> None:
    page = "/datasets/marked/embed?by=sex&by=area"
    licensed = agency.both.client.get(page, headers=agency.names["licensed"])
    assert licensed.status_code == 200
    other = agency.both.client.get(page)
    assert other.content == agency.alone["public"].client.get(page).content
    assert other.content != licensed.content
