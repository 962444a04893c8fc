"""Fitted models in files. Only types that are known to be harmless are loaded.

A file is a zip archive. It holds what :func:`skops.io.dump` writes, and a description,
``manyclass.json``, that can be read without loading the model. Classes of this package appear in
it under stable identifiers; see :mod:`manyclass.storage.trusted_types`.
"""

from __future__ import annotations

import io
import json
import traceback
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from sklearn.base import BaseEstimator
from sklearn.exceptions import InconsistentVersionWarning

from manyclass._lib.extras import import_extra
from manyclass._lib.files import StrPath, replace_file
from manyclass._lib.messages import warn
from manyclass.storage import _archive
from manyclass.storage._archive import MAX_BYTES
from manyclass.storage._checks import check_arrays, check_by_trial, check_values
from manyclass.storage._forms import Refused
from manyclass.storage._parts import make_derived, without_derived
from manyclass.storage._schema import NotLoaded
from manyclass.storage._signature import check_signature, signed
from manyclass.storage.trusted_types import TRUSTED, full_name, to_identifiers, to_places

__all__ = ["SKOPS_TYPES", "TRUSTED", "load_model", "read_metadata", "save_model"]

SKOPS_TYPES: list[str] = [full_name(name) for name in TRUSTED]
"""The types of ``TRUSTED`` by the names that skops, and hence MLflow, uses."""

_NEED = "stored models need"


def save_model(
    estimator,
    path: StrPath,
    *,
    metadata: Mapping[str, Any] | None = None,
    key: bytes | None = None,
) -> None:
    """Write a fitted estimator to a file. If that fails, the earlier file stays.

    Parameters
    ----------
    estimator : fitted estimator
        An estimator of this package or of scikit-learn, or a pipeline of them.
    path : path
        The file, usually with the ending ``.skops``. An existing file is replaced. Missing
        folders are created.
    metadata : dict, optional
        Further values that JSON can hold. :func:`read_metadata` returns them.
    key : bytes, optional
        A secret of at least 16 bytes. The file is signed with it (HMAC, SHA-256), and
        :func:`load_model` can check with the same key that nobody else has written or changed it.

    Warns
    -----
    UserWarning
        If :func:`load_model` will need permission to load the model.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledSVC
    >>> from manyclass.storage import load_model, save_model
    >>> X, y = load_iris(return_X_y=True)
    >>> model = CoupledSVC().fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "iris.skops"
    ...     save_model(model, path)
    ...     loaded = load_model(path)
    >>> (loaded.predict_proba(X) == model.predict_proba(X)).all()
    np.True_
    """
    skops = import_extra("skops.io", _NEED)
    description = json.dumps(_archive.describe(estimator, metadata), indent=2)
    buffer = io.BytesIO()
    skops.dump(without_derived(estimator), buffer, compression=zipfile.ZIP_STORED)
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr(_archive.DESCRIPTION, description)
    _warn_untrusted(_untrusted(skops, buffer, ()))
    content = _archive.with_schema(buffer.getvalue(), to_identifiers, zipfile.ZIP_DEFLATED)
    replace_file(path, content if key is None else signed(content, key))


def load_model(
    path: StrPath,
    *,
    trusted: Sequence[str] = (),
    max_bytes: int = MAX_BYTES,
    key: bytes | None = None,
):
    """Read an estimator from a file that :func:`save_model` wrote.

    The whole file is checked before any object is created. Only trusted types are created: those
    of ``TRUSTED`` and those that skops trusts. They hold numbers and do nothing else. No code
    comes from the file. The numbers come from its author: the predictions of a stranger's model
    may be anything.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str, default=()
        Full names of further types to load, such as those of other libraries. Name only
        types that you know: a type may run code when it is created.
    max_bytes : int, default=2**32
        Refuse files that take more bytes than this when they are unpacked. A byte of the schema or
        the description counts as 20, which it takes in memory.
    key : bytes, optional
        The secret that the file was signed with. A file without this signature is refused.
        Without a key, signatures are not read.

    Returns
    -------
    estimator
        Its predictions are the same to the last bit, with the same versions of
        scikit-learn and numpy.

    Warns
    -----
    UserWarning
        If the file was written with another version of scikit-learn.

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If the file is not a stored model, is damaged or too large, comes from a later version,
        or holds types that are not trusted.

    Examples
    --------
    See :func:`save_model`.
    """
    path = Path(path)
    skops = import_extra("skops.io", _NEED)
    with _archive.opened(path, max_bytes) as archive:
        description = _archive.parse_description(path, archive)
        _archive.check_versions(path, description)
        try:
            if key is not None:
                check_signature(archive, key)
            schema = _archive.checked_schema(archive, to_places)
            _check_trusted(_untrusted(skops, schema.without_content(), trusted))
            with schema.copy(archive, max_bytes, records=bool(trusted)) as copy:
                model = _construct(skops, copy, trusted)
        except NotLoaded as error:
            raise ValueError(f"{path} {error}") from None
        except Exception as error:
            raise _archive.damaged(path, error) from error
    _archive.warn_of_scikit_learn(description)
    return model


def read_metadata(path: StrPath, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Read the description of a stored model, without loading the model.

    Parameters
    ----------
    path : path
        The file.
    max_bytes : int, default=2**32
        See :func:`load_model`.

    Returns
    -------
    dict
        "format", "versions" (of manyclass, scikit-learn, numpy and skops), "estimator",
        "n_features", "features" (their names, or None), "classes" and "metadata" (the argument
        of :func:`save_model`).

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from sklearn.datasets import load_iris
    >>> from manyclass import CoupledSVC
    >>> from manyclass.storage import read_metadata, save_model
    >>> model = CoupledSVC().fit(*load_iris(return_X_y=True))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_model(model, pathlib.Path(folder) / "iris.skops", metadata={"rows": 150})
    ...     described = read_metadata(pathlib.Path(folder) / "iris.skops")
    >>> described["estimator"], described["classes"], described["metadata"]
    ('manyclass.CoupledSVC', [0, 1, 2], {'rows': 150})
    """
    path = Path(path)
    with _archive.opened(path, max_bytes) as archive:
        description = _archive.parse_description(path, archive)
    _archive.check_versions(path, description)
    return description


def _untrusted(skops, file: IO[bytes], trusted: Sequence[str]) -> list[str]:
    """Return the full names of the types in an archive that are not trusted."""
    return sorted(set(skops.get_untrusted_types(file=file)) - set(_allowed(trusted)))


def _allowed(trusted: Sequence[str]) -> list[str]:
    return [full_name(name) for name in (*TRUSTED, *trusted)]


def _check_trusted(strange: list[str]) -> None:
    if strange:
        raise NotLoaded(
            f"holds types that are not trusted: {', '.join(strange)}. If you trust them and the "
            f"author of the file, pass trusted={strange!r} (--trust on the command line)."
        )


def _warn_untrusted(strange: list[str]) -> None:
    """Say now that the model will not load without permission."""
    nameless = [name for name in strange if "<" in name]
    if nameless:
        raise ValueError(
            f"the model holds {', '.join(nameless)}, which a file cannot refer to. Define it with "
            "a name, in a module."
        )
    if strange:
        warn(
            f"load_model will refuse this model unless you trust {', '.join(strange)}: "
            f"pass trusted={strange!r} there."
        )


def _construct(skops, file: IO[bytes], trusted: Sequence[str]):
    with warnings.catch_warnings():  # load_model warns once for all parts of the model
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        try:
            model = skops.load(file, trusted=_allowed(trusted))
        except Exception as error:
            raise Refused(f"{_built(error)} cannot be made of its parts: {error}") from error
    if not isinstance(model, BaseEstimator):
        raise Refused(f"it holds a {type(model).__name__}, which is not an estimator")
    for step in (check_values, make_derived, check_arrays, check_by_trial):
        try:
            step(model)
        except Refused:
            raise
        except Exception as error:  # of a library that works with a part
            what = type(model).__name__
            raise Refused(f"a part of {what} fails in {step.__name__}: {error}") from error
    return model


def _built(error: Exception) -> str:
    """Return the type that skops was creating when an error occurred."""
    frames = traceback.walk_tb(error.__traceback__)
    nodes: list[Any] = [frame.f_locals.get("self") for frame, _ in frames]
    names = [str(node.class_name) for node in nodes if hasattr(node, "class_name")]
    return names[-1] if names else "the model"
