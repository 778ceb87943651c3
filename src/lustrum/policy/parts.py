"""The parts of a policy: rules, risk, methods, fallbacks, audit and weights, each validated and frozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from itertools import product
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

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


def looser(way: str) -> dict[str, Any]:
    """Which change of a key loosens a policy; of a key that does not say it, every change may."""
    return {"looser": way}


class PolicyPart(BaseModel):
    """Knows its own keys only."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Rules(PolicyPart):
    """Preliminary rules: what may be asked at all (Shlomo, Antal, Elliot 2015, section 2.3)."""

    max_dimensions: int = Field(
        3,
        ge=1,
        description="Most variables that may span a table.",
        json_schema_extra=looser("larger"),
    )
    max_filters: int = Field(
        1,
        ge=0,
        description="Most variables that may select the population.",
        json_schema_extra=looser("larger"),
    )
    max_cells: int = Field(
        100_000,
        ge=1,
        description="Most cells of a table, totals not counted.",
        json_schema_extra=looser("larger"),
    )
    min_population: int = Field(
        0,
        ge=0,
        description="Fewest records that the selected population may hold.",
        json_schema_extra=looser("smaller"),
    )
    min_mean_cell_size: float = Field(
        0.0,
        ge=0,
        description="Smallest mean of the inner cells, zeros included.",
        json_schema_extra=looser("smaller"),
    )
    max_small_share: Share = Field(
        1.0,
        description="Largest share of inner cells that are small; a published 0 counts as small.",
        json_schema_extra=looser("larger"),
    )
    small_up_to: int = Field(
        5,
        ge=1,
        description="Largest protected value that counts as small.",
        json_schema_extra=looser("smaller"),
    )
    nested_only: bool = Field(
        True,
        description=(
            "Whether only finest codes, levels of the first hierarchy and the total may be asked for, "
            "so that no two categories overlap partly."
        ),
        json_schema_extra=looser("smaller"),
    )
    disallowed: list[list[str]] = Field(
        default_factory=list,
        description="Sets of variables that may not all stand in one question, as axes or filters.",
        json_schema_extra=looser("sets that do not hold"),
    )
    at_most_one: list[list[str]] = Field(
        default_factory=list,
        description="Sets of variables of which a question may hold one, as axis or filter.",
        json_schema_extra=looser("sets that are not held"),
    )
    per_area: str = Field(
        "",
        description=(
            "Variable whose categories are judged one by one where it is in the table, with and without "
            "the filters; those that fail are left out."
        ),
    )
    min_area_population: int = Field(
        0,
        ge=0,
        description="Fewest records that a category of the variable `per_area` may hold.",
        json_schema_extra=looser("smaller"),
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

    measure: str = Field("table-entropy", description="Name of a table-level risk measure.")
    limit: Share = Field(
        1.0,
        description="Largest risk after protection at which a table is released.",
        json_schema_extra=looser("larger"),
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

    method: str = Field("random-rounding", description="Name of a protection method.")

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

    method: str = Field("merge", description="'merge' asks again at coarser levels.")
    variables: list[str] = Field(
        default_factory=list,
        description="For 'merge': the variables that may be coarsened, first one first; any if empty.",
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

    attackers: list[Literal["outsider", "insider"]] = Field(
        default_factory=list,
        description="'outsider' knows what is published, 'insider' is also counted in each cell.",
        json_schema_extra=looser("entries left out"),
    )
    min_values: int = Field(
        2,
        ge=2,
        description="Fewest values that a cell which may be small must leave open.",
        json_schema_extra=looser("smaller"),
    )
    up_to: int = Field(
        5,
        ge=0,
        description="Cells that are certainly larger are not audited.",
        json_schema_extra=looser("smaller"),
    )
    programs: int = Field(
        20_000,
        ge=1,
        description="Most programs for the bounds of one table; one that needs more is refused.",
        json_schema_extra=looser("larger"),
    )


class Ledger(PolicyPart):
    """How answers are counted against each other where noise comes from record keys, question by question."""

    limit: float = Field(
        0.1,
        gt=0,
        le=10,
        description=(
            "Most small counts that, in the mean, may become certain by all that one audience holds; a table "
            "that would go beyond is refused before its numbers are looked at."
        ),
    )
    small: int = Field(2, ge=1, le=20, description="Largest count that is small in this.")
    audience: Literal["everyone", "group", "each"] = Field(
        "everyone",
        description=(
            "Whose answers count together: those of 'everyone', of each 'group', or of 'each' reader, with "
            "those of the public; the last two do not hold against readers who put their tables together."
        ),
    )
    entries: int = Field(
        10_000,
        ge=1,
        description="Most answers that one audience may hold; further tables are refused.",
    )
    earlier_records: Literal["refuse", "apart"] = Field(
        "refuse",
        description=(
            "Once the records are replaced: 'refuse' new tables to those who hold any of earlier records, or "
            "count 'apart', which says nothing about people who are in both."
        ),
    )


class Weights(PolicyPart):
    """How weights of a survey are protected, and when an estimate is flagged."""

    weight: str = Field(description="The weight that tables can be weighted by.")
    classes: list[str] = Field(
        default_factory=list,
        description="The variables that weights follow, the most telling first; all if left out.",
    )
    measure_classes: list[str] = Field(
        default_factory=list,
        description="The variables that values of measures follow, likewise.",
    )
    class_size: int = Field(10, ge=3, description="Fewest respondents that share a weight.")
    noise: float = Field(
        0.05, ge=0.01, lt=0.5, description="Largest relative noise of a shared weight."
    )
    decimals: int = Field(0, ge=0, le=6, description="Decimals of shared weights.")
    respondents: int = Field(
        20, ge=0, description="Estimates of fewer protected respondents are flagged as unreliable."
    )
    caution: float = Field(
        0.15, gt=0, description="Relative standard error from which on caution is advised."
    )
    unreliable: float = Field(
        0.3, gt=0, description="Relative standard error from which on an estimate is unreliable."
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
