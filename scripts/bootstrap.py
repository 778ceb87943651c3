"""Find a Python that is new enough and hand over to environment.py.

This file is read by whatever Python the machine calls first, so it keeps to words that every
Python from 2.7 on understands: too old a Python shall end in a sentence, not in a SyntaxError.
"""

from __future__ import print_function

import os
import subprocess
import sys

OLDEST = (3, 11)
OTHERS = ("python3.14", "python3.13", "python3.12", "python3.11")
PROBE = """
import sys
try:
    import ensurepip, venv
    complete = 1
except ImportError:
    complete = 0
print("lustrum-probe %d.%d.%d %d" % (tuple(sys.version_info[:3]) + (complete,)))
"""


def probe(command):
    """Return (version, can it make environments) of a Python, or None where it does not run.

    A name on PATH proves nothing: a version manager leaves shims behind that only fail.
    """
    try:
        process = subprocess.Popen(
            [command, "-c", PROBE], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        output = process.communicate()[0].decode("ascii", "replace")
    except OSError:
        return None
    for line in output.splitlines():
        words = line.split()
        if process.returncode == 0 and len(words) == 3 and words[0] == "lustrum-probe":
            return tuple(int(part) for part in words[1].split(".")), words[2] == "1"
    return None


def choose(asked, exact):
    """Return the command to use: the one asked for, or the first of the others that will do."""
    commands = [asked] if exact else [asked] + [name for name in OTHERS if name != asked]
    found = [(command, probe(command)) for command in commands]
    new_enough = [(command, it) for command, it in found if it and it[0] >= OLDEST]
    for command, (_, complete) in new_enough:
        if complete:
            return command
    # One without the venv module is still chosen: environment.py says which package it lacks.
    return new_enough[0][0] if new_enough else None


def main(arguments):
    exact = "--exact" in arguments
    asked, goal, target = [word for word in arguments if word != "--exact"]
    chosen = choose(asked, exact)
    if chosen is None:
        seen = probe(asked)
        here = ".".join(str(part) for part in seen[0]) if seen else "one that does not run"
        print(
            "Lustrum needs Python 3.11 or newer; `%s` here is %s. "
            "Install a newer one or say which to use: make %s PYTHON=python3.12"
            % (asked, here, target),
            file=sys.stderr,
        )
        sys.exit(2)
    environment = os.path.join(os.path.dirname(os.path.abspath(__file__)), "environment.py")
    os.execvp(chosen, [chosen, "-I", environment, goal, target])


if __name__ == "__main__":
    main(sys.argv[1:])
