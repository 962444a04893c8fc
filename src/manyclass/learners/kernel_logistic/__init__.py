"""Kernel logistic regression: the estimator, its bank, Newton's method and leave-one-out."""

from manyclass.learners.kernel_logistic.regression import (
    KernelLogisticRegression,
    kernel_logistic_path,
)

__all__ = ["KernelLogisticRegression", "kernel_logistic_path"]
