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
import ctypes
import faulthandler
import io
import json
import re
import sys
import tempfile
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC, LinearSVC

from fuzz.arrays import Rng, chance, one_of
from manyclass import CoupledClassifier, CoupledSVC, CoupledSVCCV
from manyclass.codes import ClassTrees, Hierarchy, QAry
from manyclass.combiners.srm_drm import DynamicReliabilityDecoder
from manyclass.decisions import DecisionClassifier
from manyclass.learners import (
    BinnedNaiveBayes,
    BoostedNaiveBayes,
    KernelLogisticRegression,
    PairwiseNeighbors,
    ThresholdOptimized,
)
from manyclass.storage import load_model, save_model
from manyclass.storage._forms import Refused

X, y = load_iris(return_X_y=True)
six = 2 * y + np.arange(len(y)) % 2  # classes
ODD: tuple[Any, ...] = (
    None, True, 0, -1, 1, 7, 2**31, 2**70, 0.5, -1e308, "", "x", "__dict__", [], {}, [[]],
    {"__array_interface__": 1}, "9" * 50,
)  # fmt: skip
ODD_VALUES = ("0", "-1", "1", "2", "7", "4611686018427387904", "1e308", "-0.5", "NaN", "Infinity",
              "true", "null", '"x"', '"auto"')  # fmt: skip
ODD_NUMBERS = (0.0, -1.0, 1e308, -1e308, np.nan, np.inf, -np.inf, 5e-324, 2.0**31)
N_FEATURES = 2000
"""Of the model with the largest arrays."""
SECONDS = 1.0
OBJECTS = 1_500_000
"""Bytes for the schema and the objects of a small model, in addition to the arrays."""
TRACED = 0.125
"""Share of the files whose memory is traced."""
RESETS = Path("/proc/self/clear_refs")
"""Linux forgets the most memory of a process when 5 is written here. Elsewhere, all are traced."""
M_MMAP_THRESHOLD = -3  # of malloc.h
MEMBER = re.compile(r"[0-9]+\.np[yz]|\.json")


class Report(NamedTuple):
    """What became of a file."""

    outcome: str
    seconds: float
    memory: int
    declared: int


@cache
def models() -> tuple[dict[str, bytes], ...]:
    """Return the members of some stored models."""
    small = {"random_state": 0, "cv": 3}
    kinds: list[tuple[Any, Any]] = [
        (CoupledSVC(), y),
        (CoupledSVC(kernel="linear", calibration="isotonic", scaling="temperature"), y),
        (CoupledClassifier(LogisticRegression(max_iter=500), code="one-vs-rest", cv=3), y),
        (CoupledClassifier(GaussianNB(), code="native", calibration="beta", cv=3), y),
        (CoupledClassifier(GaussianNB(), random_state=np.random.RandomState(0), cv=3), y),
        (DecisionClassifier(CoupledSVC(), cost=np.ones((3, 3)) - np.eye(3)), y),
        (CoupledSVCCV(Cs=2, gammas=2), y),
        (CoupledClassifier(GaussianNB(), code=ClassTrees(n_trees=2), **small), six),
        (CoupledClassifier(GaussianNB(), code=QAry(3, n_trees=1), **small), six),
        (CoupledClassifier(GaussianNB(), code=Hierarchy([[0, 1], [2, [3, 4, 5]]]), **small), six),
        (CoupledClassifier(FrozenEstimator(GaussianNB().fit(X, y)), code="native"), y),
        (CoupledClassifier(PairwiseNeighbors(), cv=3), y),
        (CoupledClassifier(KNeighborsClassifier(3), cv=3, with_native=True), y),
        (CoupledClassifier(KernelLogisticRegression(), cv="loo"), y),
        (CoupledClassifier(BoostedNaiveBayes(), combiner="softmax", **small), y),
        (CoupledClassifier(BinnedNaiveBayes(), combiner="logit", **small), y),
        (CoupledClassifier(ThresholdOptimized(LinearSVC()), combiner="max-wins", **small), y),
        (
            CoupledClassifier(
                LinearSVC(),
                code="one-vs-rest",
                combiner=DynamicReliabilityDecoder(n_neighbors=5),
                **small,
            ),
            y,
        ),
        (CoupledClassifier(make_pipeline(KMeans(4, n_init=1), SVC()), **small), y),
        # the last has arrays of N_FEATURES
        (CoupledClassifier(GaussianNB(), calibration=None, scaling=None, cv=None), y),
    ]
    found = []
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        for model, labels in kinds:
            rows = np.tile(X, N_FEATURES // 4) if model is kinds[-1][0] else X
            save_model(model.fit(rows, labels), path := Path(folder) / "m.skops")
            _check_answers(load_model(path))  # reads the compiled code that all files need
            with zipfile.ZipFile(path) as archive:
                found.append({name: archive.read(name) for name in archive.namelist()})
    return tuple(found)


def load_crafted(rng: Rng) -> Report:
    """``load_model`` of a changed file, and a prediction."""
    members = dict(models()[int(rng.integers(len(models())))])
    changes = (change_schema, change_value, change_array, change_description, change_members)
    for _ in range(int(rng.integers(1, 4))):
        # an earlier change has removed what this one changes
        with suppress(KeyError, ValueError, AttributeError, zipfile.BadZipFile):
            one_of(rng, *changes)(rng, members)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "m.skops"
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                archive.writestr(name, data)
        declared = sum(map(len, members.values()))
        model, report = _loaded(path, declared, traced=chance(rng, TRACED) or not RESETS.exists())
    if model is not None:
        _check_answers(model)
    return report


def _loaded(path: Path, declared: int, *, traced: bool) -> tuple[Any, Report]:
    """Load a file; check the time, the memory and the reason of a refusal.

    The memory is what the process grows by, or what Python and numpy ask for if it is ``traced``,
    which takes four times as long.
    """
    model, reason, seconds, memory = _measured(path, traced=traced)
    if memory > (limit := 2 * declared + OBJECTS):  # perhaps of machine code, which is there now
        memory = _measured(path, traced=True)[-1]
    if (seconds > SECONDS and reason is not None) or memory > limit:
        raise AssertionError(f"{seconds:.1f} s, {memory:,} bytes of {declared:,}: {reason}")
    if reason is not None:
        _check_reason(reason)
    return model, Report("refused" if reason else "answered", seconds, memory, declared)


def _measured(path: Path, *, traced: bool) -> tuple[Any, ValueError | None, float, int]:
    """Return a model or the reason of its refusal, the seconds and the most memory."""
    model, reason = None, None
    if traced:
        tracemalloc.start()
    before = _resident("VmRSS", reset=True)
    started = time.process_time()
    try:
        model = load_model(path)
    except ValueError as error:
        reason = error
    seconds, memory = time.process_time() - started, _resident("VmHWM") - before
    if traced:
        memory = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    return model, reason, seconds, memory


def _resident(name: str, *, reset: bool = False) -> int:
    """Return the bytes of this process in memory, or the most of them since a reset."""
    if not RESETS.exists():
        return 0
    if reset:
        RESETS.write_text("5")
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.partition(f"{name}:")[2].split()[0])


def _map_large_blocks() -> None:
    """Have blocks from 128 kB on mapped one by one: memory grows by them, and shrinks again."""
    ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, 2**17)


def _check_reason(error: ValueError) -> None:
    """The reason is one of ours, or names a member of the archive."""
    ours = error.__cause__ is None or isinstance(error.__cause__, Refused)
    if len(str(error)) < 40 or not (ours or MEMBER.search(str(error).partition("m.skops")[2])):
        raise AssertionError(f"the reason names no part: {error}")


def _check_answers(model: Any) -> None:
    from fuzz.targets import check_probabilities

    n_features = getattr(model, "n_features_in_", X.shape[1])
    if n_features > N_FEATURES:  # no row fits
        return
    rows = np.resize(X[::30], (5, n_features))
    if hasattr(model, "predict_proba"):
        try:
            p = model.predict_proba(rows)
        except ValueError as error:
            if "scores are NaN" in str(error):  # of numbers that overflow; the error names them
                return
            raise
        check_probabilities(p, (len(rows), len(model.classes_)))
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


def change_value(rng: Rng, members: dict[str, bytes]) -> None:
    """Change a number or a text of the schema, such as a size or the name of a method."""
    schema = json.loads(members["schema.json"])
    values = [node for node, key in _places(schema) if key == "content" and "is_json" in node]
    if values:
        values[int(rng.integers(len(values)))]["content"] = one_of(rng, *ODD_VALUES)
    members["schema.json"] = json.dumps(schema).encode()


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
    values = ODD_NUMBERS if array.dtype.kind == "f" else (0, 1, -1, 7, 127, -128, 2**31 - 1, 2**40)
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


def change_members(rng: Rng, members: dict[str, bytes]) -> None:
    """Drop, rename, swap or add a member of the archive."""
    names = list(members)
    name, other = (names[int(rng.integers(len(names)))] for _ in range(2))
    action = int(rng.integers(4))
    if action == 0:
        del members[name]
    elif action == 1:
        members[one_of(rng, "x.npy", "../x", "schema.json")] = members.pop(name)
    elif action == 2:
        members[name], members[other] = members[other], members[name]
    else:
        members[one_of(rng, "x.npy", "manyclass.hmac", "a/b")] = members[name]


def attack(seed: int) -> Report:
    """Load the file of a seed; return what became of it, or raise a fault."""
    return load_crafted(np.random.default_rng(seed))


def main() -> int:
    """Attack with as many files as the command line says."""
    parser = argparse.ArgumentParser(prog="fuzz.stored_models", description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", type=int, default=20_000, help="how many files")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    arguments = parser.parse_args()
    faulthandler.enable()
    if RESETS.exists():
        _map_large_blocks()
    models()
    reports, faults = [], 0
    for seed in range(arguments.first, arguments.first + arguments.inputs):
        if seed % 500 == 0:
            print(f"{seed - arguments.first} of {arguments.inputs}", file=sys.stderr, flush=True)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reports.append(attack(seed))
        except Exception as error:
            faults += 1
            print(f"FAULT {seed}: {type(error).__name__}: {str(error)[:300]}", flush=True)
    _print_summary(reports, faults)
    return 1 if faults else 0


def _print_summary(reports: list[Report], faults: int) -> None:
    outcomes = Counter(report.outcome for report in reports)
    print(f"{outcomes['refused']} refused, {outcomes['answered']} answered, {faults} faults")
    slowest = max(report.seconds for report in reports)
    share = max(report.memory / (2 * report.declared + OBJECTS) for report in reports)
    most = max(report.memory for report in reports)
    print(f"slowest {slowest:.2f} s of processor time; most memory {most / 1e6:.1f} MB,")
    print(f"at most {share:.0%} of twice the declared bytes and {OBJECTS / 1e6:g} MB for objects")


if __name__ == "__main__":
    sys.exit(main())
