"""Best-first search in a tree of logistic models."""

from __future__ import annotations

import heapq

import numpy as np

from manyclass._lib.compiled import kernel


@kernel
def best_leaves(X, coef, intercept, root, children, lowest, leaves, p):
    """Write the most probable leaves of each row, and their probabilities, in descending order.

    Node b sends a row to ``children[b, 1]`` with the probability of its logistic model,
    ``coef[b] @ x + intercept[b]``, and to ``children[b, 0]`` otherwise. Leaf c is -c - 1. The
    probability of a node bounds those of all leaves below it, so that a branch waits until nothing
    better is left. Probabilities are clipped to [``lowest``, 1 - ``lowest``]. Of equally probable
    leaves the lowest class is first.
    """
    for s in range(X.shape[0]):
        waiting = [(-1.0, -root - 1)]  # in this order nodes precede leaves, and leaves are sorted
        found = 0
        while found < leaves.shape[1]:
            bound, leaf = heapq.heappop(waiting)
            if leaf >= 0:
                leaves[s, found], p[s, found] = leaf, -bound
                found += 1
                continue
            node = -leaf - 1
            f = intercept[node]
            for j in range(X.shape[1]):
                f += coef[node, j] * X[s, j]
            r = min(max(1.0 / (1.0 + np.exp(-f)), lowest), 1.0 - lowest)
            heapq.heappush(waiting, (bound * r, -children[node, 1] - 1))
            heapq.heappush(waiting, (bound * (1.0 - r), -children[node, 0] - 1))
