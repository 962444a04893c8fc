"""Threads, forks, interrupts, full disks, read-only homes: what can go wrong around the library."""

from __future__ import annotations

import errno
import os
import pickle
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from joblib import parallel_config
from numba.core import config as numba_config
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

import experiments
import manyclass
from experiments import results as results_module
from experiments.results import Measurement, Results
from experiments.runner import LOCK
from manyclass import CoupledClassifier, CoupledSVC, DecisionClassifier
from manyclass._lib import compiled as _compiled
from manyclass.learners import (
    BinnedNaiveBayes,
    BoostedNaiveBayes,
    KernelLogisticRegression,
    PairwiseNeighbors,
    ThresholdOptimized,
)

X, y = load_iris(return_X_y=True)
SOURCES = os.pathsep.join(
    [str(Path(manyclass.__file__).parents[1]), str(Path(__file__).parents[1])]
)
PATIENCE = 120  # seconds after which something hangs

posix = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")
can_be_told_where = pytest.mark.skipif(
    not hasattr(numba_config, "CACHE_LOCATOR_CLASSES"),
    reason="this version of numba always finds a place for machine code",
)


def start(script: str, *arguments: str, **environment: str) -> subprocess.Popen:
    """Run Python in a process group of its own, as a shell would run a command."""
    return subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        env={**os.environ, "PYTHONPATH": SOURCES, "OMP_NUM_THREADS": "1", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # Whatever runs the tests may have been told to ignore it, as background jobs are.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def finish(process: subprocess.Popen) -> tuple[str, str]:
    try:
        return process.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        raise


def wait_for(process: subprocess.Popen, line: str) -> None:
    for read in process.stdout:
        if read.strip() == line:
            return
    pytest.fail(f"never said {line!r}: {process.stderr.read()}")


class TestThreads:
    @pytest.mark.parametrize(
        "model", [CoupledSVC(), CoupledSVC(n_jobs=2, combiner="kl"), CoupledClassifier(cv=3)]
    )
    def test_eight_threads_get_the_bits_of_one(self, model):
        model.fit(X, y)
        rows = np.random.default_rng(0).permutation(np.tile(X, (40, 1)))
        expected = model.predict_proba(rows)
        with ThreadPoolExecutor(8) as pool:
            for p in pool.map(model.predict_proba, [rows] * 16):
                assert_array_equal(p, expected)

    def test_threads_may_meet_at_the_first_call(self):
        script = """
import sys
import numpy as np
from concurrent.futures import ThreadPoolExecutor
from manyclass import couple
sys.setswitchinterval(1e-6)
r = np.random.default_rng(0).random((100, 6))
with ThreadPoolExecutor(8) as pool:
    answers = list(pool.map(lambda _: couple(r, "one-vs-one", "pkpd"), range(8)))
assert all((p == answers[0]).all() for p in answers)
"""
        process = start(script)
        assert finish(process) == ("", "")
        assert process.returncode == 0


@posix
class TestFork:
    def test_children_answer_like_their_parent(self):
        script = """
import multiprocessing, sys
import numpy as np
from sklearn.datasets import load_iris
import manyclass

def ask(pipe, model, X):
    pipe.send(model.predict_proba(X))

def child(model, X):
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()
    process = context.Process(target=ask, args=(theirs, model, X))
    process.start()
    assert ours.poll(60), "the child hangs"
    answer = ours.recv()
    process.join()
    return answer

X, y = load_iris(return_X_y=True)
model = manyclass.CoupledSVC(n_jobs=2).fit(X, y)
first = child(model, X)  # the parent has never predicted
assert (model.predict_proba(X) == first).all()
assert (child(model, X) == first).all()
"""
        process = start(script)
        out, err = finish(process)
        assert process.returncode == 0, err
        assert out == ""


@posix
class TestInterrupts:
    def test_fit_ends_and_leaves_the_estimator_as_it_was(self):
        script = """
import time
import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from manyclass import CoupledClassifier, CoupledSVC

def kernel(a, b):
    time.sleep(0.2)
    return a @ b.T

class Slow(LogisticRegression):
    def fit(self, X, y):
        time.sleep(100)

X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 20
for model in (
    CoupledClassifier(Slow(), n_jobs=2),
    CoupledSVC(kernel=kernel, code="one-vs-rest", combiner="kl", cv=5, n_jobs=2),
):
    before = vars(model).copy()
    print("fitting", flush=True)
    try:
        model.fit(X, y)
    except KeyboardInterrupt:
        print("interrupted", vars(model) == before, flush=True)
"""
        process = start(script)
        for _ in range(2):
            wait_for(process, "fitting")
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(1.5)
            os.killpg(process.pid, signal.SIGINT)
            wait_for(process, "interrupted True")
        finish(process)
        assert process.returncode == 0

    def test_a_long_call_of_compiled_code_does_not_hold_up_an_interrupt(self):
        """``fit`` returns at once. The process waits for the call before it exits."""
        script = """
import atexit, time
import numpy as np

atexit.register(lambda: print("registered before", flush=True))
from manyclass import CoupledSVC
from manyclass.banks.svm import training

def fit(*args, **options):
    time.sleep(4)  # no interrupt reaches it in a thread
    print("fitted", flush=True)

training.solve_columns = fit
X, y = np.random.default_rng(0).normal(size=(9000, 2)), np.arange(9000) % 3
model = CoupledSVC()
before = vars(model).copy()
print("fitting", flush=True)
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("interrupted", vars(model) == before, flush=True)
"""
        process = start(script)
        wait_for(process, "fitting")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(1.5)
        os.killpg(process.pid, signal.SIGINT)
        out, _ = finish(process)
        assert out.split("\n") == ["interrupted True", "fitted", "registered before", ""]
        assert process.returncode == 0

    def test_an_interrupted_command_does_not_wait_for_compiled_code(self):
        """It ends at once, and still calls the exit functions."""
        script = """
import atexit, sys, time
import numpy as np
from manyclass._lib.interrupts import interruptible
from manyclass.app import cli, compare

def run(arguments):
    print("waiting", flush=True)
    interruptible(time.sleep, 100, work=np.inf)

atexit.register(lambda: print("at exit", flush=True))
compare.run = run
sys.argv = ["manyclass", "compare"]
cli.run()
"""
        process = start(script)
        wait_for(process, "waiting")
        process.send_signal(signal.SIGINT)
        assert finish(process) == ("at exit\n", "interrupted; nothing kept\n")
        assert process.returncode == 130

    def test_a_terminated_command_leaves_no_processes(self):
        """joblib's would wait for more to do, for minutes, and with files in shared memory."""
        script = """
import sys, time
from joblib import Parallel, delayed
from manyclass.app import cli, compare

def wait(seconds):
    if seconds:
        print("waiting", flush=True)
    time.sleep(seconds)

compare.run = lambda arguments: Parallel(2)(delayed(wait)(s) for s in (0, 100))
sys.exit(cli.main(["compare"]))
"""
        process = start(script)
        wait_for(process, "waiting")
        process.terminate()
        _, err = finish(process)  # which waits for all that have its streams
        assert process.returncode == 143
        first, *rest = err.splitlines()
        assert first == "terminated; nothing kept"
        # joblib's own process, which cleans up behind the others, may tell of what it found.
        assert not rest or "resource_tracker" in rest[0], err


REPRODUCE = """
import sys, time
from pathlib import Path
import experiments
from experiments.__main__ import main
from experiments.runner import Experiment, Row, Task

def measure(i, stop):
    if i == stop:
        print("waiting", flush=True)
        time.sleep(100)
    yield Row("method", "error", i / 10)

stop = int(sys.argv[1])
toy = Experiment(
    "toy2000-table1",
    "A toy",
    lambda scale: [Task("data", str(i), "group", measure, (i, stop)) for i in range(4)],
    lambda scale: {},
    lambda rows, folder: f"{len(rows)} rows\\n",
)
experiments.find = lambda name: [toy]
experiments.of_paper = lambda paper: ("Toys", [toy])
sys.exit(main(["run", "toy", "--output", sys.argv[2]]))
"""


@posix
class TestReproduce:
    @pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
    def test_what_was_finished_is_kept_and_the_rest_goes_on(self, tmp_path, monkeypatch, how):
        process = start(REPRODUCE, "2", str(tmp_path))
        wait_for(process, "waiting")
        os.killpg(process.pid, how)
        _, err = finish(process)
        if how == signal.SIGINT:
            assert process.returncode == 130
            assert "Traceback" not in err
            assert "interrupted" in err
        folder = tmp_path / "toy2000"
        # The lock stays, released: the second run below takes it.
        assert {path.name for path in folder.iterdir()} == {"config.json", "results.csv", LOCK}
        kept = list(Results(folder / "results.csv"))
        assert [row.split for row in kept if row.metric == "error"] == ["0", "1"]

        # The script puts its experiment in the place of these.
        monkeypatch.setattr(experiments, "find", experiments.find)
        monkeypatch.setattr(experiments, "of_paper", experiments.of_paper)
        monkeypatch.setattr(sys, "argv", ["", "-1", str(tmp_path)])
        with pytest.raises(SystemExit, match="0"):
            exec(REPRODUCE, {})
        rows = list(Results(folder / "results.csv"))
        assert rows[: len(kept)] == kept
        assert [row.split for row in rows if row.metric == "error"] == ["0", "1", "2", "3"]


class TestFullDisk:
    """The disk is full from some write on."""

    rows = (
        Measurement("e", "d", "1", "m", "error", 0.5),
        Measurement("e", "d", "1", "g", "seconds", 1.0),
    )
    more = tuple(row._replace(split="2") for row in rows)

    def test_results_that_were_there_are_still_read(self, tmp_path, monkeypatch):
        results = Results(tmp_path / "results.csv")
        results.add(self.rows)

        def full(handle):
            os.ftruncate(handle, 110)  # what had still found a place
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(results_module.os, "fsync", full)
            with pytest.raises(OSError, match="No space left"):
                results.add(self.more)
        assert list(results) == list(self.rows)
        results.repair()
        results.add(self.more)
        assert list(results) == [*self.rows, *self.more]

    def test_replacing_a_file_leaves_the_old_one(self, tmp_path, monkeypatch):
        path = tmp_path / "page.md"
        path.write_text("old")

        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        with pytest.raises(OSError, match="No space left"):
            results_module.replace_file(path, "new")
        assert path.read_text() == "old"
        assert [file.name for file in tmp_path.iterdir()] == ["page.md"]


class Third(LogisticRegression):
    """Fails at the third column."""

    def fit(self, X, y, sample_weight=None):
        if X.shape[1] == 3 and (X[:, 0] == 2).any() and not (X[:, 0] == 0).any():
            raise RuntimeError("the third column fails")
        return super().fit(X[:, 1:], y)

    def predict_proba(self, X):
        return super().predict_proba(X[:, 1:])


class TestFailingFit:
    marked = np.column_stack([y, X[:, 2:]])

    @pytest.mark.parametrize("n_jobs", [None, 2])
    def test_an_unfitted_model_stays_so(self, n_jobs):
        model = CoupledClassifier(Third(), n_jobs=n_jobs)
        before = vars(model).copy()
        with parallel_config("threading"), pytest.raises(RuntimeError, match="third column"):
            model.fit(self.marked, y)
        assert vars(model) == before

    def test_a_fitted_model_keeps_what_it_knew(self):
        model = CoupledClassifier(LogisticRegression()).fit(self.marked, y)
        expected, learned = model.predict_proba(self.marked), vars(model).copy()
        model.estimator = Third()
        with pytest.raises(RuntimeError, match="third column"):
            model.fit(self.marked, y)
        assert vars(model) == {**learned, "estimator": model.estimator}
        assert_array_equal(model.predict_proba(self.marked), expected)

    @pytest.mark.parametrize(
        "model",
        [
            DecisionClassifier(),
            ThresholdOptimized(),
            BoostedNaiveBayes(),
            BinnedNaiveBayes(),
            KernelLogisticRegression(),
        ],
        ids=lambda model: type(model).__name__,
    )
    def test_other_estimators_keep_what_they_knew(self, model):
        model = clone(model)
        expected, learned = model.fit(X, y == 1).predict_proba(X), vars(model).copy()
        narrow = pd.DataFrame(X[:, :2], columns=["a", "b"])
        with pytest.raises(ValueError, match="Negative values"):
            model.fit(narrow, y == 1, sample_weight=-np.ones(150))
        assert vars(model) == learned
        assert_array_equal(model.predict_proba(X), expected)

    def test_neighbours_keep_what_they_knew(self):
        model = PairwiseNeighbors().fit(X, y == 1)
        expected, learned = model.predict_proba(X), vars(model).copy()
        with pytest.raises(ValueError, match="only one class"):
            model.fit(X[:, :2], y == 7)
        assert vars(model) == learned
        assert_array_equal(model.predict_proba(X), expected)

    def test_so_does_one_whose_calibration_fails(self, monkeypatch):
        from manyclass.calibration import Sigmoid

        model = CoupledSVC().fit(X, y)
        expected = model.predict_proba(X)
        monkeypatch.setattr(Sigmoid, "fit_blocks", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            model.set_params(C=100).fit(X, y)
        assert_array_equal(model.predict_proba(X), expected)


class TestCacheOfMachineCode:
    """numba's files are a help, never a hindrance."""

    source = (
        "from manyclass._lib.compiled import kernel\n\n@kernel\ndef plus(a, b):\n    return a + b\n"
    )

    @pytest.fixture
    def folder(self, tmp_path, monkeypatch):
        monkeypatch.setattr(numba_config, "CACHE_DIR", str(tmp_path / "cache"))
        (tmp_path / "sums.py").write_text(self.source)
        return tmp_path

    @staticmethod
    def fresh(path: Path, name: str = "sums"):
        """Import a module as a new process would."""
        spec = spec_from_file_location(name, path)
        sys.modules[name] = module = module_from_spec(spec)
        try:
            spec.loader.exec_module(module)
            yield module
        finally:
            del sys.modules[name]

    def sum_of(self, folder: Path) -> tuple[float, int]:
        """Return 1 + 2, and how often machine code came from a file."""
        for module in self.fresh(folder / "sums.py"):
            answer = module.plus(1.0, 2.0)
            return answer, sum(module.plus.stats.cache_hits.values())
        raise AssertionError

    def test_the_second_process_compiles_nothing(self, folder):
        assert self.sum_of(folder) == (3.0, 0)
        assert self.sum_of(folder) == (3.0, 1)

    @pytest.mark.parametrize("kind", ["nbi", "nbc"])
    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: b"",
            lambda data: data[: len(data) // 2],
            lambda data: b"\0" * len(data),
            lambda data: b"not a pickle",
            lambda data: pickle.dumps("0.0") + pickle.dumps(3),
        ],
        ids=["empty", "cut", "zeros", "text", "another"],
    )
    def test_damaged_files_are_replaced(self, folder, kind, damage):
        self.sum_of(folder)
        (path,) = (folder / "cache").rglob(f"*.{kind}")
        path.write_bytes(damage(path.read_bytes()))
        assert self.sum_of(folder) == (3.0, 0)
        assert self.sum_of(folder) == (3.0, 1)

    def test_a_full_disk_is_no_error(self, folder, monkeypatch):
        def full(*_):
            raise OSError(errno.ENOSPC, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        assert self.sum_of(folder) == (3.0, 0)
        assert not [path for path in (folder / "cache").rglob("*") if path.is_file()]

    @can_be_told_where
    def test_without_a_place_to_write_it_is_compiled_in_memory(self, folder, monkeypatch):
        monkeypatch.setattr(numba_config, "CACHE_LOCATOR_CLASSES", "IPythonCacheLocator")
        assert self.sum_of(folder) == (3.0, 0)
        assert self.sum_of(folder) == (3.0, 0)
        assert not (folder / "cache").exists()

    def test_kept_machine_code_does_not_wait_for_the_compiler(self, tmp_path):
        """Getting it ready takes three times as long as all else of a first fit."""
        script = (
            "from numba.core import event\n"
            "from sklearn.datasets import load_iris\n"
            "from sklearn.naive_bayes import GaussianNB\n"
            "from manyclass import CoupledClassifier\n"
            "options = {'combiner': 'pkpd', 'calibration': 'sigmoid', 'scaling': None, 'cv': 2}\n"
            "X, y = load_iris(return_X_y=True)\n"
            "model = CoupledClassifier(GaussianNB(), **options)\n"
            "with event.install_recorder('numba:compile') as recorder:\n"
            "    print(model.fit(X, y).predict_proba(X[70:71]).tolist())\n"
            "print(len(recorder.buffer) > 0)"
        )
        cold, warm = (finish(start(script, NUMBA_CACHE_DIR=tmp_path)) for _ in range(2))
        assert cold[0].endswith("True\n")
        assert warm == (cold[0].replace("True", "False"), "")

    @can_be_told_where
    def test_the_package_works_without_any(self):
        script = (
            "import manyclass\n"
            "p = manyclass.couple([[[0.5, 0.9], [0.1, 0.5]]], rule='vote')\n"
            "print(p.round(2).tolist())"
        )
        process = start(script, NUMBA_CACHE_LOCATOR_CLASSES="IPythonCacheLocator")
        assert finish(process) == ("[[1.0, 0.0]]\n", "")

    @pytest.mark.parametrize("change", [("+ b", "- b"), ("SHIFT = 0.0", "SHIFT = -4.0")])
    def test_code_of_other_files_is_never_out_of_date(self, folder, change, monkeypatch):
        """numba alone would not see that what a kernel calls, or a constant, has changed."""
        # Python's own bytecode of a file that changes within a second is out of date.
        monkeypatch.setattr(sys, "dont_write_bytecode", True)
        inner = self.source + "\nSHIFT = 0.0\n"
        outer = (
            "from manyclass._lib.compiled import kernel\nfrom parts.inner import SHIFT, plus\n\n"
            "@kernel\ndef shifted(a, b):\n    return plus(a, b) + SHIFT\n"
        )
        answers = []
        for source in (inner, inner.replace(*change)):
            (folder / "inner.py").write_text(source)
            (folder / "outer.py").write_text(outer)
            _compiled._digest.cache_clear()
            for _ in self.fresh(folder / "inner.py", "parts.inner"):
                for module in self.fresh(folder / "outer.py", "parts.outer"):
                    answers.append(module.shifted(1.0, 2.0))
        _compiled._digest.cache_clear()
        assert answers == [3.0, -1.0]
