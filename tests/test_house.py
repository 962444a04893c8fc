"""The rules of the house: a tree that is a map, few constants, no hooks into other libraries."""

from __future__ import annotations

import ast
import re
from collections import Counter
from pathlib import Path

import pytest

import manyclass

ROOT = Path(__file__).parents[1]
PACKAGE = Path(manyclass.__file__).parent
FILES = sorted(PACKAGE.rglob("*.py"))
# Names that several rooms use for the same role.
ROLES = {"__init__", "base", "fit", "leave_one_out"}


def is_number(value: ast.AST | None) -> bool:
    """Tell whether an expression is a number, or is computed from numbers alone."""
    match value:
        case ast.Constant(value=bool() | str()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.UnaryOp(operand=operand):
            return is_number(operand)
        case ast.BinOp(left=left, right=right):
            return is_number(left) or is_number(right)
        case ast.Tuple(elts=[*parts]):
            return any(map(is_number, parts))
        case ast.Call(func=ast.Attribute(attr="fromhex")):
            return True
        case ast.Call(args=[argument]):  # np.log(1e6), np.uint64(1)
            return is_number(argument)
    return False


def constants(path: Path) -> list[int]:
    """Return the lines (from 0) of module-level numeric constants."""
    body = ast.parse(path.read_text()).body
    assigned = [node for node in body if isinstance(node, ast.Assign | ast.AnnAssign)]
    return [node.lineno - 1 for node in assigned if is_number(node.value)]


def imports(path: Path) -> set[str]:
    """Return the modules that a file imports, inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            found.update(f"{node.module}.{alias.name}" for alias in node.names)
    return found


def test_the_top_of_the_package_can_be_read_at_a_glance():
    entries = {path.relative_to(PACKAGE).parts[0] for path in PACKAGE.rglob("*.*")}
    assert len(entries - {"__pycache__"}) <= 22


def test_no_two_modules_share_a_name():
    times = Counter(path.stem for path in FILES)
    assert {name for name, n in times.items() if n > 1} <= ROLES


def test_numeric_constants_are_few():
    assert sum(len(constants(path)) for path in FILES) < 80


@pytest.mark.parametrize("path", [path for path in FILES if constants(path)], ids=lambda p: p.stem)
def test_numeric_constants_say_who_chose_them(path):
    lines = path.read_text().splitlines()
    numbers = constants(path)
    for i in numbers:
        above = next(lines[j] for j in range(i - 1, -1, -1) if j not in numbers)
        below = lines[i + 1] if i + 1 < len(lines) else ""
        commented = "#" in lines[i] or above.startswith("#") or below.startswith('"""')
        assert commented, f"{path}:{i + 1} has no reason"


def test_banks_do_not_know_learners():
    for path in (PACKAGE / "banks").rglob("*.py"):
        assert not any(name.startswith("manyclass.learners") for name in imports(path)), path


def test_only_one_file_imports_private_parts_of_scikit_learn():
    private = re.compile(r"sklearn(\.\w+)*\._")
    for path in FILES:
        if path.relative_to(PACKAGE) != Path("_lib/sklearn.py"):
            assert not any(private.match(name) for name in imports(path)), path


def test_compiled_code_has_folders_of_its_own():
    decorated = re.compile(r"^@(kernel|part|inlined|fused_kernel|summing_kernel)$", re.MULTILINE)
    for path in FILES:
        if decorated.search(path.read_text()):
            assert path.parent.name in ("kernels", "compiled"), path


@pytest.mark.parametrize("word", ["stacklevel=", "atexit", "signal.signal("])
def test_hooks_and_frames_have_one_place(word):
    own = {
        "stacklevel=": {"_lib/messages.py"},
        "atexit": {"app/signals.py"},
        "signal.signal(": {"app/signals.py"},
    }
    found = {str(path.relative_to(PACKAGE)) for path in FILES if word in path.read_text()}
    assert found <= own[word]
