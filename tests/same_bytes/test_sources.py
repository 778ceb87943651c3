"""The sources leave nothing to the processor: sorts, functions and sums whose last bits are open are named.

A line may use one of them with a comment ``# any last bit: <reason>`` on it or above it. What is exact although
the syntax does not show it, such as a product of whole numbers, is listed in ``allowed.txt`` with the reason.
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
EXACT = {"comb", "factorial", "hadamard"}
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
                yield node.lineno, ast.unparse(node.func)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            owner, name = node.value.id, node.attr
            if (owner in ("np", "numpy", "math") and name in (BITS | SUMS) - EXACT) or (
                owner in ("np", "numpy") and name == "linalg"
            ):
                yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in {alias.name for alias in node.names} - EXACT:
                whole = f"{node.module}.{name}"
                if whole.startswith(LIBRARIES) or (node.module == "math" and name in BITS):
                    yield node.lineno, whole
        elif isinstance(node, ast.BinOp) and (
            isinstance(node.op, ast.MatMult) or (isinstance(node.op, ast.Pow) and not exact(node))
        ):
            yield node.lineno, ast.unparse(node)


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


def found() -> Iterator[tuple[str, int, str]]:
    """Each open place that no comment explains: file, line, what."""
    for path in files():
        text = path.read_text(encoding="utf-8")
        lines = text.splitlines()
        for line, what in sorted(set(open_places(ast.parse(text)))):
            if not excused(lines, line):
                yield path.relative_to(SOURCE).as_posix(), line, what


def allowed() -> dict[str, str]:
    lines = (HERE / "allowed.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("  # ", 1) for line in lines if line)  # type: ignore[misc]


def test_what_the_sources_leave_open_is_explained() -> None:
    known = allowed()
    new = [
        f"{file}:{line}: {what}" for file, line, what in found() if f"{file}: {what}" not in known
    ]
    assert not new, (
        "use a stable sort, lustrum.numeric.arithmetic or lustrum.numeric.solve.products; where the last "
        f"bit does not matter say so in a comment '# {WORD} ...', where it is exact in allowed.txt:\n  "
        + "\n  ".join(new)
    )


def test_every_line_of_the_list_is_needed_and_has_its_reason() -> None:
    known = allowed()
    gone = set(known) - {f"{file}: {what}" for file, _, what in found()}
    assert not gone, "no longer in the sources:\n  " + "\n  ".join(sorted(gone))
    assert all(len(reason) > 10 for reason in known.values())


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("np.argsort(x)", "argsort without kind='stable'"),
        ("x.argsort()", "argsort without kind='stable'"),
        ("np.argsort(x, kind='quicksort')", "argsort without kind='stable'"),
        ("np.exp(x)", "np.exp"),
        ("map(math.log, x)", "math.log"),
        ("from scipy.special import gammaln", "scipy.special.gammaln"),
        ("from scipy import stats", "scipy.stats"),
        ("from scipy.linalg import qr", "scipy.linalg.qr"),
        ("from math import log2, ceil", "math.log2"),
        ("x ** 0.3", "x ** 0.3"),
        ("x ** y", "x ** y"),
        ("rng.standard_normal(3)", "rng.standard_normal"),
        ("np.linalg.solve(a, b)", "np.linalg"),
        ("a @ b", "a @ b"),
        ("np.einsum('i,i', a, b)", "np.einsum"),
    ],
)
def test_the_check_sees_what_it_looks_for(line: str, what: str) -> None:
    assert what in [seen for _, seen in open_places(ast.parse(line))]
    assert excused([f"{line}  # {WORD} it is printed with two digits"], 1)
    assert not excused([line], 1)


@pytest.mark.parametrize(
    "line",
    ["np.argsort(x, kind='stable')", "x ** 2", "10 ** decimals", "np.sqrt(x)", "np.sort(x)",
     "math.sqrt(x)", "from math import ceil, comb", "rng.integers(3)", "2.0 ** k"],
)  # fmt: skip
def test_the_check_leaves_alone_what_is_exact(line: str) -> None:
    assert not list(open_places(ast.parse(line)))
