"""Label decoders: margins of the binary models in, one score per class out.

The class with the highest score is the label; :mod:`manyclass.combiners.ties` breaks ties.
A positive margin means the positive side of its column. To use probabilities as margins,
subtract 1/2. Infinite margins are replaced by very large ones.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from manyclass._lib.arrays import FARTHEST, Code, Floats
from manyclass._lib.messages import quoted
from manyclass._lib.row_blocks import BLOCK_ENTRIES, row_blocks
from manyclass.combiners.base import Combination, Combiner, register
from manyclass.combiners.ties import Seed, as_seed, break_ties

__all__ = ["Hamming", "LabelDecoder", "LossBased", "LossWeighted", "MaxWins", "WinnerTakesAll"]

Loss = Callable[[Floats], Floats]
Scorer = Callable[[Floats], Floats]  # margins (l, rows) to class scores (k, rows)
Weighting = Callable[[Floats, slice], Floats]
Total = Callable[[Code, Floats, Floats], Scorer]  # from a code, zeros and divisor of each class


class LabelDecoder(Combiner):
    """Base of the label decoders: a subclass turns a code into a scorer.

    Column weights are ignored, unless they are reliabilities, and so is ``n_jobs``.
    """

    takes = "scores"
    gives_probabilities = False

    def __init__(self, random_state: Seed = 0):
        self.random_state = random_state

    @abstractmethod
    def _scorer(self, code: Code) -> Scorer:
        """Return the function from a block of margins to class scores."""

    def _weighting(self, weights: Floats | None, shape: tuple[int, int]) -> Weighting:
        """Return the function from the class scores of some rows to weighted ones."""
        return lambda scores, rows: scores

    def combine(
        self,
        values: Floats,
        code: Code,
        weights: Floats | None = None,
        *,
        n_jobs: int | None = None,
        block_entries: int = BLOCK_ENTRIES,
    ) -> Combination:
        """Score the classes; see :meth:`manyclass.combiners.base.Combiner.combine`."""
        code = np.asarray(code)
        self.check_code(code)
        values = check_margins(values, code)
        n, (k, n_columns) = len(values), code.shape
        scorer, weigh = self._scorer(code), self._weighting(weights, values.shape)
        scores = np.empty((n, k))
        for rows in row_blocks(n, k + 2 * n_columns, block_entries):
            scores[rows] = weigh(scorer(_as_block(values[rows], rows.start)).T, rows)
        break_ties(scores, values, code, as_seed(self.random_state), block_entries)
        return Combination.in_closed_form(scores)


@register
class MaxWins(LabelDecoder):
    """Max-wins voting over the pairs of classes (one-vs-one).

    The score is the number of pairs that a class wins; a margin of 0 gives half a vote to each
    side. Between classes with equally many votes, the sum s of their margins decides: to the votes,
    s / (3 (abs(s) + 1)) is added, as in :class:`~sklearn.multiclass.OneVsOneClassifier`. Only if
    these are equal as well is the choice random.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.

    References
    ----------
    J. H. Friedman (1996), "Another approach to polychotomous classification".

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.codes import one_vs_one
    >>> from manyclass.combiners.decoding import MaxWins
    >>> MaxWins().combine(np.array([[0.2, -1.0, -3.0]]), one_vs_one(3)).values.round(2)
    array([[ 0.85, -0.25,  2.27]])
    """

    key = "max-wins"
    accepts = "one-vs-one"

    def _scorer(self, code: Code) -> Scorer:
        signed = csr_array(code.astype(np.float64))
        sides, n_used = abs(signed), np.count_nonzero(code, axis=1)[:, None]
        noise = _relative_noise(code)

        def score(f: Floats) -> Floats:
            votes = (n_used + signed @ np.sign(f)) / 2
            # Half votes are further apart than two of these terms.
            part = np.where((f == 0).any(axis=0), 6.0, 3.0)
            total, error = signed @ f, noise * (sides @ np.abs(f))
            term = total / (np.abs(total) + 1.0) / part
            least = np.maximum(np.abs(total) - error, 0.0) + 1.0
            leading = votes == votes.max(axis=0)
            level = _level(np.where(leading, term, -np.inf), noise + error / least / least / part)
            return votes + np.where(leading, level, term)

        return score


@register
class WinnerTakesAll(LabelDecoder):
    """The class whose own model has the largest margin (one-vs-rest).

    The score of a class is the margin of its column, and (f, -f) for two
    classes with a single column.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.

    References
    ----------
    K. Duan et al. (2003), "Multi-category classification by soft-max combination
    of binary classifiers", section 1.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.codes import one_vs_rest
    >>> from manyclass.combiners.decoding import WinnerTakesAll
    >>> WinnerTakesAll().combine(np.array([[-0.5, 0.1, -2.0]]), one_vs_rest(3)).values
    array([[-0.5,  0.1, -2. ]])
    """

    key = "winner-takes-all"
    accepts = "one-vs-rest"

    def _scorer(self, code: Code) -> Scorer:
        return (lambda f: np.vstack([f, -f])) if code.shape[1] == 1 else (lambda f: f)


@register
class Hamming(LabelDecoder):
    """The class whose row of the code is nearest to the signs of the margins.

    The score is minus the distance ``sum_b (1 - M_cb sign(f_b)) / 2``: a zero of
    the code and a zero margin count 1/2 each.

    Parameters
    ----------
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.

    References
    ----------
    E. L. Allwein, R. E. Schapire and Y. Singer (2000), "Reducing multiclass to
    binary: a unifying approach for margin classifiers".

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.codes import one_vs_rest
    >>> from manyclass.combiners.decoding import Hamming
    >>> Hamming().combine(np.array([[-0.5, 0.1, -2.0]]), one_vs_rest(3)).values
    array([[-2.,  0., -2.]])
    """

    key = "hamming"

    def _scorer(self, code: Code) -> Scorer:
        signed = csr_array(code.astype(np.float64))
        return lambda f: (signed @ np.sign(f) - code.shape[1]) / 2


@register
class LossBased(LabelDecoder):
    """The class whose row of the code suffers the least loss under the margins.

    The score is ``-sum_b L(M_cb f_b)``, where a zero of the code adds ``L(0)``.
    With the exponential loss it is ``-log sum_b exp(-M_cb f_b)``. The logarithm
    keeps the order of the classes, and large margins do not overflow.

    Parameters
    ----------
    loss : str or callable, default="linear"
        ``L(y)``, one of ``"linear"`` (-y), ``"exponential"`` (exp(-y)), ``"logistic"`` (log(1 +
        exp(-y))), ``"hinge"`` (max(0, 1 - y)), ``"squared"`` ((1 - y)^2, with y limited to 1e7 in
        size) and ``"binomial-deviance"`` (log(1 + exp(-2y))), or a function that maps an array of y
        elementwise. Infinite losses are replaced by very large ones.
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.

    Notes
    -----
    A score that differs from the best only by rounding errors is set equal to it.
    Otherwise the order of the columns, not the seed, would break the tie.

    References
    ----------
    E. L. Allwein, R. E. Schapire and Y. Singer (2000), "Reducing multiclass to
    binary: a unifying approach for margin classifiers".
    B. Zadrozny (2001), "Reducing multiclass to binary by coupling probability estimates", eq. (1).

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.codes import one_vs_one
    >>> from manyclass.combiners.decoding import LossBased
    >>> f = np.array([[0.2, -1.0, -3.0]])
    >>> LossBased().combine(f, one_vs_one(3)).values
    array([[-0.8, -3.2,  4. ]])
    >>> LossBased("hinge").combine(f, one_vs_one(3)).values
    array([[-3.8, -6.2, -1. ]])
    """

    key = "loss"

    def __init__(self, loss: str | Loss = "linear", random_state: Seed = 0):
        super().__init__(random_state)
        self.loss = loss

    def _scorer(self, code: Code) -> Scorer:
        return _resolve_loss(self.loss)(code, *self._zeros_and_divisor(code))

    def _zeros_and_divisor(self, code: Code) -> tuple[Floats, Floats]:
        """Return for each class how many times L(0) is added, and the divisor of the sum."""
        return np.count_nonzero(code == 0, axis=1) * 1.0, np.ones(len(code))


@register
class LossWeighted(LossBased):
    """Loss-based decoding that only uses the columns in which a class takes part.

    The score is minus the mean of ``L(M_cb f_b)`` over the columns with
    ``M_cb != 0`` (its logarithm, with the exponential loss). Zeros of the code give
    a class neither an advantage nor a disadvantage.

    Parameters
    ----------
    loss : str or callable, default="linear"
        As in :class:`LossBased`.
    random_state : int, RandomState or None, default=0
        Seed for ties; see :func:`manyclass.combiners.ties.as_seed`.

    References
    ----------
    S. Escalera, O. Pujol and P. Radeva (2010), "On the decoding process in
    ternary error-correcting output codes".

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.combiners.decoding import LossWeighted
    >>> code = np.array([[1, 1], [-1, 0], [0, -1]], dtype=np.int8)
    >>> LossWeighted().combine(np.array([[1.0, 3.0]]), code).values
    array([[ 2., -1., -3.]])
    """

    key = "loss-weighted"

    def _zeros_and_divisor(self, code: Code) -> tuple[Floats, Floats]:
        return np.zeros(len(code)), np.count_nonzero(code, axis=1) * 1.0


def check_margins(values: Floats, code: Code) -> Floats:
    """Return margins as floats, one column per column of the code."""
    values = np.asarray(values)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"values has dtype {values.dtype}: pass an array of real numbers.")
    values = values.astype(np.float64, copy=False)
    if values.ndim != 2 or values.shape[1] != code.shape[1]:
        raise ValueError(
            f"values has shape {values.shape}, but the code has {code.shape[1]} columns: pass "
            f"margins of shape (n, {code.shape[1]}), one column per binary model."
        )
    return values


def check_known(values: Floats, first: int = 0) -> None:
    """Raise a ``ValueError`` if there is a NaN; ``first`` is the number of the first row."""
    rows, columns = np.nonzero(np.isnan(values))
    if len(rows):
        raise ValueError(
            f"values contains NaN at row {first + rows[0]}, column {columns[0]}: every binary "
            "model must give a margin for every sample. Check the model of that column."
        )


def _as_block(values: Floats, start: int) -> Floats:
    """Return finite margins of shape (l, rows)."""
    check_known(values, start)
    return np.clip(np.ascontiguousarray(values.T), -FARTHEST, FARTHEST)


def _logistic(y: Floats) -> Floats:
    return np.maximum(-y, 0.0) + np.log1p(np.exp(-np.abs(y)))


def _guarded(loss: Loss) -> Loss:
    """Wrap a user's loss with checks of what it returns."""

    def guarded(y: Floats) -> Floats:
        with np.errstate(over="ignore"):  # infinite losses are clipped below
            values = np.asarray(loss(y.copy()), dtype=np.float64)
        if values.shape != y.shape:
            raise ValueError(
                f"loss returned shape {values.shape} for an array of shape {y.shape}: it must "
                "act elementwise."
            )
        if np.isnan(values).any():
            raise ValueError(
                f"loss returned NaN for y = {y[np.isnan(values)][0]:g}: it must be defined for "
                "every real y."
            )
        return np.clip(values, -FARTHEST, FARTHEST)

    return guarded


def _sum_of_losses(loss: Loss, code: Code, zeros: Floats, divisor: Floats) -> Scorer:
    """Score by minus the sum of the losses of each row of the code.

    M_cb takes three values, so the sum over b of L(M_cb f_b) is the product of
    [M == 1, M == -1] with [L(f), L(-f)], plus L(0) for the zeros. The matrix is
    sparse for two reasons: one-vs-one codes have many zeros, and a sparse product adds
    in the same order for any number of rows, which BLAS does not.
    """
    sides = csr_array(np.hstack([code == 1, code == -1]).astype(np.float64))
    zeros, divisor = zeros[:, None], divisor[:, None]
    at_zero = loss(np.zeros(1))[0]
    noise = _relative_noise(code)

    def score(f: Floats) -> Floats:
        losses = loss(np.vstack([f, -f]))
        totals = (sides @ losses + zeros * at_zero) / divisor
        sizes = (sides @ np.abs(losses) + zeros * abs(at_zero)) / divisor
        return _level(-totals, noise * sizes)

    return score


def _log_sum_exp(code: Code, zeros: Floats, divisor: Floats) -> Scorer:
    """Score by minus the logarithm of the sum of exp(-M_cb f_b), as above."""
    noise, eps = _relative_noise(code), float(np.finfo(np.float64).eps)
    with np.errstate(divide="ignore"):  # no zeros: log 0 = -inf adds nothing
        log_zeros = np.log(zeros)
    rows = [np.flatnonzero(row) for row in code]
    signs = [-row[used, None].astype(np.float64) for row, used in zip(code, rows, strict=True)]

    def score(f: Floats) -> Floats:
        totals = np.empty((len(code), f.shape[1]))
        for c, used in enumerate(rows):
            y = np.vstack([signs[c] * f[used], np.full(f.shape[1], log_zeros[c])])
            top = y.max(axis=0)
            # sum adds in an order that depends on the number of samples; cumsum does not.
            totals[c] = top + np.log(np.cumsum(np.exp(y - top), axis=0)[-1] / divisor[c])
        return _level(-totals, noise + 4.0 * eps * np.abs(totals))

    return score


def _relative_noise(code: Code) -> float:
    """Return an upper bound of the relative rounding error of a sum over the columns."""
    return 4.0 * float(np.finfo(np.float64).eps) * (code.shape[1] + 1)


def _level(scores: Floats, noise: Floats) -> Floats:
    """Set scores that are below the best only by rounding errors equal to the best.

    ``noise`` is the largest error of each score. A class may be the best unless another one is
    better whatever the errors are.
    """
    may_be_best = scores + noise >= (scores - noise).max(axis=0)
    return np.where(may_be_best, scores.max(axis=0), scores)


_LOSSES: dict[str, Total] = {
    "linear": partial(_sum_of_losses, np.negative),
    "exponential": _log_sum_exp,
    "logistic": partial(_sum_of_losses, _logistic),
    "hinge": partial(_sum_of_losses, lambda y: np.maximum(1.0 - y, 0.0)),
    # For larger y, (1 - y)^2 and (1 + y)^2 are equal in float64.
    "squared": partial(_sum_of_losses, lambda y: np.square(1.0 - np.clip(y, -1e7, 1e7))),
    "binomial-deviance": partial(_sum_of_losses, lambda y: _logistic(2.0 * y)),
}


def _resolve_loss(loss: str | Loss) -> Total:
    if callable(loss):
        return partial(_sum_of_losses, _guarded(loss))
    if isinstance(loss, str) and loss in _LOSSES:
        return _LOSSES[loss]
    known = ", ".join(_LOSSES)
    raise ValueError(f"unknown loss {quoted(loss)}: pass a function or one of {known}.")
