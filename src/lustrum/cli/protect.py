"""`lustrum protect`: one protected population as a public bundle, and a report that stays with the agency."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from lustrum.durable import write_whole
from lustrum.model import DatasetError, InputError
from lustrum.model.errors import choices
from lustrum.release.records.make_bundle import Made, make_bundle
from lustrum.tabulate import Store

__all__ = ["progress_bars", "protect_dataset"]


def protect_dataset(
    name: str,
    data: Path,
    console: Console,
    *,
    policy: Path | None = None,
    out: Path | None = None,
    report: Path | None = None,
    workers: int | None = None,
) -> Made:
    """Make the bundle of a dataset; by default in the data folder, with the report beside the records."""
    store = Store(data)
    if name not in store.names():
        raise DatasetError(
            f"There is no dataset {name!r} in {data}; {choices(name, store.names())}."
        )
    words = policy or data / "policies" / f"{name}.toml"
    if not words.is_file():
        raise DatasetError(f"Dataset {name!r} has no policy; write {words}.")
    place = out or data / "bundles" / name
    told = report or data / "reports" / f"{name}.json"
    if place.resolve() in told.resolve().parents:
        raise InputError(
            "The report of the agency is confidential and must not stand in the bundle; name another file "
            "with --report."
        )
    with progress_bars(console) as progress:
        made = make_bundle(store, name, words, place, workers=workers, progress=progress)
    told.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(
        {"confidential": "For the agency alone: measured on the true counts."}
        | made.result.agency.to_mapping(),
        indent=1,
    )
    write_whole(told, text.encode() + b"\n", 0o600)
    console.print(f"{place} may be published: digest {made.digest}.", highlight=False)
    console.print(f"{told} is confidential: it is measured on the true counts.", highlight=False)
    return made


@contextmanager
def progress_bars(console: Console) -> Iterator[Callable[[str, float], None]]:
    """Progress as one bar for each step."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    tasks: dict[str, int] = {}
    with bar:

        def told(task: str, done: float) -> None:
            said = task[:1].upper() + task[1:]
            if said not in tasks:
                tasks[said] = bar.add_task(said, total=1.0)
            bar.update(tasks[said], completed=done)  # type: ignore[arg-type]

        yield told
