"""The library at a prompt: names that Tab completes, one way to call them, mistakes in one sentence."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
import types
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import lustrum as lu
from lustrum.formats.write import release_as_csv, release_as_parquet
from lustrum.model import InputError, SeededRelease, Table
from lustrum.model.parameters import parameters_of, spec_from_words
from lustrum.model.plugins import load, names
from lustrum.risk import RiskMeasure
from lustrum.runtime.durable import lock
from lustrum.sensitivity import PPercent, Threshold
from lustrum.tabulate import Secret
from lustrum.utility import UtilityMeasure

ROOMS = {
    "lustrum.methods": "protect",
    "lustrum.rules": "sensitivity",
    "lustrum.risks": "risk",
    "lustrum.utilities": "utility",
    "lustrum.formats": "formats",
}
# Parameters without a default, or that belong together.
NEEDED: dict[str, dict[str, Any]] = {
    "between-variance-change": {"area": "v1", "variable": "v2", "category": "1"},
    "conditional-error": {"variable": "v1"},
    "sample-r2": {"fraction": 0.05},
}
RULES: dict[str, dict[str, Any]] = {"p-percent": {"p": 10}, "prior-posterior": {"p": 10, "q": 50}}


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (g, n)
        for g in ROOMS
        for n in names(g)
        if load(g, n).__module__.startswith("lustrum.")  # not a third party's
    ],
)
def test_everything_registered_is_reached_from_its_room_and_completed_by_tab(
    group: str, name: str
) -> None:
    kind = load(group, name)
    room = getattr(lu, ROOMS[group])
    assert kind.__name__ in room.__all__
    assert kind.__name__ in dir(room)
    assert getattr(room, kind.__name__) is kind


def test_every_public_function_has_an_example_that_runs() -> None:
    """Examples in docstrings are tests; those on the page by task run too."""
    without = []
    for name in lu.__all__:
        public = getattr(lu, name)
        inside = getattr(public, "__all__", ()) if inspect.ismodule(public) else ()
        members = [getattr(public, one) for one in inside]
        functions = [one for one in members if inspect.isfunction(one)]
        if inspect.isclass(public) and not issubclass(public, Exception):
            functions.append(public)
        if inspect.isfunction(public):
            functions.append(public)
        without += [one.__qualname__ for one in functions if ">>>" not in (one.__doc__ or "")]
    assert without == []


def test_every_room_and_every_name_it_offers_is_there() -> None:
    for name in lu.__all__:
        assert name in dir(lu)
    for name in ("audit", "formats", "protect", "risk", "rumap", "sensitivity", "utility"):
        room = getattr(lu, name)
        assert room.__all__ == sorted(room.__all__, key=room.__all__.index)
        for offered in room.__all__:
            assert offered in dir(room)
            assert getattr(room, offered) is not None
    with pytest.raises(AttributeError, match="No lustrum attribute Protect"):
        _ = lu.Protect  # type: ignore[attr-defined]


def test_every_way_to_bounds_has_a_door() -> None:
    """The same cells by formula and by program, all from lustrum.audit."""
    margins = lu.audit.closed.Margins.of({"A": 2, "S": 2}, {"A": [3, 4], "S": [2, 5]})
    low, high = [0, 1, 0, 2], [2, 3, 2, 4]
    found = lu.audit.closed.closed_bounds(margins)
    assert np.asarray(found.low).ravel()[:4].tolist() == low
    assert np.asarray(found.high).ravel()[:4].tolist() == high
    known = lu.audit.from_margins({"A": 2, "S": 2}, {"A": [3, 4], "S": [2, 5]})
    assert lu.audit.best_bounds(known, slice(0, 4)).low.tolist() == low
    assert lu.audit.fibre.enumerate_fibre is not None
    assert lu.audit.certificate is not None


def test_listing_the_methods_imports_none_of_them() -> None:
    code = "import sys, lustrum; dir(lustrum.protect); print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


# Measures


@pytest.mark.parametrize("name", names("lustrum.risks"))
def test_every_risk_measure_has_the_same_verbs(name: str) -> None:
    measure = load("lustrum.risks", name)(**NEEDED.get(name, {}))
    assert isinstance(measure, RiskMeasure)
    table = Table.from_counts([[1, 0, 5], [7, 9, 2]])
    assert measure.of(table) == measure.before(table)
    release = lu.protect.RandomRounding().apply(table, rng=1)
    if measure.measures_releases:
        assert measure.of(table, release) == measure.after(table, release)
        low, high = measure.range
        assert low <= measure.after(table, release) <= high
    else:
        with pytest.raises(InputError, match=f"{name!r} is for unprotected tables only"):
            measure.after(table, release)


@pytest.mark.parametrize("name", names("lustrum.utilities"))
def test_every_utility_measure_has_the_same_verbs(name: str) -> None:
    measure = load("lustrum.utilities", name)(**NEEDED.get(name, {}))
    assert isinstance(measure, UtilityMeasure)
    table = Table.from_counts([[4, 6], [7, 9]])
    release = lu.protect.RandomRounding().apply(table, rng=1)
    low, high = measure.range
    assert low <= measure.of(table, release) <= high


@pytest.mark.parametrize(
    ("group", "name"), [(g, n) for g in ("lustrum.risks", "lustrum.utilities") for n in names(g)]
)
def test_the_words_of_a_measure_make_it_again(group: str, name: str) -> None:
    kind = load(group, name)
    for more in ({}, {"impute": "zero"}):
        if more and "impute" not in {p.name for p in parameters_of(kind)}:
            continue
        measure = kind(**NEEDED.get(name, {}), **more)
        words = measure.to_mapping()
        assert words.pop("measure") == name
        assert kind(**words) == measure


# Seeds and types


TABULAR = [n for n in names("lustrum.methods") if "table" in load("lustrum.methods", n).stages]


def example(name: str) -> tuple[Any, Table]:
    """A method with all it needs, and a table for it."""
    rng = np.random.default_rng(2)
    keys = rng.integers(1, 2**63, (3, 4), dtype=np.uint64)
    counts = Table.from_counts(rng.integers(3, 30, (3, 4)), keys=keys)
    words: dict[str, Any] = {
        "differential-privacy": {"epsilon": 1.0},
        "multiplicative-noise": {"level": "cell"},
        "table-swapping": {"order": 1},
    }.get(name, {})
    if name in ("multiplicative-noise", "cell-key-magnitude"):
        from lustrum.model.table import Contributions

        own = Contributions(counts.values[..., None] // 2, np.zeros((3, 4, 1), dtype=np.int64))
        counts = Table(counts.axes, counts.values, "magnitude", keys=keys, contributions=own)
    return spec_from_words(load("lustrum.methods", name), words, name), counts


@pytest.mark.parametrize("name", [n for n in TABULAR if n != "differential-privacy"])
def test_a_whole_number_is_a_seed_for_every_method(name: str) -> None:
    method, table = example(name)
    seeded = method.apply(table, rng=5).published
    assert np.array_equal(seeded, method.apply(table, np.random.default_rng(5)).published)
    assert np.array_equal(seeded, method.apply(table, rng=np.int64(5)).published)


# These draw nothing from a two-way table of counts, so that a seed says nothing of their numbers.
WITHOUT_CHANCE = (
    "controlled-rounding", "conventional-rounding", "none", "small-count-rounding", "suppression",
)  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_CHANCE)
def test_what_was_made_without_chance_is_no_study(name: str) -> None:
    method, table = example(name)
    made = [method.apply(table, rng=seed) for seed in range(5)]
    assert not any(isinstance(release, SeededRelease) for release in made)
    assert len({release.published.tobytes() for release in made}) == 1
    assert release_as_csv(made[0])


@pytest.mark.parametrize(
    "name", [n for n in TABULAR if n not in ("differential-privacy", *WITHOUT_CHANCE)]
)
def test_a_seed_makes_a_study_that_nothing_writes_and_a_secret_makes_a_release(name: str) -> None:
    method, table = example(name)
    study = method.apply(table, rng=5)
    assert isinstance(study, SeededRelease)
    assert repr(study).startswith("SeededRelease(")
    assert "not for publication" in study._repr_html_()
    assert "not for publication" in study.to_pandas().attrs["lustrum"]
    assert b"not for publication" in study.to_arrow().schema.metadata[b"lustrum"]
    said = " ".join(study.notes)
    assert "record keys version" not in said
    formats = lu.formats
    for write in (
        *(kind().write for kind in (formats.Csv, formats.JsonStat, formats.Xlsx, formats.Parquet)),
        formats.release_as_arrow,
        release_as_csv,
        release_as_parquet,
    ):
        with pytest.raises(InputError, match="made with a seed"):
            write(study.take([range(n) for n in study.shape]))
    head, *rows = release_as_csv(study, study=True).splitlines()
    assert head.startswith("study,")
    assert all(row.startswith("not for publication,") for row in rows)
    bare = replace(table, keys=None)
    first, again, other = (method.apply(bare, secret=Secret(bytes([k] * 16))) for k in (1, 1, 2))
    assert not isinstance(first, SeededRelease)
    assert np.array_equal(first.published, again.published)
    assert first.notes == other.notes
    with pytest.raises(InputError, match="not both"):
        method.apply(bare, rng=1, secret=Secret(bytes(16)))


@pytest.mark.parametrize("name", TABULAR)
@pytest.mark.parametrize("wrong", ["1", 1.0, -1, True, np.random.RandomState(1)])
def test_a_seed_of_the_wrong_type_is_one_sentence(name: str, wrong: Any) -> None:
    method, table = example(name)
    with pytest.raises(InputError, match="'rng' is a whole number from 0 up"):
        method.apply(table, rng=wrong)


@pytest.mark.parametrize("name", TABULAR)
def test_anything_but_a_table_is_one_sentence(name: str) -> None:
    method, table = example(name)
    for wrong in (table.values, [[1, 2]], None):
        with pytest.raises(InputError, match="A protection method needs a lustrum Table, not "):
            method.apply(wrong, rng=1)


@pytest.mark.parametrize(
    ("group", "name"),
    [
        (g, n)
        for g in ("lustrum.risks", "lustrum.utilities", "lustrum.rules")
        for n in names(g)
        if n not in ("r1", "r2")  # these two also measure plain arrays
    ],
)
def test_measures_and_rules_ask_for_a_table_and_a_release(group: str, name: str) -> None:
    kind = load(group, name)
    words = NEEDED.get(name, {}) | RULES.get(name, {})
    judge = kind(**words)
    table = Table.from_counts([[4, 6], [7, 9]])
    release = lu.protect.RandomRounding().apply(table, rng=1)
    calls: list[tuple[Any, ...]]
    if group == "lustrum.rules":
        first, calls = judge.judge, [([1, 2],), (release,), (None,)]
    else:
        first, calls = judge.of, [([1, 2], release), (release, release)]
        if getattr(judge, "measures_releases", True):
            with pytest.raises(
                InputError, match="needs a lustrum Release, not a Table; the 'apply'"
            ):
                judge.of(table, table)
        else:
            calls = [([1, 2],), (release,)]
    for wrong in calls:
        with pytest.raises(InputError, match="needs a lustrum Table, not "):
            first(*wrong)


@pytest.mark.parametrize(
    ("name", "words", "meant"),
    [
        ("p-percent", {"p": 0.1}, "p=10 meant"),
        ("dominance", {"n": 85, "k": 2}, "n=2, k=85 meant"),
        ("dominance", {"n": 2, "k": 0.85}, "k=85 meant"),
    ],
)
def test_a_rule_that_was_meant_otherwise_says_how(name: str, words: Any, meant: str) -> None:
    with pytest.raises(InputError, match=meant):
        spec_from_words(load("lustrum.rules", name), words, name)


def test_a_system_without_the_modules_of_unix_counts_and_protects_frames() -> None:
    blocked = ("fcntl", "resource", "pwd", "grp")
    run = f"""
import os, sys
for name in {blocked}: sys.modules[name] = None
del os.fork
import pandas as pd, lustrum as lu
from lustrum.sensitivity import PPercent, Threshold
from lustrum.tabulate import Secret
rows = pd.DataFrame({{"a": list("xyxyxx"), "b": list("uuvvuv")}})
method = lu.protect.RandomRounding(base=3)
lu.crosstab(rows.a, rows.b, policy=method, secret=Secret(bytes(16)))
method.apply(lu.Table.from_frame(rows, by=["a", "b"]), secret=Secret(bytes(16)))
"""
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1500:]


ABSENT = {
    "os": "fork forkpty getuid geteuid getgid getegid getgroups chown fchown killpg setsid mkfifo statvfs "
    "sysconf uname O_NOFOLLOW O_DIRECTORY O_CLOEXEC O_NONBLOCK sched_getaffinity posix_fadvise pread nice",
    "signal": "SIGHUP SIGKILL SIGSTOP SIGCONT SIGUSR1 SIGUSR2 SIGALRM SIGCHLD SIGPIPE SIGQUIT alarm setitimer",
    "socket": "AF_UNIX",
}
"""What Windows has none of."""


@pytest.mark.slow
def test_every_module_and_public_name_is_there_without_what_only_unix_has() -> None:
    run = f"""
import importlib, pkgutil, sys, warnings
warnings.simplefilter("ignore")
# What is not ours may ask first; it knows Windows by itself.
for name in ("asyncio.runners", "concurrent.futures", "duckdb", "fastapi.testclient", "ibis", "tempfile",
             "multiprocessing.managers", "numba", "opendp.prelude", "pandas", "polars", "scipy.optimize",
             "uvicorn.server"):
    importlib.import_module(name)
for name in ("fcntl", "resource", "pwd", "grp", "termios"):
    sys.modules[name] = None
for name, words in {ABSENT!r}.items():
    module = importlib.import_module(name)
    for word in words.split():
        vars(module).pop(word, None)
import lustrum
found = [one.name for one in pkgutil.walk_packages(lustrum.__path__, "lustrum.")]
for name in found:
    if not name.endswith("__main__"): importlib.import_module(name)
assert len(found) > 500
for room in (getattr(lustrum, name) for name in lustrum.__all__):
    for name in getattr(room, "__all__", ()):
        getattr(room, name)
"""
    done = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-1500:]


WINDOWS = """
import os, sys, types
import asyncio, concurrent.futures, duckdb, fcntl, numba, pandas, pyarrow, subprocess, tempfile
def locking(handle, mode, size): fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, size, 0, os.SEEK_CUR)
sys.modules["msvcrt"] = types.SimpleNamespace(LK_NBLCK=2, locking=locking)
for name in ("fcntl", "resource", "pwd", "grp"): sys.modules[name] = None
for name in "fork getuid geteuid pread preadv O_CLOEXEC O_NOFOLLOW O_DIRECTORY sysconf chown".split():
    vars(os).pop(name, None)
# A handle is of text if it was not opened for bytes, and what is read and written by it would change.
os.O_BINARY, opened = 1 << 15, {}
def opening(path, flags, mode=0o777, real=os.open, **more):
    handle = real(path, flags & ~os.O_BINARY, mode, **more)
    opened[handle] = bool(flags & os.O_BINARY)
    return handle
def checked(real):
    def call(handle, *rest):
        assert opened.get(handle, True), "a handle of text"
        return real(handle, *rest)
    return call
def forgetting(real):
    def call(handle, *rest, **more):
        opened.pop(handle, None)
        return real(handle, *rest, **more)
    return call
os.open, os.read, os.write = opening, checked(os.read), checked(os.write)
os.close, os.fdopen = forgetting(os.close), forgetting(os.fdopen)
"""
"""Windows played on this system: no modules of Unix, locks of bytes, handles of text and of bytes."""


def played(run: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WINDOWS + run],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "USER": "ann"},
    )
    assert done.returncode == 0, done.stderr[-1500:]


def test_a_session_is_finalised_and_decided_without_the_modules_of_unix(tmp_path: Path) -> None:
    played(
        """
import pandas as pd, lustrum as lu
from pathlib import Path
from lustrum.checking import CheckerFolder
session = lu.Session(book="book")
session.crosstab(pd.Series(list("xy" * 20)))
session.finalise("out")
CheckerFolder(Path("out")).decide("output_0", "approve")
assert len(lu.Session(book="book")._book.populations()) == 1
""",
        tmp_path,
    )
    assert (tmp_path / "out" / "approved" / "output_0.csv").is_file()


def test_a_data_folder_is_filled_asked_and_backed_up_without_the_modules_of_unix(
    tmp_path: Path,
) -> None:
    played(
        """
import pyarrow as pa
from pathlib import Path
from lustrum.local import local_service
from lustrum.model import Axis, Dataset, TableQuery
from lustrum.tabulate import FrameSource, Store, ingest
from lustrum.tabulate.store import backup, writer
writer.ROOM = 64  # so that identifiers are set aside in a file
words = {"dataset": {"name": "town", "title": "Town", "record_id": "id"},
         "variables": [{"name": "sex", "codes": ["1", "2"]}]}
rows = pa.table({"id": list(range(900)), "sex": ["1", "2", "1"] * 300})
store = Store(Path("data"))
assert ingest(FrameSource(rows), Dataset.from_mapping(words), store) == 900
query = TableQuery("town", (Axis("sex"),))
assert store.open("town").tabulate(query).values.tolist() == [600, 300]
backup.back_up(Path("data"), Path("kept"))
assert "town" in str(backup.check_backup(Path("kept")))
""",
        tmp_path,
    )


def test_readers_share_a_lock_of_windows_and_a_writer_has_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    file = tmp_path / "lock"
    tried = f"""
from lustrum.runtime.durable import lock
handle = os.open({str(file)!r}, os.O_RDWR | os.O_CREAT)
for shared in (True, False):
    try: lock(handle, shared=shared); print(shared)
    except BlockingIOError: pass
"""

    def elsewhere() -> list[str]:
        run = [sys.executable, "-c", WINDOWS + tried]
        return subprocess.run(run, capture_output=True, text=True, check=True).stdout.split()

    def locking(handle: int, mode: int, size: int) -> None:
        fcntl.lockf(handle, fcntl.LOCK_EX | fcntl.LOCK_NB, size, 0, os.SEEK_CUR)

    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(LK_NBLCK=2, locking=locking))
    for shared, open_to in ((True, ["True"]), (False, [])):
        with file.open("wb") as held:
            lock(held.fileno(), shared=shared)
            assert elsewhere() == open_to
    assert elsewhere() == ["True", "False"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda t: lu.best(t, [lu.protect.Suppression()]), "'max_risk' is the largest risk"),
        (lambda t: Threshold(3) | PPercent(p=10), "AnyOf"),
        (lambda t: lu.suppress({"a": ["x"]}, by=["a"]), "Say with 'rule'"),
        (lambda t: lu.suppress({"a": ["x"]}, by=["a"], rule=[Threshold(3)]), "AnyOf"),
        (lambda t: lu.protect.Suppression().apply(t)["a"], "to_pandas"),
        (lambda t: lu.audit.audit_tables(pd.DataFrame({"a": [1]})), "not of a frame"),
        (lambda t: lu.compare(t, [t]), "Releases are given by name"),
        (
            lambda t: lu.crosstab(["x"], normalize="rows", policy=lu.protect.Suppression()),
            "'normalize'",
        ),
        (lambda t: lu.crosstab(["x"], weights=[2], policy="cell-key"), "by suppression here"),
    ],
)
def test_what_was_probably_meant_is_said(wrong: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        wrong(Table.from_counts([[14, 6], [7, 9]]))


def test_means_weights_and_shares_are_those_of_pandas_where_they_are_shown() -> None:
    rows = pd.DataFrame(
        {"a": list("nns") * 40, "b": list("xyxzxy") * 20, "v": range(120), "w": [2, 1, 1.5] * 40}
    )
    method = lu.protect.Suppression(rule=Threshold(25))
    for words in (
        {"values": rows.v, "aggfunc": "mean", "margins": True},
        {"values": rows.w, "aggfunc": "sum", "margins": True},
        {"normalize": "index", "margins": True},
        {"normalize": "columns", "margins": True},
        {"normalize": True, "margins": True},
    ):
        ours = {**words, "weights": words.get("values"), "values": None, "aggfunc": None}
        made = lu.crosstab(
            rows.a, rows.b, policy=method, **(ours if words.get("aggfunc") == "sum" else words)
        )
        theirs = pd.crosstab(rows.a, rows.b, **words)
        if "normalize" in words:
            theirs = theirs.reindex_like(made.frame)
        shown = made.frame.notna() & theirs.notna()
        assert shown.to_numpy().any()
        assert not made.frame.notna().to_numpy().all()
        left, right = (
            one.to_numpy(dtype=float, na_value=np.nan)[shown] for one in (made.frame, theirs)
        )
        assert np.allclose(left, right, atol=0.006)


def test_maps_audits_and_comparisons_draw_themselves() -> None:
    table = Table.from_counts([[1, 14, 3], [17, 83, 0]])
    release = lu.protect.Suppression().apply(table)
    drawn = lu.compare(table, {"<hidden>": release})
    assert "&lt;hidden&gt;" in drawn._repr_html_()
    assert drawn.frame.loc["<hidden>", "hidden cells"] == 1
    assert "<table" in lu.audit.audit_tables(release)._repr_html_()
    methods = lu.rumap.grid("conventional-rounding", base=[3])
    assert "conventional-rounding" in lu.rumap(table, methods)._repr_html_()


def test_formats_and_audits_ask_for_what_they_take(tmp_path: Path) -> None:
    """Above all an unprotected table is never written as if it were a release."""
    table = Table.from_counts([[4, 6], [7, 9]])
    release = lu.protect.RandomRounding().apply(table, secret=Secret(bytes(16)))
    target = tmp_path / "table.csv"
    for write in (
        lu.formats.Csv().write,
        lu.formats.JsonStat().write,
        lu.formats.Xlsx().write,
        lu.formats.release_as_arrow,
        lambda wrong: lu.formats.write_release(wrong, target),
        lu.audit.from_release,
        lu.audit.attack,
    ):
        with pytest.raises(InputError, match="needs a lustrum Release, not a Table; the 'apply'"):
            write(table)  # type: ignore[operator]
    assert not target.exists()
    with pytest.raises(InputError, match="Bounds follow from Knowledge, not from a Release"):
        lu.audit.best_bounds(release)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="An attacker is Outsider"):
        lu.audit.attack(release, "insider")  # type: ignore[arg-type]
    for contribution in ("4", 1.5, None, float("inf")):
        with pytest.raises(InputError, match="A contribution must be a whole number"):
            lu.audit.Insider(contribution)  # type: ignore[arg-type]


def test_a_table_made_wrongly_is_one_sentence() -> None:
    with pytest.raises(InputError, match="rows are equally long"):
        Table.from_counts([[1, 2], [3]])
    with pytest.raises(
        InputError, match="a list for each dimension, with a code for each position"
    ):
        Table.from_counts([[1, 2], [3, 4]], codes=[["a", "b"]])
    with pytest.raises(InputError, match="columns of a frame must be equally long"):
        Table.from_frame({"a": ["1"], "b": ["1", "2"]}, by=["a"])
    for by in ([1], 3):
        with pytest.raises(InputError, match="'by' must be a list of the names of columns"):
            Table.from_frame({"a": ["1"]}, by=by)  # type: ignore[arg-type]


def test_no_door_swallows_arguments_that_it_does_not_know() -> None:
    for door in (Table.from_frame, Table.from_counts):
        kinds = {p.kind for p in inspect.signature(door).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds
