"""Small pictures as SVG, drawn without a library: every word in them is escaped here."""

from __future__ import annotations

from html import escape


def element(tag: str, *inside: str, **attributes: object) -> str:
    """An element around others. Names are written as in Python: ``class_``, ``aria_label``.

    >>> element("text", escaped("a < b"), class_="mid", x=3)
    '<text class="mid" x="3">a &lt; b</text>'
    >>> element("line", x1=0, x2=9)
    '<line x1="0" x2="9"/>'
    """
    given = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{given}>{''.join(inside)}</{tag}>" if inside else f"<{tag}{given}/>"


def escaped(text: object) -> str:
    return escape(str(text))


def scrolling(label: str, *inside: str) -> str:
    """A part of a page that scrolls by itself, with the keyboard too."""
    return element("div", *inside, class_="scroll", tabindex=0, role="region", aria_label=label)
