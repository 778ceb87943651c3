"""What a programme of prepared tables says, as frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lustrum.model import TableQuery
from lustrum.readers.hierarchy_files import Groups
from lustrum.sensitivity import Rule

COUNT = "count"
"""The name of the response that counts records; every other response is a measure."""

USUAL_FORMATS = ("csv", "json-stat", "xlsx", "parquet")
METHODS = ("suppression", "controlled-rounding", "controlled-adjustment")
Unshown = Literal["differences", "all", "nothing"]


@dataclass(frozen=True)
class Source:
    """Where the numbers come from: a dataset of the data folder, a file of records, or a public bundle."""

    dataset: str | None = None
    file: Path | None = None
    description: Path | None = None
    bundle: Path | None = None
    secret: Path | None = None
    waivers: Path | None = None
    requests: Path | None = None
    beside: Path | None = None


@dataclass(frozen=True)
class RuleFor:
    """A sensitivity rule, and the responses it judges; all that it can judge where none is named."""

    rule: Rule
    responses: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProgrammeTable:
    """One table: what it shows, who is counted, and the responses shown of every cell.

    ``frozen`` names cells that must be published and ``never`` cells that must not, each by its codes of
    some variables; a variable that is left out stands for all its codes. ``trees`` are groups of codes that
    stand in a file, by variable.
    """

    name: str
    title: str
    query: TableQuery
    responses: tuple[str, ...]
    frozen: tuple[Mapping[str, str], ...] = ()
    never: tuple[Mapping[str, str], ...] = ()
    trees: Mapping[str, Groups] = field(default_factory=dict)


@dataclass(frozen=True)
class PreparedSet:
    """Tables that are protected together, because a reader sees them together."""

    name: str
    title: str
    method: Mapping[str, Any]
    rules: tuple[RuleFor, ...]
    tables: tuple[ProgrammeTable, ...]
    relations: tuple[str, ...] = ()
    unshown: Unshown = "differences"


@dataclass(frozen=True)
class Programme:
    """Everything that one run makes."""

    name: str
    title: str
    period: str
    notes: tuple[str, ...]
    source: Source
    sets: tuple[PreparedSet, ...]
    formats: tuple[str, ...] = USUAL_FORMATS
    plain_status: bool = True
    publish_rules: bool = False
    certificate: bool = True
    previous: Path | None = None
