"""
Coupling rules on the simplex
=============================

Three binary models compare three classes: A or B, B or C, C or A. If they agree, nearly all rules
return the same probabilities. These plots show what the rules do if the models disagree.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split
from sklearn.naive_bayes import GaussianNB

from manyclass import CoupledClassifier, couple
from manyclass.plot import SimplexDisplay

# %%
# Hastie and Tibshirani's example: A beats B nine times of ten, B beats C seven times of ten,
# and C beats A six times of ten.

r = [[[0.5, 0.9, 0.4], [0.1, 0.5, 0.7], [0.6, 0.3, 0.5]]]
for rule in ["wlw2", "wlw1", "ht", "pkpd", "logit", "vote"]:
    print(f"{rule:6}", couple(r, rule=rule).round(3)[0])

# %%
# All rules at once
# -----------------
#
# Any three pairwise probabilities are those of some p plus a circular disagreement, which is one
# number. Each plot shows the result of a rule for an even grid of p, all with the same
# disagreement. ``logit`` removes the disagreement completely; the other rules bend the grid.

rules = ["logit", "ht", "wlw1", "wlw2", "pkpd", "ht-noniterative"]
figure, axes = plt.subplots(2, 3, figsize=(12, 8), layout="constrained")
for ax, rule in zip(axes.flat, rules, strict=True):
    SimplexDisplay.from_rule(rule, disagreement=1.5, class_names=list("ABC"), name=rule, ax=ax)
plt.show()

# %%
# Real models disagree too
# ------------------------
#
# Naive Bayes on two features of the wines, for each pair of classes, coupled by two rules.

wine = load_wine()
X, y = wine.data[:, [0, 9]], wine.target_names[wine.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, rule in zip(axes, ["wlw2", "ht-noniterative"], strict=True):
    model = CoupledClassifier(GaussianNB(), combiner=rule, scaling=None).fit(X_train, y_train)
    SimplexDisplay.from_estimator(model, X_test, y_test, name=rule, ax=ax)
plt.show()

# %%
# The mean of the pairwise probabilities (``ht-noniterative``) never comes near a corner: a class
# that wins every pair with certainty still gets at most two thirds.
