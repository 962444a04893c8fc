"""The sample of a product of parameters holds every pair of values."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from all_pairs import all_pairs, checks_in_turn, covering_rows
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks


@pytest.mark.parametrize(
    "sizes", [[], [4], [3, 5], [2, 2, 2], [3, 3, 3], [5, 1, 4, 2], [2] * 8, [7, 5, 3, 2]]
)
def test_all_pairs_occur(sizes):
    rows = covering_rows(sizes)
    assert len(rows) == len(set(rows))
    assert set(rows) <= set(product(*map(range, sizes)))
    for a, b in combinations(range(len(sizes)), 2):
        assert {(row[a], row[b]) for row in rows} == set(product(range(sizes[a]), range(sizes[b])))


@pytest.mark.parametrize(
    ("sizes", "most"), [([3, 5], 15), ([2, 2, 2], 4), ([3, 3, 3, 3], 12), ([2] * 8, 9)]
)
def test_cases_are_few(sizes, most):
    assert len(covering_rows(sizes)) <= most


def test_one_parameter_keeps_all_of_its_values():
    assert [case.values for case in all_pairs(a=range(3)).args[1]] == [(0,), (1,), (2,)]


def test_cases_are_the_same_every_time():
    parameters = {"a": ["x", "y", "z"], "b": range(4), "c": [True, False]}
    assert all_pairs(**parameters) == all_pairs(**parameters)


def test_names_and_marks_are_those_of_the_values():
    values = [1, pytest.param(2, id="two", marks=pytest.mark.skip)]
    names, cases = all_pairs(a=values, f=[max, {}], c={"see": 3}).args
    assert names == ["a", "f", "c"]
    assert [case.id for case in cases] == ["1-max-see", "1-f1-see", "two-max-see", "two-f1-see"]
    assert [case.values[2] for case in cases] == [3, 3, 3, 3]
    assert [len(case.marks) for case in cases] == [0, 0, 1, 1]


def test_only_what_goes_together():
    def where(a, b, c):
        return a + b < 4 and (c or a > 0)

    parameters = {"a": range(4), "b": range(4), "c": [True, False]}
    cases = [case.values for case in all_pairs(where, **parameters).args[1]]
    allowed = [case for case in product(*parameters.values()) if where(*case)]
    assert set(cases) < set(allowed)
    for pair in combinations(range(3), 2):
        found, expected = ({tuple(c[i] for i in pair) for c in some} for some in (cases, allowed))
        assert found == expected


@all_pairs(a=[1, 2], b=["x", "y"], c=[None, 0.5])
def test_it_is_a_mark(a, b, c):
    assert a in (1, 2) and b in ("x", "y") and c in (None, 0.5)


def test_every_check_runs_once_for_every_group():
    groups = [[LogisticRegression(C=C) for C in (1.0, 2.0)], [LogisticRegression(C=3.0)]]
    checks = [str(check) for _, check in parametrize_with_checks(groups[1]).args[1]]
    cases = checks_in_turn(*groups).args[1]
    assert [str(check) for _, check in cases] == 2 * checks
    assert sum(model.C == 2.0 for model, _ in cases) == len(checks) // 2
