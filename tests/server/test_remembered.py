"""One snapshot a question, and answers that are remembered for the same question of the same data alone."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi.testclient import TestClient

from answer.test_service_by_hand import BY, DATASET, KEYED, STRICT, folder, made_by, packed
from lustrum.answer import Snapshot, TableService, pipeline
from lustrum.publish.bundles.write import write_bundle
from lustrum.runtime.log_lines import FIELDS
from lustrum.server import Settings, create_app
from lustrum.server.api.tables import Answered, RepeatedRequests
from lustrum.server.operation.metrics import Metrics
from lustrum.server.service import remembered_answers
from lustrum.server.service.questions import Questions
from lustrum.server.service.remembered_answers import FOLDER, Key, RememberedAnswers, Written
from server.conftest import run_alone

ASK = {"dataset": "town", "by": ["sex", "job"]}
NOTED = STRICT.replace(b"[rules]", b'notes = ["Second."]\n[rules]')
STRICTER = NOTED.replace(b"limit = 1.0", b"limit = 0.5")


def town(root: Path, policy: bytes = STRICT) -> TableService:
    service = folder(root, town=policy)
    write_bundle(root / "bundles" / "town", packed())
    return service


@contextmanager
def serving(service: TableService, **settings: Any) -> Iterator[TestClient]:
    app = create_app(service, Settings(**{"rate": "", **settings}))
    with TestClient(app, base_url="http://localhost") as client:
        yield client


def hits(client: TestClient) -> float:
    found = client.app.state.metrics.remembered  # type: ignore[attr-defined]
    return float(found._value.get())


def entries(root: Path) -> list[Path]:
    return sorted((root / FOLDER).glob("*/*/*/*"))


def test_a_question_follows_from_one_snapshot_though_its_files_change_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = town(tmp_path)
    questions = Questions(service, Settings(answers_disk=0), Metrics())
    old = questions.ask(BY)
    path = tmp_path / "policies" / "town.toml"
    own = made_by()
    fewer = replace(
        own, cells=type(own.cells)(DATASET, own.cells.codes[:, 1:], own.cells.counts[1:])
    )
    for step in pipeline.STEPS:

        def changing(case: Any, step: Any = step) -> Any:
            path.write_bytes(STRICTER)
            write_bundle(tmp_path / "bundles" / "town", packed(fewer))
            return step(case)

        steps = tuple(changing if one is step else one for one in pipeline.STEPS)
        monkeypatch.setattr(pipeline, "STEPS", steps)
        before = questions.ask(BY).body("http://x")
        monkeypatch.undo()
        after = questions.ask(BY).body("http://x")
        assert before == old.body("http://x")
        assert after["notes"][-1] == "Second."
        assert after["table"]["value"] != before["table"]["value"]
        path.write_bytes(STRICT)
        write_bundle(tmp_path / "bundles" / "town", packed())


def test_a_question_reads_and_lists_nothing_while_the_files_are_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = town(tmp_path)
    questions = Questions(service, Settings(answers_disk=0), Metrics())
    first = service.snapshot("town")
    questions.ask(BY)
    for name in ("glob", "iterdir", "read_bytes", "read_text", "open"):
        monkeypatch.setattr(Path, name, lambda *_, **__: pytest.fail("a file was looked for"))
    questions.ask(BY)
    assert service.snapshot("town") is first
    assert service.published("town") is first


def test_methods_of_a_policy_are_made_once(tmp_path: Path) -> None:
    policy = town(tmp_path).policy("town")
    assert policy.risk.spec is policy.risk.spec
    assert policy.population is policy.population


def test_an_answer_that_is_remembered_has_the_same_bytes_and_headers(tmp_path: Path) -> None:
    with serving(town(tmp_path)) as client:
        client.headers["X-Request-ID"] = "the-same"
        for path in (
            "/api/v1/tables?dataset=town&by=sex&by=job",
            "/api/v1/tables?dataset=town&by=sex&by=job&format=csv",
            "/api/v1/tables?dataset=town&by=sex&by=job&format=xlsx",
            "/api/v1/tables?dataset=town&by=sex&by=job&include=bounds",
        ):
            before = hits(client)
            first, again = client.get(path), client.get(path)
            assert (first.status_code, hits(client)) == (200, before + 1)
            assert (again.content, again.headers) == (first.content, first.headers)


def test_nothing_is_sent_for_another_question_form_language_or_host(tmp_path: Path) -> None:
    with serving(town(tmp_path)) as client:
        asked = [
            ("/api/v1/tables?dataset=town&by=sex&by=job", {}),
            ("/api/v1/tables?dataset=town&by=job&by=sex", {}),
            ("/api/v1/tables?dataset=town&by=sex&by=job&totals=on", {}),
            ("/api/v1/tables?dataset=town&by=sex&by=job&format=csv", {}),
            ("/api/v1/tables?dataset=town&by=sex&by=job", {"accept": "text/csv"}),
            ("/api/v1/tables?dataset=town&by=sex&by=job&include=risk", {}),
            ("/api/v1/tables?dataset=town&by=sex&by=job", {"host": "127.0.0.1"}),
            ("/fr/api/v1/tables?dataset=town&by=sex&by=job", {}),
        ]
        found = [client.get(path, headers=headers) for path, headers in asked]
        again = [client.get(path, headers=headers) for path, headers in asked]
        assert [r.content for r in again] == [r.content for r in found]
        assert "127.0.0.1" in found[6].json()["links"]["self"]
        assert found[4].headers["content-type"].startswith("text/csv")
        different = {r.content for r in found}
        assert (
            len(different) >= len(asked) - 2
        )  # csv in two ways, and French where it says the same


def test_a_body_in_pieces_is_not_taken_for_the_question_that_it_begins_like(tmp_path: Path) -> None:
    """Asked of the layer itself: the ones before it put bodies together."""
    service = town(tmp_path)
    questions = Questions(service, Settings(answers_disk=0), Metrics())
    snapshot = service.snapshot("town")
    bodies: list[bytes] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = b""
        while True:
            message = await receive()
            body += message["body"]
            if not message["more_body"]:
                break
        bodies.append(body)
        key = Key.of(snapshot, BY, [body.decode()])
        questions.answers.keep(key, Written("town", "answered", "text/plain", body))
        scope["lustrum.answered"].append(Answered(snapshot, key))

    layer = RepeatedRequests(app, questions)

    def ask(*parts: bytes) -> list[Any]:
        left = [
            {"type": "http.request", "body": part, "more_body": i < len(parts) - 1}
            for i, part in enumerate(parts)
        ]
        sent: list[Any] = []

        async def receive() -> Any:
            return left.pop(0)

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": "POST",
            "scheme": "http",
            "path": "/api/v1/tables",
            "query_string": b"",
            "headers": [],
        }
        run_alone(layer(scope, receive, send))
        return sent

    for end in (b"b", b"c", b"b"):
        assert ask(b"a", end) == []
    assert bodies == [b"ab", b"ac", b"ab"]
    assert ask(b"a") == []
    assert ask(b"a")[-1]["body"] == b"a"
    assert bodies == [b"ab", b"ac", b"ab", b"a"]


def test_other_code_sends_no_answer_of_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "/api/v1/tables?dataset=town&by=sex&by=job"
    with serving(town(tmp_path)) as client:
        client.get(path)
    assert len(entries(tmp_path)) == 1
    for code, remembered in (("the same", 0), ("the same", 1), ("changed", 0)):
        monkeypatch.setattr(remembered_answers, "_code", lambda code=code: code)
        with serving(TableService(tmp_path)) as client:
            client.get(path)
            assert hits(client) == remembered


@pytest.mark.parametrize("policy", [NOTED, STRICTER])
def test_a_changed_policy_or_bundle_is_answered_anew(tmp_path: Path, policy: bytes) -> None:
    service = town(tmp_path)
    with serving(service) as client:
        first = client.post("/api/v1/tables", json=ASK).json()
        assert client.post("/api/v1/tables", json=ASK).json() == first
        (tmp_path / "policies" / "town.toml").write_bytes(policy)
        second = client.post("/api/v1/tables", json=ASK).json()
        assert second["notes"][-1] == "Second."
        own = made_by()
        cells = type(own.cells)(DATASET, own.cells.codes[:, 1:], own.cells.counts[1:])
        write_bundle(tmp_path / "bundles" / "town", packed(replace(own, cells=cells)))
        third = client.post("/api/v1/tables", json=ASK).json()
        assert third["table"]["value"] != second["table"]["value"]
        assert hits(client) == 1
    # What followed from the first policy and the first bundle is gone from the disk.
    left = {path.parent.parent.name for path in entries(tmp_path)}
    assert len(left) == 1


def test_another_process_finds_answers_on_disk_and_passes_over_damaged_ones(tmp_path: Path) -> None:
    service = town(tmp_path)
    with serving(service) as client:
        first = client.post("/api/v1/tables", json=ASK).content
    (place,) = entries(tmp_path)
    assert stat.S_IMODE(place.stat().st_mode) == 0o600
    assert {stat.S_IMODE(p.stat().st_mode) for p in place.parents[:4]} == {0o700}
    whole = place.read_bytes()
    with serving(service) as client:
        assert client.post("/api/v1/tables", json=ASK).content == first
        assert hits(client) == 1
    for damaged in (b"", whole[:40], whole[:-1], whole.replace(b"answer", b"refuse"), whole + b" "):
        place.write_bytes(damaged)
        with serving(service) as client:
            assert client.post("/api/v1/tables", json=ASK).content == first
            assert hits(client) == 0
        assert place.read_bytes() == whole
    # An entry that was moved to the place of another question is none.
    other = {"dataset": "town", "by": ["sex"]}
    with serving(service) as client:
        right = client.post("/api/v1/tables", json=other).content
    (moved,) = [path for path in entries(tmp_path) if path != place]
    moved.write_bytes(whole)
    with serving(service) as client:
        assert client.post("/api/v1/tables", json=other).content == right


def test_the_room_on_disk_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(town(tmp_path)) as client:
        answers = client.app.state.questions.answers  # type: ignore[attr-defined]
        answers._room = 6000
        for word in ("", "&include=bounds", "&include=risk", "&include=trace", "&include=utility"):
            client.get(f"/api/v1/tables?dataset=town&by=sex{word}")
    assert 0 < sum(path.stat().st_size for path in entries(tmp_path)) <= 6000


def test_answers_are_kept_on_disk_again_once_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """After a full disk one answer is tried now and then, more and more rarely, until one is written."""
    now = [1000.0]
    clock = SimpleNamespace(**vars(time))
    clock.monotonic = lambda: now[0]
    monkeypatch.setattr(remembered_answers, "time", clock)
    tried: list[float] = []
    write = remembered_answers.write_whole
    full = [True]

    def writing(*words: Any, **more: Any) -> None:
        tried.append(now[0])
        if full[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        write(*words, **more)

    monkeypatch.setattr(remembered_answers, "write_whole", writing)
    answers = RememberedAnswers(tmp_path, Settings())

    def keep(number: int) -> Key:
        key = Key("d" * 40, "m" * 40, f"{number:040}")
        answers.keep(key, Written("town", "answer", "application/json", b"%d" % number))
        answers.stop()  # waits for what is being written
        return key

    with caplog.at_level("WARNING", logger="lustrum.server"):
        for second in range(4000):
            now[0] = 1000.0 + second
            key = keep(second)
            assert answers.at_hand(key) is not None  # in memory all the while
        pauses = [later - earlier for earlier, later in pairwise(tried)]
        assert pauses == [10, 20, 40, 80, 160, 320, 600, 600, 600, 600, 600]
        assert entries(tmp_path) == []
        full[0] = False
        now[0] += 600
        kept = [keep(number) for number in (5000, 5001)]
    assert [path.name for path in entries(tmp_path)] == [key.name for key in kept]
    assert RememberedAnswers(tmp_path, Settings()).find(kept[0]) is not None
    assert caplog.messages == [
        "answers are not kept on disk for now: No space left on device",
        "answers are kept on disk again, after 12 tries",
    ]


def test_an_answer_from_records_is_never_remembered(tmp_path: Path) -> None:
    with serving(folder(tmp_path, town=KEYED)) as client:
        for _ in range(3):
            assert client.post("/api/v1/tables", json=ASK).status_code == 200
        assert hits(client) == 0
    assert entries(tmp_path) == []


def test_nothing_is_remembered_where_that_is_turned_off(tmp_path: Path) -> None:
    service = town(tmp_path)
    with serving(service, answers_memory=0) as client:
        bodies = {client.post("/api/v1/tables", json=ASK).content for _ in range(3)}
        assert (len(bodies), hits(client)) == (1, 0)
    with serving(service, answers_disk=0) as client:
        assert {client.post("/api/v1/tables", json=ASK).content for _ in range(2)} == bodies
        assert hits(client) == 1
    assert entries(tmp_path) == []


def test_an_answer_at_hand_counts_towards_the_rate(tmp_path: Path) -> None:
    with serving(town(tmp_path), rate="3/day") as client:
        found = [client.post("/api/v1/tables", json=ASK) for _ in range(5)]
    assert [r.status_code for r in found] == [200, 200, 200, 429, 429]
    assert found[1].headers["ratelimit"].startswith('"asks";r=1')


def test_a_tag_names_the_very_bytes_compressed_or_not(tmp_path: Path) -> None:
    path = "/api/v1/tables?dataset=town&by=sex&by=job&include=bounds,trace"
    with serving(town(tmp_path)) as client:
        for coding in ("identity", "gzip"):
            sent = []
            for _ in range(2):
                with client.stream("GET", path, headers={"accept-encoding": coding}) as response:
                    raw = b"".join(response.iter_raw())
                digest = hashlib.sha256(raw).hexdigest()[:32]
                assert response.headers["etag"] == f'"{digest}"'
                assert ("content-encoding" in response.headers) == (coding == "gzip")
                sent.append(raw)
            assert sent[0] == sent[1]
            plain = gzip.decompress(raw) if coding == "gzip" else raw
            assert json.loads(plain)["decision"] == "answer"
            known = {"accept-encoding": coding, "if-none-match": response.headers["etag"]}
            assert client.get(path, headers=known).status_code == 304
            other = {**known, "accept-encoding": "gzip" if coding == "identity" else "identity"}
            assert client.get(path, headers=other).status_code == 200


@pytest.mark.parametrize("coding", ["identity", "gzip", "gzip;q=0", "br, gzip;q=0.5"])
def test_what_an_answer_varies_by_is_said_once(tmp_path: Path, coding: str) -> None:
    wanted = {"accept-encoding": coding}
    taken = coding in ("gzip", "br, gzip;q=0.5")
    with serving(town(tmp_path)) as client:
        table = "api/v1/tables?dataset=town&by=sex&by=job&include=bounds,trace"
        for path in (f"/{table}", f"/fr/{table}", "/en/", "/datasets/town", "/static/base.css"):
            with client.stream("GET", path, headers=wanted) as response:
                raw = b"".join(response.iter_raw())
            assert response.status_code == 200
            varies = ["Accept-Encoding", *(["Origin"] if "/api/" in path else [])]
            assert response.headers.get_list("vary", split_commas=True) == varies, path
            assert (response.headers.get("content-encoding") == "gzip") == taken, path
            assert int(response.headers["content-length"]) == len(raw)
            if "/api/" in path:
                digest = hashlib.sha256(raw).hexdigest()[:32]
                assert response.headers["etag"] == f'"{digest}"'


def test_a_snapshot_of_another_dataset_has_another_mark(tmp_path: Path) -> None:
    service = town(tmp_path)
    one = service.snapshot("town")
    other = Snapshot(one.numbers, one.policy.model_copy(update={"notes": ["Other."]}))
    assert one.mark != other.mark
    assert one.from_bundle


def test_a_remembered_answer_is_a_decision_of_the_log_too(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    service = town(tmp_path)
    with caplog.at_level("INFO", logger="lustrum.server"), serving(service) as client:
        for question in (ASK, ASK, {**ASK, "by": ["job"]}, ASK):
            assert client.post("/api/v1/tables", json=question).status_code == 200
        # Recognised by its question, though not by its request.
        assert client.get("/api/v1/tables?dataset=town&by=sex&by=job").status_code == 200
        assert client.get("/api/v1/tables?by=sex&by=job&dataset=town").status_code == 200
    logged = [getattr(line, FIELDS) for line in caplog.records if line.getMessage() == "decision"]
    asked = [line["query"]["by"] for line in logged]
    assert asked == [["sex", "job"], ["sex", "job"], ["job"], *[["sex", "job"]] * 3]
    assert [line.get("remembered", False) for line in logged] == [
        False, True, False, True, True, True,
    ]  # fmt: skip
    assert all(line["verdict"] == "answer" and line["rules"] == [] for line in logged)


def test_a_repeated_request_is_counted_under_its_route(tmp_path: Path) -> None:
    with serving(town(tmp_path)) as client:
        for _ in range(3):
            client.get("/api/v1/tables?dataset=town&by=sex")
        counted = client.app.state.metrics.registry  # type: ignore[attr-defined]
        assert hits(client) == 2
    for route, number in (("/api/v1/tables", 3), ("other", None)):
        labels = {"route": route, "status": "2xx"}
        assert counted.get_sample_value("lustrum_requests_total", labels) == number


def test_the_question_and_the_rules_of_a_remembered_answer_come_back_from_disk(
    tmp_path: Path,
) -> None:
    key = Key("d" * 40, "m" * 40, "n" * 40)
    kept = Written("town", "refusal", "application/json", b"{}", "", "{}", ("cells", "risk"))
    place = tmp_path / "entry"
    place.write_bytes(remembered_answers._as_bytes(key, kept))
    assert remembered_answers._read(place, key) == kept


def test_requests_of_a_policy_that_was_replaced_do_not_hold_its_numbers(tmp_path: Path) -> None:
    service = town(tmp_path)
    requests = RepeatedRequests(lambda *_: None, Questions(service, Settings(), Metrics()))  # type: ignore[arg-type,return-value]
    old = service.snapshot("town")
    key = Key("d" * 40, "m" * 40, "n" * 40)
    for number in range(3):
        requests._remember(number, Answered(old, key))
    assert len(requests._known) == 3
    (tmp_path / "policies" / "town.toml").write_bytes(NOTED)
    requests._remember(3, Answered(service.snapshot("town"), key))
    assert len(requests._known) == 1
    assert old not in requests._in_force.values()


def test_a_request_that_is_recognised_takes_little_memory_however_large_it_is(
    tmp_path: Path,
) -> None:
    service = town(tmp_path)
    questions = Questions(service, Settings(answers_disk=0), Metrics())
    body = json.dumps(ASK).encode()

    async def told(scope: Any, receive: Any, send: Any) -> None:
        scope["lustrum.answered"].append(
            Answered(service.snapshot("town"), Key("town", "mark", "name"))
        )

    layer = RepeatedRequests(told, questions)
    for blanks in (0, 60_000):
        message = {"type": "http.request", "body": body + b" " * blanks}
        scope = {"type": "http", "path": "/api/v1/tables", "method": "POST", "scheme": "http",
                 "query_string": b"", "headers": []}  # fmt: skip

        async def receive(message: Any = message) -> Any:
            return message

        run_alone(layer(scope, receive, lambda _: None))  # type: ignore[arg-type, return-value]
    assert len(layer._known) == 2
    assert all(isinstance(key, bytes) and len(key) == 32 for key in layer._known._held)
