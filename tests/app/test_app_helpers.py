"""Examples of the helpers of the command line."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

pd = pytest.importorskip("pandas")

from manyclass._lib.files import check_output  # noqa: E402
from manyclass.app.candidates import Candidate, Size, choose, from_mapping  # noqa: E402
from manyclass.app.columns import DaysSince1970, conform, kinds_of  # noqa: E402
from manyclass.app.compare import compare  # noqa: E402
from manyclass.app.description import describe  # noqa: E402
from manyclass.app.inputs import draw, size_of  # noqa: E402
from manyclass.app.report import (  # noqa: E402
    as_text,
    listed,
    one_line,
    text_table,
)
from manyclass.app.snippet import Source, program  # noqa: E402
from manyclass.app.tables import read_table  # noqa: E402
from manyclass.app.terminal import shown  # noqa: E402

PROGRAM = """\
from sklearn.naive_bayes import GaussianNB

from manyclass import compare
from manyclass.app.tables import read_table

X, y = read_table('iris')
board = compare(
    X,
    y,
    candidates={
        'bayes': GaussianNB(var_smoothing=0.1),
    },
    cv=5,
    random_state=0,
)
print(board)
print(board.verdict())

# The one to use, fitted on all rows.
model = board.described.pipeline.fit(X, y)
print(model.predict_proba(X.head(3)).round(3))
"""


def test_program_is_written_in_full():
    candidates = {"bayes": GaussianNB(var_smoothing=0.1)}
    board = compare(*read_table("iris"), candidates=candidates)
    assert program(board, Source("iris")) == PROGRAM


def test_quick_candidates():
    candidates, _ = choose(Size(rows=1797, classes=10, rarest=139), quick=True)
    names = ["baseline", "logistic", "forest", "calibrated-forest", "calibrated-svc"]
    names += ["coupled-svc", "coupled-logistic"]
    assert [candidate.name for candidate in candidates] == names


def test_mappings_become_candidates():
    learner = GaussianNB()
    assert from_mapping({"bayes": learner}) == [Candidate("bayes", learner, most_rows=None)]


def test_labels_become_texts_for_pages():
    assert [as_text("two\nlines"), as_text(""), as_text(7)] == ["two lines", "(empty)", "7"]
    assert as_text("a very long name", most=9) == "a ver…ame"
    assert one_line("it failed\n\n  for reasons") == "it failed for reasons"


def test_names_are_joined():
    assert shown(["a", "b"]) == "'a', 'b'"
    assert shown(map(str, range(100))).endswith("'11' and 88 more")
    joined = [listed(names) for names in (["a"], ["a", "b"], ["a", "b", "c"])]
    assert joined == ["a", "a and b", "a, b and c"]


def test_kinds_of_columns_and_their_values():
    table = pd.DataFrame({"a": [1, 2], "b": ["x", None], "c": ["2024-01-31", None]})
    assert kinds_of(table) == {"a": "number", "b": "category", "c": "date"}
    block = pd.DataFrame({"a": ["1", "2.5"], "b": [1, 2], "c": ["true", "False"]})
    read = conform(block, {"a": "number", "b": "category", "c": "bool"})
    assert read.to_numpy().tolist() == [[1.0, "1", "True"], [2.5, "2", "False"]]


def test_dates_become_days():
    dates = pd.to_datetime(pd.Series(["1970-01-02", None, "1971-01-01"]))
    days = DaysSince1970().fit_transform(dates.to_frame("day")).ravel()
    np.testing.assert_array_equal(days, [1, np.nan, 365])


def test_tables_are_described():
    X = pd.DataFrame({"size": [1.0, np.nan, 3.0], "colour": ["red", "blue", "red"]})
    found = describe(X, ["a", "b"], np.array([0, 1, 0]))
    assert found.kinds == {"number": 1, "category": 1}
    assert (found.missing, found.class_counts) == ({"size": 1}, {"a": 2, "b": 1})


def test_size_counts_training_rows_of_the_rarest_class():
    assert size_of(np.repeat([0, 1], [20, 7]), n_folds=5) == Size(rows=27, classes=2, rarest=5)


def test_drawn_rows_are_stratified():
    y = np.repeat([0, 1, 2], [70, 28, 2])
    assert np.bincount(y[draw(y, 20, random_state=0)]).tolist() == [14, 6, 2]


def test_folders_are_no_outputs():
    with pytest.raises(ValueError, match=r"^\. is a folder\. Name a file in it\.$"):
        check_output(".")


def test_columns_are_aligned():
    table = text_table(["model", "loss"], [["a", "0.5"], ["long name", "10.25"]])
    lines = ["model       loss", "-" * 16, "a            0.5", "long name  10.25"]
    assert table.split("\n") == lines
