"""Parts of files: programs that read Parquet over HTTP ask for its end first."""

from __future__ import annotations

import io

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.testclient import TestClient

FILE = "/api/v1/tables?dataset=demo&by=age&by=sex&format=parquet"
PLAIN = {"Accept-Encoding": "identity"}


@pytest.fixture(scope="module")
def whole(client: TestClient) -> bytes:
    answer = client.get(FILE, headers=PLAIN)
    assert answer.status_code == 200
    assert answer.headers["accept-ranges"] == "bytes"
    assert client.head(FILE, headers=PLAIN).headers["content-length"] == str(len(answer.content))
    return answer.content


@given(first=st.integers(0, 6000) | st.none(), last=st.integers(0, 6000) | st.none())
def test_a_range_is_that_part_of_the_file(
    client: TestClient, whole: bytes, first: int | None, last: int | None
) -> None:
    text = f"{'' if first is None else first}-{'' if last is None else last}"
    answer = client.get(FILE, headers={"Range": f"bytes={text}"})
    if first is None:
        expected = whole if last is None else whole[len(whole) - min(last, len(whole)) :]
        empty = last == 0
    else:
        expected = whole[first : None if last is None else last + 1]
        empty = first >= len(whole) and (last is None or last >= first)
    if text == "-" or (first is not None and last is not None and last < first):
        assert (answer.status_code, answer.content) == (200, whole)
    elif empty:
        assert (answer.status_code, answer.content) == (416, b"")
        assert answer.headers["content-range"] == f"bytes */{len(whole)}"
    else:
        assert (answer.status_code, answer.content) == (206, expected)
        begin, _, rest = answer.headers["content-range"].removeprefix("bytes ").partition("-")
        assert whole[int(begin) : int(rest.partition("/")[0]) + 1] == expected


@pytest.mark.parametrize("header", ["bytes=0-1,3-4", "items=0-1", "bytes=a-b", "nonsense"])
def test_what_is_no_single_range_gets_the_whole_file(
    client: TestClient, whole: bytes, header: str
) -> None:
    answer = client.get(FILE, headers={**PLAIN, "Range": header})
    assert (answer.status_code, answer.content) == (200, whole)


def test_a_range_of_a_file_that_changed_is_the_whole_file(client: TestClient, whole: bytes) -> None:
    mark = client.get(FILE, headers=PLAIN).headers["etag"]
    same = client.get(FILE, headers={"Range": "bytes=0-3", "If-Range": mark})
    other = client.get(FILE, headers={**PLAIN, "Range": "bytes=0-3", "If-Range": '"other"'})
    assert (same.status_code, same.content) == (206, b"PAR1")
    assert (other.status_code, other.content) == (200, whole)


def test_polars_reads_parquet_from_the_server(live: str, whole: bytes) -> None:
    read = pl.scan_parquet(live + FILE).collect()
    assert read.to_arrow().num_rows == pq.read_table(io.BytesIO(whole)).num_rows
