"""The archive of a stored model: its description, its versions, and its schema.

All of this is read and checked before any object of the model is created.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import manyclass
from manyclass._lib.messages import warn
from manyclass.storage.identifiers import identifier

FORMAT = 1
"""Number of the file format. It is raised when earlier releases cannot read new files."""
DESCRIPTION = "manyclass.json"
SCHEMA = "schema.json"  # skops names it so
MAX_BYTES = 2**32  # a choice: 4 GB unpacked, more than a model in memory usually takes


def describe(estimator, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the description of a model; see :func:`manyclass.storage.read_metadata`."""
    names = getattr(estimator, "feature_names_in_", None)
    classes = getattr(estimator, "classes_", None)
    n_features = getattr(estimator, "n_features_in_", None)
    try:
        json.dumps(given := dict(metadata or {}))
    except (TypeError, ValueError) as error:
        raise ValueError(f"metadata must be values that JSON can hold: {error}.") from error
    return {
        "format": FORMAT,
        "versions": {
            "manyclass": manyclass.__version__,
            "scikit-learn": sklearn.__version__,
            "numpy": np.__version__,
            "skops": import_module("skops").__version__,
        },
        "estimator": identifier(type(estimator)),
        "n_features": None if n_features is None else int(n_features),
        "features": None if names is None else [str(name) for name in names],
        "classes": None if classes is None else _plain(classes),
        "metadata": given,
    }


def _plain(classes) -> list[Any]:
    """Return labels as numbers, booleans or texts, which JSON can hold."""
    return [
        label if isinstance(label, bool | int | float | str) else str(label)
        for label in np.asarray(classes).tolist()
    ]


def read_file(path: Path, max_bytes: int) -> bytes:
    """Return the content of a file, after a check of the size that it unpacks to."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    with open(path, "rb") as file:
        content = file.read(max_bytes + 1)
    if content[:1] == b"\x80":
        raise ValueError(
            f"{path} is a pickle. It was not loaded, because a pickle can run any code. Save the "
            "model with manyclass.storage.save_model."
        )
    if content[:2] != b"PK":
        raise ValueError(
            f"{path} is not a stored model. Make one with manyclass fit -o, or with "
            "manyclass.storage.save_model."
        )
    sizes = _sizes(path, content) if len(content) <= max_bytes else {}
    size = sum(sizes.values()) if sizes else path.stat().st_size
    if size > max_bytes:
        raise ValueError(
            f"{path} would unpack to {size:,} bytes, more than {max_bytes:,}. It was not loaded. "
            "To load a model of that size, pass max_bytes."
        )
    if DESCRIPTION not in sizes:
        raise ValueError(
            f"{path} is a zip archive but not a stored model, since it has no {DESCRIPTION}. Save "
            "the model with manyclass.storage.save_model."
        )
    return content


def _sizes(path: Path, content: bytes) -> dict[str, int]:
    """Return the unpacked size of each member; zipfile never reads more than that."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
    except Exception as error:
        raise damaged(path, error) from error
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise damaged(path, ValueError("two members have the same name"))
    return {member.filename: member.file_size for member in members}


def parse_description(
    path: Path, content: bytes, *, max_description: int = 2**26
) -> dict[str, Any]:
    """Return the description in an archive, which may have ``max_description`` bytes (64 MB)."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if archive.getinfo(DESCRIPTION).file_size > max_description:
                raise ValueError(f"{DESCRIPTION} is too large")
            description = json.loads(archive.read(DESCRIPTION))
        number, versions = description["format"], description["versions"]
        if type(number) is not int:
            raise TypeError(f"the format in {DESCRIPTION} is not a whole number")
        _major(versions["manyclass"])
    except Exception as error:
        raise damaged(path, error) from error
    return dict(description)


def check_versions(path: Path, description: Mapping[str, Any]) -> None:
    """Raise a ``ValueError`` if a later release wrote the file in a later format."""
    writer = description["versions"]["manyclass"]
    newer = _major(writer) > _major(manyclass.__version__)
    if newer or description["format"] > FORMAT:
        raise ValueError(
            f"{path} was written by manyclass {writer} (format {description['format']}), but this "
            f"is {manyclass.__version__} (format {FORMAT}). Update manyclass, or fit the model "
            "again."
        )
    if description["format"] < 1:
        raise ValueError(f"{path} has format {description['format']}, which does not exist.")


def _major(version: str) -> int:
    digits = re.match(r"[0-9]+", version)
    if digits is None:
        raise ValueError(f"{version!r} is not a version")
    return int(digits[0])


def warn_of_scikit_learn(description: Mapping[str, Any]) -> None:
    """Warn if the model was fitted with another version of scikit-learn."""
    written = description["versions"].get("scikit-learn")
    if written != sklearn.__version__:
        warn(
            f"the model was fitted with scikit-learn {written}, but this is {sklearn.__version__}: "
            "predictions may differ. Install that version, or fit the model again."
        )


def with_schema(
    content: bytes, translate: Callable[[bytes], bytes], compression: int = zipfile.ZIP_STORED
) -> bytes:
    """Return an archive with a translated schema; its other members stay the same."""
    buffer = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(content)) as old,
        zipfile.ZipFile(buffer, "w", compression) as new,
    ):
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, translate(data) if name == SCHEMA else data)
    return buffer.getvalue()


def damaged(path: Path, error: Exception) -> ValueError:
    """Return the error for a file that cannot be read, with the reason."""
    reason = " ".join(str(error).split()) or type(error).__name__
    return ValueError(
        f"{path} is damaged, or was not written by manyclass ({reason[:200]}). Get a fresh copy, "
        "or fit the model again."
    )
