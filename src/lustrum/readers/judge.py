"""The verdict on published files: what is disclosed, and whether everything in them has a role."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from math import ceil, floor, prod
from pathlib import Path
from typing import Literal

import numpy as np

from lustrum.audit import Knowledge
from lustrum.audit.knowledge.facts import ContradictionError
from lustrum.model import InputError
from lustrum.model.arrays import Floats
from lustrum.model.errors import choices
from lustrum.readers.cells import ALL, CellCube, Reading, cube_of, read_cells
from lustrum.readers.confidential import Number, TrueFile
from lustrum.readers.container import read_container
from lustrum.readers.contributions import Contribution, finest_decimals, read_contributions
from lustrum.readers.findings import InsiderAttack, ValueFindings, room_of
from lustrum.readers.grids import Container
from lustrum.readers.insiders import Contributors
from lustrum.readers.layout import CONFIDENTIAL, CodeRoles, Layout, read_layout
from lustrum.readers.number_text import Style, printed
from lustrum.readers.own import sidecar
from lustrum.readers.propose import RoleQuestion, propose, unlisted_words
from lustrum.readers.relations import CHANCE, CodeRelation, evidence, knowledge_of, relations_of
from lustrum.readers.report import AuditedFile, AuditedValue, FileReport, OpenQuestion
from lustrum.sensitivity import PPercent, Rule

_REASONS = {
    0: "Everything in the files has a role, and nothing hidden can be worked out.",
    3: "Something hidden can be worked out.",
    4: "Not judged: some questions are open.",
}
_UNIONS = "public sums of hidden cells need no protection ('unions' under [suppress])"
Levels = Callable[[CellCube], tuple[Floats, Floats]]
"""For every cell of a cube, the range that a reader's must hold; nan where nothing is asked."""


@dataclass(frozen=True, eq=False)
class OpenedFile:
    """A file with its layout, and the questions that the layout leaves open."""

    container: Container
    layout: Layout
    origin: Literal["given", "beside the file", "proposed"]
    questions: tuple[RoleQuestion, ...]
    reading: Reading


def open_file(path: Path, layout: Layout | None = None) -> OpenedFile:
    """Read a file by a layout, by the one that stands beside it for these bytes, or by a proposal."""
    container = read_container(path)
    origin: Literal["given", "beside the file", "proposed"] = "given"
    if layout is None and sidecar(path).is_file():
        beside = read_layout(sidecar(path))
        if beside.digest == container.digest:
            layout, origin = beside, "beside the file"
    if layout is None:
        proposal = propose(container)
        questions: list[RoleQuestion] = list(proposal.questions)
        layout, origin = proposal.layout, "proposed"
        return OpenedFile(
            container, layout, origin, tuple(questions), read_cells(container, layout)
        )
    if layout.digest and layout.digest != container.digest:
        raise InputError(
            f"{path}: the layout is of a file with other bytes; propose it anew, or correct 'digest'."
        )
    roles = {n: c.role for table in layout.tables for n, c in table.columns.items()}
    secret = next((name for name, role in roles.items() if role in CONFIDENTIAL), None)
    if secret is not None or not layout.tables:
        raise InputError(
            f"{path}: the layout has no [[tables]], which say what the columns are."
            if secret is None
            else f"{path}: the column {secret!r} is {roles[secret]!r}, which only a confidential file holds; "
            "what is published of it is a value or a note."
        )
    reading = read_cells(container, layout)
    names = {name for cell in reading.cells for name in cell.key}
    unknown = next((name for name in layout.dimensions if name not in names), None)
    if unknown is not None:
        raise InputError(
            f"{path}: its tables have no variable {unknown!r}; {choices(unknown, names)}."
        )
    questions = [RoleQuestion(role, f"The layout leaves {role!r} open.") for role in layout.open]
    return OpenedFile(
        container, layout, origin, (*questions, *_without_role(container, reading, layout)), reading
    )


def _without_role(container: Container, reading: Reading, layout: Layout) -> Iterable[RoleQuestion]:
    """What a layout that somebody gave does not speak of."""
    for text, places in reading.symbols.items():
        yield RoleQuestion("symbols", f"What does {text!r} stand for ({places[0]})?", len(places))
    for text, places in reading.letters.items():
        yield RoleQuestion(
            "letters", f"What does {text!r} say beside a number ({places[0]})?", len(places)
        )
    for column in reading.columns:
        yield RoleQuestion(f"column:{column}", f"What is the column {column!r}?")
    if reading.lines and layout.notes is None:
        yield RoleQuestion(
            "notes",
            f"Do lines outside the tables ({reading.lines[0]}) say anything about hidden cells?",
        )
    if container.unread and layout.parts is None:
        yield RoleQuestion("parts", f"The file holds more than its cells: {container.unread[0]}.")
    if reading.unlisted:
        yield RoleQuestion("missing", unlisted_words(reading), len(reading.unlisted))
    names = dict.fromkeys(name for cell in reading.cells for name in cell.key)
    for name in names:
        codes = dict.fromkeys(cell.key[name] for cell in reading.cells if name in cell.key)
        settled = layout.dimensions[name].settled() if name in layout.dimensions else set()
        left = [code for code in codes if code not in settled]
        if left and len(codes) > 1:
            yield RoleQuestion(
                f"codes:{name}", f"What are the codes {', '.join(map(repr, left[:5]))} of {name!r}?"
            )


@dataclass(frozen=True, eq=False)
class JudgedFiles:
    """The report, and the facts behind it with the cells that were asked about."""

    report: FileReport
    known: Knowledge | None
    cells: Sequence[int]


def judge(
    files: Sequence[OpenedFile],
    *,
    close: float = 1.0,
    narrow: int = 5,
    levels: Levels | None = None,
    seconds: float | None = None,
    equations_only: bool = False,
    contributions: Path | None = None,
    coalition: int = 1,
    protect: tuple[Decimal, bool] | None = None,
    rule: Rule | None = None,
    unions: bool = False,
) -> JudgedFiles:
    """Judge files that one reader holds together.

    With ``contributions`` also contributors attack, holdings, and coalitions of up to ``coalition`` of them.
    The cells in which ``rule`` fails must then keep its levels, and with ``unions`` it must hold in public
    sums of hidden cells. ``protect`` is how far the range of a cell must reach: a number, or a
    percentage, which of sums is the p%-rule.
    """
    layout = _merged(files)
    reading = Reading(cells=[cell for file in files for cell in file.reading.cells])
    rows = [] if contributions is None else _contributions(contributions, files, reading)
    rounded = any(file.layout.rounding is not None for file in files)
    decimals = finest_decimals(rows) if rows and rounded else 0
    cube = cube_of(", ".join(file.container.source for file in files), reading, layout, decimals)
    questions = [
        OpenQuestion(file=f.container.source, role=q.role, text=q.text)
        for f in files
        for q in f.questions
    ]
    whole, doubts = _across_files(cube, layout, files)
    questions += doubts
    given = {
        name
        for f in files
        if not f.layout.open and f.origin != "proposed"
        for name in f.layout.dimensions
    }
    every = [r for name, d in layout.dimensions.items() for r in relations_of(name, d)] + whole
    sure = [r for r in every if (r.axis in given and r not in whole) or _shown(cube, r)]
    people = None
    if rows:
        people = Contributors.of(rows, cube, layout, every, knowledge_of(cube, layout, every))
    wanted = None if levels is None else levels(cube)
    kind = _kind(files)
    if wanted is None and people is not None and protect is not None:
        if kind == "sums" and protect[1]:
            rule = PPercent(p=float(protect[0]), coalition=coalition)
        else:
            ends = people.total + np.multiply.outer([-1, 1], room_of(people.total, cube, protect))
            wanted = ends[0].astype(np.float64), ends[1].astype(np.float64)
    if rule is not None and kind == "counts":
        raise InputError("A rule is about contributions to sums; audit counts with --protect.")
    attack = InsiderAttack(coalition, rule, unions)
    options = ValueFindings(close, narrow, wanted, seconds, equations_only, kind)
    if_confirmed: tuple[AuditedValue, ...] = ()
    try:
        known, values, left, closest = options.values(cube, layout, sure)
        if people is not None:
            values += options.insiders(cube, known, people, attack, values)
        questions += options.questions(cube)
    except ContradictionError as error:
        known, values, left, closest = None, (), 0, None
        questions.insert(0, OpenQuestion(file=cube.source, role="codes", text=str(error)))
    open_symbols = any("symbols" in f.layout.open for f in files)
    values = tuple(v for v in values if not (open_symbols and v.finding == "exact" and v.low == 0))
    if options.kind is None and any(v.finding == "close" for v in values):
        questions.append(
            OpenQuestion(file=cube.source, role="kind", text="Are the numbers counts or sums?")
        )
        if_confirmed = tuple(v for v in values if v.finding == "close")
        values = tuple(v for v in values if v.finding != "close")
    maybe = [
        g for d in layout.dimensions.values() for g in d.subsets.values() if g.complete is None
    ]
    if (questions or maybe) and not any(v.finding != "few values" for v in values):
        tried = [r for n, d in layout.dimensions.items() for r in relations_of(n, d, complete=True)]
        with suppress(ContradictionError):
            more = options.values(cube, layout, tried + whole)[1]
            if_confirmed += tuple(v for v in more if v.finding == "exact" and v not in if_confirmed)
        if maybe and if_confirmed and not questions:
            text = (
                f"Are {', '.join(maybe[0].codes[:4])} all of it? Then something can be worked out."
            )
            questions.append(OpenQuestion(file=cube.source, role="complete", text=text))
    standing = tuple(
        f"{f.container.source}, {c.place}"
        for f in files
        if "letters" not in f.layout.open
        for c in f.reading.standing
    )
    standing += tuple(f"hidden in one of {places}" for places in cube.revealed)
    found = standing or any(v.finding != "few values" for v in values)
    code: Literal[0, 3, 4] = 3 if found else 4 if questions else 0
    report = FileReport(
        exit=code,
        reason=_REASONS[code],
        confidential=people is not None,
        files=tuple(
            AuditedFile(
                name=f.container.source,
                digest=f.container.digest,
                layout=f.origin,
                notes=f.container.notes,
            )
            for f in files
        ),
        hidden=int(cube.asked.sum()),
        open=left,
        values=values,
        standing=standing,
        questions=tuple(dict.fromkeys(questions)),
        if_confirmed=if_confirmed,
        on_word=_on_word(cube, layout, files, sure)
        + ((_UNIONS,) if people is not None and rule is not None and not unions else ()),
        closest=closest,
        contributors=0 if people is None else len(people.names),
        coalition=0 if people is None else coalition,
    )
    asked = np.flatnonzero((cube.asked & cube.listed).ravel())
    cells = [] if known is None else asked.tolist()
    return JudgedFiles(report, known, cells)


def _contributions(path: Path, files: Sequence[OpenedFile], reading: Reading) -> list[Contribution]:
    """The lines of a file of contributions, read as the layouts of the files say."""
    if any(file.origin == "proposed" for file in files):
        raise InputError("--contributions needs the layout of every file; give it with --layout.")
    if _kind(files) is None:
        raise InputError("--contributions needs 'kind' in the layout: counts or sums.")
    declared = [f.layout.contributions for f in files if f.layout.contributions is not None]
    if any(one != declared[0] for one in declared):
        raise InputError("The layouts describe the contributions in different ways; say it in one.")
    variables = list(dict.fromkeys(name for cell in reading.cells for name in cell.key))
    decimal = files[0].layout.decimal
    return read_contributions(path, declared[0] if declared else None, variables, decimal)


def _kind(files: Sequence[OpenedFile]) -> str | None:
    kinds = {file.layout.kind for file in files}
    return kinds.pop() if len(kinds) == 1 else None


def _merged(files: Sequence[OpenedFile]) -> Layout:
    """One layout of all files: their variables by name, each with the roles that any of them gives."""
    dimensions: dict[str, CodeRoles] = {}
    for file in files:
        for name, dimension in file.layout.dimensions.items():
            if name not in dimensions:
                dimensions[name] = dimension
                continue
            before, more = dimensions[name].model_dump(), dimension.model_dump()
            for role, content in more.items():
                if isinstance(content, dict):
                    clash = next(
                        (k for k, v in content.items() if before[role].get(k, v) != v), None
                    )
                    if clash is not None:
                        raise InputError(
                            f"The code {clash!r} of {name!r} has different roles in different "
                            f"files; name one of the "
                            "variables otherwise."
                        )
                    before[role] = {**before[role], **content}
                elif isinstance(content, tuple):
                    before[role] = tuple(dict.fromkeys((*before[role], *content)))
                else:
                    before[role] = before[role] or content
            dimensions[name] = CodeRoles.model_validate(before)
    signed = any(file.layout.signed or "signed" in file.layout.open for file in files)
    return Layout(tables=files[0].layout.tables, dimensions=dimensions, signed=signed)


def _across_files(
    cube: CellCube, layout: Layout, files: Sequence[OpenedFile]
) -> tuple[list[CodeRelation], list[OpenQuestion]]:
    """What a table without a variable is: its total, or the sum of its codes; shown by numbers in both."""
    relations, questions = [], []
    shown = 1 / prod(1 + abs(number) for number in cube.twice) < CHANCE
    for axis, name in enumerate(cube.names):
        dimension = layout.dimensions.get(name, CodeRoles())
        if all(name in cell.key for file in files for cell in file.reading.cells) or dimension.all:
            continue
        relation = None
        if ALL in cube.codes[axis]:
            below = {part for parts in dimension.totals.values() for part in parts}
            below |= {code for group in dimension.subsets.values() for code in group.codes}
            below |= {
                *dimension.same,
                *dimension.differences,
                *dimension.units,
                *dimension.not_additive,
            }
            tops = [code for code in cube.codes[axis] if code not in below and code != ALL]
            relation = CodeRelation.total(name, ALL, tops)
            relations.append(relation)
        if not shown and (relation is None or not _shown(cube, relation)):
            text = f"Does the table without {name!r} cover all of it? Say so by 'all' of {name!r}."
            questions.append(OpenQuestion(file=cube.source, role=f"all:{name}", text=text))
    for name in cube.names:
        listed = [{c.key[name] for c in f.reading.cells if name in c.key} for f in files]
        listed = [codes for codes in listed if codes]
        union = set().union(*listed)
        related = any(
            union <= f.layout.dimensions[name].settled()
            for f in files
            if name in f.layout.dimensions
        )
        if any(codes != union for codes in listed) and len(union) > 1 and not related:
            text = f"The files list different codes of {name!r}; say in one layout how all of them relate."
            questions.append(OpenQuestion(file=cube.source, role=f"codes:{name}", text=text))
    return relations, questions


def _shown(cube: CellCube, relation: CodeRelation) -> bool:
    """Whether the numbers of the files show a sum."""
    if (relation.low, relation.high) != (0, 0) or relation.terms[0][1] != -1:
        return False
    axis = cube.names.index(relation.axis)
    value, known = cube.lines(axis)
    total, *parts = (cube.codes[axis].index(code) for code, _ in relation.terms)
    shown = evidence(value, known, total, parts)
    return shown is not None and shown[0] > 0 and shown[1] < CHANCE


def _on_word(
    cube: CellCube, layout: Layout, files: Sequence[OpenedFile], sure: Sequence[CodeRelation]
) -> tuple[str, ...]:
    """The roles that rest on a person's word alone."""
    out = []
    for file in files:
        if file.origin == "proposed":
            continue
        name, given = Path(file.container.source).name, file.layout
        out += [
            f"{name}: {text!r} means {_words(meaning)}" for text, meaning in given.symbols.items()
        ]
        out += [
            f"{name}: the letter {text!r} means {_words(m)}" for text, m in given.letters.items()
        ]
        for table in given.tables:
            notes = [column for column, one in table.columns.items() if one.role == "note"]
            out += [f"{name}: the column {column!r} states nothing" for column in notes]
            if table.missing is not None:
                out.append(f"{name}: combinations that are not listed are {table.missing}")
        if given.zeros_shown:
            out.append(f"{name}: zeros are shown")
        if given.rounding is not None:
            out.append(f"{name}: numbers are rounded ({given.rounding.how})")
        if given.notes and file.reading.lines:
            out.append(f"{name}: lines outside the tables state nothing")
        if given.parts and file.container.unread:
            out.append(f"{name}: other parts of the file state nothing")
    for relation in sure:
        if not _shown(cube, relation):
            head, *others = (code for code, _ in relation.terms)
            out.append(f"{relation.axis}: {head} and {', '.join(others[:4])} belong together")
    for axis, dimension in layout.dimensions.items():
        out += [f"{axis}: {code} is independent" for code in dimension.independent]
        out += [f"{axis}: {code} does not add up" for code in dimension.not_additive]
    return tuple(dict.fromkeys(out))


def _words(meaning: object) -> str:
    return (
        meaning
        if isinstance(meaning, str)
        else f"{getattr(meaning, 'low', '')} to {getattr(meaning, 'high', '')}"
    )


DefaultLevel = tuple[Decimal, bool]
"""A level for cells that have none of their own: a number, and whether it is percent."""


def default_level(text: str) -> DefaultLevel:
    number = printed(text.strip().removesuffix("%"), Style())
    if number is None or number.mark or number.value < 0:
        raise InputError(f"--protect is a percentage such as 10% or a number, not {text!r}.")
    return number.value, text.strip().endswith("%")


def levels_of(truth: Sequence[TrueFile], default: DefaultLevel | None = None) -> Levels:
    """The range that a reader's must hold for every cell that was not published as it is.

    The levels are the columns ``lower`` and ``upper`` of the true tables. Where these are empty or missing, the
    default holds.
    """

    def levels(cube: CellCube) -> tuple[Floats, Floats]:
        low, high = np.full(cube.value.shape, np.nan), np.full(cube.value.shape, np.nan)
        scale = 10**cube.decimals
        for file in truth:
            missing = next((name for name in file.names if name not in cube.names), None)
            if missing is not None:
                raise InputError(
                    f"{file.source}: the published tables have no variable {missing!r}."
                )
            index_of = [{code: i for i, code in enumerate(codes)} for codes in cube.codes]
            for row, key in enumerate(file.keys):
                codes = dict(zip(file.names, key, strict=True))
                at = tuple(
                    index.get(codes.get(name, "(all)"), -1)
                    for name, index in zip(cube.names, index_of, strict=True)
                )
                given = [_own(column, row) for column in (file.lower, file.upper)]
                if -1 in at or not cube.asked[at] or (given == [None, None] and default is None):
                    continue
                exact = Fraction(file.values[row])
                lower, upper = (_usual(exact, default) if g is None else Fraction(g) for g in given)
                # In whole units of the published tables, and never less than the level.
                low[at] = floor((exact - lower) * scale)
                high[at] = ceil((exact + upper) * scale)
        return low, high

    return levels


def _own(column: tuple[Number, ...] | None, row: int) -> Number:
    return None if column is None else column[row]


def _usual(value: Fraction, default: DefaultLevel | None) -> Fraction:
    if default is None:
        return Fraction(0)
    number, percent = Fraction(default[0]), default[1]
    return abs(value) * number / 100 if percent else number
