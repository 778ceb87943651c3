"""A very long table in a real browser: how long it takes to appear, and whether scrolling ever waits.

    python bench/scrolling.py [--data FOLDER]

Serves the demo census from FOLDER (made if missing) and opens a table of about 100,000 cells in headless
Chromium, first as the page shows it, then with all rows at once. It scrolls down by a notch of the wheel with
every frame, and prints how many frames there were, the longest one and how many took more than
50 ms. The same number of empty frames shows what the machine itself does.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from parts.figures import record
from playwright.sync_api import Page, sync_playwright

TABLE = "/datasets/demo/table?by=area&by=age&by=occupation&by=sex"
LIMIT = 50.0
STEP = 120  # pixels, what a notch of a wheel moves
FRAMES = """async ([move, step]) => {
  const gaps = [];
  let last = await new Promise(requestAnimationFrame);
  let box = document.querySelector("table.data");
  while (box.parentElement && !(box.scrollHeight > box.clientHeight + 1
    && /auto|scroll/.test(getComputedStyle(box).overflowY))) box = box.parentElement;
  const end = box.scrollHeight;
  const screens = Math.min(Math.ceil(end / step), 600);
  for (let i = 1; i <= screens; i += 1) {
    if (move) box.scrollTop = i * step;
    const now = await new Promise(requestAnimationFrame);
    gaps.push(now - last);
    last = now;
  }
  return gaps;
}"""


def measure(page: Page, address: str, name: str) -> None:
    """Open, scroll and print a row."""
    began = time.perf_counter()
    # A large table is made in the background, and its page loads itself again until it is there.
    page.goto(address, timeout=300_000, wait_until="commit")
    page.wait_for_selector("table.data", timeout=300_000)
    page.wait_for_load_state("load")
    shown = time.perf_counter() - began
    cells = page.locator("table.data td").count()
    page.wait_for_timeout(1000)
    still, moved = (page.evaluate(FRAMES, [move, STEP]) for move in (False, True))
    slow = sum(gap > LIMIT for gap in moved)
    record(
        "A long table in Chromium",
        {
            "view": name,
            "cells": cells,
            "appears after (s)": shown,
            "frames": len(moved),
            "longest (ms)": max(moved),
            f"above {LIMIT:g} ms": slow,
            "longest without scrolling (ms)": max(still),
        },
    )


def main() -> int:
    """Look at the demo data that are given, or at new ones."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="Folder of the demo data; made if missing.")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--port", type=int, default=8321)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return look(given.data or Path(folder), given.port, given.chromium)


def look(data: Path, port: int, chromium: str) -> int:
    """Serve the demo and scroll through its table."""
    command = [sys.executable, "-m", "lustrum", "serve", "--demo", "--data", str(data)]
    server = subprocess.Popen([*command, "--port", str(port), "--seconds", "300"])
    address = f"http://127.0.0.1:{port}"
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=chromium)
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            ready = page.request
            until = time.monotonic() + 600
            while time.monotonic() < until:
                try:
                    if ready.get(f"{address}/datasets/demo", timeout=120_000).ok:
                        break
                except Exception:  # it does not listen yet
                    pass
                time.sleep(1)
            measure(page, address + TABLE, "first page of rows")
            measure(page, f"{address}{TABLE}&page=all", "all rows")
            browser.close()
    finally:
        server.terminate()
        server.wait(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
