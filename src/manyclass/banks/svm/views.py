"""Single columns of a kernel bank, as estimators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import get_tags

from manyclass._lib.arrays import Floats, Places, read_only
from manyclass._lib.messages import refused
from manyclass.banks.svm.kernels import LinearKernel

if TYPE_CHECKING:
    from manyclass.banks.svm.bank import KernelBank


class KernelMachine(ClassifierMixin, BaseEstimator):
    """One column of a :class:`KernelBank`, with the names of SVC; class 1 is the positive side.

    It is a view: its parameters are those of ``learner``, and so is its clone, which is not fitted.
    Its arrays are read-only, since changing them would not change the bank.
    """

    def __init__(self, bank: KernelBank, column: int, learner: Any = None):
        self._bank, self._column, self._learner = bank, column, learner
        self.classes_ = read_only(np.array([0, 1]))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of the learner."""
        return {} if self._learner is None else self._learner.get_params(deep)

    def set_params(self, **params):
        """Raise an error: the machine is fitted already."""
        raise AttributeError("a fitted machine has fixed parameters: clone it, and set them there.")

    def __sklearn_clone__(self):
        return clone(self._learner)

    def __sklearn_tags__(self):
        return super().__sklearn_tags__() if self._learner is None else get_tags(self._learner)

    def __getattr__(self, name: str) -> Any:
        params = {} if name.startswith("_") else self.get_params(deep=False)
        return params[name] if name in params else refused(self, name)

    @property
    def n_features_in_(self) -> int:
        """Number of features of the training data."""
        n_features = self._bank.n_features
        if n_features is None:
            raise AttributeError("samples of a callable kernel have no number of features.")
        return n_features

    @property
    def support_(self) -> Places:
        """Rows of the training data that are support vectors of this column."""
        return read_only(self._bank.duals[:, [self._column]].nonzero()[0])

    @property
    def dual_coef_(self) -> Floats:
        """Signed dual coefficients, shape (1, support vectors)."""
        return read_only(self._bank.duals[self.support_][:, [self._column]].toarray().T)

    @property
    def intercept_(self) -> Floats:
        """The constant term, shape (1,)."""
        return read_only(self._bank.intercept[[self._column]])

    @property
    def coef_(self):
        """Weights of the features for a linear kernel, shape (1, n_features); sparse if X was."""
        if not isinstance(self._bank.kernel, LinearKernel):
            raise AttributeError("coef_ is only available with kernel='linear'.")
        coef = self._bank.coef_of([self._column])
        return read_only(csr_matrix(coef) if self._bank.sparse else coef)

    def decision_function(self, X) -> Floats:
        """Return the margins of this column."""
        return self._bank.scores(X)[:, self._column]

    def predict(self, X) -> Places:
        """Return 1 for the positive side, 0 for the negative."""
        return (self.decision_function(X) > 0).astype(np.intp)
