"""Banks of binary models: features (d, n) to scores (l, n)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.svm import SVC, NuSVC

from manyclass import codes
from manyclass._lib.arrays import Floats
from manyclass.banks import Bank, ConstantModel, GroupBank, KernelBank, LinearBank, NativeBank
from manyclass.banks.svm.groups import Group
from manyclass.banks.svm.kernels import Kernel, LinearKernel, PolyKernel, RBFKernel, SigmoidKernel
from manyclass.learners.kernel_logistic.logistic_bank import KernelLogisticBank
from manyclass.onnx.graph import Graph, Piece, Unsupported
from manyclass.onnx.links import affine, plan_linear, plan_link
from manyclass.onnx.native_ops import plan_native


def plan_scores(bank: Bank, code: NDArray[np.int8], n_features: int) -> Piece:
    """Return the piece (d, n) -> (l, n) of a fitted bank, for a code of shape (k, l)."""
    if type(bank) is NativeBank:
        return plan_native(bank, "Use one of them, or another code, such as 'one-vs-one'.")
    if type(bank) is GroupBank:
        raise Unsupported(
            "multiclass models of groups of classes have no graph here. Use code='class-trees' "
            "instead of a q-ary code."
        )
    if type(bank) is LinearBank:
        return plan_link(plan_linear(bank.coef.T, bank.intercept), bank.kind, bank.huber)
    if type(bank) in (KernelBank, KernelLogisticBank):
        return plan_link(_plan_kernel_machines(bank, code, n_features), bank.kind)
    if bank.constant.all():  # all columns have one side only: no model was fitted
        certain = np.array([model.margin for model in bank.models])
        return plan_link(plan_linear(np.zeros((len(certain), n_features)), certain), bank.kind)
    raise Unsupported(_why_not({type(m) for m in bank.models} - {ConstantModel}))


def _why_not(learners: set[type]) -> str:
    names = ", ".join(sorted(learner.__name__ for learner in learners))
    if learners <= {SVC, NuSVC}:
        return (
            f"the probabilities that {names} fits itself have no graph here. Use "
            "calibration='sigmoid', which is fitted on its margins."
        )
    return (
        f"the estimator, {names}, has no graph here: only linear models "
        f"({', '.join(model.__name__ for model in LinearBank.TYPES)}), SVC, NuSVC and "
        "KernelLogisticRegression have. Use one of them; a scaler goes in front of the coupled "
        "classifier, in a Pipeline, and not into its estimator."
    )


# ---------------------------------------------------------------- kernel machines


def _plan_kernel_machines(bank: Any, code: NDArray[np.int8], n_features: int) -> Piece:
    kernel, groups = bank.kernel, [group for group in bank.groups if len(group.support)]
    if not kernel.numeric:
        kind = "a precomputed" if kernel.precomputed else "a callable"
        raise Unsupported(
            f"{kind} kernel cannot be computed by a graph. Use kernel 'linear', 'poly', 'rbf' or "
            "'sigmoid'."
        )
    if not groups:
        return plan_linear(np.zeros((len(bank.intercept), n_features)), bank.intercept)
    if isinstance(kernel, LinearKernel):
        coef = sum((_dense(group.duals.T @ group.vectors) for group in groups), start=0.0)
        return plan_linear(np.asarray(coef), bank.intercept)
    paired = codes.pair_columns(code) is not None and len(groups) == len(code)
    add_up = _sum_of_pairs if paired else _sum_of_all

    def piece(graph: Graph, x: str) -> str:
        columns = _columns(graph, kernel, bank.origin, x)
        # A generator: each block is multiplied before the next one is computed.
        blocks = (_kernel_block(graph, kernel, bank.origin, group, columns) for group in groups)
        sums = add_up(graph, groups, blocks, code)
        return graph.call("Add", sums, bank.intercept[:, None])

    return piece


def _dense(array: Any) -> Floats:
    return array.toarray() if issparse(array) else np.asarray(array)


def _columns(graph: Graph, kernel: Kernel, origin: Floats | None, x: str) -> str:
    """Prepare the samples as :meth:`Kernel.columns` does: for rbf (x, 1, |x|^2)."""
    if not isinstance(kernel, RBFKernel):
        return x
    x = x if origin is None else graph.call("Sub", x, origin[:, None])
    squares = graph.total(graph.call("Mul", x, x), axis=0)
    return graph.call("Concat", x, graph.ones_like(squares), squares, axis=0)


def _kernel_block(
    graph: Graph, kernel: Kernel, origin: Floats | None, group: Group, columns: str
) -> str:
    """Return K(S, X) of the support vectors of a class, shape (support vectors, n)."""
    vectors = _dense(group.vectors)
    if isinstance(kernel, RBFKernel):
        rows = kernel.rows(vectors, origin).prepared
        return graph.call("Exp", graph.call("MatMul", rows, columns))
    if not isinstance(kernel, PolyKernel | SigmoidKernel):
        raise Unsupported(f"{type(kernel).__name__} has no graph here.")
    # Scale first: ONNX Runtime fuses a product and a factor after it in single precision.
    products = affine(graph, kernel.gamma * vectors, columns, np.full((1, 1), float(kernel.coef0)))
    if isinstance(kernel, SigmoidKernel):
        return graph.call("Tanh", products)
    return graph.call("Pow", products, float(kernel.degree))


def _sum_of_all(
    graph: Graph, groups: list[Group], blocks: Iterable[str], code: NDArray[np.int8]
) -> str:
    """Add the contributions of the support vectors of all classes, for all columns."""
    pairs = zip(groups, blocks, strict=True)
    parts = [graph.call("MatMul", group.duals.toarray().T, block) for group, block in pairs]
    return graph.call("Sum", *parts)


def _sum_of_pairs(
    graph: Graph, groups: list[Group], blocks: Iterable[str], code: NDArray[np.int8]
) -> str:
    """Add the contributions of the two classes of each column: 2 / k of all products."""
    pairs = zip(groups, blocks, strict=True)
    parts = [graph.call("MatMul", group.coef.T, block) for group, block in pairs]
    both = graph.call("Concat", *parts, axis=0)
    # Rows of ``both`` are the pairs (class, column), class by class: two of each column.
    order = np.argsort(np.nonzero(code)[1], kind="stable").reshape(-1, 2)
    lower, higher = (graph.call("Gather", both, rows.copy(), axis=0) for rows in order.T)
    return graph.call("Add", lower, higher)
