"""The book of releases: what left the house stands in it, in its order, or everybody sees it."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from lustrum.ledger.chain import ChangedLedgerError, digest_of
from lustrum.ledger.databases import BookDatabase
from lustrum.ledger.releases import (
    BOOK,
    HEAD,
    KEY,
    PUBLIC,
    WHERE,
    BookHead,
    OvertakenError,
    ReleaseBook,
)
from lustrum.model import DatasetError, InputError
from services import OWNER, postgres

Begin = Callable[[Path], ReleaseBook]


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def begin(request: pytest.FixtureRequest) -> Iterator[Begin]:
    """What begins a book in a folder, on each engine; a server of PostgreSQL gets a database for each."""
    if request.param == "sqlite":
        yield ReleaseBook
        return
    with postgres() as server, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PGPASSWORD", server.passwords[OWNER])
        made = count()

        def on_server(root: Path) -> ReleaseBook:
            name = f"ledger_{next(made)}"
            server.execute(f"CREATE DATABASE {name}")
            (root / "ledger").mkdir()
            words = f"host=127.0.0.1 port={server.port} dbname={name} user={OWNER}"
            (root / "ledger" / WHERE).write_text(f"database = '{words}'\n")
            return ReleaseBook(root)

        yield on_server


def fill(book: ReleaseBook, lines: int = 6) -> list[str]:
    """Some lines of two datasets and three audiences, with contents beside them."""
    digests = []
    for number in range(lines):
        content = f"content {number % 4}".encode()
        audience = PUBLIC if number % 3 else book.audience_of(f"reader {number % 2}")
        said = {"kind": "answer", "question": f"q{number}", "decision": digest_of(content)}
        one = book.enter(
            said,
            audience=audience,
            dataset=f"d{number % 2}",
            contents={digest_of(content): content},
        )
        assert one.number == number + 1
        digests.append(one.digest)
    return digests


def test_what_was_entered_is_read_back_in_its_order(begin: Begin, tmp_path: Path) -> None:
    book = begin(tmp_path)
    digests = fill(book)
    assert book.verify() == BookHead(6, digests[-1])
    again = ReleaseBook(tmp_path)
    assert [entry.digest for entry in again.entries()] == digests
    assert [entry.said["question"] for entry in again.entries(2, dataset="d0")] == ["q2", "q4"]
    assert again.content(digest_of(b"content 3")) == b"content 3"
    assert again.content("0" * 64) is None
    public = [entry.number for entry in again.entries(audiences=(PUBLIC,))]
    assert public == [2, 3, 5, 6]


def test_a_book_of_an_earlier_form_is_continued(tmp_path: Path) -> None:
    book = ReleaseBook(tmp_path)
    fill(book)
    book.close()
    with closing(sqlite3.connect(book.folder / BOOK)) as file, file:
        file.execute("DROP INDEX entries_by_dataset")
        file.execute("DELETE FROM versions WHERE number > 1")
    assert ReleaseBook(tmp_path).enter({}, dataset="d0", last=6).number == 7
    with closing(sqlite3.connect(book.folder / BOOK)) as file:
        plan = "EXPLAIN QUERY PLAN SELECT MAX(number) FROM entries WHERE dataset = ?"
        assert "entries_by_dataset" in str(file.execute(plan, ("d0",)).fetchall())


def _rows(database: BookDatabase, table: str) -> list[tuple[object, ...]]:
    with database.transaction():
        return database.execute(f"SELECT * FROM {table} ORDER BY 1")


COLUMNS = {
    "entries": ("number", "line", "seal", "audience", "dataset"),
    "contents": ("digest", "content"),
    "names": ("audience", "salt", "name"),
}


def test_every_changed_byte_dropped_swapped_or_cut_line_is_found(
    begin: Begin, tmp_path: Path
) -> None:
    """Each byte of each value that the database holds, and each line; the book is as it was after each."""
    book = begin(tmp_path)
    fill(book, 4)
    assert book.erase("reader 1")
    database = book._database
    found = 0

    def altered(*statements: tuple[str, tuple[object, ...]]) -> None:
        nonlocal found
        # A change that makes two readers one does not even get in.
        with suppress(UndoError, DatasetError), database.transaction(alone=True):
            for statement, values in statements:
                database.execute(statement, values)
            with pytest.raises(ChangedLedgerError):
                _verify_within(book)
            found += 1
            raise UndoError

    for table, columns in COLUMNS.items():
        for row in _rows(database, table):
            for column, value in zip(columns, row, strict=True):
                if isinstance(value, int):
                    continue
                raw = value.encode() if isinstance(value, str) else bytes(value)  # type: ignore[arg-type]
                step = max(1, len(raw) // 25)
                for at in range(0, len(raw), step):
                    flipped = bytearray(raw)
                    flipped[at] ^= 1
                    new: object = bytes(flipped)
                    if isinstance(value, str):
                        new = flipped.decode("latin-1")
                    altered(
                        (f"UPDATE {table} SET {column} = ? WHERE {columns[0]} = ?", (new, row[0]))
                    )
    for number in range(1, 5):
        altered(("DELETE FROM entries WHERE number = ?", (number,)))
        altered(("DELETE FROM entries WHERE number >= ?", (number,)))
        if number < 4:
            altered(
                ("UPDATE entries SET number = -1 WHERE number = ?", (number,)),
                ("UPDATE entries SET number = ? WHERE number = ?", (number, number + 1)),
                ("UPDATE entries SET number = ? WHERE number = -1", (number + 1,)),
            )
    assert found > 200
    book.verify()


class UndoError(Exception):
    """Takes back what a test changed."""


def _verify_within(book: ReleaseBook) -> None:
    """Verify inside of the transaction under way, so that nothing has to be put back."""
    database = book._database
    whole = type(database).transaction

    class Inside:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    try:
        database.transaction = lambda **_: Inside()  # type: ignore[method-assign, assignment, return-value]
        book.verify()
    finally:
        del database.transaction
    assert type(database).transaction is whole


def test_every_byte_of_the_files_is_the_one_that_was_written_or_it_is_found(tmp_path: Path) -> None:
    """Of the file of SQLite, the key and the head: another byte is found, or nothing that is read differs."""
    book = ReleaseBook(tmp_path / "a")
    fill(book, 3)
    book.close()
    folder = tmp_path / "a" / "ledger"
    with sqlite3.connect(folder / BOOK) as plain:
        plain.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    plain.close()
    right = [(e.number, e.said, e.digest) for e in ReleaseBook(tmp_path / "a").entries()]
    draw = random.Random(3)
    for name in (BOOK, KEY, HEAD):
        raw = (folder / name).read_bytes()
        places = range(len(raw)) if len(raw) < 300 else sorted(draw.sample(range(len(raw)), 300))
        found = 0
        for at in places:
            own = Path(shutil.copytree(tmp_path / "a", tmp_path / "b"))
            flipped = bytearray(raw)
            flipped[at] ^= 1 << draw.randrange(8)
            (own / "ledger" / name).write_bytes(flipped)
            try:
                other = ReleaseBook(own)
                other.verify()
                assert [(e.number, e.said, e.digest) for e in other.entries()] == right
            except (DatasetError, InputError):
                found += 1
            shutil.rmtree(own)
        assert found > (0 if name == BOOK else len(raw) - 1)


def test_an_older_book_shows_by_its_head_and_by_one_that_was_written_down(tmp_path: Path) -> None:
    book = ReleaseBook(tmp_path / "a")
    fill(book, 3)
    book.close()
    shutil.copytree(tmp_path / "a", tmp_path / "old")
    later = ReleaseBook(tmp_path / "a")
    later.enter({"kind": "answer"})
    head = later.verify()
    shutil.copy(tmp_path / "a" / "ledger" / HEAD, tmp_path / "old" / "ledger" / HEAD)
    older = ReleaseBook(tmp_path / "old")
    with pytest.raises(ChangedLedgerError):
        older.verify()
    with pytest.raises(ChangedLedgerError, match="older than its head"):
        older.enter({"kind": "answer"})
    # Both exchanged together: only a head that somebody kept elsewhere tells.
    whole = Path(shutil.copytree(tmp_path / "a", tmp_path / "c"))
    shutil.rmtree(whole / "ledger")
    fill(ReleaseBook(whole), 2)
    ReleaseBook(whole).verify()
    with pytest.raises(ChangedLedgerError, match=f"line {head.number}"):
        ReleaseBook(whole).verify(BookHead.from_text(str(head)))


def test_a_name_is_erased_and_the_chain_stays_whole(begin: Begin, tmp_path: Path) -> None:
    book = begin(tmp_path)
    fill(book)
    word = book.audience_of("reader 0")
    assert book.names()[word] == "reader 0"
    assert book.audience_of("reader 0") == book.audience_of("Reader 0") == word
    head = book.verify()
    assert book.erase("reader 0")
    assert not book.erase("reader 0")
    assert word not in book.names()
    assert book.verify() == head
    assert [e.number for e in book.entries(audiences=(word,))]
    for entry in book.entries():
        assert "reader" not in str(entry.said)
    # Who comes back holds what they held, still without a name; nobody else does.
    assert ReleaseBook(tmp_path).audience_of("reader 0") == word
    assert "reader 0" not in book.names().values()
    assert book.audience_of("reader 00") != word
    assert not book.erase("reader 0")
    assert book.verify() == head


def test_nothing_is_entered_by_what_others_have_overtaken(begin: Begin, tmp_path: Path) -> None:
    book = begin(tmp_path)
    fill(book, 3)
    with pytest.raises(OvertakenError):
        book.enter({"kind": "answer"}, dataset="d0", last=1)
    assert book.verify().number == 3
    assert book.enter({"kind": "answer"}, dataset="d0", last=3).number == 4
    with pytest.raises(OvertakenError):  # a line about other data may be about the same people
        book.enter({"kind": "answer"}, dataset="d1", last=2)


@given(st.lists(st.sampled_from(["one", "two"]), min_size=2, max_size=12), st.integers(2, 4))
@settings(max_examples=examples(5, 60), deadline=None)
def test_many_writers_make_one_chain(
    tmp_path_factory: pytest.TempPathFactory, datasets: list[str], writers: int
) -> None:
    root = tmp_path_factory.mktemp("book")
    books = [ReleaseBook(root) for _ in range(writers)]
    with ThreadPoolExecutor(writers) as pool:
        made = list(
            pool.map(
                lambda pair: books[pair[0] % writers].enter({"kind": "x"}, dataset=pair[1]),
                enumerate(datasets),
            )
        )
    assert sorted(one.number for one in made) == list(range(1, len(datasets) + 1))
    assert ReleaseBook(root).verify().number == len(datasets)


_WRITER = """
import sys
from pathlib import Path
from lustrum.ledger.releases import ReleaseBook
book = ReleaseBook(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    one = book.enter({"kind": "answer", "question": "q" * 300}, dataset="d")
    print(one.number, one.digest, flush=True)  # the table leaves
"""


def _killed(root: Path, rounds: int, seed: int) -> None:
    """Two processes release side by side and are killed at any moment; whatever left stands in the book."""
    draw = random.Random(seed)
    left: dict[int, str] = {}
    for _ in range(rounds):
        writers = [
            subprocess.Popen(
                [sys.executable, "-c", _WRITER, str(root)], stdout=subprocess.PIPE, text=True
            )
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            assert writer.stdout.readline() == "ready\n"
        time.sleep(draw.uniform(0.0, 0.15))
        for writer in writers:
            os.kill(writer.pid, signal.SIGKILL)
        for writer in writers:
            for line in writer.communicate()[0].splitlines(keepends=True):
                if line.endswith("\n"):
                    number, digest = line.split()
                    assert left.setdefault(int(number), digest) == digest
    book = ReleaseBook(root)
    book.verify()
    recorded = {entry.number: entry.digest for entry in book.entries()}
    assert left.items() <= recorded.items()
    assert left


def test_whatever_left_before_a_kill_stands_in_the_book(tmp_path: Path) -> None:
    _killed(tmp_path, 4, seed=1)


@pytest.mark.deep
def test_whatever_left_before_a_thousand_kills_stands_in_the_book(tmp_path: Path) -> None:
    _killed(tmp_path, 500, seed=2)


def test_a_book_that_cannot_be_kept_says_so_in_a_sentence(tmp_path: Path) -> None:
    folder = tmp_path / "ledger"
    folder.mkdir()
    for text, said in (
        ("database = 3", "holds one key"),
        ("database = 'nonsense'", "not understood"),
        ("database = 'host=here password=hidden'", "holds a password"),
        ("= 3", "not valid TOML"),
    ):
        (folder / WHERE).write_text(text)
        with pytest.raises(InputError, match=said) as caught:
            ReleaseBook(tmp_path)
        assert "hidden" not in str(caught.value)
    (folder / WHERE).write_text("database = 'host=127.0.0.1 port=1 dbname=none'")
    with pytest.raises(DatasetError, match="does not answer; nothing is released"):
        ReleaseBook(tmp_path).enter({"kind": "answer"})
