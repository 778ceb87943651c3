"""`lustrum protect`: one protected population as a public bundle, and a report that stays with the agency."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from lustrum.ledger.acts import left, record_act
from lustrum.model import DatasetError, InputError
from lustrum.model.errors import choices
from lustrum.policy import read_policy
from lustrum.policy.explain import warnings as policy_warnings
from lustrum.public.bundle.files import bundle_digest, other_search
from lustrum.publish.bundles.history import ReleaseHistory
from lustrum.publish.bundles.make import (
    MadeBundle,
    earlier_memory,
    make_bundle,
    replaced_memory,
    require_alone,
)
from lustrum.publish.bundles.memory import read_memory
from lustrum.publish.bundles.proven import (
    ERRORS,
    NOISY,
    ProvenBundle,
    make_proven_bundle,
    method_with_proof,
)
from lustrum.publish.report import findings, write_report
from lustrum.publish.report.sum_page import sum_lines
from lustrum.runtime.data_folder import BUNDLES, POLICIES, REPORTS
from lustrum.runtime.durable import outages
from lustrum.runtime.stop import reporting_progress
from lustrum.tabulate import Store
from lustrum.tabulate.remote import connected_names


@outages("The data folder")
def protect_dataset(
    name: str,
    data: Path,
    console: Console,
    *,
    policy: Path | None = None,
    out: Path | None = None,
    report: Path | None = None,
    previous: Path | None = None,
    never_published: bool = False,
    new_series: bool = False,
    measure_again: bool = False,
    workers: int | None = None,
    processes: int = 1,
) -> MadeBundle | ProvenBundle:
    """Make the bundle of a dataset; by default in the data folder, with the agency's folder beside it.

    The release that the bundle replaces is continued, unless another one is named or all is drawn anew. A
    population with a proof continues nothing: each of its releases is paid for.
    """
    store = Store(data)
    known = [*store.names(), *connected_names(data)]
    if name not in known:
        raise DatasetError(f"There is no dataset {name!r} in {data}; {choices(name, known)}.")
    policy_path = policy or data / POLICIES / f"{name}.toml"
    if not policy_path.is_file():
        raise DatasetError(f"Dataset {name!r} has no policy; write {policy_path}.")
    if never_published and previous is not None:
        raise InputError(
            "--never-published draws all numbers anew; leave it out to continue from --previous."
        )
    if never_published and new_series:
        raise InputError(
            "--new-series continues the release before, and --never-published says that there is none; choose "
            "one of them."
        )
    bundle_folder = out or data / BUNDLES / name
    folder = report or data / REPORTS / name
    if bundle_folder.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise InputError(
            "The report of the agency is confidential and must not stand in the bundle; name another folder "
            "with --report."
        )

    def enter(digest: str, population: str) -> None:
        raw = policy_path.read_bytes()
        record_act(data, "protect", name, digest, policy=raw, population=population)

    if method_with_proof(read_policy(policy_path), str(policy_path)) is not None:
        if previous is not None or never_published or new_series:
            raise InputError(
                "A population with a proof continues no release; leave out --previous, --never-published and "
                "--new-series."
            )
        if processes > 1:
            raise InputError("A population with a proof has no blocks; leave out --processes.")
        with progress_bars(console) as progress:
            made = make_proven_bundle(
                store,
                name,
                policy_path,
                bundle_folder,
                folder=folder,
                workers=workers,
                progress=progress,
                measure_again=measure_again,
                warn=lambda few: console.print(f"Note well: {few}", highlight=False),
                accept=enter,
            )
        _say_proven(made, bundle_folder, folder, console)
        return made
    if measure_again:
        raise InputError("--measure-again is for a population with a proof; leave it out.")
    history = ReleaseHistory.read(data, name)
    memory = None if previous is None else read_memory(previous)
    if previous is None and not never_published:
        memory = earlier_memory(folder, bundle_folder)
        if memory is None and history.digests:
            require_alone(folder, bundle_folder)
    # All numbers are drawn anew, and readers may hold the release that is replaced: what both tell is measured.
    replaced = replaced_memory(folder, bundle_folder) if never_published else None
    stands = never_published and bundle_digest(bundle_folder) is not None
    earlier_search = other_search(bundle_folder)
    if new_series and memory is None:
        raise InputError("--new-series continues an earlier release, and there is none.")

    def accept(digest: str, population: str) -> None:
        if not never_published:
            history.require_continued(memory, digest)
            if memory is None:
                require_alone(folder, bundle_folder, digest)
        enter(digest, population)

    with progress_bars(console) as progress:
        bundle = make_bundle(
            store,
            name,
            policy_path,
            bundle_folder,
            folder=folder,
            previous=memory,
            replaced=replaced,
            workers=workers,
            progress=progress,
            accept=accept,
            new_series=new_series,
            processes=processes,
        )
        history.record(memory, bundle.digest, begins=never_published)
        progress("measuring the report of the agency", 0.0)
        with reporting_progress(progress):
            agency_findings = findings(bundle, read_policy(policy_path))
        write_report(folder, agency_findings)
        progress("measuring the report of the agency", 1.0)
    console.print(f"{bundle_folder} may be published: digest {bundle.digest}.", highlight=False)
    if earlier_search is not None:
        console.print(
            f"The release before it was made by search {earlier_search}, this one by search "
            f"{bundle.result.public.search}"
            + (
                "."
                if never_published
                else "; cells that are not drawn again keep the numbers of that search."
            ),
            highlight=False,
        )
    if memory is not None:
        apart = bundle.result.agency.differences
        console.print(
            f"It continues an earlier release: {bundle.result.agency.unchanged:,} cells kept their records, "
            f"{bundle.result.agency.changed:,} did not. {apart.cells:,} cells show another number, and "
            f"{apart.changed:,} of them are among these.",
            highlight=False,
        )
    for line in sum_lines(bundle):
        console.print(line, highlight=False)
    if stands:
        told = (
            "the report says what both tell together"
            if replaced is not None
            else (
                f"{folder} does not hold its memory, so that nobody can say what both tell together"
            )
        )
        console.print(
            "Note well: --never-published drew numbers without regard to the release that stood here. If that "
            f"was published, readers of both know more than of one; {told}.",
            highlight=False,
        )
    for entry in left(data):
        if (entry.said.get("act"), entry.said["dataset"]) == ("release", name):
            console.print(
                f"Note well: prepared tables of these people left as {entry.said['about']!r}. Their numbers "
                "are exact: name their totals in 'known_totals', or make them anew with this bundle 'beside'.",
                highlight=False,
            )
    for sentence in (*agency_findings.warnings, *policy_warnings(read_policy(policy_path))):
        console.print(f"Note well: {sentence}", highlight=False)
    console.print(
        f"{folder} is confidential: its report is measured on the true counts.", highlight=False
    )
    return bundle


def _say_proven(made: ProvenBundle, out: Path, folder: Path, console: Console) -> None:
    """What was spent, what is left, and what the promise does not cover."""
    spent = "was spent" if made.charged else "had been spent before; no more was"
    for sentence in (
        f"{out} may be published: digest {made.digest}.",
        f"Rho {float(made.rho):g} {spent} (one person's record is replaced by another), and "
        f"{float(made.left):g} of the budget is left.",
        *(
            [
                "Note well: these people were in a release without proof; the promise covers only what "
                "this one adds."
            ]
            if made.earlier
            else []
        ),
        f"{folder / NOISY} holds the noisy tables, "
        + (
            "and may be published as well"
            if made.few is None
            else "which stay here, since the file is small"
        )
        + f"; {ERRORS} beside it is confidential.",
    ):
        console.print(sentence, highlight=False)


@contextmanager
def progress_bars(console: Console) -> Iterator[Callable[[str, float], None]]:
    """Progress as one bar for each step; in a log as a line for each step, and one now and then."""
    if not console.is_terminal:
        yield _ProgressLines(console)
        return
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        console=console,
    )
    tasks: dict[str, int] = {}
    with bar:

        def show(task: str, done: float) -> None:
            said = task[:1].upper() + task[1:]
            if said not in tasks:
                tasks[said] = bar.add_task(said, total=1.0)
            bar.update(tasks[said], completed=done)  # type: ignore[arg-type]

        yield show


class _ProgressLines:
    """Progress for a log: a line where a step begins, where it ends, and after so many seconds."""

    def __init__(self, console: Console, seconds: float = 10.0) -> None:
        self._console, self._seconds = console, seconds
        self._said: dict[str, float] = {}
        self._last = 0.0

    def __call__(self, task: str, done: float) -> None:
        now = time.monotonic()
        before = self._said.get(task)
        if before is None or (done >= 1 and before < 1) or now - self._last >= self._seconds:
            self._said[task], self._last = done, now
            self._console.print(f"{task[:1].upper() + task[1:]}: {done:.0%}", highlight=False)
