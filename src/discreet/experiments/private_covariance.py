"""A successor as a baseline: batches, a private covariance, and regression in its coordinates.

Pavlovic, Zhao and Salgia (2025) play kernel bandits whose contexts are drawn from a law, jointly
private in contexts and rewards, with regret sqrt(gamma T) + gamma / epsilon. What is read here:
their abstracts. A private estimate of the covariance and private random projections give a ridge
regression of low sensitivity, and so the cost of privacy is added. The rest is ours:

- batches double, as many people as all before; in a batch everybody takes at random one of the
  options that no earlier batch excludes, so that people of a batch are independent draws;
- half of a batch releases its second moments, noise 1 / mu on an off-diagonal entry: two unit
  vectors' are sqrt(2) apart, and a GOE halves squares (`whitening_of` keeps what noise leaves);
- the other half releases gram and cross in coordinates that have covariance about 1 / (LEEWAY r),
  rows made no longer than 1, noise 2 / mu on each (`Noise.split`). In place of random projections
  there are the leading directions of the estimate: they lose less;
- an option is excluded where its upper bound, `beta` deviations above, lies below another's lower
  bound: a constant of ours, where the theorem has one of its own;
- where the whole box is allowed nobody brings anything: the arms are a public net, moments
  and gram are exact, and a batch releases its cross alone, noise 2 / mu.

A person is in one half of one batch, so a study costs mu. Everything is seeded and floating
point: **not private**.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from discreet.agreement.elimination import Elimination
from discreet.agreement.plan import Plan
from discreet.arrays import Floats, Indices, Mask
from discreet.errors import InvalidArgument
from discreet.simulation.people import People
from discreet.simulation.play import Setting, plan_for
from discreet.simulation.worlds import Crowd, MakeProblem, World

#: How much longer than on average rows may be before they are shortened, squared.
LEEWAY = 2.0
#: People of the first batch, in features over mu.
FIRST = 4.0


@dataclass(frozen=True, eq=False)
class Interval:
    """What a batch says of options: mean -+ beta deviations, by their features."""

    whitening: Floats
    theta: Floats
    covariance: Floats
    unseen: float
    beta: float

    def at(self, phi: Floats) -> tuple[Floats, Floats]:
        """Lower and upper bounds, one for each row."""
        g = phi @ self.whitening.T
        onto = np.linalg.pinv(self.whitening) @ self.whitening
        left = np.square(phi - phi @ onto).sum(axis=1)  # what no direction sees is as before
        variance = np.einsum("nr,rs,ns->n", g, self.covariance, g) + self.unseen * left
        mean, margin = g @ self.theta, self.beta * np.sqrt(np.maximum(variance, 0.0))
        return mean - margin, mean + margin


def moment_noise(mu: float) -> float:
    """On an off-diagonal entry of phi phi^T, ||phi|| <= 1: two are sqrt(2) apart, a GOE halves it.

    >>> moment_noise(0.5)
    2.0
    """
    return 1.0 / mu


def regression_noise(mu: float) -> float:
    """On gram and cross of rows of at most 1, or on cross alone: in its units two are 2 apart.

        (1 - c^2) + (2 + 2 c) <= 4        c the cosine of two rows with answers 1 and -1

    >>> regression_noise(0.5)
    4.0
    """
    return 2.0 / mu


def shortened(g: Floats, told: Floats) -> tuple[Floats, Floats]:
    """Rows and answers of those whose rows are longer than 1, weighed so that they are not."""
    weights = np.minimum(1.0, 1.0 / np.maximum(np.linalg.norm(g, axis=1), 1e-300))
    return g * weights[:, None], told * weights


def whitening_of(moments: Floats, noise: float, people: int) -> Floats:
    """Directions that stand out of the noise on moments, scaled to a covariance of 1 / (c r).

    Noise of std sigma has a norm of about 2 sqrt(m) sigma; at least one direction is kept.

    >>> whitening_of(np.diag([90.0, 10.0]), 0.1, 100).shape
    (2, 2)
    """
    values, vectors = np.linalg.eigh((moments + moments.T) / 2.0 / people)
    floor = 2.0 * math.sqrt(len(moments)) * noise / people
    kept = values > max(floor, 1e-12)
    kept[-1] = True
    scale = np.sqrt(LEEWAY * kept.sum() * np.maximum(values[kept], 1e-12))
    return (vectors[:, kept] / scale).T


def simulate_private_covariance(
    make_problem: MakeProblem, *, mu: float, rounds: int, seed: int, run: int = 0, beta: float = 2.0
) -> Floats:
    """The regret of each round, in the world that `simulate` draws for (seed, run).

    >>> from discreet.simulation.problems import find_problem
    >>> problem = find_problem("synthetic")
    >>> simulate_private_covariance(problem, mu=1.0, rounds=400, seed=1).shape
    (400,)
    """
    world = World.draw(make_problem, seed=seed, run=run)
    plan = plan_for(world.problem, Setting(rounds=rounds), world.decisions, f"moments {seed}.{run}")
    batches = Batches(world, plan, mu, beta, rounds)
    length = math.ceil(FIRST * plan.map.dimension / mu)
    done = 0
    while done < rounds:
        length = min(max(length, done), rounds - done)
        batches.play(length)
        done += length
    return np.concatenate(batches.regrets)


class Batches:
    """Batches in a world; what they have found so far excludes options."""

    def __init__(self, world: World, plan: Plan, mu: float, beta: float, rounds: int) -> None:
        if world.decisions == "context":
            raise InvalidArgument("problem", "candidates, or a whole box")
        self._world, self._plan, self._mu, self._beta = world, plan, mu, beta
        self._crowd, self._found = Crowd(world, rounds), list[Interval]()
        self.regrets = list[Floats]()
        self._arms = None
        if world.decisions == "box":
            self._arms = Elimination().settled(plan.domain, plan.rewards).points(plan.domain)
            self._active = np.ones(len(self._arms), dtype=np.bool_)

    def play(self, length: int) -> None:
        """One batch: both halves, or one where everything but rewards is public."""
        m, dice = self._plan.map.dimension, self._world.player
        if self._arms is not None:
            phi = self._plan.map(self._arms[self._active])
            # Exact moments; directions that the noise on a cross of so many would hide are no use.
            hidden = moment_noise(self._mu) * len(phi) / length
            whitening = whitening_of(phi.T @ phi, hidden, len(phi))
            self._learn(whitening, *self._regress(whitening, length), exact=True)
            lower, upper = self._found[-1].at(phi)
            self._active[np.flatnonzero(self._active)[upper < lower.max()]] = False
            return
        half = max(length // 2, 1)
        seen = np.concatenate([self._plan.map(points) for points, _ in self._acted(half)])
        noise = moment_noise(self._mu)
        whitening = whitening_of(seen.T @ seen + _goe(m, noise, dice), noise, half)
        if length > half:
            self._learn(whitening, *self._regress(whitening, length - half), exact=False)

    def _regress(self, whitening: Floats, people: int) -> tuple[Floats, Floats]:
        """Exact gram and cross of rows that are no longer than 1."""
        gram, cross = np.zeros((len(whitening), len(whitening))), np.zeros(len(whitening))
        for points, told in self._acted(people):
            g = self._plan.map(points) @ whitening.T
            g, told = shortened(g, told)
            gram, cross = gram + g.T @ g, cross + told @ g
        return gram, cross

    def _learn(self, whitening: Floats, gram: Floats, cross: Floats, *, exact: bool) -> None:
        r, noise, dice = len(whitening), regression_noise(self._mu), self._world.player
        ridge = 1.0
        if not exact:
            gram, ridge = gram + _goe(r, noise, dice), 1.0 + 2.0 * math.sqrt(r) * noise
        inverse = np.linalg.inv(_positive(gram) + ridge * np.eye(r))
        theta = inverse @ (cross + noise * dice.standard_normal(r))
        # Rewards' noise, that of the release, and what the ridge holds back of theta.
        own = self._plan.noise_variance * _positive(gram) + noise**2 * np.eye(r)
        back = np.linalg.pinv(whitening)
        held = self._plan.signal_variance * ridge**2 * back.T @ back
        covariance = inverse @ (own + held) @ inverse
        unseen = self._plan.signal_variance
        self._found.append(Interval(whitening, theta, covariance, unseen, self._beta))

    def _acted(self, count: int) -> Iterator[tuple[Floats, Floats]]:
        """The next people's scaled actions and centred answers, as many together as can be."""
        for people in self._crowd.parts(count):
            points, actions = self._chosen(people)
            answers = self._crowd.answers(actions)
            self.regrets.append(people.ceilings() - self._world.problem.mean(actions))
            yield points, self._plan.all_centred(answers)

    def _chosen(self, people: People) -> tuple[Floats, Floats]:
        """For each person one of the options that are left, all equally likely."""
        dice = self._world.player
        if self._arms is not None:
            points = self._arms[dice.choice(np.flatnonzero(self._active), len(people))]
            return points, people.actions(points, None)
        sets = [each for each in people.scaled() if each is not None]
        every = np.concatenate(sets)
        counts: Indices = np.array([len(each) for each in sets])
        starts = np.cumsum(counts) - counts
        luck = dice.random(len(every))
        luck[~self._left(every, starts, counts)] = -1.0
        ends = starts + counts
        places = np.array([np.argmax(luck[i:j]) for i, j in zip(starts, ends, strict=True)])
        return every[starts + places], people.actions(every, places)

    def _left(self, options: Floats, starts: Indices, counts: Indices) -> Mask:
        """Which options no batch excludes for the person who brings them."""
        left = np.ones(len(options), dtype=np.bool_)
        phi = self._plan.map(options)
        for each in self._found:
            lower, upper = each.at(phi)
            best = np.maximum.reduceat(np.where(left, lower, -np.inf), starts)
            left &= upper >= np.repeat(best, counts)
        return left


def _goe(side: int, std: float, rng: np.random.Generator) -> Floats:
    """A symmetric matrix with this off-diagonal std, and sqrt(2) times it on the diagonal."""
    normals = rng.standard_normal((side, side))
    return std * (normals + normals.T) / math.sqrt(2.0)


def _positive(matrix: Floats) -> Floats:
    """The nearest matrix without negative eigenvalues."""
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2.0)
    return (vectors * np.maximum(values, 0.0)) @ vectors.T
