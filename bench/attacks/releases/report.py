"""All attacks on series of releases, the controls where they must succeed, and what errors cost."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from parts.figures import record

from attacks.releases.attributes import rows_of_all
from attacks.releases.known import (
    Publisher,
    all_changes,
    changing,
    claims,
    insertions,
    pooled,
    worlds,
)
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
NAMED_BY_INSERTIONS = 0.45
KNOWN_PERSONS = 6_000
KNOWN_KEYS = tuple(hashlib.sha256(b"key %d" % number).digest() for number in range(3))


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
    if "known" in parts:
        right &= known(KNOWN_PERSONS, 60, method, tuple(keys) or KNOWN_KEYS)
        errors(KNOWN_PERSONS, method, tuple(keys) or KNOWN_KEYS)
    return right


def known(persons: int, cells: int, method: ProtectedPopulation, keys: Sequence[bytes]) -> bool:
    """Readers who know changes, of three files under all keys; so many cells of each count are attacked."""
    right = True
    for name in worlds(10, 1):
        for control in (True, False):
            seen, joiners, leavers, alone = [], [], [], []
            for number, key in enumerate(keys):
                publisher = partial(Publisher, None if control else method, key)
                seen.append(insertions(worlds(persons, 50 + number)[name], publisher(), cells))
                joined = changing(worlds(persons, 80 + number)[name], publisher(), 4, 0.1)
                said = claims(joined)
                joiners.append(said["joined"])
                leavers.append(said["left"])
                alone.append(all_changes(joined))
            several = pooled(seen)
            taught = several.taught
            by_rule = [sum((one[0] for one in some), Named(0, 0)) for some in (joiners, leavers)]
            both, first = (
                sum((one[place].named for one in (*joiners, *leavers)), Named(0, 0))
                for place in (1, 2)
            )
            every, start = (sum((one[i].named for one in alone), Named(0, 0)) for i in (0, 1))
            record(
                f"Known changes among {persons:,} people, {len(keys)} keys",
                {
                    "file": f"{name}: {'numbers stay (control)' if control else 'method'}",
                    "insertions, by rule": str(several.by_rule),
                    "insertions, taught": str(taught.named),
                    "surer than 80 %": str(Named(taught.named.cells, taught.sure)),
                    "joined, by rule": str(by_rule[0]),
                    "left, by rule": str(by_rule[1]),
                    "taught by both numbers": str(both),
                    "by the first alone": str(first),
                    "all changes known": str(every),
                    "first numbers alone": str(start),
                },
            )
            if control:
                right &= several.by_rule.odds > 0.95 and by_rule[0].odds > 0.9
            else:
                right &= max(several.by_rule.odds, taught.named.odds) <= NAMED_BY_INSERTIONS
                right &= max(one.odds for one in by_rule) <= ODDS
                right &= taught.sure <= 0.12 * taught.named.cells
                # Three standard errors of the difference of two shares of the same cells.
                for more, less in ((both, first), (every, start)):
                    right &= more.odds - less.odds <= 3 * (0.25 / max(more.cells, 1)) ** 0.5
    return right


def errors(persons: int, method: ProtectedPopulation, keys: Sequence[bytes]) -> None:
    """Mean errors of controlled tables over 12 releases, by the share of records that changes each time."""
    for share in (0.02, 0.2):
        for number, key in enumerate(keys):
            world, publisher = People(persons, 90 + number), Publisher(method, key)
            means = []
            for release in range(max(RELEASES)):
                if release:
                    world.change(*[int(share * persons / 2)] * 2, 0)
                publisher.publish(world)
                means.append(publisher.made.agency.over()["mean_occupied"])
            record(
                f"Errors of {max(RELEASES)} releases of {persons:,} people",
                {
                    "key and changed records": f"{number + 1}, {share:.0%}",
                    "first": means[0],
                    "second": means[1],
                    "last": means[-1],
                    "mean of later": sum(means[1:]) / len(means[1:]),
                },
            )


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
