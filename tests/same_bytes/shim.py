"""Another processor, on this one: ties and last bits of everything that processors may do differently.

The sources of ``lustrum`` are rewritten while they are imported. A call that leaves something open is made as
it stands, and its result is changed to another one that is just as right:

- ``ties``: a sort that does not say ``stable`` orders ties by chance;
- ``bits``: exp, log, powers, gamma functions, quantiles and the like move by one unit in the last place or not
  at all;
- ``sums``: products of matrices and vectors (``@``, dot, einsum, linalg, interp, convolve) move by about a unit
  in the last place, as they do when terms are added in another order or with fused operations;
- ``draws``: normal, exponential and gamma draws move by one unit in the last place, because they end in a
  logarithm;
- ``solver``: fractional parts of solutions of linear programs move by about 1e-13;
- ``vertices``: programs are handed to HiGHS with rows and columns in another order and with another seed, so
  that it takes another way and ends in another of several optima (``vertices.py``).

What is exact everywhere stays: whole results, and sums of products of short numbers. A change depends on the
seed, the function and the result alone, so that asking again gives the same, as it does on a real processor.

``LUSTRUM_SHIM`` holds the seed, and ``LUSTRUM_SHIM_KINDS`` names some kinds. ``LUSTRUM_SHIM_ONLY`` is a regular
expression for places such as ``protect/simulated.py:190``. Places that were met are appended to the file
``LUSTRUM_SHIM_LOG``, with how often their results were changed. ``pytest -p same_bytes.shim`` puts any test
under the shim, with ``PYTHONPATH=tests``.
"""

from __future__ import annotations

import ast
import atexit
import math
import os
import re
import sys
import zlib
from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from same_bytes.vertices import Shuffled

KINDS = ("ties", "bits", "sums", "draws", "solver", "vertices")
"""What is changed unless something else is asked for."""

SORTS = {"argsort", "argpartition", "partition"}
BITS = {
    "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "power", "float_power", "cbrt",
    "sin", "cos", "tan", "asin", "acos", "atan", "atan2", "arcsin", "arccos", "arctan", "arctan2",
    "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "arcsinh", "arccosh", "arctanh", "hypot",
    "erf", "erfc", "gamma", "lgamma", "logaddexp", "logaddexp2", "geomspace", "logspace", "dist",
    # scipy.special
    "gammaln", "loggamma", "betaln", "beta", "digamma", "psi", "polygamma", "binom", "ndtr", "ndtri",
    "log_ndtr", "erfinv", "erfcinv", "expit", "logit", "xlogy", "xlog1py", "entr", "rel_entr",
    "kl_div", "logsumexp", "softmax", "log_softmax", "gammainc", "gammaincc", "betainc", "bdtr",
    "pdtr", "stdtrit", "chdtri", "factorial", "comb", "exprel", "zeta",
    # scipy.stats
    "pmf", "logpmf", "pdf", "logpdf", "cdf", "logcdf", "sf", "logsf", "ppf", "isf",
}  # fmt: skip
SUMS = {
    "dot", "vdot", "inner", "matmul", "einsum", "tensordot", "interp", "convolve", "correlate",
    "vecdot", "norm", "qr", "svd", "lstsq", "solve", "inv", "pinv", "det", "slogdet", "eig", "eigh",
    "eigvalsh", "cholesky", "cho_factor", "cho_solve", "lu_factor", "lu_solve", "dormqr", "cov",
    "corrcoef", "polyfit",
}  # fmt: skip
DRAWS = {
    "standard_normal", "normal", "lognormal", "standard_exponential", "exponential", "laplace",
    "standard_gamma", "gamma", "beta", "chisquare", "dirichlet", "weibull", "pareto", "gumbel",
    "logistic", "standard_t", "standard_cauchy", "multivariate_normal",
}  # fmt: skip
SOLVER = {"getSolution", "linprog", "milp", "minimize", "brentq", "nnls"}
VERTICES = {"Highs"}
WATCHED = SORTS | BITS | SUMS | DRAWS | SOLVER | VERTICES
LIBRARIES = ("numpy", "scipy", "math", "highspy")


def words(seed: int, name: str, values: np.ndarray) -> np.ndarray:
    """One word for every number, from its bits: SplitMix64."""
    mixed = np.ascontiguousarray(values, dtype=np.float64).view(np.uint64).reshape(values.shape)
    mixed = mixed ^ np.uint64((seed * 0x9E3779B97F4A7C15 + zlib.crc32(name.encode())) % 2**64)
    for shift, times in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(times)
    return mixed ^ (mixed >> np.uint64(31))


def moved(seed: int, name: str, values: Any, by: float = 0.0) -> Any:
    """The same numbers, each a unit in the last place or a share ``by`` higher or lower, or as it was."""
    array = np.asarray(values)
    if array.dtype not in (np.float64, np.float32) or array.size == 0:
        return values
    with np.errstate(all="ignore"):
        step = (words(seed, name, array) % np.uint64(3)).astype(np.int64) - 1
        fixed = ~np.isfinite(array) | (array == np.rint(array))
        other = np.nextafter(array, np.where(step > 0, np.inf, -np.inf).astype(array.dtype))
        if by:
            other = (array * (1.0 + step * by)).astype(array.dtype)
        out = np.where(fixed | (step == 0), array, other)
    if isinstance(values, np.ndarray):
        return out if values.ndim else out[()]
    return type(values)(out) if isinstance(values, float) else out[()]


def sparse(value: Any) -> bool:
    return hasattr(value, "tocsr")


def signs(value: Any) -> bool:
    """Whether all entries are 0, 1 or -1."""
    data = np.asarray(value.tocsr().data if sparse(value) else value)
    return bool(np.isin(data, (-1, 0, 1)).all())


def short(value: Any) -> bool:
    """Whether sums of products of these numbers are exact, in whatever order."""
    data = np.asarray(value.tocsr().data if sparse(value) else value)
    if data.dtype.kind in "biuO":
        return True
    with np.errstate(all="ignore"):
        scaled = data * 256.0
        return bool((np.isfinite(data) & (scaled == np.rint(scaled)) & (abs(data) < 2**25)).all())


class Shim:
    """What the rewritten sources call in place of what they named."""

    def __init__(self, seed: int, kinds: Sequence[str] = KINDS, only: str = "") -> None:
        self.seed, self.kinds, self.only = seed, frozenset(kinds), re.compile(only)
        self.changed: dict[str, int] = {}

    def wants(self, kind: str, place: str) -> bool:
        return kind in self.kinds and bool(self.only.search(place))

    def changes(self, place: str, before: Any, after: Any) -> Any:
        """The result after a change, and a note of the place if there was one."""
        if before is not after and not np.array_equal(before, after):
            self.changed[place] = self.changed.get(place, 0) + 1
        return after

    def call(self, place: str, function: Any, *args: Any, **named: Any) -> Any:
        """Call, and change what comes back if another processor could give another result."""
        kind = kind_of(function)
        if kind is None or not self.wants(kind, place):
            return function(*args, **named)
        self.changed.setdefault(place, 0)
        name = function.__name__
        if kind == "ties":
            return self.sort(place, function, *args, **named)
        before = function(*args, **named)
        if kind == "vertices":
            self.changed[place] += 1
            return Shuffled(before, self.seed)
        if kind == "solver":
            return self.solution(place, before)
        if kind == "sums" and all(short(a) for a in args if not isinstance(a, str | tuple)):
            return before
        out = named.get("out")
        if out is not None:
            kept = out.copy()
            out[...] = moved(self.seed, name, out)
            return self.changes(place, kept, out) if before is out else before
        return self.numbers(place, name, before, 2e-16 if kind == "sums" else 0.0)

    def numbers(self, place: str, name: str, before: Any, by: float) -> Any:
        if sparse(before):
            after = before.copy()
            after.data = self.numbers(place, name, before.data, by)
            return after
        if isinstance(before, tuple):
            parts = [self.numbers(place, name, part, by) for part in before]
            return type(before)(*parts) if hasattr(before, "_fields") else tuple(parts)
        if isinstance(before, float | np.ndarray | np.floating):
            return self.changes(place, before, moved(self.seed, name, before, by))
        return before

    def sort(self, place: str, function: Any, *args: Any, **named: Any) -> Any:
        """An order in which ties stand by chance."""
        own = getattr(function, "__self__", None)
        keys, *rest = (own, *args) if isinstance(own, np.ndarray) else args
        before = function(*args, **named)
        if named.get("kind") in ("stable", "mergesort") or named.get("stable"):
            return before
        keys = np.asarray(keys)
        axis = named.get("axis", -1)
        axis, keys = (0, keys.ravel()) if axis is None or keys.ndim == 0 else (axis, keys)
        chance = np.random.default_rng([self.seed, zlib.crc32(repr(keys.tolist()).encode())])
        mixed = chance.permutation(keys.shape[axis])
        order = mixed[np.argsort(np.take(keys, mixed, axis), axis=axis, kind="stable")]
        if function.__name__ == "partition":
            (rank,) = rest or (named["kth"],)
            assert keys.ndim == 1
            assert np.ndim(rank) == 0
            low, high = chance.permutation(order[:rank]), chance.permutation(order[rank:][1:])
            order = keys[np.concatenate([low, order[rank:][:1], high])]
        return self.changes(place, before, order)

    def solution(self, place: str, found: Any) -> Any:
        for name in ("x", "col_value", "row_dual", "col_dual"):
            values = getattr(found, name, None)
            if values is not None:
                after = self.changes(
                    place, np.asarray(values), moved(self.seed, name, np.asarray(values), 1e-13)
                )
                setattr(found, name, after if isinstance(values, np.ndarray) else after.tolist())
        return found

    def product(self, place: str, left: Any, right: Any) -> Any:
        before = left @ right
        if self.wants("sums", place):
            self.changed.setdefault(place, 0)
        # A sparse product is added up in the order of its entries; of 0, 1 and -1 the products are exact.
        plain = any(map(sparse, (left, right))) and (signs(left) or signs(right))
        if not self.wants("sums", place) or plain or (short(left) and short(right)):
            return before
        return self.numbers(place, "@", before, 2e-16)

    def power(self, place: str, base: Any, exponent: Any) -> Any:
        before = base**exponent
        if not self.wants("bits", place):
            return before
        arrays = isinstance(base, np.ndarray | np.generic)
        # Numpy squares, takes roots and inverts by operations that are rounded correctly.
        if np.ndim(exponent) == 0 and exponent in ((2, 1, 0, 0.5, -1) if arrays else (1, 0)):
            return before
        if isinstance(base, float | int) and isinstance(exponent, int) and math.isfinite(before):
            if Fraction(base) ** exponent == Fraction(before):
                return before
        return self.numbers(place, "power", before, 0.0)


def kind_of(function: Any) -> str | None:
    """Which part of a result a function of numpy, scipy, math or a solver leaves open."""
    name = getattr(function, "__name__", "")
    own = getattr(function, "__self__", None)
    if isinstance(own, np.random.Generator):
        return "draws" if name in DRAWS else None
    module = type(own).__module__ if own is not None and not isinstance(own, ModuleType) else ""
    module = module if module not in ("", "builtins") else getattr(function, "__module__", "") or ""
    if isinstance(function, np.ufunc) or type(own).__name__ == "SuperLU":
        module = "scipy"
    if isinstance(own, Shuffled):
        module = "highspy"
    if module.split(".")[0].strip("_") not in LIBRARIES or sparse(own):
        return None
    for kind, names in (
        ("ties", SORTS), ("bits", BITS), ("sums", SUMS), ("solver", SOLVER), ("vertices", VERTICES),
    ):  # fmt: skip
        if name in names:
            return kind
    return None


@cache
def bits_in_loops(seed: int) -> Any:
    """What moves a number inside a compiled loop; whole numbers stay."""
    import numba
    from numba.extending import overload

    salt = zlib.crc32(str(seed).encode())

    def lustrum_shim_bit(value: Any, number: int) -> Any:
        return moved(seed, str(number), value)

    @overload(lustrum_shim_bit)
    def _(value: Any, number: int) -> Any:
        if not isinstance(value, numba.types.Float):
            return lambda value, number: value

        def move(value: Any, number: int) -> Any:
            if value != value or value == np.rint(value):
                return value
            mantissa, _ = math.frexp(value)
            word = np.uint64(np.int64(mantissa * 9007199254740992.0) ^ (salt + number))
            word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            step = (word >> np.uint64(31)) % np.uint64(3)
            if step == 0:
                return value
            return np.nextafter(value, np.inf if step == 1 else -np.inf)

        return move

    return lustrum_shim_bit


class Rewriter(ast.NodeTransformer):
    """Puts the shim in front of every watched call, ``@`` and ``**`` of a file."""

    def __init__(self, file: str) -> None:
        self.file, self.loop, self.loops = file, False, 0

    def place(self, node: ast.expr) -> ast.Constant:
        return ast.Constant(f"{self.file}:{node.lineno}")

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        before = self.loop
        named = " ".join(ast.unparse(one) for one in node.decorator_list)
        in_loop = "compiled" in named or "njit" in named or "inlined" in named
        self.loop = before or (in_loop and os.environ.get("NUMBA_DISABLE_JIT") != "1")
        node.body = [self.visit(one) for one in node.body]
        self.loop = before
        return node

    def put(self, node: ast.expr, how: str, *parts: ast.expr, keywords: Any = ()) -> ast.AST:
        function = ast.Attribute(ast.Name("__lustrum_shim__", ast.Load()), how, ast.Load())
        call = ast.Call(function, [self.place(node), *parts], list(keywords))
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def in_loop(self, node: ast.expr) -> ast.AST:
        place = f"{self.file}:{node.lineno}"
        if not SHIM.wants("bits", place):
            return node
        name = ast.Name("__lustrum_shim_bit__", ast.Load())
        call = ast.Call(name, [node, ast.Constant(zlib.crc32(place.encode()))], [])
        SHIM.changed[f"{place} (loop)"] = 1
        self.loops += 1
        return ast.fix_missing_locations(ast.copy_location(call, node))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if self.loop:
            named = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value)
            return self.in_loop(node) if name in BITS and named in ("math", "np") else node
        if name not in WATCHED:
            return node
        return self.put(node, "call", node.func, *node.args, keywords=node.keywords)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.MatMult) and not self.loop:
            return self.put(node, "product", node.left, node.right)
        whole = isinstance(node.right, ast.Constant) and isinstance(node.right.value, int)
        if not isinstance(node.op, ast.Pow) or (whole and isinstance(node.left, ast.Constant)):
            return node
        if self.loop:
            return node if whole else self.in_loop(node)
        return self.put(node, "power", node.left, node.right)


class Loader(SourceFileLoader):
    """Compiles the rewritten source; nothing is kept on disk."""

    def exec_module(self, module: ModuleType) -> None:
        path = self.get_filename(module.__name__)
        rewriter = Rewriter(path.rpartition("/lustrum/")[2])
        tree = ast.fix_missing_locations(rewriter.visit(ast.parse(self.get_data(path), path)))
        vars(module)["__lustrum_shim__"] = SHIM
        if rewriter.loops:
            vars(module)["__lustrum_shim_bit__"] = bits_in_loops(SHIM.seed)
        exec(compile(tree, path, "exec", dont_inherit=True), vars(module))
        if module.__name__ == "lustrum.numeric.compiled":
            vars(module)["compiled"] = without_keeping(vars(module)["compiled"])


class Finder(MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] not in ("lustrum", "lustrum_planted"):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and type(spec.loader) is SourceFileLoader:
            spec.loader = Loader(spec.loader.name, spec.loader.path)
        return spec


def without_keeping(compiled: Any) -> Any:
    """Loops in which bits move are compiled anew each time: nothing of the kind may be kept on disk."""

    def changed(loop: Any, seen: set[Any]) -> bool:
        function = loop.py_func
        if function in seen:
            return False
        seen.add(function)
        values = [function.__globals__.get(word) for word in function.__code__.co_names]
        return "__lustrum_shim_bit__" in function.__code__.co_names or any(
            changed(value, seen) for value in values if hasattr(value, "py_func")
        )

    def made(function: Any, **options: Any) -> Any:
        loop = compiled(function, **options)
        loop.keep = not changed(loop, set())
        return loop

    return made


def install(environment: Any = os.environ) -> None:
    """Read the variables, and rewrite what is imported from now on."""
    global SHIM
    assert "lustrum" not in sys.modules, "the shim must be there before the package is imported"
    kinds = environment.get("LUSTRUM_SHIM_KINDS", " ".join(KINDS)).replace(",", " ").split()
    SHIM = Shim(int(environment["LUSTRUM_SHIM"]), kinds, environment.get("LUSTRUM_SHIM_ONLY", ""))
    sys.meta_path.insert(0, Finder())
    log = environment.get("LUSTRUM_SHIM_LOG")
    if log:
        atexit.register(lambda: write_log(Path(log)))


def write_log(path: Path) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.writelines(f"{place} {count}\n" for place, count in sorted(SHIM.changed.items()))


SHIM = Shim(0, ())
if os.environ.get("LUSTRUM_SHIM"):
    install()
