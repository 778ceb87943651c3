"""Make a small data folder with all kinds of datasets, and the answers that it gives, as one archive.

Every version that was used keeps its archive in ``tests/upgrades``: later versions must give the same answers.

    python scripts/folder_fixture.py tests/upgrades/0.2.0.tar.xz

The folder is made by the commands of the version that is installed, so that this script can also be run with an
earlier one. The records are invented.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

POLICY = """dataset = "{name}"

[rules]
max_dimensions = 4

[risk]
measure = "table-entropy"
limit = 1.0
{steps}
end = true
"""
POPULATION = """
[[before]]
method = "protected-population"
sweeps = 2
{more}
[protect]
method = "none"
"""
SUMS = """
[[before]]
method = "protected-magnitudes"
sweeps = 2
"""
WEIGHTS = """
[weights]
weight = "weight"
classes = ["area", "age"]
measure_classes = ["age"]
"""
KEYED = '\n[protect]\nmethod = "{method}"\n'
STEPS = {
    "people": POPULATION.format(more=""),
    "firms": POPULATION.format(more=SUMS),
    "profits": POPULATION.format(more=SUMS),
    "survey": POPULATION.format(more="") + WEIGHTS,
    "rounded": KEYED.format(method="random-rounding"),
    "keyed": KEYED.format(method="cell-key"),
}
MEASURES = {"firms": "turnover", "profits": "profit", "survey": "hours"}
QUESTIONS = {
    "people": (["area,sex"], ["area,sex,age"]),
    "firms": (["area,age"], ["area,age", "--measure", "turnover"]),
    "profits": (["area,age"], ["area", "--measure", "profit"]),
    "survey": (["area,age"], ["area,age", "--weight", "weight"]),
    "rounded": (["area,sex,age"],),
    "keyed": (["area,sex,age"],),
}


def description(name: str) -> str:
    """The description of a dataset: three variables, and what else its kind has."""
    codes = {"area": "123", "sex": "12", "age": "1234"}
    parts = [f'[dataset]\nname = "{name}"\ntitle = "Invented"\nrecord_id = "id"\n']
    for variable, every in codes.items():
        listed = ", ".join(f'["{code}", "{variable} {code}"]' for code in every)
        parts.append(
            f'[[variables]]\nname = "{variable}"\nlabel = "{variable}"\ncodes = [{listed}]\n'
        )
    if name in MEASURES:
        measure = MEASURES[name]
        parts.append(
            f'[[measures]]\nname = "{measure}"\nlabel = "{measure}"\nunit = "units"\ndecimals = 0\n'
        )
    if name == "survey":
        parts.append('[[weights]]\nname = "weight"\nlabel = "Weight"\ndecimals = 1\n')
    return "\n".join(parts)


def records(name: str, rows: int = 300) -> str:
    """Invented records as CSV; the same in every version."""
    draw = random.Random(f"lustrum {name}")
    lines = ["id,area,sex,age,value,weight"]
    for number in range(1, rows + 1):
        # The last area is small, and one age is rare in it.
        area = draw.choices("123", (5, 4, 1))[0]
        value = int(draw.lognormvariate(5, 1)) + 1
        if name == "profits" and draw.random() < 0.3:
            value = -value
        age = draw.choices("1234", (4, 3, 2, 1))[0]
        weight = f"{draw.uniform(20, 40):.1f}"
        lines.append(f"{number},{area},{draw.choice('12')},{age},{value},{weight}")
    return "\n".join(lines).replace("value", MEASURES.get(name, "value")) + "\n"


def run(*words: str) -> str:
    """One command of the version that is installed."""
    done = subprocess.run(
        [sys.executable, "-m", "lustrum", *words],
        capture_output=True,
        text=True,
        env={**os.environ, "COLUMNS": "1000"},
    )
    if done.returncode:
        raise SystemExit(f"lustrum {' '.join(words)}: {done.stdout}{done.stderr}")
    return done.stdout


def make(target: Path) -> None:
    """Make the folder, ask it, and pack both."""
    with tempfile.TemporaryDirectory() as place:
        data = Path(place, "data")
        answers = []
        for name, steps in STEPS.items():
            text, csv = Path(place, f"{name}.toml"), Path(place, f"{name}.csv")
            text.write_text(description(name))
            csv.write_text(records(name))
            run("ingest", str(csv), "-d", str(text), "--data", str(data))
            policies = data / "policies"
            policies.mkdir(exist_ok=True)
            (policies / f"{name}.toml").write_text(POLICY.format(name=name, steps=steps))
            if "protected-population" in steps:
                run("protect", "--dataset", name, "--data", str(data))
            for by, *more in QUESTIONS[name]:
                question = ["--dataset", name, "--by", by, *more, "--format", "csv"]
                answers.append([question, run("table", *question, "--data", str(data))])
        Path(place, "answers.json").write_text(json.dumps(answers, indent=1))
        with tarfile.open(target, "w:xz") as archive:
            for path in (Path(place, "answers.json"), *sorted(data.rglob("*"))):
                # The agency's reports are large, and answers do not depend on them.
                is_report = "reports" in path.parts and path.suffix in (".json", ".html")
                if path.is_file() and not is_report and path.name != ".lock":
                    archive.add(path, str(path.relative_to(place)))
    print(f"{target}: {target.stat().st_size:,} bytes")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
