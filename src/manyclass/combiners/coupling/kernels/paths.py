"""Products of binary probabilities along the paths of class trees."""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel
from manyclass._lib.compiled.exponential import logarithm
from manyclass.combiners.coupling.kernels.by_row import softmax
from manyclass.combiners.coupling.kernels.transposed import LOWEST


@kernel
def couple_trees(r, start, columns, sides, blocks, n_trees, p):
    """Write the geometric mean over trees of the products along paths.

    ``start``, ``columns`` and ``sides`` are the rows of the paths without their zeros (CSR). A
    node has the columns ``blocks[i]`` to ``blocks[i + 1]``; several are divided by their sum.
    """
    n, n_columns = r.shape
    k = p.shape[1]
    logs = np.empty((2, n_columns))
    for s in range(n):
        for b in range(n_columns):
            q = min(max(r[s, b], LOWEST), 1.0 - LOWEST)
            logs[0, b], logs[1, b] = logarithm(1.0 - q), logarithm(q)
        for i in range(len(blocks) - 1):
            if blocks[i + 1] > blocks[i] + 1:
                total = 0.0
                for b in range(blocks[i], blocks[i + 1]):
                    total += min(max(r[s, b], LOWEST), 1.0 - LOWEST)
                total = logarithm(total)
                for b in range(blocks[i], blocks[i + 1]):
                    logs[1, b] -= total
        for i in range(k):
            total = 0.0
            for e in range(start[i], start[i + 1]):
                total += logs[1 if sides[e] > 0 else 0, columns[e]]
            p[s, i] = total / n_trees
        softmax(p[s], p[s])
