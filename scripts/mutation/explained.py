"""Why a mutant that no test notices is harmless: one sentence for each, kept beside the groups.

``explained/<group>.txt`` holds the sentences:

    @ audit/bounding/network.py .Network.of
    - the statement as it is
    + the statement as the mutant has it
    + another mutant of the same statement; (2) behind it where the function has the same change twice
    why: one sentence for both

``+ *`` stands for every change of a statement that a sentence explains whatever it is changed to. A module
and a function stay until the next ``@``. ``scripts/mutants.py --report`` prints survivors without a sentence
in this form. A sentence whose mutant no longer exists, or is killed, should go: the report says so.
"""

from __future__ import annotations

from pathlib import Path

_FOLDER = Path(__file__).parent / "explained"


class Explained(dict[str, str]):
    """Sentences by the names of mutants; a name that ends in ``*`` stands for all that begin like it."""

    def __contains__(self, name: object) -> bool:
        return super().__contains__(name) or (
            isinstance(name, str) and super().__contains__(name.partition(" -> ")[0] + " -> *")
        )


def explained(group: str) -> Explained:
    """The sentences of a group, by the name of the mutant."""
    path = _FOLDER / f"{group}.txt"
    found = Explained()
    place = before = ""
    waiting: list[str] = []
    for number, line in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        mark, _, rest = line.partition(" ")
        if mark == "@":
            module, _, where = rest.partition(" ")
            place = f"{module}:{where}"
        elif mark == "-":
            before = rest
        elif mark == "+":
            waiting.append(f"{place}: {before} -> {rest}")
        elif mark == "why:" and rest:
            found.update(dict.fromkeys(waiting, rest))
            waiting = []
        elif line.strip():
            raise ValueError(f"{path.name}, line {number}: begin with @, -, + or why:")
    if waiting:
        raise ValueError(f"{path.name}: {waiting[0]} has no why:")
    return found
