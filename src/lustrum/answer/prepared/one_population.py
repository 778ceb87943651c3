"""One population is served one way: prepared tables beside other numbers of the same people.

A reader sees everything that a server offers. Suppressed cells of a prepared table could be worked out from
flexible tables of the same people, and exact totals of prepared tables narrow what protected counts leave open.
So prepared tables stand beside flexible ones of the same dataset only in two cases: they were counted from the
very bundle that answers the flexible questions, or they show nothing but sums, which the bundle does not hold,
and named that bundle when they were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from lustrum.model import DatasetError
from lustrum.public.prepared.folder import PreparedFolder


def check_one_population(folder: PreparedFolder, bundles: Mapping[str, str | None]) -> None:
    """Refuse a folder whose people are also served in another way.

    ``bundles`` names the datasets that answer flexible questions: with the digest of their bundle, or None
    where a policy protects each question by keys.
    """
    if folder.dataset not in bundles:
        return
    served = bundles[folder.dataset]
    said = f"The prepared tables {folder.name!r} and the flexible tables of {folder.dataset!r}"
    if served is None:
        raise DatasetError(
            f"{said} are of the same people, and flexible tables under a keyed policy cannot be checked "
            "against prepared ones: serve one of the two, or protect the dataset with 'lustrum protect' and "
            "make the prepared tables from its bundle."
        )
    counted = folder.source.get("bundle")
    if counted is not None:
        if counted != served:
            raise DatasetError(
                f"{said} come from two different bundles, which together tell more than either; make the "
                "prepared tables again from the bundle that is served."
            )
        return
    beside = folder.source.get("beside")
    if beside is None:
        raise DatasetError(
            f"{said} are of the same people and were not checked together: name the bundle under [data] as "
            "'beside' and run 'lustrum release' again, or make the prepared tables from the bundle."
        )
    if beside != served:
        raise DatasetError(
            f"{said} were checked together with another bundle; run 'lustrum release' again with the bundle "
            "that is served as 'beside'."
        )


def check_other_folders(folder: PreparedFolder, others: Iterable[PreparedFolder]) -> None:
    """Refuse a folder whose people and period are in another one that was not protected together with it.

    Folders that were counted from the same bundle agree.
    """
    for other in others:
        if (other.dataset, other.period) != (folder.dataset, folder.period):
            continue
        counted = folder.source.get("bundle")
        if counted is not None and counted == other.source.get("bundle"):
            continue
        raise DatasetError(
            f"The prepared tables {folder.name!r} and {other.name!r} are of the same people and the same "
            "period and were not protected together: put their tables into one programme and run "
            "'lustrum release' again, or serve one of the two."
        )
