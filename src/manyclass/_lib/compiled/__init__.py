"""Decorators for compiled functions, and the cache of their machine code.

numba keeps machine code next to the sources, in the cache folder of the user, or in
``NUMBA_CACHE_DIR``. With ``njit(cache=True)`` alone

- an import fails if no folder can be written, and a call fails if the disk is full, or if a file
  of the cache is damaged;
- a kernel keeps the constants and inlined functions of an earlier version of another file, and
  returns wrong numbers: numba looks at changes of the kernel's own file only;
- the first fit of a process takes longer: 0.64 s instead of 0.28 s (300 digits, machine code in
  the cache, processor shared), because numba prepares its compiler before it looks for machine
  code.

Here the cache only saves time: without it, functions are compiled again in every process. numba
unpickles what it finds in the cache, and a pickle can run any code. So the cache is used only in a
folder that nobody else can write to (:mod:`manyclass._lib.compiled.folders`).
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import config
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

from manyclass._lib.compiled.folders import shared_place, warn_of_shared


class KernelCache(FunctionCache):
    """numba's cache of one function, without errors and without outdated machine code."""

    def load_overload(self, sig, target_context):
        """Return the machine code for a signature, or None if it is missing or damaged.

        Machine code needs numba's runtime only, not its compiler.
        """
        try:
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # damaged: unpickling may raise anything
            with suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig, data) -> None:
        """Keep machine code, unless the disk is full or no longer writable."""
        with suppress(OSError):
            super().save_overload(sig, data)

    def _index_key(self, sig, codegen):
        # numba's own key does not tell whether machine code checks its indices
        checks = ("NUMBA_BOUNDSCHECK",) if getattr(config, "BOUNDSCHECK", 0) == 1 else ()
        return (*super()._index_key(sig, codegen), *checks, *_sources_of(self._py_func.__module__))


def _sources_of(name: str) -> tuple[Any, ...]:
    """Return the numbers in a module, and digests of the modules whose functions it uses."""
    held = vars(sys.modules[name])
    numbers = sorted((key, repr(x)) for key, x in held.items() if _is_numeric(x))
    return (*numbers, *(_digest(module) for module in sorted(_modules_of(name))))


def _is_numeric(constant: Any) -> bool:
    """Return whether a constant is a number, or a tuple of numbers."""
    parts = constant if isinstance(constant, tuple) else (constant,)
    return all(isinstance(part, int | float) for part in parts)


def _modules_of(name: str) -> set[str]:
    """Return the modules of the same package whose functions a module uses, near and far."""
    package = name.partition(".")[0]
    found: set[str] = set()
    waiting = [name]
    while waiting:
        held = vars(sys.modules[waiting.pop()]).values()
        near = {str(getattr(x, "__module__", "")) for x in held}
        new = {m for m in near if m.startswith(f"{package}.") and m in sys.modules} - found
        found |= new
        waiting += new
    return found


@cache
def _digest(module: str) -> str:
    """Return a digest of the source of a module."""
    try:
        return sha256(Path(str(sys.modules[module].__file__)).read_bytes()).hexdigest()
    except OSError:  # the source is in an archive
        return str(sys.modules[module.partition(".")[0]].__version__)


def _compile(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    options["no_cfunc_wrapper"] = True  # only numba's first-class functions need it

    def decorate(function: Callable[..., Any]) -> Any:
        compiled = njit(nogil=True, error_model="numpy", **options)(function)
        if compiled is function:  # NUMBA_DISABLE_JIT
            return function
        try:
            cache = KernelCache(function)
        except (RuntimeError, OSError):  # "no locator available": no folder can be written
            return compiled
        place = shared_place(cache.cache_path)
        if place is None:
            compiled._cache = cache
        else:
            warn_of_shared(place)
        return compiled

    return decorate


kernel = _compile()
"""Compile a function once per machine. It releases the interpreter lock. No fast math."""

part = _compile(inline="always")
"""The same, for a part of a kernel that is called in one place, and not from Python. The caller
takes over its statements before it is compiled, under its own rules of rounding. Everything else
is compiled for itself, and once more within every kernel that calls it, directly or not."""

inlined = _compile(forceinline=True)
"""The same, for parts of a kernel. A call takes about as long as 100 sums: numba counts references
to each array that it passes."""

fused_kernel = _compile(fastmath={"contract"})
"""The same, but a product and a sum may be rounded together (fused multiply-add)."""

summing_kernel = _compile(fastmath={"contract", "reassoc"})
"""The same, and sums may be computed in any order, so that several terms add up at a time. A loop
that sums must not write to arrays as well: then the compiler adds a check whether arrays overlap,
and the order of the sum depends on where they lie in memory."""

bare_kernel = _compile(fastmath={"contract"}, _nrt=False)
"""A fused kernel without reference counts, for kernels that are called very often with many arrays:
counting them at every call takes 10 ns for each array. It must not create or return arrays, and
only other kernels may call it: Python's arrays would not be released."""
