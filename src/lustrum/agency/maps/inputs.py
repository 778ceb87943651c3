"""What is dropped in: true tables as files, or saved questions about a dataset."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lustrum.answer.replay import read_questions
from lustrum.model import InputError, Table
from lustrum.model.errors import choices
from lustrum.model.plugins import names
from lustrum.policy import Before, PolicyMethod
from lustrum.policy.read import END, parse_policy
from lustrum.readers.confidential import read_true
from lustrum.readers.true_tables import members_of, true_table
from lustrum.rumap import BeforeCounting, Cases, RecordTables, RUMap, Tables, grid
from lustrum.tabulate import Store

_QUESTIONS = (".json", ".jsonl", ".log")


def cases_of_files(
    files: Iterable[Path], data: Path | None = None, no_totals: Iterable[str] = ()
) -> Cases:
    """The tables of files: CSV or Parquet with true values, or questions about a dataset in a data folder.

    Whole numbers without contributors are counts. ``no_totals`` names dimensions that have no total among their
    codes; an empty name stands for all.
    """
    paths = list(files)
    if not paths:
        raise InputError("A map needs a table; name a file.")
    asked = [path for path in paths if path.suffix.lower() in _QUESTIONS]
    if asked and len(asked) < len(paths):
        raise InputError("A map is of files with tables, or of saved questions, not of both.")
    if asked:
        return _questions(asked, data)
    tables: dict[str, Table] = {}
    for path in paths:
        file = read_true(path)
        codes = members_of([file], without_totals=[*no_totals])
        tables[_free(path.stem, tables)] = true_table(file, codes, assumed="counts")
    return Tables(tables)


def cases_of_texts(texts: Mapping[str, bytes], data: Path | None = None) -> Cases:
    """The same from the names and contents of files; totals are recognised where there are any."""
    with tempfile.TemporaryDirectory(prefix="lustrum-map-") as folder:
        paths = []
        for number, (name, content) in enumerate(texts.items()):
            subfolder = Path(folder) / str(number)
            subfolder.mkdir()
            path = subfolder / (Path(name).name or "table.csv")
            path.write_bytes(content)
            paths.append(path)
        try:
            return cases_of_files(paths, data)
        except InputError as error:
            if "no total is recognised" not in str(error):
                raise InputError(str(error).replace(f"{folder}/", "")) from None
        return cases_of_files(paths, data, no_totals=[""])


def _questions(paths: Iterable[Path], data: Path | None) -> Cases:
    if data is None:
        raise InputError(
            "Saved questions need the data that they are about; name the folder by --data."
        )
    queries = [query for path in paths for query in read_questions(path)]
    names = {query.dataset for query in queries}
    if len(names) > 1:
        raise InputError("The questions are about several datasets; a map is of one.")
    name = names.pop()
    store = Store(data)
    if name not in store.names():
        raise InputError(f"There is no dataset {name!r} in {data}; {choices(name, store.names())}.")
    engine = store.open(name)
    titled: dict[str, object] = {}
    named = {}
    for query in queries:
        by = " x ".join(axis.variable for axis in query.by) or "everybody"
        where = ", ".join(item.variable for item in query.where)
        name = _free(by + (f" where {where}" if where else ""), titled)
        titled[name] = None
        named[name] = query
    return RecordTables(engine, named)


def _free(name: str, taken: Mapping[str, object]) -> str:
    """A name that no other table has."""
    if name not in taken:
        return name
    number = 2
    while f"{name} {number}" in taken:
        number += 1
    return f"{name} {number}"


# --- The methods that can be ticked on the page, each with parameters to vary


@dataclass(frozen=True)
class MapMethod:
    """A method on the page: a name, a sentence, the parameter that is varied, and whether it is ticked."""

    name: str
    summary: str
    parameter: str = ""
    values: str = ""
    ticked: bool = True
    fixed: Mapping[str, Any] | None = None


MAP_METHODS = (
    MapMethod("random-rounding", "random rounding to a base", "base", "3, 5, 10"),
    MapMethod("conventional-rounding", "rounding to the nearest multiple", "base", "3, 5, 10"),
    MapMethod("small-count-rounding", "only small counts are rounded", "base", "3, 5"),
    MapMethod("cell-key", "perturbation by record keys"),
    MapMethod(
        "stochastic-perturbation",
        "perturbation by a matrix",
        "version",
        '"plain", "invariant"',
        False,
    ),
    MapMethod("markov-perturbation", "people move, totals stay", "theta", "0.05, 0.1, 0.2"),
    MapMethod("controlled-rounding", "additive rounding", "base", "3, 5, 10"),
    MapMethod("table-swapping", "swaps that keep totals", "sweeps", "1, 5", True, {"order": 1}),
    MapMethod("differential-privacy", "noise with a budget", "epsilon", "0.5, 1.0, 2.0"),
    # Its points need a risk of cells: the table-level measure, which is the default, needs all cells.
    MapMethod(
        "suppression",
        "small cells and others are hidden; choose cell-certainty as risk",
        ticked=False,
        fixed={"algorithm": "quick"},
    ),
    MapMethod(
        "protected-population", "finest cells changed once", "base", "3, 5", False, {"sweeps": 10}
    ),
    MapMethod("multiplicative-noise", "noise on magnitudes", ticked=False, fixed={"level": "cell"}),
    MapMethod("cell-key-magnitude", "cell key for magnitudes", ticked=False),
)
"""In the order in which their points come in: the quick ones first."""


def offered() -> tuple[MapMethod, ...]:
    """Those that are installed."""
    known = names("lustrum.methods")
    return tuple(method for method in MAP_METHODS if method.name in known)


def methods_of(chosen: Mapping[str, str]) -> list[Any]:
    """Methods from the names that are ticked, with the values of their parameter as written on the page.

    >>> [m.base for m in methods_of({"random-rounding": "3, 5"})]
    [3, 5]
    """
    by = {method.name: method for method in offered()}
    methods: list[Any] = []
    for name in by:
        if name not in chosen:
            continue
        method, written = by[name], str(chosen[name]).strip()
        fixed = dict(method.fixed or {})
        if not method.parameter or not written:
            methods += grid(name, **fixed)
            continue
        try:
            values = json.loads(f"[{written}]")
        except json.JSONDecodeError:
            raise InputError(
                f"The values of {method.parameter!r} of {name!r} must be written with commas between, as "
                f"{method.values}."
            ) from None
        methods += grid(name, **fixed, **{method.parameter: values})
    unknown = [name for name in chosen if name not in by]
    if unknown:
        raise InputError(f"There is no method {unknown[0]!r} on this page.")
    if not methods:
        raise InputError("No method is ticked; tick one or more.")
    return methods


# --- The chosen method written into a policy file, which is checked before it replaces another

_STARTER: Mapping[str, object] = {
    "dataset": "*",
    "rules": {
        "max_dimensions": 3,
        "max_filters": 1,
        "min_population": 1000,
        "min_mean_cell_size": 5.0,
        "max_small_share": 0.2,
        "nested_only": True,
    },
    "risk": {"measure": "table-entropy", "parts": "true", "shared": "expected", "limit": 0.3},
}
"""A cautious policy, for where there is none yet."""


def policy_text(
    ru_map: RUMap, method: int, limit: float | None, before: str | None, dataset: str = "*"
) -> str:
    """A policy with a method of a map in it: the policy before with that method, or a cautious new one."""
    settings: dict[str, Any] = {**_STARTER, "dataset": dataset}
    if before is not None:
        parse_policy(before.encode(), "The policy before")
        settings = tomllib.loads(_without_end(before))
    spec = ru_map.sweep.methods[method]
    # What the policy file says of the method must give the method of the map back.
    method_settings = {k: v for k, v in _plain(spec).items() if v is not None}
    if isinstance(spec, BeforeCounting) or hasattr(spec, "apply_records"):
        Before.model_validate(method_settings)
        settings["before"] = [method_settings]
        settings["protect"] = settings.get("protect", {"method": "none"})
    else:
        PolicyMethod.model_validate(method_settings).check_for_tables()
        settings["protect"] = method_settings
    if limit is not None:
        settings["risk"] = _risk(ru_map, settings.get("risk", {}), limit)
    text = f"{toml(settings)}\n{END}\n"
    parse_policy(text.encode(), "The policy")
    return text


def write_policy(
    path: Path, ru_map: RUMap, method: int, limit: float | None, dataset: str = "*"
) -> Path | None:
    """Write the policy; the one before is kept beside it, and its place is returned."""
    before = path.read_text(encoding="utf-8") if path.exists() else None
    text = policy_text(ru_map, method, limit, before, dataset)
    path.parent.mkdir(parents=True, exist_ok=True)
    backup = None
    if before is not None:
        backup = path.with_suffix(f"{path.suffix}.before")
        backup.write_text(before, encoding="utf-8")
    draft = path.with_suffix(f"{path.suffix}.new")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)
    return backup


def toml(settings: Mapping[str, Any]) -> str:
    """Words as TOML: plain keys first, then a table for each mapping and for each entry of a list of them.

    >>> print(toml({"dataset": "demo", "risk": {"limit": 0.3}, "before": [{"method": "none"}]}))
    dataset = "demo"
    <BLANKLINE>
    [risk]
    limit = 0.3
    <BLANKLINE>
    [[before]]
    method = "none"
    """
    plain = [f"{k} = {toml_value(v)}" for k, v in settings.items() if not _is_table(v)]
    return "\n".join([*plain, *_tables(settings)])


def _without_end(text: str) -> str:
    """A policy file without its last line, which would else belong to the table before it."""
    body, _, _ = text.rstrip().rpartition("\n")
    return body


def _tables(settings: Mapping[str, Any]) -> Iterator[str]:
    for key, value in settings.items():
        if not _is_table(value):
            continue
        head, entries = (f"[[{key}]]", value) if isinstance(value, list) else (f"[{key}]", [value])
        for entry in entries:
            yield ""
            yield head
            yield from (f"{k} = {toml_value(v)}" for k, v in entry.items())


def _is_table(value: object) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)
    )


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {toml_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(toml_value(v) for v in value)}]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return repr(value)
    raise InputError(f"A policy cannot hold a value of type {type(value).__name__}.")


def _plain(spec: Any) -> dict[str, object]:
    """The words of a method as plain values, without where it is applied."""
    method = spec.method if isinstance(spec, BeforeCounting) else spec
    settings: dict[str, Any] = json.loads(json.dumps(method.to_mapping()))
    return settings


def _risk(ru_map: RUMap, before: Mapping[str, object], limit: float) -> dict[str, object]:
    """The measure of the map with its limit; a limit means nothing beside another measure."""
    measure = ru_map.measures.risks[0][1]
    settings = json.loads(json.dumps(measure.to_mapping(), default=str))
    return {**{k: v for k, v in settings.items() if v is not None}, "limit": min(float(limit), 1.0)}
