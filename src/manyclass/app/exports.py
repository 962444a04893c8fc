"""Tables of a report as CSV and JSON, in links that need no server."""

from __future__ import annotations

import base64
import csv
import io
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from manyclass.app.writing import escape_formula


class Export(NamedTuple):
    """A table of the page, for a spreadsheet or a program."""

    name: str
    header: list[str]
    rows: list[list[Any]]

    @property
    def links(self) -> list[tuple[str, str, str]]:
        """Format, name of the file, and address of its content."""
        kinds = (("CSV", "text/csv", self._csv()), ("JSON", "application/json", self._json()))
        return [
            (kind, f"{self.name}.{kind.lower()}", _address(medium, text))
            for kind, medium, text in kinds
        ]

    def _csv(self) -> str:
        buffer = io.StringIO()
        writer = csv.writer(buffer, lineterminator="\n")
        writer.writerows(_escaped(row) for row in [self.header, *self.rows])
        return buffer.getvalue()

    def _json(self) -> str:
        """Write it as ``pandas.read_json(..., orient="split")`` reads it."""
        table = {"columns": self.header, "data": self.rows}
        return json.dumps(table, ensure_ascii=False, default=str, separators=(",", ":"))


def _escaped(row: Sequence[Any]) -> list[Any]:
    return [escape_formula(cell) if isinstance(cell, str) else cell for cell in row]


def _address(medium: str, text: str) -> str:
    content = base64.b64encode(text.encode("utf-8", "replace")).decode()
    return f"data:{medium};charset=utf-8;base64,{content}"
