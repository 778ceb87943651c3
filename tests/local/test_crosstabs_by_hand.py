"""Cross tabulations of a few records: layout, records and their keys, contributors, reasons, all by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest

import lustrum as lu
from lustrum.local import ProtectedTable
from lustrum.local.secrets import apply_with_secret
from lustrum.model import Dataset, InputError, Table, TableAxis
from lustrum.policy.presets import preset
from lustrum.policy.read import parse_policy
from lustrum.protect.abilities import Abilities
from lustrum.tabulate import Secret
from lustrum.tabulate.frame import as_arrow

SMALL = lu.protect.Suppression(rule={"rule": "threshold", "minimum": 5})
ROUNDED = lu.protect.ConventionalRounding(base=5)
RANDOM = lu.protect.RandomRounding(base=5)
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


def counted(area: Any = None, sex: Any = None, **words: Any) -> ProtectedTable:
    names = {"rownames": ["area"], "colnames": ["sex"]}
    return lu.crosstab(
        AREA if area is None else area, SEX if sex is None else sex, policy=ROUNDED, **names | words
    )


FORMS: dict[str, Any] = {
    "columns of a frame": lambda: lu.crosstab(people().area, people().sex, policy=ROUNDED),
    "lists": counted,
    "a list of a list": lambda: counted([AREA], (SEX,)),
    "tuples": lambda: counted(tuple(AREA), tuple(SEX)),
    "arrays": lambda: counted(np.array(AREA), np.array(SEX)),
    "an array beside a column": lambda: counted(people().area, np.array(SEX)),
    "columns of polars": lambda: counted(pl.Series("area", AREA), pl.Series("sex", SEX)),
    "a pivot table": lambda: lu.pivot_table(
        people(), index=["area"], columns="sex", policy=ROUNDED
    ),
    "counted": lambda: counted(aggfunc="count"),
    "sizes": lambda: counted(aggfunc=len),
    "values that are counted": lambda: counted(values=[1.5] * 32, aggfunc="size"),
}


@pytest.mark.parametrize("form", FORMS)
def test_records_are_counted_in_whatever_form_they_come(form: str) -> None:
    made = FORMS[form]()
    frame = made.frame
    assert (frame.index.name, frame.columns.name) == ("area", "sex")
    assert list(frame.index) == ["n", "s", "w"]
    assert list(frame.columns) == ["f", "m"]
    for area, sex in product("nsw", "fm"):
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
    "by numpy": lambda **w: lu.crosstab(FIRMS.area, values=FIRMS.turnover, aggfunc=np.sum, **w),
    "without a word": lambda **w: lu.crosstab(FIRMS.area, values=FIRMS.turnover, **w),
    "pivot table": lambda **w: lu.pivot_table(FIRMS, "turnover", "area", aggfunc="sum", **w),
    "a list of values": lambda **w: lu.crosstab(FIRMS.area, values=FIRMS.turnover.tolist(), **w),
}


@pytest.mark.parametrize("form", SUMS)
def test_a_firm_that_dominates_is_hidden_and_sums_are_exact_elsewhere(form: str) -> None:
    made = SUMS[form](policy=P_PERCENT)
    # In the north one firm has 90.5 of 101.5, and the others but the second add up to 7.
    assert hidden(made) == ["n"]
    assert made.frame.iloc[1:, 0].tolist() == [143.0, 168.0]
    assert made.reasons.iloc[0, 0].startswith("suppressed")
    assert set(made.reasons.iloc[1:, 0]) == {"free for publication"}
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
    """The same as naming them in a column, in both calls."""
    words: dict[str, Any] = {"index": "area", "columns": "sex", "policy": RANDOM, "secret": SECRET}
    named = people().assign(person=list(identity))
    wanted = lu.pivot_table(named, record_id="person", **words).frame
    assert noisy(people(index)) == wanted.to_numpy().ravel().tolist()
    assert lu.pivot_table(people(index), **words).frame.equals(wanted)


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


def test_a_rule_about_contributions_judges_sums_and_one_about_counts_counts() -> None:
    assert not lu.crosstab(AREA, SEX, policy=SMALL).refused
    assert not SUMS["pivot table"](policy=SMALL).refused


POLICY = parse_policy(preset("cell-key").encode(), "it")


def test_keys_belong_to_the_dataset_that_a_policy_names() -> None:
    words: dict[str, Any] = {"index": AREA * 40, "columns": SEX * 40, "secret": SECRET}
    made = lu.crosstab(**words, policy=POLICY)
    named = lu.crosstab(**words, policy=POLICY.model_copy(update={"dataset": "town"}))
    assert named.decision.query.dataset == "town"
    assert named.frame.to_numpy().tolist() != made.frame.to_numpy().tolist()


def test_a_policy_that_names_what_the_records_do_not_have_is_refused() -> None:
    text = preset("cell-key").partition("\n[ledger]")[0] + "\nend = true\n"
    ends = text.index("[protect]")
    weighted = text[:ends] + '[weights]\nweight = "nobody"\nclasses = ["row_0"]\n' + text[ends:]
    named = parse_policy(weighted.encode(), "it")
    with pytest.raises(lu.model.PolicyError, match="nobody"):
        lu.crosstab(AREA, SEX, policy=named, secret=SECRET)


# --- Methods and their secret


@dataclass(frozen=True)
class Fake:
    """A method that writes down what it gets: it may need chance, and may refuse a table."""

    needs_chance: bool = False
    refuses: bool = False
    abilities: ClassVar[Abilities] = Abilities(repeatable=True)
    stages: ClassVar[tuple[str, ...]] = ("table",)
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
