"""Helpers of all displays: axes, colours, and names of classes that are safe to draw."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike
from sklearn.pipeline import Pipeline
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.arrays import Floats
from manyclass._lib.extras import import_extra
from manyclass._lib.messages import printable, shorten

# M. Okabe, K. Ito (2008), Color universal design; without yellow, which is lost on white.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#000000")
# Shapes, so that nothing depends on colour; their number is not a multiple of that of the colours.
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")


def require_matplotlib(caller: str) -> None:
    """Say how to install matplotlib where it is missing."""
    import_extra("matplotlib", f"{caller} draws with")


def axes_for(display: object, ax: Any, **options: Any) -> Any:
    """Return the axes to draw on: those given, or those of a new pyplot figure."""
    require_matplotlib(f"{type(display).__name__}.plot")
    if ax is not None:
        return ax
    import matplotlib.pyplot as plt

    return plt.subplots(layout="constrained", **options)[1]


def merged(defaults: dict[str, Any], given: dict[str, Any], artist: type) -> dict[str, Any]:
    """Return the style of an artist: the given options, under any alias, and the defaults."""
    from matplotlib.cbook import normalize_kwargs

    return normalize_kwargs(defaults, artist) | normalize_kwargs(given, artist)


# ---------------------------------------------------------------------- texts


def literal(text: str) -> str:
    """Escape a text so that matplotlib does not read mathematics between dollars."""
    import matplotlib

    # matplotlib undoes the escape just where it would have looked for mathematics.
    return text.replace("$", r"\$") if matplotlib.rcParams["text.parse_math"] else text


def legend_label(text: str) -> str:
    """Write a text for a legend; legends leave out texts that begin with an underscore."""
    return literal(f" {text}" if text.startswith("_") else text)


def without_tex(texts: Iterable[Any]) -> None:
    """Do not let LaTeX draw names: it fails on ``_``, ``&`` and ``#``."""
    for text in texts:
        text.set_usetex(False)


def short_title(name: str) -> str:
    """Write the name of a model on one line of at most 40 characters."""
    return shorten(printable(name), 40)


def set_title(ax: Any, name: str | None, **options: Any) -> None:
    """Write a name over the axes, if there is one."""
    if name is not None:
        without_tex([ax.set_title(literal(short_title(name)), **options)])


def check_class_names(
    class_names: Sequence[Any] | None, classes: Sequence[Any], *, argument: str = "class_names"
) -> list[Any]:
    """Return one name per class: those given, or the labels."""
    if class_names is None:
        return list(classes)
    if isinstance(class_names, str) or len(class_names) != len(classes):
        found = "a text" if isinstance(class_names, str) else f"{len(class_names)} names"
        raise ValueError(
            f"{argument} must hold one name for each of the {len(classes)} classes, got {found}."
        )
    return list(class_names)


def class_labels(y: ArrayLike, classes: ArrayLike | None) -> list[Any]:
    """Return the label of each column of probabilities."""
    labels = np.unique(column_or_1d(y)) if classes is None else column_or_1d(classes)
    return labels.tolist()


# ---------------------------------------------------------------------- room


def room(ax: Any, proportion: float | None = None) -> tuple[float, float]:
    """Return the width and height of the axes, in letters and lines of tick labels.

    With a fixed proportion of height to width, it is the largest such box within the axes.
    """
    import matplotlib
    from matplotlib.font_manager import FontProperties

    size = FontProperties(size=matplotlib.rcParams["ytick.labelsize"]).get_size_in_points()
    box = ax.get_window_extent()
    width, height = box.width, box.height
    if proportion is not None:
        width, height = min(width, height / proportion), min(height, width * proportion)
    points = 72 / ax.figure.dpi / size  # an inch has 72 points
    letter_width, line_height = 0.6, 1.25  # about, in sizes of the font
    return width * points / letter_width, height * points / line_height


def width_of(texts: Iterable[str], setting: Literal["axes.titlesize", "ytick.labelsize"]) -> float:
    """Return the inches that the widest text takes, in the size of a setting of matplotlib."""
    import matplotlib
    from matplotlib.font_manager import FontProperties
    from matplotlib.textpath import text_to_path

    font = FontProperties(size=matplotlib.rcParams[setting])
    with warnings.catch_warnings():  # matplotlib warns of missing letters when it draws them
        warnings.simplefilter("ignore")
        sizes = [text_to_path.get_text_width_height_descent(t, font, False)[0] for t in texts]
    return max(sizes, default=0.0) / 72


# ---------------------------------------------------------------------- estimators


def probabilities_of(estimator: Any, X: Any) -> Floats:
    """Return the class probabilities of a fitted classifier."""
    check_is_fitted(estimator)
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{type(estimator).__name__} has no predict_proba: pass a classifier that gives "
            "probabilities, such as CoupledClassifier with a coupling rule as combiner."
        )
    return estimator.predict_proba(X)


def last_step(estimator: Any, X: Any = None) -> tuple[Any, Any]:
    """Return the classifier within searches and pipelines, and X as it receives it."""
    while True:
        if hasattr(estimator, "best_estimator_"):  # of a search
            estimator = estimator.best_estimator_
        elif isinstance(estimator, Pipeline):
            if X is not None and len(estimator) > 1:
                X = estimator[:-1].transform(X)
            estimator = estimator[-1]
        else:
            return estimator, X


# ---------------------------------------------------------------------- a strip with a histogram

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
