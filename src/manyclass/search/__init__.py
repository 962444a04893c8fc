"""Hyperparameters chosen as the papers did, on top of scikit-learn's grid search.

Among candidates of the same cross-validated error, :class:`SmoothestBest` and
:class:`SmallestC` choose as Duan et al. (2003) and Wu et al. (2003) did; they are
passed to a search as ``refit``. :class:`TwoStepGridSearchCV` is Duan's coarse grid,
followed by a fine one around its best. :class:`RuleScorer` scores many coupling rules
from one fit, so that one search serves them all.

Scores are scikit-learn's, the greater the better: "accuracy" stands for the papers'
error rate, "neg_log_loss" for their negative log-likelihood (NLL).
"""

from manyclass.search.choices import SmallestC, SmoothestBest
from manyclass.search.one_for_many import RuleScorer, best_per_rule, estimator_per_rule
from manyclass.search.presets import DUAN, duan
from manyclass.search.two_steps import TwoStepGridSearchCV

__all__ = [
    "DUAN",
    "RuleScorer",
    "SmallestC",
    "SmoothestBest",
    "TwoStepGridSearchCV",
    "best_per_rule",
    "duan",
    "estimator_per_rule",
]
