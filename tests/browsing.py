"""Pages in a real browser, as tests visit them: patient on a slow machine, strict about complaints.

A test may run on a machine several times slower than ours, beside other tests. So it never reads a page once,
right after it did something: it waits with ``expect`` for a state that only the awaited event brings about. A
click that leads to another page is followed by ``arrive``, because scripts of the new page listen only once
it is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlsplit

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Locator, Page

PATIENCE = 90_000  # milliseconds until a test gives up waiting for a page
expect.set_options(timeout=PATIENCE)


@contextmanager
def context_of(browser: Browser, **options: Any) -> Iterator[BrowserContext]:
    """A profile of its own with our patience, closed however the test ends."""
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE)
    try:
        yield context
    finally:
        context.close()


@contextmanager
def visit(browser: Browser, address: str, enter: str = "", **options: Any) -> Iterator[Page]:
    """A page in a profile of its own; any complaint, cookie or request to another host fails the test.

    ``enter`` is an address that lets the visitor in to pages with a door, which keeps a cookie.
    """
    with context_of(browser, base_url=address, **options) as context:
        page = context.new_page()
        host = urlsplit(address).netloc
        abroad: list[str] = []
        complaints: list[str] = []
        context.on("request", lambda r: urlsplit(r.url).netloc == host or abroad.append(r.url))
        page.on("console", lambda m: complaints.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda e: complaints.append(str(e)))
        if enter:
            page.goto(enter)
            page.wait_for_url(lambda url: enter not in url)
        yield page
        assert abroad == []
        assert complaints == []
        assert len(context.cookies()) == bool(enter)


def arrive(page: Page, link: Locator, url: str | re.Pattern[str]) -> None:
    """Click what leads to another page, and wait until that page is loaded with its scripts."""
    link.click()
    page.wait_for_url(url)


def asked(page: Page) -> list[tuple[str, str]]:
    """The question in the address of a page, as the page itself has it."""
    return parse_qsl(urlsplit(page.evaluate("location.href")).query)


# Axe takes time with the square of what stands on a page. Rows, ticks and marks of one kind (the same elements
# with the same classes, styles, colours and roles) have the same faults, so a few of each are enough.
_THIN_OUT = """(many) => {
  const told = ["class", "style", "fill", "role", "scope", "type"];
  const kind = (element) => [...new Set([element, ...element.querySelectorAll("*")].map((part) =>
    [part.tagName, ...told.map((name) => part.getAttribute(name))].join(" ")))].sort().join("|");
  window.setAside = [];
  for (const parent of document.body.querySelectorAll("*")) {
    const met = new Map();
    for (const child of parent.isConnected ? [...parent.children] : []) {
      const same = kind(child);
      met.set(same, (met.get(same) ?? 0) + 1);
      if (met.get(same) <= many) continue;
      const mark = document.createComment("");
      child.replaceWith(mark);
      window.setAside.push([mark, child]);
    }
  }
}"""
_PUT_BACK = "() => { for (const [mark, child] of window.setAside) mark.replaceWith(child); }"


def axe_complaints(
    page: Page, contrast: bool = True, within: str = "body"
) -> list[tuple[str, str, list[str]]]:
    """What axe-core finds on a page as it stands, of which it sees a few of each kind of row, tick and mark."""
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate(_THIN_OUT, 3)
    rules = {"color-contrast": {"enabled": contrast}}
    options = {"resultTypes": ["violations"], "rules": rules}
    complaints: list[dict[str, Any]] = (
        Axe()
        .run(page, context=None if within == "body" else within, options=options)
        .response["violations"]
    )
    page.evaluate(_PUT_BACK)
    return [(c["impact"], c["id"], [n["html"][:200] for n in c["nodes"]][:3]) for c in complaints]
