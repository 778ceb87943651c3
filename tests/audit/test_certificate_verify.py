"""Certificates written down in a test, so that no maker stands between the arithmetic and its check."""

from __future__ import annotations

import copy
import hashlib
import importlib
import json
from fractions import Fraction
from typing import Any

import pytest

from lustrum.audit.certificate.verify import ProvenCell, verify, verify_file

checker = importlib.import_module("lustrum.audit.certificate.verify")

NOTHING = {"value": None, "sharp": False, "table": None, "ray": None, "proof": []}


def leaf(*facts: list[int], over: Any = 1, shows: str = "bound") -> dict[str, Any]:
    return {"shows": shows, "over": over, "facts": [list(f) for f in facts]}


def claim(value: Any, *proof: Any, table: int | None = None, ray: int | None = None) -> Any:
    sharp = table is not None
    return {"value": value, "sharp": sharp, "table": table, "ray": ray, "proof": list(proof)}


def digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def sealed(document: Any) -> str:
    proofs = [document["tables"], document["rays"], document["claims"]]
    document["digests"] = {"knowledge": digest(document["knowledge"]), "proofs": digest(proofs)}
    return json.dumps(document)


def cell(name: str, low: int | None, high: int | None) -> dict[str, Any]:
    return {"name": name, "low": low, "high": high}


def fact(low: int | None, high: int | None, *weights: tuple[int, int]) -> dict[str, Any]:
    return {"low": low, "high": high, "weights": [list(w) for w in weights]}


def document(whole: bool = True) -> dict[str, Any]:
    """x from 0 to 4, y from 0 up, z is 3; x + y + z is 8 and 2 x - y at least -3: x is 1 to 4, y 1 to 4.

    w is free upwards from -2, and nothing is known of v.
    """
    return {
        "format": "lustrum-certificate",
        "version": 1,
        "knowledge": {
            "whole": whole,
            "decimals": 1,
            "cells": [
                cell("x", 0, 4),
                cell("y", 0, None),
                cell("z", 3, 3),
                cell("w", -2, None),
                cell("v", None, None),
            ],
            "facts": [fact(8, 8, (0, 1), (1, 1), (2, 1)), fact(-3, None, (0, 2), (1, -1))],
        },
        "tables": [{"over": 1, "values": [4, 1, -2, 0]}, {"over": 1, "values": [1, 4, 7, 5]}],
        "rays": [[0, 0, 1, 0], [0, 0, 0, -1], [0, 0, 0, 1]],
        "claims": [
            # 3 x >= -3 + 5 = 2 by both facts, so x >= 2/3, which is 1 in whole numbers.
            {
                "cell": 0,
                "low": claim(1, leaf([0, 1], [1, 1], over=3), table=1),
                "high": claim(4, leaf(), table=0),
            },
            {
                "cell": 1,
                "low": claim(1, leaf([0, 1]), table=0),
                # 3 y <= 2 * 5 + 3 = 13
                "high": claim(4, leaf([0, -2], [1, 1], over=3), table=1),
            },
            {"cell": 3, "low": claim(-2, leaf(), table=0), "high": claim(None, table=0, ray=0)},
            {"cell": 4, "low": claim(None, table=0, ray=1), "high": claim(None, table=1, ray=2)},
        ],
        "digests": {},
    }


def test_a_certificate_written_down_holds_and_says_what_it_proves() -> None:
    made = document()
    report = verify(sealed(made))
    assert report.reason == ""
    assert report.holds
    assert (report.cells, report.facts, report.tables, report.decimals) == (5, 2, 2, 1)
    assert report.digest == digest(made["knowledge"])
    assert report.proven == (
        ProvenCell("x", Fraction(1), Fraction(4), True, True),
        ProvenCell("y", Fraction(1), Fraction(4), True, True),
        ProvenCell("w", Fraction(-2), None, True, True),
        ProvenCell("v", None, None, True, True),
    )
    assert str(report).startswith(
        "The certificate holds: 8 bounds of 4 cells are proven, 8 of them"
    )
    assert "from 2 facts about 5 cells. Values are in units of 10^-1." in str(report)
    for wanted in (report.digest, f" {report.digest.upper()}\n".replace("SHA", "sha")):
        assert verify(sealed(made), wanted).holds
    assert "other knowledge" in verify(sealed(made), digest([])).reason


def test_what_is_not_claimed_to_be_reached_is_not_sharp() -> None:
    made = document()
    made["claims"] = [
        {"cell": 0, "low": claim(0, leaf()), "high": NOTHING},
        {"cell": 4, "low": NOTHING, "high": NOTHING},
    ]
    made["tables"] = made["rays"] = []
    made["knowledge"]["decimals"] = 0
    report = verify(sealed(made))
    assert report.proven == (
        ProvenCell("x", Fraction(0), None, False, False),
        ProvenCell("v", None, None, False, False),
    )
    assert "4 bounds of 2 cells are proven, 0 of them sharp" in str(report)
    assert "No table shows that all facts can be true together." in str(report)
    assert "units" not in str(report)


def test_real_cells_keep_the_fraction_that_is_proven() -> None:
    made = document(whole=False)
    made["tables"] = [{"over": 3, "values": [2, 13, 0, 0]}]
    made["rays"] = []
    made["claims"] = [
        {"cell": 0, "low": claim("2/3", leaf([0, 1], [1, 1], over=3), table=0), "high": NOTHING},
        {"cell": 1, "low": NOTHING, "high": claim("13/3", leaf([0, -2], [1, 1], over=3), table=0)},
    ]
    report = verify(sealed(made))
    assert report.proven[0].low == Fraction(2, 3)
    assert report.proven[1].high == Fraction(13, 3)
    whole = copy.deepcopy(made)
    whole["knowledge"]["whole"] = True
    assert "'over' of table 0 is out of range" in verify(sealed(whole)).reason


def with_low(**words: Any) -> str:
    """The lower end of x claimed in another way."""
    made = document()
    made["claims"][0]["low"] = {**claim(1, leaf([0, 1], [1, 1], over=3), table=1), **words}
    return verify(sealed(made)).reason


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ({"value": 2}, "its table holds 1, the claim is 2"),
        ({"value": 0}, "its table holds 1, the claim is 0"),
        ({"value": 2, "sharp": False, "table": None}, "the proof shows 1, the claim is 2"),
        ({"value": 0, "sharp": False, "table": None}, "the proof shows 1, the claim is 0"),
        ({"table": 0}, "its table holds 4, the claim is 1"),
        ({"table": 2}, "'table' is out of range"),
        ({"table": -1}, "'table' is out of range"),
        ({"sharp": False}, "it names a table but is not sharp"),
        ({"sharp": 1}, "'sharp' must be true or false"),
        ({"ray": 0}, "it names a ray but does not claim an infinite range"),
        ({"value": None}, "'ray' must be a whole number"),
        ({"value": None, "ray": 0}, "its ray does not lead beyond every bound"),
        ({"value": None, "ray": 3}, "'ray' is out of range"),
        ({"value": None, "sharp": False, "table": None}, "it has a proof but claims no bound"),
        ({"value": None, "sharp": False, "table": None, "proof": [], "ray": 0}, "it names a ray"),
        ({"value": "1/0"}, "the value is out of range"),
        ({"value": "2/2/2"}, "the value must be a whole number"),
        ({"value": 1.0}, "is not an exact number"),
        ({"value": True}, "the value must be a whole number"),
        ({"proof": []}, "the proof leaves a branch open"),
        ({"proof": [leaf(), leaf()]}, "the proof goes on after its last branch"),
        ({"proof": [leaf([0, 1], [1, 1], over=0)]}, "'over' of a leaf is out of range"),
        ({"proof": [leaf(shows="all")]}, "a leaf shows neither a bound nor"),
        ({"proof": [leaf(shows="empty")]}, "a leaf does not show that its branch is empty"),
        ({"proof": [leaf([1, -1])]}, "uses an end that '-3 <= 2 x - y' does not have"),
        ({"proof": [leaf([0, -1])]}, "the proof shows -5"),
        ({"proof": [leaf([0, 2])]}, "uses a bound that y does not have"),
        ({"proof": [leaf([1, 1], [0, 1])]}, "a place in a leaf is out of range"),
        ({"proof": [leaf([0, 1], [0, 1])]}, "a place in a leaf is out of range"),
        ({"proof": [leaf([2, 1])]}, "a place in a leaf is out of range"),
        ({"proof": [leaf([0])]}, "a leaf must list pairs of a place and a factor"),
        ({"proof": [leaf([0, 1, 1])]}, "a leaf must list pairs of a place and a factor"),
    ],
)
def test_a_wrong_claim_is_refused_with_its_reason(words: dict[str, Any], reason: str) -> None:
    said = with_low(**words)
    assert reason in said
    assert said.endswith(".")


def test_a_ray_must_lead_the_way_of_its_end() -> None:
    made = document()
    made["claims"][3]["high"]["ray"] = 1
    assert verify(sealed(made)).reason == (
        "cell v, high: its ray does not lead beyond every bound."
    )
    made["claims"][3]["high"]["ray"] = 0
    assert "does not lead" in verify(sealed(made)).reason


@pytest.mark.parametrize(
    ("tables", "reason"),
    [
        ([[5, 0, 0, 0]], "outside the bounds of x"),
        ([[-1, 6, 0, 0]], "outside the bounds of x"),
        ([[4, 1, -3, 0]], "outside the bounds of w"),
        ([[4, 2, 0, 0]], "breaks 'x + y + z = 8'"),
        ([[4, 0, 0, 0]], "breaks 'x + y + z = 8'"),
        ([[0, 5, 0, 0]], "breaks '-3 <= 2 x - y'"),
        ([[4, 1, 0]], "has 3 values for 4 cells"),
        ([[4, 1, 3, 0, 0]], "has 5 values for 4 cells"),
    ],
)
def test_a_table_that_does_not_fit_is_refused_even_unused(tables: Any, reason: str) -> None:
    made = document()
    made["tables"] += [{"over": 1, "values": values} for values in tables]
    assert reason in verify(sealed(made)).reason
    made = document()
    made["rays"].append([1, -1, 0, 0])
    assert "ray 3 is outside the bounds of x" in verify(sealed(made)).reason
    made["rays"][-1] = [0, 1, 0, 0]
    assert "ray 3 breaks" in verify(sealed(made)).reason


def split(cell: int, at: int) -> dict[str, int]:
    return {"split": cell, "at": at}


def test_a_tree_covers_every_whole_number_and_each_leaf_counts() -> None:
    """Where x is at most 1, y is at least 4 and at most 5, but then 2 x - y is below -3 unless x is 1."""
    made = document()
    # The upper end of y without the second fact: 5 where x is 0, and x above 0 leaves 4.
    both = [split(0, 0), leaf([0, -1]), leaf([0, -1])]
    made["claims"] = [{"cell": 1, "low": NOTHING, "high": claim(5, *both)}]
    assert verify(sealed(made)).proven[0].high == 5
    # Where x is 0, y is 5 and 2 x - y at least -3: 2 x - y + (x + y) = 3 x >= 2 cannot be.
    empty = leaf([0, 1], [1, 1], shows="empty")
    made["claims"][0]["high"] = claim(4, split(0, 0), empty, leaf([0, -1]), table=1)
    assert verify(sealed(made)).proven == (ProvenCell("y", None, Fraction(4), False, True),)
    for at in (-1, 1):
        made["claims"][0]["high"]["proof"][0] = split(0, at)
        assert not verify(sealed(made)).holds
    made["claims"][0]["high"] = claim(4, split(0, 0), leaf([0, -1]), empty)
    assert not verify(sealed(made)).holds
    made["claims"][0]["high"] = claim(4, split(0, 0), empty, empty)
    assert not verify(sealed(made)).holds
    made["claims"][0]["high"] = claim(4, split(5, 0), empty, leaf([0, -1]))
    assert "the cell of a split is out of range" in verify(sealed(made)).reason
    # A second split of the same cell keeps what the first has said.
    three = claim(4, split(0, 2), split(0, 0), empty, leaf([0, -1]), leaf([0, -1]), table=1)
    made["claims"][0]["high"] = three
    assert verify(sealed(made)).holds
    nobody = claim(4, *[leaf([0, 1], [1, 1], shows="empty")])
    made["claims"][0]["high"] = nobody
    assert "does not show that its branch is empty" in verify(sealed(made)).reason
    made["knowledge"]["cells"][0]["high"] = 0
    made["tables"] = []
    assert "no table fits" in verify(sealed(made)).reason


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_the_depth_of_a_proof_has_a_limit(side: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = document()
    lower = [split(3, 9), split(3, 5), split(3, 2), *[leaf()] * 4]
    upper = [split(3, 1), leaf(), split(3, 2), leaf(), split(3, 3), leaf(), leaf()]
    made["claims"][0]["high"] = claim(4, *(lower if side == "lower" else upper), table=0)
    monkeypatch.setattr(checker, "MAX_DEPTH", 3)
    assert verify(sealed(made)).holds
    monkeypatch.setattr(checker, "MAX_DEPTH", 2)
    assert "more than 2 splits deep" in verify(sealed(made)).reason


def test_the_work_of_a_proof_has_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    made = sealed(document())
    # Two facts of two cells for each of two tables and three rays, then five facts in proofs.
    monkeypatch.setattr(checker, "MAX_STEPS", 3 * (2 * 5 + 5))
    assert verify(made).holds
    monkeypatch.setattr(checker, "MAX_STEPS", 3 * (2 * 5 + 5) - 1)
    assert "too many steps" in verify(made).reason


def test_sizes_at_their_limits_pass_and_beyond_them_do_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    made = document()
    for letters, digits, decimals, passes in (
        (2000, 999, 30, True), (2001, 999, 30, False), (2000, 1000, 30, False),
        (2000, 999, 31, False), (2000, 999, -1, False),
    ):  # fmt: skip
        made["knowledge"]["cells"][4]["name"] = "v" * letters
        made["knowledge"]["cells"][3]["low"] = "-" + "9" * digits
        made["knowledge"]["decimals"] = decimals
        made["claims"] = made["tables"] = made["rays"] = []
        assert verify(sealed(made)).holds is passes
    text = sealed(document())
    path = tmp_path / "c.json"
    path.write_text(text)
    for most, passes in ((len(text), True), (len(text) - 1, False)):
        monkeypatch.setattr(checker, "MAX_BYTES", most)
        assert verify(text.encode()).holds is verify_file(path).holds is passes
    assert verify_file("\0").reason == "the file cannot be read: its name is none."


def test_a_document_is_what_it_says_it_is() -> None:
    for changed in ({"format": "other"}, {"version": 2}, {"version": True}, {"version": None}):
        made = document() | changed
        assert "does not say that it is a lustrum-certificate" in verify(sealed(made)).reason
    assert "the same part twice" in verify('{"a": 1, "a": 1}').reason
    two = document()
    two["claims"].append(two["claims"][0])
    assert verify(sealed(two)).reason == "cell x: there are two claims about it."
    for number in (-1, 5):
        two["claims"][-1] = {**two["claims"][0], "cell": number}
        assert "the cell of a claim is out of range" in verify(sealed(two)).reason
    made = document()
    made["knowledge"]["cells"][0]["name"] = "Île-de-France"
    assert verify(sealed(made)).proven[0].name == "Île-de-France"
