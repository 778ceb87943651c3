"""Scripts for ACRO run with one changed import: its documented examples, on drawn data."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lustrum.acro import ACRO
from lustrum.checking import CheckerFolder
from lustrum.model import InputError


def nursery(rows: int = 600) -> pd.DataFrame:
    """Drawn applications for places: one recommendation is rare."""
    draw = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "recommendation": draw.choice(
                ["no", "priority", "rare", "yes"], rows, p=[0.3, 0.4, 0.02, 0.28]
            ),
            "parents": draw.choice(["great_pret", "pretentious", "usual"], rows),
            "finance": draw.choice(["convenient", "inconv"], rows),
            "children": draw.integers(1, 9, rows),
            "months": draw.integers(1, 60, rows),
            "done": draw.integers(0, 2, rows),
        }
    )


def test_the_documented_session_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    df = nursery()
    acro = ACRO(config="default", suppress=False)
    table = acro.crosstab(df.recommendation, df.parents)
    assert table.equals(pd.crosstab(df.recommendation, df.parents))
    means = acro.crosstab(
        index=df.recommendation, columns=df.parents, values=df.children, aggfunc="mean"
    )
    usual = pd.crosstab(df.recommendation, df.parents, values=df.children, aggfunc="mean")
    assert np.allclose(means, usual)
    acro.enable_suppression()
    hidden = acro.crosstab(df.recommendation, df.parents, margins=True)
    assert hidden.loc["rare"].isna().sum() >= 3
    assert hidden.loc["All", "All"] == 600
    several = acro.pivot_table(
        df, index=["parents"], columns=["finance"], values=["children"], aggfunc=["mean", "std"]
    )
    assert several.shape == (3, 4)
    acro.disable_suppression()
    lives = acro.surv_func(df.months, df.done, output="table")
    assert list(lives.columns) == ["at risk", "events", "survival"]
    acro.remove_output("output_1")
    acro.rename_output("output_0", "cross_tabulation")
    acro.add_comments("cross_tabulation", "Please let me have this data.")
    acro.add_exception("cross_tabulation", "It is public already.")
    (tmp_path / "XandY.jpg").write_bytes(b"\xff\xd8")
    acro.custom_output("XandY.jpg", "A picture")
    assert "Please let me have this data." in acro.print_outputs()
    assert "status: fail" in capsys.readouterr().out
    acro.finalise("outputs", "json")
    checked = CheckerFolder(tmp_path / "outputs")
    names = [one["name"] for one in checked.session["outputs"]]
    assert names == ["cross_tabulation", "output_2", "output_3", "output_4", "output_5"]
    assert checked.output("cross_tabulation")["exception"] == "It is public already."
    assert checked.output("output_5")["verdict"] == "review"


def test_rounding_is_a_mitigation_of_counts() -> None:
    df = nursery()
    acro = ACRO()
    acro.enable_rounding(base=5)
    assert (acro.crosstab(df.recommendation, df.parents) % 5 == 0).all(axis=None)
    acro.disable_rounding()
    assert not (acro.crosstab(df.recommendation, df.parents) % 5 == 0).all(axis=None)


def test_models_and_pictures_are_those_of_the_libraries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import statsmodels.api as statsmodels  # takes seconds, which other tests need not wait

    monkeypatch.chdir(tmp_path)
    df = nursery()
    acro = ACRO(suppress=True)
    exog = statsmodels.add_constant(df[["months"]])
    fitted = acro.ols(df.children, exog)
    assert np.allclose(fitted.params, statsmodels.OLS(df.children, exog).fit().params)
    acro.olsr("children ~ months", df)
    for model in (acro.logit, acro.probit):
        model(df.done, exog)
    for formula in (acro.logitr, acro.probitr):
        formula("done ~ months", df)
    assert {one.verdict for one in acro.session.outputs.values()} == {"pass"}
    assert len(acro.session.outputs) == 6
    assert Path(acro.hist(df, "children")).read_bytes()[1:4] == b"PNG"
    _, file = acro.surv_func(df.months, df.done, output="plot", filename="../x.png")
    assert Path(file) == Path("acro_artifacts/x.png")
    acro.ols(df.children[:12], exog[:12], missing="drop")
    assert "degrees of freedom" in acro.session["output_8"].summary


def test_a_file_of_rules_is_read(tmp_path: Path) -> None:
    (tmp_path / "room.yaml").write_text(
        "safe_threshold: 5 # people\nsafe_nk_k: 0.85\nsafe_pratio_p: 0.2\n"
    )
    rules = ACRO(str(tmp_path / "room.yaml")).session.rules
    assert (rules.threshold, rules.k, rules.p, rules.n) == (5, 85, 20, 2)
    (tmp_path / "room.yaml").write_text("safe_treshold: 5\n")
    with pytest.raises(InputError, match="not safe_treshold"):
        ACRO(str(tmp_path / "room.yaml"))


@pytest.mark.deep
def test_cells_that_fail_are_those_of_acro_itself(tmp_path: Path) -> None:
    """``LUSTRUM_ACRO`` names the Python of an environment in which ACRO 1.0 is installed."""
    python = os.environ.get("LUSTRUM_ACRO")
    if python is None:
        pytest.skip("set LUSTRUM_ACRO to the Python of an environment that holds ACRO")
    df = nursery()
    df.to_csv(tmp_path / "nursery.csv", index=False)
    code = (
        "import sys, json, pandas as pd, logging; from acro import ACRO\n"
        "df = pd.read_csv(sys.argv[1]); a = ACRO(suppress=True); out = []\n"
        "for f in (None, 'mean', 'sum'):\n"
        "    v = None if f is None else df.children\n"
        "    t = a.crosstab(df.recommendation, df.parents, values=v, aggfunc=f)\n"
        "    out.append(t.isna().to_numpy().tolist())\n"
        "print(json.dumps(out))"
    )
    done = subprocess.run(
        [python, "-c", code, str(tmp_path / "nursery.csv")],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    theirs = json.loads(done.stdout.strip().splitlines()[-1])
    for aggfunc, hidden in zip((None, "mean", "sum"), theirs, strict=True):
        acro = ACRO()
        values = None if aggfunc is None else df.children
        acro.crosstab(df.recommendation, df.parents, values=values, aggfunc=aggfunc)
        assert (acro.session["output_0"].outcome != "ok").to_numpy().tolist() == hidden
