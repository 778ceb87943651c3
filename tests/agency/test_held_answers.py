"""The page of what left the house: what it says of the limit is what the server then does."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from starlette.applications import Starlette

from agency.towns import DESCRIPTION, let_in, people
from browsing import axe_complaints, layout_faults, visit
from lustrum.agency import create_agency_app
from lustrum.agency.held_answers import held_answers
from lustrum.agency.state import question_of, state_of
from lustrum.answer import TableService
from lustrum.answer.ledger import ReleaseLedger
from lustrum.answer.readers import Reader
from lustrum.local import local_service
from lustrum.model import InputError
from lustrum.policy.presets import preset
from lustrum.runtime.data_folder import LEDGER
from lustrum.tabulate import FileSource, Secret, Store, ingest, read_description
from server.conftest import served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

QUESTIONS = (
    "sex", "age", "area", "age, sex", "area, sex", "area, age", "area, age, sex", "age where area=E",
    "sex where age=2", "age, sex where area=S", "area where sex=f",
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A town whose answers are counted together, with all that was asked of it answered or refused."""
    root = tmp_path_factory.mktemp("held") / "data"
    description = root.parent / "town.toml"
    description.write_text(DESCRIPTION, encoding="utf-8")
    dataset = read_description(description)
    source = FileSource(people(root.parent / "town.csv", 90))
    ingest(source, dataset, Store(root), secret=Secret(bytes(range(32))))
    (root / "policies").mkdir()
    text = preset("keyed-rounding", dataset).replace("min_population = 1000", "min_population = 0")
    text = text.replace("max_dimensions = 2", "max_dimensions = 3")
    (root / "policies" / "town.toml").write_text(text, encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def service(data: Path) -> Iterator[TableService]:
    one = local_service(data, workers=1)
    yield one
    one.close()


def page(data: Path, service: TableService, question: str = "") -> Any:
    return held_answers(data, service, state_of(data, service, "town"), question)


def test_what_a_table_would_add_is_what_the_ledger_then_decides(
    data: Path, service: TableService
) -> None:
    assert page(data, service, "age").audiences == ()
    assert not (data / LEDGER).exists()  # looking begins no book
    snapshot = service.snapshot("town")
    ledger, refused = ReleaseLedger(data), []
    for question in QUESTIONS:
        query = question_of(question, snapshot.dataset)
        before = page(data, service, question)
        audience = ledger.audience_of(Reader("anna", "registered"))
        decision = ledger.decided(query, snapshot, audience, lambda q=query: snapshot.answer(q))  # type: ignore[misc]
        by_ledger = [reason.rule for reason in decision.reasons] == ["ledger"]
        refused.append(by_ledger)
        if before.audiences:
            [everybody] = before.audiences
            assert everybody.refused == by_ledger, question
            after = page(data, service).audiences[0]
            gained = 0.0 if by_ledger else everybody.adds
            assert after.used == pytest.approx(everybody.used + gained)
    ledger.close()
    assert 0 < sum(refused) < len(refused)
    held = page(data, service)
    assert held.all == len(held.lines) == len(refused) - sum(refused)
    assert {line.reader for line in held.lines} == {"anna"}
    assert {line.question for line in held.lines} <= set(QUESTIONS)
    for mistake in ("colour", "sex where", " where area=E"):
        with pytest.raises(InputError):
            page(data, service, mistake)


@pytest.fixture(scope="module")
def app(data: Path) -> Starlette:
    return create_agency_app(data=data)


def test_the_page_draws_the_limit_and_names_the_questions(app: Starlette) -> None:
    client = let_in(app)
    assert 'href="/datasets/town/answers"' in client.get("/datasets/town").text
    text = client.get("/datasets/town/answers?question=area,+age,+sex").text
    drawn = {
        kind: float(width)
        for kind, width in re.findall(
            r'<rect class="(\w+)" x=[^>]*? width="([\d.]+)" height="10"', text
        )
    }
    assert drawn.keys() == {"left", "used", "adds"}
    assert drawn["used"] + drawn["adds"] == pytest.approx(max(100.0, drawn["left"]), abs=0.1) or (
        drawn["used"] + drawn["adds"] <= drawn["left"]
    )
    assert "Tables that left" in text
    assert "anna" in text
    assert client.get("/datasets/town/answers?question=colour").status_code == 422


@pytest.mark.browser
@pytest.mark.parametrize(
    ("scheme", "width"), [("light", 1440), ("dark", 390), ("dark", 1440), ("light", 390)]
)
def test_the_page_passes_axe_and_fits(
    browser: Browser, app: Starlette, scheme: str, width: int
) -> None:
    options: dict[str, Any] = {
        "viewport": {"width": width, "height": 900}, "color_scheme": scheme, "bypass_csp": True,
    }  # fmt: skip
    with (
        served(app) as address,
        visit(  # type: ignore[arg-type]
            browser, address, enter=app.state.door.address(""), **options
        ) as seen,
    ):
        seen.goto("/datasets/town/answers?question=area,+age,+sex")
        assert layout_faults(seen) == []
        assert axe_complaints(seen) == []
