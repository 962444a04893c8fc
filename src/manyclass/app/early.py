"""Errors that a command finds before pandas and scikit-learn, which take seconds to import."""

from __future__ import annotations

import warnings
from typing import Any

from manyclass._lib.files import check_output
from manyclass.app.arguments import DATA_SETS, DEMO
from manyclass.app.lines import Lines
from manyclass.app.outputs import check_predictions, check_report
from manyclass.app.streams import STDIN, Stream, existing, open_stream
from manyclass.app.table_options import Choices, check_copied


def check(arguments: Any, *, longest: int = 2**24) -> None:
    """Raise an error about a file or a column, as the command itself would later.

    The names of the columns are read from text files only, and not from files of more than
    ``longest`` bytes: finding their encoding takes longer than the imports.
    """
    model = getattr(arguments, "model", None)
    if model is not None and not model.exists():
        raise FileNotFoundError(f"there is no file {model}.")
    data = arguments.data or DEMO
    if data not in (STDIN, *DATA_SETS):
        existing(data)
    _check_outputs(arguments, data)
    if data in DATA_SETS:
        Choices.of(arguments).check_data_set(data)
        return
    stream = open_stream(data)
    if stream.is_text and (data == STDIN or existing(data).stat().st_size <= longest):
        _check_columns(arguments, stream)


def _check_outputs(arguments: Any, data: str) -> None:
    if arguments.command == "predict":
        check_predictions(arguments.output, [arguments.model, data])
    elif arguments.command == "fit":
        check_output(arguments.output, [data], force=arguments.force)
    else:
        if arguments.report is not None:
            check_report(arguments.report, [data], force=arguments.force)
        if arguments.save is not None:
            check_output(arguments.save, [data], force=arguments.force)


def _check_columns(arguments: Any, stream: Stream) -> None:
    choices = Choices.of(arguments)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the command will show them
        lines = Lines(stream, sep=choices.sep, decimal=choices.decimal, encoding=choices.encoding)
    if arguments.command == "predict":
        check_copied(lines.names, arguments.id or (), lines.name)
    else:
        choices.find_target(lines.names, lines.name)
