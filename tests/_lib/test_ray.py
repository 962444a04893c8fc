"""Ray: fitting on its workers, with X in its object store once."""

from __future__ import annotations

import sys
from types import ModuleType

import joblib
import numpy as np
import pytest
from joblib._parallel_backends import ThreadingBackend
from numpy.testing import assert_array_equal
from scipy.sparse import csc_array
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC
from manyclass._lib.jobs import kept_on_workers, run_tasks
from manyclass.banks.limits import Limits

X, y = make_blobs(240, n_features=3, centers=4, cluster_std=4.0, random_state=0)
WEIGHTS = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As on the workers: to the last bit, sums depend on the threads of BLAS."""
    with threadpool_limits(1):
        yield


def total(item, *arrays, **options):
    return item + sum(np.sum(array) for array in (*arrays, *options.values()))


class TestPretended:
    """With a backend that is Ray's by its name, and a store that is a list."""

    class RayBackend(ThreadingBackend):
        pass

    @pytest.fixture
    def store(self, monkeypatch):
        store: list = []
        ray = ModuleType("ray")
        ray.put = lambda data: store.append(data) or len(store) - 1
        ray.get = store.__getitem__
        monkeypatch.setitem(sys.modules, "ray", ray)
        return store

    def test_what_tasks_share_is_stored_once(self, store):
        backend = self.RayBackend()
        with joblib.parallel_config(backend=backend, n_jobs=2):
            assert run_tasks(total, [1, 2], X, 5, n_jobs=None, options={"w": y}) == [
                total(item, X, 5, w=y) for item in (1, 2)
            ]
        assert [id(one) for one in store] == [id(X), id(y)]
        assert backend.in_store == {}

    def test_for_all_calls_of_a_context(self, store):
        backend = self.RayBackend()
        with joblib.parallel_config(backend=backend, n_jobs=2), kept_on_workers(X):
            for _ in range(3):
                run_tasks(total, [1], X, y, n_jobs=None)
            assert [one is X for one in store].count(True) == 1
            assert set(backend.in_store) == {id(X)}
        assert backend.in_store == {}

    @pytest.mark.parametrize("form", [np.asarray, csc_array])
    def test_a_fit_with_folds_stores_its_rows_once(self, store, form):
        model, rows = CoupledClassifier(LogisticRegression(), cv=3), form(X)
        expected = model.fit(rows, y, sample_weight=WEIGHTS).predict_proba(X)
        with joblib.parallel_config(backend=self.RayBackend(), n_jobs=2):
            model.fit(rows, y, sample_weight=WEIGHTS)
        assert_array_equal(model.predict_proba(X), expected)
        assert [one.shape for one in store].count(X.shape) == 1


@pytest.fixture(scope="module")
def ray():
    ray = pytest.importorskip("ray", reason="ray is not installed")
    from ray.util.joblib import register_ray

    register_ray()
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield ray
    ray.shutdown()


class CallPerPair(CoupledSVC):
    """LIBSVM is called for each pair."""

    def _bank_options(self):
        return {**super()._bank_options(), "limits": Limits(one_call=0)}


class TestRay:
    @pytest.fixture
    def stored(self, ray, monkeypatch):
        """Shapes of what is put into the store."""
        shapes: list = []
        put = ray.put
        monkeypatch.setattr(ray, "put", lambda one: shapes.append(np.shape(one)) or put(one))
        return shapes

    @pytest.mark.parametrize("form", [np.asarray, csc_array])
    def test_the_model_is_the_same_and_rows_are_sent_once(self, stored, form):
        model, rows = CoupledClassifier(LogisticRegression(), cv=2), form(X)
        expected = model.fit(rows, y, sample_weight=WEIGHTS).predict_proba(X)
        with joblib.parallel_config(backend="ray", n_jobs=2):
            model.fit(rows, y, sample_weight=WEIGHTS)
        assert_array_equal(model.predict_proba(X), expected)
        assert stored.count(X.shape) + stored.count(()) == 1  # shape of a sparse array to numpy

    def test_machines_of_pairs(self, stored):
        expected = CallPerPair().fit(X, y).predict_proba(X)
        with joblib.parallel_config(backend="ray", n_jobs=2):
            assert_array_equal(CallPerPair().fit(X, y).predict_proba(X), expected)
        assert stored.count(X.shape) == 1
