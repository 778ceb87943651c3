"""What a reader sees together must be protected together: sets of a programme, and measures that add up."""

from __future__ import annotations

from collections.abc import Sequence

from lustrum.audit import Relation
from lustrum.model import Dataset, InputError
from lustrum.publish.programme.spec import PreparedSet


def check_sets(sets: Sequence[PreparedSet]) -> None:
    """Refuse a response in two sets: each would be protected as if nobody read the other."""
    held: dict[str, str] = {}
    for table_set in sets:
        for name in sorted(_responses(table_set)):
            if name in held:
                raise InputError(
                    f"Set {table_set.name!r} shows {name!r}, and so does set {held[name]!r}: readers see both, "
                    "so put their tables into one set."
                )
            held[name] = table_set.name


def check_families(sets: Sequence[PreparedSet], dataset: Dataset) -> None:
    """Refuse measures that add up, as the description says, where a set does not name the relation."""
    for measure in dataset.measures:
        if not measure.parts:
            continue
        family = {measure.name, *measure.parts}
        equation = f"{measure.name} = {' + '.join(measure.parts)}"
        holders = [table_set for table_set in sets if _responses(table_set) & family]
        if len(holders) > 1:
            raise InputError(
                f"Sets {holders[0].name!r} and {holders[1].name!r} show measures that add up ({equation}): "
                "readers see both, so put their tables into one set with this relation."
            )
        for table_set in holders:
            shown = {name for table in table_set.tables for name in table.responses} & family
            follows = shown >= set(measure.parts) or (measure.name in shown and len(shown) > 1)
            named = any(set(Relation.of(text).weights) == family for text in table_set.relations)
            if follows and not named:
                raise InputError(
                    f'Set {table_set.name!r}: the measures add up, so name it: relations = ["{equation}"].'
                )


def _responses(table_set: PreparedSet) -> set[str]:
    shown = {name for table in table_set.tables for name in table.responses}
    tied = {name for text in table_set.relations for name in Relation.of(text).weights}
    return shown | tied
