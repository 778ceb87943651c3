"""The same people are drawn once: another name is noticed, and what a second draw tells is said."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

from lustrum.answer.ledger import ReleaseLedger
from lustrum.cli import app
from lustrum.cli.protect import protect_dataset
from lustrum.ledger.acts import record_act
from lustrum.ledger.releases import PUBLIC, ReleaseBook
from lustrum.local import local_service
from lustrum.model import (
    Axis,
    Dataset,
    DatasetError,
    Decision,
    DescriptionError,
    PolicyError,
    TableQuery,
)
from lustrum.model.finest import FinestCells
from lustrum.policy import read_policy
from lustrum.policy.presets import preset
from lustrum.protect.population.support import Support
from lustrum.protect.rounding.cells import RoundingChannel
from lustrum.public.bundle import read_bundle
from lustrum.publish.bundles.make import MadeBundle, make_bundle
from lustrum.publish.bundles.memory import Memory
from lustrum.publish.bundles.people import (
    NO_POPULATION,
    People,
    people_path,
    require_unanswered,
    revealed,
)
from lustrum.publish.doctor import examine
from lustrum.tabulate import FrameSource, Secret, Store, ingest
from lustrum.tabulate.store.backup import back_up, restore
from lustrum.tabulate.store.renewal import rotate
from publish.test_population_report import CODES, POLICY

REASON = 'same_people_because = "Both files go to the same ministry."\n'


def put(
    root: Path,
    name: str,
    population: str | None = "residents",
    ids: Any = range(260),
    names: tuple[str, ...] = ("area", "job", "sex"),
    reason: str = "",
    record_id: bool = True,
) -> None:
    """Ingest people by their ids; somebody is the same wherever the id is."""
    head = {"name": name, "record_id": "id", "population": population}
    if not record_id:
        head.pop("record_id")
    head = {key: value for key, value in head.items() if value is not None}
    variables = [{"name": one, "codes": CODES[one]} for one in names]
    dataset = Dataset.from_mapping({"dataset": head, "variables": variables})
    rng = np.random.default_rng(8)
    columns = {one: rng.choice(codes, 1000)[list(ids)] for one, codes in CODES.items()}
    table = pa.table({"id": np.array(ids), **{one: columns[one] for one in names}})
    ingest(FrameSource(table), dataset, Store(root), secret=Secret(bytes(range(32))))
    (root / "policies").mkdir(exist_ok=True)
    text = reason + POLICY.format(base=3).replace('"town"', f'"{name}"')
    (root / "policies" / f"{name}.toml").write_text(text.replace('known_totals = [["area"]]\n', ""))


def protect(root: Path, name: str) -> tuple[MadeBundle, str]:
    said = io.StringIO()
    made = protect_dataset(name, root, Console(file=said, width=2000), workers=1)
    return made, said.getvalue()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with one release of the residents."""
    root = tmp_path_factory.mktemp("people") / "data"
    put(root, "town")
    protect(root, "town")
    return root


@pytest.fixture
def copy(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "data"))


def notes(root: Path, name: str) -> list[str]:
    return [f.sentence for f in examine(root) if f.about == name and f.grade == "note"]


def test_a_second_draw_of_the_same_people_is_refused(copy: Path) -> None:
    put(copy, "again")
    with pytest.raises(
        DatasetError, match=r"'again' holds 260 people of 'town'.*same_people_because"
    ):
        protect(copy, "again")
    with pytest.raises(
        DatasetError, match="260 people of 'town'"
    ):  # the library as the command line
        make_bundle(Store(copy), "again", copy / "policies" / "again.toml", copy / "elsewhere")
    assert not (copy / "bundles" / "again").exists()
    assert not (copy / "elsewhere").exists()
    assert not people_path(copy, "again").exists()


def test_a_second_draw_with_a_reason_says_what_it_reveals(copy: Path) -> None:
    """The attack: the same finest cells, drawn twice; the reader takes what both numbers leave."""
    put(copy, "again", reason=REASON)
    second, said = protect(copy, "again")
    first = read_bundle(copy / "bundles" / "town").cells
    shown = [dict(zip(map(tuple, c.codes.T.tolist()), c.counts.tolist(), strict=True))
             for c in (first, second.result.cells)]  # fmt: skip
    differ = narrow = 0
    for cell in {*shown[0], *shown[1]}:
        one, two = (each.get(cell, 0) for each in shown)
        left = {n for n in range(60) if all(abs(n - s) < 3 or (n, s) == (0, 3) for s in (one, two))}
        differ += one != two
        narrow += len(left) <= 2
    assert differ > 0 < narrow
    (told,) = second.same_people
    assert (told.dataset, told.people) == ("town", 260)
    assert (told.revealed["differing"], told.revealed["narrowed"]) == (differ, narrow)
    assert f"{differ:,} show another number" in said
    assert f"{narrow:,} are narrowed to one or two counts" in said
    # The doctor names both, whatever their policies say.
    assert any("260 people of 'town'" in note for note in notes(copy, "again"))
    assert any("260 people of 'again'" in note for note in notes(copy, "town"))


@pytest.mark.parametrize(
    ("population", "ids"), [("shoppers", range(260)), ("residents", range(300, 560))]
)
def test_other_people_are_no_match(copy: Path, population: str, ids: range) -> None:
    """Ids 1 to N of another population, and other ids of the same one."""
    put(copy, "again", population, ids)
    assert protect(copy, "again")[0].same_people == ()
    assert notes(copy, "again") == []
    assert notes(copy, "town") == []


def test_few_people_of_a_large_file_are_noticed(copy: Path) -> None:
    put(copy, "again", ids=[*range(300, 500), 17])
    with pytest.raises(DatasetError, match="1 people of 'town'"):
        protect(copy, "again")


def test_a_later_release_of_the_same_dataset_is_the_normal_case(copy: Path) -> None:
    put(copy, "town", ids=[*range(2, 260), 700])
    assert protect(copy, "town")[0].same_people == ()
    for person in (0, 259, 700):  # who left is remembered with who came
        put(copy, "again", ids=[*range(300, 500), person])
        with pytest.raises(DatasetError, match="1 people of 'town'"):
            protect(copy, "again")


def test_people_are_remembered_without_their_dataset_and_in_backups(
    copy: Path, tmp_path: Path
) -> None:
    path = people_path(copy, "town")
    assert path.stat().st_mode & 0o777 == 0o600
    back_up(copy, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    for root in (copy, tmp_path / "restored"):
        shutil.rmtree(root / "town")
        put(root, "again")
        with pytest.raises(DatasetError, match="260 people of 'town'"):
            protect(root, "again")
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(DatasetError, match=r"town\.people does not hold the people"):
        protect(copy, "again")


@pytest.mark.parametrize("lost", ["the file of people", "the secret"])
def test_releases_without_digests_that_can_be_compared_are_read_again(
    copy: Path, lost: str
) -> None:
    put(copy, "again")
    if lost == "the secret":
        rotate(Store(copy))
    else:  # releases of an earlier version
        people_path(copy, "town").unlink()
    with pytest.raises(DatasetError, match="260 people of 'town'"):
        protect(copy, "again")


def test_people_who_cannot_be_compared_are_refused_too(copy: Path) -> None:
    put(copy, "again", record_id=False)
    with pytest.raises(
        DatasetError, match="perhaps people of 'town', whose ids cannot be compared"
    ):
        protect(copy, "again")
    again = People.released(people_path(copy, "town"))
    assert again.shared(People("x", "residents", "another secret", again.digests)) is None


def test_a_dataset_without_a_population_is_warned_about(copy: Path) -> None:
    put(copy, "again", None)
    _, said = protect(copy, "again")
    assert NO_POPULATION in said
    assert notes(copy, "again")[:1] == [NO_POPULATION]
    assert NO_POPULATION not in notes(copy, "town")
    assert not people_path(copy, "again").exists()


def test_the_population_and_the_ids_are_not_published(copy: Path) -> None:
    assert read_bundle(copy / "bundles" / "town").dataset.population is None
    digests = People.released(people_path(copy, "town")).digests
    assert digests.size == 260
    assert not set(digests.tolist()) & set(range(1000))


@pytest.mark.parametrize("word", ["two words", "Residents", ""])
def test_a_population_is_one_word(word: str) -> None:
    head = {"name": "town", "population": word}
    with pytest.raises(DescriptionError, match="population"):
        Dataset.from_mapping({"dataset": head, "variables": [{"name": "a", "codes": ["1", "2"]}]})


def test_a_reason_is_a_sentence(copy: Path) -> None:
    put(copy, "again", reason='same_people_because = "yes"\n')
    with pytest.raises(PolicyError, match="same_people_because: say why in a sentence"):
        read_policy(copy / "policies" / "again.toml")


def dataset(sizes: tuple[int, ...]) -> Dataset:
    variables = [
        {"name": f"v{i}", "codes": [str(c) for c in range(n)]} for i, n in enumerate(sizes)
    ]
    return Dataset.from_mapping({"dataset": {"name": "d"}, "variables": variables})


@given(
    st.sampled_from([2, 3, 5]),
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=6, max_size=6),
)
def test_what_two_files_of_other_variables_tell_is_what_both_leave(
    base: int, pairs: list[tuple[int, int]]
) -> None:
    """A file by two variables beside one by the first alone: every cell of the first is counted out."""
    fine = base * np.array([pair[0] for pair in pairs]).reshape(3, 2)
    coarse = base * np.array([pairs[2 * i][1] for i in range(3)])
    cells = [
        FinestCells(dataset(n.shape), np.stack(np.nonzero(n)), n[np.nonzero(n)])
        for n in (fine, coarse)
    ]
    memory = Memory(cells[1], {"base": base, "cells": "all", "empty_share": 0.1}, "digest")
    told = revealed(cells[0], Support(base), memory)
    low, high = Support(base).bounds(fine)
    expected = {"cells": 0, "differing": 0, "narrowed": 0, "excluded": 0}
    for i in range(3):
        if not fine[i].any() and not coarse[i]:
            continue
        one = set(range(int(low[i].sum()), int(high[i].sum()) + 1))
        least, most = (int(b) for b in Support(base).bounds(coarse[i]))
        two = set(range(least, most + 1))
        expected["cells"] += 1
        expected["differing"] += int(fine[i].sum() != coarse[i])
        expected["narrowed"] += 1 <= len(one & two) <= 2 < min(len(one), len(two))
        expected["excluded"] += not one & two
    assert told == expected


def keyed(root: Path, name: str, reason: str = "") -> None:
    """Answer the dataset question by question from now on."""
    (root / "policies" / f"{name}.toml").write_text(reason + preset("keyed-rounding", name))


@pytest.mark.parametrize(
    ("population", "reason", "alone"),
    [("residents", "", False), ("residents", REASON, True), ("cattle", "", True), (None, "", True)],
)
def test_no_second_name_is_answered_question_by_question_beside_the_first(
    tmp_path: Path, population: str | None, reason: str, alone: bool
) -> None:
    """The attack: the same cells under both names, drawn apart and counted apart by a ledger."""
    put(tmp_path, "town")
    keyed(tmp_path, "town", reason)
    put(tmp_path, "again", population)
    service = local_service(tmp_path, workers=1)
    for answered_by_keys in (True, False):
        if answered_by_keys:
            keyed(tmp_path, "again", REASON)
        else:
            put(tmp_path, "again", population, reason=REASON)
            protect(tmp_path, "again")
        if alone:
            assert service.published("town") is not None
        else:
            with pytest.raises(DatasetError, match=r"'town' and 'again' are both of .*'residents'"):
                service.published("town")
    service.close()


def test_a_dataset_that_becomes_another_population_is_noticed(tmp_path: Path) -> None:
    for name, population in (("town", "residents"), ("again", "cattle")):
        put(tmp_path, name, population)
        keyed(tmp_path, name)
    service = local_service(tmp_path, workers=1)
    assert service.published("town") is not None
    put(tmp_path, "again")
    keyed(tmp_path, "again")
    with pytest.raises(DatasetError, match="'town' and 'again'"):
        service.published("town")
    service.close()


@pytest.mark.parametrize(
    ("population", "reason"), [("residents", ""), ("residents", REASON), ("cattle", "")]
)
def test_people_under_a_new_name_are_those_of_whom_answers_left(
    tmp_path: Path, population: str, reason: str
) -> None:
    """The attack: a dataset is renamed, so that its numbers are drawn and counted anew."""

    def asked(name: str) -> Decision:
        service = local_service(tmp_path, workers=1)
        snapshot, ledger = service.published(name), ReleaseLedger(tmp_path)
        query = TableQuery(name, (Axis("sex"),))
        assert snapshot is not None
        decision = ledger.decided(query, snapshot, PUBLIC, lambda: snapshot.answer(query))
        ledger.close()
        service.close()
        return decision

    put(tmp_path, "town")
    keyed(tmp_path, "town")
    asked("town")
    shutil.rmtree(tmp_path / "town")
    (tmp_path / "policies" / "town.toml").unlink()
    put(tmp_path, "again", population)
    kept = (tmp_path / "policies" / "again.toml").read_text()
    keyed(tmp_path, "again", reason)
    same = population == "residents" and not reason
    assert ([one.rule for one in asked("again").reasons] == ["ledger"]) == same
    (tmp_path / "policies" / "again.toml").write_text(kept)
    if same:
        with pytest.raises(DatasetError, match="were answered one by one"):
            protect(tmp_path, "again")


@pytest.mark.parametrize("population", ["residents", "cattle"])
def test_answers_end_where_the_same_people_leave_under_another_name(
    tmp_path: Path, population: str
) -> None:
    put(tmp_path, "town")
    keyed(tmp_path, "town")
    service, ledger = local_service(tmp_path, workers=1), ReleaseLedger(tmp_path)
    snapshot = service.published("town")
    assert snapshot is not None

    def rule(by: str) -> list[str]:
        query = TableQuery("town", (Axis(by),))
        decision = ledger.decided(query, snapshot, PUBLIC, lambda: snapshot.answer(query))
        return [one.rule for one in decision.reasons]

    before = rule("sex")
    put(tmp_path, "again", population, ids=range(300, 500), reason=REASON)
    done = CliRunner().invoke(app, ["protect", "--dataset", "again", "--data", str(tmp_path)])
    assert done.exit_code == 0, done.output
    assert rule("sex") == before
    assert (rule("area") == ["ledger"]) == (population == "residents")
    ledger.close()
    service.close()


def answered(root: Path, name: str) -> None:
    """Enter that a table of a dataset was answered."""
    ReleaseBook(root).enter({"kind": "answer"}, dataset=name)


@pytest.mark.parametrize("about", ["town", "other"])
def test_people_of_whom_answers_left_are_not_drawn_by_another_method(
    tmp_path: Path, about: str
) -> None:
    put(tmp_path, "town")
    put(tmp_path, "other", ids=range(300, 500))
    answered(tmp_path, about)
    with pytest.raises(
        DatasetError, match=f"Tables of '{about}' were answered.*same_people_because"
    ):
        protect(tmp_path, "town")
    assert not (tmp_path / "bundles").exists()
    put(tmp_path, "town", reason=REASON)
    protect(tmp_path, "town")


def test_rounded_answers_and_suppressed_tables_tell_together_what_neither_tells() -> None:
    """The attack: a total shows the sum of two suppressed cells, and keyed rounding shows both."""
    low, high = RoundingChannel(3).support(np.array([0, 9]))
    rounded = [(a, b) for a in range(low[0], high[0] + 1) for b in range(low[1], high[1] + 1)]
    suppressed = [(a, 13 - a) for a in range(14)]
    assert {a for a, _ in rounded} == {0, 1, 2}
    assert len({a for a, _ in suppressed}) == 14
    assert [both for both in rounded if both in suppressed] == [(2, 11)]


@pytest.mark.parametrize("reason", [None, "town", "other"])
def test_prepared_tables_of_people_of_whom_answers_left_are_refused(
    tmp_path: Path, reason: str | None
) -> None:
    put(tmp_path, "town")
    answered(tmp_path, "town")
    if reason is not None:
        keyed(tmp_path, reason, REASON)
    store = Store(tmp_path)
    if reason == "town":
        require_unanswered(store, store.open("town").dataset)
        return
    with pytest.raises(DatasetError, match="say in its policy why"):
        require_unanswered(store, store.open("town").dataset)


@pytest.mark.parametrize("population", ["cattle", None])
def test_answers_about_others_keep_nobody_from_a_draw(
    tmp_path: Path, population: str | None
) -> None:
    put(tmp_path, "town")
    put(tmp_path, "other", population)
    answered(tmp_path, "other")
    protect(tmp_path, "town")
    assert (tmp_path / "bundles" / "town").is_dir()


def test_a_draw_beside_prepared_tables_of_its_people_says_so(tmp_path: Path) -> None:
    put(tmp_path, "town")
    record_act(tmp_path, "release", "yearbook", "0" * 64, dataset="town")
    record_act(tmp_path, "release", "farms", "0" * 64, dataset="cattle")
    said = protect(tmp_path, "town")[1]
    assert "left as 'yearbook'" in said
    assert "known_totals" in said
    assert "farms" not in said
