"""Figure 1 of Wu, Lin & Weng (2003) in plain numpy, independent of the library.

Written from the paper (sections 2 to 4 and 6.1), with its own generator, tie-breaks and solvers.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import minimize


def class_probabilities(case: str, k: int) -> np.ndarray:
    p = np.empty(k)
    if case == "balanced":
        p[0] = 1.5 / k
        p[1:] = (1 - p[0]) / (k - 1)
    elif case == "unbalanced":
        k1 = k // 2 if k % 2 == 0 else (k + 1) // 2
        p[0] = 0.95 * 1.5 / k1
        p[1:k1] = (0.95 - p[0]) / (k1 - 1)
        p[k1:] = 0.05 / (k - k1)
    elif k == 3:
        p[:] = 0.95 * 1.5 / 2, 0.95 - 0.95 * 1.5 / 2, 0.05
    else:
        p[:3] = 0.475, 0.475 / 2, 0.475 / 2
        p[3:] = 0.05 / (k - 3)
    return p


def pairwise(p: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Eqs. (17) and (18), truncated; the diagonal is 0."""
    k = len(p)
    r = np.zeros((n, k, k))
    for i in range(k):
        for j in range(i):
            noisy = p[i] / (p[i] + p[j]) + 0.1 * rng.standard_normal(n)
            r[:, i, j] = np.minimum(np.maximum(noisy, 1e-5), 1 - 1e-5)
            r[:, j, i] = 1 - r[:, i, j]
    return r


def hastie_tibshirani(r: np.ndarray) -> np.ndarray:
    """The iteration of section 2 with equal weights, until nothing changes.

    Where it converges slowly, because probabilities are near 0 or 1, scipy minimises the distance.
    """
    n, k, _ = r.shape
    wins = r.sum(axis=2)
    p = wins / wins.sum(axis=1, keepdims=True)
    left = np.arange(n)
    for _ in range(500):
        q = p[left]
        mu = q[:, :, None] / (q[:, :, None] + q[:, None, :])
        mu[:, np.arange(k), np.arange(k)] = 0.0
        new = q * wins[left] / mu.sum(axis=2)
        new /= new.sum(axis=1, keepdims=True)
        p[left] = new
        left = left[np.abs(new - q).max(axis=1) > 1e-12]
        if len(left) == 0:
            break
    for row in left:
        p[row] = least_distance(r[row], p[row])
    return p


def least_distance(r: np.ndarray, start: np.ndarray) -> np.ndarray:
    """Minimise sum_{i<j} KL(r_ij, mu_ij) over the logarithms of p, the first being 0."""
    k = len(r)
    upper = np.triu_indices(k, 1)

    def pieces(free: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        theta = np.concatenate([[0.0], free])
        return theta, 1.0 / (1.0 + np.exp(theta[None, :] - theta[:, None]))

    def distance(free: np.ndarray) -> float:
        theta, _ = pieces(free)
        gaps = (theta[:, None] - theta[None, :])[upper]
        return float((np.logaddexp(0.0, gaps) - r[upper] * gaps).sum())

    def slope(free: np.ndarray) -> np.ndarray:
        _, mu = pieces(free)
        return (mu - r).sum(axis=1, where=~np.eye(k, dtype=bool))[1:]

    def curvature(free: np.ndarray) -> np.ndarray:
        _, mu = pieces(free)
        shared = mu * mu.T * (1 - np.eye(k))
        return (np.diag(shared.sum(axis=1)) - shared)[1:, 1:]

    theta = np.log(start[1:] / start[0])
    found = minimize(
        distance, theta, jac=slope, hess=curvature, method="trust-exact", options={"gtol": 1e-9}
    )
    assert np.abs(slope(found.x)).max() < 1e-6, found.message
    p = np.exp(pieces(found.x)[0])
    return p / p.sum()


def delta1(r: np.ndarray) -> np.ndarray:
    """Eq. (6): Qp = p with the last equation replaced by the sum."""
    k = r.shape[1]
    Q = r / (k - 1)
    Q[:, np.arange(k), np.arange(k)] = r.sum(axis=2) / (k - 1)
    return _solve_with_sum(Q - np.eye(k))


def _solve_with_sum(A: np.ndarray) -> np.ndarray:
    n, k, _ = A.shape
    A = A.copy()
    A[:, -1, :] = 1.0
    b = np.zeros((n, k, 1))
    b[:, -1] = 1.0
    return np.linalg.solve(A, b)[:, :, 0]


def delta2(r: np.ndarray) -> np.ndarray:
    """Eq. (8), by the conditions of its Lagrangian."""
    n, k, _ = r.shape
    s = np.transpose(r, (0, 2, 1))  # r_ji
    system = np.zeros((n, k + 1, k + 1))
    system[:, :k, :k] = -s * r
    system[:, np.arange(k), np.arange(k)] = (s**2).sum(axis=2)
    system[:, :k, k] = system[:, k, :k] = 1.0
    right = np.zeros((n, k + 1, 1))
    right[:, k] = 1.0
    return np.linalg.solve(system, right)[:, :k, 0]


def voting(r: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Shares of votes; ties for the most votes are broken at random."""
    n, k, _ = r.shape
    votes = np.array([[sum(row[i] > row[:, i]) for i in range(k)] for row in r], dtype=float)
    shares = votes / (k * (k - 1) / 2)
    top = votes == votes.max(axis=1, keepdims=True)
    return shares + 1e-12 * top * rng.random((n, k))


def price(r: np.ndarray) -> np.ndarray:
    """Price et al.: 1 / (sum_j 1/r_ij - (k - 2)), normalised."""
    n, k, _ = r.shape
    p = np.empty((n, k))
    for i in range(k):
        others = [j for j in range(k) if j != i]
        p[:, i] = 1.0 / ((1.0 / r[:, i, others]).sum(axis=1) - (k - 2))
    return p / p.sum(axis=1, keepdims=True)


def log_odds(r: np.ndarray) -> np.ndarray:
    """Least squares on the scale of log-odds: means of them, exponentiated."""
    n, k, _ = r.shape
    theta = np.empty((n, k))
    for i in range(k):
        others = [j for j in range(k) if j != i]
        theta[:, i] = np.log(r[:, i, others] / r[:, others, i]).sum(axis=1) / k
    p = np.exp(theta - theta.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def simulate(case: str, k: int, n: int, seed: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return, for every rule, whether it was right and its squared error, by replicate."""
    rng = np.random.default_rng(seed)
    p = class_probabilities(case, k)
    r = pairwise(p, n, rng)
    found = {
        "ht": hastie_tibshirani(r),
        "wlw1": delta1(r),
        "wlw2": delta2(r),
        "vote": voting(r, rng),
        "pkpd": price(r),
        "logit": log_odds(r),
    }
    return {rule: (q.argmax(axis=1) == 0, ((q - p) ** 2).mean(axis=1)) for rule, q in found.items()}
