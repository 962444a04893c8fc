"""Probabilities of three classes as points in a triangle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from manyclass._lib.arrays import Floats
from manyclass._lib.messages import distinct_names
from manyclass.combiners.coupling import couple
from manyclass.metrics import check_predictions
from manyclass.plot import _drawing as drawing

if TYPE_CHECKING:
    from manyclass.combiners.coupling import CouplingRule


CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
MARGIN, HEIGHT = 0.12, 1.12  # around the triangle, and with it; its sides are 1. Chosen by eye
# 0 beats 1 beats 2 beats 0.
CYCLE = np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]])


class SimplexDisplay:
    """Probabilities of three classes as points in a triangle.

    Use :meth:`from_estimator`, :meth:`from_predictions` or :meth:`from_rule` to create
    one. At each corner one class has probability 1, and the centre is (1/3, 1/3, 1/3). The
    distance from the side opposite a corner is the probability of its class. Points have the
    colour and shape of their true class. Thin lines separate the regions of the most probable
    class: a point in the region of another corner is an error.

    Parameters
    ----------
    p : array of shape (n, 3), optional
        Class probabilities.
    target : int array of shape (n,), optional
        Index of the true class of each point; all points look the same when omitted.
    class_names : list of 3 str, optional
        Names of the classes; their numbers when omitted.
    grid : array of shape (3, m, points, 3), optional
        Lines of probabilities in the colour of each class, for example the result of a coupling
        rule for lines on which the probability of the class is constant.
    name : str, optional
        Title.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    points_ : list of matplotlib PathCollection
        The points of each class.
    regions_ : matplotlib LineCollection
        The borders of the regions.
    grid_ : matplotlib LineCollection or None
    corners_ : list of matplotlib Text

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.plot import SimplexDisplay
    >>> wine = load_wine()
    >>> X, y = wine.data, wine.target_names[wine.target]
    >>> from sklearn.naive_bayes import GaussianNB
    >>> model = CoupledClassifier(GaussianNB()).fit(X[::2], y[::2])
    >>> SimplexDisplay.from_estimator(model, X[1::2], y[1::2])  # doctest: +SKIP
    <manyclass.plot.simplex.SimplexDisplay object at ...>
    """

    def __init__(
        self,
        p: ArrayLike | None = None,
        *,
        target: ArrayLike | None = None,
        class_names: Sequence[Any] | None = None,
        grid: ArrayLike | None = None,
        name: str | None = None,
    ):
        self.p = p
        self.target = target
        self.class_names = class_names
        self.grid = grid
        self.name = name

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> SimplexDisplay:
        """Draw the triangle, its points and lines.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw on; those of a new figure when omitted.
        name : str, optional
            Title, instead of the attribute ``name``.
        **kwargs : dict
            For :meth:`matplotlib.axes.Axes.scatter`, which draws the points of each class.

        Returns
        -------
        display : SimplexDisplay
        """
        names = drawing.check_class_names(self.class_names, range(3))
        points = None if self.p is None else _check_three(np.asarray(self.p, dtype=np.float64), "p")
        lines = None if self.grid is None else np.asarray(self.grid, dtype=np.float64)
        if lines is not None and (lines.ndim != 4 or lines.shape[0] != 3 or lines.shape[3] != 3):
            raise ValueError(f"grid must have shape (3, m, points, 3), got {lines.shape}.")
        self.ax_ = drawing.axes_for(self, ax, figsize=(5.0, 4.6))
        self.figure_ = self.ax_.figure
        self._draw_frame(names)
        self.grid_ = None if lines is None else self._draw_grid(lines)
        self.points_ = [] if points is None else self._draw_points(points, names, kwargs)
        drawing.set_title(self.ax_, self.name if name is None else name)
        return self

    def _draw_frame(self, names: list[Any]) -> None:
        from matplotlib.collections import LineCollection
        from matplotlib.patches import Polygon

        ax = self.ax_
        ax.add_patch(Polygon(CORNERS, closed=True, fill=False, edgecolor="0.2", lw=1, zorder=1))
        middles = (CORNERS[[0, 1, 2]] + CORNERS[[1, 2, 0]]) / 2  # of the sides
        borders = np.stack([middles, np.broadcast_to(CORNERS.mean(axis=0), (3, 2))], axis=1)
        self.regions_ = ax.add_collection(
            LineCollection(list(borders), colors="0.4", lw=0.8, zorder=1)
        )
        ax.set(aspect="equal", xlim=(-MARGIN, 1 + MARGIN), ylim=(-MARGIN, HEIGHT - MARGIN))
        ax.set_axis_off()
        self._name_corners(names)

    def _name_corners(self, names: list[Any]) -> None:
        """Write the names at the corners; the two at the bottom share the width."""
        width = 1 + 2 * MARGIN
        letters = drawing.room(self.ax_, HEIGHT / width)[0]
        shown = distinct_names(names, int(np.clip(letters / 2 - 2, 4, 24)))
        self.corners_ = []
        for name, corner, edge, side in zip(
            shown, (0, 1), (-MARGIN, 1 + MARGIN), ("left", "right"), strict=False
        ):
            # Centred under the corner, but within the axes.
            fits = len(name) * width / letters <= 2 * MARGIN
            x, ha = (corner, "center") if fits else (edge, side)
            self.corners_.append(self.ax_.text(x, -0.03, drawing.literal(name), ha=ha, va="top"))
        x, y = CORNERS[2]
        self.corners_.append(self.ax_.text(x, y + 0.03, drawing.literal(shown[2]), ha="center"))
        drawing.without_tex(self.corners_)

    def _draw_points(self, p: Floats, names: list[Any], kwargs: dict[str, Any]) -> list[Any]:
        xy = p @ CORNERS
        style = {"s": 22, "alpha": 0.75, "edgecolors": "white", "linewidths": 0.4, "zorder": 2}
        if self.target is None:
            return [
                self.ax_.scatter(
                    *xy.T, **_point_style({"color": drawing.COLORS[0]} | style, kwargs)
                )
            ]
        target = np.asarray(self.target)
        points = []
        for c, name in enumerate(distinct_names(names)):
            of_class = {
                "color": drawing.COLORS[c],
                "marker": drawing.MARKERS[c],
                "label": drawing.legend_label(name),
            }
            points.append(
                self.ax_.scatter(*xy[target == c].T, **_point_style(of_class | style, kwargs))
            )
        legend = self.ax_.legend(
            handles=points, title="true class", loc="upper right", frameon=False, fontsize="small"
        )
        drawing.without_tex(legend.get_texts())
        return points

    def _draw_grid(self, lines: Floats) -> Any:
        from matplotlib.collections import LineCollection

        return self.ax_.add_collection(
            LineCollection(
                list((lines @ CORNERS).reshape(-1, lines.shape[2], 2)),
                colors=np.repeat(drawing.COLORS[:3], lines.shape[1]).tolist(),
                lw=0.9,
                zorder=1.2,
            )
        )

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        class_names: Sequence[Any] | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> SimplexDisplay:
        """Draw the probabilities of a fitted classifier of three classes.

        Parameters
        ----------
        estimator : classifier with ``predict_proba``
            Fitted; it may be a pipeline.
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
        y : array-like of shape (n,)
            True labels.
        class_names : sequence of 3 str, optional
            Names of the classes, in the order of ``classes_``; their labels when omitted.
        name, ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : SimplexDisplay
        """
        drawing.require_matplotlib(f"{cls.__name__}.from_estimator")
        p = drawing.probabilities_of(estimator, X)
        classes = estimator.classes_
        return cls.from_predictions(
            y, p, classes=classes, class_names=class_names, name=name, ax=ax, **kwargs
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_prob: ArrayLike,
        *,
        classes: ArrayLike | None = None,
        class_names: Sequence[Any] | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> SimplexDisplay:
        """Draw given probabilities of three classes.

        Parameters
        ----------
        y_true : array-like of shape (n,)
            True labels.
        y_prob : array-like of shape (n, 3)
            Class probabilities.
        classes : array-like of shape (3,), optional
            Label of each column of `y_prob`: ``classes_`` of the classifier. The sorted
            labels of `y_true` when omitted.
        class_names : sequence of 3 str, optional
            Names of the classes, in the order of the columns; their labels when omitted.
        name, ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : SimplexDisplay

        Examples
        --------
        >>> from manyclass.plot import SimplexDisplay
        >>> p = [[0.8, 0.1, 0.1], [0.2, 0.7, 0.1], [0.3, 0.3, 0.4]]
        >>> SimplexDisplay.from_predictions(["a", "b", "c"], p)  # doctest: +SKIP
        <manyclass.plot.simplex.SimplexDisplay object at ...>
        """
        drawing.require_matplotlib(f"{cls.__name__}.from_predictions")
        _check_three(np.asarray(y_prob), "y_prob")
        target, p, _ = check_predictions(y_true, y_prob, classes, None)
        names = drawing.check_class_names(class_names, drawing.class_labels(y_true, classes))
        return cls(p, target=target, class_names=names, name=name).plot(ax, **kwargs)

    @classmethod
    def from_rule(
        cls,
        rule: str | CouplingRule = "wlw2",
        *,
        disagreement: float = 1.0,
        n_lines: int = 10,
        class_names: Sequence[Any] | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> SimplexDisplay:
        """Draw the result of a coupling rule for binary models that contradict each other.

        Any three pairwise probabilities are those of some p, ``p_i / (p_i + p_j)``, with a
        constant d added to the log-odds of class 0 against 1, of 1 against 2, and of 2 against 0.
        So d measures their disagreement completely. The picture shows the result for a regular
        grid of p and one d. Lines on which the probability of a class is constant have the colour
        of that class. The grid stays regular for ``d = 0``, and for the rule "logit", which
        removes any d.

        Parameters
        ----------
        rule : str or CouplingRule, default="wlw2"
            A rule for one-vs-one or for any code.
        disagreement : float, default=1.0
            The constant d.
        n_lines : int, default=10
            The number of parts of each side of the grid.
        class_names : sequence of 3 str, optional
            Names of the classes; their numbers when omitted.
        name, ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : SimplexDisplay

        Examples
        --------
        >>> from manyclass.plot import SimplexDisplay
        >>> SimplexDisplay.from_rule("ht", disagreement=2.0)  # doctest: +SKIP
        <manyclass.plot.simplex.SimplexDisplay object at ...>
        """
        drawing.require_matplotlib(f"{cls.__name__}.from_rule")
        if n_lines < 2:
            raise ValueError(f"n_lines must be at least 2, got {n_lines}.")
        if not np.isfinite(disagreement):
            raise ValueError(f"disagreement must be finite, got {disagreement}.")
        grid = regular_grid(n_lines)
        image = couple(contradicting_pairs(grid.reshape(-1, 3), disagreement), rule=rule)
        return cls(class_names=class_names, grid=image.reshape(grid.shape), name=name).plot(
            ax, **kwargs
        )


def regular_grid(n_lines: int, n_points: int = 120) -> Floats:
    """Return lines ``p_c = t / n_lines`` of constant probability, for each class c.

    Each line has ``n_points`` points.
    """
    t = np.arange(1, n_lines)[:, None] / n_lines
    # Not on the sides, where pairwise probabilities would be 0 / 0.
    along = np.linspace(1e-6, 1 - 1e-6, n_points)
    first = np.stack([np.broadcast_to(t, (n_lines - 1, along.size)), (1 - t) * along], axis=-1)
    lines = np.concatenate([first, 1 - first.sum(axis=-1, keepdims=True)], axis=-1)
    return np.stack([np.roll(lines, c, axis=-1) for c in range(3)])


def contradicting_pairs(p: Floats, disagreement: float) -> Floats:
    """Return pairwise probabilities, shape (n, 3, 3), of p with a cycle in their log-odds."""
    logs = np.log(p)
    return expit(logs[:, :, None] - logs[:, None, :] + disagreement * CYCLE)


def _point_style(defaults: dict[str, Any], given: dict[str, Any]) -> dict[str, Any]:
    from matplotlib.collections import PathCollection

    if "c" in given:
        defaults = {key: value for key, value in defaults.items() if key != "color"}
    return drawing.merged(defaults, given, PathCollection)


def _check_three(p: Floats, argument: str) -> Floats:
    if p.ndim != 2 or p.shape[1] != 3:
        found = f"{p.shape[1]} columns" if p.ndim == 2 else f"shape {p.shape}"
        raise ValueError(
            f"{argument} has {found}, but a triangle shows the probabilities of exactly 3 classes. "
            "Use ReliabilityDisplay for more or fewer."
        )
    return p
