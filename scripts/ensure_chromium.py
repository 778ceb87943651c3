"""Make sure that a Chromium is there for the tests that drive a browser.

Looks at $LUSTRUM_CHROMIUM, then at PATH. Debian's package without windows, with which the tests of pages
take a third of the time, is installed if that needs no password. Where it is not to be had any other
Chromium will do; where there is none, one sentence says what to install.
"""

import os
import shutil
import subprocess
import sys

WITHOUT_WINDOWS = ("chromium-headless-shell", "chrome-headless-shell")
NAMES = (*WITHOUT_WINDOWS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PLACES = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
ADVICE = (
    "install it (Debian: sudo apt-get install chromium-headless-shell) or set LUSTRUM_CHROMIUM to the path of "
    "one."
)


def find(names: tuple[str, ...] = (*NAMES, *PLACES)) -> str | None:
    return next((path for name in names if (path := shutil.which(name))), None)


def become_root() -> list[str] | None:
    """Return what to put before a command to run it as root, or None where that is not allowed."""
    if os.geteuid() == 0:
        return []
    if shutil.which("sudo"):
        allowed = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False)
        if allowed.returncode == 0:
            return ["sudo", "-n"]
    return None


def install(prefix: list[str], packages: list[str]) -> bool:
    # Another installation may hold the lock for a while.
    patient = ["-o", "DPkg::Lock::Timeout=300", "-o", "Acquire::Retries=3"]
    quiet = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-qq", *patient]
    for step in (
        ["update"],
        ["install", "-y", "--no-install-recommends", "--no-remove", *packages],
    ):
        result = subprocess.run(
            [*prefix, *quiet, *step], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
        )
        if result.returncode != 0:
            sys.stderr.write(result.stderr.decode("utf-8", "replace"))
            return False
    return True


def main() -> int:
    named = os.environ.get("LUSTRUM_CHROMIUM")
    if named:
        if shutil.which(named):
            return 0
        print(f"LUSTRUM_CHROMIUM names {named}, which cannot be run; {ADVICE}", file=sys.stderr)
        return 1
    if find(WITHOUT_WINDOWS):
        return 0
    prefix = become_root()
    if prefix is not None and shutil.which("apt-get"):
        print("Installing Chromium for the browser tests ...", flush=True)
        for package in ("chromium-headless-shell", *(() if find() else ("chromium",))):
            if install(prefix, [package, "fonts-dejavu-core"]) and find():
                return 0
    if find():
        return 0
    print(f"The browser tests need Chromium, which is not here; {ADVICE}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
