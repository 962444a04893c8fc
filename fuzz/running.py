"""Runs attacks in processes of their own, which may crash or hang without ending the run."""

from __future__ import annotations

import multiprocessing
import os
import resource
import signal
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

CHUNK = 500  # inputs between reports
MEMORY = 2**31  # bytes an input may have beyond what was there before
PATIENCE = 15  # times the limit, for a process that waits
WARM_UP = 300.0  # seconds for the first inputs, which compile kernels


class Fault(NamedTuple):
    """An input that was answered wrongly, or not at all."""

    seed: int
    target: str
    what: str


@dataclass
class Summary:
    """What became of a range of inputs."""

    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Numbers by target and outcome: answered, refused or fault."""
    faults: list[Fault] = field(default_factory=list)

    def add(self, other: Summary) -> None:
        """Take in the summary of another range."""
        self.outcomes += other.outcomes
        self.faults += other.faults


def attack_range(first: int, last: int, place: Any) -> Summary:
    """Attack with the inputs ``first`` to ``last - 1``; ``place`` always tells which is on."""
    from fuzz.targets import attack, target_of

    summary = Summary()
    for seed in range(first, last):
        place.value = seed
        name = target_of(seed)
        try:
            outcome = attack(seed)
        except Exception as error:
            outcome = "fault"
            summary.faults.append(Fault(seed, name, _describe(error)))
        summary.outcomes[name, outcome] += 1
    return summary


def _describe(error: Exception) -> str:
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "manyclass" in f.filename]
    where = f" in {frames[-1].name}, line {frames[-1].lineno}" if frames else ""
    return f"{type(error).__name__}{where}: {str(error)[:200]}"


def _work(pipe: Connection, place: Any, warm_up: int) -> None:
    """Attack the ranges that come through the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who asks
    warnings.simplefilter("ignore")
    warnings.filterwarnings("error", category=RuntimeWarning)  # of numpy: an operation went wrong
    attack_range(0, warm_up, multiprocessing.Value("q"))  # compiling is not the input's fault
    pipe.send(None)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
    try:
        while (bounds := pipe.recv()) is not None:
            pipe.send(attack_range(*bounds, place))
    except (EOFError, BrokenPipeError):  # nobody asks any more
        pass


def _processor_seconds(pid: int | None) -> float:
    """Return how long a process has computed."""
    try:
        times = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return sum(map(int, times)) / os.sysconf("SC_CLK_TCK")


class Worker:
    """A process, and the watch over it."""

    def __init__(self, seconds: float, warm_up: int):
        self.seconds, self.warm_up = seconds, warm_up
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.place = context.Value("q", -1)
        self.process = context.Process(
            target=_work, args=(theirs, self.place, self.warm_up), daemon=True
        )
        self.process.start()
        theirs.close()
        self.ready, self.bounds = False, (0, 0)
        self._moved(WARM_UP)

    def _moved(self, seconds: float) -> None:
        self.seen, self.limit = self.place.value, seconds
        self.since, self.worked = time.monotonic(), _processor_seconds(self.process.pid)

    def _hangs(self) -> bool:
        """Whether it computes for too long; or does nothing at all, for much longer.

        A machine that is busy with other things is not a fault of the input.
        """
        passed = time.monotonic() - self.since
        worked = _processor_seconds(self.process.pid) - self.worked
        return passed > self.limit and (worked > self.limit or passed > PATIENCE * self.limit)

    def begin(self, first: int, last: int) -> None:
        """Hand over a range of inputs."""
        self.bounds = (first, last)
        if self.ready:
            self.place.value = first
            self.pipe.send((first, last))
            self._moved(self.seconds)

    def poll(self) -> Summary | None:
        """Return the summary of the range, or of the part up to a crash or hang; None if busy."""
        try:
            if self.pipe.poll(0.05):
                return self._received(self.pipe.recv())
        except EOFError:
            self.process.join()
            return self._lost(f"the process died with exit code {self.process.exitcode}")
        if self.place.value != self.seen:
            self._moved(self.seconds)
        elif self._hangs():
            self.process.kill()
            return self._lost(f"no answer within {self.seconds:g} s")
        return None

    def _received(self, summary: Summary | None) -> Summary | None:
        if summary is None:
            self.ready = True
            self.begin(*self.bounds)
        return summary

    def _lost(self, what: str) -> Summary:
        """Report the input that ended the process, repeat those before it, go on after it."""
        from fuzz.targets import target_of

        if not self.ready:
            raise RuntimeError(f"while compiling: {what}")
        (first, last), seed = self.bounds, self.place.value
        name = target_of(seed)
        self._start()
        rest = Summary(Counter({(name, "fault"): 1}), [Fault(seed, name, what)])
        for part in ((first, seed), (seed + 1, last)):
            if part[0] < part[1]:
                self.begin(*part)
                while (summary := self.poll()) is None:
                    pass
                rest.add(summary)
        return rest

    def end(self) -> None:
        """Let the process go."""
        if self.ready:
            self.pipe.send(None)
        else:
            self.process.kill()
        self.process.join()


def run(first: int, n_inputs: int, n_processes: int, seconds: float) -> Iterator[Summary]:
    """Yield the summaries of chunks of inputs as they are finished."""
    starts = iter(range(first, first + n_inputs, CHUNK))
    few = n_inputs < CHUNK  # compile what they need only, and allow them the time
    seconds, warm_up = (WARM_UP, 0) if few else (seconds, CHUNK)
    busy = []
    for start in starts:
        worker = Worker(seconds, warm_up)
        worker.begin(start, min(start + CHUNK, first + n_inputs))
        busy.append(worker)
        if len(busy) == n_processes:
            break
    while busy:
        for worker in list(busy):
            if (summary := worker.poll()) is None:
                continue
            yield summary
            if (start := next(starts, None)) is None:
                worker.end()
                busy.remove(worker)
            else:
                worker.begin(start, min(start + CHUNK, first + n_inputs))
