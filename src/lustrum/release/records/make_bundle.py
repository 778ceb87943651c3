"""From records to a public bundle: count the finest cells, protect them once, write what may leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lustrum.model import PolicyError
from lustrum.model.stop import reporting_progress
from lustrum.policy import Policy, read_policy
from lustrum.protect.population.method import PopulationResult, ProtectedPopulation
from lustrum.release.bundle.files import write_bundle
from lustrum.tabulate import Store
from lustrum.tabulate.finest import finest_cells

__all__ = ["Made", "make_bundle", "population_of"]

Progress = Callable[[str, float], None]


@dataclass(frozen=True, eq=False, repr=False)
class Made:
    """A bundle that was written, and what only the agency may know of it."""

    digest: str
    result: PopulationResult

    def __repr__(self) -> str:
        return f"Made({self.digest[:12]})"


def population_of(policy: Policy, where: str) -> ProtectedPopulation:
    """The protected population that a policy asks for; a clear sentence where it asks for another method."""
    spec = policy.population
    if spec is None:
        raise PolicyError(
            f"{where} does not ask for a protected population; write [[before]] with "
            'method = "protected-population", and [protect] with method = "none".'
        )
    assert isinstance(spec, ProtectedPopulation)
    return spec


def make_bundle(
    store: Store,
    name: str,
    policy: Path,
    out: Path,
    *,
    workers: int | None = None,
    progress: Progress | None = None,
) -> Made:
    """Protect a dataset once and write its public bundle.

    The chance follows from the agency's secret and the dataset: the same records give the same bundle.
    """
    spec = population_of(read_policy(policy), str(policy))
    told = progress or (lambda _step, _share: None)
    engine = store.open(name, workers)
    with reporting_progress(told):
        cells = finest_cells(engine)
    key = store.secret_of(engine.secret).derive(f"lustrum protected population {name}")
    result = spec.protect(cells, key, progress=told)
    engine.require_unchanged()
    digest = write_bundle(out, result.cells, policy.read_bytes(), result.public)
    return Made(digest, result)
