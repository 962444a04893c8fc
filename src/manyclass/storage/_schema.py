"""What the schema of a stored model may contain. It is checked before skops creates any object.

A schema is a tree of nodes in JSON, as skops writes it. A node names a class and how to load it. A
node whose ``__id__`` occurred before stands for the earlier object.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from typing import Any

Node = dict[str, Any]

LOADERS = frozenset(
    f"{kind}Node"
    for kind in (
        "Bytearray Bytes ConstructorFromReduce DType DefaultDict Dict Function Json List Loss "
        "MaskedArray Method NdArray Object OperatorFunc Partial RandomGenerator RandomState Set "
        "Slice SparseMatrix Tree Tuple Type"
    ).split()
)
"""The kinds of nodes that skops writes. References by a ``CachedNode`` are not among them."""
FIRST_PROTOCOL = 2  # of skops 0.11; older ones had other nodes
DEPTH = 100
"""A choice: nodes may be nested this deep. A pipeline in a coupled classifier takes about 20."""
BRACKETS = 8
"""A choice: brackets per node, at most. skops writes fewer than two."""


class Refused(ValueError):
    """A part of a file that no stored model has; the message names the part."""


class NotLoaded(ValueError):
    """Why a file is not loaded although it is whole; the message follows the file's name."""


def parse_schema(text: bytes) -> Node:
    """Return the schema. Text that would only fill the memory is not parsed."""
    nodes = text.count(b'"__loader__"')
    if text.count(b"[") + text.count(b"{") > BRACKETS * (nodes + 1):
        raise Refused("the schema has more brackets than its nodes need")
    schema = json.loads(text)
    if not isinstance(schema, dict):
        raise Refused("the schema is no node")
    newest = import_module("skops.io._protocol").PROTOCOL
    protocol = schema.get("protocol")
    if type(protocol) is not int or not FIRST_PROTOCOL <= protocol <= newest:
        raise Refused(f"the protocol of the schema is {protocol!r}")
    return schema


def named_members(schema: Node) -> dict[str, Node]:
    """Check all nodes of a schema; return the members that they name, and the node of each."""
    inspection = _Inspection()
    expanded = inspection.visit(schema, "model", 0)
    # skops writes an object in full wherever it occurs, so no valid schema grows by references.
    if expanded > 2 * inspection.n_nodes:
        raise Refused("the nodes of the schema refer to each other too often")
    return inspection.members


class _Inspection:
    """Visits the nodes of a schema in the order in which skops loads them."""

    def __init__(self) -> None:
        self.n_nodes = 0
        self.members: dict[str, Node] = {}
        self._sizes: dict[int, int | None] = {}
        self._first: dict[int, Node] = {}

    def visit(self, node: Any, where: str, depth: int) -> int:
        """Check a node and those below it; return how many there are if references are followed."""
        self._check_form(node, where, depth)
        self.n_nodes += 1
        identity = node.get("__id__") or None
        if identity in self._sizes and identity is not None:
            size = self._sizes[identity]
            if size is None or not _are_alike(node, self._first[identity]):
                raise Refused(f"{where} refers to an object that contains it, or to another one")
            self.n_nodes += sum(1 for _ in _nodes_below(node))
            return size
        if identity is not None:
            self._sizes[identity], self._first[identity] = None, node
        self._check_content(node, where)
        size = 1 + sum(
            self.visit(child, f"{where}.{name}", depth + 1) for name, child in _children(node)
        )
        if identity is not None:
            self._sizes[identity] = size
        return size

    def _check_form(self, node: Any, where: str, depth: int) -> None:
        if depth > DEPTH:
            raise Refused(f"{where[:100]}... is nested too deep")
        names = [node.get(key) for key in ("__module__", "__class__", "__loader__")]
        if not all(isinstance(name, str) for name in names) or names[2] not in LOADERS:
            raise Refused(f"{where} is no node of a stored model")
        identity = node.get("__id__")
        if identity is not None and type(identity) is not int:
            raise Refused(f"{where} has an identity that is no whole number")

    def _check_content(self, node: Node, where: str) -> None:
        loader, content = node["__loader__"], node.get("content")
        if "file" in node:
            self._check_file(node, where)
        if loader in ("DictNode", "DefaultDictNode"):
            special = [key for key in content or () if key.startswith("__")]
            if not isinstance(content, dict) or special:
                raise Refused(f"{where} has the key {special}, which objects use for themselves")
        elif loader == "JsonNode":
            value = json.loads(content) if isinstance(content, str) else content
            if not isinstance(content, str) or isinstance(value, list | dict):
                raise Refused(f"{where} is no single value")
        elif loader == "DTypeNode":
            if not isinstance(content, dict) or content.get("__loader__") != "NdArrayNode":
                raise Refused(f"{where} is no type of an array")
        elif loader in ("RandomStateNode", "RandomGeneratorNode"):
            _check_random(node, where)

    def _check_file(self, node: Node, where: str) -> None:
        name = node["file"]
        if not isinstance(name, str) or name in self.members:
            raise Refused(f"{where} names a member that another part has")
        self.members[name] = node


def _are_alike(a: Node, b: Node) -> bool:
    """Tell whether two nodes can be the same object."""
    keys = ("__loader__", "__module__", "__class__", "type")
    return all(a.get(key) == b.get(key) for key in keys)


def _children(node: Node) -> Iterator[tuple[str, Node]]:
    """Yield the nodes directly below a node, with names for messages."""
    for key in ("key_types", "shape", "content"):
        part = node.get(key)
        if isinstance(part, dict) and "__loader__" not in part:
            yield from ((name, child) for name, child in part.items() if isinstance(child, dict))
        elif isinstance(part, list):
            yield from ((str(place), child) for place, child in enumerate(part))
        elif isinstance(part, dict):
            yield key, part
    if "__reduce__" in node:
        yield "args", node["__reduce__"]["args"]


def _nodes_below(node: Node) -> Iterator[Node]:
    waiting = [node]
    while waiting:
        for _, child in _children(waiting.pop()):
            if isinstance(child, dict):
                yield child
                waiting.append(child)


def _check_random(node: Node, where: str) -> None:
    """Check the state of a generator. numpy does not check the place in a Mersenne twister."""
    try:
        state = node["content"]["content"] if node["__loader__"] == "RandomStateNode" else None
        if state is None:
            name = json.loads(
                node["content"]["bit_generator"]["content"]["bit_generator"]["content"]
            )
            valid = name in ("PCG64", "PCG64DXSM", "SFC64")
        else:
            place = json.loads(state["state"]["content"]["pos"]["content"])
            name = json.loads(state["bit_generator"]["content"])
            valid = name == "MT19937" and type(place) is int and 0 <= place <= 624
    except (KeyError, TypeError, ValueError):
        valid = False
    if not valid:
        raise Refused(f"{where} is no valid state of a random generator")
