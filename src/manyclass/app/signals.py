"""Signals end the command line in order: with the right exit code, and without stray files.

Signals such as that of ``kill`` end a process at once, and the processes and files of joblib stay
behind. Here they raise an exception, as Ctrl-C does. Only the command line and the experiments use
this module. A library leaves signals alone.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from shutil import disk_usage
from weakref import ref

from joblib import parallel_config

ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """An interrupt by a signal other than Ctrl-C; its argument is the number of the signal."""


class Interrupted(KeyboardInterrupt):
    """An interrupt by Ctrl-C. Unlike Python's own it can have weak references."""


class _Listener:
    """Raises interrupts in the main thread, and raises them again if Python loses them.

    Python loses an exception in a function that C calls back, for example while numba compiles.
    An exception that still travels up the stack has references; a lost one has none.
    """

    def __init__(self, repeat_after: float) -> None:
        self._repeat_after = repeat_after
        self._heard: set[int] = set()
        self._last: tuple[int, ref[KeyboardInterrupt]] | None = None
        self._repeated: int | None = None
        self._sending = threading.Lock()
        self._left = False

    def hear(self, number: int, frame: object) -> None:
        """Raise the exception for a signal (a signal handler)."""
        is_ours = self._repeated == number
        self._repeated = None
        if is_ours and self._left:
            return
        if number in self._heard and number != signal.SIGINT and not is_ours:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if not self._heard:  # a signal handler must not take locks, as threading.Thread does
            _thread.start_new_thread(self._repeat, ())
        self._heard.add(number)
        # Not a local variable: the traceback would keep the exception alive.
        raise self._remember(
            number, Interrupted() if number == signal.SIGINT else Terminated(number)
        )

    def leave(self) -> None:
        """Send no more signals."""
        self._left = True
        with self._sending:  # wait for a signal that is being sent
            pass

    def _remember(self, number: int, error: KeyboardInterrupt) -> KeyboardInterrupt:
        self._last = number, ref(error)
        return error

    def _repeat(self) -> None:
        """Send the last signal again whenever it is lost."""
        while not self._left:
            time.sleep(self._repeat_after)
            with self._sending:
                if self._last is not None and self._last[1]() is None and not self._left:
                    self._repeated = self._last[0]
                    _send_to_main_thread(self._repeated)


def _send_to_main_thread(number: int) -> None:
    """Send a signal to the main thread, so that it also interrupts a system call there."""
    main = threading.main_thread().ident
    if hasattr(signal, "pthread_kill") and main is not None:
        signal.pthread_kill(main, number)
    else:
        signal.raise_signal(number)


@contextmanager
def ending_in_order(repeat_after: float = 0.5) -> Iterator[None]:
    """Raise :class:`Terminated` in the main thread instead of ending the process at once.

    A second such signal ends the process at once. Signals that are ignored (``nohup``) or have a
    handler are left alone. Ctrl-C raises a ``KeyboardInterrupt`` as usual. If Python loses one of
    these exceptions, it is raised again after at most ``repeat_after`` seconds.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = {x: signal.getsignal(x) for x in (signal.SIGINT, *ENDINGS) if is_main}
    usual = {signal.SIGINT: signal.default_int_handler}
    ours = [x for x, handler in before.items() if handler is usual.get(x, signal.SIG_DFL)]
    listener = _Listener(repeat_after)
    for number in ours:
        signal.signal(number, listener.hear)
    try:
        yield
    finally:
        listener.leave()
        for number in ours:
            signal.signal(number, before[number])


def exit_code(interrupt: KeyboardInterrupt) -> int:
    """Return the exit code of a process that a signal ended: 128 plus its number."""
    return 128 + int(interrupt.args[0] if isinstance(interrupt, Terminated) else signal.SIGINT)


def end_process(status: int) -> None:
    """End the process with an exit status, even while LIBSVM runs in another thread.

    Python waits for such a thread (see :mod:`manyclass._lib.interrupts`). After an interrupt the
    command line does not: it calls the exit functions and ends.
    """
    if status > 128 and threading.active_count() > 1:
        atexit._run_exitfuncs()
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
        os._exit(status)
    sys.exit(status)


@contextmanager
def registered_files(folder: str = "/dev/shm", room: int = 2_000_000_000) -> Iterator[None]:
    """Name joblib's temporary folder, so that an interrupt leaves no files in shared memory.

    By default joblib creates a folder in shared memory, and then starts the process that removes
    it: an interrupt in between leaves the folder for good. In a folder that it is given, joblib
    creates nothing before that process knows the name. ``folder`` is the one that joblib itself
    would choose, if it has ``room`` bytes free.
    """
    if "JOBLIB_TEMP_FOLDER" in os.environ or not _has_room(folder, room):
        yield
        return
    with parallel_config(temp_folder=folder):
        yield


def _has_room(folder: str, room: int) -> bool:
    """Return whether joblib would choose this folder."""
    try:
        return os.access(folder, os.W_OK) and disk_usage(folder).free > room
    except OSError:
        return False
