"""Classes of this package in place of scikit-learn's, with the parameters of theirs."""

from __future__ import annotations

from sklearn.svm import LinearSVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.codes import dense_random

SVC = CoupledSVC
AS_IT_IS = {"calibration": None, "cv": None, "scaling": None}


class OneVsOneClassifier(CoupledClassifier):
    """Votes of all pairs, with ties broken by margins."""

    def __init__(self, estimator, *, n_jobs=None):
        super().__init__(estimator, combiner="max-wins", n_jobs=n_jobs, **AS_IT_IS)


class OneVsRestClassifier(CoupledClassifier):
    """Normalised probabilities, or the largest margin where a learner has none."""

    def __init__(self, estimator, *, n_jobs=None, verbose=0):
        gives = hasattr(estimator, "predict_proba")
        combiner = "normalize" if gives else "winner-takes-all"
        shared = {"combiner": combiner, "n_jobs": n_jobs, "verbose": verbose}
        super().__init__(estimator, code="one-vs-rest", **shared, **AS_IT_IS)


class OutputCodeClassifier(CoupledClassifier):
    """The nearest row of a random code of ``code_size`` columns per class."""

    def __init__(self, estimator, *, code_size=1.5, random_state=None, n_jobs=None):
        self.code_size = code_size
        shared = {"random_state": random_state, "n_jobs": n_jobs}
        super().__init__(estimator, code=self._draw, combiner="hamming", **shared, **AS_IT_IS)

    def _draw(self, k):
        n_columns = min(int(k * self.code_size), 2 ** (k - 1) - 1)  # there are no more
        return dense_random(k, n_columns, random_state=self.random_state)


class CalibratedClassifierCV(CoupledClassifier):
    """A learner's own probabilities of all classes, calibrated."""

    def __init__(self, estimator=None, *, method="sigmoid", cv=None, n_jobs=None, ensemble="auto"):
        self.method, self.ensemble = method, ensemble
        by_temperature = method == "temperature"
        estimator = LinearSVC() if estimator is None else estimator
        unchanged = by_temperature and hasattr(estimator, "predict_proba")
        super().__init__(
            estimator,
            code="native",
            calibration=None if unchanged else "sigmoid" if by_temperature else method,
            scaling="temperature" if by_temperature else None,
            cv=5 if cv is None else cv,
            n_jobs=n_jobs,
        )
