"""One population is served one way: prepared tables agree with the bundle, or were audited beside it."""

from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from answer.conftest import SECRET, people, town
from lustrum.answer import TableService
from lustrum.answer.prepared import check_one_population, check_other_folders
from lustrum.cli.work import release_tables
from lustrum.ledger.releases import ReleaseBook
from lustrum.model import DatasetError, InputError
from lustrum.model.variable import Measure
from lustrum.policy.presets import preset
from lustrum.public.bundle import read_bundle
from lustrum.public.prepared import PreparedFolder, read_prepared
from lustrum.publish.bundles.make import make_bundle
from lustrum.publish.programme.read import bound_to, parse_programme
from lustrum.publish.programme.run import check_beside, run_programme
from lustrum.tabulate import FrameSource, Store, ingest

TABLES = """
[programme]
name = "town-2025"
certificate = false
plain_status = true
[data]
{data}
[[sets]]
name = "people"
{rules}
[[sets.tables]]
name = "age-area"
by = [{{variable = "age", levels = ["finest", "broad"], total = true}}, {{variable = "area", total = true}}]
end = true
"""
RULES = 'method = "suppression"\n[[sets.rules]]\nrule = "threshold"\nminimum = 3'

BESIDE = 'dataset = "town"\nbeside = "bundle"\nexistence = "public"'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with a town, its bundle and a second bundle of other people."""
    root = tmp_path_factory.mktemp("town")
    store = Store(root)
    policy = root / "policy.toml"
    policy.write_text(preset("strict", "town"))
    for name, seed in (("other", 5), ("bundle", 4)):
        ingest(FrameSource(people(600, seed)), town(), store, secret=SECRET)
        make_bundle(store, "town", policy, root / name, workers=1)
    return root


def run(root: Path, out: Path, data: str, rules: str = "") -> PreparedFolder:
    text = TABLES.format(data=data, rules=rules)
    programme = parse_programme(text.encode(), "tables.toml", root)
    run_programme(programme, root, out, out.with_name("trace.json"), workers=1)
    return read_prepared(out)


def test_tables_of_a_bundle_are_its_counts_and_stand_beside_it(root: Path, tmp_path: Path) -> None:
    folder = run(root, tmp_path / "public", 'bundle = "bundle"')
    bundle = read_bundle(root / "bundle")
    release = folder.release(folder.tables[0])
    total = int(release.published[-1, -1])
    assert total == int(bundle.cells.counts.sum())
    check_one_population(folder, {"town": bundle.digest})
    check_one_population(folder, {"elsewhere": None})


def test_tables_of_another_bundle_are_refused_beside_this_one(root: Path, tmp_path: Path) -> None:
    folder = run(root, tmp_path / "public", 'bundle = "other"')
    with pytest.raises(DatasetError, match="two different bundles"):
        check_one_population(folder, {"town": read_bundle(root / "bundle").digest})


def test_tables_of_records_are_refused_beside_flexible_tables(root: Path, tmp_path: Path) -> None:
    folder = run(root, tmp_path / "public", 'dataset = "town"', RULES)
    with pytest.raises(DatasetError, match="were not checked together"):
        check_one_population(folder, {"town": read_bundle(root / "bundle").digest})
    with pytest.raises(DatasetError, match="keyed policy cannot be checked"):
        check_one_population(folder, {"town": None})
    check_one_population(folder, {})


def test_tables_that_leave_stand_in_the_book_under_their_dataset(tmp_path: Path) -> None:
    """There a ledger of answers about the same people finds them, and the command finds such answers."""
    ingest(FrameSource(people(600, 4)), town(), Store(tmp_path), secret=SECRET)
    file = tmp_path / "tables.toml"
    file.write_text(TABLES.format(data='dataset = "town"', rules=RULES))

    def release(out: str) -> None:
        said = Console(file=io.StringIO())
        release_tables(file, tmp_path, said, out=tmp_path / out, workers=1)

    book = ReleaseBook(tmp_path)
    book.enter({"kind": "answer"}, dataset="other")
    release("first")
    assert [(e.said["act"], e.said["about"]) for e in book.entries(dataset="town")] == [
        ("release", "town-2025")
    ]
    book.enter({"kind": "answer"}, dataset="town")
    with pytest.raises(DatasetError, match="answered one by one"):
        release("second")
    assert not (tmp_path / "second").exists()
    (tmp_path / "policies").mkdir()
    reason = 'same_people_because = "Both go to one ministry."\n'
    (tmp_path / "policies" / "town.toml").write_text(reason + preset("keyed-rounding", "town"))
    release("second")
    book.close()


def test_exact_counts_are_not_published_beside_protected_ones(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="exact numbers would undo protected ones"):
        run(root, tmp_path / "public", BESIDE, RULES)
    assert not (tmp_path / "public").exists()


def test_what_sums_tell_of_counts_must_be_public_beside_a_bundle(
    root: Path, tmp_path: Path
) -> None:
    # A sum of 0 tells that nobody is there, and a letter that few are: both undo protected counts.
    text = TABLES.replace('name = "age-area"', 'name = "age-area"\nmeasures = ["income"]')
    rules = RULES + "\nmargin = 10"
    for data in ('dataset = "town"\nbeside = "bundle"', 'dataset = "town"\nexistence = "public"'):
        with pytest.raises(InputError, match="sums beside a bundle tell which groups hold anybody"):
            parse_programme(text.format(data=data, rules=rules).encode(), "tables.toml", root)
    secret = BESIDE.replace("public", "secret")
    with pytest.raises(InputError, match="'existence' can only be"):
        parse_programme(text.format(data=secret, rules=rules).encode(), "tables.toml", root)
    said = text.replace("plain_status = true", "plain_status = false").format(
        data=BESIDE, rules=rules
    )
    programme = parse_programme(said.encode(), "tables.toml", root)
    with pytest.raises(InputError, match="letters would tell which cells have few contributors"):
        run_programme(programme, root, tmp_path / "public", tmp_path / "t.json", workers=1)
    assert not (tmp_path / "public").exists()


def test_a_measure_that_adds_up_with_one_of_the_bundle_is_refused(root: Path) -> None:
    whole = Measure("income", "Income", unit="euro", parts=("wages", "rents"))
    parts = [Measure(name, name, unit="euro") for name in ("wages", "rents")]
    described = replace(town(), measures=(whole, *parts))
    text = TABLES.replace('name = "age-area"', 'name = "age-area"\nmeasures = ["wages"]')
    said = text.format(data=BESIDE, rules=RULES + "\nmargin = 10").encode()
    bound = bound_to(parse_programme(said, "tables.toml", root), described)
    check_beside(bound, replace(town(), measures=()), described)
    # The bundle knows the sum and not its parts, as where these came into the dataset later.
    with pytest.raises(InputError, match="a measure that adds up with it"):
        check_beside(bound, replace(town(), measures=(replace(whole, parts=()),)), described)


def test_sums_are_published_beside_the_bundle_they_name(root: Path, tmp_path: Path) -> None:
    rules = RULES + '\nmargin = 10\n[[sets.rules]]\nrule = "p-percent"\np = 10'
    text = TABLES.replace('name = "age-area"', 'name = "age-area"\nmeasures = ["income"]')
    said = text.format(data=BESIDE, rules=rules)
    programme = parse_programme(said.encode(), "tables.toml", root)
    run_programme(programme, root, tmp_path / "public", tmp_path / "trace.json", workers=1)
    folder = read_prepared(tmp_path / "public")
    check_one_population(folder, {"town": read_bundle(root / "bundle").digest})
    with pytest.raises(DatasetError, match="with another bundle"):
        check_one_population(folder, {"town": read_bundle(root / "other").digest})


def test_a_service_opens_only_tables_that_agree_with_its_bundle(root: Path, tmp_path: Path) -> None:
    run(root, tmp_path / "same" / "public", 'bundle = "bundle"')
    run(root, tmp_path / "other" / "public", 'bundle = "other"')
    service = TableService(bundles=[root / "bundle"], prepared=[tmp_path / "same" / "public"])
    assert service.prepared("town-2025").dataset == "town"
    service.close()
    service = TableService(bundles=[root / "bundle"], prepared=[tmp_path / "other" / "public"])
    with pytest.raises(DatasetError, match="two different bundles"):
        service.prepared("town-2025")
    service.close()


def test_the_same_people_are_not_served_in_two_patterns(root: Path, tmp_path: Path) -> None:
    """A reader who asks both doors for the same cells would see what one of them suppresses."""
    strict = RULES.replace("minimum = 3", "minimum = 12")
    run(root, tmp_path / "a" / "town-2025", 'dataset = "town"', strict)
    other = TABLES.replace("town-2025", "town-again").format(data='dataset = "town"', rules=RULES)
    programme = parse_programme(other.encode(), "tables.toml", root)
    run_programme(programme, root, tmp_path / "b" / "town-again", tmp_path / "t.json", workers=1)
    folders = [tmp_path / "a" / "town-2025", tmp_path / "b" / "town-again"]
    one, two = (read_prepared(path) for path in folders)
    # The attack: cells that one folder hides are shown by the other.
    hidden = ~one.release(one.tables[0]).shown
    assert (hidden & two.release(two.tables[0]).shown).any()
    service = TableService(prepared=folders)
    for name in ("town-2025", "town-again"):
        with pytest.raises(DatasetError, match="were not protected together"):
            service.prepared(name)
    service.close()
    # Another period holds other numbers, and one bundle agrees with itself.
    check_other_folders(one, [replace(two, period="2024")])
    check_other_folders(*_of_one_bundle(root, tmp_path))
    alone = TableService(prepared=folders[:1])
    assert alone.prepared("town-2025").dataset == "town"
    alone.close()


def _of_one_bundle(root: Path, tmp_path: Path) -> tuple[PreparedFolder, list[PreparedFolder]]:
    folder = run(root, tmp_path / "c" / "public", 'bundle = "bundle"')
    return folder, [replace(folder, name="again")]


def test_a_response_in_two_sets_is_refused(root: Path, tmp_path: Path) -> None:
    second = (
        '[[sets]]\nname = "again"\n' + RULES.replace("minimum = 3", "minimum = 2") + "\n"
        '[[sets.tables]]\nname = "age-alone"\nby = ["age"]\nend = true'
    )
    text = TABLES.replace("end = true", second).format(data='dataset = "town"', rules=RULES)
    with pytest.raises(InputError, match="put their tables into one set"):
        parse_programme(text.encode(), "tables.toml", root)


def test_tables_of_a_bundle_need_no_rules(root: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="leave these out"):
        run(root, tmp_path / "public", 'bundle = "bundle"', RULES)
