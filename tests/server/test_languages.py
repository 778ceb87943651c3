"""Every sentence in every language, and the language of a page in its address alone."""

from __future__ import annotations

import importlib.util
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from babel.messages.catalog import Catalog
from fastapi.testclient import TestClient

from lustrum.demo import description_path
from lustrum.local import local_service
from lustrum.model import Axis, CellStatus, Dataset, TableQuery
from lustrum.model.parameters import spec_from_words
from lustrum.model.plugins import load
from lustrum.model.text import Message, say, say_many
from lustrum.server import create_app
from lustrum.server.http.languages import LOCALES, in_language, languages
from lustrum.server.http.templating import labels_language
from lustrum.server.settings import Settings
from lustrum.server.table_view.titles import title
from lustrum.tabulate import read_description
from lustrum.testing import example_tables
from protect.test_conformance import SPECS

SCRIPT = Path(__file__).parents[2] / "scripts" / "translations.py"
THIN, WIDE = "\u202f", "\u00a0"
QUESTION = "by=age:ten-year&by=sex&totals=on"
TABLE = f"/datasets/demo/table?{QUESTION}"
PAGES = {
    "home": "/",
    "search": "/?q=nothing-like-it",
    "found": "/?q=census",
    "accessibility": "/accessibility",
    "builder": "/datasets/demo",
    "filled": "/datasets/demo?by=area&by=age&codes=age:1..4&where=region:1",
    "refused hint": "/datasets/demo?by=area&by=age",
    "about": "/datasets/demo/about",
    "search about": "/datasets/demo/about?q=calder",
    "variable": "/datasets/demo/variables/age?level=life-stage",
    "chooser": "/datasets/demo?by=sex&where=area:1-01-001&tree=where:area",
    "answer": TABLE,
    "percentages": f"{TABLE}&show=row-percent&bounds=on&empty=hide&margins=off",
    "chart": f"{TABLE}&as=chart&bounds=on",
    "three variables": "/datasets/demo/table?by=age:life-stage&by=sex&by=employment&totals=on",
    "codes": "/datasets/demo/table?by=age&codes=age:1..4&totals=on&where=region:1",
    "pages": "/datasets/demo/table?by=area&by=sex",
    "refusal": "/datasets/demo/table?by=area&by=age",
    "no way out": "/datasets/demo/table?by=sex&by=age&by=region&by=education",
    "no variable": "/datasets/demo?where=sex:1",
    "mistake": "/datasets/demo/table?by=agge",
    "range": "/datasets/demo/table?by=age&codes=age:9..1",
    "parameter": "/?wrong=1",
    "not found": "/nothing",
    "no dataset": "/datasets/nothing",
}
OTHERS = ("de", "fr")
SAID = ("aria-label", "title", "alt", "placeholder")


class Text(HTMLParser):
    """What a page says, piece by piece, and where it leads."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.pieces: list[str] = []
        self.links: list[dict[str, str]] = []
        self.html: dict[str, str] = {}
        self._open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        own = {name: value or "" for name, value in attrs}
        self._open.append(tag)
        if tag == "html":
            self.html = own
        if tag in ("a", "form") or own.get("rel") == "alternate":
            self.links.append(own)
        own.pop("data-key", None)
        self.pieces += [v for k, v in own.items() if k in SAID or k.startswith("data-")]

    def handle_data(self, data: str) -> None:
        text = re.sub(r"[ \n\t]+", " ", data).strip(" ")
        if text and self._open[-1] not in ("style", "script", "code"):
            self.pieces.append(text)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass


@pytest.fixture(scope="module")
def script() -> Any:
    """The script that keeps the files of translations up to date."""
    spec = importlib.util.spec_from_file_location("translations", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def sentences(script: Any) -> Catalog:
    """Every sentence of the code."""
    found: Catalog = script.collected()
    return found


@pytest.fixture(scope="module")
def waiting(root: Path, tmp_path_factory: pytest.TempPathFactory) -> TestClient:
    """A server that puts every table off and never begins with it."""
    copy = tmp_path_factory.mktemp("waiting") / "data"
    shutil.copytree(root, copy, ignore=shutil.ignore_patterns("jobs.sqlite*"))
    return TestClient(
        create_app(local_service(copy, workers=1), Settings(background_cells=1, rate="")),
        base_url="http://lustrum.test",
    )


@pytest.mark.parametrize("path", sorted(LOCALES.glob("*.po")), ids=lambda path: path.stem)
def test_every_sentence_is_translated_with_the_same_names_in_brackets(
    path: Path, script: Any, sentences: Catalog
) -> None:
    assert list(script.missing(script.read(path), sentences)) == []
    assert path.read_text("utf-8") == script.written(script.read(path))


def test_a_sentence_that_is_missing_or_has_other_names_is_found(script: Any) -> None:
    template, own = Catalog(), Catalog(locale="fr")
    for one in ("A {x}", "B {x}", "C", ("{number} d", "{number} ds")):
        template.add(one)
    own.add("A {x}", "a {x}")
    own.add("B {x}", "b {y}")
    own.add(("{number} d", "{number} ds"), ("un d", "{number} ds"))
    problems = list(script.missing(own, template))
    assert problems == ["other names in brackets: 'b {y}'", "not translated: 'C'"]
    half = Catalog(locale="fr")
    half.add(("{number} d", "{number} ds"), ("un d", ""))
    assert "not translated: '{number} d'" in list(script.missing(half, template))


def test_french_has_the_spaces_and_quotes_of_french() -> None:
    for text in _texts(LOCALES / "fr.po"):
        assert not re.search(r" [;:?!»]|« |[^\s\u00a0\u202f?][;?!](\s|$)", text), text
        assert "'" not in text, text
        assert '"' not in text.replace('{{"', ""), text


def test_german_has_the_quotes_and_spaces_of_german() -> None:
    for text in _texts(LOCALES / "de.po"):
        assert not re.search(r"[\d}s)] %(?!\()|± \{", text), text
        assert text.count("„") == text.count("“"), text
        assert not re.search("['\"«»]", text.replace('{{"', "")), text


def _texts(path: Path) -> Iterator[str]:
    own = languages()[path.stem].translations._catalog
    yield from (text for key, text in own.items() if key and isinstance(text, str))


def test_the_singular_goes_by_the_rules_of_the_language() -> None:
    def most(code: str, number: int) -> Any:
        one = "At most {number} variable and {cells:,} cells in a table."
        many = "At most {number} variables and {cells:,} cells in a table."
        return languages()[code].say(say_many(one, many, number, cells=20_000))

    assert [most("de", number) for number in (0, 1, 2)] == [
        "Höchstens 0 Merkmale und 20.000 Zellen in einer Tabelle.",
        "Höchstens 1 Merkmal und 20.000 Zellen in einer Tabelle.",
        "Höchstens 2 Merkmale und 20.000 Zellen in einer Tabelle.",
    ]
    assert [most("fr", number) for number in (0, 1, 2)] == [
        f"Au plus 0 variable et 20{THIN}000 cases par tableau.",
        f"Au plus 1 variable et 20{THIN}000 cases par tableau.",
        f"Au plus 2 variables et 20{THIN}000 cases par tableau.",
    ]


def test_numbers_are_written_as_the_language_does() -> None:
    french, english = languages()["fr"], languages()["en"]
    assert french.number(1234567.5) == f"1{THIN}234{THIN}567,5"
    assert english.number(1234567.5) == "1,234,567.5"
    assert french.formatted(0.256, ".2f") == "0,26"
    assert english.formatted(0.256, ".2f") == "0.26"
    assert re.fullmatch(r"20\s%", french.formatted(0.2, ".0%"))
    assert re.fullmatch(r"12,5\s%", french.formatted(0.125, ".1%"))
    assert english.formatted(0.2, ".0%") == "20%"
    german = languages()["de"]
    assert german.number(1234567.5) == "1.234.567,5"
    assert german.formatted(0.256, ".2f") == "0,26"
    assert re.fullmatch(r"12,5\s%", german.formatted(0.125, ".1%"))
    assert [languages()[code].signs for code in ("en", "de", "fr")] == [
        (".", ","),
        (",", "."),
        (",", THIN),
    ]
    text = say("At most {share:.0%} of the cells between 1 and {small}.", share=0.2, small=5)
    assert re.search(r"20\s%", french.say(text))


def test_days_are_written_as_the_language_does() -> None:
    day = date(2026, 4, 1)
    written = {code: own.date(day) for code, own in languages().items()}
    assert written == {"en": "2026-04-01", "de": "1. April 2026", "fr": "1 avril 2026"}


def test_a_citation_has_the_date_of_its_language(client: TestClient) -> None:
    page = client.get(f"/de{TABLE}").text
    assert re.search(r"Tabelle abgefragt am \d{1,2}\. [A-ZÄÖÜ][a-zäöü]+ \d{4}, http", page)
    assert re.search(r"urldate = \{\d{4}-\d\d-\d\d\}", page)


@pytest.mark.parametrize("code", OTHERS)
@pytest.mark.parametrize("path", PAGES.values(), ids=list(PAGES))
def test_a_page_in_another_language_says_nothing_in_english(
    client: TestClient, sentences: Catalog, path: str, code: str
) -> None:
    answer = client.get(f"/{code}{path}")
    assert answer.status_code in (200, 400, 404)
    page = Text(answer.text)
    assert page.html["lang"] == code
    assert _english(page, sentences, client, code) == []


@pytest.mark.parametrize("path", PAGES.values(), ids=list(PAGES))
def test_the_english_page_would_be_found_out(
    client: TestClient, sentences: Catalog, path: str
) -> None:
    page = Text(client.get(f"/en{path}").text)
    assert page.html["lang"] == "en"
    for code in OTHERS:
        assert len(_english(page, sentences, client, code)) > 3


def _english(page: Text, sentences: Catalog, client: TestClient, code: str = "fr") -> list[str]:
    """The pieces of a page that are English sentences of ours rather than labels of the data."""
    data, every = _labels(client), _sentence(sentences, code)
    return [text for text in page.pieces if text not in data and every.fullmatch(text)]


@cache
def _sentence(sentences: Catalog, code: str) -> re.Pattern[str]:
    """Any of our sentences in English, if a language has other words for it."""
    other = languages()[code]
    patterns = []
    for message in sentences:
        forms = message.id if isinstance(message.id, tuple) else (message.id,)
        for form in forms:
            fixed = re.split(r"\{[^}]*\}|%\(\w+\)s", form)
            words = re.findall(r"[^\W\d]{2,}", " ".join(fixed))
            # A word between two labels, such as "and", is met within labels too.
            telling = len(words) > 1 or fixed == [form]
            if words and telling and other.gettext(forms[0]) != forms[0]:
                patterns.append(".+".join(re.escape(part) for part in fixed))
    return re.compile("|".join(patterns))


@cache
def _labels(client: TestClient) -> set[str]:
    found = {"Lustrum", "API", "Notes", "Python", "R"}
    for name in ("demo", "businesses"):
        whole = client.get(f"/api/v1/datasets/{name}").json()
        todo: list[Any] = [whole]
        while todo:
            item = todo.pop()
            if isinstance(item, dict):
                todo += [v for k, v in item.items() if k not in ("rules", "policy")]
            elif isinstance(item, list):
                todo += item
            elif isinstance(item, str):
                found.add(item)
    return found


def test_labels_are_the_translations_of_the_dataset_and_of_nobody_else(client: TestClient) -> None:
    page = client.get("/fr/datasets/demo/variables/employment")
    assert "Situation d&#39;activité" in page.text
    table = Text(client.get("/fr/datasets/demo/table?by=region&by=sex&totals=on").text)
    assert {"Région", "Upper Merrow", "Sexe", "Hommes", "Total"} <= set(table.pieces)
    assert {"Region", "Sex", "Male"}.isdisjoint(table.pieces)
    table = Text(client.get("/de/datasets/demo/table?by=age&by=sex&totals=on").text)
    assert {"Alter", "0 bis 4", "100 und älter", "Geschlecht", "Weiblich", "Insgesamt"} <= set(
        table.pieces
    )
    assert {"Age", "Sex", "Male", "Total"}.isdisjoint(table.pieces)


def test_titles_are_in_one_language_where_labels_have_no_translation() -> None:
    dataset = read_description(description_path("demo"))
    query = TableQuery("demo", (Axis("age"), Axis("sex")))
    with in_language("fr", "/"):
        assert labels_language(dataset).say(title(query, dataset)).startswith("Âge × sexe")
    with in_language("de", "/"):
        # Nouns keep their capitals inside a title.
        assert labels_language(dataset).say(title(query, dataset)) == (
            "Alter nach Geschlecht, Personen insgesamt"
        )
    with in_language("fr", "/"):
        bare = Dataset.from_mapping(
            {k: v for k, v in dataset.source.items() if k != "translations"}
        )
        own = labels_language(bare)
        assert (own.code, own.say(title(query, bare))) == ("en", "Age by sex, all people")
        german = replace(bare, language="de")
        assert labels_language(german).code == "de"


@pytest.mark.parametrize(("code", "group"), [("fr", THIN), ("de", ".")])
def test_figures_are_grouped_as_the_language_does(
    client: TestClient, code: str, group: str
) -> None:
    english = Text(client.get(TABLE).text).pieces
    other = Text(client.get(f"/{code}{TABLE}").text).pieces
    grouped = [piece for piece in english if re.fullmatch(r"\d{1,3}(,\d{3})+", piece)]
    assert grouped
    assert [p for p in other if re.fullmatch(rf"\d{{1,3}}({re.escape(group)}\d{{3}})+", p)] == [
        piece.replace(",", group) for piece in grouped
    ]
    shares = Text(client.get(f"/{code}{TABLE}&show=row-percent").text).pieces
    assert "100,0" in shares
    assert not any(re.fullmatch(r"\d+\.\d", piece) for piece in shares)


def _guide(address: str) -> bool:
    return address.endswith(("/accessibility", "/api", "/protection"))


@pytest.mark.parametrize("path", PAGES.values(), ids=list(PAGES))
def test_every_link_keeps_the_language_but_for_the_switch(client: TestClient, path: str) -> None:
    for code in languages():
        own = "" if code == "en" else f"/{code}"
        page = Text(client.get(f"/{code}{path}").text)
        switch = {
            a["hreflang"]: a.get("href", a.get("action", "")) for a in page.links if "hreflang" in a
        }
        assert list(switch) == list(languages())
        for other, there in switch.items():
            assert Text(client.get(there).text).html["lang"] == other
            assert _asks(there.removeprefix(f"/{other}")) == _asks(path)
        for link in page.links:
            address = link.get("href", link.get("action", ""))
            if "hreflang" in link or address.startswith(("#", "/api/")):
                continue
            address = address.removeprefix("http://lustrum.test")
            at_home = address.partition("?")[0] == f"/{code}/"
            assert at_home or address.startswith(f"{own}/datasets/") or _guide(address)
            if own:
                assert address.startswith(f"{own}/")
            else:
                assert not address.startswith(tuple(f"/{other}/" for other in OTHERS))


def _asks(address: str) -> tuple[str, list[tuple[str, str]]]:
    parts = urlsplit(address)
    return parts.path, sorted(parse_qsl(parts.query))


def test_an_answer_that_is_refused_by_a_mistake_keeps_its_whole_address(client: TestClient) -> None:
    page = Text(client.get("/datasets/demo/table?by=agge&where=region:1").text)
    there = [a["href"] for a in page.links if a.get("hreflang") == "fr"]
    assert there == ["/fr/datasets/demo/table?by=agge&where=region:1"] * 2


@pytest.mark.parametrize("path", ["//evil.example/x", "/fr//evil.example/x", "/en//evil.example"])
def test_no_address_makes_a_page_link_to_another_server(client: TestClient, path: str) -> None:
    page = Text(client.get(f"http://lustrum.test{path}").text)
    assert page.links
    assert not any(a.get("href", "").startswith("//") for a in page.links)
    assert all("//" not in a["href"] for a in page.links if "hreflang" in a)


def test_an_address_too_long_is_not_repeated_in_the_page(client: TestClient) -> None:
    answer = client.get(f"/fr/datasets/demo/table?by={'x' * 9000}")
    assert answer.status_code == 414
    assert "L’adresse est trop longue" in answer.text
    assert "xxx" not in answer.text


@pytest.mark.parametrize(
    ("header", "there"),
    [
        ("fr", "/fr/"),
        ("fr-CA,fr;q=0.9,en;q=0.8", "/fr/"),
        ("de, fr;q=0.5", "/de/"),
        ("de-CH,de;q=0.9,fr;q=0.8", "/de/"),
        ("it, fr;q=0.5, de;q=0.4", "/fr/"),
        ("en-GB,en;q=0.9,fr;q=0.8", None),
        ("en;q=0.2, fr;q=0.7", "/fr/"),
        ("fr;q=0, en", None),
        ("fr;q=nonsense", None),
        ("", None),
        ("xx", None),
    ],
)
def test_the_start_page_goes_by_what_the_browser_prefers(
    client: TestClient, header: str, there: str | None
) -> None:
    answer = client.get("/", headers={"Accept-Language": header}, follow_redirects=False)
    if there is None:
        assert answer.status_code == 200
        assert Text(answer.text).html["lang"] == "en"
    else:
        assert answer.status_code == 307
        assert answer.headers["location"] == there
        assert answer.headers["vary"] == "Accept-Language"


def test_a_chosen_language_is_kept_whatever_the_browser_prefers(client: TestClient) -> None:
    french = {"Accept-Language": "fr"}
    for path in ("/en/", "/datasets/demo", TABLE):
        answer = client.get(path, headers=french, follow_redirects=False)
        assert answer.status_code == 200
        page = Text(answer.text)
        assert page.html["lang"] == "en"
        homes = [a["href"] for a in page.links if a.get("href") in ("/", "/en/", "/fr/")]
        assert "/" not in homes
        assert "/en/" in homes


def test_a_table_that_waits_says_so_in_french(waiting: TestClient, sentences: Catalog) -> None:
    answer = waiting.get(f"/fr{TABLE}", follow_redirects=False)
    assert answer.status_code == 303
    there = answer.headers["location"]
    assert there.startswith("/fr/jobs/")
    page = Text(waiting.get(there).text)
    assert page.html["lang"] == "fr"
    assert "Le tableau attend son tour." in page.pieces
    assert _english(page, sentences, waiting) == []
    assert [a["href"] for a in page.links if a.get("hreflang") == "en"] == [there[3:]] * 2
    path, _, token = there.partition("?")
    assert waiting.post(f"{path}/cancel").status_code == 403
    assert waiting.post(f"{path}/cancel?{token}").status_code == 200
    ended = Text(waiting.get(there).text)
    assert "Le calcul du tableau a été annulé" in ended.pieces
    assert _english(ended, sentences, waiting) == []


@pytest.mark.parametrize(
    ("name", "words", "keyed"), [(n, w, k) for n, entries in SPECS.items() for w, k in entries]
)
def test_what_a_method_tells_its_readers_can_be_said_in_every_language(
    name: str, words: dict[str, Any], keyed: bool, sentences: Catalog
) -> None:
    known = {m.id[0] if isinstance(m.id, tuple) else m.id for m in sentences}
    method = spec_from_words(load("lustrum.methods", name), words, name)
    table = list(example_tables(2, 3))[1]
    notes = method.apply(table, None if keyed else np.random.default_rng(3)).notes
    for note in notes:
        assert isinstance(note, Message)
        assert note.template in known
        assert all(languages()[code].say(note) != note for code in OTHERS)


def test_symbols_are_explained_in_every_language() -> None:
    for status in CellStatus:
        assert isinstance(status.meaning, Message)
        assert all(languages()[code].say(status.meaning) != status.meaning for code in OTHERS)
    french = languages()["fr"]
    assert french.say(CellStatus.SECONDARY.meaning).startswith("secret secondaire")


def test_a_mistake_that_has_no_translation_is_marked_as_english(client: TestClient) -> None:
    answer = client.get('/fr/datasets/demo/table?query={"dataset":"demo","by":3}')
    assert answer.status_code == 400
    assert re.search(r'<p class="lead" lang="en">&#39;by&#39; must be a list', answer.text)
    assert 'lang="en">' not in client.get("/fr/datasets/demo/table?by=agge").text.split("<main")[1]


def test_an_unknown_language_is_an_unknown_address(client: TestClient) -> None:
    assert client.get("/xx/datasets/demo").status_code == 404


def test_programs_get_the_same_in_every_language(client: TestClient) -> None:
    address = f"/api/v1/tables?dataset=demo&{QUESTION}"
    for code in OTHERS:
        assert client.get(f"/{code}{address}").json() == client.get(address).json()
    mistake = client.get("/fr/api/v1/tables?dataset=demo&by=agge").json()["detail"]
    assert mistake.startswith("Dataset 'demo' has no variable 'agge'; did you mean 'age'?")
