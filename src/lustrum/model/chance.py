"""Where chance comes from when a caller gives it: a generator, or a whole number as its seed."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from lustrum.model.errors import InputError

Seed: TypeAlias = np.random.Generator | int | None
"""A generator, a seed for one, or nothing: chance then comes from record keys."""


Chance: TypeAlias = np.random.Generator | None
"""Where a method draws from: a generator, or the table's record keys."""


class KeyedChance(np.random.Generator):
    """Chance that a secret fixes: nobody else can draw the same numbers, as with a seed that is guessed."""


class WatchedChance(np.random.Generator):
    """The caller's generator, which notes whether anything asked for it: only then has chance played a part."""

    used = False

    def __getattribute__(self, name: str) -> Any:
        if name != "used":
            object.__setattr__(self, "used", True)
        return super().__getattribute__(name)


def generator_of(rng: object) -> np.random.Generator | None:
    """The generator that was given, one seeded by a whole number, or None.

    >>> int(generator_of(1).integers(100)) == int(np.random.default_rng(1).integers(100))
    True
    """
    if rng is None or isinstance(rng, np.random.Generator):
        return rng
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        return np.random.default_rng(int(rng))
    raise InputError(
        "'rng' is a whole number from 0 up, such as rng=1, or a numpy generator, such as "
        f"numpy.random.default_rng(1); {_named(rng)} is neither."
    )


def required_generator(rng: object) -> np.random.Generator:
    """The same where record keys cannot stand in: something must be given."""
    generator = generator_of(rng)
    if generator is None:
        raise InputError("A seed is needed here: give 'rng', a whole number such as rng=1.")
    return generator


def any_generator(rng: object) -> np.random.Generator:
    """The same where nothing depends on the draw being repeated: without a seed, any generator."""
    generator = generator_of(rng)
    return np.random.default_rng() if generator is None else generator


def _named(rng: object) -> str:
    """A number as it is, anything else by its type."""
    return repr(rng) if isinstance(rng, (int, float, str)) else f"a {type(rng).__name__}"
