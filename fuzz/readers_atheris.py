"""Damaged and malicious files for everything that reads files, guided by coverage.

    python -m fuzz.readers_atheris [table|results|model] [-runs=N] [options of libFuzzer]

Without a name all readers have their turn, each in a process of its own. A reader may refuse a
file by a ``ValueError``; libFuzzer stops at anything else, at 2 GB, and at an input that takes
20 seconds, and keeps the file as ``crash-...``; the name of that file as the last argument
repeats it.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path

import atheris
import numpy as np

import manyclass

RUNS = 20_000
LIMITS = ("-timeout=20", "-rss_limit_mb=2048", "-max_len=65536", "-len_control=0")
READ = [
    "manyclass.app.dialect",
    "manyclass.app.formats",
    "manyclass.app.lines",
    "manyclass.app.tables",
    "manyclass.app.target",
    "manyclass.app.columns",
    "experiments.results",
]

X = np.random.default_rng(0).normal(size=(12, 2)).round(1)
# Fitted before imports are instrumented: numba could not compile kernels that count branches.
GOOD = manyclass.CoupledSVC().fit(X, np.arange(12) % 3)

with atheris.instrument_imports(include=[*READ, "manyclass.storage"]):
    from experiments.results import COLUMNS, Results
    from manyclass.app.formats import open_table
    from manyclass.app.tables import read_table
    from manyclass.storage import load_model, read_metadata, save_model

Reader = Callable[[bytes, Path], None]


def table(data: bytes, folder: Path) -> None:
    """The tables of the command line: the first byte says of which kind the file claims to be."""
    suffix = (".csv", ".tsv", ".csv.gz", ".parquet")[data[0] % 4 if data else 0]
    path = folder / f"table{suffix}"
    path.write_bytes(data[1:])
    for read in (read_table, _read_blocks):
        try:
            read(path)
        except ValueError:
            pass


def _read_blocks(path: Path) -> None:
    """Read a table some rows at a time, as predict does."""
    file = open_table(path)
    list(file.blocks(3, text=file.names))


def results(data: bytes, folder: Path) -> None:
    """The results of experiments, read and repaired."""
    path = folder / "results.csv"
    path.write_bytes(data)
    try:
        rows = list(Results(path))
        Results(path).repair()
    except ValueError:
        return
    again = list(Results(path))
    assert repr(again) == repr(rows) or len(again) == len(rows), "repair loses rows"


def model(data: bytes, folder: Path) -> None:
    """Stored models: any bytes, or a good model with one member of the archive replaced."""
    path = folder / "model.skops"
    members = MODEL or MODEL.update(_members(folder)) or MODEL
    names = sorted(members)
    which = data[0] % (len(names) + 1) if data else 0
    if which == len(names):
        path.write_bytes(data[1:])
    else:
        path.write_bytes(_archive({**members, names[which]: data[1:]}))
    for read in (read_metadata, load_model):
        try:
            loaded = read(path, max_bytes=2**26)
        except ValueError:
            continue
    if "loaded" in locals() and hasattr(loaded, "predict_proba"):
        try:
            loaded.predict_proba(np.zeros((2, 2)))
        except Exception:  # the numbers of a stranger's model are not vouched for
            pass


MODEL: dict[str, bytes] = {}


def _members(folder: Path) -> dict[str, bytes]:
    """Return the members of a good archive."""
    path = folder / "good.skops"
    save_model(GOOD, path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def _archive(members: dict[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def _seeds(name: str, folder: Path) -> list[bytes]:
    """Return files to start from."""
    text = b'a,b,class\n1,x,p\n2.5,,q\n2024-01-31,"y,z",p\n?,1e400,q\n'
    if name == "table":
        return [b"\0" + text, b"\1" + text.replace(b",", b"\t"), b"\0a,a\n", b"\3PAR1"]
    if name == "results":
        line = "e,d,1,{},{},0.5\n"
        rows = line.format("m", "error") + line.format("g", "seconds")
        return [f"{','.join(COLUMNS)}\n{rows}{rows}e,d".encode(), b'"']
    members = _members(folder)
    good = [bytes([i]) + members[name] for i, name in enumerate(sorted(members))]
    return [*good, bytes([len(members)]) + _archive(members)]


READERS: dict[str, Reader] = {"table": table, "results": results, "model": model}


def attack(name: str, folder: Path, options: list[str]) -> None:
    """Hand over to libFuzzer, which ends the process."""
    warnings.simplefilter("ignore")
    corpus = folder / "corpus"
    corpus.mkdir()
    for i, data in enumerate(_seeds(name, folder)):
        (corpus / str(i)).write_bytes(data)
    if not any(option.startswith("-runs=") for option in options):
        options = [*options, f"-runs={RUNS}"]
    repeated = any(not option.startswith("-") for option in options)
    where = [] if repeated else [str(corpus)]
    read = READERS[name]
    atheris.Setup([sys.argv[0], *LIMITS, *where, *options], lambda data: read(data, folder))
    atheris.Fuzz()


def main() -> int:
    """Attack the readers named, one after the other, in processes and folders of their own."""
    if sys.argv[1:2] == ["--within"]:
        attack(sys.argv[2], Path(sys.argv[3]), sys.argv[4:])
    names = [name for name in sys.argv[1:] if name in READERS]
    options = [option for option in sys.argv[1:] if option not in READERS]
    status = 0
    for name in names or READERS:
        print(f"--- {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "fuzz.readers_atheris", "--within", name, folder]
            status |= subprocess.run([*command, *options]).returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
