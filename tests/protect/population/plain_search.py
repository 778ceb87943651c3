"""The search without shortcuts: every move costs what all tables change by, and every rule is counted anew.

It makes the same draws as the compiled search, where a stage works every move out (``slack`` and ``lost`` are
infinite), and so must end with the same cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from itertools import groupby
from math import ceil, floor, log

import numpy as np

from lustrum.protect.population.search import lanes as lanes_module
from lustrum.protect.population.search.layout import ControlledTable, TablePlan
from lustrum.protect.population.search.run import SearchProblem
from lustrum.protect.population.search.stages import ErrorCost, Stage

WORD = 2**64
QUANTILES = [round(-log((2 * j + 1) / 8192) * 2**20) / 2**20 for j in range(4096)]
PATIENCE, ASTRAY, REST, NEAR = 400, 5, 50, 32
Cells = tuple[int, ...]


class Stream:
    """SplitMix64."""

    def __init__(self, position: int) -> None:
        self.position = position

    def word(self) -> int:
        self.position = (self.position + 0x9E3779B97F4A7C15) % WORD
        z = (self.position ^ (self.position >> 30)) * 0xBF58476D1CE4E5B9 % WORD
        z = (z ^ (z >> 27)) * 0x94D049BB133111EB % WORD
        return z ^ (z >> 31)

    def shuffled(self, items: Sequence[int]) -> list[int]:
        out = list(items)
        for j in range(len(out) - 1, 0, -1):
            other = (self.word() >> 32) * (j + 1) >> 32
            out[j], out[other] = out[other], out[j]
        return out

    def limit(self, temperature: float) -> float:
        return temperature * QUANTILES[self.word() >> 52]


def kind_of(plan: TablePlan, table: ControlledTable) -> str:
    """What errors of a table cost: nothing where one of its cells is a single finest one."""
    smallest = [int(np.bincount(level.group_of).min()) for level in table.levels]
    if len(smallest) == len(plan.variables) and max(smallest) == 1:
        return "single"
    if table.by_agency:
        return "own"
    if table.extra:
        return "extra"
    return "finest" if table.finest else "coarser"


class Tables:
    """Where finest cells lie in all tables of a plan, table by table."""

    def __init__(self, plan: TablePlan, codes: Sequence[Cells]) -> None:
        self.plan = plan
        self.kinds = [kind_of(plan, table) for table in plan.tables]
        self.kind_at = {
            int(at): kind
            for table, kind in zip(plan.tables, self.kinds, strict=True)
            for at in table.places().ravel()
        }
        self.of_cell = [self.places(c) for c in codes]

    def places(self, codes: Sequence[int]) -> list[int]:
        """The place of a finest cell in every table."""
        column = {name: k for k, name in enumerate(self.plan.variables)}
        return [
            int(t.places()[tuple(lv.group_of[codes[column[lv.variable]]] for lv in t.levels)])
            for t in self.plan.tables
        ]

    @cache  # noqa: B019
    def levels_of(self, variable: int) -> list[set[int]]:
        """The tables with each level of a variable, the finest level first."""
        name = self.plan.variables[variable]
        sizes = {lv.size for t in self.plan.tables for lv in t.levels if lv.variable == name}
        return [
            {
                k
                for k, t in enumerate(self.plan.tables)
                if any(lv.variable == name and lv.size == size for lv in t.levels)
            }
            for size in sorted(sizes, reverse=True)
        ]


class PlainSearch:
    """The cells of a problem, sorted as the search sorts them, and what it does with them."""

    def __init__(self, problem: SearchProblem, stages: Sequence[Stage], seed: int) -> None:
        rows = stages[-1].plan.rows()
        self.order = np.lexsort(problem.codes[rows])
        self.problem, self.stages, self.state = problem, stages, Stream(seed)
        self.codes: list[Cells] = [tuple(c) for c in problem.codes[rows][:, self.order].T.tolist()]
        self.at = {c: i for i, c in enumerate(self.codes)}
        self.fixed = problem.fixed_codes[rows].T.tolist()
        self.up = problem.up[self.order].astype(int).tolist()
        self.low, self.residue, self.group, self.empty = (
            column[self.order].tolist()
            for column in (problem.low, problem.residue, problem.group, problem.is_empty)
        )
        self.tied = max(self.group, default=-1) >= 0
        self.bounds = self._bounds()
        self.cache: dict[int, Tables] = {}

    # --- what is allowed

    def _class(self, c: int) -> tuple[int, bool] | None:
        if self.problem.kind is not None:
            return int(self.problem.kind[self.order][c]), False
        if self.problem.start_share is None or self.residue[c] == 0:
            return None
        return self.residue[c], self.low[c] > 0

    def _bounds(self) -> dict[tuple[int, bool], tuple[int, int]]:
        """How few and how many cells of a class may stand up: a twentieth off the chance to start there."""
        bounds = {}
        for kind in {self._class(c) for c in range(len(self.codes))} - {None}:
            inside = [self.up[c] for c in range(len(self.codes)) if self._class(c) == kind]
            if self.problem.kind is not None:
                ends = self.problem.up_shares[kind[0]]
            else:
                share, of = self.problem.start_share
                chance = Fraction(kind[0] * share, self.problem.step * of)
                drift = Fraction(1, 20)
                if self.problem.drift_part is not None:
                    if kind[1]:  # only cells that can show 0 were lowered
                        chance = Fraction(kind[0], self.problem.step)
                    drift = min(drift, chance * self.problem.drift_part)
                ends = chance - drift, chance + drift
            least, most = (len(inside) * end for end in ends)
            inner = self.problem.kind is not None
            ends = (ceil(least), floor(most)) if inner else (floor(least), ceil(most))
            bounds[kind] = min(sum(inside), ends[0]), max(sum(inside), ends[1])
        return bounds

    def lack(self, up: Sequence[int]) -> int:
        problem, step = self.problem, self.problem.step
        shown = [low + step * u for low, u in zip(self.low, up, strict=True)]
        showing = shown.count(step) + problem.fixed_smallest
        empty = sum(n == step for n, e in zip(shown, self.empty, strict=True) if e)
        share, of = problem.empty_share
        return share * showing - of * (empty + problem.fixed_empty)

    def beyond_bounds(self, up: Sequence[int], moved: Cells) -> int:
        beyond = 0
        for kind in [k for k in map(self._class, moved) if k is not None]:
            number = sum(up[c] for c in range(len(up)) if self._class(c) == kind)
            least, most = self.bounds[kind]
            beyond += max(number - most, least - number, 0)
        return beyond

    def allowed(self, moved: Cells) -> bool:
        after = [1 - u if c in moved else u for c, u in enumerate(self.up)]
        if self.lack(after) > max(0, self.lack(self.up)):
            return False
        return self.beyond_bounds(after, moved) <= self.beyond_bounds(self.up, moved)

    # --- what tables say

    def tables(self, plan: TablePlan) -> Tables:
        if id(plan) not in self.cache:
            self.cache[id(plan)] = Tables(plan, self.codes)
        return self.cache[id(plan)]

    def errors(self, plan: TablePlan) -> list[int]:
        tables, errors = self.tables(plan), [0] * plan.cells
        step = self.problem.step
        for c, places in enumerate(tables.of_cell):
            for at in places:
                errors[at] += step * self.up[c] - self.residue[c]
        for codes, by in zip(self.fixed, self.problem.fixed_up.tolist(), strict=True):
            for at in tables.places(codes):
                errors[at] += by
        return errors

    def cost(self, stage: Stage, errors: list[int], moved: Cells, level: int = -1) -> int:
        """What all tables change by, or those with one level of the variable that the first two differ in."""
        tables, change = self.tables(stage.plan), dict[int, int]()
        some: set[int] | range = range(len(stage.plan.tables))
        if level >= 0:
            some = tables.levels_of(self._apart(*moved[:2]))[level]
        for c in moved:
            for at in (tables.of_cell[c][k] for k in some):
                change[at] = change.get(at, 0) + (-1 if self.up[c] else 1) * self.problem.step
        prices = self.prices(stage)
        return sum(
            prices[kind](errors[at] + by) - prices[kind](errors[at])
            for at, by in change.items()
            if by and (kind := tables.kind_at[at]) in prices
        )

    def prices(self, stage: Stage) -> dict[str, Callable[[int], int]]:
        """What an error costs in each kind of table; those with single finest cells cost nothing."""

        def price(cost: ErrorCost) -> Callable[[int], int]:
            return lambda e: (
                cost.quadratic * e**2
                + cost.quartic * e**4
                + cost.steep * max(abs(e) - cost.beyond, 0) ** 2
            )

        kinds = ("coarser", "finest", "own", "extra")
        return {kind: price(cost) for kind, cost in zip(kinds, stage.costs, strict=True)}

    def _apart(self, i: int, j: int) -> int:
        return next(
            v for v, (a, b) in enumerate(zip(self.codes[i], self.codes[j], strict=True)) if a != b
        )

    def far(self, stage: Stage, errors: list[int], kinds: set[str]) -> list[int]:
        """The cells of these kinds of tables with errors that are too large."""
        kind_at = self.tables(stage.plan).kind_at
        return [a for a, e in enumerate(errors) if kind_at[a] in kinds and abs(e) > stage.beyond]

    def inside(self, stage: Stage, targets: Sequence[int]) -> list[bool]:
        wanted = set(targets)
        return [bool(wanted & set(places)) for places in self.tables(stage.plan).of_cell]

    # --- moves

    @cache  # noqa: B019
    def ring(self, i: int, v: int) -> list[int]:
        """The other cells along a variable, the next one first."""
        line = [c for c, k in enumerate(self.codes) if _without(k, v) == _without(self.codes[i], v)]
        line.sort(key=lambda c: self.codes[c][v])
        at = line.index(i)
        return [*line[at + 1 :], *line[:at]]

    def able(self, i: int, other: int) -> bool:
        return self.up[other] != self.up[i] and (
            not self.tied or self.group[other] == self.group[i]
        )

    def near(self, i: int, v: int, most: int) -> list[int]:
        return [c for c in self.ring(i, v)[: 4 * most] if self.able(i, c)][:most]

    def rectangles(self, i: int, most: int) -> Iterator[tuple[int, int, int, int]]:
        """First cells, their neighbours along two variables, and fourth cells; the last is -1 for a swap."""
        variables = range(len(self.codes[i]))
        near = [self.near(i, v, most) for v in variables]
        for u in variables:
            for j in near[u]:
                yield i, j, -1, -1
                for v, k in ((w, c) for w in variables[u + 1 :] for c in near[w]):
                    corner = list(self.codes[i])
                    corner[u], corner[v] = self.codes[j][u], self.codes[k][v]
                    m = self.at.get(tuple(corner), -1)
                    same = not self.tied or self.group[m] == self.group[i]
                    if m >= 0 and self.up[m] == self.up[i] and same:
                        yield i, j, k, m

    def visit(
        self, stage: Stage, errors: list[int], i: int, heat: float, lane: Stream
    ) -> Iterator[tuple[Cells, float]]:
        """Try the moves of a cell; those that are made, with what they were allowed to cost."""

        def tried(*moved: int) -> bool:
            nonlocal limit
            limit = lane.limit(heat)
            return self.cost(stage, errors, moved) <= limit and self.allowed(moved)

        limit = 0.0
        if self.group[i] < 0 and tried(i):
            yield (i,), limit
        for v in range(len(self.codes[i])):
            for o in self.ring(i, v)[: stage.rings]:
                if self.able(i, o) and tried(i, o):
                    yield (i, o), limit
        for moved in self.rectangles(i, stage.near):
            if moved[3] >= 0 and tried(*moved):
                yield moved, limit
                return

    def make(self, plan: TablePlan, errors: list[int], moved: Cells) -> None:
        for c in moved:
            by = -self.problem.step if self.up[c] else self.problem.step
            self.up[c] = 1 - self.up[c]
            for at in self.tables(plan).of_cell[c]:
                errors[at] += by

    # --- sweeps

    def run(self) -> Iterator[int]:
        """Make all sweeps; says where the stream stands after each."""
        for stage in self.stages:
            for sweep in range(stage.sweeps):
                visited = self.sweep(stage, sweep)
                if stage.to_the_end and not visited:
                    break
                if stage.walk and sweep == stage.sweeps - 1:
                    self.walk(stage)
                yield self.state.position

    def heat(self, stage: Stage, sweep: int) -> float:
        prices, kinds = self.prices(stage), self.tables(stage.plan).kinds
        unit = sum(prices[kind](self.problem.step) for kind in kinds if kind in prices)
        share = sweep / max(1, stage.sweeps - 1)
        return float(round(unit * stage.hot * (stage.cold / stage.hot) ** share))

    def visited(self, stage: Stage, sweep: int, errors: list[int], majors: list[int]) -> list[bool]:
        if not stage.beyond and not stage.to_the_end:
            return [True] * len(self.codes)
        most = max(1, int(stage.most * len(self.codes)))
        usual = {"coarser", "finest", "own"}
        if not stage.to_the_end:
            marked = self.inside(stage, self.far(stage, errors, usual))
            if sum(marked) <= most:
                return marked
            apart = -(-sum(marked) // most)
            kept = [c for c, m in enumerate(marked) if m][self.state.word() % apart :: apart]
            return [c in kept for c in range(len(marked))]
        far, plan = self.far(stage, errors, usual | {"extra"}), stage.plan
        of_major = {
            int(a)
            for t in plan.tables
            if any(lv.variable == plan.major and lv.finest for lv in t.levels)
            for a in t.places().ravel()
        }
        turns = max(1, round(1 / stage.most))
        in_turn = sorted(majors, key=lambda m: (m - sweep) % turns > 0)
        own = self.inside(stage, [a for a in far if a in of_major])
        other = self.inside(stage, [a for a in far if a not in of_major])
        other = [b and not a for a, b in zip(own, other, strict=True)]
        first, second = (self._of_categories(marked, in_turn, most) for marked in (own, other))
        return [a or b for a, b in zip(first, second, strict=True)]

    def _of_categories(self, marked: list[bool], majors: list[int], most: int) -> list[bool]:
        taken = [False] * len(marked)
        for major in majors:
            if sum(taken) >= most and sum(marked) > most:
                break
            for c, m in enumerate(marked):
                taken[c] |= m and self.codes[c][-1] == major
        return taken

    def rounds(
        self, majors: list[int], outer: int, visited: list[bool]
    ) -> list[list[list[list[int]]]]:
        """The slices of every lane, round by round, as lists of cells."""
        every = [
            list(s) for _, s in groupby(range(len(self.codes)), lambda c: self.codes[c][-outer:])
        ]
        slices = [s for m in majors for s in every if self.codes[s[0]][-1] == m]
        slices = [s for s in slices if any(visited[c] for c in s)]
        total = sum(visited)
        lanes = (
            lanes_module._LANES if total >= lanes_module._LANES * lanes_module._LANE_CELLS else 1
        )
        many = max(
            lanes_module._ROUNDS if lanes > 1 else 1,
            -(-total // (lanes * lanes_module._ROUND_CELLS)),
        )
        rounds: list[list[list[list[int]]]] = [[[] for _ in range(lanes)] for _ in range(many)]
        done = 0
        for s in slices:
            count = sum(visited[c] for c in s)
            done += count
            place = lanes * many * (done - (count + 1) // 2) // total
            rounds[place % many][place // many].append(s)
        return rounds

    def sweep(self, stage: Stage, sweep: int) -> bool:
        errors, heat = self.errors(stage.plan), self.heat(stage, sweep)
        majors = self.state.shuffled(sorted({c[-1] for c in self.codes}))
        visited = self.visited(stage, sweep, errors, majors)
        if not any(visited):
            return False
        rounds = self.rounds(majors, stage.plan.outer, visited)
        streams = [Stream(self.state.word()) for _ in rounds[0]]
        for shares in rounds:
            start, noted = list(self.up), []
            for slices, stream in zip(shares, streams, strict=True):
                # Every lane begins with the same cells, and those of the first one stay where it moved them.
                if noted:
                    self.up = list(start)
                own, made = self.errors(stage.plan), list[tuple[Cells, list[int], float]]()
                for cells in slices:
                    for i in (cells[k] for k in stream.shuffled(range(len(cells)))):
                        if visited[i]:
                            for moved, limit in self.visit(stage, own, i, heat, stream):
                                made.append((moved, [self.up[c] for c in moved], limit))
                                self.make(stage.plan, own, moved)
                noted.append((made, list(self.up)))
            self.up = noted[0][1]
            errors = self.errors(stage.plan)
            for moved, stood, limit in (move for made, _ in noted[1:] for move in made):
                stands = [self.up[c] for c in moved] == stood and self.allowed(moved)
                if stands and self.cost(stage, errors, moved) <= limit:
                    self.make(stage.plan, errors, moved)
        return True

    # --- the walk

    def walk(self, stage: Stage) -> None:
        kinds = {"coarser", "finest", "own"} | ({"extra"} if stage.to_the_end else set())
        errors = self.errors(stage.plan)
        far = self.far(stage, errors, kinds)
        rests = [0] * len(self.codes)

        def excess() -> int:
            return sum(abs(errors[a]) - stage.beyond for a in far)

        least, best, last = excess(), list(self.up), 0
        for number in range(1, stage.walk + 1):
            if not far or number > last + PATIENCE:
                break
            target = far[self.state.word() % len(far)]
            inside = self.inside(stage, [target])
            wrong = int(errors[target] > 0)
            able = [
                c for c, i in enumerate(inside) if i and self.up[c] == wrong and rests[c] < number
            ]
            able = self.state.shuffled(able)
            moved = self._cheapest(
                stage, errors, able[: (len(able) + 1) // 2], inside, rests, number
            )
            if moved is None:
                continue
            self.make(stage.plan, errors, moved)
            for c in moved:
                rests[c] = number + REST
            far = self.far(stage, errors, kinds)
            left = excess()
            if left < least:
                least, best, last = left, list(self.up), number
            if left > least + ASTRAY:
                self.up = list(best)
                errors = self.errors(stage.plan)
                far = self.far(stage, errors, kinds)
        self.up = list(best)

    def _cheapest(
        self,
        stage: Stage,
        errors: list[int],
        able: list[int],
        inside: list[bool],
        rests: list[int],
        number: int,
    ) -> Cells | None:
        """The cheapest move of one of these cells; an exchange is given up once its first levels cost more."""
        least, best = float("inf"), None
        for i in able:
            for j, k, m in (r[1:] for r in self.rectangles(i, NEAR)):
                moved = (i, j) if m < 0 else (i, j, k, m)
                if any(inside[c] for c in moved[1:3]) or any(rests[c] >= number for c in moved[1:]):
                    continue
                if not self.allowed(moved):
                    continue
                if m < 0:
                    cost: float = self.cost(stage, errors, moved)
                else:
                    cost = 0
                    for level in range(len(self.tables(stage.plan).levels_of(self._apart(i, j)))):
                        if cost < least:
                            cost += self.cost(stage, errors, moved, level)
                if cost < least:
                    least, best = cost, moved
        return best


def _without(codes: Cells, v: int) -> Cells:
    return codes[:v] + codes[v + 1 :]
