"""Reads tables with the program of somebody else and prints their cells as JSON, by the Python of the clients.

    python reading.py pxwebpy ADDRESS '[{"table": "demo", "by": ["sex"], "select": {"sex": ["*"]}}]'

Each cell is a list of labels or codes by variable, and the number or nothing.
"""

import io
import json
import sys
import urllib.parse
import urllib.request
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory


def place(address, asked, form):
    """Where a table is in a format: an answer to a question, or a file that was prepared."""
    if "files" in asked:
        return f"{address}{asked['files'][form]}"
    query = urllib.parse.urlencode({"format": form, **asked["plain"]}, doseq=True)
    return f"{address}/api/v1/tables?{query}"


def get(address, asked, form):
    with urllib.request.urlopen(place(address, asked, form)) as answer:
        return answer.read()


def plain(value):
    """A number, or nothing where a client says in its own way that there is none."""
    if value is None or value != value or (isinstance(value, str) and value in ("", "NaN", "..")):
        return None
    return float(value)


def noted(asked, texts):
    """Whether some text has one of the notes that the table must come with."""
    whole = " ".join(text.decode() if isinstance(text, bytes) else str(text) for text in texts)
    return any(word in whole for word in asked["note"].split("|"))


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

    frame = reader.Dataset.read(get(address, asked, "json-stat").decode()).write("dataframe")
    return told(frame.to_dict("records"), list(frame.columns)[: len(asked["by"])], "value")


def pyaxis(address, asked):
    from pyaxis.pyaxis import parse

    with TemporaryDirectory() as folder:
        file = Path(folder, "table.px")
        file.write_bytes(get(address, asked, "px"))
        read = parse(str(file), encoding="utf-8")
    frame, note = read["DATA"], " ".join(read["METADATA"]["NOTE"])
    assert noted(asked, [note])
    return told(frame.to_dict("records"), list(frame.columns)[: len(asked["by"])], "DATA")


def csvw(address, asked):
    from csvw import CSVW

    with TemporaryDirectory() as folder:
        Path(folder, "table.csv").write_bytes(get(address, asked, "csv"))
        described = json.loads(get(address, asked, "csvw"))
        assert noted(asked, described["notes"])
        Path(folder, "table.csv-metadata.json").write_text(
            json.dumps(described | {"url": "table.csv"})
        )
        rows = list(
            CSVW(str(Path(folder, "table.csv-metadata.json"))).tables[0].iterdicts(strict=True)
        )
    return told(rows, [f"{name}_label" for name in asked["by"]], "value")


def openpyxl(address, asked):
    import openpyxl as reader

    book = reader.load_workbook(io.BytesIO(get(address, asked, "xlsx")))
    assert noted(asked, [cell.value for sheet in book for row in sheet.rows for cell in row])
    head, *rows = ([cell.value for cell in row] for row in book["Cells"].rows)
    rows = [dict(zip(head, row, strict=True)) for row in rows]
    for row in rows:
        row["value"] = None if isinstance(row["value"], str) else row["value"]
    return told(rows, [f"{name}_label" for name in asked["by"]], "value")


def polars(address, asked):
    import polars as reader

    frame = reader.scan_parquet(place(address, asked, "parquet")).collect()
    return told(frame.to_dicts(), [f"{name}_label" for name in asked["by"]], "value")


def duckdb(address, asked):
    import duckdb as reader
    from fsspec.implementations.http import HTTPFileSystem

    class Files(HTTPFileSystem):
        def modified(self, path):
            """DuckDB wants a time, which the server has none of: an answer is made when it is asked for."""
            return datetime(2000, 1, 1, tzinfo=UTC)

    base = reader.connect()
    base.register_filesystem(Files())
    frame = base.execute(f"SELECT * FROM read_parquet('{place(address, asked, 'parquet')}')").df()
    return told(frame.to_dict("records"), [f"{name}_label" for name in asked["by"]], "value")


def arrow(address, asked):
    from pyarrow import ipc

    table = ipc.open_file(get(address, asked, "arrow")).read_all()
    assert "files" in asked or noted(asked, table.schema.metadata.values())
    return told(table.to_pylist(), [f"{name}_label" for name in asked["by"]], "value")


def sdmx1(address, asked):
    import sdmx as reader
    from sdmx.reader.csv import Reader

    if "by_file" in asked:
        structure = reader.read_sdmx(io.BytesIO(get(address, asked, "sdmx-structure")))
        flow, content = structure.dataflow["TABLE"], get(address, asked, "sdmx-csv")
    else:
        source = {
            "id": "LUSTRUM",
            "name": "Lustrum",
            "url": f"{address}/sdmx/v2",
            "versions": ["3.0.0"],
        }
        reader.add_source(source, override=True)
        client, name = reader.Client("LUSTRUM"), asked["flow"]
        assert name in client.dataflow().dataflow
        flow = client.dataflow(name, params={"references": "all"}).dataflow[name]
        query = client.data(name, key=asked["key"], version="1.0.0", dry_run=True)
        with urllib.request.urlopen(query.url) as answer:
            content = answer.read()
    message = Reader().convert(io.BytesIO(content), structure=flow)
    codes = {d.id: d.local_representation.enumerated for d in flow.structure.dimensions}
    labels = {name: {c.id: str(c.name) for c in listed} for name, listed in codes.items()}
    rows = []
    for one in message.data[0].obs:
        known = [labels[name][one.dimension[name].value] for name in asked["by"]]
        rows.append([known, plain(float(one.value))])
    return rows


def sdmx21(address, asked):
    """The same program by the interface of SDMX 2.1."""
    import sdmx as reader

    if "by_file" in asked:
        return sdmx1(address, asked)
    source = {"id": "OLDER", "name": "Lustrum", "url": f"{address}/sdmx/2.1", "versions": ["2.1"]}
    reader.add_source(source | {"data_content_type": "XML"}, override=True)
    client, name = reader.Client("OLDER"), asked["flow"]
    assert name in client.dataflow("all", agency_id="LUSTRUM").dataflow
    said = client.dataflow(name, agency_id="LUSTRUM", params={"references": "all"})
    structure = said.structure[f"DSD_{name}"]
    codes = {
        d.id: said.codelist[d.local_representation.enumerated.id] for d in structure.dimensions
    }
    labels = {one: {c.id: str(c.name) for c in listed} for one, listed in codes.items()}
    url = client.data(name, key=asked["key"], dry_run=True).url
    with urllib.request.urlopen(url) as answer:
        message = reader.read_sdmx(io.BytesIO(answer.read()))
    rows = []
    for one in message.data[0].obs:
        known = [labels[name][one.dimension[name].value] for name in asked["by"]]
        rows.append([known, plain(float(one.value))])
    return rows


def pysdmx(address, asked):
    from pysdmx.api import qb
    from pysdmx.io import get_datasets, read_sdmx

    if "by_file" in asked:
        structure = get(address, asked, "sdmx-structure").decode()
        data, flow = get(address, asked, "sdmx-csv").decode(), "TABLE"
    else:
        flow = asked["flow"]
        service = qb.RestService(
            f"{address}/sdmx/v2",
            qb.ApiVersion.V2_1_0,
            qb.DataFormat.SDMX_CSV_2_0_0,
            qb.StructureFormat.SDMX_ML_3_0,
        )
        every = qb.StructureReference.ALL
        wanted = qb.StructureQuery(qb.StructureType.DATAFLOW, "LUSTRUM", flow, references=every)
        structure = service.structure(wanted).decode()
        query = qb.DataQuery(agency_id="LUSTRUM", resource_id=flow, key=asked["key"])
        data = service.data(query).decode()
    frame = get_datasets(data, structure)[0].data
    lists = {one.id: one.items for one in read_sdmx(structure).get_codelists()}
    for name in asked["by"]:
        labels = {code.id: code.name for code in lists[f"CL_{flow}_{name}"]}
        frame[name] = frame[name].map(labels)
    return told(frame.to_dict("records"), asked["by"], "OBS_VALUE")


if __name__ == "__main__":
    client, address, questions = sys.argv[1:]
    print(json.dumps([globals()[client](address, asked) for asked in json.loads(questions)]))
