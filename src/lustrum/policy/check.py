"""A policy beside its dataset: every variable that it names must be there, and every sum have a unit.

A rule about a variable that does not exist forbids nothing. A misspelt name is therefore refused when a
policy is checked, when it is read, and before a dataset is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator

from lustrum.model import Dataset, PolicyError
from lustrum.model.errors import choices
from lustrum.policy.policy import Policy


def check_names(policy: Policy, dataset: Dataset, where: str) -> None:
    """Refuse a policy that is for another dataset, or names a variable that this one does not have."""
    if policy.dataset not in ("*", dataset.name):
        raise PolicyError(
            f"{where} is for the dataset {policy.dataset!r}, not for {dataset.name!r}; put the right "
            "policy there, or correct 'dataset'."
        )
    _check_units(policy, dataset, where)
    there = [variable.name for variable in dataset.variables]
    for key, name in _named(policy):
        if name not in there:
            raise PolicyError(
                f"{where}: {key} names the variable {name!r}, which {dataset.name!r} does not have; "
                f"{choices(name, there)}."
            )
    if policy.weights is not None:
        weights = [weight.name for weight in dataset.weights]
        if policy.weights.weight not in weights:
            raise PolicyError(
                f"{where}: weights.weight names {policy.weights.weight!r}, which is no weight of "
                f"{dataset.name!r}; {choices(policy.weights.weight, weights)}."
            )


def _check_units(policy: Policy, dataset: Dataset, where: str) -> None:
    """Sums are published with their unit; one that is missing would be missing from every table."""
    if policy.sums is None and policy.magnitudes is None:
        return
    for measure in dataset.measures:
        if not measure.unit:
            raise PolicyError(
                f"{where}: sums of the measure {measure.name!r} would be published without a unit; write "
                "'unit' in the description of the dataset."
            )


def _named(policy: Policy) -> Iterator[tuple[str, str]]:
    """Where a policy names a variable, and which."""
    for group in policy.rules.disallowed:
        yield from (("rules.disallowed", name) for name in group)
    for group in policy.rules.at_most_one:
        yield from (("rules.at_most_one", name) for name in group)
    if policy.weights is not None:
        yield from (("weights.classes", name) for name in policy.weights.classes)
        yield from (("weights.measure_classes", name) for name in policy.weights.measure_classes)
    if policy.rules.per_area:
        yield "rules.per_area", policy.rules.per_area
    for number, fallback in enumerate(policy.fallback, start=1):
        yield from ((f"fallback.{number}.variables", name) for name in fallback.variables)
    for number, step in enumerate(policy.before, start=1):
        # Methods say which variables they work on; a method that works on any names none.
        for name in getattr(step.spec, "needed_variables", ()):
            yield f"before.{number}", name
