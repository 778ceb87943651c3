"""Write the descriptions shipped with the demo: ``python -m lustrum.demo.describe``.

They are written from the objects the generators draw their codes from; run this after a change.
"""

from __future__ import annotations

from lustrum.demo.descriptions import DESCRIPTIONS, MAP, description_path
from lustrum.demo.outlines import to_text


def write() -> None:
    """Write the TOML file of every demo dataset, and their map."""
    description_path("demo").with_name(MAP).write_text(to_text(), encoding="utf-8", newline="\n")
    for name, dataset in DESCRIPTIONS.items():
        description_path(name).write_text(dataset.to_toml(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    write()
