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


# Boxes of words are compared, and no pixels: letters are drawn in another way on another machine.
_LAYOUT = """() => {
  const faults = new Set();
  const texts = [];
  const look = (one) => getComputedStyle(one);
  const above = (one) => (one === document.body ? [] : [one, ...above(one.parentElement)]);
  /** Whether a box is shown inside all around it: yes, cut off, or later, when somebody scrolls. */
  const seen = (box, around) => {
    for (const one of around) {
      const { overflowX, overflowY, clipPath } = look(one);
      if (clipPath === "inset(50%)") return "later"; // for screen readers alone
      const room = one.getBoundingClientRect();
      const out = [
        [overflowX, box.left < room.left - 1 || box.right > room.right + 1],
        [overflowY, box.top < room.top - 1 || box.bottom > room.bottom + 1],
      ].filter(([how, far]) => far && how !== "visible");
      if (out.length) return out.every(([how]) => ["hidden", "clip"].includes(how)) ? "cut" : "later";
    }
    return "yes";
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    const words = node.textContent.trim().slice(0, 40);
    if (!words || element.closest("title, desc, script, select")) continue;
    if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
    const around = above(element);
    const moves = around.some((one) => ["fixed", "sticky"].includes(look(one).position));
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) {
      if (box.width < 1 || box.height < 1) continue;
      const how = seen(box, around);
      if (how === "cut") faults.add(`cut: ${words}`);
      if (how !== "later" && !moves) texts.push([words, element, box]);
    }
  }
  texts.sort((a, b) => a[2].top - b[2].top);
  texts.forEach(([words, element, a], place) => {
    for (const [other, beside, b] of texts.slice(place + 1)) {
      if (b.top >= a.bottom) break;
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 2 && high > 5 && element !== beside) faults.add(`${words} over ${other}`);
    }
  });
  if (document.documentElement.scrollWidth > innerWidth) faults.add("the page is too wide");
  return [...faults];
}"""


def layout_faults(page: Page) -> list[str]:
    """Words on a page that are cut off, words over other words, and a page wider than its window.

    What scrolls inside its frame is not cut off.
    """
    faults: list[str] = page.evaluate(_LAYOUT)
    return faults
