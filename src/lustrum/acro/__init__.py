"""ACRO's names over :class:`lustrum.Session`: ``from lustrum.acro import ACRO``, and scripts run as they are.

Names and meanings are those of its public documentation. Beyond it, suppression hides what would give a hidden
cell away, margins are true ones, and all outputs of a session are audited together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from lustrum.checking import OutputRules, Session, SessionOutput
from lustrum.model import InputError
from lustrum.runtime.durable import outages

__all__ = ["ACRO"]

_WORDS = {
    "safe_threshold": "threshold",
    "safe_dof_threshold": "dof",
    "safe_nk_n": "n",
    "safe_nk_k": "k",
    "safe_pratio_p": "p",
}
_SHARES = ("safe_nk_k", "safe_pratio_p")
"""Stated as shares there, and in percent here."""


class ACRO:
    """A session with ACRO's methods, which return frames, models and file names as that does.

    ``config`` is ``"default"`` or a file of lines such as ``safe_threshold: 10``. With ``suppress`` every table
    is suppressed as it is made.

    >>> import pandas as pd
    >>> people = pd.DataFrame({"area": ["n", "s"] * 20, "job": (["a"] * 19 + ["b"]) * 2})
    >>> ACRO(suppress=True).crosstab(people.area, people.job).isna().to_numpy().tolist()
    [[False, False], [False, True]]
    """

    def __init__(
        self,
        config: str = "default",
        suppress: bool = False,
        mitigation: str | None = None,
        round_base: int | None = None,
    ) -> None:
        if mitigation not in (None, "none", "suppress", "round"):
            raise InputError(f"'mitigation' is 'none', 'suppress' or 'round', not {mitigation!r}.")
        self.session = Session(rules=_rules(config))
        self.suppress = suppress or mitigation == "suppress"
        self.round_base: int | None = (round_base or 5) if mitigation == "round" else None

    # --- Tables

    def crosstab(
        self,
        index: Any,
        columns: Any,
        values: Any = None,
        rownames: Any = None,
        colnames: Any = None,
        aggfunc: str | list[str] | None = None,
        margins: bool = False,
        margins_name: str = "All",
        dropna: bool = True,
        normalize: bool | str = False,
        show_suppressed: bool = False,
    ) -> Any:
        """A cross tabulation; records with a missing value are left out, as pandas does."""
        made = self.session.crosstab(
            index,
            columns,
            values,
            aggfunc=aggfunc,
            rownames=rownames,
            colnames=colnames,
            margins=margins,
            margins_name=margins_name,
            normalize=normalize,
        )
        return self._treated(made).frame

    def pivot_table(
        self,
        data: Any,
        values: Any = None,
        index: Any = None,
        columns: Any = None,
        aggfunc: str | list[str] = "mean",
        fill_value: Any = None,
        margins: bool = False,
        dropna: bool = True,
        margins_name: str = "All",
        observed: bool = False,
        sort: bool = True,
    ) -> Any:
        """A pivot table of one column of values."""
        if isinstance(values, (list, tuple)):
            if len(values) != 1:
                raise InputError("A pivot table has one column of values; make one table of each.")
            values = values[0]
        made = self.session.pivot_table(
            data, values, index, columns or (), aggfunc, margins=margins, margins_name=margins_name
        )
        frame = self._treated(made).frame
        return frame if fill_value is None or made.verdict != "pass" else frame.fillna(fill_value)

    def surv_func(
        self, time: Any, status: Any, output: str, filename: str = "kaplan-meier.png", **unused: Any
    ) -> Any:
        """A survival table (``output="table"``), or its plot (``"plot"``) with the name of its file."""
        if output not in ("table", "plot"):
            raise InputError(f"'output' is 'table' or 'plot', not {output!r}.")
        given = sorted(word for word, value in unused.items() if value is not None)
        if set(given) - {"title", "bw_factor"}:
            raise InputError(
                f"{given[0]!r} is not known to rules of survival tables; leave it out."
            )
        made = self.session.survival(time, status)
        if self.suppress and made.verdict != "pass":
            made = self.session.coarsen(made.name)
        if output == "table":
            return made.frame
        steps = made.frame["survival"]
        return _drawn(filename, lambda axes: axes.step(steps.index, steps, where="post"))

    def hist(
        self,
        data: Any,
        column: str,
        bins: int | Sequence[float] = 10,
        filename: str = "histogram.png",
        **unused: Any,
    ) -> str:
        """A histogram of a column, as the name of its file; bins that were suppressed are drawn empty."""
        made = self.session.histogram(data[column], bins)
        if self.suppress and made.verdict != "pass":
            made = self.session.suppress(made.name)
        counts = made.frame.iloc[:, 0].fillna(0)
        _, name = _drawn(
            filename, lambda axes: axes.bar([str(one) for one in counts.index], counts)
        )
        return name

    # --- Regressions

    def ols(
        self,
        endog: Any,
        exog: Any = None,
        missing: str = "none",
        hasconst: bool | None = None,
        **words: Any,
    ) -> Any:
        """Ordinary least squares; the results of statsmodels."""
        return self._fitted("api", "OLS", endog, exog, missing=missing, hasconst=hasconst, **words)

    def olsr(
        self, formula: str, data: Any, subset: Any = None, drop_cols: Any = None, **words: Any
    ) -> Any:
        """The same by a formula."""
        words |= {"subset": subset, "drop_cols": drop_cols}
        return self._fitted("formula.api", "ols", formula, data, **words)

    def logit(
        self, endog: Any, exog: Any, missing: str | None = None, check_rank: bool = True
    ) -> Any:
        """A logit model; the results of statsmodels."""
        words = {"missing": missing or "none", "check_rank": check_rank}
        return self._fitted("api", "Logit", endog, exog, **words)

    def logitr(
        self, formula: str, data: Any, subset: Any = None, drop_cols: Any = None, **words: Any
    ) -> Any:
        """The same by a formula."""
        words |= {"subset": subset, "drop_cols": drop_cols}
        return self._fitted("formula.api", "logit", formula, data, **words)

    def probit(
        self, endog: Any, exog: Any, missing: str | None = None, check_rank: bool = True
    ) -> Any:
        """A probit model; the results of statsmodels."""
        words = {"missing": missing or "none", "check_rank": check_rank}
        return self._fitted("api", "Probit", endog, exog, **words)

    def probitr(
        self, formula: str, data: Any, subset: Any = None, drop_cols: Any = None, **words: Any
    ) -> Any:
        """The same by a formula."""
        words |= {"subset": subset, "drop_cols": drop_cols}
        return self._fitted("formula.api", "probit", formula, data, **words)

    # --- The session

    def enable_suppression(self) -> None:
        """Suppress every table from now on."""
        self.suppress, self.round_base = True, None

    def disable_suppression(self) -> None:
        """Suppress no table from now on."""
        self.suppress = False

    def enable_rounding(self, base: int | None = None) -> None:
        """Round the counts of every table from now on."""
        self.suppress, self.round_base = False, base or 5

    def disable_rounding(self) -> None:
        """Round no table from now on."""
        self.round_base = None

    def rename_output(self, old: str, new: str) -> None:
        """Give an output another name."""
        self.session.rename(old, new)

    def add_comments(self, output: str, comment: str) -> None:
        """Add a comment for the checker."""
        self.session.comment(output, comment)

    def add_exception(self, output: str, reason: str) -> None:
        """Ask for an exception."""
        self.session.exception(output, reason)

    def remove_output(self, key: str) -> None:
        """Take an output back."""
        self.session.remove(key)

    def custom_output(self, filename: str, comment: str = "") -> None:
        """Add a file that no rule knows."""
        self.session.custom(filename, comment)

    def print_outputs(self) -> str:
        """Print all outputs with what the rules say of each; the text is returned too."""
        lines = []
        for one in self.session.outputs.values():
            lines += [
                f"uid: {one.name}\nstatus: {one.verdict}\ntype: {one.kind}\ncommand: {one.command}",
                f"summary: {one.summary}\ncomments: {list(one.comments)}\nexception: {one.exception}",
                f"output:\n{one.frame}\n",
            ]
        text = "\n".join(lines)
        print(text)
        return text

    def finalise(self, path: str = "outputs", ext: str = "json", interactive: bool = False) -> Path:
        """Write the folder for the checker, who opens it with ``lustrum check``."""
        if ext not in ("json", "xlsx"):
            raise InputError(
                f"'ext' is 'json' or 'xlsx', not {ext!r}; the folder is the same for both."
            )
        return self.session.finalise(path)

    def _treated(self, made: SessionOutput) -> SessionOutput:
        """An output as the session is set: left, suppressed, or rounded where it is a table of counts."""
        if made.verdict == "pass":
            return made
        if self.suppress:
            return self.session.suppress(made.name)
        counts = made.table is not None and made.table.statistics == ("count",)
        return (
            self.session.round(made.name, self.round_base) if self.round_base and counts else made
        )

    def _fitted(self, part: str, model: str, *given: Any, **words: Any) -> Any:
        results = getattr(_statsmodels(part), model)(*given, **words).fit()
        self.session.regression(results)
        return results


def _rules(config: str) -> OutputRules:
    """The rules of a file, or those by default."""
    if config == "default":
        return OutputRules()
    path = Path(config)
    with outages(path):
        text = path.read_text("utf-8")
    said = dict(re.findall(r"(?m)^(safe_\w+):[ ]*([0-9.]+)[ ]*(?:#.*)?$", text))
    unknown = sorted(set(said) - set(_WORDS) - {"safe_round_base"})
    if unknown or not said:
        raise InputError(
            f"{path} states {', '.join(_WORDS)}, each with a number{'; not ' + unknown[0] if unknown else ''}."
        )
    given: dict[str, Any] = {}
    for word, name in _WORDS.items():
        if word in said:
            number = float(said[word]) * (100 if word in _SHARES else 1)
            given[name] = round(number, 9) if name in ("p", "k") else int(number)
    return OutputRules(**given)


def _statsmodels(part: str) -> Any:
    try:
        if part == "api":
            import statsmodels.api as module
        else:
            import statsmodels.formula.api as module
    except ImportError:
        raise InputError("Models need statsmodels: pip install statsmodels.") from None
    return module


def _drawn(filename: str, draw: Callable[[Any], object]) -> tuple[Any, str]:
    """A picture as a file in ACRO's folder of pictures."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("Pictures need matplotlib: pip install matplotlib.") from None
    path = Path("acro_artifacts") / Path(filename).name
    if path.suffix.lower() not in (".png", ".jpg", ".pdf"):
        raise InputError(f"A picture is a .png, .jpg or .pdf, not {filename!r}.")
    figure = Figure()
    draw(figure.subplots())
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path)
    return figure, str(path)
