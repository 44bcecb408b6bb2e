"""One press at a time."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from crush_kernel.kernel.debounce import REST_S, Debounce


@given(st.lists(st.floats(0.0, 1.0), max_size=30))
def test_presses_that_count_are_a_rest_apart(pauses: list[float]) -> None:
    now = [0.0]
    debounce = Debounce(lambda: now[0])
    admitted: list[float] = []
    for pause in pauses:
        now[0] += pause
        if debounce.admit():
            admitted.append(now[0])
        assert 0.0 <= debounce.rest_s <= REST_S + 1e-9
    assert all(b - a >= REST_S - 1e-9 for a, b in pairwise(admitted))
    assert bool(admitted) == bool(pauses)
