"""Interrupts of calls that do not listen for them, such as LIBSVM's.

The main thread waits for such a call in another one, and can be interrupted. The call itself
goes on unheard until it is done, or the process is. A process must not be taken down around
it: what it calls is unloaded before it ends, which crashes now and then.

Signals that end a process where it stands, such as those of ``kill`` and of a closed terminal,
can be made to end it as an interrupt does: joblib's processes and files would outlive it.
Where they are, interrupts that Python loses are raised again.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from typing import Any
from weakref import ref

from sklearn import config_context, get_config

INTERRUPTED = 128 + signal.SIGINT  # exit code of a process that ends before such a call does
ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
EVERY = 0.5  # seconds after which lost interrupts are looked for
_exit_codes = [INTERRUPTED]  # the last one counts
_busy: set[tuple[int, int]] = set()  # process and thread: a fork has the names, not the calls


class Terminated(KeyboardInterrupt):
    """An interrupt by another signal, whose number is its argument."""


class Interrupted(KeyboardInterrupt):
    """An interrupt from the keyboard, which unlike Python's can be looked after."""


class _Listener:
    """Raises interrupts in the main thread, and raises them again if they are lost there.

    They are where Python cannot hand them on, as in a function that is called back from C while
    a kernel is compiled. One that is on its way, through whatever there is to be tidied up, is
    still referred to; one that is lost is not.
    """

    def __init__(self) -> None:
        self._heard: set[int] = set()
        self._last: tuple[int, ref[KeyboardInterrupt]] | None = None
        self._repeated: int | None = None
        self._sending = threading.Lock()
        self._left = False

    def hear(self, number: int, frame: object) -> None:
        """Raise what a signal stands for (a handler)."""
        is_ours = self._repeated == number
        self._repeated = None
        if is_ours and self._left:
            return
        if number in self._heard and number != signal.SIGINT and not is_ours:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if not self._heard:  # threading's own way takes locks, which a handler must not
            _thread.start_new_thread(self._repeat, ())
        self._heard.add(number)
        _exit_codes.append(128 + number)
        # Not a name here, which the traceback would keep alive.
        raise self._remember(
            number, Interrupted() if number == signal.SIGINT else Terminated(number)
        )

    def leave(self) -> None:
        """Send no more signals."""
        self._left = True
        with self._sending:  # until one that is under way has arrived
            pass

    def _remember(self, number: int, error: KeyboardInterrupt) -> KeyboardInterrupt:
        self._last = number, ref(error)
        return error

    def _repeat(self) -> None:
        """Send the last signal again whenever it is lost."""
        while not self._left:
            time.sleep(EVERY)
            with self._sending:
                if self._last is not None and self._last[1]() is None and not self._left:
                    self._repeated = self._last[0]
                    _send_to_main_thread(self._repeated)


def _send_to_main_thread(number: int) -> None:
    """Send a signal, so that it ends a call of the system which the main thread waits for."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:
        signal.raise_signal(number)


@contextmanager
def ending_in_order() -> Iterator[None]:
    """Raise :class:`Terminated` in the main thread where a signal would end the process at once.

    The second one does. Signals that are ignored, as by ``nohup``, or handled already are left
    as they are. An interrupt from the keyboard is raised as ever. None of them is lost, even if
    what it was raised in could not hand it on.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = {x: signal.getsignal(x) for x in (signal.SIGINT, *ENDINGS) if is_main}
    usual = {signal.SIGINT: signal.default_int_handler}
    ours = [x for x, handler in before.items() if handler is usual.get(x, signal.SIG_DFL)]
    listener = _Listener()
    for number in ours:
        signal.signal(number, listener.hear)
    try:
        yield
    finally:
        listener.leave()
        for number in ours:
            signal.signal(number, before[number])


def hearing_interrupts(function: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """Return ``function(*args, **options)``; an interrupt of the main thread ends the wait.

    Examples
    --------
    >>> from manyclass._lib.interrupts import hearing_interrupts
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
