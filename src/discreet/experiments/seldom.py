"""The paper's algorithm over a whole box, for long: it releases every round and looks now and then.

As `simulate_prefix`, with the noise of a release in each of T rounds, but the server makes
something of a release only at some of them. In between it has nothing new to go by and so plays
the same point again: rounds between two looks cost one search, not one each.

Noise is drawn where it is looked at, with the law it has in the whole sequence: a tree's prefix is
the sum of its dyadic blocks, and blocks that end between two looks are in no later prefix that is
looked at unless they are in the next. Everything is seeded: simulation only, **not private**.
"""

import math
from collections.abc import Callable

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.resolve import OPTIMISM
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.experiments.prefix import View, release_times
from discreet.learning.prefix_belief import Practical, Prefix
from discreet.learning.search import maximise
from discreet.privacy.clipping import Noise
from discreet.privacy.correlation import State, Strategy, Tree
from discreet.simulation.play import (
    MakeProblem,
    Run,
    Setting,
    UniformPlayer,
    World,
    plan_for,
    row_of,
    values_of,
)

#: The server looks again when a twentieth was added, or a hundredth where no noise hides it.
NOISY, NOISELESS = 1.05, 1.01


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
    """Play Algorithm 1 in the world of (seed, run); `noise` is the std of a normal of `strategy`.

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
    rule, regrets = Practical(optimism=beta, releases=rounds), np.empty(rounds)
    m, stds = plan.map.dimension, noise.gram * strategy.stds(rounds)
    gram, cross, view = np.zeros((m, m)), np.zeros(m), None
    noises = _noises(strategy, m * (m + 3) // 2, rounds, world.player)
    for begin, end in zip((0, *times), times, strict=False):
        action, phi = _action(plan, view, world.player)
        answers = [world.problem.reward(action, world.answers) for _ in range(begin, end)]
        regrets[begin:end] = (world.best or 0.0) - float(world.problem.mean(action[None, :])[0])
        gram += (end - begin) * np.outer(phi, phi)
        cross += math.fsum(rule.reward(plan, answer) for answer in answers) * phi
        added = noises(end) if noise.gram > 0.0 else np.zeros(m * (m + 3) // 2)
        seen = gram + noise.gram * _symmetric(added[:-m], m)
        prefix = Prefix(seen, cross + noise.cross * added[-m:], end, float(stds[end - 1]))
        found = rule.estimated(plan, prefix)
        view = View.of(found, rule.width(prefix, found))
    return Run(world.problem, regrets, None, seconds=0.0)


def _action(plan: Plan, view: View | None, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """What is played until the next look, in natural units, and its features."""
    domain = plan.domain
    if view is None:
        action = UniformPlayer(domain, rng).act(None)
        point = domain.encode(values_of(domain, action[None, :]))
    else:
        point = maximise(view.score, domain, view.coefficients[None, :])
        action = row_of(domain, domain.decode(point[0]))
    return action, plan.map(point)[0]


def _noises(
    strategy: Strategy, size: int, rounds: int, rng: np.random.Generator
) -> Callable[[int], Floats]:
    """The noise of the release after t rounds, for growing t."""
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


def _symmetric(entries: Floats, m: int) -> Floats:
    """A GOE matrix from its upper triangle, whose diagonal has sqrt(2) times the std."""
    upper = np.zeros((m, m))
    upper[np.triu_indices(m)] = entries
    symmetric = upper + upper.T
    symmetric[np.diag_indices(m)] *= math.sqrt(2.0) / 2.0
    return symmetric
