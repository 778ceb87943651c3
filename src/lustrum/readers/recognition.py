"""Which codes of a confidential table are totals and subtotals: said by the user, by their names,
codes or numbers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from lustrum.model import InputError
from lustrum.model.errors import choices
from lustrum.readers.code_groups import groups_by_code
from lustrum.readers.dimensions import (
    TOTAL_NAMES,
    Dimension,
    Recognition,
    StatedTotals,
    finest_of,
)
from lustrum.readers.hierarchy_files import Groups, check_circles
from lustrum.readers.numbers import groups_by_numbers
from lustrum.readers.sums import (
    SumsError,
    add_up,
    along,
    check_same_cover,
    check_sums,
    is_largest,
    may_be_negative,
    row_that_is_off,
)
from lustrum.readers.table_file import TableFile

__all__ = ["TOTAL_NAMES", "Dimension", "Recognition", "StatedTotals", "recognise"]

SAID, NAMED, ADDED, CODED = "as you say", "by name", "by numbers", "by code"
_WEAK_NAMES = frozenset({"t", "*", "sum", "0"})  # totals only where nothing is larger


def recognise(files: Sequence[TableFile], said: StatedTotals | None = None) -> Recognition:
    """Find the totals and subtotals of all dimensions, and check that they add up.

    A dimension in which nothing is recognised is an error, unless it has one code only, the user says that
    it has no total, or another file leaves it out and so shows the totals over it.
    """
    stated = said or StatedTotals()
    names = list(dict.fromkeys(name for file in files for name in file.dimensions))
    spoken = {*stated.named, *stated.groups, *stated.none, *stated.rest, *stated.open_groups}
    for name in sorted(spoken - {""}):
        if name not in names:
            raise InputError(f"There is no dimension {name!r}; {choices(name, names)}.")
    dimensions = {}
    errors: list[SumsError] = []
    for name in names:
        try:
            dimension = _confidential(name, files, stated)
        except SumsError as error:
            # Sums along the other variables tell which row is wrong.
            errors.append(error)
            dimension = error.dimension
        with_it = [file for file in files if name in file.dimensions]
        lone = (
            len(dimension.finest) == 1 or len(with_it) < len(files) or stated.without_totals(name)
        )
        if not dimension.groups and not lone:
            listed = ", ".join(dimension.finest[:6]) + (
                ", ..." if len(dimension.finest) > 6 else ""
            )
            raise InputError(
                f"{with_it[0].source}: no total is recognised among the codes of {name!r} ({listed}); name it "
                f"with --total {name}=CODE, or say --no-totals {name} if there is none."
            )
        dimensions[name] = dimension
    if errors:
        row = row_that_is_off(files[0], errors) if len(files) == 1 else ""
        raise InputError(
            f"{errors[0]}{f' The number in {row} is in every sum that is off.' if row else ''}"
        )
    return Recognition(dimensions)


def _confidential(name: str, files: Sequence[TableFile], stated: StatedTotals) -> Dimension:
    """A dimension of files that hold every number.

    Subtotals of few small numbers are not told by these alone. Where nothing adds up without them, those that
    codes show are taken, if every one of them is the sum of its parts.
    """
    try:
        return _dimension(name, files, stated)
    except InputError:
        if stated.groups.get(name):
            raise
        coded = _by_code(name, [file for file in files if name in file.dimensions])
        if not coded:
            raise
        groups = {**stated.groups, name: coded}
        dimension = _dimension(name, files, replace(stated, groups=groups))
        return replace(dimension, how={**dimension.how, **dict.fromkeys(coded, CODED)})


def _dimension(
    name: str,
    files: Sequence[TableFile],
    stated: StatedTotals,
) -> Dimension:
    relevant_files = [file for file in files if name in file.dimensions]
    codes = list(
        dict.fromkeys(c for file in relevant_files for c in file.codes[file.dimensions.index(name)])
    )
    groups = dict(stated.groups.get(name, {}))
    how = dict.fromkeys(groups, SAID)
    totals = dict.fromkeys((stated.named.get(name, frozenset())), SAID)
    totals |= {c: SAID for c in stated.named.get("", ()) if c in codes}
    for code in totals:
        if code not in codes:
            raise InputError(
                f"The dimension {name!r} has no code {code!r}; {choices(code, codes)}."
            )
    if not stated.without_totals(name):
        for code in codes:
            if code in groups or code in totals:
                continue
            if code.lower() in TOTAL_NAMES or (
                code.lower() in _WEAK_NAMES
                and all(is_largest(f, name, code) for f in relevant_files)
            ):
                totals[code] = NAMED
    rests = {c: f"{c}, not listed" for c in stated.open_groups.get(name, ())}
    for code in rests:
        if code not in codes:
            raise InputError(
                f"The dimension {name!r} has no code {code!r}; {choices(code, codes)}."
            )
    for code, rest_code in rests.items():
        if code in groups:
            groups[code] = (*groups[code], rest_code)
    for code, listed in groups.items():
        for part in listed:
            if part in totals:
                raise InputError(
                    f"The group {code!r} of {name!r} holds the total {part!r}; say with --hierarchy "
                    f"{name}=FILE which codes {part!r} holds."
                )
    check_circles(groups, relevant_files[0].source)
    if not stated.without_totals(name):
        for file in relevant_files:
            added = _added_up(file, name, groups, totals)
            groups |= added
            how |= dict.fromkeys(added, ADDED)
    check_circles(groups, relevant_files[0].source)
    # Everything is listed in a confidential file: a code without a row is empty.
    groups = _listed_only(groups, codes)
    listed = (*codes, *(part for parts in groups.values() for part in parts))
    finest = list(dict.fromkeys(c for c in listed if c not in groups and c not in totals))
    if not finest:
        raise InputError(
            f"The dimension {name!r} has totals only; it needs a code that is not one."
        )
    index_of = {code: i for i, code in enumerate(finest)}
    positions = {code: finest_of(code, groups, index_of) for code in groups}
    rest = bool({"", name} & stated.rest)
    everything = frozenset(range(len(finest) + rest))
    for code, way in totals.items():
        positions[code] = everything
        how[code] = way
    shown = {c: positions[c] for c in (*codes, *groups) if c in positions}
    dimension = Dimension(name, tuple(finest), shown, {code: how[code] for code in shown}, rest)
    for file in relevant_files:
        check_sums(file, dimension)
    check_same_cover(relevant_files, dimension)
    return dimension


def _listed_only(groups: Groups, codes: Sequence[str]) -> Groups:
    """Groups without the codes that no file lists, and without groups of which nothing is left."""
    remaining = dict(groups)
    while True:
        pruned = {
            code: tuple(p for p in parts if p in remaining or p in codes)
            for code, parts in remaining.items()
        }
        pruned = {code: parts for code, parts in pruned.items() if parts}
        if pruned == remaining:
            return remaining
        remaining = pruned


def _by_code(name: str, files: Sequence[TableFile]) -> Groups:
    """Groups that the codes show, each the sum of its parts; none if one of them is not."""
    codes = list(dict.fromkeys(c for f in files for c in f.codes[f.dimensions.index(name)]))
    groups: Groups = {}
    for code, group in groups_by_code(codes, None).items():
        parts = tuple(c for c in codes if c in group.parts)
        if not parts:
            continue
        verdict = add_up(name, files, code, parts)
        if verdict == "more" and code.isdigit():
            continue  # numbers that begin alike by coincidence
        if verdict != "agrees":
            return {}
        groups[code] = parts
    return groups


def _added_up(
    file: TableFile, name: str, groups: Groups, totals: Collection[str]
) -> dict[str, tuple[str, ...]]:
    """Groups of a file that its numbers show, beside those that are known."""
    codes = file.codes[file.dimensions.index(name)]
    values, known = along(file, name)
    skip = [i for i, code in enumerate(codes) if code in totals]
    stated = {
        i: frozenset(codes.index(part) for part in groups[code] if part in codes)
        for i, code in enumerate(codes)
        if code in groups
    }
    signed = may_be_negative(values)
    shown_groups = groups_by_numbers(values, known, codes, skip, stated, signed=signed)
    return {codes[c]: tuple(codes[p] for p in sorted(parts)) for c, parts in shown_groups.items()}
