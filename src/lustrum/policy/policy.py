"""A policy: what an agency decides about a dataset, as a TOML file, validated and frozen.

Every key stands in ``docs/reference/policy.md``; a test holds the two together.
"""

from __future__ import annotations

import re
from datetime import date
from typing import Any, Literal

import numpy as np
from pydantic import Field, field_validator, model_validator

from lustrum.model.parameters import out_of_reach
from lustrum.model.text import say
from lustrum.policy.parts import (
    LEAST_CHANGED,
    LEAST_ENTROPY,
    Audit,
    Before,
    CountStep,
    Fallback,
    Ledger,
    PolicyMethod,
    PolicyPart,
    Risk,
    Rules,
    Weights,
    bits,
    judged_together,
    key,
    percent,
    shortfall,
)
from lustrum.protect.abilities import abilities_of

Role = Literal["public", "registered", "licensed", "staff"]
ROLES: tuple[Role, ...] = ("public", "registered", "licensed", "staff")
"""Who may be served, the widest circle first: whoever has a role has those before it too."""

_FEWEST_WORDS = 4
_PROTECTS = ("before", "protect", "sums", "weights", "fallback", "ledger")
_SITE = re.compile(r"https?://[a-z0-9-]+(\.[a-z0-9-]+)*(:[0-9]{1,5})?\Z")


def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


class MistakeAt(ValueError):  # noqa: N818 - a mistake in a policy, with the place where it stands
    """A mistake that a reader finds at one place of the file."""

    def __init__(self, key_path: tuple[str | int, ...], said: str) -> None:
        super().__init__(said)
        self.path = key_path


class Policy(PolicyPart):
    """All decisions of an agency about a dataset."""

    dataset: str = key("Name of the dataset, or '*' for any.", "*", looser="never")
    role: Role = key(
        "Whom the policy serves, and all with a higher role; its file is `NAME.toml` for the "
        "public, and such as `NAME.licensed.toml` for others.",
        "public",
        exclude_if=lambda role: role == "public",
    )
    title: str = key("Name of the policy, for people.", "", looser="never")
    notes: list[str] = key("Notes that go with every table.", default_factory=list, looser="never")
    updated: str = key(
        "Day on which the numbers were last updated, such as `2026-11-18`; files say it too.",
        "",
        looser="never",
    )
    embed: list[str] = key(
        "Sites that alone may show tables in frames, such as `https://news.example`; if none is "
        "named, any site may show those of public bundles.",
        default_factory=list,
    )
    rules: Rules = Field(default_factory=lambda: Rules.model_validate({}))
    risk: Risk = Field(default_factory=lambda: Risk.model_validate({}))
    before: list[Before] = key("Protection of the input, in this order.", default_factory=list)
    protect: PolicyMethod = Field(default_factory=lambda: PolicyMethod.model_validate({}))
    sums: PolicyMethod | None = key(
        "How sums of measures are protected where tables are counted from records.", None
    )
    weights: Weights | None = key(
        "How a survey's weights are protected, beside protected counts.", None
    )
    fallback: list[Fallback] = key(
        "What is tried next where a table fails, in this order.", default_factory=list
    )
    audit: Audit = Field(default_factory=lambda: Audit.model_validate({}))
    ledger: Ledger | None = key(
        "How answers are counted against each other, question by question.", None
    )
    min_changed: float = key(
        "Smallest share of ones and twos that the steps of protection must change, by their parameters.",
        LEAST_CHANGED,
        ge=LEAST_CHANGED,
        le=1,
        looser="smaller",
    )
    min_entropy: float = key(
        "Fewest bits that they must leave about a true 1 or 2 to a reader who knows them, likewise.",
        LEAST_ENTROPY,
        ge=LEAST_ENTROPY,
        le=2,
        looser="smaller",
    )
    true_counts_because: str = key(
        "Why less may be enough, in a sentence; every answer shows it. Left out, such a policy is refused.",
        "",
    )

    same_people_because: str = key(
        "Why people whose numbers left under another name, or by another method, may be drawn a second time, "
        "in a sentence that everybody may read. Left out, commands, sessions and the server refuse to.",
        "",
    )

    @model_validator(mode="before")
    @classmethod
    def _numbers_in_reach(cls, settings: Any) -> Any:
        far = out_of_reach(settings)
        if far is not None:
            raise MistakeAt(far[0], f"{far[0][-1]!r} {far[1]}" if far[0] else far[1])
        return settings

    @field_validator("same_people_because")
    @classmethod
    def _is_a_sentence(cls, reason: str) -> str:
        if reason and len(reason.split()) < _FEWEST_WORDS:
            raise ValueError("say why in a sentence, or leave it out")
        return reason

    @field_validator("updated")
    @classmethod
    def _is_a_day(cls, day: str) -> str:
        if day and (len(day) != 10 or not _is_date(day)):
            raise ValueError(f"{day!r} is no day; write it as 2026-11-18")
        return day

    @field_validator("embed")
    @classmethod
    def _sites(cls, sites: list[str]) -> list[str]:
        for site in sites:
            if not _SITE.match(site):
                raise ValueError(
                    f"{site!r} is no site; write a scheme and a host alone, such as https://news.example"
                )
        return sites

    @property
    def protection(self) -> dict[str, Any]:
        """All that decides which numbers are shown, and how they count together: the same for every role."""
        return self.model_dump(mode="json", include=set(_PROTECTS))

    @property
    def changed(self) -> float:
        """The share of ones and twos that is certain to change: that of the strongest step."""
        return max(step.changed for step in self._steps())

    @property
    def entropy(self) -> float:
        """The bits that are certain to be left about a true 1 or 2: those of the strongest step."""
        return max(step.entropy for step in self._steps())

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

    def _steps(self) -> list[CountStep]:
        """Every step that protects counts, with what it states; those on counts together."""
        places: list[tuple[tuple[str | int, ...], PolicyMethod, bool]] = [
            (("before", number), step, not step.on_records)
            for number, step in enumerate(self.before)
        ]
        places.append((("protect",), self.protect, self.protect.method != "none"))
        steps = []
        for at, one, on_counts in places:
            does = abilities_of(one.spec)
            counts = on_counts and not does.sums_only
            steps.append(
                CountStep(at, one.method, does.changed, does.entropy, counts, does.channels)
            )
        return judged_together(steps)

    @property
    def population(self) -> Any:
        """The method that makes one protected population of the input, if the policy asks for one.

        Such a population is made once by ``lustrum protect`` and served from its bundle, not from records.
        """
        specs = (step.spec for step in self.before)
        return next((spec for spec in specs if "population" in spec.stages), None)

    @property
    def magnitudes(self) -> Any:
        """The method that makes protected sums beside a protected population, if the policy asks for one."""
        specs = (step.spec for step in self.before)
        return next((spec for spec in specs if "magnitudes" in spec.stages), None)

    @property
    def method(self) -> Any:
        """The method that a reader should know of: the protected population, or that of the tables."""
        return self.population or self.protect.spec

    @field_validator("protect", "sums", "risk")
    @classmethod
    def _can_be_made(cls, value: PolicyMethod | Risk | None) -> PolicyMethod | Risk | None:
        if value is None:
            return value
        _ = value.spec  # words that describe nothing are refused here
        if isinstance(value, PolicyMethod):
            value.check_for_tables()
        return value

    @model_validator(mode="after")
    def _is_a_population_alone(self) -> Policy:
        """Whatever is done to a protected population beside would have to stand in its report."""
        beside = 0 if self.magnitudes is None else 1
        if self.population is None and beside:
            raise MistakeAt(
                ("before",),
                f"the method {self.magnitudes.name!r} makes sums to a protected population; write [[before]] "
                "with method = 'protected-population' as well",
            )
        if beside and self.population.abilities.proof != self.magnitudes.abilities.proof:
            raise MistakeAt(
                ("before",),
                f"the method {self.magnitudes.name!r} does not go with {self.population.name!r}: sums beside a "
                "population with a proof are 'proven-sums', and beside another 'protected-magnitudes'",
            )
        if self.population is not None and (
            len(self.before) > 1 + beside or self.protect.method != "none"
        ):
            raise MistakeAt(
                ("before",),
                f"the method {self.population.name!r} stands alone under [[before]], or with "
                "a method for sums, and with method = 'none' under [protect]: every table is a "
                "plain count of its result",
            )
        return self

    @model_validator(mode="after")
    def _weights_a_population(self) -> Policy:
        """Weights go with protected respondents, or are means of classes beside keyed counts."""
        if self.weights is None or self.population is not None:
            return self
        if self.protect.method == "none":
            raise MistakeAt(
                ("weights",),
                "[weights] goes with a protected population or a method for tables; write [[before]] with "
                "method = 'protected-population', or another method under [protect]",
            )
        if not self.weights.classes:
            raise MistakeAt(
                ("weights",),
                "[weights] without a protected population: name the variables that weights follow in 'classes'",
            )
        if len(self.weights.classes) > self.rules.max_dimensions:
            raise MistakeAt(
                ("weights", "classes"),
                "[weights] without a protected population: 'classes' names more variables than a table may "
                "have",
            )
        return self

    @model_validator(mode="after")
    def _protects_sums_apart(self) -> Policy:
        """Counts and sums take different methods, and rules always look at counts."""
        if abilities_of(self.protect.spec).sums_only:
            raise MistakeAt(
                ("protect", "method"),
                f"the method {self.protect.method!r} protects sums, not counts; put it under [sums], and a "
                "method for counts such as 'cell-key' under [protect]",
            )
        if self.sums is None:
            return self
        promised = abilities_of(self.sums.spec)
        if not (promised.sums_only and promised.one_number and promised.keyed_per_cell):
            raise MistakeAt(
                ("sums", "method"),
                f"the method {self.sums.method!r} under [sums] does not protect sums by record keys; use "
                "'cell-key-magnitude'",
            )
        spec = self.sums.spec
        sensitive = getattr(spec, "p_percent", None)
        if self.sums.method == "cell-key-magnitude" and (
            sensitive is None
            or spec.scale not in ("top", "largest")
            or spec.extra * spec.large * 100 < sensitive
        ):
            raise MistakeAt(
                ("sums",),
                "the method 'cell-key-magnitude' under [sums] could show the largest contributor too closely; "
                "give 'p_percent', and 'extra' times 'large' of at least p_percent / 100, with the scale 'top' "
                "or 'largest'",
            )
        if self.before:
            raise MistakeAt(
                ("sums",),
                "[sums] is for tables that are counted from records as they are; leave it or [[before]] out",
            )
        return self

    @model_validator(mode="after")
    def _shows_one_number(self) -> Policy:
        """People who make their own tables see the same population in many of them, in one number always."""
        if self.protect.method != "none" and abilities_of(self.protect.spec).one_number:
            return self
        if self.protect.method == "none":
            if not self.before:
                raise MistakeAt(
                    ("protect", "method"),
                    "the method 'none' shows true counts; protect the input under [[before]], or use "
                    "another method",
                )
            return self  # every table is a plain count of one protected input
        raise MistakeAt(
            ("protect", "method"),
            f"the method {self.protect.method!r}, with these parameters, may show two numbers for the same "
            "people in two tables; use one that follows record keys alone, such as 'random-rounding' or "
            "'cell-key', or protect the input under [[before]]",
        )

    @model_validator(mode="after")
    def _can_be_counted_together(self) -> Policy:
        """What the ledger counts are plain numbers of nested populations, with a stated noise."""
        if self.ledger is None:
            return self
        wrong = next(
            (
                said
                for there, said in (
                    (
                        bool(self.before),
                        "goes with tables that are counted from records as they are; leave "
                        "[[before]] out: a protected population needs no ledger",
                    ),
                    (self.sums is not None, "counts no sums; leave one of the two out"),
                    (
                        self.weights is not None,
                        "counts no weighted numbers; leave one of the two out",
                    ),
                    (
                        bool(self.fallback),
                        "does not go with [[fallback]]: which table is tried next depends on "
                        "numbers that are not shown; leave [[fallback]] out",
                    ),
                    (not self.rules.nested_only, "needs 'nested_only = true' under [rules]"),
                    (
                        not abilities_of(self.protect.spec).channels,
                        f"needs a method that states its noise, and "
                        f"{self.protect.method!r} does not; use 'random-rounding' or 'cell-key'",
                    ),
                )
                if there
            ),
            None,
        )
        if wrong is not None:
            raise MistakeAt(("ledger",), f"[ledger] {wrong}")
        for channel in abilities_of(self.protect.spec).channels if self.ledger.values > 2 else ():
            low, high = channel.support(np.unique(channel.transitions(np.arange(100)).published))
            fewest = int((high - low).min()) + 1
            if self.ledger.values > fewest:
                raise MistakeAt(
                    ("ledger", "values"),
                    f"one shown number leaves {fewest} values open at times; ask for no more",
                )
        return self

    @model_validator(mode="after")
    def _changes_small_counts(self) -> Policy:
        """What protects is measured by its parameters, not by its name."""
        reason = self.true_counts_because
        if reason and len(reason.split()) < _FEWEST_WORDS:
            raise MistakeAt(
                ("true_counts_because",),
                "'true_counts_because' is a sentence that every answer shows; write one, or leave it out",
            )
        if self.population is not None and abilities_of(self.population).proof:
            return self
        violation = shortfall(self._steps(), self.min_changed, self.min_entropy)
        if violation is None and reason:
            raise MistakeAt(
                ("true_counts_because",),
                f"'true_counts_because' is not needed: at least {percent(self.changed)} of ones and twos "
                f"change, and {bits(self.entropy)} bits are left about each; leave it out",
            )
        if violation is not None and not reason:
            raise MistakeAt(violation.path, violation.sentence)
        return self
