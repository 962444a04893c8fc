"""Votes of the nearest neighbours of two classes, and class distances, for any bias.

The neighbours of each side are kept in ascending order. For votes, the two lists are
merged once per bias; one merge gives the votes for every number of neighbours J. For class
distances, one cumulative sum along each list serves all biases.
"""

from __future__ import annotations

import numpy as np

from manyclass._lib.compiled import kernel, summing_kernel


@summing_kernel
def euclidean(X, Y, out):
    """out[i, j] = |X[i] - Y[j]|, from differences: exact zeros, and rows are independent."""
    tile = max(1, 2**14 // X.shape[1])  # rows of Y that stay in cache: 128 kB
    for start in range(0, Y.shape[0], tile):
        for i in range(X.shape[0]):
            for j in range(start, min(start + tile, Y.shape[0])):
                total = 0.0
                for feature in range(X.shape[1]):
                    difference = X[i, feature] - Y[j, feature]
                    total += difference * difference
                out[i, j] = np.sqrt(total)


@kernel
def nearest(D, n_first, own, distances, kept, more):
    """Find the smallest distances of each row to each side, in ascending order.

    The first ``n_first`` columns of D are of side 0, the others of side 1. Outputs are
    ``distances`` (rows, 2, most), their numbers ``kept`` (rows, 2), and ``more`` (rows, 2), the
    number of samples that are as near as the last one kept. For leave-one-out, column ``own + i``
    of D is row i itself and is skipped; a negative ``own`` means that no column is skipped.
    """
    for i in range(D.shape[0]):
        left_out = own + i if own >= 0 else -1
        kept[i, 0], more[i, 0] = _smallest(D[i], 0, n_first, left_out, distances[i, 0])
        kept[i, 1], more[i, 1] = _smallest(D[i], n_first, D.shape[1], left_out, distances[i, 1])


@kernel
def _smallest(d, start, stop, left_out, ascending):
    """Sort the smallest of d[start:stop]; return their number, and the number of further ties."""
    most = ascending.size
    kept, more = 0, 0
    for j in range(start, stop):
        full = kept == most
        if j == left_out or (full and d[j] > ascending[most - 1]):
            continue
        if full and d[j] == ascending[most - 1]:
            more += 1
            continue
        largest = ascending[most - 1]
        place = most - 1 if full else kept
        while place > 0 and ascending[place - 1] > d[j]:
            ascending[place] = ascending[place - 1]
            place -= 1
        ascending[place] = d[j]
        if not full:
            kept += 1
        elif ascending[most - 1] == largest:
            more += 1
        else:
            more = 0
    return kept, more


@kernel
def merge(distances, kept, more, bias, votes):
    """votes[J - 1] = votes of the J nearest for side 1, its distances multiplied by ``bias``.

    Neighbours at the same distance share the remaining places among the J. A draw gives
    half a vote more to the nearer side: the one with more neighbours at the first distance
    at which the numbers differ.
    """
    used_0, used_1, nearer = 0, 0, 0
    J = 1
    while J <= votes.size:
        first = np.inf
        if used_0 < kept[0]:
            first = distances[0, used_0]
        if used_1 < kept[1]:
            first = min(first, bias * distances[1, used_1])
        tied_0, tied_1 = 0, 0
        while used_0 + tied_0 < kept[0] and distances[0, used_0 + tied_0] <= first:
            tied_0 += 1
        while used_1 + tied_1 < kept[1] and bias * distances[1, used_1 + tied_1] <= first:
            tied_1 += 1
        if tied_0 > 0 and used_0 + tied_0 == kept[0]:
            tied_0 += more[0]
        if tied_1 > 0 and used_1 + tied_1 == kept[1]:
            tied_1 += more[1]
        if nearer == 0:
            nearer = np.sign(tied_1 - tied_0)
        used = used_0 + used_1
        while J <= min(used + tied_0 + tied_1, votes.size):
            vote = used_1 + (J - used) * tied_1 / (tied_0 + tied_1)
            votes[J - 1] = vote if 2 * vote != J else vote + 0.5 * nearer
            J += 1
        used_0 += tied_0
        used_1 += tied_1


@kernel
def count_vote_errors(distances, kept, more, sides, biases, errors):
    """errors[b, J - 1] += 1 for every row that J votes with ``biases[b]`` misclassify."""
    votes = np.empty(errors.shape[1])
    for i in range(sides.size):
        for b in range(biases.size):
            merge(distances[i], kept[i], more[i], biases[b], votes)
            for J in range(1, votes.size + 1):
                errors[b, J - 1] += (2 * votes[J - 1] > J) != (sides[i] == 1)


@kernel
def count_votes(distances, kept, more, bias, n_neighbors, votes):
    """votes[i] = votes for side 1 of the ``n_neighbors`` nearest of row i."""
    each = np.empty(n_neighbors)
    for i in range(votes.size):
        merge(distances[i], kept[i], more[i], bias, each)
        votes[i] = each[-1]


@kernel
def average(distances, kept, means):
    """means[c, J - 1] = mean distance to the J nearest of side c, or to all if it has fewer.

    It is infinite for an empty side. Sums are taken in ascending order, so that they do not
    depend on the order of samples. A distance below zero by rounding counts as zero.
    """
    for c in range(2):
        total, used = 0.0, 0
        for J in range(1, means.shape[1] + 1):
            if used < kept[c]:
                total += max(distances[c, used], 0.0)
                used += 1
            means[c, J - 1] = total / used if used > 0 else np.inf


@kernel
def is_less(d, other):
    """Whether d < other by more than rounding: by 1e-12, for equal means of up to 1000 terms."""
    return (1.0 + 1e-12) * d < other


@kernel
def contrast(d_0, d_1):
    """(d_0 - d_1) / (d_0 + d_1); 0 if they are equal, -1 or 1 if one of them is infinite."""
    if is_less(d_0, d_1):
        return -1.0 if d_1 == np.inf else (d_0 - d_1) / (d_0 + d_1)
    if is_less(d_1, d_0):
        return 1.0 if d_0 == np.inf else (d_0 - d_1) / (d_0 + d_1)
    return 0.0


@kernel
def count_distance_errors(distances, kept, sides, biases, errors):
    """errors[b, J - 1] += 1 for every row whose J-sample distance to the wrong side is less."""
    means = np.empty((2, errors.shape[1]))
    for i in range(sides.size):
        average(distances[i], kept[i], means)
        for b in range(biases.size):
            for J in range(1, means.shape[1] + 1):
                is_second = is_less(biases[b] * means[1, J - 1], means[0, J - 1])
                errors[b, J - 1] += is_second != (sides[i] == 1)


@kernel
def contrast_distances(distances, kept, bias, n_neighbors, contrasts):
    """contrasts[i] = contrast of the distances of row i to the ``n_neighbors`` of each side."""
    means = np.empty((2, n_neighbors))
    for i in range(contrasts.size):
        average(distances[i], kept[i], means)
        contrasts[i] = contrast(means[0, -1], bias * means[1, -1])
