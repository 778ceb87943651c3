"""Search in the words that people use: ``foreign`` finds citizenship, ``job`` finds occupation."""

from __future__ import annotations

from lustrum.model.search_text import Words
from lustrum.model.text import languages

_MEANT = (
    (
        "foreign foreigner foreigners migrant migrants immigrant immigrants nationality",
        "citizenship born",
    ),
    ("female male woman women man men girl girls boy boys gender", "sex"),
    ("retired retirement pensioner pensioners pension", "retire pension activity"),
    ("job jobs profession professions career", "occupation"),
    ("work worker workers employment employed unemployed unemployment jobless", "employ activity"),
    ("school schooling degree university college graduate qualification", "education"),
    ("wage wages salary salaries pay income earnings", "wage earning income pay"),
    ("sales revenue turnover", "turnover sales"),
    ("firm firms company companies enterprise enterprises", "business enterprise firm"),
    ("industry industries sector sectors branch", "activity industr sector"),
    ("town towns city cities place places district municipality county", "area region"),
    ("family families home homes household", "household"),
    ("old young child children elderly pensionable", "age"),
)
MEANT = {word: labels.split() for words, labels in _MEANT for word in words.split()}
"""Words, and beginnings of words that labels have for them."""


def means(wanted: str, *texts: str) -> bool:
    """Whether every word wanted, or a word of the same meaning, is somewhere in the texts, in any case.

    >>> means("foreign", "Citizenship"), means("Upper Merrow", "Region", "Upper Merrow"), means("fish", "Sex")
    (True, True, False)
    """
    whole = " ".join(word for text in texts for word in languages(text)).casefold()
    return all(any(word in whole for word in words) for words in meant(wanted))


def meant(wanted: str) -> Words:
    """The words of a search, each with words of the same meaning."""
    return [[word, *MEANT.get(word, ())] for word in wanted.casefold().split()]
