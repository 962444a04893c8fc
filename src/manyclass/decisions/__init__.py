"""What to do with probabilities: decide by costs, and follow changed class frequencies."""

from manyclass.decisions.costs import decide
from manyclass.decisions.decision_classifier import DecisionClassifier
from manyclass.decisions.priors import adjust_prior, estimate_prior

__all__ = ["DecisionClassifier", "adjust_prior", "decide", "estimate_prior"]
