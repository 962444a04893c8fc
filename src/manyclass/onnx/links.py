"""Margins of linear models, and scores of each kind that follow from them."""

from __future__ import annotations

import numpy as np

from manyclass._lib.arrays import Floats
from manyclass.banks import CENTRED, LOG_ODDS, MARGIN, PROBABILITY, ScoreKind
from manyclass.banks.score_kinds import SMALLEST_PROBABILITY
from manyclass.onnx.graph import Graph, Piece, Unsupported


def plan_linear(coef: Floats, intercept: Floats) -> Piece:
    """Return the piece (d, n) -> (m, n) of m linear functions."""

    def piece(graph: Graph, x: str) -> str:
        return affine(graph, coef, x, intercept[:, None])

    return piece


def affine(graph: Graph, coef: Floats, x: str, constant: Floats) -> str:
    """Multiply and add, with Gemm.

    ONNX Runtime fuses MatMul with the transposition before it, and up to version 1.22 at least, the
    fused operator does not exist in double precision.
    """
    return graph.call("Gemm", coef, x, constant)


def plan_link(margins: Piece, kind: ScoreKind, huber: bool = False) -> Piece:
    """Convert margins to the scores that a bank returns.

    Margins are log-odds, or those of the modified Huber loss.
    """
    if kind == MARGIN:
        return margins

    def piece(graph: Graph, x: str) -> str:
        f = margins(graph, x)
        if huber:
            return of_probabilities(graph, kind, zhang(graph, f))
        if kind == LOG_ODDS:
            bound = -float(np.log(SMALLEST_PROBABILITY))
            return graph.clip(f, -bound, bound)
        return of_probabilities(graph, kind, graph.inverse_odds(graph.call("Neg", f)))

    return piece


def zhang(graph: Graph, margins: str) -> str:
    """Return Zhang's probabilities for the modified Huber loss."""
    clipped = graph.clip(margins, -1.0, 1.0)
    return graph.call("Mul", graph.call("Add", clipped, 1.0), 0.5)


def of_probabilities(graph: Graph, kind: ScoreKind, r: str) -> str:
    """Return the scores that follow from probabilities of the positive sides."""
    if kind == PROBABILITY:
        return r
    if kind == CENTRED:
        return graph.call("Sub", r, 0.5)
    if kind != LOG_ODDS:
        raise Unsupported(f"scores of the kind {kind.name!r} have no graph here.")
    sides = r, graph.call("Sub", 1.0, r)
    positive, negative = (
        graph.call("Log", graph.call("Max", side, SMALLEST_PROBABILITY)) for side in sides
    )
    return graph.call("Sub", positive, negative)
