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

    one_call: float = 1e8
    """Up to so many products of numbers for the kernel of a pair, one call of LIBSVM fits all
    pairs. Above, each pair is a call, which jobs share."""
    sorted_bytes: int = 2**22
    """Up to this size of X, rows are sorted by class before one call for all pairs, since LIBSVM
    then reads a pair from two places in memory."""
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
    """There are at most so many batches; for many support vectors they are larger."""
    kept_bytes: int = 2**22
    """Up to this size, support vectors stay prepared between calls: for calls with few rows."""

    # ---------------------------------------------------------------- leave-one-out

    score_bytes: float = 2**29
    """Scores of all columns; if they are larger, folds are used, which hold fewer of them."""
    gram_bytes: float = 2**32
    """Kernel matrix of a machine's free support vectors; if it is larger, folds are used."""
    small_gram: int = 2**22
    """Up to so many entries, a kernel matrix is computed at once: 32 MB."""
    gram_parts: int = 8
    """Parts of the rows of a kernel matrix, at most, that are read one after the other."""
    span_entries: int = 2**22
    """Entries of the kernel that are held besides those of the free support vectors: 32 MB."""
    refits: int = 50
    """Machines that are fitted again without a sample. Each takes about a millisecond, besides
    its steps."""
    refit_samples: int = 2048
    """Samples of such a machine."""
    refit_work: float = 1e8
    """Steps of the solver times samples, of all of them: some tenths of a second."""
