"""The form of each kind of node in a schema, and the nodes below it, as skops writes them.

A form returns the nodes that skops would visit, with names for messages. It raises an error if a
part is missing or of another kind: a :class:`Refused` error, or any of ``MALFORMED``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import numpy as np

Node = dict[str, Any]
Children = list[tuple[str, Node]]
MALFORMED = (KeyError, TypeError, ValueError, AttributeError, RecursionError)
PLAIN_NAME = re.compile(r"[\w-]+\.(npy|npz|bin)")
KEYS: dict[tuple[str, str], Callable[[str], Any]] = {
    **{("builtins", kind.__name__): kind for kind in (str, int, float, bool)},
    **{
        ("numpy", kind.__name__): kind
        for kind in set(np.sctypeDict.values())
        if issubclass(kind, np.number | np.bool_ | np.str_)
    },
}
"""Types of the keys of a dictionary."""


class Refused(ValueError):
    """A part of a file that no stored model has; the message names the part."""


def _need(valid: bool, what: str = "is not a node of a stored model") -> None:
    if not valid:
        raise Refused(what)


def _named(*names: str) -> Callable[[Node], Children]:
    """Return the form of a node whose content has these nodes."""

    def form(node: Node) -> Children:
        return [(name, node["content"][name]) for name in names]

    return form


def _in_order(node: Node) -> Children:
    _need(isinstance(node["content"], list))
    return [(str(place), child) for place, child in enumerate(node["content"])]


def _nothing(node: Node) -> Children:
    return []


def _content(node: Node) -> Children:
    return [] if node.get("content") is None else [("content", node["content"])]


def _dictionary(node: Node) -> Children:
    content, types = node["content"], node["key_types"]
    _need(isinstance(content, dict) and types["__loader__"] == "ListNode")
    special = [key for key in content if key.startswith("__")]
    _need(not special, f"has the key {special}, which objects use for themselves")
    _need(len(types["content"]) == len(content), "has more keys than types of keys, or fewer")
    for key, kind in zip(content, types["content"], strict=True):
        try:
            KEYS[kind["__module__"], kind["__class__"]](key)
        except MALFORMED:
            raise Refused(f"has the key {key[:40]!r}, which is not of its type") from None
    return [("key_types", types), *content.items()]


def _single_value(node: Node) -> Children:
    value = json.loads(node["content"])
    _need(not isinstance(value, list | dict), "is not a single value")
    return []


def _member(node: Node) -> Children:
    _need(PLAIN_NAME.fullmatch(node["file"]) is not None, "names no member of the archive")
    return []


def _array(node: Node) -> Children:
    _need(node["__class__"] != "void", "is a record of bytes")
    if node["type"] == "numpy":
        return _member(node)
    _need(node["type"] == "json" and node["shape"]["__loader__"] == "TupleNode")
    _need(all(type(json.loads(side["content"])) is int for side in node["shape"]["content"]))
    return [("shape", node["shape"]), *_in_order(node)]


def _sparse(node: Node) -> Children:
    _need(node["type"] == "scipy")
    return _member(node)


def _dtype(node: Node) -> Children:
    array = node["content"]
    plain = array["__loader__"] == "NdArrayNode" and array["type"] == "numpy"
    _need(plain, "is not a type of an array")
    return [("content", array)]


def _method(node: Node) -> Children:
    _need(isinstance(node["content"]["func"], str))
    return [("obj", node["content"]["obj"])]


def _reduced(node: Node) -> Children:
    return [("args", node["__reduce__"]["args"]), ("content", node["content"])]


def _slice(node: Node) -> Children:
    bounds = [node["content"][name] for name in ("start", "stop", "step")]
    _need(all(bound is None or type(bound) is int for bound in bounds))
    return []


def _random_state(node: Node) -> Children:
    """Check a state. numpy does not check the place in a Mersenne twister."""
    state = node["content"]["content"]
    place = json.loads(state["state"]["content"]["pos"]["content"])
    known = json.loads(state["bit_generator"]["content"]) == "MT19937"
    _need(known and type(place) is int and 0 <= place <= 624)
    return [("content", node["content"])]


def _generator(node: Node) -> Children:
    content = node["content"]
    name = json.loads(content["bit_generator"]["content"]["bit_generator"]["content"])
    _need(name in ("PCG64", "PCG64DXSM", "SFC64"))
    return [(name, content[name]) for name in ("bit_generator", "seed_seq")]


def _random(form: Callable[[Node], Children]) -> Callable[[Node], Children]:
    def checked(node: Node) -> Children:
        try:
            return form(node)
        except MALFORMED:
            raise Refused("is not a valid state of a random generator") from None

    return checked


FORMS: dict[str, Callable[[Node], Children]] = {
    "BytesNode": _member,
    "ConstructorFromReduceNode": _content,
    "DTypeNode": _dtype,
    "DefaultDictNode": _named("main", "default_factory"),
    "DictNode": _dictionary,
    "FunctionNode": _nothing,
    "JsonNode": _single_value,
    "ListNode": _in_order,
    "LossNode": _reduced,
    "MaskedArrayNode": _named("data", "mask"),
    "MethodNode": _method,
    "NdArrayNode": _array,
    "ObjectNode": _content,
    "OperatorFuncNode": lambda node: [("attrs", node["attrs"])],
    "PartialNode": _named("func", "args", "kwds", "namespace"),
    "RandomGeneratorNode": _random(_generator),
    "RandomStateNode": _random(_random_state),
    "SetNode": _in_order,
    "SliceNode": _slice,
    "SparseMatrixNode": _sparse,
    "TreeNode": _reduced,
    "TupleNode": _in_order,
    "TypeNode": _nothing,
}
"""The kinds of nodes that skops writes. Missing are references by a ``CachedNode``, and the
``BytearrayNode``, which takes nine times the memory of its bytes."""

MAKERS: dict[str, tuple[str, ...]] = {
    "manyclass": ("ObjectNode", "TupleNode", "TypeNode"),
    "numpy.dtype": ("DTypeNode",),
    "scipy.sparse._csr": ("SparseMatrixNode",),
}
"""The nodes that may create a type, by its name or module, where its constructor must not be
called: ``csr_array((10**10, 1))`` fills the memory, and ``dtype`` makes types with addresses."""


def children(node: Node, where: str) -> Children:
    """Return the nodes below a node, after a check of its form."""
    module, name, loader = node["__module__"], node["__class__"], node["__loader__"]
    makers = MAKERS.get(module) or MAKERS.get(f"{module}.{name}")
    if makers is not None and loader not in makers:
        raise Refused(f"{where} makes a {name} by a {loader}, as no stored model does")
    try:
        return FORMS[loader](node)
    except Refused as error:
        raise Refused(f"{where} {error}") from None
    except MALFORMED as error:
        reason = f"{type(error).__name__} {error}"[:60]
        raise Refused(f"{where} does not have the form of a {loader} ({reason})") from None
