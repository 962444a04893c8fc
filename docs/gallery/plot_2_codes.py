"""
Plots of codes, and their quality
=================================

A code says which classes each binary problem separates. It has a row per class and a column per
binary problem. The classes with +1 are separated from those with -1; classes with 0 take no part.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from manyclass import CoupledClassifier, codes
from manyclass.plot import CodeMatrixDisplay

figure, axes = plt.subplots(2, 2, figsize=(12, 6), layout="constrained")
for ax, name in zip(
    axes.flat, ["one-vs-one", "one-vs-rest", "ordinal", "sparse-random"], strict=True
):
    CodeMatrixDisplay.from_code(codes.by_name(name, 6, random_state=0), name=name, ax=ax)
plt.show()

# %%
# What ``audit`` says
# -------------------
#
# The larger the distance of two rows, the more binary models may be wrong before one class is
# confused with the other. A zero counts one half.

print(codes.audit(codes.sparse_random(6, random_state=0)))

# %%
# Your own matrix may be unusable, or usable but unable to determine probabilities. Here no column
# compares classes 0 and 1 with classes 2 and 3:

apart = [[1, 0], [-1, 0], [0, 1], [0, -1]]
print(codes.audit(apart))

# %%
# On the same data
# ----------------
#
# Only the code changes. More columns take more time; columns with few classes are easier to
# learn.

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.5, stratify=y, random_state=0
)
for name in ["one-vs-one", "one-vs-rest", "sparse-random"]:
    model = CoupledClassifier(
        LogisticRegression(C=10), code=name, combiner="least-squares", cv=3, random_state=0
    )
    p = model.fit(X_train, y_train).predict_proba(X_test)
    wrong = (model.predict(X_test) != y_test).mean()
    print(
        f"{name:14} {model.code_.shape[1]:3} columns   log-loss {log_loss(y_test, p):.3f}   "
        f"error {wrong:.1%}"
    )
