"""The life of an epoch: every step there is, and nothing else."""

import itertools
from typing import get_args

import pytest

from discreet.errors import BetweenEpochs, InvalidArgument, StudyEnded
from discreet.protocol.epochs import GRANTED, TABLE, EpochLife, Event, State, Wish

STATES = (None, *get_args(State))
STEPS = {(step.state, step.event): step.then for step in TABLE}


def life_at(state):
    life = EpochLife()
    life.state = state
    return life


@pytest.mark.parametrize(("state", "event"), list(itertools.product(STATES, get_args(Event))))
def test_a_step_that_is_not_in_the_table_is_refused_and_changes_nothing(state, event):
    life = life_at(state)
    if (state, event) in STEPS:
        life.advance(event)
        assert life.state == STEPS[state, event]
        return
    with pytest.raises(InvalidArgument):
        life.advance(event)
    assert life.state == state


@pytest.mark.parametrize(("state", "wish"), list(itertools.product(STATES, get_args(Wish))))
def test_a_wish_is_granted_or_refused_with_what_to_do(state, wish):
    life = life_at(state)
    if state in GRANTED[wish]:
        life.check(wish)
        return
    with pytest.raises(StudyEnded if state == "over" else BetweenEpochs):
        life.check(wish)
    assert life.state == state


def test_every_state_can_be_reached_and_only_the_end_is_a_dead_end():
    reached = {step.then for step in TABLE}
    assert reached == set(get_args(State))
    assert reached - {step.state for step in TABLE} == {"over"}


def test_after_a_draw_nothing_comes_in_before_the_next_epoch_is_open():
    granted = {state for states in GRANTED.values() for state in states}
    assert not granted & {"drawn", "released", "over"}
