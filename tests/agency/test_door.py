"""The door of the agency's pages under attack: no key, a stolen cookie, other accounts, other sites."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount, Route
from starlette.websockets import WebSocketDisconnect

from agency.towns import let_in, people, stranger
from lustrum.agency import create_agency_app
from lustrum.agency.door import kept_addresses, listen, listen_on_file
from lustrum.ledger.acts import acts_of
from lustrum.model import InputError
from server.conftest import served
from waiting import until

NOBODY = 65534
as_root = pytest.mark.skipif(os.getuid() != 0, reason="another account needs the rights of root")
COOKIE = "lustrum-agency-8001"


@pytest.fixture
def staff(own_town: Path) -> Starlette:
    return create_agency_app(data=own_town)


def places(app: Starlette, *methods: str) -> list[str]:
    """An address of every route with one of the methods."""
    routes = [r for r in app.routes if isinstance(r, Route) and set(methods) & set(r.methods or ())]
    named = [re.sub(r"\{name[^}]*\}", "town", route.path) for route in routes]
    return [re.sub(r"\{[^}]*\}", "1", path) for path in named]


BECOME = f"""
import encodings.idna, os, socket, sys, urllib.error, urllib.request
os.setgroups([])
os.setgid({NOBODY})
os.setuid({NOBODY})
print("up")
"""


def as_nobody(code: str, *words: str) -> str:
    """What a program of another account prints."""
    command = [sys.executable, "-I", "-c", BECOME + code, *words]
    done = subprocess.run(command, cwd="/", capture_output=True, text=True)
    assert done.stdout.startswith("up\n"), done.stderr
    return done.stdout[3:] + done.stderr


# --- Who was not let in


@pytest.mark.parametrize("cookie", ["", "guess", "of another", "under another name"])
def test_no_route_answers_anything_without_the_cookie(staff: Starlette, cookie: str) -> None:
    inside = let_in(staff).cookies[COOKIE]
    other = let_in(create_agency_app(data=None)).cookies[COOKIE]
    name, value = {
        "": ("none", ""),
        "guess": (COOKIE, inside[:-1] + ("A" if inside[-1] != "A" else "B")),
        "of another": (COOKIE, other),
        "under another name": ("lustrum-agency-8002", inside),
    }[cookie]
    client = stranger(staff, Cookie=f"{name}={value}")
    walked = places(staff, "GET", "POST")
    assert len(walked) >= 25
    assert {type(route) for route in staff.routes} == {Route, Mount}
    walked += ["/nothing", "/enter", "/enter?key=", f"/enter?key={inside}", "/static", "//", ""]
    walked += ["/static/../import", "/static/%2e%2e/import", "/STATIC/agency.css", "/import/?key=1"]
    for path in walked:
        for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"):
            answer = client.request(method, path, follow_redirects=False)
            nothing = {403, 404} if "%2e" in path else {403}
            assert answer.status_code in nothing, (method, path)
            assert "town" not in answer.text
            assert "set-cookie" not in answer.headers
            assert staff.state.door.key not in answer.text + str(answer.headers)
    page = client.get("/import").text
    assert "closed to you" in page
    assert "lustrum agency --address" in page
    assert "<nav" not in page or "/import" not in page
    # What is the same for everybody is open, so that the page of a refusal has its styles.
    assert client.get("/static/agency.css").status_code == 200
    assert client.post("/static/agency.css").status_code == 403
    with pytest.raises(WebSocketDisconnect), client.websocket_connect("/tasks"):
        pass


def test_the_key_lets_in_once_and_the_cookie_is_the_browsers_alone(staff: Starlette) -> None:
    door, client = staff.state.door, stranger(staff)
    key = door.key
    assert len(key) >= 43
    for wrong in ("", key[:-1], f"{key}A", key.swapcase(), f" {key}", "\N{SNOWMAN}"):
        assert client.get("/enter", params={"key": wrong}).status_code == 403
    for method in ("HEAD", "POST", "PUT"):
        assert client.request(method, "/enter", params={"key": key}).status_code == 403
    assert client.get("/", params={"key": key}).status_code == 403
    assert door.key == key
    # A page of a file leads to it, as a site would: no other request of that kind is answered.
    answer = client.get("/enter", params={"key": key}, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 200
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["refresh"] == "0; url=/"
    assert key not in answer.text + str(answer.headers)
    said = answer.headers["set-cookie"]
    assert re.fullmatch(rf"{COOKIE}=[\w-]{{43}}; HttpOnly; Path=/; SameSite=strict", said)
    assert client.get("/").status_code == 200
    assert client.get("/enter", params={"key": key}).status_code == 200  # gone back to it, inside
    again = stranger(staff).get("/enter", params={"key": key})
    assert again.status_code == 403
    assert again.headers["referrer-policy"] == "no-referrer"
    assert key not in again.text
    assert door.key not in (key, said.split("=")[1][:43])
    assert let_in(staff).cookies[COOKIE] != client.cookies[COOKIE]
    assert client.get("/").status_code == 200
    elsewhere = create_agency_app(data=None)
    assert stranger(elsewhere, Cookie=f"{COOKIE}={client.cookies[COOKIE]}").get("/").is_error


# --- Other names, machines and sites, in the browser of somebody who was let in


@pytest.mark.parametrize(
    "host",
    [
        "maps.example.org", "127.0.0.1.example.org", "", "[::1", "[::1]:8001", "evil@localhost",
        "evil@127.0.0.1", "localhost/x", "127.0.0.1/static/", "2130706433", "localhost:x", "127.0.0.2",
        "localhost:8001\n", "localhost.", "127x0.0.1",
    ],
)  # fmt: skip
def test_a_name_that_somebody_points_to_this_machine_gets_nothing(
    staff: Starlette, host: str
) -> None:
    client = let_in(staff)
    assert client.get("/", headers={"Host": host}).status_code == 403
    key = staff.state.door.key
    assert client.get(f"/enter?key={key}", headers={"Host": host}).status_code == 403
    assert staff.state.door.key == key


def test_another_machine_gets_nothing(staff: Starlette) -> None:
    cookie = f"{COOKIE}={let_in(staff).cookies[COOKIE]}"
    for path in ("/", staff.state.door.address("")):
        assert stranger(staff, "192.0.2.7", Cookie=cookie).get(path).status_code == 403
        assert stranger(staff, Cookie=cookie).get(path).status_code == 200


def test_another_site_can_neither_read_nor_change(staff: Starlette) -> None:
    client = let_in(staff)
    for site in ("cross-site", "same-site", "", "odd"):
        assert client.get("/", headers={"Sec-Fetch-Site": site}).status_code == 403
    assert client.get("/", headers={"Sec-Fetch-Site": "none"}).status_code == 200
    changes = places(staff, "POST")
    assert len(changes) >= 8
    for path in changes:
        for wrong in (
            {"Origin": "http://evil.example"},
            {"Origin": "http://127.0.0.1:9999"},
            {"Origin": "https://127.0.0.1:8001"},
            {"Origin": "http://localhost:8001"},
            {"Origin": "null"},
            {"Origin": ""},
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "none"},
        ):
            assert client.post(path, headers=wrong).status_code == 403, (path, wrong)
        bare = stranger(staff)
        del bare.headers["origin"]
        cookie = {"Cookie": f"{COOKIE}={client.cookies[COOKIE]}"}
        assert bare.post(path, headers=cookie).status_code == 403, path
    assert staff.state.tasks.all() == []


def test_every_answer_forbids_frames_other_hosts_and_keeping(staff: Starlette) -> None:
    for client in (stranger(staff), let_in(staff)):
        for path in ("/", "/static/agency.js", "/nothing", "/maps/7", staff.state.door.address("")):
            headers = client.get(path).headers
            assert "frame-ancestors 'none'" in headers["content-security-policy"]
            assert "default-src 'none'" in headers["content-security-policy"]
            assert headers["cache-control"] == "no-store"
            assert headers["referrer-policy"] in ("same-origin", "no-referrer")
            assert "access-control-allow-origin" not in headers


# --- Another account of this machine

ASK = """
address, cookie, *fields = sys.argv[1:]
headers = {"Cookie": cookie, "Origin": address, "Sec-Fetch-Site": "same-origin", "Accept": "text/html"}
for path in ("/", "/import", "/datasets/town/policy", "/log"):
    for body in (None, b"do=seal&meant=yes&path=/etc/passwd"):
        try:
            request = urllib.request.Request(address + path, body, headers)
            print(urllib.request.urlopen(request).status)
        except urllib.error.HTTPError as error:
            print(error.code, "town" in error.read().decode())
"""


@as_root
@pytest.mark.parametrize("stolen", [False, True])
def test_another_account_gets_nothing_even_with_a_stolen_cookie(
    staff: Starlette, own_town: Path, stolen: bool
) -> None:
    before = (own_town / "policies" / "town.toml").read_bytes()
    with served(staff) as address:  # type: ignore[arg-type]
        with httpx.Client(base_url=address) as client:
            client.get(staff.state.door.address("")).raise_for_status()
            cookie = "; ".join(f"{k}={v}" for k, v in client.cookies.items())
            found = as_nobody(ASK, address, cookie if stolen else "")
            assert found.split() == ["403", "False"] * 8
            assert client.get("/").status_code == 200
    assert (own_town / "policies" / "town.toml").read_bytes() == before


CONNECT = "socket.socket(socket.AF_UNIX).connect(sys.argv[1])"
READ = "open(sys.argv[1])"


@pytest.fixture
def entered() -> Iterator[Path]:
    """A folder that every account may enter and read."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def started(data: Path, *words: str, **env: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "lustrum", "agency", "--data", str(data), *words]
    pipe = subprocess.PIPE
    all_env = {**os.environ, **env}
    return subprocess.Popen(command, stdout=pipe, stderr=subprocess.STDOUT, text=True, env=all_env)


def test_the_command_keeps_its_key_from_logs_and_lists_of_processes(
    tmp_path: Path, entered: Path
) -> None:
    """A browser is opened by a file for its owner alone; the file then holds the next address."""
    data, told = entered / "data", tmp_path / "told"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\nprintf "%s " "$@" > {told}.part\nmv {told}.part {told}\n')
    browser.chmod(0o755)
    running = started(data, "--port", "0", BROWSER=f"{browser} %s")
    try:
        assert running.stdout is not None
        line = running.stdout.readline()
        place = re.search(r"http://127\.0\.0\.1:\d+", line)
        assert place is not None, line
        assert stat.S_IMODE(data.stat().st_mode) == 0o700
        until(told.exists)
        file = Path(urlsplit(told.read_text().strip()).path)
        assert file.parent == data.absolute()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        [address] = kept_addresses(data)
        key = address.partition("key=")[2]
        assert address.startswith(f"{place[0]}/enter?key=")
        assert key not in told.read_text() + line + file.name
        if os.getuid() == 0:
            data.chmod(0o755)  # the file alone is the door
            assert "PermissionError" in as_nobody(READ, str(file))
        with httpx.Client(base_url=place[0]) as client:
            assert client.get("/").status_code == 403
            assert client.get(address).status_code == 200
            assert client.get("/").status_code == 200
            assert httpx.get(address).status_code == 403
        [other] = kept_addresses(data)
        assert other != address
        printed = [sys.executable, "-m", "lustrum", "agency", "--address", "--data", str(data)]
        assert subprocess.run(printed, capture_output=True, text=True).stdout.split() == [other]
        assert httpx.get(other).status_code == 200
    finally:
        running.terminate()
        left, _ = running.communicate(timeout=60)
    assert "key=" not in left
    assert not file.exists()


def test_a_socket_is_a_file_that_its_owner_alone_may_open(own_town: Path, entered: Path) -> None:
    path = entered / "agency.socket"
    running = started(own_town, "--socket", str(path))
    try:
        assert running.stdout is not None
        assert str(path) in running.stdout.readline().replace("\n", "")
        until(lambda: path.is_socket() or running.poll() is not None)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        name = {"Host": "agency.example", "Accept": "text/html"}
        through = httpx.HTTPTransport(uds=str(path))
        with httpx.Client(transport=through, base_url="http://agency.example") as client:
            assert "The town" in client.get("/", headers=name).text
            for origin, code in (
                ("https://agency.example", 422), ("http://agency.example", 422),
                ("https://evil.example", 403), ("null", 403),
            ):  # fmt: skip
                sent = client.post("/import", headers={**name, "Origin": origin})
                assert sent.status_code == code, origin
            own = {"Host": "evil.example/static/", "Origin": "http://agency.example"}
            assert client.post("/import", headers=own).status_code == 403
        if os.getuid() == 0:
            assert "PermissionError" in as_nobody(CONNECT, str(path))
    finally:
        running.terminate()
        running.communicate(timeout=60)
    assert not path.exists()


def test_a_socket_stands_in_a_folder_of_ones_own_and_replaces_nothing(tmp_path: Path) -> None:
    path = tmp_path / "s"
    for mode in (0o777, 0o1777, 0o770):
        tmp_path.chmod(mode)
        with pytest.raises(InputError, match="file of their own"), listen_on_file(path):
            pass
    tmp_path.chmod(0o755)
    with listen_on_file(path) as listening:
        listening.listen()
        with pytest.raises(InputError, match="cannot be used"), listen_on_file(path):
            pass
        assert path.is_socket()
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    with listen_on_file(path):  # nobody listens on what a process that was killed has left
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.write_text("something else")
    with pytest.raises(InputError, match="cannot be used"), listen_on_file(path):
        pass
    assert path.read_text() == "something else"


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "192.0.2.1", "example.org", "", "127.0.0.1.evil"]
)
def test_no_address_but_a_loopback_one_is_listened_on(host: str) -> None:
    with pytest.raises(InputError, match="loopback"):
        listen(host, 0)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "127.0.0.9"])
def test_a_loopback_address_is_bound_to_itself_and_a_port_in_use_is_one_sentence(host: str) -> None:
    with listen(host, 0) as listening:
        assert listening.getsockname()[0].startswith("127.")
        with pytest.raises(InputError, match="cannot be used"):
            listen(host, listening.getsockname()[1])


# --- Files that are named by their place


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """A folder that was named at start, and beside it what nobody named."""
    (tmp_path / "drop" / "below").mkdir(parents=True)
    people(tmp_path / "drop" / "below" / "people.csv", 60)
    people(tmp_path / "secret.csv", 70)
    return tmp_path / "drop"


def named(app: Starlette, path: object) -> Any:
    return let_in(app).post("/import", data={"path": str(path)}, follow_redirects=False)


def test_only_files_below_a_folder_that_was_named_are_read(tmp_path: Path, drop: Path) -> None:
    app = create_agency_app(data=tmp_path / "data", files=[drop])
    (drop / "link.csv").symlink_to("../secret.csv")
    (drop / "loop.csv").symlink_to("loop.csv")
    (drop / "away").symlink_to(tmp_path)
    (drop / "inner.csv").symlink_to("below/people.csv")
    os.mkfifo(drop / "pipe.csv")
    outside = "does not lie below"
    for path, words in {
        tmp_path / "secret.csv": outside,
        tmp_path / "missing.csv": outside,
        drop / "link.csv": outside,
        drop / "away" / "secret.csv": outside,
        drop / ".." / "secret.csv": outside,
        drop / "below" / ".." / "below" / "people.csv": outside,
        f"{drop}-other/people.csv": outside,
        drop / "missing.csv": "cannot be read",
        drop / "loop.csv": "",
        drop / "pipe.csv": "no file that stays",
        drop: "no file that stays",
        "people.csv": "whole place",
        "~/people.csv": "whole place",
        f"{drop}/below/people.csv\0": "whole place",
        "": "whole place",
        f"{drop}/{'x' * 300}.csv": "",
    }.items():
        answer = named(app, path)
        assert answer.status_code == 422, path
        assert words in answer.text, path
    for path in (drop / "below" / "people.csv", drop / "inner.csv"):
        place = named(app, path)
        assert place.status_code == 303, place.text
        assert "60 rows" in let_in(app).get(place.headers["location"]).text
    nothing = named(create_agency_app(data=tmp_path / "data"), drop / "below" / "people.csv")
    assert nothing.status_code == 422
    assert outside in nothing.text


@pytest.mark.parametrize("early", [True, False])
def test_a_file_cannot_be_exchanged_while_it_is_taken_in(
    tmp_path: Path, drop: Path, monkeypatch: pytest.MonkeyPatch, early: bool
) -> None:
    """Neither after it was certain where it lies and before it is opened, nor until it is imported."""
    app = create_agency_app(data=tmp_path / "data", files=[drop])
    path, usual = drop / "below" / "people.csv", os.open
    (tmp_path / "hidden").mkdir()
    people(tmp_path / "hidden" / "people.csv", 70)

    def exchange() -> None:
        path.parent.rename(drop / "earlier")
        path.parent.symlink_to(tmp_path / "hidden")

    def late(where: Any, *rest: Any, **more: Any) -> int:
        if early and Path(where) == path:
            exchange()
        return usual(where, *rest, **more)

    monkeypatch.setattr(os, "open", late)
    answer = named(app, path)
    if early:
        assert answer.status_code == 422
        assert "stays where it is" in answer.text
        return
    exchange()
    fields = {"name": "people", "do": "import", "role.id": "identity"}
    let_in(app).post(answer.headers["location"], data=fields, follow_redirects=False)
    task = app.state.tasks.get(1)
    assert task.wait(300)
    assert any("60 records" in line for line in task.lines), task.lines
    assert [act["act"] for act in acts_of(tmp_path / "data")[0]] == ["seal", "import"]
