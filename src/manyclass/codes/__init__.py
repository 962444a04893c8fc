"""Code matrices: which classes each binary problem compares.

A code has one row per class and one column per binary problem. In column ``b`` the
classes with +1 form the positive side, those with -1 the negative side, and those
with 0 take no part (Allwein, Schapire and Singer, 2000). The constructors here
return matrices that pass :func:`check_code`; users may pass their own.

``build`` has the constructors and the names of codes, ``random`` the random codes, ``checks`` what
makes a matrix a code and which kind, ``identifiability`` whether a code determines the class
probabilities, ``auditing`` a report of all this. Codes that are built from data are in ``trees``.
An object is such a code if it has a method ``build(X, y, k, random_state)`` that returns the
matrix; y are labels, and rows of the matrix are in their sorted order.
"""

from __future__ import annotations

from manyclass.codes.auditing import Audit, audit
from manyclass.codes.build import (
    FROM_DATA,
    NAMES,
    by_name,
    complete,
    is_from_data,
    is_grouped,
    make_code,
    n_classes_of,
    one_vs_one,
    one_vs_rest,
    ordinal,
)
from manyclass.codes.checks import (
    check_code,
    is_dense,
    is_one_vs_rest,
    pair_columns,
)
from manyclass.codes.hierarchy import Hierarchy
from manyclass.codes.identifiability import check_identifiable, is_identifiable
from manyclass.codes.random import dense_random, sparse_random
from manyclass.codes.tree_structure import Trees, count_trees, find_trees
from manyclass.codes.trees import ClassTrees, QAry, class_trees

__all__ = ["FROM_DATA", "NAMES", "by_name", "complete", "is_from_data", "is_grouped", "make_code"]
__all__ += ["n_classes_of", "one_vs_one", "one_vs_rest", "ordinal"]
__all__ += ["Audit", "audit", "dense_random", "sparse_random"]
__all__ += ["check_code", "check_identifiable", "is_dense", "is_identifiable", "is_one_vs_rest"]
__all__ += [
    "ClassTrees",
    "Hierarchy",
    "QAry",
    "Trees",
    "class_trees",
    "count_trees",
    "find_trees",
    "pair_columns",
]
