"""Whether all identifiers of a version differ, in bounded memory and without doubt.

The identifiers are read back from the version itself. As many as there is room for are sorted and written to
a spill file as a run. Then all runs are read side by side, from the lowest identifiers to the highest, a window
at a time. Windows end at identifiers that were sampled from the runs, so that none holds more than there is
room for.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

Ids = npt.NDArray[np.int64]

ROOM = 1 << 23
"""Identifiers that are held in memory at once: 64 MiB of them, and as much again while they are sorted."""

_SAMPLES = 1 << 10  # parts of a run that are set apart by a sample


@dataclass(frozen=True)
class _SpilledRun:
    """Sorted identifiers in the spill file: where they begin, how many, and some of them."""

    start: int
    size: int
    step: int
    samples: Ids


def first_repeated(
    batches: Callable[[], Iterable[Ids]], count: int, folder: Path
) -> tuple[int, int] | None:
    """The first two places, from 0, of the lowest identifier that is there twice; None if there is none.

    ``batches`` gives the identifiers from the beginning, each time that it is called. If there are more
    than there is room for, a spill file stands in the folder, readable by its owner only and without a name.
    """
    if count <= ROOM:
        lowest = min(_repeated_in_runs(batches()), default=None)
    else:
        path = folder / "identifiers.part"
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            path.unlink()  # the file goes when it is closed, however the process ends
            runs: list[_SpilledRun] = []
            lowest = min(_repeated_in_runs(batches(), handle, runs), default=None)
            # Windows ascend, so that no later one holds a lower one.
            across = next(_repeated_in(_windows(runs, handle)), lowest)
            lowest = across if lowest is None or across is None else min(lowest, across)
        finally:
            os.close(handle)
    return None if lowest is None else _places(batches(), lowest)


def _repeated_in_runs(
    batches: Iterable[Ids], handle: int | None = None, runs: list[_SpilledRun] | None = None
) -> Iterator[int]:
    """The lowest repeated identifier of each run that has one; runs are set aside where there is a file."""
    written = 0
    for ids in _gathered(batches):
        ids.sort()
        twice = _lowest_in(ids)
        if twice is not None:
            yield twice
            # Within a run each stands once, so that no window fills with one identifier.
            ids = ids[np.append(True, ids[1:] != ids[:-1])]
        if handle is not None and runs is not None:
            step = max(1, -(-ids.size // _SAMPLES))
            runs.append(_SpilledRun(written, ids.size, step, ids[::step].copy()))
            written += _write(handle, ids)


def _repeated_in(ordered: Iterable[Ids]) -> Iterator[int]:
    """The lowest repeated identifier of each window that has one."""
    for window in ordered:
        twice = _lowest_in(window)
        if twice is not None:
            yield twice


def _windows(runs: list[_SpilledRun], handle: int) -> Iterator[Ids]:
    """All identifiers of the runs in ascending order, some at a time; those that are equal come together."""
    samples = np.sort(np.concatenate([run.samples for run in runs] or [np.empty(0, np.int64)]))
    # Between two ends a run has at most the samples there, and one more step before and after them.
    longest = max((run.step for run in runs), default=1)
    apart = max(1, ROOM // longest - 2 * len(runs))
    ends = np.unique(samples[apart::apart])
    done = [0] * len(runs)
    for end in (*ends.tolist(), None):
        parts: list[Ids] = []
        for i, run in enumerate(runs):
            stop = run.size
            if end is not None:
                # The run passes the end between two samples: only that step is looked at.
                after = int(np.searchsorted(run.samples, end))
                stop = min(run.size, after * run.step)
            part = _read(handle, run.start + done[i], max(0, stop - done[i]))
            if end is not None:
                part = part[: int(np.searchsorted(part, end))]
            parts.append(part)
            done[i] += part.size
        window = np.concatenate(parts)
        window.sort(kind="stable")  # which merges what is sorted already
        yield window


def _gathered(batches: Iterable[Ids]) -> Iterator[Ids]:
    """Batches together, as many identifiers as there is room for."""
    room, held = np.empty(0, np.int64), 0
    for batch in batches:
        while batch.size:
            if not room.size:
                room, held = np.empty(ROOM, np.int64), 0
            part = batch[: ROOM - held]
            room[held : held + part.size] = part
            held, batch = held + part.size, batch[part.size :]
            if held == ROOM:
                yield room
                room, held = np.empty(0, np.int64), 0
    if held:
        yield room[:held]


def _lowest_in(ordered: Ids) -> int | None:
    """The lowest identifier that sorted ones hold twice."""
    twice = ordered[1:] == ordered[:-1]
    index = int(np.argmax(twice)) if twice.size else 0
    return int(ordered[index]) if twice.size and twice[index] else None


def _places(batches: Iterable[Ids], wanted: int) -> tuple[int, int]:
    """Where an identifier stands for the first and the second time."""
    positions: list[int] = []
    first = 0
    for batch in batches:
        positions += (first + np.flatnonzero(batch == wanted)[:2]).tolist()
        if len(positions) >= 2:
            break
        first += batch.size
    return positions[0], positions[1]


def _write(handle: int, ids: Ids) -> int:
    left = ids.data.cast("B")
    while left:
        left = left[os.write(handle, left) :]
    return int(ids.size)


def _read(handle: int, start: int, count: int) -> Ids:
    out = np.empty(count, dtype=np.int64)
    left, offset = out.data.cast("B"), 8 * start
    while left:
        read = os.preadv(handle, [left], offset)
        if not read:
            raise OSError("the identifiers that were set aside cannot be read again")
        left, offset = left[read:], offset + read
    return out
