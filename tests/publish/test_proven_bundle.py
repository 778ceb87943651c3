"""Bundles with a proof through the command: paid for once, made again from what was paid for, served."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from io import StringIO
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from rich.console import Console

from lustrum.answer import TableService
from lustrum.cli.protect import protect_dataset
from lustrum.ledger.releases import ReleaseBook
from lustrum.model import Axis, DatasetError, InputError, TableQuery
from lustrum.policy.presets import preset
from lustrum.protect.privacy import BudgetSpentError
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.plan import MeasurementPlan, few_people
from lustrum.public.bundle.files import read_bundle
from lustrum.publish.budget import BudgetLedger
from lustrum.publish.bundles import proven
from lustrum.publish.bundles.proven import ERRORS, NOISY, ProvenBundle
from lustrum.publish.doctor import examine
from lustrum.server import create_app
from lustrum.server.settings import Settings
from lustrum.tabulate import FrameSource, Store, ingest, read_description
from lustrum.tabulate.store.backup import back_up, restore

SIZES = {"area": 6, "sex": 2, "age": 4, "job": 2}
DESCRIPTION = """
[dataset]
name = "{name}"
record_id = "id"
{population}
""" + "".join(
    f'[[variables]]\nname = "{name}"\ncodes = {json.dumps([[str(i), f"{name} {i}"] for i in range(size)])}\n'
    for name, size in SIZES.items()
)


@pytest.fixture(autouse=True, scope="module")
def _few_draws() -> Iterator[None]:
    """Errors are stated from two populations in place of eight: nothing here depends on how many."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("lustrum.protect.proven.report._DRAWS", 2)
        yield


def ingested(
    root: Path, name: str = "town", population: str = 'population = "merrow"', seed: int = 8
) -> Path:
    """A data folder with a dataset of 600 invented people and the preset."""
    rng = np.random.default_rng(seed)
    columns = {"id": [str(i) for i in range(600)]}
    columns |= {v: [str(c) for c in rng.integers(size, size=600)] for v, size in SIZES.items()}
    described = root / f"{name}.toml"
    described.write_text(DESCRIPTION.format(name=name, population=population))
    data = root / "data"
    ingest(FrameSource(pa.table(columns)), read_description(described), Store(data))
    (data / "policies").mkdir(exist_ok=True)
    (data / "policies" / f"{name}.toml").write_text(preset("proven", name))
    return data


def protect(data: Path, name: str = "town", **options: bool) -> ProvenBundle:
    made = protect_dataset(name, data, Console(quiet=True), **options)  # type: ignore[arg-type]
    assert isinstance(made, ProvenBundle)
    return made


def limited(data: Path, rho: str) -> BudgetLedger:
    ledger = BudgetLedger(data, "merrow")
    ledger.set_limit(Fraction(rho), "the board")
    return ledger


@pytest.fixture(scope="module")
def released(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder whose release took most of a budget of 3; no test changes it."""
    data = ingested(tmp_path_factory.mktemp("released"))
    limited(data, "3")
    assert protect(data).charged
    return data


@pytest.fixture
def own(released: Path, tmp_path: Path) -> Path:
    """The same, for a test that changes it."""
    return Path(shutil.copytree(released, tmp_path / "data"))


def notes_of(data: Path) -> str:
    """What an answer of the server says beside its numbers."""
    service = TableService(data)
    said = []
    for names in (("area", "sex"), tuple(SIZES)):
        release = service.answer(TableQuery("town", by=tuple(map(Axis, names)))).release
        assert release is not None
        # Nobody measured how four variables go together, so that no margin is stated for them.
        assert release.margin is None
        assert (release.margins is None) == (len(names) > 3)
        said += [str(note) for note in release.notes]
    service.close()
    return " ".join(said)


def test_a_release_is_paid_for_once_and_served_with_its_promise(tmp_path: Path) -> None:
    data = ingested(tmp_path)
    ledger = limited(data, "5")
    first = protect(data)
    assert (first.charged, first.rho, first.left) == (True, Fraction("2.56"), Fraction("2.44"))
    again = protect(data)
    assert (again.charged, again.digest, again.left) == (False, first.digest, first.left)
    with pytest.raises(BudgetSpentError, match=r"costs rho 2\.56, and 2\.44 of 5 is left"):
        protect(data, measure_again=True)
    assert ledger.spent == Fraction("2.56")
    bundle = read_bundle(data / "bundles" / "town")
    assert bundle.report.proof is not None
    assert bundle.report.proof["neighbours"] == "replace-one-record"
    assert not bundle.report.proof["earlier_without_proof"]
    errors = data / "reports" / "town" / ERRORS
    assert errors.stat().st_mode & 0o077 == 0
    assert [row["variables"] for row in json.loads(errors.read_bytes())["tables"]] == [1, 2, 3]
    text = notes_of(data)
    assert "made up from noisy tables" in text
    assert "rho 2.56" in text
    assert "a 1 need not exist, and a 0 need not be empty" in text


def test_other_records_behind_the_same_noisy_tables_make_the_same_bundle(
    own: Path, tmp_path: Path
) -> None:
    first = read_bundle(own / "bundles" / "town")
    errors = (own / "reports" / "town" / ERRORS).read_bytes()
    ingested(tmp_path, seed=9)
    again = protect(own)
    assert (again.charged, again.digest) == (False, first.digest)
    # Only the agency sees that these are other people.
    assert (own / "reports" / "town" / ERRORS).read_bytes() != errors


def test_a_small_file_is_warned_of_before_its_budget_is_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data, printed = ingested(tmp_path), StringIO()
    limited(data, "3")
    monkeypatch.setattr(BudgetLedger, "charge", lambda *_: pytest.fail("stopped"))
    with pytest.raises(pytest.fail.Exception):
        protect_dataset("town", data, Console(file=printed, width=10_000))
    assert "600 people are few for these tables" in printed.getvalue()
    monkeypatch.undo()
    for rho, stays in (("2.56", True), ("0.1", False)):
        (data / "policies/town.toml").write_text(preset("proven", "town").replace("2.56", rho))
        printed = StringIO()
        protect_dataset("town", data, Console(file=printed, width=10_000), measure_again=True)
        assert ("are few for these tables" in printed.getvalue()) == stays
        assert ("which stay here, since the file is small" in printed.getvalue()) == stays


def test_only_sizes_decide_whether_people_are_few(tmp_path: Path) -> None:
    """Where 3 people share a cell, a quarter is left of noise of variance 1."""
    (tmp_path / "town.toml").write_text(DESCRIPTION.format(name="town", population=""))
    domain = Domain.of(read_description(tmp_path / "town.toml"))
    plan = ProvenPopulation(1.0).plan(domain)
    one = MeasurementPlan(plan.sizes, {(0, 1, 2): Fraction(1)})  # 48 cells, noise of variance 1
    assert few_people(domain, one, 48 * 3) is None  # a quarter is left
    assert "rho 0.26 would" in str(few_people(domain, one, 48 * 3 - 6))


def test_the_page_about_the_data_states_the_promise_and_no_bounds(released: Path) -> None:
    with TestClient(create_app(TableService(released), Settings(rate=""))) as client:
        page = client.get("/datasets/town/about").text
        table = client.get("/datasets/town?by=area&by=sex")
        stated = client.get("/api/v1/datasets/town").json()
        report = client.get("/api/v1/datasets/town/protection").json()["report"]
    assert "made up from noisy tables" in page
    assert "rho 2.56" in page
    assert "leaves open" not in page
    # What rho means: the power of the best test at 1 % false alarms, and epsilon for delta 1e-10.
    words = " ".join(re.sub("<[^>]*>", " ", page).split())
    assert "1 in 100 others, and the epsilon for delta 1e-10" in words
    for row in ("0.50 9 % 6.8", "2.56 (here) 47 % 17.2", "5.12 81 % 25.9"):
        assert row in words
    assert report["proof"]["neighbours"] == "replace-one-record"
    assert [one["epsilon"] for one in report["meaning"]] == [6.8, 17.2, 25.9]
    assert table.status_code == 200
    assert "1,073" not in page + table.text + json.dumps(stated)


def test_what_stops_the_work_after_the_charge_does_not_cost_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = ingested(tmp_path)
    ledger = limited(data, "3")
    monkeypatch.setattr(proven, "public_report", lambda *_: pytest.fail("stopped"))
    with pytest.raises(pytest.fail.Exception):
        protect(data)
    monkeypatch.undo()
    assert not protect(data).charged
    assert ledger.spent == Fraction("2.56")


def test_a_crash_while_noise_is_drawn_leaves_the_charge_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = ingested(tmp_path)
    ledger = limited(data, "3")
    monkeypatch.setattr(proven, "measure_tables", lambda *_: pytest.fail("stopped"))
    with pytest.raises(pytest.fail.Exception):
        protect(data)
    monkeypatch.undo()
    assert ledger.spent == Fraction("2.56")
    with pytest.raises(BudgetSpentError):
        protect(data)


def test_tables_that_nobody_paid_for_are_refused(own: Path) -> None:
    noisy = own / "reports" / "town" / NOISY
    noisy.write_bytes(noisy.read_bytes().replace(b'"people":600', b'"people":599'))
    with pytest.raises(DatasetError, match="is not what the budget of 'merrow' paid for"):
        protect(own)


def test_another_dataset_of_the_same_people_pays_from_the_same_budget(
    own: Path, tmp_path: Path
) -> None:
    ingested(tmp_path, "again")
    with pytest.raises(BudgetSpentError):
        protect(own, "again")


def test_an_older_ledger_is_refused(tmp_path: Path) -> None:
    data = ingested(tmp_path)
    ledger = limited(data, "10")
    backup = ledger.path.read_bytes()
    protect(data)
    ledger.path.write_bytes(backup)
    with pytest.raises(DatasetError, match="older than a release"):
        protect(data, measure_again=True)


def strict(data: Path, name: str = "town") -> None:
    """Release a dataset without proof, and then ask for one."""
    (data / "policies" / f"{name}.toml").write_text(preset("strict", name))
    protect_dataset(name, data, Console(quiet=True))
    (data / "policies" / f"{name}.toml").write_text(preset("proven", name))


def test_an_earlier_release_without_proof_is_said_on_every_answer(tmp_path: Path) -> None:
    data = ingested(tmp_path)
    limited(data, "3")
    strict(data)
    assert protect(data).earlier
    assert "covers only what this one adds" in notes_of(data)
    with TestClient(create_app(TableService(data), Settings(rate=""))) as client:
        assert "covers only what this one adds" in client.get("/datasets/town/about").text
        stated = client.get("/api/v1/datasets/town/protection").json()["report"]["proof"]
    assert stated["earlier_without_proof"]


MERROW, CATTLE = 'population = "merrow"', 'population = "cattle"'
HISTORY, BUNDLE = "releases/other.json", "bundles/other"


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """A budget, and a release without proof of other people or the same; no test changes it."""

    @cache
    def made(population: str) -> Path:
        root = tmp_path_factory.mktemp("beside")
        data = ingested(root)
        limited(data, "3")
        ingested(root, "other", population)
        strict(data, "other")
        return data

    return made


@pytest.mark.parametrize(
    ("population", "gone", "same"),
    [
        (MERROW, [], True),
        (MERROW, [HISTORY], True),
        (MERROW, ["other", BUNDLE], True),
        (MERROW, [HISTORY, BUNDLE], True),
        (CATTLE, [], False),
        (CATTLE, ["other", HISTORY], False),
        ("", [BUNDLE], True),
        ("", ["other", HISTORY], True),
    ],
)
def test_releases_of_people_who_may_be_these_are_found_whatever_was_removed(
    beside: Callable[[str], Path], tmp_path: Path, population: str, gone: list[str], same: bool
) -> None:
    """Where nothing tells whose people another release holds, they may be the same."""
    data = Path(shutil.copytree(beside(population), tmp_path / "data"))
    for name in gone:
        path = data / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert protect(data).earlier == same


@pytest.mark.parametrize(
    ("population", "said", "same"),
    [
        (MERROW, {"kind": "answer"}, True),
        (CATTLE, {"kind": "answer"}, False),
        (CATTLE, {"kind": "look"}, False),
        (MERROW, {"kind": "look"}, False),
        ("", {"kind": "act", "act": "release"}, True),
        (None, {"kind": "act", "act": "suppress"}, True),
        (None, {"kind": "act", "act": "session"}, True),
        (None, {"kind": "act", "act": "budget"}, False),
    ],
)
def test_whatever_else_left_is_an_earlier_release(
    tmp_path: Path, population: str | None, said: dict[str, str], same: bool
) -> None:
    data = ingested(tmp_path)
    limited(data, "3")
    if population is not None:
        ingested(tmp_path, "other", population)
    ReleaseBook(data).enter(said, dataset="other")
    assert protect(data).earlier == same


def test_a_crash_after_a_release_is_entered_does_not_make_it_one_without_proof(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = ingested(tmp_path)
    limited(data, "3")
    for step in ("write_bundle", "ReleaseHistory.record", "People.record"):
        monkeypatch.setattr(f"{proven.__name__}.{step}", lambda *_: pytest.fail("stopped"))
        with pytest.raises(pytest.fail.Exception):
            protect(data)
        monkeypatch.undo()
    assert not protect(data).earlier


@pytest.mark.parametrize("option", ["never_published", "new_series"])
def test_a_release_with_a_proof_continues_none(tmp_path: Path, option: str) -> None:
    data = ingested(tmp_path)
    with pytest.raises(InputError, match="continues no release"):
        protect(data, **{option: True})


def test_a_population_must_be_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="names no population"):
        protect(ingested(tmp_path, population=""))


def test_doctor_knows_the_budget_and_backups_bring_it_back(own: Path, tmp_path: Path) -> None:
    ledger = BudgetLedger(own, "merrow")
    assert not [
        f for f in examine(own) if "does not know" in f.sentence or "is missing" in f.sentence
    ]
    back_up(own, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    restored = BudgetLedger(tmp_path / "restored", "merrow")
    assert restored.path.read_bytes() == ledger.path.read_bytes()
    assert not protect(tmp_path / "restored").charged
    assert [f.sentence for f in examine(own) if f.about == "budgets/merrow.jsonl"] == [
        "Rho 2.56 of 3 is spent."
    ]
    ledger.path.chmod(0o644)
    assert [f.about for f in examine(own) if "Others may read" in f.sentence] == ["budgets"]
    ledger.path.write_bytes(ledger.path.read_bytes().replace(b"64/25", b"63/25"))
    assert [f.grade for f in examine(own) if f.about == "budgets/merrow.jsonl"] == ["bad"]
