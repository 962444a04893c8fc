"""
From SVC(probability=True) to CoupledSVC
========================================

The same machines, three ways to make probabilities of them: what scikit-learn had, what it
recommends now, and coupling with a temperature. Handwritten digits, few of them to learn
from, and the others to judge by.
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
    warnings.simplefilter("ignore", FutureWarning)  # probability=True is on its way out
    for model in models.values():
        model.fit(X_train, y_train)

# %%
# Errors are about the same. Log-loss is not, since it asks whether the probabilities mean what
# they say:

for name, model in models.items():
    p = model.predict_proba(X_test)
    wrong = (model.predict(X_test) != y_test).mean()
    print(f"{name:24} log-loss {log_loss(y_test, p):.3f}   error {wrong:.1%}")

# %%
# A reliability diagram shows where it comes from. Each point stands for the test rows whose
# predicted label got about the same probability: how sure the model was of it, and how often
# it was right. Above the diagonal a model is right more often than it says.

figure, axes = plt.subplots(1, 3, figsize=(13, 4.8), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    ReliabilityDisplay.from_estimator(model, X_test, y_test, name=name, ax=ax, n_bins=8)
plt.show()

# %%
# The labels of ``SVC`` are votes of the pairs, not those of its largest probability, and the
# two may contradict each other. ``CoupledSVC`` never does:

for name, model in models.items():
    chosen = model.classes_[model.predict_proba(X_test).argmax(axis=1)]
    contradicted = (chosen != model.predict(X_test)).sum()
    print(f"{name:24} contradicts itself on {contradicted} of {len(y_test)} rows")
