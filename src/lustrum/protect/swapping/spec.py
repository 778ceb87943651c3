"""Record swapping, random or targeted, of households or people (Dalenius and Reiss 1982; Shlomo 2007).

Pairs of households that are alike trade their geography; nothing else about them changes. So every table
without geography stays as it is, every area keeps its number of households, and a table of geography by what
partners have in common stays too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Mask
from lustrum.model.chance import Seed, required_generator
from lustrum.model.channel import MatrixChannel, swapping_channel
from lustrum.model.parameters import floats, one_or_more, pairs, parameter
from lustrum.model.records import Records
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities
from lustrum.protect.entropy_left import left_by_leaving_together
from lustrum.protect.method import MICRODATA, RecordMethodSpec, Stage, marked_records, released
from lustrum.protect.microdata import anything, exact_cells, variables_of
from lustrum.protect.swapping.run import Swapped, SwapPlan, swap


def _profiles(value: object) -> Any:
    """Lists of names; a plain list of names is a list of one."""
    given = one_or_more(value)
    if not isinstance(given, (list, tuple)):
        return given
    plain = given and all(isinstance(one, str) for one in given)
    return (given,) if plain else tuple(map(one_or_more, given))


def _rates(value: object) -> Any:
    """Rates by area, in the order of their codes."""
    given = floats(pairs(value))
    return tuple(sorted(given, key=str)) if isinstance(given, tuple) else given


@dataclass(frozen=True)
class RecordSwapping(RecordMethodSpec):
    """Households trade places with others like them.

    ``rate`` counts both partners, and 0 in ``rates`` leaves an area alone. Partners live in different areas.
    Households with a member who has one of the ``no_swap`` codes stay. Without a ``household`` ("" in a policy
    file) each record moves on its own.

    With ``target = "risk"`` those at risk move first: households with a member whose combination of some
    ``risk_on`` variables fewer than ``k`` people of the place share, counted by ``weight`` in a sample.
    The check runs level by level, from the coarsest of ``levels`` down to the finest areas. A household
    that is unsafe at a level moves to another area of that level and, if it finds a partner, within its
    area of the level above. The rarest come first, and the rest of the rate is made up at random.

    >>> RecordSwapping(control=("household_size",), similar=(("age", "sex"), ("age",))).kept_variables
    ('age', 'household_size')
    """

    name: ClassVar[str] = "record-swapping"
    stages: ClassVar[tuple[Stage, ...]] = MICRODATA

    geography: str | tuple[str, ...] = parameter(
        ("area",),
        "The variables that partners trade, the finest areas first.",
        brief=True,
        once=True,
        read=one_or_more,
    )
    household: str | None = parameter(
        "household",
        "The identifier of households; without it, records move one by one.",
        brief=True,
        read=lambda name: None if name == "" else name,
        write=lambda name: name or "",
    )
    rate: float = parameter(0.1, "The share of households that move.", least=0, most=1)
    control: tuple[str, ...] = parameter(
        (), "Variables in which partners agree.", brief=True, once=True, read=one_or_more
    )
    similar: tuple[tuple[str, ...], ...] = parameter(
        (), "Profiles in one of which partners agree, tried in order.", brief=True, read=_profiles
    )
    same_size: bool = parameter(True, "Whether members of partners agree one by one.", brief=True)
    within: str | None = parameter(
        None, "A level of the geography whose areas nobody leaves.", brief=True
    )
    target: Literal["random", "risk"] = parameter(
        "random", "Whether households move at random or those at risk first.", brief=True
    )
    risk_on: tuple[tuple[str, ...], ...] = parameter(
        (), "Combinations of variables that identify.", brief=True, read=_profiles
    )
    k: int = parameter(
        3, "Fewer people than this with a combination are at risk.", least=2, brief=True
    )
    levels: tuple[str, ...] = parameter(
        (),
        "Levels of the geography at which risk is checked, the coarsest first.",
        brief=True,
        once=True,
        read=one_or_more,
    )
    all_unsafe: bool = parameter(
        False, "Whether all at risk move, even beyond the rate.", brief=True
    )
    weight: str | None = parameter(
        None, "The weight by which people are counted in a sample.", brief=True
    )
    rates: Mapping[str, float] | tuple[tuple[str, float], ...] = parameter(
        (), "Rates for some areas.", least=0, most=1, brief=True, read=_rates, write=dict
    )
    no_swap: tuple[str, ...] = parameter(
        (), "Codes whose households stay.", brief=True, once=True, read=one_or_more
    )
    no_swap_variable: str | None = parameter(None, "The variable of these codes.", brief=True)
    values: int = parameter(
        11, "How many values the channel of a release tells apart.", least=2, brief=True
    )

    def check_together(self) -> None:
        """Somebody moves, and partners agree in what they do not trade."""
        if not any((self.rate, *self.own_rates.values())) and not self.all_unsafe:
            raise InputError(
                "Record swapping at the rate 0 moves nobody; give a 'rate' above 0 and up to 1."
            )
        if not self.traded:
            raise InputError("Record swapping needs a geography, such as 'area'.")
        for profile in (*self.similar, *self.risk_on):
            if len(set(profile)) < len(profile):
                raise InputError(
                    "A profile or a combination of record swapping names a variable twice; name each once."
                )
        if self.target == "risk" and not self.risk_on:
            raise InputError(
                "Targeted record swapping needs 'risk_on': combinations of variables that identify."
            )
        if bool(self.no_swap) != (self.no_swap_variable is not None):
            raise InputError("'no_swap' lists codes of 'no_swap_variable'; give both or neither.")
        if self.traded[0] in {*self.control, *(v for p in self.similar for v in p)}:
            raise InputError(
                f"{self.traded[0]!r} is traded, so partners cannot agree in it; use 'within'."
            )

    @property
    def abilities(self) -> Abilities:
        """At least the lowest rate of any area moves; two people of one household move together.

        Partners who must agree in other variables may agree in all: then nothing is certain to change.
        """
        alike = bool(self.no_swap or self.control or any(self.similar))
        lowest = 0.0 if alike else min((self.rate, *self.own_rates.values()))
        return Abilities(repeatable=True, changed=lowest, entropy=left_by_leaving_together(lowest))

    @property
    def traded(self) -> tuple[str, ...]:
        """The variables that partners trade, the finest areas first."""
        return (self.geography,) if isinstance(self.geography, str) else self.geography

    @property
    def needed_variables(self) -> tuple[str, ...]:
        """The variables that a dataset must have."""
        profiles = (name for profile in (*self.similar, *self.risk_on) for name in profile)
        unmoved = () if self.no_swap_variable is None else (self.no_swap_variable,)
        return (*self.traded, *self.control, *profiles, *unmoved)

    @property
    def own_rates(self) -> dict[str, float]:
        return dict(self.rates)

    @property
    def kept_variables(self) -> tuple[str, ...]:
        """The variables in which partners always agree: geography crossed with all of these stays true.

        Counts of people are kept with ``keeps_people``; the number of households of each area always is.
        """
        shared = set.intersection(*map(set, self.similar)) if self.similar else set()
        return tuple(sorted({*self.control, *shared}))

    @property
    def keeps_people(self) -> bool:
        """Whether every area keeps its number of people, not that of households alone."""
        return self.same_size or self.household is None

    @property
    def plan(self) -> SwapPlan:
        """The plan of a swap with these parameters."""
        shared = {f.name: getattr(self, f.name) for f in fields(SwapPlan) if hasattr(self, f.name)}
        return SwapPlan(**shared, area_rates=self.own_rates)

    def change(self, records: Records, rng: np.random.Generator) -> Records:
        return self.swap(records, rng).records

    def swap(self, records: Records, rng: Seed, keep: npt.ArrayLike = ()) -> Swapped:
        """The same with the agency's own report; households whose ids are in ``keep`` do not move.

        The result does not depend on the order of the records: random choices follow household ids or, for
        people, record keys or record ids. People without either are taken in the given order.
        """
        chance = required_generator(rng)
        swapped = swap(self.plan, records, chance, np.asarray(keep, dtype=np.int64))
        return replace(swapped, records=marked_records(swapped.records, chance))

    def publish(self, table: Table) -> Release:
        """A table counted from swapped records, with what is known of it.

        Without geography it is exact, and so is geography by variables in which partners agree: there
        swapping protects nothing. Elsewhere the channel is what Shlomo, Antal and Elliot (2015, section
        4.2) assume of an intruder, at the lowest rate of any area. What swapping does to a cell depends on
        all others, so the channel is an assumption; the bounds hold for certain.
        """
        exact = self._exact(table)
        low, high = anything(table, exact)
        channel = None
        if table.kind == "count" and not table.decimals:
            rate = min((self.rate, *self.own_rates.values()))
            channel = (
                MatrixChannel([[1.0]], residue_base=1)
                if exact.all()
                else swapping_channel(rate, self.values)
            )
        return released(
            table,
            self,
            table.values,
            low=low,
            high=high,
            channel=channel,
            notes=(
                say(
                    "Before counting, households traded places with others like them in another area."
                ),
                say("Swapping does not change this table: its numbers are the true ones.")
                if exact.all()
                else say(
                    "Numbers by area may differ from the true ones; those of all areas are true."
                ),
            ),
        )

    def _exact(self, table: Table) -> Mask:
        query = table.provenance.get("query", {})
        rest = variables_of(table) - set(self.traded)
        counts = table.kind == "count" and "weight" not in query and not table.decimals
        if counts and self.keeps_people and rest <= set(self.kept_variables):
            return np.ones(table.shape, dtype=np.bool_)
        moved: dict[str, str | None] = dict.fromkeys(self.traded)
        moved[self.traded[0]] = self.within
        return exact_cells(table, moved)


# The channel of a swap, counted from the cells of a table, for the agency's own risk measures.


def estimate_channel(before: Table, after: Table, cap: int = 10) -> MatrixChannel:
    """``P(after | before)``: the share of the inner cells of each value that take each other value.

    The values are 0, 1, ..., ``cap``, where the last one includes all above. A value that no cell has
    stays. The result is made from confidential counts and must never be released.

    >>> true = Table.from_counts([1, 1, 1, 1, 2, 0])
    >>> estimate_channel(true, Table.from_counts([1, 1, 1, 2, 2, 0]), cap=2).matrix.tolist()
    [[1.0, 0.0, 0.0], [0.0, 0.75, 0.25], [0.0, 0.0, 1.0]]
    """
    if type(cap) is not int or cap < 1:
        raise InputError(f"The largest value of a channel is a whole number from 1, not {cap!r}.")
    if [axis.codes for axis in before.axes] != [axis.codes for axis in after.axes]:
        raise InputError("The tables before and after swapping must have the same categories.")
    if not before.kind == after.kind == "count" or before.decimals or after.decimals:
        raise InputError("A channel is estimated from tables of whole counts.")
    true = np.minimum(before.values[before.inner], cap)
    shown = np.minimum(after.values[after.inner], cap)
    cells = np.bincount(true * (cap + 1) + shown, minlength=(cap + 1) ** 2)
    matrix = cells.reshape(cap + 1, cap + 1).astype(np.float64)
    total = matrix.sum(axis=1, keepdims=True)
    matrix = np.where(total > 0, matrix / np.maximum(total, 1), np.eye(cap + 1))
    return MatrixChannel(matrix, residue_base=1)
