"""Learners that scikit-learn lacks, most of them binary."""

from manyclass.learners.boosted_naive_bayes import BoostedNaiveBayes
from manyclass.learners.kernel_logistic import KernelLogisticRegression, kernel_logistic_path
from manyclass.learners.naive_bayes import BinnedNaiveBayes
from manyclass.learners.pairwise_neighbors import PairwiseNeighbors
from manyclass.learners.threshold_search import best_threshold
from manyclass.learners.thresholds import ThresholdOptimized

__all__ = [
    "BinnedNaiveBayes",
    "BoostedNaiveBayes",
    "KernelLogisticRegression",
    "PairwiseNeighbors",
    "ThresholdOptimized",
    "best_threshold",
    "kernel_logistic_path",
]
