"""A snapshot: the numbers, the policy and the mark that one question is answered from.

Files may change while a question is under way. All that is said about it, its size, its rules, its notes and
its numbers, follows from one snapshot, so that an answer is entirely the old one or entirely the new one.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

from lustrum._version import __version__
from lustrum.answer.pipeline import answer
from lustrum.answer.precheck import Precheck, precheck
from lustrum.answer.protection import StatedProtection, protection_of
from lustrum.model import Dataset, Decision, TableQuery
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
        """What the rules would say."""
        return precheck(query, self.numbers, self.policy, count=count)
