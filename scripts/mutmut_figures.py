"""mutmut without the mutants that tell nothing about a figure.

Called by ``scripts/mutants.py`` in place of ``python -m mutmut``. Left out are changed texts of messages, which
change no number, no bound and no decision, and ``None`` in place of a value or an argument, which ends in an
exception at the next use. An argument that is left out altogether is still tried.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import libcst as cst
from mutmut.__main__ import cli
from mutmut.mutation import mutators

_MESSAGES = ("say", "say_many", "Reason", "warn")


def _is_sentence(node: cst.CSTNode) -> bool:
    if isinstance(node, cst.SimpleString):
        return " " in node.value
    return isinstance(node, cst.FormattedString | cst.ConcatenatedString)


def _makes_a_message(call: cst.Call) -> bool:
    name = call.func.attr if isinstance(call.func, cst.Attribute) else call.func
    return isinstance(name, cst.Name) and (name.value in _MESSAGES or name.value.endswith("Error"))


def _arguments_left_out(call: cst.Call) -> Iterable[cst.CSTNode]:
    if len(call.args) > 1:
        for i in range(len(call.args)):
            yield call.with_changes(args=[*call.args[:i], *call.args[i + 1 :]])


def _figures_only(operator: Callable[[Any], Iterable[cst.CSTNode]]) -> Any:
    def mutate(node: cst.CSTNode) -> Iterable[cst.CSTNode]:
        if _is_sentence(node) or (isinstance(node, cst.Call) and _makes_a_message(node)):
            return ()
        return operator(node)

    return mutate


_INSTEAD = {mutators.operator_arg_removal: _arguments_left_out}
mutators.mutation_operators[:] = [  # type: ignore[index]
    (kind, _figures_only(_INSTEAD.get(operator, operator)))
    for kind, operator in mutators.mutation_operators
    if operator is not mutators.operator_assignment
]

if __name__ == "__main__":
    cli()
