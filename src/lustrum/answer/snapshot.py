"""A snapshot: the numbers, the policy and the mark that one question is answered from.

Files may change while a question is under way. All that is said about it, its size, its rules, its notes and
its numbers, follows from one snapshot, so that an answer is entirely the old one or entirely the new one.
What was read from files is kept for as long as they look as they did before they were read.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from lustrum._version import __version__
from lustrum.answer.pipeline import STEPS, answer, run_steps
from lustrum.answer.preliminary import inner_count, question_rules
from lustrum.answer.protection import StatedProtection, protection_of
from lustrum.answer.question_state import QuestionState
from lustrum.model import Dataset, Decision, Reason, TableQuery
from lustrum.policy import Policy
from lustrum.public.bundle.numbers import BundleNumbers
from lustrum.public.numbers import ProtectedNumbers


@dataclass(frozen=True, eq=False)
class Snapshot:
    """Protected numbers with the policy that was checked against the very same version of the data."""

    numbers: ProtectedNumbers
    policy: Policy

    @property
    def dataset(self) -> Dataset:
        """The public description."""
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
        """An answer or a refusal."""
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

    stamps: tuple[tuple[Path, Stamp], ...]
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
