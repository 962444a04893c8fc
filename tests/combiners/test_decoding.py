from __future__ import annotations

import re
import tracemalloc
import warnings

import naive_decoding as naive
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import chisquare
from sklearn.base import clone
from sklearn.utils.multiclass import _ovr_decision_function

from manyclass import codes
from manyclass.combiners.base import names, resolve
from manyclass.combiners.decoding import Hamming, LossBased, LossWeighted, MaxWins, WinnerTakesAll
from manyclass.combiners.ties import as_seed, break_ties

LOSSES = ["linear", "exponential", "logistic", "hinge", "squared", "binomial-deviance"]
LOSS_DECODERS = [rule(loss) for rule in (LossBased, LossWeighted) for loss in LOSSES]
ANY_CODE = [Hamming(), *LOSS_DECODERS]
ALL = [MaxWins(), WinnerTakesAll(), *ANY_CODE]
PAIRS_OF_3 = codes.one_vs_one(3)
SINGLE = np.array([[1], [-1]], dtype=np.int8)

quick = settings(deadline=None, max_examples=15)
each = pytest.mark.parametrize("decoder", ALL, ids=repr)
each_for_any_code = pytest.mark.parametrize("decoder", ANY_CODE, ids=repr)


# ---------------------------------------------------------------------------
# Codes and margins
# ---------------------------------------------------------------------------


@st.composite
def shuffled(draw, code):
    """The same binary problems in another order, some with sides swapped."""
    order = draw(st.permutations(range(code.shape[1])))
    signs = draw(hnp.arrays(np.int8, code.shape[1], elements=st.sampled_from([-1, 1])))
    return code[:, order] * signs


@st.composite
def any_codes(draw):
    k = draw(st.integers(2, 6))
    columns = [draw(st.sampled_from([codes.one_vs_one, codes.one_vs_rest, codes.ordinal]))(k)]
    for _ in range(draw(st.integers(0, 4))):
        column = draw(hnp.arrays(np.int8, k, elements=st.sampled_from([-1, 0, 1])))
        plus, minus = draw(st.permutations(range(k)))[:2]
        column[plus], column[minus] = 1, -1
        columns.append(column[:, None])
    return codes.check_code(draw(shuffled(np.hstack(columns))))


def codes_for(decoder):
    ks = st.integers(2, 6)
    return {
        "any": any_codes(),
        "one-vs-one": ks.map(codes.one_vs_one).flatmap(shuffled),
        "one-vs-rest": st.one_of(ks.map(codes.one_vs_rest), st.just(SINGLE)),
    }[decoder.accepts]


EXTREMES = [0.0, -0.0, 1.0, -1.0, 1e-300, -1e-300, 40.0, -800.0, 1e300, -1e300, np.inf, -np.inf]
MARGINS = st.one_of(st.floats(-5, 5), st.sampled_from(EXTREMES))


@st.composite
def problems(draw, decoder, elements=MARGINS):
    code = draw(codes_for(decoder))
    shape = (draw(st.integers(1, 5)), code.shape[1])
    return draw(hnp.arrays(np.float64, shape, elements=elements)), code


def some_code(decoder, k=7):
    by_family = {
        "any": lambda: codes.sparse_random(k, n_draws=10, random_state=0),
        "one-vs-one": lambda: codes.one_vs_one(k),
        "one-vs-rest": lambda: codes.one_vs_rest(k),
    }
    return by_family[decoder.accepts]()


def labels(decoder, values, code):
    return decoder.combine(values, code).values.argmax(axis=1)


def relabelled(values, code, rng):
    """Permute classes and columns and swap sides; class c becomes place[c]."""
    place = rng.permutation(len(code))
    order = rng.permutation(code.shape[1])
    signs = rng.choice([-1, 1], size=code.shape[1])
    new = np.empty_like(code)
    new[place] = code[:, order] * signs
    return values[:, order] * signs, new, place


# ---------------------------------------------------------------------------
# Against the oracles
# ---------------------------------------------------------------------------


def oracle(decoder, f, code):
    """Return the naive scores of a row, and the error allowed to each."""
    if isinstance(decoder, LossBased):
        weighted = isinstance(decoder, LossWeighted)
        scores, sizes = naive.loss_scores(f, code, decoder.loss, weighted)
        return np.array(scores), 1e-12 * np.array(sizes)
    if isinstance(decoder, MaxWins):
        scores, errors = naive.max_wins(f, code)
        return np.array(scores), np.array(errors)
    rule = getattr(naive, decoder.key.replace("-", "_"))
    return np.array(rule(f, code)), np.zeros(len(code))


@each
@settings(deadline=None, max_examples=20)
@given(data=st.data())
def test_scores_and_labels_equal_the_oracles(decoder, data):
    values, code = data.draw(problems(decoder))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = decoder.combine(values, code)
    assert answer.values.shape == (len(values), len(code))
    assert np.isfinite(answer.values).all()
    assert (answer.iterations == 1).all() and answer.converged.all()
    for f, scores in zip(values, answer.values, strict=True):
        expected, error = oracle(decoder, f, code)
        best = expected.argmax()
        winner = scores.argmax()
        assert expected[best] - expected[winner] <= error[best] + error[winner]
        assert (scores == scores.max()).sum() == 1
        raised = np.zeros(len(code))
        raised[winner] = 1.001e-9 * max(1, abs(expected[winner]))
        # A tied loser may have been set equal to the best, within the rounding of both.
        assert (np.abs(scores - expected) <= raised + error + error[best]).all()


@pytest.mark.parametrize("decoder", [MaxWins(3), WinnerTakesAll(3), Hamming(3)], ids=repr)
@quick
@given(data=st.data())
def test_ties_are_broken_as_by_the_oracle(decoder, data):
    values, code = data.draw(problems(decoder, elements=st.sampled_from([-2.0, 0.0, 1.0, np.inf])))
    for f, label in zip(values, labels(decoder, values, code), strict=True):
        scores, errors = oracle(decoder, f, code)
        tied = scores + errors >= (scores - errors).max()
        if isinstance(decoder, MaxWins):  # votes have no errors
            votes = np.array(naive.hamming(f, code))
            tied &= votes == votes.max()
        assert label == naive.tie_winner(f, code, np.flatnonzero(tied).tolist(), seed=3)


@pytest.mark.parametrize("rule", [LossBased, LossWeighted])
def test_a_function_serves_as_loss(rule):
    values = np.random.default_rng(0).normal(size=(50, 10))
    code = codes.one_vs_one(5)
    named = rule("squared").combine(values, code).values
    given_ = rule(lambda y: (1 - y) ** 2).combine(values, code).values
    np.testing.assert_allclose(given_, named, rtol=1e-14)


def test_infinite_losses_of_a_function_count_as_very_large():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answer = LossBased(lambda y: np.exp(-y)).combine(np.array([[1e5, 2.0, np.inf]]), PAIRS_OF_3)
    assert np.isfinite(answer.values).all()
    assert answer.values.argmax() == 0


def test_a_loss_that_writes_into_its_argument_does_no_harm():
    def writes(y):
        y *= -1
        return y

    values = np.array([[0.2, -1.0, -3.0]])
    expected = LossBased("linear").combine(values, PAIRS_OF_3).values
    np.testing.assert_array_equal(LossBased(writes).combine(values, PAIRS_OF_3).values, expected)


# ---------------------------------------------------------------------------
# The exponential loss
# ---------------------------------------------------------------------------


@quick
@given(problems(LossBased(), elements=st.floats(-20, 20)))
def test_exponential_scores_are_logarithms_of_the_summed_losses(problem):
    values, code = problem
    scores = LossBased("exponential").combine(values, code).values
    summed = np.exp(-values[:, None, :] * code).sum(axis=2)
    np.testing.assert_allclose(np.exp(-scores), summed, rtol=1e-7)


@pytest.mark.parametrize("rule", [LossBased, LossWeighted])
def test_exponential_ranks_margins_whose_losses_overflow(rule):
    # A cycle: each class loses once, and each of these losses exceeds the largest float.
    values = np.array([[1000.0, -900.0, 800.0]])
    scores = rule("exponential").combine(values, PAIRS_OF_3).values
    np.testing.assert_allclose(scores, [[-900, -1000, -800]], atol=1)


def test_exponential_ranks_margins_whose_losses_vanish():
    # Classes 0 and 1 never meet; both are sure, class 1 is surer.
    code = np.array([[1, 0], [0, 1], [-1, -1]], dtype=np.int8)
    scores = LossWeighted("exponential").combine(np.array([[2000.0, 3000.0]]), code).values
    np.testing.assert_allclose(scores[0, :2], [2000, 3000])


# ---------------------------------------------------------------------------
# Laws
# ---------------------------------------------------------------------------


@each
@quick
@given(data=st.data())
def test_relabelling_permutes_the_scores(decoder, data):
    values, code = data.draw(problems(decoder, elements=st.floats(-5, 5)))
    place = np.array(data.draw(st.permutations(range(len(code)))))
    if decoder.accepts == "one-vs-rest":
        assume(code.shape[1] > 1)
        moved, new = np.empty_like(values), code
        moved[:, place] = values
    else:
        rng = np.random.default_rng(data.draw(st.integers(0, 99)))
        moved, new, place = relabelled(values, code, rng)
    scores = decoder.combine(values, code).values
    again = decoder.combine(moved, new).values
    np.testing.assert_allclose(again[:, place], scores, rtol=1e-8, atol=1e-8)


@pytest.fixture(scope="module")
def hard_margins():
    """Tournaments whose classes are all told apart by whom they beat."""
    code = codes.one_vs_one(6)
    values = np.random.default_rng(0).choice([-1.0, 1.0], size=(150, 15))
    values = values[[len(set(naive.class_keys(f, code, 0))) == 6 for f in values]]
    assert len(values) > 50
    return values, code


@each_for_any_code
def test_relabelling_permutes_the_labels_of_hard_margins(decoder, hard_margins):
    # Margins +1 and -1 tie most of the time, and the order of adding must not matter.
    values, code = hard_margins
    moved, new, place = relabelled(values, code, np.random.default_rng(0))
    np.testing.assert_array_equal(labels(decoder, moved, new), place[labels(decoder, values, code)])


@pytest.mark.parametrize("decoder", [MaxWins(), Hamming()], ids=repr)
def test_relabelling_permutes_the_labels_of_tied_votes(decoder):
    rng = np.random.default_rng(1)
    code = codes.one_vs_one(5)
    r = rng.uniform(size=(400, 10))
    moved, new, place = relabelled(r - 0.5, code, rng)
    # As if made of the probabilities of the other side: 1 - (1 - r) is not exactly r.
    moved = (1 - (0.5 - moved)) - 0.5
    votes = decoder.combine(r - 0.5, code).values
    assert (np.abs(votes - np.round(2 * votes) / 2).max(axis=1) > 0).sum() > 50, "no ties"
    np.testing.assert_array_equal(labels(decoder, moved, new), place[votes.argmax(axis=1)])


@each
def test_splitting_and_reordering_rows_changes_no_bit(decoder):
    rng = np.random.default_rng(0)
    code = some_code(decoder, k=12)
    values = rng.normal(size=(101, code.shape[1])) * 10
    values[::3] = np.round(values[::3] / 10)
    whole = decoder.combine(values, code).values
    pieces = np.split(values, [1, 2, 9, 40])
    split = np.vstack([decoder.combine(piece, code).values for piece in pieces])
    np.testing.assert_array_equal(split, whole)
    order = rng.permutation(len(values))
    np.testing.assert_array_equal(decoder.combine(values[order], code).values, whole[order])
    fortran = np.asfortranarray(values)
    np.testing.assert_array_equal(decoder.combine(fortran, code, n_jobs=2).values, whole)
    small = decoder.combine(values, code, block_entries=1000)
    np.testing.assert_array_equal(small.values, whole)


@each
@quick
@given(f=st.one_of(st.floats(1e-9, allow_infinity=True), st.floats(max_value=-1e-9)))
def test_two_classes_follow_the_sign(decoder, f):
    assert labels(decoder, np.array([[f]]), SINGLE)[0] == (0 if f > 0 else 1)


def test_winner_takes_all_answers_the_margins():
    values = np.random.default_rng(0).normal(size=(20, 4))
    answer = WinnerTakesAll().combine(values, codes.one_vs_rest(4)).values
    np.testing.assert_array_equal(answer, values)
    single = WinnerTakesAll().combine(values[:, :1], SINGLE).values
    np.testing.assert_array_equal(single, np.hstack([values[:, :1], -values[:, :1]]))


def test_winner_takes_all_with_equal_margins_chooses_every_class_sometimes():
    levels = np.random.default_rng(0).normal(size=(200, 1))
    chosen = labels(WinnerTakesAll(), np.repeat(levels, 4, axis=1), codes.one_vs_rest(4))
    assert set(chosen) == {0, 1, 2, 3}


@pytest.mark.parametrize("loss", ["linear", "exponential", "logistic", "hinge", "squared"])
@pytest.mark.parametrize("family", [codes.one_vs_one, codes.one_vs_rest, codes.complete])
def test_loss_weighted_ranks_as_loss_based_where_rows_have_equally_many_zeros(loss, family):
    code = family(5)
    values = np.random.default_rng(0).normal(size=(200, code.shape[1])) * 3
    plain = LossBased(loss).combine(values, code).values
    weighted = LossWeighted(loss).combine(values, code).values
    np.testing.assert_array_equal(weighted.argmax(axis=1), plain.argmax(axis=1))
    np.testing.assert_array_equal(weighted.argsort(axis=1), plain.argsort(axis=1))


@quick
@given(problems(MaxWins(), elements=st.floats(0.01, 0.99)))
def test_linear_loss_on_pairs_is_the_noniterative_estimate(problem):
    # Zadrozny (2001), Theorem 1: the same order as sum_j r_ij, here to a constant (k - 1) / 2.
    r, code = problem
    k = len(code)
    scores = LossBased("linear").combine(r - 0.5, code).values
    expected = np.zeros((len(r), k))
    for b in range(code.shape[1]):
        i, j = code[:, b].argmax(), code[:, b].argmin()
        expected[:, i] += r[:, b]
        expected[:, j] += 1 - r[:, b]
    np.testing.assert_allclose(scores + (k - 1) / 2, expected, atol=2e-9 * k)


@each
def test_no_rows_in_no_rows_out(decoder):
    code = some_code(decoder)
    answer = decoder.combine(np.empty((0, code.shape[1])), code)
    assert answer.values.shape == (0, len(code))


@pytest.mark.parametrize("decoder", [MaxWins(), Hamming(), LossBased("logistic")], ids=repr)
def test_workspace_does_not_grow_with_the_rows(decoder):
    code = codes.one_vs_one(40)
    values = np.random.default_rng(0).choice([-1.0, 1.0], size=(4000, code.shape[1]))

    def peak(n):
        tracemalloc.start()
        decoder.combine(values[:n], code)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    # The answer, and masks of its shape, grow by 8 bytes and a few per entry.
    assert peak(4000) - peak(2000) < 2000 * 40 * 24


# ---------------------------------------------------------------------------
# Ties
# ---------------------------------------------------------------------------


def tied_rows(n, k, seed=0):
    """Cycles: with an odd number of classes each can win as often as it loses."""
    code = codes.one_vs_one(k)
    i, j = np.triu_indices(k, 1)
    sizes = np.random.default_rng(seed).uniform(0.1, 3, size=(n, i.size))
    return np.where((j - i) % 2 == 1, sizes, -sizes), code


def test_tied_rows_are_tied():
    values, code = tied_rows(20, 5)
    for f in values:
        assert len(set(naive.hamming(f, code))) == 1


def test_the_choice_is_uniform_over_rows():
    values, code = tied_rows(5000, 5)
    counts = np.bincount(labels(Hamming(), values, code), minlength=5)
    assert chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("decoder", [MaxWins, Hamming])
@pytest.mark.parametrize("margin", [0.0, 1.0])
def test_the_choice_is_uniform_over_seeds_even_if_margins_say_nothing(decoder, margin):
    values, code = tied_rows(1, 5)
    values = margin * np.sign(values)
    chosen = [labels(decoder(seed), values, code)[0] for seed in range(600)]
    assert chisquare(np.bincount(chosen, minlength=5)).pvalue > 1e-3


def test_margins_break_ties_of_votes_as_in_one_vs_one_classifier():
    values, code = tied_rows(300, 5)
    values[::2] = np.random.default_rng(1).normal(size=values[::2].shape)
    theirs = _ovr_decision_function(values < 0, -values, 5)
    np.testing.assert_allclose(MaxWins().combine(values, code).values, theirs, rtol=0, atol=1e-8)
    np.testing.assert_array_equal(labels(MaxWins(), values, code), theirs.argmax(axis=1))


@quick
@given(problems(MaxWins()))
def test_no_margin_outweighs_half_a_vote(problem):
    values, code = problem
    votes = np.array([naive.hamming(f, code) for f in values])
    winners = labels(MaxWins(), values, code)
    assert (votes[np.arange(len(votes)), winners] == votes.max(axis=1)).all()


def test_the_choice_is_uniform_among_the_tied_only():
    scores = np.tile([1.0, 0.0, 1.0, 1.0, -2.0], (3000, 1))
    values, code = tied_rows(3000, 5)
    break_ties(scores, values, code, seed=1)
    counts = np.bincount(scores.argmax(axis=1), minlength=5)
    assert counts[1] == counts[4] == 0
    assert chisquare(counts[[0, 2, 3]]).pvalue > 1e-3


def test_choices_of_two_seeds_are_unrelated():
    values, code = tied_rows(3000, 3)
    one, two = labels(Hamming(1), values, code), labels(Hamming(2), values, code)
    assert chisquare(np.bincount(3 * one + two, minlength=9)).pvalue > 1e-3


@each
def test_same_seed_same_bits(decoder):
    code = some_code(decoder)
    values = np.random.default_rng(0).integers(-1, 2, size=(60, code.shape[1])).astype(float)
    first = decoder.combine(values, code).values
    np.testing.assert_array_equal(clone(decoder).combine(values, code).values, first)


def test_only_the_chosen_class_is_raised_and_by_a_trifle():
    values, code = tied_rows(4, 3)
    scores = np.array([[0.0, 0, 0], [7e5, 7e5, 1], [-7e5, -7e5, -7e5], [1, 2, 3]])
    before = scores.copy()
    break_ties(scores, values, code, seed=0)
    raised = scores - before
    np.testing.assert_array_equal((raised != 0).sum(axis=1), [1, 1, 1, 0])
    np.testing.assert_allclose(raised.max(axis=1), [1e-9, 7e-4, 7e-4, 0], rtol=1e-5)


def test_rounding_of_the_margins_does_not_change_the_choice():
    values, code = tied_rows(2000, 5)
    noisy = values * (1 + 2e-16 * np.random.default_rng(1).choice([-1, 1], size=values.shape))
    assert (noisy != values).any()
    for decoder in (MaxWins(), Hamming()):
        chosen = labels(decoder, values, code)
        np.testing.assert_array_equal(labels(decoder, noisy, code), chosen)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_few_ulps_do_not_outvote_the_seed(loss):
    # Every class has the same losses, five L(0.7) and five L(-0.7), in an order of its own.
    values, code, _ = relabelled(*tied_rows(1, 11), np.random.default_rng(0))
    values = np.sign(values) * 0.7
    chosen = {int(labels(LossBased(loss, seed), values, code)[0]) for seed in range(60)}
    assert len(chosen) > 8


def test_an_integer_is_its_own_seed():
    assert as_seed(5) == as_seed(np.int64(5)) == 5
    assert as_seed(-1) == 2**64 - 1
    break_ties(np.ones((1, 2)), np.zeros((1, 1)), SINGLE, as_seed(-1))


def test_other_random_states_yield_fresh_seeds():
    state = np.random.RandomState(0)
    assert as_seed(state) != as_seed(state)
    assert as_seed(np.random.RandomState(3)) == as_seed(np.random.RandomState(3))
    assert as_seed(None) != as_seed(None)
    with pytest.raises(ValueError, match="seed"):
        as_seed("one")


# ---------------------------------------------------------------------------
# Names and errors
# ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "cls"),
    [
        ("max-wins", MaxWins),
        ("winner-takes-all", WinnerTakesAll),
        ("hamming", Hamming),
        ("loss", LossBased),
        ("loss-weighted", LossWeighted),
    ],
)
def test_names_resolve(key, cls):
    assert key in names()
    decoder = resolve(key)
    assert type(decoder) is cls
    assert (decoder.takes, decoder.gives_probabilities, decoder.random_state) == (
        "scores",
        False,
        0,
    )


def test_parameters_survive_cloning():
    copy = clone(LossWeighted("hinge", random_state=4))
    assert copy.get_params() == {"loss": "hinge", "random_state": 4}


@each
def test_nan_is_located(decoder):
    code = some_code(decoder)
    values = np.zeros((1000, code.shape[1]))
    values[700, 3] = np.nan
    with pytest.raises(ValueError, match="values contains NaN at row 700, column 3"):
        decoder.combine(values, code)


def test_nan_is_located_beyond_the_first_block():
    values = np.zeros((1000, 3))
    values[700, 1] = np.nan
    with pytest.raises(ValueError, match="row 700, column 1"):
        Hamming().combine(values, PAIRS_OF_3, block_entries=100)


@pytest.mark.parametrize("shape", [(4, 2), (3,), (2, 3, 3)])
def test_foreign_shapes_are_named(shape):
    message = re.escape(f"values has shape {shape}, but the code has 3 columns")
    with pytest.raises(ValueError, match=message):
        Hamming().combine(np.zeros(shape), PAIRS_OF_3)


@pytest.mark.parametrize(
    ("decoder", "code"),
    [(MaxWins(), codes.one_vs_rest(4)), (WinnerTakesAll(), codes.one_vs_one(4))],
    ids=repr,
)
def test_codes_that_do_not_fit_are_refused(decoder, code):
    with pytest.raises(ValueError, match=f"{decoder.key}.*{decoder.accepts}"):
        decoder.combine(np.zeros((1, code.shape[1])), code)


@pytest.mark.parametrize("rule", [LossBased, LossWeighted])
@pytest.mark.parametrize("loss", ["absolute", None, 3])
def test_unknown_losses_are_answered_with_the_known(rule, loss):
    message = re.escape(f"unknown loss {loss!r}") + ".*" + ", ".join(LOSSES)
    with pytest.raises(ValueError, match=message):
        rule(loss).combine(np.zeros((1, 3)), PAIRS_OF_3)


@pytest.mark.parametrize("loss", [np.sum, lambda y: y[:-1], lambda y: 0.0])
def test_losses_must_act_elementwise(loss):
    with pytest.raises(ValueError, match="loss returned shape .* must act elementwise"):
        LossBased(loss).combine(np.ones((2, 3)), PAIRS_OF_3)


def test_losses_must_not_answer_nan():
    with pytest.raises(ValueError, match="loss returned NaN for y = -2"), np.errstate(all="ignore"):
        LossBased(np.sqrt).combine(np.array([[2.0, 2.0, 2.0]]), PAIRS_OF_3)
