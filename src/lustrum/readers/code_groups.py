"""Groups of codes that the codes themselves show: a common beginning, a range, a sum, a column of parents.

``C`` holds ``C10`` and ``C11``; ``1.1`` belongs to ``1``; ``15-64`` is ``15-24`` and ``25-64``; ``B-E`` is
B, C, D and E; ``D+E`` is D and E. Numbers decide about them: parts that are more than the whole rule a
group out, a column in which all is shown and adds up confirms it. Numbers that run on (1 to 12, ages,
years) begin alike by coincidence.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_CODE = re.compile(r"[^\W_][\w.+-]*\.?")
_AGES = re.compile(r"(?:[YA]_?)?(\d+)\s*(?:-|–|_|\bto\b)\s*(\d+)")
_FROM = re.compile(r"(?:[YA]_?(?:GE_?)?)?(\d+)\s*\+|(?:Y_)?GE(\d+)")
_LETTERS = re.compile(r"([A-Z])[-_]([A-Z])")
_YEAR = re.compile(r"(19|20)\d\d")
_JOINED = re.compile(r"\+|&|,| and | und | et | y ")
_RUN = re.compile(r"([A-Za-z_-]+)([1-9]\d*)")


@dataclass(frozen=True)
class CodeGroup:
    """The direct parts of a code, and whether the codes leave no doubt that these are all of them."""

    parts: frozenset[str]
    sure: bool


def is_years(codes: Sequence[str]) -> bool:
    """Whether all codes are years, which nobody adds up."""
    return all(_YEAR.fullmatch(code) for code in codes)


def groups_by_code(
    codes: Sequence[str], parents: Mapping[str, str] | None = None
) -> dict[str, CodeGroup]:
    """The groups that codes show, with their direct parts.

    >>> found = groups_by_code(["C", "C10", "C11", "15-64", "15-24", "25-64", "D+E", "D", "E"])
    >>> {code: sorted(group.parts) for code, group in found.items()}
    {'C': ['C10', 'C11'], 'D+E': ['D', 'E'], '15-64': ['15-24', '25-64']}
    """
    named = _by_parent(codes, parents or {})
    if named:
        return named
    unions = {**_merged(codes), **_letter_ranges(codes)}
    ages = _age_ranges(codes)
    begun = _by_beginning([c for c in codes if c not in unions and c not in ages])
    return {**begun, **unions, **ages}


def _by_parent(codes: Sequence[str], parents: Mapping[str, str]) -> dict[str, CodeGroup]:
    children: dict[str, set[str]] = {}
    for code, parent in parents.items():
        if code in codes and parent in codes:
            children.setdefault(parent, set()).add(code)
    return {code: CodeGroup(frozenset(parts), sure=False) for code, parts in children.items()}


def _by_beginning(codes: Sequence[str]) -> dict[str, CodeGroup]:
    children: dict[str, set[str]] = {}
    every = set(codes)
    running = _runs_on(codes)
    for code in codes:
        if not _CODE.fullmatch(code):
            continue
        for size in range(len(code) - 1, 0, -1):
            start = code[:size]
            if (
                start in every
                and not (running and start.isdigit())
                and _continues(start, code[size:])
                and not _same_run(start, code, codes)
            ):
                children.setdefault(start, set()).add(code)
                break
    return {code: CodeGroup(frozenset(parts), sure=False) for code, parts in children.items()}


def _continues(start: str, rest: str) -> bool:
    """Whether a code goes on after a shorter one: by a digit, or by a sign and more."""
    if rest[0].isdigit():
        return True
    if rest[0] in ".-_" and len(rest) > 1 and rest[1].isalnum():
        # 'C10-C12' does not go on after 'C10', and a date not after its year.
        return not re.match(r"[-_][A-Z]?\d", rest) or not start[-1].isdigit()
    return False


def _same_run(start: str, code: str, codes: Sequence[str]) -> bool:
    """Whether two codes are numbers of one run behind the same letters, such as R1 and R12 of R1 to R12."""
    matches = [_RUN.fullmatch(c) for c in (start, code)]
    if matches[0] is None or matches[1] is None:
        return False
    stem = matches[0][1]
    numbers = sorted(int(m[2]) for m in map(_RUN.fullmatch, codes) if m and m[1] == stem)
    return numbers == list(range(numbers[0], numbers[0] + len(numbers)))


def _runs_on(codes: Sequence[str]) -> bool:
    """Whether the codes that are numbers run on without a gap, or are years."""
    numbers = [code for code in codes if code.isdigit()]
    if is_years(numbers):
        return True
    plain = sorted(int(code) for code in numbers if code == "0" or code[0] != "0")
    run_numbers = [n for n in plain if n not in (0, 99, 999, 9999)]
    if len(run_numbers) < 3 or len(run_numbers) < len([n for n in numbers if set(n) - {"0", "9"}]):
        return False
    return run_numbers == list(range(run_numbers[0], run_numbers[0] + len(run_numbers)))


def _merged(codes: Sequence[str]) -> dict[str, CodeGroup]:
    groups = {}
    every = set(codes)
    for code in codes:
        parts = [part.strip() for part in _JOINED.split(code)]
        if len(parts) > 1 and all(part in every for part in parts):
            groups[code] = CodeGroup(frozenset(parts), sure=True)
    return groups


def _letter_ranges(codes: Sequence[str]) -> dict[str, CodeGroup]:
    groups = {}
    every = set(codes)
    for code in codes:
        match = _LETTERS.fullmatch(code)
        if match is None or match[1] >= match[2]:
            continue
        parts = {chr(i) for i in range(ord(match[1]), ord(match[2]) + 1)} & every
        # A letter in between that the file does not list may still be in the group.
        if len(parts) > 1:
            whole = len(parts) == ord(match[2]) - ord(match[1]) + 1
            groups[code] = CodeGroup(frozenset(parts), sure=whole)
    return groups


def _age_ranges(codes: Sequence[str]) -> dict[str, CodeGroup]:
    """Ranges that other ranges fill without a gap."""
    spans: dict[str, tuple[int, int]] = {}
    for code in codes:
        match = _AGES.fullmatch(code)
        beyond = _FROM.fullmatch(code)
        if match and int(match[1]) < int(match[2]):
            spans[code] = int(match[1]), int(match[2])
        elif beyond:
            spans[code] = int(beyond[1] or beyond[2]), 10**9
    groups = {}
    for code, (low, high) in spans.items():
        inside = {s: c for c, s in spans.items() if c != code and low <= s[0] and s[1] <= high}
        parts = _filled(low, high, sorted(inside, key=lambda s: (s[0], -s[1])), (low, high))
        if parts:
            groups[code] = CodeGroup(frozenset(inside[span] for span in parts), sure=True)
    return groups


def _filled(
    low: int, high: int, spans: Sequence[tuple[int, int]], whole: tuple[int, int]
) -> tuple[tuple[int, int], ...]:
    """Spans side by side from one end to the other, the longest first; none if they leave a gap."""
    for span in spans:
        if span[0] != low or span == whole:
            continue
        if span[1] == high:
            return (span,)
        rest = _filled(span[1] + 1, high, spans, whole)
        if rest:
            return (span, *rest)
    return ()
