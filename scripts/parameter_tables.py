"""Write ``docs/reference/parameters.md`` from what methods, rules and measures declare of their parameters."""

from __future__ import annotations

from pathlib import Path

from lustrum.model.parameters import Parameter, parameters_of
from lustrum.model.plugins import load, names

PAGE = Path(__file__).parent.parent / "docs" / "reference" / "parameters.md"
GROUPS = {
    "lustrum.methods": "Protection methods",
    "lustrum.rules": "Sensitivity rules",
    "lustrum.risks": "Risk measures",
    "lustrum.utilities": "Utility measures",
}
HEAD = """# Parameters

Every parameter of every built-in method, rule and measure, with its type, its range and its default. The
names are those of Python, of a policy file and of `lustrum plugins NAME`. This page is written by
`scripts/parameter_tables.py` from the code; a test holds it to that.
"""


def page() -> str:
    """The whole page."""
    parts = [HEAD]
    for group, title in GROUPS.items():
        parts.append(f"## {title}\n")
        for name in names(group):
            kind = load(group, name)
            if not kind.__module__.startswith("lustrum."):
                continue
            found = parameters_of(kind)
            parts.append(f"### `{name}`\n")
            parts.append(_table(found) if found else "No parameters.\n")
    return "\n".join(parts)


def _table(found: tuple[Parameter, ...]) -> str:
    grouped = any(one.group for one in found)
    head = ["Parameter", *(["Group"] if grouped else []), "Type", "Default", "Meaning"]
    rows = [
        [f"`{one.name}`", *([one.group] if grouped else []), one.kind, one.default, one.text]
        for one in found
    ]
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
