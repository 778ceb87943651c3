"""What contributors learn from published files is what an enumeration of all tables leaves possible."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.model import Category, Contributions, InputError, Table, TableAxis
from lustrum.protect.suppression import Suppression
from lustrum.protect.suppression.check import PatternAudit, audit_pattern
from lustrum.readers import findings
from lustrum.readers.cells import CellCube
from lustrum.readers.judge import Levels, judge, open_file
from lustrum.readers.layout import layout_of_text
from lustrum.readers.report import FileReport
from lustrum.sensitivity import PPercent

CODES = (("T", "N", "S"), ("All", "a", "b"))
LAYOUT = """kind = "sums"
[symbols]
x = "hidden"
[[tables]]
[tables.columns]
area = { role = "code" }
job = { role = "code" }
value = { role = "value" }
[dimensions.area]
totals.T = ["N", "S"]
[dimensions.job]
totals.All = ["a", "b"]
"""
LEAVES = list(product((1, 2), (1, 2)))
CELLS = list(product(range(3), range(3)))


def below(cell: tuple[int, int]) -> list[int]:
    """The smallest cells of a cell."""
    return [
        k
        for k, leaf in enumerate(LEAVES)
        if all(c in (0, x) for c, x in zip(cell, leaf, strict=True))
    ]


class World:
    """Contributions of a few firms to four smallest cells, some in one holding, and what is hidden."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        firms = int(rng.integers(2, 6))
        self.own = rng.integers(0, 4, size=(firms, 4)) * (rng.random((firms, 4)) < 0.5)
        self.own[0, 0] += 1
        self.holding = ["H" if rng.random() < 0.3 else "" for _ in range(firms)]
        total = self.own.sum(axis=0)
        self.true = {cell: int(total[below(cell)].sum()) for cell in CELLS}
        self.hidden = {cell for cell in CELLS[1:] if rng.random() < 0.6}

    def units(self) -> dict[str, set[int]]:
        """Whoever may attack: every firm with contributions, those of a holding as one."""
        firms = [i for i in range(len(self.own)) if self.own[i].any()]
        out = {f"contributor F{i}": {i} for i in firms if not self.holding[i]}
        members = {i for i in firms if self.holding[i]}
        return out | ({"holding H": members} if members else {})

    def party(self, firms: set[int]) -> set[int]:
        """Firms with all of their holdings."""
        held = any(self.holding[i] for i in firms)
        return firms | {i for i, name in enumerate(self.holding) if name and held}

    def write(self, folder: Path) -> tuple[Path, Path]:
        table, file = folder / "t.csv", folder / "c.csv"
        rows = [
            f"{CODES[0][a]},{CODES[1][j]},{'x' if (a, j) in self.hidden else v}"
            for (a, j), v in self.true.items()
        ]
        table.write_text("\n".join(["area,job,value", *rows]) + "\n")
        lines = [
            f"F{i},{self.holding[i]},{CODES[0][a]},{CODES[1][j]},{self.own[i, k]}"
            for i in range(len(self.own))
            for k, (a, j) in enumerate(LEAVES)
            if self.own[i, k]
        ]
        file.write_text("\n".join(["contributor,holding,area,job,value", *lines]) + "\n")
        return table, file

    def tables(self, firms: set[int]) -> np.ndarray:
        """All tables of smallest cells that these firms cannot rule out."""
        top = self.true[0, 0]
        every = np.array(list(product(range(top + 1), repeat=3)))
        every = np.column_stack([every, top - every.sum(axis=1)])
        own = self.own[sorted(firms)].sum(axis=0)
        every = every[(every >= own).all(axis=1)]
        for cell in CELLS:
            mine = int(own[below(cell)].sum())
            if cell not in self.hidden or (mine == self.true[cell] and mine > 0):
                every = every[every[:, below(cell)].sum(axis=1) == self.true[cell]]
        return every

    def disclosed(
        self, cell: tuple[int, int], ends: tuple[int, int], reach: int | None, own: int = 0
    ) -> bool:
        """Whether a range of a cell is a single value, or does not reach far enough from the true one."""
        low, high = ends
        short = reach is not None and (
            low > max(self.true[cell] - reach, own) or high < self.true[cell] + reach
        )
        return low == high or short

    def levels(self, reach: int) -> Levels:
        def levels(cube: CellCube) -> tuple[np.ndarray, np.ndarray]:
            true = np.zeros(cube.value.shape)
            for a, j in CELLS:
                true[cube.codes[0].index(CODES[0][a]), cube.codes[1].index(CODES[1][j])] = (
                    self.true[a, j]
                )
            return true - reach, true + reach

        return levels

    def name(self, cell: tuple[int, int]) -> str:
        return f"area={CODES[0][cell[0]]}, job={CODES[1][cell[1]]}"

    def ranges(self, firms: set[int]) -> dict[tuple[int, int], tuple[int, int]]:
        every = self.tables(firms)
        sums = {cell: every[:, below(cell)].sum(axis=1) for cell in CELLS}
        return {cell: (int(x.min()), int(x.max())) for cell, x in sums.items()}

    def attackers(self, size: int) -> list[tuple[frozenset[str], set[int]]]:
        units = self.units()
        sets = [c for n in range(size + 1) for c in combinations(units, n)]
        return [(frozenset(names), set().union(*(units[n] for n in names))) for names in sets]

    def amounts(self, cell: tuple[int, int], without: set[int]) -> list[int]:
        """What parties contribute to a cell that have nothing to do with some firms."""
        mine = self.own[:, below(cell)].sum(axis=1)
        left = set(range(len(self.own))) - self.party(without)
        held = [i for i in left if self.holding[i]]
        sums = [int(mine[i]) for i in left if not self.holding[i]] + [int(mine[held].sum())]
        return [x for x in sums if x]


Learned = dict[tuple[str, frozenset[str]], tuple[float | None, float | None, bool]]
"""By cell and attackers: the ends of the range, and whether it gives the exact value away."""


def learned(report: FileReport, about: str) -> Learned:
    return {
        (value.cell, frozenset(value.known_to)): (value.low, value.high, value.finding == "exact")
        for value in report.values
        if value.about == about
    }


def expected(world: World, size: int, reach: int | None) -> Learned:
    """Who learns too much about hidden cells, by enumeration; coalitions for what no part of them learns."""
    readers, out = world.ranges(set()), Learned()
    for names, firms in world.attackers(size):
        ranges = world.ranges(firms)
        for cell in world.hidden:
            others, (low, high) = world.amounts(cell, firms), ranges[cell]
            own = int(world.own[sorted(firms)][:, below(cell)].sum())
            if not others or world.disclosed(cell, readers[cell], reach):
                continue
            name = world.name(cell)
            if world.disclosed(cell, (low, high), reach, own) and not any(
                told == name and one < names for told, one in out
            ):
                out[name, names] = (low - own, high - own, low == high)
    return out


@pytest.mark.parametrize(("size", "reach"), [(1, None), (2, None), (3, None), (1, 2)])
@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(12, 300), deadline=None)
def test_insiders_learn_what_an_enumeration_finds(
    tmp_path_factory: pytest.TempPathFactory, seed: int, size: int, reach: int | None
) -> None:
    world = World(seed)
    table, file = world.write(tmp_path_factory.mktemp("w"))
    report = judge(
        [open_file(table, layout_of_text(LAYOUT, "l"))],
        close=0,
        contributions=file,
        coalition=size,
        levels=None if reach is None else world.levels(reach),
    ).report
    wanted = expected(world, size, reach)
    found = learned(report, "contributions of others")
    # Of several who learn the same of a cell, who knows more is named.
    assert found.items() <= wanted.items()
    assert {cell for cell, _ in found} == {cell for cell, _ in wanted}
    shown = {
        world.name(cell)
        for cell in set(CELLS) - world.hidden
        for _, firms in world.attackers(size)
        if len(world.amounts(cell, firms)) == 1
    }
    assert {cell for cell, _ in learned(report, "one contribution")} == shown
    readers = world.ranges(set())
    told = [c for c in world.hidden if world.disclosed(c, readers[c], reach)]
    assert report.exit == (3 if wanted or shown or told else 0)


@given(seed=st.integers(0, 10**6))
@settings(max_examples=examples(8, 100), deadline=None)
def test_audits_say_what_the_audit_of_a_pattern_says_by_which_it_was_chosen(
    tmp_path_factory: pytest.TempPathFactory, seed: int
) -> None:
    """Of any pattern: which cells fall short, and whether sums of hidden cells break the rule."""
    rng = np.random.default_rng(seed)
    firms, leaves = 7, (3, 3)
    own = rng.integers(1, 100, size=(firms, *leaves)) * (rng.random((firms, *leaves)) < 0.4)
    sets = [(0,), (1,), (2,), (0, 1, 2)]
    axes = tuple(
        TableAxis(n, n, tuple(Category(f"{n}{i}", f"{n}{i}", m) for i, m in enumerate(sets)))
        for n in ("area", "job")
    )
    every = np.array([[own[:, r][:, :, c].sum(axis=(1, 2)) for c in sets] for r in sets])
    order = np.argsort(-every, axis=-1, kind="stable")
    value = np.take_along_axis(every, order, axis=-1)
    table = Table(
        axes=axes,
        values=every.sum(axis=-1),
        kind="magnitude",
        contributors=(every > 0).sum(axis=-1),
        contributions=Contributions(value, np.where(value > 0, order, -1)),
    )
    folder = tmp_path_factory.mktemp("s")
    lines = [
        f"F{i},area{a},job{j},{own[i, a, j]}"
        for i, a, j in product(range(firms), range(3), range(3))
        if own[i, a, j]
    ]
    (folder / "c.csv").write_text("\n".join(["contributor,area,job,value", *lines]) + "\n")

    pairs, unions = rng.random(2) < 0.5
    attacker = "pairs" if pairs else "holdings"
    spec = Suppression(rule=PPercent(p=20), attacker=attacker, unions=bool(unions))  # type: ignore[arg-type]
    problem = spec.problem(table)
    hidden = problem.primary | ((rng.random(problem.values.size) < 0.3) & (problem.values > 0))
    if rng.random() < 0.3:
        hidden = np.asarray(spec.pattern(table).suppressed)
    if rng.random() < 0.2:
        hidden = hidden & (rng.random(hidden.size) < 0.8)
    audit = audit_pattern(problem, hidden)
    keys = list(product(*(axis.codes for axis in axes)))
    text = np.where(hidden, "x", table.values.ravel().astype(str)).tolist()
    rows = [",".join([*key, one]) for key, one in zip(keys, text, strict=True)]
    (folder / "t.csv").write_text("\n".join(["area,job,value", *rows]))
    layout = LAYOUT
    for name, old in (("area", 'T = ["N", "S"]'), ("job", 'All = ["a", "b"]')):
        layout = layout.replace(old, f'{name}3 = ["{name}0", "{name}1", "{name}2"]')
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(findings, "MOST_NAMED", 1)  # as if the search had stopped after one
        report = judge(
            [open_file(folder / "t.csv", layout_of_text(layout, "l"))],
            close=0,
            contributions=folder / "c.csv",
            coalition=2 if pairs else 1,
            rule=spec.rule,  # type: ignore[arg-type]
            unions=spec.unions,
        ).report
    names = ["area={}, job={}".format(*key) for key in keys]
    found = {value.cell for value in report.values if value.finding != "few values"}
    short = {names[cell] for cell, _ in audit.short}
    sums = {" + ".join(sorted(names[c] for c in union.cells)) for union in audit.unions}
    primary = {names[cell] for cell in np.flatnonzero(problem.primary)}
    assert found & primary == short
    assert {" + ".join(sorted(cell.split(" + "))) for cell in found if "+" in cell} == sums
    assert report.exit == 3 or audit.safe
    assert ("unions" in {question.role for question in report.questions}) == bool(audit.unions)


TABLE = "area,job,value\nT,All,22\nT,a,12\nT,b,10\nN,All,11\nN,a,x\nN,b,x\nS,All,11\nS,a,x\nS,b,x\n"
GOOD = [
    "area,job,contributor,value",
    *(f"{area},{job},F{i}{area}{job},2" for area in "NS" for job in "ab" for i in range(2)),
    *("N,a,G1,1", "N,b,G2,2", "S,a,G3,3", "S,b,G4,0"),
]


def audited(folder: Path, lines: list[str], layout: str = LAYOUT, **options: object) -> FileReport:
    (folder / "t.csv").write_text(TABLE)
    (folder / "c.csv").write_bytes(("\n".join(lines) + "\n").encode("cp1252"))
    opened = open_file(folder / "t.csv", layout_of_text(layout, "layout.toml"))
    return judge([opened], contributions=folder / "c.csv", **options).report  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("line", "by", "sentence"),
    [
        (1, "N,c,F,2", "c.csv, line 2: 'job' has no code 'c'"),
        (1, "N,All,F,2", "line 2: 'All' of 'job' is worked out from other codes"),
        (1, "N,a,F,", "line 2: the value is blank"),
        (1, "N,a,F,2 p", "line 2: '2 p' is no number"),
        (1, "N,a,F,-2", "line 2: the contribution is negative"),
        (1, "N,a,,2", "line 2: the contributor is blank"),
        (1, "N,a,G1,2", "line 10: the contributor has this cell in line 2 already"),
        (1, "N,a,F,1.5", "line 2: the contribution has more decimals than the published numbers"),
        (1, "N,a,F,1e17", "line 2: the number has more digits"),
        (1, "N,a,F,3", r"area=N, job=All \(.*t.csv, line 5\) add up to 12, and 11 is shown"),
        (0, "area,job,contributor,wert", "'wert' has no role"),
        (0, "area,job,holdings,value", "'holdings' has no role"),
        (0, "area,job,value,contributor", "is no number"),
        (0, "area,contributor,job,value", "'area'|'job'"),
    ],
)
def test_what_is_not_clear_is_refused_with_its_line(
    tmp_path: Path, line: int, by: str, sentence: str
) -> None:
    assert audited(tmp_path, GOOD).exit == 0
    lines = [*GOOD]
    lines[line] = by
    with pytest.raises(InputError, match=sentence):
        audited(tmp_path, lines)


def test_columns_and_decimals_are_read_as_the_layout_says(tmp_path: Path) -> None:
    lines = ["Ort;Art;Firma;Gruppe;Name;Umsatz"]
    lines += [
        ";".join([*line.split(",")[:3], "", "Müller", line.split(",")[3]]) for line in GOOD[1:]
    ]
    declared = """[contributions]
    decimal = ","
    [contributions.columns]
    Ort = { role = "code", dimension = "area" }
    Art = { role = "code", dimension = "job" }
    Firma = { role = "contributor" }
    Gruppe = { role = "holding" }
    Name = { role = "note" }
    Umsatz = { role = "value" }
    """
    assert audited(tmp_path, lines, LAYOUT + declared).exit == 0
    grouped = [
        line.replace(";;", ";H;") if ";a;" in line or ";b;" in line else line for line in lines
    ]
    # All are one holding, and readers hear of nobody but the holding.
    report = audited(tmp_path, grouped, LAYOUT + declared)
    assert {(v.about, v.finding, v.known_to) for v in report.values} == {
        ("one contribution", "exact", ())
    }
    for wrong in ('role = "holder"', 'rolle = "code"'):
        with pytest.raises(InputError, match=r"contributions\.columns\.Ort"):
            layout_of_text(LAYOUT + declared.replace('role = "code"', wrong, 1), "l")


def test_a_contributor_has_one_holding(tmp_path: Path) -> None:
    lines = [f"{line},{'holding' if number == 0 else 'H'}" for number, line in enumerate(GOOD)]
    lines[-1] = "S,b,G1,0,K"
    with pytest.raises(InputError, match="line 13: the contributor has another holding"):
        audited(tmp_path, lines)


def test_bounds_of_contributors_that_are_not_sharp_are_no_all_clear(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # No file makes a solver stop for contributors and not for readers, so it is told to.
    def stopping(*args: object) -> PatternAudit:
        audit = audit_pattern(*args)  # type: ignore[arg-type]
        return replace(audit, short=((4, 0),), reach=((0.0, 9.0, False),))

    monkeypatch.setattr("lustrum.readers.findings.audit_pattern", stopping)
    report = audited(tmp_path, GOOD)
    assert (report.exit, [q.role for q in report.questions]) == (4, ["bounds"])


def test_contributors_are_judged_only_by_a_layout_with_a_kind(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="needs 'kind'"):
        audited(tmp_path, GOOD, LAYOUT.replace('kind = "sums"\n', ""))
    with pytest.raises(InputError, match="needs the layout of every file"):
        judge([open_file(tmp_path / "t.csv")], contributions=tmp_path / "c.csv")


def _one(folder: Path, table: str, roles: str, rows: str, head: str = "") -> FileReport:
    """The report on a table of one variable with contributions to it."""
    layout = f"""kind = "sums"\n{head}\n[symbols]\nx = "hidden"\n[[tables]]\n[tables.columns]
    what = {{ role = "code" }}\nvalue = {{ role = "value" }}\n[dimensions.what]\n{roles}\n"""
    (folder / "s.csv").write_text("what,value\n" + table.replace(";", "\n") + "\n")
    (folder / "d.csv").write_text("what,contributor,value\n" + rows.replace(";", "\n") + "\n")
    opened = open_file(folder / "s.csv", layout_of_text(layout, "l"))
    return judge([opened], contributions=folder / "d.csv").report


def test_nobody_has_more_in_a_subset_than_in_what_holds_it(tmp_path: Path) -> None:
    roles = 'totals.All = ["A", "C"]\nsubsets.A = { codes = ["of which B"], complete = false }'
    table = "A,9;of which B,x;C,21;All,30"
    rows = "A,F,3;A,G,3;A,E,3;C,X,7;C,Y,7;C,Z,7;"
    # F has all of the subset, so that nobody has a secret there; of two others, nobody knows how much.
    assert _one(tmp_path, table, roles, rows + "of which B,F,2").exit == 0
    assert _one(tmp_path, table, roles, rows + "of which B,F,2;of which B,G,1").exit == 0
    with pytest.raises(InputError, match="line 2: what this contributor has in A, of which B"):
        _one(tmp_path, table, roles, rows + "of which B,F,8")


def test_shares_that_contributions_contradict_are_refused(tmp_path: Path) -> None:
    roles = 'totals.All = ["A", "B"]\nunits.PC = "100 * A / All"'
    rows = "A,F,3;A,G,3;A,E,3;B,X,7;B,Y,7;B,Z,7"
    assert _one(tmp_path, "A,x;B,x;All,30;PC,30", roles, rows).exit == 3
    with pytest.raises(InputError, match=r"what=A.* add up to 9, and that does not fit"):
        _one(tmp_path, "A,x;B,x;All,30;PC,40", roles, rows)


def test_a_large_contributor_is_not_close_to_what_others_have(tmp_path: Path) -> None:
    rows = "A,F,985;A,G,10;B,K,3;B,L,2"
    assert _one(tmp_path, "A,x;B,x;All,1000", 'totals.All = ["A", "B"]', rows).exit == 0


def test_rounded_tables_are_judged_in_the_units_of_the_contributions(tmp_path: Path) -> None:
    rounded = 'rounding = { base = 1, how = "last digit" }'
    rows = "A,F,3.25;B,G,1.125;B,H,0.5"
    report = _one(tmp_path, "A,x;B,x;All,5", 'totals.All = ["A", "B"]', rows, rounded)
    (value,) = report.values
    assert (value.cell, value.known_to, value.finding) == ("what=B", ("contributor F",), "close")
    assert (value.low, value.high) == (1.25, 2.25)  # known but for rounding
