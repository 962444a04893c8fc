"""Write the models in tests/data that every later release must load.

Run ``python tests/storage/make_stored_models.py``. A file that exists stays: a release adds files,
and keeps those of earlier releases. ``--replace`` writes all of them again.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from sklearn.datasets import load_iris
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression

from manyclass import CoupledClassifier, CoupledSVC
from manyclass.storage import read_metadata, save_model
from manyclass.storage.trusted_types import IDENTIFIERS

DATA = Path(__file__).parents[1] / "data"
NAMES = DATA / "stored_identifiers.json"
X, y = load_iris(return_X_y=True)
ROWS = X[::10]
MODELS = {
    "stored_svc": CoupledSVC(C=2.0),
    "stored_one_vs_rest": CoupledClassifier(  # pooled with the multiclass model
        LogisticRegression(max_iter=1000),
        code="one-vs-rest",
        combiner="kl",
        calibration="sigmoid",
        cv=3,
        random_state=0,
    ),
    "stored_native": CoupledClassifier(
        LinearDiscriminantAnalysis(), code="native", calibration="beta", scaling="temperature", cv=3
    ),
}


def main(replace: bool) -> None:
    """Write the models with their predictions, and add new identifiers to the list."""
    for name, estimator in MODELS.items():
        path = DATA / f"{name}.skops"
        if path.exists() and not replace:
            continue
        model = estimator.fit(X, y)
        expected = model.predict_proba(ROWS).tolist()
        save_model(model, path, metadata={"rows": ROWS.tolist(), "probabilities": expected})
        versions = read_metadata(path)["versions"]
        print(path.name, path.stat().st_size, "bytes", *(f"{k} {v}" for k, v in versions.items()))
    known = [] if replace or not NAMES.exists() else json.loads(NAMES.read_text())
    NAMES.write_text(json.dumps(sorted({*known, *IDENTIFIERS}), indent=2) + "\n")


if __name__ == "__main__":
    main("--replace" in sys.argv)
