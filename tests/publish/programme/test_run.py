"""A programme in one run: safe together, reproducible, whole or not at all, apart from the trace."""

from __future__ import annotations

import csv
import json
import zipfile
from pathlib import Path
from shutil import copytree

import numpy as np
import pyarrow.parquet as pq
import pytest

from lustrum.audit.certificate import verify_file
from lustrum.model import DatasetError, InputError, Release
from lustrum.public.prepared import read_prepared
from lustrum.publish import prepared as folders
from lustrum.publish.programme import read, suppress
from lustrum.readers.judge import judge, open_file
from publish.programme.attack import CUBE, SETS, Cell, attack, cell, contributions, published
from publish.programme.conftest import COUNTS, RULES, TURNOVER, Workplace

P = 0.1


def seen(folder: Path) -> dict[str, list[dict[Cell, float | None]]]:
    tables = folder / "public" / "tables"
    return {
        "turnover": [
            published(tables / "activity-region" / "turnover.csv"),
            published(tables / "activity-size" / "turnover.csv"),
            published(tables / "not-large" / "turnover.csv", {"size": {"s", "m"}}),
        ],
        "domestic": [published(tables / "activity-region" / "domestic.csv")],
        "export": [],
    }


def asked_cells() -> list[tuple[str, Cell]]:
    """All cells that are shown, and those that follow from them by taking one away from another."""
    both = [cell({"act": a, "region": r}) for a in SETS["act"] for r in SETS["region"]]
    sizes = [cell({"act": a, "size": s}) for a in ("A", "B", "_T") for s in SETS["size"]]
    few = [cell({"region": r}, {"size": {"s", "m"}}) for r in SETS["region"]]
    large = [cell({"region": r, "size": "l"}) for r in SETS["region"]]
    shown = [("turnover", c) for c in (*both, *sizes, *few, *large)]
    return shown + [(r, c) for r in ("domestic", "export") for c in both]


def unprotected(folder: Path) -> list[tuple[str, Cell]]:
    """Cells whose largest contributor somebody comes within 10 percent of."""
    ask = attack(
        seen(folder), ("turnover", "domestic", "export"), total=("turnover", ("domestic", "export"))
    )
    found = []
    for response, wanted in asked_cells():
        held = contributions(folder / "records.csv", response, wanted)
        if not held or held[0] == 0:
            continue
        low, high = ask(response, wanted)
        value, rest = sum(held), sum(held[2:])
        needed = P * held[0] - rest
        if len(held) < 3:
            needed = max(needed, P * value)
        if needed > 0 and (high < value + needed - 1e-6 or low > max(value - needed, 0) + 1e-6):
            found.append((response, wanted))
    return found


def test_no_reader_of_all_tables_comes_within_p_percent_of_a_contributor(made: Workplace) -> None:
    assert unprotected(made.folder) == []


def test_the_attack_finds_what_protection_table_by_table_leaves_open(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A programme with a measure in several sets is refused. Without that check, tables in sets of their own are
    # protected one by one, and the attack, which reads all of them together, finds what that leaves open.
    sets = []
    for name, measures, by, where in (
        ("activity-region", '"turnover", "domestic"', _BOTH, ""),
        ("activity-size", '"turnover"', _SIZES, ""),
        ("not-large", '"turnover"', _REGIONS, 'where = {size = ["s", "m"]}'),
    ):
        sets.append(_ALONE.format(name=name, rules=RULES, measures=measures, by=by, where=where))
    with pytest.raises(InputError, match="put their tables into one set"):
        workplace.run("".join(sets), head="certificate = false")
    monkeypatch.setattr(read, "check_sets", lambda sets: None)
    monkeypatch.setattr(read, "check_families", lambda sets, dataset: None)
    workplace.run("".join(sets), head="certificate = false")
    assert unprotected(workplace.folder) != []


_BOTH = (
    '[{variable = "act", levels = ["finest", "section"], total = true}, '
    '{variable = "region", total = true}]'
)
_SIZES = '[{variable = "act", level = "section", total = true}, {variable = "size", total = true}]'
_REGIONS = '[{variable = "region", total = true}]'
_ALONE = """
[[sets]]
name = "{name}"
method = {{method = "suppression", algorithm = "quick"}}
{rules}
[[sets.tables]]
name = "{name}"
by = {by}
{where}
measures = [{measures}]
"""


def test_the_same_records_in_any_order_give_the_same_bytes(
    made: Workplace, workplace: Workplace
) -> None:
    rows = (workplace.folder / "records.csv").read_text().splitlines()
    workplace.folder.joinpath("records.csv").write_text("\n".join([rows[0], *reversed(rows[1:])]))
    workplace.run(TURNOVER)
    first, second = (place.folder / "public" for place in (made, workplace))
    names = sorted(p.relative_to(first) for p in first.rglob("*") if p.is_file())
    assert names == sorted(p.relative_to(second) for p in second.rglob("*") if p.is_file())
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_a_suppressed_value_is_never_0_in_any_file(made: Workplace) -> None:
    folder = read_prepared(made.folder / "public")
    table = next(t for t in folder.tables if t.id == "activity-region.turnover")
    release = folder.release(table)
    hidden = ~release.shown.ravel()
    assert hidden.any()
    words = json.loads(folder.files[table.files["json-stat"]])
    assert [v is None for v in words["value"]] == hidden.tolist()
    column = pq.read_table(made.folder / "public" / table.files["parquet"]).column("value")
    assert column.is_null().to_pylist() == hidden.tolist()
    with zipfile.ZipFile(made.folder / "public" / table.files["xlsx"]) as book:
        assert b"<f>" not in b"".join(book.read(n) for n in book.namelist() if "sheet" in n)


@pytest.mark.parametrize("ending", ["csv", "xlsx", "json", "parquet"])
def test_every_file_has_a_layout_by_which_all_of_them_are_cleared_together(
    made: Workplace, ending: str
) -> None:
    tables = made.folder / "public" / "tables"
    paths = sorted(p for p in tables.glob(f"*/*.{ending}") if ".table." not in p.name)
    assert len(paths) == 4
    opened = [open_file(path) for path in paths]
    assert {one.origin for one in opened} == {"beside the file"}
    report = judge(opened).report
    assert (report.exit, report.questions, report.hidden > 0) == (0, (), True)
    assert all(judge([one]).report.exit == 0 for one in opened)


def test_the_public_folder_tells_neither_parameters_nor_costs(made: Workplace) -> None:
    public = made.folder / "public"
    report = json.loads((public / "report.json").read_text())
    assert report["sets"][0]["method"] == {
        "method": "suppression",
        "rules": ["p-percent", "threshold"],
    }
    said = b"".join(p.read_bytes() for p in sorted(public.rglob("*.json")))
    for word in (b"margin", b'"cost"', b"lower_bound", b'"gap"', b"upper_level", b"minimum"):
        assert word not in said, word
    assert b"&lt;2025&gt;" in (public / "report.html").read_bytes()


def test_the_trace_is_for_the_agency_alone(made: Workplace) -> None:
    trace = made.folder / "trace.json"
    assert trace.stat().st_mode & 0o077 == 0
    words = json.loads(trace.read_text())
    assert words["public_digest"] == read_prepared(made.folder / "public").digest
    cells = [c for s in words["sets"] for y in s["systems"] for c in y["sensitive_cells"]]
    assert cells
    assert all(c["enough"] for c in cells)


def test_a_public_folder_that_cannot_be_put_in_place_leaves_the_earlier_trace(
    workplace: Workplace,
) -> None:
    trace = workplace.folder / "trace.json"
    trace.write_text("of last year")
    (workplace.folder / "public").mkdir()
    (workplace.folder / "public" / "mine.txt").write_text("not of a programme")
    with pytest.raises(DatasetError, match="is not a folder of prepared tables"):
        workplace.run(COUNTS.format(method='"suppression"'))
    assert trace.read_text() == "of last year"
    assert [p.name for p in workplace.folder.glob(".*")] == []


def test_an_interrupt_leaves_the_earlier_folder_as_it_was(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = COUNTS.format(method='"suppression"')
    before = workplace.run(body)

    def interrupted(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(folders, "sync", interrupted)
    with pytest.raises(KeyboardInterrupt):
        workplace.run(body, head="plain_status = true")
    monkeypatch.undo()
    assert read_prepared(workplace.folder / "public").digest == before.digest
    assert not list(workplace.folder.glob(".public*"))


def test_a_folder_with_a_changed_byte_is_refused(workplace: Workplace) -> None:
    workplace.run(COUNTS.format(method='"suppression"'))
    public = workplace.folder / "public"
    file = public / "tables" / "count-size" / "count.csv"
    file.write_bytes(file.read_bytes().replace(b",F", b",D", 1))
    with pytest.raises(DatasetError, match="does not have the digest"):
        read_prepared(public)
    (public / "manifest.json").write_text("{}")
    with pytest.raises(DatasetError, match="not that of prepared tables"):
        read_prepared(public)


def test_a_folder_of_something_else_is_not_replaced(workplace: Workplace) -> None:
    (workplace.folder / "public").mkdir()
    (workplace.folder / "public" / "thesis.txt").write_text("mine")
    with pytest.raises(DatasetError, match="name another place for the folder"):
        workplace.run(COUNTS.format(method='"suppression"'))
    assert (workplace.folder / "public" / "thesis.txt").read_text() == "mine"


def test_certificates_prove_the_ranges_of_the_suppressed_cells(made: Workplace) -> None:
    report = verify_file(made.folder / "public" / "certificates" / "turnover.json")
    assert report.holds, str(report)
    assert report.proven


def test_a_base_that_protects_too_little_is_refused(workplace: Workplace) -> None:
    with pytest.raises(InputError, match="could still work out"):
        workplace.run(
            COUNTS.format(method='{method = "controlled-rounding", base = 2}').replace(
                "minimum = 3", "minimum = 12"
            ),
            data='secret = "secret"',
        )
    assert not (workplace.folder / "public").exists()


def test_adjusted_tables_add_up_and_sensitive_cells_have_moved(workplace: Workplace) -> None:
    body = TURNOVER.replace('"suppression"', '"controlled-adjustment"')
    workplace.run(body, data='secret = "secret"')
    facts = seen(workplace.folder)
    for name, size in (("activity-region", 28), ("activity-size", 12)):
        assert len(facts["turnover"][0 if name == "activity-region" else 1]) == size
    turnover, domestic = facts["turnover"][0], facts["domestic"][0]
    for wanted, value in turnover.items():
        held = contributions(workplace.folder / "records.csv", "turnover", wanted)
        assert domestic[wanted] is not None
        assert value >= (domestic[wanted] or 0)
        if held and P * held[0] - sum(held[2:]) > 0:
            assert abs(value - sum(held)) >= P * held[0] - sum(held[2:]) - 1e-9
    total = cell({})
    assert turnover[total] == facts["turnover"][1][total]


HELD = """
[[sets]]
name = "one"
method = "suppression"

[[sets.rules]]
rule = "p-percent"
p = 10

[[sets.tables]]
name = "activity"
by = [{variable = "act", total = true}, {variable = "region", total = true}]
measures = ["turnover"]
"""


def test_a_waiver_lets_a_dominant_holding_be_shown(workplace: Workplace) -> None:
    workplace.run(HELD)
    before = read_prepared(workplace.folder / "public").tables[0].suppressed
    (workplace.folder / "waivers.txt").write_text(
        "# signed\n" + "\n".join(f"g{i}" for i in range(60))
    )
    workplace.run(HELD, data='waivers = "waivers.txt"')
    assert before > 0
    assert read_prepared(workplace.folder / "public").tables[0].suppressed == 0


SECOND = """
[[sets.tables]]
name = "size"
by = [{variable = "act", total = true}, {variable = "size", total = true}]
measures = ["turnover"]
"""


def secondary(workplace: Workplace, release: Release) -> np.ndarray:
    """A hidden cell that can be published; no letter tells which, so each is tried."""
    for at in np.argwhere(~release.shown):
        cell = ", ".join(
            f'{a.name} = "{a.codes[int(i)]}"' for a, i in zip(release.axes, at, strict=True)
        )
        try:
            workplace.run(f"{HELD}frozen = [{{{cell}}}]\n", head="certificate = false")
        except InputError:
            continue
        return np.asarray(at)
    raise AssertionError("every hidden cell is sensitive")


@pytest.mark.parametrize("more", ["", SECOND])
def test_cells_that_must_be_published_are_and_others_never_are(
    workplace: Workplace, more: str
) -> None:
    workplace.run(HELD + more, head="certificate = false")
    folder = read_prepared(workplace.folder / "public")
    before = folder.release(folder.tables[0])
    extra = secondary(workplace, before)
    free = np.argwhere((before.status == "F") & before.axes[0].inner[:, None])[0]
    names = [
        "{"
        + ", ".join(f'{a.name} = "{a.codes[int(i)]}"' for a, i in zip(before.axes, at, strict=True))
        + "}"
        for at in (extra, free)
    ]
    held = f"frozen = [{names[0]}]\nnever = [{names[1]}]\n"
    workplace.run(HELD + held + more, head="certificate = false")
    folder = read_prepared(workplace.folder / "public")
    after = folder.release(folder.tables[0])
    assert after.shown[tuple(extra)]
    assert after.status[tuple(free)] == "N"
    assert not after.shown[tuple(free)]
    with pytest.raises(InputError, match="which it does not show"):
        workplace.run(HELD + 'never = [{region = "x"}]' + more)
    with pytest.raises(InputError, match="by which the table is not"):
        workplace.run(HELD + 'frozen = [{size = "l"}]' + more)


def test_a_cell_suppressed_last_year_is_suppressed_again_where_little_speaks_against_it(
    made: Workplace, workplace: Workplace
) -> None:
    copytree(made.folder / "public", workplace.folder / "last")
    workplace.run(TURNOVER, head='certificate = false\nprevious = "last"')
    words = json.loads((workplace.folder / "trace.json").read_text())
    changes = words["sets"][0]["systems"][0]["suppression"]["against_last_period"]
    assert changes["kept"] > 0
    assert changes["published_again"] == 0


@pytest.mark.parametrize("attacker", ["singletons", "holdings"])
def test_contributors_as_attackers_are_known_over_all_tables(
    workplace: Workplace, attacker: str
) -> None:
    # Only the smaller tables, since every holding is an attacker of its own.
    method = f'{{method = "suppression", algorithm = "quick", attacker = "{attacker}"}}'
    body = TURNOVER.replace('"suppression"', method).replace('"finest", ', "")
    body = body.replace('["turnover", "domestic"]', '["turnover"]')
    body = body.replace('relations = ["turnover = domestic + export"]', "")
    workplace.run(body, head="certificate = false")
    words = json.loads((workplace.folder / "trace.json").read_text())
    assert words["sets"][0]["systems"][0]["safe"]


def test_records_that_break_a_relation_are_refused(workplace: Workplace) -> None:
    path = workplace.folder / "records.csv"
    head, first, *rest = path.read_text().splitlines()
    parts = first.split(",")
    parts[5] = str(int(parts[5]) + 1)
    path.write_text("\n".join([head, ",".join(parts), *rest]))
    with pytest.raises(
        InputError, match="the records do not obey 'turnover = domestic \\+ export'"
    ):
        workplace.run(TURNOVER)


def test_partial_suppression_states_what_all_tables_together_leave(workplace: Workplace) -> None:
    method = '{method = "suppression", partial = true}'
    workplace.run(TURNOVER.replace('"suppression"', method), head="certificate = false")
    folder = read_prepared(workplace.folder / "public")
    release = folder.release(folder.table("activity-region.turnover"))
    ask = attack(
        seen(workplace.folder),
        ("turnover", "domestic", "export"),
        total=("turnover", ("domestic", "export")),
    )
    places = np.argwhere(~release.shown)
    assert places.size
    assert release.least is not None
    assert release.most is not None
    for place in map(tuple, places):
        codes = {a.name: a.codes[i] for a, i in zip(release.axes, place, strict=True)}
        low, high = ask("turnover", cell(codes))
        assert abs(release.least[place] - low) <= 1
        assert abs(release.most[place] - high) <= 1


def test_the_cube_of_the_attack_is_that_of_the_tables() -> None:
    assert len(CUBE) == 4 * 3 * 3


def test_the_audit_stops_a_run_whose_pattern_was_not_applied(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = suppress._release

    def forgetful(part, words, hidden, status, floor):  # type: ignore[no-untyped-def]
        # Publishes the last suppressed cell of every table.
        kept = hidden.copy()
        places = np.argwhere(hidden)
        if len(places):
            kept[tuple(places[-1])] = False
            status = np.where(kept, status, "F")
        return plain(part, words, kept, status, floor)

    monkeypatch.setattr(suppress, "_release", forgetful)
    with pytest.raises(InputError, match="could still work out"):
        workplace.run(TURNOVER, head="certificate = false")
    assert not (workplace.folder / "public").exists()


def test_what_a_table_does_not_select_is_left_out_and_never_zero(workplace: Workplace) -> None:
    sets = _ALONE.format(
        name="small-by-size",
        rules=RULES,
        measures='"turnover"',
        by=_SIZES,
        where='where = {size = ["s", "m"]}',
    )
    workplace.run(sets, head="certificate = false")
    with (workplace.folder / "public/tables/small-by-size/turnover.csv").open(
        encoding="utf-8"
    ) as file:
        shown = {row["size"] for row in csv.DictReader(file)}
    assert {"s", "m"} < shown
    assert "l" not in shown
