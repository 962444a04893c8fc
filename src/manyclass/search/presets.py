"""The methods of Duan et al. (2003), by the names of their tables."""

from __future__ import annotations

from difflib import get_close_matches
from typing import NamedTuple

from sklearn.base import ClassifierMixin
from sklearn.svm import SVC

from manyclass._lib.messages import quoted
from manyclass.classifier import CoupledClassifier
from manyclass.learners import KernelLogisticRegression

__all__ = ["DUAN", "Method", "duan"]


class Method(NamedTuple):
    """The parts of one of the paper's methods."""

    learner: type[ClassifierMixin]
    code: str
    combiner: str
    calibration: str | None = None


DUAN: dict[str, Method] = {
    "SMC1va": Method(SVC, "one-vs-rest", "softmax"),
    "SSMC1va": Method(SVC, "one-vs-rest", "softmax-simplified"),
    "WTA_SVM": Method(SVC, "one-vs-rest", "winner-takes-all"),
    "WTA_PSVM": Method(SVC, "one-vs-rest", "normalize", "sigmoid"),
    "WTA_KLR": Method(KernelLogisticRegression, "one-vs-rest", "normalize"),
    "SMC1v1": Method(SVC, "one-vs-one", "softmax"),
    "SSMC1v1": Method(SVC, "one-vs-one", "softmax-simplified"),
    "MWV_SVM": Method(SVC, "one-vs-one", "max-wins"),
    "MWV_PSVM": Method(SVC, "one-vs-one", "vote", "sigmoid"),
    "MWV_KLR": Method(KernelLogisticRegression, "one-vs-one", "max-wins"),
    "PWC_PSVM": Method(SVC, "one-vs-one", "ht", "sigmoid"),
    "PWC_KLR": Method(KernelLogisticRegression, "one-vs-one", "ht"),
}
"""In the order of Tables 2 and 3."""


def duan(
    name: str,
    *,
    C: float = 1.0,
    gamma: str | float = "scale",
    cv=5,
    n_jobs: int | None = None,
    random_state: int | None = None,
) -> CoupledClassifier:
    """Return one of the methods that Duan et al. (2003) compare, as in the paper.

    All have Gaussian kernels. Sigmoids and soft-max functions are fitted to out-of-sample scores.
    There is no scaling. ``MWV_SVM``, ``MWV_KLR`` and ``WTA_SVM`` only give labels. Unlike in
    the paper, ``MWV_PSVM`` has ``predict_proba``: the share of the pairwise votes that a class has
    won. It ranks the classes, but it is at most 2/k and does not estimate a probability.

    Parameters
    ----------
    name : str
        "SMC1va", "SSMC1va", "WTA_SVM", "WTA_PSVM", "WTA_KLR", "SMC1v1", "SSMC1v1",
        "MWV_SVM", "MWV_PSVM", "MWV_KLR", "PWC_PSVM" or "PWC_KLR".
    C : float, default=1.0
        C of the binary classifiers; a search varies it as ``estimator__C``.
    gamma : float or {"scale", "auto"}, default="scale"
        1/(2 sigma^2) of the paper's kernel; a search varies it as ``estimator__gamma``.
    cv : int, splitter or "loo", default=5
        Folds for the out-of-sample scores; the paper uses five.
    n_jobs, random_state : as in :class:`~manyclass.CoupledClassifier`

    Returns
    -------
    CoupledClassifier

    References
    ----------
    .. [1] K. Duan, S. S. Keerthi, W. Chu, S. K. Shevade, A. N. Poo, "Multi-category
       classification by soft-max combination of binary classifiers", MCS 2003, section 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass.search.presets import duan
    >>> X, y = load_iris(return_X_y=True)
    >>> duan("PWC_PSVM", C=10.0).fit(X, y).predict_proba(X[[0, 70]]).round(1)
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0.5]])
    """
    learner, code, combiner, calibration = _method(name)
    return CoupledClassifier(
        learner(C=C, gamma=gamma),
        code=code,
        combiner=combiner,
        calibration=calibration,
        cv=cv,
        scaling=None,
        n_jobs=n_jobs,
        random_state=random_state,
    )


def _method(name: str) -> Method:
    if isinstance(name, str) and name in DUAN:
        return DUAN[name]
    folded, given = {known.lower(): known for known in DUAN}, str(name).lower()
    begun = [known for known in folded if name and known.startswith(given) and known != given]
    close = begun or get_close_matches(given if name else "", folded, n=2, cutoff=0.7)
    hint = f" (did you mean {' or '.join(folded[one] for one in close)}?)" if close else ""
    raise ValueError(f"no method {quoted(name)} in the paper{hint}: choose from {', '.join(DUAN)}.")
