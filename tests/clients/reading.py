"""Reads a table with the program of somebody else and prints its cells as JSON; run by the Python of the clients.

    python reading.py pxwebpy ADDRESS '{"table": "demo", "select": {"sex": ["*"]}}'

Each cell is a list of labels or codes by variable, and the number or nothing.
"""

import io
import json
import sys
import urllib.parse
import urllib.request
from pathlib import Path
from tempfile import TemporaryDirectory


def get(address, **parameters):
    query = urllib.parse.urlencode(parameters, doseq=True)
    with urllib.request.urlopen(f"{address}?{query}") as answer:
        return answer.read()


def plain(value):
    """A number, or nothing where a client says in its own way that there is none."""
    if value is None or value != value or (isinstance(value, str) and value in ("", "NaN", "..")):
        return None
    return float(value)


def told(rows, labels, value):
    return [[[str(row[name]) for name in labels], plain(row[value])] for row in rows]


def pxwebpy(address, asked):
    from pxweb import PxApi

    api = PxApi(f"{address}/pxapi/v2", disable_cache=True)
    assert asked["table"] in [table["id"] for table in api.all_tables()]
    metadata = api.get_table_variables(asked["table"])
    rows = api.get_table_data(asked["table"], asked["select"], asked.get("lists"))
    names = [metadata[name]["label"] for name in asked["by"]]
    return told(rows, names, "value")


def pyjstat(address, asked):
    from pyjstat import pyjstat as reader

    frame = reader.Dataset.read(
        get(f"{address}/api/v1/tables", format="json-stat", **asked["plain"]).decode()
    ).write("dataframe")
    return told(frame.to_dict("records"), list(frame.columns)[: len(asked["by"])], "value")


def pyaxis(address, asked):
    from pyaxis.pyaxis import parse

    with TemporaryDirectory() as folder:
        file = Path(folder, "table.px")
        file.write_bytes(get(f"{address}/api/v1/tables", format="px", **asked["plain"]))
        read = parse(str(file), encoding="utf-8")
    frame, note = read["DATA"], " ".join(read["METADATA"]["NOTE"])
    assert asked["note"] in note, note
    return told(frame.to_dict("records"), list(frame.columns)[: len(asked["by"])], "DATA")


def csvw(address, asked):
    from csvw import CSVW

    with TemporaryDirectory() as folder:
        Path(folder, "table.csv").write_bytes(
            get(f"{address}/api/v1/tables", format="csv", **asked["plain"])
        )
        described = json.loads(get(f"{address}/api/v1/tables", format="csvw", **asked["plain"]))
        assert any(asked["note"] in str(note) for note in described["notes"])
        Path(folder, "table.csv-metadata.json").write_text(
            json.dumps(described | {"url": "table.csv"})
        )
        rows = list(
            CSVW(str(Path(folder, "table.csv-metadata.json"))).tables[0].iterdicts(strict=True)
        )
    return told(rows, [f"{name}_label" for name in asked["by"]], "value")


def openpyxl(address, asked):
    import openpyxl as reader

    book = reader.load_workbook(
        io.BytesIO(get(f"{address}/api/v1/tables", format="xlsx", **asked["plain"]))
    )
    assert any(
        asked["note"] in str(cell.value) for sheet in book for row in sheet.rows for cell in row
    )
    head, *rows = ([cell.value for cell in row] for row in book["Cells"].rows)
    rows = [dict(zip(head, row, strict=True)) for row in rows]
    for row in rows:
        row["value"] = None if isinstance(row["value"], str) else row["value"]
    return told(rows, [f"{name}_label" for name in asked["by"]], "value")


def polars(address, asked):
    import polars as reader

    query = urllib.parse.urlencode({"format": "parquet", **asked["plain"]}, doseq=True)
    frame = reader.scan_parquet(f"{address}/api/v1/tables?{query}").collect()
    return told(frame.to_dicts(), [f"{name}_label" for name in asked["by"]], "value")


def duckdb(address, asked):
    import duckdb as reader
    import fsspec

    query = urllib.parse.urlencode({"format": "parquet", **asked["plain"]}, doseq=True)
    base = reader.connect()
    base.register_filesystem(fsspec.filesystem("http"))
    frame = base.execute(f"SELECT * FROM read_parquet('{address}/api/v1/tables?{query}')").df()
    return told(frame.to_dict("records"), [f"{name}_label" for name in asked["by"]], "value")


def arrow(address, asked):
    from pyarrow import ipc

    table = ipc.open_file(
        get(f"{address}/api/v1/tables", format="arrow", **asked["plain"])
    ).read_all()
    assert asked["note"].encode() in b" ".join(table.schema.metadata.values())
    return told(table.to_pylist(), [f"{name}_label" for name in asked["by"]], "value")


def pandas(address, asked):
    import pandas as reader

    frame = reader.read_html(
        io.BytesIO(get(f"{address}/api/v1/tables", format="html", **asked["plain"])),
        encoding="utf-8",
    )[0]
    return frame


if __name__ == "__main__":
    client, address, asked = sys.argv[1:]
    print(json.dumps(globals()[client](address, json.loads(asked))))
