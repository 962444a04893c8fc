"""What every compiled function of the package is."""

from __future__ import annotations

from functools import partial

from numba import njit

_compile = partial(njit, cache=True, nogil=True, error_model="numpy")

kernel = _compile()
"""Compiled once per machine, free of the interpreter lock, no fast math."""

fused_kernel = _compile(fastmath={"contract"})
"""The same, but a product and a sum may be rounded once."""

summing_kernel = _compile(fastmath={"contract", "reassoc"})
"""The same again, and sums over samples may be taken in any order: several at a time."""
