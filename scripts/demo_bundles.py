"""Make the demo's public bundles, which the package carries: the same bytes on every machine.

    python scripts/demo_bundles.py [NAME ...]

Records are drawn from their seed and protected under a secret that everybody may know, since nobody in them
exists. A data folder never uses that secret: records that are made in it have its own.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from lustrum.demo import businesses, censuses, description_path, people, survey
from lustrum.demo.draws import NAMES, SHIPPED
from lustrum.policy.read import sealed
from lustrum.publish.bundles.make import make_bundle
from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description

RECORDS = {"demo": people, "businesses": businesses, "survey": survey, "censuses": censuses}


def make(name: str, folder: Path) -> Path:
    """The bundle of a dataset, in a folder of its own; confidential files of invented people stay beside it."""
    description = description_path(name)
    source = description.with_name(f"{name}-policy.toml")
    store, policy = Store(folder), folder / f"{name}.toml"
    records = FrameSource(RECORDS[name]())
    ingest(records, read_description(description), store, secret=Secret(bytes(32)))
    policy.write_bytes(sealed(source.read_bytes(), source.name))
    bundle = folder / "bundles" / name
    make_bundle(store, name, policy, bundle, folder=folder / "reports" / name)
    return bundle


def main(names: list[str]) -> None:
    """Renew these bundles of the package, or all."""
    for name in names or NAMES:
        with tempfile.TemporaryDirectory(prefix="lustrum-demo-") as folder:
            bundle = make(name, Path(folder))
            shutil.rmtree(SHIPPED / name, ignore_errors=True)
            shutil.copytree(bundle, SHIPPED / name)
        print(f"{name}: {sum(file.stat().st_size for file in (SHIPPED / name).iterdir()):,} bytes")


if __name__ == "__main__":
    main(sys.argv[1:])
