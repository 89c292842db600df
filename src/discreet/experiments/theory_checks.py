"""The theory against dice: are its bounds true, how far off, and when do they say anything?

python -m discreet.experiments.theory_checks
"""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import chain

import numpy as np

from discreet.agreement.plan import Plan
from discreet.arrays import Floats
from discreet.experiments.prefix import PrefixPlayer, release_times
from discreet.features.choose import choose
from discreet.features.maps import FeatureMap
from discreet.features.quadrature import SMALLEST_ERROR
from discreet.learning.information import volume
from discreet.learning.posterior import Posterior
from discreet.learning.prefix_belief import Prefix, Proven
from discreet.learning.regret_bounds import crossover, prior_bound
from discreet.learning.theory import Assumptions, Levels, Spectrum, calibrated
from discreet.privacy.correlation import BLT, Independent, SquareRoot, State, Strategy, Tree
from discreet.privacy.cost import GaussianPrivacy
from discreet.simulation.play import Setting, plan_for
from discreet.simulation.problems import Bumps, find_problem
from discreet.simulation.worlds import MakeProblem, World

STRATEGIES: dict[str, Strategy] = {
    "sum of reports": Independent(),
    "tree": Tree(),
    "square root": SquareRoot(),
    "BLT": BLT.fit(64),
}
#: How many normals are drawn at once.
AT_ONCE = 1 << 22
#: What uniform play costs a round on the synthetic problem, measured.
UNIFORM = 0.54


# -- spectral bounds


@dataclass(frozen=True)
class Tightness:
    """A bound on the noise of all releases, against draws of it."""

    violated: float
    ratio: float


def tightness(
    strategy: Strategy,
    *,
    dimension: int,
    releases: int,
    draws: int,
    failure: float,
    rng: np.random.Generator,
) -> Tightness:
    """How often some ||H_t|| exceeds the bound, and bound / empirical (1 - failure)-quantile."""
    bound = Levels.of(strategy, releases).norm(dimension, failure=failure)
    entries = dimension * (dimension + 1) // 2
    together = max(1, AT_ONCE // (releases * entries))
    largest = np.concatenate(
        [
            _largest_norms(strategy, dimension, releases, min(together, draws - done), rng)
            for done in range(0, draws, together)
        ]
    )
    quantile = float(np.quantile(largest, 1.0 - failure))
    return Tightness(float(np.mean(largest > bound)), bound / quantile)


def _largest_norms(
    strategy: Strategy, dimension: int, releases: int, paths: int, rng: np.random.Generator
) -> Floats:
    """The largest ||H_t|| of each of so many paths; their entries are streams of their own."""
    entries = dimension * (dimension + 1) // 2
    state = State.start(strategy, size=paths * entries, horizon=releases)
    largest = np.zeros(paths)
    for _ in range(releases):
        noise, state = strategy.advance(state, rng.standard_normal((paths * entries,)))
        values = np.linalg.eigvalsh(symmetric(noise.reshape(paths, entries), dimension))
        largest = np.maximum(largest, np.abs(values).max(axis=1))
    return largest


def symmetric(entries: Floats, dimension: int) -> Floats:
    """GOE matrices from rows of normals, one for each entry of the upper triangle."""
    matrices = np.zeros((len(entries), dimension, dimension))
    rows, columns = np.triu_indices(dimension)
    matrices[:, rows, columns] = entries
    matrices += matrices.transpose(0, 2, 1)  # doubles the diagonal: std 2, where a GOE has sqrt(2)
    matrices[:, range(dimension), range(dimension)] /= math.sqrt(2.0)
    return matrices


# -- widths


@dataclass(eq=False)
class Watched:
    """Plays as proven, and remembers how far the truth came out of the width, at its worst."""

    proven: Proven
    phi: Floats
    truth: Floats
    worst: list[float] = field(default_factory=list[float])

    def reward(self, plan: Plan, reward: float) -> float:
        """As proven."""
        return self.proven.reward(plan, reward)

    def estimated(self, plan: Plan, prefix: Prefix) -> Posterior:
        """As proven."""
        return self.proven.estimated(plan, prefix)

    def width(self, prefix: Prefix, found: Posterior) -> float:
        """As proven; |f - mean| in units of W_t ||phi||_(V^-1) + B epsilon."""
        a = self.proven.assumptions
        multiplier = self.proven.width(prefix, found)
        stds = np.linalg.norm(self.phi @ found.whitening.T, axis=1)
        errors = np.abs(self.truth - self.phi @ found.coefficients)
        self.worst.append(float(np.max(errors / (multiplier * stds + a.norm * a.error))))
        return multiplier


def worst_share(
    make_problem: MakeProblem,
    *,
    strategy: Strategy,
    mu: float,
    rounds: int,
    seed: int,
    run: int,
    points: int = 1000,
) -> float:
    """The largest |f - mean| / width over all rounds and points: contained if at most 1."""
    world = World.draw(make_problem, seed=seed, run=run)
    plan = plan_for(world.problem, Setting(rounds=rounds), world.decisions, f"widths {seed}.{run}")
    noise = calibrated(strategy, releases=rounds, mu=mu)
    proven = Proven.of(plan, strategy, noise, rounds, norm=1.0)
    dice = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, run, 1])))
    scaled = plan.domain.spread(dice.random((2 * points, len(plan.domain.names))))[:points]
    truth = world.problem.mean(plan.domain.numbers(scaled)) / max(map(abs, plan.rewards))
    watched = Watched(proven, plan.map(scaled), truth)
    times = release_times(rounds)
    world.play(PrefixPlayer(plan, strategy, noise, times, watched, world.player), rounds)
    return max(watched.worst)


# -- regret


def informative_from(strategy: Strategy, *, mu: float, uniform: float, norm: float = 1.0) -> int:
    """The T from which the regret bound beats uniform play on the synthetic problem.

    Features are chosen for a kernel error of about 1 / sqrt(T): with a fixed error the bound would
    grow like T. Rewards are 0 or 1: their noise is 1/2-sub-Gaussian.
    """

    def bound(rounds: int) -> float:
        return min(foreseen_regret(strategy, rounds, mu=mu, norm=norm, spare=s) for s in SPARE)

    return crossover(bound, uniform=uniform)


def foreseen_regret(
    strategy: Strategy, rounds: int, *, mu: float, norm: float, spare: int
) -> float:
    """Theorem 3 before any data, with a kernel error of 2^-spare / sqrt(T)."""
    wanted = 2.0 ** -math.ceil(math.log2(rounds) / 2.0 + spare)
    features = _features(max(wanted, SMALLEST_ERROR))
    m, error = features.dimension, features.error_bound
    each = calibrated(strategy, releases=rounds, mu=mu)
    world = Assumptions(norm=norm, noise=0.5, error=error)
    spectrum = Spectrum.joint(
        strategy, each, dimension=m, releases=rounds, failure=world.failure / 2.0
    )
    floor = world.regularisation + spectrum.smallest
    most = volume(features, rounds, floor)
    return prior_bound(spectrum, world, rounds=rounds, dimension=m, volume=most)


#: How many bits more than 1 / sqrt(T) the kernel error may have.
SPARE = (1, 3, 5)


@cache
def _features(error: float) -> FeatureMap:
    kernel = Bumps.draw(np.random.Generator(np.random.Philox(0))).kernel
    return choose(kernel, widths=(1.0, 1.0), diameter=1.0, error=error)


# -- the figures, a line at a time


def spectral_lines(draws: int = 2000) -> Iterator[str]:
    """How tight the spectral bounds are at zeta = 0.1."""
    rng = np.random.Generator(np.random.Philox(1))
    yield "| noise | features | releases | violated | bound / quantile |"
    yield "|---|---|---|---|---|"
    for m, releases in ((69, 1), (16, 64), (69, 16)):
        for name, strategy in STRATEGIES.items():
            found = tightness(
                strategy, dimension=m, releases=releases, draws=draws, failure=0.1, rng=rng
            )
            yield f"| {name} | {m} | {releases} | {found.violated:.4f} | {found.ratio:.2f} |"


def crossover_lines(uniform: float = UNIFORM) -> Iterator[str]:
    """From which T the regret bound says anything."""
    yield "| epsilon | noise | from T |"
    yield "|---|---|---|"
    for epsilon in (0.1, 1.0, 10.0):
        mu = GaussianPrivacy.of(epsilon, 0.1).mu
        for name in ("sum of reports", "tree", "square root"):
            found = informative_from(STRATEGIES[name], mu=mu, uniform=uniform)
            yield f"| {epsilon:g} | {name} | {found:.1e} |"


def coverage_lines(runs: int = 200, rounds: int = 256, epsilon: float = 1.0) -> Iterator[str]:
    """In how many runs the widths contain the truth, and how much of them it takes."""
    mu, strategy = GaussianPrivacy.of(epsilon, 0.1).mu, BLT.fit(rounds)
    problem = find_problem("synthetic")
    worst = np.array(
        [
            worst_share(problem, strategy=strategy, mu=mu, rounds=rounds, seed=0, run=run)
            for run in range(runs)
        ]
    )
    yield f"{np.mean(worst <= 1.0):.3f} of {runs} runs of {rounds} rounds lie within the widths"
    yield f"largest error of a run: {worst.mean():.3f} of the width; of all: {worst.max():.3f}"


if __name__ == "__main__":
    for line in chain(spectral_lines(), crossover_lines(), coverage_lines()):
        sys.stdout.write(line + "\n")
