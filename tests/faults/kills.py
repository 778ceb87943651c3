"""SIGKILL at every step: a process that forks once for each kill, and tells what it found afterwards.

It does all work once itself first, so that no child has to import or compile anything. Run as a program it
prints one line of JSON for each kind of work: calls to the system, kills, and wrong outcomes.
"""

from __future__ import annotations

import gc
import json
import multiprocessing
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

from faults.injector import Faults
from faults.world import WORK, Seen, Work, change, observe, verdict
from lustrum.model import LustrumError

__all__ = ["REFUSED", "calls_of", "in_child", "killed_apart", "killed_at", "main"]

REFUSED = 7
"""The exit code of work that was refused with a sentence."""

Both = tuple[dict[str, Seen], dict[str, Seen]]
"""What is seen before the work and after it."""


def in_child(task: Callable[[], int]) -> int:
    """Run a function in a child; gives its exit code, or minus the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            os._exit(task())
        except BaseException as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            os._exit(99)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _dies(work: str, root: str, value: int, at: int) -> None:
    try:
        with Faults(at, kill=True).active():
            change(work, root, value)
    except LustrumError:
        os._exit(REFUSED)
    os._exit(0)


def killed_apart(work: str, root: str, value: int, at: int) -> int:
    """Kill a process that changes something, at one of its calls; its exit code, or minus the signal.

    It is a process of its own and no fork: a fork of one that has used Arrow may wait for ever for its threads.
    """
    context = multiprocessing.get_context("spawn")
    child = context.Process(target=_dies, args=(work, root, value, at))
    child.start()
    child.join(120)
    if child.is_alive():
        child.kill()  # a kill at another place than was meant; the model allows for both states
        child.join()
    assert child.exitcode is not None
    return child.exitcode


def calls_of(work: Work, first: Path, where: Path) -> int:
    """How many calls to the system the work makes."""
    root = shutil.copytree(first, where / "count")
    with Faults().active() as faults:
        work.run(root)
    shutil.rmtree(root)
    return len(faults.calls)


def killed_at(work: Work, first: Path, where: Path, at: tuple[int, ...], seen: Both) -> list[str]:
    """Kill the work at a call, and the next attempts at others; then say what is wrong.

    Each attempt starts from what the kill before it has left. The last attempt is not killed.
    """
    root = shutil.copytree(first, where / "trial")
    wrong: list[str] = []
    for step in at:

        def dies(step: int = step) -> int:
            with Faults(step, kill=True).active():
                work.run(root)
            return 0

        code = in_child(dies)
        if code not in (-9, 0):
            wrong.append(f"exit code {code}")

    def looks() -> int:
        found = verdict(work, root, *seen, False)
        work.run(root)  # no hand is needed: the same work again is done
        found += verdict(work, root, *seen, True)
        for line in found:
            print(f"calls {at}: {line}", file=sys.stderr)
        return min(len(found), 98)

    if in_child(looks) != 0:
        wrong.append(f"calls {at}: not the old state and not the new one")
    shutil.rmtree(root)
    return wrong


def main(names: list[str], where: Path, kills: int) -> dict[str, dict[str, int]]:
    """Kill each work at up to so many places, spread evenly; one line for each."""
    out = {}
    for name in names:
        work, place = WORK[name], where / name
        place.mkdir(parents=True)
        first = work.start(place / "first")
        work.run(shutil.copytree(first, place / "warm"))
        good = shutil.copytree(first, place / "good")
        work.run(good)
        old = work.changes == "upgrade"
        seen: Both = ({}, {}) if old else (observe(first), observe(good))
        verdict(work, good, *seen, True)
        gc.collect()
        gc.freeze()  # so that no child copies all that is there by cleaning up
        total = calls_of(work, first, place)
        steps = sorted({1 + i * total // kills for i in range(min(kills, total))})
        steps = list(range(1, total + 1)) if kills >= total else steps
        wrong: list[str] = []
        for step in steps:
            wrong += killed_at(work, first, place, (step,), seen)
            # Another process is killed while it repairs what the first has left, somewhere else.
            wrong += killed_at(work, first, place, (step, step * 7 % total + 1), seen)
        out[name] = {"calls": total, "kills": 3 * len(steps), "wrong": len(wrong)}
        print(json.dumps({"work": name, **out[name]}), flush=True)
        for line in wrong[:5]:
            print(line, file=sys.stderr)
    return out


if __name__ == "__main__":
    results = main(sys.argv[3:] or list(WORK), Path(sys.argv[1]), int(sys.argv[2]))
    sys.exit(any(result["wrong"] for result in results.values()))
