"""The pictures of the report: small SVGs that take their colours from the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lustrum.runtime.svg import element, escaped, scrolling

_ROW = 22


def bars(title: str, groups: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """Groups of horizontal bars, one bar for each series, with its number at the end."""
    series = list(dict.fromkeys(name for values in groups.values() for name in values))
    most = max((v for values in groups.values() for v in values.values()), default=0.0) or 1.0
    parts, y = [], 8
    for group, values in groups.items():
        parts.append(element("text", escaped(group), class_="head", x=0, y=y + 13))
        y += _ROW
        for name, value in values.items():
            width = 300 * value / most
            kind = series.index(name) % 4
            size = {"width": f"{max(width, 1):.1f}", "height": 14}
            parts += [
                element("text", escaped(name), x=8, y=y + 13),
                element("rect", class_=f"s{kind}", x=170, y=y + 3, **size, rx=2),
                element("text", f"{value:.2f}", x=f"{176 + width:.1f}", y=y + 14),
            ]
            y += _ROW
        y += 8
    return _svg(title, f"{title}, {unit}", 540, y, parts)


def pairs(title: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """For each row a line from before (hollow) to after (filled), on a scale from 0 to the largest."""
    most = max((max(a, b) for _, a, b in rows), default=0.0) or 1.0
    parts, y = [], 8
    for name, before, after in rows:
        ends = [250 + 250 * value / most for value in (before, after)]
        left, right = (f"{end:.1f}" for end in ends)
        figures = f"{before:.2f} → {after:.2f}"
        parts += [
            element("text", escaped(_short(name)), x=0, y=y + 14),
            element("line", x1=left, x2=right, y1=y + 10, y2=y + 10),
            element("circle", class_="hollow", cx=left, cy=y + 10, r=5),
            element("circle", class_="s0", cx=right, cy=y + 10, r=5),
            element("text", figures, x=f"{max(ends) + 10:.1f}", y=y + 14),
        ]
        y += _ROW
    return _svg(title, title, 620, y + 6, parts)


def heat(title: str, rows: Mapping[int, Mapping[int, float]]) -> str:
    """A grid of shares: a row for each true count, a column for each shown one."""
    columns = sorted({shown for row in rows.values() for shown in row})
    parts = [
        element("text", f"shows {shown}", class_="mid", x=102 + 52 * i, y=14)
        for i, shown in enumerate(columns)
    ]
    y = 22
    for true, row in sorted(rows.items()):
        parts.append(element("text", f"true {true}", x=0, y=y + 17))
        for i, shown in enumerate(columns):
            share = row.get(shown, 0.0)
            x = 76 + 52 * i
            shade = f"{0.06 + 0.6 * share:.2f}"
            square = {"x": x, "y": y, "width": 50, "height": 24, "rx": 3}
            parts.append(element("rect", class_="s0", **square, fill_opacity=shade))
            parts.append(element("text", f"{share:.0%}", class_="mid", x=x + 25, y=y + 16))
        y += 26
    return _svg(title, title, 84 + 52 * len(columns), y + 4, parts)


def _short(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:33]}…"


def _svg(title: str, said: str, width: int, height: int, parts: Sequence[str]) -> str:
    size = {"viewBox": f"0 0 {width} {height}", "width": width, "height": height}
    picture = element("svg", *parts, role="img", aria_label=said, **size)
    return element("figure", element("figcaption", escaped(said)), scrolling(title, picture))
