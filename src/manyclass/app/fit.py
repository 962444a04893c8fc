"""``manyclass fit``: a model from a table, into a file."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from manyclass import CoupledClassifier, CoupledSVC, codes
from manyclass._lib.files import StrPath, check_output
from manyclass._lib.messages import quoted
from manyclass.app.columns import column_transformer, kinds_of
from manyclass.app.measuring import make_pipeline
from manyclass.app.tables import read_table
from manyclass.combiners import base as combining
from manyclass.learners import BoostedNaiveBayes, KernelLogisticRegression
from manyclass.storage import save_model

if TYPE_CHECKING:
    import pandas as pd

# The usual C, or None if the learner has none, and a function of C that builds the classifier.
LEARNERS: dict[str, tuple[float | None, Callable[..., Any]]] = {
    "svm": (10.0, CoupledSVC),
    "linear-svm": (
        1.0,
        lambda C, **more: CoupledClassifier(LinearSVC(C=C, max_iter=10_000), **more),
    ),
    "logistic": (
        1.0,
        lambda C, **more: CoupledClassifier(LogisticRegression(C=C, max_iter=1000), **more),
    ),
    # Leave-one-out has a closed form.
    "kernel-logistic": (
        10.0,
        lambda C, **more: CoupledClassifier(KernelLogisticRegression(C=C), cv="loo", **more),
    ),
    "boosted-naive-bayes": (None, lambda C, **more: CoupledClassifier(BoostedNaiveBayes(), **more)),
}


def fit_file(
    path_or_name: StrPath,
    target: str | None,
    output: StrPath,
    *,
    learner: str = "svm",
    code: str = "one-vs-one",
    combiner: str | None = None,
    C: float | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    folds: int | None = None,
    force: bool = False,
) -> Pipeline:
    """Fit a model to a table, store it, and print a summary.

    Parameters
    ----------
    path_or_name : str or path
        See :func:`~manyclass.app.tables.read_table`.
    target : str or None
        The column of classes. None: the column with a usual name, such as "class".
    output : path
        The file of the model.
    learner : str, default="svm"
        "svm" and "kernel-logistic" have Gaussian kernels; "linear-svm" and "logistic"
        are for many rows; "boosted-naive-bayes" for many categories.
    code : str, default="one-vs-one"
        One of :data:`manyclass.codes.NAMES`.
    combiner : str, optional
        One of :func:`manyclass.combiners.base.names`. By default, "wlw2" for one-vs-one
        and "kl" for other codes.
    C : float, optional
        Parameter of the learner. By default, 10 with a kernel and 1 without.
    random_state : int, default=0
        Seed of random codes, of learners, and of the folds.
    n_jobs : int, optional
        Parallel jobs.
    folds : int, optional
        Folds of the cross-validation for the printed log-loss; 0 for none. By default, 5 for up
        to 5000 rows and none for more.
    force : bool, default=False
        Whether to replace the output if it exists. The table itself is never replaced.

    Returns
    -------
    Pipeline
        Fitted on all rows.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyclass.app.fit import fit_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = fit_file("iris", None, pathlib.Path(folder) / "iris.skops")
    150 rows; columns: 4 number; 3 classes with 50 to 50 rows each
    fitted svm, one-vs-one, wlw2 in ... s
    calibration: sigmoid
    scaling: StructuredScaling, 150 samples; log-loss coupled 0.14..., scaled 0.10...
    in 5-fold cross-validation: log-loss 0.08 (class frequencies alone 1.10), error 4.0 %
    wrote ...iris.skops (... kB)
    """
    output = Path(output)
    check_output(output, [path_or_name], force=force)
    if folds is not None and (folds < 0 or folds == 1):
        raise ValueError(f"folds (--folds) must be 0, for none, or at least 2, got {folds}.")
    X, y = read_table(path_or_name, target=target)
    transformer = column_transformer(X)
    used = {name for _, _, names in transformer.transformers for name in names}
    X = X[[name for name in X.columns if name in used]]
    options: dict[str, Any] = {
        "code": code,
        "combiner": combiner or "auto",
        "random_state": random_state,
        "n_jobs": n_jobs,
    }
    model = make_pipeline(transformer, _classifier(learner, C, options))
    print(_table_line(X, y))
    start = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - start
    print(f"fitted {learner}, {code}, {model[-1].combiner_.key} in {seconds:.1f} s")
    print(model[-1].calibration_report())
    if folds is None:
        few_rows = 5000  # a choice: cross-validation takes seconds for so many
        folds = 5 if len(y) <= few_rows else 0
    if folds:
        print(_scores_line(model, X, y, folds, random_state))
    metadata = {"kinds": kinds_of(X), "target": str(y.name), "rows": len(y), "learner": learner}
    save_model(model, output, metadata=metadata)
    print(f"wrote {output} ({output.stat().st_size / 1000:.0f} kB)")
    return model


def _classifier(learner: str, C: float | None, options: dict[str, Any]):
    if learner not in LEARNERS:
        raise ValueError(
            f"there is no learner {quoted(learner)}: choose from {', '.join(LEARNERS)}."
        )
    if C is not None and not 0 < C < np.inf:
        raise ValueError(f"C must be a positive number, got {C}.")
    usual, build = LEARNERS[learner]
    if C is not None and usual is None:
        raise ValueError(f"{learner} has no C. Leave out --C.")
    return build(C=usual if C is None else C, **options)


def _table_line(X: pd.DataFrame, y: pd.Series) -> str:
    counts = ", ".join(f"{n} {kind}" for kind, n in Counter(kinds_of(X).values()).items())
    sizes = y.value_counts()
    return (
        f"{len(y)} rows; columns: {counts}; {len(sizes)} classes with {sizes.min()} to "
        f"{sizes.max()} rows each"
    )


def _scores_line(model: Pipeline, X, y, folds: int, random_state: int) -> str:
    """Cross-validate the model, and describe its quality on rows that it has not seen."""
    rarest = y.value_counts().idxmin()
    folds = min(folds, int((y == rarest).sum()))
    if folds < 2:
        return f"not cross-validated: class {quoted(str(rarest))} has a single row"
    splits = StratifiedKFold(folds, shuffle=True, random_state=random_state)
    probabilities = hasattr(model, "predict_proba")
    method = "predict_proba" if probabilities else "predict"
    with warnings.catch_warnings():  # the fit on all rows has shown them
        warnings.simplefilter("ignore")
        answer = cross_val_predict(clone(model), X, y, cv=splits, method=method)
    labels = model.classes_[answer.argmax(axis=1)] if probabilities else answer
    error = f"error {100 * np.mean(labels != y.to_numpy()):.1f} %"
    if not probabilities:
        return f"in {folds}-fold cross-validation: {error}"
    loss = log_loss(y, answer, labels=model.classes_)
    shares = y.value_counts(normalize=True)
    alone = -float(shares @ np.log(shares))
    return (
        f"in {folds}-fold cross-validation: log-loss {loss:.2f} (class frequencies alone "
        f"{alone:.2f}), {error}"
    )


@contextmanager
def notes() -> Iterator[None]:
    """Print each warning once, as a plain line without its place in the code."""
    said: set[str] = set()

    def show(message, category, filename, lineno, file=None, line=None) -> None:
        text = " ".join(str(message).split())
        if text not in said:
            said.add(text)
            print(f"note: {text}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        for developers in (DeprecationWarning, PendingDeprecationWarning, FutureWarning):
            warnings.simplefilter("ignore", developers)
        warnings.showwarning = show
        yield


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of ``manyclass fit``."""
    parser.add_argument("data", help="a .csv, .tsv or .parquet file, or a bundled data set")
    parser.add_argument("--target", help="the column of classes")
    parser.add_argument("-o", "--output", required=True, type=Path, help="file of the model")
    parser.add_argument("--learner", choices=LEARNERS, default="svm", help="default: svm")
    parser.add_argument(
        "--code", choices=codes.NAMES, default="one-vs-one", help="default: one-vs-one"
    )
    parser.add_argument(
        "--combiner",
        metavar="NAME",
        choices=combining.names(),
        help=f"{', '.join(combining.names())} (default: wlw2 for one-vs-one, kl for other codes)",
    )
    parser.add_argument(
        "--C", type=float, help="parameter of the learner (default: 10 with a kernel, 1 without)"
    )
    parser.add_argument("--seed", type=int, default=0, help="default: 0")
    parser.add_argument("--jobs", type=int, help="processes")
    parser.add_argument(
        "--folds", type=int, help="folds for the log-loss; 0 for none (default: 5 up to 5000 rows)"
    )
    parser.add_argument("--force", action="store_true", help="replace the output if it exists")


def run(arguments: argparse.Namespace) -> int:
    """Run ``manyclass fit``."""
    with notes():
        fit_file(
            arguments.data,
            arguments.target,
            arguments.output,
            learner=arguments.learner,
            code=arguments.code,
            combiner=arguments.combiner,
            C=arguments.C,
            random_state=arguments.seed,
            n_jobs=arguments.jobs,
            folds=arguments.folds,
            force=arguments.force,
        )
    return 0
