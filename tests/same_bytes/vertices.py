"""HiGHS with rows and columns in another order: it takes another way, to another of several optima.

What goes in is put into the other order, and what comes out is put back, so that nothing but the solver's
choices differs. The order depends on the seed and on the program alone.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

Order = np.ndarray
SAME = {
    "run", "getModelStatus", "getInfo", "getRunTime", "clearSolver", "enableCallbacks",
    "cbSimplexInterrupt", "cbIpmInterrupt", "cbMipInterrupt",
}  # fmt: skip


class Shuffled:
    """Stands for one model of HiGHS. What has nothing to do with the order is the model's own."""

    def __init__(self, model: Any, seed: int) -> None:
        self.model, self.seed = model, seed
        # The place of each row and column inside the model.
        self.rows: Order = np.zeros(0, dtype=np.int32)
        self.columns: Order = np.zeros(0, dtype=np.int32)
        self.luck = np.random.default_rng(seed)

    def __getattr__(self, name: str) -> Any:
        if name not in SAME:
            raise AttributeError(f"the shim does not know in which order {name} counts")
        return getattr(self.model, name)

    def setOptionValue(self, name: str, value: Any) -> Any:
        return self.model.setOptionValue(name, self.seed if name == "random_seed" else value)

    def passModel(self, lp: Any) -> Any:
        start = whole(lp.a_matrix_.start_)
        index, value = whole(lp.a_matrix_.index_), np.asarray(lp.a_matrix_.value_)
        self.luck = np.random.default_rng(
            [self.seed, zlib.crc32(start.tobytes() + index.tobytes())]
        )
        self.rows = self.luck.permutation(lp.num_row_).astype(np.int32)
        self.columns = self.luck.permutation(lp.num_col_).astype(np.int32)
        for name in ("col_cost_", "col_lower_", "col_upper_"):
            setattr(lp, name, inside(getattr(lp, name), self.columns))
        for name in ("row_lower_", "row_upper_"):
            setattr(lp, name, inside(getattr(lp, name), self.rows))
        if len(lp.integrality_):
            kinds = list(lp.integrality_)
            lp.integrality_ = [kinds[k] for k in np.argsort(self.columns, kind="stable")]
        spans = [slice(start[k], start[k + 1]) for k in np.argsort(self.columns, kind="stable")]
        sizes = [span.stop - span.start for span in spans]
        lp.a_matrix_.start_ = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        if spans:
            lp.a_matrix_.index_ = self.rows[np.concatenate([index[span] for span in spans])]
            lp.a_matrix_.value_ = np.concatenate([value[span] for span in spans])
        return self.model.passModel(lp)

    def changeColsCost(self, count: int, which: Any, cost: Any) -> Any:
        return self.model.changeColsCost(count, self.columns[whole(which)], cost)

    def changeColsBounds(self, count: int, which: Any, low: Any, high: Any) -> Any:
        return self.model.changeColsBounds(count, self.columns[whole(which)], low, high)

    def changeColsIntegrality(self, count: int, which: Any, kinds: Any) -> Any:
        return self.model.changeColsIntegrality(count, self.columns[whole(which)], kinds)

    def changeColCost(self, column: int, cost: float) -> Any:
        return self.model.changeColCost(int(self.columns[column]), cost)

    def changeColBounds(self, column: int, low: float, high: float) -> Any:
        return self.model.changeColBounds(int(self.columns[column]), low, high)

    def changeRowBounds(self, row: int, low: float, high: float) -> Any:
        return self.model.changeRowBounds(int(self.rows[row]), low, high)

    def addRows(
        self, count: int, low: Any, high: Any, entries: int, start: Any, index: Any, value: Any
    ) -> Any:
        order = self.luck.permutation(count)
        ends = np.append(start, entries)
        spans = [slice(ends[k], ends[k + 1]) for k in order]
        sizes = [0, *(span.stop - span.start for span in spans)]
        every = np.concatenate([np.arange(s.start, s.stop) for s in spans]).astype(np.int64)
        place = np.argsort(order, kind="stable").astype(np.int32)
        self.rows = np.append(self.rows, self.rows.size + place).astype(np.int32)
        begin = np.cumsum(sizes)[:-1].astype(np.int32)
        new = self.columns[whole(index)[every]]
        return self.model.addRows(count, low[order], high[order], entries, begin, new, value[every])

    def addCol(
        self, cost: float, low: float, high: float, entries: int, index: Any, value: Any
    ) -> Any:
        self.columns = np.append(self.columns, self.columns.size).astype(np.int32)
        return self.model.addCol(cost, low, high, entries, self.rows[whole(index)], value)

    def deleteRows(self, count: int, which: Any) -> Any:
        gone = np.sort(self.rows[whole(which)]).astype(np.int32)
        kept = np.delete(self.rows, whole(which))
        self.rows = (kept - np.searchsorted(gone, kept)).astype(np.int32)
        return self.model.deleteRows(count, gone)

    def setSolution(self, known: Any) -> Any:
        known.col_value = inside(known.col_value, self.columns)
        return self.model.setSolution(known)

    def getSolution(self) -> Any:
        found = self.model.getSolution()
        for name, order in (
            ("col_value", self.columns), ("col_dual", self.columns),
            ("row_value", self.rows), ("row_dual", self.rows),
        ):  # fmt: skip
            values = np.asarray(getattr(found, name))
            if values.size:
                setattr(found, name, values[order].tolist())
        return found

    def getDualRay(self) -> Any:
        status, has, ray = self.model.getDualRay()
        return status, has, np.asarray(ray)[self.rows] if has else ray

    def getBasis(self) -> Any:
        basis = self.model.getBasis()
        for name, order in (("col_status", self.columns), ("row_status", self.rows)):
            states = list(getattr(basis, name))
            setattr(basis, name, [states[k] for k in order] if states else states)
        return basis

    def setBasis(self, basis: Any) -> Any:
        columns, rows = list(basis.col_status), list(basis.row_status)
        basis.col_status = [columns[k] for k in np.argsort(self.columns, kind="stable")]
        basis.row_status = [rows[k] for k in np.argsort(self.rows, kind="stable")]
        done = self.model.setBasis(basis)
        basis.col_status, basis.row_status = columns, rows
        return done


def inside(values: Any, order: Order) -> Any:
    """Values in the order inside the model."""
    values = np.asarray(values)
    out = np.empty_like(values)
    out[order] = values
    return out


def whole(places: Any) -> Order:
    """Places as whole numbers, also where there are none."""
    return np.asarray(places, dtype=np.int64)
