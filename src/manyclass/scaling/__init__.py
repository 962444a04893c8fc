"""Coupled probabilities to calibrated ones."""

from manyclass.scaling.temperature import apply_temperature, fit_temperature

__all__ = ["apply_temperature", "fit_temperature"]
