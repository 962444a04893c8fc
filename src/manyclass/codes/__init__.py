"""Code matrices: which classes each binary problem compares.

A code has one row per class and one column per binary problem. In column ``b`` the
classes with +1 form the positive side, those with -1 the negative side, and those
with 0 take no part (Allwein, Schapire and Singer, 2000). The constructors here
return matrices that pass :func:`check_code`; users may pass their own.

``build`` has the constructors and the names of codes, ``random`` the random codes, ``checks`` what
makes a matrix a code and which kind, ``identifiability`` whether a code determines the class
probabilities, ``auditing`` a report of all this.
"""

from __future__ import annotations

from manyclass.codes.auditing import Audit, audit
from manyclass.codes.build import (
    NAMES,
    by_name,
    complete,
    n_classes_of,
    one_vs_one,
    one_vs_rest,
    ordinal,
)
from manyclass.codes.checks import check_code, is_dense, is_one_vs_rest, pair_columns
from manyclass.codes.identifiability import check_identifiable, is_identifiable
from manyclass.codes.random import dense_random, sparse_random

__all__ = ["NAMES", "by_name", "complete", "n_classes_of", "one_vs_one", "one_vs_rest", "ordinal"]
__all__ += ["Audit", "audit", "dense_random", "sparse_random"]
__all__ += ["check_code", "check_identifiable", "is_dense", "is_identifiable", "is_one_vs_rest"]
__all__ += ["pair_columns"]
