"""The documentation keeps up with the code, and what it shows runs."""

from __future__ import annotations

import ast
import contextlib
import io
import itertools
import re
import shlex
import subprocess
import sys
import tomllib
from dataclasses import fields
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest
import typer
from pydantic import BaseModel

import lustrum
from lustrum.cli import app
from lustrum.cli.terminal.studies import as_markdown
from lustrum.demo import description_path
from lustrum.model import Dataset
from lustrum.model.parameters import parameter_names
from lustrum.model.plugins import GROUPS, load, names
from lustrum.policy import Policy
from lustrum.policy.read import parse_policy
from lustrum.publish.programme.read import bound_to, parse_programme
from lustrum.server import Settings
from lustrum.study import run_study
from lustrum.study.figures import CAPTIONS, write_figures
from lustrum.tabulate import read_description

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
REFERENCE = DOCS / "reference"


def code_blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(), flags=re.DOTALL)


def policy_keys(model: type[BaseModel] = Policy) -> list[tuple[str, str]]:
    found = []
    for name, field in model.model_fields.items():
        kind = field.annotation
        parts = [a for a in get_args(kind) if isinstance(a, type) and issubclass(a, BaseModel)]
        for part in parts:
            found += policy_keys(part)
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            found += policy_keys(kind)
        else:
            found.append((name, field.description or ""))
    return found


@pytest.mark.parametrize(("key", "description"), policy_keys())
def test_every_policy_key_is_documented_in_its_own_words(key: str, description: str) -> None:
    assert f"| `{key}` | {description} |" in (REFERENCE / "policy.md").read_text()


@pytest.mark.parametrize(
    ("group", "name"), [(g, n) for g in GROUPS if g != "lustrum.frames" for n in names(g)]
)
def test_everything_registered_loads_and_is_documented(group: str, name: str) -> None:
    assert load(group, name) is not None
    assert f"| `{name}` |" in (REFERENCE / "methods-and-measures.md").read_text()


def test_every_preliminary_rule_is_documented() -> None:
    source = (ROOT / "src/lustrum/answer").rglob("*.py")
    rules = {
        rule for path in source for rule in re.findall(r'Reason\(\s*"([a-z-]+)"', path.read_text())
    }
    assert len(rules) >= 9
    text = (REFERENCE / "methods-and-measures.md").read_text()
    assert {rule for rule in rules if f"`{rule}`" not in text} == set()


def test_every_command_is_documented() -> None:
    text = (REFERENCE / "command-line.md").read_text()
    command = typer.main.get_command(app)
    commands = getattr(command, "commands", {})
    assert len(commands) >= 7
    for name, found in commands.items():
        for word in getattr(found, "commands", {None: None}):
            assert f"lustrum {name}{f' {word}' if word else ''}" in text


def shown_commands() -> list[tuple[str, str]]:
    """Every command line of ours that a page shows, with the page."""
    pages = [ROOT / "README.md", *sorted(DOCS.glob("*/*.md")), DOCS / "index.md"]
    return [
        (page.name, line.removeprefix(".venv/bin/"))
        for page in pages
        for block in code_blocks(page, "sh")
        for line in block.replace("\\\n", " ").splitlines()
        if re.match(r"(\.venv/bin/)?lustrum ", line)
    ]


@pytest.mark.parametrize(("page", "line"), shown_commands())
def test_every_command_that_a_page_shows_is_understood(page: str, line: str) -> None:
    command, words = typer.main.get_command(app), shlex.split(line, comments=True)
    words = list(itertools.takewhile(lambda word: ">" not in word, words))  # up to a redirection
    while hasattr(command, "commands"):
        _, *words = words
        assert words[0] in command.commands, page
        command = command.commands[words[0]]
    command.make_context(words[0], words[1:])  # options and their types, without doing anything


def test_the_programme_that_a_page_shows_fits_the_demo_register() -> None:
    (programme,) = code_blocks(DOCS / "how-to" / "publish-your-yearly-tables.md", "toml")
    parsed = parse_programme(programme.encode(), "tables.toml", ROOT)
    assert parsed.source.dataset == "businesses"
    bound = bound_to(parsed, read_description(description_path("businesses")))
    assert [len(own.tables) for own in bound.sets] == [2]


def test_many_commands_are_shown() -> None:
    assert len(shown_commands()) > 30


def test_every_setting_of_the_server_is_documented() -> None:
    text = (DOCS / "how-to" / "operate-the-server.md").read_text()
    serve = getattr(typer.main.get_command(app), "commands", {})["serve"]
    options = [o for p in serve.params for o in p.opts if o not in ("--help", "--demo")]
    assert len(options) >= 13
    assert [option for option in options if f"`{option}`" not in text] == []
    assert {f"--{field.name.replace('_', '-')}" for field in fields(Settings)} <= set(options)


def test_every_route_of_the_api_is_documented(tmp_path: Path) -> None:
    from lustrum.local import local_service
    from lustrum.server import create_app

    text = (REFERENCE / "http-api.md").read_text()
    for path in create_app(local_service(tmp_path)).openapi()["paths"]:
        assert path in text


def test_every_key_of_a_description_is_documented() -> None:
    text = (REFERENCE / "dataset-description.md").read_text()
    source = (ROOT / "src/lustrum/model/dataset.py").read_text()
    keys = set(re.findall(r'_(?:optional_)?text\(\w+, "(\w+)"', source))
    keys |= set(re.findall(r'_tables\(\w+, "(\w+)"', source)) | {
        "decimals",
        "codes",
        "members",
        "where",
    }
    assert {key for key in keys if f"`{key}`" not in text and f"[[{key}]]" not in text} == set()


def test_the_tour_of_the_readme_runs() -> None:
    (tour,) = code_blocks(ROOT / "README.md", "python")
    assert len([line for line in tour.splitlines() if line.strip()]) <= 10
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(tour, "README.md", "exec"), {})
    before, after = map(float, re.findall(r"risk (\S+) before, (\S+) after", printed.getvalue())[0])
    assert 0 < after < before < 1
    assert "utility 0.9" in printed.getvalue()


EXAMPLES = [
    path.stem for path in sorted((DOCS / "explanation").glob("*.md")) if code_blocks(path, "python")
]


@pytest.mark.parametrize("page", EXAMPLES)
def test_the_examples_of_the_explanations_run(page: str) -> None:
    assert len(EXAMPLES) >= 11
    for example in code_blocks(DOCS / "explanation" / f"{page}.md", "python"):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(example, page, "exec"), {})
        assert printed.getvalue().strip()


@pytest.mark.parametrize(
    "page",
    [
        "tutorials/python.md",
        "reference/python.md",
        "how-to/write-a-plugin.md",
        "how-to/check-research-outputs.md",
        "how-to/ten-tasks-side-by-side.md",
    ],
)
def test_the_blocks_of_a_page_run_one_after_the_other(page: str) -> None:
    blocks = code_blocks(DOCS / page, "python")
    assert len(blocks) >= 2
    module = ModuleType(f"lustrum_docs_{Path(page).stem.replace('-', '_')}")
    sys.modules[module.__name__] = module  # where a dataclass looks its types up
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            for block in blocks:
                exec(compile(block, page, "exec"), module.__dict__)
    finally:
        del sys.modules[module.__name__]


def test_the_page_for_python_shows_ten_tasks() -> None:
    page = (DOCS / "tutorials" / "python.md").read_text()
    sections = re.split(r"^## (?=\d+\. )", page, flags=re.MULTILINE)[1:]
    assert [int(section.partition(".")[0]) for section in sections] == list(range(1, 11))
    assert all("```python" in section for section in sections)


def test_every_parameter_of_a_method_is_documented() -> None:
    text = (REFERENCE / "methods-and-measures.md").read_text()
    for name in names("lustrum.methods"):
        (row,) = [line for line in text.splitlines() if line.startswith(f"| `{name}` |")]
        spec = load("lustrum.methods", name)
        said = {"microdata": "records"}
        for stage in spec.stages:
            assert said.get(stage, stage) in row.split("|")[3], f"{name}: {stage}"
        assert [one for one in parameter_names(spec) if f"`{one}`" not in row] == []


def _hook() -> ModuleType:
    """The hook of mkdocs that fills pages in."""
    spec = spec_from_file_location("docs_figures", ROOT / "scripts" / "docs_figures.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["cell-entropy", "markov"])
def test_the_page_of_a_study_is_what_the_study_prints(name: str, tmp_path: Path) -> None:
    study = run_study(name)
    assert study.reproduced
    drawn = {f"img/{path.name}": CAPTIONS[path.stem] for path in write_figures(study, tmp_path)}
    page = _hook().filled((DOCS / "studies" / f"{name}.md").read_text())
    assert as_markdown(study, drawn) == page
    assert all((DOCS / "studies" / address).is_file() for address in drawn)


def test_the_description_in_the_guide_is_valid() -> None:
    (text,) = code_blocks(DOCS / "how-to" / "ingest-your-data.md", "toml")
    assert Dataset.from_mapping(tomllib.loads(text)).variable("age").level("working-age")


def test_the_policy_in_the_guide_is_valid() -> None:
    first, *rest = code_blocks(DOCS / "how-to" / "write-a-policy.md", "toml")
    assert parse_policy(first.encode(), "the guide").rules.min_population == 1000
    for text in rest:
        assert Policy.model_validate(tomllib.loads(text)) != Policy.model_validate({})


def test_every_page_is_in_the_menu() -> None:
    menu = (ROOT / "mkdocs.yml").read_text()
    pages = {str(path.relative_to(DOCS)) for path in DOCS.rglob("*.md")}
    assert {page for page in pages if page not in menu} == set()


def test_the_exported_names_are_all_there() -> None:
    assert sorted(lustrum.__all__) == sorted(set(lustrum.__all__))
    for name in lustrum.__all__:
        assert getattr(lustrum, name) is not None


def test_the_house_is_drawn_from_the_code() -> None:
    drawn = subprocess.run(
        [sys.executable, str(ROOT / "scripts" / "house.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert drawn.returncode == 0, drawn.stdout


def test_the_walks_through_the_code_name_files_that_are_there() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    walks = text.split("## Three walks through the code")[1].split("\n## ")[0]
    named = [word for word in re.findall(r"`([a-z_/]+)`", walks) if "/" in word]
    assert len(named) > 30
    source = ROOT / "src" / "lustrum"
    missing = [
        word
        for word in named
        if not (source / word).is_dir() and not (source / f"{word}.py").is_file()
    ]
    assert missing == []


_SOURCE = Path(__file__).parents[1] / "src"
_RULE = re.compile(r"^=+( +=+)+$")


def _flaws(text: str) -> list[str]:
    """Rows whose second column does not begin where the rule says, or that hold two rows."""
    flaws = []
    lines = text.split("\n")
    rules = [i for i, line in enumerate(lines) if _RULE.match(line)]
    for first, last in zip(rules[::2], rules[1::2], strict=True):
        end = lines[first].index(" ")
        begin = lines[first].index("=", end)
        for line in lines[first + 1 : last]:
            gap = line[end:begin].strip()
            if gap or "   " in line[begin:].strip():
                flaws.append(line)
    return flaws


def test_two_rows_on_one_line_are_seen() -> None:
    rule = "====  ====\n"
    assert _flaws(rule + "a     one\nb     two\n" + rule) == []
    assert len(_flaws(rule + "a     one b      two\n" + rule)) == 1
    assert len(_flaws(rule + "aaaaaaa    one\n" + rule)) == 1


@pytest.mark.parametrize("room", sorted(p.name for p in (_SOURCE / "lustrum").iterdir()))
def test_tables_in_docstrings_keep_their_columns(room: str) -> None:
    place = _SOURCE / "lustrum" / room
    files = [place] if place.suffix == ".py" else sorted(place.rglob("*.py"))
    flaws = {}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                if found := _flaws(ast.get_docstring(node) or ""):
                    flaws[file.name] = found
    assert flaws == {}


@pytest.mark.parametrize("page", ["audit-a-release", "suppress-a-table"])
def test_the_pages_on_audits_and_suppression_have_at_most_a_thousand_words(page: str) -> None:
    assert len((DOCS / "how-to" / f"{page}.md").read_text("utf-8").split()) <= 1000
