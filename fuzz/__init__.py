"""Hostile inputs by the million: ``python -m fuzz``."""
