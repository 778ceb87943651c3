"""The agency's pages over a data folder: states, policies and what they change, reports, imports, usage."""

from __future__ import annotations

import hashlib
import html
import json
import os
import pwd
import re
import sqlite3
import stat
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from starlette.applications import Starlette

from agency.towns import let_in, people
from lustrum.agency import create_agency_app, import_pages
from lustrum.agency.state import MOST, question_of
from lustrum.agency.templating import MOST_OF_FORM
from lustrum.agency.usage_pages import jobs_at_hand, read_usage, usage_of
from lustrum.ledger.acts import acts_of, record_act
from lustrum.model import InputError
from lustrum.policy.read import is_sealed, parse_policy
from lustrum.publish.doctor import examine
from lustrum.runtime.data_folder import ACTS, unknown_entries
from lustrum.server.operation.metrics import Metrics
from lustrum.tabulate import Store
from lustrum.tabulate.store.backup import back_up, restore

PATIENCE = 300  # seconds for a command that a page starts


def post(app: Starlette, address: str, **fields: str) -> Any:
    """A plain form, as a browser without scripts sends it; the answer before it leads elsewhere."""
    return let_in(app).post(address, data=fields, follow_redirects=False)


@pytest.fixture
def staff(own_town: Path) -> Starlette:
    return create_agency_app(data=own_town)


def policy_of(data: Path) -> Path:
    return data / "policies" / "town.toml"


def editor(app: Starlette) -> dict[str, str]:
    """The fields of the editor as its page has them."""
    page = let_in(app).get("/datasets/town/policy").text
    text = re.search(r'<textarea id="text"[^>]*>(.*?)</textarea>', page, re.S)
    seen = re.search(r'name="seen" value="([^"]*)"', page)
    questions = re.search(r'<textarea id="questions"[^>]*>(.*?)</textarea>', page, re.S)
    assert text is not None
    assert seen is not None
    assert questions is not None
    return {
        "text": html.unescape(text[1]),
        "seen": seen[1],
        "questions": html.unescape(questions[1]),
    }


def test_a_form_that_is_too_long_is_refused(staff: Starlette) -> None:
    text = "x" * MOST_OF_FORM
    assert post(staff, "/datasets/town/policy", text=text).status_code == 422


def test_the_list_says_how_each_dataset_stands(staff: Starlette, own_town: Path) -> None:
    page = let_in(staff).get("/").text
    assert "The town" in page
    assert "600" in page
    assert "not sealed" in page
    assert "can be served" in page
    policy_of(own_town).unlink()
    page = let_in(staff).get("/").text
    assert "no policy" in page
    assert "cannot be served" in page
    policy_of(own_town).write_text('dataset = "town"\nend = true\n', encoding="utf-8")
    page = let_in(staff).get("/").text
    assert "invalid" in page
    assert "does not say" in page


def test_a_dataset_that_is_not_there_is_one_sentence(staff: Starlette) -> None:
    answer = let_in(staff).get("/datasets/twon")
    assert answer.status_code == 422
    assert "town" in answer.text


def test_the_effect_of_a_draft_is_shown_without_opening_a_record(
    staff: Starlette, monkeypatch: pytest.MonkeyPatch
) -> None:
    fields = editor(staff)

    def closed(*_: object) -> None:
        raise AssertionError("a record was opened")

    monkeypatch.setattr(Store, "open", closed)
    page = post(staff, "/datasets/town/policy", **fields, do="check").text
    assert "No question would end in another way." in page
    fields["text"] = re.sub(r"max_dimensions = \d+", "max_dimensions = 1", fields["text"])
    page = post(staff, "/datasets/town/policy", **fields, do="check").text
    assert "2 of 3 questions would end in another way." in page
    assert "refused" in page
    assert "A table has at most 1 variable" in page
    # A script gets the part of the page that changes, and nothing else.
    headers = {"X-Lustrum-Part": "effect"}
    part = let_in(staff).post("/datasets/town/policy", data=fields, headers=headers).text
    assert "2 of 3 questions" in part
    assert "<html" not in part


def test_another_protection_cannot_be_tried_and_the_page_says_so(staff: Starlette) -> None:
    fields = editor(staff)
    fields["text"] = fields["text"].replace("base = 3", "base = 5")
    page = post(staff, "/datasets/town/policy", **fields, do="check").text
    assert "Nothing can be tried from the numbers that are there." in page


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("dataset = [\nend = true\n", "not valid TOML"),
        ('dataset = "town"\n', "does not end with the line"),
        ("<script>alert(1)</script>\nend = true\n", "not valid TOML"),
    ],
)
def test_a_mistake_in_a_draft_is_one_sentence(staff: Starlette, text: str, words: str) -> None:
    page = post(staff, "/datasets/town/policy", text=text, do="check", seen="").text
    assert words in page
    assert "<script>alert" not in page


def test_a_policy_of_another_dataset_is_refused(staff: Starlette, own_town: Path) -> None:
    fields = editor(staff)
    fields["text"] = fields["text"].replace('dataset = "town"', 'dataset = "other"')
    before = policy_of(own_town).read_bytes()
    answer = post(staff, "/datasets/town/policy", **fields, do="seal", meant="yes")
    assert answer.status_code == 422
    assert "not for &#39;town&#39;" in answer.text
    assert policy_of(own_town).read_bytes() == before


def test_a_draft_is_kept_and_not_in_force_until_it_is_sealed(
    staff: Starlette, own_town: Path
) -> None:
    path, before = policy_of(own_town), policy_of(own_town).read_bytes()
    fields = editor(staff)
    fields["text"] = re.sub(r"max_dimensions = \d+", "max_dimensions = 2", fields["text"])
    assert "The draft is kept" in post(staff, "/datasets/town/policy", **fields, do="keep").text
    assert path.read_bytes() == before
    assert "draft" in let_in(staff).get("/").text
    assert "max_dimensions = 2" in editor(staff)["text"]
    for missing in ({"do": "seal"}, {"do": "other", "meant": "yes"}):
        assert post(staff, "/datasets/town/policy", **fields, **missing).status_code == 422
        assert path.read_bytes() == before
    done = post(staff, "/datasets/town/policy", **fields, do="seal", meant="yes")
    assert done.status_code == 303
    assert is_sealed(path.read_bytes())
    assert parse_policy(path.read_bytes(), "it").rules.max_dimensions == 2
    assert path.with_name("town.toml.before").read_bytes() == before
    assert not path.with_name("town.toml.draft").exists()
    page = let_in(staff).get("/").text
    assert "sealed" in page
    assert "not sealed" not in page
    # What is edited next has no seal of its own, so that a change to it can be checked.
    assert editor(staff)["text"].endswith("end = true\n")


def test_a_draft_that_may_loosen_the_policy_needs_a_tick_for_these_words(
    staff: Starlette, own_town: Path
) -> None:
    path, before = policy_of(own_town), policy_of(own_town).read_bytes()
    fields = editor(staff)
    fields["text"] = fields["text"].replace("max_filters = 20", "max_filters = 21")
    sealing = {"do": "seal", "meant": "yes"}
    answer = post(staff, "/datasets/town/policy", **fields, **sealing)
    assert answer.status_code == 422
    assert "rules.max_filters from 20 to 21" in answer.text
    page = post(staff, "/datasets/town/policy", **fields, do="check").text
    tick = re.search(r'name="loosens" value="([0-9a-f]{64})"', page)
    assert tick is not None
    # A tick is about the draft that was read, and about no other one.
    other = {**fields, "text": fields["text"].replace("max_filters = 21", "max_filters = 22")}
    assert (
        post(staff, "/datasets/town/policy", **other, **sealing, loosens=tick[1]).status_code == 422
    )
    assert path.read_bytes() == before
    done = post(staff, "/datasets/town/policy", **fields, **sealing, loosens=tick[1])
    assert done.status_code == 303
    assert parse_policy(path.read_bytes(), "it").rules.max_filters == 21


def test_the_form_writes_into_the_text_without_scripts(staff: Starlette) -> None:
    fields = editor(staff)
    shown = {"rules.max_dimensions": "6", "before.1.base": "3"}
    fields |= {
        "shown": json.dumps(shown),
        "set.rules.max_dimensions": "1",
        "set.before.1.base": "3",
    }
    page = post(staff, "/datasets/town/policy", **fields, do="check").text
    assert "max_dimensions = 1\n" in html.unescape(page)
    assert "2 of 3 questions would end in another way" in page
    assert "no looser" in page
    # What was changed in the form is kept and sealed too, not what the text said before.
    post(staff, "/datasets/town/policy", **fields, do="keep")
    assert "max_dimensions = 1\n" in editor(staff)["text"]


def test_a_draft_can_be_given_up(staff: Starlette, own_town: Path) -> None:
    fields = editor(staff)
    post(staff, "/datasets/town/policy", **{**fields, "text": "nonsense"}, do="keep")
    assert editor(staff)["text"] == "nonsense\n"
    assert post(staff, "/datasets/town/policy", **fields, do="forget").status_code == 303
    assert editor(staff)["text"] == fields["text"]


def test_a_policy_that_changed_meanwhile_is_not_overwritten(
    staff: Starlette, own_town: Path
) -> None:
    fields = editor(staff)
    path = policy_of(own_town)
    path.write_text("# changed by hand\n" + path.read_text(encoding="utf-8"), encoding="utf-8")
    for wanted in ("keep", "seal", "forget"):
        answer = post(staff, "/datasets/town/policy", **fields, do=wanted, meant="yes")
        assert answer.status_code == 422
        assert "was changed since" in answer.text
    assert path.read_text(encoding="utf-8").startswith("# changed by hand")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("agge", "There is no variable"),
        ("age:none", "none"),
        ("age where area", "cannot be read"),
        ("age where area=X", "X"),
        ("\n".join(["age"] * (MOST + 1)), "At most"),
    ],
)
def test_a_mistake_in_a_question_is_one_sentence(staff: Starlette, line: str, words: str) -> None:
    page = post(staff, "/datasets/town/policy", **{**editor(staff), "questions": line}).text
    assert words in page


def test_questions_are_read_as_they_are_written(staff: Starlette, own_town: Path) -> None:
    files = Store(own_town).look("town")
    files.close()
    query = question_of("age, sex where area=N,S and sex=m", files.manifest.dataset)
    assert [axis.variable for axis in query.by] == ["age", "sex"]
    assert [(f.variable, f.codes) for f in query.where] == [("area", ("N", "S")), ("sex", ("m",))]


def test_the_report_has_its_figures_in_the_design_of_the_pages(
    staff: Starlette, own_town: Path
) -> None:
    page = let_in(staff).get("/datasets/town/report").text
    assert "Confidential" in page
    assert "Risk before and after" in page
    assert "<style" not in page
    assert 'style="' not in page
    (own_town / "reports" / "town" / "report.json").write_text("{}", encoding="utf-8")
    assert let_in(staff).get("/datasets/town/report").status_code == 422
    (own_town / "reports" / "town" / "report.json").unlink()
    answer = let_in(staff).get("/datasets/town/report")
    assert "There is no report" in answer.text


def test_a_file_is_guessed_corrected_imported_and_can_be_protected(tmp_path: Path) -> None:
    data = tmp_path / "data"
    app = create_agency_app(data=data, files=[tmp_path])
    path = people(tmp_path / "Small Town.csv", 300)
    started = post(app, "/import", path=str(path))
    assert started.status_code == 303
    place = started.headers["location"]
    page = let_in(app).get(place).text
    assert "300 rows, 4 columns" in page
    assert '<option value="identity" selected>' in page
    fields = {
        "name": "small-town",
        "title": "A small town",
        "unit": "person",
        "units": "people",
        "role.id": "identity",
        "role.area": "variable",
        "role.sex": "variable",
        "role.age": "variable",
        "label.age": "Age of people",
    }
    wrong = post(app, place, **{**fields, "name": "Small Town"}, do="look")
    assert "lower-case letters" in wrong.text
    both = post(app, place, **{**fields, "role.area": "identity"}, do="look")
    assert "cannot be &#39;identity&#39;" in both.text
    assert "Age of people" in post(app, place, **fields, do="look").text
    begun = post(app, place, **fields, do="import")
    assert begun.status_code == 303, begun.text
    task = app.state.tasks.get(1)
    assert task.wait(PATIENCE)
    assert task.state == "finished", task.lines
    assert "small-town" in Store(data).names()
    assert is_sealed((data / "policies" / "small-town.toml").read_bytes())
    page = let_in(app).get("/datasets/small-town").text
    assert "A small town" in page
    assert "Protect the dataset" in page
    # The same name once more replaces nothing unless that is said.
    again = post(app, place, **fields, do="import")
    assert again.status_code == 422
    assert "already" in again.text


def test_what_a_file_says_is_shown_as_text(tmp_path: Path) -> None:
    app = create_agency_app(data=tmp_path / "data", files=[tmp_path])
    path = tmp_path / "odd.csv"
    path.write_text('area,sex\n<script>alert(1)</script>,m\n"a""b",f\n', encoding="utf-8")
    place = post(app, "/import", path=str(path)).headers["location"]
    page = let_in(app).get(place).text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)" in page


def test_a_dropped_file_is_for_its_owner_alone_and_goes_with_the_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "data"
    app = create_agency_app(data=data)
    content = people(tmp_path / "people.csv", 80).read_bytes()
    with let_in(app) as client:
        wrong = client.post("/import/file?name=people.exe", content=content)
        assert wrong.status_code == 422
        with monkeypatch.context() as patch:
            patch.setattr(import_pages, "MOST_BYTES", len(content) - 1)
            large = client.post("/import/file?name=people.csv", content=content)
        assert large.status_code == 422
        assert not list(data.rglob("*.csv"))
        # A name cannot lead out of the folder.
        name = "/import/file?name=../../people.csv"
        answer = client.post(name, content=content, headers={"Accept": "*/*"})
        assert answer.json() == {"address": "/import/1"}
        kept = [path for path in data.rglob("*.csv")]
        assert [path.name for path in kept] == ["people.csv"]
        assert stat.S_IMODE(kept[0].stat().st_mode) == 0o600
        folder = kept[0].relative_to(data).parts[0]
        assert stat.S_IMODE((data / folder).stat().st_mode) == 0o700
        page = client.get("/import/1").text
        assert "80 rows" in page
        assert str(data) not in page
    assert list(data.rglob("*.csv")) == []


def test_commands_run_one_at_a_time_for_a_dataset_and_can_be_stopped(
    staff: Starlette, own_town: Path
) -> None:
    tasks = staff.state.tasks
    first = tasks.start("Wait", "town", ["serve", "--data", str(own_town), "--port", "0"])
    assert first.state == "running"
    assert let_in(staff).get("/tasks/1").headers["refresh"]
    with pytest.raises(InputError, match="still running"):
        tasks.start("Again", "town", ["datasets"])
    assert post(staff, "/tasks/1/stop").status_code == 303
    assert first.wait(PATIENCE)
    assert first.state in ("stopped", "finished")
    assert "refresh" not in let_in(staff).get("/tasks/1").headers
    wrong = tasks.start("Fail", "town", ["datasets", "--nothing"])
    assert wrong.wait(PATIENCE)
    assert wrong.state == "failed"
    assert "Fail" in let_in(staff).get("/tasks").text


def test_usage_is_counts_and_refusals_count_by_rule() -> None:
    metrics = Metrics()
    metrics.decided("town", "answer", ())
    metrics.decided("town", "refusal", ("size", "nested", "size"))
    metrics.decided("town", "partial", ("area",))
    metrics.requests.labels("/datasets/{name}", "2xx").inc(5)
    usage = usage_of(generate_latest(metrics.registry).decode())
    assert usage.questions == {"town": {"answer": 1, "refusal": 1, "partial": 1}}
    # A rule counts once for a question, and reasons of what was answered are no refusals.
    assert usage.refusals == {"town": {"size": 1, "nested": 1}}
    assert usage.routes == {"/datasets/{name}": {"2xx": 5}}


def test_the_page_of_usage_reads_the_port_of_the_server(own_town: Path) -> None:
    metrics = Metrics(CollectorRegistry())
    metrics.decided("town", "refusal", ("size",))
    server, thread = start_http_server(0, "127.0.0.1", metrics.registry)
    try:
        port = server.server_port
        assert read_usage(port).refusals == {"town": {"size": 1}}
        page = let_in(create_agency_app(data=own_town, metrics_port=port)).get("/usage").text
        assert "Refusals by reason" in page
        assert "size" in page
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    page = let_in(create_agency_app(data=own_town, metrics_port=port)).get("/usage").text
    assert "Nothing answers on port" in page
    assert "No server is named" in let_in(create_agency_app(data=own_town)).get("/usage").text


def test_jobs_are_counted_by_state_and_never_changed(tmp_path: Path) -> None:
    assert jobs_at_hand(tmp_path) is None
    base = sqlite3.connect(tmp_path / "jobs.sqlite")
    base.execute("create table job (state text)")
    base.executemany("insert into job values (?)", [("done",), ("done",), ("waiting",)])
    base.commit()
    base.close()
    before = (tmp_path / "jobs.sqlite").read_bytes()
    assert jobs_at_hand(tmp_path) == {"done": 2, "waiting": 1}
    assert (tmp_path / "jobs.sqlite").read_bytes() == before
    (tmp_path / "jobs.sqlite").write_bytes(b"no database at all, but a text that is long enough")
    assert jobs_at_hand(tmp_path) is None


def test_the_check_finds_what_the_doctor_finds(staff: Starlette, own_town: Path) -> None:
    page = let_in(staff).get("/check").text
    assert "0 faults stop answers" in page
    assert "Every byte is what was written" in page
    policy_of(own_town).write_text("nonsense", encoding="utf-8")
    assert "1 fault stops answers" in let_in(staff).get("/check").text


def test_a_folder_that_is_not_there_yet_is_where_one_begins(tmp_path: Path) -> None:
    data = tmp_path / "new"
    with let_in(create_agency_app(data=data)) as client:
        assert "There is no dataset in" in client.get("/").text
        for path in ("/import", "/usage", "/tasks", "/maps", "/log"):
            assert client.get(path).status_code == 200
        assert "There is no such folder" in client.get("/check").text
    assert not data.exists()


def test_without_a_data_folder_there_are_maps_alone() -> None:
    app = create_agency_app()
    answer = let_in(app).get("/")
    assert answer.url.path == "/maps"
    assert "Datasets" not in answer.text
    for path in ("/import", "/usage", "/tasks", "/check", "/datasets/town"):
        assert let_in(app).get(path).status_code == 404


# --- Who did what


def test_acts_are_recorded_with_the_account_and_shown(staff: Starlette, own_town: Path) -> None:
    assert "Not sealed" in let_in(staff).get("/usage").text
    [earlier], _ = acts_of(own_town)
    post(staff, "/datasets/town/policy", **editor(staff), do="seal", meant="yes")
    acts, changed = acts_of(own_town)
    assert [act["act"] for act in acts] == ["seal", "protect"]
    assert (acts[1], changed) == (earlier, 0)
    assert acts[0]["about"] == "town"
    assert acts[0]["user"] == pwd.getpwuid(os.getuid()).pw_name
    assert acts[0]["digest"] == hashlib.sha256(policy_of(own_town).read_bytes()).hexdigest()
    page = let_in(staff).get("/log").text
    assert "sealed the policy" in page
    assert acts[0]["digest"][:16] in page
    assert "Not sealed" not in page
    assert stat.S_IMODE((own_town / ACTS).stat().st_mode) == 0o600


def test_nothing_is_sealed_that_cannot_be_recorded(staff: Starlette, own_town: Path) -> None:
    (own_town / ACTS).unlink()
    (own_town / ACTS).symlink_to(own_town.parent / "elsewhere")
    before = policy_of(own_town).read_bytes()
    answer = post(staff, "/datasets/town/policy", **editor(staff), do="seal", meant="yes")
    assert answer.status_code == 422
    assert policy_of(own_town).read_bytes() == before
    assert not (own_town.parent / "elsewhere").exists()


def test_lines_of_earlier_versions_are_shown_and_covered_by_those_that_follow(
    tmp_path: Path,
) -> None:
    old = [
        {"at": "2026-01-01", "user": "ann", "act": "seal", "about": name, "digest": ""}
        for name in "ab"
    ]
    written = [*map(json.dumps, old), '{"at": "cut sh']
    (tmp_path / ACTS).write_text("\n".join(written) + "\n")
    record_act(tmp_path, "import", "first\nline")
    record_act(tmp_path, "import", "second")
    acts, changed = acts_of(tmp_path)
    assert ([act["about"] for act in acts], changed) == (["second", "first\nline", "b", "a"], 0)
    assert not any("not what was written" in one.sentence for one in examine(tmp_path))
    (tmp_path / ACTS).write_bytes((tmp_path / ACTS).read_bytes().replace(b"ann", b"eve"))
    assert acts_of(tmp_path)[1] == 4
    page = let_in(create_agency_app(data=tmp_path)).get("/log").text
    assert "Line 4 of the log is not what was written" in page
    assert any("Line 4 is not what was written" in one.sentence for one in examine(tmp_path))


def test_the_log_is_kept_by_backups_and_what_is_open_is_found(
    own_town: Path, tmp_path: Path
) -> None:
    assert ACTS not in unknown_entries(own_town)
    back_up(own_town, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "again")
    assert (tmp_path / "again" / ACTS).read_bytes() == (own_town / ACTS).read_bytes()
    assert stat.S_IMODE((tmp_path / "again" / ACTS).stat().st_mode) == 0o600
    assert stat.S_IMODE(own_town.stat().st_mode) == 0o700
    assert not any("chmod" in one.sentence for one in examine(own_town))
    (own_town / ACTS).chmod(0o644)
    own_town.chmod(0o755)
    notes = [f"{one.about}: {one.sentence}" for one in examine(own_town) if one.grade == "note"]
    assert any(f"chmod 700 {own_town}" in note for note in notes)
    assert any(note.startswith(f"{ACTS}: ") and "chmod -R go-rwx" in note for note in notes)
    assert any("no seal" in note and "lustrum policy seal" in note for note in notes)
