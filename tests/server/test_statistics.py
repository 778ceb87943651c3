"""Sums, means, shares and growth through the API, the client, the command line and the pages."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from typer.testing import CliRunner

from browsing import arrive, context_of, expect, visit
from lustrum.answer import TableService
from lustrum.answer.archive import read_decision, write_decision
from lustrum.cli.application import app as command_line
from lustrum.client import Client
from lustrum.demo import businesses, description_path
from lustrum.formats.jsonstat import JsonStat
from lustrum.model import Quantity, TableQuery
from lustrum.publish.bundles.make import make_bundle
from lustrum.server import create_app
from lustrum.server.service.suggestions import estimate
from lustrum.server.settings import Settings
from lustrum.tabulate import FrameSource, Secret, Store, ingest, read_description
from server.conftest import served, started
from server.test_axe import violations

if TYPE_CHECKING:
    from playwright.sync_api import Browser

POLICY = """dataset = "businesses"
protect = {method = "cell-key"}
sums = {method = "cell-key-magnitude", p_percent = 10.0, extra = 1.0, large = 0.1}
rules = {max_dimensions = 3, max_filters = 2, nested_only = false}
risk = {limit = 1.0}
end = true
"""
GROWTH = "growth:turnover:turnover_before"


@pytest.fixture(scope="module")
def register(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A register whose sums are protected by record keys."""
    root = tmp_path_factory.mktemp("register")
    description = read_description(description_path("businesses"))
    ingest(FrameSource(businesses(4000)), description, Store(root), secret=Secret(bytes(range(32))))
    (root / "policies").mkdir()
    (root / "policies" / "businesses.toml").write_text(POLICY)
    return root


@pytest.fixture(scope="module")
def service(register: Path) -> Iterator[TableService]:
    service = started(TableService(register, workers=1))
    yield service
    service.close()


@pytest.fixture(scope="module")
def asker(service: TableService) -> TestClient:
    return TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")


@pytest.fixture(scope="module")
def address(service: TableService) -> Iterator[str]:
    with served(create_app(service, Settings(rate=""))) as found:
        yield found


@pytest.fixture(scope="module")
def public(register: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A server of the register's public bundle with protected sums, far from the records."""
    folder = tmp_path_factory.mktemp("public")
    policy = folder / "policy.toml"
    policy.write_text(
        (description_path("businesses").parent / "businesses-policy.toml")
        .read_text()
        .replace("sweeps = 4", "sweeps = 1\nmax_variables = 1")
        .replace("sweeps = 3", "sweeps = 1\nmax_variables = 1")
    )
    make_bundle(Store(register), "businesses", policy, folder / "businesses", workers=1)
    service = TableService(bundles=[folder / "businesses"], workers=1)
    yield TestClient(create_app(service, Settings(rate="")), base_url="http://lustrum.test")
    service.close()


def ask(asker: TestClient, **words: Any) -> dict[str, Any]:
    body: dict[str, Any] = asker.post(
        "/api/v1/tables", json={"dataset": "businesses", **words}
    ).json()
    return body


SECTORS = {"variable": "activity", "level": "sector"}


class TestApi:
    def test_several_statistics_come_in_one_table(self, asker: TestClient) -> None:
        body = ask(asker, by=[SECTORS], statistics=["count", "sum:turnover", "mean:turnover"])
        assert body["decision"] == "answer"
        table = body["table"]
        assert table["id"] == ["activity", "statistic"]
        values = np.array(table["value"], dtype=float).reshape(table["size"])
        assert np.abs(values[:, 2] - values[:, 1] / values[:, 0]).max() <= 0.05 + 1e-9
        assert table["dimension"]["statistic"]["category"]["label"]["mean:turnover"] == (
            "Mean turnover per business (thousand euro)"
        )

    def test_a_link_and_a_body_ask_the_same(self, asker: TestClient) -> None:
        body = ask(asker, by=[SECTORS, "size"], statistics=[GROWTH, "share:turnover:row"])
        again = asker.get(body["links"]["self"].removeprefix("http://lustrum.test")).json()
        assert again["table"] == body["table"]
        assert again["id"] == body["id"]
        assert "statistic=share:turnover:activity" in body["links"]["self"]

    def test_shares_of_each_row_add_up(self, asker: TestClient) -> None:
        body = ask(asker, by=[SECTORS, "size"], statistics=["share:count:row"])
        values = np.array(body["table"]["value"], dtype=float).reshape(body["table"]["size"])
        # Each number is perturbed on its own, so rows are near 100 and not exactly there.
        assert np.abs(values.sum(axis=1) - 100).max() < 5

    def test_bounds_of_what_is_worked_out_can_be_had(self, asker: TestClient) -> None:
        body = asker.post(
            "/api/v1/tables?include=bounds",
            json={"dataset": "businesses", "by": [SECTORS], "statistics": ["mean:turnover"]},
        ).json()
        low, high = body["bounds"]["low"], body["bounds"]["high"]
        assert all(a <= v <= b for a, v, b in zip(low, body["table"]["value"], high, strict=True))

    def test_a_dataset_says_what_can_be_summed(self, asker: TestClient) -> None:
        found = asker.get("/api/v1/datasets/businesses").json()
        turnover = next(m for m in found["measures"] if m["name"] == "turnover")
        assert turnover == {
            "name": "turnover",
            "label": "Turnover",
            "unit": "thousand euro",
            "decimals": 0,
            "earlier": "turnover_before",
        }
        assert found["weights"] == []

    @pytest.mark.parametrize(
        ("words", "sentence"),
        [
            ({"statistics": ["mean:weight"]}, "There are no protected sums of 'weight'."),
            ({"measure": "profit"}, "There are no protected sums of 'profit'."),
            ({"weight": "weight"}, "There are no protected numbers weighted by 'weight'."),
        ],
    )
    def test_what_is_not_protected_is_refused_in_a_sentence(
        self, asker: TestClient, words: dict[str, Any], sentence: str
    ) -> None:
        body = ask(asker, by=[SECTORS], **words)
        assert body["decision"] == "refusal"
        assert [reason["text"] for reason in body["reasons"]] == [sentence]

    @pytest.mark.parametrize(
        "words",
        [
            {"statistics": ["mean"]},
            {"statistics": "mean:turnover"},
            {"statistics": [{"statistic": "ratio", "measure": "turnover"}]},
            {"statistics": ["growth:turnover:employees"]},
            {"statistics": ["share:count:colour"]},
        ],
    )
    def test_a_mistake_is_a_problem_in_one_sentence(
        self, asker: TestClient, words: dict[str, Any]
    ) -> None:
        answer = asker.post(
            "/api/v1/tables", json={"dataset": "businesses", "by": [SECTORS], **words}
        )
        assert answer.status_code == 400
        assert answer.json()["detail"].count("\n") == 0

    def test_files_have_units(self, asker: TestClient) -> None:
        text = asker.get(
            "/api/v1/tables?dataset=businesses&by=activity:sector&statistic=mean:wages&format=csv"
        ).text
        rows = list(csv.DictReader(io.StringIO(text)))
        assert {row["unit"] for row in rows} == {"thousand euro"}
        assert re.fullmatch(r"\d+\.\d", rows[0]["value"])


class TestPublicBundle:
    def test_sums_add_up_and_shares_are_whole(self, public: TestClient) -> None:
        words: dict[str, Any] = {"by": [SECTORS, "size"], "totals": True}
        body = ask(public, **words, measure="turnover")
        table = np.array(body["table"]["value"]).reshape(body["table"]["size"])
        assert (table[:-1].sum(axis=0) == table[-1]).all()
        assert (table[:, :-1].sum(axis=1) == table[:, -1]).all()
        body = ask(public, **words, statistics=["share:turnover:row"])
        shares = np.array(body["table"]["value"]).reshape(body["table"]["size"])
        assert np.abs(shares[:, :-1].sum(axis=1) - 100).max() <= 0.05 * 6
        assert (shares[:, -1] == 100).all()

    def test_own_groups_and_filters_show_the_same_businesses_alike(
        self, public: TestClient
    ) -> None:
        plain = ask(public, by=["size"], measure="wages")["table"]["value"]
        group = {"variable": "size", "groups": [{"label": "Small", "members": ["1", "2"]}]}
        assert ask(public, by=[group], measure="wages")["table"]["value"] == [sum(plain[:2])]
        parts = [
            ask(public, by=["size"], where={"region": [code]}, measure="wages")["table"]["value"]
            for code in ("1", "2")
        ]
        assert np.array_equal(np.sum(parts, axis=0), plain)

    def test_a_mean_times_a_count_is_the_sum_only_up_to_protection(
        self, public: TestClient, register: Path
    ) -> None:
        body = ask(
            public, by=["activity", "size"], statistics=["count", "sum:turnover", "mean:turnover"]
        )
        table = body["table"]
        shown = np.array(table["value"], dtype=float).reshape(*table["size"])
        count, total, mean = np.moveaxis(shown, -1, 0)
        there = count > 0
        assert np.abs(mean - total / np.where(there, count, np.nan))[there].max() <= 0.051
        # No mean is made up where nobody is counted, even if a sum is shown there.
        assert np.isnan(mean[~there]).all()
        query = TableQuery.from_mapping(
            {"dataset": "businesses", "by": ["activity", "size"], "measure": "turnover"}
        )
        engine = Store(register).open("businesses")
        true = engine.tabulate(query).values
        people = engine.tabulate(query.part(Quantity())).values
        # A business that is counted as three does not have three times its turnover.
        alone = (people == 1) & (count == 3)
        assert alone.sum() > 10
        assert np.abs(total[alone] / true[alone] - 1).max() < 0.5

    def test_the_page_offers_growth_of_the_register(self, public: TestClient) -> None:
        page = public.get("/datasets/businesses?by=activity:sector&by=region").text
        assert f'<option value="{GROWTH}">' in page
        answer = public.get(
            f"/datasets/businesses/table?by=activity:sector&by=region&statistic={GROWTH}&as=chart"
        ).text
        assert "<h1>Growth of turnover since the period before by" in answer

    def test_risk_and_utility_are_those_of_the_sums(self, public: TestClient) -> None:
        body = ask(public, by=[SECTORS, "size"], statistics=[GROWTH])
        now, before = body["sums"]
        assert (now["measure"], before["measure"], now["p"]) == ("turnover", "turnover_before", 5.0)
        outsider, second, told = now["attackers"]
        assert outsider["attacker"] == "outsider"
        assert told["risk"] > second["risk"] > outsider["risk"] > 0
        # Nobody is certain within 5 percent: what is left open is wider than that, even with the direction.
        assert 0.95 * told["high"] > 1.05 * told["low"]
        assert sum(size["cells"] for size in now["errors"]) <= 50
        assert now["growth"] > 0
        assert before["growth"] is None
        alone = public.get(
            "/api/v1/tables?dataset=businesses&by=size&measure=turnover&include=risk"
        ).json()
        assert "sums" not in alone
        assert ask(public, by=["size"])["sums"] == []

    def test_the_page_shows_the_figures_of_sums_and_not_those_of_counts(
        self, public: TestClient
    ) -> None:
        page = public.get(
            "/datasets/businesses/table?by=activity:sector&statistic=sum:turnover"
        ).text
        assert "What can be said about the largest contributor of a cell" in page
        assert "for the largest contributor of a typical cell" in page
        assert "Every contribution to a sum was changed once" in page
        assert "Risk of disclosure" not in page
        both = public.get(
            "/datasets/businesses/table?by=activity:sector&statistic=count&statistic=sum:turnover"
        ).text
        assert "Risk of disclosure" in both
        french = public.get(
            "/fr/datasets/businesses/table?by=activity:sector&statistic=sum:turnover"
        ).text
        assert "Ce que l’on peut dire du premier contributeur d’une case" in french


class TestQuantiles:
    def test_the_median_age_comes_from_the_protected_histogram(self, bundled: TestClient) -> None:
        words = {"dataset": "demo", "by": ["region"]}
        body = bundled.post(
            "/api/v1/tables?include=bounds", json={**words, "statistics": ["median:age"]}
        ).json()
        assert body["decision"] == "answer"
        assert body["table"]["extension"]["unit"] == "years"
        counts = bundled.post(
            "/api/v1/tables", json={"dataset": "demo", "by": ["region", "age"]}
        ).json()["table"]
        table = np.array(counts["value"]).reshape(counts["size"])
        for row, median, low, high in zip(
            table, body["table"]["value"], *body["bounds"].values(), strict=True
        ):
            band = int(np.argmax(2 * np.cumsum(row) >= row.sum()))
            assert 5 * band <= median <= 5 * band + 5
            assert low <= median
            assert high is None or median <= high

    def test_the_classes_count_as_one_more_variable(self, asker: TestClient) -> None:
        by = [SECTORS, "region", "area"]
        body = ask(asker, by=by, statistics=["median:size"])
        assert body["reasons"][0]["text"] == "The table has 4 variables; at most 3 are allowed."


def test_what_a_table_needs_grows_with_its_statistics(service: TableService) -> None:
    dataset = service.dataset("businesses")
    words: dict[str, Any] = {"dataset": "businesses", "by": ["region"]}

    def cells(*statistics: str) -> int:
        query = TableQuery.from_mapping({**words, "statistics": statistics})
        return estimate(query, dataset).cells

    once = estimate(TableQuery.from_mapping(words), dataset).cells
    assert cells("mean:turnover", "sum:wages") == 3 * once
    assert cells("median:size") == 6 * once


class TestOtherDoors:
    def test_the_client_asks_for_statistics(self, address: str) -> None:
        client = Client(address)
        answer = client.table("businesses", ["activity:sector"], statistics=["count", GROWTH])
        cells = list(answer.cells())
        assert {cell.unit for cell in cells} == {"businesses", "%"}
        assert [figures["measure"] for figures in answer.sums] == ["turnover", "turnover_before"]
        alone = client.table("businesses", ["activity:sector"], measure="wages")
        assert {cell.unit for cell in alone.cells()} == {"thousand euro"}
        assert client.hint("businesses", ["activity:sector"], statistics=["mean:wages"]).passes

    def test_the_command_line_asks_for_a_mean(self, register: Path) -> None:
        words = ["table", "--data", str(register), "--dataset", "businesses"]
        words += ["--by", "activity:sector", "--measure", "turnover", "--statistic", "mean"]
        result = CliRunner().invoke(command_line, words)
        assert result.exit_code == 0, result.output
        said = " ".join(result.output.split())
        assert "Mean turnover per business (thousand euro)" in said
        assert "Expected errors of Turnover" in said
        assert re.search(r"The second largest contributor.*Risk at most 0\.\d+", said)
        result = CliRunner().invoke(command_line, [*words, "--weight", "weight"])
        assert result.exit_code == 3
        assert "weighted by 'weight'" in result.output

    def test_sums_are_kept_with_their_words(self, service: TableService) -> None:
        """What a job keeps is the same answer when it is read again."""
        query = TableQuery.from_mapping(
            {"dataset": "businesses", "by": [SECTORS], "statistics": ["count", "mean:wages"]}
        )
        kept = service.answer(query)
        read = read_decision(write_decision(kept))
        assert read.release is not None
        assert kept.release is not None
        assert read.release.statistics == kept.release.statistics
        assert read.release.axes == kept.release.axes
        assert JsonStat().write(read.release) == JsonStat().write(kept.release)
        assert (read.release.label, read.release.additive) == ("Statistic", False)
        assert read.sums == kept.sums
        assert len(kept.sums) == 1


class TestPages:
    def test_the_form_offers_what_can_be_shown(self, asker: TestClient) -> None:
        page = asker.get("/datasets/businesses?by=activity:sector&statistic=mean:turnover").text
        assert "What the cells show" in page
        assert re.search(r'<option value="mean:turnover" selected>', page)
        assert '<option value="growth:turnover:turnover_before">' in page
        assert 'value="growth:turnover_before' not in page

    def test_an_answer_says_what_it_shows_in_which_unit(self, asker: TestClient) -> None:
        page = asker.get(
            "/datasets/businesses/table?by=activity:sector&by=size&statistic=mean:turnover"
        ).text
        assert "<h1>Mean turnover per business by economic activity (sector) and size class" in page
        assert "Unit: thousand euro" in page
        assert "view-show" not in page  # a percentage of means has no meaning

    def test_each_statistic_has_its_own_decimals(self, asker: TestClient) -> None:
        page = asker.get(
            "/datasets/businesses/table?by=activity:sector&statistic=count&statistic=mean:turnover"
        ).text
        table = page.partition('class="after"')[0]
        rows = re.findall(r'<th scope="row">.*?</tr>', table, flags=re.DOTALL)
        cells = [re.findall(r"<td>([^<]*)</td>", row) for row in rows]
        assert all(re.fullmatch(r"[\d,]+", count) for count, _ in cells)
        assert all(re.fullmatch(r"[\d,]+\.\d", mean) for _, mean in cells)

    def test_a_chart_shows_one_statistic_at_a_time(self, asker: TestClient) -> None:
        base = "/datasets/businesses/table?by=activity:sector&statistic=count&statistic=mean:wages"
        first = asker.get(f"{base}&as=chart").text
        assert "Statistic: Number of businesses" in first
        assert "Statistic: Mean" not in first
        second = asker.get(f"{base}&as=chart&layer=statistic:mean:wages").text
        assert "Statistic: Mean wages per business (thousand euro)" in second

    def test_an_unprotected_measure_leads_back_to_counts(self, asker: TestClient) -> None:
        page = asker.get("/datasets/businesses/table?by=activity:sector&measure=profit").text
        assert "There are no protected sums of" in page
        assert "Count businesses instead" in page

    def test_only_the_first_number_of_a_heading_has_a_capital(self, asker: TestClient) -> None:
        path = f"/datasets/businesses/table?by=activity:sector&statistic=sum:turnover&statistic={GROWTH}"
        assert "Turnover and growth of turnover since" in asker.get(path).text
        assert " et évolution de chiffre d&#39;affaires " in asker.get(f"/fr{path}").text

    def test_the_page_speaks_french(self, asker: TestClient) -> None:
        page = asker.get(
            "/fr/datasets/businesses/table?by=activity:sector&statistic=mean:turnover"
        ).text
        assert "Moyenne de" in page
        assert "Unité" in page


@pytest.mark.browser
def test_turnover_by_activity_and_region_as_growth_since_last_year_as_a_chart(
    browser: Browser, address: str
) -> None:
    with visit(browser, address) as page:
        page.goto("/")
        register = page.get_by_role("link", name="Demo business register", exact=True)
        arrive(page, register, "**/datasets/businesses")
        page.goto("/datasets/businesses?by=activity:sector&by=region")
        page.get_by_label("Number 1").select_option(GROWTH)
        page.wait_for_url("**statistic=**")
        page.locator("#foresight", has_text="Likely answered.").wait_for()
        page.get_by_role("link", name="Make the table").click()
        page.wait_for_url("**/table?**")
        assert f"statistic={GROWTH}" in page.url
        expect(page.locator("h1")).to_contain_text("Growth of turnover since the period before")
        cells = page.locator(".data tbody td").all_inner_texts()
        assert all(re.fullmatch(r"\u2212?[\d,]+\.\d", text.strip()) for text in cells)
        page.get_by_role("link", name="Chart").click()
        expect(page.locator("figure.chart rect").nth(5)).to_be_visible()
        expect(page.locator("#chart-caption")).to_contain_text("Unit: %")


@pytest.mark.browser
@pytest.mark.parametrize("look", ["light", "dark", "phone"])
def test_figures_of_sums_shut_nobody_out(browser: Browser, address: str, look: str) -> None:
    path = "/datasets/businesses/table?by=activity:sector&by=size&statistic=sum:turnover"
    width = 390 if look == "phone" else 1280
    with context_of(
        browser,
        base_url=address,
        bypass_csp=True,
        viewport={"width": width, "height": 900},
        color_scheme="dark" if look == "dark" else "light",
    ) as context:
        page = context.new_page()
        assert violations(page, f"/fr{path}" if look == "phone" else path) == []
        expect(page.locator(".sum-figures table")).to_have_count(1)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
