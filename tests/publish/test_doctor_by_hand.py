"""Every judgement of the doctor on a folder of which each part is made up for it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lustrum.model import DatasetError, PolicyError
from lustrum.publish import doctor
from lustrum.publish.doctor import HealthFinding, examine
from lustrum.tabulate import Secret

VERSION = "v0123456789abcdef"


def told(found: Iterator[HealthFinding]) -> list[tuple[str, str, str]]:
    return [(one.grade, one.about, one.sentence) for one in found]


def grades(found: Iterator[HealthFinding]) -> list[tuple[str, str]]:
    return [(one.grade, one.about) for one in found]


class Shop:
    """A store of some datasets, of which some are damaged."""

    def __init__(self, root: Path, *names: str, damaged: tuple[str, ...] = ()) -> None:
        self.root, self._names, self._damaged = root, names, damaged
        self.closed = 0
        self.checked: list[str] = []

    def names(self) -> list[str]:
        return list(self._names)

    def look(self, name: str) -> Any:
        if name in self._damaged:
            raise DatasetError("it is damaged")

        def close() -> None:
            self.closed += 1

        return SimpleNamespace(
            version=VERSION,
            check=lambda: self.checked.append(name),
            close=close,
            manifest=SimpleNamespace(dataset=f"dataset {name}"),
        )

    def version(self, name: str) -> str:
        if name in self._damaged:
            raise DatasetError("it is damaged")
        return VERSION


@pytest.mark.parametrize(
    ("mode", "readable", "grade", "said"),
    [
        (0o700, True, "good", "can be read"),
        (0o750, True, "good", "can be read"),
        (0o755, True, "note", "chmod 700"),
        (0o701, True, "note", "chmod 700"),
        (0o702, True, "bad", "chmod 700"),
        (0o777, True, "bad", "chmod 700"),
        (0o700, False, "bad", "may not read it"),
    ],
)
def test_a_folder_that_everybody_may_change_is_bad(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    mode: int,
    readable: bool,
    grade: str,
    said: str,
) -> None:
    asked: list[int] = []

    def access(path: Path, how: int) -> bool:
        asked.append(how)
        return readable

    monkeypatch.setattr(doctor.os, "access", access)
    tmp_path.chmod(mode)
    ((found, about, sentence),) = told(doctor._folder(tmp_path))
    assert (found, about) == (grade, str(tmp_path))
    assert said in sentence
    # To look into a folder one must read and enter it.
    assert all(how == doctor.os.R_OK | doctor.os.X_OK for how in asked)


@pytest.mark.parametrize(
    ("mode", "names", "rotating", "wanted"),
    [
        (0o600, ("town",), False, ["good"]),
        (0o640, ("town",), False, ["note"]),
        (0o644, ("town",), False, ["bad"]),
        (0o644, (), False, ["note"]),
        (None, ("town",), False, ["bad"]),
        (None, (), False, ["note"]),
        (0o600, ("town",), True, ["note", "good"]),
    ],
)
def test_a_secret_is_there_and_closed(
    tmp_path: Path, mode: int | None, names: tuple[str, ...], rotating: bool, wanted: list[str]
) -> None:
    if mode is not None:
        Secret(bytes(range(32))).write(tmp_path / doctor.SECRET)
        (tmp_path / doctor.SECRET).chmod(mode)
    if rotating:
        (tmp_path / doctor.NEXT).write_text("x")
    store: Any = Shop(tmp_path, *names)
    found = told(doctor._secret(store))
    assert [grade for grade, _, _ in found] == wanted
    assert found[-1][1] == doctor.SECRET
    if rotating:
        assert "finish it with 'lustrum secret rotate'" in found[0][2]
    if mode == 0o640:
        assert "A group may read it" in found[0][2]


def test_a_dataset_is_whole_closed_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[Any] = []

    def engine(files: Any, workers: int) -> Any:
        made.append(workers)
        return SimpleNamespace(encoded_bytes=77)

    monkeypatch.setattr(doctor, "EmbeddedEngine", engine)
    folder = tmp_path / "town" / VERSION
    folder.mkdir(parents=True)
    for name, mode in (("b.arrow", 0o600), ("a.json", 0o600)):
        (folder / name).write_text("x")
        (folder / name).chmod(mode)
    store: Any = Shop(tmp_path, "town", "gone", damaged=("gone",))
    sizes: list[int] = []
    found = list(doctor._dataset(store, "town", sizes))
    assert [(one.grade, one.about) for one in found] == [("good", "town")]
    assert sizes == [77]
    assert store.closed == 1
    assert store.checked == ["town"]
    assert made == [1]
    for mode, who in ((0o640, True), (0o604, True), (0o610, True), (0o700, False)):
        (folder / "b.arrow").chmod(mode)
        more = list(doctor._dataset(store, "town", sizes))[1:]
        assert [one.grade for one in more] == (["note"] if who else [])
    (folder / "b.arrow").chmod(0o644)
    (folder / "a.json").chmod(0o644)
    (_, loose) = doctor._dataset(store, "town", sizes)
    assert loose.sentence == "Others may read a.json, b.arrow; close them with 'chmod 600'."
    with pytest.raises(DatasetError, match="it is damaged"):
        list(doctor._dataset(store, "gone", sizes))

    def broken(files: Any, workers: int) -> Any:
        raise DatasetError("a byte is wrong")

    monkeypatch.setattr(doctor, "EmbeddedEngine", broken)
    before = store.closed
    less: list[int] = []
    first, _ = doctor._dataset(store, "town", less)
    assert (first.grade, first.sentence, less) == ("bad", "a byte is wrong", [])
    assert store.closed > before


def test_policies_fit_their_datasets_and_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    for name in ("bundled", "nobody", "refused", "town", "wrong"):
        (folder / f"{name}.toml").write_text(f'end = "sha256:{"0" * 64}"\n')
        (folder / f"{name}.toml").chmod(0o644)
    checked: list[Any] = []
    judged: list[str] = []

    def check(policy: Any, dataset: str, where: str) -> None:
        checked.append((policy, dataset, where))
        if "wrong" in where:
            raise PolicyError("it names another variable")

    def judge(name: str) -> None:
        judged.append(name)
        if name == "refused":
            raise DatasetError("the server refuses it")

    monkeypatch.setattr(doctor, "read_policy", lambda path: f"policy {path.stem}")
    monkeypatch.setattr(doctor, "check_names", check)
    monkeypatch.setattr(doctor, "bundles_in", lambda path: {"bundled"})
    monkeypatch.setattr(
        doctor, "warnings", lambda policy: ["careful"] if policy == "policy town" else []
    )
    store: Any = Shop(tmp_path, "bare", "refused", "town", "wrong")
    found = told(doctor._policies(store, judge))
    assert [(grade, about) for grade, about, _ in found] == [
        ("good", "policies/bundled.toml"),
        ("note", "policies/nobody.toml"),
        ("bad", "policies/refused.toml"),
        ("good", "policies/town.toml"),
        ("note", "policies/town.toml"),
        ("bad", "policies/wrong.toml"),
        ("note", "bare"),
    ]
    assert found[4][2] == "careful"
    assert "has no policy, so nothing is answered" in found[6][2]
    assert [dataset for _, dataset, _ in checked] == [
        "dataset refused",
        "dataset town",
        "dataset wrong",
    ]
    assert checked[1] == ("policy town", "dataset town", str(folder / "town.toml"))
    assert judged == ["bundled", "refused", "town"]
    assert store.closed == 3
    # Without a server to ask, nothing is asked.
    assert ("good", "policies/refused.toml") in grades(doctor._policies(store, None))
    for mode, open_ in ((0o664, True), (0o646, True), (0o644, False), (0o711, False)):
        (folder / "town.toml").chmod(mode)
        bad = [
            s
            for g, a, s in told(doctor._policies(store, judge))
            if (g, a) == ("bad", "policies/town.toml")
        ]
        assert bool(bad) is open_
        assert all("Others may change it" in sentence for sentence in bad)


def test_bundles_are_whole_stated_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (".town.part", "broken", "plain", "summed"):
        (tmp_path / "bundles" / name).mkdir(parents=True)

    def read(path: Path) -> Any:
        if path.name == "broken":
            raise DatasetError("a digest is wrong")
        summed = path.name == "summed"
        return SimpleNamespace(
            digest=path.name[0] * 64,
            protection=None if summed else "stated",
            sums=SimpleNamespace(unsafe=None) if summed else None,
            policy=SimpleNamespace(before=[]),
            made={},
            report=SimpleNamespace(proof=None),
        )

    monkeypatch.setattr(doctor, "read_bundle", read)
    found = told(doctor._bundles(tmp_path))
    assert [(grade, about) for grade, about, _ in found] == [
        ("note", "bundles/.town.part"),
        ("bad", "bundles/broken"),
        ("good", "bundles/plain"),
        ("note", "reports/plain"),
        ("good", "bundles/summed"),
        ("note", "bundles/summed"),
        ("note", "reports/summed"),
        ("note", "reports/summed"),
    ]
    assert "A stopped 'lustrum protect' left it" in found[0][2]
    assert "did not state what protected it" in found[5][2]
    # With its memories a bundle has nothing to complain of.
    for name in ("plain", "summed"):
        path = doctor.memory_path(tmp_path / "reports" / name, name[0] * 64)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
        assert path.name in " ".join(sentence for _, _, sentence in found)
    left = [one for one in told(doctor._bundles(tmp_path)) if one[1].startswith("reports")]
    assert len(left) == 1
    assert doctor.sums_path(path).name in left[0][2]
    doctor.sums_path(path).write_text("x")
    assert not [one for one in told(doctor._bundles(tmp_path)) if one[1].startswith("reports")]


def test_prepared_folders_are_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".draft", "broken", "good"):
        (tmp_path / "prepared" / name).mkdir(parents=True)

    def read(path: Path) -> None:
        if path.name != "good":
            raise DatasetError(f"{path.name} is damaged")

    monkeypatch.setattr(doctor, "read_prepared", read)
    monkeypatch.setattr(doctor, "bundles_in", lambda path: {"swapped"})
    found = told(doctor._prepared(tmp_path))
    assert [(grade, about) for grade, about, _ in found] == [
        ("bad", "prepared/broken"),
        ("good", "prepared/good"),
        ("bad", "prepared/swapped"),
    ]
    assert found[0][2] == "broken is damaged"


def test_what_a_stopped_process_left_is_named(tmp_path: Path) -> None:
    other = VERSION.replace("0", "1")
    for name in ("damaged", "lost", "old", "town"):
        (tmp_path / name).mkdir()
    (tmp_path / "town" / VERSION).mkdir()
    (tmp_path / "town" / "notes").mkdir()
    (tmp_path / "old" / VERSION).mkdir()
    (tmp_path / "old" / other).mkdir()
    (tmp_path / "lost" / other).mkdir()
    (tmp_path / "damaged" / other).mkdir()
    (tmp_path / "file.txt").write_text("x")
    store: Any = Shop(tmp_path, "damaged", "old", "town", damaged=("damaged",))
    found = told(doctor._leftovers(store))
    assert [(grade, about) for grade, about, _ in found] == [("bad", "lost"), ("note", "old")]
    assert "'current' is missing; ingest 'lost' again" in found[0][2]
    assert "A stopped ingest left files" in found[1][2]
    for name in (".b.part", ".a.part", "c.part"):
        (tmp_path / name).write_text("x")
    last = told(doctor._leftovers(store))[-1]
    assert last[:2] == ("note", ".a.part, .b.part")


@pytest.mark.parametrize(
    ("sizes", "free", "pages", "wanted"),
    [
        ([], 0, 0, ["good", "good"]),
        ([100, 50], 120, 150, ["good", "good"]),
        ([100, 50], 119, 150, ["note", "good"]),
        ([100, 50], 120, 149, ["good", "note"]),
        ([10, 10], 12, 100, ["good", "good"]),
    ],
)
def test_there_is_room_for_a_second_version_and_for_all_in_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    sizes: list[int],
    free: int,
    pages: int,
    wanted: list[str],
) -> None:
    monkeypatch.setattr(doctor.shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    monkeypatch.setattr(
        doctor.os, "sysconf", lambda name: {"SC_PAGE_SIZE": 1, "SC_PHYS_PAGES": pages}[name]
    )
    found = told(doctor._space(tmp_path, sizes))
    assert [grade for grade, _, _ in found] == wanted
    assert [about for _, about, _ in found] == ["disk", "memory"]


def test_an_examination_looks_at_everything_and_ends_in_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd.txt").write_text("x")
    asked: list[Any] = []
    store = Shop(tmp_path, "a", "b")
    monkeypatch.setattr(doctor, "Store", lambda root: store)
    for name in ("_folder", "_bundles", "_prepared"):
        monkeypatch.setattr(
            doctor, name, lambda root, name=name: iter([HealthFinding("good", name, "")])
        )
    for name in ("_secret", "_populations", "_leftovers"):
        monkeypatch.setattr(
            doctor, name, lambda own, name=name: iter([HealthFinding("good", name, "")])
        )
    monkeypatch.setattr(
        doctor,
        "_dataset",
        lambda own, name, sizes: (
            sizes.append(5)
            or iter([HealthFinding("good", name, ""), HealthFinding("note", name, "")])
        ),
    )

    def policies(own: Any, judge: Any) -> Iterator[HealthFinding]:
        asked.append(judge)
        yield HealthFinding("good", "_policies", "")

    def space(root: Path, sizes: list[int]) -> Iterator[HealthFinding]:
        asked.append(sizes)
        yield HealthFinding("good", "_space", "")

    monkeypatch.setattr(doctor, "_policies", policies)
    monkeypatch.setattr(doctor, "_space", space)
    found = grades(examine(tmp_path, judge := lambda name: None))
    assert [about for _, about in found] == [
        *("_folder", "_secret", "a", "a", "b", "b", "_populations", "_policies", "_bundles"),
        *("_prepared", "_leftovers", "odd.txt", "_space"),
    ]
    assert asked == [judge, [5, 5]]

    def locked(root: Path) -> Iterator[HealthFinding]:
        raise PermissionError(13, "Permission denied", "/data/town")
        yield

    def broken(root: Path) -> Iterator[HealthFinding]:
        raise DatasetError("it is no folder of data")
        yield

    def nameless(root: Path) -> Iterator[HealthFinding]:
        raise OSError(5, "Input/output error")
        yield

    for way, about, said in (
        (locked, "/data/town", "It cannot be read: Permission denied."),
        (nameless, str(tmp_path), "It cannot be read: Input/output error."),
        (broken, str(tmp_path), "it is no folder of data"),
    ):
        monkeypatch.setattr(doctor, "_bundles", way)
        assert told(examine(tmp_path))[-1] == ("bad", about, said)
    assert grades(examine(tmp_path / "none")) == [("bad", str(tmp_path / "none"))]


@pytest.mark.parametrize("folder", ["reports", "releases"])
def test_confidential_files_that_others_may_read_are_counted(tmp_path: Path, folder: str) -> None:
    deep = tmp_path / folder / "town"
    deep.mkdir(parents=True, mode=0o755)
    for name in ("a", "b"):
        (deep / name).write_text("x")
        (deep / name).chmod(0o600)
    assert list(doctor._private(tmp_path)) == []
    said = []
    for name, mode in (("a", 0o640), ("b", 0o604)):
        (deep / name).chmod(mode)
        (finding,) = doctor._private(tmp_path)
        assert (finding.grade, finding.about) == ("note", folder)
        said.append(finding.sentence)
    assert said[0].startswith("Others may read 1 of its files")
    assert said[1].startswith("Others may read 2 of its files")
    assert said[1].endswith(f"'chmod -R go-rwx {tmp_path / folder}'.")
