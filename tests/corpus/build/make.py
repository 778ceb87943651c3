"""Write the corpus again from its tables, layouts and hidden cells; `--check` compares instead."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import corpus.build.families  # noqa: E402, F401  (enters all cases)
from corpus.build.case import REGISTRY, Case  # noqa: E402
from corpus.build.granted import grant  # noqa: E402

FILES = HERE.parent / "files"


def text(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def limit(value: float | None) -> str:
    if value is None:
        return '"none"'
    return str(int(value)) if value == int(value) else str(value)


def answer(case: Case) -> bytes:
    """The answer file of a solved case."""
    lines = [
        f"imitates = {text(case.imitates)}",
        f"inputs = [{', '.join(map(text, case.inputs))}]",
        f"notes = {text(case.notes)}",
        f"options = [{', '.join(map(text, case.options))}]",
        f"wanted = {text(case.wanted)}",
        f"truth = {text(case.want)}",
        f"bare = {text(case.bare)}",
    ]
    if case.reason:
        lines.append(f"reason = {text(case.reason)}")
        lines.append(f"usual = {str(case.usual).lower()}")
        for said, book in case.readings:
            verdict = book.verdict(book.ranges())
            lines += ["", "[[reading]]", f"is = {text(said)}", f"truth = {text(verdict)}"]
    several = len(case.book.responses) > 1
    for cell, (low, high) in case.ranges.items():
        kind = case.book.verdict_of(cell, (low, high))
        at = {dim.name: c for dim, c in zip(case.book.dims, cell[1:], strict=True)}
        if several:
            at = {"": cell[0], **at}
        where = ", ".join(f"{text(k or 'response')} = {text(v)}" for k, v in at.items())
        lines += [
            "",
            "[[hidden]]",
            f"at = {{ {where} }}",
            f"low = {limit(low)}",
            f"high = {limit(high)}",
        ]
        lines.append(f"known = {text(kind)}")
        if kind == "exact":
            lines.append(f"by = {text(case.book.reason(cell))}")
    return ("\n".join(lines) + "\n").encode()


def build(only: str = "", every: int = 1) -> tuple[dict[str, bytes], list[Case]]:
    """All files by their path below `files`, and the cases; `every` 10 takes each tenth case."""
    written: dict[str, bytes] = {}
    cases = []
    for i, ((family, name), (imitates, make)) in enumerate(REGISTRY.items(), start=1):
        if i % every or (only and only not in f"{family}/{name}"):
            continue
        try:
            case = make()
            case.family, case.name, case.imitates = family, name, imitates
            grant(case, f"{family}/{name}")
            case.solve()
        except Exception as problem:
            problem.add_note(f"in {family}/{name}")
            raise
        stem = f"{family}/{i:03d}-{name}"
        for end, content in case.files.items():
            written[stem + end] = content
        written[f"{stem}.toml"] = answer(case)
        cases.append(case)
    return written, cases


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="change nothing; exit 1 if a file differs"
    )
    parser.add_argument(
        "--only", default="", help="only cases whose family/name contains this; no writing"
    )
    given = parser.parse_args()
    written, cases = build(given.only)
    kinds = Counter((case.bare, case.want) for case in cases)
    print(f"{len(cases)} cases in {len({c.family for c in cases})} families")
    for (bare, want), n in sorted(kinds.items()):
        print(f"  {n:4d} without options {bare}, in truth {want}")
    print(f"  {sum(bool(case.wanted) for case in cases):4d} want an option that does not exist")
    if given.only:
        for path, content in written.items():
            print(f"--- {path}\n{content.decode('utf-8', 'replace')}")
        return 0
    there = {
        p.relative_to(FILES).as_posix(): p.read_bytes() for p in FILES.rglob("*") if p.is_file()
    }
    if given.check:
        differ = sorted(p for p in written.keys() | there.keys() if written.get(p) != there.get(p))
        print("\n".join(["These files differ:", *differ]) if differ else "All files are the same.")
        return bool(differ)
    for path in there.keys() - written.keys():
        (FILES / path).unlink()
    for path, content in written.items():
        target = FILES / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    print(f"{len(written)} files, {sum(map(len, written.values())) // 1000} kB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
