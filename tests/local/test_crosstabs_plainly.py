"""Cross tabulations against pandas and a plain count: forms of input, records and their keys, contributors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lustrum as lu
from lustrum.local.secrets import apply_with_secret
from lustrum.model import Dataset, InputError, PolicyError, Table, TableAxis
from lustrum.policy.presets import preset
from lustrum.policy.read import parse_policy
from lustrum.protect.abilities import Abilities
from lustrum.tabulate import Secret
from lustrum.tabulate.frame import as_arrow

ROUNDED, RANDOM = lu.protect.ConventionalRounding(base=5), lu.protect.RandomRounding(base=5)
SECRET, OTHER = Secret(bytes(range(32))), Secret(b"o" * 32)
NAMES: dict[str, Any] = {"rownames": ["area"], "colnames": ["sex"]}
PEOPLE = st.lists(st.tuples(st.sampled_from("nsw"), st.sampled_from("fm")), min_size=1)


@given(PEOPLE, st.sampled_from(["All", "Sum"]))
@settings(max_examples=15)
def test_every_form_of_input_is_the_crosstab_of_pandas(people: list[Any], called: str) -> None:
    frame = pd.DataFrame(people, columns=["area", "sex"])
    area, sex = frame.area.tolist(), frame.sex.tolist()
    words: dict[str, Any] = {"policy": ROUNDED, "margins": True, "margins_name": called}
    plain = pd.crosstab(frame.area, frame.sex, margins=True, margins_name=called)
    wanted = 5 * np.floor(plain / 5 + 0.5)
    for made in (
        lu.crosstab(frame.area, frame.sex, **words),
        lu.crosstab([area], (sex,), **NAMES, **words),
        lu.crosstab(frame.area, np.array(sex), **NAMES, **words),
        lu.crosstab(pl.Series("area", area), pl.Series("sex", sex), **words),
        lu.crosstab(area, sex, values=[1.5] * len(area), aggfunc=len, **NAMES, **words),
        lu.pivot_table(frame, index=["area"], columns="sex", **words),
    ):
        assert made.frame.index.equals(plain.index)
        assert (made.frame.index.name, made.frame.columns.name) == ("area", "sex")
        assert made.frame.columns.tolist() == plain.columns.tolist()
        # A total that tells its parts is hidden.
        shown = made.frame.notna().to_numpy()
        assert shown[:-1, :-1].all()
        assert (made.frame.to_numpy()[shown] == wanted.to_numpy()[shown]).all()
        assert set(made.reasons.to_numpy()[shown]) == {"protected by conventional-rounding"}
    plain_names = lu.crosstab(area, sex, policy=ROUNDED).frame
    assert (plain_names.index.name, plain_names.columns.name) == ("row_0", "col_0")


FIRMS = pd.DataFrame(
    {
        "area": list("nnnnnnsssssswwwwww"),
        "turnover": [90.5, 4, 3, 2, 1, 1, 30, 28, 25, 21, 20, 19, 33, 31, 29, 27, 26, 22],
        "owner": ["a", "b", "c", "d", "e", "f", "g", "g", "g", "g", "g", "g", *"hijklm"],
    }
)


def hidden(values: Any, holding: Any = None, rule: Any = None, **words: Any) -> list[str]:
    """The areas whose sum is hidden."""
    policy = lu.protect.Suppression(rule=rule or {"rule": "p-percent", "p": 15})
    made = lu.crosstab(FIRMS.area, values=values, holding=holding, policy=policy, **words)
    free = made.frame.notna().to_numpy()
    assert ((made.reasons == "free for publication").to_numpy() == free).all()
    assert made.frame.iloc[2, 0] == 168.0
    return [str(k) for k in made.frame.index[made.frame.iloc[:, 0].isna()]]


def test_firms_that_dominate_are_hidden_and_records_of_one_holding_are_one() -> None:
    """In the north one firm has 90.5 of 101.5, and the others but the second add up to 7."""
    turnover, owner = FIRMS.turnover, FIRMS.owner
    for values in (turnover, turnover.tolist(), turnover.rename("area")):
        for words in ({}, {"aggfunc": "sum"}, {"aggfunc": np.sum}):
            assert hidden(values, **words) == ["n"]
        for holding in (owner, owner.tolist(), owner.rename("area")):
            assert hidden(values, holding) == ["n", "s"]
    pivot = lu.pivot_table(
        FIRMS, "turnover", "area", holding="owner",
        policy=lu.protect.Suppression(rule={"rule": "p-percent", "p": 15}),
    )  # fmt: skip
    assert pivot.frame.iloc[:, 0].isna().tolist() == [True, True, False]
    # Five firms of 20 make up 100 of 106: a rule about five needs six ranks.
    many = pd.DataFrame({"area": ["n"] * 11 + ["s"] * 100, "t": [20] * 5 + [1] * 6 + [3] * 100})
    rule = {"rule": "dominance", "n": 5, "k": 90}
    made = lu.pivot_table(many, "t", "area", policy=lu.protect.Suppression(rule=rule))
    assert made.frame.iloc[:, 0].isna().tolist() == [True, False]


def noisy(frame: pd.DataFrame, **words: Any) -> list[int]:
    made = lu.crosstab(frame.area, frame.sex, policy=RANDOM, secret=SECRET, **words)
    return made.frame.to_numpy().ravel().tolist()


def people(index: Any = None) -> pd.DataFrame:
    frame = pd.DataFrame({"area": ["n"] * 8 + ["s"] * 11 + ["w"] * 13, "sex": list("fm" * 16)})
    return frame if index is None else frame.set_index(pd.Index(index))


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
    """The same as naming them in a column, in both calls; without an index by their places."""
    words: dict[str, Any] = {"index": "area", "columns": "sex", "policy": RANDOM, "secret": SECRET}
    named = people().assign(person=list(identity))
    wanted = lu.pivot_table(named, record_id="person", **words).frame
    assert noisy(people(index)) == wanted.to_numpy().ravel().tolist()
    assert lu.pivot_table(people(index), **words).frame.equals(wanted)
    if index is None:
        assert lu.pivot_table(as_arrow(people()), **words).frame.equals(wanted)


def test_other_people_get_other_noise_and_a_selection_keeps_its_keys() -> None:
    draws = {tuple(noisy(people(range(start, start + 32)))) for start in range(0, 320, 32)}
    assert len(draws) > 5
    whole = people([i - 5 for i in range(32)])
    assert noisy(whole[whole.area == "w"]) == noisy(whole)[-2:]


def test_keys_belong_to_the_dataset_that_a_policy_names_and_its_words_are_checked() -> None:
    text, frame = preset("cell-key"), people()
    words: dict[str, Any] = {"index": [*frame.area] * 40, "columns": [*frame.sex] * 40}
    policy = parse_policy(text.encode(), "it")
    made = lu.crosstab(**words, policy=policy, secret=SECRET)
    town = policy.model_copy(update={"dataset": "town"})
    named = lu.crosstab(**words, policy=town, secret=SECRET)
    assert named.decision.query.dataset == "town"
    assert named.frame.to_numpy().tolist() != made.frame.to_numpy().tolist()
    text = text.partition("\n[ledger]")[0] + "\nend = true\n"
    weights = '[weights]\nweight = "nobody"\nclasses = ["row_0"]\n'
    wrong = text.replace("[protect]", f"{weights}[protect]", 1)
    with pytest.raises(PolicyError, match="nobody"):
        lu.crosstab(**words, policy=parse_policy(wrong.encode(), "it"), secret=SECRET)


@dataclass(frozen=True)
class Fake:
    """A method that gives what it gets: chance, or the keys of empty cells; it may refuse a table."""

    needs: str = ""
    base: int = 3
    keys: Any = None
    abilities: ClassVar[Abilities] = Abilities(repeatable=True)
    stages: ClassVar[tuple[str, ...]] = ("table",)
    name: ClassVar[str] = "fake"

    def to_mapping(self) -> dict[str, Any]:
        return {"method": "fake", "base": self.base}

    def apply(self, table: Table, rng: Any = None) -> Any:
        if self.needs == "other tables":
            raise InputError("The fake method takes no such table.")
        if self.needs == "chance" and rng is None:
            raise InputError("The fake method needs a generator.")
        return self.keys if rng is None else tuple(rng.integers(0, 2**62, 3).tolist())


class Zeros(Fake):
    """One that perturbs empty cells by keys of their own."""

    def with_zeros(self, secret: bytes, dataset: Dataset) -> Zeros:
        return replace(self, keys=(secret, dataset))


TABLE = Table((TableAxis.plain("a", ["1", "2"]),), np.array([3, 4]))
TOWN = Dataset("town", "Town", ())


def test_chance_follows_from_the_secret_the_method_and_the_table() -> None:
    keyed = replace(TABLE, keys=np.array([1, 2], dtype=np.uint64))
    method = Fake("chance")
    asked = [
        (method, TABLE, SECRET),
        (method, TABLE, OTHER),
        (replace(method, base=4), TABLE, SECRET),
        (method, replace(TABLE, values=np.array([4, 3])), SECRET),
        (method, replace(TABLE, axes=(TableAxis.plain("a", ["1", "3"]),)), SECRET),
        (method, replace(TABLE, axes=(TableAxis.plain("b", ["1", "2"]),)), SECRET),
        (method, keyed, SECRET),
        (method, replace(keyed, keys=keyed.keys[::-1].copy()), SECRET),
    ]
    once, twice = ([apply_with_secret(m, t, TOWN, s) for m, t, s in asked] for _ in range(2))
    assert once == twice
    assert len(set(once)) == len(asked)
    with pytest.raises(InputError, match="'fake' changes numbers at random and needs the agency's"):
        apply_with_secret(method, TABLE, TOWN, None)
    zeros = (SECRET.derive("lustrum empty cells"), TOWN)
    for secret, keys in ((None, None), (SECRET, zeros)):
        assert apply_with_secret(Fake(), TABLE, TOWN, secret) is None
        assert apply_with_secret(Zeros(), TABLE, TOWN, secret) == keys
        with pytest.raises(InputError, match="takes no such table"):
            apply_with_secret(Fake("other tables"), TABLE, TOWN, secret)
