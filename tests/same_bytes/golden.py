"""Golden bytes: small results of everything that decides or publishes, as digests.

``PYTHONPATH=tests python -m same_bytes.golden`` prints ``{name: sha256}`` of all groups; names of groups, such
as ``methods maps``, ask for some, and ``--write`` keeps all in ``digests.json``, with which every processor
compares its own. Floats go in with all their bits.
"""

from __future__ import annotations

import dataclasses
import enum
import hashlib
import io
import json
import os
import re
import struct
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from same_bytes import shim  # before the package itself, which it rewrites if that is asked for
from same_bytes.inputs import (
    axis_of,
    counted,
    firms,
    magnitudes,
    people,
    register,
    skewed,
    stored,
    town,
)

DIGESTS = Path(__file__).resolve().parent / "digests.json"
Results = Iterator[tuple[str, Any]]
GROUPS: dict[str, Callable[[], Results]] = {}
KEY = b"a key of the agency of 32 bytes."


def group(make: Callable[[], Results]) -> Callable[[], Results]:
    GROUPS[make.__name__.strip("_")] = make
    return make


# --- digests --------------------------------------------------------------------------------------


def feed(into: Any, value: Any) -> None:
    """Add everything that a value says to a digest, floats bit by bit."""
    from lustrum.model.release import Release
    from lustrum.model.table import Table

    def put(word: str, content: bytes = b"") -> None:
        into.update(f"{word} {len(content)}:".encode() + content)

    if isinstance(value, np.ndarray):
        if value.dtype == object:
            feed(into, value.tolist())
        else:
            put(f"{value.dtype.str} {value.shape}", np.ascontiguousarray(value).tobytes())
    elif isinstance(value, np.generic):
        feed(into, np.asarray(value))
    elif isinstance(value, enum.Enum):
        put("word", str(value.value).encode())
    elif isinstance(value, float):
        put("float", struct.pack("<d", value))
    elif value is None or isinstance(value, bool | int | Fraction):
        put(type(value).__name__, str(value).encode())
    elif isinstance(value, bytes | bytearray):
        put("bytes", bytes(value))
    elif isinstance(value, str):
        put("str", value.encode())
    elif isinstance(value, Path):
        put("file", value.read_bytes())
    elif isinstance(value, set | frozenset):
        feed(into, sorted(value, key=repr))
    elif isinstance(value, Mapping):
        put(f"mapping {len(value)}")
        for key in value:
            feed(into, key)
            feed(into, value[key])
    elif isinstance(value, list | tuple | zip | map):
        items = list(value)
        put(f"list {len(items)}")
        for item in items:
            feed(into, item)
    elif hasattr(value, "tocsr"):
        plain = value.tocsr()
        feed(into, (plain.shape, plain.indptr, plain.indices, plain.data))
    elif hasattr(value, "transitions") and hasattr(value, "support"):
        rows = value.transitions(np.arange(12, dtype=np.int64))
        feed(into, (type(value).__name__, rows.origin, rows.published, rows.probability))
    elif hasattr(value, "to_pylist"):
        feed(into, (value.schema.names, [c.to_pylist() for c in value.columns]))
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = [f.name for f in dataclasses.fields(value)]
        if isinstance(value, Table):
            fields = ["values", "status", "keys"]
        if isinstance(value, Release) and value.margins is None:
            fields.remove("margins")  # digests are older than these
        kind = (
            "Release" if isinstance(value, Release) else type(value).__name__
        )  # a study is one, too
        put(f"{kind} {len(fields)}")
        for name in fields:
            feed(into, getattr(value, name, None))
    elif hasattr(value, "to_mapping"):
        feed(into, value.to_mapping())
    else:
        raise TypeError(f"no digest of {type(value)}")


def digest(value: Any) -> str:
    into = hashlib.sha256()
    feed(into, value)
    return into.hexdigest()


def folder(path: Path) -> dict[str, bytes]:
    """All files in a folder by name."""
    files = sorted(p for p in path.rglob("*") if p.is_file())
    return {p.relative_to(path).as_posix(): p.read_bytes() for p in files}


def workbook(content: bytes) -> dict[str, bytes]:
    """The parts of a workbook without the day on which it was made."""
    with zipfile.ZipFile(io.BytesIO(content)) as book:
        names = sorted(set(book.namelist()) - {"docProps/core.xml"})
        return {n: timeless(book.read(n)) for n in names}


# --- methods --------------------------------------------------------------------------------------

SPECS: dict[str, list[dict[str, Any]]] = {
    "additive-noise": [
        {"sd": 2.0, "clamp": True},
        {"distribution": "laplace"},
        {"sd": 0.1, "relative": True},
    ],
    "cell-key": [
        {},
        {"ptable": "designed", "largest_change": 2, "variance": 1.0},
        {"totals": "own"},
        {"additive": True},
    ],
    "controlled-adjustment": [{"steps": 5000}, {"norm": "l2", "steps": 5000}],
    "controlled-rounding": [{}, {"base": 5, "distance": "l2"}, {"small_only": True}],
    "conventional-rounding": [{"base": 5}],
    "markov-perturbation": [{}, {"theta": 0.2, "rule": "unit"}],
    "none": [{}],
    "poisson-sampling": [{"fraction": 0.5}],
    "random-rounding": [{}, {"base": 5}],
    "semi-controlled-rounding": [{}],
    "simple-sampling": [{"fraction": 0.5}],
    "simulated-tables": [{"burn": 10}, {"burn": 10, "target": "uniform"}],
    "small-count-rounding": [{}, {"how": "random"}],
    "stochastic-perturbation": [{}, {"controlled": True}, {"version": "invariant"}],
    "suppression": [
        {"work": 300},
        {"cost": "unity", "zeros": True, "attacker": "singletons", "work": 300},
    ],
    "table-swapping": [{"order": 1, "sweeps": 5}],
}
"""Methods for tables of counts, each with parameters; chance comes from keys and from a seed."""

SUMS: dict[str, list[dict[str, Any]]] = {
    "cell-key-magnitude": [{}, {"ranks": 3, "shares": (1.0, 0.5, 0.2)},
                           {"ranks": 3, "scale": "mean"}, {"ranks": 2, "scale": "spread"}],
    "multiplicative-noise": [{}],
}  # fmt: skip
RECORDS: dict[str, list[dict[str, Any]]] = {
    "multiplicative-noise": [{"measure": "income"}],
    "post-randomisation": [
        {"variable": "job", "stay": 0.8},
        {"variable": ("job", "sex"), "joint": True, "invariant": True},
        {"variable": "age", "level": "broad", "controlled": True},
    ],
    "poisson-sampling": [{"fraction": 0.3}],
    "record-swapping": [
        {"geography": "area", "household": None, "rate": 0.2, "control": ("sex",)},
        {"geography": "area", "household": None, "target": "risk", "risk_on": (("age", "job"),)},
    ],
    "simple-sampling": [{"fraction": 0.3}],
    "stratified-sampling": [{"by": "area", "fraction": 0.2, "allocation": "root"}],
}
ELSEWHERE = {
    "differential-privacy", "protected-magnitudes", "protected-population", "proven-population",
    "proven-sums",
}  # fmt: skip


def outcome(make: Callable[[], Any]) -> Any:
    """What comes out, or the sentence of a refusal."""
    from lustrum.model import InputError

    try:
        return make()
    except InputError as error:
        if os.environ.get("GOLDEN_TIMES"):
            print(f"         refused: {error}", file=sys.stderr)
        return f"refused: {error}"


@group
def methods() -> Results:
    from lustrum.model.parameters import spec_from_words
    from lustrum.model.plugins import load, names
    from lustrum.model.records import Records
    from lustrum.protect.abilities import abilities_of
    from lustrum.testing import example_tables

    assert set(SPECS) | set(SUMS) | set(RECORDS) | ELSEWHERE == set(names("lustrum.methods"))
    tables = [*example_tables(3, 1), counted(5, (5, 4, 3))]

    def spec(name: str, words: dict[str, Any]) -> Any:
        return spec_from_words(load("lustrum.methods", name), words, name)

    for name, entries in SPECS.items():
        for words in entries:
            method, found = spec(name, words), []
            for table in tables[:-1] if "attacker" in words else tables:
                if abilities_of(method).repeatable:
                    found.append(outcome(lambda m=method, t=table: m.apply(t)))
                found.append(
                    outcome(lambda m=method, t=table: m.apply(t, np.random.default_rng(3)))
                )
            yield f"{name} {words}", found
    sums = [magnitudes(1, (5, 4)), magnitudes(2, (6,))]
    for name, entries in SUMS.items():
        for words in entries:
            method = spec(name, words)
            found = [
                outcome(lambda m=method, t=t, s=seed: m.apply(t, s))
                for t in sums
                for seed in (None, 3)
            ]
            yield f"{name} {words}", found
    count = 300
    frame = people(count)
    records = Records(
        town(),
        codes={
            v.name: np.array([v.codes.index(c) for c in frame.column(v.name).to_pylist()], np.uint8)
            for v in town().variables
        },
        numbers={"income": frame.column("income").to_numpy()},
        ids={"id": np.arange(count)},
        keys=np.random.default_rng(2).integers(0, 2**64, count, dtype=np.uint64),
    )
    for name, entries in RECORDS.items():
        for words in entries:
            made = outcome(lambda n=name, w=words: spec(n, w).apply_records(records, 5))
            parts = (
                made if isinstance(made, str) else (made.codes, made.numbers, made.ids, made.keys)
            )
            yield f"{name} of records {words}", parts
    private = load("lustrum.methods", "differential-privacy")
    for words in (
        {"epsilon": 1.0},
        {"mechanism": "gaussian", "rho": 0.1},
        {"mechanism": "gaussian", "epsilon": 1.0, "delta": 1e-6, "post": "none"},
        {"epsilon": 2.0, "post": "consistent"},
    ):
        draws = np.random.default_rng(4)
        yield f"differential-privacy {words}", [private(**words).rehearse(t, draws) for t in tables]


# --- protected populations, sums and surveys ------------------------------------------------------

POLICY = """dataset = "{name}"
[rules]
nested_only = false
[risk]
limit = 1.0
[[before]]
method = "protected-population"
base = 3
sweeps = 2
{sums}[protect]
method = "none"
end = true
"""
SUM_POLICY = """max_variables = 2
[[before]]
method = "protected-magnitudes"
p = 10.0
max_variables = 2
sweeps = 2
"""


def protected(result: Any) -> tuple[Any, ...]:
    cells, memory = result.cells, result.memory
    return (cells.codes, cells.counts, memory.codes, memory.counts, result.public.to_mapping())


def summed(made: Any) -> tuple[Any, ...]:
    memory = made.memory
    return (
        made.sums.codes, made.sums.sums, made.records, made.carried.record, made.carried.codes,
        made.carried.values, memory.record, memory.home, memory.carried, memory.cell, memory.true,
        memory.shown, made.public.to_mapping(), made.agency.measures,
    )  # fmt: skip


@group
def populations() -> Results:
    from lustrum.model.finest import FinestCells
    from lustrum.protect import ProtectedPopulation
    from lustrum.publish.bundles.write import pack_bundle
    from lustrum.testing import example_populations

    policy = POLICY.format(name="example", sums="").encode()
    for number, cells in enumerate(example_populations(3, 1)):
        for words in ({"sweeps": 2}, {"base": 5, "sweeps": 1, "empty_share": 0.2}):
            result = ProtectedPopulation(**words).protect(cells, KEY)
            yield f"population {number} {words}", protected(result)
            packed = pack_bundle(result.cells, policy, result.public)
            yield f"bundle {number} {words}", (packed.digest, packed.files)
            later = ProtectedPopulation(**words).protect(cells, KEY, previous=result.memory)
            yield f"second population {number} {words}", protected(later)
            more = (np.arange(len(cells)) % 5 == 0).astype(np.int64)
            grown = FinestCells(
                cells.dataset, cells.codes, cells.counts + more, cells.keys + more.astype(np.uint64)
            )
            later = ProtectedPopulation(**words).protect(grown, KEY, previous=result.memory)
            yield f"changed population {number} {words}", protected(later)


@group
def proven() -> Results:
    """People from noisy tables: the noise itself, and the plan, are drawn once and then a file."""
    from fractions import Fraction

    from lustrum.protect.proven.domain import Domain, laid_out
    from lustrum.protect.proven.method import ProvenPopulation
    from lustrum.protect.proven.noisy import NoisyTables
    from lustrum.protect.proven.plan import MeasurementPlan
    from lustrum.protect.proven.report import Remade, public_report, simulated
    from lustrum.testing import example_populations

    for number, cells in enumerate(example_populations(3, 1)):
        domain, rng = Domain.of(cells.dataset), np.random.default_rng(number)
        subsets = domain.subsets(min(3, len(domain.axes)))
        plan = MeasurementPlan(domain.sizes, dict.fromkeys(subsets, Fraction(1, 10)))
        truth = laid_out(domain, cells)
        tables = {}
        for subset in subsets:
            noise = rng.integers(-5, 6, domain.table_shape(subset))
            tables[subset] = domain.table(truth, subset) + noise * domain.possible_table(subset)
        scales = dict.fromkeys(subsets, 3.25)
        noisy = NoisyTables(domain, plan, int(truth.sum()), tables, scales, {})
        method = ProvenPopulation(1.0)
        made = method.population(noisy, seed=5)
        yield f"people {number}", (made.codes, made.counts)
        remade = Remade(noisy, made, None)
        # All draws of a population take eight times as long as its people: where these take long, one is made.
        if len(domain.axes) == 2:
            again = remade.again(method)
        else:
            again = [Remade.of(method, simulated(noisy, made, rng, None))]
        yield f"report {number}", public_report(method, remade, again, {}).to_mapping()


@group
def sums() -> Results:
    from protect.magnitudes.registers import REGISTERS, SCENES, Scene, result

    for name, words in SCENES.items():
        found = Scene(*words).carried()
        yield f"carried {name}", (found.record, found.piece, found.pieces, found.carrier)
    for name in REGISTERS:
        yield f"sums {name}", summed(result(name))


@group
def bundles() -> Results:
    """What `lustrum protect` writes, and the agency's report about it."""
    from rich.console import Console

    from lustrum.cli.protect import protect_dataset

    with tempfile.TemporaryDirectory() as place:
        worlds = ((people(500), town(), ""), (firms(150), register(), SUM_POLICY))
        for frame, dataset, more in worlds:
            root = Path(place) / dataset.name
            stored(root, frame, dataset)
            (root / "policies").mkdir()
            policy = root / "policies" / f"{dataset.name}.toml"
            policy.write_text(POLICY.format(name=dataset.name, sums=more))
            made = protect_dataset(
                dataset.name, root, Console(file=io.StringIO(), width=200), workers=1
            )
            for part in ("bundles", "reports"):
                for name, content in folder(root / part).items():
                    yield f"{dataset.name}: {part}/{plain_name(name)}", timeless(content)
            yield f"{dataset.name}: together", (made.digest, made.both, made.audits, made.both_sums)
            if more:
                yield f"{dataset.name}: sums", summed(made.magnitudes)


def plain_name(name: str) -> str:
    """A name without the digest that is a part of it."""
    return re.sub(r"[0-9a-f]{8,}", "digest", name)


def timeless(content: bytes) -> bytes:
    """Without the day and the version of the software."""
    from lustrum._version import __version__

    content = content.replace(__version__.encode(), b"VERSION")
    content = re.sub(rb'"20\d{6} 00:00"', b'"DAY"', content)
    return re.sub(rb"20\d\d-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|\+00:00)?)?", b"DAY", content)


@group
def surveys() -> Results:
    """Respondents with shared weights, and tables with standard errors."""
    from lustrum.model import Dataset, TableQuery
    from lustrum.protect import ProtectedPopulation
    from lustrum.protect.weighted import ProtectedSurvey, SurveyRecords
    from lustrum.public.bundle.respondents import respondents_bytes
    from lustrum.public.bundle.weighted import WeightedNumbers
    from lustrum.survey import Design, Reliability

    dataset = Dataset.from_mapping(
        {
            "dataset": {"name": "panel", "units": "people"},
            "variables": [
                {"name": "sex", "codes": ["f", "m"]},
                {"name": "area", "codes": list("abcd")},
                {"name": "age", "codes": list("xyz")},
            ],
            "measures": [{"name": "hours", "decimals": 1}],
            "weights": [{"name": "weight", "decimals": 1}],
        }
    )
    rng = np.random.default_rng(6)
    count = 400
    codes = np.stack([rng.integers(0, len(v.codes), count) for v in dataset.variables])
    cluster = rng.integers(0, 40, count)
    weights = (100 + rng.integers(0, 300, count)) / 8
    design = Design(weights, codes[1] // 2, cluster + 40 * (codes[1] // 2), lonely="centre")
    keys = rng.integers(0, 2**64, count, dtype=np.uint64)
    hours = {"hours": rng.integers(0, 80, count) * 1.0}
    records = SurveyRecords(dataset, codes, design, keys, int(weights.sum()), hours)
    method = ProtectedSurvey(classes=("area", "sex"), measure_classes=("age", "sex"))
    made, *_ = method.protect(records, ProtectedPopulation(base=3, sweeps=1), KEY)
    yield "respondents", respondents_bytes(made)
    yield "respondents' errors", (made.count_errors, made.weight_spread, made.weight_noise)
    numbers = WeightedNumbers(made, Reliability(), workers=1)
    base: dict[str, Any] = {"dataset": "panel", "weight": "weight"}
    for words in (
        {"by": ["sex", "area"], "totals": True},
        {"by": ["age", "sex"], "measure": "hours"},
    ):
        query = TableQuery.from_mapping({**base, **words})
        yield f"weighted {words}", numbers.release(query)
    over = TableQuery.from_mapping({**base, "by": ["area"], "measure": "hours"})
    under = TableQuery.from_mapping({**base, "by": ["area"]})
    found = numbers.quotients(over, under, None)
    yield "quotients", (found.values, found.variances, found.respondents)


# --- suppression, rounding, adjustment ------------------------------------------------------------


@group
def suppression() -> Results:
    from lustrum.protect.suppression import (
        Suppression,
        cell_costs,
        linked_patterns,
        suppress,
        with_intervals,
    )
    from protect.suppression.test_golden import flat, grouped, made

    problems = {
        "two-way": made((flat(8), flat(7)), 6, 1),
        "hierarchy": made((grouped(3, 3), grouped(2, 3)), 8, 3),
        "three-way": made((flat(4), flat(4), flat(3)), 8, 1),
    }
    algorithms = ("auto", "exact", "quick", "boxes")
    for name, problem in problems.items():
        for algorithm in algorithms:
            found = suppress(problem, algorithm=algorithm, work=1500, workers=1)
            yield f"{algorithm} {name}", pattern(found)
        before = np.flatnonzero(found.secondary)[::2]
        yield f"previous {name}", pattern(suppress(problem, previous=before, work=500, workers=1))
    # Larger ones, whose searches make patterns anew in neighbourhoods.
    for name, axes, primaries in (
        ("wide", (flat(14), flat(12)), 16),
        ("deep", (grouped(3, 4), grouped(3, 3)), 14),
        ("cube", (flat(5), flat(5), flat(4)), 18),
    ):
        problem = made(axes, primaries, 5)
        yield f"auto {name}", pattern(suppress(problem, work=6000, workers=1))
    table, cube = magnitudes(3, (6, 5)), magnitudes(4, (4, 4, 3))
    linked = [cube.take([range(5), range(5), [3]]), cube.take([range(5), [4], range(4)])]
    rules = ({"rule": "p-percent", "p": 10.0}, {"rule": "dominance", "n": 2, "k": 85.0})
    for rule in rules:
        spec = Suppression(rule=rule)
        yield f"method {rule}", spec.apply(table)
        patterns = linked_patterns([spec, spec], linked, workers=1)
        yield f"linked {rule}", [pattern(one) for one in patterns]
    yield "intervals", with_intervals(spec.apply(table), workers=1)
    values = table.values.ravel()
    for power in (0.0, 0.3, 0.5):
        yield f"costs {power}", cell_costs("box-cox", values, power=power)
    costs = {"cost": "box-cox", "power": 0.3, "work": 500}
    yield f"method {costs}", Suppression(rule=rules[0], **costs).apply(table)


def pattern(found: Any) -> tuple[Any, ...]:
    return (
        found.suppressed, found.cost, found.lower_bound, found.algorithm, found.why, found.steps,
        found.safe, found.audited,
    )  # fmt: skip


@group
def rounding() -> Results:
    from lustrum.model.parameters import spec_from_words
    from lustrum.model.plugins import load
    from lustrum.numeric.structure import Structure
    from lustrum.protect.rounding.controlled.local import round_inner

    tables = {
        "two-way": counted(1, (7, 6)), "three-way": counted(2, (4, 4, 3)),
        "large": counted(3, (9, 8, 5), 60),
    }  # fmt: skip
    kind = load("lustrum.methods", "controlled-rounding")
    for name, table in tables.items():
        for words in ({}, {"base": 5}, {"distance": "l2"}, {"unbiased": True}):
            method = spec_from_words(kind, words, "controlled-rounding")
            for seed in (None, 3):
                yield (
                    f"{name} {words} {seed}",
                    outcome(lambda m=method, t=table, s=seed: m.apply(t, s)),
                )
    cube = skewed(4, (8, 7, 6), 40)
    structure = Structure.of_tables([tuple(axis_of(f"v{i}", n) for i, n in enumerate(cube.shape))])
    for base in (3, 5):
        yield (
            f"search {base}",
            round_inner(cube.ravel(), structure, base, rng=np.random.default_rng(2)),
        )


@group
def adjustment() -> Results:
    from lustrum.protect.adjustment import ControlledAdjustment

    tables = {
        "two-way": counted(1, (6, 5)), "three-way": counted(2, (4, 3, 3)),
        "sums": magnitudes(3, (5, 4)),
    }  # fmt: skip
    for name, table in tables.items():
        rule = (
            {"rule": "p-percent", "p": 10.0}
            if name == "sums"
            else {"rule": "threshold", "minimum": 4}
        )
        for words in (
            {}, {"norm": "l2"}, {"directions": "exact"}, {"norm": "l2", "weights": "unit"},
            {"keep": "grand-total"}, {"directions": "random"}, {"directions": "relaxed"},
            {"directions": "balanced"},
        ):  # fmt: skip
            yield (
                f"{name} {words}",
                outcome(
                    lambda t=table, w=words, r=rule: ControlledAdjustment(
                        rule=r, steps=3000, **w
                    ).apply(t, 3)
                ),
            )


# --- audit ----------------------------------------------------------------------------------------


@group
def audit() -> Results:
    from lustrum.audit import (
        BetaBinomial,
        Insider,
        Outsider,
        PublishedTable,
        attack,
        audit_tables,
        best_bounds,
        bounds,
        exactly_disclosed,
        from_margins,
        from_release,
        from_suppression,
    )
    from lustrum.audit.certificate import certify
    from lustrum.audit.fibre import (
        FibreMargins,
        count_tables,
        distribution,
        enumerate_fibre,
        sample_fibre,
    )
    from lustrum.protect import RandomRounding, Suppression

    def ends(found: Any) -> tuple[Any, ...]:
        return (found.low, found.high)

    table = counted(8, (5, 4))
    hidden = Suppression(rule={"rule": "threshold", "minimum": 3}).apply(table)
    rounded = RandomRounding(base=3).apply(table)
    cube = counted(9, (3, 3, 3), 12)
    inner = cube.values[:-1, :-1, :-1]
    axes = {"a": 3, "b": 3, "c": 3}
    margins = from_margins(
        axes, {("a", "b"): inner.sum(2), ("a", "c"): inner.sum(1), ("b", "c"): inner.sum(0)}
    )
    known = {
        "hidden": from_suppression(table, ~hidden.shown),
        "rounded": from_release(rounded),
        "margins": margins,
    }
    for name, facts in known.items():
        yield f"best bounds {name}", ends(best_bounds(facts, workers=1))
        yield f"bounds {name}", ends(bounds(facts, workers=1))
        yield f"whole bounds {name}", ends(bounds(facts, integer=True, workers=1))
        yield f"disclosed {name}", exactly_disclosed(facts)
        yield f"certificate {name}", certify(facts, slice(0, 6)).to_json()
        for who in (Outsider(), Insider(1)):
            for prior in (None, BetaBinomial()):
                yield (
                    f"belief {name} {who} {prior}",
                    outcome(lambda f=facts, w=who, p=prior: attack(f, w, p, workers=1)),
                )
    belief = attack(rounded, prior=BetaBinomial(), workers=1)
    yield "belief of a release", belief
    published = PublishedTable.exact(table.axes, table.values, ~hidden.shown)
    yield "report", audit_tables([published])
    square = FibreMargins.two_way([5, 4, 3], [6, 2, 4])
    whole = FibreMargins.of(inner, [(0, 1), (0, 2), (1, 2)])
    for target in ("uniform", "hypergeometric"):
        yield f"two-way fibre {target}", distribution(square, target)
        yield (
            f"cube fibre {target}",
            outcome(lambda t=target: distribution(whole, t, "exact", nodes=2000)),
        )
        for name, given in (("square", square), ("cube", whole), ("hidden", known["hidden"])):
            yield (
                f"sample {name} {target}",
                sample_fibre(given, target=target, rng=3, draws=60, chains=2, workers=1),
            )
    yield "fibre", enumerate_fibre(square).tables
    yield "tables", count_tables([5, 4, 3], [6, 2, 4])


# --- risk, utility, maps --------------------------------------------------------------------------


WORDS: dict[str, dict[str, Any]] = {
    "between-variance-change": {"area": "v0", "variable": "v1", "category": "v10"},
    "conditional-error": {"variable": "v0", "given": ("v1",)},
}


@group
def measures() -> Results:
    from lustrum.audit import attack
    from lustrum.model.plugins import load, names
    from lustrum.protect import CellKey, RandomRounding, Suppression
    from lustrum.risk import (
        EntropyRisk,
        LogLinear,
        PolyaUrn,
        cell_entropy,
        choose_model,
        estimate_risk,
        slice_risks,
    )

    table = counted(11, (6, 5), 25)
    cube = counted(12, (4, 3, 3), 25)
    releases = [
        RandomRounding(base=3), CellKey(), Suppression(rule={"rule": "threshold", "minimum": 3}),
    ]  # fmt: skip
    pairs = [(t, method.apply(t)) for t in (table, cube) for method in releases]
    words = {"sample-r2": {"fraction": 0.1, "draws": 20}, "attribute-inference": {"fewest": 1}}
    for name in names("lustrum.risks"):
        spec = load("lustrum.risks", name)(**words.get(name, {}))
        yield (
            f"risk {name} before",
            [outcome(lambda s=spec, t=t: s.before(t)) for t in (table, cube)],
        )
        if spec.measures_releases:
            yield (
                f"risk {name} after",
                [outcome(lambda s=spec, t=t, r=r: s.after(t, r)) for t, r in pairs],
            )
    for name in names("lustrum.utilities"):
        spec = load("lustrum.utilities", name)(**WORDS.get(name, {}))
        yield f"utility {name}", [outcome(lambda s=spec, t=t, r=r: s.of(t, r)) for t, r in pairs]
    for sample in (table, cube):
        people = 20 * int(sample.values[(-1,) * sample.values.ndim])
        yield (
            f"estimates {sample.values.ndim}",
            estimate_risk(sample, people, draws=40, rng=3).models,
        )
        models = [LogLinear(), PolyaUrn()]
        yield (
            f"chosen {sample.values.ndim}",
            str(choose_model(sample, models, by="cv", rng=3, folds=3, N=people)),
        )
        yield f"slices {sample.values.ndim}", slice_risks(EntropyRisk(), sample, ["v0"])
    yield "cell entropy", cell_entropy(attack(releases[0].apply(table), workers=1))


@group
def maps() -> Results:
    import lustrum as lu
    from lustrum.model import Table
    from lustrum.rumap import find_frontier, grid, series_map, space
    from lustrum.rumap.charts import distribution_chart, risk_table_chart, series_chart, svg_of
    from lustrum.rumap.choose import best_of
    from lustrum.rumap.report import MapReport, report_html
    from lustrum.rumap.search import Span

    table = Table.from_counts(skewed(7, (5, 4, 3), 40), names=["area", "age", "faith"])
    methods = [
        *grid("random-rounding", base=[3, 5]), *grid("conventional-rounding", base=3),
        *grid("markov-perturbation", theta=0.2), *grid("differential-privacy", epsilon=1.0),
        *grid("cell-key"), *grid("none"),
    ]  # fmt: skip
    found = lu.rumap(table, methods, replications=3, workers=1)
    yield "points", found.to_arrow()
    yield "draws", found.draws_to_arrow()
    yield "frontier", [p.label for p in found.frontier()]
    yield "chart", json.dumps(found.chart(limit=0.2, corners=True).to_dict())
    yield "picture", svg_of(found.chart(limit=0.2))
    choice = best_of(found, 0.4)
    yield "choice", choice.reason
    yield "report", timeless(report_html(MapReport(found, choice, 0.4)).encode())
    release = found.release("random-rounding base 3")
    yield "risk chart", json.dumps(risk_table_chart(table, release).to_dict())
    yield "distribution chart", json.dumps(distribution_chart(table, release).to_dict())
    small = Table.from_counts(
        [[1, 14, 3, 0], [17, 83, 2, 9], [5, 0, 31, 4]], names=["area", "faith"]
    )
    series = series_map(small, grid("random-rounding", base=3), replications=2)
    yield "series", series.to_arrow()
    yield "series chart", json.dumps(series_chart(series).to_dict())
    spaces = [space("random-rounding", base=Span(2, 9))]
    yield "search", find_frontier(small, spaces, trials=4, replications=2).to_arrow()


# --- answers --------------------------------------------------------------------------------------


@group
def answers() -> Results:
    """Tables by the server from bundles, in every format, with figures; and by keyed methods."""
    from fastapi.testclient import TestClient

    from lustrum.answer import TableService, answer
    from lustrum.model import TableQuery
    from lustrum.model.plugins import names
    from lustrum.policy import Policy
    from lustrum.publish.bundles.make import make_bundle
    from lustrum.publish.records import EngineNumbers
    from lustrum.server import create_app
    from lustrum.server.settings import Settings

    asked: dict[str, list[str]] = {
        "town": [
            "by=age&by=sex", "by=age:broad&by=area&totals=on", "by=job&where=area:n",
            "by=job&by=area&by=sex",
        ],
        "firms": [
            "by=activity&by=region&totals=on",
            "by=activity&statistic=count&statistic=sum:home&statistic=mean:home",
            "by=region&by=legal&statistic=share:home:row&statistic=sum:wages",
        ],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as place:
        root = Path(place)
        worlds = ((people(900), town(), ""), (firms(200), register(), SUM_POLICY))
        for frame, dataset, more in worlds:
            name = dataset.name
            store = stored(root / name, frame, dataset)
            policy = root / f"{name}.toml"
            policy.write_text(POLICY.format(name=name, sums=more))
            make_bundle(store, name, policy, root / "bundles" / name, workers=1)
            service = TableService(bundles=[root / "bundles" / name], workers=1)
            # A question may take as long as it takes: how busy a machine is decides nothing.
            settings = Settings(rate="", patience=3600.0, seconds=3600.0)
            client = TestClient(create_app(service, settings), base_url="http://lustrum.test")
            for words in asked[name]:
                link = f"/api/v1/tables?dataset={name}&{words}"
                response = client.get(f"{link}&include=bounds,trace")
                assert response.status_code == 200, response.text
                yield f"{name} {words}: answer", timeless(response.content)
                for form in names("lustrum.formats"):
                    content = client.get(f"{link}&format={form}").content
                    parts = workbook(content) if form == "xlsx" else timeless(content)
                    yield f"{name} {words}: {form}", parts
                page = client.get(f"/datasets/{name}/table?{words}")
                assert page.status_code == 200, page.text
                yield f"{name} {words}: page", timeless(page.content)
            service.close()
        engine = store.open("firms", 1)
        keyed = {
            "keyed counts": {"protect": {"method": "random-rounding"}},
            "cell keys": {
                "protect": {"method": "cell-key"},
                "sums": {
                    "method": "cell-key-magnitude",
                    "p_percent": 10.0,
                    "extra": 1.0,
                    "large": 0.1,
                },
            },
        }
        for name, words in keyed.items():
            rules = Policy.model_validate({**words, "risk": {"limit": 1.0}})
            asks = [{}, {"statistics": ["sum:home", "mean:home"]}] if "sums" in words else [{}]
            for more in asks:
                query = TableQuery.from_mapping(
                    {"dataset": "firms", "by": ["activity", "region"], **more}
                )
                decision = answer(query, EngineNumbers(engine, rules), rules)
                assert decision.release is not None, decision.reasons
                yield f"{name} {more}", (
                    decision.release, decision.risk_after, decision.risk_before, decision.utility,
                )  # fmt: skip


@group
def demo() -> Results:
    from lustrum.demo import businesses, survey
    from lustrum.demo import people as census

    yield "people", census(2000, 3)
    yield "businesses", businesses(800)
    yield "survey", survey(3000)


# --- the program ----------------------------------------------------------------------------------


def golden(names: list[str]) -> dict[str, str]:
    """The digests of these groups; one that cannot be made says so in place of the rest of its group."""
    found: dict[str, str] = {}
    for name in names:
        try:
            start = time.process_time()
            for label, value in GROUPS[name]():
                if os.environ.get("GOLDEN_TIMES"):
                    print(
                        f"{time.process_time() - start:8.2f} {label}", file=sys.stderr, flush=True
                    )
                    start = time.process_time()
                assert f"{name}: {label}" not in found, f"{label} twice"
                found[f"{name}: {label}"] = digest(value)
        except Exception as error:
            if "LUSTRUM_SHIM" not in os.environ:
                raise
            found[f"{name} ended early"] = f"{type(error).__name__}: {error}"
    return found


def main(words: list[str]) -> None:
    assert shim.SHIM.kinds or "LUSTRUM_SHIM" not in os.environ
    write = "--write" in words
    found = golden([word for word in words if word != "--write"] or list(GROUPS))
    if write:
        DIGESTS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    else:
        print(json.dumps(found))


if __name__ == "__main__":
    main(sys.argv[1:])
