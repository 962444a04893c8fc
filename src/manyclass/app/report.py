"""Results as texts, tables and figures: plain text for a terminal, SVG for pages."""

from __future__ import annotations

import io
import re
import unicodedata
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from xml.etree import ElementTree

from manyclass._lib.messages import ELLIPSIS, distinct_names, shorten

# Colours of matplotlib that are not visible on a dark page, and those of the page instead.
THEME = {"#000000": "currentColor", "#666666": "var(--muted, #666)"}


def as_text(label: object, most: int | None = None) -> str:
    """Return a label as one line of text that any page can hold.

    Control characters and lone surrogates, which XML and UTF-8 cannot hold, are replaced. White
    space becomes single spaces. An empty label becomes "(empty)". A text longer than ``most`` is
    cut in the middle.
    """
    text = " ".join(str(label).split())
    text = "".join("\N{REPLACEMENT CHARACTER}" if _unfit(c) else c for c in text) or "(empty)"
    return text if most is None else shorten(text, most)


def short_names(labels: Iterable[object], most: int) -> list[str]:
    """Shorten names for a page so that they still differ."""
    return distinct_names(map(as_text, labels), most)


def _unfit(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cs") or character in "\ufffe\uffff"


def one_line(message: str, most: int = 300) -> str:
    """Return the first sentence or so of a message, on one line."""
    text = as_text(message)
    return text if len(text) <= most else text[: most - 1] + ELLIPSIS


def listed(names: Sequence[str], word: str = "and") -> str:
    """Join names for a sentence."""
    return f" {word} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns for a terminal: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in [header, *rows]
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


@contextmanager
def page_style() -> Iterator[None]:
    """Set the style of figures for a page: text stays text, and backgrounds are transparent."""
    from matplotlib import rc_context

    style: Any = {
        "axes.facecolor": "none",
        "axes.spines.right": False,
        "axes.spines.top": False,
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "svg.fonttype": "none",
        "svg.hashsalt": "manyclass",
    }
    with rc_context(style), warnings.catch_warnings():
        # The page uses the fonts of the reader, not those of matplotlib.
        warnings.filterwarnings("ignore", r"Glyph .* missing from", UserWarning)
        yield


def inline_svg(figure: Any, *, name: str, description: str) -> str:
    """Write a matplotlib figure as SVG that can stand in an HTML page among others.

    Identifiers begin with the name, so that those of several figures differ. Black becomes the
    text colour of the page, and fonts are those of the page. The figure, drawn within
    :func:`page_style`, scales with its container. The description is for readers who do not see it.
    """
    buffer = io.BytesIO()
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with page_style():
        figure.savefig(buffer, format="svg", metadata=nothing)
    root = ElementTree.fromstring(buffer.getvalue())
    for parent in root.iter():
        for child in [c for c in parent if c.tag.endswith("}style")]:
            parent.remove(child)  # it would apply to the whole page
    for element in root.iter():
        element.tag = _local(element.tag)
        for key in list(element.attrib):
            element.attrib[_local(key)] = _attribute(_local(key), element.attrib.pop(key), name)
    width = root.attrib.pop("width").removesuffix("pt")
    root.attrib.pop("height"), root.attrib.pop("version")
    root.attrib |= {"style": f"max-width: {float(width) / 12:.4g}em"}
    root.attrib |= {"role": "img", "aria-label": description}
    return ElementTree.tostring(root, encoding="unicode")


def _local(tag: str) -> str:
    return tag.rpartition("}")[2]


def _attribute(key: str, value: str, name: str) -> str:
    """Return the value of an attribute for a page with other figures."""
    if key == "id":
        return f"{name}-{value}"
    if key == "href" and value.startswith("#"):
        return f"#{name}-{value[1:]}"
    if key == "style":
        value = re.sub(r"font-family: [^;]*(; )?", "", value)
        value = re.sub(r"#[0-9a-f]{6}", lambda found: THEME.get(found[0], found[0]), value)
    return value.replace("url(#", f"url(#{name}-")
