"""Collect the sentences of the pages and bring the files of translations up to date.

python scripts/translations.py           adds what is new to every locales/*.po, keeps what is translated
python scripts/translations.py --check   only says what is missing, and fails if anything is
python scripts/translations.py de        begins a new language
"""

from __future__ import annotations

import argparse
import io
import string
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.core import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog
from babel.messages.extract import extract_from_dir
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "lustrum"
LOCALES = SOURCE / "server" / "locales"
METHODS = [("**.py", "python"), ("**/templates/**.html", "jinja2")]
OPTIONS = {"**/templates/**.html": {"trimmed": "true", "silent": "false"}}
KEYWORDS = {
    "say": None,
    "say_many": (1, 2),
    "_": None,
    "gettext": None,
    "ngettext": (1, 2),
}
COUNTS = frozenset(("number", "num", "count"))
"""What a sentence is about in number; a form for one may say it in a word."""

CHANGING = ("POT-Creation-Date", "PO-Revision-Date", "Generated-By", "Report-Msgid-Bugs-To")
PERSONAL = ("Last-Translator", "Language-Team")


def collected() -> Catalog:
    """All sentences that the code and the templates say."""
    catalogue = Catalog(project="Lustrum", charset="utf-8")
    found = extract_from_dir(
        str(SOURCE), method_map=METHODS, options_map=OPTIONS, keywords=KEYWORDS
    )
    for name, line, message, comments, context in found:
        place = (f"src/lustrum/{name}", line)
        catalogue.add(message, None, [place], auto_comments=comments, context=context)
    # An answer says what the parameters of its method mean: the sentence of each declaration, and its value.
    declared = extract_from_dir(
        str(SOURCE / "protect"), method_map=METHODS, keywords={"parameter": (2,)}
    )
    for name, line, message, _, context in declared:
        catalogue.add(
            message.rstrip("."), None, [(f"src/lustrum/protect/{name}", line)], context=context
        )
    return catalogue


def missing(catalogue: Catalog, template: Catalog) -> Iterator[str]:
    """What a language lacks: sentences, forms for a number, or the names in their brackets."""
    for message in template:
        if not message.id:
            continue
        own = catalogue.get(message.id)
        texts = [] if own is None else _forms(own.string)
        plural = isinstance(message.id, (list, tuple))
        if own is None or own.fuzzy or not all(texts):
            yield f"not translated: {_forms(message.id)[0]!r}"
            continue
        if len(texts) != (catalogue.num_plurals if plural else 1):
            yield f"other number of forms: {texts[0]!r}"
        names = [_names(text) for text in _forms(message.id)]
        most, least = set.union(*names), set.intersection(*names) - COUNTS
        for text in texts:
            if not least <= _names(text) <= most:
                yield f"other names in brackets: {text!r}"


def read(path: Path) -> Catalog:
    """The file of a language."""
    with path.open("rb") as file:
        return read_po(file, locale=path.stem)


def written(catalogue: Catalog) -> str:
    """A file of translations without dates, line numbers and people, which change without a reason."""
    catalogue.header_comment = f"# {catalogue.locale.english_name} for Lustrum"
    catalogue.fuzzy = False
    text = io.BytesIO()
    write_po(text, catalogue, width=100, no_location=True)
    out = tuple(f'"{name}:' for name in (*CHANGING, *PERSONAL))
    lines = text.getvalue().decode("utf-8").splitlines()
    return "\n".join(line for line in lines if not line.startswith(out)) + "\n"


def _forms(said: str | list[str] | tuple[str, ...] | None) -> list[str]:
    return [str(text or "") for text in (said if isinstance(said, (list, tuple)) else [said])]


def _names(text: str) -> set[str]:
    """The names that are filled in, in either way of writing them."""
    percent = {part.split(")")[0] for part in text.split("%(")[1:]}
    return percent | {name for _, name, _, _ in string.Formatter().parse(text) if name}


def main() -> int:
    """Update or check all languages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("new", nargs="?", help="the code of a language to begin, such as de")
    parser.add_argument("--check", action="store_true", help="change nothing")
    given = parser.parse_args()
    template = collected()
    if given.new and not given.check:
        try:
            Locale.parse(given.new)
        except (UnknownLocaleError, ValueError):
            parser.error(f"there is no language {given.new!r}; give a code such as de")
        path = LOCALES / f"{given.new}.po"
        if not path.exists():
            path.write_text(written(Catalog(locale=given.new, project="Lustrum")), "utf-8")
    problems = 0
    for path in sorted(LOCALES.glob("*.po")):
        catalogue = read(path)
        if not given.check:
            catalogue.update(template, no_fuzzy_matching=True)
            catalogue.obsolete.clear()
            path.write_text(written(catalogue), "utf-8")
        for sentence in missing(catalogue, template):
            print(f"{path.name}: {sentence}")
            problems += 1
    print(f"{len(template)} sentences; {problems} to mend")
    return 1 if problems and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
