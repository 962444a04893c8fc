"""Temperature scaling: one power for all classes, and a little of the uniform distribution."""

from __future__ import annotations

import numpy as np
from scipy.special import softmax
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from manyclass._lib.arrays import Floats, Places
from manyclass.scaling.input_checks import check_probabilities, check_training

# Spacing of float64 numbers at 1: smaller probabilities count as this much.
FLOOR = 2.0**-52
# Bounds of the power. A choice: beyond them, a bad calibration is more likely than a good fit.
TEMPERATURES = (0.05, 20.0)


class Temperature(BaseEstimator):
    """One power of the probabilities, which makes them more or less confident.

    Probabilities p become ``p^s``, renormalised, with the power s of the least log-loss. Then a
    share 1 / (n + 1) of the uniform distribution is mixed in, where n is the number of samples:
    by the rule of succession, n samples without a surprise do not exclude one. The order of the
    classes stays.

    Attributes
    ----------
    power_ : float
        The power, within [0.05, 20].
    share_ : float
        Share of the uniform distribution.
    classes_ : ndarray of shape (k,)
        The labels.

    See Also
    --------
    StructuredScaling : More parameters, shrunk to a temperature.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.scaling import Temperature
    >>> p = np.array([[0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.4, 0.6]])
    >>> scaling = Temperature().fit(p, [0, 0, 0, 1, 1])
    >>> scaling.predict_proba([[0.6, 0.4]]).round(3)
    array([[0.75, 0.25]])
    """

    def fit(self, p, y, sample_weight=None, *, columns=None, others=(), code=None) -> Temperature:
        """Fit the power to out-of-sample probabilities.

        Parameters
        ----------
        p : array-like of shape (n, k)
            Class probabilities of samples that the model was not fitted on.
        y : array-like of shape (n,)
            True labels. The columns of p are in their sorted order.
        sample_weight : array-like of shape (n,), optional
            Counts of samples.
        columns, others, code
            Ignored: see :class:`StructuredScaling`.

        Returns
        -------
        self
        """
        p, y, weights, classes = check_training(p, y, sample_weight)
        self.fit_checked(p, y, weights)
        self.classes_ = classes
        return self

    def fit_checked(self, p: Floats, y: Places, weights: Floats, **evidence) -> Temperature:
        """Do the same without checks; y are class indices."""
        self.classes_ = np.arange(p.shape[1])
        self.power_ = fit_temperature(p, y, weights)
        self.share_ = 1.0 / (1.0 + float(weights.sum()))
        return self

    def predict_proba(self, p, *, columns=None, others=()) -> Floats:
        """Return scaled probabilities.

        Parameters
        ----------
        p : array-like of shape (n, k)
            Class probabilities.
        columns, others
            Ignored.

        Returns
        -------
        ndarray of shape (n, k)
        """
        check_is_fitted(self)
        return self.scale(check_probabilities(p, len(self.classes_)))

    def scale(self, p: Floats, **evidence) -> Floats:
        """Do the same without checks."""
        return apply_temperature(p, self.power_, self.share_)


def floor_of(p: Floats, least: float = 2.0**-126) -> float:
    """Return what a probability of 0 counts as: the least of the others, within bounds.

    The lower bound is the smallest normal number in single precision, which ONNX Runtime uses.
    """
    return float(np.clip(p.min(initial=1.0, where=p > 0.0), least, FLOOR))


def fit_temperature(
    p: Floats, y: Places, weights: Floats | None = None, floor: float = FLOOR
) -> float:
    """Return the power s for which p_i^s, renormalised, has the least log-loss.

    Coupled probabilities are under-confident: the pairs that do not involve the true class dilute
    it. The log-loss is convex in s. The result is kept within [0.05, 20]: where all samples are
    right, s would grow without bound.

    Parameters
    ----------
    p : array of shape (n, k)
        Out-of-sample probabilities.
    y : int array of shape (n,)
        True classes.
    weights : array of shape (n,), optional
        Sample weights.
    floor : float
        Smaller probabilities count as this much. The lower it is, the lower the power may be.

    Examples
    --------
    >>> import numpy as np
    >>> from manyclass.scaling.temperature import fit_temperature
    >>> p = np.array([[0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4], [0.6, 0.4]])
    >>> round(fit_temperature(p, np.array([0, 0, 0, 0, 1])), 2)  # to 4/5
    3.42
    """
    log_p = np.log(np.maximum(p, floor))
    bounds = TEMPERATURES[0] * np.log(FLOOR) / np.log(floor), TEMPERATURES[1]
    weights = np.ones(len(p)) if weights is None else weights
    if not weights.sum() > 0:
        return 1.0
    reached = log_p[np.arange(len(p)), y]

    def slopes(s: float) -> tuple[float, float]:
        """First and second derivative of the log-loss."""
        powered = softmax(s * log_p, axis=1)
        expected = np.einsum("ij,ij->i", powered, log_p)
        spread = np.einsum("ij,ij,ij->i", powered, log_p, log_p) - expected**2
        return float(weights @ (expected - reached)), float(weights @ spread)

    first, curvature = slopes(1.0)
    if abs(first) <= 1e-13 * weights.sum():  # uniform: all powers give the same log-loss
        return 1.0
    s, (low, high) = 1.0, bounds
    for _ in range(100):  # Newton within the bracket; halve it where Newton leaves it
        low, high = (s, high) if first < 0 else (low, s)
        newton = s - first / curvature if curvature > 0 else np.inf
        step = (newton if low <= newton <= high else np.sqrt(low * high)) - s
        s += step
        if abs(step) <= 1e-10 * s:
            break
        first, curvature = slopes(s)
    near = [bound for bound in bounds if abs(s - bound) <= 1e-6 * bound]
    return near[0] if near else float(s)


def apply_temperature(p: Floats, s: float, share: float = 0.0) -> Floats:
    """Return p_i^s, renormalised, with a share of the uniform distribution.

    The sum stays 1, and so does the order of the classes.
    """
    if s != 1.0:
        powered = (p / p.max(axis=1, keepdims=True)) ** s
        p = powered / powered.sum(axis=1, keepdims=True)
    return (1.0 - share) * p + share / p.shape[1] if share else p
