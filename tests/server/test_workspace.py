"""The workspace of a dataset whose questions are free: a table at once, and every choice a link and a step."""

from __future__ import annotations

import csv
import gzip
import html
import io
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlsplit

import pytest
from fastapi.testclient import TestClient

from browsing import expect, visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser

OPEN = "/datasets/demo"
MOST = 60_000  # bytes of the first load, compressed


def test_a_dataset_opens_with_a_table_and_every_choice_is_a_link(bundled: TestClient) -> None:
    page = bundled.get(OPEN).text
    assert '<table class="data">' in page
    links = [html.unescape(a) for a in re.findall(r'href="([^"]+)"[^>]*data-apply', page)]
    assert len(links) > 20
    for link in links:
        answer = bundled.get(link)
        assert answer.status_code == 200, link
        assert 'id="answer"' in answer.text


def test_a_variable_stands_where_a_link_has_put_it(bundled: TestClient) -> None:
    page = bundled.get(f"{OPEN}?by=age:ten-year&totals=on").text
    sex = page[page.index('id="spare-sex"') :]
    ways = {
        zone: html.unescape(re.search(rf'href="([^"]+)" data-to="{zone}"', sex)[1])  # type: ignore[index]
        for zone in ("rows", "columns", "layers")
    }
    for zone, way in ways.items():
        there = bundled.get(way).text
        assert 'id="in-sex"' in there.split(f'data-zone="{zone}"')[1].split("<section")[0], zone
    assert ways["columns"] == f"{OPEN}?by=age:ten-year&by=sex&totals=on"


@pytest.mark.parametrize(
    ("wanted", "found"), [("foreign", "Citizenship"), ("female", "Sex"), ("merrow", "Upper Merrow")]
)
def test_the_search_knows_the_words_of_people(bundled: TestClient, wanted: str, found: str) -> None:
    assert found in bundled.get(f"{OPEN}/find?q={wanted}").text
    assert found in bundled.get(f"{OPEN}?q={wanted}&by=age").text


def test_where_questions_are_protected_one_by_one_nothing_is_asked_unasked(
    client: TestClient,
) -> None:
    page = client.get(f"{OPEN}?by=sex").text
    assert '<table class="data">' not in page
    assert "Make the table" in page


def test_a_large_table_waits_for_a_button_and_too_large_a_one_is_refused(
    bundled: TestClient,
) -> None:
    large = bundled.get(f"{OPEN}?by=area&by=age&by=occupation").text
    assert "This table is large" in large
    assert '<table class="data">' not in large
    refused = bundled.get(f"{OPEN}?by=area&by=age&by=occupation&by=education").text
    assert "This table cannot be shown" in refused


def test_the_first_load_is_small(bundled: TestClient) -> None:
    page = bundled.get(OPEN).text
    files = set(re.findall(r'"(/static/[^"]+)"', page))
    parts = [page.encode(), *(bundled.get(html.unescape(name)).content for name in files)]
    assert len(files) > 5
    assert sum(len(gzip.compress(part, 5)) for part in parts) <= MOST


def test_french_pages_have_french_labels_and_numbers(bundled: TestClient) -> None:
    page = bundled.get(f"/fr{OPEN}?by=age:life-stage&by=sex&where=region:1&totals=on").text
    text = re.sub(r"<[^>]+>", " ", page)
    for label in (
        "Âge (étape de la vie) × sexe",
        "Enfants (0 à 9)",
        "Femmes",
        "Recensement de démonstration",
    ):
        assert label in text
    english = r"\b(Age|Sex|Female|Male|Children|people|Demo census|Synthetic)\b"
    assert re.findall(english, re.sub(r"(?s)<code.*?</code>", "", page).split("</form>")[0]) == []
    assert 'lang="en"' not in page.split('id="answer"')[1].split("How")[0].replace(
        'hreflang="en"', ""
    )
    assert re.search(r">\d\u202f\d{3}<", page)
    assert "Femmes" in bundled.get(f"/fr{OPEN}/find?q=femmes").text
    english_page = bundled.get(f"{OPEN}?by=age:life-stage&by=sex&totals=on").text
    assert re.search(r">\d,\d{3}<", english_page)
    assert "\u202f" not in english_page


def test_a_map_shows_each_place_once_with_its_figure_and_classes_wider_than_the_margin(
    bundled: TestClient,
) -> None:
    page = bundled.get(f"{OPEN}?by=area:district&by=sex&totals=on&as=map").text
    asked = "/api/v1/tables?dataset=demo&by=area:district&by=sex&totals=on"
    table = bundled.get(asked).json()["table"]
    shapes = dict(re.findall(r'data-code="([^"]+)"><title>[^<]*: ([\d,]+)</title></path>', page))
    codes = table["dimension"]["area"]["category"]["index"]
    sexes = len(table["dimension"]["sex"]["category"]["index"])
    assert len(shapes) == len(codes) - 1 == 14  # all but the total
    values = {c: table["value"][i * sexes + sexes - 1] for i, c in enumerate(codes)}
    assert {c: int(v.replace(",", "")) for c, v in shapes.items()} == {c: values[c] for c in shapes}
    assert "twice the margin of error" in page
    men = bundled.get(
        f"{OPEN}?by=area:district&by=sex&totals=on&as=map&layer=sex:1&show=row-percent"
    ).text
    assert re.search(r"Sex: Male", men)
    plain = bundled.get(f"{OPEN}?by=age&as=map").text
    assert '<table class="data">' in plain  # nothing to be mapped
    assert "data-map" not in plain


def test_areas_stand_by_district_in_tables_and_beside_a_map_with_the_borders_of_districts(
    bundled: TestClient,
) -> None:
    asked = "/api/v1/datasets/demo/variables/area/categories?limit=1000"
    names = {c["label"]: c["code"] for c in bundled.get(asked).json()["categories"]}
    districts = bundled.get(f"{asked}&level=district").json()["categories"]

    def blocks(view: str) -> list[tuple[str, list[str], list[int]]]:
        page = html.unescape(bundled.get(f"{OPEN}?by=area&totals=on{view}").text)
        found = []
        for body in re.findall(r"<tbody>(.*?)</tbody>", page, re.DOTALL):
            heading = re.search(r"District: ([^<\n]+)", body)
            rows = re.findall(r'<th scope="row"[^>]*>([^<]+)</th>\s*<td[^>]*>([\d,]+)', body)
            figures = [int(figure.replace(",", "")) for _, figure in rows]
            found.append((heading[1] if heading else "", [name for name, _ in rows], figures))
        return found

    for view in ("", "&as=map"):
        *parts, (nowhere, total, _) = blocks(view)
        assert (nowhere, total) == ("", ["Total"])
        assert [label for label, _, _ in parts] == [c["label"] for c in districts]
        for (_, rows, figures), district in zip(parts, districts, strict=True):
            codes = [names[row] for row in rows]
            assert all(code.startswith(f"{district['code']}-") for code in codes)
            # In the order of the classification, or the largest first beside a map.
            assert codes == sorted(codes) if not view else figures == sorted(figures)[::-1]
        assert sum(len(rows) for _, rows, _ in parts) == len(names) == 158
    # Sorted by a reader, all areas stand in one list.
    (one,) = blocks("&as=map&sort=-value")
    assert one[2][:-1] == sorted(one[2][:-1], reverse=True)
    drawn = bundled.get(f"{OPEN}?by=area&as=map").text
    assert drawn.count('class="border"') == 1
    assert re.findall(r'class="place"[^>]*>([^<]+)<', drawn) == [c["label"] for c in districts]
    assert 'class="border"' not in bundled.get(f"{OPEN}?by=area:district&as=map").text


def test_differences_within_the_margin_are_marked_and_files_hold_what_is_shown(
    bundled: TestClient,
) -> None:
    page = bundled.get(f"{OPEN}?by=age&by=sex&totals=on&show=difference").text
    margin = int(re.search(r"rarely more than (\d+) off", page)[1])  # type: ignore[index]
    cells = re.findall(r'<td(?: class="([^"]*)")?>([\u2212\d,]+)', page)
    numbers = [(int(t.replace(",", "").replace("\u2212", "-")), "b" in c.split()) for c, t in cells]
    assert len(numbers) == 22 * 3
    for place, (value, marked) in enumerate(numbers):
        first = place % 3 == 0
        assert marked == (not first and abs(value) <= margin)
    link = re.search(r'id="get-csv" href="([^"]+)"', page)[1]  # type: ignore[index]
    lines = bundled.get(html.unescape(link)).text.splitlines()[1:]
    shown = [re.findall(r"(-?\d+)", line.split(",", 4)[-1])[0] for line in lines]
    assert sorted(map(int, shown)) == sorted(value for value, _ in numbers)


def test_shaded_cells_rise_with_their_figures(bundled: TestClient) -> None:
    page = bundled.get(f"{OPEN}?by=age&by=sex&totals=on&heat=on").text
    cells = re.findall(r'<td class=" ?h(\d)">([\d,]+)', page)
    assert len(cells) == 21 * 2
    ranked = sorted((int(text.replace(",", "")), int(shade)) for shade, text in cells)
    assert [shade for _, shade in ranked] == sorted(shade for _, shade in ranked)
    assert len({shade for _, shade in ranked}) > 2


def test_sites_that_the_policy_names_alone_may_frame_a_table_and_none_those_of_records(
    bundled: TestClient, client: TestClient
) -> None:
    framed = bundled.get(f"{OPEN}/embed?by=age&by=sex&as=chart")
    assert framed.status_code == 200
    assert "frame-ancestors https://news.example;" in framed.headers["content-security-policy"]
    assert "<svg" in framed.text
    page = bundled.get(f"{OPEN}?by=age")
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert "&lt;iframe" in page.text
    refused = client.get(f"{OPEN}/embed?by=age")
    assert refused.status_code == 404
    assert "frame-ancestors 'none'" in refused.headers["content-security-policy"]
    assert "iframe" not in client.get(f"{OPEN}/table?by=sex").text


@pytest.mark.browser
def test_maps_and_charts_are_linked_saved_and_taken_away(browser: Browser, live: str) -> None:
    with visit(browser, live, viewport={"width": 1440, "height": 900}) as page:
        page.goto(f"{OPEN}?by=area:district&totals=on&as=map")
        expect(page.locator("[data-pointed]")).to_contain_text("arrow keys")
        page.locator("#map").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        expect(page.locator("path.here")).to_have_attribute("data-code", "1-02")
        expect(page.locator("tr:has(td.here)")).to_have_attribute("data-code", "1-02")
        expect(page.locator("[data-pointed]")).to_contain_text("Ardenshire: ")
        for kind in ("svg", "png"):
            with page.expect_download() as waiting:
                page.locator(f"[data-picture={kind}]").click()
            data = waiting.value.path().read_bytes()
            assert data[:4] in (b"<svg", b"\x89PNG")
            assert len(data) > 10_000
        page.get_by_label("Name of this table").fill("My map")
        page.get_by_role("button", name="Save", exact=True).click()
        page.goto(OPEN)
        page.get_by_role("link", name="My map").click()
        expect(page.locator("#map")).to_be_visible()
        page.get_by_role("button", name="Remove My map").click()
        expect(page.get_by_role("link", name="My map")).to_have_count(0)


@pytest.mark.browser
def test_a_pyramid_of_foreign_citizens_as_shares_in_a_workbook_takes_eight_actions(
    browser: Browser, live: str
) -> None:
    with visit(browser, live, viewport={"width": 1440, "height": 900}) as page:
        page.goto("/en/")
        page.get_by_role("link", name="Demo census", exact=True).click()  # 1
        find = page.get_by_label("Find a variable or a category")
        for words, place in (("foreign", "Foreign citizens"), ("upper merrow", "Upper Merrow")):
            find.fill(words)  # 2 and 4
            page.locator("#found a", has_text=place).first.click()  # 3 and 5
            expect(page.locator(".chip.filter", has_text=place)).to_be_visible()
        page.get_by_role("link", name="Chart").click()  # 6
        expect(page.locator("figure.pyramid")).to_be_visible()
        page.get_by_label("Show", exact=True).select_option("whole-percent")  # 7
        expect(page.locator("figure.pyramid")).to_contain_text("%")
        with page.expect_download() as waiting:
            page.locator("#get-xlsx").click()  # 8
        assert waiting.value.suggested_filename.endswith(".xlsx")
        assert "show=whole-percent" in waiting.value.url


@pytest.mark.browser
def test_a_two_way_table_of_ones_own_takes_three_actions(browser: Browser, live: str) -> None:
    with visit(browser, live, viewport={"width": 1440, "height": 900}) as page:
        page.goto("/en/")
        page.get_by_role("link", name="Demo census", exact=True).click()  # 1
        expect(page.locator("h1")).to_contain_text("by sex")
        page.locator(".chip[data-variable=education]").drag_to(
            page.locator("[data-zone=rows]")
        )  # 2
        expect(page.locator("[data-zone=rows] #in-education")).to_be_visible()
        page.locator("#in-age summary").press("Delete")  # 3
        expect(page.locator("#spare-age")).to_be_visible()
        expect(page.locator("h1")).to_contain_text("Educational attainment by sex")
        expect(page.locator("tbody tr").first).to_be_visible()


@pytest.mark.browser
def test_a_table_grows_live_by_keys_drag_and_form_and_steps_back(
    browser: Browser, live: str
) -> None:
    with visit(browser, live, viewport={"width": 1440, "height": 900}) as page:
        page.goto(OPEN)
        first = page.locator("tbody td").first.bounding_box()
        assert first is not None
        assert first["y"] < 200
        start = page.url
        page.locator("#spare-region summary").focus()
        page.keyboard.press("c")
        expect(page.locator("#in-region")).to_be_visible()
        expect(page.locator("h1")).to_contain_text("region")
        assert "by=region" in page.evaluate("location.href")
        page.locator(".chip[data-variable=citizenship]").drag_to(page.locator("[data-zone=layers]"))
        expect(page.locator("[data-zone=layers] #in-citizenship")).to_be_visible()
        page.get_by_role("button", name="Undo").click()
        expect(page.locator("#spare-citizenship")).to_be_visible()
        page.get_by_role("button", name="Redo").click()
        expect(page.locator("#in-citizenship")).to_be_visible()
        page.go_back()
        page.go_back()
        expect(page.locator("#in-region")).to_have_count(0)
        assert page.evaluate("location.href") == start
        page.get_by_label("Find a variable or a category").fill("foreign")
        expect(page.locator("#found-citizenship")).to_be_visible()
        page.get_by_role("checkbox", name="Show a total for each variable").uncheck()
        expect(page.locator("tbody tr.t")).to_have_count(0)
        assert "totals" not in page.evaluate("location.search")


@pytest.mark.browser
def test_a_phone_without_scripts_shows_numbers_first_and_links_do_the_rest(
    browser: Browser, live: str
) -> None:
    phone = {"width": 390, "height": 844}
    with visit(browser, live, viewport=phone, java_script_enabled=False) as page:
        page.goto(OPEN)
        first = page.locator("tbody td").first.bounding_box()
        assert first is not None
        assert first["y"] < 400
        page.locator("#spare-region summary").click()
        page.locator("#spare-region a[data-to=columns]").click()
        page.wait_for_url(re.compile("by=region"))
        expect(page.locator("#in-region")).to_be_visible()


@pytest.mark.browser
def test_paper_shows_the_whole_table_and_the_chart_on_its_first_page(
    browser: Browser, live: str
) -> None:
    paper = {"width": 700, "height": 1000}  # A4 between its margins
    asked = "by=age:ten-year&by=sex&by=household_size:broad&totals=on"
    with visit(browser, live, viewport=paper) as page:
        page.emulate_media(media="print")
        for path in (f"{OPEN}/table?{asked}", f"{OPEN}?{asked}"):
            page.goto(path)
            sizes = page.evaluate(
                "(t => [t.getBoundingClientRect().right, t.parentElement.scrollWidth, "
                "t.parentElement.clientWidth])(document.querySelector('table.data'))"
            )
            broad = page.locator(".scroll.broad").count()
            assert sizes[0] <= (1000 if broad else 700), path
            # Nobody can open a box on paper: what was done to the numbers is printed.
            assert not page.locator("#trust").evaluate("box => box.open"), path
            expect(page.locator("#trust .what-was-done p").first).to_be_visible()
            expect(page.locator("#trust #bounds")).to_be_hidden()
            # Nothing to press is printed, and the names of rows are not broken into letters.
            expect(page.locator(".view")).to_be_hidden()
            name = page.locator("table.data tbody th[scope=row]").first.bounding_box()
            assert name is not None
            assert name["width"] > 2 * name["height"], path
        page.emulate_media(media="screen")
        expect(page.locator("#trust .what-was-done p").first).to_be_hidden()
        page.emulate_media(media="print")
        page.goto(f"{OPEN}?by=age:ten-year&by=sex&as=chart")
        chart = page.locator(".chart svg[role=img]").first.bounding_box()
        assert chart is not None
        assert chart["y"] + chart["height"] <= 1000


@pytest.mark.browser
@pytest.mark.parametrize(
    ("path", "width", "height", "most"),
    [
        (OPEN, 1440, 900, 200),
        (OPEN, 390, 800, 400),
        ("/datasets/demo/table?by=age&by=sex&totals=on", 1440, 900, 200),
        ("/de/datasets/demo/table?by=age&by=sex&totals=on", 1440, 900, 200),
        ("/datasets/demo/table?by=age&by=sex&totals=on", 390, 800, 400),
        (f"{OPEN}?by=age&by=sex&totals=on&heat=on&margins=off&names=both", 390, 800, 400),
        ("/datasets/demo/embed?by=age&by=sex", 390, 800, 200),
    ],
)
def test_the_first_number_stands_near_the_top(
    browser: Browser, live: str, path: str, width: int, height: int, most: int
) -> None:
    with visit(browser, live, viewport={"width": width, "height": height}) as page:
        page.goto(path)
        first = page.locator("table.data tbody td").first
        expect(first).to_be_visible()
        box = first.bounding_box()
        assert box is not None
        assert box["y"] <= most


def test_an_index_makes_the_first_column_100_and_files_hold_it(bundled: TestClient) -> None:
    query = "by=age&by=region&totals=on"
    plain = csv_of(bundled, query)
    index = csv_of(bundled, f"{query}&show=index")
    assert len(plain) == len(index)
    first = {row["age"]: int(row["value"]) for row in plain if row["region"] == "1"}
    for before, after in zip(plain, index, strict=True):
        base = first[before["age"]]
        if base > 0:
            assert float(after["value"]) == round(1000 * int(before["value"]) / base) / 10
        else:
            assert after["value"] == ""
    page = bundled.get(f"{OPEN}?{query}&show=index").text
    assert "Index, first column = 100" in page
    assert ">100.0" in page
    # A chart or a table without columns has no first column to compare with.
    for other in ("by=age&show=index", f"{query}&show=index&as=chart"):
        assert "Index, first column = 100</caption" not in bundled.get(f"{OPEN}?{other}").text


def csv_of(client: TestClient, query: str) -> list[dict[str, str]]:
    answer = client.get(f"/api/v1/tables?dataset=demo&{query}&format=csv")
    assert answer.status_code == 200, answer.text
    return list(csv.DictReader(io.StringIO(answer.text.lstrip("\ufeff"))))


def test_blocks_of_rows_are_folded_to_their_totals_by_plain_links(bundled: TestClient) -> None:
    query = "by=region&by=age&by=sex&totals=on&pivot=region:rows&pivot=age:rows&pivot=sex:columns"
    page = bundled.get(f"{OPEN}?{query}").text
    links = re.findall(r'id="fold-(region:[^"]*)" href="([^"]*)"', page)
    assert [key for key, _ in links] == ["region:1", "region:2", "region:_T"]
    rows = page.count('<th scope="row"')
    folded = bundled.get(html.unescape(links[0][1])).text
    assert folded.count('<th scope="row"') == rows - 21
    # The block is still there, with its total and a way to open it.
    assert 'aria-expanded="false">Expand' in folded
    assert folded.count('aria-expanded="true">Collapse') == 2
    every = re.search(r'id="fold-all" href="([^"]*)"', page)
    assert every is not None
    all_folded = bundled.get(html.unescape(every[1])).text
    assert all_folded.count('aria-expanded="false">Expand') == 3
    back = re.search(r'id="unfold" href="([^"]*)"', all_folded)
    assert back is not None
    assert "fold=" not in back[1]
    # What cannot be folded is passed over; what is no block is a mistake.
    assert bundled.get(f"{OPEN}?by=age&by=sex&fold=region:1").status_code == 200
    assert bundled.get(f"{OPEN}?by=age&by=sex&fold=nonsense").status_code == 400


@pytest.mark.parametrize(
    ("points", "ends", "labels"),
    [
        ("0, 15, 65", False, ["0 to 14", "15 to 64", "65+"]),
        ("65 15", False, ["0 to 14", "15 to 64", "65+"]),
        ("90,95", True, ["0 to 89", "90 to 94", "95+"]),
        ("10", True, ["0 to 4", "5 to 9", "10+"]),
    ],
)
def test_cut_points_become_own_groups_of_the_question(
    bundled: TestClient, points: str, ends: bool, labels: list[str]
) -> None:
    fields = {"by": ["age", "sex"], "totals": "on", "cut.age": points, "show": "row-percent"}
    if ends:
        fields["ends.age"] = "on"
    answer = bundled.get(OPEN, params=fields, follow_redirects=False)
    assert answer.status_code == 303
    place = answer.headers["location"]
    asked = parse_qsl(urlsplit(place).query)
    assert [value.partition("=")[0] for name, value in asked if name == "group"] == [
        f"age:{label}" for label in labels
    ]
    assert ("show", "row-percent") in asked
    assert not [name for name, _ in asked if name.startswith(("cut", "ends"))]
    page = bundled.get(place).text
    for label in labels:
        assert f">{label}</th>" in page
    # Nobody is lost or counted twice: all codes of the variable stand in one group each.
    codes = [code for name, value in asked if name == "group" for code in codes_of(value)]
    assert sorted(codes, key=int) == [str(code) for code in range(1, 22)]


def codes_of(group: str) -> list[str]:
    listed = group.rpartition("=")[2]
    found: list[str] = []
    for part in listed.split(","):
        low, dots, high = part.partition("..")
        found += [str(n) for n in range(int(low), int(high) + 1)] if dots else [low]
    return found


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("by=age&cut.age=17", "15 or 20"),
        ("by=age&cut.age=x", "Cut points are numbers"),
        ("by=age&cut.age=0", "above 0"),
        ("by=age&cut.age=10,20,30&ends.age=on", "one point or two"),
        ("by=sex&cut.sex=1", "no classes of a number"),
        ("by=sex&cut.age=15", "not in the table"),
        ("by=sex&cut.agge=15", "agge"),
    ],
)
def test_a_mistake_in_cut_points_is_one_sentence(
    bundled: TestClient, query: str, words: str
) -> None:
    answer = bundled.get(f"{OPEN}?{query}", headers={"Accept": "text/html"})
    assert answer.status_code == 200  # the table stays, and the sentence stands in the panel
    assert words in html.unescape(re.search(r'role="alert">(.*?)<', answer.text)[1])  # type: ignore[index]


def test_cut_points_are_offered_where_a_variable_counts_something(bundled: TestClient) -> None:
    page = bundled.get(f"{OPEN}?by=age&by=sex").text
    assert 'name="cut.age"' in page
    assert 'name="cut.sex"' not in page
