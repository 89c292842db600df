"""The paper's own mechanism, calibrated exactly: noisy prefix sums, and UCB on them.

What `Bandit` is compared with. After some rounds the server sees the sums of all rounds so far,

    S~ = sum of phi phi^T + GOE(sigma_X)        u~ = sum of y phi + N(0, sigma_u^2 I),

with fixed clipped rewards y in [-1, 1], noise correlated over releases by a strategy of `noise`,
and sigma_X = sensitivity (1 + q) / mu, sigma_u = sensitivity (1 + q) / (sqrt(q) mu) for each
normal (errata, section 1). Then it plays

    argmax of mean(x) + beta std(x),    mean = phi V^-1 u~,    std = rho ||phi||_(V^-1),

where V is S~ made positive, by a shift or by clipping its eigenvalues (errata, section 3). beta
is a practical constant, not the theorem's width.

Everything is seeded and floating point: simulation only, **not private**.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cholesky, eigh, solve_triangular

from discreet import checks
from discreet.errors import InvalidArgument
from discreet.noise import State, Strategy
from discreet.plan import Plan, Schedule
from discreet.residuals import Noise
from discreet.search import Score, maximise
from discreet.simulation import (
    MakeProblem,
    Options,
    Run,
    Setting,
    UniformPlayer,
    World,
    plan_for,
    row_of,
    values_of,
)

Floats = NDArray[np.float64]
Estimator = Literal["shift", "clip"]

#: One set for every strategy: about the best of a small grid at mu = 0.92 on `synthetic`.
BETA = 0.3
SHARE = 1.0
#: The ridge of "clip", in off-diagonal stds times sqrt(m): a GOE's largest eigenvalue is 2.
RIDGE = 4.0
#: The noise of some release exceeds Lambda with at most this probability (the errata's zeta).
FAILURE = 0.1


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
    def of(cls, plan: Plan, positive: Floats, cross: Floats, beta: float) -> "View":
        """From V and u~: mean = phi V^-1 u~, and the std of a Gaussian process with V."""
        lower = cholesky(positive, lower=True)
        whitening = solve_triangular(lower, np.eye(len(lower)), lower=True)
        score = Score(plan.map, whitening, beta * math.sqrt(plan.noise_variance))
        return cls(score, whitening.T @ (whitening @ cross))


@dataclass(frozen=True)
class Rule:
    """How the server plays: constants that it knows before any data.

    >>> Rule(beta=1.0).estimator
    'shift'
    """

    estimator: Estimator = "shift"
    beta: float = BETA
    share: float = SHARE
    ridge: float = RIDGE

    def __post_init__(self) -> None:
        if self.estimator not in ("shift", "clip"):
            raise InvalidArgument("estimator", "'shift' or 'clip'", self.estimator)
        checks.number("beta", self.beta, at_least=0.0)
        checks.number("ridge", self.ridge, at_least=0.0)
        if not 0.0 < checks.number("share", self.share) <= 1.0:
            raise InvalidArgument("share", "a number in (0, 1]", self.share)

    def positive(self, gram: Floats, std: float, prior: float, releases: int) -> Floats:
        """V: S~ + (prior + 2 Lambda) I, or S~ without negative eigenvalues, plus a ridge.

        Lambda = std (2 sqrt(m) + 2 sqrt(ln(4 T / zeta)))  bounds the noise of all T releases.
        """
        m = len(gram)
        if self.estimator == "shift":
            spectral = std * (
                2.0 * math.sqrt(m) + 2.0 * math.sqrt(math.log(4 * releases / FAILURE))
            )
            return _lifted(gram, prior, 2.0 * spectral)
        values, vectors = eigh(gram)
        kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return _lifted(kept, prior, self.ridge * std * math.sqrt(m))


class PrefixPlayer:
    """Algorithm 1 with exact calibration, as a player of simulations. Not private: seeded."""

    def __init__(
        self,
        plan: Plan,
        strategy: Strategy,
        mu: float,
        times: tuple[int, ...],
        rule: Rule,
        rng: np.random.Generator,
    ) -> None:
        self._plan, self._strategy, self._times, self._rule = plan, strategy, times, rule
        self._rng = rng
        m = plan.map.dimension
        self._gram, self._cross = np.zeros((m, m)), np.zeros(m)
        sensitivity = strategy.sensitivity(len(times))
        self._noise = Noise.split(checks.number("mu", mu, above=0.0) / sensitivity, 1.0, rule.share)
        self._stds = self._noise.gram * strategy.stds(len(times))
        self._state = State.start(strategy, size=m * (m + 3) // 2, horizon=len(times))
        self._heard = 0
        self._view: View | None = None
        self._uniform = UniformPlayer(plan.domain, rng)

    def act(self, options: Options) -> Floats:
        """The best action by the latest release; until there is one, any."""
        domain, view = self._plan.domain, self._view
        if view is None:
            action = self._uniform.act(options)
            self._point = domain.encode(values_of(domain, action[None, :]))
        elif options is None or isinstance(options, Mapping):
            context = None if options is None else domain.encode_context(options)
            tilt = view.coefficients[None, :]
            self._point = maximise(view.score, domain, tilt, context=context)
            action = row_of(domain, domain.decode(self._point[0]))
        else:
            points = domain.encode(values_of(domain, options))
            best = int(np.argmax(view.score.values(points, view.coefficients)))
            action, self._point = options[best], points[[best]]
        return action

    def hear(self, reward: float) -> None:
        """Add the round to the sums; look at them when it is time."""
        phi = self._plan.map(self._point)[0]
        self._gram += np.outer(phi, phi)
        self._cross += self._plan.centred(reward) * phi
        self._heard += 1
        if self._heard == self._times[self._state.released]:
            self._release()

    def _release(self) -> None:
        m = len(self._cross)
        normals = self._rng.standard_normal((m * (m + 3) // 2,))
        noise, self._state = self._strategy.advance(self._state, normals)
        released = self._state.released
        upper = np.zeros((m, m))
        upper[np.triu_indices(m)] = self._noise.gram * noise[:-m]
        goe = upper + upper.T  # doubles the diagonal: std 2, where a GOE has sqrt(2)
        goe[np.diag_indices(m)] /= math.sqrt(2.0)
        prior = self._plan.noise_variance / self._plan.signal_variance
        positive = self._rule.positive(
            self._gram + goe, self._stds[released - 1], prior, len(self._times)
        )
        cross = self._cross + self._noise.cross * noise[-m:]
        self._view = View.of(self._plan, positive, cross, self._rule.beta)


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
    estimator: Estimator = "shift",
    beta: float = BETA,
    share: float = SHARE,
    ridge: float = RIDGE,
) -> Run:
    """Play Algorithm 1 in the world that `simulate` draws for (seed, run). Not private: seeded.

    `strategy` correlates `len(release_times(rounds, every=every, growth=growth))` releases.

    >>> from discreet.experiments.problems import find_problem
    >>> from discreet.noise import SquareRoot
    >>> problem = find_problem("synthetic")
    >>> simulate_prefix(
    ...     problem, strategy=SquareRoot(), privacy_mu=1.0, rounds=5, seed=1
    ... ).regrets.shape
    (5,)
    """
    world = World.draw(make_problem, seed=seed, run=run)
    plan = plan_for(world.problem, Setting(rounds=rounds), world.decisions, f"prefix {seed}.{run}")
    times = release_times(rounds, every=every, growth=growth)
    rule = Rule(estimator, beta, share, ridge)
    player = PrefixPlayer(plan, strategy, privacy_mu, times, rule, world.player)
    regrets, seconds = world.play(player, rounds)
    return Run(world.problem, regrets, None, seconds)


def _lifted(matrix: Floats, *by: float) -> Floats:
    return matrix + math.fsum(by) * np.eye(len(matrix))
