from __future__ import annotations

import gzip
import warnings
from pathlib import Path
from urllib.error import URLError

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.utils import Bunch

from experiments import datasets
from experiments.datasets import load


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / f"{name}.csv.gz"
    path.write_bytes(gzip.compress(text.encode()))
    return path


def waveform_text(*rows: str, header: str | None = None) -> str:
    """A waveform file (21 features, no split); a row is '<values>,<class>'."""
    header = ",".join(f"x{i}" for i in range(21)) + ",class" if header is None else header
    return "\n".join([header, *rows]) + "\n"


def row(value: object, label: object, n: int = 21) -> str:
    return ",".join([str(value)] * n + [str(label)])


@pytest.fixture(autouse=True)
def no_folder(monkeypatch):
    monkeypatch.delenv("MANYCLASS_DATA", raising=False)


@pytest.fixture
def openml(monkeypatch):
    """Stand in for OpenML: returns the list of calls; set ``answer`` to a Bunch or an error."""

    class Fake:
        def __init__(self):
            self.calls = []
            self.answer = URLError("no route to host")

        def __call__(self, **options):
            self.calls.append(options)
            if isinstance(self.answer, Exception):
                raise self.answer
            return self.answer

    fake = Fake()
    monkeypatch.setattr(datasets, "fetch_openml", fake)
    return fake


def bunch(X, y) -> Bunch:
    return Bunch(
        data=X,
        target=np.array(y, dtype=object),
        feature_names=[f"f{i}" for i in range(X.shape[1])],
    )


# --- files ---------------------------------------------------------------------------


def test_file_with_split_missing_values_and_strings(tmp_path):
    names = ",".join(f"a{i}" for i in range(35))
    text = f"{names},split,class\n{row(1, 'train,rust', 35)}\n{row('?', 'test,blight', 35)}\n"
    path = write(tmp_path, "soybean", text)
    data = load("soybean", data_home=tmp_path)
    assert data.X.dtype == np.float64 and data.X.shape == (2, 35)
    assert (data.X[0] == 1).all() and np.isnan(data.X[1]).all()
    assert data.y.tolist() == ["rust", "blight"] and data.split.tolist() == ["train", "test"]
    assert data.feature_names == tuple(names.split(","))
    assert data.categorical and data.source == str(path)
    X_train, X_test, y_train, y_test = data.train_test()
    assert y_train.tolist() == ["rust"] and y_test.tolist() == ["blight"]
    assert (X_train == 1).all() and np.isnan(X_test).all()


def test_file_without_split_and_integer_labels(tmp_path):
    write(tmp_path, "waveform", waveform_text(*[row(i / 8, i % 2) for i in range(8)]))
    data = load("waveform", data_home=tmp_path)
    assert data.split is None and not data.categorical
    assert data.y.dtype == np.int64
    np.testing.assert_array_equal(data.X[:, 0], np.arange(8) / 8)
    first, again = data.train_test(random_state=3), data.train_test(random_state=3)
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)
    X_train, X_test, y_train, y_test = first
    assert sorted(np.r_[X_train, X_test][:, 0]) == sorted(data.X[:, 0])
    assert y_train.sum() == y_test.sum() == 2


def test_search_order_is_argument_then_environment_then_openml(tmp_path, monkeypatch, openml):
    argument, environment = tmp_path / "a", tmp_path / "e"
    for folder, value in [(argument, 1), (environment, 2)]:
        folder.mkdir()
        write(folder, "letter", waveform_text(row(value, "A", 16), header=row("x", "class", 16)))
    monkeypatch.setenv("MANYCLASS_DATA", str(environment))
    openml.answer = bunch(np.full((1, 16), 3.0), ["A"])
    assert load("letter", data_home=argument).X[0, 0] == 1
    assert load("letter").X[0, 0] == 2
    assert load("letter", data_home=tmp_path).X[0, 0] == 2
    assert not openml.calls
    monkeypatch.setenv("MANYCLASS_DATA", "")
    assert load("letter").X[0, 0] == 3
    assert openml.calls == [{"data_id": 6, "as_frame": False, "parser": "liac-arff"}]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "header must be"),
        (waveform_text(row(1, 2), header=row("x", "label")), "header must be"),
        (waveform_text(row(1, 2), header="class"), "header must be"),
        (waveform_text(), "no rows"),
        (waveform_text(row(1, 0), row(1, 0, n=20)), "number of columns changed"),
        (waveform_text(row(1, 0, n=20)), "header names 21 features"),
        (waveform_text(row(1, 0), "", row(1, 1)), "there are 3 lines"),
        (waveform_text(row("one", 0)), "'one'"),
        (waveform_text(row(1, 0, 16), header=row("x", "class", 16)), "has 21 features, but 16"),
        (waveform_text(row(1, "dev,0"), header=row("x", "split,class")), "'train' and 'test' only"),
    ],
)
def test_damaged_text(tmp_path, text, complaint):
    path = write(tmp_path, "waveform", text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match=complaint) as caught:
            load("waveform", data_home=tmp_path)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("damage", ["truncated", "garbled", "not gzip"])
def test_damaged_gzip(tmp_path, damage):
    path = write(tmp_path, "waveform", waveform_text(*[row(i / 7, i) for i in range(300)]))
    whole = path.read_bytes()
    damaged = {
        "truncated": whole[: len(whole) // 2],
        "garbled": whole[:60] + bytes(range(40)) + whole[100:],
        "not gzip": b"x1,class\n1,2\n",
    }
    path.write_bytes(damaged[damage])
    with pytest.raises(ValueError, match="damaged or not a data set file") as caught:
        load("waveform", data_home=tmp_path)
    assert str(path) in str(caught.value)


def test_unknown_name_lists_the_names():
    with pytest.raises(ValueError, match="unknown data set 'adult'") as caught:
        load("adult")
    assert all(name in str(caught.value) for name in datasets.names())


def test_data_home_must_be_a_folder(tmp_path):
    with pytest.raises(ValueError, match="data_home=.*nowhere.* is not a folder"):
        load("letter", data_home=tmp_path / "nowhere")


# --- OpenML --------------------------------------------------------------------------


@pytest.mark.parametrize("error", [URLError("no route to host"), ValueError("md5 mismatch")])
def test_no_file_and_no_network(tmp_path, openml, error):
    openml.answer = error
    with pytest.raises(FileNotFoundError) as caught:
        load("mnist", data_home=tmp_path)
    for part in [str(tmp_path / "mnist.csv.gz"), "MANYCLASS_DATA", "mnist_784", "554"]:
        assert part in str(caught.value)
    assert str(error) in str(caught.value)


@pytest.mark.parametrize("name", ["mnist5k", "waveform"])
def test_sets_without_a_copy_on_openml(openml, name):
    with pytest.raises(FileNotFoundError, match=f"{name}.csv.gz.*OpenML has no copy"):
        load(name)
    assert not openml.calls


def test_openml_copy_has_no_split_and_numbers(openml):
    openml.answer = bunch(csr_array(np.eye(3, 180)), ["1", "3", "2"])
    data = load("dna")
    np.testing.assert_array_equal(data.X, np.eye(3, 180))
    assert data.y.tolist() == [1, 3, 2]
    assert data.split is None and data.source == "OpenML 40670"


def test_openml_copy_is_split_by_order_only_if_it_has_the_order(openml):
    labels = list("TIDNGSBAJM") + ["A"] * 15991
    X = np.zeros((len(labels), 16))
    openml.answer = bunch(X, labels)
    split = load("letter").split
    assert (split[:16000] == "train").all() and split[16000:].tolist() == ["test"]
    openml.answer = bunch(X, labels[::-1])
    assert load("letter").split is None


def test_openml_copy_of_another_shape_is_refused(openml):
    openml.answer = bunch(np.zeros((2, 40)), ["1", "2"])
    with pytest.raises(ValueError, match="satimage has 36 features, but 40"):
        load("satimage")


# --- the real sets -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shape", "k"),
    [
        ("iris", (150, 4), 3),
        ("wine", (178, 13), 3),
        ("digits", (1797, 64), 10),
        ("breast-cancer", (569, 30), 2),
    ],
)
def test_sets_of_scikit_learn(name, shape, k):
    data = load(name)
    assert data.X.shape == shape and len(np.unique(data.y)) == k
    assert len(data.feature_names) == shape[1] and data.split is None


@pytest.mark.parametrize(
    ("name", "shape", "k", "n_train"),
    [
        ("satimage", (6435, 36), 6, 4435),
        ("segment", (2310, 19), 7, 210),
        ("letter", (20000, 16), 26, 16000),
        ("pendigits", (10992, 16), 10, 7494),
        ("soybean", (683, 35), 19, 307),
        ("dna", (3186, 180), 3, 2000),
        ("waveform", (5000, 21), 3, None),
        ("usps", (9298, 256), 10, 7291),
        ("mnist5k", (5000, 784), 10, None),
    ],
)
def test_sets_of_the_papers(shared_data, name, shape, k, n_train):
    data = shared_data(name)
    assert data.X.shape == shape and len(np.unique(data.y)) == k
    assert len(data.feature_names) == shape[1]
    assert np.isnan(data.X).sum() == (2337 if name == "soybean" else 0)
    assert (data.split is None) == (n_train is None)
    X_train, X_test, y_train, y_test = data.train_test(random_state=0)
    assert len(X_train) == len(y_train) == (n_train or shape[0] // 2)
    assert len(X_test) == len(y_test) == shape[0] - len(X_train)


def test_first_row_of_letter(shared_data):
    data = shared_data("letter")
    assert data.y[0] == "T"
    assert data.X[0].tolist() == [2, 8, 3, 5, 1, 8, 13, 0, 6, 6, 10, 8, 0, 8, 0, 8]
    assert "".join(data.y[:10]) == datasets._SOURCES["letter"].openml.first_labels
