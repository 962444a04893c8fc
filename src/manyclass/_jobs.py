"""Tasks for joblib: what all of them read goes to every worker of a cluster once.

Threads share it, and joblib maps it into the memory of its processes. Its Dask backend
sends an array to one worker, anew for every call, and what was sent is lost with that
worker. Here it is sent to all of them once, for as many calls as need it, and again if it
gets lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import contextmanager
from typing import Any

from joblib import Parallel, delayed
from joblib.parallel import get_active_backend

ATTEMPTS = 3  # as often as Dask itself lets workers die under a task
LAZY = {
    "Array": "X.map_blocks(model.predict_proba, dtype=float, chunks=(X.chunks[0], ({k},)))",
    "DataFrame": "X.map_partitions(model.predict_proba)",
}


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
    for attempt in range(1, ATTEMPTS + 1):
        try:
            with on_workers(*shared, *options.values()):
                return Parallel(n_jobs=n_jobs, verbose=verbose, prefer=prefer)(
                    delayed(function)(item, *shared, **options) for item in items
                )
        except CancelledError:  # a worker took the only copy of something with it
            if attempt == ATTEMPTS:
                raise
    raise AssertionError("unreachable")


@contextmanager
def on_workers(*data: Any) -> Iterator[None]:
    """Keep a copy of the data on every worker while the context lasts.

    Does nothing unless joblib's backend is Dask's. Tasks get that copy if they are given the
    same object.
    """
    backend, _ = get_active_backend()
    if not hasattr(backend, "data_futures"):
        yield
        return
    futures: dict[int, Any] = backend.data_futures  # joblib's, by the identity of an object
    arrays = {id(one): one for one in data if hasattr(one, "shape")}
    added = arrays.keys() - futures.keys()
    missing = [key for key in arrays if key in added or futures[key].status != "finished"]
    if missing:  # not by their hash: two owners of equal data must not release each other's
        sent = backend.client.scatter([arrays[key] for key in missing], broadcast=True, hash=False)
        futures.update(zip(missing, sent, strict=True))
    try:
        yield
    finally:
        for key in added:
            futures.pop(key, None)


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
