"""Whom an output is about: its people without their names, their categories, and which counts it shows.

People are kept as keyed digests of what names their records, so that the same person is the same number in
every output of one book of sessions, and nobody without its key can tell who it is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from lustrum.model.arrays import Ints, Mask

Level = tuple[str, ...]


def people_of(names: Iterable[object], key: bytes) -> Ints:
    """A number for what names each record, the same in all outputs under a key.

    >>> people_of(["a", "b"], b"key")[0] == people_of(["a"], b"key")[0]
    np.True_
    """
    digests = (
        hashlib.blake2b(f"{type(n).__name__[:3]}:{n}".encode(), key=key, digest_size=8).digest()
        for n in names
    )
    return np.frombuffer(b"".join(digests), dtype="<i8").astype(np.int64)


@dataclass(frozen=True, eq=False)
class OutputPopulation:
    """The people of an output: ``codes`` say in which category of each variable each of them is.

    ``shown`` says which counts can be read from the output: for its finest cells, and for each margin that it
    shows, an array over the categories of the variables of that level. An output that shows its number of
    people alone has the level ``()``.
    """

    output: str
    people: Ints
    codes: Mapping[str, Ints]
    labels: Mapping[str, tuple[str, ...]]
    shown: Mapping[Level, Mask]

    @property
    def variables(self) -> Level:
        """The variables of the output, in its order."""
        return tuple(self.labels)

    def visible(self, within: Iterable[str]) -> dict[Level, Mask]:
        """Which counts by some of the variables follow from those that are shown."""
        kept, out = set(within), dict[Level, Mask]()
        for level, mask in self.shown.items():
            inner = tuple(name for name in level if name in kept)
            outer = tuple(at for at, name in enumerate(level) if name not in kept)
            follows: Mask = np.asarray(np.asarray(mask, dtype=np.bool_).all(axis=outer))
            out[inner] = out[inner] | follows if inner in out else follows
        return out

    def to_arrays(self) -> dict[str, Any]:
        """The population as plain arrays, for a file."""
        arrays: dict[str, Any] = {"people": self.people}
        for name in self.variables:
            arrays[f"codes/{name}"] = self.codes[name]
            arrays[f"labels/{name}"] = np.array(self.labels[name], dtype=np.str_)
        for at, (level, mask) in enumerate(self.shown.items()):
            arrays[f"level/{at}"] = np.array(level, dtype=np.str_)
            arrays[f"shown/{at}"] = mask
        return arrays

    @classmethod
    def from_arrays(cls, output: str, arrays: Mapping[str, Any]) -> OutputPopulation:
        """The population that a file holds."""
        names = [word.removeprefix("codes/") for word in arrays if word.startswith("codes/")]
        levels = sorted(int(w.removeprefix("level/")) for w in arrays if w.startswith("level/"))
        return cls(
            output,
            arrays["people"],
            {name: arrays[f"codes/{name}"] for name in names},
            {name: tuple(arrays[f"labels/{name}"].tolist()) for name in names},
            {tuple(arrays[f"level/{at}"].tolist()): arrays[f"shown/{at}"] for at in levels},
        )
