"""Checks of the indices and shapes in a loaded model, which compiled code does not check.

A wrong number in a model gives wrong predictions. A wrong index or shape gives a crash, or worse.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.cluster import BisectingKMeans, KMeans, MiniBatchKMeans
from sklearn.compose import ColumnTransformer
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier, RadiusNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from sklearn.utils import get_tags

from manyclass._lib.sklearn import n_samples
from manyclass.banks.base import Bank
from manyclass.banks.grouped import GroupBank
from manyclass.banks.linear import LinearBank
from manyclass.banks.native import NativeBank
from manyclass.banks.prefit import PrefitModel
from manyclass.banks.svm.bank import KernelBank
from manyclass.banks.svm.groups import Group
from manyclass.banks.svm.kernels import Kernel
from manyclass.calibration import Calibration, Isotonic
from manyclass.classifier import CoupledBase
from manyclass.codes.tree_structure import single_tree
from manyclass.combiners.base import Combiner
from manyclass.combiners.reliability import DynamicReliability
from manyclass.decisions import DecisionClassifier
from manyclass.learners import PairwiseNeighbors
from manyclass.scaling import Scaling, StructuredScaling, Temperature
from manyclass.scaling.temperature import FLOOR
from manyclass.storage._forms import Refused
from manyclass.storage._members import check_sparse
from manyclass.storage._parts import reachable

MAY_BE_INFINITE = ("intercept", "intercepts_", "limits_", "tol")
"""Attributes where infinity has a meaning: the constant score of a column without both sides."""
LARGEST = 1e100
"""A choice: products of such numbers and of the logarithms of probabilities stay finite."""
_COMPUTED_WITH = (CoupledBase, Bank, Kernel, Group, Calibration, StructuredScaling, Temperature)
_OF_NUMBERS = (Bank, Calibration, StructuredScaling, Temperature)
_PREPARING = (Pipeline, ColumnTransformer, FunctionTransformer)
TRIED = 2**24
"""A choice: models of more features are not tried. A row of that many takes 128 MB."""
LIBSVM_KERNELS = ("linear", "poly", "rbf", "sigmoid")  # these take samples, not a kernel matrix


def check_values(model) -> None:
    """Check names, sparse matrices and numbers.

    No attribute may hide a method, no index may be outside of its matrix, and the numbers that our
    own code computes with must be finite.
    """
    for part in reachable(model):
        for name in getattr(part, "__dict__", ()):
            if callable(getattr(type(part), name, None)):
                raise Refused(f"{name} of {type(part).__name__} hides a method")
        if issparse(part):
            check_sparse(part)
        if isinstance(part, _COMPUTED_WITH):
            _check_numbers(part)


def check_arrays(model) -> None:
    """Raise an error if compiled code might read outside the arrays of a model."""
    for part in reachable(model):
        for kinds, attribute, fits in CHECKS:
            if isinstance(part, kinds) and attribute in getattr(part, "__dict__", ()):
                _check_fit(part, fits)


def _check_fit(part: Any, fits: Callable[[Any], bool]) -> None:
    try:
        valid = fits(part)
    except Exception as error:
        raise Refused(f"the arrays of {type(part).__name__} are not complete: {error}") from error
    if not valid:
        raise Refused(f"the arrays of {type(part).__name__} do not fit each other")


def _check_numbers(part: Any) -> None:
    for name, value in vars(part).items():
        if isinstance(part, _OF_NUMBERS) and name != "classes_" and _is_text(value):
            raise Refused(f"{name} of {type(part).__name__} holds no numbers")
        for array in _floats_in(value):
            infinite = name in MAY_BE_INFINITE and not np.isnan(array).any()
            if not (infinite or np.isfinite(array).all()):
                raise Refused(f"{name} of {type(part).__name__} has NaN or infinite numbers")


def _is_text(value: Any) -> bool:
    """Tell whether an attribute is an array of texts or dates: kernels would be compiled for it."""
    return isinstance(value, np.ndarray) and value.dtype.kind not in "fiub"


def _floats_in(value: Any) -> Iterator[NDArray]:
    """Yield the arrays of floating-point numbers in an attribute."""
    if issparse(value):
        value = value.data
    if isinstance(value, list | tuple):
        for part in value:
            yield from _floats_in(part)
    elif isinstance(value, float | np.floating | np.ndarray):
        array = np.asarray(value)
        if array.dtype.kind == "f":
            yield array


def check_by_trial(model) -> None:
    """Predict a row of zeros with every fitted classifier: parts that do not fit raise an error.

    If rows of a classifier may be something else than numbers, scores of a row are combined.
    """
    for part in reachable(model):
        ours = isinstance(part, CoupledBase | DecisionClassifier)
        if ours and (part is model or hasattr(part, "classes_")):  # others are parameters
            _try(part)


def _try(model) -> None:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.get_params(deep=False)  # an error if one is missing
            valid = _predicts(model) if _takes_numbers(model) else _combines(model)
    except Exception as error:
        raise Refused(f"the parts of {type(model).__name__} do not fit: {error}") from error
    if not valid:
        raise Refused(f"the parts of {type(model).__name__} give no valid prediction")


def _takes_numbers(model) -> bool:
    """Tell whether zeros are a valid row."""
    if hasattr(model, "feature_names_in_") or not hasattr(model, "n_features_in_"):
        return False
    prepared = any(isinstance(part, _PREPARING) for part in reachable(model))
    return not prepared and not get_tags(model).input_tags.pairwise


def _predicts(model) -> bool:
    if type(model.n_features_in_) is not int:
        raise Refused("the number of features is not a whole number")
    if model.n_features_in_ > TRIED:
        return True
    row = np.zeros((1, model.n_features_in_))
    ours = isinstance(model, CoupledBase)
    answer = model._class_values(row) if ours else model.predict_proba(row)
    fits = answer.shape == (1, len(model.classes_)) and bool(np.isfinite(answer).all())
    return fits and len(model.predict(row)) == 1


def _combines(model) -> bool:
    if isinstance(model, DecisionClassifier) or model.reliability_ is not None:
        return True
    values = np.full((1, model.code_.shape[1]), 0.5)
    p = model._combine(values).values
    if model.native_ is None:
        p = model._scale(p, values, None)
    return p.shape == (1, len(model.classes_)) and bool(np.isfinite(p).all())


def _floats(*arrays: Any) -> bool:
    """Tell whether these are the numbers that kernels are compiled for."""
    return all(isinstance(array, np.ndarray) and array.dtype == np.float64 for array in arrays)


def _coupled(model) -> bool:
    """Check that scores, code, weights and scaling have a column for each binary model."""
    k, l = model.code_.shape
    shapes = np.shape(model.classes_), np.shape(model.weights_), _n_columns(model.bank_)
    fits = model.code_.dtype == np.int8 and shapes == ((k,), (l,), l)
    fits &= _floats(model.weights_, model.least_proba_)
    fits &= bool(((model.code_ >= -1) & (model.code_ <= 1)).all()) and bool(
        (model.weights_ > 0).all()
    )
    least = model.least_proba_
    fits &= least.shape == (k,) and bool((least >= 0).all()) and float(least.sum()) <= 1.0
    fits &= isinstance(model.combiner_, Combiner)
    fits &= isinstance(model.scaling_, Scaling | None)
    fits &= _calibrated(model.calibration_, l) and _scaled(model, k, l)
    if isinstance(getattr(model, "reliability_", None), DynamicReliability):
        fits &= model.reliability_._sides.shape[1] == l
    if hasattr(model, "stream_"):
        fits &= len(model.stream_.learners) == l
    return isinstance(model.bank_, Bank) and bool(fits) and _tree_of_its_code(model)


def _tree_of_its_code(model) -> bool:
    """Check that the nodes that ``predict_top`` follows are those of the code."""
    if model.tree_ is None:
        return True
    known, (root, children) = single_tree(model.code_), model.tree_
    return known is not None and root == known[0] and np.array_equal(children, known[1])


def _calibrated(calibration, l: int) -> bool:
    """Check that a calibration has a curve for each column."""
    if isinstance(calibration, Isotonic):
        curves = calibration.curves_
        return len(curves) == l and all(
            _floats(x, r)
            and len(x) == len(r) > 0
            and bool((x[:-1] <= x[1:]).all())
            and 0.0 <= min(r) <= max(r) <= 1.0
            for x, r in curves
        )
    parameters = [] if calibration is None else vars(calibration).values()
    known = isinstance(calibration, Calibration | None) and _floats(*parameters)
    return known and all(p.shape == (l,) for p in parameters)


def _n_columns(bank) -> int:
    if isinstance(bank, GroupBank):  # two groups have one column
        return sum(1 if part.n_classes == 2 else part.n_classes for part in bank.parts)
    return bank.n_classes if isinstance(bank, NativeBank) else len(bank.models)


def _scaled(model, k: int, l: int) -> bool:
    """Check that the scaling reads the columns and the multiclass model that there are."""
    scaling, native = getattr(model, "scaling_", None), getattr(model, "native_", None)
    fits = native is None or (isinstance(native, NativeBank) and native.n_classes == k)
    fits &= _calibrated(getattr(model, "native_calibration_", None), k)
    if isinstance(scaling, StructuredScaling):
        shape = None if scaling.code_ is None else scaling.code_.shape
        fits &= shape == (k, l + k * (native is not None))
        fits &= scaling.n_others_ == 2 * (native is not None)
    return fits


def _temperature(scaling) -> bool:
    """Check that the power and the share can be applied."""
    return scaling.power_ >= 0.0 and 0.0 <= scaling.share_ <= 1.0


def _structured(scaling) -> bool:
    """Check that the code and the matrix are for the same classes and columns."""
    (k,), code = scaling.classes_.shape, scaling.code_
    heights = {k + 1} if code is None else {k + 1, k + 1 + code.shape[1]}
    sources = 1 + scaling.n_others_ + (0 if code is None else 3)
    sources += sources > 1  # the prior
    numbers = scaling.log_prior_, scaling.weights_, scaling.matrix_
    return (
        _floats(*numbers)
        and all(float(np.abs(array).max(initial=0.0)) <= LARGEST for array in numbers)
        and scaling.n_others_ >= 0
        and 0.0 <= scaling.share_ <= 1.0
        and 0.0 < getattr(scaling, "floor_", FLOOR) <= FLOOR
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
    (l,) = bank.intercept.shape
    known = (
        isinstance(bank.kernel, Kernel)
        and _floats(bank.intercept)
        and bank.dtype in (np.float64, np.float32)
    )
    return known and all(
        issparse(group.duals)
        and group.duals.format == "csr"
        and group.duals.dtype == np.float64
        and group.duals.shape == (n_samples(group.vectors), l)
        and bool(((group.columns >= 0) & (group.columns < l)).all())
        for group in bank.groups
    )


def _prefit(model) -> bool:
    """Check that the new numbers of the classes are a permutation."""
    return np.array_equal(np.sort(model.places), np.arange(len(model.places)))


def _linear_bank(bank) -> bool:
    (l,) = bank.intercept.shape
    return (
        _floats(bank.intercept, bank.coef)
        and bank.coef.shape[1:] == (l,)
        and bank.constant.shape == (l,)
    )


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


def _k_means(estimator) -> bool:
    """Check that centres have the features of rows: its compiled code reads them by that number.

    A distance from NaN is an error of a prediction, which does not say what is wrong.
    """
    centres = estimator.cluster_centers_
    fits = centres.ndim == 2 and centres.shape[1] == estimator.n_features_in_
    return fits and bool(np.isfinite(centres).all())


def _gaussian(learner) -> bool:
    """Check the moments: numpy would stretch a row and a column to the matrix of their pairs."""
    k, n_features = len(learner.classes_), learner.n_features_in_
    return learner.theta_.shape == learner.var_.shape == (k, n_features)


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
        fits = not machine._sparse and _floats(coefficients, machine.support_vectors_)
    fits &= _floats(machine._intercept_, machine._probA, machine._probB)
    if machine.kernel not in (*LIBSVM_KERNELS, "precomputed") and not callable(machine.kernel):
        raise Refused(f"{type(machine).__name__} knows no kernel {machine.kernel!r}")
    if machine.kernel in LIBSVM_KERNELS:
        fits &= machine.support_vectors_.shape[0] == n
    else:  # a kernel matrix, whose columns are support vectors
        places = machine.support_
        fits &= not machine._sparse and bool(((0 <= places) & (places < _columns(machine))).all())
    if classifies:
        fits &= bool((of_class >= 0).all()) and int(of_class.sum(dtype=np.int64)) == n
    options = machine._gamma, machine.coef0, machine.degree, machine.cache_size
    fits &= all(isinstance(option, Real) for option in options)
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
    (PrefitModel, "places", _prefit),
    (StructuredScaling, "matrix_", _structured),
    (Temperature, "power_", _temperature),
    (PairwiseNeighbors, "_fit_X", _pairwise_neighbors),
    (DynamicReliability, "static_", _dynamic_reliability),
    (object, "n_samples_fit_", _searched),
    (GaussianNB, "theta_", _gaussian),
    ((KMeans, MiniBatchKMeans, BisectingKMeans), "cluster_centers_", _k_means),
    ((SVC, NuSVC, SVR, NuSVR, OneClassSVM), "support_", _libsvm),
)
"""Types, an attribute that only fitted objects have, and the check of such objects."""
