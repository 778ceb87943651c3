"""What can be changed about the view of a table: lists, boxes and links. A plain form, and plain addresses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from lustrum.formats.placing import Placing
from lustrum.model.text import say
from lustrum.server.table_view.arrange import Arrangement
from lustrum.server.table_view.layout import Grid, named
from lustrum.server.urls.display import View

__all__ = ["Box", "Controls", "Link", "Option", "Select", "controls"]

_SHOWN = (
    ("counts", say("Counts")),
    ("row-percent", say("Percentages of each row")),
    ("column-percent", say("Percentages of each column")),
    ("whole-percent", say("Percentages of the whole table")),
)
_PLACES = (
    ("rows", say("in the rows")),
    ("columns", say("in the columns")),
    ("wafers", say("in separate parts")),
)
_NAMES = (("labels", say("Labels")), ("codes", say("Codes")), ("both", say("Codes and labels")))
_BARS = (("grouped", say("side by side")), ("stacked", say("stacked")))


@dataclass(frozen=True)
class Option:
    """A choice of a list."""

    value: str
    text: str
    chosen: bool = False


@dataclass(frozen=True)
class Select:
    """A list to choose from."""

    name: str
    id: str
    label: str
    options: tuple[Option, ...]


@dataclass(frozen=True)
class Box:
    """A box to tick."""

    name: str
    value: str
    label: str
    ticked: bool


@dataclass(frozen=True)
class Link:
    """A link to another view; ``here`` is the one that is shown."""

    text: str
    address: str
    here: bool = False


@dataclass(frozen=True)
class Controls:
    """Everything that changes a view."""

    action: str
    hidden: tuple[tuple[str, str], ...]
    forms: tuple[Link, ...]
    turn: str
    first: tuple[Select, ...]
    further: tuple[Select, ...]
    boxes: tuple[Box, ...]
    beside: tuple[Link, ...]
    pages: tuple[Link, ...]
    everything: str
    plain: str
    changed: bool
    further_used: bool
    sorts: dict[str, tuple[str, str]]


def controls(table: Arrangement, grid: Grid, page: str) -> Controls:
    """What can be changed, for the address of an answer without any view."""
    view, placing = table.view, table.placing
    parts = urlsplit(page)
    show = [_select("show", say("Show"), _offered(table), view.show)]
    if not table.release.additive:
        show = []
    wafers = [_wafer(table, position, n) for n, position in enumerate(placing.wafers)]
    further = [_pivot(table, position, n) for n, position in enumerate(_order(placing))]
    further += [
        _select("sort", say("Order of the rows"), _sorts(table), view.sort),
        _select("names", say("Categories as"), _NAMES, view.names),
    ]
    if view.percent:
        numbers = [(str(n), str(n)) for n in range(4)]
        further.append(
            _select("decimals", say("Decimals of percentages"), numbers, str(view.decimals))
        )
    if view.form == "chart" and placing.columns:
        further.append(_select("bars", say("Bars"), _BARS, view.bars))
    return Controls(
        action=parts.path,
        hidden=(
            *parse_qsl(parts.query, keep_blank_values=True),
            *((("as", "chart"),) if view.form == "chart" else ()),
        ),
        forms=tuple(
            Link(text, view.but(form=form).address(page), view.form == form)
            for form, text in (("table", say("Table")), ("chart", say("Chart")))
        ),
        turn=_turned(table).address(page) if table.axes else "",
        first=(*show, *wafers),
        further=tuple(further),
        boxes=tuple(_boxes(table)),
        beside=tuple(_beside(table, page)),
        pages=tuple(_pages(view, grid, page)),
        everything=view.but(page=None).address(page) if grid.pages > 1 else "",
        plain=View(form=view.form).address(page),
        changed=view.but() != View(form=view.form),
        further_used=view.margins == "off"
        or view.empty == "hide"
        or view.bounds == "on"
        or view.names != "labels",
        sorts={
            key: _cycled(view, key, page)
            for key in ("label", *(head.sort for head in grid.columns if head.sort))
        },
    )


def _select(
    name: str, label: str, options: Iterable[tuple[str, str]], chosen: str, identity: str = ""
) -> Select:
    found = tuple(Option(value, text, value == chosen) for value, text in options)
    return Select(name, identity or f"view-{name}", label, found)


def _offered(table: Arrangement) -> list[tuple[str, str]]:
    """Percentages only of what runs that way."""
    there = {
        "row-percent": bool(table.placing.columns),
        "column-percent": bool(table.placing.rows),
    }
    found: list[tuple[str, str]] = [
        (v, t) for v, t in _SHOWN if there.get(v, True) or v == table.view.show
    ]
    if not table.release.label:
        return found
    plain: tuple[str, str] = ("counts", say("Figures"))
    return [plain, *found[1:]]


def _order(placing: Placing) -> tuple[int, ...]:
    return (*placing.wafers, *placing.rows, *placing.columns)


def _pivot(table: Arrangement, position: int, n: int) -> Select:
    axis = table.axes[position]
    here = next(p for p, _ in _PLACES if position in getattr(table.placing, p))
    options = [(f"{axis.name}:{place}", text) for place, text in _PLACES]
    label = say("{variable} stands", variable=axis.label)
    return _select("pivot", label, options, f"{axis.name}:{here}", f"view-pivot-{n + 1}")


def _wafer(table: Arrangement, position: int, n: int) -> Select:
    axis = table.axes[position]
    chosen = dict(table.view.wafer).get(axis.name)
    options: list[tuple[str, str]] = [("", say("All, one below the other"))]
    if table.release.statistics and axis is table.axes[-1] and table.view.form == "chart":
        options = []
    options += [(f"{axis.name}:{c.code}", named(c, table.view.names)) for c in axis.categories]
    here = "" if chosen is None else f"{axis.name}:{chosen}"
    return _select("wafer", axis.label, options, here, f"view-wafer-{n + 1}")


def _sorts(table: Arrangement) -> list[tuple[str, str]]:
    options: list[tuple[str, str]] = [
        ("", say("As in the classification")),
        ("label", say("By name, A to Z")),
        ("-label", say("By name, Z to A")),
    ]
    sort = table.view.sort
    if sort.removeprefix("-") not in ("", "label"):
        down = sort.startswith("-")
        text = say("By a column, largest first") if down else say("By a column, smallest first")
        options.append((sort, text))
    return options


def _boxes(table: Arrangement) -> Iterable[Box]:
    view = table.view
    yield Box("empty", "hide", say("Hide empty rows"), view.empty == "hide")
    if any(not axis.inner.all() for axis in table.axes):
        yield Box("margins", "off", say("Hide totals"), view.margins == "off")
    if table.release.low is not None and table.release.high is not None:
        yield Box("bounds", "on", say("Show what the true value can be"), view.bounds == "on")


def _turned(table: Arrangement) -> View:
    """Rows become columns and columns rows; the parts stay."""
    placing = table.placing
    names = [axis.name for axis in table.axes]
    pivot = [(names[i], "wafers") for i in placing.wafers]
    pivot += [(names[i], "rows") for i in placing.columns]
    pivot += [(names[i], "columns") for i in placing.rows]
    swap = {"row-percent": "column-percent", "column-percent": "row-percent"}
    show = swap.get(table.view.show, table.view.show)
    return table.view.but(pivot=tuple(pivot), show=show, sort="")


def _beside(table: Arrangement, page: str) -> Iterable[Link]:
    """The parts before and after the one that is shown."""
    chosen = dict(table.view.wafer)
    shown = [table.axes[i] for i in table.placing.wafers if table.axes[i].name in chosen]
    if len(shown) != 1:
        return
    axis = shown[0]
    at = axis.codes.index(chosen[axis.name])
    for place in (at - 1, at + 1):
        if 0 <= place < len(axis):
            category = axis.categories[place]
            view = table.view.but(wafer=((axis.name, category.code),))
            yield Link(named(category, table.view.names), view.address(page), place > at)


def _pages(view: View, grid: Grid, page: str) -> Iterable[Link]:
    """The first, the last and those around the page that is shown."""
    if grid.pages < 2:
        return
    wanted = {1, grid.pages, *range(grid.page - 2, grid.page + 3)}
    for number in sorted(n for n in wanted if 1 <= n <= grid.pages):
        here = view.page is not None and number == grid.page
        yield Link(str(number), view.but(page=number).address(page), here)


def _cycled(view: View, key: str, page: str) -> tuple[str, str]:
    """The next order by a column, and the present one: largest first, smallest first, none."""
    first, second = (key, f"-{key}") if key == "label" else (f"-{key}", key)
    following = {first: second, second: ""}.get(view.sort, first)
    state = {key: "ascending", f"-{key}": "descending"}.get(view.sort, "")
    return view.but(sort=following).address(page), state
