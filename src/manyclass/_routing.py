"""What meta-estimators pass on to the estimator within, and to the splitter of ``cv``."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from sklearn.base import MetaEstimatorMixin
from sklearn.utils import Bunch
from sklearn.utils.metadata_routing import MetadataRouter, MethodMapping, process_routing
from sklearn.utils.validation import has_fit_parameter

from manyclass._sklearn import routing_enabled


class RoutingMixin(MetaEstimatorMixin):
    """Passes the arguments of ``fit`` on; for meta-estimators with a parameter ``cv``."""

    cv: Any

    @abstractmethod
    def _base_estimator(self):
        """Return the unfitted estimator within."""

    def _route_fit(self, sample_weight, fit_params) -> Bunch:
        """Return what goes to ``estimator.fit`` and to ``splitter.split``."""
        if routing_enabled():
            return process_routing(self, "fit", sample_weight=sample_weight, **fit_params)
        passed = dict(fit_params)
        if sample_weight is not None:
            base = self._base_estimator()
            if not has_fit_parameter(base, "sample_weight"):
                raise ValueError(
                    f"sample_weight was given, but {type(base).__name__}.fit does not take it. "
                    "Choose an estimator that does, or resample the data."
                )
            passed["sample_weight"] = sample_weight
        return Bunch(estimator=Bunch(fit=passed), splitter=Bunch(split={}))

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
