"""Post-randomisation, PRAM (Gouweleeuw, Kooiman, Willenborg and De Wolf 1998).

Every record's code of a variable is drawn anew from the row of a transition matrix: ``P[a, b]`` is the
probability that code ``a`` becomes ``b``. Readers can estimate true frequencies without bias
(:func:`estimate`); the invariant kind changes the matrix so that published frequencies are right on
average.
"""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from lustrum.model import InputError, Release, Table
from lustrum.model.arrays import Floats, Ints
from lustrum.model.channel import MatrixChannel
from lustrum.model.dataset import Dataset
from lustrum.model.parameters import floats, one_or_more, parameter
from lustrum.model.records import Records
from lustrum.model.text import say
from lustrum.protect.abilities import Abilities, changed_by_leaving
from lustrum.protect.entropy_left import left_by_row, left_by_two_codes
from lustrum.protect.method import MICRODATA, RecordMethodSpec, Stage, released
from lustrum.protect.microdata import anything, canonical_order, combined, exact_cells
from lustrum.protect.perturbation.lookup import invariant

_SINGULAR = 1e12


def _one_or_several(value: Any) -> Any:
    """A list of one variable is that variable."""
    one = isinstance(value, (list, tuple)) and len(value) == 1 and isinstance(value[0], str)
    return value[0] if one else value


@dataclass(frozen=True)
class PostRandomisation(RecordMethodSpec):
    """The codes of a variable, or of several, changed at random.

    Each code stays with probability ``stay`` and otherwise becomes any other code with equal probability;
    or ``matrix`` gives the probabilities. Several variables change independently, or with ``joint`` as one
    variable of all their combinations, the last changing fastest. ``level`` names a level of the variable's
    hierarchies within whose categories codes change; a code alone in its category stays.

    ``invariant`` draws twice, the second time back towards the true frequencies, within each combination of
    the ``strata`` variables: frequencies are then right on average. ``controlled`` makes the number of
    records that change from one code to another differ by less than 1 from its mean; the probabilities of
    each record stay the same.

    >>> PostRandomisation("sex", stay=0.8).to_mapping()
    {'method': 'post-randomisation', 'variable': 'sex', 'stay': 0.8}
    """

    name: ClassVar[str] = "post-randomisation"
    stages: ClassVar[tuple[Stage, ...]] = MICRODATA

    variable: str | tuple[str, ...] = parameter(
        MISSING, "The variable whose codes change, or several.", read=_one_or_several, once=True
    )
    stay: float = parameter(0.9, "The probability that a code stays.", least=0, below=1)
    matrix: tuple[tuple[float, ...], ...] | None = parameter(
        None, "The probabilities of all changes, one row a code.", read=floats
    )
    level: str | None = parameter(
        None, "A level of the classification that no code leaves.", brief=True
    )
    strata: tuple[str, ...] = parameter(
        (),
        "Variables within whose categories codes change.",
        brief=True,
        once=True,
        read=one_or_more,
    )
    joint: bool = parameter(False, "Whether several variables change together.", brief=True)
    invariant: bool = parameter(False, "Whether frequencies stay the same on average.", brief=True)
    controlled: bool = parameter(False, "Whether as many records change as expected.", brief=True)

    def check_together(self) -> None:
        """A matrix, a level and strata must fit the variables."""
        variables = self.variables
        if not variables:
            raise InputError("Post-randomisation needs a variable.")
        if self.matrix is not None:
            if (np.diagonal(_square(self.matrix)) == 1).all():
                raise InputError("The matrix of post-randomisation leaves every code as it is.")
            if len(variables) > 1 and not self.joint:
                raise InputError("A matrix is for one variable, or for several with 'joint'.")
        if self.level is not None and (self.matrix is not None or len(variables) > 1):
            raise InputError("A level is for one variable without a matrix of its own.")
        if set(self.strata) & set(variables):
            raise InputError("A variable that is changed cannot be one of the strata.")

    @property
    def variables(self) -> tuple[str, ...]:
        return (self.variable,) if isinstance(self.variable, str) else self.variable

    @property
    def needed_variables(self) -> tuple[str, ...]:
        return (*self.variables, *self.strata)

    @property
    def abilities(self) -> Abilities:
        """Of what is drawn back, or lies alone in its category, nothing is certain to change."""
        if self.invariant or self.level is not None:
            return Abilities(repeatable=True)
        stay, left = self.stay, left_by_two_codes(self.stay)
        if self.matrix is not None:
            stay = max(row[index] for index, row in enumerate(self.matrix))
            left = float(left_by_row(np.array(self.matrix)).min())
        elif not self.joint:
            for _ in self.variables[1:]:
                stay = stay * self.stay
        return Abilities(repeatable=True, changed=changed_by_leaving(1.0 - stay), entropy=left)

    def matrix_of(self, dataset: Dataset, *variables: str) -> Floats:
        """The transition matrix of a variable, or of combinations of several, without any invariance."""
        sizes = [len(dataset.variable(name).codes) for name in variables]
        size = int(np.prod(sizes))
        if size < 2:
            raise InputError(
                f"Post-randomisation cannot change {' x '.join(variables)}, which has one code only."
            )
        if self.matrix is not None:
            if len(self.matrix) != size:
                raise InputError(
                    f"The matrix of post-randomisation has {len(self.matrix)} rows; "
                    f"{' x '.join(variables)} has {size} codes."
                )
            return np.array(self.matrix)
        alike = np.ones((size, size), dtype=np.bool_)
        if self.level is not None:
            group = np.zeros(size, dtype=np.int64)
            for i, category in enumerate(
                dataset.variable(variables[0]).level(self.level).categories
            ):
                group[list(category.members)] = i
            alike = group[:, None] == group[None, :]
        others = alike.sum(axis=1) - 1
        share = np.where(others > 0, (1 - self.stay) / np.maximum(others, 1), 0.0)
        out = np.where(alike, share[:, None], 0.0)
        np.fill_diagonal(out, np.where(others > 0, self.stay, 1.0))
        return out

    def change(self, records: Records, rng: np.random.Generator) -> Records:
        """Draw the codes anew, in the order of record keys or ids, not of the rows."""
        order = canonical_order(records)
        strata = combined(records, self.strata)[order]
        parts = [self.variables] if self.joint else [(name,) for name in self.variables]
        for part in parts:
            sizes = tuple(len(records.dataset.variable(name).codes) for name in part)
            codes = np.ravel_multi_index(tuple(records.codes[n][order] for n in part), sizes)
            drawn = self._drawn(codes, strata, self.matrix_of(records.dataset, *part), rng)
            back = np.empty_like(drawn)
            back[order] = drawn
            columns = dict(zip(part, np.unravel_index(back, sizes), strict=True))
            records = records.with_codes(**columns)
        return records

    def _drawn(self, codes: Ints, strata: Ints, matrix: Floats, rng: np.random.Generator) -> Ints:
        chance = rng.random(codes.size)
        size = len(matrix)
        both = strata * size + codes
        by_row = np.argsort(both, kind="stable")
        ends = np.flatnonzero(np.diff(both[by_row], append=-1)) + 1
        there = np.bincount(both, minlength=(int(strata.max(initial=0)) + 1) * size)
        rows = matrix
        now = -1
        out = np.empty(codes.size, dtype=np.int64)
        begin = 0
        for end in ends.tolist():
            records = by_row[begin:end]
            stratum, code = divmod(int(both[records[0]]), size)
            if self.invariant and stratum != now:
                rows = invariant(matrix, there[stratum * size : (stratum + 1) * size])
                now = stratum
            u = chance[records]
            if self.controlled:
                rank = np.empty(u.size)
                rank[np.argsort(u, kind="stable")] = np.arange(u.size)
                u = (rank + rng.random()) / u.size
            steps = np.cumsum(rows[code])
            steps[np.flatnonzero(rows[code])[-1] :] = (
                np.inf
            )  # rounding must not allow a change of probability 0
            out[records] = np.searchsorted(steps, u, side="right")
            begin = end
        return out

    def publish(self, table: Table) -> Release:
        """A table counted from changed records: exact where no changed variable is part of it.

        What a cell shows depends on all cells along the changed variable, so there is no channel of a cell
        alone; with the matrix, :func:`estimate` works on the whole line.
        """
        exact = exact_cells(table, dict.fromkeys(self.variables) | self._unmoved)
        low, high = anything(table, exact)
        said = ", ".join(self.variables)
        return released(
            table,
            self,
            table.values,
            low=low,
            high=high,
            notes=(
                say(
                    "Before counting, codes of {names} were changed at random in some records.",
                    names=said,
                ),
                say("That does not change this table: its numbers are the true ones.")
                if exact.all()
                else say("The numbers are right on average.")
                if self.invariant
                else say(
                    "The numbers are not right on average; the matrix of changes tells how to estimate "
                    "the true ones."
                ),
            ),
        )

    @property
    def _unmoved(self) -> dict[str, str | None]:
        return {} if self.level is None else {self.variables[0]: self.level}

    def to_mapping(self) -> dict[str, Any]:
        """The method in the words of a policy file; a matrix stands in place of the probability to stay."""
        words = super().to_mapping()
        if self.matrix is not None:
            del words["stay"]
        return words


@dataclass(frozen=True, eq=False)
class PramEstimate:
    """Estimated true counts and their standard errors, given the true counts."""

    values: Floats
    standard_error: Floats


def estimate(counts: npt.ArrayLike, matrix: npt.ArrayLike, axis: int = 0) -> PramEstimate:
    """Unbiased estimates of the true counts along the axis of a changed variable.

    With ``A`` the inverse of the transposed matrix, ``A T*`` has mean ``T``, and its variance is estimated
    by ``sum_b A[a, b]**2 T*[b] - (A T*)[a]``, for records that change independently (Gouweleeuw et al.
    1998). Estimates may be negative. After controlled changes the errors are smaller than these.

    >>> estimate([65, 45], [[0.9, 0.1], [0.2, 0.8]]).values.round(3).tolist()
    [61.429, 48.571]
    """
    rows = _square(matrix)
    shown = np.moveaxis(np.asarray(counts, dtype=np.float64), axis, 0)
    if shown.shape[0] != len(rows):
        raise InputError(
            f"The axis has {shown.shape[0]} categories and the matrix {len(rows)} rows; they must match."
        )
    back = _inverted(rows.T)
    if back is None:
        raise InputError(
            "The matrix of changes cannot be inverted; nothing can be estimated from it."
        )
    values, spread = np.zeros(shown.shape), np.zeros(shown.shape)
    for code, counted in enumerate(shown):  # in one order, the same on every machine
        way = back[:, code].reshape(-1, *[1] * counted.ndim)
        values = values + way * counted
        spread = spread + way * way * counted
    variance = spread - values
    return PramEstimate(
        np.moveaxis(values, 0, axis), np.moveaxis(np.sqrt(np.maximum(variance, 0)), 0, axis)
    )


def _inverted(matrix: Floats) -> Floats | None:
    """The inverse by elimination, row after row; ``None`` where there is none, or hardly."""
    size = len(matrix)
    table = np.hstack((matrix, np.eye(size)))
    for column in range(size):
        row = column + int(np.abs(table[column:, column]).argmax())
        if table[row, column] == 0:
            return None
        table[[column, row]] = table[[row, column]]
        table[column] = table[column] / table[column, column]
        others = np.arange(size) != column
        table[others] = table[others] - table[others, column][:, None] * table[column]
    inverse = table[:, size:]
    widest = np.abs(matrix).sum(axis=1).max() * np.abs(inverse).sum(axis=1).max()
    return inverse if widest <= _SINGULAR else None


def _square(matrix: npt.ArrayLike) -> Floats:
    """A square transition matrix of codes."""
    rows = MatrixChannel(matrix).matrix
    if rows.shape[0] != rows.shape[1]:
        raise InputError("A matrix of codes must be square: one row and one column per code.")
    return rows
