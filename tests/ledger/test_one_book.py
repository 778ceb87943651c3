"""Whatever leaves a data folder stands in its one book, and that book knows how far all others went."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from tests.answer.conftest import SECRET, people, town
from typer.testing import CliRunner

import lustrum as lu
from lustrum.cli import app
from lustrum.ledger.acts import record_act, verify_books
from lustrum.ledger.chain import ChangedLedgerError, digest_of
from lustrum.ledger.releases import ReleaseBook
from lustrum.model import DatasetError, InputError
from lustrum.policy.presets import preset
from lustrum.publish.budget import BudgetLedger
from lustrum.tabulate import FrameSource, Store, ingest
from lustrum.tabulate.store.backup import back_up

TABLE = """area,job,value,n,x1,x2
n,a,100,2,95,5
n,b,50,9,9,8
n,Total,150,11,95,9
s,a,70,9,9,8
s,b,80,9,10,9
s,Total,150,18,10,9
Total,a,170,11,95,9
Total,b,130,18,10,9
Total,Total,300,29,95,10
"""


def said_in(root: Path) -> list[dict[str, Any]]:
    return [dict(entry.said) for entry in ReleaseBook(root).entries()]


def suppressed(tmp_path: Path, *more: str) -> Any:
    table = tmp_path / "turnover.csv"
    table.write_text(TABLE)
    words = ["suppress", str(table), "--rule", "p=10", "--data", str(tmp_path / "data"), *more]
    (tmp_path / "data").mkdir(exist_ok=True)
    return CliRunner().invoke(app, words)


def test_suppressed_tables_are_entered_before_they_are_in_their_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, known = tmp_path / "out.csv", []
    enter = ReleaseBook.enter

    def entered(book: ReleaseBook, *words: Any, **more: Any) -> Any:
        known.append(out.exists())
        return enter(book, *words, **more)

    monkeypatch.setattr(ReleaseBook, "enter", entered)
    done = suppressed(tmp_path, "--out", str(out))
    assert done.exit_code == 0, (done.output, done.exception)
    assert known == [False]
    [said] = said_in(tmp_path / "data")
    assert said["act"] == "suppress"
    assert said["files"] == {"out.csv": digest_of(out.read_bytes())}
    policy = ReleaseBook(tmp_path / "data").content(said["policy"])
    assert policy is not None
    assert json.loads(policy)["rule"] == ["p=10"]
    # Without a table nothing leaves, and without a folder there is no book.
    refused = suppressed(tmp_path)
    assert refused.exit_code == 1
    assert "--data" in str(refused.exception)
    assert len(said_in(tmp_path / "data")) == 1


def test_a_book_that_does_not_answer_lets_no_suppressed_table_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise DatasetError("The book does not answer.")

    monkeypatch.setattr(ReleaseBook, "enter", broken)
    assert suppressed(tmp_path, "--out", str(tmp_path / "out.csv")).exit_code == 1
    assert not (tmp_path / "out.csv").exists()


def test_a_session_is_entered_when_it_is_finalised_without_its_title(tmp_path: Path) -> None:
    frame = pd.DataFrame({"area": ["n", "s"] * 20, "job": (["a"] * 19 + ["b"]) * 2})
    (tmp_path / "data").mkdir()
    session = lu.Session(
        book=tmp_path / "book", title="Anna Smith's thesis", data=tmp_path / "data"
    )
    session.crosstab(frame.area, frame.job)
    assert not ReleaseBook.exists(tmp_path / "data")
    session.finalise(tmp_path / "out")
    [said] = said_in(tmp_path / "data")
    digests = (tmp_path / "out" / "for-the-checker" / "digests.json").read_bytes()
    assert (said["act"], said["decision"]) == ("session", digest_of(digests))
    last = (tmp_path / "book" / "book.jsonl").read_bytes().splitlines()[-1]
    assert said["session_book"] == digest_of(last)
    assert "Anna" not in json.dumps(said)
    with pytest.raises(InputError, match="no data folder"):
        lu.Session(data=tmp_path / "missing")


def test_nothing_leaves_by_another_method_beside_answers(tmp_path: Path) -> None:
    """Suppressed tables and sessions, of which nobody knows whose people they show."""
    data = tmp_path / "data"
    ReleaseBook(data).enter({"kind": "answer"}, dataset="town")
    refused = suppressed(tmp_path, "--out", str(tmp_path / "out.csv"))
    assert refused.exit_code == 1
    assert "'town' were answered one by one" in str(refused.exception)
    assert not (tmp_path / "out.csv").exists()
    with pytest.raises(DatasetError, match=r"answered one by one.*same_people_because"):
        lu.Session(data=data)
    (data / "policies").mkdir()
    reason = 'same_people_because = "They are firms, and no residents."\n'
    (data / "policies" / "town.toml").write_text(reason + preset("keyed-rounding", "town"))
    assert suppressed(tmp_path, "--out", str(tmp_path / "out.csv")).exit_code == 0
    lu.Session(data=data)


def test_nothing_leaves_beside_answers_that_came_while_it_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The attack: a table is asked for in the moment in which another method's line is entered."""
    enter = ReleaseBook.enter

    def after_an_answer(book: ReleaseBook, said: dict[str, Any], **more: Any) -> Any:
        enter(book, {"kind": "answer"}, dataset="town")
        return enter(book, said, **more)

    monkeypatch.setattr(ReleaseBook, "enter", after_an_answer)
    out = tmp_path / "out.csv"
    refused = suppressed(tmp_path, "--out", str(out))
    assert "'town' were answered one by one" in str(refused.exception)
    assert not out.exists()


def test_a_session_is_not_finalised_beside_answers_that_came_meanwhile(tmp_path: Path) -> None:
    frame = pd.DataFrame({"area": ["n", "s"] * 20, "job": (["a"] * 19 + ["b"]) * 2})
    session = lu.Session(data=tmp_path)
    session.crosstab(frame.area, frame.job)
    ReleaseBook(tmp_path).enter({"kind": "answer"}, dataset="town")
    with pytest.raises(DatasetError, match="answered one by one"):
        session.finalise(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_each_line_of_a_budget_is_known_and_an_older_budget_pays_for_nothing(
    tmp_path: Path,
) -> None:
    budget = BudgetLedger(tmp_path, "merrow")
    budget.set_limit(Fraction(1), "Anna Smith, for the board")
    older = budget.path.read_bytes()
    with budget.charge(Fraction(1, 4), "census") as charge:
        charge.done("a digest")
    lines = said_in(tmp_path)
    assert [(one["act"], one["what"], one["rho"]) for one in lines] == [
        ("budget", "limit", "1"),
        ("budget", "spent", "1/4"),
        ("budget", "done", "1/4"),
    ]
    assert lines[-1]["decision"] == "a digest"
    assert "Anna" not in json.dumps(lines)
    whole = budget.path.read_bytes()
    # Each line cut from its end, though a shorter chain is a right one by itself.
    for cut in range(1, 4):
        budget.path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-cut]))
        with pytest.raises(ChangedLedgerError):
            verify_books(tmp_path, ReleaseBook(tmp_path))
        with (
            pytest.raises(DatasetError, match="older"),
            budget.charge(Fraction(1, 4), "census"),
        ):
            pytest.fail("noise may not be drawn")
    # The agency states what is missing, and goes on.
    budget.path.write_bytes(older)
    budget.state_spent(Fraction(1, 4), "the backup was a day old")
    with budget.charge(Fraction(1, 4), "census") as charge:
        charge.done("another digest")
    assert budget.spent == Fraction(1, 2)
    assert verify_books(tmp_path, ReleaseBook(tmp_path)) == 1


def test_a_backup_made_while_budgets_are_charged_and_people_act_is_whole(tmp_path: Path) -> None:
    root, target = tmp_path / "data", tmp_path / "copy"
    ingest(FrameSource(people(200)), town(), Store(root), secret=SECRET)
    budget = BudgetLedger(root, "merrow")

    def meanwhile(_: str) -> None:
        budget.set_limit(Fraction(1), "the board")
        record_act(root, "protect", "town", "0" * 64)

    meanwhile("")
    back_up(root, target, meanwhile)
    assert verify_books(target, ReleaseBook(target)) == 2
    with BudgetLedger(target, "merrow").charge(Fraction(1, 4), "town") as charge:
        charge.done("a digest")


def test_acts_that_were_cut_are_missed_by_the_one_book(tmp_path: Path) -> None:
    record_act(tmp_path, "import", "demo")
    record_act(tmp_path, "protect", "demo", "0" * 64, policy=b"the policy")
    [said] = said_in(tmp_path)
    assert ReleaseBook(tmp_path).content(said["policy"]) == b"the policy"
    verify = ["ledger", "verify", "--data", str(tmp_path)]
    done = CliRunner().invoke(app, verify)
    assert done.exit_code == 0, (done.output, done.exception)
    assert "hold what it says of them: 1" in done.output
    path = tmp_path / "acts.jsonl"
    path.write_bytes(path.read_bytes().splitlines(keepends=True)[0])
    assert CliRunner().invoke(app, verify).exit_code == 1
