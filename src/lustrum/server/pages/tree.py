"""The tree of categories beside the live table: of a variable in the table, or for who is counted.

Every row is a button of one plain form, so that each choice is an address; the script makes a tree of the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from lustrum.model import Axis, Category, Filter, Group, Level, QueryError, TableQuery, Variable
from lustrum.model.search_text import words_of
from lustrum.model.text import say, say_many
from lustrum.model.variable import categories_of, example_of
from lustrum.server.http.languages import current
from lustrum.server.service.served_dataset import ServedDataset

MOST_ROWS = 300
"""So many rows stand on a page at once; of a larger tree one branch is open."""

MOST_OF_NAME = 80
"""So long may the name of a group be."""

ACTS = ("tick", "untick", "take", "leave", "join", "part", "clear")
"""What a button does: tick or untick a category, or all that are found; make or part a group; untick all."""

_NUMBERED = re.compile(r"(?P<low>\d+)(?:\D+(?P<high>\d+))?(?P<rest>\D*)")

PARAMETERS = ("tree", "find", "under", "named", *ACTS)
Pairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class TreeRow:
    """A category: ``on``, ``some`` or ``off``, or ``in`` a group of its own name; and the rows below it."""

    code: str
    label: str
    state: str
    rows: tuple[TreeRow, ...] = ()
    closed: bool = False


@dataclass(frozen=True)
class Tree:
    """The categories of a variable to tick, for the table (``codes``) or for who is counted (``where``)."""

    kind: str
    variable: Variable
    label: str
    rows: tuple[TreeRow, ...]
    said: str
    more: int
    wanted: str
    found: int
    mistake: str
    example: str
    chosen: bool
    groups: tuple[str, ...]
    grouping: bool
    suggested: str
    fields: tuple[tuple[str, str], ...]


def split(pairs: Iterable[tuple[str, str]]) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """What an address says about a tree, and the rest."""
    about: list[tuple[str, str]] = []
    rest: list[tuple[str, str]] = []
    for name, value in pairs:
        (about if name in PARAMETERS else rest).append((name, value))
    return about, rest


def chosen(served: ServedDataset, query: TableQuery, about: Pairs) -> tuple[TableQuery, str]:
    """The question after what the buttons of a tree did, and the mistake there was."""
    branch = before = _branch(served, query, about)
    acts = [(name, value) for name, value in about if name in ACTS and value.strip()]
    try:
        for name, value in acts:
            if branch is None:
                raise QueryError(
                    say("Say with 'tree' which variable {name!r} is about.", name=name)
                )
            given = dict(about).get("named", "") if name == "join" else value
            branch = replace(branch, query=branch.after(name, given.strip()))
            branch.check()
    except QueryError as error:
        return query if before is None else before.query, error.args[0]
    return query if branch is None else branch.query, ""


def tree(served: ServedDataset, query: TableQuery, about: Pairs, fields: Pairs) -> Tree | None:
    """The tree that an address opens; ``fields`` say the question and its view."""
    branch = _branch(served, query, about)
    if branch is None:
        return None
    said = dict(about)
    wanted = said.get("find", "").strip()[:200]
    found: list[Category] = []
    mistake = ""
    if wanted:
        found, mistake = branch.matches(wanted)
        rows = tuple(branch.row(category) for category in found[:MOST_ROWS])
    else:
        rows = tuple(branch.rows(said.get("under", "")))
    listed_rows = found if wanted else branch.tops
    own = (("tree", said["tree"]), ("under", said.get("under", "")))
    return Tree(
        branch.kind,
        branch.variable,
        branch.variable.label if branch.level is None else branch.level.label,
        rows,
        branch.said(),
        max(0, len(listed_rows) - MOST_ROWS),
        wanted,
        len(found),
        mistake,
        example_of(branch.variable, branch.leaves),
        bool(branch.codes or branch.groups),
        tuple(group.label for group in branch.groups),
        branch.kind == "codes" and not served.rules.nested_only,
        branch.suggested(),
        (*fields, *((name, value) for name, value in own if value)),
    )


def _branch(served: ServedDataset, query: TableQuery, about: Pairs) -> _Branch | None:
    """The variable that is chosen from; none where it has left the table."""
    named = [value for name, value in about if name == "tree" and value]
    if not named:
        return None
    kind, _, name = named[-1].partition(":")
    if kind not in ("codes", "where") or not name:
        raise QueryError(
            say("'tree' must be such as codes:age or where:region, not {text!r}.", text=named[-1])
        )
    variable = served.dataset.variable(name)
    axis = next((axis for axis in query.by if axis.variable == name), None)
    if kind == "codes" and axis is None:
        return None
    return _Branch(served, query, kind, variable, axis if kind == "codes" else None)


@dataclass(frozen=True)
class _Branch:
    """A variable, and what is chosen of it."""

    served: ServedDataset
    query: TableQuery
    kind: str
    variable: Variable
    axis: Axis | None

    @property
    def _now(self) -> Axis | None:
        return next(
            (a for a in self.query.by if self.axis and a.variable == self.variable.name), None
        )

    @property
    def codes(self) -> tuple[str, ...]:
        """The codes that are ticked."""
        if self._now is not None:
            singles = tuple(g.members[0] for g in self._now.groups if self._single(g))
            return singles or self._now.codes or ()
        return next(
            (item.codes for item in self.query.where if item.variable == self.variable.name), ()
        )

    @property
    def groups(self) -> tuple[Group, ...]:
        """Own groups of several categories."""
        now = self._now
        return () if now is None else tuple(g for g in now.groups if not self._single(g))

    @property
    def level(self) -> Level | None:
        """The level of the variable in the table."""
        now = self._now
        return None if now is None or now.level is None else self.variable.level(now.level)

    @property
    def leaves(self) -> Sequence[Category]:
        """The finest categories that can be ticked."""
        return self.variable.finest if self.level is None else self.level.categories

    @property
    def rungs(self) -> list[Level]:
        """The levels above the leaves, coarse ones first."""
        ladder = next((h.levels for h in self.variable.hierarchies if self.level in h.levels), ())
        if self.level is None and self.variable.hierarchies:
            return list(reversed(self.variable.hierarchies[0].levels))
        return (
            list(reversed(ladder[ladder.index(self.level) + 1 :])) if self.level in ladder else []
        )

    @property
    def tops(self) -> list[Category]:
        """The rows that lie below no other one; levels of other hierarchies follow."""
        first = self.rungs[0].categories if self.rungs else self.leaves
        others: list[Category] = []
        if self.kind == "where":
            inside = {level.name for level in self.rungs}
            others = [
                group
                for level in self.served.levels(self.variable)
                if level.name not in inside
                for group in level.groups
            ]
        known = {c.code for c in self.leaves} | {c.code for c in others}
        further = [self.variable.category(code) for code in self.codes if code not in known]
        below = {c.code for level in self.rungs for c in level.categories}
        return [
            *first,
            *others,
            *(c for c in further if self.kind == "codes" or c.code not in below),
        ]

    def _single(self, group: Group) -> bool:
        """Whether an own group is one category under its own name."""
        label = self.variable.category(group.members[0]).label
        return len(group.members) == 1 and group.label == str(current().say(label))

    def below(self, category: Category) -> list[Category]:
        """The categories on the next rung within a category; none below a leaf."""
        names = [level.codes for level in self.rungs]
        at = next((i for i, codes in enumerate(names) if category.code in codes), None)
        if at is None:
            return []
        rung = self.rungs[at + 1].categories if at + 1 < len(names) else self.leaves
        inside = [c for c in rung if c.members[0] in category.member_set]
        same = [c.code for c in inside] == [category.code]
        return (self.below(inside[0]) if at + 1 < len(names) else []) if same else inside

    def leaves_of(self, category: Category) -> list[Category]:
        """The leaves within a category: itself where it is one."""
        inside = [c for c in self.leaves if c.member_set <= category.member_set]
        return inside or [category]

    def rows(self, under: str) -> Iterator[TreeRow]:
        """The tree; where it is large, only the branch that holds ``under`` is open."""
        whole = len(self.leaves) <= MOST_ROWS
        opened = self.variable.category(under).member_set if under else frozenset[int]()
        shut = (
            frozenset[str]()
            if self.kind == "where"
            else frozenset(self.codes) - {c.code for c in self.leaves}
        )

        def down(category: Category) -> TreeRow:
            inside = [] if category.code in shut else self.below(category)
            open_ = whole or bool(opened and opened <= category.member_set)
            rows = tuple(down(c) for c in inside[:MOST_ROWS]) if open_ else ()
            return replace(self.row(category), rows=rows, closed=bool(inside) and not open_)

        yield from (down(category) for category in self.tops[:MOST_ROWS])

    def row(self, category: Category) -> TreeRow:
        """A category alone."""
        if any(category.member_set <= self._members(g.members) for g in self.groups):
            return TreeRow(category.code, category.label, "in")
        known = self._ticked
        if self.kind == "codes" and category.code not in self._leaf_codes:
            inside = [c.code in known for c in self.leaves_of(category)]
            state = "on" if all(inside) else "some" if any(inside) else "off"
        else:
            ticked = self._members(self.codes) if self.kind == "where" else frozenset[int]()
            both = category.member_set & ticked
            whole = category.code in known or category.member_set <= ticked
            state = "on" if whole else "some" if both else "off"
        return TreeRow(category.code, category.label, state)

    @property
    def _ticked(self) -> frozenset[str]:
        return frozenset(self.codes)

    @property
    def _leaf_codes(self) -> frozenset[str]:
        return frozenset(c.code for c in self.leaves)

    def _members(self, codes: Iterable[str]) -> frozenset[int]:
        return frozenset(m for code in codes for m in self.variable.category(code).members)

    def said(self) -> str:
        """What is chosen so far, in words."""
        if self.groups:
            return say_many("{number} own group.", "{number} own groups.", len(self.groups))
        if not self.codes:
            return say("All are shown.") if self.kind == "codes" else say("Everybody is counted.")
        return say("{some:,} of {size:,} chosen", some=len(self.codes), size=len(self.leaves))

    def suggested(self) -> str:
        """A name for a group of what is ticked: ``15 to 64`` of ages side by side, else all of them."""
        labels = [str(current().say(self.variable.category(code).label)) for code in self.codes]
        place = [c.code for c in self.leaves]
        at = [place.index(code) for code in self.codes if code in place]
        name = ", ".join(labels)
        if len(at) == len(labels) > 1 and at == list(range(at[0], at[0] + len(at))):
            first, last = _NUMBERED.fullmatch(labels[0]), _NUMBERED.fullmatch(labels[-1])
            if first and last:
                high = last["high"] or ("" if last["rest"].strip() else last["low"])
                said = say("{low} to {high}", low=first["low"], high=high) if high else first["low"]
                name = f"{current().say(said)}{last['rest']}"
        return name if len(name) <= MOST_OF_NAME else ""

    def matches(self, wanted: str) -> tuple[list[Category], str]:
        """The categories that a range, a list or words mean, and why there are none."""
        try:
            return categories_of(wanted, self.variable, self.leaves), ""
        except QueryError as error:
            words = words_of(wanted)
            found = {
                c.code: c for level in self.rungs for c in self.variable.search(words, level.name)
            }
            level = self.level
            leaves = self.variable.search(words, None if level is None else level.name)
            found |= {c.code: c for c in leaves}
            return list(found.values()), "" if found else error.args[0]

    def after(self, act: str, value: str) -> TableQuery:
        """The question after a button was pressed."""
        if act == "clear":
            return self._with(())
        if act == "part":
            return replace(self, query=self._grouped(self._but(value)))._with(self.codes)
        if act == "join":
            return self._joined(value)
        on = act in ("tick", "take")
        if act in ("tick", "untick"):
            found = [self.variable.category(value)]
        else:
            found, mistake = self.matches(value)
            if mistake:
                raise QueryError(mistake)
        codes = self.codes
        for category in found:
            codes = self._ticking(codes, category, on)
        return self._with(codes)

    def check(self) -> None:
        """Refuse what no table can show, such as two groups of one name."""
        if self._now is not None:
            self._now.categories(self.variable)

    def _but(self, name: str) -> tuple[Group, ...]:
        return tuple(group for group in self.groups if group.label != name)

    def _ticking(self, codes: tuple[str, ...], category: Category, on: bool) -> tuple[str, ...]:
        if self.kind == "codes":
            inside = [c.code for c in self.leaves_of(category)]
            taken = {code for g in self.groups for code in g.members}
            rest = [code for code in codes if code not in inside]
            return (*rest, *(code for code in inside if code not in taken)) if on else tuple(rest)
        kept = [
            code
            for code in codes
            if not self.variable.category(code).member_set <= category.member_set
        ]
        if on:
            covered = category.member_set <= self._members(kept)
            return tuple(kept) if covered else (*kept, category.code)
        # What is left of a larger category that was ticked are its other parts.
        return tuple(
            c for code in kept for c in self._without(self.variable.category(code), category)
        )

    def _without(self, whole: Category, part: Category) -> list[str]:
        if not whole.member_set & part.member_set:
            return [whole.code]
        if whole.member_set <= part.member_set:
            return []
        inside = self.below(whole) or self.leaves_of(whole)
        return [code for c in inside for code in self._without(c, part)]

    def _with(self, codes: Iterable[str]) -> TableQuery:
        """The question with these codes ticked, in the order of the classification."""
        place = {c.code: i for i, c in enumerate(self.leaves)}
        categories = {code: self.variable.category(code) for code in codes}
        ordered = tuple(
            sorted(categories, key=lambda c: (place.get(c, -1), categories[c].members[0]))
            if self.kind == "codes"
            else sorted(categories, key=lambda c: categories[c].members[0])
        )
        if self.kind == "where":
            rest = tuple(i for i in self.query.where if i.variable != self.variable.name)
            filters = (Filter(self.variable.name, ordered),) if ordered else ()
            return replace(self.query, where=(*rest, *filters))
        if self.groups:
            singles = (
                Group(str(current().say(categories[code].label)), (code,)) for code in ordered
            )
            return self._grouped((*self.groups, *singles))
        whole = len(ordered) == len(place) and set(ordered) == set(place)
        return self._axis(codes=None if whole else ordered or None, groups=())

    def _joined(self, name: str) -> TableQuery:
        """The question with an own group of what is ticked."""
        if not name:
            raise QueryError(say("Give the group a name."))
        if any(group.label == name for group in self.groups):
            raise QueryError(say("There is a group {name!r} already.", name=name))
        if not self.codes:
            raise QueryError(say("Tick the categories of the group first."))
        members = sorted(self._members(self.codes))
        group = Group(name[:MOST_OF_NAME], tuple(self.variable.codes[m] for m in members))
        return self._grouped((*self.groups, group))

    def _grouped(self, groups: tuple[Group, ...]) -> TableQuery:
        return self._axis(level=None, codes=None, groups=groups)

    def _axis(self, **changes: object) -> TableQuery:
        now = self._now
        by = (replace(a, **changes) if a is now else a for a in self.query.by)  # type: ignore[arg-type]
        return replace(self.query, by=tuple(by))
