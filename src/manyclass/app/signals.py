"""Interrupts of the command line: no traceback, the right exit code, no stray files.

Signals such as that of ``kill`` end a process at once, and the processes and files of joblib stay
behind. Here they raise an exception, as Ctrl-C does. Only the command line and the experiments use
this module. A library leaves signals alone. Imports are few, so that the handlers are set at once.
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
from contextlib import contextmanager, suppress
from typing import Any
from weakref import ref

ENDINGS = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Terminated(KeyboardInterrupt):
    """An interrupt by a signal other than Ctrl-C; its argument is the number of the signal."""


class Interrupted(KeyboardInterrupt):
    """An interrupt by Ctrl-C. Unlike Python's own it can have weak references."""


class Stopped(KeyboardInterrupt):
    """An interrupt after which something was kept; its argument says what."""


class _Handler:
    """Raises interrupts in the main thread, and raises them again if Python loses them.

    Python loses an exception in a function that C calls back, for example while numba compiles.
    An exception that still travels up the stack has references; a lost one has none.
    """

    def __init__(self, repeat_after: float) -> None:
        self._repeat_after = repeat_after
        self._seen: set[int] = set()
        self._last: tuple[int, ref[KeyboardInterrupt]] | None = None
        self._repeated: int | None = None
        self._sending = threading.Lock()
        self._stopped = False

    def handle(self, number: int, frame: object) -> None:
        """Raise the exception for a signal (a signal handler)."""
        is_repeated = self._repeated == number
        self._repeated = None
        if is_repeated and self._stopped:
            return
        if number in self._seen and number != signal.SIGINT and not is_repeated:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        if not self._seen:  # a signal handler must not take locks, as threading.Thread does
            _thread.start_new_thread(self._repeat, ())
        self._seen.add(number)
        # Not a local variable: the traceback would keep the exception alive.
        raise self._remember(
            number, Interrupted() if number == signal.SIGINT else Terminated(number)
        )

    @property
    def last(self) -> int | None:
        """The number of the last signal, if there was one."""
        return None if self._last is None else self._last[0]

    def stop(self) -> None:
        """Send no more signals."""
        self._stopped = True
        with self._sending:  # wait for a signal that is being sent
            pass

    def _remember(self, number: int, error: KeyboardInterrupt) -> KeyboardInterrupt:
        self._last = number, ref(error)
        return error

    def _repeat(self) -> None:
        """Send the last signal again whenever it is lost."""
        while not self._stopped:
            time.sleep(self._repeat_after)
            with self._sending:
                if self._last is not None and self._last[1]() is None and not self._stopped:
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
def signals_as_exceptions(
    repeat_after: float = 0.5, *, process_ends: bool = False
) -> Iterator[_Handler]:
    """Raise :class:`Terminated` in the main thread instead of ending the process at once.

    A second such signal ends the process at once. Signals that are ignored (``nohup``) or have a
    handler are left alone. Ctrl-C raises a ``KeyboardInterrupt`` as usual. If Python loses one of
    these exceptions, it is raised again after at most ``repeat_after`` seconds. If this is the end
    of the process (``process_ends``), signals are ignored afterwards.
    """
    is_main = threading.current_thread() is threading.main_thread()
    before = {x: signal.getsignal(x) for x in (signal.SIGINT, *ENDINGS) if is_main}
    usual = {signal.SIGINT: signal.default_int_handler}
    replaced = [x for x, old in before.items() if old is usual.get(x, signal.SIG_DFL)]
    handler, hook = _Handler(repeat_after), sys.unraisablehook
    sys.unraisablehook = lambda lost: None if _is_interrupt(lost.exc_value) else hook(lost)
    for number in replaced:
        signal.signal(number, handler.handle)
    try:
        yield handler
    finally:
        handler.stop()
        for number in replaced:
            signal.signal(number, signal.SIG_IGN if process_ends else before[number])
        sys.unraisablehook = hook


def _is_interrupt(error: BaseException | None) -> bool:
    return isinstance(error, KeyboardInterrupt)


def run_command(
    prepare: Callable[[], tuple[str, Callable[[], int]]], kept: str, *, process_ends: bool = False
) -> int:
    """Run a command and return its exit status; every end takes one line at most.

    ``prepare`` returns the name of the command, which begins the line of an error, and the command.
    ``kept`` says what is left after an interrupt; one with a text of its own says that instead.
    """
    name = ""
    with signals_as_exceptions(process_ends=process_ends) as handler:
        try:
            name, command = prepare()
            check_address_space()
            remove_leftovers()
            with registered_files():
                return command()
        except BrokenPipeError:  # the reader of the output has closed it, as "head" does
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            return 0
        except BaseException as error:
            handler.stop()  # an exception that was dealt with would look lost
            # After a signal, whatever comes out is its doing: libraries wrap it in their errors,
            # and so does Python while a class is defined.
            if handler.last is not None or _is_interrupt(error) or _is_interrupt(error.__cause__):
                return _say_interrupted(error, handler.last, kept)
            return _say_error(error, name)


def check_address_space(least: int = 2**30) -> None:
    """Raise an error if ``ulimit -v`` allows less than the smallest command takes.

    OpenBLAS does not fail for want of memory: it asks for it again and again, for ever. By
    measurement this happens with 0.7 to 0.9 GB.
    """
    with suppress(ImportError):  # there are no such limits
        import resource

        allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
        if allowed != resource.RLIM_INFINITY and allowed < least:
            raise ValueError(
                f"memory is limited to {allowed / 1e6:,.0f} MB (ulimit -v), and even small tables "
                f"need {least / 1e6:,.0f}. Raise the limit."
            )


def _say_interrupted(error: BaseException, number: int | None, kept: str) -> int:
    number = signal.SIGINT if number is None else number
    word = "interrupted" if number == signal.SIGINT else "terminated"
    own = error.args[0] if isinstance(error, Stopped) else kept
    _print(f"{word}; {own}")
    return 128 + number


def _say_error(error: BaseException, name: str) -> int:
    if isinstance(error, SystemExit):
        raise error
    if isinstance(error, MemoryError):
        _print(f"{name}: there is not enough memory. Use fewer rows, columns or processes.")
    elif isinstance(error, ImportError | OSError | ValueError):
        from manyclass.app.terminal import in_words_of_the_command_line

        _print(f"{name}: {in_words_of_the_command_line(str(error))}")
    elif "start new thread" in str(error):
        _print(f"{name}: the system starts no more threads. Raise its limits.")
    else:
        raise error
    return 2


def _print(text: str) -> None:
    from manyclass.app.terminal import say

    with suppress(OSError, ValueError):  # nobody can read it
        say(text, sys.stderr)


def end_process(status: int) -> None:
    """End the process with an exit status, even while LIBSVM runs in another thread.

    Python waits for such a thread (see :mod:`manyclass._lib.interrupts`). After an interrupt the
    command line does not: it calls the exit functions and ends.
    """
    if status > 128:
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if stream is not None:
                stream.flush()
    if status > 128:
        os._exit(status)
    sys.exit(status)


# ---------------------------------------------------------------------- processes and files

MEMMAPS = "joblib_memmapping_folder_"


def watched_pool(**options: Any) -> Any:
    """Return joblib's ``Parallel``, whose workers call :func:`end_with_parent` first.

    joblib 1.4 has no option for this: there, workers of a killed process end after some minutes.
    """
    from joblib import Parallel

    try:
        return Parallel(**options, initializer=end_with_parent, initargs=(os.getpid(),))
    except TypeError:
        return Parallel(**options)


@contextmanager
def starting_workers(n_jobs: int) -> Iterator[None]:
    """Start worker processes that Ctrl-C never reaches.

    A terminal sends it to them, too, and :func:`end_with_parent` is called only after they have
    imported Python's modules. They inherit from this thread that the signal is blocked.
    """
    if n_jobs == 1 or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as of_joblib

    for tracker in (resource_tracker, of_joblib):  # they unblock the signal when they start
        tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def end_with_parent(parent: int, poll: float = 1.0) -> None:
    """Leave interrupts of a worker process to its parent, and end when the parent is gone.

    ``parent`` is its number: it may be gone before the worker has come to this call.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(poll)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


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
    os.environ["JOBLIB_TEMP_FOLDER"] = folder  # importing joblib takes longer than many an error
    try:
        yield
    finally:
        del os.environ["JOBLIB_TEMP_FOLDER"]


def _has_room(folder: str, room: int) -> bool:
    """Return whether joblib would choose this folder."""
    try:
        system = os.statvfs(folder)
        return os.access(folder, os.W_OK) and system.f_bavail * system.f_frsize > room
    except (OSError, AttributeError):
        return False


def remove_leftovers(folder: str = "/dev/shm") -> None:
    """Remove joblib's folders of this user's processes that were killed."""
    with suppress(OSError, AttributeError):
        for entry in os.scandir(os.environ.get("JOBLIB_TEMP_FOLDER", folder)):
            number = entry.name.removeprefix(MEMMAPS).partition("_")[0]
            if not entry.name.startswith(MEMMAPS) or not number.isdecimal():
                continue
            if entry.stat(follow_symlinks=False).st_uid == os.getuid() and not _runs(int(number)):
                from shutil import rmtree

                rmtree(entry.path, ignore_errors=True)


def _runs(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True
