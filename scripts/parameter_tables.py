"""A hook of mkdocs: the page of parameters, from what methods, rules and measures declare."""

from __future__ import annotations

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from lustrum.model.parameters import Parameter, parameters_of
from lustrum.model.plugins import load, names

PAGE = "reference/parameters.md"
GROUPS = {
    "lustrum.methods": "Protection methods",
    "lustrum.rules": "Sensitivity rules",
    "lustrum.risks": "Risk measures",
    "lustrum.utilities": "Utility measures",
}
HEAD = """# Parameters

Every parameter of every built-in method, rule and measure, with its type, its range and its default. The
names are those of Python, of a policy file and of `lustrum plugins NAME`. This page is made from the code
while the site is built.
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


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """What mkdocs calls with all files of the site."""
    files.append(File.generated(config, PAGE, content=page()))
    return files
