"""What can go wrong, as a tree.

::

    LustrumError
    ├── InputError (also a ValueError)   somebody's mistake; one sentence says what, where and what is right
    │   ├── DescriptionError             a dataset description
    │   ├── QueryError                   a question for a table
    │   ├── IngestError                  a data file
    │   ├── PolicyError                  a policy file
    │   └── NotJudgedError               nobody can say whether it is safe, so nothing is published
    ├── DatasetError                     a dataset on disk is missing, damaged or in use
    │   └── NotReadyError                its files are still being checked; a later question may be answered
    │       ├── NotAnsweringError        the process that holds its records is silent and is started again
    │       └── NotMadeError             its bundle is not made yet
    └── InternalError                    our own bug; says so

A refusal to publish is not an error: it is a :class:`~lustrum.model.decision.Decision`.
No message ever carries a count, a record key or a contributor's value.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from itertools import islice

from lustrum.model.text import say


class LustrumError(Exception):
    """The root of every error that Lustrum raises on purpose."""


class InputError(LustrumError, ValueError):
    """Something that was handed in is wrong; the message says what would be right."""


class DescriptionError(InputError):
    """A dataset description is wrong."""


class QueryError(InputError):
    """A question for a table is wrong."""


class IngestError(InputError):
    """A data file does not fit its description, or cannot be read."""


class PolicyError(InputError):
    """A policy file is wrong."""


class NotJudgedError(InputError):
    """What should be published cannot be judged, so nobody may call it safe."""


class DatasetError(LustrumError):
    """A dataset on disk is missing, damaged or in use."""


class NotReadyError(DatasetError):
    """A dataset is still being checked; the same question may be answered soon."""


class NotAnsweringError(NotReadyError):
    """The process that holds the records of a dataset does not answer; it is started again."""


class NotMadeError(NotReadyError):
    """A dataset has records, and a policy that asks for a bundle, but the bundle is not made yet."""


class InternalError(LustrumError):
    """A bug of Lustrum's own."""


_COMPARED = 1000  # names with which a wrong one is compared, so that no mistake costs seconds


def choices(given: object, valid: Iterable[str], most: int = 8) -> str:
    """The tail of a message about a wrong name: the near ones first, then how many there are.

    >>> choices("sexx", ["age", "sex"])
    "did you mean 'sex'? There are: age, sex"
    >>> choices(None, ["age", "sex"])
    'there are: age, sex'
    """
    names = list(valid)
    if not names:
        return say("there are none")
    near = get_close_matches(given, _alike(given, names), n=1) if isinstance(given, str) else []
    listed = ", ".join(names[:most])
    if len(names) > most:
        listed = say("{some} and {rest} more", some=listed, rest=len(names) - most)
    if near:
        return say("did you mean {near!r}? There are: {listed}", near=near[0], listed=listed)
    return say("there are: {listed}", listed=listed)


def _alike(given: str, names: list[str]) -> list[str]:
    """Names that are worth comparing with a wrong one: of very many those that begin alike, and no more."""
    if len(names) <= _COMPARED:
        return names
    return list(islice((name for name in names if name[:2] == given[:2]), _COMPARED))


def check_known(
    names: Iterable[object], known: Iterable[str], unknown: str, kind: type[InputError] = InputError
) -> None:
    """Refuse a name that is not known; ``unknown`` begins the sentence, such as "There is no variable"."""
    valid = list(known)
    for name in names:
        if name not in valid:
            raise kind(f"{unknown} {name!r}; {choices(name, valid)}.")


def kind_of(value: object) -> str:
    """The type of a value with its article, for a message about a value of the wrong type.

    >>> kind_of([1]), kind_of(1), kind_of(None)
    ('a list', 'an int', 'None')
    """
    if value is None:
        return "None"
    name = type(value).__name__
    return f"{'an' if name[0].lower() in 'aeiou' or name == 'ndarray' else 'a'} {name}"
