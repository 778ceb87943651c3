"""A chained book: what was entered stays as it was, or everybody sees that it did not."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.examples import examples

from lustrum.ledger.chain import NOTHING, Chain, ChangedLedgerError
from lustrum.model import DatasetError, InputError

VALUES = st.one_of(st.text(max_size=5), st.integers(-(10**9), 10**9), st.floats(-1e9, 1e9))
SAID = st.dictionaries(st.sampled_from(["what", "who", "é\n"]), VALUES, max_size=3)


@given(st.lists(SAID, min_size=1, max_size=5), st.data())
@settings(max_examples=examples(150, 2000), deadline=None)
def test_no_byte_line_or_end_of_a_book_is_changed_unnoticed(
    tmp_path_factory: pytest.TempPathFactory, book: list[dict[str, object]], data: st.DataObject
) -> None:
    """A byte flipped, lines dropped, doubled, swapped or cut: found by a later digest, and mostly without."""
    chain = Chain(tmp_path_factory.mktemp("book") / "book.jsonl")
    for said in book:
        chain.append(said)
    head, written = chain.head, chain.path.read_bytes()
    assert [{**e.said, "before": 0} for e in chain.entries()] == [{**s, "before": 0} for s in book]
    chain.verify(head, NOTHING)
    lines = written.splitlines(keepends=True)
    how = data.draw(st.sampled_from(["flip", "drop", "double", "swap", "cut", "insert"]))
    one, two = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
    at = data.draw(st.integers(0, len(written) - 1))
    if how == "flip":
        changed = bytearray(written)
        changed[at] ^= data.draw(st.integers(1, 255))
    elif how == "cut":
        changed = bytearray(written[:at])
    else:
        if how == "drop":
            del lines[one]
        elif how == "swap":
            lines[one], lines[two] = lines[two], lines[one]
        else:
            lines.insert(
                one, lines[two] if how == "double" else b'{"before": "%s"}\n' % NOTHING.encode()
            )
        changed = bytearray(b"".join(lines))
    assume(bytes(changed) != written)
    chain.path.write_bytes(changed)
    if not (how == "insert" and one == len(book)):
        with pytest.raises(ChangedLedgerError):
            chain.verify(head)
    if how in ("swap", "double", "insert") or (how == "drop" and one < len(lines)):
        with pytest.raises(ChangedLedgerError, match=r"line \d+: the ledger was changed"):
            chain.entries()


@given(st.integers(1, 400), st.integers(0, 2))
@settings(max_examples=examples(40, 300), deadline=None)
def test_a_last_line_that_was_cut_short_was_never_entered(
    tmp_path_factory: pytest.TempPathFactory, kept: int, old: int
) -> None:
    """Wherever the machine stopped, the lines before stand and the next one takes the place of the cut one."""
    chain = Chain(tmp_path_factory.mktemp("book") / "book.jsonl", loose=True)
    chain.path.write_text('{"what": "earlier form"}\n' * old)
    first = chain.append({"what": "first"})
    whole = chain.path.read_bytes()
    chain.append({"what": "x" * 400})
    chain.path.write_bytes(chain.path.read_bytes()[: len(whole) + kept])
    assert chain.head == first
    second = chain.append({"what": "second"})
    chain.verify(first, second)
    assert [e.said["what"] for e in chain.entries()[old:]] == ["first", "second"]


def test_processes_and_threads_add_lines_at_once_and_none_is_lost(tmp_path: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from lustrum.ledger.chain import Chain\n"
        "for n in range(40): Chain(Path(sys.argv[1])).append({'who': sys.argv[2], 'n': n, 'x': 'x' * 5000})"
    )
    path = tmp_path / "deep" / "book.jsonl"
    others = [subprocess.Popen([sys.executable, "-c", code, str(path), who]) for who in "ab"]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: Chain(path).append({"who": "us", "n": n}), range(40)))
    assert [one.wait() for one in others] == [0, 0]
    entered = [(e.said["who"], e.said["n"]) for e in Chain(path).entries()]
    assert sorted(entered) == [(who, n) for who in ("a", "b", "us") for n in range(40)]
    assert path.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "line",
    [b"[]", b'{"a": NaN}', b'{"a": 1e999}', b"\xff", b"[" * 9999, b'{"b":1, "a":2}', b"9" * 9999],
)
def test_odd_lines_are_no_part_of_a_book(tmp_path: Path, line: bytes) -> None:
    chain = Chain(tmp_path / "book.jsonl")
    chain.append({"what": "first"})
    chain.path.write_bytes(chain.path.read_bytes() + line + b"\n")
    with pytest.raises(ChangedLedgerError, match="line 2"):
        chain.entries()
    chain.append({"what": "after it"})
    with pytest.raises(ChangedLedgerError, match="line 2"):
        chain.entries()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "\ud800", b"bytes", {1, 2}])
def test_what_has_no_one_form_is_refused_and_changes_nothing(tmp_path: Path, value: object) -> None:
    chain = Chain(tmp_path / "book.jsonl")
    chain.append({"what": "first"})
    before = chain.path.read_bytes()
    with pytest.raises(InputError, match="texts and finite numbers"):
        chain.append({"what": value})
    assert chain.path.read_bytes() == before
    assert json.loads(before)["before"] == NOTHING


def test_no_line_is_written_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "book.jsonl").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DatasetError, match="cannot be reached"):
        Chain(tmp_path / "book.jsonl").append({"what": "x"})
    assert not (tmp_path / "elsewhere").exists()
