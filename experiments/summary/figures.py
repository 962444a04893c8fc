"""Critical-difference diagrams in the style of Demšar (2006), figure 1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from experiments.pages import save_figure
from experiments.summary.ranking import Ranking

LINE = 0.32  # inches of height for every line of text
TOP = 1.5  # lines above the axis, for the distance and the numbers


def diagrams(path: Path, rankings: dict[str, Ranking]) -> str:
    """Draw the diagrams below each other, and return the Markdown that shows them.

    Parameters
    ----------
    path : Path
        The picture.
    rankings : dict of str to Ranking
        By the titles of the diagrams.
    """
    heights = [_n_lines(ranking) for ranking in rankings.values()]

    def draw_all(axes: Any) -> None:
        for panel, (title, ranking) in zip(np.atleast_1d(axes), rankings.items(), strict=True):
            draw(panel, title, ranking)

    return save_figure(
        path,
        draw_all,
        nrows=len(rankings),
        figsize=(9.5, LINE * (sum(heights) + len(heights))),
        height_ratios=heights,
    )


def _n_lines(ranking: Ranking) -> float:
    """Return the height of a diagram, in lines of text."""
    return TOP + 0.6 + _bars_height(ranking) + (len(ranking.names) + 1) // 2 + 0.3


def _bars_height(ranking: Ranking) -> float:
    return 0.35 * len(ranking.groups()) + 0.5


def draw(axes: Any, title: str, ranking: Ranking) -> None:
    """Draw mean ranks on a line, and bars over methods that do not differ significantly."""
    k, lines = len(ranking.names), _n_lines(ranking)
    axes.set(xlim=(1 - 0.75 * k, k + 0.75 * k), ylim=(lines - TOP, -TOP))
    axes.axis("off")
    axes.set_title(title, fontsize=10, loc="left")
    axes.plot([1, k], [0, 0], color="k", lw=1)
    for rank in range(1, k + 1):
        axes.plot([rank, rank], [0, -0.2], color="k", lw=1)
        axes.text(rank, -0.3, str(rank), ha="center", va="bottom", fontsize=7)
    _draw_distance(axes, ranking)
    for line, (first, last) in enumerate(ranking.groups()):
        ends = ranking.ranks[first] - 0.01 * k, ranking.ranks[last] + 0.01 * k
        axes.plot(ends, [0.35 * (line + 1)] * 2, color="C3", lw=2.5, solid_capstyle="butt")
    half = (k + 1) // 2
    for place, (name, rank) in enumerate(zip(ranking.names, ranking.ranks, strict=True)):
        left = place < half
        depth = _bars_height(ranking) + 0.6 + (place if left else k - 1 - place)
        _draw_method(axes, f"{name}  ({rank:.2f})", float(rank), depth, left, k)


def _draw_distance(axes: Any, ranking: Ranking) -> None:
    """Draw the critical difference as a ruler above the axis."""
    ruler = [1, 1 + ranking.distance]
    axes.plot(ruler, [-1.25, -1.25], color="k", lw=1)
    for end in ruler:
        axes.plot([end, end], [-1.35, -1.15], color="k", lw=1)
    axes.text(
        ruler[1] + 0.01 * len(ranking.names),
        -1.25,
        f" critical difference {ranking.distance:.2f}",
        va="center",
        fontsize=8,
    )


def _draw_method(axes: Any, text: str, rank: float, depth: float, left: bool, k: int) -> None:
    """Draw the line from a rank down and out to its name."""
    edge = 1 - 0.04 * k if left else k + 0.04 * k
    axes.plot([rank, rank, edge], [0, depth, depth], color="0.35", lw=0.8)
    axes.text(
        edge + (-0.01 if left else 0.01) * k,
        depth,
        text,
        ha="right" if left else "left",
        va="center",
        fontsize=8,
    )
