"""Record keys follow the record, not the file, and the secret stays secret."""

from __future__ import annotations

import os
import random
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Axis, Dataset, DatasetError, Filter, InputError, TableQuery
from lustrum.model.keys import scramble, text_identity
from lustrum.tabulate import FileSource, FrameEngine, FrameSource, Secret, Store, ingest
from lustrum.tabulate.keys import record_keys
from tabulate.sql_engine import SqlEngine
from tabulate.worlds import MODULUS, SECRET, quick

OTHER = Secret(b"another secret of 32 bytes......")


def described(name: str = "people", record_id: bool = True) -> Dataset:
    head: dict[str, Any] = {"name": name}
    if record_id:
        head["record_id"] = "id"
    codes = ["a", "b", "c"]
    return Dataset.from_mapping({"dataset": head, "variables": [{"name": "area", "codes": codes}]})


def people(ids: list[Any], order: int | None = None) -> pa.Table:
    rows = [(number, "abc"[i % 3]) for i, number in enumerate(ids)]
    if order is not None:
        random.Random(order).shuffle(rows)
    return pa.table({"id": [r[0] for r in rows], "area": [r[1] for r in rows]})


def summed(engine: Any, dataset: str = "people") -> list[int]:
    keys = engine.tabulate(TableQuery(dataset, (Axis("area", total=True),))).keys
    assert keys is not None
    return [int(k) for k in keys]


def on_disk(frame: pa.Table, root: Path, dataset: Dataset, secret: Secret = SECRET) -> list[int]:
    store = Store(root)
    ingest(FrameSource(frame), dataset, store, secret=secret)
    return summed(store.open(dataset.name), dataset.name)


@pytest.mark.parametrize(
    "ids", [list(range(100, 130)), [f"person {i}" for i in range(30)]], ids=["numbers", "texts"]
)
def test_a_record_keeps_its_key_in_any_order_of_the_file(ids: list[Any], tmp_path: Path) -> None:
    dataset = described()
    first = on_disk(people(ids), tmp_path, dataset)
    for order in range(3):
        assert on_disk(people(ids, order), tmp_path, dataset) == first
    frame = FrameEngine(people(ids, 7), dataset, SECRET)
    assert summed(frame) == first
    assert summed(SqlEngine(dataset, list(frame._chunks))) == first


def test_a_csv_file_and_a_parquet_file_of_the_same_records_give_the_same_keys(
    tmp_path: Path,
) -> None:
    """In a CSV file all is text; the number 17 and the text 17 must be the same person."""
    dataset, frame = described(), people([*range(10), 2**63 - 1, 10**18])
    lines = [f"{r['id']},{r['area']}" for r in frame.to_pylist()]
    (tmp_path / "p.csv").write_text("\n".join(["id,area", *lines]) + "\n")
    pq.write_table(frame, tmp_path / "p.parquet")
    found = []
    for ending in ("csv", "parquet"):
        store = Store(tmp_path / ending)
        ingest(FileSource(tmp_path / f"p.{ending}"), dataset, store, secret=SECRET)
        found.append(summed(store.open("people")))
    assert found[0] == found[1]


def test_keys_differ_between_datasets_and_secrets(tmp_path: Path) -> None:
    ids = list(range(30))
    seen = [
        on_disk(people(ids), tmp_path / "1", described()),
        on_disk(people(ids), tmp_path / "2", described("folk")),
        on_disk(people(ids), tmp_path / "3", described(), OTHER),
    ]
    for i in range(4):
        assert len({keys[i] for keys in seen}) == 3


def test_without_a_record_id_the_number_of_the_row_is_the_identity(tmp_path: Path) -> None:
    dataset = described(record_id=False)
    frame = people(list(range(9))).select(["area"])
    expected = record_keys(SECRET, "people", np.arange(1, 10, dtype=np.uint64))
    assert on_disk(frame, tmp_path, dataset)[3] == int(expected.sum())


@given(ids=st.sets(st.integers(0, 2**63 - 1), min_size=1, max_size=20))
@quick(30)
def test_the_key_of_a_total_is_the_modular_sum_of_its_parts(ids: set[int]) -> None:
    engine = FrameEngine(people(sorted(ids)), described(), SECRET)
    *parts, total = summed(engine)
    assert total == sum(parts) % MODULUS
    some = TableQuery("people", (), (Filter("area", ("a", "c")),))
    keys = engine.tabulate(some).keys
    assert int(keys) == (parts[0] + parts[2]) % MODULUS


def test_sums_of_keys_do_wrap_around() -> None:
    keys = record_keys(SECRET, "people", np.arange(1000, dtype=np.uint64))
    assert sum(int(k) for k in keys) > MODULUS


def test_a_key_is_the_cipher_of_the_identity_under_a_key_for_the_dataset() -> None:
    cipher = Cipher(algorithms.AES(SECRET.derive("lustrum record key 1 people")), modes.ECB())
    for identity in (0, 1, 2**63):
        encryptor = cipher.encryptor()
        block = encryptor.update(identity.to_bytes(8, "little") + bytes(8))
        found = record_keys(SECRET, "people", np.array([identity], dtype=np.uint64))
        assert int(found[0]) == int.from_bytes(block[:8], "little")


def test_keys_look_uniform() -> None:
    keys = record_keys(SECRET, "people", np.arange(100_000, dtype=np.uint64))
    assert len(set(keys.tolist())) == keys.size
    for shift in (0, 21, 42, 63):
        share = np.mean((keys >> np.uint64(shift)) & np.uint64(1))
        assert abs(share - 0.5) < 0.01


def test_a_text_that_only_resembles_a_number_is_a_text() -> None:
    texts = ["7", "07", " 7", "7.0", "-7", "٧", str(2**63), str(2**64 + 7), ""]
    identities = [text_identity(t) for t in texts]
    assert identities[0] == 7
    assert len(set(identities)) == len(texts)
    assert all(0 <= i < 2**63 for i in identities)


def test_a_secret_never_shows_itself() -> None:
    for shown in (repr(SECRET), str(SECRET), f"{SECRET}", repr({"secret": SECRET})):
        assert "hidden" in shown
        assert SECRET.value.hex() not in shown
        assert repr(SECRET.value) not in shown


def test_a_secret_that_is_too_short_is_refused() -> None:
    with pytest.raises(InputError, match="at least 16 bytes"):
        Secret(b"short")


def test_the_files_of_secret_and_keys_are_for_their_owner_only(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        store = Store(tmp_path)
        ingest(FrameSource(people([1, 2, 3])), described(), store)
    finally:
        os.umask(before)
    version = store.version("people")
    for path in (tmp_path / "record-keys.secret", tmp_path / "people" / version / "keys.arrow"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_secret_is_made_once_and_then_kept(tmp_path: Path) -> None:
    store = Store(tmp_path / "deep")
    first = store.secret
    assert Store(tmp_path / "deep").secret == first
    assert len(first.value) == 32
    assert [p.name for p in store.root.iterdir()] == ["record-keys.secret"]
    assert Secret.random() != Secret.random()


def test_many_at_once_make_one_secret(tmp_path: Path) -> None:
    for attempt in range(10):
        root = tmp_path / str(attempt)
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda r: Store(r).secret, [root] * 8))
        assert len({s.value for s in found}) == 1
        assert len(list(root.iterdir())) == 1


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not hexadecimal",
        b"\xff\xfe\x00",
        SECRET.value.hex()[:40].encode(),  # cut short, yet hexadecimal
        SECRET.value.hex().encode() * 2,
    ],
)
def test_a_damaged_secret_file_is_never_replaced_nor_quoted(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(DatasetError, match="damaged; it must hold 64 hexadecimal digits") as caught:
        Secret.load(path)
    assert str(path) in str(caught.value)
    assert "backup" in str(caught.value)
    assert SECRET.value.hex()[:40] not in str(caught.value)
    assert path.read_bytes() == content


def test_a_secret_that_cannot_be_read_is_an_error_and_not_a_new_secret(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="cannot be read"):
        Secret.load(tmp_path)


@pytest.mark.parametrize("size", [0, 1, 4095, 4096, 4097, 10_000])
def test_words_are_scrambled_alike_alone_and_among_many(size: int) -> None:
    words = np.random.default_rng(size).integers(0, MODULUS, size, dtype=np.uint64)
    key = bytes(range(16))
    cipher = Cipher(algorithms.AES(key), modes.ECB()).encryptor()
    blocks = b"".join(int(word).to_bytes(8, "little") + bytes(8) for word in words)
    out = cipher.update(blocks) + cipher.finalize()
    expected = [int.from_bytes(out[at : at + 8], "little") for at in range(0, len(out), 16)]
    before = words.copy()
    assert scramble(key, words).tolist() == expected
    assert scramble(key, words[::2]).tolist() == expected[::2]
    assert scramble(key, words.reshape(1, size)).shape == (1, size)
    assert np.array_equal(words, before)
