"""One small question per dataset before the first visitor comes: compiles and caches what counts.

On a busy machine the process that holds the records takes long to start. The server waits for it before it
says that it listens, but not for ever: then pages and the API say which datasets are still being opened.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from dataclasses import replace

from lustrum.answer import TableService
from lustrum.model import Axis, Dataset, DatasetError, PolicyError, TableQuery
from lustrum.model.errors import NotAnsweringError
from lustrum.runtime.log_lines import where_it_happened
from lustrum.runtime.stop import Stopped, within

log = logging.getLogger("lustrum.server")

PATIENCE = 120.0
"""Seconds that a start waits for records that do not answer, whatever the number of datasets."""

_MOMENT = 1.0  # seconds for each dataset after that


def warm_up(service: TableService) -> None:
    """Ask every dataset something small. A dataset that fails is left for its visitors to hear about."""
    end = time.monotonic() + PATIENCE
    left = deque(service.names())
    while left:
        name = left.popleft()
        try:
            with within(max(_MOMENT, end - time.monotonic())):
                dataset = service.dataset(name)
            query = _small(dataset)
            service.answer(query)
            service.answer(replace(query, by=query.by[:1]))
        except (NotAnsweringError, Stopped):
            if time.monotonic() < end:
                left.append(name)
            else:
                log.warning("dataset %s is still being opened", name)
        except (DatasetError, PolicyError) as error:
            if name not in service.coming:  # of which the start has said so
                log.error("dataset %s is not served: %s", name, error)
        except Exception as error:  # its text may hold data
            log.error("warm-up failed: %s", where_it_happened(error))


def _small(dataset: Dataset) -> TableQuery:
    shortest = sorted(dataset.variables, key=lambda variable: len(variable.codes))[:2]
    return TableQuery(dataset.name, tuple(Axis(v.name, total=True) for v in shortest))
