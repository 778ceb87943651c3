"""Cross tabulations as pandas spells them: laid out alike, protected, repeatable, with reasons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lustrum as lu
from lustrum.local import ProtectedTable
from lustrum.model import InputError, LustrumError
from lustrum.policy import read_policy
from lustrum.policy.presets import preset
from lustrum.tabulate import Secret

RNG = np.random.default_rng(20)
PEOPLE = pd.DataFrame(
    {
        "area": RNG.choice(["north", "south", "west"], 4000, p=[0.5, 0.3, 0.2]),
        "faith": RNG.choice(["a", "b", "c", "d"], 4000, p=[0.598, 0.3, 0.1, 0.002]),
        "sex": RNG.choice([1, 2], 4000),
        "income": np.round(RNG.lognormal(3, 1, 4000), 2),
    }
)
SMALL = lu.protect.Suppression(rule={"rule": "threshold", "minimum": 5})


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret"
    Secret(bytes(range(32))).write(path)
    return path


def test_a_suppressed_crosstab_is_the_crosstab_of_pandas_with_gaps() -> None:
    made = lu.crosstab(PEOPLE.area, PEOPLE.faith, margins=True, policy=SMALL)
    plain = pd.crosstab(PEOPLE.area, PEOPLE.faith, margins=True)
    frame = made.frame
    assert frame.index.equals(plain.index)
    assert frame.columns.equals(plain.columns)
    assert (frame.index.name, frame.columns.name) == ("area", "faith")
    hidden = frame.isna().to_numpy()
    assert hidden[(plain.to_numpy() < 5) & (plain.to_numpy() > 0)].all()
    assert 0 < hidden.sum() < hidden.size
    assert (frame.to_numpy()[~hidden] == plain.to_numpy()[~hidden]).all()


def test_reasons_stand_cell_by_cell_with_the_agency_and_not_in_the_public_frame() -> None:
    made = lu.crosstab(PEOPLE.area, PEOPLE.faith, margins=True, policy=SMALL)
    plain = pd.crosstab(PEOPLE.area, PEOPLE.faith, margins=True)
    reasons = made.reasons
    assert reasons.index.equals(made.frame.index)
    assert reasons.columns.equals(made.frame.columns)
    small = (plain < 5) & (plain > 0)
    few = "suppressed: few contributors"
    for row in plain.index:
        for column in plain.columns:
            hidden = pd.isna(made.frame.loc[row, column])
            said = reasons.loc[row, column]
            assert (said == few) == bool(small.loc[row, column])
            assert (said == "free for publication") == (not hidden)
    assert (reasons == "suppressed to protect another cell").to_numpy().any()
    public = made.to_pandas()
    assert set(public.status) == {"F", "N"}
    for text in (made._repr_html_(), str(made.to_arrow().to_pylist()), repr(made)):
        assert few not in text


@pytest.mark.parametrize(
    ("index", "columns"),
    [(["area", "sex"], ["faith"]), (["area"], ["sex", "faith"]), (["area"], [])],
)
def test_levels_lie_as_pandas_lays_them(index: list[str], columns: list[str]) -> None:
    method = lu.protect.ConventionalRounding(base=5)
    made = lu.pivot_table(PEOPLE, index=index, columns=columns, policy=method).frame
    assert made.index.names == index
    assert [name for name in made.columns.names if name is not None] == columns
    for key in made.index:
        for at in made.columns:
            chosen = np.ones(len(PEOPLE), dtype=bool)
            codes = [*np.atleast_1d(key).tolist(), *np.atleast_1d(at).tolist()]
            if len(index) > 1:
                codes = [*key, *([at] if isinstance(at, str) else at)]
            elif len(columns) > 1:
                codes = [key, *at]
            for name, code in zip([*index, *columns], codes, strict=False):
                chosen &= PEOPLE[name].astype(str) == code
            assert abs(made.loc[key, at] - chosen.sum()) <= 2.5


def test_sums_of_values_are_protected_and_numbers() -> None:
    rule = lu.protect.Suppression(rule={"rule": "p-percent", "p": 10})
    made = lu.crosstab(
        PEOPLE.area, PEOPLE.faith, PEOPLE.income, aggfunc="sum", margins=True, policy=rule
    )
    plain = pd.crosstab(PEOPLE.area, PEOPLE.faith, PEOPLE.income, aggfunc="sum", margins=True)
    shown = made.frame.notna().to_numpy()
    assert shown.any()
    assert np.allclose(
        made.frame.to_numpy(dtype=float, na_value=0)[shown], plain.fillna(0).to_numpy()[shown]
    )
    again = lu.pivot_table(
        pl.from_pandas(PEOPLE), "income", "area", "faith", margins=True, policy=rule
    )
    assert again.frame.equals(made.frame)


def test_the_same_table_gets_the_same_noise_from_the_stored_secret(
    secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounding = lu.protect.RandomRounding(base=5)

    def asked(people: pd.DataFrame = PEOPLE, **words: Any) -> pd.DataFrame:
        return lu.crosstab(people.area, people.faith, margins=True, policy=rounding, **words).frame

    first = asked(secret=secret)
    assert first.equals(asked(secret=str(secret)))
    assert first.equals(asked(PEOPLE.sample(frac=1, random_state=1), secret=secret))
    monkeypatch.setenv("LUSTRUM_SECRET", str(secret))
    assert first.equals(asked())
    assert not first.equals(asked(secret=Secret(b"o" * 32)))
    # A selection of people keeps their keys: the same cells show the same numbers.
    north = asked(PEOPLE[PEOPLE.area == "north"])
    assert north.loc["north"].equals(first.loc["north"])
    frame = lu.pivot_table(PEOPLE, index="area", columns="faith", margins=True, policy=rounding)
    assert frame.frame.equals(first)


def test_a_method_without_keys_gets_the_same_noise_for_the_same_table_too(secret: Path) -> None:
    noise = lu.protect.AdditiveNoise()
    one, two = (
        lu.crosstab(PEOPLE.area, PEOPLE.faith, policy=noise, secret=secret).frame for _ in range(2)
    )
    assert one.equals(two)
    other = lu.crosstab(PEOPLE.area, PEOPLE.faith, policy=noise, secret=Secret(b"x" * 32)).frame
    assert not one.equals(other)


@pytest.mark.parametrize(
    "policy", [lu.protect.RandomRounding(), lu.protect.AdditiveNoise(), "cell-key"]
)
def test_without_a_secret_random_methods_refuse(
    policy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LUSTRUM_SECRET", raising=False)
    with pytest.raises(InputError, match="needs the agency's secret"):
        lu.crosstab(PEOPLE.area, PEOPLE.faith, policy=policy)


def test_a_preset_and_a_policy_file_decide_with_all_their_rules(
    secret: Path, tmp_path: Path
) -> None:
    by_name = lu.crosstab(PEOPLE.area, PEOPLE.sex, policy="cell-key", secret=secret)
    assert not by_name.refused
    assert by_name.decision.release is by_name.release
    file = tmp_path / "own.toml"
    file.write_text(preset("cell-key"))
    for policy in (file, str(file), read_policy(file)):
        again = lu.crosstab(PEOPLE.area, PEOPLE.sex, policy=policy, secret=secret)
        assert again.frame.equals(by_name.frame)
    plain = pd.crosstab(PEOPLE.area, PEOPLE.sex).to_numpy()
    assert np.abs(by_name.frame.to_numpy(dtype=float) - plain).max() <= 3
    assert (by_name.reasons == "protected by cell-key").to_numpy().all()


def test_a_refusal_of_a_policy_tells_why_and_shows_nothing(secret: Path) -> None:
    few = PEOPLE.head(300)
    made = lu.crosstab(few.area, few.faith, policy="cell-key", secret=secret)
    assert made.refused
    assert made.decision.reasons
    for frame in (lambda: made.frame, lambda: made.reasons, made.to_pandas, made.to_polars):
        with pytest.raises(InputError, match="The table was refused"):
            frame()
    assert "The table was refused" in made._repr_html_()
    assert repr(made) == "ProtectedTable(refused)"


def test_a_policy_protects_sums_by_its_method_for_sums(secret: Path) -> None:
    made = lu.pivot_table(
        PEOPLE, "income", "area", "sex", policy="cell-key", secret=secret, margins=True
    )
    assert isinstance(made, ProtectedTable)
    plain = PEOPLE.income.sum()
    assert made.frame.loc["All", "All"] == pytest.approx(plain, rel=0.05)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({}, "Say how the table is protected with 'policy'"),
        ({"policy": "stric"}, r"no preset 'stric'; did you mean 'strict'\?"),
        ({"policy": 5}, "'policy' is a method such as Suppression"),
        ({"policy": lu.protect.Suppression}, "'policy' is a method such as Suppression"),
        ({"policy": "absent.toml"}, "absent.toml cannot be read"),
        ({"policy": lu.protect.Unchanged()}, "'none' shows true numbers"),
        ({"policy": "strict", "secret": Secret(b"s" * 32)}, "once for all tables"),
        ({"policy": lu.protect.DifferentialPrivacy(epsilon=1.0)}, "does not promise the same numbers"),
        ({"policy": lu.protect.RecordSwapping()}, "does not work on tables"),
        ({"policy": SMALL, "aggfunc": "max"}, "'aggfunc' is 'count', 'sum' or 'mean', not 'max'"),
        ({"policy": SMALL, "aggfunc": "sum"}, "name them with 'values'"),
        ({"policy": SMALL, "margins": "yes"}, "'margins' is True or False"),
        ({"policy": SMALL, "secret": 3}, "'secret' is a Secret or the path"),
        ({"policy": SMALL, "secret": "no/where"}, "secret file no/where is missing"),
        ({"policy": SMALL, "rownames": ["faith"]}, "Two of the columns are called 'faith'"),
        ({"policy": SMALL, "rownames": ["a", "b"]}, "a name for each of the columns"),
        ({"policy": SMALL, "marginss": True}, "did you mean 'margins'"),
        (
            {"policy": lu.protect.Suppression(rule={"rule": "request"})},
            "protects those who asked for it, and nobody is named here",
        ),
        (
            {"policy": lu.protect.Suppression(rule={"rule": "p-percent", "p": 10})},
            "The rule judges contributions",
        ),
    ],
)  # fmt: skip
def test_every_mistake_is_one_sentence(
    words: dict[str, Any], sentence: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LUSTRUM_SECRET", raising=False)
    with pytest.raises(LustrumError, match=sentence) as caught:
        lu.crosstab(PEOPLE.area, PEOPLE.faith, **words)
    assert str(caught.value).endswith((".", "one."))


@pytest.mark.parametrize(
    ("places", "words", "sentence"),
    [
        ((["a", "b"], ["x"]), {}, "equally long"),
        ((PEOPLE.area, np.array(["x"])), {}, "columns of a cross tabulation must be equally long"),
        ((PEOPLE.area, PEOPLE.faith, [1]), {}, "equally long"),
        ((PEOPLE.area, PEOPLE.faith.iloc[::-1]), {}, "different indices"),
        (
            (PEOPLE.area, [PEOPLE.sex, PEOPLE.faith.iloc[::-1]]),
            {"colnames": ["s", "t"]},
            "different indices",
        ),
        (("area", PEOPLE.faith), {}, "are columns, such as frame"),
        ((5, PEOPLE.faith), {}, "are columns, such as frame"),
        ((PEOPLE.area, 5), {}, "are columns, such as frame"),
        ((None,), {}, "at least one column for the rows"),
        (([],), {}, "at least one column for the rows"),
        ((PEOPLE.area,), {"rownames": "a"}, "'rownames' must be a list with a name"),
        (
            (PEOPLE.area, PEOPLE.sex),
            {"colnames": ["a", "b"]},
            "'colnames' must be a list with a name",
        ),
        ((PEOPLE.area,), {"margins": True, "margins_name": 5}, "'margins_name' is a text such as"),
    ],
)
def test_columns_must_fit_together(
    places: tuple[Any, ...], words: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InputError, match=sentence):
        lu.crosstab(*places, policy=SMALL, **words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({}, "at least one column"),
        ({"index": "aera"}, "no column 'aera'; did you mean 'area'"),
        ({"index": [3]}, "name columns of the frame"),
        ({"index": "area", "columns": [None]}, "name columns of the frame"),
        ({"index": "area", "record_id": "nobody"}, "nobody"),
        ({"index": "area", "values": "profit"}, "profit"),
    ],
)
def test_a_pivot_table_names_columns_of_its_frame(words: dict[str, Any], sentence: str) -> None:
    with pytest.raises(LustrumError, match=sentence):
        lu.pivot_table(PEOPLE, policy=SMALL, **words)
