"""What is said about tables: rules, cells by their codes, the pattern of the last period."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np

from lustrum.model import InputError, Table
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import check_known, choices
from lustrum.readers.confidential import Number, TrueFile
from lustrum.readers.own import published_cells
from lustrum.sensitivity import GivenCells, Rule
from lustrum.sensitivity.rules.threshold import DEFAULT_MARGIN, margin_level


def same_names(files: Sequence[TrueFile], attacker: str) -> bool:
    """Whether the files name holdings; all of them must, or none, if contributors attack."""
    with_names = [file for file in files if file.holdings]
    without = [file for file in files if not file.holdings]
    if attacker != "outsider" and with_names and without:
        raise InputError(
            f"{with_names[0].source} names holdings and {without[0].source} does not, so nobody can tell who "
            "contributes to both; name them in every file, or in none."
        )
    return bool(with_names)


def rule_for(rule: Rule | None, file: TrueFile, table: Table) -> Rule:
    """The rule that is named, or the cells that the file itself marks as primary."""
    if rule is not None:
        if table.contributors is None:
            raise InputError(
                f"{file.source}: a rule on sums needs the contributors of every cell; give columns 'n' and "
                "'x1', 'x2', ..., or name theirs in a layout."
            )
        return rule
    if file.primary is None:
        raise InputError(
            f"Say what is sensitive: --rule p=10, --rule nk=2,85 or --rule threshold=3, or give {file.source} "
            "a column 'primary' (with 'upper' and 'lower' for the protection levels)."
        )
    where = file.positions
    cells = np.zeros(table.shape, dtype=np.bool_)
    cells[where] = file.primary

    # A cell without a level is protected like one that a threshold finds: a level of nothing protects nothing.
    usual = np.asarray(margin_level(table, DEFAULT_MARGIN), dtype=np.int64)

    def level(column: tuple[Number, ...] | None) -> Ints | None:
        if column is None:
            return None
        out = usual.copy()
        # A level is rounded up to a whole unit, so that protection is never smaller than asked for.
        out[where] = [
            least if v is None else ceil(v.scaleb(table.decimals))
            for v, least in zip(column, usual[where].tolist(), strict=True)
        ]
        return out

    upper = level(file.upper)
    if upper is None:
        return GivenCells(cells, usual, level(file.lower))
    return GivenCells(cells, np.where(upper == 0, usual, upper), level(file.lower))


def cells_of_all(
    tables: Sequence[Table], selectors: Sequence[str], option: str
) -> list[Mask | None]:
    """The cells that words name in every table that has their dimensions and codes."""
    out: list[Mask | None] = [None] * len(tables)
    for word in selectors:
        hit = False
        for at, table in enumerate(tables):
            try:
                mask = _cells(table, word, option)
            except InputError:
                continue
            before = out[at]
            out[at] = mask if before is None else before | mask
            hit = True
        if not hit:
            _cells(tables[0], word, option)
    return out


def _cells(table: Table, word: str, option: str) -> Mask:
    """The cells that a word such as 'area=n,job=Total' names; a dimension left out means all its codes."""
    mask = np.zeros(table.shape, dtype=np.bool_)
    names = [axis.name for axis in table.axes]
    index: list[Any] = [slice(None)] * len(names)
    for part in word.split(","):
        name, equals, code = part.strip().partition("=")
        if not equals or name not in names:
            raise InputError(f"{option} is DIMENSION=CODE,...; {choices(name, names)}.")
        codes = table.axes[names.index(name)].codes
        check_known((code,), codes, f"{option}: {name!r} has no code")
        index[names.index(name)] = codes.index(code)
    mask[tuple(index)] = True
    return mask


def previous_masks(
    paths: Sequence[Path], tables: Sequence[Table], previous: Path
) -> list[Mask | None]:
    """The cells that the last period's files do not show; None for a table that was not there.

    ``previous`` is the protected file of one table, or the folder with those of several, by the same names.
    """
    if not previous.is_dir():
        if len(paths) > 1:
            raise InputError(
                f"{previous}: name the folder with the protected tables of the last period."
            )
        return [_previous(tables[0], previous)]
    masks = [
        _previous(table, previous / path.name) if (previous / path.name).is_file() else None
        for path, table in zip(paths, tables, strict=True)
    ]
    if all(mask is None for mask in masks):
        names = " or ".join(path.name for path in paths)
        raise InputError(f"{previous}: there is no file {names} of the last period.")
    return masks


def _previous(table: Table, path: Path) -> Mask:
    """The cells that the protected table of the last period does not show."""
    names = [axis.name for axis in table.axes]
    places = [{code: i for i, code in enumerate(axis.codes)} for axis in table.axes]
    mask = np.zeros(table.shape, dtype=np.bool_)
    for key, value in published_cells(path, names).items():
        at = [index.get(code) for index, code in zip(places, key, strict=True)]
        if value is None and None not in at:
            mask[tuple(at)] = True
    return mask
