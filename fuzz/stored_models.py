"""Crafted model files: each is refused with a reason, or it predicts valid probabilities.

A file that was written by ``save_model`` is changed in one to three places: values, types and
references in its schema, headers and numbers of its arrays, index arrays of its sparse matrices,
its description.

    python -m fuzz.stored_models --inputs 20000

A file is made from its number alone: ``--first 123 --inputs 1`` repeats one. With the environment
variable NUMBA_BOUNDSCHECK=1, compiled code checks its indices, too.
"""

from __future__ import annotations

import argparse
import faulthandler
import io
import json
import sys
import tempfile
import time
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from fuzz.arrays import Rng, chance, one_of
from manyclass import CoupledClassifier, CoupledSVC
from manyclass.storage import load_model, save_model

X, y = load_iris(return_X_y=True)
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 7, 2**31, 2**70, 0.5, -1e308, "", "x", "__dict__", [], {}, [[]],
    {"__array_interface__": 1}, "9" * 50,
)  # fmt: skip
ODD_NUMBERS = (0.0, -1.0, 1e308, -1e308, np.nan, np.inf, -np.inf, 5e-324, 2.0**31)


class Refusal(Exception):
    """The file was refused, with a reason and in time."""


@cache
def models() -> tuple[dict[str, bytes], ...]:
    """Return the members of some stored models."""
    kinds = [
        CoupledSVC(),
        CoupledSVC(kernel="linear", calibration="isotonic", scaling="temperature"),
        CoupledClassifier(LogisticRegression(max_iter=500), code="one-vs-rest", cv=3),
        CoupledClassifier(GaussianNB(), code="native", calibration="beta", cv=3),
        CoupledClassifier(GaussianNB(), random_state=np.random.RandomState(0), cv=3),
    ]
    found = []
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for model in kinds:
            save_model(model.fit(X, y), path := Path(folder) / "m.skops")
            with zipfile.ZipFile(path) as archive:
                found.append({name: archive.read(name) for name in archive.namelist()})
    return tuple(found)


def load_crafted(rng: Rng) -> None:
    """``load_model`` of a changed file, and a prediction."""
    members = dict(models()[int(rng.integers(len(models())))])
    for _ in range(int(rng.integers(1, 4))):
        one_of(rng, change_schema, change_schema, change_array, change_description)(rng, members)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.skops"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        model = _loaded(path)
    _check_answers(model)


def _loaded(path: Path) -> Any:
    started = time.process_time()
    try:
        return load_model(path)
    except ValueError as error:
        seconds, reason = time.process_time() - started, str(error)
    if seconds > 1.0 or len(reason) < 40:
        raise AssertionError(f"refused after {seconds:.1f} s: {reason}")
    raise Refusal(reason)


def _check_answers(model: Any) -> None:
    from fuzz.targets import check_probabilities

    rows = X[::30, : model.n_features_in_]
    check_probabilities(model.predict_proba(rows), (len(rows), len(model.classes_)))
    if len(model.predict(rows)) != len(rows):
        raise AssertionError("labels are missing")


def change_schema(rng: Rng, members: dict[str, bytes]) -> None:
    """Change, swap, copy or remove a value of the schema."""
    schema = json.loads(members["schema.json"])
    places = list(_places(schema))
    container, key = places[int(rng.integers(len(places)))]
    other, other_key = places[int(rng.integers(len(places)))]
    action = int(rng.integers(5))
    if action == 0:
        container[key] = one_of(rng, *ODD)
    elif action == 1:
        container[key] = json.loads(json.dumps(other[other_key]))
    elif action == 2:
        container[key], other[other_key] = other[other_key], container[key]
    elif action == 3 and isinstance(container, dict):
        del container[key]
        container[str(one_of(rng, "__class__", "__array_interface__", "content", "x"))] = None
    else:
        container[key] = (
            {**container, "__id__": one_of(rng, 1, container.get("__id__"))}
            if (isinstance(container, dict))
            else []
        )
    try:
        members["schema.json"] = json.dumps(schema).encode()
    except (ValueError, RecursionError):  # it contains itself, which JSON cannot say
        pass


def _places(tree: Any):
    """Yield containers and keys of all values in a tree of JSON."""
    waiting = [tree]
    while waiting:
        part = waiting.pop()
        pairs = part.items() if isinstance(part, dict) else enumerate(part)
        for key, value in pairs:
            yield part, key
            if isinstance(value, dict | list):
                waiting.append(value)


def change_array(rng: Rng, members: dict[str, bytes]) -> None:
    """Change the header or the numbers of an array, or of a part of a sparse matrix."""
    names = [name for name in members if name.endswith((".npy", ".npz"))]
    if not names:
        return
    name = names[int(rng.integers(len(names)))]
    if name.endswith(".npy"):
        members[name] = _changed(rng, members[name])
        return
    with zipfile.ZipFile(io.BytesIO(members[name])) as archive:
        parts = {part: archive.read(part) for part in archive.namelist()}
    part = list(parts)[int(rng.integers(len(parts)))]
    parts[part] = _changed(rng, parts[part])
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for part, data in parts.items():
            archive.writestr(part, data)
    members[name] = buffer.getvalue()


def _changed(rng: Rng, data: bytes) -> bytes:
    changes: tuple[Callable[[], bytes], ...] = (
        lambda: _renumbered(rng, data),
        lambda: _reshaped(rng, data),
        lambda: data.replace(b"<f8", one_of(rng, b"|O8", b"|V8", b"<i8", b"<U2", b">f8", b"<M8")),
        lambda: data.replace(
            b"(", one_of(rng, b"(-1, ", b"(99, ", b"(0, ", b"(4611686018427387904, ")
        ),
        lambda: data[: int(rng.integers(len(data)))],
    )
    return changes[int(rng.integers(len(changes)))]()


def _renumbered(rng: Rng, data: bytes) -> bytes:
    array = np.load(io.BytesIO(data))
    if array.size == 0 or array.dtype.kind not in "fiub":
        return data
    values = ODD_NUMBERS if array.dtype.kind == "f" else (0, 1, -1, 7, 127, -128)
    places = slice(None) if chance(rng, 0.2) else int(rng.integers(array.size))
    with np.errstate(all="ignore"):
        array.reshape(-1)[places] = np.array(one_of(rng, *values)).astype(array.dtype)
    return _saved(array)


def _reshaped(rng: Rng, data: bytes) -> bytes:
    array = np.load(io.BytesIO(data))
    return _saved(
        one_of(
            rng,
            array[..., None],
            array.ravel(),
            array[:1],
            array.T,
            np.concatenate([array.ravel()] * 2),
        )
        if array.ndim
        else array
    )


def _saved(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array, allow_pickle=False)
    return buffer.getvalue()


def change_description(rng: Rng, members: dict[str, bytes]) -> None:
    """Change a value of the description."""
    described = json.loads(members["manyclass.json"])
    if isinstance(described, dict) and described:
        key = one_of(rng, *described)
        described[key] = one_of(rng, *ODD)
    members["manyclass.json"] = json.dumps(described).encode()


def attack(seed: int) -> str:
    """Load the file of a seed; return "refused" or "answered", or raise a fault."""
    rng = np.random.default_rng(seed)
    try:
        load_crafted(rng)
    except Refusal:
        return "refused"
    return "answered"


def main() -> int:
    """Attack with as many files as the command line says."""
    parser = argparse.ArgumentParser(prog="fuzz.stored_models", description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=20_000, help="how many files")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    arguments = parser.parse_args()
    faulthandler.enable()
    outcomes: Counter[str] = Counter()
    for seed in range(arguments.first, arguments.first + arguments.inputs):
        if seed % 500 == 0:
            print(f"{seed - arguments.first} of {arguments.inputs}", file=sys.stderr, flush=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                outcomes[attack(seed)] += 1
        except Exception as error:
            outcomes["fault"] += 1
            print(f"FAULT {seed}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    print(", ".join(f"{count} {outcome}" for outcome, count in sorted(outcomes.items())))
    return 1 if outcomes["fault"] else 0


if __name__ == "__main__":
    sys.exit(main())
