"""What can be changed about the view of a table: lists, boxes and links. A plain form, and plain addresses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlsplit

from lustrum.formats.cell_text import Placing
from lustrum.model.text import say
from lustrum.server.table_view.arrange import Arrangement
from lustrum.server.table_view.chart import fitting_kind, kind_of, kinds
from lustrum.server.table_view.layout import Grid, named
from lustrum.server.table_view.percentages import SHARES
from lustrum.server.urls.display import TableView

MOST_FOLDED = 40
"""So many blocks of rows are folded at once: an address names each of them."""

_SHOWN = (
    ("counts", say("Counts")),
    ("whole-percent", say("Share of all")),
    ("row-percent", say("Share of each row")),
    ("column-percent", say("Share of each column")),
    ("row-rate", SHARES["row-rate"]),
    ("difference", SHARES["difference"]),
    ("index", SHARES["index"]),
)
_PLACES = (
    ("rows", say("in the rows")),
    ("columns", say("in the columns")),
    ("layers", say("in separate parts")),
)
_NAMES = (("labels", say("Labels")), ("codes", say("Codes")), ("both", say("Codes and labels")))
WITHIN = {"row-percent": say("Share within each area"), "row-rate": say("Per 1,000 of each area")}
"""What shares of rows are called where each row is a place of a map."""

_FORMS = (("table", say("Table")), ("chart", say("Chart")), ("map", say("Map")))
_CLASSES = (("quantile", say("of equal number")), ("natural", say("by natural breaks")))
_CELLS = (
    ("off", say("Numbers alone")),
    ("on", say("Shades by size")),
    ("bars", say("Bars by size")),
)
_CHARTS = {
    "bars": say("Bars"),
    "stacked": say("Stacked bars"),
    "lines": say("Lines"),
    "pyramid": say("Pyramid"),
    "heat": say("Heat map"),
}
_SCALES = (
    ("fitting", say("as sizes need")),
    ("shared", say("the same for all")),
    ("own", say("one for each")),
)


@dataclass(frozen=True)
class ListOption:
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
    options: tuple[ListOption, ...]


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
    sorts: dict[str, tuple[str, str]]
    folds: dict[str, tuple[str, bool]]
    """For each block of rows the address that folds or opens it, and whether it is folded."""
    fold_all: str
    unfold: str
    as_table: bool


def controls(table: Arrangement, grid: Grid, page: str, mapped: str | None = None) -> Controls:
    """What can be changed, for the address of an answer without any view; ``mapped`` can be drawn as a map."""
    view, placing = table.view, table.placing
    parts = urlsplit(page)
    show = [_select("show", say("Show"), _offered(table), view.show)]
    if not table.release.additive:
        show = []
    layers = [_layer(table, position, n) for n, position in enumerate(placing.layers)]
    turning = enumerate(_order(placing)) if view.form != "map" else ()
    further = [_pivot(table, position, n) for n, position in turning]
    further += [
        _select("sort", say("Order of the rows"), _sorts(table, grid.parts), view.sort),
        _select("names", say("Categories as"), _NAMES, view.names),
    ]
    if view.form == "table":
        further.append(_select("heat", say("In the cells"), _CELLS, view.heat))
    if view.share:
        numbers = [(str(n), str(n)) for n in range(4)]
        further.append(
            _select("decimals", say("Decimals of percentages"), numbers, str(view.decimals))
        )
    if view.form == "chart" and len(table.axes) > 2:
        further.append(_select("scale", say("Scale of small charts"), _SCALES, view.scale))
    if view.form == "map":
        layers += [_against(table, position, n) for n, position in enumerate(placing.layers)]
        further.append(_select("classes", say("Classes"), _CLASSES, view.classes))
    return Controls(
        action=parts.path,
        hidden=(
            *parse_qsl(parts.query, keep_blank_values=True),
            *((("as", view.form),) if view.form != "table" else ()),
            *(("fold", key) for key in view.fold),
        ),
        forms=tuple(
            Link(text, view.but(form=form).address(page), view.form == form)
            for form, text in _FORMS
            if form != "map" or mapped is not None
        ),
        turn=_turned(table).address(page) if table.axes and view.form != "map" else "",
        first=(*show, *_charts(table), *layers),
        further=tuple(further),
        boxes=tuple(_boxes(table)),
        beside=tuple(_beside(table, page)),
        pages=tuple(_pages(view, grid, page)),
        everything=view.but(page=None).address(page) if grid.pages > 1 else "",
        plain=TableView(form=view.form).address(page),
        changed=view.but(layer=view.layer if view.form != "map" else (), against=())
        != TableView(form=view.form),
        sorts={
            key: _cycled(view, key, page)
            for key in ("label", *(head.sort for head in grid.columns if head.sort))
        },
        folds={key: _folded(view, key, page) for key in table.block_keys},
        fold_all=view.but(fold=table.block_keys).address(page)
        if 1 < len(table.block_keys) <= MOST_FOLDED and set(table.block_keys) != set(view.fold)
        else "",
        unfold=view.but(fold=()).address(page) if view.fold else "",
        as_table=view.form == "table",
    )


def _select(
    name: str, label: str, options: Iterable[tuple[str, str]], chosen: str, identity: str = ""
) -> Select:
    list_options = tuple(ListOption(value, text, value == chosen) for value, text in options)
    return Select(name, identity or f"view-{name}", label, list_options)


def _charts(table: Arrangement) -> list[Select]:
    """The kinds of charts that can show the table, the fitting one chosen unless another was."""
    if table.view.form != "chart":
        return []
    fitting, now = fitting_kind(table), kind_of(table)
    options = [
        ("" if kind == fitting else kind, text)
        for kind, text in _CHARTS.items()
        if kind in kinds(table)
    ]
    chosen = "" if now == fitting else now
    return [_select("chart", say("Kind of chart"), options, chosen)] if options[1:] else []


def _offered(table: Arrangement) -> list[tuple[str, str]]:
    """Percentages only of what runs that way."""
    compared = (
        bool(table.placing.columns) and table.view.form == "table" and not table.release.statistics
    )
    there = {
        "row-percent": bool(table.placing.columns) or table.view.form == "map",
        "row-rate": bool(table.placing.columns) or table.view.form == "map",
        "column-percent": bool(table.placing.rows),
        "difference": compared,
        "index": compared,
    }
    within = {"whole-percent": say("Share of all {units}", units=table.release.unit), **WITHIN}
    words = within if table.view.form == "map" else {"whole-percent": within["whole-percent"]}
    offered: list[tuple[str, str]] = [
        (v, words.get(v, t)) for v, t in _SHOWN if there.get(v, True) or v == table.view.show
    ]
    if not table.release.label:
        return offered
    plain: tuple[str, str] = ("counts", say("Figures"))
    return [plain, *offered[1:]]


def _order(placing: Placing) -> tuple[int, ...]:
    return (*placing.layers, *placing.rows, *placing.columns)


def _pivot(table: Arrangement, position: int, n: int) -> Select:
    axis = table.axes[position]
    here = next(p for p, _ in _PLACES if position in getattr(table.placing, p))
    options = [(f"{axis.name}:{zone}", text) for zone, text in _PLACES]
    label = say("{variable} stands", variable=axis.label)
    return _select("pivot", label, options, f"{axis.name}:{here}", f"view-pivot-{n + 1}")


def _layer(table: Arrangement, position: int, n: int) -> Select:
    axis = table.axes[position]
    chosen = dict(table.view.layer).get(axis.name)
    options: list[tuple[str, str]] = [("", say("All, one below the other"))]
    one = table.release.statistics and axis is table.axes[-1] and table.view.form == "chart"
    if one or table.view.form == "map":
        options = []
    options += [(f"{axis.name}:{c.code}", named(c, table.view.names)) for c in axis.categories]
    here = "" if chosen is None else f"{axis.name}:{chosen}"
    return _select("layer", axis.label, options, here, f"view-layer-{n + 1}")


def _against(table: Arrangement, position: int, n: int) -> Select:
    """Of which category a second map is drawn beside the first."""
    axis = table.axes[position]
    chosen, shown = dict(table.view.against).get(axis.name), dict(table.view.layer).get(axis.name)
    options: list[tuple[str, str]] = [("", say("No other map"))]
    options += [
        (f"{axis.name}:{c.code}", say("Beside it: {category}", category=named(c, table.view.names)))
        for c in axis.categories
        if c.code != shown
    ]
    label = say("{variable} of a second map", variable=axis.label)
    here = "" if chosen is None else f"{axis.name}:{chosen}"
    return _select("against", label, options, here, f"view-against-{n + 1}")


def _sorts(table: Arrangement, parts: str) -> list[tuple[str, str]]:
    usual = say("As in the classification")
    if table.view.form == "map":
        usual = say("By {level}, largest first", level=parts) if parts else say("Largest first")
    options: list[tuple[str, str]] = [
        ("", usual),
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
    if table.release.least is not None and table.release.most is not None:
        yield Box("bounds", "on", say("Show bounds that hold with certainty"), view.bounds == "on")


def _turned(table: Arrangement) -> TableView:
    """Rows become columns and columns rows; the parts stay."""
    placing = table.placing
    names = [axis.name for axis in table.axes]
    pivot = [(names[i], "layers") for i in placing.layers]
    pivot += [(names[i], "rows") for i in placing.columns]
    pivot += [(names[i], "columns") for i in placing.rows]
    swap = {"row-percent": "column-percent", "column-percent": "row-percent"}
    show = swap.get(table.view.show, table.view.show)
    return table.view.but(pivot=tuple(pivot), show=show, sort="")


def _beside(table: Arrangement, page: str) -> Iterable[Link]:
    """The parts before and after the one that is shown."""
    chosen = dict(table.view.layer)
    shown = [table.axes[i] for i in table.placing.layers if table.axes[i].name in chosen]
    if len(shown) != 1:
        return
    axis = shown[0]
    at = axis.codes.index(chosen[axis.name])
    for neighbour in (at - 1, at + 1):
        if 0 <= neighbour < len(axis):
            category = axis.categories[neighbour]
            view = table.view.but(layer=((axis.name, category.code),))
            yield Link(named(category, table.view.names), view.address(page), neighbour > at)


def _pages(view: TableView, grid: Grid, page: str) -> Iterable[Link]:
    """The first, the last and those around the page that is shown."""
    if grid.pages < 2:
        return
    wanted = {1, grid.pages, *range(grid.page - 2, grid.page + 3)}
    for number in sorted(n for n in wanted if 1 <= n <= grid.pages):
        here = view.page is not None and number == grid.page
        yield Link(str(number), view.but(page=number).address(page), here)


def _folded(view: TableView, key: str, page: str) -> tuple[str, bool]:
    """The address that folds a block of rows to its totals, or opens it again, and whether it is folded."""
    there = key in view.fold
    rest = tuple(folded_key for folded_key in view.fold if folded_key != key)
    return view.but(fold=rest if there else (*rest, key)).address(page), there


def _cycled(view: TableView, key: str, page: str) -> tuple[str, str]:
    """The next order by a column, and the present one: largest first, smallest first, none."""
    first, second = (key, f"-{key}") if key == "label" else (f"-{key}", key)
    following = {first: second, second: ""}.get(view.sort, first)
    state = {key: "ascending", f"-{key}": "descending"}.get(view.sort, "")
    return view.but(sort=following).address(page), state
