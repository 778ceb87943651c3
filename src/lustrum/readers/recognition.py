"""Which codes of a table are totals and subtotals: said by the user, by their names, codes or numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
from lustrum.readers.hidden_totals import (
    ADDED,
    CODED,
    NAMED,
    SAID,
    RecognitionLog,
    look_for_heads,
    unnamed_total,
)
from lustrum.readers.hierarchy_files import Groups, check_circles
from lustrum.readers.numbers import groups_by_numbers
from lustrum.readers.sums import (
    SumsError,
    add_up,
    along,
    check_same_cover,
    check_sums,
    doubt_about_brackets,
    is_largest,
    may_be_negative,
    room_of,
    row_that_is_off,
    worst_difference,
)
from lustrum.readers.table_file import TableFile

__all__ = ["TOTAL_NAMES", "Dimension", "Recognition", "StatedTotals", "recognise"]

_WEAK_NAMES = frozenset({"t", "*", "sum", "0"})  # totals only where nothing is larger
_TOTAL_STARTS = ("total", "all ", "alle ", "both ", "whole ", "gesamt", "insgesamt", "ensemble")
_TOTAL_ENDS = (" total", " insgesamt", " totalt")


def recognise(
    files: Sequence[TableFile],
    said: StatedTotals | None = None,
    *,
    slack: int = 0,
    published: bool = False,
) -> Recognition:
    """Find the totals and subtotals of all dimensions, and check that they add up.

    A dimension in which nothing is recognised is an error, unless it has one code only, the user says that
    it has no total, or another file leaves it out and so shows the totals over it. ``slack`` is a rounding
    base: sums may then be off by that much for every number in them. In ``published`` files what cannot be
    told is a doubt and no error, and codes alone make groups.
    """
    stated = said or StatedTotals()
    names = list(dict.fromkeys(name for file in files for name in file.dimensions))
    spoken = {*stated.named, *stated.groups, *stated.none, *stated.rest, *stated.open_groups}
    for name in sorted({*spoken, *stated.flat} - {""}):
        if name not in names:
            raise InputError(f"There is no dimension {name!r}; {choices(name, names)}.")
    log = RecognitionLog()
    dimensions = {}
    errors: list[SumsError] = []
    for name in names:
        try:
            dimension = (
                _dimension(name, files, stated, slack, log)
                if published
                else _confidential(name, files, stated, slack)
            )
        except SumsError as error:
            # Sums along the other variables tell which row is wrong.
            errors.append(error)
            dimension = error.dimension
        with_it = [file for file in files if name in file.dimensions]
        lone = (
            len(dimension.finest) == 1 or len(with_it) < len(files) or stated.without_totals(name)
        )
        if published and not lone and not dimension.totals:
            dimension = unnamed_total(dimension, with_it, log)
        elif not published and not dimension.groups and not lone:
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
    log.doubts += filter(None, (doubt_about_brackets(file, dimensions.values()) for file in files))
    off = frozenset(log.off)
    if stated.rounded:
        off |= {file.source for file in files}
    return Recognition(dimensions, tuple(dict.fromkeys(log.doubts)), tuple(log.notes), off)


def _confidential(
    name: str, files: Sequence[TableFile], stated: StatedTotals, slack: int
) -> Dimension:
    """A dimension of files that hold every number.

    Subtotals of few small numbers are not told by these alone. Where nothing adds up without them, those that
    codes show are taken, if every one of them is the sum of its parts.
    """
    try:
        return _dimension(name, files, stated, slack)
    except InputError:
        if stated.groups.get(name) or {"", name} & stated.flat:
            raise
        relevant_files, log = [file for file in files if name in file.dimensions], RecognitionLog()
        coded = _by_code(name, relevant_files, (), (), {}, slack, log)
        if not coded or log.doubts:
            raise
        groups = {**stated.groups, name: coded}
        dimension = _dimension(name, files, replace(stated, groups=groups), slack)
        return replace(dimension, how={**dimension.how, **dict.fromkeys(coded, CODED)})


def _dimension(
    name: str,
    files: Sequence[TableFile],
    stated: StatedTotals,
    slack: int,
    log: RecognitionLog | None = None,
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
            elif log is not None and _looks_like_total(code):
                if all(is_largest(f, name, code) for f in relevant_files):
                    totals[code] = NAMED
                else:
                    log.doubts.append(
                        f"{relevant_files[0].source}: nobody said which codes {code!r} of {name!r} holds; say "
                        f"--hierarchy {name}=FILE."
                    )
    rests = {c: f"{c}, not listed" for c in stated.open_groups.get(name, ())}
    for code in rests:
        if code not in codes:
            raise InputError(
                f"The dimension {name!r} has no code {code!r}; {choices(code, codes)}."
            )
    if log is not None and not {"", name} & stated.flat:
        coded = _by_code(name, relevant_files, groups, totals, rests, slack, log)
        groups |= coded
        how |= dict.fromkeys(coded, CODED)
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
    if not stated.without_totals(name) and slack == 0:
        for file in relevant_files:
            added = _added_up(file, name, groups, totals)
            groups |= added
            how |= dict.fromkeys(added, ADDED)
    check_circles(groups, relevant_files[0].source)
    if log is None:
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
        if log is None:
            check_sums(file, dimension, slack)
        else:
            dimension = _checked(file, dimension, slack, stated, log)
    try:
        check_same_cover(relevant_files, dimension)
    except InputError as problem:
        if log is None:
            raise
        log.doubts.append(str(problem))
    if log is not None and not {"", name} & stated.flat and not stated.groups.get(name):
        look_for_heads(dimension, relevant_files, slack, log)
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


def _looks_like_total(code: str) -> bool:
    lower_code = code.lower().strip()
    return lower_code.startswith(_TOTAL_STARTS) or lower_code.endswith(_TOTAL_ENDS)


def _by_code(
    name: str,
    files: Sequence[TableFile],
    stated: Collection[str],
    totals: Collection[str],
    rests: Mapping[str, str],
    slack: int,
    log: RecognitionLog,
) -> Groups:
    """Groups that the codes show, without those that are stated and those that the numbers rule out.

    A stated group can be a part, a total of everything cannot.
    """
    codes = list(dict.fromkeys(c for f in files for c in f.codes[f.dimensions.index(name)]))
    parents = next((f.parents[name] for f in files if name in f.parents), None)
    shown = groups_by_code(codes, parents).items()
    candidates = {c: g for c, g in shown if c not in stated and c not in totals}
    groups: Groups = {}
    confirmed, open_ = [], []
    for code, group in candidates.items():
        parts = tuple(c for c in codes if c in group.parts and c not in totals)
        if not parts:
            continue
        verdict = add_up(name, files, code, parts, slack)
        if verdict == "more" or (verdict == "less" and code not in rests):
            if verdict == "more" and code.isdigit():
                continue  # numbers that begin alike by coincidence
            log.doubts.append(
                f"{files[0].source}: {code!r} of {name!r} is not the sum of the codes that seem to be "
                f"its parts; say "
                f"--hierarchy {name}=FILE, --rest {name}={code} if parts are not listed, or --flat "
                f"{name} if it "
                "has none."
            )
            continue
        groups[code] = parts
        if verdict == "agrees" or group.sure or code in rests:
            confirmed.append(code)
        else:
            open_.append(code)
    if open_ and not confirmed:
        log.doubts.append(
            f"{files[0].source}: no complete column shows whether {open_[0]!r} of {name!r} is the sum "
            f"of the codes "
            f"that seem to be its parts; say --hierarchy {name}=FILE, --rest {name}={open_[0]} or "
            f"--flat {name}."
        )
    return groups


def _checked(
    file: TableFile, dimension: Dimension, slack: int, stated: StatedTotals, log: RecognitionLog
) -> Dimension:
    """Take out what does not add up; sums that are off by rounding are said."""
    groups = dict(dimension.groups)
    for code in dimension.groups:
        off, position = worst_difference(file, dimension, code)
        if off == 0:
            continue
        parts = len(dimension.groups[code])
        allowed = room_of(file, parts, slack)
        kind = "total" if dimension.groups[code] == dimension.everything else "subtotal"
        if abs(off) <= allowed and (slack or stated.rounded or abs(off) <= 1):
            if not slack and file.source not in log.off:
                log.off[file.source] = None
                log.notes.append(
                    f"{file.source}: the {kind} {code!r} of {dimension.name!r} differs from the sum of its "
                    f"parts by a unit of "
                    f"the last digit or a few ({position}); every number is taken as rounded on its own."
                )
            continue
        if not slack and abs(off) <= allowed:
            log.off[file.source] = None  # perhaps rounded, so that nothing follows exactly
        log.doubts.append(
            f"{file.source}: the {kind} {code!r} of {dimension.name!r} ({dimension.how[code]}) is not the sum "
            f"of its parts ({position}); name subtotals with --hierarchy {dimension.name}=FILE, say "
            f"--rest {dimension.name} if codes are missing, --off-by-rounding if numbers are "
            f"rounded, or --no-totals {dimension.name}."
        )
        groups.pop(code)
    finest = (*dimension.finest, *(c for c in dimension.groups if c not in groups))
    # The place behind all codes stands for those that are not listed.
    last, now = len(dimension.finest), len(finest)
    groups = {
        code: frozenset(now if position == last else position for position in members)
        for code, members in groups.items()
    }
    return replace(dimension, finest=finest, groups=groups)


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
    signed = may_be_negative(file, values)
    shown_groups = groups_by_numbers(values, known, codes, skip, stated, signed=signed)
    return {codes[c]: tuple(codes[p] for p in sorted(parts)) for c, parts in shown_groups.items()}
