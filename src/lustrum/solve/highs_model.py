"""The one place where a program is written down for HiGHS.

Every model runs quietly in one thread with a fixed seed, so the same questions in the same order get the same
answers on every machine.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import highspy
import numpy as np
import numpy.typing as npt

__all__ = ["highs_model", "set_options"]

# scipy ships no types; this stands for scipy.sparse.csr_array.
Sparse: TypeAlias = Any

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
    made = matrix.tocsc().astype(np.float64)
    lp = highspy.HighsLp()
    lp.num_row_, lp.num_col_ = made.shape
    lp.col_cost_ = np.zeros(made.shape[1]) if cost is None else np.asarray(cost, np.float64)
    lp.col_lower_, lp.col_upper_ = (np.asarray(end, np.float64) for end in columns)
    lp.row_lower_, lp.row_upper_ = (np.asarray(end, np.float64) for end in rows)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_ = made.indptr.astype(np.int32)
    lp.a_matrix_.index_ = made.indices.astype(np.int32)
    lp.a_matrix_.value_ = made.data
    if whole is not None:
        kinds = np.full(made.shape[1], highspy.HighsVarType.kContinuous)
        kinds[whole] = highspy.HighsVarType.kInteger
        lp.integrality_ = kinds.tolist()
    model = highspy.Highs()  # type: ignore[no-untyped-call]
    set_options(model, **(_QUIET | options))
    if model.passModel(lp) == highspy.HighsStatus.kError:
        raise RuntimeError("HiGHS did not take the program; a bound or an entry is not a number.")
    return model


def set_options(model: Any, **options: object) -> None:
    """Set options of HiGHS by their own names."""
    for name, value in options.items():
        model.setOptionValue(name, value)
