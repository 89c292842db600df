"""What a shuffled promise lets reports cost, and what it says."""

import math
from collections.abc import Callable
from fractions import Fraction

import pytest

from discreet.errors import InvalidArgument
from discreet.privacy.blanket import Blanket
from discreet.privacy.book import best_cap
from discreet.privacy.cap import Cap
from discreet.privacy.shuffled import LARGEST_LEVEL, STEPS, ShuffledDP

ALL = {"answering": 1.0, "honest": 1.0}


def book(dimension: int) -> Callable[[Fraction], Cap]:
    return lambda level: best_cap(level, dimension, 1 << 14)


@pytest.mark.parametrize(
    ("asks", "level"), [(200, 2.2), (300, 2.5), (500, 2.9), (1000, 3.5), (2000, 4.1), (5000, 5.0)]
)
def test_the_level_of_a_report_is_what_was_computed_elsewhere(asks: int, level: float) -> None:
    found = ShuffledDP(1.0, 1e-6, **ALL).level(asks, book(16))
    assert float(found) == pytest.approx(level, abs=0.05)


@pytest.mark.parametrize("dimension", [1, 5, 16])
@pytest.mark.parametrize("asks", [50, 200, 900, 5000])
def test_reports_of_the_level_are_allowed_and_those_of_the_next_step_are_not(
    asks: int, dimension: int
) -> None:
    privacy = ShuffledDP(1.0, 1e-6)
    level = privacy.level(asks, book(dimension))
    assert privacy.allows(best_cap(level, dimension, 1 << 14), asks)
    assert not privacy.allows(best_cap(level + Fraction(1, STEPS), dimension, 1 << 14), asks)


def test_what_is_allowed_keeps_the_promise_among_honest_reports_alone() -> None:
    privacy = ShuffledDP(1.0, 1e-6, answering=0.5, honest=0.7)
    cap = best_cap(privacy.level(1000, book(8)), 8, 1 << 14)
    assert privacy.hiding(1000) == 200
    assert Blanket(cap.size, cap.nearest, cap.share).epsilon(1e-6, 200) <= 1.0
    assert Blanket(cap.size, cap.nearest, cap.share).epsilon(1e-6, 170) > 1.0


@pytest.mark.parametrize("answering", [0.5, 0.8, 1.0])
@pytest.mark.parametrize("honest", [0.7, 0.9, 1.0])
def test_dishonest_people_who_all_report_leave_as_many_honest_reports_as_are_counted(
    answering: float, honest: float
) -> None:
    privacy = ShuffledDP(1.0, 1e-6, answering=answering, honest=honest)
    for asks in range(1, 400):
        dishonest = math.floor(Fraction(str(1 - honest)).limit_denominator(10) * asks)
        left = max(1, privacy.least(asks) - dishonest)  # whoever is protected is honest
        assert left - 1 <= privacy.hiding(asks) <= left


def test_a_group_of_which_too_few_reported_is_dropped() -> None:
    privacy = ShuffledDP(1.0, 1e-6, answering=0.75)
    assert [privacy.drops(reports, asks=10) for reports in (0, 1, 7, 8, 10)] == [
        False,
        True,
        True,
        False,
        False,
    ]


def test_a_crowd_of_one_gets_what_is_promised_and_no_more() -> None:
    privacy = ShuffledDP(1.0, 1e-6, honest=0.3)
    assert privacy.hiding(1) == 1
    assert privacy.level(1, book(8)) == 1
    assert ShuffledDP(0.7, 1e-6).level(1, book(8)) == Fraction(0.7)


def test_several_rounds_of_a_person_add_up_to_the_promise() -> None:
    privacy = ShuffledDP(1.2, 1e-6, rounds_per_user=3)
    epsilon, delta = privacy.each
    assert 3 * epsilon == pytest.approx(1.2)
    assert delta * (1 + math.exp(epsilon) + math.exp(2 * epsilon)) == pytest.approx(1e-6)
    assert privacy.level(1000, book(8)) < ShuffledDP(1.2, 1e-6).level(1000, book(8))


def test_a_cap_whose_others_are_likelier_is_refused() -> None:
    privacy = ShuffledDP(0.5, 1e-6)
    assert not privacy.allows(Cap(16, 8, 1 << 60), 1000)


def test_no_level_is_above_the_largest() -> None:
    assert ShuffledDP(11.0, 1e-3).level(10**6, book(8)) <= LARGEST_LEVEL


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ({"epsilon": 0.0}, "epsilon"),
        ({"epsilon": 13.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"epsilon": 1e-3, "delta": 0.1}, "delta"),
        ({"minimum": 0}, "minimum"),
        ({"answering": 1.1}, "answering"),
        ({"honest": 0.0}, "honest"),
        ({"answering": 0.25, "honest": 0.75}, "honest"),
        ({"rounds_per_user": 0}, "rounds_per_user"),
    ],
)
def test_what_promises_nothing_is_refused(arguments: dict[str, float], name: str) -> None:
    with pytest.raises(InvalidArgument, match=name):
        ShuffledDP(**({"epsilon": 1.0, "delta": 1e-6} | arguments))  # type: ignore[arg-type]


def test_the_guarantee_says_what_it_rests_on() -> None:
    said = ShuffledDP(1.0, 1e-6, minimum=321, answering=0.75, honest=0.85).guarantee
    for words in ("epsilon = 1", "delta = 1e-06", "321", "75%", "85%", "shuffler", "epsilon_0"):
        assert words in said
    assert "1 report;" in said
    assert "in every group, of the people asked at least 85% are honest" in said
