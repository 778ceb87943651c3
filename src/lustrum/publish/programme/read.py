"""From a programme file (TOML) to a programme; every mistake is one clear sentence.

A file ends with the line ``end = true``, as a policy does: one that was cut would protect less than it should.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lustrum.audit import Relation
from lustrum.model import Axis, Dataset, InputError, QueryError, TableQuery
from lustrum.model.errors import check_known, choices
from lustrum.model.plugins import names
from lustrum.policy.read import finished_text
from lustrum.publish.programme.spec import (
    COUNT,
    METHODS,
    USUAL_FORMATS,
    PreparedSet,
    Programme,
    ProgrammeTable,
    RuleFor,
    Source,
    regrouped,
    tree_codes,
)
from lustrum.publish.waivers import refuse_requests
from lustrum.readers.hierarchy_files import Groups, read_groups
from lustrum.sensitivity import read_rule

_NAME = re.compile(r"[a-z0-9][a-z0-9-]*\Z")
_HEAD = (
    "name", "title", "period", "notes", "formats", "plain_status", "publish_rules", "certificate",
    "previous",
)  # fmt: skip
_DATA = (
    *("dataset", "file", "description", "bundle", "secret"),
    *("waivers", "requests", "beside", "existence"),
)
_NO_PATHS = ("dataset", "existence")
_SET = ("name", "title", "method", "rules", "relations", "unshown", "tables")
_TABLE = ("name", "title", "by", "where", "measures", "totals", "frozen", "never")
_AXIS = ("variable", "level", "levels", "codes", "hierarchy", "total")
_UNSHOWN = ("differences", "all", "nothing")


def read_programme(path: Path) -> Programme:
    """Read and check a programme file; files it names stand beside it unless their paths say otherwise."""
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}.") from None
    return parse_programme(raw, str(path), path.parent)


def parse_programme(raw: bytes, where: str, folder: Path) -> Programme:
    """Check the bytes of a programme file; ``where`` names it in messages."""
    try:
        document = tomllib.loads(finished_text(raw.decode("utf-8"), where))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{where} is not valid TOML: {error}.") from None
    try:
        return _programme(document, folder)
    except InputError as error:
        raise InputError(f"{where}: {error}") from None


def bound_to(programme: Programme, dataset: Dataset) -> Programme:
    """The programme with its levels looked up in a dataset; names that are not there are one sentence."""
    dataset = regrouped(programme.sets, dataset)
    bound = tuple(_bound_set(table_set, dataset) for table_set in programme.sets)
    check_families(bound, dataset)
    return replace(programme, sets=bound)


def _programme(document: Mapping[str, Any], folder: Path) -> Programme:
    check_known(document, ("programme", "data", "sets"), "the file has no key")
    head = _table(document, "programme", "the file")
    check_known(head, _HEAD, "[programme] has no key")
    name = _name(head, "[programme]")
    sets = tuple(_set(table_set, folder) for table_set in _tables(document, "sets", "the file"))
    if not sets:
        raise InputError("There is no [[sets]]; a programme needs one set of tables at least.")
    _distinct([table_set.name for table_set in sets], "set")
    _distinct([table.name for table_set in sets for table in table_set.tables], "table")
    formats = tuple(_texts(head.get("formats", USUAL_FORMATS), "[programme]: 'formats'"))
    check_known(formats, names("lustrum.formats"), "[programme]: there is no format")
    source = _source(_table(document, "data", "the file"), folder)
    if source.bundle is None:
        check_sets(sets)
        for table_set in sets:
            if not table_set.rules:
                raise InputError(
                    f"Set {table_set.name!r} has no [[sets.rules]]; say which cells are sensitive, or make the "
                    "tables from a bundle."
                )
            if source.requests is None:
                for judging in table_set.rules:
                    refuse_requests(judging.rule)
    else:
        for table in (table for table_set in sets for table in table_set.tables):
            if table.trees:
                raise InputError(
                    f"Table {table.name!r}: tables of a bundle have the levels of its dataset; leave "
                    "'hierarchy' out."
                )
            if table.responses != (COUNT,):
                raise InputError(
                    f"Table {table.name!r}: tables of a bundle are counts; leave 'measures' out."
                )
            if table.frozen or table.never:
                raise InputError(
                    f"Table {table.name!r}: all cells of a bundle's tables are shown; leave 'frozen' and "
                    "'never' out."
                )
        for table_set in sets:
            if table_set.rules or table_set.method or table_set.relations:
                raise InputError(
                    f"Set {table_set.name!r}: tables of a bundle are counts of protected numbers, which need "
                    "no 'rules', 'method' or 'relations'; leave these out."
                )
    if not _flag(head, "plain_status", "[programme]", True) and any(
        COUNT in table.responses for table_set in sets for table in table_set.tables
    ):
        raise InputError(
            "[programme]: 'plain_status' is false, and letters would tell how large hidden counts are; leave "
            "it out."
        )
    previous = _optional(head, "previous", "[programme]")
    return Programme(
        name=name,
        title=_text(head, "title", "[programme]", name),
        period=_text(head, "period", "[programme]", ""),
        notes=tuple(_texts(head.get("notes", ()), "[programme]: 'notes'")),
        source=source,
        sets=sets,
        formats=tuple(dict.fromkeys(formats)),
        plain_status=_flag(head, "plain_status", "[programme]", True),
        publish_rules=_flag(head, "publish_rules", "[programme]", False),
        certificate=_flag(head, "certificate", "[programme]", True),
        previous=None if previous is None else folder / previous,
    )


def _source(section: Mapping[str, Any], folder: Path) -> Source:
    check_known(section, _DATA, "[data] has no key")
    given = {key: _optional(section, key, "[data]") for key in _DATA}
    places = [key for key in ("dataset", "file", "bundle") if given[key] is not None]
    if len(places) != 1:
        raise InputError(
            "[data] names one of 'dataset' (of the data folder), 'file' (of records) and 'bundle'."
        )
    if (given["file"] is None) != (given["description"] is None):
        raise InputError("[data]: 'file' and 'description' go together; name both or neither.")
    if given["secret"] is not None and given["file"] is None:
        raise InputError("[data]: 'secret' goes with 'file'; a dataset has a secret of its own.")
    if given["bundle"] is not None:
        for key in ("waivers", "requests", "beside", "existence"):
            if given[key] is not None:
                raise InputError(f"[data]: {key!r} says nothing about tables of a bundle.")
    paths = {
        key: None if given[key] is None else folder / str(given[key])
        for key in _DATA
        if key not in _NO_PATHS
    }
    public = given["existence"] == "public"
    if given["existence"] is not None and not public:
        raise InputError("[data]: 'existence' can only be \"public\"; leave it out otherwise.")
    if (given["beside"] is None) == public:
        raise InputError(
            "[data]: sums beside a bundle tell which groups hold anybody, which its counts may hide; write "
            "existence = \"public\" beside 'beside' if anybody may know that, or leave 'beside' out."
        )
    return Source(dataset=given["dataset"], **paths)


def _set(section: Mapping[str, Any], folder: Path) -> PreparedSet:
    name = _name(section, "[[sets]]")
    where = f"Set {name!r}"
    check_known(section, _SET, f"{where} has no key")
    method = section.get("method", {})
    if isinstance(method, str):
        method = {"method": method}
    if not isinstance(method, Mapping):
        raise InputError(f"{where}: 'method' is a name or a table with method = \"...\".")
    if method:
        said = method.get("method")
        check_known((said,), METHODS, f"{where}: there is no method")
        if "rule" in method:
            raise InputError(f"{where}: rules stand in [[sets.rules]], not in the method.")
    relations = tuple(_texts(section.get("relations", ()), f"{where}: 'relations'"))
    for relation in relations:
        if (Relation.of(relation).low, Relation.of(relation).high) != (0, 0):
            raise InputError(f"{where}: the relation {relation!r} must be an equation, with '='.")
    unshown = section.get("unshown", "differences")
    check_known((unshown,), _UNSHOWN, f"{where}: 'unshown' cannot be")
    tables = tuple(_prepared(entry, where, folder) for entry in _tables(section, "tables", where))
    if not tables:
        raise InputError(f"{where} has no [[sets.tables]]; it needs one table at least.")
    if method and method.get("method") != "suppression":
        for table in tables:
            if table.frozen or table.never:
                raise InputError(
                    f"Table {table.name!r}: 'frozen' and 'never' are for the method 'suppression'."
                )
    shown = list(dict.fromkeys(r for table in tables for r in table.responses))
    return PreparedSet(
        name=name,
        title=_text(section, "title", where, name),
        method=dict(method),
        rules=tuple(_rule(entry, where, shown) for entry in _tables(section, "rules", where)),
        tables=tables,
        relations=relations,
        unshown=unshown,
    )


def _rule(section: Mapping[str, Any], where: str, shown: Sequence[str]) -> RuleFor:
    responses = tuple(_texts(section.get("measures", ()), f"{where}: 'measures' of a rule"))
    for one in responses:
        if one not in shown:
            raise InputError(
                f"{where}: a rule is for {one!r}, which no table of the set shows; {choices(one, shown)}."
            )
    try:
        rule = read_rule({key: value for key, value in section.items() if key != "measures"})
    except InputError as error:
        raise InputError(f"{where}: {error}") from None
    return RuleFor(rule, responses)


def _prepared(section: Mapping[str, Any], where: str, folder: Path) -> ProgrammeTable:
    name = _name(section, f"{where}, a table")
    context = f"Table {name!r}"
    check_known(section, _TABLE, f"{context} has no key")
    by = section.get("by")
    if not isinstance(by, Sequence) or isinstance(by, str) or not by:
        raise InputError(f"{context}: 'by' must be a list of variables, such as [\"activity\"].")
    axes = [_axis(one, context) for one in by]
    responses = tuple(_texts(section.get("measures", (COUNT,)), f"{context}: 'measures'"))
    if not responses or len(set(responses)) < len(responses):
        raise InputError(
            f"{context}: 'measures' names every measure once; {COUNT!r} counts records."
        )
    try:
        query = TableQuery.from_mapping(
            {
                "dataset": "programme",
                "by": axes,
                "where": section.get("where"),
                "totals": _flag(section, "totals", context, False),
            }
        )
    except QueryError as error:
        raise InputError(f"{context}: {error}") from None
    held = [_cells(section, key, context, query) for key in ("frozen", "never")]
    return ProgrammeTable(
        name,
        _text(section, "title", context, name),
        query,
        responses,
        frozen=held[0],
        never=held[1],
        trees=_trees(by, context, folder),
    )


def _trees(by: Sequence[object], where: str, folder: Path) -> dict[str, Groups]:
    """The groups that the axes of a table take from files."""
    trees = {}
    for axis in by:
        if isinstance(axis, Mapping) and "hierarchy" in axis:
            file = _text(axis, "hierarchy", f"{where}, an entry of 'by'")
            try:
                trees[str(axis["variable"])] = read_groups(folder / file)
            except InputError as error:
                raise InputError(f"{where}: {error}") from None
    return trees


def _cells(
    section: Mapping[str, Any], key: str, where: str, query: TableQuery
) -> tuple[Mapping[str, str], ...]:
    """Cells by their codes, such as frozen = [{region = "n"}]; codes are looked up with the data."""
    cells = _tables(section, key, where)
    names = [axis.variable for axis in query.by]
    for cell in cells:
        for name, code in cell.items():
            if name not in names:
                raise InputError(
                    f"{where}: {key!r} names {name!r}, by which the table is not; {choices(name, names)}."
                )
            if not isinstance(code, str):
                raise InputError(f"{where}: a code in {key!r} must be a text in quotes.")
    return tuple(dict(cell) for cell in cells)


def _axis(axis: object, where: str) -> object:
    """An axis in the words of a question; several levels are held as codes until they can be looked up."""
    if isinstance(axis, str):
        return axis
    if not isinstance(axis, Mapping):
        raise InputError(f"{where}: an entry of 'by' is a variable, or a table with 'variable'.")
    check_known(axis, _AXIS, f"{where}, an entry of 'by' has no key")
    ways = [key for key in ("level", "levels", "codes", "hierarchy") if key in axis]
    if len(ways) > 1:
        raise InputError(
            f"{where}: an entry of 'by' has one of 'level', 'levels', 'codes' and 'hierarchy'."
        )
    if "hierarchy" in axis:
        out = {key: value for key, value in axis.items() if key != "hierarchy"}
        return out | {"codes": [_TREE]}
    if "levels" not in axis:
        return dict(axis)
    levels = _texts(axis["levels"], f"{where}: 'levels'")
    out = {key: value for key, value in axis.items() if key != "levels"}
    return out | {"codes": [_LEVEL + level for level in levels]}


_LEVEL = "\0level:"
_TREE = "\0tree"
_FINEST = "finest"


def _bound_set(table_set: PreparedSet, dataset: Dataset) -> PreparedSet:
    tables = []
    for table in table_set.tables:
        try:
            axes = tuple(_bound_axis(axis, dataset, table) for axis in table.query.by)
            query = replace(table.query, dataset=dataset.name, by=axes)
            for where in query.where:
                where.members(dataset.variable(where.variable))
            for response in table.responses:
                if response != COUNT:
                    dataset.measure(response)
        except QueryError as error:
            raise InputError(f"Table {table.name!r}: {error}") from None
        tables.append(replace(table, query=query))
    for relation in table_set.relations:
        for name in Relation.of(relation).weights:
            if name != COUNT:
                dataset.measure(name)
    return replace(table_set, tables=tuple(tables))


def _bound_axis(axis: Axis, dataset: Dataset, table: ProgrammeTable) -> Axis:
    variable = dataset.variable(axis.variable)
    if axis.codes == (_TREE,):
        return replace(axis, codes=tree_codes(variable, table.trees[axis.variable]))
    if axis.codes is None or not axis.codes[0].startswith(_LEVEL):
        axis.categories(variable)
        return axis
    codes: dict[str, None] = {}
    for word in axis.codes:
        level = word.removeprefix(_LEVEL)
        offered = variable.finest if level == _FINEST else variable.level(level).categories
        codes.update(dict.fromkeys(category.code for category in offered))
    return replace(axis, codes=tuple(codes))


def _table(section: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any]:
    table = section.get(key)
    if not isinstance(table, Mapping):
        raise InputError(f"{where} has no table [{key}]; it needs one.")
    return table


def _tables(section: Mapping[str, Any], key: str, where: str) -> Sequence[Mapping[str, Any]]:
    tables = section.get(key, ())
    if not isinstance(tables, Sequence) or not all(isinstance(one, Mapping) for one in tables):
        raise InputError(f"{where}: {key!r} is a list of tables, each written [[...{key}]].")
    return tables


def _text(section: Mapping[str, Any], key: str, where: str, default: str | None = None) -> str:
    text = section.get(key, default)
    if not isinstance(text, str):
        raise InputError(f"{where}: {key!r} must be a text in quotes.")
    return text


def _optional(section: Mapping[str, Any], key: str, where: str) -> str | None:
    return None if key not in section else _text(section, key, where)


def _name(section: Mapping[str, Any], where: str) -> str:
    name = _text(section, "name", where)
    if not _NAME.match(name):
        raise InputError(f"{where}: the name {name!r} must be lower-case letters, digits and '-'.")
    return name


def _texts(texts: object, where: str) -> Sequence[str]:
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise InputError(f"{where} must be a list of texts in quotes.")
    if not all(isinstance(one, str) for one in texts):
        raise InputError(f"{where} must be a list of texts in quotes.")
    return texts


def _flag(section: Mapping[str, Any], key: str, where: str, default: bool) -> bool:
    flag = section.get(key, default)
    if not isinstance(flag, bool):
        raise InputError(f"{where}: {key!r} must be true or false.")
    return flag


def _distinct(names: Sequence[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"There are two {what}s named {name!r}; names must differ.")


# What a reader sees together must be protected together: sets of a programme, and measures that add up.


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
