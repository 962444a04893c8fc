"""CoupledClassifier in place of scikit-learn's meta-estimators: attributes, inputs, errors."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.multiclass import OneVsOneClassifier
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC, NuSVC
from sklearn.utils import get_tags

from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass.learners import KernelLogisticRegression

X, y = load_iris(return_X_y=True)
QUICK = {"combiner": "max-wins", "cv": None}
AS_IT_IS = {"calibration": None, "cv": None, "scaling": None}


class OfImages(ClassifierMixin, BaseEstimator):
    """A learner of rows of shape (2, 2)."""

    def fit(self, X, y):
        self.classes_, self.model_ = np.unique(y), GaussianNB().fit(self._flat(X), y)
        return self

    def predict_proba(self, X):
        return self.model_.predict_proba(self._flat(X))

    def _flat(self, X):
        assert X.shape[1:] == (2, 2)
        return X.reshape(len(X), 4)


# -- attributes ------------------------------------------------------------------------


@pytest.mark.parametrize("model", [CoupledSVC(), CoupledClassifier(GaussianNB(), code="complete")])
def test_names_of_scikit_learn(model):
    for name in ("n_classes_", "code_book_", "pairwise_indices_", "estimators_"):
        assert not hasattr(model, name)
    model.fit(X, y)
    assert model.n_classes_ == 3 and model.pairwise_indices_ is None
    assert_array_equal(model.code_book_, model.code_)
    with pytest.raises(ValueError, match="read-only"):
        model.code_book_[0, 0] = 0
    model.code_[0, 0] *= 1  # our own name may be written to


def test_pairwise_indices_are_those_of_one_vs_one_classifier():
    learner = SVC(kernel="precomputed")
    theirs = OneVsOneClassifier(learner).fit(X @ X.T, y).pairwise_indices_
    ours = CoupledClassifier(learner, **QUICK).fit(X @ X.T, y).pairwise_indices_
    for a, b in zip(ours, theirs, strict=True):
        assert_array_equal(a, b)


def test_decision_values_of_votes_are_those_of_one_vs_one_classifier():
    learner = SVC(gamma=0.1, tol=1e-8)
    theirs = OneVsOneClassifier(learner).fit(X, y).decision_function(X)
    ours = CoupledClassifier(learner, **QUICK).fit(X, y).decision_function(X)
    assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_tags_of_the_learner_pass_through():
    for learner in (MultinomialNB(), SVC(kernel="precomputed"), LogisticRegression()):
        tags = get_tags(CoupledClassifier(learner)).input_tags
        assert tags == get_tags(learner).input_tags
    assert get_tags(CoupledClassifier(MultinomialNB())).input_tags.positive_only


# -- inputs ----------------------------------------------------------------------------


@pytest.mark.parametrize("code", ["one-vs-one", "native"])
def test_rows_of_more_dimensions_pass_through(code):
    images = X.reshape(150, 2, 2)
    model = CoupledClassifier(OfImages(), code=code).fit(images, y)
    flat = CoupledClassifier(GaussianNB(), code=code).fit(X, y)
    assert_allclose(model.predict_proba(images), flat.predict_proba(X), atol=1e-9)
    assert len(model.predict(images[:0])) == 0


@pytest.mark.parametrize("model", [CoupledSVC(), CoupledClassifier(), CoupledClassifier(SVC())])
def test_learners_of_plain_rows_refuse_more_dimensions(model):
    with pytest.raises(ValueError, match="dim 3.* SVC|dim 3.* LogisticRegression"):
        model.fit(X.reshape(150, 2, 2), y)
    with pytest.raises(ValueError, match="dim 3|dimension"):
        model.fit(X[:, :2], y).predict(X.reshape(150, 2, 2))


BANKS = {
    "kernels": CoupledSVC(),
    "linear kernel": CoupledSVC(kernel="linear"),
    "precomputed": CoupledSVC(kernel="precomputed"),
    "callable": CoupledSVC(kernel=lambda a, b: a @ b.T),
    "NuSVC": CoupledClassifier(NuSVC(nu=0.2)),
    "kernel logistic": CoupledClassifier(KernelLogisticRegression()),
    "linear": CoupledClassifier(LinearSVC(dual=False)),
    "by column": CoupledClassifier(GaussianNB()),
    "pipeline": CoupledClassifier(make_pipeline(GaussianNB())),
    "native": CoupledClassifier(GaussianNB(), code="native"),
    "grouped": CoupledClassifier(GaussianNB(), code="q-ary"),
    "tree": CoupledClassifier(code=codes.ClassTrees(1), **AS_IT_IS),
    "prefit": CoupledClassifier(FrozenEstimator(GaussianNB().fit(X, y)), code="native"),
    "decoder": CoupledClassifier(LinearSVC(dual=False), **QUICK),
    "reliability": CoupledClassifier(SVC(), code="one-vs-rest", combiner="drm"),
    "softmax": CoupledClassifier(SVC(), combiner="softmax"),
    "batches": CoupledClassifier(SGDClassifier(random_state=0)),
}


@pytest.mark.filterwarnings("ignore:probabilities are provisional")
@pytest.mark.parametrize("name", BANKS)
def test_zero_rows_are_answered(name):
    model, data = BANKS[name], X @ X.T if name == "precomputed" else X
    if name == "batches":
        model.partial_fit(data, y, classes=np.unique(y))
    else:
        model.fit(data, y)
    none = np.empty((0, data.shape[1]))
    for rows in (none, pd.DataFrame(none), sparse.csr_matrix(none)):
        assert model.predict(rows).shape == (0,) and model.predict(rows).dtype == y.dtype
        assert model.decision_function(rows).shape == (0, 3)
        if hasattr(model, "predict_proba"):
            assert model.predict_proba(rows).shape == (0, 3)
            assert model.predict_top(rows, 2)[0].shape == (0, 2)


# -- errors ----------------------------------------------------------------------------


@pytest.mark.parametrize("model", [CoupledSVC(), CoupledClassifier()])
@pytest.mark.parametrize(
    "labels",
    [np.c_[y == 0, y == 1].astype(int), np.c_[y, y], [[0, 1], [1]] * 75],
    ids=["indicators", "several", "lists"],
)
def test_several_labels_of_a_row(model, labels):
    with pytest.raises(ValueError, match="MultiOutputClassifier or ClassifierChain"):
        model.fit(X, labels)


@pytest.mark.parametrize("model", [CoupledSVC(), CoupledClassifier()])
def test_one_class(model):
    with pytest.raises(ValueError, match="only one class.* OneClassSVM"):
        model.fit(X, np.zeros(150))


def test_a_missing_partial_fit_is_explained():
    with pytest.raises(AttributeError, match="no attribute 'partial_fit'") as caught:
        _ = CoupledClassifier(LogisticRegression()).partial_fit
    assert "'LogisticRegression' object" in str(caught.value.__cause__)


def test_weights_beyond_computing_are_named():
    weight = np.where(np.arange(150) == 7, 1e300, 1.0)
    for model in (CoupledSVC(), CoupledClassifier(SVC())):
        with pytest.raises(ValueError, match="sample_weight, times class_weight .* 1e.300"):
            model.fit(X, y, weight)
    with pytest.raises(ValueError, match="class_weight if there is one, is as large as"):
        CoupledSVC(class_weight={0: 1e200}).fit(X, y)


# -- gamma -----------------------------------------------------------------------------


def test_gamma_is_resolved_on_all_rows_and_in_a_pipeline_on_those_of_the_column():
    whole, pair = CoupledClassifier(SVC(), **QUICK).fit(X, y), SVC().fit(X[:100], y[:100])
    assert_allclose(whole.bank_.kernel.gamma, 1 / (4 * X.var()))
    column = CoupledClassifier(make_pipeline(SVC()), **QUICK).fit(X, y).estimators_[0]
    assert_allclose(column.decision_function(X), -pair.decision_function(X), atol=1e-2)
    assert abs(whole.bank_.scores(X)[:, 0] + pair.decision_function(X)).max() > 0.05


@pytest.mark.parametrize("learner", [LogisticRegression(), LinearSVC()])
def test_coefficients_of_linear_models_are_read_only(learner):
    """They are copies: a written number would be ignored."""
    model = CoupledClassifier(learner, **QUICK).fit(X, y)
    for name in ("coef_", "intercept_"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(model.estimators_[0], name)[...] = 99.0
