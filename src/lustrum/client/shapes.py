"""What a server answers, as values with types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

__all__ = ["Answer", "Cell", "Hint", "Reason"]


@dataclass(frozen=True)
class Reason:
    """Why something is not shown, and what would help."""

    rule: str
    text: str
    way_forward: str


@dataclass(frozen=True)
class Hint:
    """What the preliminary rules would say to a question."""

    cells: int
    most: int
    passes: bool
    reasons: tuple[Reason, ...]


@dataclass(frozen=True)
class Cell:
    """One cell of a table; ``value`` is None where it is not shown or does not exist, which is never 0.

    An estimate has a ``standard_error`` and a ``reliability``: ``reliable``, ``caution`` or ``unreliable``.
    """

    codes: Mapping[str, str]
    labels: Mapping[str, str]
    value: float | None
    low: float | None = None
    high: float | None = None
    status: str = "F"
    unit: str = ""
    standard_error: float | None = None
    reliability: str | None = None


@dataclass(frozen=True)
class Answer:
    """An answer, a partial answer or a refusal."""

    id: str
    decision: str
    reasons: tuple[Reason, ...]
    table: Mapping[str, Any] | None = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)
    links: Mapping[str, str] = field(repr=False)
    query: Mapping[str, Any] = field(repr=False)
    risk_before: float | None = None
    risk_after: float | None = None
    utility: float | None = None
    bounds: Mapping[str, Any] | None = field(default=None, repr=False)
    sums: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Answer:
        """From the JSON of a server."""
        risk = body.get("risk") or {}
        return cls(
            id=body["id"],
            decision=body["decision"],
            reasons=tuple(Reason(**reason) for reason in body["reasons"]),
            table=body["table"],
            notes=tuple(body["notes"]),
            links=body["links"],
            query=body["query"],
            risk_before=risk.get("before"),
            risk_after=risk.get("after"),
            utility=body.get("utility"),
            bounds=body.get("bounds"),
            sums=tuple(body.get("sums") or ()),
        )

    @property
    def refused(self) -> bool:
        """Whether there is nothing to see."""
        return self.table is None

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the table, rows first."""
        return () if self.table is None else tuple(self.table["id"])

    def codes(self, variable: str) -> list[str]:
        """The codes of a variable, in the order of the table."""
        assert self.table is not None
        return list(self.table["dimension"][variable]["category"]["index"])

    def cells(self) -> Iterator[Cell]:
        """All cells, the last variable running fastest; none for a refusal."""
        if self.table is None:
            return
        dimensions = [self.table["dimension"][name]["category"] for name in self.variables]
        status = self.table.get("status")
        bounds = self.bounds or {}
        units = self._units()
        extension = self.table.get("extension", {})
        errors, grades = extension.get("standard_error"), extension.get("reliability")
        for place, codes in enumerate(product(*(d["index"] for d in dimensions))):
            yield Cell(
                codes=dict(zip(self.variables, codes, strict=True)),
                labels={
                    name: d["label"][code]
                    for name, d, code in zip(self.variables, dimensions, codes, strict=True)
                },
                value=self.table["value"][place],
                low=bounds["low"][place] if bounds else None,
                high=bounds["high"][place] if bounds else None,
                status=status[place] if status else "F",
                unit=units.get(codes[-1], units[""]) if codes else units[""],
                standard_error=errors[place] if errors else None,
                reliability=grades[place] or None if grades else None,
            )

    def _units(self) -> dict[str, str]:
        """The unit of each statistic by its code; that of a table without several under no code."""
        assert self.table is not None
        found = {"": str(self.table.get("extension", {}).get("unit", ""))}
        for name in self.table.get("role", {}).get("metric", ()):
            units = self.table["dimension"][name]["category"]["unit"]
            found |= {code: unit["label"] for code, unit in units.items()}
        return found

    def value(self, **codes: str) -> float | None:
        """The value of one cell, by the code of each variable."""
        if self.table is None:
            raise LookupError("The table was refused; it holds no values.")
        if set(codes) != set(self.variables):
            raise LookupError(f"Name a code for each of: {', '.join(self.variables)}.")
        place = 0
        for name in self.variables:
            index = self.codes(name)
            if codes[name] not in index:
                raise LookupError(
                    f"{name!r} has no code {codes[name]!r}; it has {', '.join(index)}."
                )
            place = place * len(index) + index.index(codes[name])
        value: float | None = self.table["value"][place]
        return value

    def to_pandas(self) -> Any:
        """The cells as a pandas frame with a column for each variable; pandas must be installed."""
        import pandas as pd

        rows = [
            {**cell.labels, "value": cell.value, "status": cell.status} for cell in self.cells()
        ]
        return pd.DataFrame(rows, columns=[*self.variables, "value", "status"])
