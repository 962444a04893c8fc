"""Checks of output files before anything is computed."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

StrPath = str | os.PathLike[str]


def check_output(
    path: StrPath, inputs: Iterable[StrPath] = (), *, force: bool = False, new_folder: bool = False
) -> None:
    """Raise an error if a file cannot be written, or must not be.

    Inputs are never replaced; names of data sets may be among them. Another file is replaced only
    by ``force``. A device such as ``/dev/null`` is written to in any case. ``new_folder`` says that
    missing folders will be created.
    """
    path = Path(path)
    if path.is_dir():
        raise ValueError(f"{path} is a folder. Name a file in it.")
    _check_folder(path, new_folder)
    if not path.is_file():
        return
    if any(os.path.exists(source) and path.samefile(source) for source in inputs):
        raise ValueError(f"{path} is an input. Write to another file.")
    if not force:
        raise ValueError(f"{path} exists. Choose another name, or pass --force to replace it.")


def _check_folder(path: Path, new_folder: bool) -> None:
    folder = path.parent
    if new_folder:
        folder = next(parent for parent in path.absolute().parents if parent.exists())
    if not folder.exists():
        raise FileNotFoundError(f"there is no folder {folder} for the output. Create it first.")
    if not folder.is_dir():
        raise ValueError(f"{folder} is not a folder. Choose another place for the output.")
    # A new file in the folder replaces the old one, so the folder must be writable.
    if not os.access(folder, os.W_OK | os.X_OK) and (path.is_file() or not path.exists()):
        raise PermissionError(
            f"the folder {folder} is not writable. Choose another, or change its mode."
        )
