"""Run the benchmarks, print their tables and write them into the pages.

    python -m benchmarks [NAME ...]
    python -m benchmarks --pages

Each table is stored as ``benchmarks/results/NAME.md``. Every page of ``PAGES`` shows it
between ``<!-- table: NAME -->`` and ``<!-- end -->``. ``--pages`` measures nothing: it
writes the stored tables into the pages again.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

from benchmarks import (
    clusters,
    coupling,
    extreme_classes,
    first_use,
    kernel_logistic,
    leave_one_out,
    limited_learners,
    many_classes,
    scaling_costs,
    sizes,
    softmax,
    svm,
    svm_kernels,
    svm_search,
)
from experiments.pages import markdown_table
from manyclass._lib.files import replace_file
from manyclass.app.report import text_table

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks" / "results"
PAGES = (
    ROOT / "docs" / "benchmarks.md",
    ROOT / "docs" / "migration_details.md",
    ROOT / "README.md",
)
TABLES = (
    svm_kernels.TABLES
    | svm.TABLES
    | svm_search.TABLES
    | sizes.TABLES
    | scaling_costs.TABLES
    | leave_one_out.TABLES
    | coupling.TABLES
    | kernel_logistic.TABLES
    | softmax.TABLES
    | many_classes.TABLES
    | extreme_classes.TABLES
    | limited_learners.TABLES
    | clusters.TABLES
    | first_use.TABLES
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="default: all of them")
    parser.add_argument(
        "--pages", action="store_true", help="only write the stored tables into the pages"
    )
    arguments = parser.parse_args()
    names = arguments.names or list(TABLES)
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: choose from {', '.join(TABLES)}")
    for name in names:
        if not arguments.pages:
            measure(name)
        write_pages([name])


def measure(name: str) -> None:
    """Run a benchmark, print its table and store it."""
    make, header = TABLES[name]
    rows = make()
    print(f"\n{name}\n\n{text_table(header, rows)}", flush=True)
    replace_file(RESULTS / f"{name}.md", markdown_table(header, rows) + "\n")


def write_pages(names: Iterable[str]) -> None:
    """Write stored tables into all pages that have a place for them."""
    for name in names:
        for page in PAGES:
            text = page.read_text("utf-8")
            if (new := with_table(text, name, stored(name))) != text:
                replace_file(page, new)


def stored(name: str) -> str:
    """Return a table as its last run stored it."""
    return (RESULTS / f"{name}.md").read_text("utf-8").strip()


def with_table(text: str, name: str, table: str) -> str:
    """Return a page with a table between the markers of that name."""
    pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda match: f"{match[1]}{table}\n{match[2]}", text)


if __name__ == "__main__":
    main()
