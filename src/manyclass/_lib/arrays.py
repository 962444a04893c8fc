"""Short names for the types of arrays, and the forms of arrays that others rely on."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

Floats = NDArray[np.float64]
Places = NDArray[np.intp]  # indices of rows, columns or classes
Flags = NDArray[np.bool_]
Code = NDArray[np.int8]  # a code matrix (k, l), or a part of it

# Replaces infinite scores. A sum of 1e8 such numbers is finite in float64, and so is their product
# with a slope below 1e8.
FARTHEST = 1e300


def plain(array, dtype) -> NDArray:
    """Return the array in C order and writable, which kernels are compiled for; copy if needed."""
    if type(array) is np.ndarray and array.dtype == dtype and array.flags.carray:
        return array  # np.require takes longer to find this out
    return np.require(array, dtype, ["C", "W"])


def read_only(array: Any) -> Any:
    """Make an array, or the entries of a CSR matrix, read-only; return it.

    For arrays that are computed when they are asked for: writing to them would have no effect.
    """
    for part in (array.data, array.indices, array.indptr) if issparse(array) else (array,):
        part.flags.writeable = False
    return array
