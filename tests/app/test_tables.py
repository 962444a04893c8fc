"""Reading tables: what columns become, and what each fault of a file is called."""

from __future__ import annotations

import csv
import gzip
import io
import sys
import tracemalloc
import warnings
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from manyclass.app import columns
from manyclass.app.columns import DaysSince1970, column_transformer, conform, kinds_of
from manyclass.app.formats import open_table
from manyclass.app.tables import read_table

pa = pytest.importorskip("pyarrow")

before_3 = pytest.mark.skipif(
    int(pd.__version__.split(".")[0]) < 3, reason="before 3.0, pandas rounds the last bits"
)


@pytest.fixture
def write(tmp_path):
    """Return what writes a file and gives its path."""

    def write_file(content, name="table.csv"):
        path = tmp_path / name
        if isinstance(content, pd.DataFrame):
            content.to_parquet(path, index=False)
        elif isinstance(content, bytes):
            path.write_bytes(content)
        else:
            path.write_bytes(content.encode())
        return path

    return write_file


def read_blocks(path, *, rows=1000, numbers=(), verbatim=()):
    """Read a file block by block, as predict does."""
    file = open_table(path)
    parsed = set(numbers) - set(verbatim)
    text = [name for name in file.names if name not in parsed]
    return file.blocks(rows, text=text, verbatim=verbatim)


TABLE = (
    "size,colour,day,ok,n,class\n1.5,red,2024-01-31,true,1,b\n,blue,,FALSE,2,a\n3,,1999-12-31,,,b\n"
)

KINDS = {"size": "number", "colour": "category", "day": "date", "ok": "bool", "n": "number"}


class TestKinds:
    def test_of_a_text_file(self, write):
        X, y = read_table(write(TABLE))
        assert kinds_of(X) == KINDS
        assert_array_equal(X["size"], [1.5, np.nan, 3.0])
        assert X["colour"].tolist()[:2] == ["red", "blue"] and X["colour"].isna()[2]
        assert X["ok"].tolist()[:2] == ["True", "False"] and X["ok"].isna()[2]
        assert X["day"].dt.year.tolist()[::2] == [2024.0, 1999.0] and X["day"].isna()[1]
        assert y.tolist() == ["b", "a", "b"] and y.name == "class"

    @pytest.mark.parametrize("name", ["t.csv", "T.CSV", "t.tsv", "t.csv.gz", "t.tsv.gz"])
    def test_all_text_formats_are_the_same(self, name, write):
        text = TABLE.replace(",", "\t") if "tsv" in name else TABLE
        data = gzip.compress(text.encode()) if name.endswith(".gz") else text.encode()
        X, y = read_table(write(data, name))
        expected = read_table(write(TABLE, "expected.csv"))
        pd.testing.assert_frame_equal(X, expected[0])
        pd.testing.assert_series_equal(y, expected[1])

    def test_parquet_gives_what_text_gives(self, write):
        X, y = read_table(write(TABLE))
        again, labels = read_table(write(X.assign(**{"class": y}), "t.parquet"))
        pd.testing.assert_frame_equal(again, X)
        assert labels.tolist() == y.tolist()

    @pytest.mark.parametrize("labels", [[1e19, 1e20, 3.0], [2.0**63, -(2.0**63), 3.0]])
    def test_labels_beyond_integers_stay_apart(self, labels, write):
        frame = pd.DataFrame({"a": range(60), "y": labels * 20})
        _, y = read_table(write(frame, "t.parquet"))
        assert y.tolist() == [str(label) for label in labels] * 20

    def test_parquet_types(self, write):
        frame = pd.DataFrame(
            {
                "whole": pd.array([1, None], dtype="Int64"),
                "coded": pd.Categorical(["3", None]),
                "flag": pd.array([True, None], dtype="boolean"),
                "price": [Decimal("1.5"), None],
                "zoned": pd.to_datetime(["2024-01-01T12:00+02:00", None], utc=True),
                "date": [pd.Timestamp("2024-01-01").date(), None],
                "span": pd.to_timedelta(["1min", None]),
                "y": [0.0, 1.0],
            }
        )
        X, y = read_table(write(frame, "t.parquet"))
        kinds = ["number", "category", "bool", "number", "date", "date", "number"]
        assert list(kinds_of(X).values()) == kinds
        first = X.iloc[0].tolist()
        assert first[:4] == [1.0, "3", "True", 1.5] and first[6] == 60.0
        assert first[4] == pd.Timestamp("2024-01-01T10:00")
        assert X.iloc[1].isna().all()
        assert y.dtype == np.int64

    def test_kinds_are_the_same_when_told_again(self, write):
        X, _ = read_table(write(TABLE))
        pd.testing.assert_frame_equal(conform(X, kinds_of(X)), X)

    def test_values_without_a_kind(self):
        with pytest.raises(ValueError, match=r"column 'a' holds values of type list: only numbers"):
            kinds_of(pd.DataFrame({"a": [[1], [2]]}))

    def test_a_bundled_data_set(self):
        X, y = read_table("iris")
        assert_array_equal(X.to_numpy(), load_iris().data)
        assert y.name == "class" and set(kinds_of(X).values()) == {"number"}
        assert open_table("iris").names[-1] == "class" and open_table("iris").n_rows() == len(X)
        assert [len(block) for block in read_blocks("iris", rows=100)] == [100, 50]


class TestTarget:
    @pytest.mark.parametrize("name", ["target", "class", "label", "y"])
    def test_found_by_its_name(self, name, write):
        X, y = read_table(write(f"{name},a\nu,1\nv,2\n"))
        assert list(X.columns) == ["a"] and y.name == name

    @pytest.mark.parametrize(
        ("labels", "expected"),
        [
            (["2", "-1", "0"], [2, -1, 0]),
            (["True", "False", "True"], [True, False, True]),
            (["007", "08", "7"], ["007", "08", "7"]),
            (["1.0", "2.0", "2.50"], ["1.0", "2.0", "2.50"]),
            (["1", "x", "2"], ["1", "x", "2"]),
            (["123456789012345678901", "2", "3"], ["123456789012345678901", "2", "3"]),
        ],
    )
    def test_labels_stay_as_they_are_written(self, labels, expected, write):
        _, y = read_table(write("a,y\n" + "".join(f"1,{label}\n" for label in labels)))
        assert y.tolist() == expected
        assert [str(label) for label in y] == labels

    @given(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1),
            min_size=2,
            max_size=8,
            unique=True,
        ).filter(lambda labels: not set(labels) & set(columns.MISSING))
    )
    @settings(deadline=None, max_examples=15)
    def test_any_text_is_a_label(self, tmp_path_factory, labels):
        path = tmp_path_factory.mktemp("labels") / "t.csv"
        buffer = io.StringIO()
        writer = csv.writer(buffer, quoting=csv.QUOTE_ALL)
        writer.writerows([["x", "y"], *([place, label] for place, label in enumerate(labels))])
        path.write_bytes(buffer.getvalue().encode())
        _, y = read_table(path)
        assert [str(label) for label in y] == labels

    @pytest.mark.parametrize(
        ("text", "target", "message"),
        [
            ("a,b\n1,2\n", None, r"has none of 'target', .*with --target.* columns are 'a', 'b'"),
            ("y,label\n1,2\n", None, r"which column holds the classes\? .* has 'y', 'label'"),
            ("a,species\n1,2\n", "Specis", r"no column 'Specis' .* Did you mean 'species'\?"),
            ("a,SPECIES\n1,2\n", "species", r"Did you mean 'SPECIES'\?"),
            ("a,b\n1,2\n", "zzz", r"no column 'zzz' for the target. Its columns are 'a', 'b'"),
            ("a,y\n1,u\n2,\n3,NA\n", None, r"has 2 missing values, first in rows 2, 3: fill in"),
            ("a,y\n1,u\n2,?\n", None, r"has 1 missing value, in row 2.*'\?', 'NA'"),
            ("a,y\n1,u\n2,u\n", None, r"has one class only, 'u'"),
            ("y\nu\nv\n", None, r"has no column but the target 'y'"),
            ("a,y\n", None, r"has column names but no rows"),
        ],
    )
    def test_faults(self, text, target, message, write):
        with pytest.raises(ValueError, match=message):
            read_table(write(text), target=target)

    def test_measurements_are_no_classes(self, write):
        floats = "a,y\n" + "".join(f"{i},{i % 51 + 0.5}\n" for i in range(200))
        with pytest.raises(ValueError, match=r"looks continuous, with 51 different numbers in 200"):
            read_table(write(floats))
        few = "a,y\n" + "".join(f"{i},{i % 50 + 0.5}\n" for i in range(200))
        assert read_table(write(few))[1].nunique() == 50
        alone = "a,y\n" + "".join(f"{i},k{i}\n" for i in range(60))
        with pytest.raises(ValueError, match=r"60 classes in 60 rows.*an identifier"):
            read_table(write(alone))

    def test_of_a_bundled_data_set(self):
        with pytest.raises(ValueError, match=r"iris is a bundled data set, and its target"):
            read_table("iris", target="species")


class TestFiles:
    @pytest.mark.parametrize(
        ("content", "name", "message"),
        [
            ("", "t.csv", "t.csv is empty"),
            ("\n\n", "t.csv", "is empty, or its first line is"),
            ("a", "t.xls", r"no known kind. The name must end in \.csv, \.tsv"),
            ("a", "t.xlsx", r"damaged or not an \.xlsx file"),
            (b"PK\3\4aaaa", "t.csv", r"is a zip or Excel file: end its name in"),
            ("a,a,y\n1,2,3\n", "t.csv", "columns of the same name: 'a'. Rename"),
            ("a,y\n1,u\n1,2,v\n", "t.csv", "broken at line 3: it has 3 fields, .* 2 columns"),
            ("a,b,y\n1,2,u\n1,2\n", "t.csv", "broken at line 3: it has 2 fields, .* 3 columns"),
            ('a,y\n1,"u\n' + "x\n" * 70_000, "t.csv", "is broken: field larger.*an open quote"),
            (b"no", "t.csv.gz", "not a complete gzip file"),
            (
                gzip.compress(b"a,y\n1,2\n" * 99, mtime=0)[:-9],
                "t.csv.gz",
                "not a complete gzip file",
            ),
            (b"no", "t.parquet", "damaged or not a Parquet file"),
            ("a,y\n1,u\n-inf,v\n", "t.csv", "column 'a' is infinite in row 2: leave"),
            pytest.param(
                f"a,y\n1,u\n1{'0' * 400},v\n",
                "t.csv",
                "column 'a' is infinite in row 2: leave",
                marks=before_3,
            ),
            ("a,y\n1,u\n-1e200,v\n", "t.csv", r"'a' is -1e\+200, too large .* in row 2: leave"),
        ],
    )
    def test_faults(self, content, name, message, write):
        with pytest.raises(ValueError, match=message) as caught:
            read_table(write(content, name), target="y")
        assert "\n" not in str(caught.value)

    def test_missing(self, tmp_path):
        with pytest.raises(FileNotFoundError, match=r"there is no file .*no\.csv\.$"):
            read_table(tmp_path / "no.csv")
        with pytest.raises(FileNotFoundError, match=r"nor a data set .*did you mean iris\?"):
            read_table("irris")
        with pytest.raises(FileNotFoundError, match=r"The data sets are 'breast-cancer', 'digits'"):
            read_table("zzzz")
        with pytest.raises(ValueError, match=r"is a folder, not a file"):
            read_table(tmp_path)

    def test_marks_of_other_systems(self, write):
        X, y = read_table(write(b"\xef\xbb\xbfa,y\r\n1,u\r\n\r\n2,v\r\n"))
        assert list(X.columns) == ["a"] and y.tolist() == ["u", "v"]

    def test_row_numbers_are_no_feature(self, write):
        with pytest.warns(UserWarning, match=r"1 column without a name. Such columns"):
            X, _ = read_table(write(",a,y\n0,5,u\n1,6,v\n"))
        assert list(X.columns) == ["a"]

    def test_without_pandas(self, write, monkeypatch):
        path = write(TABLE)
        monkeypatch.setitem(sys.modules, "pandas", None)
        with pytest.raises(ImportError, match=r"run pip install 'manyclass\[app\]'"):
            read_table(path)

    def test_without_pyarrow(self, write, monkeypatch):
        path = write(pd.DataFrame({"a": [1, 2], "y": [0, 1]}), "t.parquet")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        with pytest.raises(ImportError, match=r"needs pyarrow: run pip install 'manyclass\[app\]'"):
            read_table(path)


class TestBlocks:
    @pytest.mark.parametrize("rows", [1, 2, 3, 100])
    @pytest.mark.parametrize("numbers", [(), ("size", "n")])
    @pytest.mark.parametrize("parquet", [True, False])
    def test_pieces_are_the_whole(self, parquet, numbers, rows, write):
        path = write(TABLE)
        X, y = read_table(path)
        if parquet:
            path = write(X.assign(**{"class": y}), "t.parquet")
        blocks = list(read_blocks(path, rows=rows, numbers=numbers))
        assert [len(block) for block in blocks] == [
            min(rows, 3 - first) for first in range(0, 3, rows)
        ]
        read = [conform(block, KINDS) for block in blocks]
        assert all((block.dtypes == X.dtypes).all() for block in read)
        pd.testing.assert_frame_equal(pd.concat(read, ignore_index=True), X)

    def test_types_do_not_depend_on_the_block(self, write):
        path = write("code,n\n" + "007,1\n" * 3 + "x7,1.5\n" * 3)
        blocks = list(read_blocks(path, rows=3, numbers=["n"]))
        assert [block["code"].iloc[0] for block in blocks] == ["007", "x7"]
        conformed = [conform(block, {"code": "category", "n": "number"}) for block in blocks]
        assert [block.dtypes.tolist() for block in conformed] == [[object, np.float64]] * 2

    def test_text_in_a_column_of_numbers(self, write):
        path = write("n\n" + "1\n" * 4 + "one\ntwo\n")
        block = list(read_blocks(path, rows=3, numbers=["n"]))[1]
        message = r"column 'n' must hold numbers, but row 5 has 'one' \(and so have 1 more rows\)"
        with pytest.raises(ValueError, match=message):
            conform(block, {"n": "number"}, first_row=4)
        with pytest.raises(ValueError, match=r"must hold dates, but row 1 has 'x': correct it"):
            conform(pd.DataFrame({"d": ["x"]}), {"d": "date"})
        with pytest.raises(ValueError, match=r"must hold numbers, but row 1 has 'True'"):
            conform(pd.DataFrame({"n": [True]}), {"n": "number"})

    def test_no_rows(self, write):
        (block,) = read_blocks(write("a,b\n"))
        assert list(block.columns) == ["a", "b"] and len(block) == 0

    @pytest.mark.parametrize("beside", ["", "NA", "-1", "-1.0"])
    def test_integers_beyond_signed_ones(self, beside, write):
        large = "12345678901234567890"
        table = write(f"x,y\n1,u\n{beside},v\n{large},u\n")
        number = float(beside) if beside.startswith("-") else np.nan
        X, _ = read_table(table)
        (block,) = read_blocks(table, numbers=["x"])
        for column in (X["x"], conform(block, {"x": "number"})["x"]):
            assert_array_equal(column, [1.0, number, float(large)])

    def test_text_beside_integers_beyond_signed_ones(self, write):
        X, _ = read_table(write("x,y\n1,u\n,v\nNA,u\nfew,u\n12345678901234567890,v\n"))
        assert X["x"].isna().tolist() == [False, True, True, False, False]
        assert kinds_of(X) == {"x": "category"}

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("a\n1\n\n40\n", [1, np.nan, 40]),
            ("a\r\n1\r\n\r\n40\r\n", [1, np.nan, 40]),
            ("a\n\n\n1", [np.nan, np.nan, 1]),
            ("a\n1\n\n", [1, np.nan]),
        ],
    )
    @pytest.mark.parametrize("numbers", [(), ("a",)])
    def test_an_empty_line_of_one_column_is_a_row(self, text, expected, numbers, write):
        table = write(text)
        assert open_table(table).n_rows() == len(expected)
        blocks = list(read_blocks(table, rows=2, numbers=numbers))
        read = np.concatenate([conform(block, {"a": "number"})["a"] for block in blocks])
        assert_array_equal(read, expected)

    def test_verbatim_columns_have_no_missing_values(self, write):
        (block,) = read_blocks(write("a,b\nNA,NA\n,\n"), numbers=["a"], verbatim=["a"])
        assert block["a"].tolist() == ["NA", ""] and block["b"].isna().all()

    def test_memory_is_bounded(self, write):
        path = write("a,b\n" + "0.123456789,some text\n" * 100_000)
        next(read_blocks(path, rows=1000))  # what is imported and compiled once
        tracemalloc.start()
        n = sum(len(block) for block in read_blocks(path, rows=1000))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert n == 100_000 and peak < 2e6 < path.stat().st_size

    @before_3
    @given(st.lists(st.floats(-1e150, 1e150), min_size=1, max_size=9))
    @settings(deadline=None, max_examples=15)
    def test_numbers_are_read_to_the_last_bit(self, tmp_path_factory, values):
        path = tmp_path_factory.mktemp("numbers") / "t.csv"
        path.write_text("\n".join(["a", *map(repr, values)]) + "\n")
        for numbers in ((), ("a",)):
            (block,) = read_blocks(path, numbers=numbers)
            assert conform(block, {"a": "number"})["a"].tolist() == values


class TestColumnTransformer:
    X = pd.DataFrame(
        {
            "size": [1.0, 2.0, np.nan, 5.0, 4.0, 2.0],
            "colour": ["red", "blue", "red", "blue", np.nan, "pink"],
            "day": pd.to_datetime(["2024-01-01", None, *["2024-01-03"] * 4]),
        }
    )

    def test_against_plain_loops(self):
        Z = column_transformer(self.X).fit_transform(self.X)
        size, missing = [1, 2, 2, 5, 4, 2], [0, 0, 1, 0, 0, 0]
        day, no_day = [0, 2, 2, 2, 2, 2], [0, 1, 0, 0, 0, 0]
        numbers = [
            (np.array(column) - np.mean(column)) / np.std(column)
            for column in (size, missing, day, no_day)
        ]
        # Of the categories, "pink" and missing have a single row: they share a column.
        blue, red = [0, 1, 0, 1, 0, 0], [1, 0, 1, 0, 0, 0]
        rare = [0, 0, 0, 0, 1, 1]
        np.testing.assert_allclose(Z, np.column_stack([*numbers, blue, red, rare]), atol=1e-12)

    def test_unseen_categories_count_as_rare(self):
        transformer = column_transformer(self.X).fit(self.X)
        new = self.X.iloc[[5]].assign(colour="mauve")
        assert_array_equal(transformer.transform(new), transformer.transform(self.X.iloc[[5]]))

    def test_useless_columns_are_named(self):
        n = 200
        X = pd.DataFrame(
            {
                "a": np.arange(n, dtype=float),
                "one": 1.0,
                "none": np.full(n, np.nan),
                "name": [f"n{i}" for i in range(n)],
                "half": ["x", np.nan] * (n // 2),
            }
        )
        message = (
            r"left out: 'one' \(the same value in all rows\), 'none' \(all values are missing\), "
            r"'name' \(200 different texts in 200 rows"
        )
        with pytest.warns(UserWarning, match=message):
            transformer = column_transformer(X)
        assert [names for _, _, names in transformer.transformers] == [["a"], ["half"]]
        with pytest.raises(ValueError, match=r"no column is of use: 'one'"):
            column_transformer(X[["one", "none"]])

    def test_identifiers_cost_no_memory(self):
        X = pd.DataFrame({"id": np.arange(100_000).astype(str), "a": np.arange(100_000.0)})
        X["id"] = X["id"].astype(object)
        with pytest.warns(UserWarning, match=r"'id' \(100000 different texts"):
            assert column_transformer(X).fit_transform(X).shape == (100_000, 1)

    def test_many_categories_become_few_columns(self):
        texts = [f"c{i % 300}" for i in range(3000)]
        X = pd.DataFrame({"a": texts})
        Z = column_transformer(X).fit_transform(X)
        assert Z.shape == (3000, columns.MOST_CATEGORIES)

    def test_a_column_that_is_empty_in_a_fold(self):
        transformer = column_transformer(self.X)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            clone(transformer).fit_transform(self.X.assign(size=np.nan))

    def test_names_of_features(self):
        names = column_transformer(self.X).fit(self.X).get_feature_names_out()
        assert names[0] == "numbers__size" and "dates__day" in names

    def test_days(self):
        frame = self.X[["day"]]
        days = DaysSince1970().fit(frame)
        assert days.transform(frame)[0, 0] == 19723.0
        with pytest.raises(NotFittedError):
            DaysSince1970().transform(frame)
        with pytest.raises(ValueError, match="feature names"):
            days.transform(frame.rename(columns={"day": "other"}))
