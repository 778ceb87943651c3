"""The papers behind the system, computed again: printed figures beside our own."""

from __future__ import annotations

from collections.abc import Callable

from lustrum.model.errors import check_known
from lustrum.study.result import Line, Panel, Progress, Study

__all__ = ["STUDIES", "Line", "Panel", "Progress", "Study", "run_study"]

STUDIES = ("cell-entropy", "sample-tables", "markov", "table-server", "maps")


def run_study(name: str, progress: Progress | None = None) -> Study:
    check_known((name,), STUDIES, "There is no study")
    from lustrum.study.cell_entropy import cell_entropy
    from lustrum.study.maps import maps
    from lustrum.study.markov import markov
    from lustrum.study.sample_tables import sample_tables
    from lustrum.study.table_server import table_server

    studies: dict[str, Callable[..., Study]] = dict(
        zip(STUDIES, (cell_entropy, sample_tables, markov, table_server, maps), strict=True)
    )
    return studies[name](progress=progress)
