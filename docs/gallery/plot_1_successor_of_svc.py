"""
From SVC(probability=True) to CoupledSVC
========================================

The same support vector machines, and three ways to get probabilities from them: scikit-learn's
old way, the way it recommends now, and coupling with structured scaling. The data are handwritten
digits, with a small training set and a large test set.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.svm import SVC

from manyclass import CoupledSVC
from manyclass.plot import ReliabilityDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(
    X, y, test_size=0.85, stratify=y, random_state=0
)
models = {
    "SVC(probability=True)": SVC(C=10, probability=True, random_state=0),
    "CalibratedClassifierCV": CalibratedClassifierCV(SVC(C=10), ensemble=False),
    "CoupledSVC": CoupledSVC(C=10),
}
with warnings.catch_warnings():
    warnings.simplefilter("ignore", FutureWarning)  # probability=True is deprecated
    for model in models.values():
        model.fit(X_train, y_train)

# %%
# Errors are about the same. Log-loss differs, because it measures the probabilities:

for name, model in models.items():
    p = model.predict_proba(X_test)
    wrong = (model.predict(X_test) != y_test).mean()
    print(f"{name:24} log-loss {log_loss(y_test, p):.3f}   error {wrong:.1%}")

# %%
# A reliability diagram shows the reason. Each point stands for the test rows whose predicted
# label got about the same probability: the probability, and how often the label was right. Above
# the diagonal, a model is right more often than it says.

figure, axes = plt.subplots(1, 3, figsize=(13, 4.8), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ReliabilityDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax, n_bins=8)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), fontsize="small", frameon=False)
plt.show()

# %%
# ``SVC`` predicts labels by votes of the pairs. They may differ from the class with the largest
# probability. With ``CoupledSVC`` they always agree:

for name, model in models.items():
    chosen = model.classes_[model.predict_proba(X_test).argmax(axis=1)]
    contradicted = (chosen != model.predict(X_test)).sum()
    print(f"{name:24} contradicts itself on {contradicted} of {len(y_test)} rows")
