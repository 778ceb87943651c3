"""One small question per dataset before the first visitor comes: compiles and caches what counts."""

from __future__ import annotations

import logging
from dataclasses import replace

from lustrum.answer import TableService
from lustrum.log_lines import where_it_happened
from lustrum.model import Axis, Dataset, DatasetError, PolicyError, TableQuery

log = logging.getLogger("lustrum.server")


def warm_up(service: TableService) -> None:
    """Ask every dataset something small. A dataset that fails is left for its visitors to hear about."""
    for name in service.names():
        try:
            query = _small(service.dataset(name))
            service.answer(query)
            service.answer(replace(query, by=query.by[:1]))
        except (DatasetError, PolicyError) as error:
            if name not in service.coming:  # of which the start has said so
                log.error("dataset %s is not served: %s", name, error)
        except Exception as error:  # its text may hold data
            log.error("warm-up failed: %s", where_it_happened(error))


def _small(dataset: Dataset) -> TableQuery:
    shortest = sorted(dataset.variables, key=lambda variable: len(variable.codes))[:2]
    return TableQuery(dataset.name, tuple(Axis(v.name, total=True) for v in shortest))
