"""The pictures of the report: small SVGs that take their colours from the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

__all__ = ["bars", "heat", "pairs"]

_ROW = 22


def bars(title: str, groups: Mapping[str, Mapping[str, float]], unit: str) -> str:
    """Groups of horizontal bars, one bar for each series, with its number at the end."""
    series = list(dict.fromkeys(name for values in groups.values() for name in values))
    most = max((v for values in groups.values() for v in values.values()), default=0.0) or 1.0
    parts, y = [], 8
    for group, values in groups.items():
        parts.append(f'<text class="head" x="0" y="{y + 13}">{escape(group)}</text>')
        y += _ROW
        for name, value in values.items():
            width = 300 * value / most
            kind = series.index(name) % 4
            parts.append(f'<text x="8" y="{y + 13}">{escape(name)}</text>')
            parts.append(
                f'<rect class="s{kind}" x="170" y="{y + 3}" width="{max(width, 1):.1f}" height="14" rx="2"/>'
            )
            parts.append(f'<text x="{176 + width:.1f}" y="{y + 14}">{value:.2f}</text>')
            y += _ROW
        y += 8
    return _svg(title, f"{title}, {unit}", 540, y, parts)


def pairs(title: str, rows: Sequence[tuple[str, float, float]]) -> str:
    """For each row a line from before (hollow) to after (filled), on a scale from 0 to the largest."""
    most = max((max(a, b) for _, a, b in rows), default=0.0) or 1.0
    parts, y = [], 8
    for name, before, after in rows:
        at = [250 + 250 * value / most for value in (before, after)]
        parts.append(f'<text x="0" y="{y + 14}">{escape(_short(name))}</text>')
        parts.append(f'<line x1="{at[0]:.1f}" x2="{at[1]:.1f}" y1="{y + 10}" y2="{y + 10}"/>')
        parts.append(f'<circle class="hollow" cx="{at[0]:.1f}" cy="{y + 10}" r="5"/>')
        parts.append(f'<circle class="s0" cx="{at[1]:.1f}" cy="{y + 10}" r="5"/>')
        parts.append(f'<text x="{max(at) + 10:.1f}" y="{y + 14}">{before:.2f} → {after:.2f}</text>')
        y += _ROW
    return _svg(title, title, 620, y + 6, parts)


def heat(title: str, rows: Mapping[int, Mapping[int, float]]) -> str:
    """A grid of shares: a row for each true count, a column for each shown one."""
    columns = sorted({shown for row in rows.values() for shown in row})
    parts = [
        f'<text class="mid" x="{102 + 52 * i}" y="14">shows {shown}</text>'
        for i, shown in enumerate(columns)
    ]
    y = 22
    for true, row in sorted(rows.items()):
        parts.append(f'<text x="0" y="{y + 17}">true {true}</text>')
        for i, shown in enumerate(columns):
            share = row.get(shown, 0.0)
            x = 76 + 52 * i
            parts.append(
                f'<rect class="s0" x="{x}" y="{y}" width="50" height="24" rx="3" '
                f'fill-opacity="{0.06 + 0.6 * share:.2f}"/>'
            )
            parts.append(f'<text class="mid" x="{x + 25}" y="{y + 16}">{share:.0%}</text>')
        y += 26
    return _svg(title, title, 84 + 52 * len(columns), y + 4, parts)


def _short(name: str) -> str:
    return name if len(name) <= 34 else f"{name[:33]}…"


def _svg(title: str, said: str, width: int, height: int, parts: Sequence[str]) -> str:
    return (
        f'<figure><figcaption>{escape(said)}</figcaption><div class="scroll" tabindex="0" role="region" '
        f'aria-label="{escape(title)}"><svg role="img" aria-label="{escape(said)}" '
        f'viewBox="0 0 {width} {height}" width="{width}" height="{height}">{"".join(parts)}</svg></div>'
        "</figure>"
    )
