"""The page "Findings and errata": scoreboard, ten findings with a figure each, errata."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from experiments import checked, ledger
from experiments.findings import figures
from experiments.pages import errata_table, markdown_table, save_figure
from manyclass._lib.files import replace_file

AIM = 6  # open verdicts at most


class Finding(NamedTuple):
    """A finding, with the entries of the ledgers that it rests on."""

    title: str
    entries: tuple[str, ...]
    """Papers and claims: "zadrozny2001-divergence/minimises-any-code"."""
    draw: Callable[..., None]
    name: str
    """Name of the figure."""
    text: Callable[[], str]
    options: dict[str, Any]


def verdict(claim: str) -> ledger.Entry:
    """Return the entry of a decided claim."""
    paper = claim.split("-")[0]
    return next(e for e in ledger.read_ledger(paper).entries if e.decided_by == claim)


def write_findings() -> str:
    """Write the page and its figures from the ledgers and the stored results."""
    for finding in FINDINGS:
        save_figure(figures.folder() / f"{finding.name}.png", finding.draw, **finding.options)
    page = figures.folder() / "README.md"
    replace_file(page, findings_text())
    return str(page)


def findings_text() -> str:
    """Return the page."""
    books = [ledger.read_ledger(paper) for paper in ledger.PAPERS]
    parts = ["# Findings and errata", INTRODUCTION, "## Scoreboard", totals(books), _open(books)]
    parts.append("## Ten findings")
    for number, finding in enumerate(FINDINGS, start=1):
        parts += _section(number, finding)
    parts += ["## Errata", ERRATA, errata_table(books)]
    parts += ["## Criteria that were changed", CHANGED, _changed(books)]
    parts += ["## Further results that were planned", PLANNED, _planned(books)]
    parts += ["## What was judged before", RETIRED, _retired(books)]
    return "\n\n".join(parts) + "\n"


def _section(number: int, finding: Finding) -> list[str]:
    rests = ", ".join(f"{verdict(c).id} ({verdict(c).verdict})" for c in finding.entries)
    return [
        f"### {number}. {finding.title}",
        finding.text(),
        f"![{finding.name}]({finding.name}.png)",
        f"Ledger: {rests}." if rests else "Ledger: not a claim of the papers.",
    ]


def totals(books: list[ledger.Ledger]) -> str:
    """Return the verdicts of every paper, claims apart from the rest."""
    table = []
    for book in books:
        claims = [e.verdict for e in book.entries if e.kind == "claim"]
        rest = [e.verdict for e in book.entries if e.kind != "claim"]
        counts = [str(part.count(w)) for part in (rest, claims) for w in ledger.VERDICTS]
        table.append([book.paper, *counts])
    sums = [str(sum(int(row[i]) for row in table)) for i in range(1, 7)]
    parts = "methods, tables, figures", "claims"
    header = [f"{part}: {w}" for part in parts for w in ledger.VERDICTS]
    return markdown_table(["paper", *header], [*table, ["all", *sums]])


def _open(books: list[ledger.Ledger]) -> str:
    found = [(book.paper, e) for book in books for e in book.entries if e.verdict == ledger.OPEN]
    lines = [f"- {paper} {e.id}, “{e.quote}”: {e.power}" for paper, e in found]
    missed = f"; the aim, at most {AIM}, is not reached" if len(found) > AIM else ""
    return "\n".join([f"{len(found)} verdicts stay open{missed}:", "", *lines])


def _changed(books: list[ledger.Ledger]) -> str:
    table = [
        [f"{book.paper} {e.id}", c.date.isoformat(), c.was, c.gave, e.verdict, c.reason]
        for book in books
        for e in book.entries
        for c in e.changes
    ]
    header = ["", "date", "criterion before", "it gave", "verdict now", "reason"]
    return markdown_table(header, table, of_words=True)


def _planned(books: list[ledger.Ledger]) -> str:
    table = [
        [book.paper, ", ".join(p.entries), p.date.isoformat(), p.number, p.known, p.came]
        for book in books
        for p in book.plans
    ]
    header = ["paper", "entries", "date", "planned", "known then", "what came of it"]
    return markdown_table(header, table, of_words=True)


def _retired(books: list[ledger.Ledger]) -> str:
    table = [
        [book.paper, r.claim, r.verdict, r.date.isoformat(), r.reason]
        for book in books
        for r in book.retired
    ]
    header = ["paper", "claim", "verdict then", "until", "reason"]
    return markdown_table(header, table, of_words=True)


INTRODUCTION = """\
Five papers on turning binary classifiers into multiclass ones with probabilities were run again.
Every method, formula, algorithm, table, figure and claim has an entry in a ledger
(`experiments/<paper>/ledger.toml`) with a criterion, the date on which the criterion was written,
every change to it, and a verdict. "Does not hold" and "cannot be told" are results like any other.
Figures and numbers on this page are written by `python -m experiments judge`."""

ERRATA = """\
Places where the papers are wrong, or contradict themselves. The last column names the test, the
experiment, or the check of published numbers (`experiments/checked.py`) that shows it."""

CHANGED = """\
A criterion that is changed after its result is known can be bent. So every change is listed, with
the verdict that the criterion gave before. The pages of the papers have today's criteria."""

PLANNED = """\
Results that are added until a verdict comes out would bend it, too. So the number of further
results is fixed before they are run, and the criteria stay as they are."""

RETIRED = """\
Verdicts that earlier versions of these pages gave, and that were withdrawn."""


# -- texts -----------------------------------------------------------------------------


def _evidence(claim: str) -> str:
    return verdict(claim).evidence


def _scaling() -> str:
    ratios, gains = figures.temperature_ratios(), figures.structured_ratios()
    mean = sum(gains.values()) / len(gains)
    return (
        "Pairs that do not contain the true class pull its probability down, whatever the rule. A "
        f"single power, fitted on left-out samples, multiplies the log-loss of δ2 by "
        f"{ratios['wlw2']:.2f} and that of HT by {ratios['ht']:.2f} (support vector machines, ten "
        f"data sets). Structured scaling multiplies what remains by {mean:.2f} in the mean, from "
        f"{min(gains.values()):.2f} to {max(gains.values()):.2f}. None of the five papers has such "
        "a step."
    )


def _p_values() -> str:
    impossible = len(checked.duan_contradictions())
    fitting = checked.means_for(("DNA", "SSMC1v1", "error"))
    return (
        "Two means and two deviations bound the t of a paired t-test, whatever the partitions are. "
        f"For {impossible} of 145 published p-values it lies outside. Three of them belong to one "
        f"mean, 7.96 % of SSMC1v1 on DNA: every mean from {fitting[0]:g} to {fitting[-1]:g} fits "
        "all three, 7.69 among them. The others compare PWC_KLR with WTA_SVM."
    )


def _calibration() -> str:
    errors = figures.calibration_errors()
    return (
        "The abstract calls the coupled probabilities calibrated. Their mean calibration error is "
        f"{errors['zadrozny']:.3f}, that of the non-iterative estimates "
        f"{errors['noniterative']:.3f}, and that of the true minimiser {errors['kl']:.3f}. "
        "Beyond what calibrated probabilities would have on as many rows, "
        f"{_evidence('zadrozny2001-reliability/calibrated')}"
    )


def _srm() -> str:
    gains = figures.converged_gains()
    told = ", ".join(f"{gain:.2f} points on {problem}" for problem, gain in gains.items())
    return (
        "The paper's large gain, from 27.8 to 9.95 % with a polynomial of degree 2, appears when "
        "the solver is stopped early, and shrinks as it converges. On converged machines and "
        f"further splits SRM gains {told}. The paper does not say how its solver was stopped."
    )


FINDINGS = (
    Finding(
        "The printed iteration of Zadrozny is not the minimiser it is said to be",
        (
            "zadrozny2001-divergence/minimises-any-code",
            "zadrozny2001-divergence/minimises-pairs",
        ),
        figures.draw_divergence,
        "1-divergence",
        lambda: (
            "The fixed point of the iteration lacks a factor 1/p(side). It is the minimum of the "
            "weighted Kullback-Leibler distance only if every side is a single class. For other "
            f"codes: {_evidence('zadrozny2001-divergence/minimises-any-code')}"
        ),
        {"ncols": 2, "figsize": (10, 4)},
    ),
    Finding(
        "Coupled probabilities are under-confident, and a last step mends it",
        (),
        figures.draw_scaling,
        "2-scaling",
        _scaling,
        {"ncols": 2, "figsize": (10, 3.8)},
    ),
    Finding(
        "One-against-all labels are those of the largest binary probability",
        (
            "zadrozny2001-tables/one-against-all-worse",
            "zadrozny2001-divergence/labels-one-against-all",
        ),
        figures.draw_labels,
        "3-labels",
        lambda: (
            "The printed iteration and the true minimiser keep the order of the binary "
            "probabilities, so that neither can change a label except in ties. The paper prints "
            "different error rates, and says that labels may differ. Random "
            f"{_evidence('zadrozny2001-divergence/labels-one-against-all')}"
        ),
        {"figsize": (7.5, 3.8)},
    ),
    Finding(
        "The large gain of SRM comes from solvers that did not converge",
        ("liu2005-converged/lowers-degree-2", "liu2005-converged/degrades-less"),
        figures.draw_stopped,
        "4-converged",
        _srm,
        {"ncols": 2, "figsize": (10, 4)},
    ),
    Finding(
        "For linear discriminants the pairs bring the gain, not the thresholds",
        (
            "hastie1998-figure3/halves",
            "hastie1998-figure3/threshold-lda",
            "hastie1998-figure3/threshold-neighbours",
        ),
        figures.draw_contributions,
        "5-pairs",
        lambda: (
            "Pairs of linear discriminants, coupled, have little more than half the error of one "
            "for all classes; the thresholds, to which the paper gives the credit, change nothing. "
            "For nearest neighbours the thresholds do it. Ratios of errors, by both readings of "
            f"the covariances: {_evidence('hastie1998-figure3/halves')}"
        ),
        {"figsize": (8, 3.6)},
    ),
    Finding(
        "HT and V are extremes as formulas, not as rules",
        ("wu2003-spread/formulas-extreme", "wu2003-spread/rules-extreme"),
        figures.draw_spread,
        "6-spread",
        lambda: (
            "Section 5 explains the errors of HT and V by the spread of their probabilities. Its "
            "formulas (13) and (16) are too narrow and too wide. The rules are not: "
            f"{_evidence('wu2003-spread/rules-extreme')}"
        ),
        {"ncols": 3, "figsize": (11, 4.2), "sharey": True},
    ),
    Finding(
        "On real data, votes are the most stable of Wu's four rules",
        ("wu2003-table1/stable-real", "wu2003-figure1/stable"),
        figures.draw_losses,
        "7-stability",
        lambda: (
            "δ1 and δ2 are called more stable than HT and V. In the simulation they are. On the "
            f"five data sets: {_evidence('wu2003-table1/stable-real')} With the same criterion, "
            f"{verdict('wu2003-table1/stable-real').published}"
        ),
        {"ncols": 2, "figsize": (10, 4), "sharey": True},
    ),
    Finding(
        "Some published p-values are impossible",
        ("duan2003-tables/ssmc1v1",),
        figures.draw_p_values,
        "8-p-values",
        _p_values,
        {"figsize": (7.5, 4)},
    ),
    Finding(
        "A published log-loss is not reproduced by any number of iterations",
        ("duan2003-iterations/pwc-psvm-log-loss", "duan2003-tables/table-4"),
        figures.draw_steps,
        "9-steps",
        lambda: (
            "The log-loss that Table 4 prints for PWC_PSVM on SAT and SEG is far above ours. An "
            "iteration that is stopped early has a higher one, and about 80 steps come near; but "
            "no number of steps and no tolerance fits all five data sets: "
            f"{_evidence('duan2003-iterations/pwc-psvm-log-loss')}"
        ),
        {"ncols": 5, "figsize": (14, 3.6)},
    ),
    Finding(
        "The coupled probabilities of boosted naive Bayes are not calibrated",
        ("zadrozny2001-reliability/calibrated", "zadrozny2001-reliability/better-calibrated"),
        figures.draw_reliability,
        "10-reliability",
        _calibration,
        {"ncols": 3, "figsize": (10.8, 3.8), "sharey": True},
    ),
)
