"""The public files of a programme: every table in every format, the report, and the manifest's words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from html import escape
from typing import Any, get_args

from lustrum.audit.knowledge.responses import Relation
from lustrum.formats.cell_text import free_name
from lustrum.formats.write import as_bytes, plain_letters, release_as_parquet
from lustrum.model import CellStatus, Dataset, InputError, Release
from lustrum.model.plugins import load
from lustrum.model.variable import TOTAL_CODE
from lustrum.protect.suppression import Suppression
from lustrum.public.prepared.folder import release_words
from lustrum.publish.prepared import json_bytes
from lustrum.publish.programme.spec import COUNT, PreparedSet, Programme, ProgrammeTable
from lustrum.readers.layout import CodeRoles, Layout
from lustrum.readers.own import BESIDE, Form, own_layout, public_layout, roles_of

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
  color: #1a1f36; background: #fff }
h1, h2 { font-family: Georgia, serif }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums }
th, td { border: 1px solid #c9ccd8; padding: .3rem .6rem; text-align: left }
td.n { text-align: right }
@media (prefers-color-scheme: dark) { body { background: #14161f; color: #e8e9f0 } a { color: #9db4ff }
  th, td { border-color: #3a3f52 } }
"""


@dataclass(frozen=True, eq=False)
class MadeTable:
    """A protected table with the place it has in the programme."""

    table_set: PreparedSet
    table: ProgrammeTable
    response: str
    release: Release


@dataclass(frozen=True)
class SetReport:
    """What the public is told about a set: how it was protected and checked."""

    name: str
    title: str
    method: Mapping[str, Any]
    checked: str
    certificates: tuple[str, ...] = ()


def public_files(
    programme: Programme,
    dataset: Dataset,
    tables: Sequence[MadeTable],
    sets: Sequence[SetReport],
    certificates: Mapping[str, bytes],
    source: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The words of the manifest and the bytes of all files; nothing in them is confidential."""
    files: dict[str, bytes] = dict(certificates)
    tables = [replace(one, release=_selected(one, dataset)) for one in tables]
    layouts = _Layouts(dataset, tables)
    listed: list[dict[str, Any]] = []
    for one in tables:
        release = plain_letters(one.release) if programme.plain_status else one.release
        label = _label(one, dataset)
        places: dict[str, str] = {}
        stem = f"tables/{one.table.name}/{one.response}"
        for name in programme.formats:
            ending, data = _written(name, release, label)
            places[name] = f"{stem}.{ending}"
            if places[name] in files:
                raise InputError(
                    f"[programme]: two of the formats are files of .{ending}; name one."
                )
            files[places[name]] = data
            layout = layouts.of(one, release, name)
            if layout is not None:
                files[places[name] + BESIDE] = own_layout(layout, data).encode()
        places["table"] = f"{stem}.table.json"
        files[places["table"]] = json_bytes(release_words(release))
        listed.append(
            {
                "name": one.table.name,
                "response": one.response,
                "title": one.table.title,
                "set": one.table_set.name,
                "label": label,
                "unit": release.unit,
                "cells": int(release.numbers.size),
                "suppressed": int((~release.shown).sum()),
                "files": places,
            }
        )
    head = {
        "name": programme.name,
        "title": programme.title,
        "period": programme.period,
        "notes": list(programme.notes),
        "dataset": dataset.name,
        "source": dict(source),
        "tables": listed,
    }
    report = head | {
        "sets": [_set_words(set_report) for set_report in sets],
        "statuses": _statuses(tables, programme),
    }
    files["report.json"] = json_bytes(report)
    files["report.html"] = _page(report).encode()
    return head, files


def _selected(one: MadeTable, dataset: Dataset) -> Release:
    """The table without what it does not select: a 0 there would come from the question, not from people."""
    query, axes = one.table.query, one.release.axes
    kept = [query.selected(dataset.variable(axis.name), axis.categories) for axis in axes]
    for axis, places in zip(axes, kept, strict=True):
        if not places:
            raise InputError(
                f"Table {one.table.name!r} shows no category of {axis.name!r} that its 'where' selects."
            )
    return one.release.take(kept)


def _written(name: str, release: Release, label: str) -> tuple[str, bytes]:
    if name == "parquet":
        return "parquet", release_as_parquet(release)
    form = load("lustrum.formats", name)()
    return form.ending, as_bytes(form.write(release, label))


@dataclass(frozen=True, eq=False)
class _Layouts:
    """The public layouts of a programme's tables, which say how codes of all of them belong together."""

    dataset: Dataset
    tables: Sequence[MadeTable]

    def of(self, one: MadeTable, release: Release, form: str) -> Layout | None:
        """The layout of a table in a format; none of tables whose numbers are not true where they are shown.

        There is none either for a format that no reader of ours knows.
        """
        form = "plain" if form == "parquet" else form
        fixed = {self._responses: one.response}
        for part in one.table.query.where:
            fixed[part.variable] = _whole_name(part.codes)
        if (
            release.method.get("method") != Suppression.name
            or _sums_of(one.table_set) is None
            or fixed.keys() & {axis.name for axis in release.axes}
            or (form == "json-stat" and release.stated.any())
            or form not in get_args(Form)
        ):
            return None
        return public_layout(
            release,
            "counts" if one.response == COUNT else "sums",
            form,  # type: ignore[arg-type]
            fixed=fixed,
            roles=self._roles,
        )

    @cached_property
    def _responses(self) -> str:
        """The name of the variable whose codes are responses."""
        return free_name("response", {variable.name for variable in self.dataset.variables})

    @cached_property
    def _roles(self) -> Mapping[str, CodeRoles]:
        """The roles of all codes that any table shows or selects by, and of responses."""
        members: dict[str, dict[str, frozenset[int]]] = {}
        for one in self.tables:
            for axis in one.release.axes:
                held = members.setdefault(axis.name, {})
                held |= {c.code: frozenset(c.members) for c in axis.categories}
            for part in one.table.query.where:
                variable = self.dataset.variable(part.variable)
                held = members.setdefault(part.variable, {})
                held[_whole_name(part.codes)] = part.members(variable)
        for name, held in members.items():
            everybody = frozenset(range(len(self.dataset.variable(name).finest)))
            if everybody not in held.values():
                held[free_name(TOTAL_CODE, {*held})] = everybody
        roles = {name: roles_of(held) for name, held in members.items()}
        totals: dict[str, tuple[str, ...]] = {}
        for one in self.tables:
            totals |= _sums_of(one.table_set) or {}
        shown = dict.fromkeys(one.response for one in self.tables)
        alone = [name for name in shown if name not in CodeRoles(totals=totals).settled()]
        return {**roles, self._responses: CodeRoles(totals=totals, independent=tuple(alone))}


def _sums_of(table_set: PreparedSet) -> dict[str, tuple[str, ...]] | None:
    """The responses that are sums of others; None if a relation is no sum."""
    totals = {}
    for relation in map(Relation.of, table_set.relations):
        head, *parts = relation.weights
        weights = [relation.weights[name] for name in parts]
        exact = (relation.low, relation.high) == (0, 0) and abs(relation.weights[head]) == 1
        if not exact or set(weights) != {-relation.weights[head]}:
            return None
        totals[head] = tuple(parts)
    return totals


def _whole_name(codes: Sequence[str]) -> str:
    return " or ".join(codes)


def _label(one: MadeTable, dataset: Dataset) -> str:
    if one.response == COUNT:
        said = f"number of {dataset.units}"
    else:
        measure = dataset.measure(one.response)
        said = f"{measure.label}{f' ({measure.unit})' if measure.unit else ''}"
    return f"{one.table.title}: {said}"


def _set_words(set_report: SetReport) -> dict[str, Any]:
    return {
        "name": set_report.name,
        "title": set_report.title,
        "method": dict(set_report.method),
        "checked": set_report.checked,
        "certificates": list(set_report.certificates),
    }


def _statuses(tables: Sequence[MadeTable], programme: Programme) -> dict[str, str]:
    letters: set[str] = set()
    for one in tables:
        release = plain_letters(one.release) if programme.plain_status else one.release
        letters |= set(release.status.ravel().tolist())
    return {letter: str(CellStatus(letter).meaning) for letter in sorted(letters)}


def _page(report: Mapping[str, Any]) -> str:
    rows = []
    for table in report["tables"]:
        links = ", ".join(
            f'<a href="{escape(href)}">{escape(name)}</a>'
            for name, href in table["files"].items()
            if name != "table"
        )
        rows.append(
            f"<tr><td>{escape(table['label'])}</td><td class=n>{table['cells']:,}</td>"
            f"<td class=n>{table['suppressed']:,}</td><td>{links}</td></tr>"
        )
    sets = []
    for table_set in report["sets"]:
        proofs = "".join(
            f'<p>Proofs: <a href="{escape(href)}">{escape(href)}</a>; '
            "check them with <code>lustrum verify</code>.</p>"
            for href in table_set["certificates"]
        )
        parameters = ", ".join(
            f"{key}: {_words(value)}" for key, value in table_set["method"].items()
        )
        sets.append(
            f"<h2>{escape(table_set['title'])}</h2><p>{escape(parameters)}.</p><p>{escape(table_set['checked'])}</p>{proofs}"
        )
    notes = "".join(f"<p>{escape(note)}</p>" for note in report["notes"])
    letters = "".join(
        f"<li>{escape(letter)}: {escape(text)}</li>" for letter, text in report["statuses"].items()
    )
    period = f", {escape(report['period'])}" if report["period"] else ""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{escape(report['title'])}</title><style>{_STYLE}</style></head><body>"
        f"<h1>{escape(report['title'])}{period}</h1>{notes}"
        "<table><thead><tr><th>Table</th><th>Cells</th><th>Not shown</th><th>Files</th></tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table>"
        f"{''.join(sets)}<h2>Status letters</h2><ul>{letters}</ul></body></html>\n"
    )


def _words(value: object) -> str:
    if isinstance(value, list):
        return ", ".join(_words(one) for one in value)
    if isinstance(value, Mapping):
        return " ".join(f"{key} {_words(one)}" for key, one in value.items())
    return str(value)
