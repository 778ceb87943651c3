"""Draw the house from the code: every room, its parts, and how many rooms it imports.

    python scripts/house.py            write docs/img/house.svg and the table of rooms in docs/architecture.md
    python scripts/house.py --check    say whether both are what the code says; exit code 1 if not
    python scripts/house.py --size     print how large the house is, beside the last release

The order of the rooms is that of the contract "rooms" in pyproject.toml; sentences are the first lines of
docstrings; imports are read from the files.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from dataclasses import dataclass
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "lustrum"
PICTURE = ROOT / "docs" / "img" / "house.svg"
PAGE = ROOT / "docs" / "architecture.md"
START, END = "<!-- house:start -->", "<!-- house:end -->"

WIDTH, LEFT, GAP, LINE = 1000, 24, 12, 19
PER_LINE = 130

# At the last release, 0.2.0.
BEFORE = {
    "lines of src": 120_135,
    "files of src": 594,
    "lines of tests": 98_955,
    "words of Markdown": 61_631,
}


@dataclass(frozen=True)
class Room:
    """One package: what it is for, its parts, and the rooms that it imports."""

    name: str
    sentence: str
    parts: tuple[str, ...]
    files: int
    imports: frozenset[str]


def layers() -> list[list[str]]:
    """The rooms from the doors down; rooms of one line stand side by side."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    rooms = next(c for c in contracts if c["id"] == "rooms")["layers"]
    found = [re.findall(r"lustrum\.(\w+)", line) for line in rooms]
    return [[name for name in line if (PACKAGE / name).is_dir()] for line in found]


def sentence_of(path: Path) -> str:
    """The first sentence of a file's docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def parts_of(room: Path) -> tuple[str, ...]:
    """The packages and files of a room, in the order of the alphabet."""
    packages = {p.parent.name for p in room.glob("*/__init__.py")}
    files = {p.stem for p in room.glob("*.py") if not p.stem.startswith("_")}
    return tuple(sorted(f"{p}/" for p in packages) + sorted(files))


def read(name: str, every: frozenset[str]) -> Room:
    """A room as its files tell it."""
    folder = PACKAGE / name
    imports: set[str] = set()
    files = sorted(folder.rglob("*.py"))
    for path in files:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                named = [node.module]
                if node.module == "lustrum":
                    named = [f"lustrum.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                named = [alias.name for alias in node.names]
            else:
                continue
            imports |= {m.split(".")[1] for m in named if m.startswith("lustrum.")}
    kept = frozenset(imports & every - {name})
    return Room(name, sentence_of(folder / "__init__.py"), parts_of(folder), len(files), kept)


def wrapped(parts: tuple[str, ...], most: int) -> list[str]:
    """Parts in lines of about equal length."""
    lines = [""]
    for part in parts:
        if lines[-1] and len(lines[-1]) + len(part) + 3 > most:
            lines.append("")
        lines[-1] += f" · {part}" if lines[-1] else part
    return lines if lines != [""] else []


def picture(rows: list[list[Room]]) -> str:
    """The house as SVG: one floor for each layer, the doors on top."""
    out, y = [], GAP
    for row in rows:
        share = (WIDTH - 2 * LEFT - GAP * (len(row) - 1)) / max(len(row), 1)
        written = [wrapped(room.parts, int(PER_LINE / len(row))) for room in row]
        height = 34 + LINE * max(len(lines) for lines in written)
        for place, (room, lines) in enumerate(zip(row, written, strict=True)):
            x = LEFT + place * (share + GAP)
            kind = "door" if room.name in ("cli", "server") else "room"
            out.append(
                f'  <rect class="{kind}" x="{x:g}" y="{y}" width="{share:g}" height="{height}"/>'
            )
            out.append(f'  <text class="name" x="{x + 14:g}" y="{y + 22}">{room.name}</text>')
            out.append(
                f'  <text class="says" x="{x + share - 14:g}" y="{y + 22}" text-anchor="end">'
                f"{room.files} files, imports {len(room.imports)} rooms</text>"
            )
            for number, line in enumerate(lines, start=1):
                at = y + 24 + LINE * number
                out.append(f'  <text class="part" x="{x + 14:g}" y="{at}">{escape(line)}</text>')
        y += height + GAP
    names = ", ".join(room.name for row in rows for room in row)
    style = (
        "#house { --ink: #1f2633; --soft: #5b6578; --room: #e7f3ee; --edge: #2c8465; --door: #e3e8fb; "
        "--door-edge: #5468c4; }\n"
        "    @media (prefers-color-scheme: dark) { #house { --ink: #eef1f7; --soft: #aab3c5; "
        "--room: #1c4337; --edge: #5fc3a0; --door: #27315c; --door-edge: #8e9ff0; } }\n"
        '    [data-md-color-scheme="default"] #house { --ink: #1f2633; --soft: #5b6578; '
        "--room: #e7f3ee; --edge: #2c8465; --door: #e3e8fb; --door-edge: #5468c4; }\n"
        '    [data-md-color-scheme="slate"] #house { --ink: #eef1f7; --soft: #aab3c5; '
        "--room: #1c4337; --edge: #5fc3a0; --door: #27315c; --door-edge: #8e9ff0; }\n"
        "    #house rect { stroke-width: 1.5; rx: 8px; }\n"
        "    #house .room { fill: var(--room); stroke: var(--edge); }\n"
        "    #house .door { fill: var(--door); stroke: var(--door-edge); }\n"
        '    #house text { font-family: system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; '
        "font-size: 13px; fill: var(--ink); }\n"
        '    #house .name { font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; '
        "font-size: 16px; font-weight: 600; }\n"
        "    #house .says { fill: var(--soft); font-size: 12px; }"
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" id="house" viewBox="0 0 {WIDTH} {y}" role="img" '
        'aria-labelledby="house-title house-desc">\n'
        '  <title id="house-title">The rooms of Lustrum and their parts</title>\n'
        f'  <desc id="house-desc">From the doors down: {names}. A room imports only rooms below it.'
        "</desc>\n"
        f"  <style>\n    {style}\n  </style>"
    )
    return "\n".join([head, *out, "</svg>"]) + "\n"


def table(rows: list[list[Room]]) -> str:
    """The rooms as a table in Markdown."""
    lines = ["| Room | Holds |", "|---|---|"]
    lines += [f"| `{room.name}` | {room.sentence} |" for row in rows for room in row]
    return "\n".join(lines) + "\n"


def drawn() -> tuple[str, str]:
    """The picture and the page as the code has them now."""
    names = layers()
    every = frozenset(name for row in names for name in row)
    rows = [[read(name, every) for name in row] for row in names if row]
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(START)
    after = rest.partition(END)[2]
    return picture(rows), f"{before}{START}\n{table(rows)}{END}{after}"


def measured() -> dict[str, int]:
    """How large the house is: committed files only."""
    listed = subprocess.run(
        ["git", "ls-files", "*.py", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    files = [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]
    text = {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in files}
    source = {name: own for name, own in text.items() if name.startswith("src/")}
    return {
        "lines of src": sum(own.count("\n") for own in source.values()),
        "files of src": len(source),
        "rooms": sum(len(row) for row in layers()),
        "lines of tests": sum(
            own.count("\n")
            for name, own in text.items()
            if name.startswith("tests/") and name.endswith(".py")
        ),
        "words of Markdown": sum(
            len(own.split()) for name, own in text.items() if name.endswith(".md")
        ),
    }


def imported() -> Counter[str]:
    """How many files import each module of the package."""
    found: Counter[str] = Counter()
    for path in PACKAGE.rglob("*.py"):
        named = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                named.add(node.module)
                named |= {f"{node.module}.{alias.name}" for alias in node.names}
        for module in named:
            place = PACKAGE.parent.joinpath(*module.split("."))
            if module.startswith("lustrum") and place.with_suffix(".py").is_file():
                found[f"{module.replace('.', '/')}.py"] += 1
    return found


def size() -> None:
    """Print the figures, the largest files and those that most files import."""
    for name, figure in measured().items():
        beside = f"  {BEFORE[name]:>9,} at the last release" if name in BEFORE else ""
        print(f"{name:20}{figure:>9,}{beside}")
    lines = {path: path.read_text(encoding="utf-8").count("\n") for path in PACKAGE.rglob("*.py")}
    print("\nlargest files")
    for path in sorted(lines, key=lambda path: -lines[path])[:10]:
        print(f"{lines[path]:>9,}  {path.relative_to(PACKAGE.parent).as_posix()}")
    print("\nimported by most files")
    for name, count in imported().most_common(10):
        print(f"{count:>9,}  {name}")


def main() -> int:
    """Write or check both, or print the size."""
    if "--size" in sys.argv[1:]:
        size()
        return 0
    svg, page = drawn()
    if "--check" in sys.argv[1:]:
        stale = [
            str(path.relative_to(ROOT))
            for path, text in ((PICTURE, svg), (PAGE, page))
            if not path.exists() or path.read_text(encoding="utf-8") != text
        ]
        for name in stale:
            print(f"{name} does not show the code as it is; run: python scripts/house.py")
        return 1 if stale else 0
    PICTURE.write_text(svg, encoding="utf-8", newline="\n")
    PAGE.write_text(page, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
