"""The examples of Domingo-Ferrer, Oganian and Torra (2002), computed again."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from lustrum.audit import (
    Belief,
    Insider,
    Knowledge,
    PublishedTable,
    attack,
    bounds,
    from_margins,
    from_release,
    from_tables,
    others,
)
from lustrum.model import Category, CellStatus, Release, TableAxis
from lustrum.model.arrays import Floats, Ints
from lustrum.numeric.arithmetic import log2
from lustrum.risk.entropy import cell_entropy as risk_of
from lustrum.study.markov import IJ, IK, JK
from lustrum.study.result import Line, Panel, Progress, Study, panels_of

# Table 1: economic activity by size class with totals; -1 stands for a suppressed cell. The total of
# size 4 is printed as 1148 in both tables of the paper, which adds up neither down nor across.
TABLE_1 = (
    (80, 253, 54, 0, 0, 387),
    (641, 3694, 2062, 746, 0, 7143),
    (592, -1, 329, -1, 1440, 3898),
    (57, -1, 946, -1, 2027, 4281),
    (78, 0, 890, 1719, 1743, 4430),
    (1448, 4353, 4281, 4847, 5210, 20139),
)
ACTIVITY = {"2,3": (0,), "4": (1,), "5": (2,), "6": (3,), "7": (4,), "Total": (0, 1, 2, 3, 4)}
SIZE = {"4": (0,), "5": (1,), "6": (2,), "7": (3,), "8": (4,), "Total": (0, 1, 2, 3, 4)}

# The paper itself gives no figures for linked tables: three two-way margins of one cube from Duncan,
# Fienberg, Krishnan, Padman and Roehrig (2001).
CUBE = {"A": 4, "S": 4, "R": 3}
AS, AR, SR = IJ, IK, JK


def cell_entropy(progress: Progress | None = None) -> Study:
    """Every figure of the paper, and those its formulas give where it prints none."""
    steps = (_dominance, _suppression, _redesign, _rounding, _linked, _insider)
    return Study(
        name="cell-entropy",
        title="Information-theoretic disclosure risk of cells",
        source="Domingo-Ferrer, Oganian and Torra (2002)",
        panels=panels_of(steps, progress),
        settings={"logarithm": "base 2", "prior": "uniform over the feasible values"},
    )


def _dominance() -> Panel:
    """Example 1: the dominance rule against what the second contributor can work out."""
    lines = []
    for cell, sensitive, reach in (((59, 40, 1), 0.0, 60.0), ((61, 20, 19), 1.0, 80.0)):
        total = sum(cell)
        dominated = float(cell[0] > 0.60 * total)
        _, most = others(total, total, cell[1])
        lines += [
            Line(f"{cell}: sensitive under dominance n = 1, k = 60 %", sensitive, dominated, 0.0),
            Line(f"{cell}: the second contributor's bound on the largest", reach, float(most), 0.0),
        ]
    return Panel("Example 1: a priori rules can mislead", tuple(lines))


def _suppression() -> Panel:
    """Table 1: four suppressed cells."""
    values = np.array(TABLE_1, dtype=np.int64)
    hidden = values < 0
    release = Release(
        axes=(_axis("activity", ACTIVITY), _axis("size", SIZE)),
        numbers=values,
        status=np.where(hidden, CellStatus.SMALL_COUNT.value, CellStatus.FREE.value),
        method={"method": "suppression"},
    )
    cells = np.flatnonzero(hidden.ravel()).tolist()
    cell_bounds = bounds(from_release(release), cells)
    risk = risk_of(attack(release, cells=cells))
    printed = ((0, 406), (1131, 1537), (0, 406), (845, 1251))
    lines = []
    for i, (low, high) in enumerate(printed):
        name = f"x{i + 1}"
        lines += [
            Line(f"{name}: lower bound", low, float(cell_bounds.low[i]), 0.0),
            Line(f"{name}: upper bound", high, float(cell_bounds.high[i]), 0.0),
            Line(f"{name}: number of values m", 407, float(cell_bounds.count[i]), 0.0),
            Line(f"{name}: risk 1 / log2 m", 0.115, float(risk[i]), 5e-4),
        ]
    more = Line("risk 1 / log2 407, two digits more", None, float(risk[0]), 1e-5, expected=0.11535)
    total = Line(
        "total of size 4, from its column",
        1148,
        float(values[:5, 0].sum()),
        0.0,
        expected=1448,
        note="the printed total contradicts the cells above it and the grand total beside it",
    )
    return Panel("Table 1: cell suppression (equation 3)", (total, *lines, more))


def _redesign() -> Panel:
    """Table 2: the rows of activities 5 and 6 are merged; the system of equations (4)."""
    values = np.array(TABLE_1, dtype=np.int64)
    # What is published instead of the two rows is their sum, as the totals of Table 1 give it.
    merged = values[5] - values[[0, 1, 4]].sum(axis=0)
    shown = np.vstack([values[:2], merged, values[4:]])
    coarse = {"2,3": (0,), "4": (1,), "5,6": (2, 3), "7": (4,), "Total": (0, 1, 2, 3, 4)}
    fine = _axis("activity", {code: ACTIVITY[code] for code in ("2,3", "4", "5", "6", "7")})
    size = _axis("size", SIZE)
    known = from_tables(
        [
            PublishedTable.hidden([fine, size]),
            PublishedTable.exact([_axis("activity", coarse), size], shown),
        ]
    )
    asked = [(row, column) for row in ("5", "6") for column in SIZE]
    belief = attack(known, cells=[known.cell(codes) for codes in asked])
    risk = risk_of(belief)
    lines = []
    for i, m in enumerate((650, 407, 1276, 2383, 3468, 8180) * 2):
        name = f"activity {asked[i][0]}, size {asked[i][1]}"
        lines += [
            Line(f"{name}: m", None, float(belief.count[i]), 0.0, expected=m),
            Line(f"{name}: risk", None, float(risk[i]), 1e-9, expected=float(1 / log2(m))),
        ]
    return Panel("Table 2: two rows combined (equation 4)", tuple(lines))


def _rounding() -> Panel:
    """Section 4.2: rounding without margins."""
    axis = TableAxis.plain("cell", ["inside", "zero"])
    whole = attack(from_tables([PublishedTable.rounded([axis], [6, 0], base=3)]))
    tenths = attack(from_tables([PublishedTable.rounded([axis], [60, 0], base=30, decimals=1)]))
    risk = risk_of(whole)
    certain = risk_of(Belief.uniform([7], [7]))
    lines = (
        Line("base 3: m", None, float(whole.count[0]), 0.0, expected=3),
        Line("base 3: risk", None, float(risk[0]), 5e-5, expected=0.6309),
        Line("base 3, published 0: m", None, float(whole.count[1]), 0.0, expected=2),
        Line("base 3, published 0: risk", None, float(risk[1]), 1e-12, expected=1.0),
        Line("base 3, one decimal: m", None, float(tenths.count[0]), 0.0, expected=30),
        Line("base 3, one decimal, published 0: m", None, float(tenths.count[1]), 0.0, expected=15),
        Line(
            "cells with m = 1 whose risk is infinite",
            None,
            float(np.isinf(certain).sum()),
            0.0,
            expected=1,
            note="exact disclosure, never a division error",
        ),
    )
    return Panel("Section 4.2: rounding without margins", lines)


def _linked() -> Panel:
    """Section 4.4: the three scenarios, each with one table more (equations 5 to 7)."""
    margins = {"AS": AS, "AR": AR, "SR": SR}
    counts = []
    for released in (("AS",), ("AS", "AR"), ("AS", "AR", "SR")):
        known = from_margins(CUBE, {name: margins[name] for name in released})
        counts.append(bounds(known, known.table(0), integer=True).count.reshape(4, 4, 3))
    expected = (*_closed_forms(np.array(AS), np.array(AR)), None)
    lines = []
    for title, m, formula in zip(("AS", "AS, AR", "AS, AR, SR"), counts, expected, strict=True):
        risk = risk_of(Belief.uniform(np.zeros(m.size), m.ravel() - 1))
        wanted = None if formula is None else 1 / log2(formula)
        lines += [
            Line(
                f"{title}: {name} risk of the 48 cells",
                None,
                float(reduce(risk)),
                1e-9,
                expected=None if wanted is None else float(reduce(wanted)),
                note="" if wanted is None else "expected from the closed form of the bounds",
            )
            for name, reduce in (("mean", np.mean), ("largest", np.max))
        ]
    for cell, size in (("133", 14), ("131", 15), ("123", 15), ("413", 8)):
        a, s, r = (int(c) - 1 for c in cell)
        lines.append(
            Line(
                f"AS, AR, SR: m of cell {cell}", None, float(counts[2][a, s, r]), 0.0, expected=size
            )
        )
    risen = sum(int((after > before).sum()) for before, after in pairwise(counts))
    lines.append(
        Line("cells with less risk after a further release", None, float(risen), 0.0, expected=0)
    )
    return Panel("Section 4.4: linked tables (equations 5 to 7)", tuple(lines))


def _closed_forms(by_size: Ints, by_region: Ints) -> tuple[Floats, Floats]:
    """The number of values that one table leaves, and two that share the activity (Frechet)."""
    s, r = by_size[:, :, None], by_region[:, None, :]
    alone = np.broadcast_to(s, (4, 4, 3))
    least = np.maximum(0, s + r - by_size.sum(axis=1)[:, None, None])
    return np.asarray(alone + 1, np.float64), np.asarray(np.minimum(s, r) - least + 1, np.float64)


def _insider() -> Panel:
    """Section 4.4: what the second largest contributor knows about the largest."""
    known = Knowledge.of(["cell"]).bound("cell", low=995, high=1004)
    inside = attack(known, Insider(contribution=400, cell="cell"))
    outside = attack(known)
    lines = (
        Line("insider: least for the largest", 595, float(inside.low[0]), 0.0),
        Line("insider: most for the largest", 604, float(inside.low[0] + inside.count[0] - 1), 0.0),
        Line("insider: m", None, float(inside.count[0]), 0.0, expected=10),
        Line("outsider: most for the largest", 1004, _most(outside), 0.0),
    )
    return Panel("Section 4.4: an insider", lines)


def _most(belief: Belief) -> float:
    return float(belief.low[0] + belief.count[0] - 1)


def _axis(name: str, sets: dict[str, Sequence[int]] | dict[str, tuple[int, ...]]) -> TableAxis:
    return TableAxis(name, name, tuple(Category(c, c, tuple(m)) for c, m in sets.items()))
