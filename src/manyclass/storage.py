"""Fitted models in files, by skops: what is not known to be harmless is not loaded.

A file is a zip archive: what :func:`skops.io.dump` writes, and ``manyclass.json``, which
tells what the model is before anything of it is made.
"""

from __future__ import annotations

import copy
import io
import json
import os
import warnings
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import sklearn
from scipy.sparse import issparse
from sklearn.exceptions import InconsistentVersionWarning
from sklearn.neighbors import BallTree, KDTree

import manyclass
from manyclass._coupled import CoupledBase
from manyclass._files import replace_file
from manyclass.banks.kernel import KernelBank, KernelMachine
from manyclass.banks.kernel_logistic import KernelLogisticBank, KernelLogisticMachine

__all__ = ["TRUSTED", "load_model", "read_metadata", "save_model"]

FORMAT = 1
"""Raised when files of this version can no longer be read by the one before."""
DESCRIPTION = "manyclass.json"
MOST_BYTES = 2**32  # of a model in memory
MOST_DESCRIPTION = 2**26  # bytes of its description

TRUSTED: tuple[str, ...] = (
    "manyclass._reservoir.Reservoir",
    "manyclass.app.columns.DaysSince1970",
    "manyclass.banks.generic.Bank",
    "manyclass.banks.generic.ConstantModel",
    "manyclass.banks.kernel.Group",
    "manyclass.banks.kernel.KernelBank",
    "manyclass.banks.kernel_logistic.KernelLogisticBank",
    "manyclass.banks.kernels.Kernel",
    "manyclass.banks.linear.LinearBank",
    "manyclass.calibration.Isotonic",
    "manyclass.calibration.Sigmoid",
    "manyclass.classifier.CoupledClassifier",
    "manyclass.coupling.general.KullbackLeibler",
    "manyclass.coupling.general.LeastSquares",
    "manyclass.coupling.general.NonIterative",
    "manyclass.coupling.general.Normalize",
    "manyclass.coupling.general.Zadrozny",
    "manyclass.coupling.pairwise.HastieTibshirani",
    "manyclass.coupling.pairwise.HastieTibshiraniNonIterative",
    "manyclass.coupling.pairwise.Logit",
    "manyclass.coupling.pairwise.PriceEtAl",
    "manyclass.coupling.pairwise.RefregierVallet",
    "manyclass.coupling.pairwise.Vote",
    "manyclass.coupling.pairwise.WuLinWeng1",
    "manyclass.coupling.pairwise.WuLinWeng2",
    "manyclass.decisions.classifier.DecisionClassifier",
    "manyclass.decoding.Hamming",
    "manyclass.decoding.LossBased",
    "manyclass.decoding.LossWeighted",
    "manyclass.decoding.MaxWins",
    "manyclass.decoding.WinnerTakesAll",
    "manyclass.incremental.Stream",
    "manyclass.learners._binning.Bins",
    "manyclass.learners._binning.Categories",
    "manyclass.learners._binning.EqualWidth",
    "manyclass.learners.boosted_naive_bayes.BoostedNaiveBayes",
    "manyclass.learners.kernel_logistic.KernelLogisticRegression",
    "manyclass.learners.naive_bayes.BinnedNaiveBayes",
    "manyclass.learners.neighbors.PairwiseNeighbors",
    "manyclass.learners.thresholds.ThresholdOptimized",
    "manyclass.reliability.DynamicReliability",
    "manyclass.reliability.Neighbours",
    "manyclass.reliability.StaticReliability",
    "manyclass.reliability_decoding.DynamicReliabilityCV",
    "manyclass.reliability_decoding.DynamicReliabilityDecoder",
    "manyclass.reliability_decoding.StaticReliabilityDecoder",
    "manyclass.softmax.SimplifiedSoftmax",
    "manyclass.softmax.Softmax",
    "manyclass.svm.CoupledSVC",
    "numpy.dtype",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
)
"""What is loaded without being asked for, besides what skops trusts: plain Python values, numpy's
arrays and scikit-learn's estimators. scikit-learn's decision trees are not among them: its compiled
code follows the places they name without a check."""


def save_model(
    estimator, path: str | os.PathLike[str], *, metadata: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted estimator to a file: whole, or not at all.

    Parameters
    ----------
    estimator : fitted estimator
        One of ours or scikit-learn's, or a pipeline of them.
    path : path
        Where to; ``.skops`` is the custom. A file of that name is replaced.
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
    skops = _skops()
    description = json.dumps(_describe(estimator, metadata), indent=2)
    # Written straight to the disk, an interrupt would leave half a model.
    buffer = io.BytesIO()
    skops.dump(_without_derived(estimator), buffer, compression=zipfile.ZIP_DEFLATED)
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
    skops = _skops()
    content = _read(path, max_bytes)
    description = _parse_description(path, content)
    _check_versions(path, description)
    _warn_of_scikit_learn(description)
    try:
        return _construct(skops, content, [*TRUSTED, *trusted])
    except import_module("skops.io.exceptions").UntrustedTypesFoundException as error:
        strange = _untrusted(skops, content, trusted)
        raise ValueError(
            f"{path} holds types that are not trusted: {', '.join(strange)}. If you trust them "
            f"and who made the file, pass trusted={strange!r} (--trust on the command line)."
        ) from error
    except Exception as error:
        raise _damaged(path, error) from error


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
    description = _parse_description(path, _read(path, max_bytes))
    _check_versions(path, description)
    return description


def _skops() -> Any:
    try:
        return import_module("skops.io")
    except ImportError as error:
        raise ImportError("stored models need skops: run pip install 'manyclass[app]'.") from error


def _untrusted(skops, content: bytes, trusted: Sequence[str]) -> list[str]:
    return sorted(set(skops.get_untrusted_types(data=content)) - {*TRUSTED, *trusted})


# ---------------------------------------------------------------------- what is written


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


def _describe(estimator, metadata: Mapping[str, Any] | None) -> dict[str, Any]:
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


def _reachable(whole: Any) -> Iterator[Any]:
    """Yield all objects that are part of a model, each once."""
    seen: dict[int, Any] = {}
    waiting = [whole]
    while waiting:
        part = waiting.pop()
        # Classes and functions belong to libraries, not to the model.
        if id(part) in seen or isinstance(part, type | FunctionType | MethodType | ModuleType):
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, Mapping):
            waiting.extend(part.values())
        elif isinstance(part, list | tuple | set | frozenset):
            waiting.extend(part)
        elif hasattr(part, "__dict__"):
            waiting.extend(vars(part).values())


def _without_derived(estimator):
    """Return a copy without what is better made again; its arrays are shared, not copied.

    The machines of a kernel bank point back at it, in a circle. The trees of neighbour
    searches are full of places in memory, which nobody could check.
    """
    memo: dict[int, Any] = {}
    for part in _reachable(estimator):
        if isinstance(part, KernelBank):
            memo[id(part.models)] = None
        elif _tree_of(part) is not None:
            memo[id(part._tree)] = None
        elif isinstance(part, np.ndarray):
            memo[id(part)] = part
    return copy.deepcopy(estimator, memo)


def _tree_of(part: Any) -> type | None:
    """Return the type of tree by which an estimator of scikit-learn searches neighbours."""
    trees = {"kd_tree": KDTree, "ball_tree": BallTree}
    return trees.get(getattr(part, "_fit_method", "")) if hasattr(part, "_tree") else None


def _make_derived(model) -> None:
    """Make again what :func:`_without_derived` left out."""
    for part in list(_reachable(model)):
        if isinstance(part, KernelBank):
            machine = KernelLogisticMachine if type(part) is KernelLogisticBank else KernelMachine
            part.models = [machine(part, column) for column in range(len(part.intercept))]
        tree = _tree_of(part)
        if tree is not None:
            options = part.effective_metric_params_
            part._tree = tree(part._fit_X, part.leaf_size, metric=part.effective_metric_, **options)


# ---------------------------------------------------------------------- what is read


def _read(path: Path, max_bytes: int) -> bytes:
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
        raise _damaged(path, error) from error
    names = [member.filename for member in members]
    if len(set(names)) < len(names):
        raise _damaged(path, ValueError("members of the same name"))
    return {member.filename: member.file_size for member in members}


def _parse_description(path: Path, content: bytes) -> dict[str, Any]:
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            if archive.getinfo(DESCRIPTION).file_size > MOST_DESCRIPTION:
                raise ValueError(f"{DESCRIPTION} is too large")
            description = json.loads(archive.read(DESCRIPTION))
        number, versions = description["format"], description["versions"]
        if not isinstance(number, int) or not isinstance(versions["manyclass"], str):
            raise TypeError(f"{DESCRIPTION} is not as it should be")
    except Exception as error:
        raise _damaged(path, error) from error
    return dict(description)


def _check_versions(path: Path, description: Mapping[str, Any]) -> None:
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
    first = version.partition(".")[0]
    return int(first) if first.isdecimal() else 0


def _warn_of_scikit_learn(description: Mapping[str, Any]) -> None:
    written = description["versions"].get("scikit-learn")
    if written != sklearn.__version__:
        warnings.warn(
            f"the model was fitted with scikit-learn {written}, this is {sklearn.__version__}: "
            "what it predicts may differ. Install that version, or fit the model again.",
            UserWarning,
            stacklevel=3,
        )


def _construct(skops, content: bytes, trusted: list[str]):
    with warnings.catch_warnings():  # of what has been said once for all parts of the model
        warnings.simplefilter("ignore", InconsistentVersionWarning)
        model = skops.loads(content, trusted=trusted)
    _make_derived(model)
    _check_arrays(model)
    return model


def _check_arrays(model) -> None:
    """Check what compiled code takes for granted: places within arrays, and their shapes."""
    fits = True
    for part in _reachable(model):
        if issparse(part):
            part.check_format(full_check=True)
        elif isinstance(part, KernelBank):
            l = len(part.intercept)
            fits &= all(g.duals.shape == (g.vectors.shape[0], l) for g in part.groups)
        elif isinstance(part, CoupledBase) and hasattr(part, "code_"):
            k, l = part.code_.shape
            shapes = np.shape(part.classes_), np.shape(part.weights_), len(part.bank_.models)
            fits &= part.code_.dtype == np.int8 and shapes == ((k,), (l,), l)
    if not fits:
        raise ValueError("its arrays do not fit each other")


def _damaged(path: Path, error: Exception) -> ValueError:
    reason = " ".join(str(error).split()) or type(error).__name__
    return ValueError(
        f"{path} is damaged, or was not written by manyclass ({reason[:200]}): get a fresh copy, "
        "or fit the model again."
    )
