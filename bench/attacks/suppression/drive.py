"""Runs of the product, from outside: its command line in this process, and its front door for frames."""

from __future__ import annotations

import contextlib
import csv
import io
import signal
import subprocess
import sys
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import typer.main

from attacks.suppression.problems import Problem
from attacks.suppression.rules import MARGIN, Rule

SECONDS = 30
"""CPU seconds after which a run is stopped; other programs on the machine do not count."""


class TooLongError(BaseException):
    """The run did not end in time."""


@dataclass(frozen=True)
class Ran:
    """How a run ended and what it wrote."""

    code: int | str
    said: str
    command: str
    files: tuple[Path, ...] = ()
    certificates: tuple[Path, ...] = ()


def command_line(*words: str, apart: bool = False) -> tuple[int | str, str]:
    """Run ``lustrum WORDS``; the exit code (or ``crashed``, ``too long``) and all that was printed.

    The commands run in this process, which builds them once; with ``apart``, in a process of their own.
    """
    if apart:
        return _process(words)
    from lustrum.cli import main

    if not hasattr(typer.main.get_command, "cache_info"):
        typer.main.get_command = cache(typer.main.get_command)
    printed = io.StringIO()
    before = sys.argv
    sys.argv = ["lustrum", *words]
    code: int | str = 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed), _limited():
            main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
    except TooLongError:
        code = "too long"
    except Exception:
        code = "crashed"
        printed.write(traceback.format_exc(limit=-3))
    finally:
        sys.argv = before
    return code, printed.getvalue()


def _process(words: Sequence[str]) -> tuple[int | str, str]:
    command = [sys.executable, "-m", "lustrum", *words]
    try:
        ended = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=8 * SECONDS,
        )
    except subprocess.TimeoutExpired:
        return "too long", ""
    crashed = ended.returncode < 0 or "Traceback (most recent call last)" in ended.stdout
    return "crashed" if crashed else ended.returncode, ended.stdout


def run(problem: Problem, folder: Path, *, apart: bool = False) -> Ran:
    """Protect the tables of a problem by the door that it names."""
    if problem.door == "frame":
        return _frame(problem, folder)
    if problem.door == "crosstab":
        return _crosstab(problem, folder)
    if problem.door == "programme":
        return _programme(problem, folder, apart)
    source, public = folder / "confidential", folder / "public"
    source.mkdir()
    public.mkdir()
    paths = problem.write(source)
    words = ["suppress", *(str(p) for p in paths), *problem.trees(source)]
    for rule in problem.rules:
        words += ["--rule", str(rule)]
    words += ["--kind", "counts" if problem.counts else "sums"]
    words += ["--layout", str(_layout(problem, source))]
    proofs: tuple[Path, ...] = ()
    if "--certificate" in problem.options:
        proofs = (public / "proof.json",)
        words += ["--certificate", str(proofs[0])]
    one = len(paths) == 1
    expected = [public / f"{p.stem}.{problem.format if one else 'csv'}" for p in paths]
    words += ["--out", str(expected[0]) if one else str(public)]
    code, said = command_line(*words, apart=apart)
    return Ran(
        code, said, " ".join(["lustrum", *words]),
        tuple(p for p in expected if p.exists()), tuple(p for p in proofs if p.exists()),
    )  # fmt: skip


def _layout(problem: Problem, folder: Path) -> Path:
    """A layout with the options of a problem under ``[suppress]``."""
    lines = ["[suppress]"]
    options = iter(problem.options)
    for option in options:
        if option in ("--zeros", "--partial"):
            lines.append(f"{option[2:]} = true")
        elif option != "--certificate":
            value = next(options)
            lines.append(f"{option[2:]} = {value if value.isdigit() else repr(value)}")
    path = folder / "layout.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


@contextlib.contextmanager
def _limited() -> Iterator[None]:
    def stop(*_: object) -> None:
        raise TooLongError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _mapping(rule: Rule, counts: bool) -> dict[str, Any]:
    """A rule as programmes and frames name it."""
    numbers = rule.numbers
    if rule.name == "p":
        return {"rule": "p-percent", "p": numbers[0], "coalition": rule.coalition}
    if rule.name == "pq":
        return {
            "rule": "prior-posterior",
            "p": numbers[0],
            "q": numbers[1],
            "coalition": rule.coalition,
        }
    if rule.name == "nk":
        return {"rule": "dominance", "n": numbers[0], "k": numbers[1]}
    margin = {} if counts else {"margin": MARGIN}
    return {"rule": "threshold", "minimum": numbers[0], **margin}


def _records(problem: Problem) -> dict[str, list[Any]]:
    people = problem.population
    columns: dict[str, list[Any]] = {
        v.name: [v.leaves[r.codes[i]] for r in people.records]
        for i, v in enumerate(people.variables)
    }
    columns["holding"] = [r.holding for r in people.records]
    columns["amount"] = [r.amount for r in people.records]
    return columns


def _frame(problem: Problem, folder: Path) -> Ran:
    import lustrum
    from lustrum.formats import write_release
    from lustrum.model import LustrumError

    names = problem.tables[0]
    kwargs: dict[str, Any] = {}
    if not problem.counts:
        kwargs = {"measure": "amount", "holding": "holding"}
    if problem.withstands_pairs:
        kwargs["attacker"] = "pairs"
    if problem.zeros:
        kwargs["zeros"] = True
    rule = _mapping(problem.rules[0], True)
    command = f"lustrum.suppress(records, {list(names)}, {rule}, {kwargs})"
    path = folder / "public.csv"
    try:
        with _limited():
            release = lustrum.suppress(_records(problem), by=list(names), rule=rule, **kwargs)
            write_release(release, path)
    except LustrumError as error:
        return Ran(3, str(error), command)
    except TooLongError:
        return Ran("too long", "", command)
    except Exception:
        return Ran("crashed", traceback.format_exc(limit=-3), command)
    return Ran(0, "", command, (path,))


def _crosstab(problem: Problem, folder: Path) -> Ran:
    """A table with margins as pandas makes it, suppressed by the method that is registered by name."""
    import pandas

    from lustrum import Table
    from lustrum.formats import write_release
    from lustrum.model import LustrumError

    frame = pandas.DataFrame(_records(problem))
    one, other = problem.tables[0]
    counts = pandas.crosstab(frame[one], frame[other], margins=True)
    rule = _mapping(problem.rules[0], True)
    command = f"Table.from_counts(pandas.crosstab(..., margins=True)) under {rule}"
    path = folder / "public.csv"
    try:
        method = entry_points(group="lustrum.methods")["suppression"].load()
        with _limited():
            write_release(method(rule=rule).apply(Table.from_counts(counts)), path)
    except LustrumError as error:
        return Ran(3, str(error), command)
    except TooLongError:
        return Ran("too long", "", command)
    except Exception:
        return Ran("crashed", traceback.format_exc(limit=-3), command)
    _named(path, (one, other), ([str(c) for c in counts.index], [str(c) for c in counts.columns]))
    return Ran(0, "", command, (path,))


def _named(path: Path, names: tuple[str, str], codes: tuple[list[str], list[str]]) -> None:
    """Give a file whose names were lost those of the crosstab: its reader knows what it was made from."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    if rows[0][:2] == list(names):
        return
    labels = [f"{name}_label" for name in names]
    if set(labels) <= set(rows[0]):
        # The crosstab's own words stand beside the codes.
        head = rows[0]
        kept = [*(head.index(label) for label in labels)]
        kept += [i for i, name in enumerate(head) if name not in (*names, *labels)]
        rows = [[row[i] for i in kept] for row in rows]
        rows[0][:2] = names
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file, lineterminator="\n").writerows(rows)
        return
    rows[0][:2] = names
    for row in rows[1:]:
        row[:2] = [
            c if c in known else known[int(c) - 1] for c, known in zip(row[:2], codes, strict=True)
        ]
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


def _toml(mapping: dict[str, Any]) -> str:
    return "\n".join(
        f'{k} = "{v}"' if isinstance(v, str) else f"{k} = {v}" for k, v in mapping.items()
    )


def _programme(problem: Problem, folder: Path, apart: bool) -> Ran:
    columns = _records(problem)
    with (folder / "records.csv").open("w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(columns)
        rows.writerows(zip(*columns.values(), strict=True))
    lines = ['[dataset]\nname = "units"\nidentifiers = ["holding"]']
    for v in problem.population.variables:
        codes = ", ".join(f'["{c}", "{c}"]' for c in v.leaves)
        lines.append(f'[[variables]]\nname = "{v.name}"\ncodes = [{codes}]')
    lines.append('[[measures]]\nname = "amount"\nholding = "holding"')
    (folder / "records.toml").write_text("\n".join(lines), encoding="utf-8")
    lines = ['[programme]\nname = "p"\ntitle = "p"\nperiod = "2025"']
    lines.append('[data]\nfile = "records.csv"\ndescription = "records.toml"')
    asked = 'attacker = "pairs"' if problem.withstands_pairs else 'attacker = "insiders"'
    asked += ", zeros = true" if problem.zeros else ""
    method = f'{{method = "suppression", {asked}}}'
    lines.append(f'[[sets]]\nname = "s"\ntitle = "s"\nmethod = {method}')
    lines += [f"[[sets.rules]]\n{_toml(_mapping(r, problem.counts))}" for r in problem.rules]
    for names in problem.tables:
        by = ", ".join(f'{{variable = "{n}"}}' for n in names)
        measures = "" if problem.counts else '\nmeasures = ["amount"]'
        name = "-".join(names)
        lines.append(
            f'[[sets.tables]]\nname = "{name}"\ntitle = "{name}"\ntotals = true\nby = [{by}]{measures}'
        )
    lines[-1] += "\nend = true"
    (folder / "tables.toml").write_text("\n".join(lines) + "\n", encoding="utf-8")
    public = folder / "public"
    words = [
        "release",
        str(folder / "tables.toml"),
        "--out",
        str(public),
        "--trace",
        str(folder / "trace.json"),
    ]
    code, said = command_line(*words, "--workers", "1", apart=apart)
    return Ran(
        code, said, " ".join(["lustrum", *words]),
        tuple(sorted(p for p in (public / "tables").rglob("*.*") if p.suffix != ".toml")),
        tuple(sorted((public / "certificates").rglob("*.json"))),
    )  # fmt: skip
