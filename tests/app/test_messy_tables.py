"""Tables as people have them: every kind of file is read, and what is odd is named."""

from __future__ import annotations

import gc
import gzip
import io
import subprocess
import sys
import tracemalloc
import warnings
import zipfile
from time import process_time

import numpy as np
import pytest

pd = pytest.importorskip("pandas")

from manyclass.app import dialect  # noqa: E402
from manyclass.app.cli import main  # noqa: E402
from manyclass.app.columns import conform, layout_of, used_columns  # noqa: E402
from manyclass.app.formats import open_table  # noqa: E402
from manyclass.app.inputs import as_frame, find_folds  # noqa: E402
from manyclass.app.streams import _standard_input  # noqa: E402
from manyclass.app.suspicious_columns import leaks  # noqa: E402
from manyclass.app.table_options import Choices  # noqa: E402
from manyclass.app.tables import read, read_table  # noqa: E402

rng = np.random.RandomState(0)
N = 60
LABELS = np.array(["Äpfel", "Birnen", "Kirschen"])[np.arange(N) % 3]
FRAME = pd.DataFrame(
    {
        "Größe": np.round(rng.randn(N) + np.arange(N) % 3, 3),
        "n": rng.randint(0, 9, N),
        "Farbe": np.array(["rot", "grün"])[rng.randint(0, 2, N)],
        "class": LABELS,
    }
)


def text(sep=",", decimal=".", frame=FRAME) -> str:
    return frame.to_csv(index=False, sep=sep, decimal=decimal)


def excel() -> bytes:
    pytest.importorskip("openpyxl")
    buffer = io.BytesIO()
    FRAME.to_excel(buffer, index=False)
    return buffer.getvalue()


def feather() -> bytes:
    pytest.importorskip("pyarrow")
    buffer = io.BytesIO()
    FRAME.to_feather(buffer)
    return buffer.getvalue()


def zipped(*members: tuple[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members:
            archive.writestr(name, content)
    return buffer.getvalue()


FILES = {
    "plain.csv": lambda: text().encode(),
    "semicolon.csv": lambda: text(";").encode(),
    "german.csv": lambda: text(";", ",").encode("cp1252"),
    "tab.csv": lambda: text("\t").encode(),
    "tab.tsv": lambda: text("\t", ",").encode(),
    "comma.tsv": lambda: text().encode(),
    "pipe.txt": lambda: text("|").encode(),
    "mark.csv": lambda: text().encode("utf-8-sig"),
    "wide.csv": lambda: text(";", ",").encode("utf-16"),
    "wide-little.csv": lambda: text().encode("utf-16-le"),
    "wide-big.csv": lambda: text().encode("utf-16-be"),
    "latin.csv": lambda: text().encode("latin-1"),
    "mac.csv": lambda: text().replace("\n", "\r\n").encode(),
    "packed.csv.gz": lambda: gzip.compress(text(";", ",").encode()),
    "one.zip": lambda: zipped(("a/t.csv", text(";").encode()), ("__MACOSX/x", b""), ("r.md", b"")),
    "sheet.xlsx": excel,
    "arrow.feather": feather,
}


@pytest.mark.parametrize("name", FILES)
@pytest.mark.filterwarnings("ignore:.*is not in UTF-8")
def test_every_usual_file_is_the_same_table(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(FILES[name]())
    X, y = read_table(path)
    assert list(X.columns) == ["Größe", "n", "Farbe"] and y.tolist() == LABELS.tolist()
    np.testing.assert_allclose(X["Größe"], FRAME["Größe"])
    assert X["n"].tolist() == FRAME["n"].tolist() and X["Farbe"].tolist() == list(FRAME["Farbe"])


def test_the_user_may_insist(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes("a;b,y\n1;2,u\n3;4,v\n".encode("utf-16-le"))
    X, _ = read_table(path, target="b,y", sep=";", encoding="utf-16-le")
    assert list(X.columns) == ["a"]
    path.write_text("a;y\n1,5;u\n2,5;v\n")
    X, _ = read_table(path, decimal=".")
    assert X["a"].tolist() == ["1,5", "2,5"]
    for options, message in [
        ({"sep": ";;"}, "--sep must be one character"),
        ({"encoding": "nothing"}, "--encoding: unknown encoding"),
        ({"encoding": "utf-16"}, "(?i)utf-16"),  # the case depends on the version of Python
        ({"drop": ("z",)}, "--drop: .* has no column 'z'"),
        ({"numeric": ("y",)}, "--numeric: 'y' is the target"),
        ({"numeric": ("a",), "categorical": ("a",)}, "cannot be --categorical and --numeric"),
    ]:
        with pytest.raises(ValueError, match=message):
            read_table(path, **options)


@pytest.mark.parametrize(
    ("fields", "sep", "numbers"),
    [
        (["1.234,5", "12,25", "7"], ";", [1234.5, 12.25, 7]),
        (['"1,234.5"', '"12,000"', "7"], ",", [1234.5, 12000, 7]),
        (["1,5", "unknown", "2,5"], ";", [1.5, np.nan, 2.5]),
        (["1e-3", "2E5", "-.5"], ",", [1e-3, 2e5, -0.5]),
        (["55%", "5 %", "-1.5%"], ",", [55, 5, -1.5]),
        (['"$1,234.50"', "-$12", "$.5"], ",", [1234.5, -12, 0.5]),
        (["1.234,50 €", "12,00 €", "unknown"], ";", [1234.5, 12, np.nan]),
        (["USD 3", "NA", "USD 4.5"], ",", [3, np.nan, 4.5]),
    ],
)
@pytest.mark.filterwarnings("ignore:column 'a'")
def test_marks_in_numbers(fields, sep, numbers, tmp_path):
    path = tmp_path / "t.csv"
    path.write_text(f"a{sep}y\n" + "".join(f"{field}{sep}{i}\n" for i, field in enumerate(fields)))
    np.testing.assert_array_equal(read_table(path)[0]["a"], numbers)


@pytest.mark.parametrize("fields", ["5% 7% big big", "$5 7€ $8 $9", "5% 7 8% 9%"])
def test_signs_that_differ_stay_as_they_are(fields, tmp_path):
    values = np.array(fields.split(), dtype=object)[np.arange(N) % 4]
    read_again = read_table(write(tmp_path, FRAME.assign(a=values)))[0]
    assert read_again["a"].tolist() == values.tolist()


def test_a_sign_that_is_left_out_is_named(tmp_path):
    path = write(tmp_path, FRAME.assign(a=[f"{i % 30} %" for i in range(N)]))
    with pytest.warns(UserWarning, match="column 'a' is read as numbers, without %. --categorical"):
        assert read_table(path)[0]["a"][31] == 1
    assert read_table(path, categorical=["a"])[0]["a"][31] == "1 %"


def test_numbers_among_categories_are_the_same_later(tmp_path, capsys):
    values = np.array(["1,5", "2,5", "3,5", "small", "5%"], dtype=object)[np.arange(N) % 5]
    (tmp_path / "t.csv").write_text(text(";", ",", FRAME.assign(a=values)))
    assert read_table(tmp_path / "t.csv")[0]["a"].tolist() == values.tolist()
    model, output = tmp_path / "m.skops", tmp_path / "p.csv"
    for options in ([], ["--keep", "all"]):
        fit = ["fit", str(tmp_path / "t.csv"), "-o", str(model), "--folds", "0", "--force"]
        assert main(fit) == 0
        assert (
            main(["predict", str(model), str(tmp_path / "t.csv"), "-o", str(output), *options]) == 0
        )
        assert "has not seen" not in capsys.readouterr().err


def test_the_sheet_that_is_read_is_named(tmp_path):
    pytest.importorskip("openpyxl")
    with pd.ExcelWriter(tmp_path / "t.xlsx") as book:
        for sheet in ("data", "notes"):
            FRAME.to_excel(book, sheet_name=sheet, index=False)
    with pytest.warns(UserWarning, match="t.xlsx has 2 sheets: 'data', the first, is read"):
        assert len(read_table(tmp_path / "t.xlsx")[0]) == N


def test_a_file_that_is_no_text_is_named(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"\x7fELF\x02\x00\x00\x00\x01" + rng.bytes(5000))
    with pytest.raises(ValueError, match=r"t.csv is no text file in .*: it has zero bytes"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            read_table(tmp_path / "t.csv")


def test_archives_with_more_than_a_table(tmp_path):
    path = tmp_path / "two.zip"
    path.write_bytes(zipped(("a.csv", b"a,y\n"), ("b.csv", b"a,y\n")))
    with pytest.raises(ValueError, match=r"must hold one table, and holds 2: 'a.csv', 'b.csv'"):
        read_table(path)
    path.write_bytes(b"no zip")
    with pytest.raises(ValueError, match="not a complete zip file"):
        read_table(path)


def test_the_standard_input(monkeypatch, recwarn):
    for content in (text(";", ",").encode(), gzip.compress(text().encode()), feather()):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        _standard_input.cache_clear()  # a process has one input only
        X, y = read_table("-")
        assert (X.shape, y.nunique(), X.iloc[0, 0]) == ((60, 3), 3, FRAME.iloc[0, 0])
    warnings.simplefilter("always")
    _standard_input.cache_clear()
    gc.collect()
    assert [w for w in recwarn if w.category is ResourceWarning] == []  # as at the end of a process
    script = "from manyclass.app.tables import read_table; read_table('-')"
    done = subprocess.run([sys.executable, "-c", script], input=b"", capture_output=True)
    assert b"the standard input is empty" in done.stderr
    _standard_input.cache_clear()


# ---------------------------------------------------------------------- columns


def write(tmp_path, frame):
    path = tmp_path / "t.csv"
    frame.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row", np.arange(N)),
        ("anything", np.arange(1, N + 1)),
        ("patient_id", rng.permutation(10 * N)[:N]),
        ("customerId", rng.permutation(10 * N)[:N]),
    ],
)
def test_identifiers_are_left_out_and_named(name, values, tmp_path):
    path = write(tmp_path, FRAME.assign(**{name: values}))
    with pytest.warns(UserWarning, match=rf"columns left out: '{name}' \(it.*--numeric NAME keeps"):
        X, _ = read_table(path)
    assert name not in X
    assert name in read_table(path, numeric=[name])[0]


def test_measurements_are_no_identifiers(tmp_path):
    path = write(tmp_path, FRAME.assign(weight=rng.permutation(10 * N)[:N], valid=rng.rand(N)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert {"weight", "valid"} <= set(read_table(path)[0])


@pytest.mark.parametrize("token", ["unknown", "N.A.", "-", "not available", "#DIV/0!", "abc"])
def test_stray_tokens_are_missing_numbers(token, tmp_path):
    values = np.round(rng.randn(N), 2).astype(object)
    values[[3, 9]] = token
    path = write(tmp_path, FRAME.assign(a=values))
    with pytest.warns(
        UserWarning, match=r"column 'a' holds numbers and .*: this counts as missing"
    ):
        table = read(path, Choices())
    assert table.layout.kinds["a"] == "number" and table.layout.missing == {"a": [token]}
    assert np.flatnonzero(table.X["a"].isna()).tolist() == [3, 9]
    assert read_table(path, categorical=["a"])[0]["a"][3] == token
    later = pd.DataFrame({"a": ["1", token, "n/a", None]})
    assert conform(later, table.layout._replace(kinds={"a": "number"}))["a"].isna().sum() == 3


def test_codes_with_letters_stay_categories(tmp_path):
    path = write(tmp_path, FRAME.assign(a=np.array(["1", "2", "x"], object)[np.arange(N) % 3]))
    assert read(path, Choices()).layout.kinds["a"] == "category"


@pytest.mark.parametrize(
    ("texts", "days"),
    [
        (["31.12.2023", "01.02.2024"], ["2023-12-31", "2024-02-01"]),
        (["31/12/2023", "01/02/2024"], ["2023-12-31", "2024-02-01"]),
        (["12/31/2023", "01/02/2024"], ["2023-12-31", "2024-01-02"]),
        (["2023/12/31", "2024/02/01"], ["2023-12-31", "2024-02-01"]),
        (["31-Dec-2023", "01-Feb-2024"], ["2023-12-31", "2024-02-01"]),
        (["Dec 31, 2023", "Feb 1, 2024"], ["2023-12-31", "2024-02-01"]),
        (["31 December 2023", "1 February 2024"], ["2023-12-31", "2024-02-01"]),
        (["31.12.2023 18:30", "01.02.2024 07:15"], ["2023-12-31 18:30", "2024-02-01 07:15"]),
        (["12/31/2023 6:30 PM", "01/02/2024 7:15 AM"], ["2023-12-31 18:30", "2024-01-02 07:15"]),
        (["2023-12-31T18:30:00Z", "2024-02-01"], ["2023-12-31 18:30", "2024-02-01"]),
        (["Sun, 31 Dec 2023", "Thu, 01 Feb 2024"], ["2023-12-31", "2024-02-01"]),
        (["Sunday, December 31, 2023", "Thursday, February 1, 2024"], ["2023-12-31", "2024-02-01"]),
        (
            ["Sun Dec 31 18:30:00 2023", "Thu Feb 01 07:15:00 2024"],
            ["2023-12-31 18:30", "2024-02-01 07:15"],
        ),
        (
            ["Sun, 31 Dec 2023 18:30:00 GMT", "Thu, 01 Feb 2024 07:15:00 GMT"],
            ["2023-12-31 18:30", "2024-02-01 07:15"],
        ),
        (["31. December 2023", "1. February 2024"], ["2023-12-31", "2024-02-01"]),
        (["2023.12.31.", "2024.02.01."], ["2023-12-31", "2024-02-01"]),
        (["20231231", "20240201"], ["2023-12-31", "2024-02-01"]),
        (["2023-12", "2024-02"], ["2023-12-01", "2024-02-01"]),
        (["Dec 2023", "Feb 2024"], ["2023-12-01", "2024-02-01"]),
    ],
)
def test_dates_of_any_usual_form(texts, days):
    frame = pd.DataFrame({"day": [*texts, None]})
    layout = layout_of(frame)
    assert layout.kinds == {"day": "date"}
    read = conform(frame, layout)["day"]
    assert read[:2].tolist() == [pd.Timestamp(day) for day in days] and pd.isna(read[2])


def test_words_for_a_missing_date_are_named():
    frame = pd.DataFrame({"day": ["31.12.2023", "unknown", "01.02.2024"]})
    with pytest.warns(UserWarning, match="column 'day' holds dates and 'unknown': this counts as"):
        layout = layout_of(frame)
    assert layout.kinds == {"day": "date"}
    assert conform(frame, layout)["day"].isna().tolist() == [False, True, False]


def test_whole_numbers_may_be_dates(tmp_path):
    days = pd.date_range("2023-12-25", periods=N)
    path = write(tmp_path, FRAME.assign(a=days.strftime("%Y%m%d")))
    with pytest.warns(UserWarning, match="'a' is read as dates such as 20241231. --numeric 'a'"):
        table = read(path, Choices())
    assert table.layout.kinds["a"] == "date" and (table.X["a"] == days).all()
    gap = pd.DataFrame({"a": [20240201.0, np.nan, 20241.5]})
    with pytest.raises(ValueError, match="'a' must hold dates, but row 3 has '20241.5'"):
        conform(gap, table.layout._replace(kinds={"a": "date"}))
    numbers = read(path, Choices(numeric=("a",)))
    assert numbers.layout.kinds["a"] == "number" and numbers.X["a"][0] == 20231225
    assert layout_of(pd.DataFrame({"a": np.arange(20) + 20231225})).kinds == {"a": "number"}


def test_dates_of_a_table_in_memory():
    frame = pd.DataFrame({"day": ["31.12.2023", "01.02.2024"] * 3})
    assert as_frame(frame)["day"][1] == pd.Timestamp("2024-02-01")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a b\n1 2\n", "has one column only, 'a b': check .* name their separator with --sep"),
        ("5.1,3.5,setosa\n4.9,3.0,virginica\n", "The first line seems to hold data"),
        ('a,class\n1,"x\n2,y\n', "a quote opens near line 2, and never closes"),
    ],
)
def test_what_is_wrong_with_the_lines_is_said(text, message, tmp_path):
    (tmp_path / "t.csv").write_text(text)
    with pytest.raises(ValueError, match=message):
        read_table(tmp_path / "t.csv")


def test_the_target_is_found_in_any_case(tmp_path):
    assert read_table(write(tmp_path, FRAME.rename(columns={"class": " Class"})))[1].nunique() == 3


def test_ambiguous_dates_are_named_and_stay_the_same_later():
    frame = pd.DataFrame({"day": ["01/02/2024", "03/04/2024"]})
    with pytest.warns(UserWarning, match="'day', such as 01/02/2024, are read as month, day"):
        layout_of(frame)
    known = layout_of(pd.DataFrame({"day": ["25/12/2023", "01/02/2024"]}))
    assert conform(frame, known)["day"][0] == pd.Timestamp("2024-02-01")


@pytest.mark.parametrize("texts", [["1.2.3", "2.3.4"], ["10-20", "5-7"], ["12 34", "5 6"]])
def test_what_looks_like_a_date_and_is_none(texts):
    assert layout_of(pd.DataFrame({"a": texts})).kinds == {"a": "category"}


def test_labels_that_differ_by_case_or_blanks_are_named(tmp_path):
    labels = np.where(np.arange(N) % 7 == 0, "birnen ", LABELS)
    with pytest.warns(UserWarning, match="by case or blanks only: 'Birnen', 'birnen '. They count"):
        _, y = read_table(write(tmp_path, FRAME.assign(**{"class": labels})))
    assert y.nunique() == 4


def test_leaks_are_named(tmp_path):
    code = {"Äpfel": "x1", "Birnen": "x2", "Kirschen": "x3"}
    leaking = FRAME.assign(
        outcome=[code[c] for c in LABELS],
        amount=np.arange(N) % 3 * 100 + rng.rand(N),
        fine=rng.rand(N),
    )
    with pytest.warns(UserWarning) as said:
        read_table(write(tmp_path, leaking))
    named = [str(w.message) for w in said if "alone tells the class of" in str(w.message)]
    assert len(named) == 2 and "'outcome'" in named[0] and "'amount'" in named[1]
    assert "--drop 'outcome'" in named[0]


def test_good_columns_are_no_leaks():
    from sklearn.datasets import load_digits, load_iris, load_wine

    for load in (load_iris, load_wine, load_digits):
        X, y = load(return_X_y=True, as_frame=True)
        assert leaks(X, y.to_numpy()) == {}


def test_roles(tmp_path):
    frame = FRAME.assign(who=np.arange(N) // 4, part=np.where(np.arange(N) < 40, "train", "test"))
    table = read(write(tmp_path, frame), Choices(groups="who", split_column="part", drop=("n",)))
    assert list(table.X.columns) == ["Größe", "Farbe"]
    assert table.groups.tolist()[:5] == ["0", "0", "0", "0", "1"]
    assert set(table.split) == {"train", "test"}
    gap = frame.assign(who=[None, *range(1, N)])
    with pytest.raises(ValueError, match="column 'who' of .* is empty in row 1"):
        read(write(tmp_path, gap), Choices(groups="who"))


# ---------------------------------------------------------------------- bounds


def test_many_columns_are_checked_in_linear_time(tmp_path):
    path = tmp_path / "wide.csv"

    def seconds(n: int) -> float:
        path.write_text(",".join(f"c{i}" for i in range(n)) + "\n")
        start = process_time()
        assert len(open_table(path).names) == n
        return process_time() - start

    seconds(1000)
    assert seconds(40_000) < 2.0  # a quadratic check took 15 s


def test_wide_tables_are_converted_without_lists_of_names():
    X = pd.DataFrame(rng.randn(6, 1_200), columns=[f"g{i}" for i in range(1_200)]).assign(same=1.0)
    with pytest.warns(UserWarning, match="columns left out: 'same'"):
        used, transformer = used_columns(X)
    assert transformer.transformers[0][2] == slice(None) and used.shape == (6, 1_200)
    few, named = used_columns(used[["g3", "g7"]])
    assert named.transformers[0][2] == ["g3", "g7"]
    both = transformer.fit_transform(used)
    np.testing.assert_allclose(both[:, [3, 7]], named.fit_transform(few))


def test_a_line_without_end_is_refused_in_bounded_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(dialect.Dialect, "longest", 2**16)
    path = tmp_path / "line.csv"
    path.write_bytes(b"a,y\n" + b"1," * 2**22)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"line 2 has more than 65,536 characters"):
        read_table(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 6e6 < path.stat().st_size


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("5.1,3.5,setosa\n4.9,3.0,setosa\n", "Did you mean 'setosa'?.*seems to hold data"),
        ("sep=;\na;setose\n1;x\n", "The first line is for spreadsheets only: remove it"),
        ('[{"a": 1, "kind": "x"}]\n', "looks like JSON or HTML"),
        ("<!DOCTYPE html>\n<html></html>\n", "looks like JSON or HTML"),
    ],
)
def test_first_lines_that_are_no_names(tmp_path, text, said):
    path = tmp_path / "table.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_table(path, target="setose")


def test_lines_that_an_open_quote_joins_are_named(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text('a,b,kind\n1,2,x\n1,"2,x\n2,3,y\n3,4,y\n')
    message = "at lines 3 to 5: a quote joins them, and is perhaps never closed. They have 2 fields"
    with pytest.raises(ValueError, match=message):
        read_table(path, target="kind")


def test_a_split_that_divides_groups_is_named():
    rows = np.arange(8)
    groups, folds = rows // 3, [(rows[:4], rows[4:])]
    target, classes = rows % 2, ["a", "b"]
    assert find_folds(folds, classes, target, None, 0)[1] == []
    assert find_folds(folds, classes, target, [0, 0, 0, 0, 1, 1, 1, 1], 0)[1] == []
    (note,) = find_folds(folds, classes, target, groups, 0)[1]
    assert note.startswith("1 of 3 groups have rows to train on and rows to test on")


def test_measurements_with_a_unit_are_no_identifier(tmp_path):
    values = np.arange(N) / 8 - 3
    frame = FRAME.assign(mass=[f"{v:.3f} kg" for v in values], code=[f"x-{i}" for i in range(N)])
    with pytest.warns(UserWarning, match="columns left out") as caught:
        used_columns(read_table(write(tmp_path, frame))[0])
    said = " ".join(str(w.message) for w in caught)
    assert "rows, such as '-3.000 kg': as numbers they would be of use" in said
    assert "'code' (60 different texts in 60 rows, as in an identifier)" in said
