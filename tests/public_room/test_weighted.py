"""Weighted tables of a survey from its bundle: additive, with errors and grades, and nobody's weight."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from fastapi.testclient import TestClient
from rich.console import Console

from lustrum.answer import TableService
from lustrum.answer.archive import read_decision, write_decision
from lustrum.cli.terminal.show import show_decision
from lustrum.client.shapes import Answer
from lustrum.demo import description_path, survey
from lustrum.demo.labour_force import frame
from lustrum.formats import Csv, JsonStat, Xlsx
from lustrum.model import Dataset, InputError, PolicyError, TableQuery
from lustrum.model.release import Release
from lustrum.policy import check_names
from lustrum.policy.read import parse_policy
from lustrum.public.bundle import read_bundle
from lustrum.public.bundle.numbers import BundleNumbers
from lustrum.publish.bundles.make import make_bundle
from lustrum.server import Settings, create_app
from lustrum.survey import Reliability
from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description

POLICY = description_path("survey").with_name("survey-policy.toml")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A data folder with the demo survey and its bundle."""
    root = tmp_path_factory.mktemp("survey")
    bundled(survey(), root)
    return root


@pytest.fixture(scope="module")
def service(root: Path) -> Iterator[TableService]:
    service = TableService(bundles=[root / "bundle"], workers=1)
    yield service
    service.close()


def asked(service: TableService, **words: object) -> Release:
    query = {"dataset": "survey", "weight": "weight", **words}
    decision = service.answer(TableQuery.from_mapping(query))
    assert decision.release is not None, decision.reasons
    return decision.release


def test_a_survey_opens_with_weighted_numbers_and_says_so(service: TableService) -> None:
    client = TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")
    page = client.get("/datasets/survey").text
    assert "Weighted number of people by age and sex, all people" in page
    assert "Beside each estimate: its standard error" in page


def test_rare_estimates_are_graded_by_respondents_and_errors(root: Path) -> None:
    numbers = BundleNumbers(read_bundle(root / "bundle"), workers=1)
    query = TableQuery.from_mapping(
        {"dataset": "survey", "by": ["district", "age", "education"], "weight": "weight"}
    )
    shown = numbers.views(query).shown
    counted = numbers.views(
        TableQuery.from_mapping({"dataset": "survey", "by": query.to_mapping()["by"]})
    )
    few = counted.shown.published < 20
    assert few.any()
    assert (shown.grades[few] == "unreliable").all()
    assert (shown.grades == "reliable").any()
    assert (shown.grades == "caution").any()


def test_estimates_are_flagged_as_the_policy_in_force_says(root: Path, tmp_path: Path) -> None:
    """When an estimate is flagged is no protection, so it may change without a new bundle."""
    place = tmp_path / "data"
    shutil.copytree(root / "bundle", place / "bundles" / "survey")
    (place / "policies").mkdir()
    policy = place / "policies" / "survey.toml"
    made_by = (root / "bundle" / "policy.toml").read_text()
    text = re.sub('^end = "sha256:.*"$', "end = true", made_by, flags=re.MULTILINE)
    policy.write_text(text)
    service = TableService(place, workers=1)
    try:
        asked_for = ["district", "age", "education"]
        before = asked(service, by=asked_for)
        policy.write_text(text.replace("[weights]\n", "[weights]\nrespondents = 100000\n"))
        after = asked(service, by=asked_for)
    finally:
        service.close()
    assert set(before.grades.ravel()) > {"unreliable"}
    estimated = after.published > 0
    assert (after.grades[estimated] == "unreliable").all()
    assert (after.published == before.published).all()


def test_files_carry_errors_and_grades(service: TableService) -> None:
    release = asked(service, by=["employment"])
    rows = list(csv.DictReader(io.StringIO(Csv().write(release))))
    assert [int(row["standard_error"]) for row in rows] == release.errors.tolist()
    assert {row["reliability"] for row in rows} <= {"reliable", "caution", "unreliable"}
    with zipfile.ZipFile(io.BytesIO(Xlsx().write(release, "Employment"))) as book:
        texts = book.read("xl/sharedStrings.xml").decode()
    assert "standard_error" in texts
    assert "reliability" in texts
    words = json.loads(JsonStat().write(release))
    assert words["extension"]["standard_error"] == release.errors.tolist()
    decision = service.answer(
        TableQuery.from_mapping({"dataset": "survey", "by": ["sex"], "weight": "weight"})
    )
    again = read_decision(write_decision(decision)).release
    assert (again.errors == decision.release.errors).all()
    assert (again.grades == decision.release.grades).all()


def test_shares_have_standard_errors_of_their_own(service: TableService) -> None:
    both = asked(service, by=["sex", "employment"], statistics=["count", "share:count:row"])
    assert both.grades is not None
    counts, shares = both.published[..., 0] / 10.0**both.decimals, both.published[..., 1]
    # Standard errors of shares are rounded up to whole tenths of a percent: one tenth is taken back.
    relative = (both.errors[..., 1] - 1) / np.maximum(shares, 1)
    whole = both.errors[..., 0] / 10.0**both.decimals / np.maximum(counts, 1)
    assert (both.errors[..., 1] > 0).all()
    # Where a category is a large part of its row, the row varies with it: the share errs less than the count.
    assert (relative[:, 0] < whole[:, 0]).all()
    # A quotient never errs by more than both of its parts together, whatever their covariance is.
    alone = asked(service, by=["sex"])
    row = alone.errors / alone.published
    assert (row < 0.05).all()
    assert (relative < whole + row[:, None]).all()
    # A category and all others have the same error.
    two = asked(service, by=["sex"], statistics=["share:count:total"])
    assert abs(int(two.errors[0]) - int(two.errors[1])) <= 1
    assert 0 < two.errors[0] < 25
    rare = asked(service, by=["district", "education"], statistics=["share:count:row"])
    assert {"reliable", "unreliable"} <= set(rare.grades.ravel().tolist())


def test_weighted_sums_and_means_of_a_measure(service: TableService) -> None:
    made = asked(service, by=["employment"], statistics=["count", "sum:hours", "mean:hours"])
    count, total, mean = np.moveaxis(made.published / 10.0**made.decimals, -1, 0)
    assert mean[0] == pytest.approx(total[0] / count[0], abs=0.06)
    errors = made.errors / 10.0**made.decimals
    # Others work no hour; where a class has few of them, it is filled up with the mean of all.
    assert (total[1:] <= errors[1:, 1]).all()
    assert total[1:].sum() < 0.002 * total[0]
    # The frame is known: hours worked by those who work.
    everybody = frame()
    hours = everybody.column("hours").to_numpy()
    working = hours[hours > 0]
    assert abs(mean[0] - working.mean()) <= 2 * errors[0, 2]
    assert abs(total[0] - working.sum()) <= 2 * errors[0, 1]
    assert errors[0, 2] < 0.05 * mean[0]
    assert [s.unit for s in made.statistics] == ["people", "hours", "hours"]
    assert any("nobody's own value" in note for note in made.notes)
    young = asked(service, by=["age"], where={"employment": ["1"]}, statistics=["mean:hours"])
    assert (young.errors > 0).all()
    assert young.published[0] < young.published[2]


def test_unweighted_sums_of_a_survey_are_refused(service: TableService) -> None:
    decision = service.answer(
        TableQuery.from_mapping({"dataset": "survey", "by": ["sex"], "measure": "hours"})
    )
    assert decision.reasons[0].text == "There are no protected sums of 'hours'."
    numbers = service.snapshot("survey").numbers
    assert (numbers.measures, numbers.weights) == ((), ("weight",))
    assert numbers.weighted_measures == ("hours",)


def test_overlapping_categories_have_the_errors_of_each_alone(service: TableService) -> None:
    groups = [{"label": "All", "members": ["1", "2"]}, {"label": "Men", "members": ["1"]}]
    both = asked(service, by=[{"variable": "sex", "groups": groups}], statistics=["mean:hours"])
    alone = asked(service, by=["sex"], statistics=["mean:hours"])
    assert (both.published[1], both.errors[1]) == (alone.published[0], alone.errors[0])
    assert both.errors[0] < alone.errors[0]


def test_the_bundle_holds_no_weight_of_a_respondent(root: Path) -> None:
    bundle = read_bundle(root / "bundle")
    files = {p.name for p in (root / "bundle").resolve().rglob("*") if p.is_file()}
    assert "respondents.arrow" in files
    description = bundle.dataset
    assert description.id_columns == ()
    assert description.weights[0].strata is None
    assert description.weights[0].total is None
    # Shared weights are whole; those of the records have cents.
    own = np.unique(survey().column("weight").to_numpy())
    assert not np.isin(bundle.respondents.weights, own[own != np.rint(own)]).any()
    share = np.unique(bundle.respondents.weights).size / len(bundle.respondents)
    assert share < 0.02


def bundled(table: pa.Table, root: Path, *, replicates: bool = True) -> None:
    raw = tomllib.loads(description_path("survey").read_text())
    if not replicates:
        del raw["weights"][0]["replicates"]
    description = Dataset.from_mapping(raw)
    ingest(FrameSource(table), description, Store(root), secret=Secret(bytes(range(32))))
    policy = root / "policy.toml"
    policy.write_text(POLICY.read_text().replace("sweeps = 2", "sweeps = 1"))
    make_bundle(Store(root), "survey", policy, root / "bundle", workers=1)


def changed(column: str, values: object) -> pa.Table:
    table = survey()
    return table.set_column(table.column_names.index(column), column, pa.array(values))


@pytest.mark.parametrize(
    ("column", "change", "said"),
    [
        ("weight", lambda v: np.where(np.arange(v.size) == 7, -1.0, v), "must not be negative"),
        ("weight", lambda v: np.where(np.arange(v.size) == 7, np.nan, v), "not a number"),
        ("weight", lambda v: v * 2, "do not sum to the frame of 123,878"),
        ("weight", lambda v: np.where(np.arange(v.size) == 7, 0.0, v), "has the weight 0"),
        ("stratum", lambda v: np.where(np.arange(v.size) == 7, 99, v), "single cluster"),
    ],
)
def test_bad_weights_are_one_sentence(tmp_path: Path, column: str, change, said: str) -> None:  # type: ignore[no-untyped-def]
    values = change(survey().column(column).to_numpy())
    with pytest.raises(InputError, match=said) as error:
        # A stratum of a single cluster has a variance where replicate weights are given.
        bundled(changed(column, values), tmp_path, replicates=column != "stratum")
    assert "\n" not in str(error.value)
    assert not (tmp_path / "bundle").exists()


def test_weights_need_protected_counts() -> None:
    before = '[[before]]\nmethod = "protected-population"\nbase = 3\nsweeps = 2\n'
    text = POLICY.read_text().replace(before, "")
    with pytest.raises(PolicyError, match="goes with a protected population or a method"):
        parse_policy(text.encode(), "policy.toml")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('classes = ["district"', 'classes = ["distrikt"', "did you mean 'district'"),
        ('weight = "weight"', 'weight = "wait"', "is no weight of 'survey'"),
    ],
)
def test_a_misspelt_name_of_the_policy_is_refused_before_anything_is_made(
    old: str, new: str, said: str
) -> None:
    policy = parse_policy(POLICY.read_text().replace(old, new).encode(), "policy.toml")
    with pytest.raises(PolicyError, match=said):
        check_names(policy, read_description(description_path("survey")), "policy.toml")


def test_reliability_must_be_above_0() -> None:
    with pytest.raises(InputError, match="'caution' must be"):
        Reliability(caution=0.0)


def test_pages_and_the_api_show_errors_and_grades(service: TableService) -> None:
    client = TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")
    page = client.get("/datasets/survey/table?by=employment&where=age:1&weight=weight").text
    assert "±" in page
    assert "use with caution" in page
    assert "Beside each estimate: its standard error" in page
    french = client.get("/fr/datasets/survey/table?by=employment&where=age:1&weight=weight").text
    assert "à utiliser avec prudence" in french
    percent = client.get(
        "/datasets/survey/table?by=employment&by=sex&weight=weight&show=row-percent"
    ).text
    assert "±" not in percent
    body = {"dataset": "survey", "by": ["employment"], "weight": "weight"}
    answer = client.post("/api/v1/tables", json=body).json()
    assert "standard_error" in json.dumps(answer)
    about = client.get("/api/v1/datasets/survey").json()
    assert [w["name"] for w in about["weights"]] == ["weight"]


def test_the_client_and_the_command_line_show_standard_errors(root: Path) -> None:
    service = TableService(bundles=[root / "bundle"], workers=1)
    try:
        asker = TestClient(create_app(service, Settings(rate="")), base_url="http://x.test")
        words = {"dataset": "survey", "by": ["age"], "weight": "weight"}
        body = asker.post("/api/v1/tables", json={**words, "statistics": ["mean:hours"]}).json()
        cells = list(Answer.of(body).cells())
        assert all(cell.standard_error is not None and cell.standard_error > 0 for cell in cells)
        assert {cell.reliability for cell in cells} <= {"reliable", "caution", "unreliable"}
        query = TableQuery.from_mapping({**words, "statistics": ["count", "mean:hours"]})
        decision = service.answer(query)
        console = Console(record=True, width=160, file=io.StringIO())
        show_decision(decision, service.dataset("survey"), service.policy("survey"), console)
        said = console.export_text()
        assert "In brackets: standard errors." in said
        assert re.search(r"\d\.\d \(\d+\.\d\)", said)
        assert f"({decision.release.errors[0, 0] // 10:,})" in said
    finally:
        service.close()
