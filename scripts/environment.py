"""Make `.venv` what the pinned requirements say, and do nothing where it is that already.

    python scripts/environment.py run serve     # what the server needs, for `make serve`
    python scripts/environment.py dev test      # and what tests and docs need, for `make test`

The environment carries a stamp for each goal it meets. While an installation is under way it
carries a mark instead, so that a run that was cut short is never taken for a complete one.
"""

import errno
import fcntl
import hashlib
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"
STAMP = VENV / "lustrum-environment.json"
UNDER_WAY = VENV / "lustrum-installation-under-way"
LOG = VENV / "lustrum-installation.log"
REQUIREMENTS = {
    "run": ROOT / "requirements" / "run.txt",
    "dev": ROOT / "requirements" / "dev.txt",
}
# What dev.txt installs holds all of run.txt, at the same versions.
MEETS = {"run": ("run",), "dev": ("run", "dev")}
# Settings of pip that would send the packages elsewhere or mix other versions in.
MISLEADING = ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "PIP_CONSTRAINT", "PIP_REQUIREMENT")

# Lines of pip that tell a waiting person something.
WORTH_SHOWING = ("Collecting", "Downloading", "Building", "Installing", "Preparing")


class InstallationError(Exception):
    """What went wrong, in one sentence for the person at the terminal."""


def main(goal: str, target: str) -> int:
    # A polite kill ends like Ctrl-C, so that pip does not go on alone.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with one_at_a_time():
            if not is_current(goal):
                install(goal, target)
    except InstallationError as error:
        return complain(str(error))
    except KeyboardInterrupt:
        return complain("Stopped; the next run starts the installation afresh.", 130)
    except OSError as error:
        return complain(explain_os_error(error))
    return 0


def complain(sentence: str, code: int = 1) -> int:
    print(sentence, file=sys.stderr)
    return code


# --- is there anything to do ---------------------------------------------------------------


def fingerprint(goal: str) -> str:
    """Digest of all that decides what an environment for this goal holds and where it works."""
    digest = hashlib.sha256(f"{VENV}\n".encode())  # scripts inside name their folder: no moving
    for file in (ROOT / "pyproject.toml", REQUIREMENTS[goal], Path(__file__)):
        digest.update(hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def stamps() -> dict[str, str]:
    with suppress(OSError, ValueError):
        read = json.loads(STAMP.read_text("utf-8"))
        if isinstance(read, dict):
            return read
    return {}


def is_current(goal: str) -> bool:
    return (
        not UNDER_WAY.exists()
        and stamps().get(goal) == fingerprint(goal)
        and works(PYTHON, "import importlib.util; assert importlib.util.find_spec('lustrum')")
    )


def is_moved() -> bool:
    """Whether this environment was made for another folder, which its scripts would still use."""
    with suppress(OSError):
        return str(VENV) not in (VENV / "bin" / "activate").read_text("utf-8", "replace")
    return False


def works(python: Path, statement: str) -> bool:
    """Whether this Python is there, new enough, and can run the statement."""
    check = f"import sys; assert sys.version_info >= (3, 11); {statement}"
    try:
        result = subprocess.run([python, "-I", "-c", check], capture_output=True, check=False)
    except OSError:
        return False
    return result.returncode == 0


@contextmanager
def one_at_a_time() -> Iterator[None]:
    """Let a second `make` in this folder wait until the first has installed."""
    with Path(__file__).open("rb") as held:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("Waiting for another installation in this folder ...", flush=True)
            fcntl.flock(held, fcntl.LOCK_EX)
        except OSError:
            pass  # a file system without locks: go on as a single run does
        yield


# --- installing ----------------------------------------------------------------------------


def install(goal: str, target: str) -> None:
    may_write()
    before = stamps()
    if UNDER_WAY.exists() or is_moved() or not works(PYTHON, "pass" if uv() else "import pip"):
        before = {}
        make_environment(target)
    begin()
    try:
        # The pins are complete, so pip has nothing to find out: without --no-deps some versions of it look
        # for the newest release where a package asks for another with an extra, and refuse it for its hash.
        pip_install(
            f"Installing {REQUIREMENTS[goal].relative_to(ROOT)}",
            ["--require-hashes", "--no-deps", "-r", str(REQUIREMENTS[goal])],
            goal,
            target,
        )
    except InstallationError:
        if not log_says("Installing collected packages"):
            finish(before)  # pip gave up before it changed anything
        raise
    pip_install(
        "Installing Lustrum itself", ["--no-deps", "--no-build-isolation", "-e", "."], goal, target
    )
    if goal == "dev":
        compile_loops()
    finish({name: fingerprint(name) for name in MEETS[goal]})


def compile_loops() -> None:
    """Compile the hot loops now, so that no test waits for it. A server compiles what its answers need.

    Where that fails they are compiled when they are first used, so it is no reason to stop.
    """
    run_with_progress("Compiling hot loops", [str(PYTHON), "-I", "-m", "lustrum.cli.warm"])


def may_write() -> None:
    place = VENV if VENV.exists() else ROOT
    if not os.access(place, os.W_OK | os.X_OK):
        raise InstallationError(
            f"Lustrum cannot install itself because you may not write to {place}; "
            "copy the project to a folder of your own."
        )


def make_environment(target: str) -> None:
    if VENV.exists() and not UNDER_WAY.exists() and any(VENV.iterdir()):
        if not (VENV / "pyvenv.cfg").exists():
            raise InstallationError(
                f"{VENV} exists but is no Python environment; move it away and run again."
            )
        say("Replacing .venv, which was moved here or has a Python too old or gone")
    missing = [name for name in ("venv", "ensurepip") if importlib.util.find_spec(name) is None]
    if missing:
        package = f"python{sys.version_info.major}.{sys.version_info.minor}-venv"
        raise InstallationError(
            f"Python at {sys.executable} lacks the module {missing[0]}; install it "
            f"(Debian and Ubuntu: sudo apt-get install {package}) or say which Python to use: "
            f"make {target} PYTHON=python3.12"
        )
    if VENV.exists():
        shutil.rmtree(VENV)
    VENV.mkdir()
    begin()
    code = run_with_progress(
        f"Creating .venv with Python {'.'.join(map(str, sys.version_info[:3]))}",
        [sys.executable, "-I", "-m", "venv", *(["--without-pip"] if uv() else []), str(VENV)],
    )
    if code != 0:
        raise InstallationError(explain(f"Python could not create {VENV}", target))


def begin() -> None:
    UNDER_WAY.touch()
    STAMP.unlink(missing_ok=True)
    LOG.write_bytes(b"")


def finish(met: dict[str, str]) -> None:
    """Write the stamp whole or not at all, and only then take the mark away."""
    if met:
        draft = STAMP.with_suffix(".draft")
        draft.write_text(json.dumps(met), "utf-8")
        draft.replace(STAMP)
    UNDER_WAY.unlink()


def uv() -> str | None:
    """The program uv, which installs the same pinned packages in a fraction of the time, if it is there."""
    return shutil.which("uv")


def pip_install(title: str, arguments: list[str], goal: str, target: str) -> None:
    if uv():
        fast = [str(uv()), "pip", "install", "--python", str(PYTHON), *arguments]
        if run_with_progress(f"{title} with uv", fast) == 0:
            return
        # It may know another package index than pip, or none.
        run_with_progress("Installing pip", [str(PYTHON), "-I", "-m", "ensurepip"])
    # Python compiles a module when it is first imported; most of what the packages hold never is.
    quiet = ["--no-input", "--progress-bar", "off", "--no-compile"]
    pip = [str(PYTHON), "-I", "-m", "pip", "install", *quiet]
    if run_with_progress(title, [*pip, *arguments]) != 0:
        raise InstallationError(
            explain(f"pip could not install {REQUIREMENTS[goal].relative_to(ROOT)}", target)
        )


# --- progress ------------------------------------------------------------------------------


def say(line: str) -> None:
    print(line, flush=True)


def run_with_progress(title: str, command: list[str]) -> int:
    """Run a command into the log; show one line that grows by the time it took."""
    started = time.monotonic()
    terminal = sys.stdout.isatty()
    if not terminal:
        print(f"{title} ...", end="", flush=True)
    environment = {key: value for key, value in os.environ.items() if key not in MISLEADING}
    environment.update(PIP_USER="0", PIP_DISABLE_PIP_VERSION_CHECK="1")
    lines: Queue[str] = Queue()
    with LOG.open("ab") as log:
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        reader = Thread(target=copy_lines, args=(process.stdout, log, lines), daemon=True)
        reader.start()
        try:
            last = ""
            while reader.is_alive():
                with suppress(Empty):
                    line = lines.get(timeout=0.2)
                    last = line if line.startswith(WORTH_SHOWING) else last
                if terminal:
                    show(f"{title} ... {time.monotonic() - started:.0f} s  {last}")
            code = process.wait()
        except BaseException:
            process.terminate()
            process.wait()
            print()
            raise
    took = f"{time.monotonic() - started:.1f} s" if code == 0 else "failed"
    if terminal:
        show(f"{title} ... {took}")
        print(flush=True)
    else:
        print(f" {took}", flush=True)
    return code


def copy_lines(source: Any, log: Any, lines: "Queue[str]") -> None:
    full = False
    for line in source:
        if not full:
            try:
                log.write(line)
                log.flush()
            except OSError:  # a full disk: keep reading, or the command would hang
                full = True
        lines.put(line.decode("utf-8", "replace").strip())


def show(line: str) -> None:
    width = shutil.get_terminal_size().columns - 1
    print(f"\r\x1b[K{line[:width]}", end="", flush=True)


# --- explaining ----------------------------------------------------------------------------


def log_text() -> str:
    with suppress(OSError):
        return LOG.read_text("utf-8", "replace")
    return ""


def log_says(pattern: str) -> bool:
    return re.search(pattern, log_text()) is not None


def explain(failure: str, target: str) -> str:
    """Turn the log of a failed step into one sentence with a way forward."""
    details = f"details are in {LOG}"
    if log_says(r"No space left on device|Disk quota exceeded") or is_full():
        return disk_full()
    if log_says(r"DO NOT MATCH THE HASHES"):
        return (
            f"{failure}: a downloaded package is not the one whose digest is pinned there, so "
            f"nothing was installed; {details}."
        )
    if log_says(
        r"NewConnectionError|NameResolutionError|ConnectTimeout|ReadTimeout|ProxyError|SSLError"
        r"|Connection(Error| refused| reset| broken)|Max retries exceeded|IncompleteRead"
    ):
        return (
            f"{failure}: the package index cannot be reached; check the network or proxy and run "
            f"again ({details})."
        )
    missing = re.search(r"No matching distribution found for (\S+)", log_text())
    if missing:
        here = f"{sys.version_info.major}.{sys.version_info.minor}"
        return (
            f"{failure}: there is no {missing[1].rstrip(';')} for Python {here} on this machine; "
            f"try another one, for example make {target} PYTHON=python3.12 ({details})."
        )
    return f"{failure}; {details}."


def is_full() -> bool:
    return any(shutil.disk_usage(place).free < 2**20 for place in (ROOT, tempfile.gettempdir()))


def disk_full() -> str:
    free = min(shutil.disk_usage(place).free for place in (ROOT, tempfile.gettempdir()))
    return (
        f"The disk is full: {free // 2**20} MB are free in {ROOT} or {tempfile.gettempdir()} and "
        "an installation needs up to 1500 MB; make room and run again."
    )


def explain_os_error(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return disk_full()
    where = f" at {error.filename}" if error.filename else ""
    return f"Lustrum cannot install itself: {error.strerror or error}{where}."


def usage() -> NoReturn:
    sys.exit("usage: environment.py run|dev TARGET")


if __name__ == "__main__":
    if len(sys.argv) != 3 or sys.argv[1] not in REQUIREMENTS:
        usage()
    sys.exit(main(*sys.argv[1:]))
