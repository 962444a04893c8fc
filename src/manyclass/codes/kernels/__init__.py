"""Compiled code of the codes that are built from data."""
