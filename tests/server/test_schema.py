"""The API keeps to its own description, whatever it is asked: sense, nonsense and real questions."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import Case, GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from schemathesis.config import GenerationConfig
from schemathesis.core import NOT_SET
from schemathesis.core.result import Ok
from schemathesis.python import asgi
from schemathesis.schemas import APIOperation, BaseSchema

from examples import examples
from lustrum.answer import TableService
from lustrum.local import local_service
from lustrum.model import Dataset
from lustrum.server import Settings, create_app
from waiting import LONG

OPERATIONS = (
    "GET /api/v1/datasets",
    "GET /api/v1/datasets/{name}",
    "GET /api/v1/datasets/{name}/protection",
    "GET /api/v1/datasets/{name}/variables/{variable}/categories",
    "GET /api/v1/datasets/{name}/variables/{variable}/shapes",
    "GET /api/v1/hints",
    "GET /api/v1/jobs/{name}",
    "DELETE /api/v1/jobs/{name}",
    "GET /api/v1/jobs/{name}/result",
    "POST /api/v1/jobs",
    "GET /api/v1/prepared",
    "GET /api/v1/prepared/{name}",
    "GET /api/v1/prepared/{name}/files/{path}",
    "GET /api/v1/tables",
    "POST /api/v1/tables",
)
ONLY_A_NAME = (
    "GET /api/v1/datasets/{name}",
    "GET /api/v1/datasets/{name}/protection",
    "GET /api/v1/jobs/{name}",
    "DELETE /api/v1/jobs/{name}",
    "GET /api/v1/prepared",
    "GET /api/v1/prepared/{name}",
    "GET /api/v1/prepared/{name}/files/{path}",
)
KEPT = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
)
FEW = settings(
    max_examples=examples(8, 60),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.fixture(scope="module", params=["keyed", "bundle"])
def described(
    request: pytest.FixtureRequest,
    root: Path,
    bundle: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> BaseSchema:
    """The description that a server itself gives, of records or of a bundle; nobody is told to wait."""
    if request.param == "bundle":
        service = TableService(bundles=[bundle], workers=1)
        return schemathesis.openapi.from_asgi(
            "/api/v1/openapi.json", create_app(service, Settings(rate=""))
        )
    own = tmp_path_factory.mktemp("schema") / "data"
    shutil.copytree(root, own, ignore=shutil.ignore_patterns("jobs.sqlite*"))
    app = create_app(local_service(own, workers=1), Settings(rate=""))
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)


@pytest.fixture(scope="module")
def session(described: BaseSchema) -> Iterator[Any]:
    """One client for all requests."""
    with asgi.get_client(described.app) as client:
        yield client


def _operation(described: BaseSchema, label: str) -> APIOperation[Any, Any, Any, Any]:
    found = described.find_operation_by_label(label)
    assert found is not None
    return found


def _every(described: BaseSchema) -> list[APIOperation[Any, Any, Any, Any]]:
    found = []
    for result in described.get_all_operations():
        assert isinstance(result, Ok)
        found.append(result.ok())
    return found


def _kept(case: Case[Any], session: Any) -> Any:
    """Ask, and check the answer against the description."""
    load_all_checks()
    response = case.call(session=session)
    checks: list[Any] = list(CHECKS.get_by_names(list(KEPT)))
    case.validate_response(response, checks=checks)
    return response


def test_every_operation_of_the_description_is_tried(described: BaseSchema) -> None:
    assert {operation.label for operation in _every(described)} == set(OPERATIONS)


@pytest.mark.hypothesis  # its examples are drawn inside, and `make deep` draws more of them
@pytest.mark.parametrize(
    ("label", "mode"),
    [
        *((label, GenerationMode.POSITIVE) for label in OPERATIONS),
        # Where all that is asked for is a name, any text is one: no data are against the description.
        *((label, GenerationMode.NEGATIVE) for label in OPERATIONS if label not in ONLY_A_NAME),
    ],
)
def test_what_is_generated_from_the_description_is_answered_as_described(
    described: BaseSchema, session: Any, label: str, mode: GenerationMode
) -> None:
    @FEW
    @given(_operation(described, label).as_strategy(mode))
    def tried(case: Case[Any]) -> None:
        _kept(case, session)

    tried()


@pytest.mark.parametrize("label", OPERATIONS)
def test_the_edges_of_the_description_are_answered_as_described(
    described: BaseSchema, session: Any, label: str
) -> None:
    cases = described.iter_coverage_cases(
        _operation(described, label),
        generation_modes=list(GenerationMode),
        generation_config=GenerationConfig(),
    )
    tried = 0
    for case in cases:
        _kept(case, session)
        tried += 1
    assert tried


@st.composite
def questions(draw: st.DrawFn, datasets: list[Dataset]) -> dict[str, Any]:
    """A question about variables, levels and codes that are there, in the words of the description."""
    dataset = draw(st.sampled_from(datasets))
    names = [variable.name for variable in dataset.variables]
    by: list[Any] = []
    for name in draw(st.lists(st.sampled_from(names), max_size=4, unique=True)):
        variable = dataset.variable(name)
        codes = st.lists(st.sampled_from(variable.codes), min_size=1, max_size=4, unique=True)
        axis: dict[str, Any] = {"variable": name, "total": draw(st.booleans())}
        kind = draw(st.sampled_from(("plain", "level", "codes", "groups")))
        if kind == "level" and variable.levels:
            axis["level"] = draw(st.sampled_from([level.name for level in variable.levels]))
        elif kind == "codes":
            axis["codes"] = draw(codes)
        elif kind == "groups":
            axis["groups"] = [{"label": "own group", "members": draw(codes)}]
        by.append(name if draw(st.booleans()) else axis)
    others = [name for name in names if name not in [a if isinstance(a, str) else "" for a in by]]
    where = {}
    for name in draw(st.lists(st.sampled_from(others), max_size=2, unique=True)):
        codes = st.sampled_from(dataset.variable(name).codes)
        where[name] = draw(st.lists(codes, min_size=1, max_size=5, unique=True))
    return {"dataset": dataset.name, "by": by, "where": where, "totals": draw(st.booleans())}


PARTS = st.lists(st.sampled_from(["risk", "utility", "trace", "bounds"]), max_size=4)


@pytest.mark.hypothesis
@pytest.mark.parametrize(
    "label", ["GET /api/v1/tables", "POST /api/v1/tables", "GET /api/v1/hints"]
)
def test_real_questions_are_answered_as_described(
    described: BaseSchema, session: Any, service: TableService, label: str
) -> None:
    operation = _operation(described, label)
    statuses, verdicts = set(), set()

    @settings(FEW, max_examples=examples(60, 200))
    @given(questions(service.datasets()), PARTS, st.sampled_from(["", "json", "csv", "json-stat"]))
    def tried(question: dict[str, Any], parts: list[str], format_: str) -> None:
        include = {"include": ",".join(parts)} if parts else {}
        if label.startswith("POST"):
            case = operation.Case(query=include, body=question, media_type="application/json")
        else:
            link = {"dataset": question["dataset"], "query": json.dumps(question)}
            wanted = {} if label.endswith("hints") else {**include, "format": format_}
            case = operation.Case(query=link | wanted)
        response = _kept(case, session)
        statuses.add(response.status_code)
        if response.status_code == 200 and format_ in ("", "json"):
            verdicts.add(response.json().get("decision", "hint"))

    tried()
    assert 200 in statuses
    # The questions reach the tables, not only their refusals.
    assert verdicts >= ({"hint"} if label.endswith("hints") else {"answer", "refusal"})


def test_a_job_is_described_from_its_beginning_to_its_end(
    described: BaseSchema, session: Any
) -> None:
    question: Any = {"dataset": "demo", "by": ["sex", "age"], "totals": True}
    post = _operation(described, "POST /api/v1/jobs")
    job = _kept(post.Case(body=question, media_type="application/json"), session).json()
    token = job["token"]
    look = _operation(described, "GET /api/v1/jobs/{name}").Case(
        path_parameters={"name": job["id"]}
    )
    deadline = time.monotonic() + LONG
    while job["state"] != "done" and time.monotonic() < deadline:
        job = _kept(look, session).json()
        time.sleep(0.05)
    result = _operation(described, "GET /api/v1/jobs/{name}/result")
    case = result.Case(path_parameters={"name": job["id"]}, query={"include": "bounds"})
    body = _kept(case, session).json()
    assert body["decision"] == "answer"
    assert body["bounds"] is not None
    assert "risk" not in body
    gone = _operation(described, "DELETE /api/v1/jobs/{name}")
    headers = {"Cancel-Token": token}
    response = _kept(gone.Case(path_parameters={"name": job["id"]}, headers=headers), session)
    assert response.status_code == 204


def test_parameters_that_an_address_does_not_know_are_mistakes_everywhere(
    session: Any, described: BaseSchema
) -> None:
    load_all_checks()
    for operation in _every(described):
        names = {"name": "demo", "variable": "sex", "path": "report.html"}
        body: Any = {"dataset": "demo", "by": ["sex"]} if operation.method == "post" else NOT_SET
        case = operation.Case(
            path_parameters={p.name: names[p.name] for p in operation.path_parameters},
            query={"unheard-of": "1"},
            body=body,
            media_type="application/json" if body is not NOT_SET else None,
        )
        response = case.call(session=session)
        assert response.status_code == 400, operation.label
        assert "unheard-of" in response.json()["detail"] or "dataset" in response.json()["detail"]
