"""A heat map of the scores of CoupledSVCCV over C and gamma."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from manyclass.plot import _drawing as drawing


class ScoreSurfaceDisplay:
    """The scores of a grid of C and gamma, and the best of them.

    Parameters
    ----------
    scores : array-like of shape (n_gammas, n_Cs)
        Greater is better.
    Cs : array-like of shape (n_Cs,)
    gammas : array-like of shape (n_gammas,)
        Numbers; or "scale" alone, for kernels without gamma.
    best : tuple of int
        Row and column of the best score.
    scoring : str, optional
        Name of the scores, for the colour bar.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    im_ : matplotlib AxesImage
    text_ : list of matplotlib Text
        The scores in the cells of a small grid.

    See Also
    --------
    manyclass.CoupledSVCCV : Computes the scores.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledSVCCV
    >>> from manyclass.plot import ScoreSurfaceDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledSVCCV(Cs=5).fit(X, y)
    >>> ScoreSurfaceDisplay.from_estimator(model)  # doctest: +SKIP
    <manyclass.plot.score_surface.ScoreSurfaceDisplay object at ...>
    """

    def __init__(
        self,
        scores: ArrayLike,
        Cs: ArrayLike,
        gammas: ArrayLike,
        *,
        best: tuple[int, int],
        scoring: str = "score",
    ):
        self.scores, self.Cs, self.gammas = scores, Cs, gammas
        self.best, self.scoring = best, scoring

    def plot(
        self, ax: Any = None, *, name: str | None = None, **kwargs: Any
    ) -> ScoreSurfaceDisplay:
        """Draw the scores.

        Colours show how far a score is from the best; the lower half of the scores has one colour.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; those of a new figure when omitted.
        name : str, optional
            Title of the picture.
        **kwargs : dict
            For :meth:`matplotlib.axes.Axes.imshow`.

        Returns
        -------
        display : ScoreSurfaceDisplay
        """
        scores = np.asarray(self.scores, dtype=np.float64)
        rows, columns = scores.shape
        size = 2.4 + 0.62 * max(columns, 4), 1.6 + 0.5 * rows
        self.ax_ = drawing.axes_for(self, ax, figsize=size)
        self.figure_ = self.ax_.figure
        # Without this, a few bad points would make all good ones look alike.
        style = {"cmap": "viridis", "origin": "lower", "aspect": "auto", "vmin": np.median(scores)}
        self.im_ = self.ax_.imshow(scores, **(style | kwargs))
        self._number_axes()
        few = columns <= 12  # a choice: more scores do not fit side by side
        self.text_ = self._write_scores(scores) if few else []
        row, column = self.best
        frame: Any = {"fill": False, "edgecolor": drawing.COLORS[3], "lw": 2.5}
        from matplotlib.patches import Rectangle

        self.ax_.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, **frame))
        bar = self.figure_.colorbar(self.im_, ax=self.ax_, extend="min")
        bar.set_label(drawing.literal(self.scoring))
        drawing.without_tex([bar.ax.yaxis.label])
        drawing.set_title(self.ax_, name)
        return self

    def _number_axes(self) -> None:
        for axis, values, label in (
            (self.ax_.xaxis, self.Cs, "C"),
            (self.ax_.yaxis, self.gammas, "gamma"),
        ):
            written = [_written(value) for value in np.asarray(values).tolist()]
            axis.set_ticks(range(len(written)), written)
            axis.set_label_text(label)

    def _write_scores(self, scores: Any) -> list[Any]:
        low, high = self.im_.get_clim()
        middle = 0.5 * (low + high)
        return [
            self.ax_.text(
                *(column, row, f"{score:.3f}"),
                ha="center",
                va="center",
                fontsize="small",
                color="black" if score > middle else "white",
            )
            for (row, column), score in np.ndenumerate(scores)
        ]

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> ScoreSurfaceDisplay:
        """Draw the scores of a fitted :class:`~manyclass.CoupledSVCCV`.

        Parameters
        ----------
        estimator : CoupledSVCCV, or a Pipeline that ends in one
        name, ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : ScoreSurfaceDisplay
        """
        model, _ = drawing.last_step(estimator)
        check_is_fitted(model)
        if not hasattr(model, "scores_") or not hasattr(model, "Cs_"):
            raise ValueError(
                f"{type(model).__name__} has no scores_ over C and gamma: pass a CoupledSVCCV."
            )
        column = int(np.flatnonzero(model.Cs_ == model.C_)[0])
        row = int(np.flatnonzero(model.gammas_ == model.gamma_)[0])
        scoring = model.scoring if isinstance(model.scoring, str) else "score"
        display = cls(model.scores_, model.Cs_, model.gammas_, best=(row, column), scoring=scoring)
        return display.plot(ax, name=name, **kwargs)


def _written(value: float | str) -> str:
    """Write a number with two digits, without an exponent."""
    if isinstance(value, str):
        return value
    return np.format_float_positional(value, precision=2, fractional=False, trim="-")
