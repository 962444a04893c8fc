"""Fitted models in files, by skops: what is not known to be harmless is not loaded.

A file is a zip archive: what :func:`skops.io.dump` writes, and ``manyclass.json``, which
tells what the model is before anything of it is made.
"""

from __future__ import annotations

import io
import json
import os
import warnings
import zipfile
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from sklearn.exceptions import InconsistentVersionWarning

from manyclass._lib.extras import import_extra
from manyclass._lib.files import replace_file
from manyclass.storage._archive import (
    DESCRIPTION,
    MOST_BYTES,
    check_versions,
    damaged,
    describe,
    parse_description,
    read_file,
    warn_of_scikit_learn,
)
from manyclass.storage._checks import check_arrays
from manyclass.storage._parts import make_derived, without_derived
from manyclass.storage.trusted import TRUSTED

__all__ = ["TRUSTED", "load_model", "read_metadata", "save_model"]

NEED = "stored models need"


def save_model(
    estimator, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted estimator to a file: whole, or not at all.

    Parameters
    ----------
    estimator : fitted estimator
        One of ours or scikit-learn's, or a pipeline of them.
    path : path
        Where to; ``.skops`` is the custom. A file of that name is replaced; folders that are
        missing are made.
    metadata : dict, optional
        Anything further that JSON can hold, to be had back by :func:`read_metadata`.

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
    skops = import_extra("skops.io", NEED)
    description = json.dumps(describe(estimator, metadata), indent=2)
    # Written straight to the disk, an interrupt would leave half a model.
    buffer = io.BytesIO()
    skops.dump(without_derived(estimator), buffer, compression=zipfile.ZIP_DEFLATED)
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(DESCRIPTION, description)
    content = buffer.getvalue()
    _warn_untrusted(_untrusted(skops, content, ()))
    replace_file(path, content)


def load_model(
    path: str | os.PathLike[str],
    *,
    trusted: Sequence[str] = (),
    max_bytes: int = MOST_BYTES,
):
    """Read an estimator from a file that :func:`save_model` wrote.

    Only types that are known to do nothing but hold numbers are made: those of
    ``TRUSTED`` and what skops trusts. No code comes from the file. The numbers are
    whoever's wrote it: what a stranger's model predicts is not vouched for.

    Parameters
    ----------
    path : path
        The file.
    trusted : sequence of str, default=()
        Full names of further types to load, such as those of other libraries. Name only
        what you know: a type may run code when it is made.
    max_bytes : int, default=2**32
        Refuse files that take more than this when they are unpacked.

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
        If the file is no model, is damaged or too large, comes from a later version, or
        holds types that are not trusted.

    Examples
    --------
    See :func:`save_model`.
    """
    path = Path(path)
    skops = import_extra("skops.io", NEED)
    content = read_file(path, max_bytes)
    description = parse_description(path, content)
    check_versions(path, description)
    warn_of_scikit_learn(description)
    try:
        return _construct(skops, content, [*TRUSTED, *trusted])
    except import_module("skops.io.exceptions").UntrustedTypesFoundException as error:
        strange = _untrusted(skops, content, trusted)
        raise ValueError(
            f"{path} holds types that are not trusted: {', '.join(strange)}. If you trust them "
            f"and who made the file, pass trusted={strange!r} (--trust on the command line)."
        ) from error
    except Exception as error:
        raise damaged(path, error) from error


def read_metadata(path: str | os.PathLike[str], *, max_bytes: int = MOST_BYTES) -> dict[str, Any]:
    """Tell what a stored model is, without loading it.

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
        "n_features", "features" (their names, or None), "classes" and "metadata", which is
        what was given to :func:`save_model`.

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
    ('manyclass.svm.CoupledSVC', [0, 1, 2], {'rows': 150})
    """
    path = Path(path)
    description = parse_description(path, read_file(path, max_bytes))
    check_versions(path, description)
    return description


def _untrusted(skops, content: bytes, trusted: Sequence[str]) -> list[str]:
    return sorted(set(skops.get_untrusted_types(data=content)) - {*TRUSTED, *trusted})


def _warn_untrusted(strange: list[str]) -> None:
    """Say now what would otherwise be found out when the model is needed."""
    nameless = [name for name in strange if "<" in name]
    if nameless:
        raise ValueError(
            f"the model holds {', '.join(nameless)}, which no file can refer to: define it with a "
            "name, in a module."
        )
    if strange:
        warnings.warn(
            f"load_model will refuse this model unless it is told to trust {', '.join(strange)}: "
            f"pass trusted={strange!r} there.",
            UserWarning,
            stacklevel=3,
        )


def _construct(skops, content: bytes, trusted: list[str]):
    with warnings.catch_warnings():  # of what has been said once for all parts of the model
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = skops.loads(content, trusted=trusted)
    make_derived(model)
    check_arrays(model)
    return model
