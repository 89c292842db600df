"""The paper's successors as baselines: their promises are ours, and they learn."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from discreet.errors import InvalidArgument
from discreet.experiments import successors
from discreet.experiments.contenders import CONTENDERS, Played, Trial, play
from discreet.experiments.private_covariance import (
    moment_noise,
    regression_noise,
    shortened,
    simulate_private_covariance,
    whitening_of,
)
from discreet.experiments.private_rewards import (
    Rewards,
    laplace_scale,
    simulate_private_rewards,
    typical,
)
from discreet.privacy.budget import GaussianPrivacy
from discreet.simulation.play import Setting, plan_for
from discreet.simulation.problems import find_problem


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 0.1), (0.1, 0.01), (3.0, 1e-6), (1.0, 0.0)])
def test_laplace_noise_keeps_exactly_the_promise(epsilon, delta):
    """The hockey-stick divergence of answers 1 and -1, by quadrature."""
    b = laplace_scale(epsilon, delta)

    def excess(x):
        one, other = (math.exp(-abs(x - y) / b) / (2 * b) for y in (-1.0, 1.0))
        return max(one - math.exp(epsilon) * other, 0.0)

    found = sum(quad(excess, *ends, limit=400)[0] for ends in ((-60 * b, -1.0), (-1.0, 1.0)))
    assert found == pytest.approx(delta, abs=1e-7)


def test_laplace_noise_needs_a_budget():
    for epsilon, delta, name in ((0.0, 0.1, "epsilon"), (1.0, 1.0, "delta")):
        with pytest.raises(InvalidArgument) as caught:
            laplace_scale(epsilon, delta)
        assert caught.value.argument == name


@pytest.mark.parametrize("mu", [0.3, 0.92])
def test_no_person_moves_a_release_of_the_covariance_way_by_more_than_mu(mu):
    """Any two rows and answers; the worst pairs use the promise up."""
    rng = np.random.default_rng(5)
    moved, told = [], []
    for cosine in (*rng.uniform(-1.0, 1.0, 300), 0.0, 1.0):
        angle = math.acos(cosine)
        g = np.array([[1.0, 0.0], [cosine, math.sin(angle)]]) * rng.choice([0.5, 1.0, 3.0], (2, 1))
        own, y = shortened(g, np.array([1.0, -1.0]))
        unit = g / np.maximum(np.linalg.norm(g, axis=1), 1.0)[:, None]
        moments = np.outer(unit[0], unit[0]) - np.outer(unit[1], unit[1])
        gram = np.outer(own[0], own[0]) - np.outer(own[1], own[1])
        cross = y[0] * own[0] - y[1] * own[1]
        moved.append(np.sum(np.square(moments)) / 2 / moment_noise(mu) ** 2)
        noise = regression_noise(mu) ** 2  # a GOE's squares count half of the matrix's
        told.append((np.sum(np.square(gram)) / 2 + np.sum(np.square(cross))) / noise)
    for squares in (moved, told):
        assert 0.95 * mu <= math.sqrt(max(squares)) <= mu * (1 + 1e-9)


def test_directions_that_noise_hides_are_left_out():
    moments = np.diag([900.0, 90.0, 0.5])
    assert len(whitening_of(moments, 0.01, 1000)) == 3
    kept = whitening_of(moments, 1.0, 1000)
    assert len(kept) == 2
    within = kept @ (moments / 1000) @ kept.T
    np.testing.assert_allclose(within, np.eye(2) / 4, atol=1e-12)
    assert len(whitening_of(-np.eye(2), 1.0, 10)) == 1


def test_a_typical_group_is_not_the_odd_one():
    problem = find_problem("camelback")(np.random.default_rng(0))
    plan = plan_for(problem, Setting(rounds=100), "box", "typical")
    m = plan.map.dimension
    grams = np.repeat(50.0 * np.eye(m)[None], 5, axis=0)
    crosses = np.random.default_rng(1).standard_normal((5, m))
    crosses[0] += 1000.0
    found = typical(plan, grams, crosses, 1.0)
    assert not np.allclose(found.information, crosses[0])


@pytest.mark.parametrize("problem", ["camelback", "synthetic"])
def test_without_noise_that_matters_both_learn(problem):
    """After 2,000 rounds both cost far less than uniform play, which costs about 0.4 a round."""
    make, rounds = find_problem(problem), 2000
    regrets = (
        simulate_private_covariance(make, mu=50.0, rounds=rounds, seed=1, beta=0.5),
        simulate_private_rewards(make, Rewards(1e-3), rounds=rounds, seed=1),
    )
    for each in regrets:
        assert each.shape == (rounds,)
        assert each[-500:].mean() < 0.1


def test_contexts_are_refused():
    with pytest.raises(InvalidArgument, match="candidates, or a whole box"):
        simulate_private_covariance(find_problem("dosing-1"), mu=1.0, rounds=10, seed=1)


def test_every_way_plays_and_says_what_it_protects():
    trials = list(successors.successor_trials(1, quick=True))
    assert {trial.way for trial in trials} <= set(CONTENDERS)
    for problem, protected in successors.PROTECTED.items():
        assert protected.keys() >= set(successors.ways_of(problem))
    for way in ("private covariance", "private rewards", "private rewards, medians"):
        found = play(Trial("camelback", way, 1.0, 0.1, 64, 0, 0))
        assert found == play(Trial("camelback", way, 1.0, 0.1, 64, 0, 0))
        assert 0.0 < found.regret < 64 * 1.6


def test_the_table_names_trust_and_protection():
    rows = [
        Played(t.problem, t.way, t.epsilon, t.delta, t.rounds, t.seed, t.run, 9.0, _curve(t.rounds))
        for t in successors.successor_trials(2, quick=True)
    ]
    lines = successors.successor_table(rows)
    assert sum("| local |" in line for line in lines) == 6
    assert sum("rewards alone" in line for line in lines) == 2
    assert not any(line.startswith("| elimination") for line in lines[lines.index("") :])


def _curve(rounds):
    return " ".join(f"{n}:{n / 10 + 1}" for n in (1 << k for k in range(20)) if n <= rounds)


def test_constants_are_tried_on_other_seeds():
    found = list(successors.tried("synthetic", 25, 2))
    assert len(found) == len(successors.DEVIATIONS) + len(successors.GROUPED)
    assert all(each.regret > 0.0 for each in found)
    assert successors.TUNING_SEED != 0
    assert GaussianPrivacy.of(1.0, 0.1).mu == pytest.approx(0.9209, abs=1e-4)
