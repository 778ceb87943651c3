"""What is not selected is never a number: every view and file leaves it out, and the rest stays as it was."""

from __future__ import annotations

import csv
import io
import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import numpy as np
import openpyxl
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.answer import answer
from lustrum.model import Axis, Filter, TableQuery
from lustrum.public.bundle import BundleNumbers, read_bundle
from lustrum.server.table_view.titles import file_name
from lustrum.server.urls import forms

TABLES = "/api/v1/tables"


@pytest.fixture(scope="module")
def numbers(bundle: Path) -> BundleNumbers:
    return BundleNumbers(read_bundle(bundle), workers=1)


@st.composite
def questions(draw: st.DrawFn, numbers: BundleNumbers) -> tuple[TableQuery, set[str]]:
    """A question with a selection on a variable that it shows, and the codes that then hold somebody."""
    variable = draw(st.sampled_from(numbers.dataset.variables))
    levels = [level for hierarchy in variable.hierarchies for level in hierarchy.levels]
    level = draw(st.sampled_from([None, *levels]))
    # Codes of any level may be selected, whatever level is shown.
    codes = [*variable.codes, *(c.code for one in levels for c in one.groups)]
    chosen = draw(st.lists(st.sampled_from(codes), min_size=1, max_size=3, unique=True))
    other = draw(st.sampled_from([v.name for v in numbers.dataset.variables if v != variable]))
    axis = Axis(variable.name, None if level is None else level.name)
    query = TableQuery("demo", (Axis(other), axis), (Filter(variable.name, tuple(chosen)),))
    query = query.with_totals if draw(st.booleans()) else query
    counted = {m for code in chosen for m in variable.category(code).members}
    shown = variable.finest if level is None else level.categories
    return query, {c.code for c in shown if counted & set(c.members)}


@given(data=st.data())
@settings(
    max_examples=examples(6, 60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_no_view_and_no_file_holds_what_is_not_selected(
    data: st.DataObject, numbers: BundleNumbers, bundled: TestClient
) -> None:
    query, selected = data.draw(questions(numbers))
    name, words = query.by[1].variable, forms.write(query)
    decision = answer(query, numbers, numbers.bundle.policy)
    assert decision.release is not None
    assert set(decision.release.axes[1].codes) - {"_T"} == selected
    # Cells, bounds and margin are those of the table that leaves nothing out.
    full = numbers.views(query).shown
    picks = [
        [full_axis.codes.index(code) for code in axis.codes]
        for full_axis, axis in zip(full.axes, decision.release.axes, strict=True)
    ]
    kept = full.take(picks)
    for field in ("numbers", "least", "most", "status"):
        assert np.array_equal(getattr(kept, field), getattr(decision.release, field))
    assert full.margin == decision.release.margin
    allowed = {*selected, "_T"}

    def of(form: str, **more: str) -> bytes:
        asked = f"{TABLES}?dataset=demo&{words}&format={form}&{urlencode(more)}"
        response = bundled.get(asked)
        assert response.status_code == 200, response.text
        return response.content

    for more in ({}, {"show": "row-percent"}, {"show": "difference", "pivot": f"{name}:columns"}):
        rows = csv.DictReader(io.StringIO(of("csv", **more).decode()))
        assert {row[name] for row in rows} <= allowed
        index = json.loads(of("json-stat", **more))
        assert set(index["dimension"][name]["category"]["index"]) <= allowed
        frame = pq.read_table(io.BytesIO(of("parquet", **more)))
        assert set(frame.column(name).to_pylist()) <= allowed
        book = openpyxl.load_workbook(io.BytesIO(of("xlsx", **more)), read_only=True)
        head, *cells = book["Cells"].iter_rows(values_only=True)
        assert {row[head.index(name)] for row in cells} <= allowed
    labels = {category.label for category in full.axes[1].categories if category.code in allowed}
    for view in ("table", "chart", "map"):
        page = bundled.get(f"/datasets/demo/table?{words}&as={view}&pivot={name}:rows").text
        heads = re.findall(r'<th scope="row"[^>]*>(.*?)</th>', page, re.DOTALL)
        shown = {unescape(re.sub(r"<[^>]*>", "", head)).strip() for head in heads}
        others = {c.label for c in full.axes[1].categories} - labels
        assert not shown & others - {c.label for c in full.axes[0].categories}


def test_a_table_of_what_is_not_selected_is_refused_with_a_way_forward(bundled: TestClient) -> None:
    asked = "by=sex&by=age&codes=age:1,2&where=age:5"
    body = bundled.get(f"{TABLES}?dataset=demo&{asked}").json()
    assert body["decision"] == "refusal"
    assert "none of the categories" in body["reasons"][0]["text"]
    page = bundled.get(f"/datasets/demo/table?{asked}").text
    assert "none of the categories" in page
    assert "by=sex&amp;by=age&amp;codes=age:1,2" in page  # without the selection


def test_every_file_says_what_it_is(bundled: TestClient) -> None:
    asked = f"{TABLES}?dataset=demo&by=age:ten-year&by=sex&where=region:1&where=citizenship:2"
    page = bundled.get("/datasets/demo/table?by=age:ten-year&by=sex&where=region:1").text
    found = re.search(r"version (\w{12}), asked for on ([\d-]{10})", page)
    assert found is not None
    named = ("Upper Merrow", "Another country of the European Union", "people")
    facts = (*named, "Demo census", *found.groups(), "protected-population", "where=region:1")
    files = {}
    for form, more in [("csv", "&comments=on"), *((f, "") for f in ("csvw", "json-stat"))]:
        files[form] = bundled.get(f"{asked}&format={form}{more}").text
    book = openpyxl.load_workbook(io.BytesIO(bundled.get(f"{asked}&format=xlsx").content))
    files["xlsx"] = str([row for sheet in book for row in sheet.iter_rows(values_only=True)])
    whole = pq.ParquetFile(io.BytesIO(bundled.get(f"{asked}&format=parquet").content))
    files["parquet"] = str({k.decode(): v.decode() for k, v in whole.metadata.metadata.items()})
    margin = re.search(r"rarely more than (\d+) away", files["csv"])
    assert margin is not None
    for form, text in files.items():
        assert [fact for fact in (*facts, margin[1]) if fact not in text] == [], form
    plain = bundled.get(f"{asked}&format=csv").text
    rows = list(csv.DictReader(io.StringIO(plain)))
    assert all(
        (r["region"], r["region_label"], r["citizenship"]) == ("1", named[0], "2") for r in rows
    )
    assert {r["margin"] for r in rows} == {margin[1]}
    assert whole.read().column_names == list(rows[0])
    assert files["csv"].endswith(plain)
    columns = json.loads(files["csvw"])["tableSchema"]["columns"]
    assert [column["name"] for column in columns] == list(rows[0])


@given(data=st.data())
@settings(
    max_examples=examples(50, 500), suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_other_questions_have_other_names_of_files(
    data: st.DataObject, numbers: BundleNumbers
) -> None:
    one, other = (data.draw(questions(numbers))[0] for _ in range(2))
    assert (file_name(one, "csv") == file_name(other, "csv")) == (one == other)


@pytest.mark.parametrize("totals", ["on", "off"])
def test_shares_of_each_row_on_a_map_are_of_a_category(bundled: TestClient, totals: str) -> None:
    page = bundled.get(
        f"/datasets/demo/table?by=area:district&by=sex&totals={totals}&as=map&show=row-percent"
    ).text
    assert "Share within each area. Sex: Male" in page
    hovers = re.findall(r"<title>[^<]*: ([\d.]+)\u202f% \(± [\d.]+ points\)</title>", page)
    assert len(hovers) == 14
    assert all(40 < float(share) < 60 for share in hovers)
    alone = bundled.get("/datasets/demo/table?by=area:district&as=map&show=row-percent").text
    assert "100\u202f%" not in alone
