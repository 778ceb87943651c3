"""Work on very many areas grows with their number, not with its square.

Steps of Python and the peak of memory are counted instead of seconds, so that a busy machine changes nothing:
a loop over pairs of areas shows in the first, a matrix of areas by areas in the second.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType, ModuleType
from typing import Any

import pytest

from lustrum.answer.table_service import TableService
from lustrum.local import local_service
from lustrum.model import Dataset
from lustrum.model.search_text import words_of
from lustrum.policy.presets import preset
from lustrum.policy.read import sealed
from lustrum.publish.bundles.make import make_bundle
from lustrum.tabulate import Store

FEW = 1_000
MOST = 2.5
"""How much more the work for twice as many areas may be."""


def _bench() -> ModuleType:
    path = Path(__file__).parents[2] / "bench" / "areas.py"
    spec = importlib.util.spec_from_file_location("bench_areas", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BENCH = _bench()
SIZES = {"few": FEW, "many": 2 * FEW}


def work(task: Callable[[], Any]) -> tuple[int, int]:
    """Steps of Python, and the most bytes held at once, that a task takes."""
    steps = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal steps
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        steps += event == "opcode"
        return trace

    gc.collect()
    before = sys.gettrace()
    tracemalloc.start()
    try:
        sys.settrace(trace)
        task()
    finally:
        sys.settrace(before)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return steps, peak


def assert_linear(few: Callable[[], Any], many: Callable[[], Any]) -> None:
    small, large = work(few), work(many)
    for less, more in zip(small, large, strict=True):
        assert more <= MOST * less, (small, large)


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, TableService]]:
    made = {}
    for name, areas in {"first": 300, **SIZES}.items():
        store = Store(tmp_path_factory.mktemp(name))
        BENCH.fill(store, areas, 10 * areas)
        made[name] = local_service(store.root, workers=1)
    for query in BENCH.questions(300).values():  # compiles loops, which is no work on areas
        made["first"].answer(query)
    for name in SIZES:
        made[name].snapshot("areas")
    yield made
    for service in made.values():
        service.close()


def test_work_that_grows_with_the_square_is_noticed() -> None:
    def pairs(areas: int) -> list[int]:
        return [i + j for i in range(areas) for j in range(areas)]

    with pytest.raises(AssertionError):
        assert_linear(lambda: pairs(100), lambda: pairs(200))


def test_a_description_and_a_search_of_it_are_linear() -> None:
    def described(words: dict[str, Any]) -> None:
        area = Dataset.from_mapping(words).variable("area")
        for level in (None, "district", "region"):
            assert area.search(words_of("1 0"), level) is not None
        assert area.category("R0").members

    few, many = (BENCH.description(areas) for areas in SIZES.values())
    assert_linear(lambda: described(few), lambda: described(many))


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if "totals" in name or "areas" in name else pytest.mark.deep)
        for name in BENCH.questions(FEW)
    ],
)
def test_a_protected_answer_is_linear(services: dict[str, TableService], name: str) -> None:
    def answer(size: str) -> None:
        query = BENCH.questions(SIZES[size])[name]
        assert services[size].answer(query).release is not None

    assert_linear(lambda: answer("few"), lambda: answer("many"))


def protect(store: Store, areas: int) -> None:
    policy = store.root / "policies" / "areas.toml"
    described = Dataset.from_mapping(BENCH.description(areas))
    policy.write_bytes(sealed(preset("strict", described).encode(), str(policy)))
    make_bundle(store, "areas", policy, store.root / "bundles" / "areas", workers=1)


@pytest.mark.deep
def test_a_protected_population_and_answers_from_it_are_linear(tmp_path: Path) -> None:
    stores = {}
    for name, areas in {"first": 300, **SIZES}.items():
        stores[name] = Store(tmp_path / name)
        BENCH.fill(stores[name], areas, 10 * areas)
    protect(stores["first"], 300)
    assert_linear(*(lambda name=name: protect(stores[name], SIZES[name]) for name in SIZES))
    opened = {name: local_service(store.root, workers=1) for name, store in stores.items()}
    for query in BENCH.questions(300).values():
        assert opened["first"].answer(query).release is not None

    def answer(name: str) -> None:
        for query in BENCH.questions(SIZES[name]).values():
            assert opened[name].answer(query).release is not None

    assert_linear(*(lambda name=name: answer(name) for name in SIZES))
