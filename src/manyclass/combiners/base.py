"""The base class of all combiners: values of the binary models in, one column per class out.

Coupling rules (:mod:`manyclass.combiners.coupling`), trained soft-max functions
(:mod:`manyclass.combiners.softmax`) and label decoders (:mod:`manyclass.combiners.decoding`) are
combiners. Class attributes say what a combiner takes, which codes it accepts and whether it
gives probabilities. No other code needs to test its name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, clone

from manyclass import codes
from manyclass._lib.arrays import Code, Flags, Floats, Places
from manyclass._lib.messages import meant, quoted
from manyclass.combiners.ties import as_seed

if TYPE_CHECKING:
    from manyclass.combiners.reliability import Reliability

_REGISTRY: dict[str, type[Combiner]] = {}


class Combination(NamedTuple):
    """The result of a combiner for ``n`` rows and ``k`` classes."""

    values: Floats
    """Class probabilities or class scores, shape (n, k)."""
    iterations: NDArray[np.int32]
    """Iterations spent on each row; 1 where the rule has a closed form. Shape (n,)."""
    converged: Flags
    """Whether each row reached the rule's tolerance. Shape (n,)."""
    incoherence: Floats = np.empty(0)
    """How far the binary models contradict each other on each row: the weighted
    root-mean-square of ``r_b - q_b(p)``. Shape (n,); (0,) unless it was asked for."""

    @property
    def p(self) -> Floats:
        """The class probabilities: another name for ``values``."""
        return self.values

    @classmethod
    def in_closed_form(cls, values: Floats) -> Combination:
        """Return values that needed no iterations."""
        n = len(values)
        return cls(values, np.ones(n, dtype=np.int32), np.ones(n, dtype=np.bool_))


class Combiner(BaseEstimator, ABC):
    """Base of coupling rules, trained soft-max functions and label decoders.

    Subclasses set the class attributes below and implement :meth:`combine`.
    They have ``get_params``, ``clone`` and nested parameters as all scikit-learn
    estimators do, so a search can vary ``combiner__tol``.
    """

    key: ClassVar[str]
    """The name of this combiner."""
    takes: ClassVar[Literal["probabilities", "scores"]]
    """Whether :meth:`combine` takes binary probabilities or margins."""
    accepts: ClassVar[Literal["any", "one-vs-one", "one-vs-rest", "class-trees"]] = "any"
    """The codes it is defined for."""
    gives_probabilities: ClassVar[bool]
    """Whether the values are a distribution over the classes."""

    def measure(self) -> Reliability | None:
        """Return the unfitted measure of the reliabilities that :meth:`combine` takes as weights.

        None if this combiner does not use reliabilities.
        """
        return None

    @property
    def learns(self) -> bool:
        """Whether this combiner needs :meth:`fit`, with out-of-sample scores, before use."""
        return False

    def fit(self, values: Floats, y: Places, code: Code, sample_weight: Floats) -> Combiner:
        """Learn from out-of-sample values; combiners that do not learn return themselves.

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
        A subclass whose ``fit`` also has a parameter ``folds`` gets the number of the fold that
        left each row out, -1 for none, if the scores come from folds. It can use the same folds
        for a cross-validation.
        """
        return self

    def check_code(self, code: Code) -> None:
        """Raise a ``ValueError`` if this combiner is not defined for the code."""
        fits = {
            "any": lambda: True,
            "one-vs-one": lambda: codes.pair_columns(code) is not None,
            "one-vs-rest": lambda: codes.is_one_vs_rest(code),
            "class-trees": lambda: codes.find_trees(code) is not None,
        }
        if not fits[self.accepts]():
            k, n_columns = code.shape
            raise ValueError(
                f"combiner {self.key!r} is defined for {self.accepts} codes, but the code "
                f"given ({k} classes, {n_columns} columns) is not one. Use code={self.accepts!r}, "
                "or a combiner for any code, such as 'kl' or 'least-squares'."
            )

    def check_determined(self, code: Code) -> None:
        """Raise an error, or warn, if the code does not determine what this combiner returns."""

    @abstractmethod
    def combine(
        self,
        values: Floats,
        code: Code,
        weights: Floats | None = None,
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
            Weight of each column; equal when omitted. Rules without weights ignore it. Combiners
            with a :meth:`measure` get the reliabilities, shape (l,) or (n, l).
        n_jobs : int, optional
            Number of threads. The result does not depend on it.

        Returns
        -------
        Combination
        """


def register(cls: type[Combiner]) -> type[Combiner]:
    """Make ``cls`` known under its ``key`` (a class decorator)."""
    _REGISTRY[cls.key] = cls
    return cls


def registered() -> dict[str, type[Combiner]]:
    """Return the classes of all registered combiners, by name."""
    return dict(_REGISTRY)


def names() -> list[str]:
    """Return the names of all registered combiners, in alphabetical order."""
    return sorted(_REGISTRY)


def resolve(combiner: str | Combiner) -> Combiner:
    """Return the combiner of a name, with default options; return objects unchanged."""
    if isinstance(combiner, Combiner):
        return combiner
    if isinstance(combiner, str) and combiner in _REGISTRY:
        return _REGISTRY[combiner]()
    raise ValueError(
        f"unknown combiner {quoted(combiner)}{meant(combiner, names())}: pass a Combiner object, "
        f"'auto' or one of {', '.join(names())}."
    )


def resolve_for(combiner: str | Combiner, code: Code | None = None) -> Combiner:
    """Return the combiner of a name; "auto" means a coupling rule that is defined for the code.

    It is δ2 of Wu, Lin & Weng for one-vs-one, the product along paths for class trees, and the
    minimum of the weighted divergence (kl) for all other codes, or least squares if the code does
    not determine the class probabilities.
    """
    if not isinstance(combiner, str) or combiner != "auto":
        return resolve(combiner)
    if code is None or codes.pair_columns(code) is not None:
        return resolve("wlw2")
    if codes.count_trees(code) > 0:
        return resolve("tree-product")
    return resolve("kl" if codes.is_identifiable(code) else "least-squares")


def own_copy(combiner: str | Combiner, code: Code | None = None) -> Combiner:
    """Return an unfitted copy, with a fixed seed so that each call breaks ties the same way."""
    copy: Combiner = clone(resolve_for(combiner, code))
    if hasattr(copy, "random_state"):
        copy.random_state = as_seed(copy.random_state)
    return copy
