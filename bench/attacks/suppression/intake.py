"""Odd files that agencies have: each is taken or refused with a sentence, and none ends in a traceback."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from attacks.suppression.drive import command_line

TABLE = """a,b,value,n
x,p,1000,9
x,q,20,1
x,Total,1020,10
y,p,300,9
y,q,400,9
y,Total,700,18
Total,p,1300,18
Total,q,420,10
Total,Total,1720,28
"""


@dataclass(frozen=True)
class Odd:
    """Files, the words of a command about them, and the exit codes that are right."""

    name: str
    files: Mapping[str, str]
    words: tuple[str, ...]
    right: tuple[int, ...]
    before: tuple[str, ...] = ()
    names: str = ""
    """A code that a refusal must name, so that its reader finds the row."""

    def run(self, folder: Path) -> tuple[int | str, str]:
        """The exit code and what was printed."""
        for name, text in self.files.items():
            (folder / name).write_text(text, encoding="utf-8")
        place: Callable[[str], str] = lambda word: word.replace("@", f"{folder}/")  # noqa: E731
        if self.before:
            command_line(*map(place, self.before))
        return command_line(*map(place, self.words))

    def taken(self, folder: Path) -> str:
        """What is wrong with how the product took the files; empty if nothing is."""
        code, said = self.run(folder)
        said = " ".join(said.replace(str(folder), "").split())
        if code not in self.right:
            return f"{self.name}: exit {code}: {said[-160:]}"
        if code == 1 and self.names and not re.search(rf"\b{self.names}\b", said):
            return f"{self.name}: the refusal does not name {self.names}: {said[-160:]}"
        return ""


def odd() -> list[Odd]:
    """All of them."""
    suppress = ("suppress", "@t.csv", "--rule", "threshold=3", "--out", "@o.csv")
    noise = "a,value,n\nx,0.1,9\ny,0.2,1\nz,1000000000,9\nTotal,1000000000.3000001,19\n"
    binary = "a,value,n\nx,0.30000000000000004,9\ny,5,1\nz,1000000000,9\nTotal,1000000005.3,19\n"
    digits = f"a,value,n\nx,0.{'1' * 30},9\ny,5,1\nz,7,9\nTotal,12.{'1' * 30},19\n"
    rounded = TABLE.replace("x,Total,1020", "x,Total,1021")
    tree = "x\ny\nz\n"
    wide = "a,value,n\nD,700,12\nD1,600,1\nD2,100,11\nE,150,22\nE1,100,11\nE2,50,11\nTotal,850,34\n"
    more = "D\n@D1\n@D2\n@D3\nE\n@E1\n@E2\n"
    negative = "a,value,n\nx,-1000000,1\ny,300,9\nz,400,9\nw,500,8\nTotal,-998800,27\n"
    names = {"t.csv": TABLE}
    return [
        Odd("noise of floating point beside a large value", {"t.csv": noise}, suppress, (0, 1, 3, 4)),
        Odd("0.30000000000000004 beside 1e9", {"t.csv": binary}, suppress, (0, 1, 3, 4)),
        Odd("thirty decimals", {"t.csv": digits}, suppress, (0, 1, 3, 4)),
        Odd("a total off by one", {"t.csv": rounded}, suppress, (0, 1, 3, 4), names="x"),
        Odd("a hierarchy with a code without a row", {"t.csv": wide, "a.hrc": more},
            (*suppress, "--hierarchy", "a=@a.hrc"), (0, 3, 4)),
        Odd("a hierarchy of all codes", {"t.csv": TABLE, "a.hrc": tree},
            (*suppress, "--hierarchy", "a=@a.hrc"), (0, 1, 3, 4)),
        Odd("the largest value is a loss", {"t.csv": negative}, suppress, (0, 3, 4)),
        Odd("audit of an own workbook", names, ("audit", "@o.xlsx"), (0, 3, 4), (*suppress[:-1], "@o.xlsx")),
        Odd("audit of an own CSV file", names, ("audit", "@o.csv"), (0, 3, 4), suppress),
        Odd("audit of an own Parquet file", names, ("audit", "@o.parquet"), (0, 3, 4),
            (*suppress[:-1], "@o.parquet")),
        Odd("an empty file", {"t.csv": ""}, suppress, (1,)),
        Odd("headings alone", {"t.csv": "a,b,value,n\n"}, suppress, (1,)),
        Odd("a value that is no number", {"t.csv": TABLE.replace("1000", "one")}, suppress, (1, 4)),
        Odd("fewer firms than none", {"t.csv": TABLE.replace("20,1", "20,-1")}, suppress, (1, 4)),
        Odd("half a firm", {"t.csv": TABLE.replace("20,1", "20,0.5")}, suppress, (1, 4)),
        Odd("a row that stands twice", {"t.csv": TABLE + "x,q,21,1\n"}, suppress, (1, 4)),
        Odd("no number of firms", {"t.csv": TABLE.replace("20,1", "20,")}, suppress, (1, 3, 4)),
    ]  # fmt: skip
