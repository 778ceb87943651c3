"""Tables of a session: counted and judged, then suppressed, rounded or made coarser."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations, product
from typing import Any

import numpy as np

from lustrum.checking.rules import OF_VALUES, OutputRules, statistic_of
from lustrum.model import InputError, Table
from lustrum.model.arrays import Floats, Ints, Mask
from lustrum.model.errors import choices
from lustrum.protect.rounding.cells import ConventionalRounding
from lustrum.protect.suppression import Suppression
from lustrum.publish.frames import table_of_records

# Whom an output is about: its people without their names, their categories, and which counts it shows.
#
# People are kept as keyed digests of what names their records, so that the same person is the same number in
# every output of one book of sessions, and nobody without its key can tell who it is.

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
    base: int = 0
    """Counts are multiples of it, unless it is 0."""

    @property
    def variables(self) -> Level:
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
        arrays: dict[str, Any] = {"people": self.people, "base": np.array(self.base)}
        for name in self.variables:
            arrays[f"codes/{name}"] = self.codes[name]
            arrays[f"labels/{name}"] = np.array(self.labels[name], dtype=np.str_)
        for at, (level, mask) in enumerate(self.shown.items()):
            arrays[f"level/{at}"] = np.array(level, dtype=np.str_)
            arrays[f"shown/{at}"] = mask
        return arrays

    @classmethod
    def from_arrays(cls, output: str, arrays: Mapping[str, Any]) -> OutputPopulation:
        names = [word.removeprefix("codes/") for word in arrays if word.startswith("codes/")]
        levels = sorted(int(w.removeprefix("level/")) for w in arrays if w.startswith("level/"))
        return cls(
            output,
            arrays["people"],
            {name: arrays[f"codes/{name}"] for name in names},
            {name: tuple(arrays[f"labels/{name}"].tolist()) for name in names},
            {tuple(arrays[f"level/{at}"].tolist()): arrays[f"shown/{at}"] for at in levels},
            int(arrays.get("base", 0)),
        )


_SCALE = 10**6  # contributions are judged as whole millionths of the largest
_OTHER = "other"


@dataclass(frozen=True, eq=False)
class TableOutput:
    """A table of records: ``columns`` are aligned, without missing values, and ``down`` of them span its rows.

    ``treated`` says what was done to it: nothing, ``"suppressed"``, or ``"rounded to 10"``.
    """

    columns: Mapping[str, Any]
    down: int
    people: Ints
    rules: OutputRules
    statistics: tuple[Any, ...] = ("count",)
    values: Any = None
    weights: Any = None
    margins: bool = False
    margins_name: str = "All"
    normalize: str = ""
    treated: str = ""
    base: int = 0
    apart: Mapping[str, str] = field(default_factory=dict)
    """Columns whose categories are intervals of a further variable."""

    # --- Categories and cells

    @cached_property
    def labels(self) -> dict[str, tuple[Any, ...]]:
        return {name: ordered_categories(column) for name, column in self.columns.items()}

    @cached_property
    def codes(self) -> dict[str, Ints]:
        out = {}
        for name, column in self.columns.items():
            at = {label: code for code, label in enumerate(self.labels[name])}
            out[name] = np.array([at[value] for value in column], dtype=np.int64)
        return out

    @property
    def shape(self) -> tuple[int, ...]:
        """How many categories each variable has, the total included."""
        return tuple(len(those) + self.margins for those in self.labels.values())

    def _levels(self) -> list[tuple[int, ...]]:
        axes = range(len(self.columns))
        if not self.margins:
            return [tuple(axes)]
        return [level for size in axes for level in combinations(axes, size)] + [tuple(axes)]

    def _where(self, level: Sequence[int]) -> tuple[Any, ...]:
        """The cells of a level within the whole table; totals stand last."""
        return tuple(
            slice(0, len(those)) if at in level else len(those)
            for at, those in enumerate(self.labels.values())
        )

    def computed(self, aggfunc: object, values: Any = None) -> Floats:
        """A statistic of every cell."""
        import pandas as pd

        name, of_groups = statistic_of(aggfunc)
        out: Floats = np.full(self.shape, np.nan)
        codes = list(self.codes.values())
        plain = np.ones(len(self.people)) if values is None else np.asarray(values, dtype=float)
        for level in self._levels():
            sizes = tuple(
                len(those) for at, those in enumerate(self.labels.values()) if at in level
            )
            flat = np.zeros(len(self.people), dtype=np.int64)
            if level:
                flat = np.ravel_multi_index(tuple(codes[at] for at in level), sizes)
            groups = of_groups(pd.Series(plain).groupby(flat))
            cells = (
                np.zeros(int(np.prod(sizes, dtype=int)))
                if name in ("count", "sum")
                else (np.full(int(np.prod(sizes, dtype=int)), np.nan))
            )
            cells[groups.index.to_numpy()] = groups.to_numpy(dtype=float)
            out[self._where(level)] = cells.reshape(sizes)
        return out

    @cached_property
    def counts(self) -> Ints:
        return self.computed("count").astype(np.int64)

    @cached_property
    def table(self) -> Table:
        """The table as rules and methods take it: contributions as shares of the largest."""
        frame: dict[str, Any] = {
            f"v{at}": [f"{code:06d}" for code in codes.tolist()]
            for at, codes in enumerate(self.codes.values())
        }
        measure = None
        if self.values is not None and any(
            statistic_of(s)[0] in OF_VALUES for s in self.statistics
        ):
            sizes: Floats = np.abs(np.asarray(self.values, dtype=float))
            largest = float(sizes.max(initial=0)) or 1.0
            measure, frame["value"] = "value", np.rint(sizes / largest * _SCALE).astype(np.int64)
        by = [name for name in frame if name != "value"]
        return table_of_records(
            frame, by, measure=measure, totals=self.margins, ranks=max(3, self.rules.n + 1)
        )

    @cached_property
    def failing(self) -> dict[str, Mask]:
        names = [statistic_of(s)[0] for s in self.statistics]
        return self.rules.judge(self.table, self.counts, names)

    @cached_property
    def sensitive(self) -> Mask:
        """Which cells fail any rule."""
        some: Mask = np.zeros(self.shape, dtype=np.bool_)
        for cells in self.failing.values():
            some = some | cells
        return some

    @cached_property
    def hidden(self) -> Mask:
        """Which cells the output leaves out."""
        if self.treated != "suppressed":
            return np.zeros(self.shape, dtype=np.bool_)
        # Who knows a margin subtracts what is shown, so the pattern is the one for counts of all cells.
        names = [statistic_of(s)[0] for s in self.statistics]
        of_values = [n for n in names if n in OF_VALUES]
        pattern = Suppression(
            rule=self.rules.rule_for(of_values[0] if of_values else "count")
        ).pattern(self.table)
        if not pattern.safe:
            raise InputError("No pattern hides these cells; make a variable coarser instead.")
        return pattern.suppressed.reshape(self.shape) | self.sensitive

    # --- What is shown

    def frame(self) -> Any:
        """The table as pandas lays it out."""
        import pandas as pd

        shown = [self._layout(self._statistic(one)) for one in self.statistics]
        if len(shown) == 1:
            return shown[0]
        return pd.concat(shown, axis=1, keys=[statistic_of(one)[0] for one in self.statistics])

    def _statistic(self, aggfunc: object) -> Any:
        name, _ = statistic_of(aggfunc)
        if name == "count":
            numbers: Any = self.counts.astype(float)
            if self.weights is not None:
                numbers = self.computed("sum", self.weights)
            if self.base:
                numbers = np.asarray(
                    ConventionalRounding(base=self.base)
                    .apply(Table.from_counts(self.counts))
                    .numbers
                ).astype(float)
            # A share of a whole with a hidden part would give that part away, so that it is hidden too.
            numbers = self._shares(np.where(self.hidden, np.nan, numbers))
        else:
            numbers = self.computed(aggfunc, self.values)
        out = np.where(self.hidden, np.nan, numbers)
        whole = (
            name == "count"
            and not self.normalize
            and self.weights is None
            and not self.hidden.any()
        )
        return out.astype(np.int64) if whole else out

    def _shares(self, counts: Floats) -> Floats:
        if not self.normalize:
            return counts
        rows, columns = tuple(range(self.down)), tuple(range(self.down, len(self.columns)))
        over = {"all": (*rows, *columns), "index": columns, "columns": rows}[self.normalize]
        inner = counts[tuple(slice(0, len(those)) for those in self.labels.values())]
        with np.errstate(invalid="ignore", divide="ignore"):
            if not self.margins:
                return np.asarray(counts / inner.sum(axis=over, keepdims=True))
            whole = counts[
                tuple(slice(-1, None) if at in over else slice(None) for at in range(counts.ndim))
            ]
            return counts / whole

    def outcome(self) -> Any:
        """Of each cell which rules it fails, and what became of it."""
        texts = np.full(self.shape, "", dtype=object)
        for name, cells in self.failing.items():
            texts[cells] += f"{name}; "
        left = texts == ""
        texts[left] = np.where(self.hidden[left], "protects others", "ok")
        return self._layout(texts)

    def _layout(self, cells: Any) -> Any:
        import pandas as pd

        names = list(self.columns)
        named = [
            [*those, self.margins_name] if self.margins else list(those)
            for those in self.labels.values()
        ]

        def index(part: slice) -> Any:
            if not names[part]:
                return pd.Index(["value"])
            if len(names[part]) == 1:
                return pd.Index(named[part][0], name=names[part][0])
            return pd.MultiIndex.from_tuples(list(product(*named[part])), names=names[part])

        rows, columns = index(slice(0, self.down)), index(slice(self.down, None))
        return pd.DataFrame(cells.reshape(len(rows), len(columns)), index=rows, columns=columns)

    def population(self, output: str) -> OutputPopulation:
        """Whom the table is about, and which counts can be read from it."""
        shown: dict[Level, Mask] = {}
        for level in self._levels():
            names = tuple(name for at, name in enumerate(self.columns) if at in level)
            shown[names] = ~self.hidden[self._where(level)]
        labels = {name: tuple(map(str, those)) for name, those in self.labels.items()}
        return OutputPopulation(output, self.people, self.codes, labels, shown, self.base)

    # --- What can be done

    def suppressed(self) -> TableOutput:
        """Without the cells that fail, and without those that would give them away."""
        return replace(self, treated="suppressed", base=0)

    def rounded(self, base: int | None = None) -> TableOutput:
        """With counts rounded to multiples of ``base``, the threshold by default."""
        if [statistic_of(s)[0] for s in self.statistics] != ["count"] or self.weights is not None:
            raise InputError(
                "Counts are rounded; suppress a table of other statistics, or make it coarser."
            )
        base = self.rules.threshold if base is None else base
        ConventionalRounding(base=base)
        return replace(self, treated=f"rounded to {base}", base=base)

    def coarsened(
        self, variable: str | None = None, groups: Mapping[str, Sequence[Any]] | None = None
    ) -> TableOutput:
        """With categories of a variable put together: as ``groups`` say, or the rarest until no cell fails."""
        name = variable or max(self.labels, key=lambda one: len(self.labels[one]))
        if name not in self.columns:
            raise InputError(
                f"The table has no variable {name!r}; {choices(name, list(self.columns))}."
            )
        if groups is not None:
            into = {label: group for group, those in groups.items() for label in those}
            unknown = [label for label in into if label not in self.labels[name]]
            if unknown:
                raise InputError(f"{name!r} has no category {unknown[0]!r}.")
            return self._grouped(name, into)
        rarest = np.argsort(np.bincount(self.codes[name]), kind="stable").tolist()
        for size in range(2, len(rarest)):
            made = self._grouped(name, {self.labels[name][code]: _OTHER for code in rarest[:size]})
            if not made.sensitive.any():
                return made
        raise InputError(
            f"No grouping of rare categories of {name!r} makes every cell safe; state 'groups', suppress, or "
            "leave a variable out."
        )

    def _grouped(self, name: str, into: Mapping[Any, str]) -> TableOutput:
        import pandas as pd

        order = list(dict.fromkeys(into.get(label, label) for label in self.labels[name]))
        column = [into.get(value, value) for value in self.columns[name]]
        new = pd.Categorical(column, categories=order, ordered=True)
        return replace(self, columns={**self.columns, name: new}, treated="", base=0)


def ordered_categories(column: Any) -> tuple[Any, ...]:
    """The categories that occur: in the order of a categorical column, by number, or by text.

    >>> ordered_categories(["10", "9", "9"]), ordered_categories(["b", "a"])
    (('9', '10'), ('a', 'b'))
    """
    kept = getattr(getattr(column, "dtype", None), "categories", None)
    present = set(column)
    if kept is not None:
        return tuple(label for label in kept if label in present)
    try:
        return tuple(sorted(present, key=lambda v: (float(v), str(v))))
    except (TypeError, ValueError):
        return tuple(sorted(present, key=str))
