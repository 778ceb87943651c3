"""Nobody is taken for a reader by guess, and nobody who claims to be one is answered as the public."""

from __future__ import annotations

import hmac
import json
import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from lustrum.answer import tokens as tokens_module
from lustrum.answer.readers import EVERYBODY, Reader, check_name, current_reader
from lustrum.answer.tokens import Tokens
from lustrum.cli import app as command_line
from lustrum.ledger.releases import ReleaseBook
from lustrum.local import health
from lustrum.model import DatasetError, InputError
from lustrum.server import Settings, create_app
from lustrum.server.http.readers import Readers, TrustedProxies
from server.conftest import run_alone, served
from server.houses import SHAPE, House, house
from server.test_fuzz_leaks import METHODS, RISKY

PROXY, OTHER = "10.0.0.1", "10.0.0.2"
ASKED = "/api/v1/tables?dataset=marked&by=sex"
COUNTED = "[ledger]\nlimit = 1\naudience = {audience!r}\n"


def settings(**words: Any) -> Settings:
    given: dict[str, Any] = {
        "rate": "",
        "trusted_proxies": f"{PROXY}, 10.1.0.0/16",
        "reader_header": "X-Forwarded-User",
        "roles_header": "X-Forwarded-Groups",
    }
    return Settings(**(given | words))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[House]:
    """A house that records who holds what, for everybody and for the licensed."""
    root = tmp_path_factory.mktemp("readers") / "data"
    counts = 400 + 7 * np.arange(np.prod(SHAPE)).reshape(SHAPE)
    rules = "[rules]\nmax_dimensions = 1\n"
    one = house(
        root, counts, RISKY + METHODS["random-rounding"] + COUNTED.format(audience="each"), rules
    )
    policies = root / "policies"
    text = (
        (policies / "marked.toml").read_text().replace("max_dimensions = 1", "max_dimensions = 3")
    )
    (policies / "marked.licensed.toml").write_text(f'role = "licensed"\n{text}')
    yield one
    one.service.close()


def client(home: House, peer: str = PROXY, **words: Any) -> TestClient:
    app = create_app(home.service, settings(**words))
    return TestClient(app, base_url="http://house.test", client=(peer, 1))


def reader_of(
    home: House, headers: list[tuple[str, str]], peer: str = PROXY, **words: Any
) -> Reader | int:
    """Who asks, as the layer says it, or the status by which it refuses."""
    got: list[Any] = []

    async def inner(scope: Any, receive: Any, send: Any) -> None:
        got.append(current_reader())

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            got.append(message["status"])

    given = settings(**words)
    layer = Readers(inner, given, Tokens(home.service.root), pages=None)  # type: ignore[arg-type]
    proxies = TrustedProxies(layer, given.trusted_proxies)
    raw = [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
    scope = {
        "type": "http", "method": "GET", "path": "/api/v1/x", "query_string": b"", "headers": raw,
        "client": (peer, 1), "scheme": "http", "server": ("house.test", 80), "root_path": "",
    }  # fmt: skip
    run_alone(proxies(scope, None, send))  # type: ignore[arg-type]
    assert len(got) == 1
    return got[0]  # type: ignore[no-any-return]


def test_a_trusted_proxy_vouches_for_a_reader(home: House) -> None:
    user = ("X-Forwarded-User", "anna@example.org")
    assert reader_of(home, []) == EVERYBODY
    assert reader_of(home, [user]) == Reader("anna@example.org", "registered")
    groups = ("X-Forwarded-Groups", "paris, licensed,registered")
    assert reader_of(home, [user, groups]) == Reader("anna@example.org", "licensed")
    assert reader_of(home, [user], "10.1.2.3") == Reader("anna@example.org", "registered")
    # A word that is nearly a role is none.
    for near in ("Licensed", "licensed staff", "staff;", "not-staff"):
        assert reader_of(home, [user, ("X-Forwarded-Groups", near)]).role == "registered"  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Forwarded-User", "")],
        [("X-Forwarded-User", "anna ben")],
        [("X-Forwarded-User", "anna,ben")],
        [("X-Forwarded-User", "(null)")],
        [("X-Forwarded-User", "anna\xe9")],
        [("X-Forwarded-User", "a" * 201)],
        [("X-Forwarded-User", "anna"), ("X-Forwarded-User", "anna")],
        [("X-Forwarded-User", "anna"), ("x-forwarded-user", "ben")],
        [("X-Forwarded-Groups", "staff")],
        [("X-Forwarded-User", "anna"), ("X-Forwarded-Groups", "staff"), ("X-Forwarded-Groups", "staff")],
        [("X-Forwarded-User", "anna"), ("X-Forwarded-Groups", "staff," + "x" * 5000)],
        [("X-Forwarded-User", "anna"), ("X-Forwarded-Groups", "staff\x85")],
        [("X-Forwarded-User", "anna"), ("Authorization", "Bearer x")],
        [("Authorization", "Bearer x")],
        [("Authorization", "bearer")],
        [("Authorization", "")],
        [("Authorization", "Token x")],
    ],
)  # fmt: skip
def test_what_is_odd_doubled_or_too_long_is_refused(
    home: House, headers: list[tuple[str, str]]
) -> None:
    assert reader_of(home, headers) == 401


def test_a_group_is_stated_of_every_reader_or_of_none(home: House) -> None:
    user, group = ("X-Forwarded-User", "anna"), ("X-Group", "uni-7")

    def found(*headers: tuple[str, str]) -> Reader | int:
        return reader_of(home, list(headers), group_header="X-Group")

    assert found(user, group) == Reader("anna", "registered", "uni-7")
    assert found() == EVERYBODY
    # Without it they would count for themselves, apart from their group.
    for odd in ((user,), (group,), (user, group, group), (user, ("X-Group", "two words"))):
        assert found(*odd) == 401


def test_a_header_from_another_address_is_refused_whoever_it_names(home: House) -> None:
    named = [("X-Forwarded-User", "anna"), ("X-Forwarded-Groups", "staff")]
    forged = [
        *named,
        ("X-Forwarded-For", PROXY),
        ("X-Real-IP", PROXY),
        ("Forwarded", f"for={PROXY}"),
    ]
    for headers in (named, forged):
        assert reader_of(home, headers, OTHER) == 401
    # From the proxy the address of the client changes nothing.
    assert reader_of(home, [*named, ("X-Forwarded-For", OTHER)]) == Reader("anna", "staff")
    # Names that other servers take for the same are none.
    for name in (
        "X_Forwarded_User",
        "X-Forwarded-User-",
        "X-Forwarded-Use",
        "HTTP_X_FORWARDED_USER",
    ):
        assert reader_of(home, [(name, "anna")]) == EVERYBODY
    # Where no header is set, none is looked at.
    without = {"reader_header": "", "roles_header": "", "trusted_proxies": ""}
    assert reader_of(home, named, OTHER, **without) == EVERYBODY


NAMES = st.text(st.characters(codec="latin-1", exclude_characters="\r\n"), max_size=250)


SENT = st.sampled_from(["X-Forwarded-User", "X-Forwarded-Groups", "X-Group", "Authorization"])


@given(st.lists(st.tuples(SENT, NAMES), max_size=4))
def test_whatever_is_sent_gives_a_well_named_reader_or_is_refused(
    home: House, headers: list[tuple[str, str]]
) -> None:
    for peer in (PROXY, OTHER):
        found = reader_of(home, headers, peer)
        if found == 401:
            continue
        assert isinstance(found, Reader)
        if found != EVERYBODY:
            assert peer == PROXY
            names = [value for name, value in headers if name == "X-Forwarded-User"]
            assert names == [found.name] == [check_name(found.name)]


def test_a_right_token_stands_alone(home: House) -> None:
    tokens = Tokens(home.service.root)
    text = tokens.add("anna", "licensed", 1)
    right = ("Authorization", f"Bearer {text}")
    try:
        assert reader_of(home, [right]) == Reader("anna", "licensed")
        for beside in (right, ("Authorization", "Basic x"), ("X-Forwarded-User", "ben")):
            for headers in ([right, beside], [beside, right]):
                assert reader_of(home, headers) == 401
    finally:
        tokens.revoke(text.split("_")[1])


def test_a_token_is_kept_as_a_digest_and_ends(
    home: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = Tokens(tmp_path)
    assert not tokens.there
    text = tokens.add("anna", "licensed", 30, "uni-7", ["town"])
    [token] = tokens.all().values()
    assert tokens.reader_of(text) == Reader("anna", "licensed", "uni-7", frozenset({"town"}))
    kept = (tmp_path / "ledger" / "tokens.json").read_text()
    secret = text.rpartition("_")[2] if text.count("_") == 2 else text.split("_", 2)[2]
    assert secret not in kept
    assert (tmp_path / "ledger" / "tokens.json").stat().st_mode & 0o077 == 0
    for wrong in (
        text[:-1],
        text + "x",
        text.upper(),
        text.replace(token.id, "0" * 12),
        "",
        secret,
        " " + text,
    ):
        assert tokens.reader_of(wrong) is None

    class Later(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime.now(UTC) + timedelta(days=30, seconds=1)

    monkeypatch.setattr(tokens_module, "datetime", Later)
    assert tokens.reader_of(text) is None


def test_tokens_are_compared_in_constant_time_also_where_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tokens = Tokens(tmp_path)
    text = tokens.add("anna", "staff", 1)
    compared: list[tuple[int, int]] = []

    def watched(one: str, other: str) -> bool:
        compared.append((len(one), len(other)))
        return one == other

    monkeypatch.setattr(hmac, "compare_digest", watched)
    for sent in (text, text.replace(text[8:20], "0" * 12), "x"):
        tokens.reader_of(sent)
    assert compared == [(64, 64)] * 3


def test_a_revoked_token_is_refused_at_once_and_a_damaged_file_lets_nobody_in(
    home: House, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = home.service.root
    assert root is not None
    run, web = CliRunner(), client(home)

    def said(*words: str, code: int = 0) -> str:
        result = run.invoke(command_line, ["token", *words, "--data", str(root)])
        assert result.exit_code == code, result.output
        return result.output

    token = said("add", "anna", "--role", "licensed", "--days", "9").splitlines()[0]
    headers = {"Authorization": f"Bearer {token}"}
    with caplog.at_level(logging.DEBUG):
        fine = web.get(f"{ASKED}&by=area", headers=headers)
        assert fine.json()["decision"] == "answer"
        assert web.get(f"{ASKED}&by=area").json()["decision"] == "refusal"
        # In an address it is a parameter that there is not, and a cookie says nothing.
        assert web.get(f"{ASKED}&access_token={token}").status_code == 400
        cookie = web.get(f"{ASKED}&by=area", headers={"Cookie": f"Authorization=Bearer {token}"})
        assert cookie.json()["decision"] == "refusal"
        # A scope that does not cover the dataset makes it one that is not there.
        narrow = said("add", "anna", "--role", "staff", "--dataset", "other").splitlines()[0]
        missing = web.get(ASKED, headers={"Authorization": f"Bearer {narrow}"})
        assert (missing.status_code, "There is no dataset" in missing.text) == (400, True)
        listed = said("list")
        assert "anna  licensed  all datasets" in listed
        assert token not in listed
        name = next(line.split()[0] for line in listed.splitlines() if " licensed " in line)
        said("revoke", name)
        assert web.get(ASKED, headers=headers).status_code == 401
        said("revoke", name, code=1)
        said("add", "anna", "--role", "public", code=1)
        said("add", "anna ben", code=1)
    ours = [one.getMessage() + repr(vars(one)) for one in caplog.records if one.name[:5] != "httpx"]
    assert ours
    assert token.partition("_")[2].partition("_")[2] not in "".join(ours)
    path = root / "ledger" / "tokens.json"
    whole = path.read_text()
    for broken in ("{", '{"tokens": [{}]}', whole.replace('"staff"', '"king"'), whole[:-9]):
        path.write_text(broken)
        with pytest.raises(DatasetError):
            Tokens(root).all()
        assert web.get(ASKED, headers=headers).status_code == 503
        assert web.get(ASKED).status_code == 200
    path.unlink()


def test_what_each_reader_receives_is_entered_for_them(home: House) -> None:
    root = home.service.root
    assert root is not None
    web = client(home, group_header="X-Group")

    def ask(by: str, **headers: str) -> Any:
        return web.get(f"/api/v1/tables?dataset=marked&by={by}", headers=headers).json()

    anna = {"X-Forwarded-User": "anna", "X-Group": "uni-7", "X-Forwarded-Groups": "licensed"}
    ben = {"X-Forwarded-User": "ben", "X-Group": "uni-7", "X-Forwarded-Groups": "licensed"}
    before = sum(1 for _ in ReleaseBook(root).entries())
    assert ask("tenure&by=sex")["decision"] == "refusal"  # by the rules: it makes no line
    for headers in (anna, anna, ben):
        assert ask("tenure&by=sex", **headers)["decision"] == "answer"
    # The public receives what all readers hold with their own, so there is nothing new for it.
    assert ask("tenure")["reasons"][0]["rule"] == "ledger"
    ask("tenure", **anna)
    names = ReleaseBook(root).names()
    entries = list(ReleaseBook(root).entries())[before:]
    assert [names.get(one.audience, one.audience) for one in entries] == ["anna", "ben", "anna"]
    assert "anna" not in json.dumps([dict(one.said) for one in entries])
    # A group counts as one where the policy says so, and those without a group for themselves.
    for path in (root / "policies").iterdir():
        path.write_text(path.read_text().replace("'each'", "'group'"))
    for headers in (anna, ben):
        ask("tenure&by=area", **headers)
    token = Tokens(root).add("cleo", "staff", 1)
    ask("tenure&by=area", Authorization=f"Bearer {token}")
    names = ReleaseBook(root).names()
    last = [
        [names.get(word, "") for word in (one.audience, str(one.said.get("group", "")))]
        for one in ReleaseBook(root).entries()
    ][before + 3 :]
    assert last == [["anna", "group uni-7"], ["ben", "group uni-7"], ["cleo", ""]]


def test_policies_for_roles_protect_alike_and_say_whom_they_serve(home: House) -> None:
    root = home.service.root
    assert root is not None
    path = root / "policies" / "marked.licensed.toml"
    text, web = path.read_text(), client(home)
    licensed = {"X-Forwarded-User": "anna", "X-Forwarded-Groups": "licensed"}
    for wrong in (
        text.replace("base = 5", "base = 3"),
        text.replace("limit = 1\n", "limit = 2\n"),
        text.replace('role = "licensed"', 'role = "staff"'),
        text.replace('role = "licensed"', ""),
    ):
        path.write_text(wrong)
        assert web.get(ASKED, headers=licensed).status_code == 503
        assert web.get(ASKED).status_code == 200
        assert [one for one in health(root) if one.grade == "bad"]
    path.write_text(text)
    assert web.get(ASKED, headers=licensed).status_code == 200
    assert not [one for one in health(root) if one.grade == "bad"]
    # Copied to the place of everybody's policy it serves nobody.
    public = root / "policies" / "marked.toml"
    kept = public.read_text()
    public.write_text(text)
    assert web.get(ASKED).status_code == 503
    public.write_text(kept)


@pytest.mark.parametrize(
    "words",
    [
        {"trusted_proxies": ""},
        {"trusted_proxies": "*"},
        {"trusted_proxies": "0.0.0.0/0"},
        {"trusted_proxies": "::/0"},
        {"trusted_proxies": "10.0.0.1, proxy.example"},
        {"reader_header": ""},
        {"reader_header": "", "roles_header": "", "group_header": "X-Group"},
        {"reader_header": "Host"},
        {"reader_header": "X-Forwarded-For"},
        {"reader_header": "X_Forwarded_User"},
        {"roles_header": "x-forwarded-user"},
        {"group_header": "Authorization"},
    ],
)
def test_settings_that_would_take_anybodys_word_are_refused(words: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        settings(**words)


def test_a_real_server_takes_the_word_of_its_proxy_alone(home: House) -> None:
    headers = {"X-Forwarded-User": "anna", "X-Forwarded-Groups": "licensed"}
    for proxies, status in ((PROXY, 401), ("127.0.0.1", 200)):
        app = create_app(home.service, settings(trusted_proxies=proxies))
        with served(app, proxy_headers=False) as address:
            got = httpx.get(f"{address}{ASKED}", headers={**headers, "X-Forwarded-For": PROXY})
            assert got.status_code == status
