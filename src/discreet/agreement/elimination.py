"""What elimination takes for granted: its arms, and bounds that its author declares.

`Plan(confidence="theory")` with independent noise drops arms that are proven not to be the best,
phase by phase (`learning.elimination`). A proof needs premises. They are public, and part of the
plan: nothing here is looked up in data.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

from discreet import checks
from discreet.agreement.schedule import Schedule
from discreet.arrays import Floats
from discreet.domain.box import Box, Continuous
from discreet.errors import InvalidArgument

Value = float | int | str
#: A net has about so many arms where the plan does not say, and no plan has more than the second.
USUAL_ARMS, MOST_ARMS = 2500, 4096
#: The first phase ends when widths are about this share of the spread of f. Locally n reports in
#: one phase tell no more than in two, so it ends sooner.
FIRST_WIDTH, FIRST_LOCAL_WIDTH = 0.125, 0.5


@dataclass(frozen=True)
class Elimination:
    """The arms, and what is assumed of f; in units of rewards.

    - `arms`: the actions to choose from, one row a list of values in the order of coordinates; by
      default a net of the whole box with `net` points along each continuous coordinate.
    - `means`: what f lies between; by default the range of rewards.
    - `misfit`: how far f may be from the features' span; by default `norm` times the kernel error.
    - `net_error`: how much better than the best arm the best action of the box may be; by default
      what `norm` and the kernel allow, and 0 for arms that were given.
    - `failure`: the probability zeta that the guarantee leaves out.
    - `silence`: at most this share of a phase's people never answers.

    >>> Elimination(means=(0.0, 1.0)).failure
    0.05
    """

    net: int | None = None
    arms: tuple[tuple[Value, ...], ...] | None = None
    means: tuple[float, float] | None = None
    misfit: float | None = None
    net_error: float | None = None
    failure: float = 0.05
    silence: float = 0.0

    def __post_init__(self) -> None:
        for name in ("misfit", "net_error", "failure", "silence"):
            if (value := getattr(self, name)) is not None:
                number = checks.number(f"elimination.{name}", value, at_least=0.0)
                object.__setattr__(self, name, number)
        if not 0.0 < self.failure < 1.0:
            raise InvalidArgument("elimination.failure", "a number between 0 and 1", self.failure)
        if self.silence >= 1.0:
            raise InvalidArgument("elimination.silence", "a share below 1", self.silence)
        if self.net is not None and checks.count("elimination.net", self.net) < 2:
            raise InvalidArgument("elimination.net", "at least 2 points: both ends", self.net)
        if self.arms is not None:
            object.__setattr__(self, "arms", tuple(tuple(row) for row in self.arms))
        if self.means is not None:
            low, high = (checks.number("elimination.means", end) for end in self.means)
            if not low < high:
                raise InvalidArgument("elimination.means", "a pair (low, high), low < high")
            object.__setattr__(self, "means", (low, high))

    def settled(self, domain: Box, rewards: tuple[float, float]) -> "Elimination":
        """With its net chosen, and means that rewards can have.

        >>> Elimination().settled(Box({"x": (0, 1), "y": (0, 1)}), (0.0, 1.0)).net
        50
        """
        means = rewards if self.means is None else self.means
        if means[0] < rewards[0] or means[1] > rewards[1]:
            raise InvalidArgument("elimination.means", "a range within that of rewards", means)
        settled = replace(self, means=means)
        if self.arms is None and self.net is None:
            settled = replace(settled, net=_usual_net(domain))
        points = settled.points(domain)
        if not 2 <= len(np.unique(points, axis=0)) == len(points) <= MOST_ARMS:
            raise InvalidArgument(
                "elimination", f"2 to {MOST_ARMS} different arms; a smaller net, or a list of arms"
            )
        return settled

    def points(self, domain: Box) -> Floats:
        """The scaled arms, one a row."""
        if self.arms is not None:
            if self.net is not None:
                raise InvalidArgument("elimination", "a net or arms, not both")
            return domain.encode([dict(zip(domain.names, row, strict=True)) for row in self.arms])
        if domain.feasible is not None or domain.shape != "box":
            raise InvalidArgument(
                "elimination", "arms: a net has no known error in a ball or under a predicate"
            )
        places = [_places(domain, name, self.net or 2) for name in domain.names]
        if math.prod(map(len, places)) > MOST_ARMS:
            raise InvalidArgument("elimination", f"at most {MOST_ARMS} arms: list them, or a net")
        turns = np.indices([len(each) for each in places]).reshape(len(places), -1)
        return np.hstack([each[turn] for each, turn in zip(places, turns, strict=True)])


def _places(domain: Box, name: str, net: int) -> Floats:
    """The columns of one coordinate's points in the net."""
    if isinstance(domain.coordinate(name), Continuous):
        return np.linspace(0.0, 1.0, net)[:, None]
    return domain.settings(name)


def _usual_net(domain: Box) -> int:
    free = [name for name in domain.names if isinstance(domain.coordinate(name), Continuous)]
    listed = math.prod(len(domain.settings(name)) for name in domain.names if name not in free)
    if not free:
        return 2
    side = math.floor((USUAL_ARMS / listed) ** (1.0 / len(free)) + 1e-9)
    if side < 2:
        raise InvalidArgument("elimination", "arms: the box has too many coordinates for a net")
    return side


def doubling(
    premises: Elimination,
    *,
    features: int,
    noise: float,
    private: float,
    spread: float,
    local: bool,
    horizon: int | None = None,
) -> Schedule:
    """Phases that double the asks; the first is as long as noise of both kinds asks for.

    The width of a phase of n asks is about L sqrt(rho^2 m / n + (s m / n)^2), where a local
    model's n reports have sqrt(n) times the noise s of one. Of a short study it is a quarter.

    >>> doubling(Elimination(), features=10, noise=0.1, private=2.0, spread=1.0, local=False)
    Schedule(first=900, growth=2.0, second=None, least=None)
    """
    log = math.sqrt(2.0 * math.log(8.0 * USUAL_ARMS / premises.failure))
    share = FIRST_LOCAL_WIDTH if local else FIRST_WIDTH
    wanted = (share * spread / log) ** 2  # = (rho^2 m) / n + (s m)^2 / n^2
    a, b = noise**2 * features, (private * features) ** 2
    if local:
        a, b = a + b, 0.0
    n = (a + math.sqrt(a**2 + 4.0 * wanted * b)) / (2.0 * wanted)
    first = max(math.ceil(n), 4 * features)
    return Schedule(first if horizon is None else min(first, -(-horizon // 4)), growth=2.0)
