"""Cross tabulations of a few records: layout, records and their keys, contributors, reasons, all by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lustrum as lu
from lustrum.local import ProtectedTable
from lustrum.local.crosstabs import _with_records
from lustrum.local.secrets import apply_with_secret, secret_of
from lustrum.model import (
    Dataset,
    Decision,
    InputError,
    Reason,
    Release,
    Table,
    TableAxis,
    TableQuery,
    Verdict,
)
from lustrum.policy.presets import preset
from lustrum.policy.read import parse_policy
from lustrum.protect.abilities import Abilities
from lustrum.protect.unchanged import Unchanged
from lustrum.tabulate import Secret
from lustrum.tabulate.frame import as_arrow

ROUNDED = lu.protect.ConventionalRounding(base=5)
RANDOM = lu.protect.RandomRounding(base=5)
SMALL = lu.protect.Suppression(rule={"rule": "threshold", "minimum": 5})
SECRET, OTHER = Secret(bytes(range(32))), Secret(b"o" * 32)
AREA = ["n"] * 8 + ["s"] * 11 + ["w"] * 13
SEX = list("fm" * 16)


def people(index: Any = None) -> pd.DataFrame:
    frame = pd.DataFrame({"area": AREA, "sex": SEX})
    return frame if index is None else frame.set_index(pd.Index(index))


def rounded(*keys: Any) -> int:
    """Five times a number, as conventional rounding shows the count of these keys."""
    count = Counter(zip(AREA, SEX, strict=True)) + Counter(AREA) + Counter(SEX)
    return int(5 * np.floor(count[keys if len(keys) > 1 else keys[0]] / 5 + 0.5))


FORMS: dict[str, Any] = {
    "columns of a frame": lambda: lu.crosstab(people().area, people().sex, policy=ROUNDED),
    "lists": lambda: lu.crosstab(AREA, SEX, rownames=["area"], colnames=["sex"], policy=ROUNDED),
    "a list of a list": lambda: lu.crosstab(
        [AREA], (SEX,), rownames=["area"], colnames=["sex"], policy=ROUNDED
    ),
    "tuples": lambda: lu.crosstab(
        tuple(AREA), tuple(SEX), rownames=["area"], colnames=["sex"], policy=ROUNDED
    ),
    "arrays": lambda: lu.crosstab(
        np.array(AREA), np.array(SEX), rownames=["area"], colnames=["sex"], policy=ROUNDED
    ),
    "an array beside a column": lambda: lu.crosstab(
        people().area, np.array(SEX), colnames=["sex"], policy=ROUNDED
    ),
    "columns of polars": lambda: lu.crosstab(
        pl.Series("area", AREA), pl.Series("sex", SEX), policy=ROUNDED
    ),
    "a pivot table": lambda: lu.pivot_table(people(), index="area", columns="sex", policy=ROUNDED),
    "a pivot table by lists": lambda: lu.pivot_table(
        people(), index=["area"], columns=("sex",), policy=ROUNDED
    ),
    "counted": lambda: lu.crosstab(people().area, people().sex, aggfunc="count", policy=ROUNDED),
    "sizes": lambda: lu.crosstab(people().area, people().sex, aggfunc=len, policy=ROUNDED),
    "values that are counted": lambda: lu.crosstab(
        people().area, people().sex, [1.5] * 32, aggfunc="size", policy=ROUNDED
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_records_are_counted_in_whatever_form_they_come(form: str) -> None:
    made = FORMS[form]()
    frame = made.frame
    assert (frame.index.name, frame.columns.name) == ("area", "sex")
    assert list(frame.index) == ["n", "s", "w"]
    assert list(frame.columns) == ["f", "m"]
    for area in "nsw":
        for sex in "fm":
            assert frame.loc[area, sex] == rounded(area, sex)
    assert (made.reasons == "protected by conventional-rounding").to_numpy().all()


def test_names_totals_and_variables_stand_as_pandas_has_them() -> None:
    plain = lu.crosstab(AREA, SEX, policy=ROUNDED).frame
    assert (plain.index.name, plain.columns.name) == ("row_0", "col_0")
    one = lu.crosstab(people().area, policy=ROUNDED)
    assert one.frame.shape == (3, 1)
    assert one.frame.iloc[:, 0].tolist() == [rounded("n"), rounded("s"), rounded("w")]
    own = lu.crosstab(
        people().area, people().sex, margins=True, margins_name="Sum", policy=ROUNDED
    ).frame
    assert list(own.index) == ["n", "s", "w", "Sum"]
    assert list(own.columns) == ["f", "m", "Sum"]
    assert own.loc["Sum", "Sum"] == 30
    assert own.loc["s", "Sum"] == rounded("s")
    usual = lu.crosstab(people().area, people().sex, margins=True, policy=ROUNDED).frame
    assert list(usual.index) == ["n", "s", "w", "All"]
    pivot = lu.pivot_table(
        people(), index="area", columns="sex", margins=True, margins_name="Sum", policy=ROUNDED
    )
    assert pivot.frame.equals(own)
    both = lu.crosstab([people().area, people().sex], policy=ROUNDED).frame
    assert both.index.names == ["area", "sex"]
    assert both.shape == (6, 1)
    across = lu.crosstab(
        people().area, [people().sex, pd.Series([1] * 32, name="one")], policy=ROUNDED
    )
    assert across.frame.columns.names == ["sex", "one"]
    assert across.rows == 1


FIRMS = pd.DataFrame(
    {
        "area": list("nnnnnnsssssswwwwww"),
        "turnover": [90.5, 4, 3, 2, 1, 1, 30, 28, 25, 21, 20, 19, 33, 31, 29, 27, 26, 22],
        "owner": ["a", "b", "c", "d", "e", "f", "g", "g", "g", "g", "g", "g", *"hijklm"],
    }
)
P_PERCENT = lu.protect.Suppression(rule={"rule": "p-percent", "p": 15})


def hidden(made: ProtectedTable) -> list[str]:
    frame = made.frame
    return [str(k) for k, gone in zip(frame.index, frame.iloc[:, 0].isna(), strict=True) if gone]


SUMS: dict[str, Any] = {
    "crosstab": lambda **w: lu.crosstab(FIRMS.area, values=FIRMS.turnover, aggfunc="sum", **w),
    "by numpy": lambda **w: lu.crosstab(FIRMS.area, values=FIRMS.turnover, aggfunc=np.sum, **w),
    "without a word": lambda **w: lu.crosstab(FIRMS.area, values=FIRMS.turnover, **w),
    "pivot table": lambda **w: lu.pivot_table(FIRMS, "turnover", "area", **w),
    "pivot table of sums": lambda **w: lu.pivot_table(
        FIRMS, "turnover", "area", aggfunc="sum", **w
    ),
    "a list of values": lambda **w: lu.crosstab(FIRMS.area, values=FIRMS.turnover.tolist(), **w),
}


@pytest.mark.parametrize("form", SUMS)
def test_a_firm_that_dominates_is_hidden_and_sums_are_exact_elsewhere(form: str) -> None:
    made = SUMS[form](policy=P_PERCENT)
    # In the north one firm has 90.5 of 101.5, and the others but the second add up to 7.
    assert hidden(made) == ["n"]
    assert made.frame.iloc[1:, 0].tolist() == [143.0, 168.0]
    assert made.reasons.iloc[:, 0].tolist() == [
        "suppressed: too concentrated",
        "free for publication",
        "free for publication",
    ] or made.reasons.iloc[0, 0].startswith("suppressed")
    assert made.release.unit == ("values" if form == "a list of values" else "turnover")


def test_records_of_one_holding_are_one_contributor() -> None:
    words = {"values": FIRMS.turnover, "policy": P_PERCENT}
    assert hidden(lu.crosstab(FIRMS.area, holding=FIRMS.owner, **words)) == ["n", "s"]
    pivot = lu.pivot_table(FIRMS, "turnover", "area", holding="owner", policy=P_PERCENT)
    assert hidden(pivot) == ["n", "s"]
    # A column of values or of holdings may be called like a variable.
    same = lu.crosstab(
        FIRMS.area,
        values=FIRMS.turnover.rename("area"),
        holding=FIRMS.owner.rename("area"),
        policy=P_PERCENT,
    )
    assert hidden(same) == ["n", "s"]
    assert same.frame.index.name == "area"
    unnamed = lu.crosstab(
        FIRMS.area, values=FIRMS.turnover.tolist(), holding=FIRMS.owner.tolist(), policy=P_PERCENT
    )
    assert hidden(unnamed) == ["n", "s"]


def test_as_many_contributions_are_ranked_as_a_rule_looks_at() -> None:
    """Five firms of 20 make up 100 of 106: a rule about five needs six ranks."""
    frame = pd.DataFrame({"area": ["n"] * 11 + ["s"] * 100, "t": [20] * 5 + [1] * 6 + [3] * 100})
    rule = {"rule": "dominance", "n": 5, "k": 90}
    made = lu.pivot_table(frame, "t", "area", policy=lu.protect.Suppression(rule=rule))
    assert hidden(made) == ["n"]


def test_reasons_say_which_cells_are_sensitive_and_which_protect_them() -> None:
    area = ["n"] * 3 + ["n"] * 20 + ["s"] * 22 + ["s"] * 24
    sex = ["f"] * 3 + ["m"] * 20 + ["f"] * 22 + ["m"] * 24
    made = lu.crosstab(area, sex, margins=True, policy=SMALL)
    few, other, free = (
        "suppressed: few contributors",
        "suppressed to protect another cell",
        "free for publication",
    )
    assert made.reasons.to_numpy().tolist() == [
        [few, other, free],
        [other, other, free],
        [free, free, free],
    ]
    assert made.frame.isna().to_numpy().tolist() == [[True, True, False]] * 2 + [[False] * 3]
    assert made.frame.loc["All", "All"] == 69
    # What is public tells every hidden cell alike.
    assert set(made.to_pandas().status) == {"F", "N"}


def noisy(frame: pd.DataFrame, **words: Any) -> list[int]:
    """The rounded counts of areas, by lists as long as keys matter."""
    return (
        lu.crosstab(frame.area, frame.sex, policy=RANDOM, secret=SECRET, **words)
        .frame.to_numpy()
        .ravel()
        .tolist()
    )


@pytest.mark.parametrize(
    ("index", "identity"),
    [
        (None, range(32)),
        (range(100, 132), range(100, 132)),
        ([f"p{i}" for i in range(32)], [f"p{i}" for i in range(32)]),
        ([i - 5 for i in range(32)], [str(i - 5) for i in range(32)]),
        ([i + 0.5 for i in range(32)], [str(i + 0.5) for i in range(32)]),
        ([7] * 32, range(32)),  # an index that names nobody
    ],
    ids=["none", "numbers", "texts", "negative", "fractions", "repeated"],
)
def test_records_are_known_by_their_index_where_it_names_them(index: Any, identity: Any) -> None:
    frame = people(index)
    found = _with_records(as_arrow(frame[["area"]], ["area"]), frame)
    assert found.column("lustrum record").to_pylist() == list(identity)
    # The same as naming them in a column, in both calls.
    named = people().assign(person=list(identity))
    wanted = lu.pivot_table(
        named, index="area", columns="sex", policy=RANDOM, secret=SECRET, record_id="person"
    )
    assert noisy(frame) == wanted.frame.to_numpy().ravel().tolist()
    pivot = lu.pivot_table(frame, index="area", columns="sex", policy=RANDOM, secret=SECRET)
    assert pivot.frame.equals(wanted.frame)


def test_other_people_get_other_noise() -> None:
    draws = {tuple(noisy(people(range(start, start + 32)))) for start in range(0, 320, 32)}
    assert len(draws) > 5
    # Without an index records are known by their places.
    lists = lu.crosstab(AREA, SEX, policy=RANDOM, secret=SECRET).frame.to_numpy()
    assert lists.ravel().tolist() == noisy(people())
    arrow = lu.pivot_table(
        as_arrow(people()), index="area", columns="sex", policy=RANDOM, secret=SECRET
    )
    assert arrow.frame.to_numpy().ravel().tolist() == noisy(people())


def test_negative_numbers_in_an_index_leave_the_keys_of_the_others() -> None:
    whole = people([i - 5 for i in range(32)])
    chosen = whole[whole.area == "w"]
    assert noisy(chosen) == noisy(whole)[-2:]


MISTAKES: list[tuple[Any, str]] = [
    (lambda: lu.crosstab(AREA, SEX), "Say how the table is protected with 'policy'"),
    (
        lambda: lu.crosstab(people().area, np.array(SEX[:-1]), policy=ROUNDED),
        "The columns of a cross tabulation must be equally long",
    ),
    (lambda: lu.crosstab("area", SEX, policy=ROUNDED), "are columns, such as frame"),
    (lambda: lu.crosstab(5, SEX, policy=ROUNDED), "are columns, such as frame"),
    (lambda: lu.crosstab(AREA, 5, policy=ROUNDED), "are columns, such as frame"),
    (lambda: lu.crosstab(None, policy=ROUNDED), "at least one column for the rows"),
    (lambda: lu.crosstab([], policy=ROUNDED), "there is no value"),
    (lambda: lu.crosstab(AREA, SEX[:-1], policy=ROUNDED), "equally long"),
    (lambda: lu.crosstab(AREA, SEX, [1], policy=ROUNDED), "equally long"),
    (
        lambda: lu.crosstab(people().area, people(range(1, 33)).sex, policy=ROUNDED),
        "different indices",
    ),
    (
        lambda: lu.crosstab(
            people().area,
            [people().sex, people(range(1, 33)).sex],
            colnames=["s", "t"],
            policy=ROUNDED,
        ),
        "different indices",
    ),
    (
        lambda: lu.crosstab(AREA, SEX, rownames="a", policy=ROUNDED),
        "'rownames' must be a list with a name",
    ),
    (
        lambda: lu.crosstab(AREA, SEX, colnames=["a", "b"], policy=ROUNDED),
        "'colnames' must be a list with a name",
    ),
    (
        lambda: lu.crosstab(AREA, SEX, rownames=["a"], colnames=["a"], policy=ROUNDED),
        "Two of the columns are called 'a'",
    ),
    (
        lambda: lu.crosstab(AREA, SEX, margins=1, policy=ROUNDED),
        "'margins' is True or False, not 1",
    ),
    (
        lambda: lu.crosstab(AREA, SEX, margins=True, margins_name=5, policy=ROUNDED),
        "'margins_name' is a text such as 'All', not an int",
    ),
    (
        lambda: lu.crosstab(AREA, SEX, aggfunc=np.mean, policy=ROUNDED),
        "'aggfunc' is 'count' or 'sum', not 'mean'",
    ),
    (lambda: lu.crosstab(AREA, SEX, aggfunc="sum", policy=ROUNDED), "name them with 'values'"),
    (lambda: lu.pivot_table(people(), index=[3], policy=ROUNDED), "name columns of the frame"),
    (
        lambda: lu.pivot_table(people(), index="area", columns=[None], policy=ROUNDED),
        "name columns of the frame",
    ),
    (lambda: lu.pivot_table(people(), index="area", record_id="nobody", policy=ROUNDED), "nobody"),
    (lambda: lu.pivot_table(people(), "income", index="area", policy=ROUNDED), "income"),
    (lambda: lu.crosstab(AREA, SEX, policy="nothing"), "There is no preset 'nothing'"),
    (
        lambda: lu.crosstab(AREA, SEX, policy=lu.protect.Suppression),
        "not a type|is a method such as",
    ),
    (lambda: lu.crosstab(AREA, SEX, policy=P_PERCENT), "The rule judges contributions"),
]


@pytest.mark.parametrize("at", range(len(MISTAKES)))
def test_every_mistake_is_one_sentence(at: int) -> None:
    call, sentence = MISTAKES[at]
    with pytest.raises(lu.model.LustrumError, match=sentence) as caught:
        call()
    assert str(caught.value).endswith(".")


def test_a_rule_about_contributions_judges_sums_and_one_about_counts_counts() -> None:
    assert not lu.crosstab(AREA, SEX, policy=SMALL).refused
    assert not SUMS["pivot table"](policy=SMALL).refused


POLICY = parse_policy(preset("cell-key").encode(), "it")


def test_a_policy_is_bound_to_its_dataset_and_needs_a_secret(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("LUSTRUM_SECRET", raising=False)
    words: dict[str, Any] = {"index": AREA * 40, "columns": SEX * 40}
    with pytest.raises(InputError, match="The policy changes numbers at random and needs"):
        lu.crosstab(**words, policy=POLICY)
    made = lu.crosstab(**words, policy=POLICY, secret=SECRET, margins=True, margins_name="Sum")
    assert made.decision is not None
    assert made.decision.release is made.release
    assert list(made.frame.index) == ["n", "s", "w", "Sum"]
    assert (made.reasons == "protected by cell-key").to_numpy().all()
    assert "Sum" in made._repr_html_()
    named = replace_dataset(POLICY, "town")
    again = lu.crosstab(**words, policy=named, secret=SECRET, margins=True)
    # Keys belong to a dataset, so another name is another draw.
    assert again.decision.query.dataset == "town"
    assert again.frame.to_numpy().tolist() != made.frame.to_numpy().tolist()
    path = tmp_path / "own.toml"
    path.write_text(preset("cell-key"))
    by_file = lu.crosstab(**words, policy=path, secret=SECRET, margins=True, margins_name="Sum")
    assert by_file.frame.equals(made.frame)
    by_text = lu.crosstab(
        **words, policy=str(path), secret=SECRET, margins=True, margins_name="Sum"
    )
    assert by_text.frame.equals(made.frame)
    with pytest.raises(InputError, match="once for all tables"):
        lu.crosstab(**words, policy="strict", secret=SECRET)


def test_a_policy_that_names_what_the_records_do_not_have_is_refused() -> None:
    text = preset("cell-key")
    ends = text.index("[protect]")
    weighted = text[:ends] + '[weights]\nweight = "nobody"\nclasses = ["row_0"]\n' + text[ends:]
    named = parse_policy(weighted.encode(), "it")
    with pytest.raises(lu.model.PolicyError, match="nobody"):
        lu.crosstab(AREA, SEX, policy=named, secret=SECRET)


def replace_dataset(policy: Any, name: str) -> Any:
    return policy.model_copy(update={"dataset": name})


def test_a_refusal_shows_nothing_and_tells_why() -> None:
    made = lu.crosstab(AREA, SEX, policy=POLICY, secret=SECRET)
    assert made.refused
    assert made.release is None
    assert made.decision is not None
    assert made.decision.release is None
    assert made.why is None
    query = TableQuery("demo", ())
    said = Decision(query, Verdict.REFUSAL, (Reason("cells", "Too many.", "Ask."),))
    refused = ProtectedTable(None, 1, None, said)
    for call in (lambda: refused.frame, lambda: refused.reasons, refused.to_pandas):
        with pytest.raises(InputError, match=r"refused.*Too many\. Ask\."):
            call()
    assert "Too many." in refused._repr_html_()
    silent = ProtectedTable(None, 1, None)
    with pytest.raises(InputError, match="The table was refused, so there is no frame of it"):
        silent.to_arrow()
    assert silent._repr_html_() == "ProtectedTable(refused)"
    shown = lu.crosstab(AREA, SEX, policy=ROUNDED)
    assert not shown.refused
    assert "<table" in shown._repr_html_()
    assert repr(shown) == f"ProtectedTable({shown.release!r})"


# --- Methods and their secret


REPEATABLE = Abilities(repeatable=True)


@dataclass(frozen=True)
class Fake:
    """A method that writes down what it gets: it may need chance, and may refuse a table."""

    needs_chance: bool = False
    refuses: bool = False
    abilities: Abilities = REPEATABLE
    stages: tuple[str, ...] = ("table",)
    base: int = 3
    got: list[Any] = field(default_factory=list)
    name: ClassVar[str] = "fake"

    def to_mapping(self) -> dict[str, Any]:
        return {"method": "fake", "base": self.base}

    def apply(self, table: Table, rng: Any = None) -> Any:
        if self.refuses:
            raise InputError("The fake method takes no such table.")
        if self.needs_chance and rng is None:
            raise InputError("The fake method needs a generator.")
        self.got.append(None if rng is None else rng.integers(0, 2**62, 3).tolist())
        return self.got[-1]


@dataclass(frozen=True)
class Zeros(Fake):
    """One that perturbs empty cells by keys of their own."""

    keys: Any = None

    def with_zeros(self, secret: bytes, dataset: Dataset) -> Zeros:
        return replace(self, keys=(secret, dataset))

    def apply(self, table: Table, rng: Any = None) -> Any:
        return self.keys


@dataclass(frozen=True)
class Looks(Fake):
    """One that keeps the table it was given, and shows zeros."""

    def apply(self, table: Table, rng: Any = None) -> Any:
        self.got.append(table)
        return ROUNDED.apply(Table(table.axes, np.zeros(table.shape, dtype=np.int64)))


@dataclass(frozen=True)
class Hides(Fake):
    """One that hides the first cell."""

    def apply(self, table: Table, rng: Any = None) -> Any:
        status = np.full(table.shape, "F")
        status.flat[0] = "N"
        return Release(table.axes, table.values, status, {"method": "fake"})


def test_reasons_of_other_methods_are_those_of_the_letters() -> None:
    made = lu.crosstab(people().area, policy=Hides())
    assert made.reasons.iloc[:, 0].tolist() == ["not for publication", *["protected by fake"] * 2]
    assert made.frame.iloc[:, 0].isna().tolist() == [True, False, False]


def test_categories_keep_their_own_order() -> None:
    own = people().area.astype(pd.CategoricalDtype(["w", "s", "n"]))
    assert list(lu.crosstab(own, SEX, policy=ROUNDED).frame.index) == ["w", "s", "n"]


def test_a_policy_by_its_name_protects_sums_by_its_method_for_sums() -> None:
    frame = pd.concat([FIRMS] * 200, ignore_index=True)
    made = lu.pivot_table(frame, "turnover", "area", policy="cell-key", secret=SECRET)
    wanted = 200 * np.array([101.5, 143.0, 168.0])
    found = made.frame.iloc[:, 0].to_numpy(dtype=float)
    assert np.abs(found / wanted - 1).max() < 0.05
    assert made.decision.query.measure == "turnover"


def test_a_method_of_sums_gets_three_contributions_of_each_cell_and_one_of_counts_none() -> None:
    method = Looks()
    lu.pivot_table(FIRMS, "turnover", "area", policy=method)
    lu.pivot_table(FIRMS, index="area", policy=method)
    sums, counts = method.got
    assert sums.contributions.value.tolist() == [[905, 40, 30], [300, 280, 250], [330, 310, 290]]
    assert counts.contributions is None
    assert counts.values.tolist() == [6, 6, 6]


def test_columns_that_are_not_asked_for_are_not_looked_at() -> None:
    frame = people().assign(odd=[{1}, "x"] * 16)
    assert lu.pivot_table(frame, index="area", policy=ROUNDED).frame.shape == (3, 1)


TABLE = Table((TableAxis.plain("a", ["1", "2"]),), np.array([3, 4]))
DATASET = Dataset("town", "Town", ())


def drawn(method: Fake, table: Table = TABLE, secret: Secret | None = SECRET) -> Any:
    return apply_with_secret(method, table, DATASET, secret)


def test_chance_follows_from_the_secret_the_method_and_the_table() -> None:
    usual = drawn(Fake(needs_chance=True))
    assert len(usual) == 3
    assert drawn(Fake(needs_chance=True)) == usual
    keyed = replace(TABLE, keys=np.array([1, 2], dtype=np.uint64))
    other = {
        "secret": drawn(Fake(needs_chance=True), secret=OTHER),
        "method": drawn(Fake(needs_chance=True, base=4)),
        "values": drawn(Fake(needs_chance=True), replace(TABLE, values=np.array([4, 3]))),
        "codes": drawn(
            Fake(needs_chance=True), replace(TABLE, axes=(TableAxis.plain("a", ["1", "3"]),))
        ),
        "name": drawn(
            Fake(needs_chance=True), replace(TABLE, axes=(TableAxis.plain("b", ["1", "2"]),))
        ),
        "records": drawn(Fake(needs_chance=True), keyed),
        "other records": drawn(
            Fake(needs_chance=True), replace(keyed, keys=keyed.keys[::-1].copy())
        ),
    }
    assert len({tuple(usual), *map(tuple, other.values())}) == 8


def test_a_method_without_chance_needs_no_secret_and_gets_no_generator() -> None:
    for secret in (None, SECRET):
        assert drawn(Fake(), secret=secret) is None
    with pytest.raises(
        InputError, match="'fake' changes numbers at random and needs the agency's secret"
    ):
        drawn(Fake(needs_chance=True), secret=None)
    for secret in (None, SECRET):
        with pytest.raises(InputError, match="takes no such table"):
            drawn(Fake(refuses=True), secret=secret)


def test_empty_cells_have_keys_of_their_own_and_of_the_dataset() -> None:
    assert drawn(Zeros()) == (SECRET.derive("lustrum empty cells"), DATASET)
    assert drawn(Zeros(), secret=None) is None


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (Unchanged(), "shows true numbers"),
        (Fake(stages=("records",)), "'fake' does not work on tables"),
        (Fake(abilities=Abilities()), "'fake' does not promise the same numbers each time"),
    ],
)
def test_methods_that_do_not_protect_tables_again_and_again_are_refused(
    method: Any, sentence: str
) -> None:
    for secret in (None, SECRET):
        with pytest.raises(InputError, match=sentence):
            apply_with_secret(method, TABLE, DATASET, secret)


def test_a_secret_is_given_or_named_by_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    SECRET.write(one)
    OTHER.write(two)
    monkeypatch.delenv("LUSTRUM_SECRET", raising=False)
    assert secret_of(None) is None
    assert secret_of(SECRET) is SECRET
    assert secret_of(one).value == secret_of(str(one)).value == SECRET.value  # type: ignore[union-attr]
    monkeypatch.setenv("LUSTRUM_SECRET", str(two))
    assert secret_of(None).value == OTHER.value  # type: ignore[union-attr]
    assert secret_of(one).value == SECRET.value  # type: ignore[union-attr]
    monkeypatch.setenv("LUSTRUM_SECRET", "")
    assert secret_of(None) is None
    with pytest.raises(
        InputError, match="'secret' is a Secret or the path of its file, not an int"
    ):
        secret_of(7)
    one.chmod(0o644)
    with pytest.raises(lu.model.LustrumError, match="open to others"):
        secret_of(one)
