"""Labels have translations, and keep them wherever a sentence or an answer carries them."""

from __future__ import annotations

import pickle

import pytest

# One text there and back; an archive holds hundreds of them.
from lustrum.answer.archive import _said, _text
from lustrum.model import Dataset, DescriptionError
from lustrum.model.query import in_words
from lustrum.model.text import Label, listed, lowered, opening, say, translated
from lustrum.model.translations import people_texts
from lustrum.publish.bundles.write import public_description
from lustrum.server.http.languages import languages

DESCRIPTION = {
    "dataset": {"name": "d", "title": "Survey", "units": "people", "record_id": "id"},
    "variables": [
        {
            "name": "age",
            "label": "Age",
            "codes": [["1", "0 to 4"], ["2", "5 to 9"], ["3", "10 and over"]],
            "hierarchies": [
                {
                    "name": "h",
                    "label": "Halves",
                    "levels": [
                        {
                            "name": "h",
                            "label": "Halves",
                            "groups": [{"code": "A", "label": "Young", "members": ["1", "2"]}],
                        }
                    ],
                }
            ],
        }
    ],
    "measures": [{"name": "pay", "label": "Secret pay"}],
    "translations": {
        "fr": {
            "Survey": "Enquête",
            "people": "personnes",
            "Age": "Âge",
            "Young": "Jeunes",
            "5 to 9": "5 à 9",
            "10 and over": "10 et plus",
            "Secret pay": "Salaire secret",
            "A note of the policy.": "Une remarque.",
        }
    },
}
FRENCH = languages()["fr"]


@pytest.fixture
def dataset() -> Dataset:
    return Dataset.from_mapping(DESCRIPTION)


def test_every_text_for_people_is_translated_and_codes_are_not(dataset: Dataset) -> None:
    age = dataset.variable("age")
    assert FRENCH.say(dataset.title) == "Enquête"
    assert FRENCH.say(age.label) == "Âge"
    assert FRENCH.say(age.category("A").label) == "Jeunes"
    assert FRENCH.say(age.category("1").label) == "0 to 4"  # nobody translated it
    assert FRENCH.say(dataset.label("A note of the policy.")) == "Une remarque."
    assert dataset == Dataset.from_mapping(
        {k: v for k, v in DESCRIPTION.items() if k[:5] != "trans"}
    )


def test_a_label_keeps_its_translations_inside_sentences_files_and_processes(
    dataset: Dataset,
) -> None:
    age = dataset.variable("age").label
    assert FRENCH.say(say("{some}, {next}", some=lowered(age), next="x")) == "âge, x"
    assert FRENCH.say(opening(dataset.units)) == "Personnes"
    for kept in (pickle.loads(pickle.dumps(age)), _said(_text(age))):
        assert (kept, FRENCH.say(kept)) == ("Age", "Âge")
    many = listed([age] * 900)
    assert FRENCH.say(many) == ", ".join(["Âge"] * 900)
    assert translated(Label("Haus", {"de": "Haus"}), FRENCH) == "Haus"
    assert lowered(Label("House", {"de": "Haus"})).others["de"] == "Haus"  # type: ignore[attr-defined]


def test_a_group_of_ones_own_is_defined_in_the_language_of_the_page(dataset: Dataset) -> None:
    labels = dataset.variable("age").labels
    assert FRENCH.say(in_words([0, 1], labels)) == "0 à 9"
    assert FRENCH.say(in_words([1, 2], labels[1:])) == "5 et plus"


def test_a_public_description_has_no_translation_of_what_it_leaves_out(dataset: Dataset) -> None:
    public = public_description(dataset)
    assert "Salaire secret" not in str(public)
    assert public["translations"]["fr"]["A note of the policy."] == "Une remarque."
    assert people_texts(public) >= {"Survey", "Age", "Young", "0 to 4"}


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"french": {}}, "'french' is no language"),
        ({"fr": {"Age": 3}}, "'Age' needs a text"),
        ({"fr": {"Age": " "}}, "'Age' needs a text"),
        ({"fr": "Âge"}, "is not a table"),
    ],
)
def test_odd_translations_are_refused_in_a_sentence(wrong: object, sentence: str) -> None:
    with pytest.raises(DescriptionError, match=sentence):
        Dataset.from_mapping({**DESCRIPTION, "translations": wrong})
