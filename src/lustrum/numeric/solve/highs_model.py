"""The one place where a program is written down for HiGHS.

Every model runs quietly in one thread with a fixed seed, so the same questions in the same order get the same
answers on one kind of processor. On another kind the solver may stop at another of several optima, or after
another number of steps. So what is published depends on optima that are the only ones and on no count of steps:
small irregular costs (:func:`single_optimum`) choose among the best.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import highspy
import numpy as np
import numpy.typing as npt

from lustrum.model.arrays import Floats
from lustrum.numeric.solve.products import power_of_two
from lustrum.numeric.solve.running import run

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any

FINE = 1e-10  # what a solver is asked to tell apart where one optimum must be the only one
_LARGEST = 2.0**12  # the largest cost in a program with small costs added
_SMALL = 2.0**-9  # these: far above what a solver tells apart
SIMPLEX: dict[str, object] = {"presolve": "off", "solver": "simplex", "simplex_strategy": 1}
"""Options of linear programs that go on from each other by the dual method."""
_QUIET = {"output_flag": False, "threads": 1, "parallel": "off", "random_seed": 0}


def highs_model(
    matrix: Sparse,
    rows: tuple[npt.ArrayLike, npt.ArrayLike],
    columns: tuple[npt.ArrayLike, npt.ArrayLike],
    cost: npt.ArrayLike | None = None,
    whole: npt.NDArray[np.intp] | None = None,
    **options: object,
) -> Any:
    """A HiGHS model of ``rows[0] <= matrix @ x <= rows[1]`` and ``columns[0] <= x <= columns[1]``.

    ``cost`` is minimised and is 0 if left out; the columns in ``whole`` take whole numbers only.
    """
    csc = matrix.tocsc().astype(np.float64)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = csc.shape
    lp.col_cost_ = np.zeros(csc.shape[1]) if cost is None else np.asarray(cost, np.float64)
    lp.col_lower_, lp.col_upper_ = (np.asarray(end, np.float64) for end in columns)
    lp.row_lower_, lp.row_upper_ = (np.asarray(end, np.float64) for end in rows)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = csc.indptr.astype(np.int32)
    lp.a_matrix_.index_ = csc.indices.astype(np.int32)
    lp.a_matrix_.value_ = csc.data
    if whole is not None:
        kinds = np.full(csc.shape[1], highspy.HighsVarType.kContinuous)
        kinds[whole] = highspy.HighsVarType.kInteger
        lp.integrality_ = kinds.tolist()
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    set_options(model, **(_QUIET | options))
    if model.passModel(lp) == highspy.HighsStatus.kError:
        raise RuntimeError("HiGHS did not take the program; a bound or an entry is not a number.")
    return model


def single_optimum(cost: Floats) -> Floats:
    """Costs in another unit with small ones added, so that no two vertices cost the same."""
    largest = float(np.abs(cost).max(initial=1.0)) or 1.0
    chance = 1.0 + np.random.default_rng(cost.size).random(cost.size)
    return np.asarray(cost * (_LARGEST / power_of_two(largest)) + chance * _SMALL)


def solved(model: Any) -> npt.NDArray[np.float64] | None:
    """Run a model: its point, or None where it has none or the solver did not end by itself."""
    run(model)
    if model.getModelStatus() != highspy.HighsModelStatus.kOptimal:
        return None
    return np.array(model.getSolution().col_value)


def is_infeasible(model: Any) -> bool:
    """Whether a model that was run has been shown to have no point."""
    return bool(model.getModelStatus() == highspy.HighsModelStatus.kInfeasible)


def set_options(model: Any, **options: object) -> None:
    """Set options of HiGHS by their own names."""
    for name, value in options.items():
        model.setOptionValue(name, value)
