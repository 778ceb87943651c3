"""In production only sealed policies are followed, and the server says what it does not serve."""

from __future__ import annotations

import re
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console
from typer.testing import CliRunner

import lustrum
from faults.world import ASKED, build
from lustrum.answer import TableService
from lustrum.cli import app
from lustrum.cli.work import run_server
from lustrum.model import PolicyError
from lustrum.policy.presets import PRESETS
from lustrum.policy.read import is_sealed, parse_policy, read_policy, sealed
from lustrum.public.bundle import read_bundle
from lustrum.publish.bundles.make import make_bundle
from lustrum.publish.records.local import LocalRecordsService
from lustrum.tabulate import Store


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return build(tmp_path / "data")


def seal(path: Path) -> None:
    path.write_bytes(sealed(path.read_bytes(), str(path)))


def said(root: Path, monkeypatch: pytest.MonkeyPatch, **words: Any) -> str:
    """What the command says when the server listens."""
    monkeypatch.setattr(
        "lustrum.server.serve", lambda service, *_, ready, **__: (ready("URL"), service.close())
    )
    out = Console(file=StringIO(), width=1000)
    run_server(root, "127.0.0.1", 0, out, **words)
    return out.file.getvalue()  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_is_printed_sealed(name: str, tmp_path: Path) -> None:
    printed = CliRunner().invoke(app, ["policy", "preset", name, "--data", str(tmp_path)])
    assert printed.exit_code == 0
    raw = printed.stdout.encode()
    assert is_sealed(raw)
    parse_policy(raw, "it")


def test_a_bundle_holds_a_sealed_policy(root: Path) -> None:
    path = root / "policies" / "town.toml"
    path.write_text(
        'dataset = "town"\n[rules]\n[risk]\nlimit = 1.0\n[[before]]\n'
        'method = "protected-population"\nsweeps = 1\n[protect]\nmethod = "none"\nend = true\n'
    )
    make_bundle(Store(root), "town", path, root / "bundles" / "town")
    assert is_sealed((root / "bundles" / "town" / "policy.toml").read_bytes())
    assert read_bundle(root / "bundles" / "town").policy == read_policy(path)
    assert not is_sealed(path.read_bytes())  # the agency's own file is left as it is


def test_no_line_can_be_deleted_from_a_policy_in_production(root: Path) -> None:
    path = root / "policies" / "town.toml"
    service = TableService(root, records=LocalRecordsService(root, 1), sealed_only=True)
    with pytest.raises(PolicyError, match="is not sealed, and this server follows sealed policies"):
        service.answer(ASKED["town"])
    seal(path)
    assert service.answer(ASKED["town"]).release is not None
    lines = path.read_text().splitlines(keepends=True)
    for number in range(len(lines)):
        path.write_text("".join(lines[:number] + lines[number + 1 :]))
        service.forget_policies()
        with pytest.raises(PolicyError):
            service.answer(ASKED["town"])


def test_a_changed_policy_can_be_sealed_again(root: Path) -> None:
    path = root / "policies" / "town.toml"
    seal(path)
    path.write_text(path.read_text().replace("min_population = 10", "min_population = 20"))
    with pytest.raises(PolicyError, match="was changed after it was sealed"):
        read_policy(path)
    seal(path)
    assert read_policy(path).rules.min_population == 20


def test_the_server_names_the_unsealed_policies_that_it_follows(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(root / "policies" / "shops.toml")
    text = said(root, monkeypatch)
    assert f"{root / 'policies' / 'town.toml'} is not sealed" in text
    assert "shops.toml" not in text
    assert "Lustrum serves 2 datasets at URL" in text


def test_the_server_counts_only_what_it_can_answer_about(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "policies" / "town.toml").write_text("[rules]\n")
    text = said(root, monkeypatch)
    assert "Lustrum serves 1 of 2 datasets at URL" in text
    assert "Served: shops.\n" in text
    assert "'town' is not available. " in text


def test_in_production_an_unsealed_policy_is_not_served(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seal(root / "policies" / "shops.toml")
    text = said(root, monkeypatch, production=True)
    assert "Lustrum serves 1 of 2 datasets at URL" in text
    assert "lustrum policy seal" in text


def test_no_command_takes_brackets_of_a_sentence_for_markup() -> None:
    # '[[before]]' of a policy, or a folder called '[old]', would be left out of what is said.
    for path in (Path(lustrum.__file__).parent / "cli").rglob("*.py"):
        for made in re.findall(r"\bConsole\(([^)]*)\)", path.read_text(encoding="utf-8")):
            assert "markup=False" in made, path
