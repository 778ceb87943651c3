"""The datasets of the server as the first page and the API list them, without a wait for any records."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lustrum.answer import TableService
from lustrum.answer.table_service import AT_ONCE
from lustrum.model import Dataset, LustrumError
from lustrum.model.errors import NotReadyError
from lustrum.model.search_text import Words
from lustrum.model.text import languages
from lustrum.runtime.stop import Stopped, within

log = logging.getLogger("lustrum.server")


@dataclass(frozen=True)
class Opening:
    """A dataset that is not ready yet: its records are being opened or checked, or it is still being made."""

    name: str
    title: str


@dataclass(frozen=True)
class DatasetCatalogue:
    """What can be asked about now, what can be soon, and how many datasets are not available at all."""

    datasets: tuple[Dataset, ...]
    opening: tuple[Opening, ...]
    unavailable: int


def catalogue(service: TableService) -> DatasetCatalogue:
    """All datasets with a policy; one that cannot be read does not take the others with it.

    Nor does one whose records do not answer at once: it is named as one that is not ready yet.
    """
    datasets: list[Dataset] = []
    opening: list[Opening] = []
    unavailable = 0
    with within(AT_ONCE):
        for name in service.names():
            try:
                datasets.append(service.snapshot(name).dataset)
            except (NotReadyError, Stopped):
                # Its policy was read before its records were asked for.
                opening.append(Opening(name, service.policy_title(name) or name))
                log.warning("dataset %r is not ready yet", name)
            except LustrumError as error:
                unavailable += 1
                log.error("dataset left out: %s", error)
    return DatasetCatalogue(tuple(datasets), tuple(opening), unavailable)


# --- Search in the words that people use: ``foreign`` finds citizenship, ``job`` finds occupation

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
