from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

from manyclass.metrics import (
    classwise_calibration_error,
    expected_calibration_error,
    reliability_curve,
    wilson_interval,
    zadrozny_mse,
)

CALIBRATION_ERRORS = [expected_calibration_error, classwise_calibration_error]
METRICS = [zadrozny_mse, *CALIBRATION_ERRORS]


def random_problem(seed: int, n: int = 60, k: int = 4):
    """Labels (every class occurs) and probabilities on a coarse grid, so that there are ties."""
    rng = np.random.default_rng(seed)
    counts = rng.multinomial(8, rng.dirichlet(np.ones(k)), size=n)
    y = np.r_[np.arange(k), rng.integers(0, k, n - k)]
    return y, counts / 8


def calibrated_problem(n: int = 40000, k: int = 4, seed: int = 0):
    """Labels drawn from the very probabilities that are stated."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), size=n)
    y = (rng.random((n, 1)) > p.cumsum(axis=1)).sum(axis=1)
    return np.minimum(y, k - 1), p


def naive_error(stated, event, n_bins):
    """Calibration error over bins ((b-1)/n_bins, b/n_bins], in plain loops."""
    error = 0.0
    for b in range(n_bins):
        members = [
            i
            for i, s in enumerate(stated)
            if (b / n_bins < s or b == 0) and (s <= (b + 1) / n_bins)
        ]
        if members:
            gap = sum(stated[i] for i in members) - sum(event[i] for i in members)
            error += abs(gap) / len(stated)
    return error


seeds = st.integers(0, 2**32 - 1)
law = settings(deadline=None, max_examples=20)


@given(seeds, st.integers(1, 20))
@law
def test_calibration_errors_match_plain_loops(seed, n_bins):
    y, p = random_problem(seed)
    top = naive_error(p.max(axis=1), p.argmax(axis=1) == y, n_bins)
    assert expected_calibration_error(y, p, n_bins=n_bins) == pytest.approx(top, abs=1e-12)
    each = np.mean([naive_error(p[:, c], y == c, n_bins) for c in range(4)])
    assert classwise_calibration_error(y, p, n_bins=n_bins) == pytest.approx(each, abs=1e-12)


@given(seeds)
@law
def test_mse_is_the_brier_score_divided_by_the_number_of_classes(seed):
    y, p = random_problem(seed)
    brier = np.mean(
        [sum((float(j == c) - p[i, j]) ** 2 for j in range(4)) for i, c in enumerate(y)]
    )
    assert zadrozny_mse(y, p) == pytest.approx(brier / 4, abs=1e-14)


def test_mse_matches_scikit_learn():
    y, p = random_problem(3)
    try:
        brier = brier_score_loss(y, p, scale_by_half=False)
    except (TypeError, ValueError):
        pytest.skip("this scikit-learn has no multiclass Brier score")
    assert zadrozny_mse(y, p) == pytest.approx(brier / 4, abs=1e-14)


@pytest.mark.parametrize("strategy", ["uniform", "quantile"])
@pytest.mark.parametrize("metric", CALIBRATION_ERRORS)
def test_calibration_error_of_calibrated_and_distorted_probabilities(metric, strategy):
    y, p = calibrated_problem()
    distorted = p**3 / (p**3).sum(axis=1, keepdims=True)
    assert metric(y, p, strategy=strategy) < 0.012
    assert metric(y, distorted, strategy=strategy) > 0.05


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("options", [{}, {"strategy": "quantile", "n_bins": 5}])
@given(seed=seeds)
@law
def test_integer_weights_are_repeats(metric, options, seed):
    options = {} if metric is zadrozny_mse else options
    y, p = random_problem(seed)
    weight = np.random.default_rng(seed).integers(0, 4, len(y))
    weight[:4] += 1
    repeated = metric(np.repeat(y, weight), np.repeat(p, weight, axis=0), **options)
    assert metric(y, p, sample_weight=weight, **options) == pytest.approx(repeated, abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
@given(seed=seeds)
@law
def test_order_of_samples_and_names_of_classes_do_not_matter(metric, seed):
    y, p = random_problem(seed)
    value = metric(y, p)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))
    assert metric(y[rows], p[rows]) == pytest.approx(value, abs=1e-12)
    # Columns permuted would break ties of the top label elsewhere: break them first.
    p = 0.999 * p + 0.001 * np.array([0.4, 0.3, 0.2, 0.1])
    names = np.array(["d", "a", "c", "b"])
    columns = rng.permutation(4)
    renamed = metric(names[y], p[:, columns], classes=names[columns])
    assert renamed == pytest.approx(metric(y, p), abs=1e-12)


@pytest.mark.parametrize("metric", METRICS)
def test_zero_for_certain_and_right_one_for_certain_and_wrong(metric):
    y = np.array([0, 1, 2])
    assert metric(y, np.eye(3)) == 0
    wrong = metric(y, np.roll(np.eye(3), 1, axis=1))
    assert wrong == pytest.approx(1 if metric is expected_calibration_error else 2 / 3)


@pytest.mark.parametrize("label", [0, 1])
@pytest.mark.parametrize("n_bins", [3, 10])
def test_reliability_curve_of_a_class_is_that_of_scikit_learn(label, n_bins):
    y, p = calibrated_problem(500, 3)
    observed, stated = calibration_curve(y == label, p[:, label], n_bins=n_bins)
    curve = reliability_curve(y, p, label=label, n_bins=n_bins)
    np.testing.assert_allclose(curve.stated, stated)
    np.testing.assert_allclose(curve.observed, observed)
    assert curve.weight.sum() == 500


def test_reliability_curve_of_the_top_label():
    y, p = random_problem(7)
    curve = reliability_curve(y, p, n_bins=6)
    assert (np.diff(curve.stated) > 0).all()
    assert curve.weight @ curve.stated == pytest.approx(p.max(axis=1).sum())
    assert curve.weight @ curve.observed == pytest.approx(np.sum(p.argmax(axis=1) == y))
    gap = np.average(abs(curve.stated - curve.observed), weights=curve.weight)
    assert expected_calibration_error(y, p, n_bins=6) == pytest.approx(gap)


def test_quantile_bins_hold_equal_weight():
    y, p = calibrated_problem(1000, 3)
    curve = reliability_curve(y, p, n_bins=8, strategy="quantile")
    np.testing.assert_array_equal(curve.weight, 125)


def test_single_precision_probabilities_pass():
    y, p = calibrated_problem(1000, 50)
    single = zadrozny_mse(y, p.astype(np.float32))
    assert single == pytest.approx(zadrozny_mse(y, p), rel=1e-5)


@pytest.mark.parametrize("metric", [*METRICS, reliability_curve])
@pytest.mark.parametrize(
    ("y", "p", "options", "complaint"),
    [
        ([0, 1], [0.5, 0.5], {}, "Expected 2D array"),
        ([0, 1], [[0.5, np.nan], [1, 0]], {}, "p contains NaN"),
        ([0, 1], [[1.5, -0.5], [1, 0]], {}, "found values from -0.5 to 1.5"),
        ([0, 1], [[0.5, 0.5], [0.5, 0.4]], {}, "row 1 sums to 0.9"),
        ([0, 1, 1], [[0.5, 0.5], [0.5, 0.5]], {}, "inconsistent numbers of samples"),
        ([[0, 1], [1, 0]], [[0.5, 0.5], [0.5, 0.5]], {}, "1d array"),
        ([0, 0], [[0.5, 0.5], [0.5, 0.5]], {}, "p has 2 columns, but y has 1 labels.*classes_"),
        ([0, 1], [[0.5, 0.5], [1, 0]], {"classes": [0, 1, 2]}, "but classes has 3"),
        ([0, 5], [[0.5, 0.5], [1, 0]], {"classes": [0, 1]}, r"not in classes: \[5\]"),
        ([0, 1], [[0.5, 0.5], [1, 0]], {"classes": ["0", "1"]}, r"not in classes: \[0, 1\]"),
        ([0, 1], [[0.5, 0.5], [1, 0]], {"classes": [1, 1]}, "a label twice"),
        ([0, 1], [[0.5, 0.5], [1, 0]], {"sample_weight": [1]}, "sample_weight.shape"),
        ([0, 1], [[0.5, 0.5], [1, 0]], {"sample_weight": [1, -1]}, "Negative values"),
        ([0, 1], [[0.5, 0.5], [1, 0]], {"sample_weight": [0, 0]}, "non-zero number"),
    ],
)
def test_bad_input_is_named(metric, y, p, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        metric(y, p, **options)


@pytest.mark.parametrize("metric", [*CALIBRATION_ERRORS, reliability_curve])
@pytest.mark.parametrize(
    ("options", "complaint"),
    [({"n_bins": 0}, "n_bins must be at least 1"), ({"strategy": "kmeans"}, "uniform, quantile")],
)
def test_bad_bins_are_named(metric, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        metric([0, 1], np.eye(2), **options)


@pytest.mark.filterwarnings("error")
def test_nothing_is_known_of_what_was_never_seen():
    lower, upper = wilson_interval([0.0, 0.3, 1.0, np.nan, 0.5], [0, 0, 0, 0, np.inf])
    assert lower.tolist() == [0, 0, 0, 0, 0.5]
    assert upper.tolist() == [1, 1, 1, 1, 0.5]


@given(st.floats(0, 1), st.floats(0, 1e300), st.floats(1e-3, 0.999))
@law
def test_intervals_lie_between_0_and_1_and_narrow_with_more_samples(observed, size, confidence):
    lower, upper = wilson_interval([observed] * 2, [size, 2 * size + 1], confidence=confidence)
    assert ((lower >= 0) & (lower <= upper) & (upper <= 1)).all()
    assert np.diff(upper - lower)[0] <= 1e-12


def test_unknown_label_is_named():
    with pytest.raises(ValueError, match=r"label='x' is not one of the classes \['a', 'b'\]"):
        reliability_curve(["a", "b"], np.eye(2), label="x")
