"""Compiled functions of the learners."""
