"""Asks a server, waits where it says so, and turns its problems into exceptions with its own words."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import Request, urlopen

from lustrum.client.shapes import Answer, Hint, RefusalReason

_LONGEST_WAIT = 60.0
_BETWEEN = 0.5  # seconds between two looks at a job


class ServerError(Exception):
    """A problem that the server described (RFC 9457), or that kept it from answering."""

    def __init__(self, detail: str, status: int = 0, kind: str = "", title: str = "") -> None:
        super().__init__(detail)
        self.detail, self.status, self.kind, self.title = detail, status, kind, title


@dataclass
class Client:
    """Asks one server. A refusal is an answer, not an exception.

    ``patience`` is how many times a request is repeated when the server is busy (status 429 or 503), each
    time after the wait that the server asks for. For a table that the server makes in the background the client
    waits up to ``longest`` seconds.
    """

    address: str
    timeout: float = 60.0
    patience: int = 3
    longest: float = 900.0
    _kept: dict[str, tuple[str, Any]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if urlsplit(self.address).scheme not in ("http", "https"):
            raise ServerError("The address of a server begins with http:// or https://.")
        self.address = self.address.rstrip("/")

    def datasets(self, search: str = "") -> Iterator[dict[str, Any]]:
        """Every dataset that can be asked about, page after page."""
        yield from self._pages("/api/v1/datasets", {"q": search}, "datasets")

    def dataset(self, name: str) -> dict[str, Any]:
        """One dataset with its variables and the rules in force."""
        description: dict[str, Any] = self._get(f"/api/v1/datasets/{quote(name, safe='')}")
        return description

    def categories(
        self, dataset: str, variable: str, level: str = "", search: str = "", within: str = ""
    ) -> Iterator[dict[str, Any]]:
        """The categories of a variable, page after page; with ``within`` those of a larger category."""
        path = f"/api/v1/datasets/{quote(dataset, safe='')}/variables/{quote(variable, safe='')}"
        yield from self._pages(
            f"{path}/categories", {"level": level, "within": within, "q": search}, "categories"
        )

    def hint(
        self,
        dataset: str,
        by: Sequence[str | Mapping[str, object]],
        where: Mapping[str, str | Sequence[str]] | None = None,
        *,
        totals: bool = False,
        measure: str | None = None,
        statistics: Sequence[str | Mapping[str, object]] = (),
        weight: str | None = None,
    ) -> Hint:
        """What the preliminary rules would say to a question."""
        query = _query(dataset, by, where, totals) | _shown(measure, statistics, weight)
        asked = {k: v for k, v in query.items() if k != "dataset"}
        pairs = [("dataset", dataset), ("query", json.dumps(asked | {"dataset": dataset}))]
        body = self._get(f"/api/v1/hints?{urlencode(pairs)}")
        reasons = tuple(RefusalReason(**reason) for reason in body["reasons"])
        return Hint(body["cells"], body["most"], body["passes"], reasons)

    def table(
        self,
        dataset: str,
        by: Sequence[str | Mapping[str, object]],
        where: Mapping[str, str | Sequence[str]] | None = None,
        *,
        totals: bool = False,
        measure: str | None = None,
        statistics: Sequence[str | Mapping[str, object]] = (),
        weight: str | None = None,
        include: Sequence[str] = ("risk", "sums", "utility"),
    ) -> Answer:
        """Ask for a table. A variable stands as its name, as ``name:level`` or as a mapping.

        The cells are counts, the sums of ``measure``, or several ``statistics`` such as ``mean:turnover``; all
        weighted by ``weight``, if there is one.
        """
        query = _query(dataset, by, where, totals) | _shown(measure, statistics, weight)
        body = json.dumps(query).encode()
        wanted = urlencode({"include": ",".join(include)})
        response = self._json(self._send(f"/api/v1/tables?{wanted}", body)[0])
        if "decision" not in response:
            response = self._made(response, wanted)
        return Answer.of(response)

    def download(self, answer: Answer, format_: str) -> bytes:
        """The table of an answer in one of the formats that the answer links to."""
        if format_ not in answer.links:
            there = ", ".join(sorted(set(answer.links) - {"self", "page"})) or "none"
            raise ServerError(f"The answer has no format {format_!r}; there are: {there}.")
        parts = urlsplit(answer.links[format_])
        return self._send(f"{parts.path}?{parts.query}")[0]

    def _made(self, job: Mapping[str, Any], wanted: str) -> Any:
        """What a job in the background has found, once it has."""
        path = f"/api/v1/jobs/{quote(job['id'], safe='')}"
        end = time.monotonic() + self.longest
        while job["state"] in ("waiting", "running"):
            if time.monotonic() > end:
                raise ServerError(f"The table was not made within {self.longest:g} seconds.")
            time.sleep(_BETWEEN)
            job = self._get(path)
        if job["state"] != "done":
            raise ServerError(job["sentence"] or f"The table was {job['state']}.")
        return self._json(self._send(f"{path}/result?{wanted}")[0])

    def _pages(self, path: str, wanted: Mapping[str, str], name: str) -> Iterator[dict[str, Any]]:
        pairs = {k: v for k, v in wanted.items() if v}
        following: str | None = f"{path}?{urlencode(pairs)}" if pairs else path
        while following is not None:
            body = self._get(following)
            yield from body[name]
            after = body["next"] and urlsplit(body["next"])
            following = f"{after.path}?{after.query}" if after else None

    def _get(self, path: str) -> Any:
        """What is at an address; asked again with its tag, and not sent again if it is the same."""
        tag, body = self._kept.get(path, ("", None))
        raw, new_tag = self._send(path, tag=tag)
        if new_tag == tag and tag:
            return body
        parsed = self._json(raw)
        if new_tag:
            self._kept[path] = (new_tag, parsed)
        return parsed

    def _send(self, path: str, body: bytes | None = None, tag: str = "") -> tuple[bytes, str]:
        headers = {"Accept": "application/json", "User-Agent": "lustrum-client"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if tag:
            headers["If-None-Match"] = tag
        for attempt in range(self.patience + 1):
            request = Request(self.address + path, data=body, headers=headers)
            try:
                with urlopen(request, timeout=self.timeout) as response:
                    return response.read(), response.headers.get("ETag", "")
            except HTTPError as error:
                if error.code == 304:
                    return b"", tag
                wait = error.headers.get("Retry-After", "")
                if error.code in (429, 503) and wait.isdigit() and attempt < self.patience:
                    time.sleep(min(float(wait), _LONGEST_WAIT))
                    continue
                raise _problem(error) from None
            except URLError as error:
                raise ServerError(f"{self.address} does not answer: {error.reason}.") from None
            except TimeoutError:
                raise ServerError(
                    f"{self.address} did not answer within {self.timeout:g} seconds."
                ) from None
        raise AssertionError("unreachable")  # pragma: no cover

    def _json(self, raw: bytes) -> Any:
        try:
            return json.loads(raw)
        except ValueError:
            raise ServerError(f"{self.address} is no Lustrum server: it sent no JSON.") from None


def _query(
    dataset: str,
    by: Sequence[str | Mapping[str, object]],
    where: Mapping[str, str | Sequence[str]] | None,
    totals: bool,
) -> dict[str, object]:
    axes: list[object] = []
    for axis in [by] if isinstance(by, str) else by:
        if isinstance(axis, str) and ":" in axis:
            variable, _, level = axis.partition(":")
            axes.append({"variable": variable, "level": level})
        else:
            axes.append(axis if isinstance(axis, str) else dict(axis))
    chosen = {k: [v] if isinstance(v, str) else list(v) for k, v in (where or {}).items()}
    return {"dataset": dataset, "by": axes, "where": chosen, "totals": totals}


def _shown(
    measure: str | None, statistics: Sequence[str | Mapping[str, object]], weight: str | None
) -> dict[str, object]:
    listed = [statistics] if isinstance(statistics, str) else list(statistics)
    said: dict[str, object] = {"measure": measure, "statistics": listed or None, "weight": weight}
    return {key: value for key, value in said.items() if value is not None}


def _problem(error: HTTPError) -> ServerError:
    try:
        body = json.loads(error.read())
        return ServerError(body["detail"], error.code, body["type"], body["title"])
    except (ValueError, KeyError, TypeError):
        return ServerError(f"The server answered with status {error.code}.", error.code)
