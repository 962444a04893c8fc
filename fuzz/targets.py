"""What is attacked: every target makes one call of the library from a random generator.

A target returns if the answer is valid. It may let a ``ValueError`` or a ``TypeError`` with a
message pass, which is how the library says no; anything else is a fault.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuzz.arrays import (
    Rng,
    chance,
    laid_out,
    one_of,
    probabilities,
    retyped,
    scores,
    size,
    ternary,
)
from manyclass import codes, couple
from manyclass.calibration import (
    Beta,
    Calibration,
    Isotonic,
    RobustSigmoid,
    Sigmoid,
    Unchanged,
)
from manyclass.combiners import coupling
from manyclass.combiners.decoding import Hamming, LossBased, LossWeighted, MaxWins, WinnerTakesAll
from manyclass.scaling import StructuredScaling
from manyclass.scaling.lower_bounds import least_probabilities, raise_to
from manyclass.scaling.temperature import apply_temperature, fit_temperature

PAIRWISE = ("vote", "ht", "ht-noniterative", "wlw1", "wlw2", "pkpd", "refregier-vallet", "logit")
GENERAL = ("kl", "zadrozny", "noniterative", "least-squares")
LOSSES = ("linear", "exponential", "logistic", "hinge", "squared", "binomial-deviance")
ODD_NUMBERS = (0, -1, 1, 2.5, 1e-300, 1e300, np.nan, np.inf, None, "5", True, np.int8(3), 2**70)
SUM = 1e-12


class Invalid(AssertionError):
    """An answer that is none."""


def check_probabilities(p: NDArray, shape: tuple[int, int]) -> None:
    """Contract 2: finite, within [0, 1], rows sum to 1 within 1e-12."""
    if p.shape != shape or p.dtype != np.float64:
        raise Invalid(f"shape {p.shape} of {p.dtype}, not {shape}")
    if not np.isfinite(p).all():
        raise Invalid("not finite")
    if p.size and not (p.min() >= 0.0 and p.max() <= 1.0):
        raise Invalid(f"outside [0, 1]: {p.min()!r} to {p.max()!r}")
    if p.size and not np.abs(p.sum(axis=1) - 1.0).max() <= SUM:
        raise Invalid(f"sums are off by {np.abs(p.sum(axis=1) - 1.0).max():g}")


def check_coupling(result: Any, shape: tuple[int, int]) -> None:
    """Check the full output of ``couple``."""
    check_probabilities(result.p, shape)
    if not (result.iterations >= 1).all() or result.converged.dtype != bool:
        raise Invalid(f"iterations {result.iterations}, converged {result.converged}")
    if not ((result.incoherence >= 0) & (result.incoherence <= 1)).all():
        raise Invalid(f"incoherence {result.incoherence}")


def same(a: NDArray, b: NDArray) -> None:
    """Check that two answers are the same bits."""
    if not np.array_equal(a, b, equal_nan=True):
        raise Invalid(f"the layout changes the answer by {np.nanmax(np.abs(a - b)):g}")


def disguised(rng: Rng, array: NDArray, retype: float = 0.1) -> Any:
    """Return an array in another layout, and sometimes of another type."""
    if chance(rng, retype):
        return laid_out(rng, np.asarray(retyped(rng, array)))
    return laid_out(rng, array)


def any_rule(rng: Rng, names: tuple[str, ...]) -> Any:
    """Return a rule by name, or one with options, sane or not."""
    name = one_of(rng, *names)
    if chance(rng, 0.8):
        return name
    if chance(rng, 0.02):
        return one_of(rng, None, 3, "WLW2", "hamming", "")
    rule = coupling.resolve(name)
    for option in rule.get_params():
        if chance(rng, 0.5):
            rule.set_params(**{option: option_of(rng, option)})
    return rule


def option_of(rng: Rng, name: str) -> Any:
    """Return a value of an option, mostly one that makes sense."""
    if chance(rng, 0.25):
        return one_of(rng, *ODD_NUMBERS)
    usual: dict[str, Callable[[], Any]] = {
        "tol": lambda: 10.0 ** rng.uniform(-18, 1),
        "max_iter": lambda: size(rng, 1, 400),
        "n_starts": lambda: size(rng, 1, 8),
        "start": lambda: one_of(rng, "noniterative", "uniform"),
        "solver": lambda: one_of(rng, "newton", "printed"),
        "tree": lambda: one_of(rng, "chain", "star"),
        "center": lambda: size(rng, 0, 5),
        "random_state": lambda: int(rng.integers(2**32)),
    }
    return usual.get(name, lambda: one_of(rng, None, 10.0 ** rng.uniform(-8, 2)))()


def column_weights(rng: Rng, n_columns: int) -> Any:
    """Return weights of the columns, mostly usable ones."""
    if chance(rng, 0.4):
        return None
    powers = rng.normal(scale=one_of(rng, 0.0, 1.0, 5.0, 100.0), size=n_columns)
    weights = 10.0 ** powers.clip(-307, 307)
    if chance(rng, 0.1):
        weights[: max(1, n_columns // 2)] = one_of(rng, 5e-324, 1e-308, 1e300, 1.7e308)
    if chance(rng, 0.05):
        weights[-1] = one_of(rng, 0.0, -1.0, np.nan, np.inf)
    if chance(rng, 0.03):
        weights = np.append(weights, 1.0)
    return disguised(rng, weights, 0.05)


def couple_pairs(rng: Rng) -> None:
    """``couple`` on (n, k, k)."""
    n, k = size(rng, 0, 12), size(rng, 2, 40)
    n = 400 if chance(rng, 0.003) else n  # several blocks, for several threads
    r = probabilities(rng, (n, k, k))
    lower = np.tril_indices(k, -1)
    r[:, lower[0], lower[1]] = 1.0 - r[:, lower[1], lower[0]]
    if n and chance(rng, 0.05):
        r[-1, -1, 0] = one_of(rng, 0.0, 0.3, np.nan, np.inf)
    code = one_of(rng, None, "one-vs-one", codes.one_vs_one(k))
    if chance(rng, 0.1):
        code = one_of(rng, "one-vs-rest", "nonsense", 3, codes.one_vs_rest(k))
    rule, weights = any_rule(rng, PAIRWISE + GENERAL), column_weights(rng, k * (k - 1) // 2)
    given = disguised(rng, r)
    n_jobs = one_of(rng, None, 1, 2)
    check_coupling(couple(given, code, rule, weights, full_output=True, n_jobs=n_jobs), (n, k))


def couple_columns(rng: Rng) -> None:
    """``couple`` on (n, l) with a code by name, or a random matrix."""
    n, k = size(rng, 0, 8), size(rng, 2, 40)
    style = rng.integers(4)
    if style == 0:
        name = one_of(rng, "one-vs-one", "one-vs-rest", "ordinal", "complete")
        k = min(k, 8) if name == "complete" else k
        matrix, code = codes.by_name(name, k), name
    elif style == 1:  # a one-vs-one code in any order and sign
        matrix = codes.one_vs_one(k)
        matrix = matrix[:, rng.permutation(matrix.shape[1])] * rng.choice([-1, 1], matrix.shape[1])
        code = laid_out(rng, matrix)
    elif style == 2:  # identifiable for sure
        matrix = np.hstack([codes.one_vs_rest(k), ternary(rng, k, size(rng, 1, 10))])
        matrix = matrix[:, (matrix.max(axis=0) == 1) & (matrix.min(axis=0) == -1)]
        code = laid_out(rng, matrix)
    else:
        matrix = ternary(rng, k, size(rng, 1, 3 * k))
        code = disguised(rng, matrix, 0.1)
    n_columns = matrix.shape[1] + (chance(rng, 0.03) and one_of(rng, -1, 1))
    r = probabilities(rng, (n, n_columns))
    names = GENERAL
    if chance(rng, 0.1) or (isinstance(code, str) and code == "one-vs-rest"):
        names = (*GENERAL, "normalize")
    if chance(rng, 0.1) or codes.pair_columns(matrix) is not None:
        names = (*GENERAL, *PAIRWISE)
    rule = any_rule(rng, names)
    weights = column_weights(rng, matrix.shape[1])
    given = disguised(rng, r)
    result = couple(given, code, rule, weights, full_output=True)
    k = len(matrix) if not isinstance(code, str) else result.p.shape[1]
    check_coupling(result, (n, k))


def couple_layouts(rng: Rng) -> None:
    """The bits of ``couple`` do not depend on the layout."""
    n, k = size(rng, 1, 8), size(rng, 2, 12)
    matrix = one_of(rng, codes.one_vs_one, codes.one_vs_rest)(k)
    rule = one_of(rng, *(GENERAL if matrix.shape[1] == k > 3 else (*GENERAL, "normalize")))
    if matrix.shape[1] == k * (k - 1) // 2 and codes.pair_columns(matrix) is not None:
        rule = one_of(rng, *PAIRWISE, *GENERAL)
    r = probabilities(rng, (n, matrix.shape[1]), poison=0.0)
    plain = couple(r, matrix, rule)
    check_probabilities(plain, (n, k))
    same(couple(laid_out(rng, r), laid_out(rng, matrix), rule), plain)
    same(couple(r[-1:], matrix, rule), plain[-1:])


def code_constructors(rng: Rng) -> None:
    """Constructors, by function and by name, with sane and odd numbers of classes."""
    k: Any = size(rng, 2, 40)
    if chance(rng, 0.2):
        k = one_of(rng, 0, 1, -3, True, 3.0, "4", None, np.int8(5), np.float64(4), 2.5)
    name = one_of(rng, *codes.NAMES, "nonsense")
    if "random" in name and chance(rng, 0.7):
        build = codes.sparse_random if name == "sparse-random" else codes.dense_random
        n_columns = one_of(rng, None, size(rng, 1, 60), 0, -1, 2.5)
        n_draws = one_of(rng, 1, 2, 10, 30, 0, -1, 1.5)
        code = build(k, n_columns, n_draws, random_state=int(rng.integers(2**32)))
    elif "random" in name:
        return
    else:
        if name == "complete" and isinstance(k, int):
            k = one_of(rng, min(k, 11), 17, 40)
        code = codes.by_name(name, k)
    if codes.check_code(code, int(k)) is None or code.dtype != np.int8:
        raise Invalid("not a code")


def code_checks(rng: Rng) -> None:
    """Checks, audit and recognition of matrices that may not be codes."""
    matrix: Any = ternary(rng, size(rng, 0, 40), size(rng, 0, 60))
    if chance(rng, 0.2):
        matrix = one_of(rng, codes.one_vs_one, codes.one_vs_rest, codes.ordinal)(size(rng, 2, 20))
    if matrix.size and chance(rng, 0.1):
        matrix = matrix.astype(np.float64)
        matrix.flat[int(rng.integers(matrix.size))] = one_of(rng, 2, 0.5, np.nan, np.inf, -7)
    if chance(rng, 0.05):
        matrix = one_of(rng, None, 3, "code", [[1], [1, -1]], [], [[]], matrix[..., None], {1: 2})
    else:
        matrix = disguised(rng, matrix, 0.1)
    valid = False
    audit = codes.audit(matrix)
    text = repr(audit)
    if not text.startswith("Code of"):
        raise Invalid(text)
    try:
        code = codes.check_code(matrix, one_of(rng, None, audit.n_classes, 3))
        valid = True
    except ValueError:
        if audit.valid and audit.n_classes == 3:
            raise
    if valid and not audit.valid:
        raise Invalid("audit and check_code disagree")
    if codes.is_identifiable(matrix) != audit.identifiable:
        raise Invalid("audit and is_identifiable disagree")
    if valid:
        codes.is_dense(code), codes.is_one_vs_rest(code), codes.pair_columns(code)
    codes.check_identifiable(matrix)


def code_names(rng: Rng) -> None:
    """The number of classes that a name and a number of columns stand for."""
    name = one_of(rng, *codes.NAMES, "nonsense")
    n_columns = one_of(rng, size(rng, 1, 400), size(rng, 1, 2**31), 0, -1, 2.5, 2**62, 10**30)
    k = codes.n_classes_of(name, n_columns)
    if k < 100 and codes.by_name(name, k).shape[1] != n_columns:
        raise Invalid(f"{name} of {k} classes has not {n_columns} columns")


def decoders(rng: Rng) -> None:
    """Label decoders: finite scores, one winner."""
    n, k = size(rng, 0, 8), size(rng, 2, 40)
    which = rng.integers(4)
    state = int(rng.integers(2**32))
    if which == 0:
        decoder, code = MaxWins(state), codes.one_vs_one(k)
    elif which == 1:
        decoder, code = WinnerTakesAll(state), codes.one_vs_rest(k)
    else:
        code = np.hstack([codes.one_vs_rest(k), ternary(rng, k, size(rng, 1, 20))])
        loss = one_of(rng, *LOSSES, np.square, "nonsense")
        decoder = one_of(
            rng, Hamming(state), LossBased(loss, state), LossWeighted(loss, state), MaxWins(state)
        )
    f = scores(rng, (n, code.shape[1]))
    result = decoder.combine(disguised(rng, f), code)
    if result.values.shape != (n, k) or not np.isfinite(result.values).all():
        raise Invalid(f"scores {result.values}")
    if n and (result.values == result.values.max(axis=1, keepdims=True)).sum(axis=1).max() > 1:
        raise Invalid("a tie is left")


def _calibrate(rng: Rng, calibration: Calibration) -> None:
    n, n_columns = size(rng, 1, 80), size(rng, 1, 12)
    f = scores(rng, (n, n_columns), nan=0.3)
    sides = rng.choice(
        np.array([-1, 0, 1], np.int8),
        (n, n_columns),
        p=one_of(rng, [0.5, 0, 0.5], [0.3, 0.4, 0.3], [0, 0.1, 0.9], [0.98, 0.01, 0.01], [0, 1, 0]),
    )
    weights = np.ones(n)
    if chance(rng, 0.5):
        weights = rng.random(n) * one_of(rng, 1.0, 1e-310, 1e-300, 1e300, 1e15)
        weights[rng.random(n) < one_of(rng, 0.0, 0.3, 1.0)] = 0.0
    calibration.fit(*(plain_or_not(rng, part) for part in (f, sides, weights)))
    new = np.vstack([f, scores(rng, (size(rng, 0, 5), n_columns), nan=0.2)])
    r = calibration.transform(plain_or_not(rng, new))
    if r.shape != new.shape or not (np.isnan(r) == np.isnan(new)).all():
        raise Invalid("missing where there is a score")
    known = r[~np.isnan(r)]
    if not ((known >= 0) & (known <= 1)).all():
        raise Invalid(f"outside [0, 1]: {known.min()!r} to {known.max()!r}")


def plain_or_not(rng: Rng, array: NDArray) -> NDArray:
    """Return an array of the same type in any layout; calibrators take arrays only."""
    same = np.asarray(laid_out(rng, array)).astype(array.dtype, copy=False)
    return same if array.size else array


def sigmoids(rng: Rng) -> None:
    """Platt's sigmoid, and the one of scores that are drawn in."""
    _calibrate(rng, one_of(rng, Sigmoid(), RobustSigmoid()))


def isotonics(rng: Rng) -> None:
    """Isotonic regression."""
    _calibrate(rng, Isotonic())


def betas(rng: Rng) -> None:
    """Beta calibration, and scores that are read as log-odds."""
    _calibrate(rng, one_of(rng, Beta(), Unchanged()))


def temperatures(rng: Rng) -> None:
    """The power that fits best, and powers applied."""
    n, k = size(rng, 0, 30), size(rng, 2, 40)
    p = probabilities(rng, (n, k), poison=0.0) + one_of(rng, 0.0, 1e-300, 1e-3)
    p[:, 0] += p.sum(axis=1) == 0
    p /= p.sum(axis=1, keepdims=True)
    y = rng.integers(k, size=n)
    weights = one_of(rng, None, np.zeros(n), rng.random(n) * one_of(rng, 1.0, 1e-305, 1e300))
    s = fit_temperature(plain_or_not(rng, p), y, weights)
    if not 0.05 <= s <= 20.0:
        raise Invalid(f"temperature {s}")
    check_probabilities(apply_temperature(plain_or_not(rng, p), s), (n, k))
    share = one_of(rng, 0.0, 1e-9, 0.5, 1.0)
    scaled = apply_temperature(p, one_of(rng, 0.05, 20.0, 1.0), share)
    counts = rng.integers(1, 4, size=k)
    least = least_probabilities(counts, counts * one_of(rng, 1.0, 5e-324, 1e307))
    check_probabilities(raise_to(scaled, least), (n, k))


def structured_scalings(rng: Rng) -> None:
    """Structured scaling of any probabilities, with and without those of other models."""
    n, k = size(rng, 1, 30), size(rng, 2, 12)
    p, other, new = (_normalised(probabilities(rng, (n, k), poison=0.0)) for _ in range(3))
    weights = one_of(rng, None, np.ones(n), rng.random(n) + 1e-3)
    others = one_of(rng, [], [other])
    scaling = StructuredScaling().fit(p, rng.integers(k, size=n), weights, others=others)
    check_probabilities(scaling.predict_proba(new, others=others), (n, k))


def _normalised(p: NDArray) -> NDArray:
    p[:, 0] += p.sum(axis=1) == 0
    return p / p.sum(axis=1, keepdims=True)


TARGETS: dict[str, tuple[Callable[[Rng], None], int]] = {
    "couple, pairs": (couple_pairs, 31),
    "couple, columns": (couple_columns, 33),
    "couple, layouts": (couple_layouts, 3),
    "codes, constructors": (code_constructors, 6),
    "codes, checks": (code_checks, 8),
    "codes, names": (code_names, 2),
    "decoders": (decoders, 8),
    "sigmoid": (sigmoids, 6),
    "beta": (betas, 2),
    "isotonic": (isotonics, 2),
    "temperature": (temperatures, 4),
    "structured scaling": (structured_scalings, 1),
}
"""Name to function and share."""

_SCHEDULE = [name for name, (_, share) in TARGETS.items() for _ in range(share)]


def target_of(seed: int) -> str:
    """Return the target that an input goes to."""
    return _SCHEDULE[seed * 7919 % len(_SCHEDULE)]


def attack(seed: int) -> str:
    """Make the call of a seed; returns "answered" or "refused", or raises a fault."""
    name = target_of(seed)
    try:
        TARGETS[name][0](np.random.default_rng(seed))
    except (ValueError, TypeError) as error:
        if isinstance(error, np.linalg.LinAlgError) or not str(error):
            raise
        return "refused"
    return "answered"
