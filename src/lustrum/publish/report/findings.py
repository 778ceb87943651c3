"""What the agency should know of a protected population, measured on the true counts: never for a reader."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from lustrum.audit.belief.posterior import Uniform, weighted
from lustrum.model import (
    Axis,
    Dataset,
    Filter,
    Group,
    InputError,
    Release,
    Table,
    TableQuery,
    Variable,
)
from lustrum.model.arrays import Ints
from lustrum.model.finest import FinestCells
from lustrum.numeric.arithmetic import log2
from lustrum.numeric.counting.plan import Chunk
from lustrum.policy import Policy
from lustrum.protect import CellKey, RandomRounding
from lustrum.protect.population.prepare import siblings_of
from lustrum.protect.population.public import LARGEST
from lustrum.protect.population.readers import candidates, left_to
from lustrum.public.bundle.files import Bundle
from lustrum.public.bundle.numbers import BundleNumbers
from lustrum.publish.bundles.make import MadeBundle
from lustrum.publish.bundles.people import NO_POPULATION, SamePeople
from lustrum.publish.report.sum_page import protected_sums, sum_findings, sum_warnings
from lustrum.risk import CellCertainty
from lustrum.runtime.stop import check_stop, report_progress
from lustrum.tabulate import KernelEngine

_MOST_CELLS = 20_000
_MANY_ALONE = 0.5
"""Files with a larger share of people who are alone in their finest cell are called sparse."""


def fine_tables(dataset: Dataset, most: int) -> list[TableQuery]:
    """Tables of two and three variables at finest codes, those with fewer cells first."""
    candidates = []
    for ways in (2, 3):
        for chosen in combinations(_varying(dataset), ways):
            cells = int(np.prod([len(v.codes) for v in chosen]))
            if cells <= _MOST_CELLS:
                candidates.append((ways, cells, tuple(Axis(v.name) for v in chosen)))
    table_axes = [
        axes
        for ways in (2, 3)
        for _, axes in _spread(
            sorted(((c, a) for w, c, a in candidates if w == ways), key=lambda one: one[0]),
            most // 2,
        )
    ]
    return [TableQuery(dataset.name, axes) for axes in table_axes]


def random_tables(dataset: Dataset, count: int, *, own_groups: bool) -> Iterator[TableQuery]:
    """Tables of one to three variables at random levels, with a filter now and then, or with own groups."""
    rng = np.random.default_rng(7 + own_groups)
    variables = _varying(dataset)
    for _ in range(count):
        order = [variables[index] for index in rng.permutation(len(variables))]
        size = int(rng.integers(1, min(3, len(order)) + 1))
        axes = [_axis(variable, rng) for variable in order[:size]]
        if own_groups:
            axes[0] = Axis(order[0].name, groups=(Group("group", _some(order[0], rng)),))
        where: tuple[Filter, ...] = ()
        if len(order) > size and rng.random() < 0.5:
            where = (Filter(order[size].name, (str(rng.choice(order[size].codes)),)),)
        query = TableQuery(dataset.name, tuple(axes), where)
        if _size(query, dataset) <= _MOST_CELLS:
            yield query


def nested_pairs(dataset: Dataset, count: int) -> Iterator[tuple[TableQuery, TableQuery]]:
    """A table of a group of codes, and the same with one code fewer: their difference is that code."""
    rng = np.random.default_rng(11)
    variables = [v for v in _varying(dataset) if len(v.codes) > 2]
    others = _varying(dataset)
    for _ in range(count if variables and len(others) > 1 else 0):
        variable = variables[int(rng.integers(len(variables)))]
        rest = [v for v in others if v.name != variable.name]
        axis = _axis(rest[int(rng.integers(len(rest)))], rng)
        codes = _some(variable, rng, least=2)
        yield (
            TableQuery(dataset.name, (axis,), (Filter(variable.name, codes),)),
            TableQuery(dataset.name, (axis,), (Filter(variable.name, codes[1:]),)),
        )


def _varying(dataset: Dataset) -> list[Variable]:
    return [v for v in dataset.variables if len(v.codes) > 1]


def _spread(
    items: list[tuple[int, tuple[Axis, ...]]], most: int
) -> list[tuple[int, tuple[Axis, ...]]]:
    if not items:
        return []
    places = np.unique(np.linspace(0, len(items) - 1, most).astype(int)).tolist()
    return [items[index] for index in places]


def _axis(variable: Variable, rng: np.random.Generator) -> Axis:
    levels = [None, *(level.name for level in variable.levels)]
    return Axis(variable.name, levels[int(rng.integers(len(levels)))])


def _some(variable: Variable, rng: np.random.Generator, least: int = 1) -> tuple[str, ...]:
    size = int(rng.integers(least, max(least, len(variable.codes) // 2) + 1))
    places = sorted(rng.permutation(len(variable.codes))[:size].tolist())
    return tuple(variable.codes[index] for index in places)


def _size(query: TableQuery, dataset: Dataset) -> int:
    return int(np.prod([len(a.categories(dataset.variable(a.variable))) for a in query.by]))


_TABLES = 12
_QUESTIONS = 30
_METHODS = ("protected population", "keyed rounding", "cell key")


@dataclass(frozen=True, repr=False)
class Findings:
    """All figures as plain values, and the sentences that the agency must read first."""

    figures: dict[str, Any]
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        return "Findings(hidden)"


def findings(release: MadeBundle, policy: Policy) -> Findings:
    """Measure a release that was made against the true cells that it was made of."""
    result, cells = release.result, release.cells
    bundle = Bundle(
        result.cells, policy, result.public, release.digest, sums=protected_sums(release.magnitudes)
    )
    numbers = BundleNumbers(bundle, workers=1)
    true = KernelEngine(
        cells.dataset, [Chunk(len(cells), cells.columns(), keys=cells.keys, counts=cells.counts)], 1
    )
    readers, warnings = _readers(release)
    figures: dict[str, Any] = {
        "dataset": cells.dataset.name,
        "digest": release.digest,
        "method": dict(result.public.method),
        "records": int(cells.counts.sum()),
        "finest_cells": len(cells),
        "agency": result.agency.to_mapping(),
        "errors": _errors(release),
        "risk": list(_risk(true, numbers, policy)),
        "readers": readers,
        "beliefs": [*_finest_beliefs(release), *_table_beliefs(true, numbers)],
        "comparison": list(_comparison(true, numbers, result.public.support.base, cells)),
        "together": None if release.both is None else dict(release.both.to_mapping()),
        "sums": sum_findings(release),
        "same_people": [
            {"dataset": one.dataset, "people": one.people, **one.revealed}
            for one in release.same_people
        ],
    }
    warnings += sum_warnings(figures["sums"])
    single = result.agency.single_columns
    if single["in truth and shown"]:
        warnings.append(
            f"In {single['in truth and shown']:,} of {single['rows']:,} rows of two-way tables a single column "
            "holds anybody, in truth and as shown: of everybody in such a row the column is known."
        )
    if cells.dataset.record_id is None:
        warnings.append(
            "The dataset has no identifiers (record_id): a later release of these people cannot be made."
        )
    if cells.dataset.population is None:
        warnings.append(NO_POPULATION)
    warnings += [_second_draw(one) for one in release.same_people]
    if release.both is not None and release.both.changed:
        warnings.append(
            f"{release.both.changed:,} cells moved by more than one step: readers of both releases know that "
            "these changed."
        )
    wanted = float(result.public.method.get("empty_share", 0.0))
    if wanted and release.both is not None and result.agency.empty_share < wanted:
        warnings.append(
            f"Of the cells that show {result.public.support.base}, {result.agency.empty_share:.1%} are empty "
            f"in truth, fewer than empty_share = {wanted:g}: numbers follow the changes of counts."
        )
    odds = float(result.public.method.get("change_odds", 0.5))
    words_of = {3 * result.public.support.base: f"{3 * result.public.support.base} or more"}
    warnings += [
        f"Of {step.cells:,} cells that went from {words_of.get(step.before, step.before)} to "
        f"{words_of.get(step.after, step.after)} the records of {step.changed:,} "
        f"changed: readers of both releases who say so of all are right more often than {odds:.0%}. Too many "
        "records changed for as many others to move beside them."
        for step in result.agency.differences.beyond(odds, result.public.support.base)
    ]
    warnings += [
        f"Somebody who knows all other variables of a person reads {risk.variable} off the file, rightly for "
        f"{risk.named:.0%} of {risk.people:,} people in sparse rows; a guess is right for {risk.guessed:.0%}. "
        "Fewer variables, or coarser codes, make rows fuller."
        for risk in result.agency.attributes
        if risk.exceeds
    ]
    alone = float((cells.counts == 1).sum() / max(int(cells.counts.sum()), 1))
    siblings = result.public.method.get("sparse_siblings", 0.0)
    if siblings == "auto":
        siblings = siblings_of(cells.dataset, int(cells.counts.sum()))
    if alone > _MANY_ALONE and float(siblings) <= 1:
        warnings.append(
            f"{alone:.0%} of the people are alone in their finest cell. Somebody who learns from other files "
            "names an attribute of such people more often if they are in this one. sparse_siblings makes that "
            "rarer, with 3 for about 15% more error, and with 32 where nearly all are alone; so do fewer "
            "variables and the preset proven."
        )
    warnings += [
        f"Of {one.cells:,} counts by {one.variables} variables from {one.least:,} on only {one.share:.1%} are "
        "within the margin of error that is stated."
        for one in result.agency.coverage
        if one.is_short
    ]
    if result.public.largest is not None:
        warnings.append(
            f"Some counts of controlled tables are more than {LARGEST * result.public.support.base} off, which "
            f"the public report says (up to {result.public.largest:,}); more sweeps take such errors away."
        )
    if release.both is not None and release.both.pinned:
        warnings.append(
            f"Readers of all releases who take the records for unchanged are left with one count for "
            f"{release.both.pinned:,} cells."
        )
    return Findings(figures, tuple(warnings))


def _second_draw(one: SamePeople) -> str:
    """What a reader of this file and of that of another dataset knows of the people of both."""
    told = one.revealed
    said = (
        f"of {told['cells']:,} cells by the variables of both {told['differing']:,} show another number, "
        f"{told['narrowed']:,} are narrowed to one or two counts, and in {told['excluded']:,} both cannot be "
        "of the same people"
        if told
        else "the memory of its last release is not there, so that nobody can say what both tell"
    )
    return f"This is a second draw of {one.sentence}: {said}."


def _go_on(share: float) -> None:
    """Stop if that is asked for, and otherwise say how far the report is."""
    check_stop()
    report_progress("measuring the report of the agency", share)


def _errors(release: MadeBundle) -> list[dict[str, Any]]:
    """Errors by number of variables, at finest levels and at all levels."""
    agency = release.result.agency
    rows = []
    for variables in sorted({t.variables for t in agency.tables}):
        for finest in (True, False):
            figures = agency.over(finest=finest, variables=variables)
            if figures["tables"] and (variables or finest):
                rows.append({"variables": variables, "finest": finest, **figures})
    return rows


def _risk(true: KernelEngine, numbers: BundleNumbers, policy: Policy) -> Iterator[dict[str, Any]]:
    """Risk before and after, by the measure of the policy and by what attackers know of small cells."""
    measures = {
        policy.risk.measure: policy.risk.spec,
        "certainty of an outsider about small cells": CellCertainty(audit="cell"),
        "certainty of an insider about small cells": CellCertainty(
            attacker="insider", audit="cell"
        ),
    }
    for query in fine_tables(true.dataset, _TABLES):
        _go_on(0.1)
        table, release = true.tabulate(query), numbers.views(query).shown
        yield {
            "table": " x ".join(axis.label for axis in table.axes),
            "measures": {
                name: _before_and_after(measure, table, release)
                for name, measure in measures.items()
            },
        }


def _before_and_after(measure: Any, table: Table, release: Release) -> list[float | None]:
    try:
        return [float(measure.before(table)), float(measure.after(table, release))]
    except InputError:
        return [None, None]


def _readers(release: MadeBundle) -> tuple[list[dict[str, Any]], list[str]]:
    """Counts that are left for finest cells: to an outsider, an insider, a coalition; with exact totals too."""
    result = release.result
    support, known, method = result.public.support, result.public.known, result.public.method
    base, coalition = support.base, max(int(method.get("coalition", 1)), 2)
    rows, warnings = [], []
    true = _true_counts(release.cells, result.memory)
    # Where existence is public, everybody knows what one unit of the cell knows: it is not empty.
    public = release.magnitudes is not None and release.magnitudes.public.existence_public
    outsider = (
        "an outsider, of cells that everybody knows to be occupied" if public else "an outsider"
    )
    kinds: list[tuple[str, int]] = [
        (outsider, int(public)),
        ("an insider, one person of the cell", 1),
    ]
    kinds += [(f"a coalition of {k} people of the cell", k) for k in range(2, coalition + 1)]
    for who, people in kinds:
        for exact in (False, True) if known else (False,):
            _go_on(0.0)
            totals = known if exact else ()
            left = left_to(result.cells, support, totals, people)
            # Of all cells that hold or show anybody, those that show 0 included.
            of_each = left_to(result.memory, support, totals, people).listed
            shown = [candidates(support, number, people) for number in range(0, 4 * base, base)]
            rows.append(
                {
                    "who": who
                    + (", with the exact totals that are public elsewhere" if exact else ""),
                    "shown": {str(one.shown): [one.low, one.high, one.left] for one in shown},
                    "pinned": left.pinned,
                    "pinned_in_truth": int(((of_each == 1) & (true >= max(people, 1))).sum()),
                    "left": {str(k): v for k, v in left.histogram().items()},
                }
            )
            if left.pinned:
                warnings.append(
                    f"{left.pinned:,} finest cells show a number that leaves one possible count to "
                    f"{rows[-1]['who']}{_closed_form(shown)}. In truth "
                    f"{rows[-1]['pinned_in_truth']:,} of them hold so many people; a larger base leaves more."
                )
    possible = len(release.cells.dataset.structural_zeros)
    rows.append(
        {
            "who": f"anybody, of combinations that cannot exist ({possible} structural zeros)",
            "shown": {"0": [0, 0, 1]},
            "pinned": 0,
            "pinned_in_truth": 0,
            "left": {},
        }
    )
    return rows, warnings


def _closed_form(shown: Sequence[Any]) -> str:
    ones = [f"a shown {one.shown} stands for exactly {one.low}" for one in shown if one.left == 1]
    return f": {', '.join(ones)}" if ones else ""


def _finest_beliefs(release: MadeBundle) -> Iterator[dict[str, Any]]:
    """Bits left for shown numbers of finest cells: all counts alike, and as often as they are in truth."""
    support, memory = release.result.public.support, release.result.memory
    true = _true_counts(release.cells, memory)
    for number in range(0, 5 * support.base, support.base):
        _go_on(0.2)
        at = memory.counts == number
        public = release.magnitudes is not None and release.magnitudes.public.existence_public
        for who, people in (("outsider", int(public)), ("insider", 1), ("coalition of 2", 2)):
            one = candidates(support, number, people)
            held = true[at & (true >= people)]
            yield {
                "cells": "finest cells",
                "shown": number,
                "who": who,
                "counts": [one.low, one.high, one.left],
                "bits_alike": float(log2(one.left)) if one.left else None,
                "bits_in_truth": _bits(np.bincount(held)) if held.size else None,
            }


def _table_beliefs(true: KernelEngine, numbers: BundleNumbers) -> Iterator[dict[str, Any]]:
    """The same for cells of tables, by the rates of the public report."""
    report = numbers.bundle.report
    seen: dict[int, list[tuple[Ints, Ints]]] = {}
    for query in fine_tables(true.dataset, _TABLES):
        _go_on(0.3)
        table = true.tabulate(query)
        possible = np.ones(table.shape, np.bool_) if table.structural is None else ~table.structural
        shown = numbers.views(query).shown.numbers
        seen.setdefault(len(query.by), []).append((table.values[possible], shown[possible]))
    for variables, tables in sorted(seen.items()):
        values, shown = (np.concatenate([pair[i] for pair in tables]) for i in (0, 1))
        channel = report.channel(variables)
        for number in range(0, 5 * report.support.base, report.support.base):
            belief = weighted(
                np.array([0]), np.array([number + 64]), Uniform(), np.array([number]), channel
            )
            held = values[shown == number]
            yield {
                "cells": f"tables of {variables} variables",
                "shown": number,
                "who": "outsider",
                "counts": None,
                "bits_alike": _bits(np.asarray(belief.probabilities)),
                "bits_in_truth": _bits(np.bincount(held)) if held.size else None,
            }


def _true_counts(cells: FinestCells, memory: FinestCells) -> Ints:
    size = [len(v.codes) for v in cells.dataset.variables]

    def numbers(codes: Any) -> Any:
        out = np.zeros(codes.shape[1], dtype=np.uint64)
        for row, codes_of in zip(codes, size, strict=True):
            out = out * np.uint64(codes_of) + row.astype(np.uint64)
        return out

    mine, theirs = numbers(memory.codes), numbers(cells.codes)
    if not theirs.size:
        return np.zeros(mine.size, dtype=np.int64)
    order = np.argsort(theirs, kind="stable")
    index = np.minimum(np.searchsorted(theirs[order], mine), theirs.size - 1)
    exists = theirs[order][index] == mine
    return np.where(exists, cells.counts[order][index], 0).astype(np.int64)


def _bits(weights: Any) -> float:
    share = np.asarray(weights, dtype=np.float64)
    share = share[share > 0] / share.sum()
    return abs(float((share * log2(share)).sum()))


def _comparison(
    true: KernelEngine, numbers: BundleNumbers, base: int, cells: FinestCells
) -> Iterator[dict[str, Any]]:
    """Errors on the same questions: of the release, of keyed random rounding and of the cell key method."""
    if cells.keys is None:
        return
    rounding, cell_key = RandomRounding(base=base), CellKey()

    def shown(query: TableQuery) -> tuple[Table, list[Ints]]:
        table = true.tabulate(query)
        return table, [
            numbers.views(query).shown.numbers,
            rounding.apply(table).numbers,
            cell_key.apply(table).numbers,
        ]

    kinds = {
        "tables of up to three variables": random_tables(
            true.dataset, _QUESTIONS, own_groups=False
        ),
        "tables with own groups": random_tables(true.dataset, _QUESTIONS, own_groups=True),
    }
    for name, queries in kinds.items():
        errors: list[list[Any]] = [[], [], []]
        for query in queries:
            _go_on(0.5)
            table, by_method = shown(query)
            seen = table.values > 0
            for out, published in zip(errors, by_method, strict=True):
                out.append(np.abs(published - table.values)[seen])
        yield from _compared(name, errors)
    errors = [[], [], []]
    for whole, part in nested_pairs(true.dataset, _QUESTIONS):
        _go_on(0.8)
        (all_, of_all), (some, of_some) = shown(whole), shown(part)
        difference = all_.values - some.values
        for out, one, two in zip(errors, of_all, of_some, strict=True):
            out.append(np.abs(one - two - difference)[difference > 0])
    yield from _compared("differences of nested tables", errors)


def _compared(name: str, errors: Sequence[Sequence[Any]]) -> Iterator[dict[str, Any]]:
    joined = [np.concatenate([np.zeros(0, dtype=np.int64), *one]) for one in errors]
    if not joined[0].size:
        return
    yield {
        "questions": name,
        "cells": int(joined[0].size),
        "methods": {
            method: {"mean": float(one.mean()), "largest": int(one.max())}
            for method, one in zip(_METHODS, joined, strict=True)
        },
    }
