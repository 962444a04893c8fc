"""Compiled functions of the calibrations."""
