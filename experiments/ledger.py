"""The ledger: every method, formula, table, figure and claim of the papers, and its verdict.

Each paper has a file ``ledger.toml``. An entry quotes the paper, states the criterion, says when it
was written and how it was changed, where the method is implemented and where it is tested or run.
``python -m experiments judge`` decides the claims from the stored results and writes verdict and
evidence; with ``--tests`` it first runs the tests that show the rest. It refuses a criterion that
was changed without a word in the ledger.
"""

from __future__ import annotations

import json
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, replace
from datetime import date
from pathlib import Path
from typing import Any

from experiments import of_paper
from experiments.results import Measurement, Results
from experiments.runner import Claim, Experiment
from experiments.shown import failing
from manyclass._lib.files import replace_file

FOLDER = Path(__file__).parent
PAPERS = ("hastie1998", "zadrozny2001", "wu2003", "duan2003", "liu2005")
KINDS = ("method", "formula", "algorithm", "table", "figure", "claim")
HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot be told"
VERDICTS = (HOLDS, FAILS, OPEN)
NOT_ALL = "To tell, the results that are missing would be needed."
WORDS = {True: HOLDS, False: FAILS, None: OPEN}


@dataclass(frozen=True)
class Change:
    """A change of a criterion."""

    date: date
    was: str
    """The criterion before."""
    gave: str
    """The verdict that it gave."""
    reason: str
    """Why it was changed, and what was known of the result."""


@dataclass(frozen=True)
class Entry:
    """One statement of a paper, and how we judge it."""

    id: str
    kind: str
    place: str
    quote: str
    """A few words of the paper."""
    written: date
    """When the criterion was written."""
    known: str
    """What was known of the result then."""
    implemented: str
    """Path of the code."""
    shown: str
    """Path of the test, or name of the experiment."""
    criterion: str = ""
    verdict: str = ""
    evidence: str = ""
    published: str = ""
    """The criterion applied to the published numbers."""
    decided_by: str = ""
    """Experiment and key of the claim, if our results decide it; else a test shows it."""
    refutes: bool = False
    """Whether the test shows that the statement is wrong."""
    power: str = ""
    """What it would take to tell, for open verdicts."""
    changes: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Erratum:
    """A place where a paper is wrong, or contradicts itself."""

    place: str
    printed: str
    reads: str
    """What it should read, or why it is wrong."""
    shown: str
    """Path of the test, name of the experiment, or key of the finding that shows it."""


@dataclass(frozen=True)
class Retired:
    """A verdict that was given before, and is no more."""

    claim: str
    verdict: str
    date: date
    reason: str


@dataclass(frozen=True)
class Plan:
    """Further results for verdicts that were open. Their number is fixed before they are run."""

    date: date
    entries: tuple[str, ...]
    """Identifiers of the entries that they may decide. Their criteria stay as they are."""
    number: str
    """What was to be run."""
    known: str
    """What was known of the results then."""
    came: str
    """What was run in the end, and why if it is not the planned number."""


@dataclass(frozen=True)
class Ledger:
    """The ledger of one paper."""

    paper: str
    entries: tuple[Entry, ...]
    errata: tuple[Erratum, ...] = ()
    retired: tuple[Retired, ...] = field(default=())
    plans: tuple[Plan, ...] = field(default=())

    def score(self) -> Counter[str]:
        """Return how many verdicts there are of each word."""
        return Counter(entry.verdict for entry in self.entries)


# -- reading and writing ---------------------------------------------------------------


def path_of(paper: str) -> Path:
    """Return the file of a paper's ledger."""
    return FOLDER / paper / "ledger.toml"


def read_ledger(paper: str) -> Ledger:
    """Read the ledger of a paper. Unknown and missing fields are errors."""
    found = tomllib.loads(path_of(paper).read_text("utf-8"))
    try:
        entries = tuple(_entry(table) for table in found["entry"])
        errata = tuple(Erratum(**table) for table in found.get("erratum", []))
        retired = tuple(Retired(**table) for table in found.get("retired", []))
        plans = tuple(_plan(**table) for table in found.get("plan", []))
    except (KeyError, TypeError) as error:
        raise ValueError(f"{path_of(paper)} is damaged: {error}.") from error
    return Ledger(paper, entries, errata, retired, plans)


def _plan(entries: list[str], **table: Any) -> Plan:
    return Plan(entries=tuple(entries), **table)


def _entry(table: dict[str, Any]) -> Entry:
    changes = tuple(Change(**change) for change in table.pop("changes", []))
    return Entry(**table, changes=changes)


def write_ledger(ledger: Ledger) -> None:
    """Write the ledger of a paper, in the order of its fields."""
    parts = [f"# {of_paper(ledger.paper)[0]}. Verdicts are written by: python -m experiments judge"]
    named = (
        ("entry", ledger.entries),
        ("erratum", ledger.errata),
        ("retired", ledger.retired),
        ("plan", ledger.plans),
    )
    parts += [_table(name, item) for name, items in named for item in items]
    replace_file(path_of(ledger.paper), "\n\n".join(parts) + "\n")


def _table(name: str, item: Any) -> str:
    lines = [f"[[{name}]]"]
    for key in (f.name for f in fields(item)):
        value = getattr(item, key)
        if key == "changes":
            lines += [_table("entry.changes", change) for change in value]
        elif value:
            lines.append(f"{key} = {_literal(value)}")
    return "\n".join(lines)


def _literal(value: Any) -> str:
    return value.isoformat() if isinstance(value, date) else json.dumps(value, ensure_ascii=False)


# -- judging ---------------------------------------------------------------------------


def decided_claims(paper: str) -> dict[str, tuple[Experiment, Claim]]:
    """Return the claims of a paper's experiments by "experiment/key"."""
    return {
        f"{experiment.name}/{claim.key}": (experiment, claim)
        for experiment in of_paper(paper)[1]
        for claim in experiment.claims
    }


def stored_rows(paper: str) -> list[Measurement]:
    """Return all stored results of a paper."""
    return list(Results(FOLDER / paper / "results.csv"))


def judge(ledger: Ledger, rows: Iterable[Measurement]) -> Ledger:
    """Return the ledger with the verdicts that the results give."""
    rows, claims = list(rows), decided_claims(ledger.paper)
    entries = []
    for entry in ledger.entries:
        if entry.decided_by:
            experiment, claim = claims[entry.decided_by]
            own = [row for row in rows if row.experiment == experiment.name]
            entry = judge_entry(entry, claim, own)
        else:
            entry = shown_by_test(entry)
        entries.append(entry)
    return replace(ledger, entries=tuple(entries))


def judge_entry(entry: Entry, claim: Claim, rows: list[Measurement]) -> Entry:
    """Return the entry with the verdict of its claim."""
    logged = {change.was for change in entry.changes}
    if entry.criterion not in ("", claim.criterion) and entry.criterion not in logged:
        raise ValueError(
            f"the criterion of {entry.id} was changed and the ledger does not say so. Add a change "
            f"with the date, the reason, and: was = {json.dumps(entry.criterion)}"
        )
    verdict = claim.decide(rows)
    return replace(
        entry,
        criterion=claim.criterion,
        verdict=WORDS[verdict.holds],
        evidence=verdict.evidence,
        published=claim.published(),
        power=(verdict.power or NOT_ALL) if verdict.holds is None else "",
    )


def shown_by_test(entry: Entry) -> Entry:
    """Return the entry with the verdict of its test, which passes: see :func:`not_passing`."""
    evidence = entry.evidence or "the test passes."
    return replace(entry, verdict=FAILS if entry.refutes else HOLDS, evidence=evidence)


def not_passing() -> set[str]:
    """Run the tests that the ledgers refer to, and return those that do not pass."""
    shown = (entry.shown for paper in PAPERS for entry in read_ledger(paper).entries)
    return failing({reference for reference in shown if "::" in reference})


def judge_all() -> None:
    """Decide the claims of all papers from their stored results, and write the ledgers."""
    for paper in PAPERS:
        write_ledger(judge(read_ledger(paper), stored_rows(paper)))


# -- checks ----------------------------------------------------------------------------


def lacking(entry: Entry) -> list[str]:
    """Return what an entry lacks."""
    optional = ("decided_by", "refutes", "power", "changes")
    needed = [f.name for f in fields(entry) if f.name not in optional]
    found = [name for name in needed if not getattr(entry, name)]
    if not entry.decided_by and "::" not in entry.shown:
        found.append("a test, or a claim that decides it")
    if entry.kind not in KINDS:
        found.append(f"kind is {entry.kind!r}")
    if entry.verdict not in VERDICTS:
        found.append(f"verdict is {entry.verdict!r}")
    if entry.verdict == OPEN and not entry.power:
        found.append("power")
    return found
