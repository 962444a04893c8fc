"""How Duan et al. and Wu et al. choose among the candidates of a search."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator

from manyclass._lib.arrays import Floats, Places
from manyclass._lib.messages import quoted

Results = Mapping[str, Any]
Sieve = Callable[[Places], Places]


class Choice(BaseEstimator, ABC):
    """Base of the choices: sieves are applied in turn until one candidate is left."""

    accuracy: str
    log_loss: str | None
    fold_sizes: ArrayLike | None

    @abstractmethod
    def _sieves(self, cv_results: Results, error: Floats, nll: Floats | None) -> list[Sieve]:
        """Return the sieves in the order in which they apply."""

    def __call__(self, cv_results: Results) -> int:
        """Return the index of the chosen candidate.

        Parameters
        ----------
        cv_results : dict
            ``cv_results_`` of a search. Candidates with NaN scores (fits failed) are ignored.

        Returns
        -------
        int
        """
        error = 1.0 - self._pooled(cv_results, "accuracy")
        nll = None if self.log_loss is None else -self._pooled(cv_results, "log_loss")
        sieves = self._sieves(cv_results, error, nll)
        left = np.flatnonzero(~np.isnan(error if nll is None else error + nll))
        if len(left) == 0:
            raise ValueError(
                f"all {len(error)} candidates have NaN for a score: nothing can be chosen. The "
                "warnings of the search say what failed; error_score='raise' stops at the first "
                "failure."
            )
        for sieve in sieves:
            left = sieve(left) if len(left) > 1 else left
        return int(left[0])

    def _pooled(self, cv_results: Results, argument: str) -> Floats:
        """Return the mean of a score over all left-out samples."""
        metric = getattr(self, argument)
        if f"mean_test_{metric}" not in cv_results:
            known = [key[10:] for key in cv_results if key.startswith("mean_test_")]
            ignore = "log_loss=None to ignore it"
            remedy = "one of these names" if argument == "accuracy" else ignore
            raise ValueError(
                f"{argument}={quoted(metric)} is not a score of the search, which has "
                f"{', '.join(known)}. Pass {remedy}, or add it to the scoring of the search."
            )
        if self.fold_sizes is None:
            return np.asarray(cv_results[f"mean_test_{metric}"], dtype=np.float64)
        weights = np.asarray(self.fold_sizes, dtype=np.float64)
        n_folds = sum(f"split{i}_test_{metric}" in cv_results for i in range(len(cv_results)))
        if weights.shape != (n_folds,) or not (weights >= 0).all() or not weights.sum() > 0:
            raise ValueError(
                f"fold_sizes={self.fold_sizes!r}, but the search has {n_folds} folds: pass one "
                "number of samples per fold."
            )
        folds = [cv_results[f"split{i}_test_{metric}"] for i in range(n_folds)]
        return np.average(folds, axis=0, weights=weights)


class SmoothestBest(Choice):
    """Duan's choice among the candidates of a search: the smoothest of the best.

    Pass it as ``refit`` to a search over C and the width of a Gaussian kernel. These
    rules apply in turn until one candidate is left: (a) the smallest error; (b) the
    smallest NLL; (c) smaller C and larger σ²: a candidate is dropped if another is at
    least as good in both and better in one; (d) the smallest mean error of the (up to
    eight) neighbours on the grid; (e) their smallest mean NLL; (f) the smallest C. If
    candidates that differ in other parameters are left, the first is chosen.

    Parameters
    ----------
    C : str, default="C"
        Name of the parameter C in the search, as in "estimator__C". The last part is
        enough if it is unique; the same holds for the next two.
    gamma : str or None, default="gamma"
        Name of γ = 1/(2σ²). ``None`` for a search without a kernel width, or with:
    sigma2 : str or None, default=None
        Name of σ², in place of ``gamma``.
    accuracy : str, default="accuracy"
        Name of the score for (a) and (d): "score" if the search has only one.
    log_loss : str or None, default="neg_log_loss"
        Name of the score for (b) and (e). ``None`` skips them, for methods without probabilities.
    fold_sizes : array-like of shape (n_folds,), optional
        Number (or total weight) of the left-out samples of each fold; see the notes.

    Notes
    -----
    The error of the papers is the mean over all left-out samples; ``mean_test_...`` of a search is
    the mean over the folds. If folds differ in size, an error in a small fold counts more in the
    second one. ``fold_sizes`` weights the folds as the papers do;
    :class:`~manyclass.search.TwoStepGridSearchCV` sets it.

    Neighbours agree in all other parameters of the search. Scores that differ by less than 1e-12
    count as equal. With several scores and a callable ``refit``, the method ``score`` of a search
    does not work: use ``score`` of its ``best_estimator_``.

    References
    ----------
    .. [1] K. Duan, S. S. Keerthi, W. Chu, S. K. Shevade, A. N. Poo, "Multi-category
       classification by soft-max combination of binary classifiers", 2003, section 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from manyclass import CoupledSVC
    >>> from manyclass.search import SmoothestBest
    >>> X, y = load_iris(return_X_y=True)
    >>> grid = {"C": [1, 10, 100], "gamma": [0.01, 0.1, 1]}
    >>> scoring = ["accuracy", "neg_log_loss"]
    >>> search = GridSearchCV(CoupledSVC(), grid, scoring=scoring, refit=SmoothestBest())
    >>> search.fit(X, y).best_params_
    {'C': 100, 'gamma': 0.01}
    """

    def __init__(
        self,
        C: str = "C",
        gamma: str | None = "gamma",
        sigma2: str | None = None,
        *,
        accuracy: str = "accuracy",
        log_loss: str | None = "neg_log_loss",
        fold_sizes: ArrayLike | None = None,
    ):
        self.C = C
        self.gamma = gamma
        self.sigma2 = sigma2
        self.accuracy = accuracy
        self.log_loss = log_loss
        self.fold_sizes = fold_sizes

    def _sieves(self, cv_results: Results, error: Floats, nll: Floats | None) -> list[Sieve]:
        names = [_find_parameter(cv_results, self.C, "C")]
        C = _numbers(cv_results, names[0])
        smoothness = np.zeros(len(C))
        width = width_argument(self.gamma, self.sigma2)
        if width is not None:
            names.append(_find_parameter(cv_results, getattr(self, width), width))
            smoothness = _numbers(cv_results, names[1]) * (-1 if width == "gamma" else 1)
        lattice = _Lattice(C, smoothness, _settings(cv_results, names))
        losses = [error] if nll is None else [error, nll]
        return [
            *(partial(_least, loss) for loss in losses),  # (a), (b)
            partial(_undominated, C, smoothness),  # (c)
            *(partial(lattice.best_neighbours, loss) for loss in losses),  # (d), (e)
            partial(_smallest, C),  # (f)
        ]


class SmallestC(Choice):
    """The best candidate of a search; if several are equally good, the one with the smallest C.

    Pass it as ``refit`` to a search. The defaults are the choice of Wu et al. With
    ``log_loss="neg_log_loss", slack=0.05`` it is that of Duan et al. for their soft-max
    combination: keep candidates within 5 % of the smallest error, then those within 5 % of
    the smallest NLL, then choose the smallest C. If several have that C, the first is chosen.

    Parameters
    ----------
    C : str, default="C"
        Name of the parameter C in the search, as in "estimator__C"; the last part is
        enough if it is unique.
    accuracy : str, default="accuracy"
        Name of the accuracy: "score" if the search has only one score.
    log_loss : str or None, default=None
        Name of a second score, if any.
    slack : float, default=0.0
        Error and NLL may exceed the smallest by this fraction of it.
    fold_sizes : array-like of shape (n_folds,), optional
        As in :class:`SmoothestBest`.

    References
    ----------
    .. [1] T.-F. Wu, C.-J. Lin, R. C. Weng, "Probability estimates for multi-class
       classification by pairwise coupling", NIPS 2003, section 6.2.
    .. [2] K. Duan, S. S. Keerthi, W. Chu, S. K. Shevade, A. N. Poo, "Multi-category
       classification by soft-max combination of binary classifiers", 2003, section 3.2.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import GridSearchCV
    >>> from sklearn.svm import SVC
    >>> from manyclass.search import SmallestC
    >>> X, y = load_iris(return_X_y=True)
    >>> choice = SmallestC(accuracy="score")
    >>> search = GridSearchCV(SVC(gamma=0.1), {"C": [0.1, 1, 10]}, refit=choice)
    >>> search.fit(X, y).best_params_  # C=10 has the same error
    {'C': 1}
    """

    def __init__(
        self,
        C: str = "C",
        *,
        accuracy: str = "accuracy",
        log_loss: str | None = None,
        slack: float = 0.0,
        fold_sizes: ArrayLike | None = None,
    ):
        self.C = C
        self.accuracy = accuracy
        self.log_loss = log_loss
        self.slack = slack
        self.fold_sizes = fold_sizes

    def _sieves(self, cv_results: Results, error: Floats, nll: Floats | None) -> list[Sieve]:
        if not self.slack >= 0:
            raise ValueError(f"slack must not be negative, got {self.slack!r}.")
        C = _numbers(cv_results, _find_parameter(cv_results, self.C, "C"))
        losses = [error] if nll is None else [error, nll]
        return [*(partial(_least, x, slack=self.slack) for x in losses), partial(_smallest, C)]


def _least(losses: Floats, rows: Places, slack: float = 0.0) -> Places:
    least = losses[rows].min()
    rounding = 1e-12 * max(1.0, abs(least))  # equal losses may be summed in different orders
    return rows[losses[rows] <= (1.0 + slack) * least + rounding]


def _smallest(values: Floats, rows: Places) -> Places:
    return rows[values[rows] == values[rows].min()]


def _undominated(C: Floats, smoothness: Floats, rows: Places) -> Places:
    """Drop a row if another is at least as good in C and smoothness, and better in one."""
    c, s = C[rows], smoothness[rows]
    as_good = (c <= c[:, None]) & (s >= s[:, None])
    better = (c < c[:, None]) | (s > s[:, None])
    return rows[~(as_good & better).any(axis=1)]


class _Lattice:
    """Positions of the candidates on the grid of C and width, for each setting of the rest."""

    def __init__(self, C: Floats, smoothness: Floats, settings: NDArray[np.intp]):
        self.settings = settings
        self.cells = np.empty((len(C), 2), dtype=np.intp)
        for setting in np.unique(settings):
            rows = settings == setting
            for axis, values in enumerate((C, smoothness)):
                self.cells[rows, axis] = np.unique(values[rows], return_inverse=True)[1]

    def best_neighbours(self, losses: Floats, rows: Places) -> Places:
        """Return the rows whose neighbours have the smallest mean loss."""
        steps = np.abs(self.cells[rows, None] - self.cells).max(axis=2)
        near = (steps == 1) & (self.settings[rows, None] == self.settings) & ~np.isnan(losses)
        totals, counts = np.where(near, losses, 0.0).sum(axis=1), near.sum(axis=1)
        # Rows without neighbours come last.
        means = np.where(counts > 0, totals / np.maximum(counts, 1), np.inf)
        return rows[_least(means, np.arange(len(rows)))]


def _find_parameter(cv_results: Results, name: str, argument: str) -> str:
    """Return the full name of a parameter of the search."""
    known = [key[6:] for key in cv_results if key.startswith("param_")]
    found = [key for key in known if key == name] or [k for k in known if k.endswith(f"__{name}")]
    if len(found) != 1:
        fault = "matches several of them" if found else "is none of them"
        remedy = ", or gamma=None if there is no width" if argument != "C" else ""
        raise ValueError(
            f"the search varies {', '.join(found or known)}, and {argument}={quoted(name)} "
            f"{fault}. Pass a full name{remedy}."
        )
    return found[0]


def _numbers(cv_results: Results, name: str) -> Floats:
    column = np.ma.asarray(cv_results[f"param_{name}"])
    for candidate, value in enumerate(column):
        if not isinstance(value, Real) or value != value:
            found = "not set" if value is np.ma.masked else repr(value)
            raise ValueError(
                f"parameter {quoted(name)} is {found} in candidate {candidate}, but the choice "
                "compares numbers. Give it a number in every candidate of the search."
            )
    return np.asarray(column, dtype=np.float64)


def width_argument(gamma: str | None, sigma2: str | None) -> str | None:
    """Return which of the two arguments names the width of the kernel, or None."""
    if gamma is not None and sigma2 is not None:
        both = f"gamma={gamma!r} and sigma2={sigma2!r}"
        raise ValueError(f"{both} both name the width of the kernel: set one to None.")
    return "gamma" if gamma is not None else "sigma2" if sigma2 is not None else None


def _settings(cv_results: Results, names: Sequence[str]) -> NDArray[np.intp]:
    """Number the combinations of the parameters other than ``names``.

    Values that are not numbers or strings are compared by identity: a grid holds each of them once.
    """
    numbers: dict[frozenset[Any], int] = {}
    found = []
    for params in cv_results["params"]:
        rest = ((name, value) for name, value in params.items() if name not in names)
        key = frozenset((name, x if isinstance(x, str | Real) else id(x)) for name, x in rest)
        found.append(numbers.setdefault(key, len(numbers)))
    return np.array(found, dtype=np.intp)
