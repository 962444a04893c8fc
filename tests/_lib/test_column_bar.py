"""The line that shows how many columns are fitted."""

from __future__ import annotations

import pytest
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC

from manyclass import CoupledClassifier
from manyclass._lib.column_bar import ColumnBar


def test_a_log_has_a_line_for_every_tenth(capsys):
    bar = ColumnBar(200)
    for _ in range(200):
        bar.add(1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 10
    assert "100 of 200 columns" in lines[4] and "s left" in lines[4]
    assert lines[-1].startswith("[" + 30 * "#" + "] 200 of 200 columns")


@pytest.mark.parametrize("n_jobs", [None, 2])
@pytest.mark.parametrize("estimator", [LogisticRegression(), SVC()])
def test_columns_and_folds_are_counted_together(estimator, n_jobs, capsys):
    X, y = load_iris(return_X_y=True)
    model = CoupledClassifier(estimator, cv=3, verbose=1, n_jobs=n_jobs, with_native=False)
    model.fit(X, y)
    lines = [line for line in capsys.readouterr().out.splitlines() if "columns" in line]
    assert lines[-1].startswith("[" + 30 * "#" + "] 12 of 12 columns")  # 3 columns, 1 + 3 fits


def test_silent_by_default(capsys):
    X, y = load_iris(return_X_y=True)
    CoupledClassifier(LogisticRegression(), cv=3).fit(X, y)
    assert capsys.readouterr().out == ""
