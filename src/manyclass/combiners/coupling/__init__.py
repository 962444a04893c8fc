"""Binary probabilities to class probabilities: :func:`couple` and its rules."""

from __future__ import annotations

from typing import Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyclass import codes
from manyclass._lib.arrays import Floats
from manyclass.combiners.base import Combination, resolve
from manyclass.combiners.coupling.base import (
    CouplingRule,
    Reader,
    couple_blocks,
    read_columns,
    read_pairs,
    warn_unconverged,
)
from manyclass.combiners.coupling.general import (
    KullbackLeibler,
    LeastSquares,
    NonIterative,
    Normalize,
    Zadrozny,
)
from manyclass.combiners.coupling.pairwise import (
    HastieTibshirani,
    HastieTibshiraniNonIterative,
    Logit,
    PriceEtAl,
    RefregierVallet,
    Vote,
    WuLinWeng1,
    WuLinWeng2,
)
from manyclass.combiners.coupling.tree_product import TreeProduct

__all__ = [
    "CouplingRule",
    "HastieTibshirani",
    "HastieTibshiraniNonIterative",
    "KullbackLeibler",
    "LeastSquares",
    "Logit",
    "NonIterative",
    "Normalize",
    "PriceEtAl",
    "RefregierVallet",
    "TreeProduct",
    "Vote",
    "WuLinWeng1",
    "WuLinWeng2",
    "Zadrozny",
    "couple",
]


@overload
def couple(
    r: ArrayLike,
    code: ArrayLike | str | None = ...,
    rule: str | CouplingRule = ...,
    weights: ArrayLike | None = ...,
    full_output: Literal[False] = ...,
    *,
    n_jobs: int | None = ...,
) -> Floats: ...
@overload
def couple(
    r: ArrayLike,
    code: ArrayLike | str | None = ...,
    rule: str | CouplingRule = ...,
    weights: ArrayLike | None = ...,
    *,
    full_output: Literal[True],
    n_jobs: int | None = ...,
) -> Combination: ...
def couple(
    r: ArrayLike,
    code: ArrayLike | str | None = None,
    rule: str | CouplingRule = "wlw2",
    weights: ArrayLike | None = None,
    full_output: bool = False,
    *,
    n_jobs: int | None = None,
) -> Floats | Combination:
    """Couple the probabilities of binary problems into class probabilities.

    Parameters
    ----------
    r : array-like of shape (n, k, k) or (n, l)
        Pairwise probabilities, ``r[:, i, j]`` = P(i | i or j) (the diagonal is not
        used), or with ``code`` the probability of the positive side of each
        column. Values are clipped to [1e-7, 1 - 1e-7].
    code : array-like of shape (k, l), str or None, default=None
        The code matrix, or the name of one that follows from its number of columns
        ("one-vs-one", "one-vs-rest", "ordinal", "complete"). Optional for (n, k, k) input.
    rule : str or CouplingRule, default="wlw2"
        For one-vs-one: "vote", "ht", "ht-noniterative", "wlw1", "wlw2", "pkpd",
        "refregier-vallet", "logit"; for any code: "kl", "zadrozny", "noniterative",
        "least-squares"; for one-vs-rest: "normalize"; for class trees: "tree-product". Pass a rule
        object to set options. Only
        "least-squares" and "noniterative" accept a code that does not determine the
        class probabilities, such as one with fewer than k - 1 columns.
    weights : array-like of shape (l,), optional
        Weight of each column, usually its number of training samples; equal when omitted. Used by
        "ht", "logit", "kl", "zadrozny" and "least-squares", and by the incoherence.
    full_output : bool, default=False
        Also return the iterations, the convergence and the incoherence of each row.
    n_jobs : int, optional
        Number of threads. The result does not depend on it.

    Returns
    -------
    p : ndarray of shape (n, k)
        Class probabilities; or, with ``full_output``, the named tuple ``(p, iterations,
        converged, incoherence)``: a :class:`~manyclass.combiners.base.Combination`.

    Examples
    --------
    Three experts who contradict each other (Hastie & Tibshirani 1998, matrix (1)):

    >>> from manyclass import couple
    >>> r = [[[0.5, 0.9, 0.4], [0.1, 0.5, 0.7], [0.6, 0.3, 0.5]]]
    >>> couple(r).round(3)
    array([[0.457, 0.202, 0.341]])
    >>> result = couple(r, rule="ht", full_output=True)
    >>> result.p.round(3), result.incoherence.round(2)
    (array([[0.481, 0.242, 0.277]]), array([0.23]))

    One-vs-rest probabilities:

    >>> couple([[0.7, 0.2, 0.3]], code="one-vs-rest", rule="kl").round(3)
    array([[0.613, 0.153, 0.234]])
    """
    resolved = resolve(rule)
    if not isinstance(resolved, CouplingRule):
        raise ValueError(
            f"rule {resolved.key!r} is not a coupling rule: use it as "
            f"CoupledClassifier(combiner={resolved.key!r}), or pass a rule such as 'wlw2' here."
        )
    values = np.asarray(r)
    if values.dtype.kind not in "fiub":
        raise ValueError(f"r has dtype {values.dtype}: pass an array of real numbers.")
    read, matrix = _open_pairs(values, code) if values.ndim == 3 else _open_columns(values, code)
    if not (code is None or isinstance(code, str)):
        resolved.check_identifiable(matrix)
    result = couple_blocks(
        resolved, read, len(values), matrix, weights, n_jobs, full_output, values
    )
    warn_unconverged(resolved, result.converged)
    return result if full_output else result.p


def _open_pairs(r: NDArray, code: ArrayLike | str | None) -> tuple[Reader, NDArray[np.int8]]:
    k = r.shape[1]
    if r.shape[2] != k or k < 2:
        raise ValueError(
            f"r has shape {r.shape}: three-dimensional r must be (n, k, k) with k >= 2, "
            "r[:, i, j] = P(i | i or j)."
        )
    matrix = codes.one_vs_one(k)
    if code is not None and not (isinstance(code, str) and code == "one-vs-one"):
        given = codes.by_name(code, k) if isinstance(code, str) else codes.check_code(code, k)
        if given.shape != matrix.shape or (given != matrix).any():
            raise ValueError(
                "r has shape (n, k, k), which is for one-vs-one codes, but code is another code: "
                "pass r of shape (n, l), with one column per column of the code."
            )
    return read_pairs(r), matrix


def _open_columns(r: NDArray, code: ArrayLike | str | None) -> tuple[Reader, NDArray[np.int8]]:
    if r.ndim != 2:
        raise ValueError(
            f"r has {r.ndim} dimension(s): pass (n, k, k) pairwise probabilities, or (n, l) with a "
            "code. For a single sample use r[None]."
        )
    if code is None:
        raise ValueError(
            f"r has shape {r.shape}: a two-dimensional r needs a code. Pass code='one-vs-one' for "
            "condensed pairs, another name or the code matrix; or r of shape (n, k, k)."
        )
    if isinstance(code, str):
        matrix = codes.by_name(code, codes.n_classes_of(code, r.shape[1]))
    else:
        matrix = codes.check_code(code)
    n, wanted = r.shape[1], matrix.shape[1]
    if n != wanted:
        raise ValueError(f"r has {n} columns, but the code has {wanted}: they must match.")
    return read_columns(r), matrix
