"""What every combiner is: values of the binary models in, one column per class out.

Coupling rules (:mod:`manyclass.combiners.coupling`) and label decoders
(:mod:`manyclass.combiners.decoding`) are combiners. A combiner says by class attributes
what it takes, which codes it accepts and whether it yields probabilities, so
that nobody has to ask for its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from manyclass import codes
from manyclass._lib.messages import quoted
from manyclass.combiners.ties import as_seed

if TYPE_CHECKING:
    from manyclass.combiners.reliability import Reliability

_REGISTRY: dict[str, type[Combiner]] = {}


class Combination(NamedTuple):
    """What a combiner answers for ``n`` rows and ``k`` classes."""

    values: NDArray[np.float64]
    """Class probabilities or class scores, shape (n, k)."""
    iterations: NDArray[np.int32]
    """Iterations spent on each row; 1 where the rule has a closed form."""
    converged: NDArray[np.bool_]
    """Whether each row reached the rule's tolerance."""


class Combiner(BaseEstimator, ABC):
    """Base of coupling rules and label decoders.

    Subclasses set the class attributes below and implement :meth:`combine`.
    They are scikit-learn estimators in the sense of ``get_params``, ``clone``
    and nested parameters, so ``combiner__tol`` can be searched over.
    """

    key: ClassVar[str]
    """The name that resolves to this combiner."""
    takes: ClassVar[Literal["probabilities", "scores"]]
    """Whether :meth:`combine` reads binary probabilities or margins."""
    accepts: ClassVar[Literal["any", "one-vs-one", "one-vs-rest"]] = "any"
    """The codes it is defined for."""
    gives_probabilities: ClassVar[bool]
    """Whether the answer is a distribution over the classes."""

    def measure(self) -> Reliability | None:
        """Return the unfitted measure of reliability that this combiner is weighted by."""
        return None

    @property
    def learns(self) -> bool:
        """Whether out-of-sample scores are to be given to :meth:`fit` first."""
        return False

    def fit(
        self,
        values: NDArray[np.float64],
        y: NDArray[np.intp],
        code: NDArray[np.int8],
        sample_weight: NDArray[np.float64],
    ) -> Combiner:
        """Learn how to combine, where there is something to learn.

        Parameters
        ----------
        values : array of shape (n, l)
            Out-of-sample values of the training set, none of them NaN.
        y : int array of shape (n,)
            Class indices.
        code : int8 array of shape (k, l)
        sample_weight : array of shape (n,)

        Notes
        -----
        Where this takes ``folds``, too, it is given the number of the fold that left each
        row out, -1 for none, if there are such numbers: for a cross-validation of its own.
        """
        return self

    def check_code(self, code: NDArray[np.int8]) -> None:
        """Raise a ``ValueError`` that names both parties if they do not fit."""
        fits = {
            "any": lambda: True,
            "one-vs-one": lambda: codes.pair_columns(code) is not None,
            "one-vs-rest": lambda: codes.is_one_vs_rest(code),
        }
        if not fits[self.accepts]():
            k, n_columns = code.shape
            raise ValueError(
                f"combiner {self.key!r} is defined for {self.accepts} codes, but the code "
                f"given ({k} classes, {n_columns} columns) is not one. Use code={self.accepts!r}, "
                "or a combiner for any code, such as 'kl' or 'least-squares'."
            )

    @abstractmethod
    def combine(
        self,
        values: NDArray[np.float64],
        code: NDArray[np.int8],
        weights: NDArray[np.float64] | None = None,
        *,
        n_jobs: int | None = None,
    ) -> Combination:
        """Combine the values of ``l`` binary models into ``k`` columns.

        Parameters
        ----------
        values : array of shape (n, l)
            Binary probabilities of the positive side, or margins: see ``takes``.
        code : int8 array of shape (k, l)
            A code matrix that has passed :func:`manyclass.codes.check_code`.
        weights : array of shape (l,), optional
            Weight of each column; equal when omitted. Rules without weights
            ignore it. Combiners with a :meth:`measure` get the reliabilities,
            shape (l,) or (n, l).
        n_jobs : int, optional
            Threads to use. The answer does not depend on it.

        Returns
        -------
        Combination
        """


def register(cls: type[Combiner]) -> type[Combiner]:
    """Make ``cls`` known under its ``key`` (a class decorator)."""
    _REGISTRY[cls.key] = cls
    return cls


def names() -> list[str]:
    """Return the names of all registered combiners, in alphabetical order."""
    return sorted(_REGISTRY)


def resolve(combiner: str | Combiner) -> Combiner:
    """Turn a name into a combiner with default options; pass objects through."""
    if isinstance(combiner, Combiner):
        return combiner
    if isinstance(combiner, str) and combiner in _REGISTRY:
        return _REGISTRY[combiner]()
    raise ValueError(
        f"unknown combiner {quoted(combiner)}: pass a Combiner object or one of "
        f"{', '.join(names())}."
    )


def own_copy(combiner: str | Combiner) -> Combiner:
    """Return an unfitted copy that breaks ties the same way at every call."""
    copy: Combiner = clone(resolve(combiner))
    if hasattr(copy, "random_state"):
        copy.random_state = as_seed(copy.random_state)
    return copy
