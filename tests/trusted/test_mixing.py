"""Orders of things: uniformly random, by the operating system's bits."""

from collections import Counter

import numpy as np

from discreet.trusted.randomness import mixed


def test_every_order_is_as_likely_as_any_other():
    """24,000 orders of four things; Hoeffding's bound for 24 counts: a false alarm in 1e-7."""
    draws = 24_000
    seen = Counter(tuple(mixed("abcd")) for _ in range(draws))
    assert len(seen) == 24
    slack = np.sqrt(np.log(48 / 1e-7) / 2 / draws)
    assert max(abs(count / draws - 1 / 24) for count in seen.values()) <= slack


def test_mixing_loses_nothing_and_leaves_what_it_was_given():
    things = list(range(1000))
    found = mixed(things)
    assert things == list(range(1000)) == sorted(found)
    assert found != things
