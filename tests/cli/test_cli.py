"""The command line: the same words, one clear sentence for every mistake."""

from __future__ import annotations

import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pytest
from rich.console import Console

from browsing import axe_complaints, context_of
from lustrum.cli import main, work
from lustrum.demo import description_path, people
from lustrum.demo.draws import SHIPPED
from lustrum.demo.setup import copy_policy
from lustrum.protect.population.public import SEARCH
from lustrum.readers.layout import read_layout
from lustrum.tabulate import FrameSource, Store, ingest, read_description
from waiting import until

DESCRIPTION = """
[dataset]
name = "shop"
record_id = "id"
units = "shops"

[[variables]]
name = "kind"
label = "Kind"
codes = [["f", "Food"], ["c", "Clothes"]]

[[variables]]
name = "town"
label = "Town"
codes = [["1", "Ayton"], ["2", "Beeford"], ["3", "Ceeham"]]
"""


@dataclass(frozen=True)
class Done:
    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run a command in this process, as the shell would."""

    def go(*words: str, data: Path) -> Done:
        monkeypatch.setattr(sys, "argv", ["lustrum", *words])
        monkeypatch.setenv("LUSTRUM_DATA", str(data))
        monkeypatch.setenv("COLUMNS", "160")
        try:
            main()
            code = 0
        except SystemExit as left:
            code = int(left.code or 0)
        out = capsys.readouterr()
        return Done(code, out.out, out.err)

    return go


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's census alone, as ``lustrum demo`` makes it."""
    root = tmp_path_factory.mktemp("data")
    ingest(FrameSource(people(4_000)), read_description(description_path("demo")), Store(root))
    copy_policy("demo", root)
    shutil.copytree(SHIPPED / "demo", root / "bundles" / "demo")
    return root


def test_the_command_of_the_readme_prints_a_protected_table(run: Run, data: Path) -> None:
    done = run(
        "table", "--dataset", "demo", "--by", "sex,citizenship", "--where", "region=1",
        "--explain", data=data,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for part in ("Female", "risk before", "utility", "1. question: passed", "5. answer: released"):
        assert part in done.stdout


def test_a_refusal_says_why_and_exits_with_three(run: Run, data: Path) -> None:
    by = "age,sex,education,occupation,region,citizenship,employment"
    done = run("table", "--dataset", "demo", "--by", by, data=data)
    assert done.returncode == 3
    assert "at most 6 are allowed" in done.stdout
    assert "-> Leave out 1 of" in done.stdout


@pytest.mark.parametrize("format_", ["csv", "json-stat"])
def test_formats_come_out_alone_on_standard_output(run: Run, data: Path, format_: str) -> None:
    done = run("table", "--dataset", "demo", "--by", "sex", "--format", format_, data=data)
    assert done.returncode == 0, done.stderr
    if format_ == "csv":
        assert done.stdout.splitlines()[0] == "sex,sex_label,value,status,margin"
    else:
        assert json.loads(done.stdout)["size"] == [2]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--dataset", "demo", "--by", "agee"], "did you mean 'age'?"),
        (["--dataset", "dem", "--by", "age"], "There is no dataset 'dem'; did you mean 'demo'?"),
        (["--dataset", "demo", "--by", "age:ten"], "has no level 'ten'"),
        (["--dataset", "demo", "--by", "age", "--where", "region"], "write --where variable=code"),
        (["--dataset", "demo", "--by", "age", "--where", "region=9"], "has no category '9'"),
        (["--dataset", "demo", "--by", "age,,sex"], "a variable's name is missing"),
        (["--dataset", "demo", "--by", "age", "--format", "xls"], "There is no format 'xls'"),
    ],
)
def test_a_mistake_is_one_sentence(run: Run, data: Path, words: list[str], sentence: str) -> None:
    done = run("table", *words, data=data)
    assert done.returncode == 1
    assert sentence in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert "Traceback" not in done.stderr


def test_ingest_then_ask_with_the_starter_policy(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    rows = 4000
    table = pa.table(
        {
            "id": np.arange(rows),
            "kind": np.where(rng.random(rows) < 0.3, "f", "c"),
            "town": rng.integers(1, 4, rows).astype(str),
        }
    )
    pc.write_csv(table, tmp_path / "shops.csv")
    (tmp_path / "shops.toml").write_text(DESCRIPTION)
    root = tmp_path / "store"
    done = run("ingest", str(tmp_path / "shops.csv"), "-d", str(tmp_path / "shops.toml"), data=root)
    assert done.returncode == 0, done.stderr
    assert "A strict policy was written" in done.stderr
    early = run("table", "--dataset", "shop", "--by", "kind,town", data=root)
    assert early.returncode == 1
    assert "'lustrum protect --dataset shop' makes it" in early.stderr
    inside = str(root / "bundles" / "shop" / "report")
    refused = run("protect", "--dataset", "shop", "--report", inside, data=root)
    assert refused.returncode == 1
    assert "must not stand in the bundle" in refused.stderr.replace("\n", " ")
    made = run("protect", "--dataset", "shop", data=root)
    assert made.returncode == 0, made.stderr
    assert "may be published" in made.stderr
    report = root / "reports" / "shop" / "report.json"
    assert report.stat().st_mode & 0o077 == 0
    again = run("protect", "--dataset", "shop", data=root)
    assert again.returncode == 0, again.stderr
    assert "0 did not" in again.stderr.replace("\n", " ")
    assert "search" not in again.stderr
    with monkeypatch.context() as later:
        later.setattr("lustrum.public.bundle.files.SEARCH", SEARCH + 1)
        third = run("protect", "--dataset", "shop", data=root)
        assert f"was made by search {SEARCH}" in third.stderr.replace("\n", " ")
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            served = run("serve", "--port", str(taken.getsockname()[1]), data=root)
        assert f"The bundle of 'shop' was made by search {SEARCH}" in served.stdout
    assert "confidential" in json.loads(report.read_text())
    asked = run("table", "--dataset", "shop", "--by", "kind,town", "--totals", data=root)
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert "Ayton" in asked.stdout
    listed = run("datasets", data=root)
    assert "kind (Kind, 2 codes)" in listed.stdout


def test_ingest_says_what_is_wrong_and_keeps_nothing(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shops.csv").write_text("id,kind,town\n1,f,1\n2,x,1\n")
    (tmp_path / "shops.toml").write_text(DESCRIPTION)
    root = tmp_path / "store"
    done = run("ingest", str(tmp_path / "shops.csv"), "-d", str(tmp_path / "shops.toml"), data=root)
    assert done.returncode == 1
    assert "column 'kind', row 2: the code 'x' is not in the code list" in done.stderr
    assert Store(root).names() == []
    assert not any(root.glob("shop/v*"))


def test_a_drafted_description_leads_to_protected_sums(run: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    rows = 600
    file, draft, root = tmp_path / "shops.csv", tmp_path / "shops.toml", tmp_path / "store"
    columns = {
        "id": np.arange(rows),
        "town": rng.integers(1, 4, rows),
        "sales": rng.integers(10, 9999, rows),
    }
    pc.write_csv(pa.table(columns), file)
    done = run("describe", str(file), "--out", str(draft), data=root)
    assert done.returncode == 0, done.stderr
    assert f"lustrum ingest {file} --description {draft}" in done.stderr.replace("\n", "")
    again = run("describe", str(file), "--out", str(draft), data=root)
    assert again.returncode == 1
    assert "is there already" in again.stderr
    unit_missing = run("ingest", str(file), "-d", str(draft), data=root)
    assert unit_missing.returncode == 1
    assert "'sales' would be published without a unit" in unit_missing.stderr
    assert Store(root).names() == []
    draft.write_text(draft.read_text().replace('# unit = "EUR"', 'unit = "EUR"'))
    assert run("ingest", str(file), "-d", str(draft), data=root).returncode == 0
    printed = run("policy", "preset", "strict", "--dataset", "shops", data=root)
    assert printed.stdout == (root / "policies" / "shops.toml").read_text()
    assert run("protect", "--dataset", "shops", data=root).returncode == 0
    asked = run(
        "table",
        "--dataset",
        "shops",
        "--by",
        "town",
        "--measure",
        "sales",
        "--format",
        "csv",
        data=root,
    )
    assert asked.returncode == 0, asked.stderr
    shown = [int(line.split(",")[2]) for line in asked.stdout.splitlines()[1:4]]
    true = [int(columns["sales"][columns["town"] == code].sum()) for code in (1, 2, 3)]
    assert shown != true
    assert all(abs(a - b) < 0.2 * b for a, b in zip(shown, true, strict=True))


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["shops.csv"], "--description people.toml"),
        (["-d", "x.toml"], "Name either a file, a --query"),
        (["none.csv", "-d", "none.toml"], "none.toml cannot be read: No such file"),
    ],
)
def test_ingest_without_what_it_needs_is_one_sentence(
    run: Run, tmp_path: Path, words: list[str], sentence: str
) -> None:
    done = run("ingest", *words, data=tmp_path)
    assert done.returncode == 1
    assert sentence in done.stderr


def test_a_port_in_use_is_one_sentence(run: Run, data: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run("serve", "--port", str(taken.getsockname()[1]), data=data)
    assert done.returncode == 1
    assert "in use" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_nothing_to_serve_is_one_sentence(run: Run, tmp_path: Path) -> None:
    done = run("serve", data=tmp_path)
    assert done.returncode == 1
    assert "There is nothing to serve" in done.stderr


def test_a_folder_that_cannot_be_made_is_one_sentence(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    done = run("demo", "--persons", "500", data=tmp_path / "file" / "inside")
    assert done.returncode == 1
    assert "Not a directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_policy_check_says_what_a_policy_decides(run: Run, data: Path, tmp_path: Path) -> None:
    good = run("policy", "check", str(data / "policies" / "demo.toml"), data=data)
    assert good.returncode == 0
    assert "at most 6 variables" in good.stdout
    assert (
        "one protected population is made of the records, by protected-population (base 3"
        in good.stdout
    )
    assert "Note well" not in good.stdout
    assert "names of variables were not checked" not in good.stdout
    (tmp_path / "bad.toml").write_text("[rules]\nmax_dims = 3\nend = true\n")
    bad = run("policy", "check", str(tmp_path / "bad.toml"), data=data)
    assert bad.returncode == 1
    assert "no key 'rules.max_dims'" in bad.stderr
    misspelt = (
        (data / "policies" / "demo.toml")
        .read_text()
        .replace("[rules]", '[rules]\ndisallowed = [["sexx", "age"]]')
    )
    (tmp_path / "misspelt.toml").write_text(misspelt)
    assert run("policy", "seal", str(tmp_path / "misspelt.toml"), data=data).returncode == 0
    bad = run("policy", "check", str(tmp_path / "misspelt.toml"), data=data)
    assert bad.returncode == 1
    assert "names the variable 'sexx', which 'demo' does not have" in bad.stderr
    elsewhere = run("policy", "check", str(tmp_path / "misspelt.toml"), data=tmp_path)
    assert elsewhere.returncode == 0
    assert "names of variables were not checked" in elsewhere.stdout.replace("\n", " ")


def test_policy_try_shows_what_a_new_policy_would_change(
    run: Run, data: Path, tmp_path: Path
) -> None:
    asked = [{"dataset": "demo", "by": ["sex", "region"]}, {"dataset": "demo", "by": ["sex"]}]
    questions = tmp_path / "questions.jsonl"
    questions.write_text("\n".join(json.dumps(q) for q in asked))
    in_force = str(data / "policies" / "demo.toml")
    same = run("policy", "try", in_force, str(questions), data=data)
    assert same.returncode == 0
    assert "2 same" in same.stdout
    (tmp_path / "strict.toml").write_text(
        'dataset = "demo"\n[rules]\ndisallowed = [["region"]]\n[risk]\nlimit = 1.0\n'
        '[protect]\nmethod = "random-rounding"\nend = true\n'
    )
    strict = run("policy", "try", str(tmp_path / "strict.toml"), str(questions), data=data)
    assert strict.returncode == 3
    assert "1 answer becomes refusal" in strict.stdout
    assert "is not available" in strict.stdout


def test_the_version_and_the_plugins_are_told(run: Run, data: Path) -> None:
    assert run("--version", data=data).stdout.startswith("lustrum 0.")
    listed = run("plugins", data=data).stdout
    assert "random-rounding" in listed


def test_the_module_runs_as_a_command_of_its_own(data: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "lustrum", "table", "--dataset", "demo", "--by", "agee"],
        capture_output=True, text=True, env=os.environ | {"LUSTRUM_DATA": str(data)}, timeout=600,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("lustrum: Dataset 'demo' has no variable 'agee'")


def test_a_study_prints_the_paper_beside_ours(run: Run, data: Path, tmp_path: Path) -> None:
    shown = run("study", "markov", data=data)
    assert shown.returncode == 0
    assert "figures are as expected" in shown.stdout
    drawn = run("study", "markov", "--markdown", "--figures", str(tmp_path / "img"), data=data)
    assert "](img/markov-map.svg)" in drawn.stdout
    assert (tmp_path / "img" / "markov-map.svg").read_text().startswith("<svg")
    wrong = run("study", "markow", data=data)
    assert wrong.returncode == 1
    assert "did you mean 'markov'" in wrong.stderr


PUBLISHED = """area,job,value,status
n,a,,D
n,b,,D
n,c,7,F
n,_T,20,F
s,a,,D
s,b,,D
s,c,8,F
s,_T,16,F
w,a,6,F
w,b,2,F
w,c,,A
w,_T,9,F
_T,a,18,F
_T,b,11,F
_T,c,16,F
_T,_T,45,F
"""


def test_an_audit_names_what_is_disclosed_and_why(run: Run, tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text(PUBLISHED)
    words = ["--html", str(tmp_path / "p.html"), "--certificate", str(tmp_path / "p.json")]
    done = run("audit", str(tmp_path / "p.csv"), *words, data=tmp_path)
    assert done.returncode == 4
    assert "Question 1" in done.stdout
    layout = tmp_path / "l.toml"
    assert (
        run("audit", str(tmp_path / "p.csv"), "--propose", str(layout), data=tmp_path).returncode
        == 4
    )
    settled = [line for line in layout.read_text().splitlines() if not line.startswith("open")]
    layout.write_text("\n".join(settled))
    (tmp_path / "p.json").unlink()
    words += ["--layout", str(layout), "--json", str(tmp_path / "r.json")]
    done = run("audit", str(tmp_path / "p.csv"), *words, data=tmp_path)
    assert done.returncode == 3, done.stdout
    assert "area=w, job=c" in done.stdout
    assert json.loads((tmp_path / "r.json").read_text())["exit"] == 3
    assert "area=w, job=c" in (tmp_path / "p.html").read_text()
    checked = run("verify", str(tmp_path / "p.json"), data=tmp_path)
    assert checked.returncode == 0
    assert "The certificate holds" in checked.stdout
    broken = (tmp_path / "p.json").read_text().replace('"version":1', '"version":2', 1)
    (tmp_path / "p.json").write_text(broken)
    assert run("verify", str(tmp_path / "p.json"), data=tmp_path).returncode == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["none.csv"], "none.csv cannot be read: No such file"),
        (["{file}", "--protect", "10%"], "--protect needs the true tables"),
        (["{file}", "--layout", "none.toml"], "none.toml cannot be read: No such file"),
    ],
)
def test_a_mistake_in_an_audit_is_one_sentence(
    run: Run, tmp_path: Path, words: list[str], sentence: str
) -> None:
    (tmp_path / "p.csv").write_text(PUBLISHED)
    done = run("audit", *(w.format(file=tmp_path / "p.csv") for w in words), data=tmp_path)
    assert done.returncode == 1
    assert sentence in done.stderr


if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_from_a_file_by_questions_and_roles_to_a_layout_and_its_exit_code(
    run: Run, tmp_path: Path, browser: Browser
) -> None:
    """With the keyboard alone; nothing is settled that nobody said is right."""
    rows = "T,All,90,\nT,a,60,\nT,b,30,\nN,All,50,\nN,a,x,\nN,b,9,c\nS,All,40,\nS,a,x,\nS,b,21,e\n"
    rows += "of which U,All,8,\nof which U,a,x,\n"
    (tmp_path / "q.csv").write_text(f"A title\narea,job,value,status\n{rows}")
    audit = ["audit", str(tmp_path / "q.csv")]
    assert run(*audit, "--html", str(tmp_path / "q.html"), data=tmp_path).returncode == 4
    for width, scheme in ((1440, "light"), (390, "dark")):
        looks = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
        with context_of(browser, **looks, accept_downloads=True) as context:
            tab = context.new_page()
            tab.goto((tmp_path / "q.html").as_uri())
            assert axe_complaints(tab) == []
            assert tab.evaluate("document.documentElement.scrollWidth") <= width
            text = tab.get_by_label("The layout as TOML")
            asked = tomllib.loads(text.input_value())["open"]
            assert {"codes:area", "codes:job", "symbols", "letters", "notes", "missing"} == set(
                asked
            )
            tab.get_by_label("combinations that are not listed").focus()
            tab.keyboard.press("h")
            tab.get_by_label("The codes inside S").select_option("false")
            for role in set(asked) - {"missing"}:
                box = tab.locator(f"[data-settles='{role}']")
                for letter, key in (("e", "n"), ("c", "h")) if role == "letters" else ():
                    tab.locator(f"[data-letter='{letter}']").focus()
                    tab.keyboard.press(key)
                box.focus()
                tab.keyboard.press("Space")
            assert tab.get_by_role("status").inner_text() == "Every question is settled."
            tab.get_by_role("button").focus()
            with tab.expect_download() as download:
                tab.keyboard.press("Enter")
            download.value.save_as(tmp_path / "layout.toml")
    layout = read_layout(tmp_path / "layout.toml")
    assert (layout.open, layout.letters) == ((), {"c": "hidden", "e": "note"})
    assert layout.tables[0].missing == "hidden"
    assert layout.dimensions["area"].subsets["S"].complete is False
    done = run(*audit, "--layout", str(tmp_path / "layout.toml"), data=tmp_path)
    assert done.returncode == 3
    assert "A number stands beside the word that it is hidden" in done.stdout


def test_bundles_of_the_demo_that_are_missing_are_made_beside_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, asked, said = tmp_path / "python", tmp_path / "asked", io.StringIO()
    program.write_text(f'#!/bin/sh\necho "$$ $@" > {asked}\nexec sleep 600\n')
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    monkeypatch.setattr("lustrum.demo.setup.place", lambda root: ["survey"])
    with work.demo_in(tmp_path, Console(file=said)):
        until(lambda: asked.is_file() and asked.read_text().endswith("\n"))
        number, words = asked.read_text().strip().split(" ", 1)
        assert words == f"-m lustrum demo --data {tmp_path}"
        assert "Being made, and served soon: survey." in said.getvalue()
    with pytest.raises(ProcessLookupError):
        os.kill(int(number), 0)
    # Where all are there, nothing is started.
    asked.unlink()
    monkeypatch.setattr("lustrum.demo.setup.place", lambda root: [])
    with work.demo_in(tmp_path, Console(file=said)):
        pass
    assert not asked.exists()
