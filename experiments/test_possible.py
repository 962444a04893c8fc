"""Checks of published numbers: what is possible passes, what is not is found."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import t

from experiments import checked
from experiments.pages import published
from experiments.possible import (
    Printed,
    counts,
    deviation_fits,
    means_that_fit,
    needed_correlation,
    p_value_fits,
    squared_error_bounds,
)


@settings(deadline=None)
@given(st.integers(1, 5000), st.data())
def test_every_count_is_attainable_as_it_is_printed(n, data):
    count = data.draw(st.integers(0, n))
    rounded, _ = counts(round(count / n, 4), n, 4)
    cut = counts(count * 10_000 // n / 10_000, n, 4)
    assert count in rounded
    assert count in cut[0] + cut[1]


@settings(deadline=None)
@given(st.lists(st.integers(0, 100), min_size=5, max_size=5), st.sampled_from([0, 1]))
def test_deviations_of_counts_fit_their_own_kind(errors, ddof):
    rates = np.array(errors) / 500
    kind = ("population", "sample")[ddof]
    mean, deviation = round(rates.mean(), 5), round(rates.std(ddof=ddof), 5)
    assert deviation_fits(mean, deviation, 500, 5, 5, kind)


def test_a_mean_that_is_no_count_has_no_deviation():
    assert not deviation_fits(0.12345, 0.01, 500, 5, 5, "population")


@settings(deadline=None)
@given(st.integers(0, 10_000), st.floats(0, 1), st.floats(0.05, 2))
def test_p_values_of_real_runs_fit(seed, shift, noise):
    rng = np.random.default_rng(seed)
    first = rng.normal(8, 1, 20)
    second = first + shift + noise * rng.normal(size=20)
    gap = first - second
    p = t.cdf(gap.mean() / (gap.std(ddof=1) / np.sqrt(20)), 19)
    a, b = (Printed(round(v.mean(), 2), round(v.std(ddof=1), 2)) for v in (first, second))
    assert p_value_fits(a, b, p, 20)
    assert needed_correlation(a, b, p, 20) <= np.corrcoef(first, second)[0, 1] + 0.05


def test_p_values_on_the_wrong_side_do_not_fit():
    assert not p_value_fits(Printed(10.21, 0.39), Printed(10.02, 0.41), 6e-25, 20)
    assert p_value_fits(Printed(10.21, 0.39), Printed(10.02, 0.41), 0.9, 20)


def test_a_mean_in_doubt_is_found_again():
    own, other = Printed(7.96, 0.77), Printed(7.65, 0.77)
    fitting = means_that_fit(own, [(other, 0.3818, False)], 20)
    assert 7.69 in fitting and 7.96 not in fitting


@pytest.mark.parametrize("k", [2, 5, 19])
@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_squared_errors_are_within_their_bounds(k, seed):
    rng = np.random.default_rng(seed)
    p, y = rng.dirichlet(np.ones(k), 50), rng.integers(0, k, 50)
    error = np.mean(p.argmax(axis=1) != y)
    squares = ((p - np.eye(k)[y]) ** 2).sum(axis=1).mean()
    low, high = squared_error_bounds(error, k)
    assert low - 1e-12 <= squares <= high + 1e-12


# -- the five papers -------------------------------------------------------------------


def test_wu_prints_population_deviations():
    assert checked.wu_kinds() == {"population": 100, "sample": 12}


def test_all_findings():
    assert [finding.key for finding in checked.findings()] == [
        "zadrozny2001 soybean sparse-random ht-iterative error",
        "zadrozny2001 mse formula",
        "zadrozny2001 soybean  naive-bayes mse",
        "duan2003 DNA SSMC1v1 error",
        "duan2003 SAT PWC_KLR WTA_SVM error p",
        "duan2003 WAV PWC_KLR WTA_SVM error p",
        "duan2003 DNA PWC_KLR WTA_SVM error p",
        "liu2005 letter rbf same count",
    ]


def test_zadroznys_errors_cannot_have_been_averaged_by_the_printed_formula():
    rows = [r for r in published("zadrozny2001_tables2_3") if r["mse"]]
    least = [squared_error_bounds(float(r["error_rate"]), 2)[0] for r in rows]
    too_small = [float(r["mse"]) < low for r, low in zip(rows, least, strict=True)]
    assert sum(too_small) == 11
    divided = [low / checked.CLASSES[r["dataset"]] for r, low in zip(rows, least, strict=True)]
    assert all(float(r["mse"]) >= low for r, low in zip(rows, divided, strict=True))


def test_the_mean_that_fits_all_p_values():
    fitting = checked.means_for(("DNA", "SSMC1v1", "error"))
    assert 7.69 in fitting and 7.96 not in fitting


def test_duans_deviations_of_smc1v1_are_fractions():
    rows = [r for r in published("duan2003_tables2_4") if r["metric"] == "error_percent"]
    small = {row["method"] for row in rows if float(row["std"]) < 0.05}
    assert small == {"SMC1v1"}


def test_lius_reductions_follow_from_the_printed_errors():
    printed = [(7.25, 16.0), (64.2, 65.6), (0.25, 5.3), (33.3, 50.0)]
    for row, (srm, drm) in zip(published("liu2005_table1"), printed, strict=True):
        f = float(row["fx"])
        assert 100 * (1 - float(row["srm"]) / f) == pytest.approx(srm, abs=0.06)
        assert 100 * (1 - float(row["drm"]) / f) == pytest.approx(drm, abs=0.06)
