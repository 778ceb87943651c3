"""Options that cases wanted when they were written and that the command has since then.

The families state what their notes justify in their own words (`wanted`), before there was an option for
it. Here stands how the command is told so. A case that is not named here still wants something.
"""

from __future__ import annotations

from corpus.build.case import Case

ADDED: dict[str, list[str]] = {
    "statcan/status-x": ["--beside", "VECTOR", "--beside", "COORDINATE"],
    "statcan/status-x-safe": ["--beside", "VECTOR", "--beside", "COORDINATE"],
    "statcan/quality-letters": [
        word for letter in "ABCDE" for word in ("--status", f"{letter}=shown")
    ],
    "statcan/years-across": ["--notes-read"],
    "statcan/thousands-off-by-one": ["--off-by-rounding"],
    "us/economic-census-d": [],
    "us/qcew-zero-beside-n": ["--status", "N=hidden"],
    "us/qcew-zero-leak": ["--status", "N=hidden"],
    "us/employment-size-classes": [
        word
        for bound in ("a=0..19", "b=20..99", "c=100..249", "e=250..499")
        for word in ("--status", bound)
    ],
    "us/agriculture-footers": ["--notes-read"],
    "us/standing-behind-flag": ["--status", "D=hidden"],
    "us/percent-of-total": [
        "--formula",
        "'Percent of total' = 100 * Employees / Employees[Total]",
    ],
    "codes/prefix-incomplete": ["--rest", "nace=C"],
    "codes/numeric-no-hierarchy": ["--flat", "district"],
    "codes/of-which": [],
    "columns/mean-times-firms": ["--formula", "turnover_per_firm = turnover / firms"],
    "columns/mean-hidden-too": ["--formula", "turnover_per_firm = turnover / firms"],
    "columns/percent-of-total": ["--formula", "share = 100 * value / value[Total]"],
    "columns/percent-coarse": ["--formula", "percent = 100 * value / value[Total]"],
    "columns/percent-of-hidden-total": [
        "--formula",
        "row_pct = 100 * value / value[branch=Total]",
    ],
    "columns/bounds-columns": ["--formula", "lower <= value <= upper"],
    "columns/bounds-columns-wide": ["--formula", "lower <= value <= upper"],
    "columns/bounds-meet-totals": ["--formula", "value in range"],
    "columns/rate-per-1000": ["--formula", "births_per_1000 = 1000 * births / population"],
    "columns/population-beside": ["--beside", "population"],
    "columns/cumulative": ["--formula", "cumulative = running value"],
    "columns/growth": ["--formula", "change_pct = 100 * `2021` / `2020` - 100"],
    "columns/index-column": ["--formula", "index_2015_100 = 100 * value / base_2015"],
    "columns/cv-column": ["--beside", "cv_pct"],
    "columns/copy-of-value": ["--formula", "value_unrounded = value"],
    "columns/two-units": ["--formula", "thousand_euro = euro / 1000"],
    "columns/number-of-firms": ["--beside", "n"],
    "columns/number-of-firms-leak": ["--beside", "firms"],
    "columns/stock-at-year-end": ["--unrelated"],
    "germany/genesis-dots": ["--notes-read"],
    "germany/dash-is-zero": ["--hidden", "-=0"],
    "germany/darunter": [],
    "south/espana-total": ["--thousands", "."],
    "south/point-thousands-mixed": ["--thousands", "."],
    "south/portugal-section-sign": ["--status", "§=shown"],
    "north/pxweb-wide-years": ["--notes-read"],
    "north/iceland-blank": ["--hidden", "=0"],
    "crosstabs/pandas-index-column": [],
    "crosstabs/pandas-index-leak": [],
    "crosstabs/r-short-header": ["--wide", "job"],
    "crosstabs/excel-grand-total": ["--relation", "'Grand Total' = clerk + cook + nurse"],
    "crosstabs/excel-merged-stubs": [],
    "crosstabs/excel-merged-stubs-safe": [],
    "crosstabs/normalised-with-n": [
        word
        for job in ("clerk", "cook", "nurse")
        for word in ("--formula", f"'{job} %' = 100 * {job} / n")
    ],
    "crosstabs/normalised-without-n": ["--wide", "job"],
    "crosstabs/overlapping-columns": [
        "--relation",
        "All = 'with children' + 'without children'",
        "--relation",
        "'with children' >= 'single parents'",
    ],
    "eurostat/tsv-flags": [],
    "eurostat/tsv-safe": [],
    "eurostat/colon-not-available": ["--status", "z=0"],
    "eurostat/flags-in-values": [],
    "eurostat/decimals-in-millions": ["--off-by-rounding"],
    "ons/nomis-star": ["--notes-read"],
    "ons/low-shorthand": ["--hidden", "[low]=1..4"],
    "ons/low-shorthand-safe": ["--hidden", "[low]=1..9"],
    "pacific/japan-x-and-dash": ["--hidden", "-=0"],
    "pacific/japan-leak": ["--hidden", "-=0"],
    "linked/names-differ": ["--alias", "area=geo"],
    "numbers/revised-star": ["--status", "*=shown"],
    "numbers/footnote-marks": ["--status", "[2]=shown"],
    "numbers/change-without-minus": ["--signed"],
    "numbers/off-by-one-note": ["--off-by-rounding"],
    "numbers/off-by-one-two-way": ["--off-by-rounding"],
    "numbers/small-counts-in-thousands": ["--off-by-rounding"],
    "numbers/less-than-five": ["--hidden", "<5=1..4"],
    "numbers/less-than-ten-safe": ["--hidden", "<10=0..9"],
    "numbers/ranges-as-values": ["--hidden", "10-19=10..19"],
    "numbers/ranges-as-values-safe": ["--hidden", "10-19=10..19"],
    "numbers/zero-shown-small-hidden": ["--hidden", "x=1..4", "--notes-read"],
    "numbers/unknown-letter-f": ["--status", "f=shown"],
    "numbers/status-numbers": ["--status", "0=shown"],
    "numbers/suppressed-true-false": [],
    "numbers/percent-signs": ["--formula", "value% = 100 * value / value[Total]"],
    "sdmx/letters-and-stated-rule": ["--rule", "threshold=3", "--beside", "COMMENT_DSET"],
    "sdmx/secondary-letter-discloses": ["--rule", "threshold=5", "--beside", "COMMENT_TS"],
    "sdmx/unit-mult-3": ["--off-by-rounding"],
    "sdmx/included-elsewhere": [],
    "sdmx/status-letter-a-beside-values": ["--status", "A=shown"],
}
"""Options beside those of the family, by family and name; an empty list where no option is needed any more."""

REPLACED: dict[str, tuple[str, str]] = {
    "ons/bracket-shorthand": (
        "All industries = 05 + 06 + 07 + 08",
        "'All industries' = '05' + '06' + '07' + '08'",
    ),
}
"""Words of an option that must be written in another way."""


STILL: dict[str, str] = {
    "eurostat/colon-not-available": "a report that lists the 0 of z, which the command takes for a published 0"
}
"""What is left to want although there is an option."""


def grant(case: Case, name: str) -> Case:
    """The case with the options that the command has."""
    if name in REPLACED:
        old, new = REPLACED[name]
        case.options = [new if word == old else word for word in case.options]
        case.options.append("--notes-read")
        case.wanted = ""
    if name in ADDED:
        case.options = [*case.options, *ADDED[name]]
        case.wanted = STILL.get(name, "")
    return case
