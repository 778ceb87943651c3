"""A file that this project writes is accounted for by the layout beside it, while its bytes are the same."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from examples import examples
from lustrum.formats.csv import Csv
from lustrum.formats.jsonstat import JsonStat
from lustrum.formats.write import plain_letters, write_release
from lustrum.formats.xlsx import Xlsx
from lustrum.model import Category, Release, Table, TableAxis
from lustrum.protect.suppression import Suppression
from lustrum.readers.judge import judge, open_file
from lustrum.readers.layout import CodeRoles
from lustrum.readers.own import own_layout, public_layout, roles_of, sidecar

FORMS = {"csv": Csv, "xlsx": Xlsx, "json-stat": JsonStat}
ROWS = [(0,), (1,), (2,), (3,), (0, 1), (0, 1, 2, 3)]
OVERLAPPING = [*ROWS, (1, 2), (2, 3), (3,)]


def _table(seed: int, rows: list[tuple[int, ...]] = ROWS) -> Table:
    rng = np.random.default_rng(seed)
    inner = rng.integers(0, 40, size=(4, 3))
    columns = [(0,), (1,), (2,), (0, 1, 2)]
    axes = tuple(
        TableAxis(n, n, tuple(Category(f"{n}{i}", f"{n} {i}", m) for i, m in enumerate(sets)))
        for n, sets in (("area", rows), ("job", columns))
    )
    values = np.array([[inner[np.ix_(r, c)].sum() for c in columns] for r in rows])
    return Table(axes=axes, values=values, kind="count", contributors=values)


def _written(release: Release, path: Path, form: str) -> None:
    """A release with its layout beside it, as one of the writers writes it."""
    if form in FORMS:
        data = FORMS[form]().write(release, "Jobs of 2025")
        path.write_bytes(data if isinstance(data, bytes) else data.encode())
    else:
        write_release(release, path)
    layout = public_layout(release, "counts", "plain" if form == "parquet" else form)  # type: ignore[arg-type]
    sidecar(path).write_text(own_layout(layout, path.read_bytes()), encoding="utf-8")


@given(
    seed=st.integers(0, 10**6),
    form=st.sampled_from(["plain", "parquet", *FORMS]),
    rows=st.sampled_from([ROWS, OVERLAPPING]),
    partial=st.booleans(),
)
@settings(max_examples=examples(20, 200), deadline=None)
def test_a_suppressed_table_is_cleared_by_its_own_layout(
    tmp_path_factory: pytest.TempPathFactory,
    seed: int,
    form: str,
    rows: list[tuple[int, ...]],
    partial: bool,
) -> None:
    ending = {"plain": "csv", "json-stat": "json"}.get(form, form)
    path = tmp_path_factory.mktemp("own") / f"t.{ending}"
    partial = partial and form != "json-stat"
    release = plain_letters(Suppression(partial=partial).apply(_table(seed, rows)))
    _written(release, path, form)
    report = judge([open_file(path)]).report
    assert report.files[0].layout == "beside the file"
    assert (report.exit, report.values, report.questions) == (0, (), ())
    assert report.hidden == int((~release.shown).sum())


@pytest.mark.parametrize("rows", [ROWS, OVERLAPPING])
@pytest.mark.parametrize("form", ["plain", *FORMS])
def test_one_shown_value_more_is_found_through_a_layout_of_the_new_bytes(
    tmp_path: Path, form: str, rows: list[tuple[int, ...]]
) -> None:
    table = _table(3, rows)
    release = plain_letters(Suppression().apply(table))
    hidden = ~release.shown
    hidden[tuple(np.argwhere(hidden)[0])] = False
    status = np.where(hidden, "N", "F")
    wrong = Release(
        axes=release.axes,
        numbers=np.where(hidden, 0, table.values),
        status=status,
        method=release.method,
    )
    path = tmp_path / {"plain": "t.csv", "json-stat": "t.json"}.get(form, f"t.{form}")
    _written(wrong, path, form)
    assert judge([open_file(path)]).report.exit == 3


@given(
    sets=st.lists(st.frozensets(st.integers(0, 4), min_size=1), min_size=1, max_size=7),
    weights=st.lists(st.integers(1, 10**6), min_size=5, max_size=5),
)
@settings(max_examples=examples(200, 2000), deadline=None)
def test_the_roles_of_codes_are_all_that_follows_from_their_members(
    sets: list[frozenset[int]], weights: list[int]
) -> None:
    """As many sums hold among the codes as follow from what they stand for, and no other."""
    members = {f"c{i}": held for i, held in enumerate(sets)}
    roles = roles_of(members)
    names = [*members, *sorted(roles.settled() - members.keys())]
    rows = []
    for total, parts in roles.totals.items():
        rows.append([(n == total) - (n in parts) for n in names])
    rows += [[(n == a) - (n == b) for n in names] for a, b in roles.same.items()]
    relations = np.array(rows or [[0] * len(names)])
    # A part that is not listed is what its total has beyond the others; where codes overlap, it is worked out.
    held = np.array([[one in members[c] for one in range(5)] for c in members], dtype=int)
    listed = len(members)
    rank = np.linalg.matrix_rank
    unlisted = rank(relations[:, listed:]) if listed < len(names) else 0
    assert rank(relations) - unlisted == listed - rank(held)
    solved = np.linalg.lstsq(relations[:, listed:], -relations[:, :listed] @ held, rcond=None)[0]
    assert np.allclose(relations[:, listed:] @ solved, -relations[:, :listed] @ held)
    assert roles.settled() >= members.keys()
    assert isinstance(roles, CodeRoles)
