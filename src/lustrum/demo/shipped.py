"""Put the demo's bundles, made ahead, into a data folder: no record has to be made to serve them."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from lustrum.demo.descriptions import NAMES, SHIPPED, description_path
from lustrum.policy import Policy, read_policy
from lustrum.policy.read import sealed
from lustrum.public.bundle.agreement import is_made_by
from lustrum.public.bundle.files import other_search, stated_method
from lustrum.runtime.data_folder import BUNDLES, POLICIES
from lustrum.runtime.durable import write_whole


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
