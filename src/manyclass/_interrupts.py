"""Interrupts of calls that do not listen for them, such as LIBSVM's.

The main thread waits for such a call in another one, and can be interrupted. The call itself
goes on unheard until it is done, or the process is. A process must not be taken down around
it: what it calls is unloaded before it ends, which crashes now and then.

Signals that end a process where it stands, such as those of ``kill`` and of a closed terminal,
can be made to end it as an interrupt does: joblib's processes and files would outlive it.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any

from sklearn import config_context, get_config

INTERRUPTED = 128 + signal.SIGINT  # exit code of a process that ends before such a call does
ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
_exit_codes = [INTERRUPTED]  # the last one counts
_busy: set[tuple[int, int]] = set()  # process and thread: a fork has the names, not the calls


class Terminated(KeyboardInterrupt):
    """An interrupt by another signal, whose number is its argument."""


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Raise :class:`Terminated` in the main thread where a signal would end the process at once.

    The second one does. Signals that are ignored, as by ``nohup``, or handled already are left
    as they are.
    """
    is_main = threading.current_thread() is threading.main_thread()
    ours = [x for x in ENDINGS if is_main and signal.getsignal(x) is signal.SIG_DFL]

    def end(number: int, frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)
        _exit_codes.append(128 + number)
        raise Terminated(number)

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def hearing_interrupts(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return ``function(*args, **options)``; an interrupt of the main thread ends the wait.

    Examples
    --------
    >>> from manyclass._interrupts import hearing_interrupts
    >>> hearing_interrupts(max, 1, 3, 2)
    3
    """
    answers: list[Any] = []

    configuration = get_config()  # scikit-learn's, which threads have of their own

    def call() -> None:
        place = os.getpid(), threading.get_ident()
        _busy.add(place)
        try:
            with config_context(**configuration):
                answers.append((function(*args, **options), None))
        except BaseException as error:
            answers.append((None, error))
        finally:
            _busy.discard(place)

    if threading.current_thread() is threading.main_thread():
        thread = threading.Thread(target=copy_context().run, args=(call,), daemon=True)
        thread.start()
        thread.join()
    else:  # interrupts are for the main thread, which waits for this one
        call()
    answer, error = answers[0]
    if error is not None:
        raise error
    return answer


@atexit.register
def _leave() -> None:
    """End a process at once, after all else that is to be done at its end."""
    is_busy = any(process == os.getpid() for process, _ in _busy)
    _busy.clear()
    if is_busy:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(_exit_codes[-1])
