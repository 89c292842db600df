"""What is promised where reports are mixed: privacy among the honest people of an epoch.

A person's device sends an index that is private by itself, at a level epsilon_0. A shuffler, who
cannot read it, hands an epoch's reports to the server in random order, without anything that says
whose they are. Against everyone but server and shuffler together, each report then hides among the
others (`blanket`), and epsilon_0 may be larger than the epsilon that is promised.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Literal

from discreet import checks
from discreet.errors import InvalidArgument
from discreet.privacy.blanket import Blanket
from discreet.privacy.cap import Cap
from discreet.privacy.cost import PurePrivacy

#: Levels of reports are multiples of 1 / 32: last bits of a machine's arithmetic choose none.
STEPS = 32
#: No report is sent at a higher level, whatever would hide it.
LARGEST_LEVEL = 12


@dataclass(frozen=True)
class ShuffledDP:
    """Reports are mixed before anyone can read them: (epsilon, delta)-privacy in the crowd.

    - `minimum`: no batch of fewer reports is handed up.
    - `answering`: of a batch no group is handed up of which less than this share has reported. A
      group are those whose public action is the same; where actions are private, all of an epoch.
    - `honest`: in every group, of the people asked at least this share is assumed to have honest
      devices, whose reports nobody who looks knows. The others may be anybody's, the server's
      included, and may all report while honest people stay away.

    A group of L asks hides each person among n = (answering - (1 - honest)) L reports, the person's
    own included: of answering L that surely came, all (1 - honest) L of the others may be some. The
    reports of an epoch are sent at the largest level that keeps the promise for the n of its
    smallest group: the rule is public, and a client checks what it is offered.

    Asks are given out in order, and which ask gets which public action is public. So people who
    time their asks can crowd one group: a few percent of an epoch's asks may be all of one group's
    but one. **Nothing here defends against that**: `honest` has to hold in every group. Where
    actions are private there is one group, and nothing to choose.

    A person's device sends at most `rounds_per_user` reports. With k of them each gets epsilon / k,
    and a delta that adds up to the whole: replacing them one after the other leads through k + 1
    studies, each neighbours of the next, with sum_i e^(i epsilon / k) delta_k = delta. This holds
    wherever they fall, also into one batch. Epochs do not add up: others' reports are others'.

    >>> from discreet.privacy.interval import best_window
    >>> privacy, interval_cap = ShuffledDP(1.0, 1e-6), lambda level: best_window(level, 1 << 14)
    >>> privacy.least(1000), privacy.hiding(1000)
    (800, 700)
    >>> [float(privacy.level(asks, interval_cap)) for asks in (20, 200, 1000, 5000)]
    [1.0, 1.84375, 3.03125, 4.46875]
    """

    epsilon: float
    delta: float
    minimum: int = 160
    answering: float = 0.8
    honest: float = 0.9
    rounds_per_user: int = 1
    protect: ClassVar[Literal["decisions"]] = "decisions"

    def __post_init__(self) -> None:
        checked: dict[str, float] = {
            "epsilon": checks.number("epsilon", self.epsilon, above=0.0),
            "delta": checks.number("delta", self.delta, at_least=1e-12),
            "minimum": checks.count("minimum", self.minimum),
            "answering": _share("answering", self.answering),
            "honest": _share("honest", self.honest),
            "rounds_per_user": checks.count("rounds_per_user", self.rounds_per_user),
        }
        if checked["delta"] > min(checked["epsilon"], 0.5):
            raise InvalidArgument("delta", "at most epsilon, and at most 1/2", self.delta)
        if checked["answering"] + checked["honest"] <= 1.0:
            words = "more than 1 - answering: else everyone who reports may be dishonest"
            raise InvalidArgument("honest", words, self.honest)
        if self.epsilon / self.rounds_per_user > LARGEST_LEVEL:
            raise InvalidArgument("epsilon", f"at most {LARGEST_LEVEL} a round", self.epsilon)
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    # -- who hides whom

    def least(self, asks: int) -> int:
        """How many reports a group of so many asks has at least, if it is handed up."""
        return math.ceil(round(self.answering * asks, 9))

    @property
    def shortest(self) -> int:
        """The shortest epoch that may be handed up where no more people answer than must."""
        return math.ceil(round(self.minimum / self.answering, 9))

    def drops(self, reports: int, asks: int) -> bool:
        """Whether so many reports of a group are too few to be handed up; none are none."""
        return 0 < reports < self.least(asks)

    def hiding(self, asks: int) -> int:
        """n: how many honest reports a person hides among, their own included.

        Whoever is dishonest may always report: they are a share of those asked, not of reports.
        """
        dishonest = (1.0 - self.honest) * asks
        return max(1, math.floor(round(self.least(asks) - dishonest, 9)))

    # -- what a report costs

    @property
    def each(self) -> tuple[float, float]:
        """The epsilon and delta that one round may cost."""
        rounds, own = self.rounds_per_user, self.epsilon / self.rounds_per_user
        weights = math.fsum(math.exp(step * own) for step in range(rounds))
        return own, self.delta / weights

    def allows(self, cap: Cap, asks: int) -> bool:
        """Whether reports by this cap keep the promise in a group of so many asks."""
        return _keeps(cap, *self.each, self.hiding(asks))

    def level(self, asks: int, cap_of: Callable[[Fraction], Cap]) -> Fraction:
        """epsilon_0 of reports by the rule `cap_of`, where the smallest group has so many asks.

        The largest multiple of 1 / 32 that a search by halves finds allowed. It is at least what
        is promised: a report of that level needs no crowd.
        """
        (epsilon, delta), crowd = self.each, self.hiding(asks)
        low, high = math.floor(epsilon * STEPS), LARGEST_LEVEL * STEPS + 1
        while high - low > 1:  # a step that does not keep the promise is never taken
            middle = (low + high) // 2
            keeps = _keeps(cap_of(Fraction(middle, STEPS)), epsilon, delta, crowd)
            low, high = (middle, high) if keeps else (low, middle)
        return max(Fraction(low, STEPS), Fraction(epsilon))

    @property
    def cost(self) -> PurePrivacy:
        """What all rounds of a person cost: epsilon, but for a probability of delta."""
        return PurePrivacy(self.epsilon, self.delta)

    @property
    def guarantee(self) -> str:
        """The sentence for the review board."""
        reports = "1 report" if self.rounds_per_user == 1 else f"{self.rounds_per_user} reports"
        return (
            f"Shuffled differential privacy, epsilon = {self.epsilon:g} at delta = {self.delta:g}. "
            f"Unit: one person, in at most {reports}; covered: the decision set, context and "
            "reward of those rounds. "
            "Replace them by anything: the probability of every set of batches that the shuffler "
            "hands up, and so of every release, export and other people's actions, changes by at "
            f"most a factor e^{self.epsilon:g}, plus {self.delta:g}. Deltas of epochs do not add "
            "up: others' reports are others'. "
            "Assumed: the shuffler mixes the reports of an epoch whose public actions are the same "
            "(where actions are private, all of them), takes each person once, hands up no batch "
            f"of fewer than {self.minimum} reports and of it no group of which less than "
            f"{self.answering:.0%} has reported, and does not work together with the server; in "
            f"every group, of the people asked at least {self.honest:.0%} are honest, and nobody "
            "who looks knows their reports; the others may all report. Nothing keeps dishonest "
            "people from timing their asks to crowd one group. "
            "The level of reports is chosen for these alone. Whoever sees "
            "reports before they are mixed and can open them, as server and shuffler together "
            "could, learns of one a factor e^epsilon_0, which every epoch states: that is local "
            "privacy, and needs no crowd. "
            "A reward does not depend on other people's actions; the person's own device is "
            "trusted, keeps to its number of reports and has good random numbers. "
            "Public: the plan, the number of asks and of reports, every epoch, mixed batch and "
            "release. "
            "Not covered: that and when a person took part or answered, a person's own view of "
            "their action, and settings chosen by looking at the raw data."
        )


@lru_cache(maxsize=4096)
def _keeps(cap: Cap, epsilon: float, delta: float, crowd: int) -> bool:
    if cap.is_within(Fraction(epsilon)):
        return True
    if not cap.is_within(Fraction(LARGEST_LEVEL)) or cap.share * cap.size < cap.nearest:
        return False
    return Blanket(cap.size, cap.nearest, cap.share).delta(epsilon, crowd) <= delta


def _share(name: str, value: object) -> float:
    share = checks.number(name, value, above=0.0)
    if share > 1.0:
        raise InvalidArgument(name, "a share of at most 1", share)
    return share
