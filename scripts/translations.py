"""Collect the sentences of the pages and bring the files of translations up to date.

    python scripts/translations.py           adds what is new to every locales/*.po, keeps what is translated
    python scripts/translations.py --check   only says what is missing, and fails if anything is
    python scripts/translations.py de        begins a new language
"""

from __future__ import annotations

import argparse
import string
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog, Message
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


def collected() -> Catalog:
    """All sentences that the code and the templates say."""
    catalogue = Catalog(project="Lustrum", charset="utf-8")
    found = extract_from_dir(
        str(SOURCE), method_map=METHODS, options_map=OPTIONS, keywords=KEYWORDS
    )
    for name, line, message, comments, context in found:
        place = (f"src/lustrum/{name}", line)
        catalogue.add(message, None, [place], auto_comments=comments, context=context)
    return catalogue


def missing(catalogue: Catalog, template: Catalog) -> Iterator[str]:
    """What a language lacks: sentences, or the names in their brackets."""
    for message in template:
        if not message.id:
            continue
        own = catalogue.get(message.id)
        if own is None or own.fuzzy or not _texts(own):
            yield f"not translated: {_one(message)!r}"
            continue
        wanted = _names(_one(message))
        for text in _texts(own):
            if not _names(text) <= wanted | {"number", "num"}:
                yield f"other names in brackets: {text!r}"


def _one(message: Message) -> str:
    return str(message.id[0] if isinstance(message.id, (list, tuple)) else message.id)


def _texts(message: Message) -> list[str]:
    found = message.string if isinstance(message.string, (list, tuple)) else [message.string]
    return [str(text) for text in found if text]


def _names(text: str) -> set[str]:
    """The names that are filled in, in either way of writing them."""
    percent = {part.split(")")[0] for part in text.split("%(")[1:]}
    try:
        return percent | {name for _, name, _, _ in string.Formatter().parse(text) if name}
    except ValueError:
        return percent


def main() -> int:
    """Update or check all languages."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("new", nargs="?", help="the code of a language to begin, such as de")
    parser.add_argument("--check", action="store_true", help="change nothing")
    given = parser.parse_args()
    template = collected()
    if given.new:
        with (LOCALES / f"{given.new}.po").open("xb") as file:
            write_po(file, Catalog(locale=given.new, project="Lustrum"))
    problems = 0
    for path in sorted(LOCALES.glob("*.po")):
        with path.open("rb") as file:
            catalogue = read_po(file, locale=path.stem)
        if not given.check:
            catalogue.update(template, no_fuzzy_matching=True)
            catalogue.obsolete.clear()
            with path.open("wb") as file:
                # Without line numbers, which change with every edit.
                write_po(file, catalogue, width=100, no_location=True, omit_header=False)
        for sentence in missing(catalogue, template):
            print(f"{path.name}: {sentence}")
            problems += 1
    print(f"{len(template)} sentences; {problems} to mend")
    return 1 if problems and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
