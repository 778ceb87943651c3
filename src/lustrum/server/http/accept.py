"""Headers that list what an asker prefers: ``Accept`` and ``Accept-Language``."""

from __future__ import annotations


def preferred(header: str) -> list[str]:
    """The entries of such a header in small letters, most wanted first; those of weight 0 are left out.

    >>> preferred("text/csv;q=0.5, application/json, text/html;q=0")
    ['application/json', 'text/csv']
    """
    ranked: list[tuple[float, str]] = []
    for entry in header.split(","):
        wanted, *parameters = (part.strip() for part in entry.split(";"))
        weight = 1.0
        for parameter in parameters:
            if parameter.startswith("q="):
                try:
                    weight = float(parameter[2:])
                except ValueError:
                    weight = 0.0
        if wanted and weight > 0:
            ranked.append((-weight, wanted.lower()))
    return [wanted for _, wanted in sorted(ranked, key=lambda pair: pair[0])]
