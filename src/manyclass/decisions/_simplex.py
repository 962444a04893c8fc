"""Validation of class probabilities and class frequencies, a block of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyclass._lib.arrays import Floats
from manyclass._lib.row_blocks import BLOCK_ENTRIES, row_blocks


def as_rows(proba: ArrayLike) -> NDArray:
    """Return ``proba`` as an array of n rows and k >= 2 columns; an array is not copied."""
    rows = np.asarray(proba)
    if rows.ndim != 2 or rows.shape[1] < 2 or rows.dtype.kind not in "fiub":
        raise ValueError(
            f"proba must be an array of numbers of shape (n, k), k >= 2, got shape {rows.shape} "
            f"and dtype {rows.dtype}. Pass the result of predict_proba."
        )
    return rows


def checked_blocks(
    proba: NDArray, width: int, entries: int = BLOCK_ENTRIES
) -> Iterator[tuple[slice, Floats]]:
    """Yield slices of rows and their probabilities, checked, in double precision.

    ``width`` is the number of columns of the widest array computed from a block.
    """
    for rows in row_blocks(len(proba), width, entries):
        p = proba[rows].astype(np.float64)
        _check_block(p, rows.start)
        yield rows, np.maximum(p, 0.0, out=p)


def _check_block(p: Floats, first: int, tolerance: float = 1e-5) -> None:
    """Check that rows are distributions; float32 rows of many classes need the tolerance."""
    with np.errstate(invalid="ignore", over="ignore"):
        good = (p >= -tolerance).all(axis=1) & (np.abs(p.sum(axis=1) - 1.0) <= tolerance)
        if good.all():
            return
        row = int(np.argmin(good))
        least, total = p[row].min(), p[row].sum()
    raise ValueError(
        f"row {first + row} of proba is not a distribution: its least entry is {least:.6g} "
        f"and its sum {total:.6g}. Entries must be at least 0 and sum to 1, both within "
        f"{tolerance:g}. If these are scores, divide each row by its sum."
    )


def check_prior(prior: ArrayLike, k: int, name: str) -> Floats:
    """Return frequencies or counts of the classes, scaled to sum to 1."""
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
    scaled = given / given.max()  # the sum of large counts could overflow
    return scaled / scaled.sum()
