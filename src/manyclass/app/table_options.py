"""What the user says about a table, and whether the table has it.

Nothing is imported here that takes long: an error about a column comes at once.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from manyclass._lib.files import StrPath
from manyclass._lib.messages import meant, quoted
from manyclass.app.arguments import DATA_SETS
from manyclass.app.terminal import shown

if TYPE_CHECKING:
    from manyclass.app.formats import TableFile

TARGETS = ("target", "class", "label", "y")
"""Usual names of the column of classes."""
FRACTION = re.compile(r"-?\d+\.\d+")


@dataclass(frozen=True)
class Choices:
    """What the user said about a table: its columns, and how a text file is written."""

    target: str | None = None
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    numeric: tuple[str, ...] = ()
    groups: str | None = None
    split_column: str | None = None
    sep: str | None = None
    decimal: str | None = None
    encoding: str | None = None

    @classmethod
    def of(cls, arguments: Any) -> Choices:
        """Take the options of a command line."""
        values: dict[str, Any] = {
            name: getattr(arguments, name, None) for name in cls.__dataclass_fields__
        }
        for name in ("drop", "categorical", "numeric"):
            values[name] = tuple(values[name] or ())
        return cls(**values)

    @property
    def roles(self) -> list[str]:
        """The columns that are neither features nor the target."""
        return [name for name in (self.groups, self.split_column) if name is not None]

    def open(self, path: StrPath) -> TableFile:
        """Open a file."""
        from manyclass.app.formats import open_table

        return open_table(path, sep=self.sep, decimal=self.decimal, encoding=self.encoding)

    def find_target(self, names: list[str], table: str) -> str:
        """Return the target, given or found, and check the columns that options name."""
        self.check_data_set(table)
        label = find_target(names, self.target, table)
        self._check_columns(names, table, label)
        return label

    def check_data_set(self, name: str) -> None:
        """Raise an error if the target is not that of a bundled data set of this name."""
        if name in DATA_SETS and self.target not in (None, "class"):
            raise ValueError(
                f"{name} is a bundled data set, and its target is 'class'. Leave out "
                f"--target {self.target!r}, or write ./{name}.csv for a file."
            )

    def _check_columns(self, names: list[str], table: str, label: str) -> None:
        """Raise an error if an option names a column that is not there, or the target."""
        known = set(names)
        named = {
            "--drop": self.drop,
            "--categorical": self.categorical,
            "--numeric": self.numeric,
            "--groups": [self.groups] if self.groups is not None else [],
            "--split-column": [self.split_column] if self.split_column is not None else [],
        }
        for option, columns in named.items():
            for name in columns:
                if name not in known:
                    raise ValueError(
                        f"{option}: {table} has no column {name!r}{meant(name, known)}."
                    )
                if name == label:
                    raise ValueError(f"{option}: {name!r} is the target.")
        both = set(self.categorical) & set(self.numeric)
        if both:
            raise ValueError(f"{shown(sorted(both))} cannot be --categorical and --numeric.")


def find_target(names: list[str], target: str | None, table: str) -> str:
    """Return the name of the column that holds the classes, given or found."""
    if target is None:
        candidates = [name for name in names if name.strip().casefold() in TARGETS]
        if len(candidates) == 1:
            return candidates[0]
        found = f"has {shown(candidates)}" if candidates else f"has none of {shown(TARGETS)}"
        raise ValueError(
            f"which column holds the classes? {table} {found}; name it with --target. "
            f"{_listed(names)}"
        )
    if target not in names:
        close = get_close_matches(target, names, n=3) or [
            name for name in names if name.strip().lower() == target.strip().lower()
        ]
        meant_one = close and len(names) > 1
        hint = f"Did you mean {shown(close)}?{_strange(names)}" if meant_one else _listed(names)
        raise ValueError(f"{table} has no column {quoted(target)} for the target. {hint}")
    return target


def check_copied(names: list[str], copied: Sequence[str], table: str) -> None:
    """Raise an error if a column that predictions take along is not there."""
    absent = [name for name in copied if name not in names]
    if absent:
        raise ValueError(f"{table} lacks the --id column: {lacking(absent, names)}.")


def lacking(missing: Sequence[str], names: Sequence[str]) -> str:
    """Name columns that are not there, and what may be meant by the first."""
    return shown(missing) + meant(missing[0], names)


def _listed(names: list[str]) -> str:
    """Name the columns, and say what may be wrong with the file if these are no names."""
    if len(names) == 1:
        return (
            f"It has one column only, {quoted(names[0])}: check that the first line holds the "
            f"names of the columns, and name their separator with --sep.{_strange(names)}"
        )
    return f"Its columns are {shown(names)}.{_strange(names)}"


def _strange(names: list[str]) -> str:
    """Say what the first line seems to hold, if not the names of columns."""
    if names[0].startswith(("[", "{", "<")):
        return " It looks like JSON or HTML, which is not read: save it as a table."
    if names[0].startswith("sep="):
        return " The first line is for spreadsheets only: remove it."
    fractions = any(FRACTION.fullmatch(name) for name in names)
    return " The first line seems to hold data: put the names above it." if fractions else ""
