"""Faults that are put into the product while it runs, each by its name: the suite must report every one.

Those up to the traceback are failures that the product once had. What is replaced is named by strings, so that
this package still imports nothing of the code that protects.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from attacks.suppression.drive import run
from attacks.suppression.intake import odd
from attacks.suppression.judge import judge
from attacks.suppression.kinds import problem
from attacks.suppression.log import Line, of_outcome

MOST = 60
"""Problems of each kind that are tried before a fault counts as not found."""

Twist = Callable[[Any], Any]
"""Makes the faulty function from the right one."""

_SUPPRESSION = "lustrum.protect.suppression"
_FILES = "lustrum.readers"


@dataclass(frozen=True)
class Fault:
    """What is replaced by what, the kinds of problems that must show it, and the first number to try."""

    name: str
    kinds: tuple[str, ...]
    twists: Mapping[str, Twist]
    first: int = 0


def _letters(right: Any) -> Any:
    def release(spec: Any, *args: Any) -> Any:
        return right(replace(spec, reasons=True), *args)

    return release


def _ones(right: Any) -> Any:
    return lambda table, percent: np.ones(table.shape, dtype=np.int64)


def _always(answer: Any) -> Twist:
    return lambda right: lambda *args, **kwargs: answer


def _as_given(right: Any) -> Any:
    return lambda cell: [amount or 0 for amount in cell.given[: cell.ranks()]]


def _bare(right: Any) -> Any:
    """A search that hides nothing but the sensitive cells."""

    def solve(problem: Any, *args: Any) -> Any:
        found = right(problem, *args)
        return replace(found, suppressed=problem.fixed.copy())

    return solve


def _lenient(right: Any) -> Any:
    def audit(*args: Any, **kwargs: Any) -> Any:
        return replace(right(*args, **kwargs), safe=True, short=(), lines=())

    return audit


def _halved(right: Any) -> Any:
    return lambda level, mask, shape: right(level, mask, shape) // 2


def _narrow(right: Any) -> Any:
    """Stated intervals that are closer than what readers can work out."""

    def stated(release: Any, **kwargs: Any) -> Any:
        made = right(release, **kwargs)
        middle = made.low // 2 + made.high // 2
        known = ~release.shown & (made.high < 2**40)
        return replace(
            made,
            low=np.where(known, np.maximum(made.low, middle), made.low),
            high=np.where(known, np.minimum(made.high, middle + 1), made.high),
        )

    return stated


def _broken(right: Any) -> Any:
    def crash(*args: Any, **kwargs: Any) -> Any:
        raise OverflowError("Python int too large to convert to C long")

    return crash


_NOT_READ_BACK: dict[str, Twist] = {"lustrum.cli.suppress.audit_of_files": _always(None)}
"""What is written is not audited: otherwise the product itself finds some faults, and withholds the files."""

FAULTS = (
    Fault("letters tell sensitive cells from others", ("counts, 2 ways",),
          {f"{_SUPPRESSION}.method.Suppression.release": _letters, **_NOT_READ_BACK}),
    Fault("blank contributions count as nothing", ("blank contributions",),
          {f"{_FILES}.contributions._Cell.filled": _as_given}),
    Fault("a threshold on sums protects by one unit", ("marked by hand", "sums, 1 way"),
          {"lustrum.sensitivity.rules.threshold.margin_level": _ones,
           "lustrum.publish.suppression.inputs.margin_level": _ones}),
    Fault("no cube behind linked files", ("3 linked",),
          {f"{_SUPPRESSION}.linked.cube_behind": _always(None),
           "lustrum.publish.suppression.tables.cube_behind": _always(None)}, first=2),
    Fault("nobody inside attacks", ("sums, 2 ways",),
          {f"{_SUPPRESSION}.method.attacker_of": _always("outsider"),
           "lustrum.cli.suppress.attacker_of": _always("outsider")}),
    Fault("nobody inside attacks linked tables", ("linked holdings",),
          {f"{_SUPPRESSION}.linked.attacker_of": _always("outsider"),
           "lustrum.cli.suppress.attacker_of": _always("outsider")}, first=1),
    Fault("nobody inside attacks programmes", ("programme",),
          {"lustrum.publish.programme.suppress.attacker_of": _always("outsider")}, first=3),
    Fault("margins of a crosstab are categories", ("crosstab",),
          {"lustrum.model.labelled_counts._named_total": _always(None),
           "lustrum.model.labelled_counts._check_unnamed": _always(None)}),
    Fault("a total that is off ends in a traceback", ("intake",),
          {f"{_FILES}.true_tables._check_sums": _broken}),
    Fault("hidden counts may seem empty", ("counts, 2 ways",),
          {f"{_SUPPRESSION}.method.least_hidden": _always(0)}),
    Fault("sensitive cells alone are hidden", ("sums, 2 ways",),
          {f"{_SUPPRESSION}.choose.solve": _bare, f"{_SUPPRESSION}.choose.audit_pattern": _lenient}),
    Fault("levels are halved", ("sums, 2 ways",), {"lustrum.sensitivity.result._level": _halved}),
    Fault("stated intervals are too close", ("csv",),
          {f"{_SUPPRESSION}.method.with_intervals": _narrow, **_NOT_READ_BACK}, first=9),
)  # fmt: skip


def _place(name: str) -> tuple[Any, str]:
    """The module or class that holds what a dotted name stands for."""
    parts = name.split(".")
    for size in range(len(parts) - 1, 0, -1):
        try:
            holder = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:-1]:
            holder = getattr(holder, part)
        return holder, parts[-1]
    raise KeyError(name)


def _shows(kind: str, number: int) -> Line:
    with tempfile.TemporaryDirectory() as folder:
        drawn = problem(kind, number)
        return of_outcome(judge(drawn, run(drawn, Path(folder))), 0)


def _intake() -> str:
    for one in odd():
        with tempfile.TemporaryDirectory() as folder:
            if text := one.taken(Path(folder)):
                return f"intake, {text[:60]}"
    return ""


def _reported(kind: str, number: int) -> bool:
    line = _shows(kind, number)
    return bool(line.fails or line.zeros_known)


def found_by(fault: Fault, most: int = MOST) -> str:
    """The first problem in which the suite reports something with the fault and nothing without it."""
    for every in FAULTS:
        # A module that is first imported while another one is faulty would take the fault along for good.
        for name in every.twists:
            _place(name)
    with ExitStack() as stack:
        for name, twist in fault.twists.items():
            holder, attribute = _place(name)
            faulty = twist(getattr(holder, attribute))
            stack.enter_context(patch.object(holder, attribute, faulty))
        if "intake" in fault.kinds:
            return _intake()
        tried = range(fault.first, fault.first + most)
        found = next(((k, n) for n in tried for k in fault.kinds if _reported(k, n)), None)
    if found is None or _reported(*found):
        return ""
    return f"{found[0]} {found[1]}"
