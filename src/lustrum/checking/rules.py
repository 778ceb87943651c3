"""When an output is safe by itself: the rules of a session, and what they say of each kind of output."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from lustrum.model import InputError, Table
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.sensitivity import AnyOf, Dominance, PPercent, Rule, Threshold
from lustrum.sensitivity.rule import check_whole

Verdict = Literal["pass", "review", "fail"]

OF_VALUES = ("sum", "mean", "std", "var")
"""Statistics that one large contribution can give away, so that p % and dominance are asked too."""
OF_ONE = ("min", "max", "first", "last")
"""Statistics that are the value of one person."""


@dataclass(frozen=True)
class OutputRules:
    """What a safe room asks of each output.

    ``threshold`` people at least in a cell, a bin and an interval of a survival table; ``p`` percent and
    dominance (the largest ``n`` hold at most ``k`` percent) for sums, means and variances; ``dof`` degrees of
    freedom that a model leaves. A quantile needs as many people that its smaller side has half the threshold.

    >>> OutputRules().rule_for("mean").to_mapping()["rule"]
    'any-of'
    """

    threshold: int = 10
    p: float = 10
    n: int = 2
    k: float = 90
    dof: int = 10

    def __post_init__(self) -> None:
        check_whole(self.threshold, "'threshold'", 2)
        check_whole(self.dof, "'dof'", 1)
        PPercent(p=self.p)
        Dominance(n=self.n, k=self.k)

    def rule_for(self, statistic: str) -> Rule:
        few = Threshold(self.threshold)
        if statistic not in OF_VALUES:
            return few
        return AnyOf((few, PPercent(p=self.p), Dominance(n=self.n, k=self.k)))

    def judge(self, table: Table, counts: Ints, statistics: Sequence[str]) -> dict[str, Mask]:
        """Which cells fail, by the name of the rule."""
        found: dict[str, Mask] = {}
        for statistic in statistics:
            for finding in self.rule_for(statistic).judge(table).findings:
                key = finding.reason.rule
                found[key] = found.get(key, False) | finding.cells
            share = _share_below(statistic)
            if share is not None:
                few = (counts > 0) & (counts * 2 * min(share, 1 - share) < self.threshold)
                found["quantile"] = found.get("quantile", np.zeros_like(few)) | few
            if statistic in OF_ONE:
                found["one person's value"] = counts > 0
        return {name: cells for name, cells in found.items() if bool(cells.any())}

    def judge_model(self, results: Any) -> tuple[Verdict, list[str]]:
        """Whether a fitted model is safe: degrees of freedom, and regressors that few people have."""
        nobs, left = (_number(results, name) for name in ("nobs", "df_resid"))
        if left <= 0:
            return "fail", [f"saturated: {nobs:g} observations leave no degree of freedom"]
        if left < self.dof:
            return "fail", [f"{left:g} residual degrees of freedom, fewer than {self.dof}"]
        few = self._rare(getattr(results, "model", None))
        if few:
            return "review", [f"fewer than {self.threshold} people differ in {', '.join(few)}"]
        return "pass", []

    def _rare(self, model: Any) -> list[str]:
        """Regressors of two values of which one is rare: their coefficient is about few people."""
        exog = getattr(model, "exog", None)
        if exog is None:
            return []
        columns: Floats = np.asarray(exog, dtype=np.float64)
        names = getattr(model, "exog_names", None) or [f"x{i}" for i in range(columns.shape[1])]
        rare = []
        for at, name in enumerate(names):
            values, counts = np.unique(columns[:, at], return_counts=True)
            if values.size == 2 and counts.min() < self.threshold:
                rare.append(str(name))
        return rare

    def to_mapping(self) -> dict[str, float]:
        return dict(vars(self))


def _share_below(statistic: str) -> float | None:
    """The share of people below a quantile; None for other statistics."""
    if statistic == "median":
        return 0.5
    if statistic.startswith("quantile"):
        return float(statistic.removeprefix("quantile(").removesuffix(")"))
    return None


def statistic_of(aggfunc: object) -> tuple[str, Callable[[Any], Any]]:
    """The name of a statistic, and what computes it for groups as pandas has them.

    >>> statistic_of("mean")[0], statistic_of(0.25)[0]
    ('mean', 'quantile(0.25)')
    """
    if isinstance(aggfunc, float):
        if not 0 < aggfunc < 1:
            raise InputError(f"A quantile lies between 0 and 1, not at {aggfunc}.")
        return f"quantile({aggfunc:g})", lambda groups: groups.quantile(aggfunc)
    name = str(getattr(aggfunc, "__name__", aggfunc))
    name = {"size": "count", "len": "count", "amin": "min", "amax": "max", "nanmean": "mean"}.get(
        name, name
    )
    known = ("count", *OF_VALUES, "median", *OF_ONE)
    if name not in known:
        raise InputError(
            f"'aggfunc' is one of {', '.join(known)}, or a quantile such as 0.25, not {name!r}."
        )
    return name, lambda groups: getattr(groups, name)()


def _number(results: Any, name: str) -> float:
    value = getattr(results, name, None)
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError):
        raise InputError(
            f"A fitted model says its {name!r}, as those of statsmodels do; this is {type(results).__name__}."
        ) from None


def described(rules: Mapping[str, Mask]) -> str:
    """How many cells fail which rule.

    >>> described({"threshold": np.array([True, True, False])})
    '2 cells fail threshold'
    """
    return "; ".join(
        f"{int(cells.sum())} {'cell fails' if cells.sum() == 1 else 'cells fail'} {name}"
        for name, cells in rules.items()
    )
