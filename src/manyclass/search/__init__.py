"""Choose hyperparameters as in the papers, with scikit-learn's grid search.

If candidates have the same cross-validated error, :class:`SmoothestBest` and
:class:`SmallestC` choose among them as Duan et al. (2003) and Wu et al. (2003) did; pass
them to a search as ``refit``. :class:`TwoStepGridSearchCV` is Duan's coarse grid, followed
by a fine grid around the best candidate. :class:`RuleScorer` scores many coupling rules
from one fit, so that one search is enough for all rules.

Scores are those of scikit-learn, greater is better: "accuracy" is one minus the error rate
of the papers, "neg_log_loss" is minus their negative log-likelihood (NLL).
"""

from manyclass.search.choices import SmallestC, SmoothestBest
from manyclass.search.presets import DUAN, duan
from manyclass.search.rule_scorer import RuleScorer, best_per_rule, estimator_per_rule
from manyclass.search.two_steps import TwoStepGridSearchCV

__all__ = ["DUAN", "SmallestC", "SmoothestBest", "TwoStepGridSearchCV", "duan"]
__all__ += ["RuleScorer", "best_per_rule", "estimator_per_rule"]
