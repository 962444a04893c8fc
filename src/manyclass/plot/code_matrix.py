"""A picture of a code matrix: the positive and negative classes of each column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.messages import distinct_names
from manyclass.codes.checks import as_ternary
from manyclass.plot import _drawing as drawing

# They differ in hue for all kinds of colour blindness, and in lightness in grey print.
ENTRY_COLORS = {-1: drawing.COLORS[1], 0: "#F2F2F2", 1: drawing.COLORS[0]}
SIGNS = {-1: "\N{MINUS SIGN}", 0: "", 1: "+"}


@dataclass(frozen=True)
class _Layout:
    """Sizes of the picture, in inches. All are choices, made by eye."""

    signed: int = 20
    """The most rows and columns of a code whose cells show signs."""
    widest: float = 1.5
    """The most columns per row of a larger code whose cells are squares."""
    cell: float = 0.32
    """Largest width and height of a cell."""
    width: float = 6.6
    height: float = 4.6
    """Largest width and height of all cells."""
    legend: float = 1.7
    """Width of the legend."""
    margins: float = 0.8
    """Both margins, with room for the label of the names."""


LAYOUT = _Layout()


class CodeMatrixDisplay:
    """Picture of a ternary code matrix: a row per class, a column per binary problem.

    Use :meth:`from_code` or :meth:`from_estimator` to create one. Entries of small
    codes are squares with their signs. Where there are more columns than pixels, the
    colours of neighbours mix; every class that is named stays readable.

    Parameters
    ----------
    code : int array of shape (k, l)
        Entries -1, 0 and +1.
    class_names : list of k str, optional
        Names of the classes; their numbers when omitted.

    Attributes
    ----------
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure
    im_ : matplotlib AxesImage
    text_ : list of matplotlib Text
        The signs in the cells of a small code.

    See Also
    --------
    manyclass.codes.audit : Quality of a code matrix, in numbers.

    Examples
    --------
    >>> from manyclass import codes
    >>> from manyclass.plot import CodeMatrixDisplay
    >>> code = codes.one_vs_one(4)
    >>> CodeMatrixDisplay.from_code(code, classes=["A", "B", "C", "D"])  # doctest: +SKIP
    <manyclass.plot.code_matrix.CodeMatrixDisplay object at ...>
    """

    def __init__(self, code: ArrayLike, *, class_names: Sequence[Any] | None = None):
        self.code = code
        self.class_names = class_names

    def plot(self, ax: Any = None, *, name: str | None = None, **kwargs: Any) -> CodeMatrixDisplay:
        """Draw the code.

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
        display : CodeMatrixDisplay
        """
        drawing.require_matplotlib(f"{type(self).__name__}.plot")
        code = as_ternary(self.code)
        names = distinct_names(drawing.check_class_names(self.class_names, range(len(code))))
        self.ax_ = drawing.axes_for(self, ax, figsize=_figure_size(code, names, name))
        self.figure_ = self.ax_.figure
        if ax is None:
            self.ax_.set_anchor("W")  # a title above narrow cells has room on the right
        self.im_ = self.ax_.imshow(code, **(_image_options(code) | kwargs))
        self.text_ = self._write_signs(code) if max(code.shape) <= LAYOUT.signed else []
        self._name_rows(names)
        self._number_columns(code.shape[1])
        self._add_legend()
        drawing.set_title(self.ax_, name, pad=28, x=0, ha="left")  # above the legend
        return self

    def _write_signs(self, code: Any) -> list[Any]:
        """Write the signs, and draw lines between the cells."""
        k, n_columns = code.shape
        lines = {"color": "white", "lw": 1}
        self.ax_.hlines(np.arange(k + 1) - 0.5, -0.5, n_columns - 0.5, **lines)
        self.ax_.vlines(np.arange(n_columns + 1) - 0.5, -0.5, k - 0.5, **lines)
        return [
            self.ax_.text(b, c, SIGNS[int(entry)], ha="center", va="center", color=color)
            for (c, b), entry in np.ndenumerate(code)
            if (color := {1: "white", -1: "black"}.get(int(entry)))
        ]

    def _room(self) -> tuple[float, float]:
        k, n_columns = self.im_.get_array().shape
        return drawing.room(self.ax_, None if self.ax_.get_aspect() == "auto" else k / n_columns)

    def _name_rows(self, names: list[str]) -> None:
        """Name as many rows as there is room for, at equal distances."""
        step = _step(len(names), self._room()[1])
        rows = np.arange(0, len(names), step)
        labels = self.ax_.set_yticks(rows, [drawing.literal(names[c]) for c in rows])
        drawing.without_tex(tick.label1 for tick in labels)
        few = "" if step == 1 else f" (1 in {step} named)"
        self.ax_.set_ylabel(f"class{few}")

    def _number_columns(self, n_columns: int) -> None:
        letters = len(str(n_columns)) + 1.5
        columns = np.arange(0, n_columns, _step(n_columns, self._room()[0] / letters))
        self.ax_.set_xticks(columns, [str(b) for b in columns])
        self.ax_.set_xlabel("binary problem")

    def _add_legend(self) -> None:
        from matplotlib.patches import Patch

        texts = {1: "+1", 0: "0", -1: "\N{MINUS SIGN}1"}
        handles = [
            Patch(facecolor=ENTRY_COLORS[entry], edgecolor="0.5", lw=0.5, label=text)
            for entry, text in texts.items()
        ]
        self.ax_.legend(
            handles=handles,
            loc="lower left",
            bbox_to_anchor=(0, 1),
            ncols=3,
            frameon=False,
            fontsize="small",
            columnspacing=1.2,
            handlelength=1,
            handleheight=1,
            borderaxespad=0.2,
            borderpad=0.2,
        )

    @classmethod
    def from_code(
        cls,
        code: ArrayLike,
        *,
        classes: Sequence[Any] | None = None,
        name: str | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> CodeMatrixDisplay:
        """Draw a given code.

        Parameters
        ----------
        code : array-like of shape (k, l)
            Entries -1, 0 and +1. It need not be usable: the picture may show why.
        classes : sequence of k labels, optional
            Names of the classes; their numbers when omitted.
        name, ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : CodeMatrixDisplay
        """
        drawing.require_matplotlib(f"{cls.__name__}.from_code")
        matrix = as_ternary(code)
        if classes is not None:
            classes = drawing.check_class_names(classes, range(len(matrix)), argument="classes")
        return cls(matrix, class_names=classes).plot(ax, name=name, **kwargs)

    @classmethod
    def from_estimator(
        cls, estimator: Any, *, name: str | None = None, ax: Any = None, **kwargs: Any
    ) -> CodeMatrixDisplay:
        """Draw the code of a fitted coupled classifier.

        Parameters
        ----------
        estimator : CoupledClassifier, CoupledSVC, or a pipeline that ends with one
            Fitted: its ``code_`` is drawn, its ``classes_`` are the names.
        name, ax, **kwargs
            For :meth:`plot`.

        Returns
        -------
        display : CodeMatrixDisplay

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from manyclass import CoupledSVC
        >>> from manyclass.plot import CodeMatrixDisplay
        >>> model = CoupledSVC().fit(*load_iris(return_X_y=True))
        >>> CodeMatrixDisplay.from_estimator(model)  # doctest: +SKIP
        <manyclass.plot.code_matrix.CodeMatrixDisplay object at ...>
        """
        drawing.require_matplotlib(f"{cls.__name__}.from_estimator")
        check_is_fitted(estimator)
        model, _ = drawing.last_step(estimator)
        if not hasattr(model, "code_"):
            raise ValueError(
                f"{type(model).__name__} has no code_: pass a CoupledClassifier or CoupledSVC, "
                "or a code matrix to CodeMatrixDisplay.from_code."
            )
        return cls(model.code_, class_names=list(model.classes_)).plot(ax, name=name, **kwargs)


def _has_squares(k: int, n_columns: int) -> bool:
    return max(k, n_columns) <= max(LAYOUT.signed, LAYOUT.widest * min(k, n_columns))


def _image_options(code: Any) -> dict[str, Any]:
    from matplotlib.colors import ListedColormap

    return {
        "cmap": ListedColormap([ENTRY_COLORS[entry] for entry in (-1, 0, 1)]),
        "vmin": -1.5,
        "vmax": 1.5,
        "aspect": "equal" if _has_squares(*code.shape) else "auto",
        # Mixing the entries themselves would turn +1 beside -1 into 0.
        "interpolation": "antialiased",
        "interpolation_stage": "rgba",
    }


def width_beside(names: list[str], cells: float = 0.0, title: str | None = None) -> float:
    """Return the width of the names and, beside them, the cells with legend and title."""
    above = max(cells, LAYOUT.legend)
    if title is not None:
        above = max(above, drawing.width_of([drawing.short_title(title)], "axes.titlesize"))
    return drawing.width_of(names, "ytick.labelsize") + above + LAYOUT.margins


def _figure_size(code: Any, names: list[str], title: str | None) -> tuple[float, float]:
    """Return inches: enough for the cells of a small code, bounded for a large one."""
    k, n_columns = code.shape
    across = min(LAYOUT.cell, LAYOUT.width / n_columns)
    down = min(LAYOUT.cell, LAYOUT.height / k)
    if _has_squares(k, n_columns):
        across = down = min(across, down)
    return width_beside(names, across * n_columns, title), 1.5 + down * k


def _step(n: int, most: float) -> int:
    """Return the least step of 1, 2, 5, 10, 20, ... that shows at most ``most`` of n."""
    step, factors = 1, [2.0, 2.5, 2.0]
    while n / step > max(most, 1.0):
        step = int(step * factors[0])
        factors = factors[1:] + factors[:1]
    return step
