"""Coupled probabilities to calibrated ones."""

from __future__ import annotations

from manyclass._lib.messages import quoted
from manyclass.scaling.structured import StructuredScaling
from manyclass.scaling.temperature import Temperature

__all__ = ["SCALINGS", "Scaling", "StructuredScaling", "Temperature", "resolve_scaling"]

Scaling = StructuredScaling | Temperature
SCALINGS: dict[str, type[Scaling]] = {"structured": StructuredScaling, "temperature": Temperature}


def resolve_scaling(
    scaling: object, n_classes: int = 2, most_structured: int = 2000
) -> type[Scaling] | None:
    """Return the class that the parameter ``scaling`` means; None if nothing is scaled.

    With more than ``most_structured`` classes, "auto" is a temperature: the search for a matrix
    holds 40 of them, which is 1.3 GB for 2000 classes.
    """
    if scaling is None:
        return None
    structured = n_classes <= most_structured
    known = {"auto": StructuredScaling if structured else Temperature, **SCALINGS}
    if isinstance(scaling, str) and scaling in known:
        return known[scaling]
    raise ValueError(
        f"scaling must be 'auto', None or one of {sorted(SCALINGS)}, got {quoted(scaling)}."
    )
