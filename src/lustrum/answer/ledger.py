"""What was answered is recorded before it leaves, and counted against the next answer.

Where a policy has ``[ledger]``, the populations of a question, and those that the rules will look at, are
counted together with what its readers hold (:mod:`lustrum.audit.overlap`): by the question, by the description
of the data and by numbers that these readers were shown, before anything of the new table is known. Beyond the
policy's limit the question is refused, and the refusal tells nothing. Otherwise the numbers are made and
judged; then a line is entered into the book of releases, and only when it is durable does the answer leave. A
refusal by the rules about numbers is entered as well: it counts as if it had shown them.

A question that its readers hold is answered again without a new line. Answers from bundles need none. A dataset
of which a bundle left is not answered from its records any more: two methods tell more than one. Policies for
several roles protect alike and count alike, so that what each of them lets out is counted as one.
"""

from __future__ import annotations

import json
import logging
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lustrum._version import __version__
from lustrum.answer.archive import ShownCounts, shown_counts, write_decision
from lustrum.answer.pipeline import answer, question, run_steps
from lustrum.answer.preliminary import advice
from lustrum.answer.question_state import QuestionState
from lustrum.answer.readers import Reader
from lustrum.answer.snapshot import Snapshot
from lustrum.answer.statistics import quantities, share_totals
from lustrum.answer.table_service import TableService
from lustrum.audit.grids import HIDDEN, GridAxis, PopulationGrid, PopulationStructure, along_axis
from lustrum.audit.held import NarrowCount
from lustrum.audit.overlap import Holdings, OpenNoise
from lustrum.ledger.chain import digest_of
from lustrum.ledger.releases import PUBLIC, OvertakenError, Recorded, ReleaseBook
from lustrum.model import (
    Axis,
    Dataset,
    Decision,
    Filter,
    LustrumError,
    Reason,
    Statistic,
    TableQuery,
    TraceStep,
)
from lustrum.model.arrays import Ints
from lustrum.model.text import say
from lustrum.model.variable import TOTAL_CODE
from lustrum.policy import Policy
from lustrum.protect.abilities import abilities_of

log = logging.getLogger("lustrum.answer")

ANSWER, LOOK = "answer", "look"
"""What a line about an answer says that it is, and one about a table that the agency itself looked at."""
STAFF = "staff"
_AT_ONCE = 500  # lines that are taken in at the same time

_RECORDED = say("The table is recorded. It was counted together with what was answered before.")

_COUNTS_ALONE = Reason(
    "ledger",
    say("Where answers are counted together, tables show counts alone."),
    say("Ask for the counts, and work the other figures out from them."),
)

Everyone = None
Audience = frozenset[str] | None
"""The words in the book of all who count together."""


def canonical(query: TableQuery) -> str:
    return json.dumps(query.to_mapping(), sort_keys=True, ensure_ascii=False)


def policy_text(policy: Policy) -> bytes:
    return policy.model_dump_json().encode()


@dataclass(frozen=True)
class HeldAnswer:
    """One recorded answer, as far as the count needs it."""

    number: int
    audience: str
    group: str
    question: str
    data: str
    expected: float
    digest: str
    grids: tuple[PopulationGrid, ...] | None
    """None where the numbers were protected otherwise, or the description no longer has its categories."""
    circle: Audience = Everyone
    """With whose answers it was counted."""


@dataclass
class _View:
    """What one audience holds, taken together."""

    _holdings: Holdings
    _new: list[PopulationGrid] = field(default_factory=list)
    """What is taken in at once, when it is asked for."""
    held: set[tuple[str, str]] = field(default_factory=set)
    """The questions, each with the data that answered it."""
    decisions: set[tuple[str, str, str]] = field(default_factory=set)
    """What was decided of each, and who received it: another policy may answer otherwise."""
    count: int = 0
    expected: float = 0.0
    data: set[str] = field(default_factory=set)
    unreadable: bool = False
    readers: set[str] = field(default_factory=set)
    last: tuple[str, float] | None = None
    """The last question, and what its table would add; nothing once something was added."""

    def add(self, answer: HeldAnswer) -> None:
        self.last = None
        if answer.grids is not None:
            self.held.add((answer.question, answer.data))
            self.decisions.add((answer.question, answer.digest, answer.audience))
        told = answer.expected
        if answer.circle is not Everyone and not answer.circle >= self.readers:
            # Two groups became one: what their tables tell together was not counted when they were answered.
            new = [PopulationGrid(grid.axes) for grid in answer.grids or ()]
            told = max(told, self.holdings.expected_certain(new))
        self.count += 1
        self.expected += told
        self.readers |= {answer.audience} - {PUBLIC}
        self.data.add(answer.data)
        self.unreadable |= answer.grids is None
        self._new += answer.grids or ()

    @property
    def holdings(self) -> Holdings:
        """All tables taken together."""
        if self._new:
            self._holdings.add(self._new)
            self._new.clear()
        return self._holdings


class AnswerHistory:
    """All recorded answers about one dataset under one description and protection, whatever their policy."""

    def __init__(self, book: ReleaseBook, snapshot: Snapshot) -> None:
        self._book, self.dataset, self.policy = book, snapshot.dataset, snapshot.policy
        self._data = snapshot.numbers.mark
        self.questions = QuestionGrids(self.dataset)
        self._alike: dict[str, bool] = {}
        self.last = 0
        self._answers: list[HeldAnswer] = []
        self._named = bool(snapshot.policy.same_people_because)
        self.bundled = False
        """Whether something left of these people, or perhaps of them, that is not counted here."""
        self._views: dict[Audience, _View] = {}
        self._counted: dict[str, frozenset[str]] = {}
        ledger = snapshot.policy.ledger
        assert ledger is not None
        self._whose, self._small = ledger.audience, ledger.small
        self._apart = ledger.earlier_records == "apart"
        channels = abilities_of(snapshot.policy.protect.spec).channels
        self._noise = OpenNoise.of(channels, self._small, ledger.values)

    @property
    def readers(self) -> set[frozenset[str]]:
        """All who hold something of their own, as they count together."""
        return set(self._counted.values())

    def together(self, audience: str, group: str) -> Audience:
        """Who counts with a reader: everybody, or the members of all groups that they were in, or nobody else.

        Whoever comes with another group brings what they hold, so that both groups count as one from then on.
        """
        if self._whose == "everyone":
            return Everyone
        words = [audience] + [group] * (self._whose == "group" and bool(group))
        return frozenset().union(*(self._counted.get(word, {word}) for word in words))

    def catch_up(self) -> None:
        """Read what was recorded since, by this process or another."""
        end = self._book.end()
        if not (self._named or self.bundled):
            self.bundled = any(map(self._tells, self._others(end)))
        lines = self._book.entries(self.last, until=end, dataset=self.dataset.name)
        while many := list(islice(lines, _AT_ONCE)):
            if not self._apart:
                self.bundled |= any(e.said.get("act") in ("protect", "release") for e in many)
            answers = [
                entry
                for entry in many
                if entry.said.get("kind") == ANSWER
                and not (self._apart and entry.said.get("data") != self._data)
            ]
            contents = self._book.contents({str(entry.said["decision"]) for entry in answers})
            for entry in answers:
                self._take_in(self._held(entry, contents))
        self.last = end

    def _others(self, end: int) -> Iterator[Recorded]:
        """The new lines under other names, or those under none where no population is named."""
        if self.dataset.population is None:
            return self._book.entries(self.last, until=end, dataset="")
        return self._book.entries(self.last, until=end, besides=self.dataset.name)

    def _tells(self, entry: Recorded) -> bool:
        """Whether a line under another name is about these people, or about nobody knows whom."""
        if entry.said["dataset"]:
            return entry.said.get("population") == self.dataset.population
        return not self._apart and entry.said.get("act") in ("suppress", "session")

    def _take_in(self, answer: HeldAnswer) -> None:
        if answer.audience != PUBLIC:
            together = self.together(answer.audience, answer.group) or frozenset()
            answer = replace(answer, circle=together or Everyone)
            for word in together:
                self._counted[word] = together
            for smaller in [one for one in self._views if one and one < together]:
                del self._views[smaller]
        self._answers.append(answer)
        for audience, view in self._views.items():
            if _is_of(answer, audience):
                view.add(answer)

    def view(self, audience: Audience) -> _View:
        """What they hold together: their own answers and those of the public, or those of everybody."""
        if audience not in self._views:
            view = _View(Holdings(_structure(self.dataset), self._noise, self._small))
            for answer in self._answers:
                if _is_of(answer, audience):
                    view.add(answer)
            self._views[audience] = view
        return self._views[audience]

    def lines_about(self, found: NarrowCount, audience: Audience) -> tuple[int, ...]:
        """The lines whose tables show the population, or something of it."""
        names = {name for name, _ in (*found.cell, *(found.left_of or ()))}
        return tuple(
            answer.number
            for answer in self._answers
            if _is_of(answer, audience)
            and any(
                grid.names <= names
                and all(grid.by_name[n].span & b for n, b in found.cell if n in grid.by_name)
                for grid in answer.grids or ()
                if grid.numbers is not None
            )
        )

    def _held(self, entry: Recorded, contents: Mapping[str, bytes]) -> HeldAnswer:
        said = entry.said
        asked, digest = str(said["question"]), str(said["decision"])
        grids: tuple[PopulationGrid, ...] | None = None
        try:
            query = TableQuery.from_mapping(json.loads(asked))
            if self._protects_alike(str(said["policy"])):
                shown = shown_counts(contents[digest]) if digest in contents else None
                grids = tuple(self.questions.of(query, shown))
        except LustrumError:
            log.error(
                "the book of releases, line %d: the question cannot be read today", entry.number
            )
        return HeldAnswer(
            entry.number,
            entry.audience,
            str(said.get("group", "")),
            asked,
            str(said["data"]),
            float(said["expected"]),
            digest,
            grids,
        )

    def _protects_alike(self, digest: str) -> bool:
        """Whether the policy of a line made the numbers of today; with others they could be compared."""
        if digest not in self._alike:
            ours = self.policy.protection
            try:
                then = Policy.model_validate_json(self._book.content(digest) or b"").protection
            except ValueError:  # of another version, or gone
                then = {}
            self._alike[digest] = all(then.get(key) == ours[key] for key in ours if key != "ledger")
        return self._alike[digest]


def _is_of(answer: HeldAnswer, audience: Audience) -> bool:
    return audience is Everyone or answer.audience == PUBLIC or answer.audience in audience


class ReleaseLedger:
    """Records answers of one data folder, and refuses those that tell too much together with earlier ones."""

    def __init__(self, root: Path) -> None:
        self.book = ReleaseBook(root)
        self._lock = threading.RLock()
        self._histories: dict[tuple[str, str, str, str], AnswerHistory] = {}

    def close(self) -> None:
        self.book.close()

    def audience_of(self, reader: Reader) -> str:
        """The word in the book for a reader."""
        return self.book.audience_of(reader.name) if reader.name else PUBLIC

    def group_of(self, reader: Reader, snapshot: Snapshot) -> str:
        """The word in the book for the group that a reader counts with, by the policy; empty for none."""
        ledger = snapshot.policy.ledger
        grouped = ledger is not None and ledger.audience == "group" and reader.name and reader.group
        return self.book.audience_of(f"group {reader.group}") if grouped else ""

    def decided(
        self,
        query: TableQuery,
        snapshot: Snapshot,
        audience: str,
        make: Callable[[], Decision],
        *,
        group: str = "",
    ) -> Decision:
        """The decision for a reader of some group, recorded before it is returned.

        ``make`` makes the numbers and judges them; it is called only where the count allows it.
        """
        state = run_steps(QuestionState(query, snapshot.numbers, snapshot.policy), (question,))
        if not state.open:
            return state.decision()
        if query.asked != (Statistic(),):
            # What shares or medians tell of numbers could not be counted, and would choose the next question.
            return state.refused("ledger", _COUNTS_ALONE).decision()
        asked = canonical(query)
        with self._lock:
            grids = list(self._history(snapshot).questions.of(query, None))
        expected = self._expected(snapshot, audience, group, asked, grids)
        if isinstance(expected, Reason):
            return state.refused("ledger", expected).decision()
        decision = make()
        digest = digest_of(write_decision(decision).encode())
        while True:
            with self._lock:
                # Others may have received something meanwhile.
                expected = self._expected(snapshot, audience, group, asked, grids)
                if isinstance(expected, Reason):
                    return state.refused("ledger", expected).decision()
                history = self._history(snapshot)
                holds = history.view(history.together(audience, group)).decisions
                if any((asked, digest, whose) in holds for whose in (audience, PUBLIC)):
                    return _noted(decision)
                more = {"expected": expected, **({"group": group} if group else {})}
                try:
                    self._enter(ANSWER, query, snapshot, decision, audience, more, history.last)
                except OvertakenError:
                    continue
            return _noted(decision)

    def looked(self, query: TableQuery, snapshot: Snapshot, decision: Decision) -> None:
        """Enter that the agency looked at a table on its own machine; it counts for nobody."""
        self._enter(LOOK, query, snapshot, decision, STAFF, {}, None)

    def _enter(
        self,
        kind: str,
        query: TableQuery,
        snapshot: Snapshot,
        decision: Decision,
        audience: str,
        more: Mapping[str, Any],
        last: int | None,
    ) -> None:
        text, policy = write_decision(decision).encode(), policy_text(snapshot.policy)
        said = {
            "kind": kind,
            "question": canonical(query),
            "policy": digest_of(policy),
            "data": snapshot.numbers.mark,
            "population": snapshot.dataset.population or "",
            "version": __version__,
            "verdict": decision.verdict.value,
            "decision": digest_of(text),
            "risk": [decision.risk_before, decision.risk_after, decision.utility],
            **more,
        }
        contents = {digest_of(text): text, digest_of(policy): policy}
        self.book.enter(
            said, audience=audience, dataset=query.dataset, contents=contents, last=last
        )

    def last_line(self, snapshot: Snapshot) -> int:
        """The number of the last line about a dataset that was counted."""
        with self._lock:
            return self._history(snapshot).last

    def _history(self, snapshot: Snapshot) -> AnswerHistory:
        key = (
            snapshot.dataset.name,
            repr(_everything(snapshot.dataset)),
            json.dumps(snapshot.policy.protection, sort_keys=True),
            snapshot.numbers.mark,
        )
        history = self._histories.get(key)
        if history is None:
            # An earlier policy or description of the same dataset is not needed any more.
            self._histories = {k: v for k, v in self._histories.items() if k[0] != key[0]}
            history = self._histories[key] = AnswerHistory(self.book, snapshot)
        history.catch_up()
        return history

    def _expected(
        self,
        snapshot: Snapshot,
        audience: str,
        group: str,
        asked: str,
        grids: Sequence[PopulationGrid],
    ) -> float | Reason:
        """How many small counts the table makes certain, in the mean, or why it is refused.

        Nothing enters but questions, and numbers that all who count together hold.
        """
        ledger, data = snapshot.policy.ledger, snapshot.numbers.mark
        assert ledger is not None
        with self._lock:
            history = self._history(snapshot)
            view = history.view(history.together(audience, group))
            if (asked, data) in view.held:
                return 0.0
            if audience == PUBLIC and ledger.audience != "everyone" and history.readers:
                # Readers hold what the public receives: whether it may would depend on numbers of theirs.
                return Reason(
                    "ledger",
                    say("New tables are for readers who sign in, and are counted for them."),
                    say("Sign in, or ask for a table that was answered before."),
                )
            if history.bundled or view.unreadable or view.data - {data}:
                return Reason(
                    "ledger",
                    say(
                        "Tables of earlier records were answered, and new ones could be compared with them."
                    ),
                    say("Ask for a table that was answered before."),
                )
            if view.count >= ledger.entries:
                return _together(snapshot, asked)
            if view.last is None or view.last[0] != asked:
                view.last = asked, view.holdings.expected_certain(grids)
            expected = view.last[1]
            if expected > 0 and view.expected + expected > ledger.limit:
                return _together(snapshot, asked)
            return expected


def made_again(entry: Recorded, book: ReleaseBook, service: TableService) -> str | None:
    """Whether a recorded answer can be made again byte by byte, or what is missing; None if it is no answer.

    The question is asked of the records of today under the policy of its day.
    """
    said = entry.said
    if said.get("kind") not in (ANSWER, LOOK):
        return None
    policy = book.content(str(said["policy"]))
    if policy is None:
        return "its policy is not beside the book any more"
    if said["version"] != __version__:
        return f"it was made by Lustrum {said['version']}; install that version to make it again"
    try:
        query = TableQuery.from_mapping(json.loads(str(said["question"])))
        today = service.under(query.dataset, Policy.model_validate_json(policy))
        if today.mark != said["data"]:
            return f"the records of version {said['data']} are gone; bring them back from a backup"
        again = answer(query, today, Policy.model_validate_json(policy))
    except LustrumError as error:
        return f"it cannot be made today: {error}"
    same = digest_of(write_decision(again).encode()) == said["decision"]
    return "the same bytes" if same else "OTHER BYTES"


def _together(snapshot: Snapshot, asked: str) -> Reason:
    query = TableQuery.from_mapping(json.loads(asked))
    return Reason(
        "ledger",
        say("Together with what was already answered, small counts could become certain."),
        advice(query, snapshot.dataset)
        or say("Choose fewer variables, or a table that was answered before."),
    )


def _noted(decision: Decision) -> Decision:
    outcome = "recorded" if decision.released else "refused"
    return replace(decision, trace=(*decision.trace, TraceStep("ledger", outcome, _RECORDED)))


# --- The populations of a question


class _CategoryLine(NamedTuple):
    """Disjoint categories along an axis, in the order of their finest codes."""

    axis: GridAxis
    codes: tuple[str, ...]
    whole: bool
    """Whether it is one category, in which everybody counts."""


def _everything(dataset: Dataset) -> dict[str, int]:
    return {variable.name: (1 << len(variable.codes)) - 1 for variable in dataset.variables}


def _structure(dataset: Dataset) -> PopulationStructure:
    zeros = [
        {name: _bits(codes) for name, codes in zero.where.items()}
        for zero in dataset.structural_zeros
    ]
    return PopulationStructure(_everything(dataset), zeros)


def grids_of(
    query: TableQuery, dataset: Dataset, shown: ShownCounts | None
) -> Iterator[PopulationGrid]:
    """All populations whose numbers a question shows, or lets the rules look at.

    ``shown`` is what left; without it all numbers are taken to be unknown.
    """
    return QuestionGrids(dataset).of(query, shown)


class QuestionGrids:
    """The populations of questions about one dataset; what questions have in common is worked out once."""

    def __init__(self, dataset: Dataset) -> None:
        self._dataset, self._everything = dataset, _everything(dataset)
        self._lines: dict[tuple[Axis, int, bool], tuple[_CategoryLine, ...]] = {}
        self._known: dict[tuple[str, tuple[tuple[int, str], ...]], _CategoryLine] = {}
        self._filters: dict[Filter, int] = {}
        self._wide: dict[tuple[Axis, ...], tuple[PopulationGrid, ...]] = {}
        self._picks: dict[tuple[tuple[str, ...], tuple[str, ...]], Ints] = {}

    def of(self, query: TableQuery, shown: ShownCounts | None) -> Iterator[PopulationGrid]:
        """All populations of a question; see :func:`grids_of`."""
        seen: dict[tuple[GridAxis, ...], PopulationGrid] = {}
        parts = [query]
        if query.statistics or query.measure is not None:
            totals = share_totals(query)
            parts = [query.part(quantity, totals) for quantity in quantities(query)]
        for part in parts:
            where = {item.variable: self._passing(item) for item in part.where}
            narrowed = where and not all(axis.complete for axis in part.by)
            same = part.by == query.by and part.where == query.where
            for grid in (
                *self._grids(part.by, where, shown if same else None, wide=False),
                *(self._grids(part.by, where, None, wide=True) if narrowed else ()),
                *self._widest(part.by),
            ):
                if grid.axes not in seen or grid.numbers is not None:
                    seen[grid.axes] = grid
        yield from seen.values()

    def _passing(self, item: Filter) -> int:
        if item not in self._filters:
            self._filters[item] = _bits(item.members(self._dataset.variable(item.variable)))
        return self._filters[item]

    def _widest(self, by: tuple[Axis, ...]) -> tuple[PopulationGrid, ...]:
        if by not in self._wide:
            self._wide[by] = tuple(self._grids(by, {}, None, wide=True))
        return self._wide[by]

    def _grids(
        self,
        by: tuple[Axis, ...],
        where: Mapping[str, int],
        shown: ShownCounts | None,
        *,
        wide: bool,
    ) -> Iterator[PopulationGrid]:
        names, every = {axis.variable for axis in by}, self._everything
        fixed = [
            self._line(name, ((bits, ""),)) for name, bits in where.items() if name not in names
        ]
        lines = (self._lines_of(a, where.get(a.variable, every[a.variable]), wide) for a in by)
        for chosen in product(*lines):
            along = sorted((*chosen, *fixed), key=lambda line: line.axis.variable)
            axes = tuple(line.axis for line in along if not line.whole)
            numbers = None if shown is None else self._numbers(shown, chosen)
            if numbers is not None:
                kept = [at for at, line in enumerate(chosen) if not line.whole]
                order = sorted(kept, key=lambda at: chosen[at].axis.variable)
                gone = [at for at in range(len(chosen)) if at not in kept]
                shape = [len(axis.parts) for axis in axes]
                numbers = np.transpose(numbers, [*order, *gone]).reshape(shape).copy()
            yield PopulationGrid(axes, numbers)

    def _lines_of(self, axis: Axis, allowed: int, wide: bool) -> tuple[_CategoryLine, ...]:
        """The categories along an axis; those that overlap, as a total and its parts, in lines of their own."""
        key = axis, allowed, wide
        if key not in self._lines:
            variable = self._dataset.variable(axis.variable)
            categories = axis.categories(variable)
            if wide:
                totals = (c for c in categories if c.code == TOTAL_CODE)
                categories = (*axis.widened(variable), *totals)
            layers: list[list[tuple[int, str]]] = []
            for category in categories:
                is_total = category.code == TOTAL_CODE
                bits = allowed if is_total else _bits(category.member_set) & allowed
                if not bits:
                    continue
                for layer in layers:
                    if not any(other & bits for other, _ in layer):
                        layer.append((bits, category.code))
                        break
                else:
                    layers.append([(bits, category.code)])
            self._lines[key] = tuple(
                self._line(axis.variable, tuple(sorted(layer))) for layer in layers
            )
        return self._lines[key]

    def _line(self, variable: str, layer: tuple[tuple[int, str], ...]) -> _CategoryLine:
        if (variable, layer) not in self._known:
            parts, codes = zip(*layer, strict=True)
            whole = parts == (self._everything[variable],)
            self._known[variable, layer] = _CategoryLine(GridAxis(variable, parts), codes, whole)
        return self._known[variable, layer]

    def _numbers(self, shown: ShownCounts, chosen: Sequence[_CategoryLine]) -> Ints | None:
        """The numbers along chosen categories; None where others were shown."""
        if shown.names != tuple(line.axis.variable for line in chosen):
            return None
        numbers = shown.numbers
        for at, (codes, line) in enumerate(zip(shown.codes, chosen, strict=True)):
            if codes != line.codes:
                pick = self._pick(codes, line.codes)
                gone = (pick < 0).reshape(along_axis(at, numbers.ndim))
                numbers = np.where(gone, HIDDEN, numbers.take(pick, axis=at))
        return numbers

    def _pick(self, codes: tuple[str, ...], wanted: tuple[str, ...]) -> Ints:
        known = self._picks.get((codes, wanted))
        if known is None:
            place = {code: at for at, code in enumerate(codes)}
            known = np.array([place.get(code, -1) for code in wanted], dtype=np.int64)
            self._picks[codes, wanted] = known
        return known


def _bits(members: frozenset[int]) -> int:
    return sum(1 << member for member in members)
