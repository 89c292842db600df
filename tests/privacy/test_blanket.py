"""Shuffled reports: the accounting against enumeration, and against the truth."""

import itertools
import math
from collections import defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument
from discreet.privacy.blanket import MOST_PEOPLE, Blanket

Multiset = tuple[int, ...]
SMALL = [
    Blanket(2, 1, Fraction(3, 4)),
    Blanket(3, 1, Fraction(3, 5)),
    Blanket(3, 2, Fraction(9, 10)),
    Blanket(4, 1, Fraction(9, 10)),
    Blanket(4, 2, Fraction(3, 4)),
    Blanket(5, 1, Fraction(1, 2)),
    Blanket(5, 2, Fraction(19, 20)),
    Blanket(5, 3, Fraction(4, 5)),
    Blanket(5, 4, Fraction(99, 100)),
]
EPSILONS = (0.0, 0.1, 0.5, 1.0, 2.0)


def law_of(blanket: Blanket, cap: tuple[int, ...]) -> list[Fraction]:
    inside = blanket.inside / blanket.cap
    outside = (1 - blanket.inside) / (blanket.size - blanket.cap)
    return [inside if index in cap else outside for index in range(blanket.size)]


def batches(laws: list[list[Fraction]]) -> dict[Multiset, Fraction]:
    """How likely each batch of one report by each law is, once its order is forgotten."""
    found: dict[Multiset, Fraction] = {(): Fraction(1)}
    for law in laws:
        longer: dict[Multiset, Fraction] = defaultdict(Fraction)
        for batch, chance in found.items():
            for index, likely in enumerate(law):
                longer[tuple(sorted((*batch, index)))] += chance * likely
        found = longer
    return found


def divergence(
    first: dict[Multiset, Fraction], second: dict[Multiset, Fraction], epsilon: float
) -> float:
    power = Fraction(math.exp(epsilon))
    return float(sum(max(first[each] - power * second[each], Fraction(0)) for each in first))


def pair_of_caps(blanket: Blanket, apart: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Two caps that differ in so many indices."""
    first = tuple(range(blanket.cap))
    return first, tuple(range(apart, blanket.cap + apart))


def enumerated(blanket: Blanket, people: int, epsilon: float, apart: int) -> float:
    """The theorem's view, batch by batch: who drew from the blanket is known."""
    uniform = [Fraction(1, blanket.size)] * blanket.size
    share = (1 - blanket.inside) * blanket.size / (blanket.size - blanket.cap)
    old, new = (law_of(blanket, cap) for cap in pair_of_caps(blanket, apart))
    total = 0.0
    for hidden in range(people):
        chance = (
            math.comb(people - 1, hidden) * share**hidden * (1 - share) ** (people - 1 - hidden)
        )
        views = [batches([own, *[uniform] * hidden]) for own in (old, new)]
        total += float(chance) * divergence(views[0], views[1], epsilon)
    return total


@pytest.mark.parametrize("blanket", SMALL, ids=str)
def test_the_accounting_equals_enumeration_of_every_batch(blanket: Blanket) -> None:
    apart = min(blanket.cap, blanket.size - blanket.cap)
    for people, epsilon in itertools.product(range(1, 7), EPSILONS):
        exact = enumerated(blanket, people, epsilon, apart)
        assert blanket.delta(epsilon, people) == pytest.approx(exact, abs=1e-9)
        assert blanket.delta(epsilon, people) >= exact


@pytest.mark.parametrize("blanket", SMALL, ids=str)
def test_caps_that_have_nothing_in_common_are_told_apart_best(blanket: Blanket) -> None:
    most = min(blanket.cap, blanket.size - blanket.cap)
    for people, epsilon in itertools.product((1, 2, 4), EPSILONS):
        found = [enumerated(blanket, people, epsilon, apart) for apart in range(1, most + 1)]
        assert found == sorted(found)


@pytest.mark.parametrize("blanket", SMALL, ids=str)
def test_no_shuffled_batch_tells_more_than_the_accounting(blanket: Blanket) -> None:
    """Whatever caps the others have: the true divergence, by enumeration."""
    caps = list(itertools.combinations(range(blanket.size), blanket.cap))
    most = min(blanket.cap, blanket.size - blanket.cap)
    for people in range(1, 7):
        crowds = list(itertools.combinations_with_replacement(caps, people - 1))
        for crowd in crowds[:: max(1, len(crowds) // 12)]:
            laws = [law_of(blanket, cap) for cap in crowd]
            for apart in range(1, most + 1):
                pair = [law_of(blanket, cap) for cap in pair_of_caps(blanket, apart)]
                first, second = (batches([own, *laws]) for own in pair)
                for epsilon in EPSILONS:
                    told = divergence(first, second, epsilon)
                    assert told <= blanket.delta(epsilon, people) + 1e-15


def test_a_report_alone_is_worth_its_level() -> None:
    blanket = Blanket(5, 2, Fraction(19, 20))
    assert blanket.delta(0.99 * blanket.level, 1) > 0.0
    assert blanket.delta(1.000001 * blanket.level, 1) == 0.0
    assert blanket.epsilon(1e-12, 1) <= blanket.level * (1 + 1e-8)


@pytest.mark.parametrize(
    ("people", "cap", "inside", "level", "central"),
    [
        (300, 3808, 0.6911, 2.0, 0.67),
        (1000, 2300, 0.76636, 3.0, 0.71),
        (2000, 1300, 0.82473, 4.0, 0.93),
        (5000, 1306, 0.82545, 4.0, 0.55),
    ],
)
def test_crowds_hide_as_much_as_was_computed_elsewhere(
    people: int, cap: int, inside: float, level: float, central: float
) -> None:
    blanket = Blanket(1 << 14, cap, Fraction(inside))
    assert blanket.level == pytest.approx(level, abs=0.001)
    assert blanket.epsilon(1e-6, people) == pytest.approx(central, abs=0.006)


@settings(max_examples=25, deadline=None)
@given(
    size=st.integers(2, 40),
    share=st.floats(0.02, 0.98),
    odds=st.floats(1.01, 200.0),
    people=st.integers(1, 25),
    epsilon=st.floats(0.0, 4.0),
)
def test_rounding_never_makes_delta_smaller_than_it_is(
    size: int, share: float, odds: float, people: int, epsilon: float
) -> None:
    """Against the same sum over all counts, without windows, to 40 digits."""
    cap = min(size - 1, max(1, round(share * size)))
    weight = Fraction(odds) * cap
    blanket = Blanket(size, cap, weight / (weight + size - cap))
    exact = summed_with_forty_digits(blanket, people, epsilon)
    assert exact <= blanket.delta(epsilon, people) <= exact * (1 + 1e-9) + 1e-11


def summed_with_forty_digits(blanket: Blanket, people: int, epsilon: float) -> float:
    with localcontext(prec=40):
        power = Fraction(Decimal(epsilon).exp())
    odds, each = blanket.odds, (1 - blanket.inside) / (blanket.size - blanket.cap)
    apart = min(blanket.cap, blanket.size - blanket.cap)
    sames, rests = (blanket.size - 2 * apart) * each, 1 - blanket.size * each
    weight = 1 if 2 * blanket.cap <= blanket.size else odds
    total = Fraction(0)
    for a, b in itertools.product(range(people + 1), repeat=2):
        for c in range(people + 1 - a - b):
            value = (odds - power) * a - (power * odds - 1) * b - (power - 1) * weight * c
            if value > 0:
                rest = people - a - b - c
                ways = math.factorial(people) // math.prod(map(math.factorial, (a, b, c, rest)))
                total += value * ways * (apart * each) ** (a + b) * sames**c * rests**rest
    return float(total / people)


def test_more_people_hide_better_and_a_larger_epsilon_needs_less_delta() -> None:
    blanket = Blanket(1 << 10, 100, Fraction(3, 4))
    by_people = [blanket.delta(1.0, people) for people in (50, 100, 200, 400, 800)]
    assert by_people == sorted(by_people, reverse=True)
    by_epsilon = [blanket.delta(epsilon, 200) for epsilon in (0.0, 0.3, 0.6, 0.9, 1.2)]
    assert by_epsilon == sorted(by_epsilon, reverse=True)


def test_a_crowd_beyond_the_largest_counts_as_the_largest() -> None:
    blanket = Blanket(1 << 10, 3, Fraction(9, 10))
    assert blanket.delta(0.5, 10 * MOST_PEOPLE) == blanket.delta(0.5, MOST_PEOPLE)


@pytest.mark.parametrize(
    ("size", "cap", "inside"),
    [(4, 4, Fraction(1, 2)), (4, 0, Fraction(1, 2)), (4, 2, Fraction(1, 3)), (4, 1, Fraction(1))],
)
def test_what_is_no_report_is_refused(size: int, cap: int, inside: Fraction) -> None:
    with pytest.raises(InvalidArgument):
        Blanket(size, cap, inside)


def test_an_inexact_probability_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="a fraction"):
        Blanket(4, 1, 0.5)  # type: ignore[arg-type]
