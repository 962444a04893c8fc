"""
Learning in batches
===================

``partial_fit`` learns from one batch of rows at a time. Each batch is scored before it is learned.
These scores are out-of-sample, and the calibration is fitted on them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from manyclass import CoupledClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.3, stratify=y, random_state=0
)
model = CoupledClassifier(SGDClassifier(average=True, random_state=0), random_state=0)
seen, losses = [], []
for rows in np.array_split(np.arange(len(y_train)), 25):
    model.partial_fit(X_train[rows], y_train[rows], classes=np.arange(10))
    if rows[0] > 150:  # too few scores to calibrate on before
        seen.append(rows[-1] + 1)
        losses.append(log_loss(y_test, model.predict_proba(X_test)))

whole = CoupledClassifier(LogisticRegression()).fit(X_train, y_train)
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.plot(seen, losses, marker=".", label="partial_fit, linear SVMs")
ax.axhline(
    log_loss(y_test, whole.predict_proba(X_test)),
    color="grey",
    ls=":",
    label="fit, logistic regression, all rows",
)
ax.set(xlabel="rows learned from", ylabel="log-loss on the test set", yscale="log")
figure.legend(loc="outside upper center", ncols=2)
plt.show()

# %%
# Calibration and scaling are fitted along the way:

print(model.calibration_report())
print(f"training weight of each class: {model.class_totals_}")
