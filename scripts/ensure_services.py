"""Make sure that PostgreSQL and Java are there for tests of engines over databases, promtool for alarms, R, and
LibreOffice.

Looks at PATH and at the places where packages put them. What is missing is installed from Debian's packages
if that needs no password; otherwise one sentence says what to install. The tests start and stop servers of
their own, on free ports of this machine.
"""

import os
import re
import shutil
import sys
from pathlib import Path

from ensure_chromium import become_root, install

PACKAGES = {
    "PostgreSQL": "postgresql",
    "Java 17": "openjdk-17-jre-headless",
    "promtool": "prometheus",
    "R": "r-cran-httr2 r-cran-jsonlite r-cran-tibble",
    "LibreOffice": "libreoffice-calc-nogui",
}


def postgres() -> Path | None:
    """The folder of PostgreSQL's programs, the newest one first."""
    named = os.environ.get("LUSTRUM_POSTGRES")
    places = [Path(named)] if named else []
    on_path = shutil.which("initdb")
    if on_path:
        places.append(Path(on_path).resolve().parent)
    packaged = [*Path("/usr/lib/postgresql").glob("*/bin"), *Path("/usr").glob("pgsql-*/bin")]
    places += sorted(packaged, key=_version, reverse=True)
    return next(
        (p for p in places if (p / "initdb").is_file() and (p / "postgres").is_file()), None
    )


def java() -> str | None:
    """The Java that Spark would start."""
    home = os.environ.get("JAVA_HOME")
    if home and (Path(home) / "bin" / "java").is_file():
        return str(Path(home) / "bin" / "java")
    return shutil.which("java")


def r() -> Path | None:
    """The packages that the client for R needs, among those of Debian."""
    places = [Path("/usr/lib/R/site-library", name) for name in ("httr2", "jsonlite", "tibble")]
    return places[0] if all(place.is_dir() for place in places) else None


def _version(path: Path) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", str(path)))


def missing(wanted: list[str]) -> list[str]:
    found = {
        "PostgreSQL": postgres(),
        "Java 17": java(),
        "promtool": shutil.which("promtool"),
        "R": r(),
        "LibreOffice": shutil.which("soffice"),
    }
    return [
        name for name, path in found.items() if path is None and name.split()[0].lower() in wanted
    ]


def main(wanted: list[str]) -> int:
    lacking = missing(wanted)
    if not lacking:
        return 0
    packages = [package for name in lacking for package in PACKAGES[name].split()]
    prefix = become_root()
    if prefix is not None and shutil.which("apt-get"):
        print(f"Installing {' and '.join(lacking)} for tests ...", flush=True)
        if install(prefix, packages) and not missing(wanted):
            return 0
    print(
        f"Tests need {' and '.join(missing(wanted))}, not here; install it "
        f"(Debian: sudo apt-get install {' '.join(packages)}). LUSTRUM_POSTGRES may name the folder of initdb, "
        "JAVA_HOME that of Java.",
        file=sys.stderr,
    )
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or [name.split()[0].lower() for name in PACKAGES]))
