"""Values of binary models to classes: coupling rules, trained soft-max functions, decoders."""

from manyclass.combiners import coupling, decoding
from manyclass.combiners.base import Combination, Combiner, names, register, registered, resolve
from manyclass.combiners.coupling import *  # noqa: F403  (a new rule is exported there only)
from manyclass.combiners.decoding import *  # noqa: F403
from manyclass.combiners.softmax import SimplifiedSoftmax, Softmax, TrainedSoftmax
from manyclass.combiners.srm_drm import DynamicReliabilityDecoder, StaticReliabilityDecoder

__all__ = ["Combination", "Combiner", "names", "register", "registered", "resolve"]
__all__ += ["SimplifiedSoftmax", "Softmax", "TrainedSoftmax"]
__all__ += ["DynamicReliabilityDecoder", "StaticReliabilityDecoder"]
__all__ += coupling.__all__
__all__ += decoding.__all__
