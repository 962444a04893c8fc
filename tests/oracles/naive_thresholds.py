"""Slow oracles of thresholds and biased neighbours, in plain loops."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction


def error(y, scores, weights, t):
    """Weight of the samples that scores > t misclassifies."""
    return sum(w for label, d, w in zip(y, scores, weights, strict=True) if (d > t) != (label == 1))


def balanced_error(y, scores, weights, t):
    """Mean of the weighted error rates of the two classes."""
    shares = []
    for side in (0, 1):
        of_side = [i for i in range(len(y)) if y[i] == side]
        wrong = sum(weights[i] for i in of_side if (scores[i] > t) != (side == 1))
        shares.append(wrong / sum(weights[i] for i in of_side))
    return sum(shares) / 2


def log_loss(y, scores, weights, t):
    """Weighted sum of log(1 + exp(-s (d - t)))."""
    total = 0.0
    for label, d, w in zip(y, scores, weights, strict=True):
        z = (d - t) if label == 1 else (t - d)
        total += w * (math.log1p(math.exp(-abs(z))) + max(0.0, -z))
    return total


def candidates(scores):
    """Return (distance of the interval from zero, its threshold) for every interval."""
    values = sorted(set(scores))
    half = (values[-1] - values[0]) / (len(values) - 1) / 2 if len(values) > 1 else 0.5
    found = [(max(0.0, -values[0]), values[0] - half)]
    for low, high in itertools.pairwise(values):
        found.append((max(0.0, low, -high), low / 2 + high / 2))
    found.append((max(0.0, values[-1]), values[-1] + half))
    return found


def best_threshold(y, scores, weights, loss):
    """Try every interval; among ties take the one nearest to zero."""
    kept = [i for i in range(len(y)) if weights[i] > 0]
    y, scores, weights = ([values[i] for i in kept] for values in (y, scores, weights))
    tried = [(loss(y, scores, weights, t), gap, abs(t), t) for gap, t in candidates(scores)]
    least = min(tried)[0]
    return min(entry[1:] for entry in tried if entry[0] <= least + 1e-12 * sum(weights))[2]


def distance(x, z):
    return math.sqrt(sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))


def votes(x, X, sides, J, bias):
    """Expected votes of the J nearest for side 1, ties in distance broken at random."""
    groups = {}
    for row, side in zip(X, sides, strict=True):
        biased = distance(x, row) * (bias if side == 1 else 1.0)
        groups.setdefault(biased, []).append(int(side))
    seen, vote, nearer = 0, Fraction(0), 0
    for biased in sorted(groups):
        group = groups[biased]
        if nearer == 0 and 2 * sum(group) != len(group):
            nearer = 1 if 2 * sum(group) > len(group) else -1
        vote += Fraction(min(len(group), J - seen) * sum(group), len(group))
        seen += len(group)
        if seen >= J:
            break
    return float(vote + Fraction(nearer, 2) if 2 * vote == J else vote)


def class_distance(x, X, J):
    """Mean distance to the J nearest, or to all if there are fewer; infinite for none."""
    near = sorted(distance(x, row) for row in X)[:J]
    return math.fsum(near) / len(near) if near else math.inf


def contrast(x, X, sides, J, bias):
    """(d_0 - f d_1) / (d_0 + f d_1), or 0 if they differ by rounding only."""
    of_side = [[row for row, s in zip(X, sides, strict=True) if s == side] for side in (0, 1)]
    d_0, d_1 = (class_distance(x, rows, J) for rows in of_side)
    d_1 *= bias
    if math.isinf(d_0) or math.isinf(d_1):
        return 1.0 if math.isinf(d_0) else -1.0
    return 0.0 if math.isclose(d_0, d_1, rel_tol=1e-12) else (d_0 - d_1) / (d_0 + d_1)


def log_odds_of_votes(x, X, sides, J, bias):
    """Log-odds of Laplace's rule of succession."""
    m = votes(x, X, sides, J, bias)
    return math.log((m + 1) / (J - m + 1))


EVIDENCE = {"votes": log_odds_of_votes, "distances": contrast}


def leave_one_out(evidence, X, sides, J, bias):
    """Leave-one-out evidence for side 1, for each sample."""
    found = []
    for i in range(len(X)):
        others = [j for j in range(len(X)) if j != i]
        rest = [X[j] for j in others], [sides[j] for j in others]
        found.append(EVIDENCE[evidence](X[i], *rest, J, bias))
    return found


def leave_one_out_errors(evidence, X, sides, J, bias):
    """Number of samples that leave-one-out misclassifies."""
    found = leave_one_out(evidence, X, sides, J, bias)
    return sum((value > 0) != (side == 1) for value, side in zip(found, sides, strict=True))


def slope_loss(slope, evidence, X, sides, J, bias):
    """Log-loss of the leave-one-out evidence and of two pseudo-samples, correct and wrong.

    With votes the pseudo-samples have the largest evidence; with distances they are spread over
    all sizes of evidence.
    """
    found = leave_one_out(evidence, X, sides, J, bias)
    sizes = [abs(value) for value in found]
    doubt = sizes if evidence == "distances" else [max(sizes)]
    total = log_loss(sides, [slope * value for value in found], [1] * len(found), 0.0)
    for size in doubt:
        total += log_loss([0, 1], [slope * size] * 2, [1 / len(doubt)] * 2, 0.0)
    return total


def choose(evidence, X, sides, numbers, biases):
    """Return the smallest leave-one-out error, its bias (nearest to 1) and J (the largest)."""
    cells = []
    for bias in biases:
        for J in numbers:
            wrong = leave_one_out_errors(evidence, X, sides, J, bias)
            cells.append((wrong, round(abs(math.log(bias)), 12), -J, bias))
    wrong, _, negative, bias = min(cells)
    return wrong / len(X), bias, -negative
