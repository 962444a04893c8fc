"""Examples of the helpers that the rooms share."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.validation import has_fit_parameter

from manyclass import CoupledClassifier
from manyclass._lib.extras import import_extra
from manyclass._lib.files import replacing
from manyclass._lib.interrupts import interruptible
from manyclass._lib.messages import distinct_names, printable, shorten
from manyclass._lib.routing import takes_weights
from manyclass._lib.row_blocks import row_blocks
from manyclass._lib.rows import take_part
from manyclass._lib.unchanged_on_error import unchanged_on_error


def test_missing_packages_are_named_with_the_command_to_install_them():
    with pytest.raises(ImportError, match=r"needs no_such_package: run pip install 'manyclass\["):
        import_extra("no_such_package.module", "the example needs")


def test_replaced_files_are_complete(tmp_path):
    with replacing(tmp_path / "new folder" / "file") as file:
        file.write(b"whole")
    assert (tmp_path / "new folder" / "file").read_bytes() == b"whole"


def test_long_calls_return_their_result():
    assert interruptible(max, 1, 3, 2, work=1e9) == 3


def test_texts_are_cut_in_the_middle():
    assert shorten("subclass of a class of a superclass, number 17") == "subclass of a c…umber 17"


def test_labels_are_written_on_one_line():
    assert [printable("two\nlines"), printable("")] == ["two lines", "''"]


def test_short_names_differ():
    names = ["cat", "sample of batch 1 of 9", "sample of batch 2 of 9"]
    assert distinct_names(names, 10) == ["cat", "…1 of 9", "…2 of 9"]
    assert distinct_names(["a", "a "], longest=10) == ["a [0]", "a [1]"]


def test_failed_fits_leave_the_estimator_unchanged():
    model = GaussianNB().fit([[0], [1]], [0, 1])
    with pytest.raises(ValueError), unchanged_on_error(model):
        model.fit([[0, 0], [1, 1]], [0])
    assert model.n_features_in_ == 1


@pytest.mark.parametrize(
    ("learner", "taken"), [(GaussianNB(), True), (KNeighborsClassifier(), False)]
)
def test_weights_are_offered_if_the_inner_estimator_takes_them(learner, taken):
    assert takes_weights(learner) is taken
    assert has_fit_parameter(CoupledClassifier(learner), "sample_weight") is taken


def test_blocks_of_rows_are_bounded_by_their_entries():
    assert list(row_blocks(5, width=3, entries=6)) == [slice(0, 2), slice(2, 4), slice(4, 5)]
    assert list(row_blocks(2, width=9, entries=6)) == [slice(0, 1), slice(1, 2)]


def test_parts_are_copied_once_or_not_at_all():
    X = np.arange(9).reshape(3, 3)
    part = take_part(X, np.array([2, 0]), np.array([0, 1]))
    assert part.tolist() == [[6, 7], [0, 1]]
    assert take_part(X, np.arange(3)) is X
    assert not np.shares_memory(take_part(X, np.arange(3), copy=True), X)
