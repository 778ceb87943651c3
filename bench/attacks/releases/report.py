"""All attacks on series of releases, the controls where they must succeed, and what errors cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from parts.figures import record

from attacks.releases.attributes import rows_of_all
from attacks.releases.readers import (
    Named,
    differing,
    differing_by_step,
    ever_changed,
    jumped,
    learnt,
    moved_occupied,
    moved_small,
)
from attacks.releases.series import KEY, How, Joined, People, series
from attacks.releases.single import RELEASES, SingleReport, attack_single
from lustrum.protect.population.attributes import NAMED
from lustrum.protect.population.method import ProtectedPopulation

ODDS = 0.5


def report(
    persons: int,
    changes: int,
    trials: int,
    sweeps: int,
    parts: list[str],
    keys: Sequence[bytes] = (),
) -> bool:
    """Print what every reader says; whether controls fall and the method holds, under every further key too."""
    method = ProtectedPopulation(sweeps=sweeps, extra_tables=100)
    right = True
    if "many" in parts:
        for how in ("changed only", "anew", "method"):
            # Readers of releases drawn anew were certain when empty cells seldom moved.
            own = replace(method, sparse_siblings=0.0) if how == "anew" else method
            right &= many(persons, changes, own, how)
        for key in keys[1:]:
            right &= many(persons, changes, method, "method", key)
    if "single" in parts:
        right &= single(persons, trials, method)
    return right


def many(
    persons: int, changes: int, method: ProtectedPopulation, how: How, key: bytes = KEY
) -> bool:
    """Releases with so many added and removed people between them."""
    world = People(persons, 2001)
    made = list(series(world, method, max(RELEASES), (changes, changes, 0), how, key))
    whole = Joined.of(made)
    title = f"{persons:,} people, {changes} added and {changes} removed: {how}"
    right = True
    for number in RELEASES:
        joined = whole.first(number)
        base = method.base
        small = (joined.true[-1] > 0) & (joined.true[-1] < base)
        occupied = (joined.true > 0).any(axis=0)
        ever = joined.changed.any(axis=0)
        low = joined.shown.max(axis=0) <= base
        few = joined.at(low)
        said: dict[str, Named] = {
            "a differing cell has changed": differing(joined),
            "one that moved two steps has changed": jumped(joined, base),
            "one that moved is or was occupied": moved_occupied(joined),
            "one that has shown 0 and the base holds 1 or 2": moved_small(joined, base),
            "learnt, at 50 %: changed at some time": learnt(joined, ever, 0.5),
            "learnt, at 95 %: changed at some time": learnt(joined, ever, 0.95),
            "learnt, at 95 %: holds 1 or 2": learnt(joined, small, 0.95),
            # A larger number proves it in a single release.
            "learnt, at 99 %: occupied at some time": learnt(few, occupied[low], 0.99),
        }
        said |= {
            f"moved {n} times, changed at some time": found
            for n, found in ever_changed(joined).items()
            if found.cells >= 10
        }
        said |= {
            f"{one} became {two}, changed": found
            for (one, two), found in differing_by_step(joined).items()
            if number == max(RELEASES) and found.cells >= 10
        }
        for what, found in said.items():
            record(title, {"reader says": what, "releases": number, "right": str(found)})
        exceeding = _attributes(joined, world, base, number, title)
        named = said["a differing cell has changed"]
        proven = said["learnt, at 95 %: holds 1 or 2"]
        hidden = said["one that moved is or was occupied"]
        if how == "changed only":
            right &= named.odds > 0.95
        elif how == "anew":
            right &= number < max(RELEASES) or proven.right > 0.1 * int(small.sum())
            right &= exceeding > 0
        else:
            right &= named.odds <= ODDS and not exceeding
            right &= proven.right == 0 or proven.odds < 0.95
            right &= hidden.odds <= 1 - method.empty_share + 3 * (0.1 / hidden.cells) ** 0.5
    return right


def _attributes(joined: Joined, world: People, base: int, number: int, title: str) -> int:
    """Record what readers of rows name; the bins in which it is certainly too much."""
    exceeding = 0
    for reader, risks in rows_of_all(joined, world.dataset, base):
        judged = [r for r in risks if r.judged]
        over = sum(r.exceeds for r in risks)
        # A rate over some hundred people is a draw: one of 60 % is three errors higher once in 700 times.
        exceeding += sum(r.named - 3 * (0.24 / r.people) ** 0.5 > NAMED for r in judged)
        most = max(judged, key=lambda r: r.named, default=None)
        said = (
            "no bin of enough people"
            if most is None
            else (
                f"at most {most.named:.0%} of {most.people:,} people ({most.variable}, rows of {most.at_least} "
                f"people or more, guessed {most.guessed:.0%}) of {len(judged)} bins {over} over 60 %"
            )
        )
        record(title, {"reader says": f"attributes: {reader}", "releases": number, "right": said})
    return exceeding


def single(persons: int, trials: int, method: ProtectedPopulation) -> bool:
    """One added, removed or moved person between releases: whom readers name, beside the control."""
    right = True
    for how, found in attack_single(persons, trials, method).items():
        together = [SingleReport.of([r for r in found if r.releases == n]) for n in RELEASES]
        for one in (*found, *together):
            record(f"One person among {persons:,}: {how}", one.row())
        if how == "changed only":
            right &= all(one.succeeds for one in together)
        else:
            right &= all(
                one.holds(method.change_odds, method.empty_share) for one in (*found, *together)
            )
    return right
