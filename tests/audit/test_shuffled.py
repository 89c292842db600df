"""A shuffler keeps its promise among the people of an epoch, and broken ones are caught."""

import pytest

from discreet.audit import games, indices, roles, shuffled
from discreet.privacy.blanket import Blanket

#: Of each of the games below: the suite's false-alarm rate is below 1e-7.
CONFIDENCE = 1 - 1e-8
TRIALS = {control or "as it is": (game, control) for game, control in shuffled.mixing_trials()}
#: Enough to catch a control: its delta is twice the claim.
DRAWS = 800


def test_a_shuffler_keeps_its_promise():
    game, _ = TRIALS["as it is"]
    assert game.claim == shuffled.DELTA
    assert game.lower_bound(DRAWS, CONFIDENCE) <= game.claim


@pytest.mark.parametrize("name", [name for name, (_, control) in TRIALS.items() if control])
def test_a_broken_shuffler_is_caught(name):
    game, _ = TRIALS[name]
    assert game.lower_bound(DRAWS, CONFIDENCE) > game.claim


def test_a_sound_shuffler_shows_nothing_of_a_small_batch():
    game, _ = TRIALS["a small batch is handed up"]
    sound = shuffled.replace(game, shuffler=shuffled.Shuffler)
    assert sound.shown(shuffled.ABOVE).size == 0


def test_the_worlds_have_nothing_in_common_and_the_claim_is_the_crowds():
    game, _ = TRIALS["as it is"]
    below, above, _ = game._laws
    cap = game.epoch.encoding.cap
    assert not ((below > above) & (above > below)).any()
    assert int((below != above).sum()) == 2 * cap.nearest
    alone = Blanket(cap.size, cap.nearest, cap.share).delta(shuffled.EPSILON, 1)
    assert alone > 2 * game.claim
    crowd = Blanket(cap.size, cap.nearest, cap.share).delta(shuffled.EPSILON, shuffled.PEOPLE)
    assert 0.95 * game.claim < crowd <= game.claim


def test_the_audit_plays_the_shuffler_after_the_others(monkeypatch):
    chosen = [TRIALS["the order in which people came is kept"]]
    monkeypatch.setattr(games, "_trials", lambda: iter(()))
    monkeypatch.setattr(roles, "role_trials", lambda: iter(()))
    monkeypatch.setattr(indices, "index_trials", lambda: iter(()))
    monkeypatch.setattr(shuffled, "mixing_trials", lambda: iter(chosen))
    monkeypatch.setattr(shuffled, "CONTROL_DRAWS", DRAWS)
    (broken,) = games.audit(30_000)
    assert broken.control
    assert broken.passed
