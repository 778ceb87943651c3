"""Responses that are tied to each other: what is read, checked and handed on, on tiny tables."""

from __future__ import annotations

import numpy as np
import pytest

from audit.fibres import axis
from lustrum.audit import PublishedTable, Relation, bounds, from_responses
from lustrum.audit.knowledge.responses import related
from lustrum.model import InputError, Variable
from lustrum.numeric.structure import UNBOUNDED, TableLayout

ACT = axis("act", [0], [1], [0, 1])
PLAIN = axis("act", [0], [1])
SIZE = axis("size", [0], [1])


def test_words_pairs_and_weights_give_the_same_relation():
    wanted = Relation({"a": 1, "b": -1, "c": -2})
    for given in ("a = b + 2 c", "a == b + c + c", "a - b = 2*c", ("a", ("b", "c", "c")), wanted):
        relation = Relation.of(given)
        assert relation == wanted
        assert all(type(weight) is int for weight in relation.weights.values())
    assert Relation.of(({"a": 1, "b": -1, "c": -2}, 0)) == wanted
    # What stands on both sides cancels.
    assert Relation.of("a + b = a + 2 c").weights == {"b": 1, "c": -2}


@pytest.mark.parametrize(
    ("weights", "low", "high"),
    [
        ({"a": 1, "b": 0}, 0, 0),
        ({"a": 1, "b": 1.5}, 0, 0),
        ({}, 0, 0),
        ({"a": 1}, 1, 1),
        ({"a": 1}, 0, 1),
        ({"a": 1}, -UNBOUNDED, UNBOUNDED),
    ],
)
def test_a_relation_holds_for_every_group_of_units(weights, low, high):
    with pytest.raises(InputError):
        Relation(weights, low, high)


def test_without_a_table_nothing_is_known():
    for tables in ({}, {"a": []}):
        with pytest.raises(InputError, match="at least one table"):
            from_responses(tables)


def test_all_responses_have_one_unit_and_keep_it():
    cents = PublishedTable.exact([PLAIN], [100, 250], decimals=2)
    with pytest.raises(InputError, match="different decimals"):
        from_responses({"a": cents, "b": PublishedTable.hidden([PLAIN])})
    pair = from_responses({"a": cents, "b": PublishedTable.hidden([SIZE], decimals=2)}, ["a = b"])
    assert pair.decimals == 2
    single = from_responses({"a": cents})
    assert (single.decimals, len(single)) == (2, 2)
    assert list(single.names) == ["a: act=0", "a: act=1"]
    assert single.names[1] == "a: act=1"


def test_every_response_has_the_cells_of_all_layouts():
    # Neither response shows the cube, so it is a layout of its own behind both tables.
    found = related(
        {"a": PublishedTable.exact([PLAIN], [3, 4]), "b": PublishedTable.exact([SIZE], [2, 5])},
        ["a = b"],
    )
    shapes = [layout.shape for layout in found.layouts]
    assert shapes == [(2,), (2,), (2, 2)]
    assert len(found.known) == 2 * (2 + 2 + 4)
    assert found.spans == {"a": (slice(0, 2),), "b": (slice(10, 12),)}
    names = list(found.known.names)
    assert names[found.spans["a"][0]] == ["a: act=0", "a: act=1"]
    assert names[found.spans["b"][0]] == ["b: size=0", "b: size=1"]
    one = bounds(found.known, ["b: act=0", "a: size=1"])
    assert one.low.tolist() == one.high.tolist() == [3, 5]


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


def test_codes_that_no_table_names_count_where_a_filter_leaves_people_out():
    # Size 0 is a filter of one table. The other counts sizes that nobody lists, if there are any.
    act = (PLAIN,)
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
