"""Tables of small frames, every number of which can be added up by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from lustrum.model import InputError
from lustrum.publish import frames as module
from lustrum.publish.frames import judges_contributions, ranks_of, suppress, table_of_records
from lustrum.sensitivity import (
    AllOf,
    AnyOf,
    Dominance,
    GivenCells,
    PPercent,
    PriorPosterior,
    Request,
    Rule,
    Sparsity,
    Threshold,
    Unless,
)
from lustrum.tabulate.keys import Secret


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ({"by": "area"}, "must be a list of columns"),
        ({"rule": PPercent(p=10)}, "name the column that is added up as 'measure'"),
        ({"rule": Request(), "measure": "pay"}, "nobody is named here"),
        ({"rule": AnyOf(Threshold(3), Request()), "measure": "pay"}, "nobody is named here"),
        ({"groups": {"size": {"x": ["y"]}}}, "which does not span the table"),
    ],
)
def test_a_mistake_is_one_sentence(words: dict[str, Any], sentence: str) -> None:
    given: dict[str, Any] = {"by": ["area", "job"], "rule": Threshold(3)}
    with pytest.raises(InputError, match=sentence):
        suppress(SMALL, **given | words)


@pytest.mark.parametrize(
    ("rule", "contributions", "ranks"),
    [
        (Threshold(2), False, 3),
        (Threshold(3), False, 4),
        (Threshold(7), False, 8),
        (PPercent(10), True, 3),
        (PPercent(10, coalition=4), True, 5),
        (PriorPosterior(10, 50, coalition=3), True, 4),
        (Dominance(n=5, k=80), True, 6),
        (AnyOf(Threshold(9), Dominance(n=2, k=80)), True, 10),
        (AllOf(Threshold(3), AnyOf(Threshold(4), PPercent(10, coalition=7))), True, 8),
        (Unless(Threshold(5), veto=PPercent(10)), True, 6),
        (Unless(PPercent(10), veto=Threshold(5)), True, 6),
        (Sparsity(), False, 3),
        (GivenCells(np.zeros(1, dtype=bool), np.zeros(1, dtype=int)), False, 3),
    ],
)
def test_a_rule_is_given_the_contributions_that_it_looks_at(
    rule: Rule, contributions: bool, ranks: int
) -> None:
    assert judges_contributions(rule) is contributions
    assert ranks_of(rule) == ranks


SMALL = {
    "area": ["n", "n", "s", "s", "s"],
    "job": ["a", "b", "a", "a", "b"],
    "pay": [1.5, 2.0, 4.5, 8.0, 16.0],
    "w": [1, 2, 3, 4, 5],
    "who": ["x", "y", "z", "z", "x"],
    "no": ["r7", "r8", "r3", "r4", "r5"],
}


def test_a_table_of_records_is_what_was_asked_for() -> None:
    counted = table_of_records(SMALL, ["area", "job"])
    assert counted.values.tolist() == [[1, 1, 2], [2, 1, 3], [3, 2, 5]]
    assert counted.contributions is None
    assert counted.kind == "count"
    bare = table_of_records(SMALL, ["area"], totals=False)
    assert bare.values.tolist() == [2, 3]
    assert bare.keys is None
    summed = table_of_records(SMALL, ["area"], measure="pay", holding="who", ranks=2)
    assert (summed.values.tolist(), summed.decimals) == ([35, 285, 320], 1)
    assert summed.contributors is not None
    assert summed.contributors.tolist() == [2, 2, 3]
    assert summed.contributions is not None
    assert summed.contributions.value.tolist() == [[20, 15], [160, 125], [175, 125]]
    cents = table_of_records(SMALL, ["area"], measure="pay", decimals=2)
    assert (cents.values.tolist(), cents.decimals) == ([350, 2850, 3200], 2)
    weighted = table_of_records(SMALL, ["area"], weight="w")
    assert weighted.values.tolist() == [3, 12, 15]
    # A column that is not used need not be one that anything can be made of.
    odd = SMALL | {"odd": [1, "x", None, 2.5, b"y"]}
    assert table_of_records(odd, ["area"]).values.tolist() == [2, 3, 5]
    assert table_of_records(pd.DataFrame(SMALL), ["area"]).values.tolist() == [2, 3, 5]
    none = table_of_records(SMALL, ["area"], groups={"area": {}})
    assert none.axes[0].codes == ("n", "s", "_T")


def test_record_keys_follow_from_the_secret_and_the_record() -> None:
    first, second = (Secret(bytes([k] * 32)) for k in (1, 2))

    def keys(rows: list[int], secret: Secret = first, record_id: str | None = "no") -> Any:
        frame = {name: [column[k] for k in rows] for name, column in SMALL.items()}
        return table_of_records(frame, ["area"], secret=secret, record_id=record_id).keys.tolist()  # type: ignore[union-attr]

    order = [4, 2, 0, 3, 1]
    assert keys([0, 1, 2, 3, 4]) == keys(order)
    assert keys([0, 1, 2, 3, 4]) != keys([0, 1, 2, 3, 4], second)
    assert keys([0, 1, 2, 3, 4], record_id=None) != keys([0, 1, 2, 3, 4])


def test_groups_are_summed_whatever_order_they_are_named_in() -> None:
    groups = {"job": {"All": ["B", "a"], "B": ["b"], "A": ["a"]}}
    table = table_of_records(SMALL, ["area", "job"], groups=groups, totals=False)
    assert table.axes[1].codes == ("a", "b", "All", "B", "A")
    assert table.values.tolist() == [[1, 1, 2, 1, 1], [2, 1, 3, 1, 2]]
    assert [axis.label for axis in table.axes] == ["area", "job"]
    with pytest.raises(InputError, match="The group 'A' of 'job' holds 'c', which is no code"):
        table_of_records(SMALL, ["job"], groups={"job": {"B": ["b"], "A": ["b", "c"]}})


def test_a_method_has_the_parameters_that_were_given(monkeypatch: pytest.MonkeyPatch) -> None:
    words: dict[str, Any] = {
        "cost": "unity",
        "attacker": "outsider",
        "unions": True,
        "keep": "totals",
        "zeros": True,
        "partial": True,
        "algorithm": "quick",
        "work": 7,
    }
    made: list[Any] = []
    real = module.Suppression

    def spied(**given: Any) -> Any:
        made.append(given)
        return real(**given)

    monkeypatch.setattr(module, "Suppression", spied)
    rule = PPercent(10)
    suppress(SMALL, ["area", "job"], rule, measure="pay", holding="who", totals=False, **words)
    suppress(SMALL, ["area", "job"], Threshold(1))
    assert made[0] == words | {"rule": rule}
    assert made[1] == {
        "rule": Threshold(1),
        "cost": "value",
        "attacker": "insiders",
        "unions": False,
        "keep": "nothing",
        "zeros": False,
        "partial": False,
        "algorithm": "auto",
        "work": None,
    }


def test_a_table_is_made_as_the_call_says(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    steps: list[Any] = []
    real, search = module.table_of_records, module.StoppableSearch.tell

    def spied(frame: object, by: Any, **words: Any) -> Any:
        asked.append((by, words))
        return real(frame, by, **words)

    def told(self: Any, *words: Any) -> bool:
        steps.append(words)
        return search(self, *words)

    monkeypatch.setattr(module, "table_of_records", spied)
    monkeypatch.setattr(module.StoppableSearch, "tell", told)
    groups = {"job": {"AB": ["a", "b"]}}
    more: dict[str, Any] = {"holding": "who", "decimals": 2, "groups": groups, "totals": False}
    suppress(SMALL, ["area", "job"], PPercent(10, coalition=4), measure="pay", **more)
    assert asked == [(["area", "job"], {"measure": "pay", "ranks": 5} | more)]
    rng = np.random.default_rng(8)
    firms = {
        "nace": rng.choice(list("abcde"), 90).tolist(),
        "area": rng.choice(list("nsw"), 90).tolist(),
    }
    suppress(firms, ["nace", "area"], Threshold(5))
    assert steps
