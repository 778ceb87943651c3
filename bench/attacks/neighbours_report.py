"""Neighbours of the presets ``strict`` and ``proven``, and insertions over twelve releases with a proof."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from statistics import NormalDist

import numpy as np
from parts.figures import record

from attacks.neighbours import (
    FALSE_ALARMS,
    Array,
    Counted,
    Noisy,
    Publish,
    Released,
    Report,
    Statistics,
    View,
    attack,
    census,
)
from attacks.releases.known import Dependent, Taught, enter, shown_by
from attacks.releases.series import People, released
from attacks.sums.amounts import (
    BOUND,
    DATASET,
    PaidRelease,
    attack_amounts,
    lines,
    tables_of,
)
from attacks.sums.amounts import Publish as PublishPaid
from lustrum.model.finest import FinestCells
from lustrum.model.records import Records
from lustrum.protect.population.method import ProtectedPopulation
from lustrum.protect.proven.domain import Domain
from lustrum.protect.proven.measure import measure_sums, measure_tables
from lustrum.protect.proven.method import ProvenPopulation
from lustrum.protect.proven.sums import ProvenSums, sums_of

KNOWN = 100_000
FILES: dict[str, tuple[str, ...]] = {"by area": (), "by region": ("area",)}
"""Files of eight variables of the census, and what they leave out; areas are 158, and regions two."""
RELEASES = 12
READERS = ("row", "all rows", "learnt", "noisy tables")
CURVE = "Neighbours: the largest gain of each reader"


def strict(method: ProtectedPopulation, errors: list[float]) -> Publish:
    """Releases of a protected population; mean errors of occupied cells of three variables are added."""

    def publish(cells: FinestCells, number: int) -> Released:
        made = method.protect(cells, hashlib.sha256(b"neighbours %d" % number).digest())
        errors.append(made.agency.over(variables=3)["mean_occupied"])
        return Released(made.cells.codes, made.cells.counts)

    return publish


def proven(method: ProvenPopulation) -> Publish:
    """Releases of a population with a proof, with the noisy tables, which are public."""
    laid_out: list[Domain] = []

    def publish(cells: FinestCells, _: int) -> Released:
        # All files have the same description.
        laid_out[:] = laid_out or [Domain.of(cells.dataset)]
        domain = laid_out[0]
        noisy = measure_tables(domain, method.plan(domain), cells)
        made = method.population(noisy)
        return Released(
            made.codes, made.counts, tuple(_tables_of(domain, noisy.tables, noisy.scales))
        )

    return publish


def paid(rho: float, sums_rho: float) -> PublishPaid:
    """Releases of sums with a proof, with the noisy tables."""
    method = ProvenPopulation(rho=rho)
    spec = ProvenSums(rho=sums_rho, bounds={"pay": float(BOUND)})
    domain = Domain.of(DATASET)

    def publish(records: Records) -> PaidRelease:
        noisy = measure_tables(domain, method.plan(domain), _cells_of(records))
        noisy = replace(noisy, sums=measure_sums(domain, spec, records))
        people = method.population(noisy)
        drawn = noisy.sums["pay"]
        ours = [*_tables_of(domain, noisy.tables, noisy.scales)]
        sums = [*_tables_of(domain, drawn.tables, drawn.scales)]
        spread = max(variance for *_, variance in ours), max(variance for *_, variance in sums)
        made = sums_of(noisy, people)
        file = (
            tables_of(people.codes.astype(np.int64), people.counts, spread[0]),
            tables_of(made.codes.astype(np.int64), made.sums["pay"], spread[1]),
        )
        return PaidRelease(file, (ours, sums))

    return publish


def paid_planted(records: Records) -> PaidRelease:
    """The control: true tables, in which a record decides."""
    cells = _cells_of(records)
    codes = np.stack([records.codes[v.name] for v in DATASET.variables])
    true = (
        tables_of(cells.codes.astype(np.int64), cells.counts, 1e-3),
        tables_of(codes, records.numbers["pay"], 1e-3),
    )
    return PaidRelease(true, true)


def _cells_of(records: Records) -> FinestCells:
    codes = np.stack([records.codes[v.name] for v in DATASET.variables])
    unique, counts = np.unique(codes, axis=1, return_counts=True)
    return FinestCells(DATASET, unique, counts)


def attack_paid(rho: float, sums_rho: float, persons: int = 20_000, files: int = 3) -> bool:
    """Attack amounts: no better than allowed with a proof, and certain on the control."""
    allowed = most_gained(rho + sums_rho), power(rho + sums_rho)
    right = True
    for title, publish in (
        (f"Sums with a proof: rho {rho:g} for counts, {sums_rho:g} for sums", paid(rho, sums_rho)),
        ("Sums without noise (control)", paid_planted),
    ):
        report = attack_amounts(publish, persons, files=files)
        for said, found in lines(report, allowed):
            record(title, {"attack": said, "found": found})
        right &= within_promise(report, allowed) == (publish is not paid_planted)
    return right


def within_promise(report: Report, allowed: tuple[float, float]) -> bool:
    """Whether no reader certainly does better than a promise allows."""
    gains = [report.worst(reader)[2] for reader in report.readers]
    slack = (
        4
        * (0.25 / min(sum(map(len, side)) for one in report.members.values() for side in one))
        ** 0.5
    )
    found = [report.membership(reader)[1] for reader in report.members]
    return max(gains) <= allowed[0] and max(found) <= allowed[1] + slack


def planted(cells: FinestCells, _: int) -> Released:
    """The control: true finest cells."""
    return Released(cells.codes, cells.counts)


def _tables_of(
    domain: Domain, tables: Mapping[tuple[int, ...], Array], scales: Mapping[tuple[int, ...], float]
) -> Iterator[Noisy]:
    """Noisy tables by variables, where several are one axis."""
    variables = domain.dataset.variables
    for subset, table in tables.items():
        axes = [domain.axes[axis] for axis in subset]
        places = tuple(place for axis in axes for place in axis.variables)
        at = np.ix_(*(np.arange(len(axis)) for axis in axes))
        codes = [row[here] for axis, here in zip(axes, at, strict=True) for row in axis.codes]
        whole = np.zeros([len(variables[place].codes) for place in places])
        whole[tuple(codes)] = table
        yield places, whole, scales[subset] ** 2


def power(rho: float) -> float:
    """The power of the best test of one record at 1 % false alarms that a promise of rho allows."""
    normal = NormalDist()
    return normal.cdf((2 * rho) ** 0.5 - normal.inv_cdf(1 - FALSE_ALARMS))


def most_gained(rho: float) -> float:
    """The largest gain that a promise of rho allows: a record is replaced by any other."""
    return 2 * NormalDist().cdf((rho / 2) ** 0.5) - 1


def most_named(rho: float) -> float:
    """How often counts of 0, 1 and 2, alike in number, are named at most."""
    return (4 * NormalDist().cdf((rho / 2) ** 0.5) - 1) / 3


def shown(case: str, report: Report, error: float | None, *, by_row: bool) -> None:
    """Record the largest gains of a case, and all of them if asked."""
    bounds = [report.worst(reader)[2] for reader in READERS if reader in report.readers]
    members = [report.membership(reader)[1] for reader in READERS if reader in report.readers]
    row: dict[str, str | float | None] = {
        "case": case,
        "mean error, three-way": error,
        "largest gain, at least (points)": 100 * max(*bounds, 0.0),
        "most members found (%)": 100 * max(members),
    }
    for reader in READERS:
        row[f"{reader}: gain (points)"] = row[f"{reader}: members found (%)"] = None
        if reader in report.readers:
            where, one, bound = report.worst(reader)
            area, found = report.membership(reader)
            row[f"{reader}: gain (points)"] = (
                f"{100 * one.gain:.1f}, at least {100 * bound:.1f} ({where})"
            )
            row[f"{reader}: members found (%)"] = f"{100 * found:.1f} (AUC {area:.2f})"
    record(CURVE, row)
    if by_row:
        for line in report.rows():
            record(f"Neighbours by variable and expected people of the row: {case}", line)


def attack_strict(
    persons: int, file: str, method: ProtectedPopulation, case: str, *, by_row: bool
) -> Report:
    """Attack a protected population of people of the census."""
    errors: list[float] = []
    make, known = (census(number, FILES[file]) for number in (persons, KNOWN))
    report = attack(make, strict(method, errors), known=known)
    shown(f"{case}: {persons:,} people {file}", report, float(np.mean(errors)), by_row=by_row)
    return report


def attack_proven(persons: int, file: str, rho: float, *, by_row: bool, targets: int = 3) -> bool:
    """Attack a population with a proof; whether no reader does better than the promise allows."""
    make, known = (census(number, FILES[file]) for number in (persons, KNOWN))
    publish = proven(ProvenPopulation(rho=rho))
    report = attack(make, publish, shadows=min(targets, 2), targets=targets, known=known)
    case = f"proven, rho {rho:g}: {persons:,} people {file}"
    shown(case, report, None, by_row=by_row)
    gains = [report.worst(reader)[2] for reader in report.readers]
    found = [report.membership(reader)[1] for reader in report.members]
    return max(gains) <= most_gained(rho) and max(found) <= power(rho)


def insertions(
    make: Callable[[int], People], publish: Publish, cells: int, releases: int = RELEASES
) -> dict[str, Taught]:
    """Add a record of one's own to so many cells of each count after every release, and read them all.

    The reader takes his own records off, adds up what releases say, and is taught by cells with a like sum; one
    without the file by how many people the statistics know beside a cell, which is alike for counts of 0 and 1.
    """
    world, others = make(1), make(900)
    sizes = [len(v.codes) for v in world.dataset.variables]
    everybody = Counted(others.codes, np.ones(others.codes.shape[1]), sizes)
    truth = released(world.cells(), world.cells())

    def codes_of(numbers: Array) -> Array:
        return np.stack(np.unravel_index(numbers.astype(np.int64), sizes))

    def around(numbers: Array) -> Array:
        """How many people the statistics know beside each cell."""
        every, codes = range(len(sizes)), codes_of(numbers)
        rest = [tuple(p for p in every if p != place) for place in every]
        return np.asarray(sum(everybody.of(places, codes, people=True) for places in rest))

    one, two = (world.rng.permutation(truth.numbers[truth.true == n])[:cells] for n in (1, 2))
    few = min(one.size, two.size)
    empty = np.setdiff1d(np.arange(np.prod(sizes)), truth.numbers.astype(np.int64))
    near = around(empty) + world.rng.random(empty.size)
    order = np.argsort(near)
    like = np.searchsorted(near[order], around(one[:few]) + world.rng.random(few))
    none = empty[order[np.unique(np.minimum(like, empty.size - 1))]]
    numbers = np.concatenate([none, one[:few], two[:few]])
    numbers = numbers.astype(np.uint64)
    codes = codes_of(numbers)
    said: dict[str, Array] = {}
    for number in range(releases):
        now = world.cells()
        made = publish(now, number)
        file = FinestCells(world.dataset, made.codes, made.counts)
        says = {"file": shown_by(released(file, file), numbers) - number}
        if made.noisy:
            own = tuple(
                (places, table - number * _own(places, codes, table.shape), variance)
                for places, table, variance in made.noisy
            )
            view = View(everybody, Statistics(everybody, int(now.counts.sum())), own)
            says["noisy tables"] = view.odds(None, codes, view.of_noise())
        said = {reader: said.get(reader, 0) + heard for reader, heard in says.items()}
        enter(world, codes)
    counts = np.repeat(np.arange(3), (none.size, few, few)).tolist()
    said["no file"] = around(numbers)
    return {reader: _taught(score, counts) for reader, score in said.items()}


def _own(places: tuple[int, ...], codes: Array, shape: tuple[int, ...]) -> Array:
    """How many of the reader's own cells each cell of a table holds."""
    at = np.ravel_multi_index(tuple(codes[place] for place in places), shape)
    return np.bincount(at, minlength=int(np.prod(shape))).reshape(shape)


def _taught(score: Array, counts: list[int]) -> Taught:
    edges = np.unique(np.quantile(score, np.linspace(0, 1, 9)[1:-1]))
    return Taught.of(np.searchsorted(edges, score, side="right").tolist(), counts)


def kin(persons: int, types: int = 400, own: float = 0.1) -> Callable[[int], People]:
    """Makers of people of the same few types, by a seed."""
    return lambda seed: Dependent(persons, seed, types, own, drawn=5)


def attack_insertions(rho: float, cells: int = 300) -> bool:
    """Insertions over twelve releases that share rho: no better than allowed, and certain on the control."""
    part = proven(ProvenPopulation(rho=float(f"{rho / RELEASES:.6g}")))
    right = True
    for case, publish in ((f"proven, rho {rho:g} in all", part), ("true cells (control)", planted)):
        found = insertions(kin(6000), publish, cells)
        named = {reader: taught.named for reader, taught in found.items()}
        allowed = most_named(rho) if "noisy tables" in named else None
        record(
            f"Insertions over {RELEASES} releases: counts of 0, 1 and 2 named",
            {
                "case": case,
                "without the file": str(named["no file"]),
                "by the file": str(named["file"]),
                "by noisy tables": str(named.get("noisy tables", "")),
                "the promise allows (%)": allowed and 100 * allowed,
            },
        )
        most = max(one.odds for reader, one in named.items() if reader != "no file")
        right &= most > 0.95 if allowed is None else most <= allowed
    return right
