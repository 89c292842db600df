"""Every way to play: a pure function of its trial, and what its name says."""

import math

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.experiments.contenders import CONTENDERS, TUNED, Trial, play
from discreet.experiments.paper import (
    BOX_STEPS,
    STEPS,
    ablation_trials,
    alpha_trials,
    beta_trials,
    table_trials,
)
from discreet.experiments.prefix import (
    NOISELESS,
    NOISY,
    release_times,
    simulate_prefix,
    simulate_seldom,
)
from discreet.learning.theory import calibrated
from discreet.privacy.budget import JointDP
from discreet.privacy.clipping import Noise
from discreet.privacy.correlation import BLT, SquareRoot, Tree
from discreet.privacy.cost import GaussianPrivacy
from discreet.simulation.play import Setting, simulate
from discreet.simulation.problems import find_problem


@pytest.mark.parametrize("way", CONTENDERS)
def test_every_way_plays_and_a_trial_fixes_its_run(way):
    box = way in ("elimination", "all directions")
    problem = "camelback" if box else "synthetic"
    trial = Trial(problem, way, 1.0, 0.1, 30, seed=3, run=1)
    found = play(trial)
    assert 0.0 < found.regret < 30.0
    assert found.regrets[30] == found.regret
    assert play(trial) == found


def test_a_way_without_a_name_is_refused():
    with pytest.raises(InvalidArgument, match="way: expected one of"):
        play(Trial("synthetic", "nonsense", 1.0, 0.1, 10, 0, 0))


def test_a_curve_is_the_regret_so_far_after_evenly_spaced_rounds():
    found = play(Trial("camelback", "ours", 1.0, 0.1, 320, 3, 0))
    setting = Setting("joint", 320, privacy=JointDP(1.0, 0.1))
    regrets = simulate(find_problem("camelback"), setting, seed=3).regrets
    assert list(found.regrets) == list(range(10, 321, 10))
    for t, so_far in found.regrets.items():
        assert so_far == pytest.approx(regrets[:t].sum(), abs=1e-3)


def test_what_is_taken_away_from_the_default_shows():
    ways = (
        "ours",
        "one look",
        "fixed width",
        "all directions",
        "fourier",
        "gram",
        "fourier, fixed width",
    )
    regrets = [play(Trial("camelback", way, 1.0, 0.1, 300, 3, 0)).regret for way in ways]
    assert len(set(regrets)) == len(ways)


def test_looking_at_every_release_is_the_algorithm_itself():
    mu = GaussianPrivacy.of(1.0, 0.1).mu
    for strategy in (Tree(), BLT.fit(40), SquareRoot()):
        noise = calibrated(strategy, releases=40, mu=mu)
        common = {"strategy": strategy, "rounds": 40, "seed": 4, "run": 2}
        plain = simulate_prefix(find_problem("camelback"), privacy_mu=mu, **common)
        looked = simulate_seldom(find_problem("camelback"), noise=noise, growth=1.001, **common)
        assert looked.regrets == pytest.approx(plain.regrets, abs=1e-9)


def test_a_tree_that_is_looked_at_now_and_then_has_the_noise_of_one_that_always_is():
    """Variances and correlations of 4,000 streams; each is off by 5.5 errors once in 1e7."""
    from discreet.experiments import prefix

    times, streams = (3, 7, 8, 13, 14), 4000
    blocks = prefix._Blocks(streams, np.random.default_rng(0))
    found = np.array([blocks(t) for t in times])
    ends = [{t & ~((1 << k) - 1) for k in range(5)} - {0} for t in times]
    for one, a in zip(found, ends, strict=True):
        for other, b in zip(found, ends, strict=True):
            error = math.sqrt((len(a) * len(b) + len(a & b) ** 2) / streams)
            assert abs(np.mean(one * other) - len(a & b)) < 5.5 * error


def test_between_two_looks_the_same_point_is_played():
    quiet, loud = Noise(0.0, 0.0), Noise(3.0, 3.0)
    for noise, growth in ((quiet, NOISELESS), (loud, NOISY)):
        regrets = simulate_seldom(
            find_problem("camelback"), strategy=Tree(), noise=noise, rounds=200, seed=1
        ).regrets
        changes = np.flatnonzero(np.diff(regrets)) + 1
        assert set(changes) <= set(release_times(200, every=1, growth=growth))


def test_looks_are_for_whole_boxes():
    with pytest.raises(InvalidArgument, match="whole box"):
        simulate_seldom(
            find_problem("synthetic"), strategy=Tree(), noise=Noise(1.0, 1.0), rounds=5, seed=0
        )


@pytest.mark.parametrize("name", TUNED)
def test_the_papers_algorithm_plays_every_function_with_and_without_noise(name):
    for way, level in (("tree", math.inf), ("tree", 1.0), ("as printed", 1.0)):
        found = play(Trial(name, way, level, 0.1, 12, 0, 0))
        assert found.regret > 0.0


def test_the_trials_of_the_paper_are_its_cells():
    for wanted, cells in (
        (alpha_trials, 3 * 4 + 2),
        (beta_trials, 3 * 4 + 2),
        (table_trials, 3 * (1 + 2 + 3 * 3)),
        (ablation_trials, 3 * (2 * len(STEPS) - len(BOX_STEPS))),
    ):
        found = list(wanted(5))
        assert len(set(found)) == len(found) == 5 * cells
        assert [t.run for t in found] == sorted(t.run for t in found)
    assert {t.delta for t in alpha_trials(1) if math.isfinite(t.epsilon)} == {0.1}
    assert {t.epsilon for t in beta_trials(1)} == {1.0, math.inf}
