"""CoupledSVC: support vector machines with coupled probabilities, from one fit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse, vstack
from sklearn.svm import SVC
from sklearn.utils import Bunch
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.arrays import Floats, Places, read_only
from manyclass._lib.messages import quoted
from manyclass._lib.sklearn import check_shared_parameters
from manyclass._lib.weights import class_weights, without_negative
from manyclass.banks import KernelBank
from manyclass.banks.svm.fit import WeightFactors
from manyclass.banks.svm.kernels import LinearKernel
from manyclass.calibration import Sigmoid
from manyclass.classifier import CoupledBase
from manyclass.codes import pair_columns
from manyclass.combiners.base import Combiner


class CoupledSVC(CoupledBase):
    """C-support vector classification with calibrated class probabilities.

    The successor of ``SVC(probability=True)``: replace the class name. A compiled solver, with the
    steps and the stopping rule of LIBSVM, fits all pairs of classes. Leave-one-out gives the scores
    that the sigmoids and the scaling are fitted on, so that no machine is fitted twice. The pairs
    are coupled by the rule that LIBSVM uses, solved exactly. The label is always that of the
    largest probability.

    Parameters
    ----------
    C, kernel, degree, gamma, coef0, tol, cache_size, max_iter
        As in :class:`~sklearn.svm.SVC`, but ``max_iter=-1`` allows a machine LIBSVM's ten million
        steps, or 100 for each of its samples if these are more; ``SVC`` never gives up.
    shrinking : bool, default=True
        Accepted for code written for ``SVC``; the solver does not shrink its problems.
    class_weight : dict, "balanced" or None, default=None
        Multiplies C per class, as in ``SVC``. The probabilities are those of a
        population with these weights.
    probability : bool, default=True
        Accepted for code written for ``SVC``; there are always probabilities.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Whether ``decision_function`` returns log-probabilities of the classes, or the
        margins of the binary machines, in the order of ``SVC``.
    break_ties : bool, default=False
        Accepted for code written for ``SVC``; ties are always broken.
    verbose : bool, default=False
        Whether to print how scores were left out, and the calibration report.
    random_state : int, RandomState or None, default=None
        Seed of random codes.
    code : str, array-like or callable, default="one-vs-one"
        See :class:`CoupledClassifier`. Codes other than one-vs-one fit one machine per column.
    combiner : str or Combiner, default="auto"
        See :class:`CoupledClassifier`.
    calibration : {"sigmoid", "robust-sigmoid", "isotonic"}, default="sigmoid"
        How margins become probabilities: by Platt's sigmoid, by a sigmoid that is robust to long
        tails of the margins (:class:`~manyclass.calibration.RobustSigmoid`), or by isotonic
        regression.
    cv : "loo", int, splitter, iterable of splits or None, default="loo"
        How out-of-sample scores are computed: by leave-one-out, or by folds. Leave-one-out uses
        a formula; where this is doubtful, the solver goes on without the sample. In columns
        whose sides are hardly separated, and for kernels that are not positive definite, the
        solver leaves out 5 folds; see ``score_sources_``. If the solver did not converge, 5 folds
        are fitted, with a warning.
    scaling : {"auto", "structured", "temperature"} or None, default="auto"
        See :class:`CoupledClassifier`.
    n_jobs : int, optional
        Parallel jobs for folds and columns, and threads for coupling.
    dtype : float64 or float32, default=float64
        The type in which scores are computed: float32 predicts about twice as fast, and differs
        in the fifth digit if features have a size near 1. If the error of its margins is
        larger than LIBSVM's default tolerance, a warning tells it.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The class labels.
    support_, support_vectors_, n_support_, dual_coef_, intercept_, coef_, n_iter_
        As in :class:`~sklearn.svm.SVC`. For other codes than one-vs-one
        ``dual_coef_`` has one row per column of the code. Rows in ``support_`` are those of
        X, also where samples of weight 0 are left out. All these arrays are read-only.
    class_weight_, fit_status_, shape_fit_, probA_, probB_
        As in :class:`~sklearn.svm.SVC`. The sigmoids are ours, of leave-one-out scores.
    score_sources_ : ndarray of shape (l,)
        How the left-out scores of each column were computed: by "formula", with some samples by the
        "solver", or by "folds". None if ``cv`` is not "loo".
    code_, weights_, scaling_, least_proba_, combiner_, n_features_in_, feature_names_in_
        As in :class:`CoupledClassifier`.

    Notes
    -----
    A failed or interrupted fit leaves the estimator unchanged. Compiled code cannot be
    interrupted: the current machines are fitted to their end in the background.

    The machines are those of ``SVC`` up to ``tol``. If most distinct rows occur more than once, the
    solver gets each of them once, with the total weight of its copies, and so does
    ``gamma="scale"``. This takes less time, and the result depends neither on the order of
    the rows nor on whether a row has one more copy or a weight larger by 1. ``support_`` has the
    first of the copies, and ``dual_coef_`` the sum of their coefficients.

    References
    ----------
    .. [1] T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class
       classification by pairwise coupling", NIPS 2003.
    .. [2] V. Vapnik, O. Chapelle, "Bounds on error expectation for support vector
       machines", Neural Computation 12 (2000).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledSVC
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledSVC(C=10, gamma="scale").fit(X, y)
    >>> model.predict_proba(X[[0, 70, 133]]).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.5 , 0.5 ],
           [0.  , 0.43, 0.57]])
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
        gamma: str | float = "scale",
        coef0: float = 0.0,
        shrinking: bool = True,
        probability: bool = True,
        tol: float = 1e-3,
        cache_size: float = 200,
        class_weight: dict[Any, float] | Literal["balanced"] | None = None,
        verbose: bool = False,
        max_iter: int = -1,
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        random_state=None,
        code: str | Any = "one-vs-one",
        combiner: str | Combiner = "auto",
        calibration: str | None = "sigmoid",
        cv="loo",
        scaling: str | None = "auto",
        n_jobs: int | None = None,
        dtype: type[np.floating] = np.float64,
    ):
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.shrinking = shrinking
        self.probability = probability
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.verbose = verbose
        self.max_iter = max_iter
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.random_state = random_state
        self.code = code
        self.combiner = combiner
        self.calibration = calibration
        self.cv = cv
        self.scaling = scaling
        self.n_jobs = n_jobs
        self.dtype = dtype

    def fit(self, X, y, sample_weight=None):
        """Fit the machines, and the calibration of their margins.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features), or (n, n)
            Training data; the kernel matrix for ``kernel="precomputed"``. A callable
            kernel gets the samples unchanged: texts, objects, lists, frames.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Multiplies C per sample, and weighs samples in the calibration. Weights are counts
            of samples: weights that sum to 1 count as one sample, too few for a calibration.
            Scale weights that express importance to sum to n. The machines of a weight of 2
            are those of two copies, but the calibration is not: leave-one-out leaves out a
            sample with its whole weight, and of copies one. As in ``SVC``, samples of negative
            weight are not used, like those of weight 0.

        Returns
        -------
        self
        """
        return self._fit_or_restore(X, y, without_negative(sample_weight), {})

    def decision_function(self, X):
        """Return log-probabilities, or with "ovo" the margins of the binary machines.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, n_features)

        Returns
        -------
        ndarray of shape (n, k), (n,) for two classes; (n, l) with "ovo"
        """
        if self.decision_function_shape not in ("ovr", "ovo"):
            raise ValueError(
                "decision_function_shape must be 'ovr' or 'ovo', got "
                f"{quoted(self.decision_function_shape)}."
            )
        if self.decision_function_shape == "ovr":
            return super().decision_function(X)
        columns, signs = self._as_in_svc()
        margins = self._by_blocks(
            X, lambda values, rows: values[:, columns] * signs, len(columns), calibrated=False
        )
        return margins[:, 0] if len(self.classes_) == 2 else margins

    # ------------------------------------------------------------------ attributes of SVC

    @property
    def support_(self) -> NDArray[np.int32]:
        """Rows of the training data that are support vectors, class by class."""
        support = np.concatenate([group.support for group in self._bank().groups])
        return read_only(support.astype(np.int32))

    @property
    def support_vectors_(self):
        """The support vectors; empty for a precomputed or callable kernel."""
        if not self._bank().kernel.numeric:
            return read_only(np.empty((0, 0)))
        vectors = [group.vectors for group in self._bank().groups]
        if issparse(vectors[0]):
            return read_only(vstack(vectors, format="csr"))
        return read_only(np.concatenate(vectors))

    @property
    def n_support_(self) -> NDArray[np.int32]:
        """Number of support vectors of each class."""
        sizes = [len(group.support) for group in self._bank().groups]
        return read_only(np.array(sizes, dtype=np.int32))

    @property
    def dual_coef_(self):
        """Signed dual coefficients, in LIBSVM's layout for one-vs-one; sparse if X was."""
        bank, (columns, signs) = self._bank(), self._as_in_svc()
        if pair_columns(self.code_) is None:
            return self._as_fitted(bank.duals[self.support_].toarray().T)
        layout = []
        for c, group in enumerate(bank.groups):
            of_class = self.code_[c, columns] != 0
            layout.append(group.duals[:, columns[of_class]].toarray() * signs[of_class])
        return self._as_fitted(np.concatenate(layout).T)

    @property
    def fit_status_(self) -> int:
        """0 if all machines converged, 1 if one of them was stopped early."""
        return 0 if self._bank().converged else 1

    @property
    def probA_(self) -> Floats:
        """Slopes of the sigmoids, by pairs.

        The first class of a pair has the probability ``1 / (1 + exp(probA_ * f + probB_))``. f
        is its margin over the second, as in ``SVC`` and LIBSVM, for two classes the negative of
        ``decision_function``.
        """
        return self._sigmoids()[0]

    @property
    def probB_(self) -> Floats:
        """Constant terms of the sigmoids, by pairs; see ``probA_``."""
        return self._sigmoids()[1]

    def _sigmoids(self) -> tuple[Floats, Floats]:
        check_is_fitted(self)
        pairs = pair_columns(self.code_)
        if pairs is None or type(self.calibration_) is not Sigmoid:
            raise AttributeError(
                "probA_ and probB_ belong to sigmoids of pairs: they need code='one-vs-one', "
                "calibration='sigmoid' and a combiner of probabilities."
            )
        order, flipped = pairs
        # In a column with the other sign, 1 - r(f) is r(-f) with the sign of the constant changed.
        signs = np.where(flipped, -1.0, 1.0)
        slopes, intercepts = self.calibration_.slopes_[order], self.calibration_.intercepts_[order]
        return read_only(slopes), read_only(signs * intercepts)

    @property
    def n_iter_(self) -> NDArray[np.int32]:
        """Steps of the solver, for every machine."""
        return read_only(self._bank().n_iter[self._as_in_svc()[0]].astype(np.int32))

    @property
    def intercept_(self) -> Floats:
        """Constant terms of the machines."""
        columns, signs = self._as_in_svc()
        return read_only(self._bank().intercept[columns] * signs)

    @property
    def coef_(self):
        """Weights of the features, for linear kernels; shape (l, n_features); sparse if X was."""
        if not isinstance(self._bank().kernel, LinearKernel):
            raise AttributeError("coef_ is only available with kernel='linear'.")
        columns, signs = self._as_in_svc()
        return self._as_fitted(self._bank().coef_of(columns) * signs[:, None])

    def _as_fitted(self, array: Floats):
        """Return a read-only array, or a sparse matrix where SVC does."""
        return read_only(csr_matrix(array) if self._bank().sparse else array)

    def _as_in_svc(self) -> tuple[Places, Floats]:
        """Return the columns in SVC's order, and the signs that make them SVC's.

        A code given as a matrix may have pairs in any order and with either sign. In SVC the first
        class of a pair is positive, or negative if there are only two classes.
        """
        check_is_fitted(self)
        pairs = pair_columns(self.code_)
        if pairs is None:
            return np.arange(self.code_.shape[1]), np.ones(self.code_.shape[1])
        order, flipped = pairs
        two = len(self.classes_) == 2
        return order, np.where(flipped ^ two, -1.0, 1.0)

    # ------------------------------------------------------------------ for CoupledBase

    def _base_estimator(self) -> SVC:
        shared = "C kernel degree gamma coef0 shrinking tol cache_size verbose max_iter".split()
        return SVC(**{name: getattr(self, name) for name in shared})

    def _check_input(self, X, y):
        check_shared_parameters(self, SVC)
        X, y, classes = super()._check_input(X, y)
        self.shape_fit_ = X.shape if hasattr(X, "shape") else (len(y),)
        return X, y, classes

    def _route(self, estimator, labels, sample_weight, fit_params) -> Bunch:
        """Turn class weights into sample weights; LIBSVM also gets the factors."""
        classes, y = np.unique(labels, return_inverse=True)
        self.class_weight_ = class_weights(self.class_weight, classes, y)
        passed, bank = {}, {}
        if self.class_weight is not None:
            bank["factors"] = WeightFactors(self.class_weight_, sample_weight)
            given = 1.0 if sample_weight is None else sample_weight
            passed["sample_weight"] = self.class_weight_[y] * given
        elif sample_weight is not None:
            passed["sample_weight"] = sample_weight
        return Bunch(estimator=Bunch(fit=passed), splitter=Bunch(split={}), bank=bank)

    def _bank_options(self) -> dict[str, Any]:
        known = {np.dtype(dtype): dtype for dtype in (np.float64, np.float32)}
        try:
            dtype = known[np.dtype(self.dtype)]
        except (KeyError, TypeError) as error:
            raise ValueError(
                f"dtype must be np.float64 or np.float32, got {quoted(self.dtype)}."
            ) from error
        return {"dtype": dtype}

    def _bank(self) -> KernelBank:
        check_is_fitted(self)
        return self.bank_
