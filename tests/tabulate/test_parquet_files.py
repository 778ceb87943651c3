"""Records in many Parquet files are those of one file, wherever the files are."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lustrum.model import Dataset, IngestError
from lustrum.tabulate import FileSource, ParquetFiles, Store, finest_cells, ingest
from tabulate.worlds import SECRET

DATASET = Dataset.from_mapping(
    {
        "dataset": {"name": "town", "record_id": "id"},
        "variables": [
            {"name": "region", "codes": [[c, c] for c in ("01", "02", "03")]},
            {"name": "sex", "codes": [[c, c] for c in ("f", "m")]},
        ],
    }
)
PEOPLE = pa.table(
    {
        "region": [f"0{i % 3 + 1}" for i in range(60)],
        "sex": ["fm"[i % 7 % 2] for i in range(60)],
        "id": list(range(60)),
    }
)


def ingested(source: FileSource | ParquetFiles, folder: Path) -> dict[str, bytes]:
    """The finest cells of the records, with the keys in them."""
    store = Store(folder)
    ingest(source, DATASET, store, secret=SECRET)
    cells = finest_cells(store.open("town"))
    assert cells.keys is not None
    return {
        "codes": cells.codes.tobytes(),
        "counts": cells.counts.tobytes(),
        "keys": cells.keys.tobytes(),
    }


def split(folder: Path, by_region: bool) -> None:
    for number in range(3):
        part = PEOPLE.filter(pa.compute.equal(PEOPLE["region"], f"0{number + 1}"))
        below = folder / (f"region=0{number + 1}" if by_region else f"part-{number}")
        below.mkdir(parents=True)
        table = part.drop_columns("region") if by_region else part
        pq.write_table(table, below / "a.parquet", row_group_size=7)
    (folder / "_SUCCESS").touch()


@pytest.fixture
def whole(tmp_path: Path) -> dict[str, bytes]:
    pq.write_table(PEOPLE.sort_by("region"), tmp_path / "people.parquet")
    return ingested(FileSource(tmp_path / "people.parquet"), tmp_path / "whole")


@pytest.mark.parametrize("by_region", [True, False])
@pytest.mark.parametrize("pattern", ["", "/*/*.parquet", "/**/a.parquet"])
def test_a_folder_or_pattern_holds_the_records_of_one_file(
    whole: dict[str, bytes], tmp_path: Path, by_region: bool, pattern: str
) -> None:
    split(tmp_path / "people", by_region)
    assert ingested(ParquetFiles(f"{tmp_path}/people{pattern}"), tmp_path / "parts") == whole


class Bucket(BaseHTTPRequestHandler):
    """What S3's protocol has for listing and reading; the folder of the server is the bucket ``census``."""

    root: Path

    def log_message(self, *_: object) -> None:
        """Tests print nothing."""

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query)
        name = unquote(parts.path).removeprefix("/census").lstrip("/")
        file = self.root / name
        status, body = 200, b""
        if "list-type" in query:
            prefix = query.get("prefix", [""])[0]
            found = sorted(
                f.relative_to(self.root).as_posix() for f in self.root.rglob("*") if f.is_file()
            )
            body = self.listing([f for f in found if f.startswith(prefix)])
        elif name and file.is_file():
            body = file.read_bytes()
            asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            if asked:
                status, body = 206, body[int(asked[1]) : int(asked[2]) + 1]
        elif name:
            status = 404
        self.send_response(status)
        length = file.stat().st_size if self.command == "HEAD" and file.is_file() else len(body)
        self.send_header("Content-Length", str(length))
        self.send_header("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def listing(self, names: list[str]) -> bytes:
        entries = "".join(
            f"<Contents><Key>{name}</Key><LastModified>2026-01-01T00:00:00.000Z</LastModified>"
            f"<Size>{(self.root / name).stat().st_size}</Size></Contents>"
            for name in names
        )
        count = f"<KeyCount>{len(names)}</KeyCount><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult>{count}{entries}</ListBucketResult>".encode()


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "planted-credential")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    handler = type("Here", (Bucket,), {"root": tmp_path})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"region=x&scheme=http&endpoint_override=127.0.0.1:{server.server_port}"
        server.shutdown()


def test_an_object_store_holds_the_records_of_one_file(
    whole: dict[str, bytes], tmp_path: Path, bucket: str
) -> None:
    split(tmp_path / "people", by_region=True)
    for place in ("people", "people/region=*/*.parquet"):
        source = ParquetFiles(f"s3://census/{place}?{bucket}")
        assert ingested(source, tmp_path / f"{len(place)}") == whole
    with pytest.raises(IngestError, match="cannot be read") as caught:
        ingested(ParquetFiles(f"s3://census/nothing?{bucket}"), tmp_path / "none")
    assert "planted" not in str(caught.value)


@given(
    form=st.sampled_from(
        (
            "s3://k:{}@b/f",
            "s3://{}@b/f",
            "s3://b/f?secret_key={}",
            "abfs://c@a?account_key={}",
            "http://{}/f",
        )
    ),
    secret=st.from_regex("[A-Za-z0-9]{16,20}", fullmatch=True),
)
def test_an_address_with_a_credential_is_refused_and_not_repeated(form: str, secret: str) -> None:
    with pytest.raises(IngestError) as caught:
        ParquetFiles(form.format(secret))
    assert secret not in str(caught.value)


def test_files_that_are_not_alike_and_other_files_are_refused(tmp_path: Path) -> None:
    split(tmp_path / "people", by_region=False)
    source = ParquetFiles(str(tmp_path / "people"))
    stray = tmp_path / "people" / "notes.csv"
    stray.write_text("id\n1\n")
    with pytest.raises(IngestError, match=r"notes\.csv is no \.parquet file"):
        ingested(source, tmp_path / "one")
    stray.unlink()
    other = PEOPLE.set_column(2, "id", PEOPLE["id"].cast(pa.string()))
    pq.write_table(other, tmp_path / "people" / "z.parquet")
    with pytest.raises(IngestError, match="'id': it is of another type than in"):
        ingested(source, tmp_path / "two")
    pq.write_table(PEOPLE.drop_columns("sex"), tmp_path / "people" / "z.parquet")
    with pytest.raises(IngestError, match="no columns 'sex'"):
        ingested(source, tmp_path / "three")
    (tmp_path / "people" / "z.parquet").write_bytes(b"PAR1")
    with pytest.raises(IngestError, match="cannot be read"):
        ingested(source, tmp_path / "four")
    with pytest.raises(IngestError, match=r"holds no \.parquet files"):
        ingested(ParquetFiles(str(tmp_path / "people" / "*.x")), tmp_path / "five")


def test_files_that_change_while_they_are_read_are_refused(tmp_path: Path) -> None:
    split(tmp_path / "people", by_region=False)
    batches = ParquetFiles(str(tmp_path / "people")).batches(["sex", "id"], ["sex"])
    next(batches)
    pq.write_table(PEOPLE, tmp_path / "people" / "part-1" / "b.parquet")
    with pytest.raises(IngestError, match="changed while they were read"):
        list(batches)
