"""Alarms and the dashboard ask for figures that there are, by labels and values that they have."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from prometheus_client import CollectorRegistry

from lustrum.server.operation.metrics import Metrics, ServerCollector

DEPLOY = Path(__file__).parents[2] / "deploy"
ENDINGS = {
    "counter": ("_total",),
    "gauge": ("",),
    "histogram": ("_bucket", "_sum", "_count"),
    "info": ("_info",),
}
FUNCTIONS = {"changes", "histogram_quantile", "increase", "max", "rate", "sum", "time"}
SCRAPED = {"instance", "job"}
VALUES = {
    "state": {"ready", "starting", "checking", "unavailable", "waiting", "running", "failed"},
    "status": {"5xx", "503"},
    "route": {"/api/v1/tables"},
    "job": {"lustrum"},
    "instance": {"$instance"},
}
STEP = re.compile(
    r"""(?P<by>by\s*\([\w\s,]*\))|(?P<range>\[\d+[smh]\])|(?P<function>[a-z_]+)(?=\s*(by\s*)?\()|(?P<where>\{[^}]*\})
    |(?P<name>[a-z_]+)|(?P<number>\d+(\.\d+)?)|(?P<sign>[=><]=|[-+*/<>(),])|(?P<space>\s+)""",
    re.X,
)


def figures() -> dict[str, set[str]]:
    """Every figure that is exposed, with its labels."""
    whole = ServerCollector(registry := CollectorRegistry())
    kept = [m for m in vars(Metrics()).values() if hasattr(m, "_labelnames")] + [whole.restarts]
    labels = {metric._name: set(metric._labelnames) for metric in kept}
    labels["lustrum_build"] = {"version", "python"}
    kinds = {metric._name: metric._type for metric in kept}
    kinds |= {metric.name: metric.type for metric in registry.collect()}
    return {"up": set()} | {
        name + ending: labels.get(name, set()) | ({"le"} if ending == "_bucket" else set())
        for name, kind in kinds.items()
        for ending in ENDINGS[kind]
    }


def mistakes(expression: str, known: dict[str, set[str]]) -> Iterator[str]:
    """What is wrong with an expression, as far as reading it word by word shows."""
    position, depth, named = 0, 0, set()
    grouped: set[str] = set()
    while position < len(expression):
        step = STEP.match(expression, position)
        if step is None:
            yield f"{expression[position:]!r} is no word of an expression"
            return
        position, word = step.end(), step[0]
        if step["function"] and word not in FUNCTIONS:
            yield f"there is no function {word}"
        if step["by"]:
            grouped |= set(re.findall(r"\w+", word[2:]))
        if step["name"] and word not in known:
            yield f"there is no figure {word}"
        if step["name"]:
            named.add(word)
        for label, _, value in re.findall(r'(\w+)(=~|=)"([^"]*)"', step["where"] or ""):
            grouped.add(label)
            if not set(value.split("|")) <= VALUES.get(label, set()):
                yield f"{label} is never {value}"
        depth += (word == "(") - (word == ")")
        if depth < 0:
            yield "a bracket is closed that is not open"
    if depth:
        yield "a bracket stays open"
    if grouped - SCRAPED - set().union(*(known.get(name, set()) for name in named)):
        yield f"no figure of {sorted(named)} has all the labels {sorted(grouped)}"
    if not named:
        yield "no figure is asked for"


def expressions() -> list[str]:
    rules = yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"][0]["rules"]
    assert len({rule["alert"] for rule in rules}) == len(rules)
    assert all(rule["labels"]["severity"] and rule["annotations"]["summary"] for rule in rules)
    panels = json.loads((DEPLOY / "dashboard.json").read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    asked = [target["expr"] for panel in panels for target in panel["targets"]]
    return [rule["expr"] for rule in rules] + asked


def test_alarms_and_panels_ask_for_figures_that_there_are() -> None:
    known = figures()
    found = {text: list(mistakes(text, known)) for text in expressions()}
    assert {text: wrong for text, wrong in found.items() if wrong} == {}
    # Whatever is counted is looked at somewhere.
    shown = " ".join(expressions())
    ours = {name for name in known if name.startswith("lustrum_")}
    parts = tuple(f"lustrum_request_seconds_{part}" for part in ("sum", "count"))
    assert {name for name in ours if name not in shown} <= set(parts)


@pytest.mark.parametrize(
    "wrong",
    [
        "lustrum_nothing > 1",
        "sum by (nobody) (lustrum_waiting)",
        'lustrum_dataset_state{state="broken"}',
        "sum(lustrum_waiting",
        "lustrum_waiting)",
        "guess(lustrum_waiting)",
        "lustrum_waiting § 2",
        "1 > 0",
    ],
)
def test_a_mistake_in_an_expression_is_found(wrong: str) -> None:
    assert list(mistakes(wrong, figures()))


def test_promtool_reads_the_alarms() -> None:
    """``scripts/ensure_services.py promtool`` installs it."""
    promtool = shutil.which("promtool")
    assert promtool is not None
    command = [promtool, "check", "rules", str(DEPLOY / "alerts.yaml")]
    assert subprocess.run(command, check=False).returncode == 0
