"""Every method that is registered keeps the contracts of a release."""

from __future__ import annotations

import pathlib
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from pydantic import ValidationError

from answer.conftest import SECRET, answered, people, town
from lustrum.model import InputError, Release, Table, TableQuery, Verdict
from lustrum.model.parameters import spec_from_words
from lustrum.model.plugins import load, names
from lustrum.policy import Before, Policy, PolicyMethod
from lustrum.protect.abilities import Abilities, abilities_of
from lustrum.protect.method import released
from lustrum.tabulate import EmbeddedEngine, FrameSource, Store, ingest
from lustrum.testing import check_method

# Parameters beyond the defaults, and whether chance comes from the keys of the table.
SPECS: dict[str, list[tuple[dict[str, Any], bool]]] = {
    "additive-noise": [
        ({"sd": 2.0, "clamp": True}, False),
        ({"distribution": "laplace"}, False),
        ({"sd": 0.1, "relative": True}, True),
    ],
    "cell-key": [
        ({}, True),
        ({"ptable": "designed", "largest_change": 2, "variance": 1.0}, True),
        ({"totals": "own"}, True),
        ({"additive": True}, True),
    ],
    "controlled-adjustment": [({"steps": 50_000}, False), ({"norm": "l2", "steps": 50_000}, False)],
    "controlled-rounding": [({}, True), ({"base": 5, "distance": "l2"}, True),
                            ({"small_only": True}, True)],
    "conventional-rounding": [({"base": 5}, True)],
    "markov-perturbation": [({}, True), ({"theta": 0.2, "rule": "unit"}, True)],
    "none": [({}, True)],
    "poisson-sampling": [({"fraction": 0.5}, False)],
    "random-rounding": [({}, True), ({"base": 5}, False)],
    "semi-controlled-rounding": [({}, True), ({"over": ("v0",)}, True)],
    "simple-sampling": [({"fraction": 0.5}, False)],
    "simulated-tables": [({"burn": 10}, True)],
    "small-count-rounding": [({}, True), ({"how": "random"}, True)],
    "stochastic-perturbation": [({}, True), ({"controlled": True}, False),
                                ({"version": "invariant"}, False)],
    "suppression": [({}, True), ({"cost": "unity", "zeros": True, "attacker": "singletons"}, True)],
    "table-swapping": [({"order": 1, "sweeps": 5}, True)],
}  # fmt: skip
# Not for tables of counts, or drawn anew each time; each has tests of its own.
OTHERS = {
    "cell-key-magnitude", "differential-privacy", "multiplicative-noise", "post-randomisation",
    "protected-magnitudes",
    "protected-population", "proven-population", "proven-sums",
    "record-swapping", "stratified-sampling",
}  # fmt: skip


def test_every_registered_method_is_checked_here_or_elsewhere() -> None:
    assert set(SPECS) | OTHERS == set(names("lustrum.methods"))


@pytest.mark.parametrize(
    ("name", "words", "keyed"), [(n, w, k) for n, entries in SPECS.items() for w, k in entries]
)
def test_a_method_keeps_the_contracts(name: str, words: dict[str, Any], keyed: bool) -> None:
    check_method(spec_from_words(load("lustrum.methods", name), words, name), keyed=keyed)


@dataclass(frozen=True)
class Telling:
    """A method with a mistake of one's choice."""

    name: ClassVar[str] = "telling"
    stages: ClassVar[tuple[str, ...]] = ("table",)
    mistake: str = ""

    @property
    def abilities(self) -> Abilities:
        return Abilities(
            repeatable=True,
            keyed_per_cell=self.mistake == "neighbours",
            one_number=self.mistake == "totals",
            changed=1.0 if self.mistake == "overstated" else 0.0,
            entropy=1.0 if self.mistake == "certain" else 0.0,
        )

    def apply(self, table: Table, rng: np.random.Generator | None = None) -> Release:
        values = table.values.copy()
        notes: tuple[str, ...] = ()
        low = high = values
        if self.mistake == "bounds":
            low = high = values + 1
        elif self.mistake == "notes":
            notes = (f"The largest number is {values.max()}.",)
        elif self.mistake == "chance":
            values = values + np.random.default_rng().integers(0, 1000, values.shape)
            low, high = values - 1000, values
        elif self.mistake == "empty":
            values = values + 1
            low, high = values - 1, values
        elif self.mistake == "neighbours":
            values = values + int(values.sum()) % 7
            values[table.structural] = 0
            low, high = np.maximum(values - 7, 0), values
        elif self.mistake == "totals":
            values = np.where(table.inner, values, values + 1)
            values[table.structural] = 0
            low, high = np.maximum(values - 1, 0), values
        elif self.mistake == "silent":
            return released(table, self, values + 1)  # type: ignore[arg-type]
        return released(table, self, values, low=low, high=high, notes=notes)  # type: ignore[arg-type]

    def to_mapping(self) -> dict[str, Any]:
        return {"method": self.name, "mistake": self.mistake}


@pytest.mark.parametrize(
    ("mistake", "sentence"),
    [
        ("bounds", "do not hold the true value"),
        ("notes", "got out in words"),
        ("chance", "gave other numbers"),
        ("empty", "shows somebody"),
        ("silent", "takes the numbers for true"),
        ("neighbours", "depends on other cells"),
        ("totals", "one population shows two numbers"),
        ("overstated", "states that 100.0% of ones and twos change, and 0.0% did"),
        ("certain", r"states that 1.00 bits are left about ones and twos, and 0.00 were"),
    ],
)
def test_the_checks_find_what_is_wrong(mistake: str, sentence: str) -> None:
    check_method(Telling())
    with pytest.raises(AssertionError, match=sentence):
        check_method(Telling(mistake))


@dataclass(frozen=True)
class Silent:
    """A third party's method that declares no abilities."""

    name: ClassVar[str] = "silent"
    stages: ClassVar[tuple[str, ...]] = ("microdata", "hypercube", "table")

    def apply(self, table: Table, rng: np.random.Generator | None = None) -> Release:
        return released(table, self, table.values)  # type: ignore[arg-type]

    def to_mapping(self) -> dict[str, Any]:
        return {"method": self.name}


def test_a_method_that_promises_nothing_is_not_let_into_a_policy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert abilities_of(Silent()) == Abilities(False, False, False)
    monkeypatch.setattr("lustrum.policy.parts.load", lambda group, name: Silent)
    with pytest.raises(InputError, match="does not promise the same numbers each time"):
        PolicyMethod.model_validate({"method": "silent"}).check_for_tables()
    with pytest.raises(ValueError, match="does not promise the same numbers after every start"):
        Before.model_validate({"method": "silent"})


def test_what_a_method_promises_depends_on_its_parameters() -> None:
    """Promises are compared with what the parameters mean; the checks above try whether they hold."""
    promised = {
        (name, str(words)): abilities_of(
            spec_from_words(load("lustrum.methods", name), words, name)
        )
        for name, entries in SPECS.items()
        for words, _ in entries
    }
    assert all(abilities.repeatable for abilities in promised.values())
    assert not abilities_of(load("lustrum.methods", "differential-privacy")(epsilon=1.0)).repeatable
    assert promised["cell-key", "{'totals': 'own'}"].one_number
    assert promised["cell-key", "{}"].one_number
    assert promised["random-rounding", "{}"].one_number
    assert promised["cell-key", "{}"].keyed_per_cell
    assert not promised["cell-key", "{'additive': True}"].keyed_per_cell
    assert not promised["additive-noise", "{'distribution': 'laplace'}"].keyed_per_cell
    sums = ("small-count-rounding", "stochastic-perturbation", "semi-controlled-rounding")
    assert not any(a.keyed_per_cell for (name, _), a in promised.items() if name in sums)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> EmbeddedEngine:
    store = Store(pathlib.Path(tmp_path_factory.mktemp("store")))
    ingest(FrameSource(people()), town(), store, secret=SECRET)
    return store.open("town")


@pytest.mark.parametrize(
    ("name", "words"),
    [(n, w) for n, entries in SPECS.items() for w, keyed in entries if "over" not in w],
)
def test_a_method_takes_a_question_through_the_five_steps(
    engine: EmbeddedEngine, name: str, words: dict[str, Any]
) -> None:
    listed = {k: list(v) if isinstance(v, tuple) else v for k, v in words.items()}
    spec = spec_from_words(load("lustrum.methods", name), words, name)
    raw: dict[str, Any] = {"protect": {"method": name, **listed}}
    if name == "none" or not abilities_of(spec).one_number:
        with pytest.raises(ValidationError, match=r"two numbers for the same|shows true counts"):
            Policy.model_validate(raw)
        return
    if abilities_of(spec).changed < 0.5:
        with pytest.raises(ValidationError, match="certain to change only"):
            Policy.model_validate(raw)
        raw["true_counts_because"] = "This is a test of the five steps."
    policy = Policy.model_validate(raw)
    query = TableQuery.from_mapping({"dataset": "town", "by": ["age", "job"], "totals": True})
    decision = answered(query, engine, policy)
    if decision.release is None:
        # Some draw their chance from a generator alone, which a server does not have.
        assert [reason.rule for reason in decision.reasons] == ["method"]
        return
    assert decision.verdict is Verdict.ANSWER
    true = engine.tabulate(query).values
    assert decision.release.published.shape == true.shape
    assert decision.risk_after is not None
    assert decision.utility is not None
