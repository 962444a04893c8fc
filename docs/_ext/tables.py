"""Choose where lines in table cells may break: not within a number, but within a long name.

``0.97 ± 0.30`` and ``1.11 %`` stay on one line, ``ours / best`` breaks after the slash. A header
such as ``CalibratedClassifierCV`` may break before a capital, ``SVC(probability=True)`` after the
bracket, so that the columns of numbers below it stay narrow.
"""

from __future__ import annotations

import re

NO_BREAK, MAY_BREAK = "\N{NO-BREAK SPACE}", "\N{ZERO WIDTH SPACE}"
TOGETHER = re.compile(r" (?=[±/])|(?<=±) |(?<=\d) (?=(?:%|ms|s|MB|steps)(?!\w))")
LONG_NAME = re.compile(r"[A-Za-z(=)]{16,}")


def keep_together(text: str) -> str:
    """Return a cell's text that does not break around ``±``, nor before ``/`` or a unit."""
    return TOGETHER.sub(NO_BREAK, text)


def break_names(text: str) -> str:
    """Return a header whose long names may break between their words."""
    return LONG_NAME.sub(
        lambda m: re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=\()(?=\w)", MAY_BREAK, m[0]), text
    )


def change_cells(app, doctree, docname) -> None:
    from docutils import nodes

    literally = (nodes.math, nodes.literal)
    for table in doctree.findall(nodes.table):
        for entry in table.findall(nodes.entry):
            in_header = isinstance(entry.parent.parent, nodes.thead)
            texts = [t for t in entry.findall(nodes.Text) if not isinstance(t.parent, literally)]
            for node in texts:
                text = keep_together(str(node))
                node.parent.replace(node, nodes.Text(break_names(text) if in_header else text))


def setup(app):
    app.connect("doctree-resolved", change_cells)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
