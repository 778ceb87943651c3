"""What a server answers, as values with types."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from importlib import import_module
from itertools import product
from typing import Any

from lustrum.model.decided import Reason

RefusalReason = Reason
"""Why something is not shown, and what would help."""

Column = tuple[str, Sequence[float | str | None]]
"""The values of a column, with their kind."""


@dataclass(frozen=True)
class Hint:
    """What the preliminary rules would say to a question."""

    cells: int
    most: int
    passes: bool
    reasons: tuple[RefusalReason, ...]


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
    reasons: tuple[RefusalReason, ...]
    table: Mapping[str, Any] | None = field(repr=False)
    notes: tuple[str, ...] = field(repr=False)
    links: Mapping[str, str] = field(repr=False)
    query: Mapping[str, object] = field(repr=False)
    risk_before: float | None = None
    risk_after: float | None = None
    utility: float | None = None
    bounds: Mapping[str, Any] | None = field(default=None, repr=False)
    sums: tuple[Mapping[str, object], ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> Answer:
        """From the JSON of a server."""
        risk = body.get("risk") or {}
        return cls(
            id=body["id"],
            decision=body["decision"],
            reasons=tuple(RefusalReason(**reason) for reason in body["reasons"]),
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
        return self.table is None

    @property
    def variables(self) -> tuple[str, ...]:
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
        for position, codes in enumerate(product(*(d["index"] for d in dimensions))):
            yield Cell(
                codes=dict(zip(self.variables, codes, strict=True)),
                labels={
                    name: d["label"][code]
                    for name, d, code in zip(self.variables, dimensions, codes, strict=True)
                },
                value=self.table["value"][position],
                low=bounds["low"][position] if bounds else None,
                high=bounds["high"][position] if bounds else None,
                status=status[position] if status else "F",
                unit=units.get(codes[-1], units[""]) if codes else units[""],
                standard_error=errors[position] if errors else None,
                reliability=grades[position] or None if grades else None,
            )

    def _units(self) -> dict[str, str]:
        """The unit of each statistic by its code; that of a table without several under no code."""
        assert self.table is not None
        unit_labels = {"": str(self.table.get("extension", {}).get("unit", ""))}
        for name in self.table.get("role", {}).get("metric", ()):
            units = self.table["dimension"][name]["category"]["unit"]
            unit_labels |= {code: unit["label"] for code, unit in units.items()}
        return unit_labels

    def value(self, **codes: str) -> float | None:
        """The value of one cell, by the code of each variable."""
        if self.table is None:
            raise LookupError("The table was refused; it holds no values.")
        if set(codes) != set(self.variables):
            raise LookupError(f"Name a code for each of: {', '.join(self.variables)}.")
        position = 0
        for name in self.variables:
            index = self.codes(name)
            if codes[name] not in index:
                raise LookupError(
                    f"{name!r} has no code {codes[name]!r}; it has {', '.join(index)}."
                )
            position = position * len(index) + index.index(codes[name])
        value: float | None = self.table["value"][position]
        return value

    def to_pandas(self, *, labels: bool = True, wide: bool = False) -> Any:
        """The cells as a pandas frame, a row for each; pandas must be installed.

        Codes stand in a column for each variable and ``labels`` beside them; a ``wide`` frame has the last
        variable as columns and labels instead of codes. A value that is not shown is missing. A refusal is an
        error that says why, never an empty frame.
        """
        import pandas as pd

        columns = self._columns(labels, wide)
        frame = pd.DataFrame(
            {name: pd.Series(values, dtype=kind) for name, (kind, values) in columns.items()}
        )
        if not wide:
            return frame
        rows = list(self.variables[:-1] or self.variables)
        frame = frame.set_index(rows) if rows else frame
        frame.columns.name = self.variables[-1] if len(self.variables) > 1 else None
        return frame

    def to_polars(self, *, labels: bool = True, wide: bool = False) -> Any:
        """The same as a polars frame."""
        import polars as pl

        kinds: dict[str, pl.DataType | type[pl.DataType]] = {
            "Int64": pl.Int64,
            "Float64": pl.Float64,
            "str": pl.String,
        }
        return pl.DataFrame(
            [
                pl.Series(name, values, dtype=kinds[kind])
                for name, (kind, values) in self._columns(labels, wide).items()
            ]
        )

    def to_arrow(self, *, labels: bool = True, wide: bool = False) -> Any:
        """The same as an Arrow table; pyarrow must be installed, which the client needs for nothing else."""
        pa: Any = import_module("pyarrow")
        kinds = {"Int64": pa.int64(), "Float64": pa.float64(), "str": pa.string()}
        return pa.table(
            {
                name: pa.array(values, kinds[kind])
                for name, (kind, values) in self._columns(labels, wide).items()
            }
        )

    def _repr_html_(self) -> str:
        """The answer for a notebook: its numbers, and the reasons for what is missing."""
        told = "".join(
            f"<li>{escape(f'{reason.text} {reason.way_forward}'.strip())}</li>"
            for reason in self.reasons
        )
        reasons = f"<ul>{told}</ul>" if told else ""
        if self.table is None:
            return f"<p><strong>The table was refused.</strong></p>{reasons}"
        columns = self._columns(labels=True, wide=True)
        head = "".join(f"<th>{escape(name)}</th>" for name in columns)
        rows = zip(*(values for _, values in columns.values()), strict=True)
        body = "".join(
            "<tr>" + "".join(f"<td>{_shown(value)}</td>" for value in row) + "</tr>" for row in rows
        )
        notes = "".join(f"<div>{escape(note)}</div>" for note in self.notes)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{notes}{reasons}"

    def _columns(self, labels: bool, wide: bool) -> dict[str, Column]:
        """Columns with their kinds: those of the variables, then the numbers."""
        if self.table is None:
            why = " ".join(f"{reason.text} {reason.way_forward}".strip() for reason in self.reasons)
            raise LookupError(f"The table was refused, so there is no frame of it. {why}".rstrip())
        cells = list(self.cells())
        out: dict[str, Column] = {}
        if wide:
            across = self.codes(self.variables[-1]) if len(self.variables) > 1 else []
            rows = cells[:: len(across) or 1]
            for name in self.variables[:-1] or self.variables:
                out[name] = ("str", [(c.labels if labels else c.codes)[name] for c in rows])
            if not across:
                return out | {_free("value", out): _numbers([cell.value for cell in cells])}
            for offset, code in enumerate(across):
                column_cells = cells[offset :: len(across)]
                label = column_cells[0].labels[self.variables[-1]] if labels else code
                name = f"{label} ({code})" if label in out else label
                out[_free(name, out)] = _numbers([cell.value for cell in column_cells])
            return out
        # A variable keeps its name, also one called "value", as in the files that a server gives.
        taken = dict.fromkeys(self.variables)
        for name in self.variables:
            out[name] = ("str", [cell.codes[name] for cell in cells])
            if labels:
                own_name = _free(f"{name}_label", taken)
                out[own_name] = ("str", [cell.labels[name] for cell in cells])
        facts: dict[str, Column] = {
            "value": _numbers([cell.value for cell in cells]),
            "status": ("str", [cell.status for cell in cells]),
        }
        if self.bounds:
            facts["low"] = _numbers([cell.low for cell in cells])
            facts["high"] = _numbers([cell.high for cell in cells])
        if any(cell.standard_error is not None for cell in cells):
            facts["standard_error"] = ("Float64", [cell.standard_error for cell in cells])
            facts["reliability"] = ("str", [cell.reliability for cell in cells])
        return out | {_free(name, taken): column for name, column in facts.items()}


def _free(name: str, taken: Mapping[str, object]) -> str:
    """A name that no column has yet."""
    while name in taken:
        name += "_"
    return name


def _numbers(values: Sequence[float | None]) -> Column:
    """Numbers with their kind: whole ones stay whole."""
    whole = all(value is None or float(value).is_integer() for value in values)
    if whole:
        return "Int64", [None if value is None else int(value) for value in values]
    return "Float64", values


def _shown(value: float | str | None) -> str:
    if value is None:
        return "×"
    return escape(str(value)) if isinstance(value, str) else f"{value:,}"
