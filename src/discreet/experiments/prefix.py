"""The paper's own mechanism, calibrated exactly: noisy prefix sums, and UCB on them.

What `Bandit` is compared with. After some rounds the server sees the sums of all rounds so far,

    S~ = sum of phi phi^T + GOE(sigma_X)        u~ = sum of y phi + N(0, sigma_u^2 I),

with fixed clipped rewards y in [-1, 1], noise correlated over releases by a strategy of `noise`,
and sigma_X = sensitivity (1 + q) / mu, sigma_u = sensitivity (1 + q) / (sqrt(q) mu) for each
normal (errata, section 1). Then it plays

    argmax of mean(x) + beta std(x),    mean = phi V^-1 u~,    std = rho ||phi||_(V^-1),

where V is S~ made positive, by a shift or by clipping its eigenvalues (errata, section 3).
`Rule` has a practical constant for beta. `Proven` has the shift and the width of Theorem 1, so
that the algorithm runs exactly as proven.

Everything is seeded and floating point: simulation only, **not private**.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from discreet import checks
from discreet.errors import InvalidArgument
from discreet.noise import State, Strategy
from discreet.plan import Plan, Schedule
from discreet.posterior import Posterior
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
from discreet.theory import Assumptions, Spectrum, calibrated, estimate, log_determinant, width

Floats = NDArray[np.float64]
Estimator = Literal["shift", "clip"]
Confidence = Literal["practical", "theory"]

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
class Prefix:
    """A release: noisy sums of the first `rounds` rounds, and the std of the gram's noise."""

    gram: Floats
    cross: Floats
    rounds: int
    std: float


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
    """How the server plays: what it takes of a reward, and what it makes of a release."""

    def reward(self, plan: Plan, reward: float) -> float:
        """What is summed up: within [-1, 1]."""
        ...

    def view(self, plan: Plan, prefix: Prefix) -> View:
        """How it scores actions from now on."""
        ...


@dataclass(frozen=True)
class Rule:
    """How the server plays with practical confidence: constants known before any data.

    >>> Rule(beta=1.0).estimator
    'shift'
    """

    estimator: Estimator = "shift"
    beta: float = BETA
    ridge: float = RIDGE
    releases: int = 1

    def __post_init__(self) -> None:
        if self.estimator not in ("shift", "clip"):
            raise InvalidArgument("estimator", "'shift' or 'clip'", self.estimator)
        checks.number("beta", self.beta, at_least=0.0)
        checks.number("ridge", self.ridge, at_least=0.0)
        checks.count("releases", self.releases)

    def reward(self, plan: Plan, reward: float) -> float:
        """Clipped, centred and scaled to [-1, 1]."""
        return plan.centred(reward)

    def view(self, plan: Plan, prefix: Prefix) -> View:
        """A Gaussian process with V, and a constant number of its standard deviations."""
        prior = plan.noise_variance / plan.signal_variance
        positive = self.positive(prefix.gram, prefix.std, prior)
        return View.of(
            Posterior(plan.map, positive, prefix.cross), self.beta * math.sqrt(plan.noise_variance)
        )

    def positive(self, gram: Floats, std: float, prior: float) -> Floats:
        """V: S~ + (prior + 2 Lambda) I, or S~ without negative eigenvalues, plus a ridge.

        Lambda = std (2 sqrt(m) + 2 sqrt(ln(4 T / zeta)))  bounds the noise of all T releases.
        """
        m = len(gram)
        if self.estimator == "shift":
            spectral = std * (
                2.0 * math.sqrt(m) + 2.0 * math.sqrt(math.log(4 * self.releases / FAILURE))
            )
            return _lifted(gram, prior, 2.0 * spectral)
        values, vectors = eigh(gram)
        kept = (vectors * np.maximum(values, 0.0)) @ vectors.T
        return _lifted(kept, prior, self.ridge * std * math.sqrt(m))


@dataclass(frozen=True)
class Proven:
    """The paper's rule as proven: its shift, and the width of Theorem 1 (`theory`).

    Rewards are divided by the larger end of their range but not centred: f, and not f minus a
    constant, has a norm of at most B. They must lie in the range, so that clipping moves no mean;
    then their noise is sub-Gaussian with half the range (Hoeffding).
    """

    spectrum: Spectrum
    assumptions: Assumptions

    @classmethod
    def of(
        cls, plan: Plan, strategy: Strategy, noise: Noise, releases: int, norm: float
    ) -> "Proven":
        """Before any data; `norm` is B, in units of the larger end of the rewards' range."""
        assumptions = Assumptions(
            norm=norm,
            noise=plan.half_width / _end(plan),
            error=plan.map.error_bound,
            regularisation=plan.noise_variance / plan.signal_variance,
            failure=FAILURE,
        )
        m, half = plan.map.dimension, FAILURE / 2.0
        spectrum = Spectrum.joint(strategy, noise, dimension=m, releases=releases, failure=half)
        return cls(spectrum, assumptions)

    def reward(self, plan: Plan, reward: float) -> float:
        """Clipped and scaled to at most 1."""
        return plan.clip(reward) / _end(plan)

    def view(self, plan: Plan, prefix: Prefix) -> View:
        """mean + W_t ||phi||_(V^-1), Algorithm 1."""
        found = self.estimated(plan, prefix)
        return View.of(found, self.width(prefix, found))

    def estimated(self, plan: Plan, prefix: Prefix) -> Posterior:
        """V = S~ + (lambda + shift) I, and u~."""
        regularisation, shift = self.assumptions.regularisation, self.spectrum.shift
        return estimate(
            plan.map, prefix.gram, prefix.cross, regularisation=regularisation, shift=shift
        )

    def width(self, prefix: Prefix, found: Posterior) -> float:
        """W_t of Theorem 1, from the released matrix."""
        return width(
            self.spectrum,
            self.assumptions,
            rounds=prefix.rounds,
            log_determinant=log_determinant(found),
            side=len(prefix.cross),
        )


class PrefixPlayer:
    """Algorithm 1, as a player of simulations; `noise` is the std of one normal. Not private."""

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
    ) -> None:
        self._plan, self._strategy, self._times, self._rule = plan, strategy, times, rule
        self._rng, self._noise = rng, noise
        m = plan.map.dimension
        self._gram, self._cross = np.zeros((m, m)), np.zeros(m)
        self._stds = noise.gram * strategy.stds(len(times))
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
        self._cross += self._rule.reward(self._plan, reward) * phi
        self._heard += 1
        if self._heard == self._times[self._state.released]:
            self._release()

    def _release(self) -> None:
        m = len(self._cross)
        normals = self._rng.standard_normal((m * (m + 3) // 2,))
        noise, self._state = self._strategy.advance(self._state, normals)
        upper = np.zeros((m, m))
        upper[np.triu_indices(m)] = self._noise.gram * noise[:-m]
        symmetric = upper + upper.T  # doubles the diagonal
        symmetric[np.diag_indices(m)] *= self.diagonal / 2.0
        prefix = Prefix(
            self._gram + symmetric,
            self._cross + self._noise.cross * noise[-m:],
            self._heard,
            float(self._stds[self._state.released - 1]),
        )
        self._view = self._rule.view(self._plan, prefix)


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
    estimator: Estimator = "shift",
    beta: float = BETA,
    share: float = SHARE,
    ridge: float = RIDGE,
) -> Run:
    """Play Algorithm 1 in the world that `simulate` draws for (seed, run). Not private: seeded.

    `strategy` correlates `len(release_times(rounds, every=every, growth=growth))` releases.
    `confidence="theory"` plays it as proven, for functions of at most this `norm` (`Proven`);
    estimator, beta and ridge are of the practical rule alone.

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
    if not 0.0 < checks.number("share", share) <= 1.0:
        raise InvalidArgument("share", "a number in (0, 1]", share)
    noise = calibrated(strategy, releases=len(times), mu=privacy_mu, share=share)
    rule: Server = Rule(estimator, beta, ridge, len(times))
    if confidence == "theory":
        rule = Proven.of(plan, strategy, noise, len(times), norm)
    elif confidence != "practical":
        raise InvalidArgument("confidence", "'practical' or 'theory'", confidence)
    player = PrefixPlayer(plan, strategy, noise, times, rule, world.player)
    regrets, seconds = world.play(player, rounds)
    return Run(world.problem, regrets, None, seconds)


def _end(plan: Plan) -> float:
    """The larger end of the rewards' range: R."""
    return max(map(abs, plan.rewards))


def _lifted(matrix: Floats, *by: float) -> Floats:
    return matrix + math.fsum(by) * np.eye(len(matrix))
