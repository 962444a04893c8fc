"""Claims that hold by the tracked results are listed, and the pages show the verdicts."""

from __future__ import annotations

import json
from functools import cache

import pytest

from experiments.long.tracked import FOLDER, LIST, rows_of, tracked_claims

CLAIMS = tracked_claims()
IDS = [f"{experiment.name}: {claim.text[:60]}" for experiment, claim in CLAIMS]


@cache
def listed() -> dict[str, list[str]]:
    return json.loads(LIST.read_text("utf-8"))


@cache
def rows(name: str):
    return rows_of(next(experiment for experiment, _ in CLAIMS if experiment.name == name))


@pytest.mark.parametrize(("experiment", "claim"), CLAIMS, ids=IDS)
def test_the_list_of_claims_that_hold_is_as_the_results_are(experiment, claim):
    verdict = claim.decide(rows(experiment.name))
    assert (verdict.holds is True) == (claim.text in listed().get(experiment.name, [])), (
        f"it {verdict}. If that is meant, run python -m experiments.long.tracked"
    )


@pytest.mark.parametrize(("experiment", "claim"), CLAIMS, ids=IDS)
def test_the_page_says_what_the_results_say(experiment, claim):
    page = (FOLDER / experiment.paper / "README.md").read_text("utf-8")
    verdict = str(claim.decide(rows(experiment.name)))
    assert f"- {claim.text}\n\n  Criterion: {claim.criterion}\n\n  Here it {verdict}" in page


def test_nothing_on_the_list_is_unknown():
    known = {(experiment.name, claim.text) for experiment, claim in CLAIMS}
    assert {(name, text) for name, texts in listed().items() for text in texts} <= known
