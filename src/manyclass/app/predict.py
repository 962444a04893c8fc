"""``manyclass predict``: labels and probabilities of the rows of a table, block by block."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from sklearn.pipeline import Pipeline

from manyclass._lib.files import StrPath
from manyclass._lib.messages import warn
from manyclass.app.columns import Kind, Layout, conform, import_pandas
from manyclass.app.fit import quality
from manyclass.app.formats import TableFile, TextTable, without_missing
from manyclass.app.outputs import STDOUT, check_predictions
from manyclass.app.progress import bar_on_stderr
from manyclass.app.table_options import Choices, check_copied, lacking
from manyclass.app.terminal import counted, notes, say, shown
from manyclass.app.writing import writer
from manyclass.storage import load_model, read_metadata

if TYPE_CHECKING:
    import pandas as pd


def predict_file(
    model_path: StrPath,
    data_path: StrPath,
    output: StrPath,
    *,
    block_rows: int = 50_000,
    id_columns: Sequence[str] = (),
    keep_all: bool = False,
    top: int | None = None,
    raw: bool = False,
    trusted: Sequence[str] = (),
    choices: Choices = Choices(),  # noqa: B008
) -> int:
    r"""Predict the rows of a file with a stored model, and write the predictions.

    The columns of the output are ``label``, the most probable class; ``confidence``, its
    probability; ``p_<class>``, the probability of each class; and ``incoherence``, how far the
    binary models contradict each other on the row. Labels are text. Classifiers without
    probabilities give the label only. Rows keep their order. A file is written completely or not
    at all. If the table has the classes, the quality of the predictions is printed.

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
    id_columns : sequence of str, default=()
        Columns of the data that are copied to the front of the output, unchanged: fields of
        text such as ``NA`` are kept.
    keep_all : bool, default=False
        Whether to copy all columns of the data.
    top : int, optional
        Write ``label_1``, ``p_1``, ``label_2``, ``p_2``, ... of so many most probable classes,
        instead of a column for each class.
    raw : bool, default=False
        Whether text that a spreadsheet would run as a formula is written as it is. Otherwise a
        quote is put before it.
    trusted : sequence of str, default=()
        See :func:`~manyclass.storage.load_model`.
    choices : Choices
        How a text file is written.

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
    label,confidence,p_a,p_b,incoherence
    a,0.998...,0.998...,0.001...,...
    b,0.982...,0.017...,0.982...,...
    2
    """
    if block_rows < 1:
        raise ValueError(f"block_rows (--block-rows) must be at least 1, got {block_rows}.")
    layout, target = _description(model_path)
    check_predictions(output, [model_path, data_path])
    file = choices.open(data_path)
    carried = file.names if keep_all else list(dict.fromkeys(id_columns))
    _check_columns(file, layout.kinds, carried, target)
    model = load_model(model_path, trusted=trusted)
    answer = _Answer(model, carried, top)
    unseen, scores = _Unseen(model), _Scores(model, target if target in file.names else None)
    parsed = {name for name, kind in layout.kinds.items() if kind == "number"} - set(carried)
    text = [name for name in file.names if name not in parsed]
    n = 0
    blocks = file.blocks(block_rows, text=text, verbatim=carried)
    with (
        closing(blocks),
        _progress(file) as advance,
        writer(output, answer.names, raw=raw) as write,
    ):
        for block in blocks:
            ids = [block[name].to_numpy() for name in carried]
            if isinstance(file, TextTable):  # what is copied as it is may be a feature, too
                for name in set(carried) & {*layout.kinds, target}:
                    fields = without_missing(block[name])
                    number = layout.kinds.get(name) == "number"
                    block[name] = file.plain(fields) if number else fields
            X = conform(block, layout, first_row=n + 1)
            unseen.count(X)
            rows, labels, p = answer(X, ids)
            scores.add(block, labels, p)
            write(rows)
            n += len(X)
            advance(len(X))
    unseen.warn()
    scores.say()
    return n


def _description(model_path: StrPath) -> tuple[Layout, str | None]:
    """Return how the model's columns are read, and the name of the target."""
    metadata = read_metadata(model_path)["metadata"]
    kinds = metadata.get("kinds")
    if not isinstance(kinds, dict) or not set(map(str, kinds.values())) <= set(get_args(Kind)):
        raise ValueError(
            f"{model_path} does not say what its columns hold. Fit it with manyclass fit, or save "
            'it with metadata={"kinds": manyclass.app.columns.kinds_of(X)}.'
        )
    more = [metadata.get(name) or {} for name in ("dates", "missing")]
    if not all(isinstance(part, dict) for part in more):
        raise ValueError(f"{model_path} is damaged: its description of columns is none.")
    target = metadata.get("target")
    return Layout(kinds, *more), target if isinstance(target, str) else None


def _check_columns(
    file: TableFile, kinds: Mapping[str, Kind], carried: Sequence[str], target: str | None
) -> None:
    known = set(file.names)
    missing = [name for name in kinds if name not in known]
    spare = [name for name in file.names if name not in kinds]
    if missing:
        raise ValueError(f"{file.name} lacks columns of the model: {lacking(missing, spare)}.")
    check_copied(file.names, carried, file.name)
    extra = [name for name in spare if name not in {*carried, target}]
    if extra:
        warn(f"columns that the model does not use: {shown(extra)}.")


class _Answer:
    """Turns rows into the columns of the output."""

    def __init__(self, model: Any, carried: list[str], top: int | None):
        self.model = model
        self.before, self.classifier = _split(model)
        self.has_proba = hasattr(model, "predict_proba")
        self.has_incoherence = hasattr(self.classifier, "incoherence")
        if top is not None and not (self.has_proba and 1 <= top <= len(model.classes_)):
            have = f"has {len(model.classes_)} classes" if self.has_proba else "has labels only"
            raise ValueError(f"--top must be at least 1 and at most the classes: the model {have}.")
        self.top = top
        own = ["label"]
        if self.has_proba:
            own += ["confidence", *self._probability_names()]
        if self.has_incoherence:
            own += ["incoherence"]
        both = [name for name in carried if name in own]
        if both:
            raise ValueError(
                f"a column of the data and one of the output are both called {both[0]!r}. Rename "
                "it in the data."
            )
        self.names = [*carried, *own]
        self.n_texts = len(carried) + 1

    def _probability_names(self) -> list[str]:
        if self.top is None:
            return [f"p_{label}" for label in self.model.classes_]
        return [f"{part}_{place + 1}" for place in range(self.top) for part in ("label", "p")]

    def __call__(self, X: pd.DataFrame, ids: list[Any]) -> tuple[pd.DataFrame, Any, Any]:
        """Return the columns of the output for a block of rows, the labels and probabilities."""
        pd = import_pandas()
        if len(X) == 0:
            kinds = [object if i < self.n_texts else np.float64 for i in range(len(self.names))]
            types = dict(zip(self.names, kinds, strict=True))
            return pd.DataFrame(columns=self.names).astype(types), np.empty(0), None
        Z = X if self.before is None else self.before.transform(X)
        p = self.classifier.predict_proba(Z) if self.has_proba else None
        classes = self.model.classes_
        labels = self.classifier.predict(Z) if p is None else classes[p.argmax(axis=1)]
        columns = [_texts(labels)] if p is None else [_texts(labels), *self._probabilities(p)]
        if self.has_incoherence:
            columns.append(self.classifier.incoherence(Z))
        table = dict(zip(self.names, [*ids, *columns], strict=True))
        return pd.DataFrame(table), labels, p

    def _probabilities(self, p: Any) -> list[Any]:
        if self.top is None:
            return [p.max(axis=1), *p.T]
        order = np.argsort(-p, axis=1, kind="stable")[:, : self.top]
        columns = [p.max(axis=1)]
        for place in order.T:
            columns += [_texts(self.model.classes_[place]), p[np.arange(len(p)), place]]
        return columns


def _texts(labels: Any) -> Any:
    return np.array([str(label) for label in labels], dtype=object)


def _split(model) -> tuple[Any, Any]:
    """Return the steps before the classifier, or None, and the classifier."""
    if isinstance(model, Pipeline):
        return model[:-1] if len(model) > 1 else None, model[-1]
    return None, model


class _Scores:
    """The quality of the predictions, if the table has the classes."""

    def __init__(self, model: Any, target: str | None):
        self.model, self.target = model, target
        self.known = {str(label): label for label in getattr(model, "classes_", ())}
        self.parts: list[tuple[Any, Any, Any]] = []
        self.others = 0

    def add(self, block: pd.DataFrame, labels: Any, p: Any) -> None:
        """Remember the rows of a block whose class is known."""
        if self.target is None or len(labels) == 0:
            return
        names = [_as_written(label) for label in block[self.target]]
        rows = np.array([name in self.known for name in names])
        self.others += int(np.sum(~rows))
        true = np.array([self.known[name] for name in names if name in self.known])
        self.parts.append((true, labels[rows], None if p is None else p[rows]))

    def say(self) -> None:
        """Print the quality."""
        rows = sum(len(true) for true, _, _ in self.parts)
        if rows == 0:
            return
        true, labels = (np.concatenate([part[i] for part in self.parts]) for i in (0, 1))
        with_p = self.parts[0][2] is not None
        p = np.concatenate([part[2] for part in self.parts]) if with_p else None
        rest = (
            f"; {counted(self.others, 'row')} without a class of the model" if self.others else ""
        )
        line = quality(self.model, true, labels, p)
        say(f"on {counted(rows, 'row')} with {self.target!r}: {line}{rest}", sys.stderr)


def _as_written(label: Any) -> str:
    whole = isinstance(label, float | np.floating) and label % 1 == 0
    return str(int(label)) if whole else str(label)


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


@contextmanager
def _progress(file: TableFile) -> Iterator[Callable[[int], None]]:
    """Yield a function that takes the number of new rows: a bar, on a terminal with rich."""
    with bar_on_stderr() as bar:
        total = None if bar is None else file.n_rows()
        task = None if bar is None else bar.add_task("predicting", total=total)
        yield lambda n: None if bar is None else bar.advance(task, n)


def run(arguments: argparse.Namespace) -> int:
    """Run ``manyclass predict``."""
    with notes():
        n = predict_file(
            arguments.model,
            arguments.data,
            arguments.output,
            block_rows=arguments.block_rows,
            id_columns=arguments.id or (),
            keep_all=arguments.keep == "all",
            top=arguments.top,
            raw=arguments.raw,
            trusted=arguments.trust,
            choices=Choices.of(arguments),
        )
    if arguments.output != STDOUT:
        say(f"wrote {counted(n, 'row')} to {arguments.output}", sys.stderr)
    return 0
