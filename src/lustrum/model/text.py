"""Sentences for people that can be said in another language later.

A :class:`Message` is the English sentence, a plain ``str`` for code that does not translate. It remembers the
template it was made from and what was filled in, so that a page can look the template up in a catalogue
and say the same in the reader's language.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from string import Formatter
from typing import Any, Protocol


class Catalogue(Protocol):
    """Translations, as :mod:`gettext` and babel have them.

    A method ``formatted(value, spec)``, if there is one, writes numbers as the language does, and ``code``
    chooses among the translations of a label.
    """

    def gettext(self, message: str) -> str:
        """The template in the other language, or as it is."""
        ...

    def ngettext(self, msgid1: str, msgid2: str, n: int) -> str:
        """The template for a number, in the other language, or as it is."""
        ...


class Message(str):
    """An English sentence that knows its template."""

    template: str
    plural: str | None
    number: int
    values: Mapping[str, Any]
    inside: bool
    """Whether the message stands inside a sentence and begins in lower case, but for German."""

    def __new__(
        cls,
        template: str,
        values: Mapping[str, Any],
        plural: str | None = None,
        number: int = 1,
        inside: bool = False,
    ) -> Message:
        """Fill the template in."""
        chosen = template if plural is None or number == 1 else plural
        said = chosen.format(**values)
        message = super().__new__(cls, _uncapitalised(said) if inside else said)
        message.template, message.plural, message.number, message.values = (
            template,
            plural,
            number,
            values,
        )
        message.inside = inside
        return message

    def __reduce__(self) -> tuple[Any, ...]:
        return Message, (self.template, dict(self.values), self.plural, self.number, self.inside)

    def said(self, catalogue: Catalogue) -> str:
        """The sentence in the language of a catalogue; what was filled in is translated too."""
        chosen = (
            catalogue.gettext(self.template)
            if self.plural is None
            else catalogue.ngettext(self.template, self.plural, self.number)
        )
        values = {k: translated(v, catalogue) for k, v in self.values.items()}
        said = _Filler(catalogue).vformat(chosen, (), values)
        keeps = getattr(catalogue, "code", "") in KEEPS_CAPITALS
        return _uncapitalised(said) if self.inside and not keeps else said


KEEPS_CAPITALS = frozenset({"de"})
"""Languages whose labels and messages keep their capitals inside a sentence."""


class Label(str):
    """A text that the keeper of a dataset wrote, with the same in other languages.

    >>> Label("Age", {"fr": "Âge"}).others["fr"]
    'Âge'
    """

    others: Mapping[str, str]

    def __new__(cls, text: str, others: Mapping[str, str]) -> Label:
        """Remember the other languages."""
        label = super().__new__(cls, text)
        label.others = others
        return label

    def __reduce__(self) -> tuple[Any, ...]:
        return Label, (str(self), dict(self.others))

    def said(self, catalogue: Catalogue) -> str:
        """The text in the language of a catalogue, or as it is where nobody translated it."""
        return self.others.get(getattr(catalogue, "code", ""), str(self))

    def each(self, change: Callable[[str], str], but: frozenset[str] = frozenset()) -> Label:
        """The label changed in every language, ``but`` some."""
        others = {code: text if code in but else change(text) for code, text in self.others.items()}
        return Label(change(str(self)), others)


def languages(text: str) -> tuple[str, ...]:
    return (text, *text.others.values()) if isinstance(text, Label) else (text,)


class _Filler(Formatter):
    """Fills templates in; ``{x:,}`` groups digits and ``{x:.2f}`` has the decimal sign of the language."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._formatted = getattr(catalogue, "formatted", None)

    def format_field(self, value: Any, format_spec: str) -> str:
        if format_spec and self._formatted is not None and isinstance(value, (int, float)):
            return str(self._formatted(value, format_spec))
        return str(super().format_field(value, format_spec))


def say(template: str, /, **values: Any) -> Message:
    """A sentence with values in it.

    >>> say("At most {most} cells.", most=20)
    'At most 20 cells.'
    """
    return Message(template, values)


def say_many(one: str, many: str, number: int, /, **values: Any) -> Message:
    """A sentence whose form depends on a number, which is filled in as ``{number}``.

    >>> say_many("{number} cell", "{number} cells", 3)
    '3 cells'
    """
    return Message(one, {"number": number, **values}, many, number)


def lowered(label: str) -> str:
    """A label inside a sentence; an abbreviation such as EU keeps its capitals.

    A message can still be translated, and then begins in lower case too.

    >>> lowered("Economic activity"), lowered("EU citizens"), lowered(say("Mean {what}", what="pay"))
    ('economic activity', 'EU citizens', 'mean pay')
    """
    if isinstance(label, Message):
        return Message(label.template, label.values, label.plural, label.number, inside=True)
    if isinstance(label, Label):
        return label.each(_uncapitalised, KEEPS_CAPITALS)
    return _uncapitalised(label)


def opening(label: str) -> str:
    """A label at the beginning of a line.

    >>> opening("people")
    'People'
    """
    return label.each(_capitalised) if isinstance(label, Label) else _capitalised(label)


def listed(texts: Sequence[str], semicolons: bool = False) -> str:
    """Texts with commas or semicolons between them, each of which can still be translated.

    >>> listed(["Employed", "Retired"])
    'Employed, Retired'
    """
    if len(texts) < 2:
        return texts[0] if texts else ""
    half = len(texts) // 2  # by halves, since messages within messages must not lie deep
    some, rest = listed(texts[:half], semicolons), listed(texts[half:], semicolons)
    if semicolons:
        return say("{some}; {next}", some=some, next=rest)
    return say("{some}, {next}", some=some, next=rest)


def _uncapitalised(text: str) -> str:
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def _capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]


def translated(text: object, catalogue: Catalogue) -> Any:
    """A message or a label in another language; anything else as it is."""
    return text.said(catalogue) if isinstance(text, Message | Label) else text


def html_table(said: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A sentence and a small table, for a notebook."""
    head = "".join(f"<th>{escape(one)}</th>" for one in header)
    lines = ("".join(f"<td>{escape(one)}</td>" for one in row) for row in rows)
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f"<p>{escape(said)}</p><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    )
