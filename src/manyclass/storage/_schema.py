"""What the schema of a stored model may contain. It is checked before skops creates any object.

A schema is a tree of nodes in JSON, as skops writes it. A node names a class and how to load it. A
node whose ``__id__`` occurred before stands for the earlier object.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from manyclass.storage._forms import FORMS, MALFORMED, Node, Refused, children

FIRST_PROTOCOL = 2  # of skops 0.11; older ones had other nodes
DEPTH = 100
"""A choice: nodes may be nested this deep. A pipeline in a coupled classifier takes about 20."""
BRACKETS = 8
"""A choice: brackets per node, at most. skops writes fewer than two."""


class NotLoaded(ValueError):
    """Why a file is not loaded although it is whole; the message follows the file's name."""


def named_members(text: bytes) -> dict[str, Node]:
    """Check all nodes of a schema; return the members that they name, and the node of each."""
    n_nodes = text.count(b'"__loader__"')
    inspection = _Inspection()
    expanded = inspection.visit(_parsed(text, n_nodes), "model", 0)
    # skops writes an object in full wherever it occurs, so no valid schema grows by references.
    if expanded > n_nodes:
        raise Refused("the nodes of the schema refer to each other too often")
    return inspection.members


def _parsed(text: bytes, n_nodes: int) -> Node:
    """Return the schema. Text that would only fill the memory is not parsed."""
    if text.count(b"[") + text.count(b"{") > BRACKETS * (n_nodes + 1):
        raise Refused("the schema has more brackets than its nodes need")
    try:
        schema = json.loads(text)
    except MALFORMED as error:
        raise Refused(f"the schema is not JSON: {error}") from None
    if not isinstance(schema, dict):
        raise Refused("the schema is not a node")
    newest = import_module("skops.io._protocol").PROTOCOL
    protocol = schema.get("protocol")
    if type(protocol) is not int or not FIRST_PROTOCOL <= protocol <= newest:
        raise Refused(f"the protocol of the schema is {protocol!r}")
    return schema


class _Inspection:
    """Visits the nodes of a schema in the order in which skops loads them."""

    def __init__(self) -> None:
        self.members: dict[str, Node] = {}
        self._sizes: dict[int, int | None] = {}
        self._first: dict[int, Node] = {}

    def visit(self, node: Any, where: str, depth: int) -> int:
        """Check a node and those below it; return how many there are if references are followed."""
        self._check_form(node, where, depth)
        identity = node.get("__id__") or None
        if identity in self._sizes and identity is not None:
            size = self._sizes[identity]
            if size is None or not _are_alike(node, self._first[identity]):
                raise Refused(f"{where} refers to an object that contains it, or to another one")
            return size
        if identity is not None:
            self._sizes[identity], self._first[identity] = None, node
        below = children(node, where)
        if "file" in node:
            self._check_file(node, where)
        size = 1 + sum(self.visit(child, f"{where}.{name}", depth + 1) for name, child in below)
        if identity is not None:
            self._sizes[identity] = size
        return size

    def _check_form(self, node: Any, where: str, depth: int) -> None:
        if depth > DEPTH:
            raise Refused(f"{where[:100]}... is nested too deep")
        keys = ("__module__", "__class__", "__loader__")
        names = [node.get(key) for key in keys] if isinstance(node, dict) else [None]
        if not all(isinstance(name, str) for name in names) or names[2] not in FORMS:
            raise Refused(f"{where} is not a node of a stored model")
        identity = node.get("__id__")
        if identity is not None and type(identity) is not int:
            raise Refused(f"{where} has an identity that is not a whole number")

    def _check_file(self, node: Node, where: str) -> None:
        name = node["file"]
        if not isinstance(name, str) or name in self.members:
            raise Refused(f"{where} names a member that another part has")
        self.members[name] = node


def _are_alike(a: Node, b: Node) -> bool:
    """Tell whether two nodes can be the same object."""
    keys = ("__loader__", "__module__", "__class__", "type")
    return all(a.get(key) == b.get(key) for key in keys)
