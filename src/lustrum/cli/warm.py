"""Compile the hot loops of the usual ways once, so that the first table and the first audit do not wait for it.

``python -m lustrum.cli.warm`` runs every usual way on a tiny table. What numba compiles is kept beside the
source, under a key of the file, its version and the processor: everybody who may read it uses it, and it is
made anew where something changed. ``make`` runs this after an installation.
"""

from __future__ import annotations

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from lustrum.numeric.compiled import always_compile


def _answer() -> None:
    """Ingest, protect, count and judge, as a server does that shows a public bundle."""
    import pyarrow as pa

    from lustrum.demo import description_path, people
    from lustrum.local import local_service
    from lustrum.model import Axis, TableQuery
    from lustrum.publish.bundles.make import make_bundle
    from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description
    from lustrum.tabulate.identities import by_loop

    by_loop(pa.array(["of one person"]))  # for files of many records, which this one is not
    with tempfile.TemporaryDirectory(prefix="lustrum-warm-") as folder:
        root = Path(folder)
        description = description_path("demo")
        secret = Secret(bytes(32))
        # With fewer people the search of a protected population would not share its work out.
        records = FrameSource(people(20_000, 1))
        ingest(records, read_description(description), Store(root), secret=secret)
        (root / "policies").mkdir()
        policy = root / "policies" / "demo.toml"
        policy.write_bytes((description.parent / "demo-policy.toml").read_bytes())
        make_bundle(Store(root), "demo", policy, root / "bundles" / "demo")
        service = local_service(root)
        for axes in ((Axis("sex"),), (Axis("age", "ten-year"), Axis("sex"))):
            for total in (False, True):
                by = tuple(Axis(axis.variable, axis.level, total=total) for axis in axes)
                service.answer(TableQuery("demo", by))
        service.close()


def _sums() -> None:
    """Protect a register with sums and a survey with weights, and answer, as the demo does."""
    from lustrum.demo import businesses, description_path, survey
    from lustrum.local import local_service
    from lustrum.model import TableQuery
    from lustrum.publish.bundles.make import make_bundle
    from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description

    with tempfile.TemporaryDirectory(prefix="lustrum-warm-") as folder:
        root = Path(folder)
        (root / "policies").mkdir()
        for name, records in (("businesses", businesses(2000, 1)), ("survey", survey())):
            description = description_path(name)
            ingest(
                FrameSource(records),
                read_description(description),
                Store(root),
                secret=Secret(bytes(32)),
            )
            policy = root / "policies" / f"{name}.toml"
            policy.write_bytes((description.parent / f"{name}-policy.toml").read_bytes())
            make_bundle(
                Store(root), name, policy, root / "bundles" / name, folder=root / "reports" / name
            )
        service = local_service(root)
        for name, by, kinds in _SUMS:
            for asked in kinds:
                question = {"dataset": name, "by": by, "totals": True, **asked}
                service.answer(TableQuery.from_mapping(question))
        service.close()


_SUMS: tuple[tuple[str, list[str], tuple[dict[str, object], ...]], ...] = (
    ("businesses", ["size"], ({"measure": "turnover"}, {"statistics": ["mean:wages"]})),
    ("businesses", ["activity", "region"], ({"measure": "turnover"},)),
    ("survey", ["sex"], ({"weight": "weight"}, {"weight": "weight", "measure": "hours"})),
    (
        "survey",
        ["age", "education", "district"],
        ({"weight": "weight"}, {"weight": "weight", "statistics": ["share:count:total"]}),
    ),
)
"""Questions whose loops are other ones than those of counts."""


def _audit() -> None:
    """Bound the cells of rounded tables of two and three variables, with totals and without."""
    import numpy as np

    from lustrum.audit import bounds, from_release
    from lustrum.audit.closed.choose import best_bounds
    from lustrum.demo import people
    from lustrum.model import Table
    from lustrum.protect import RandomRounding

    rng = np.random.default_rng(1)
    frame = people(2000, 1)
    for by in (["sex", "education"], ["sex", "education", "employment"]):
        for totals in (False, True):
            table = Table.from_frame(frame, by, totals=totals)
            known = from_release(RandomRounding(base=3).apply(table, rng=rng))
            bounds(known, integer=True)
            best_bounds(known)


def _round() -> None:
    """Round with everything adding up, by a network and by a search."""
    import numpy as np

    from lustrum.model import Table
    from lustrum.protect.rounding.controlled.method import ControlledRounding

    rng = np.random.default_rng(1)
    for shape in ((4, 4), (3, 3, 3)):
        ControlledRounding(base=3).apply(Table.from_counts(rng.poisson(3, shape)), rng=rng)


WAYS: Mapping[str, Callable[[], None]] = {
    "answers": _answer,
    "audits": _audit,
    "rounding": _round,
    "sums": _sums,  # last, since it shares most of its loops with answers
}
"""The usual ways, by name, in the order in which they are taken."""


def warm(say: Callable[[str], object] = print, *, lanes: int = 1) -> bool:
    """Run every way once and say how long each took; one that fails does not keep the others.

    With more than one lane, ways run in processes of their own, that many at a time.
    """
    if lanes == 1:
        good = True
        for name in WAYS:
            done, line = _run(name)
            say(line)
            good &= done
        return good
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(lanes, mp_context=context) as pool:
        futures = [pool.submit(_run, name) for name in WAYS]
        good = True
        for future in as_completed(futures):
            done, line = future.result()
            say(line)
            good &= done
    return good


def _run(name: str) -> tuple[bool, str]:
    """Run one way: whether it ended well, and a line that says so."""
    started = time.perf_counter()
    always_compile()
    try:
        WAYS[name]()
    except Exception as error:  # the loops are compiled when they are used, at the latest
        return False, f"{name}: {type(error).__name__}"
    return True, f"{name}: {time.perf_counter() - started:.1f} s"


if __name__ == "__main__":
    sys.exit(0 if warm(lanes=min(2, os.cpu_count() or 1)) else 1)
