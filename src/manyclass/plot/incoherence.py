"""Histograms of incoherence: how far the binary models contradict each other."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import check_array, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.arrays import Floats
from manyclass._lib.messages import some_quoted
from manyclass._lib.sklearn import check_sample_weight
from manyclass.plot import _drawing as drawing

GROUPS = {True: ("right", drawing.COLORS[0], None), False: ("wrong", drawing.COLORS[3], "////")}


class IncoherenceDisplay:
    """Histograms of the incoherence of a model, for right and for wrong predictions.

    Use :meth:`from_estimator` or :meth:`from_values` to create one. The incoherence of a
    row is the root-mean-square difference between the binary probabilities and those
    that the coupled ones imply. Each histogram has area 1, even if there are few wrong
    predictions; the legend shows their numbers. Either group may have the larger values.

    Parameters
    ----------
    incoherence : array of shape (n,)
        Incoherence of each row.
    correct : bool array of shape (n,)
        Whether the predicted label is right.
    sample_weight : array of shape (n,), optional
        Sample weights; equal when omitted.
    name : str, optional
        Name of the model, which is the title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    edges_ : ndarray of shape (n_bins + 1,)
        The edges of the bins of both histograms.
    densities_ : dict of bool to ndarray of shape (n_bins,)
        Heights of the histograms, of right (True) and wrong predictions.
    patches_ : dict of bool to matplotlib StepPatch
        The histograms; a group without weight has none.

    See Also
    --------
    manyclass.couple : Returns the incoherence with ``full_output=True``.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from manyclass import CoupledSVC
    >>> from manyclass.plot import IncoherenceDisplay
    >>> X, y = load_digits(return_X_y=True)
    >>> model = CoupledSVC().fit(X[::2], y[::2])
    >>> IncoherenceDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    <manyclass.plot.incoherence.IncoherenceDisplay object at ...>
    """

    def __init__(
        self,
        incoherence: ArrayLike,
        correct: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
    ):
        self.incoherence = incoherence
        self.correct = correct
        self.sample_weight = sample_weight
        self.name = name

    def plot(
        self, ax: Any = None, *, name: str | None = None, n_bins: int = 30, **kwargs: Any
    ) -> IncoherenceDisplay:
        """Draw the histograms.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; those of a new figure when omitted.
        name : str, optional
            Title, instead of the attribute ``name``.
        n_bins : int, default=30
            Number of bins, from 0 to the largest incoherence.
        **kwargs : dict
            For :meth:`matplotlib.axes.Axes.stairs`, which draws each histogram.

        Returns
        -------
        display : IncoherenceDisplay
        """
        values, correct, weight = _check(self.incoherence, self.correct, self.sample_weight)
        if n_bins < 1:
            raise ValueError(f"n_bins must be at least 1, got {n_bins}.")
        self.ax_ = drawing.axes_for(self, ax)
        self.figure_ = self.ax_.figure
        # Where all is coherent, up to rounding, there is still an axis to draw.
        self.edges_ = np.linspace(0, max(values.max(), 1e-6), n_bins + 1)
        self.densities_: dict[bool, Floats] = {}
        self.patches_: dict[bool, Any] = {}
        for right in (True, False):
            self._draw_group(right, values[correct == right], weight[correct == right], kwargs)
        self.ax_.set(xlabel="incoherence", ylabel="density", xlim=(0, self.edges_[-1]))
        self.ax_.set_ylim(bottom=0)
        above = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0)}  # no data are there
        self.ax_.legend(
            title="prediction", fontsize="small", alignment="left", frameon=False, **above
        )
        drawing.set_title(self.ax_, self.name if name is None else name, pad=48)  # above the legend
        return self

    def _draw_group(self, right: bool, values: Any, weight: Any, kwargs: dict[str, Any]) -> None:
        from matplotlib.patches import StepPatch

        word, color, hatch = GROUPS[right]
        total = weight.sum()
        if total == 0:
            self.densities_[right] = np.zeros(len(self.edges_) - 1)
            self.ax_.plot([], [], " ", label=f"{word}: none")
            return
        heights, _ = np.histogram(values, self.edges_, weights=weight / total)
        self.densities_[right] = heights / np.diff(self.edges_)
        share = "" if self.sample_weight is None else f", weight {total:.3g}"
        median = np.quantile(values, 0.5, weights=weight, method="inverted_cdf")
        label = f"{word}: {np.count_nonzero(weight)}{share}, median {median:.3f}"
        style = {"fill": True, "facecolor": (color, 0.3), "edgecolor": color, "hatch": hatch}
        self.patches_[right] = self.ax_.stairs(
            self.densities_[right],
            self.edges_,
            **drawing.merged(style | {"lw": 1.2, "label": label}, kwargs, StepPatch),
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> IncoherenceDisplay:
        """Draw the incoherence of a fitted coupled classifier.

        Parameters
        ----------
        estimator : CoupledClassifier, CoupledSVC, or a pipeline that ends with one
            Fitted, with a coupling rule as combiner.
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Data that the estimator was not fitted on.
        y : array-like of shape (n,)
            True labels.
        sample_weight : array-like of shape (n,), optional
            Sample weights; equal when omitted.
        name, ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : IncoherenceDisplay
        """
        drawing.require_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        model, X = drawing.last_step(estimator, X)
        if not hasattr(model, "incoherence"):
            raise ValueError(
                f"{type(model).__name__} has no incoherence: pass a CoupledClassifier or "
                "CoupledSVC whose combiner is a coupling rule, such as 'wlw2'."
            )
        labels = column_or_1d(y)
        predicted = model.predict(X)
        check_consistent_length(predicted, labels)
        strangers = set(labels.tolist()) - set(model.classes_.tolist())
        if strangers:
            raise ValueError(
                "y has labels that are not in classes_: "
                f"[{some_quoted(sorted(strangers, key=str))}]."
            )
        correct = predicted == labels
        return cls.from_values(
            model.incoherence(X), correct, sample_weight=sample_weight, name=name, ax=ax, **kwargs
        )

    @classmethod
    def from_values(
        cls,
        incoherence: ArrayLike,
        correct: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> IncoherenceDisplay:
        """Draw given values.

        Parameters
        ----------
        incoherence : array-like of shape (n,)
            Incoherence of each row, as ``couple(..., full_output=True)`` or
            ``CoupledClassifier.incoherence`` returns it.
        correct : array-like of bool, shape (n,)
            Whether the predicted label is right.
        sample_weight : array-like of shape (n,), optional
            Sample weights; equal when omitted.
        name, ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : IncoherenceDisplay

        Examples
        --------
        >>> from manyclass.plot import IncoherenceDisplay
        >>> IncoherenceDisplay.from_values([0.1, 0.3], [True, False])  # doctest: +SKIP
        <manyclass.plot.incoherence.IncoherenceDisplay object at ...>
        """
        drawing.require_matplotlib(f"{cls.__name__}.from_values")
        return cls(incoherence, correct, sample_weight=sample_weight, name=name).plot(ax, **kwargs)


def _check(incoherence: Any, correct: Any, sample_weight: Any) -> tuple[Any, Any, Any]:
    values = column_or_1d(
        check_array(incoherence, ensure_2d=False, dtype=np.float64, input_name="incoherence")
    )
    if values.min() < 0:
        raise ValueError(f"incoherence must not be negative, found {values.min()}.")
    hits = column_or_1d(correct)
    if hits.dtype != bool:
        raise ValueError(
            f"correct must be true or false for each row, got dtype {hits.dtype}: pass "
            "predicted == y."
        )
    check_consistent_length(values, hits)
    return values, hits, check_sample_weight(sample_weight, values)
