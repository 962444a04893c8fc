"""Dates as people write them: find the form of a column, and read it."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING

from manyclass._lib.extras import import_extra
from manyclass._lib.messages import warn

if TYPE_CHECKING:
    import pandas as pd

ISO = "ISO8601"
ISO_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
DAYS = (  # where two forms fit all dates, the first is taken
    *("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%b %d %Y", "%B %d %Y"),
    *("%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%b-%y"),
)
TIMES = ("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p")
LIKELY = re.compile(
    r"\d{1,4}[-/. ](\d{1,2}|[^\W\d]{3,9})[-/. ]\d{2,4}\b|[^\W\d]{3,9} \d{1,2},? \d{4}\b"
)


def find_form(texts: pd.Series) -> str | None:
    """Return the form of a column of texts, as ``strptime`` takes it; None if they are no dates."""
    if len(texts) == 0:
        return None
    if texts.str.fullmatch(ISO_DATE).all():
        return ISO
    if not LIKELY.match(texts.iloc[0]):
        return None
    pd = import_extra("pandas", "tables need")
    distinct = pd.Series(texts.unique())
    forms = [day + time for time, day in product(TIMES, DAYS)]
    fitting = [form for form in forms if _fits(distinct[:1], form) and _fits(distinct, form)]
    if len(fitting) > 1 and fitting[0].startswith("%m"):
        warn(
            f"the dates of column {str(texts.name)!r}, such as {texts.iloc[0]}, are read as "
            "month, day, year. Write them as 2024-12-31 if the day comes first."
        )
    return fitting[0] if fitting else None


def _fits(texts: pd.Series, form: str) -> bool:
    pd = import_extra("pandas", "tables need")
    return bool(pd.to_datetime(texts, format=form, errors="coerce").notna().all())


def read_dates(column: pd.Series, form: str = ISO) -> pd.Series:
    """Return datetime64 in UTC, NaT where a field is no date of this form."""
    pd = import_extra("pandas", "tables need")
    dates = pd.to_datetime(column, format=form, utc=True, errors="coerce")
    if form != ISO:  # stored models meet tables of another origin
        dates = dates.fillna(pd.to_datetime(column, format=ISO, utc=True, errors="coerce"))
    return dates.dt.tz_localize(None).astype("datetime64[us]")
