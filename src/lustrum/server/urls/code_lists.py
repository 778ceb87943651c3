"""Lists of codes in a query string: ``1,2,7..12``.

A range counts on in the digits at the end of a code: ``7..12`` is 7, 8, 9, 10, 11 and 12, and ``2-01..2-03``
is 2-01, 2-02 and 2-03. It means the same whatever the code list holds, so that a saved link keeps its meaning.
A comma in a code is written ``%2C``, a percent sign ``%25``, and dots that could be taken for a range ``%2E``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from urllib.parse import unquote

from lustrum.model import QueryError
from lustrum.model.text import say

MOST_CODES = 20_000
"""Most codes that a list may stand for."""

_SHORTEST = 3
_TAIL = re.compile(r"(.*?)([0-9]{1,9})\Z", re.DOTALL)


def listed(codes: Sequence[str]) -> str:
    """Codes as a list, runs of three and more as ranges; :func:`list_of` reads it back unchanged.

    >>> listed(["1", "2", "08", "09", "10", "11", "a,b"])
    '1,2,08..11,a%2Cb'
    """
    parts: list[str] = []
    start = 0
    while start < len(codes):
        end = start
        while end + 1 < len(codes) and successor(codes[end]) == codes[end + 1]:
            end += 1
        if end - start + 1 < _SHORTEST:
            end = start
        first, last = escaped(codes[start]), escaped(codes[end])
        parts.append(first if start == end else f"{first}..{last}")
        start = end + 1
    return ",".join(parts)


def list_of(text: str, where: str) -> list[str]:
    """The codes that a list stands for, in its order; ``where`` begins the sentence about a mistake."""
    codes: list[str] = []
    for part in text.split(","):
        first, dots, last = part.partition("..")
        if not first or (dots and not last):
            raise QueryError(
                say(
                    "{where} must list codes such as 1,2,7..12, not {text!r}.",
                    where=where,
                    text=text,
                )
            )
        more = _counted(unquote(first), unquote(last), where) if dots else [unquote(first)]
        codes.extend(more)
        if len(codes) > MOST_CODES:
            raise QueryError(
                say(
                    "{where} lists more than {most} codes; list fewer.",
                    where=where,
                    most=MOST_CODES,
                )
            )
    return codes


def successor(code: str) -> str | None:
    """The next code in counting: 10 after 9, 2-10 after 2-09; nothing after a code without a number."""
    tail_match = _TAIL.match(code)
    if tail_match is None:
        return None
    prefix, digits = tail_match.groups()
    following = str(int(digits) + 1).zfill(len(digits))
    return None if len(following) > 9 else prefix + following


def escaped(text: str, marks: Iterable[str] = "%,") -> str:
    """A code or label with its marks written as percent and two digits."""
    for mark in marks:
        text = text.replace(mark, f"%{ord(mark):02X}")
    dotted = ".." in text or text[:1] == "." or text[-1:] == "."
    return text.replace(".", "%2E") if dotted else text


def _counted(first: str, last: str, where: str) -> list[str]:
    codes = [first]
    low, high = _TAIL.match(first), _TAIL.match(last)
    if low is not None and high is not None and low[1] == high[1]:
        steps = int(high[2]) - int(low[2])
        if steps >= MOST_CODES:
            raise QueryError(
                say(
                    "{where} lists more than {most} codes; list fewer.",
                    where=where,
                    most=MOST_CODES,
                )
            )
        for _ in range(steps):
            following = successor(codes[-1])
            if following is None:
                break
            codes.append(following)
    if codes[-1] != last:
        raise QueryError(
            say(
                "{where}: {first!r} to {last!r} is not a range; both ends must differ only in "
                "the number at their end, the smaller one first.",
                where=where,
                first=first,
                last=last,
            )
        )
    return codes
