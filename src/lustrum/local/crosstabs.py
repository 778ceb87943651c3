"""Cross tabulations as pandas spells them, protected before anybody sees a number."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from lustrum.answer.pipeline import answer
from lustrum.formats.frames import two_way
from lustrum.local.secrets import apply_with_secret, needs_secret, secret_of
from lustrum.model import (
    Axis,
    CellStatus,
    Dataset,
    Decision,
    InputError,
    Release,
    Table,
    TableQuery,
)
from lustrum.model.errors import choices, kind_of
from lustrum.model.labelled_counts import is_labelled
from lustrum.model.table import Framed, known_words
from lustrum.model.variable import TOTAL_CODE
from lustrum.policy import Policy, check_names, read_policy
from lustrum.policy.presets import PRESETS, preset
from lustrum.policy.read import parse_policy
from lustrum.protect.suppression import Suppression
from lustrum.publish.frames import named_columns
from lustrum.publish.records.protected_input import ProtectedInput
from lustrum.publish.records.views import EngineNumbers
from lustrum.publish.waivers import refuse_requests
from lustrum.sensitivity.rule import judges_contributions, ranks_of
from lustrum.tabulate.frame import FrameEngine, as_arrow, describe_frame, named_axis
from lustrum.tabulate.keys import Secret

if TYPE_CHECKING:
    import pyarrow as pa

_RECORD = "lustrum record"
_COUNTS = ("count", "size", "len")
_MEAN_DECIMALS = 2  # more than the sums have


@known_words
def crosstab(
    index: object,
    columns: object = None,
    values: object = None,
    *,
    aggfunc: object = None,
    rownames: Sequence[str] | None = None,
    colnames: Sequence[str] | None = None,
    margins: bool = False,
    margins_name: str = "All",
    normalize: bool | str = False,
    weights: object = None,
    policy: object = None,
    secret: Secret | Path | str | None = None,
    holding: object = None,
    dataset: Dataset | None = None,
) -> ProtectedTable:
    """A protected cross tabulation of columns, as ``pandas.crosstab`` spells it.

    ``index`` and ``columns`` are columns or lists of them. Records are counted, or ``values`` are added up with
    ``aggfunc="sum"``, or averaged with ``"mean"``: hidden where their sums are. ``weights`` weight counts and
    sums; ``normalize`` shows shares of all, of rows ("index") or of "columns", worked out from what is shown.
    ``policy`` says how the table is protected: a method such as ``Suppression()``, the name of a preset, or the
    path of a policy file, whose rules then decide whether there is a table at all.
    Random methods need the agency's ``secret``, or the path of its file, by which the same table gets the same
    noise each time; without one they refuse. Records are known by their pandas index, so that a selection of
    records keeps their keys. A description (``dataset``) gives columns labels, all categories, and levels:
    ``"age:ten-year"`` in ``rownames`` or ``colnames`` shows ten-year groups of ``age``.

    >>> from lustrum.protect import Suppression
    >>> made = crosstab(list("nnnnnnss") * 4, list("aaabbbab") * 4, policy=Suppression())
    >>> made.frame.to_numpy().tolist()
    [[12, 12], [4, 4]]
    """
    found, down = named_columns(index, columns, rownames, colnames)
    columns_of = dict(zip(_variables(list(found), dataset), found.values(), strict=True))
    given: dict[str, object] = dict(columns_of)
    value_name = _extra(given, values, "values")
    holding_name = _extra(given, holding, "holding")
    weight_name = _extra(given, weights, "weights")
    return _protected(
        _frame_of(given),
        list(found),
        down,
        value_name,
        _checked_aggfunc(aggfunc, value_name),
        margins=margins,
        margins_name=margins_name,
        normalize=_normalized(normalize),
        weight=weight_name,
        policy=policy,
        secret=secret_of(secret),
        holding=holding_name,
        record_id=_RECORD,
        dataset=dataset,
    )


@known_words
def pivot_table(
    data: object,
    values: str | None = None,
    index: str | Sequence[str] = (),
    columns: str | Sequence[str] = (),
    aggfunc: object = None,
    *,
    margins: bool = False,
    margins_name: str = "All",
    policy: object = None,
    secret: Secret | Path | str | None = None,
    holding: str | None = None,
    record_id: str | None = None,
    dataset: Dataset | None = None,
) -> ProtectedTable:
    """A protected pivot table of a frame, as ``pandas.pivot_table`` spells it; see :func:`crosstab`.

    ``index`` and ``columns`` name columns of the frame, or levels such as ``"age:ten-year"`` that the
    description ``dataset`` knows. Records are counted, or ``values`` are added up, which
    is the default where a column of values is named. Records are known by the column ``record_id``, by the
    index of a pandas frame, or by their place.

    >>> from lustrum.protect import Suppression
    >>> records = {"area": list("nnnnnnss") * 4, "job": list("aaabbbab") * 4}
    >>> pivot_table(records, index="area", columns="job", policy=Suppression()).frame.to_numpy().tolist()
    [[12, 12], [4, 4]]
    """
    down = [index] if isinstance(index, str) else list(index)
    across = [columns] if isinstance(columns, str) else list(columns)
    for name in (*down, *across):
        if not isinstance(name, str):
            raise InputError("'index' and 'columns' name columns of the frame, such as ['area'].")
    used = [
        *_variables([*down, *across], dataset),
        *(n for n in (values, holding, record_id) if n is not None),
    ]
    table = as_arrow(data, list(dict.fromkeys(used)))
    if record_id is None:
        table = _with_records(table, data)
    return _protected(
        table,
        [*down, *across],
        len(down),
        values,
        _checked_aggfunc(aggfunc, values),
        margins=margins,
        margins_name=margins_name,
        policy=policy,
        secret=secret_of(secret),
        holding=holding,
        record_id=record_id or _RECORD,
        dataset=dataset,
    )


def _protected(
    table: pa.Table,
    by: Sequence[str],
    rows: int,
    measure: str | None,
    aggfunc: Literal["count", "sum", "mean"],
    *,
    margins: bool,
    margins_name: str,
    normalize: str = "",
    weight: str | None = None,
    policy: object,
    secret: Secret | None,
    holding: str | None,
    record_id: str,
    dataset: Dataset | None,
) -> ProtectedTable:
    if type(margins) is not bool:
        raise InputError(f"'margins' is True or False, not {margins!r}.")
    if not isinstance(margins_name, str):
        raise InputError(f"'margins_name' is a text such as 'All', not {kind_of(margins_name)}.")
    if not by:
        raise InputError("Name at least one column for the rows ('index').")
    measure = None if aggfunc == "count" else measure
    described = describe_frame(
        table,
        _variables(by, dataset),
        measure=measure,
        weight=weight,
        holding=holding,
        record_id=record_id,
        described=dataset,
    )
    axes = tuple(named_axis(name, dataset, total=margins) for name in by)
    described = replace(
        described, measures=tuple(replace(m, unit=m.unit or m.name) for m in described.measures)
    )
    decided = _decided(policy, described)
    if (aggfunc == "mean" or weight is not None) and not isinstance(decided, Suppression):
        raise InputError(
            "Means and weighted tables are protected by suppression here; give policy=Suppression(...), or "
            "work means out from protected counts and sums."
        )
    if isinstance(decided, Policy):
        if decided.dataset != "*":
            described = replace(described, name=decided.dataset)
        check_names(decided, described, "The policy")
        decision = _answered(table, described, axes, measure, decided, secret)
        release = decision.release
        if release is None:
            return ProtectedTable(None, rows, None, decision)
        named = _called(release, margins_name)
        why = _plain_reasons(named)
        return ProtectedTable(named, rows, why, replace(decision, release=named), normalize)
    query = TableQuery(described.name, axes, measure=measure, weight=weight)
    ranks = 0 if measure is None else 3
    if isinstance(decided, Suppression):
        refuse_requests(decided.rule)
        if measure is None and judges_contributions(decided.rule):
            raise InputError(
                "The rule judges contributions, which counts have none of; give 'values' with aggfunc='sum', "
                "or use Threshold(3) for counts."
            )
        ranks = 0 if measure is None else ranks_of(decided.rule)
    engine = FrameEngine(table, described, secret)
    counted = engine.tabulate(query, ranks=ranks)
    protected = _called(apply_with_secret(decided, counted, described, secret), margins_name)
    if isinstance(decided, Suppression):
        why = _reasons_of(decided, counted, protected)
        if aggfunc == "mean":
            people = engine.tabulate(replace(query, measure=None))
            protected = _mean_of(protected, people.values / 10.0**people.decimals)
        return ProtectedTable(protected, rows, why, normalize=normalize)
    return ProtectedTable(protected, rows, _plain_reasons(protected), normalize=normalize)


def _mean_of(sums: Release, people: npt.NDArray[np.float64]) -> Release:
    """Means where sums are shown: who knows how many people are in each cell learns no more than from sums."""
    shown = sums.known & (people > 0)
    means = np.zeros(sums.shape, dtype=np.int64)
    means[shown] = np.rint(sums.numbers[shown] / people[shown] * 10.0**_MEAN_DECIMALS)
    return replace(
        sums,
        numbers=np.where(shown, means, sums.numbers),
        undefined=sums.known & (people == 0),
        least=None,
        most=None,
        decimals=sums.decimals + _MEAN_DECIMALS,
        label=f"mean {sums.label or sums.unit}".strip(),
        additive=False,
    )


def _variables(names: Sequence[str], dataset: Dataset | None) -> list[str]:
    return [named_axis(name, dataset).variable for name in names]


def _normalized(normalize: object) -> str:
    if normalize is True:
        return "all"
    if normalize is False or normalize in ("all", "index", "columns"):
        return str(normalize or "")
    raise InputError(f"'normalize' is True, 'all', 'index' or 'columns', not {normalize!r}.")


def _answered(
    table: pa.Table,
    described: Dataset,
    axes: tuple[Axis, ...],
    measure: str | None,
    policy: Policy,
    secret: Secret | None,
) -> Decision:
    """The answer under a policy, with all its rules, from records in memory."""
    if policy.before:
        raise InputError(
            "The policy protects the input once for all tables, which one cross tabulation cannot; ingest the "
            "records and ask lustrum.local.local_service, or choose a policy for single tables, such as "
            "'keyed-rounding' or 'cell-key'."
        )
    if secret is None:
        raise InputError(needs_secret("The policy"))
    engine = FrameEngine(table, described, secret)
    numbers = EngineNumbers(engine, policy, ProtectedInput(engine, secret=secret))
    query = TableQuery(described.name, axes, measure=measure)
    return answer(query, numbers, policy)


def _decided(policy: object, described: Dataset) -> Any:
    """The method or the policy that was named in one of several ways."""
    if policy is None:
        raise InputError(
            "Say how the table is protected with 'policy': a method such as lustrum.protect.Suppression(), a "
            f"policy file, or a preset ({', '.join(PRESETS)})."
        )
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, str) and policy in PRESETS:
        text = preset(policy, described)
        return parse_policy(text.encode(), f"The preset {policy!r}")
    if isinstance(policy, Path) or (isinstance(policy, str) and policy.endswith(".toml")):
        return read_policy(Path(policy))
    if isinstance(policy, str):
        raise InputError(
            f"There is no preset {policy!r}; {choices(policy, PRESETS)}. The name of a policy file ends with "
            "'.toml'."
        )
    if isinstance(policy, type) or not hasattr(policy, "stages"):
        raise InputError(
            f"'policy' is a method such as Suppression(), a policy file or a preset, not {kind_of(policy)}."
        )
    return policy


def _checked_aggfunc(aggfunc: object, values: str | None) -> Literal["count", "sum", "mean"]:
    name = getattr(aggfunc, "__name__", aggfunc)
    if name is None:
        return "count" if values is None else "sum"
    if name in _COUNTS:
        return "count"
    if name in ("sum", "mean"):
        if values is None:
            raise InputError(f"aggfunc={name!r} is about values; name them with 'values'.")
        return "sum" if name == "sum" else "mean"
    raise InputError(
        f"'aggfunc' is 'count', 'sum' or 'mean', not {name!r}: work other figures out from protected counts "
        "and sums."
    )


def _extra(given: dict[str, object], column: object, usual: str) -> str | None:
    """Add a further column under a name of its own."""
    if column is None:
        return None
    column_name = getattr(column, "name", None)
    name = usual if column_name is None else str(column_name)
    while name in given:
        name += "_"
    given[name] = column
    return name


def _frame_of(columns: Mapping[str, Any]) -> pa.Table:
    """The columns side by side, with the records' identities."""
    if len({len(column) for column in columns.values()}) > 1:
        raise InputError("The columns of a cross tabulation must be equally long.")
    indexed = [c for c in columns.values() if is_labelled(c)]
    if any(not one.index.equals(indexed[0].index) for one in indexed[1:]):
        raise InputError(
            "The columns have different indices; take them from one frame, or align them first."
        )
    if not indexed:
        return _with_records(as_arrow({n: _plain(c) for n, c in columns.items()}), None)
    import pandas as pd

    plain = {n: c if is_labelled(c) else np.asarray(c) for n, c in columns.items()}
    frame = pd.DataFrame(plain, index=indexed[0].index)
    return _with_records(as_arrow(frame, list(columns)), frame)


def _plain(column: Any) -> Any:
    """A column that Arrow takes: polars gives its own, all others are sequences."""
    return column.to_arrow() if hasattr(column, "to_arrow") else column


def _with_records(table: pa.Table, frame: object) -> pa.Table:
    """The table with a column of identities: the index of a pandas frame, otherwise places from 0 on."""
    import pyarrow as pa

    index: Any = frame.index if is_labelled(frame) else None  # type: ignore[attr-defined]
    if index is not None and not index.is_unique:
        index = None
    usual = index is None or (index.dtype.kind in "iu" and bool((index >= 0).all()))
    if index is None:
        identity = pa.array(np.arange(table.num_rows, dtype=np.int64))
    elif usual:
        identity = pa.array(np.asarray(index, dtype=np.int64))
    else:
        identity = pa.array([str(label) for label in index], pa.string())
    return table.append_column(_RECORD, identity)


def _called(release: Release, margins_name: str) -> Release:
    """The release with the totals under the name that was asked for."""
    axes = tuple(
        replace(
            axis,
            categories=tuple(
                replace(c, label=margins_name) if c.code == TOTAL_CODE else c
                for c in axis.categories
            ),
        )
        for axis in release.axes
    )
    return replace(release, axes=axes)


def _plain_reasons(release: Release) -> npt.NDArray[Any]:
    """Of each cell what its status says, or by what its number is protected."""
    method = str(release.method.get("method", ""))
    shown = f"protected by {method}"
    meanings = {status.value: str(status.meaning) for status in CellStatus}
    letters = release.status.ravel().tolist()
    texts = [shown if letter == "F" else meanings[letter] for letter in letters]
    return np.array(texts, dtype=object).reshape(release.shape)


def _reasons_of(spec: Suppression, table: Table, release: Release) -> npt.NDArray[Any]:
    """Of each suppressed cell whether it is sensitive, and by which rule, or protects another."""
    judgement = spec.judge(table)
    meanings = {status.value: str(status.meaning) for status in CellStatus}
    letters = np.where(judgement.mask, judgement.status, CellStatus.SECONDARY.value)
    letters = np.where(release.shown, CellStatus.FREE.value, letters)
    texts = [meanings[letter] for letter in letters.ravel().tolist()]
    return np.array(texts, dtype=object).reshape(release.shape)


if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True, eq=False)
class ProtectedTable(Framed):
    """The agency's own result of a cross tabulation; it holds no true count.

    ``frame`` is public: the table as pandas lays it out, hidden cells missing. ``reasons`` is the agency's own,
    a frame of the same layout that says of every cell why it is as it is; whoever reads it knows which cells
    are sensitive. A table that a policy refused has a ``decision`` with reasons and no ``release``.
    """

    release: Release | None
    rows: int
    """How many of the variables stand along the rows."""
    why: Any
    decision: Decision | None = None
    normalize: str = ""
    """Of what the frame shows shares: of ``all``, of rows (``index``) or of ``columns``."""

    def __repr__(self) -> str:
        return (
            "ProtectedTable(refused)"
            if self.release is None
            else f"ProtectedTable({self.release!r})"
        )

    @property
    def refused(self) -> bool:
        return self.release is None

    @property
    def frame(self) -> pandas.DataFrame:
        """The public table as pandas lays it out; an error says why where the table was refused."""
        release = self._cells()
        numbers = two_way(release, self.rows)
        return self._shares(release, numbers) if self.normalize else numbers

    def _shares(self, release: Release, numbers: pandas.DataFrame) -> pandas.DataFrame:
        """Shares from what is shown; none where the whole, or a part of it without margins, is hidden.

        The line that holds the whole itself is left out, as pandas does, unless it is that of everybody.
        """
        values = numbers.to_numpy(dtype=float, na_value=np.nan).reshape(release.shape)
        down = tuple(range(self.rows))
        across = tuple(range(self.rows, len(release.axes)))
        over = {"all": (*down, *across), "index": across, "columns": down}[self.normalize]
        totals = {
            at for at, axis in enumerate(release.axes) if axis.categories[-1].code == TOTAL_CODE
        }
        whole = values
        for at in over:
            whole = whole.take([-1], at) if at in totals else whole.sum(axis=at, keepdims=True)
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = (values / whole).reshape(numbers.shape)
        made = type(numbers)(shares, index=numbers.index, columns=numbers.columns)
        if self.normalize == "all" or not totals.issuperset(over):
            return made
        return made.iloc[:, :-1] if self.normalize == "index" else made.iloc[:-1]

    @property
    def reasons(self) -> pandas.DataFrame:
        """Why each cell is as it is, for the agency alone: it tells which cells are sensitive."""
        release = self._cells()
        return two_way(release, self.rows, np.asarray(self.why, dtype=object))

    def _cells(self) -> Release:
        if self.release is not None:
            return self.release
        if self.decision is None:
            raise InputError("The table was refused, so there is no frame of it.")
        return self.decision._cells()

    def _repr_html_(self) -> str:
        if self.decision is not None:
            return self.decision._repr_html_()
        return self.release._repr_html_() if self.release is not None else escape(repr(self))
