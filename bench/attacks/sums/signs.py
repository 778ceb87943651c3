"""Gains and losses of one owner: attacks with knowledge that real readers have, each beside a control.

Readers see the published bundle and know which firms exist. They ask for the growth of firms that went from
gain to loss; for this year's result of a firm whose accounts of last year they hold; and for the other
subsidiaries of a holding with one loss of which they hold one. The control has the same firms with the same
sizes, all of them gains. Nothing here shares code with the method.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from rich.console import Console

from lustrum.cli.protect import protect_dataset
from lustrum.demo import businesses
from lustrum.model import Dataset
from lustrum.public.bundle import read_bundle
from lustrum.tabulate import FrameSource, Secret, Store, ingest

__all__ = ["FILES", "Read", "SignsReport", "attack_signs"]

Ints = np.ndarray[Any, Any]
SEED = 43
LEAST = 400
"""Smaller results are left to rounding."""
PERCENT = 5.0
LOW, HIGH = 0.05, 1.05**2 / 0.95 * 1.02 - 1
POLICY = """dataset = "firms"
[rules]
nested_only = false
[risk]
limit = 1.0
[[before]]
method = "protected-population"
sweeps = 1
max_variables = 2
extra_tables = 0
[[before]]
method = "protected-magnitudes"
p = {p}
max_variables = 2
sweeps = 2
existence = "{existence}"
[protect]
method = "none"
end = true
"""


@dataclass(frozen=True)
class Firms:
    """A register: places, owners, and results of two years."""

    places: Ints  # (variables, firms)
    owner: Ints
    now: Ints
    before: Ints


def _register(count: int, rng: np.random.Generator) -> Firms:
    """The invented register, with margins of its own making."""
    table = businesses(count)
    names = ("activity", "area", "size")
    places = np.stack([np.asarray(table.column(n).combine_chunks().indices) for n in names])
    turnover = np.asarray(table.column("turnover")).astype(float) + 1000
    margin = rng.normal(0.08, 0.12, count)
    now = turnover * (margin + rng.normal(0, 0.08, count))
    before = turnover * (margin + rng.normal(0, 0.08, count))
    return Firms(places, np.asarray(table.column("holding_id")), _whole(now), _whole(before))


def _panel(count: int, rng: np.random.Generator) -> Firms:
    """Results that follow those of the year before closely, in sign and size, and activities that differ."""
    places = np.stack([rng.integers(0, n, count) for n in (30, 20, 4)])
    mean = rng.normal(0.5, 1.0, 30)[places[0]]
    size = rng.lognormal(8, 1.5, count)
    before = size * (mean + rng.normal(0, 0.3, count))
    now = before * rng.normal(0.95, 0.02, count) - size * (rng.random(count) < 0.15)
    return Firms(places, np.arange(count), _whole(now), _whole(before))


def _groups(count: int, rng: np.random.Generator) -> Firms:
    """Holdings of five whose results are the same share of their size, but for one loss in each."""
    places = np.stack([rng.integers(0, n, count) for n in (30, 20, 4)])
    owner = np.arange(count) // 5
    share = rng.uniform(0.05, 0.15, owner.max() + 1)[owner]
    sign = np.where(np.arange(count) % 5 == 0, -1, 1)
    now = sign * share * rng.lognormal(11, 1.0, count)
    return Firms(places, owner, _whole(now), _whole(now * rng.normal(0.97, 0.01, count)))


def _whole(values: Ints) -> Ints:
    return np.rint(values).astype(np.int64)


FILES = {"the invented register": _register, "a panel": _panel, "groups": _groups}


@dataclass(frozen=True)
class Read:
    """How many results were asked for, and how many answers are within 0.1 and one percent; certain claims."""

    asked: int
    exact: int
    within_one: int
    certain: int

    def __str__(self) -> str:
        return (
            f"{self.exact} of {self.asked} within 0.1 percent, {self.within_one} within one, "
            f"{self.certain} certain within p"
        )


@dataclass(frozen=True)
class SignsReport:
    """What each reader found, by file, existence and kind of values."""

    read: dict[tuple[str, str, str, str], Read]

    @property
    def holds(self) -> bool:
        """Whether no reader is certain, and gains and losses tell hardly more than gains alone."""
        return all(
            one.certain == 0 and one.exact <= max(3, 0.1 * one.asked) for one in self.read.values()
        )

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        for (file, existence, kind, reader), found in self.read.items():
            yield f"{file}, existence {existence}: {reader}: {kind}", str(found)


def attack_signs(
    secret: bytes, count: int = 1500, files: tuple[str, ...] = tuple(FILES)
) -> SignsReport:
    """Protect every file by the command line, with gains and losses and with gains alone, and read it."""
    read = {}
    for file in files:
        firms = FILES[file](count, np.random.default_rng(SEED))
        for existence in ("public", "secret"):
            for kind, take in (("gains and losses", np.array), ("control, gains alone", np.abs)):
                now, before = take(firms.now), take(firms.before)
                shown = _published(Firms(firms.places, firms.owner, now, before), existence, secret)
                for reader, found in _readers(firms, now, before, shown):
                    read[file, existence, kind, reader] = found
    return SignsReport(read)


def _readers(
    firms: Firms, now: Ints, before: Ints, shown: dict[str, Ints]
) -> Iterator[tuple[str, Read]]:
    """All three readers, of firms that are alone in their finest cell and large enough."""
    place = np.unique(firms.places, axis=1, return_inverse=True)[1].ravel()
    alone = np.bincount(place)[place] == 1
    large = alone & (np.abs(now) >= LEAST) & (np.abs(before) >= LEAST)
    seen = large & (shown["now"] != 0) & (shown["before"] != 0)
    turned = np.flatnonzero(seen & (np.sign(firms.now) != np.sign(firms.before)))
    if turned.size:
        x, x0, y, y0 = (
            v[turned].astype(float) for v in (now, before, shown["now"], shown["before"])
        )
        ratio = (y / y0) / (x / x0)
        # As it is shown, or as if both had moved by a share in the middle, one of the two ways.
        middle = (1 + (LOW + HIGH) / 2) / (1 - (LOW + HIGH) / 2)
        guesses = [ratio, ratio * middle, ratio / middle]
        yield "growth after a change of sign", _judged(turned.size, guesses, np.zeros(0, bool))
        yield "last year's accounts known", _from_one(x, y, x0, y0)
    pairs = [
        (int(other), int(rows[0]))
        for rows in _of_one_loss(firms, np.flatnonzero(seen))
        for other in rows[1:]
    ]
    if pairs:
        other, known = np.array(pairs).T
        y = shown["now"].astype(float)
        yield "one subsidiary known", _from_one(now[other], y[other], now[known], y[known])


def _of_one_loss(firms: Firms, rows: Ints) -> Iterator[Ints]:
    """The rows of every holding with a single loss, the largest first."""
    loss = np.bincount(firms.owner, weights=firms.now < 0)
    for owner in np.unique(firms.owner[rows]):
        mine = rows[firms.owner[rows] == owner]
        if loss[owner] == 1 and mine.size > 1:
            yield mine[np.argsort(-np.abs(firms.now[mine]), kind="stable")]


def _from_one(x: Ints, y: Ints, known: Ints, known_shown: Ints) -> Read:
    """Guess one result from another of the same owner: by the same factor, or by the same share the other way.

    What is certain follows from the direction that the known one tells: all shares that the method draws.
    """
    share = (known_shown - known) / np.abs(known)
    same = y * known / known_shown
    moved = np.where(np.sign(y) > 0, 1 + share, 1 - share)
    up = (share > 0) == (y > 0)
    # Sizes that are left, with the units that rounding adds.
    ends = np.where(
        up,
        [np.abs(y) / (1 + HIGH), np.abs(y) / (1 + LOW)],
        [np.abs(y) / (1 - LOW), np.abs(y) / (1 - HIGH)],
    )
    certain = (1 - LOW) * (ends[1] - 1) <= (1 + LOW) * (ends[0] + 1)
    # Where other cells carry a result, what the reader claims is wrong.
    certain &= (np.abs(x) >= ends[0] - 2) & (np.abs(x) <= ends[1] + 2)
    return _judged(x.size, [same / x, y / moved / x], certain)


def _judged(asked: int, ratios: list[Ints], certain: Ints) -> Read:
    """The better of several guesses, each given by its ratio to the truth."""
    off = min((np.abs(ratio - 1) for ratio in ratios), key=lambda one: -(one <= 0.001).sum())
    return Read(asked, int((off <= 0.001).sum()), int((off <= 0.01).sum()), int(certain.sum()))


def _published(firms: Firms, existence: str, secret: bytes) -> dict[str, Ints]:
    """What the finest cell of every firm shows, after ``lustrum protect``."""
    codes = [
        [f"{n}{c}" for c in range(int(row.max()) + 1)]
        for n, row in zip("abc", firms.places, strict=True)
    ]
    described = {
        "dataset": {"name": "firms", "record_id": "firm", "identifiers": ["owner"]},
        "variables": [{"name": n, "codes": c} for n, c in zip("abc", codes, strict=True)],
        "measures": [
            {"name": "now", "unit": "euro", "holding": "owner", "earlier": "before"},
            {"name": "before", "unit": "euro", "holding": "owner"},
        ],
    }
    columns: dict[str, Any] = {
        n: pa.array(np.array(c)[row]) for n, c, row in zip("abc", codes, firms.places, strict=True)
    }
    columns |= {
        "firm": np.arange(firms.now.size),
        "owner": firms.owner,
        "now": firms.now,
        "before": firms.before,
    }
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        store = Store(data)
        dataset = Dataset.from_mapping(described)
        ingest(FrameSource(pa.table(columns), "firms"), dataset, store, secret=Secret(secret))
        (data / "policies").mkdir()
        text = POLICY.format(p=PERCENT, existence=existence)
        (data / "policies" / "firms.toml").write_text(text)
        protect_dataset("firms", data, Console(file=StringIO()))
        sums = read_bundle(data / "bundles" / "firms").sums
        assert sums is not None
        cells = {tuple(cell): k for k, cell in enumerate(sums.sums.codes.T.tolist())}
        at = np.array([cells.get(tuple(cell), -1) for cell in firms.places.T.tolist()])
        return {n: np.where(at < 0, 0, s[at]) for n, s in sums.sums.sums.items()}
