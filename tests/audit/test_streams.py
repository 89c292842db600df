"""Audits of correlated noise: the test is the best there is, and the controls are broken."""

import math

import numpy as np
import pytest
from tests.contracts.noise import streamed as streamed_path

from discreet.audit.contest import lower_bound
from discreet.audit.streams import (
    CHANGE,
    RELEASES,
    Redrawn,
    Stream,
    UnpaidNorm,
    node_trials,
    stream_trials,
    streamed,
)
from discreet.privacy.correlation import BLT, SquareRoot, Tree
from discreet.trusted.randomness import OperatingSystem

STRATEGIES = {"tree": Tree(), "square root": SquareRoot(), "BLT": BLT.fit(RELEASES)}
DRAWS = 30_000
#: Each bound is wrong with this probability at most.
CONFIDENCE = 1 - 1e-8


class Given:
    """Normals that were drawn before."""

    def __init__(self, normals):
        self._normals = normals

    def normals(self, count):
        assert self._normals.size == count
        return self._normals.ravel()


def distance(stream, covariance):
    """The mu of the stream's two worlds under Gaussian noise of this covariance."""
    difference = (stream.worlds[1] - stream.worlds[0]).astype(float)
    return math.sqrt(difference @ np.linalg.solve(covariance, difference))


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
@pytest.mark.parametrize("claim", [0.3, 1.0, 3.0])
def test_the_worst_streams_are_exactly_the_claim_apart(strategy, claim):
    stream = Stream("one", strategy, claim)
    difference = stream.worlds[1] - stream.worlds[0]
    assert difference @ stream.weights == pytest.approx(claim**2, rel=1e-9)
    B = stream.decoder
    assert distance(stream, stream.std**2 * B @ B.T) == pytest.approx(claim, rel=1e-9)


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_no_other_item_is_easier_to_see(strategy):
    stream = Stream("one", strategy, 1.0)
    B = stream.std * stream.decoder
    for item in range(RELEASES):
        later = CHANGE * (np.arange(RELEASES) >= item)
        assert np.linalg.norm(np.linalg.solve(B, later)) <= 1.0 + 1e-9


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_releases_carry_the_noise_of_the_real_strategy(strategy):
    normals = np.random.Generator(np.random.Philox(1)).standard_normal((RELEASES, 3))
    stream = Stream("one", strategy, 1.0)
    found = streamed(stream, stream.worlds[0], 3, Given(normals)) - stream.worlds[0]
    expected = stream.std * streamed_path(strategy, normals, RELEASES).T
    assert np.abs(found - expected).max() <= 0.5 + 1e-6


@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=STRATEGIES)
def test_controls_leak_what_their_test_expects(strategy):
    unpaid, redrawn = UnpaidNorm("a", strategy, 1.0), Redrawn("b", strategy, 1.0)
    for broken in (unpaid, redrawn):
        difference = broken.worlds[1] - broken.worlds[0]
        assert difference @ broken.weights > 1.3
    assert unpaid.std * strategy.sensitivity(RELEASES) == pytest.approx(redrawn.std)
    fresh = np.ones((1, RELEASES))
    np.testing.assert_allclose(
        redrawn.noise(1, Given(fresh))[0], redrawn.std * strategy.stds(RELEASES)
    )


@pytest.mark.parametrize(
    ("stream", "control", "play"),
    [*stream_trials((1.0, 3.0)), *node_trials((1.0, 3.0))],
    ids=lambda value: getattr(value, "name", value) if not callable(value) else "",
)
def test_the_audit_passes_sound_noise_and_catches_the_controls(stream, control, play):
    """A sound stream exceeds its claim with probability 1e-8; 0.85 of it is six sigma below."""
    bound = lower_bound(stream, play, DRAWS, CONFIDENCE, OperatingSystem())
    if control is None:
        assert 0.85 * stream.claim <= bound <= stream.claim
    else:
        assert bound > stream.claim


def test_every_strategy_and_both_controls_are_played():
    trials = list(stream_trials((1.0, 3.0)))
    assert len(trials) == 3 * (2 + 2)
    assert {control for _, control, _ in trials if control} == {
        "norm of the strategy forgotten",
        "noise redrawn at each release",
    }


def test_the_privatizer_is_played_with_every_kind_of_noise_and_both_controls():
    trials = list(node_trials((1.0,)))
    assert len(trials) == 4 * (1 + 2)
    assert {game.plan.noise for game, _, _ in trials} == {"tree", "square root", "blt"}
    assert len({control for _, control, _ in trials}) == 3


@pytest.mark.parametrize("noise", ["tree", "square root", "blt"])
def test_the_worst_first_answer_is_the_claim_apart_in_all_releases_together(noise):
    """The privatizer's own nodes: a hundredth is for rounding."""
    games = [g for g, control, _ in node_trials((1.0,)) if g.plan.noise == noise and not control]
    for game in games:
        difference = (game.worlds[1] - game.worlds[0]) / game.stds
        assert 0.99 * game.claim <= np.linalg.norm(difference) <= game.claim * (1 + 1e-9)
