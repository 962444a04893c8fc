"""Pictures of probabilities and codes, in the manner of scikit-learn's displays.

They are drawn with matplotlib, which ``pip install 'manyclass[app]'`` brings; without
it this package can be imported, but nothing can be drawn.
"""

from __future__ import annotations

from manyclass.plot.code_matrix import CodeMatrixDisplay
from manyclass.plot.incoherence import IncoherenceDisplay
from manyclass.plot.reliability_diagram import ReliabilityDisplay
from manyclass.plot.simplex import SimplexDisplay

__all__ = ["CodeMatrixDisplay", "IncoherenceDisplay", "ReliabilityDisplay", "SimplexDisplay"]
