"""The parts of a policy: rules, risk, methods, fallbacks, audit and weights, each validated and frozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticUndefined

from lustrum.model import Channel, InputError
from lustrum.model.channel import ComposedChannel
from lustrum.model.parameters import spec_from_words
from lustrum.model.plugins import load
from lustrum.protect.abilities import abilities_of
from lustrum.protect.entropy_left import entropy_left
from lustrum.protect.unchanged import Unchanged
from lustrum.protect.weighted.method import ProtectedSurvey
from lustrum.risk.measure import RiskSpec
from lustrum.survey import Reliability

# The floor of change: what protects is measured by its parameters, not by its name.
#
# Each step of protection states the share of ones and twos that it is certain to change, and the entropy that
# it leaves to a reader who knows the method. Steps may undo one another, so that they are not added up.
#
# **Steps on counts** (a hypercube, then a table) are judged as one, by the product of their channels. To
# credit the stronger one would be too much: a matrix may turn 1 into 4, 4 into 1, 2 into 5 and 5 into 2.
# Rounding of counts below 3, which by itself leaves 1.45 bits, then shows every true 1 as 4 and every true
# 2 as 5. If a step states no channel, the first one alone is counted: what follows can bring nothing back.
#
# **Steps on records** come before. Of them and the steps on counts the strongest is counted. Together they
# leave no less: people who moved are in a cell all the same, where the step on counts protects them, and
# not to know who moved adds to what is open. ``tests/policy/test_floor_of_two_steps.py`` enumerates this
# for two cells.
#
# **A step with a proof** is judged by the cost that it states, which every page shows, and not by this floor.

LEAST_CHANGED = 0.5
"""At least this share of ones and twos changes, unless a policy says in a sentence why not."""
LEAST_ENTROPY = 0.5
"""At least so many bits are left about a true 1 or 2, unless a policy says in a sentence why not."""
_ROUNDING_ERROR = 1e-9


@dataclass(frozen=True)
class CountStep:
    """A step for counts: where it stands in the file, what it is called, and what it states."""

    path: tuple[str | int, ...]
    method: str
    changed: float
    entropy: float
    on_counts: bool = False
    channels: tuple[Channel, ...] = ()


def judged_together(steps: Sequence[CountStep]) -> list[CountStep]:
    """The steps with those on counts made into one, which stands where the first of them does."""
    counts = [step for step in steps if step.on_counts]
    if len(counts) < 2:
        return list(steps)
    first = counts[0]
    changed, entropy = first.changed, first.entropy
    if all(step.channels for step in counts):
        ways = [
            reduce(ComposedChannel, channels)
            for channels in product(*(step.channels for step in counts))
        ]
        changed = min(1.0 - way.stay(1, 2) for way in ways)
        entropy = min(map(entropy_left, ways))
    name = " then ".join(step.method for step in counts)
    return [*(s for s in steps if not s.on_counts), CountStep(first.path, name, changed, entropy)]


@dataclass(frozen=True)
class Shortfall:
    """What is too little, and where."""

    path: tuple[str | int, ...]
    sentence: str


def shortfall(
    steps: Sequence[CountStep], min_changed: float, min_entropy: float
) -> Shortfall | None:
    """What the steps change or leave too little of, with the numbers; None where they do enough."""
    way = (
        "put a method such as 'random-rounding' under [protect], or say in 'true_counts_because' why true "
        "counts may be shown"
    )
    strongest = max(steps, key=lambda step: step.changed)
    if strongest.changed < min_changed - _ROUNDING_ERROR:
        said = ", ".join(f"{step.method!r} {percent(step.changed)}" for step in steps)
        return Shortfall(
            strongest.path,
            f"the steps are certain to change only {percent(strongest.changed)} of ones and twos ({said}), and "
            f"{percent(min_changed)} must change; {way}",
        )
    strongest = max(steps, key=lambda step: step.entropy)
    if strongest.entropy < min_entropy - _ROUNDING_ERROR:
        said = ", ".join(f"{step.method!r} {bits(step.entropy)}" for step in steps)
        return Shortfall(
            strongest.path,
            f"the steps are certain to leave only {bits(strongest.entropy)} bits about a true 1 or 2 to a "
            f"reader who knows them ({said}), and {bits(min_entropy)} must be left; {way}",
        )
    return None


def percent(share: float) -> str:
    """A share without more digits than needed; never rounded up to what it does not reach."""
    tenths = int(share * 1000 + _ROUNDING_ERROR)
    return f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10} %"


def bits(entropy: float) -> str:
    """Bits with two digits, never rounded up."""
    return f"{int(entropy * 100 + _ROUNDING_ERROR) / 100:g}"


Share = Annotated[float, Field(ge=0, le=1)]


def key(
    description: str, default: Any = PydanticUndefined, *, looser: str = "", **more: Any
) -> Any:
    """A key with the change of it that loosens a policy; of a key that does not say it, every change may."""
    extra: dict[str, Any] | None = {"looser": looser} if looser else None
    return Field(default, description=description, json_schema_extra=extra, **more)


class PolicyPart(BaseModel):
    """Knows its own keys only."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Rules(PolicyPart):
    """Preliminary rules: what may be asked at all (Shlomo, Antal, Elliot 2015, section 2.3)."""

    max_dimensions: int = key("Most variables that may span a table.", 3, ge=1, looser="larger")
    max_filters: int = key(
        "Most variables that may select the population.", 1, ge=0, looser="larger"
    )
    max_cells: int = key(
        "Most cells of a table, totals not counted.", 100_000, ge=1, looser="larger"
    )
    min_population: int = key(
        "Fewest records that the selected population may hold.", 0, ge=0, looser="smaller"
    )
    min_mean_cell_size: float = key(
        "Smallest mean of the inner cells, zeros included.", 0.0, ge=0, looser="smaller"
    )
    max_small_share: Share = key(
        "Largest share of inner cells that are small; a published 0 counts as small.",
        1.0,
        looser="larger",
    )
    small_up_to: int = key(
        "Largest protected value that counts as small.", 5, ge=1, looser="smaller"
    )
    nested_only: bool = key(
        "Whether only finest codes, levels of the first hierarchy and the total may be asked for, "
        "so that no two categories overlap partly.",
        True,
        looser="smaller",
    )
    disallowed: list[list[str]] = key(
        "Sets of variables that may not all stand in one question, as axes or filters.",
        default_factory=list,
        looser="sets that do not hold",
    )
    at_most_one: list[list[str]] = key(
        "Sets of variables of which a question may hold one, as axis or filter.",
        default_factory=list,
        looser="sets that are not held",
    )
    per_area: str = key(
        "Variable whose categories are judged one by one where it is in the table, with and without "
        "the filters; those that fail are left out.",
        "",
    )
    min_area_population: int = key(
        "Fewest records that a category of the variable `per_area` may hold.",
        0,
        ge=0,
        looser="smaller",
    )

    @model_validator(mode="after")
    def _has_effect(self) -> Rules:
        """A rule that can never apply is a mistake: it would allow what it was meant to forbid."""
        if self.min_area_population and not self.per_area:
            raise ValueError(
                "'min_area_population' needs 'per_area', the variable that it is about."
            )
        if not all(self.disallowed):
            raise ValueError("a list of 'disallowed' is empty; name the variables.")
        if any(len(set(group)) < 2 for group in self.at_most_one):
            raise ValueError("a list of 'at_most_one' needs two variables or more.")
        return self


class Risk(PolicyPart):
    """How risk is measured, and how much may go out; other keys are the measure's own parameters."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    measure: str = key("Name of a table-level risk measure.", "table-entropy")
    limit: Share = key(
        "Largest risk after protection at which a table is released.", 1.0, looser="larger"
    )

    @cached_property
    def spec(self) -> Any:
        """The measure object that these words describe, made once."""
        kind = load("lustrum.risks", self.measure)
        if (
            not (isinstance(kind, type) and issubclass(kind, RiskSpec))
            or not kind.measures_releases
        ):
            raise InputError(
                f"The risk measure {self.measure!r} is for unprotected tables only; a policy needs one "
                "that also measures what was protected."
            )
        return spec_from_words(kind, self.model_extra or {}, f"The risk measure {self.measure!r}")


class PolicyMethod(PolicyPart):
    """How tables are protected; the keys beside ``method`` are the method's own parameters."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    method: str = key("Name of a protection method.", "random-rounding")

    @cached_property
    def spec(self) -> Any:
        """The method object that these words describe, made once."""
        kind = load("lustrum.methods", self.method)
        return spec_from_words(kind, self.model_extra or {}, f"The method {self.method!r}")

    def check_for_tables(self) -> None:
        """Refuse a method that cannot stand behind a server's tables."""
        spec = self.spec
        if "table" not in spec.stages:
            raise InputError(
                f"The method {self.method!r} works on records, not on tables; put it under [[before]]."
            )
        if not abilities_of(spec).repeatable:
            raise InputError(
                f"The method {self.method!r} does not promise the same numbers each time it is asked, and "
                "asking often would undo fresh draws; use it from Python, or declare it repeatable "
                "('abilities')."
            )


class Before(PolicyMethod):
    """Protection of the input: records are changed once, and every table is counted from them."""

    @property
    def on_records(self) -> bool:
        """Whether the method works on records, and not on the cells of a hypercube."""
        return "microdata" in self.spec.stages

    @model_validator(mode="after")
    def _works_before(self) -> Before:
        spec = self.spec
        if not abilities_of(spec).repeatable:
            raise ValueError(
                f"the method {self.method!r} does not promise the same numbers after every start"
            )
        if not {"microdata", "hypercube", "population", "magnitudes"} & set(spec.stages):
            raise ValueError(f"the method {self.method!r} works on tables only, not on the input")
        if isinstance(spec, Unchanged):
            raise ValueError(
                f"the method {self.method!r} protects nothing; leave it out under [[before]], or name "
                "another method"
            )
        return self


class Fallback(PolicyPart):
    """What is tried next where a table fails: ``merge``. Another method would show other numbers."""

    method: str = key("'merge' asks again at coarser levels.", "merge")
    variables: list[str] = key(
        "For 'merge': the variables that may be coarsened, first one first; any if empty.",
        default_factory=list,
    )

    @model_validator(mode="after")
    def _can_be_made(self) -> Fallback:
        if self.method != "merge":
            raise ValueError(
                f"the method is 'merge', not {self.method!r}: another method would show other numbers "
                "for the same people"
            )
        return self


class Audit(PolicyPart):
    """Which attackers the audit of a protected table considers, and what they must not find out."""

    attackers: list[Literal["outsider", "insider"]] = key(
        "'outsider' knows what is published, 'insider' is also counted in each cell.",
        default_factory=list,
        looser="entries left out",
    )
    min_values: int = key(
        "Fewest values that a cell which may be small must leave open.", 2, ge=2, looser="smaller"
    )
    up_to: int = key("Cells that are certainly larger are not audited.", 5, ge=0, looser="smaller")
    programs: int = key(
        "Most programs for the bounds of one table; one that needs more is refused.",
        20_000,
        ge=1,
        looser="larger",
    )


class Ledger(PolicyPart):
    """How answers are counted against each other where noise comes from record keys, question by question."""

    limit: float = key(
        "Most small counts that, in the mean, may become certain by all that one audience holds; a table "
        "that would go beyond is refused before its numbers are looked at.",
        0.1,
        gt=0,
        le=10,
    )
    small: int = key("Largest count that is small in this.", 2, ge=1, le=20)
    values: int = key(
        "Fewest values that a small count must leave open; with 3, one that is left two counts as one that is "
        "certain.",
        2,
        ge=2,
        le=20,
    )
    audience: Literal["everyone", "group", "each"] = key(
        "Whose answers count together: those of 'everyone', of each 'group', or of 'each' reader, with "
        "those of the public, which gets no new tables once they hold some; the last two do not hold against "
        "readers who put their tables together.",
        "everyone",
    )
    entries: int = key(
        "Most answers that one audience may hold; further tables are refused.", 10_000, ge=1
    )
    earlier_records: Literal["refuse", "apart"] = key(
        "Once the records are replaced, or a bundle of them left: 'refuse' new tables to those who hold any of "
        "earlier records, or count 'apart', which says nothing about people who are in both.",
        "refuse",
    )


class Weights(PolicyPart):
    """How weights of a survey are protected, and when an estimate is flagged."""

    weight: str = key("The weight that tables can be weighted by.")
    classes: list[str] = key(
        "The variables that weights follow, the most telling first; all if left out.",
        default_factory=list,
    )
    measure_classes: list[str] = key(
        "The variables that values of measures follow, likewise.", default_factory=list
    )
    class_size: int = key("Fewest respondents that share a weight.", 10, ge=3)
    noise: float = key("Largest relative noise of a shared weight.", 0.05, ge=0.01, lt=0.5)
    decimals: int = key("Decimals of shared weights.", 0, ge=0, le=6)
    respondents: int = key(
        "Estimates of fewer protected respondents are flagged as unreliable.", 20, ge=0
    )
    caution: float = key("Relative standard error from which on caution is advised.", 0.15, gt=0)
    unreliable: float = key(
        "Relative standard error from which on an estimate is unreliable.", 0.3, gt=0
    )

    @cached_property
    def spec(self) -> ProtectedSurvey:
        return ProtectedSurvey(
            class_size=self.class_size,
            noise=self.noise,
            classes=tuple(self.classes),
            measure_classes=tuple(self.measure_classes),
            decimals=self.decimals,
        )

    def reliability(self) -> Reliability:
        return Reliability(self.respondents, self.unreliable, self.caution)
