"""Records in memory, column by column: what pre-tabular methods take and give.

Records are confidential. Neither ``repr`` nor an error shows one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Array, Ints, Words
from lustrum.model.dataset import Dataset
from lustrum.model.errors import InputError
from lustrum.model.table import _kept


@dataclass(frozen=True, eq=False, repr=False)
class Records:
    """All records of a dataset, frozen.

    ``codes`` holds, for every variable, positions in its finest code list as unsigned integers;
    ``numbers`` measures and weights as whole numbers in units of their decimals; ``ids`` identifiers
    (holdings, households, the record itself); ``keys`` the secret record keys.
    """

    dataset: Dataset
    codes: Mapping[str, Array]
    numbers: Mapping[str, Ints] = field(default_factory=dict)
    ids: Mapping[str, Ints] = field(default_factory=dict)
    keys: Words | None = None

    def __post_init__(self) -> None:
        for variable in self.dataset.variables:
            if variable.name not in self.codes:
                raise InputError(f"The records have no column {variable.name!r}; they need it.")
        sizes = set()
        for name in ("codes", "numbers", "ids"):
            columns = {n: _kept(np.asarray(c)) for n, c in getattr(self, name).items()}
            sizes |= {c.shape for c in columns.values()}
            object.__setattr__(self, name, columns)
        if self.keys is not None:
            object.__setattr__(self, "keys", _kept(self.keys))
            sizes.add(self.keys.shape)
        if len(sizes) > 1:
            raise InputError("The columns of the records differ in length; they must not.")

    def __len__(self) -> int:
        return int(next(iter(self.codes.values())).size)

    def __repr__(self) -> str:
        return f"Records({self.dataset.name!r})"

    def with_codes(self, **columns: Array) -> Records:
        """The same records with other codes of some variables, checked against their code lists."""
        for name, column in columns.items():
            codes = len(self.dataset.variable(name).codes)
            if column.size and (int(column.min()) < 0 or int(column.max()) >= codes):
                raise InputError(f"A code of {name!r} is outside its code list.")
        recoded = {n: c.astype(self.codes[n].dtype, copy=False) for n, c in columns.items()}
        return replace(self, codes={**self.codes, **recoded})

    def take(self, rows: npt.NDArray[Any]) -> Records:
        """Some of the records, by mask or by position."""
        return replace(
            self,
            codes={n: c[rows] for n, c in self.codes.items()},
            numbers={n: c[rows] for n, c in self.numbers.items()},
            ids={n: c[rows] for n, c in self.ids.items()},
            keys=None if self.keys is None else self.keys[rows],
        )
