"""Targeted record swapping of one household in ten: seconds by size, beside a plain pandas script.

    python bench/parts/swapping.py [--people 375000 750000 1500000 3000000] [--pandas 20000] [--repeats 3]

The people are those of the demo census, made anew for each size. The pandas script does the same for fewer
people: it counts groups with ``groupby``, joins the members of each household into a text and goes through the
households one by one, trying random partners. Times are the best of the repeats, on the same people, and in
seconds of the processor: all of it runs on one core, and others may use the machine. The clock on the wall is
given beside, for the swap at one level.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable
from functools import partial

import numpy as np
import pandas as pd
from figures import record

from lustrum.demo.census import people
from lustrum.demo.draws import description_path
from lustrum.model import Records
from lustrum.protect.swapping import RecordSwapping, SwapReport
from lustrum.tabulate import FrameEngine, read_description, records_of

COMBINATIONS = (("age", "sex", "citizenship"), ("occupation", "education"))
PROFILES = (("household_size", "age"), ("household_size",))
SPEC = RecordSwapping(
    geography=("area", "region"),
    household="household_id",
    rate=0.1,
    similar=PROFILES,
    target="risk",
    risk_on=COMBINATIONS,
    k=3,
)
TARGETS = {
    "one level": SPEC,
    "three levels": RecordSwapping(
        geography=("area", "region"),
        household="household_id",
        rate=0.1,
        similar=PROFILES,
        target="risk",
        risk_on=COMBINATIONS,
        k=3,
        levels=("region", "district"),
    ),
    "random": RecordSwapping(
        geography=("area", "region"), household="household_id", rate=0.1, similar=PROFILES
    ),
}


def census(persons: int) -> Records:
    """The records of a demo census."""
    return records_of(FrameEngine(people(persons), read_description(description_path("demo"))))


def with_pandas(records: Records, seed: int) -> int:
    """The same swap at one level, as one would write it; gives the number of pairs."""
    frame = pd.DataFrame({n: np.asarray(c) for n, c in records.codes.items()})
    frame["household"] = records.ids["household_id"]
    rare = pd.Series(np.inf, index=frame.index)
    for combination in COMBINATIONS:
        size = frame.groupby(["area", *combination])["sex"].transform("size")
        rare = np.minimum(rare, size)
    frame["rare"] = rare
    grouped = frame.groupby("household")
    homes = grouped.agg(rare=("rare", "min"), area=("area", "first"), region=("region", "first"))
    for number, profile in enumerate(PROFILES):
        members = frame[profile[0]].astype(str)
        for name in profile[1:]:
            members = members + "-" + frame[name].astype(str)
        homes[f"like{number}"] = members.groupby(frame["household"]).agg(
            lambda m: "|".join(sorted(m))
        )
    rng = np.random.default_rng(seed)
    homes = homes.sample(frac=1, random_state=seed)
    homes["first"] = np.where(homes["rare"] < SPEC.k, homes["rare"], SPEC.k)
    homes = homes.sort_values("first", kind="stable")
    waiting: list[dict[str, list[int]]] = [{} for _ in PROFILES]
    for number, lists in enumerate(waiting):
        for position, like in enumerate(homes[f"like{number}"]):
            lists.setdefault(like, []).append(position)
    area, likes = (
        homes["area"].to_list(),
        [homes[f"like{n}"].to_list() for n in range(len(PROFILES))],
    )
    partner: dict[int, int] = {}
    wanted = round(0.05 * len(homes))

    def fits(other: int, one: int) -> bool:
        return other not in partner and area[other] != area[one]

    for one in range(len(homes)):
        if len(partner) >= 2 * wanted:
            break
        if one in partner:
            continue
        for number, lists in enumerate(waiting):
            alike = lists[likes[number][one]]
            tries = rng.integers(len(alike), size=20)
            other = next((alike[t] for t in tries if fits(alike[t], one)), None)
            if other is None:  # few are left: look at all of them
                other = next((p for p in alike if fits(p, one)), None)
            if other is not None:
                partner[one], partner[other] = other, one
                break
    places = homes[["area", "region"]].to_numpy()
    now = places.copy()
    for one, other in partner.items():
        now[one] = places[other]
    homes[["area", "region"]] = now
    frame[["area", "region"]] = homes.loc[frame["household"], ["area", "region"]].to_numpy()
    return len(partner) // 2


def swap(spec: RecordSwapping, records: Records) -> SwapReport:
    """One swap, always the same."""
    return spec.swap(records, np.random.default_rng(1)).report


def best(run: Callable[[], object], repeats: int) -> tuple[float, float]:
    """The least processor and wall seconds of several runs."""
    seconds = []
    for _ in range(repeats):
        gc.collect()
        start = time.process_time(), time.perf_counter()
        run()
        seconds.append((time.process_time() - start[0], time.perf_counter() - start[1]))
    return min(s[0] for s in seconds), min(s[1] for s in seconds)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument(
        "--people", type=int, nargs="+", default=[375_000, 750_000, 1_500_000, 3_000_000]
    )
    parser.add_argument("--pandas", type=int, default=20_000)
    parser.add_argument("--repeats", type=int, default=3)
    given = parser.parse_args()
    small = census(2000)
    for spec in TARGETS.values():
        swap(spec, small)  # compiles the kernel

    for persons in given.people:
        records = census(persons)
        found = {
            name: best(partial(swap, spec, records), given.repeats)
            for name, spec in TARGETS.items()
        }
        homes = swap(SPEC, records).units
        figures: dict[str, int | float] = {"people": persons, "households": homes}
        figures |= {f"{name} (s)": times[0] for name, times in found.items()}
        each = {"a person (µs)": 1e6 * found["one level"][0] / persons}
        record("Swapping one household in ten", figures | each, "perturb")

    records = census(given.pandas)
    ours, _ = best(partial(swap, SPEC, records), given.repeats)
    theirs, _ = best(partial(with_pandas, records, 1), given.repeats)
    for name, seconds, pairs in (
        ("Lustrum", ours, len(swap(SPEC, records).pairs)),
        ("pandas", theirs, with_pandas(records, 1)),
    ):
        figures = {"by": name, "people": given.pandas, "took (s)": seconds, "pairs": pairs}
        record("Swapping beside pandas", figures | {"ratio": seconds / ours}, "perturb")


if __name__ == "__main__":
    main()
