"""The examples of Duncan, Fienberg, Krishnan, Padman and Roehrig (2001), computed again."""

from __future__ import annotations

import numpy as np

from lustrum.audit import (
    Belief,
    MarkovSquare,
    PublishedTable,
    TablePrior,
    Uniform,
    bounds,
    from_margins,
    likelihood,
    posterior,
)
from lustrum.audit.belief.posterior import weighted
from lustrum.model import Category, TableAxis
from lustrum.risk.entropy import cell_entropy
from lustrum.study.result import Line, Panel, Progress, Study, panels_of

CUBE = {"I": 4, "J": 4, "K": 3}
IJ = ((3, 87, 68, 72), (5, 8, 80, 4), (3, 4, 7, 107), (64, 6, 56, 7))
JK = ((5, 2, 68), (10, 10, 85), (69, 81, 61), (7, 132, 51))
IK = ((74, 75, 81), (3, 85, 9), (8, 61, 52), (6, 4, 123))

# Bounds of I+K that the paper computes, or that follow where it prints none.
UPPER = ((88, 152, 200), (86, 94, 78), (21, 120, 65), (74, 71, 133))
LOWER = ((0, 14, 67), (0, 0, 0), (0, 49, 0), (0, 0, 57))

# Table 2: IJ+ with its totals, rounded to base 3.
ROUNDED = (
    (3, 87, 69, 72, 231),
    (6, 9, 81, 3, 99),
    (3, 3, 6, 108, 120),
    (63, 6, 57, 6, 132),
    (75, 105, 213, 189, 582),
)

THETAS = (0.05, 0.1, 0.2)
# The square [[1, 14], [17, 83]], of which the first cell is published as 3.
SQUARE = {"row": 15, "column": 18, "total": 115}
TRUE, PUBLISHED = 1, 3

# Table 3 for omega = 0, 1, 2 ... as printed; what follows the last entry is printed as 0.
TABLE_3 = {
    0.05: (0, 0.0007, 0.0683, 0.7746, 0.1482, 0.0178, 0.0017, 0.001, 0.0),
    0.1: (0, 0.0026, 0.1151, 0.6193, 0.2235, 0.515, 0.0096, 0.0016, 0.0002),
    0.2: (0, 0.0088, 0.1655, 0.4382, 0.2708, 0.1121, 0.380, 0.0114, 0.0032, 0.008, 0.002),
}
LIKELIHOOD_SLIPS = {
    (0.05, 7): (0.0001, "printed .001: a zero is missing"),
    (0.1, 5): (0.0515, "printed .515: a zero is missing"),
    (0.2, 6): (0.0380, "printed .380: a zero is missing"),
    (0.2, 9): (0.0008, "printed 008: point and zero are missing"),
    (0.2, 10): (0.0002, "printed .002: a zero is missing"),
    (0.2, 11): (0.0001, "printed 0; the formula gives .000055, which rounds up"),
}

# Table 4 for omega = 1 to 9.
PRIOR = TablePrior(tuple(range(1, 10)), (0.3, 0.3, 0.15, 0.1, 0.05, 0.04, 0.03, 0.02, 0.01))
# Table 5 for omega = 1 to 7: printed, and what Bayes gives with Tables 3 and 4.
TABLE_5 = {
    0.05: ((0.001, 0.146, 0.751, 0.096, 0.006), (0.001, 0.134, 0.761, 0.097, 0.006)),
    0.1: ((0.005, 0.259, 0.579, 0.139, 0.016, 0.002), (0.005, 0.225, 0.605, 0.146, 0.017, 0.002)),
    0.2: (
        (0.015, 0.403, 0.381, 0.157, 0.032, 0.009, 0.002),
        (0.017, 0.325, 0.431, 0.177, 0.037, 0.010, 0.002),
    ),
}
POSTERIOR_SLIP = "the printed row has its omega = 2 term too large by the factor 1 + 2 theta"

# Utility and risk: printed, and exact with the posterior above.
MAP = {
    0.05: ((0.240, 1.263), (0.2405, 1.3388)),
    0.1: ((0.232, 0.969), (0.2327, 0.9675)),
    0.2: ((0.216, 0.713), (0.2181, 0.7752)),
}
MAP_SLIP = (
    "the printed figure follows neither from the printed Table 5 nor from the exact posterior"
)


def markov(progress: Progress | None = None) -> Study:
    """The audits, the likelihoods, the posteriors and the risk-utility table of the paper."""
    steps = (_all_margins, _hidden_margin, _rounded, _likelihoods, _posteriors, _map)
    return Study(
        name="markov",
        title="Disclosure limitation methods and information loss for tabular data",
        source="Duncan, Fienberg, Krishnan, Padman and Roehrig (2001)",
        panels=panels_of(steps, progress),
        settings={"logarithm": "natural", "prior": "Table 4 of the paper"},
    )


def _all_margins() -> Panel:
    """Section 4: all three two-way margins are published."""
    known = from_margins(CUBE, {"IJ": IJ, "JK": JK, "IK": IK})
    cube = known.table(0)
    whole, linear = bounds(known, cube, integer=True), bounds(known.relaxed(), cube)
    special = known.cell(("1", "3", "3"))
    ends = np.delete(np.concatenate([linear.low, linear.high]), special + linear.low.size)
    broken = float((np.abs(ends - np.round(ends)) > 1e-6).sum())
    lines = [
        Line("(1,3,3): upper bound, linear", 13.5, float(linear.high[special]), 1e-6),
        Line("(1,3,3): upper bound, whole", None, float(whole.high[special]), 0.0, expected=13),
        Line("other linear bounds that are not whole", None, broken, 0.0, expected=0),
    ]
    for codes, low, high in (("131", 54, 68), ("123", 67, 81), ("413", 57, 64)):
        cell = known.cell(tuple(codes))
        name = f"({','.join(codes)})"
        lines += [
            Line(f"{name}: lower bound", None, float(whole.low[cell]), 0.0, expected=low),
            Line(f"{name}: upper bound", None, float(whole.high[cell]), 0.0, expected=high),
        ]
    return Panel("Section 4: bounds from all three margins", tuple(lines))


def _hidden_margin() -> Panel:
    """Section 4: IJ+ and +JK are published, I+K is not."""
    known = from_margins(CUBE, {"IJ": IJ, "JK": JK}, hidden=["IK"])
    margin_bounds = bounds(known, known.table(1))
    low, high = margin_bounds.low.reshape(4, 3), margin_bounds.high.reshape(4, 3)
    lines = []
    for i, k in np.ndindex(4, 3):
        name = f"({i + 1},{k + 1})"
        lines += [
            Line(f"{name}: upper bound", UPPER[i][k], float(high[i, k]), 0.0),
            Line(f"{name}: lower bound", None, float(low[i, k]), 0.0, expected=LOWER[i][k]),
        ]
    fails = high < 1.2 * np.array(IK)
    swapped = "the paper names (3,3), but by its own bounds (65 and 63; 133 and 148) it is (4,3)"
    lines += [
        Line("cells below their value plus 20 %", 3, float(fails.sum()), 0.0),
        Line("(1,1) is one of them", 1, float(fails[0, 0]), 0.0),
        Line("(2,2) is one of them", 1, float(fails[1, 1]), 0.0),
        Line("(3,3) is one of them", 1, float(fails[2, 2]), 0.0, expected=0, note=swapped),
        Line("(4,3) is one of them", 0, float(fails[3, 2]), 0.0, expected=1, note=swapped),
    ]
    return Panel("Section 4: bounds of the hidden margin I+K", tuple(lines))


def _rounded() -> Panel:
    """Table 2: what kind of rounding the printed table is."""
    table, true = np.array(ROUNDED), np.array(IJ)
    rows = np.column_stack([true, true.sum(axis=1)])
    totals = np.vstack([rows, rows.sum(axis=0)])
    conventional = 3 * ((totals + 1) // 3)
    wrong_sums = int((table[:, :4].sum(axis=1) != table[:, 4]).sum())
    wrong_sums += int((table[:4].sum(axis=0) != table[4]).sum())
    axes = [
        TableAxis(name, name, tuple(Category(str(i), str(i), m) for i, m in enumerate(_LINES)))
        for name in ("I", "J")
    ]
    seen = PublishedTable.rounded(axes, table, base=3, how="adjacent")
    outside = int(((totals < seen.low) | (totals > seen.high)).sum())
    moved = int((table[totals % 3 == 0] != totals[totals % 3 == 0]).sum())
    lines = (
        Line("rows and columns that do not add up", None, float(wrong_sums), 0.0, expected=0),
        Line("entries 3 or more away from the true one", None, float(outside), 0.0, expected=0),
        Line("multiples of 3 that moved", None, float(moved), 0.0, expected=0),
        Line(
            "entries that conventional rounding puts elsewhere",
            None,
            float((conventional != table).sum()),
            0.0,
            expected=2,
            note="97 and 211 would become 96 and 210: it is a zero-restricted controlled rounding",
        ),
    )
    return Panel("Table 2: rounded to base 3", lines)


_LINES = ((0,), (1,), (2,), (3,), (0, 1, 2, 3))


def _likelihoods() -> Panel:
    """Table 3: P(published 3 | omega)."""
    lines = []
    for theta in THETAS:
        likelihoods = likelihood(PUBLISHED, MarkovSquare(**SQUARE, theta=theta), np.arange(16))
        printed = (*TABLE_3[theta], *[0.0] * 16)[:16]
        for omega, (paper, ours) in enumerate(zip(printed, likelihoods.tolist(), strict=True)):
            expected, note = LIKELIHOOD_SLIPS.get((theta, omega), (None, ""))
            name = f"theta {theta}, omega {omega}"
            lines.append(Line(name, paper, ours, 5e-5, expected=expected, note=note))
    return Panel("Table 3: likelihoods of a published 3", tuple(lines))


def _posteriors() -> Panel:
    """Table 5: the posterior with the prior of Table 4."""
    lines = []
    for theta in THETAS:
        belief = _posterior(theta)
        for omega, (paper, exact) in enumerate(zip(*TABLE_5[theta], strict=True), start=1):
            ours = float(belief.probabilities[belief.values == omega].sum())
            note = POSTERIOR_SLIP if abs(paper - exact) > 5e-4 else ""
            name = f"theta {theta}, omega {omega}"
            lines.append(Line(name, paper, ours, 5e-4, expected=exact, note=note))
    return Panel("Table 5: posteriors with the prior of Table 4", tuple(lines))


def _map() -> Panel:
    """Section 5: utility 1 / MSE about the true value, risk 1 / entropy."""
    lines = []
    for theta in THETAS:
        (paper_u, paper_r), (exact_u, exact_r) = MAP[theta]
        utility, risk = _measured(_posterior(theta))
        lines += [
            Line(f"Markov, theta {theta}: utility", paper_u, utility, 1e-4, exact_u, MAP_SLIP),
            Line(f"Markov, theta {theta}: risk", paper_r, risk, 1e-4, exact_r, MAP_SLIP),
        ]
    ends = np.array([1]), np.array([15])
    utility, risk = _measured(weighted(*ends, PRIOR))
    flat = cell_entropy(weighted(*ends, Uniform()), base=2)
    lines += [
        Line("suppression: utility", 0.159, utility, 5e-4),
        Line(
            "suppression: risk",
            0.255,
            risk,
            1e-4,
            expected=0.5730,
            note="the printed figure is that of a uniform belief over 1 to 15, in bits",
        ),
        Line(
            "suppression: risk of a uniform belief over 1 to 15, in bits",
            0.255,
            float(flat[0]),
            1e-4,
            expected=0.2560,
            note="the printed figure is .25596 cut off, not rounded",
        ),
    ]
    utility, risk = _measured(weighted(np.array([1]), np.array([5]), PRIOR))
    known, certain = Belief.uniform([TRUE], [TRUE]), "both are reciprocals of 0, so infinite"
    lines += [
        Line("rounding to base 3: utility", 0.346, utility, 5e-4),
        Line(
            "rounding to base 3: risk",
            0.919,
            risk,
            1e-4,
            expected=0.6965,
            note="the printed figure comes out neither in nats nor in bits",
        ),
        Line(
            "original data: entropy, 1 / risk",
            0.5,
            float(known.entropy(np.e)[0]),
            0.0,
            expected=0.0,
            note=f"{certain}; the paper prints a risk of 2",
        ),
        Line(
            "original data: squared error, 1 / utility",
            0.0,
            float(known.mean_squared_error(TRUE)[0]),
            0.0,
            note=certain,
        ),
    ]
    return Panel("Section 5: the risk-utility table", tuple(lines))


def _posterior(theta: float) -> Belief:
    return posterior(PUBLISHED, MarkovSquare(**SQUARE, theta=theta), PRIOR)


def _measured(belief: Belief) -> tuple[float, float]:
    """Utility and risk of one cell."""
    utility = 1.0 / float(belief.mean_squared_error(TRUE)[0])
    return utility, float(cell_entropy(belief, base=np.e)[0])
