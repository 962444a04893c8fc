"""Run the tests that the ledgers refer to."""

from __future__ import annotations

import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

ROOT = Path(__file__).parents[1]


def failing(references: Iterable[str]) -> set[str]:
    """Return the references, "path::test", whose test fails, is skipped, or is not there."""
    wanted = set(references)
    paths, names = zip(*(reference.split("::") for reference in sorted(wanted)), strict=True)
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        options = ["-q", "-p", "no:cacheprovider", "-o", "junit_family=xunit1"]
        chosen = ["-k", " or ".join(dict.fromkeys(names)), f"--junitxml={report}"]
        command = [sys.executable, "-m", "pytest", *options, *chosen, *dict.fromkeys(paths)]
        subprocess.run(command, cwd=ROOT, check=False)
        outcomes = _outcomes(report) if report.exists() else {}
    return {reference for reference in wanted if not all(outcomes.get(reference, [False]))}


def _outcomes(report: Path) -> dict[str, list[bool]]:
    """Return whether each case of every test passed."""
    found = defaultdict(list)
    for case in ElementTree.parse(report).iter("testcase"):
        name = case.attrib["name"].partition("[")[0]
        passed = not any(case.find(tag) is not None for tag in ("failure", "error", "skipped"))
        found[f"{case.attrib['file']}::{name}"].append(passed)
    return dict(found)
