"""Checks of the files to write, before anything is computed or much is imported."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from manyclass._lib.extras import check_extra
from manyclass._lib.files import StrPath, check_output

STDOUT = "-"
SEPARATORS = {".csv": ",", ".tsv": "\t"}
"""The endings of text files that predictions are written to."""
MARK = b'<meta name="generator" content="manyclass">'  # near the beginning of every report


def check_report(path: StrPath, inputs: Iterable[StrPath] = (), *, force: bool = False) -> None:
    """Raise an error if a report cannot be written.

    An earlier report is replaced. Another file is replaced only by force, and an input never.
    """
    for name in ("jinja2", "matplotlib"):
        check_extra(name, "a report needs")
    check_output(path, inputs, force=force or _is_report(Path(path)), new_folder=True)


def _is_report(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return MARK in file.read(1000)


def check_predictions(output: StrPath, inputs: Sequence[StrPath]) -> None:
    """Raise an error if predictions cannot be written."""
    if str(output) == STDOUT:
        return
    if Path(output).suffix.lower() not in (*SEPARATORS, ".parquet"):
        raise ValueError(f"{output}: the output must end in .csv, .tsv or .parquet, or be -.")
    check_output(output, inputs, force=True)
