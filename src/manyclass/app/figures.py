"""The figures of a report, as SVG."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from manyclass.app.leaderboard import Entry, Leaderboard
from manyclass.app.page_contents import LIMITS
from manyclass.app.report import as_text, inline_svg, page_style, short_names
from manyclass.app.studies import Point

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
        figure = new_figure(5.0, 5.0)
        ax = figure.subplots()
        found = []
        for i, entry in enumerate(entries):
            rows, p = entry.tested()
            target = board.target[rows]
            _add_curve(ax, i, entry, target, p, classes=np.arange(len(board.classes)))
            right = float(np.mean(p.argmax(axis=1) == target))
            found.append(f"{entry.name} {_leaning(float(p.max(axis=1).mean()), right)}")
        ax.get_legend().remove()  # the page has one
        description = f"Reliability of the predicted labels: {'; '.join(found)}."
        return Figure(inline_svg(figure, name="reliability", description=description), "")


def _leaning(stated: float, observed: float) -> str:
    """Say whether probabilities are too high or too low on average."""
    word = "too high" if stated > observed else "too low"
    how = "about right" if abs(stated - observed) < 0.005 else word  # half of a percent: a choice
    return f"states {stated:.1%} on average and is right in {observed:.1%}, {how}"


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
    rows, p = entries[0].tested()
    stated, observed = float(p[:, c].mean()), float(np.mean(board.target[rows] == c))
    description = (
        f"Reliability of class {name}: {entries[0].name} states it with {stated:.1%} on average, "
        f"and {observed:.1%} of the rows are of it."
    )
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
        values = entry.incoherence[rows]
        medians = [
            f"{np.median(values[some]):.3f}" if some.any() else "none" for some in (right, ~right)
        ]
        description = (
            f"Incoherence of {entry.name}: the median is {medians[0]} in rows that are predicted "
            f"right, and {medians[1]} in those that are wrong."
        )
        return Figure(inline_svg(figure, name="incoherence", description=description), "")


def learning_curve(board: Leaderboard, curve: list[Point]) -> Figure:
    """Draw the metric of the best candidate against the number of training rows."""
    metric = board.metrics[0]
    with page_style():
        figure = new_figure(5.0, 3.0)
        ax = figure.subplots()
        rows, means, deviations = zip(*curve, strict=True)
        ax.errorbar(rows, means, deviations, color=COLORS[0], marker=MARKERS[0], capsize=3)
        ax.set(xscale="log", xlabel="rows to train on", ylabel=metric)
        ax.set_xticks(rows, [f"{n:,}" for n in rows])
        ax.minorticks_off()
        description = (
            f"Learning curve of {board.described.name}: {metric} {means[-2]:.3f} with {rows[-2]:,} "
            f"rows, {means[-1]:.3f} with {rows[-1]:,}."
        )
        return Figure(inline_svg(figure, name="curve", description=description), description)


def draw_ranking(board: Leaderboard, ax: Any = None) -> Any:
    """Draw the distance of each candidate from the best, with its interval; return the axes."""
    if ax is None:
        from matplotlib import pyplot

        _, ax = pyplot.subplots(layout="constrained")
    entries = [entry for entry in board.ranked if not entry.is_baseline][::-1]
    gaps = [board.difference(entry, board.best) for entry in entries]
    ax.errorbar(
        [gap.mean for gap in gaps],
        range(len(gaps)),
        xerr=[gap.width for gap in gaps],
        fmt=MARKERS[0],
        color=COLORS[0],
        capsize=3,
    )
    ax.axvline(0, color="0.5", ls=":")
    ax.set_yticks(range(len(gaps)), [entry.name for entry in entries], parse_math=False)
    ax.set_xlabel(f"{board.metrics[0]}, behind {board.best.name}", parse_math=False)
    return ax
