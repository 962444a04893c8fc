"""Tasks for joblib. The data that all tasks read is sent to each worker of a cluster once.

Threads share the data, and joblib's processes map it into their memory. joblib's Dask backend
sends an array to one worker, again in every call, and loses it with that worker. Here the data is
sent to all workers once for several calls, and again if it is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from numbers import Integral
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.parallel import get_active_backend

from manyclass._lib.messages import quoted

ATTEMPTS = 3
"""How often lost data is sent. Dask itself lets as many workers die under a task by default."""
_LAZY = {
    "Array": "X.map_blocks(model.predict_proba, dtype=float, chunks=(X.chunks[0], ({k},)))",
    "DataFrame": "X.map_partitions(model.predict_proba)",
}


def check_n_jobs(n_jobs: Any) -> None:
    """Raise a ``ValueError`` if this is not a number of jobs, earlier and clearer than joblib."""
    if n_jobs is not None and (not isinstance(n_jobs, Integral) or n_jobs == 0):
        raise ValueError(
            f"n_jobs must be a whole number other than 0, or None, got {quoted(n_jobs)}. Use -1 "
            "for all processors."
        )


def run_tasks(
    function: Callable[..., Any],
    items: Iterable[Any],
    *shared: Any,
    n_jobs: int | None,
    verbose: int = 0,
    prefer: str | None = None,
    options: Mapping[str, Any] | None = None,
    report: Callable[[Any], None] | None = None,
) -> list[Any]:
    """Return ``function(item, *shared, **options)`` for every item, in order.

    The function belongs to a module: the workers find it by its name. Arrays, frames and sparse
    matrices among the arguments that all tasks share are sent once. ``report`` is called with
    each result when it is there, if the backend can tell.
    """
    items, options = list(items), options or {}
    data = [*shared, *options.values()]
    hints = {} if prefer is None else {"prefer": prefer}  # None would override the user's choice

    def run() -> list[Any]:
        with kept_on_workers(*data):
            _send(data)
            tasks = [delayed(_on_one_worker)(function, item, *shared, **options) for item in items]
            tells = getattr(get_active_backend()[0], "supports_return_generator", False)
            if report is None or not tells:
                return Parallel(n_jobs=n_jobs, verbose=verbose, **hints)(tasks)
            one_by_one = Parallel(n_jobs=n_jobs, verbose=verbose, return_as="generator", **hints)
            return [_reported(result, report) for result in one_by_one(tasks)]

    for _ in range(ATTEMPTS - 1):
        with suppress(CancelledError):  # a worker died with the only copy of some data
            return run()
    return run()


def _reported(result: Any, report: Callable[[Any], None]) -> Any:
    report(result)
    return result


def _on_one_worker(function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """Run a task. The tasks of a learner, such as the trees of a forest, stay on its worker.

    joblib's Dask backend would distribute these as well, each of them with its data. The other
    backends would not.
    """
    if not hasattr(get_active_backend()[0], "data_futures"):
        return function(*args, **options)
    with parallel_config(backend="threading", n_jobs=1):
        return function(*args, **options)


@contextmanager
def kept_on_workers(*data: Any) -> Iterator[None]:
    """Keep data on the workers of Dask while the context lasts, once tasks have sent it.

    Only arrays, frames and sparse matrices are kept. Other backends of joblib ignore this.
    """
    futures = _futures(get_active_backend()[0])
    added = _by_identity(data).keys() - futures.keys()
    futures.update(dict.fromkeys(added))
    try:
        yield
    finally:
        for key in added:
            futures.pop(key, None)


def _send(data: Iterable[Any]) -> None:
    """Send the data that the workers do not have, or have lost."""
    backend, _ = get_active_backend()
    futures, arrays = _futures(backend), _by_identity(data)
    is_there = {key for key, one in futures.items() if one is not None and one.status == "finished"}
    missing = [key for key in arrays if key not in is_there]
    if missing and hasattr(backend, "data_futures"):
        sent = _scatter(backend.client, [arrays[key] for key in missing])
        futures.update(zip(missing, sent, strict=True))


def _scatter(client: Any, data: list[Any]) -> list[Any]:
    """Send data to all workers; repeat that if a worker dies meanwhile."""
    for _ in range(ATTEMPTS - 1):
        with suppress(OSError):  # the connection to the worker is gone
            # Without a hash: with it, one owner of equal data would release that of another.
            return client.scatter(data, broadcast=True, hash=False)
        client.wait_for_workers(1)
    return client.scatter(data, broadcast=True, hash=False)


def _futures(backend: Any) -> dict[int, Any]:
    """Return the data that joblib's Dask backend has sent, by the identity of the object.

    joblib replaces such an object in the arguments of a task by its future. ``None`` means that
    nothing was sent.
    """
    return getattr(backend, "data_futures", {})


def _by_identity(data: Iterable[Any]) -> dict[int, Any]:
    return {id(one): one for one in data if hasattr(one, "shape")}


def check_in_memory(X: Any, n_classes: int | None = None) -> None:
    """Raise a ``ValueError`` that says what to do if X is a Dask collection."""
    if not hasattr(X, "__dask_graph__"):
        return
    kind = type(X).__name__
    one_liner = _LAZY.get(kind, _LAZY["DataFrame"]).format(k=n_classes)
    instead = "" if n_classes is None else f" Predict block by block, with {one_liner}."
    raise ValueError(
        f"X is a Dask {kind}, whose values are not in memory.{instead} To load them into memory, "
        "pass X.compute()."
    )
