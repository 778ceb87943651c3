"""What many questions to a running server give away: every attack over HTTP, held against the truth.

    python bench/leaks.py --data FOLDER --address URL [--keyed]

The server must serve the demo census of the folder. With ``--keyed`` the attacks also use the rule that the
same people always show the same number. Prints what each attack is certain of and how often it is right,
and whether leaks that are planted in front of the server are found.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from attacks.asker import Asker, HttpAsker
from attacks.figures import Figured, chosen_codes
from attacks.lattice import Found, gather
from attacks.phrasing import Phrased, Split, rephrase, splits
from attacks.planted import SecondDraw, TrueCell, TrueFigure
from attacks.reconstruction import Rebuilt, rebuild

from lustrum.model import TableQuery
from lustrum.risk import EntropyRisk
from lustrum.tabulate import Engine, Store

LATTICE = ("age", "citizenship", "education", "employment", "household_size", "occupation", "sex")
FIGURES: tuple[tuple[tuple[str, ...], dict[str, list[str]]], ...] = (
    (("age", "sex", "citizenship"), {"region": ["1"]}),
    (("age", "sex", "citizenship"), {"region": ["2"]}),
    (("household_size", "age", "citizenship"), {}),
    (("age", "citizenship", "education"), {}),
    (("employment", "citizenship", "education"), {}),
)
PHRASED = ("sex", "age", "citizenship", "area:district")
RISK = EntropyRisk(weights=(0.1, 0.7, 0.1, 0.1), split=6, parts="true", shared="expected")
STEP = 0.05


@dataclass
class Truth:
    """The true counts, for judging attacks; no attack sees them."""

    engine: Engine

    def of(self, asked: dict[str, Any]) -> np.ndarray[Any, Any]:
        """The true table of a question."""
        query = TableQuery.from_mapping({"dataset": self.engine.dataset.name, **asked})
        return self.engine.tabulate(query).values

    def by(self, variables: tuple[str, ...]) -> np.ndarray[Any, Any]:
        """The true table over some variables; everybody without any."""
        if not variables:
            return np.asarray(self.of({"by": ["sex"]}).sum())
        return self.of({"by": list(variables)})


@dataclass(frozen=True)
class Report:
    """What all attacks found on one server."""

    figures: Figured
    lattice: Found
    phrasing: Phrased
    splits: Split
    rebuilt: Rebuilt

    @property
    def disclosures(self) -> int:
        """Certain disclosures of small counts by attacks that are never wrong."""
        found = self.figures.certain
        found += self.lattice.small if self.lattice.wrong == 0 else 0
        return found + (self.rebuilt.small if self.rebuilt.wrong == 0 else 0)

    def rows(self) -> Iterator[tuple[str, str]]:
        """The report, line by line."""
        f, c, p, s, r = self.figures, self.lattice, self.phrasing, self.splits, self.rebuilt
        yield (
            "figures beside two chosen cells",
            f"{f.cells} cells that show 0; {f.claims} claims, {f.right} right; "
            f"{f.telling} groups of equal numbers with different figures",
        )
        yield (
            "all tables up to three variables, and three within each sex",
            f"{c.certain:,} of {c.cells:,} cells certain, {c.small} of them ones and twos, "
            f"{c.alone} people alone; {c.wrong} bounds wrong",
        )
        yield (
            "one population in many phrasings",
            f"{p.different} of {p.populations:,} populations show two numbers",
        )
        yield (
            "sums over disjoint splits",
            f"mean error of {s.cells} small cells {s.single:.2f} alone, {s.averaged:.2f} averaged; "
            f"{s.different} with different sums",
        )
        yield (
            "reconstruction of one area by linear programs",
            f"{r.tables} tables; {r.certain} of {r.cells} hidden cells certain, {r.small} of them "
            f"ones and twos; {r.wrong} bounds wrong",
        )


def codes_of(engine: Engine) -> dict[str, list[str]]:
    """The finest codes of every variable: public metadata."""
    return {v.name: list(v.codes) for v in engine.dataset.variables}


def attack(asker: Asker, truth: Truth, *, keyed: bool) -> Report:
    """Run every attack against one server."""
    codes = codes_of(truth.engine)
    figured = sum(
        (chosen_codes(asker, codes, by, where, RISK, STEP, truth.of) for by, where in FIGURES),
        start=Figured(0, 0, 0, 0),
    )
    names = {name: codes[name] for name in LATTICE}
    lattice = gather(asker, names, within=("sex",))
    lattice.propagate(keyed=keyed)
    phrased = rephrase(asker, codes, PHRASED)
    split = splits(
        asker,
        codes,
        ("age", "citizenship"),
        ("sex", "region", "employment", "household_size", "education"),
        truth.by(("age", "citizenship")),
        small=60,
    )
    inside = ("sex", "citizenship", "employment", "household_size")
    area = {"area": [codes["area"][3]]}
    hidden = truth.of({"by": list(inside), "where": area})
    rebuilt = rebuild(asker, codes, inside, area, hidden)
    return Report(figured, lattice.against(truth.by), phrased, split, rebuilt)


def show(title: str, report: Report) -> None:
    """Print a report as Markdown."""
    print(f"\n## {title}\n")
    print("| attack | found |\n|---|---|")
    for attack_, found in report.rows():
        print(f"| {attack_} | {found} |")
    print(f"\nCertain disclosures of small counts: **{report.disclosures}**", flush=True)


def planted(asker: HttpAsker, truth: Truth) -> dict[str, bool]:
    """Whether each leak that was planted on purpose is found."""
    codes = codes_of(truth.engine)
    by, where = FIGURES[0]
    names = ("age", "citizenship", "education")
    counts = truth.by(names)
    place = tuple(int(p[0]) for p in np.nonzero((counts >= 1) & (counts <= 2)))
    key = tuple((v, codes[v][p]) for v, p in zip(names, place, strict=True))
    shown = TrueCell(asker, key, int(counts[place]))
    few = {name: codes[name] for name in names}
    lattice = gather(shown, few)
    lattice.propagate(keyed=False)
    figured = chosen_codes(
        TrueFigure(asker, truth.of, RISK, STEP), codes, by, where, RISK, STEP, truth.of
    )
    phrased = rephrase(SecondDraw(asker), codes, ("sex", "employment", "citizenship"))
    return {
        "a true cell shown exactly": lattice.against(truth.by).small > 0,
        "a figure from true counts": figured.certain > 0 and figured.telling > 0,
        "a second draw": phrased.different > 0,
    }


def main() -> int:
    """Attack a server."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, required=True, help="Folder with the demo data.")
    parser.add_argument("--address", required=True, help="A server of these data that runs.")
    parser.add_argument("--keyed", action="store_true", help="Use the rules of keyed noise.")
    given = parser.parse_args()
    truth = Truth(Store(given.data).open("demo"))
    asker = HttpAsker(given.address, "demo")
    report = attack(asker, truth, keyed=given.keyed)
    show(given.address, report)
    print(f"\n{asker.asked} questions, {asker.refused} refused.\n\nPlanted leaks:")
    for leak, found in planted(asker, truth).items():
        print(f"- {leak}: {'found' if found else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
