"""Arguments that meta-estimators pass on to the inner estimator and to the splitter of ``cv``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import wraps
from inspect import Signature, signature
from types import MethodType
from typing import Any, TypeVar, cast

from sklearn.base import MetaEstimatorMixin
from sklearn.frozen import FrozenEstimator
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import has_fit_parameter

from manyclass._lib.messages import warn
from manyclass._lib.sklearn import routing_enabled

WEIGHTS = "sample_weight"

Fit = TypeVar("Fit", bound=Callable[..., Any])


def takes_weights(estimator) -> bool:
    """Whether ``estimator.fit`` has an argument ``sample_weight``; a frozen one ignores it.

    True for compiled methods without a signature: they raise an error themselves.
    """
    try:
        return isinstance(estimator, FrozenEstimator) or has_fit_parameter(estimator, WEIGHTS)
    except ValueError:
        return True


class _FitOffer:
    """A method ``fit`` with ``sample_weight`` in its signature if the inner estimator takes it.

    Bagging, calibration and scikit-learn's checks read the signature to decide whether to pass
    weights. ``fit`` accepts them anyway, so that its error or warning can name the inner estimator.
    """

    def __init__(self, fit: Callable[..., Any]):
        self.fit, self.without_weights = fit, _without_weights(fit)

    def __get__(self, model, owner=None) -> Callable[..., Any]:
        if model is None:
            return self.fit
        # With metadata routing, requests decide who gets weights.
        offered = routing_enabled() or takes_weights(model._base_estimator())
        return MethodType(self.fit if offered else self.without_weights, model)


def _without_weights(fit: Callable[..., Any]) -> Callable[..., Any]:
    """Return ``fit`` with a signature that lacks ``sample_weight``."""

    @wraps(fit)
    def wrapper(*args, **kwargs):
        return fit(*args, **kwargs)

    parameters = [one for name, one in signature(fit).parameters.items() if name != WEIGHTS]
    wrapper.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return wrapper


def offers_weights_if_taken(fit: Fit) -> Fit:
    """Decorate a meta-estimator's ``fit``: ``sample_weight`` if the inner estimator takes it."""
    return cast(Fit, _FitOffer(fit))


class RoutingMixin(MetaEstimatorMixin):
    """Passes the arguments of ``fit`` on; for meta-estimators with a parameter ``cv``."""

    cv: Any

    @abstractmethod
    def _base_estimator(self):
        """Return the unfitted inner estimator."""

    def _route_fit(self, sample_weight, fit_params, *, may_ignore: bool = False) -> Bunch:
        """Return the arguments of ``estimator.fit`` and of ``splitter.split``.

        If the estimator takes no weights, this is an error, or with ``may_ignore`` a warning; then
        ``ignored`` is True in the answer.
        """
        if routing_enabled():
            return process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
        passed = dict(fit_params)
        if sample_weight is not None:
            base = self._base_estimator()
            if takes_weights(base):
                passed[WEIGHTS] = sample_weight
            elif not may_ignore:
                raise ValueError(
                    f"sample_weight was given, but {type(base).__name__}.fit does not take it. "
                    "Choose an estimator that does, or resample the data."
                )
            else:
                warn(
                    f"{type(base).__name__}.fit does not take sample_weight: only the calibration "
                    "and the scaling use it, and the result is probably wrong. Choose an estimator "
                    "that takes weights, or resample the data."
                )
        ignored = sample_weight is not None and WEIGHTS not in passed
        return Bunch(estimator=Bunch(fit=passed), splitter=Bunch(split={}), ignored=ignored)

    def get_metadata_routing(self):
        """Return the routing of ``fit``'s metadata to the estimator and the splitter."""
        router = MetadataRouter(owner=type(self).__name__).add_self_request(self)
        router.add(
            estimator=self._base_estimator(),
            method_mapping=MethodMapping().add(caller="fit", callee="fit"),
        )
        return router.add(
            splitter=self.cv if hasattr(self.cv, "split") else None,
            method_mapping=MethodMapping().add(caller="fit", callee="split"),
        )
