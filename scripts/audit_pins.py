"""Ask public databases about known vulnerabilities of every pinned package, and say plainly what was not asked.

python scripts/audit_pins.py                requirements/run.txt, by the command pip-audit on PATH
python scripts/audit_pins.py --offline-ok   a database that cannot be reached is told and is no failure

pip-audit ends well where it could ask nobody about a package. Here that is a result of its own: exit code 0
means that every package was looked up and is clean, 1 that something was found, 3 that something was not
looked up.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
SERVICES = ("pypi", "osv")
FOUND, UNKNOWN = 1, 3


def asked(command: str, pins: Path, service: str) -> dict[str, Any] | None:
    """What one database says of all pins; None where it cannot be reached."""
    done = subprocess.run(
        [
            *(command, "--disable-pip", "--require-hashes", "-r", str(pins)),
            *("--format", "json", "--progress-spinner", "off", "--timeout", "15", "-s", service),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        answer = json.loads(done.stdout)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) else None


def verdict(answers: list[dict[str, Any] | None]) -> tuple[int, list[str]]:
    """The exit code and the sentences that follow from what the databases said."""
    known: set[tuple[str, str]] = set()
    open_: set[tuple[str, str]] = set()
    found: dict[tuple[str, str], set[str]] = {}
    for answer in answers:
        for entry in (answer or {}).get("dependencies", ()):
            pin = (entry["name"], entry.get("version", ""))
            if "skip_reason" in entry:
                # The version is in the reason only: "... could not be audited: numpy (2.3.0)".
                open_.add((entry["name"], ""))
            else:
                known.add(pin)
                found.setdefault(pin, set()).update(flaw["id"] for flaw in entry["vulns"])
    names = {name for name, _ in known}
    missing = sorted(name for name, _ in open_ if name not in names)
    lines = [
        f"{name} {version}: {', '.join(sorted(ids))}"
        for (name, version), ids in sorted(found.items())
        if ids
    ]
    if lines:
        return FOUND, [*lines, f"{len(lines)} of {len(known)} packages have known vulnerabilities."]
    if not known:
        return UNKNOWN, ["No database of vulnerabilities could be reached; nothing is known."]
    if missing:
        return UNKNOWN, [f"{len(missing)} packages could not be looked up: {', '.join(missing)}."]
    return 0, [f"{len(known)} packages were looked up; none has a known vulnerability."]


def main() -> int:
    """Ask the databases in turn until one knows every package."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pip-audit", default="pip-audit", help="the command")
    parser.add_argument(
        "--offline-ok", action="store_true", help="tell and go on without a database"
    )
    parser.add_argument("pins", nargs="?", type=Path, default=ROOT / "requirements" / "run.txt")
    options = parser.parse_args()
    answers: list[dict[str, Any] | None] = []
    code, lines = UNKNOWN, ["Nobody was asked."]
    for service in SERVICES:
        answers.append(asked(options.pip_audit, options.pins, service))
        code, lines = verdict(answers)
        if code != UNKNOWN:
            break
    print("\n".join(lines))
    return 0 if code == UNKNOWN and options.offline_ok else code


if __name__ == "__main__":
    sys.exit(main())
