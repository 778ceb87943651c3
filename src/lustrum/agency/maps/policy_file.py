"""The chosen method written into a policy file, which is checked before it replaces another."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lustrum.model import InputError
from lustrum.policy import Before, PolicyMethod
from lustrum.policy.read import END, parse_policy
from lustrum.rumap import BeforeCounting, RUMap

_STARTER: Mapping[str, Any] = {
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
    plain = [f"{k} = {_value(v)}" for k, v in settings.items() if not _is_table(v)]
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
            yield from (f"{k} = {_value(v)}" for k, v in entry.items())


def _is_table(value: Any) -> bool:
    return isinstance(value, Mapping) or (
        isinstance(value, list) and bool(value) and all(isinstance(v, Mapping) for v in value)
    )


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{k} = {_value(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_value(v) for v in value)}]"
    if isinstance(value, bool | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, int | float):
        return repr(value)
    raise InputError(f"A policy cannot hold a value of type {type(value).__name__}.")


def _plain(spec: Any) -> dict[str, Any]:
    """The words of a method as plain values, without where it is applied."""
    method = spec.method if isinstance(spec, BeforeCounting) else spec
    settings: dict[str, Any] = json.loads(json.dumps(method.to_mapping()))
    return settings


def _risk(ru_map: RUMap, before: Mapping[str, Any], limit: float) -> dict[str, Any]:
    """The measure of the map with its limit; a limit means nothing beside another measure."""
    measure = ru_map.measures.risks[0][1]
    settings = json.loads(json.dumps(measure.to_mapping(), default=str))
    return {**{k: v for k, v in settings.items() if v is not None}, "limit": min(float(limit), 1.0)}
