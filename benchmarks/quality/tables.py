"""Tables from the stored figures: ours beside every family of alternatives.

A *unit* is a set, or a learner on a set. Its cases are averaged (geometric means of log-loss), then
the best alternative is taken: "best per set". "Best per case" takes the best alternative in each
case instead. That is a minimum over many noisy figures, better than anything a user can choose.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from benchmarks.quality import results
from benchmarks.quality.peers import METHODS, SMS, VENN_ABERS
from benchmarks.quality.results import Row
from experiments.pages import markdown_table
from manyclass._lib.files import replace_file

LOST = 1.02
"""Ours / theirs above which a comparison counts as lost."""
BEFORE = "before"
# For the README: large gains, the usual, and none.
EXCERPT = ("soybean", "letter", "satimage", "mnist5k", "dna", "geometric mean")
PLAIN = (
    "itself",
    "probability",
    *(method + ensemble for method in METHODS for ensemble in ("", "-ensemble")),
)
FAMILIES: dict[str, Callable[[str], bool]] = {
    "itself": lambda name: name == "itself",
    "SVC(probability=True)": lambda name: name == "probability",
    "SVC(probability=True), SMS": lambda name: name == "probability" + SMS,
    "CalibratedClassifierCV": lambda name: "+" not in name and name.startswith(METHODS),
    "with SMS": lambda name: name.endswith(SMS),
    "with Venn-Abers": lambda name: name.endswith(VENN_ABERS),
}
"""Alternatives that belong together: a table shows the best of them on a set."""

Cases = dict[tuple[str, str], dict[str, Row]]
"""Rows by model, by case and setting."""
Table = tuple[list[str], list[list[str]]]
"""Header and rows."""


def is_peer(model: str) -> bool:
    return model.split("+")[0] in PLAIN


@dataclass
class Figures:
    """The figures of a file, and the units that its cases belong to."""

    cases: Cases
    units: dict[str, list[tuple[str, str]]]
    models: list[str]
    labels: list[str]
    """Names of ours, the earlier one first."""

    @property
    def peers(self) -> list[str]:
        return [model for model in self.models if is_peer(model)]

    def values(self, unit: str, model: str, measure: str = "log_loss") -> np.ndarray:
        """Return the figures of a model on the cases of a unit; NaN where there are none."""
        rows = (self.cases[key].get(model) for key in self.units[unit])
        return np.array([getattr(row, measure) if row else np.nan for row in rows])

    def ratio(self, unit: str, ours: str, theirs: str) -> float:
        """Return ours / theirs over the cases that both have, if those are at least half."""
        logs = np.log(self.values(unit, ours)) - np.log(self.values(unit, theirs))
        known = np.isfinite(logs)
        return float(np.exp(logs[known].mean())) if 2 * known.sum() >= len(logs) else np.nan

    def best(self, unit: str, ours: str, among: Iterable[str]) -> tuple[float, str]:
        """Return the largest ours / theirs of a unit, and whose it is."""
        ratios = {peer: self.ratio(unit, ours, peer) for peer in among}
        known = {peer: ratio for peer, ratio in ratios.items() if np.isfinite(ratio)}
        if not known:
            return np.nan, "-"
        name = max(known, key=lambda peer: known[peer])
        return known[name], name

    def to_best_by_case(self, ours: str) -> dict[tuple[str, str], float]:
        """Return ours / best alternative for each case."""
        found = {}
        for key, rows in self.cases.items():
            theirs = [rows[peer].log_loss for peer in self.peers if peer in rows]
            theirs = [value for value in theirs if np.isfinite(value)]
            if theirs and ours in rows:
                found[key] = rows[ours].log_loss / min(theirs)
        return found


def figures_of(rows: Iterable[Row], group: str, labels: list[str] | None = None) -> Figures:
    """Sort rows into cases and units."""
    cases: Cases = defaultdict(dict)
    units: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for row in rows:
        key = row.case, row.setting
        unit = row.data if group == "svm" else f"{row.setting}, {row.data}"
        if key not in cases:
            units[unit].append(key)
        cases[key][row.model] = row
    models = list(dict.fromkeys(model for of_case in cases.values() for model in of_case))
    found = [model for model in models if not is_peer(model)]
    if labels:
        found = [label for label in labels if label in found]
    return Figures(dict(cases), dict(units), models, sorted(found, key=_order))


def _order(label: str) -> tuple[int, str]:
    return {BEFORE: 0, "ours": 2}.get(label, 1), label


def mean(values: Iterable[float]) -> float:
    """Return the geometric mean of the known values."""
    array = np.array(list(values), dtype=float)
    array = array[np.isfinite(array)]
    return float(np.exp(np.log(array).mean())) if len(array) else np.nan


def shown(value: float, digits: int = 3) -> str:
    return f"{value:.{digits}f}" if np.isfinite(value) else "-"


def by_unit(figures: Figures) -> Table:
    """Return log-loss of ours, of each family and of the best alternative, unit by unit."""
    families = {
        name: members
        for name, belongs in FAMILIES.items()
        if (members := [peer for peer in figures.peers if belongs(peer)])
    }
    labels = figures.labels
    header = [
        "log-loss (classes, cases)",
        *labels,
        *families,
        "best alternative",
        *(f"{label} / best" for label in labels),
        *(f"{label} / best per case" for label in labels),
    ]
    rows, numbers = [], []
    by_case = {label: figures.to_best_by_case(label) for label in labels}
    for unit, keys in figures.units.items():
        losses = [mean(figures.values(unit, label)) for label in labels]
        theirs = [_lowest(figures, unit, members)[0] for members in families.values()]
        name = _lowest(figures, unit, figures.peers)[1]
        ratios = [figures.best(unit, label, figures.peers)[0] for label in labels]
        oracle = [mean(by_case[label].get(key, np.nan) for key in keys) for label in labels]
        k = max(row.k for row in figures.cases[keys[0]].values())
        numbers.append([*losses, *theirs, *ratios, *oracle])
        split = len(losses) + len(theirs)
        cells = [shown(value) for value in numbers[-1]]
        rows.append([f"{unit} ({k}, {len(keys)})", *cells[:split], name, *cells[split:]])
    cells = [shown(mean(column)) for column in zip(*numbers, strict=True)]
    split = len(labels) + len(families)
    return header, [*rows, ["geometric mean", *cells[:split], "", *cells[split:]]]


def _lowest(figures: Figures, unit: str, members: list[str]) -> tuple[float, str]:
    """Return the lowest mean log-loss of a unit among models with at least half of its cases."""
    found = {}
    for name in members:
        values = figures.values(unit, name)
        if 2 * np.isfinite(values).sum() >= len(values):
            found[name] = mean(values)
    name = min(found, key=lambda name: found[name], default="-")
    return found.get(name, np.nan), name


def summary(figures: Figures) -> Table:
    """Return the figures to reach, for each name of ours."""
    against = [
        name
        for name in (BEFORE, "itself", "probability", "probability" + SMS)
        if name in figures.models
    ]
    header = [
        "geometric means of log-loss",
        *(f"/ {name}" for name in against),
        "/ best per set",
        "worst",
        f"lost (> {LOST}) per set",
        "/ best per case",
        "worst case",
        "lost per case",
    ]
    rows = []
    for label in figures.labels:
        ratios = {unit: figures.best(unit, label, figures.peers)[0] for unit in figures.units}
        by_case = {f"{a} {b}": r for (a, b), r in figures.to_best_by_case(label).items()}
        others = [
            mean(figures.ratio(unit, label, other) for unit in figures.units) for other in against
        ]
        rows.append(
            [label, *map(shown, others), *_summary_of(ratios), *_summary_of(by_case)],
        )
    return header, rows


def _summary_of(ratios: dict[str, float]) -> list[str]:
    known = {name: ratio for name, ratio in ratios.items() if np.isfinite(ratio)}
    if not known:
        return ["-"] * 3
    worst = max(known, key=lambda name: known[name])
    lost = sum(ratio > LOST for ratio in known.values())
    return [shown(mean(known.values())), f"{known[worst]:.2f} ({worst})", f"{lost} of {len(known)}"]


def errors(figures: Figures) -> Table:
    """Return error rates: ours, of the alternative with the best log-loss, and the lowest."""
    labels = figures.labels
    header = ["error rate, %", *labels, "best alternative by log-loss", "lowest of alternatives"]
    numbers = []
    for unit in figures.units:
        of_peers = {peer: _mean_error(figures, unit, peer) for peer in figures.peers}
        best = _lowest(figures, unit, figures.peers)[1]
        numbers.append(
            [
                *(_mean_error(figures, unit, label) for label in labels),
                of_peers.get(best, np.nan),
                np.nanmin([*of_peers.values(), np.inf]),
            ]
        )
    rows = [
        [unit, *(shown(value, 2) for value in of_unit)]
        for unit, of_unit in zip(figures.units, numbers, strict=True)
    ]
    last = [shown(float(np.nanmean(column)), 2) for column in zip(*numbers, strict=True)]
    return header, [*rows, ["mean", *last]]


def _mean_error(figures: Figures, unit: str, model: str) -> float:
    """Return the mean error rate in percent; NaN unless the model has all cases of the unit."""
    return 100 * float(np.mean(figures.values(unit, model, "error")))


KEY = re.compile(r"-(?P<rows>\d+)(?P<marks>[su]*)-\d+$")


def by_kind(figures: Figures, group: str) -> Table:
    """Return ours / best per case, and lost cases, for each kind of case."""
    kinds: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for case, setting in figures.cases:
        for kind in _kinds_of(case, setting):
            kinds[kind].append((case, setting))
    header = ["kind of case (cases)"]
    reference = "probability" + SMS if group == "svm" else "itself"
    for label in figures.labels:
        header += [f"{label} / {reference}", f"{label} / best per case", f"{label}: lost, worst"]
    by_case = {label: figures.to_best_by_case(label) for label in figures.labels}
    rows = []
    for kind in sorted(kinds, key=_kind_order):
        row = [f"{kind} ({len(kinds[kind])})"]
        for label in figures.labels:
            ratios = [by_case[label][key] for key in kinds[kind] if key in by_case[label]]
            plain = mean(_ratio(figures.cases[key], label, reference) for key in kinds[kind])
            lost = sum(ratio > LOST for ratio in ratios)
            row += [shown(plain), shown(mean(ratios)), f"{lost}, {max(ratios, default=np.nan):.2f}"]
        rows.append(row)
    return header, rows


def _ratio(rows: dict[str, Row], ours: str, theirs: str) -> float:
    if ours not in rows or theirs not in rows:
        return np.nan
    return rows[ours].log_loss / rows[theirs].log_loss


def _kinds_of(case: str, setting: str) -> list[str]:
    match = KEY.search(case)
    marks, rows = (match["marks"], f"{match['rows']} rows") if match else ("", "all rows")
    return [
        setting,
        rows,
        "standardised" if "s" in marks else "not standardised",
        "unbalanced" if "u" in marks else "balanced",
    ]


def _kind_order(kind: str) -> tuple[int, int, str]:
    rows = kind.endswith(" rows") and kind.split()[0].isdigit()
    return (1, int(kind.split()[0]), "") if rows else (0 if "=" in kind else 2, 0, kind)


def by_learner(figures: Figures) -> Table:
    """Return ours / best alternative for each learner, over its sets."""
    header = ["learner (sets)"]
    for label in figures.labels:
        header += [f"{label} / itself", f"{label} / best", f"{label}: worst", f"{label}: lost"]
    learners = list(dict.fromkeys(unit.split(", ")[0] for unit in figures.units))
    rows = []
    for learner in learners:
        units = [unit for unit in figures.units if unit.split(", ")[0] == learner]
        row = [f"{learner} ({len(units)})"]
        for label in figures.labels:
            ratios = {
                unit.split(", ")[1]: figures.best(unit, label, figures.peers)[0] for unit in units
            }
            itself = mean(figures.ratio(unit, label, "itself") for unit in units)
            row += [shown(itself), *_summary_of(ratios)]
        rows.append(row)
    return header, rows


def tables_of(figures: Figures, group: str) -> dict[str, Table]:
    """Return all tables of a file, by the end of their name."""
    tables = {
        "summary": summary(figures),
        "sets": by_unit(figures),
        "errors": errors(figures),
        "kinds": by_kind(figures, group),
    }
    if group == "learners":
        tables["learners"] = by_learner(figures)
    else:
        tables["narrow"] = narrow(*tables["sets"])
        header, rows = tables["narrow"]
        some = [row for row in rows if row[0].split(" (")[0] in EXCERPT]
        tables["excerpt"] = header, some
    return tables


def narrow(header: list[str], rows: list[list[str]]) -> Table:
    """Return the columns that most readers want."""
    columns = [header[0], "ours", "SVC(probability=True)", "SVC(probability=True), SMS"]
    columns += ["CalibratedClassifierCV", "ours / best"]
    at = [header.index(name) for name in columns if name in header]
    names = [header[i].replace("ours", "CoupledSVC", 1) for i in at]
    return names, [[row[i] for i in at] for row in rows]


def make(group: str, scale: str, labels: list[str] | None = None) -> list[str]:
    """Print the tables of a file, store each as ``quality-GROUP-SCALE-NAME.md``, return names."""
    rows, made = results.read(results.path_of(group, scale)).values(), []
    if not rows:
        return made
    for name, (header, body) in tables_of(figures_of(rows, group, labels), group).items():
        table = markdown_table(header, body)
        print(f"\nquality-{group}-{scale}-{name}\n\n{table}")
        replace_file(results.FOLDER / f"quality-{group}-{scale}-{name}.md", table + "\n")
        made.append(f"quality-{group}-{scale}-{name}")
    return made
