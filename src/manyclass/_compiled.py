"""What every compiled function of the package is."""

from __future__ import annotations

from numba import njit

kernel = njit(cache=True, nogil=True, error_model="numpy")
"""Compiled once per machine, free of the interpreter lock, no fast math."""
