"""Cell suppression as a method: primary cells come from a sensitivity rule, secondary ones protect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.model import CellStatus, InputError, Release, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.chance import Chance
from lustrum.model.parameters import parameter
from lustrum.model.text import say
from lustrum.numeric.structure import UNBOUNDED, Structure
from lustrum.protect.abilities import Abilities
from lustrum.protect.method import Kept, MethodSpec, Stage, kept_cells, released
from lustrum.protect.suppression.check import with_intervals
from lustrum.protect.suppression.choose import AlgorithmWord, Progress, algorithm_named, suppress
from lustrum.protect.suppression.contributors import contributor_views
from lustrum.protect.suppression.problem import (
    AxisSums,
    ContributorView,
    CostWord,
    SuppressionProblem,
    cell_costs,
)
from lustrum.protect.suppression.result import Pattern
from lustrum.protect.suppression.solve import DROPPED_NAMES
from lustrum.protect.suppression.unions import RuleOnUnions
from lustrum.sensitivity import Background, Rule, Sensitivity, Threshold
from lustrum.sensitivity.rule import NOTHING
from lustrum.sensitivity.rules.combine import rule_of

AttackerWord = Literal["insiders", "outsider", "singletons", "holdings", "pairs"]


@dataclass(frozen=True)
class Suppression(MethodSpec):
    """Suppress sensitive cells, and as few others as possible so that nobody can work the sensitive ones out.

    ``power`` is for the cost ``box-cox``. The attacker is an ``outsider``, also ``singletons`` that are alone
    in a cell, or all ``holdings`` among the largest contributors; ``insiders`` are all of them that the table
    of sums tells of, and ``pairs`` are these and every two of them together. With ``partial`` the release
    states the interval of every suppressed cell that its readers can work out anyway. A release tells
    suppressed cells apart by nothing unless ``reasons`` are asked for: then letters say which cells are
    sensitive, the rule is stated, and protection counts with readers who use both.

    >>> release = Suppression(rule={"rule": "threshold", "minimum": 3}).apply(
    ...     Table.from_counts([[1, 8], [9, 7]])
    ... )
    >>> release.status.tolist(), dict(release.method)
    ([['N', 'F'], ['F', 'F']], {'method': 'suppression'})
    """

    name: ClassVar[str] = "suppression"
    stages: ClassVar[tuple[Stage, ...]] = ("table",)
    abilities: ClassVar[Abilities] = Abilities(repeatable=True)
    rule: Rule | Mapping[str, Any] = parameter(
        Threshold(3), "The rule that says which cells are sensitive, or its words.", read=rule_of
    )
    cost: CostWord = parameter("value", "What it costs to suppress a cell.")
    power: float = parameter(
        0.5, "The power of the value that is the cost, where costs are powers."
    )
    algorithm: AlgorithmWord = parameter("auto", "How the pattern is searched.")
    work: int | None = parameter(
        None, "The most steps of the search; by default a usual amount.", least=0, brief=True
    )
    attacker: AttackerWord = parameter("insiders", "Whom the pattern must hold against.")
    unions: bool = parameter(False, "Whether sums of suppressed cells are protected too.")
    keep: Kept = parameter("nothing", "Which cells must be shown.")
    zeros: bool = parameter(False, "Whether empty cells may be suppressed.")
    partial: bool = parameter(False, "Whether suppressed cells are published as intervals.")
    reasons: bool = parameter(False, "Whether a release says why each cell is suppressed.")

    def __post_init__(self) -> None:
        given: object = self.algorithm  # whatever a caller gave; checked below
        if isinstance(given, str) and given in DROPPED_NAMES:
            object.__setattr__(self, "algorithm", algorithm_named(given))
        super().__post_init__()

    def check_together(self) -> None:
        """Reasons tell nothing about empty cells."""
        if self.reasons and self.zeros:
            raise InputError(
                "Suppression with 'zeros' cannot state 'reasons': a letter would tell empty cells from others; "
                "choose one."
            )

    def draw(self, table: Table, rng: Chance) -> Release:
        """Suppress cells of a table; nothing is random."""
        return self.release(table, self.pattern(table))

    def release(self, table: Table, pattern: Pattern, background: Background = NOTHING) -> Release:
        """The table without the suppressed cells of a pattern; one that is not safe is refused."""
        sensitivity = self.judge(table, background)
        if not pattern.safe:
            raise InputError(_refusal(pattern))
        hidden = pattern.suppressed.reshape(table.shape)
        secondary = pattern.secondary.reshape(table.shape)
        status = np.where(hidden, CellStatus.NOT_FOR_PUBLICATION.value, CellStatus.FREE.value)
        low: Ints = np.full(table.shape, least_hidden(table, hidden, zeros=self.zeros))
        high: Ints = np.full(table.shape, UNBOUNDED)
        if self.reasons:
            status = np.where(secondary, CellStatus.SECONDARY.value, status)
            status = np.where(sensitivity.mask & hidden, sensitivity.status, status)
            low, high = letters_bound(self.rule, table, sensitivity.mask, low, high)
        release = released(
            table,
            self,
            np.where(hidden, 0, table.values),
            low=np.where(hidden, low, table.values),
            high=np.where(hidden, high, table.values),
            status=status,
            notes=(
                say("Cells that would reveal a contributor are not shown."),
                say("Further cells are not shown because they would give away the hidden ones."),
            )
            if hidden.any()
            else (),
        )
        if not self.reasons:
            # The parameters of the rule are facts that a reader could use; none stands in a release.
            release = replace(release, method={"method": self.name})
        return with_intervals(release) if self.partial else release

    def judge(self, table: Table, background: Background = NOTHING) -> Sensitivity:
        """What the rule finds, given who waived protection and who asked for it."""
        assert not isinstance(self.rule, Mapping)
        return self.rule.judge(table, background)

    def pattern(
        self,
        table: Table,
        *,
        background: Background = NOTHING,
        frozen: Mask | None = None,
        never: Mask | None = None,
        previous: Mask | None = None,
        named: bool = True,
        workers: int | None = None,
        progress: Progress | None = None,
    ) -> Pattern:
        """The suppressed cells with what is proven about them, for those who hold the true values.

        ``background`` names who waived protection and who asked for it. ``frozen`` cells of the table must
        be published, ``never`` cells must not; ``previous`` is the pattern of the last period. ``named`` is as
        in :meth:`problem`.
        """
        problem = self.held(self.problem(table, background, named=named), frozen, never)
        return suppress(
            problem,
            algorithm=self.algorithm,
            work=self.work,
            previous=None if previous is None else previous.ravel(),
            workers=workers,
            progress=progress,
        )

    @staticmethod
    def held(
        problem: SuppressionProblem, frozen: Mask | None, never: Mask | None
    ) -> SuppressionProblem:
        """The problem with cells that must be published, and cells that must not."""
        if frozen is not None:
            problem = replace(problem, frozen=problem.frozen | frozen.ravel())
        if never is not None:
            hidden = never.ravel() & ~problem.primary
            problem = replace(problem, never=hidden, frozen=problem.frozen & ~hidden)
        return problem

    def problem(
        self, table: Table, background: Background = NOTHING, *, named: bool = True
    ) -> SuppressionProblem:
        """The problem that a table poses.

        ``named`` says that a number of a holding means the same one in every cell. Otherwise contributors are
        known to be the same only where one is alone in a total and in its part.
        """
        assert not isinstance(self.rule, Mapping)
        problem = problem_of(
            table,
            self.judge(table, background),
            cost=self.cost,
            power=self.power,
            unions=RuleOnUnions(table, self.rule, background) if self.unions else None,
            keep=self.keep,
            zeros=self.zeros,
        )
        problem = self.with_letters(problem, table)
        attacker = attacker_of(self.attacker, [table])
        if attacker == "outsider":
            return problem
        views = contributor_views(
            [table],
            problem,
            alone_only=alone_only(attacker, [table]),
            named=named,
            pairs=attacker == "pairs",
        )
        return replace(problem, views=views)

    def with_letters(self, problem: SuppressionProblem, table: Table) -> SuppressionProblem:
        """The problem against readers who are told which cells are sensitive, if they are told.

        A count that is known to be below a threshold cannot be taken for one above it: another value must
        stay possible.
        """
        if not self.reasons:
            return problem
        low, high = letters_bound(self.rule, table, problem.primary, problem.low, problem.high)
        told = problem.primary & (high < problem.high)
        for cell in np.flatnonzero(told & (low == high))[:1].tolist():
            raise InputError(
                f"The letter of {problem.name(int(cell))} would give its value away; leave 'reasons' out."
            )
        return replace(
            problem,
            low=low,
            high=high,
            lower=np.where(told, 0, problem.lower),
            upper=np.where(told, 0, problem.upper),
            sliding=np.where(told, 1, problem.sliding),
        )


def problem_of(
    table: Table,
    sensitivity: Sensitivity,
    *,
    cost: CostWord = "value",
    power: float = 0.5,
    views: tuple[ContributorView, ...] = (),
    unions: RuleOnUnions | None = None,
    keep: Kept = "nothing",
    zeros: bool = False,
) -> SuppressionProblem:
    """The suppression problem of one table, with the cells that a rule found sensitive."""
    structure = Structure.of_tables([table.axes])
    relations = structure.relations
    primary = sensitivity.mask.ravel()
    frozen = kept_cells(table, keep).ravel()
    if not zeros:
        frozen |= table.values.ravel() == 0
    flat = table.values.ravel()
    top = int(np.abs(flat).max(initial=0))
    # A cell whose exact value must not be revealed has a level of at least 1.
    upper = np.where(primary, np.maximum(sensitivity.upper.ravel(), 1), 0)
    lower = lower_levels(table, sensitivity, zeros=zeros).ravel()
    # The bounds leave room beyond every level, so that the largest sizes can be protected too.
    room = max(2 * top, top + int(max(upper.max(initial=0), lower.max(initial=0))))
    floor = -room
    if bool((flat >= 0).all()):
        floor = least_hidden(table, sensitivity.mask, zeros=zeros)
    return SuppressionProblem.of(
        flat,
        relations,
        primary,
        upper,
        lower,
        sliding=sensitivity.sliding.ravel(),
        low=np.minimum(flat, floor),
        high=room,
        cost=cell_costs(
            cost,
            flat,
            contributors=table.contributors,
            primary=primary,
            shape=table.shape,
            power=power,
        ),
        frozen=frozen & ~primary,
        whole=table.kind == "count",
        names=_CellNames(structure),
        views=views,
        unions=unions,
        axes=tuple(AxisSums(family.lists.count, family.sums) for family in structure.families[0]),
    )


def attacker_of(word: AttackerWord, tables: Sequence[Table]) -> AttackerWord:
    """The attackers that tables tell of: holdings by their contributions, else sole contributors, else none."""
    if word != "insiders":
        return word
    sums = [table for table in tables if table.kind == "magnitude"]
    if sums and all(table.contributions is not None for table in sums):
        return "holdings"
    return "singletons" if sums and all(t.contributors is not None for t in sums) else "outsider"


def alone_only(attacker: AttackerWord, tables: Sequence[Table]) -> bool:
    """Whether those who attack, alone or in pairs, are only contributors that have a cell to themselves."""
    if attacker != "pairs":
        return attacker == "singletons"
    insiders = attacker_of("insiders", tables)
    if insiders == "outsider":
        raise InputError(
            "The attacker 'pairs' needs sums with the number of contributors of every cell, and their largest "
            "contributions if there are any."
        )
    return insiders == "singletons"


def letters_bound(
    rule: Rule | Mapping[str, Any], table: Table, primary: Mask, low: Ints, high: Ints
) -> tuple[Ints, Ints]:
    """Bounds of suppressed counts where letters tell sensitive ones from others and the threshold is known."""
    assert not isinstance(rule, Mapping)
    least = smallest_count(rule)
    if table.kind != "count" or least is None:
        return low, high
    unit = 10**table.decimals
    sensitive = primary.reshape(low.shape)
    # Sensitive counts are below the threshold, others that are suppressed are not.
    return (
        np.where(
            sensitive,
            low,
            np.maximum(low, np.minimum(least * unit, table.values.reshape(low.shape))),
        ),
        np.where(sensitive, np.minimum(high, least * unit - 1), high),
    )


def smallest_count(rule: Rule) -> int | None:
    """The least count that a rule publishes, if it is a threshold of counts, or one of several rules."""
    minimums: list[int] = []

    def read(part: Any) -> None:
        if isinstance(part, Mapping):
            if part.get("rule") == Threshold.name:
                minimums.append(int(part["minimum"]))
            for value in part.values():
                read(value)
        elif isinstance(part, (list, tuple)):
            for value in part:
                read(value)

    read(rule.to_mapping())
    return max(minimums, default=None)


def lower_levels(table: Table, sensitivity: Sensitivity, *, zeros: bool) -> Ints:
    """How far below its value each sensitive cell must seem possible.

    Where everybody knows that hidden counts are 1 at least, totals of several hidden cells cannot seem smaller
    than their number. A small count is protected by seeming large enough to be published, so that nothing
    is asked for below it; a cell that is sensitive for another reason must seem smaller too, as far as it can.
    """
    if bool((table.values < 0).any()):
        return sensitivity.lower
    if least_hidden(table, sensitivity.mask, zeros=zeros) == 0:
        return np.minimum(sensitivity.lower, table.values)
    small = sensitivity.status == CellStatus.SMALL_COUNT.value
    if not bool((sensitivity.mask & ~small).any()):
        return np.zeros_like(sensitivity.lower)
    return np.where(small, 0, np.minimum(sensitivity.lower, table.values - _filled_parts(table)))


def _filled_parts(table: Table) -> Ints:
    """How many finest cells with somebody in them each cell holds; 1 where categories overlap."""
    structure = Structure.of_tables([table.axes])
    rows = np.flatnonzero(table.inner)
    inner_rows = structure.matrix[rows]
    if inner_rows.nnz != rows.size or structure.inner != rows.size:
        return np.ones(table.shape, dtype=np.int64)
    filled = np.zeros(structure.inner, dtype=np.int64)
    filled[inner_rows.indices] = table.values.ravel()[rows] > 0
    parts: Ints = (structure.matrix @ filled).reshape(table.shape)
    return parts


def least_hidden(table: Table, hidden: Mask, *, zeros: bool) -> int:
    """The least value of a hidden cell, as far as everybody knows who knows the method.

    Empty cells are published unless they may be suppressed, so a count that is not shown is 1 at least. Of a
    sum that says one unit, which is nothing beside levels in percent.
    """
    if bool((table.values < 0).any()):
        return -UNBOUNDED
    empty = bool((table.values[hidden] == 0).any())
    return 0 if table.kind != "count" or zeros or empty else 1


class _CellNames:
    """The names of cells by their codes, made on demand."""

    def __init__(self, structure: Structure) -> None:
        self._structure = structure

    def __len__(self) -> int:
        return self._structure.rows

    def __getitem__(self, cell: int, /) -> str:
        return self._structure.describe(int(cell))


def _refusal(pattern: Pattern) -> str:
    if pattern.unprotectable:
        return str(pattern.unprotectable[0])
    return (
        "No pattern was found that protects all sensitive cells; allow more cells to be suppressed, or "
        "merge categories."
    )
