"""Values of binary models to classes: coupling rules, trained soft-max functions, decoders."""

from manyclass.combiners.base import Combination, Combiner, names, register, resolve
from manyclass.combiners.coupling import (
    CouplingRule,
    HastieTibshirani,
    HastieTibshiraniNonIterative,
    KullbackLeibler,
    LeastSquares,
    Logit,
    NonIterative,
    Normalize,
    PriceEtAl,
    RefregierVallet,
    Vote,
    WuLinWeng1,
    WuLinWeng2,
    Zadrozny,
    couple,
)
from manyclass.combiners.decoding import (
    Hamming,
    LabelDecoder,
    LossBased,
    LossWeighted,
    MaxWins,
    WinnerTakesAll,
)
from manyclass.combiners.softmax import SimplifiedSoftmax, Softmax, TrainedSoftmax
from manyclass.combiners.srm_drm import DynamicReliabilityDecoder, StaticReliabilityDecoder

__all__ = [
    "Combination",
    "Combiner",
    "CouplingRule",
    "DynamicReliabilityDecoder",
    "Hamming",
    "HastieTibshirani",
    "HastieTibshiraniNonIterative",
    "KullbackLeibler",
    "LabelDecoder",
    "LeastSquares",
    "Logit",
    "LossBased",
    "LossWeighted",
    "MaxWins",
    "NonIterative",
    "Normalize",
    "PriceEtAl",
    "RefregierVallet",
    "SimplifiedSoftmax",
    "Softmax",
    "StaticReliabilityDecoder",
    "TrainedSoftmax",
    "Vote",
    "WinnerTakesAll",
    "WuLinWeng1",
    "WuLinWeng2",
    "Zadrozny",
    "couple",
    "names",
    "register",
    "resolve",
]
