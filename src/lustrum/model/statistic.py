"""What the cells of a table show: a count, a sum, or a number that is worked out from counts and sums.

A statistic is written as an object, or shorter as a text such as ``ratio:wages:employees``; the reference of
the HTTP API shows both for each. Without a measure a share or a growth is that of the count,
``share:count:total``. Counts and sums are protected numbers; everything else is worked out from these by the
part that answers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lustrum.model.errors import QueryError, check_known, choices
from lustrum.model.text import say

KINDS = ("count", "sum", "mean", "ratio", "share", "growth", "median", "quantile")
COUNT = "count"
TOTAL_SHARE = "total"
_MOST_DECIMALS = 6
_KEYS = ("statistic", "measure", "per", "of", "since", "variable", "at", "decimals")
_OWN = {
    "ratio": "per",
    "share": "of",
    "growth": "since",
    "median": "variable",
    "quantile": "variable",
}
"""The key that says what a number is compared with, or what it is a quantile of."""

_SUCH_AS = {
    "per": "ratio:wages:employees",
    "of": "share:turnover:total",
    "since": "growth:turnover:turnover_before",
    "variable": "median:age",
}


@dataclass(frozen=True)
class Period:
    """An earlier period: another category of the variable by which the question selects its period."""

    variable: str
    code: str


@dataclass(frozen=True)
class Quantity:
    """A number that is protected by itself: how many, or the sum of a measure; in an earlier period or not.

    ``histogram`` is a variable into whose classes those who are counted fall.
    """

    measure: str | None = None
    weight: str | None = None
    period: Period | None = None
    histogram: str | None = None


@dataclass(frozen=True)
class Statistic:
    """One statistic of a table.

    - ``count``, ``sum``, ``mean``: of a measure, where there is one.
    - ``ratio``: the sum of the measure over that of the measure ``per``.
    - ``share``: of the whole population (``total``) or within each category of the variable ``of``.
    - ``growth``: since the measure ``since``, which is the same one earlier, or since an earlier period.
    - ``median``, ``quantile`` (at ``at``, in thousandths): of a variable whose codes are classes of a number.

    ``decimals`` says how many a number that is worked out shall have.

    >>> Statistic.parse("ratio:wages:employees")
    Statistic(ratio:wages:employees)
    """

    kind: str = COUNT
    measure: str | None = None
    per: str | None = None
    of: str | None = None
    since: str | Period | None = None
    decimals: int | None = None
    variable: str | None = None
    at: float | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise QueryError(
                say(
                    "There is no statistic {kind!r}; {choices}.",
                    kind=self.kind,
                    choices=choices(self.kind, KINDS),
                )
            )
        required_key = _OWN.get(self.kind)
        for key in dict.fromkeys(_OWN.values()):
            given = getattr(self, key) is not None
            if given and key != required_key:
                raise QueryError(
                    say(
                        "The statistic {kind!r} has no {key!r}; leave it out.",
                        kind=self.kind,
                        key=key,
                    )
                )
            if not given and key == required_key:
                raise QueryError(
                    say(
                        "The statistic {kind!r} needs {key!r}, such as {such_as}.",
                        kind=self.kind,
                        key=key,
                        such_as=_SUCH_AS[key],
                    )
                )
        if self.kind in ("sum", "mean", "ratio") and self.measure is None:
            raise QueryError(
                say(
                    "The statistic {kind!r} needs a measure, such as {kind}:turnover.",
                    kind=self.kind,
                )
            )
        if self.variable is not None and self.measure is not None:
            raise QueryError(
                say("The statistic {kind!r} is of a variable, not of a measure.", kind=self.kind)
            )
        if (self.at is not None) != (self.kind == "quantile"):
            raise QueryError(say("'at' belongs to a quantile, such as quantile:age:0.9."))
        if self.at is not None and not (0 < self.at < 1 and _in_thousandths(self.at)):
            raise QueryError(
                say("'at' must be a number between 0 and 1 in thousandths, such as 0.25.")
            )
        if self.kind == COUNT and self.measure is not None:
            raise QueryError(
                say("A count has no measure; ask for the sum of {name!r}.", name=self.measure)
            )
        if self.decimals is not None and self.kind in (COUNT, "sum"):
            raise QueryError(
                say("A count or a sum has the decimals of its measure; leave 'decimals' out.")
            )
        if self.decimals is not None and not 0 <= self.decimals <= _MOST_DECIMALS:
            raise QueryError(
                say("'decimals' must be a whole number from 0 to {most}.", most=_MOST_DECIMALS)
            )

    def __repr__(self) -> str:
        places = "" if self.decimals is None else f", decimals={self.decimals}"
        return f"Statistic({self.text}{places})"

    @property
    def text(self) -> str:
        """The short form, without decimals."""
        if self.kind == COUNT:
            return COUNT
        if self.variable is not None:
            return ":".join(
                [self.kind, self.variable, *([] if self.at is None else [f"{self.at:g}"])]
            )
        parts = [self.kind, self.measure or COUNT]
        detail = getattr(self, _OWN[self.kind]) if self.kind in _OWN else None
        if isinstance(detail, Period):
            parts.append(f"{detail.variable}={detail.code}")
        elif detail is not None:
            parts.append(detail)
        return ":".join(parts)

    @property
    def derived(self) -> bool:
        """Whether it is worked out from protected numbers, and not one of them."""
        return self.kind not in (COUNT, "sum")

    def quantities(self, weight: str | None = None) -> tuple[Quantity, ...]:
        """The protected numbers that it takes: the first over the second where there are two."""
        if self.variable is not None:
            return (Quantity(None, weight, histogram=self.variable),)
        first = Quantity(self.measure, weight)
        if self.kind == "mean":
            return first, Quantity(None, weight)
        if self.kind == "ratio":
            return first, Quantity(self.per, weight)
        if isinstance(self.since, Period):
            return first, Quantity(self.measure, weight, self.since)
        if self.since is not None:
            return first, Quantity(self.since, weight)
        return (first,)

    @classmethod
    def parse(cls, text: str, measure: str | None = None) -> Statistic:
        """Read the short form; ``measure`` is the measure of a form that names none, such as ``mean``."""
        kind, _, rest = text.partition(":")
        if kind == COUNT:
            if rest:
                raise QueryError(
                    say("A count has no measure; ask for the sum of {name!r}.", name=rest)
                )
            return cls()
        name, _, detail = rest.partition(":")
        if kind in ("median", "quantile"):
            if kind == "median" and detail:
                raise QueryError(
                    say("{text!r} has too many parts; write it as median:age.", text=text)
                )
            return cls(kind, variable=name or None, at=_share(detail) if detail else None)
        chosen = None if name == COUNT else (name or measure)
        if kind not in _OWN:
            if detail:
                raise QueryError(
                    say(
                        "{text!r} has too many parts; write it as {kind}:turnover.",
                        text=text,
                        kind=kind,
                    )
                )
            return cls(kind, chosen)
        since: str | Period | None = detail or None
        if kind == "growth" and "=" in detail:
            variable, _, code = detail.partition("=")
            since = Period(variable, code)
        return cls(kind, chosen, **{_OWN[kind]: since})  # type: ignore[arg-type]

    @classmethod
    def from_mapping(cls, raw: object, measure: str | None = None) -> Statistic:
        """Read either form; every mistake is one clear sentence."""
        if isinstance(raw, str):
            return cls.parse(raw, measure)
        if not isinstance(raw, Mapping) or not isinstance(raw.get("statistic"), str):
            raise QueryError(
                "Each entry of 'statistics' must be a text such as 'mean:turnover' or an object with "
                "'statistic'."
            )
        check_known(raw, _KEYS, "A statistic has no key", QueryError)
        for key in ("measure", "per", "of", "variable"):
            if raw.get(key) is not None and not isinstance(raw[key], str):
                raise QueryError(f"{key!r} of a statistic must be a name in quotes.")
        decimals = raw.get("decimals")
        if decimals is not None and (isinstance(decimals, bool) or not isinstance(decimals, int)):
            raise QueryError("'decimals' of a statistic must be a whole number.")
        kind = raw["statistic"]
        measure_name = raw.get("measure")
        if measure_name is None and kind in ("sum", "mean", "ratio"):
            measure_name = measure
        at = raw.get("at")
        if at is not None and (isinstance(at, bool) or not isinstance(at, (int, float))):
            raise QueryError("'at' of a statistic must be a number between 0 and 1.")
        return cls(
            kind,
            measure_name,
            raw.get("per"),
            raw.get("of"),
            _since(raw.get("since")),
            decimals,
            raw.get("variable"),
            at,
        )

    def to_mapping(self) -> dict[str, Any]:
        """The JSON form; :meth:`from_mapping` reads it back unchanged."""
        out: dict[str, Any] = {"statistic": self.kind}
        for key in ("measure", "per", "of", "variable", "at", "decimals"):
            if getattr(self, key) is not None:
                out[key] = getattr(self, key)
        if isinstance(self.since, Period):
            out["since"] = {"variable": self.since.variable, "code": self.since.code}
        elif self.since is not None:
            out["since"] = self.since
        return out


def _share(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise QueryError(
            say("'at' must be a number between 0 and 1 in thousandths, such as 0.25.")
        ) from None


def _in_thousandths(value: float) -> bool:
    return abs(value * 1000 - round(value * 1000)) < 1e-9


def _since(raw: object) -> str | Period | None:
    if raw is None or isinstance(raw, str):
        return raw
    if isinstance(raw, Mapping) and set(raw) == {"variable", "code"}:
        variable, code = raw["variable"], raw["code"]
        if isinstance(variable, str) and isinstance(code, str):
            return Period(variable, code)
    raise QueryError(
        "'since' must be the name of a measure, or an object with a 'variable' and the 'code' of the earlier "
        "period."
    )
