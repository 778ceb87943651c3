"""Random words for empty cells.

The word of a cell comes from the keys of its records. An empty cell has no records, so all empty cells
would be perturbed alike. But every cell has a definition: the codes that it takes of each variable. Its
word is a keyed hash of that, under a secret of the agency, so that it is the same in every table, whether a
variable is an axis or a filter, and in whatever order.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field

import numpy as np

from lustrum.model import Dataset, InputError, Table, TableQuery
from lustrum.model.arrays import Words
from lustrum.model.keys import scramble


@dataclass(frozen=True, repr=False)
class ZeroKeys:
    """The agency's secret and the description of its data: what words for empty cells are made from.

    A cell is defined by the finest codes that it takes of each variable. A variable of which it takes all
    codes is left out. The hashes of the variables' codes are added modulo 2**64, so their order does not
    matter, and a cipher under the secret breaks the relations between the sums.
    """

    secret: bytes = field(repr=False)
    dataset: Dataset

    def __post_init__(self) -> None:
        if len(self.secret) < 16:
            raise InputError("A secret for empty cells must have at least 16 bytes; use 32.")

    def __repr__(self) -> str:
        return f"ZeroKeys({self.dataset.name!r}, hidden)"

    def random_words(self, table: Table, purpose: str) -> Words:
        """A uniform word for the definition of each cell, for the cells that need one."""
        passing = self._passing(table)
        along_axes = {axis.name for axis in table.axes}
        filtered = sum(self._hashed(n, c) for n, c in passing.items() if n not in along_axes)
        total = np.array(filtered % 2**64, dtype=np.uint64)
        for axis in table.axes:
            everything = self.dataset.variable(axis.name).everything
            allowed = passing.get(axis.name, everything)
            along = [self._hashed(axis.name, c.member_set & allowed) for c in axis.categories]
            total = total[..., None] + np.array(along, dtype=np.uint64)
        return scramble(self._mac(f"words {purpose}")[:16], np.asarray(total, dtype=np.uint64))

    def _passing(self, table: Table) -> dict[str, frozenset[int]]:
        """The codes that pass the filters of the table, by variable."""
        question = table.provenance.get("query")
        if question is None:
            return {}
        query = TableQuery.from_mapping(question)
        if query.dataset != self.dataset.name:
            raise InputError(
                f"The table is of the dataset {query.dataset!r}, the words for its empty cells are for "
                f"{self.dataset.name!r}; they must be the same."
            )
        return {f.variable: f.members(self.dataset.variable(f.variable)) for f in query.where}

    def _hashed(self, name: str, members: frozenset[int]) -> int:
        variable = self.dataset.variable(name)
        if members == variable.everything:
            return 0
        codes = "\n".join(sorted(variable.codes[i] for i in members))
        return int.from_bytes(self._mac(f"codes {name}\n{codes}")[:8], "little")

    def _mac(self, text: str) -> bytes:
        whole = f"lustrum empty cell 1 {self.dataset.name}\n{text}".encode()
        return hmac.new(self.secret, whole, hashlib.sha256).digest()
