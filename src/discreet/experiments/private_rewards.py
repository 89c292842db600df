"""A successor as a baseline: rewards alone are protected, locally, by Laplace noise.

Zhou and Tan (2021) play GP-UCB on rewards that every person randomises at home. What is read here:
their abstract and introduction. They protect rewards alone, the server knows every action and what
could be chosen, so the gram matrix is exact; noise is Laplace's; an estimator by medians of means
on approximate features stands against its heavy tails. The rest is ours:

- rewards are clipped to the range of the plan and scaled to [-1, 1];
- the scale of the noise is exactly that of our promise (`laplace_scale`), so it is less than the
  2 / epsilon of a pure promise;
- GP-UCB with grid features and a constant instead of a proven width, a new decision when a
  twentieth was added, as the paper's algorithm has here (`prefix`);
- medians of means: person t is of group t mod k, each group has its own estimate, and the one that
  is nearest to most others is played by.

Everything is seeded and floating point: **not private**.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.arrays import Floats, Indices
from discreet.errors import InvalidArgument
from discreet.experiments.prefix import NOISY, release_times
from discreet.learning.posterior import Posterior
from discreet.learning.search import Score, maximise
from discreet.simulation.people import People
from discreet.simulation.play import Setting, plan_for
from discreet.simulation.worlds import Crowd, MakeProblem, World

#: Rounds at random before there is an estimate.
FIRST = 20


def laplace_scale(epsilon: float, delta: float) -> float:
    """The scale b of Laplace noise on a number in [-1, 1] that is exactly (epsilon, delta) private.

    Two answers are 2 apart, and a scale of 2 / e has delta(epsilon) = 1 - exp((epsilon - e) / 2):

        b = 2 / (epsilon - 2 ln(1 - delta))

    >>> laplace_scale(1.0, 0.0), round(laplace_scale(1.0, 0.1), 3)
    (2.0, 1.652)
    """
    own = checks.number("epsilon", epsilon, above=0.0)
    if not 0.0 <= delta < 1.0:
        raise InvalidArgument("delta", "a number of at least 0 and below 1", delta)
    return 2.0 / (own - 2.0 * math.log1p(-delta))


@dataclass(frozen=True)
class Rewards:
    """How it is played: the noise of a reward, the groups of medians of means, and the constant."""

    scale: float
    groups: int = 1
    beta: float = 1.0


def simulate_private_rewards(
    make_problem: MakeProblem, way: Rewards, *, rounds: int, seed: int, run: int = 0
) -> Floats:
    """The regret of each round, in the world that `simulate` draws for (seed, run).

    >>> from discreet.simulation.problems import find_problem
    >>> way = Rewards(laplace_scale(1.0, 0.1), groups=3)
    >>> simulate_private_rewards(find_problem("synthetic"), way, rounds=60, seed=1).shape
    (60,)
    """
    world = World.draw(make_problem, seed=seed, run=run)
    plan = plan_for(world.problem, Setting(rounds=rounds), world.decisions, f"rewards {seed}.{run}")
    m, k = plan.map.dimension, way.groups
    grams, crosses = np.zeros((k, m, m)), np.zeros((k, m))
    crowd, regrets, done = Crowd(world, rounds), list[Floats](), 0
    found: Posterior | None = None
    for end in release_times(rounds, every=FIRST, growth=NOISY):
        for people in crowd.parts(end - done):
            points, actions = choose(plan, people, found, way.beta, world.player)
            noise = world.player.laplace(0.0, way.scale, len(people))
            told = plan.all_centred(crowd.answers(actions)) + noise
            phi, group = plan.map(points), (done + np.arange(len(people))) % k
            for each in range(k):
                own = phi[group == each]
                grams[each] += own.T @ own
                crosses[each] += told[group == each] @ own
            regrets.append(people.ceilings() - world.problem.mean(actions))
            done += len(people)
        found = typical(plan, grams, crosses, plan.noise_variance + 2.0 * way.scale**2)
    return np.concatenate(regrets)


def choose(
    plan: Plan, people: People, found: Posterior | None, beta: float, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """The action of each by its upper confidence bound, scaled and natural; at first any."""
    domain = plan.domain
    if found is None:
        actions = people.uniform_actions(rng)
        return domain.encode_numbers(actions), actions
    score, tilt = Score(plan.map, found.whitening, beta), found.coefficients
    if plan.decisions == "box":
        points = np.repeat(maximise(score, domain, tilt[None, :]), len(people), axis=0)
        return points, people.actions(points, None)
    sets = [each for each in people.scaled() if each is not None]
    places: Indices = np.array([np.argmax(score.values(each, tilt)) for each in sets])
    points = np.array([each[place] for each, place in zip(sets, places, strict=True)])
    return points, people.actions(points, places)


def typical(plan: Plan, grams: Floats, crosses: Floats, variance: float) -> Posterior:
    """Of the groups' estimates the one whose median distance to the others is least."""
    prior = np.eye(plan.map.dimension) / plan.signal_variance
    each = [
        Posterior(plan.map, prior + gram / variance, cross / variance)
        for gram, cross in zip(grams, crosses, strict=True)
    ]
    if len(each) == 1:
        return each[0]
    whole = np.sum(grams, axis=0) / variance + prior
    thetas = np.array([one.coefficients for one in each])
    apart = thetas[:, None] - thetas
    lengths = np.sqrt(np.einsum("ijm,mn,ijn->ij", apart, whole, apart))
    return each[int(np.argmin(np.median(lengths, axis=1)))]
