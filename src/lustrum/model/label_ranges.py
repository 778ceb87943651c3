"""Categories by the labels that people read: ``15-19``, ``15 to 64``, ``65+``, or a name.

Where labels are numbers, a number never means a code: ``15-19`` are the people from 15 to 19, whatever
the codes of their categories are. Elsewhere a range runs along the list, from one code to another.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING

from lustrum.model.errors import QueryError, choices
from lustrum.model.hierarchy import Category
from lustrum.model.text import say

if TYPE_CHECKING:
    from lustrum.model.variable import Variable

Span = tuple[float, float]
_TO = r"\s*(?:-|\u2013|\.\.|to|bis|à)\s*"
_OPEN = r"(?:\+|(?:\w+ )?(?:and|or|und|oder|et|ou) (?:over|more|older|above|mehr|älter|plus))"
_SPAN = re.compile(
    rf"(?:(?P<below>under|below|unter|moins de|<)\s*)?(?P<low>\d+)(?:{_TO}(?P<high>\d+)|\s*(?P<open>{_OPEN}))?"
    r"(?: ?[^\W\d]+)*\Z",
    re.IGNORECASE,
)
_MOST = 20  # codes that a sentence names
_CUT = re.compile(r"\.\.|\u2013|-")


def span_of(text: str) -> Span | None:
    """The numbers that a label or a typed range speaks of, both ends among them.

    >>> span_of("15 to 19"), span_of("65+"), span_of("Under 15"), span_of("2 people")
    ((15.0, 19.0), (65.0, inf), (-inf, 14.0), (2.0, 2.0))
    """
    found = _SPAN.match(text.strip())
    if found is None:
        return None
    low = float(found["low"])
    if found["below"]:
        return (-inf, low - 1)
    high = inf if found["open"] else float(found["high"] or low)
    return (low, high) if low <= high else None


def categories_of(
    text: str, variable: Variable, every: Sequence[Category] | None = None
) -> list[Category]:
    """The categories that a list of labels, codes and ranges means; a mistake is one clear sentence.

    ``every`` are those that ranges run along, by default the finest.
    """
    listed = variable.finest if every is None else every
    spans, numbered = _spans(variable, listed)
    out: dict[str, Category] = {}
    # A label may hold a comma.
    whole = any(str(c.label).casefold() == text.strip().casefold() for c in listed)
    for part in (piece.strip() for piece in ([text] if whole else re.split("[,;]", text))):
        if part:
            found = _numbers(part, variable, listed, spans) if numbered else []
            found = found or _named(part, variable, listed, numbered)
            out |= {category.code: category for category in found}
    return list(out.values())


def codes_meant(text: str, variable: Variable) -> str:
    """The codes of what somebody wrote by its labels; nothing where it is not understood."""
    try:
        return ", ".join(category.code for category in categories_of(text, variable)[:_MOST])
    except QueryError:
        return ""


def example_of(variable: Variable, every: Sequence[Category]) -> str:
    """What somebody could type for some of these categories."""
    spans, numbered = _spans(variable, every)
    ends = [end for span in spans[1:4] if span is not None for end in span if abs(end) < inf]
    if numbered and len(ends) > 1:
        return f"{ends[0]:g}-{ends[-1]:g}"
    return str(every[0].label)


def _spans(variable: Variable, categories: Sequence[Category]) -> tuple[list[Span | None], bool]:
    """The numbers of each category, and whether most have some: by the edges that the description states,
    otherwise by labels.
    """
    edges = variable.edges
    if not edges or any(edge != int(edge) for edge in edges):
        spans = [span_of(category.label) for category in categories]
    else:
        last = [] if len(edges) > len(variable.codes) else [inf]
        ends = [*(edge - 1 for edge in edges[1:]), *last]
        spans = [
            (edges[c.members[0]], ends[c.members[-1]])
            if c.members[-1] - c.members[0] + 1 == len(c.members)
            else None
            for c in categories
        ]
    return spans, sum(span is not None for span in spans) > len(spans) / 2


def _numbers(
    part: str, variable: Variable, listed: Sequence[Category], spans: Sequence[Span | None]
) -> list[Category]:
    """The categories within a range of numbers, which may cut none of them; nothing where it is none."""
    wanted = span_of(part)
    if wanted is None:
        return []
    low, high = wanted
    there = [(span, c) for span, c in zip(spans, listed, strict=True) if span is not None]
    touched = [(span, c) for span, c in there if span[0] <= high and low <= span[1]]
    within = [c for span, c in touched if (low <= span[0] and span[1] <= high)]
    if touched and len(within) == len(touched):
        return within
    near = touched or [min(there, key=lambda one: min(abs(one[0][0] - low), abs(one[0][1] - low)))]
    first, last = min(s[0] for s, _ in near), max(s[1] for s, _ in near)
    better = f"{first:g}+" if last == inf else f"{first:g}-{last:g}"
    raise QueryError(
        say(
            "{variable}: {text!r} does not begin and end where categories do; {better} would.",
            variable=variable.label,
            text=part,
            better=f"<{last + 1:g}" if first == -inf else better,
        )
    )


def _named(
    part: str, variable: Variable, listed: Sequence[Category], numbered: bool
) -> list[Category]:
    """A category by its code or label, or those from one code to another."""
    every = [*listed, *(c for level in variable.levels for c in level.groups), *variable.finest]
    same = {c.code: c for c in every if str(c.label).casefold() == part.casefold()}
    if variable.holds(part) and not (numbered and part.isdigit()):
        same.setdefault(part, variable.category(part))
    if len(same) == 1:
        return list(same.values())
    if same:
        raise QueryError(
            say(
                "{variable}: {text!r} is the code of one category and the label of another; tick the one that "
                "you mean.",
                variable=variable.label,
                text=part,
            )
        )
    order = [category.code for category in listed]
    for cut in _CUT.finditer(part):  # codes may hold a hyphen themselves
        ends = part[: cut.start()].strip(), part[cut.end() :].strip()
        if not numbered and ends[0] in order and ends[1] in order:
            low, high = sorted(map(order.index, ends))
            return list(listed[low : high + 1])
    raise QueryError(
        say(
            "{variable} has no category {text!r}; {choices}.",
            variable=variable.label,
            text=part,
            choices=choices(part, [str(category.label) for category in listed]),
        )
    )
