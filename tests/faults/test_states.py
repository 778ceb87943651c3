"""Ingest, policy change, rotation, questions, faults, kills and restarts in any order, beside a model.

The model knows which records and which policy are in force. After every step the real answers must be those of
the model: the same bytes as a fresh agency with the same records, policy and secret would give. Where a step
was hit by a fault, the state before or the state after it may be in force, and the answers say which.
"""

from __future__ import annotations

import shutil
import signal
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from faults.injector import ERRORS, Faults
from faults.kills import REFUSED, killed_apart
from faults.world import (
    ASKED,
    POLICY,
    RECORDS,
    SECRET,
    Seen,
    asked,
    build,
    change,
    described,
    observe,
    people,
)
from lustrum.answer import TableService
from lustrum.local import local_service
from lustrum.model import LustrumError
from lustrum.tabulate import FrameSource, Secret, Store, ingest
from lustrum.tabulate.store.renewal import rotate

BASES = (3, 4, 5)
State = tuple[int, int]
_expected: dict[tuple[State, bytes], Seen] = {}


def expected(state: State, secret: Secret) -> Seen:
    """What a fresh agency answers in that state: the model, made once for each state."""
    if (state, secret.value) not in _expected:
        records, base = state
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder) / "data"
            count, seed = RECORDS[records]
            ingest(FrameSource(people(count, seed)), described("town"), Store(root), secret=secret)
            (root / "policies").mkdir()
            policy = POLICY.format(name="town", base=base)
            (root / "policies" / "town.toml").write_text(policy)
            _expected[state, secret.value] = asked(root, "town")
    return _expected[state, secret.value]


def fingerprint(store: Store, name: str) -> str:
    """Names the secret behind a dataset."""
    files = store.look(name)
    files.close()
    return files.manifest.secret


FAULT = st.none() | st.tuples(st.integers(1, 150), st.sampled_from(ERRORS), st.booleans())


class Agency(RuleBasedStateMachine):
    """One agency over time."""

    @initialize()
    def open(self) -> None:
        """Start with a folder, a model of it, and a process that serves it."""
        self.folder = Path(tempfile.mkdtemp())
        self.root = build(self.folder / "data")
        self.others = observe(self.root)["shops"]
        self.possible: set[State] = {(0, 3)}
        self.rotating = False
        self.service: TableService = local_service(self.root, workers=1)

    def _do(self, work: object, after: set[State], fault: tuple[int, int, bool] | None) -> bool:
        """Do some work, with a fault or without; gives whether it says that it was done."""
        faults = Faults() if fault is None else Faults(fault[0], fault[1], halves=fault[2])
        try:
            with faults.active():
                work()  # type: ignore[operator]
        except LustrumError:
            assert faults.hit or self.rotating
            self.possible |= after
            return False
        self.possible = after
        return True

    @rule(records=st.sampled_from(sorted(RECORDS)), fault=FAULT)
    def ingest(self, records: int, fault: tuple[int, int, bool] | None) -> None:
        """Replace the records of the town."""
        after = {(records, base) for _, base in self.possible}
        self._do(lambda: change("ingest", str(self.root), records), after, fault)

    @rule(base=st.sampled_from(BASES), fault=FAULT)
    def change_policy(self, base: int, fault: tuple[int, int, bool] | None) -> None:
        """Put another policy in place."""
        after = {(records, base) for records, _ in self.possible}
        self._do(lambda: change("policy", str(self.root), base), after, fault)

    @rule(fault=FAULT)
    def rotate(self, fault: tuple[int, int, bool] | None) -> None:
        """Give all datasets a new secret; a stopped rotation may be finished later."""
        self._do(lambda: change("rotate", str(self.root), 0), set(self.possible), fault)
        self.rotating = (self.root / "record-keys.secret.next").exists()

    @rule(
        what=st.one_of(
            st.tuples(st.just("ingest"), st.sampled_from(sorted(RECORDS))),
            st.tuples(st.just("policy"), st.sampled_from(BASES)),
            st.tuples(st.just("rotate"), st.just(0)),
        ),
        at=st.integers(1, 120),
    )
    def kill(self, what: tuple[str, int], at: int) -> None:
        """Another process does some work and is killed at one of its calls, or ends before it comes to that."""
        work, value = what
        code = killed_apart(work, str(self.root), value, at)
        after = set(self.possible)
        if work == "ingest":
            after = {(value, base) for _, base in self.possible}
        elif work == "policy":
            after = {(records, value) for records, _ in self.possible}
        if code == -signal.SIGKILL:
            self.possible |= after
        else:
            # A stopped rotation has to be finished before records are replaced; then the work is refused.
            assert code == 0 or (code == REFUSED and self.rotating)
            self.possible = after if code == 0 else self.possible
        self.rotating = (self.root / "record-keys.secret.next").exists()

    @rule(length=st.integers(0, 200))
    def cut_policy(self, length: int) -> None:
        """A half-written policy stops answers, and no answer comes from it."""
        path = self.root / "policies" / "town.toml"
        raw = path.read_bytes()
        path.write_bytes(raw[: min(length, len(raw) - 1)])
        assert asked(self.root, "town", self.service)[0] == "unavailable"
        assert asked(self.root, "shops", self.service)[0] == "answered"
        path.write_bytes(raw)

    @rule(fault=FAULT.filter(bool))
    def ask_with_a_fault(self, fault: tuple[int, int, bool]) -> None:
        """A question that meets a fault is answered rightly or not at all."""
        right = self._town()
        with Faults(fault[0], fault[1]).active():
            seen = asked(self.root, "town", self.service)
        assert seen == right or seen[0] == "unavailable"

    @rule()
    def restart(self) -> None:
        """Another process takes over."""
        self.service = local_service(self.root, workers=1)

    @precondition(lambda self: self.rotating)
    @rule()
    def finish_rotation(self) -> None:
        """The same command again finishes what was stopped."""
        rotate(Store(self.root))
        self.rotating = False

    def _town(self) -> Seen:
        return asked(self.root, "town", self.service)

    @invariant()
    def answers_are_those_of_the_model(self) -> None:
        """A process that has served all along, and a new one, answer as the model does."""
        store = Store(self.root)
        secret = store.secret_of(fingerprint(store, "town"))
        seen = {self._town(), asked(self.root, "town")}
        assert len(seen) == 1
        (found,) = seen
        fitting = {state for state in self.possible if expected(state, secret) == found}
        assert fitting, "neither the old table nor the new one"
        self.possible = fitting
        kept = asked(self.root, "shops")
        assert kept[0] == "answered"
        if fingerprint(store, "shops") == SECRET.fingerprint:
            assert kept == self.others
        assert set(ASKED) == set(store.names())

    def teardown(self) -> None:
        """Remove the folder."""
        if hasattr(self, "folder"):
            shutil.rmtree(self.folder)


def tried(examples: int, steps: int) -> settings:
    """How many agencies, and how long each is watched."""
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


class TestAgency(Agency.TestCase):  # type: ignore[misc, name-defined]
    """A few, for every run of the tests."""

    settings = tried(4, 8)


@pytest.mark.deep
class TestManyAgencies(Agency.TestCase):  # type: ignore[misc, name-defined]
    """Many, and for longer."""

    settings = tried(24, 15)
