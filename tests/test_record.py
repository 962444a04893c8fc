"""Models predict what they did when ``tests/data/record.npz`` was written; see ``record.py``."""

from __future__ import annotations

import numpy as np
import pytest
from record import CASES, RECORD, Skipped, difference, is_allowed, machine, read, run

# Elsewhere rounding differs, and what depends on it: probabilities by this much,
TOLERANCE = 1e-5
# but more in cases with these in their names, whose learners end somewhere within a tolerance of
# their own, which a last bit decides, or go many steps that each depend on the last.
LOOSE = {
    **{"linear-svc": 0.05, "ridge": 1e-4, "mlp": 1e-3, "sgd": 1e-3, "perceptron": 1e-3},
    **{"svc": 1e-3, "presets": 1e-3, "search": 1e-3, "pickle": 1e-3, "storage": 1e-3},
    **{"reliability": 1e-3, "options": 1e-3, "decisions": 1e-3, "n-jobs": 1e-3, "onnx": 1e-3},
}
# Numbers of steps, and of what ends at a bound, may be others there.
COUNTS = {"iterations", "converged", "n_iter", "n_iter_", "support_", "n_support_", "best"}

record = read(RECORD)
here = machine()


def test_every_case_is_recorded():
    assert list(record.cases) == list(CASES)


# Every sixth case: ``python tests/record.py --compare`` computes them all.
@pytest.mark.parametrize("name", list(CASES)[::6])
def test_as_recorded(name):
    was, now = record.machine["scikit-learn"], here["scikit-learn"]
    if was.split(".")[:2] != now.split(".")[:2]:
        pytest.skip(f"recorded with the learners of scikit-learn {was}, not {now}")
    try:
        new = run(name)
    except Skipped as reason:
        pytest.skip(str(reason))
    old = record.cases[name]
    if here == record.machine:
        assert is_allowed(name, old, new), f"differs by {difference(old, new):.3g}"
    else:
        check_elsewhere(old, new, max([v for k, v in LOOSE.items() if k in name] or [TOLERANCE]))


def check_elsewhere(old, new, tolerance):
    """Compare with the record of another machine."""
    assert old.keys() == new.keys()
    for key, values in old.items():
        kind, _, part = key.partition("/")
        if kind == "labels":
            clear = is_clear(old, part, tolerance)
            np.testing.assert_array_equal(new[key][clear], values[clear], err_msg=key)
        elif kind not in COUNTS:
            np.testing.assert_allclose(
                new[key], values, rtol=tolerance, atol=tolerance, err_msg=key
            )


def is_clear(arrays, part, tolerance):
    """Which rows have a class that is ahead of the next by more than what may differ."""
    names = [f"{kind}/{part}" if part else kind for kind in ("proba", "scores")]
    values = next(arrays[name] for name in names if name in arrays)
    if values.ndim == 1:
        return np.abs(values) > tolerance
    second, first = np.sort(values, axis=1)[:, -2:].T
    return first - second > tolerance * (1 + np.abs(first) + np.abs(second))
