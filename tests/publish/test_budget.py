"""The ledger of a budget: exact, durable, one charge for one measurement, whatever happens in between."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.examples import examples

from lustrum.model import DatasetError, InputError
from lustrum.protect.privacy import BudgetSpentError
from lustrum.publish.budget import BudgetLedger, exact_rho

TENTH = Fraction(1, 10)


def with_limit(folder: Path, rho: Fraction = Fraction(1)) -> BudgetLedger:
    ledger = BudgetLedger(folder, "merrow")
    ledger.set_limit(rho, "decided by the board")
    return ledger


def test_ten_tenths_are_one_and_an_eleventh_is_refused_with_what_is_left(tmp_path: Path) -> None:
    ledger = with_limit(tmp_path)
    for _ in range(10):
        with ledger.charge(TENTH, "census") as charge:
            charge.done("digest of a file")
    assert (ledger.spent, ledger.left) == (1, 0)
    with (
        pytest.raises(BudgetSpentError, match=r"costs rho 0\.1, and 0 of 1 is left for 'merrow'"),
        ledger.charge(TENTH, "census"),
    ):
        pytest.fail("noise may not be drawn")
    assert len(ledger.entries()) == 21


def test_another_dataset_of_the_same_people_spends_from_the_same_ledger(tmp_path: Path) -> None:
    with with_limit(tmp_path).charge(9 * TENTH, "census") as charge:
        charge.done("digest")
    with (
        pytest.raises(BudgetSpentError, match=r"0\.1 of 1 is left"),
        BudgetLedger(tmp_path, "merrow").charge(2 * TENTH, "census-again"),
    ):
        pytest.fail("noise may not be drawn")
    assert BudgetLedger(tmp_path, "others").left == 0


@pytest.mark.parametrize("step", range(12))
@pytest.mark.parametrize("call", ["write", "fsync", "ftruncate"])
def test_a_crash_at_any_step_never_leaves_a_measurement_without_its_charge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int, call: str
) -> None:
    """Each call of the system fails in turn, a write after half of its bytes, as if the machine stopped."""
    ledger = with_limit(tmp_path)
    left, real, measured = [step], getattr(os, call), []

    def crashing(handle: int, *arguments: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            if call == "write":
                data = bytes(arguments[0])  # type: ignore[call-overload]
                os.pwrite(handle, data[: len(data) // 2], os.lseek(handle, 0, os.SEEK_CUR))
            raise KeyboardInterrupt
        return real(handle, *arguments)

    monkeypatch.setattr(os, call, crashing)
    for _ in range(3):
        try:
            with ledger.charge(TENTH, "census") as charge:
                measured.append("noise")
                charge.done("digest")
        except KeyboardInterrupt:
            break
    monkeypatch.undo()
    again = BudgetLedger(tmp_path, "merrow")
    charges = [entry for entry in again.entries() if entry.what == "spent"]
    assert len(charges) >= len(measured)
    assert again.spent == TENTH * len(charges)
    with again.charge(TENTH, "census") as charge:
        charge.done("digest")
    assert again.spent == TENTH * (len(charges) + 1)


def test_a_line_that_is_written_in_pieces_is_whole_and_a_full_disk_draws_no_noise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, real, written, room = with_limit(tmp_path), os.write, list[int](), [10_000]

    def short(handle: int, data: bytes) -> int:
        if sum(written) > room[0]:
            raise OSError(28, "No space left on device")
        written.append(real(handle, data[:50]))
        return written[-1]

    monkeypatch.setattr(os, "write", short)
    with ledger.charge(TENTH, "census") as charge:
        charge.done("digest")
    assert len(written) > 6
    room[0] = sum(written) + 60
    with pytest.raises(DatasetError, match="No space"), ledger.charge(TENTH, "census"):
        pytest.fail("noise may not be drawn")
    monkeypatch.undo()
    assert (ledger.spent, len(ledger.entries())) == (TENTH, 3)


@pytest.mark.parametrize("population", ["../../outside", "", "Merrow", "a/b", "a b"])
def test_a_population_is_one_word(tmp_path: Path, population: str) -> None:
    with pytest.raises(InputError, match="A population is one word"):
        BudgetLedger(tmp_path, population)


@pytest.mark.parametrize(
    "text", ["much", "1e400", "1e-400", "-1", "1/0", "nan", "1" * 40, " 1", "2,56", ""]
)
def test_a_cost_is_a_plain_number(text: str) -> None:
    with pytest.raises(InputError, match="A cost is a number such as"):
        exact_rho(text)


def test_a_second_process_is_refused_while_one_measures(tmp_path: Path) -> None:
    other = (
        "from fractions import Fraction; from pathlib import Path; import sys\n"
        "from lustrum.publish.budget import BudgetLedger\n"
        "with BudgetLedger(Path(sys.argv[1]), 'merrow').charge(Fraction(1, 10), 'census'): print('drawn')"
    )
    command = [sys.executable, "-c", other, str(tmp_path)]
    ledger = with_limit(tmp_path)
    with ledger.charge(TENTH, "census"):
        refused = subprocess.run(command, capture_output=True, text=True)
    assert "Another process spends" in refused.stderr
    assert "drawn" not in refused.stdout
    assert ledger.spent == TENTH
    assert subprocess.run(command, capture_output=True, text=True).stdout == "drawn\n"


def test_an_older_ledger_is_refused_until_what_was_spent_since_is_stated(tmp_path: Path) -> None:
    ledger = with_limit(tmp_path)
    backup = ledger.path.read_bytes()
    with ledger.charge(TENTH, "census") as charge:
        charge.done("digest")
    head = ledger.head
    with ledger.charge(TENTH, "census", heads=[head]) as charge:
        charge.done("digest")
    ledger.path.write_bytes(backup)
    with (
        pytest.raises(DatasetError, match="older than a release"),
        ledger.charge(TENTH, "census", heads=[head]),
    ):
        pytest.fail("noise may not be drawn")
    ledger.state_spent(2 * TENTH, "two releases since the backup", covers=[head])
    with ledger.charge(TENTH, "census", heads=[head]) as charge:
        charge.done("digest")
    assert ledger.spent == 3 * TENTH


@given(st.data())
@settings(max_examples=examples(30, 300), deadline=None)
def test_a_changed_ledger_is_refused(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """One byte changed, or a line taken out, before the last line: nothing is spent from it any more."""
    ledger = with_limit(tmp_path_factory.mktemp("ledger"))
    for _ in range(3):
        with ledger.charge(TENTH, "census") as charge:
            charge.done("digest")
    lines = ledger.path.read_bytes().splitlines(keepends=True)
    number = data.draw(st.integers(0, len(lines) - 2))
    if data.draw(st.booleans()):
        del lines[number]
    else:
        place = data.draw(st.integers(0, len(lines[number]) - 2))
        changed = bytearray(lines[number])
        changed[place] ^= 1 << data.draw(st.integers(0, 6))
        lines[number] = bytes(changed)
    ledger.path.write_bytes(b"".join(lines))
    with (
        pytest.raises(DatasetError, match=r"line \d+: the ledger was changed"),
        ledger.charge(TENTH, "x"),
    ):
        pytest.fail("noise may not be drawn")


@pytest.mark.parametrize("rho", [Fraction(0), Fraction(-1), TENTH])
def test_a_limit_lies_above_what_was_spent(tmp_path: Path, rho: Fraction) -> None:
    ledger = with_limit(tmp_path)
    with ledger.charge(2 * TENTH, "census") as charge:
        charge.done("digest")
    with pytest.raises(InputError, match="limit"):
        ledger.set_limit(rho, "less")
    assert oct(ledger.path.stat().st_mode)[-3:] == "600"
