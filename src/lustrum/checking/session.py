"""A researcher's session in a safe room: every output judged by itself and together with all others."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from lustrum.checking.folder import SessionBook, SessionOutput, write_folder
from lustrum.checking.joint import JointAudit, audit_together
from lustrum.checking.judged import coarser_times, judged, round_edges
from lustrum.checking.rules import OutputRules, statistic_of
from lustrum.checking.tables import OutputPopulation, TableOutput, people_of
from lustrum.ledger.acts import record_act
from lustrum.model import InputError
from lustrum.model.errors import check_known
from lustrum.model.labelled_counts import is_labelled
from lustrum.publish.frames import named_columns


@dataclass(eq=False)
class Session:
    """Outputs of one researcher from one dataset, checked as they are made and all together.

    Records are known by the index of their frame, which must name each once and mean the same records
    in every frame of the session. ``book`` is a folder that sessions of the same data share: outputs of earlier
    ones count as known. ``rules`` are those of the safe room. ``data`` is a data folder in whose book of
    releases the session is entered when it is finalised.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"area": ["n", "s"] * 20, "job": (["a"] * 19 + ["b"]) * 2})
    >>> session = Session()
    >>> session.crosstab(people.area, people.job)
    SessionOutput('output_0': fail, 1 cell fails threshold)
    >>> session.suppress("output_0").frame.isna().sum().sum()
    np.int64(1)
    """

    book: Path | str | None = None
    rules: OutputRules = field(default_factory=OutputRules)
    title: str = ""
    data: Path | str | None = None

    def __post_init__(self) -> None:
        self.outputs: dict[str, SessionOutput] = {}
        self._book = None if self.book is None else SessionBook(Path(self.book))
        self._key = secrets.token_bytes(32) if self._book is None else self._book.key()
        self._made = 0
        self._finalised = False
        if self.data is not None and not Path(self.data).is_dir():
            raise InputError(f"{self.data} is no data folder.")
        self._require_unanswered()

    def __repr__(self) -> str:
        many = len(self.outputs)
        return f"Session({many} {'output' if many == 1 else 'outputs'})"

    def __getitem__(self, name: str) -> SessionOutput:
        check_known((name,), self.outputs, "There is no output")
        return self.outputs[name]

    # --- Outputs

    def crosstab(
        self,
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
        name: str | None = None,
    ) -> SessionOutput:
        """A cross tabulation as pandas spells it; ``aggfunc`` may be a list, or 0.25 for a quartile."""
        named, down = named_columns(index, columns, rownames, colnames)
        if aggfunc is None:
            aggfunc = "count" if values is None else "mean"
        statistics = tuple(aggfunc) if isinstance(aggfunc, (list, tuple)) else (aggfunc,)
        table = self._table(
            named,
            down,
            statistics,
            values,
            weights,
            margins=margins,
            margins_name=margins_name,
            normalize="all" if normalize is True else str(normalize or ""),
        )
        words = ", ".join(statistic_of(one)[0] for one in statistics)
        return self._add_table("table", f"crosstab({' × '.join(named)}): {words}", table, name)

    def pivot_table(
        self,
        data: Any,
        values: str | None = None,
        index: str | Sequence[str] = (),
        columns: str | Sequence[str] = (),
        aggfunc: object = "mean",
        *,
        margins: bool = False,
        margins_name: str = "All",
        name: str | None = None,
    ) -> SessionOutput:
        """A pivot table as ``pandas.pivot_table`` spells it."""
        by = [[one] if isinstance(one, str) else list(one or ()) for one in (index, columns)]
        return self.crosstab(
            [data[one] for one in by[0]],
            [data[one] for one in by[1]],
            None if values is None else data[values],
            aggfunc=aggfunc,
            margins=margins,
            margins_name=margins_name,
            name=name,
        )

    def regression(self, results: Any, *, name: str | None = None) -> SessionOutput:
        """The coefficients of a fitted model, such as one of statsmodels."""
        import pandas as pd

        verdict, reasons = self.rules.judge_model(results)
        columns = {
            word: np.asarray(getattr(results, attribute))
            for word, attribute in (
                ("coefficient", "params"),
                ("standard error", "bse"),
                ("p", "pvalues"),
            )
            if getattr(results, attribute, None) is not None
        }
        names = getattr(getattr(results, "model", None), "exog_names", None)
        frame = pd.DataFrame(columns, index=None if names is None else list(names))
        outcome = pd.DataFrame(
            {"value": [float(results.nobs), float(results.df_resid)]},
            index=["observations", "df of residuals"],
        )
        rows = getattr(getattr(getattr(results, "model", None), "data", None), "row_labels", None)
        population = None
        summary = "; ".join(reasons) or f"{results.df_resid:g} residual degrees of freedom"
        if rows is None:
            summary += "; the model does not say whose records it used, so it is not audited with the others"
            verdict = "review" if verdict == "pass" else verdict
        else:
            everybody = np.ones((), dtype=np.bool_)
            population = OutputPopulation(
                "", people_of(list(rows), self._key), {}, {}, {(): everybody}
            )
        suggestion = (
            "" if verdict == "pass" else "Leave regressors out, or put rare categories together."
        )
        kind = f"regression({type(getattr(results, 'model', results)).__name__})"
        return self._add(
            SessionOutput(
                "",
                "regression",
                kind,
                frame,
                outcome,
                verdict,
                summary,
                suggestion,
                population=population,
            ),
            name,
        )

    def survival(self, time: Any, status: Any, *, name: str | None = None) -> SessionOutput:
        """A Kaplan-Meier table: of each time who is at risk, who had the event, and the share that survives.

        ``status`` is 1 for an event and 0 for a censored time. Differences of rows are people, so that
        everybody who leaves between two rows, and everybody who is left, must be enough.
        """
        if not set(np.unique(np.asarray(status, dtype=float))) <= {0.0, 1.0, np.nan}:
            raise InputError("'status' is 1 for an event and 0 for a censored time.")
        table = self._table({"time": time}, 1, ("count",), status, None)
        return self._add_table("survival", "survival(time, status)", table, name)

    def histogram(
        self, column: Any, bins: int | Sequence[float] = 10, *, name: str | None = None
    ) -> SessionOutput:
        """How many people are in each bin. Stated edges are kept; otherwise they are round numbers, since the
        smallest and the largest value belong to somebody."""
        import pandas as pd

        edges = round_edges(column, bins) if isinstance(bins, int) else list(bins)
        if len(edges) < 2 or any(a >= b for a, b in pairwise(edges)):
            raise InputError("'bins' is a number of bins, or their edges in rising order.")
        inside = column.where(column != edges[-1], np.nextafter(edges[-1], edges[0]))
        named = [f"{low:g} to {high:g}" for low, high in pairwise(edges)]
        cut = pd.cut(inside, edges, right=False, labels=named)
        word = str(getattr(column, "name", None) or "value")
        table = self._table({f"{word} (bins)": cut}, 1, ("count",), None, None)
        return self._add_table("histogram", f"histogram({word})", table, name)

    def custom(
        self, file: Path | str, comment: str = "", *, name: str | None = None
    ) -> SessionOutput:
        """A file that no rule knows: the checker reads it."""
        import pandas as pd

        path = Path(file)
        if not path.is_file():
            raise InputError(f"There is no file {path}.")
        output = SessionOutput(
            "",
            "custom",
            path.name,
            pd.DataFrame(),
            pd.DataFrame(),
            "review",
            "no rule knows this kind of output",
            comments=(comment,) if comment else (),
            file=path,
        )
        return self._add(output, name)

    # --- What is done to an output, in one line

    def suppress(self, name: str) -> SessionOutput:
        """Leave out the cells that fail, and those that would give them away."""
        return self._redo(name, lambda table: table.suppressed())

    def round(self, name: str, base: int | None = None) -> SessionOutput:
        """Round the counts of an output."""
        return self._redo(name, lambda table: table.rounded(base))

    def coarsen(
        self,
        name: str,
        variable: str | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
    ) -> SessionOutput:
        """Put categories of a variable together: as stated, or the rarest until no cell fails."""
        if self[name].kind == "survival":
            return self._redo(name, coarser_times)
        return self._redo(name, lambda table: table.coarsened(variable, groups))

    def comment(self, name: str, text: str) -> None:
        """Add a comment for the checker."""
        self.outputs[name] = replace(self[name], comments=(*self[name].comments, text))

    def exception(self, name: str, reason: str) -> None:
        """Ask the checker to let an output pass, and say why."""
        if not reason.strip():
            raise InputError("An exception needs a reason.")
        self.outputs[name] = replace(self[name], exception=reason)

    def rename(self, old: str, new: str) -> None:
        """Give an output another name."""
        _check_name(new)
        if new in self.outputs:
            raise InputError(f"There is an output {new!r} already.")
        output = replace(self[old], name=new)
        self.outputs = {
            (new if name == old else name): (output if name == old else one)
            for name, one in self.outputs.items()
        }

    def remove(self, name: str) -> None:
        """Take an output back."""
        del self.outputs[self[name].name]

    # --- All together

    def audit(self) -> JointAudit:
        """Which groups of few people all outputs give away together, with those of earlier sessions."""
        own = [
            replace(one.population, output=one.name)
            for one in self.outputs.values()
            if one.population is not None
        ]
        earlier = [] if self._book is None else self._book.populations()
        return audit_together([*earlier, *own], self.rules.threshold)

    def frame(self) -> Any:
        """All outputs in a frame: what the rules say of each, and with which others it gives people away."""
        import pandas as pd

        audit = self.audit()
        rows = [
            {
                "output": one.name,
                "what": one.command,
                "verdict": one.verdict,
                "summary": one.summary,
                "with others": ", ".join(
                    sorted(
                        {name for found in audit.about(one.name) for name in found.outputs}
                        - {one.name}
                    )
                ),
                "suggestion": one.suggestion,
                "exception": one.exception,
            }
            for one in self.outputs.values()
        ]
        return pd.DataFrame(rows).set_index("output") if rows else pd.DataFrame(rows)

    def finalise(self, folder: Path | str) -> Path:
        """Write the outputs for the checker into a new folder, and enter them into the book.

        Nothing of it is public: ``lustrum check`` puts what the checker approves into its folder ``approved``.
        """
        if self._finalised:
            raise InputError("This session was finalised; start another for more outputs.")
        if not self.outputs:
            raise InputError("The session has no outputs.")
        self._require_unanswered()
        path = Path(folder)
        digest = write_folder(
            path, self.title, list(self.outputs.values()), self.audit(), self.rules.to_mapping()
        )
        head = ""
        if self._book is not None:
            own = {o.name: o.population for o in self.outputs.values() if o.population is not None}
            head = self._book.enter(digest, self.title, own)
        if self.data is not None:
            # Without the title: it may name a person.
            rules = json.dumps(self.rules.to_mapping(), sort_keys=True).encode()
            said = {"session_book": head, "dataset": ""}  # nobody knows of whose people
            record_act(Path(self.data), "session", digest[:12], digest, policy=rules, **said)
        self._finalised = True
        return path

    def _require_unanswered(self) -> None:
        if self.data is not None:
            from lustrum.publish.bundles.people import require_unanswered
            from lustrum.tabulate import Store

            require_unanswered(Store(Path(self.data)), None)

    # --- How outputs are made

    def _table(
        self,
        columns: Mapping[str, Any],
        down: int,
        statistics: tuple[Any, ...],
        values: Any,
        weights: Any,
        *,
        margins: bool = False,
        margins_name: str = "All",
        normalize: str = "",
    ) -> TableOutput:
        import pandas as pd

        if not columns:
            raise InputError("Name at least one column for the rows ('index').")
        if normalize not in ("", "all", "index", "columns"):
            raise InputError(
                f"'normalize' is True, 'all', 'index' or 'columns', not {normalize!r}."
            )
        if values is None and any(statistic_of(one)[0] != "count" for one in statistics):
            raise InputError("Name the column that the statistic is about with 'values'.")
        extra = {"\0values": values, "\0weights": weights}
        given = {**columns, **{word: one for word, one in extra.items() if one is not None}}
        indices = [one.index for one in given.values() if is_labelled(one)]
        if any(not index.equals(indices[0]) for index in indices[1:]):
            raise InputError("The columns have different indices; take them from one frame.")
        frame = pd.DataFrame(given, index=indices[0] if indices else None)
        if not frame.index.is_unique:
            raise InputError(
                "The index names a record twice, so nobody knows which outputs are about the same people; use "
                "an index that names each record once."
            )
        frame = frame.dropna()
        if frame.empty:
            raise InputError("No record has a value in all of these columns.")
        return TableOutput(
            {word: frame[word].array for word in columns},
            down,
            people_of(frame.index.tolist(), self._key),
            self.rules,
            statistics,
            None if values is None else frame["\0values"].to_numpy(),
            None if weights is None else frame["\0weights"].to_numpy(),
            margins,
            margins_name,
            normalize,
        )

    def _add_table(
        self, kind: str, command: str, table: TableOutput, name: str | None
    ) -> SessionOutput:
        return self._add(judged(kind, command, table), name)

    def _add(self, output: SessionOutput, name: str | None) -> SessionOutput:
        if name is None:
            while (name := f"output_{self._made}") in self.outputs:
                self._made += 1
        assert name is not None
        _check_name(name)
        if name in self.outputs:
            raise InputError(f"There is an output {name!r} already; choose another name.")
        self._made += 1
        self.outputs[name] = replace(output, name=name)
        return self.outputs[name]

    def _redo(self, name: str, how: Callable[[TableOutput], TableOutput]) -> SessionOutput:
        before = self[name]
        if before.table is None:
            raise InputError(
                f"{name!r} is no table; only tables are suppressed, rounded or made coarser."
            )
        after = judged(before.kind, before.command, how(before.table))
        self.outputs[name] = replace(
            after, name=name, comments=before.comments, exception=before.exception
        )
        return self.outputs[name]


def _check_name(name: str) -> None:
    """A name that is also that of a file."""
    if (
        not name
        or len(name) > 100
        or name.startswith(".")
        or not all(c.isalnum() or c in "-_. " for c in name)
    ):
        raise InputError(
            "An output is called by letters, digits, spaces, '-', '_' and '.', up to 100 of them."
        )
