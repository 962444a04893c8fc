"""``manyclass fit`` and ``manyclass predict``: from table to table, and every way to go wrong."""

from __future__ import annotations

import contextlib
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
from manyclass.app.arguments import parser
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
    words = [module.__name__.rpartition(".")[2], *map(str, arguments)]
    return module.run(parser("0").parse_args(words))


# -- fit -------------------------------------------------------------------------------


class TestFit:
    @pytest.mark.parametrize("learner", LEARNERS)
    def test_learners(self, learner, folder, tmp_path, capsys):
        data = folder / "table.csv"
        with pytest.warns(UserWarning, match="columns left out: 'id'"):
            model = fit_file(data, "class", tmp_path / "m.skops", learner=learner, folds=2)
        said = capsys.readouterr().out
        assert (
            "90 rows; columns: numbers (2), categories (1), dates (1), yes or no (1); "
            "3 classes with 30 rows each" in said
        )
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
            "learner": "svm, one-vs-one",
            "dates": {},
            "missing": {},
        }
        assert described["classes"] == ["ant", "bee", "cat"]
        assert described["features"] == ["size", "count", "colour", "day", "ok"]

    def test_the_same_again(self, tmp_path):
        options = {"code": "sparse-random", "learner": "logistic", "random_state": 3, "folds": 0}
        a, b = (fit_file("iris", None, tmp_path / name, **options) for name in ("a", "b"))
        frame, _ = read_table("iris")
        assert_array_equal(a.predict_proba(frame), b.predict_proba(frame))
        assert a[-1].combiner_.key in ("kl", "tree-product")  # a small code may be a tree

    def test_labels_only(self, tmp_path, capsys):
        run(fitting, "iris", "-o", tmp_path / "m.skops", "--combiner", "max-wins")
        assert "in 5-fold cross-validation: error " in capsys.readouterr().out
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

        monkeypatch.setattr(fitting, "read", never)
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
        n = predict_file(
            folder / "model.skops",
            folder / "table.csv",
            tmp_path / "out.csv",
            block_rows=rows,
            id_columns=["id"],
        )
        header, *lines = read_rows(tmp_path / "out.csv")
        assert n == 90 and len(lines) == 90
        assert header == ["id", "label", "confidence", "p_ant", "p_bee", "p_cat", "incoherence"]
        assert [line[0] for line in lines] == FRAME["id"].tolist()
        model = load_model(folder / "model.skops")
        frame, _ = read_table(folder / "table.csv")
        p = model.predict_proba(frame[list(model.feature_names_in_)])
        written = np.array([line[3:6] for line in lines], dtype=float)
        assert_array_equal([float(line[2]) for line in lines], written.max(axis=1))
        assert_allclose(written, p, rtol=1e-12)
        assert [line[1] for line in lines] == model.predict(frame).tolist()
        incoherence = model[-1].incoherence(model[:-1].transform(frame))
        assert_allclose([float(line[6]) for line in lines], incoherence, rtol=1e-9, atol=1e-15)
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
            predict_file(
                folder / "model.skops", source, tmp_path / name, block_rows=40, id_columns=["id"]
            )
            if name.endswith(".parquet"):
                outputs.append(pd.read_parquet(tmp_path / name))
            else:
                separator = "\t" if name.endswith(".tsv") else ","
                outputs.append(pd.read_csv(tmp_path / name, sep=separator, dtype={"id": str}))
        # Before 3.0, pandas rounds the last bits of texts.
        exact = int(pd.__version__.split(".")[0]) >= 3
        options = {"check_exact": True} if exact else {"rtol": 1e-12}
        for other in outputs[1:]:
            pd.testing.assert_frame_equal(outputs[0], other, check_dtype=False, **options)

    def test_ids_with_gaps(self, folder, tmp_path):
        pytest.importorskip("pyarrow")
        frame = FRAME[:4].assign(id=pd.array([None, None, 3, None], dtype="Int64"))
        frame.to_parquet(tmp_path / "new.parquet", index=False)
        for name in ("out.csv", "out.parquet"):
            predict_file(
                folder / "model.skops",
                tmp_path / "new.parquet",
                tmp_path / name,
                block_rows=2,
                id_columns=["id"],
            )
        assert [row[0] for row in read_rows(tmp_path / "out.csv")[1:]] == ["", "", "3.0", ""]
        assert pd.read_parquet(tmp_path / "out.parquet")["id"].isna().sum() == 3

    def test_columns_in_any_order_and_more(self, predict):
        plain = predict(f"{HEADER}\n1.5,2,red,2024-01-05,true\n")
        with pytest.warns(UserWarning, match=r"does not use: 'extra', 'Unnamed: 6'\."):
            other = predict("extra,ok,day,colour,count,size,\nx,TRUE,2024-01-05,red,2,1.5,7\n")
        assert plain == other

    def test_ids_stay_as_they_are_written(self, predict):
        rows = predict(f"{HEADER},no\n" + "1,2,red,,,007\n1,2,red,,,\n", id_columns=["no"])
        assert [row[0] for row in rows] == ["no", "007", ""]
        rows = predict(
            f"{HEADER},no\n" + "".join(f"1,2,red,,,{name}\n" for name in MISSING), id_columns=["no"]
        )
        assert [row[0] for row in rows[1:]] == list(MISSING)

    def test_an_id_may_be_a_feature(self, predict):
        text = f"{HEADER}\n1,2,red,,true\n,3,NA,,true\n"
        for column, expected in (("colour", ["red", "NA"]), ("size", ["1", ""])):
            rows = predict(text, id_columns=[column])
            assert [row[0] for row in rows[1:]] == expected
            assert [row[1:] for row in rows] == predict(text)

    def test_missing_values(self, predict):
        _, line = predict(f"{HEADER}\n,,,,\n")
        assert float(line[2]) + float(line[3]) + float(line[4]) == pytest.approx(1.0)

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
        assert predict(f"{HEADER}\n") == [
            ["label", "confidence", "p_ant", "p_bee", "p_cat", "incoherence"]
        ]
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
                r"lacks columns of the model: 'size' \(did you mean 'Size'\?\)",
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
                {"id_columns": ["sise"]},
                r"lacks the --id column: 'sise' \(did you mean",
            ),
            (
                f"{HEADER},label\n",
                {"id_columns": ["label"]},
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

        monkeypatch.setattr(predicting._Answer, "__call__", interrupt)
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
            written = [float(row[2]) for row in read_rows(tmp_path / "out.csv")[1:]]
            assert_array_equal(written, estimator.predict_proba(frame)[:, 0])


class TestJoining:
    def test_all_columns_can_be_kept(self, folder, tmp_path):
        predict_file(
            folder / "model.skops", folder / "table.csv", tmp_path / "o.csv", keep_all=True
        )
        out = pd.read_csv(tmp_path / "o.csv", dtype=str, keep_default_na=False)
        before = pd.read_csv(folder / "table.csv", dtype=str, keep_default_na=False)
        pd.testing.assert_frame_equal(out[before.columns], before)
        assert list(out.columns[7:10]) == ["label", "confidence", "p_ant"]

    def test_several_ids(self, folder, tmp_path):
        run(predicting, folder / "model.skops", folder / "table.csv", "-o", tmp_path / "o.csv",
            "--id", "id", "--id", "day")  # fmt: skip
        assert read_rows(tmp_path / "o.csv")[0][:3] == ["id", "day", "label"]

    def test_top(self, folder, tmp_path):
        predict_file(folder / "model.skops", folder / "table.csv", tmp_path / "o.csv", top=2)
        predict_file(folder / "model.skops", folder / "table.csv", tmp_path / "all.csv")
        out, full = (pd.read_csv(tmp_path / name) for name in ("o.csv", "all.csv"))
        names = ["label", "confidence", "label_1", "p_1", "label_2", "p_2", "incoherence"]
        assert list(out.columns) == names
        p = full[["p_ant", "p_bee", "p_cat"]].to_numpy()
        assert_array_equal(out["p_2"], np.sort(p, axis=1)[:, 1])
        assert (out["label"] == out["label_1"]).all() and (out["p_1"] >= out["p_2"]).all()
        with pytest.raises(ValueError, match="--top must be at least 1 .* has 3 classes"):
            predict_file(folder / "model.skops", folder / "table.csv", tmp_path / "x.csv", top=4)

    def test_scores_are_those_of_the_rows_with_a_class(self, predict, capsys):
        predict(f"{HEADER},class\n1,2,red,,,ant\n1,2,red,,,\n1,2,red,,,wolf\n")
        err = capsys.readouterr().err
        assert "on 1 row with 'class': log-loss" in err and "2 rows without a class of" in err

    def test_candidates_of_the_leaderboard(self, folder, tmp_path, capsys):
        out = tmp_path / "m.skops"
        words = [folder / "table.csv", "-o", out, "--candidate", "logistic", "--folds", "0"]
        assert run(fitting, *words) == 0
        assert "fitted logistic in" in capsys.readouterr().out
        assert type(load_model(out)[-1]).__name__ == "LogisticRegression"
        with pytest.raises(ValueError, match="--candidate stands alone: leave out --C"):
            run(fitting, *words, "--force", "--C", "1")

    def test_many_classes_get_class_trees(self, tmp_path, capsys):
        centres = np.random.RandomState(0).randn(50, 6)
        rows = np.repeat(centres, 4, axis=0) + 0.1 * np.random.RandomState(1).randn(200, 6)
        frame = pd.DataFrame(rows, columns=list("abcdef"))
        frame.assign(y=[f"c{i}" for i in np.arange(200) // 4]).to_csv(
            tmp_path / "t.csv", index=False
        )
        model = fit_file(tmp_path / "t.csv", None, tmp_path / "m.skops", folds=0)
        out, err = capsys.readouterr()
        assert "fitted logistic, class-trees" in out
        assert "note: class trees: for " in err and "models each, one-vs-one 1," in err
        assert model.score(frame, [f"c{i}" for i in np.arange(200) // 4]) > 0.9

    def test_the_model_is_there_before_it_is_validated(self, tmp_path, monkeypatch, capsys):
        def interrupt(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(fitting, "_scores_line", interrupt)
        assert main(["fit", "iris", "-o", str(tmp_path / "m.skops")]) == 130
        assert f"interrupted; the model is in {tmp_path / 'm.skops'}" in capsys.readouterr().err
        assert load_model(tmp_path / "m.skops").classes_.tolist()[0] == "setosa"

    def test_rows_to_test_on(self, tmp_path, capsys):
        frame = FRAME.assign(part=np.where(np.arange(90) % 3 == 0, "test", "train"))
        frame.drop(columns="id").to_csv(tmp_path / "t.csv", index=False)
        words = [tmp_path / "t.csv", "-o", tmp_path / "m.skops", "--split-column", "part"]
        assert run(fitting, *words) == 0
        assert "on 30 test rows: log-loss" in capsys.readouterr().out

    def test_stray_tokens_and_dates_are_read_the_same_later(self, tmp_path):
        values = FRAME["size"].round(2).astype(object)
        values[5] = "unknown"
        days = [f"{1 + i % 28:02}/11/2023" for i in range(90)]
        frame = FRAME.assign(size=values, day=days).drop(columns="id")
        frame.to_csv(tmp_path / "t.csv", index=False, sep=";", decimal=",")
        with pytest.warns(UserWarning, match="'size' holds numbers and 'unknown'"):
            fit_file(tmp_path / "t.csv", None, tmp_path / "m.skops", folds=0)
        (tmp_path / "n.csv").write_text(f"{HEADER}\nunknown,1,red,02/03/2024,true\n")
        predict_file(tmp_path / "m.skops", tmp_path / "n.csv", tmp_path / "o.csv")
        (tmp_path / "n.csv").write_text(f"{HEADER}\n,1,red,2024-03-02,true\n")
        predict_file(tmp_path / "m.skops", tmp_path / "n.csv", tmp_path / "p.csv")
        assert read_rows(tmp_path / "o.csv") == read_rows(tmp_path / "p.csv")


class TestFormulas:
    @pytest.mark.parametrize("raw", [False, True])
    def test_spreadsheets_run_nothing(self, raw, tmp_path):
        labels = ["=cmd|' /C calc'!A0", "@SUM(1)", "+x", "\nx", "\uff1dx", "-5"]
        rows = [(float(k), label) for k, label in enumerate(labels) for _ in range(4)]
        with open(tmp_path / "t.csv", "w", newline="") as file:
            csv.writer(file).writerows([("a", "class"), *rows])
        fit_file(tmp_path / "t.csv", None, tmp_path / "m.skops", folds=0, C=100.0)
        out = tmp_path / "o.csv"
        predict_file(tmp_path / "m.skops", tmp_path / "t.csv", out, raw=raw, id_columns=["class"])
        written = {row[0] for row in read_rows(out)[1:]}
        assert written == (set(labels) if raw else {f"'{x}" for x in labels[:-1]} | {"-5"})


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
        predict_file(tmp_path / "m.skops", tmp_path / "t.csv", tmp_path / f"out{suffix}", raw=True)
        separator = "," if suffix == ".csv" else "\t"
        out = pd.read_csv(tmp_path / f"out{suffix}", dtype={"label": str}, sep=separator)
        assert set(out["label"]) <= {str(label) for label in labels}
        assert set(out.columns[2:-1]) == {f"p_{label}" for label in labels}
        p = out.iloc[:, 2:-1].to_numpy()
        assert [f"p_{label}" for label in out["label"]] == out.columns[2:-1][p.argmax(1)].tolist()
        assert_allclose(p.sum(axis=1), 1.0)


class TestCommandLine:
    def test_file(self, folder, tmp_path, capsys):
        out = tmp_path / "out.csv"
        arguments = [folder / "model.skops", folder / "table.csv", "-o", out, "--id", "id"]
        assert run(predicting, *arguments) == 0
        said = capsys.readouterr()
        assert said.out == "" and len(said.err.splitlines()) == 2
        assert said.err.startswith("on 90 rows with 'class': log-loss 0.")
        assert said.err.endswith(f"wrote 90 rows to {out}\n")

    def test_stdout(self, folder, capsys):
        assert run(predicting, folder / "model.skops", folder / "table.csv", "-o", "-") == 0
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "label,confidence,p_ant,p_bee,p_cat,incoherence" and len(lines) == 91

    def test_a_reader_that_leaves(self, folder, monkeypatch):
        read_end, write_end = os.pipe()
        os.close(read_end)
        pipe = os.fdopen(write_end, "w")
        monkeypatch.setattr(sys, "stdout", pipe)
        model, table = str(folder / "model.skops"), str(folder / "table.csv")
        assert main(["predict", model, table, "-o", "-"]) == 0
        with contextlib.suppress(BrokenPipeError):  # Python 3.14 still has what nobody read
            pipe.close()

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
