"""Systems of k equations, one per sample: ONNX has no operator for them.

The k steps of the elimination are written out. Arrays are (rows, columns, samples), so that
each step is a handful of operators over the samples of a block that shrinks.
"""

from __future__ import annotations

from manyclass.onnx.graph import Graph


def solve_positive_definite(graph: Graph, system: str, k: int) -> str:
    """Solve by Gauss's elimination, which needs no pivoting here.

    ``system`` holds the matrices and, in the last column, right-hand sides: shape (k, k + 1, n).
    The solutions have shape (k, n).
    """
    rows = []
    for m in range(k, 0, -1):
        pivot = graph.block(system, (0, 1), (0, 1))
        row = graph.call("Div", graph.block(system, (0, 1), (1, m + 1)), pivot)
        rows.append(row)
        if m > 1:
            below = graph.block(system, (1, m), (0, 1))
            rest = graph.block(system, (1, m), (1, m + 1))
            system = graph.call("Sub", rest, graph.call("Mul", below, row))
    # The equations read row @ (x, -1) = -x_i, where x are the unknowns found before.
    x = graph.call("Neg", graph.ones_like(graph.call("Squeeze", pivot, [0])))
    for row in reversed(rows):
        x_i = graph.call("Neg", graph.total(graph.call("Mul", row, x), axis=1))
        x = graph.call("Concat", graph.call("Squeeze", x_i, [0]), x, axis=0)
    return graph.block(x, (0, k))


def stationary(graph: Graph, rates: str, k: int) -> str:
    """Return the stationary vectors of Markov chains, not normalised.

    Elimination after Grassmann, Taksar & Heyman, which subtracts nothing: see ``couple_wlw1``.
    ``rates`` are those of going from state i to state j, shape (k, k, n); the diagonal is not read.
    The result has shape (k, n).
    """
    shares = []
    for m in range(k - 1, 0, -1):
        leaving = graph.block(rates, (m, m + 1), (0, m))
        into = graph.block(rates, (0, m), (m, m + 1))
        share = graph.call("Div", into, graph.total(leaving, axis=1))
        shares.append(share)
        rest = graph.block(rates, (0, m), (0, m))
        rates = graph.call("Add", rest, graph.call("Mul", share, leaving))
    x = graph.ones_like(leaving)
    for share in reversed(shares):
        x_m = graph.total(graph.call("Mul", x, share), axis=0)
        x = graph.call("Concat", x, x_m, axis=0)
    return graph.call("Squeeze", x, [1])
