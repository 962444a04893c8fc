"""A search in two steps: a coarse grid, then a fine grid around its best candidate."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV, ParameterGrid, check_cv

from manyclass._lib.arrays import Places
from manyclass._lib.messages import quoted
from manyclass.search.choices import Choice, Results, SmoothestBest, width_argument


class TwoStepGridSearchCV(GridSearchCV):
    """Grid search in two steps: a coarse grid, then a fine grid around its best candidate.

    The defaults are the search of Duan et al. over C and the width of a Gaussian kernel
    exp(-‖x - x'‖²/(2σ²)): 49 candidates, then 81. Both steps use the same folds. The best candidate
    of the fine grid is the result.

    Parameters
    ----------
    estimator : estimator
        With the parameters named below.
    param_grid : dict or None, default=None
        The coarse grid. ``None`` means 0.001, 0.01, ..., 1000 for C and for σ². Your own grid may
        vary other parameters too; in the fine grid they keep the values chosen in the coarse one.
    C : str, default="C"
        Name of the parameter C, as in "estimator__C".
    gamma : str or None, default="gamma"
        Name of γ = 1/(2σ²). ``None`` if there is no width, or with:
    sigma2 : str or None, default=None
        Name of σ², in place of ``gamma``.
    factors : array-like, default=(0.2, 0.4, 0.6, 0.8, 1, 2, 4, 6, 8)
        The fine grid has these multiples of the chosen C and σ².
    scoring, n_jobs, cv, verbose, pre_dispatch, error_score, return_train_score
        As in :class:`~sklearn.model_selection.GridSearchCV`.
    refit : bool, str or callable, default=True
        How to choose a candidate in both steps, and whether to fit the best one. ``True``
        and ``False`` choose by :class:`SmoothestBest`. With several scores pass
        ``scoring=["accuracy", "neg_log_loss"], refit=SmoothestBest()``.

    Attributes
    ----------
    cv_results_ : dict
        Results of both steps; column "step" is "coarse" or "fine".
    coarse_index_ : int
        The candidate chosen in the coarse step.
    fold_sizes_ : ndarray of shape (n_folds,)
        Number of left-out samples of each fold, the weights of the folds.
    best_index_, best_params_, best_estimator_, best_score_, ...
        As in :class:`~sklearn.model_selection.GridSearchCV`.

    References
    ----------
    .. [1] K. Duan, S. S. Keerthi, W. Chu, S. K. Shevade, A. N. Poo, "Multi-category
       classification by soft-max combination of binary classifiers", 2003, section 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.svm import SVC
    >>> from manyclass import CoupledClassifier
    >>> from manyclass.search import TwoStepGridSearchCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledClassifier(SVC(), combiner="max-wins")
    >>> names = {"C": "estimator__C", "gamma": "estimator__gamma"}
    >>> search = TwoStepGridSearchCV(model, **names, factors=(0.5, 1, 2), cv=3).fit(X, y)
    >>> search.cv_results_["params"][search.coarse_index_]
    {'estimator__C': 1000.0, 'estimator__gamma': 0.0005}
    >>> search.best_params_
    {'estimator__C': 500.0, 'estimator__gamma': 0.001}
    """

    _parameter_constraints: ClassVar[dict[str, Any]] = {
        **GridSearchCV._parameter_constraints,
        "param_grid": [dict, None],
        "C": [str],
        "gamma": [str, None],
        "sigma2": [str, None],
        "factors": ["array-like"],
    }

    def __init__(
        self,
        estimator,
        param_grid: dict[str, Any] | None = None,
        *,
        C: str = "C",
        gamma: str | None = "gamma",
        sigma2: str | None = None,
        factors: ArrayLike = (0.2, 0.4, 0.6, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0),
        scoring=None,
        n_jobs: int | None = None,
        refit=True,
        cv=None,
        verbose: int = 0,
        pre_dispatch: int | str = "2*n_jobs",
        error_score: float | str = np.nan,
        return_train_score: bool = False,
    ):
        super().__init__(
            estimator,
            param_grid,
            scoring=scoring,
            n_jobs=n_jobs,
            refit=refit,
            cv=cv,
            verbose=verbose,
            pre_dispatch=pre_dispatch,
            error_score=error_score,
            return_train_score=return_train_score,
        )
        self.C = C
        self.gamma = gamma
        self.sigma2 = sigma2
        self.factors = factors

    def fit(self, X, y=None, **params):
        """Evaluate both grids, and refit the best candidate.

        Parameters
        ----------
        X, y, **params
            As in :class:`~sklearn.model_selection.GridSearchCV`.

        Returns
        -------
        self : object
        """
        cv = check_cv(self.cv, y, classifier=is_classifier(self.estimator))
        self._folds = _SameFolds(cv)
        try:
            return super().fit(X, y, **params)
        finally:
            del self._folds

    def _run_search(self, evaluate_candidates) -> None:
        coarse, factors = self._coarse_grid(), _positive(self.factors, "factors")
        folds = self._folds

        def evaluate(grid: dict[str, Any], step: str) -> dict[str, Any]:
            candidates = list(ParameterGrid(grid))
            steps = {"step": [step] * len(candidates)}
            return evaluate_candidates(candidates, cv=folds, more_results=steps)

        results = evaluate(coarse, "coarse")
        self.fold_sizes_ = np.array([len(test) for _, test in folds.splits])
        self.coarse_index_ = int(self._choose(results))
        evaluate(self._fine_grid(results["params"][self.coarse_index_], factors), "fine")

    def _coarse_grid(self) -> dict[str, Any]:
        """Return the coarse grid, with names and values checked."""
        width = width_argument(self.gamma, self.sigma2)
        if self.param_grid is None:
            powers = [1e-3, 1e-2, 1e-1, 1e0, 1e1, 1e2, 1e3]  # of C and sigma^2: section 4
            widths = [0.5 / s for s in powers] if width == "gamma" else powers
            names = {} if width is None else {getattr(self, width): widths}
            return {self.C: powers, **names}
        for argument in ("C", width) if width else ("C",):
            name, known = getattr(self, argument), ", ".join(map(str, self.param_grid))
            if name not in self.param_grid:
                remedy = " Pass gamma=None if there is no width." if argument != "C" else ""
                fault = f"{argument}={quoted(name)} is not in param_grid, which has {known}."
                raise ValueError(f"{fault}{remedy}")
            _positive(self.param_grid[name], f"param_grid[{name!r}]")
        return self.param_grid

    def _fine_grid(self, chosen: Mapping[str, Any], factors: list[float]) -> dict[str, Any]:
        grid = {name: [value] for name, value in chosen.items()}
        grid[self.C] = [float(chosen[self.C]) * factor for factor in factors]
        if self.sigma2 is not None:
            grid[self.sigma2] = [float(chosen[self.sigma2]) * factor for factor in factors]
        elif self.gamma is not None:  # gamma = 1 / (2 sigma^2)
            grid[self.gamma] = [float(chosen[self.gamma]) / factor for factor in factors]
        return grid

    def _select_best_index(self, refit, refit_metric, results: Results) -> int:
        """Choose among the candidates of the fine grid."""
        rows = np.flatnonzero(results["step"] == "fine")
        fine = {
            key: column[rows] if isinstance(column, np.ndarray) else [column[row] for row in rows]
            for key, column in results.items()
        }
        return int(rows[self._choose(fine)])

    def _choose(self, results: Results) -> int:
        """Return the best of the candidates given."""
        choice = self.refit
        if isinstance(choice, bool | np.bool_):
            accuracy = "score" if "mean_test_score" in results else "accuracy"
            log_loss = "neg_log_loss" if "mean_test_neg_log_loss" in results else None
            names = self.C, self.gamma, self.sigma2
            choice = SmoothestBest(*names, accuracy=accuracy, log_loss=log_loss)
        if isinstance(choice, Choice) and choice.fold_sizes is None:
            choice = clone(choice).set_params(fold_sizes=self.fold_sizes_)
        return super()._select_best_index(choice, choice, results)


class _SameFolds:
    """A splitter that splits once, so that random folds are the same in both steps."""

    def __init__(self, splitter):
        self.splitter = splitter
        self.splits: list[tuple[Places, Places]] = []

    def split(self, X, y=None, **params) -> list[tuple[Places, Places]]:
        self.splits = self.splits or list(self.splitter.split(X, y, **params))
        return self.splits


def _positive(values: ArrayLike, argument: str) -> list[float]:
    given = np.ravel(np.asarray(values, dtype=object)).tolist()
    for value in given or [None]:
        if not (isinstance(value, Real) and 0 < float(value) < np.inf):
            raise ValueError(
                f"{argument} holds {value!r}: it must hold positive numbers, because the fine grid "
                "has multiples of them."
            )
    return [float(value) for value in given]
