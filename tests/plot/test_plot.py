from __future__ import annotations

import doctest
import importlib.util
import inspect
import io
import pickle
import sys
import warnings
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit
from scipy.stats import binomtest
from sklearn.datasets import load_digits, load_iris
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import manyclass.plot
from manyclass import CoupledClassifier, codes, couple
from manyclass.metrics import (
    classwise_calibration_error,
    expected_calibration_error,
    reliability_curve,
    wilson_interval,
)
from manyclass.plot import CodeMatrixDisplay, IncoherenceDisplay, ReliabilityDisplay, SimplexDisplay
from manyclass.plot.code_matrix import ENTRY_COLORS
from manyclass.plot.simplex import CORNERS, contradicting_pairs, regular_grid

matplotlib = pytest.importorskip("matplotlib", reason="pictures are drawn with matplotlib")
matplotlib.use("Agg")
plt = pytest.importorskip("matplotlib.pyplot")
from matplotlib.colors import to_rgb  # noqa: E402

NASTY = [
    "$\\frac{1$",
    "costs $5 or $6",
    "<b>&amp;</b>",
    "two\nlines\tand a tab",
    "x" * 200,
    "\N{GRINNING FACE} \N{FAMILY}\u200d",
    "_hidden",
    "%d {} \\ # ^ ~",
    "\ud800\x00\u202e",
    "",
]

quick = settings(deadline=None, max_examples=15)


@pytest.fixture(autouse=True)
def no_figures_left():
    yield
    plt.close("all")


def problem(n=300, k=4, seed=0):
    """Labels drawn from stated probabilities, somewhat sharpened."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(k), size=n)
    y = (p.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    y[:k] = np.arange(k)
    return y, p**2 / (p**2).sum(axis=1, keepdims=True)


@pytest.fixture(scope="module")
def digits_model():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(StandardScaler(), CoupledClassifier(LogisticRegression(), cv=None))
    return model.fit(X[::3], y[::3]), X[1::3], y[1::3]


def iris_model():
    X, y = load_iris(return_X_y=True)
    return CoupledClassifier(LogisticRegression(max_iter=500), cv=None).fit(X, y), X, y


def draw(display):
    """Render, so that texts are laid out; glyphs that a font lacks are not our fault."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph|.*missing from font")
        display.figure_.canvas.draw()
    return display


def legend_texts(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


# ---------------------------------------------------------------------------
# Intervals
# ---------------------------------------------------------------------------


@given(st.integers(1, 200).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
@quick
def test_wilson_interval_is_that_of_scipy(counts):
    hits, n = counts
    known = binomtest(hits, n).proportion_ci(0.9, method="wilson")
    lower, upper = wilson_interval(hits / n, n, confidence=0.9)
    assert (lower, upper) == pytest.approx((known.low, known.high), abs=1e-12)
    assert 0 <= lower <= hits / n <= upper <= 1


@pytest.mark.parametrize("confidence", [0, 1, 1.5, np.nan])
def test_confidence_must_be_a_probability(confidence):
    with pytest.raises(ValueError, match="confidence must be between 0 and 1"):
        wilson_interval(0.5, 10, confidence=confidence)


def test_bins_of_equal_variance():
    y, p = problem(3000)
    curve = reliability_curve(y, p, label=0, n_bins=6, strategy="variance")
    inside = np.searchsorted((curve.stated[1:] + curve.stated[:-1]) / 2, p[:, 0])
    assert len(curve.stated) == 6
    variance = np.bincount(inside, p[:, 0] * (1 - p[:, 0]))
    np.testing.assert_allclose(variance, variance.mean(), rtol=0.5)
    assert curve.weight @ curve.stated == pytest.approx(p[:, 0].sum())
    certain = reliability_curve([0, 1, 2], np.eye(3), label=0, strategy="variance")
    np.testing.assert_array_equal(certain.stated, [0, 1])


# ---------------------------------------------------------------------------
# Reliability
# ---------------------------------------------------------------------------


@pytest.mark.parametrize("strategy", ["uniform", "quantile", "variance"])
@pytest.mark.parametrize("weighted", [False, True])
def test_curve_of_the_predicted_label(strategy, weighted):
    y, p = problem()
    weight = np.random.default_rng(0).integers(0, 3, len(y)) if weighted else None
    options = {"n_bins": 7, "strategy": strategy, "sample_weight": weight}
    display = ReliabilityDisplay.from_predictions(y, p, name="ours", **options)
    stated, observed, _ = reliability_curve(y, p, **options)
    (line,) = display.lines_
    np.testing.assert_array_equal(line.get_xdata(), stated)
    np.testing.assert_array_equal(line.get_ydata(), observed)
    assert (line.get_xdata() <= 1).all() and len(display.bars_) == 1
    error = expected_calibration_error(y, p, **options)
    classwise = classwise_calibration_error(y, p, **options)
    assert f"ours\ncalibration error {error:.3f}, class-wise {classwise:.3f}" in legend_texts(
        display
    )


def test_curves_of_classes():
    names = np.array(["d", "b", "c", "a"])
    y, p = problem()
    display = ReliabilityDisplay.from_predictions(
        names[y], p, classes=names, per_class=True, n_bins=6, class_names=["D", "B", "C", "A"]
    )
    assert len(display.lines_) == 4
    errors = []
    for c, line in enumerate(display.lines_):
        options = {"label": c, "n_bins": 6, "strategy": "variance"}
        stated, observed, weight = reliability_curve(y, p, **options)
        np.testing.assert_array_equal(line.get_xdata(), stated)
        np.testing.assert_array_equal(line.get_ydata(), observed)
        errors.append(np.average(abs(stated - observed), weights=weight))
    texts = legend_texts(display)
    assert texts[2:] == [f"{name}  {error:.3f}" for name, error in zip("DBCA", errors, strict=True)]
    assert f"error {np.mean(errors):.3f}" in texts[1]


def test_bars_are_wilson_intervals():
    y, p = problem()
    display = ReliabilityDisplay.from_predictions(y, p, n_bins=5, confidence=0.8)
    _, observed, weight = reliability_curve(y, p, n_bins=5, strategy="quantile")
    ends = np.array([segment[:, 1] for segment in display.bars_[0].get_segments()])
    expected = wilson_interval(observed, weight, confidence=0.8)
    np.testing.assert_allclose(ends, np.transpose(expected), atol=1e-12)


def test_scale_of_the_weights_does_not_change_the_bars():
    y, p = problem()
    weight = np.random.default_rng(1).random(len(y))
    bars = [
        ReliabilityDisplay.from_predictions(y, p, sample_weight=scale * weight).curves[0]
        for scale in (1, 1e200, 1e-200)
    ]
    for other in bars[1:]:
        np.testing.assert_allclose(other.lower, bars[0].lower, rtol=1e-9)
    plain = ReliabilityDisplay.from_predictions(y, p).curves[0]
    assert np.mean(bars[0].upper - bars[0].lower) > np.mean(plain.upper - plain.lower)


def test_samples_without_weight_are_as_good_as_absent():
    y, p = problem()
    weight = np.r_[np.zeros(100), np.ones(200)]
    given, absent = (
        ReliabilityDisplay.from_predictions(*data, classes=range(4), per_class=True, **options)
        for data, options in [((y, p), {"sample_weight": weight}), ((y[100:], p[100:]), {})]
    )
    np.testing.assert_allclose(given.histogram, absent.histogram)
    for a, b in zip(given.curves, absent.curves, strict=True):
        np.testing.assert_allclose(a.curve.stated, b.curve.stated)
        np.testing.assert_allclose(a.lower, b.lower, atol=1e-12)


def test_histogram_holds_the_share_of_each_part():
    y, p = problem()
    display = ReliabilityDisplay.from_predictions(y, p)
    counts, edges = np.histogram(p.max(axis=1), bins=len(display.histogram), range=(0, 1))
    np.testing.assert_allclose(display.histogram_.get_data().values, counts / len(y))
    np.testing.assert_allclose(display.histogram_.get_data().edges, edges)


def test_a_second_model_is_drawn_over_the_first():
    y, p = problem()
    _, q = problem(seed=1)
    first = ReliabilityDisplay.from_predictions(y, p, name="p")
    second = ReliabilityDisplay.from_predictions(y, q, name="q", ax=first.ax_)
    draw(second)
    assert second.ax_ is first.ax_ and second.histogram_ax_ is first.histogram_ax_
    assert second.lines_[0].get_color() != first.lines_[0].get_color()
    texts = legend_texts(second)
    assert len(texts) == 3 and [text[0] for text in texts[1:]] == ["p", "q"]  # one diagonal
    # Curves of classes: colours mean classes, line styles mean models.
    first, second = (
        ReliabilityDisplay.from_predictions(y, r, labels=[2, 3], ax=ax)
        for r, ax in zip((p, q), [plt.subplots()[1]] * 2, strict=True)
    )
    assert [line.get_color() for line in first.lines_] == [
        line.get_color() for line in second.lines_
    ]
    assert first.lines_[0].get_linestyle() != second.lines_[0].get_linestyle()


def test_of_many_classes_the_worst_are_named():
    y, p = problem(2000, 30)
    display = draw(ReliabilityDisplay.from_predictions(y, p, per_class=True))
    assert len(display.lines_) == 30 and len(display.bars_) == 5
    errors = [curve.error for curve in display.curves]
    worst = sorted(np.argsort(errors)[-5:])
    assert [int(text.split()[0]) for text in legend_texts(display)[2:]] == worst


@pytest.mark.parametrize("frame", [False, True])
def test_from_estimator(digits_model, frame):
    model, X, y = digits_model
    if frame:
        pandas = pytest.importorskip("pandas")
        model = CoupledClassifier(LogisticRegression(), cv=None)
        names, X, y = list("abcd"), pandas.DataFrame(X[:, 20:24], columns=list("abcd")), y % 3
        model.fit(X, y)
        y = pandas.Series(y)
        assert list(model.feature_names_in_) == names
    display = ReliabilityDisplay.from_estimator(model, X, y)
    _, observed, _ = reliability_curve(y, model.predict_proba(X), n_bins=10, strategy="quantile")
    np.testing.assert_array_equal(display.lines_[0].get_ydata(), observed)
    assert legend_texts(display)[1].startswith(type(model).__name__)


@pytest.mark.parametrize("per_class", [False, True])
@pytest.mark.parametrize("n", [1, 2])
def test_next_to_nothing_can_be_drawn(per_class, n):
    p = np.array([[1, 0], [0.25, 0.75]], dtype=np.float32)[:n]
    p.setflags(write=False)
    display = ReliabilityDisplay.from_predictions(
        ["a", "a"][:n], p, classes=["a", "b"], per_class=per_class
    )
    draw(display)
    assert all(np.isfinite(curve.upper).all() for curve in display.curves)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"labels": [7]}, r"some of the classes \[0, 1, 2, 3\], \[7\] is not among them"),
        ({"labels": []}, "got none"),
        ({"labels": "a"}, "list of labels, got 'a'"),
        ({"labels": 1}, r"list of labels, got 1: use \[1\]"),
        ({"class_names": ["a"]}, "one name for each of the 4 classes, got 1 names"),
        ({"class_names": "abcd"}, "got a text"),
        ({"classes": [0, 1, 2]}, "p has 4 columns, but classes has 3"),
        ({"confidence": 2}, "confidence must be between 0 and 1"),
        ({"n_bins": 0}, "n_bins must be at least 1"),
        ({"strategy": "kmeans"}, "strategy must be one of uniform, quantile, variance"),
        ({"sample_weight": np.zeros(300)}, "non-zero number"),
    ],
)
def test_bad_arguments_of_a_diagram_are_named(options, complaint):
    with pytest.raises(ValueError, match=complaint):
        ReliabilityDisplay.from_predictions(*problem(), **options)
    assert not plt.get_fignums()


def test_several_curves_need_names():
    y, p = problem()
    curves = ReliabilityDisplay.from_predictions(y, p, per_class=True).curves
    for some in (curves, []):
        with pytest.raises(ValueError, match=f"curves must hold .* got {len(some)}"):
            ReliabilityDisplay(some).plot()
    by_hand = ReliabilityDisplay(curves[:2], class_names=np.array(["a", "b"])).plot()
    assert by_hand.histogram_ is None and legend_texts(by_hand)[1] == "calibration error"


# ---------------------------------------------------------------------------
# Codes
# ---------------------------------------------------------------------------

SIZES = [
    codes.one_vs_one(3),
    codes.one_vs_one(2),
    codes.one_vs_one(10),
    codes.one_vs_rest(40),
    codes.complete(9),
    codes.one_vs_one(100),
    codes.complete(9).T.clip(-1, 1),
]


@pytest.mark.parametrize("code", SIZES, ids=lambda code: f"{code.shape[0]}x{code.shape[1]}")
@pytest.mark.parametrize("given_axes", [False, True])
def test_image_is_the_code_and_labels_do_not_collide(code, given_axes):
    ax = plt.subplots(figsize=(3, 3))[1] if given_axes else None
    display = draw(
        CodeMatrixDisplay.from_code(code, classes=[f"class {c}" for c in range(len(code))], ax=ax)
    )
    np.testing.assert_array_equal(display.im_.get_array(), code)
    assert legend_texts(display) == ["+1", "0", "\N{MINUS SIGN}1"]
    labels = display.ax_.get_yticklabels()
    assert len(labels) > min(len(code), 3) / 2
    for row, label in zip(display.ax_.get_yticks(), labels, strict=True):
        assert label.get_text() == f"class {row}"
    for axis_labels, low, high in [
        (labels, "y0", "y1"),
        (display.ax_.get_xticklabels(), "x0", "x1"),
    ]:
        boxes = sorted(
            (getattr(box, low), getattr(box, high))
            for box in (label.get_window_extent() for label in axis_labels)
        )
        assert all(b[0] > a[1] - 1 for a, b in pairwise(boxes))


def test_colours_of_entries():
    code = codes.sparse_random(5, n_draws=10, random_state=0)
    display = CodeMatrixDisplay.from_code(code)
    drawn = display.im_.cmap(display.im_.norm(code))[..., :3]
    for entry, color in ENTRY_COLORS.items():
        assert (np.abs(drawn[code == entry] - to_rgb(color)) < 0.01).all()
    # Grey print: the lightness of the three (Rec. 709) is well apart.
    lightness = sorted(
        np.dot(to_rgb(color), [0.2126, 0.7152, 0.0722]) for color in ENTRY_COLORS.values()
    )
    assert min(np.diff(lightness)) > 0.2


def test_signs_are_written_in_small_codes_only():
    small = CodeMatrixDisplay.from_code(codes.one_vs_one(3))
    signs = {(text.get_position()[::-1], text.get_text()) for text in small.text_}
    code = codes.one_vs_one(3)
    word = {1: "+", -1: "\N{MINUS SIGN}"}
    assert signs == {((c, b), word[int(code[c, b])]) for c, b in np.argwhere(code)}
    assert CodeMatrixDisplay.from_code(codes.one_vs_one(10)).text_ == []


def test_more_columns_than_pixels_keep_their_colours():
    """Averages of +1 and -1 must not be drawn as 0."""
    code = np.tile([[1, -1], [-1, 1]], 5000)
    display = draw(CodeMatrixDisplay.from_code(code))
    pixels = np.asarray(display.figure_.canvas.buffer_rgba())
    box = display.ax_.get_window_extent()
    x, y = int(box.x0 + box.width / 2), int(pixels.shape[0] - box.y0 - box.height / 4)
    mean = (np.array(to_rgb(ENTRY_COLORS[1])) + to_rgb(ENTRY_COLORS[-1])) / 2
    np.testing.assert_allclose(pixels[y, x, :3] / 255, mean, atol=0.05)


def test_code_of_an_estimator(digits_model):
    model, X, y = digits_model
    display = CodeMatrixDisplay.from_estimator(model, name="digits")
    np.testing.assert_array_equal(display.im_.get_array(), codes.one_vs_one(10))
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == list("0123456789")
    assert display.ax_.get_title() == "digits"
    inner = CoupledClassifier(LogisticRegression(), cv=None)
    search = GridSearchCV(inner, {"combiner": ["ht"]}, cv=2).fit(X[:100, 20:24], y[:100] % 3)
    assert CodeMatrixDisplay.from_estimator(search).code.shape == (3, 3)


def test_bad_codes_are_named():
    with pytest.raises(ValueError, match="row 0, column 1 is 2"):
        CodeMatrixDisplay.from_code([[1, 2], [-1, 0]])
    with pytest.raises(ValueError, match="classes must hold one name for each of the 3 classes"):
        CodeMatrixDisplay.from_code(codes.one_vs_one(3), classes=["a", "b"])
    X, y = load_iris(return_X_y=True)
    with pytest.raises(ValueError, match="LogisticRegression has no code_"):
        CodeMatrixDisplay.from_estimator(LogisticRegression(max_iter=500).fit(X, y))
    unusable = [[1, 1], [1, 1], [0, 0]]
    np.testing.assert_array_equal(CodeMatrixDisplay.from_code(unusable).im_.get_array(), unusable)


# ---------------------------------------------------------------------------
# Simplex
# ---------------------------------------------------------------------------


def barycentric(xy):
    """Solve for the weights of the corners."""
    system = np.vstack([CORNERS.T, np.ones(3)])
    return np.linalg.solve(system, np.c_[xy, np.ones(len(xy))].T).T


def test_points_have_their_probabilities_as_coordinates():
    y, p = problem(k=3)
    names = np.array(["x", "z", "y"])
    display = SimplexDisplay.from_predictions(names[y], p, classes=names)
    for c, points in enumerate(display.points_):
        np.testing.assert_allclose(barycentric(points.get_offsets()), p[y == c], atol=1e-12)
    assert [corner.get_text() for corner in display.corners_] == list(names)
    assert legend_texts(display) == list(names)
    colors = {tuple(points.get_facecolor()[0]) for points in display.points_}
    assert len(colors) == 3


def test_borders_are_where_two_classes_are_the_most_probable():
    display = SimplexDisplay.from_predictions([0, 1, 2], np.eye(3))
    for border in display.regions_.get_segments():
        p = np.sort(barycentric((border[:1] + border[1:]) / 2)[0])
        assert p[1] == pytest.approx(p[2]) and p[0] < p[1]


def test_simplex_of_an_estimator():
    model, X, y = iris_model()
    display = SimplexDisplay.from_estimator(model, X, y, class_names=["S", "C", "V"], s=50, c="k")
    drawn = np.concatenate([barycentric(points.get_offsets()) for points in display.points_])
    order = np.argsort(y, kind="stable")
    np.testing.assert_allclose(drawn, model.predict_proba(X)[order], atol=1e-12)
    assert display.points_[0].get_sizes() == [50]


@given(st.floats(-3, 3), st.lists(st.floats(0.01, 1), min_size=3, max_size=3))
@quick
def test_any_pairs_are_consistent_ones_with_a_cycle(disagreement, raw):
    p = np.array([raw]) / sum(raw)
    r = contradicting_pairs(p, disagreement)
    np.testing.assert_allclose(r + r.transpose(0, 2, 1), 1)
    odds = logit(r[0])
    assert odds[0, 1] + odds[1, 2] + odds[2, 0] == pytest.approx(3 * disagreement, abs=1e-6)
    np.testing.assert_allclose(couple(r, rule="logit"), p, atol=1e-6)


@pytest.mark.parametrize("rule", ["wlw2", "ht", "kl"])
def test_grid_is_what_the_rule_makes_of_it(rule):
    even, bent = (SimplexDisplay.from_rule(rule, disagreement=d, n_lines=5) for d in (0.0, 1.5))
    grid = regular_grid(5)
    for display, d in [(even, 0.0), (bent, 1.5)]:
        drawn = np.array([barycentric(line) for line in display.grid_.get_segments()])
        expected = couple(contradicting_pairs(grid.reshape(-1, 3), d), rule=rule)
        np.testing.assert_allclose(drawn.reshape(-1, 3), expected, atol=1e-9)
    np.testing.assert_allclose(even.grid, grid, atol=1e-4)
    assert np.abs(bent.grid - grid).max() > 0.05


@pytest.mark.parametrize(("k", "found"), [(2, "2 columns"), (4, "4 columns")])
def test_a_triangle_has_three_classes(k, found):
    y, p = problem(k=k)
    with pytest.raises(ValueError, match=f"y_prob has {found}, but a triangle .* exactly 3"):
        SimplexDisplay.from_predictions(y, p)
    with pytest.raises(ValueError, match=f"p has {found}"):
        SimplexDisplay(p).plot()
    with pytest.raises(ValueError, match=r"y_prob has shape \(300,\)"):
        SimplexDisplay.from_predictions(y, p[:, 0])
    assert not plt.get_fignums()


def test_bad_grids_are_named():
    with pytest.raises(ValueError, match="n_lines must be at least 2, got 1"):
        SimplexDisplay.from_rule(n_lines=1)
    with pytest.raises(ValueError, match="disagreement must be finite, got inf"):
        SimplexDisplay.from_rule(disagreement=np.inf)
    with pytest.raises(ValueError, match="grid must have shape"):
        SimplexDisplay(grid=np.ones((2, 3))).plot()


def test_points_without_classes():
    (points,) = SimplexDisplay(np.eye(3)).plot().points_
    np.testing.assert_allclose(points.get_offsets(), CORNERS)


# ---------------------------------------------------------------------------
# Incoherence
# ---------------------------------------------------------------------------


def test_histograms_of_right_and_wrong():
    rng = np.random.default_rng(0)
    values, correct, weight = rng.random(200), rng.random(200) < 0.8, rng.random(200)
    display = IncoherenceDisplay.from_values(values, correct, sample_weight=weight, n_bins=8)
    for right, patch in display.patches_.items():
        rows = correct == right
        height, edges = np.histogram(
            values[rows], 8, (0, values.max()), density=True, weights=weight[rows]
        )
        np.testing.assert_allclose(patch.get_data().values, height)
        np.testing.assert_allclose(patch.get_data().edges, edges)
    assert legend_texts(display)[0].startswith(f"right: {correct.sum()}, weight ")


def test_legend_of_incoherence_is_above_the_data():
    display = draw(IncoherenceDisplay.from_values(np.linspace(0, 1, 60), np.arange(60) % 2 == 0))
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y0 >= display.ax_.get_window_extent().y1


def test_incoherence_of_an_estimator(digits_model):
    model, X, y = digits_model
    display = IncoherenceDisplay.from_estimator(model, X, y, name="digits")
    inner, Z = model[-1], model[0].transform(X)
    np.testing.assert_array_equal(display.incoherence, inner.incoherence(Z))
    np.testing.assert_array_equal(display.correct, model.predict(X) == y)
    median = np.median(inner.incoherence(Z)[model.predict(X) == y])
    assert f"median {median:.3f}" in legend_texts(display)[0]


@pytest.mark.parametrize("values", [[0.0, 0.0], [0.1, 0.2]])
def test_nothing_wrong(values):
    display = draw(IncoherenceDisplay.from_values(values, [True, True]))
    assert list(display.patches_) == [True] and not display.densities_[False].any()
    assert "wrong: none" in legend_texts(display)


@pytest.mark.parametrize(
    ("values", "correct", "options", "complaint"),
    [
        ([0.1, -0.1], [True, False], {}, "must not be negative, found -0.1"),
        ([0.1, np.nan], [True, False], {}, "incoherence contains NaN"),
        ([0.1, 0.2], [0, 1], {}, "correct must be true or false"),
        ([0.1, 0.2], [True], {}, "inconsistent numbers"),
        ([0.1], [True], {"sample_weight": [0]}, "non-zero number"),
        ([0.1], [True], {"n_bins": 0}, "n_bins must be at least 1"),
    ],
)
def test_bad_values_are_named(values, correct, options, complaint):
    with pytest.raises(ValueError, match=complaint):
        IncoherenceDisplay.from_values(values, correct, **options)


def test_estimators_that_do_not_fit_are_named(digits_model):
    model, X, y = digits_model
    decoder = CoupledClassifier(LinearSVC(), combiner="max-wins", cv=None).fit(X[:200], y[:200])
    with pytest.raises(ValueError, match="CoupledClassifier has no incoherence"):
        IncoherenceDisplay.from_estimator(decoder, X, y)
    for display in (ReliabilityDisplay, SimplexDisplay):
        with pytest.raises(ValueError, match="CoupledClassifier has no predict_proba"):
            display.from_estimator(decoder, X, y)
    for display in (ReliabilityDisplay, SimplexDisplay, IncoherenceDisplay):
        with pytest.raises(NotFittedError):
            display.from_estimator(CoupledClassifier(), X, y)
    with pytest.raises(NotFittedError):
        CodeMatrixDisplay.from_estimator(CoupledClassifier())
    with pytest.raises(ValueError, match=r"labels that are not in classes_: \['0'"):
        IncoherenceDisplay.from_estimator(model, X, y.astype(str))


# ---------------------------------------------------------------------------
# All of them
# ---------------------------------------------------------------------------


def draw_all(ax=None, names=None):
    y, p = problem(100, 10)
    y3, p3 = problem(50, 3)
    few = None if names is None else names[:3]
    yield lambda: ReliabilityDisplay.from_predictions(y, p, ax=ax, name=few and few[0])
    yield lambda: ReliabilityDisplay.from_predictions(
        y, p, per_class=True, class_names=names, ax=ax
    )
    yield lambda: CodeMatrixDisplay.from_code(codes.one_vs_rest(10), classes=names, ax=ax)
    yield lambda: SimplexDisplay.from_predictions(y3, p3, class_names=few, ax=ax)
    yield lambda: SimplexDisplay.from_rule(class_names=few, name=few and few[0], ax=ax)
    yield lambda: IncoherenceDisplay.from_values([0.1, 0.2], [True, False], ax=ax)


def all_texts(display):
    return [text for text in display.figure_.findobj(matplotlib.text.Text) if text.get_text()]


@pytest.mark.parametrize(("turn", "parse_math"), [(0, False), (0, True), (6, True)])
def test_names_are_never_mathematics_and_never_long(turn, parse_math):
    names = np.roll(np.array(NASTY, dtype=object), turn).tolist()
    with matplotlib.rc_context({"text.parse_math": parse_math}):
        for make in draw_all(names=names):
            display = draw(make())
            for text in all_texts(display):
                shown, math = text._preprocess_math(text.get_text())
                assert math is False
                assert max(map(len, shown.split("\n"))) < 60
                assert "\\$" not in shown.replace("\\frac", "")


def test_names_are_shown_as_they_are():
    display = draw(CodeMatrixDisplay.from_code(codes.one_vs_rest(10), classes=NASTY))
    shown = [text._preprocess_math(text.get_text())[0] for text in display.ax_.get_yticklabels()]
    assert shown[:4] == ["$\\frac{1$", "costs $5 or $6", "<b>&amp;</b>", "two lines and a tab"]
    assert shown[4] == "x" * 15 + "…" + "x" * 8
    assert shown[6] == "_hidden" and shown[9] == "''"


@pytest.mark.parametrize("title", [None, "a title", "t" * 60])
@pytest.mark.parametrize(
    "names", [["malignant", "benign"], ["W" * 30, "another quite long name"], None]
)
@pytest.mark.parametrize("code", [[[1], [-1]], [[1, -1, 0], [-1, 1, 1]]])
def test_codes_of_two_classes_are_within_their_figure(code, names, title):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        display = draw(CodeMatrixDisplay.from_code(code, classes=names, name=title))
    box, (width, height) = display.figure_.get_tightbbox(), display.figure_.get_size_inches()
    assert box.x0 >= 0 and box.x1 <= width and box.y0 >= 0 and box.y1 <= height


def test_names_that_become_the_same_are_numbered():
    names = ["a" * 30 + c + "b" * 30 for c in "xyz"]
    display = SimplexDisplay.from_predictions([0, 1, 2], np.eye(3), class_names=names)
    assert len(set(legend_texts(display))) == 3


def test_names_with_an_underscore_are_in_the_legend():
    y, p = problem()
    display = ReliabilityDisplay.from_predictions(y, p, labels=[0], class_names=["_a", *"bcd"])
    assert legend_texts(display)[-1].strip().startswith("_a")


@pytest.mark.parametrize("which", range(6))
def test_axes_are_reused_and_no_figure_is_opened_or_closed(which):
    mine, ax = plt.subplots(figsize=(3, 3))
    before = plt.get_fignums()
    display = draw(list(draw_all(ax=ax))[which]())
    assert display.ax_ is ax and display.figure_ is mine
    assert plt.get_fignums() == before and plt.gcf() is mine
    alone = list(draw_all())[which]()
    assert alone.figure_ is not mine and len(plt.get_fignums()) == len(before) + 1
    assert plt.fignum_exists(mine.number)


@pytest.mark.parametrize("which", range(6))
def test_figures_without_pyplot_and_subfigures(which):
    figure = matplotlib.figure.Figure(layout="constrained")
    part = figure.subfigures(1, 2)[0]
    display = list(draw_all(ax=part.subplots()))[which]()
    assert display.figure_ is part and not plt.get_fignums()
    figure.savefig(io.BytesIO(), format="svg")


@pytest.mark.parametrize("which", range(6))
def test_displays_can_be_pickled(which):
    display = list(draw_all())[which]()
    again = pickle.loads(pickle.dumps(display))
    draw(again)
    assert len(again.ax_.get_children()) == len(display.ax_.get_children())


def test_style_can_be_changed_under_any_alias():
    y, p = problem(k=3)
    line = ReliabilityDisplay.from_predictions(y, p, c="k", markersize=9, linewidth=3).lines_[0]
    assert (line.get_color(), line.get_markersize(), line.get_linewidth()) == ("k", 9, 3)
    points = SimplexDisplay.from_predictions(y, p, edgecolor="k", lw=2).points_[0]
    assert points.get_linewidth() == 2
    patch = IncoherenceDisplay.from_values([0.1, 0.2], [True, False], ec="k").patches_[True]
    assert to_rgb(patch.get_edgecolor()) == (0, 0, 0)


def test_without_matplotlib_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    model, X, y = iris_model()
    calls = [
        *draw_all(),
        lambda: ReliabilityDisplay.from_estimator(model, X, y),
        lambda: SimplexDisplay.from_estimator(model, X, y),
        lambda: CodeMatrixDisplay.from_estimator(model),
        lambda: IncoherenceDisplay.from_estimator(model, X, y),
        lambda: CodeMatrixDisplay(codes.one_vs_one(3)).plot(),
    ]
    for call in calls:
        with pytest.raises(
            ImportError, match=r"Display\.\w+ draws .*pip install 'manyclass\[app\]'"
        ):
            call()


def test_nothing_is_imported_from_matplotlib_before_it_is_needed(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    files = list(Path(inspect.getfile(manyclass.plot)).parent.glob("*.py"))
    assert len(files) == 8
    for file in files:
        spec = importlib.util.spec_from_file_location(f"copy_of_{file.stem}", file)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look it up
        spec.loader.exec_module(module)


@pytest.mark.parametrize("module", ["code_matrix", "incoherence", "reliability_diagram", "simplex"])
def test_examples_run(module):
    """Those that draw are skipped where examples run without matplotlib: run them here."""
    found = importlib.import_module(f"manyclass.plot.{module}")
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    for test in doctest.DocTestFinder().find(found):
        for example in test.examples:
            example.options.pop(doctest.SKIP, None)
        runner.run(test)
    assert runner.failures == 0 and runner.tries > 0


def test_displays_are_documented():
    for display in (CodeMatrixDisplay, IncoherenceDisplay, ReliabilityDisplay, SimplexDisplay):
        for name, method in inspect.getmembers(display, callable):
            if not name.startswith("_"):
                assert "Parameters" in inspect.getdoc(method), (display, name)


def test_contradicting_pairs_have_a_cycle():
    r = contradicting_pairs(np.full((1, 3), 1 / 3), np.log(3))
    cycle = [[0.5, 0.75, 0.25], [0.25, 0.5, 0.75], [0.75, 0.25, 0.5]]
    np.testing.assert_allclose(r[0], cycle)


def test_lines_of_the_grid_are_constant():
    lines = regular_grid(4)
    assert lines.shape == (3, 3, 120, 3)
    np.testing.assert_allclose(lines[1, 0, :, 1], 0.25)
