"""Whatever is changed in a certificate, its check fails or what it claims is still true."""

from __future__ import annotations

import copy
import hashlib
import itertools
import json
from collections.abc import Iterator
from fractions import Fraction
from functools import cache
from math import ceil
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.audit import Knowledge
from lustrum.audit.certificate import certify, verify

Path = tuple[Any, ...]
MANY = settings(deadline=None, max_examples=examples(50, 600))


def branching() -> Knowledge:
    known = Knowledge.of(["x", "y", "z"])
    for name, high in (("x", 4), ("y", 3), ("z", 4)):
        known = known.bound(name, high=high)
    return known.fact({"x": 3, "y": 3, "z": -2}, 8, 8).fact({"x": 2, "y": 1, "z": -2}, 3, 4)


@cache
def documents() -> dict[str, str]:
    """A branch tree, fractions, an endless range, ends that are not sharp, a small table."""
    halves = Knowledge.of(["x", "y"]).fact({"x": 2, "y": 1}, 3, 3).bound("x", high=2)
    endless = Knowledge.of(["x", "y"]).fact({"x": 1, "y": -2}, 3, 3)
    table = Knowledge.of(["r=1,c=1", "r=1,c=2", "r=2,c=1", "r=2,c=2"])
    for row, total in (((0, 1), 7), ((2, 3), 5), ((0, 2), 4)):
        table = table.fact({table.names[j]: 1 for j in row}, total, total)
    return {
        "tree": certify(branching()).to_json(),
        "fractions": certify(halves.relaxed()).to_json(),
        "endless": certify(endless).to_json(),
        "not sharp": certify(branching(), nodes=4).to_json(),
        "table": certify(table).to_json(),
    }


def sealed(document: Any) -> str:
    """The document with digests that fit what it now holds, as somebody would who means to cheat."""
    proofs = [document["tables"], document["rays"], document["claims"]]
    for name, part in (("knowledge", document["knowledge"]), ("proofs", proofs)):
        text = json.dumps(part, sort_keys=True, separators=(",", ":"))
        document["digests"][name] = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    return json.dumps(document)


def places(value: Any, path: Path = ()) -> list[Path]:
    """Where every single value stands."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    else:
        return [path]
    return [p for key, item in items for p in places(item, (*path, key))]


def at(document: Any, path: Path) -> Any:
    for key in path:
        document = document[key]
    return document


def changed(document: Any, path: Path, value: Any) -> Any:
    out = copy.deepcopy(document)
    at(out, path[:-1])[path[-1]] = value
    return out


def other(value: Any) -> list[Any]:
    """What somebody might put in place of a value."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        return [value + 1, value - 1, -value or 2, None]
    if value is None:
        return [0, 1]
    if "/" in value:
        return ["1/3", value + "1", 1]
    return [value + " ", value[:-1], value.upper() if value.islower() else value.lower()]


@st.composite
def tampered(draw: st.DrawFn) -> tuple[str, Any]:
    name = draw(st.sampled_from(sorted(documents())))
    document = json.loads(documents()[name])
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(places(document)))
        document = changed(document, path, draw(st.sampled_from(other(at(document, path)))))
    return name, document


def test_what_was_made_holds():
    for text in documents().values():
        report = verify(text)
        assert report.holds, report.reason


@MANY
@given(tampered())
def test_a_change_anywhere_is_found(case):
    name, document = case
    assume(document != json.loads(documents()[name]))
    report = verify(json.dumps(document))
    assert not report.holds
    assert report.reason.endswith(".")
    assert "\n" not in report.reason


@MANY
@given(tampered())
def test_with_fresh_digests_only_true_claims_pass(case):
    _, document = case
    document |= {"format": "lustrum-certificate", "version": 1}
    report = verify(sealed(document))
    if not report.holds:
        return
    points = tables(document["knowledge"])
    if points is None:
        return  # no table fits the changed facts, or none within reach
    for claim, proven in zip(document["claims"], report.proven, strict=True):
        column = [p[claim["cell"]] for p in points]
        assert proven.low is None or all(proven.low <= v for v in column)
        assert proven.high is None or all(v <= proven.high for v in column)
        if document["knowledge"]["whole"] and proven.low_sharp and proven.low is not None:
            assert proven.low in column
        if document["knowledge"]["whole"] and proven.high_sharp and proven.high is not None:
            assert proven.high in column


def tables(knowledge: Any, reach: int = 14) -> list[tuple[int, ...]] | None:
    """Every whole table of a small box, read from the document itself."""
    boxes = []
    for cell in knowledge["cells"]:
        low, high = cell["low"], cell["high"]
        low = -reach if low is None else low
        boxes.append(range(low, min(reach, reach if high is None else high) + 1))
    found = []
    for point in itertools.product(*boxes):
        sums = [sum(w * point[c] for c, w in f["weights"]) for f in knowledge["facts"]]
        if all(
            (f["low"] is None or f["low"] <= s) and (f["high"] is None or s <= f["high"])
            for f, s in zip(knowledge["facts"], sums, strict=True)
        ):
            found.append(point)
    return found or None


def plainly_true(document: Any) -> bool:
    """Whether every table, ray and proof is right: the same arithmetic in fractions and whole vectors."""
    known, whole = document["knowledge"], document["knowledge"]["whole"]
    size = len(known["cells"])
    boxes = [(c["low"], c["high"]) for c in known["cells"]]
    facts = []
    for fact in known["facts"]:
        weights = dict(map(tuple, fact["weights"]))
        facts.append(((fact["low"], fact["high"]), [weights.get(j, 0) for j in range(size)]))

    def filled(values: list[int], over: int) -> list[Fraction]:
        rest = iter(values)
        return [
            Fraction(low if low is not None and low == high else Fraction(next(rest), over))
            for low, high in boxes
        ]

    def inside(x: Fraction, ends: Any, scale: int) -> bool:
        low, high = ends
        return (low is None or x >= low * scale) and (high is None or x <= high * scale)

    def fits(point: list[Fraction], scale: int) -> bool:
        sums = [(ends, sum(w * x for w, x in zip(row, point, strict=True))) for ends, row in facts]
        return all(inside(x, ends, scale) for ends, x in [*zip(boxes, point, strict=True), *sums])

    def bound(leaf: Any, cost: list[int], limits: Any) -> Fraction | None:
        reduced, total = [Fraction(leaf["over"] * c) for c in cost], Fraction(0)
        terms = []
        for number, times in leaf["facts"]:
            ends, row = facts[number]
            terms.append((times, ends))
            reduced = [d - times * w for d, w in zip(reduced, row, strict=True)]
        for times, ends in [*terms, *zip(reduced, limits, strict=True)]:
            end = ends[0] if times > 0 else ends[1]
            if times and end is None:
                return None
            total += times * end if times else 0
        return total / leaf["over"]

    def proven(nodes: Iterator[Any], cell: int, sign: int, limits: Any) -> Fraction | None:
        """The least that a proof shows; infinite for branches without a table, None if it is wrong."""
        node = next(nodes)
        if "split" in node:
            (low, high), at = limits[node["split"]], node["at"]
            sides = []
            for ends in ((low, at), (at + 1, high)):
                limits_here = list(limits)
                limits_here[node["split"]] = ends
                sides.append(proven(nodes, cell, sign, limits_here))
            return None if None in sides or not whole else min(sides)
        empty = node["shows"] == "empty"
        shown = bound(node, [0 if empty or j != cell else sign for j in range(size)], limits)
        if shown is None or node["over"] < 1:
            return None
        if empty:
            return Fraction(10**9) if shown > 0 else None
        return Fraction(ceil(shown)) if whole else shown

    points = [filled(table["values"], table["over"]) for table in document["tables"]]
    rays = [
        [
            Fraction(0) if low is not None and low == high else x
            for x, (low, high) in zip(ray, boxes, strict=True)
        ]
        for ray in (filled(values, 1) for values in document["rays"])
    ]
    if not all(fits(p, 1) for p in points) or not all(fits(r, 0) for r in rays):
        return False
    for claim in document["claims"]:
        for side, sign in (("low", 1), ("high", -1)):
            end, cell = claim[side], claim["cell"]
            value = None if end["value"] is None else Fraction(end["value"])
            if end["sharp"] and value is not None and points[end["table"]][cell] != value:
                return False
            if end["sharp"] and value is None and sign * rays[end["ray"]][cell] >= 0:
                return False
            if value is not None:
                nodes = iter(end["proof"])
                if proven(nodes, cell, sign, boxes) != sign * value or next(nodes, None):
                    return False
    return True


@MANY
@given(tampered())
def test_what_passes_is_right_by_a_second_check(case):
    name, document = case
    assert plainly_true(json.loads(documents()[name]))
    document |= {"format": "lustrum-certificate", "version": 1}
    if verify(sealed(document)).holds:
        assert plainly_true(document)


def lied(name: str, path: Path, value: Any) -> str:
    return verify(sealed(changed(json.loads(documents()[name]), path, value))).reason


TABLE_CASES = [
    (("claims", 0, "low", "value"), 1, "cell r=1,c=1, low: its table holds 0, the claim is 1."),
    (("claims", 1, "high", "value"), 8, "cell r=1,c=2, high: its table holds 7, the claim is 8."),
    (
        ("claims", 0, "high", "sharp"),
        False,
        "cell r=1,c=1, high: it names a table but is not sharp.",
    ),
    (("claims", 0, "high", "table"), 99, "cell r=1,c=1, high: 'table' is out of range."),
    (
        ("claims", 0, "high", "ray"),
        0,
        "cell r=1,c=1, high: it names a ray but does not claim an infinite range.",
    ),
    (("claims", 0, "high", "value"), None, "cell r=1,c=1, high: 'ray' must be a whole number."),
    (("claims", 0, "high", "proof"), [], "cell r=1,c=1, high: the proof leaves a branch open."),
    (("claims", 1, "cell"), 0, "cell r=1,c=1: there are two claims about it."),
    (("tables", 0, "over"), 2, "'over' of table 0 is out of range."),
    (("knowledge", "facts", 0, "low"), 6, "the proof shows"),
    (("knowledge", "facts", 2, "high"), 3, "breaks '4 <= r=1,c=1 + r=2,c=1 <= 3'"),
    (
        ("format",),
        "lustrum",
        "the file does not say that it is a lustrum-certificate of version 1.",
    ),
    (("version",), 2, "the file does not say that it is a lustrum-certificate of version 1."),
]


@pytest.mark.parametrize(("path", "value", "reason"), TABLE_CASES)
def test_a_lie_is_named(path, value, reason):
    assert reason in lied("table", path, value)


def test_a_table_that_breaks_a_fact_is_named_with_the_cell_and_the_fact():
    document = json.loads(documents()["table"])
    number = document["claims"][0]["low"]["table"]
    value = document["tables"][number]["values"][3]
    reason = lied("table", ("tables", number, "values", 3), value + 1)
    assert reason == f"cell r=1,c=1, low: table {number} breaks 'r=2,c=1 + r=2,c=2 = 5'."


def test_every_part_of_a_tree_counts():
    document = json.loads(documents()["tree"])
    cell, side = next(
        (c, s)
        for c, s in itertools.product(range(3), ("low", "high"))
        if any(n.get("shows") == "empty" for n in document["claims"][c][s]["proof"])
    )
    where = ("claims", cell, side, "proof")
    proof = at(document, where)
    for number, node in enumerate(proof):
        left, right = proof[:number], proof[number + 1 :]
        assert lied("tree", where, left + right)
        if "split" not in node and node["facts"]:
            assert lied("tree", where, [*left, {**node, "facts": [], "shows": "empty"}, *right])
    assert "goes on after" in lied("tree", where, [*proof, proof[-1]])
    assert "open" in lied("tree", where, proof[:-1])


def test_real_cells_cannot_be_split():
    document = json.loads(documents()["fractions"])
    leaf = document["claims"][0]["high"]["proof"][0]
    proof = [{"split": 0, "at": 1}, leaf, leaf]
    reason = lied("fractions", ("claims", 0, "high", "proof"), proof)
    assert reason == "cell x, high: the proof splits a cell that need not be a whole number."


def test_the_reason_for_a_changed_digest():
    document = json.loads(documents()["table"])
    for name, words in (
        ("knowledge", "the knowledge does not match"),
        ("proofs", "the proofs do not match"),
    ):
        digest = "sha256:" + "0" * 64
        assert words in verify(json.dumps(changed(document, ("digests", name), digest))).reason
