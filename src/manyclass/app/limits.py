"""How much of everything a report shows."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class PageLimits:
    """Limits of a report. All are choices: a page that can be read, and loads at once."""

    classes: int = 200
    """Classes that are listed with their counts."""
    columns: int = 5
    """Columns with missing values that are named."""
    confused: int = 20
    """Rows and columns of the confusion matrix; the other classes are merged."""
    pairs: int = 5
    """Pairs of classes that are confused most often."""
    incoherent: int = 15
    """Rows with the largest incoherence."""
    panels: int = 12
    """Classes with a reliability diagram of their own."""
    bins: int = 10
    """Bins of the reliability diagrams."""
    name: int = 18
    """Characters of a class name in narrow places."""


LIMITS = PageLimits()
