"""The prefix baseline: the paper's algorithm, calibrated exactly, in the worlds of `simulate`."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from discreet import Box, Categorical
from discreet.errors import InvalidArgument
from discreet.experiments.prefix import PrefixPlayer, View, release_times, simulate_prefix
from discreet.features.kernels import SquaredExponential
from discreet.learning.information import volume
from discreet.learning.prefix_belief import Practical, Prefix, Proven
from discreet.learning.theory import width
from discreet.privacy.clipping import Noise
from discreet.privacy.correlation import BLT, Independent, SquareRoot, Tree
from discreet.simulation.play import Setting, UniformPlayer, plan_for, simulate
from discreet.simulation.problems import CAMELBACK, find_problem
from discreet.simulation.worlds import World

ROUNDS = 120
NO_NOISE = 1e6
SYNTHETIC = find_problem("synthetic")


def play(problem=SYNTHETIC, *, strategy=None, mu=NO_NOISE, rounds=ROUNDS, **options):
    settings = {"seed": 1, "run": 0} | options
    return simulate_prefix(
        problem, strategy=strategy or Tree(), privacy_mu=mu, rounds=rounds, **settings
    )


@pytest.mark.parametrize("name", ["synthetic", "camelback"])
def test_without_noise_it_learns_and_uniform_play_does_not(name):
    every = 1 if name == "synthetic" else 6
    found = play(find_problem(name), every=every).regrets
    uniform = simulate(find_problem(name), Setting("random", ROUNDS), seed=1).regrets
    assert found.sum() < 0.6 * uniform.sum()
    assert found[-40:].mean() < 0.4 * uniform.mean()


@pytest.mark.parametrize("strategy", [Independent(), Tree(), SquareRoot(), BLT.fit(ROUNDS)])
def test_every_strategy_plays_under_noise(strategy):
    found = play(strategy=strategy, mu=0.5, rounds=60).regrets
    assert found.shape == (60,)
    assert np.isfinite(found).all()
    assert found.min() >= -1e-6


def test_a_seed_fixes_every_regret():
    one, two, other = play(mu=1.0), play(mu=1.0), play(mu=1.0, run=1)
    assert (one.regrets == two.regrets).all()
    assert (one.regrets != other.regrets).any()


def test_its_worlds_are_those_of_simulate():
    """The same problem and, while the same actions are taken, the same answers."""
    problem = play(rounds=5).problem
    other = simulate(SYNTHETIC, Setting("random", 5), seed=1).problem
    assert (problem.centres == other.centres).all()
    one, two = (World.draw(SYNTHETIC, seed=1) for _ in range(2))
    uniform = UniformPlayer(one.problem.domain, one.player)
    late = (10,)  # it acts uniformly until its first release
    silent = PrefixPlayer(
        plan_of(two), Independent(), Noise(2.0, 2.0), late, Practical(), two.player
    )
    assert (one.play(uniform, 10)[0] == two.play(silent, 10)[0]).all()


def plan_of(world):
    return plan_for(world.problem, Setting(rounds=10), world.decisions, "a test")


def test_without_noise_strategies_agree():
    """What is left of the noise, a millionth, changes no choice here."""
    runs = [play(strategy=s, rounds=60).regrets for s in (Tree(), SquareRoot(), BLT.fit(60))]
    assert (runs[0] == runs[1]).all()
    assert (runs[0] == runs[2]).all()


@dataclass(frozen=True)
class Doses:
    """Arm "b" is better, at a dose that grows with age; users bring their age, or candidates.

    The young do better: who treats another age than the one brought has negative regret.
    """

    candidates: bool
    rewards = (-1.2, 0.2)
    kernel = SquaredExponential(1.0)

    @property
    def domain(self):
        sides = {"dose": (0, 10), "age": (18, 90), "arm": Categorical(("a", "b"))}
        return Box(sides, context=() if self.candidates else ["age"])

    def decision_set(self, rng):
        age = rng.uniform(18, 90)
        if not self.candidates:
            return {"age": age}
        return np.column_stack([rng.uniform(0, 10, 9), np.full(9, age), rng.integers(2, size=9)])

    def mean(self, x):
        dose, age, arm = x.T
        return -np.square(dose - age / 10) / 162 - age / 300 - 0.5 * (arm == 0)

    def reward(self, x, rng):
        return float(self.mean(x[None, :])[0] + 0.1 * rng.standard_normal())

    def maximum_under(self, context):
        return -context["age"] / 300


@pytest.mark.parametrize("candidates", [True, False])
def test_contexts_and_categories_are_learnt_too(candidates):
    found = play(lambda rng: Doses(candidates), rounds=60, every=6).regrets
    uniform = simulate(lambda rng: Doses(candidates), Setting("random", 60), seed=1).regrets
    assert found.min() >= -1e-6
    assert found[-20:].mean() < 0.6 * uniform.mean()


@pytest.mark.parametrize("strategy", [Independent(), Tree(), SquareRoot(), BLT.fit(30)])
def test_it_plays_as_proven_with_every_strategy(strategy):
    found = play(strategy=strategy, mu=1.0, rounds=30, confidence="theory").regrets
    assert np.isfinite(found).all()
    assert found.min() >= -1e-6


def test_as_proven_it_scores_by_the_theorem():
    """mean + W_t ||phi|| in the norm of V^-1, V the release plus lambda and the shift."""
    world = World.draw(SYNTHETIC, seed=3)
    plan, each = plan_of(world), Noise(0.5, 0.25)
    proven = Proven.of(plan, Tree(), each, releases=10, norm=2.0)
    rng = np.random.default_rng(1)
    phi = plan.map(rng.random((7, 2)))
    prefix = Prefix(phi.T @ phi, rng.standard_normal(phi.shape[1]), rounds=7, std=0.5)
    lift = proven.assumptions.regularisation + proven.spectrum.shift
    V = prefix.gram + lift * np.eye(phi.shape[1])
    W = width(
        proven.spectrum,
        proven.assumptions,
        rounds=7,
        log_determinant=np.linalg.slogdet(V)[1],
        side=len(V),
        volume=volume(plan.map, 7, proven.assumptions.regularisation + proven.spectrum.smallest),
    )
    found, x = proven.estimated(plan, prefix), rng.random((5, 2))
    view = View.of(found, proven.width(prefix, found))
    inverse = np.linalg.inv(V)
    bonus = np.sqrt(np.einsum("ni,ij,nj->n", plan.map(x), inverse, plan.map(x)))
    expected = plan.map(x) @ inverse @ prefix.cross + W * bonus
    np.testing.assert_allclose(view.score.values(x, view.coefficients), expected, rtol=1e-9)


def test_as_proven_rewards_are_scaled_but_not_centred():
    """A constant has no small norm: f itself must stay what it is."""
    world = World.draw(lambda rng: CAMELBACK, seed=1)
    plan = plan_of(world)
    proven = Proven.of(plan, Tree(), Noise(1.0, 1.0), releases=10, norm=1.0)
    assert proven.reward(plan, 0.0) == 0.0
    assert proven.reward(plan, -1.2) == -1.0
    assert proven.reward(plan, 7.0) == pytest.approx(0.3 / 1.2)
    assert proven.assumptions.noise == pytest.approx(0.75 / 1.2)


def test_what_is_proven_explores_more_than_what_is_practical():
    practical, theory = (play(confidence=c).regrets.sum() for c in ("practical", "theory"))
    assert practical < 0.8 * theory


def test_release_times_end_with_the_rounds():
    assert release_times(5) == (1, 2, 3, 4, 5)
    assert release_times(7, every=3) == (3, 6, 7)
    growing = release_times(1024, every=20, growth=1.25)
    assert growing[0] == 20
    assert growing[-1] == 1024
    lengths = np.diff(growing)[:-1]
    assert (lengths[1:] >= lengths[:-1]).all()


def test_growing_epochs_pay_for_few_releases():
    times = release_times(ROUNDS, every=20, growth=1.5)
    strategy = BLT.fit(len(times))
    runs = range(5)  # one in a few settles on the wrong bump for long
    found = np.array([play(strategy=strategy, every=20, growth=1.5, run=r).regrets for r in runs])
    assert found[:, -40:].mean() < 0.5 * found[:, :20].mean()


class Recording:
    """A strategy that leaves noise as it comes and remembers it."""

    def __init__(self, inner):
        self.inner, self.stds, self.sensitivity = inner, inner.stds, inner.sensitivity
        self.rows = inner.rows
        self.normals = []

    def advance(self, state, normals):
        self.normals.append(normals)
        return self.inner.advance(state, normals)


def test_the_noise_of_a_release_is_the_goe_of_the_errata():
    """Entry by entry: off-diagonal sigma_X, diagonal sqrt(2) sigma_X, cross sigma_u."""
    world = World.draw(lambda rng: CAMELBACK, seed=3)
    plan, strategy = plan_of(world), Recording(Independent())
    seen = []

    class Rigged(Practical):
        def positive(self, gram, std, prior):
            seen.append((gram, std))
            return np.eye(len(gram))

    each = Noise.split(0.5, 1.0, 0.25)
    player = PrefixPlayer(plan, strategy, each, (1,), Rigged(), world.player)
    player.act(None)
    player.hear(0.0)
    (gram, std), normals = seen[0], strategy.normals[0]
    m = len(gram)
    phi = plan.map(player._point)[0]
    noise = gram - np.outer(phi, phi)
    assert std == each.gram == 2.5
    rows, columns = np.triu_indices(m)
    scale = np.where(rows == columns, math.sqrt(2.0), 1.0) * 2.5
    np.testing.assert_allclose(noise[rows, columns], scale * normals[:-m], atol=1e-12)
    np.testing.assert_allclose(noise, noise.T, atol=1e-12)
    cross = player._view.coefficients  # V = I
    np.testing.assert_allclose(cross, plan.centred(0.0) * phi + 5.0 * normals[-m:], atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_a_noisy_gram_is_made_positive(seed):
    """The shift fails with probability below 0.1 * (a GOE's tail beyond it): never seen."""
    half = np.random.default_rng(seed).standard_normal((40, 40))
    noise = 7.0 * (half + half.T) / math.sqrt(2.0)
    positive = Practical(releases=1000).positive(noise, 7.0, 1.0)
    assert np.linalg.eigvalsh(positive).min() >= 1.0
    exact = np.diag(np.arange(4.0))
    np.testing.assert_allclose(Practical().positive(exact, 0.0, 1.0), exact + np.eye(4), atol=1e-12)


@pytest.mark.parametrize(
    "options",
    [
        {"confidence": "bold"},
        {"confidence": "theory", "norm": 0.0},
        {"beta": -1.0},
        {"every": 0},
        {"growth": 0.9},
        {"mu": 0.0},
        {"rounds": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(options):
    with pytest.raises(InvalidArgument):
        play(**({"rounds": 5} | options))
