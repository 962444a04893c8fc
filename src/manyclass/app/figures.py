"""The figures of a report, as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from manyclass.app.contents import LIMITS
from manyclass.app.leaderboard import Entry, Leaderboard
from manyclass.app.report import as_text, inline_svg, page_style, short_names

COLORS = ("#0072B2", "#D55E00")  # M. Okabe, K. Ito (2008), Color universal design
MARKERS = ("o", "s")


class Figure(NamedTuple):
    """A figure of the page."""

    svg: str
    caption: str


def new_figure(width: float, height: float, layout: Any = "constrained") -> Any:
    """Return a matplotlib figure outside of pyplot."""
    from matplotlib.figure import Figure as MatplotlibFigure

    return MatplotlibFigure(figsize=(width, height), layout=layout)


def reliability(board: Leaderboard, entries: list[Entry]) -> Figure:
    """Draw the reliability of the predicted labels of some candidates."""
    with page_style():
        figure = new_figure(5.0, 5.2)
        ax = figure.subplots()
        for i, entry in enumerate(entries):
            rows, p = entry.tested()
            _add_curve(ax, i, entry, board.target[rows], p, classes=np.arange(len(board.classes)))
        # Above the diagram, where it hides nothing.
        handles, labels = ax.get_legend_handles_labels()
        ax.get_legend().remove()
        figure.legend(handles, labels, loc="outside upper left", fontsize="small", frameon=False)
        names = " and ".join(entry.name for entry in entries)
        description = f"Reliability diagram of the predicted labels of {names}."
        return Figure(inline_svg(figure, name="reliability", description=description), "")


def _add_curve(ax: Any, i: int, entry: Entry, y: Any, p: Any, **options: Any) -> None:
    from manyclass.plot import ReliabilityDisplay

    style = {"name": entry.name, "color": COLORS[i], "marker": MARKERS[i], **options}
    ReliabilityDisplay.from_predictions(y, p, n_bins=LIMITS.bins, ax=ax, **style)


def reliability_by_class(board: Leaderboard, entries: list[Entry]) -> Iterator[Figure]:
    """Draw the reliability of the probability of each of the most frequent classes."""
    counts = np.bincount(board.target, minlength=len(board.classes))
    for c in sorted(np.argsort(-counts, kind="stable")[: LIMITS.panels].tolist()):
        with page_style():
            yield _panel(board, entries, c)


def _panel(board: Leaderboard, entries: list[Entry], c: int) -> Figure:
    figure = new_figure(2.9, 2.9, layout=None)  # there are many, and a layout takes time
    ax = figure.add_axes((0.21, 0.15, 0.67, 0.82))
    for i, entry in enumerate(entries):
        rows, p = entry.tested()
        both = np.stack([1 - p[:, c], p[:, c]], axis=1)
        of_class = {"classes": [False, True], "labels": [True], "ls": "-"}
        _add_curve(ax, i, entry, board.target[rows] == c, both, **of_class)
    ax.get_legend().remove()
    ax.set(xlabel="stated", ylabel="observed")
    name = as_text(board.classes[c])
    description = f"Reliability diagram of class {name}."
    return Figure(inline_svg(figure, name=f"class-{c}", description=description), name)


def code_matrix(board: Leaderboard, entry: Entry) -> Figure:
    """Draw the code matrix of a coupled classifier: classes by binary problems."""
    from manyclass.plot.code_matrix import CodeMatrixDisplay, width_beside

    assert entry.code is not None
    k, n_columns = entry.code.shape
    with page_style():
        names = short_names(board.classes, LIMITS.name)
        width = max(min(7.6, 2.4 + 0.2 * n_columns), width_beside(names))
        # The layout is for cells that are squares.
        figure = new_figure(width, min(5.0, 1.2 + 0.24 * k), layout="compressed")
        CodeMatrixDisplay.from_code(entry.code, classes=names, ax=figure.subplots())
        description = f"Code matrix of {entry.name}: {k} classes by {n_columns} binary problems."
        return Figure(inline_svg(figure, name="code", description=description), "")


def incoherence(board: Leaderboard, entry: Entry) -> Figure:
    """Draw the histogram of incoherence of rows that are right and wrong."""
    from manyclass.plot import IncoherenceDisplay

    assert entry.incoherence is not None
    rows, p = entry.tested()
    right = p.argmax(axis=1) == board.target[rows]
    with page_style():
        figure = new_figure(5.2, 3.0)
        IncoherenceDisplay.from_values(entry.incoherence[rows], right, ax=figure.subplots())
        description = f"Histogram of the incoherence of {entry.name}, for right and wrong rows."
        return Figure(inline_svg(figure, name="incoherence", description=description), "")
