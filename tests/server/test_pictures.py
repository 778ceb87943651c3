"""Pictures of charts and maps to take along: they say what they are, and no word is cut or covers another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from browsing import visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.browser

KINDS = {
    "bars": "by=age:ten-year&by=sex&chart=bars&as=chart&where=region:1",
    "shares": "by=age:ten-year&by=sex&as=chart&show=column-percent&where=region:1",
    "stacked": "by=age:ten-year&by=education:broad&chart=stacked&as=chart&where=region:1",
    "lines": "by=age&by=sex&by=household_size:broad&chart=lines&as=chart&where=region:1",
    "pyramid": "by=age&by=sex&chart=pyramid&as=chart&where=region:1",
    "heat": "by=age:ten-year&by=household_size&chart=heat&as=chart&where=region:1",
    "map": "by=area:district&by=sex&as=map&show=row-percent&where=region:1",
}
FAULTS = """async () => {
  const script = document.querySelector("[data-picture=svg]").dataset.script;
  const { source } = (await import(script)).picture(document.querySelector("figure.chart"));
  const holder = document.createElement("div");
  holder.style = "position: absolute; top: 0; left: 0; width: 3000px";
  holder.innerHTML = source;
  document.body.append(holder);
  const whole = holder.firstChild.getBoundingClientRect();
  const box = (text) => [text.textContent, text.getBoundingClientRect()];
  const texts = [...holder.querySelectorAll("text")].map(box);
  const faults = [];
  texts.forEach(([words, a], place) => {
    const inside = a.left >= whole.left && a.right <= whole.right + 1 && a.bottom <= whole.bottom;
    if (!inside) faults.push(`cut: ${words}`);
    for (const [other, b] of texts.slice(place + 1)) {
      const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
      const high = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (wide > 1 && high > 3) faults.push(`${words} over ${other}`);
    }
  });
  holder.remove();
  return [faults, texts.map(([words]) => words).join(" ")];
}"""


@pytest.mark.parametrize("kind", KINDS)
def test_no_word_of_a_picture_is_cut_or_covered(browser: Browser, live: str, kind: str) -> None:
    with visit(browser, live) as page:
        page.goto(f"/datasets/demo/table?{KINDS[kind]}")
        for width in (390, 768, 1024, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            faults, words = page.evaluate(FAULTS)
            assert faults == [], width
        for said in (
            "people whose region is Upper Merrow",
            "Demo census",
            "version",
            "asked for on",
        ):
            assert said in words
        assert "Protected. " in words
        assert ("Percentages of each" in words) == ("percent" in KINDS[kind])
