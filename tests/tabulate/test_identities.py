"""The identities of many texts are those that each text has alone."""

from __future__ import annotations

from importlib import import_module

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lustrum.model.keys import text_identity
from lustrum.tabulate.identities import by_loop, text_identities

IDENTITIES = import_module("lustrum.tabulate.identities")
NUMBERS = [
    *("0", "00", "1", "017", "17", "-1", "+1", "1 ", "1.0", "٣", "1é"),
    *(str(2**63 - 1), str(2**63), str(2**64), "9" * 18, "9" * 19, "9" * 20),
]
# Blocks have 64 bytes, of which the last one keeps 9 for itself.
LENGTHS = [0, 1, 54, 55, 56, 57, 63, 64, 65, 118, 119, 120, 128, 1000]
TEXTS = [*NUMBERS, *("x" * length for length in LENGTHS), "é" * 32, "person 7", "\0", "a\0b"]


@pytest.fixture(params=["one by one", "by the loop"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(IDENTITIES, "_plain_left", 0 if request.param == "by the loop" else 1 << 60)
    return str(request.param)


@pytest.mark.usefixtures("way")
def test_every_text_has_its_own_identity_in_a_crowd() -> None:
    column = pa.array(TEXTS)
    expected = [text_identity(text) for text in TEXTS]
    assert text_identities(column).tolist() == expected
    assert text_identities(column.slice(5, 9)).tolist() == expected[5:14]
    for text in TEXTS:
        assert text_identities(pa.array([text])).tolist() == [text_identity(text)]
    assert text_identities(pa.array([], pa.string())).tolist() == []


digits = st.text("0123456789", max_size=21)


@settings(deadline=None)
@given(
    texts=st.lists(digits)
    | st.lists(digits | st.text(max_size=140).filter(lambda text: text.isprintable()))
)
def test_any_texts_have_the_same_identities_in_every_way(texts: list[str]) -> None:
    column = pa.array(texts, pa.string())
    expected = [text_identity(text) for text in texts]
    assert text_identities(column).tolist() == expected
    assert by_loop(column).tolist() == expected


def test_the_loop_is_compiled_for_many_texts_only(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    monkeypatch.setattr(IDENTITIES, "_plain_left", 5)
    monkeypatch.setattr(IDENTITIES, "by_loop", lambda texts: calls.append(len(texts)))
    text_identities(pa.array(["a", "b", "c"]))
    text_identities(pa.array(["1", "2", "3"]))  # numbers need neither
    text_identities(pa.array(["d", "e"]))
    assert calls == []
    text_identities(pa.array(["f"]))
    assert calls == [1]


@pytest.mark.parametrize("kind", [pa.large_string(), pa.string_view()])
def test_the_loop_reads_no_other_kind_of_column(kind: pa.DataType) -> None:
    encode = import_module("lustrum.tabulate.encode")
    place = encode._Place("The frame", 1)
    column = pa.array(["a", "17"], kind)
    expected = [text_identity("a"), 17]
    assert encode._ids(column, "id", place).tolist() == expected
    assert encode._ids(column.dictionary_encode(), "id", place).tolist() == expected
