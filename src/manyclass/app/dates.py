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
COMPACT = "%Y%m%d"
ISO_DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"
DAYS = (  # where two forms fit all dates, the first is taken
    *("%d.%m.%Y", "%m/%d/%Y", "%d/%m/%Y", "%Y/%m/%d", "%Y.%m.%d", "%d-%m-%Y", "%m-%d-%Y"),
    *("%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%d-%b-%Y", "%b %d %Y", "%B %d %Y"),
    *("%d.%m.%y", "%m/%d/%y", "%d/%m/%y", "%d-%m-%y", "%d-%b-%y", "%Y.%m.%d.", "%Y. %m. %d."),
    *("%d. %b %Y", "%d. %B %Y", "%Y-%m", "%m/%Y", "%b %Y", "%B %Y", COMPACT),
)
WEEKDAYS = ("%a, ", "%A, ", "%a ", "%A ")
TIMES = (
    *("", " %H:%M", " %H:%M:%S", "T%H:%M", "T%H:%M:%S", " %I:%M %p", " %I:%M:%S %p"),
    *(" %H:%M:%S %z", " %H:%M:%S GMT", " %H:%M:%S UTC"),
)
CTIME = "%a %b %d %H:%M:%S %Y"
WEEKDAY = r"(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*,? "
MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
LIKELY = re.compile(
    rf"(?P<weekday>{WEEKDAY})?(?:\d{{1,2}}[-/. ] ?(?:\d{{1,2}}|{MONTH})[-/. ] ?\d{{2,4}}\b"
    rf"|{MONTH} \d|\d{{4}}[-/.] ?\d{{1,2}}\b|\d{{1,2}}/\d{{4}}\b|(?:19|20)\d{{6}}\b)",
    re.IGNORECASE,
)


def find_form(texts: pd.Series) -> str | None:
    """Return the form of a column of dates, as ``strptime`` takes it; None for other texts."""
    if len(texts) == 0:
        return None
    if texts.str.fullmatch(ISO_DATE).all():
        return ISO
    likely = LIKELY.match(texts.iloc[0])
    if not likely:
        return None
    pd = import_extra("pandas", "tables need")
    distinct = pd.Series(texts.unique())
    names = WEEKDAYS if likely["weekday"] else ("",)
    forms = [name + day + time for time, day, name in product(TIMES, DAYS, names)] + [CTIME]
    fitting = [form for form in forms if _fits(distinct[:1], form) and _fits(distinct, form)]
    if len(fitting) > 1 and fitting[0].startswith("%m"):
        warn(
            f"the dates of column {str(texts.name)!r}, such as {texts.iloc[0]}, are read as "
            "month, day, year. Write them as 2024-12-31 if the day comes first."
        )
    return fitting[0] if fitting else None


def _fits(texts: pd.Series, form: str) -> bool:
    pd = import_extra("pandas", "tables need")
    return bool(pd.to_datetime(texts, format=form, utc=True, errors="coerce").notna().all())


def are_compact_dates(numbers: pd.Series, *, fewest: int = 10) -> bool:
    """Return whether whole numbers are dates such as 20241231.

    There must be at least ``fewest`` different ones, a choice: of random numbers of eight digits
    from 1900 on, one in 27 is a date.
    """
    pd = import_extra("pandas", "tables need")
    distinct = pd.Series(numbers.dropna().unique())
    if len(distinct) < fewest or not distinct.between(19_000_101, 21_001_231).all():
        return False
    return bool((distinct % 1 == 0).all()) and _fits(distinct.astype("int64").astype(str), COMPACT)


def read_dates(column: pd.Series, form: str = ISO) -> pd.Series:
    """Return datetime64 in UTC, NaT where a field is not a date of this form."""
    pd = import_extra("pandas", "tables need")
    if column.dtype.kind in "iuf":
        column = column.map(lambda x: str(int(x)) if x % 1 == 0 else str(x), na_action="ignore")
    dates = pd.to_datetime(column, format=form, utc=True, errors="coerce")
    if form != ISO:  # stored models meet tables of another origin
        dates = dates.fillna(pd.to_datetime(column, format=ISO, utc=True, errors="coerce"))
    return dates.dt.tz_localize(None).astype("datetime64[us]")
