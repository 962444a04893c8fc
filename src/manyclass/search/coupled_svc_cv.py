"""CoupledSVCCV: C and gamma of CoupledSVC by leave-one-out, for the price of a grid of fits."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.svm import SVC

from manyclass._lib.arrays import Floats
from manyclass._lib.interrupts import count_threads
from manyclass.banks.limits import Limits
from manyclass.banks.svm.fit import gamma_of
from manyclass.calibration.evidence import Evidence
from manyclass.classifier import Prepared
from manyclass.combiners.base import Combiner
from manyclass.scaling.structured import rows_for_scaling
from manyclass.scores.sources import Needed, resolve_cv
from manyclass.search.left_out_scoring import Scoring, left_out_values, resolve_scoring
from manyclass.search.svm_grid import Point, resolve_Cs, resolve_gammas, walk
from manyclass.svm import CoupledSVC


class CoupledSVCCV(CoupledSVC):
    """:class:`CoupledSVC` that chooses C and gamma by leave-one-out.

    Each point of the grid is fitted once. Leave-one-out gives scores of samples by machines that
    did not see them. They are calibrated, coupled and scaled as in ``CoupledSVC``, and the
    point with the best score is fitted. A calibration or scaling that could flatter itself is
    fitted without the samples that it is judged by.

    The machines of a gamma share the kernel matrix, and those of a larger C begin with those of
    the smaller one.

    Parameters
    ----------
    Cs : int or array-like of positive numbers, default=10
        The values of C. A number means so many powers of ten, evenly spaced from 0.1 to 1000.
    gammas : int or array-like of numbers, "scale" or "auto", default=5
        The values of gamma. A number means so many multiples of "scale", evenly spaced powers of
        ten from 0.1 to 10. Ignored by kernels without gamma.
    scoring : str or callable, default="neg_log_loss"
        What is best: a name of scikit-learn, such as "accuracy" or "neg_brier_score", or a scorer
        from :func:`~sklearn.metrics.make_scorer`. A callable gets a fitted classifier that
        answers for the left-out samples, their numbers as X, and their labels.
    kernel, degree, coef0, shrinking, probability, tol, cache_size, class_weight, max_iter
        As in :class:`CoupledSVC`. The kernel matrix of all samples is kept if it fits into
        ``cache_size`` MB: 5,000 samples by default. Beyond that the grid takes longer.
    decision_function_shape, break_ties, random_state, code, combiner, calibration, scaling, dtype
        As in :class:`CoupledSVC`. Combiners that are trained, and ``code="native"``, cannot be
        used.
    cv : "loo", int, splitter or iterable of splits, default="loo"
        How samples are left out. Folds are for data whose samples belong together, as in groups:
        they are fitted at each point of the grid.
    verbose : bool, default=False
        Whether to print each point with its score, advice, and the report of ``CoupledSVC``.
    n_jobs : int, optional
        Number of threads for pairs of classes and for points. The result does not depend on it.

    Attributes
    ----------
    C_, gamma_ : float
        The best values; of equal ones the smallest C, then the smallest gamma. ``gamma_`` is
        "scale" for kernels without gamma.
    Cs_ : ndarray of shape (n_Cs,)
        The values of C.
    gammas_ : ndarray of shape (n_gammas,)
        The values of gamma.
    scores_ : ndarray of shape (n_gammas, n_Cs)
        The score of each point; greater is better.
    best_score_ : float
        The greatest of them. It is a little too good, because it was chosen for being great.
    advice_ : str
        How to extend the grid, if the best point is at its edge; empty otherwise.
    classes_, support_, dual_coef_, ...
        All attributes of :class:`CoupledSVC`, as those of
        ``CoupledSVC(C=C_, gamma=gamma_).fit(X, y)``.

    See Also
    --------
    manyclass.plot.ScoreSurfaceDisplay : A picture of the scores.
    CoupledSVC : Without a search.

    Notes
    -----
    With more than 10,000 samples, some thousand of them are left out; the scores are those of at
    most 5,000 samples.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledSVCCV(Cs=[0.1, 1, 10, 100], gammas=3).fit(X, y)
    >>> model.C_, round(model.gamma_, 3)
    (100.0, 0.006)
    >>> model.scores_.shape
    (3, 4)
    >>> model.predict_proba(X[[0, 70, 133]]).round(1)
    array([[1. , 0. , 0. ],
           [0. , 0.5, 0.5],
           [0. , 0.4, 0.6]])
    """

    def __init__(
        self,
        Cs: int | ArrayLike = 10,
        gammas: int | ArrayLike = 5,
        *,
        scoring: str | Callable[..., float] = "neg_log_loss",
        kernel: str | Callable[..., Any] = "rbf",
        degree: int = 3,
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
        self.Cs = Cs
        self.gammas = gammas
        self.scoring = scoring
        self.kernel = kernel
        self.degree = degree
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

    def _fit(self, X, y, sample_weight, fit_params):
        Cs = resolve_Cs(self.Cs)
        prepared = self._prepare(X, y, sample_weight, fit_params)
        fit_part = prepared.fit_part
        self._check_searchable(prepared)
        given = sample_weight is not None or self.class_weight is not None
        scoring = resolve_scoring(
            self.scoring, self.classes_, probabilities=self.combiner_.gives_probabilities
        )
        gammas = resolve_gammas(self.gammas, self._gamma_numbers(prepared))
        scores = self._score_grid(prepared, Cs, gammas, scoring, weighted=given)
        self.Cs_, self.gammas_, self.scores_ = Cs, gammas, scores
        row, column = best_point(scores, Cs, gammas)
        self.C_, self.gamma_ = float(Cs[column]), _plain(gammas[row])
        self.best_score_ = float(scores[row, column])
        self.advice_ = advice(Cs, gammas, self.C_, self.gamma_)
        if self.verbose:
            best = f"C = {self.C_:.3g}, gamma = {_shown(self.gamma_)}: {self.best_score_:.4f}"
            print(f"best: {best}" + (f"\n{self.advice_}" if self.advice_ else ""))
        best_part = replace(fit_part, estimator=self._machine(self.C_, self.gamma_))
        return self._fit_prepared(prepared._replace(fit_part=best_part))

    def _check_searchable(self, prepared: Prepared) -> None:
        """Refuse what has no leave-one-out scores of its columns."""
        if prepared.fit_part.native or prepared.fit_part.blocks is not None:
            raise ValueError(
                f"code={self.code!r} fits no machine for each column, and has no leave-one-out: "
                "use GridSearchCV with CoupledSVC."
            )
        if not resolve_cv(self.cv).gives_scores:
            raise ValueError("cv=None leaves nothing out: use cv='loo', or folds.")
        if self.combiner_.learns or self.combiner_.measure() is not None:
            raise ValueError(
                f"combiner {self.combiner_.key!r} is trained, which leave-one-out of the machines "
                "does not judge: use GridSearchCV with CoupledSVC."
            )

    def _score_grid(
        self, prepared: Prepared, Cs: Floats, gammas: NDArray, scoring: Scoring, *, weighted: bool
    ) -> Floats:
        """Return the scores of all points.

        The machines of a point are fitted in threads. Meanwhile earlier points are judged, in
        ``n_jobs`` threads too.
        """
        scores = np.full((len(gammas), len(Cs)), np.nan)
        n_jobs = count_threads(self.n_jobs, scores.size)
        equal: list[tuple[Point, Point]] = []

        def judge(point: Point, left_out) -> None:
            evidence = Evidence(left_out, None, lambda values: self._combine(values).values)
            y, values, weights = left_out_values(evidence, prepared.plan)
            score = scoring(y, values, weights if weighted else None)
            self._note(scores, point, Cs, gammas, score)

        source, folds = prepared.plan.source, prepared.folds
        if not source.gives_scores:  # the model of a label decoder needs none, but its judge does
            source, y = resolve_cv(self.cv), prepared.fit_part.y
            folds = source.make_folds(prepared.X, y, self.classes_, {}, prepared.weights > 0)
        with_folds = len(folds) > 0
        needed = Needed(n_by_folds=rows_for_scaling(*prepared.fit_part.code.shape))
        waiting: list[Future] = []
        before: Any = None
        pool = ThreadPoolExecutor(n_jobs)
        try:
            for point in walk(prepared.fit_part, Cs, gammas, self._machine, every=with_folds):
                if point.bank is None:
                    equal.append((point, before))
                    continue
                part, before = point.fit_part, point
                data = part.X, part.y, part.code, prepared.weights
                left_out = source.scores(point.bank, part, *data, folds, needed)
                if n_jobs == 1:
                    judge(point, left_out)
                    continue
                waiting.append(pool.submit(judge, point, left_out))
                if len(waiting) > n_jobs:  # their scores take memory
                    waiting.pop(0).result()
            for future in waiting:
                future.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        for point, known in equal:
            self._note(scores, point, Cs, gammas, scores[known.row, known.column])
        return scores

    def _note(self, scores: Floats, point: Point, Cs: Floats, gammas: NDArray, score: float):
        """Write the score of a point into the grid, and print it if asked to."""
        scores[point.row, point.column] = score
        if self.verbose:
            C, gamma = Cs[point.column], _shown(_plain(gammas[point.row]))
            print(f"C = {C:.3g}, gamma = {gamma}: {score:.4f}", flush=True)

    def _gamma_numbers(self, prepared: Prepared) -> Callable[[str], float] | None:
        """Return the function that gives the number of "scale" or "auto", if there is a gamma."""
        if self.kernel not in ("rbf", "poly", "sigmoid"):
            return None
        part = prepared.fit_part
        weights = part.fit_params.get("sample_weight")
        if "factors" in part.options:
            weights = part.options["factors"].of_sample
        return lambda name: float(gamma_of(part.estimator, name, part.X, weights, Limits()))

    def _machine(self, C: float, gamma: float | str) -> SVC:
        shared = "kernel degree coef0 shrinking tol cache_size verbose max_iter".split()
        parameters = {name: getattr(self, name) for name in shared}
        return SVC(C=float(C), gamma=_plain(gamma), **parameters)

    def _base_estimator(self) -> SVC:
        return self._machine(getattr(self, "C_", 1.0), getattr(self, "gamma_", "scale"))


def best_point(scores: Floats, Cs: Floats, gammas: NDArray) -> tuple[int, int]:
    """Return the place of the greatest score; of equal ones that of the smallest C, then gamma."""
    if np.isnan(scores).all():
        raise ValueError("the score is NaN at every point of the grid: choose another scoring.")
    rows, columns = np.nonzero(scores == np.nanmax(scores))
    first = np.lexsort((gammas[rows], Cs[columns]))[0]
    return int(rows[first]), int(columns[first])


def advice(Cs: Floats, gammas: NDArray, C: float, gamma: float | str) -> str:
    """Return how to extend a grid whose best point is at its edge; nothing to say is ""."""
    found = []
    for name, values, best in (("Cs", Cs, C), ("gammas", gammas, gamma)):
        if len(np.unique(values)) == 1:
            continue
        if best == values.max():
            found.append(f"the best is the largest of {name}: add larger ones")
        elif best == values.min():
            found.append(f"the best is the smallest of {name}: add smaller ones")
    return "; ".join(found)


def _plain(gamma: Any) -> float | str:
    return str(gamma) if isinstance(gamma, str) else float(gamma)


def _shown(gamma: float | str) -> str:
    return gamma if isinstance(gamma, str) else f"{gamma:.3g}"
