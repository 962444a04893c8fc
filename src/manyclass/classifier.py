"""CoupledClassifier: any binary classifier x code x calibration x combiner."""

from __future__ import annotations

from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.utils import Bunch

from manyclass._lib.routing import offers_weights_if_taken
from manyclass.batches import IncrementalBase
from manyclass.combiners.base import Combiner


class CoupledClassifier(IncrementalBase):
    """Multiclass classifier with coupled probabilities from binary classifiers.

    A code matrix turns the classes into binary problems, one clone of
    ``estimator`` learns each, its scores become probabilities where they are not,
    and the combiner couples them into one distribution over the classes.

    Parameters
    ----------
    estimator : binary classifier, default=None
        Needs ``predict_proba`` or ``decision_function``. ``None`` means
        :class:`~sklearn.linear_model.LogisticRegression`.
    code : str, array-like of shape (k, l) or callable, default="one-vs-one"
        "one-vs-one", "one-vs-rest", "sparse-random", "dense-random", "complete",
        "ordinal"; a matrix of -1, 0 and +1 with rows in the order of ``classes_``; or a
        function of the number of classes that returns one.
    combiner : str or Combiner, default="wlw2"
        A coupling rule (see :func:`couple`) or a trained soft-max function (see
        :mod:`manyclass.combiners.softmax`), which give ``predict_proba``; or a label decoder (see
        :mod:`manyclass.combiners.decoding`, :mod:`manyclass.combiners.srm_drm`), which does not.
    calibration : {"auto", "sigmoid", "robust-sigmoid", "isotonic"} or None, default="auto"
        How scores become probabilities: by Platt's sigmoid, one that long tails of the
        scores do not bend (:class:`~manyclass.calibration.RobustSigmoid`), or isotonic
        regression. "auto" takes the estimator's own ``predict_proba`` where it has one
        and Platt's sigmoid otherwise; ``None`` takes ``predict_proba`` as it is. Label
        decoders take scores as they are.
    cv : int, splitter, iterable of splits, "loo" or None, default=5
        Folds for the out-of-sample scores that calibration, temperature and combiners
        that learn are fitted on. "loo" is analytic leave-one-out, for
        :class:`~sklearn.svm.SVC`, :class:`~sklearn.svm.NuSVC` and
        :class:`~manyclass.learners.KernelLogisticRegression`: nothing is fitted
        twice, but for columns where it cannot be trusted, which a warning tells of.
        ``None`` means none of these.
    temperature : bool, default=True
        Raise the coupled probabilities to the power that fits the out-of-sample
        ones best. Coupling leaves them under-confident; labels do not change.
        Not used for two classes, where nothing is coupled.
    n_jobs : int, optional
        Parallel jobs for fitting columns, and threads for coupling.
    random_state : int, RandomState or None, default=None
        Seed of random codes and of estimators whose own seed is left open.
    verbose : int, default=0
        Passed to joblib.

    Attributes
    ----------
    classes_ : ndarray of shape (k,)
        The class labels.
    code_ : int8 ndarray of shape (k, l)
        The code matrix.
    estimators_ : list of l fitted binary classifiers
        Class 1 is the positive side of the column. Of kernel machines, which are kept
        together, they are views with ``decision_function``, ``predict`` and what the
        machine consists of, and cannot be cloned.
    combiner_ : Combiner
        The combiner in use.
    weights_ : ndarray of shape (l,)
        Training weight of each column.
    class_totals_ : ndarray of shape (k,)
        Training weight of each class.
    temperature_ : float
        The power applied to coupled probabilities; 1 where none was fitted.
    least_proba_ : ndarray of shape (k,)
        What the temperature leaves every class: 0, and half its share in the training set where
        the class has a single sample, of which none can be left out.
    reliability_ : Reliability or None
        What the decoders "srm" and "drm" weigh the machines by.
    n_features_in_ : int
        Number of features seen in ``fit``.
    feature_names_in_ : ndarray of str
        Names of the features, where X has them.

    See Also
    --------
    couple : Couple given binary probabilities.
    manyclass.codes.audit : Examine a code matrix.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from manyclass import CoupledClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledClassifier(SVC()).fit(X, y)
    >>> model.predict_proba(X[[0, 70, 133]]).round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.55, 0.45],
           [0.  , 0.37, 0.63]])
    """

    def __init__(
        self,
        estimator=None,
        *,
        code: str | Any = "one-vs-one",
        combiner: str | Combiner = "wlw2",
        calibration: str | None = "auto",
        cv=5,
        temperature: bool = True,
        n_jobs: int | None = None,
        random_state=None,
        verbose: int = 0,
    ):
        self.estimator = estimator
        self.code = code
        self.combiner = combiner
        self.calibration = calibration
        self.cv = cv
        self.temperature = temperature
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @offers_weights_if_taken
    def fit(self, X, y, sample_weight=None, **fit_params):
        """Fit the binary models, then what turns their scores into probabilities.

        Parameters
        ----------
        X : array-like, DataFrame or sparse matrix of shape (n, n_features)
            Training data, as the estimator takes it.
        y : array-like of shape (n,)
            Class labels.
        sample_weight : array-like of shape (n,), optional
            Weights, used by the estimator, the calibration and the temperature. They are
            counts of samples: a weight of 2 is a copy, and weights that sum to 1 are taken for
            one sample in all, on which little can be calibrated. Scale weights that only say
            what matters more to sum to n. Only where the estimator's ``fit`` takes them, or by
            metadata routing, which leaves out the estimator if it did not request them.
        **fit_params : dict
            Further arguments for the estimator's ``fit`` and the splitter, by
            metadata routing where that is enabled.

        Returns
        -------
        self
        """
        return self._fit_or_restore(X, y, sample_weight, fit_params)

    def _base_estimator(self):
        return LogisticRegression() if self.estimator is None else self.estimator

    def _bank_options(self) -> dict[str, Any]:
        return {"verbose": self.verbose}

    def _route(self, estimator, labels, sample_weight, fit_params) -> Bunch:
        return self._route_fit(sample_weight, fit_params)
