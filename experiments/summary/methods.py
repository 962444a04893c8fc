"""The compared learners, codes and rules, and the names of methods in the results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

LEARNERS = {"svc": "SVC", "logistic": "LogisticRegression"}
"""Keys of the learners, and their names on the page."""

COUPLERS = {
    "one-vs-one": (
        "wlw2",
        "wlw1",
        "ht",
        "ht-noniterative",
        "pkpd",
        "refregier-vallet",
        "logit",
        "vote",
    ),
    "one-vs-rest": ("normalize", "kl", "least-squares", "zadrozny", "noniterative"),
    "sparse-random": ("kl", "least-squares", "zadrozny", "noniterative"),
}
"""Rules from binary to class probabilities: with a temperature, and without."""

TRAINED = dict.fromkeys(COUPLERS, ("softmax", "softmax-simplified"))
"""Rules that learn from out-of-sample scores. Their weights include a temperature."""

DECODERS = {
    # Hamming decoding of all pairs is max-wins, a linear loss with one-vs-rest winner-takes-all.
    "one-vs-one": ("max-wins", "loss"),
    "one-vs-rest": ("winner-takes-all", "hamming", "srm", "drm"),
    "sparse-random": ("hamming", "loss", "loss-weighted"),
}
"""Rules that give labels alone."""

SAME = {
    "one-vs-one": {
        "hamming": "max-wins",
        "kl": "ht",
        "zadrozny": "ht",
        "least-squares": "wlw2",
        "noniterative": "ht-noniterative",
        "loss-weighted": "loss",
    },
    # As a tree, one-vs-rest is a root with a group for every class.
    "one-vs-rest": {
        "loss": "winner-takes-all",
        "loss-weighted": "winner-takes-all",
        "tree-product": "normalize",
    },
}
"""Rules that are another one with the code: exactly, or but for the weights of the columns."""

BY_RELIABILITY = ("srm", "drm")  # decoders that read an objective only support vector machines have

CODES = tuple(COUPLERS)

SVC_PROBABILITY = "SVC(probability=True)"
CALIBRATED = "CalibratedClassifierCV(SVC, ensemble=False)"
MULTINOMIAL = "LogisticRegression, multinomial"
PEERS = {"svc": (SVC_PROBABILITY, CALIBRATED), "logistic": (MULTINOMIAL,)}
"""Models of scikit-learn with the same learner. They are not ranked."""


class Method(NamedTuple):
    """A rule on the machines of a learner and a code."""

    learner: str
    code: str
    rule: str
    tempered: bool = False

    @property
    def name(self) -> str:
        """Name in the results."""
        return f"{machines_name(self.learner, self.code)}/{self.label.replace(', ', '/')}"

    @property
    def label(self) -> str:
        """The rule, among others of the same machines."""
        return f"{self.rule}, temperature" if self.tempered else self.rule

    @property
    def full_label(self) -> str:
        """Code and rule, among others of the same learner."""
        return f"{self.code}, {self.label}"


DEFAULT = ("one-vs-one", "wlw2")  # code and rule of CoupledSVC and CoupledClassifier


def machines_name(learner: str, code: str) -> str:
    """Return the name of the machines themselves in the results."""
    return f"{learner}/{code}"


def default_of(learner: str, tempered: bool = True) -> Method:
    """Return the default of CoupledSVC and CoupledClassifier."""
    return Method(learner, *DEFAULT, tempered)


def couplers(learner: str, tempered: bool) -> Iterator[Method]:
    """Yield the rules that may have a temperature."""
    for code, rules in COUPLERS.items():
        for rule in rules:
            yield Method(learner, code, rule, tempered)


def trained(learner: str) -> Iterator[Method]:
    """Yield the rules that learn."""
    for code, rules in TRAINED.items():
        for rule in rules:
            yield Method(learner, code, rule)


def decoders(learner: str) -> Iterator[Method]:
    """Yield the rules that give labels alone."""
    for code, rules in DECODERS.items():
        for rule in rules:
            if learner == "svc" or rule not in BY_RELIABILITY:
                yield Method(learner, code, rule)


def at_their_best(learner: str) -> list[Method]:
    """Return every rule with probabilities once, with a temperature if it is not trained."""
    return [*couplers(learner, True), *trained(learner)]


def with_probabilities(learner: str) -> list[Method]:
    """Return all rules with probabilities, with and without a temperature."""
    return [*couplers(learner, False), *at_their_best(learner)]


def with_labels(learner: str) -> list[Method]:
    """Return every rule once: a temperature does not change labels."""
    return [*couplers(learner, False), *trained(learner), *decoders(learner)]
