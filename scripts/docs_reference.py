"""A hook of mkdocs: write a reference page for every room of the package that exists.

The pages are made while the site is built and are never files of their own, so that none can
describe a room that is gone, and a new room needs no page to be written.
"""

from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

# In the order in which data walks through them.
ROOMS = (
    "model",
    "structure",
    "solve",
    "counting",
    "tabulate",
    "sensitivity",
    "survey",
    "protect",
    "audit",
    "risk",
    "utility",
    "rumap",
    "policy",
    "formats",
    "public",
    "publish",
    "answer",
    "server",
    "agency",
    "cli",
    "demo",
)
FOLDER = "reference/python"


def rooms(config: MkDocsConfig) -> list[str]:
    package = Path(config.config_file_path).parent / "src" / "lustrum"
    there = {file.parent.name for file in package.glob("*/__init__.py")}
    return [room for room in ROOMS if room in there]


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    pages = [{f"lustrum.{room}": f"{FOLDER}/{room}.md"} for room in rooms(config)]
    if not pages or config.nav is None:
        return config
    for entry in config.nav:
        entry.get("Use tables", []).append({"Python": pages})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for room in rooms(config):
        text = f"# `lustrum.{room}`\n\n::: lustrum.{room}\n"
        files.append(File.generated(config, f"{FOLDER}/{room}.md", content=text))
    return files
