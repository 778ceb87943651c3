"""What a request in the words of PxWebApi 2 selects, and the form in which it wants the table."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lustrum.formats.about import About
from lustrum.formats.cell_text import inert
from lustrum.formats.csv import Csv
from lustrum.formats.html import Html
from lustrum.formats.jsonstat import JsonStat
from lustrum.formats.parquet import Parquet
from lustrum.formats.px import Px
from lustrum.formats.xlsx import Xlsx
from lustrum.model import Axis, QueryError, Release, TableQuery
from lustrum.model.errors import choices
from lustrum.server.http.languages import current
from lustrum.server.protocols.answering import Json
from lustrum.server.protocols.selections import Offer, PreparedOffer, selected

BASE = "/pxapi/v2"
CONTENTS = "ContentsCode"
FORMATS: dict[str, Any] = {
    "json-stat2": JsonStat,
    "csv": Csv,
    "xlsx": Xlsx,
    "html": Html,
    "px": Px,
    "parquet": Parquet,
}
_SHOW = {"usecodes": "codes", "usetexts": "labels", "usecodesandtexts": "both"}
_SEPARATORS = {"separatortab": "\t", "separatorspace": " ", "separatorsemicolon": ";"}
_OPTIONS = {"csv": (*_SHOW, *_SEPARATORS, "includetitle"), "html": (*_SHOW, "includetitle")}


@dataclass(frozen=True)
class Selection:
    """What a request selects of a table, and where its variables stand."""

    axes: tuple[Axis, ...]
    contents: tuple[str, ...]
    heading: tuple[str, ...] | None = None
    given: bool = True

    def query(self, offer: Offer) -> TableQuery:
        return offer.query(self.axes, self.contents)


@dataclass(frozen=True)
class Form:
    """A format with its options."""

    name: str = "json-stat2"
    options: tuple[str, ...] = ()

    @classmethod
    def of(cls, name: str, options: Sequence[str]) -> Form:
        """A format by the words of a request."""
        name = name or "json-stat2"
        if name not in FORMATS:
            raise QueryError(f"There is no format {name[:80]!r}; {choices(name, FORMATS)}.")
        known = _OPTIONS.get(name, ())
        lowered = tuple(option.lower() for option in options)
        for option in lowered:
            if option not in known:
                there = ", ".join(known) or "none"
                raise QueryError(
                    f"The format {name} has no parameter {option[:80]!r}; there are: {there}."
                )
        for group in (_SHOW, _SEPARATORS):
            if sum(option in group for option in set(lowered)) > 1:
                raise QueryError(f"Of {', '.join(group)} name one.")
        return cls(name, lowered)

    def write(
        self, release: Release, title: str, about: About, heading: Sequence[str] | None
    ) -> str | bytes:
        """A table whose last variable is its contents, in it and in the language of the request."""
        release, title = in_current_language(release), str(current().say(title))
        show: Any = next((_SHOW[o] for o in self.options if o in _SHOW), "labels")
        if self.name == "px":
            px = Px(heading=heading, language=current().code)
            return px.write(release, title, about)
        if self.name == "html":
            return Html(show=show).write(release, title, about)
        if self.name == "csv":
            text = Csv().write(release, title, about)
            return self._delimited(text, title, show, release.axes[-1].name)
        if self.name == "json-stat2":
            made = json.loads(JsonStat().write(release, title, about))
            return json.dumps(by_code(made), ensure_ascii=False)
        made_file: str | bytes = FORMATS[self.name]().write(release, title, about)
        return made_file

    def _delimited(self, text: str, title: str, show: str, last: str) -> str:
        """Our CSV with another delimiter, and with codes or labels alone."""
        if not self.options:
            return text
        head, *rows = csv.reader(io.StringIO(text, newline=""))
        stop = head.index(last) + 2
        dropped = {"codes": "_label", "labels": ""}.get(show)
        keep = [
            place
            for place, name in enumerate(head)
            if place >= stop or show == "both" or name.endswith("_label") == (dropped == "")
        ]
        out = io.StringIO()
        delimiter = next((_SEPARATORS[o] for o in self.options if o in _SEPARATORS), ",")
        writer = csv.writer(out, delimiter=delimiter)
        if "includetitle" in self.options:
            writer.writerow([inert(title)])
        writer.writerows([line[place] for place in keep] for line in (head, *rows))
        return out.getvalue()


def in_current_language(release: Release) -> Release:
    """The release with labels and notes in the language of the request, where somebody translated them."""
    say = current().say
    return replace(
        release,
        axes=tuple(
            replace(
                axis,
                label=say(axis.label),
                categories=tuple(replace(c, label=say(c.label)) for c in axis.categories),
            )
            for axis in release.axes
        ),
        notes=tuple(say(note) for note in release.notes),
        unit=say(release.unit),
        statistics=tuple(
            replace(one, label=say(one.label), unit=say(one.unit)) for one in release.statistics
        ),
    )


def by_code(made: Json) -> Json:
    """A JSON-stat dataset in the one of its forms that the protocol's description has."""
    for name, one in made["dimension"].items():
        category = one["category"]
        category["index"] = {code: place for place, code in enumerate(category["index"])}
        one["extension"] = {"elimination": name != CONTENTS, "show": "value"}
        for unit in category.get("unit", {}).values():
            unit["base"] = unit.pop("label")
    if "status" in made:
        made["status"] = {str(i): s for i, s in enumerate(made["status"]) if s != "F"}
    return made


def selection_of(body: Any, offer: Offer | PreparedOffer) -> Selection:
    """A selection in the words of the protocol; every mistake is one clear sentence."""
    if body is None:
        body = {"selection": []}
    if not isinstance(body, dict) or not isinstance(body.get("selection"), list):
        raise QueryError(
            'A selection is an object such as {"selection": [{"variableCode": "sex", "valueCodes": ["*"]}]}.'
        )
    axes: list[Axis] = []
    contents: list[str] = []
    for one in body["selection"]:
        words = one if isinstance(one, dict) else {}
        name, values = words.get("variableCode"), words.get("valueCodes")
        values = [] if values is None else values
        if not isinstance(name, str) or not are_texts(values):
            raise QueryError(
                "Each variable of a selection needs a 'variableCode' and a list 'valueCodes'."
            )
        if name == CONTENTS:
            every = [content.code for content in offer.contents]
            contents += selected(values, every, CONTENTS) if values else []
        elif values:
            offer.variable(name)
            level = level_of(offer, name, words.get("codelist") or words.get("codeList"))
            axes.append(offer.axis(name, values, level))
        else:
            offer.variable(name)
    ordered, heading = _placed(body.get("placement"), axes)
    given = bool(body["selection"])
    return Selection(tuple(ordered), tuple(contents) or ("count",), heading, given)


def are_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)


def _placed(placement: Any, axes: list[Axis]) -> tuple[list[Axis], tuple[str, ...] | None]:
    """The variables in the order of stub and heading, and those of the heading."""
    if not placement:
        return axes, None
    if not isinstance(placement, dict):
        raise QueryError("'placement' is an object with 'stub' and 'heading'.")
    stub, heading = placement.get("stub", []), placement.get("heading", [])
    if not are_texts(stub) or not are_texts(heading):
        raise QueryError("'stub' and 'heading' of a placement are lists of variables.")
    names = [axis.variable for axis in axes]
    for name in (*stub, *heading):
        if name not in (*names, CONTENTS):
            raise QueryError(
                f"The placement names {name[:80]!r}, which is not selected; {choices(name, names)}."
            )
    if len({*stub, *heading}) < len([*stub, *heading]):
        raise QueryError("The placement names a variable twice; name it once.")
    rest = [name for name in names if name not in (*stub, *heading)]
    order = [*stub, *rest, *heading]
    ordered = sorted(axes, key=lambda axis: order.index(axis.variable))
    return ordered, tuple(heading) if heading else None


def list_id(dataset: str, variable: str, level: str | None) -> str:
    words = f"{dataset}.{variable}"
    return f"vs_{words}" if level is None else f"agg_{words}.{level}"


def level_of(offer: Offer | PreparedOffer, variable: str, name: object) -> str | None:
    """The level that a code list is about."""
    if name in (None, "", list_id(offer.name, variable, None)):
        return None
    known = {list_id(offer.name, variable, one): one for one in offer.levels(variable)}
    if not isinstance(name, str) or name not in known:
        raise QueryError(
            f"Variable {variable!r} has no code list {str(name)[:80]!r}; {choices(str(name), known)}."
        )
    return known[name]
