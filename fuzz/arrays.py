"""Arrays that go wrong: values at the edge of their range, in every layout numpy has."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Rng = np.random.Generator

EDGES = np.array(
    [0.0, -0.0, 1.0, 0.5, 5e-324, 1e-310, 2.3e-308, 1e-300, 1e-17, 1e-16, 1e-12, 1e-7, 1e-5]
)
NEAR = np.concatenate([EDGES, 1.0 - EDGES, [np.nextafter(0.5, 0), np.nextafter(1.0, 0)]])
POISON = np.array(
    [np.nan, np.inf, -np.inf, -5e-324, -1e-17, np.nextafter(1.0, 2), 1.0 + 1e-7, 2.0, -3.0, 1e308]
)
FAR = np.array(
    [0.0, -0.0, 1.0, 5e-324, 1e-310, 1e-16, 1e7, 1e15, 1e16, 1e100, 1e154, 1e200, 1e300, 1.7e308]
)


def chance(rng: Rng, share: float) -> bool:
    """Say yes to that share of the questions."""
    return bool(rng.random() < share)


def one_of(rng: Rng, *choices: Any) -> Any:
    """Pick one."""
    return choices[int(rng.integers(len(choices)))]


def size(rng: Rng, least: int, most: int) -> int:
    """Return a size, small ones much more often."""
    return least + int((most - least + 1) * rng.random() ** 6)


def probabilities(rng: Rng, shape: tuple[int, ...], poison: float = 0.1) -> NDArray[np.float64]:
    """Return numbers in [0, 1], many at its ends; now and then one that is not."""
    style = rng.integers(4)
    if style == 0:
        r = rng.random(shape)
    elif style == 1:
        r = rng.choice(NEAR, shape)
    elif style == 2:  # log-odds over many powers of ten
        with np.errstate(over="ignore"):
            r = 1.0 / (1.0 + np.exp(rng.normal(scale=10.0 ** rng.uniform(-3, 2.5), size=shape)))
    else:
        r = np.where(rng.random(shape) < 0.5, rng.choice(NEAR, shape), rng.random(shape))
    return _poisoned(rng, r, poison)


def scores(rng: Rng, shape: tuple[int, ...], nan: float = 0.1) -> NDArray[np.float64]:
    """Return margins of every size; infinite and missing ones among them."""
    f = rng.normal(size=shape) * 10.0 ** one_of(rng, -310, -20, -3, 0, 0, 0, 3, 20, 300)
    if chance(rng, 0.3):
        f = np.where(
            rng.random(shape) < 0.5, f, rng.choice(FAR, shape) * rng.choice([-1, 1], shape)
        )
    if chance(rng, 0.2):
        f = np.round(f.clip(-1e300, 1e300), 1)  # many of them equal
    if chance(rng, 0.15):
        f[rng.random(shape) < rng.random()] = one_of(rng, np.inf, -np.inf)
    if chance(rng, nan):
        f[rng.random(shape) < rng.random()] = np.nan
    return f


def _poisoned(rng: Rng, values: NDArray[np.float64], share: float) -> NDArray[np.float64]:
    if values.size and chance(rng, share):
        values.flat[int(rng.integers(values.size))] = one_of(rng, *POISON)
    return values


def ternary(rng: Rng, k: int, n_columns: int) -> NDArray[np.int8]:
    """Return a matrix of -1, 0 and +1 that may or may not be a code."""
    zeros = one_of(rng, 0.0, 0.2, 0.5, 0.9)
    signs = rng.choice(np.array([-1, 1], dtype=np.int8), (k, n_columns))
    signs[rng.random((k, n_columns)) < zeros] = 0
    return signs


def laid_out(rng: Rng, array: NDArray) -> Any:
    """Return the same numbers in another layout: strides, order, owner, byte order."""
    return one_of(rng, *LAYOUTS)(array)


def retyped(rng: Rng, array: NDArray) -> Any:
    """Return the numbers as another type, which may not hold them."""
    with np.errstate(all="ignore"):
        return one_of(rng, *TYPES)(array)


def _every_other(array: NDArray) -> NDArray:
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]), dtype=array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


def _backwards(array: NDArray) -> NDArray:
    return np.ascontiguousarray(array[::-1])[::-1]


def _mirrored(array: NDArray) -> NDArray:
    return np.ascontiguousarray(array[..., ::-1])[..., ::-1]


def _locked(array: NDArray) -> NDArray:
    copy = array.copy()
    copy.flags.writeable = False
    return copy


def _shifted(array: NDArray) -> NDArray:
    """Not aligned: the numbers start at an odd byte."""
    raw = np.empty(array.nbytes + 1, dtype=np.uint8)[1:]
    view = raw.view(array.dtype).reshape(array.shape)
    view[...] = array
    return view


def _swapped(array: NDArray) -> NDArray:
    return array.astype(array.dtype.newbyteorder())


LAYOUTS: tuple[Callable[[NDArray], Any], ...] = (
    np.asarray,
    np.asfortranarray,
    _every_other,
    _backwards,
    _mirrored,
    _locked,
    _shifted,
    _swapped,
    np.ma.asarray,
    lambda array: array.tolist(),
    lambda array: tuple(array),
)
"""All hold the very same numbers."""

TYPES: tuple[Callable[[NDArray], Any], ...] = (
    lambda array: array.astype(np.float32),
    lambda array: array.astype(np.float16),
    lambda array: array.astype(np.longdouble),
    lambda array: np.rint(np.nan_to_num(array)).clip(-9, 9).astype(np.int8),
    lambda array: np.rint(np.nan_to_num(array)).clip(0, 9).astype(np.uint64),
    lambda array: array > 0.5,
    lambda array: array.astype(object),
    lambda array: array.astype(complex),
    lambda array: array.astype("U8"),
    lambda array: array.astype("S8"),
    lambda array: np.zeros(array.shape, "datetime64[s]"),
    lambda array: np.full(array.shape, None),
    lambda array: np.full(array.shape, "x", dtype=object),
    lambda array: np.zeros(array.shape, dtype=[("a", "f8")]),
)
"""Some lose digits, some are not numbers at all."""
