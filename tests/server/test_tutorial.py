"""The tutorial is followed on the page itself, step by step as it is written.

In a numbered step, **bold** names what is clicked, `code` is typed into the field that follows in bold, a link
is opened, and *slanted* words must then be seen. So a control that has another name, or a page that opens with
another table, fails here.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest
from fastapi.testclient import TestClient

from browsing import expect, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorials" / "first-table.md").read_text()
DOING = re.compile(
    r"`(?P<typed>[^`]+)` into \*\*(?P<field>[^*]+)\*\*|\*\*(?P<clicked>[^*]+)\*\*"
    r"|\]\((?P<opened>http[^)]+)\)|\*(?P<seen>[^*]+)\*"
)


def steps(title: str) -> list[str]:
    """The numbered steps below a heading."""
    section = TUTORIAL.split(f"## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"^\d+\. (.*)$", section, flags=re.MULTILINE)


def follow(page: Page, step: str) -> None:
    """Do what a step says, in its order."""
    for doing in DOING.finditer(step):
        if name := doing["clicked"]:
            own = re.compile(rf"^\s*{re.escape(name)}(\s*$|\s*:|\s*count only these)")
            control = page.locator("a, button, summary").filter(has_text=own)
            control.locator("visible=true").first.click()
        elif doing["typed"]:
            page.get_by_label(doing["field"]).fill(doing["typed"])
        elif doing["opened"]:
            address = urlsplit(doing["opened"])
            page.goto(f"{address.path}?{address.query}")
        else:
            expect(page.get_by_text(doing["seen"]).locator("visible=true").first).to_be_visible()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("title", "many"), [("Build a table on the page", 8), ("See a refusal", 2)]
)
def test_the_steps_of_the_tutorial_lead_where_it_says(
    browser: Browser, live: str, title: str, many: int
) -> None:
    found = steps(title)
    assert len(found) == many
    with visit(browser, live, locale="en-GB") as page:
        page.goto("/")
        for step in found:
            follow(page, step)


def test_the_question_of_the_tutorial_is_answered(bundled: TestClient) -> None:
    (question,) = re.findall(r"-d '(\{.*\})'", TUTORIAL)
    answer = bundled.post("/api/v1/tables", json=json.loads(question))
    assert answer.status_code == 200
    assert answer.json()["decision"] == "answer"
