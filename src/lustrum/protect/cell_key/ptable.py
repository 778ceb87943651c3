"""Lookup tables in the agencies' format: a row for each count, a column for each cell key.

A file has the columns ``pcv`` (the count that a row is for), ``ckey`` (the cell key) and ``pvalue`` (what
is added), as the Office for National Statistics publishes them. Its tables have rows up to 750 and keys
from 0 to 255; the rows 501 to 750 are reused for the counts 751 to 1000, 1001 to 1250 and so on. Fraser and
Wooton (2005) describe the first table of this kind, looked up by some bits of the cell key.
"""

from __future__ import annotations

import csv
import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError
from lustrum.model.arrays import Ints, Words
from lustrum.model.channel import MatrixChannel
from lustrum.protect.cell_key.channel import LookupChannel

_COLUMNS = ("pcv", "ckey", "pvalue")
_ONS_ROWS, _ONS_CYCLE = 750, 250
_MOST_CELLS = 1 << 24
_ROUNDED = 1e-5  # by so much may the chances of a count in a file add up to something else than 1


@dataclass(frozen=True, eq=False)
class PTable:
    """Steps by count and cell key: row ``v`` of ``steps`` is for the count ``v``, from 0 up.

    The last ``cycle`` rows are reused for larger counts. The number of keys must be a power of two, so
    that keys summed modulo 2**64 can be reduced to them.

    >>> table = PTable("coin", [[0, 0], [-1, 1]], cycle=1)
    >>> table, table.unbiased, table.moves_zeros
    (PTable('coin', counts 0 to 1, 2 keys), True, False)
    """

    name: str
    steps: Ints
    cycle: int

    def __init__(self, name: str, steps: npt.ArrayLike, cycle: int) -> None:
        array = np.array(steps)
        if array.ndim != 2 or not array.size or array.dtype.kind not in "iu":
            raise InputError(
                f"The ptable {name!r} must hold whole steps: one row per count, one column per key."
            )
        if array.shape[1] & (array.shape[1] - 1):
            raise InputError(
                f"The ptable {name!r} has {array.shape[1]} keys; their number must be a power of two."
            )
        if len(array) < 2 or type(cycle) is not int or not 1 <= cycle < len(array):
            raise InputError(
                f"The ptable {name!r} has {len(array)} rows; one or more of those above that of 0 can be "
                f"used again for larger counts, not {cycle!r}."
            )
        array = array.astype(np.int64)
        below = np.flatnonzero((array + np.arange(len(array))[:, None] < 0).any(axis=1))
        if below.size:
            raise InputError(
                f"The ptable {name!r} makes the count {int(below[0])} negative; a published count is 0 "
                "or more."
            )
        array.setflags(write=False)
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "steps", array)
        object.__setattr__(self, "cycle", cycle)

    def __repr__(self) -> str:
        return f"PTable({self.name!r}, counts 0 to {len(self.steps) - 1}, {self.keys} keys)"

    @property
    def keys(self) -> int:
        return int(self.steps.shape[1])

    @property
    def bias(self) -> npt.NDArray[np.float64]:
        return np.asarray(self.steps.mean(axis=1))

    @property
    def unbiased(self) -> bool:
        return not self.steps.sum(axis=1).any()

    @property
    def moves_zeros(self) -> bool:
        return bool(self.steps[0].any())

    @property
    def digest(self) -> str:
        """The identity of this table: the beginning of a hash of its steps."""
        head = f"{self.steps.shape} {self.cycle} ".encode()
        return hashlib.sha256(head + self.steps.astype("<i8").tobytes()).hexdigest()[:16]

    @property
    def text(self) -> str:
        """The table as the Office for National Statistics publishes its own: a line for each count and key.

        >>> PTable("coin", [[0, 0], [-1, 1]], cycle=1).text.splitlines()[:2]
        ['pcv,ckey,pvalue', '0,0,0']
        """
        lines = (
            f"{count},{key},{step}\n"
            for count, row in enumerate(self.steps.tolist())
            for key, step in enumerate(row)
        )
        return "pcv,ckey,pvalue\n" + "".join(lines)

    @cached_property
    def channel(self) -> LookupChannel:
        """The public channel of the table: all keys are equally likely."""
        rows = []
        for row in self.steps:
            step, times = np.unique(row, return_counts=True)
            rows.append({int(s): int(t) / self.keys for s, t in zip(step, times, strict=True)})
        return LookupChannel.of_rows(rows, self.cycle)

    def perturb(self, values: Ints, columns: Ints) -> Ints:
        """Add to each count the step that its row and its column hold."""
        return np.asarray(values + self.steps[self.channel.rows_of(values), columns])

    @classmethod
    def of_matrix(cls, name: str, channel: MatrixChannel, bits: int) -> PTable:
        """A matrix as a table of ``2**bits`` keys, in which every step has a whole number of keys.

        The numbers of keys are the probabilities rounded by largest remainders. Where the matrix is
        unbiased, keys are then moved until the table is so too.
        """
        if type(bits) is not int or not 1 <= bits <= 16:
            raise InputError(f"A lookup table has 1 to 16 bits of the key, not {bits!r}.")
        rows = []
        for value, chances in enumerate(channel.matrix):
            places = np.flatnonzero(chances)
            exact = {int(p) - value: Fraction(float(chances[p])) for p in places}
            keys = _whole_keys(exact, 1 << bits)
            rows.append(np.repeat(np.array(list(keys)), list(keys.values())))
        if channel.residue_base is None:
            raise InputError(
                f"The matrix {name!r} says nothing of counts above {channel.cap}; a lookup table needs a "
                "residue base."
            )
        return cls(name, np.stack(rows), channel.residue_base)

    @classmethod
    def of_columns(
        cls, name: str, columns: Mapping[str, npt.ArrayLike], cycle: int | None = None
    ) -> PTable:
        """From columns ``pcv``, ``ckey`` and ``pvalue``, in any order of rows.

        Without a row for 0 zeros stay. Without ``cycle``, a table up to 750 is reused from row 501, as the
        Office for National Statistics does; for any other table, the last row is used for all larger
        counts.
        """
        for column in _COLUMNS:
            if column not in columns:
                raise InputError(f"The ptable {name!r} has no column {column!r}; it needs one.")
        pcv, ckey, pvalue = (_whole_column(name, c, columns[c]) for c in _COLUMNS)
        if not pcv.size or pcv.size != ckey.size or pcv.size != pvalue.size:
            raise InputError(
                f"The ptable {name!r} must have the same number of entries, one or more, in every column."
            )
        last, keys = int(pcv.max()), int(ckey.max()) + 1
        if int(pcv.min()) not in (0, 1) or int(ckey.min()) != 0:
            raise InputError(
                f"The ptable {name!r} must begin at the count 0 or 1 and at the key 0; it does not."
            )
        if last < 1 or (last + 1) * keys > _MOST_CELLS:
            raise InputError(
                f"The ptable {name!r} has counts up to {last} and {keys} keys; it needs a count above 0, "
                f"and at most {_MOST_CELLS} places."
            )
        seen = np.bincount(pcv * keys + ckey, minlength=(last + 1) * keys).reshape(-1, keys)
        if int(pcv.min()) == 1:
            seen[0] = 1
        wrong = np.argwhere(seen != 1)
        if wrong.size:
            value, key = (int(i) for i in wrong[0])
            times = "no entry" if seen[value, key] == 0 else "several entries"
            raise InputError(
                f"The ptable {name!r} has {times} for the count {value} and the key {key}; it needs one."
            )
        steps = np.zeros((last + 1, keys), dtype=np.int64)
        steps[pcv, ckey] = pvalue
        if cycle is None:
            cycle = _ONS_CYCLE if last == _ONS_ROWS else 1
        return cls(name, steps, cycle)


def key_words(keys: Iterable[str]) -> Words:
    """Record keys between 0 and 1, as R's cellKey has them, as whole words: sums are those modulo 1.

    >>> int(key_words(["0.75", "0.5"]).sum()) == 2**62
    True
    """
    exact = [Fraction(key) for key in keys]
    if any(not 0 <= key < 1 for key in exact):
        raise InputError("A record key lies between 0 and 1, 1 not among them.")
    return np.array([int(key * 2**64) for key in exact], dtype=np.uint64)


def read_transitions(path: Path | str) -> MatrixChannel:
    """Read a perturbation table as R's ptable and tau-ARGUS write it: ``i``, ``j``, ``p``, ``v`` and the ends
    of the interval of cell keys (``p_int_ub``, and ``p_int_lb`` if there is one), with commas or semicolons.

    Counts above the last row move as it does. Chances are those of ``p``, of which rounding may have taken a
    few millionths; where ends of intervals are stated they must agree.
    """
    path = Path(path)
    try:
        text = path.read_text("utf-8-sig")
    except OSError as error:
        raise InputError(f"The ptable {path} cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"The ptable {path} is not a CSV file of plain text.") from None
    reader = csv.DictReader(
        text.splitlines(), delimiter=";" if ";" in text.partition("\n")[0] else ","
    )
    chances: dict[int, dict[int, float]] = {}
    ends: dict[int, float] = {}
    for row in reader:
        where = f"The ptable {path}, line {reader.line_num}"
        kind = row.get("type") or "all"
        if kind != "all":
            raise InputError(
                f"{where}: it is of type {kind!r}; a table of counts has the type 'all'."
            )
        try:
            count, becomes, chance = int(row["i"]), int(row["j"]), float(row["p"])
            step, end = int(row["v"]), float(row.get("p_int_ub") or row.get("p_ij_ub") or "nan")
        except (KeyError, TypeError, ValueError):
            raise InputError(
                f"{where}: it needs the columns i, j, p and v, with whole numbers in i, j and v."
            ) from None
        if count < 0 or becomes - count != step or not 0 <= chance <= 1:
            raise InputError(f"{where}: j must be i + v, and p lies between 0 and 1.")
        if becomes in chances.setdefault(count, {}):
            raise InputError(f"{where}: the count {count} becomes {becomes} twice.")
        chances[count][becomes] = chance
        ends[count] = ends.get(count, 0.0) + chance
        if end == end and abs(end - ends[count]) > _ROUNDED:
            raise InputError(
                f"{where}: the interval ends at {end:g}, but the chances add up to {ends[count]:g}."
            )
    if not chances or sorted(chances) != list(range(len(chances))):
        raise InputError(f"The ptable {path} needs a row for every count from 0 up.")
    widest = max(map(max, chances.values()))
    matrix = np.zeros((len(chances), max(widest, len(chances) - 1) + 1))
    for count, moves in chances.items():
        if abs(ends[count] - 1) > _ROUNDED:
            raise InputError(
                f"The ptable {path}: the chances of the count {count} add up to {ends[count]:g}."
            )
        for becomes, share in moves.items():
            matrix[count, becomes] = share / ends[count]
    return MatrixChannel(matrix, residue_base=1)


def transitions_text(channel: MatrixChannel, *, argus: bool = False) -> str:
    """A matrix as R's ptable writes it, with semicolons; ``argus`` for the columns that tau-ARGUS reads."""
    lines = ['"i";"j";"p";"v";"p_int_ub"' if argus else "i;j;p;v;p_int_lb;p_int_ub;type"]
    for count, row in enumerate(channel.matrix):
        low = 0.0
        for becomes in np.flatnonzero(row).tolist():
            high = min(low + float(row[becomes]), 1.0)
            words = [count, becomes, float(row[becomes]), becomes - count, low, high]
            lines.append(
                ";".join(map(repr, words[:4] + words[5:]))
                if argus
                else ";".join(map(repr, words)) + ";all"
            )
            low = high
    return "\n".join(lines) + "\n"


def read_ptable(path: Path | str, cycle: int | None = None) -> PTable:
    """Read and check a lookup table from a CSV file with the columns ``pcv``, ``ckey`` and ``pvalue``.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = Path(folder, "coin.csv").write_text(PTable("coin", [[0, 0], [-1, 1]], cycle=1).text)
    ...     read_ptable(Path(folder, "coin.csv"))
    PTable('coin.csv', counts 0 to 1, 2 keys)
    """
    path = Path(path)
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            column_names = [name for name in _COLUMNS if name in (reader.fieldnames or ())]
            rows = [[row[name] for name in column_names] for row in reader]
    except OSError as error:
        raise InputError(f"The ptable {path} cannot be read: {error.strerror}.") from None
    except (UnicodeDecodeError, csv.Error):
        raise InputError(f"The ptable {path} is not a CSV file of plain text.") from None
    columns = {name: [row[i] for row in rows] for i, name in enumerate(column_names)}
    return PTable.of_columns(path.name, columns, cycle)


def _whole_column(name: str, column: str, given: npt.ArrayLike) -> Ints:
    try:
        array = np.asarray(given)
        if array.dtype.kind == "f" and not (np.isfinite(array) & (array == np.floor(array))).all():
            raise ValueError
        if array.dtype.kind not in "iufUO":
            raise ValueError
        return array.ravel().astype(np.int64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(
            f"The ptable {name!r}, column {column!r}: every entry must be a whole number."
        ) from None


def _whole_keys(chances: Mapping[int, Fraction], keys: int) -> dict[int, int]:
    """The number of keys of each step: nearest to its share, and unbiased if the matrix is."""
    whole = sum(chances.values())
    shares = {step: chance * keys / whole for step, chance in sorted(chances.items())}
    given = Counter({step: int(share) for step, share in shares.items()})
    left = keys - sum(given.values())
    for step in sorted(shares, key=lambda s: (given[s] - shares[s], abs(s), s))[:left]:
        given[step] += 1
    if abs(float(sum(s * share for s, share in shares.items()))) < 1e-6 * keys:
        _balance(given, shares)
    return {step: given[step] for step in shares}


def _balance(given: Counter[int], shares: Mapping[int, Fraction]) -> None:
    """Move single keys from step to step until the steps add up to 0, by the smallest possible moves."""
    while lean := sum(s * n for s, n in given.items()):
        moves = [
            (abs(lean + b - a), abs(given[a] - 1 - shares[a]) + abs(given[b] + 1 - shares[b]), a, b)
            for a in shares
            for b in shares
            if given[a] > 0 and a != b and abs(lean + b - a) < abs(lean)
        ]
        if not moves:
            return
        _, _, a, b = min(moves)
        given[a] -= 1
        given[b] += 1
