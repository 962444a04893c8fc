"""Coupling rules: one list of rules crossed with laws, and each rule against its oracle."""

from __future__ import annotations

import tracemalloc
import warnings
from functools import cache
from typing import NamedTuple

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.exceptions import ConvergenceWarning

from manyclass import codes
from manyclass.combiners.base import Combiner, registered, resolve
from manyclass.combiners.coupling import (
    CouplingRule,
    HastieTibshirani,
    KullbackLeibler,
    LeastSquares,
    RefregierVallet,
    Vote,
    WuLinWeng1,
    WuLinWeng2,
    Zadrozny,
    base,
    couple,
)

# The printed iterations may stop early near 0 and 1, and say so: see TestDiagnostics.
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")

quick = settings(deadline=None, max_examples=8)
seeds = st.integers(0, 2**32 - 1)


# -- rules and codes -------------------------------------------------------------------


class Case(NamedTuple):
    """A rule on a code, and which laws it does not obey."""

    rule: str | Combiner
    code: str
    recovers: bool = True  # returns p from the binary probabilities of p
    symmetric: bool = True  # no class or column is treated apart

    def __repr__(self):
        return f"{self.rule}-{self.code}"


def build(name, k):
    if name in ("sparse-random", "dense-random"):
        return _random(name, k)
    if name == "class-trees":
        return _trees(k)
    return codes.by_name(name, k)


@cache
def _random(name, k):
    constructor = {"sparse-random": codes.sparse_random, "dense-random": codes.dense_random}[name]
    code = constructor(k, n_draws=50, random_state=k)
    code.flags.writeable = False
    return code


@cache
def _trees(k):
    X, y = np.random.default_rng(k).normal(size=(2 * k, 3)), np.arange(2 * k) % k
    code = codes.class_trees(X, y, n_trees=3, random_state=k)
    code.flags.writeable = False
    return code


OVO = "one-vs-one"
FAMILIES = [OVO, "one-vs-rest", "ordinal", "complete", "dense-random", "sparse-random"]
EXCEPTIONS = {
    "vote": {"recovers": False},
    "ht-noniterative": {"recovers": False},
    "noniterative": {"recovers": False},
    "refregier-vallet": {"symmetric": False},
}
"""The laws that a rule does not obey, by definition. All other rules obey all laws."""
OPTIONS = {
    "ht": [HastieTibshirani(solver="printed")],
    "refregier-vallet": [RefregierVallet(tree="star")],
}
"""Options that are tested as rules of their own."""
RULES = {name: cls for name, cls in registered().items() if issubclass(cls, CouplingRule)}
CASES = [
    Case(rule, code, **EXCEPTIONS.get(name, {}))
    for name, cls in RULES.items()
    for rule in [name, *OPTIONS.get(name, [])]
    for code in (FAMILIES if cls.accepts == "any" else [cls.accepts])
]
PAIRWISE = [case for case in CASES if resolve(case.rule).accepts == OVO]
OWN_TESTS = {"vote", "ht-noniterative", "refregier-vallet"}  # not with EXACT: see below
EXACT = [name for name, cls in RULES.items() if cls.accepts == OVO and name not in OWN_TESTS]
WEIGHTED = ["ht", "logit", "kl", "zadrozny", "least-squares"]

# The printed iterations stop when the change is small, which is well before the fixed point.
PRINTED = HastieTibshirani(solver="printed", tol=1e-13, max_iter=100_000)
PATIENT = {
    repr("zadrozny"): Zadrozny(tol=1e-13, max_iter=100_000),
    repr(HastieTibshirani(solver="printed")): PRINTED,
}

each = pytest.mark.parametrize("case", CASES, ids=repr)


def binary_of(p, code):
    """The binary probabilities q_b(p) of each row of p."""
    plus, minus = p @ (code == 1), p @ (code == -1)
    return plus / (plus + minus)


KINDS = ["random", "hard", "confident", "draws", "nearly consistent"]


def draw_r(kind, n, code, rng):
    shape = (n, code.shape[1])
    if kind == "random":
        return rng.random(shape)
    if kind == "hard":
        return rng.integers(0, 2, shape).astype(float)
    if kind == "confident":
        return 1 / (1 + np.exp(rng.normal(scale=8, size=shape)))
    if kind == "draws":
        return rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], size=shape)
    p = rng.dirichlet(np.ones(len(code)), size=n)
    return np.clip(binary_of(p, code) + rng.normal(scale=1e-6, size=shape), 0, 1)


def square_of(r, code):
    return np.array([naive.to_square(row, code) for row in r])


def transitive(k, rng):
    """0/1 comparisons that follow a random ranking of the classes."""
    rank = rng.permutation(k)
    return (rank[:, None] < rank[None, :]).astype(float) + 0.5 * np.eye(k)


# -- laws ------------------------------------------------------------------------------


@each
class TestLaws:
    @quick
    @given(seed=seeds, k=st.integers(2, 9), kind=st.sampled_from(KINDS))
    def test_probabilities_are_on_the_simplex(self, case, seed, k, kind):
        code = build(case.code, k)
        r = draw_r(kind, 5, code, np.random.default_rng(seed))
        p = couple(r, code=code, rule=case.rule)
        assert p.shape == (5, k) and p.dtype == np.float64
        assert np.isfinite(p).all() and (p >= 0).all()
        assert_allclose(p.sum(1), 1, rtol=0, atol=1e-12)

    @quick
    @given(seed=seeds, k=st.integers(2, 8), kind=st.sampled_from(KINDS))
    def test_permuting_classes_permutes_p(self, case, seed, k, kind):
        if not case.symmetric:
            pytest.skip("depends on the order of the classes by definition")
        rng = np.random.default_rng(seed)
        code, perm = build(case.code, k), rng.permutation(k)
        r = draw_r(kind, 3, code, rng)
        p = couple(r, code=code, rule=case.rule)
        if case.code == OVO:
            square = square_of(r, code)[:, perm][:, :, perm]
            permuted = couple(square, rule=case.rule)
        elif case.code == "one-vs-rest":  # column c belongs to class c
            permuted = couple(r[:, perm], code=code, rule=case.rule)
        else:
            permuted = couple(r, code=code[perm], rule=case.rule)
        assert_allclose(permuted, p[:, perm], rtol=0, atol=1e-8)

    @quick
    @given(seed=seeds, k=st.integers(2, 8), kind=st.sampled_from(KINDS))
    def test_order_and_signs_of_columns_do_not_matter(self, case, seed, k, kind):
        if case.rule == "normalize":
            pytest.skip("knows its columns by their place")
        rng = np.random.default_rng(seed)
        code = build(case.code, k)
        r = draw_r(kind, 3, code, rng)
        order = rng.permutation(code.shape[1])
        sign = rng.choice([-1, 1], size=code.shape[1]).astype(np.int8)
        flipped = np.where(sign == 1, r[:, order], 1 - r[:, order])
        p = couple(r, code=code, rule=case.rule)
        again = couple(flipped, code=code[:, order] * sign, rule=case.rule)
        assert_allclose(again, p, rtol=0, atol=1e-8)

    @quick
    @given(seed=seeds, k=st.integers(2, 9))
    def test_recovers_p_from_its_binary_probabilities(self, case, seed, k):
        if not case.recovers:
            pytest.skip("not consistent by definition")
        code = build(case.code, k)
        p = 0.5 / k + 0.5 * np.random.default_rng(seed).dirichlet(np.ones(k), size=3)
        rule = PATIENT.get(repr(case.rule), case.rule)
        assert_allclose(couple(binary_of(p, code), code=code, rule=rule), p, rtol=0, atol=1e-8)

    def test_two_classes_give_the_binary_probability(self, case):
        if case.rule == "vote":
            pytest.skip("a vote is 0, 1/2 or 1")
        code, values = build(case.code, 2), np.array([0.0, 0.1, 0.5, 1 / 3, 1.0])
        expected = np.column_stack([values, 1 - values])
        p = couple(binary_of(expected, code), code=code, rule=case.rule)
        assert_allclose(p, expected, rtol=0, atol=2e-7)  # r is clipped at 1e-7

    def test_rows_do_not_see_each_other(self, case):
        rng = np.random.default_rng(0)
        code = build(case.code, 5)
        r = np.concatenate([draw_r(kind, 9, code, rng) for kind in KINDS])
        whole = couple(r, code=code, rule=case.rule)
        pieces = np.concatenate(
            [couple(part, code=code, rule=case.rule) for part in np.split(r, [1, 4, 20, 37])]
        )
        order = rng.permutation(len(r))
        assert_array_equal(pieces, whole)
        assert_array_equal(couple(r[order], code=code, rule=case.rule), whole[order])

    def test_threads_do_not_matter(self, case):
        code = build(case.code, 4)
        r = draw_r("random", 1500, code, np.random.default_rng(1))
        one = couple(r, code=code, rule=case.rule, n_jobs=1, full_output=True)
        for n_jobs in (None, 3):
            other = couple(r, code=code, rule=case.rule, n_jobs=n_jobs, full_output=True)
            for a, b in zip(one, other, strict=True):
                assert_array_equal(a, b)

    def test_layout_of_the_input_does_not_matter(self, case):
        code = build(case.code, 4)
        r32 = draw_r("random", 21, code, np.random.default_rng(2)).astype(np.float32)
        r = r32.astype(np.float64)
        expected = couple(r.copy(), code=code, rule=case.rule)
        wide = np.zeros((42, 2 * r.shape[1]))
        wide[::2, ::2] = r
        frozen = r.copy()
        frozen.flags.writeable = False
        for same in (
            r32,
            np.asfortranarray(r),
            wide[::2, ::2],
            r[::-1].copy()[::-1],
            frozen,
            r.tolist(),
        ):
            assert_array_equal(couple(same, code=code, rule=case.rule), expected)

    def test_inputs_are_left_alone(self, case):
        code = build(case.code, 4).copy()
        r = draw_r("hard", 9, code, np.random.default_rng(3))
        weights = np.arange(1.0, code.shape[1] + 1)
        before = r.copy(), code.copy(), weights.copy()
        couple(r, code=code, rule=case.rule, weights=weights)
        for now, then in zip((r, code, weights), before, strict=True):
            assert_array_equal(now, then)

    def test_no_rows(self, case):
        code = build(case.code, 4)
        result = couple(np.empty((0, code.shape[1])), code=code, rule=case.rule, full_output=True)
        assert result.p.shape == (0, 4)
        assert len(result.iterations) == len(result.converged) == len(result.incoherence) == 0

    def test_names_of_codes(self, case):
        if case.code.endswith("random") or case.code == "class-trees":
            pytest.skip("such a code has to be given")
        code = build(case.code, 5)
        r = draw_r("random", 4, code, np.random.default_rng(4))
        assert_array_equal(
            couple(r, code=case.code, rule=case.rule), couple(r, code=code, rule=case.rule)
        )


@pytest.mark.parametrize("case", PAIRWISE, ids=repr)
class TestSquareInput:
    def test_agrees_with_condensed_input(self, case):
        code = codes.one_vs_one(6)
        r = draw_r("random", 19, code, np.random.default_rng(0))
        p = couple(square_of(r, code), rule=case.rule)
        assert_allclose(p, couple(r, code=OVO, rule=case.rule), rtol=0, atol=1e-13)

    @pytest.mark.parametrize("diagonal", [0.0, 7.0, np.nan])
    def test_diagonal_is_ignored(self, case, diagonal):
        code = codes.one_vs_one(4)
        square = square_of(draw_r("random", 3, code, np.random.default_rng(1)), code)
        expected = couple(square, rule=case.rule)
        square[:, np.arange(4), np.arange(4)] = diagonal
        assert_array_equal(couple(square, rule=case.rule), expected)

    def test_layout_and_precision(self, case):
        code = codes.one_vs_one(4)
        square = square_of(draw_r("random", 18, code, np.random.default_rng(2)), code)
        expected = couple(square, rule=case.rule)
        assert_array_equal(couple(np.asfortranarray(square), rule=case.rule), expected)
        assert_array_equal(couple(square[::-1].copy()[::-1], rule=case.rule), expected)
        assert_allclose(couple(square.astype(np.float32), rule=case.rule), expected, atol=1e-5)

    def test_no_rows(self, case):
        assert couple(np.empty((0, 4, 4)), rule=case.rule).shape == (0, 4)


# -- published and exact values ----------------------------------------------------------

HT_MATRIX = np.array([[0.5, 0.9, 0.4], [0.1, 0.5, 0.7], [0.6, 0.3, 0.5]])
HT_VALUES = {
    "ht": (0.4811, 0.2416, 0.2773),
    "wlw1": (0.4644, 0.2218, 0.3138),
    "wlw2": (0.4572, 0.2021, 0.3406),
    "pkpd": (0.5254, 0.1316, 0.3430),
    "ht-noniterative": (1.3 / 3, 0.8 / 3, 0.9 / 3),
    "vote": (1 / 3, 1 / 3, 1 / 3),
}


@pytest.mark.parametrize(("rule", "p"), HT_VALUES.items())
def test_matrix_1_of_hastie_and_tibshirani(rule, p):
    assert_allclose(couple(HT_MATRIX[None], rule=rule)[0], p, rtol=0, atol=5.1e-5)


def test_default_rule_is_wlw2():
    assert_array_equal(couple(HT_MATRIX[None]), couple(HT_MATRIX[None], rule="wlw2"))


def test_keys_and_classes_are_the_same_rules():
    code = codes.one_vs_one(5)
    r = draw_r("random", 7, code, np.random.default_rng(0))
    pairs = {
        "vote": Vote(),
        "ht": HastieTibshirani(),
        "wlw1": WuLinWeng1(),
        "wlw2": WuLinWeng2(),
        "kl": KullbackLeibler(),
        "zadrozny": Zadrozny(),
        "least-squares": LeastSquares(),
    }
    for key, rule in pairs.items():
        assert_array_equal(couple(r, code=code, rule=key), couple(r, code=code, rule=rule))


# -- accuracy: one-vs-one ------------------------------------------------------------------


WEIGHTED_ORACLES = {"ht": naive.ht_newton, "logit": naive.logit}


def pairwise_oracle(rule, square, n):
    """Couple one square matrix by the oracle that has the name of the rule."""
    if rule in WEIGHTED_ORACLES:
        return WEIGHTED_ORACLES[rule](square, n)
    return getattr(naive, rule.replace("-", "_"))(square)


def extreme_and_ordinary(k, rng):
    """Square matrices: one of each kind of r, and a hard ranking."""
    code = codes.one_vs_one(k)
    rows = [draw_r(kind, 1, code, rng) for kind in KINDS]
    return np.concatenate([square_of(np.concatenate(rows), code), transitive(k, rng)[None]])


@pytest.mark.parametrize("rule", EXACT)
@pytest.mark.parametrize("k", [2, 3, 5, 10, 26, 60])
def test_pairwise_rules_match_their_oracles(rule, k):
    squares = extreme_and_ordinary(k, np.random.default_rng(k))
    p = couple(squares, rule=rule)
    expected = [pairwise_oracle(rule, naive.clip(s), naive.equal_weights(k)) for s in squares]
    assert_allclose(p, np.array(expected, dtype=float), rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", EXACT)
def test_pairwise_rules_with_100_classes(rule):
    code, rng = codes.one_vs_one(100), np.random.default_rng(0)
    squares = square_of(np.concatenate([draw_r(kind, 1, code, rng) for kind in KINDS[:2]]), code)
    p = couple(squares, rule=rule)
    expected = [pairwise_oracle(rule, naive.clip(s), naive.equal_weights(100)) for s in squares]
    assert_allclose(p, np.array(expected, dtype=float), rtol=0, atol=1e-8)


@pytest.mark.parametrize("k", [2, 3, 7, 40])
def test_closed_forms_and_trees(k):
    squares = extreme_and_ordinary(k, np.random.default_rng(k))
    clipped = naive.clip(squares)
    rules = {
        "ht-noniterative": naive.ht_noniterative,
        RefregierVallet(tree="chain"): lambda s: naive.refregier_vallet(s, naive.chain(k)),
        RefregierVallet(tree="star"): lambda s: naive.refregier_vallet(s, naive.star(k)),
    }
    for rule, oracle in rules.items():
        p = couple(squares, rule=rule)
        # 1 - (1 - 1e-7) is 1e-7 only to 5e-10
        assert_allclose(p, [oracle(s) for s in clipped], rtol=0, atol=1e-9)


@pytest.mark.parametrize("k", [3, 6])
@pytest.mark.parametrize("rule", ["ht", "logit", HastieTibshirani(solver="printed"), "kl"])
def test_weights_of_pairwise_rules(rule, k):
    code, rng = codes.one_vs_one(k), np.random.default_rng(k)
    r, weights = draw_r("random", 4, code, rng), rng.uniform(0.1, 10, code.shape[1])
    n = naive.square_weights(weights, code)
    oracle = naive.logit if rule == "logit" else naive.ht_newton
    expected = np.array([oracle(s, n) for s in square_of(r, code)], dtype=float)
    for p in (
        couple(r, code=OVO, rule=rule, weights=weights),
        couple(r, code=OVO, rule=rule, weights=1e6 * weights),
    ):
        assert_allclose(p, expected, rtol=0, atol=1e-6 if "printed" in repr(rule) else 1e-8)
    if rule != "kl":
        square = couple(square_of(r, code), rule=rule, weights=weights)
        assert_allclose(square, expected, rtol=0, atol=1e-6 if "printed" in repr(rule) else 1e-8)


@quick
@given(seed=seeds, k=st.integers(3, 6))
def test_the_slow_printed_solver_reaches_newtons_answer(seed, k):
    code = codes.one_vs_one(k)
    r = np.random.default_rng(seed).uniform(0.02, 0.98, size=(4, code.shape[1]))
    assert_allclose(
        couple(r, code=code, rule=PRINTED), couple(r, code=code, rule="ht"), rtol=0, atol=1e-8
    )
    expected = [naive.ht_printed(s, naive.equal_weights(k))[0] for s in square_of(r, code)]
    assert_allclose(couple(r, code=code, rule="ht"), expected, rtol=0, atol=1e-8)


@quick
@given(seed=seeds, k=st.integers(2, 9), kind=st.sampled_from(["random", "hard", "draws"]))
def test_vote_counts_wins_and_breaks_ties_for_the_lead(seed, k, kind):
    code = codes.one_vs_one(k)
    r = draw_r(kind, 6, code, np.random.default_rng(seed))
    p = couple(r, code=code, rule="vote")
    shares = np.array([naive.vote(s) for s in square_of(r, code)])
    assert_allclose(p, shares, rtol=0, atol=1e-8)
    lead = np.sort(p, axis=1)
    assert (lead[:, -1] > lead[:, -2]).all()
    winner = p.argmax(1)
    assert_allclose(shares[np.arange(6), winner], shares.max(1), rtol=0, atol=1e-12)


def test_vote_ties_depend_on_the_seed_and_are_fair():
    code = codes.one_vs_one(3)
    wins = np.random.default_rng(0).uniform(0.6, 0.9, size=(600, 3))
    r = np.where(naive.to_condensed(HT_MATRIX, code) > 0.5, wins, 1 - wins)  # a cycle
    winners = [couple(r, code=code, rule=Vote(random_state=s)).argmax(1) for s in (0, 0, 1)]
    assert_array_equal(winners[0], winners[1])
    assert (winners[0] != winners[2]).any()
    assert np.bincount(winners[0], minlength=3).min() > 140


# -- accuracy: any ternary code --------------------------------------------------------------


def kl_oracle(r, code, weights, rng, n_starts=3):
    """The best of several long runs, each made exact."""
    starts = [None, *rng.dirichlet(np.ones(len(code)), size=n_starts - 1)]
    found = [naive.kl_mm(r, code, weights, start, max_iter=1500)[0] for start in starts]
    best = min(found, key=lambda p: naive.kl_objective(p, r, code, weights))
    return best, naive.kl_polish(best, r, code, weights)


@pytest.mark.parametrize("name", ["one-vs-rest", "complete", "dense-random", "sparse-random"])
@pytest.mark.parametrize("k", [3, 5, 9])
@pytest.mark.parametrize("kind", ["random", "hard", "nearly consistent"])
def test_kl_is_optimal(name, k, kind):
    code, rng = build(name, k), np.random.default_rng(k)
    weights = rng.uniform(0.3, 3, code.shape[1])
    r = draw_r(kind, 2, code, rng)
    p = couple(r, code=code, rule="kl", weights=weights)
    for row, found in zip(naive.clip(r), p, strict=True):
        best, exact = kl_oracle(row, code, weights, rng)
        reached = naive.kl_objective(found, row, code, weights)
        assert reached <= naive.kl_objective(best, row, code, weights) + 1e-9
        assert naive.kl_kkt_violation(found, row, code, weights) < 1e-6
        if codes.is_dense(code):
            assert naive.kl_duality_gap(found, row, code, weights) < 1e-6
            assert naive.kl_kkt_violation(exact, row, code, weights) < 1e-12  # the oracle itself
            assert_allclose(found, exact.astype(float), rtol=0, atol=1e-8)


@pytest.mark.parametrize("k", [2, 3, 6, 26, 60])
def test_kl_on_one_vs_rest_solves_its_scalar_equation(k):
    code, rng = codes.one_vs_rest(k), np.random.default_rng(k)
    weights = rng.uniform(0.3, 3, k)
    r = np.concatenate([draw_r(kind, 2, code, rng) for kind in KINDS])
    expected = [naive.kl_one_vs_rest(row, weights) for row in naive.clip(r)]
    p = couple(r, code=code, rule="kl", weights=weights)
    assert_allclose(p, np.array(expected, dtype=float), rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", ["kl", "least-squares"])
@pytest.mark.parametrize("k", [3, 6, 20])
def test_ordinal_codes_are_isotonic_regression(rule, k):
    code, rng = codes.ordinal(k), np.random.default_rng(k)
    weights = rng.uniform(0.3, 3, k - 1)
    r = np.concatenate([draw_r(kind, 3, code, rng) for kind in KINDS])
    expected = np.array([naive.ordinal(row, weights) for row in naive.clip(r)])
    assert (expected == 0).any()  # the boundary of the simplex is reached
    p = couple(r, code=code, rule=rule, weights=weights)
    assert_allclose(p, expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("k", [6, 10])
@pytest.mark.parametrize("scale", [2, 8])
def test_kl_on_sparse_codes_is_not_beaten_by_the_mm_step(k, scale):
    # Confident and consistent: p spans many orders of magnitude, and the minimum is near 0.
    code, rng = build("sparse-random", k), np.random.default_rng(k)
    logits = rng.normal(scale=scale, size=(10, k))
    p = np.exp(logits - logits.max(1, keepdims=True))
    r = naive.clip(binary_of(p / p.sum(1, keepdims=True), code))
    found = couple(r, code=code, rule="kl")
    ones = np.ones(code.shape[1])
    for row, q in zip(r, found, strict=True):
        slow, _ = naive.kl_mm(row, code, ones, max_iter=1500)
        reached, bar = (naive.kl_objective(x, row, code, ones) for x in (q, slow))
        assert reached <= bar + 1e-9


@pytest.mark.parametrize("small", [1e-1, 1e-2, 1e-3, 1e-4])
def test_kl_recovers_p_of_many_magnitudes_from_a_small_sparse_code(small):
    code = np.array([[1, 0, 1, 0], [-1, -1, 0, 1], [0, 1, 0, -1], [-1, 0, -1, -1]], dtype=np.int8)
    p = np.array([[small**2, small, 1, small**2]])
    p /= p.sum()
    assert_allclose(couple(binary_of(p, code), code=code, rule="kl"), p, rtol=0, atol=1e-8)


def test_kl_with_more_starts_finds_better_minima():
    # Contradictory answers to a code with zeros: the objective has several minima.
    code = codes.sparse_random(10, n_columns=12, n_draws=50, random_state=1)
    r = naive.clip(draw_r("hard", 100, code, np.random.default_rng(5)))
    few, many = (couple(r, code=code, rule=KullbackLeibler(n_starts=s)) for s in (1, 20))
    ones = np.ones(12)
    gain = [
        naive.kl_objective(p, row, code, ones) - naive.kl_objective(q, row, code, ones)
        for p, q, row in zip(few, many, r, strict=True)
    ]
    assert min(gain) > -1e-9 and max(gain) > 1e-3


def test_kl_where_the_infimum_empties_a_column():
    # {0} v {1} and {0, 2} v {1, 3} agree only without classes 2 and 3, whose ratio column 1 sets.
    code = np.array([[1, 0, 1], [-1, 0, -1], [0, 1, 1], [0, -1, -1]], dtype=np.int8)
    r = np.array([[0.9, 0.1, 0.9]])
    result = couple(r, code=code, rule="kl", full_output=True)
    assert np.isfinite(result.p).all() and np.isfinite(result.incoherence).all()
    assert_allclose(result.p.sum(1), 1, rtol=0, atol=1e-12)
    assert_allclose(result.p[0], [0.9, 0.1, 0, 0], rtol=0, atol=0.02)


@pytest.mark.parametrize("name", [*FAMILIES])
@pytest.mark.parametrize("k", [3, 5, 7])
def test_least_squares_finds_the_right_support(name, k):
    code, rng = build(name, k), np.random.default_rng(k)
    weights = rng.uniform(0.3, 3, code.shape[1])
    r = np.concatenate([draw_r(kind, 1, code, rng) for kind in KINDS])
    p = couple(r, code=code, rule="least-squares", weights=weights)
    expected = [naive.least_squares_supports(row, code, weights) for row in naive.clip(r)]
    assert_allclose(p, np.array(expected, dtype=float), rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", ["one-vs-rest", "dense-random", "sparse-random"])
@pytest.mark.parametrize("k", [12, 26, 60])
def test_least_squares_with_many_classes(name, k):
    code, rng = build(name, k), np.random.default_rng(k)
    weights = rng.uniform(0.3, 3, code.shape[1])
    r = np.concatenate([draw_r(kind, 2, code, rng) for kind in KINDS])
    p = couple(r, code=code, rule="least-squares", weights=weights)
    expected = np.array([naive.least_squares_nnls(row, code, weights) for row in naive.clip(r)])
    assert (expected == 0).any()  # p >= 0 binds
    assert_allclose(p, expected, rtol=0, atol=1e-8)
    for row, found in zip(naive.clip(r), p, strict=True):
        assert naive.least_squares_kkt_violation(found, row, code, weights) < 1e-10


@pytest.mark.parametrize("small", [1e-3, 1e-4, 1e-5, 1e-6, 1e-7])
def test_least_squares_of_two_classes_that_meet_only_through_a_third(small):
    # Consistent: p_0 / p_2 = 1 / small and p_1 / p_2 = 1 / (3 small), nearly.
    code = np.array([[1, 0], [0, 1], [-1, -1]], dtype=np.int8)
    r = np.array([[1 - small, 1 - 3 * small]])
    odds = np.append(r / (1 - r), 1.0)
    p = couple(r, code=code, rule="least-squares")
    assert_allclose(p[0], odds / odds.sum(), rtol=0, atol=1e-8)


@pytest.mark.parametrize("k", [6, 8])
def test_least_squares_with_few_columns_and_hard_answers(k):
    # Undefeated classes that never meet: their ratio hangs on terms of the size of the bound.
    code = codes.sparse_random(k, n_columns=k + 2, n_draws=50, random_state=k)
    r = draw_r("hard", 20, code, np.random.default_rng(k))
    p = couple(r, code=code, rule="least-squares")
    ones = np.ones(k + 2)
    expected = [naive.least_squares_supports(row, code, ones) for row in naive.clip(r)]
    assert_allclose(p, np.array(expected, dtype=float), rtol=0, atol=1e-6)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1.01, -0.01])
@pytest.mark.parametrize("square", [False, True])
def test_the_default_rule_checks_many_rows_while_it_reads_them(value, square):
    r = np.random.default_rng(0).random((200, 6))
    few = couple(r[:9], "one-vs-one")  # checked before
    r[131, 4] = value
    if square:
        first, second = np.triu_indices(4, 1)
        full = np.zeros((200, 4, 4))
        full[:, first, second], full[:, second, first] = r, 1.0 - r
        r = full
    code = None if square else "one-vs-one"
    assert_array_equal(couple(r[:100], code)[:9], few)
    with pytest.raises(ValueError, match="row 131"):
        couple(r, code)


@pytest.mark.parametrize("name", ["dense-random", "sparse-random"])
def test_least_squares_of_a_row_does_not_depend_on_its_block(name):
    """Eight rows are coupled at a time, and difficult ones on their own."""
    rng = np.random.default_rng(0)
    code = codes.by_name(name, 7, random_state=0)
    r = rng.random((19, code.shape[1]))
    r[::5] = np.round(r[::5])
    whole = couple(r, code, "least-squares", full_output=True)
    alone = [couple(row[None], code, "least-squares", full_output=True) for row in r]
    assert_array_equal(whole.values, np.concatenate([one.values for one in alone]))
    assert_array_equal(whole.iterations, np.concatenate([one.iterations for one in alone]))


def test_least_squares_on_one_vs_rest_projects_on_the_simplex():
    rng = np.random.default_rng(0)
    r = naive.clip(rng.random((30, 8)))
    expected = [naive.least_squares_one_vs_rest(row) for row in r]
    p = couple(r, code="one-vs-rest", rule="least-squares")
    assert_allclose(p, expected, rtol=0, atol=1e-12)


@quick
@given(seed=seeds, k=st.integers(3, 40), spread=st.sampled_from([0, 3, 9]), kind=st.integers(0, 2))
def test_one_vs_rest_meets_its_optimality_conditions(seed, k, spread, kind):
    """The same for all classes: n (p - r) / (p (1 - p)), or n (r - p) for those with p > 0."""
    rng = np.random.default_rng(seed)
    hard = rng.choice([0.0, 1.0, 0.5], (9, k))
    r = naive.clip([rng.random((9, k)), hard, rng.dirichlet(np.ones(k), 9)][kind])
    weights = 10 ** rng.uniform(-spread, 0, k)
    code = codes.one_vs_rest(k)
    flip, order = rng.random(k) < 0.5, rng.permutation(k)
    shuffled = np.where(flip, -code, code)[:, order]
    values = np.where(flip, 1 - r, r)[:, order]
    for rule in ("kl", "least-squares"):
        n = np.maximum(weights / weights.max(), 1e-9)  # as couple takes them
        p, _, converged, _ = couple(values, shuffled, rule, weights[order], full_output=True)
        assert converged.all()
        pull = n * (r - p)
        if rule == "kl":
            multiplier = (pull.sum(axis=1) / (p * (1 - p)).sum(axis=1))[:, None]
            assert_allclose(pull, multiplier * p * (1 - p), atol=1e-10)
        else:
            multiplier = pull.max(axis=1, keepdims=True)
            assert (np.abs(pull - multiplier)[p > 1e-12] < 1e-10).all()


def test_one_vs_rest_with_many_classes_takes_no_matrix():
    """A row of k classes takes O(k): 2000 classes would take minutes otherwise."""
    r = np.random.default_rng(0).dirichlet(np.ones(2000), 20) * 1.5
    for rule in ("kl", "least-squares"):
        assert_allclose(couple(r, "one-vs-rest", rule).sum(axis=1), 1, atol=1e-12)


@pytest.mark.parametrize("name", FAMILIES)
def test_zadrozny_follows_the_printed_iteration(name):
    code, rng = build(name, 5), np.random.default_rng(5)
    weights = rng.uniform(0.3, 3, code.shape[1])
    r = rng.uniform(0.1, 0.9, size=(6, code.shape[1]))
    p = couple(r, code=code, rule=Zadrozny(tol=1e-13, max_iter=100_000), weights=weights)
    runs = [naive.zadrozny(row, code, weights, max_iter=20_000) for row in r]
    settled = np.array([converged for _, converged in runs])
    assert settled.sum() >= 3
    expected = np.array([q for q, _ in runs])[settled]
    assert_allclose(p[settled], expected, rtol=0, atol=1e-8)


@pytest.mark.parametrize("name", FAMILIES)
def test_noniterative_sums_both_sides(name):
    code = build(name, 6)
    r = draw_r("confident", 5, code, np.random.default_rng(0))
    expected = [naive.noniterative(row, code) for row in naive.clip(r)]
    assert_allclose(couple(r, code=code, rule="noniterative"), expected, rtol=0, atol=1e-13)


def test_normalize_divides_by_the_sum():
    r = draw_r("confident", 9, codes.one_vs_rest(5), np.random.default_rng(0))
    expected = [naive.normalize(row) for row in naive.clip(r)]
    assert_allclose(couple(r, code="one-vs-rest", rule="normalize"), expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize("rule", ["vote", "wlw1", "wlw2", "pkpd", "ht-noniterative"])
def test_rules_without_weights_ignore_them(rule):
    code = codes.one_vs_one(4)
    r = draw_r("random", 5, code, np.random.default_rng(0))
    weights = np.arange(1.0, 7.0)
    assert_array_equal(
        couple(r, code=code, rule=rule, weights=weights), couple(r, code=code, rule=rule)
    )


@pytest.mark.parametrize("rule", WEIGHTED)
def test_a_weight_of_two_is_a_repeated_column(rule):
    code, rng = codes.one_vs_one(4), np.random.default_rng(0)
    r, weights = draw_r("random", 3, code, rng), rng.integers(1, 4, 6)
    p = couple(r, code=code, rule=rule, weights=weights)
    assert np.abs(p - couple(r, code=code, rule=rule)).max() > 1e-3
    if rule not in ("ht", "logit"):  # these know each pair once
        repeated = couple(r.repeat(weights, axis=1), code=code.repeat(weights, axis=1), rule=rule)
        assert_allclose(repeated, p, rtol=0, atol=1e-6 if rule == "zadrozny" else 1e-8)


# -- rules that coincide ---------------------------------------------------------------------

COLLAPSES = [
    ("kl", "ht", 1e-8),
    ("least-squares", "wlw2", 1e-10),
    ("noniterative", "ht-noniterative", 1e-13),
    (PATIENT[repr("zadrozny")], PRINTED, 1e-8),
]


@pytest.mark.parametrize(("general", "pairwise", "atol"), COLLAPSES, ids=repr)
@pytest.mark.parametrize("k", [2, 3, 5, 8])
def test_general_rules_collapse_on_one_vs_one(general, pairwise, atol, k):
    code, rng = codes.one_vs_one(k), np.random.default_rng(k)
    r = rng.uniform(0.02, 0.98, size=(6, code.shape[1]))
    assert_allclose(
        couple(r, code=code, rule=general), couple(r, code=code, rule=pairwise), rtol=0, atol=atol
    )


@pytest.mark.parametrize("kind", KINDS)
def test_kl_is_ht_at_the_extremes_too(kind):
    code = codes.one_vs_one(6)
    r = draw_r(kind, 5, code, np.random.default_rng(0))
    assert_allclose(
        couple(r, code=code, rule="kl"), couple(r, code=code, rule="ht"), rtol=0, atol=1e-8
    )


def test_zadrozny_is_not_kl_on_one_vs_rest():
    r = np.random.default_rng(0).uniform(0.1, 0.9, size=(20, 5))
    printed, kl = (couple(r, code="one-vs-rest", rule=rule) for rule in ("zadrozny", "kl"))
    assert np.abs(printed - kl).max() > 0.05


@quick
@given(seed=seeds, k=st.integers(3, 12))
def test_hard_comparisons_are_classified_as_by_vote(seed, k):
    code = codes.one_vs_one(k)
    r = draw_r("hard", 10, code, np.random.default_rng(seed))
    wins = np.sort([naive.vote(s) for s in square_of(r, code)], axis=1)
    clear = wins[:, -1] > wins[:, -2] + 1e-9
    winner = couple(r, code=code, rule="vote").argmax(1)[clear]
    for rule in ("ht", "wlw2", "pkpd"):
        assert_array_equal(couple(r, code=code, rule=rule).argmax(1)[clear], winner)


@quick
@given(seed=seeds, k=st.integers(3, 12))
def test_ht_with_equal_weights_orders_classes_as_row_sums(seed, k):
    code = codes.one_vs_one(k)
    r = draw_r("random", 5, code, np.random.default_rng(seed))
    order = couple(r, code=code, rule="ht").argsort(1)
    assert_array_equal(order, couple(r, code=code, rule="ht-noniterative").argsort(1))


@pytest.mark.parametrize("k", [3, 5, 9])
def test_regular_tournaments_leave_ht_undecided(k):
    ahead = (np.arange(k)[None, :] - np.arange(k)[:, None]) % k
    cyclic = np.where(ahead == 0, 0.5, (ahead <= k // 2).astype(float))
    for rule in ("ht", "wlw1", "wlw2", "logit", "pkpd"):
        assert_allclose(couple(cyclic[None], rule=rule), 1 / k, rtol=0, atol=1e-9)


# -- what is reported ------------------------------------------------------------------------


class TestDiagnostics:
    @each
    def test_full_output(self, case):
        code = build(case.code, 4)
        r = draw_r("random", 7, code, np.random.default_rng(0))
        result = couple(r, code=code, rule=case.rule, full_output=True)
        p, iterations, converged, incoherence = result
        assert p is result.p and iterations is result.iterations
        assert converged is result.converged and incoherence is result.incoherence
        assert_array_equal(p, couple(r, code=code, rule=case.rule))
        assert result.iterations.shape == result.converged.shape == result.incoherence.shape == (7,)
        assert result.converged.dtype == bool and (result.iterations >= 1).all()

    @each
    def test_incoherence_is_the_weighted_rms_residual(self, case):
        code, rng = build(case.code, 5), np.random.default_rng(1)
        r, weights = rng.uniform(0.05, 0.95, (6, code.shape[1])), rng.uniform(1, 5, code.shape[1])
        result = couple(r, code=code, rule=case.rule, weights=weights, full_output=True)
        expected = [
            naive.incoherence(p, row, code, weights) for p, row in zip(result.p, r, strict=True)
        ]
        usable = np.isfinite(expected)  # a column may be left without mass
        assert usable.any()
        assert_allclose(result.incoherence[usable], np.array(expected)[usable], rtol=0, atol=1e-9)

    def test_consistent_rows_are_coherent(self):
        code = codes.one_vs_one(5)
        p = np.random.default_rng(0).dirichlet(np.ones(5), size=4)
        result = couple(binary_of(p, code), code=code, full_output=True)
        assert_allclose(result.incoherence, 0, atol=1e-12)

    @pytest.mark.parametrize(
        ("rule", "code"),
        [
            (HastieTibshirani(solver="printed", max_iter=2), OVO),
            (HastieTibshirani(solver="newton", max_iter=1), OVO),
            (Zadrozny(max_iter=2), "one-vs-rest"),
            (KullbackLeibler(max_iter=1), "one-vs-rest"),
        ],
        ids=repr,
    )
    def test_one_warning_however_many_rows_stop_early(self, rule, code):
        r = draw_r("random", 40, build(code, 6), np.random.default_rng(0))
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            result = couple(r, code=code, rule=rule, full_output=True)
        assert [w.category for w in caught] == [ConvergenceWarning]
        assert "40" in str(caught[0].message)
        assert not result.converged.any()
        assert (result.iterations <= 2).all()
        assert_allclose(result.p.sum(1), 1, rtol=0, atol=1e-12)

    @pytest.mark.parametrize("rule", ["ht", "kl", "wlw2", "least-squares"])
    def test_exact_rules_converge_without_a_warning(self, rule):
        code = codes.one_vs_one(6)
        r = np.concatenate([draw_r(kind, 9, code, np.random.default_rng(0)) for kind in KINDS])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert couple(r, code=code, rule=rule, full_output=True).converged.all()


# -- bad input -------------------------------------------------------------------------------


def with_value(value, row, column):
    r = np.full((5, 6), 0.4)
    r[row, column] = value
    return r


def square_with(value, row, i, j):
    square = square_of(np.full((5, 6), 0.4), codes.one_vs_one(4))
    square[row, i, j] = value
    return square


def bad(name, message, r=None, **arguments):
    """An input that must be refused; by default r fits a one-vs-one code of 4 classes."""
    r = np.full((5, 6), 0.5) if r is None else r
    return pytest.param({"r": r, **arguments}, message, id=name)


HALVES_2, DISJOINT = np.full((5, 2), 0.5), [[1, 0], [-1, 0], [0, 1], [0, -1]]
BAD = [
    bad("NaN", "(?i:nan).*row 3.*column 2", with_value(np.nan, 3, 2), code=OVO),
    bad("NaN square", r"(?i:nan).*\b3\b.*\b0\b.*\b2\b", square_with(np.nan, 3, 0, 2)),
    bad("infinite", "row 1.*column 0", with_value(np.inf, 1, 0), code=OVO),
    bad("above 1", r"1\.01 at row 4, column 5", with_value(1.01, 4, 5), code=OVO),
    bad("below 0", r"-0\.01 at row 4, column 5", with_value(-0.01, 4, 5), code=OVO),
    bad("not complementary", r"\b2\b.*\b0\b.*\b1\b", square_with(0.9, 2, 0, 1)),
    bad("other code for a square", "one-vs-one", square_with(0.4, 0, 0, 1), code="one-vs-rest"),
    bad("not square", r"\(5, 4, 3\)", np.full((5, 4, 3), 0.5)),
    bad("one class", r"\(5, 1, 1\)|class", np.full((5, 1, 1), 0.5)),
    bad("one dimension", r"\(6,\)|dimension", np.full(6, 0.5), code=OVO),
    bad("strings", "", [["a"] * 6], code=OVO),
    bad("columns of a code", "7.*6|6.*7", np.full((5, 7), 0.5), code=codes.one_vs_one(4)),
    bad("columns of a name", "7", np.full((5, 7), 0.5), code=OVO),
    bad("no code", "code"),
    bad("unknown rule", "platt.*wlw2", code=OVO, rule="platt"),
    bad("unknown code", "all-pairs.*one-vs-one", code="all-pairs"),
    bad("random code by name", "sparse-random", code="sparse-random", rule="kl"),
    bad("ht, one-vs-rest", "'ht'.*one-vs-one", code="one-vs-rest", rule="ht"),
    bad("normalize, one-vs-one", "'normalize'.*one-vs-rest", code=OVO, rule="normalize"),
    bad("column with one side", "column 1", HALVES_2, code=[[1, 1], [-1, 1], [0, 1]], rule="kl"),
    bad("unidentifiable", "does not determine", HALVES_2, code=DISJOINT, rule="kl"),
    bad("weights too short", "weights.*[56]", code=OVO, rule="ht", weights=np.ones(5)),
    bad("unused weights", "weights", code=OVO, rule="wlw2", weights=np.ones(5)),
    bad("negative weight", "weights.*-1", code=OVO, rule="ht", weights=[1, 1, -1, 1, 1, 1]),
    bad("zero weight", r"weights.*\b0\b", code=OVO, rule="ht", weights=[1, 1, 0, 1, 1, 1]),
    bad("NaN weight", "weights.*(?i:nan)", code=OVO, rule="ht", weights=[np.nan] * 6),
    bad("infinite weight", "weights.*inf", code=OVO, rule="ht", weights=[np.inf] * 6),
    bad("solver", "solver.*newton.*bfgs", code=OVO, rule=HastieTibshirani(solver="bfgs")),
    bad("tree", "tree.*chain.*ring", code=OVO, rule=RefregierVallet(tree="ring")),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_bad_input_is_named(arguments, message):
    with pytest.raises(ValueError, match=rf"(?s:{message})"):
        couple(**arguments)


def test_slightly_uncomplementary_pairs_are_rounding():
    code = codes.one_vs_one(5)
    square = square_of(draw_r("random", 3, code, np.random.default_rng(0)), code)
    rounded = square.astype(np.float32)
    assert_allclose(couple(rounded), couple(square), rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", ["pairs", "columns"])
def test_the_workspace_does_not_grow_with_the_rows(shape):
    def beyond_the_output(n):
        r = np.full((n, 45), 0.5) if shape == "columns" else np.full((n, 10, 10), 0.5)
        code = "one-vs-one" if shape == "columns" else None
        couple(r[:10], code)
        tracemalloc.start()
        p = couple(r, code)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak - p.nbytes

    few, many = beyond_the_output(10_000), beyond_the_output(40_000)
    assert many < 3e6  # the larger input is 14 or 32 MB
    assert many - few < 0.5e6


def test_slow_rules_take_few_rows_at_a_time(monkeypatch):
    """So that an interrupt is heard in between: a row may take tens of milliseconds."""
    taken = []
    monkeypatch.setattr(base, "_for_each", lambda task, starts, n_jobs: taken.append(starts.step))
    r = np.full((1000, 3), 0.5)
    for rule in ("zadrozny", "kl"):
        couple(r, code=codes.one_vs_rest(3), rule=rule)
    assert taken[0] == 32 < taken[1]
