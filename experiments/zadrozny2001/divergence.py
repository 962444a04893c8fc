"""Section 3 of Zadrozny (2001): whether the printed iteration minimises the distance it names.

Random binary estimates are coupled by the iteration as printed. The weighted Kullback-Leibler
distance is followed along the way, and compared with its minimum.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

from experiments.pages import markdown_table, save_figure
from experiments.results import Measurement
from experiments.runner import Claim, Experiment, Row, Task, Verdict
from manyclass import codes, couple
from manyclass._lib.weights import column_sizes

Array = NDArray[np.float64]

CODES = ("one-vs-one", "one-vs-rest", "sparse-random", "dense-random")
SCALES: dict[str, dict[str, Any]] = {
    "quick": {"classes": [3, 5], "cases": 50, "iterations": 200},
    "paper": {"classes": [3, 4, 5, 7, 10], "cases": 500, "iterations": 500},
}
SHOWN = (0, 1, 2, 5, 10, 20, 50, 100, 200, 500)
RISE = 1e-9  # rises of the distance that count, in units of the first one: above rounding
AT_MINIMUM = 1e-3  # relative excess over the minimum that counts as having reached it


# -- measuring -------------------------------------------------------------------------


def distance(r: Array, p: Array, code: NDArray[np.int8], weights: Array) -> Array:
    """Return the weighted Kullback-Leibler distance of every row.

    It is infinite if a side of a column has lost all probability.
    """
    plus, minus = p @ (code > 0), p @ (code < 0)
    with np.errstate(divide="ignore"):
        inverse, other = (plus + minus) / plus, (plus + minus) / minus
    return (xlogy(r, r * inverse) + xlogy(1.0 - r, (1.0 - r) * other)) @ weights


def sides(p: Array, code: NDArray[np.int8]) -> Array:
    """Return the estimated probability of the positive side of every column."""
    plus, minus = p @ (code > 0), p @ (code < 0)
    return plus / (plus + minus)


def printed_step(r: Array, p: Array, code: NDArray[np.int8], weights: Array) -> Array:
    """Return p after one iteration of section 3, as printed."""
    plus, minus = (code > 0) * weights, (code < 0) * weights
    q = sides(p, code)
    p = p * (r @ plus.T + (1.0 - r) @ minus.T) / (q @ plus.T + (1.0 - q) @ minus.T)
    return p / p.sum(axis=1, keepdims=True)


def noniterative(r: Array, code: NDArray[np.int8]) -> Array:
    """Return the non-iterative estimates of section 3, normalised."""
    p = r @ (code > 0).T + (1.0 - r) @ (code < 0).T
    return p / p.sum(axis=1, keepdims=True)


def measure_random(name: str, k: int, n: int, last: int, seed: int) -> Iterator[Row]:
    """Yield how the distance changes along the iteration, over random cases."""
    rng = np.random.default_rng(seed)
    code = codes.by_name(name, k, random_state=seed)
    y = np.repeat(np.arange(k), rng.integers(10, 101, k))
    weights = column_sizes(y, code, np.ones(len(y)))
    r = rng.uniform(0.02, 0.98, (n, code.shape[1]))
    start = p = noniterative(r, code)
    before = distance(r, p, code, weights)
    track, rose = [before], np.zeros(n, dtype=bool)
    for t in range(1, last + 1):
        p = printed_step(r, p, code, weights)
        now = distance(r, p, code, weights)
        rose |= now > before + RISE * track[0]
        before = now
        if t in SHOWN:
            track.append(now)
    least = distance(r, couple(r, code, "kl", weights), code, weights)
    yield Row("iteration", "cases that rise", float(rose.mean()))
    yield Row("iteration", "cases above the start", float((now > track[0]).mean()))
    yield Row("iteration", "cases at the minimum", float((now < least * (1 + AT_MINIMUM)).mean()))
    yield Row("iteration", "other labels", float(_other_labels(p, start).mean()))
    for t, values in zip(SHOWN, track, strict=False):
        yield Row(f"{t}", "distance / minimum", float(np.median(values / least)))


def _other_labels(p: Array, start: Array) -> NDArray[np.bool_]:
    return p.argmax(axis=1) != start.argmax(axis=1)


def tasks(scale: str) -> list[Task]:
    """Return one task for every code and k."""
    size = SCALES[scale]
    rest = size["cases"], size["iterations"]
    return [
        Task(name, f"k={k}", "all", measure_random, (name, k, *rest, 100 * k + number))
        for number, name in enumerate(CODES)
        for k in size["classes"]
    ]


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {
        **SCALES[scale],
        "codes": list(CODES),
        "r": "uniform on [0.02, 0.98]",
        "weights": "number of samples of each column; classes have 10 to 100",
    }


# -- the page --------------------------------------------------------------------------


def section(rows: list[Measurement], folder: Path) -> str:
    """Return the figure and the table of all codes."""
    picture = save_figure(
        folder / "divergence.png", partial(_draw, rows=rows), ncols=2, figsize=(10, 4)
    )
    metrics = ("cases that rise", "cases above the start", "cases at the minimum", "other labels")
    table = [
        [code, *(f"{_mean(rows, code, 'iteration', metric):.1%}" for metric in metrics)]
        for code in CODES
    ]
    return "\n\n".join([INTRODUCTION, picture, markdown_table(["code", *metrics], table)])


INTRODUCTION = """\
The abstract and section 3 say that the iteration finds the p whose binary probabilities have the
least weighted Kullback-Leibler distance from the estimates. That is so if every side of every
column is a single class (one-vs-one). For other codes the fixed point lacks a factor 1/p(side), and
is another point. Here random estimates are coupled by the iteration as printed, from the
non-iterative estimates, and the distance is followed. "At the minimum" means within 0.1 % of it;
"other labels" are those that differ from the label of the non-iterative estimates. The paper prints
no numbers about the distance."""


def _mean(rows: list[Measurement], code: str, method: str, metric: str) -> float:
    found = [r.value for r in rows if r.data == code and r[3:5] == (method, metric)]
    return float(np.mean(found))


def _draw(axes, rows: list[Measurement]) -> None:
    left, right = axes
    times = [t for t in SHOWN if any(row.method == f"{t}" for row in rows)]
    for code in CODES:
        values = [_mean(rows, code, f"{t}", "distance / minimum") for t in times]
        left.plot([max(t, 0.5) for t in times], values, marker="o", ms=3, label=code)
    left.set(
        xscale="log",
        yscale="log",
        xlabel="iteration (0 at the left end)",
        ylabel="distance / its minimum, median",
    )
    left.set_yticks([1, 2, 5, 10], ["1", "2", "5", "10"])
    left.minorticks_off()
    left.axhline(1.0, color="0.4", lw=0.8)
    left.legend()
    left.grid(alpha=0.3)
    for number, metric in enumerate(("cases that rise", "cases at the minimum")):
        values = [100 * _mean(rows, code, "iteration", metric) for code in CODES]
        right.bar(np.arange(len(CODES)) + 0.4 * number - 0.2, values, 0.38, label=metric)
    right.set_xticks(range(len(CODES)), CODES, fontsize=8)
    right.set(ylabel="percent of random cases", ylim=(0, 120), yticks=range(0, 101, 20))
    right.legend(loc="upper center", ncols=2)
    right.grid(axis="y", alpha=0.3)


# -- claims ----------------------------------------------------------------------------


def _by_code(rows: list[Measurement], metric: str, names: tuple[str, ...]) -> dict[str, float]:
    return {name: _mean(rows, name, "iteration", metric) for name in names}


def _told(shares: dict[str, float]) -> str:
    return ", ".join(f"{code} {share:.1%}" for code, share in shares.items())


def _minimises(rows: list[Measurement], names: tuple[str, ...]) -> Verdict:
    reached = _by_code(rows, "cases at the minimum", names)
    rises = _by_code(rows, "cases that rise", names)
    holds = all(share == 1 for share in reached.values()) and not any(rises.values())
    return Verdict(
        holds,
        f"cases in which the minimum is reached: {_told(reached)}; in which the distance rises "
        f"along the way: {_told(rises)}.",
    )


def _labels_differ(rows: list[Measurement], name: str) -> Verdict:
    shares = _by_code(rows, "other labels", CODES)
    return Verdict(shares[name] > 0, f"cases with another label: {_told(shares)}.")


REACHED = (
    "In all random cases the distance never rises from one iteration to the next, and ends within "
    f"{AT_MINIMUM:.1%} of its minimum."
)
CLAIMS = (
    Claim(
        "The iteration minimises the weighted Kullback-Leibler distance, for arbitrary code "
        "matrices (abstract and section 3).",
        f"{REACHED} Codes: one-vs-rest, sparse random, dense random.",
        partial(_minimises, names=CODES[1:]),
        key="minimises-any-code",
    ),
    Claim(
        "For all pairs the distance decreases at each step, and the iteration converges to its "
        "minimum (section 2).",
        f"{REACHED} Code: one-vs-one.",
        partial(_minimises, names=CODES[:1]),
        key="minimises-pairs",
    ),
    Claim(
        "For arbitrary matrices the iterative estimates do not necessarily predict the class of "
        "the non-iterative ones (section 3).",
        "There are random cases with another label, for sparse random codes.",
        partial(_labels_differ, name="sparse-random"),
        key="labels-arbitrary",
    ),
    Claim(
        "For one-against-all the iterative estimates do not necessarily predict the class of the "
        "non-iterative ones (section 4).",
        "There are random cases with another label, for one-vs-rest.",
        partial(_labels_differ, name="one-vs-rest"),
        key="labels-one-against-all",
    ),
)

EXPERIMENT = Experiment(
    name="zadrozny2001-divergence",
    title="Section 3: the iteration and the distance",
    tasks=tasks,
    config=config,
    section=section,
    claims=CLAIMS,
)
