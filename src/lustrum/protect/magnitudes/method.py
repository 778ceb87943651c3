"""Protected magnitudes: the contributions of a register are multiplied once, and every table of sums is a plain
sum of the result.

Evans, Zayatz and Slanta (1998, Journal of Official Statistics 14, 537-551) multiply the values of every
enterprise by a factor that is near one and never one; Massell and Funk (2007) balance directions so that noise
cancels in large cells. Here factors are wide enough that every set of records carries the protection that the
p% rule asks for, whatever their directions are; see :mod:`lustrum.protect.magnitudes.factors`. The search is
then free to keep all other cells close.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Array, Ints, Mask, Words
from lustrum.model.finest import FinestCells, FinestSums
from lustrum.model.parameters import parameter
from lustrum.model.records import Records
from lustrum.protect.abilities import Abilities
from lustrum.protect.magnitudes.carriers import Carried, CarriedRecords, carried_by, held_cells
from lustrum.protect.magnitudes.check import with_classes
from lustrum.protect.magnitudes.factors import SHARES, Factors, needed_factors
from lustrum.protect.magnitudes.hidden import (
    Known,
    KnownClasses,
    certain_below,
    hide,
    known_classes,
    near_ends,
    refuse_narrow,
)
from lustrum.protect.magnitudes.kernels import add_amounts
from lustrum.protect.magnitudes.remembered import (
    RememberedSums,
    keep_noise,
    known_before,
    left_out,
    reach_after,
    remember,
)
from lustrum.protect.magnitudes.report import (
    MagnitudeReport,
    PublicFactors,
    measured,
    refuse_unusable,
)
from lustrum.protect.magnitudes.search import (
    Ranking,
    balance_leaders,
    leading_owners,
    noise_of,
    rank_cells,
    relative_scale,
    search,
)
from lustrum.protect.magnitudes.units import (
    MeasureFamily,
    Units,
    check_relations,
    families_of,
    identities,
    other_amounts,
    units_of,
)
from lustrum.protect.method import MethodSpec, Stage
from lustrum.protect.population.search.layout import TablePlan
from lustrum.protect.population.search.plan import plan_tables
from lustrum.protect.population.start import cell_numbers, derived
from lustrum.runtime.stop import reporting_progress
from lustrum.sensitivity import Background
from lustrum.sensitivity.rule import NOTHING, exact

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False, repr=False)
class MagnitudeResult:
    """Protected sums and their public report may be published; ``agency``, ``records`` and ``memory`` may not.

    ``records`` holds the protected value of every record and measure, in the order of the records, and
    ``carried`` the cells to which they are added. ``memory`` is what a second release starts from.
    """

    sums: FinestSums
    public: PublicFactors
    agency: MagnitudeReport
    records: dict[str, Ints]
    carried: CarriedRecords
    memory: RememberedSums

    def __repr__(self) -> str:
        return f"MagnitudeResult({self.sums.dataset.name!r})"


@dataclass(frozen=True)
class ProtectedMagnitudes(MethodSpec):
    """Multiply every contribution once, so that nobody is certain of one within ``p`` percent.

    - ``p``: the protection that the p% rule asks for. For the prior-posterior rule write ``100 p / q``, for the
      dominance rule (n, k) ``100 n (100 - k) / k``.
    - ``directions``: ``"known"`` assumes attackers who know whether a contribution went up or down;
      ``"secret"`` does not, and adds less noise.
    - ``search_range``: how far the search may move a record's share towards the least or the largest share, as
      a part of the distance. With 0 shares are uniform draws; a larger part keeps tables closer to the truth,
      and the shares of large contributors can be guessed.
    - ``leader_part``: contributors with more than this part of a cell that is not sensitive keep the direction
      that the key draws. A larger part keeps tables closer to the truth, and the second largest contributor of
      a cell can guess the direction of the largest one better.
    - ``public_classes``: variables that are classes of a measure and known to everybody from elsewhere. Other
      classes are refused if they give a value away within ``p`` percent by themselves.
    - ``existence``: whether everybody may know in which finest cells there are units. ``"secret"`` ties sums to
      the protected counts: a finest cell has a sum if and only if it shows a count; see
      :mod:`lustrum.protect.magnitudes.carriers`. ``"public"`` leaves every sum where its records are, and the
      bundle states which finest cells are occupied.
    """

    name: ClassVar[str] = "protected-magnitudes"
    stages: ClassVar[tuple[Stage, ...]] = ("magnitudes",)
    abilities: ClassVar[Abilities] = Abilities(repeatable=True, one_number=True)
    renamed: ClassVar[dict[str, str]] = {"room": "search_range", "ways": "max_variables"}
    p: float = parameter(
        5.0, "Nobody may be certain of a contribution within this percentage.", above=0, most=65
    )
    directions: Literal["known", "secret"] = parameter(
        "known", "Whether attackers may know if a contribution went up or down."
    )
    search_range: float = parameter(
        0.0,
        "Which part of its way to either end the search may move a share.",
        least=0,
        below=1,
        before={"0.2.0": 0.8},
    )
    max_variables: int = parameter(
        3, "Tables of up to this many variables are kept close.", least=1, most=4
    )
    tables: tuple[tuple[str, ...], ...] = parameter(
        (), "The agency's own tables that are kept close too."
    )
    measures: tuple[str, ...] = parameter((), "The measures to protect; all if empty.")
    existence: Literal["secret", "public"] = parameter(
        "secret", "Whether everybody may know in which finest cells there are units."
    )
    sweeps: int = parameter(10, "How often the search visits every contributor.", least=1)
    leader_part: float = parameter(
        0.25,
        "Contributors with a larger part of a cell keep the direction that the key draws.",
        least=0,
        most=1,
        before={"0.2.0": 1.0},
    )
    public_classes: tuple[str, ...] = parameter(
        (), "Variables whose classes of a measure everybody knows, however narrow they are."
    )

    def check_together(self) -> None:
        """The shares can be made."""
        _ = self.factors

    @cached_property
    def factors(self) -> Factors:
        return needed_factors(self.share, self.directions)

    @property
    def share(self) -> Fraction:
        return exact(self.p) / 100

    def protect(
        self,
        records: Records,
        key: bytes,
        *,
        shown: FinestCells | None = None,
        previous: RememberedSums | None = None,
        background: Background = NOTHING,
        progress: Progress | None = None,
    ) -> MagnitudeResult:
        """Protect the measures of a register; randomness comes from the key and contributors' identities alone.

        ``shown`` are the protected counts beside the sums, to which the sums are tied if existence is secret;
        without them the sums are published alone. Contributors who gave a waiver keep their true values.
        """
        if len(key) < 16:
            raise InputError("The key of protected magnitudes must have at least 16 bytes.")
        families = self._families(records)
        check_relations(records, families)
        classes = known_classes(records, [name for family in families for name in family.shown])
        refuse_narrow(records, classes, self.share, self.public_classes)
        with nullcontext() if progress is None else reporting_progress(progress):
            return self._protect(records, key, families, classes, background, shown, previous)

    def held(self, records: Records, cells: FinestCells, base: int, key: bytes) -> Words | None:
        """Cells that are to show a count, for a protected population to which the sums will be tied."""
        if self.existence == "public":
            return None
        names = tuple(n for family in self._families(records) for n in family.shown)
        return held_cells(records, names, cells, base, derived(key, "held cells"))

    def _families(self, records: Records) -> tuple[MeasureFamily, ...]:
        known = records.dataset.measures
        chosen = {records.dataset.measure(name).name for name in self.measures}
        families = families_of(known)
        if not families:
            raise InputError("The dataset has no measures; there are no sums to protect.")
        if chosen:
            families = tuple(f for f in families if chosen & set(f.shown))
        for family in families:
            for name in family.moved:
                if records.numbers[name].size and int(np.abs(records.numbers[name]).max()) >= 2**62:
                    raise InputError(
                        f"A value of {name!r} does not fit 62 bits; use fewer decimals."
                    )
        return families

    def _protect(
        self,
        records: Records,
        key: bytes,
        families: tuple[MeasureFamily, ...],
        classes: KnownClasses,
        background: Background,
        shown: FinestCells | None,
        previous: RememberedSums | None,
    ) -> MagnitudeResult:
        plan = plan_tables(records.dataset, self.max_variables, self.tables)
        room = int(self.search_range * SHARES)
        release = 0
        if previous is not None:
            previous.require_same_method(self.to_mapping())
            release = previous.release + 1
        protected_values: dict[str, Ints] = {}
        ranked_errors = []
        known: dict[str, tuple[Ints, Ints]] = {}
        nets: dict[str, Mask] = {}

        def protect_family(family: MeasureFamily) -> None:
            if previous is not None:
                previous.require_own_shares(records, family)
            secret_key = derived(key, f"magnitudes {family.name}")
            units, order, secret = units_of(
                records,
                plan.variables,
                family,
                self.factors,
                secret_key,
                room=room,
                background=background,
                release=release,
            )
            for name in family.shown:
                known[name] = known_before(classes, records, name, previous, self.factors, "factor")
            values = np.stack([records.numbers[m][order] for m in family.shown], axis=1)
            locked = self._hide(
                units,
                values,
                order,
                records,
                family,
                classes,
                known,
                previous,
                secret_key,
                secret,
                release,
            )
            ranking = [rank_cells(plan, units, np.ascontiguousarray(v)) for v in values.T]
            totals = np.stack([r.total for r in ranking], axis=1)
            close = np.stack([~r.sensitive(self._ratio) for r in ranking], axis=1)
            scale = relative_scale(totals, close)
            leading = leading_owners(plan, units, values, scale, self.leader_part)
            balance_leaders(units, values, leading & ~locked, secret)
            locked |= leading
            errors = search(plan, units, family, scale, secret, secret_key, self.sweeps, locked)
            protected = values + family.added(noise_of(units))
            back = np.empty_like(order)
            back[order] = np.arange(order.size)
            is_net = family.nets(np.stack([records.numbers[m] for m in family.moved], axis=1))
            for column, name in enumerate(family.shown):
                protected_values[name] = protected[back, column]
                nets[name] = is_net[:, column]
                ranked_errors.append((name, ranking[column], errors[:, column]))

        for family in families:  # what one of them needs is free before the next one comes
            protect_family(family)
        self._refuse_certain(records, classes, protected_values, previous, nets)
        refuse_unusable(plan, ranked_errors, self._ratio)
        if previous is not None:
            previous.require_same_numbers(records, protected_values, self.factors)
        codes = np.stack([records.codes[v.name] for v in records.dataset.variables])
        carried = CarriedRecords(np.arange(len(records)), codes, protected_values)
        tied = shown is not None and self.existence == "secret"
        if shown is not None and tied:
            values = np.stack(list(protected_values.values()), axis=1)
            word = identities(records, None)[1]
            earlier_places = (
                None if previous is None else previous.kept_places(records, protected_values)
            )
            by = carried_by(
                plan,
                codes,
                values,
                word,
                shown,
                key,
                sweeps=_CARRYING,
                earlier_places=earlier_places,
            )
            # A measure with parts stays the sum of them, piece by piece.
            pieces = {
                name: value
                for family in families
                for name, value in _cut(family, protected_values, by).items()
            }
            carried = CarriedRecords(by.record, shown.codes[:, by.carrier], pieces)
            ranked_errors = _carried_errors(plan, ranked_errors, codes, records, carried)
        return MagnitudeResult(
            _finest_sums(records.dataset, carried, every=tied or self.existence == "public"),
            *self._reports(plan, ranked_errors, key, records, protected_values, classes),
            protected_values,
            carried,
            remember(
                records,
                protected_values,
                carried,
                self.to_mapping(),
                release,
                {
                    name: reach_after(protected_values[name], known[name], self.factors, nets[name])
                    for name in protected_values
                },
                left_out(previous, records, protected_values, self.factors),
            ),
        )

    def _hide(
        self,
        units: Units,
        values: Ints,
        order: Ints,
        records: Records,
        family: MeasureFamily,
        classes: KnownClasses,
        known: dict[str, tuple[Ints, Ints]],
        previous: RememberedSums | None,
        key: bytes,
        secret: Words,
        release: int,
    ) -> Mask:
        """Keep published noise and draw amounts that hide the rest; returns owners with a direction."""
        kept_noise = keep_noise(units, family, order, records, self.factors, previous)
        # What a class gives away by itself cannot be hidden.
        given = np.stack(
            [
                classes.given_away(m, records.numbers[m].astype(np.int64), self.share)[order]
                for m in family.shown
            ],
            axis=1,
        )
        moved = np.stack([records.numbers[m][order] for m in family.moved], axis=1).astype(np.int64)
        nets = family.nets(moved)
        # Somebody who knows another value of an owner, or an earlier one, knows which way all of them go.
        filled = np.bincount(units.owner, weights=(moved != 0).sum(axis=1), minlength=secret.size)
        several = ((filled > 1) | kept_noise.owners)[units.owner]
        large = np.abs(values) >= certain_below(self.factors, self.share)
        near = np.stack(
            [
                near_ends(np.abs(values[:, k]), known[m], order, given[:, k], self.factors)
                for k, m in enumerate(family.shown)
            ],
            axis=1,
        )
        chosen = (near @ family.adds | kept_noise.changed) & ~kept_noise.unchanged
        # What readers know is laid out of those contributions alone that may be drawn again.
        rows = np.flatnonzero(chosen.any(axis=1))
        at, given = order[rows], given[rows]
        none, nobody = np.zeros_like(values[rows]), np.zeros(given.shape, dtype=np.bool_)
        in_class = {
            m: known_before(classes, records, m, None, self.factors, "factor") for m in family.shown
        }
        directed = several[rows, None] & large[rows]
        readers = [
            Known.of(known, family.shown, at, given, none, nobody),
            Known.of(in_class, family.shown, at, given, none, directed),
        ]
        if previous is not None:
            ends = {
                m: known_before(classes, records, m, previous, self.factors, "difference")
                for m in family.shown
            }
            grown = np.stack(
                [previous.grown(records, m, self.factors)[at] for m in family.shown], axis=1
            )
            readers.append(Known.of(ends, family.shown, at, given, grown, nobody))
        record_ids = identities(records, None)[1][order]
        more = other_amounts(units, moved, record_ids, family, self.factors, key, secret, release)
        return hide(
            units,
            values,
            family,
            self.factors,
            self.share,
            readers,
            chosen,
            nets,
            more,
            kept_noise.owners,
        )

    def _refuse_certain(
        self,
        records: Records,
        classes: KnownClasses,
        protected_values: dict[str, Ints],
        previous: RememberedSums | None,
        nets: dict[str, Mask],
    ) -> None:
        """Refuse classes in which no amount hides a contribution, such as 1 to 2 units.

        Contributions that an earlier release shows keep their noise or their direction whatever their class is;
        the audit counts those that are certain. A class of what gains and losses leave ties its parts together.
        """
        for name, variables in classes.variables.items():
            named = " and ".join(map(repr, variables))
            if nets[name].any():
                raise InputError(
                    f"Classes of {named} tell readers what is left of the gains and losses of {name!r}, and so "
                    "how its parts compare; leave out the classes, the measure or its parts."
                )
            new = np.ones(len(records), dtype=np.bool_)
            if previous is not None:
                record_ids, sides = identities(records, None)[1], np.sign(records.numbers[name])
                new = previous.last(name, record_ids, sides, self.factors).true == 0
            if with_classes(
                records, classes, name, protected_values[name], self.factors, self.share, new
            )[0]:
                raise InputError(
                    f"Contributions to {name!r} cannot be hidden from readers who know their class of {named}: "
                    "it has too few numbers. Join it with the next class, give the measure more decimals, or "
                    "leave one of them out."
                )

    @property
    def _ratio(self) -> tuple[int, int]:
        return self.share.numerator, self.share.denominator

    def _reports(
        self,
        plan: TablePlan,
        ranked_errors: list[tuple[str, Ranking, Any]],
        key: bytes,
        records: Records,
        protected_values: dict[str, Ints],
        classes: KnownClasses,
    ) -> tuple[PublicFactors, MagnitudeReport]:
        return measured(
            self.to_mapping(),
            self.factors,
            plan,
            ranked_errors,
            self._ratio,
            derived(key, "sums report"),
            {m.name: m.earlier for m in records.dataset.measures if m.earlier is not None},
            {
                n: (records.numbers[n].astype(np.int64), values)
                for n, values in protected_values.items()
            },
            classes.variables,
        )


def _cut(family: MeasureFamily, protected_values: dict[str, Ints], by: Carried) -> dict[str, Ints]:
    """The shown measures of all pieces, from the pieces of those that were moved."""
    moved = np.stack([by.values(protected_values[name]) for name in family.moved], axis=1)
    return dict(zip(family.shown, family.added(moved).T, strict=True))


_CARRYING = 6
"""How often the search visits every record that another cell carries."""


def _carried_errors(
    plan: TablePlan,
    ranked_errors: list[tuple[str, Ranking, Any]],
    codes: Array,
    records: Records,
    carried: CarriedRecords,
) -> list[tuple[str, Ranking, Any]]:
    """The errors of every controlled cell with records where they are carried."""
    rows = plan.rows()
    names = [name for name, _, _ in ranked_errors]
    errors = np.zeros((plan.cells, len(names)))
    for at, sign, columns in ((carried.codes, 1.0, carried.values), (codes, -1.0, records.numbers)):
        amounts = np.stack([sign * columns[n].astype(np.float64) for n in names], axis=1)
        laid = np.ascontiguousarray(at[rows].T.astype(np.uint32))
        add_amounts(plan.layout, laid, amounts, errors)
    return [(name, ranking, errors[:, k]) for k, (name, ranking, _) in enumerate(ranked_errors)]


def _finest_sums(dataset: Dataset, carried: CarriedRecords, *, every: bool) -> FinestSums:
    """Add up protected values by finest cell; cells without values are left out unless ``every`` is set."""
    codes = carried.codes
    _, first, inverse = np.unique(
        cell_numbers(dataset, codes), return_index=True, return_inverse=True
    )
    sums = {}
    for name, values in carried.values.items():
        sums[name] = np.zeros(first.size, dtype=np.int64)
        np.add.at(sums[name], inverse.ravel(), values)
    keep_cell = np.any([s != 0 for s in sums.values()], axis=0) | every
    return FinestSums(
        dataset, codes[:, first[keep_cell]], {n: s[keep_cell] for n, s in sums.items()}
    )
