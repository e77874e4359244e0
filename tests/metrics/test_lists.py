import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from ragaudit.metrics.lists import kendall_tau, overlap_at


@pytest.mark.parametrize(
    ("one", "other", "k", "overlap"),
    [
        ("abcd", "abcd", 4, 1.0),
        ("abcd", "dcba", 2, 0.0),
        ("abcd", "acxy", 3, 2 / 3),
        ("ab", "abcd", 4, 0.5),
        ("", "ab", 2, 0.0),
        ("", "", 5, None),
    ],
)
def test_overlap_by_hand(one, other, k, overlap):
    assert overlap_at(one, other, k) == overlap


@pytest.mark.parametrize(
    ("one", "other", "tau"),
    [
        ("abc", "abc", 1.0),
        ("abc", "cba", -1.0),
        ("abcd", "abdc", 1 - 4 / 12),
        ("axbyc", "cab", 1 - 8 / 6),
        ("ab", "axy", None),
        ("", "", None),
    ],
)
def test_tau_by_hand(one, other, tau):
    assert kendall_tau(one, other) == tau


@given(st.permutations("abcdefghij"), st.integers(2, 10))
def test_tau_is_scipys(order, n):
    one, other = order[:n], sorted(order[:n])
    expected = kendalltau([one.index(name) for name in other], range(n)).statistic
    assert kendall_tau(one, other) == pytest.approx(expected, abs=1e-12)
