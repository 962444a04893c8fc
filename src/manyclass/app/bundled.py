"""Small data sets that come with scikit-learn, by name, to try the command line on."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn import datasets

from manyclass.app.columns import conform, import_pandas, kinds_of

if TYPE_CHECKING:
    import pandas as pd

BUNDLED: dict[str, Callable[[], Any]] = {
    "breast-cancer": datasets.load_breast_cancer,
    "digits": datasets.load_digits,
    "iris": datasets.load_iris,
    "wine": datasets.load_wine,
}


def load(name: str) -> tuple[pd.DataFrame, pd.Series]:
    """Return the features and the labels of a data set of ``BUNDLED``."""
    pd = import_pandas()
    data = BUNDLED[name]()
    X = pd.DataFrame(np.asarray(data.data, dtype=np.float64), columns=list(data.feature_names))
    y = np.asarray(data.target_names)[data.target]
    return conform(X, kinds_of(X)), pd.Series(y, name="class")
