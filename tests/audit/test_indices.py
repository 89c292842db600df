"""The real client's index has the law that was promised, exactly; broken clients are caught."""

import math
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet.audit import games, indices
from discreet.privacy.cap import exp_below

#: Of each of the games below: the suite's false-alarm rate is below 1e-7.
CONFIDENCE = 1 - 1e-8
GAMES = {game.name: game for game in indices.games()}


@pytest.mark.parametrize("name", GAMES)
def test_the_real_client_keeps_its_promise_exactly_and_uses_it_up(name):
    game = GAMES[name]
    assert indices.SHARPNESS * game.claim <= game.shown() <= game.claim


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("control", indices.CLIENTS)
def test_a_broken_client_is_caught(name, control):
    broken = replace(GAMES[name], client=indices.CLIENTS[control])
    assert broken.shown() > broken.claim * 1.01


def test_what_too_large_odds_give_away_is_said_to_the_digit():
    broken = replace(GAMES["client, interval"], client=indices.TooSure)
    assert broken.shown() == pytest.approx(broken.claim + math.log(1.05), abs=1e-12)


def test_a_report_that_is_drawn_again_costs_twice():
    broken = replace(GAMES["client, interval"], client=indices.Forgetful)
    assert broken.shown() == pytest.approx(2 * broken.claim, abs=1e-12)


@pytest.mark.parametrize("name", GAMES)
def test_the_law_that_is_counted_is_that_of_the_plans_cap(name):
    game = GAMES[name]
    law, cap = game._law(0, 0), game.epoch.encoding.cap
    assert sum(law.values()) == 1
    assert sorted(set(law.values())) == [cap.outside, cap.inside]
    assert list(law.values()).count(cap.inside) == cap.nearest
    assert cap.inside / cap.outside <= exp_below(Fraction(indices.CLAIM))


def test_draws_with_real_words_show_most_of_the_promise_and_no_more():
    game = GAMES["client, interval"]
    shown = game.lower_bound(indices.DRAWS, CONFIDENCE)
    assert indices.DRAWN_SHARPNESS * game.claim <= shown <= game.claim


def test_the_audit_plays_them_last(monkeypatch):
    chosen = [(GAMES["client, interval"], None)]
    chosen.append((replace(GAMES["client, interval"], client=indices.TooNear), "too near"))
    monkeypatch.setattr(games, "_trials", lambda: iter(()))
    monkeypatch.setattr(games.roles, "role_trials", lambda: iter(()))
    monkeypatch.setattr(games.shuffled, "mixing_trials", lambda: iter(()))
    monkeypatch.setattr(indices, "index_trials", lambda: iter(chosen))
    exact, drawn, broken = games.audit(30_000)
    assert [each.control for each in (exact, drawn, broken)] == [False, False, True]
    assert exact.name == "client, interval, exactly"
    assert all(each.passed for each in (exact, drawn, broken))
