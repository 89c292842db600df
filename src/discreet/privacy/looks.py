"""How often a round is looked at: in the release of its own epoch, and again in the next ones.

At age i (epochs since its own) a round counts looks[i] times, and the squares add up to 1: Gaussian
noise composes in squares, so all looks together cost what one whole look would. A release then
carries one noise for several epochs' rounds. Where noise is what hides the signal, that is
worth more than looking once: with epochs that grow by 1.2, more than twice the information. And
what an early epoch clipped widely, a later one, which predicts better, clips narrowly.

The next encoding depends on releases in which the round was already: adaptive, but whatever was
released the squared whitened changes sum to at most mu^2, so all releases together are mu-Gaussian
private (`streams` has the three lines; docs/guarantee.md).
"""

import math
from itertools import takewhile
from typing import Protocol, TypeAlias, TypeVar

from discreet.errors import InvalidArgument

Looks: TypeAlias = tuple[float, ...]


class Looked(Protocol):
    """The rounds of an epoch."""

    @property
    def looks(self) -> Looks:
        """How much they count at each age."""
        ...


T = TypeVar("T", bound=Looked)

#: A round is in no more releases.
MOST_LOOKS = 16
#: A round is in one release alone.
ONE_LOOK: Looks = (1.0,)
#: Each look has half the squared weight of the one before.
FOUR_LOOKS: Looks = tuple(math.sqrt(part / 15) for part in (8, 4, 2, 1))


def check_looks(looks: Looks) -> None:
    """Refuse weights by which a round would cost more than one whole look, however it answers."""
    words = f"at most {MOST_LOOKS} weights in (0, 1] whose squares add up to at most 1"
    if not 0 < len(looks) <= MOST_LOOKS or not all(0.0 < weight <= 1.0 for weight in looks):
        raise InvalidArgument("looks", words, looks)
    if math.fsum(weight**2 for weight in looks) > 1.0 + 1e-12:
        raise InvalidArgument("looks", words, looks)
    if reach(looks) > 2.0 + 1e-12:
        raise InvalidArgument(
            "looks", "no weight so large beside others: a late answer would cost more", looks
        )


def reach(looks: Looks) -> float:
    """How far a replaced round moves all releases that look at it, in widths: at most 2.

    The largest root of sum_k f(A_k, E_k), f(A, E) = (A + E)^2 + (A^2 - E^2)^2 (`RewardEncoding`),
    A the looks, and E the same looks some epochs later: the replacement may answer then. An epoch
    that is looked at once and a later one share no release: 2 + sum (w^2 + w^4) <= 4.

    >>> reach((1.0,)), round(reach(FOUR_LOOKS), 12), round(reach((0.95, 0.31)), 3)
    (2.0, 2.0, 2.015)
    """

    def moved(apart: int) -> float:
        silent = (0.0,) * apart
        pairs = zip((*looks, *silent), (*silent, *looks), strict=True)
        return math.fsum((a + e) ** 2 + (a**2 - e**2) ** 2 for a, e in pairs)

    return math.sqrt(max(moved(apart) for apart in range(len(looks) + 1)))


def in_sight(newest: T, earlier: tuple[T, ...]) -> tuple[T, ...]:
    """The newest epoch's rounds and those of earlier epochs that its release looks at, by age.

    What lies behind an epoch that is out of sight is out of sight, too: places are ages.
    """
    ages = takewhile(lambda each: each[0] < len(each[1].looks), enumerate((newest, *earlier)))
    return tuple(each for _, each in ages)
