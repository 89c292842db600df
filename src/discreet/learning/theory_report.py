"""What the theory says about a plan, before any data: every theorem's numbers in one place.

For any private plan it looks at what could be proven with its domain, kernel and budget:
elimination, where asks choose from the whole box, and the paper's Theorems 1 and 3, with noise on
prefix sums or on reports. Which of them the plan itself runs is said, too. Numbers are in units of
rewards.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from discreet.agreement.elimination import Elimination
from discreet.agreement.plan import Plan
from discreet.errors import InvalidArgument, OutOfReach
from discreet.features.kernels import Learned, Structured
from discreet.learning.arms import arms_of
from discreet.learning.elimination_bounds import Foreseen, foreseen
from discreet.learning.elimination_bounds import regret_bound as elimination_bound
from discreet.learning.information import volume
from discreet.learning.regret_bounds import crossover, prior_bound
from discreet.learning.theory import Assumptions, Spectrum, calibrated, width
from discreet.privacy.budget import NonPrivate
from discreet.privacy.correlation import Independent, SquareRoot, Strategy, Tree

#: Theorem 1 and 3 leave out so much.
FAILURE = 0.1


@dataclass(frozen=True)
class Bound:
    """A theorem's bound on regret at each T, and the T from which it beats uniform play."""

    name: str
    failure: float
    regret: tuple[float, ...]
    beats_uniform_from: int | None


@dataclass(frozen=True)
class PrefixNumbers:
    """Theorem 1 at one T: noise of one normal, spectral bounds and width, for rewards within 1."""

    name: str
    noise: float
    shift: float
    smallest: float
    largest: float
    kappa: float
    width: float


@dataclass(frozen=True)
class TheoryReport:
    """Everything that `discreet theory` says."""

    runs: str
    features: int
    kernel_error: float
    mu: float
    norm: float
    noise_std: float
    uniform: float
    rounds: tuple[int, ...]
    arms: int | None
    net_error: float | None
    misfit: float | None
    phases: tuple[Foreseen, ...]
    prefix: tuple[PrefixNumbers, ...]
    bounds: tuple[Bound, ...]


def theory_report(
    plan: Plan, rounds: Sequence[int], *, norm: float | None = None, uniform: float | None = None
) -> TheoryReport:
    """The numbers of every theorem that fits the plan; `uniform` is what uniform play costs a round.

    By default uniform play is taken to cost half of the spread of f.

    >>> from discreet import Box, JointDP, SquaredExponential
    >>> private, kernel = JointDP(1.0, 1e-6), SquaredExponential(0.2)
    >>> plan = Plan(domain=Box({"dose": (0, 10)}), privacy=private, kernel=kernel)
    >>> found = theory_report(plan, [10_000], norm=1.0)
    >>> found.runs, [bound.name for bound in found.bounds]
    ('the practical default: no theorem', ['elimination', 'Theorem 3, tree', 'Theorem 3, square root'])
    """  # noqa: E501
    if isinstance(plan.kernel, Structured):
        raise InvalidArgument("kernel", "one that is named: every theorem rests on its norm")
    if plan.sends_indices:
        raise InvalidArgument(
            "privacy",
            "JointDP, or LocalDP(epsilon, delta) with an encoding that adds noise: no theorem here "
            "is about reports that are indices",
        )
    if isinstance(plan.privacy, NonPrivate) or plan.mu is None:
        raise InvalidArgument("plan", "a private one: without noise these are the usual bounds")
    known = plan.norm if norm is None else norm
    if known is None:
        raise InvalidArgument("norm", "a bound on the norm of f: every theorem rests on it")
    eliminating = _eliminating(plan, known)
    arms = None if eliminating is None else arms_of(eliminating)
    spread = plan.rewards[1] - plan.rewards[0] if arms is None else arms.spread * plan.half_width
    price = spread / 2.0 if uniform is None else uniform
    bounds = list[Bound]()
    if eliminating is not None:
        own = eliminating
        bounds.append(
            _bound(
                "elimination",
                own.premises.failure,
                rounds,
                price,
                lambda t: elimination_bound(own, t),
            )
        )
    for name, strategy in _strategies(plan).items():
        paper = _Paper(plan, strategy, known)
        bounds.append(_bound(f"Theorem 3, {name}", FAILURE, rounds, price, paper.regret))
    return TheoryReport(
        runs=_runs(plan),
        features=plan.map.dimension,
        kernel_error=plan.map.error_bound,
        mu=plan.mu,
        norm=known,
        noise_std=_noise(plan),
        uniform=price,
        rounds=tuple(rounds),
        arms=None if arms is None else len(arms.points),
        net_error=None if arms is None else arms.net_error * plan.half_width,
        misfit=None if arms is None else arms.misfit * plan.half_width,
        phases=() if eliminating is None else _shown(eliminating, max(rounds)),
        prefix=tuple(
            _Paper(plan, strategy, known).numbers(name, max(rounds))
            for name, strategy in _strategies(plan).items()
        ),
        bounds=tuple(bounds),
    )


def _runs(plan: Plan) -> str:
    if plan.eliminates:
        return "elimination, as proven"
    if _plays_the_paper(plan):
        return "Algorithm 3, as proven" if plan.is_local else "the paper's algorithm, as proven"
    return "the practical default: no theorem" if plan.noise is None else "the paper's, practically"


def _plays_the_paper(plan: Plan) -> bool:
    """Whether Theorem 1 itself is played: its numbers are then those of the plan's own rule."""
    return plan.confidence == "theory" and not plan.eliminates


def _noise(plan: Plan) -> float:
    """What rewards are taken for: by Hoeffding half of their range, as `Proven` does, or rho."""
    half = (plan.rewards[1] - plan.rewards[0]) / 2.0
    return half if _plays_the_paper(plan) else plan.noise_std or half


def _strategies(plan: Plan) -> dict[str, Strategy]:
    if plan.is_local:
        return {"sum of reports": Independent()}
    return {"tree": Tree(), "square root": SquareRoot()}


def _eliminating(plan: Plan, norm: float) -> Plan | None:
    """The plan that eliminates with the same domain, kernel and budget; None where none can."""
    if plan.eliminates:
        return replace(plan, norm=norm)
    if plan.decisions != "box" or isinstance(plan.kernel, Learned):
        return None
    try:
        return replace(
            plan,
            confidence="theory",
            noise=None,
            norm=norm,
            buffers=None,
            prior=None,
            encoding="auto",
            looks=None,
            schedule=None,
            exploration=None,
            elimination=Elimination(),
        )
    except InvalidArgument:  # a ball, a predicate, too many coordinates: there is no net
        return None


def _shown(plan: Plan, rounds: int) -> tuple[Foreseen, ...]:
    """The phases that so many rounds reach, in units of rewards."""
    unit = plan.half_width
    return tuple(
        replace(each, clip=each.clip * unit, noise=each.noise * unit, width=each.width * unit)
        for each in foreseen(plan)
        if each.first < rounds
    )


def _bound(
    name: str,
    failure: float,
    rounds: Sequence[int],
    price: float,
    regret: Callable[[int], float],
) -> Bound:
    try:
        found = crossover(regret, uniform=price)
    except OutOfReach:
        found = None
    return Bound(name, failure, tuple(regret(t) for t in rounds), found)


@dataclass(frozen=True)
class _Paper:
    """Theorems 1 and 3 for a plan's features, rewards divided by the larger end of their range."""

    plan: Plan
    strategy: Strategy
    norm: float

    @property
    def _end(self) -> float:
        return max(map(abs, self.plan.rewards))

    @property
    def _world(self) -> Assumptions:
        plan = self.plan
        own = plan.noise_variance / plan.signal_variance
        return Assumptions(
            norm=self.norm / self._end,
            noise=_noise(plan) / self._end,
            error=plan.map.error_bound,
            regularisation=own if _plays_the_paper(plan) else 1.0,
            failure=FAILURE,
        )

    def _spectrum(self, rounds: int) -> Spectrum:
        each = calibrated(self.strategy, releases=rounds, mu=self.plan.mu or 0.0)
        m = self.plan.map.dimension
        return Spectrum.joint(
            self.strategy, each, dimension=m, releases=rounds, failure=FAILURE / 2.0
        )

    def _volume(self, spectrum: Spectrum, rounds: int) -> float:
        return volume(self.plan.map, rounds, self._world.regularisation + spectrum.smallest)

    def regret(self, rounds: int) -> float:
        """Theorem 3 before any data."""
        spectrum, m = self._spectrum(rounds), self.plan.map.dimension
        most = self._volume(spectrum, rounds)
        found = prior_bound(spectrum, self._world, rounds=rounds, dimension=m, volume=most)
        return found * self._end

    def numbers(self, name: str, rounds: int) -> PrefixNumbers:
        """Theorem 1 after so many rounds."""
        spectrum, m = self._spectrum(rounds), self.plan.map.dimension
        most = self._volume(spectrum, rounds)
        widest = width(
            spectrum, self._world, rounds=rounds, log_determinant=math.inf, side=m, volume=most
        )
        each = calibrated(self.strategy, releases=rounds, mu=self.plan.mu or 0.0)
        return PrefixNumbers(
            name,
            each.gram,
            spectrum.shift,
            spectrum.smallest,
            spectrum.largest,
            spectrum.kappa,
            widest,
        )
