"""Innovations of releases: how far off predictions were, and what intervals make of it."""

import numpy as np
import pytest
from scipy.linalg import block_diag

from discreet import Box, JointDP, Plan, SquaredExponential
from discreet.learning.window import Block, Window
from discreet.simulation.epochs import begin, play_study
from discreet.simulation.problems import find_problem
from discreet.simulation.worlds import World


def test_kept_squares_are_those_of_a_dense_calculation():
    rng = np.random.default_rng(0)
    m, noise = 3, 0.4
    prior = np.eye(m) * 2.0
    window = Window.empty(np.zeros(m))
    designs, values, covariances = [], [], []
    for looks in ((0.7, 0.7), (1.0,)):
        block = Block(rng.random((2, 1)), np.array([3.0, 2.0]), looks)
        window = window.entered(block, noise)
        size = len(window.information)
        design, value = rng.standard_normal((4, size)), rng.standard_normal(4)
        window = window.observe(design, value, np.eye(4))
        designs.append(design)
        values.append(value)
        covariances.append(np.eye(4))
    told = window.theta
    found = told.square - told.information @ np.linalg.solve(
        told.precision + prior, told.information
    )
    assert told.count == 8
    # The second block may not be looked at again, the first one was twice: columns by block.
    own = 2 * noise * np.diag([1.5, 1.0])
    wide = np.zeros((8, m + 4))
    wide[:4, :m], wide[:4, m : m + 2] = designs[0][:, :m], designs[0][:, m:]
    wide[4:, :m] = designs[1][:, :m]
    wide[4:, m + 2 :] = designs[1][:, m : m + 2]
    wide[4:, m : m + 2] = designs[1][:, m + 2 :]
    unknown = block_diag(np.linalg.inv(prior), own, own)
    total = wide @ unknown @ wide.T + block_diag(*covariances)
    v = np.concatenate(values)
    assert found == pytest.approx(v @ np.linalg.solve(total, v), rel=1e-9)


def studied(kernel):
    """Camelback under a kernel, at an epsilon that tells a wrong one."""
    world = World.draw(find_problem("camelback"), seed=3)
    problem = world.problem
    plan = Plan(
        problem.domain, JointDP(8.0, 1e-6), kernel=kernel, rewards=problem.rewards, horizon=2000
    )
    return play_study(world, begin(plan), 2000)[1]


def test_a_kernel_that_is_far_too_smooth_widens_intervals():
    right, wrong = studied(SquaredExponential(0.25)), studied(SquaredExponential(2.0))
    assert 1.0 <= right.misfit < 1.5
    assert wrong.misfit > 1.3
    low, high = wrong.best().interval
    std = np.sqrt(wrong.posterior.variance(wrong.plan.domain.encode([wrong.best().action]))[0])
    assert (high - low) / wrong.plan.half_width >= 2.0 * 1.96 * std * 1.14


def test_nothing_released_is_no_surprise():
    plan = Plan(Box({"dose": (0, 1)}), JointDP(8.0, 1e-6), horizon=100)
    assert begin(plan).misfit == 1.0
