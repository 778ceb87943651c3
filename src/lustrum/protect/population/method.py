"""One protected population: the finest cells are changed once, and every table is a plain count of the
result.

No count below the base is left at the finest level, every finest cell shows a number next to its true one,
and the tables of up to three variables stay close to the truth. All answers then add up and agree with each
other, and nothing that is published says more than the one file. The idea is that of SAFE (Höhne; Giessing
and Höhne 2011, SORT 35, 3-22), with which Germany published its census of 2011.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from lustrum.model import Dataset, InputError
from lustrum.model.arrays import Words
from lustrum.model.finest import FinestCells
from lustrum.model.parameters import parameter
from lustrum.protect.abilities import Abilities, changed_by_rounding
from lustrum.protect.entropy_left import left_between_multiples
from lustrum.protect.method import MethodSpec
from lustrum.protect.method import Stage as MethodStage
from lustrum.protect.population.agency import (
    AgencyReport,
    ControlledErrors,
    agency_report,
    true_counts,
)
from lustrum.protect.population.blocks.divide import Division
from lustrum.protect.population.blocks.whole import LocalRunner, WholePopulation, protected_by
from lustrum.protect.population.blocks.work import IMPOSSIBLE, Whole
from lustrum.protect.population.later import RememberedCells
from lustrum.protect.population.measure import coverage_of, coverage_rows, public_report
from lustrum.protect.population.prepare import Prepared, prepare, siblings_of
from lustrum.protect.population.public import (
    PublicReport,
    search_version,
)
from lustrum.protect.population.readers import base_needed, known_totals, left_to
from lustrum.protect.population.schedule import Schedule
from lustrum.protect.population.search.run import search
from lustrum.protect.population.search.stages import Stage
from lustrum.protect.population.start import derived
from lustrum.protect.population.state import StateFile
from lustrum.protect.population.support import Support
from lustrum.protect.population.together import Differences, differences
from lustrum.runtime.stop import report_progress, reporting_progress, side_by_side, still_working

Progress = Callable[[str, float], None]

_MENDS = 4
"""How many bases are tried before a policy that demands mending is refused."""


@dataclass(frozen=True, eq=False, repr=False)
class PopulationResult:
    """Protected cells with two reports: ``cells`` and ``public`` may be published, the rest may not.

    ``memory`` holds what every cell shows beside the keys of its records, for the next release.
    """

    cells: FinestCells
    public: PublicReport
    agency: AgencyReport
    memory: RememberedCells

    def __repr__(self) -> str:
        return f"PopulationResult({self.cells.dataset.name!r})"


@dataclass(frozen=True)
class ProtectedPopulation(MethodSpec):
    """Change finest cells once so that every table of the result is protected, additive and close to the
    truth.

    - ``base``: the smallest number above 0 that a finest cell shows, and the step between shown numbers.
    - ``cells``: ``"all"`` moves every finest cell to an adjacent multiple of the base; ``"small"`` moves
    counts
      below the base to 0 or the base and leaves the others as they are.
    - ``empty_share``: at least this share of the cells that show the base in a first release is empty in truth;
      with 0 a shown base proves that somebody is there.
    - ``sparse_siblings``: in rows of the file that should hold hardly anybody, empty cells may show the base so
      that a shown category is often a wrong one: up to two for each cell below the base and each variable, or
      this part of them. With 0, or with an ``empty_share`` of 0, a row tells the unknown attribute of a person.
      With a number above 1 there are as many, but only one in this many is around a cell below the base, and
      the others are around invented people, so that the rows beside do not tell it either. Small cells then
      show somebody as seldom as empty ones, and larger ones start without bias. That is for sparse files:
      elsewhere tables err far more. With "auto" it follows from the people for each possible cell.
    - ``max_variables``: tables of up to this many variables are controlled, at every level of every hierarchy.
    - ``tables``, ``own_weight``: further tables, each a list such as ``("area:district", "sex", "age")``, and
      how much they count beside a table at finest levels. A table that is controlled anyway gets this weight.
    - ``known_totals``: exact totals that stay public elsewhere, each a list such as ``("area:district",)``;
      they are shown beside answers and known to every reader.
    - ``coalition``, ``min_left``, ``if_fewer``: how many people of one finest cell may join what they know, how
      many true counts must be left to them for a cell, and what happens where fewer are left: ``"report"``
      says so in the agency's report, ``"refuse"`` makes nothing, ``"larger-base"`` takes a larger base.
    - ``extra_tables``: how many tables of more variables are kept close too, those with the fewest cells first.
    - ``sweeps``: how often the search visits every cell; more is closer and slower.
    - ``refresh``, ``change_odds``: in a later release at least this share of the cells whose level lies beside
      another number is drawn, and more where otherwise a cell that differs from the release before would have
      other records with larger odds. One in eight shows the other number.
    - ``known_changes``: by how much all later releases together may change the odds of two counts to readers
      who know every change of a cell, beside what its first number tells; 0 is no limit.
    """

    name: ClassVar[str] = "protected-population"
    stages: ClassVar[tuple[MethodStage, ...]] = ("population",)
    renamed: ClassVar[dict[str, str]] = {
        "ways": "max_variables",
        "too_few": "if_fewer",
        "further": "extra_tables",
    }
    base: int = parameter(
        3,
        "The smallest number above 0 that a finest cell shows, and the step between numbers.",
        least=2,
        most=100,
    )
    cells: Literal["all", "small"] = parameter(
        "all", "Whether all finest cells are moved, or only counts below the base."
    )
    empty_share: float = parameter(
        0.1,
        "At least this share of the cells that show the base in a first release has nobody in it.",
        least=0,
        most=0.5,
    )
    sparse_siblings: float | Literal["auto"] = parameter(
        "auto",
        "In the sparsest rows, which part of two empty cells for each small one may show the base; above 1, "
        "one in how many of them is around a small cell, and not around an invented person; 1 to 32, by how "
        "sparse the file is, with 'auto'.",
        least=0,
        most=100,
        before={"0.2.0": 0.0, "0.3.0": 1.0},
    )
    max_variables: int = parameter(
        3, "Tables of up to this many variables are kept close.", least=1, most=4
    )
    tables: tuple[tuple[str, ...], ...] = parameter(
        (), "The agency's own tables that are kept close too."
    )
    own_weight: int = parameter(
        4,
        "How much an error costs in the agency's own tables, beside others at finest levels.",
        least=1,
        most=100,
    )
    known_totals: tuple[tuple[str, ...], ...] = parameter(
        (),
        "Exact totals that stay public elsewhere: shown beside answers, and known to all readers.",
    )
    coalition: int = parameter(
        1, "How many people of one finest cell may join what they know.", least=0, most=50
    )
    min_left: int = parameter(
        2, "Fewest true counts that must be left to them for a finest cell.", least=1, most=50
    )
    if_fewer: Literal["report", "refuse", "larger-base"] = parameter(
        "report",
        "If fewer are left: report it to the agency, refuse, or take a larger base.",
    )
    extra_tables: int = parameter(
        1100,
        "How many tables of more variables are kept close too, those with the fewest cells first.",
        least=0,
        most=20_000,
    )
    sweeps: int = parameter(12, "How often the search visits every cell.", least=1)
    refresh: float = parameter(
        0.2,
        "At least this share of the cells beside another number is drawn in every later release.",
        least=0.01,
        most=1,
        before={"0.2.0": 0.05},
    )
    change_odds: float = parameter(
        0.5,
        "Most odds that a cell which differs from the release before has other records.",
        least=0.01,
        most=0.9,
        before={"0.2.0": 0.9},
    )
    known_changes: float = parameter(
        2.0,
        "By how much releases may change the odds of two counts to readers who know all changes; 0: no limit.",
        least=0,
        most=1000,
        before={"0.2.0": 0.0},
    )

    def check_together(self) -> None:
        """Each table has a variable, and no odds can shrink to less than they are."""
        if 0 < self.known_changes < 1:
            raise InputError(
                "The parameter 'known_changes' is a factor of 1 or more, or 0 for no limit."
            )
        for variables in (*self.tables, *self.known_totals):
            if not variables:
                raise InputError(
                    "Each of the agency's own tables is a list of variables, such as "
                    '["area:district", "sex"].'
                )

    @property
    def support(self) -> Support:
        """What a shown number leaves open, as everybody may know."""
        return Support(self.base, self.cells == "small", self.empty_share > 0)

    @property
    def abilities(self) -> Abilities:
        """One population for all tables; its finest cells show the base or more, or nothing."""
        return Abilities(
            repeatable=True,
            one_number=True,
            changed=changed_by_rounding(self.base),
            entropy=left_between_multiples(self.base),
        )

    def protect(
        self,
        cells: FinestCells,
        key: bytes,
        *,
        previous: FinestCells | None = None,
        progress: Progress | None = None,
        state: Path | None = None,
        held: Words | None = None,
        new_series: bool = False,
        processes: int = 1,
    ) -> PopulationResult:
        """Protect the finest cells of a dataset; all chance comes from the key and the record keys.

        ``previous`` is the ``memory`` of an earlier release of the same people. ``state`` names a file in
        which the search keeps where it stands after every sweep; called again with the same input it goes
        on from there and ends with the same bytes. ``held`` are numbers of occupied cells that show their
        upper number, because large sums are tied to them; see :mod:`lustrum.protect.magnitudes.carriers`.

        A release is refused if so many records changed that readers of both are right about them more often
        than ``change_odds``. With ``new_series`` readers may know which records changed, and it is made.
        ``processes`` is how many work on blocks side by side, where the description names some.
        """
        if len(key) < 16:
            raise InputError("The key of a protected population must have at least 16 bytes.")
        if not cells.possible.all():
            raise InputError(IMPOSSIBLE)

        def make(spec: ProtectedPopulation) -> PopulationResult:
            return spec._protect(cells, key, previous, state, held, processes)

        return self._checked(make, previous, progress, new_series)

    def protect_blocks(
        self,
        dataset: Dataset,
        key: bytes,
        work: Callable[[Whole], WholePopulation],
        *,
        previous: FinestCells | None = None,
        progress: Progress | None = None,
        new_series: bool = False,
    ) -> PopulationResult:
        """Protect the blocks of a dataset where its records are; ``work`` has it done, on a cluster."""

        def make(spec: ProtectedPopulation) -> PopulationResult:
            made = work(Whole(spec, dataset, key))
            return spec._of_blocks(made, made.true)

        return self._checked(make, previous, progress, new_series)

    def _of_blocks(self, made: WholePopulation, true: FinestCells) -> PopulationResult:
        return PopulationResult(
            made.cells, self._stated(made.public, true, made.cells), made.agency, made.memory
        )

    def _checked(
        self,
        make: Callable[[ProtectedPopulation], PopulationResult],
        previous: FinestCells | None,
        progress: Progress | None,
        new_series: bool,
    ) -> PopulationResult:
        """What is made, if it leaves readers as little as the policy demands."""
        with nullcontext() if progress is None else reporting_progress(progress):
            result = self._held_to_readers(make, previous is None)
        if not new_series:
            for apart in (result.agency.differences, *result.agency.blocks):
                self._require_hidden_changes(apart)
        return result

    def _require_hidden_changes(self, apart: Differences) -> None:
        """Refuse a release in which too few others can move beside the cells that changed."""
        revealed = apart.reveals(self.change_odds, self.base)
        if revealed is not None:
            cells, changed = revealed
            raise InputError(
                f"Too many records changed since the earlier release to hide which: of {cells:,} cells that "
                f"show another number {changed:,} changed, more than change_odds = {self.change_odds:g} "
                "allows. If readers may know which records changed, say that a new series begins "
                "(--new-series, in Python new_series=True); if the earlier release was never published, say so "
                "(--never-published)."
            )

    def _held_to_readers(
        self, make: Callable[[ProtectedPopulation], PopulationResult], is_first: bool
    ) -> PopulationResult:
        """Protect, and refuse or take a larger base if too few counts are left to people of a cell."""
        needed = base_needed(self.coalition, self.min_left)
        larger = self.if_fewer == "larger-base" and is_first
        if self.if_fewer == "report":
            return make(self)
        if self.base < needed and not larger:
            raise InputError(
                f"A cell that shows 0 leaves {max(self.base - self.coalition, 0)} counts to {self.coalition} "
                f"people of it, and the policy demands {self.min_left}; take the base {needed} or more."
            )
        spec = replace(self, base=max(self.base, needed))
        for _ in range(_MENDS):
            result = make(spec)
            left = left_to(
                result.cells, result.public.support, result.public.known, self.coalition
            ).fewer_than(self.min_left)
            if not left:
                return result
            if not larger:
                break
            spec = replace(spec, base=spec.base + 1)
        raise InputError(
            f"Exact totals that are public elsewhere leave fewer than {self.min_left} counts for some finest "
            "cells; take a larger base, or known totals of larger areas."
        )

    def _protect(
        self,
        cells: FinestCells,
        key: bytes,
        previous: FinestCells | None,
        state: Path | None,
        held: Words | None,
        processes: int,
    ) -> PopulationResult:
        if Division.of(cells.dataset) is not None:
            whole = Whole(self, cells.dataset, key)
            runner = LocalRunner(whole, cells, previous, held, state, processes)
            folder = None if state is None else state.parent
            return self._of_blocks(protected_by(runner, whole, previous, folder), cells)
        if processes > 1:
            raise InputError(
                "Several processes work on blocks, and the description names none; write for instance "
                'blocks = "area:region" in [dataset], or leave --processes out.'
            )
        stages = self._stages(cells)
        still_working()
        prepared = self.prepared(cells, key, previous, held)
        file = (
            None
            if state is None
            else StateFile(state, key, self.to_mapping(), cells, previous, held)
        )
        plan = stages[-1].plan
        searched = search(
            prepared.problem,
            stages,
            int.from_bytes(derived(key, "search")[:8], "big"),
            resume=None if file is None else file.load(),
            keep=None if file is None else file.keep,
        )
        # The search needs most memory, so that what does not wait for it comes after it all the same.
        report_progress("measuring errors", 0.0)
        truth = true_counts(plan, prepared.every.codes, prepared.every.counts)
        still_working()
        numbers = prepared.numbers(searched.up)
        memory = prepared.memory(numbers)
        shown = memory.where(memory.counts > 0)
        support = replace(self.support, wide=memory.wide)
        still_working()
        public, agency = side_by_side(
            lambda: public_report(
                self.to_mapping(), support, plan, prepared.every, memory, searched, key, truth
            ),
            lambda: agency_report(
                support,
                prepared.every,
                memory,
                ControlledErrors.of(plan, searched.errors, truth),
                searched.moves,
                prepared.begun(numbers),
                differences(previous, memory, self.base),
                self.known_changes,
            ),
        )
        rows = coverage_rows(plan, searched.errors, truth)
        agency = replace(agency, coverage=coverage_of(rows, public))
        report_progress("measuring errors", 1.0)
        result = PopulationResult(shown, self._stated(public, cells, shown), agency, memory)
        if file is not None:
            file.remove()
        return result

    def prepared(
        self, cells: FinestCells, key: bytes, previous: FinestCells | None, held: Words | None
    ) -> Prepared:
        """What the search begins with: which cells may show which numbers, and where each starts."""
        prepared = prepare(
            cells,
            key,
            base=self.base,
            small_only=self.cells == "small",
            empty_share=self.empty_share,
            previous=previous,
            refresh=self.refresh,
            change_odds=self.change_odds,
            known_changes=self.known_changes,
            held=held,
            sparse_siblings=self.sparse_siblings,
        )
        if self.known_changes and self.cells == "small" and prepared.kept.changed:
            raise InputError(
                'With cells = "small" counts from the base on are exact, so that somebody who adds records of '
                "their own to a cell learns what it held: no limit 'known_changes' holds. Move all cells; or "
                "take the preset 'proven', which bounds this reader by the rho of all releases; or state "
                "known_changes = 0."
            )
        return prepared

    def _stated(self, public: PublicReport, cells: FinestCells, shown: FinestCells) -> PublicReport:
        """The public report with exact totals that are public elsewhere, and the version of the search."""
        return replace(
            public,
            known=known_totals(cells, self.known_totals),
            search=self._search_version(shown),
        )

    def _search_version(self, shown: FinestCells) -> int:
        """The version of the search; it follows from what is public, never from the records."""
        siblings, dataset = self.sparse_siblings, shown.dataset
        if siblings == "auto":
            siblings = siblings_of(dataset, int(shown.counts.sum()))
        return search_version(self.sweeps, max(len(v.codes) for v in dataset.variables), siblings)

    def _stages(self, cells: FinestCells) -> tuple[Stage, ...]:
        """The stages of the search."""
        return self.schedule.stages(cells.dataset)

    @property
    def schedule(self) -> Schedule:
        """What the search does with these parameters."""
        return Schedule(
            self.base,
            self.sweeps,
            self.max_variables,
            self.tables,
            self.own_weight,
            self.extra_tables,
        )
