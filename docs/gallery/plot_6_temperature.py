"""
How the temperature works
=========================

Coupled probabilities are too flat: most models of one-vs-one were not fitted on the true class,
and they dilute its probability. Raising all probabilities to one power s corrects this. The order
of the classes, and so the label, stays the same. It is the simplest scaling. The default,
structured scaling, starts from it and corrects more.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from manyclass import CoupledSVC
from manyclass.plot import ReliabilityDisplay
from manyclass.scaling.temperature import apply_temperature

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.85, stratify=y, random_state=0
)
plain = CoupledSVC(C=10, scaling=None).fit(X_train, y_train)
tempered = CoupledSVC(C=10, scaling="temperature").fit(X_train, y_train)
power = tempered.scaling_.power_
print(f"the power found on out-of-sample scores of the training set: {power:.2f}")

# %%
# The best power for the test set:

p = plain.predict_proba(X_test)
powers = np.geomspace(0.5, 20, 100)
losses = [log_loss(y_test, apply_temperature(p, s)) for s in powers]
figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.plot(powers, losses)
ax.axvline(1.0, color="grey", ls=":", label="no temperature")
ax.axvline(power, color="C1", label="fitted on training rows")
ax.set(xscale="log", xlabel="power s", ylabel="log-loss on the test set")
ax.set_xticks([0.5, 1, 2, 5, 10, 20], ["0.5", "1", "2", "5", "10", "20"])
ax.minorticks_off()
figure.legend(loc="outside upper center", ncols=2)
plt.show()
print(f"lowest on the test set: s = {powers[np.argmin(losses)]:.2f}, log-loss {min(losses):.3f}")

# %%
# Before and after:

figure, axes = plt.subplots(1, 2, figsize=(10, 5), sharey=True, layout="constrained")
for ax, (name, model) in zip(
    axes, {"s = 1": plain, f"s = {power:.2f}": tempered}.items(), strict=True
):
    ReliabilityDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax, n_bins=8)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), fontsize="small", frameon=False)
    print(f"{name}: log-loss {log_loss(y_test, model.predict_proba(X_test)):.3f}")
plt.show()
print("labels that differ:", (plain.predict(X_test) != tempered.predict(X_test)).sum())

# %%
# Structured scaling learns more from the same scores, and may change labels:

structured = CoupledSVC(C=10).fit(X_train, y_train)
print(f"structured: log-loss {log_loss(y_test, structured.predict_proba(X_test)):.3f}")
print("labels that differ:", (plain.predict(X_test) != structured.predict(X_test)).sum())

# %%
# Why out of sample?
# ------------------
#
# On their own training rows the machines look better than they are, and the power would be far
# too large.

seen = plain.predict_proba(X_train)


def mean_log_probability(p):
    return np.log(p[np.arange(len(p)), y_train]).mean()


best = powers[np.argmin([-mean_log_probability(apply_temperature(seen, s)) for s in powers])]
print(f"best for the training rows: s = {best:.2f}; log-loss on the test set", end=" ")
print(f"{log_loss(y_test, apply_temperature(p, best)):.3f}")
