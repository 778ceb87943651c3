"""Take the pictures of the pages that the documentation shows, from invented data that are always the same.

::

    python scripts/pictures.py           into docs/img
    python scripts/pictures.py FOLDER    somewhere else
"""

from __future__ import annotations

import shutil
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import uvicorn
from playwright.sync_api import Browser, sync_playwright
from starlette.applications import Starlette

from lustrum.agency import create_agency_app
from lustrum.demo import businesses, description_path, people
from lustrum.local import local_service
from lustrum.publish.bundles.make import make_bundle
from lustrum.rumap.report import find_chromium
from lustrum.server import create_app
from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description

IMAGES = Path(__file__).parent.parent / "docs" / "img"
PEOPLE, SEED = 200_000, 2001
MOST_BYTES = 250_000


@dataclass(frozen=True)
class Picture:
    """A page, how wide the window is, and how much of the page is seen."""

    name: str
    address: str
    width: int
    height: int


PICTURES = (
    Picture("builder", "/datasets/demo", 1280, 860),  # the table that the page opens with
    Picture("refusal", "/datasets/demo/table?by=area&by=age&by=occupation&by=education", 1280, 980),
)
AGENCY = (Picture("agency", "/datasets/demo/policy", 1440, 1000),)


def filled(root: Path) -> Path:
    """A data folder with the demo datasets and their policies."""
    root.mkdir()
    store, secret = Store(root), Secret(bytes(range(32)))
    for name, frame in {"demo": people(PEOPLE, SEED), "businesses": businesses(3000)}.items():
        ingest(FrameSource(frame), read_description(description_path(name)), store, secret=secret)
        (root / "policies").mkdir(exist_ok=True)
        policy = description_path(name).parent / f"{name}-policy.toml"
        shutil.copy(policy, root / "policies" / f"{name}.toml")
    make_bundle(store, "demo", root / "policies" / "demo.toml", root / "bundles" / "demo")
    return root


@contextmanager
def served(app: Starlette) -> Iterator[str]:
    """The address of a server on a free port."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        while not server.started and thread.is_alive():
            time.sleep(0.02)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join()


def taken(picture: Picture, browser: Browser, address: str, folder: Path) -> Path:
    """The file of a picture."""
    page = browser.new_page(
        base_url=address,
        viewport={"width": picture.width, "height": picture.height},
        reduced_motion="reduce",
        locale="en-GB",
    )
    page.goto(picture.address)
    page.wait_for_load_state("networkidle")
    path = folder / f"{picture.name}.png"
    page.screenshot(path=path)
    page.close()
    return path


def main() -> int:
    """Take all pictures."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else IMAGES
    program = find_chromium()
    with tempfile.TemporaryDirectory() as root, sync_playwright() as playwright:
        data = filled(Path(root) / "lustrum-data")
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        with served(create_app(local_service(data, workers=1))) as address:
            paths = [taken(picture, browser, address, folder) for picture in PICTURES]
        with served(create_agency_app(data=data, keys=False)) as address:
            paths += [taken(picture, browser, address, folder) for picture in AGENCY]
        browser.close()
    for path in paths:
        size = path.stat().st_size
        print(f"{path.name}: {size / 1000:.0f} kB{' - too large' if size > MOST_BYTES else ''}")
    return int(any(path.stat().st_size > MOST_BYTES for path in paths))


if __name__ == "__main__":
    sys.exit(main())
