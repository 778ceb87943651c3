"""What the status letters of a published file mean; the column's name decides which code list they are from.

In ``CONF_STATUS`` every letter but F says that a value is confidential. In ``OBS_STATUS`` A is a normal value
and Q a suppressed one. In ``OBS_FLAG`` c is confidential, and the other letters are remarks. In a column
called only ``status`` letters could be from either list, so one beside a value is not judged until
somebody says which list it is from. A number that stands in a file is published, whatever its letter.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum
from typing import Literal

from lustrum.model import CellStatus

StatusList = Literal["confidentiality", "observation", "flags"]

# CL_OBS_STATUS of SDMX: remarks on values that are there, and reasons why there is none.
_REMARKS = frozenset("ABDEFGINPSUVWXYZ")
_MISSING = frozenset("HJKLMOQR")
_FREE = frozenset({"", CellStatus.FREE.value})
# Flags of Eurostat: c is confidential and z not applicable, the others are remarks.
_FLAGS = frozenset("bdefinprsuv")


# Words that stand for a letter, and what in a remark may say that a value is hidden.
_WORDS = frozenset({"published", "shown", "public", "normal", "ok"})
_HIDING = re.compile(
    r"suppress|confiden|withheld|secret|hidden|redact|disclos|not publish|unpublish|geheim|vertraulich",
    re.IGNORECASE,
)
# Words that turn another into its opposite, so that nobody can tell what a remark says: 'not confidential' is
# shown, 'not disclosed' is hidden.
_TURNED = re.compile(
    r"\bnot?\b(?! publish)|\b(?:non|never|nicht|kein\w*)\b|\bun(?=suppress|confiden|hidden|redact|disclos)",
    re.IGNORECASE,
)
_TRUTH = frozenset({"true", "false", "yes", "no"})
TRUTH_COLUMNS = frozenset(
    {"suppressed", "confidential", "hidden", "secret", "withheld", "confidentiality", "suppression"}
)
"""Names of columns that say with yes or no whether a value is hidden."""


class Meaning(Enum):
    """What a letter says about the number beside it."""

    PUBLISHED = "published"
    HIDDEN = "hidden"
    UNCLEAR = "unclear"


def list_of(column: str) -> StatusList | None:
    """The code list that a column's name states, if it does.

    >>> list_of("CONF_STATUS"), list_of("turnover_obs_status"), list_of("status")
    ('confidentiality', 'observation', None)
    """
    name = column.lower().replace(" ", "_").replace("-", "_")
    if name.endswith("conf_status"):
        return "confidentiality"
    if name.endswith("obs_status"):
        return "observation"
    if name.endswith(("flag", "flags")):
        return "flags"
    return None


def is_truth(column: str) -> bool:
    """Whether a column says with yes or no whether values are hidden."""
    return column.lower().removeprefix("is_") in TRUTH_COLUMNS


def hides(text: str) -> bool:
    """Whether words say that a value is hidden.

    >>> hides("suppressed"), hides("provisional")
    (True, False)
    """
    return bool(_HIDING.search(text))


def is_letter(text: str) -> bool:
    """Whether a text can stand in a column of letters: it is as short as one, or a word for one."""
    return len(text) <= 2 or text.lower() in _WORDS | _TRUTH or hides(text)


def meaning(letter: str, stated: StatusList | None) -> Meaning:
    """What a letter means beside a number.

    >>> meaning("A", "observation"), meaning("A", "confidentiality"), meaning("A", None)
    (<Meaning.PUBLISHED: 'published'>, <Meaning.HIDDEN: 'hidden'>, <Meaning.UNCLEAR: 'unclear'>)
    """
    if letter.lower() in _WORDS:
        return Meaning.PUBLISHED
    if hides(letter):
        return Meaning.UNCLEAR if _TURNED.search(letter) else Meaning.HIDDEN
    if stated == "observation":
        if letter == "" or letter in _REMARKS:
            return Meaning.PUBLISHED
        return Meaning.HIDDEN if letter in _MISSING else Meaning.UNCLEAR
    if stated == "flags":
        if all(part in _FLAGS for part in letter):
            return Meaning.PUBLISHED
        return Meaning.HIDDEN if letter == "c" else Meaning.UNCLEAR
    if letter in _FREE:
        return Meaning.PUBLISHED
    if stated == "confidentiality" and len(letter) == 1 and letter.isascii() and letter.isupper():
        return Meaning.HIDDEN
    return Meaning.UNCLEAR


def judged(
    column: str | None,
    letters: Sequence[str],
    numbers: Sequence[bool],
    said: StatusList | None = None,
) -> tuple[tuple[int, ...], str]:
    """The rows whose number stands though its letter says hidden, and a sentence if letters are unclear."""
    if column is None:
        return (), ""
    stated = said or list_of(column)
    meanings = [meaning(letter, stated) for letter in letters]
    standing = tuple(
        row for row, there in enumerate(numbers) if there and meanings[row] is Meaning.HIDDEN
    )
    odd = dict.fromkeys(
        letters[row]
        for row, there in enumerate(numbers)
        if there and meanings[row] is Meaning.UNCLEAR
    )
    if not odd:
        return standing, ""
    listed = ", ".join(repr(letter) for letter in list(odd)[:5]) + (", ..." if len(odd) > 5 else "")
    way = (
        "say --status-codes confidentiality or --status-codes observation, or what each letter means, such as "
        "--status A=shown or --status N=hidden"
        if stated is None
        else "say what each letter means, such as --status A=shown or --status N=hidden"
    )
    return standing, (
        f"numbers stand beside {listed} in the column {column!r}, which could mean that they are hidden; {way}."
    )
