"""Long calls of compiled code: in threads, and such that Ctrl-C can interrupt them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import Any

from joblib import cpu_count, effective_n_jobs
from sklearn import config_context, get_config


def interruptible(
    function: Callable[..., Any], *args: Any, work: float, long: float = 1e8, **options: Any
) -> Any:
    """Return ``function(*args, **options)``; Ctrl-C interrupts the wait for a long call.

    Python handles Ctrl-C when a call of compiled code returns. A solver may take minutes. A long
    call therefore runs in a worker thread, and the main thread waits for it. After Ctrl-C the
    worker finishes its call in the background and its result is dropped. A process does not exit
    before that, because the compiled code must not be unloaded while it runs.

    ``work`` is an estimate of the multiplications in the call. Calls with less work than ``long``
    run directly. A choice: LIBSVM takes about 0.2 s for 1e8 multiplications. The thread adds 0.2 ms
    to a call, which is a fifth of a fit of 100 rows and nothing to a fit of 0.2 s.
    """
    if work < long or threading.current_thread() is not threading.main_thread():
        return function(*args, **options)
    configuration = get_config()  # scikit-learn keeps one per thread

    def call() -> Any:
        with config_context(**configuration):
            return function(*args, **options)

    pool = ThreadPoolExecutor(1)
    try:
        return pool.submit(copy_context().run, call).result()
    finally:
        pool.shutdown(wait=False)


def count_threads(n_jobs: int | None, n_tasks: int) -> int:
    """Return the number of threads for ``n_tasks`` tasks; one if ``n_jobs`` is None."""
    if n_jobs is None or n_tasks < 2:
        return 1
    # On a cluster effective_n_jobs counts all its cores, but threads only use this machine.
    return min(effective_n_jobs(n_jobs), cpu_count(), n_tasks)


def run_in_threads(
    task: Callable[..., Any],
    parts: Iterable[tuple[Any, ...]],
    n_jobs: int,
    *,
    work: float,
    long: float = 1e8,
) -> None:
    """Call ``task(*part)`` for every part, ``n_jobs`` at a time; Ctrl-C interrupts the wait.

    With at most one job and less work than ``long``, no thread is made: see :func:`interruptible`.
    """
    waits = threading.current_thread() is threading.main_thread() and work >= long
    if n_jobs <= 1 and not waits:
        for part in parts:
            task(*part)
        return
    pool = ThreadPoolExecutor(n_jobs)
    try:
        for future in [pool.submit(task, *part) for part in parts]:
            future.result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
