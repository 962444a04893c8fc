"""The papers' simulated populations, whose true class probabilities are known.

:func:`gaussian_classes` and :func:`gaussian_mixtures` are the examples of Hastie &
Tibshirani (1998), :func:`pairwise_probabilities` that of Wu, Lin & Weng (2003).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import logsumexp, softmax
from scipy.stats import ortho_group
from sklearn.utils import check_random_state

from manyclass._lib.messages import quoted

_Seed = int | np.random.RandomState | None


@dataclass(frozen=True, eq=False)
class GaussianClasses:
    """A population of Gaussian classes, equally likely; see :func:`gaussian_classes`."""

    means: NDArray[np.float64]
    """Class means, shape (k, d)."""
    axes: NDArray[np.float64]
    """Orthonormal principal axes of each class, as columns, shape (k, d, d)."""
    variances: NDArray[np.float64]
    """Variances along the axes, shape (k, d)."""

    def sample(
        self, n_per_class: int = 100, *, random_state: _Seed = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw `n_per_class` samples of each class: ``X, y``, class by class."""
        k, d = self.means.shape
        z = check_random_state(random_state).standard_normal((k, n_per_class, d))
        z *= np.sqrt(self.variances)[:, None, :]
        X = self.means[:, None, :] + z @ self.axes.transpose(0, 2, 1)
        return X.reshape(-1, d), np.repeat(np.arange(k), n_per_class)

    def posterior(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the true class probabilities at each row of `X`, shape (n, k)."""
        centred = np.asarray(X, dtype=np.float64)[None, :, :] - self.means[:, None, :]
        projected = centred @ self.axes
        log_density = -0.5 * (projected**2 / self.variances[:, None, :]).sum(axis=2)
        log_density -= 0.5 * np.log(self.variances).sum(axis=1)[:, None]
        return softmax(log_density.T, axis=1)


def gaussian_classes(
    n_classes: int = 10,
    n_features: int = 20,
    *,
    uniform: Literal["eigenvalues", "deviations"] = "eigenvalues",
    random_state: _Seed = None,
) -> GaussianClasses:
    """Draw a population of Gaussian classes with unequal covariances.

    Means are uniform on [0, 1]; covariances have random orthogonal eigenvectors
    and eigenvalues uniform on [0.01, 1.01]. The defaults are the example of
    Hastie & Tibshirani (1998), section 3, as printed, who draw 100 training
    and 200 test samples per class.

    Parameters
    ----------
    n_classes : int, default=10
        Number of classes.
    n_features : int, default=20
        Number of dimensions.
    uniform : {"eigenvalues", "deviations"}, default="eigenvalues"
        What is uniform on [0.01, 1.01]: the eigenvalues of the covariances, or
        their square roots.
    random_state : int, RandomState or None, default=None
        Seed of the population, not of the samples drawn from it.

    Returns
    -------
    GaussianClasses
        Its method ``sample`` draws data, as often as needed.

    Notes
    -----
    The paper prints "eigenvectors whose square roots are uniformly
    distributed", and says that the Bayes error is less than 1 %. It is about
    10 % with uniform eigenvalues and 0.1 % with uniform square roots, so
    ``uniform="deviations"`` is likely what was simulated.

    Examples
    --------
    >>> from experiments.simulated import gaussian_classes
    >>> population = gaussian_classes(random_state=0)
    >>> X_train, y_train = population.sample(100, random_state=1)
    >>> X_test, y_test = population.sample(200, random_state=2)
    >>> X_train.shape, X_test.shape
    ((1000, 20), (2000, 20))
    """
    powers = {"eigenvalues": 1, "deviations": 2}
    if uniform not in powers:
        raise ValueError(f"uniform must be one of {', '.join(powers)}, got {quoted(uniform)}.")
    rng = check_random_state(random_state)
    means = rng.uniform(0, 1, (n_classes, n_features))
    axes = ortho_group(n_features).rvs(n_classes, random_state=rng)
    return GaussianClasses(
        means=means,
        axes=np.reshape(axes, (n_classes, n_features, n_features)),
        variances=rng.uniform(0.01, 1.01, (n_classes, n_features)) ** powers[uniform],
    )


@dataclass(frozen=True, eq=False)
class GaussianMixtures:
    """A population of mixtures of Gaussians, equally likely; see :func:`gaussian_mixtures`."""

    means: NDArray[np.float64]
    """Means of the components, shape (k, m, d)."""
    deviation: float
    """Standard deviation of every component, in all directions."""

    def sample(
        self, n_per_class: int = 200, *, random_state: _Seed = None
    ) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
        """Draw `n_per_class` samples of each class: ``X, y``, class by class."""
        rng = check_random_state(random_state)
        k, m, d = self.means.shape
        y = np.repeat(np.arange(k), n_per_class)
        component = rng.randint(m, size=len(y))
        return self.means[y, component] + self.deviation * rng.standard_normal((len(y), d)), y

    def posterior(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the true class probabilities at each row of `X`, shape (n, k)."""
        X = np.asarray(X, dtype=np.float64)
        k, m, d = self.means.shape
        squared = np.empty((len(X), k * m))
        for column, mean in enumerate(self.means.reshape(-1, d)):
            squared[:, column] = ((X - mean) ** 2).sum(axis=1)
        log_density = -0.5 * squared.reshape(-1, k, m) / self.deviation**2
        return softmax(logsumexp(log_density, axis=2), axis=1)


def gaussian_mixtures(
    n_classes: int = 3,
    n_components: int = 3,
    n_features: int = 2,
    *,
    separation: float = 0.5,
    spread: float = 2.0,
    deviation: float = 0.8,
    random_state: _Seed = None,
) -> GaussianMixtures:
    """Draw a population whose classes are mixtures of Gaussians.

    The centres of the classes are normal around the origin. The means of the components are
    normal around the centre of their class. Hastie & Tibshirani (1998), Figures 1 and 2, show
    three such classes of 200 samples each in the plane, but do not say how they were drawn. With
    the defaults, the linear discriminants of the three pairs contradict each other for about
    1 % of the samples: each class wins one pair.

    Parameters
    ----------
    n_classes : int, default=3
        Number of classes.
    n_components : int, default=3
        Number of components of each class, equally likely.
    n_features : int, default=2
        Number of dimensions.
    separation : float, default=0.5
        Standard deviation of the centres of the classes.
    spread : float, default=2.0
        Standard deviation of the components' means around the centre of their class.
    deviation : float, default=0.8
        Standard deviation of the samples around the mean of their component.
    random_state : int, RandomState or None, default=None
        Seed of the population, not of the samples drawn from it.

    Returns
    -------
    GaussianMixtures
        Its method ``sample`` draws data, as often as needed.

    Examples
    --------
    >>> from experiments.simulated import gaussian_mixtures
    >>> population = gaussian_mixtures(random_state=0)
    >>> X, y = population.sample(200, random_state=1)
    >>> X.shape, population.posterior(X).shape
    ((600, 2), (600, 3))
    """
    for name, value in (("separation", separation), ("spread", spread)):
        if not value >= 0:
            raise ValueError(f"{name} must be a standard deviation of at least 0, got {value!r}.")
    if not deviation > 0:
        raise ValueError(f"deviation must be a positive standard deviation, got {deviation!r}.")
    rng = check_random_state(random_state)
    centres = separation * rng.standard_normal((n_classes, 1, n_features))
    means = centres + spread * rng.standard_normal((n_classes, n_components, n_features))
    return GaussianMixtures(means=means, deviation=float(deviation))


def pairwise_probabilities(
    p: ArrayLike,
    n_samples: int = 1,
    *,
    noise: float = 0.1,
    eps: float = 1e-5,
    random_state: _Seed = None,
) -> NDArray[np.float64]:
    """Simulate noisy one-vs-one probabilities of known class probabilities.

    For each pair, ``r_ij = p_i / (p_i + p_j) + noise * z_ij`` with standard
    normal ``z_ij`` and ``r_ji = 1 - r_ij``, truncated to [eps, 1 - eps]:
    Wu, Lin & Weng (2003), section 6.1, eqs. (17) and (18).

    Parameters
    ----------
    p : array of shape (k,)
        Class probabilities, all positive.
    n_samples : int, default=1
        Number of independent draws.
    noise : float, default=0.1
        Standard deviation of the noise.
    eps : float, default=1e-5
        Distance kept from 0 and 1.
    random_state : int, RandomState or None, default=None
        Seed of the noise.

    Returns
    -------
    array of shape (n_samples, k, k)
        ``r[:, i, j]`` estimates P(i | i or j); the diagonal is 1/2.

    Examples
    --------
    >>> from experiments.simulated import pairwise_probabilities
    >>> pairwise_probabilities([0.6, 0.3, 0.1], noise=0)[0].round(2)
    array([[0.5 , 0.67, 0.86],
           [0.33, 0.5 , 0.75],
           [0.14, 0.25, 0.5 ]])
    """
    p = np.asarray(p, dtype=np.float64)
    if p.ndim != 1 or not (np.isfinite(p) & (p > 0)).all():
        raise ValueError(f"p must be one row of positive class probabilities, got {p!r}.")
    rng = check_random_state(random_state)
    upper = np.triu_indices(len(p), 1)
    mu = (p[:, None] / (p[:, None] + p))[upper]
    r = np.full((n_samples, len(p), len(p)), 0.5)
    draws = np.clip(mu + noise * rng.standard_normal((n_samples, len(mu))), eps, 1 - eps)
    r[:, upper[0], upper[1]] = draws
    r[:, upper[1], upper[0]] = 1 - draws
    return r
