"""Code matrices: exact small ones, the laws of the random ones, and what is said of bad ones."""

from __future__ import annotations

import itertools
import math
import re

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from manyclass import codes
from manyclass.codes import checks, identifiability
from manyclass.codes import random as sampling
from manyclass.codes import random as search

laws = settings(deadline=None, max_examples=20)
n_classes = st.integers(2, 12)
seeds = st.integers(0, 2**32 - 1)
random_codes = pytest.mark.parametrize("random_code", [codes.sparse_random, codes.dense_random])
constructors = pytest.mark.parametrize(
    "constructor",
    [
        codes.one_vs_one,
        codes.one_vs_rest,
        codes.complete,
        codes.ordinal,
        codes.sparse_random,
        codes.dense_random,
    ],
)


@st.composite
def ternary_matrices(draw, max_classes=6, max_columns=8):
    k, n_columns = draw(st.integers(2, max_classes)), draw(st.integers(1, max_columns))
    entries = st.lists(st.sampled_from([-1, 0, 1]), min_size=k * n_columns, max_size=k * n_columns)
    return np.array(draw(entries), dtype=np.int8).reshape(k, n_columns)


def naive_distance(u, v):
    return sum((1 - int(a) * int(b)) / 2 for a, b in zip(u, v, strict=True))


def naive_min_distance(code):
    return min(naive_distance(u, v) for u, v in itertools.combinations(code, 2))


def naive_is_identifiable(code):
    """Rank k - 1 of the Jacobian in p, column by column."""
    p = np.random.RandomState(1).uniform(0.2, 1.0, size=len(code))
    rows = []
    for column in code.T:
        positive, negative = column == 1, column == -1
        row = p[negative].sum() * positive - p[positive].sum() * negative
        rows.append(row)
    return np.linalg.matrix_rank(np.array(rows), tol=1e-9) == len(code) - 1


def naive_n_columns(random_code, k):
    """Count the columns with both signs, a column and its negative being one."""
    if random_code is codes.dense_random:
        return 2 ** (k - 1) - 1
    return (3**k - 2 ** (k + 1) + 1) // 2


def assert_columns_lawful(code):
    """Both signs in every column, and no column equal or opposite to another."""
    assert (code == 1).any(axis=0).all()
    assert (code == -1).any(axis=0).all()
    assert len(np.unique(np.hstack([code, -code]), axis=1).T) == 2 * code.shape[1]


def assert_rows_lawful(code):
    assert len(np.unique(code, axis=0)) == len(code)
    assert code.any(axis=1).all()


def assert_lawful(code):
    assert code.dtype == np.int8
    assert code.flags.c_contiguous
    assert set(np.unique(code)) <= {-1, 0, 1}
    assert_columns_lawful(code)
    assert_rows_lawful(code)


# Constructors


def test_one_vs_one_lists_pairs_in_order():
    expected = [
        [1, 1, 1, 0, 0, 0],
        [-1, 0, 0, 1, 1, 0],
        [0, -1, 0, -1, 0, 1],
        [0, 0, -1, 0, -1, -1],
    ]
    np.testing.assert_array_equal(codes.one_vs_one(4), expected)


def test_one_vs_rest_is_positive_on_the_diagonal():
    expected = [[1, -1, -1], [-1, 1, -1], [-1, -1, 1]]
    np.testing.assert_array_equal(codes.one_vs_rest(3), expected)


def test_ordinal_cuts_between_neighbours():
    expected = [[-1, -1, -1], [1, -1, -1], [1, 1, -1], [1, 1, 1]]
    np.testing.assert_array_equal(codes.ordinal(4), expected)


@pytest.mark.parametrize("k", [2, 3, 5, 9, 16])
def test_complete_has_every_dichotomy_once(k):
    code = codes.complete(k)
    assert code.shape == (k, 2 ** (k - 1) - 1)
    assert_lawful(code)
    assert (code[0] == 1).all()
    assert codes.is_dense(code)


@constructors
@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_constructors_return_usable_contiguous_int8(constructor, k):
    code = constructor(k)
    assert code.dtype == np.int8
    assert code.flags.c_contiguous
    assert len(code) == k
    np.testing.assert_array_equal(codes.check_code(code, n_classes=k), code)
    codes.check_identifiable(code)


@constructors
def test_constructors_accept_numpy_integers(constructor):
    assert len(constructor(np.int64(3))) == 3


@random_codes
def test_numpy_integers_do_not_overflow_the_count_of_columns(random_code):
    code = random_code(np.int64(64), n_draws=1, random_state=0)
    np.testing.assert_array_equal(code, random_code(64, n_draws=1, random_state=0))


@constructors
@pytest.mark.parametrize("k", [1, 0, -3])
def test_constructors_refuse_too_few_classes(constructor, k):
    with pytest.raises(ValueError, match=rf"number of classes\) .* at least 2, got {k}"):
        constructor(k)


@constructors
@pytest.mark.parametrize("k", [3.0, "3", None, True])
def test_constructors_refuse_what_is_no_integer(constructor, k):
    with pytest.raises(TypeError, match=r"must be an integer of at least 2, got"):
        constructor(k)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: codes.one_vs_one(1626), "k=1626 classes has 1321125 columns: .* 2.15 GB"),
        (
            lambda: codes.by_name("one-vs-one", 3000),
            "13.5 GB.*Use one-vs-rest .*, or sparse-random",
        ),
        (lambda: codes.one_vs_one(10**9), "up to 2.1 GB"),
        (
            lambda: codes.one_vs_one(47_000),
            r"Use one-vs-rest \(up to 46,340 classes\)",
        ),
        (lambda: codes.one_vs_one(10**8), r"up to 2.1 GB\. .*Merge classes into groups"),
        (lambda: codes.one_vs_rest(46_341), "2.15 GB.*or sparse-random"),
        (lambda: codes.one_vs_rest(10**12), r"up to 2.1 GB\. .*Merge classes into groups"),
        (lambda: codes.complete(10**8), "up to k=16. .*Merge classes into groups"),
        (lambda: codes.by_name("sparse-random", 10**8), "39.9 GB.*Merge classes into groups"),
        (lambda: codes.by_name("dense-random", 10**8), "26.6 GB.*Merge classes into groups"),
        (lambda: codes.by_name("sparse-random", 10**12), "Merge classes into groups"),
        (lambda: codes.by_name("dense-random", 10**12), "Merge classes into groups"),
        (lambda: codes.sparse_random(10**7), "3.49 GB.*fewer by n_columns, but for at least 47"),
        (lambda: codes.sparse_random(100, 10**30), "fewer by n_columns"),
        (lambda: codes.ordinal(50_000), "2.5 GB.*Merge neighbouring"),
        (lambda: codes.sparse_random(50, 10**9), "50 GB.*fewer by n_columns"),
        (lambda: codes.dense_random(50, 10**9), "50 GB.*fewer by n_columns"),
    ],
)
def test_codes_beyond_all_memory_are_refused_before_they_are_built(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_thousand_classes_are_not_too_many():
    checks.check_size("one-vs-one", 1000, 499_500, "")
    checks.check_size("one-vs-one", 10, 45, "", most_entries=10 * 45)
    with pytest.raises(ValueError, match="has 55 columns.*Use fewer"):
        checks.check_size("one-vs-one", 11, 55, "Use fewer.", most_entries=10 * 45)


def test_complete_refuses_many_classes_and_names_a_remedy():
    with pytest.raises(ValueError, match=r"up to k=16\. Use dense_random"):
        codes.complete(17)


# Random codes


@random_codes
@laws
@given(k=n_classes, seed=seeds)
def test_random_codes_are_lawful(random_code, k, seed):
    code = random_code(k, n_draws=20, random_state=seed)
    assert_lawful(code)
    assert codes.is_identifiable(code)
    if random_code is codes.dense_random:
        assert codes.is_dense(code)


@random_codes
@laws
@given(k=st.integers(4, 12), seed=seeds, data=st.data())
def test_random_codes_of_any_width_are_lawful(random_code, k, seed, data):
    width = data.draw(st.integers(k + 1, min(naive_n_columns(random_code, k), 120)))
    code = random_code(k, n_columns=width, n_draws=100, random_state=seed)
    assert code.shape == (k, width)
    assert_lawful(code)
    assert codes.is_identifiable(code)


@random_codes
@pytest.mark.parametrize("k", [4, 9, 30, 70])
def test_same_seed_same_bits(random_code, k):
    first, again, other = (random_code(k, n_draws=40, random_state=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)
    generator = np.random.RandomState(3)
    np.testing.assert_array_equal(first, random_code(k, n_draws=40, random_state=generator))
    assert not np.array_equal(first, random_code(k, n_draws=40, random_state=generator))


@pytest.mark.parametrize("k", [2, 3, 4, 5, 6, 8, 19, 26])
def test_default_widths(k):
    sparse = codes.sparse_random(k, n_draws=30, random_state=0)
    dense = codes.dense_random(k, n_draws=30, random_state=0)
    assert sparse.shape[1] == min(
        math.ceil(15 * math.log2(k)), naive_n_columns(codes.sparse_random, k)
    )
    assert dense.shape[1] == min(
        math.ceil(10 * math.log2(k)), naive_n_columns(codes.dense_random, k)
    )


@pytest.mark.parametrize("letters", [(-1, 0, 1), (-1, 1)])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_formulas_of_distinct_columns_count_them(letters, k):
    columns = {max(w, tuple(-a for a in w)) for w in itertools.product(letters, repeat=k)}
    usable = [w for w in columns if 1 in w and -1 in w]
    random_code = codes.sparse_random if 0 in letters else codes.dense_random
    assert naive_n_columns(random_code, k) == len(usable)
    code = random_code(k, n_columns=len(usable), n_draws=1)
    assert {max(w, tuple(-a for a in w)) for w in map(tuple, code.T.tolist())} == set(usable)


@random_codes
@pytest.mark.parametrize("k", [3, 5])
def test_more_columns_than_exist_are_refused(random_code, k):
    exist = naive_n_columns(random_code, k)
    with pytest.raises(ValueError, match=f"only {exist} distinct columns exist for k={k}"):
        random_code(k, n_columns=exist + 1)


@random_codes
def test_bad_counts_are_refused(random_code):
    with pytest.raises(ValueError, match=r"n_columns must be an integer of at least 1, got 0"):
        random_code(4, n_columns=0)
    with pytest.raises(TypeError, match=r"n_columns must be an integer of at least 1, got 5\.0"):
        random_code(4, n_columns=5.0)
    with pytest.raises(ValueError, match=r"n_draws must be an integer of at least 1, got 0"):
        random_code(4, n_draws=0)


@random_codes
def test_fewer_than_k_minus_1_columns_still_tell_classes_apart(random_code):
    code = random_code(20, n_columns=10, n_draws=200, random_state=0)
    assert_lawful(code)
    assert not codes.is_identifiable(code)


@random_codes
def test_no_acceptable_draw_is_an_error(random_code):
    with pytest.raises(ValueError, match=r"none of the n_draws=50 .* has different rows"):
        random_code(12, n_columns=2, n_draws=50, random_state=0)


def test_no_identifiable_draw_is_an_error():
    failures = 0
    for seed in range(200):
        try:
            codes.sparse_random(4, n_columns=3, n_draws=1, random_state=seed)
        except ValueError as error:
            failures += 1
            assert "determines the class probabilities. Raise n_draws" in str(error)
    assert 0 < failures < 200


def test_best_of_10000_draws_for_26_classes_has_distant_rows():
    code = codes.sparse_random(26, random_state=0)
    assert code.shape == (26, 71)
    # The median draw has 29.5, one in some hundreds 31.5.
    assert naive_min_distance(code) >= 31.5


def test_zero_probability_of_sparse_codes_is_a_half():
    draws = sampling.FreshColumns(20, 60, sampling.SPARSE)(200, np.random.RandomState(0))
    frequencies = [(draws == letter).mean() for letter in (-1, 0, 1)]
    np.testing.assert_allclose(frequencies, [0.25, 0.5, 0.25], atol=0.01)


@pytest.mark.parametrize("letters", [sampling.SPARSE, sampling.DENSE])
def test_listed_and_fresh_columns_follow_one_law(letters):
    k, n_columns, n_draws = 4, 3, 20_000
    frequencies = []
    for sampler in (sampling.ListedColumns, sampling.FreshColumns):
        draws = sampler(k, n_columns, letters)(n_draws, np.random.RandomState(0))
        assert draws.shape == (n_draws, n_columns, k)
        number = draws.astype(int) @ 3 ** np.arange(k)
        frequencies.append(np.bincount(number.ravel() + 40, minlength=81) / n_draws)
    listed, fresh = frequencies
    np.testing.assert_array_equal(listed > 0, fresh > 0)
    standard_error = np.sqrt(2 * listed * (1 - listed) / n_draws)
    assert (np.abs(listed - fresh) <= 4 * standard_error).all()


@pytest.mark.parametrize("k", [6, 45])
def test_fresh_columns_never_repeat(k):
    # 45 classes are more than the leading entries by which columns are compared.
    for draw in sampling.FreshColumns(k, 25, sampling.SPARSE)(50, np.random.RandomState(0)):
        assert_columns_lawful(draw.T)


@pytest.mark.parametrize("k", [5, 64, 65, 150])
def test_largest_dots_leave_only_draws_at_the_bar(k):
    draws = sampling.FreshColumns(k, 20, sampling.SPARSE)(12, np.random.RandomState(k))
    exact = np.array([20 - 2 * naive_min_distance(draw.T) for draw in draws])
    np.testing.assert_array_equal(search._largest_dots(draws, math.inf), exact)
    bar = exact.min() + 1
    assert exact.max() >= bar
    screened = search._largest_dots(draws, bar)
    np.testing.assert_array_equal(screened < bar, exact < bar)
    np.testing.assert_array_equal(screened[exact < bar], exact[exact < bar])


@pytest.mark.parametrize(("k", "n_columns"), [(4, 4), (7, 6), (70, 12)])
def test_best_draw_is_the_first_best_acceptable_one(k, n_columns):
    n_draws = 40
    sampler = sampling.FreshColumns(k, n_columns, sampling.SPARSE)
    batch = 7 * k * max(n_columns, search._ROWS)
    best = search._best_draw(sampler, k, n_columns, n_draws, np.random.RandomState(5), batch)
    random = np.random.RandomState(5)
    draws = np.concatenate([sampler(n, random) for n in (7, 7, 7, 7, 7, 5)])
    if n_columns >= k - 1:
        acceptable = [d.T for d in draws if naive_is_identifiable(d.T)]
    else:
        acceptable = [d.T for d in draws if len(np.unique(d.T, axis=0)) == k]
    np.testing.assert_array_equal(best, max(acceptable, key=naive_min_distance))


# check_code


@pytest.mark.parametrize("dtype", [int, float, np.float32, np.int8, object])
def test_check_code_returns_contiguous_int8(dtype):
    given_code = np.asfortranarray(codes.one_vs_one(4).astype(dtype))
    checked = codes.check_code(given_code, n_classes=4)
    assert checked.dtype == np.int8
    assert checked.flags.c_contiguous
    np.testing.assert_array_equal(checked, codes.one_vs_one(4))


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ([1, -1], "got an array of shape (2,)"),
        ([[[1], [-1]]], "got an array of shape (1, 2, 1)"),
        ([[1, -1]], "got an array of shape (1, 2)"),
        (np.empty((3, 0)), "got an array of shape (3, 0)"),
        ([[1, -1], [1]], "its rows differ in length"),
        ([["1"], ["-1"]], "must hold the numbers -1, 0 and +1, got dtype <U2"),
        ([[1, 0], [-1, 2]], "row 1, column 1 is 2"),
        ([[1, 0.5], [-1, 3]], "row 0, column 1 is 0.5"),
        ([[1, -1], [np.nan, 1]], "row 1, column 0 is nan"),
        ([[1, -1], [None, 1]], "row 1, column 0 is None"),
        ([[1, -1], [-1, -1]], "column 1 has no +1: put at least one class on each side"),
        ([[1, 1], [-1, 0]], "column 1 has no -1: put at least one class on each side"),
        ([[1, 0], [-1, 0]], "column 1 has no +1 and no -1"),
        ([[1, 1], [-1, -1], [1, 1]], "classes 0 and 2 have equal rows: add a column"),
        ([[1, 1], [0, 0], [-1, -1]], "class 1 has only zeros: let it take part"),
        ([[1, 1, 0], [1, 1, 0]], "(3 more: see audit(code).problems.)"),
    ],
)
def test_check_code_says_what_is_wrong_where(code, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        codes.check_code(code)


def test_check_code_compares_rows_with_classes():
    with pytest.raises(ValueError, match=r"code has 3 rows, but there are 4 classes"):
        codes.check_code(codes.ordinal(3), n_classes=4)


@laws
@given(code=ternary_matrices())
def test_check_code_agrees_with_audit(code):
    report = codes.audit(code)
    if report.valid:
        np.testing.assert_array_equal(codes.check_code(code), code)
        assert_rows_lawful(code)
        assert not report.problems
    else:
        with pytest.raises(ValueError, match=re.escape(report.problems[0])):
            codes.check_code(code)


# Identifiability


@pytest.mark.parametrize(
    "code",
    [
        [[1], [-1]],
        codes.complete(4),
        codes.complete(11),
        codes.ordinal(2),
        codes.ordinal(300),
        codes.one_vs_rest(60),
        codes.one_vs_one(200),
        [[1, 0, 0], [-1, 1, 0], [0, -1, 1], [0, 0, -1]],  # a chain of pairs
        [[1, 0, 1], [-1, 0, 1], [0, 1, -1], [0, -1, -1]],  # two pairs and a bridge
        [[1, 1, 0], [1, -1, 1], [-1, 0, 1], [0, 1, -1]],  # mixed, without a pair
    ],
)
def test_identifiable_codes(code):
    assert codes.is_identifiable(code)
    codes.check_identifiable(code)


@pytest.mark.parametrize(
    ("code", "reason", "remedy"),
    [
        (
            [[1], [1], [-1]],
            "classes 0 and 1 can change without",
            "Add the missing column, for example class 0 against class 1.",
        ),
        (
            [[1, 0], [-1, 0], [0, 1], [0, -1]],
            "the groups of classes [0, 1] and [2, 3] never meet",
            "Add the missing column, for example class",
        ),
        (
            [[1, 1], [-1, 1], [0, 0], [0, -1]],
            "the groups of classes [0, 1, 3] and [2] never meet",
            "Add the missing column, for example class",
        ),
        (
            # The third column compares classes whose ratios the pairs already fix.
            [[1, 0, 1, 0], [-1, 1, 1, 0], [0, -1, -1, 0], [0, 0, 0, 1], [0, 0, 0, -1]],
            "the groups of classes [0, 1, 2] and [3, 4] never meet",
            "Add the missing column",
        ),
        (
            # A column without a second side compares nothing.
            [[1, 0, 1], [-1, 0, 1], [0, 1, 1], [0, -1, 1]],
            "the groups of classes [0, 1] and [2, 3] never meet",
            "Add the missing column",
        ),
        (
            np.hstack([codes.ordinal(4)[:, [0]]] * 4),
            "classes 1, 2 and 3 can change without",
            "At least 2 columns are missing; adding class 1 against each of the classes 2 and 3",
        ),
        (
            np.kron(np.eye(2, dtype=int), codes.one_vs_rest(12)),
            "[0, 1, 2, 3, 4, 5, 6, 7, ...] and [12, 13, 14, 15, 16, 17, 18, 19, ...] never meet",
            "Add the missing column",
        ),
        (
            codes.ordinal(20)[:, [9]],
            "classes 0, 1, 2, 3, 4, 5, 6, 7 and 12 more can change",
            "At least 18 columns are missing",
        ),
    ],
)
def test_unidentifiable_codes_are_explained(code, reason, remedy):
    assert not codes.is_identifiable(code)
    assert not codes.audit(code).identifiable
    with pytest.raises(ValueError, match=re.escape(reason)) as error:
        codes.check_identifiable(code)
    assert remedy in str(error.value)


@settings(deadline=None, max_examples=60)
@given(code=ternary_matrices())
def test_is_identifiable_is_the_rank_of_the_jacobian(code):
    assert codes.is_identifiable(code) == naive_is_identifiable(code)


@laws
@given(k=st.integers(2, 7), n_columns=st.integers(1, 9), seed=seeds)
def test_dense_codes_are_identifiable_by_the_rank_of_their_positive_sides(k, n_columns, seed):
    code = np.random.RandomState(seed).choice([-1, 1], size=(k, n_columns))
    positive_sides = np.vstack([code.T == 1, np.ones(k)])
    assert codes.is_identifiable(code) == (np.linalg.matrix_rank(positive_sides) == k)


@laws
@given(code=ternary_matrices(max_columns=5))
def test_the_proposed_columns_repair_the_code(code):
    assume(not codes.is_identifiable(code))
    _, anchor, others = identifiability._gaps(code)
    repaired = code
    for i, other in enumerate(others):
        assert not codes.is_identifiable(repaired), f"{i} of {len(others)} columns were enough"
        pair = np.zeros((len(code), 1), dtype=np.int8)
        pair[anchor], pair[other] = 1, -1
        repaired = np.hstack([repaired, pair])
    assert codes.is_identifiable(repaired)


@laws
@given(code=ternary_matrices(), seed=seeds)
def test_identifiability_ignores_order_and_signs(code, seed):
    random = np.random.RandomState(seed)
    shuffled = code[random.permutation(len(code))][:, random.permutation(code.shape[1])]
    shuffled = shuffled * random.choice([-1, 1], size=code.shape[1])
    assert codes.is_identifiable(shuffled) == codes.is_identifiable(code)


# Audit


@laws
@given(code=ternary_matrices())
def test_audit_never_raises_and_agrees_with_plain_loops(code):
    report = codes.audit(code)
    assert (report.n_classes, report.n_columns) == code.shape
    assert report.min_row_distance == naive_min_distance(code)
    i, j = report.closest_rows
    assert i < j
    assert naive_distance(code[i], code[j]) == report.min_row_distance
    assert report.sparsity == pytest.approx(np.mean(code == 0))
    for related, sign in ((report.duplicate_columns, 1), (report.complementary_columns, -1)):
        for a, b in related:
            assert a < b
            np.testing.assert_array_equal(code[:, a], sign * code[:, b])
    distinct = {max(c, tuple(-a for a in c)) for c in map(tuple, code.T.tolist())}
    n_related = len(report.duplicate_columns) + len(report.complementary_columns)
    assert code.shape[1] - n_related == len(distinct)
    assert repr(report).startswith("Code of ")


def test_audit_reports_everything_at_once():
    code = [[1, 1, -1, 1, 0], [1, 1, -1, 1, 0], [-1, -1, 1, 1, 0], [0, 0, 0, 0, 0]]
    report = codes.audit(code)
    assert not report.valid
    assert report.problems == (
        "column 3 has no -1: put at least one class on each side, or drop the column.",
        "column 4 has no +1 and no -1: put at least one class on each side, or drop the column.",
        "classes 0 and 1 have equal rows: add a column with 0 and 1 on opposite sides.",
        "class 3 has only zeros: let it take part in some column.",
    )
    assert report.duplicate_columns == ((0, 1),)
    assert report.complementary_columns == ((0, 2),)
    np.testing.assert_allclose(report.balance, [2 / 3, 2 / 3, 1 / 3, 1, np.nan])
    assert report.closest_rows == (0, 1)
    text = str(report)
    assert "usable:                no, 4 problem(s)" in text
    assert "identifiable:          no (see check_identifiable)" in text
    assert "min row distance:      0.5 (classes 0 and 1)" in text
    assert "zeros:                 40.0%" in text
    assert "balance:               0.33 to 1.00" in text
    assert "duplicate columns:     (0, 1)" in text
    assert "complementary columns: (0, 2)" in text
    assert "  - class 3 has only zeros" in text


def test_audit_of_a_good_code_reads_well():
    assert repr(codes.audit(codes.one_vs_one(4))) == (
        "Code of 4 classes and 6 column(s)\n"
        "  usable:                yes\n"
        "  identifiable:          yes\n"
        "  min row distance:      3.5 (classes 0 and 1)\n"
        "  zeros:                 50.0%\n"
        "  balance:               0.50 to 0.50\n"
        "  duplicate columns:     none\n"
        "  complementary columns: none"
    )


def test_audit_of_zeros_and_what_is_no_code():
    assert "balance:               no class takes part" in repr(codes.audit(np.zeros((2, 2))))
    with pytest.raises(ValueError, match=r"row 0, column 0 is 7"):
        codes.audit([[7], [1]])
    with pytest.raises(AttributeError):
        codes.audit([[1], [-1]]).valid = False


# Recognition


@laws
@given(k=n_classes, seed=seeds)
def test_pair_columns_undoes_shuffles_and_flips(k, seed):
    random = np.random.RandomState(seed)
    canonical = codes.one_vs_one(k)
    n_columns = canonical.shape[1]
    signs = random.choice([-1, 1], size=n_columns).astype(np.int8)
    shuffled = (canonical * signs)[:, random.permutation(n_columns)]
    order, flip = codes.pair_columns(shuffled)
    assert flip.dtype == np.bool_
    np.testing.assert_array_equal(shuffled[:, order] * np.where(flip, -1, 1), canonical)
    np.testing.assert_array_equal(flip, signs == -1)


@pytest.mark.parametrize(
    "code",
    [
        codes.one_vs_rest(3),
        codes.one_vs_rest(2),
        codes.ordinal(4),
        codes.one_vs_one(4)[:, :-1],
        codes.one_vs_one(4)[:, [0, 1, 2, 3, 4, 4]],
        np.abs(codes.one_vs_one(3)),
        codes.sparse_random(4, n_columns=6, n_draws=20, random_state=0),
    ],
)
def test_pair_columns_is_none_for_other_codes(code):
    assert codes.pair_columns(code) is None


def test_two_class_codes_are_recognised_as_what_they_are():
    assert [a.tolist() for a in codes.pair_columns(codes.one_vs_one(2))] == [[0], [False]]
    assert [a.tolist() for a in codes.pair_columns(codes.ordinal(2))] == [[0], [True]]
    assert codes.is_one_vs_rest(codes.one_vs_one(2))
    assert codes.is_one_vs_rest(codes.one_vs_rest(2))
    assert not codes.is_one_vs_rest(codes.ordinal(2))


@pytest.mark.parametrize("k", [2, 3, 6])
def test_is_one_vs_rest_wants_the_order_of_the_classes(k):
    code = codes.one_vs_rest(k)
    assert codes.is_one_vs_rest(code) is True
    assert not codes.is_one_vs_rest(code[:, ::-1])
    assert not codes.is_one_vs_rest(-code)
    assert not codes.is_one_vs_rest(np.hstack([code, code[:, :1]]))


def test_is_dense():
    assert codes.is_dense(codes.ordinal(4)) is True
    assert codes.is_dense(codes.one_vs_one(3)) is False


# Names


def test_names_resolve_to_their_constructors():
    expected = {
        "one-vs-one": codes.one_vs_one(5),
        "one-vs-rest": codes.one_vs_rest(5),
        "sparse-random": codes.sparse_random(5, random_state=1),
        "dense-random": codes.dense_random(5, random_state=1),
        "complete": codes.complete(5),
        "ordinal": codes.ordinal(5),
    }
    assert codes.NAMES == tuple(expected)
    for name, code in expected.items():
        np.testing.assert_array_equal(codes.by_name(name, 5, random_state=1), code)


@pytest.mark.parametrize("name", ["ovo", "", None, ["ordinal"]])
def test_unknown_names_list_the_known_ones(name):
    message = f"unknown code {name!r}: pass a code matrix or one of one-vs-one, one-vs-rest,"
    with pytest.raises(ValueError, match=re.escape(message)):
        codes.by_name(name, 3)
    with pytest.raises(ValueError, match=re.escape(message)):
        codes.n_classes_of(name, 3)


@pytest.mark.parametrize("name", ["one-vs-one", "one-vs-rest", "complete", "ordinal"])
@pytest.mark.parametrize("k", [2, 3, 4, 9, 14])
def test_n_classes_of_inverts_the_number_of_columns(name, k):
    assert codes.n_classes_of(name, codes.by_name(name, k).shape[1]) == k


@pytest.mark.parametrize(
    ("name", "n_columns", "message"),
    [
        ("one-vs-one", 7, "has 7 columns: it has 6 columns for 4 classes and 10 columns for 5"),
        ("one-vs-one", 2, "it has 1 columns for 2 classes and 3 columns for 3 classes"),
        ("one-vs-rest", 1, "no one-vs-rest code has 1 columns: it has 2 columns for 2 classes"),
        ("complete", 8, "it has 7 columns for 4 classes and 15 columns for 5 classes"),
        ("sparse-random", 40, "Pass the code matrix itself"),
        ("dense-random", 40, "Pass the code matrix itself"),
        ("ordinal", 0, "n_columns must be an integer of at least 1, got 0"),
    ],
)
def test_n_classes_of_says_why_there_is_none(name, n_columns, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        codes.n_classes_of(name, n_columns)
