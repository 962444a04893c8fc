"""Kernels and pairs of classes for tests of kernel logistic regression."""

from __future__ import annotations

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_iris
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.preprocessing import scale

KERNELS = {
    "rbf": {"gamma": 0.05},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "gamma": 0.05, "degree": 2, "coef0": 1.0},
    "cubic": {"kernel": "poly", "gamma": 0.05},
}


def iris_pair(first: int = 1):
    data, labels = load_iris(return_X_y=True)
    rows = np.flatnonzero((labels == first) | (labels == first + 1))
    return scale(data[rows]), labels[rows] - first


def digits_pair(n: int = 120):
    data, labels = load_digits(return_X_y=True)
    rows = np.flatnonzero((labels == 3) | (labels == 8))[:n]
    return data[rows] / 16, (labels[rows] == 8).astype(int)


def cancer(n: int = 120):
    data, labels = load_breast_cancer(return_X_y=True)
    return scale(data[:n]), labels[:n]


def gram_of(params, X, Z=None):
    """The kernel matrix by scikit-learn; gamma must be a number."""
    params = {"kernel": "rbf", "gamma": 1.0, "degree": 3, "coef0": 0.0} | params
    name = params.pop("kernel")
    return pairwise_kernels(X, Z, metric=name, filter_params=True, **params)


def cosines(a, b):
    return np.cos(2.0 * a @ b.T)
