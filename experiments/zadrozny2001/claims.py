"""The claims of Zadrozny (2001), and the statistics that decide them.

Methods are compared on the same test rows, by the mean of the differences of their losses and
its standard error. The sparse code was drawn several times. The draws share the test rows, so
the variance of their mean is the variance of one draw's mean, plus the variance between draws
divided by their number.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
from scipy.stats import norm

from experiments.intervals import reproduced
from experiments.pages import published, summarise
from experiments.results import Measurement
from experiments.runner import Claim, Verdict

DATA = ("satimage", "pendigits", "soybean")
CODES = ("one-vs-one", "one-vs-rest", "sparse-random")
LEVEL = 0.05
MARGIN = 0.02  # of error: the size of "small" differences in the paper's tables
SHOWN = 9  # longest list of differences; longer ones are only counted

Rows = list[Measurement]
Pair = tuple[str, str, str]
"""Data, "first - second", metric."""


class Difference(NamedTuple):
    """The mean difference of two methods' losses on the same test rows."""

    data: str
    pair: str
    metric: str
    mean: float
    se: float

    @property
    def z(self) -> float:
        """In standard errors; 0 where the two never differ."""
        return self.mean / self.se if self.se > 0 else 0.0

    def upper(self) -> float:
        """Return the upper bound at the level."""
        return self.mean + float(norm.isf(LEVEL)) * self.se

    def __str__(self) -> str:
        first, second = self.pair.split(" - ")
        code, _, method = first.partition("/")
        methods = f"{method} − {second.removeprefix(f'{code}/')}"
        return f"{self.data} {code}, {methods}, {self.metric} {self.mean:+.4f} ± {self.se:.4f}"


def one_scale(rows: Iterable[Measurement]) -> Rows:
    """Return the rows of the paper's scale if there are any; else all, the quick ones."""
    rows = list(rows)
    return [row for row in rows if not row.split.startswith("quick")] or rows


def differences(rows: Rows, pairs: Iterable[Pair]) -> list[Difference]:
    """Return the differences that were measured, sparse codes averaged over their draws."""
    summary = summarise(one_scale(rows))
    found = []
    for data, pair, metric in pairs:
        if (data, pair, metric) in summary:
            means = summary[data, pair, metric].values
            se = summary[data, pair, f"{metric} se"].mean
            draws = means.var(ddof=1) / len(means) if len(means) > 1 else 0.0
            mean, se = float(means.mean()), float(np.hypot(se, draws**0.5))
            found.append(Difference(data, pair, metric, mean, se))
    return found


def decide_signs(
    rows: Rows, pairs: Iterable[Pair], sign: int, printed: dict[Pair, float] | None = None
) -> Verdict:
    """Decide whether all differences have a sign, each significantly.

    They have not if one is significantly opposite, or significantly weaker than the printed one.
    """
    found = differences(rows, pairs)
    if not found:
        return Verdict(None, "it was not measured.")
    if all(d.mean == 0 == d.se for d in found):
        return Verdict(False, f"the two never differ ({len(found)} comparisons).")
    bound = float(norm.isf(LEVEL / len(found)))
    as_claimed = [d for d in found if sign * d.z > bound]
    against = [d for d in found if sign * d.z < -bound or _weaker(d, sign, printed or {}, bound)]
    holds = True if len(as_claimed) == len(found) else (False if against else None)
    return Verdict(holds, _told(found, as_claimed, against, printed is not None))


def _weaker(d: Difference, sign: int, printed: dict[Pair, float], bound: float) -> bool:
    """Whether a difference that is not as claimed is significantly weaker than the printed one."""
    theirs = printed.get((d.data, d.pair, d.metric))
    if theirs is None or sign * d.z > bound or d.se == 0:
        return False
    return sign * (d.mean - theirs) / d.se < -bound


def _told(
    found: list[Difference], as_claimed: list[Difference], against: list[Difference], printed: bool
) -> str:
    counts = (
        f"{len(as_claimed)} of {len(found)} differences are significantly as claimed, and "
        f"{len(against)} significantly opposite{', or weaker than printed' if printed else ''}"
    )
    return counts + _listed(found if len(found) <= SHOWN else against) + "."


def _listed(found: list[Difference]) -> str:
    return ": " + "; ".join(map(str, found)) if found else ""


PRINTED = {"noniterative": "ht-noniterative", "zadrozny": "ht-iterative", "kl": "ht-iterative"}
"""Our names of rules and those of the published tables."""


def printed_differences(pairs: Iterable[Pair]) -> dict[Pair, float]:
    """Return the differences of the published numbers, for the pairs that have both."""
    columns = {"error": "error_rate", "mse": "mse"}
    values = {
        (row["dataset"], f"{row['code']}/{row['method']}".lstrip("/"), metric): float(row[column])
        for row in published("zadrozny2001_tables2_3")
        for metric, column in columns.items()
        if row[column]
    }
    found = {}
    for data, pair, metric in pairs:
        first, second = ((data, _printed_name(m), metric) for m in pair.split(" - "))
        if first in values and second in values:
            found[data, pair, metric] = values[first] - values[second]
    return found


def _printed_name(method: str) -> str:
    code, _, rule = method.rpartition("/")
    rule = PRINTED.get(rule, rule)
    return f"{code}/{rule}" if code else rule


def printed_signs(pairs: Iterable[Pair], sign: int) -> str:
    """Apply the criterion to the published numbers, which have no standard errors."""
    found = printed_differences(pairs)
    as_claimed = sum(sign * gap > 0 for gap in found.values())
    against = [pair for pair, gap in found.items() if sign * gap <= 0]
    listed = "; ".join(f"{d} {p.partition('/')[0]}, {p.rpartition('/')[2]}" for d, p, _ in against)
    return (
        f"{as_claimed} of {len(found)} printed differences have the claimed sign (no standard "
        f"errors are printed){f'; not: {listed}' if listed else ''}."
    )


def printed_largest(pairs: Iterable[Pair]) -> str:
    """Say which printed difference is the largest."""
    found = printed_differences(pairs)
    data, pair, metric = max(found, key=lambda p: found[p])
    above = sum(gap > MARGIN for gap in found.values())
    return (
        f"{above} of {len(found)} printed differences are above {MARGIN:.2f}; the largest is "
        f"{found[data, pair, metric]:+.4f}, {pair.partition('/')[0]} on {data}."
    )


def printed_equal(pairs: Iterable[Pair]) -> str:
    """Say in how many places the printed error rates are equal."""
    found = printed_differences(pairs)
    equal = sum(abs(gap) < 5e-5 for gap in found.values())
    listed = "; ".join(f"{d} {p.partition('/')[0]} {g:+.4f}" for (d, p, _), g in found.items() if g)
    else_ = f" (else {listed})" if listed else ""
    return f"{equal} of {len(found)} printed error rates are equal{else_}."


def decide_no_worse(rows: Rows, pairs: Iterable[Pair]) -> Verdict:
    """Decide that no difference is significantly above 0, and all upper bounds are below MARGIN."""
    found = differences(rows, pairs)
    if not found:
        return Verdict(None, "it was not measured.")
    strict = float(norm.isf(LEVEL / len(found)))
    worse = [d for d in found if d.z > strict]
    largest = max(found, key=Difference.upper)
    holds = False if worse else (None if largest.upper() > MARGIN else True)
    text = f"{len(worse)} of {len(found)} differences are significantly above 0{_listed(worse)}"
    return Verdict(holds, f"{text}; the largest upper bound is {largest.upper():+.4f}: {largest}.")


def decide_none_off(rows: Rows, methods: Iterable[str]) -> Verdict:
    """Decide whether the labels of methods are those of loss-based decoding, L = -y."""
    summary = summarise(one_scale(rows))
    found = {
        f"{data} {method.partition('/')[0]}": summary[
            data, method, "labels off linear loss"
        ].values.sum()
        for data, method in product(DATA, methods)
        if (data, method, "labels off linear loss") in summary
    }
    if not found:
        return Verdict(None, "it was not measured.")
    told = ", ".join(f"{place} {count:.0f}" for place, count in found.items())
    return Verdict(not any(found.values()), f"test rows with another label: {told}.")


def decide_worse_one_vs_rest(rows: Rows, pairs: Iterable[Pair]) -> Verdict:
    """Decide whether there are more errors. If no label differs, there are not."""
    same = decide_none_off(rows, ["one-vs-rest/zadrozny"])
    if same.holds:
        return Verdict(False, f"the labels are the same except for ties; {same.evidence}")
    return decide_signs(rows, pairs, 1)


def _pairs(
    first: str, others: Iterable[str], metrics: Iterable[str], codes: Iterable[str] = CODES
) -> list[Pair]:
    """Return comparisons within the same code, for all data sets."""
    return [
        (data, f"{code}/{first} - {code}/{second}", metric)
        for second, metric, data, code in product(others, metrics, DATA, codes)
    ]


def _lower(key: str, text: str, pairs: list[Pair], weaker: bool = False) -> Claim:
    criterion = (
        f"paired over the test rows, every difference is below 0 at the {LEVEL:.0%} level, "
        f"one-sided, divided by the number of comparisons ({len(pairs)}). The claim does not hold "
        "if one difference is above 0 at that level"
    )
    criterion += ", or above the difference that the paper prints." if weaker else "."
    printed = printed_differences(pairs) if weaker else None
    decide = partial(decide_signs, pairs=pairs, sign=-1, printed=printed)
    return Claim(text, criterion, decide, partial(printed_signs, pairs, -1), key)


def _labels(key: str, text: str, methods: tuple[str, ...], compared: str = "zadrozny") -> Claim:
    criterion = (
        "on every test row of the three data sets the label is one of those with the least linear "
        "loss (binary probabilities are clipped as in coupling)."
    )
    codes = [method.partition("/")[0] for method in methods]
    pairs = _pairs(compared, ["loss-linear"], ["error"], codes)
    decide = partial(decide_none_off, methods=methods)
    return Claim(text, criterion, decide, partial(printed_equal, pairs), key)


def decide_losses_differ(rows: Rows) -> Verdict:
    """Decide whether the two losses have different error rates anywhere."""
    summary = summarise(one_scale(rows))
    found = {
        f"{data} {code}": [
            summary[data, f"{code}/{loss}", "error"].mean
            for loss in ("loss-linear", "loss-exponential")
        ]
        for data, code in product(DATA, CODES)
        if (data, f"{code}/loss-linear", "error") in summary
    }
    if not found:
        return Verdict(None, "it was not measured.")
    gaps = ", ".join(f"{place} {b - a:+.4f}" for place, (a, b) in found.items() if a != b)
    return Verdict(bool(gaps), f"error with e^-y less error with -y: {gaps or 'equal everywhere'}.")


def _calibration(name: str) -> Claim:
    pairs = _pairs(f"zadrozny/{name}", ["zadrozny"], ["mse", "log-loss"])
    claim = _lower(
        f"{name}-calibration",
        f"Section 6 asks whether calibrating the binary estimates improves the coupled ones: "
        f"{name} calibration lowers MSE and log-loss of the iterative estimates.",
        pairs,
    )
    return replace(claim, published=lambda: "the paper leaves the question open.")


def decide_reproduced(rows: Rows, data: str) -> Verdict:
    """Compare our error rates with the published ones of a data set, on the same test rows."""
    summary = summarise(one_scale(rows))
    if (data, "data", "test rows") not in summary:
        return Verdict(None, "it was not measured.")
    n, distances = summary[data, "data", "test rows"].mean, {}
    for row in published("zadrozny2001_tables2_3"):
        if row["dataset"] == data:
            method = f"{row['code']}/{OURS.get(row['method'], row['method'])}".lstrip("/")
            error = float(row["error_rate"])
            gap = summary[data, method, "error"].mean - error
            distances[method] = gap / np.sqrt(error * (1 - error) / n)
    near = sum(abs(d) < 2 for d in distances.values())
    told = f"{near} of {len(distances)} error rates are within 2 standard errors; from "
    span = f"{min(distances.values()):+.1f} to {max(distances.values()):+.1f}."
    return Verdict(reproduced(distances.values()), told + span)


ALIKE = ("loss-linear", "loss-exponential", "noniterative", "zadrozny")


def decide_alike(rows: Rows, data: str) -> Verdict:
    """Decide whether the error rates of all methods with the same code are close to each other."""
    summary = summarise(one_scale(rows))
    found = {
        code: [summary[data, f"{code}/{method}", "error"].mean for method in ALIKE]
        for code in CODES
        if (data, f"{code}/{ALIKE[0]}", "error") in summary
    }
    if len(found) < len(CODES):
        return Verdict(None, "it was not measured.")
    return Verdict(*_ranges(found))


def printed_alike(data: str) -> str:
    """Apply the criterion to the published error rates."""
    ours = {ours: theirs for theirs, ours in OURS.items()}
    names = {ours.get(method, method) for method in ALIKE}
    found: dict[str, list[float]] = {code: [] for code in CODES}
    for row in published("zadrozny2001_tables2_3"):
        if row["dataset"] == data and row["method"] in names:
            found[row["code"]].append(float(row["error_rate"]))
    holds, told = _ranges(found)
    return f"{told[:-1]}: {'as' if holds else 'not as'} claimed."


def _ranges(found: dict[str, list[float]]) -> tuple[bool, str]:
    ranges = {code: max(errors) - min(errors) for code, errors in found.items()}
    told = ", ".join(f"{code} {gap:.4f}" for code, gap in ranges.items())
    return max(ranges.values()) <= MARGIN, f"the largest differences are {told}."


OURS = {"ht-noniterative": "noniterative", "ht-iterative": "zadrozny"}


def _table(number: int, data: str) -> Claim:
    return Claim(
        f"The error rates of Table {number}, {data}.",
        "at least nine of ten error rates are within 2 binomial standard errors of the published "
        "ones (sparse codes: the mean of our draws).",
        partial(decide_reproduced, data=data),
        lambda: "it compares with the published numbers themselves.",
        f"table-{number}-{data}",
    )


ACCURATE = _pairs("zadrozny", ["loss-linear", "loss-exponential"], ["error"])
ONE_AGAINST_ALL = _pairs("zadrozny", ["loss-linear"], ["error"], CODES[1:2])
TABLE_CLAIMS = (
    _table(2, "satimage"),
    _table(3, "pendigits"),
    _table(3, "soybean"),
    _lower(
        "lower-mse",
        "The iterative estimates have a lower MSE than the non-iterative ones, with every code on "
        "every data set (section 5).",
        _pairs("zadrozny", ["noniterative"], ["mse"]),
    ),
    _labels(
        "theorem-1",
        "Theorem 1: with all pairs and a linear loss, loss-based decoding gives the label of the "
        "Hastie-Tibshirani estimates. (The proof takes the weights of the pairs to be equal; so do "
        "the estimates here.)",
        ("one-vs-one/kl, equal weights",),
    ),
    _labels(
        "theorem-1-weighted",
        "Theorem 1 for the estimates as section 2 defines them, weighted by the number of training "
        "samples of each pair.",
        ("one-vs-one/kl",),
    ),
    _labels(
        "noniterative-labels",
        "Section 4: the non-iterative estimates give the label of loss-based decoding with a "
        "linear loss for all pairs and one-against-all.",
        ("one-vs-one/noniterative", "one-vs-rest/noniterative"),
        "noniterative",
    ),
    Claim(
        "With the loss e^-y, loss-based decoding may give another class than with -y (section 4).",
        "The error rates of the two losses differ on some data set with some code.",
        decide_losses_differ,
        lambda: "the printed error rates differ on pendigits with all pairs, .0723 and .0715.",
        "losses-differ",
    ),
    Claim(
        "The iterative estimates classify about as accurately as loss-based decoding (abstract).",
        f"paired over the test rows, no difference in error from either loss is above 0 at the "
        f"{LEVEL:.0%} level, one-sided, divided by the number of comparisons, and no upper bound "
        f"at that level is above {MARGIN:.2f}. With such a bound but no such difference, the claim "
        "is undecided.",
        partial(decide_no_worse, pairs=ACCURATE),
        partial(printed_largest, ACCURATE),
        "as-accurate",
    ),
    Claim(
        "With one-against-all the iterative estimates have consistently more errors than "
        "loss-based decoding (section 5).",
        f"paired over the test rows, every difference from the linear loss is above 0 at the "
        f"{LEVEL:.0%} level, one-sided, divided by the number of comparisons. The claim does not "
        "hold if one difference is below 0 at that level, or if labels differ only by ties.",
        partial(decide_worse_one_vs_rest, pairs=ONE_AGAINST_ALL),
        partial(printed_signs, ONE_AGAINST_ALL, 1),
        "one-against-all-worse",
    ),
    Claim(
        "On satimage, the differences between methods are small in terms of error rate "
        "(section 5).",
        "With every code, the error rates of the two losses and of the two estimates are within "
        f"{MARGIN:.2f} of each other.",
        partial(decide_alike, data="satimage"),
        partial(printed_alike, "satimage"),
        "alike",
    ),
    _lower(
        "sparse-better",
        "With sparse random codes the iterative estimates have consistently fewer errors than the "
        "other methods (section 5).",
        _pairs(
            "zadrozny", ["loss-linear", "loss-exponential", "noniterative"], ["error"], CODES[2:]
        ),
        weaker=True,
    ),
    _lower(
        "sparse-below-pairs",
        "On soybean the iterative estimates with the sparse code of 64 columns have fewer errors "
        "than with all 171 pairs (section 5).",
        [("soybean", "sparse-random/zadrozny - one-vs-one/kl", "error")],
    ),
    _lower(
        "below-naive-bayes",
        "Coupled boosted naive Bayes with all pairs has lower error and MSE than naive Bayes of "
        "many classes (tables 2 and 3).",
        [
            (data, "one-vs-one/zadrozny - naive-bayes", metric)
            for metric, data in product(("error", "mse"), DATA)
        ],
    ),
    _calibration("sigmoid"),
    _calibration("isotonic"),
)


# -- figure 1 --------------------------------------------------------------------------

SETTLED = 0.05  # smaller relative changes count as none
ENOUGH = 1000  # iterations that show the limit


def curves(rows: Rows, metric: str = "mse") -> dict[str, dict[int, np.ndarray]]:
    """Return, for every code, the values after each iteration, one for each draw of the code."""
    found: dict[str, dict[int, np.ndarray]] = {}
    for (_, method, of), values in summarise(one_scale(rows)).items():
        code, _, iteration = method.partition("/")
        if of == metric and iteration.isdigit():
            found.setdefault(code, {})[int(iteration)] = values.values
    return {code: dict(sorted(curve.items())) for code, curve in found.items()}


def decide_falls(rows: Rows) -> Verdict:
    """Decide whether the MSE falls at each of the first iterations, which are all measured."""
    rises = {}
    for code, curve in curves(rows).items():
        every = [t for t in curve if t == 0 or t - 1 in curve]
        steps = np.diff([curve[t] for t in every], axis=0)
        rises[code] = int((steps >= 0).sum()), steps.size, lowest(curve)
    if not rises:
        return Verdict(None, "it was not measured.")
    told = "; ".join(
        f"{code}: {up} of {size} steps do not lower the MSE, which is lowest after "
        f"iteration {least}"
        for code, (up, size, least) in rises.items()
    )
    return Verdict(not any(up for up, _, _ in rises.values()), f"{told}.")


def lowest(curve: dict[int, np.ndarray]) -> int:
    """Return the iteration after which the mean over the draws is least."""
    return min(curve, key=lambda t: curve[t].mean())


def decide_settles(rows: Rows, early: int) -> Verdict:
    """Decide whether the MSE changes little after some iterations."""
    found = curves(rows)
    if not found or any(early not in curve or max(curve) < ENOUGH for curve in found.values()):
        return Verdict(None, "too few iterations were made.")
    last = {code: max(curve) for code, curve in found.items()}
    change = {
        code: float(found[code][t].mean() / found[code][early].mean() - 1)
        for code, t in last.items()
    }
    told = ", ".join(f"{code} {c:+.1%} by iteration {last[code]}" for code, c in change.items())
    return Verdict(all(abs(c) <= SETTLED for c in change.values()), f"the change is {told}.")


FIGURE_CLAIMS = (
    Claim(
        "The MSE is lowered at each iteration, with all three codes (section 5, figure 1).",
        "each of the first 50 iterations lowers the MSE on the test set, for every draw of the "
        "sparse code.",
        decide_falls,
        key="falls",
    ),
    Claim(
        "The iteration converges (sections 2 and 3), and the MSE with it.",
        f"the MSE after 50 iterations is within {SETTLED:.0%} of that after the last one made, at "
        f"least {ENOUGH}.",
        partial(decide_settles, early=50),
        key="settles",
    ),
)
