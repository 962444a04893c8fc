"""``manyclass predict``: labels and probabilities of the rows of a table, block by block."""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from difflib import get_close_matches
from importlib import import_module
from io import TextIOWrapper
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, get_args

import numpy as np
from sklearn.pipeline import Pipeline

from manyclass._lib.extras import import_extra
from manyclass._lib.files import StrPath, check_output, replacing
from manyclass._lib.messages import warn
from manyclass.app import tables
from manyclass.app.columns import Kind, conform, import_pandas, shown
from manyclass.app.fit import notes
from manyclass.app.progress import bar_on_stderr
from manyclass.storage import load_model, read_metadata

if TYPE_CHECKING:
    import pandas as pd

Write = Callable[["pd.DataFrame"], None]
"""Adds rows to the output."""
STDOUT = "-"


def predict_file(
    model_path: StrPath,
    data_path: StrPath,
    output: StrPath,
    *,
    block_rows: int = 50_000,
    id_column: str | None = None,
    trusted: Sequence[str] = (),
) -> int:
    r"""Predict the rows of a file with a stored model, and write the predictions.

    The columns of the output are ``label``, the most probable class; ``p_<class>``, the
    probability of each class; and ``incoherence``, how far the binary models contradict
    each other on the row. Labels are text. Classifiers without probabilities give the label
    only. Rows keep their order. A file is written completely or not at all.

    Parameters
    ----------
    model_path : path
        A file that :func:`~manyclass.app.fit.fit_file` wrote.
    data_path : path
        A file with the columns of the training data; others are ignored, with a warning.
    output : path
        A file that ends in .csv, .tsv or .parquet, or "-" for CSV on the standard output. An
        existing file is replaced, but not the model or the data.
    block_rows : int, default=50000
        Rows in memory at a time.
    id_column : str, optional
        A column of the data that is copied to the front of the output, unchanged: fields of
        text such as ``NA`` are kept.
    trusted : sequence of str, default=()
        See :func:`~manyclass.storage.load_model`.

    Returns
    -------
    int
        The number of rows.

    Examples
    --------
    >>> import contextlib, pathlib, tempfile
    >>> from manyclass.app.fit import fit_file
    >>> from manyclass.app.predict import predict_file
    >>> with tempfile.TemporaryDirectory() as name:
    ...     folder = pathlib.Path(name)
    ...     table = "size,colour,class\n" + "1,red,a\n2,red,a\n5,blue,b\n6,blue,b\n" * 5
    ...     _ = (folder / "table.csv").write_text(table)
    ...     with contextlib.redirect_stdout(None):
    ...         model = fit_file(folder / "table.csv", "class", folder / "model.skops")
    ...     _ = (folder / "new.csv").write_text("colour,size\nred,1.5\nblue,\n")
    ...     predict_file(folder / "model.skops", folder / "new.csv", "-")
    label,p_a,p_b,incoherence
    a,0.923...,0.076...,...
    b,0.236...,0.763...,...
    2
    """
    if block_rows < 1:
        raise ValueError(f"block_rows (--block-rows) must be at least 1, got {block_rows}.")
    kinds = _kinds(model_path)
    _check_output(output, [model_path, data_path])
    _check_columns(tables.column_names(data_path), kinds, id_column, data_path)
    model = load_model(model_path, trusted=trusted)
    names = _output_names(model, id_column)
    unseen = _Unseen(model)
    numbers = [name for name, kind in kinds.items() if kind == "number"]
    carried = [] if id_column is None else [id_column]
    n = 0
    blocks = tables.read_blocks(data_path, rows=block_rows, numbers=numbers, verbatim=carried)
    with closing(blocks), _progress(data_path) as advance, _writer(output, names) as write:
        for block in blocks:
            ids = [block[name].to_numpy() for name in carried]
            if id_column in kinds and tables.is_text(data_path):  # it is also a feature
                block[id_column] = tables.without_missing(block[id_column])
            X = conform(block, kinds, first_row=n + 1)
            unseen.count(X)
            write(_predict(model, X, names, ids))
            n += len(X)
            advance(len(X))
    unseen.warn()
    return n


def _kinds(model_path: StrPath) -> dict[str, Kind]:
    kinds = read_metadata(model_path)["metadata"].get("kinds")
    if not isinstance(kinds, dict) or not set(kinds.values()) <= set(get_args(Kind)):
        raise ValueError(
            f"{model_path} does not say what its columns hold. Fit it with manyclass fit, or save "
            'it with metadata={"kinds": manyclass.app.columns.kinds_of(X)}.'
        )
    return kinds


def _check_output(output: StrPath, inputs: Sequence[StrPath]) -> None:
    if str(output) == STDOUT:
        return
    if Path(output).suffix.lower() not in (".csv", ".tsv", ".parquet"):
        raise ValueError(f"{output}: the output must end in .csv, .tsv or .parquet, or be -.")
    check_output(output, inputs, force=True)


def _check_columns(
    names: Sequence[str], kinds: Mapping[str, Kind], id_column: str | None, data_path: StrPath
) -> None:
    missing = [name for name in kinds if name not in names]
    spare = [name for name in names if name not in kinds]
    if missing:
        raise ValueError(f"{data_path} lacks columns of the model: {_lacking(missing, spare)}.")
    if id_column is not None and id_column not in names:
        raise ValueError(f"{data_path} lacks the --id column: {_lacking([id_column], names)}.")
    extra = [name for name in spare if name != id_column]
    if extra:
        warn(f"columns that the model does not use: {shown(extra)}.")


def _lacking(missing: Sequence[str], names: Sequence[str]) -> str:
    close = get_close_matches(missing[0], names, n=1, cutoff=0.5)
    return shown(missing) + (f" (should {close[0]!r} be {missing[0]!r}?)" if close else "")


def _output_names(model, id_column: str | None) -> list[str]:
    names = ["label"]
    if hasattr(model, "predict_proba"):
        names += [f"p_{label}" for label in model.classes_]
    if hasattr(_split(model)[1], "incoherence"):
        names += ["incoherence"]
    if id_column in names:
        raise ValueError(
            f"the --id column and a column of the output are both called {id_column!r}. Rename it "
            "in the data."
        )
    return names if id_column is None else [id_column, *names]


def _split(model) -> tuple[Any, Any]:
    """Return the steps before the classifier, or None, and the classifier."""
    if isinstance(model, Pipeline):
        return model[:-1] if len(model) > 1 else None, model[-1]
    return None, model


def _predict(model, X: pd.DataFrame, names: list[str], ids: list[Any]) -> pd.DataFrame:
    """Return the columns of the output for a block of rows."""
    pd = import_pandas()
    if len(X) == 0:
        n_texts = names.index("label") + 1
        types = [object if place < n_texts else np.float64 for place in range(len(names))]
        return pd.DataFrame(columns=names).astype(dict(zip(names, types, strict=True)))
    before, classifier = _split(model)
    Z = X if before is None else before.transform(X)
    if hasattr(classifier, "predict_proba"):
        p = classifier.predict_proba(Z)
        labels, columns = model.classes_[p.argmax(axis=1)], [*p.T]
    else:
        labels, columns = classifier.predict(Z), []
    if hasattr(classifier, "incoherence"):
        columns.append(classifier.incoherence(Z))
    texts = np.array([str(label) for label in labels], dtype=object)
    return pd.DataFrame(dict(zip(names, [*ids, texts, *columns], strict=True)))


class _Unseen:
    """Counts the categories that were not in the training data."""

    def __init__(self, model):
        columns = model.named_steps.get("columns") if isinstance(model, Pipeline) else None
        encoder = getattr(columns, "named_transformers_", {}).get("categories")
        self.known: dict[str, set[Any]] = {}
        if encoder is not None:
            names = encoder.feature_names_in_
            self.known = dict(zip(names, map(set, encoder.categories_), strict=True))
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, str] = {}

    def count(self, X: pd.DataFrame) -> None:
        """Count them in a block of rows."""
        for name, known in self.known.items():
            new = X[name][X[name].notna() & ~X[name].isin(known)]
            if len(new):
                self.counts[name] += len(new)
                self.examples.setdefault(name, new.iloc[0])

    def warn(self) -> None:
        """Warn of them, if there are any."""
        if self.counts:
            found = [
                f"{name!r} in {count} rows (such as {self.examples[name]!r})"
                for name, count in self.counts.most_common(5)
            ]
            more = f" and {len(self.counts) - 5} more columns" if len(self.counts) > 5 else ""
            warn(f"categories that the model has not seen: {', '.join(found)}{more}.")


# ---------------------------------------------------------------------- output


@contextmanager
def _writer(output: StrPath, names: list[str]) -> Iterator[Write]:
    """Open the output. The file appears when all rows are written."""
    if str(output) == STDOUT:
        yield _rows_as_text(sys.stdout, ",", names)
        return
    suffix = Path(output).suffix.lower()
    with replacing(output) as file:
        if suffix == ".parquet":
            with _parquet_rows(file) as write:
                yield write
        else:
            text = TextIOWrapper(file, encoding="utf-8", newline="")
            yield _rows_as_text(text, tables.SEPARATORS[suffix], names)
            text.detach()


def _rows_as_text(file: IO[str], separator: str, names: list[str]) -> Write:
    plain, careful = (
        csv.writer(file, delimiter=separator, lineterminator="\n", quoting=quoting)
        for quoting in (csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC)
    )

    def write_rows(rows: Iterable[Sequence[Any]], texts: Iterable[Any]) -> None:
        # A carriage return also ends a line, but the plain writer does not quote it.
        broken = any("\r" in text for text in texts if isinstance(text, str))
        (careful if broken else plain).writerows(rows)

    def write(block: pd.DataFrame) -> None:
        columns = block.select_dtypes(exclude=np.number).items()
        texts = [text for _, column in columns for text in column.unique()]
        block = block.astype(object).where(block.notna(), None)
        write_rows(zip(*(block[name].tolist() for name in names), strict=True), texts)
        file.flush()

    write_rows([names], names)
    return write


@contextmanager
def _parquet_rows(file: IO[bytes]) -> Iterator[Write]:
    """Write blocks of rows with the types of the first block."""
    import_extra("pyarrow.parquet", "writing .parquet needs")
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    with ExitStack() as stack:
        writers: list[Any] = []

        def write(block: pd.DataFrame) -> None:
            if not writers:
                found = pa.Table.from_pandas(block, preserve_index=False).schema.remove_metadata()
                types = [pa.string() if pa.types.is_null(type) else type for type in found.types]
                schema = pa.schema(list(zip(found.names, types, strict=True)))
                writers.append(stack.enter_context(pq.ParquetWriter(file, schema)))
            schema = writers[0].schema
            writers[0].write_table(pa.Table.from_pandas(block, schema, preserve_index=False))

        yield write


@contextmanager
def _progress(data_path: StrPath) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of new rows: a bar, on a terminal with rich."""
    with bar_on_stderr() as bar:
        total = None if bar is None else tables.count_rows(data_path)
        task = None if bar is None else bar.add_task("predicting", total=total)
        yield lambda n: None if bar is None else bar.advance(task, n)


# ---------------------------------------------------------------------- command line


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``manyclass predict``."""
    parser.add_argument("model", type=Path, help="a file that manyclass fit wrote")
    parser.add_argument("data", type=Path, help="a .csv, .tsv or .parquet file")
    parser.add_argument(
        "-o", "--output", required=True, help="a .csv, .tsv or .parquet file, or - for stdout"
    )
    parser.add_argument("--id", metavar="COLUMN", help="a column to copy to the output")
    parser.add_argument(
        "--block-rows", type=int, default=50_000, help="rows in memory (default: 50000)"
    )
    parser.add_argument(
        "--trust", action="append", default=[], metavar="TYPE", help="a further type to load"
    )


def run(arguments: argparse.Namespace) -> int:
    """Run ``manyclass predict``."""
    with notes():
        n = predict_file(
            arguments.model,
            arguments.data,
            arguments.output,
            block_rows=arguments.block_rows,
            id_column=arguments.id,
            trusted=arguments.trust,
        )
    if arguments.output != STDOUT:
        print(f"wrote {n} rows to {arguments.output}", file=sys.stderr)
    return 0
