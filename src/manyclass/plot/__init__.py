"""Pictures of probabilities and codes, as display classes like those of scikit-learn.

Drawing needs matplotlib, which ``pip install 'manyclass[app]'`` brings. Without it this package
can be imported, but it draws nothing.
"""

from manyclass.plot.code_matrix import CodeMatrixDisplay
from manyclass.plot.incoherence import IncoherenceDisplay
from manyclass.plot.reliability_diagram import ReliabilityDisplay
from manyclass.plot.score_surface import ScoreSurfaceDisplay
from manyclass.plot.simplex import SimplexDisplay

__all__ = ["CodeMatrixDisplay", "IncoherenceDisplay", "ReliabilityDisplay"]
__all__ += ["ScoreSurfaceDisplay", "SimplexDisplay"]
