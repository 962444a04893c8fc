"""Analytic leave-one-out compared with brute force: fitting again without each support vector."""

from __future__ import annotations

import numpy as np
from sklearn.base import clone
from sklearn.metrics import log_loss
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments import datasets
from manyclass import codes
from manyclass.banks import MARGIN, fit_bank
from manyclass.calibration import Sigmoid

PAIRS = (
    ("breast-cancer", (0, 1), 250),
    ("iris", (1, 2), 100),
    ("wine", (0, 1), 130),
    ("satimage", (2, 3), 300),
)
PARAMETERS = (0.1, 1.0, 10.0, 100.0)


def two_classes(name: str, pair: tuple[int, int], most: int) -> tuple[np.ndarray, np.ndarray]:
    """Return standardised rows of two classes, labelled 0 and 1."""
    data = datasets.load(name)
    y = np.unique(data.y, return_inverse=True)[1]
    rows = np.flatnonzero(np.isin(y, pair))
    rows = np.sort(np.random.default_rng(0).permutation(rows)[:most])
    return StandardScaler().fit_transform(data.X[rows]), (y[rows] == pair[1]).astype(np.intp)


def brute_force(svc: SVC, X: np.ndarray, y: np.ndarray, scores: np.ndarray) -> np.ndarray:
    """Return scores of class 0 against class 1; each support vector is left out for its own."""
    left_out = scores.copy()
    for row in clone(svc).fit(X, y).support_:
        others = np.delete(np.arange(len(y)), row)
        refitted = clone(svc).fit(X[others], y[others])
        left_out[row] = -refitted.decision_function(X[[row]])[0]
    return left_out


def sigmoid(scores: np.ndarray, y: np.ndarray) -> Sigmoid:
    sides = np.where(y == 0, 1, -1)[:, None].astype(np.int8)
    return Sigmoid().fit(scores[:, None], sides, np.ones(len(y)))


def leave_one_out() -> list[list[str]]:
    """Compare the scores, and the sigmoids and log-losses that follow from them."""
    rows = []
    code = codes.one_vs_one(2)
    for name, pair, most in PAIRS:
        X, y = two_classes(name, pair, most)
        for C in PARAMETERS:
            svc = SVC(C=C, gamma=1 / X.shape[1], tol=1e-6)
            bank = fit_bank(svc, X, y, code, MARGIN)
            within = bank.scores(X)[:, 0]
            analytic = bank.leave_one_out(X, y, code, np.ones(len(y)))[:, 0]
            brute = brute_force(svc, X, y, within)
            at = np.concatenate([group.support for group in bank.groups])
            # All sigmoids are judged on the brute-force scores, which stand for new data.
            mine, theirs, own = (sigmoid(scores, y) for scores in (analytic, brute, within))
            losses = [
                log_loss(y == 0, model.transform(brute[:, None])[:, 0])
                for model in (mine, theirs, own)
            ]
            rows.append(
                [
                    f"{name} {pair}, {len(y)} rows, C = {C:g}",
                    f"{len(at)}",
                    f"{np.corrcoef(analytic[at], brute[at])[0, 1]:.3f}",
                    f"{np.abs(analytic - brute).mean():.3f}",
                    f"{np.abs(within - brute).mean():.3f}",
                    f"{mine.slopes_[0]:.2f}, {mine.intercepts_[0]:.2f}",
                    f"{theirs.slopes_[0]:.2f}, {theirs.intercepts_[0]:.2f}",
                    *(f"{loss:.3f}" for loss in losses),
                ]
            )
    return rows


TABLES = {
    "leave-one-out": (
        leave_one_out,
        [
            "two classes, rbf",
            "support vectors",
            "correlation",
            "mean difference, analytic",
            "mean difference, in-sample",
            "sigmoid, analytic",
            "sigmoid, brute force",
            "log-loss, analytic",
            "log-loss, brute force",
            "log-loss, in-sample",
        ],
    )
}
