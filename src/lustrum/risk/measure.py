"""What every measure of a table's risk can do; the verbs are those of the utility measures.

``of(table, release)`` measures a release in place of its table, as every utility measure does, and
``of(table)`` the table as it is. ``before`` and ``after`` say which of the two is meant.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from lustrum.model import InputError, Release, Table
from lustrum.model.parameters import DeclaredSpec


@runtime_checkable
class RiskMeasure(Protocol):
    """A measure of risk: a frozen spec that higher values make riskier.

    ``measures_releases`` says whether it also measures what was protected; a policy needs that.
    """

    name: ClassVar[str]
    range: ClassVar[tuple[float, float]]
    better: ClassVar[Literal["higher", "lower"]]
    measures_releases: ClassVar[bool]

    def before(self, table: Table) -> float:
        """The risk of publishing the table as it is."""
        ...

    def after(self, table: Table, release: Release) -> float:
        """The risk of the release in place of its table."""
        ...

    def of(self, table: Table, release: Release | None = None) -> float:
        """The risk of the release, or of the table as it is."""
        ...

    def to_mapping(self) -> dict[str, Any]: ...


class RiskSpec(DeclaredSpec):
    """What all risk measures share; those that measure releases say so and have ``after``."""

    group: ClassVar[str] = "measure"
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    better: ClassVar[Literal["higher", "lower"]] = "lower"
    measures_releases: ClassVar[bool] = False

    def before(self, table: Table) -> float:
        """The risk of publishing the table as it is."""
        raise NotImplementedError

    def after(self, table: Table, release: Release) -> float:
        """The risk of the release in place of its table."""
        raise InputError(
            f"The risk measure {self.name!r} is for unprotected tables only; it knows no risk after "
            "protection."
        )

    def of(self, table: Table, release: Release | None = None) -> float:
        """The risk of the release, or of the table as it is."""
        return self.before(table) if release is None else self.after(table, release)
