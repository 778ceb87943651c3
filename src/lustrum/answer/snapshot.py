"""A snapshot: the numbers, the policy and the mark that one question is answered from.

Files may change while a question is under way. All that is said about it, its size, its rules, its notes and
its numbers, follows from one snapshot, so that an answer is entirely the old one or entirely the new one.
What was read from files is kept for as long as they look as they did before they were read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from lustrum._version import __version__
from lustrum.answer.pipeline import STEPS, answer, run_steps
from lustrum.answer.preliminary import inner_count, question_rules
from lustrum.answer.question_state import QuestionState
from lustrum.model import Dataset, Decision, Reason, TableQuery
from lustrum.policy import Policy
from lustrum.protect.population.public import MARGIN_ENDS
from lustrum.protect.privacy import epsilon_of_rho, power_of_rho
from lustrum.public.bundle.files import Bundle
from lustrum.public.bundle.numbers import BundleNumbers
from lustrum.public.numbers import ProtectedNumbers

# The public report of a bundle for readers: what was done, what stays open, how large errors are.

_USUAL_RHO = (0.5, 2.56, 5.12)


@dataclass(frozen=True)
class StillOpen:
    """What a number of a finest cell leaves open."""

    shown: int
    low: int
    high: int


@dataclass(frozen=True)
class TypicalError:
    """The typical error of a count by this many variables, plain and with own groups."""

    variables: int
    error: float
    with_own_groups: float


@dataclass(frozen=True)
class StatedMargins:
    """Margins of error of counts by this many variables, by size of the number, as ``MARGIN_ENDS`` has them."""

    variables: int
    own_groups: bool
    margins: tuple[int, ...]


@dataclass(frozen=True)
class KnownTotal:
    """An exact total that is public elsewhere, with the categories that it is of."""

    variables: tuple[str, ...]
    labels: tuple[str, ...]
    total: int


@dataclass(frozen=True)
class MeaningOfRho:
    """What a rho means for one person: the power of the best test at 1 % false alarms, and the epsilon."""

    rho: float
    power: float
    epsilon: float


@dataclass(frozen=True)
class StatedProtection:
    """All that the public report says, ready to be read.

    ``existence_public`` says whether everybody may know which finest cells are occupied; ``open`` is then about
    those, and all others are empty. ``proof`` is the promise of a population with a proof, of which nothing
    is certain; ``meaning`` says what its rho means, beside others. Its cells have margins of their own.
    """

    method: dict[str, Any]
    changed: float
    open: tuple[StillOpen, ...]
    errors: tuple[TypicalError, ...]
    known: tuple[KnownTotal, ...]
    digest: str
    existence_public: bool = False
    margins: tuple[StatedMargins, ...] = ()
    margin_ends: tuple[int, ...] = MARGIN_ENDS
    largest: int | None = None
    proof: Mapping[str, Any] | None = None
    meaning: tuple[MeaningOfRho, ...] = ()
    cells_have_margins: bool = False


def protection_of(bundle: Bundle) -> StatedProtection:
    report = bundle.report
    base = report.support.base
    shown = np.arange(0, 4 * base, base)
    low, high = report.support.bounds(shown)
    public = bundle.sums is not None and bundle.sums.public.existence_public
    low = np.maximum(low, 1) if public else low
    known = []
    for totals in report.known:
        axes = totals.axes(bundle.dataset)
        variables = tuple(bundle.dataset.variable(name).label for name, _ in axes)
        cells = product(*(categories for _, categories in axes))
        for cell, total in zip(cells, totals.values, strict=True):
            known.append(KnownTotal(variables, tuple(c.label for c in cell), total))
    kinds = sorted({*report.errors, *report.group_errors})
    return StatedProtection(
        method=dict(report.method),
        changed=report.changed,
        open=tuple(
            StillOpen(int(s), int(a), int(b)) for s, a, b in zip(shown, low, high, strict=True)
        )
        if report.support.certain
        else (),
        errors=tuple(
            TypicalError(k, report.error(k), report.error(k, own_groups=True)) for k in kinds
        ),
        known=tuple(known),
        digest=bundle.digest,
        existence_public=public,
        margins=tuple(
            StatedMargins(
                k,
                own_groups,
                tuple(
                    report.margin(k, own_groups=own_groups, shown=size)
                    for size in (0, *MARGIN_ENDS)
                ),
            )
            for k in (kinds if report.noise is None else sorted(report.margins))
            for own_groups in ((False, True) if report.noise is None else (False,))
        ),
        largest=report.largest,
        proof=None
        if report.proof is None
        else {**report.proof, "rho": float(Fraction(report.proof["rho"]))},
        cells_have_margins=report.noise is not None,
        meaning=() if report.proof is None else tuple(_meaning_of(report.proof)),
    )


def _meaning_of(proof: Mapping[str, Any]) -> Iterator[MeaningOfRho]:
    """Of the rho that was spent, beside the usual ones."""
    delta = float(proof["delta"])
    for rho in sorted({*_USUAL_RHO, float(Fraction(proof["rho"]))}):
        yield MeaningOfRho(rho, power_of_rho(rho), round(epsilon_of_rho(rho, delta), 1))


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Protected numbers with the policy that was checked against the very same version of the data."""

    numbers: ProtectedNumbers
    policy: Policy

    @property
    def dataset(self) -> Dataset:
        return self.numbers.dataset

    @property
    def from_bundle(self) -> bool:
        """Whether answers follow from public files alone: they are the same however often somebody asks."""
        return isinstance(self.numbers, BundleNumbers)

    @property
    def counted_together(self) -> bool:
        """Whether answers are recorded and counted together: noise by record keys, under ``[ledger]``."""
        return self.policy.ledger is not None and not self.from_bundle

    @cached_property
    def mark(self) -> str:
        """Names the numbers and the policy: while it is the same, a question has the same answer."""
        digest = hashlib.sha256(self.policy.model_dump_json().encode()).hexdigest()[:16]
        return f"{self.numbers.mark} {digest} {__version__}"

    @property
    def protection(self) -> StatedProtection | None:
        """The public report of the bundle; None where records are protected question by question."""
        numbers = self.numbers
        return protection_of(numbers.bundle) if isinstance(numbers, BundleNumbers) else None

    def answer(self, query: TableQuery) -> Decision:
        return answer(query, self.numbers, self.policy)

    def precheck(self, query: TableQuery, *, count: bool = True) -> Precheck:
        """What the rules would say; where answers are counted together, by the question alone."""
        return precheck(query, self.numbers, self.policy, count=count and not self.counted_together)


Stamp = tuple[int, int, int]
"""The time of the last change of a file, its size and its inode."""


@dataclass(frozen=True)
class ReadPolicy:
    """A policy, with the stamp of its file."""

    stamp: Stamp
    policy: Policy


@dataclass(frozen=True)
class Standing:
    """A snapshot of files, with their stamps from before they were read."""

    stamps: tuple[tuple[Path, Stamp | None], ...]
    snapshot: Snapshot

    def is_current(self) -> bool:
        """Whether the files still look as they did then."""
        return all(stamp_of(path) == stamp for path, stamp in self.stamps)


def stamp_of(path: Path) -> Stamp | None:
    """How a file looks; None where there is none."""
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


# What will likely become of a question, before it is asked: the first three steps alone.
#
# They look at the question and at protected numbers, so that the hint reveals nothing that a refusal would not.
# The risk of the table is not measured, so a question that passes here may still be refused.


@dataclass(frozen=True)
class Precheck:
    """How many cells the table would have, whether it passes the rules, and what they would say."""

    cells: int
    passes: bool
    reasons: tuple[Reason, ...]


def precheck(
    query: TableQuery, numbers: ProtectedNumbers, policy: Policy, *, count: bool = True
) -> Precheck:
    """Try the rules; without ``count`` only those that need no numbers.

    >>> import pyarrow as pa
    >>> from lustrum.model import Axis
    >>> from lustrum.policy.presets import preset
    >>> from lustrum.policy.read import parse_policy
    >>> from lustrum.publish.records.protected_input import ProtectedInput
    >>> from lustrum.publish.records.views import EngineNumbers
    >>> from lustrum.tabulate.frame import FrameEngine, describe_frame
    >>> from lustrum.tabulate.keys import Secret
    >>> people = pa.table({"area": ["n", "s"] * 9})
    >>> engine = FrameEngine(people, describe_frame(people, ["area"]), Secret(bytes(16)))
    >>> policy = parse_policy(preset("keyed-rounding", engine.dataset).encode(), "a preset")
    >>> numbers = EngineNumbers(engine, policy, ProtectedInput(engine))
    >>> precheck(TableQuery("frame", (Axis("area"),)), numbers, policy, count=False).passes
    True
    """
    cells = inner_count(query, numbers.dataset)
    reasons = tuple(question_rules(query, numbers.dataset, policy.rules))
    if reasons or not count:
        return Precheck(cells, not reasons, reasons)
    case = run_steps(QuestionState(query, numbers, policy), STEPS[:3])
    return Precheck(cells, case.open, case.reasons or case.remarks)
