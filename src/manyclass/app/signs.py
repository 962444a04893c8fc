"""Numbers that are written with the sign of a currency or of percent: $1,234.50, 55 %, 12 EUR."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

SIGN = r"[%‰$€£¥₹]|EUR|USD|GBP|CHF|JPY"
SIGNED = rf"^\s*([+-]?)\s?({SIGN})?\s?([+-]?[\d.,]*\d[\d.,]*)\s?({SIGN})?\s*$"


def without_signs(fields: pd.Series) -> tuple[pd.Series, str | None]:
    """Return a column of texts without the sign of its numbers, and the sign.

    Most fields must be numbers, and all of these have the same sign; otherwise nothing changes.
    """
    if not fields.str.contains(SIGN, na=False).any():
        return fields, None
    minus, before, number, after = (part for _, part in fields.str.extract(SIGNED).items())
    found = number.notna()
    signs = set(before[found].fillna("") + after[found].fillna(""))
    if len(signs) != 1 or "" in signs or 2 * found.sum() <= fields.notna().sum():
        return fields, None
    return fields.mask(found, minus + number), signs.pop()
