"""The ridge of a scaling's matrix, and how strong it is on the effects of columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from manyclass._lib.arrays import Flags, Floats, Places
from manyclass.scaling.matrix import Search, log_losses, search_matrix

# Ridges of the columns' effects, in units of k l / n, the usual one first: a half left out chooses
# the second where the columns of weak learners tell more. benchmarks/quality/choices.md has others.
COLUMNS_RIDGES = (0.3, 0.03)


def ridges(n: float, k: int, sizes: Places, of_columns: float | None) -> Floats:
    """Return the factors of the squared entries of W, b and B."""
    ridge = np.full((k + 1 + len(sizes), k), k * (k - 1) / n)
    np.fill_diagonal(ridge, k / n)
    ridge[k] = k / n
    if of_columns is not None:
        ridge[k + 1 :] = of_columns * k * sizes[:, None] / n
    return ridge


def candidates(
    n: float, pooled: bool, *, few: int = 250, heavier: float = 3.0
) -> tuple[float, ...]:
    """Return the ridges to choose from: one more with few samples and ``pooled`` probabilities.

    benchmarks/quality/choices.md has other ridges and numbers of samples.
    """
    return (*COLUMNS_RIDGES, heavier) if pooled and n <= few else COLUMNS_RIDGES


def choose_ridge(
    z: Floats,
    X: Floats,
    y: Places,
    weights: Floats,
    sizes: Places,
    strengths: Sequence[float] = COLUMNS_RIDGES,
    most: int = 1000,
) -> tuple[float, Search | None]:
    """Return which of the ``strengths`` has the least log-loss on a half left out.

    The second result is the search on the other half, if there are two.

    The samples of a class take turns, from the least sure on, so that the halves do not depend on
    the order of the rows. A row of weight 2 is two samples. About ``most`` samples are used.
    """
    own, k = z[np.arange(len(y)), y], z.shape[1]
    order = np.lexsort((own, y))
    ends = np.cumsum(weights[order])
    starts = ends - weights[order]
    of_class = starts[np.searchsorted(y[order], y[order])]  # where each class starts
    step = np.ceil(ends[-1] / most)
    train, test = np.empty((2, len(y)))
    for turn, half in enumerate((train, test)):  # of every 2 * step samples, one is in each half
        first, last = starts - of_class - turn * step, ends - of_class - turn * step
        half[order] = _in_turn(last, 2.0 * step) - _in_turn(first, 2.0 * step)
    n, used, judged = train.sum(), train > 0.0, test > 0.0
    if not (n > 0.0 and judged.any()):
        return strengths[0], None
    known = _take(z, used), _take(X, used), y[used], train[used]
    z, X, y = _take(z, judged), _take(X, judged), y[judged]
    losses, searches, search = [], [], None
    for strength in strengths:
        search = search_matrix(*known, ridges(n, k, sizes, strength), tol=1e-4, start=search)
        losses.append(test[judged] @ log_losses(z + X @ search.M, y))
        searches.append(search)
    best = int(np.argmin(losses))
    return strengths[best], searches[best]


def _take(rows: Floats, chosen: Flags) -> Floats:
    """Return the chosen rows of an array whose columns are contiguous, as those of the result."""
    return np.compress(chosen, rows.T, axis=1).T


def _in_turn(t: Floats, period: float) -> Floats:
    """Return the length of [0, 1), [period, period + 1), ... below each t."""
    whole, rest = np.divmod(np.maximum(t, 0.0), period)
    return whole + np.minimum(rest, 1.0)
