"""All tables that readers of a small town hold: attacks find small counts, and none under a ledger."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attacks.asker import Answer, Asker
from attacks.held_tables import Claims, HeldTables, inhabitants, questions, town
from attacks.ledger_asker import Attacked, attacked_town

PEOPLE, KEY = 2000, 2


def attacked(root: Path, preset: str, limit: float | None) -> Attacked:
    asked = [one for one in questions(town())["trackers"] if "state" in one["by"]]
    words = None if limit is None else {"limit": limit}
    return attacked_town(root, preset, PEOPLE, KEY, asked, words, rules=False)


def test_trackers_by_other_words_find_small_counts_without_a_ledger_alone(tmp_path: Path) -> None:
    free = attacked(tmp_path / "free", "keyed-rounding", None)
    assert free.claims.certain > 0
    assert free.claims.wrong == free.claims.two_numbers == 0
    held = attacked(tmp_path / "held", "keyed-rounding", 0.1)
    assert held.claims.certain == 0
    assert 0 < held.refused["ledger"] < free.asked
    # Where the limit lets all of them pass, no more was found than what they were said to cost.
    loose = attacked(tmp_path / "loose", "keyed-rounding", 10.0)
    assert not loose.refused
    assert free.claims.certain <= 3 * loose.charged


def test_a_cell_key_shows_one_number_of_one_population(tmp_path: Path) -> None:
    found = attacked(tmp_path, "cell-key", 0.1)
    assert found.claims == Claims(narrow=found.claims.narrow)
    assert found.asked > sum(found.refused.values())


class Fresh(Asker):
    """Draws noise anew for each question."""

    def __init__(self, held: HeldTables, deviation: float) -> None:
        self.held, self.deviation, self.rng = held, deviation, np.random.default_rng(1)

    def ask(self, asked: dict[str, object]) -> Answer:
        names = [str(name) for name in asked["by"]]  # type: ignore[attr-defined]
        variables = [self.held.dataset.variable(name) for name in names]
        counts = np.zeros([len(v.codes) for v in variables])
        order = [v.name for v in self.held.dataset.variables]
        np.add.at(counts, tuple(self.held.atoms[order.index(n)] for n in names), self.held.counts)
        shown = counts + self.rng.normal(0, self.deviation, counts.shape)
        codes = tuple(tuple(v.codes) for v in variables)
        return Answer(tuple(names), codes, shown, 0 * shown, shown + np.inf, {})


@pytest.mark.parametrize(("deviation", "named"), [(0.05, True), (3.0, False)])
def test_averages_name_small_counts_where_the_noise_is_weak(deviation: float, named: bool) -> None:
    held = HeldTables(town(), np.zeros(0), deviation**2)
    people = inhabitants(PEOPLE, KEY).to_pydict()
    codes = [
        np.array([v.codes.index(code) for code in people[v.name]]) for v in held.dataset.variables
    ]
    held.counts = (
        (held.atoms[:, :, None] == np.array(codes)[:, None, :])
        .all(axis=0)
        .sum(axis=1)
        .astype(float)
    )
    assert held.counts.sum() == PEOPLE
    held.gather(Fresh(held, deviation), questions(held.dataset)["lattice"])
    right, wrong = held.averaged()
    assert (right > 10) is named
    assert wrong <= right // 20
