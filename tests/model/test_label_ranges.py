"""Categories by the labels that people read: whatever the codes are, a number never means one."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import QueryError, Variable
from lustrum.model.variable import categories_of


@st.composite
def classes(draw: st.DrawFn) -> tuple[Variable, list[int]]:
    """Classes of a number with codes that look like other numbers, and where each begins."""
    begins = sorted(draw(st.sets(st.integers(0, 99), min_size=2, max_size=8)))
    codes = draw(st.permutations([str(n) for n in range(len(begins))]))
    labels = [f"{a} to {b - 1}" if b - a > 1 else str(a) for a, b in pairwise(begins)]
    labels.append(f"{begins[-1]} and over")
    edges = tuple(map(float, begins)) if draw(st.booleans()) else ()
    return Variable("age", "Age", tuple(codes), tuple(labels), edges=edges), begins


@given(classes(), st.data())
@settings(max_examples=examples(200, 2000))
def test_a_range_is_the_categories_it_holds_or_a_sentence_with_one_that_is(
    drawn: tuple[Variable, list[int]], data: st.DataObject
) -> None:
    variable, begins = drawn
    low = data.draw(st.sampled_from(begins) | st.integers(0, 120))
    last = st.sampled_from([*(begin - 1 for begin in begins[1:]), 199, None])
    high = data.draw(last | st.integers(0, 120))
    text = f"{low}+" if high is None else f"{low}-{high}"
    top = 999 if high is None else high
    ends = [*(b - 1 for b in begins[1:]), 999]
    spans = list(zip(begins, ends, strict=True))
    touched = [i for i, (a, b) in enumerate(spans) if a <= top and low <= b]
    whole = [i for i in touched if low <= spans[i][0] and spans[i][1] <= top]
    if touched and touched == whole:
        found = [category.code for category in categories_of(text, variable)]
        assert found == [variable.codes[i] for i in touched]
        return
    with pytest.raises(QueryError) as error:
        categories_of(text, variable)
    if low <= top:
        better = str(error.value).rpartition("; ")[2].removesuffix(" would.")
        assert categories_of(better, variable)


def test_names_and_codes_where_labels_are_no_numbers() -> None:
    made = {"Z": "Not stated", "0": "None", "1-a": "Some, not all", "1-b": "Z", "x": "All"}
    variable = Variable("e", "Education", tuple(made), tuple(made.values()))
    for text, codes in {
        "0-x": ["0", "1-a", "1-b", "x"],
        "1-a, not STATED": ["1-a", "Z"],
        "1-a..1-b": ["1-a", "1-b"],
        "some, not all": ["1-a"],
        " ; ": [],
    }.items():
        assert [category.code for category in categories_of(text, variable)] == codes
    for text, said in {"Z": "more than one category", "y": "has no category"}.items():
        with pytest.raises(QueryError, match=said):
            categories_of(text, variable)
