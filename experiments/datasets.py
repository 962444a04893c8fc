"""The papers' data sets, by name: from scikit-learn, a folder of files, or OpenML."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.datasets import fetch_openml
from sklearn.model_selection import train_test_split

from manyclass._lib.messages import quoted
from manyclass.app.bundled import BUNDLED

_Seed = int | np.random.RandomState | None


class _OpenML(NamedTuple):
    """A copy on OpenML, and what is known about the order of its rows."""

    name: str
    data_id: int
    n_train: int | None = None
    first_labels: str = ""


class _Source(NamedTuple):
    n_features: int
    openml: _OpenML | None
    categorical: bool = False


# The split of letter and MNIST is by row order. It is applied to a copy only if the first
# labels of the copy show the same order.
_SOURCES: dict[str, _Source] = {
    "dna": _Source(180, _OpenML("dna", 40670)),
    "letter": _Source(16, _OpenML("letter", 6, 16000, "TIDNGSBAJM")),
    "mnist": _Source(784, _OpenML("mnist_784", 554, 60000, "5041921314")),
    "mnist5k": _Source(784, None),
    "pendigits": _Source(16, _OpenML("pendigits", 32)),
    "satimage": _Source(36, _OpenML("satimage", 182)),
    "segment": _Source(19, _OpenML("segment", 36)),
    "soybean": _Source(35, _OpenML("soybean", 42), categorical=True),
    "usps": _Source(256, _OpenML("USPS", 41082)),
    # OpenML's waveform-5000 is Version 2 of the generator: 19 more features, all noise.
    "waveform": _Source(21, None),
}


@dataclass(frozen=True, eq=False)
class Dataset:
    """A classification data set; see :func:`load`."""

    name: str
    """The name given to :func:`load`."""
    X: NDArray[np.float64]
    """Features, shape (n, d). Missing values are NaN."""
    y: NDArray[Any]
    """Class labels, integers or strings as in the source, shape (n,)."""
    split: NDArray[np.str_] | None
    """``"train"`` or ``"test"`` for each row where the source defines a split."""
    feature_names: tuple[str, ...]
    """One name for each column of ``X``."""
    categorical: bool
    """Whether the columns of ``X`` are codes without order or scale.

    What ``categorical_features`` of :class:`~manyclass.learners.BoostedNaiveBayes` takes.
    """
    source: str
    """Where it was found: a file, scikit-learn, or OpenML."""

    def train_test(
        self, random_state: _Seed = None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[Any], NDArray[Any]]:
        """Return ``X_train, X_test, y_train, y_test``.

        Parameters
        ----------
        random_state : int, RandomState or None, default=None
            Seed of the stratified half split that is made when the source
            defines none. It has no effect otherwise.
        """
        if self.split is None:
            X_train, X_test, y_train, y_test = train_test_split(
                self.X, self.y, test_size=0.5, stratify=self.y, random_state=random_state
            )
            return X_train, X_test, y_train, y_test
        train = self.split == "train"
        return self.X[train], self.X[~train], self.y[train], self.y[~train]


def names() -> list[str]:
    """Return the names :func:`load` knows, in alphabetical order."""
    return sorted([*BUNDLED, *_SOURCES])


def load(name: str, *, data_home: str | os.PathLike[str] | None = None) -> Dataset:
    """Load a data set by name.

    iris, wine, digits and breast-cancer come with scikit-learn. The others are
    looked for as ``<name>.csv.gz`` in `data_home`, then in the folder that the
    environment variable ``MANYCLASS_DATA`` names, then on OpenML, which
    scikit-learn caches. waveform and mnist5k are not on OpenML.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    data_home : path, optional
        Folder to search first.

    Returns
    -------
    Dataset

    Raises
    ------
    FileNotFoundError
        If no folder has the file and OpenML cannot help.
    ValueError
        If the name is unknown, or the data found are damaged.

    Notes
    -----
    A file is a gzip-compressed CSV: a header, the feature columns (``?`` stands
    for a missing value), optionally a column ``split`` of ``train`` and
    ``test``, and a last column ``class``.

    Copies on OpenML carry no split, may code classes and categories
    differently, and may order or select rows differently (satimage). For
    letter and MNIST, whose split is by row order (the first 16000 and 60000
    rows train), ``split`` is filled in if the first labels of the copy show
    that order; it is None in all other cases.

    Examples
    --------
    >>> from experiments.datasets import load
    >>> iris = load("iris")
    >>> X_train, X_test, y_train, y_test = iris.train_test(random_state=0)
    >>> X_train.shape, X_test.shape
    ((75, 4), (75, 4))
    """
    if name in BUNDLED:
        return _from_sklearn(name)
    if name not in _SOURCES:
        raise ValueError(f"unknown data set {quoted(name)}: use one of {', '.join(names())}.")
    candidates = [folder / f"{name}.csv.gz" for folder in _folders(data_home)]
    for path in candidates:
        if path.is_file():
            return _from_file(name, path)
    return _from_openml(name, candidates)


def _folders(data_home: str | os.PathLike[str] | None) -> list[Path]:
    if data_home is not None and not Path(data_home).is_dir():
        raise ValueError(f"data_home={os.fspath(data_home)!r} is not a folder.")
    named = [data_home, os.environ.get("MANYCLASS_DATA")]
    return [Path(folder) for folder in named if folder]


def _from_sklearn(name: str) -> Dataset:
    bunch = BUNDLED[name]()
    return Dataset(
        name=name,
        X=np.asarray(bunch.data, dtype=np.float64),
        y=np.asarray(bunch.target_names)[bunch.target],
        split=None,
        feature_names=tuple(map(str, bunch.feature_names)),
        categorical=False,
        source="scikit-learn",
    )


def _from_file(name: str, path: Path) -> Dataset:
    try:
        features, X, split, y = _read(path)
        _check_n_features(name, len(features))
    # What gzip, zlib, the decoder and numpy raise on damaged input.
    except (EOFError, gzip.BadGzipFile, zlib.error, ValueError) as error:
        raise ValueError(
            f"{path} is damaged or not a data set file: {str(error).rstrip('.')}. Get a fresh "
            f"copy, or move the file away to have {name!r} looked for elsewhere."
        ) from error
    return Dataset(name, X, y, split, features, _SOURCES[name].categorical, str(path))


def _read(
    path: Path,
) -> tuple[tuple[str, ...], NDArray[np.float64], NDArray[np.str_] | None, NDArray[Any]]:
    """Read a file of the format described in :func:`load`."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        header = file.readline().rstrip("\n").split(",")
        n_tail = 2 if header[-2:-1] == ["split"] else 1
        if header[-1] != "class" or len(header) <= n_tail:
            raise ValueError("the header must be feature names, perhaps 'split', and 'class'.")
        first = file.readline()
        if not first:
            raise ValueError("there are no rows after the header.")
        tails: list[list[str]] = []
        heads = _split_lines(chain([first], file), n_tail, tails)
        # numpy's own parser, fed line by line: the text is never held in memory.
        X = np.loadtxt(heads, delimiter=",", comments=None, ndmin=2, dtype=np.float64)
    features = tuple(header[:-n_tail])
    if X.shape != (len(tails), len(features)):
        raise ValueError(
            f"the header names {len(features)} features and there are {len(tails)} lines, but "
            f"the numbers read have shape {X.shape}."
        )
    *split, y = np.array(tails).T
    if split and not np.isin(split[0], ["train", "test"]).all():
        raise ValueError("column 'split' must hold 'train' and 'test' only.")
    return features, X, split[0] if split else None, _labels(y)


def _split_lines(lines: Iterable[str], n_tail: int, tails: list[list[str]]) -> Iterator[str]:
    """Yield the features of each line; append its last `n_tail` fields to `tails`."""
    for line in lines:
        head, *tail = line.rstrip("\n").rsplit(",", n_tail)
        tails.append(tail)
        yield head.replace("?", "nan")


def _labels(y: NDArray[Any]) -> NDArray[Any]:
    """Return integers if all labels are integers, else strings."""
    labels = np.asarray(y, dtype=np.str_)
    try:
        return labels.astype(np.int64)
    except ValueError:
        return labels


def _check_n_features(name: str, found: int) -> None:
    expected = _SOURCES[name].n_features
    if found != expected:
        raise ValueError(f"{name} has {expected} features, but {found} were found.")


def _from_openml(name: str, candidates: list[Path]) -> Dataset:
    looked_for = " and ".join(map(str, candidates)) or f"{name}.csv.gz (no folder was named)"
    remedy = (
        f"Put {name}.csv.gz in a folder and name the folder by the argument data_home or the "
        f"environment variable MANYCLASS_DATA"
    )
    openml = _SOURCES[name].openml
    if openml is None:
        raise FileNotFoundError(
            f"data set {name!r} was not found: looked for {looked_for}; OpenML has no copy of it. "
            f"{remedy}."
        )
    try:
        # This parser turns categories into codes, and needs no pandas.
        bunch = fetch_openml(data_id=openml.data_id, as_frame=False, parser="liac-arff")
    except (OSError, ValueError) as error:
        raise FileNotFoundError(
            f"data set {name!r} was not found: looked for {looked_for}, then for {openml.name!r} "
            f"(id {openml.data_id}) on OpenML, which failed: {error}. {remedy}, or make OpenML "
            f"reachable."
        ) from error
    return _dataset_from_openml(name, openml, bunch)


def _dataset_from_openml(name: str, openml: _OpenML, bunch: Any) -> Dataset:
    X = bunch.data.toarray() if issparse(bunch.data) else bunch.data
    _check_n_features(name, X.shape[1])
    split = None
    if openml.n_train is not None and "".join(map(str, bunch.target[:10])) == openml.first_labels:
        split = np.where(np.arange(len(X)) < openml.n_train, "train", "test")
    return Dataset(
        name=name,
        X=np.asarray(X, dtype=np.float64),
        y=_labels(bunch.target),
        split=split,
        feature_names=tuple(map(str, bunch.feature_names)),
        categorical=_SOURCES[name].categorical,
        source=f"OpenML {openml.data_id}",
    )
