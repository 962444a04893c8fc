"""What compiled code takes for granted of a model: places within arrays, and their shapes.

Numbers may be anything: a wrong one gives wrong answers. A wrong place gives a crash, or worse.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from manyclass._lib.sklearn import n_samples
from manyclass.banks.base import Bank
from manyclass.banks.linear import LinearBank
from manyclass.banks.svm.bank import KernelBank
from manyclass.classifier import CoupledBase
from manyclass.combiners.reliability import DynamicReliability
from manyclass.learners import PairwiseNeighbors
from manyclass.storage._parts import reachable

LIBSVM_KERNELS = ("linear", "poly", "rbf", "sigmoid")  # of the samples themselves


def check_arrays(model) -> None:
    """Raise a ``ValueError`` if compiled code might leave the arrays of a model."""
    for part in reachable(model):
        if issparse(part):
            part.check_format(full_check=True)
        for kinds, attribute, fits in CHECKS:
            known = getattr(part, "__dict__", ())
            if isinstance(part, kinds) and attribute in known and not fits(part):
                raise ValueError(f"the arrays of {type(part).__name__} do not fit each other")


def _coupled(model) -> bool:
    """Scores, code and weights have a column for each binary model."""
    k, l = model.code_.shape
    shapes = np.shape(model.classes_), np.shape(model.weights_), len(model.bank_.models)
    fits = model.code_.dtype == np.int8 and shapes == ((k,), (l,), l)
    if isinstance(getattr(model, "reliability_", None), DynamicReliability):
        fits &= model.reliability_._sides.shape[1] == l
    if hasattr(model, "stream_"):
        fits &= len(model.stream_.learners) == l
    return isinstance(model.bank_, Bank) and bool(fits)


def _kernel_bank(bank) -> bool:
    l = len(bank.intercept)
    return all(
        issparse(group.duals)
        and group.duals.format == "csr"
        and group.duals.shape == (n_samples(group.vectors), l)
        for group in bank.groups
    )


def _linear_bank(bank) -> bool:
    (l,) = bank.intercept.shape
    return bank.coef.shape[1:] == (l,) and bank.constant.shape == (l,)


def _pairwise_neighbors(learner) -> bool:
    """Samples are class by class, and there are as many as are asked to vote."""
    n, n_features = learner._fit_X.shape
    of_class, most = learner._n_of_class, learner.n_neighbors_
    return (
        n_features == learner.n_features_in_
        and of_class.shape == (2,)
        and bool((of_class > 0).all())
        and int(of_class[0]) + int(of_class[1]) == n
        and 1 <= most <= n
        and 0.0 < learner.bias_ < np.inf
    )


def _dynamic_reliability(measure) -> bool:
    """There is a row of slacks, and one of sides, for each sample that may be a neighbour."""
    around = measure._neighbours
    n = around.index._fit_X.shape[0]
    (l,) = measure.static_.shape
    return measure._slacks.shape == measure._sides.shape == (n, l) and around.weights.shape == (n,)


def _searched(estimator) -> bool:
    """Neighbours that scikit-learn searches: their number, their features, their classes."""
    n, n_features = estimator._fit_X.shape
    fits = estimator.n_samples_fit_ == n and estimator.n_features_in_ == n_features
    if isinstance(estimator, KNeighborsClassifier | RadiusNeighborsClassifier):
        labels = estimator._y
        fits &= len(labels) == n
        if labels.ndim == 1:
            fits &= bool(((0 <= labels) & (labels < len(estimator.classes_))).all())
    return fits


def _libsvm(machine) -> bool:
    """LIBSVM is given bare pointers: what is behind them is told by the numbers of vectors."""
    of_class, (n,) = machine._n_support, machine.support_.shape
    (k,) = of_class.shape
    classifies = machine._impl in ("c_svc", "nu_svc")
    pairs = k * (k - 1) // 2
    coefficients = machine._dual_coef_
    if issparse(coefficients):
        fits = coefficients.nnz == coefficients.shape[0] * coefficients.shape[1]
        fits &= coefficients.format == "csr" and machine.support_vectors_.format == "csr"
    else:
        fits = not machine._sparse
    if machine.kernel in LIBSVM_KERNELS:
        fits &= machine.support_vectors_.shape[0] == n
    else:  # a kernel matrix, of which the support vectors are columns
        places = machine.support_
        fits &= not machine._sparse and bool(((0 <= places) & (places < _columns(machine))).all())
    if classifies:
        fits &= bool((of_class >= 0).all()) and int(of_class.sum(dtype=np.int64)) == n
    probabilities = {machine._probA.shape, machine._probB.shape}
    return (
        fits
        and k == (len(machine.classes_) if classifies else 2)
        and (coefficients.shape == (k - 1, n) or n == coefficients.shape[1] == 0)
        and machine._intercept_.shape == (pairs,)
        and probabilities <= {(0,), (pairs,)}
        and len(probabilities) == 1
    )


def _columns(machine) -> int:
    """Return how many columns a kernel matrix has when the machine is asked."""
    fitted_on = getattr(machine, "_BaseLibSVM__Xfit", None)
    n = machine.shape_fit_[0]
    return n if fitted_on is None or machine.kernel == "precomputed" else min(n, len(fitted_on))


Check = tuple[type | tuple[type, ...], str, Callable[[Any], bool]]

CHECKS: tuple[Check, ...] = (
    (CoupledBase, "bank_", _coupled),
    (KernelBank, "groups", _kernel_bank),
    (LinearBank, "coef", _linear_bank),
    (PairwiseNeighbors, "_fit_X", _pairwise_neighbors),
    (DynamicReliability, "static_", _dynamic_reliability),
    (object, "n_samples_fit_", _searched),
    ((SVC, NuSVC, SVR, NuSVR, OneClassSVM), "support_", _libsvm),
)
"""Of which objects, once they have which attribute, what is checked."""
