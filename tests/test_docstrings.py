"""Tables in docstrings keep their columns, so that ``help`` shows them as they were written."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

_SOURCE = Path(__file__).parents[1] / "src"
_RULE = re.compile(r"^=+( +=+)+$")


def _flaws(text: str) -> list[str]:
    """Rows whose second column does not begin where the rule says, or that hold two rows."""
    flaws = []
    lines = text.split("\n")
    rules = [i for i, line in enumerate(lines) if _RULE.match(line)]
    for first, last in zip(rules[::2], rules[1::2], strict=True):
        end = lines[first].index(" ")
        begin = lines[first].index("=", end)
        for line in lines[first + 1 : last]:
            gap = line[end:begin].strip()
            if gap or "   " in line[begin:].strip():
                flaws.append(line)
    return flaws


def test_two_rows_on_one_line_are_seen() -> None:
    rule = "====  ====\n"
    assert _flaws(rule + "a     one\nb     two\n" + rule) == []
    assert len(_flaws(rule + "a     one b      two\n" + rule)) == 1
    assert len(_flaws(rule + "aaaaaaa    one\n" + rule)) == 1


@pytest.mark.parametrize("room", sorted(p.name for p in (_SOURCE / "lustrum").iterdir()))
def test_tables_in_docstrings_keep_their_columns(room: str) -> None:
    place = _SOURCE / "lustrum" / room
    files = [place] if place.suffix == ".py" else sorted(place.rglob("*.py"))
    flaws = {}
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                if found := _flaws(ast.get_docstring(node) or ""):
                    flaws[file.name] = found
    assert flaws == {}
