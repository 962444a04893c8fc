"""Sizes of blocks, and limits of memory and time, for support vector machines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Sizes of blocks, and limits of memory and time.

    All of them are choices that trade speed for memory. Scores depend on the sizes of blocks by
    rounding only. A bank does not store them: a loaded model has the defaults.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from manyclass.banks import MARGIN, fit_bank
    >>> from manyclass.banks.limits import Limits
    >>> from manyclass.codes import one_vs_one
    >>> X, y = load_iris(return_X_y=True)
    >>> bank = fit_bank(SVC(), X, y, one_vs_one(3), MARGIN, limits=Limits(chunk=16))
    """

    # ---------------------------------------------------------------- fitting

    small: int = 1000
    """With at most this many samples, the kernel matrix of all of them is computed at once,"""
    wide: int = 64
    """and with more features than this, if ``cache_size`` allows it: matrix products are then
    faster than single rows of the kernel. Measured on the shared sets."""
    gram_parts: int = 16
    """Parts of the rows of that matrix, at most, that are read one after the other."""
    copied_bytes: int = 2**20
    """Up to this size, X is copied where a copy is simplest."""
    repeated: float = 0.5
    """If at least this share of the distinct rows has copies, each distinct row is fitted once."""
    digest_entries: int = 2**15
    """Entries of X that are read at a time to find equal rows; they stay in the cache."""

    # ---------------------------------------------------------------- scores

    chunk: int = 512
    """Support vectors per kernel block."""
    block_entries: int = 2**15
    """Entries of a kernel block, which stays in the cache."""
    sum_entries: int = 2**20
    """Entries of the sums of a block of rows: 8 MB."""
    least_rows: int = 128
    """Rows per block, at least."""
    most_rows: int = 2048
    """Rows per block, at most."""
    least_block: int = 32
    """Rows per block, at least, while fitting; rows with many features make blocks smaller."""
    least_chunk: int = 64
    """Support vectors per kernel block, at least, while fitting."""
    prepared_sparse_bytes: int = 2**20
    """While fitting, support vectors are prepared in batches: of this size if they are sparse,"""
    prepared_dense_bytes: int = 2**23
    """and of this size if they are dense."""
    batches: int = 16
    """Largest number of batches; for many support vectors, batches are larger."""
    kept_bytes: int = 2**22
    """Up to this size, support vectors stay prepared between calls: for calls with few rows."""

    # ---------------------------------------------------------------- leave-one-out

    doubtful: float = 0.5
    """The solver leaves out a sample whose score changes by at least this much by the formula,
    which assumes too large changes; half a margin is measured in benchmarks/quality/choices.md."""
    left_out_tol: float = 0.01
    """It stops at a hundred times the fit's ``tol``, or at ten times this if that is less, but not
    before ten times ``tol``."""
    score_bytes: float = 2**29
    """Scores of all columns; if they are larger, folds are used, which hold fewer of them."""
    free_bytes: float = 2**32
    """Kernel matrix of a machine's free support vectors; if it is larger, folds are used."""
