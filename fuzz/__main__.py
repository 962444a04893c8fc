"""Attack the library with generated inputs, and say what it did.

    python -m fuzz --inputs 1000000

An input is one call (some make a second, to compare) and is made from its number alone:
``--first 123456 --inputs 1`` repeats one, and a run that was stopped goes on from the number
it had come to. The exit status is 1 if there was any fault.
"""

from __future__ import annotations

import argparse
import sys
import time

from fuzz.running import CHUNK, Summary, run
from fuzz.targets import TARGETS

SHOWN = 20  # faults printed in full


def main() -> int:
    """Run the attacks of the command line."""
    arguments = _parser().parse_args()
    first, n = arguments.first, arguments.inputs
    total, start, printed = Summary(), time.monotonic(), 0.0
    try:
        for summary in run(first, n, arguments.processes, arguments.seconds):
            for fault in summary.faults[: max(0, SHOWN - len(total.faults))]:
                print(f"FAULT {fault.seed} ({fault.target}): {fault.what}", flush=True)
            total.add(summary)
            now = time.monotonic()
            if now - printed > arguments.every:
                printed = now
                print(_progress(total, first, n, now - start), file=sys.stderr, flush=True)
    except KeyboardInterrupt:
        print(f"stopped; go on with --first {_safe_restart(total, first)}", file=sys.stderr)
    print(_table(total))
    print(f"{sum(total.outcomes.values())} inputs in {time.monotonic() - start:.0f} s")
    return 1 if total.faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=10_000, help="how many")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20.0, help="for one input at most")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between reports")
    return parser


def _progress(total: Summary, first: int, n: int, seconds: float) -> str:
    done = sum(total.outcomes.values())
    left = (n - done) * seconds / done
    return (
        f"{done} of {n} from {first}: {done / seconds:.0f} a second, {len(total.faults)} faults, "
        f"{left / 60:.0f} minutes left"
    )


def _safe_restart(total: Summary, first: int) -> int:
    """Return a number below which everything was done, for one process."""
    return first + sum(total.outcomes.values()) // CHUNK * CHUNK


def _table(total: Summary) -> str:
    outcomes = ("answered", "refused", "fault")
    lines = [f"{'':22}" + "".join(f"{outcome:>12}" for outcome in outcomes)]
    for name in TARGETS:
        counts = [total.outcomes[name, outcome] for outcome in outcomes]
        lines.append(f"{name:22}" + "".join(f"{count:12}" for count in counts))
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())
