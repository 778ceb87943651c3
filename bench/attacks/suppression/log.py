"""Results of problems, one line of JSON each, so that a long run can be split and nothing is lost."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from attacks.suppression.judge import Outcome, Short

RESULTS = ("released", "withheld", "not judged", "refused", "crashed", "too long")
HEADINGS = (
    "problems", *RESULTS, "primary", "short to outsider", "counts, without letters", "short to an insider",
    "within the rule", "pairs", "if zeros are shown", "untrue", "CPU (s)",
)  # fmt: skip


@dataclass(frozen=True)
class Line:
    """What the attacks on one problem came to."""

    kind: str
    number: int
    result: str
    rules: str
    seconds: float
    primary: int = 0
    outsider: int = 0
    letterless: int = 0
    insider: int = 0
    close: int = 0
    pair: int = 0
    zeros_known: int = 0
    untrue: int = 0
    asked_pair: int = 0
    """Cells that are short to pairs although the run was asked to withstand them; counted in ``pair`` too."""
    said: str = ""

    @property
    def fails(self) -> bool:
        """Whether a promise was broken."""
        short = bool(self.outsider or self.insider or self.untrue or self.asked_pair)
        return short or "crashed" in self.result

    def __str__(self) -> str:
        again = f'--kinds "{self.kind}" --first {self.number} --problems 1'
        return f"- {again} ({self.rules}, {self.result}): {self.said}"


def of_outcome(outcome: Outcome, seconds: float) -> Line:
    """The line of a problem that was protected and attacked."""
    asked = outcome.pair if outcome.problem.withstands_pairs else []
    found = [str(s) for s in (*outcome.outsider, *outcome.insider, *asked)] + outcome.untrue
    said = found[0] if found else ""
    if len(found) > 1:
        said += f" and {len(found) - 1} more"
    if not found and outcome.result != "released":
        said = " ".join(outcome.said.split())[-200:]
    return Line(
        outcome.problem.kind,
        outcome.problem.seed,
        outcome.result,
        " ".join(str(r) for r in outcome.problem.rules),
        round(seconds, 2),
        outcome.primary,
        len(outcome.outsider),
        len(outcome.letterless),
        _cells(outcome.insider),
        _cells(s for s in outcome.insider if s.estimates),
        _cells(outcome.pair),
        len(outcome.zeros_known),
        len(outcome.untrue),
        _cells(asked),
        said=said,
    )


def _cells(found: Iterable[Short]) -> int:
    return len({short.leaves for short in found})


def read_log(path: Path) -> dict[tuple[str, int], Line]:
    """All results of a log; of a problem that stands there twice, the last one."""
    if not path.exists():
        return {}
    lines = [Line(**json.loads(text)) for text in path.read_text(encoding="utf-8").splitlines()]
    return {(line.kind, line.number): line for line in lines}


def append(path: Path, line: Line) -> None:
    """Write a result down at once."""
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(asdict(line)) + "\n")


def table(lines: Iterable[Line], kinds: Sequence[str]) -> list[dict[str, str | int]]:
    """A row for each kind of problem, and one for all."""
    found = list(lines)
    rows = [
        _row(kind, own) for kind in kinds if (own := [line for line in found if line.kind == kind])
    ]
    if rows:
        rows.append(_row("all", [line for line in found if line.kind in kinds]))
    return rows


def _row(kind: str, own: Sequence[Line]) -> dict[str, str | int]:
    results = Counter(line.result for line in own)
    numbers = [len(own), *(results[r] for r in RESULTS)]
    for name in (
        "primary outsider letterless insider close pair zeros_known untrue".split()  # noqa: SIM905
    ):
        numbers.append(sum(getattr(line, name) for line in own))
    numbers.append(round(sum(line.seconds for line in own)))
    return {"kind": kind, **dict(zip(HEADINGS, numbers, strict=True))}
