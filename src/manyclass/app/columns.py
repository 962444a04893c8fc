"""The kinds of columns in a table, and their conversion to numbers.

A column is of one of four kinds: numbers, categories, booleans (two categories) or dates. The
kinds are found once, when a model is fitted. Later tables are read by the same kinds.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.validation import check_is_fitted, validate_data

from manyclass._lib.extras import import_extra
from manyclass._lib.messages import quoted, warn
from manyclass.app.dates import COMPACT, ISO, are_compact_dates, find_form, read_dates
from manyclass.app.terminal import joined, shown

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["number", "category", "bool", "date"]
KINDS = {"number": "numbers", "category": "categories", "bool": "yes or no", "date": "dates"}
"""The kinds in words."""

MISSING = ("", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "NULL", "null", "None")
"""Fields of a text file that stand for a missing value."""
LARGEST = 1e150  # its square is finite in float64, and so is a sum of many such squares
MOST_CATEGORIES = 50
"""The most columns of zeros and ones for one column of categories. A choice."""
MISSING_WORDS = frozenset(
    "unknown missing none nil na n.a. n.a n/a nan null - -- --- . .. * ** undefined unspecified nd "
    "#value! #div/0! #ref! #num! #name? #n/a k.a. s.d. ?? ???".split()
) | {"not available", "not applicable", "no data", "not known", "no value"}
"""Texts in a column of numbers that stand for a missing value, in any case."""


class Layout(NamedTuple):
    """How the columns of a table are read. Stored with a model, for later tables."""

    kinds: dict[str, Kind]
    dates: dict[str, str] = {}  # noqa: RUF012
    """The form of dates that are not as in 2024-12-31."""
    missing: dict[str, list[str]] = {}  # noqa: RUF012
    """Texts in a column of numbers that stand for a missing value."""


def import_pandas() -> Any:
    """Return pandas, or say how to get it."""
    return import_extra("pandas", "tables need")


def kinds_of(frame: pd.DataFrame) -> dict[str, Kind]:
    """Return the kind of each column of a table that was read."""
    return {str(name): _kind_of(column) for name, column in frame.items()}


def layout_of(
    frame: pd.DataFrame, *, categorical: Collection[str] = (), numeric: Collection[str] = ()
) -> Layout:
    """Find out what each column holds; ``categorical`` and ``numeric`` name what is known.

    A column of numbers with a few other texts, such as "unknown", is a column of numbers with
    missing values, and a warning names them.
    """
    layout = Layout({}, {}, {})
    for name, column in frame.items():
        name = str(name)
        if name in categorical:
            layout.kinds[name] = "category"
        elif name in numeric:
            layout.kinds[name] = "number"
            layout.missing[name] = _not_numbers(column)
        else:
            _read_layout(name, column, layout)
    strange = {name: texts for name, texts in layout.missing.items() if texts}
    for name, texts in strange.items():
        warn(
            f"column {name!r} holds {KINDS[layout.kinds[name]]} and {shown(texts, 3)}: "
            f"{'this counts' if len(texts) == 1 else 'these count'} as missing. "
            f"--categorical {name!r} makes categories of all values."
        )
    return layout._replace(missing=strange)


def _read_layout(name: str, column: pd.Series, layout: Layout) -> None:
    kind = _kind_of(column)
    if kind == "category" and (stray := _stray(column)):
        layout.kinds[name], layout.missing[name] = "number", stray
        return
    layout.kinds[name] = kind
    if kind == "date" and column.dtype.kind != "M":
        texts = column.dropna().astype(str)
        known = _says_missing(texts)
        layout.missing[name] = sorted(texts[known].unique())
        form = find_form(texts[~known])
        if form not in (None, ISO):
            layout.dates[name] = str(form)
    elif kind == "number" and column.dtype.kind in "iuf" and are_compact_dates(column):
        layout.kinds[name], layout.dates[name] = "date", COMPACT
        warn(
            f"column {name!r} is read as dates such as 20241231. --numeric {name!r} keeps numbers."
        )


def _not_numbers(column: pd.Series) -> list[str]:
    pd = import_pandas()
    if pd.api.types.is_numeric_dtype(column.dtype):
        return []
    lost = pd.to_numeric(column, errors="coerce").isna() & column.notna()
    return sorted({str(value) for value in column[lost].unique()})


def _stray(
    column: pd.Series, *, share: float = 0.9, most_texts: int = 3, distinct: int = 20
) -> list[str]:
    """Return the few texts in a column of numbers, if it is one.

    Words for "missing" are such texts if half of the fields are numbers. Others are, if a
    ``share`` is, of at least ``distinct`` different numbers, and ``most_texts`` differ. All are
    choices.
    """
    pd = import_pandas()
    if isinstance(column.dtype, pd.CategoricalDtype):
        return []
    present = column.dropna()
    numbers = pd.to_numeric(present, errors="coerce")
    texts = sorted({str(text) for text in present[numbers.isna()].unique()})
    found = numbers.notna().mean() if len(present) else 0.0
    known = bool(_says_missing(pd.Series(texts, dtype=object)).all())
    few = found >= share and len(texts) <= most_texts and numbers.nunique() >= distinct
    return texts if texts and ((known and found >= 0.5) or few) else []


def _says_missing(values: pd.Series) -> pd.Series:
    """Return which values are words for a missing one."""
    return values.map(lambda value: str(value).strip().casefold() in MISSING_WORDS).astype(bool)


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
    if found == "string" and _dates(present):
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


def _dates(texts: pd.Series) -> bool:
    """Return whether texts are dates; up to half of them may be words for a missing one."""
    known = _says_missing(texts)
    return bool(known.mean() <= 0.5) and find_form(texts[~known]) is not None


def conform(
    frame: pd.DataFrame, layout: Layout | Mapping[str, Kind], *, first_row: int = 1
) -> pd.DataFrame:
    """Return the columns that a layout, or a mapping of kinds, names, converted to these kinds.

    Numbers are float64, dates datetime64, categories and booleans objects: text, or NaN where
    missing. ``frame`` may have further columns. Errors name the row of a field that is not a number
    or date, and of a number that is infinite or beyond 1e150; ``first_row`` is the number of the
    first row.
    """
    pd = import_pandas()
    if not isinstance(layout, Layout):
        layout = Layout(dict(layout))
    texts = {"category": _as_text, "bool": _as_bool}
    whole = _whole_numbers(frame, layout)
    read = {}
    for name, kind in layout.kinds.items():
        if name in whole:
            continue
        column = frame[name]
        if kind == "number":
            read[name] = _as_number(column, first_row, layout.missing.get(name, []))
        elif kind == "date":
            dates = read_dates(column, layout.dates.get(name, ISO))
            lost = _unread(column, dates, layout.missing.get(name, []))
            _check_read(column, lost, "dates", first_row)
            read[name] = dates
        else:
            read[name] = texts[kind](column)
    others = pd.DataFrame(read, index=frame.index)
    return pd.concat([whole, others], axis=1)[list(layout.kinds)] if whole.shape[1] else others


def _whole_numbers(frame: pd.DataFrame, layout: Layout) -> pd.DataFrame:
    """Return the columns that need no more than a type, all at once: tables may be wide."""
    kinds = dict(zip(map(str, frame.columns), (dtype.kind for dtype in frame.dtypes), strict=True))
    plain = [
        n for n, kind in layout.kinds.items() if kind == "number" and kinds.get(n, "") in "iuf"
    ]
    block = frame[plain].astype(np.float64)
    return block if (np.abs(block.to_numpy()) <= LARGEST).all() else frame[[]]


def _as_number(column: pd.Series, first_row: int, missing: list[str]) -> pd.Series:
    pd = import_pandas()
    if column.dtype.kind == "m":
        column = column / np.timedelta64(1, "s")
    elif pd.api.types.is_bool_dtype(column.dtype):
        column = column.astype(object).map(str)
    try:
        numbers = pd.to_numeric(column, errors="coerce").astype(np.float64)
    except OverflowError:  # an integer of more than 308 digits
        numbers = column.map(_float).astype(np.float64)
    _check_read(column, _unread(column, numbers, missing), "numbers", first_row)
    beyond = np.flatnonzero(np.abs(numbers) > LARGEST)
    if len(beyond):
        found = numbers.iloc[beyond[0]]
        what = "infinite" if np.isinf(found) else f"{found:g}, too large to compute with,"
        raise ValueError(
            f"column {column.name!r} is {what} in row {beyond[0] + first_row}: leave the field "
            "empty if the value is unknown, or use the largest that makes sense."
        )
    return numbers


def _unread(column: pd.Series, read: pd.Series, missing: list[str]) -> pd.Series:
    """Return which fields became NaN, without those that stand for a missing value."""
    lost = read.isna() & column.notna()
    if lost.any():
        known = _says_missing(column[lost]) | column[lost].astype(str).isin(missing)
        lost &= ~known.reindex(lost.index, fill_value=False)
    return lost


def _float(field: Any) -> float:
    try:
        return float(str(field))
    except ValueError:
        return np.nan


def _check_read(column: pd.Series, lost: pd.Series, what: str, first_row: int) -> None:
    bad = np.flatnonzero(lost)
    if len(bad):
        more = f" (and so have {len(bad) - 1} more rows)" if len(bad) > 1 else ""
        raise ValueError(
            f"column {column.name!r} must hold {what}, but row {bad[0] + first_row} has "
            f"{str(column.iloc[bad[0]])!r}{more}: correct it, or leave the field empty."
        )


def _as_text(column: pd.Series) -> pd.Series:
    pd = import_pandas()
    if isinstance(column.dtype, pd.CategoricalDtype):
        column = column.astype(column.cat.categories.dtype)
    if column.dtype.kind == "f" and (column.dropna() % 1 == 0).all():
        column = column.map(lambda value: int(value), na_action="ignore").astype(object)
    present = column.notna()
    texts = column.astype(object).where(present, np.nan)
    texts[present] = [str(value) for value in texts[present]]
    return texts


def _as_bool(column: pd.Series) -> pd.Series:
    texts = _as_text(column)
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
    transformer = ColumnTransformer([part for part in chosen if part[2]])
    if transformer.get_params(deep=False).get("force_int_remainder_cols") is True:
        # scikit-learn 1.6 would have a list of a private type, which stored models do not hold.
        transformer.set_params(force_int_remainder_cols=False)
    return transformer


def used_columns(
    X: pd.DataFrame, *, most_names: int = 1_000
) -> tuple[pd.DataFrame, ColumnTransformer]:
    """Return the columns that are of use, and the transformer that converts them.

    With more columns than ``most_names``, all of one kind, the transformer has no list of names: a
    ColumnTransformer takes a time for it that grows with its square, minutes for 60,000 columns.
    """
    transformer = column_transformer(X)
    names = {name for _, _, part in transformer.transformers for name in part}
    if len(transformer.transformers) == 1 and len(names) > most_names:
        ((part, steps, _),) = transformer.transformers
        transformer.set_params(transformers=[(part, steps, slice(None))])
    return X[[name for name in X.columns if name in names]], transformer


def _listed(useless: Mapping[str, str]) -> str:
    names = {why: [n for n, other in useless.items() if other == why] for why in useless.values()}
    return joined([f"{shown(alike)} ({why})" for why, alike in names.items()])


def _why_useless(
    column: pd.Series, kind: Kind, *, share: float = 0.5, most_texts: int = 10_000
) -> str | None:
    """Return why a column is of no use, or None.

    Texts are not categories if more than a ``share`` of the rows differ, or if there are more than
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
        return f"{distinct} different texts in {present} rows, {_like_what(column.dropna())}"
    return None


def _like_what(texts: pd.Series) -> str:
    """Say what texts look like that nearly all differ: measurements with a unit, or identifiers."""
    beside = texts.astype(str).str.extract(r"^(\D*?)[+-]?\d+[.,]\d+(\D*)$")
    if len(beside.drop_duplicates()) == 1 and beside.notna().all(axis=None):
        return f"such as {quoted(texts.iloc[0])}: as numbers they would be of use"
    return "as in an identifier"


def _standardised():
    # A column that is empty in some fold of a cross-validation stays, as zeros.
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    return make_pipeline(imputer, StandardScaler())
