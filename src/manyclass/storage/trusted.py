"""The types that :func:`manyclass.storage.load_model` loads without permission."""

from __future__ import annotations

from manyclass.storage.identifiers import IDENTIFIERS

TRUSTED: tuple[str, ...] = (
    *sorted(IDENTIFIERS),
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
)
"""Names of the types that are loaded without permission. skops itself trusts more: plain Python
values, numpy's arrays and scikit-learn's estimators. The decision trees of scikit-learn are not
trusted: its compiled code follows the indices in a tree without a check."""
