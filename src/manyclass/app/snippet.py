"""A Python program that repeats a comparison."""

from __future__ import annotations

import ast
from collections import defaultdict
from typing import Any, NamedTuple

from sklearn.base import BaseEstimator

import manyclass
from manyclass.app.arguments import BASELINE
from manyclass.app.leaderboard import Entry, Leaderboard
from manyclass.app.scoring import USUAL
from manyclass.app.table_options import Choices


class Source(NamedTuple):
    """The source of the data."""

    name: str
    """A file, or the name of a data set."""
    rows: int | None = None
    """The number of rows that were sampled, if any."""
    choices: Choices = Choices()
    """What the user said about the table."""


def program(board: Leaderboard, source: Source | None = None) -> str:
    """Write a program that repeats a comparison and fits the candidate to use on all rows."""
    entries = sorted(
        (entry for entry in board if entry.name != BASELINE), key=lambda entry: entry.name
    )
    limited = any(entry.candidate.most_rows is not None for entry in entries)
    lines = [
        *_data(source, board),
        "board = compare(",
        "    X,",
        "    y,",
        "    candidates=[" if limited else "    candidates={",
        *(_candidate(entry, limited) for entry in entries),
        "    ]," if limited else "    },",
        f"    cv={_cv(board, source)}",
        *([] if board.metrics == USUAL else [f"    metrics={board.metrics!r},"]),
        f"    random_state={board.random_state!r},",
        ")",
        "print(board)",
        "print(board.verdict())",
        "",
        "# The one to use, fitted on all rows.",
        "model = board.described.pipeline.fit(X, y)",
        "print(model.predict_proba(X.head(3)).round(3))",
        "",
    ]
    return "\n".join([*_imports(entries, source, limited), "", *lines])


def _data(source: Source | None, board: Leaderboard) -> list[str]:
    if source is None:
        n, d = board.description.n_rows, board.description.n_columns
        return [f"X, y = ...  # a DataFrame of {n} rows and {d} columns, and its classes"]
    said = {
        name: value
        for name, value in vars(source.choices).items()
        if value and name not in ("groups", "split_column")
    }
    options = "".join(f", {name}={value!r}" for name, value in said.items())
    lines = [f"X, y = read_table({source.name!r}{options})"]
    if source.rows is not None:
        lines.append(f"X, y = sample(X, y, {source.rows}, random_state={board.random_state})")
    return lines


def _cv(board: Leaderboard, source: Source | None) -> str:
    if source is not None and (source.choices.groups or source.choices.split_column):
        return "...,  # the folds that a column names"
    return f"{len(board.folds)},"


def _candidate(entry: Entry, limited: bool) -> str:
    written = _expression(entry.candidate.estimator)
    comment = "" if written else "  # as it was made"
    if not limited:
        return f"        {entry.name!r}: {written or '...'},{comment}"
    most = entry.candidate.most_rows
    rows = "" if most is None else f", most_rows={most}"
    return f"        Candidate({entry.name!r}, {written or '...'}{rows}),{comment}"


def _expression(estimator: Any) -> str | None:
    """Return the Python expression of an estimator, None if it cannot be written as one."""
    try:
        tree = ast.parse(estimator.__repr__(N_CHAR_MAX=10**6), mode="eval")
    except (SyntaxError, TypeError):
        return None
    known = {type(part).__name__ for part in _parts(estimator)}
    strange = any(
        (isinstance(node, ast.Name) and node.id not in known)
        or (isinstance(node, ast.Constant) and node.value is ...)
        for node in ast.walk(tree)
    )
    return None if strange else ast.unparse(tree)


def _parts(estimator: Any) -> list[Any]:
    nested = [v for v in estimator.get_params(deep=True).values() if isinstance(v, BaseEstimator)]
    return [estimator, *nested]


def _imports(entries: list[Entry], source: Source | None, limited: bool) -> list[str]:
    """Return the import statements, those of other packages first."""
    names = defaultdict(set, {"manyclass": {"compare"}})
    if limited:
        names["manyclass.app.candidates"] = {"Candidate"}
    if source is not None:
        names["manyclass.app.tables"] = {"read_table"}
        if source.rows is not None:
            names["manyclass.app.inputs"] = {"sample"}
    for entry in entries:
        if _expression(entry.candidate.estimator) is not None:
            for part in _parts(entry.candidate.estimator):
                names[_public_module(type(part))].add(type(part).__name__)
    lines = {m: f"from {m} import {', '.join(sorted(found))}" for m, found in sorted(names.items())}
    own = [line for m, line in lines.items() if m.partition(".")[0] == "manyclass"]
    others = [line for line in lines.values() if line not in own]
    return [*others, "", *own] if others else own


def _public_module(kind: type) -> str:
    """Return the module that users import a class from."""
    if getattr(manyclass, kind.__name__, None) is kind:
        return "manyclass"
    parts = kind.__module__.split(".")
    private = next((i for i, part in enumerate(parts) if part.startswith("_")), len(parts))
    return ".".join(parts[:private])
