"""Enumerations and chances of values beside their definitions."""

from __future__ import annotations

import importlib
import itertools
import math

import numpy as np
import pytest

from audit.fibres import fitting
from audit.plain_walks import plain_tables
from lustrum.audit import ContradictionError, Knowledge
from lustrum.audit.fibre import (
    FibreMargins,
    distribution,
    effective_size,
    enumerate_fibre,
    sample_fibre,
    split_rhat,
    unimodal,
)
from lustrum.audit.fibre import enumerate as enumerate_module
from lustrum.audit.fibre.enumerate import _Ordered, _rests, log_factorials, tally
from lustrum.audit.fibre.system import FibreSystem
from lustrum.audit.fibre.unimodal import Unimodal
from lustrum.model import InputError
from lustrum.numeric.structure import UNBOUNDED

ALL_PAIRS = [(0, 1), (0, 2), (1, 2)]
CUBE = FibreMargins.of([[[1, 2, 0], [0, 1, 2]], [[2, 0, 1], [1, 1, 1]]], ALL_PAIRS)
# Two blocks and a cell of its own: 5 tables of a and b, 4 of c and d, 3 values of e.
APART = (
    Knowledge.of("abcdef")
    .within([0, 0, 0, 0, 2, 7], [4, 4, 3, 3, 4, 7])
    .fact({"a": 1, "b": 1}, 4, 4)
    .fact({"c": 2, "d": 1}, 3, 4)
)


# Enumeration


def test_all_tables_are_listed_up_to_a_limit():
    wanted = sorted(fitting(APART).tolist())
    assert len(wanted) == 5 * 4 * 3
    found = enumerate_fibre(APART)
    assert found.complete
    assert found.tables.tolist() == wanted
    assert repr(found) == "Fibre(60 tables of 6 cells)"
    assert len(found) == 60
    # One block, exactly at its limit: magic squares of side 3 and sum 3 are 55.
    magic = FibreMargins.two_way([3, 3, 3], [3, 3, 3])
    for most, complete in ((56, True), (55, True), (54, False)):
        square = enumerate_fibre(magic, most=most)
        assert (len(square), square.complete) == (min(most, 55), complete)
    exactly = enumerate_fibre(APART, most=60)
    assert (exactly.complete, exactly.tables.tolist()) == (True, wanted)
    for most in (59, 7, 4, 3, 1):
        part = enumerate_fibre(APART, most=most)
        assert not part.complete
        assert len(part) == most
        rows = part.tables.tolist()
        assert rows == sorted(rows)
        assert all(r in wanted for r in rows)
        assert len({tuple(r) for r in rows}) == most
    assert repr(enumerate_fibre(APART, most=7)) == "Fibre(7 tables of 6 cells, and there are more)"
    for name, wrong in itertools.product(("most", "nodes"), (0, 2.5, True, np.nan, "2")):
        with pytest.raises(InputError, match=f"^'{name}' must be a whole number of 1 or more"):
            enumerate_fibre(APART, **{name: wrong})
    assert len(enumerate_fibre(APART, most=np.int64(7))) == 7
    # Room is taken for tables that are there, however many are asked for.
    for most in (100_000, 100_001, 2**62 - 1):
        assert enumerate_fibre(APART, most=most).tables.tolist() == wanted
    assert len(enumerate_fibre(magic, most=2**40, nodes=100)) < 55
    for name in ("most", "nodes"):
        with pytest.raises(InputError, match=rf"^'{name}' must be below 2\*\*62\.$"):
            enumerate_fibre(APART, **{name: 2**62})
    settled = enumerate_fibre(FibreMargins.two_way([3, 0], [1, 2]), most=1, nodes=1)
    assert (settled.complete, settled.tables.tolist()) == (True, [[1, 2, 0, 0]])


def needed(run) -> int:
    """The least number of nodes that is enough."""
    return next(n for n in range(1, 10_000) if run(n).complete)


def test_a_search_ends_after_so_many_values():
    (block,) = FibreSystem.of(CUBE).blocks
    every = np.array(list(plain_tables(block)))
    nodes = needed(lambda n: tally(block, nodes=n))
    assert len(every) < nodes <= len(every) * len(block)
    whole = tally(block, nodes=nodes)
    assert whole.count == len(every)
    for column, sums in enumerate(whole.sums):
        counts = np.bincount(every[:, column] - block.low[column], minlength=sums.size)
        assert sums.tolist() == counts.tolist()
    assert not tally(block, nodes=nodes - 1).complete
    assert not tally(block, nodes=nodes - 1, hypergeometric=True).complete
    weighed = tally(block, nodes=nodes, hypergeometric=True)
    assert (weighed.complete, weighed.count) == (True, len(every))
    weights = np.array([1 / math.prod(map(math.factorial, t)) for t in every.tolist()])
    for column, sums in enumerate(weighed.sums):
        values = np.bincount(every[:, column] - block.low[column], weights, minlength=sums.size)
        assert sums == pytest.approx(values / weights.max())
    # Only columns that are counted weigh, and a fact with two ends adds one that is not.
    (loose,) = FibreSystem.of(
        Knowledge.of("abc").within(0, 4).fact({"a": 1, "b": 2, "c": 1}, 3, 5), [1, 0, 1]
    ).blocks
    every = np.array(list(plain_tables(loose)))
    own = [1 / math.factorial(t[0]) / math.factorial(t[2]) for t in every.tolist()]
    for column, sums in enumerate(tally(loose, hypergeometric=True).sums):
        values = np.bincount(every[:, column] - loose.low[column], own, minlength=sums.size)
        assert sums == pytest.approx(values / max(own))
    (never,) = FibreSystem.of(
        Knowledge.of("xyz").within(0, 5).fact({"x": 2, "y": 2, "z": -2}, 3, 3)
    ).blocks
    # Five values of one cell are five nodes.
    (five,) = FibreSystem.of(Knowledge.of("x").bound("x", 0, 4)).blocks
    assert [tally(five, nodes=n).complete for n in (4, 5, 6)] == [False, True, True]
    assert tally(five, nodes=3).count == 3
    # More values than there is room for are not even begun.
    (endless,) = FibreSystem.of(Knowledge.of("x").bound("x", 0, 2**27)).blocks
    for hypergeometric in (False, True):
        begun = tally(endless, nodes=5, hypergeometric=hypergeometric)
        assert (begun.count, begun.sums, begun.complete) == (0, (), False)
    for hypergeometric in (False, True):
        nothing = tally(never, hypergeometric=hypergeometric)
        assert (nothing.count, nothing.complete) == (0, True)


def test_columns_are_tried_from_the_shortest_equation():
    uneven = Knowledge.of("abcde").within(0, [2, 4, 4, 4, 1])
    uneven = uneven.fact({"a": 1, "b": 1, "c": 1}, 5, 5)
    uneven = uneven.fact({"c": 1, "d": 1}, 4, 5).fact({"a": 1, "b": 1, "d": 1, "e": 1}, 8, 8)
    tied = Knowledge.of("abcde").within(0, 4).fact({"a": 1, "b": 1}, 4, 4)
    tied = tied.fact({"a": 1, "c": 1, "d": 1, "e": 1}, 7, 7).fact({"c": 1, "d": 1}, 3, 3)
    for given in (CUBE, APART, FibreMargins.two_way([3, 2], [1, 1, 3]), uneven, tied):
        for block in FibreSystem.of(given).blocks:
            matrix = block.matrix.toarray() != 0
            width = (block.high - block.low).tolist()
            left = list(range(len(block)))
            for best in _Ordered.of(block).order.tolist():
                costs = []
                for k in left:
                    rows = [int(r[left].sum()) for r in matrix if r[k]]
                    costs.append((min(rows, default=1), width[k], k))
                assert best == min(costs)[2]
                left.remove(best)
            assert left == []
    (block,) = FibreSystem.of(
        Knowledge.of("abc").within(-1, [2, 3, 4]).fact({"a": 1, "b": -2, "c": 3}, 5, 5)
    ).blocks
    least, most = _rests(block.matrix.tocsc(), block.low, block.high)
    for k in range(3):
        later = [
            (block.matrix.toarray()[0, j], block.low[j], block.high[j]) for j in range(k + 1, 3)
        ]
        assert least[k] == sum(min(c * lo, c * hi) for c, lo, hi in later)
        assert most[k] == sum(max(c * lo, c * hi) for c, lo, hi in later)


def test_factorials_are_listed_as_far_as_they_are_needed(monkeypatch):
    (block,) = FibreSystem.of(Knowledge.of("x").bound("x", 0, 6)).blocks
    logs = log_factorials(block)
    assert logs.size == 8
    assert np.exp(logs) == pytest.approx([math.factorial(n) for n in range(8)])
    (tiny,) = FibreSystem.of(Knowledge.of("x", low=-3).bound("x", -2, -1)).blocks
    assert log_factorials(tiny).size == 3
    monkeypatch.setattr(enumerate_module, "_TABLE", 5)
    assert log_factorials(block).size == 5
    # Beyond the list they are computed, with the same weights.
    sums = tally(block, hypergeometric=True).sums[0]
    assert sums == pytest.approx([1 / math.factorial(n) for n in range(7)])


# Chances


def test_what_is_computed_is_exact_and_the_rest_is_sampled():
    found = distribution(APART)
    assert found.exact.all()
    assert (found.tables, found.draws, found.chains, found.stopped) == (60, 0, 0, False)
    assert np.isinf(found.effective).all()
    assert found.rhat.tolist() == [1.0] * 6
    assert (found.worst_rhat, found.agreed, len(found)) == (1.0, True, 6)
    assert repr(found) == "CellDistributions(6 cells, uniform, exact)"
    assert found.of("f")[0].tolist() == [7]
    tables = fitting(APART)
    for target in ("uniform", "hypergeometric"):
        exact = distribution(APART, target)
        assert exact.tables == 60
        weights = np.ones(60)
        if target == "hypergeometric":
            weights = np.array([1 / math.prod(map(math.factorial, t)) for t in tables.tolist()])
        for cell in range(6):
            values, chances = exact.of(cell)
            wanted = [weights[tables[:, cell] == v].sum() / weights.sum() for v in values]
            assert chances == pytest.approx(wanted)
    sampled = distribution(APART, method="sample", rng=1, draws=200, chains=3)
    assert sampled.exact.tolist() == [False] * 5 + [True]
    assert (sampled.tables, sampled.draws, sampled.chains) == (None, 200, 3)
    assert np.isfinite(sampled.effective[:5]).all()
    assert np.isinf(sampled.effective[5])
    assert "5 sampled, R-hat up to" in repr(sampled)
    drawn = sample_fibre(APART, rng=1, draws=200, chains=3)
    assert sampled.rhat[:5] == pytest.approx(split_rhat(drawn)[:5])
    assert sampled.effective[:5] == pytest.approx(effective_size(drawn)[:5])
    with pytest.raises(InputError, match="start from"):
        distribution(APART, method="sample", rng=1, start=[9] * 6)
    cents = Knowledge.of("a", decimals=2).bound("a", 0, 3)
    assert distribution(cents).belief.decimals == 2
    nobody = distribution(Knowledge.of([]))
    assert (len(nobody), nobody.tables) == (0, 1)
    assert sampled.worst_rhat == pytest.approx(np.nanmax(sampled.rhat))
    for cell in range(5):
        values, chances = sampled.of(cell)
        assert chances.sum() == pytest.approx(1)
        exact_values, exact_chances = found.of(cell)
        assert values.tolist() == exact_values.tolist()
        # 600 draws that move freely: within 6 deviations of a fair share.
        assert chances == pytest.approx(exact_chances, abs=6 * 0.5 / math.sqrt(600))


def test_an_exact_answer_needs_enough_nodes(monkeypatch):
    nodes = needed(lambda n: tally(FibreSystem.of(CUBE).blocks[0], nodes=n))
    assert distribution(CUBE, nodes=nodes, method="exact").exact.all()
    with pytest.raises(InputError, match="too many tables"):
        distribution(CUBE, nodes=nodes - 1, method="exact")
    part = distribution(CUBE, nodes=nodes - 1, rng=1, draws=20, chains=2)
    assert not part.exact.any()
    assert (part.tables, part.draws, part.chains) == (None, 20, 2)
    assert distribution(CUBE, nodes=nodes).exact.all()
    # A two-way table takes steps, each as dear as ten values: 16 for two by two with four tables.
    square = FibreMargins.two_way([3, 3], [3, 3])
    tried = []
    for allowed in (160, 159):
        found = distribution(square, nodes=allowed, method="exact")
        tried.append(found.tables)
    assert tried == [4, 4]
    for wrong in (0, 9.5):
        with pytest.raises(InputError, match=r"^'nodes' must be a whole number of 1 or more"):
            distribution(square, nodes=wrong)
    assert distribution(square, nodes=1, draws=4, rng=1).exact.tolist() == [False] * 4
    # The formula needs no steps.
    by_formula = distribution(square, "hypergeometric", nodes=1)
    assert (by_formula.exact.all(), by_formula.tables) == (True, None)
    assert by_formula.of(0)[1] == pytest.approx(np.array([1, 9, 9, 1]) / 20)
    # Where some cells are not counted, tables are weighed one by one.
    own = distribution(square, "hypergeometric", counted=[True, False, False, False])
    assert own.of(0)[1] == pytest.approx(np.array([6, 6, 3, 1]) / 16)
    assert own.tables == 4
    # A bound of its own makes the formula wrong: tables of 0, 1 and 2 weigh 1, 12 and 18.
    bounded = FibreMargins.two_way([4, 3], [3, 4]).knowledge().bound(0, high=2)
    own = distribution(bounded, "hypergeometric")
    assert own.of(0)[1] == pytest.approx(np.array([1, 12, 18]) / 31)
    never = Knowledge.of("xyz").within(0, 5).fact({"x": 2, "y": 2, "z": -2}, 3, 3)
    with pytest.raises(ContradictionError, match="no table"):
        distribution(never)
    module = importlib.import_module("lustrum.audit.fibre.distribution")
    real, allowed = module._exact, []

    def noted(block, hypergeometric, nodes):
        allowed.append(nodes)
        return real(block, hypergeometric, nodes)

    monkeypatch.setattr(module, "_exact", noted)
    for how in ({}, {"method": "exact"}, {"nodes": 7, "draws": 4}):
        distribution(square, rng=1, **how)
    assert allowed == [module._TRY, module.NODES, 7]
    assert module._TRY < module.NODES
    closed = (
        FibreMargins.two_way([1, 1, 1], [1, 1, 1])
        .knowledge()
        .within(0, [1, 0, 0, 1, 0, 0, 0, 1, 1])
    )
    with pytest.raises(ContradictionError):
        distribution(closed)


def test_chains_that_disagree_or_were_stopped_are_not_agreed():
    sampled = distribution(CUBE, method="sample", rng=1, draws=40, chains=2)
    for rhat, stopped, agreed in (
        ([1.0, 1.05], False, True),
        ([1.0, 1.06], False, False),
        ([np.nan, 1.0], False, True),
        ([np.nan, np.nan], False, True),
        ([0.97, 0.98], False, True),
        ([1.0, 1.0], True, False),
    ):
        own = sampled.__class__(
            sampled.known,
            sampled.belief,
            sampled.exact,
            sampled.effective,
            np.array(rhat),
            "uniform",
            None,
            40,
            2,
            stopped,
        )
        assert own.agreed == agreed
        assert own.worst_rhat == np.nanmax([*rhat, 1.0])
        assert not own.rhat.flags.writeable
    calls = iter([False] * 8 + [True] * 99)
    cut = distribution(CUBE, method="sample", rng=1, draws=40, burn=4, stop=lambda: next(calls))
    assert cut.stopped
    assert 4 <= cut.draws < 40
    for rounds, enough in ((5, True), (4, False)):
        calls = iter([False] * rounds + [True] * 99)
        how = {"method": "sample", "rng": 1, "draws": 19, "burn": 1, "stop": calls.__next__}
        if enough:
            assert distribution(CUBE, **how).draws == 4
        else:
            with pytest.raises(InputError, match=r"^The sampling was stopped before .* four draws"):
                distribution(CUBE, **how)
    # Few cells are no reason to refuse.
    pair = Knowledge.of("ab").within(0, 4).fact({"a": 1, "b": 1}, 4, 4)
    assert distribution(pair, method="sample", rng=1, draws=8).draws == 8
    for method in ("guess", "Exact", None):
        with pytest.raises(InputError, match=r"^There is no method .*auto.*\.$"):
            distribution(pair, method=method)


def test_one_peak_between_the_bounds():
    known = Knowledge.of("ab", decimals=1).within([2, 0], [8, 6]).fact({"a": 1, "b": 1}, 8, 8)
    for mode in (None, [3, 5], [0, 20], [4.5, 3.5]):
        belief = unimodal(known, mode)
        for cell, (low, high) in enumerate([(2, 8), (0, 6)]):
            peak = (low + high) / 2 if mode is None else min(max(mode[cell], low), high)
            values, chances = belief.distribution(cell)
            assert values.tolist() == list(range(low, high + 1))
            heights = [
                min((v - low + 1) / (peak - low + 1), (high + 1 - v) / (high + 1 - peak))
                for v in range(low, high + 1)
            ]
            assert chances == pytest.approx(np.array(heights) / sum(heights))
    assert belief.decimals == 1
    assert unimodal(Knowledge.of("a").bound("a", 0, 99)).distribution(0)[0].size == 100
    values = np.arange(-1, 7)
    heights = Unimodal().weights(values, np.zeros(8, int), np.full(8, 5))
    assert heights.tolist() == [0, 1, 2, 3, 3, 2, 1, 0]
    heights = Unimodal().weights(values, np.full(8, 1), np.full(8, 5))
    assert heights.tolist() == [0, 0, 1, 2, 3, 2, 1, 0]
    # Margins stand for the facts that they are: 3 and 2 by 4 and 1 leave 2 or 3 to the first cell.
    margins = FibreMargins.two_way([3, 2], [4, 1])
    values, chances = unimodal(margins).distribution(0)
    assert (values.tolist(), chances.tolist()) == ([2, 3], [0.5, 0.5])
    # Whole solutions are closer than real ones: 2x + 2y = 5 z has z even.
    odd = Knowledge.of("xyz").within(0, [3, 3, 1]).fact({"x": 2, "y": 2, "z": -1}, 4, 5)
    assert unimodal(odd).distribution(2)[0].tolist() == [0, 1]
    assert unimodal(odd, integer=True).distribution(2)[0].tolist() == [0, 1]
    tied = Knowledge.of("xyz").within(0, [3, 3, 1]).fact({"x": 2, "y": 2, "z": -1}, 3, 3)
    assert unimodal(tied, integer=True).distribution(2)[0].tolist() == [1]
    for wrong, says in (
        (lambda: unimodal(known.relaxed()), "real"),
        (lambda: unimodal(Knowledge.of("ab")), "no upper bound"),
        (lambda: unimodal(Knowledge.of("ab").bound("a", high=3)), "no centre"),
        (lambda: unimodal(Knowledge.of("a", low=-UNBOUNDED).bound("a", high=3)), "no centre"),
        (lambda: unimodal(Knowledge.of("a").within(0, 10**7)), "too many"),
        (lambda: unimodal([[1, 2], [3, 4]]), "needs Knowledge or Margins"),
        (lambda: unimodal(known, ["a", "b"]), "'mode' must hold a number for each of the 2"),
        (lambda: unimodal(known, {"a": 1, "b": 2}), "'mode' must hold a number for each of the 2"),
        (lambda: unimodal(Knowledge.of("a").bound("a", 0, 3), ["x"]), "'mode' must hold"),
        (lambda: unimodal(known, [1]), "'mode'"),
        (lambda: unimodal(known, [1, np.nan]), "'mode'"),
    ):
        with pytest.raises(InputError, match=says):
            wrong()
