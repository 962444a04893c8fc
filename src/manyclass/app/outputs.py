"""Files that are to be written: what is wrong with them is found before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

StrPath = str | os.PathLike[str]


def check_output(
    path: StrPath, inputs: Iterable[StrPath] = (), *, force: bool = False, new_folder: bool = False
) -> None:
    """Raise an error if a file cannot be written, or must not be.

    Parameters
    ----------
    path : path
        Where the file shall be.
    inputs : iterable of paths
        What is read from, which is never replaced. Names of data sets may be among them.
    force : bool, default=False
        Whether another file of that name may be replaced. What is no file, such as
        ``/dev/null``, is written to in any case.
    new_folder : bool, default=False
        Whether its folder will be made if need be.

    Examples
    --------
    >>> from manyclass.app.outputs import check_output
    >>> check_output(".")
    Traceback (most recent call last):
    ValueError: . is a folder: name a file in it.
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder: name a file in it.")
    _check_folder(path, new_folder)
    if not path.is_file():
        return
    if any(os.path.exists(source) and path.samefile(source) for source in inputs):
        raise ValueError(f"{path} is read from: write to another file.")
    if not force:
        raise ValueError(f"{path} exists: choose another name, or pass --force to replace it.")


def _check_folder(path: Path, new_folder: bool) -> None:
    folder = path.parent
    if new_folder:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder} for the output: make it first.")
    if not folder.is_dir():
        raise ValueError(f"nothing can be written to {folder}, which is no folder: choose another.")
    # The file is written beside the old one, and takes its place: the folder is what matters.
    if not os.access(folder, os.W_OK | os.X_OK) and (path.is_file() or not path.exists()):
        raise PermissionError(
            f"nothing can be written to the folder {folder}: choose another, or change its mode."
        )
