"""``manyclass fit`` and ``manyclass predict``: from table to table, and every way to go wrong."""

from __future__ import annotations

import argparse
import csv
import gc
import io
import os
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import make_blobs
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier
from threadpoolctl import threadpool_limits

from manyclass import CoupledSVC
from manyclass.app import fit as fitting
from manyclass.app import predict as predicting
from manyclass.app.cli import main
from manyclass.app.columns import MISSING, kinds_of
from manyclass.app.fit import LEARNERS, fit_file
from manyclass.app.predict import predict_file
from manyclass.app.tables import read_table
from manyclass.storage import load_model, read_metadata, save_model

pytest.importorskip("skops")

rng = np.random.RandomState(0)
X, y = make_blobs(90, n_features=2, centers=3, cluster_std=1.0, random_state=0)
FRAME = pd.DataFrame(
    {
        "id": [f"k{i:03}" for i in range(90)],
        "size": np.where(rng.rand(90) < 0.1, np.nan, X[:, 0]),
        "count": np.round(X[:, 1]).astype(int),
        "colour": np.array(["red", "blue", None])[rng.randint(3, size=90)],
        "day": [f"2024-01-{1 + i % 28:02}" for i in range(90)],
        "ok": rng.rand(90) < 0.5,
        "class": np.array(["ant", "bee", "cat"])[y],
    }
)
HEADER = "size,count,colour,day,ok"


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Small problems: threads of BLAS and OpenMP would only wait for each other."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table and a model."""
    path = tmp_path_factory.mktemp("app")
    FRAME.to_csv(path / "table.csv", index=False)
    with pytest.warns(UserWarning, match="left out: 'id'"):
        fit_file(path / "table.csv", "class", path / "model.skops", folds=0)
    return path


@pytest.fixture
def predict(folder, tmp_path):
    """Return what predicts for a table given as text, and gives back the output as rows."""

    def predict_text(text, **options):
        (tmp_path / "new.csv").write_bytes(text.encode())
        out = tmp_path / "out.csv"
        predict_file(folder / "model.skops", tmp_path / "new.csv", out, **options)
        return read_rows(out)

    return predict_text


def read_rows(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def run(module, *arguments):
    """Run a command as the command line does."""
    parser = argparse.ArgumentParser()
    module.add_arguments(parser)
    return module.run(parser.parse_args([str(argument) for argument in arguments]))


# -- fit -------------------------------------------------------------------------------


class TestFit:
    @pytest.mark.parametrize("learner", LEARNERS)
    def test_learners(self, learner, folder, tmp_path, capsys):
        data = folder / "table.csv"
        with pytest.warns(UserWarning, match="columns left out: 'id'"):
            model = fit_file(data, "class", tmp_path / "m.skops", learner=learner, folds=2)
        said = capsys.readouterr().out
        assert "90 rows; columns: 2 number, 1 category, 1 date, 1 bool; 3 classes with 30" in said
        assert f"fitted {learner}, one-vs-one, wlw2 in" in said
        assert "in 2-fold cross-validation: log-loss" in said and "alone 1.10), error" in said
        loaded = load_model(tmp_path / "m.skops")
        frame, _ = read_table(data)
        assert_array_equal(loaded.predict_proba(frame), model.predict_proba(frame))
        assert model.score(frame, FRAME["class"]) > 0.7

    def test_what_the_file_tells(self, folder):
        described = read_metadata(folder / "model.skops")
        assert described["metadata"] == {
            "kinds": {
                "size": "number",
                "count": "number",
                "colour": "category",
                "day": "date",
                "ok": "bool",
            },
            "target": "class",
            "rows": 90,
            "learner": "svm",
        }
        assert described["classes"] == ["ant", "bee", "cat"]
        assert described["features"] == ["size", "count", "colour", "day", "ok"]

    def test_the_same_again(self, tmp_path):
        options = {"code": "sparse-random", "learner": "logistic", "random_state": 3, "folds": 0}
        a, b = (fit_file("iris", None, tmp_path / name, **options) for name in ("a", "b"))
        frame, _ = read_table("iris")
        assert_array_equal(a.predict_proba(frame), b.predict_proba(frame))
        assert a[-1].combiner_.key == "kl"

    def test_labels_only(self, tmp_path, capsys):
        run(fitting, "iris", "-o", tmp_path / "m.skops", "--combiner", "max-wins")
        assert "in 5-fold cross-validation: error " in capsys.readouterr().out
        with pytest.warns(UserWarning, match="does not use: 'class'"):
            predict_file(tmp_path / "m.skops", "iris", tmp_path / "out.csv")
        rows = read_rows(tmp_path / "out.csv")
        assert rows[0] == ["label"] and rows[1] == ["setosa"] and len(rows) == 151

    def test_a_class_with_a_single_row(self, tmp_path, capsys):
        (tmp_path / "t.csv").write_text("a,y\n1,u\n2,u\n3,v\n4,v\n5,w\n")
        with pytest.warns(UserWarning, match="a single sample"):
            fit_file(tmp_path / "t.csv", None, tmp_path / "m.skops")
        assert "not cross-validated: class 'w' has a single row" in capsys.readouterr().out

    @pytest.mark.parametrize(
        ("options", "message"),
        [
            ({"learner": "forest"}, r"no learner 'forest': choose from svm, linear-svm"),
            ({"C": 0.0}, r"C must be a positive number, got 0\.0"),
            ({"C": np.nan}, r"C must be a positive number"),
            ({"learner": "boosted-naive-bayes", "C": 1.0}, r"has no C. Leave out --C"),
            ({"folds": 1}, r"folds \(--folds\) must be 0, .* got 1"),
            ({"folds": -3}, r"folds \(--folds\) must be 0, .* or at least 2, got -3"),
            ({"code": "one-vs-rest", "combiner": "wlw2"}, r"'wlw2' is defined for one-vs-one"),
        ],
    )
    def test_options(self, options, message, tmp_path):
        with pytest.raises(ValueError, match=message):
            fit_file("iris", None, tmp_path / "m.skops", **options)
        assert os.listdir(tmp_path) == []

    def test_outputs(self, tmp_path, monkeypatch):
        def never(*args, **options):
            raise AssertionError("it was to be refused before anything is read")

        monkeypatch.setattr(fitting, "read_table", never)
        (tmp_path / "there").write_text("mine")
        with pytest.raises(ValueError, match=r"there exists. .* --force"):
            fit_file("iris", None, tmp_path / "there")
        with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
            fit_file("iris", None, tmp_path / "nowhere" / "m.skops")
        with pytest.raises(ValueError, match=r"is a folder"):
            fit_file("iris", None, tmp_path)
        with pytest.raises(ValueError, match=r"there is not a folder. Choose another"):
            fit_file("iris", None, tmp_path / "there" / "m.skops")
        with pytest.raises(ValueError, match=r"there is an input. Write to another file"):
            fit_file(tmp_path / "there", None, tmp_path / "there", force=True)
        with monkeypatch.context() as patch:
            patch.setattr(os, "access", lambda *_: False)
            with pytest.raises(PermissionError, match=r"the folder .* is not writable"):
                fit_file("iris", None, tmp_path / "m.skops")
        with pytest.raises(ValueError, match=r"folds \(--folds\)"):
            fit_file("iris", None, tmp_path / "m.skops", folds=1)
        assert (tmp_path / "there").read_text() == "mine"

    def test_force(self, tmp_path, capsys):
        (tmp_path / "m.skops").write_text("old")
        arguments = ["iris", "-o", tmp_path / "m.skops", "--force", "--folds", "0", "--C", "2"]
        assert run(fitting, *arguments) == 0
        assert load_model(tmp_path / "m.skops")[-1].C == 2.0

    def test_notes_are_plain_lines(self, folder, tmp_path, capsys):
        run(fitting, folder / "table.csv", "--target", "class", "-o", tmp_path / "m.skops")
        said = capsys.readouterr().err.splitlines()
        assert len(said) == 1 and said[0].startswith("note: columns left out: 'id' (90 different")


# -- predict ---------------------------------------------------------------------------


class TestPredict:
    @pytest.mark.parametrize("rows", [7, 45, 50_000])
    def test_what_the_model_says(self, rows, folder, tmp_path):
        with pytest.warns(UserWarning, match=r"does not use: 'class'\."):
            n = predict_file(
                folder / "model.skops",
                folder / "table.csv",
                tmp_path / "out.csv",
                block_rows=rows,
                id_column="id",
            )
        header, *lines = read_rows(tmp_path / "out.csv")
        assert n == 90 and len(lines) == 90
        assert header == ["id", "label", "p_ant", "p_bee", "p_cat", "incoherence"]
        assert [line[0] for line in lines] == FRAME["id"].tolist()
        model = load_model(folder / "model.skops")
        frame, _ = read_table(folder / "table.csv")
        p = model.predict_proba(frame[list(model.feature_names_in_)])
        written = np.array([line[2:5] for line in lines], dtype=float)
        assert_allclose(written, p, rtol=1e-12)
        assert [line[1] for line in lines] == model.predict(frame).tolist()
        incoherence = model[-1].incoherence(model[:-1].transform(frame))
        assert_allclose([float(line[5]) for line in lines], incoherence, rtol=1e-9, atol=1e-15)
        if rows >= 90:
            assert_array_equal(written, p)  # text holds every bit

    def test_all_formats_are_the_same(self, folder, tmp_path):
        pytest.importorskip("pyarrow")
        FRAME.to_parquet(tmp_path / "table.parquet", index=False)
        outputs = []
        for source, name in [
            (folder / "table.csv", "a.csv"),
            (tmp_path / "table.parquet", "b.tsv"),
            (folder / "table.csv", "c.parquet"),
            (tmp_path / "table.parquet", "d.parquet"),
        ]:
            with pytest.warns(UserWarning, match="does not use"):
                predict_file(
                    folder / "model.skops", source, tmp_path / name, block_rows=40, id_column="id"
                )
            if name.endswith(".parquet"):
                outputs.append(pd.read_parquet(tmp_path / name))
            else:
                separator = "\t" if name.endswith(".tsv") else ","
                outputs.append(pd.read_csv(tmp_path / name, sep=separator, dtype={"id": str}))
        for other in outputs[1:]:
            pd.testing.assert_frame_equal(outputs[0], other, check_dtype=False, check_exact=True)

    def test_ids_with_gaps(self, folder, tmp_path):
        pytest.importorskip("pyarrow")
        frame = FRAME[:4].assign(id=pd.array([None, None, 3, None], dtype="Int64"))
        frame.to_parquet(tmp_path / "new.parquet", index=False)
        for name in ("out.csv", "out.parquet"):
            with pytest.warns(UserWarning, match="does not use"):
                predict_file(
                    folder / "model.skops",
                    tmp_path / "new.parquet",
                    tmp_path / name,
                    block_rows=2,
                    id_column="id",
                )
        assert [row[0] for row in read_rows(tmp_path / "out.csv")[1:]] == ["", "", "3.0", ""]
        assert pd.read_parquet(tmp_path / "out.parquet")["id"].isna().sum() == 3

    def test_columns_in_any_order_and_more(self, predict):
        plain = predict(f"{HEADER}\n1.5,2,red,2024-01-05,true\n")
        with pytest.warns(UserWarning, match=r"does not use: 'extra', 'Unnamed: 6'\."):
            other = predict("extra,ok,day,colour,count,size,\nx,TRUE,2024-01-05,red,2,1.5,7\n")
        assert plain == other

    def test_ids_stay_as_they_are_written(self, predict):
        rows = predict(f"{HEADER},no\n" + "1,2,red,,,007\n1,2,red,,,\n", id_column="no")
        assert [row[0] for row in rows] == ["no", "007", ""]
        rows = predict(
            f"{HEADER},no\n" + "".join(f"1,2,red,,,{name}\n" for name in MISSING), id_column="no"
        )
        assert [row[0] for row in rows[1:]] == list(MISSING)

    def test_an_id_may_be_a_feature(self, predict):
        text = f"{HEADER}\n1,2,red,,true\n,3,NA,,true\n"
        for column, expected in (("colour", ["red", "NA"]), ("size", ["1", ""])):
            rows = predict(text, id_column=column)
            assert [row[0] for row in rows[1:]] == expected
            assert [row[1:] for row in rows] == predict(text)

    def test_missing_values(self, predict):
        _, line = predict(f"{HEADER}\n,,,,\n")
        assert float(line[1]) + float(line[2]) + float(line[3]) == pytest.approx(1.0)

    def test_types_come_from_the_model(self, predict):
        """A block of one row each: whole numbers, fractions, texts that look like numbers."""
        text = f"{HEADER}\n1,2,7,2024-01-05,true\n1.0,2.0,red,2024-01-05,True\n"
        with pytest.warns(UserWarning, match=r"not seen: 'colour' in 1 rows \(such as '7'\)"):
            rows = predict(text, block_rows=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            again = predict(text)
        assert [row[0] for row in again] == [row[0] for row in rows]
        numbers = [np.array([row[1:] for row in some[1:]], dtype=float) for some in (again, rows)]
        assert_allclose(*numbers, rtol=1e-9)

    def test_unseen_categories_are_counted(self, predict):
        text = f"{HEADER}\n" + "1,2,mauve,2024-01-05,perhaps\n" * 3 + "1,2,,2024-01-05,true\n"
        message = r"'colour' in 3 rows \(such as 'mauve'\), 'ok' in 3 rows \(such as 'perhaps'\)"
        with pytest.warns(UserWarning, match=message):
            predict(text, block_rows=2)

    def test_no_rows(self, predict, folder, tmp_path):
        assert predict(f"{HEADER}\n") == [["label", "p_ant", "p_bee", "p_cat", "incoherence"]]
        pytest.importorskip("pyarrow")
        predict_file(folder / "model.skops", tmp_path / "new.csv", tmp_path / "out.parquet")
        empty = pd.read_parquet(tmp_path / "out.parquet")
        assert len(empty) == 0 and empty["p_ant"].dtype == np.float64

    @pytest.mark.parametrize(
        ("text", "options", "message"),
        [
            ("", {}, r"new\.csv is empty"),
            (f"{HEADER}\n1,2\n", {}, r"broken at line 2"),
            (
                "Size,count,colour,day,ok\n",
                {},
                r"lacks columns of the model: 'size' \(should 'Size' be 'size'\?\)",
            ),
            ("size,ok\n1,2\n", {}, r"lacks columns of the model: 'count', 'colour', 'day'\."),
            (
                f"{HEADER}\n1,2,red,,\none,2,red,,\n",
                {},
                r"'size' must hold numbers, but row 2 has",
            ),
            (
                f"{HEADER}\n1,2,red,1.2.24,\n",
                {},
                r"'day' must hold dates, but row 1 has '1\.2\.24'",
            ),
            (
                f"{HEADER}\n",
                {"id_column": "sise"},
                r"lacks the --id column: 'sise' \(should",
            ),
            (
                f"{HEADER},label\n",
                {"id_column": "label"},
                "are both called 'label'",
            ),
            (f"{HEADER}\n", {"block_rows": 0}, r"\(--block-rows\) must be at least 1, got 0"),
        ],
    )
    def test_faults(self, text, options, message, predict, tmp_path):
        (tmp_path / "out.csv").write_text("what was there")
        with pytest.raises(ValueError, match=message):
            predict(text, **options)
        assert (tmp_path / "out.csv").read_text() == "what was there"
        assert sorted(os.listdir(tmp_path)) == ["new.csv", "out.csv"]

    def test_a_fault_in_a_later_block_leaves_nothing(self, predict, tmp_path):
        text = f"{HEADER}\n" + "1,2,red,,true\n" * 5 + "one,2,red,,true\n"
        with pytest.raises(ValueError, match=r"row 6 has 'one'"):
            predict(text, block_rows=2)
        assert os.listdir(tmp_path) == ["new.csv"]

    @pytest.mark.filterwarnings("always::ResourceWarning")
    def test_a_fault_leaves_no_file_open(self, predict, recwarn):
        text = f"{HEADER}\n" + "1,2,red,,true\n" * 5 + "inf,2,red,,true\n" * 5
        with pytest.raises(ValueError, match="infinite in row 6"):
            predict(text, block_rows=2)
        gc.collect()
        assert not [w for w in recwarn if issubclass(w.category, ResourceWarning)]

    def test_an_interrupt_leaves_nothing(self, predict, tmp_path, monkeypatch):
        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(predicting, "_predict", interrupt)
        with pytest.raises(KeyboardInterrupt):
            predict(f"{HEADER}\n1,2,red,,true\n")
        assert os.listdir(tmp_path) == ["new.csv"]

    def test_files(self, folder, tmp_path):
        model, data = folder / "model.skops", folder / "table.csv"
        with pytest.raises(ValueError, match=r"must end in \.csv, \.tsv or \.parquet, or be -"):
            predict_file(model, data, tmp_path / "out.txt")
        with pytest.raises(FileNotFoundError, match="there is no folder"):
            predict_file(model, data, tmp_path / "nowhere" / "out.csv")
        with pytest.raises(ValueError, match="is an input"):
            predict_file(model, data, data)
        with pytest.raises(FileNotFoundError, match="there is no file"):
            predict_file(model, tmp_path / "no.csv", tmp_path / "out.csv")
        with pytest.raises(ValueError, match="is not a stored model"):
            predict_file(data, data, tmp_path / "out.csv")

    def test_models_without_a_schema(self, folder, tmp_path):
        frame = FRAME[["count"]].astype(float)
        model = CoupledSVC(cv=3).fit(frame, FRAME["class"])
        save_model(model, tmp_path / "m.skops")
        with pytest.raises(ValueError, match=r"does not say what its columns hold"):
            predict_file(tmp_path / "m.skops", folder / "table.csv", tmp_path / "out.csv")
        for estimator in (model, make_pipeline(StandardScaler(), CoupledSVC(cv=3))):
            estimator.fit(frame, FRAME["class"])
            save_model(estimator, tmp_path / "m.skops", metadata={"kinds": kinds_of(frame)})
            with pytest.warns(UserWarning, match="does not use"):
                predict_file(tmp_path / "m.skops", folder / "table.csv", tmp_path / "out.csv")
            written = [float(row[1]) for row in read_rows(tmp_path / "out.csv")[1:]]
            assert_array_equal(written, estimator.predict_proba(frame)[:, 0])


class TestLabels:
    @pytest.mark.parametrize(
        "labels",
        [
            ["a,b", 'say "so"', "two\nlines", "=cmd()", "\rback", " lead", "ü€𝔘", "a\tb"],
            [0, 1, -7],
            [True, False],
            ["007", "7", "1.50"],
        ],
    )
    @pytest.mark.parametrize("suffix", [".csv", ".tsv"])
    def test_any_label_comes_back_as_text(self, suffix, labels, tmp_path):
        rows = [(float(k), label) for k, label in enumerate(labels) for _ in range(4)]
        with open(tmp_path / "t.csv", "w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=csv.QUOTE_ALL).writerows([("a", "class"), *rows])
        fit_file(tmp_path / "t.csv", None, tmp_path / "m.skops", folds=0, C=100.0)
        with pytest.warns(UserWarning, match="does not use: 'class'"):
            predict_file(tmp_path / "m.skops", tmp_path / "t.csv", tmp_path / f"out{suffix}")
        separator = "," if suffix == ".csv" else "\t"
        out = pd.read_csv(tmp_path / f"out{suffix}", dtype={"label": str}, sep=separator)
        assert set(out["label"]) <= {str(label) for label in labels}
        assert set(out.columns[1:-1]) == {f"p_{label}" for label in labels}
        p = out.iloc[:, 1:-1].to_numpy()
        assert [f"p_{label}" for label in out["label"]] == out.columns[1:-1][p.argmax(1)].tolist()
        assert_allclose(p.sum(axis=1), 1.0)


class TestCommandLine:
    def test_file(self, folder, tmp_path, capsys):
        out = tmp_path / "out.csv"
        arguments = [folder / "model.skops", folder / "table.csv", "-o", out, "--id", "id"]
        assert run(predicting, *arguments) == 0
        said = capsys.readouterr()
        assert said.out == "" and said.err.splitlines() == [
            "note: columns that the model does not use: 'class'.",
            f"wrote 90 rows to {out}",
        ]

    def test_stdout(self, folder, capsys):
        assert run(predicting, folder / "model.skops", folder / "table.csv", "-o", "-") == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "label,p_ant,p_bee,p_cat,incoherence" and len(lines) == 91

    def test_a_reader_that_leaves(self, folder, monkeypatch):
        read_end, write_end = os.pipe()
        os.close(read_end)
        with os.fdopen(write_end, "w") as pipe:
            monkeypatch.setattr(sys, "stdout", pipe)
            model, table = str(folder / "model.skops"), str(folder / "table.csv")
            assert main(["predict", model, table, "-o", "-"]) == 0

    def test_a_bar_on_a_terminal(self, folder, tmp_path, monkeypatch):
        pytest.importorskip("rich")

        class Terminal(io.StringIO):
            def isatty(self):
                return True

        monkeypatch.setattr(sys, "stderr", Terminal())
        monkeypatch.setenv("TERM", "xterm")
        run(predicting, folder / "model.skops", folder / "table.csv", "-o", tmp_path / "o.csv")
        assert "predicting" in sys.stderr.getvalue()

    def test_types_that_are_not_trusted(self, folder, tmp_path):
        """The decision trees of scikit-learn need permission."""
        name, path = "sklearn.tree._tree.Tree", tmp_path / "tree.skops"
        model, metadata = load_model(folder / "model.skops"), read_metadata(folder / "model.skops")
        table, labels = read_table(folder / "table.csv", target="class")
        features = model[:-1].transform(table.drop(columns="id"))
        model.steps[-1] = ("tree", DecisionTreeClassifier().fit(features, labels))
        with pytest.warns(UserWarning, match=f"unless you trust {name}"):
            save_model(model, path, metadata=metadata["metadata"])
        arguments = [path, folder / "table.csv", "-o", tmp_path / "out.csv"]
        with pytest.raises(ValueError, match=rf"not trusted: {name}\. .*--trust"):
            run(predicting, *arguments)
        assert run(predicting, *arguments, "--trust", name) == 0
