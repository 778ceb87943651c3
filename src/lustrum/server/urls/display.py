"""How a table is shown, as parameters of its address beside those of the question.

They change nothing of the question and nothing of what is protected: whatever is shown is worked out from the
published values::

    show=row-percent&pivot=sex:rows&pivot=age:columns&sort=-age:3&empty=hide

The reference of the HTTP API lists them. One without a value counts as absent. A variable or a value that is
not known is a mistake; a layer or a sorting of a variable that has meanwhile been moved elsewhere is passed
over, since a form goes on sending it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import unquote, urlencode

from lustrum.model import QueryError
from lustrum.model.errors import choices
from lustrum.model.text import say
from lustrum.server.urls import forms

PLACES = ("rows", "columns", "layers")
_WORDS = {
    "as": ("table", "chart", "map"),
    "show": (
        "counts", "row-percent", "column-percent", "whole-percent", "row-rate", "difference",
        "index",
    ),
    "empty": ("show", "hide"),
    "heat": ("off", "on", "bars"),
    "names": ("labels", "codes", "both"),
    "margins": ("on", "off"),
    "bounds": ("off", "on"),
    "decimals": ("1", "0", "2", "3"),
    "chart": ("fitting", "bars", "stacked", "lines", "pyramid", "heat"),
    "scale": ("fitting", "shared", "own"),
    "classes": ("quantile", "natural"),
}  # fmt: skip
"""What each parameter may say; the first stands if it is absent."""

PARAMETERS = (*_WORDS, "pivot", "layer", "against", "fold", "sort", "page")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class TableView:
    """A way to show a table."""

    form: str = "table"
    show: str = "counts"
    pivot: Pairs = ()
    layer: Pairs = ()
    against: Pairs = ()
    fold: tuple[str, ...] = ()
    sort: str = ""
    empty: str = "show"
    heat: str = "off"
    names: str = "labels"
    margins: str = "on"
    bounds: str = "off"
    decimals: int = 1
    chart: str = "fitting"
    scale: str = "fitting"
    classes: str = "quantile"
    page: int | None = 1

    @property
    def percent(self) -> bool:
        return self.show.endswith("percent")

    @property
    def share(self) -> bool:
        """Whether shares are shown: percentages, or per 1,000."""
        return self.percent or self.show == "row-rate"

    @property
    def derived(self) -> bool:
        return self.show != "counts"

    @property
    def compared(self) -> bool:
        return self.show in ("difference", "index")

    @property
    def relative(self) -> bool:
        """Whether figures have no unit of their own: percentages and an index."""
        return self.share or self.show == "index"

    def but(self, **changes: Any) -> TableView:
        """The same with changes, from its first page."""
        return replace(self, **({"page": 1} | changes))

    def pairs(self) -> list[tuple[str, str]]:
        """The parameters that say so; what goes without saying is left out."""
        said = [(name, str(getattr(self, _field(name)))) for name in _WORDS]
        pairs = [(name, value) for name, value in said if value != _WORDS[name][0]]
        pairs += [("pivot", f"{variable}:{zone}") for variable, zone in self.pivot]
        pairs += [("layer", f"{variable}:{code}") for variable, code in self.layer]
        pairs += [("against", f"{variable}:{code}") for variable, code in self.against]
        pairs += [("fold", key) for key in self.fold]
        if self.sort:
            pairs.append(("sort", self.sort))
        if self.page != 1:
            pairs.append(("page", "all" if self.page is None else str(self.page)))
        return pairs

    def address(self, page: str) -> str:
        pairs = self.pairs()
        joint = "&" if "?" in page else "?"
        return f"{page}{joint}{urlencode(pairs, safe=':,')}" if pairs else page


def read(pairs: Iterable[tuple[str, str]]) -> tuple[TableView, list[tuple[str, str]]]:
    """The view in the parameters of an address, and the parameters that are left for the question.

    >>> view, rest = read([("by", "sex"), ("show", "row-percent"), ("by", "age")])
    >>> view.show, rest
    ('row-percent', [('by', 'sex'), ('by', 'age')])
    """
    rest: list[tuple[str, str]] = []
    said: dict[str, str] = {}
    several: dict[str, list[tuple[str, str]]] = {"pivot": [], "layer": [], "against": []}
    folds: list[str] = []
    asked = (*forms.PARAMETERS, *forms.CHOICES)
    for given, value in pairs:
        name = "layer" if given == "wafer" else given  # as addresses said until 0.1
        if forms.is_known(name):
            rest.append((name, value))
        elif name not in PARAMETERS:
            known = (*asked, *PARAMETERS)
            raise QueryError(
                say(
                    "There is no parameter {name!r}; {choices}.",
                    name=name,
                    choices=choices(name, known, len(known)),
                )
            )
        elif value == "":
            continue
        elif name == "fold":
            column_of(value, name)
            folds.append(value)
        elif name in several:
            several[name].append(_named(name, value))
        elif name in said:
            raise QueryError(say("The parameter {name!r} is given twice; give it once.", name=name))
        else:
            said[name] = value
    for name, value in said.items():
        if name in _WORDS and value not in _WORDS[name]:
            raise QueryError(
                say(
                    "{name!r} cannot be {value!r}; {choices}.",
                    name=name,
                    value=value,
                    choices=choices(value, _WORDS[name]),
                )
            )
    for name, entries in several.items():
        variables = [variable for variable, _ in entries]
        for variable in variables:
            if variables.count(variable) > 1:
                raise QueryError(
                    say(
                        "{name!r} names {variable!r} twice; name it once.",
                        name=name,
                        variable=variable,
                    )
                )
    view_fields: dict[str, Any] = {
        _field(n): v for n, v in said.items() if n not in ("page", "decimals")
    }
    if "decimals" in said:
        view_fields["decimals"] = int(said["decimals"])
    if "page" in said:
        view_fields["page"] = _page(said["page"])
    view = TableView(
        **view_fields,
        pivot=tuple(several["pivot"]),
        layer=tuple(several["layer"]),
        against=tuple(several["against"]),
        fold=tuple(dict.fromkeys(folds)),
    )
    return view, rest


def column_key(categories: Iterable[tuple[str, str]]) -> str:
    """The name of a column for ``sort``: the code of each variable that runs across.

    >>> column_key([("sex", "2"), ("size", "1,5")])
    'sex:2,size:1%2C5'
    """
    parts = [f"{v}:{c.replace('%', '%25').replace(',', '%2C')}" for v, c in categories]
    return ",".join(parts) or "value"


def column_of(key: str, name: str = "sort") -> dict[str, str]:
    """The codes in the name of a column or of a block of rows; :func:`column_key` read back."""
    codes = {}
    for part in key.split(","):
        variable, colon, code = part.partition(":")
        if not colon or not variable or not code:
            if name == "fold":
                raise QueryError(
                    say(
                        "'fold' must be a block of rows such as region:1, not {given!r}.",
                        given=unquote(key),
                    )
                )
            raise QueryError(
                say(
                    "'sort' must be label, value or a column such as sex:2, not {given!r}.",
                    given=unquote(key),
                )
            )
        codes[variable] = unquote(code)
    return codes


def _field(name: str) -> str:
    return "form" if name == "as" else name


def _named(name: str, value: str) -> tuple[str, str]:
    variable, colon, rest = value.partition(":")
    such_as = "age:rows" if name == "pivot" else "region:1"
    if not colon or not variable or not rest:
        raise QueryError(
            say(
                "{name!r} must be such as {such_as}, not {value!r}.",
                name=name,
                such_as=such_as,
                value=value,
            )
        )
    if name == "pivot":
        rest = forms.renamed(rest)
    if name == "pivot" and rest not in PLACES:
        raise QueryError(
            say("There is no place {text!r}; {choices}.", text=rest, choices=choices(rest, PLACES))
        )
    return variable, rest


def _page(text: str) -> int | None:
    if text == "all":
        return None
    if len(text) < 8 and text.isascii() and text.isdecimal() and int(text):
        return int(text)
    raise QueryError(say("'page' must be a number from 1 on, or 'all', not {text!r}.", text=text))
