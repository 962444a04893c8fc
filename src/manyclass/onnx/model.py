"""The function to_onnx: export a fitted classifier as one graph."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.messages import quoted
from manyclass.classifier import CoupledBase
from manyclass.onnx.calibration_ops import plan_calibration
from manyclass.onnx.combiner_ops import plan_combiner
from manyclass.onnx.graph import Graph, Piece, Unsupported, import_onnx
from manyclass.onnx.native_ops import plan_native, read_native
from manyclass.onnx.scaler_ops import plan_scaler
from manyclass.onnx.scaling_ops import ScalingPiece, plan_least, plan_scaling
from manyclass.onnx.score_ops import plan_scores

if TYPE_CHECKING:
    import onnx


def to_onnx(
    model: Any, *, dtype: DTypeLike = np.float64, opset: int = 17, name: str = "manyclass"
) -> onnx.ModelProto:
    """Export a fitted classifier as an ONNX graph, for predictions without Python.

    Needs the package ``onnx``: ``pip install 'manyclass[onnx]'``.

    Parameters
    ----------
    model : CoupledClassifier, CoupledSVC, CoupledSVCCV or Pipeline
        Fitted. A pipeline ends in one of the three. Its other steps may be
        :class:`~sklearn.preprocessing.StandardScaler`,
        :class:`~sklearn.preprocessing.MinMaxScaler`,
        :class:`~sklearn.preprocessing.MaxAbsScaler` or
        :class:`~sklearn.preprocessing.RobustScaler`.
    dtype : float64 or float32, default=float64
        Type of the input and of the probabilities. The graph computes in float64 either way.
    opset : int, default=17
        Version of the set of operators, at least 13. Older runtimes need lower ones.
    name : str, default="manyclass"
        Name of the graph.

    Returns
    -------
    onnx.ModelProto
        The input is ``X`` of shape (n, n_features), with any number of rows n. The outputs are
        ``probabilities`` of shape (n, k) and ``labels`` of shape (n,), int64 or strings like
        ``classes_``. The metadata hold the classes.

    Raises
    ------
    NotImplementedError
        If parts of the model cannot be exported. The message lists them, with the reasons.

    Notes
    -----
    Estimators: linear models, :class:`~sklearn.svm.SVC`, :class:`~sklearn.svm.NuSVC` with
    kernels that have names, and
    :class:`~manyclass.learners.KernelLogisticRegression`. Multiclass models (``code="native"`` and
    ``with_native``): linear ones. Calibration and scaling: all. Combiners: all that have a closed
    form ("wlw1", "wlw2", "pkpd", "logit", "refregier-vallet", "ht-noniterative", "vote",
    "noniterative", "normalize") and the trained ones ("softmax", "softmax-simplified"). Codes: all.

    Probabilities are those of ``predict_proba`` for the same numbers in float64, up to rounding.
    If several classes have the largest probability, the label is the first of them; the rule
    "vote" of this package chooses one at random. The graph does not check values: for rows with
    NaN or infinity, which ``predict_proba`` refuses, the result has no meaning.

    The graph works on all rows of a call at once. For kernel machines, memory grows with the number
    of rows times the support vectors of one class; for "wlw1" and "wlw2", times a few k². Pass
    large data in batches. Rows are dense, and support vectors are stored as dense arrays, also for
    models that were fitted on sparse data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledSVC
    >>> from manyclass.onnx import to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = to_onnx(CoupledSVC(C=10).fit(X, y))
    >>> [value.name for value in graph.graph.output]
    ['probabilities', 'labels']

    Save it with ``onnx.save(graph, path)``. ONNX Runtime runs it, here from Python:

    >>> import onnxruntime
    >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
    >>> probabilities, labels = session.run(None, {"X": X[[0, 70, 133]]})
    >>> probabilities.round(2)
    array([[1.  , 0.  , 0.  ],
           [0.  , 0.5 , 0.5 ],
           [0.  , 0.43, 0.57]])
    """
    onnx = import_onnx()
    _check_options(dtype, opset, onnx.defs.onnx_opset_version())
    steps, classifier = _open(model)
    parts = _plan(steps, classifier)
    graph = Graph()
    x = graph.call("Transpose", graph.cast("X", np.float64), perm=[1, 0])
    values = parts.probabilities(graph, x)
    graph.name(graph.cast(graph.call("Transpose", values, perm=[1, 0]), dtype), "probabilities")
    graph.name(parts.labels(graph, values), "labels")
    return _make_model(graph, classifier, np.dtype(dtype), opset, name)


class _Parts(NamedTuple):
    """The pieces of a graph, in the order of the data."""

    scalers: list[Piece]
    columns: list[Piece]
    """Scores and calibration."""
    combiner: Piece
    native: list[Piece]
    """Scores of the multiclass model that the scaling uses, and their calibration, if any."""
    scaling: ScalingPiece
    least: Piece
    labels: Piece

    def probabilities(self, graph: Graph, x: str) -> str:
        """Return class probabilities (k, n) of features (d, n)."""
        x = reduce(lambda value, piece: piece(graph, value), self.scalers, x)
        columns = reduce(lambda value, piece: piece(graph, value), self.columns, x)
        p = self.combiner(graph, columns)
        others: list[str] = []
        if self.native:
            columns, others = read_native(graph, columns, x, *self.native)
        return self.least(graph, self.scaling(graph, p, columns, others))


def _check_options(dtype: DTypeLike, opset: int, newest: int, least: int = 13) -> None:
    """Check dtype and opset; 13 is the first one whose ReduceSum takes the axes as an input."""
    if dtype is None or np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be np.float64 or np.float32, got {quoted(dtype)}.")
    if not least <= opset <= newest:
        raise ValueError(
            f"opset must be from {least} to {newest}, the newest of the onnx that is "
            f"installed, got {quoted(opset)}."
        )


def _open(model: Any) -> tuple[list[Any], CoupledBase]:
    """Return the steps before the classifier, and the classifier."""
    steps = [step for _, step in model.steps] if isinstance(model, Pipeline) else [model]
    classifier = steps.pop()
    if not isinstance(classifier, CoupledBase):
        found = "" if classifier is model else "a Pipeline that ends in "
        remedy = " Pass its best_estimator_." if hasattr(model, "best_estimator_") else ""
        raise ValueError(
            "model must be a CoupledClassifier, a CoupledSVC or a Pipeline that ends in one, got "
            f"{found}{type(classifier).__name__}.{remedy}"
        )
    check_is_fitted(classifier)
    return steps, classifier


def _plan(steps: list[Any], classifier: Any) -> _Parts:
    """Return the pieces of the graph, or raise all reasons against it."""
    reasons: list[str] = []

    def planned(plan: Callable[..., Any], *parts: Any) -> Any:
        try:
            return plan(*parts)
        except Unsupported as reason:
            reasons.append(f"- {reason}")

    code, d = classifier.code_, classifier.n_features_in_
    pieces = _Parts(
        scalers=[planned(plan_scaler, step) for step in steps],
        columns=[
            planned(plan_scores, classifier.bank_, code, d),
            planned(plan_calibration, classifier.calibration_),
        ],
        combiner=planned(plan_combiner, classifier.combiner_, code, classifier.weights_),
        native=[]
        if classifier.native_ is None
        else [
            planned(plan_native, classifier.native_, "Use with_native=False."),
            planned(plan_calibration, classifier.native_calibration_),
        ],
        scaling=planned(plan_scaling, classifier.scaling_),
        least=plan_least(classifier.least_proba_),
        labels=planned(_plan_labels, classifier.classes_),
    )
    if reasons:
        raise NotImplementedError("\n".join(["this model cannot be exported to ONNX:", *reasons]))
    return pieces


def _plan_labels(classes: NDArray[Any]) -> Piece:
    """Return the piece (k, n) -> (n,) that gives the class of the largest value."""
    constant = _as_tensor(classes)

    def piece(graph: Graph, p: str) -> str:
        winners = graph.call("ArgMax", p, axis=0, keepdims=0)
        return graph.call("Gather", constant, winners, axis=0)

    return piece


def _as_tensor(classes: NDArray[Any]) -> NDArray[Any]:
    """Return the classes in a type that ONNX has."""
    kind = classes.dtype.kind
    if kind == "i" or (kind == "u" and classes.max() <= np.iinfo(np.int64).max):
        return classes.astype(np.int64)
    if kind == "f":
        return classes.astype(np.float64)
    if all(isinstance(label, str) for label in classes):
        return classes.astype(object)
    if kind in "bu":
        return classes
    raise Unsupported(
        f"labels of dtype {classes.dtype} have no type in ONNX. Fit the model with labels that are "
        "integers or strings."
    )


def _make_model(
    graph: Graph, classifier: Any, dtype: np.dtype[Any], opset: int, name: str
) -> onnx.ModelProto:
    from manyclass import __version__

    onnx = import_onnx()
    helper = onnx.helper
    kinds = dtype, _as_tensor(classifier.classes_).dtype
    number, label = map(helper.np_dtype_to_tensor_dtype, kinds)
    k = len(classifier.classes_)
    body = helper.make_graph(
        graph.nodes,
        name,
        [helper.make_tensor_value_info("X", number, ["n", classifier.n_features_in_])],
        [
            helper.make_tensor_value_info("probabilities", number, ["n", k]),
            helper.make_tensor_value_info("labels", label, ["n"]),
        ],
        graph.constants,
    )
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(
        body,
        opset_imports=opsets,
        # The oldest format that is sufficient: runtimes refuse formats that they do not know.
        ir_version=helper.find_min_ir_version_for(opsets),
        producer_name="manyclass",
        producer_version=__version__,
    )
    metadata = {
        "classes": json.dumps(_as_tensor(classifier.classes_).tolist()),
        "estimator": type(classifier._base_estimator()).__name__,
        "combiner": classifier.combiner_.key,
        "scaling": "" if classifier.scaling_ is None else type(classifier.scaling_).__name__,
    }
    helper.set_model_props(model, metadata)
    return model
