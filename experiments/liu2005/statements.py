"""Statements of Liu & Zheng (2005) that can be computed: Figure 1, and the cost of SRM."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import spearmanr
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from experiments.intervals import t_interval
from experiments.liu2005.machines import PROBLEMS, SETTINGS, Array, fit_machines, load_split
from experiments.pages import markdown_table, save_figure
from experiments.results import Measurement
from experiments.runner import Claim, Experiment, Row, Task, Verdict
from manyclass import codes
from manyclass.banks import MARGIN, fit_bank
from manyclass.combiners.reliability import DynamicReliability, StaticReliability
from manyclass.combiners.srm_drm import DynamicReliabilityDecoder, StaticReliabilityDecoder

SCALES: dict[str, dict[str, Any]] = {
    "quick": {"draws": 5, "sizes": [200, 400], "letters": 300, "splits": 2},
    "paper": {"draws": 100, "sizes": [500, 1000, 2000, 4000, 8000], "letters": 2000, "splits": 60},
}
KERNELS: dict[str, dict[str, Any]] = {
    "linear": {"kernel": "linear"},
    "polynomial, degree 2": {"kernel": "poly", "degree": 2, "gamma": 1 / 16, "coef0": 1.0},
    "polynomial, degree 3": {"kernel": "poly", "degree": 3, "gamma": 1 / 16, "coef0": 1.0},
    "RBF": {"kernel": "rbf", "gamma": 1 / 16},  # as above, one over the number of features
}
KERNEL_C = (1.0, 10.0, 100.0)
NEIGHBOURS = 15  # of the middle of the sizes that table1 tries
REPEATS = 3
CHEAP = 1.0  # most time of a rule on top of the margins, in units of theirs
SEGMENT, OBJECTIVE_C = f"{PROBLEMS[0]}, standardised", 10.0  # the C of Figure 2
N_TRAIN, N_TEST = 300, 3000
LETTERS = 5  # machines of the first letters
LINEAR = 1.2  # largest exponent that is called linear


def draw_three_classes(n: int, seed: int) -> tuple[Array, NDArray[np.intp]]:
    """Draw points of a square. Class 3 is the lower half, classes 1 and 2 the upper quarters."""
    X = np.random.default_rng(seed).uniform(-1.0, 1.0, (n, 2))
    return X, np.where(X[:, 1] < 0, 2, np.where(X[:, 0] < 0, 0, 1)).astype(np.intp)


def measure_figure1(seed: int) -> Iterator[Row]:
    """Yield the reliabilities and the errors of the linear machines of the three classes."""
    (X, y), code = draw_three_classes(N_TRAIN, seed), codes.one_vs_rest(3)
    bank = fit_bank(SVC(kernel="linear", C=10.0), X, y, code, MARGIN)
    terms = bank.objective_terms(X, y, code, np.ones(len(y)))
    reliabilities = StaticReliability().fit(X, y, code, terms).values_
    X_test, y_test = draw_three_classes(N_TEST, 10_000 + seed)
    wrong = (bank.scores(X_test) > 0) != (code[y_test] > 0)
    for c in range(3):
        yield Row(f"class {c + 1}", "reliability", float(reliabilities[c]))
        yield Row(f"class {c + 1}", "error", float(wrong[:, c].mean()))


def measure_objective(seed: int) -> Iterator[Row]:
    """Yield the correlation of reliability and accuracy over the machines of a split of segment."""
    setting = SETTINGS[SEGMENT]
    split = load_split(setting.dataset, resample=seed)
    machines, X_test = fit_machines(setting, OBJECTIVE_C, split)
    bank, code = machines.bank, machines.code
    terms = bank.objective_terms(machines.X, machines.y, code, np.ones(len(machines.y)))
    values = StaticReliability().fit(machines.X, machines.y, code, terms).values_
    right = ((bank.scores(X_test) > 0) == (code[split.y_test] > 0)).mean(axis=0)
    yield Row("SRM", "correlation with accuracy", float(spearmanr(values, right).statistic))


def measure_cost(n: int) -> Iterator[Row]:
    """Yield the mean number of support vectors of one-vs-rest machines on n letters."""
    split = load_split("letter")
    counts = []
    for c in range(LETTERS):
        model = SVC(C=20.0, cache_size=500).fit(split.X[:n], split.y[:n] == c)
        counts.append(len(model.support_))
    yield Row("SRM", "support vectors", float(np.mean(counts)))
    yield Row("SRM", "kernel evaluations", float(np.mean(counts)) * n)


def measure_kernel(kernel: str, n: int) -> Iterator[Row]:
    """Yield the errors of one-against-all machines with a kernel on all letters, for every C."""
    X, y, X_test, y_test = _letters(n)
    code = codes.one_vs_rest(int(y.max()) + 1)
    for C in KERNEL_C:
        bank = fit_bank(SVC(C=C, cache_size=500, **KERNELS[kernel]), X, y, code, MARGIN)
        wrong = bank.scores(X_test).argmax(axis=1) != y_test
        yield Row(kernel, f"error, C={C:g}", float(wrong.mean()))


def measure_decoding(n: int) -> Iterator[Row]:
    """Yield the processor time of the margins of all letters, and that of SRM and DRM on top."""
    X, y, X_test, _ = _letters(n)
    code = codes.one_vs_rest(int(y.max()) + 1)
    bank = fit_bank(SVC(C=20.0, cache_size=500), X, y, code, MARGIN)
    terms = bank.objective_terms(X, y, code, np.ones(len(y)))
    measures = {"SRM": StaticReliability(), "DRM": DynamicReliability(NEIGHBOURS)}
    decoders = {"SRM": StaticReliabilityDecoder(), "DRM": DynamicReliabilityDecoder(NEIGHBOURS)}
    for measure in measures.values():
        measure.fit(X, y, code, terms)
    scores = bank.scores(X_test)
    yield Row("f(x)", "seconds to decode", _seconds(lambda: bank.scores(X_test)))
    for rule, measure in measures.items():

        def decode(rule: str = rule, measure: Any = measure) -> None:
            decoders[rule].combine(scores, code, measure.of(X_test, scores))

        yield Row(rule, "seconds to decode", _seconds(decode))


def _letters(n: int) -> tuple[Array, NDArray[np.intp], Array, NDArray[np.intp]]:
    """Return n standardised training rows of letter, and the test rows."""
    split = load_split("letter")
    scaler = StandardScaler().fit(split.X[:n])
    X, X_test = scaler.transform(split.X[:n]), scaler.transform(split.X_test)
    return X, split.y[:n], X_test, split.y_test


def _seconds(work: Callable[[], Any]) -> float:
    """Return the least processor time of some repeats, after a first call."""
    work()
    times = []
    for _ in range(REPEATS):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return min(times)


def tasks(scale: str) -> list[Task]:
    """Return the draws of Figure 1, the sizes for the cost, the kernels, and the decoding."""
    size, prefix = SCALES[scale], "" if scale == "paper" else "quick-"
    seeds = range(size["draws"])
    draws = (Task("Figure 1", f"{prefix}{s}", "all", measure_figure1, (s,)) for s in seeds)
    costs = (Task("letter", f"{prefix}{n}", "all", measure_cost, (n,)) for n in size["sizes"])
    n = size["letters"]
    split = f"{prefix}{n}"
    kernels = (
        Task("letter, kernels", split, kernel, measure_kernel, (kernel, n)) for kernel in KERNELS
    )
    decoding = Task("letter, decoding", split, "all", measure_decoding, (n,))
    objectives = (
        Task("segment, objective", f"{prefix}{s}", "all", measure_objective, (1000 + s,))
        for s in range(size["splits"])
    )
    return [*draws, *costs, *kernels, decoding, *objectives]


def config(scale: str) -> dict[str, Any]:
    """Return the settings of a scale."""
    return {
        **SCALES[scale],
        "training samples of Figure 1": N_TRAIN,
        "C of letter": 20.0,
        "kernels": KERNELS,
        "C of the kernels": KERNEL_C,
        "neighbours of DRM": NEIGHBOURS,
        "C of the objective": OBJECTIVE_C,
    }


# -- the page and the claims -----------------------------------------------------------


def _figure1(rows: list[Measurement], c: int, metric: str) -> Array:
    return np.array(
        [r.value for r in rows if r[1] == "Figure 1" and r[3:5] == (f"class {c}", metric)]
    )


def _cost(rows: list[Measurement]) -> tuple[Array, Array]:
    found = sorted(
        (int(r.split.split("-")[-1]), r.value) for r in rows if r.metric == "kernel evaluations"
    )
    sizes, evaluations = zip(*found, strict=True)
    return np.array(sizes, dtype=float), np.array(evaluations)


def _exponent(rows: list[Measurement]) -> float:
    sizes, evaluations = _cost(rows)
    return float(np.polyfit(np.log(sizes), np.log(evaluations), 1)[0])


def section(rows: list[Measurement], folder: Path) -> str:
    """Return the picture of the three classes, and the cost of SRM."""
    picture = save_figure(folder / "figure1.png", _draw, figsize=(4.6, 4.2))
    sizes, evaluations = _cost(rows)
    table = [
        [f"{n:.0f}", f"{e / n:.0f}", f"{e:.3g}"] for n, e in zip(sizes, evaluations, strict=True)
    ]
    return "\n\n".join(
        [
            "**Figure 1.** The paper sketches three classes of which one can be separated from the "
            "others by a line and one cannot. Here class 3 is the lower half of a square, and "
            "classes 1 and 2 are the upper quarters. The lines are those of the linear machines.",
            picture,
            "**The cost of SRM** is that of the decision values of the N training samples: N times "
            f"the number of support vectors. On letter (Gaussian kernel, C = 20, the first "
            f"{LETTERS} letters against the rest):",
            markdown_table(["N", "support vectors", "kernel evaluations"], table),
        ]
    )


def _draw(ax) -> None:
    X, y = draw_three_classes(N_TRAIN, 0)
    for c, marker in enumerate("o^s"):
        ax.scatter(*X[y == c].T, s=12, marker=marker, label=f"class {c + 1}", color=f"C{c}")
    ends = np.array([-1.0, 1.0])
    for c, style in ((2, "--"), (0, ":")):
        model = SVC(kernel="linear", C=10.0).fit(X, y == c)
        (a, b), offset = model.coef_[0], model.intercept_[0]
        ax.plot(
            ends, -(a * ends + offset) / b, f"k{style}", label=f"class {c + 1} against the rest"
        )
    ax.set(xlim=(-1, 1), ylim=(-1, 1), xlabel="$x_1$", ylabel="$x_2$")
    ax.figure.legend(fontsize=8, loc="outside lower center", ncols=2)


def _more_reliable(rows: list[Measurement]) -> Verdict:
    gaps = _figure1(rows, 3, "reliability") - _figure1(rows, 1, "reliability")
    better = _figure1(rows, 1, "error") - _figure1(rows, 3, "error")
    told = (
        f"on {np.sum((gaps > 0) & (better > 0))} of {len(gaps)} draws class 3 has the higher "
        f"reliability and the lower error (means: reliability "
        f"{_figure1(rows, 3, 'reliability').mean():.3f} against "
        f"{_figure1(rows, 1, 'reliability').mean():.3f}, error "
        f"{100 * _figure1(rows, 3, 'error').mean():.1f} against "
        f"{100 * _figure1(rows, 1, 'error').mean():.1f} %)."
    )
    return Verdict(bool(((gaps > 0) & (better > 0)).all()), told)


def _best_kernel(rows: list[Measurement]) -> Verdict:
    found: dict[str, float] = {}
    for row in rows:
        if row.data == "letter, kernels" and row.metric.startswith("error"):
            found[row.method] = min(row.value, found.get(row.method, 1.0))
    if len(found) < len(KERNELS):
        return Verdict(None, "it was not measured.")
    listed = ", ".join(f"{name} {100 * error:.2f} %" for name, error in found.items())
    others = [error for name, error in found.items() if name != "RBF"]
    return Verdict(found["RBF"] < min(others), f"least errors over C: {listed}.")


def _decoding(rows: list[Measurement]) -> Verdict:
    found = {row.method: row.value for row in rows if row.metric == "seconds to decode"}
    if "f(x)" not in found:
        return Verdict(None, "it was not measured.")
    ratios = {rule: found[rule] / found["f(x)"] for rule in ("SRM", "DRM")}
    listed = ", ".join(f"{rule} {ratio:.2f}" for rule, ratio in ratios.items())
    return Verdict(max(ratios.values()) < CHEAP, f"times the cost of the margins: {listed}.")


def _drm_dearer(rows: list[Measurement]) -> Verdict:
    found = {row.method: row.value for row in rows if row.metric == "seconds to decode"}
    if "DRM" not in found:
        return Verdict(None, "it was not measured.")
    times = found["DRM"] / found["SRM"]
    return Verdict(times > 1, f"DRM takes {times:.0f} times as long as SRM.")


def _objective(rows: list[Measurement]) -> Verdict:
    found = np.array([row.value for row in rows if row.metric == "correlation with accuracy"])
    if len(found) < 2:
        return Verdict(None, "it was not measured.")
    mean, low, high = t_interval(found)
    told = f"{mean:+.2f} [{low:+.2f}, {high:+.2f}], {len(found)} splits."
    return Verdict(True if low > 0 else False if high <= 0 else None, told)


def _linear_cost(rows: list[Measurement]) -> Verdict:
    exponent = _exponent(rows)
    return Verdict(exponent <= LINEAR, f"kernel evaluations grow as N^{exponent:.2f} on letter.")


CLAIMS = (
    Claim(
        "A classifier whose linear boundary fits the true one is more accurate and reliable than "
        "one whose boundary does not (Figure 1).",
        "On all draws of three classes as in Figure 1, the machine of the separable class has the "
        "higher static reliability and the lower test error.",
        _more_reliable,
        key="figure-1",
    ),
    Claim(
        "The complexity of SRM is O(N) (section III).",
        "The number of kernel evaluations for the N decision values, N times the number of support "
        f"vectors, grows on letter at most as N^{LINEAR:g}.",
        _linear_cost,
        key="linear-cost",
    ),
    Claim(
        "A smaller objective function means smaller generalization error, or a more reliable "
        "classifier (section III).",
        "Spearman's correlation of the static reliability, which falls with the objective, with "
        "the test accuracy, over the seven one-against-all machines of segment (degree 1, "
        f"standardised, C = {OBJECTIVE_C:g}): the 95 % interval (Student) of its mean over 60 "
        "further splits is above 0. The claim does not hold if it is below.",
        _objective,
        key="objective",
    ),
    Claim(
        "DRM is more expensive than SRM (section III).",
        "On letter, with 2000 training samples, DRM adds more processor time to the margins than "
        "SRM does.",
        _drm_dearer,
        key="drm-dearer",
    ),
    Claim(
        "A Gaussian kernel is the best choice for letter (section V).",
        "The least test error over C is lower with the Gaussian kernel than with the linear one "
        "and with polynomials of degree 2 and 3: one-against-all machines, 2000 training samples.",
        _best_kernel,
        lambda: "the paper prints no error of another kernel on letter.",
        "best-kernel",
    ),
    Claim(
        "SRM and DRM do not impose high computational cost (abstract and conclusions).",
        "On letter, with 2000 training samples, decoding by SRM and by DRM takes less processor "
        "time than the margins, to which it is added.",
        _decoding,
        key="decoding-cost",
    ),
)

EXPERIMENT = Experiment(
    name="liu2005-statements",
    title="Figure 1, and the cost of SRM",
    tasks=tasks,
    config=config,
    section=section,
    claims=CLAIMS,
)
