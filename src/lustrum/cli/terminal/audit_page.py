"""The picture of an audit: every table with its cells coloured by what a reader can work out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from itertools import product

import numpy as np

from lustrum.audit import ProtectionVerdict
from lustrum.audit.report import AuditedCell, AuditReport
from lustrum.model import Release

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: #1a1f36; background: #fff }
h1 { font-family: Georgia, serif }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
caption { text-align: left; font-weight: 600; padding: .4rem 0 }
th, td { border: 1px solid #c9ccd8; padding: .3rem .6rem; text-align: right }
th { background: #f2f2ee; text-align: left }
.exact { background: #b3261e; color: #fff }
.narrow { background: #f6c453; color: #1a1f36 }
.close { outline: 3px solid #b3261e; outline-offset: -3px }
.open { background: #d7ead9; color: #12301a }
.key span { display: inline-block; padding: .1rem .6rem; margin: 0 .6rem .3rem 0; border: 1px solid #c9ccd8 }
.scroll { overflow-x: auto }
@media (prefers-color-scheme: dark) { body { background: #14161f; color: #e8e9f0 } th { background: #242736 } }
"""

_CLOSE_KEY = '<span class="close">! within the protection interval</span>'


def page(
    report: AuditReport, releases: Sequence[Release], names: Sequence[str], narrow: int
) -> str:
    """A page of its own, without any other file."""
    audited_cells = {(cell.table, cell.position): cell for cell in report.cells}
    grids = "".join(
        _grid(number, release, name, audited_cells, report.decimals, narrow)
        for number, (release, name) in enumerate(zip(releases, names, strict=True))
    )
    items = "".join(_disclosed(cell, report.decimals) for cell in report.disclosed)
    reasons = f"<h2>Exactly disclosed</h2><ul>{items}</ul>" if items else ""
    close = "".join(f"<li>{escape(cell.name)}</li>" for cell in report.unprotected)
    if close:
        reasons += f"<h2>Within the protection interval</h2><ul>{close}</ul>"
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>Audit</title><style>{_STYLE}</style></head><body>"
        f"<h1>What a reader can work out</h1><p>{escape(str(report))}</p>"
        f'<p class="key"><span class="exact">exactly disclosed</span><span class="narrow">at most {narrow} '
        'values left</span><span class="open">more values left</span><span>published</span>'
        f"{_CLOSE_KEY if close else ''}</p>"
        f"{grids}{reasons}</body></html>\n"
    )


def _grid(
    number: int,
    release: Release,
    name: str,
    audited_cells: dict[tuple[int, tuple[int, ...]], AuditedCell],
    decimals: int,
    narrow: int,
) -> str:
    """The first variable goes down, the others across."""
    down, *across = release.axes
    columns = list(product(*(range(len(axis)) for axis in across)))
    labels = (", ".join(a.labels[i] for a, i in zip(across, c, strict=True)) for c in columns)
    heads = "".join(f'<th scope="col">{escape(label or "value")}</th>' for label in labels)
    rows = []
    for i, label in enumerate(down.labels):
        cells = "".join(
            _cell(release, (i, *c), audited_cells.get((number, (i, *c))), decimals, narrow)
            for c in columns
        )
        rows.append(f'<tr><th scope="row">{escape(label)}</th>{cells}</tr>')
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(name)}"><table>'
        f'<caption>{escape(name)}</caption><tr><th scope="col">{escape(down.name)}</th>{heads}</tr>'
        f"{''.join(rows)}</table></div>"
    )


def _cell(
    release: Release,
    position: tuple[int, ...],
    cell: AuditedCell | None,
    decimals: int,
    narrow: int,
) -> str:
    if cell is None:
        return f"<td>{number(float(release.published[position]), decimals)}</td>"
    kind = "exact" if cell.disclosed else "narrow" if cell.count <= narrow else "open"
    cell_text = " to ".join(dict.fromkeys(_ends(cell, decimals)))
    title = ""
    if cell.protection is not ProtectionVerdict.NOT_ASKED:
        title = f' title="protection: {cell.protection}"'
    if cell.protection is ProtectionVerdict.TOO_NARROW:
        kind += " close"
        cell_text += ' <span aria-label="within the protection interval">!</span>'
    return f'<td class="{kind}"{title}>{cell_text}</td>'


def _ends(cell: AuditedCell, decimals: int) -> Iterator[str]:
    for end in (cell.low, cell.high):
        yield number(end, decimals)


def _disclosed(cell: AuditedCell, decimals: int) -> str:
    why = f", which follows from {escape('; '.join(cell.follows))}" if cell.follows else ""
    return f"<li><b>{escape(cell.name)}</b> is {number(cell.low, decimals)}{why}.</li>"


def number(value: float, decimals: int) -> str:
    """A value as it is written, or 'any' where nothing bounds it."""
    return f"{value / 10**decimals:,.{decimals}f}" if np.isfinite(value) else "any"
