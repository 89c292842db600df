"""The table of a round's life, explored exhaustively for small numbers."""

import itertools
import pickle
import sys
from typing import get_args

import numpy as np
import pytest

from discreet.errors import TrialClosed, UnknownTrial
from discreet.protocol.records import Asked
from discreet.protocol.rounds import OPEN, TABLE, Event, Party, Session, State, advance, is_repeat

ASK = "ask"
POINT = np.array([0.5])


class Model:
    """The table of the module's docstring, kept the plain way: a state for every round."""

    def __init__(self, expire_after):
        self.states = []
        self.expire_after = expire_after

    def ask(self):
        self.states.append("open")
        late = len(self.states) - 1 - self.expire_after
        if late >= 0 and self.states[late] == "open":
            self.states[late] = "expired"

    def error(self, number):
        """The error that closing this round must raise, or None."""
        if not 0 <= number < len(self.states):
            return UnknownTrial
        return None if self.states[number] == "open" else TrialClosed

    @property
    def open(self):
        return tuple(n for n, state in enumerate(self.states) if state == "open")


def follow(sequence, expire_after):
    """Run a sequence on the session and on the model; every step must agree."""
    session, model = Session(expire_after), Model(expire_after)
    for step in sequence:
        if step == ASK:
            session.ask(Asked(session.asked, POINT))
            model.ask()
        elif (expected := model.error(step)) is None:
            assert session.close(step).number == step
            model.states[step] = "closed"
        else:
            with pytest.raises(expected):
                session.close(step)
        assert session.open_rounds == model.open
        assert session.asked == len(model.states)


@pytest.mark.parametrize("expire_after", [1, 2, 3])
def test_no_sequence_of_calls_closes_a_round_twice_or_loses_one(expire_after):
    steps = (ASK, -1, 0, 1, 2)
    for sequence in itertools.product(steps, repeat=6):
        follow(sequence, expire_after)


@pytest.mark.parametrize("expire_after", [1, 2, 5, 17])
def test_a_round_expires_with_the_ask_that_comes_that_much_later(expire_after):
    session = Session(expire_after)
    session.ask(Asked(0, POINT))
    for number in range(1, expire_after):
        session.ask(Asked(number, POINT))
        assert 0 in session.open_rounds
    session.ask(Asked(expire_after, POINT))
    assert 0 not in session.open_rounds
    with pytest.raises(TrialClosed, match=f"trials expire after {expire_after} further asks"):
        session.close(0)


def test_the_error_says_whether_a_round_was_answered_or_never_asked():
    session = Session(expire_after=10)
    session.ask(Asked(0, POINT))
    session.close(0)
    with pytest.raises(TrialClosed, match="trial 0 was already told or abandoned"):
        session.find(0)
    with pytest.raises(UnknownTrial, match="trial 1 was never asked for"):
        session.find(1)
    with pytest.raises(UnknownTrial, match="trial -1 was never asked for"):
        session.find(-1)


@pytest.mark.parametrize("number", [-1, 0, 2, 7])
def test_rounds_are_asked_one_after_the_other(number):
    session = Session(expire_after=10)
    session.ask(Asked(0, POINT))
    with pytest.raises(UnknownTrial, match=f"the next trial is 1, not {number}"):
        session.ask(Asked(number, POINT))
    assert (session.asked, session.open_rounds) == (1, (0,))


def test_looking_at_a_round_does_not_close_it():
    session = Session(expire_after=10)
    session.ask(Asked(0, POINT))
    assert session.find(0) is session.find(0) is session.close(0)


@pytest.mark.parametrize("answered", [True, False], ids=["told", "expired"])
def test_the_state_does_not_grow_with_closed_rounds(answered):
    session = Session(expire_after=7)
    sizes = []
    for number in range(5_000):
        session.ask(Asked(number, POINT))
        if answered:
            session.close(number)
        if number + 1 in (1_000, 5_000):
            sizes.append((len(pickle.dumps(session)), sys.getsizeof(session._open)))
    assert sizes[0] == sizes[1]
    assert len(session.open_rounds) == (0 if answered else 7)


# -- the table itself

ROLES, STATES, EVENTS = get_args(Party), get_args(State), get_args(Event)


@pytest.mark.parametrize("role", ROLES)
def test_what_is_not_in_the_table_is_refused(role):
    allowed = {(s.state, s.event): s.then for s in TABLE if role in s.seen_by}
    assert len(allowed) == sum(role in step.seen_by for step in TABLE)  # no event has two ends
    for state, event in itertools.product((None, *STATES), EVENTS):
        if (state, event) in allowed:
            assert advance(role, state, event) == allowed[state, event]
        else:
            with pytest.raises(UnknownTrial if state is None else TrialClosed):
                advance(role, state, event)


@pytest.mark.parametrize("role", ROLES)
def test_no_sequence_of_events_reports_a_round_twice_or_reopens_it(role):
    """All 5^6 sequences of events; what is refused changes nothing."""
    ends = set()
    for sequence in itertools.product(EVENTS, repeat=6):
        state, closed, reports = None, None, 0
        for event in sequence:
            try:
                state = advance(role, state, event)
            except (TrialClosed, UnknownTrial):
                continue
            reports += event == "report"
            assert closed is None
            closed = None if state in OPEN else state
        assert reports == (state == "reported")
        ends.add(state)
    wanted = {None, *STATES} - ({"chosen"} if role == "server" else set())
    assert ends == wanted


def test_repeating_what_brought_a_round_to_its_end_is_no_error_but_no_step_either():
    for state, event in (("reported", "report"), ("abandoned", "abandon"), ("expired", "expire")):
        assert is_repeat(state, event)
        assert not any(is_repeat(state, other) for other in EVENTS if other != event)
        for role in ROLES:
            with pytest.raises(TrialClosed):
                advance(role, state, event)


def test_an_epoch_that_closes_expires_its_rounds_and_says_so():
    session = Session(expire_after=10, party="client")
    for number in range(3):
        session.ask(Asked(number, POINT))
    session.close(1)
    session.expire_before(3)
    assert session.open_rounds == ()
    with pytest.raises(TrialClosed, match="trial 0 is closed: its epoch is over"):
        session.close(0)
    session.ask(Asked(3, POINT))
    assert session.open_rounds == (3,)
