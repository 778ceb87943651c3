"""The sources leave nothing to the processor: sorts, functions and sums whose last bits are open are named.

A line may use one of them with a comment ``# any last bit: <reason>`` on it or above it. Products by ``@`` are listed in
``products.txt``, with a reason, because the syntax does not say whether they are of whole numbers.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from same_bytes.shim import BITS, DRAWS, SUMS

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parent.parent / "src" / "lustrum"
OWN = {"arithmetic.py", "arithmetic_loops.py"}
"""Where functions are made of operations that are rounded correctly everywhere."""
WORD = "any last bit:"
NUMPY = {"np", "numpy", "math"}
STABLE = {"stable", "mergesort"}
LIBRARIES = ("scipy.special", "scipy.stats", "scipy.linalg", "scipy.sparse.linalg", "numpy.linalg")


def open_places(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Lines that leave order or last bits open, and what they use."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if name in ("argsort", "argpartition"):
                kind = [k.value for k in node.keywords if k.arg == "kind"]
                if not (kind and isinstance(kind[0], ast.Constant) and kind[0].value in STABLE):
                    yield node.lineno, f"{name} without kind='stable'"
            if name in DRAWS and isinstance(node.func, ast.Attribute):
                yield node.lineno, f"the draw {name}"
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in NUMPY and node.attr in (BITS | SUMS) - {"norm"}:
                yield node.lineno, f"{node.value.id}.{node.attr}"
            if node.value.id in ("np", "numpy") and node.attr == "linalg":
                yield node.lineno, "np.linalg"
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {alias.name for alias in node.names}
            parts = {f"{node.module}.{name}" for name in names}
            if node.module == "math" and names & BITS:
                yield node.lineno, f"math.{min(names & BITS)}"
            for library in LIBRARIES:
                if node.module.startswith(library) or library in parts:
                    yield node.lineno, library
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) and not exact(node):
            yield node.lineno, f"the power {ast.unparse(node)}"


def exact(power: ast.BinOp) -> bool:
    """Whole powers of constants, and squares."""
    base, exponent = power.left, power.right
    if isinstance(exponent, ast.Constant) and exponent.value == 2:
        return True
    return isinstance(base, ast.Constant) and base.value in (2, 10, 2.0, 10.0)


def excused(lines: list[str], number: int) -> bool:
    return any(WORD in line for line in lines[max(0, number - 3) : number])


def files() -> list[Path]:
    return sorted(p for p in SOURCE.rglob("*.py") if p.name not in OWN)


def test_sorts_and_functions_of_the_sources_are_the_same_everywhere() -> None:
    found = []
    for path in files():
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        found += [
            f"{path.relative_to(SOURCE)}:{line}: {what}"
            for line, what in sorted(set(open_places(ast.parse(text))))
            if not excused(lines, line)
        ]
    assert not found, (
        "use lustrum.arithmetic, a stable sort or another way, or say why it does not matter in a comment "
        f"'# {WORD} ...':\n  " + "\n  ".join(found)
    )


def products() -> Iterator[str]:
    for path in files():
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            is_product = isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)
            if is_product and not excused(lines, node.lineno):
                yield f"{path.relative_to(SOURCE)}: {ast.unparse(node)}"


def listed() -> dict[str, str]:
    lines = (HERE / "products.txt").read_text(encoding="utf-8").splitlines()
    pairs = [line.split("  # ") for line in lines if line and not line.startswith("#")]
    return {product: reason for product, reason in pairs}


def test_every_product_of_matrices_is_known_to_be_exact_or_not_to_matter() -> None:
    """The list is complete, has a reason on every line, and holds nothing that is gone."""
    there, known = set(products()), listed()
    new, gone = sorted(there - set(known)), sorted(set(known) - there)
    assert not new, "say in products.txt why their last bits do not matter:\n  " + "\n  ".join(new)
    assert not gone, "no longer in the sources:\n  " + "\n  ".join(gone)
    assert all(reason.strip() for reason in known.values())


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("np.argsort(x)", "argsort without kind='stable'"),
        ("x.argsort()", "argsort without kind='stable'"),
        ("np.argsort(x, kind='quicksort')", "argsort without kind='stable'"),
        ("np.exp(x)", "np.exp"),
        ("map(math.log, x)", "math.log"),
        ("from scipy.special import gammaln", "scipy.special"),
        ("from scipy import stats", "scipy.stats"),
        ("from math import log2, ceil", "math.log2"),
        ("x ** 0.3", "the power x ** 0.3"),
        ("x ** y", "the power x ** y"),
        ("rng.standard_normal(3)", "the draw standard_normal"),
        ("np.linalg.solve(a, b)", "np.linalg"),
        ("np.einsum('i,i', a, b)", "np.einsum"),
    ],
)
def test_the_check_sees_what_it_looks_for(line: str, what: str) -> None:
    assert what in [found for _, found in open_places(ast.parse(line))]
    assert excused([f"{line}  # {WORD} it is printed with two digits"], 1)
    assert not excused([line], 1)


@pytest.mark.parametrize(
    "line",
    ["np.argsort(x, kind='stable')", "x ** 2", "10 ** decimals", "np.sqrt(x)", "np.sort(x)",
     "math.sqrt(x)", "from math import ceil", "rng.integers(3)", "2.0 ** k"],
)  # fmt: skip
def test_the_check_leaves_alone_what_is_exact(line: str) -> None:
    assert not list(open_places(ast.parse(line)))
