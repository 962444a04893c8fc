"""Samples of products of parameters that still hold every pair of values."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from itertools import combinations, product
from typing import Any

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks


def all_pairs(where: Callable[..., bool] | None = None, **parameters: Iterable[Any]) -> Any:
    """Return the mark that parametrizes a test by a sample of a product.

    Every value of a parameter occurs with every value of every other parameter. The choice is
    greedy and depends only on the numbers of values and on `where`: every process gets the same
    cases. With two parameters the sample is the whole product.

    Parameters
    ----------
    where : callable, optional
        Takes one value of each parameter, by name, and returns whether they go together. Cases
        that do not are left out, and so are pairs of values that no other case has.
    **parameters : iterable
        The values of each parameter, by its name. A value may be a ``pytest.param`` with an id
        and marks. A case has the marks of all of its values. A mapping stands for its values,
        and its keys are their ids.

    Examples
    --------
    >>> from all_pairs import all_pairs
    >>> mark = all_pairs(code=["ovo", "ovr"], rule=["kl", "ht"], jobs=[1, 2])
    >>> [case.values for case in mark.args[1]]
    [('ovo', 'kl', 1), ('ovo', 'ht', 2), ('ovr', 'kl', 2), ('ovr', 'ht', 1)]
    """
    values = [_as_params(name, found) for name, found in parameters.items()]
    names = list(parameters)

    def is_allowed(row: tuple[int, ...]) -> bool:
        plain = (found[i].values[0] for found, i in zip(values, row, strict=True))
        return where is None or where(**dict(zip(names, plain, strict=True)))

    rows = covering_rows([len(found) for found in values], is_allowed)
    cases = [_case([found[i] for found, i in zip(values, row, strict=True)]) for row in rows]
    return pytest.mark.parametrize(names, cases)


def sampled_product(*values: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Return a sample of ``itertools.product(*values)`` with all pairs of values.

    Examples
    --------
    >>> from all_pairs import sampled_product
    >>> sampled_product("ab", [1, 2], [False, True])
    [('a', 1, False), ('a', 2, True), ('b', 1, True), ('b', 2, False)]
    """
    lists = [list(found) for found in values]
    rows = covering_rows([len(found) for found in lists])
    return [tuple(found[i] for found, i in zip(lists, row, strict=True)) for row in rows]


def covering_rows(
    sizes: list[int], is_allowed: Callable[[tuple[int, ...]], bool] = lambda row: True
) -> list[tuple[int, ...]]:
    """Return rows of indices, below `sizes`, in which all pairs of indices occur.

    Each row is the one of the product with the most pairs that do not occur yet. If several
    have as many, it is the first of them.
    """
    candidates = [row for row in product(*map(range, sizes)) if is_allowed(row)]
    if len(sizes) < 2:
        return candidates
    pairs = {row: set(combinations(enumerate(row), 2)) for row in candidates}
    open_pairs = set().union(*pairs.values())
    rows = []
    while open_pairs:
        rows.append(max(candidates, key=lambda row: len(pairs[row] & open_pairs)))
        open_pairs -= pairs[rows[-1]]
    return sorted(rows)


def checks_in_turn(*groups: list[Any], **options: Any) -> Any:
    """Return the mark of scikit-learn's checks, for one estimator of each group at a time.

    Every check runs once for every group. The estimators of a group take turns, and begin at
    different places in neighbouring groups. So if a group holds the estimators with one value of
    a parameter, every check meets every value.

    Parameters
    ----------
    *groups : list of estimators
    **options
        Those of ``parametrize_with_checks``.
    """
    cases = []
    for start, group in enumerate(groups):
        by_check = defaultdict(list)
        for estimator in group:
            mark, seen = parametrize_with_checks([estimator], **options), Counter()
            for case in mark.args[1]:
                check = mark.kwargs["ids"](getattr(case, "values", case)[1])
                seen[check] += 1  # some checks run with several parameters
                by_check[check, seen[check]].append(case)
        turns = enumerate(by_check.values(), start)
        cases += [found[turn % len(found)] for turn, found in turns]
    return pytest.mark.parametrize(mark.args[0], cases, **mark.kwargs)


def _as_params(name: str, values: Iterable[Any]) -> list[Any]:
    """Return values as ``pytest.param`` with ids."""
    if isinstance(values, Mapping):
        return [pytest.param(value, id=str(key)) for key, value in values.items()]
    params = [v if isinstance(v, type(pytest.param())) else pytest.param(v) for v in values]
    return [
        p if p.id else pytest.param(*p.values, marks=p.marks, id=_id_of(*p.values, f"{name}{i}"))
        for i, p in enumerate(params)
    ]


def _case(params: list[Any]) -> Any:
    """Return one case, whose id joins those of its values."""
    return pytest.param(
        *(param.values[0] for param in params),
        marks=[mark for param in params for mark in param.marks],
        id="-".join(param.id for param in params),
    )


def _id_of(value: Any, otherwise: str) -> str:
    """Return a short text or name of a value, or else its place among the values."""
    if value is None or isinstance(value, str | int | float | bool):
        return str(value)
    return getattr(value, "__name__", otherwise)
