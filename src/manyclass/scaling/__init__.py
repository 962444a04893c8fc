"""Coupled probabilities to calibrated ones."""

from __future__ import annotations

from manyclass._lib.messages import quoted
from manyclass.scaling.structured import StructuredScaling
from manyclass.scaling.temperature import Temperature

__all__ = ["SCALINGS", "Scaling", "StructuredScaling", "Temperature", "resolve_scaling"]

Scaling = StructuredScaling | Temperature
SCALINGS: dict[str, type[Scaling]] = {"structured": StructuredScaling, "temperature": Temperature}


def resolve_scaling(scaling: object) -> type[Scaling] | None:
    """Return the class that the parameter ``scaling`` means; None if nothing is scaled."""
    if scaling is None:
        return None
    known = {"auto": StructuredScaling, **SCALINGS}
    if isinstance(scaling, str) and scaling in known:
        return known[scaling]
    raise ValueError(
        f"scaling must be 'auto', None or one of {sorted(SCALINGS)}, got {quoted(scaling)}."
    )
