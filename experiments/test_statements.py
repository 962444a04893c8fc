"""Formulas and theorems of the papers, checked directly. The ledgers refer to these tests."""

from __future__ import annotations

from heapq import nsmallest
from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import check_grad, linprog, minimize
from scipy.special import expit, log_softmax, softmax
from sklearn.datasets import load_iris
from sklearn.metrics.pairwise import pairwise_kernels

from experiments.hastie1998.statements import sweeps
from experiments.liu2005.machines import SETTINGS
from experiments.simulated import pairwise_probabilities
from experiments.wu2003.figure1 import NOISE, TRUNCATION, class_probabilities
from experiments.wu2003.formulas import FORMULAS
from experiments.zadrozny2001.divergence import distance, noniterative, printed_step
from manyclass import codes, couple
from manyclass.banks import ObjectiveTerms
from manyclass.combiners.coupling.general import Zadrozny
from manyclass.combiners.coupling.pairwise import RefregierVallet
from manyclass.combiners.decoding import LossBased
from manyclass.combiners.reliability import DynamicReliability, Neighbours
from manyclass.combiners.softmax import SimplifiedSoftmax, Softmax


def random_pairs(n, k, seed):
    r = np.random.default_rng(seed).uniform(0.02, 0.98, (n, k, k))
    return np.triu(r, 1) + np.tril(1 - r.transpose(0, 2, 1), -1) + np.eye(k) / 2


def columns(r):
    return r[:, *np.triu_indices(r.shape[1], 1)]


# -- Hastie & Tibshirani ---------------------------------------------------------------


def test_max_wins_is_the_bayes_rule_for_known_probabilities():
    p = np.random.default_rng(0).dirichlet(np.ones(6), 200)
    wins = (p[:, :, None] > p[:, None, :]).sum(axis=2)
    np.testing.assert_array_equal(wins.argmax(axis=1), p.argmax(axis=1))


def test_matrix_1_is_not_compatible_with_any_p():
    r = np.array([[[0.5, 0.9, 0.4], [0.1, 0.5, 0.7], [0.6, 0.3, 0.5]]])
    assert couple(r, rule="ht", full_output=True).incoherence[0] > 0.2


def test_the_score_equations_hold_at_the_minimum():
    r, k = random_pairs(30, 5, 1), 5
    weights = np.random.default_rng(2).integers(10, 100, 10).astype(float)
    p = couple(columns(r), "one-vs-one", "ht", weights)
    n = np.zeros((k, k))
    n[np.triu_indices(k, 1)] = weights
    n = n + n.T
    mu = p[:, :, None] / (p[:, :, None] + p[:, None, :])
    np.testing.assert_allclose((n * mu).sum(axis=2), (n * r).sum(axis=2), atol=1e-5)


def test_the_distance_is_the_log_likelihood_with_its_sign_changed():
    r, weights = random_pairs(1, 4, 24)[0], np.array([10.0, 20, 30, 40, 50, 60])
    row, code = columns(r[None])[0], codes.one_vs_one(4)

    def log_likelihood(p):
        mu = columns((p[:, None] / (p[:, None] + p))[None])[0]
        return (weights * (row * np.log(mu) + (1 - row) * np.log(1 - mu))).sum()

    ps = np.random.default_rng(25).dirichlet(np.ones(4), 10)
    sums = [distance(row[None], p[None], code, weights)[0] + log_likelihood(p) for p in ps]
    np.testing.assert_allclose(sums, sums[0])  # a constant of r alone


def test_an_update_goes_only_part_of_the_way():
    for r in random_pairs(50, 5, 26):
        p, i = np.full(5, 0.2), 2

        def excess(p, r=r, i=i):
            return (p[i] / (p[i] + np.delete(p, i))).sum() - np.delete(r[i], i).sum()

        before = excess(p)
        p[i] *= np.delete(r[i], i).sum() / (before + np.delete(r[i], i).sum())
        after = excess(p)
        assert np.sign(after) == np.sign(before) and abs(after) < abs(before)


def test_the_algorithm_lowers_the_distance_at_every_sweep_and_converges():
    code = codes.one_vs_one(5)
    for r in random_pairs(20, 5, 3):
        row = columns(r[None])
        track = [distance(row, p[None], code, np.ones(10))[0] for p in sweeps(r, 400)]
        assert (np.diff(track) <= 1e-12).all()
        np.testing.assert_allclose(
            list(sweeps(r, 2000))[-1], couple(r[None], rule="ht")[0], atol=1e-6
        )


def second_differences(rule):
    """Second differences of log-ratios along a line on which the pairwise logits are linear."""
    intercepts, slopes = np.array([0.5, -1.0, 0.8]), np.array([1.0, 2.0, -0.5])
    r = expit(intercepts + np.linspace(-2, 2, 9)[:, None] * slopes)
    logs = np.log(couple(r, "one-vs-one", rule))
    return np.abs(np.diff(logs - logs[:, :1], n=2, axis=0)).max()


def test_coupled_linear_pairs_have_boundaries_that_are_not_linear():
    assert second_differences("ht") > 1e-3


def test_on_the_logit_scale_the_boundaries_are_linear():
    assert second_differences("logit") < 1e-10


def test_pairs_of_any_class_densities_give_the_bayes_rule():
    densities = np.random.default_rng(19).gamma(1.0, size=(100, 5))
    r = densities[:, :, None] / (densities[:, :, None] + densities[:, None, :])
    p = densities / densities.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(couple(r, rule="ht"), p, atol=1e-6)


# -- Wu, Lin & Weng --------------------------------------------------------------------


def objectives(r):
    k, off = len(r), ~np.eye(len(r), dtype=bool)
    win = (r > r.T) * 1.0

    def gaps(a, p):
        return (a * p[None, :] - a.T * p[:, None]) * off

    return {
        "(13)": lambda p: (((r / k - p[:, None] / 2) * off).sum(axis=1) ** 2).sum(),
        "(14)": lambda p: (gaps(r, p).sum(axis=1) ** 2).sum(),
        "(15)": lambda p: (gaps(r, p) ** 2).sum(),
        "(16)": lambda p: (gaps(win, p) ** 2).sum(),
    }


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("k", [3, 5])
def test_formulas_13_to_16_are_minimised(name, k):
    for r in random_pairs(10, k, 10 * k):
        p, objective = FORMULAS[name](r[None])[0], objectives(r)[name]
        assert p.min() >= 0 and abs(p.sum() - 1) < 1e-12
        simplex = {"type": "eq", "fun": lambda q: q.sum() - 1}
        least = minimize(
            objective, np.full(k, 1 / k), bounds=[(0, 1)] * k, constraints=simplex, tol=1e-12
        )
        assert objective(p) <= least.fun + 1e-8


def test_formula_13_has_the_order_of_the_iterative_estimates():  # Theorem 1 of [3]
    r = random_pairs(100, 6, 5)
    np.testing.assert_array_equal(
        np.argsort(FORMULAS["(13)"](r), axis=1), np.argsort(couple(r, rule="ht"), axis=1)
    )


def test_with_weights_the_order_of_the_row_sums_is_another():  # (2) has weights
    r = random_pairs(100, 6, 27)
    weights = np.random.default_rng(28).uniform(10, 100, 15)
    weighted = couple(columns(r), "one-vs-one", "ht", weights)
    assert (np.argsort(FORMULAS["(13)"](r), axis=1) != np.argsort(weighted, axis=1)).any()


def test_the_minimum_of_the_distance_is_unique():
    r, code, ones = random_pairs(1, 4, 29), codes.one_vs_one(4), np.ones(6)
    row = columns(r)
    starts = np.random.default_rng(30).normal(size=(10, 4))
    found = [minimize(lambda s: distance(row, softmax(s)[None], code, ones)[0], s) for s in starts]
    np.testing.assert_allclose(
        [softmax(f.x) for f in found], couple(r, rule="ht")[[0] * 10], atol=1e-4
    )


def test_formula_3_is_identity_4_with_sums_of_two_over_k():
    r, k = random_pairs(1, 5, 31)[0], 5
    replaced = [sum(2 / k / (k - 1) * r[i, j] for j in range(k) if j != i) for i in range(k)]
    np.testing.assert_allclose(FORMULAS["(13)"](r[None])[0], replaced)


def test_identity_4():
    p = np.random.default_rng(6).dirichlet(np.ones(5))
    sums = p[:, None] + p
    terms = sums / 4 * (p[:, None] / sums)
    np.testing.assert_allclose((terms - np.diag(np.diag(terms))).sum(axis=1), p)


def markov_chain(r):
    k = len(r)
    Q = r / (k - 1)
    np.fill_diagonal(Q, (r.sum(axis=1) - np.diag(r)) / (k - 1))
    return Q


def test_theorem_1_a_unique_positive_stationary_vector():
    for r in random_pairs(50, 6, 7):
        Q, p = markov_chain(r), couple(r[None], rule="wlw1")[0]
        np.testing.assert_allclose(Q.sum(axis=0), 1.0)  # the columns: the text says the rows
        np.testing.assert_allclose(Q @ p, p, atol=1e-12)
        assert (p > 0).all() and (p < 1).all()
        assert np.linalg.matrix_rank(Q - np.eye(6)) == 5


def test_any_one_of_the_equations_may_be_removed():
    r = random_pairs(1, 5, 20)[0]
    equations = markov_chain(r) - np.eye(5)
    for removed in range(5):
        system = np.vstack([np.delete(equations, removed, axis=0), np.ones(5)])
        p = np.linalg.solve(system, [0, 0, 0, 0, 1])
        np.testing.assert_allclose(p, couple(r[None], rule="wlw1")[0], atol=1e-10)


def test_formula_13_is_14_with_all_p_alike():
    r, k = random_pairs(1, 5, 21)[0], 5
    p = np.random.default_rng(22).dirichlet(np.ones(k))
    replaced = sum(sum(r[i, j] / k - 0.5 * p[i] for j in range(k) if j != i) ** 2 for i in range(k))
    assert objectives(r)["(13)"](p) == pytest.approx(replaced)


def test_the_choice_of_k_minus_1_equations_matters():
    r = random_pairs(20, 5, 23)
    chain, star = (couple(r, rule=RefregierVallet(tree=tree)) for tree in ("chain", "star"))
    assert np.abs(chain - star).max(axis=1).min() > 1e-3


def test_repeated_multiplication_finds_it():
    r = random_pairs(1, 5, 8)[0]
    p = np.linalg.matrix_power(markov_chain(r), 500) @ np.full(5, 0.2)
    np.testing.assert_allclose(p, couple(r[None], rule="wlw1")[0], atol=1e-10)


def quadratic(r):
    Q = -r.T * r
    np.fill_diagonal(Q, (r.T**2).sum(axis=1) - np.diag(r) ** 2)
    return Q


def test_theorems_2_and_3_the_quadratic_needs_no_bounds_and_is_positive_definite():
    for r in random_pairs(50, 6, 9):
        Q = quadratic(r)
        assert np.linalg.eigvalsh(Q).min() > 0
        system = np.block([[Q, np.ones((6, 1))], [np.ones((1, 6)), np.zeros((1, 1))]])
        p = np.linalg.solve(system, np.r_[np.zeros(6), 1.0])[:6]  # eq. (10)
        assert (p >= 0).all()
        np.testing.assert_allclose(p, couple(r[None], rule="wlw2")[0], atol=1e-9)


def condition_of_theorem_3(r, printed):
    """Whether for every i there are s and j with r_si r_sj / r_is != r_ji r_js / r_ij.

    That is printed; with r_js and r_sj exchanged it says that no p has all these ratios.
    """

    def unequal(i, s, j):
        a, b = (r[s, j], r[j, s]) if printed else (r[j, s], r[s, j])
        return abs(r[s, i] * a / r[i, s] - r[j, i] * b / r[i, j]) > 1e-9

    k = len(r)
    return all(
        any(unequal(i, s, j) for s, j in permutations(set(range(k)) - {i}, 2)) for i in range(k)
    )


def test_the_condition_of_theorem_3_has_two_indices_exchanged():
    for r in random_pairs(20, 4, 32):
        assert condition_of_theorem_3(r, printed=False)
    p = np.random.default_rng(33).dirichlet(np.ones(4))
    r = p[:, None] / (p[:, None] + p)
    Q = quadratic(r)
    assert abs(np.linalg.eigvalsh(Q)[0]) < 1e-12  # not positive definite
    assert condition_of_theorem_3(r, printed=True)
    assert not condition_of_theorem_3(r, printed=False)
    system = np.block([[Q, np.ones((4, 1))], [np.ones((1, 4)), np.zeros((1, 1))]])
    np.testing.assert_allclose(
        np.linalg.solve(system, [0, 0, 0, 0, 1])[:4], p
    )  # (10) still has one


def test_formula_16_has_the_winner_of_the_votes():
    r = random_pairs(300, 5, 34)
    wins = (r > r.transpose(0, 2, 1)).sum(axis=2)
    p = FORMULAS["(16)"](r)
    best = wins == wins.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(p >= p.max(axis=1, keepdims=True) - 1e-12, best)
    unbeaten = wins.max(axis=1) == 4
    np.testing.assert_allclose(p[unbeaten].max(axis=1), 1.0)  # the footnote


def test_ties_explain_the_losses_of_votes_in_part():  # section 6.1
    p = class_probabilities("balanced", 10)
    r = pairwise_probabilities(p, 4000, noise=NOISE, eps=TRUNCATION, random_state=35)
    wins = (r > r.transpose(0, 2, 1)).sum(axis=2)
    best = wins == wins.max(axis=1, keepdims=True)
    tied, right = best.sum(axis=1) > 1, best[:, 0] / best.sum(axis=1)  # a draw, at ties
    gaps = (couple(r, rule="wlw2").argmax(axis=1) == 0) - right
    assert tied.mean() > 0.1
    assert 0.01 < gaps[~tied].mean() < gaps.mean()


def test_theorem_4_algorithm_1_reaches_the_minimum():
    r = random_pairs(1, 6, 10)[0]
    Q, p = quadratic(r), np.full(6, 1 / 6)
    for step in range(6 * 200):
        t = step % 6
        p[t] = (-(Q[t] @ p - Q[t, t] * p[t]) + p @ Q @ p) / Q[t, t]
        p /= p.sum()
    np.testing.assert_allclose(p, couple(r[None], rule="wlw2")[0], atol=1e-8)


# -- Zadrozny --------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["one-vs-one", "one-vs-rest", "sparse-random", "dense-random"])
def test_the_printed_step_is_that_of_the_library(name):
    rng = np.random.default_rng(11)
    code = codes.by_name(name, 5, random_state=0)
    r, weights = rng.uniform(0.1, 0.9, (20, code.shape[1])), rng.uniform(1, 5, code.shape[1])
    p = noniterative(r, code)
    for _ in range(3):
        p = printed_step(r, p, code, weights)
    rule = Zadrozny(tol=1e-300, max_iter=3)
    np.testing.assert_allclose(p, rule.combine(r, code, weights).values, rtol=1e-10)


def test_on_all_pairs_it_is_the_method_of_hastie_and_tibshirani():
    r = columns(random_pairs(20, 4, 12))
    p = couple(r, "one-vs-one", Zadrozny(tol=1e-13, max_iter=100_000))
    np.testing.assert_allclose(p, couple(r, "one-vs-one", "ht"), atol=1e-8)


def test_the_relation_in_the_proof_of_theorem_1_has_a_minus():
    code = codes.one_vs_one(6)
    plus, minus = (code > 0).sum(axis=1), (code < 0).sum(axis=1)
    np.testing.assert_array_equal((minus - plus) / 2, minus - 5 / 2)  # printed: + (k - 1)/2


def test_the_condition_of_section_4_is_not_sufficient():
    code = np.array([[1, -1, 0, 0], [-1, 1, 1, -1], [0, 0, -1, 1]], dtype=np.int8)
    plus, minus = (code > 0).sum(axis=1), (code < 0).sum(axis=1)
    assert (minus - plus == 0 * minus).all()  # a linear function of the number of -1
    r = np.array([[0.65, 0.35, 0.55, 0.45]])
    decoded = LossBased("linear").combine(r - 0.5, code).values
    assert decoded.argmax() == 0 and noniterative(r, code).argmax() == 1


def test_the_ranking_by_the_linear_loss_is_that_of_the_estimates():  # Theorem 1
    r, code = columns(random_pairs(200, 5, 36)), codes.one_vs_one(5)
    rankings = [
        LossBased("linear").combine(r - 0.5, code).values,  # margin scores r_b - 1/2
        noniterative(r, code),
        couple(r, code, "ht"),
    ]
    first, *others = (np.argsort(values, axis=1) for values in rankings)
    for other in others:
        np.testing.assert_array_equal(first, other)


def test_one_column_settles_two_classes():
    """k - 1 free parameters and l = 1 constraint, not l + 1: every r_b has an exact solution."""
    r = np.random.default_rng(37).uniform(size=(20, 1))
    p = couple(r, np.array([[1], [-1]], dtype=np.int8), "kl")
    np.testing.assert_allclose(p, np.hstack([r, 1 - r]))


@pytest.mark.filterwarnings("ignore:rule 'zadrozny' did not converge")
def test_one_against_all_has_the_label_of_the_largest_estimate():
    rng, code = np.random.default_rng(13), codes.one_vs_rest(6)
    r = rng.uniform(0.01, 0.99, (500, 6))
    p = couple(r, code, Zadrozny(max_iter=2000))
    np.testing.assert_array_equal(p.argmax(axis=1), r.argmax(axis=1))
    np.testing.assert_array_equal(couple(r, code, "kl").argmax(axis=1), r.argmax(axis=1))


# -- Duan et al. -----------------------------------------------------------------------


def own_scores(scores, code):
    """Return what each class reads, (n, k, l): r_k, or r_kt with r_tk = -r_kt, and 1."""
    signed = scores[:, None, :] * code[None]
    if (np.abs(code) == 1).all():  # one-versus-all: a class reads its own machine
        signed = signed * np.eye(len(code))
    return np.concatenate([signed, np.ones((*signed.shape[:2], 1))], axis=2)


def weights_and_logits(s, scores, code):
    own = own_scores(scores, code)
    used = (own != 0).any(axis=0)
    w = np.zeros(used.shape)
    w[used] = np.exp(s)  # substitute variables (4) and (10)
    return own, used, w, (own * w).sum(axis=2)


def softmax_objective(s, scores, y, code, C):
    """Return (2) and (8)."""
    _, _, w, logits = weights_and_logits(s, scores, code)
    return 0.5 * (w**2).sum() - C * log_softmax(logits, axis=1)[np.arange(len(y)), y].sum()


def softmax_gradient(s, scores, y, code, C):
    """Return (5) and (6), or (11) and (12)."""
    own, used, w, logits = weights_and_logits(s, scores, code)
    off = softmax(logits, axis=1) - np.eye(len(code))[y]
    return ((w + C * (off[:, :, None] * own).sum(axis=0)) * w)[used]


@pytest.mark.parametrize("name", ["one-vs-rest", "one-vs-one"])
def test_gradients_in_the_substitute_variables(name):  # (5), (6), (11), (12)
    rng, code = np.random.default_rng(14), codes.by_name(name, 4)
    scores, y = rng.normal(size=(40, code.shape[1])), rng.integers(0, 4, 40)
    n = {"one-vs-rest": 2 * 4, "one-vs-one": 4 * 4}[name]  # parameters: section 3.2
    arguments = scores, y, code, 2.0
    assert check_grad(softmax_objective, softmax_gradient, rng.normal(size=n), *arguments) < 1e-4


@pytest.mark.parametrize("name", ["one-vs-rest", "one-vs-one"])
def test_the_unconstrained_problem_has_the_optimum_of_the_library(name):  # (2), (4), (8), (10)
    rng, code = np.random.default_rng(18), codes.by_name(name, 3)
    y = np.arange(60) % 3
    scores = code[y] + rng.normal(size=(60, code.shape[1]))
    arguments = scores, y, code, 0.5
    n = {"one-vs-rest": 2 * 3, "one-vs-one": 3 * 3}[name]
    found = minimize(softmax_objective, np.zeros(n), arguments, "BFGS", softmax_gradient)
    fitted = Softmax(C=0.5).fit(scores, y, code)
    squares = (fitted.weights_**2).sum() + (fitted.biases_**2).sum()
    losses = np.log(fitted.combine(scores, code).values[np.arange(60), y])
    assert 0.5 * squares - 0.5 * losses.sum() == pytest.approx(found.fun, rel=1e-5)


def test_the_simplified_soft_max_has_no_parameter_to_choose():
    scores, y, code = np.random.default_rng(3).normal(size=(60, 3)), np.arange(60) % 3, np.eye(3)
    code = (2 * code - 1).astype(np.int8)
    assert len(Softmax().fit(scores, y, code).search_["C"]) == 31
    assert not hasattr(SimplifiedSoftmax().fit(scores, y, code), "search_")


def test_two_classes_of_soft_max_are_a_sigmoid():  # (14) and (15)
    rng = np.random.default_rng(15)
    f, w = rng.normal(size=50), rng.uniform(0.1, 2, 4)
    P = softmax(np.column_stack([w[0] * f + w[2], -w[1] * f + w[3]]), axis=1)[:, 0]
    np.testing.assert_allclose(P, 1 / (1 + np.exp(-(w[0] + w[1]) * f + w[3] - w[2])))


def test_a_constant_added_to_all_offsets_changes_nothing():
    scores = np.random.default_rng(16).normal(size=(20, 4))
    np.testing.assert_allclose(softmax(scores + 3.0, axis=1), softmax(scores, axis=1))


# -- Liu & Zheng -----------------------------------------------------------------------


def test_equal_reliabilities_are_winner_takes_all():  # (15)
    f = np.random.default_rng(17).normal(size=(200, 5))
    soft = np.sign(f) * (1 - np.exp(-np.abs(f)))  # (13)
    np.testing.assert_array_equal((0.7 * soft).argmax(axis=1), f.argmax(axis=1))
    assert (np.abs(soft) < 1).all()


def test_the_margin_is_two_over_the_norm():
    w, b = np.array([3.0, 4.0]), 1.0
    on = {side: (side - b) * w / (w @ w) for side in (-1, 1)}
    assert all(abs(w @ x + b - side) < 1e-12 for side, x in on.items())
    assert np.linalg.norm(on[1] - on[-1]) == pytest.approx(2 / np.linalg.norm(w))


def test_the_printed_generalization_error_is_an_accuracy():
    y = np.array([1, 1, -1, -1])
    f = np.array([2.0, 0.5, -1.0, 0.1])  # one error
    assert np.mean(y == np.sign(f)) == 0.75  # R = E[Y = sign(f(X))], as printed
    assert np.mean(y != np.sign(f)) == 0.25


def test_the_kernels_are_those_of_the_settings():
    X = np.random.default_rng(38).normal(size=(6, 4))
    for setting in SETTINGS.values():
        kernel = setting.machine["kernel"]
        given = {k: v for k, v in setting.machine.items() if k in ("gamma", "coef0", "degree")}
        if kernel == "rbf":  # gamma = 1 / sigma^2
            printed = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) * 0.3)
            given["gamma"] = 0.3
        elif kernel == "poly":
            printed = (X @ X.T + 1) ** given["degree"]
        else:
            printed = X @ X.T
        name = {"poly": "polynomial"}.get(kernel, kernel)
        np.testing.assert_allclose(pairwise_kernels(X, metric=name, **given), printed)


def test_setosa_can_be_separated_and_the_others_cannot():
    X, y = load_iris(return_X_y=True)
    signed = np.column_stack([X, np.ones(len(X))])

    def separable(rows, positive):
        sides = np.where(positive, 1, -1)[:, None]
        return linprog(
            np.zeros(5), -sides * signed[rows], -np.ones(len(sides)), bounds=(None, None)
        ).success

    everything = np.full(len(y), True)
    assert separable(everything, y == 0)
    others = y > 0
    assert not separable(others, y[others] == 1)


def test_one_pass_over_the_training_samples_finds_the_neighbours():  # DRM is O(N)
    rng = np.random.default_rng(39)
    X, x, seen = rng.normal(size=(500, 3)), rng.normal(size=3), []

    def squared(i):
        seen.append(i)
        return ((X[i] - x) ** 2).sum()

    nearest = nsmallest(7, range(500), key=squared)
    assert seen == list(range(500))
    ((_, found),) = Neighbours(X, np.ones(500), 7).around(x[None], 7)
    assert set(nearest) == set(found.samples[0][found.shares(7)[0][0] > 0])


def test_no_neighbour_on_the_side_of_x_leaves_the_measure_undefined():  # (12), k_x = 0
    X, y = np.array([[0.0], [1.0], [10.0]]), np.array([0, 0, 1])
    code = np.array([[1], [-1]], dtype=np.int8)
    terms = ObjectiveTerms(np.array([0.1]), np.array([[2.0], [2.0], [-2.0]]))
    measure = DynamicReliability(2).fit(X, y, code, terms)
    # Both neighbours of 0.5 are on the positive side, the score puts 0.5 on the negative one.
    found = measure.of(np.array([[0.5]]), np.array([[-1.0]]))
    np.testing.assert_allclose(found, [measure.static_])  # the library takes the static measure
