"""The ledgers are complete, agree with the results and the pages, and refer to what exists."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from functools import cache
from pathlib import Path

import pytest

from experiments import all_experiments, checked, ledger, pages, shown
from experiments.findings.page import FINDINGS, findings_text
from experiments.runner import Claim, Verdict

ROOT = Path(__file__).parents[1]
BOOKS = {paper: ledger.read_ledger(paper) for paper in ledger.PAPERS}
ENTRIES = [
    pytest.param(paper, entry, id=f"{paper} {entry.id}")
    for paper, book in BOOKS.items()
    for entry in book.entries
]


@cache
def page(paper: str) -> str:
    return (ledger.FOLDER / paper / "README.md").read_text("utf-8")


def exists(reference: str) -> bool:
    """Whether a path, a test in it, an experiment, or a machine-checked number is there."""
    path, _, test = reference.partition("::")
    if (ROOT / path).exists():
        return not test or f"def {test}(" in (ROOT / path).read_text("utf-8")
    return reference in all_experiments() or reference in {f.key for f in checked.findings()}


@pytest.mark.parametrize(("paper", "entry"), ENTRIES)
def test_every_entry_is_complete(paper, entry):
    assert ledger.lacking(entry) == []
    assert exists(entry.implemented), entry.implemented
    assert exists(entry.shown), entry.shown
    for change in entry.changes:
        assert change.was and change.gave and change.reason and change.date >= entry.written


@pytest.mark.parametrize("paper", ledger.PAPERS)
def test_identifiers_are_unique_and_every_claim_has_an_entry(paper):
    book = BOOKS[paper]
    assert len({entry.id for entry in book.entries}) == len(book.entries)
    decided = [entry.decided_by for entry in book.entries if entry.decided_by]
    assert sorted(decided) == sorted(ledger.decided_claims(paper))


def test_all_kinds_of_all_papers_are_there():
    assert sum(len(book.entries) for book in BOOKS.values()) >= 134
    for book in BOOKS.values():
        assert {"method", "formula", "claim"} <= {entry.kind for entry in book.entries}


@pytest.mark.parametrize("paper", ledger.PAPERS)
def test_verdicts_are_those_of_the_stored_results(paper):
    again = ledger.judge(BOOKS[paper], ledger.stored_rows(paper))
    for old, new in zip(BOOKS[paper].entries, again.entries, strict=True):
        assert old == new, f"{old.id}: run python -m experiments judge"


@pytest.mark.parametrize(("paper", "entry"), ENTRIES)
def test_the_page_says_what_the_ledger_says(paper, entry):
    text = page(paper)
    (line,) = [x for x in text.splitlines() if x.startswith(f"| {entry.id} |")]
    assert f"| {entry.verdict} |" in line
    if entry.decided_by:
        _, claim = ledger.decided_claims(paper)[entry.decided_by]
        _, _, rest = text.partition(
            f"- {claim.text}\n\n  Criterion: {entry.criterion}\n\n  Here it "
        )
        assert rest.startswith(f"**{entry.verdict}**: {entry.evidence}")
        assert f"\n\n  Published: {entry.published}" in rest[: len(entry.evidence) + 1500]


@pytest.mark.parametrize("paper", ledger.PAPERS)
def test_the_page_begins_with_the_abstract_and_ends_with_the_ledger(paper):
    rows, text = ledger.stored_rows(paper), page(paper)
    abstract, board = pages.fronts(paper, rows, "paper")
    assert len(abstract.splitlines()) == 10
    assert text.split("\n", 2)[2].startswith(f"{abstract}\n\n{board}\n\n")
    assert text.endswith("\n\n".join(pages.backs(paper, rows, "paper")) + "\n")


def test_the_findings_are_those_of_the_ledgers():
    written = (ledger.FOLDER / "findings" / "README.md").read_text("utf-8")
    assert written == findings_text(), "run python -m experiments judge"
    assert len(FINDINGS) == 10
    assert all((ledger.FOLDER / "findings" / f"{f.name}.png").exists() for f in FINDINGS)


@pytest.mark.parametrize("paper", ledger.PAPERS)
def test_plans_are_complete_and_name_entries(paper):
    book = BOOKS[paper]
    for plan in book.plans:
        assert plan.entries and set(plan.entries) <= {entry.id for entry in book.entries}
        assert plan.number and plan.known and plan.came


@pytest.mark.parametrize("paper", ledger.PAPERS)
def test_errata_refer_to_what_shows_them(paper):
    for erratum in BOOKS[paper].errata:
        assert exists(erratum.shown), erratum.shown


def test_every_machine_finding_is_an_erratum():
    shown = {erratum.shown for book in BOOKS.values() for erratum in book.errata}
    assert {finding.key for finding in checked.findings()} <= shown


@pytest.mark.parametrize("paper", ledger.PAPERS)
def test_writing_and_reading_again_changes_nothing(paper, tmp_path, monkeypatch):
    (tmp_path / paper).mkdir()
    monkeypatch.setattr(ledger, "FOLDER", tmp_path)
    ledger.write_ledger(BOOKS[paper])
    assert ledger.read_ledger(paper) == BOOKS[paper]


# -- criteria that cannot bend ---------------------------------------------------------


def entry(**options):
    given = {"criterion": "Below 1.", "verdict": ledger.HOLDS, "evidence": "0.5", "published": "-"}
    return ledger.Entry(
        "X1",
        "claim",
        "section 1",
        "it is so",
        date(2026, 11, 15),
        "nothing",
        "a",
        "b::test",
        **(given | options),
    )


def claim(criterion, holds=None):
    return Claim("It is so.", criterion, lambda rows: Verdict(holds, "1.5", "more"), lambda: "2")


def test_a_criterion_is_not_changed_without_a_word():
    with pytest.raises(ValueError, match='the criterion of X1 was changed.*was = "Below 1."'):
        ledger.judge_entry(entry(), claim("Below 2."), [])
    change = ledger.Change(date(2026, 11, 18), "Below 1.", ledger.HOLDS, "1.5 was seen")
    judged = ledger.judge_entry(entry(changes=(change,)), claim("Below 2.", True), [])
    assert (judged.criterion, judged.verdict, judged.published) == ("Below 2.", "holds", "2")


def test_a_test_shows_the_statement_or_its_opposite():
    assert ledger.shown_by_test(entry(verdict="")).verdict == ledger.HOLDS
    assert ledger.shown_by_test(entry(verdict="", refutes=True)).verdict == ledger.FAILS
    assert ledger.shown_by_test(entry(evidence="")).evidence == "the test passes."


def test_a_test_passes_if_all_its_cases_do(tmp_path):
    cases = {
        "one[a]": "",
        "one[b]": "",
        "two[a]": "",
        "two[b]": "<failure/>",
        "three": "<skipped/>",
    }
    lines = (f'<testcase file="x.py" name="{n}">{tag}</testcase>' for n, tag in cases.items())
    (tmp_path / "report.xml").write_text(f"<testsuite>{''.join(lines)}</testsuite>")
    found = shown._outcomes(tmp_path / "report.xml")
    assert {name: all(passed) for name, passed in found.items()} == {
        "x.py::one": True,
        "x.py::two": False,
        "x.py::three": False,
    }


def test_open_verdicts_say_what_it_would_take():
    judged = ledger.judge_entry(entry(), claim("Below 1."), [])
    assert (judged.verdict, judged.power) == (ledger.OPEN, "more")
    assert ledger.lacking(judged) == []
    assert ledger.lacking(replace(judged, power="")) == ["power"]


def test_what_is_missing_is_named():
    assert ledger.lacking(entry(evidence="", verdict="maybe")) == ["evidence", "verdict is 'maybe'"]
    by_hand = replace(entry(), decided_by="", shown="hastie1998-figure1")
    assert ledger.lacking(by_hand) == ["a test, or a claim that decides it"]
