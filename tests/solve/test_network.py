"""Flows of least cost: whole, optimal by their own proof, and as cheap as another solver finds them."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linear_sum_assignment, linprog

from examples import examples
from lustrum.numeric.solve.network import Network, cheapest_flow
from lustrum.numeric.solve.problem import Outcome


def by_linear_program(network: Network):
    """The cost of the cheapest flow, or None; the polyhedron has whole corners."""
    balance = np.zeros((network.supply.size, network.tail.size))
    np.add.at(balance, (network.tail, np.arange(network.tail.size)), 1)
    np.subtract.at(balance, (network.head, np.arange(network.tail.size)), 1)
    bounds = np.column_stack((np.zeros(network.tail.size), network.capacity))
    found = linprog(network.cost, A_eq=balance, b_eq=network.supply, bounds=bounds)
    assert found.status in (0, 2)
    return round(found.fun) if found.status == 0 else None


@st.composite
def networks(draw, nodes=6, arcs=14):
    count = draw(st.integers(1, nodes))
    node = st.integers(0, count - 1)
    size = draw(st.integers(1, arcs))
    tail = np.array(draw(st.lists(node, min_size=size, max_size=size)))
    head = np.array(draw(st.lists(node, min_size=size, max_size=size)))
    capacity = np.array(draw(st.lists(st.integers(0, 4), min_size=size, max_size=size)))
    cost = np.array(draw(st.lists(st.integers(-5, 5), min_size=size, max_size=size)))
    supply = np.zeros(count, dtype=np.int64)
    for arc in range(size):  # some flow that fits, so that most networks have one
        sent = draw(st.integers(0, int(capacity[arc])))
        supply[tail[arc]] += sent
        supply[head[arc]] -= sent
    if draw(st.integers(0, 3)) == 0:
        supply[draw(node)] += 1
        supply[draw(node)] -= 1
    return Network(tail, head, capacity, cost, supply)


@given(network=networks())
@settings(max_examples=examples(75, 1000))
def test_small_networks_cost_what_a_linear_program_says(network: Network) -> None:
    found, expected = cheapest_flow(network), by_linear_program(network)
    if expected is None:
        assert found.outcome is Outcome.INFEASIBLE
        assert found.flow is None
    else:
        assert found.outcome is Outcome.OPTIMAL
        assert found.cost == expected == int(network.cost @ found.flow)
        assert found.flow.dtype == np.int64
        assert network.proven(found.flow, found.potentials)


def test_an_assignment_is_as_cheap_as_the_hungarian_one() -> None:
    cost = np.random.default_rng(2).integers(0, 1000, (80, 80))
    tail, head = (a.ravel() for a in np.indices(cost.shape))
    supply = np.repeat([1, -1], 80)
    network = Network(tail, head + 80, np.ones(cost.size, dtype=int), cost.ravel(), supply)
    found = cheapest_flow(network)
    assert found.cost == cost[linear_sum_assignment(cost)].sum()
    assert network.proven(found.flow, found.potentials)


def test_pivots_without_progress_come_to_an_end() -> None:
    """Ties everywhere: all arcs cost alike or nothing, and unit capacities bind all the time."""
    rng = np.random.default_rng(3)
    for highest in (0, 1):
        tail, head = rng.integers(0, 150, (2, 4000))
        cost = rng.integers(-highest, highest + 1, 4000)
        sent = rng.integers(0, 2, 4000)
        supply = np.zeros(150, dtype=np.int64)
        np.add.at(supply, tail, sent)
        np.subtract.at(supply, head, sent)
        network = Network(tail, head, np.ones(4000, dtype=int), cost, supply)
        found = cheapest_flow(network)
        assert network.proven(found.flow, found.potentials)


def test_costs_beyond_64_bits_are_exact() -> None:
    network = Network(
        [0, 0], [1, 1], [10**12, 10**12], [10**9, 10**9 + 1], [10**12 + 7, -(10**12) - 7]
    )
    assert cheapest_flow(network).cost == 10**21 + 7 * (10**9 + 1)


def test_networks_without_arcs_or_nodes() -> None:
    nothing = np.array([], dtype=np.int64)
    assert cheapest_flow(Network(*[nothing] * 5)).outcome is Outcome.OPTIMAL
    assert cheapest_flow(Network(*[nothing] * 4, [0, 0])).flow.size == 0
    assert cheapest_flow(Network(*[nothing] * 4, [1, -1])).outcome is Outcome.INFEASIBLE
    assert cheapest_flow(Network([0], [1], [9], [1], [2, -1])).outcome is Outcome.INFEASIBLE


def test_wrong_potentials_and_wrong_flows_prove_nothing() -> None:
    network = Network([0, 0], [1, 1], [1, 1], [1, 2], [1, -1])
    found = cheapest_flow(network)
    assert network.proven(found.flow, found.potentials)
    assert not network.proven(found.flow[::-1], found.potentials)
    assert not network.proven(found.flow, np.array([0, 9]))
    assert not network.proven(np.array([0, 0]), found.potentials)
    assert not network.balanced(np.array([2, -1]))


def test_the_same_network_gives_the_same_bytes() -> None:
    rng = np.random.default_rng(8)
    tail, head = rng.integers(0, 30, (2, 500))
    network = Network(
        tail, head, rng.integers(0, 3, 500), rng.integers(-2, 3, 500), np.zeros(30, int)
    )
    once, again = cheapest_flow(network), cheapest_flow(network)
    assert once.flow.tobytes() == again.flow.tobytes()
    assert repr(network) == "Network(30 nodes, 500 arcs)"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"tail": [0, 2]}, "nodes from 0 to 1"),
        ({"head": [-1, 1]}, "nodes from 0 to 1"),
        ({"capacity": [1, -1]}, "0 or more"),
        ({"cost": [0.5, 1.0]}, "whole numbers"),
        ({"cost": [1]}, "Every arc"),
        ({"supply": [[1], [-1]]}, "vector"),
    ],
)
def test_what_is_no_network_is_refused(changed, says) -> None:
    good = {"tail": [0, 0], "head": [1, 1], "capacity": [1, 1], "cost": [1, 1], "supply": [1, -1]}
    with pytest.raises(ValueError, match=says):
        Network(**(good | changed))


@pytest.mark.parametrize("field", ["cost", "capacity"])
def test_numbers_that_do_not_fit_are_refused(field) -> None:
    good = {"tail": [0], "head": [1], "capacity": [1], "cost": [1], "supply": [1, -1]}
    with pytest.raises(ValueError, match="too large"):
        cheapest_flow(Network(**(good | {field: [2**61]})))
