"""No release is drawn apart from the last one, wherever bundles and memories were put or removed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from lustrum.model import DatasetError, InputError
from lustrum.publish.bundles import make
from lustrum.publish.bundles.history import ReleaseHistory
from lustrum.publish.bundles.make import MadeBundle
from lustrum.publish.bundles.memory import Memory, memory_path, read_memory
from lustrum.publish.bundles.write import PackedBundle, write_bundle
from lustrum.publish.doctor import unknown_entries
from lustrum.tabulate.store.backup import back_up, restore
from publish.test_population_report import release

NAMES = ["area", "job", "sex"]
Made = tuple[Path, list[MadeBundle]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    root = tmp_path_factory.mktemp("history") / "data"
    return root, [release(root, NAMES, moved=moved)[0] for moved in (0, 4)]


@pytest.fixture
def copy(made: Made, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made[0], tmp_path / "data"))


def history(root: Path) -> tuple[str, ...]:
    return ReleaseHistory.read(root, "town").digests


def test_the_history_lists_all_releases_and_is_backed_up(made: Made, tmp_path: Path) -> None:
    root, both = made
    digests = tuple(one.digest for one in both)
    assert history(root) == digests
    path = root / "releases" / "town.json"
    assert path.stat().st_mode & 0o077 == 0
    assert unknown_entries(root) == []
    back_up(root, tmp_path / "backup")
    restore(tmp_path / "backup", tmp_path / "restored")
    assert history(tmp_path / "restored") == digests


def test_a_release_in_other_folders_is_not_drawn_anew(copy: Path, made: Made) -> None:
    before = history(copy)
    folders = {"out": copy / "other", "report": copy / "own"}
    with pytest.raises(DatasetError, match=r"does not continue any.*memory-[0-9a-f]{16}\.arrow"):
        release(copy, NAMES, moved=8, **folders)
    assert not folders["out"].exists()
    assert not list(folders["report"].glob("memory-*"))
    assert history(copy) == before
    last = memory_path(copy / "reports" / "town", made[1][1].digest)
    third, _ = release(copy, NAMES, moved=8, previous=last, **folders)
    assert history(copy) == (*before, third.digest)


def test_a_release_whose_bundle_and_memory_are_gone_is_not_drawn_anew(copy: Path) -> None:
    shutil.rmtree(copy / "bundles")
    shutil.rmtree(copy / "reports")
    with pytest.raises(DatasetError, match="does not continue any"):
        release(copy, NAMES, moved=8)
    before = history(copy)
    first, _ = release(copy, NAMES)
    assert first.digest == before[0], "the first release may be made again"
    assert history(copy) == before


def test_two_releases_do_not_continue_the_same_one(copy: Path, made: Made) -> None:
    """Both would be drawn with the same key, and the bounds of the later would leave the earlier out."""
    first = memory_path(copy / "reports" / "town", made[1][0].digest)
    with pytest.raises(DatasetError, match="continues an earlier one"):
        release(copy, NAMES, moved=8, previous=first)
    again, _ = release(copy, NAMES, moved=4, previous=first)
    assert again.digest == made[1][1].digest


def test_a_history_begins_anew_if_nothing_was_published(copy: Path) -> None:
    fresh, _ = release(copy, NAMES, moved=8, never_published=True)
    assert history(copy) == (fresh.digest,)


def test_a_bundle_that_was_written_and_not_listed_can_be_continued(copy: Path, made: Made) -> None:
    """A process may be stopped between the two."""
    path = copy / "releases" / "town.json"
    path.write_text(json.dumps({"releases": [made[1][0].digest]}))
    third, _ = release(copy, NAMES, moved=8)
    assert history(copy) == (made[1][0].digest, made[1][1].digest, third.digest)


def test_a_later_release_does_not_lower_the_share_of_empty_cells(made: Made) -> None:
    """Numbers that vanish would tell which cells are empty, and the others would be occupied."""
    root, both = made
    memory: Memory = read_memory(memory_path(root / "reports" / "town", both[0].digest))
    words = dict(memory.method)
    for share in (0.0, words["empty_share"] - 0.01):
        with pytest.raises(InputError, match=r"empty_share.*Keep it or raise it"):
            memory.require_same_method({**words, "empty_share": share})
    for share in (words["empty_share"], 0.3):
        memory.require_same_method({**words, "empty_share": share})


def test_a_release_in_which_too_many_records_changed_is_refused(copy: Path) -> None:
    """Too few others can move beside them, so that readers of both would know who changed."""
    before = history(copy), sorted(p.name for p in (copy / "reports" / "town").iterdir())
    bundle = (copy / "bundles" / "town").stat().st_mtime_ns
    with pytest.raises(
        InputError, match=r"Too many records changed.*--new-series.*never published"
    ):
        release(copy, NAMES, moved=200)
    assert (history(copy), sorted(p.name for p in (copy / "reports" / "town").iterdir())) == before
    assert (copy / "bundles" / "town").stat().st_mtime_ns == bundle


def test_a_new_series_continues_and_the_agency_is_told_what_it_reveals(copy: Path) -> None:
    last = history(copy)
    made, said = release(copy, NAMES, moved=200, new_series=True)
    assert history(copy) == (*last, made.digest)
    over = made.result.agency.differences.beyond(0.5, 3)
    assert over
    for step in over:
        end = "9 or more" if step.after == 9 else str(step.after)
        assert f" to {end} the records of {step.changed:,} changed" in said
    assert "right more often than 50%" in said
    # It is no second draw: what all releases leave is counted, and the next one continues it.
    memory = read_memory(memory_path(copy / "reports" / "town", made.digest))
    assert memory.earlier == last


def test_a_mass_change_is_made_if_nothing_was_published(copy: Path) -> None:
    made, _ = release(copy, NAMES, moved=200, never_published=True)
    assert history(copy) == (made.digest,)


def test_a_new_series_needs_a_release_that_it_continues(copy: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="choose one of them"):
        release(copy, NAMES, moved=200, new_series=True, never_published=True)
    with pytest.raises(InputError, match="there is none"):
        release(tmp_path / "empty", NAMES, new_series=True)


def test_a_first_release_that_was_killed_before_its_bundle_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its memory alone is there: the same release may be made, and no other beside it."""
    root, killed = tmp_path / "data", tmp_path / "killed"

    def write(out: Path, packed: PackedBundle) -> None:
        shutil.copytree(root, killed)  # all that a kill at this moment leaves
        write_bundle(out, packed)

    with monkeypatch.context() as patch:
        patch.setattr(make, "write_bundle", write)
        first, _ = release(root, NAMES)
    assert history(killed) == ()
    assert len(list((killed / "reports" / "town").glob("memory-*"))) == 1
    other = shutil.copytree(killed, tmp_path / "other")
    with pytest.raises(DatasetError, match=r"does not stand in.*--never-published"):
        release(other, NAMES, moved=4)
    assert not (other / "bundles").exists()
    again, _ = release(killed, NAMES)
    assert again.digest == first.digest
    assert history(killed) == history(root)
    shutil.rmtree(killed / "bundles")
    with pytest.raises(DatasetError, match="does not stand in"):
        release(killed, NAMES)
