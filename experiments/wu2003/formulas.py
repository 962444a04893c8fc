"""Formulas (13) to (16) of Wu et al. (2003), section 5: four rules as least-squares problems.

All are minimised over p with sum 1 and p >= 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from manyclass import couple

Array = NDArray[np.float64]


def formula_13(r: Array) -> Array:
    """Minimise sum_i [sum_j (r_ij / k - p_i / 2)]^2: the non-iterative estimates of HT."""
    k = r.shape[1]
    return 2.0 * _off_diagonal(r).sum(axis=2) / (k * (k - 1))


def formula_14(r: Array) -> Array:
    """Minimise sum_i [sum_j (r_ij p_j - r_ji p_i)]^2: the first approach, δ1."""
    return couple(r, rule="wlw1")


def formula_15(r: Array) -> Array:
    """Minimise sum_i sum_j (r_ij p_j - r_ji p_i)^2: the second approach, δ2."""
    return couple(r, rule="wlw2")


def formula_16(r: Array) -> Array:
    """Minimise sum_i sum_j (I{r_ij > r_ji} p_j - I{r_ji > r_ij} p_i)^2: p_i = c / losses of i.

    A class without losses gets all the probability (footnote of the paper).
    """
    losses = (r.transpose(0, 2, 1) > r).sum(axis=2).astype(float)
    unbeaten = (losses == 0).any(axis=1)
    p = np.where(losses == 0, 1.0, 0.0)
    p[~unbeaten] = 1.0 / losses[~unbeaten]
    return p / p.sum(axis=1, keepdims=True)


def _off_diagonal(r: Array) -> Array:
    return r * (1.0 - np.eye(r.shape[1]))


FORMULAS: dict[str, Callable[[Array], Array]] = {
    "(13)": formula_13,
    "(14)": formula_14,
    "(15)": formula_15,
    "(16)": formula_16,
}
