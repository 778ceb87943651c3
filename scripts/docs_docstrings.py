"""An extension of griffe: turn what docstrings write for a terminal into Markdown for the site.

Examples become code, simple tables become tables, and a role such as :class:`Table` becomes code.
"""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"^ *>>> .*(?:\n *\S.*)*", re.MULTILINE)
TABLE = re.compile(r"^(?P<rule> *=+(?: +=+)+)\n(?P<rows>(?:.*\n)+?)(?P=rule)$", re.MULTILINE)
ROLE = re.compile(r":\w+:(?=`)")


class Docstrings(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **kwargs: Any) -> None:
        if obj.docstring is not None:
            text = EXAMPLE.sub(fence, obj.docstring.value)
            obj.docstring.value = ROLE.sub("", TABLE.sub(tabulate, text))


def fence(block: re.Match[str]) -> str:
    text = block[0]
    margin = text[: len(text) - len(text.lstrip(" "))]
    return f"{margin}```pycon\n{text}\n{margin}```"


def tabulate(block: re.Match[str]) -> str:
    """Cut rows where the rule is cut; a row without a first cell goes on with the one above."""
    starts = [column.start() for column in re.finditer("=+", block["rule"])]
    ends = [*starts[1:], None]
    rows: list[list[str]] = []
    for line in block["rows"].splitlines():
        cells = [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]
        if rows and not cells[0]:
            rows[-1] = [
                f"{above} {cell}".strip() for above, cell in zip(rows[-1], cells, strict=True)
            ]
        elif not set(line) <= set("= "):
            rows.append(cells)
    head = "|" + " |" * len(starts) + "\n" + "|---" * len(starts) + "|\n"
    return head + "\n".join("| " + " | ".join(cells) + " |" for cells in rows)
