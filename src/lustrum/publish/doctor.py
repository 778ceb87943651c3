"""The doctor: looks at a data folder and says what is wrong with it, and what to do."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import permutations
from pathlib import Path
from typing import Literal

import numpy as np

from lustrum.ledger.acts import acts_of
from lustrum.model import Axis, LustrumError, PolicyError, TableQuery
from lustrum.model.errors import DatasetError
from lustrum.policy import check_names, read_policy
from lustrum.policy.explain import warnings
from lustrum.policy.policy import ROLES, Role
from lustrum.policy.read import is_sealed
from lustrum.public.bundle import read_bundle
from lustrum.public.bundle.agreement import earlier_defaults
from lustrum.public.bundle.files import Bundle
from lustrum.public.prepared import read_prepared
from lustrum.publish.budget import BudgetLedger
from lustrum.publish.bundles.memory import memory_path, sums_path
from lustrum.publish.bundles.people import NO_POPULATION, People, opened, same_people
from lustrum.runtime.data_folder import (
    ACTS,
    BUDGETS,
    BUNDLES,
    POLICIES,
    PREPARED,
    PRIVATE,
    REPORTS,
    bundles_in,
    unknown_entries,
)
from lustrum.runtime.durable import contained, outages
from lustrum.tabulate import EmbeddedEngine, Engine, Store
from lustrum.tabulate.keys import Secret
from lustrum.tabulate.store.files import VersionFiles
from lustrum.tabulate.store.folder import LEFTOVER
from lustrum.tabulate.store.secret_files import NEXT, SECRET

Grade = Literal["good", "note", "bad"]
Judge = Callable[[str, Role], object]
_UNSTATED = (
    "An earlier version made it, which did not state what protected it. Its steps and weights are compared "
    "with the policy in force by the policy that it holds; the versions that made it cannot be compared."
)
_EARLIER = (
    "It has the defaults of the version that made it, and is served as it is ({then}). The next release has "
    "those of today, unless the policy states others."
)
_SPARE = 1.2  # a new version is kept next to the old one while a dataset is replaced


@dataclass(frozen=True)
class HealthFinding:
    """One thing that was looked at: ``good``, a ``note``, or ``bad``, which stops answers or should."""

    grade: Grade
    about: str
    sentence: str


def examine(root: Path, judge: Judge | None = None) -> Iterator[HealthFinding]:
    """Look at everything that answers depend on: secret, datasets, policies, modes, leftovers, disk, memory.

    ``judge`` is the judgement of the server: it raises an error for a dataset that a server would not serve.
    ``lustrum.local.service.health`` gives that of a server on this machine.
    """
    store = Store(root)
    try:
        if not root.is_dir():
            yield HealthFinding(
                "bad", str(root), "There is no such folder; ingest a dataset, or restore a backup."
            )
            return
        yield from _folder(root)
        yield from _secret(store)
        sizes: list[int] = []
        for name in store.names():
            yield from _each(name, _dataset(store, name, sizes))
        yield from _populations(store)
        yield from _policies(store, judge)
        yield from _bundles(root)
        yield from _prepared(root)
        yield from _budgets(root)
        yield from _acts(root)
        yield from _private(root)
        yield from _leftovers(store)
        yield from _unknown(root)
        yield from _space(root, sizes)
    except OSError as error:
        yield HealthFinding(
            "bad", str(error.filename or root), f"It cannot be read: {error.strerror}."
        )
    except DatasetError as error:
        yield HealthFinding("bad", str(root), str(error))


def _each(about: str, findings: Iterator[HealthFinding]) -> Iterator[HealthFinding]:
    """What is found about one thing; whatever goes wrong with it is a finding about it, and others follow."""
    try:
        with contained(about):
            yield from findings
    except LustrumError as error:
        yield HealthFinding("bad", about, str(error))


def _folder(root: Path) -> Iterator[HealthFinding]:
    mode = stat.S_IMODE(root.stat().st_mode)
    if mode & 0o002:
        yield HealthFinding(
            "bad", str(root), f"Everybody may write here; close it with 'chmod 700 {root}'."
        )
    elif not os.access(root, os.R_OK | os.X_OK):
        yield HealthFinding(
            "bad", str(root), "This user may not read it; run as the user of the server."
        )
    elif mode & 0o007:
        yield HealthFinding(
            "note", str(root), f"Everybody may look into it; close it with 'chmod 700 {root}'."
        )
    else:
        yield HealthFinding("good", str(root), "The folder can be read.")


def _secret(store: Store) -> Iterator[HealthFinding]:
    path = store.root / SECRET
    if (store.root / NEXT).exists():
        yield HealthFinding(
            "note", NEXT, "A rotation was stopped; finish it with 'lustrum secret rotate'."
        )
    try:
        Secret.load(path)
    except DatasetError as error:
        needed = bool(store.names())
        yield HealthFinding("bad" if needed else "note", SECRET, str(error))
        return
    if path.stat().st_mode & 0o040:
        yield HealthFinding(
            "note", SECRET, "A group may read it; make sure that all its members should."
        )
    else:
        yield HealthFinding("good", SECRET, "It is there, and readable by its owner only.")


def _dataset(store: Store, name: str, sizes: list[int]) -> Iterator[HealthFinding]:
    files = store.look(name)
    yield from _each(name, _bytes(files, name, sizes))
    loose = [
        path.name
        for path in (store.root / name / files.version).iterdir()
        if path.stat().st_mode & 0o077
    ]
    if loose:
        sentence = f"Others may read {', '.join(sorted(loose))}; close them with 'chmod 600'."
        yield HealthFinding("note", name, sentence)


def _bytes(files: VersionFiles, name: str, sizes: list[int]) -> Iterator[HealthFinding]:
    try:
        files.check()
        sizes.append(EmbeddedEngine(files, workers=1).encoded_bytes)
    finally:
        files.close()
    yield HealthFinding(
        "good", name, "Every byte is what was written, by the secret that is there."
    )


def _populations(store: Store) -> Iterator[HealthFinding]:
    """Datasets that name no population, and people of whom several datasets were released."""
    for name in store.names():
        yield from _each(name, _population(store, name))


def _population(store: Store, name: str) -> Iterator[HealthFinding]:
    try:
        people = People.of(store, opened(store, name, 1))
        matches = [] if people is None else same_people(store, people)
    except DatasetError:
        return  # reported already
    if people is None:
        yield HealthFinding("note", name, NO_POPULATION)
    for one in matches:
        yield HealthFinding(
            "note",
            name,
            f"It holds {one.sentence}, of which a release was made: readers of files of both know more "
            "than of one. Keep one dataset.",
        )


_ENDINGS = ("", *(f".{role}" for role in ROLES[1:]))
"""What stands behind the name of a dataset in the name of a policy, by the role that it serves."""


def _policies(store: Store, judge: Judge | None) -> Iterator[HealthFinding]:
    folder, names = store.root / POLICIES, store.names()
    bundled = bundles_in(store.root / BUNDLES)
    for path in sorted(folder.glob("*.toml")):
        about = f"policies/{path.name}"
        name, _, role = path.stem.partition(".")
        if (name in names or name in bundled) and role in ("", *ROLES[1:]):
            yield from _each(about, _policy(store, path, name in names, judge))
        else:
            yield HealthFinding(
                "note", about, "There is no dataset of this name; remove it, or correct its name."
            )
    for name in names:
        if not any((folder / f"{name}{role}.toml").is_file() for role in _ENDINGS):
            sentence = f"It has no policy, so nothing is answered; write {folder / name}.toml."
            yield HealthFinding("note", name, sentence)


def _policy(
    store: Store, path: Path, recorded: bool, judge: Judge | None
) -> Iterator[HealthFinding]:
    about = f"policies/{path.name}"
    policy, (name, _, role) = read_policy(path), path.stem.partition(".")
    if policy.role != (role or "public"):
        raise PolicyError(
            f"{path} says role = {policy.role!r}, and its name {role or 'public'!r}; name the same in both."
        )
    if recorded:
        files = store.look(name)
        files.close()
        check_names(policy, files.manifest.dataset, str(path))
    if judge is not None:
        judge(name, policy.role)
    if path.stat().st_mode & 0o022:
        yield HealthFinding(
            "bad", about, f"Others may change it; close it with 'chmod 644 {path}'."
        )
    yield HealthFinding("good", about, "It is whole, and fits its dataset.")
    if not is_sealed(path.read_bytes()):
        yield HealthFinding(
            "note",
            about,
            "It has no seal, so that a line lost from it goes unnoticed; read it, and seal it with "
            f"'lustrum policy seal {path}'.",
        )
    for sentence in warnings(policy):
        yield HealthFinding("note", about, sentence)
    if recorded and policy.ledger is not None:
        yield from _unsaid(opened(store, name, 1))


def _unsaid(engine: Engine) -> Iterator[HealthFinding]:
    """Variables that follow from others without a word in the description: a ledger does not know of it."""
    dataset = engine.dataset
    for one, other in permutations(dataset.variables, 2):
        table = engine.tabulate(TableQuery(dataset.name, (Axis(one.name), Axis(other.name))))
        there = table.values > 0
        never = np.zeros(table.shape, bool) if table.structural is None else table.structural
        told = (there | never)[there.any(axis=1)].all()
        if not told and (there.sum(axis=1) <= 1).all() and there.any(axis=0).sum() > 1:
            sentence = (
                f"{one.label} tells {other.label} of everybody, and no [[structural_zeros]] says so: the "
                "ledger cannot hold tables by the one against tables by the other. Add them, or drop one."
            )
            yield HealthFinding("note", dataset.name, sentence)


def _bundles(root: Path) -> Iterator[HealthFinding]:
    """Public bundles: whole, and with nothing that a stopped process has left beside them."""
    for path in sorted((root / BUNDLES).glob("*")):
        about = f"{BUNDLES}/{path.name}"
        if path.name.startswith("."):
            sentence = "A stopped 'lustrum protect' left it; run that again, then remove this."
            yield HealthFinding("note", about, sentence)
        else:
            yield from _each(about, _bundle(root, path))


def _bundle(root: Path, path: Path) -> Iterator[HealthFinding]:
    about, bundle = f"{BUNDLES}/{path.name}", read_bundle(path, every_byte=True)
    yield HealthFinding("good", about, "Every byte is what was written.")
    if bundle.protection is None:
        yield HealthFinding("note", about, _UNSTATED)
    if bundle.sums is not None and bundle.sums.unsafe is not None:
        yield HealthFinding("bad", about, bundle.sums.unsafe)
    defaults = earlier_defaults(bundle.policy, bundle.made)
    if defaults:
        then = "; ".join(f"{key} = {a}, today {b}" for key, (a, b) in defaults.items())
        yield HealthFinding("note", about, _EARLIER.format(then=then))
    yield from _memory(root, path.name, bundle)


def _memory(root: Path, name: str, bundle: Bundle) -> Iterator[HealthFinding]:
    """The memory of a bundle: without it the next release cannot go on from this one."""
    path = memory_path(root / REPORTS / name, bundle.digest)
    if bundle.report.proof is not None:
        return  # the noisy tables that its people come from stand for themselves, and are never continued
    needed = [path] if bundle.sums is None else [path, sums_path(path)]
    for missing in (one for one in needed if not one.is_file()):
        yield HealthFinding(
            "note",
            f"{REPORTS}/{name}",
            f"{missing.name} is missing, from which the next 'lustrum protect {name}' goes on; restore it from "
            "a backup, unless it is kept in a folder of its own (--report).",
        )


def _prepared(root: Path) -> Iterator[HealthFinding]:
    """Folders of prepared tables: whole."""
    places = {path.name for path in (root / PREPARED).glob("[!.]*")} | bundles_in(root / PREPARED)
    for path in sorted(root / PREPARED / name for name in places):
        yield from _each(f"{PREPARED}/{path.name}", _prepared_folder(path))


def _prepared_folder(path: Path) -> Iterator[HealthFinding]:
    read_prepared(path)
    yield HealthFinding("good", f"{PREPARED}/{path.name}", "Every byte is what was written.")


def _budgets(root: Path) -> Iterator[HealthFinding]:
    """The budgets of populations: every line is what was written."""
    for path in sorted((root / BUDGETS).glob("[!.]*.jsonl")):
        about = f"{BUDGETS}/{path.name}"
        yield from _each(about, _budget(root, path.stem, about))


def _budget(root: Path, name: str, about: str) -> Iterator[HealthFinding]:
    ledger = BudgetLedger(root, name)
    said = f"Rho {float(ledger.spent):g} of {float(ledger.limit):g} is spent."
    yield HealthFinding("good", about, said)


def _acts(root: Path) -> Iterator[HealthFinding]:
    """Who did what: every line is what was written."""
    wrong = acts_of(root)[1]
    if wrong:
        yield HealthFinding(
            "bad", ACTS, f"Line {wrong} is not what was written; bring back the file as it was."
        )


def _private(root: Path) -> Iterator[HealthFinding]:
    """The agency's own: reports and memories, which hold true counts, budgets, and who did what."""
    for folder in PRIVATE:
        loose = sum(
            path.is_file() and bool(path.stat().st_mode & 0o077)
            for path in (root / folder, *(root / folder).rglob("*"))
        )
        if loose:
            yield HealthFinding(
                "note",
                folder,
                f"Others may read {loose:,} of its files, and all of them are confidential; "
                f"close it with 'chmod -R go-rwx {root / folder}'.",
            )


def _unknown(root: Path) -> Iterator[HealthFinding]:
    """What is no part of a data folder."""
    for name in unknown_entries(root):
        yield HealthFinding(
            "note", name, "Lustrum does not know it, and no backup holds it; move it away."
        )


def _leftovers(store: Store) -> Iterator[HealthFinding]:
    """What a process that was stopped has left: harmless, and removed by the next ingest of the dataset."""
    for home in sorted(path for path in store.root.iterdir() if path.is_dir()):
        version = ""
        if home.name in store.names():
            try:
                version = store.version(home.name)
            except DatasetError:
                continue  # reported already
        left = [p.name for p in home.iterdir() if LEFTOVER.fullmatch(p.name) and p.name != version]
        if left and not version:
            sentence = (
                f"'current' is missing; ingest {home.name!r} again, or restore it from a backup."
            )
            yield HealthFinding("bad", home.name, sentence)
        elif left:
            sentence = "A stopped ingest left files; the next ingest of the dataset removes them."
            yield HealthFinding("note", home.name, sentence)
    drafts = [path.name for path in store.root.glob(".*.part")]
    if drafts:
        yield HealthFinding(
            "note", ", ".join(sorted(drafts)), "Drafts of a stopped process; remove them."
        )


def _space(root: Path, sizes: list[int]) -> Iterator[HealthFinding]:
    largest = max(sizes, default=0)
    with outages(root):
        free = shutil.disk_usage(root).free
    if free < _SPARE * largest:
        yield HealthFinding(
            "note",
            "disk",
            "Too little is free to replace the largest dataset; make room before an ingest.",
        )
    else:
        yield HealthFinding("good", "disk", "There is room to replace the largest dataset.")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if sum(sizes) > memory:
        yield HealthFinding(
            "note",
            "memory",
            "The datasets do not all fit into memory; answers may wait for the disk.",
        )
    else:
        yield HealthFinding("good", "memory", "All datasets fit into memory.")
