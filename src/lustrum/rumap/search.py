"""A search among parameters that no grid can list: for the frontier, or for the best under a limit of risk.

A tree-structured Parzen estimator (Bergstra, Bardenet, Bengio and Kégl 2011; for two aims at once Ozaki,
Tanigaki, Watanabe and Onishi 2020) proposes parameters by what earlier ones gave. It comes from Optuna, which
the extra ``search`` installs. Proposals are asked for in groups of a fixed size, so the same seed gives the
same map for any number of workers.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from lustrum.model import InputError, Table
from lustrum.model.errors import check_known
from lustrum.model.plugins import load
from lustrum.rumap.cases import Cases
from lustrum.rumap.grids import MapMethod
from lustrum.rumap.map import Over, RUMap, ordered, sweep_of
from lustrum.rumap.points import Draw, Point, compared
from lustrum.rumap.sweep import Cache, Progress, Sweep

if TYPE_CHECKING:
    from pathlib import Path

    from lustrum.audit import Attacker

_GROUP = 4
"""Proposals that are measured together; part of the result, so it does not follow the machine."""

_START = 10
"""Proposals by chance before the search learns from them."""

_FEW = 4
"""Draws of a proposal; those that come into question for a choice are drawn as often as asked."""

_LAST = 8
"""How many of the best proposals are drawn as often as asked before one is chosen."""


@dataclass(frozen=True)
class Span:
    """All values from ``low`` to ``high``, whole ones if both ends are; ``log`` looks at ratios."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        if not self.low < self.high:
            raise InputError(f"A span goes from a lower end to a higher one, not {self}.")
        if self.log and not self.low > 0:
            raise InputError(f"A span on a scale of ratios starts above 0, not at {self.low:g}.")

    @property
    def whole(self) -> bool:
        return isinstance(self.low, int) and isinstance(self.high, int)


@dataclass(frozen=True, eq=False)
class Space:
    """A method with parameters to search: a :class:`Span`, a list of values, or one value."""

    make: Callable[..., MapMethod]
    parameters: Mapping[str, Any]

    def proposal(self, trial: Any, prefix: str) -> MapMethod:
        """The method with the values that a trial proposes."""
        values: dict[str, Any] = {}
        for name, given in self.parameters.items():
            key = f"{prefix} {name}"
            if isinstance(given, Span):
                ask = trial.suggest_int if given.whole else trial.suggest_float
                value = ask(key, given.low, given.high, log=given.log)
                # Six digits: the proposals of a library differ in last bits between processors.
                values[name] = (
                    value if given.whole else min(max(float(f"{value:.6g}"), given.low), given.high)
                )
            elif isinstance(given, list):
                values[name] = given[trial.suggest_categorical(key, range(len(given)))]
            else:
                values[name] = given
        return self.make(**values)


def space(method: str | Callable[..., MapMethod], **parameters: Any) -> Space:
    """A method and what to search: spans, lists of values, or single values.

    >>> found = space("random-rounding", base=Span(2, 20))
    >>> found.parameters["base"].whole
    True
    """
    kind: Any = load("lustrum.methods", method) if isinstance(method, str) else method
    if isinstance(method, str):
        known = [field.name for field in fields(kind)]
        check_known(parameters, known, f"The method {method!r} has no parameter")
    return Space(kind, parameters)


def find_frontier(
    tables: Table | Sequence[Table] | Mapping[str, Table] | Cases,
    spaces: Sequence[Space | MapMethod],
    measures: Sequence[Any] | None = None,
    attackers: Sequence[Attacker | str] | None = None,
    *,
    trials: int = 64,
    over: Over = "worst",
    replications: int = 4,
    seed: int = 0,
    workers: int | None = None,
    cache: Cache | Path | str | None = None,
    progress: Progress | None = None,
) -> RUMap:
    """Look for the frontier among all parameters of some methods; the map of what was tried.

    ``trials`` proposals are measured, each drawn ``replications`` times. The frontier of the map is the best
    that the search has found: it can only grow with more trials.

    >>> table = Table.from_counts([[1, 14, 3], [17, 83, 0]])
    >>> found = find_frontier(table, [space("random-rounding", base=Span(2, 20))], trials=12)
    >>> 1 <= len(found.frontier()) <= 12
    True
    """
    if not spaces:
        raise InputError("A search needs one method or more, with what to search of each.")
    sweep = sweep_of(
        tables,
        list(spaces),
        measures,
        attackers,
        replications=replications,
        seed=seed,
        workers=workers,
        cache=cache,
    )
    work = _MethodSearch(sweep, over, progress, trials)
    sign = sweep.measures.sign
    with _optuna() as optuna:
        study = optuna.create_study(
            directions=["minimize", "maximize"], sampler=_sampler(optuna, seed)
        )
        work.run(study, replications, lambda point: (point.risk, sign * point.utility))
    return work.map


def searched(
    sweep: Sweep, max_risk: float, trials: int, over: Over, progress: Progress | None
) -> RUMap:
    """What a search for most utility under a limit of risk has measured; the best are drawn in full.

    The methods of the sweep may be spaces.
    """
    work = _MethodSearch(sweep, over, progress, trials)
    sign = sweep.measures.sign
    with _optuna() as optuna:
        study = optuna.create_study(direction="maximize", sampler=_sampler(optuna, sweep.seed))
        work.run(
            study,
            min(_FEW, sweep.replications),
            lambda point: (sign * point.utility,),
            lambda point: point.risk_range[1] - max_risk,
        )
    points = [p for p in work.map.over(over) if not p.is_corner and np.isfinite(p.utility)]
    # Few draws leave a wide interval: one that reaches under the limit may prove to be under it.
    points.sort(
        key=lambda p: (
            max(0.0, compared(compared(p.risk_range[0]) - max_risk)),
            compared(-sign * p.utility),
            p.index,
        )
    )
    work.measure([p.index for p in points[:_LAST]], sweep.replications)
    return work.map


class _MethodSearch:
    """Measures what is proposed; the same method twice is measured once."""

    def __init__(self, sweep: Sweep, over: Over, progress: Progress | None, trials: int) -> None:
        if type(trials) is not int or trials < 1:
            raise InputError(f"A search needs one trial or more, not {trials!r}.")
        self.spaces = [
            s if isinstance(s, Space) else Space(lambda method=s: method, {}) for s in sweep.methods
        ]
        self.sweep = sweep
        self.over: Over = over
        self._progress = progress or (lambda done, total: None)
        self._trials = trials
        self._methods: list[MapMethod] = []
        self._places: dict[str, int] = {}
        self._draws: dict[tuple[int, int], list[Draw]] = {}
        self._fixed: set[int] = set()

    @property
    def map(self) -> RUMap:
        """Everything that was measured."""
        sweep = replace(self.sweep, methods=tuple(self._methods))
        return RUMap(sweep, ordered(d for job_draws in self._draws.values() for d in job_draws))

    def run(
        self,
        study: Any,
        draws: int,
        aims: Callable[[Point], tuple[float, ...]],
        above: Callable[[Point], float] | None = None,
    ) -> None:
        """Ask, measure and tell, group by group."""
        done = 0
        while done < self._trials:
            trials = [study.ask() for _ in range(min(_GROUP, self._trials - done))]
            places = [self._place(self._proposal(trial)) for trial in trials]
            self.measure(places, draws)
            points = {p.index: p for p in self.map.over(self.over) if not p.is_corner}
            for trial, index in zip(trials, places, strict=True):
                scores = aims(points[index])
                if above is not None:
                    trial.set_constraint("limit", _finite(above(points[index])))
                if all(np.isfinite(scores)):
                    study.tell(trial, list(scores))
                else:
                    study.tell(trial, state=_failed())
            done += len(trials)
            self._progress(done, self._trials)

    def _proposal(self, trial: Any) -> MapMethod:
        which = trial.suggest_categorical("method", range(len(self.spaces)))
        return self.spaces[which].proposal(trial, str(which))

    def _place(self, method: MapMethod) -> int:
        key = json.dumps(method.to_mapping(), sort_keys=True, default=str)
        if key not in self._places:
            self._places[key] = len(self._methods)
            self._methods.append(method)
        return self._places[key]

    def measure(self, places: Sequence[int], draws: int) -> None:
        """Draw methods until each has so many draws; one without chance needs one."""
        sweep = replace(self.sweep, methods=tuple(self._methods))
        for first, last in ((0, 1), (1, draws)):
            jobs = [
                (index, r)
                for index in dict.fromkeys(places)
                if index not in self._fixed
                for r in range(first, last)
                if (index, r) not in self._draws
            ]
            for job_draws, again in sweep.all_of(jobs):
                self._draws[job_draws[0].method, job_draws[0].replication] = job_draws
                if not again:
                    self._fixed.add(job_draws[0].method)


@contextmanager
def _optuna() -> Iterator[ModuleType]:
    """The library, silent: what it says of trials follows from true counts."""
    try:
        import optuna
    except ImportError:
        raise InputError(
            "A search needs Optuna; install the extra: pip install 'lustrum[search]'."
        ) from None
    level = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
            yield optuna
    finally:
        optuna.logging.set_verbosity(level)


def _sampler(optuna: ModuleType, seed: int) -> Any:
    return optuna.samplers.TPESampler(
        seed=seed, n_startup_trials=_START, multivariate=True, group=True
    )


def _failed() -> Any:
    from optuna.trial import TrialState

    return TrialState.FAIL


def _finite(value: float) -> float:
    return value if np.isfinite(value) else 1e9
