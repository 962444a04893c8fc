"""Commands that are interrupted. ``python -m fuzz.interrupts`` tries many more moments."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from functools import partial

import joblib
import pytest
from sklearn.utils.fixes import parse_version

from fuzz import interrupts
from manyclass.app import signals
from manyclass.app.signals import end_process, run_command, starting_workers, watched_pool

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals of POSIX systems")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("skops")
    path = tmp_path_factory.mktemp("interrupted")
    interrupts.prepare(path)
    return path


@pytest.mark.parametrize(
    ("command", "number", "after"),
    [
        ("compare-jobs", signal.SIGINT, 0.4),
        ("fit", signal.SIGTERM, 1.5),
        ("predict", signal.SIGKILL, 3.0),
    ],
)
def test_ends_in_order(command, number, after, folder):
    outcome = interrupts.interrupt(command, number, after, folder, patience=120)
    assert outcome.faults == [], outcome.said


def test_older_joblib_has_workers_too(monkeypatch):
    class Older(joblib.Parallel):  # as joblib 1.4
        def __init__(self, n_jobs=None, return_as="list"):
            super().__init__(n_jobs=n_jobs, return_as=return_as)

    monkeypatch.setattr(joblib, "Parallel", Older)
    with watched_pool(n_jobs=1, return_as="generator") as parallel:
        assert list(parallel(joblib.delayed(abs)(i) for i in (-1, 2))) == [1, 2]


WORKER = """
import os, sys, time
from joblib import Parallel, delayed
from manyclass.app import signals
from manyclass.app.signals import end_with_parent

if __name__ == "__main__":
    with Parallel(n_jobs=2, initializer=end_with_parent, initargs=(os.getpid(),)) as parallel:
        parallel(delayed(time.sleep)(0) for _ in range(2))
        print(os.getpid(), flush=True)
        parallel(delayed(time.sleep)(300) for _ in range(2))
"""


@pytest.mark.skipif(
    parse_version(joblib.__version__) < parse_version("1.5"),
    reason="joblib runs code at the start of its workers since 1.5",
)
def test_workers_end_with_their_parent(tmp_path):
    path = tmp_path / "parent.py"
    path.write_text(WORKER)
    parent = subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert int(parent.stdout.readline()) == parent.pid
    parent.kill()
    parent.wait()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            os.killpg(parent.pid, 0)
        except ProcessLookupError:
            return
        time.sleep(0.2)
    os.killpg(parent.pid, signal.SIGKILL)
    pytest.fail("workers outlive their parent")


def test_workers_that_start_after_its_end_end_at_once():
    child = "from manyclass.app.signals import end_with_parent; import time\n"
    child += "end_with_parent(1 << 30); time.sleep(60)"
    assert subprocess.run([sys.executable, "-c", child], timeout=50).returncode == 1


def test_ctrl_c_does_not_reach_workers_that_start():
    child = "import os, signal; os.kill(os.getpid(), signal.SIGINT); print('alive')"
    with starting_workers(2):
        done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True)
    assert done.stdout == "alive\n"
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


@pytest.mark.parametrize("error", [ValueError, SystemError, ZeroDivisionError])
def test_what_libraries_make_of_an_interrupt_is_no_traceback(error, capsys):
    def command():
        try:
            signal.raise_signal(signal.SIGTERM)
        except KeyboardInterrupt as interrupt:
            raise error("wrapped") from interrupt

    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        assert run_command(lambda: ("some command", command), "nothing kept") == 143
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == "terminated; nothing kept\n"


class Slow:
    """An object that takes long to free, as large tables do."""

    def __del__(self):
        until = time.monotonic() + 0.1
        while time.monotonic() < until:
            pass


def test_an_interrupt_that_was_dealt_with_is_not_sent_again(monkeypatch, capsys):
    def command():
        held = Slow()
        signal.raise_signal(signal.SIGTERM)
        return held

    monkeypatch.setattr(
        signals, "signals_as_exceptions", partial(signals.signals_as_exceptions, 0.01)
    )
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    try:
        assert run_command(lambda: ("some command", command), "nothing kept") == 143
    finally:
        signal.signal(signal.SIGTERM, before)
    assert capsys.readouterr().err == "terminated; nothing kept\n"


def test_other_errors_stay_what_they_are():
    def command():
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        run_command(lambda: ("some command", command), "nothing kept")
    with pytest.raises(SystemExit):
        end_process(3)


@pytest.mark.parametrize("megabytes", [400, 600, 900])
def test_limits_of_memory_are_a_line(megabytes):
    """With some of these, OpenBLAS would ask for memory for ever."""
    resource = pytest.importorskip("resource")
    limit = megabytes * 10**6
    done = subprocess.run(
        [sys.executable, "-m", "manyclass", "compare", "iris"],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("manyclass compare: memory is limited to")
