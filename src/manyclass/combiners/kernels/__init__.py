"""Compiled functions of the combiners that are no coupling rules."""
