"""Every single change to a module: comparisons, signs, constants, conditions, arguments, statements.

What cannot change a number, a bound or a decision is left alone: docstrings, annotations, messages,
decorators, defaults of parameters and of fields, types of arrays. Other texts are left alone too.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_PAIRS = (
    ("min", "max"),
    ("minimum", "maximum"),
    ("any", "all"),
    ("floor", "ceil"),
    ("argmin", "argmax"),
    ("union", "intersection"),
    ("lower", "upper"),
    ("low", "high"),
)
_SWAPS = {one: other for pair in _PAIRS for one, other in (pair, pair[::-1])}
# Calls that say something, or that protect an array against a later mistake.
_MESSAGES = {"say", "say_many", "Reason", "warn", "cast", "TypeVar", "info", "debug", "warning"}
_MESSAGES |= {"setflags"}
# Arguments that change neither a number nor a decision when they are left out.
_QUIET = {"dtype", "copy", "strict", "encoding", "stacklevel", "message", "maxsize", "sort_keys"}
# How a sparse matrix is stored, not what it holds.
_STORAGE = {"format"}
_LIBRARIES = {"np", "sparse", "math", "numba", "scipy", "json", "re", "pa", "pc"}
_BUILTINS = {"range", "zip", "getattr", "isinstance", "max", "min", "sum", "round", "divmod", "map"}


@dataclass(frozen=True)
class Mutant:
    """One change: where it is, how the statement read before and reads now, and how to make it in the tree."""

    where: str
    first: int
    last: int
    inner: int  # the first line of the body, 0 without one
    before: str
    after: str
    change: Callable[[], None]


def mutants(tree: ast.Module) -> Iterator[Mutant]:
    """All changes to a tree, always in the same order. To make one, call its ``change`` once."""
    for where, statement in _statements(tree):
        before = _text(statement)
        for change, back in _changes(statement):
            change()
            after = _text(statement)
            back()
            if after != before:
                lines = statement.lineno, _last(statement), _inner(statement)
                yield Mutant(where, *lines, before, after, change)


def _statements(tree: ast.Module) -> Iterator[tuple[str, ast.stmt]]:
    """Statements in functions and methods, and the values of module constants."""

    def inside(body: list[ast.stmt], where: str, running: bool) -> Iterator[tuple[str, ast.stmt]]:
        for statement in body:
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
                yield from inside(statement.body, f"{where}.{statement.name}", True)
            elif isinstance(statement, ast.ClassDef):
                yield from inside(statement.body, f"{where}.{statement.name}", False)
            elif running:
                if not _is_text(statement):
                    yield where, statement
                for name in ("body", "orelse", "finalbody"):
                    yield from inside(getattr(statement, name, []), where, True)
                for handler in getattr(statement, "handlers", []):
                    yield from inside(handler.body, where, True)
                for case in getattr(statement, "cases", []):
                    yield from inside(case.body, where, True)
            elif isinstance(statement, ast.Assign | ast.AnnAssign) and not where:
                yield "", statement

    return inside(tree.body, "", False)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _inner(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    return body[0].lineno if isinstance(body, list) else 0


def _last(statement: ast.stmt) -> int:
    end = statement.end_lineno or statement.lineno
    if isinstance(statement, ast.Match):
        return statement.lineno
    return max(statement.lineno, _inner(statement) - 1) if _inner(statement) else end


def _text(statement: ast.stmt) -> str:
    return ast.unparse(ast.fix_missing_locations(statement)).split("\n")[0]


Change = tuple[Callable[[], None], Callable[[], None]]


def _put(parent: object, name: str, at: int | None, new: object) -> Change:
    held = getattr(parent, name)
    old = held if at is None else held[at]

    def put(value: object) -> None:
        if at is None:
            setattr(parent, name, value)
        else:
            getattr(parent, name)[at] = value

    return (lambda: put(new)), (lambda: put(old))


def _changes(statement: ast.stmt) -> Iterator[Change]:
    if isinstance(statement, ast.Raise | ast.Import | ast.ImportFrom | ast.Assert | ast.Global):
        return
    yield from _of_statement(statement)
    for name, value in ast.iter_fields(statement):
        if name in ("body", "orelse", "finalbody", "handlers", "cases", "annotation", "type"):
            continue
        if isinstance(value, ast.expr):
            yield from _in_expression(statement, name, None, value)
        elif isinstance(value, list):
            for at, element in enumerate(value):
                if isinstance(element, ast.expr):
                    yield from _in_expression(statement, name, at, element)
                elif isinstance(element, ast.withitem):
                    yield from _in_expression(element, "context_expr", None, element.context_expr)


def _of_statement(statement: ast.stmt) -> Iterator[Change]:
    if isinstance(statement, ast.If):
        yield _put(statement, "test", None, ast.Constant(value=False))
        if not isinstance(statement.body[-1], ast.Raise):
            yield _put(statement, "test", None, ast.Constant(value=True))
    elif isinstance(statement, ast.AugAssign):
        swapped = _ARITHMETIC.get(type(statement.op))
        if swapped is not None:
            yield _put(statement, "op", None, swapped())
    elif isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        if not _is_message(statement.value):
            yield _put(statement, "value", None, ast.Constant(value=None))
    elif isinstance(statement, ast.Assign) and isinstance(
        statement.targets[0], ast.Subscript | ast.Attribute
    ):
        yield _put(statement, "targets", 0, ast.Name(id="_", ctx=ast.Store()))


def _in_expression(parent: object, name: str, at: int | None, node: ast.expr) -> Iterator[Change]:
    if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and _is_message(node)):
        return
    yield from _of_expression(parent, name, at, node)
    for field, value in ast.iter_fields(node):
        if isinstance(node, ast.Lambda) and field == "args":
            continue
        if isinstance(value, ast.expr):
            yield from _in_expression(node, field, None, value)
        elif isinstance(value, list):
            for index, element in enumerate(value):
                if isinstance(element, ast.expr):
                    yield from _in_expression(node, field, index, element)
                elif isinstance(element, ast.keyword) and element.arg not in _QUIET:
                    yield from _in_expression(element, "value", None, element.value)
                elif isinstance(element, ast.comprehension):
                    yield from _in_expression(element, "iter", None, element.iter)
                    for k, condition in enumerate(element.ifs):
                        yield _swap_item(element.ifs, k, ast.Constant(value=True))
                        yield from _in_expression(element, "ifs", k, condition)


def _swap_item(items: list[ast.expr], at: int, new: ast.expr) -> Change:
    old = items[at]
    return (lambda: items.__setitem__(at, new)), (lambda: items.__setitem__(at, old))


def _of_expression(parent: object, name: str, at: int | None, node: ast.expr) -> Iterator[Change]:
    if isinstance(node, ast.Compare):
        for k, op in enumerate(node.ops):
            yield _put(node, "ops", k, _COMPARISONS[type(op)]())
    elif isinstance(node, ast.BinOp):
        if not _is_type_union(node) and type(node.op) in _ARITHMETIC:
            yield _put(node, "op", None, _ARITHMETIC[type(node.op)]())
    elif isinstance(node, ast.BoolOp):
        yield _put(node, "op", None, ast.Or() if isinstance(node.op, ast.And) else ast.And())
    elif isinstance(node, ast.UnaryOp):
        if not isinstance(node.operand, ast.Constant):
            yield _put(parent, name, at, node.operand)
    elif isinstance(node, ast.IfExp):
        yield _put(node, "test", None, ast.Constant(value=False))
        yield _put(node, "test", None, ast.Constant(value=True))
    elif isinstance(node, ast.Constant):
        if isinstance(node.value, bool):
            yield _put(node, "value", None, not node.value)
        elif isinstance(node.value, int | float):
            yield _put(node, "value", None, node.value + 1)
    elif isinstance(node, ast.Attribute):
        if node.attr in _SWAPS and isinstance(node.ctx, ast.Load):
            yield _put(node, "attr", None, _SWAPS[node.attr])
    elif isinstance(node, ast.Name):
        if node.id in _SWAPS and isinstance(node.ctx, ast.Load):
            yield _put(node, "id", None, _SWAPS[node.id])
    elif isinstance(node, ast.Call):
        yield from _arguments(node)


def _arguments(node: ast.Call) -> Iterator[Change]:
    """The call without one of its named arguments, or without its last argument by place."""
    quiet = _QUIET | _STORAGE if _root(node.func) == "sparse" else _QUIET
    for keyword in node.keywords:
        if keyword.arg is not None and keyword.arg not in quiet:
            rest = [k for k in node.keywords if k is not keyword]
            yield _put(node, "keywords", None, rest)
    ours = not (
        (isinstance(node.func, ast.Name) and node.func.id in _BUILTINS)
        or (isinstance(node.func, ast.Attribute) and _root(node.func) in _LIBRARIES)
    )
    if ours and len(node.args) > 1:
        yield _put(node, "args", None, node.args[:-1])


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_message(node: ast.Call) -> bool:
    called = (
        node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    )
    return called in _MESSAGES or called.endswith(("Error", "Warning"))


def _is_type_union(node: ast.BinOp) -> bool:
    """``int | None`` in a check of a type."""
    return isinstance(node.op, ast.BitOr) and any(
        (isinstance(side, ast.Constant) and side.value is None)
        or getattr(side, "id", "")[:1].isupper()
        for side in (node.left, node.right)
    )
