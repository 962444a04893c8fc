"""What a fit chose, and on what evidence."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from manyclass._lib.arrays import Floats, Places
from manyclass.calibration.choosing import Choice
from manyclass.scaling import Scaling
from manyclass.scaling.temperature import FLOOR


@dataclass
class CalibrationReport:
    """Which calibration and scaling a fit chose, and on what evidence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from manyclass import CoupledClassifier
    >>> model = CoupledClassifier(GaussianNB()).fit(*load_iris(return_X_y=True))
    >>> report = model.calibration_report()
    >>> sorted(report.log_loss)
    ['coupled', 'native', 'scaled']
    """

    calibration: Choice | None = None
    """The calibration of the columns, with the cross-fitted log-loss of every candidate."""
    scaling: str | None = None
    """Name of the scaling."""
    log_loss: dict[str, float] = field(default_factory=dict)
    """Multiclass log-loss of out-of-sample probabilities: coupled, scaled, and the learner's own
    (native) if they were used. The scaling was fitted on the same rows."""
    n_samples: int = 0
    """Number of rows that the scaling was fitted on."""

    def set_scaling(
        self, scaling: Scaling, p: Floats, y: Places, weights: Floats, columns, others, code=None
    ) -> None:
        """Record the log-loss of probabilities before and after a scaling."""
        self.scaling, self.n_samples = type(scaling).__name__, len(y)
        stages = {"coupled": p, "scaled": scaling.scale(p, columns=columns, others=others)}
        if others:
            stages["native"] = others[0]
        for name, q in stages.items():
            reached = np.log(np.maximum(q[np.arange(len(y)), y], FLOOR))
            self.log_loss[name] = -float(np.average(reached, weights=weights))

    def __str__(self) -> str:
        lines = []
        if self.calibration is not None:
            lines.append(f"calibration: {self.calibration}")
        if self.scaling is not None:
            losses = ", ".join(f"{name} {loss:.4f}" for name, loss in self.log_loss.items())
            lines.append(f"scaling: {self.scaling}, {self.n_samples} samples; log-loss {losses}")
        return "\n".join(lines) or "nothing was calibrated"
