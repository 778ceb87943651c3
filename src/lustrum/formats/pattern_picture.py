"""A picture of a pattern of suppression: every cell a square, hatched where it is not shown.

The picture is made from a release, so it shows nothing that the protected table does not. Kinds differ in
hatching as well as in colour, so that they can be told apart in print; in dark mode the colours are others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from lustrum.formats.cell_text import number_text
from lustrum.model import CellStatus, InputError, Release, TableAxis
from lustrum.runtime.svg import element, escaped, scrolling

_MOST_SQUARES = 60_000
_MOST_FIGURES = 3_000

_COLOURS = """
.pattern { --ground: #ffffff; --ink: #1a1f36; --line: #c3c7d4; --shown: #eef0f4; --total: #dfe3ea;
  --primary: #9c1c16; --secondary: #c77d0a; --never: #4a5068; --mark: #ffffff }
@media (prefers-color-scheme: dark) { .pattern { --ground: #14161f; --ink: #e8e9f0; --line: #3a3f52;
  --shown: #262a38; --total: #343a4d; --primary: #ff7b72; --secondary: #e3b341; --never: #9aa0b8;
  --mark: #14161f } }
@media print { .pattern { --ground: #ffffff; --ink: #000000; --line: #999999; --shown: #ffffff;
  --total: #eeeeee; --primary: #000000; --secondary: #666666; --never: #333333; --mark: #ffffff } }
"""

_STYLE = (
    _COLOURS
    + """
.pattern .ground { fill: var(--ground) } .pattern text { fill: var(--ink); font: 11px system-ui, sans-serif }
.pattern .title { font-weight: 600; font-size: 13px }
.pattern .shown { fill: var(--shown) } .pattern .total { fill: var(--total) }
.pattern .primary { fill: var(--primary) } .pattern .secondary { fill: url(#secondary) }
.pattern .never { fill: url(#never) } .pattern rect.cell { stroke: var(--line); stroke-width: .5 }
"""
)

_HATCHING = """<defs>
<pattern id="secondary" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
<rect width="5" height="5" style="fill:var(--ground)"/>
<rect width="2.6" height="5" style="fill:var(--secondary)"/></pattern>
<pattern id="never" width="4" height="4" patternUnits="userSpaceOnUse">
<rect width="4" height="4" style="fill:var(--ground)"/><circle cx="2" cy="2" r="1.1" style="fill:var(--never)"/>
</pattern></defs>"""

_KINDS = (
    ("shown", "published"),
    ("total", "published total or subtotal"),
    ("primary", "primary: suppressed for its own sake"),
    ("secondary", "secondary: suppressed to protect another cell"),
    ("never", "not for publication"),
)


def pattern_svg(releases: Release | Sequence[Release], titles: str | Sequence[str] = "") -> str:
    """The picture as SVG: the first dimension goes down, the second across, others make further panels.

    Several tables stand below each other, each under its title.

    >>> from lustrum.model import Table
    >>> from lustrum.protect.suppression import Suppression
    >>> told = Suppression(reasons=True).apply(Table.from_counts([[1, 8], [9, 7]]))
    >>> picture = pattern_svg(told)
    >>> picture.startswith("<svg"), picture.count('class="cell primary"')  # the cell and the legend
    (True, 2)
    """
    tables, names = _several(releases, titles)
    drawn = [_drawing(release, name) for release, name in zip(tables, names, strict=True)]
    width = max(one.width for one in drawn)
    body, y = [], 0
    for one in drawn:
        body.append(element("g", one.body, transform=f"translate(0 {y})") if y else one.body)
        y += one.height
    said = " ".join(_summary(release) for release in tables)
    ground = element("rect", class_="ground", width="100%", height="100%")
    picture = element(
        "svg",
        f"<style>{_STYLE}</style>{_HATCHING}",
        ground,
        *body,
        class_="pattern",
        xmlns="http://www.w3.org/2000/svg",
        viewBox=f"0 0 {width} {y}",
        width=width,
        height=y,
        role="img",
        aria_label=said,
    )
    return f"{picture}\n"


def pattern_page(releases: Release | Sequence[Release], titles: str | Sequence[str] = "") -> str:
    """The pictures on a page of their own, with the figures of each table that is not too large."""
    tables, names = _several(releases, titles)
    head = (names[0] or "Suppression") if len(tables) == 1 else "Suppression of linked tables"
    parts = []
    for release, name in zip(tables, names, strict=True):
        if len(tables) > 1:
            parts.append(element("h2", escaped(name)))
        parts.append(element("p", escaped(_summary(release))))
        parts.append(scrolling(f"Picture: {name}" if name else "Picture", pattern_svg(release)))
        if release.numbers.size <= _MOST_FIGURES:
            parts.append(_figures(release))
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escaped(head)}</title><style>{_COLOURS}{_PAGE}</style></head>"
        f'<body class="pattern"><h1>{escaped(head)}</h1>{"".join(parts)}</body></html>\n'
    )


def _several(
    releases: Release | Sequence[Release], titles: str | Sequence[str]
) -> tuple[list[Release], list[str]]:
    tables = [releases] if isinstance(releases, Release) else list(releases)
    names = [titles] * len(tables) if isinstance(titles, str) else list(titles)
    return tables, names


@dataclass(frozen=True)
class _Drawing:
    """One table drawn: what it needs in width and height, and its elements."""

    width: int
    height: int
    body: str


def _drawing(release: Release, title: str) -> _Drawing:
    if release.numbers.size > _MOST_SQUARES:
        raise InputError(
            f"A picture shows at most {_MOST_SQUARES:,} cells; this table has {release.numbers.size:,}."
        )
    panels = _panels(release)
    side = 14 if max(release.shape[:2], default=1) <= 60 else 7
    kinds = _kinds(release)
    left = 14 + 7 * max((len(c) for c in _codes(release.axes, 0)), default=0)
    head = 14 + 7 * max((len(c) for c in _codes(release.axes, 1)), default=0) if side > 7 else 14
    across = len(release.axes[1]) if len(release.axes) > 1 else 1
    down = len(release.axes[0]) if release.axes else 1
    wide, high = left + across * side + 24, head + down * side + 30
    columns = max(1, min(len(panels), 1100 // wide))
    top = 34 if title else 8
    body = [element("text", escaped(title), class_="title", x=10, y=20)] if title else []
    for number, (name, rest) in enumerate(panels):
        x, y = (number % columns) * wide + 10, (number // columns) * high + top
        body.append(_panel(release, kinds, name, rest, (x, y), (left, head), side))
    legend_y = top + high * ((len(panels) + columns - 1) // columns) + 14
    used = [(kind, meaning) for kind, meaning in _KINDS if bool((kinds == kind).any())]
    # The legend wraps where the picture ends, and is at least as wide as its longest line.
    widths = [34 + 6 * len(meaning) for _, meaning in used]
    width = max(columns * wide + 10, 10 + max(widths, default=0), 10 + 8 * len(title))
    x = 10
    for (kind, meaning), needed in zip(used, widths, strict=True):
        if x > 10 and x + needed > width:
            x, legend_y = 10, legend_y + 18
        square = {"x": x, "y": legend_y - 11, "width": 13, "height": 13}
        body.append(element("rect", class_=f"cell {kind}", **square))
        body.append(element("text", escaped(meaning), x=x + 19, y=legend_y))
        x += needed
    return _Drawing(width, legend_y + 12, "".join(body))


_PAGE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 76rem; padding: 0 1rem;
  color: var(--ink); background: var(--ground) }
.scroll { overflow-x: auto } td { print-color-adjust: exact }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .85rem }
caption { text-align: left; font-weight: 600; padding: .4rem 0 }
th, td { border: 1px solid var(--line); padding: .15rem .45rem; text-align: right }
th { background: var(--total); text-align: left }
td.primary { background: var(--primary); color: var(--mark) }
td.secondary { background: repeating-linear-gradient(45deg, var(--ground) 0 7px, var(--secondary) 7px 8px) }
td.never { background: var(--total); font-style: italic }
"""


def _summary(release: Release) -> str:
    kinds = _kinds(release)
    counts = [int((kinds == kind).sum()) for kind in ("primary", "secondary", "never")]
    said = [
        f"{release.numbers.size:,} cells",
        f"{counts[0]:,} primary and {counts[1]:,} secondary suppressed",
    ]
    return "; ".join(said + ([f"{counts[2]:,} not for publication"] if counts[2] else [])) + "."


def _kinds(release: Release) -> np.ndarray:
    kinds = np.where(release.inner, "shown", "total").astype("<U9")
    kinds[~release.shown] = "primary"
    kinds[release.status == CellStatus.SECONDARY.value] = "secondary"
    kinds[release.status == CellStatus.NOT_FOR_PUBLICATION.value] = "never"
    return kinds


def _codes(axes: Sequence[TableAxis], index: int) -> tuple[str, ...]:
    return axes[index].codes if len(axes) > index else ()


def _panels(release: Release) -> list[tuple[str, tuple[int, ...]]]:
    """A panel for each combination of the dimensions beyond the second."""
    rest = release.axes[2:]
    out = []
    for at in product(*(range(len(axis)) for axis in rest)):
        name = ", ".join(f"{a.name} {a.codes[i]}" for a, i in zip(rest, at, strict=True))
        out.append((name, at))
    return out


def _panel(
    release: Release,
    kinds: np.ndarray,
    name: str,
    rest: tuple[int, ...],
    corner: tuple[int, int],
    margin: tuple[int, int],
    side: int,
) -> str:
    x, y = corner[0] + margin[0], corner[1] + margin[1]
    rows = release.axes[0] if release.axes else TableAxis.plain("", [""])
    columns = release.axes[1] if len(release.axes) > 1 else TableAxis.plain("", [""])
    parts = [element("text", escaped(name), x=corner[0], y=corner[1] + 2)] if name else []
    if side > 7:
        for i, code in enumerate(rows.codes):
            at = y + i * side + side - 3
            parts.append(element("text", escaped(code), x=x - 4, y=at, text_anchor="end"))
        for j, code in enumerate(columns.codes):
            at = x + j * side + side - 3
            turned = f"translate({at} {y - 4}) rotate(-90)"
            parts.append(element("text", escaped(code), transform=turned))
    for i, j in product(range(len(rows)), range(len(columns))):
        position = (i, j, *rest)[: len(release.axes)] if release.axes else ()
        labels = (f"{a.name} {a.labels[k]}" for a, k in zip(release.axes, position, strict=True))
        title = element("title", escaped(", ".join(labels)))
        square = {"x": x + j * side, "y": y + i * side, "width": side, "height": side}
        parts.append(element("rect", title, class_=f"cell {kinds[position]}", **square))
    return "".join(parts)


def _figures(release: Release) -> str:
    """The numbers, a table for each panel; a stated interval instead of a suppressed value."""
    kinds = _kinds(release)
    down, *across = release.axes or (TableAxis.plain("", [""]),)
    places = list(product(*(range(len(axis)) for axis in across)))
    names = (", ".join(a.labels[i] for a, i in zip(across, p, strict=True)) for p in places)
    heads = "".join(element("th", escaped(name or "value"), scope="col") for name in names)
    rows = []
    for i, label in enumerate(down.labels):
        cells = "".join(_figure(release, kinds, (i, *p)) for p in places)
        rows.append(element("tr", element("th", escaped(label), scope="row"), cells))
    first = element("tr", element("th", escaped(down.name), scope="col"), heads)
    return scrolling("Figures", element("table", "<caption>Figures</caption>", first, *rows))


def _figure(release: Release, kinds: np.ndarray, position: tuple[int, ...]) -> str:
    kind = kinds[position]
    if release.shown[position]:
        return f"<td>{number_text(int(release.numbers[position]), release.decimals)}</td>"
    shown = str(release.status[position])
    if release.stated[position] and release.least is not None and release.most is not None:
        ends = (
            number_text(int(a[position]), release.decimals) for a in (release.least, release.most)
        )
        shown = "–".join(ends)
    meaning = CellStatus(str(release.status[position])).meaning
    return element("td", shown, class_=kind, title=meaning)
