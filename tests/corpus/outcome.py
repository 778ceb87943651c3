"""Run `lustrum audit` on the corpus, and say what is wrong with its verdicts.

`python tests/corpus/outcome.py` prints a table of the outcomes; `--shrink` also removes lines from
`known_misses.txt` that are misses no more. It never adds one.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import io
import re
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

HERE = Path(__file__).resolve().parent
FILES = HERE / "files"
KNOWN = HERE / "known_misses.txt"
MODES = ("bare", "options")
CLEAR, DISCLOSED, NOT_JUDGED = 0, 3, 4
FALSE_CLEAR = "false-all-clear"


@dataclass(frozen=True)
class Run:
    """What a run of the command ended with."""

    code: int | None
    """The exit code, or None after an exception."""
    output: str


@functools.cache
def names() -> tuple[str, ...]:
    """Every case, as family/NNN-name."""
    found = (p for p in FILES.glob("*/*.toml") if not p.name.endswith(".hierarchy.toml"))
    return tuple(
        sorted((p.relative_to(FILES).with_suffix("").as_posix() for p in found), key=_number)
    )


def _number(name: str) -> tuple[int, str]:
    return int(name.split("/")[1][:3]), name


@functools.cache
def answer(name: str) -> dict[str, Any]:
    return tomllib.loads((FILES / f"{name}.toml").read_text(encoding="utf-8"))


@functools.cache
def run(name: str, mode: str) -> Run:
    """The command on a case, in this process, without options or with those that its notes justify."""
    from lustrum.cli import main

    truth = answer(name)
    stem = str(FILES / name)
    given = [*truth["inputs"], *(truth["options"] if mode == "options" else [])]
    arguments = ["lustrum", "audit", *(text.replace("{stem}", stem) for text in given)]
    out = io.StringIO()
    code: int | None
    with (
        patch.object(sys, "argv", arguments),
        patch.dict("os.environ", {"COLUMNS": "400", "NO_COLOR": "1"}),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
    ):
        try:
            main()
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        except Exception as problem:  # a traceback is an outcome to be told, not to stop at
            code = None
            print(type(problem).__name__, file=out)
    return Run(code, out.getvalue())


def exact_values(name: str) -> set[float]:
    return {float(h["low"]) for h in answer(name).get("hidden", []) if h["known"] == "exact"}


def claimed_values(output: str) -> set[float]:
    """The values that a report calls exact: rows of its table that end in 'exact' and sources."""
    found = set()
    for line in output.splitlines():
        fields = [field.strip() for field in re.split(r"[│|]", line)]
        if "exact" in fields:
            before = fields[: fields.index("exact")]
            numbers = [
                float(f.replace(",", "")) for f in before if re.fullmatch(r"-?[\d,]+(\.\d+)?", f)
            ]
            found.update(numbers[-1:])
    return found


def problem(name: str, mode: str) -> str:
    """What is wrong with a verdict, in one word; '' if nothing is."""
    truth = answer(name)
    done = run(name, mode)
    if done.code is None:
        return "traceback"
    if done.code not in (CLEAR, DISCLOSED, NOT_JUDGED):
        return "refused"
    if done.code == CLEAR and (
        truth["truth"] == "disclosed" or (mode == "bare" and truth["bare"] == "not judged")
    ):
        return FALSE_CLEAR
    if done.code == DISCLOSED and truth["truth"] == "safe":
        return "" if mode == "bare" and truth.get("usual") else "false-alarm"
    if done.code == DISCLOSED:
        exact, claimed = exact_values(name), claimed_values(done.output)
        # Answers count in units of the last printed digit.
        agree = any({round(v * unit, 6) for v in claimed} <= exact for unit in (1, 10, 100))
        if not agree or (exact and not claimed):
            return "wrong-values"
        complete = len({*claimed}) == len(exact)
        if mode == "options" and not truth["wanted"] and not complete:
            return "missed-cells"
    return ""


def not_judged(mode: str) -> list[str]:
    """The cases that end without a verdict: not judged, refused, or a traceback."""
    return [name for name in names() if run(name, mode).code not in (CLEAR, DISCLOSED)]


def known() -> dict[tuple[str, str], str]:
    """The misses on the list: (mode, case) to the kind of problem."""
    found = {}
    for line in KNOWN.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            mode, name, kind = line.split()
            found[mode, name] = kind
    return found


def write(lines: dict[tuple[str, str], str]) -> None:
    head = [li for li in KNOWN.read_text(encoding="utf-8").splitlines() if li.startswith("#")]
    body = [f"{mode} {name} {kind}" for (mode, name), kind in sorted(lines.items())]
    KNOWN.write_text("\n".join([*head, *body]) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shrink", action="store_true")
    given = parser.parse_args()
    for mode in MODES:
        kinds = Counter(problem(name, mode) or "right" for name in names())
        share = 100 * len(not_judged(mode)) / len(names())
        print(f"{mode}: {dict(kinds.most_common())}; without a verdict {share:.1f} %")
    for mode in MODES:
        for name in names():
            if problem(name, mode):
                print(mode, name, problem(name, mode))
    if given.shrink:
        still = {}
        for (mode, name), kind in known().items():
            if mode == "share":
                if 20 * len(not_judged("options")) > len(names()):
                    still[mode, name] = kind
            elif now := problem(name, mode):
                still[mode, name] = kind if now == FALSE_CLEAR else now
        write(still)
    return 0


if __name__ == "__main__":
    sys.exit(main())
