"""The report of a comparison: one page of HTML that needs nothing else."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from manyclass._files import replace_file
from manyclass.app import contents, figures
from manyclass.app.leaderboard import LEVEL, Leaderboard
from manyclass.app.names import as_text, short_names
from manyclass.app.snippet import Source, program

__all__ = ["Source", "check_can_write", "render", "write_page"]

NEEDED = ("jinja2", "matplotlib")


def check_can_write(path: str | os.PathLike[str]) -> None:
    """Raise an error if a report could not be written, before anything is computed.

    Examples
    --------
    >>> from manyclass.app.page import check_can_write
    >>> check_can_write(".")
    Traceback (most recent call last):
    ValueError: the report is to be written to '.', which is a folder: name a file, ...
    """
    for name in NEEDED:
        if find_spec(name) is None:
            raise ImportError(f"a report needs {name}: run pip install 'manyclass[app]'.")
    path = Path(path)
    if path.is_dir():
        raise ValueError(
            f"the report is to be written to {os.fspath(path)!r}, which is a folder: name a file, "
            "such as report.html in it."
        )
    folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise ValueError(f"no report can be written to {os.fspath(folder)!r}: choose another path.")


def write_page(
    board: Leaderboard,
    path: str | os.PathLike[str],
    *,
    source: Source | None = None,
    title: str | None = None,
) -> Path:
    """Write the report of a comparison, whole or not at all.

    Parameters
    ----------
    board : Leaderboard
        From :func:`~manyclass.app.comparing.compare`.
    path : path
        The file; an existing one is replaced.
    source : Source, optional
        Where the data came from, for the program that runs everything again.
    title : str, optional
        The name of the source when omitted.

    Returns
    -------
    Path

    Examples
    --------
    >>> from manyclass.app.page import write_page
    >>> write_page(board, "report.html")  # doctest: +SKIP
    PosixPath('report.html')
    """
    check_can_write(path)
    html = render(board, source=source, title=title)
    replace_file(Path(path), html.encode("utf-8", "replace"))
    return Path(path)


def render(board: Leaderboard, *, source: Source | None = None, title: str | None = None) -> str:
    """Return the report of a comparison as HTML; see :func:`write_page`."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("manyclass.app"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    short = short_names(board.classes, contents.SHORT)
    environment.filters["text"] = as_text
    environment.filters["short"] = dict(zip(board.classes, short, strict=True)).__getitem__
    name = title or (Path(source.name).name if source else "Comparison")
    return environment.get_template("report.html").render(
        title=as_text(name),
        board=board,
        data=contents.data(board),
        leaderboard=contents.leaderboard(board),
        reliability=_reliability(board) if board.ranked else None,
        confusion=contents.confusion(board) if board.ranked else None,
        coupling=_coupling(board),
        versions=contents.versions(),
        source=source,
        program=program(board, source),
        level=f"{LEVEL:.0%}",
    )


def _reliability(board: Leaderboard) -> dict[str, Any]:
    """Return the diagrams of the best of ours and the best of theirs."""
    entries = [e for e in (board.best_of(ours=True), board.best_of(ours=False)) if e is not None]
    return {
        "entries": list(zip(entries, figures.COLORS, strict=False)),
        "n_bins": figures.BINS,
        "all": figures.reliability(board, entries),
        "classes": list(figures.reliability_by_class(board, entries)),
    }


def _coupling(board: Leaderboard) -> dict[str, Any] | None:
    """Return the code and the incoherence of the best coupled classifier."""
    entry = board.best_of(ours=True)
    if entry is None or entry.code is None:
        return None
    coupled = entry.incoherence is not None and len(board.classes) > 2
    return {
        "entry": entry,
        "code": figures.code_matrix(board, entry),
        "n_columns": entry.code.shape[1],
        "histogram": figures.incoherence(board, entry) if coupled else None,
        "rows": contents.most_incoherent(board, entry) if coupled else [],
    }
