"""Input that nobody should give: an answer that is valid, or an error that helps. Never else."""

from __future__ import annotations

import datetime
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB

from experiments.results import COLUMNS, Results
from fuzz.targets import TARGETS, attack, check_probabilities, target_of
from manyclass import CoupledClassifier, CoupledSVC, DecisionClassifier, codes, couple
from manyclass.calibration import Isotonic, RobustSigmoid, Sigmoid
from manyclass.combiners.coupling import KullbackLeibler, LeastSquares, RefregierVallet, Zadrozny
from manyclass.combiners.decoding import Hamming
from manyclass.scaling.temperature import fit_temperature

MODELS = {
    "CoupledSVC": CoupledSVC(),
    "logistic": CoupledClassifier(LogisticRegression(), cv=2),
    "naive Bayes": CoupledClassifier(GaussianNB(), cv=2, calibration="sigmoid"),
    "decoder": CoupledClassifier(LogisticRegression(), combiner="max-wins"),
}
every_model = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
X = np.random.default_rng(0).normal(size=(30, 2)) + 3 * np.eye(3)[np.arange(30) % 3, :2]
index = np.arange(30) % 3


def check_fitted(model, rows) -> None:
    """Contracts 1 and 2, for whatever has been fitted."""
    labels = model.predict(rows)
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(rows)
        check_probabilities(p, (len(rows), len(model.classes_)))
        assert_array_equal(labels, model.classes_[p.argmax(axis=1)])
    assert set(labels.tolist()) <= set(model.classes_.tolist())


@pytest.mark.filterwarnings("ignore")
class TestGeneratedInputs:
    """The first inputs of ``python -m fuzz``, which has a million more."""

    @pytest.mark.parametrize("target", TARGETS)
    def test_every_call_is_answered_or_refused(self, target):
        seeds = [seed for seed in range(1500) if target_of(seed) == target][:20]
        with warnings.catch_warnings():
            warnings.filterwarnings("error", category=RuntimeWarning)
            assert {attack(seed) for seed in seeds} <= {"answered", "refused"}


labels_of_any_kind = st.one_of(
    st.sets(st.integers(-(2**62), 2**62), min_size=3, max_size=3),
    st.sets(st.text(max_size=20), min_size=3, max_size=3),
    st.sets(st.integers(-1000, 1000).map(float), min_size=3, max_size=3),
    st.sets(st.datetimes().map(lambda t: np.datetime64(t, "s")), min_size=3, max_size=3),
).map(list)


class TestLabels:
    @settings(deadline=None, max_examples=15)
    @given(labels_of_any_kind, st.booleans())
    def test_labels_come_back_as_they_were(self, names, as_objects):
        text = isinstance(names[0], str)
        names = np.array(names, dtype=object if text and as_objects else None)
        if len(np.unique(names)) < 3:  # numpy drops zeros at the end of texts
            return
        model = CoupledClassifier(LogisticRegression(), cv=2).fit(X, names[index])
        assert model.classes_.dtype == names.dtype
        check_fitted(model, X)
        assert model.score(X, names[index]) > 0.5

    def test_names_of_ten_thousand_characters(self):
        names = np.array([10_000 * "x" + end for end in "abc"])
        model = CoupledSVC().fit(X, names[index])
        check_fitted(model, X)
        with pytest.warns(UserWarning, match="single sample"):
            model.fit(X, np.where(np.arange(30) == 7, "z" * 10_000, names[index]))

    def test_two_truth_values(self):
        check_fitted(CoupledSVC().fit(X, index > 0), X)

    @pytest.mark.parametrize(
        ("names", "message"),
        [
            (np.array([1.5, 2.5, 3.5]), "continuous"),
            (np.array([1, "b", None], dtype=object), "y is None at row 2"),
            (np.array([1.0, 2.0, np.nan]), "NaN"),
            (np.array([1.0, 2.0, np.inf]), "infinity"),
            (np.array([1j, 2j, 3j]), "Complex"),
            (np.array(["a", "b", np.nan], dtype=object), "mixes texts with labels of type float"),
            (np.array(["2020", "2021", "NaT"], dtype="datetime64[D]"), "NaT.* at row 2"),
        ],
    )
    def test_labels_that_are_none(self, names, message):
        for model in (CoupledSVC(), CoupledClassifier()):
            with pytest.raises((ValueError, TypeError), match=message):
                model.fit(X, names[index])


@pytest.mark.filterwarnings("ignore")
class TestData:
    @settings(deadline=None, max_examples=20)
    @given(
        st.sampled_from(sorted(MODELS)),
        st.integers(3, 12),
        st.integers(0, 2**31),
        st.sampled_from([1e-310, 1e-12, 1.0, 1e12, 1e160, 1e300]),
    )
    def test_few_rows_of_any_size_are_learnt_or_refused(self, name, n, seed, scale):
        rng = np.random.default_rng(seed)
        rows = rng.integers(-2, 3, size=(n, 2)) * scale
        y = rng.integers(max(2, n - 1), size=n)  # often one sample to a class
        model = MODELS[name]
        try:
            model.fit(rows, y)
        except ValueError as error:
            assert str(error)
            return
        check_fitted(model, rows)
        check_fitted(model, rng.normal(size=(3, 2)) * scale)

    @every_model
    def test_constant_features(self, model):
        if isinstance(model.get_params().get("estimator"), GaussianNB):
            pytest.skip("gives NaN for features without variance, which is said")
        model.fit(np.ones((30, 2)), index)
        check_fitted(model, np.ones((3, 2)))

    @every_model
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
    def test_what_is_no_number_is_refused(self, model, value):
        message = "NaN" if np.isnan(value) else "infinity"
        bad = np.where(np.arange(60).reshape(30, 2) == 17, value, X)
        with pytest.raises(ValueError, match=message):
            model.fit(bad, index)
        model.fit(X, index)
        with pytest.raises(ValueError, match=message):
            model.predict(bad)

    @every_model
    def test_one_class_is_refused(self, model):
        with pytest.raises(ValueError, match="only one class"):
            model.fit(X, np.zeros(30, dtype=int))

    def test_as_many_classes_as_samples(self):
        with pytest.raises(ValueError, match="cv=2 with at most 1 sample"):
            CoupledClassifier(cv=2).fit(X[:3], ["a", "b", "c"])
        with pytest.warns(UserWarning, match="single sample"):
            model = CoupledSVC().fit(X[:3], ["a", "b", "c"])
        check_fitted(model, X)

    @every_model
    @pytest.mark.parametrize(
        "layout",
        [
            np.asfortranarray,
            lambda rows: rows[::-1][::-1],
            lambda rows: np.repeat(rows, 2, axis=1)[:, ::2],
            lambda rows: rows.astype(">f8"),
            lambda rows: rows.astype(object),
            lambda rows: np.broadcast_to(rows, rows.shape),
        ],
    )
    def test_the_layout_does_not_matter(self, model, layout):
        expected = model.fit(X, index).decision_function(X)
        got = model.fit(layout(X), index).decision_function(layout(X))
        assert_allclose(got, expected, rtol=1e-9)


@pytest.mark.filterwarnings("ignore")
class TestSampleWeight:
    @every_model
    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (-1.0, "[Nn]egative"),
            (np.nan, "NaN"),
            (np.inf, "infinity"),
            (0.0, "non-zero"),
            (1e308, "sample_weight.* is as large as"),
        ],
    )
    def test_what_is_no_weight_is_refused(self, model, weight, message):
        with pytest.raises(ValueError, match=message):
            model.fit(X, index, sample_weight=np.full(30, weight))

    @settings(deadline=None, max_examples=15)
    @given(
        st.sampled_from(sorted(MODELS)),
        st.integers(0, 2**31),
        st.sampled_from([1e-300, 1e-9, 1.0, 1e9, 1e200]),
        st.sampled_from([0.0, 0.5, 0.9]),
    )
    def test_weights_of_any_size_many_of_them_zero(self, name, seed, scale, zeros):
        rng = np.random.default_rng(seed)
        weight = rng.random(30) * scale * (rng.random(30) >= zeros)
        try:
            MODELS[name].fit(X, index, sample_weight=weight)
        except ValueError as error:
            assert str(error)
            return
        check_fitted(MODELS[name], X)


class TestFaultsThatWere:
    """Each was found by ``python -m fuzz``."""

    @pytest.mark.parametrize("name", ["one-vs-one", "one-vs-rest", "ordinal", "complete"])
    def test_a_number_of_columns_beyond_counting(self, name):
        if name in ("one-vs-rest", "ordinal"):
            assert codes.n_classes_of(name, 10**30) >= 10**30
        else:
            with pytest.raises(ValueError, match="no .* code has 1000000000000000"):
                codes.n_classes_of(name, 10**30)

    def test_numbers_of_classes_are_found(self):
        for name in ("one-vs-one", "one-vs-rest", "ordinal", "complete"):
            for k in range(3, 14):
                assert codes.n_classes_of(name, codes.by_name(name, k).shape[1]) == k

    @pytest.mark.parametrize("rule", [KullbackLeibler, Zadrozny, LeastSquares])
    @pytest.mark.parametrize("max_iter", [0, 2.5, 2**70, "5", None, np.nan])
    def test_max_iter_is_a_whole_number(self, rule, max_iter):
        with pytest.raises(ValueError, match="max_iter of .* must be an integer"):
            couple([[0.7, 0.2, 0.3]], "one-vs-rest", rule(max_iter=max_iter))

    @pytest.mark.parametrize("tol", [0.0, -1, np.nan, "small", None])
    def test_tol_is_a_positive_number(self, tol):
        with pytest.raises(ValueError, match="tol of .* must be a positive number"):
            couple([[0.7, 0.2, 0.3]], "one-vs-rest", KullbackLeibler(tol=tol))

    def test_options_of_any_integer_type_are_one_kernel(self):
        expected = couple([[0.7, 0.2, 0.3]], "one-vs-rest", KullbackLeibler(max_iter=100, tol=1))
        rule = KullbackLeibler(max_iter=np.int8(100), tol=np.float32(1))
        assert_array_equal(couple([[0.7, 0.2, 0.3]], "one-vs-rest", rule), expected)

    @pytest.mark.parametrize("rule", ["kl", "ht", "logit", "zadrozny", "least-squares"])
    @pytest.mark.parametrize("weights", [[1.7e308] * 3, [1e308, 1, 1e-320], [5e-324] * 3])
    @pytest.mark.filterwarnings("ignore")
    def test_weights_of_any_size(self, rule, weights):
        r = np.random.default_rng(0).random((50, 3))
        result = couple(r, "one-vs-one", rule, weights, full_output=True)
        check_probabilities(result.p, (50, 3))
        assert np.isfinite(result.incoherence).all()

    @pytest.mark.parametrize("center", [2.5, 1e-300, None, "1", -1, 3])
    def test_the_middle_of_a_star_is_a_class(self, center):
        rule = RefregierVallet(tree="star", center=center)
        with pytest.raises((TypeError, ValueError), match="center"):
            couple([[0.7, 0.2, 0.3]], "one-vs-one", rule)

    @pytest.mark.parametrize("n_starts", [0, 2.5, None, 2**70])
    def test_the_number_of_starts_is_a_number(self, n_starts):
        with pytest.raises((TypeError, ValueError), match="n_starts"):
            couple([[0.7, 0.2, 0.3]], "one-vs-rest", KullbackLeibler(n_starts=n_starts))

    def test_kl_leaves_no_row_unwritten(self):
        """Ten columns that outweigh the others left the answer as memory had it."""
        weights = np.r_[np.full(9, 1.7e308), np.ones(10)]
        r = np.random.default_rng(0).random((40, 19))
        check_probabilities(couple(r, "ordinal", "kl", weights), (40, 20))

    def test_only_the_ratio_of_weights_matters(self):
        r = np.random.default_rng(0).random((50, 3))
        weights = np.array([3.0, 1.0, 2.0])
        expected = couple(r, "one-vs-one", "ht", weights)
        for scale in (1e-300, 1e300):
            assert_allclose(couple(r, "one-vs-one", "ht", scale * weights), expected, rtol=1e-9)

    def test_imaginary_parts_are_not_dropped(self):
        with pytest.raises(ValueError, match="weights must be numbers"):
            couple([[0.7, 0.2, 0.3]], "one-vs-rest", "kl", [1j, 2j, 3j])
        with pytest.raises(ValueError, match="dtype complex128"):
            Hamming().combine(np.ones((1, 3)) + 1j, codes.one_vs_rest(3))

    @pytest.mark.parametrize("scale", [1e-320, 1e-300, 1e160, 1e300, 1.7e308])
    @pytest.mark.parametrize("weight", [1e-310, 1.0, 1e308])
    @pytest.mark.parametrize("calibration", [Sigmoid, RobustSigmoid, Isotonic])
    def test_scores_and_weights_of_any_size_are_calibrated(self, calibration, weight, scale):
        scores = np.linspace(-1, 1, 20)[:, None] * scale
        sides = np.where(np.arange(20) % 7 < 3, -1, 1)[:, None].astype(np.int8)
        fitted = calibration().fit(scores, sides, np.full(20, weight))
        r = fitted.transform(scores)
        assert ((r >= 0) & (r <= 1)).all()

    def test_large_scores_are_as_good_as_small_ones(self):
        scores = np.random.default_rng(0).normal(size=(60, 2))
        sides = np.sign(scores + np.random.default_rng(1).normal(size=(60, 2))).astype(np.int8)
        expected = Sigmoid().fit(scores, sides, np.ones(60)).transform(scores)
        for scale in (1e-200, 1e150, 1e250):
            r = Sigmoid().fit(scores * scale, sides, np.ones(60)).transform(scores * scale)
            assert_allclose(r, expected, rtol=1e-9)

    def test_temperature_of_samples_that_hardly_count(self):
        p = np.random.default_rng(0).dirichlet(np.ones(3), size=20)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert 0.05 <= fit_temperature(p, p.argmax(axis=1), np.full(20, 1e-310)) <= 20

    @pytest.mark.parametrize(
        ("line", "message"),
        [
            ("e,d,1,m,error", "damaged: row 2 is 'e,d,1,m,error'"),
            ("e,d,1,m,error,much", "damaged: row 2 is 'e,d,1,m,error,much'"),
            ("e,d,1,m,error," + "9" * 200_000, "damaged: field larger"),
        ],
    )
    def test_results_that_are_damaged(self, tmp_path, line, message):
        path = tmp_path / "results.csv"
        path.write_text(",".join(COLUMNS) + f"\n{line}\n")
        with pytest.raises(ValueError, match=f"results.csv is {message}"):
            list(Results(path))


def _products(a, b):
    return np.asarray(a) @ np.asarray(b).T


@pytest.mark.parametrize(
    "model", [*MODELS.values(), CoupledSVC(kernel=_products), DecisionClassifier(GaussianNB())]
)
class TestNothingToLearnFrom:
    @pytest.mark.parametrize(
        "empty",
        [
            pd.DataFrame(columns=["a", "b"]),
            pd.DataFrame(columns=["a", "b"], dtype=float),
            np.empty((0, 2), dtype=object),
            np.empty((0, 2)),
            sparse.csr_array((0, 2)),
        ],
    )
    def test_no_rows(self, model, empty):
        with pytest.raises(ValueError, match=r"0 sample\(s\) \(shape=\(0, 2\)\).*required by"):
            clone(model).fit(empty, [])

    @pytest.mark.parametrize("bare", [pd.DataFrame(index=range(30)), np.empty((30, 0))])
    def test_no_columns(self, model, bare):
        """Of all rows: not those of the first pair of classes."""
        with pytest.raises(ValueError, match=r"0 feature\(s\) \(shape=\(30, 0\)\).*required by"):
            clone(model).fit(bare, index)


def test_no_rows_of_any_shape():
    with pytest.raises(ValueError, match=r"0 sample\(s\) .* required by CoupledSVC"):
        CoupledSVC(kernel=_products).fit([], [])


def _labels(make):
    """Three labels of a type, in ascending order, as an array of 60."""
    labels = np.empty(60, dtype=object)
    labels[:] = [make(i % 3) for i in range(60)]
    return labels


class TestLabelsOfAnyOrder:
    """What scikit-learn refuses as unknown has an order all the same."""

    rows = np.random.default_rng(0).normal(size=(60, 3)) + np.arange(60)[:, None] % 3

    @pytest.mark.parametrize(
        "make",
        [
            lambda i: datetime.date(2024, 1, 1 + i),
            lambda i: Decimal(i) / 3,
            lambda i: Fraction(i, 7),
            lambda i: (i, "x"),
            lambda i: 2**70 + i,
            lambda i: pd.Timestamp(2024, 1, 1 + i),
            lambda i: np.int64(i),
        ],
        ids=["date", "decimal", "fraction", "tuple", "large", "timestamp", "integer"],
    )
    @pytest.mark.parametrize("model", [CoupledSVC(), CoupledClassifier()])
    def test_objects(self, model, make):
        labels = _labels(make)
        fitted = clone(model).fit(self.rows, labels)
        assert list(fitted.classes_) == [make(i) for i in range(3)]
        numbers = clone(model).fit(self.rows, np.arange(60) % 3)
        assert_array_equal(fitted.predict_proba(self.rows), numbers.predict_proba(self.rows))
        expected = [make(int(i)) for i in numbers.predict(self.rows)]
        assert list(fitted.predict(self.rows)) == expected
        assert fitted.score(self.rows, labels) == numbers.score(self.rows, np.arange(60) % 3)

    def test_bytes(self):
        labels = np.array([b"a", b"b", b"c"])[np.arange(60) % 3]
        assert CoupledSVC().fit(self.rows, labels).score(self.rows, labels) > 0.5

    def test_in_batches(self):
        labels = _labels(lambda i: Fraction(i, 7))
        model = CoupledClassifier(SGDClassifier(loss="log_loss", random_state=0))
        model.partial_fit(self.rows, labels, classes=labels[:3])
        assert set(model.predict(self.rows)) <= set(labels)

    @pytest.mark.parametrize("missing", [None, Decimal("NaN"), Decimal("sNaN"), pd.NaT, pd.NA])
    def test_missing(self, missing):
        labels = np.array([Decimal(1), missing, Decimal(2)] * 20, dtype=object)
        with pytest.raises(ValueError, match="y is .* at row 1, a missing label"):
            CoupledSVC().fit(self.rows, labels)

    def test_without_an_order(self):
        with pytest.raises(TypeError, match="y has labels without an order .*make them texts"):
            CoupledSVC().fit(self.rows, _labels(lambda i: (1, "x", b"y")[i]))
        with pytest.raises(TypeError, match="y has labels without an order .*make them texts"):
            CoupledSVC().fit(self.rows, _labels(lambda i: np.arange(i, i + 2)))

    def test_an_order_of_some(self):
        """Sets within each other have an order, others have none."""
        nested, apart = (_labels(lambda i, a=a: frozenset(range(a * i, i + 1))) for a in (0, 1))
        model = CoupledSVC().fit(self.rows, nested)
        assert_array_equal(model.classes_, nested[:3])
        with pytest.raises(TypeError, match=r"without an order, such as frozenset.*make them tex"):
            CoupledSVC().fit(self.rows, apart)
