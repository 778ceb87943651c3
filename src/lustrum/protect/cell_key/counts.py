"""The cell key method for counts (Fraser and Wooton 2005; Marley and Leaver 2011; Giessing and Tent 2019).

Every record has a secret key. The keys of the records of a cell add up to the cell's key, and the cell's
key and its count together are looked up in a perturbation table, the *ptable*, which says what is added.
The same people always give the same published number, in every table, on every engine, at any time. Asking
ten thousand times reveals no more than asking once.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.model import Dataset, InputError, Release, Table, TableQuery
from lustrum.model.arrays import Ints, Words
from lustrum.model.chance import Chance, Seed
from lustrum.model.channel import SHLOMO_2015, MatrixChannel
from lustrum.model.errors import choices
from lustrum.model.keys import cell_words, scramble
from lustrum.model.parameters import parameter, shortened
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities
from lustrum.protect.cell_key.additive import additive_release
from lustrum.protect.cell_key.channel import longest_step, support_of
from lustrum.protect.cell_key.ptable import PTable, read_ptable
from lustrum.protect.cell_key.words import (
    Additive,
    CellKeyWords,
    Lookup,
    LookupLayout,
    Source,
    Versions,
    layout_of,
    moves_zeros,
    public_channel,
    rows_right_on_average,
    source_words,
)
from lustrum.protect.entropy_left import entropy_left
from lustrum.protect.method import TABULAR, MethodSpec, Stage, checked_input, whole_counts
from lustrum.protect.perturbation.design import PerturbationDesign
from lustrum.protect.totals.safe import hidden_totals, safe_totals
from lustrum.protect.totals.summed import PublishedSums, released_sums

# Random words for empty cells.
#
# The word of a cell comes from the keys of its records. An empty cell has no records, so all empty cells
# would be perturbed alike. But every cell has a definition: the codes that it takes of each variable. Its
# word is a keyed hash of that, under a secret of the agency, so that it is the same in every table, whether a
# variable is an axis or a filter, and in whatever order.


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


_PURPOSE = "cell-key"
_PRESETS = {"shlomo-2015": SHLOMO_2015}
_OWN = ("designed", "matrix")


@dataclass(frozen=True)
class CellKey(MethodSpec):
    """Every cell, totals included, is changed by the entry of the ptable for its count and its cell key.

    ``ptable`` is the name of a preset, the path of a CSV file with the columns ``pcv``, ``ckey`` and
    ``pvalue``, or what the table is made from: a :class:`~lustrum.protect.cell_key.PTable`, a transition
    matrix or a :class:`~lustrum.protect.perturbation.design.PerturbationDesign`.

    Where the ptable moves zeros, empty cells need :meth:`with_zeros`; without it they stay 0, and the
    notes say so. ``totals="guarded"`` hides totals that would disclose an inner cell; ``"own"`` shows every
    total as its own key perturbs it, even where it discloses one; :class:`Additive` makes the table add up.

    >>> table = Table.from_counts([[1, 5], [7, 0]], keys=[[11, 12], [13, 0]])
    >>> release = CellKey().apply(table)
    >>> int(release.published[1, 1]), release.low.tolist()[1][1]
    (0, 0)
    >>> bool((CellKey().apply(table).published == release.published).all())
    True
    """

    name: ClassVar[str] = "cell-key"
    stages: ClassVar[tuple[Stage, ...]] = TABULAR
    written_as: ClassVar[type] = CellKeyWords
    ptable: Source = parameter("shlomo-2015", "What the lookup table is made from.")
    lookup: Lookup = parameter(Lookup(), "How a cell key is looked up.")
    totals: Literal["guarded", "own"] | Additive = parameter("guarded", "What becomes of totals.")
    versions: Versions = parameter(Versions(), "The versions that a release states.")
    zero_keys: ZeroKeys | None = parameter(None, "Keys for empty cells.", secret=True)

    def check_together(self) -> None:
        """A table that changes nothing is refused."""
        if not longest_step(self._layout.channel):
            raise InputError("The lookup table of the cell key method leaves every count as it is.")

    @classmethod
    def from_words(cls, parameters: CellKeyWords) -> CellKey:
        """The method from the parameters of a policy file."""
        return cls(
            ptable=parameters.source(),
            lookup=Lookup(parameters.layout, parameters.bits),
            totals=Additive(parameters.max_shift, parameters.steps)
            if parameters.additive
            else parameters.totals,
            versions=Versions(parameters.version, parameters.key_version),
        )

    @property
    def abilities(self) -> Abilities:
        """With additive totals a cell depends on others; a guard only hides totals."""
        alone = not isinstance(self.totals, Additive)
        # Empty cells move only if they get keys.
        both = (True, False) if alone else ()
        channels = tuple(public_channel(self._layout, zeros) for zeros in both)
        return Abilities(
            repeatable=True,
            keyed_per_cell=alone,
            one_number=alone,
            # What makes a table add up may undo a change.
            changed=1.0 - self._layout.channel.stay(1, 2) if alone else 0.0,
            entropy=min(map(entropy_left, channels), default=0.0),
            channels=channels,
        )

    def with_zeros(self, secret: bytes, dataset: Dataset) -> CellKey:
        """The same method, with keys that perturb empty cells the same way in every table.

        The secret is never shown or written.
        """
        return replace(self, zero_keys=ZeroKeys(secret, dataset))

    def draw(self, table: Table, rng: Chance) -> Release:
        counts = whole_counts(table, "The cell key method")
        zeros = self._zeros_move and (rng is not None or self.zero_keys is not None)
        perturbed = self._perturbed(table, counts, zeros, rng)
        channel = public_channel(self._layout, zeros)
        if isinstance(self.totals, Additive):
            _, published = additive_release(
                table.axes,
                perturbed,
                channel,
                max_shift=self.totals.max_shift,
                structural=table.structural,
                steps=self.totals.steps,
            )
        elif self.totals == "guarded":
            published = safe_totals(
                table.axes, perturbed, support_of(channel), table.structural, keyed=rng is None
            )
        else:
            low, high = support_of(channel).support(perturbed)
            if table.structural is not None:
                low, high = (np.where(table.structural, 0, end) for end in (low, high))
            published = PublishedSums(perturbed, low, high)
        for array in (published.values, published.low, published.high):
            array.setflags(write=False)  # so that the release need not copy them
        return released_sums(
            table,
            self,
            published,
            channel=None if isinstance(self.totals, Additive) else channel,
            notes=self._notes(zeros, keyed=rng is None),
        )

    def perturbed(self, table: Table, rng: Seed = None) -> Ints:
        """Every cell as its own key perturbs it, before totals are handled."""
        rng = checked_input(table, rng)
        counts = whole_counts(table, "The cell key method")
        zeros = self._zeros_move and (rng is not None or self.zero_keys is not None)
        return self._perturbed(table, counts, zeros, rng)

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file, without any key or secret."""
        mapping: dict[str, Any] = {"method": self.name}
        source, lookup = source_words(self.ptable), self.lookup
        mapping["ptable"] = source.pop("ptable")
        mapping |= {} if lookup.layout is None else {"layout": lookup.layout}
        mapping |= {"bits": lookup.bits} if lookup.layout in ("abs", "ons") else {}
        mapping |= source
        if isinstance(self.totals, Additive):
            mapping |= {"totals": "guarded", "additive": True}
            mapping |= {"max_shift": self.totals.max_shift, "steps": self.totals.steps}
        else:
            mapping["totals"] = self.totals
        return mapping | {"version": self.versions.ptable, "key_version": self.versions.keys}

    @cached_property
    def _layout(self) -> LookupLayout:
        return layout_of(self._source(), self.lookup.layout, self.lookup.bits)

    def _source(self) -> PTable | MatrixChannel:
        given = self.ptable
        if isinstance(given, PerturbationDesign):
            return given.channel()
        if isinstance(given, (PTable, MatrixChannel)):
            return given
        if given in _PRESETS:
            return _PRESETS[given]
        if given.endswith(".csv"):
            return read_ptable(Path(given))
        raise InputError(
            f"There is no ptable {shortened(given)}; {choices(given, [*_PRESETS, *_OWN])}, or give a file "
            "ending in .csv."
        )

    @property
    def _zeros_move(self) -> bool:
        return moves_zeros(self._layout.channel)

    def _perturbed(
        self, table: Table, counts: Ints, zeros: bool, rng: np.random.Generator | None
    ) -> Ints:
        random_words = self._words(table, counts, zeros, rng)
        out = self._layout.perturb(counts, random_words)
        if not zeros:
            return np.where(counts == 0, 0, out) if self._zeros_move else out
        return out if table.structural is None else np.where(table.structural, 0, out)

    def _words(
        self, table: Table, counts: Ints, zeros: bool, rng: np.random.Generator | None
    ) -> Words:
        """The random word of each cell, the same for every ptable, so that a second ptable reveals little."""
        if rng is not None:
            return rng.integers(0, 2**64, size=table.shape, dtype=np.uint64)
        if table.keys is None:
            raise InputError("The table has no record keys; give a random generator ('rng').")
        random_words = table.keys if self._layout.summed else cell_words(table.keys, _PURPOSE)
        if not zeros or self.zero_keys is None:
            return random_words
        return np.where(counts == 0, self.zero_keys.random_words(table, _PURPOSE), random_words)

    def _notes(self, zeros: bool, keyed: bool) -> tuple[str, ...]:
        channel, given = self._layout.channel, Path(self.to_mapping()["ptable"]).name
        table = getattr(self._layout, "table", None)
        mark = f", {table.digest}" if isinstance(table, PTable) else ""
        version = f"{self.versions.ptable}{mark}"
        notes: list[str] = [
            say(
                "Every number is perturbed by the cell key method (ptable {ptable}, version {version}; "
                "record keys version {keys}): the same people always make the same number.",
                ptable=given,
                version=version,
                keys=self.versions.keys,
            )
            if keyed
            else say(
                "Every number is perturbed by the cell key method (ptable {ptable}, version {version}), "
                "without record keys: in another table the same people make another number.",
                ptable=given,
                version=version,
            )
        ]
        if not isinstance(self.totals, Additive):
            notes.append(
                say("No number is changed by more than {most}.", most=longest_step(channel))
            )
            if rows_right_on_average(channel):
                notes.append(say("The numbers are right on average."))
        notes.append(_zero_note(zeros, self._zeros_move))
        if isinstance(self.totals, Additive):
            notes.append(
                say(
                    "The perturbed numbers were changed once more, as little as possible and by at most "
                    "{most}, so that they add up; where that was not possible totals are sums. A cell "
                    "may therefore differ between tables.",
                    most=self.totals.max_shift,
                )
            )
        elif self.totals == "guarded" and keyed:
            notes.append(hidden_totals())
        elif self.totals == "guarded":
            notes.append(
                say(
                    "Totals are perturbed on their own, so the numbers may not add up to them; a total "
                    "that does add up may be the sum of the perturbed numbers."
                )
            )
        else:
            notes.append(
                say("Totals are perturbed on their own, so the numbers may not add up to them.")
            )
        return tuple(notes)


def _zero_note(zeros: bool, wanted: bool) -> str:
    if zeros:
        return say("Empty cells may be perturbed too, but for combinations that cannot exist.")
    if wanted:
        return say(
            "Empty cells stay 0: the ptable would change them, but there are no keys for them."
        )
    return say("Empty cells stay 0.")
