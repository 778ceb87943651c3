"""What was answered counts against the next answer, decided by what was shown and by nothing else."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.answer.conftest import SECRET, people, town
from tests.examples import examples

from lustrum.answer import Snapshot
from lustrum.answer.ledger import ReleaseLedger, canonical, grids_of
from lustrum.ledger.acts import record_act
from lustrum.ledger.releases import PUBLIC, ReleaseBook
from lustrum.model import Decision, PolicyError, TableQuery, Verdict
from lustrum.policy import Policy
from lustrum.publish.records import EngineNumbers
from lustrum.tabulate import EmbeddedEngine, Engine, FrameSource, Store, ingest

QUESTIONS = (
    {"by": ["sex"], "totals": True},
    {"by": ["age"]},
    {"by": [{"variable": "age", "level": "broad"}], "totals": True},
    {"by": ["job"]},
    {"by": ["job", "sex"], "totals": True},
    {"by": ["age", "sex"]},
    {"by": ["age", "job"]},
    {"by": ["area"], "where": {"sex": ["1"]}},
    {"by": ["area", "job"]},
    {"by": ["age", "job", "sex"]},
    {"by": ["job", "sex"], "where": {"area": ["w"]}},
    {"by": ["sex"], "where": {"age": ["8"]}, "totals": True},
)


def asked(raw: dict[str, Any]) -> TableQuery:
    return TableQuery.from_mapping({"dataset": "town", **raw})


@dataclass(frozen=True)
class Marked(EngineNumbers):
    """Numbers of an engine under a mark of our own."""

    word: str = "v1"

    @property
    def mark(self) -> str:
        return self.word


def snapshot(engine: Engine, mark: str = "v1", **ledger: object) -> Snapshot:
    policy = Policy.model_validate(
        {"rules": {"nested_only": True, "max_dimensions": 3}, "ledger": ledger}
    )
    return Snapshot(Marked(engine, policy, word=mark), policy)


class Asker:
    """Asks a ledger in a folder, and counts how often numbers were made."""

    def __init__(self, root: Path, snapshot: Snapshot) -> None:
        self.ledger, self.snapshot, self.made = ReleaseLedger(root), snapshot, 0

    def __call__(
        self, query: TableQuery | dict[str, Any], audience: str = PUBLIC, group: str = ""
    ) -> Decision:
        query = query if isinstance(query, TableQuery) else asked(query)

        def make() -> Decision:
            self.made += 1
            return self.snapshot.answer(query)

        return self.ledger.decided(query, self.snapshot, audience, make, group=group)

    def entries(self) -> list[Any]:
        return list(self.ledger.book.entries())


Open = Callable[..., Asker]


@pytest.fixture
def ask(engine: EmbeddedEngine, tmp_path: Path) -> Open:
    return lambda mark="v1", **ledger: Asker(tmp_path, snapshot(engine, mark, **ledger))


def refused(decision: Decision) -> bool:
    return [reason.rule for reason in decision.reasons] == ["ledger"]


def test_an_answer_is_recorded_with_what_makes_it_again(ask: Open) -> None:
    one = ask(limit=10)
    decision = one(QUESTIONS[0])
    assert decision.released
    assert decision.trace[-1].step == "ledger"
    [entry] = one.entries()
    said = entry.said
    assert said["question"] == canonical(asked(QUESTIONS[0]))
    assert said["data"] == "v1"
    assert said["verdict"] == "answer"
    content = one.ledger.book.content(str(said["decision"]))
    assert content is not None
    policy = one.ledger.book.content(str(said["policy"]))
    assert policy is not None
    assert Policy.model_validate_json(policy) == one.snapshot.policy


def test_a_repeat_is_free_for_those_who_hold_it_alone(ask: Open) -> None:
    one = ask(limit=10, audience="each")
    first = one(QUESTIONS[1], "anna")
    assert one(QUESTIONS[1], "anna").release is not None
    assert len(one.entries()) == 1
    again = one(QUESTIONS[1], "ben")
    assert np.array_equal(again.release.published, first.release.published)  # type: ignore[union-attr]
    assert [entry.audience for entry in one.entries()] == ["anna", "ben"]
    # What the public holds everybody holds.
    one(QUESTIONS[3])
    one(QUESTIONS[3], "ben")
    assert len(one.entries()) == 3


def test_what_would_tell_too_much_is_refused_before_its_numbers_are_made(ask: Open) -> None:
    one = ask(limit=0.002)
    held = [one(raw) for raw in QUESTIONS]
    told = [decision for decision in held if refused(decision)]
    assert told
    made = [decision for decision in held if not refused(decision)]
    assert one.made == len(made) == len(one.entries())
    assert sum(entry.said["expected"] for entry in one.entries()) <= 0.002
    for decision in told:
        assert decision.release is None
        assert decision.reasons[0].way_forward


def test_a_question_that_the_rules_refuse_is_not_recorded(ask: Open) -> None:
    one = ask(limit=10)
    assert one({"by": ["age", "sex", "area", "job"]}).reasons[0].rule == "dimensions"
    assert not one.entries()
    assert not one.made


def test_a_refusal_by_numbers_counts_as_if_they_were_shown(engine: Engine, tmp_path: Path) -> None:
    policy = Policy.model_validate(
        {"rules": {"min_mean_cell_size": 10**6}, "ledger": {"limit": 10}}
    )
    one = Asker(tmp_path, Snapshot(Marked(engine, policy), policy))
    for raw in QUESTIONS[:6]:
        assert one(raw).verdict is Verdict.REFUSAL
    lines = one.entries()
    assert [entry.said["verdict"] for entry in lines] == ["refusal"] * 6
    assert lines[4].said["expected"] > 0


def test_another_process_counts_what_this_one_released(ask: Open) -> None:
    """Two ledgers of one folder say what one would have said."""
    alone, one, other = ask(limit=0.01), ask(limit=0.01), ask(limit=0.01)
    for number, raw in enumerate(QUESTIONS):
        (one, other)[number % 2](raw)
    figures = [entry.said["expected"] for entry in alone.entries()]
    assert sum(figures) <= 0.01
    fresh = ask(limit=0.01)
    for raw in QUESTIONS:
        before = len(fresh.entries())
        assert refused(fresh(raw)) or len(fresh.entries()) == before


def test_readers_are_counted_each_for_themselves_or_all_together(
    engine: Engine, tmp_path: Path
) -> None:
    def spent(audience: str) -> list[float]:
        one = Asker(tmp_path / audience, snapshot(engine, limit=10, audience=audience))
        one({"by": ["sex"], "totals": True}, "anna")
        one({"by": ["job"]}, "anna")
        one({"by": ["job", "sex"]}, "ben")
        return [float(entry.said["expected"]) for entry in one.entries()]

    together, apart = spent("everyone"), spent("each")
    assert together[:2] == apart[:2]
    assert together[2] > 0
    assert apart[2] == 0.0
    # What the public received, Anna holds beside her own.
    one = Asker(tmp_path / "both", snapshot(engine, limit=10, audience="each"))
    one({"by": ["job"]})
    one({"by": ["job", "sex"]}, "anna")
    assert one.entries()[-1].said["expected"] > 0


def test_numbers_of_other_records_are_not_compared_unless_the_agency_says_so(ask: Open) -> None:
    assert ask(limit=10)(QUESTIONS[1]).released
    later = ask("v2", limit=10)
    assert refused(later(QUESTIONS[1]))
    assert "earlier records" in later(QUESTIONS[3]).reasons[0].text
    assert ask("v2", limit=10, earlier_records="apart")(QUESTIONS[1]).released


def test_policies_for_several_roles_count_as_one(engine: Engine, tmp_path: Path) -> None:
    def served(**words: object) -> Asker:
        ledger = {"limit": 10, "audience": "each"}
        policy = Policy.model_validate({"ledger": ledger, **words})
        return Asker(tmp_path, Snapshot(Marked(engine, policy), policy))

    public = served(rules={"min_mean_cell_size": 10**6})
    licensed = served(role="licensed")
    licensed.ledger = public.ledger
    assert public(QUESTIONS[3]).verdict is Verdict.REFUSAL
    # What was refused to the public is no table that they hold: the licensed get a line of their own, once.
    for _ in range(2):
        assert licensed(QUESTIONS[3], "anna").released
    lines = public.entries()
    assert [(one.audience, one.said["verdict"]) for one in lines] == [
        (PUBLIC, "refusal"),
        ("anna", "answer"),
    ]
    # It counts as if it had been shown, with all that the licensed receive, and the other way round.
    licensed({"by": ["job", "sex"]}, "anna")
    assert public.entries()[-1].said["expected"] > 0
    public_lines = sum(one.audience == PUBLIC for one in public.entries())
    assert refused(public({"by": ["area"]}))
    assert public_lines == sum(one.audience == PUBLIC for one in public.entries())


def test_numbers_that_were_protected_otherwise_are_not_compared(
    engine: Engine, tmp_path: Path
) -> None:
    def served(base: int, **ledger: object) -> Asker:
        protect = {"method": "random-rounding", "base": base}
        policy = Policy.model_validate({"protect": protect, "ledger": {"limit": 10, **ledger}})
        return Asker(tmp_path, Snapshot(Marked(engine, policy), policy))

    assert served(3)(QUESTIONS[1]).released
    # Neither the same question nor another one; the limit alone may be another.
    for raw in (QUESTIONS[1], QUESTIONS[3]):
        assert refused(served(5)(raw))
    assert not refused(served(3, limit=5)(QUESTIONS[3]))


@pytest.mark.parametrize("act", ["protect", "release"])
def test_what_left_as_a_whole_is_not_answered_by_another_method(
    ask: Open, tmp_path: Path, act: str
) -> None:
    """Both methods show the same cells, and together tell more of a small one than either."""
    assert ask(limit=10)(QUESTIONS[0]).released
    record_act(tmp_path, act, "elsewhere", "0" * 64)
    assert ask(limit=10)(QUESTIONS[1]).released
    record_act(tmp_path, act, "tables", "0" * 64, dataset="town")
    assert refused(ask(limit=10)(QUESTIONS[3]))
    assert ask(limit=10)(QUESTIONS[0]).released
    assert ask(limit=10, earlier_records="apart")(QUESTIONS[3]).released


@pytest.mark.parametrize("act", ["suppress", "session"])
def test_what_left_of_nobody_knows_whom_is_not_answered_by_another_method(
    ask: Open, tmp_path: Path, act: str
) -> None:
    one = ask(limit=10)
    assert one(QUESTIONS[0]).released
    record_act(tmp_path, act, "elsewhere", "0" * 64, dataset="")
    assert refused(one(QUESTIONS[1]))
    assert refused(ask(limit=10)(QUESTIONS[3]))
    assert ask(limit=10)(QUESTIONS[0]).released
    assert ask(limit=10, earlier_records="apart")(QUESTIONS[3]).released


def test_an_answer_is_counted_anew_where_something_left_in_the_same_moment(
    ask: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = ask(limit=10)
    assert one(QUESTIONS[0]).released
    enter = ReleaseBook.enter

    def overtaken(book: ReleaseBook, said: Any, **more: Any) -> Any:
        monkeypatch.setattr(ReleaseBook, "enter", enter)
        record_act(tmp_path, "suppress", "elsewhere", "0" * 64, dataset="")
        return enter(book, said, **more)

    monkeypatch.setattr(ReleaseBook, "enter", overtaken)
    assert refused(one(QUESTIONS[1]))


def test_answers_before_the_first_question_count_as_those_after_it(ask: Open) -> None:
    """A ledger that reads a book at once says what one says that recorded it."""
    one = ask(limit=0.01)
    for raw in QUESTIONS[:6]:
        one(raw)
    later = ask(limit=0.01)
    for raw in QUESTIONS[6:]:
        assert refused(one(raw)) == refused(later(raw))
    figures = [entry.said["expected"] for entry in one.entries()]
    assert len(figures) > 2


@pytest.mark.parametrize("shown", ["share:count:total", "share:count:sex"])
def test_what_tells_of_numbers_without_showing_them_is_refused_before_it_is_made(
    ask: Open, shown: str
) -> None:
    """A reader who knew more of the numbers than the ledger would choose the next question by that."""
    one = ask(limit=10)
    for statistics in ([shown], ["count", shown]):
        assert refused(one({"by": ["age", "sex"], "statistics": statistics}))
    assert not one.made
    assert not one.entries()
    assert one({"by": ["age", "sex"], "statistics": ["count"]}).released


def test_no_more_answers_than_the_policy_allows(ask: Open) -> None:
    one = ask(limit=10, entries=2)
    assert [refused(one(raw)) for raw in QUESTIONS[1:5]] == [False, False, True, True]
    assert not refused(one(QUESTIONS[1]))


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ({"fallback": [{}]}, "fallback"),
        ({"rules": {"nested_only": False}}, "nested_only"),
        ({"ledger": {"values": 6}}, "leaves 3 values open"),
        ({"before": [{"method": "protected-population"}], "protect": {"method": "none"}}, "before"),
    ],
)
def test_a_policy_that_cannot_be_counted_is_refused(part: dict[str, Any], said: str) -> None:
    with pytest.raises((PolicyError, ValueError), match=said):
        Policy.model_validate({"ledger": {}, **part})


def test_totals_filters_and_overlapping_codes_are_populations_of_their_own() -> None:
    def shapes(raw: dict[str, Any]) -> list[tuple[int, ...]]:
        return sorted(grid.shape for grid in grids_of(asked(raw), town(), None))

    assert shapes({"by": ["sex"]}) == [(2,)]
    assert shapes({"by": ["sex"], "totals": True}) == [(), (2,)]
    assert shapes({"by": ["sex", "job"], "totals": True}) == [(), (2,), (4,), (4, 2)]
    filtered = shapes({"by": ["sex"], "where": {"job": ["a"]}})
    assert filtered == [(1, 2), (2,)]
    mixed = [{"variable": "age", "codes": ["Y", "1", "2"]}]
    assert (1,) in shapes({"by": mixed})
    assert (2,) in shapes({"by": mixed})


@given(st.lists(st.sampled_from(range(len(QUESTIONS))), min_size=1, max_size=8), st.integers(0, 3))
@settings(max_examples=examples(12, 150), deadline=None)
def test_two_files_that_agree_in_what_was_shown_get_the_same_decisions(
    tmp_path_factory: pytest.TempPathFactory, order: Sequence[int], limit: int
) -> None:
    """The other file holds other people in every cell; its numbers are looked at after each decision alone.

    Whatever was released to the first file's readers is shown to the second's as well, so that both hold the
    same numbers: then the same questions are refused, with the same words, and charged alike.
    """
    folder = tmp_path_factory.mktemp("two")
    engines = two_files()
    bound = (0.001, 0.01, 0.1, 10)[limit]
    first = Asker(folder / "a", snapshot(engines[0], limit=bound))
    second = Asker(folder / "b", snapshot(engines[1], limit=bound))
    for number in order:
        query = asked(QUESTIONS[number])
        one = first(query)
        # The same numbers are shown of the other file; only those, never its own.
        other = second.ledger.decided(
            query, second.snapshot, PUBLIC, lambda one=one: _unmarked(one)
        )  # type: ignore[misc]
        assert one.verdict is other.verdict
        assert one.reasons == other.reasons
    charged = [[entry.said["expected"] for entry in asker.entries()] for asker in (first, second)]
    assert charged[0] == charged[1]


ASKED = st.sampled_from(range(len(QUESTIONS)))
WHOSE = st.sampled_from([(PUBLIC, ""), ("anna", "a"), ("ben", "a"), ("cleo", "b"), ("cleo", "a")])


@given(st.lists(st.tuples(ASKED, WHOSE), min_size=2, max_size=8), st.integers(0, 2), st.booleans())
@settings(max_examples=examples(12, 150), deadline=None)
def test_what_others_were_shown_decides_nothing_for_those_who_count_apart(
    tmp_path_factory: pytest.TempPathFactory,
    stream: Sequence[tuple[int, tuple[str, str]]],
    limit: int,
    grouped: bool,
) -> None:
    """Those who count together hold the same numbers twice, with those of the public, and others hold those of
    another file the second time; or all readers do beside the public. Decisions are alike."""
    folder = tmp_path_factory.mktemp("apart")
    bound = (0.001, 0.01, 0.1)[limit]
    words = {"limit": bound, "audience": "group" if grouped else "each"}
    linked: dict[str, set[str]] = {}
    for _, (who, group) in stream:
        both = {who, *([group] if grouped and group else [])}
        if who == PUBLIC:
            linked[PUBLIC] = {PUBLIC}
            continue
        joined = both.union(*(linked.get(word, set()) for word in both))
        linked.update(dict.fromkeys(joined, joined))
    engines = [snapshot(engine, **words) for engine in two_files()]
    for number, together in enumerate({frozenset(one) | {PUBLIC} for one in linked.values()}):
        said: list[list[object]] = []
        for run in (0, 1):
            asker, own = Asker(folder / f"{number}-{run}", engines[0]), []
            for question, (who, group) in stream:
                query = asked(QUESTIONS[question])
                shown = engines[0] if who in together else engines[run]
                decision = asker.ledger.decided(
                    query, engines[0], who, lambda s=shown, q=query: s.answer(q), group=group
                )  # type: ignore[misc]
                if who in together:
                    own.append((decision.verdict, decision.reasons))
            charged = [e.said["expected"] for e in asker.entries() if e.audience in together]
            said.append([own, charged])
        assert said[0] == said[1]


@given(st.lists(st.tuples(ASKED, st.sampled_from("ab"), st.booleans()), min_size=2, max_size=8))
@settings(max_examples=examples(12, 150), deadline=None)
def test_another_group_or_an_erased_name_frees_nobody_of_what_they_hold(
    tmp_path_factory: pytest.TempPathFactory, stream: Sequence[tuple[int, str, bool]]
) -> None:
    """Anna comes with any group, and after her name was erased; Ben with one that she came with. All is charged
    as if both had always been in one group under their names."""
    folder = tmp_path_factory.mktemp("moved")
    charged = []
    for run in ("moved", "stayed"):
        one = Asker(folder / run, snapshot(two_files()[0], limit=0.01, audience="group"))
        book, came, told = one.ledger.book, list[str](), []
        for question, group, erased in stream:
            group = group if run == "moved" else "one"
            if erased and run == "moved":
                book.erase("anna")
            told.append(one(QUESTIONS[question], book.audience_of("anna"), group).verdict)
            came = [str(e.said["group"]) for e in one.entries()]
        for question, _, _ in reversed(stream):
            if came:
                told.append(one(QUESTIONS[question - 1], "ben", came[question % len(came)]).verdict)
        charged.append((told, [entry.said["expected"] for entry in one.entries()]))
    assert charged[0] == charged[1]


def test_what_two_groups_hold_is_counted_anew_when_they_become_one(
    engine: EmbeddedEngine, tmp_path: Path
) -> None:
    """Ben comes with Anna's group: the next table has as little room as if he had always been in it."""

    def charged(one: Asker, *groups: str) -> list[float]:
        readers = zip((1, 5, 6), ("anna", "ben", "ben"), groups, strict=True)
        told = [one(QUESTIONS[at], who, group) for at, who, group in readers]
        assert all(decision.released for decision in told[:2])
        return [float(entry.said["expected"]) for entry in one.entries()]

    def asker(name: str, limit: float) -> Asker:
        return Asker(tmp_path / name, snapshot(engine, limit=limit, audience="group"))

    always = charged(asker("always", 10), "a", "a", "a")
    limit = sum(always) - always[2] / 2
    assert len(charged(asker("refused", limit), "a", "a", "a")) == 2
    apart = charged(asker("apart", 10), "a", "b", "b")
    assert apart[0] + apart[1] + always[2] < limit
    assert len(charged(asker("moved", limit), "a", "b", "a")) == 2


def test_the_public_gets_no_new_tables_once_readers_hold_their_own(ask: Open) -> None:
    one = ask(limit=10, audience="each")
    assert one(QUESTIONS[0]).released
    assert one(QUESTIONS[1], "anna").released
    assert refused(one(QUESTIONS[3]))
    assert one(QUESTIONS[0]).released
    assert one(QUESTIONS[3], "ben").released


def _unmarked(decision: Decision) -> Decision:
    return replace(decision, trace=decision.trace[:-1])


_ENGINES: list[Engine] = []


def two_files() -> list[Engine]:
    """Two files of the same description with other people."""
    if not _ENGINES:
        for number, frame in enumerate((people(), people(3000, 9))):
            store = Store(Path(tempfile.mkdtemp(prefix=f"lustrum-{number}-")))
            ingest(FrameSource(frame), town(), store, secret=SECRET)
            _ENGINES.append(store.open("town"))
    return _ENGINES
