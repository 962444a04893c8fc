"""Checks of the indices and shapes in a loaded model, which compiled code does not check.

A wrong number in a model gives wrong predictions. A wrong index or shape gives a crash, or worse.
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
from manyclass.banks.native import NativeBank
from manyclass.banks.svm.bank import KernelBank
from manyclass.classifier import CoupledBase
from manyclass.combiners.reliability import DynamicReliability
from manyclass.learners import PairwiseNeighbors
from manyclass.scaling import StructuredScaling
from manyclass.storage._parts import reachable

LIBSVM_KERNELS = ("linear", "poly", "rbf", "sigmoid")  # these take samples, not a kernel matrix


def check_arrays(model) -> None:
    """Raise a ``ValueError`` if compiled code might read outside the arrays of a model."""
    for part in reachable(model):
        if issparse(part):
            part.check_format(full_check=True)
        for kinds, attribute, fits in CHECKS:
            known = getattr(part, "__dict__", ())
            if isinstance(part, kinds) and attribute in known and not fits(part):
                raise ValueError(f"the arrays of {type(part).__name__} do not fit each other")


def _coupled(model) -> bool:
    """Check that scores, code, weights and scaling have a column for each binary model."""
    k, l = model.code_.shape
    shapes = np.shape(model.classes_), np.shape(model.weights_), _n_columns(model.bank_)
    fits = model.code_.dtype == np.int8 and shapes == ((k,), (l,), l)
    fits &= _scaled(model, k, l)
    if isinstance(getattr(model, "reliability_", None), DynamicReliability):
        fits &= model.reliability_._sides.shape[1] == l
    if hasattr(model, "stream_"):
        fits &= len(model.stream_.learners) == l
    return isinstance(model.bank_, Bank) and bool(fits)


def _n_columns(bank) -> int:
    return bank.n_classes if isinstance(bank, NativeBank) else len(bank.models)


def _scaled(model, k: int, l: int) -> bool:
    """Check that the scaling reads the columns and the multiclass model that there are."""
    scaling, native = getattr(model, "scaling_", None), getattr(model, "native_", None)
    fits = native is None or (isinstance(native, NativeBank) and native.n_classes == k)
    if isinstance(scaling, StructuredScaling):
        shape = None if scaling.code_ is None else scaling.code_.shape
        fits &= shape == (k, l) and scaling.n_others_ == (native is not None)
    return fits


def _structured(scaling) -> bool:
    """Check that the code and the matrix are for the same classes and columns."""
    (k,), code = scaling.classes_.shape, scaling.code_
    heights = {k + 1} if code is None else {k + 1, k + 1 + code.shape[1]}
    sources = 1 + scaling.n_others_ + (0 if code is None else 3)
    sources += sources > 1  # the prior
    return (
        scaling.n_others_ >= 0
        and scaling.log_prior_.shape == (k,)
        and scaling.weights_.shape == (sources,)
        and (code is None or (code.dtype == np.int8 and code.shape[0] == k))
        and scaling.matrix_.shape[1:] == (k,)
        and len(scaling.matrix_) in heights
    )


def _native_bank(bank) -> bool:
    """Check that there is one model, whose classes are some of the k classes."""
    (model,) = bank._models
    places = np.asarray(model.classes_)
    known = places.dtype.kind in "iu" and bool(((places >= 0) & (places < bank.n_classes)).all())
    return known and bank.constant.shape == (bank.n_classes,)


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
    """Check that the samples are sorted by class, and that there are enough to vote."""
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
    """Check that each possible neighbour has a row of slacks and a row of sides."""
    around = measure._neighbours
    n = around.index._fit_X.shape[0]
    (l,) = measure.static_.shape
    return measure._slacks.shape == measure._sides.shape == (n, l) and around.weights.shape == (n,)


def _searched(estimator) -> bool:
    """Check the neighbours of scikit-learn: their number, their features, their classes."""
    n, n_features = estimator._fit_X.shape
    fits = estimator.n_samples_fit_ == n and estimator.n_features_in_ == n_features
    if isinstance(estimator, KNeighborsClassifier | RadiusNeighborsClassifier):
        labels = estimator._y
        fits &= len(labels) == n
        if labels.ndim == 1:
            fits &= bool(((0 <= labels) & (labels < len(estimator.classes_))).all())
    return fits


def _libsvm(machine) -> bool:
    """Check the arrays of a machine. LIBSVM gets bare pointers and the numbers of vectors."""
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
    else:  # a kernel matrix, whose columns are support vectors
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
    """Return the number of columns of the kernel matrix in a prediction."""
    fitted_on = getattr(machine, "_BaseLibSVM__Xfit", None)
    n = machine.shape_fit_[0]
    return n if fitted_on is None or machine.kernel == "precomputed" else min(n, len(fitted_on))


Check = tuple[type | tuple[type, ...], str, Callable[[Any], bool]]

CHECKS: tuple[Check, ...] = (
    (CoupledBase, "bank_", _coupled),
    (KernelBank, "groups", _kernel_bank),
    (LinearBank, "coef", _linear_bank),
    (NativeBank, "n_classes", _native_bank),
    (StructuredScaling, "matrix_", _structured),
    (PairwiseNeighbors, "_fit_X", _pairwise_neighbors),
    (DynamicReliability, "static_", _dynamic_reliability),
    (object, "n_samples_fit_", _searched),
    ((SVC, NuSVC, SVR, NuSVR, OneClassSVM), "support_", _libsvm),
)
"""Types, an attribute that only fitted objects have, and the check of such objects."""
