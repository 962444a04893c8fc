"""The choice of a calibration by cross-fitted log-loss."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.special import expit

from manyclass import codes
from manyclass.calibration import Beta, Calibration, Isotonic, Sigmoid, Unchanged
from manyclass.calibration.choosing import CANNOT_TELL, choose
from manyclass.calibration.crossfitting import calibrate
from manyclass.scores.out_of_sample import ColumnBlock, DenseScores

FAMILY = [Unchanged, Sigmoid, Beta, Isotonic]
quick = settings(deadline=None, max_examples=20)
seeds = st.integers(0, 2**32 - 1)


def simulated(n, seen, seed=0, k=3, weights=None, numbers=None):
    """Return scores ``seen(x)`` of a one-vs-rest code, whose true log-odds are x."""
    rng = np.random.default_rng(seed)
    y = rng.integers(k, size=n)
    code = codes.one_vs_rest(k)
    # Normal scores with means +-1 and deviation 1 have log-odds 2 f, plus those of the sides.
    f = code[y] + rng.normal(size=(n, k))
    x = 2.0 * f - np.log(k - 1)
    return DenseScores(seen(x), y, code, np.ones(n) if weights is None else weights, numbers)


def in_sample_loss(method, scores):
    """Return the mean log-loss of a calibration on the scores that it was fitted on."""
    r = np.clip(calibrate(method, scores).transform(scores.dense()), 1e-7, 1 - 1e-7)
    return -np.log(np.where(scores.code[scores.y] > 0, r, 1 - r)).mean()


@pytest.mark.parametrize("n", [60, 600])
def test_true_probabilities_stay(n):
    """A quarter of a standard error is exceeded by chance: then the choice costs next to nothing."""
    choices = [choose(FAMILY, simulated(n, lambda x: x, seed)) for seed in range(20)]
    assert [choice.method for choice in choices].count(Unchanged) >= 10
    assert max(choice.differences["unchanged"] for choice in choices) < 0.6 / np.sqrt(n)


@pytest.mark.parametrize("factor", [0.3, 2.0, 5.0])
def test_probabilities_that_are_too_sure_or_unsure_are_calibrated(factor):
    scores = simulated(1000, lambda x: factor * x)
    choice = choose(FAMILY, scores)
    assert choice.method in (Sigmoid, Beta)
    assert choice.differences["unchanged"] > choice.standard_errors["unchanged"]


def test_errors_on_one_side_need_two_slopes():
    def inverse(x, a=0.25, b=2.0):
        """Return log-odds whose beta calibration is x, by interpolation."""
        grid = np.linspace(-60, 60, 20001)
        return np.interp(x, a * np.log(expit(grid)) - b * np.log(expit(-grid)), grid)

    assert choose(FAMILY, simulated(5000, inverse)).method is Beta


def test_steps_need_isotonic_regression():
    def stretch(x):
        return np.where(np.abs(x) > 1.5, np.sign(x) * 0.1, 0.0) + 0.01 * x + 3.0

    assert choose(FAMILY, simulated(5000, stretch)).method is Isotonic


@pytest.mark.parametrize("seed", range(5))
def test_isotonic_regression_cannot_flatter_itself(seed):
    """On its own training scores it is always the best; with few samples it is not."""
    scores = simulated(60, lambda x: x, seed)
    flattered = {method: in_sample_loss(method, scores) for method in FAMILY}
    assert min(flattered, key=flattered.get) is Isotonic
    assert choose(FAMILY, scores).method is not Isotonic


@quick
@given(seed=seeds, n=st.integers(2, 60), factor=st.floats(0.1, 9.0))
def test_the_choice_follows_from_its_figures(seed, n, factor):
    choice = choose(FAMILY, simulated(n, lambda x: factor * x, seed))
    if not choice.losses:
        assert choice.method is FAMILY[0]
        return
    lowest = min(choice.losses.values())
    names = [method.name for method in FAMILY]
    assert list(choice.losses) == names
    for name in names:
        assert_allclose(choice.differences[name], choice.losses[name] - lowest, atol=1e-12)
    limits = {name: CANNOT_TELL * error for name, error in choice.standard_errors.items()}
    near = [name for name in names if choice.differences[name] <= limits[name]]
    assert choice.method.name == near[0]


def test_the_losses_are_those_of_calibrations_that_did_not_see_the_fold():
    numbers = np.arange(90) % 3
    scores = simulated(90, lambda x: 2 * x, numbers=numbers)
    choice = choose([Sigmoid, Isotonic], scores)
    for method in (Sigmoid, Isotonic):
        rows = []
        for fold in range(3):
            own = numbers == fold
            rest = DenseScores(
                scores.dense()[~own], scores.y[~own], scores.code, scores.weights[~own]
            )
            r = calibrate(method, rest).transform(scores.dense()[own])
            sides = scores.code[scores.y[own]]
            rows.append(-np.log(np.where(sides > 0, r, 1 - r)).sum(axis=1))
        assert_allclose(choice.losses[method.name], np.concatenate(rows).mean() / 3, rtol=1e-9)


def test_the_standard_error_is_that_of_a_mean_over_rows():
    numbers = np.arange(200) % 5
    scores = simulated(200, lambda x: 3 * x, numbers=numbers)
    r = {method: np.empty((200, 3)) for method in (Unchanged, Sigmoid)}
    for method, fold in ((m, f) for m in r for f in range(5)):
        others = np.where(numbers == fold, 0.0, 1.0)
        fitted = calibrate(method, scores, others)
        r[method][numbers == fold] = fitted.transform(scores.dense()[numbers == fold])
    sides = scores.code[scores.y]
    losses = {
        m: -np.log(np.clip(np.where(sides > 0, p, 1 - p), 1e-7, 1 - 1e-7)).mean(axis=1)
        for m, p in r.items()
    }
    expected = (losses[Unchanged] - losses[Sigmoid]).std() / np.sqrt(200)
    choice = choose([Unchanged, Sigmoid], scores)
    assert_allclose(choice.standard_errors["unchanged"], expected, rtol=1e-9)
    assert choice.standard_errors["sigmoid"] == 0.0


def test_weights_are_repeated_rows():
    times, numbers = np.arange(60) % 4, np.arange(60) % 5
    weighted = simulated(60, lambda x: 2 * x, weights=times.astype(float), numbers=numbers)
    values, y, fold = (np.repeat(a, times, axis=0) for a in (weighted.dense(), weighted.y, numbers))
    copies = DenseScores(values, y, weighted.code, np.ones(len(y)), fold)
    ours, theirs = choose(FAMILY, weighted), choose(FAMILY, copies)
    assert ours.method is theirs.method
    for own, other in zip(ours[1:], theirs[1:], strict=True):
        assert_allclose(list(own.values()), list(other.values()), atol=1e-7)


def test_missing_scores_and_sides_do_not_count():
    scores = simulated(90, lambda x: 2 * x, numbers=np.arange(90) % 3)
    rng = np.random.default_rng(1)
    missing = rng.random((90, 3)) < 0.3
    y, code, ones, numbers = scores.y, scores.code, scores.weights, scores.fold_numbers
    holed = DenseScores(np.where(missing, np.nan, scores.dense()), y, code, ones, numbers)
    sides = np.where(missing, 0, code[y]).astype(np.int8)
    aside = DenseScores(scores.dense(), y, code, ones, numbers, sides)
    assert choose(FAMILY, holed) == choose(FAMILY, aside)


def test_infinite_scores_are_evidence():
    def certain(x):
        return np.where(np.abs(x) > 3, np.sign(x) * np.inf, x)

    choice = choose(FAMILY, simulated(500, certain))
    assert np.isfinite(list(choice.losses.values())).all()
    assert choice.method is not Unchanged


def test_without_evidence_the_simplest_is_chosen():
    values = np.random.default_rng(0).normal(size=(3, 3))
    single = DenseScores(values, np.arange(3), codes.one_vs_rest(3), np.ones(3))
    unknown = simulated(50, lambda x: np.full(x.shape, np.nan))
    for scores in (single, unknown):
        assert choose(FAMILY, scores) == (Unchanged, {}, {}, {})


class Forbidden(Calibration):
    """A calibration that must not be fitted."""

    name = "forbidden"

    def _allocate(self, n_columns):
        raise AssertionError

    _fit_block = _fit_empty_columns = enforce_monotone = transform = _allocate


def test_a_single_candidate_costs_nothing():
    assert choose([Forbidden], simulated(50, lambda x: x)) == (Forbidden, {}, {}, {})


class Observed(Unchanged):
    """Own probabilities, which record how many scores they are asked for."""

    name = "observed"
    seen: tuple[int, int] = (0, 0)

    def transform(self, scores, out=None):
        rows, _ = Observed.seen
        Observed.seen = rows + len(scores), scores.shape[1]
        return super().transform(scores, out)


@pytest.mark.parametrize(
    ("entries", "columns", "expected"),
    [
        (10**6, 1000, (300, 45)),
        (10**6, 20, (300, 20)),
        (9000, 1000, (300, 30)),
        (320, 99, (20, 16)),
    ],
)
def test_the_cost_is_bounded(entries, columns, expected):
    code = codes.one_vs_one(10)
    y = np.arange(300) % 10
    values = 3.0 * code[y] + np.random.default_rng(0).normal(size=(300, 45))
    scores = DenseScores(values, y, code, np.ones(300))
    Observed.seen = 0, 0
    choice = choose([Observed, Sigmoid], scores, most_entries=entries, most_columns=columns)
    n_rows, n_columns = Observed.seen
    assert n_columns == expected[1]
    assert 0.8 * expected[0] <= n_rows <= expected[0]  # single samples of a class stay
    assert choice == choose([Observed, Sigmoid], scores, most_entries=entries, most_columns=columns)


class InBlocks(DenseScores):
    """Scores that are given a few columns and rows at a time."""

    def column_blocks(self, weights):
        (whole,) = super().column_blocks(weights)
        for first in range(0, self.n_columns, 4):
            columns = slice(first, min(first + 4, self.n_columns))
            rows = np.flatnonzero((self.code[self.y, columns] != 0).any(axis=1))
            scores, sides = whole.scores[rows, columns], whole.sides[rows, columns]
            yield ColumnBlock(columns, rows, scores, sides, weights[rows])


@pytest.mark.parametrize("entries", [10**6, 2000])
def test_blocks_do_not_matter(entries):
    code = codes.one_vs_one(7)
    rng = np.random.default_rng(0)
    y = rng.integers(7, size=150)
    parts = 3.0 * code[y] + rng.normal(size=(150, 21)), y, code, rng.uniform(0.0, 2.0, 150)
    whole = choose(FAMILY, DenseScores(*parts), most_entries=entries)
    assert choose(FAMILY, InBlocks(*parts), most_entries=entries) == whole
