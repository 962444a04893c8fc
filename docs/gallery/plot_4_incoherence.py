"""
Find unusual rows by their incoherence
======================================

Linear models extrapolate. They may be confident about a row that is unlike all training rows. But
the binary models extrapolate in different directions and contradict each other:
:meth:`~manyclass.CoupledClassifier.incoherence` measures by how much.

The models learn upright digits, and then predict digits that were rotated by 90 degrees.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import train_test_split

from manyclass import CoupledClassifier
from manyclass.plot import IncoherenceDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X / 16, y, test_size=0.5, stratify=y, random_state=0
)
rotated = np.rot90(X_test.reshape(-1, 8, 8), axes=(1, 2)).reshape(-1, 64)

# %%
# Every column of a code without zeros was fitted on all digits, so the columns should agree on
# each of them.

model = CoupledClassifier(
    LogisticRegression(C=10, max_iter=1000),
    code="dense-random",
    combiner="least-squares",
    cv=None,
    scaling=None,
    random_state=0,
).fit(X_train, y_train)

together = np.concatenate([X_test, rotated])
odd = np.repeat([False, True], len(X_test))
incoherence = model.incoherence(together)
confidence = model.predict_proba(together).max(axis=1)

figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for ax, values, title in zip(
    axes, [confidence, incoherence], ["largest probability", "incoherence"], strict=True
):
    bins = np.linspace(0, values.max(), 40)
    ax.hist(values[~odd], bins, alpha=0.6, label="upright")
    ax.hist(values[odd], bins, alpha=0.6, label="rotated")
    ax.set(xlabel=title, ylabel="rows")
handles, labels = axes[0].get_legend_handles_labels()
figure.legend(handles, labels, loc="outside upper center", ncols=2)
plt.show()

print(f"found by the largest probability: AUC {roc_auc_score(odd, -confidence):.3f}")
print(f"found by the incoherence:         AUC {roc_auc_score(odd, incoherence):.3f}")

# %%
# The ten most incoherent and the ten most coherent rows, upright and rotated together:

order = np.argsort(incoherence)
figure, axes = plt.subplots(2, 10, figsize=(11, 2.6), layout="constrained")
for ax, row in zip(axes.flat, [*order[-10:], *order[:10]], strict=True):
    ax.imshow(together[row].reshape(8, 8), cmap="gray_r")
    ax.set(xticks=[], yticks=[])
    ax.set_title(f"{incoherence[row]:.2f}", fontsize=9)
plt.show()

# %%
# What it does not show
# ---------------------
#
# Incoherence is not a probability of error; use the largest probability for that. And it depends
# on the code: with one-vs-one, 36 of 45 models were not fitted on the true digit, and they cause
# most of the incoherence. Right predictions can have more of it than wrong ones.

pairs = CoupledClassifier(LogisticRegression(C=10, max_iter=1000), cv=None, scaling=None).fit(
    X_train, y_train
)
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for ax, (name, fitted) in zip(
    axes, {"dense-random": model, "one-vs-one": pairs}.items(), strict=True
):
    IncoherenceDisplay.from_estimator(fitted, X_test, y_test, name=name, ax=ax)
plt.show()
