"""Results as tables: plain text for a terminal, Markdown for a page."""

from __future__ import annotations

from collections.abc import Sequence


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Align columns for a terminal: the first to the left, the others to the right.

    Examples
    --------
    >>> from manyclass.report import text_table
    >>> print(text_table(["model", "loss"], [["a", "0.5"], ["long name", "10.25"]]))
    model       loss
    ----------------
    a            0.5
    long name  10.25
    """
    widths = [max(len(row[i]) for row in [header, *rows]) for i in range(len(header))]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0])]
            + [cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True)]
        )
        for row in [header, *rows]
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Write a Markdown table, columns after the first aligned to the right.

    Examples
    --------
    >>> from manyclass.report import markdown_table
    >>> print(markdown_table(["model", "loss"], [["a", "0.5"]]))
    | model | loss |
    | --- | ---: |
    | a | 0.5 |
    """
    rule = ["---"] + ["---:"] * (len(header) - 1)
    return "\n".join("| " + " | ".join(row) + " |" for row in [header, rule, *rows])
