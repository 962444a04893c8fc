"""Data where the processor wants it: sums of unaligned numbers may differ in the last bit.

Buffers that another process has sent may begin anywhere.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from manyclass._lib.frames import copy_of


def aligned(X: Any) -> Any:
    """Return X, or an aligned copy in the same order if X is an unaligned array or frame."""
    if isinstance(X, np.ndarray):
        return X if X.flags.aligned else X.copy(order="K")
    is_frame = hasattr(X, "iloc") and X.ndim == 2  # a series holds texts: rows of numbers are 2-D
    return copy_of(X) if is_frame and not _is_aligned(X) else X


def _is_aligned(X: Any) -> bool:
    """Tell whether a frame is aligned, from its first column of each type.

    Columns of one type share an array, or are copied into one by who reads several of them.
    """
    firsts = np.flatnonzero(~X.dtypes.duplicated())
    columns = [X.iloc[:, j] for j in firsts if isinstance(X.dtypes.iloc[j], np.dtype)]
    return all(column.to_numpy().flags.aligned for column in columns)
