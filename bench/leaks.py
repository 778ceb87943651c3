"""What many questions to a running server give away: every attack over HTTP, held against the truth.

    python bench/leaks.py [--data FOLDER] [--persons 1500000]
    python bench/leaks.py [--data FOLDER] [--firms 60000] --parts sums survey
    python bench/leaks.py --data FOLDER --address URL [--keyed]

Makes the demo census if the folder does not hold it, and attacks two servers of it. The strict default, a
public bundle of a protected population, must give no small count away, and leaks planted in front of it
must be found, or the attacks prove nothing. On the preset ``keyed-rounding`` without its ledger the same
attacks must find cells that are certain; they then also use the rule that the same people always show the same
number. How many of these cells hold one or two people depends on the secret of the folder. With the ledger at
most one may. The exit code is 1 if one of these fails. With an address, only that server is attacked.

The parts ``sums`` and ``survey`` attack the demo register, once as its policy protects it and once with the
strict default (``existence = "secret"``), and the demo survey. Again nothing certain may be found, and planted
leaks must be. The part ``sums`` also attacks size classes, second releases and large firms of the register, and
each of these attacks must succeed on a control. The part ``releases`` attacks series of releases; see
``bench/releases.py``. The part ``file`` reads attributes off rows of the public file of the census, ``sparse``
off those of files in which nearly everybody is alone in their cell. The part ``joint`` attacks small areas of a
file of few variables by all tables together, and ``small`` files so small that one table holds all variables.
The part ``rates`` holds the public rates of errors against all tables. The part ``neighbours`` holds what
neighbours gain of people in a file of the preset ``proven``, and insertions over twelve releases of it, against
what its promise allows; see ``bench/neighbours.py``. The part ``proven`` attacks a server of that preset and
sums with a proof: 10,000 people over HTTP, and amounts of 10,000 people in a file and 10,000 out of it. With
``--keys 3`` whatever a key decides is attacked under three of them.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
from attacks.asker import Asker, HttpAsker
from attacks.counts_report import Report
from attacks.figures import Figured, chosen_codes
from attacks.file_report import FileReport, attack_areas, attack_file, keys
from attacks.lattice import gather
from attacks.neighbours_report import attack_insertions, attack_paid, attack_proven
from attacks.phrasing import rephrase, splits
from attacks.planted import SecondDraw, TrueCell, TrueFigure
from attacks.reconstruction import rebuild
from attacks.releases.report import report as releases
from attacks.releases.series import People
from attacks.small_files import attack_small_files
from attacks.stated_rates import RatesReport, beside, counted
from attacks.sums.over_time import attack_over_time
from attacks.sums.signs import attack_signs
from attacks.sums_report import attack_register, attack_survey
from attacks.times import times_and_sizes
from parts.figures import record

from lustrum.demo import businesses, description_path
from lustrum.demo.census import people
from lustrum.demo.setup import prepare
from lustrum.model import TableQuery
from lustrum.model.finest import FinestCells
from lustrum.policy import read_policy
from lustrum.policy.presets import preset
from lustrum.policy.read import sealed
from lustrum.protect.magnitudes.method import ProtectedMagnitudes
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.public.bundle.files import read_bundle
from lustrum.publish.budget import BudgetLedger
from lustrum.publish.bundles.make import make_bundle
from lustrum.publish.bundles.proven import make_proven_bundle
from lustrum.risk import EntropyRisk
from lustrum.tabulate import (
    Engine,
    FrameSource,
    Store,
    finest_cells,
    ingest,
    read_description,
    records_of,
)

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
PARTS = (
    "counts",
    "file",
    "joint",
    "neighbours",
    "proven",
    "rates",
    "releases",
    "small",
    "sparse",
    "sums",
    "survey",
)
RHO, SUMS_RHO, FEW = 2.56, 0.5, 10_000
# People, the seed that draws them, and variables that are left out.
SPARSE: tuple[tuple[int, int, tuple[str, ...]], ...] = (
    (6_000, 9, ()),
    (6_000, 2001, ("occupation",)),
    (10_000, 5, ("occupation",)),
    (20_000, 9, ()),
)
LEFT_OUT = ("region", "household_size", "occupation", "education")


@dataclass
class Truth:
    """The true counts, for judging attacks; no attack sees them."""

    engine: Engine

    def of(self, asked: dict[str, Any]) -> np.ndarray[Any, Any]:
        """The true table of a question."""
        query = TableQuery.from_mapping({"dataset": self.engine.dataset.name, **asked})
        return self.engine.tabulate(query).values

    def possible(self, variables: tuple[str, ...]) -> np.ndarray[Any, Any]:
        """Which cells of a table can hold anybody; the others are empty to everybody's knowledge."""
        if not variables:
            return np.asarray(True)
        asked = {"dataset": self.engine.dataset.name, "by": list(variables)}
        table = self.engine.tabulate(TableQuery.from_mapping(asked))
        return np.ones(table.shape, bool) if table.structural is None else ~table.structural

    def by(self, variables: tuple[str, ...]) -> np.ndarray[Any, Any]:
        """The true table over some variables; everybody without any."""
        if not variables:
            return np.asarray(self.of({"by": ["sex"]}).sum())
        return self.of({"by": list(variables)})


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
    assert isinstance(asker, HttpAsker)
    timed = times_and_sizes(asker, codes, ("age", "citizenship", "education"), truth.of)
    found = lattice.against(truth.by, truth.possible)
    return Report(figured, found, phrased, split, rebuilt, timed)


def show(title: str, report: Report) -> None:
    """Print a report as Markdown."""
    show_rows(title, report.rows())
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
        "a true cell shown exactly": lattice.against(truth.by, truth.possible).small > 0,
        "a figure from true counts": figured.certain > 0 and figured.telling > 0,
        "a second draw": phrased.different > 0,
    }


@contextmanager
def served(data: Path) -> Iterator[str]:
    """A server process over a folder, on a free port; its address."""
    command = [sys.executable, "-m", "lustrum", "serve", "--port", "0", "--rate", ""]
    process = subprocess.Popen([*command, "--data", str(data)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if " at http" not in line:
            raise SystemExit(f"The server did not start: {line!r}")
        yield line.rsplit(" at ", 1)[1].strip()
    finally:
        process.terminate()
        process.wait(timeout=60)


def both(data: Path, persons: int) -> int:
    """Attack the strict default and the keyed preset."""
    prepare(data, persons)
    truth = Truth(Store(data).open("demo"))
    with served(data) as address:
        asker = HttpAsker(address, "demo")
        strict = attack(asker, truth, keyed=False)
        show("The strict default: a public bundle of a protected population", strict)
        print(f"\n{asker.asked} questions, {asker.refused} refused.\n\nLeaks planted on purpose:\n")
        leaks = planted(asker, truth)
        for leak, found in leaks.items():
            print(f"- {leak}: {'found' if found else 'missed'}", flush=True)
    counted = preset("keyed-rounding", "demo")
    # What the ledger holds back must be there without it.
    control = counted[: counted.index("# What everybody received")] + "end = true\n"
    found = []
    for title, text in (
        ("The preset keyed-rounding without its ledger", control),
        ("The preset keyed-rounding", counted),
    ):
        with tempfile.TemporaryDirectory() as scratch:
            keyed_data = Path(scratch) / "data"
            ignored = shutil.ignore_patterns("bundles", "jobs.sqlite*", "ledger")
            shutil.copytree(data, keyed_data, ignore=ignored)
            (keyed_data / "policies" / "demo.toml").write_text(text, encoding="utf-8")
            with served(keyed_data) as address:
                asker = HttpAsker(address, "demo")
                found.append(attack(asker, truth, keyed=True))
                show(title, found[-1])
                print(f"\n{asker.asked} questions, {asker.refused} refused.")
    right = strict.disclosures == 0 and strict.phrasing.different == 0 and all(leaks.values())
    right = right and not strict.timed.telling
    # Its limit allows one small count in ten folders.
    return 0 if right and found[0].lattice.certain > 0 and found[1].lattice.small <= 1 else 1


def with_proof() -> bool:
    """Attack a server of the preset ``proven``, and neighbours' amounts in sums with a proof."""
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch)
        store = Store(data)
        described = read_description(description_path("demo"))
        ingest(FrameSource(people(FEW), "people"), described, store)
        (data / "policies").mkdir(exist_ok=True)
        policy = data / "policies" / "demo.toml"
        policy.write_text(preset("proven", "demo"), encoding="utf-8")
        BudgetLedger(data, str(described.population)).set_limit(Fraction(RHO), "attacks")
        out, folder = data / "bundles" / "demo", data / "reports" / "demo"
        make_proven_bundle(store, "demo", policy, out, folder=folder)
        truth = Truth(store.open("demo"))
        with served(data) as address:
            asker = HttpAsker(address, "demo")
            found = attack(asker, truth, keyed=False)
            show(f"The preset proven: {FEW:,} people", found)
            print(f"\n{asker.asked} questions, {asker.refused} refused.\n")
            leaks = planted(asker, truth)
            for leak, seen in leaks.items():
                print(f"- {leak}: {'found' if seen else 'missed'}", flush=True)
    right = found.disclosures == 0 and found.phrasing.different == 0 and found.splits.different == 0
    right = right and not found.timed.telling and all(leaks.values())
    return attack_paid(RHO, SUMS_RHO) and right


def sums(data: Path, firms: int, number: int) -> bool:
    """Attack the register, with public existence and with the strict default."""
    right = True
    register(data, firms)
    with tempfile.TemporaryDirectory() as scratch:
        strict = Path(scratch) / "data"
        shutil.copytree(
            data, strict, ignore=shutil.ignore_patterns("bundles", "reports", "jobs.sqlite*")
        )
        policy = strict / "policies" / "businesses.toml"
        text = policy.read_text(encoding="utf-8").replace(
            'existence = "public"', 'existence = "secret"'
        )
        text = text.replace("empty_share = 0.0", "empty_share = 0.1")
        policy.write_bytes(sealed(text.encode(), str(policy)))
        register(strict, firms)
        for title, folder in (
            ("The demo register: existence is public", data),
            ("The demo register with the strict default: existence is secret", strict),
        ):
            with served(folder) as address:
                found = attack_register(address, folder)
            show_rows(title, found.rows())
            print(f"\nCertain disclosures: **{found.disclosures}**\n\nLeaks planted on purpose:\n")
            for leak, seen in found.planted.items():
                print(f"- {leak}: {'found' if seen else 'missed'}", flush=True)
            right = right and found.holds
    title = "Gains and losses of one owner"
    right = shown_all((title, attack_signs(one)) for one in keys(number)) and right
    return over_time(data, number) and right


def over_time(data: Path, number: int) -> bool:
    """Attack size classes, second releases and large firms of the register under so many keys."""
    store = Store(data)
    engine = store.open("businesses")
    spec = read_policy(data / "policies" / "businesses.toml").magnitudes
    assert isinstance(spec, ProtectedMagnitudes)
    key = store.secret_of(engine.secret).derive("lustrum protected magnitudes businesses")
    title = "Size classes, second releases and large firms"
    records = records_of(engine)
    every = (key, *keys(number)[1:])
    return shown_all((title, attack_over_time(records, spec, one)) for one in every)


def register(data: Path, firms: int) -> None:
    """The demo register with so many firms, and its bundle; what is there stays."""
    store = Store(data)
    if "businesses" not in store.names():
        described = read_description(description_path("businesses"))
        ingest(FrameSource(businesses(firms), "businesses"), described, store)
    policy = data / "policies" / "businesses.toml"
    if not policy.exists():
        policy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(description_path("businesses").with_name("businesses-policy.toml"), policy)
    if not (data / "bundles" / "businesses").exists():
        folder = data / "reports" / "businesses"
        make_bundle(store, "businesses", policy, data / "bundles" / "businesses", folder=folder)


def survey(data: Path) -> bool:
    """Attack the survey, in a folder of its own: the census beside it is a small one."""
    data = data.with_name(f"{data.name}-survey")
    prepare(data, 1000)
    with served(data) as address:
        found = attack_survey(address, data)
    show_rows("The demo survey", found.rows())
    print(f"\nA weight shown on purpose: {'found' if found.planted else 'missed'}", flush=True)
    return found.holds


def file(data: Path, persons: int, number: int) -> bool:
    """Attack the public file of the census by itself, also as other keys would make it."""
    prepare(data, persons)
    bundle = read_bundle(data / "bundles" / "demo")
    true = finest_cells(Store(data).open("demo"))
    method = read_policy(data / "policies" / "demo.toml").population
    assert isinstance(method, ProtectedPopulation)
    shown = [bundle.cells, *(method.protect(true, key).cells for key in keys(number)[1:])]
    found = attack_file(true, shown, bundle.report.support.base)
    return shown_all([("The file of the demo census", found)])


def sparse(number: int) -> bool:
    """Read attributes off the rows of files in which nearly everybody is alone in their cell."""
    method = ProtectedPopulation(sweeps=3, extra_tables=100)

    def attacked(true: FinestCells) -> FileReport:
        files = [method.protect(true, key).cells for key in keys(number)]
        return attack_file(true, files, method.base)

    files = ((drawn, People(*drawn).cells()) for drawn in SPARSE)
    return shown_all(
        (
            f"A sparse file: {persons:,} people (seed {seed}) in {len(true):,} cells",
            attacked(true),
        )
        for (persons, seed, _), true in files
    )


def rates(data: Path, persons: int) -> bool:
    """Hold the public rates of errors against all tables of up to four variables of the census."""
    prepare(data, persons)
    bundle = read_bundle(data / "bundles" / "demo")
    truth, base = Truth(Store(data).open("demo")), bundle.report.support.base
    names = [v.name for v in bundle.cells.dataset.variables if v.name != "region"]
    few = [c for n in (1, 2, 3) for c in combinations(names, n)]
    # The largest tables of four variables are left out: nobody lays them out.
    four = [c for c in combinations(names, 4) if "area" not in c]
    return shown_all(
        (
            f"Stated rates of errors: tables of {kind} variables",
            RatesReport(stated, counted((beside(bundle.cells, t, truth) for t in tables), base)),
        )
        for kind, stated, tables in (
            ("up to three", bundle.report.rates, few),
            ("four", bundle.report.free_rates, four),
        )
    )


def joint(persons: int, number: int) -> bool:
    """Attack small areas of a file of few variables by all of its tables together."""
    true = People(persons, 7, LEFT_OUT).cells()
    method = ProtectedPopulation()
    names = ", ".join(v.name for v in true.dataset.variables)
    return shown_all(
        (
            f"All tables together: {persons:,} people by {names}",
            attack_areas(true, method.protect(true, key).cells, method.base, "area"),
        )
        for key in keys(number)
    )


def shown_all(reports: Iterable[tuple[str, Any]]) -> bool:
    """Print reports as they come; whether all hold."""
    right = True
    for title, found in reports:
        show_rows(title, found.rows())
        said = "yes" if found.holds else "no"
        print(f"\nAttacks fail, and succeed on controls: {said}", flush=True)
        right = right and found.holds
    return right


def show_rows(title: str, rows: Iterator[tuple[str, str]]) -> None:
    """Print rows as Markdown."""
    for attack_, found in rows:
        record(title, {"attack": attack_, "found": found})


def parts(data: Path, persons: int, firms: int, number: int, chosen: list[str]) -> int:
    """Run the chosen parts; 1 if one of them fails."""
    failed = 0
    for part in chosen:
        if part == "counts":
            failed |= both(data, persons)
        elif part == "releases":
            failed |= not releases(20_000, 30, 10, 3, ["many", "single", "known"], keys(number))
        elif part == "file":
            failed |= not file(data, persons, number)
        elif part == "joint":
            failed |= not joint(60_000, number)
        elif part == "small":
            failed |= not shown_all([("Small files", attack_small_files(number, 8))])
        elif part == "sparse":
            failed |= not sparse(number)
        elif part == "rates":
            failed |= not rates(data, persons)
        elif part == "proven":
            failed |= not with_proof()
        elif part == "neighbours":
            failed |= not attack_proven(6000, "by region", RHO, by_row=False)
            failed |= not attack_insertions(RHO)
        else:
            failed |= not (sums(data, firms, number) if part == "sums" else survey(data))
    return int(failed)


def main() -> int:
    """Attack one server by its address, or make servers and attack them."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, help="Folder with the demo data; made if missing.")
    parser.add_argument("--persons", type=int, default=1_500_000)
    parser.add_argument(
        "--firms", type=int, default=60_000, help="Size of a register that is made."
    )
    parser.add_argument("--address", help="A server of the data that already runs.")
    parser.add_argument("--keys", type=int, default=1, help="Attack files under so many keys.")
    parser.add_argument("--keyed", action="store_true", help="Use the rules of keyed noise.")
    parser.add_argument(
        "--parts",
        nargs="+",
        choices=PARTS,
        default=list(PARTS),
    )
    given = parser.parse_args()
    sizes = given.persons, given.firms, given.keys, given.parts
    if given.address is None:
        if given.data is not None:
            return parts(given.data, *sizes)
        with tempfile.TemporaryDirectory() as scratch:
            return parts(Path(scratch) / "data", *sizes)
    if given.data is None:
        parser.error("--address needs --data, the folder whose people the server shows.")
    asker = HttpAsker(given.address, "demo")
    show(given.address, attack(asker, Truth(Store(given.data).open("demo")), keyed=given.keyed))
    print(f"\n{asker.asked} questions, {asker.refused} refused.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
