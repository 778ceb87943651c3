"""Put the report into the agency's own folder, for its owner alone."""

from __future__ import annotations

import json
from pathlib import Path

from lustrum.model import InputError
from lustrum.public.bundle.place import MANIFEST
from lustrum.publish.report.findings import Findings
from lustrum.publish.report.page import page
from lustrum.runtime.durable import outages, write_whole


def write_report(folder: Path, findings: Findings) -> tuple[Path, Path]:
    """Write the page and the same figures as JSON; never into a bundle."""
    if any(
        (parent / MANIFEST).is_file() for parent in (folder.resolve(), *folder.resolve().parents)
    ):
        raise InputError(f"{folder} lies in a bundle; the agency's report must not stand there.")
    said = {"confidential": "For the agency alone: measured on the true counts."}
    written = {
        "report.html": page(findings),
        "report.json": json.dumps(
            {**said, "warnings": findings.warnings, **findings.figures}, indent=1
        )
        + "\n",
    }
    with outages(folder):
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for name, text in written.items():
            write_whole(folder / name, text.encode(), 0o600)
    return folder / "report.html", folder / "report.json"
