"""Combiners: values of the binary models (l, n) to class probabilities (k, n)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from manyclass import codes
from manyclass._lib.arrays import Code, Floats
from manyclass.combiners import coupling
from manyclass.combiners.base import Combiner
from manyclass.combiners.coupling.kernels.transposed import LOWEST
from manyclass.combiners.softmax import SimplifiedSoftmax, Softmax, TrainedSoftmax
from manyclass.onnx.elimination import solve_positive_definite, stationary
from manyclass.onnx.graph import Graph, Piece, Unsupported

ITERATIVE = (
    coupling.HastieTibshirani,
    coupling.KullbackLeibler,
    coupling.LeastSquares,
    coupling.Zadrozny,
)


def plan_combiner(combiner: Combiner, code: Code, weights: Floats) -> Piece:
    """Return the piece (l, n) -> (k, n) of a combiner; code (k, l), weights of columns (l,)."""
    if type(combiner) in _PLANS:
        return _PLANS[type(combiner)](combiner, code, weights)
    remedy = (
        "Use 'wlw2' on one-vs-one, 'normalize' on one-vs-rest and native, 'tree-product' on class "
        "trees or 'noniterative' on any code"
    )
    if type(combiner) in ITERATIVE:
        raise Unsupported(
            f"the combiner {combiner.key!r} iterates, each sample for as long as it needs, and a "
            f"graph has all its steps written out. {remedy}, or 'softmax', which is trained for "
            "the code at hand."
        )
    if not combiner.gives_probabilities:
        raise Unsupported(
            f"the combiner {combiner.key!r} gives labels without probabilities, and breaks their "
            f"ties by 64-bit hashes that ONNX has no operators for. {remedy}."
        )
    raise Unsupported(f"the combiner {type(combiner).__name__} has no graph here. {remedy}.")


def _both(graph: Graph, r: str, clipped: bool = True) -> str:
    """Return (r, 1 - r), shape (2 l, n)."""
    r = graph.clip(r, LOWEST, 1.0 - LOWEST) if clipped else r
    return graph.call("Concat", r, graph.call("Sub", 1.0, r), axis=0)


def _sides(code: Code) -> Floats:
    """Return which entries of (r, 1 - r) are for each class, shape (k, 2 l)."""
    return np.hstack([code > 0, code < 0]).astype(np.float64)


# ---------------------------------------------------------------- sums


def _noniterative(combiner: Combiner, code: Code, weights: Floats) -> Piece:
    return lambda graph, r: graph.normalised(graph.call("MatMul", _sides(code), _both(graph, r)))


def _normalize(combiner: Combiner, code: Code, weights: Floats) -> Piece:
    single = code.shape[1] == 1  # two classes in one column

    def piece(graph: Graph, r: str) -> str:
        return graph.normalised(_both(graph, r) if single else graph.clip(r, LOWEST, 1.0 - LOWEST))

    return piece


def _vote(combiner: Combiner, code: Code, weights: Floats) -> Piece:
    """Count votes. In a tie the first class wins, not a random one."""

    def piece(graph: Graph, r: str) -> str:
        sign = graph.call("Sign", graph.call("Sub", r, 0.5))
        won = graph.call("Add", graph.call("Mul", sign, 0.5), 0.5)
        return graph.normalised(
            graph.call("MatMul", _sides(code), _both(graph, won, clipped=False))
        )

    return piece


def _pkpd(combiner: Combiner, code: Code, weights: Floats) -> Piece:
    def piece(graph: Graph, r: str) -> str:
        inverses = graph.call("Div", 1.0, _both(graph, r))
        sums = graph.call("MatMul", _sides(code), inverses)
        return graph.normalised(graph.call("Div", 1.0, graph.call("Sub", sums, len(code) - 2.0)))

    return piece


# ---------------------------------------------------------------- soft-max of a linear function


def _softmax(combiner: TrainedSoftmax, code: Code, weights: Floats) -> Piece:
    signed, limits = combiner.weights_ * combiner.code_, combiner.limits_[:, None]

    def piece(graph: Graph, margins: str) -> str:
        margins = graph.call("Max", graph.call("Min", margins, limits), -limits)
        products = graph.call("MatMul", signed, margins)
        logits = graph.call("Add", products, combiner.biases_[:, None])
        return graph.call("Softmax", logits, axis=0)

    return piece


def _of_logits(coef: Floats) -> Piece:
    """Soft-max of ``coef @ logit(r)``, coef of shape (k, l)."""

    def piece(graph: Graph, r: str) -> str:
        r = graph.clip(r, LOWEST, 1.0 - LOWEST)
        logits = graph.call("Log", graph.call("Div", r, graph.call("Sub", 1.0, r)))
        return graph.call("Softmax", graph.call("MatMul", coef, logits), axis=0)

    return piece


def _logit(combiner: coupling.Logit, code: Code, weights: Floats) -> Piece:
    """Theta is the inverse Laplacian of the weights times the weighted sums of the logits.

    Column b of the code is e_i - e_j: the sums are ``code @ (weights * logits)``.
    """
    weighted = code * weights
    laplacian = weighted @ code.T.astype(np.float64)
    return _of_logits(np.linalg.solve(laplacian + weights.mean(), weighted))


def _refregier_vallet(combiner: coupling.RefregierVallet, code: Code, weights: Floats) -> Piece:
    """Theta of a child is that of its parent plus the logit of the child against it."""
    column_of = _column_of(code)
    coef = np.zeros(code.shape)
    for parent, child in zip(*combiner._edges(len(code)), strict=True):
        b = column_of[child, parent]
        coef[child] = coef[parent]
        coef[child, b] += code[child, b]
    return _of_logits(coef)


def _tree_product(combiner: coupling.TreeProduct, code: Code, weights: Floats) -> Piece:
    """Soft-max of the mean over trees of the sums of logarithms along paths."""
    trees = codes.find_trees(code)
    assert trees is not None, "check_code has passed"
    if len(trees.blocks) < code.shape[1]:
        raise Unsupported(
            f"the combiner {combiner.key!r} has a graph for nodes with two groups only, and this "
            "code has more. Use code='class-trees'."
        )
    paths = _sides(code) / trees.n_trees

    def piece(graph: Graph, r: str) -> str:
        logs = graph.call("Log", _both(graph, r))
        return graph.call("Softmax", graph.call("MatMul", paths, logs), axis=0)

    return piece


# ---------------------------------------------------------------- systems of k equations


def _column_of(code: Code) -> NDArray[np.int64]:
    """Return the column of each pair of classes, shape (k, k); 0 on the diagonal."""
    pairs = np.abs(code.astype(np.int64))
    column_of = pairs @ (pairs * np.arange(code.shape[1])).T
    np.fill_diagonal(column_of, 0)
    return column_of


def _wlw2(combiner: Combiner, code: Code, weights: Floats) -> Piece:
    """Solve (Q + t ee') x = e and scale x, as ``couple_wlw2`` does.

    Q_ij = -r_ij r_ji is the same seen from both sides; Q_ii is the sum of r_si^2.
    """
    (k, n_columns), against = code.shape, _sides(-code)
    t = 0.25 * k
    entries = _column_of(code)
    np.fill_diagonal(entries, n_columns + np.arange(k))
    entries = np.hstack([entries, np.full((k, 1), n_columns + k)])  # right-hand side

    def piece(graph: Graph, r: str) -> str:
        both = _both(graph, r)
        r, other = graph.block(both, (0, n_columns)), graph.block(both, (n_columns, 2 * n_columns))
        off_diagonal = graph.call("Sub", t, graph.call("Mul", r, other))
        squares = graph.call("MatMul", against, graph.call("Mul", both, both))
        diagonal = graph.call("Add", squares, t)
        right = graph.ones_like(graph.block(r, (0, 1)))
        table = graph.call("Concat", off_diagonal, diagonal, right, axis=0)
        system = graph.call("Gather", table, entries, axis=0)
        x = solve_positive_definite(graph, system, k)
        return graph.normalised(graph.call("Max", x, 0.0))

    return piece


def _wlw1(combiner: Combiner, code: Code, weights: Floats) -> Piece:
    """Stationary distribution of the chain whose rate from i to j is r_ji."""
    column_of, (k, n_columns) = _column_of(code), code.shape
    speaks_for_target = code.T[column_of, np.arange(k)] > 0
    entries = np.where(speaks_for_target, column_of, n_columns + column_of)

    def piece(graph: Graph, r: str) -> str:
        rates = graph.call("Gather", _both(graph, r), entries, axis=0)
        return graph.normalised(stationary(graph, rates, k))

    return piece


_PLANS: dict[type[Combiner], Callable[[Any, Code, Floats], Piece]] = {
    coupling.HastieTibshiraniNonIterative: _noniterative,
    coupling.Logit: _logit,
    coupling.NonIterative: _noniterative,
    coupling.Normalize: _normalize,
    coupling.PriceEtAl: _pkpd,
    coupling.RefregierVallet: _refregier_vallet,
    coupling.TreeProduct: _tree_product,
    SimplifiedSoftmax: _softmax,
    Softmax: _softmax,
    coupling.Vote: _vote,
    coupling.WuLinWeng1: _wlw1,
    coupling.WuLinWeng2: _wlw2,
}
