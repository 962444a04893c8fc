"""Dask: prediction block by block, and fitting on a cluster of processes."""

from __future__ import annotations

import os
import signal
from concurrent.futures import CancelledError

import joblib
import numpy as np
import pandas as pd
import pytest
from joblib.parallel import get_active_backend
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from manyclass import CoupledClassifier, CoupledSVC
from manyclass._lib.jobs import ATTEMPTS, kept_on_workers, run_tasks

dask = pytest.importorskip("dask", reason="dask is not installed")
distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe", reason="dask.dataframe is not installed")

X, y = make_blobs(240, n_features=3, centers=4, cluster_std=4.0, random_state=0)
NAMES = np.array(["ant", "bee", "cat", "dog"])[y]
FRAME = pd.DataFrame(X, columns=["a", "b", "c"])
BY_ROWS = pd.DataFrame(X, columns=["a", "b", "c"], copy=False)  # in memory
WEIGHTS = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
FOLDS = 3


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """As on the workers: to the last bit, sums depend on the threads of BLAS."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def client():
    """Two processes, which are spoken to over TCP."""
    with (
        distributed.LocalCluster(
            n_workers=2,
            processes=True,
            threads_per_worker=1,
            host="127.0.0.1",
            protocol="tcp",
            dashboard_address="127.0.0.1:0",
            silence_logs=50,
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def model():
    return CoupledClassifier(cv=None).fit(X, NAMES)


@pytest.fixture(scope="module")
def frame_model():
    return CoupledClassifier(cv=None).fit(FRAME, NAMES)


@pytest.fixture(params=["threads", "cluster"])
def compute(request):
    """Compute a collection, by threads of this process or on the cluster."""
    if request.param == "threads":
        return lambda collection: collection.compute(scheduler="threads")
    client = request.getfixturevalue("client")
    return lambda collection: client.compute(collection, sync=True)


class TestBlocks:
    def test_probabilities_of_an_array(self, model, compute):
        rows = da.from_array(X, chunks=(100, 3))
        p = rows.map_blocks(model.predict_proba, dtype=float, chunks=(rows.chunks[0], (4,)))
        assert p.shape == (240, 4)
        assert_allclose(compute(p), model.predict_proba(X), rtol=1e-12)

    def test_labels_of_an_array(self, model, compute):
        rows = da.from_array(X, chunks=(100, 3))
        labels = rows.map_blocks(model.predict, dtype=model.classes_.dtype, drop_axis=1)
        assert_array_equal(compute(labels), model.predict(X))

    def test_unknown_sizes_and_a_block_without_rows(self, model, compute):
        rows = da.from_array(X, chunks=(80, 3))
        kept = (np.arange(240) >= 80) & (X[:, 0] > 0)
        some = rows[da.from_array(kept, chunks=80)]
        assert np.isnan(some.shape[0])
        p = some.map_blocks(model.predict_proba, dtype=float, chunks=(some.chunks[0], (4,)))
        assert_allclose(compute(p), model.predict_proba(X[kept]), rtol=1e-12)

    def test_probabilities_of_a_frame(self, frame_model, compute):
        parts = dd.from_pandas(FRAME, npartitions=3)
        some = parts[parts["a"] > FRAME["a"].sort_values().iloc[-3]]  # leaves parts empty
        answer = compute(some.map_partitions(as_frame, frame_model))
        kept = FRAME.loc[answer.index]
        assert len(answer) == 2
        assert list(answer.columns) == ["ant", "bee", "cat", "dog"]
        assert_allclose(answer, frame_model.predict_proba(kept), rtol=1e-12)

    @pytest.mark.parametrize("method", ["predict_proba", "predict", "decision_function"])
    def test_no_rows_give_no_answers(self, model, frame_model, method):
        empty, of_frame = getattr(model, method)(X[:0]), getattr(frame_model, method)(FRAME[:0])
        expected = getattr(model, method)(X)
        assert empty.shape == of_frame.shape == (0, *expected.shape[1:])
        assert empty.dtype == of_frame.dtype == expected.dtype
        with pytest.raises(ValueError, match="X has 2 features"):
            getattr(model, method)(X[:0, :2])

    def test_a_lazy_array_is_refused_with_the_remedy(self, model):
        rows = da.from_array(X, chunks=(100, 3))
        with pytest.raises(ValueError, match=r"Dask Array.*not in memory.*chunks=.*\(4,\)"):
            model.predict_proba(rows)
        with pytest.raises(ValueError, match=r"To load them into memory, pass X.compute\(\)"):
            CoupledClassifier().fit(rows, y)
        with pytest.raises(ValueError, match=r"To load them into memory, pass X.compute\(\)"):
            CoupledClassifier(GaussianNB()).partial_fit(rows, y, classes=np.unique(y))

    def test_a_lazy_frame_is_refused_with_the_remedy(self, frame_model):
        rows = dd.from_pandas(FRAME, npartitions=2)
        with pytest.raises(ValueError, match=r"Dask DataFrame.*X.map_partitions\(model.predict_p"):
            frame_model.predict_proba(rows)
        with pytest.raises(ValueError, match=r"Dask DataFrame.*not in memory"):
            CoupledSVC().fit(rows, y)


def as_frame(part, model):
    """Probabilities with the rows' index and the classes' names."""
    return pd.DataFrame(model.predict_proba(part), index=part.index, columns=model.classes_)


# -- fitting ---------------------------------------------------------------------------


class Travelling(pd.DataFrame):
    """A frame that counts how often it leaves a process or arrives in one."""

    departures = 0
    arrivals = 0

    @property
    def _constructor(self):
        return pd.DataFrame

    def __reduce_ex__(self, protocol):
        Travelling.departures += 1
        return super().__reduce_ex__(protocol)

    def __setstate__(self, state):
        Travelling.arrivals += 1
        super().__setstate__(state)


def arrivals():
    return Travelling.arrivals


def first_to_make(path) -> bool:
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Mortal(LogisticRegression):
    """Kills its worker, once, when some columns are fitted."""

    def __init__(self, folder=None, survivor=None):
        super().__init__()
        self.folder, self.survivor = folder, survivor

    def fit(self, X, y, sample_weight=None):
        if self.folder is not None and os.getpid() != self.survivor:
            (self.folder / str(hash(X.tobytes()))).touch()
            if len(list(self.folder.iterdir())) >= 4 and first_to_make(self.folder / "died"):
                os.kill(os.getpid(), signal.SIGKILL)
        return super().fit(X, y, sample_weight)


def same_scaling(one, other) -> bool:
    """Equal to the last bit, or none."""
    return one is other is None or np.array_equal(one.matrix_, other.matrix_)


def same(one, other) -> bool:
    """Equal to the last bit."""
    p, q = (model.predict_proba(model.X_) for model in (one, other))
    return np.array_equal(p, q) and same_scaling(one.scaling_, other.scaling_)


def fitted(model, X, *args, **options):
    model.fit(X, *args, **options).X_ = X
    return model


class TestFitting:
    @pytest.mark.parametrize(
        ("model", "data", "options"),
        [
            (CoupledClassifier(cv=FOLDS), X, {}),
            (CoupledClassifier(cv=FOLDS, code="one-vs-rest", combiner="kl"), FRAME, {}),
            (CoupledClassifier(cv=FOLDS, code="one-vs-rest", combiner="kl"), BY_ROWS, {}),
            (CoupledClassifier(cv=FOLDS), X, {"sample_weight": WEIGHTS}),
            (CoupledClassifier(cv=FOLDS), csr_array(X), {}),
            (
                CoupledClassifier(DecisionTreeClassifier(max_features=1), cv=FOLDS, random_state=0),
                X,
                {},
            ),
            (
                CoupledClassifier(cv=None, scaling=None, code="one-vs-rest", combiner="kl"),
                np.random.default_rng(0).normal(size=(len(y), 200)),
                {},
            ),
            (CoupledClassifier(GaussianNB(), code="q-ary", cv=FOLDS, random_state=0), X, {}),
            (CoupledClassifier(code="q-ary", cv=FOLDS, random_state=0), BY_ROWS, {}),
            (CoupledClassifier(code="class-trees", cv=FOLDS, random_state=0), csr_array(X), {}),
            (CoupledSVC(C=10), X, {}),
            (CoupledSVC(C=10, cv=FOLDS), X, {"sample_weight": WEIGHTS}),
            (CoupledSVC(code="one-vs-rest", combiner="kl"), csr_array(X), {}),
        ],
        ids=(
            "pairs frame by-rows weights sparse forest rest groups groups-by-rows trees svm "
            "svm-folds svm-rest"
        ).split(),
    )
    def test_a_cluster_fits_what_one_process_does(self, client, model, data, options):
        local = fitted(clone(model), data, NAMES, **options)
        if isinstance(model, CoupledSVC):
            model = CoupledSVC(**model.get_params())
        with joblib.parallel_config(backend="dask", client=client):
            away = fitted(clone(model), data, NAMES, **options)
        assert same(local, away)

    @pytest.mark.parametrize("scattered", [False, True])
    def test_data_leave_once_for_all_columns_and_folds(self, client, scattered):
        rows = Travelling(FRAME)
        before = client.run(arrivals)
        Travelling.departures = 0
        scatter = {"scatter": [rows]} if scattered else {}
        with joblib.parallel_config(backend="dask", client=client, **scatter):
            CoupledClassifier(cv=FOLDS).fit(rows, y)
        assert Travelling.departures == 1
        received = client.run(arrivals)
        # Dask drops copies that no task waits for, and may fetch them again from the other.
        assert all(1 <= received[worker] - before[worker] <= 2 for worker in received)

    def test_columns_of_all_rows_share_one_array(self, client):
        with joblib.parallel_config(backend="dask", client=client):
            model = CoupledClassifier(Addresses(), code="complete", combiner="kl", cv=None)
            model.fit(X, y)
        assert len(model.estimators_) == 7
        # One of each worker, or two where Dask has fetched it again.
        assert len({column.address_ for column in model.estimators_}) <= 4

    def test_fits_within_fits(self, client):
        model = CoupledClassifier(cv=None)
        local = cross_val_score(model, X, y, cv=2)
        with joblib.parallel_config(backend="dask", client=client):
            assert_array_equal(cross_val_score(model, X, y, cv=2), local)

    def test_trees_stay_with_their_forest(self, client):
        with joblib.parallel_config(backend="dask", client=client):
            model = CoupledClassifier(Backend(), cv=None).fit(X, y)
        away = [column.backend_ for column in model.estimators_]
        assert away == [("ThreadingBackend", 1)] * 6

    def test_nothing_stays_on_the_workers(self, client):
        with joblib.parallel_config(backend="dask", client=client) as config:
            CoupledClassifier(SVC(), cv=FOLDS).fit(X, y)
            assert config["backend"].data_futures == {}

    @pytest.mark.parametrize("n_jobs", [1, 2])
    def test_pairs_in_threads_are_the_pairs_of_one(self, n_jobs):
        local = fitted(CoupledSVC(C=10), X, y)
        assert same(local, fitted(CoupledSVC(C=10, n_jobs=n_jobs), X, y))


class Backend(LogisticRegression):
    """Remembers what its own tasks would be run by."""

    def fit(self, X, y, sample_weight=None):
        backend, n_jobs = get_active_backend()
        self.backend_ = type(backend).__name__, n_jobs
        return super().fit(X, y, sample_weight)


class Addresses(LogisticRegression):
    """Remembers where its training data were."""

    def fit(self, X, y, sample_weight=None):
        self.address_ = os.getpid(), X.__array_interface__["data"][0]
        return super().fit(X, y, sample_weight)


# -- tasks -----------------------------------------------------------------------------


class Lost:
    """Data that were lost so many times."""

    def __init__(self, times):
        self.times = times

    def read(self, item, factor=1):
        self.times -= 1
        if self.times >= 0:
            raise CancelledError
        return factor * item


def read(item, lost, **options):
    return lost.read(item, **options)


def total(item, one, other):
    return one.sum() + other.sum()


class TestTasks:
    def test_answers_are_in_order(self):
        options = {"factor": 2}
        assert run_tasks(read, range(5), Lost(0), n_jobs=None, options=options) == [0, 2, 4, 6, 8]

    def test_what_is_lost_is_sent_again(self):
        assert run_tasks(read, range(3), Lost(ATTEMPTS - 1), n_jobs=None) == [0, 1, 2]

    def test_but_not_for_ever(self):
        with pytest.raises(CancelledError):
            run_tasks(read, range(3), Lost(ATTEMPTS), n_jobs=None)

    def test_lost_data_are_replaced(self, client):
        data = np.arange(1000.0)
        with joblib.parallel_config(backend="dask", client=client, scatter=[data]) as config:
            futures = config["backend"].data_futures
            lost = futures[id(data)]
            lost.cancel(reason="lost", msg="in a test")
            assert run_tasks(total, range(3), data, data, n_jobs=None) == [2 * data.sum()] * 3
            assert futures[id(data)].key != lost.key

    def test_data_are_kept_as_long_as_asked(self, client):
        data = np.arange(1000.0)
        with joblib.parallel_config(backend="dask", client=client) as config:
            futures = config["backend"].data_futures
            with kept_on_workers(data):
                run_tasks(total, range(3), data, data, n_jobs=None)
                sent = futures[id(data)].key
                run_tasks(total, range(3), data, data, n_jobs=None)
                assert futures[id(data)].key == sent
            assert futures == {}

    def test_nothing_is_sent_before_a_task_needs_it(self, client):
        with joblib.parallel_config(backend="dask", client=client) as config, kept_on_workers(X):
            assert config["backend"].data_futures == {id(X): None}

    def test_without_a_cluster_nothing_is_sent(self):
        with joblib.parallel_config(backend="threading"), kept_on_workers(X):
            assert run_tasks(total, range(2), X, X, n_jobs=2) == [2 * X.sum()] * 2


class TestFaults:
    def test_a_worker_killed_takes_nothing_with_it(self, client, tmp_path):
        local = fitted(CoupledClassifier(Mortal(), cv=FOLDS), X, y)
        with joblib.parallel_config(backend="dask", client=client):
            away = fitted(CoupledClassifier(Mortal(tmp_path, os.getpid()), cv=FOLDS), X, y)
        assert (tmp_path / "died").exists()
        assert same(local, away)
        client.wait_for_workers(2, timeout=60)
