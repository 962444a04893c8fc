"""``manyclass fit``: a model from a table, into a file."""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.pipeline import Pipeline
from sklearn.svm import LinearSVC

from manyclass import CoupledClassifier, CoupledSVC
from manyclass._lib.files import StrPath, check_output
from manyclass._lib.messages import quoted
from manyclass.app import inputs
from manyclass.app.candidates import LIMITS, build, from_factory, seeded, why_trees
from manyclass.app.columns import KINDS, used_columns
from manyclass.app.measuring import make_pipeline
from manyclass.app.progress import bar_on_stderr
from manyclass.app.signals import Stopped
from manyclass.app.table_options import Choices
from manyclass.app.tables import Table, read
from manyclass.app.terminal import counted, notes, say
from manyclass.classifier import CoupledBase
from manyclass.learners import BoostedNaiveBayes, KernelLogisticRegression
from manyclass.scores.folds import Fold
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
    candidate: str | None = None,
    learner: str | None = None,
    code: str | None = None,
    combiner: str | None = None,
    C: float | None = None,
    estimator: str | None = None,
    random_state: int = 0,
    n_jobs: int | None = None,
    folds: int | None = None,
    force: bool = False,
    choices: Choices | None = None,
) -> Pipeline:
    """Fit a model to a table, store it, and print a summary.

    The model is stored before it is cross-validated: an interrupt does not lose it.

    Parameters
    ----------
    path_or_name : str or path
        See :func:`~manyclass.app.tables.read_table`.
    target : str or None
        The column of classes. None: the column with a usual name, such as "class".
    output : path
        The file of the model.
    candidate : str, optional
        A name of the leaderboard of ``manyclass compare``, instead of the next four.
    learner : str, optional
        "svm" and "kernel-logistic" have Gaussian kernels; "linear-svm" and "logistic"
        are for many rows; "boosted-naive-bayes" for many categories. By default "svm", or
        "logistic" from 50 classes on.
    code : str, optional
        One of :data:`manyclass.codes.NAMES`, or "class-trees", the default from 50 classes on.
        Below that it is "one-vs-one".
    combiner : str, optional
        One of :func:`manyclass.combiners.base.names`. By default, "wlw2" for one-vs-one,
        "tree-product" for class trees and "kl" for other codes.
    C : float, optional
        Parameter of the learner. By default, 10 with a kernel and 1 without.
    estimator : str, optional
        ``module:factory``, a classifier of your own instead of all of these.
    random_state : int, default=0
        Seed of random codes, of learners, and of the folds.
    n_jobs : int, optional
        Parallel jobs.
    folds : int, optional
        Folds of the cross-validation for the printed log-loss; 0 for none. By default, 5 for up
        to 5000 rows and none for more.
    force : bool, default=False
        Whether to replace the output if it exists. The table itself is never replaced.
    choices : Choices, optional
        Further options of the table; ``target`` is one of them.

    Returns
    -------
    Pipeline
        Fitted on all rows, or on the training rows if a column names them.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from manyclass.app.fit import fit_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = fit_file("iris", None, pathlib.Path(folder) / "iris.skops")
    150 rows; columns: numbers (4); 3 classes with 50 rows each
    fitted svm, one-vs-one, wlw2 in ... s
    calibration: sigmoid
    scaling: StructuredScaling, 150 samples; log-loss coupled 0.11..., scaled 0.08...
    wrote ...iris.skops (... kB)
    in 5-fold cross-validation: log-loss 0.10 (class frequencies alone 1.10), error 5.3 %
    """
    output = Path(output)
    check_output(output, [path_or_name], force=force)
    if folds is not None and (folds < 0 or folds == 1):
        raise ValueError(f"folds (--folds) must be 0, for none, or at least 2, got {folds}.")
    table = read(path_or_name, choices or Choices(target=target))
    options: dict[str, Any] = {"learner": learner, "code": code, "combiner": combiner, "C": C}
    chosen = {"candidate": candidate, "estimator": estimator}
    name, classifier = _choose(table.y, options, chosen, random_state, n_jobs)
    table, transformer = with_used_columns(table)
    say(_table_line(table))
    model = _fit(table, make_pipeline(transformer, classifier), name)
    store(model, output, table, name)
    if folds is None:
        few_rows = 5000  # a choice: up to here, cross-validation takes seconds
        folds = 5 if len(table.y) <= few_rows else 0
    if folds:
        try:
            say(_scores_line(model, table, folds, random_state))
        except KeyboardInterrupt as interrupt:
            raise Stopped(f"the model is in {output}, not cross-validated") from interrupt
    return model


def _choose(
    y: pd.Series,
    options: dict[str, Any],
    chosen: dict[str, str | None],
    random_state: int,
    n_jobs: int | None,
) -> tuple[str, Any]:
    """Return the name and the classifier that the options describe."""
    given = [f"--{key}" for key, value in {**chosen, **options}.items() if value is not None]
    _, target = inputs.encode(y, len(y))
    size = inputs.size_of(target, 1)
    for key in ("candidate", "estimator"):
        if chosen[key] is not None and len(given) > 1:
            others = [option for option in given if option != f"--{key}"]
            raise ValueError(f"--{key} stands alone: leave out {', '.join(others)}.")
    if chosen["candidate"] is not None:
        return chosen["candidate"], seeded(build(chosen["candidate"], size).estimator, random_state)
    if chosen["estimator"] is not None:
        own = from_factory(chosen["estimator"])
        return own.name, seeded(own.estimator, random_state)
    many = size.classes >= LIMITS.many
    learner = options["learner"] or ("logistic" if many else "svm")
    code = options["code"] or ("class-trees" if many else "one-vs-one")
    if many and options["code"] is None:
        say(f"note: class trees: {why_trees(size.classes)}. --code names another.", sys.stderr)
    more = {
        "code": code,
        "combiner": options["combiner"] or "auto",
        "random_state": random_state,
        "n_jobs": n_jobs,
    }
    return f"{learner}, {code}", _classifier(learner, options["C"], more)


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


def with_used_columns(table: Table) -> tuple[Table, Any]:
    """Return the columns that are of use, and the transformer that converts them."""
    X, transformer = used_columns(table.X)
    return table._replace(X=X), transformer


def _fit(table: Table, model: Pipeline, name: str) -> Pipeline:
    """Fit a pipeline to the rows to train on, and say how."""
    rows = _fold(table)[0]
    start = time.perf_counter()
    model.fit(table.X.iloc[rows], table.y.iloc[rows])
    seconds = time.perf_counter() - start
    last = model[-1]
    combiner = f", {last.combiner_.key}" if hasattr(last, "combiner_") else ""
    say(f"fitted {name}{combiner} in {seconds:.1f} s")
    if isinstance(last, CoupledBase):
        say(last.calibration_report())
    return model


def store(model: Pipeline, output: Path, table: Table, name: str) -> None:
    """Store a model and what is needed to read later tables, and say so."""
    layout = table.layout
    used = {key: layout.kinds[key] for key in table.X.columns}
    metadata = {
        "kinds": used,
        "dates": {key: form for key, form in layout.dates.items() if key in used},
        "missing": {key: texts for key, texts in layout.missing.items() if key in used},
        "target": str(table.y.name),
        "rows": len(table.y),
        "learner": name,
    }
    save_model(model, output, metadata=metadata)
    say(f"wrote {output} ({output.stat().st_size / 1000:.0f} kB)")


def _fold(table: Table) -> Fold:
    """Return the rows to train and to test on; none to test on if no column says so."""
    if table.split is None or "train" not in set(table.split.str.strip().str.casefold()):
        return np.arange(len(table.y)), np.empty(0, dtype=np.intp)
    return inputs.split_folds(table.split)[0]


def _table_line(table: Table) -> str:
    counts = Counter(table.layout.kinds[name] for name in table.X.columns).items()
    columns = ", ".join(f"{KINDS[kind]} ({n:,})" for kind, n in counts)
    sizes = table.y.value_counts()
    fewest = "" if sizes.min() == sizes.max() else f"{sizes.min():,} to "
    rows = fewest + counted(int(sizes.max()), "row")
    return (
        f"{counted(len(table.y), 'row')}; columns: {columns}; {counted(len(sizes), 'class')} with "
        f"{rows} each"
    )


def _scores_line(model: Pipeline, table: Table, n_folds: int, random_state: int) -> str:
    """Measure the model on rows that it has not seen, and say how good it is."""
    y = table.y.to_numpy()
    test = _fold(table)[1]
    if len(test):
        labels, p = answers(model, table.X.iloc[test])
        return f"on {len(test)} test rows: {quality(model, y[test], labels, p)}"
    counts = table.y.value_counts()
    if table.split is None and counts.min() < 2:
        return f"not cross-validated: class {quoted(str(counts.idxmin()))} has a single row"
    classes, target = inputs.encode(table.y, len(y))
    cv: Any = min(n_folds, counts.min())
    cv = cv if table.split is None else inputs.split_folds(table.split)
    folds, _ = inputs.find_folds(cv, classes, target, table.groups, random_state)
    found = [_left_out(model, table, fold) for fold in _with_bar(folds)]
    rows = np.concatenate([test for _, test in folds])
    labels = np.concatenate([labels for labels, _ in found])
    p = None if found[0][1] is None else np.concatenate([p for _, p in found])
    return f"in {len(folds)}-fold cross-validation: {quality(model, y[rows], labels, p)}"


def _with_bar(folds: list[Fold]):
    """Yield the folds, and move a bar on the terminal."""
    with bar_on_stderr() as bar:
        task = None if bar is None else bar.add_task("cross-validating", total=len(folds))
        for fold in folds:
            yield fold
            if bar is not None:
                bar.advance(task)


def _left_out(model: Pipeline, table: Table, fold: Fold) -> tuple[Any, Any]:
    train, test = fold
    with warnings.catch_warnings():  # the fit on all rows has shown them
        warnings.simplefilter("ignore")
        fitted = clone(model).fit(table.X.iloc[train], table.y.iloc[train])
        return answers(fitted, table.X.iloc[test])


def answers(model: Pipeline, X: pd.DataFrame) -> tuple[Any, Any]:
    """Return labels, and probabilities or None."""
    if not hasattr(model, "predict_proba"):
        return model.predict(X), None
    p = model.predict_proba(X)
    return model.classes_[p.argmax(axis=1)], p


def quality(model: Pipeline, y: Any, labels: Any, p: Any) -> str:
    """Describe predictions of rows whose classes are known."""
    error = f"error {100 * np.mean(labels != y):.1f} %"
    if p is None:
        return error
    loss = log_loss(y, p, labels=model.classes_)
    shares = np.unique(y, return_counts=True)[1] / len(y)
    alone = -float(shares @ np.log(shares))
    return f"log-loss {loss:.2f} (class frequencies alone {alone:.2f}), {error}"


def run(arguments: argparse.Namespace) -> int:
    """Run ``manyclass fit``."""
    with notes():
        fit_file(
            arguments.data,
            arguments.target,
            arguments.output,
            candidate=arguments.candidate,
            learner=arguments.learner,
            code=arguments.code,
            combiner=arguments.combiner,
            C=arguments.C,
            estimator=arguments.estimator,
            random_state=arguments.seed,
            n_jobs=arguments.jobs,
            folds=arguments.folds,
            force=arguments.force,
            choices=Choices.of(arguments),
        )
    return 0
