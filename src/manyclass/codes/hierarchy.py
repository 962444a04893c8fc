"""A hierarchy of classes that the user knows."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_consistent_length, check_random_state

from manyclass._lib.arrays import Code, Floats, Places
from manyclass._lib.labels import is_missing
from manyclass._lib.messages import quoted, some_quoted
from manyclass.codes.checks import check_integer
from manyclass.codes.random import Seed
from manyclass.codes.trees import Grower, Split, as_code

ROOT = "root"
"""The name of the node of all classes, if the hierarchy does not name it."""
_SEQUENCES = list | tuple | set | np.ndarray
TOO_DEEP = (
    "the hierarchy has too many levels for Python's recursion: leave out nodes with a single "
    "child, or merge levels."
)


class Nodes(NamedTuple):
    """The nodes of a hierarchy, each after its parent."""

    names: list[Any]
    parents: list[int]
    """-1 for the root."""
    children: list[list[int]]
    members: list[Places]
    """The classes below each node, as places among the sorted labels."""

    @property
    def depths(self) -> list[int]:
        """The number of edges between the root and each node."""
        depths: list[int] = []
        for parent in self.parents:
            depths.append(0 if parent < 0 else depths[parent] + 1)
        return depths


class Hierarchy(BaseEstimator):
    """A tree over the classes with any number of children, as a code.

    Pass it as ``code`` of :class:`~manyclass.CoupledClassifier`. The model then has probabilities
    of inner nodes, and decisions that stop at an inner node if the classes below it are not
    certain enough.

    Parameters
    ----------
    tree : nested dict or list
        A dict has names of nodes as keys and their children as values; a list or array has
        children without a name of their own. Everything else is a class label, and so is a key
        with the value None. Every label of y must occur once.
    n_trees : int, default=4
        A node with more than two children is split step by step, as in
        :class:`~manyclass.codes.ClassTrees`, in this many ways, which are averaged.
    n_candidates : int, default=5
        See :class:`~manyclass.codes.ClassTrees`.

    See Also
    --------
    manyclass.metrics.hierarchy_distance : Mean distance of decisions and labels in the tree.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.codes import Hierarchy
    >>> animals = Hierarchy({"mammal": ["cat", "dog"], "bird": ["gull", "owl"]})
    >>> animals.node_names
    ['root', 'mammal', 'cat', 'dog', 'bird', 'gull', 'owl']
    >>> p = np.array([[0.45, 0.45, 0.05, 0.05], [0.05, 0.90, 0.03, 0.02]])  # cat, dog, gull, owl
    >>> animals.node_probabilities(p)[:, 1]
    array([0.9 , 0.95])
    >>> animals.decide(p, confidence=0.8).tolist()
    ['mammal', 'dog']
    """

    def __init__(self, tree: Any, n_trees: int = 4, n_candidates: int = 5):
        self.tree = tree
        self.n_trees = n_trees
        self.n_candidates = n_candidates

    @classmethod
    def from_parents(
        cls, parents: Mapping[Any, Any] | Iterable[tuple[Any, Any]], **options: int
    ) -> Hierarchy:
        """Return the hierarchy in which each node points to its parent.

        Parameters
        ----------
        parents : dict, Series, iterable of pairs, or array or DataFrame of shape (m, 2)
            The parent of each node; None or NaN means no parent. Nodes without children are
            classes.
        **options : int
            Other parameters.

        Examples
        --------
        >>> from manyclass.codes import Hierarchy
        >>> Hierarchy.from_parents({"cat": "mammal", "dog": "mammal", "owl": "bird"}).tree
        {'mammal': {'cat': None, 'dog': None}, 'bird': {'owl': None}}
        """
        pairs: Any = parents.items() if hasattr(parents, "items") else parents
        if getattr(parents, "ndim", 1) == 2:
            pairs = np.asarray(parents, dtype=object)
        parent_of: dict[Any, Any] = {}
        children: dict[Any, list[Any]] = {}
        without_parent: dict[Any, None] = {}
        for pair in pairs:
            if not isinstance(pair, tuple | list | np.ndarray) or len(pair) != 2:
                raise ValueError(f"parents must have pairs (node, parent), got {quoted(pair)}.")
            for node in pair:
                _check_name(node)
            child, parent = pair
            if is_missing(parent):
                without_parent[child] = None
                continue
            if child in parent_of and parent_of[child] == parent:
                continue  # the pair occurs twice
            if child in parent_of:
                raise ValueError(
                    f"node {quoted(child)} has two parents, {quoted(parent_of[child])} and "
                    f"{quoted(parent)}: keep one of them."
                )
            parent_of[child] = parent
            children.setdefault(parent, []).append(child)
        _check_no_cycle(parent_of)
        roots = [node for node in {**children, **without_parent} if node not in parent_of]

        def nested(node: Any) -> dict[Any, Any] | None:
            return {child: nested(child) for child in children[node]} if node in children else None

        try:
            return cls({root: nested(root) for root in roots}, **options)
        except RecursionError:
            raise ValueError(TOO_DEEP) from None

    # ------------------------------------------------------------------ the tree

    def nodes(self) -> Nodes:
        """Return the nodes, each after its parent; raise a ``ValueError`` if it is not a tree."""
        names, parents = _flatten(self.tree)
        children: list[list[int]] = [[] for _ in names]
        for node, parent in enumerate(parents):
            if parent >= 0:
                children[parent].append(node)
        leaves = [node for node, below in enumerate(children) if not below]
        if len(leaves) < 2:
            raise ValueError(
                f"the hierarchy has a single leaf, {quoted(names[leaves[0]])}: it needs two "
                "classes or more."
            )
        members: list[Any] = [[] for _ in names]
        for place, leaf in enumerate(_sorted(leaves, names)):
            members[leaf] = [place]
        for node in range(len(names) - 1, 0, -1):
            members[parents[node]] = members[node] + members[parents[node]]
        return Nodes(
            names, parents, children, [np.sort(np.array(m, dtype=np.intp)) for m in members]
        )

    @property
    def node_names(self) -> list[Any]:
        """Names of all nodes, each after its parent; leaves are named by their class."""
        return self.nodes().names

    def classes(self) -> NDArray:
        """Return the labels of all leaves, sorted."""
        nodes = self.nodes()
        leaves = [node for node, below in enumerate(nodes.children) if not below]
        return np.array([nodes.names[leaf] for leaf in _sorted(leaves, nodes.names)])

    def build(
        self, X: Any, y: ArrayLike, k: int, random_state: Seed = None, sample_weight=None
    ) -> Code:
        """Return the code matrix; see :meth:`ClassTrees.build`.

        X is only used for nodes with more than two children.
        """
        nodes = self.nodes()
        self._check_labels(np.unique(np.asarray(y)), k)
        n_trees = check_integer("n_trees", self.n_trees, 1)
        n_candidates = check_integer("n_candidates", self.n_candidates, 1)
        rng, grower = check_random_state(random_state), None
        if any(len(below) > 2 for below in nodes.children):
            grower = Grower.of(X, y, k, rng, n_candidates, sample_weight)
        splits = _splits(nodes, grower)
        return as_code(k, [s for _ in range(n_trees if grower else 1) for s in splits()])

    def _check_labels(self, labels: NDArray, k: int) -> None:
        """Raise a ``ValueError`` unless the leaves are the classes of y."""
        leaves, known = dict.fromkeys(self.classes()), set(labels)
        missing = [label for label in labels if label not in leaves]
        unknown = [leaf for leaf in leaves if leaf not in known]
        inner = [label for label in missing if label in self.node_names]
        if inner:
            raise ValueError(
                f"node {quoted(inner[0])} of the hierarchy is a class of y, but has children: give "
                "the class a leaf of its own."
            )
        if missing:
            also = f" Its leaves {some_quoted(unknown)} are not in y." if unknown else ""
            raise ValueError(
                f"the hierarchy has no leaf for {some_quoted(missing)} of y: add the missing "
                f"classes.{also}"
            )
        if len(leaves) != k:
            raise ValueError(
                f"the hierarchy has leaves that are not classes of y: {some_quoted(unknown)}. "
                "Remove them, or pass samples of them."
            )

    # ------------------------------------------------------------------ probabilities

    def node_probabilities(self, p: ArrayLike) -> Floats:
        """Return the probabilities of all nodes: sums over the classes below them.

        Parameters
        ----------
        p : array-like of shape (n, k)
            Class probabilities, in the sorted order of the labels.

        Returns
        -------
        ndarray of shape (n, m)
            In the order of ``node_names``.
        """
        p = np.asarray(p, dtype=np.float64)
        members = self.nodes().members
        if p.ndim != 2 or p.shape[1] != len(members[0]):
            raise ValueError(
                f"p has shape {p.shape}, but the hierarchy has {len(members[0])} classes: pass "
                "one column for each."
            )
        if not (p >= 0.0).all():
            row = int(np.argmin((p >= 0.0).all(axis=1)))
            raise ValueError(f"row {row} of p has a negative number or NaN: pass probabilities.")
        return np.stack([p[:, below].sum(axis=1) for below in members], axis=1)

    def decide(self, p: ArrayLike, confidence: float = 0.5) -> NDArray:
        """Return the most specific node of each row that is probable enough.

        From the root, the decision goes to the most probable child for as long as the
        child's probability is at least ``confidence``.

        Parameters
        ----------
        p : array-like of shape (n, k)
            Class probabilities, in the sorted order of the labels.
        confidence : float, default=0.5
            Between 0 and 1. With 0.5, the expected distance in the tree between the decision and
            the true class is as small as possible. If a step down that is wrong costs b, and one
            that is right gains a, it is b / (a + b). With 0, decisions are classes.

        Returns
        -------
        ndarray of shape (n,)
            Names of nodes.
        """
        if not isinstance(confidence, Real) or not 0.0 <= float(confidence) <= 1.0:
            raise ValueError(f"confidence must be between 0 and 1, got {quoted(confidence)}.")
        nodes, of_node = self.nodes(), self.node_probabilities(p)
        place = np.zeros(len(of_node), dtype=np.intp)
        for node, below in enumerate(nodes.children):
            rows = np.flatnonzero(place == node)
            if below and len(rows):
                children = np.array(below)
                best = children[of_node[np.ix_(rows, children)].argmax(axis=1)]
                sure = of_node[rows, best] >= confidence
                place[rows[sure]] = best[sure]
        names = np.empty(len(nodes.names), dtype=object)
        names[:] = nodes.names
        return names[place]

    def distances(self, a: Iterable[Hashable], b: Iterable[Hashable]) -> NDArray[np.int64]:
        """Return the number of edges between pairs of nodes, named as in ``node_names``."""
        a, b, nodes = list(a), list(b), self.nodes()
        check_consistent_length(a, b)
        place, depths = {name: i for i, name in enumerate(nodes.names)}, nodes.depths
        unknown = [name for name in (*a, *b) if name not in place]
        if unknown:
            raise ValueError(f"the hierarchy has no node {some_quoted(unknown)}.")

        def distance(first: int, second: int) -> int:
            steps = 0
            while first != second:
                if depths[first] < depths[second]:
                    first, second = second, first
                first, steps = nodes.parents[first], steps + 1
            return steps

        pairs = zip(a, b, strict=True)
        return np.array([distance(place[x], place[y]) for x, y in pairs], dtype=np.int64)


def _splits(nodes: Nodes, grower: Grower | None):
    """Return a function that yields the binary splits of all nodes, in a new way at each call."""

    def splits() -> Iterator[Split]:
        for below in nodes.children:
            groups = [nodes.members[child] for child in below]
            if len(groups) == 2:
                yield groups[0], groups[1]
            elif grower is not None and len(groups) > 2:
                yield from grower.binary_tree(groups)

    return splits


def _check_no_cycle(parent_of: Mapping[Any, Any]) -> None:
    safe: set[Any] = set()
    for node in parent_of:
        path: dict[Any, None] = {}
        while node in parent_of and node not in safe:
            if node in path:
                raise ValueError(f"node {quoted(node)} is its own ancestor: break the cycle.")
            path[node] = None
            node = parent_of[node]
        safe.update(path)


def _flatten(tree: Any) -> tuple[list[Any], list[int]]:
    """Return the names and the parents of all nodes, each after its parent."""
    names: list[Any] = []
    parents: list[int] = []
    known: set[Any] = set()

    def add(name: Any, parent: int, below: Any) -> None:
        _check_name(name)
        if name in known:
            raise ValueError(
                f"node {quoted(name)} occurs twice in the hierarchy: give every node one parent "
                "and a name of its own."
            )
        known.add(name)
        names.append(name)
        parents.append(parent)
        place, children = len(names) - 1, list(_children(below))
        if not children and (below is not None or parent < 0):
            advice = "remove it" if parent >= 0 else "pass two classes or more"
            raise ValueError(f"node {quoted(name)} of the hierarchy has no children: {advice}.")
        for own, deeper in children:
            if own is None and not _joined(deeper):
                raise ValueError(
                    f"node {quoted(name)} of the hierarchy has the child {quoted(deeper)}, which "
                    "is neither a class nor a node with children: remove it."
                )
            add(_joined(deeper) if own is None else own, place, deeper)

    try:
        _check_no_loop(ROOT, tree, frozenset())
        if isinstance(tree, Mapping) and len(tree) == 1:
            ((root, below),) = tree.items()
            add(root, -1, below)
        else:
            add(ROOT, -1, tree)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None
    return names, parents


def _check_name(name: Any) -> None:
    if not isinstance(name, Hashable):
        raise TypeError(
            f"the hierarchy has the node {quoted(name)} of type {type(name).__name__}, which "
            "cannot be a label: use nested dicts and lists of labels."
        )


def _check_no_loop(name: Any, below: Any, above: frozenset[int]) -> None:
    """Raise a ``ValueError`` if a dict or list is among those above it, which are given by id."""
    if id(below) in above:
        raise ValueError(f"node {quoted(name)} is its own ancestor: break the cycle.")
    if isinstance(below, Mapping | list):
        for own, deeper in _children(below):
            _check_no_loop(name if own is None else own, deeper, above | {id(below)})


def _sorted(leaves: list[int], names: list[Any]) -> list[int]:
    """Return leaves in the order of their labels."""
    try:
        return sorted(leaves, key=names.__getitem__)
    except TypeError as error:
        raise TypeError(
            f"the leaves of the hierarchy cannot be sorted ({error}): give all labels one type."
        ) from error


def _children(below: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the name (None if it has none) and the children of each child."""
    if isinstance(below, Mapping):
        yield from below.items()
    elif isinstance(below, _SEQUENCES):
        # Sets have another order in each run.
        for child in sorted(below, key=str) if isinstance(below, set) else below:
            is_leaf = not isinstance(child, Mapping | _SEQUENCES)
            if isinstance(child, Mapping):
                yield from child.items()
            else:
                yield (child, None) if is_leaf else (None, child)
    elif below is not None:
        yield below, None


def _joined(below: Any) -> str:
    """Return the name of a node that has none: those of its children."""
    return " + ".join(
        str(_joined(deeper) if own is None else own) for own, deeper in _children(below)
    )
