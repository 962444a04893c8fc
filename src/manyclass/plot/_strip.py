"""A strip with a histogram along the bottom of axes, which several displays share."""

from __future__ import annotations

from typing import Any

STRIP = "stated probabilities"  # the label by which a second display finds the histogram


def strip_of(ax: Any) -> Any:
    """Return the histogram that an earlier display has added to the axes."""
    return next((child for child in ax.child_axes if child.get_label() == STRIP), None)


def add_strip(ax: Any, height: float = 0.16) -> Any:
    """Add axes for the histogram at the bottom of the diagram; ``height`` is a share of it."""
    from matplotlib.ticker import LogLocator, NullLocator

    strip = ax.inset_axes([0, 0, 1, height], sharex=ax, label=STRIP)
    strip.patch.set_alpha(0)
    strip.spines[["left", "right", "bottom"]].set_visible(False)
    strip.spines["top"].set_color("0.8")
    strip.tick_params(axis="x", bottom=False, labelbottom=False)
    strip.tick_params(axis="y", labelsize="x-small", colors="0.4", length=2)
    strip.set_yscale("log")
    strip.yaxis.tick_right()
    strip.yaxis.set_major_locator(LogLocator(numticks=3))
    strip.yaxis.set_minor_locator(NullLocator())
    strip.yaxis.set_major_formatter(_percent)
    return strip


def _percent(share: float, _: object) -> str:
    return f"{100 * share:g}%"
