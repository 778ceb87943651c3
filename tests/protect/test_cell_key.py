"""The cell key method for counts: the same cell the same number, chances as promised, bounds that hold."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import stats

from lustrum.model import Category, Dataset, InputError, Table, TableAxis
from lustrum.model.channel import MatrixChannel
from lustrum.model.parameters import spec_from_words
from lustrum.model.table import inner_cells
from lustrum.numeric.structure import Structure, propagate
from lustrum.protect.cell_key import (
    Additive,
    CellKey,
    Lookup,
    LookupChannel,
    PTable,
    Versions,
    ZeroKeys,
    read_ptable,
)
from lustrum.protect.cell_key.channel import zeros_stay
from lustrum.protect.perturbation.design import PerturbationDesign, design
from lustrum.protect.totals.safe import TotalsGuard, line_totals, narrow_lines, safe_totals
from lustrum.tabulate import FrameEngine, HypercubeEngine, aggregate
from small import described, with_total
from tabulate.sql_engine import SqlEngine
from tabulate.worlds import SECRET, World, question_of, questions, quick, worlds

FALSE_ALARM = 1e-6
ZERO_SECRET = b"a secret for cells that are empty"
# Zeros become 1 now and then; every count above moves by at most one.
LIVELY = MatrixChannel([[0.75, 0.25, 0], [0.25, 0.5, 0.25], [0, 0.5, 0.5]], residue_base=1)


def ons_table() -> PTable:
    """Rows 1 to 750, keys 0 to 255; each row is told apart by how many keys go down."""
    values, keys = np.arange(1, 751), np.arange(256)
    down = keys[None, :] < (values % 97)[:, None] + 1
    up = keys[None, :] >= 255 - (values % 97)[:, None]
    steps = up.astype(int) - down.astype(int)
    return PTable.of_columns(
        "like-ons",
        {"pcv": np.repeat(values, 256), "ckey": np.tile(keys, 750), "pvalue": steps.ravel()},
    )


def methods() -> dict[str, CellKey]:
    designed = design(largest_change=3, variance=1.5, blocked=(1,))
    return {
        "preset": CellKey(totals="own"),
        "designed": CellKey(ptable=PerturbationDesign(3, 1.5, blocked=(1,)), totals="own"),
        "abs": CellKey(ptable=designed, lookup=Lookup("abs"), totals="own"),
        "ons": CellKey(ptable=ons_table(), totals="own"),
        "lively": CellKey(ptable=LIVELY, totals="own"),
    }


def of(values: Any, rng: np.random.Generator, **more: Any) -> Table:
    counts = np.asarray(values)
    keys = np.where(counts > 0, rng.integers(0, 2**64, counts.shape, dtype=np.uint64), 0)
    return Table.from_counts(counts, keys=keys, **more)


# The same cell, the same number


def cells(table: Table, published: Any, filters: dict[str, list[str]]) -> dict[Any, int]:
    """Every cell by what it asks for: codes by variable, whole variables left out."""
    out: dict[Any, int] = {}
    for place in itertools.product(*(range(n) for n in table.shape)):
        asked = [
            (axis.name, axis.categories[i].code)
            for axis, i in zip(table.axes, place, strict=True)
            if axis.categories[i].code != "_T"
        ]
        asked += [(name, codes[0]) for name, codes in filters.items()]
        value = int(published[place])
        assert out.setdefault(frozenset(asked), value) == value
    return out


@given(data=st.data())
@quick(4)
def test_a_cell_is_the_same_in_every_table_on_every_engine_and_in_every_order(
    data: st.DataObject,
) -> None:
    world: World = data.draw(worlds(variables=3))
    assume(world.records)
    first, second = list(world.codes)[:2]
    frame = FrameEngine(world.arrow(), world.dataset, SECRET)
    order = np.random.default_rng(data.draw(st.integers(0, 99))).permutation(len(world.records))
    turned = FrameEngine(world.arrow().take(pa.array(order)), world.dataset, SECRET)
    engines = [
        frame,
        turned,
        SqlEngine(world.dataset, list(frame.chunks)),
        HypercubeEngine(aggregate(frame, list(world.codes)), world.dataset),
    ]
    forms: list[dict[str, Any]] = [
        {"by": [first, second], "totals": True},
        {"by": [second, first]},
        {"by": [{"variable": first, "total": True}]},
        {"by": list(world.codes), "totals": True},
        *({"by": [first], "where": {second: [code]}} for code in world.codes[second]),
        {"by": [second], "where": {first: [world.codes[first][0]]}, "totals": True},
        {"by": [], "where": {first: [world.codes[first][0]], second: [world.codes[second][0]]}},
    ]
    tables = [
        (form, engine.tabulate(question_of({"dataset": "world"} | form)))
        for engine, form in itertools.product(engines, forms)
    ]
    for method in methods().values():
        keyed = method.with_zeros(ZERO_SECRET, world.dataset)
        seen: dict[Any, int] = {}
        for form, table in tables:
            where = {n: c for n, c in form.get("where", {}).items() if len(world.codes[n]) > 1}
            # A variable of one code says nothing; leave it out of what a cell asks for.
            found = {
                frozenset((n, c) for n, c in asked if len(world.codes[n]) > 1): v
                for asked, v in cells(table, keyed.apply(table).published, where).items()
            }
            for cell, value in found.items():
                assert seen.setdefault(cell, value) == value


@given(data=st.data())
@quick(8)
def test_overlapping_tables_agree_on_the_cells_they_share(data: st.DataObject) -> None:
    """Groups, levels and filters of any kind: equal sets of codes mean equal words, empty or not."""
    world: World = data.draw(worlds(variables=3))
    assume(world.records)
    engine = FrameEngine(world.arrow(), world.dataset, SECRET)
    method = CellKey(ptable=LIVELY, totals="own").with_zeros(ZERO_SECRET, world.dataset)
    seen: dict[Any, int] = {}
    for _ in range(3):
        query = question_of(data.draw(questions(world)))
        table = engine.tabulate(query)
        published = method.apply(table).published
        allowed = {f.variable: f.members(world.dataset.variable(f.variable)) for f in query.where}
        for place in itertools.product(*(range(n) for n in table.shape)):
            box = dict(allowed)
            for axis, i in zip(table.axes, place, strict=True):
                everything = world.dataset.variable(axis.name).everything
                box[axis.name] = box.get(axis.name, everything) & axis.categories[i].member_set
            if table.structural[place]:
                assert published[place] == 0
                continue
            cell = frozenset(
                (n, s) for n, s in box.items() if s != world.dataset.variable(n).everything
            )
            assert seen.setdefault(cell, int(published[place])) == published[place]


def test_another_ptable_uses_the_same_words() -> None:
    """Two ptables on the same cell give one draw twice, not two draws to be averaged."""
    rng = np.random.default_rng(2)
    table = of(np.full((100, 200), 9), rng)
    near, far = (
        CellKey(ptable=PerturbationDesign(3, v)).apply(table).published - 9 for v in (1.0, 1.2)
    )
    assert np.corrcoef(near.ravel(), far.ravel())[0, 1] > 0.9


# Chances


@pytest.mark.parametrize("name", list(methods()))
def test_every_count_moves_with_the_chances_of_its_channel(name: str) -> None:
    method, draws = methods()[name], 20_000
    rng = np.random.default_rng(11)
    values = [1, 2, 3, 4, 7, 15, 16, 17, 501, 749, 750, 751, 1000, 1001, 123_456]
    tests = []
    for value in values:
        release = method.apply(of(np.full((100, draws // 100), value), rng))
        row = release.channel.transitions(np.array([value]))
        found = dict(zip(*np.unique(release.published, return_counts=True), strict=True))
        assert set(found) <= set(row.published.tolist())
        times = np.array([found.get(p, 0) for p in row.published.tolist()])
        if times.size > 1:
            tests.append(stats.chisquare(times, row.probability / row.probability.sum() * draws))
    assert len(tests) > 10
    assert min(t.pvalue for t in tests) > FALSE_ALARM


def test_empty_cells_move_with_the_chances_of_their_row() -> None:
    codes = [str(i) for i in range(300)]
    dataset = Dataset.from_mapping(
        {"dataset": {"name": "d"}, "variables": [{"name": n, "codes": codes} for n in ("a", "b")]}
    )
    axes = [codes, codes]
    table = Table.from_counts(
        np.zeros((300, 300), int), ["a", "b"], axes, keys=np.zeros((300, 300), np.uint64)
    )
    rows = [[0, 0, 0, 1], [-1, 0, 0, 1]]
    for method in (CellKey(ptable=LIVELY), CellKey(ptable=PTable("zeros", rows, 1))):
        published = method.with_zeros(ZERO_SECRET, dataset).apply(table).published
        times = [(published == k).sum() for k in (0, 1)]
        assert stats.chisquare(times, [67_500, 22_500]).pvalue > FALSE_ALARM
        # Neighbours are not related: 2 by 2 blocks have the chances of four throws.
        blocks = published.reshape(150, 2, 150, 2).sum(axis=(1, 3)).ravel()
        expected = stats.binom.pmf(range(5), 4, 0.25) * blocks.size
        assert stats.chisquare(np.bincount(blocks, minlength=5), expected).pvalue > FALSE_ALARM


@pytest.mark.parametrize("blocked", [(), (1, 2)])
@pytest.mark.parametrize("bits", [4, 6, 8, 10])
def test_a_table_of_few_keys_made_from_a_matrix_without_bias_has_none(
    bits: int, blocked: tuple[int, ...]
) -> None:
    """Or next to none: a count that has only two ways, one in three, cannot share 256 keys so."""
    matrix = design(largest_change=4, variance=2.0, blocked=blocked)
    table = PTable.of_matrix("own", matrix, bits)
    assert table.unbiased == (not blocked)
    assert np.abs(table.bias).max() <= 1 / 2**bits
    true = np.arange(len(table.steps))
    rows, exact = table.channel.transitions(true), matrix.transitions(true)
    entries = zip(exact.origin, exact.published, exact.probability, strict=True)
    wanted = {(o, p): q for o, p, q in entries}
    for o, p, q in zip(rows.origin, rows.published, rows.probability, strict=True):
        assert abs(q - wanted[o, p]) <= 3 / 2**bits


def test_right_on_average_is_said_only_where_it_is_so() -> None:
    table = of([5, 6], np.random.default_rng(0))
    designed = CellKey(ptable=PerturbationDesign(2, 1.0)).apply(table)
    told = " ".join(designed.notes)
    assert "right on average" in told
    assert "more than 2" in told
    assert "right on average" not in " ".join(CellKey().apply(table).notes)


# Lookup tables


def test_the_key_of_the_ons_layout_is_the_sum_of_record_keys_modulo_256() -> None:
    rng = np.random.default_rng(3)
    records = rng.integers(0, 2**64, 900, dtype=np.uint64)
    cell = rng.integers(0, 30, 900)
    counts = np.bincount(cell, minlength=30)
    sums = np.array([records[cell == c].sum() for c in range(30)], dtype=np.uint64)
    ptable = ons_table()
    release = CellKey(ptable=ptable).apply(Table.from_counts(counts, keys=sums))
    for c in range(30):
        key = sum(int(k) % 256 for k in records[cell == c]) % 256
        assert release.published[c] == counts[c] + ptable.steps[counts[c], key]


def test_a_ptable_is_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    rows = [(v, k, [0, -1, 1, 0][k] if v else 0) for v in range(4) for k in range(4)]
    lines = [f"{k},{v},{s},x" for v, k, s in reversed(rows)]
    path.write_text("\n".join(["ckey,pcv,pvalue,more", *lines]) + "\n")
    table = read_ptable(path)
    assert table.steps.tolist() == [[0] * 4, *([[0, -1, 1, 0]] * 3)]
    assert (table.cycle, table.unbiased, table.name) == (1, True, "p.csv")
    method = CellKey(ptable=str(path))
    assert method.to_mapping()["ptable"] == str(path)
    assert method.apply(of([3, 8], np.random.default_rng(0))).channel is not None


def test_a_missing_column_and_a_missing_file_are_named(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("pcv,ckey\n1,0\n")
    with pytest.raises(InputError, match="no column 'pvalue'"):
        read_ptable(tmp_path / "p.csv")
    with pytest.raises(InputError, match="cannot be read"):
        CellKey(ptable=str(tmp_path / "none.csv"))


def test_rounding_as_a_ptable_is_biased_and_still_bounded() -> None:
    """Below 10 nothing is shown, everything else goes to the nearest 5: no chance at all."""
    values = np.arange(751)
    rounded = np.where(values < 10, 0, (values + 2) // 5 * 5)
    table = PTable("10-5", np.repeat((rounded - values)[:, None], 256, axis=1), 250)
    assert not table.unbiased
    release = CellKey(ptable=table).apply(of([0, 9, 10, 13, 1003], np.random.default_rng(0)))
    assert release.published.tolist() == [0, 0, 10, 15, 1005]
    assert release.least.tolist() == [0, 0, 10, 13, 1003]
    assert release.most.tolist() == [9, 9, 12, 17, 1007]


@given(rows=st.integers(2, 6), bits=st.integers(0, 3), seed=st.integers(0, 10_000))
@quick(20)
def test_a_step_channel_says_what_enumeration_says(rows: int, bits: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = rng.integers(-2, 4, (rows, 1 << bits))
    steps = np.maximum(steps, -np.arange(rows)[:, None])
    cycle = int(rng.integers(1, rows))
    table = PTable("any", steps, cycle)
    channel = table.channel
    reach: dict[int, list[int]] = {}
    for n in range(60):
        row = n if n < rows else next(r for r in range(rows - cycle, rows) if (n - r) % cycle == 0)
        got = channel.transitions(np.array([n]))
        chances = dict(zip(got.published.tolist(), got.probability.tolist(), strict=True))
        want = {
            int(p): k / (1 << bits)
            for p, k in zip(*np.unique(n + steps[row], return_counts=True), strict=True)
        }
        assert chances == want
        for p in want:
            reach.setdefault(p, []).append(n)
        assert channel.stay(n, n) == want.get(n, 0.0)
    low, high = channel.support(np.arange(50))
    for p in range(50):
        expected = (min(reach[p]), max(reach[p])) if p in reach else (p + 1, p - 1)
        assert (low[p], high[p]) == expected
    kept = zeros_stay(channel)
    assert isinstance(kept, LookupChannel)
    assert kept.transitions(np.array([0])).published.tolist() == [0]
    for n in range(1, 20):
        old, new = (c.transitions(np.array([n])) for c in (channel, kept))
        assert old.published.tolist() == new.published.tolist()


# Zeros


def test_without_a_secret_empty_cells_stay_and_the_notes_say_so() -> None:
    rng = np.random.default_rng(0)
    release = CellKey(ptable=LIVELY, totals="own").apply(of(np.zeros(400, int), rng))
    assert not release.published.any()
    assert any("no keys for them" in note for note in release.notes)
    assert release.channel.transitions(np.array([0])).published.tolist() == [0]
    assert release.most.max() == 1


def test_another_secret_or_dataset_perturbs_empty_cells_otherwise() -> None:
    codes = [str(i) for i in range(400)]

    def shown(secret: bytes, name: str) -> bytes:
        dataset = described(name, {"a": codes})
        table = Table.from_counts(np.zeros(400, int), ["a"], [codes], keys=np.zeros(400, np.uint64))
        method = CellKey(ptable=LIVELY).with_zeros(secret, dataset)
        return method.apply(table).published.tobytes()

    assert len({shown(s, n) for s in (ZERO_SECRET, b"another" * 4) for n in ("a", "b")}) == 4


def test_empty_cells_of_another_dataset_are_refused(tmp_path: Path) -> None:
    dataset = described("one", {"a": "x"})
    table = Table(
        axes=(TableAxis.plain("a", ["x"]),),
        values=np.zeros(1, np.int64),
        keys=np.zeros(1, np.uint64),
        provenance={"query": {"dataset": "two", "by": ["a"]}},
    )
    with pytest.raises(InputError, match="of the dataset 'two'"):
        CellKey(ptable=LIVELY).with_zeros(ZERO_SECRET, dataset).apply(table)


# Secrets and words


def test_neither_secret_nor_key_is_ever_shown() -> None:
    dataset = described("d", {"v1": "12"})
    method = CellKey(ptable=LIVELY).with_zeros(ZERO_SECRET, dataset)
    table = of([3, 0], np.random.default_rng(0))
    release = method.apply(table)
    shown = " ".join(
        map(str, [method, method.zero_keys, method.to_mapping(), release, release.method])
    )
    shown += " ".join([repr(method), repr(method.zero_keys), repr(release), *release.notes])
    assert "secret for" not in shown
    assert ZERO_SECRET.hex() not in shown
    assert str(int(table.keys[0])) not in shown
    assert "key_version" in release.method
    assert "record keys version 1" in release.notes[0]


def test_every_word_of_a_policy_reaches_the_method() -> None:
    words = {"layout": "abs", "bits": 5, "version": "7", "key_version": 4}
    method = spec_from_words(CellKey, words, "The method")
    assert method.lookup == Lookup("abs", 5)
    assert method.versions == Versions("7", 4)
    assert method.to_mapping().items() >= words.items()
    adding = spec_from_words(CellKey, {"additive": True, "max_shift": 2, "steps": 9}, "The method")
    assert adding.totals == Additive(2, 9)
    assert adding.to_mapping().items() >= {"additive": True, "max_shift": 2, "steps": 9}.items()
    with pytest.raises(InputError, match="totals"):
        CellKey(totals="none")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"ptable": "shlomo"}, "did you mean 'shlomo-2015'"),
        ({"ptable": 7}, "'ptable' must be a text, a PTable or a MatrixChannel"),
        ({"ptable": "matrix"}, "rows of equal length"),
        ({"ptable": "matrix", "matrix": ((1.0,), (0.5, 0.5))}, "rows of equal length"),
        ({"ptable": PTable("p", [[0], [0]], 1), "layout": "inverse-cdf"}, "columns by key"),
        ({"zero_keys": "secret"}, "no parameter 'zero_keys'"),
        ({"ptable": "designed", "variance": 99.0}, "largest variance"),
    ],
)
def test_a_wrong_parameter_is_one_clear_sentence(words: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        spec_from_words(CellKey, words, "The method")


def test_a_table_without_keys_needs_a_generator_and_one_of_sums_is_refused() -> None:
    with pytest.raises(InputError, match="no record keys"):
        CellKey().apply(Table.from_counts([1, 2]))
    sums = Table(axes=(TableAxis.plain("a", ["x"]),), values=np.ones(1, np.int64), kind="magnitude")
    with pytest.raises(InputError, match="whole counts"):
        CellKey().apply(sums, np.random.default_rng(0))
    with pytest.raises(InputError, match="at least 16 bytes"):
        ZeroKeys(b"short", Dataset("d", "d", ()))


# Totals and bounds


def summed(inner: Any, axes: tuple[TableAxis, ...], rng: np.random.Generator) -> Table:
    """A table with totals and keys, as an engine would count it."""
    counts = np.asarray(inner)
    keys = np.where(counts > 0, rng.integers(0, 2**64, counts.shape, dtype=np.uint64), 0)
    for position, axis in enumerate(axes):
        if axis.codes[-1] == "_T":
            counts, keys = (
                np.concatenate([a, a.sum(axis=position, keepdims=True, dtype=a.dtype)], position)
                for a in (counts, keys)
            )
    return Table(axes=axes, values=counts.astype(np.int64), keys=keys)


@given(
    shape=st.lists(st.integers(2, 4), min_size=1, max_size=3),
    bare=st.booleans(),
    largest=st.integers(1, 9),
    seed=st.integers(0, 10_000),
    which=st.sampled_from(["preset", "designed", "lively"]),
)
@quick(40)
def test_the_quick_guard_decides_as_the_general_one(
    shape: list[int], bare: bool, largest: int, seed: int, which: str
) -> None:
    rng = np.random.default_rng(seed)
    axes = tuple(with_total(f"v{i}", n) for i, n in enumerate(shape))
    if bare:
        axes = (*axes[:-1], TableAxis.plain("last", [str(i) for i in range(shape[-1])]))
    table = summed(rng.integers(0, largest + 1, shape), axes, rng)
    method = methods()[which]
    channel = zeros_stay(method.apply(table).channel)  # type: ignore[arg-type]
    perturbed = method.perturbed(table)
    assert line_totals(axes) is not None
    keyed = seed % 2 == 0
    own = safe_totals(axes, perturbed, channel, keyed=keyed)
    guard = TotalsGuard(axes)
    guard.__dict__["_lines"] = None  # the general way, by relations written down
    general = guard.publish(perturbed, channel, keyed=keyed)
    for mine, theirs in zip(
        (own.values, own.low, own.high), (general.values, general.low, general.high), strict=True
    ):
        assert mine.tolist() == theirs.tolist()
    assert ((own.low <= table.values) & (table.values <= own.high)).all()


def test_the_compiled_loop_over_lines_does_what_plain_python_does() -> None:
    rng = np.random.default_rng(6)
    outcomes = set()
    for _ in range(60):
        axes = tuple(with_total(name, n) for name, n in (("a", 2), ("b", 3), ("c", 2)))
        true = summed(rng.integers(0, 5, (2, 3, 2)), axes, rng).values.ravel()
        low, high = (true - rng.integers(0, 3, true.size), true + rng.integers(0, 3, true.size))
        watched = inner_cells(axes).ravel() & (low < high) & (rng.random() < 0.5)
        places = np.where(rng.random(3) < 0.3, -1, [2, 3, 2])
        keyed = bool(rng.random() < 0.5)
        found = []
        for loop in (narrow_lines, narrow_lines.py_func):  # type: ignore[attr-defined]
            ends = low.copy(), high.copy()
            shown = (true + 1) // 2
            pinned = loop(*ends, watched, np.array([3, 4, 3]), places, shown, keyed, 1000)
            found.append((bool(pinned), ends[0].tolist(), ends[1].tolist()))
        assert found[0] == found[1]
        assert (ends[0] <= true).all()
        assert (true <= ends[1]).all()
        outcomes.add(bool(pinned))
    assert outcomes == {True, False}


@given(seed=st.integers(0, 10_000), largest=st.integers(1, 6))
@quick(25)
def test_guarded_totals_never_pin_an_inner_cell_even_beside_known_zeros(
    seed: int, largest: int
) -> None:
    rng = np.random.default_rng(seed)
    axes = (with_total("a", 3), with_total("b", 3))
    impossible = rng.random((3, 3)) < 0.3
    table = summed(np.where(impossible, 0, rng.integers(0, largest + 1, (3, 3))), axes, rng)
    whole = np.pad(impossible, (0, 1))
    whole[:3, 3], whole[3, :3] = impossible.all(axis=1), impossible.all(axis=0)
    whole[3, 3] = impossible.all()
    table = Table(axes=axes, values=table.values, keys=table.keys, structural=whole)
    method = CellKey(ptable=PerturbationDesign(2, 1.0))
    release = method.apply(table)
    assert ((release.least <= table.values) & (table.values <= release.most)).all()
    relations = Structure.of_tables([axes]).relations
    tight = propagate(relations, release.least.ravel(), release.most.ravel())
    assert tight.consistent
    hidden = (inner_cells(axes) & (release.least < release.most)).ravel()
    assert not (hidden & (tight.low == tight.high)).any()


def test_own_totals_can_tell_what_guarded_ones_do_not() -> None:
    """The price of keeping every total: somewhere one of them pins an inner cell."""
    axes = (with_total("a", 2),)
    relations = Structure.of_tables([axes]).relations
    pinned = {"own": 0, "guarded": 0}
    for seed in range(400):
        rng = np.random.default_rng(seed)
        table = summed(rng.integers(1, 4, 2), axes, rng)
        for totals in ("own", "guarded"):
            method = CellKey(ptable=PerturbationDesign(2, 1.0), totals=totals)
            release = method.apply(table)
            tight = propagate(relations, release.least, release.most)
            open_cells = release.least[:2] < release.most[:2]
            pinned[totals] += bool((open_cells & (tight.low[:2] == tight.high[:2])).any())
    assert pinned["own"] > 0
    assert pinned["guarded"] == 0


@pytest.mark.parametrize("name", list(methods()))
def test_bounds_hold_for_every_count(name: str) -> None:
    rng = np.random.default_rng(8)
    values = np.repeat([*range(40), *range(490, 510), *range(745, 760), 10**6], 200)
    release = methods()[name].apply(of(values, rng))
    assert ((release.least <= values) & (values <= release.most)).all()
    assert release.published.min() >= 0


@pytest.mark.parametrize(
    ("sets", "expected"),
    [
        ([{0}, {1}, {0, 1}], 2),
        ([{0, 1}, {0}, {1}], 0),
        ([{0}, {1}], -1),
        ([{0}, {1}, {2}, {0, 1}], None),  # a subtotal
        ([{0}, {0, 1}], None),  # a total with a part missing
        ([{0}, {1}, {0, 1}, {0, 1}], None),  # twice
        ([{0, 1}, {1, 2}], None),  # overlapping
        ([{0}], -1),
    ],
)
def test_only_plain_axes_go_the_quick_way(sets: list[set[int]], expected: int | None) -> None:
    axis = TableAxis(
        "a", "a", tuple(Category(str(i), "", tuple(sorted(s))) for i, s in enumerate(sets))
    )
    assert line_totals([axis]) == (None if expected is None else [expected])


def test_tables_with_subtotals_go_the_general_way_with_the_same_promise() -> None:
    sets = [{0}, {1}, {2}, {3}, {0, 1}, {2, 3}, {0, 1, 2, 3}]
    axis = TableAxis("a", "a", tuple(Category(str(s), "", tuple(sorted(s))) for s in sets))
    relations = Structure.of_tables([(axis,)]).relations
    for seed in range(100):
        rng = np.random.default_rng(seed)
        inner, keys = rng.integers(0, 4, 4), rng.integers(0, 2**63, 4, dtype=np.uint64)
        keys = np.where(inner > 0, keys, 0)
        table = Table(
            axes=(axis,),
            values=np.array([inner[list(s)].sum() for s in sets], dtype=np.int64),
            keys=np.array([keys[list(s)].sum() for s in sets], dtype=np.uint64),
        )
        release = CellKey(ptable=PerturbationDesign(2, 1.0)).apply(table)
        assert ((release.least <= table.values) & (table.values <= release.most)).all()
        tight = propagate(relations, release.least, release.most)
        hidden = release.least[:4] < release.most[:4]
        assert not (hidden & (tight.low[:4] == tight.high[:4])).any()
