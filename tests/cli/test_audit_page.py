"""The page of an audit: what nobody chose on it stays open in the layout that it makes."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from lustrum.cli.terminal.audit_page import page
from lustrum.readers.judge import judge, open_file

if TYPE_CHECKING:
    from playwright.sync_api import Browser


def test_only_what_can_be_chosen_on_the_page_is_settled_by_it(
    tmp_path: Path, browser: Browser
) -> None:
    (tmp_path / "q.csv").write_text("A title\narea,job,value\nT,All,90\nT,a,60\nN,All,50\nN,a,x\n")
    opened = open_file(tmp_path / "q.csv")
    (tmp_path / "q.html").write_text(page(judge([opened]).report, [opened.layout]))
    tab = browser.new_page()
    tab.goto((tmp_path / "q.html").as_uri())
    text = tab.get_by_label("The layout as TOML")
    before = {"codes:area", "codes:job", "notes"}
    assert set(tomllib.loads(text.input_value())["open"]) == before
    tab.get_by_label("Lines outside the tables").check()
    layout = tomllib.loads(text.input_value())
    assert (set(layout["open"]), layout["notes"]) == (before - {"notes"}, "nothing")
    tab.close()
