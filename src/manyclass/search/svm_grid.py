"""A grid of C and gamma, and the machines at each of its points, one after the other.

The machines of a gamma share the kernel matrix, if ``cache_size`` allows it. C grows, and the
solver goes on from the machines of the smaller C.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from manyclass._lib.arrays import Floats
from manyclass._lib.messages import quoted
from manyclass.banks import BankFitter
from manyclass.banks.limits import Limits
from manyclass.banks.svm.bank import KernelBank
from manyclass.banks.svm.fit import with_larger_C


class Point(NamedTuple):
    """The machines of one C and gamma."""

    row: int
    column: int
    """The place in the grid: ``gammas[row]``, ``Cs[column]``."""
    bank: KernelBank | None
    """None if the machines are those of the next smaller C: no coefficient is near its bound."""
    fit_part: BankFitter
    """Fits the same machines on some rows."""


def powers_of_ten(n: Any, ends: tuple[float, float], name: str) -> Floats:
    """Return n numbers from ``10 ** ends[0]`` to ``10 ** ends[1]``; one is in the middle."""
    if isinstance(n, bool) or n < 1:
        raise ValueError(f"{name} must be at least 1, or a list of values, got {quoted(n)}.")
    return np.logspace(*ends, int(n)) if n > 1 else np.array([10.0 ** np.mean(ends)])


def resolve_Cs(Cs: int | ArrayLike) -> Floats:
    """Return the values of C."""
    if isinstance(Cs, Integral):
        return powers_of_ten(Cs, (-1.0, 3.0), "Cs")  # a choice
    return _numbers(Cs, "Cs", least="> 0", allowed=lambda value: 0 < value < np.inf)


def resolve_gammas(gammas: int | ArrayLike, number_of: Callable[[str], float] | None) -> NDArray:
    """Return the values of gamma as numbers; "scale" alone if the kernel has no gamma.

    ``number_of`` returns the number of "scale" and of "auto"; None if the kernel has no gamma.
    """
    if number_of is None:
        return np.array(["scale"])
    if isinstance(gammas, Integral):
        return powers_of_ten(gammas, (-1.0, 1.0), "gammas") * number_of("scale")  # a choice
    values = [gammas] if isinstance(gammas, str) else np.asarray(gammas, dtype=object).ravel()
    numbers = [number_of(g) if isinstance(g, str) else g for g in values]
    return _numbers(numbers, "gammas", least=">= 0", allowed=lambda value: 0 <= value < np.inf)


def _numbers(values: Any, name: str, *, least: str, allowed: Callable[[float], bool]) -> Floats:
    """Return positive numbers as an array, in the order given."""
    values = np.asarray(values, dtype=object).ravel().tolist()
    for value in values or [None]:
        number = isinstance(value, Real) and not isinstance(value, bool)
        if not (number and allowed(float(value))):
            raise ValueError(
                f"{name} must be a number of values, or a list of finite numbers {least}, got "
                f"{quoted(value)} in it."
            )
    return np.array(values, dtype=np.float64)


def walk(
    fit_part: BankFitter,
    Cs: Floats,
    gammas: NDArray,
    estimator: Callable[[float, Any], Any],
    *,
    every: bool = False,
) -> Iterator[Point]:
    """Fit the machines at all points: gamma by gamma, with growing C.

    ``every`` asks for the machines at every point, also where a larger C does not change them.
    """
    # A kernel matrix of all samples is shared by all C, so it pays also where the rows of a single
    # fit are computed when they are needed. ``cache_size`` still bounds it.
    once = {**fit_part.options, "limits": Limits(small=len(fit_part.y))}
    for row, gamma in enumerate(gammas):
        bank: Any = None
        for column in np.argsort(Cs, kind="stable"):
            machine = estimator(float(Cs[column]), gamma)
            of_point = replace(fit_part, estimator=machine)
            known = bank is not None and bank.converged and not every
            same = known and bank.training.unbounded
            if bank is None:
                bank = replace(of_point, options=once)()
            elif not same:
                bank = with_larger_C(bank, machine, fit_part.X, fit_part.y, fit_part.code)
            yield Point(row, int(column), None if same else bank, of_point)
