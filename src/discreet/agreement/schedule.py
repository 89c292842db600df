"""When a study looks, and how it trades learning for reward: parts of a plan."""

import math
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from discreet import checks
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.features.maps import FeatureMap
from discreet.storage import canonical


@dataclass(frozen=True)
class Schedule:
    """Epochs as intervals of ask indices: `first` asks, `second`, then a fraction of all so far.

        length(0) = first    length(first) = second    length(n) = max(1, ceil((growth - 1) n))

    A short first epoch finds the level and the spread of rewards, so that the second, which
    fills the domain, gets less noise; without `second`, growth begins after the first. Without
    growth (1) every later epoch is one ask: `Schedule(1, growth=1.0)` releases in every round.
    With `least` no later epoch is shorter.

    >>> Schedule(first=20, growth=1.1).length(0), Schedule(first=20, growth=1.1).length(1000)
    (20, 100)
    """

    first: int
    growth: float = 1.1
    second: int | None = None
    least: int | None = field(default=None, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        first = checks.count("schedule.first", self.first)
        if self.second is not None:
            object.__setattr__(self, "second", checks.count("schedule.second", self.second))
        if self.least is not None:
            object.__setattr__(self, "least", checks.count("schedule.least", self.least))
        growth = checks.number("schedule.growth", self.growth, at_least=1.0)
        object.__setattr__(self, "first", first)
        object.__setattr__(self, "growth", growth)

    def length(self, asked: int) -> int:
        """The length of the epoch that opens after `asked` asks."""
        if asked == 0:
            return self.first
        if asked == self.first and self.second is not None:
            return self.second
        return max(self.least or 1, math.ceil(round((self.growth - 1) * asked, 9)))

    def releases(self, asks: int) -> int:
        """How many epochs so many asks take.

        >>> Schedule(1, growth=1.0).releases(1024), Schedule(10, growth=2.0).releases(1024)
        (1024, 8)
        """
        asked = count = 0
        while asked < asks:
            asked, count = asked + self.length(asked), count + 1
        return count

    def asks(self, releases: int, most: int) -> int:
        """How many asks so many epochs have, or `most`.

        >>> doubling = Schedule(10, growth=2.0)
        >>> doubling.asks(3, most=1000), doubling.asks(99, most=1000)
        (40, 1000)
        """
        asked = 0
        for _ in range(releases):
            if asked >= most:
                return most
            asked += self.length(asked)
        return min(asked, most)


#: One score in so many is bold.
BOLD_ONE_IN = 8


@dataclass(frozen=True)
class Exploration:
    """How an ask trades learning for reward, in posterior standard deviations.

        score_j(x) = mean(x) + optimism std(x) + sampling (draw_j(x) - mean(x))

    `optimism` alone is UCB, `sampling=1` alone is Thompson sampling. An epoch holds `draws`
    draws and gives them to its asks in turn, so asks in flight differ without looking at each
    other. With `foresight` draws differ from the mean by as much as the mean may still change until
    the horizon, and no more: what the study will never know is not worth trying; and the fewer
    people come after an epoch, the less its draws differ. With `bold`, which takes the place of
    optimism where people bring contexts, one score in eight is no draw, but

        score_j(x) = mean(x) + bold share std(how the mean at x may still change),

    `share` that of the people to come who come after the epoch: no action is given up while it may
    well turn out the best.

    >>> Exploration(optimism=2.0, sampling=0.0)
    Exploration(optimism=2.0, sampling=0.0, draws=64, foresight=None, bold=None)
    """

    optimism: float = 0.3
    sampling: float = 0.3
    draws: int = 64
    foresight: bool | None = field(default=None, metadata=canonical.OPTIONAL)
    bold: float | None = field(default=None, metadata=canonical.OPTIONAL)

    def __post_init__(self) -> None:
        for name in ("optimism", "sampling"):
            value = checks.number(f"exploration.{name}", getattr(self, name), at_least=0.0)
            object.__setattr__(self, name, value)
        object.__setattr__(self, "draws", checks.count("exploration.draws", self.draws))
        if self.foresight not in (None, True):
            raise InvalidArgument("exploration.foresight", "True, or nothing", self.foresight)
        if self.bold is not None:
            bold = checks.number("exploration.bold", self.bold, above=0.0)
            object.__setattr__(self, "bold", bold)
            if not self.foresight or self.optimism:
                words = "a number only with foresight=True and optimism=0"
                raise InvalidArgument("exploration.bold", words, bold)

    def bold_of(self, draws: int) -> int:
        """How many of so many scores are bold: one in eight.

        >>> Exploration(0.0, foresight=True, bold=2.0).bold_of(64), Exploration().bold_of(64)
        (8, 0)
        """
        return 0 if self.bold is None else draws // BOLD_ONE_IN


# -- which schedule, where the plan names none


#: Over the whole box the first epochs take at most these shares of a horizon: learning begins.
MOST_FIRST, MOST_SECOND = 0.1, 0.2
#: Without privacy at most so many asks fill the whole box.
MOST_FILLING = 100


#: What people with contexts are asked at first, times mu: for level and spread, then for the shape.
PERSONAL_ASKS = (20, 30)


class Asked(Protocol):
    """What a schedule depends on: where actions lie, who chooses them, and how many there are."""

    @property
    def domain(self) -> Box: ...
    @property
    def decisions(self) -> str | None: ...
    @property
    def horizon(self) -> int | None: ...


def exact_schedule(domain: Box, *, box: bool) -> Schedule:
    """Without privacy looking costs nothing but time, so often.

    Over the whole box ten asks a coordinate fill the domain, and at most 100: no design fills a box
    of many coordinates, and then what was learnt guides asks better.
    """
    if box:
        return Schedule(min(10 * domain.dimension, MOST_FILLING), 1.1)
    return Schedule(5 * domain.dimension, 1.05)


def joint_schedule(
    mu: float,
    domain: Box,
    features: FeatureMap,
    *,
    box: bool,
    again: bool,
    horizon: int | None = None,
) -> Schedule:
    """Enough asks to see the function at all, then epochs that grow.

    The gram of n spread rounds has n / d_eff in a typical direction, d_eff = 1 / mean k^2, against
    noise of about 1 / mu; what an epoch tells grows with the square of its length over its noise.
    Over the whole box a first epoch of 25 / mu finds level and spread, and the second fills the
    domain: 5 d_eff / mu, less where d_eff is large; both within shares of the horizon. Where rounds
    are looked at `again`, epochs grow less.
    """
    effective = _effective_dimension(domain, features, box=box)
    if box:
        most = math.inf if horizon is None else horizon
        first = min(25 / min(mu, 1.0), MOST_FIRST * most)
        second = min(min(5 * effective, 25 + 2 * effective) / mu, MOST_SECOND * most)
        return Schedule(
            max(1, math.ceil(first)),
            growth=1.2 if again else 1.3,
            second=max(1, math.ceil(second)),
        )
    typical = math.ceil(5.5 * effective / mu)
    return Schedule(max(10 * domain.dimension, typical), growth=1.1 + 0.3 / max(1.0, mu))


def personal_schedule(mu: float, horizon: int | None) -> Schedule:
    """Where people bring contexts or candidates: 20 / mu asks find level and spread, 30 / mu more
    fill the domain, then epochs grow.

    They are at most a twentieth and a tenth of the horizon: learning always begins.
    """
    most = math.inf if horizon is None else horizon
    level, filled = (each / min(mu, 1.0) for each in PERSONAL_ASKS)
    first, second = min(level, most / 20), min(filled, most / 10)
    return Schedule(max(1, math.ceil(first)), growth=1.2, second=max(1, math.ceil(second)))


def local_schedule(mu: float, domain: Box, features: FeatureMap, *, box: bool) -> Schedule:
    """In the local model the noise of n rounds is sqrt(n) / mu.

    A signal of s times the noise takes (s d_eff / mu)^2 rounds, and splitting them over epochs
    loses nothing. So s is small: 2 in a typical direction, 8 for the level.
    """
    effective = _effective_dimension(domain, features, box=box)
    least, typical = 10 * domain.dimension, math.ceil((2 * effective / mu) ** 2)
    if box:
        level = max(25, math.ceil((8 / mu) ** 2))
        return Schedule(level, growth=1.3, second=max(least, typical))
    return Schedule(max(least, typical), growth=1.1 + 0.3 / max(1.0, mu))


def shuffled_schedule(shortest: int) -> Schedule:
    """Where reports are mixed: epochs that can be handed up, and grow.

    The noise of a group hardly grows with its people, so longer epochs tell more; and the first,
    which fills the domain, is no longer than it must be.
    """
    return Schedule(shortest, growth=1.2, least=shortest)


def index_schedule(variance: float, plan: Asked, features: FeatureMap) -> Schedule:
    """Where reports are indices that tell a residual with this variance, in squared widths.

    Half a squared width more is what rewards themselves vary by. Sums of n reports then have
    variance V n, as in `local_schedule` with 4 / mu^2 = V: 16 V reports tell the level, and over
    the whole box d_eff^2 V more the shape. People with contexts fill the domain with 60 V, at most
    a tenth of the horizon; candidates differ by themselves.
    """
    told, domain = variance + 0.5, plan.domain
    most = math.inf if plan.horizon is None else plan.horizon
    first = max(1, math.ceil(min(max(16.0 * told, 10.0), most / 20)))
    if plan.decisions == "candidates":
        return Schedule(first, growth=1.3)
    second = 60.0 * told
    if plan.decisions == "box":
        effective = _effective_dimension(domain, features, box=True)
        second = max(10.0 * domain.dimension, effective**2 * told)
    return Schedule(first, growth=1.3, second=max(1, math.ceil(min(second, most / 10))))


def check_mixable(schedule: Schedule, minimum: int, horizon: int | None) -> None:
    """Refuse epochs that are too short to be handed up: the reports of all of them would be lost.

    A last epoch may be cut short by the horizon: nobody would have learnt from it.
    """
    if horizon is not None and horizon < minimum:
        words = f"at least {minimum} asks, the smallest batch that is mixed: or nothing is learnt"
        raise InvalidArgument("horizon", words, horizon)
    later = schedule.length(schedule.first + (schedule.second or 0))
    shortest = min(schedule.first, schedule.second or schedule.first, later)
    if shortest < minimum:
        words = f"epochs of at least {minimum} asks, which is the smallest batch"
        raise InvalidArgument("schedule", words, shortest)


def _effective_dimension(domain: Box, features: FeatureMap, *, box: bool) -> float:
    """1 / mean k^2 over the domain; over the whole box, of f around its level."""
    rng = np.random.Generator(np.random.Philox(0))
    phi = features(domain.spread(rng.random((512, len(domain.names)))))
    if box:
        shape = phi - phi.mean(axis=0)
        size = float(np.sum(np.square(shape))) / len(phi)
        phi = shape / math.sqrt(size) if size > 1e-12 else phi  # a constant has no shape
    return 1.0 / float(np.mean(np.square(phi @ phi.T)))
