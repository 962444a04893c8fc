"""Compiled functions of the combiners that are not coupling rules."""
