"""Interrupt the command line at random moments, and check how it ends.

``python -m fuzz.interrupts --times 30`` runs each command many times and sends it Ctrl-C, SIGTERM
or SIGKILL at a random moment. After the first two there must be no traceback, the exit code 130 or
143 (or 0 if it was faster), and no process or file left. After SIGKILL, processes must end by
themselves, and the next run must remove the files.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

SHARED = Path("/dev/shm")
PYTHON_STARTS = 0.15
"""Seconds in which Python itself starts: nobody can keep it from printing a traceback then."""
PATHS = (str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
"""Where Python finds the experiments, which are not part of the package."""
COMMANDS = {
    "compare": "manyclass compare wine --only forest,coupled-svc --folds 3 --report r.html",
    "compare-jobs": "manyclass compare wine --only logistic,forest,coupled-svc --folds 3 --jobs 2",
    "fit": "manyclass fit digits -o new.skops --force",
    "predict": "manyclass predict model.skops big.csv -o out.csv --block-rows 500",
    "experiments": "experiments run hastie1998-figure1 --jobs 2 --output runs",
}


class Outcome(NamedTuple):
    """What an interrupted command left."""

    code: int
    said: str
    faults: list[str]


def prepare(folder: Path) -> None:
    """Write a model and a table to predict."""
    import numpy as np
    from sklearn.datasets import load_iris

    run("manyclass fit iris -o model.skops --folds 0", folder).wait()
    frame = load_iris(as_frame=True).data
    frame.loc[np.tile(frame.index, 400)].to_csv(folder / "big.csv", index=False)
    (folder / "out.csv").write_text("before")


def run(command: str, folder: Path) -> subprocess.Popen[str]:
    """Start a command in a process group of its own, as a shell does."""
    return subprocess.Popen(
        [sys.executable, "-m", *command.split()],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path for path in PATHS if path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def interrupt(name: str, number: int, after: float, folder: Path, patience: float) -> Outcome:
    """Interrupt a command after some seconds, and return what is wrong."""
    process = run(COMMANDS[name], folder)
    time.sleep(after)
    if number == signal.SIGINT:
        os.killpg(process.pid, number)  # as a terminal does
    else:
        process.send_signal(number)
    try:
        said, _ = process.communicate(timeout=patience)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return Outcome(-1, "", ["it did not end"])
    faults = [] if "Traceback" not in said else ["traceback"]
    wanted = {0, -number if number == signal.SIGKILL else 128 + number}
    faults += [] if process.returncode in wanted else [f"exit code {process.returncode}"]
    faults += _left(process.pid, folder, killed=number == signal.SIGKILL)
    return Outcome(process.returncode, said, faults)


def _left(group: int, folder: Path, *, killed: bool) -> list[str]:
    """Return what is left: processes of the group, files in shared memory, parts of outputs."""
    faults = []
    deadline = time.monotonic() + 20
    while _lives(group) and time.monotonic() < deadline:
        time.sleep(0.2)
    if _lives(group):
        os.killpg(group, signal.SIGKILL)
        faults.append("processes")
    if killed:
        again = run(COMMANDS["predict"], folder)
        said, _ = again.communicate()
        faults += [] if again.returncode == 0 else [f"the next run: {said}"]
    if [
        path
        for path in SHARED.iterdir()
        if re.search(rf"(joblib|loky).*[_-]{group}[_-]", path.name)
    ]:
        faults.append("shared memory")
    faults += [f"{path} is cut" for path in folder.glob("runs/*/results.csv") if not _whole(path)]
    parts = [path.name for path in folder.iterdir() if path.name.startswith(".out.csv.")]
    return [*faults, *(["parts"] if parts else [])]


def _whole(path: Path) -> bool:
    """Tell whether all rows but the last are complete; the next run drops the last if it is not."""
    *finished, _ = path.read_text().split("\n")
    return len({line.count(",") for line in finished}) <= 1


def _lives(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def main() -> int:
    """Interrupt every command, and print what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=30)
    parser.add_argument("--commands", nargs="*", choices=COMMANDS, default=list(COMMANDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--longest", type=float, default=12.0, help="seconds of the last moment")
    arguments = parser.parse_args()
    chance, wrong = random.Random(arguments.seed), 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare(folder)
        for command in arguments.commands:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL):
                found = []
                for _ in range(arguments.times):
                    after = chance.uniform(PYTHON_STARTS, arguments.longest)
                    outcome = interrupt(command, number, after, folder, patience=180)
                    if outcome.faults:
                        found.append(f"{after:.2f} s: {', '.join(outcome.faults)}")
                        print(outcome.said, file=sys.stderr)
                wrong += len(found)
                print(f"{command:13} {number.name:8} {arguments.times} times, faults: {found}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
