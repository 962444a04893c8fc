"""The benchmarks' own instruments, and the pages that show their tables."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from benchmarks import __main__ as benchmarks

ROOT = Path(__file__).parent.parent
RISE = (
    "import numpy as np\n"
    "from benchmarks.memory import rise_of\n"
    "{before}\n"
    "print(rise_of(lambda: np.ones({size} * 2**17).sum())[0])\n"  # of a MB each
)


def rise_elsewhere(before: str, size: int) -> float:
    code = RISE.format(before=before, size=size)
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return float(done.stdout)


@pytest.mark.skipif(
    not os.access("/proc/self/clear_refs", os.W_OK),
    reason="peak memory is read from Linux's /proc",
)
def test_the_rise_of_memory_is_that_of_the_task():
    """An earlier peak does not count, nor does the peak of the parent process."""
    large = np.ones(300 * 2**17)  # held here, while the other process starts
    assert rise_elsewhere("", 50) == pytest.approx(50, abs=10)
    assert rise_elsewhere("np.ones(200 * 2**17).sum()", 50) == pytest.approx(50, abs=10)
    assert large.all()


SHOWN = re.compile(r"<!-- table: (\S+) -->\n(.*?)<!-- end -->", re.DOTALL)


@pytest.mark.parametrize("page", benchmarks.PAGES, ids=lambda page: page.name)
def test_pages_show_the_stored_tables(page):
    """``python -m benchmarks --pages`` would change nothing."""
    shown = SHOWN.findall(page.read_text("utf-8"))
    assert shown
    for name, table in shown:
        assert table == benchmarks.stored(name) + "\n", name


def test_every_table_is_on_the_page_of_benchmarks():
    shown = {name for name, _ in SHOWN.findall(benchmarks.PAGES[0].read_text("utf-8"))}
    assert {name for name in shown if not name.startswith("quality-")} == set(benchmarks.TABLES)


def test_stored_tables_have_the_present_headers():
    for name, (_, header) in benchmarks.TABLES.items():
        first = benchmarks.stored(name).splitlines()[0]
        assert first == f"| {' | '.join(header)} |", name


def test_the_excerpt_names_a_set_where_we_are_not_ahead():
    lines = benchmarks.stored("quality-svm-core-excerpt").splitlines()
    rows = [line.strip("| ").split(" | ") for line in lines]
    assert len(rows) <= 10 and max(float(row[-1]) for row in rows[2:]) >= 1


def test_a_table_is_written_between_its_markers():
    page = "a\n<!-- table: x -->\nold\n<!-- end -->\nb\n<!-- table: y -->\nkept\n<!-- end -->\n"
    new = benchmarks.with_table(page, "x", "| new |")
    assert new == page.replace("old", "| new |")
    assert benchmarks.with_table(page, "z", "| new |") == page
