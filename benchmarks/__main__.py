"""Run the benchmarks, print their tables and put them into the pages.

    python -m benchmarks [NAME ...]

Each table is also kept as ``benchmarks/results/NAME.md``; a page shows it
between ``<!-- table: NAME -->`` and ``<!-- end -->``.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from benchmarks import (
    clusters,
    coupling,
    first_use,
    kernel_logistic,
    leave_one_out,
    many_classes,
    probabilities,
    softmax,
    svm,
    svm_quality,
)
from experiments.pages import markdown_table
from manyclass._lib.files import replace_file
from manyclass.app.report import text_table

ROOT = Path(__file__).parent.parent
PAGES = (ROOT / "README.md", ROOT / "docs" / "migration.md")
TABLES = (
    coupling.TABLES
    | probabilities.TABLES
    | svm.TABLES
    | svm_quality.TABLES
    | leave_one_out.TABLES
    | kernel_logistic.TABLES
    | softmax.TABLES
    | first_use.TABLES
    | many_classes.TABLES
    | clusters.TABLES
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", default=list(TABLES), metavar="NAME")
    names = parser.parse_args().names
    unknown = [name for name in names if name not in TABLES]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}: choose from {', '.join(TABLES)}")
    for name in names:
        make, header = TABLES[name]
        rows = make()
        print(f"\n{name}\n\n{text_table(header, rows)}", flush=True)
        table = markdown_table(header, rows)
        replace_file(ROOT / "benchmarks" / "results" / f"{name}.md", table + "\n")
        for page in PAGES:
            insert(page, name, table)


def insert(page: Path, name: str, table: str) -> None:
    """Replace the table of that name in a page that has a place for it."""
    text = page.read_text("utf-8")
    pattern = re.compile(rf"(<!-- table: {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    replace_file(page, pattern.sub(lambda match: f"{match[1]}{table}\n{match[2]}", text))


if __name__ == "__main__":
    main()
