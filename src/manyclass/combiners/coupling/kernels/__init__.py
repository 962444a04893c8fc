"""Compiled functions of the coupling rules."""
