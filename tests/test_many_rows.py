"""Many rows: memory that does not grow with them, and data that are not in memory at all."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import coo_array, csc_matrix, csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.svm import SVC
from sklearn.utils import check_array
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC

N_ROWS, N_FEATURES, K = 1_000_000, 16, 5
MB = 2**20
SMALL = {"n_features": 4, "centers": 4, "cluster_std": 4.0, "random_state": 0}
X, y = make_blobs(200, **SMALL)
LEARNERS = {
    "logistic": CoupledClassifier(LogisticRegression(), cv=2),
    "rest": CoupledClassifier(LogisticRegression(), code="one-vs-rest", combiner="kl", cv=2),
    "svm": CoupledSVC(),
    "svm-rest": CoupledSVC(code="one-vs-rest", combiner="kl"),
    "one-by-one": CoupledClassifier(make_pipeline(SVC()), calibration="sigmoid", cv=2),
    "liblinear": CoupledClassifier(LogisticRegression(solver="liblinear", tol=1e-8), cv=2),
}


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    with threadpool_limits(1):
        yield


# -- in a process of its own -----------------------------------------------------------


def _status(name: str) -> float:
    """Return an entry of this process's status, in MB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(name + ":"))


def _normal_rows(path: str, n: int, n_features: int):
    """Make normal samples in a file, a part at a time, and map it into memory."""
    rng = np.random.default_rng(0)
    with open(path, "wb") as file:
        for _ in range(100):
            rng.normal(0.0, 5.0, (n // 100, n_features)).tofile(file)
    rows = np.memmap(path, np.float64, "r", shape=(n, n_features))
    rows.sum()  # all of it is in memory now, and in what the process holds before
    return rows


def _rise_of_prediction(model_path: str, data_path: str) -> str:
    model = pickle.loads(Path(model_path).read_bytes())
    rows = _normal_rows(data_path, N_ROWS, N_FEATURES)
    model.predict_proba(rows[:10])  # loads compiled code
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _status("VmRSS")
    p = model.predict_proba(rows)
    assert p.shape == (N_ROWS, K)
    return f"{_status('VmHWM') - before - p.nbytes / MB:.1f}"


needs_proc = pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK),
    reason="peak memory is read from Linux's /proc",
)


@needs_proc
@pytest.mark.parametrize(
    "model", [CoupledClassifier(LogisticRegression()), CoupledSVC()], ids=["logistic", "svm"]
)
def test_a_million_rows_take_their_answer_and_little_more(model, tmp_path):
    train, labels = make_blobs(200, N_FEATURES, centers=K, random_state=0)
    saved = tmp_path / "model.pickle"
    saved.write_bytes(pickle.dumps(model.fit(train, labels)))
    run = subprocess.run(
        [sys.executable, __file__, str(saved), str(tmp_path / "rows")],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout) < 50.0  # MB


# -- fit -------------------------------------------------------------------------------


def peak_of(task) -> int:
    """Return the bytes that numpy and Python allocate at most, beyond what there is."""
    tracemalloc.start()
    try:
        task()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


N_FIT = 30_000
SGD = SGDClassifier(loss="log_loss", max_iter=1, tol=None, random_state=0)


@pytest.fixture(scope="module")
def data():
    return make_blobs(N_FIT, 50, centers=4, cluster_std=8.0, random_state=0)


class InPlace(SVC):
    """A kernel machine that halves the kernel where it stands, if it may."""

    def __init__(self, copy=True):
        super().__init__(kernel="precomputed")
        self.copy = copy

    def halved(self, K):
        K = check_array(K, copy=self.copy, force_writeable=True)
        K *= 0.5
        return K

    def fit(self, K, y):
        return super().fit(self.halved(K), y)

    def decision_function(self, K):
        return super().decision_function(self.halved(K))


class TestFit:
    def test_without_folds_there_is_no_copy_but_of_pairs(self, data):
        rows, labels = data
        rest = CoupledClassifier(SGD, code="one-vs-rest", combiner="kl", cv=None)
        pairs = CoupledClassifier(SGD, cv=None)
        index_arrays = 100 * N_FIT
        for model in (rest, pairs):
            model.fit(rows[:100], labels[:100])  # compiles what is to be compiled
        assert peak_of(lambda: rest.fit(rows, labels)) < index_arrays
        assert peak_of(lambda: pairs.fit(rows, labels)) < rows.nbytes / 2 + index_arrays

    @pytest.mark.parametrize(("code", "part"), [("one-vs-rest", 2 / 3), ("one-vs-one", 1 / 3)])
    def test_with_folds_there_is_one_copy_of_the_rows_to_learn_from(self, data, code, part):
        rows, labels = data
        model = CoupledClassifier(SGD, code=code, combiner="kl", cv=3)
        model.set_params(calibration=None, scaling="temperature")  # without work on scores
        columns_of_class = 4 if code == "one-vs-rest" else 3
        scores = 12 * N_FIT * columns_of_class
        model.fit(rows[:100], labels[:100])  # compiles what is to be compiled
        peak = peak_of(lambda: model.fit(rows, labels))
        assert peak < part * rows.nbytes + scores + 300 * N_FIT

    def test_a_learner_that_changes_its_input_gets_a_copy(self):
        pipeline = make_pipeline(StandardScaler(copy=False), LogisticRegression())
        model = CoupledClassifier(pipeline, code="one-vs-rest", combiner="kl", cv=None)
        given = X.copy()
        model.fit(given, y)
        assert_array_equal(given, X)
        kept = model.set_params(estimator__standardscaler__copy=True).fit(X, y)
        assert_array_equal(kept.predict_proba(X), model.predict_proba(X))

    @pytest.mark.parametrize("code", ["one-vs-rest", "one-vs-one"])
    @pytest.mark.parametrize("cv", [None, 3])
    @pytest.mark.parametrize("order", ["C", "F"])
    def test_a_learner_that_changes_its_input_leaves_frames_alone(self, code, cv, order):
        def model(copy):
            pipeline = make_pipeline(MinMaxScaler(copy=copy), LogisticRegression())
            return CoupledClassifier(pipeline, code=code, combiner="kl", cv=cv, random_state=0)

        frame, before = (pd.DataFrame(X.copy(order), copy=False) for _ in range(2))
        p = model(copy=False).fit(frame, y).predict_proba(frame)
        assert_array_equal(frame, before)
        assert_array_equal(p, model(copy=True).fit(before, y).predict_proba(before))

    @pytest.mark.parametrize("code", ["one-vs-rest", "one-vs-one"])
    def test_a_learner_that_changes_a_kernel_leaves_frames_alone(self, code):
        def model(copy):
            return CoupledClassifier(InPlace(copy), code=code, combiner="kl", cv=3)

        frame, before = pd.DataFrame(X @ X.T), pd.DataFrame(X @ X.T)
        p = model(copy=False).fit(frame, y).predict_proba(frame)
        assert_array_equal(frame, before)
        assert_array_equal(p, model(copy=True).fit(before, y).predict_proba(before))


class TestPredict:
    @pytest.mark.parametrize("form", [np.array, csr_array, csc_matrix])
    def test_a_learner_that_changes_its_input_gets_a_copy(self, form):
        def model(copy):
            scaler = StandardScaler(copy=copy, with_mean=False)
            return CoupledClassifier(make_pipeline(scaler, LogisticRegression()), cv=3)

        rows, before = form(5.0 * X), form(5.0 * X)
        p = model(copy=False).fit(rows, y).predict_proba(rows)
        assert abs(rows - before).max() == 0
        assert_array_equal(p, model(copy=True).fit(rows, y).predict_proba(rows))

    @pytest.mark.parametrize("name", ["logistic", "svm"])
    def test_labels_do_not_need_all_probabilities(self, name):
        many, _ = make_blobs(50_000, **SMALL)
        model = LEARNERS[name].fit(X, y)
        model.predict(many[:10])
        everything = len(many) * 4 * 8
        assert peak_of(lambda: model.predict_proba(many)) < everything + 20 * MB
        labels, p = model.predict(many), model.predict_proba(many)
        assert_array_equal(labels, model.classes_[p.argmax(axis=1)])
        assert_array_equal(model.decision_function(many), np.log(p))
        assert_array_equal(model.predict_log_proba(many), np.log(p))


# -- data that are elsewhere, or sparse ------------------------------------------------


@pytest.mark.parametrize("name", LEARNERS)
class TestForms:
    def test_a_read_only_memory_map(self, name, tmp_path):
        X.tofile(tmp_path / "X")
        mapped = np.memmap(tmp_path / "X", np.float64, "r", shape=X.shape)
        p = LEARNERS[name].fit(X, y).predict_proba(X)
        assert_array_equal(LEARNERS[name].fit(mapped, y).predict_proba(mapped), p)

    @pytest.mark.parametrize("form", [csr_array, csc_matrix, coo_array])
    def test_sparse_of_any_format(self, name, form):
        model = clone(LEARNERS[name])
        if isinstance(model, CoupledSVC):
            model.set_params(tol=1e-8)  # the two agree up to tol only
        p = model.fit(X, y).predict_proba(X)
        assert_allclose(model.fit(form(X), y).predict_proba(form(X)), p, rtol=1e-4)

    @pytest.mark.parametrize("form", [csr_array, csc_matrix])
    def test_sparse_with_wide_indices(self, name, form):
        wide = form(X)
        wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
        model = LEARNERS[name].fit(form(X), y)
        p = model.predict_proba(form(X))
        assert_array_equal(model.fit(wide, y).predict_proba(wide), p)
        assert wide.indices.dtype == np.int64


if __name__ == "__main__":
    print(_rise_of_prediction(*sys.argv[1:]))
