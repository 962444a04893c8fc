"""Calibrated class probabilities for many classes from any binary classifier."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from manyclass import codes, combiners, plot
    from manyclass.app.compare import compare
    from manyclass.classifier import CoupledClassifier
    from manyclass.combiners.coupling import couple
    from manyclass.decisions import DecisionClassifier, adjust_prior, decide, estimate_prior
    from manyclass.onnx import to_onnx
    from manyclass.search.coupled_svc_cv import CoupledSVCCV
    from manyclass.svm import CoupledSVC

__all__ = [
    "CoupledClassifier",
    "CoupledSVC",
    "CoupledSVCCV",
    "DecisionClassifier",
    "__version__",
    "adjust_prior",
    "codes",
    "combiners",
    "compare",
    "couple",
    "decide",
    "estimate_prior",
    "plot",
    "to_onnx",
]

__version__ = "0.1.0.dev0"

# Names are imported when they are first used: the command line starts at once.
_PLACES = {
    "CoupledClassifier": "classifier",
    "CoupledSVC": "svm",
    "CoupledSVCCV": "search.coupled_svc_cv",
    "DecisionClassifier": "decisions",
    "adjust_prior": "decisions",
    "compare": "app.compare",
    "couple": "combiners.coupling",
    "decide": "decisions",
    "estimate_prior": "decisions",
    "to_onnx": "onnx",
}


def __getattr__(name: str) -> Any:
    """Import a public name, or a module, when it is first used."""
    if name in _PLACES:
        value = getattr(import_module(f"manyclass.{_PLACES[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_"):
        try:
            return import_module(f"manyclass.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"manyclass.{name}":
                raise
    raise AttributeError(f"module 'manyclass' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
