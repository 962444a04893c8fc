"""Compiled functions of the scalings."""
