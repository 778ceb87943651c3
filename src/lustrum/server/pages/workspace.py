"""The workspace: what stands where in the table, and what can be put there, as links that need no script."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from urllib.parse import parse_qsl

from lustrum.formats.cell_text import Placing, usual_placing
from lustrum.model import Axis, Category, Filter, QueryError, TableQuery, Variable
from lustrum.model.text import say
from lustrum.model.variable import categories_of
from lustrum.server.http.languages import current
from lustrum.server.pages import cut_points
from lustrum.server.service.catalogue import means, meant
from lustrum.server.service.served_dataset import ServedDataset
from lustrum.server.table_view import titles
from lustrum.server.urls import forms
from lustrum.server.urls.display import TableView

READABLE = 25
"""A variable goes into the table at its finest level that has no more categories than this."""

MOST_FOUND = 40
"""So many categories are listed for a search."""

ZONES = {"rows": say("Rows"), "columns": say("Columns"), "layers": say("Layers")}


@dataclass(frozen=True)
class TableLink:
    """A link to the table with one change; ``to`` is the zone that it puts a variable into.

    ``key`` presses it; without one it is the first letter of its text.
    """

    text: str
    address: str
    here: bool = False
    to: str = ""
    key: str = ""


@dataclass(frozen=True)
class Cutting:
    """A form for cut points: an example of them, where the form leads, and what it sends along."""

    example: str
    action: str
    other_fields: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Entry:
    """A variable with what can be done with it; ``why`` says why it cannot be chosen."""

    name: str
    label: str
    said: str
    moves: tuple[TableLink, ...]
    levels: tuple[TableLink, ...] = ()
    categories: str = ""
    why: str = ""
    cutting: Cutting | None = None


@dataclass(frozen=True)
class FilterEntry:
    """A filter in use: what it says, the address without it, and the one that opens its categories."""

    variable: str
    text: str
    without: str
    categories: str


@dataclass(frozen=True)
class Zone:
    """A place of the table and the variables in it."""

    name: str
    label: str
    entries: tuple[Entry, ...]


@dataclass(frozen=True)
class FoundCategory:
    """A category, or several that were listed, with links: count only these, compare them, map their share."""

    text: str
    only: str
    beside: str
    shares: str = ""


@dataclass(frozen=True)
class Found:
    """Categories of a variable that a search found; ``places`` says of what a map shows their share."""

    variable: str
    choices: tuple[FoundCategory, ...]
    places: str = ""


@dataclass(frozen=True)
class Workspace:
    """All that can be chosen."""

    zones: tuple[Zone, ...]
    filters: tuple[FilterEntry, ...]
    variables: tuple[Entry, ...]


def default_query(served: ServedDataset) -> TableQuery:
    """The table that a dataset opens with: ages or the like by periods, sex or a short variable.

    It has totals, but none of periods.

    A survey opens with weighted numbers: those are about people, the others about who happened to be asked.
    """
    axes = [(v, _axis(served, v)) for v in served.variables]
    if not axes:
        return TableQuery(served.dataset.name, ())
    sizes = {v.name: len(axis.categories(v)) for v, axis in axes}
    several = [(v, a) for v, a in axes if 5 <= sizes[v.name] <= READABLE]
    numbered = [v for v, a in several if any(c.label[:1].isdigit() for c in a.categories(v))]
    most = max(numbered, key=lambda v: sizes[v.name], default=None)
    down = next((a for v, a in several if most in (None, v)), axes[0][1])
    rest = [
        (v, a) for v, a in axes if a is not down and not served.conflict(v.name, [down.variable])
    ]
    few = [(v, a) for v, a in rest if 2 <= sizes[v.name] <= 6]
    first = [a for v, a in few if v.period] + [
        a for v, a in few if means("gender", v.name, v.label)
    ]
    across = next(iter(first), few[0][1] if few else None)
    wanted = (down, across) if across is not None and served.rules.max_dimensions > 1 else (down,)
    weight = next((w.name for w in served.weights), None)
    by = tuple(
        replace(axis, total=not served.dataset.variable(axis.variable).period) for axis in wanted
    )
    return TableQuery(served.dataset.name, by, weight=weight)


def fitting(view: TableView, query: TableQuery) -> TableView:
    """The view without what it says of variables that are not in the table any more."""
    there = {axis.variable for axis in query.by} | {"statistic"}
    named = {part.partition(":")[0] for part in view.sort.removeprefix("-").split(",")}
    plain = {"", "label", "value"}
    return replace(
        view,
        pivot=tuple(pair for pair in view.pivot if pair[0] in there),
        layer=tuple(pair for pair in view.layer if pair[0] in there),
        against=tuple(pair for pair in view.against if pair[0] in there),
        sort=view.sort if named <= there | plain else "",
    )


def workspace(served: ServedDataset, query: TableQuery, view: TableView) -> Workspace:
    """What stands where, and every change that one link makes."""
    hand = _Hand(served, query, view)
    chosen = {axis.variable for axis in query.by}
    return Workspace(
        tuple(
            Zone(zone, label, tuple(hand.entry(axis) for axis, at in hand.placed if at == zone))
            for zone, label in ZONES.items()
        ),
        tuple(hand.changing(item) for item in query.where),
        tuple(hand.spare(v) for v in served.variables if v.name not in chosen),
    )


def search(
    served: ServedDataset, query: TableQuery, view: TableView, wanted: str
) -> tuple[tuple[Entry, ...], tuple[Found, ...]]:
    """Variables and categories that mean what is wanted."""
    hand = _Hand(served, query, view)
    there = {axis.variable: axis for axis in query.by}
    entries, matches, left = [], [], MOST_FOUND
    for variable in served.variables:
        coarser = [level.label for level in variable.levels]
        if means(wanted, variable.name, variable.label, *coarser):
            axis = there.get(variable.name)
            entries.append(hand.spare(variable) if axis is None else hand.entry(axis))
        several = _listed(served, variable, wanted)
        if several:
            matches.append(Found(variable.label, (hand.found(variable, several),)))
            continue
        categories = list(islice(_categories(served, variable, wanted), left))
        left -= len(categories)
        if categories and served.rules.max_filters:
            before = next((f.codes for f in query.where if f.variable == variable.name), ())
            choices = (
                hand.found(variable, [c], before) for c in categories if c.code not in before
            )
            matches.append(Found(variable.label, tuple(choices), hand.places(variable)))
    return tuple(entries), tuple(matches)


def _listed(served: ServedDataset, variable: Variable, wanted: str) -> list[Category]:
    """The categories that a list such as ``Lakes, Highmoor`` or a range such as ``age 15-64`` means."""
    wanted = wanted.strip()
    begins = wanted.casefold().startswith(str(current().say(variable.label)).casefold() + " ")
    if begins:
        wanted = wanted[len(str(current().say(variable.label))) :]
    elif "," not in wanted:
        return []
    try:
        found = categories_of(wanted, variable)
    except QueryError:
        return []
    levels = {c.code for level in served.levels(variable) for c in level.categories}
    return found if all(c.code in levels or variable.is_at(c.code) for c in found) else []


def _categories(served: ServedDataset, variable: Variable, wanted: str) -> Iterator[Category]:
    """The categories that mean what is wanted, coarse levels first."""
    words = meant(wanted)
    for level in reversed(served.levels(variable)):
        categories = variable.search(words, level.name)
        yield from (c for c in categories if c.code not in level.kept_codes)
    yield from variable.search(words)


class _Hand:
    """Moves variables about; each change is an address."""

    def __init__(self, served: ServedDataset, query: TableQuery, view: TableView) -> None:
        self._offer, self._query, self._view = served, query, view
        self.placed = _placed(served, query, view)

    def entry(self, axis: Axis) -> Entry:
        """A variable of the table."""
        variable = self._offer.dataset.variable(axis.variable)
        here = next(zone for placed_axis, zone in self.placed if placed_axis is axis)
        rest = [pair for pair in self.placed if pair[0] is not axis]
        moves = [
            TableLink(label, self._written([*rest, (axis, zone)]), to=zone)
            for zone, label in ZONES.items()
            if zone != here
        ]
        moves.append(TableLink(say("Remove"), self._written(rest), to="drop", key="Delete"))
        now = axis.level if not axis.groups else None
        levels = [
            TableLink(
                _rung(variable, way.value, way.categories),
                self._written(
                    [(_at(placed_axis, axis, way.value), zone) for placed_axis, zone in self.placed]
                ),
                way.value == (axis.variable if now is None else f"{axis.variable}:{now}")
                and not axis.groups,
            )
            for way in self._offer.axes(variable)
        ]
        said = titles.axis_words(axis, self._offer.dataset)
        return Entry(
            variable.name,
            variable.label,
            said,
            tuple(moves),
            tuple(levels) if len(levels) > 1 else (),
            self._opening("codes", variable.name),
            cutting=self._cutting(variable),
        )

    def spare(self, variable: Variable) -> Entry:
        """A variable that is not in the table yet."""
        served, query = self._offer, self._query
        chosen = [axis.variable for axis in query.by] + [item.variable for item in query.where]
        why = served.conflict(variable.name, chosen)
        if not why and len(query.by) >= served.rules.max_dimensions:
            why = say("the table has as many variables as it may have")
        total = any(axis.total for axis in query.by) or not query.by
        axis = replace(_axis(served, variable), total=total and not variable.period)
        moves = [
            TableLink(label, self._written([*self.placed, (axis, zone)]), to=zone)
            for zone, label in ZONES.items()
            if not why
        ]
        if len(query.where) < served.rules.max_filters or variable.name in chosen[len(query.by) :]:
            address = self._opening("where", variable.name)
            moves.append(TableLink(say("Filter"), address, to="where"))
        return Entry(variable.name, variable.label, variable.label, tuple(moves), why=why)

    def _cutting(self, variable: Variable) -> Cutting | None:
        """A form for cut points, where the codes are classes of a number and own groups are allowed."""
        example = cut_points.example(variable)
        if not example or self._offer.rules.nested_only:
            return None
        query_pairs = [*parse_qsl(forms.write(self._query)), *self._view.pairs()]
        return Cutting(example, f"/datasets/{self._query.dataset}", tuple(query_pairs))

    def found(
        self, variable: Variable, categories: Sequence[Category], before: tuple[str, ...] = ()
    ) -> FoundCategory:
        """Categories that a search found: counted alone, compared in the columns, their share on a map."""
        codes = tuple(c.code for c in categories)
        text: str = categories[0].label
        for category in categories[1:4]:
            text = say("{some}, {next}", some=text, next=category.label)
        if len(categories) > 4:
            text = say("{some} and {number} more", some=text, number=len(categories) - 4)
        rest = [(axis, zone) for axis, zone in self.placed if axis.variable != variable.name]
        room = len(rest) < self._offer.rules.max_dimensions
        total = any(axis.total for axis, _ in rest)
        across = (Axis(variable.name, codes=codes, total=total), "columns")
        if len(rest) > 1 and len(codes) > 1:
            # Two are compared by what stands in the rows.
            rest = [pair for pair in rest if pair[1] == "rows"][-1:] or rest[:1]
        return FoundCategory(
            text,
            self.filtered(variable.name, (*before, *codes)),
            self._written([*rest, across]) if room and len(codes) > 1 else "",
            self._shares(variable, codes[0]) if len(codes) == 1 else "",
        )

    def places(self, variable: Variable) -> str:
        """The places of which a map can show shares of a variable; none where there is no map."""
        mapped = next((g.variable for g in self._offer.dataset.maps), None)
        if mapped in (None, variable.name) or self._offer.rules.max_dimensions < 2:
            return ""
        axis = _axis(self._offer, self._offer.dataset.variable(mapped))
        place = self._offer.dataset.variable(mapped)
        return place.label if axis.level is None else place.level(axis.level).label

    def _shares(self, variable: Variable, code: str) -> str:
        """The map of places by the share of one category, with the ranked list of places."""
        mapped = next((g.variable for g in self._offer.dataset.maps), None)
        if mapped is None or not self.places(variable):
            return ""
        levels = [x.name for x in self._offer.levels(variable) if code in x.codes]
        level = None if variable.is_at(code) else next(iter(levels), None)
        places = _axis(self._offer, self._offer.dataset.variable(mapped))
        by = (replace(places, total=True), Axis(variable.name, level, total=True))
        where = tuple(f for f in self._query.where if f.variable not in (mapped, variable.name))
        view = TableView(form="map", show="row-percent", layer=((variable.name, code),))
        return self._address(replace(self._query, by=by, where=where), view)

    def filtered(self, variable: str, codes: tuple[str, ...]) -> str:
        """The table of those with one of the codes; of everybody where there are none."""
        rest = tuple(item for item in self._query.where if item.variable != variable)
        filters = (Filter(variable, codes),) if codes else ()
        return self._address(replace(self._query, where=(*rest, *filters)), self._view)

    def _opening(self, kind: str, name: str) -> str:
        """The page with a tree of categories beside the table."""
        return f"{self._address(self._query, self._view)}&tree={kind}:{name}"

    def changing(self, item: Filter) -> FilterEntry:
        """A filter that is in use."""
        words = titles.condition(item, self._offer.dataset)
        return FilterEntry(
            item.variable,
            words,
            self.filtered(item.variable, ()),
            self._opening("where", item.variable),
        )

    def _written(self, placed: Sequence[tuple[Axis, str]]) -> str:
        """The address of the table with its variables so placed."""
        ordered = [pair for zone in ZONES for pair in placed if pair[1] == zone]
        query = replace(self._query, by=tuple(axis for axis, _ in ordered))
        positions = [
            tuple(i for i, pair in enumerate(ordered) if pair[1] == zone) for zone in ZONES
        ]
        pivot: tuple[tuple[str, str], ...] = ()
        if Placing(*positions) != _usual(self._offer, query):
            pivot = tuple((axis.variable, zone_name) for axis, zone_name in ordered)
        return self._address(query, fitting(self._view.but(pivot=pivot), query))

    def _address(self, query: TableQuery, view: TableView) -> str:
        return view.but().address(f"/datasets/{query.dataset}?{forms.write(query)}")


def _usual(served: ServedDataset, query: TableQuery) -> Placing:
    sizes = [len(axis.categories(served.dataset.variable(axis.variable))) for axis in query.by]
    if len(query.statistics) > 1:
        sizes.append(len(query.statistics))
    return usual_placing(sizes)


def _placed(served: ServedDataset, query: TableQuery, view: TableView) -> list[tuple[Axis, str]]:
    """The variables of the table with their zones, the outer ones first."""
    usual, said = _usual(served, query), dict(view.pivot)
    order = list(said)
    placed = [
        (query.by[i], said.get(query.by[i].variable, zone))
        for zone in ZONES
        for i in getattr(usual, zone)
        if i < len(query.by)
    ]
    ranks = {name: rank for rank, name in enumerate(order)}
    return sorted(placed, key=lambda pair: ranks.get(pair[0].variable, -1))


def _axis(served: ServedDataset, variable: Variable) -> Axis:
    """A variable at a level that can be read."""
    if len(variable.codes) <= READABLE:
        return Axis(variable.name)
    levels = sorted(served.levels(variable), key=lambda level: -len(level.categories))
    fit = next((level for level in levels if len(level.categories) <= READABLE), None)
    level = fit or (levels[-1] if levels else None)
    return Axis(variable.name, level.name if level is not None else None)


def _rung(variable: Variable, value: str, number: int) -> str:
    """A level with its size, in words."""
    _, _, name = value.partition(":")
    level = variable.level(name).label if name else say("Every category")
    return say("{level} ({number:,})", level=level, number=number)


def _at(placed_axis: Axis, axis: Axis, value: str) -> Axis:
    """The axis at another level, if it is the one that changes."""
    if placed_axis is not axis:
        return placed_axis
    _, _, level = value.partition(":")
    return replace(axis, level=level or None, codes=None, groups=())
