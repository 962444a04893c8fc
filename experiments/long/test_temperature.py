"""A temperature costs next to nothing on every data set, with new fits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from experiments.summary.claims import WITHIN
from experiments.summary.samples import draw
from experiments.summary.tasks import SCALES
from manyclass import CoupledClassifier, CoupledSVC

MODELS = {
    "svc": CoupledSVC(C=10.0, scaling="temperature"),
    "logistic": CoupledClassifier(
        LogisticRegression(max_iter=1000), calibration=None, scaling="temperature"
    ),
}
SPLITS = range(101, 106)  # others than those of the summary


@pytest.mark.parametrize("name", SCALES["paper"]["data"])
@pytest.mark.parametrize("learner", MODELS)
def test_log_loss_with_the_temperature_and_without(learner, name, shared_data):
    if name != "digits":
        shared_data(name)
    losses = []
    for split in SPLITS:
        train, test = draw(name, split, SCALES["paper"]["rows of each part at most"])
        model = MODELS[learner].fit(train.inputs[learner], train.y)
        tempered = model.predict_proba(test.inputs[learner])
        model.scaling_ = None
        plain = model.predict_proba(test.inputs[learner])
        losses.append([log_loss(test.y, p, labels=model.classes_) for p in (tempered, plain)])
    with_it, without = np.mean(losses, axis=0)
    assert with_it <= WITHIN * without
