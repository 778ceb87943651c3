"""Make sure that the programs of others which read Lustrum's answers are there, for the tests that run them.

They live in an environment of their own outside of the checkout, named by the digest of their pins, so that
all checkouts of a machine share it. `LUSTRUM_CLIENTS` may name another folder for such environments.
"""

import fcntl
import hashlib
import os
import subprocess
import sys
import venv
from pathlib import Path

PINS = Path(__file__).resolve().parent.parent / "requirements" / "clients.txt"


def home() -> Path:
    """Where the environment of these pins and this Python belongs."""
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("LUSTRUM_CLIENTS") or Path(cache) / "lustrum-clients")
    named = PINS.read_bytes() + sys.version.encode()
    return folder / hashlib.sha256(named).hexdigest()[:16]


def python() -> Path:
    """The Python of the clients."""
    return home() / "bin" / "python"


def ensure() -> Path:
    """The same, installed if it is not there; another run at the same time waits for this one."""
    folder, done = home(), home() / "complete"
    if done.exists():
        return python()
    folder.parent.mkdir(parents=True, exist_ok=True)
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            print(f"Installing {PINS.parent.name}/{PINS.name} into {folder} ...", flush=True)
            venv.create(folder, clear=True, with_pip=True)
            # The pins are complete: nothing is to be found out, and everything has a digest.
            words = ["-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps", "-r", PINS]
            subprocess.run([python(), *words], check=True)
            done.touch()
    return python()


if __name__ == "__main__":
    try:
        ensure()
    except (OSError, subprocess.CalledProcessError) as error:
        print(
            f"The clients of other projects could not be installed ({error}); they need the package index.",
            file=sys.stderr,
        )
        sys.exit(1)
