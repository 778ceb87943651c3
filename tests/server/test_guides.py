"""The page of the API is drawn from its description, and its examples work when they are pasted."""

from __future__ import annotations

import html
import re
import shlex
import subprocess
import sys

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


@pytest.mark.parametrize("name", ["pandas", "polars"])
def test_examples_work_when_they_are_pasted(live: str, bundled: TestClient, name: str) -> None:
    page = bundled.get("/api", headers={"Host": live.removeprefix("http://")}).text
    boxes = re.findall(r"<summary>([^<]+)</summary>.*?<code[^>]*>(.*?)</code>", page, re.DOTALL)
    texts = {name: html.unescape(text) for name, text in boxes}
    assert all(live in text for text in texts.values())
    address = shlex.split(texts["curl"])[-1]
    assert bundled.get(address.removeprefix(live)).text.startswith("age,")
    found = subprocess.run(
        [sys.executable, "-c", texts[name]],
        capture_output=True,
        text=True,
        timeout=LONG,
        check=True,
    )
    assert "age" in found.stdout


def test_the_example_of_protection_keeps_the_mean_and_its_bounds_hold() -> None:
    for true in range(30):
        shown = list(shown_as(true))
        assert sum(part for _, part in shown) == 3
        assert sum(number * part for number, part in shown) == 3 * true
        for number, _ in shown:
            low, high = behind(number)
            assert low <= true <= high


def test_the_page_of_protection_shows_every_reading_in_both_languages(bundled: TestClient) -> None:
    assert "Behind 3 stands a true count from 1 to 5." in bundled.get("/protection").text
    assert "un effectif vrai de 1 à 5." in bundled.get("/fr/protection").text
    assert 'href="/protection"' in bundled.get("/datasets/demo").text
