"""The same question gives the same bytes on every processor: seen on one machine.

Golden results are computed in child processes that differ as machines differ, and under a shim that breaks ties
and last bits and takes another of several optima on purpose (``shim.py``). All must agree with each other and
with the digests of another machine.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from same_bytes import golden

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def child(words: list[str], **settings: str) -> Any:
    """What the program prints under these settings."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("LUSTRUM_", "PYTEST_"))}
    paths = [str(ROOT / "src"), str(HERE.parent)]
    done = subprocess.run(
        [sys.executable, "-m", "same_bytes.golden", *words],
        env={**plain, "PYTHONPATH": os.pathsep.join(paths), **settings},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def kept(groups: list[str]) -> dict[str, str]:
    """The digests that were kept of these groups."""
    every: dict[str, str] = json.loads(golden.DIGESTS.read_text(encoding="utf-8"))
    return {k: v for k, v in every.items() if k.partition(":")[0] in groups} if groups else every


def agree(found: dict[str, str], groups: list[str]) -> None:
    wanted = kept(groups)
    other = sorted(k for k in {*found, *wanted} if found.get(k) != wanted.get(k))
    why = {k: f" ({v})" for k, v in found.items() if k.endswith("ended early")}
    lines = "\n".join(f"  {k}{why.get(k, '')}" for k in other)
    assert not other, (
        f"{len(other)} of {len(wanted)} results have other bytes than {golden.DIGESTS.name} says; where a "
        f"change is meant, write it with 'PYTHONPATH=tests python -m same_bytes.golden --write':\n{lines}"
    )


def features() -> str:
    """What numpy dispatches to on this processor beyond its baseline."""
    from numpy._core import _multiarray_umath as core

    known: dict[str, bool] = core.__cpu_features__
    return " ".join(name for name in core.__cpu_dispatch__ if known.get(name))


def another_core() -> str:
    """A kind of core that OpenBLAS has kernels for, on this architecture, other than the usual choice."""
    import platform

    return "ARMV8" if platform.machine() in ("aarch64", "arm64") else "Nehalem"


THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
SETTINGS: dict[str, dict[str, str]] = {
    "another order of hashes": {"PYTHONHASHSEED": "4711"},
    "another core for BLAS": {"OPENBLAS_CORETYPE": another_core()},
    "without features of the processor": {"NPY_DISABLE_CPU_FEATURES": features()},
    "one thread": dict.fromkeys(THREADS, "1"),
}


QUICK = [name for name in golden.GROUPS if name not in ("proven", "suppression")]


@pytest.mark.slow
@pytest.mark.parametrize(
    "groups", [QUICK, pytest.param([], marks=pytest.mark.deep)], ids=["quick groups", "all"]
)
def test_this_machine_gives_the_bytes_that_were_kept(groups: list[str]) -> None:
    """As it is; all of them are compared in every run by the next test, under all that may differ."""
    agree(child(groups, **dict.fromkeys(THREADS, "2")), groups)


@pytest.mark.slow
def test_no_byte_depends_on_settings_ties_or_last_bits() -> None:
    """Other features of numpy, kernels of BLAS, threads and hashes, and the shim, all at once."""
    together = {name: value for settings in SETTINGS.values() for name, value in settings.items()}
    agree(child([], **together, LUSTRUM_SHIM="1"), [])


@pytest.mark.deep
@pytest.mark.parametrize("name", SETTINGS)
def test_no_setting_by_itself_changes_a_byte(name: str) -> None:
    if not all(SETTINGS[name].values()):
        pytest.skip("numpy found no feature of this processor beyond its baseline")
    agree(child([], **SETTINGS[name]), [])


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(1, 21))
def test_no_byte_depends_on_ties_or_last_bits(seed: int) -> None:
    agree(child([], LUSTRUM_SHIM=str(seed)), [])


@pytest.mark.deep
def test_loops_for_any_processor_give_the_same_bytes(tmp_path: Path) -> None:
    """All loops are compiled anew, without the instructions of this processor; that takes minutes."""
    agree(child([], NUMBA_CPU_NAME="generic", NUMBA_CACHE_DIR=str(tmp_path)), [])


UNCOMPILED = ["sums", "surveys", "populations", "rounding"]


@pytest.mark.slow
def test_loops_that_are_not_compiled_give_the_same_bytes() -> None:
    agree(child(UNCOMPILED, NUMBA_DISABLE_JIT="1"), UNCOMPILED)


@pytest.mark.deep
def test_slow_loops_that_are_not_compiled_give_the_same_bytes() -> None:
    agree(child(["measures", "audit"], NUMBA_DISABLE_JIT="1"), ["measures", "audit"])


# --- the shim itself ------------------------------------------------------------------------------

PLANTED = """
import math
import highspy
import numpy as np
from numba import njit
from scipy.special import gammaln

def ties(keys): return np.argsort(keys).tolist()
def method(keys): return keys.argsort().tolist()
def stable(keys): return np.argsort(keys, kind="stable").tolist()
def ranks(keys): return np.argpartition(keys, 3)[:3].tolist()
def below(keys): return np.partition(keys, 3)[3].item()
def exponential(x): return np.exp(x).tolist()
def logarithms(x): return [math.log(v) for v in x]
def gammas(x): return gammaln(x).tolist()
def powers(x): return (x ** 0.3).tolist()
def scalar_powers(x): return [float(v) ** 3 for v in x]
def squares(x): return (x ** 2).tolist()
def exact(x): return [2.0 ** -k for k in range(30)] + np.log2(2.0 ** np.arange(9)).tolist()
def product(x): return float(x @ x)
def whole_product(x): return float(np.rint(x) @ np.rint(x))
def tensors(x): return np.einsum("i,i->", x, x).item()
def solved(x): return np.linalg.solve(np.outer(x, x) + np.eye(x.size), x).tolist()
def normal(x): return np.random.default_rng(1).standard_normal(50).tolist()
def whole(x): return np.random.default_rng(1).integers(0, 9, 50).tolist()

@njit
def looped(x):
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = math.exp(-x[i])
    return out
def loop(x): return looped(x).tolist()

def program(x):
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = x.size, 1
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.ones(x.size), np.zeros(x.size), np.ones(x.size)
    lp.row_lower_, lp.row_upper_ = np.array([7.0]), np.array([9.0])
    lp.a_matrix_.start_ = np.arange(x.size + 1, dtype=np.int32)
    lp.a_matrix_.index_, lp.a_matrix_.value_ = np.zeros(x.size, dtype=np.int32), np.ones(x.size)
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.passModel(lp)
    model.run()
    return model
def vertex(x): return list(program(x).getSolution().col_value)
def optimum(x): return program(x).getInfo().objective_function_value
"""
MOVE = {
    "ties", "method", "ranks", "exponential", "logarithms", "gammas", "powers", "scalar_powers",
    "product", "tensors", "solved", "normal", "loop", "vertex",
}  # fmt: skip
STAY = {"stable", "below", "squares", "exact", "whole_product", "whole", "optimum"}
RUN = """
import json, os, sys
import numba, numpy as np, scipy.special  # once, before the processes part
numba.njit(lambda x: x * 2.0)(1.0)  # what the compiler loads before it compiles anything
keys = np.arange(60) // 7 % 5
x = np.random.default_rng(5).random(60) + 0.1
for settings in json.loads(sys.argv[1]):
    if os.fork():
        if os.wait()[1]:
            sys.exit(1)
        continue
    os.environ.update(settings)
    if settings:
        from same_bytes import shim
    import lustrum_planted as planted
    print(json.dumps({
        name: getattr(planted, name)(
            keys if name in ("ties", "method", "stable", "ranks", "below") else x
        )
        for name in sys.argv[2:]
    }), flush=True)
    break
"""
SEEDS = [{"LUSTRUM_SHIM": seed} for seed in ("1", "2", "3")]
CHOSEN = [
    {"LUSTRUM_SHIM_KINDS": "ties"},
    {"LUSTRUM_SHIM_KINDS": "draws"},
    {"LUSTRUM_SHIM_KINDS": "vertices"},
    {"LUSTRUM_SHIM_KINDS": "bits"},
    {"LUSTRUM_SHIM_ONLY": "elsewhere.py"},
]


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    """What the planted module gives: as it stands, under each seed, under one again, and under parts."""
    folder = tmp_path_factory.mktemp("planted")
    (folder / "lustrum_planted.py").write_text(PLANTED)
    paths = os.pathsep.join([str(folder), str(HERE.parent)])
    each = [{}, *SEEDS, SEEDS[0], *({"LUSTRUM_SHIM": "1", **chosen} for chosen in CHOSEN)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, json.dumps(each), *sorted(MOVE | STAY)],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) == len(each)
    return found


def test_the_shim_changes_what_processors_change_and_nothing_else(planted: list[Any]) -> None:
    plain, shimmed = planted[0], planted[1:4]
    assert shimmed[0] == planted[4], "the shim is not repeatable"
    changed: set[str] = set()
    for found in shimmed:
        changed |= {name for name in plain if found[name] != plain[name]}
        for name in MOVE - {"ties", "method", "ranks", "vertex"}:
            assert found[name] == pytest.approx(plain[name], rel=1e-13), name
        keys = np.arange(60) // 7 % 5
        assert (np.diff(keys[found["ties"]]) >= 0).all()
    assert changed == MOVE


def test_each_kind_of_the_shim_can_be_chosen_and_each_place(planted: list[Any]) -> None:
    plain = planted[0]
    ties, draws, vertices, bits, elsewhere = (
        {name for name in plain if found[name] != plain[name]} for found in planted[5:]
    )
    assert ties == {"ties", "method", "ranks"}
    assert draws == {"normal"}
    assert vertices == {"vertex"}
    assert "exponential" in bits
    assert elsewhere == set()


def test_every_method_measure_and_format_has_a_golden_result() -> None:
    from lustrum.model.plugins import names

    every = set(golden.SPECS) | set(golden.SUMS) | set(golden.RECORDS) | golden.ELSEWHERE
    assert every == set(names("lustrum.methods"))
    wanted = kept([])
    for room, start in (("lustrum.risks", "risk"), ("lustrum.utilities", "utility")):
        for name in names(room):
            assert any(key.startswith(f"measures: {start} {name}") for key in wanted), name
    for name in {*names("lustrum.methods")} - golden.ELSEWHERE:
        assert any(key.startswith(f"methods: {name} ") for key in wanted), name
    for name in names("lustrum.formats"):
        assert any(key.endswith(f": {name}") for key in wanted), name
