"""Reliability diagrams for many classes: stated probabilities against observed frequencies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from manyclass._lib.arrays import Floats
from manyclass._lib.messages import distinct_names
from manyclass.metrics import Strategy, check_predictions
from manyclass.plot import _drawing as drawing
from manyclass.plot._reliability_curves import Reliability, judged_columns, measure

DIAGONAL = "perfectly calibrated"
LINE_STYLES = ("-", "--", ":", "-.")


class ReliabilityDisplay:
    """Reliability diagram of the probabilities of many classes.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. The diagram shows either
    the confidence in the predicted label, as one curve, or the probability of each class, as a
    curve for each class. Bars are Wilson's confidence intervals of the observed frequencies. The
    strip at the bottom is a histogram of the stated probabilities, on a logarithmic scale. The
    calibration errors in the legend use the bins of the picture: compare only errors of equal
    bins.

    A second display may be drawn over a first: pass its ``ax_``.

    Parameters
    ----------
    curves : list of Reliability
        The curves. Each has a :class:`~manyclass.metrics.ReliabilityCurve`, the ends of its
        intervals, and its calibration error.
    classwise_error : float, optional
        :func:`~manyclass.metrics.classwise_calibration_error`, for the legend.
    histogram : array of shape (m,), optional
        Share of the stated probabilities in m parts of [0, 1] of equal width.
    class_names : list of str, optional
        The class of each curve; None for the curve of the predicted label.
    name : str, optional
        Name of the classifier, for the legend.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    lines_ : list of matplotlib Line2D
        A line for each curve.
    bars_ : list of matplotlib LineCollection
        The confidence intervals of the curves that are named in the legend.
    histogram_ax_ : matplotlib Axes or None
        The strip with the histogram.
    histogram_ : matplotlib StepPatch or None

    See Also
    --------
    manyclass.metrics.reliability_curve : The numbers of a curve.
    sklearn.calibration.CalibrationDisplay : The same for two classes.

    References
    ----------
    J. Bröcker, L. A. Smith (2007). Increasing the reliability of reliability diagrams.
    Weather and Forecasting 22(3), 651-661.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import CoupledSVC
    >>> from manyclass.plot import ReliabilityDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CoupledSVC().fit(X[::2], y[::2])
    >>> ReliabilityDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    <manyclass.plot.reliability_diagram.ReliabilityDisplay object at ...>
    """

    def __init__(
        self,
        curves: Sequence[Reliability],
        *,
        classwise_error: float | None = None,
        histogram: ArrayLike | None = None,
        class_names: Sequence[Any] | None = None,
        name: str | None = None,
    ):
        self.curves = curves
        self.classwise_error = classwise_error
        self.histogram = histogram
        self.class_names = class_names
        self.name = name

    def plot(
        self, ax: Any = None, *, name: str | None = None, ref_line: bool = True, **kwargs: Any
    ) -> ReliabilityDisplay:
        """Draw the diagram.

        With more than 10 curves, the legend names only the 5 that are farthest from the diagonal.
        The others are grey and have no bars.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; those of a new figure when omitted.
        name : str, optional
            Name of the classifier, instead of the attribute ``name``.
        ref_line : bool, default=True
            Draw the diagonal.
        **kwargs : dict
            For :meth:`matplotlib.axes.Axes.errorbar`, which draws each named curve.

        Returns
        -------
        display : ReliabilityDisplay
        """
        self._check_curves()
        self.ax_ = drawing.axes_for(self, ax)
        self.figure_ = self.ax_.figure
        if ref_line and DIAGONAL not in self.ax_.get_legend_handles_labels()[1]:
            self.ax_.plot([0, 1], [0, 1], color="0.5", ls=":", label=DIAGONAL, zorder=1)
        self._draw_curves(self.name if name is None else name, kwargs)
        self.histogram_ax_ = self.histogram_ = None
        self.ax_.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        if self.histogram is not None:
            self._draw_histogram(np.asarray(self.histogram))
        elif drawing.strip_of(self.ax_) is not None:
            self._make_room()
        self._label_axes()
        return self

    def _check_curves(self) -> None:
        if self.class_names is not None:
            drawing.check_class_names(self.class_names, self.curves)
        if len(self.curves) == 0 or (self.class_names is None and len(self.curves) > 1):
            raise ValueError(
                f"curves must hold a curve for each of class_names, or a single one without "
                f"class_names, got {len(self.curves)}."
            )

    def _draw_curves(self, name: str | None, kwargs: dict[str, Any]) -> None:
        from matplotlib.lines import Line2D

        named = self._named()
        before, headings = _earlier(self.ax_)
        name = None if name is None else drawing.short_title(name)
        if self.class_names is None:
            labels, styles = [self._top_label(name)], [_style(before)]
        else:
            # A line of the legend above those of its curves.
            self.ax_.errorbar([], [], fmt=" ", label=drawing.legend_label(self._heading(name)))
            labels = self._class_labels()
            line = {"ls": LINE_STYLES[headings % len(LINE_STYLES)]}
            styles = [_style(c) | line for c in range(len(named))]
        self.lines_: list[Any] = []
        self.bars_: list[Any] = []
        for c, reliability in enumerate(self.curves):
            if c in named:
                style = styles[named.index(c)] | {"label": drawing.legend_label(labels[c])}
                self._draw_named(reliability, drawing.merged(style, kwargs, Line2D))
            else:
                stated, observed, _ = reliability.curve
                self.lines_ += self.ax_.plot(stated, observed, color="0.8", lw=0.8, zorder=1.5)

    def _draw_named(self, reliability: Reliability, style: dict[str, Any]) -> None:
        stated, observed, _ = reliability.curve
        lengths = np.stack([observed - reliability.lower, reliability.upper - observed])
        drawn = self.ax_.errorbar(stated, observed, yerr=lengths, **style)
        self.lines_.append(drawn.lines[0])
        self.bars_ += drawn.lines[2]
        for bars in drawn.lines[2]:
            bars.set_alpha(0.5)

    def _named(self, most: int = 10, worst: int = 5) -> list[int]:
        """Return the indices of the curves that the legend names: all, or of many the worst."""
        if len(self.curves) <= most:
            return list(range(len(self.curves)))
        errors = np.array([reliability.error for reliability in self.curves])
        return sorted(np.argsort(-errors, kind="stable")[:worst].tolist())

    def _top_label(self, name: str | None) -> str:
        text = f"calibration error {self.curves[0].error:.3f}"
        if self.classwise_error is not None:
            text += f", class-wise {self.classwise_error:.3f}"
        return text if name is None else f"{name}\n{text}"

    def _heading(self, name: str | None) -> str:
        parts = [] if name is None else [name]
        if self.classwise_error is not None:
            parts.append(f"class-wise calibration\nerror {self.classwise_error:.3f}")
        n_named = len(self._named())
        if n_named < len(self.curves):
            parts.append(f"the {n_named} worst of {len(self.curves)}:")
        return "\n".join(parts) if parts else "calibration error"

    def _class_labels(self) -> list[str]:
        names = drawing.check_class_names(self.class_names, self.curves)
        return [
            f"{name}  {reliability.error:.3f}"
            for name, reliability in zip(distinct_names(names), self.curves, strict=True)
        ]

    def _draw_histogram(self, shares: Floats) -> None:
        self._make_room()
        strip = drawing.strip_of(self.ax_)
        if strip is None:
            strip = drawing.add_strip(self.ax_)
        color = "0.45" if self.class_names is not None else self.lines_[0].get_color()
        edges = np.linspace(0, 1, len(shares) + 1)
        self.histogram_ax_ = strip
        strip.stairs(shares, edges, fill=True, color=color, alpha=0.2)
        line = self.lines_[0].get_linestyle()
        self.histogram_ = strip.stairs(shares, edges, color=color, lw=1, ls=line)
        least = min([1e-3, *shares[shares > 0]])
        strip.set_ylim(min(least / 2, strip.get_ylim()[0]), 1)

    def _make_room(self, floor: float = -0.28) -> None:
        """Start the vertical axis at ``floor``; the histogram lies below 0."""
        self.ax_.set_ylim(floor, 1.02)
        self.ax_.set_yticks(np.linspace(0, 1, 6))

    def _label_axes(self) -> None:
        top = self.class_names is None
        self.ax_.set_xlabel(
            "confidence in the predicted label" if top else "stated probability of the class"
        )
        self.ax_.set_ylabel("frequency of being right" if top else "frequency of the class")
        # The legend of many classes is beside the curves, if the layout can make room.
        beside = not top and self.figure_.get_layout_engine() is not None
        place = {"bbox_to_anchor": (1, 1), "frameon": False} if beside else {"framealpha": 0.7}
        legend = self.ax_.legend(loc="upper left", fontsize="small", **place)
        drawing.without_tex(legend.get_texts())

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        per_class: bool = False,
        labels: Iterable[Any] | None = None,
        n_bins: int = 10,
        strategy: Strategy | None = None,
        confidence: float = 0.95,
        class_names: Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the diagram of a fitted classifier.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
            Fitted; it may be a pipeline.
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Data that the estimator was not fitted on.
        y : array-like of shape (n,)
            True labels.
        per_class, labels, n_bins, strategy, confidence, class_names, sample_weight
            As in :meth:`from_predictions`.
        name : str, optional
            Name for the legend; the class of the estimator when omitted.
        ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : ReliabilityDisplay
        """
        drawing.require_matplotlib(f"{cls.__name__}.from_estimator")
        return cls.from_predictions(
            y,
            drawing.probabilities_of(estimator, X),
            per_class=per_class,
            labels=labels,
            classes=estimator.classes_,
            n_bins=n_bins,
            strategy=strategy,
            confidence=confidence,
            class_names=class_names,
            sample_weight=sample_weight,
            name=type(estimator).__name__ if name is None else name,
            ax=ax,
            **kwargs,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        per_class: bool = False,
        labels: Iterable[Any] | None = None,
        classes: ArrayLike | None = None,
        n_bins: int = 10,
        strategy: Strategy | None = None,
        confidence: float = 0.95,
        class_names: Sequence[Any] | None = None,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> ReliabilityDisplay:
        """Draw the diagram of given probabilities.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_prob : array-like of shape (n, k)
            Class probabilities.
        per_class : bool, default=False
            Show the probability of each class instead of the confidence in the predicted label.
        labels : iterable of labels, optional
            Show only the probabilities of these classes.
        classes : array-like of shape (k,), optional
            Label of each column of `y_prob`: ``classes_`` of the classifier. The sorted
            labels of `y_true` when omitted.
        n_bins : int, default=10
            Number of bins.
        strategy : {"uniform", "quantile", "variance"}, optional
            Bins of equal width on [0, 1], of equal weight, or of equal variance (the sum
            of ``p (1 - p)``). By default "quantile" for the predicted label and "variance" for
            classes. Most probabilities of a class are near 0: most bins of equal weight would be
            there, and most bins of equal width would be nearly empty.
        confidence : float, default=0.95
            Confidence level of the bars.
        class_names : sequence of k str, optional
            Names of the classes, in the order of the columns; their labels when omitted.
        sample_weight : array-like of shape (n,), optional
            Sample weights; equal when omitted. The intervals use the effective number of samples
            in a bin, which does not depend on the scale of the weights: a weight is the importance
            of a sample, not a number of copies.
        name, ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : ReliabilityDisplay

        Examples
        --------
        >>> from manyclass.plot import ReliabilityDisplay
        >>> y = ["a", "b", "c", "c"]
        >>> p = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4], [0.4, 0.3, 0.3]]
        >>> ReliabilityDisplay.from_predictions(y, p, labels=["c"])  # doctest: +SKIP
        <manyclass.plot.reliability_diagram.ReliabilityDisplay object at ...>
        """
        drawing.require_matplotlib(f"{cls.__name__}.from_predictions")
        checked = check_predictions(y_true, y_prob, classes, sample_weight)
        columns = drawing.class_labels(y_true, classes)
        names = drawing.check_class_names(class_names, columns)
        judged = judged_columns(labels, columns) if per_class or labels is not None else None
        measured = measure(
            *checked, judged=judged, n_bins=n_bins, strategy=strategy, confidence=confidence
        )
        display = cls(
            measured.curves,
            classwise_error=measured.classwise_error,
            histogram=measured.histogram,
            class_names=None if judged is None else [names[c] for c in judged],
            name=name,
        )
        return display.plot(ax, **kwargs)


def _style(index: int) -> dict[str, Any]:
    return {
        "color": drawing.COLORS[index % len(drawing.COLORS)],
        "marker": drawing.MARKERS[index % len(drawing.MARKERS)],
        "ms": 4.5,
        "lw": 1.3,
        "elinewidth": 1,
    }


def _earlier(ax: Any) -> tuple[int, int]:
    """Return the numbers of curves and headings that earlier displays named on the axes."""
    from matplotlib.container import ErrorbarContainer

    lines = [drawn.lines[0] for drawn in ax.containers if isinstance(drawn, ErrorbarContainer)]
    sizes = [np.size(line.get_xdata()) for line in lines if line is not None]
    return len(sizes) - sizes.count(0), sizes.count(0)
