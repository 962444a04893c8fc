"""The archive of a stored model: its description, its versions, and its schema.

All of this is read and checked before any object of the model is created.
"""

from __future__ import annotations

import io
import json
import re
import tempfile
import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import IO, Any

import numpy as np
import sklearn

import manyclass
from manyclass._lib.messages import warn
from manyclass.storage._forms import MALFORMED, Node, Refused
from manyclass.storage._members import check_member
from manyclass.storage._schema import named_members
from manyclass.storage.trusted_types import identifier

FORMAT = 1
"""Number of the file format. It is raised when earlier releases cannot read new files."""
DESCRIPTION = "manyclass.json"
SCHEMA = "schema.json"  # skops names it so
MAX_BYTES = 2**32  # a choice: 4 GB unpacked, more than a model in memory usually takes
# The schema of thousands of equal columns packs about 40 times. A text that packs more tightly than
# PACKED times, and is larger than LEAST_TEXT bytes, is there to fill the memory. Choices.
LEAST_TEXT, PACKED = 2**20, 100
PARSED = 20  # measured: JSON takes up to 22 times the bytes of its text, that of a schema 4 times


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


@contextmanager
def opened(path: Path, max_bytes: int) -> Iterator[zipfile.ZipFile]:
    """Open the archive of a stored model, after a check of the size that it unpacks to."""
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {path}.")
    with open(path, "rb") as file:
        _check_beginning(path, file.read(2))
        try:
            archive = zipfile.ZipFile(file)
        except Exception as error:
            raise damaged(path, error) from error
        with archive:
            _check_sizes(path, archive.infolist(), max_bytes)
            yield archive


def _check_beginning(path: Path, first: bytes) -> None:
    if first[:1] == b"\x80":
        raise ValueError(
            f"{path} is a pickle. It was not loaded, because a pickle can run any code. Save the "
            "model with manyclass.storage.save_model."
        )
    if first != b"PK":
        raise ValueError(
            f"{path} is not a stored model. Make one with manyclass fit -o, or with "
            "manyclass.storage.save_model."
        )


def _check_sizes(path: Path, members: list[zipfile.ZipInfo], max_bytes: int) -> None:
    """Check the sizes that the members declare; zipfile never reads more than that."""
    names = {member.filename for member in members}
    if len(names) < len(members):
        raise damaged(path, ValueError("two members have the same name"))
    texts = [member for member in members if member.filename in (DESCRIPTION, SCHEMA)]
    size = sum(member.file_size for member in members)
    size += (PARSED - 1) * sum(text.file_size for text in texts)
    if size > max_bytes:
        raise ValueError(
            f"{path} would unpack to {size:,} bytes, more than {max_bytes:,}. It was not loaded. "
            "To load a model of that size, pass max_bytes."
        )
    if DESCRIPTION not in names:
        raise ValueError(
            f"{path} is a zip archive but not a stored model, since it has no {DESCRIPTION}. Save "
            "the model with manyclass.storage.save_model."
        )
    for text in texts:
        if text.file_size > max(LEAST_TEXT, PACKED * text.compress_size):
            raise damaged(path, Refused(f"{text.filename} is packed too tightly"))


def parse_description(path: Path, archive: zipfile.ZipFile) -> dict[str, Any]:
    """Return the description in an archive."""
    try:
        text = _read(archive, DESCRIPTION)
        if sum(map(text.count, (b"[", b"{", b","))) > LEAST_TEXT:
            raise Refused(f"{DESCRIPTION} has too many values")
        try:
            description = json.loads(text)
        except MALFORMED as error:
            raise Refused(f"{DESCRIPTION} is not JSON: {error}") from None
        _check_description(description)
    except Exception as error:
        raise damaged(path, error) from error
    return description


def _check_description(description: Any) -> None:
    """Raise an error unless a description has the keys and the types of :func:`describe`."""
    plain = bool | int | float | str
    kinds: dict[str, Any] = {
        "format": int,
        "versions": dict,
        "estimator": str,
        "n_features": int | None,
        "features": list | None,
        "classes": list | None,
        "metadata": dict,
    }
    if not isinstance(description, dict):
        raise Refused(f"{DESCRIPTION} is not a dictionary")
    for key, kind in kinds.items():
        value = description.get(key)
        if not isinstance(value, kind) or (kind is not dict and isinstance(value, bool)):
            raise Refused(f"{key!r} in {DESCRIPTION} is {str(value)[:40]!r}")
    texts = [*description["versions"].values(), *(description["features"] or ())]
    if not all(isinstance(text, str) for text in texts):
        raise Refused(f"a version or a feature in {DESCRIPTION} is not text")
    _major(description["versions"].get("manyclass", ""))
    if not all(isinstance(label, plain) for label in description["classes"] or ()):
        raise Refused(f"a class in {DESCRIPTION} is not a number or text")


@dataclass(frozen=True)
class CheckedSchema:
    """A schema whose nodes are valid, and the members that they name."""

    text: bytes
    members: dict[str, Node]

    def without_content(self) -> IO[bytes]:
        """Return an archive with empty members, which is enough to list the types in it."""
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w") as archive:
            archive.writestr(SCHEMA, self.text)
            for name in self.members:
                archive.writestr(name, b"")
        return file

    @contextmanager
    def copy(
        self, archive: zipfile.ZipFile, max_bytes: int, *, records: bool, in_memory: int = 2**22
    ) -> Iterator[IO[bytes]]:
        """Copy the members of an archive, each after a check, to a temporary file.

        The copy is what skops reads: it cannot change after the check. Only one member at a time
        is in memory, unless all take less than ``in_memory`` bytes (a choice). For ``records`` see
        :func:`check_member`.
        """
        left = max_bytes
        with tempfile.SpooledTemporaryFile(max_size=in_memory) as file:
            with zipfile.ZipFile(file, "w") as copy:
                copy.writestr(SCHEMA, self.text)
                for name, node in self.members.items():
                    data = _read(archive, name)
                    check_member(name, data, node, left, records=records)
                    left -= len(data)
                    if len(data) > in_memory:  # in memory, it would be there twice
                        file.rollover()
                    copy.writestr(name, data)
            file.seek(0)
            yield file


def _read(archive: zipfile.ZipFile, name: str) -> bytes:
    try:
        with archive.open(name) as member:  # at once, zipfile takes 2.5 times the bytes
            return b"".join(iter(lambda: member.read(2**20), b""))
    except Exception as error:
        raise Refused(f"the member {name[:40]!r} is missing or damaged: {error}") from error


def checked_schema(archive: zipfile.ZipFile, translate: Callable[[bytes], bytes]) -> CheckedSchema:
    """Check the schema of an archive, and translate it."""
    text = _read(archive, SCHEMA)
    members = named_members(text)
    return CheckedSchema(translate(text), members)


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
        raise Refused(f"the version {version[:40]!r} in {DESCRIPTION} is not a version")
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
