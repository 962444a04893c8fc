"""
Costs and rejection
===================

With calibrated probabilities, the best decision follows from the costs of errors. A post office
reads digits: a letter sent to the wrong place costs 10, a look by a clerk costs 1.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import train_test_split

from manyclass import CoupledSVC, DecisionClassifier, decide

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.85, stratify=y, random_state=0
)
model = CoupledSVC(C=10).fit(X_train, y_train)
p = model.predict_proba(X_test)

error_cost, look = 10.0, 1.0
cost = error_cost * (1 - np.eye(10))
decision = decide(p, cost, reject_cost=look)
rejected = decision == -1
wrong = ~rejected & (decision != y_test)
print(f"{rejected.mean():.1%} of the letters go to the clerk, {wrong.mean():.2%} are misdirected")


def paid(decision):
    is_wrong = (decision != -1) & (decision != y_test)
    return (error_cost * is_wrong + look * (decision == -1)).mean()


print(f"cost per letter: {paid(decide(p)):.3f} without the clerk, {paid(decision):.3f} with")

# %%
# The higher the cost of a look, the fewer letters the clerk gets. The best point on the curve for
# given costs needs no search: it follows from the probabilities.

price = np.geomspace(0.02, 9.0, 40)
answers = [decide(p, cost, reject_cost=c) for c in price]
share = [(d == -1).mean() for d in answers]
errors = [((d != -1) & (d != y_test)).mean() for d in answers]
figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.plot(100 * np.array(share), 100 * np.array(errors), marker=".")
ax.plot(100 * rejected.mean(), 100 * wrong.mean(), "o", label="clerk at 1, error at 10")
ax.set(xlabel="% of the letters to the clerk", ylabel="% of the letters misdirected")
figure.legend(loc="outside upper center", ncols=2)
plt.show()

# %%
# Costs need not be the same for all errors
# -----------------------------------------
#
# Suppose that reading an 8 as a 1 is ten times worse than any other error. Then the decision is 1
# only if an 8 is very unlikely:

uneven = 1 - np.eye(10)
uneven[8, 1] = 10.0  # truth 8, decision 1
changed = decide(p, uneven) != decide(p)
print(f"were  {decide(p)[changed]}\nare   {decide(p, uneven)[changed]}\ntruth {y_test[changed]}")

# %%
# The same as an estimator, around a model that is already fitted:

clerk = DecisionClassifier(FrozenEstimator(model), cost=cost, reject_cost=look)
print((clerk.fit(X_train, y_train).predict(X_test) == decision).all())
