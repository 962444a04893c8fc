"""A builder of ONNX graphs: call operators, and pass values by name.

Inside the graphs, samples lie along the last axis. A part of an array of columns, of classes or of
pairs is then a contiguous block, and inner loops run over samples. All numbers are float64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from manyclass._lib.extras import import_extra


class Unsupported(Exception):
    """A part of a model cannot be exported; the message says why, and what to do."""


def import_onnx() -> Any:
    """Return the package onnx, or say how to install it."""
    return import_extra("onnx", "to_onnx needs", extra="onnx")


class Graph:
    """The nodes and constants of a graph.

    Constants may have ``max_bytes``: protobuf's limit of 2 GB, less 1 MB for the nodes. Equal
    constants of up to ``small`` entries are stored once.
    """

    def __init__(self, *, max_bytes: int = 2**31 - 2**20, small: int = 64) -> None:
        self._onnx = import_onnx()
        self._max_bytes, self._max_small = max_bytes, small
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self._small: dict[tuple[str, tuple[int, ...], str], str] = {}
        self._n_bytes = 0

    def call(self, operator: str, *inputs: str | ArrayLike, **attributes: Any) -> str:
        """Add a node and return the name of its value.

        Inputs are names of values, or numbers and arrays, which become constants.
        """
        return self._add(operator, inputs, attributes, f"{operator.lower()}_{len(self.nodes) + 1}")

    def name(self, value: str, name: str) -> None:
        """Give a value the name of an output."""
        self._add("Identity", [value], {}, name)

    def _add(self, operator: str, inputs: Sequence[Any], attributes: Any, output: str) -> str:
        names = [x if isinstance(x, str) else self.constant(np.asarray(x)) for x in inputs]
        make_node = self._onnx.helper.make_node
        self.nodes.append(make_node(operator, names, [output], name=output, **attributes))
        return output

    def constant(self, array: NDArray[Any]) -> str:
        """Return the name of a constant; small ones that are equal share it."""
        array = np.array(array, order="C")  # a copy: the graph must not change with the model
        is_small = array.size <= self._max_small
        key = array.dtype.str, array.shape, repr(array.tolist()) if is_small else ""
        if key in self._small:
            return self._small[key]
        name = f"constant_{len(self.constants) + 1}"
        if is_small:
            self._small[key] = name
        self._n_bytes += array.nbytes
        if self._n_bytes > self._max_bytes:
            raise ValueError(
                "the model has more than 2 GB of numbers, the limit of the ONNX format. Fit it on "
                "fewer samples or features, or with another estimator or a smaller code."
            )
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    # ------------------------------------------------------------------ what is often needed

    def block(self, x: str, *ranges: tuple[int, int]) -> str:
        """Return ``x[first:last, ...]`` for the leading axes."""
        first, last = np.array(ranges, dtype=np.int64).T
        return self.call("Slice", x, first, last, np.arange(len(ranges)))

    def total(self, x: str, axis: int) -> str:
        """Sum along an axis, which stays with length 1."""
        return self.call("ReduceSum", x, np.array([axis]), keepdims=1)

    def clip(self, x: str, lowest: float, highest: float) -> str:
        """Move values into an interval."""
        return self.call("Clip", x, lowest, highest)

    def inverse_odds(self, x: str) -> str:
        """Return 1 / (1 + exp(x)), which overflows to 0 and not to NaN."""
        return self.call("Div", 1.0, self.call("Add", self.call("Exp", x), 1.0))

    def normalised(self, x: str) -> str:
        """Divide each sample by its sum over the first axis."""
        return self.call("Div", x, self.total(x, axis=0))

    def ones_like(self, x: str) -> str:
        """Return ones in the shape of ``x``."""
        return self.call("Expand", 1.0, self.call("Shape", x))

    def cast(self, x: str, dtype: DTypeLike) -> str:
        """Return values as another type of numbers."""
        number = self._onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
        return self.call("Cast", x, to=number)


Piece = Callable[[Graph, str], str]
"""Takes the name of an array with samples along the last axis, and returns that of another."""
