"""The page of the API is drawn from its description, and its examples work when they are pasted."""

from __future__ import annotations

import csv
import html
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from lustrum.server.pages.guides import behind, described, shown_as
from waiting import LONG


def test_every_route_of_the_description_is_on_the_page(bundled: TestClient) -> None:
    app = bundled.app
    assert isinstance(app, FastAPI)
    page = html.unescape(bundled.get("/api").text)
    routes = list(described(app.openapi()))
    assert len(routes) > 10
    assert len({route.id for route in routes}) == len(routes)
    for route in routes:
        assert f'id="{route.id}"' in page
        assert route.summary in page
        for parameter in route.parameters:
            assert f"<code>{parameter.name}</code>" in page


def test_a_form_of_the_page_asks_what_it_says(bundled: TestClient) -> None:
    page = bundled.get("/fr/api").text
    form = page[page.index('action="/api/v1/tables"') :].split("</form>")[0]
    names = re.findall(r'name="([a-z.]+)"', form)
    assert {"dataset", "by", "where", "format"} <= set(names)
    # A form sends its empty fields too.
    sent = dict.fromkeys(names, "") | {"dataset": "demo", "by": "sex", "format": "csv"}
    answer = bundled.get("/api/v1/tables", params=sent)
    assert answer.status_code == 200, answer.text
    assert answer.text.startswith("sex,")


@pytest.fixture(scope="module")
def pasted(live: str, bundled: TestClient) -> dict[str, str]:
    """The examples of the page of a real server, by the name of their program."""
    page = bundled.get("/api", headers={"Host": live.removeprefix("http://")}).text
    boxes = re.findall(r"<summary>([^<]+)</summary>.*?<code[^>]*>(.*?)</code>", page, re.DOTALL)
    texts = {name: html.unescape(text) for name, text in boxes}
    assert set(texts) == {"curl", "pandas", "polars", "R", "JavaScript", "Power Query"}
    assert all(live in text for text in texts.values())
    return texts


@pytest.fixture(scope="module")
def file(live: str, bundled: TestClient, pasted: dict[str, str]) -> str:
    """The file that the examples ask for."""
    text = bundled.get(shlex.split(pasted["curl"])[-1].removeprefix(live)).text
    assert text.startswith("age,")
    return text


def run(*command: str, **options: Any) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=LONG, check=True, **options
    )
    return str(done.stdout)


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_examples_in_python_work_when_they_are_pasted(
    pasted: dict[str, str], file: str, name: str
) -> None:
    ask = f"{pasted[name]}\nprint(list(table.columns), len(table), table[0:1])"
    said = run(sys.executable, "-c", ask)
    rows = list(csv.reader(file.splitlines()))
    assert f"{rows[0]} {len(rows) - 1}" in said


def test_the_example_of_curl_works_when_it_is_pasted(
    pasted: dict[str, str], file: str, tmp_path: Path
) -> None:
    if shutil.which("curl") is not None:
        run("sh", "-c", pasted["curl"], cwd=tmp_path)
        said = (tmp_path / "table.csv").read_text("utf-8")
    else:
        with urlopen(shlex.split(pasted["curl"])[-1]) as answer:
            said = answer.read().decode("utf-8")
    assert said.splitlines() == file.splitlines()


def test_the_example_of_javascript_works_when_it_is_pasted(
    pasted: dict[str, str], file: str, request: pytest.FixtureRequest
) -> None:
    text = pasted["JavaScript"].replace("console.log(", "console.log(JSON.stringify(", 1)
    text = text.removesuffix(";") + ");"
    if shutil.which("node") is not None:
        said = run("node", "--input-type=module", "--eval", text)
    else:
        page = request.getfixturevalue("browser").new_page()
        page.goto(re.findall(r"http://[^/\"]+", text)[0])
        with page.expect_console_message() as message:
            page.evaluate(f"(async () => {{ {text} }})()")
        said = message.value.text
        page.close()
    rows = list(csv.DictReader(file.splitlines()))
    assert json.loads(said) == [float(row["value"]) for row in rows]


def test_the_examples_of_r_and_power_query_ask_for_the_same_file(
    pasted: dict[str, str], file: str
) -> None:
    """Neither program is needed for the tests: the address and the quotation are what can go wrong."""
    address = shlex.split(pasted["curl"])[-1]
    assert pasted["R"].count(f'read.csv("{address}"') == 1
    assert pasted["Power Query"].count(f'Web.Contents("{address}")') == 1
    # Both languages read a string of these signs as it stands.
    assert re.fullmatch(r"[\w:/.?&=,%-]+", address)
    # Both read commas, quotation marks and UTF-8.
    assert {len(row) for row in csv.reader(file.splitlines())} == {
        len(next(csv.reader(file.splitlines())))
    }


def test_the_example_of_protection_keeps_the_mean_and_its_bounds_hold() -> None:
    for true in range(30):
        shown = list(shown_as(true))
        assert sum(part for _, part in shown) == 3
        assert sum(number * part for number, part in shown) == 3 * true
        for number, _ in shown:
            low, high = behind(number)
            assert low <= true <= high


def test_the_page_of_protection_shows_every_reading_in_every_language(bundled: TestClient) -> None:
    assert "Behind 3 stands a true count from 1 to 5." in bundled.get("/protection").text
    assert "un effectif vrai de 1 à 5." in bundled.get("/fr/protection").text
    assert "eine wahre Fallzahl von 1 bis 5." in bundled.get("/de/protection").text
    assert 'href="/protection"' in bundled.get("/datasets/demo").text
