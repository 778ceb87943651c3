"""SDMX-CSV 2.0, and the structure that goes with it as SDMX-ML 3.0.

A cell that is not shown has the value ``NaN``, ``Q`` (suppressed) for its ``OBS_STATUS`` and its letter of
``CL_CONF_STATUS`` for its ``CONF_STATUS``. These are two code lists, in which a letter means different things.
Signs that SDMX lets no code have are written as ``$``, their number and ``$``: ``$2E$`` is a full stop.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from lustrum.formats.about import NOTHING, About
from lustrum.formats.cell_text import csv_lines, field, numbers
from lustrum.model import CellStatus, Release, TableAxis
from lustrum.model.release import check_publishable
from lustrum.model.text import say

AGENCY, VERSION = "LUSTRUM", "1.0.0"
_NORMAL, _HIDDEN, _NOTHING = "A", "Q", "M"
OBS_STATUS = {
    _NORMAL: "Normal value",
    _NOTHING: "Missing value; data cannot exist",
    _HIDDEN: "Missing value; suppressed",
}
ATTRIBUTES = {
    "OBS_STATUS": "Observation status",
    "CONF_STATUS": "Confidentiality status",
    "UNIT_MEASURE": "Unit of measure",
    "LOWER_BOUND": "Least value that is possible",
    "UPPER_BOUND": "Largest value that is possible",
    "STANDARD_ERROR": "Standard error",
    "RELIABILITY": "Reliability",
    "MARGIN_OF_ERROR": "Margin of error",
}
"""What is said of an observation, in the order of the columns; those from the fourth on where it is known."""

_LISTS = {"OBS_STATUS": "CL_OBS_STATUS(2.2)", "CONF_STATUS": "CL_CONF_STATUS(1.3)"}
_PLAIN = re.compile(r"[A-Za-z0-9_@-]")
_ESCAPED = re.compile(r"\$([0-9A-F]*)\$")


def sdmx_id(code: str) -> str:
    """A code as SDMX lets it be written; two codes never become one.

    >>> sdmx_id("0..4"), sdmx_id("-1"), sdmx_id("")
    ('0$2E$$2E$4', '-1', '$$')
    """
    return "".join(c if _PLAIN.fullmatch(c) else f"${ord(c):X}$" for c in code) or "$$"


def sdmx_text(identifier: str) -> str:
    """The code behind an identifier.

    >>> sdmx_text(sdmx_id("a b$"))
    'a b$'
    """
    return _ESCAPED.sub(
        lambda found: chr(min(int(found[1] or "0", 16), 0x10FFFF)) if found[1] else "", identifier
    )


@dataclass(frozen=True)
class Dimension:
    """A variable with its codes, and the parents of those that have one."""

    name: str
    label: str
    codes: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, axis: TableAxis, name: str) -> Dimension:
        """The variable of a table."""
        return cls(name, axis.label, tuple(zip(axis.codes, axis.labels, strict=True)))


def dimension_names(names: Iterable[str]) -> list[str]:
    """Names of variables as SDMX lets dimensions be called, each once and none that of another column."""
    taken = {"STRUCTURE", "STRUCTURE_ID", "ACTION", "OBS_VALUE", *ATTRIBUTES}
    out = []
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_-]", "_", name)
        plain = plain if plain[:1].isalpha() else f"V{plain}"
        while plain in taken:
            plain += "_"
        taken.add(plain)
        out.append(plain)
    return out


class SdmxCsv:
    """Writes SDMX-CSV 2.0: one row a cell, codes only; ``flow`` names the dataflow of its structure."""

    name: ClassVar[str] = "sdmx-csv"
    title: ClassVar[str] = "SDMX-CSV"
    media_type: ClassVar[str] = "application/vnd.sdmx.data+csv; version=2.0.0"
    ending: ClassVar[str] = "sdmx.csv"
    tells_about: ClassVar[bool] = True

    def __init__(self, *, flow: str = "TABLE") -> None:
        self.flow = flow

    def write(self, release: Release, label: str = "", about: About = NOTHING) -> str:
        """The release as text."""
        check_publishable(release, "An SDMX-CSV file")
        return "".join(self._pieces(about.beside(release)))

    def _pieces(self, release: Release) -> Iterator[str]:
        known, stated, shown = release.known, release.stated, release.shown
        status = release.status.ravel()
        undefined = (shown & ~known).ravel()
        width = release.shape[-1] if release.axes else 1
        units = [field(release.unit_at(at)) for at in range(width)]
        errors, grades, margins = release.errors, release.grades, release.error_margins
        bounded = stated.any() and release.least is not None and release.most is not None
        graded = errors is not None and grades is not None
        told = [*ATTRIBUTES][:3]
        told += ["LOWER_BOUND", "UPPER_BOUND"] if bounded else []
        told += ["STANDARD_ERROR", "RELIABILITY"] if graded else []
        told += ["MARGIN_OF_ERROR"] if margins is not None else []

        def columns(low: int, high: int) -> list[Sequence[str]]:
            values = numbers(release, release.numbers, known, low, high)
            observed = np.where(shown.ravel()[low:high], _NORMAL, _HIDDEN)
            observed[undefined[low:high]] = _NOTHING
            made: list[Sequence[str]] = [
                [value or "NaN" for value in values],
                observed.tolist(),
                status[low:high].tolist(),
                units * ((high - low) // len(units)),
            ]
            if bounded and release.least is not None and release.most is not None:
                made += [
                    numbers(release, e, stated, low, high) for e in (release.least, release.most)
                ]
            if errors is not None and grades is not None:
                there = known & (errors >= 0)
                seen = np.where(there.ravel(), grades.ravel(), "")[low:high].tolist()
                made += [numbers(release, errors, there, low, high), [field(g) for g in seen]]
            if margins is not None:
                made.append(numbers(release, margins, known & (margins >= 0), low, high))
            return made

        names = dimension_names(axis.name for axis in release.axes)
        head = ["STRUCTURE", "STRUCTURE_ID", "ACTION", *names, "OBS_VALUE", *told]
        axes = [[field(sdmx_id(code)) for code in axis.codes] for axis in release.axes]
        yield from csv_lines(
            head, [["dataflow"], [_reference(self.flow)], ["I"], *axes], columns, "\r\n"
        )


class SdmxStructure:
    """Writes the structure message of the file of SDMX-CSV: its dataflow, concepts and code lists."""

    name: ClassVar[str] = "sdmx-structure"
    title: ClassVar[str] = say("Structure of the SDMX-CSV")
    media_type: ClassVar[str] = "application/vnd.sdmx.structure+xml; version=3.0.0"
    ending: ClassVar[str] = "sdmx.xml"
    tells_about: ClassVar[bool] = True

    def write(self, release: Release, label: str = "", about: About = NOTHING) -> str:
        """The structure as text."""
        check_publishable(release, "An SDMX structure")
        wide = about.beside(release)
        names = dimension_names(axis.name for axis in wide.axes)
        dimensions = [Dimension.of(axis, name) for axis, name in zip(wide.axes, names, strict=True)]
        title = label or " by ".join(axis.label for axis in release.axes) or "Table"
        said = [(name, str(value)) for name, value in about.lines(release, label)]
        return structure_message([Flow("TABLE", title, tuple(dimensions), tuple(said))], about.date)


@dataclass(frozen=True)
class Flow:
    """A dataflow with its dimensions, and what is said of it as annotations."""

    name: str
    title: str
    dimensions: tuple[Dimension, ...]
    said: tuple[tuple[str, str], ...] = ()


def _reference(name: str) -> str:
    return f"{AGENCY}:{name}({VERSION})"


def _urn(package: str, kind: str, reference: str) -> str:
    return f"urn:sdmx:org.sdmx.infomodel.{package}.{kind}={reference}"


def structure_message(flows: Sequence[Flow], day: str = "", *, stubs: bool = False) -> str:
    """A structure message of SDMX-ML 3.0; ``stubs`` names the dataflows alone."""
    root = "http://www.sdmx.org/resources/sdmxml/schemas/v3_0"
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n',
        f'<mes:Structure xmlns:mes="{root}/message" xmlns:str="{root}/structure" xmlns:com="{root}/common">\n',
        f"<mes:Header><mes:ID>LUSTRUM</mes:ID><mes:Test>false</mes:Test><mes:Prepared>{day or '1970-01-01'}"
        f'T00:00:00Z</mes:Prepared><mes:Sender id="{AGENCY}"/></mes:Header>\n<mes:Structures>',
        _many("Dataflows", (_flow(flow) for flow in flows)),
    ]
    if not stubs:
        lists = [_code_list(flow, dimension) for flow in flows for dimension in flow.dimensions]
        parts.append(_many("Codelists", [*lists, *_own_lists()]))
        parts.append(_many("ConceptSchemes", map(_concepts, flows)))
        parts.append(_many("DataStructures", map(_structure, flows)))
    return "".join([*parts, "</mes:Structures>\n</mes:Structure>\n"])


# SDMX-ML 2.1, which clients of the interface before version 2 read: the same messages in older words.

_REFERENCE = re.compile(
    r"<str:(Structure|ConceptIdentity|Enumeration)>urn:sdmx:org\.sdmx\.infomodel\.(\w+)\.(\w+)="
    r"(\w+):([\w@$-]+)\(([\d.]+)\)(?:\.([\w@$-]+))?</str:\1>"
)
_OLDER = (
    (re.compile(r"(</?str:)ConceptSchemes>"), r"\1Concepts>"),
    (re.compile(r"(</?str:)Measure\b"), r"\1PrimaryMeasure"),
    (
        re.compile(r'(<str:Attribute id="\w+") usage="optional">'),
        r'\1 assignmentStatus="Conditional">',
    ),
    (
        re.compile(r"<str:Observation/>"),
        '<str:PrimaryMeasure><Ref id="OBS_VALUE"/></str:PrimaryMeasure>',
    ),
    (
        re.compile(r"(<str:AttributeList>.*?</str:AttributeList>\n)(<str:MeasureList>.*?\n)", re.S),
        r"\2\1",
    ),
)


def older_structure(message: str) -> str:
    """A structure message of SDMX-ML 3.0 as one of 2.1."""

    def reference(found: re.Match[str]) -> str:
        place, package, kind, agency, name, version, item = found.groups()
        whose = f'agencyID="{agency}"'
        if item is None:
            named = f'id="{name}" {whose} version="{version}"'
        else:
            parent = f'maintainableParentID="{name}" maintainableParentVersion="{version}"'
            named = f'id="{item}" {parent} {whose}'
        return f'<str:{place}><Ref {named} package="{package}" class="{kind}"/></str:{place}>'

    message = _REFERENCE.sub(reference, message.replace("/schemas/v3_0", "/schemas/v2_1", 3))
    for pattern, older in _OLDER:
        message = pattern.sub(older, message)
    return message


def generic_data(table: str, flow: str, day: str) -> str:
    """A table of SDMX-CSV as generic data of SDMX-ML 2.1, observation by observation."""
    root = "http://www.sdmx.org/resources/sdmxml/schemas/v2_1"
    head, *rows = csv.reader(io.StringIO(table, newline=""))
    value = head.index("OBS_VALUE")
    usage = (
        f'<Ref id="{flow}" agencyID="{AGENCY}" version="{VERSION}" package="datastructure" '
        'class="Dataflow"/>'
    )
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<mes:GenericData xmlns:mes="{root}/message" xmlns:gen="{root}/data/generic" '
        f'xmlns:com="{root}/common">\n<mes:Header><mes:ID>{AGENCY}</mes:ID><mes:Test>false</mes:Test>'
        f"<mes:Prepared>{day}T00:00:00Z</mes:Prepared>"
        f'<mes:Sender id="{AGENCY}"/><mes:Structure structureID="TABLE" dimensionAtObservation="AllDimensions">'
        f"<com:StructureUsage>{usage}</com:StructureUsage></mes:Structure></mes:Header>\n"
        '<mes:DataSet structureRef="TABLE" action="Information">\n'
    ]

    def values(names: Sequence[str], cells: Sequence[str]) -> str:
        return "".join(
            f"<gen:Value id={quoteattr(name)} value={quoteattr(cell)}/>"
            for name, cell in zip(names, cells, strict=True)
            if cell
        )

    for row in rows:
        parts.append(
            f"<gen:Obs><gen:ObsKey>{values(head[3:value], row[3:value])}</gen:ObsKey>"
            f"<gen:ObsValue value={quoteattr(row[value])}/>"
            f"<gen:Attributes>{values(head[value + 1 :], row[value + 1 :])}</gen:Attributes></gen:Obs>\n"
        )
    return "".join([*parts, "</mes:DataSet>\n</mes:GenericData>\n"])


def _many(name: str, parts: Iterable[str]) -> str:
    return f"<str:{name}>\n{''.join(parts)}</str:{name}>\n"


def _xml(text: str) -> str:
    """A text without the signs that XML cannot hold."""
    return escape(
        re.sub(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", str(text))
    )


def _name(text: str) -> str:
    return f'<com:Name xml:lang="en">{_xml(text) or "-"}</com:Name>'


def _whose(name: str, agency: str = AGENCY, version: str = VERSION) -> str:
    return f"id={quoteattr(name)} agencyID={quoteattr(agency)} version={quoteattr(version)}"


def _flow(flow: Flow) -> str:
    said = "".join(
        f"<com:Annotation><com:AnnotationTitle>{_xml(name)}</com:AnnotationTitle>"
        f'<com:AnnotationText xml:lang="en">{_xml(value)}</com:AnnotationText></com:Annotation>'
        for name, value in flow.said
    )
    annotations = f"<com:Annotations>{said}</com:Annotations>" if said else ""
    urn = _urn("datastructure", "DataStructure", _reference(f"DSD_{flow.name}"))
    return (
        f"<str:Dataflow {_whose(flow.name)}>{annotations}{_name(flow.title)}"
        f"<str:Structure>{urn}</str:Structure></str:Dataflow>\n"
    )


def _list_name(flow: Flow, dimension: Dimension) -> str:
    return f"CL_{flow.name}_{dimension.name}"


def _codes(codes: Iterable[tuple[str, str]]) -> str:
    return "".join(
        f"<str:Code id={quoteattr(sdmx_id(code))}>{_name(label or code)}</str:Code>\n"
        for code, label in codes
    )


def _code_list(flow: Flow, dimension: Dimension) -> str:
    name = _whose(_list_name(flow, dimension))
    return (
        f"<str:Codelist {name}>{_name(dimension.label)}\n{_codes(dimension.codes)}</str:Codelist>\n"
    )


def _own_lists() -> Iterator[str]:
    letters = {status.value: str(status.meaning) for status in CellStatus}
    for attribute, codes in (("OBS_STATUS", OBS_STATUS), ("CONF_STATUS", letters)):
        name, _, version = _LISTS[attribute].removesuffix(")").partition("(")
        whose = _whose(name, "SDMX", version)
        inside = f"{_name(ATTRIBUTES[attribute])}\n{_codes(codes.items())}"
        yield f'<str:Codelist {whose} isPartial="true">{inside}</str:Codelist>\n'


def _concepts(flow: Flow) -> str:
    labels = (
        {d.name: d.label for d in flow.dimensions} | {"OBS_VALUE": "Observation value"} | ATTRIBUTES
    )
    inside = "".join(
        f"<str:Concept id={quoteattr(name)}>{_name(label)}</str:Concept>\n"
        for name, label in labels.items()
    )
    whose = _whose(f"CS_{flow.name}")
    return f"<str:ConceptScheme {whose}>{_name(flow.title)}\n{inside}</str:ConceptScheme>\n"


def _structure(flow: Flow) -> str:
    def concept(name: str) -> str:
        urn = _urn("conceptscheme", "Concept", f"{_reference(f'CS_{flow.name}')}.{name}")
        return f"<str:ConceptIdentity>{urn}</str:ConceptIdentity>"

    def coded(reference: str) -> str:
        urn = _urn("codelist", "Codelist", reference)
        return f"<str:LocalRepresentation><str:Enumeration>{urn}</str:Enumeration></str:LocalRepresentation>"

    def typed(kind: str) -> str:
        return f'<str:LocalRepresentation><str:TextFormat textType="{kind}"/></str:LocalRepresentation>'

    dimensions = "".join(
        f'<str:Dimension id={quoteattr(d.name)} position="{place}">{concept(d.name)}'
        f"{coded(_reference(_list_name(flow, d)))}</str:Dimension>\n"
        for place, d in enumerate(flow.dimensions, 1)
    )
    attributes = "".join(
        f'<str:Attribute id="{name}" usage="optional">{concept(name)}'
        f"{coded(f'SDMX:{_LISTS[name]}') if name in _LISTS else typed('String')}"
        "<str:AttributeRelationship><str:Observation/></str:AttributeRelationship>"
        "</str:Attribute>\n"
        for name in ATTRIBUTES
    )
    measure = f'<str:Measure id="OBS_VALUE">{concept("OBS_VALUE")}{typed("Double")}</str:Measure>'
    return (
        f"<str:DataStructure {_whose(f'DSD_{flow.name}')}>{_name(flow.title)}<str:DataStructureComponents>\n"
        f"<str:DimensionList>{dimensions}</str:DimensionList>\n"
        f"<str:AttributeList>{attributes}</str:AttributeList>\n"
        f"<str:MeasureList>{measure}</str:MeasureList>\n"
        "</str:DataStructureComponents></str:DataStructure>\n"
    )
