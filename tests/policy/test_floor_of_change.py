"""A policy whose steps would publish true counts is refused by its parameters, wherever it is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from answer.conftest import SECRET, answered, people, town
from lustrum.cli import app
from lustrum.model import PolicyError, TableQuery, Verdict
from lustrum.model.query import Axis
from lustrum.policy import Policy
from lustrum.policy.explain import explain
from lustrum.policy.read import line_of, parse_policy
from lustrum.tabulate import FrameSource, Store, ingest

REASON = "The counts of this register are public by law."
HEAD = 'dataset = "town"\n[rules]\n[risk]\nlimit = 0.3\n'
NONE = '[protect]\nmethod = "none"\nend = true\n'

# Every one of them would show at least half of ones and twos as they are.
WEAK: list[tuple[str, str]] = [
    ('method = "record-swapping"\ngeography = "area"\nrate = 0.005\n', "0.5 %"),
    ('method = "record-swapping"\ngeography = "area"\nrate = 0.1\n', "10 %"),
    ('method = "record-swapping"\ngeography = "area"\nrate = 0.9\ncontrol = ["sex"]\n', "0 %"),
    ('method = "record-swapping"\ngeography = "area"\nrate = 0.9\nsimilar = [["sex"]]\n', "0 %"),
    ('method = "post-randomisation"\nvariable = "sex"\nstay = 0.99\n', "1.4 %"),
    ('method = "post-randomisation"\nvariable = "sex"\nstay = 0.1\ninvariant = true\n', "0 %"),
    ('method = "simple-sampling"\nfraction = 0.99\n', "1.4 %"),
    ('method = "poisson-sampling"\nfraction = 0.62\n', "49.7 %"),
    ('method = "stratified-sampling"\nby = "area"\nfraction = 0.1\n', "0 %"),
    ('method = "multiplicative-noise"\nmeasure = "income"\n', "0 %"),
    ('method = "markov-perturbation"\ntheta = 0.0001\n', "0 %"),
    ('method = "additive-noise"\nsd = 0.0001\nrelative = true\n', "0 %"),
]


@pytest.mark.parametrize(("step", "share"), WEAK)
def test_a_policy_that_changes_too_few_small_counts_is_refused_with_number_and_line(
    step: str, share: str, tmp_path: Path
) -> None:
    text = f"{HEAD}[[before]]\n{step}{NONE}"
    with pytest.raises(PolicyError) as caught:
        parse_policy(text.encode(), "it")
    assert str(caught.value).startswith(
        f"it: line 5: the steps are certain to change only {share} of ones and twos ("
    )
    assert "50 % must change" in str(caught.value)
    path = tmp_path / "it.toml"
    path.write_text(text)
    run = CliRunner().invoke(app, ["policy", "check", str(path)])
    assert run.exit_code != 0


NOTHING = [
    'method = "record-swapping"\ngeography = "area"\nrate = 0.0\n',
    'method = "post-randomisation"\nvariable = "sex"\nstay = 1.0\n',
    'method = "simple-sampling"\nfraction = 1.0\n',
    'method = "poisson-sampling"\nfraction = 1.0\n',
    'method = "record-swapping"\ngeography = "area"\nrate = 0.6\nhousehold = false\n',
    'method = "record-swapping"\ngeography = "area"\nrate = 0.6\nhousehold = 0\n',
    'method = "record-swapping"\ngeography = "area"\nrate = 0.6\nhousehold = []\n',
]


@pytest.mark.parametrize("step", NOTHING)
def test_a_step_that_does_nothing_is_refused_also_with_a_reason(step: str) -> None:
    for reason in ("", f'true_counts_because = "{REASON}"\n'):
        with pytest.raises(PolicyError):
            parse_policy(f"{reason}{HEAD}[[before]]\n{step}{NONE}".encode(), "it")


@pytest.mark.parametrize(
    "protect",
    [
        {"method": "cell-key", "ptable": "designed", "variance": 0.1, "largest_change": 3},
        {"method": "cell-key", "ptable": "designed", "variance": 0.5, "stay": 0.8},
        {"method": "additive-noise", "relative": True, "sd": 0.1},
    ],
)
def test_a_method_on_tables_is_measured_too(protect: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="certain to change only"):
        Policy.model_validate({"protect": protect})


def test_swapping_needs_a_method_on_the_table_beside_it() -> None:
    swapping = {"method": "record-swapping", "geography": "area", "rate": 0.1}
    policy = Policy.model_validate({"before": [swapping], "protect": {"method": "random-rounding"}})
    assert policy.changed == 1.0
    assert any("At least 100% of ones and twos change." in said for said in explain(policy))


def test_shares_of_several_steps_are_not_added_up() -> None:
    swapping = {"method": "record-swapping", "geography": "area", "rate": 0.3}
    with pytest.raises(ValidationError, match="only 30 % of ones and twos"):
        Policy.model_validate({"before": [swapping] * 3, "protect": {"method": "none"}})


# Each of them changes every 1 and every 2, or nearly, and a reader who knows the policy turns it back.
TURNED_BACK: list[tuple[str, str]] = [
    ('[[before]]\nmethod = "post-randomisation"\nvariable = "sex"\nstay = 0.0\n', "0"),
    ('[[before]]\nmethod = "post-randomisation"\nvariable = "sex"\nstay = 0.05\n', "0.28"),
    (
        '[[before]]\nmethod = "post-randomisation"\nvariable = "sex"\n'
        "matrix = [[0.0, 1.0], [1.0, 0.0]]\n",
        "0",
    ),
    (
        '[[before]]\nmethod = "stochastic-perturbation"\nresidue_base = 1\n'
        "matrix = [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]]\n",
        "0",
    ),
    ('[[before]]\nmethod = "record-swapping"\ngeography = "area"\nrate = 0.5\n', "0.45"),
]


@pytest.mark.parametrize(("step", "left"), TURNED_BACK)
def test_a_change_that_a_reader_can_turn_back_is_refused_with_number_and_line(
    step: str, left: str, tmp_path: Path
) -> None:
    text = f"{HEAD}{step}{NONE}"
    with pytest.raises(PolicyError) as caught:
        parse_policy(text.encode(), "it")
    said = f"it: line 5: the steps are certain to leave only {left} bits about a true 1 or 2 to a reader"
    assert str(caught.value).startswith(said)
    assert "0.5 must be left" in str(caught.value)
    path = tmp_path / "it.toml"
    path.write_text(text)
    run = CliRunner().invoke(app, ["policy", "check", str(path)])
    assert run.exit_code != 0


def test_a_population_with_a_base_of_2_shows_twos_as_they_are_and_is_refused() -> None:
    population = {"method": "protected-population", "base": 2}
    with pytest.raises(ValidationError, match="leave only 0 bits"):
        Policy.model_validate({"before": [population], "protect": {"method": "none"}})


def test_an_agency_may_ask_for_more_entropy_and_never_for_less() -> None:
    rounding = {"method": "random-rounding"}
    assert Policy.model_validate({"protect": rounding, "min_entropy": 1.7}).entropy > 1.7
    with pytest.raises(ValidationError, match=r"leave only 1\.7 bits"):
        Policy.model_validate({"protect": rounding, "min_entropy": 1.8})
    with pytest.raises(ValidationError, match=r"greater than or equal to 0\.5"):
        Policy.model_validate({"protect": rounding, "min_entropy": 0.4})


def test_an_agency_may_ask_for_more_change_and_never_for_less() -> None:
    Policy.model_validate({"protect": {"method": "cell-key"}})
    with pytest.raises(ValidationError, match="only 50 % of ones and twos"):
        Policy.model_validate({"protect": {"method": "cell-key"}, "min_changed": 0.51})
    with pytest.raises(ValidationError, match=r"greater than or equal to 0\.5"):
        Policy.model_validate({"protect": {"method": "cell-key"}, "min_changed": 0.4})


def test_a_reason_lets_a_policy_pass_and_every_answer_shows_it(tmp_path: Path) -> None:
    weak = {"method": "additive-noise", "relative": True, "sd": 0.3}
    policy = Policy.model_validate({"protect": weak, "true_counts_because": REASON})
    said = f"Small counts may be true counts. The agency's reason: {REASON}"
    assert policy.public_notes[0] == said
    assert f"Every answer says: {said}" in explain(policy)
    store = Store(tmp_path)
    ingest(FrameSource(people(500)), town(), store, secret=SECRET)
    decision = answered(TableQuery("town", (Axis("sex"),)), store.open("town"), policy)
    assert decision.verdict is Verdict.ANSWER
    assert decision.release.notes[0] == said


@pytest.mark.parametrize("reason", ["yes", "because we say", " "])
def test_a_reason_is_a_sentence(reason: str) -> None:
    weak = {"method": "additive-noise", "relative": True, "sd": 0.3}
    with pytest.raises(
        ValidationError, match=r"is a sentence that every answer shows|ones and twos"
    ):
        Policy.model_validate({"protect": weak, "true_counts_because": reason})
    Policy.model_validate({"protect": weak, "true_counts_because": "Nobody lives there now."})


def test_a_reason_that_is_not_needed_is_refused_so_that_it_hides_no_later_change() -> None:
    with pytest.raises(ValidationError, match="is not needed: at least 100 %"):
        Policy.model_validate({"true_counts_because": REASON})


def test_the_line_of_a_key_is_found() -> None:
    text = (
        'a = 1\n[rules]\nb = 2\n[[before]]\nmethod = "x"\n\n[[before]]\n# rate\nrate = 1\n[end]\n'
    )
    assert line_of(text, ("a",)) == 1
    assert line_of(text, ("rules", "b")) == 3
    assert line_of(text, ("before", 0)) == 4
    assert line_of(text, ("before", 0, "method")) == 5
    assert line_of(text, ("before", 0, "rate")) == 4
    assert line_of(text, ("before", 1, "rate")) == 9
    assert line_of(text, ("protect",)) is None
