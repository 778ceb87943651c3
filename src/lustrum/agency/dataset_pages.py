"""The pages of datasets: how they stand, their policies and what a change would do, reports, protection."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from lustrum.agency.held_answers import held_answers
from lustrum.agency.policy_form import changed_text, form_of_policy
from lustrum.agency.state import (
    DatasetState,
    Effect,
    draft_path,
    effect,
    policy_path,
    read_report,
    read_state,
    state_of,
    states,
    unsealed,
    usual_questions,
)
from lustrum.agency.tasks import AgencyTasks
from lustrum.agency.templating import AgencyPages, form_of
from lustrum.ledger.acts import record_seal
from lustrum.local import local_service
from lustrum.model import InputError, LustrumError, PolicyError
from lustrum.policy import Policy, check_names
from lustrum.policy.explain import changes, explain, warnings
from lustrum.policy.presets import PRESETS, preset
from lustrum.policy.read import parse_policy, sealed
from lustrum.publish.budget import BudgetLedger, PlannedReleases, exact_rho
from lustrum.publish.report.page import report_body
from lustrum.runtime.durable import outages, write_whole


class DatasetPages:
    """The handlers, over one data folder."""

    def __init__(self, pages: AgencyPages, data: Path, tasks: AgencyTasks) -> None:
        self._pages, self._data, self._tasks = pages, data, tasks
        self._service = local_service(data, workers=1)

    def routes(self) -> list[Route]:
        guarded, base_path = self._pages.guarded, "/datasets/{name:str}"
        return [
            Route("/", guarded(self.home)),
            Route(base_path, guarded(self.dataset)),
            Route(base_path + "/report", guarded(self.report)),
            Route(base_path + "/budget", guarded(self.budget)),
            Route(base_path + "/answers", guarded(self.answers)),
            Route(base_path + "/policy", guarded(self.policy)),
            Route(base_path + "/policy", guarded(self.change_policy), methods=["POST"]),
            Route(base_path + "/protect", guarded(self.protect), methods=["POST"]),
        ]

    def close(self) -> None:
        self._service.close()

    async def home(self, request: Request) -> Response:
        """All datasets and how they stand."""
        dataset_states = await run_in_threadpool(states, self._data, self._service)
        return self._pages.page("datasets.html", "/", states=dataset_states, data=str(self._data))

    async def dataset(self, request: Request) -> Response:
        """One dataset: state, next step, policy in sentences, variables."""
        state = await run_in_threadpool(self._state, request)
        policy = state.policy.policy
        return self._pages.page(
            "dataset.html",
            "/",
            state=state,
            sentences=[] if policy is None else list(explain(policy)),
            warnings=[] if policy is None else list(warnings(policy)),
            task=self._tasks.of(state.name),
            data=str(self._data),
        )

    async def report(self, request: Request) -> Response:
        """The confidential report of the protected population, in the design of these pages."""
        state = await run_in_threadpool(self._state, request)
        figures = await run_in_threadpool(read_report, self._data, state.name)
        try:
            body = report_body(figures, [str(sentence) for sentence in figures.get("warnings", ())])
        except (KeyError, TypeError, ValueError, IndexError, AttributeError):
            raise PolicyError(
                "The report was written by another version; protect the dataset again to renew it."
            ) from None
        return self._pages.page("report.html", "/", state=state, body=body)

    async def budget(self, request: Request) -> Response:
        """What releases with a proof would cost and be worth, before anything is spent."""
        state = await run_in_threadpool(self._state, request)
        asked = request.query_params
        rho, releases = asked.get("rho", "").strip(), asked.get("releases", "1").strip()
        dataset, policy = state.dataset, state.policy.policy
        if dataset is None or policy is None:
            raise PolicyError("A plan needs the description of a dataset and a policy.")
        if not (releases.isascii() and releases.isdigit() and 1 <= int(releases[:9]) <= 1000):
            raise InputError("Releases are a whole number from 1 to 1,000.")
        planned = await run_in_threadpool(
            lambda: PlannedReleases.of(
                dataset,
                policy,
                rho=exact_rho(rho) if rho else None,
                releases=int(releases),
                people=state.records or None,
            )
        )
        return self._pages.page(
            "budget.html",
            "/",
            state=state,
            planned=planned,
            rho=rho,
            releases=releases,
            ledger=await run_in_threadpool(self._ledger, state),
        )

    async def answers(self, request: Request) -> Response:
        """What left the house about a dataset, what follows from it, and what another table would add."""
        state = await run_in_threadpool(self._state, request)
        asked = request.query_params.get("question", "").strip()
        held = await run_in_threadpool(held_answers, self._data, self._service, state, asked)
        return self._pages.page("answers.html", "/", state=state, held=held, question=asked)

    def _ledger(self, state: DatasetState) -> BudgetLedger | None:
        named = None if state.dataset is None else state.dataset.population
        return None if named is None else BudgetLedger(self._data, named)

    async def policy(self, request: Request) -> Response:
        """The policy to be edited: the draft if there is one, else the one in force."""
        state = await run_in_threadpool(self._state, request)
        text = await run_in_threadpool(self._text, state)
        questions = [] if state.dataset is None else usual_questions(state.dataset)
        return await run_in_threadpool(self._edited, state, text, questions, "")

    async def change_policy(self, request: Request) -> Response:
        """Check a draft, keep it, give it up, or seal it and put it in force."""
        state = await run_in_threadpool(self._state, request)
        form = await form_of(request)
        text = unsealed(form.get("text", ""))
        questions = form.get("questions", "").splitlines()
        whom = state.dataset if state.dataset is not None else state.name
        parts = bool(request.headers.get("x-lustrum-part"))
        try:
            text = await run_in_threadpool(changed_text, text, form, whom)
        except LustrumError as error:
            if not parts:
                raise
            effect_part = self._pages.part("_effect.html", state=state, **_mistaken(error))
            return JSONResponse({"effect": effect_part})
        if parts:
            values = await run_in_threadpool(self._checked, state, text, questions)
            beside = {"text": text, **await run_in_threadpool(self._form, state, text)}
            pages = {name: f"_{name}.html" for name in ("form", "effect")}
            written = {
                k: self._pages.part(v, state=state, **values, **beside) for k, v in pages.items()
            }
            return JSONResponse({"text": text, **written})
        wanted = form.get("do", "check")
        if wanted == "check":
            return await run_in_threadpool(self._edited, state, text, questions, "")
        if form.get("seen") != _mark(policy_path(self._data, state.name)):
            raise PolicyError(
                "The policy in force was changed since this page was loaded; load it again and compare."
            )
        if wanted == "forget":
            await run_in_threadpool(draft_path(self._data, state.name).unlink, missing_ok=True)
            return RedirectResponse(f"/datasets/{state.name}/policy", 303)
        if wanted == "keep":
            said = await run_in_threadpool(self._keep, state, text)
            return await run_in_threadpool(self._edited, state, text, questions, said)
        if wanted != "seal" or form.get("meant") != "yes":
            raise PolicyError("Tick that the change is meant before you seal the policy.")
        await run_in_threadpool(self._seal, state, text, form.get("loosens", ""))
        return RedirectResponse(f"/datasets/{state.name}", 303)

    async def protect(self, request: Request) -> Response:
        """Make the protected population, as ``lustrum protect`` does."""
        state = await run_in_threadpool(self._state, request)
        arguments = ["protect", "--dataset", state.name, "--data", str(self._data)]
        task = self._tasks.start(f"Protect {state.name}", state.name, arguments)
        return RedirectResponse(f"/tasks/{task.number}", 303)

    def _state(self, request: Request) -> DatasetState:
        return state_of(self._data, self._service, request.path_params["name"])

    def _text(self, state: DatasetState) -> str:
        draft = draft_path(self._data, state.name)
        with outages(draft):
            if draft.is_file():
                return draft.read_text(encoding="utf-8", errors="replace")
        if state.policy.text:
            return unsealed(state.policy.text)
        return preset("strict", state.dataset if state.dataset is not None else state.name)

    def _edited(
        self, state: DatasetState, text: str, questions: list[str], said: str
    ) -> HTMLResponse:
        values = self._checked(state, text, questions)
        return self._pages.page(
            "policy.html",
            "/",
            state=state,
            text=text,
            questions="\n".join(line.strip() for line in questions if line.strip()),
            said=said,
            seen=_mark(policy_path(self._data, state.name)),
            has_draft=draft_path(self._data, state.name).is_file(),
            presets=PRESETS,
            **self._form(state, text),
            **values,
        )

    def _form(self, state: DatasetState, text: str) -> dict[str, Any]:
        """The form of a text, and what it shows; of one that cannot be read there is none."""
        try:
            sections = form_of_policy(text, state.dataset)
        except LustrumError:
            sections = ()
        shown = {one.key: one.value for section in sections for one in section.fields}
        return {"form": sections, "shown": json.dumps(shown)}

    def _checked(self, state: DatasetState, text: str, questions: list[str]) -> dict[str, Any]:
        """What the draft decides and changes, or the first mistake in it."""
        try:
            draft = self._parsed(state, text)
        except LustrumError as error:
            return _mistaken(error)
        now = state.policy.policy
        known = set() if now is None else set(explain(now))
        try:
            draft_effect = effect(self._data, state.name, now, draft, questions)
        except LustrumError as error:
            draft_effect = Effect(sentence=str(error))
        return {
            "mistake": "",
            "sentences": [(sentence, sentence not in known) for sentence in explain(draft)],
            "warnings": list(warnings(draft)),
            "effect": draft_effect,
            "changes": [] if now is None else list(changes(now, draft)),
            "draft": _digest(text),
        }

    def _parsed(self, state: DatasetState, text: str) -> Policy:
        policy = parse_policy(text.encode(), "The draft")
        if policy.dataset not in ("*", state.name):
            raise PolicyError(
                f"The draft is for the dataset {policy.dataset!r}, not for {state.name!r}."
            )
        if state.dataset is not None:
            check_names(policy, state.dataset, "The draft")
        return policy

    def _keep(self, state: DatasetState, text: str) -> str:
        """Keep a draft, which no server reads; it may have mistakes."""
        path = draft_path(self._data, state.name)
        with outages(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text.encode())
        return "The draft is kept. It is not in force: nothing changes for the public until it is sealed."

    def _seal(self, state: DatasetState, text: str, loosens: str) -> None:
        """Put a valid draft in force, sealed; the policy before is kept beside it.

        A draft that may loosen the policy in force needs a tick that was given for these words.
        """
        draft, now = self._parsed(state, text), state.policy.policy
        looser = [] if now is None else [one for one in changes(now, draft) if one.looser]
        if looser and loosens != _digest(text):
            said = "; ".join(f"{one.key} from {one.before} to {one.after}" for one in looser)
            raise PolicyError(
                f"The draft may loosen the policy in force: {said}. Check it and tick that this is meant."
            )
        raw = sealed(text.encode(), "The draft")
        path = policy_path(self._data, state.name)
        with outages(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                write_whole(path.with_name(f"{path.name}.before"), path.read_bytes())
            record_seal(path, raw)
            write_whole(path, raw)
            draft_path(self._data, state.name).unlink(missing_ok=True)
        self._service.forget_policies()
        if read_state(path, state.dataset).kind != "sealed":
            raise PolicyError(f"{path} was not written as it was meant; look at it.")


def _mistaken(error: LustrumError) -> dict[str, Any]:
    nothing: dict[str, Any] = {"sentences": [], "warnings": [], "changes": [], "draft": ""}
    return {"mistake": str(error), "effect": Effect(), **nothing}


def _digest(text: str) -> str:
    """Names the words of a draft, so that a tick is about no others."""
    return hashlib.sha256(text.encode()).hexdigest()


def _mark(path: Path) -> str:
    """Names the bytes of a policy file, so that a change behind one's back is noticed."""
    with outages(path):
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "none"
