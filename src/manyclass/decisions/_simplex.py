"""Checks of what should be distributions, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

TOLERANCE = 1e-5  # by which single precision may leave the simplex
BLOCK_ENTRIES = 2**18  # numbers worked on at a time: 2 MB

Array = NDArray[np.float64]


def as_rows(proba: ArrayLike) -> NDArray:
    """Return ``proba`` as an array of n rows and k >= 2 columns, copied only if it is none."""
    rows = np.asarray(proba)
    if rows.ndim != 2 or rows.shape[1] < 2 or rows.dtype.kind not in "fiub":
        raise ValueError(
            f"proba must be an array of numbers of shape (n, k), k >= 2, got shape {rows.shape} "
            f"of {rows.dtype}. Pass what predict_proba returns."
        )
    return rows


def blocks(proba: NDArray, width: int) -> Iterator[tuple[slice, Array]]:
    """Yield slices of rows and the probabilities there, checked, in double precision.

    ``width`` is the number of columns of the widest array made of a block.
    """
    step = max(1, BLOCK_ENTRIES // width)
    for first in range(0, len(proba), step):
        rows = slice(first, min(first + step, len(proba)))
        p = proba[rows].astype(np.float64)
        _check_block(p, first)
        yield rows, np.maximum(p, 0.0, out=p)


def _check_block(p: Array, first: int) -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        good = (p >= -TOLERANCE).all(axis=1) & (np.abs(p.sum(axis=1) - 1.0) <= TOLERANCE)
        if good.all():
            return
        row = int(np.argmin(good))
        least, total = p[row].min(), p[row].sum()
    raise ValueError(
        f"row {first + row} of proba is not a distribution: its least entry is {least:.6g} "
        f"and its sum {total:.6g}. Entries must be at least 0 and "
        f"sum to 1, both within {TOLERANCE:g}; divide rows of scores by their sums."
    )


def check_prior(prior: ArrayLike, k: int, name: str) -> Array:
    """Return class frequencies that sum to 1; counts will do."""
    given = np.asarray(prior, dtype=np.float64)
    if given.shape != (k,):
        raise ValueError(
            f"{name} must hold one frequency for each of the {k} classes, got shape {given.shape}."
        )
    if not (np.isfinite(given) & (given >= 0)).all() or not given.any():
        raise ValueError(
            f"{name} must hold frequencies or counts: finite, not negative and not all 0, got "
            f"{given.tolist()}."
        )
    scaled = given / given.max()  # so that the sum of large counts is finite
    return scaled / scaled.sum()
