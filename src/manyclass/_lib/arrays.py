"""Short names for the types of arrays, and the form of arrays that kernels are compiled for."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]  # indices of rows, columns or classes
Flags = NDArray[np.bool_]
Code = NDArray[np.int8]  # a code matrix (k, l), or a part of it


def plain(array, dtype) -> NDArray:
    """Return the array in C order and writable, which kernels are compiled for; copy if needed."""
    if type(array) is np.ndarray and array.dtype == dtype and array.flags.carray:
        return array  # np.require takes longer to find this out
    return np.require(array, dtype, ["C", "W"])
