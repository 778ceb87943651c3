"""Write the bill of materials of a release: every pinned package with its digests, as CycloneDX JSON.

python scripts/sbom.py                      prints that of requirements/run.txt
python scripts/sbom.py requirements/dev.txt prints that of everything that tests use

The same pins give the same bytes: the serial number follows from the content, the time from SOURCE_DATE_EPOCH.
The fullest bill that cyclonedx-bom writes is that of an installed environment, and so of one machine. This one
follows from the pins of all machines and needs no package.
"""

from __future__ import annotations

import json
import os
import re
import sys
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?==(?P<version>[^\s;\\]+)")
_VIA = re.compile(r"^\s+#\s+(?:via\s+)?(?P<name>[A-Za-z0-9._-]+)")


def pins(text: str) -> list[dict[str, Any]]:
    """Every package of a compiled requirements file: name, version, digests, marker and who asks for it.

    A package may be pinned twice, for different versions of Python.
    """
    found: list[dict[str, Any]] = []
    for line in text.splitlines():
        if match := _PIN.match(line):
            name, version = match["name"].lower(), match["version"]
            found.append(
                {
                    "name": name,
                    "purl": f"pkg:pypi/{name}@{version}",
                    "version": version,
                    "hashes": [],
                    "marker": line.partition(";")[2].strip(" \\"),
                    "via": [],
                }
            )
        elif "--hash=sha256:" in line:
            found[-1]["hashes"].append(line.split("--hash=sha256:")[1].strip(" \\"))
        elif (match := _VIA.match(line)) and match["name"] not in ("via", "-r", "-c"):
            found[-1]["via"].append(match["name"].lower())
    return found


def bill(requirements: str, version: str, moment: datetime) -> dict[str, Any]:
    """The bill of materials as CycloneDX 1.6."""
    packages = sorted(pins(requirements), key=lambda package: str(package["purl"]))
    own = f"pkg:pypi/lustrum@{version}"
    refs: dict[str, list[str]] = {"lustrum": [own]}
    for package in packages:
        refs.setdefault(package["name"], []).append(package["purl"])
    needs: dict[str, set[str]] = {ref: set() for found in refs.values() for ref in found}
    for package in packages:
        for parent in package["via"]:
            for ref in refs.get(parent, []):
                needs[ref].add(package["purl"])
    components = [
        {
            "type": "library",
            "bom-ref": package["purl"],
            "name": package["name"],
            "version": package["version"],
            "purl": package["purl"],
            "scope": "optional" if package["marker"] else "required",
            "hashes": [{"alg": "SHA-256", "content": value} for value in package["hashes"]],
        }
        for package in packages
    ]
    body: dict[str, Any] = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "lustrum",
                "version": version,
                "purl": own,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            },
        },
        "components": components,
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(others)} for ref, others in sorted(needs.items())
        ],
    }
    content = json.dumps(body, sort_keys=True)
    return {"serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, content)}", **body}


def main(path: Path) -> None:
    """Print the bill of a requirements file."""
    version = re.search(r'= "([^"]+)"', (ROOT / "src/lustrum/_version.py").read_text())
    assert version is not None
    moment = datetime.fromtimestamp(int(os.environ.get("SOURCE_DATE_EPOCH", "0")), UTC)
    print(json.dumps(bill(path.read_text(), version[1], moment), indent=2))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "requirements" / "run.txt")
