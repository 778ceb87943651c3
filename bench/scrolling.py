"""Pages in a real browser: from a choice to new numbers, and whether scrolling a very long table ever waits.

    python bench/scrolling.py [--data FOLDER]
    python bench/protected_areas.py --areas 190000 --drawn-cells 4746947 --data FOLDER
    python bench/scrolling.py --areas FOLDER

Serves the demo census from FOLDER (made if missing) and opens a table of about 100,000 cells in headless
Chromium, first as the page shows it, then with all rows at once. It scrolls down by a notch of the wheel with
every frame, and prints how many frames there were, the longest one and how many took more than
50 ms. The same number of empty frames shows what the machine itself does.

Before that it makes choices in the workspace, each a question that nobody asked before, and prints the time
until the frame with the new numbers: wall, CPU of the server, and tasks of the page. It says the load. With
--areas the choices are made in a bundle of very many areas, and nothing is scrolled.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

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


CHOICES = {
    "another district": [f"by=age&by=sex&totals=on&where=area:1-{n:02}" for n in range(1, 9)],
    "another variable": [
        f"by=age&by={name}&totals=on" for name in ("citizenship", "employment", "region")
    ],
    "a chart": [f"by=age&by=sex&as=chart&where=household_size:{n}" for n in range(1, 6)],
    "a map": [f"by=area:district&by=sex&as=map&where=household_size:{n}" for n in range(1, 6)],
}
IN_AREAS = {
    "another area": [f"by=age&by=sex&where=area:E{n:08}" for n in range(70_000, 70_008)],
    "another variable": [
        f"by=age&by={name}&where=area:E{90_000 + n:08}"
        for n, name in enumerate(("sex", "employment", "sex", "employment"))
    ],
    "areas of a district": [f"by=sex&where=area:D{n}&by=area" for n in range(3, 9)],
}
CHOOSE = """async (to) => {
  const began = performance.now();
  await new Promise((done) => {
    const frame = () => requestAnimationFrame(() => requestAnimationFrame(done));
    document.addEventListener("lustrum:page", frame, { once: true });
    document.dispatchEvent(new CustomEvent("lustrum:go", { detail: to }));
  });
  return performance.now() - began;
}"""


def choose(page: Page, address: str, server: int, choices: dict[str, list[str]], data: str) -> None:
    """Time choices in the workspace; the first of each kind, which loads scripts, is not counted."""
    page.goto(f"{address}/datasets/{data}")
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable")

    def tasks() -> float:
        metrics = session.send("Performance.getMetrics")["metrics"]
        return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")

    for name, questions in choices.items():
        walls, served, drawn = [], [], []
        for question in questions:
            before = seconds_of(server), tasks()
            walls.append(page.evaluate(CHOOSE, f"/datasets/{data}?{question}"))
            served.append(1000 * (seconds_of(server) - before[0]))
            drawn.append(1000 * (tasks() - before[1]))
        figures = {
            "wall (ms)": median(walls[1:]),
            "worst (ms)": max(walls[1:]),
            "CPU of the server (ms)": median(served[1:]),
            "tasks of the page (ms)": median(drawn[1:]),
        }
        load = f"{os.getloadavg()[0]:.1f}"
        where = "From a choice to new numbers" + (": 190,000 areas" if data == "areas" else "")
        record(where, {"choice": name, **figures, "load": load})


def seconds_of(process: int) -> float:
    """CPU seconds of a process and those below it."""
    below = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    words = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return own + sum(seconds_of(int(one)) for one in below)


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
    parser.add_argument("--areas", type=Path, help="Folder with a bundle of very many areas.")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    parser.add_argument("--port", type=int, default=8321)
    given = parser.parse_args()
    if given.areas:
        return look(given.areas, given.port, given.chromium, "areas")
    with tempfile.TemporaryDirectory() as folder:
        return look(given.data or Path(folder), given.port, given.chromium)


def look(data: Path, port: int, chromium: str, dataset: str = "demo") -> int:
    """Serve the demo and scroll through its table, or make choices in a bundle."""
    own = ["--demo", "--data", str(data)]
    if dataset == "areas":
        own = ["--bundle", str(data / "bundles" / "areas")]
    command = [sys.executable, "-m", "lustrum", "serve", *own]
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
                    if ready.get(f"{address}/datasets/{dataset}", timeout=120_000).ok:
                        break
                except Exception:  # it does not listen yet
                    pass
                time.sleep(1)
            choices = IN_AREAS if dataset == "areas" else CHOICES
            choose(page, address, server.pid, choices, dataset)
            if dataset == "demo":
                measure(page, address + TABLE, "first page of rows")
                measure(page, f"{address}{TABLE}&page=all", "all rows")
            browser.close()
    finally:
        server.terminate()
        server.wait(60)
    return 0


if __name__ == "__main__":
    sys.exit(main())
