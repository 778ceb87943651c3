"""The part of the agency's page that is about protected sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from lustrum.protect.magnitudes.method import MagnitudeResult
from lustrum.public.bundle.files import ProtectedSums
from lustrum.publish.bundles.make import MadeBundle


def protected_sums(magnitudes: MagnitudeResult | None) -> ProtectedSums | None:
    return None if magnitudes is None else ProtectedSums(magnitudes.sums, magnitudes.public)


def sum_findings(release: MadeBundle) -> dict[str, Any] | None:
    """Errors of every measure, and what attackers can say about its largest contributors; None without sums."""
    magnitudes = release.magnitudes
    if magnitudes is None:
        return None
    return {
        "method": dict(magnitudes.public.method),
        "shares": [float(magnitudes.public.factors.least), float(magnitudes.public.factors.most)],
        **magnitudes.agency.to_mapping(),
        "audits": [{**vars(audit), "safe": audit.safe} for audit in release.audits],
        "together": None
        if release.both_sums is None
        else [one.to_mapping() for one in release.both_sums],
    }


def sum_lines(release: MadeBundle) -> list[str]:
    """One sentence for every measure, for the command line."""
    magnitudes = release.magnitudes
    if magnitudes is None:
        return []
    lines = []
    audits = {audit.measure: audit for audit in release.audits}
    for errors in magnitudes.agency.measures:
        kinds = ", ".join(f"{k}: {v:.2f} %" for k, v in errors.by_variables.items() if k)
        audit = audits[errors.measure]
        lines.append(
            f"Sums of {errors.measure}: mean relative error {errors.mean:.2f} % over {errors.cells:,} cells "
            f"that are not sensitive (by number of variables {kinds}; of the total {errors.total:.4f} %). Of "
            f"{audit.sensitive:,} sensitive cells {audit.unprotected:,} are under-protected; "
            f"{audit.certain:,} largest contributors are certain within p percent."
        )
        if audit.several:
            lines.append(
                f"To somebody who knows another value of the same owner, {audit.one_known:,} of "
                f"{audit.several:,} contributions to {errors.measure} are certain within p percent: "
                f"{audit.earlier_known:,} by the period before, {audit.record_known:,} by another record of a "
                f"holding; {audit.known_large:,} of {audit.small_units:,} units or more. Growth is certain for "
                f"{audit.growth:,}."
            )
        if errors.guessed:
            rates = ", ".join(
                f"from {k:,}: {v[0]:.0f} %" for k, v in sorted(errors.guessed.items())
            )
            lines.append(
                f"Contributions to {errors.measure} that a plain guess finds within p percent: {rates}."
            )
    return lines


def sum_warnings(figures: dict[str, Any] | None) -> list[str]:
    """What the agency must read first."""
    if figures is None:
        return []
    warnings = []
    for audit in figures["audits"]:
        if audit["by_class"]:
            warnings.append(
                f"Classes that are variables of the dataset give {audit['by_class']:,} contributions to "
                f"{audit['measure']} away within p percent by themselves, whatever the sums show."
            )
        if not audit["safe"]:
            warnings.append(
                f"Sums of {audit['measure']}: {audit['unprotected']:,} sensitive cells carry less than the p% "
                f"rule asks for, {audit['certain']:,} largest contributors are certain within p percent, "
                f"{audit['certain_with_class']:,} contributions with their class known, "
                f"{audit['known_large']:,} of {audit['small_units']:,} units or more with another value of "
                f"their owner known, and {audit['outside']:,} moved by other shares than the public ones. The "
                f"growth of {audit['growth']:,} is certain."
            )
        elif audit["certain_with_direction"]:
            warnings.append(
                f"Sums of {audit['measure']}: attackers who learn whether a firm went up or down are certain "
                f"within p percent of {audit['certain_with_direction']:,} largest contributors, all below "
                f"{audit['from_units']:,} units. More decimals of the measure, or a smaller unit, prevent that."
            )
    for one in figures["together"] or ():
        if one["other"] or one["certain"]:
            warnings.append(
                f"Readers of both releases: {one['other']:,} contributions to {one['measure']} did not change "
                f"and show another number, and {one['certain']:,} are certain within p percent to attackers "
                "who know everything else and by which factor they changed."
            )
    return warnings


Table = Callable[[str, Sequence[str], Iterable[Sequence[Any]]], str]


def sum_section(figures: dict[str, Any] | None, table: Table) -> Iterator[str]:
    """Errors of sums by kind of table, the audit of contributors, and what two releases tell together."""
    if figures is None:
        return
    low, high = (100 * share for share in figures["shares"])
    existence = figures["method"].get("existence")
    yield (
        f"<h2>Sums</h2><p>Contributions changed by {low:.3g} to {high:.3g} percent. The existence of units is "
        f"{existence}.</p>"
    )
    kinds = sorted(
        {kind for one in figures["measures"] for kind in one["by_variables"] if kind != "0"}
    )
    yield table(
        "Mean relative errors in per cent, over cells that are not sensitive",
        ["Measure", "Cells", "Mean", "Median", "Of the total", *(f"{k} variables" for k in kinds)],
        (
            [
                one["measure"],
                f"{one['cells']:,}",
                f"{one['mean']:.2f}",
                f"{one['median']:.2f}",
                f"{one['total']:.4f}",
                *(f"{one['by_variables'].get(k, 0.0):.2f}" for k in kinds),
            ]
            for one in figures["measures"]
        ),
    )
    yield _counted(
        table,
        "What attackers can say about the largest contributor of every cell",
        figures["audits"],
        {
            "Cells": "cells",
            "Sensitive": "sensitive",
            "Under-protected": "unprotected",
            "Certain within p percent": "certain",
            "Certain with the direction": "certain_with_direction",
            "All below (units)": "from_units",
            "Close by chance": "close_by_chance",
        },
    )
    yield _counted(
        table,
        "Contributions of owners with several values: certain to somebody who knows another one",
        figures["audits"],
        {
            "Contributions": "several",
            "Any other known": "one_known",
            "The period before known": "earlier_known",
            "Another record known": "record_known",
            "Of these many units or more": "small_units",
            "Certain nevertheless": "known_large",
            "Growth certain": "growth",
        },
    )
    if figures["together"]:
        yield _counted(
            table,
            "Contributions that are in this release and in the one before",
            figures["together"],
            {
                "Unchanged, same number": "unchanged",
                "Changed": "changed",
                "Unchanged, another number": "other",
                "Certain": "certain",
            },
        )


def _counted(
    table: Table, title: str, measures: Sequence[Mapping[str, Any]], columns: Mapping[str, str]
) -> str:
    """Counts of every measure, by the headers of their columns."""
    rows = ([one["measure"], *(f"{one[key]:,}" for key in columns.values())] for one in measures)
    return table(title, ["Measure", *columns], rows)
