"""One call from a frame of records to a protected table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lustrum.model import Dataset, InputError, Release, Table, TableQuery
from lustrum.model.errors import choices
from lustrum.model.hierarchy import Category, Hierarchy, Level
from lustrum.model.variable import Variable
from lustrum.protect.method import Kept
from lustrum.protect.suppression import Suppression
from lustrum.protect.suppression.choose import AlgorithmWord
from lustrum.protect.suppression.method import AttackerWord
from lustrum.protect.suppression.problem import CostWord
from lustrum.publish.suppression.tables import StoppableSearch
from lustrum.publish.waivers import refuse_requests
from lustrum.sensitivity import Rule
from lustrum.sensitivity.rule import judges_contributions, ranks_of
from lustrum.tabulate.frame import FrameEngine, as_arrow, describe_frame, named_axis
from lustrum.tabulate.keys import Secret

Groups = Mapping[str, Mapping[str, Sequence[str]]]


def suppress(
    frame: object,
    by: Sequence[str],
    rule: Rule | Mapping[str, Any] | None = None,
    *,
    measure: str | None = None,
    holding: str | None = None,
    decimals: int | None = None,
    groups: Groups | None = None,
    dataset: Dataset | None = None,
    totals: bool = True,
    cost: CostWord = "value",
    attacker: AttackerWord = "insiders",
    unions: bool = False,
    keep: Kept = "nothing",
    zeros: bool = False,
    partial: bool = False,
    algorithm: AlgorithmWord = "auto",
    work: int | None = None,
) -> Release:
    """Tabulate records, suppress sensitive cells and those that would reveal them, and audit the result.

    ``frame`` is a pandas, polars or Arrow table of records. Without a ``measure`` records are counted; with
    one its values are added up, and the largest contributions of each cell are ranked for the ``rule``.
    Records of the same ``holding`` count as one contributor. ``groups`` are subtotals by variable, such as
    ``{"nace": {"C": ["C10", "C11"]}}``; they need not nest. A description (``dataset``) knows levels, such as
    ``by=["nace:sector"]``. The other parameters are those of
    :class:`~lustrum.protect.suppression.Suppression`. A search of more than 20 processor seconds says that it
    goes on to prove that no pattern is cheaper; from then on Ctrl-C takes the best safe pattern so far.

    >>> from lustrum.sensitivity import PPercent
    >>> firms = {
    ...     "area": ["n", "n", "n", "s", "s", "s", "n", "s", "n", "s", "s"],
    ...     "job": ["a", "a", "b", "a", "a", "b", "b", "b", "b", "a", "b"],
    ...     "turnover": [90, 4, 30, 33, 28, 41, 25, 38, 36, 30, 22],
    ... }
    >>> suppress(firms, by=["area", "job"], measure="turnover", rule=PPercent(p=10)).status.tolist()
    [['N', 'N', 'F'], ['N', 'N', 'F'], ['F', 'F', 'F']]
    """
    if rule is None:
        raise InputError(
            "Say with 'rule' which cells are sensitive, such as Threshold(3) for counts or PPercent(p=10) "
            "for sums."
        )
    if isinstance(rule, (list, tuple)):
        raise InputError("One rule decides; join several: AnyOf((Threshold(3), PPercent(p=10))).")
    spec = Suppression(
        rule=rule,
        cost=cost,
        attacker=attacker,
        unions=unions,
        keep=keep,
        zeros=zeros,
        partial=partial,
        algorithm=algorithm,
        work=work,
    )
    refuse_requests(spec.rule)
    if measure is None and judges_contributions(spec.rule):
        raise InputError(
            "The rule judges contributions, which counts have none of; name the column that is added up as "
            "'measure', or use Threshold(3) for counts."
        )
    table = table_of_records(
        frame,
        by,
        measure=measure,
        holding=holding,
        decimals=decimals,
        groups=groups,
        totals=totals,
        ranks=ranks_of(spec.rule),
        dataset=dataset,
    )
    search = StoppableSearch()
    with search.listening():
        pattern = spec.pattern(table, progress=search.tell)
    return spec.release(table, pattern)


def table_of_records(
    frame: object,
    by: Sequence[str],
    *,
    measure: str | None = None,
    holding: str | None = None,
    decimals: int | None = None,
    groups: Groups | None = None,
    totals: bool = True,
    ranks: int = 3,
    weight: str | None = None,
    secret: Secret | None = None,
    record_id: str | None = None,
    dataset: Dataset | None = None,
) -> Table:
    """A confidential table of records with totals, subtotals and the largest contributions of every cell.

    ``weight`` weights counts and sums. ``dataset`` describes columns and their levels. ``secret`` makes record
    keys, from the column ``record_id`` if there is one and otherwise from the place of a record.
    """
    if isinstance(by, str):
        raise InputError(f"'by' must be a list of columns, such as [{by!r}].")
    extra = (measure, weight, holding, record_id)
    asked = {
        axis.variable: axis for axis in (named_axis(name, dataset, total=totals) for name in by)
    }
    table = as_arrow(frame, [*asked, *(name for name in extra if name is not None)])
    plain = describe_frame(
        table,
        list(asked),
        measure=measure,
        weight=weight,
        holding=holding,
        record_id=record_id,
        decimals=decimals,
        described=dataset,
    )
    if len(asked) < len(by):
        raise InputError("'by' names a column twice; a table shows each at one level.")
    subtotals = groups or {}
    for name in subtotals:
        if name not in asked or asked[name].level is not None:
            raise InputError(f"There are groups of {name!r}, whose codes do not span the table.")
    variables = tuple(
        _grouped(v, subtotals[v.name]) if v.name in subtotals else v for v in plain.variables
    )
    axes = tuple(
        replace(asked[v.name], codes=_codes(v)) if v.name in subtotals else asked[v.name]
        for v in variables
    )
    query = TableQuery("frame", axes, measure=measure, weight=weight)
    engine = FrameEngine(table, replace(plain, variables=variables), secret)
    return engine.tabulate(query, ranks=ranks)


def _grouped(variable: Variable, groups: Mapping[str, Sequence[str]]) -> Variable:
    """The variable with every group as a hierarchy of its own, so that groups may overlap."""
    members: dict[str, frozenset[int]] = {c: frozenset({i}) for i, c in enumerate(variable.codes)}
    waiting = dict(groups)
    while waiting:
        ready = [g for g, parts in waiting.items() if all(p in members for p in parts)]
        if not ready:
            group, parts = next(iter(waiting.items()))
            unknown = next(p for p in parts if p not in members)
            raise InputError(
                f"The group {group!r} of {variable.name!r} holds {unknown!r}, which is no code; "
                f"{choices(unknown, variable.codes)}."
            )
        for group in ready:
            members[group] = frozenset().union(*(members[p] for p in waiting.pop(group)))
    hierarchies = []
    for group in groups:
        category = Category(group, group, tuple(sorted(members[group])))
        ungrouped = tuple(c for c in variable.finest if c.members[0] not in category.member_set)
        level = Level(group, group, (category, *ungrouped), frozenset(c.code for c in ungrouped))
        hierarchies.append(Hierarchy(group, group, (level,)))
    return Variable(
        variable.name,
        variable.label,
        variable.codes,
        variable.labels,
        hierarchies=tuple(hierarchies),
    )


def _codes(variable: Variable) -> tuple[str, ...]:
    return (*variable.codes, *(g.code for level in variable.levels for g in level.groups))


def named_columns(
    index: object,
    columns: object,
    rownames: Sequence[str] | None = None,
    colnames: Sequence[str] | None = None,
) -> tuple[dict[str, Any], int]:
    """The columns of a cross tabulation by name, as pandas calls them, and how many stand in the rows.

    >>> named_columns(["n", "s"], ["a", "b"], rownames=["area"])
    ({'area': ['n', 's'], 'col_0': ['a', 'b']}, 1)
    """
    down, across = _listed(index), _listed(columns)
    names = [*_names(down, rownames, "row"), *_names(across, colnames, "col")]
    found: dict[str, Any] = {}
    for name, column in zip(names, [*down, *across], strict=True):
        if name in found:
            raise InputError(
                f"Two of the columns are called {name!r}; give them 'rownames' and 'colnames'."
            )
        found[name] = column
    return found, len(down)


def _listed(columns: object) -> list[Any]:
    if columns is None:
        return []
    if isinstance(columns, str) or not hasattr(columns, "__len__"):
        raise InputError(
            "'index' and 'columns' are columns, such as frame['area'], or lists of them."
        )
    if isinstance(columns, (list, tuple)):
        inner = [not isinstance(c, (str, bytes)) and hasattr(c, "__len__") for c in columns]
        if all(inner):
            return list(columns)
    return [columns]


def _names(columns: Sequence[Any], names: Sequence[str] | None, usual: str) -> list[str]:
    if names is not None:
        if isinstance(names, str) or len(names) != len(columns):
            raise InputError(f"'{usual}names' must be a list with a name for each of the columns.")
        return [str(name) for name in names]
    own = [getattr(column, "name", None) for column in columns]
    return [f"{usual}_{at}" if name is None else str(name) for at, name in enumerate(own)]
