"""Binning of tables: every attribute is split into cells.

The cells of a numeric attribute are bins of equal width, those of a categorical attribute its
categories. Missing values and unseen categories belong to no cell.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from manyclass._lib.arrays import Flags, Floats, Places
from manyclass._lib.row_blocks import row_blocks

NUMBERS, OBJECTS = "biuf", "OUST"  # kinds of numpy dtypes

Cells = NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Table:
    """The columns of X, each with its own type."""

    columns: list[NDArray[Any]]
    names: list[Any]
    declared: list[bool]  # whether the dtype of a column is categorical
    header: Any = None  # the original frame without its rows; None for an array

    def __len__(self) -> int:
        return len(self.columns[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of columns."""
        return len(self), len(self.columns)

    def __getitem__(self, rows) -> Table:
        """Return some of the rows; scikit-learn writes ``table[rows, ...]``."""
        rows = rows[0] if isinstance(rows, tuple) else rows
        return replace(self, columns=[column[rows] for column in self.columns])


def is_frame(X) -> bool:
    """Whether X is a data frame, whose columns have names and dtypes."""
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def read_table(X) -> Table:
    """Split an array or a frame into columns."""
    if not is_frame(X):
        columns, names = list(np.asarray(X).T), list(range(X.shape[1]))
        declared, header = [False] * len(columns), None
    else:
        series = [X.iloc[:, j] if hasattr(X, "iloc") else X[:, j] for j in range(X.shape[1])]
        columns, names = [np.asarray(one) for one in series], list(X.columns)
        declared = [getattr(one.dtype, "name", None) == "category" for one in series]
        header = X[:0]
    for column, name in zip(columns, names, strict=True):
        if column.dtype.kind not in NUMBERS + OBJECTS:
            raise ValueError(
                f"column {name!r} of X has dtype {column.dtype}: convert it to numbers or strings."
            )
    return Table(columns, names, declared, header)


def mark_missing(values: Iterable[Any]) -> list[bool]:
    """Return a mask of values that are None, NaN or pandas' NA."""
    na = getattr(sys.modules.get("pandas"), "NA", None)
    return [value is None or value is na or value != value for value in values]


def known_values(column: NDArray[Any]) -> list[Any]:
    """Return the non-missing values of a column of objects."""
    values = column.tolist()
    return [value for value, m in zip(values, mark_missing(values), strict=True) if not m]


def as_numbers(column: NDArray[Any], name) -> Floats:
    """Return a column as floats, NaN where missing."""
    values: Any = column
    if column.dtype.kind in OBJECTS:
        values = column.tolist()
        missing = mark_missing(values)
        values = [np.nan if m else value for value, m in zip(values, missing, strict=True)]
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (OverflowError, TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        raise kind(
            f"column {name!r} of X is taken as numeric, but: {error}. Convert it to numbers, or "
            "add it to categorical_features."
        ) from error
    if np.isinf(numbers).any():
        raise ValueError(
            f"column {name!r} of X contains infinity: replace it by NaN, which is ignored, or by "
            "a finite number."
        )
    return numbers


def categorical_mask(categorical_features, table: Table) -> Flags:
    """Return a mask of categorical columns; see :class:`BoostedNaiveBayes`."""
    d = len(table.columns)
    if categorical_features is None or isinstance(categorical_features, bool | np.bool_):
        return np.full(d, bool(categorical_features))
    if isinstance(categorical_features, str) and categorical_features == "from_dtype":
        found = zip(table.declared, table.columns, strict=True)
        return np.array([declared or _holds_categories(column) for declared, column in found])
    chosen = np.asarray(categorical_features)
    if chosen.ndim == 1 and chosen.size == 0:
        return np.zeros(d, dtype=np.bool_)
    if chosen.ndim == 1 and chosen.dtype.kind == "b" and len(chosen) == d:
        return chosen.copy()
    known = table.names if chosen.dtype.kind in OBJECTS else range(d)
    if chosen.ndim != 1 or chosen.dtype.kind in "bf" or not all(one in known for one in chosen):
        shown = ", ".join(map(repr, table.names[:5])) + (" ..." if d > 5 else "")
        raise ValueError(
            "categorical_features must be 'from_dtype', True for all or None for no columns, a "
            "mask with one bool per column of X, or indices or names of columns; X has the columns "
            f"{shown}, but got {categorical_features!r}."
        )
    return np.isin(np.arange(d), [known.index(one) for one in chosen])


def _holds_categories(column: NDArray[Any]) -> bool:
    if column.dtype.kind in NUMBERS:
        return column.dtype.kind == "b"
    types = set(map(type, known_values(column)))
    numeric = all(issubclass(one, Real) and not issubclass(one, bool) for one in types)
    return not numeric or not types  # categorical if all are missing: any value is valid later


class EqualWidth(NamedTuple):
    """Bins of equal width between the minimum and the maximum."""

    edges: Floats  # edges of the bins, one more than bins; empty if all numbers are missing

    @classmethod
    def fit(cls, column: NDArray[Any], name, n_bins: int) -> EqualWidth:
        """Compute the edges; a constant has a single bin."""
        numbers = as_numbers(column, name)
        numbers = numbers[~np.isnan(numbers)]
        if len(numbers) == 0:
            return cls(numbers)
        low, high = numbers.min(), numbers.max()
        return cls(_edges(low, high, n_bins if low < high else 1))

    @property
    def n_cells(self) -> int:
        """The number of bins."""
        return max(len(self.edges) - 1, 0)

    def cells(self, column: NDArray[Any], name) -> Cells:
        """Return the bin of each number; outside it is the first or last, and -1 if missing."""
        numbers = as_numbers(column, name)
        if self.n_cells == 0:
            return np.full(len(numbers), -1, dtype=np.int32)
        bins = np.searchsorted(self.edges[1:-1], numbers, side="right")
        return np.where(np.isnan(numbers), -1, bins).astype(np.int32)


def _edges(low: float, high: float, n_bins: int) -> Floats:
    i = np.arange(n_bins + 1)
    with np.errstate(over="ignore", invalid="ignore"):
        edges = (low * (n_bins - i) + high * i) / n_bins  # exact for integers
    if not np.isfinite(edges).all():
        edges = low / n_bins * (n_bins - i) + high / n_bins * i
    return np.maximum.accumulate(np.clip(edges, low, high))


class Categories(NamedTuple):
    """One cell for each category."""

    values: NDArray[Any]  # sorted if possible, else in order of appearance

    @classmethod
    def fit(cls, column: NDArray[Any], name) -> Categories:
        """Collect the categories."""
        if column.dtype.kind in NUMBERS:
            return cls(np.unique(column[~np.isnan(column)]))
        with _naming_unhashable(name):
            found = list(dict.fromkeys(known_values(column)))
        with suppress(TypeError):  # strings cannot be compared with numbers
            found = sorted(found)
        return cls(np.fromiter(found, dtype=object))

    @property
    def n_cells(self) -> int:
        """The number of categories."""
        return len(self.values)

    def cells(self, column: NDArray[Any], name) -> Cells:
        """Return the index of each category; -1 if it is missing or unseen."""
        if column.dtype.kind in NUMBERS and self.values.dtype.kind in NUMBERS and self.n_cells:
            nearest = np.minimum(np.searchsorted(self.values, column), self.n_cells - 1)
            return np.where(self.values[nearest] == column, nearest, -1).astype(np.int32)
        index = {value: cell for cell, value in enumerate(self.values.tolist())}
        values = column.tolist()
        pairs = zip(values, mark_missing(values), strict=True)
        with _naming_unhashable(name):
            return np.array([-1 if m else index.get(v, -1) for v, m in pairs], dtype=np.int32)


@contextmanager
def _naming_unhashable(name) -> Iterator[None]:
    try:
        yield
    except TypeError as error:
        raise TypeError(
            f"column {name!r} of X cannot hold categories: {error}. Each argument must be "
            "hashable, as strings and numbers are."
        ) from error


@dataclass(frozen=True, eq=False)
class Bins:
    """The cells of all attributes, concatenated."""

    attributes: tuple[EqualWidth | Categories, ...]

    @classmethod
    def fit(cls, table: Table, categorical: Flags, n_bins: int) -> Bins:
        """Compute the cells of each column."""
        columns = zip(table.columns, table.names, categorical, strict=True)
        return cls(
            tuple(
                Categories.fit(column, name) if c else EqualWidth.fit(column, name, n_bins)
                for column, name, c in columns
            )
        )

    @cached_property
    def sizes(self) -> Places:
        """Number of cells of each attribute, shape (d,)."""
        return np.array([one.n_cells for one in self.attributes], dtype=np.intp)

    @cached_property
    def offsets(self) -> Places:
        """First cell of each attribute, and the total number of cells, shape (d + 1,)."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    def one_hot(self, table: Table) -> csr_array:
        """Return a sparse matrix with 1 for the cells of each row, shape (n, cells)."""
        columns = zip(self.attributes, table.columns, table.names, strict=True)
        cells = np.array([one.cells(column, name) for one, column, name in columns])
        present = cells.T >= 0
        indices = (cells + self.offsets[:-1, None].astype(np.int32)).T[present]
        indptr = np.concatenate([[0], np.cumsum(present.sum(axis=1))])
        return csr_array(
            (np.ones(len(indices)), indices, indptr), shape=(len(table), self.offsets[-1])
        )

    def dot(self, table: Table, values: Floats, block_entries: int = 2**20) -> Floats:
        """Return the sum of ``values`` (cells, m) over the cells of each row, shape (n, m)."""
        out = np.empty((len(table), values.shape[1]))
        for rows in row_blocks(len(table), len(self.attributes), block_entries):
            out[rows] = self.one_hot(table[rows]) @ values
        return out
