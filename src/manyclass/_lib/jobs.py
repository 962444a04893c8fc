"""Tasks for joblib: what all of them read goes to every worker of a cluster once.

Threads share it, and joblib maps it into the memory of its processes. Its Dask backend
sends an array to one worker, anew for every call, and what was sent is lost with that
worker; Ray's sends it with every task. Here it is sent to all of them once, for as many calls
as need it, and again if it gets lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager, suppress
from importlib import import_module
from numbers import Integral
from typing import Any

from joblib import Parallel, delayed, parallel_config
from joblib.parallel import get_active_backend

from manyclass._lib.messages import quoted

SHARED_MEMORY = "/dev/shm"  # where joblib puts arrays for its processes,
ROOM = 2_000_000_000  # if so many bytes are free there
ATTEMPTS = 3  # as often as Dask itself lets workers die under a task
LAZY = {
    "Array": "X.map_blocks(model.predict_proba, dtype=float, chunks=(X.chunks[0], ({k},)))",
    "DataFrame": "X.map_partitions(model.predict_proba)",
}


def check_n_jobs(n_jobs: Any) -> None:
    """Raise a ``ValueError`` if this is no number of jobs; joblib says less of it, and later."""
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
) -> list[Any]:
    """Return ``function(item, *shared, **options)`` of every item, in order.

    Parameters
    ----------
    function : callable
        Found by its name on the workers, and not a closure that carries data along.
    items : iterable
        What the tasks differ in: small.
    *shared : objects
        What they have in common. Arrays, frames and sparse matrices are sent once.
    n_jobs, verbose, prefer
        Of :class:`joblib.Parallel`.
    options : mapping, optional
        Named arguments in common; arrays are sent once, too.
    """
    items, options = list(items), options or {}
    data = [*shared, *options.values()]
    hints = {} if prefer is None else {"prefer": prefer}  # None would undo the user's

    def run() -> list[Any]:
        with kept_on_workers(*data):
            _send(data)
            common = [_stored(one) for one in shared]
            named = {name: _stored(one) for name, one in options.items()}
            return Parallel(n_jobs=n_jobs, verbose=verbose, **hints)(
                delayed(_on_one_worker)(function, item, *common, **named) for item in items
            )

    for _ in range(ATTEMPTS - 1):
        with suppress(CancelledError):  # a worker took the only copy of something with it
            return run()
    return run()


def _on_one_worker(function: Callable[..., Any], /, *args: Any, **options: Any) -> Any:
    """Run a task; a learner's own tasks, such as the trees of a forest, stay with it.

    Within a task joblib's Dask backend would send these about, too, each with its data. Its
    other backends do not.
    """
    args = tuple(_found(one) for one in args)
    options = {name: _found(one) for name, one in options.items()}
    if not hasattr(get_active_backend()[0], "data_futures"):
        return function(*args, **options)
    with parallel_config(backend="threading", n_jobs=1):
        return function(*args, **options)


@contextmanager
def kept_on_workers(*data: Any) -> Iterator[None]:
    """Leave the data on the workers while the context lasts, once tasks have sent them.

    Only arrays, frames and sparse matrices, and only if joblib's backend is Dask's or Ray's.
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
    """Send what the workers do not have, or have lost."""
    backend, _ = get_active_backend()
    futures, arrays = _futures(backend), _by_identity(data)
    missing = [key for key in arrays if not _is_there(futures.get(key))]
    if _is_ray(backend):
        futures.update({key: InStore.of(arrays[key]) for key in missing})
    elif missing and hasattr(backend, "data_futures"):
        sent = _scatter(backend.client, [arrays[key] for key in missing])
        futures.update(zip(missing, sent, strict=True))


def _scatter(client: Any, data: list[Any]) -> list[Any]:
    """Send data to all workers; again, if one of them dies meanwhile."""
    for _ in range(ATTEMPTS - 1):
        with suppress(OSError):  # the connection to it
            # Not by their hash: two owners of equal data must not release each other's.
            return client.scatter(data, broadcast=True, hash=False)
        client.wait_for_workers(1)
    return client.scatter(data, broadcast=True, hash=False)


class InStore:
    """Data in Ray's object store, where the workers of every machine find one copy of them."""

    def __init__(self, reference: Any):
        self.reference = reference

    @classmethod
    def of(cls, data: Any) -> InStore:
        """Put data there, for as long as this object lasts."""
        return cls(import_module("ray").put(data))

    def get(self) -> Any:
        """Return the data: arrays are read where they are."""
        return import_module("ray").get(self.reference)


def _stored(data: Any) -> Any:
    """Return where the data are, if they are in Ray's store; Dask's are found by joblib."""
    future = _futures(get_active_backend()[0]).get(id(data))
    return future if isinstance(future, InStore) else data


def _found(data: Any) -> Any:
    return data.get() if isinstance(data, InStore) else data


def _is_ray(backend: Any) -> bool:
    return type(backend).__name__ == "RayBackend"


def _futures(backend: Any) -> dict[int, Any]:
    """Return what has been sent with joblib's Dask backend, by the identity of the object it was.

    Tasks that are given the object get what was sent; ``None`` is nothing to joblib. Ray's
    backend has no such place: it gets one.
    """
    if _is_ray(backend):
        return vars(backend).setdefault("in_store", {})
    return getattr(backend, "data_futures", {})


def _by_identity(data: Iterable[Any]) -> dict[int, Any]:
    return {id(one): one for one in data if hasattr(one, "shape")}


def _is_there(future: Any) -> bool:
    return isinstance(future, InStore) or (future is not None and future.status == "finished")


def check_in_memory(X: Any, n_classes: int | None = None) -> None:
    """Raise a ``ValueError`` that says what to do if X is a collection of Dask's."""
    if not hasattr(X, "__dask_graph__"):
        return
    kind = type(X).__name__
    one_liner = LAZY.get(kind, LAZY["DataFrame"]).format(k=n_classes)
    instead = "" if n_classes is None else f" Predict block by block, with {one_liner}."
    raise ValueError(
        f"X is a Dask {kind}, whose values are not in memory.{instead} To have them in memory "
        "pass X.compute()."
    )
