"""Put the demo data and their policies into a folder, once."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from threading import Lock

import pyarrow as pa

from lustrum.demo.census import censuses, people
from lustrum.demo.draws import NAMES, SHIPPED, description_path
from lustrum.demo.labour_force import survey
from lustrum.demo.register import businesses
from lustrum.policy import Policy, read_policy
from lustrum.policy.read import sealed
from lustrum.public.bundle.agreement import is_made_by
from lustrum.public.bundle.files import other_search, stated_method
from lustrum.publish.bundles.make import make_bundle
from lustrum.runtime.data_folder import BUNDLES, POLICIES
from lustrum.runtime.durable import write_whole
from lustrum.runtime.stop import side_by_side
from lustrum.tabulate import FrameSource, Store, ingest, read_description

Progress = Callable[[str, float], None]
"""Called with what is being done and how far it is, from 0 to 1."""

_LONGEST = ("protecting", "tying sums to counts")
"""The steps of protection that take longest."""


def prepare(
    root: Path, persons: int = 1_500_000, progress: Progress | None = None, *, parallel: bool = True
) -> list[str]:
    """Make whichever demo dataset is not there yet; gives the names of those that were made.

    Each of them is protected once, and its public bundle is what a server shows. The census takes longest: with
    ``parallel`` the others are protected beside it, with the same result.
    """
    lock = Lock()
    store = Store(root)
    created = []

    def report(task: str, done: float) -> None:
        if progress is not None:
            with lock:
                progress(task, done)

    def make(
        name: str, title: str, generate: Callable[[Callable[[float], None]], pa.Table]
    ) -> None:
        if name not in store.names():
            table = generate(lambda done: report(f"Inventing {title}", done))
            ingest(
                FrameSource(table, title),
                read_description(description_path(name)),
                store,
                lambda done, total: report(f"Storing {title}", done / (total or done)),
            )
            created.append(name)
        copy_policy(name, root)

    def census() -> None:
        make("demo", "people", lambda p: people(persons, progress=p))
        _protect("demo", "people", store, report, "demo" in created)

    def others() -> None:
        _protect("businesses", "businesses", store, report, "businesses" in created)
        _protect("survey", "respondents", store, report, "survey" in created)
        _protect("censuses", "two censuses", store, report, "censuses" in created)

    # These take no second; the first of them makes the secret of the folder.
    make("businesses", "businesses", lambda p: businesses(progress=p))
    make("survey", "respondents", lambda p: survey(progress=p))
    make("censuses", "two censuses", lambda p: censuses(progress=p))
    if parallel:
        side_by_side(census, others)
    else:
        census()
        others()
    return created


def _protect(name: str, title: str, store: Store, report: Progress, new: bool) -> None:
    """Make the bundle of a dataset that a policy asks for, if it is missing or of another method or search.

    The people of the demo are invented: nothing has to be kept from an earlier release. Beside ``new`` records
    a bundle can only be the one that the package carries, which another secret made.
    """
    policy, bundle_folder = store.root / "policies" / f"{name}.toml", store.root / "bundles" / name
    parsed_policy = read_policy(policy)
    if not is_made(parsed_policy, bundle_folder) or (new and parsed_policy.population is not None):
        make_bundle(
            store,
            name,
            policy,
            bundle_folder,
            folder=store.root / "reports" / name,
            # One bar for all: the steps that take longest move it.
            progress=lambda step, done: (
                report(f"Protecting {title}", done) if step in _LONGEST else None
            ),
        )


def place(root: Path) -> list[str]:
    """Copy each bundle that is missing, with its policy; gives the names of those that are still missing.

    A dataset with records of its own in the folder, or with another policy, has to be protected there.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    for name in missing(root):
        target = root / BUNDLES / name
        copy_policy(name, root)
        policy = read_policy(root / POLICIES / f"{name}.toml")
        if (root / name).exists() or target.exists() or not is_made(policy, SHIPPED / name):
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=f".{name}.", dir=target.parent) as draft:
            shutil.copytree(SHIPPED / name, Path(draft) / name).rename(target)
    return missing(root)


def missing(root: Path) -> list[str]:
    """The demo datasets that cannot be served yet: those without a bundle of their policy's method."""
    missing_names = []
    for name in NAMES:
        policy = root / POLICIES / f"{name}.toml"
        if not policy.is_file() or not is_made(read_policy(policy), root / BUNDLES / name):
            missing_names.append(name)
    return missing_names


def is_made(policy: Policy, bundle_folder: Path) -> bool:
    """Whether a bundle is there if the policy asks for one, of its method and of today's search."""
    if policy.population is None:
        return True
    return is_made_by(stated_method(bundle_folder), policy) and other_search(bundle_folder) is None


def copy_policy(name: str, root: Path) -> None:
    """Copy the policy of a demo dataset, sealed, unless there is one."""
    target = root / POLICIES / f"{name}.toml"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        source = description_path(name).with_name(f"{name}-policy.toml")
        write_whole(target, sealed(source.read_bytes(), str(source)))
