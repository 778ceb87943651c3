"""Variables, measures and weights: the columns of a dataset as people know them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import inf, isfinite
from typing import Literal

from lustrum.model.errors import DescriptionError, QueryError, choices
from lustrum.model.hierarchy import Category, Hierarchy, Level
from lustrum.model.search_text import SearchText, Words
from lustrum.model.text import languages, say

TOTAL_CODE = "_T"
REST_CODE = "_REST"
RESERVED = frozenset({TOTAL_CODE, REST_CODE})


@dataclass(frozen=True)
class Variable:
    """A categorical variable: its finest codes with labels, and hierarchies over them.

    Where the codes are classes of a number, such as age, ``edges`` says where they begin and end, in ``unit``.
    Where they are periods, such as years, from the earliest on, ``period`` is true: numbers can have grown.

    >>> sex = Variable("sex", "Sex", codes=("1", "2"), labels=("Male", "Female"))
    >>> sex.category("2").label
    'Female'
    """

    name: str
    label: str
    codes: tuple[str, ...]
    labels: tuple[str, ...]
    description: str = ""
    hierarchies: tuple[Hierarchy, ...] = ()
    missing: str | None = None
    edges: tuple[float, ...] = ()
    unit: str = ""
    period: bool = False

    def __post_init__(self) -> None:
        self._check_edges()
        if not self.codes:
            raise DescriptionError(f"Variable {self.name!r} has no codes; it needs at least one.")
        if len(self.codes) != len(self.labels):
            raise DescriptionError(
                f"Variable {self.name!r} has {len(self.codes)} codes but {len(self.labels)} labels; "
                "each code needs one label."
            )
        check_codes(
            self.name, (*self.codes, *(g.code for level in self.levels for g in level.groups))
        )
        names = [level.name for level in self.levels]
        if len(set(names)) < len(names):
            raise DescriptionError(
                f"Variable {self.name!r} has two levels of the same name; level names must differ "
                "over all hierarchies of a variable."
            )
        if self.missing is not None and self.missing not in self.codes:
            raise DescriptionError(
                f"Variable {self.name!r}: the code for missing values, {self.missing!r}, is not in "
                "its code list; add it there."
            )

    def _check_edges(self) -> None:
        """Classes of a number: where each begins, and where the last one ends unless it is open."""
        if not self.edges:
            return
        rising = all(a < b for a, b in pairwise(self.edges))
        if len(self.edges) not in (len(self.codes), len(self.codes) + 1) or not rising:
            raise DescriptionError(
                f"Variable {self.name!r}: 'edges' must be rising numbers, one where each code begins and, "
                "unless the last one is open, one where it ends."
            )
        if not all(isfinite(edge) for edge in self.edges):
            raise DescriptionError(f"Variable {self.name!r}: every edge must be a finite number.")

    @property
    def levels(self) -> tuple[Level, ...]:
        return tuple(level for hierarchy in self.hierarchies for level in hierarchy.levels)

    @cached_property
    def finest(self) -> tuple[Category, ...]:
        return finest_of(self.codes, self.labels)

    @cached_property
    def everything(self) -> frozenset[int]:
        return frozenset(range(len(self.codes)))

    @cached_property
    def _nodes(self) -> dict[str, Category]:
        nodes = {c.code: c for c in self.finest}
        for level in self.levels:
            nodes.update({g.code: g for g in level.groups})
        return nodes

    @cached_property
    def _search_texts(self) -> dict[str | None, SearchText]:
        return {}

    def search(self, words: Words, level: str | None = None) -> list[Category]:
        """The categories of a level, the finest without one, whose code or label holds all words."""
        every = self.finest if level is None else self.level(level).categories
        if not words:
            return list(every)
        if level not in self._search_texts:
            self._search_texts[level] = SearchText(
                " ".join((c.code, *languages(c.label))) for c in every
            )
        return [every[index] for index in self._search_texts[level].find(words).tolist()]

    @cached_property
    def label_text(self) -> SearchText:
        """The labels of the variable, its levels and all categories, to be searched."""
        coarser = (c.label for level in self.levels for c in level.groups)
        every = [self.label, *self.labels, *(x.label for x in self.levels), *coarser]
        return SearchText(" ".join(languages(label)) for label in every)

    def is_at(self, code: str, level: str | None = None) -> bool:
        """Whether a code stands at a level, or is a finest one."""
        if level is not None:
            return code in self.level(level).codes
        category = self._nodes.get(code)
        return category is not None and self.codes[category.members[0]] == code

    def category(self, code: str) -> Category:
        """The finest code or group of that code; a clear error where there is none."""
        try:
            return self._nodes[code]
        except KeyError:
            meant = codes_meant(code, self)
            raise QueryError(
                say(
                    "Variable {variable!r} has no category {code!r}; {choices}.",
                    variable=self.name,
                    code=code,
                    choices=say("by its labels that is {codes}", codes=meant)
                    if meant
                    else choices(code, self._nodes),
                )
            ) from None

    def holds(self, code: str) -> bool:
        """Whether a code is one of the variable's own, finest or group."""
        return code in self._nodes

    def level(self, name: str) -> Level:
        """The level of that name; a clear error where there is none."""
        for level in self.levels:
            if level.name == name:
                return level
        raise QueryError(
            say(
                "Variable {variable!r} has no level {name!r}; {choices}.",
                variable=self.name,
                name=name,
                choices=choices(name, [level.name for level in self.levels]),
            )
        )


def finest_of(codes: Sequence[str], labels: Sequence[str]) -> tuple[Category, ...]:
    return tuple(map(Category, codes, labels, zip(range(len(codes)))))


def check_codes(name: str, codes: Sequence[str]) -> None:
    """Refuse codes of a variable that are kept for totals, or there twice."""
    if len(every := set(codes)) == len(codes) and every.isdisjoint(RESERVED):
        return
    seen: set[str] = set()
    for code in codes:
        if code in RESERVED:
            raise DescriptionError(
                f"Variable {name!r}: the code {code!r} is kept for totals; use another."
            )
        if code in seen:
            raise DescriptionError(
                f"Variable {name!r} uses the code {code!r} twice; every finest code and "
                "every group of its hierarchies needs a code of its own."
            )
        seen.add(code)


@dataclass(frozen=True)
class Measure:
    """A numeric column, kept exactly as integers of ``10**-decimals``.

    Exact integers make sums independent of the order of addition, so that every engine gives the
    same bytes. ``parts`` names the measures that add up to this one in every record, and ``earlier`` the
    measure that holds the same number one period before.
    """

    name: str
    label: str
    unit: str = ""
    decimals: int = 0
    holding: str | None = None
    missing: str | None = None
    parts: tuple[str, ...] = ()
    earlier: str | None = None

    def __post_init__(self) -> None:
        _check_decimals(self.name, self.decimals)


FRAME_ROOM = 0.005
"""How far the sum of weights may be from the size of the frame, in proportion: they are rounded."""


ReplicateMethod = Literal["jackknife", "BRR", "Fay", "bootstrap"]
REPLICATE_METHODS = ("jackknife", "BRR", "Fay", "bootstrap")


@dataclass(frozen=True)
class Replicates:
    """Columns of replicate weights, and how their spread becomes a variance.

    ``jackknife`` leaves out one cluster at a time, with strata (JKn) or without (JK1). ``BRR`` are balanced
    half-samples, ``Fay`` those with the factor ``fay``, which the smaller half weighs.
    """

    method: ReplicateMethod
    columns: tuple[str, ...]
    fay: float | None = None

    def __post_init__(self) -> None:
        if self.method not in REPLICATE_METHODS:
            raise DescriptionError(
                f"Replicate weights: {self.method!r} is no method; use one of "
                f"{', '.join(REPLICATE_METHODS)}."
            )
        if len(self.columns) < 2:
            raise DescriptionError("Replicate weights: name two or more columns.")
        if (self.method == "Fay") != (self.fay is not None):
            raise DescriptionError(
                "Replicate weights: 'fay' goes with the method 'Fay' and no other."
            )
        if self.fay is not None and not 0 < self.fay < 1:
            raise DescriptionError(
                f"Replicate weights: 'fay' lies between 0 and 1, not {self.fay!r}."
            )

    @property
    def scale(self) -> float:
        """What the sum of squared deviations of the replicates is multiplied by, but for the jackknife."""
        rest = 1.0 - (self.fay or 0.0)
        return 1.0 / (len(self.columns) * (rest * rest))


@dataclass(frozen=True)
class Weight:
    """A column of sampling weights, kept exactly as integers of ``10**-decimals``.

    ``strata`` and ``clusters`` are the identifiers that hold the design of the sample, ``total`` the size of
    the frame that the weights sum to, and ``replicates`` the replicate weights, if the sample has any.
    """

    name: str
    label: str
    decimals: int = 0
    strata: str | None = None
    clusters: str | None = None
    total: int | None = None
    replicates: Replicates | None = None

    def __post_init__(self) -> None:
        _check_decimals(self.name, self.decimals)

    @property
    def columns(self) -> tuple[Weight, ...]:
        """The weight itself and its replicates, each as a column of numbers."""
        names = () if self.replicates is None else self.replicates.columns
        return (self, *(Weight(name, name, self.decimals) for name in names))


def _check_decimals(name: str, decimals: int) -> None:
    if not 0 <= decimals <= 9:
        raise DescriptionError(
            f"Column {name!r}: decimals is {decimals}, but must be a whole number from 0 to 9."
        )


# --- Categories by the labels that people read: 15-19, 15 to 64, 65+, or a name
# Where labels are numbers, a number never means a code: 15-19 are the people from 15 to 19, whatever the codes
# of their categories are. Elsewhere a range runs along the list, from one code to another.

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


def codes_for(
    words: Sequence[str], variable: Variable, every: Sequence[Category] | None = None
) -> tuple[str, ...]:
    """The codes of categories that are written by their codes or labels, or as ranges such as ``15-64``.

    A plain number is a code. What means nothing stays as it is, for whoever says what is wrong with it.
    """
    if all(map(variable.holds, words)):
        return tuple(words)
    codes: list[str] = []
    for word in words:
        found = [word]
        if not (variable.holds(word) or word.isdecimal()):
            try:
                found = [category.code for category in categories_of(word, variable, every)]
            except QueryError:
                if span_of(word) is not None:
                    raise
        codes += found or [word]
    return tuple(dict.fromkeys(codes))


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
    coarser = [c for level in variable.levels for c in level.groups]
    for some in (listed, [*coarser, *variable.finest]):
        same = {c.code: c for c in some if str(c.label).casefold() == part.casefold()}
        if same:
            break
    if variable.holds(part):
        same.setdefault(part, variable.category(part))
    if len(same) == 1:
        return list(same.values())
    if same:
        raise QueryError(
            say(
                "{variable}: {text!r} names more than one category; tick the one that you mean.",
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
