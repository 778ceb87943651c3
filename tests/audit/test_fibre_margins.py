"""Junction trees of margins, and the diagnostics of chains beside their definitions."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from lustrum.audit.fibre import effective_size, split_rhat
from lustrum.audit.fibre.margins import junction_tree
from lustrum.model import InputError


def trees(cliques, axes):
    """All ways to attach cliques one after the other with the running intersection property."""
    for order in itertools.permutations(cliques):
        seen = set(order[0])
        for k, clique in enumerate(order[1:], 1):
            if not any(set(clique) & seen <= set(earlier) for earlier in order[:k]):
                break
            seen |= set(clique)
        else:
            if seen == set(range(axes)):
                return True
    return False


def test_a_junction_tree_exists_where_cliques_can_be_attached_one_by_one():
    sets = [s for size in (1, 2, 3) for s in itertools.combinations(range(4), size)]
    tried = 0
    for count in (1, 2, 3, 4):
        for cliques in itertools.combinations(sets, count):
            if any(set(a) <= set(b) for a, b in itertools.permutations(cliques, 2)):
                continue
            tried += 1
            tree = junction_tree(cliques, 4)
            assert (tree is not None) == trees(cliques, 4)
            if tree is None:
                continue
            seen = set(cliques[0])
            assert len(tree) == count - 1
            for edge in tree:
                parts = [set(p) for p in (edge.separator, edge.left, edge.right)]
                assert sorted([*edge.separator, *edge.left, *edge.right]) == [0, 1, 2, 3]
                assert set(edge.child) & seen == parts[0]
                assert set(edge.child) - parts[0] <= parts[2]
                assert seen - parts[0] <= parts[1]
                seen |= set(edge.child)
                # No clique lies on both sides.
                assert not any(parts[1] & set(c) and parts[2] & set(c) for c in cliques)
    assert tried > 80


def chains(seed: int, draws: int, rho: float = 0.0) -> np.ndarray:
    """Three chains of two quantities that remember a share of the draw before."""
    noise = np.random.default_rng(seed).normal(size=(3, draws, 2))
    out = noise.copy()
    for k in range(1, draws):
        out[:, k] = rho * out[:, k - 1] + noise[:, k]
    return out


def halves(values: np.ndarray, quantity: int) -> list[list[float]]:
    half = values.shape[1] // 2
    rows = values[:, :, quantity].tolist()
    return [r[:half] for r in rows] + [r[len(r) - half :] for r in rows]


def mean(values) -> float:
    return math.fsum(values) / len(values)


def variance(values) -> float:
    return math.fsum((v - mean(values)) ** 2 for v in values) / (len(values) - 1)


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize(
    ("draws", "rho"),
    [(4, 0.0), (5, 0.3), (9, 0.9), (30, 0.5), (31, -0.9), (40, 0.0), (40, -0.95), (64, 0.8)],
)
def test_diagnostics_are_those_of_the_book(draws, rho, count):
    values = chains(draws, draws, rho)[:count]
    rhat, size = split_rhat(values), effective_size(values)
    for quantity in range(2):
        parts = halves(values, quantity)
        n, m = len(parts[0]), len(parts)
        within = mean([variance(p) for p in parts])
        between = variance([mean(p) for p in parts])
        pooled = (n - 1) / n * within + between
        assert rhat[quantity] == pytest.approx(math.sqrt(pooled / within), rel=1e-12)
        correlation = [1.0]
        for lag in range(1, n):
            moment = mean(
                [
                    math.fsum((p[k] - mean(p)) * (p[k + lag] - mean(p)) for k in range(n - lag))
                    / (n - 1)
                    for p in parts
                ]
            )
            correlation.append(1 - (within - moment) / pooled)
        total, least = 0.0, math.inf
        for one, two in zip(correlation[0::2], correlation[1::2], strict=False):
            if one + two <= 0:
                break
            least = min(least, one + two)
            total += least
        time = max(2 * total - 1, 1 / math.log10(max(n * m, 10)))
        assert size[quantity] == pytest.approx(n * m / time, rel=1e-9)


def test_chains_that_disagree_or_stand_still_are_not_trusted():
    rng = np.random.default_rng(3)
    apart = rng.normal(size=(4, 200, 1)) + np.arange(4)[:, None, None]
    assert split_rhat(apart)[0] > 1.3
    assert effective_size(apart)[0] < 20
    drifting = rng.normal(size=(4, 200, 1)) + np.linspace(0, 3, 200)[None, :, None]
    assert split_rhat(drifting)[0] > 1.2
    stuck = np.repeat(np.arange(4.0)[:, None, None], 50, axis=1)
    assert np.isinf(split_rhat(stuck)[0])
    assert np.isnan(effective_size(np.zeros((4, 50, 1)))[0])
    # An autoregression with coefficient 0.8 is worth (1 - 0.8) / (1 + 0.8) of its length.
    noise, chain = rng.normal(size=(4, 20_000)), np.zeros((4, 20_000))
    for k in range(1, 20_000):
        chain[:, k] = 0.8 * chain[:, k - 1] + noise[:, k]
    assert effective_size(chain[:, :, None])[0] == pytest.approx(80_000 / 9, rel=0.15)
    with pytest.raises(InputError, match="four draws"):
        split_rhat(np.zeros((2, 3, 1)))
