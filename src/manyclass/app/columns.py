"""The kinds of columns in a table, and their conversion to numbers.

A column is of one of four kinds: numbers, categories, booleans (two categories) or dates. The
kinds are found once, when a model is fitted. Later tables are read by the same kinds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from manyclass._lib.extras import import_extra
from manyclass._lib.messages import warn

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "category", "bool", "date"]

MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
"""Fields of a text file that stand for a missing value."""
MOST_CATEGORIES = 50
"""The most columns of zeros and ones for one column of categories. A choice."""
DATE = r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?"


def import_pandas() -> Any:
    """Return pandas, or say how to get it."""
    return import_extra("pandas", "tables need")


def shown(names: Iterable[str], most: int = 12) -> str:
    """Return quoted names for a message, not more than a dozen."""
    return _joined([repr(name) for name in names], most)


def _joined(texts: list[str], most: int = 12) -> str:
    rest = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + rest


def kinds_of(frame: pd.DataFrame) -> dict[str, Kind]:
    """Return the kind of each column."""
    return {str(name): _kind_of(frame[name]) for name in frame.columns}


def _kind_of(column: pd.Series) -> Kind:
    pd = import_pandas()
    if isinstance(column.dtype, pd.CategoricalDtype):
        return "category"
    if pd.api.types.is_bool_dtype(column.dtype):
        return "bool"
    if pd.api.types.is_numeric_dtype(column.dtype) or column.dtype.kind == "m":
        return "number"
    if column.dtype.kind == "M":
        return "date"
    present = column.dropna()
    found = pd.api.types.infer_dtype(present, skipna=True)
    simple: dict[str, Kind] = {
        "boolean": "bool",
        "date": "date",
        "datetime": "date",
        "decimal": "number",
        "empty": "number",
        "floating": "number",
        "integer": "number",
        "mixed-integer-float": "number",
    }
    if found in simple:
        return simple[found]
    if found == "string" and present.str.fullmatch(DATE).all():
        return "date"
    if found == "string":
        return "bool" if set(present.unique()) <= {"True", "False"} else "category"
    if all(isinstance(value, str | int | float | bool) for value in present):
        return "category"
    strange = next(type(value).__name__ for value in present if not isinstance(value, str))
    raise ValueError(
        f"column {column.name!r} holds values of type {strange}: only numbers, text, dates and "
        "booleans can be used. Leave it out, or make several columns of it."
    )


def conform(frame: pd.DataFrame, kinds: Mapping[str, Kind], *, first_row: int = 1) -> pd.DataFrame:
    """Return the columns that ``kinds`` names, converted to these kinds.

    Numbers are float64, dates datetime64, categories and booleans objects: text, or NaN where
    missing. ``frame`` may have further columns. Errors name the row of a field that is not a number
    or date, and of a number that is infinite or beyond 1e150; ``first_row`` is the number of the
    first row.
    """
    pd = import_pandas()
    readers = {"number": _as_number, "category": _as_text, "bool": _as_bool, "date": _as_date}
    return pd.DataFrame(
        {name: readers[kind](frame[name], first_row) for name, kind in kinds.items()},
        index=frame.index,
    )


def _as_number(column: pd.Series, first_row: int) -> pd.Series:
    pd = import_pandas()
    if column.dtype.kind == "m":
        column = column / np.timedelta64(1, "s")
    elif pd.api.types.is_bool_dtype(column.dtype):
        column = column.astype(object).map(str)
    try:
        numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    except OverflowError:  # an integer of more than 308 digits
        numbers = column.map(_float).astype(np.float64)
    _check_read(column, numbers.isna(), "numbers", first_row)
    largest = 1e150  # its square is finite in float64, and so is a sum of many such squares
    beyond = np.flatnonzero(np.abs(numbers) > largest)
    if len(beyond):
        found = numbers.iloc[beyond[0]]
        what = "infinite" if np.isinf(found) else f"{found:g}, too large to compute with,"
        raise ValueError(
            f"column {column.name!r} is {what} in row {beyond[0] + first_row}: leave the field "
            "empty if the value is unknown, or use the largest that makes sense."
        )
    return numbers


def _float(field: Any) -> float:
    try:
        return float(str(field))
    except ValueError:
        return np.nan


def _as_date(column: pd.Series, first_row: int) -> pd.Series:
    pd = import_pandas()
    dates = pd.to_datetime(column, format="ISO8601", utc=True, errors="coerce")
    _check_read(column, dates.isna(), "dates", first_row)
    return dates.dt.tz_localize(None).astype("datetime64[us]")


def _check_read(column: pd.Series, lost: pd.Series, what: str, first_row: int) -> None:
    bad = np.flatnonzero(lost & column.notna())
    if len(bad):
        more = f" (and {len(bad) - 1} rows after it)" if len(bad) > 1 else ""
        raise ValueError(
            f"column {column.name!r} must hold {what}, but row {bad[0] + first_row} has "
            f"{str(column.iloc[bad[0]])!r}{more}: correct it, or leave the field empty."
        )


def _as_text(column: pd.Series, first_row: int) -> pd.Series:
    pd = import_pandas()
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():
        column = column.map(lambda value: int(value), na_action="ignore").astype(object)
    present = column.notna()
    texts = column.astype(object).where(present, np.nan)
    texts[present] = [str(value) for value in texts[present]]
    return texts


def _as_bool(column: pd.Series, first_row: int) -> pd.Series:
    texts = _as_text(column, first_row)
    spelt = {"true": "True", "false": "False"}
    return texts.map(lambda value: spelt.get(str(value).lower(), value)).astype(object)


# ---------------------------------------------------------------------- to numbers


class DaysSince1970(OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    """Dates as numbers: days since the first of January 1970, NaN where missing."""

    def fit(self, X, y=None):
        """Remember the names of the columns."""
        validate_data(self, X, skip_check_array=True)
        return self

    def transform(self, X) -> NDArray[np.float64]:
        """Return an array of the shape of X."""
        check_is_fitted(self)
        validate_data(self, X, reset=False, skip_check_array=True)
        since = np.asarray(X, dtype="datetime64[us]") - np.datetime64(0, "us")
        return since / np.timedelta64(1, "D")


def column_transformer(X: pd.DataFrame) -> ColumnTransformer:
    """Return a transformer that converts the columns of a table to numbers.

    Numbers are standardised. The median replaces missing numbers, and a further column marks
    them. Dates become numbers: days since 1970. Each category becomes a column of zeros and
    ones, and so does "missing". Categories with a single row, all but the 49 most frequent ones,
    and those that ``fit`` has not seen share one column. Useless columns are left out with a
    warning: columns without values, with the same value in all rows, or with text that differs in
    most rows, such as an identifier.

    Parameters
    ----------
    X : DataFrame
        The training data, as :func:`~manyclass.app.tables.read_table` returns it.

    Returns
    -------
    ColumnTransformer
        Not fitted. Its output is sparse where most of it is zero.

    Examples
    --------
    >>> import pandas as pd
    >>> from manyclass.app.columns import column_transformer
    >>> X = pd.DataFrame({"size": [1.0, 2.0, None, 5.0], "colour": ["red", "blue"] * 2})
    >>> column_transformer(X).fit_transform(X).round(1)
    array([[-1. , -0.6,  0. ,  1. ],
           [-0.3, -0.6,  1. ,  0. ],
           [-0.3,  1.7,  0. ,  1. ],
           [ 1.7, -0.6,  1. ,  0. ]])
    """
    kinds = kinds_of(X)
    useless = {name: why for name, kind in kinds.items() if (why := _why_useless(X[name], kind))}
    used = {name: kind for name, kind in kinds.items() if name not in useless}
    if not used:
        raise ValueError(f"no column is of use: {_listed(useless)}.")
    if useless:
        warn(f"columns left out: {_listed(useless)}.")
    one_hot = OneHotEncoder(
        handle_unknown="infrequent_if_exist", min_frequency=2, max_categories=MOST_CATEGORIES
    )
    parts = {
        "numbers": (_standardised(), ("number",)),
        "dates": (make_pipeline(DaysSince1970(), _standardised()), ("date",)),
        "categories": (one_hot, ("category", "bool")),
    }
    chosen = [
        (part, transformer, [name for name, kind in used.items() if kind in of])
        for part, (transformer, of) in parts.items()
    ]
    return ColumnTransformer([part for part in chosen if part[2]])


def _listed(useless: Mapping[str, str]) -> str:
    return _joined([f"{name!r} ({why})" for name, why in useless.items()])


def _why_useless(
    column: pd.Series, kind: Kind, *, share: float = 0.5, most_texts: int = 10_000
) -> str | None:
    """Return why a column is of no use, or None.

    Texts are no categories if more than a ``share`` of the rows differ, or if there are more than
    ``most_texts`` different ones. Both are choices.
    """
    present = column.notna().sum()
    if present == 0:
        return "all values are missing"
    distinct = column.nunique()
    if distinct == 1 and present == len(column):
        return "the same value in all rows"
    many = distinct > max(MOST_CATEGORIES, share * present) or distinct > most_texts
    if kind == "category" and many:
        return f"{distinct} different texts in {present} rows, as in an identifier"
    return None


def _standardised():
    # A column that is empty in some fold of a cross-validation stays, as zeros.
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return make_pipeline(imputer, StandardScaler())
