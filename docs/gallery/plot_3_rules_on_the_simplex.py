"""
Coupling rules on the simplex
=============================

Three binary models speak about three classes: A or B, B or C, C or A. If they agree, nearly
all rules return the same probabilities. Here they are made to disagree, and the rules to
show what they make of it.
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
# Any three pairwise probabilities are those of some p, plus one number of disagreement that
# goes round in a circle. Each picture is what a rule makes of an even grid of p, all with
# the same disagreement. ``logit`` removes it altogether; the others bend the grid, each in its
# own way.

rules = ["logit", "ht", "wlw1", "wlw2", "pkpd", "ht-noniterative"]
figure, axes = plt.subplots(2, 3, figsize=(12, 8), layout="constrained")
for ax, rule in zip(axes.flat, rules, strict=True):
    SimplexDisplay.from_rule(rule, disagreement=1.5, class_names=list("ABC"), name=rule, ax=ax)
plt.show()

# %%
# Real models disagree too
# ------------------------
#
# Naive Bayes on two features of the wines, for every pair of them, coupled by two rules.

wine = load_wine()
X, y = wine.data[:, [0, 9]], wine.target_names[wine.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
figure, axes = plt.subplots(1, 2, figsize=(11, 5), layout="constrained")
for ax, rule in zip(axes, ["wlw2", "ht-noniterative"], strict=True):
    model = CoupledClassifier(GaussianNB(), combiner=rule, temperature=False).fit(X_train, y_train)
    SimplexDisplay.from_estimator(model, X_test, y_test, name=rule, ax=ax)
plt.show()

# %%
# The mean of the pairwise probabilities (``ht-noniterative``) can never come near to a
# corner: a class that wins every pair for certain still has no more than two thirds.
