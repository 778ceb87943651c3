"""The mutation run changes what can leak, one thing at a time, and leaves alone what is only said."""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(__file__).parents[2] / "scripts"
SOURCE = '''
"""A sentence of 3 words."""
LIMIT = 5

class Rule:
    share: float = 0.5

    @property
    def judged(self) -> bool:
        """True where 2 are enough."""
        if self.count < 3 and self.known:
            raise InputError(f"{self.count} is below 3.")
        return not all(x for x in self.parts if x > 0)

def bound(low, high, step=1):
    out = np.zeros(high - low, dtype=int)
    out[0] = max(low, 0)
    return narrow(out, low, structural=True)
'''


@pytest.fixture
def changes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    from mutation.operators import mutants

    found = [f"{m.where}: {m.after}" for m in mutants(ast.parse(SOURCE))]
    for name in [name for name in sys.modules if name.split(".")[0] == "mutation"]:
        del sys.modules[name]
    return found


def test_every_change_that_can_move_a_number_or_a_decision_is_made_once(changes: list[str]) -> None:
    assert sorted(changes) == sorted(
        [
            ": LIMIT = 6",
            ".Rule.judged: if False:",
            ".Rule.judged: if self.count < 3 or self.known:",
            ".Rule.judged: if self.count <= 3 and self.known:",
            ".Rule.judged: if self.count < 4 and self.known:",
            ".Rule.judged: return all((x for x in self.parts if x > 0))",
            ".Rule.judged: return not any((x for x in self.parts if x > 0))",
            ".Rule.judged: return not all((x for x in self.parts if True))",
            ".Rule.judged: return not all((x for x in self.parts if x >= 0))",
            ".Rule.judged: return not all((x for x in self.parts if x > 1))",
            ".bound: out = np.zeros(high + low, dtype=int)",
            ".bound: out = np.zeros(low - low, dtype=int)",
            ".bound: out = np.zeros(high - high, dtype=int)",
            ".bound: _ = max(low, 0)",
            ".bound: out[1] = max(low, 0)",
            ".bound: out[0] = min(low, 0)",
            ".bound: out[0] = max(high, 0)",
            ".bound: out[0] = max(low, 1)",
            ".bound: return narrow(out, high, structural=True)",
            ".bound: return narrow(out, low)",
            ".bound: return narrow(out, low, structural=False)",
            ".bound: return narrow(out, structural=True)",
        ]
    )


def test_messages_types_defaults_and_docstrings_stay(changes: list[str]) -> None:
    text = "\n".join(changes)
    for word in ("sentence", "enough", "is below", "share", "step=", "dtype=float"):
        assert word not in text


def test_survivors_are_reported_and_mutants_that_a_test_noticed_are_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))
    import mutants

    (module,) = mutants.modules("numeric/structure/intervals.py")
    assert mutants.tests_of(mutants.modules("audit")) == ["tests/audit"]
    first, second, *_ = mutants._names(module)
    records = [{"mutant": first, "outcome": "survived"}, {"mutant": second, "outcome": "killed"}]
    (tmp_path / "narrowing.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in records))
    monkeypatch.setattr(mutants, "BUILD", tmp_path)
    assert mutants.report("narrowing", [module]) == [first]
    assert '"killed": 1' in capsys.readouterr().out
