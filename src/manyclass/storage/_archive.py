"""The file of a model: what it is and who wrote it, told before anything of it is made."""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import manyclass

FORMAT = 1
"""Raised when files of this version can no longer be read by the one before."""
DESCRIPTION = "manyclass.json"
MOST_BYTES = 2**32  # of a model in memory
MOST_DESCRIPTION = 2**26  # bytes of its description


def describe(estimator, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return what a file says of the model in it; see :func:`manyclass.storage.read_metadata`."""
    names = getattr(estimator, "feature_names_in_", None)
    classes = getattr(estimator, "classes_", None)
    n_features = getattr(estimator, "n_features_in_", None)
    try:
        json.dumps(given := dict(metadata or {}))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata must be what JSON can hold: {error}.") from error
    return {
        "format": FORMAT,
        "versions": {**_versions(), "skops": import_module("skops").__version__},
        "estimator": f"{type(estimator).__module__}.{type(estimator).__qualname__}",
        "n_features": None if n_features is None else int(n_features),
        "features": None if names is None else [str(name) for name in names],
        "classes": None if classes is None else _plain(classes),
        "metadata": given,
    }


def _versions() -> dict[str, str]:
    return {
        "manyclass": manyclass.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
    }


def _plain(classes) -> list[Any]:
    """Return labels as JSON has them: numbers, booleans or text."""
    return [
        label if isinstance(label, bool | int | float | str) else str(label)
        for label in np.asarray(classes).tolist()
    ]


def read_file(path: Path, max_bytes: int) -> bytes:
    """Return the content of a file, after a look at what it will unpack to."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    with open(path, "rb") as file:
        content = file.read(max_bytes + 1)
    if content[:1] == b"\x80":
        raise ValueError(
            f"{path} is a pickle, which could run any code when it is loaded: it was not. Save the "
            "model by manyclass.storage.save_model."
        )
    if content[:2] != b"PK":
        raise ValueError(
            f"{path} is not a stored model: these are made by manyclass fit -o, or by "
            "manyclass.storage.save_model."
        )
    sizes = _sizes(path, content) if len(content) <= max_bytes else {}
    size = sum(sizes.values()) if sizes else path.stat().st_size
    if size > max_bytes:
        raise ValueError(
            f"{path} would unpack to {size:,} bytes, more than {max_bytes:,}: it was not loaded. "
            "For a model of that size pass max_bytes."
        )
    if DESCRIPTION not in sizes:
        raise ValueError(
            f"{path} is a zip archive but no model of manyclass, {DESCRIPTION} is not in it: save "
            "the model by manyclass.storage.save_model."
        )
    return content


def _sizes(path: Path, content: bytes) -> dict[str, int]:
    """Return how large each member of an archive will be; zipfile reads no more than that."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except Exception as error:
        raise damaged(path, error) from error
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise damaged(path, ValueError("members of the same name"))
    return {member.filename: member.file_size for member in members}


def parse_description(path: Path, content: bytes) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if archive.getinfo(DESCRIPTION).file_size > MOST_DESCRIPTION:
                raise ValueError(f"{DESCRIPTION} is too large")
            description = json.loads(archive.read(DESCRIPTION))
        number, versions = description["format"], description["versions"]
        if type(number) is not int:
            raise TypeError(f"{DESCRIPTION} is not as it should be")
        _major(versions["manyclass"])
    except Exception as error:
        raise damaged(path, error) from error
    return dict(description)


def check_versions(path: Path, description: Mapping[str, Any]) -> None:
    writer = description["versions"]["manyclass"]
    newer = _major(writer) > _major(manyclass.__version__)
    if newer or description["format"] > FORMAT:
        raise ValueError(
            f"{path} was written by manyclass {writer} (format {description['format']}), this is "
            f"{manyclass.__version__} (format {FORMAT}): update manyclass, or fit the model again."
        )
    if description["format"] < 1:
        raise ValueError(f"{path} has format {description['format']}, which does not exist.")


def _major(version: str) -> int:
    digits = re.match(r"[0-9]+", version)
    if digits is None:
        raise ValueError(f"{version!r} is no version")
    return int(digits[0])


def warn_of_scikit_learn(description: Mapping[str, Any]) -> None:
    written = description["versions"].get("scikit-learn")
    if written != sklearn.__version__:
        warnings.warn(
            f"the model was fitted with scikit-learn {written}, this is {sklearn.__version__}: "
            "what it predicts may differ. Install that version, or fit the model again.",
            UserWarning,
            stacklevel=3,
        )


def damaged(path: Path, error: Exception) -> ValueError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return ValueError(
        f"{path} is damaged, or was not written by manyclass ({reason[:200]}): get a fresh copy, "
        "or fit the model again."
    )
