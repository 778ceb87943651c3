"""Draw the pictures of risk-utility maps that the documentation shows, from counts that are always the same.

::

    python scripts/map_pictures.py           into docs/img
    python scripts/map_pictures.py FOLDER    somewhere else
"""

from __future__ import annotations

import socket
import sys
import threading
import time
from pathlib import Path

import numpy as np
import uvicorn
from playwright.sync_api import sync_playwright

from lustrum.agency import create_agency_app
from lustrum.model import Table
from lustrum.rumap import Tables, grid, rumap, series_map
from lustrum.rumap.charts import save_chart, series_chart
from lustrum.rumap.report import find_chromium
from lustrum.rumap.series import Answering

IMAGES = Path(__file__).parent.parent / "docs" / "img"


def example() -> Table:
    """Areas and faiths, with many small counts."""
    counts = np.random.default_rng(3).negative_binomial(1, 0.08, size=(10, 9))
    return Table.from_counts(counts, names=["area", "faith"])


def map_picture(folder: Path) -> Path:
    """A map with a limit."""
    methods = [
        *grid("random-rounding", base=[3, 5, 10]),
        *grid("conventional-rounding", base=[3, 5, 10]),
        *grid("controlled-rounding", base=[3, 5, 10]),
        *grid("cell-key"),
        *grid("markov-perturbation", theta=[0.05, 0.1, 0.2]),
        *grid("differential-privacy", epsilon=[1.0, 2.0, 4.0]),
    ]
    return rumap(example(), methods).save(folder / "risk-utility-map.svg", limit=0.06)


def series_picture(folder: Path) -> Path:
    """What a series of questions gives away, by how it is answered."""
    (rounding,) = grid("random-rounding", base=3)
    answers = [
        Answering(rounding, "redrawn"),
        Answering(rounding, "keyed"),
        Answering(grid("cell-key")[0], "keyed"),
        Answering(grid("protected-population")[0], "once"),
        Answering.of(grid("differential-privacy", epsilon=2.0)[0]),
    ]
    small = example().take([range(6), range(5)])
    found = series_map(small, answers, 12, replications=5)
    return save_chart(series_chart(found), folder / "series-of-questions.svg")


def page_picture(folder: Path) -> Path:
    """The agency's page with a finished map."""
    program = find_chromium()
    app = create_agency_app(cases=Tables({"faith": example()}), keys=False)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.02)
        address = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
            page = browser.new_page(base_url=address, viewport={"width": 1100, "height": 1180})
            page.goto("/")
            page.fill("#limit", "0.06")
            page.get_by_role("button", name="Draw the map").click()
            done = "#growing[data-finished=yes]"
            page.wait_for_selector(done, state="attached", timeout=120_000)
            page.screenshot(path=folder / "map-page.png")
            browser.close()
        server.should_exit = True
        thread.join()
    return folder / "map-page.png"


def main() -> None:
    """Draw all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    for path in (map_picture(folder), series_picture(folder), page_picture(folder)):
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
