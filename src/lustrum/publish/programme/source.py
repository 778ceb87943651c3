"""The records behind a programme: a dataset of the data folder, or a file with its description."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path

import pyarrow as pa

from lustrum.model import Dataset, InputError
from lustrum.numeric.counting.engine import KernelEngine
from lustrum.publish.programme.spec import Source
from lustrum.publish.waivers import read_waivers
from lustrum.sensitivity import Background
from lustrum.tabulate import EmbeddedEngine, Store
from lustrum.tabulate.frame import FrameEngine
from lustrum.tabulate.ingest import FileSource, read_description
from lustrum.tabulate.keys import Secret

log = logging.getLogger("lustrum.publish")


@dataclass(frozen=True, eq=False, repr=False)
class RecordSource:
    """The engine over the records, and what is known of their contributors beside them."""

    engine: KernelEngine
    background: Background

    @property
    def dataset(self) -> Dataset:
        """The description of the records."""
        return self.engine.dataset

    def described_by(self, dataset: Dataset) -> RecordSource:
        """The same records under a description that knows further groups of their codes."""
        return replace(self, engine=self.engine.described_by(dataset))

    def require_unchanged(self) -> None:
        """Refuse to go on where somebody changed the dataset meanwhile."""
        if isinstance(self.engine, EmbeddedEngine):
            self.engine.require_unchanged()


def open_records(source: Source, data: Path, workers: int | None = None) -> RecordSource:
    """Open what a programme names."""
    background = read_waivers(source.waivers, source.requests)
    if source.file is None:
        assert source.dataset is not None
        return _checked(Store(data).open(source.dataset, workers), background, source.requests)
    assert source.description is not None
    dataset = read_description(source.description)
    columns = [
        *(v.name for v in dataset.variables),
        *(m.name for m in dataset.measures),
        *(w.name for w in dataset.weights),
        *dataset.id_columns,
    ]
    parts = [table for table, _ in FileSource(source.file).batches(columns)]
    if not parts:
        raise InputError(f"{source.file} has no records.")
    secret = None if source.secret is None else Secret.load(source.secret)
    engine = FrameEngine(pa.concat_tables(parts), dataset, secret, workers)
    return _checked(engine, background, source.requests)


def _checked(engine: KernelEngine, background: Background, requests: Path | None) -> RecordSource:
    """The records, with those who asked for protection among them; a wrong spelling would protect nobody."""
    if requests is not None:
        columns = [ids for chunk in engine.chunks for ids in chunk.ids.values()]
        missing = background.requested.difference(
            *(ids[background.has_requested(ids)].tolist() for ids in columns)
        )
        if len(missing) == len(background.requested):
            raise InputError(
                f"{requests}: nobody named there has a record; write holdings as the records name them."
            )
        if missing:
            log.warning(
                f"{requests}: {len(missing):,} of {len(background.requested):,} names have no record; "
                "nothing is protected for them."
            )
    return RecordSource(engine, background)
