"""A policy: what an agency decides about a dataset, as a TOML file, validated and frozen.

Every key stands in ``docs/reference/policy.md``; a test holds the two together.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from lustrum.model import InputError
from lustrum.model.parameters import spec_from_words
from lustrum.model.plugins import load
from lustrum.model.text import say
from lustrum.protect.abilities import abilities_of
from lustrum.protect.unchanged import Unchanged
from lustrum.protect.weighted.method import ProtectedSurvey
from lustrum.risk.measure import RiskSpec
from lustrum.survey import Reliability

__all__ = [
    "Audit",
    "Before",
    "Fallback",
    "Method",
    "MistakeAt",
    "Policy",
    "Risk",
    "Rules",
    "Weights",
]

Share = Annotated[float, Field(ge=0, le=1)]


LEAST_CHANGED = 0.5
"""At least this share of ones and twos changes, unless a policy says in a sentence why not."""
_ROUNDING_ERROR = 1e-9
_FEWEST_WORDS = 4


class MistakeAt(ValueError):  # noqa: N818 - a mistake in a policy, with the place where it stands
    """A mistake that a reader finds at one place of the file."""

    def __init__(self, place: tuple[str | int, ...], said: str) -> None:
        super().__init__(said)
        self.place = place


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Rules(_Part):
    """Preliminary rules: what may be asked at all (Shlomo, Antal, Elliot 2015, section 2.3)."""

    max_dimensions: int = Field(3, ge=1, description="Most variables that may span a table.")
    max_filters: int = Field(1, ge=0, description="Most variables that may select the population.")
    max_cells: int = Field(100_000, ge=1, description="Most cells of a table, totals not counted.")
    min_population: int = Field(
        0, ge=0, description="Fewest records that the selected population may hold."
    )
    min_mean_cell_size: float = Field(
        0.0, ge=0, description="Smallest mean of the inner cells, zeros included."
    )
    max_small_share: Share = Field(
        1.0,
        description="Largest share of inner cells that are small; a published 0 counts as small.",
    )
    small_up_to: int = Field(5, ge=1, description="Largest protected value that counts as small.")
    nested_only: bool = Field(
        True,
        description=(
            "Whether only finest codes, levels of the first hierarchy and the total may be asked for, "
            "so that no two categories overlap partly."
        ),
    )
    disallowed: list[list[str]] = Field(
        default_factory=list,
        description="Sets of variables that may not all stand in one question, as axes or filters.",
    )
    at_most_one: list[list[str]] = Field(
        default_factory=list,
        description="Sets of variables of which a question may hold one, as axis or filter.",
    )
    per_area: str = Field(
        "",
        description=(
            "Variable whose categories are judged one by one where it is in the table, with and without "
            "the filters; those that fail are left out."
        ),
    )
    min_area_population: int = Field(
        0, ge=0, description="Fewest records that a category of the variable `per_area` may hold."
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


class Risk(_Part):
    """How risk is measured, and how much may go out; other keys are the measure's own parameters."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    measure: str = Field("table-entropy", description="Name of a table-level risk measure.")
    limit: Share = Field(
        1.0, description="Largest risk after protection at which a table is released."
    )

    def spec(self) -> Any:
        """The measure object that these words describe."""
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


class Method(_Part):
    """How tables are protected; the keys beside ``method`` are the method's own parameters."""

    model_config = ConfigDict(frozen=True, extra="allow", strict=True)

    method: str = Field("random-rounding", description="Name of a protection method.")

    def spec(self) -> Any:
        """The method object that these words describe."""
        kind = load("lustrum.methods", self.method)
        return spec_from_words(kind, self.model_extra or {}, f"The method {self.method!r}")

    def check_for_tables(self) -> None:
        """Refuse a method that cannot stand behind a server's tables."""
        spec = self.spec()
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


class Before(Method):
    """Protection of the input: records are changed once, and every table is counted from them."""

    @property
    def on_records(self) -> bool:
        """Whether the method works on records, and not on the cells of a hypercube."""
        return "microdata" in self.spec().stages

    @model_validator(mode="after")
    def _works_before(self) -> Before:
        spec = self.spec()
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


class Fallback(_Part):
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


class Audit(_Part):
    """Which attackers the audit of a protected table considers, and what they must not find out."""

    attackers: list[Literal["outsider", "insider"]] = Field(
        default_factory=list,
        description="'outsider' knows what is published, 'insider' is also counted in each cell.",
    )
    min_values: int = Field(
        2, ge=2, description="Fewest values that a cell which may be small must leave open."
    )
    up_to: int = Field(5, ge=0, description="Cells that are certainly larger are not audited.")
    programs: int = Field(
        20_000,
        ge=1,
        description="Most programs for the bounds of one table; one that needs more is refused.",
    )


class Weights(_Part):
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

    def spec(self) -> ProtectedSurvey:
        """The method."""
        return ProtectedSurvey(
            class_size=self.class_size,
            noise=self.noise,
            classes=tuple(self.classes),
            measure_classes=tuple(self.measure_classes),
            decimals=self.decimals,
        )

    def reliability(self) -> Reliability:
        """When an estimate is flagged."""
        return Reliability(self.respondents, self.unreliable, self.caution)


class Policy(_Part):
    """All decisions of an agency about a dataset."""

    dataset: str = Field("*", description="Name of the dataset, or '*' for any.")
    title: str = Field("", description="Name of the policy, for people.")
    notes: list[str] = Field(default_factory=list, description="Notes that go with every table.")
    rules: Rules = Field(default_factory=lambda: Rules.model_validate({}))
    risk: Risk = Field(default_factory=lambda: Risk.model_validate({}))
    before: list[Before] = Field(
        default_factory=list, description="Protection of the input, in this order."
    )
    protect: Method = Field(default_factory=lambda: Method.model_validate({}))
    sums: Method | None = Field(
        None,
        description="How sums of measures are protected where tables are counted from records.",
    )
    weights: Weights | None = Field(
        None, description="How a survey's weights are protected, beside protected counts."
    )
    fallback: list[Fallback] = Field(
        default_factory=list, description="What is tried next where a table fails, in this order."
    )
    audit: Audit = Field(default_factory=lambda: Audit.model_validate({}))
    min_changed: float = Field(
        LEAST_CHANGED,
        ge=LEAST_CHANGED,
        le=1,
        description=(
            "Smallest share of ones and twos that the steps of protection must change, by their parameters."
        ),
    )
    true_counts_because: str = Field(
        "",
        description=(
            "Why fewer may change, in a sentence; every answer shows it. Left out, such a policy is refused."
        ),
    )

    @property
    def changed(self) -> float:
        """The share of ones and twos that is certain to change: that of the strongest step.

        Steps may undo one another, so their shares are not added up.
        """
        return max(share for _, _, share in self._steps())

    @property
    def reason_for_true_counts(self) -> str | None:
        """What every answer says where small counts may be true ones; None where enough of them change."""
        if not self.true_counts_because:
            return None
        return say(
            "Small counts may be true counts. The agency's reason: {reason}",
            reason=self.true_counts_because,
        )

    @property
    def public_notes(self) -> tuple[str, ...]:
        """The notes of the policy for its dataset; where true counts may be shown, the first one says why."""
        reason = self.reason_for_true_counts
        return (*(() if reason is None else (reason,)), *self.notes)

    def _steps(self) -> list[tuple[tuple[str | int, ...], str, float]]:
        """Every step for counts: where it stands, what it is called, and the share that it changes."""
        places: list[tuple[tuple[str | int, ...], Method]] = [
            (("before", number), step) for number, step in enumerate(self.before)
        ]
        places.append((("protect",), self.protect))
        return [(at, one.method, abilities_of(one.spec()).changed) for at, one in places]

    @property
    def population(self) -> Any:
        """The method that makes one protected population of the input, if the policy asks for one.

        Such a population is made once by ``lustrum protect`` and served from its bundle, not from records.
        """
        specs = (step.spec() for step in self.before)
        return next((spec for spec in specs if "population" in spec.stages), None)

    @property
    def magnitudes(self) -> Any:
        """The method that makes protected sums beside a protected population, if the policy asks for one."""
        specs = (step.spec() for step in self.before)
        return next((spec for spec in specs if "magnitudes" in spec.stages), None)

    @property
    def method(self) -> Any:
        """The method that a reader should know of: the protected population, or that of the tables."""
        return self.population or self.protect.spec()

    @field_validator("protect", "sums", "risk")
    @classmethod
    def _can_be_made(cls, value: Method | Risk | None) -> Method | Risk | None:
        if value is None:
            return value
        value.spec()
        if isinstance(value, Method):
            value.check_for_tables()
        return value

    @model_validator(mode="after")
    def _is_a_population_alone(self) -> Policy:
        """Whatever is done to a protected population beside would have to stand in its report."""
        beside = 0 if self.magnitudes is None else 1
        if self.population is None and beside:
            raise ValueError(
                f"the method {self.magnitudes.name!r} makes sums to a protected population; write [[before]] "
                "with method = 'protected-population' as well"
            )
        if self.population is not None and (
            len(self.before) > 1 + beside or self.protect.method != "none"
        ):
            raise ValueError(
                f"the method {self.population.name!r} stands alone under [[before]], or with "
                "'protected-magnitudes' for sums, and with method = 'none' under [protect]: every table is a "
                "plain count of its result"
            )
        return self

    @model_validator(mode="after")
    def _weights_a_population(self) -> Policy:
        """Weights go with protected respondents, or are means of classes beside keyed counts."""
        if self.weights is None or self.population is not None:
            return self
        if self.protect.method == "none":
            raise ValueError(
                "[weights] goes with a protected population or a method for tables; write [[before]] with "
                "method = 'protected-population', or another method under [protect]"
            )
        if not self.weights.classes:
            raise ValueError(
                "[weights] without a protected population: name the variables that weights follow in 'classes'"
            )
        if len(self.weights.classes) > self.rules.max_dimensions:
            raise ValueError(
                "[weights] without a protected population: 'classes' names more variables than a table may have"
            )
        return self

    @model_validator(mode="after")
    def _protects_sums_apart(self) -> Policy:
        """Counts and sums take different methods, and rules always look at counts."""
        if abilities_of(self.protect.spec()).sums_only:
            raise ValueError(
                f"the method {self.protect.method!r} protects sums, not counts; put it under [sums], and a "
                "method for counts such as 'cell-key' under [protect]"
            )
        if self.sums is None:
            return self
        promised = abilities_of(self.sums.spec())
        if not (promised.sums_only and promised.one_number and promised.keyed_per_cell):
            raise ValueError(
                f"the method {self.sums.method!r} under [sums] does not protect sums by record keys; use "
                "'cell-key-magnitude'"
            )
        spec = self.sums.spec()
        sensitive = getattr(spec, "p_percent", None)
        if self.sums.method == "cell-key-magnitude" and (
            sensitive is None
            or spec.scale not in ("top", "largest")
            or spec.extra * spec.large * 100 < sensitive
        ):
            raise ValueError(
                "the method 'cell-key-magnitude' under [sums] could show the largest contributor too closely; "
                "give 'p_percent', and 'extra' times 'large' of at least p_percent / 100, with the scale 'top' "
                "or 'largest'"
            )
        if self.before:
            raise ValueError(
                "[sums] is for tables that are counted from records as they are; leave it or [[before]] out"
            )
        return self

    @model_validator(mode="after")
    def _shows_one_number(self) -> Policy:
        """People who make their own tables see the same population in many of them, in one number always."""
        if self.protect.method != "none" and abilities_of(self.protect.spec()).one_number:
            return self
        if self.protect.method == "none":
            if not self.before:
                raise ValueError(
                    "the method 'none' shows true counts; protect the input under [[before]], or use "
                    "another method"
                )
            return self  # every table is a plain count of one protected input
        raise ValueError(
            f"the method {self.protect.method!r}, with these parameters, may show two numbers for the same "
            "people in two tables; use one that follows record keys alone, such as 'random-rounding' or "
            "'cell-key', or protect the input under [[before]]"
        )

    @model_validator(mode="after")
    def _changes_small_counts(self) -> Policy:
        """What protects is measured by its parameters, not by its name."""
        reason = self.true_counts_because
        if reason and len(reason.split()) < _FEWEST_WORDS:
            raise MistakeAt(
                ("true_counts_because",),
                "'true_counts_because' is a sentence that every answer shows; write one, or leave it out",
            )
        enough = self.changed >= self.min_changed - _ROUNDING_ERROR
        if enough and reason:
            raise MistakeAt(
                ("true_counts_because",),
                f"'true_counts_because' is not needed: at least {_percent(self.changed)} of ones and twos "
                "change; leave it out",
            )
        if enough or reason:
            return self
        steps = self._steps()
        strongest = max(steps, key=lambda step: step[2])
        said = ", ".join(f"{name!r} {_percent(share)}" for _, name, share in steps)
        raise MistakeAt(
            strongest[0],
            f"the steps are certain to change only {_percent(self.changed)} of ones and twos ({said}), and "
            f"{_percent(self.min_changed)} must change; put a method such as 'random-rounding' under "
            "[protect], or say in 'true_counts_because' why true counts may be shown",
        )


def _percent(share: float) -> str:
    """A share without more digits than needed; never rounded up to what it does not reach."""
    tenths = int(share * 1000 + _ROUNDING_ERROR)
    return f"{tenths // 10} %" if tenths % 10 == 0 else f"{tenths // 10}.{tenths % 10} %"
