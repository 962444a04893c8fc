"""Change one place of the code at a time, and see whether the nearest tests fail.

    python -m fuzz.mutants --number 120

A mutant has one sign, comparison, whole number, index or statement changed. It runs in a copy of
the sources, after a fork of a process that has imported the libraries. ``fuzz/mutants.csv`` keeps
what became of each, and the reason why a survivor is harmless. Mutants in it are not run again:
a run goes on where an earlier one stopped, and ``--again FILE`` forgets those of a file.
"""

from __future__ import annotations

import argparse
import ast
import copy
import csv
import os
import random
import resource
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
TABLE = Path(__file__).with_suffix(".csv")
COLUMNS = ("file", "line", "before", "after", "outcome", "reason")
SECONDS = 90
"""Of processor time. The slowest unchanged tests take a third of it; a mutant may run for ever."""
NEAREST: dict[str, str] = {
    "_lib/row_blocks.py": "_lib/test_lib_helpers.py _lib/test_rows.py",
    "_lib/compiled/blocks.py": "banks/svm/test_kernel_bank.py",
    "banks/svm/bank.py": "banks/svm/test_kernel_bank.py banks/svm/test_borrowing.py",
    "banks/svm/compiled/kernel_rows.py": "banks/svm/test_smo.py",
    "banks/svm/compiled/left_out_scores.py": "banks/svm/test_refits.py",
    "banks/svm/compiled/machines.py": "banks/svm/test_smo.py banks/svm/test_refits.py",
    "banks/svm/compiled/smo.py": "banks/svm/test_smo.py banks/svm/test_refits.py",
    "banks/svm/compiled/span_formula.py": "banks/svm/test_spans.py",
    "banks/svm/groups.py": "banks/svm/test_kernel_bank.py banks/svm/test_borrowing.py",
    "banks/svm/leave_one_out.py": "banks/svm/test_spans.py",
    "calibration/beta.py": "calibration/test_beta.py",
    "calibration/choosing.py": "calibration/test_choosing.py",
    "calibration/crossfitting.py": "calibration/test_crossfitting.py",
    "calibration/evidence.py": "calibration/test_evidence.py",
    "calibration/isotonic.py": "calibration/test_calibration.py",
    "calibration/sigmoid.py": "calibration/test_calibration.py calibration/test_tails.py",
    "codes/trees.py": "codes/test_trees.py",
    "codes/tree_structure.py": "codes/test_trees.py codes/test_hierarchy.py",
    "combiners/coupling/base.py": "combiners/coupling/test_coupling.py",
    "combiners/coupling/general.py": "combiners/coupling/test_coupling.py test_many_classes.py",
    "combiners/coupling/pairwise.py": "combiners/coupling/test_coupling.py",
    "scaling/column_ridge.py": "scaling/test_structured.py",
    "scaling/kernels/features.py": "scaling/test_kernels.py scaling/test_structured.py",
    "scaling/kernels/limited_memory.py": "scaling/test_matrix.py scaling/test_kernels.py",
    "scaling/kernels/pooled.py": "scaling/test_pooling.py scaling/test_kernels.py",
    "scaling/matrix.py": "scaling/test_matrix.py",
    "scaling/lower_bounds.py": "scaling/test_lower_bounds.py",
    "scaling/structured.py": "scaling/test_structured.py scaling/test_matrix.py",
    "scaling/temperature.py": "scaling/test_temperature.py",
    "scores/crossfit.py": "scores/test_crossfit.py",
    "scores/folds.py": "scores/test_folds.py",
    "scores/leave_one_out.py": "scores/test_leave_one_out.py",
    "scores/out_of_sample.py": "scores/test_out_of_sample.py",
    "scores/reservoir.py": "scores/test_crossfit.py scores/test_out_of_sample.py",
    "storage/_archive.py": "storage/test_crafted_files.py",
    "storage/_checks.py": "storage/test_crafted_files.py storage/test_storage.py",
    "storage/_forms.py": "storage/test_crafted_files.py",
    "storage/_members.py": "storage/test_crafted_files.py",
    "storage/_schema.py": "storage/test_crafted_files.py",
    "storage/_signature.py": "storage/test_crafted_files.py",
}
"""Modules of the package, and the files of ``tests`` that are nearest to them."""
FLIPS: dict[type, type] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.And: ast.Or, ast.Or: ast.And,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip


class Mutant(NamedTuple):
    """A changed place: the new text of a part of a file."""

    file: str
    line: int
    before: str
    after: str
    source: str

    @property
    def row(self) -> tuple[str, str, str, str]:
        """The first columns of the table."""
        return self.file, str(self.line), self.before, self.after


def mutants_of(file: str) -> Iterator[Mutant]:
    """Yield all mutants of a module."""
    text = (ROOT / "src/manyclass" / file).read_text()
    tree = ast.parse(text)
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                for node, changed in _changes(statement):
                    yield _mutant(file, text, node, changed)


def _changes(statement: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Yield places in a statement and their new texts, but none in messages of errors."""
    waiting: list[ast.AST] = [statement]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Raise | ast.FunctionDef | ast.JoinedStr | ast.AnnAssign):
            continue
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "warn":
            continue
        for change in CHANGES:
            changed = change(copy.deepcopy(node))
            if changed is not None:
                yield node, changed if isinstance(changed, str) else ast.unparse(changed)
        waiting.extend(ast.iter_child_nodes(node))


def _flip(node: ast.AST) -> ast.AST | None:
    """Flip a sign, a comparison or a connective."""
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in FLIPS:
        node.ops = [FLIPS[type(node.ops[0])]()]
        return node
    if isinstance(node, ast.BinOp | ast.AugAssign | ast.BoolOp) and type(node.op) in FLIPS:
        node.op = FLIPS[type(node.op)]()
        return node
    return node.operand if isinstance(node, ast.UnaryOp) else None


def _off_by_one(node: ast.AST) -> ast.AST | None:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return ast.Constant(node.value + 1)
    return None


def _swap(node: ast.AST) -> ast.AST | None:
    """Swap the indices of an array, the bounds of a slice, or the branches of a choice."""
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
        node.slice.elts.reverse()
        return node
    if isinstance(node, ast.Slice) and node.lower and node.upper:
        node.lower, node.upper = node.upper, node.lower
        return node
    if isinstance(node, ast.IfExp):
        node.body, node.orelse = node.orelse, node.body
        return node
    return None


def _drop(node: ast.AST) -> str | None:
    """Drop a statement that changes something, or a check."""
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    is_check = isinstance(node, ast.If) and isinstance(node.body[0], ast.Raise | ast.Continue)
    if is_call or is_check or isinstance(node, ast.AugAssign):
        return "pass"
    return None


CHANGES: tuple[Callable[[ast.AST], ast.AST | str | None], ...] = (_flip, _off_by_one, _swap, _drop)


def _mutant(file: str, text: str, node: ast.AST, changed: str) -> Mutant:
    lines = text.splitlines(keepends=True)
    if isinstance(node, ast.expr) and not isinstance(node, ast.Slice):
        changed = f"({changed})"
    begin = _place(lines, node.lineno, node.col_offset)
    end = _place(lines, node.end_lineno, node.end_col_offset)
    before = " ".join(text[begin:end].split())[:120]
    return Mutant(file, node.lineno, before, changed[:120], text[:begin] + changed + text[end:])


def _place(lines: list[str], line: int, offset: int) -> int:
    """Return a place in the text; ast counts lines from 1, and bytes in a line."""
    return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:offset].decode())


# ------------------------------------------------------------------ runs


def copied(folder: Path) -> None:
    """Copy what tests read, with the times of files, which machine code in the cache goes by."""
    for name in ("src", "tests", "fuzz", "experiments"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("*.pyc", "*.png"))
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy2(ROOT / name, folder / name)


def run_tests(folder: Path, paths: str) -> str:
    """Run tests in a fork; return "passed", "failed" or "stopped"."""
    child = os.fork()
    if child == 0:
        _become_tests(folder, paths)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "stopped"
    return "passed" if os.WEXITSTATUS(status) == 0 else "failed"


def _become_tests(folder: Path, paths: str) -> None:
    import pytest

    log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    for stream in (1, 2):
        os.dup2(log, stream)
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
    os.chdir(folder)
    sys.dont_write_bytecode = True
    sys.path[:] = [str(folder), str(folder / "src"), *(p for p in sys.path if str(ROOT) not in p)]
    os.environ["PYTHONPATH"] = str(folder / "src")
    options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "-p", "no:xdist"]
    code = 3
    try:
        code = pytest.main([*options, *(f"tests/{path}" for path in paths.split())])
    finally:
        os._exit(code)


def import_libraries() -> None:
    """Import what most tests need, but nothing of the package."""
    for name in ("hypothesis", "numba", "pandas", "pytest", "scipy.stats", "skops.io"):
        import_module(name)
    for name in ("datasets", "ensemble", "linear_model", "svm"):
        import_module(f"sklearn.{name}")


# ------------------------------------------------------------------ the table


def read_table() -> list[dict[str, str]]:
    """Return the rows of the table."""
    if not TABLE.exists():
        return []
    with open(TABLE, newline="") as file:
        return list(csv.DictReader(file))


def write_table(rows: list[dict[str, str]]) -> None:
    """Write the table, sorted by place."""
    rows = sorted(rows, key=lambda row: (row["file"], int(row["line"]), row["after"]))
    with open(TABLE, "w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def sample(number: int, seed: int, begins: tuple[str, ...] = ("",)) -> list[Mutant]:
    """Return mutants of modules in turn: of each the same number, as far as there are any."""
    chance = random.Random(seed)
    piles = [list(mutants_of(file)) for file in NEAREST if file.startswith(begins)]
    for pile in piles:
        chance.shuffle(pile)
    depth = max(map(len, piles))
    in_turn = [pile[i] for i in range(depth) for pile in piles if i < len(pile)]
    return in_turn[:number]


def main() -> int:
    """Run the mutants of the sample that are not in the table; print the share that was caught."""
    parser = argparse.ArgumentParser(prog="fuzz.mutants", description=__doc__.splitlines()[0])
    parser.add_argument("--number", type=int, default=120, help="of mutants in the sample")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[""], help="modules whose names begin so")
    parser.add_argument("--again", nargs="*", default=[], help="modules to forget first")
    arguments = parser.parse_args()
    rows = [row for row in read_table() if row["file"] not in arguments.again]
    chosen = sample(arguments.number, arguments.seed, tuple(arguments.only))
    known = {tuple(row[column] for column in COLUMNS[:4]) for row in rows}
    waiting = [mutant for mutant in chosen if mutant.row not in known]
    import_libraries()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copied(folder)
        passing: dict[str, bool] = {}
        for mutant in waiting:
            if (paths := NEAREST[mutant.file]) not in passing:
                passing[paths] = _pass_unchanged(folder, paths)
            if not passing[paths]:
                continue
            outcome = _outcome(folder, mutant)
            print(f"{outcome}: {' '.join(mutant.row)}", flush=True)
            rows.append(dict(zip(COLUMNS, (*mutant.row, outcome, ""), strict=True)))
            write_table(rows)
    outcomes = Counter(row["outcome"] for row in rows)
    unexplained = [row for row in rows if row["outcome"] == "survived" and not row["reason"]]
    harmless = outcomes["survived"] - len(unexplained)
    print(f"{outcomes['caught']} of {len(rows) - harmless} caught; {harmless} more are harmless")
    return 1 if unexplained or not all(passing.values()) else 0


def _pass_unchanged(folder: Path, paths: str) -> bool:
    """Run tests without a change, which also compiles kernels. If they fail, tell why."""
    if (outcome := run_tests(folder, paths)) == "passed":
        return True
    print((folder / "log").read_text()[-2000:])
    print(f"{paths} {outcome} without any change: their mutants are not run", flush=True)
    return False


def _outcome(folder: Path, mutant: Mutant) -> str:
    place = folder / "src/manyclass" / mutant.file
    cache, kept, original = place.parent / "__pycache__", folder / "kept", folder / "original"
    cache.mkdir(exist_ok=True)
    shutil.copytree(cache, kept)
    shutil.copy2(place, original)
    place.write_text(mutant.source)
    try:
        return "survived" if run_tests(folder, NEAREST[mutant.file]) == "passed" else "caught"
    finally:
        shutil.move(original, place)
        shutil.rmtree(cache)
        kept.rename(cache)


if __name__ == "__main__":
    sys.exit(main())
