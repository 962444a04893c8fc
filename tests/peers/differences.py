"""Which of scikit-learn's tests fail with our classes, and why: the list ``differences.toml``."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from pathlib import Path

LIST = Path(__file__).parent / "differences.toml"


def read(text: str | None = None) -> dict[str, str]:
    """Return the reason for each test, by ``file::test`` or ``file::test[parameters]``."""
    tables = tomllib.loads(LIST.read_text() if text is None else text)["difference"]
    reasons: dict[str, str] = {}
    for table in tables:
        for test in table["tests"]:
            if test in reasons:
                raise ValueError(f"{test} is listed twice.")
            reasons[test] = table["reason"]
    return reasons


def name_of(nodeid: str) -> str:
    """Return a test's name as in the list, without folders."""
    file, _, test = nodeid.partition("::")
    return f"{file.rpartition('/')[2]}::{test}"


def reason_for(known: dict[str, str], name: str) -> str | None:
    """Return why a test may fail: for its parameters, or for all of them; None if it must pass."""
    return known.get(name, known.get(name.partition("[")[0]))


def unknown(known: dict[str, str], names: Iterable[str]) -> list[str]:
    """Return listed tests that do not exist."""
    names = list(names)
    return sorted(known.keys() - set(names) - {name.partition("[")[0] for name in names})
