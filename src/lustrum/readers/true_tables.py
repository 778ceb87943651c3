"""True tables of confidential files: what their codes stand for, and values with contributors that add up."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from lustrum.model import Category, InputError, Table, TableAxis
from lustrum.model.arrays import Ints, Mask
from lustrum.model.errors import NotJudgedError, choices
from lustrum.numeric.structure import Relations, Structure
from lustrum.readers.code_sums import certain_totals
from lustrum.readers.confidential import Kind, TrueFile
from lustrum.readers.contributions import CheckedContributions, check_totals, checked_contributions
from lustrum.readers.hierarchy_files import Groups, check_circles
from lustrum.readers.layout import CodeRoles, Layout, layout_text
from lustrum.readers.relations import evidence


@dataclass(frozen=True)
class CodeMembers:
    """The codes of one variable over all files: which finest codes each stands for, and how that is known."""

    name: str
    finest: tuple[str, ...]
    members: Mapping[str, frozenset[int]]
    totals: Mapping[str, tuple[str, ...]]
    how: Mapping[str, str]

    def sentence(self) -> str:
        sums = [code for code in self.members if code in self.how]
        everything = frozenset().union(*self.members.values())
        tops = [code for code in sums if self.members[code] == everything]
        below = [code for code in sums if code not in tops]
        plural = "subtotal" if len(below) == 1 else f"{len(below)} subtotals"
        return (
            f"{self.name}: {len(self.finest)} code{'s' * (len(self.finest) != 1)}; "
            + (f"the total is {self._listed(tops)}; " if tops else "no total; ")
            + (f"{plural} {self._listed(below)}." if below else "no subtotals.")
        )

    def _listed(self, codes: Sequence[str], most: int = 8) -> str:
        ways = ", ".join(dict.fromkeys(self.how[code] for code in codes))
        more = f" and {len(codes) - most} more" if len(codes) > most else ""
        return f"{', '.join(codes[:most])}{more} ({ways})"


def members_of(
    files: Sequence[TrueFile],
    hierarchies: Mapping[str, Groups] | None = None,
    without_totals: Collection[str] = (),
) -> dict[str, CodeMembers]:
    """What the codes of all variables stand for.

    ``hierarchies`` are groups by variable, and variables ``without_totals`` have none; an empty name stands for
    all variables.
    """
    groups = hierarchies or {}
    names = list(dict.fromkeys(name for file in files for name in file.names))
    stated: dict[str, CodeRoles] = {}
    for file in files:
        for name, roles in file.layout.dimensions.items():
            if stated.setdefault(name, roles) != roles:
                raise InputError(
                    f"The layouts give the codes of {name!r} different roles; agree on one."
                )
    for name in (*stated, *groups, *filter(None, without_totals)):
        if name not in names:
            raise InputError(f"There is no dimension {name!r}; {choices(name, names)}.")
        if name in stated and name in groups:
            raise InputError(
                f"The layout and a hierarchy both tell the codes of {name!r}; name one."
            )
    out = {}
    for name in names:
        having = [file for file in files if name in file.names]
        codes = list(dict.fromkeys(c for f in having for c in f.codes[f.names.index(name)]))
        if name in stated:
            roles, how = stated[name], dict.fromkeys(_made(stated[name]), "as you say")
        elif {"", name} & {*without_totals}:
            roles, how = CodeRoles(independent=tuple(codes)), {}
        else:
            given = _listed_only(groups.get(name, {}), codes)
            totals, how = certain_totals(codes, *_lines(having, name, codes), given)
            roles = CodeRoles(totals=totals)
            if not totals and len(having) < len(files):
                roles = CodeRoles(independent=tuple(codes))  # another file shows the totals over it
        left = [code for code in codes if code not in roles.settled()]
        if left and len(codes) > 1:
            raise _unsettled(name, having[0], codes, left, roles)
        members, finest = _members(name, codes, roles, having)
        out[name] = CodeMembers(name, finest, members, roles.totals, how)
        _check_cover(out[name], having)
    return out


def _unsettled(
    name: str, file: TrueFile, codes: Sequence[str], left: Sequence[str], roles: CodeRoles
) -> NotJudgedError:
    """The question about codes that nothing tells anything about, with the lines that would answer it."""
    listed = ", ".join(left[:6]) + (", ..." if len(left) > 6 else "")
    parts = [c for c in left if c != left[-1]] or [c for c in codes if c != left[-1]]
    parts = parts if len(parts) <= 6 else [*parts[:6], "..."]
    proposed = CodeRoles(totals={**roles.totals, left[-1]: tuple(parts)})
    text = layout_text(Layout(dimensions={name: proposed}), {}).strip()
    return NotJudgedError(
        f"{file.source}: no total is recognised among the codes of {name!r} ({listed}). Say what they are in a "
        f"layout (--layout), as totals of others:\n{text}\nor, if none is a sum, as "
        "independent = [...]; --hierarchy names a file of groups."
    )


def _made(roles: CodeRoles) -> list[str]:
    return [*roles.totals, *roles.differences, *roles.same, *roles.subsets]


def _lines(files: Sequence[TrueFile], name: str, codes: Sequence[str]) -> tuple[Ints, Mask]:
    """Values of all files with a row for each code of a variable, and which codes a file lists at all."""
    values, known = [], []
    for file in files:
        axis = file.names.index(name)
        at = np.array([codes.index(code) for code in file.codes[axis]])
        own = np.moveaxis(file.dense, axis, 0).reshape(len(at), -1)
        value = np.zeros((len(codes), own.shape[1]), dtype=np.int64)
        value[at] = own
        there = np.zeros(value.shape, dtype=np.bool_)
        there[at] = True
        values.append(value)
        known.append(there)
    return np.hstack(values), np.hstack(known)


def _listed_only(groups: Groups, codes: Collection[str]) -> Groups:
    """Groups without the codes that no file lists, which are empty, and without groups of nothing."""
    left = dict(groups)
    while True:
        pruned = {
            c: tuple(p for p in parts if p in left or p in codes) for c, parts in left.items()
        }
        pruned = {code: parts for code, parts in pruned.items() if parts}
        if pruned == left:
            return left
        left = pruned


def _members(
    name: str, codes: Sequence[str], roles: CodeRoles, files: Sequence[TrueFile]
) -> tuple[dict[str, frozenset[int]], tuple[str, ...]]:
    """The finest codes behind each code; a part that no file lists is a rest that nobody knows."""
    other = next(iter((*roles.units, *roles.not_additive)), None)
    if other is not None:
        raise InputError(
            f"The code {other!r} of {name!r} does not add up, so no cell of it is suppressed."
        )
    parts = dict(roles.totals)
    for code, group in roles.subsets.items():
        if not group.disjoint or code in parts:
            raise InputError(
                f"The subsets of {code!r} of {name!r} overlap with each other or with its parts; which cells "
                "they share must be said by codes of their own."
            )
        rest = (
            () if group.complete or _adds_up(name, files, code, group.codes) else (f"{code}, rest",)
        )
        parts[code] = (*group.codes, *rest)
    check_circles({**parts, **{c: (o,) for c, o in roles.same.items()}, **roles.differences}, name)
    derived = {*parts, *roles.same, *roles.differences}
    listed = (*codes, *(p for one in (*parts.values(), *roles.differences.values()) for p in one))
    finest = tuple(dict.fromkeys(c for c in (*listed, *roles.same.values()) if c not in derived))
    index_of = {code: i for i, code in enumerate(finest)}

    def held(code: str) -> frozenset[int]:
        if code in index_of:
            return frozenset({index_of[code]})
        if code in roles.same:
            return held(roles.same[code])
        if code in parts:
            return frozenset().union(*map(held, parts[code]))
        first, *others = map(held, roles.differences[code])
        if not all(one <= first for one in others):
            raise InputError(
                f"The code {code!r} of {name!r} takes away what is not in its first code."
            )
        return first.difference(*others)

    return {code: held(code) for code in dict.fromkeys((*codes, *parts))}, finest


def _adds_up(name: str, files: Sequence[TrueFile], code: str, parts: Sequence[str]) -> bool:
    codes = list(dict.fromkeys(c for f in files for c in f.codes[f.names.index(name)]))
    if not {code, *parts} <= set(codes):
        return False
    value, known = _lines(files, name, codes)
    shown = evidence(value, known, codes.index(code), [codes.index(part) for part in parts])
    return shown is not None and shown[0] > 0


def _check_cover(codes: CodeMembers, files: Sequence[TrueFile]) -> None:
    """A file must not list all of a total with fewer codes than others do: then nobody looked at that sum."""
    for total, parts in codes.totals.items():
        for file in files if len(files) > 1 else ():
            own = file.codes[file.names.index(codes.name)]
            inside = [part for part in parts if part in own]
            if (
                total in own
                and 1 < len(inside) < len(parts)
                and _adds_up(codes.name, [file], total, inside)
            ):
                raise InputError(
                    f"{file.source}: the codes of {codes.name!r} add up to {total!r} without those of the "
                    f"other files; say how the codes relate with --hierarchy {codes.name}=FILE or in a layout."
                )


# Tables


def true_table(
    file: TrueFile,
    codes: Mapping[str, CodeMembers],
    kind: Kind | None = None,
    *,
    assumed: Kind | None = None,
    holding_number: Callable[[str], int] | None = None,
) -> Table:
    """The table of a file with its contributors; cells without a row are 0 where the totals agree with that.

    Every total must be the exact sum of its parts. ``kind`` is what the numbers are, if the layout does not say
    it; where nobody does, they are what is ``assumed``. ``holding_number`` gives the number of a holding by its
    name, so that it is the same in every file; by default they are counted.
    """
    axes = tuple(
        TableAxis(name, name, tuple(
            Category(code, file.labels.get((name, code), code), tuple(sorted(codes[name].members[code])))
            for code in own
        ))
        for name, own in zip(file.names, file.codes, strict=True)
    )  # fmt: skip
    relations = Structure.of_tables([axes]).relations
    _check_sums(file, axes, relations)
    stated = kind_of(file, kind, assumed)
    contributed = file.count is not None or bool(file.largest)
    checked = checked_contributions(file, holding_number) if contributed else None
    if contributed:
        check_totals(file, relations)
    values = file.dense
    return Table(
        axes=axes,
        values=values,
        kind="count" if stated == "counts" else "magnitude",
        decimals=file.decimals,
        contributors=(values.copy() if stated == "counts" else None)
        if checked is None
        else checked.contributors,
        contributions=None if checked is None else checked.contributions,
        provenance={"source": file.source, **_assumed(file, checked)},
    )


def kind_of(file: TrueFile, said: Kind | None = None, assumed: Kind | None = None) -> Kind:
    """What the numbers of a file are: as somebody states it, or sums where nothing else is possible."""
    kind = file.layout.kind or said
    if said is not None and kind != said:
        raise InputError(
            f"{file.source}: the layout says {kind!r}, and --kind {said!r}; say it once."
        )
    sums = (
        "there are contributors beside the values"
        if file.count is not None or file.largest
        else "some of them have decimals"
        if file.decimals
        else "some of them are negative"
        if bool((file.dense < 0).any())
        else ""
    )
    if kind == "counts" and sums:
        raise InputError(f"{file.source}: the values hold sums, not counts: {sums}.")
    if kind is None and not sums and assumed is None:
        raise NotJudgedError(
            f"{file.source}: are the values counts or sums? Say --kind counts or --kind sums, or write 'kind' "
            "in a layout; of sums, a rule needs the contributors of every cell (columns 'n', 'x1', 'x2', ...)."
        )
    return kind or ("sums" if sums or assumed is None else assumed)


def _check_sums(file: TrueFile, axes: Sequence[TableAxis], relations: Relations) -> None:
    """Every total is the sum of its parts; the sentence names the cell that is off, and what would help."""

    def differences(values: Ints) -> Ints:
        return np.asarray(relations.matrix @ values.ravel())

    off = differences(file.dense)
    wrong = np.flatnonzero(off)
    if not wrong.size:
        return
    first = int(wrong[0])
    inside = [set(relations.cells[slice(*relations.indptr[i : i + 2])].tolist()) for i in wrong]
    shared = set.intersection(*inside) if len(inside) > 1 else set()
    total = int(relations.totals[first])
    by = abs(int(off[first]))
    sentence = (
        f"{file.source}: {_named(file, axes, total)} is not the sum of its parts, by "
        f"{Decimal(by).scaleb(-file.decimals):,f}"
    )
    listed = set(np.ravel_multi_index(file.positions, file.shape).tolist())
    if len(listed) < file.dense.size:
        sentence += "; rows are missing, which would be 0"
    for decimals in range(file.decimals - 1, -1, -1):
        if not differences(file.rounded(decimals).dense).any():
            sentence += (
                f"; 'decimals = {decimals}' under [suppress] of a layout would round it away"
            )
            break
    if len(shared) == 1:
        sentence += f"; {_named(file, axes, shared.pop())} is in every sum that is off"
    raise InputError(
        f"{sentence}. Correct the number, or say in a layout or with --hierarchy which codes are sums of which."
    )


def _named(file: TrueFile, axes: Sequence[TableAxis], cell: int) -> str:
    if cell < 0:
        return "a relation"
    at = np.unravel_index(cell, file.shape)
    key = tuple(axis.codes[int(i)] for axis, i in zip(axes, at, strict=True))
    place = f" ({file.places[file.keys.index(key)]})" if key in file.keys else ""
    return ", ".join(f"{n}={c}" for n, c in zip(file.names, key, strict=True)) + place


def _assumed(file: TrueFile, checked: CheckedContributions | None) -> dict[str, str]:
    """A sentence where blank contributions were filled with the worst case."""
    if checked is None or not checked.assumed:
        return {}
    number = len(checked.assumed)
    cells = "1 cell has" if number == 1 else f"{number:,} cells have"
    first = file.places[checked.assumed[0]]
    return {
        "assumed": f"{file.source}: {cells} blank contributions (first: {first}); each is taken to be as large "
        "as it can be."
    }
