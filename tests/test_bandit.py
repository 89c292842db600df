"""Ask and tell: errors that change nothing, no side door between users, exact resumption."""

import contextlib
import hashlib
import math
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.journals import ListJournal, decoded

from discreet import (
    Bandit,
    Box,
    Categorical,
    DiscreetError,
    Integer,
    JointDP,
    Linear,
    LocalDP,
    NonPrivate,
    Plan,
    Polynomial,
    Schedule,
    Simulation,
    SquaredExponential,
    Trial,
)
from discreet.errors import (
    BetweenEpochs,
    InvalidArgument,
    JournalDamaged,
    JournalFailed,
    JournalForeign,
    JournalLocked,
    Refused,
    StudyEnded,
    TrialClosed,
    UnknownTrial,
)
from discreet.privacy.looks import FOUR_LOOKS
from discreet.protocol.records import Abandoned, Asked, Told, UserKey
from discreet.storage import canonical
from discreet.storage.journal import SQLiteJournal

CANARY = 987654.25
KINDS = ("box", "context", "candidates")


@cache
def make_plan(kind="box", **parts):
    """A small plan: epochs of 6, 3, 5, 7, 11, ... asks."""
    context = ["age"] if kind == "context" else []
    defaults = {
        "domain": Box({"dose": (0, 10), "age": (18, 90)}, context=context),
        "kernel": SquaredExponential(0.5),
        "kernel_error": 0.05,
        "decisions": kind,
        "schedule": Schedule(first=6, growth=1.5),
        "expire_after": 5,
        "horizon": 40,
    }
    return Plan(**({"privacy": NonPrivate()} | defaults | parts))


def choices(kind, number):
    """What user `number` brings: the arguments of an ask."""
    rng = np.random.Generator(np.random.Philox(number))
    if kind == "context":
        return {"context": {"age": float(rng.uniform(18, 90))}}
    if kind == "candidates":
        return {"candidates": rng.uniform((0, 18), (10, 90), (5, 2))}
    return {}


def answer(trial):
    return 1 - (trial.action["dose"] - trial.action["age"] / 10) ** 2 / 81


def play(bandit, rounds):
    """Ask and tell; the trials, to compare with another course."""
    trials = []
    for _ in range(rounds):
        trials.append(bandit.ask(**choices(bandit.plan.decisions, bandit.asked)))
        bandit.tell(trials[-1], answer(trials[-1]))
    return trials


def state(bandit):
    """What can be seen of a bandit."""
    return canonical.digest(bandit.study), bandit.asked, bandit.open_trials


# -- errors: a clear message, nothing changed, nothing lost


def told_twice(bandit, trial):
    bandit.tell(8, CANARY)


def told_by_a_copy(bandit, trial):
    bandit.tell(Trial(8, {"dose": CANARY, "age": CANARY}), 0.5)


def told_after_expiry(bandit, trial):
    bandit.tell(1, CANARY)


def abandoned_after_telling(bandit, trial):
    bandit.abandon(8)


def unknown(bandit, trial):
    bandit.tell(10, CANARY)


def negative(bandit, trial):
    bandit.tell(-1, CANARY)


def of_another_study(bandit, trial):
    bandit.tell(Trial(trial.number, {"dose": CANARY, "age": 50.0}, None), 0.5)


def abandoned_of_another_study(bandit, trial):
    bandit.abandon(Trial(trial.number, {"dose": CANARY, "age": 50.0}, None))


TRIAL_ERRORS = {
    told_twice: (TrialClosed, "trial 8 was already told or abandoned"),
    told_by_a_copy: (TrialClosed, "trial 8 was already told or abandoned"),
    told_after_expiry: (TrialClosed, "trials expire after 5 further asks"),
    abandoned_after_telling: (TrialClosed, "trial 8 was already told or abandoned"),
    unknown: (UnknownTrial, "trial 10 was never asked for"),
    negative: (UnknownTrial, "trial -1 was never asked for"),
    of_another_study: (UnknownTrial, "trial 9 of this study is another one: wrong study"),
    abandoned_of_another_study: (UnknownTrial, "trial 9 of this study is another one"),
}


def chain(error):
    """An error and those a reader would see beneath it."""
    while error is not None:
        yield error
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)


def assert_refused_without_a_trace(kind, call, error, words, *, rounds=9):
    """`call` fails with these words, and the study goes on as if it had not been made."""
    bandits = [Bandit(make_plan(kind), ListJournal()) for _ in range(2)]
    trials = []
    for bandit in bandits:
        play(bandit, rounds)
        trials.append(bandit.ask(**choices(kind, rounds)))
    disturbed, spared = bandits
    before, records = state(disturbed), len(disturbed._journal.kept)
    with pytest.raises(error, match=words) as raised:
        call(disturbed, trials[0])
    assert isinstance(raised.value, DiscreetError)
    assert not any("987654" in f"{link}{link!r}" for link in chain(raised.value))
    assert state(disturbed) == before
    assert len(disturbed._journal.kept) == records
    courses = []
    for bandit, trial in zip(bandits, trials, strict=True):
        late = bandit.ask(**choices(kind, rounds + 1))
        bandit.tell(trial, answer(trial))
        courses.append((late, play(bandit, 4)))
        bandit.finish()
    assert courses[0] == courses[1]
    assert state(disturbed) == state(spared)


def assert_refused_as_a_round_of_its_own(kind, call, error, words, *, rounds=9):
    """`call` fails with these words and takes an index, as if its ask had been abandoned."""
    bandits = [Bandit(make_plan(kind), ListJournal()) for _ in range(2)]
    for bandit in bandits:
        play(bandit, rounds)
    failed, abandoned = bandits
    with pytest.raises(error, match=words) as raised:
        call(failed, None)
    assert isinstance(raised.value, DiscreetError)
    assert not any("987654" in f"{link}{link!r}" for link in chain(raised.value))
    abandoned.abandon(abandoned.ask(**choices(kind, rounds)))
    assert state(failed) == state(abandoned) == state(Bandit(failed.plan, failed._journal))
    courses = []
    for bandit in bandits:
        late = bandit.ask(**choices(kind, rounds + 1))
        courses.append((late, play(bandit, 4)))
        bandit.tell(late, answer(late))
        bandit.finish()
    assert courses[0] == courses[1]
    assert state(failed) == state(abandoned)
    with pytest.raises(TrialClosed):
        failed.tell(rounds, 0.5)


@pytest.mark.parametrize("call", TRIAL_ERRORS, ids=lambda call: call.__name__)
@pytest.mark.parametrize("kind", KINDS)
def test_a_trial_that_cannot_be_told_is_refused_without_a_trace(kind, call):
    assert_refused_without_a_trace(kind, call, *TRIAL_ERRORS[call])


@pytest.mark.parametrize("number", [None, "9", 9.0, True, np.bool_(True), [9]], ids=repr)
def test_what_is_neither_a_trial_nor_its_number_is_refused_without_a_trace(number):
    assert_refused_without_a_trace(
        "box", lambda bandit, _: bandit.tell(number, CANARY), InvalidArgument, "a Trial, or its"
    )


@pytest.mark.parametrize(
    "reward",
    [
        math.nan,
        math.inf,
        -math.inf,
        None,
        "987654.25",
        b"987654.25",
        1j,
        [CANARY],
        np.array([CANARY]),
        np.float64("nan"),
        10**400,
        Fraction(10) ** 400,
    ],
    ids=lambda reward: type(reward).__name__ + "_" + str(reward)[:8],
)
def test_a_reward_that_is_no_finite_number_is_refused_without_a_trace(reward):
    assert_refused_without_a_trace(
        "box",
        lambda bandit, trial: bandit.tell(trial, reward),
        InvalidArgument,
        "reward: expected a finite number, True or False; abandon what has no reward$",
    )


@pytest.mark.parametrize("reward", [True, np.bool_(True), np.float32(1), np.int64(1), np.array(1)])
def test_truth_values_and_numpys_scalars_are_rewards(reward):
    told = ListJournal(), ListJournal()
    for journal, value in zip(told, (1.0, reward), strict=True):
        bandit = Bandit(make_plan("box"), journal)
        bandit.tell(bandit.ask(), value)
    assert told[0].kept[-1] == told[1].kept[-1]


@pytest.mark.parametrize(
    "privacy", [JointDP(1.0, 1e-3), LocalDP(1.0, 1e-3)], ids=["joint", "local"]
)
def test_a_number_and_its_text_are_one_user(privacy):
    bandit = Bandit(Plan(domain=Box({"dose": (0, 10)}), privacy=privacy))
    bandit.ask(user=17)
    for same in ("17", np.int64(17)):
        with pytest.raises(Refused, match="has taken part in 1 of 1"):
            bandit.ask(user=same)
    with pytest.raises(InvalidArgument, match="text or a whole number"):
        bandit.ask(user=17.0)
    assert bandit.asked == 1


@pytest.mark.parametrize("rounds", [5, 8], ids=["at the end of an epoch", "inside an epoch"])
@pytest.mark.parametrize(
    ("candidates", "words"),
    [
        ([], "non-empty"),
        (np.empty((0, 2)), "non-empty"),
        (7, "non-empty"),
        ("dose", "non-empty"),
        (np.zeros(2), "row 0"),
        (np.zeros((3, 3)), "values for 'dose', 'age'"),
        (np.zeros((3, 2, 2)), "row 0"),
        ([{"dose": 1.0}], "a value for 'age'"),
        ([{"dose": 1.0, "age": 20.0, str(CANARY): 1}], "no names but"),
        ([{"dose": 1.0, "age": 20.0}, {"dose": CANARY, "age": 20.0}], r"within .* \(row 1\)"),
        (np.array([[1.0, CANARY]]), "age to be a finite number within"),
        (np.array([[1.0, math.nan]]), "age to be a finite number within"),
        (np.array([[math.inf, 20.0]]), "dose to be a finite number within"),
        ([[1.0, str(CANARY)]], "age to be"),
        ([[1.0, None]], "age to be"),
        ([[True, 20.0]], "dose to be"),
    ],
)
def test_bad_candidates_are_refused_as_a_round_of_their_own(candidates, words, rounds):
    assert_refused_as_a_round_of_its_own(
        "candidates",
        lambda bandit, _: bandit.ask(candidates),
        InvalidArgument,
        f"candidates: expected .*{words}",
        rounds=rounds,
    )


@pytest.mark.parametrize("rounds", [5, 8], ids=["at the end of an epoch", "inside an epoch"])
@pytest.mark.parametrize(
    ("context", "words"),
    [
        ({}, "a value for 'age'"),
        ({str(CANARY): 1.0}, "a value for 'age'"),
        ({"age": 50.0, "dose": CANARY}, "no names but 'age'"),
        ({"age": CANARY}, "age to be a finite number within"),
        ({"age": math.nan}, "age to be a finite number within"),
        ({"age": str(CANARY)}, "age to be"),
        ({"age": None}, "age to be"),
        (CANARY, "a mapping"),
    ],
)
def test_a_bad_context_is_refused_as_a_round_of_its_own(context, words, rounds):
    assert_refused_as_a_round_of_its_own(
        "context",
        lambda bandit, _: bandit.ask(context=context),
        InvalidArgument,
        f"context: expected .*{words}",
        rounds=rounds,
    )


@pytest.mark.parametrize("rounds", [5, 8], ids=["at the end of an epoch", "inside an epoch"])
@pytest.mark.parametrize(("declared", "asked"), [(a, b) for a in KINDS for b in KINDS if a != b])
def test_an_ask_of_another_kind_than_declared_is_refused_as_a_round_of_its_own(
    declared, asked, rounds
):
    assert_refused_as_a_round_of_its_own(
        declared,
        lambda bandit, _: bandit.ask(**choices(asked, 0)),
        Refused,
        f"decisions='{declared}': call ask",
        rounds=rounds,
    )


def test_an_ask_with_candidates_and_a_context_is_refused():
    for kind in KINDS:
        with pytest.raises(Refused, match=f"decisions='{kind}'"):
            Bandit(make_plan(kind)).ask([[1.0, 20.0]], context={"age": 20.0})


def test_infeasible_candidates_are_refused():
    box = Box({"dose": (0, 10)}, feasible="dose <= 5")
    bandit = Bandit(make_plan("candidates", domain=box))
    with pytest.raises(InvalidArgument, match=r"satisfy 'dose <= 5' \(row 1\)"):
        bandit.check([[1.0], [5.5]])
    assert bandit.asked == 0
    with pytest.raises(InvalidArgument, match=r"satisfy 'dose <= 5' \(row 1\)"):
        bandit.ask([[1.0], [5.5]])
    assert (bandit.asked, bandit.open_trials) == (1, ())


def test_a_context_without_any_feasible_action_ends_an_epoch_like_any_other_ask():
    box = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"], feasible="age < 80")
    bandit, spared = (Bandit(make_plan("context", domain=box)) for _ in range(2))
    for each in (bandit, spared):
        for number in range(6):
            each.ask(context={"age": 40.0 + number})
    with pytest.raises(Refused, match="feasibility predicate in this context"):
        bandit.check(context={"age": 85.0})
    assert not bandit.study.releases
    with pytest.raises(Refused, match="feasibility predicate in this context"):
        bandit.ask(context={"age": 85.0})
    spared.abandon(spared.ask(context={"age": 40.0}))
    assert state(bandit) == state(spared)
    assert len(bandit.study.releases) == 1
    assert bandit.ask(context={"age": 30.0}) == spared.ask(context={"age": 30.0})


def test_the_horizon_ends_the_asks_and_nothing_else():
    bandit = Bandit(make_plan("box", horizon=7))
    play(bandit, 6)
    last = bandit.ask()
    before = state(bandit)
    for _ in range(2):
        with pytest.raises(StudyEnded, match=r"tell what is open, then call finish\(\)"):
            bandit.ask()
    assert state(bandit) == before
    bandit.tell(last, 0.5)
    bandit.finish()
    assert sum(epoch.length for epoch in bandit.study.epochs) == 7


def test_a_finished_study_takes_no_more_asks_and_rewards():
    bandit = Bandit(make_plan("box"))
    play(bandit, 7)
    waiting = bandit.ask()
    bandit.finish()
    before = state(bandit)
    bandit.finish()  # once more changes nothing
    assert state(bandit) == before
    for call in (bandit.ask, lambda: bandit.tell(waiting, CANARY)):
        with pytest.raises(StudyEnded, match="finished") as raised:
            call()
        assert "987654" not in str(raised.value)
        assert state(bandit) == before


def fail(*records):
    raise JournalFailed("disk full")


@pytest.mark.parametrize("rounds", [3, 5], ids=["inside an epoch", "at the end of an epoch"])
@pytest.mark.parametrize("name", ["ask", "finish", "tell", "abandon"])
def test_a_journal_that_fails_changes_nothing(name, rounds):
    journal = ListJournal()
    bandit, spared = Bandit(make_plan("box"), journal), Bandit(make_plan("box"))
    for each in (bandit, spared):
        play(each, rounds)
        each.ask()
    before, arguments = state(bandit), {"tell": (rounds, 0.5), "abandon": (rounds,)}.get(name, ())
    journal.append = fail
    for _ in range(2):
        with pytest.raises(JournalFailed, match="disk full"):
            getattr(bandit, name)(*arguments)
        assert state(bandit) == before
    del journal.append
    for each in (bandit, spared):
        getattr(each, name)(*arguments)
    assert state(bandit) == state(spared) == state(Bandit(bandit.plan, journal))


@pytest.mark.parametrize("rounds", [3, 5], ids=["inside an epoch", "at the end of an epoch"])
def test_between_a_draw_and_its_commit_nothing_comes_in_that_no_release_would_hold(rounds):
    journal = ListJournal()
    bandit = Bandit(make_plan("box"), journal)
    play(bandit, rounds)
    bandit.ask()
    journal.append = fail
    with pytest.raises(JournalFailed, match="disk full"):
        bandit.finish()
    del journal.append
    before, records = state(bandit), len(journal.kept)
    calls = [lambda: bandit.tell(rounds, CANARY)] + ([bandit.ask] if rounds == 3 else [])
    for call in calls:
        with pytest.raises(BetweenEpochs, match="drawn, but not stored yet") as raised:
            call()
        assert "987654" not in str(raised.value)
        assert (state(bandit), len(journal.kept)) == (before, records)
    if rounds == 3:
        bandit.finish()
    else:
        bandit.ask()
        bandit.tell(rounds, 0.5)  # late, in the next epoch
    assert state(bandit) == state(Bandit(bandit.plan, journal))


def test_a_release_that_nobody_can_learn_from_is_not_committed(monkeypatch):
    journal = ListJournal()
    bandit = Bandit(make_plan("box"), journal)
    play(bandit, 6)
    before, records = state(bandit), len(journal.kept)

    def fail_to_learn(*arguments):
        raise FloatingPointError

    monkeypatch.setattr("discreet.learning.study.learn", fail_to_learn)
    for call in (bandit.finish, bandit.ask):
        with pytest.raises(FloatingPointError):
            call()
        assert (state(bandit), len(journal.kept)) == (before, records)


# -- several asks in flight; late, lost and out-of-order answers


@pytest.mark.parametrize("order", [(5, 4, 3, 2, 1, 0), (2, 0, 5, 1, 4, 3)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_the_order_of_answers_within_an_epoch_does_not_change_a_byte(kind, order):
    plan = make_plan(kind, expire_after=50)
    in_order, shuffled = Bandit(plan), Bandit(plan)
    play(in_order, 6)
    trials = [shuffled.ask(**choices(kind, number)) for number in range(6)]
    for number in order:
        shuffled.tell(trials[number], answer(trials[number]))
    assert play(in_order, 10) == play(shuffled, 10)
    assert state(in_order) == state(shuffled)


def test_a_late_answer_enters_the_open_epoch_once():
    bandit = Bandit(make_plan("box", expire_after=50))
    trials = [bandit.ask() for _ in range(6)]
    for trial in trials[:4]:
        bandit.tell(trial, 0.5)
    trials.append(bandit.ask())  # the first ask of the next epoch
    bandit.tell(trials[4], 0.75)
    with pytest.raises(TrialClosed):
        bandit.tell(trials[4], 0.75)
    bandit.finish()
    first, second = bandit.study.epochs
    releases = [release.integers for release in bandit.study.releases]
    assert releases[0].tolist() == encoded(bandit.plan, first, [0, 1, 2, 3], [0.5] * 4)
    assert releases[1].tolist() == encoded(bandit.plan, second, [4], [0.75], asked_in=first)


def encoded(plan, epoch, numbers, rewards, *, asked_in=None):
    """The sums of some rounds of the whole box, from the public menu and the rewards."""
    menu = (asked_in or epoch).policy.menu
    centred = 2 * np.array(rewards) - 1
    return epoch.encoding.encode(plan.map, menu[numbers], centred).sum(axis=0).tolist()


def test_rewards_beyond_the_range_are_clipped_to_it():
    courses = []
    for low, high in [(0.0, 1.0), (-CANARY, CANARY)]:
        bandit = Bandit(make_plan("box"))
        for number in range(12):
            bandit.tell(bandit.ask(), high if number % 2 else low)
        courses.append(state(bandit))
    assert courses[0] == courses[1]


@pytest.mark.parametrize("number", [np.int64(0), np.uint8(0), 0])
@pytest.mark.parametrize("reward", [0.5, np.float32(0.5), np.float64(0.5), Fraction(1, 2)])
def test_numbers_of_every_kind_are_taken(number, reward):
    bandit, plain = Bandit(make_plan("box"), ListJournal()), Bandit(make_plan("box"))
    for each, call in ((bandit, (number, reward)), (plain, (0, 0.5))):
        each.ask()
        each.tell(*call)
        each.finish()
    assert state(bandit) == state(plain) == state(Bandit(bandit.plan, bandit._journal))


def test_candidates_changed_after_the_ask_do_not_change_the_trial():
    candidates = np.array([[1.0, 20.0], [9.0, 80.0]])
    plan = make_plan("candidates")
    bandit, spared = Bandit(plan), Bandit(plan)
    for each in (bandit, spared):
        trial = each.ask(candidates.copy() if each is spared else candidates)
        assert [trial.action["dose"], trial.action["age"]] == candidates[trial.chosen].tolist()
        if each is bandit:
            candidates *= 0.0
        each.tell(trial, 0.5)
        each.finish()
        candidates[:] = [[1.0, 20.0], [9.0, 80.0]]
    assert state(bandit) == state(spared)


# -- no side door between users


def course(kind, replaced=None, *, bring=None, reward=None, meanwhile="told"):
    """Every action of the second epoch (asks 6, 7, 8) and its release.

    User `replaced` of that epoch brings something else, or answers something else; meanwhile
    the trials of the others are told, abandoned or left open.
    """
    bandit = Bandit(make_plan(kind, expire_after=50))
    play(bandit, 6)
    actions = []
    for number in (6, 7, 8):
        arguments = choices(kind, number)
        trial = bandit.ask(**(bring if number == replaced and bring else arguments))
        actions.append((trial.number, trial.chosen, trial.action))
        if number == replaced and reward is not None:
            bandit.tell(trial, reward)
        elif meanwhile == "told":
            bandit.tell(trial, answer(trial))
        elif meanwhile == "abandoned":
            bandit.abandon(trial)
    bandit.ask(**choices(kind, 9))
    return actions, bandit.study.releases[1].integers


@pytest.mark.parametrize("replaced", [6, 7, 8])
@pytest.mark.parametrize("kind", KINDS)
def test_another_users_answer_does_not_change_an_action_of_its_epoch(kind, replaced):
    actions, release = course(kind)
    others, other_release = course(kind, replaced, reward=0.123)
    assert others == actions
    assert (other_release != release).any()  # it was heard, through the release


@pytest.mark.parametrize("replaced", [6, 7, 8])
@pytest.mark.parametrize("kind", ["context", "candidates"])
def test_what_another_user_brings_does_not_change_an_action_of_its_epoch(kind, replaced):
    actions, release = course(kind)
    others, other_release = course(kind, replaced, bring=choices(kind, 99))
    mine = replaced - 6
    assert others[:mine] + others[mine + 1 :] == actions[:mine] + actions[mine + 1 :]
    assert others[mine] != actions[mine]
    assert (other_release != release).any()


@pytest.mark.parametrize("meanwhile", ["open", "abandoned"])
@pytest.mark.parametrize("kind", KINDS)
def test_an_action_does_not_depend_on_other_users_open_rounds(kind, meanwhile):
    assert course(kind, meanwhile=meanwhile)[0] == course(kind)[0]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_index_in_the_same_epoch_gets_the_same_action(kind):
    """User 7 with what user 8 brings gets what the frozen policy says for index 7."""
    plan = make_plan(kind, expire_after=50)
    bandit = Bandit(plan)
    play(bandit, 7)
    policy, own = bandit.study.open_epoch.policy, choices(kind, 8)
    trial = bandit.ask(**own)
    if kind == "box":
        expected = policy.menu[1]
    elif kind == "context":
        fixed = plan.domain.encode_context(own["context"])
        expected = policy.search(plan.map, np.array([1]), plan.domain, fixed[None])[0][0]
    else:
        options = plan.domain.encode(own["candidates"])
        expected = options[policy.choose(plan.map, np.array([1]), [options])[0]]
    assert trial.action == plan.domain.decode(expected)


# -- resuming


def scripted(bandit, step):
    """One step of a course with three asks in flight: some told late, some out of order."""
    kind = bandit.plan.decisions
    waiting = bandit.open_trials
    if len(waiting) < 3 or step % 5 == 0:
        return bandit.ask(**choices(kind, bandit.asked))
    if step % 7 == 0:
        return bandit.abandon(waiting[0])
    number = waiting[step % len(waiting)]
    return bandit.tell(number, (number * 0.37) % 1.0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_resumed_at_any_point_continues_exactly(kind, tmp_path):
    plan, steps = make_plan(kind), 24
    whole = Bandit(plan)
    expected = [scripted(whole, step) for step in range(steps)]
    whole.finish()
    assert len(whole.study.epochs) >= 3
    for cut in range(steps + 1):
        path = tmp_path / f"{cut}.db"
        with Bandit(plan, path) as bandit:
            found = [scripted(bandit, step) for step in range(cut)]
            before = state(bandit)
        with Bandit(plan, path) as bandit:
            assert state(bandit) == before
            found += [scripted(bandit, step) for step in range(cut, steps)]
            bandit.finish()
            assert found == expected
            assert state(bandit) == state(whole)
        with Bandit(plan, path) as bandit:
            bandit.finish()
            assert state(bandit) == state(whole)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.one_of(
            st.just(("ask", 0, 0.0)),
            st.tuples(st.sampled_from(["tell", "abandon"]), st.integers(0, 20), st.floats(0, 1)),
            st.just(("restart", 0, 0.0)),
        ),
        max_size=60,
    )
)
def test_restarting_at_any_time_is_invisible(steps):
    plan = make_plan("box", kernel=Linear(), horizon=20)
    journal = ListJournal()
    resumed, steady = Bandit(plan, journal), Bandit(plan)
    for name, number, reward in steps:
        if name == "restart":
            resumed = Bandit(plan, journal)
            continue
        outcomes = []
        for bandit in (resumed, steady):
            arguments = {"ask": (), "tell": (number, reward), "abandon": (number,)}[name]
            try:
                outcomes.append(getattr(bandit, name)(*arguments))
            except DiscreetError as error:
                outcomes.append((type(error), str(error)))
        assert outcomes[0] == outcomes[1]
        assert state(resumed) == state(steady)
    resumed.finish()
    steady.finish()
    assert state(resumed) == state(steady) == state(Bandit(plan, journal))


def test_a_trial_asked_before_the_resume_can_be_told_after_it(tmp_path):
    plan = make_plan("box")
    with Bandit(plan, tmp_path / "study.db") as bandit:
        first, second = bandit.ask(), bandit.ask()
        bandit.tell(second, 0.5)
    with Bandit(plan, tmp_path / "study.db") as bandit:
        assert bandit.open_trials == (0,)
        with pytest.raises(TrialClosed, match="trial 1 was already told"):
            bandit.tell(second, 0.5)
        bandit.tell(first, 0.5)
        assert bandit.open_trials == ()


@pytest.mark.parametrize("privacy", [NonPrivate(), JointDP(2.0, 1e-2)], ids=["none", "joint"])
@pytest.mark.parametrize("kind", ["box", "candidates"])
def test_a_kernel_so_long_that_nothing_varies_can_be_played(kind, privacy):
    plan = make_plan(
        kind, kernel=SquaredExponential(100.0), privacy=privacy, schedule=None, horizon=None
    )
    assert plan.map.dimension == 1
    bandit = Bandit(plan, simulation=Simulation(1))
    for number in range(plan.design_asks + 10):
        bandit.tell(bandit.ask(**choices(kind, number), user=f"user {number}"), 0.8)
    assert bandit.best().mean == pytest.approx(0.8, abs=0.15)


@pytest.mark.parametrize(
    ("parts", "names"),
    [
        ({"horizon": 41}, "horizon"),
        ({"expire_after": 6, "rewards": (0.0, 2.0)}, "expire_after, rewards"),
        ({"noise_std": 0.1, "signal_std": 0.2}, "noise_std, signal_std"),
        ({"name": "other"}, "name"),
        ({"schedule": Schedule(first=6, growth=1.6)}, "schedule"),
    ],
    ids=["horizon", "several", "scales", "name", "schedule"],
)
def test_a_journal_of_another_plan_is_refused_and_names_what_differs(tmp_path, parts, names):
    path = tmp_path / "study.db"
    with Bandit(make_plan("box"), path) as bandit:
        play(bandit, 8)
        before = state(bandit)
    with pytest.raises(JournalForeign, match=f"another plan: {names}"):
        Bandit(make_plan("box", **parts), path)
    with Bandit(make_plan("box"), path) as bandit:
        assert state(bandit) == before


@pytest.mark.parametrize("private", [True, False])
def test_a_plan_with_fields_that_the_journals_plan_leaves_out_is_another_plan(private, tmp_path):
    """Looks are in the record of a private plan over the box, but nobody wrote them."""
    plans = [make_plan("box", privacy=JointDP(1.0, 1e-3)), make_plan("box")]
    ours, other = plans if private else plans[::-1]
    Bandit(ours, tmp_path / "study.db").close()
    with pytest.raises(JournalForeign, match="another plan: privacy"):
        Bandit(other, tmp_path / "study.db")


def test_a_second_writer_is_refused_and_the_first_goes_on(tmp_path):
    path = tmp_path / "study.db"
    with Bandit(make_plan("box"), path) as bandit:
        play(bandit, 3)
        with pytest.raises(JournalLocked):
            Bandit(make_plan("box"), path)
        play(bandit, 10)
        before = state(bandit)
    with Bandit(make_plan("box"), path) as bandit:
        assert state(bandit) == before


def test_a_bandit_that_could_not_start_lets_go_of_its_journal(tmp_path):
    path = tmp_path / "study.db"
    Bandit(make_plan("box"), path).close()
    with pytest.raises(JournalForeign):
        Bandit(make_plan("box", name="other"), path)
    SQLiteJournal(path).close()


def test_a_closed_bandit_takes_nothing_more(tmp_path):
    bandit = Bandit(make_plan("box"), tmp_path / "study.db")
    trial = bandit.ask()
    bandit.close()
    before = state(bandit)
    for call in (bandit.ask, lambda: bandit.tell(trial, 0.5), bandit.finish):
        with pytest.raises(Refused, match="closed"):
            call()
    assert state(bandit) == before


@pytest.mark.parametrize("damage", ["edited", "cut", "overwritten"])
def test_a_damaged_journal_is_refused(tmp_path, damage):
    path = tmp_path / "study.db"
    with Bandit(make_plan("box"), path) as bandit:
        play(bandit, 20)
    data = path.read_bytes()
    if damage == "edited":
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("UPDATE record SET body = x'7b7d' WHERE seq = 9")
    elif damage == "cut":
        path.write_bytes(data[: len(data) // 2])
    else:
        path.write_bytes(data.replace(b'"type":"Told"', b'"type":"told"', 1))
    with pytest.raises(JournalDamaged, match=r"study\.db"):
        Bandit(make_plan("box"), path)


def test_a_file_that_is_no_journal_is_refused_and_left_as_it_is(tmp_path):
    path = tmp_path / "diary.txt"
    path.write_text("dear diary\n")
    with pytest.raises(JournalForeign):
        Bandit(make_plan("box"), path)
    assert path.read_text() == "dear diary\n"
    assert [file.name for file in tmp_path.iterdir()] == ["diary.txt"]


@pytest.mark.parametrize("first", [b"dear diary", b"", canonical.encode(Told(0, CANARY))])
def test_a_journal_that_does_not_begin_with_a_plan_is_foreign(first):
    journal = ListJournal([first])
    with pytest.raises(JournalForeign, match="plan") as raised:
        Bandit(make_plan("box"), journal)
    assert not any("987654" in str(link) for link in chain(raised.value))
    assert journal.kept == [first]


@pytest.mark.parametrize(
    ("position", "record"),
    [
        (7, canonical.encode(Told(0, CANARY))),
        (7, canonical.encode(Told(77, CANARY))),
        (7, canonical.encode(Asked(77, np.array([CANARY, CANARY])))),
        (7, canonical.encode(make_plan("box"))),
        (7, canonical.encode(UserKey("ab" * 32))),
        (7, b'{"number":0,"reward":987654,"type":"Told"}'),
        (7, b'{"type":"987654"}'),
        (3, canonical.encode(Asked(0, np.array([0.5, 0.5])))),
        (3, canonical.encode(Told(0, CANARY))),
        (2, canonical.encode(Told(0, CANARY))),
        (2, b'{"key":"987654","type":"UserKey"}'),
        (6, None),
        (3, None),
        (2, None),
    ],
)
def test_records_that_do_not_fit_together_are_damage(position, record):
    journal = ListJournal()
    play(Bandit(make_plan("box"), journal), 8)
    journal.kept[position : position + 1] = [] if record is None else [record]
    with pytest.raises(JournalDamaged, match="does not fit the ones before it") as raised:
        Bandit(make_plan("box"), journal)
    assert not any("987654" in str(link) for link in chain(raised.value))


# -- learning


def test_the_best_dose_is_learnt_for_every_age():
    domain = Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
    plan = Plan(domain=domain, privacy=NonPrivate(), kernel=SquaredExponential(0.4), horizon=300)
    rng = np.random.Generator(np.random.Philox(7))
    with Bandit(plan) as bandit:
        for _ in range(300):
            trial = bandit.ask(context={"age": float(rng.uniform(18, 90))})
            ideal = 2 + trial.action["age"] / 15
            mean = 1 - ((trial.action["dose"] - ideal) / 6) ** 2
            bandit.tell(trial, mean + 0.1 * rng.standard_normal())
        bandit.finish()
    for age in (20, 35, 50, 65, 80, 88):
        best = bandit.best(context={"age": age})
        assert best.action["age"] == pytest.approx(age)
        assert abs(best.action["dose"] - (2 + age / 15)) < 2.0
        assert best.interval[0] < best.mean < best.interval[1]
        assert best.interval[0] - 0.1 < 1.0 < best.interval[1] + 0.1
    with pytest.raises(InvalidArgument, match="context: expected a value for each of age"):
        bandit.best()


@pytest.mark.parametrize("kind", KINDS)
def test_whole_numbers_choices_and_feasibility_hold_for_every_action(kind):
    domain = Box(
        {"pills": Integer(0, 4), "arm": Categorical(("a", "b", "c")), "dose": (0, 10)},
        context=["arm"] if kind == "context" else [],
        feasible="dose + pills <= 8 or arm == 'c'",
    )
    rounds = 24 if kind == "context" else 60
    plan = make_plan(kind, domain=domain, kernel=Polynomial(2), horizon=rounds)
    rng = np.random.Generator(np.random.Philox(3))
    bandit, arms = Bandit(plan), set()
    for _ in range(rounds):
        arm = "abc"[rng.integers(3)]
        rows = [[int(rng.integers(5)), "c", float(rng.uniform(0, 10))], [1, arm, 2.5]]
        given = {"context": {"context": {"arm": arm}}, "candidates": {"candidates": rows}}
        trial = bandit.ask(**given.get(kind, {}))
        pills, dose = trial.action["pills"], trial.action["dose"]
        arms.add(trial.action["arm"])
        assert type(pills) is int
        assert 0 <= pills <= 4
        assert 0 <= dose <= 10
        assert dose + pills <= 8 or trial.action["arm"] == "c"
        assert kind != "context" or trial.action["arm"] == arm
        assert kind != "candidates" or list(trial.action.values()) == rows[trial.chosen]
        bandit.tell(trial, 1.0 - abs(dose - 5) / 5 - 0.1 * (pills != 3))
    bandit.finish()
    best = bandit.best(context={"arm": "b"} if kind == "context" else None)
    assert type(best.action["pills"]) is int
    assert best.action["dose"] + best.action["pills"] <= 8 or best.action["arm"] == "c"
    assert len(arms) > 1


def test_asks_in_flight_differ_by_their_index():
    bandit = Bandit(make_plan("box", expire_after=50))
    play(bandit, 20)
    doses = {bandit.ask().action["dose"] for _ in range(5)}
    assert len(doses) > 1


# -- what is held


def test_what_a_bandit_holds_grows_only_with_its_epochs():
    domain = Box({"dose": (0, 10)})
    schedule = Schedule(first=50)
    plan = make_plan(domain=domain, kernel=Linear(), horizon=None, schedule=schedule)
    bandit = Bandit(plan)
    sizes = {}
    for count in range(1, 5_001):
        bandit.tell(bandit.ask(), 0.5)
        if count in (1_000, 5_000):
            sizes[count] = len(canonical.encode(bandit.study)), len(bandit.study.epochs)
    (small, few), (large, many) = sizes[1_000], sizes[5_000]
    assert bandit.open_trials == ()
    assert many - few == pytest.approx(math.log(5) / math.log(1.1), abs=2)
    assert large / small == pytest.approx(many / few, rel=0.1)


def test_the_guarantee_is_said_by_the_plan():
    assert Bandit(make_plan("box")).guarantee.startswith("No privacy guarantee")


# -- who takes part, under joint privacy

USER = "u-17-canary"


def private_plan(kind="box", rounds=1, **parts):
    privacy = JointDP(epsilon=1.0, delta=1e-3, rounds_per_user=rounds)
    return make_plan(kind, privacy=privacy, **parts)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("rounds", [1, 3])
def test_a_user_gets_as_many_asks_as_the_guarantee_allows_also_after_a_resume(
    kind, rounds, tmp_path
):
    plan, path = private_plan(kind, rounds), tmp_path / "study.db"
    for number in range(rounds):
        with Bandit(plan, path) as bandit:
            trial = bandit.ask(**choices(kind, number), user=USER)
            if number % 2:
                bandit.abandon(trial)  # an ask counts, answered or not
            else:
                bandit.tell(trial, 0.5)
    for _ in range(2):
        with Bandit(plan, path) as bandit:
            before = state(bandit)
            words = f"has taken part in {rounds} of {rounds} rounds"
            with pytest.raises(Refused, match=words) as refused:
                bandit.ask(**choices(kind, 9), user=USER)
            assert "17" not in str(refused.value)
            assert state(bandit) == before
            bandit.ask(**choices(kind, 9), user=f"another {bandit.asked}")


def test_a_refused_user_does_not_end_an_epoch():
    bandit = Bandit(private_plan("box", expire_after=50), ListJournal())
    for number in range(6):
        bandit.ask(user=str(number))
    before, records = state(bandit), len(bandit._journal.kept)
    for user, error in (("0", Refused), (None, InvalidArgument)):
        with pytest.raises(error):
            bandit.ask(user=user)
    assert (state(bandit), len(bandit._journal.kept)) == (before, records)
    assert not bandit.study.releases


def test_an_ask_that_is_not_stored_uses_up_no_round_and_one_that_brings_nonsense_does():
    bandit = Bandit(private_plan("candidates"), ListJournal())
    bandit._journal.append = fail
    for candidates in ([[1.0, 20.0]], [[1.0]]):
        with pytest.raises(JournalFailed, match="disk full"):
            bandit.ask(candidates, user=USER)
    del bandit._journal.append
    with pytest.raises(InvalidArgument, match="candidates"):
        bandit.ask([[1.0]], user=USER)
    with pytest.raises(Refused, match="has taken part"):
        bandit.ask([[1.0, 20.0]], user=USER)
    assert bandit.asked == 1


@pytest.mark.parametrize("user", [None, "", 17.0, b"u-17", ("u-17",)], ids=repr)
@pytest.mark.parametrize("protect", ["decisions", "rewards"])
def test_under_privacy_an_ask_without_a_user_is_refused_without_a_trace(user, protect):
    plan = make_plan("box", privacy=JointDP(1.0, 1e-3, protect=protect))
    bandit = Bandit(plan, ListJournal())
    before, records = state(bandit), len(bandit._journal.kept)
    with pytest.raises(InvalidArgument, match="user: expected an id") as refused:
        bandit.ask(user=user)
    assert "u-17" not in str(refused.value)
    assert (state(bandit), len(bandit._journal.kept)) == (before, records)


def test_user_ids_are_kept_as_keyed_hashes_that_differ_between_studies(tmp_path):
    pseudonyms = []
    for name in ("one", "two"):
        with Bandit(private_plan("box"), tmp_path / f"{name}.db") as bandit:
            bandit.tell(bandit.ask(user=USER), 0.5)
            bandit.finish()
            bandit.export(tmp_path / f"{name}.json")
            records = [decoded(Bandit, data) for data in bandit._journal.records()]
        pseudonyms += [record.user for record in records if isinstance(record, Asked)]
    one, two = pseudonyms
    assert one != two
    assert len(one) == len(two) == 32
    files = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert {"one.db", "one.json", "two.db", "two.json"} <= set(files)
    for name, data in files.items():
        assert USER.encode() not in data
        for hashed in (hashlib.md5, hashlib.sha1, hashlib.sha256, hashlib.blake2b):
            assert hashed(USER.encode()).hexdigest()[:32].encode() not in data
        if name.endswith(".json"):
            assert one.encode() not in data
            assert two.encode() not in data


def test_without_privacy_no_trace_of_a_user_is_kept(tmp_path):
    with Bandit(make_plan("box"), tmp_path / "study.db") as bandit:
        for _ in range(3):  # and nobody is counted
            bandit.ask(user=USER)
        records = [decoded(Bandit, data) for data in bandit._journal.records()]
    assert {record.user for record in records if isinstance(record, Asked)} == {None}


@pytest.mark.parametrize("kind", KINDS)
def test_a_private_study_resumed_at_any_point_continues_exactly(kind):
    """With noise from a seed, that is: other noise is another study."""
    plan, steps = private_plan(kind, expire_after=50), 14
    whole = Bandit(plan, simulation=Simulation(5))
    journal = ListJournal()
    for number in range(steps):
        resumed = Bandit(plan, journal, simulation=Simulation(5))
        trials = [b.ask(**choices(kind, number), user=str(number)) for b in (whole, resumed)]
        assert trials[0] == trials[1]
        late = number - 3 if number % 3 else number
        for bandit in (whole, resumed):
            if late in bandit.open_trials:
                bandit.tell(late, (late * 0.37) % 1.0)
        assert state(whole) == state(resumed)
    assert len(whole.study.releases) >= 2


@pytest.mark.parametrize("looks", [(1.0,), (0.8, 0.6), FOUR_LOOKS], ids=len)
def test_a_study_that_looks_again_and_is_resumed_before_every_call_releases_the_same(looks):
    """In the middle of any of seven epochs; with late answers, abandoned and expired trials."""
    parts = {"horizon": None, "looks": looks}
    plan, journal = private_plan("box", **parts), ListJournal()
    courses = [lambda: whole, lambda: Bandit(plan, journal, simulation=Simulation(5))]
    whole = Bandit(plan, simulation=Simulation(5))
    for course in courses:
        while len((bandit := course()).study.epochs) < 7:
            number = bandit.ask(user=str(bandit.asked)).number
            late = number - 3 if number % 4 == 1 else number  # trials expire after 5 asks
            bandit = course()
            if number % 6 == 4:
                bandit.abandon(number)
            elif late in bandit.open_trials and number % 7:
                bandit.tell(late, (late * 0.37) % 1.0)
        course().finish()
    resumed = Bandit(plan, journal, simulation=Simulation(5))
    assert [r.digest for r in resumed.study.releases] == [r.digest for r in whole.study.releases]
    assert state(resumed) == state(whole)
    assert len(whole.study.releases) == 7
    records = [decoded(Bandit, data) for data in journal.kept]
    told = [record.number for record in records if isinstance(record, Told)]
    assert told != sorted(told)  # some were late
    silent = whole.asked - len(told) - sum(isinstance(each, Abandoned) for each in records)
    assert silent > len(whole.open_trials)  # and some have expired


def test_a_private_journal_without_its_key_is_damaged():
    journal = ListJournal()
    Bandit(private_plan("box"), journal).ask(user=USER)
    del journal.kept[2]
    with pytest.raises(JournalDamaged, match="key"):
        Bandit(private_plan("box"), journal)


def test_the_private_guarantee_is_said_by_the_plan():
    guarantee = Bandit(private_plan("box", rounds=2)).guarantee
    assert guarantee.startswith("Joint differential privacy, epsilon = 1 at delta = 0.001")
    assert "at most 2 rounds" in guarantee


# -- threads and interruptions


def test_threads_share_a_bandit_without_a_second_draw_or_a_round_too_many():
    privacy = JointDP(1.0, 1e-3)
    plan = make_plan(
        "box", privacy=privacy, schedule=Schedule(2, 1.01), horizon=200, expire_after=500
    )
    bandit, admitted = Bandit(plan), []

    def take_part(worker):
        for visit in range(20):
            trial = bandit.ask(user=f"{worker} {visit}")
            bandit.tell(trial, 0.5)
            with contextlib.suppress(Refused):
                admitted.append(bandit.ask(user=f"guest {visit}").number)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(take_part, range(4)))
    finally:
        sys.setswitchinterval(before)
    assert len(admitted) == len(set(admitted)) == 20
    assert bandit.asked == 100
    assert len({release.epoch for release in bandit.study.releases}) == len(bandit.study.releases)


def test_an_interrupt_between_commit_and_apply_leaves_a_journal_that_resumes(tmp_path, monkeypatch):
    plan = make_plan("box")
    bandit = Bandit(plan, tmp_path / "study.db")
    trial = bandit.ask()

    def interrupted(self, event):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("discreet.trusted.privatizer.Privatizer.tell", interrupted)
        with pytest.raises(KeyboardInterrupt):
            bandit.tell(trial, 0.5)
    with pytest.raises(Refused, match="open its journal again"):
        bandit.tell(trial, 0.5)
    bandit.close()
    with Bandit(plan, tmp_path / "study.db") as resumed:
        assert resumed.open_trials == ()
        with pytest.raises(TrialClosed):
            resumed.tell(trial, 0.5)


def test_a_simulation_does_not_promise_what_it_does_not_keep():
    plan = make_plan("box", privacy=JointDP(1.0, 1e-3))
    real, simulated = Bandit(plan), Bandit(plan, simulation=Simulation(1))
    assert simulated.guarantee.startswith("A simulation: nothing here is private.")
    assert real.guarantee == plan.guarantee
    assert plan.guarantee.startswith(plan.privacy.guarantee)
    simulated.finish()
    assert simulated.study.guarantee == simulated.guarantee


def test_a_private_plan_takes_a_prior_from_private_releases_or_declared_public_data():
    open_study = Bandit(make_plan("box"))
    open_study.finish()
    study = open_study.study
    with pytest.raises(InvalidArgument, match="public_data"):
        make_plan("box", privacy=JointDP(1.0, 1e-3), prior=study.prior())
    make_plan("box", privacy=JointDP(1.0, 1e-3), prior=study.prior(public_data=True))
    private = Bandit(make_plan("box", privacy=JointDP(1.0, 1e-3)))
    private.finish()
    make_plan("box", privacy=JointDP(1.0, 1e-3), prior=private.study.prior())
