"""The part of the agency's page that is about protected sums."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

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
    yield table(
        "What attackers can say about the largest contributor of every cell",
        [
            "Measure",
            "Cells",
            "Sensitive",
            "Under-protected",
            "Certain within p percent",
            "Certain with the direction",
            "All below (units)",
            "Close by chance",
        ],
        (
            [
                one["measure"],
                *(
                    f"{one[key]:,}"
                    for key in (
                        "cells",
                        "sensitive",
                        "unprotected",
                        "certain",
                        "certain_with_direction",
                        "from_units",
                        "close_by_chance",
                    )
                ),
            ]
            for one in figures["audits"]
        ),
    )
    yield table(
        "Contributions of owners with several values: certain to somebody who knows another one",
        [
            "Measure",
            "Contributions",
            "Any other known",
            "The period before known",
            "Another record known",
            "Of these many units or more",
            "Certain nevertheless",
            "Growth certain",
        ],
        (
            [
                one["measure"],
                *(
                    f"{one[key]:,}"
                    for key in (
                        "several",
                        "one_known",
                        "earlier_known",
                        "record_known",
                        "small_units",
                        "known_large",
                        "growth",
                    )
                ),
            ]
            for one in figures["audits"]
        ),
    )
    if figures["together"]:
        yield table(
            "Contributions that are in this release and in the one before",
            [
                "Measure",
                "Unchanged, same number",
                "Changed",
                "Unchanged, another number",
                "Certain",
            ],
            (
                [
                    one["measure"],
                    *(f"{one[key]:,}" for key in ("unchanged", "changed", "other", "certain")),
                ]
                for one in figures["together"]
            ),
        )
