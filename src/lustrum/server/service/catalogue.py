"""The datasets of the server as the first page and the API list them, without a wait for any records."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from lustrum.answer import TableService
from lustrum.answer.table_service import AT_ONCE
from lustrum.model import Dataset, LustrumError
from lustrum.model.errors import NotReadyError
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
                log.warning("the records of %r are still being opened", name)
            except LustrumError as error:
                if name in service.coming:  # of which the start has said so
                    opening.append(Opening(name, service.policy_title(name) or name))
                else:
                    unavailable += 1
                    log.error("dataset left out: %s", error)
    return DatasetCatalogue(tuple(datasets), tuple(opening), unavailable)
