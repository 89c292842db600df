"""The paper's own mechanism, calibrated exactly: noisy prefix sums, and UCB on them.

What `Bandit` is compared with. After some rounds the server sees the sums of all rounds so far,

    S~ = sum of phi phi^T + GOE(sigma_X)        u~ = sum of y phi + N(0, sigma_u^2 I),

with fixed clipped rewards y in [-1, 1], noise correlated over releases by a strategy of
`correlation`, and sigma_X = sensitivity (1 + q) / mu, sigma_u = sensitivity (1 + q) / (sqrt(q) mu)
for each normal (errata, section 1). Then it plays

    argmax of mean(x) + beta std(x),    mean = phi V^-1 u~,    std = rho ||phi||_(V^-1),

where V is S~ made positive by a shift (errata, section 3).
The estimators, practical and proven, are those of a real study (`prefix_belief`). Here is only a
fast way to play with any noise, also one that is not calibrated: everything is seeded and floating
point, simulation only, **not private**. `simulate` plays the real thing, with
`Setting(changes={"noise": "tree"})`.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from discreet import checks
from discreet.agreement.plan import Confidence, Plan, Schedule
from discreet.agreement.resolve import OPTIMISM
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.learning.posterior import Posterior
from discreet.learning.prefix_belief import Practical, Prefix, Proven
from discreet.learning.search import Score, maximise
from discreet.learning.theory import calibrated
from discreet.privacy.clipping import Noise
from discreet.privacy.correlation import State, Strategy, Tree
from discreet.simulation.people import Options
from discreet.simulation.play import Run, Setting, UniformPlayer, plan_for
from discreet.simulation.worlds import MakeProblem, World, row_of

#: Who looks seldom looks when a twentieth was added, or a hundredth where no noise hides it.
NOISY, NOISELESS = 1.05, 1.01


def release_times(rounds: int, *, every: int = 1, growth: float | None = None) -> tuple[int, ...]:
    """After how many rounds there is a release: every so many, or at epochs that grow.

    >>> release_times(10, every=4), release_times(100, every=10, growth=2.0)
    ((4, 8, 10), (10, 20, 40, 80, 100))
    """
    checks.count("rounds", rounds)
    checks.count("every", every)
    schedule = None if growth is None else Schedule(every, growth)
    times = [0]
    while times[-1] < rounds:
        length = every if schedule is None else schedule.length(times[-1])
        times.append(min(times[-1] + length, rounds))
    return tuple(times[1:])


@dataclass(frozen=True, eq=False)
class View:
    """What the server makes of a release: the score of an action."""

    score: Score
    coefficients: Floats

    @classmethod
    def of(cls, estimated: Posterior, optimism: float) -> "View":
        """The mean, plus so many standard deviations."""
        score = Score(estimated.features, estimated.whitening, optimism)
        return cls(score, estimated.coefficients)


class Server(Protocol):
    """How the server plays: what it takes of a reward, and what it makes of a prefix."""

    def reward(self, plan: Plan, reward: float) -> float:
        """What is summed up: within [-1, 1]."""
        ...

    def estimated(self, plan: Plan, prefix: Prefix) -> Posterior:
        """What it makes of a release."""
        ...

    def width(self, prefix: Prefix, found: Posterior) -> float:
        """How many standard deviations it adds."""
        ...


class PrefixPlayer:
    """Algorithm 1, as a player of simulations; `noise` is the std of one normal. Not private.

    It looks after `times` rounds. Each look is the next release; or, where `every_round`, there is
    a release in every round and it looks at some of them. Between two looks it has nothing new to
    go by: over a whole box it plays the same point again, which costs no search.
    """

    #: The std of the gram's diagonal, in off-diagonal stds: a GOE's.
    diagonal = math.sqrt(2.0)

    def __init__(
        self,
        plan: Plan,
        strategy: Strategy,
        noise: Noise,
        times: tuple[int, ...],
        rule: Server,
        rng: np.random.Generator,
        *,
        every_round: bool = False,
    ) -> None:
        releases = times if every_round else range(1, len(times) + 1)
        self._plan, self._rule, self._rng, self._noise = plan, rule, rng, noise
        m = plan.map.dimension
        self._gram, self._cross = np.zeros((m, m)), np.zeros(m)
        self._stds = noise.gram * strategy.stds(releases[-1])
        self._noises = _noises(strategy, m * (m + 3) // 2, releases[-1], rng)
        self._looks = iter(zip(times, releases, strict=True))
        self._next = next(self._looks)
        self._heard = 0
        self._view: View | None = None
        self._kept: tuple[Floats, Floats] | None = None
        self._answers: list[float] = []

    def act(self, options: Options) -> Floats:
        """The best action by the latest release; until there is one, any."""
        domain, view = self._plan.domain, self._view
        if options is None and self._kept is not None:
            action, self._point = self._kept
        elif view is None:
            action = UniformPlayer(domain, self._rng).act(options)
            self._point = domain.encode_numbers(action[None, :])
        elif options is None or isinstance(options, Mapping):
            context = None if options is None else domain.encode_context(options)
            tilt = view.coefficients[None, :]
            self._point = maximise(view.score, domain, tilt, context=context)
            action = row_of(domain, domain.decode(self._point[0]))
            self._kept = (action, self._point) if options is None else None
        else:
            points = domain.encode_numbers(options)
            best = int(np.argmax(view.score.values(points, view.coefficients)))
            action, self._point = options[best], points[[best]]
        return action

    def hear(self, reward: float) -> None:
        """Add the round to the sums; look at them when it is time."""
        self._heard += 1
        self._answers.append(self._rule.reward(self._plan, reward))
        is_time = self._heard == self._next[0]
        if self._kept is None or is_time:  # rounds at one point are added together
            phi = self._plan.map(self._point)[0]
            self._gram += len(self._answers) * np.outer(phi, phi)
            self._cross += math.fsum(self._answers) * phi
            self._answers.clear()
        if is_time:
            self._look(self._next[1])
            self._next = next(self._looks, (0, 0))

    def _look(self, release: int) -> None:
        m = len(self._cross)
        noise = self._noises(release) if self._noise.gram > 0.0 else np.zeros(m * (m + 3) // 2)
        upper = np.zeros((m, m))
        upper[np.triu_indices(m)] = self._noise.gram * noise[:-m]
        symmetric = upper + upper.T  # doubles the diagonal
        symmetric[np.diag_indices(m)] *= self.diagonal / 2.0
        prefix = Prefix(
            self._gram + symmetric,
            self._cross + self._noise.cross * noise[-m:],
            self._heard,
            float(self._stds[release - 1]),
        )
        found = self._rule.estimated(self._plan, prefix)
        self._view, self._kept = View.of(found, self._rule.width(prefix, found)), None


def _noises(
    strategy: Strategy, size: int, rounds: int, rng: np.random.Generator
) -> Callable[[int], Floats]:
    """The noise of the t-th release, for growing t; only those that are looked at are drawn."""
    if isinstance(strategy, Tree):
        return _Blocks(size, rng)
    return _Stream(strategy, size, rounds, rng)


class _Blocks:
    """A tree's noise: the blocks of [1, t] are known by their ends, t without its lowest bits."""

    def __init__(self, size: int, rng: np.random.Generator) -> None:
        self._size, self._rng, self._kept = size, rng, dict[int, Floats]()

    def __call__(self, t: int) -> Floats:
        """The sum of the blocks of [1, t], new ones freshly drawn."""
        ends: list[int] = []
        while t:
            ends.append(t)
            t -= t & -t
        self._kept = {
            end: self._kept[end] if end in self._kept else self._rng.standard_normal(self._size)
            for end in ends
        }
        return np.sum(list(self._kept.values()), axis=0)


class _Stream:
    """Any strategy's noise, advanced release by release."""

    def __init__(
        self, strategy: Strategy, size: int, rounds: int, rng: np.random.Generator
    ) -> None:
        self._strategy, self._size, self._rng = strategy, size, rng
        self._state = State.start(strategy, size=size, horizon=rounds)

    def __call__(self, t: int) -> Floats:
        """The noise of release t, through all before it."""
        noise = np.zeros(self._size)
        while self._state.released < t:
            normals = self._rng.standard_normal(self._size)
            noise, self._state = self._strategy.advance(self._state, normals)
        return noise


def simulate_prefix(
    make_problem: MakeProblem,
    *,
    strategy: Strategy,
    privacy_mu: float,
    rounds: int,
    seed: int,
    run: int = 0,
    every: int = 1,
    growth: float | None = None,
    confidence: Confidence = "practical",
    norm: float = 1.0,
    beta: float = OPTIMISM,
) -> Run:
    """Play Algorithm 1 in the world that `simulate` draws for (seed, run). Not private: seeded.

    `strategy` correlates `len(release_times(rounds, every=every, growth=growth))` releases.
    `confidence="theory"` plays it as proven, for functions of at most this `norm` (`Proven`);
    beta is of the practical rule alone.

    >>> from discreet.simulation.problems import find_problem
    >>> from discreet.privacy.correlation import SquareRoot
    >>> problem = find_problem("synthetic")
    >>> simulate_prefix(
    ...     problem, strategy=SquareRoot(), privacy_mu=1.0, rounds=5, seed=1
    ... ).regrets.shape
    (5,)
    """
    world = World.draw(make_problem, seed=seed, run=run)
    plan = plan_for(world.problem, Setting(rounds=rounds), world.decisions, f"prefix {seed}.{run}")
    times = release_times(rounds, every=every, growth=growth)
    noise = calibrated(strategy, releases=len(times), mu=privacy_mu)
    rule: Server = Practical(beta, len(times))
    if confidence == "theory":
        rule = Proven.of(plan, strategy, noise, len(times), norm)
    elif confidence != "practical":
        raise InvalidArgument("confidence", "'practical' or 'theory'", confidence)
    player = PrefixPlayer(plan, strategy, noise, times, rule, world.player)
    regrets, seconds = world.play(player, rounds)
    return Run(world.problem, regrets, None, seconds)


def simulate_seldom(
    make_problem: MakeProblem,
    *,
    strategy: Strategy,
    noise: Noise,
    rounds: int,
    seed: int,
    run: int = 0,
    growth: float | None = None,
    beta: float = OPTIMISM,
) -> Run:
    """As `simulate_prefix` over a whole box, for long: a release every round, looked at seldom.

    `noise` is the std of a normal of `strategy`; looks are a twentieth apart, or as `growth` says.

    >>> from discreet.simulation.problems import find_problem
    >>> simulate_seldom(
    ...     find_problem("camelback"), strategy=Tree(), noise=Noise(5.0, 5.0), rounds=40, seed=1
    ... ).regrets.shape
    (40,)
    """
    world = World.draw(make_problem, seed=seed, run=run)
    if world.decisions != "box":
        raise InvalidArgument("make_problem", "a problem whose whole box is allowed")
    plan = plan_for(world.problem, Setting(rounds=rounds), world.decisions, f"looks {seed}.{run}")
    usual = NOISY if noise.gram > 0.0 else NOISELESS
    times = release_times(rounds, every=1, growth=growth or usual)
    rule = Practical(optimism=beta, releases=rounds)
    player = PrefixPlayer(plan, strategy, noise, times, rule, world.player, every_round=True)
    regrets, seconds = world.play(player, rounds)
    return Run(world.problem, regrets, None, seconds)
