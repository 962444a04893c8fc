"""Compiled code of support vector machines: the solver, and what leave-one-out needs."""
