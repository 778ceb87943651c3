"""Responses that add up: the ranges of all tables of all responses that fit together."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit.fibres import QUICK, axis
from lustrum.audit import Knowledge, PublishedTable, Relation, bounds, from_responses
from lustrum.audit.knowledge.responses import related
from lustrum.audit.report import audit_tables
from lustrum.model import InputError, Variable
from lustrum.numeric.structure import UNBOUNDED, TableLayout

ACT = axis("act", [0], [1], [0, 1])
SIZE = axis("size", [0], [1], [0, 1])
NAMES = ("turnover", "domestic", "export")


def summed(inner: np.ndarray) -> np.ndarray:
    return np.append(inner, inner.sum())


@QUICK
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.sets(st.integers(0, 8)))
def test_ranges_are_those_of_all_responses_that_fit_together(values, hidden):
    parts = np.array(values).reshape(2, 2)
    true = {"domestic": summed(parts[0]), "export": summed(parts[1])}
    true["turnover"] = true["domestic"] + true["export"]
    masks = {name: np.isin(np.arange(3) + 3 * i, list(hidden)) for i, name in enumerate(NAMES)}
    masks["turnover"][2] = False  # keeps the enumeration finite
    known = from_responses(
        {n: PublishedTable.exact([ACT], np.where(masks[n], 0, true[n]), masks[n]) for n in NAMES},
        [("turnover", ("domestic", "export"))],
    )
    fits = []
    for inner in itertools.product(range(int(true["turnover"][2]) + 1), repeat=4):
        one, two = summed(np.array(inner[:2])), summed(np.array(inner[2:]))
        made = {"turnover": one + two, "domestic": one, "export": two}
        if all((made[n] == true[n])[~masks[n]].all() for n in NAMES):
            fits.append([made[n] for n in NAMES])
    every = np.array(fits).reshape(len(fits), -1)
    found = bounds(known, integer=True)
    assert found.low.tolist() == every.min(axis=0).tolist()
    assert found.high.tolist() == every.max(axis=0).tolist()


def test_responses_may_have_other_variables_than_each_other():
    # By size nobody shows domestic; but what is not exported in a size is domestic there.
    known = from_responses(
        {
            "turnover": PublishedTable.exact([ACT, SIZE], [[4, 6, 10], [5, 2, 7], [9, 8, 17]]),
            "domestic": PublishedTable.exact([ACT], [3, 6, 9]),
            "export": PublishedTable.exact([SIZE], [4, 4, 8]),
        },
        ["turnover = domestic + export"],
    )
    cells = ["domestic: size=0", "domestic: size=1", "export: act=0", "domestic: act=0, size=0"]
    found = bounds(known, cells, integer=True)
    fits = []
    for d in itertools.product(range(5), range(7), range(6), range(3)):
        one, two = np.array(d).reshape(2, 2), np.array([[4, 6], [5, 2]]) - np.reshape(d, (2, 2))
        if one.sum(axis=1).tolist() == [3, 6] and two.sum(axis=0).tolist() == [4, 4]:
            fits.append([*one.sum(axis=0), two.sum(axis=1)[0], one[0, 0]])
    assert found.low.tolist() == np.min(fits, axis=0).tolist()
    assert found.high.tolist() == np.max(fits, axis=0).tolist()


def test_a_response_may_be_negative_and_weights_may_be_any():
    tables = {
        "sales": PublishedTable.exact([ACT], [10, 20, 30]),
        "costs": PublishedTable.exact([ACT], [12, 0, 0], [False, True, True]),
    }
    known = from_responses(
        tables | {"profit": PublishedTable.hidden([ACT], low=-UNBOUNDED)},
        [({"sales": 1, "costs": -1, "profit": -1}, 0)],
    )
    found = bounds(known, ["profit: act=0", "profit: act=1"])
    assert found.low.tolist() == [-2.0, -np.inf]
    assert found.high.tolist() == [-2.0, 20.0]
    half = from_responses(tables, [Relation.of("2 costs <= 3 sales")])
    assert bounds(half, ["costs: act=1"]).high.tolist() == [30.0]


def test_two_tables_of_one_response_are_both_believed():
    one = PublishedTable.exact([ACT], [0, 5, 9], [True, False, False])
    two = PublishedTable.rounded([ACT], [3, 6, 9], 3)
    known = from_responses({"a": [one, two], "b": PublishedTable.hidden([ACT])}, ["a = b"])
    assert bounds(known, ["b: act=0"]).low.tolist() == [4.0]
    assert isinstance(known, Knowledge)


@pytest.mark.parametrize(
    ("words", "weights", "ends"),
    [
        ("a = b + c", {"a": 1, "b": -1, "c": -1}, (0, 0)),
        ("a - 2 b >= 0", {"a": 1, "b": -2}, (0, UNBOUNDED)),
        ("3*a <= b + b", {"a": 3, "b": -2}, (-UNBOUNDED, 0)),
        ("a == b + c + c", {"a": 1, "b": -1, "c": -2}, (0, 0)),
        (("a", ("b", "c", "c")), {"a": 1, "b": -1, "c": -2}, (0, 0)),
        (({"a": 1, "b": -1}, 0), {"a": 1, "b": -1}, (0, 0)),
        ("a + b = a + 2 c", {"b": 1, "c": -2}, (0, 0)),
    ],
)
def test_relations_are_read_from_words(words, weights, ends):
    relation = Relation.of(words)
    assert (relation.weights, (relation.low, relation.high)) == (weights, ends)


@pytest.mark.parametrize(
    "wrong", ["a", "a = b = c", "a = b c", "a = 1.5 b", "= b", ("a", 3), ({"a": 1}, 2), "a = a"]
)
def test_a_relation_that_cannot_be_read_is_refused(wrong):
    with pytest.raises(InputError):
        Relation.of(wrong)
    for weights, low, high in (
        ({"a": 1, "b": 0}, 0, 0),
        ({"a": 1, "b": 1.5}, 0, 0),
        ({"a": 1}, 1, 1),
        ({"a": 1}, 0, 1),
        ({"a": 1}, -UNBOUNDED, UNBOUNDED),
    ):
        with pytest.raises(InputError):
            Relation(weights, low, high)


def test_an_unknown_response_is_named():
    with pytest.raises(InputError, match="no response 'exports'"):
        from_responses({"export": PublishedTable.hidden([ACT])}, ["export = exports"])


def test_a_report_takes_responses_and_their_relations():
    tables = [
        PublishedTable.exact([ACT], [9, 5, 14]),
        PublishedTable.exact([ACT], [6, 0, 0], [False, True, True]),
        PublishedTable.exact([ACT], [0, 2, 0], [True, False, True]),
    ]
    report = audit_tables(tables, responses=NAMES, relations=["turnover = domestic + export"])
    assert [(c.table, c.name, c.low) for c in report.disclosed] == [
        (1, "domestic: act=1", 3.0),
        (1, "domestic: act=01", 9.0),
        (2, "export: act=0", 3.0),
        (2, "export: act=01", 5.0),
    ]
    with pytest.raises(InputError, match="Relations are between responses"):
        audit_tables(tables, relations=["turnover = domestic + export"])
    with pytest.raises(InputError, match="3 tables but 1 responses"):
        audit_tables(tables, responses=["turnover"])


def test_responses_may_be_negative_one_by_one_or_all():
    def hidden_parts(**rest):
        tables = {"sales": PublishedTable.exact([ACT], [4, 5, 9])}
        tables["profit"] = PublishedTable.exact([axis("act", [0, 1])], [1])
        return bounds(from_responses(tables, **rest), ["profit: act=0"])

    assert hidden_parts().low.tolist() == [0]
    assert hidden_parts().high.tolist() == [1]
    for low in (-UNBOUNDED, {"profit": -UNBOUNDED}):
        found = hidden_parts(low=low)
        assert found.low.tolist() == [-np.inf]
        assert found.high.tolist() == [np.inf]
    assert hidden_parts(low={"sales": -UNBOUNDED}).low.tolist() == [0]
    assert hidden_parts(low={"profit": -2}).low.tolist() == [-2]


def test_responses_need_tables_in_one_unit():
    plain = axis("act", [0], [1])
    cents = PublishedTable.exact([plain], [100, 250], decimals=2)
    for tables in ({}, {"a": []}, {"a": cents, "b": PublishedTable.hidden([plain])}):
        with pytest.raises(InputError, match=r"at least one table|different decimals"):
            from_responses(tables)
    assert from_responses({"a": cents}).decimals == 2


def test_codes_that_no_table_names_count_where_a_filter_leaves_people_out():
    # Size 0 is a filter of one table. The other counts sizes that nobody lists, if there are any.
    act = (axis("act", [0], [1]),)
    small = TableLayout(act, (axis("size", [0]),))
    tables = {
        "a": [PublishedTable.exact(small, [2, 3]), PublishedTable.exact(act, [6, 7])],
        "b": PublishedTable.hidden(act),
    }
    size = Variable("size", "Size", ("s", "m", "l"), ("s", "m", "l"))
    wide = related(tables, ["a = b"], variables=[size])
    cube = wide.layouts[-1]
    assert cube.shape == (2, 2)
    cells = [c for c in wide.known.names if c.startswith("b: ") and "atom" in c]
    assert len(cells) == 4
    found = bounds(wide.known, cells)
    assert sorted(found.low.tolist()) == sorted(found.high.tolist()) == [2, 3, 4, 4]
