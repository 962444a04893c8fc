"""
Probabilities from boosted naive Bayes
======================================

Zadrozny (2001) coupled boosted naive Bayes models without calibration, and left open whether
calibration would help. The models are over-confident, so it does.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from manyclass import CoupledClassifier
from manyclass.learners import BinnedNaiveBayes, BoostedNaiveBayes
from manyclass.plot import ReliabilityDisplay

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
learner = BoostedNaiveBayes()
models = {
    "naive Bayes, all classes at once": BinnedNaiveBayes(),
    "boosted, coupled": CoupledClassifier(learner, calibration=None, cv=None),
    "boosted, calibrated, coupled": CoupledClassifier(learner, calibration="sigmoid", cv=3),
}
figure, axes = plt.subplots(1, 3, figsize=(13, 4.8), sharey=True, layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    p = model.fit(X_train, y_train).predict_proba(X_test)
    wrong = (model.predict(X_test) != y_test).mean()
    print(f"{name:34} log-loss {log_loss(y_test, p):.3f}   error {wrong:.1%}")
    ReliabilityDisplay.from_predictions(y_test, p, name=name, ax=ax, n_bins=8)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), fontsize="small", frameon=False)
plt.show()
