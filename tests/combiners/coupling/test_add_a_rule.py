"""The page "Add a coupling rule" is true: five files, fewer than 120 lines, and the rule works."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from difflib import unified_diff
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "docs" / "examples"
COUPLING = "src/manyclass/combiners/coupling"
TESTS = "tests/combiners/coupling/test_coupling.py"
CHECKED = """
import sys

from manyclass import CoupledClassifier, combiners, couple
from manyclass.combiners import MedianLogit

sys.path.insert(0, "docs/_ext")
import registry


def test_the_new_rule_is_known_by_name():
    assert "median-logit" in combiners.names()
    p = couple([[[0.5, 0.8], [0.2, 0.5]]], rule="median-logit")
    assert abs(p - [0.8, 0.2]).max() < 1e-12


def test_the_new_rule_is_in_the_reference():
    assert "manyclass.combiners.coupling.MedianLogit" in registry.documented()


def test_the_new_rule_may_be_stored():
    assert combiners.registered()["median-logit"] is MedianLogit
"""


def function_of(text: str) -> slice:
    """Return the lines of the only function of a file."""
    (function,) = (node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef))
    return slice(function.lineno - 1, function.end_lineno)


def oracle() -> str:
    text = (EXAMPLES / "my_oracle.py").read_text()
    return "".join(text.splitlines(keepends=True)[function_of(text)])


def rule_file() -> str:
    """Return the example of the page, with the compiled function imported from its file."""
    text = (EXAMPLES / "my_rule.py").read_text()
    lines, own = text.splitlines(keepends=True), function_of(text)
    del lines[own.start : own.stop + 2]
    text = "".join(lines).replace("from scipy.special import logit, softmax\n\n", "\n")
    return text.replace(
        "from manyclass.combiners.coupling.pairwise",
        "from manyclass.combiners.coupling.kernels.medians import couple_medians\n"
        "from manyclass.combiners.coupling.pairwise",
    )


def steps() -> dict[str, str]:
    """The new text of every file that the page names, by path."""
    exports = (ROOT / COUPLING / "__init__.py").read_text()
    exports = exports.replace(
        "from manyclass.combiners.coupling.pairwise import",
        "from manyclass.combiners.coupling.median_logit import MedianLogit\n"
        "from manyclass.combiners.coupling.pairwise import",
    ).replace('    "Logit",\n', '    "Logit",\n    "MedianLogit",\n')
    oracles = (ROOT / "tests/oracles/naive.py").read_text()
    changes = (ROOT / "CHANGELOG.md").read_text()
    return {
        f"{COUPLING}/median_logit.py": rule_file(),
        f"{COUPLING}/kernels/medians.py": (EXAMPLES / "my_kernel.py").read_text(),
        f"{COUPLING}/__init__.py": exports,
        "tests/oracles/naive.py": f"{oracles}\n\n{oracle()}",
        "CHANGELOG.md": changes.replace("### Added\n", "### Added\n\n- Rule `median-logit`.", 1),
    }


def added_lines(path: str, new: str) -> list[str]:
    old = (ROOT / path).read_text() if (ROOT / path).exists() else ""
    diff = list(unified_diff(old.splitlines(), new.splitlines(), n=0))[2:]
    return [line for line in diff if not line.startswith("@@")]


def test_the_page_names_these_files():
    page = (ROOT / "docs" / "add_a_rule.md").read_text()
    for path in steps():
        assert f"`{path}`" in page, path


def test_a_new_rule_takes_five_files_and_fewer_than_120_lines():
    changed = {path: added_lines(path, new) for path, new in steps().items()}
    assert len(changed) == 5 and all(changed.values())
    assert sum(map(len, changed.values())) < 120


@pytest.fixture
def copy(tmp_path):
    """A copy of the library in which the steps have been followed."""
    # Machine code is copied too: only the new kernel is compiled.
    shutil.copytree(ROOT / "src", tmp_path / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    shutil.copytree(ROOT / "docs" / "_ext", tmp_path / "docs" / "_ext")
    shutil.copytree(ROOT / "docs" / "api", tmp_path / "docs" / "api")
    for path in (TESTS, "tests/oracles/naive.py"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    for path, text in steps().items():
        (tmp_path / path).write_text(text)
    (tmp_path / "test_checked.py").write_text(CHECKED)
    return tmp_path


def test_a_rule_that_follows_the_page_works_and_obeys_the_laws(copy):
    paths = os.pathsep.join([str(copy / "src"), str(copy / "tests" / "oracles")])
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:warnings"]
    chosen = ["-k", "new_rule or median-logit and not 200_classes"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *chosen, "test_checked.py", TESTS],
        cwd=copy,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    passed = re.search(r"(\d+) passed", run.stdout)
    assert passed and int(passed[1]) >= 25, run.stdout  # 3, the laws, and the oracle
