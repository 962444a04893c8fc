"""Slow oracles for the coupling rules: one sample at a time, as the papers print them.

Pairwise rules take a square ``r`` with ``r[i, j] = P(i | i or j)``; rules for any
ternary code take ``r`` with one entry per column of ``code``. Nothing is clipped
here except by :func:`clip`. Where conditioning matters the arithmetic is extended
(``np.longdouble``), so that an oracle is more accurate than what it judges.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

Array = NDArray[np.floating]
Code = NDArray[np.int8]

BOUND = 1e-7  # LIBSVM's bounds on the binary probabilities


# -- helpers -------------------------------------------------------------------------


def clip(r: Array) -> Array:
    """Keep binary probabilities away from 0 and 1."""
    return np.clip(r, BOUND, 1 - BOUND)


def pairs(code: Code) -> list[tuple[int, int]]:
    """Return the (positive, negative) class of each column of a one-vs-one code."""
    return [(int(np.argmax(c)), int(np.argmin(c))) for c in code.T]


def to_square(r: Array, code: Code) -> Array:
    """Spread one value per pair over a square matrix with ``r_ji = 1 - r_ij``."""
    square = np.full((len(code), len(code)), 0.5)
    for value, (i, j) in zip(r, pairs(code), strict=True):
        square[i, j], square[j, i] = value, 1 - value
    return square


def to_condensed(square: Array, code: Code) -> Array:
    """Read one value per column of a one-vs-one code from a square matrix."""
    return np.array([square[i, j] for i, j in pairs(code)])


def square_weights(weights: Array, code: Code) -> Array:
    """Spread the weights ``n_ij = n_ji`` over a square matrix, 0 on the diagonal."""
    square = np.zeros((len(code), len(code)))
    for value, (i, j) in zip(weights, pairs(code), strict=True):
        square[i, j] = square[j, i] = value
    return square


def equal_weights(k: int) -> Array:
    return np.ones((k, k)) - np.eye(k)


def solve(a: Array, b: Array) -> Array:
    """Gaussian elimination with partial pivoting, in extended precision."""
    m = np.column_stack([a, b]).astype(np.longdouble)
    n = len(m)
    for c in range(n):
        s = c + int(np.argmax(np.abs(m[c:, c])))
        m[[c, s]] = m[[s, c]]
        m[c + 1 :, c:] -= np.outer(m[c + 1 :, c] / m[c, c], m[c, c:])
    x = np.zeros(n, np.longdouble)
    for c in reversed(range(n)):
        x[c] = (m[c, n] - m[c, c + 1 : n] @ x[c + 1 :]) / m[c, c]
    return x


def bordered(q: Array) -> Array:
    """Minimise ``p'Qp / 2`` on ``sum p = 1``: the system (10) of Wu, Lin & Weng (2003)."""
    k = len(q)
    system = np.ones((k + 1, k + 1), np.longdouble)
    system[:k, :k], system[k, k] = q, 0
    return solve(system, np.append(np.zeros(k), 1))[:k]


def iterate(
    step: Callable[[Array], Array], p: Array, tol: float = 1e-13, max_iter: int = 100_000
) -> tuple[Array, bool]:
    """Repeat ``step`` until nothing moves by more than ``tol``; say whether it did."""
    for _ in range(max_iter):
        previous, p = p, step(p)
        if np.max(np.abs(p - previous)) < tol:
            return p, True
    return p, False


def incoherence(p: Array, r: Array, code: Code, weights: Array) -> float:
    """Weighted root-mean-square of ``r_b - q_b(p)``."""
    total = 0.0
    for b in range(code.shape[1]):
        plus, minus = p[code[:, b] == 1].sum(), p[code[:, b] == -1].sum()
        total += weights[b] * (r[b] - plus / (plus + minus)) ** 2
    return float(np.sqrt(total / np.sum(weights)))


# -- rules for one-vs-one ------------------------------------------------------------


def vote(r: Array) -> Array:
    """Wu, Lin & Weng (2003), below eq. (1); an exact draw is half a vote for each."""
    k = len(r)
    p = np.zeros(k)
    for i in range(k):
        for j in range(k):
            if j != i:
                p[i] += 1.0 if r[i, j] > r[j, i] else 0.5 if r[i, j] == r[j, i] else 0.0
    return 2 * p / (k * (k - 1))


def ht_noniterative(r: Array) -> Array:
    """Wu, Lin & Weng (2003), eq. (3)."""
    k = len(r)
    return np.array(
        [2 / (k * (k - 1)) * sum(r[i, j] for j in range(k) if j != i) for i in range(k)]
    )


def ht_printed(r: Array, n: Array, max_iter: int = 100_000) -> tuple[Array, bool]:
    """Hastie & Tibshirani (1998), the algorithm of section 2: one class at a time."""
    k = len(r)

    def sweep(p: Array) -> Array:
        p = p.copy()
        for i in range(k):
            others = [j for j in range(k) if j != i]
            wanted = sum(n[i, j] * r[i, j] for j in others)
            fitted = sum(n[i, j] * p[i] / (p[i] + p[j]) for j in others)
            p[i] *= wanted / fitted
            p /= p.sum()
        return p

    return iterate(sweep, np.full(k, 1 / k), max_iter=max_iter)


def _ht_objective(theta: Array, r: Array, n: Array) -> np.floating:
    """Hastie & Tibshirani (1998), eq. (4), up to a constant, with p = exp(theta)."""
    return np.sum(n * r * np.logaddexp(0, theta[None, :] - theta[:, None]))


def ht_newton(r: Array, n: Array) -> Array:
    """Solve the score equations (5) of Hastie & Tibshirani (1998) for theta = log p.

    They are the gradient of a convex function of theta: Newton with step halving,
    in extended precision. The null vector of the Hessian is e, so ee' is added.
    """
    r, n = r.astype(np.longdouble), n * (1 - np.eye(len(r), dtype=np.longdouble))
    theta = np.zeros(len(r), np.longdouble)
    for _ in range(500):
        mu = 1 / (1 + np.exp(theta[None, :] - theta[:, None]))
        curvature = n * mu * mu.T
        hessian = np.diag(curvature.sum(1)) - curvature
        step = solve(hessian + n.max() / len(r), np.sum(n * (r - mu), axis=1))
        step /= max(1, np.max(np.abs(step)) / 5)
        floor = _ht_objective(theta, r, n) * (1 + 1e-17)
        while _ht_objective(theta + step, r, n) > floor:
            step /= 2
        theta = theta + step
        if np.max(np.abs(step)) < 1e-13:
            break
    p = np.exp(theta - theta.max())
    return p / p.sum()


def wlw1_chain(r: Array) -> Array:
    """Return the transition matrix (6) of Wu, Lin & Weng (2003); its columns sum to 1."""
    k = len(r)
    q = r.astype(np.longdouble) / (k - 1)
    for i in range(k):
        q[i, i] = sum(r[i, s] for s in range(k) if s != i) / np.longdouble(k - 1)
    return q


def wlw1(r: Array) -> Array:
    """Solve ``Qp = p, sum p = 1`` with one equation replaced by the sum."""
    k = len(r)
    system = wlw1_chain(r) - np.eye(k)
    system[k - 1] = 1
    return solve(system, np.append(np.zeros(k - 1), 1))


def wlw2_matrix(r: Array) -> Array:
    """Wu, Lin & Weng (2003), eq. (9): Q_ii = sum_s r_si^2, Q_ij = -r_ji r_ij."""
    r = r.astype(np.longdouble)
    q = -r.T * r
    for i in range(len(r)):
        q[i, i] = sum(r[s, i] ** 2 for s in range(len(r)) if s != i)
    return q


def wlw2(r: Array) -> Array:
    """Solve the bordered system (10) of Wu, Lin & Weng (2003)."""
    return bordered(wlw2_matrix(r))


def pkpd(r: Array) -> Array:
    """Price, Knerr, Personnaz & Dreyfus (1995): 1 / (sum_j 1/r_ij - (k - 2)), normalised."""
    k = len(r)
    p = np.array([1 / (sum(1 / r[i, j] for j in range(k) if j != i) - (k - 2)) for i in range(k)])
    return p / p.sum()


def refregier_vallet(r: Array, tree: list[tuple[int, int]]) -> Array:
    """Refregier & Vallet (1991): ``r_ji p_i = r_ij p_j`` on the edges of a spanning tree.

    Solved through log p, as products of many odds overflow. Edges (i, j) must lead
    from a class already reached, starting at class 0.
    """
    log_p = np.zeros(len(r))
    for i, j in tree:
        log_p[j] = log_p[i] + np.log(r[j, i]) - np.log(r[i, j])
    p = np.exp(log_p - log_p.max())
    return p / p.sum()


def chain(k: int) -> list[tuple[int, int]]:
    return [(i, i + 1) for i in range(k - 1)]


def star(k: int) -> list[tuple[int, int]]:
    return [(0, j) for j in range(1, k)]


def logit(r: Array, n: Array) -> Array:
    """Least squares on the logit scale: min sum n_ij (logit r_ij - theta_i + theta_j)^2."""
    k = len(r)
    rows, values = [], []
    for i, j in combinations(range(k), 2):
        row = np.zeros(k)
        row[i], row[j] = 1, -1
        rows.append(np.sqrt(n[i, j]) * row)
        values.append(np.sqrt(n[i, j]) * np.log(r[i, j] / r[j, i]))
    theta = np.linalg.lstsq(np.array(rows), np.array(values), rcond=None)[0]
    p = np.exp(theta - theta.max())
    return p / p.sum()


# -- rules for any ternary code ------------------------------------------------------


def kl_objective(p: Array, r: Array, code: Code, weights: Array) -> float:
    """Zadrozny (2001), section 3: sum_b n_b KL(r_b || q_b(p))."""
    p = p.astype(np.longdouble)
    total = np.longdouble(0)
    for b in range(code.shape[1]):
        plus, minus = p[code[:, b] == 1].sum(), p[code[:, b] == -1].sum()
        q_plus, q_minus = plus / (plus + minus), minus / (plus + minus)
        total += weights[b] * r[b] * np.log(r[b] / q_plus)
        total += weights[b] * (1 - r[b]) * np.log((1 - r[b]) / q_minus)
    return float(total)


def kl_sides(p: Array, r: Array, code: Code, weights: Array) -> tuple[Array, Array]:
    """Return both sides A, B of the stationarity condition: the gradient is B - A.

    ``A_i = sum_{b: i in I} n_b r_b / p(I_b) + sum_{b: i in J} n_b (1 - r_b) / p(J_b)`` and
    ``B_i = sum_{b: i in I or J} n_b / (p(I_b) + p(J_b))``.
    """
    positive, negative = (code == 1).astype(p.dtype), (code == -1).astype(p.dtype)
    p_plus, p_minus = p @ positive, p @ negative
    a = positive @ (weights * r / p_plus) + negative @ (weights * (1 - r) / p_minus)
    return a, (positive + negative) @ (weights / (p_plus + p_minus))


def kl_kkt_violation(p: Array, r: Array, code: Code, weights: Array) -> float:
    """How far p is from optimal on the simplex: ratio A/B = 1 where p_i > 0, else <= 1.

    The multiplier of sum p = 1 vanishes, since the objective does not depend on the
    scale of p. A class on its way to 0 counts in proportion to p_i.
    """
    a, b = kl_sides(p.astype(np.longdouble), r, code, weights)
    ratio = a / b
    return float(np.max(np.maximum(ratio - 1, p * np.abs(ratio - 1))))


def kl_duality_gap(p: Array, r: Array, code: Code, weights: Array) -> float:
    """Bound the objective above its minimum, for codes without zeros (convex in p)."""
    a, b = kl_sides(p.astype(np.longdouble), r, code, weights)
    return float(np.max(a - b))


def kl_mm(
    r: Array, code: Code, weights: Array, start: Array | None = None, max_iter: int = 100_000
) -> tuple[Array, bool]:
    """Minorise-maximise by Jensen on log p(I): p_i <- p_i A_i / B_i, renormalise."""

    def step(p: Array) -> Array:
        a, b = kl_sides(p, r, code, weights)
        p = p * a / b
        return p / p.sum()

    k = len(code)
    return iterate(step, np.full(k, 1 / k) if start is None else start, max_iter=max_iter)


def kl_polish(p: Array, r: Array, code: Code, weights: Array) -> Array:
    """Newton on the stationarity condition from near a solution, in extended precision.

    Small classes that the MM step still shrinks are set to 0. :func:`kl_kkt_violation` checks
    that this was right.
    """
    a, b = kl_sides(p, r, code, weights)
    support = np.flatnonzero((p > 1e-4) | (a > (1 - 1e-5) * b))
    sub, x = code[support], p[support].astype(np.longdouble)
    positive, negative = (sub == 1).astype(np.longdouble), (sub == -1).astype(np.longdouble)
    for _ in range(50):
        a, b = kl_sides(x, r, sub, weights)
        p_plus, p_minus = x @ positive, x @ negative
        either = positive + negative
        hessian = (positive * (weights * r / p_plus**2)) @ positive.T
        hessian += (negative * (weights * (1 - r) / p_minus**2)) @ negative.T
        hessian -= (either * (weights / (p_plus + p_minus) ** 2)) @ either.T
        # homogeneous of degree 0: H x = A - B = 0 at the solution, so add ee'
        step = solve(hessian + 1, a - b)
        x = x + step / max(1, 2 * np.max(np.abs(step / x)))
        x /= x.sum()
        if np.max(np.abs(step)) < 1e-16:
            break
    out = np.zeros(len(p), np.longdouble)
    out[support] = x
    return out


def zadrozny(
    r: Array, code: Code, weights: Array, start: Array | None = None, max_iter: int = 100_000
) -> tuple[Array, bool]:
    """Zadrozny (2001), the algorithm of section 3: all classes at once, then renormalise."""
    k = len(code)
    positive, negative = (code == 1).astype(float), (code == -1).astype(float)

    def step(p: Array) -> Array:
        fitted = p @ positive / (p @ (positive + negative))
        wanted_sum = positive @ (weights * r) + negative @ (weights * (1 - r))
        fitted_sum = positive @ (weights * fitted) + negative @ (weights * (1 - fitted))
        p = p * wanted_sum / fitted_sum
        return p / p.sum()

    return iterate(step, np.full(k, 1 / k) if start is None else start, max_iter=max_iter)


def noniterative(r: Array, code: Code) -> Array:
    """Zadrozny (2001), section 4: sum of r_b over B+ and of 1 - r_b over B-, normalised."""
    p = np.zeros(len(code))
    for i in range(len(code)):
        for b in range(code.shape[1]):
            p[i] += {1: r[b], -1: 1 - r[b], 0: 0.0}[int(code[i, b])]
    return p / p.sum()


def least_squares_rows(r: Array, code: Code, weights: Array) -> Array:
    """Rows of the problem min ||A p||^2: sqrt(n_b) ((1 - r_b) [i in I] - r_b [i in J])."""
    rows = (1 - r) * (code == 1) - r * (code == -1)
    return (np.sqrt(weights) * rows).T


def least_squares_kkt_violation(p: Array, r: Array, code: Code, weights: Array) -> float:
    """Gradient g of the least-squares problem: g_i = p'g where p_i > 0, else >= p'g."""
    rows = least_squares_rows(r, code, weights).astype(np.longdouble)
    g = rows.T @ (rows @ p)
    scale = np.max(np.sum(rows**2, axis=0))
    return float(np.max(np.maximum(p @ g - g, p * np.abs(g - p @ g))) / scale)


def least_squares_supports(r: Array, code: Code, weights: Array) -> Array:
    """Try every support (small k) and keep the one that meets the optimality conditions."""
    rows = least_squares_rows(r, code, weights).astype(np.longdouble)
    q, k = rows.T @ rows, len(code)
    best, least = np.zeros(k, np.longdouble), np.inf
    for size in range(1, k + 1):
        for support in combinations(range(k), size):
            p = np.zeros(k, np.longdouble)
            p[list(support)] = bordered(q[np.ix_(support, support)])
            g = q @ p
            violation = max(-p.min(), np.max(p @ g - g))
            if violation < least:
                best, least = p, violation
    return best


def least_squares_nnls(r: Array, code: Code, weights: Array) -> Array:
    """Solve min ||A x||^2 + (sum x - 1)^2, x >= 0: x is proportional to the answer.

    For x = s p with sum p = 1 the best s leaves f / (1 + f), increasing in f = ||A p||^2.
    """
    rows = least_squares_rows(r, code, weights)
    system = np.vstack([rows / np.linalg.norm(rows), np.ones(len(code))])
    x, _ = nnls(system, np.append(np.zeros(len(rows)), 1.0))
    return x / x.sum()


def normalize(r: Array) -> Array:
    """One-vs-rest: r_i / sum r."""
    return r / r.sum()


# -- closed forms of special cases, found another way ----------------------------------


def least_squares_one_vs_rest(r: Array) -> Array:
    """Project r on the simplex: there (1 - r_i) p_i - r_i (1 - p_i) = p_i - r_i."""
    for size in range(len(r), 0, -1):
        top = np.sort(r)[::-1][:size]
        shift = (top.sum() - 1) / size
        if top[-1] >= shift:
            break
    return np.maximum(r - shift, 0)


def kl_one_vs_rest(r: Array, weights: Array) -> Array:
    """Solve n_i (r_i / p_i - (1 - r_i) / (1 - p_i)) = x for p, and bisect x until sum p = 1."""
    r, n = r.astype(np.longdouble), weights.astype(np.longdouble)

    def probabilities(x: np.longdouble) -> Array:
        # the root in (0, 1) of x p^2 - (n + x) p + n r = 0, in the form that cannot cancel
        return 2 * n * r / (n + x + np.sqrt((n + x) ** 2 - 4 * x * n * r))

    low, high = np.longdouble(-1e12), np.longdouble(1e12)
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if probabilities(middle).sum() > 1 else (low, middle)
    return probabilities(low)


def ordinal(r: Array, weights: Array) -> Array:
    """Pool adjacent violators: P(class > b) must fall with b, and r_b is its estimate.

    Weighted means minimise both the squares and the Kullback-Leibler divergence.
    """
    blocks: list[tuple[float, float, int]] = []
    for value, weight in zip(r, weights, strict=True):
        size = 1
        while blocks and blocks[-1][0] <= value:
            other, mass, length = blocks.pop()
            value = (value * weight + other * mass) / (weight + mass)
            weight, size = weight + mass, size + length
        blocks.append((value, weight, size))
    above = np.concatenate([[1.0], *(np.full(s, v) for v, _, s in blocks), [0.0]])
    return above[:-1] - above[1:]


# -- rows that are repeated -----------------------------------------------------------


def row_weights(X: Array, target: NDArray, weights: Array) -> dict[tuple[float, ...], float]:
    """Return the total weight of each distinct row and target, with its copies."""
    counts: dict[tuple[float, ...], float] = {}
    for row, t, weight in zip(X.tolist(), target.tolist(), weights.tolist(), strict=True):
        key = (*(value + 0.0 for value in row), t)
        counts[key] = counts.get(key, 0.0) + weight
    return counts
