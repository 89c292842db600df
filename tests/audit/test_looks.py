"""Audits of looking again: all releases that look at an answer, and privatizers that overspend."""

import math

import numpy as np
import pytest
from scipy import stats

from discreet.audit import looks as looks_audit
from discreet.audit.contest import lower_bound
from discreet.audit.looks import (
    CONTROLS,
    RELEASES,
    OneLookPaid,
    Recounting,
    Weighing,
    WholeLooks,
    looks_trials,
)
from discreet.audit.streams import GlassPrivatizer, NodeGame
from discreet.privacy.budget import Simulation
from discreet.privacy.looks import FOUR_LOOKS
from discreet.protocol.records import Asked, Told
from discreet.trusted.privatizer import Privatizer
from discreet.trusted.randomness import OperatingSystem

DRAWS = 30_000
#: Each bound is wrong with this probability at most.
CONFIDENCE = 1 - 1e-8
TRIALS = list(looks_trials((1.0, 3.0)))
IDS = [game.name if control is None else control for game, control, _ in TRIALS]
PLAN = TRIALS[0][0].plan
EPOCHS = looks_audit._epochs(PLAN)


def distance(game):
    """The mu of the two worlds."""
    return np.linalg.norm((game.worlds[1] - game.worlds[0]) / game.stds)


@pytest.mark.parametrize(("game", "control", "play"), TRIALS, ids=IDS)
def test_the_audit_passes_four_looks_and_catches_the_controls(game, control, play):
    """Four looks exceed the claim with probability 1e-8; 0.85 of it is six sigma below."""
    bound = lower_bound(game, play, DRAWS, CONFIDENCE, OperatingSystem())
    if control is None:
        assert 0.85 * game.claim <= bound <= game.claim
    else:
        assert bound > game.claim


def test_four_looks_are_played_at_every_claim_and_every_control_once():
    assert [control for _, control, _ in TRIALS] == [None, *CONTROLS, None]
    assert {game.plan.looks for game, _, _ in TRIALS} == {FOUR_LOOKS}
    claims = [game.claim for game, control, _ in TRIALS if control is None]
    assert claims == pytest.approx([1, 3], rel=1e-4)


@pytest.mark.parametrize("number", [0, len(TRIALS) - 1])
def test_the_audited_pair_is_as_far_apart_as_the_claim_allows(number):
    """In all releases that look at it together; in none of them alone."""
    game = TRIALS[number][0]
    assert 0.999 * game.claim <= distance(game) <= game.claim
    epochs = looks_audit._epochs(game.plan)
    sizes = [epoch.encoding.size(game.plan.map) for epoch in epochs]
    low, high = (
        looks_audit._sums(GlassPrivatizer(game.plan), epochs, own) for own in game.plan.rewards
    )
    changes = np.split(high - low, np.cumsum(sizes)[:-1])
    for epoch, change, weight in zip(epochs, changes, (0.0, *FOUR_LOOKS), strict=True):
        share = np.linalg.norm(change / epoch.encoding.stds(game.plan.map)) / game.claim
        assert share == pytest.approx(weight, rel=1e-3)


def test_every_look_is_under_another_residual_and_other_directions():
    assert len(EPOCHS) == RELEASES == 1 + len(FOUR_LOOKS)
    encodings = [epoch.encoding for epoch in EPOCHS]
    assert len({encoding.residual.width for encoding in encodings}) == RELEASES
    assert len({encoding.residual.prediction.tobytes() for encoding in encodings}) == RELEASES
    assert len({encoding.directions.tobytes() for encoding in encodings}) == RELEASES
    assert max(encoding.residual.width for encoding in encodings[1:]) < 0.5


@pytest.mark.parametrize(
    ("privatizer", "leak"),
    [
        (WholeLooks, 2.0),
        (OneLookPaid, math.sqrt(1 + 0.7**2 + 0.5**2 + 0.35**2)),
        # Counted with the looks of two epochs: two budgets, and twice what the looks share. The
        # fifth release is not played.
        (
            Recounting,
            math.hypot(FOUR_LOOKS[0], *np.array(FOUR_LOOKS[1:]) + np.array(FOUR_LOOKS[:-1])),
        ),
    ],
)
def test_controls_leak_what_they_are_expected_to(privatizer, leak):
    assert distance(looks_audit.game(PLAN, "broken", privatizer)) == pytest.approx(leak, rel=1e-4)


def test_what_gives_weights_away_is_their_sum_of_squares():
    """The careless privatizer with the plan's own looks is the real one."""

    class Careful(Weighing):
        looks = FOUR_LOOKS

    real, same = TRIALS[0][0], looks_audit.game(PLAN, "same", Careful)
    assert all(np.array_equal(*pair) for pair in zip(real.worlds, same.worlds, strict=True))
    assert np.array_equal(real.stds, same.stds)


def test_an_audit_that_sees_one_release_alone_is_blind():
    """The first look alone moves sqrt(8 / 15) of the claim: 0.73 of it."""
    seen = sum(epoch.encoding.size(PLAN.map) for epoch in EPOCHS[:2])
    low, high = (
        looks_audit._sums(GlassPrivatizer(PLAN), EPOCHS, own)[:seen] for own in PLAN.rewards
    )
    stds = np.concatenate([epoch.encoding.stds(PLAN.map) for epoch in EPOCHS[:2]])
    moved = low != high
    one = NodeGame("one", PLAN, (low[moved], high[moved]), stds[moved])
    assert distance(one) == pytest.approx(FOUR_LOOKS[0] * one.claim, rel=1e-3)
    bound = lower_bound(one, TRIALS[0][2], DRAWS, CONFIDENCE, OperatingSystem())
    assert bound < 0.8 * one.claim


# -- the releases themselves

STUDIES = 1_000


def released(own, seeds):
    """All releases of real privatizers under the audited epochs, in which one person answers."""
    points = [point for epoch in EPOCHS for point in epoch.asked(epoch.length)]
    asked = [Asked(number, point) for number, point in enumerate(points)]
    rows = []
    for seed in seeds:
        privatizer = Privatizer(PLAN, Simulation(seed))
        row = []
        for epoch in EPOCHS:
            privatizer.open(epoch)
            for event in asked[epoch.first : epoch.end]:
                privatizer.ask(event)
            if epoch.number == 1:
                privatizer.tell(Told(epoch.first, own))
            row.append(privatizer.release().integers)
        rows.append(np.concatenate(row))
    return np.array(rows)


def test_releases_themselves_are_within_the_claim_and_seen():
    """The game on `Privatizer.release`, a study a trial. Seeds are fixed: no chance is left.

    With others, 0.3 would be exceeded in fewer than one of 10^6.
    """
    point = EPOCHS[1].asked(1)
    low, high = (
        np.concatenate(
            [np.zeros(EPOCHS[0].encoding.size(PLAN.map))]
            + [
                epoch.encoding.encode(PLAN.map, point, np.array([centred]), weight)[0]
                for epoch, weight in zip(EPOCHS[1:], FOUR_LOOKS, strict=True)
            ]
        )
        for centred in (-1.0, 1.0)
    )
    stds = np.concatenate([epoch.encoding.stds(PLAN.map) for epoch in EPOCHS])
    worlds = [released(0.0, range(STUDIES)), released(1.0, range(STUDIES, 2 * STUDIES))]
    scores = [(world - (low + high) / 2) @ ((high - low) / stds**2) for world in worlds]
    alarms, hits = (np.mean(score > 0) for score in scores)
    assert 0.7 < stats.norm.ppf(hits) - stats.norm.ppf(alarms) < 1.3
    noise = np.concatenate([worlds[0] - low, worlds[1] - high]) / stds
    correlation = noise.T @ noise / len(noise)
    # Independent in all integers of all looks: seven standard errors, sqrt(2) more for squares.
    assert np.abs(correlation - np.eye(len(stds))).max() < 7 * math.sqrt(2 / len(noise))
