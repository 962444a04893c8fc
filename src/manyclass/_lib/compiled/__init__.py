"""What every compiled function of the package is, and where its machine code is kept.

numba keeps machine code next to the sources, in the user's cache folder, or in
``NUMBA_CACHE_DIR``. Here the cache only ever saves time: where none of these can be
written the functions are compiled anew in every process, and files that are damaged, or
made from other sources, are as good as none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache
from numba.core.runtime.nrt import rtsys

PACKAGE = __name__.partition(".")[0]


class KernelCache(FunctionCache):
    """numba's cache of one function, which never stands in the way of calling it."""

    def load_overload(self, sig, target_context):
        """Return the machine code for a signature; None where it is missing or damaged.

        numba gets ready to compile first, which takes longer than all else. Machine code needs
        its runtime only; should something have to be compiled, numba gets ready then.
        """
        try:
            rtsys.initialize(target_context)
            with self._guard_against_spurious_io_errors():
                return self._load_overload(sig, target_context)
        except Exception:  # damaged: there is no end to what unpickling may raise
            self._forget()
            return None

    def save_overload(self, sig, data) -> None:
        """Keep machine code, if the disk takes it."""
        try:
            super().save_overload(sig, data)
        except OSError:  # full, or no longer writable
            pass

    def _forget(self) -> None:
        try:
            self.flush()
        except OSError:
            pass

    def _index_key(self, sig, codegen):
        # numba looks at the function's own file only: constants and functions of other
        # files, inlined all the same, would stay those of an earlier release.
        return (*super()._index_key(sig, codegen), _made_of(self._py_func))


def _made_of(function: Any) -> tuple[Any, ...]:
    """Return the numbers that a kernel's file holds, and the sources of what it imports."""
    held = function.__globals__
    numbers = sorted((name, repr(x)) for name, x in held.items() if isinstance(x, int | float))
    return (*numbers, *(_digest(name) for name in sorted(_modules_of(function.__module__))))


def _modules_of(name: str) -> set[str]:
    """Return the modules of this package whose functions a module uses, near and far."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        held = vars(sys.modules[waiting.pop()]).values()
        near = {str(getattr(x, "__module__", "")) for x in held}
        new = {m for m in near if m.startswith(f"{PACKAGE}.") and m in sys.modules} - found
        found |= new
        waiting += new
    return found


@cache
def _digest(module: str) -> str:
    """Return what tells one version of a module's source from another."""
    try:
        return sha256(Path(str(sys.modules[module].__file__)).read_bytes()).hexdigest()
    except OSError:  # within an archive
        return str(sys.modules[PACKAGE].__version__)


def _compile(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    def decorate(function: Callable[..., Any]) -> Any:
        compiled = njit(nogil=True, error_model="numpy", **options)(function)
        if compiled is function:  # NUMBA_DISABLE_JIT
            return function
        try:
            compiled._cache = KernelCache(function)
        except (RuntimeError, OSError):  # "no locator available": nothing can be written
            pass
        return compiled

    return decorate


kernel = _compile()
"""Compiled once per machine, free of the interpreter lock, no fast math."""

fused_kernel = _compile(fastmath={"contract"})
"""The same, but a product and a sum may be rounded once."""

summing_kernel = _compile(fastmath={"contract", "reassoc"})
"""The same again, and sums over samples may be taken in any order: several at a time."""
