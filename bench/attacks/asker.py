"""Asking a server over HTTP, and reading what an answer tells."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import numpy as np

from lustrum.model.arrays import Floats

__all__ = ["TOTAL", "Answer", "Asker", "Codes", "HttpAsker", "Key", "question"]

Codes = Mapping[str, Sequence[str]]
Key = tuple[tuple[str, str], ...]
"""One population: variables with one code each, in the order of their names."""

TOTAL = "_T"
UNKNOWN = np.inf


@dataclass(frozen=True)
class Answer:
    """A table as its reader sees it; NaN where nothing is shown."""

    variables: tuple[str, ...]
    codes: tuple[tuple[str, ...], ...]
    shown: Floats
    low: Floats
    high: Floats
    figures: Mapping[str, float | None]


def question(
    by: Sequence[str],
    where: Codes | None = None,
    *,
    codes: Codes | None = None,
    totals: bool = False,
) -> dict[str, Any]:
    """A question in the JSON form of the API; ``area:district`` asks for a level of a variable."""
    chosen = codes or {}

    def axis(name: str) -> str | dict[str, Any]:
        if name in chosen:
            return {"variable": name, "codes": list(chosen[name])}
        variable, _, level = name.partition(":")
        return {"variable": variable, "level": level} if level else variable

    asked: dict[str, Any] = {"by": [axis(name) for name in by]}
    if where:
        asked["where"] = {v: list(c) for v, c in where.items()}
    return {**asked, "totals": True} if totals else asked


class Asker:
    """Whatever answers questions: a server, or a server with a leak planted in front of it."""

    def ask(self, asked: dict[str, Any]) -> Answer | None:
        """The answer, or nothing where the server refuses."""
        raise NotImplementedError


@dataclass
class HttpAsker(Asker):
    """One client of a running server; the same question is asked once."""

    address: str
    dataset: str
    asked: int = 0
    refused: int = 0
    _answers: dict[str, Answer | None] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=300)

    def get(self, path: str) -> Any:
        """A page of the API."""
        self._connection.request("GET", path)
        return json.loads(self._connection.getresponse().read())

    def ask(self, asked: dict[str, Any]) -> Answer | None:
        """Ask the server."""
        body = json.dumps({"dataset": self.dataset, **asked})
        if body not in self._answers:
            self.asked += 1
            status, raw = self._post("/api/v1/tables?include=bounds,risk,utility", body)
            if status >= 500:
                raise SystemExit(f"The server failed with status {status}.")
            while status == 202:  # a very large table is made in the background
                time.sleep(0.2)
                status, raw = self._post("/api/v1/tables?include=bounds,risk,utility", body)
            found = _answer(json.loads(raw)) if status == 200 else None
            self.refused += found is None
            self._answers[body] = found
        return self._answers[body]

    def raw(self, asked: dict[str, Any]) -> bytes:
        """The bytes of an answer, asked for each time."""
        self.asked += 1
        body = json.dumps({"dataset": self.dataset, **asked})
        return self._post("/api/v1/tables?include=bounds,risk,utility", body)[1]

    def _post(self, path: str, body: str) -> tuple[int, bytes]:
        """The status and the bytes of an answer; a connection that the server closed is opened again."""
        headers = {"Content-Type": "application/json"}
        for last in (False, True):
            try:
                self._connection.request("POST", path, body, headers)
                response = self._connection.getresponse()
                return response.status, response.read()
            except (ConnectionError, http.client.HTTPException):
                self._connection.close()
                if last:
                    raise
        raise AssertionError


def _answer(raw: dict[str, Any]) -> Answer | None:
    table = raw.get("table")
    if table is None:
        return None
    shape = table["size"]
    names = tuple(table["id"])
    codes = tuple(tuple(table["dimension"][n]["category"]["index"]) for n in names)

    def grid(values: Sequence[float | None] | None, missing: float) -> Floats:
        if values is None:
            return np.full(shape, missing)
        return np.array([missing if v is None else v for v in values], dtype=float).reshape(shape)

    bounds = raw.get("bounds") or {}
    risk = raw.get("risk") or {}
    return Answer(
        names,
        codes,
        shown=grid(table["value"], np.nan),
        low=grid(bounds.get("low"), 0.0),
        high=grid(bounds.get("high"), UNKNOWN),
        figures={
            "before": risk.get("before"),
            "after": risk.get("after"),
            "utility": raw.get("utility"),
        },
    )
