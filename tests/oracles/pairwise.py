"""Samples of products of parameters that still hold every pair of values."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations, product
from typing import Any

import pytest


def pairwise(**parameters: Iterable[Any]) -> dict[str, Any]:
    """Return the arguments of ``pytest.mark.parametrize``, for a sample of a product.

    Every value of a parameter occurs with every value of every other parameter. The choice is
    greedy and depends only on the numbers of values: the same call gives the same cases in
    every process. Of two parameters the sample is the whole product.

    Parameters
    ----------
    **parameters : iterable
        The values of each parameter, by its name. A value may be a ``pytest.param`` with an id
        and marks; a case has the marks of all of its values.

    Examples
    --------
    >>> from pairwise import pairwise
    >>> sample = pairwise(code=["ovo", "ovr"], rule=["kl", "ht"], jobs=[1, 2])
    >>> [case.values for case in sample["argvalues"]]
    [('ovo', 'kl', 1), ('ovo', 'ht', 2), ('ovr', 'kl', 2), ('ovr', 'ht', 1)]
    """
    values = [list(found) for found in parameters.values()]
    cases = covering_rows([len(found) for found in values])
    return {
        "argnames": list(parameters),
        "argvalues": [
            _case([found[i] for found, i in zip(values, case, strict=True)], case, parameters)
            for case in cases
        ],
    }


def covering_rows(sizes: list[int]) -> list[tuple[int, ...]]:
    """Return rows of indices, below `sizes`, in which all pairs of indices occur.

    Each row is the one of the product that has the most pairs which do not yet occur; of
    several, the first.
    """
    if len(sizes) < 2:
        return list(product(*map(range, sizes)))
    places = list(combinations(range(len(sizes)), 2))
    open_pairs = {(a, b, i, j) for a, b in places for i in range(sizes[a]) for j in range(sizes[b])}
    candidates = list(product(*map(range, sizes)))
    rows = []
    while open_pairs:
        row = max(
            candidates,
            key=lambda row: sum((a, b, row[a], row[b]) in open_pairs for a, b in places),
        )
        rows.append(row)
        open_pairs -= {(a, b, row[a], row[b]) for a, b in places}
    return sorted(rows)


def _case(values: list[Any], case: tuple[int, ...], names: Iterable[str]) -> Any:
    """Return one case, whose id joins those of its values."""
    plain, marks, ids = [], [], []
    for value, i, name in zip(values, case, names, strict=True):
        identifier = None
        if hasattr(value, "marks"):  # a pytest.param
            marks += value.marks
            identifier = value.id
            (value,) = value.values
        plain.append(value)
        ids.append(identifier or _id_of(value, f"{name}{i}"))
    return pytest.param(*plain, marks=marks, id="-".join(ids))


def _id_of(value: Any, otherwise: str) -> str:
    """Return what pytest would call a value: its text or name, or its place among the values."""
    if value is None or isinstance(value, str | int | float | bool):
        return str(value)
    return getattr(value, "__name__", otherwise)
