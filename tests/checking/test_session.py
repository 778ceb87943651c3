"""A session: each output judged by stated rules, all together, and a folder that tells its reader no more."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from starlette.testclient import TestClient

import lustrum as lu
from lustrum.agency import create_check_app
from lustrum.checking import CheckerFolder, OutputRules, Session
from lustrum.ledger.chain import Chain, digest_of
from lustrum.model import DatasetError, InputError


def people(rows: int = 3000, seed: int = 5) -> pd.DataFrame:
    """Drawn people whose every output below is safe by itself."""
    draw = np.random.default_rng(seed)
    age = draw.integers(18, 90, rows)
    return pd.DataFrame(
        {
            "area": draw.choice(["north", "south", "west"], rows),
            "sex": draw.choice(["f", "m"], rows),
            "age": age,
            "band": pd.cut(age, [18, 40, 65, 90], right=False, labels=["18-39", "40-64", "65-89"]),
            "job": draw.choice(["a", "b", "c", "d"], rows),
            "pay": draw.lognormal(8, 0.4, rows).round(2),
            "ill": draw.integers(0, 2, rows),
        },
        index=[f"p{n}" for n in range(rows)],
    )


def thirty(session: Session, frame: pd.DataFrame) -> None:
    """Outputs of everybody, and of large groups, that give nobody away."""
    pairs = [("area", "sex"), ("area", "job"), ("sex", "job"), ("band", "sex"), ("band", "area")]
    women = frame[frame.sex == "f"]
    for one, two in pairs:
        session.crosstab(frame[one], frame[two])
        session.crosstab(frame[one], frame[two], frame.pay, aggfunc="mean")
        session.crosstab(frame[one], frame[two], margins=True, normalize="index")
    for name in ("area", "job", "band"):
        session.crosstab(women[name])
        session.crosstab(frame[name], values=frame.pay, aggfunc=["median", 0.25])
        session.pivot_table(frame, "pay", name, "sex", aggfunc="sum")
    for name in ("area", "sex", "job"):
        session.crosstab(frame[name], frame.ill)
    session.histogram(frame.age)


def test_three_planted_differences_among_thirty_outputs_are_found_and_no_other() -> None:
    frame = people()
    session = Session()
    thirty(session, frame)
    assert [one for one in session.outputs.values() if one.verdict != "pass"] == []
    assert session.audit().differences == ()
    few, some = frame.index[[7, 8, 9]], frame.index[100:106]
    session.crosstab(frame.job.drop(few), name="without three")
    session.crosstab(
        frame.area.drop(some), values=frame.pay.drop(some), aggfunc="mean", name="without six"
    )
    women = frame[frame.sex == "f"]
    session.crosstab(women.job.iloc[2:], name="women but two")
    assert len(session.outputs) == 31
    audit = session.audit()
    assert audit.undecided == ()
    planted = {"without three": 3, "without six": 6, "women but two": 2}
    totals = {
        name: max(g.people for g in one.groups if not g.where or len(g.where) == 1)
        for one in audit.differences
        for name in set(planted) & set(one.outputs)
    }
    assert len(audit.differences) == 3
    assert totals == planted
    assert sorted(map(len, (d.outputs for d in audit.differences))) == [2, 2, 2]


def test_outputs_of_earlier_sessions_of_the_same_data_count_as_known(tmp_path: Path) -> None:
    frame = people(400)
    first = Session(tmp_path / "book", title="first")
    first.crosstab(frame.sex)
    first.finalise(tmp_path / "one")
    second = Session(tmp_path / "book")
    second.crosstab(frame.sex.iloc[4:])
    [found] = second.audit().differences
    assert found.outputs == ("session 1: output_0", "output_0")
    assert Session().audit().differences == ()
    book = tmp_path / "book"
    assert all(stat.S_IMODE(path.stat().st_mode) & 0o077 == 0 for path in (book, *book.rglob("*")))
    held = b"".join(path.read_bytes() for path in book.rglob("*") if path.is_file())
    assert b"p123" not in held
    [kept] = (book / "people").glob("*.npz")
    kept.write_bytes(kept.read_bytes()[:-1] + b"x")
    with pytest.raises(DatasetError, match="not what was written"):
        second.audit()
    (book / "key.secret").unlink()
    with pytest.raises(DatasetError, match="cannot be compared"):
        Session(book)


@pytest.mark.parametrize(
    ("values", "aggfunc", "failing"),
    [
        ([5.0] * 12, "sum", {"ok"}),
        ([1000.0] + [1.0] * 11, "mean", {"p-percent; dominance; "}),
        ([1000.0] + [1.0] * 11, "median", {"ok"}),
        ([5.0] * 12, 0.25, {"quantile; "}),
        ([5.0] * 12, "max", {"one person's value; "}),
        ([5.0] * 9, "mean", {"threshold; "}),
    ],
)
def test_each_statistic_is_judged_by_its_own_rules(
    values: list[float], aggfunc: object, failing: set[str]
) -> None:
    area = pd.Series(["n"] * len(values), name="area")
    made = Session().crosstab(area, values=pd.Series(values), aggfunc=aggfunc)
    assert set(made.outcome.to_numpy().ravel()) == failing


def test_what_is_suggested_is_tried_in_one_line_and_passes() -> None:
    frame = people(300)
    frame.loc[frame.index[:4], "job"] = "rare"
    session = Session()
    made = session.crosstab(frame.area, frame.job, margins=True)
    assert (made.verdict, made.suggestion) == ("fail", "session.suppress(name)")
    hidden = session.suppress(made.name)
    assert hidden.verdict == "pass"
    assert session.audit().differences == ()
    inner = hidden.frame.isna().iloc[:-1]
    assert (inner.sum(axis=1)[inner["rare"]] >= 2).all()
    merged = session.coarsen(made.name, "job", {"c, d and rare": ["c", "d", "rare"]})
    assert list(merged.frame.columns) == ["a", "b", "c, d and rare", "All"]
    rounded = session.round(made.name)
    assert (rounded.frame % 10 == 0).all(axis=None)
    assert session["output_0"].frame.loc["All", "All"] == 300


@pytest.mark.parametrize("margins", [False, True])
def test_a_share_tells_nothing_of_a_hidden_part_of_its_whole(margins: bool) -> None:
    """With all other shares of a row, the share of a hidden cell would be what is left of 1."""
    people = pd.DataFrame(
        {"area": ["n"] * 40 + ["s"] * 40, "job": ["a"] * 37 + ["b"] * 3 + ["a", "b"] * 20}
    )
    session = Session()
    session.crosstab(people.area, people.job, normalize="index", margins=margins, name="shares")
    shares = session.suppress("shares").frame
    assert np.isnan(shares.loc["n", "b"])
    for row in ("n", "s"):
        hidden = shares.loc[row, ["a", "b"]].isna()
        assert hidden.sum() != 1
    if not margins:
        assert shares.loc["s"].tolist() == [0.5, 0.5]


def test_primary_suppression_alone_is_found_by_the_audit_of_a_second_table() -> None:
    frame = people(300)
    frame.loc[frame.index[:4], "job"] = "rare"
    session = Session()
    session.suppress(session.crosstab(frame.job).name)
    assert session.audit().differences == ()
    session.crosstab(frame.sex)
    [found] = session.audit().differences
    assert found.outputs == ("output_0", "output_1")
    assert found.smallest == 4


class Fitted:
    """What a fitted model says of itself."""

    def __init__(self, rows: pd.DataFrame, parameters: int) -> None:
        self.nobs, self.df_resid = float(len(rows)), float(len(rows) - parameters)
        self.params, self.bse = np.ones(parameters), np.ones(parameters)
        dummy = (np.arange(len(rows)) < 3).astype(float)
        exog = np.column_stack([np.ones(len(rows)), dummy])
        data = type("Data", (), {"row_labels": rows.index})
        self.model = type("Model", (), {"exog": exog, "exog_names": None, "data": data})


def test_models_are_judged_by_degrees_of_freedom_and_their_records_by_all_outputs() -> None:
    frame = people(60)
    session = Session()
    assert "saturated" in session.regression(Fitted(frame.iloc[:5], 5)).summary
    assert session.regression(Fitted(frame.iloc[:14], 5)).verdict == "fail"
    rare = session.regression(Fitted(frame, 2))
    assert (rare.verdict, "x1" in rare.summary) == ("review", True)
    for name in ("output_0", "output_1"):
        session.remove(name)
    assert session.audit().differences == ()
    session.crosstab(frame.sex.iloc[:57])
    [found] = session.audit().differences
    assert (found.outputs, found.smallest) == (("output_2", "output_3"), 3)
    with pytest.raises(InputError, match="says its 'nobs'"):
        session.regression(object())


def test_a_survival_table_and_a_histogram_show_nobody_alone() -> None:
    frame = people(800)
    session = Session()
    made = session.survival(frame.age, frame.ill)
    assert made.verdict == "fail"
    fewer = session.coarsen(made.name)
    assert fewer.verdict == "pass"
    assert (np.diff(fewer.frame["at risk"]) <= -10).all()
    bins = session.histogram(frame.pay)
    assert float(str(bins.frame.index[0]).split(" to ")[0]) < frame.pay.min()
    assert bins.frame.to_numpy().sum() == 800


def finalised(folder: Path) -> Path:
    frame = people(300)
    frame.loc[frame.index[:4], "job"] = "rare"
    session = Session()
    session.crosstab(frame.area, frame.sex, name="safe")
    session.crosstab(frame.job, name="unsafe")
    session.crosstab(frame.area.iloc[3:], name="all but three")
    session.comment("unsafe", "<b>needed</b>")
    session.exception("unsafe", "these four are public")
    return session.finalise(folder)


def test_nothing_is_public_before_the_checker_approves_it(tmp_path: Path) -> None:
    folder = finalised(tmp_path / "out")
    assert list((folder / "approved").iterdir()) == []
    seen = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    assert seen == {"approved", "decisions.jsonl", "for-the-checker"}
    held = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    assert b"p123" not in held
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    checked = CheckerFolder(folder)
    checked.decide("safe", "approve", "without the other")
    for name in ("unsafe", "all but three"):
        with pytest.raises(InputError, match="approved with a reason"):
            checked.decide(name, "approve")
    assert [path.name for path in (folder / "approved").iterdir()] == ["safe.csv"]
    checked.decide("safe", "refuse", "changed my mind")
    assert list((folder / "approved").iterdir()) == []
    assert checked.decisions()["safe"]["what"] == "refuse"


@pytest.mark.parametrize(
    "name", ["outputs/safe.csv", "session.json", "digests.json", "evidence/unsafe.csv"]
)
def test_a_changed_file_or_record_is_refused(tmp_path: Path, name: str) -> None:
    folder = finalised(tmp_path / "out")
    CheckerFolder(folder).decide("safe", "approve", "reason")
    CheckerFolder(folder).decide("unsafe", "refuse")
    path = folder / "for-the-checker" / name
    before = path.read_bytes()
    path.write_bytes(before + b" ")
    with pytest.raises(DatasetError, match="not what the session wrote"):
        CheckerFolder(folder)
    path.write_bytes(before)
    record, approved = folder / "decisions.jsonl", folder / "approved" / "safe.csv"
    written = record.read_bytes()
    lines = written.splitlines(keepends=True)
    for changed in (
        written.replace(b'"approve"', b'"refuse"'),
        written.replace(b'"refuse"', b'"approve"'),
        b"".join(lines[:1]),
        b"".join([lines[0], *lines[2:]]),
    ):
        record.write_bytes(changed)
        with pytest.raises(DatasetError, match=r"ledger was changed|not what was decided"):
            CheckerFolder(folder).decisions()
    record.write_bytes(written)
    approved.write_text("another table")
    with pytest.raises(DatasetError, match="not what was decided"):
        CheckerFolder(folder).decisions()
    with pytest.raises(DatasetError, match="not what was decided"):
        CheckerFolder(folder).decide("unsafe", "refuse")
    assert record.read_bytes() == written


def test_the_checkers_page_lists_shows_and_decides(tmp_path: Path) -> None:
    folder = finalised(tmp_path / "out")
    app = create_check_app(folder)
    here = {"base_url": "http://127.0.0.1:8000", "client": ("127.0.0.1", 5)}
    assert TestClient(app, **here).get("/").status_code == 403
    client = TestClient(app, **here, headers={"accept": "text/html"})
    client.get(f"/enter?key={app.state.door.key}")
    page = client.get("/").text
    assert "unsafe" in page
    assert "1 cell fails threshold" in page
    assert "together give away" in page
    assert "everybody in the difference" in client.get("/outputs/all%20but%20three").text
    shown = client.get("/outputs/unsafe").text
    assert "&lt;b&gt;needed" in shown
    assert "these four are public" in shown
    assert "<svg" in shown
    post = {"origin": "http://127.0.0.1:8000"}
    assert client.post("/outputs/unsafe", data={"do": "approve"}, headers=post).status_code == 422
    client.post("/outputs/unsafe", data={"do": "approve", "comment": "agreed"}, headers=post)
    assert [path.name for path in (folder / "approved").iterdir()] == ["unsafe.csv"]
    assert "agreed" in client.get("/record").text
    assert client.get("/outputs/other").status_code == 422
    assert client.post("/outputs/safe", data={"do": "approve"}).status_code == 403


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda s: s.crosstab(pd.Series([1, 2], index=[0, 0])), "names a record twice"),
        (lambda s: s.crosstab(pd.Series([1]), pd.Series([1], index=[4])), "different indices"),
        (lambda s: s.crosstab(pd.Series(["a"]), aggfunc="mean"), "with 'values'"),
        (lambda s: s.crosstab(pd.Series(["a"]), normalize="rows"), "'normalize' is"),
        (lambda s: s.crosstab(pd.Series([np.nan])), "No record has a value"),
        (lambda s: s.crosstab(pd.Series(["a"]), name="../x"), "An output is called by"),
        (lambda s: s.suppress("output_9"), "There is no output"),
        (lambda s: s.finalise("x"), "has no outputs"),
        (lambda s: s.histogram(pd.Series([1, 2]), [3, 2]), "in rising order"),
        (lambda s: OutputRules(threshold=1), "must be 2 or more"),
        (lambda s: OutputRules(p=0.1), "p"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(wrong: object, said: str) -> None:
    with pytest.raises(InputError, match=said):
        wrong(lu.Session())  # type: ignore[operator]


def test_a_folder_states_its_rules_and_findings(tmp_path: Path) -> None:
    said = json.loads(
        (finalised(tmp_path / "out") / "for-the-checker" / "session.json").read_text()
    )
    assert said["rules"]["threshold"] == 10
    assert [one["verdict"] for one in said["outputs"]] == ["pass", "fail", "pass"]
    assert {name for one in said["differences"] for name in one["outputs"]} == {
        "safe",
        "all but three",
    }


def test_a_folder_made_by_hand_reads_and_writes_nothing_outside_of_it(tmp_path: Path) -> None:
    """Whoever writes the folder decides names in it; the checker's rights are not his."""
    folder = finalised(tmp_path / "out")
    inside, secret = folder / "for-the-checker", tmp_path / "secret"
    secret.write_text("x")

    def forged(digests: dict[str, str], file: str) -> None:
        said = json.loads((inside / "session.json").read_text())
        said["outputs"][0]["file"] = file
        (inside / "session.json").write_text(json.dumps(said))
        digests["session.json"] = digest_of((inside / "session.json").read_bytes())
        (inside / "digests.json").write_text(json.dumps(digests))
        (folder / "decisions.jsonl").unlink()
        digest = digest_of((inside / "digests.json").read_bytes())
        Chain(folder / "decisions.jsonl").append(
            {"what": "finalised", "digest": digest, "by": "eve"}
        )

    digests = json.loads((inside / "digests.json").read_text())
    forged(digests | {"../../secret": digest_of(b"x")}, "safe.csv")
    with pytest.raises(DatasetError, match="does not lie in the folder"):
        CheckerFolder(folder)
    (inside / "outputs" / "../made.csv").write_text("x")
    forged(digests | {"outputs/../made.csv": digest_of(b"x")}, "../made.csv")
    with pytest.raises(DatasetError, match="does not lie in the folder"):
        CheckerFolder(folder).decide("safe", "approve", "reason")
    assert not (folder / "made.csv").exists()


def test_events_of_a_survival_table_count_as_shown() -> None:
    frame = people(800)
    frame["year"] = frame.age // 30
    session = Session()
    session.survival(frame.year, frame.ill)
    session.crosstab(frame.year.iloc[3:].rename("time"), frame.ill.iloc[3:].rename("event"))
    [found] = session.audit().differences
    assert any(dict(group.where).keys() == {"time", "event"} for group in found.groups)
