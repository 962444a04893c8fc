"""Short names for the types of arrays."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Places = NDArray[np.intp]  # indices of rows, columns or classes
Flags = NDArray[np.bool_]
Code = NDArray[np.int8]  # a code matrix (k, l), or a part of it
