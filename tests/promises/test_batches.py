"""Many at once is what single calls give, bit for bit, over any grouping."""

import random

import numpy as np
import pytest
from tests.support.journals import ListJournal

from discreet import (
    Bandit,
    Box,
    JointDP,
    LocalDP,
    NonPrivate,
    Plan,
    Schedule,
    Simulation,
    SquaredExponential,
)
from discreet.errors import DiscreetError, InvalidArgument, TrialClosed, UnknownTrial
from discreet.learning.policy import Policy

PRIVACY = {
    "none": NonPrivate(),
    "joint": JointDP(epsilon=2.0, delta=1e-3),
    "rewards": JointDP(epsilon=2.0, delta=1e-3, protect="rewards"),
    "local": LocalDP(epsilon=4.0, delta=1e-3),
}
KINDS = ("box", "context", "candidates")
PEOPLE = 40
#: These people bring something that leads to no action.
BAD = (5, 17)


def make_plan(kind, privacy):
    return Plan(
        domain=Box(
            {"dose": (0, 10), "age": (18, 90)}, context=["age"] if kind == "context" else []
        ),
        privacy=PRIVACY[privacy],
        kernel=SquaredExponential(0.6),
        kernel_error=0.1,
        decisions=kind,
        public_decisions=privacy == "rewards",
        schedule=Schedule(first=8, growth=1.3),
        expire_after=100,
    )


def brings(kind, number):
    rng = np.random.Generator(np.random.Philox(number))
    if kind == "context":
        return {"age": 500.0 if number in BAD else float(rng.uniform(18, 90))}
    rows = rng.uniform((0, 18), (10, 90), (1 + number % 4, 2))
    return np.full((2, 2), np.nan) if number in BAD else rows


def reward(number):
    return (number * 0.6180339887498949) % 1.0


def one_by_one(bandit):
    kind, actions = bandit.plan.decisions, {}
    for number in range(PEOPLE):
        own = {
            "box": {},
            "context": {"context": brings(kind, number)},
            "candidates": {"candidates": brings(kind, number)},
        }[kind]
        try:
            trial = bandit.ask(**own, user=number)
        except DiscreetError:
            continue
        actions[number] = trial
        bandit.tell(trial, reward(number))
    return actions


def in_batches(bandit, seed, reopen=None):
    """Batches of any size within an epoch, for the local model counts in an epoch alone."""
    rng, actions, number = random.Random(seed), {}, 0
    kind = bandit.plan.decisions
    while number < PEOPLE:
        size = min(rng.randint(1, 12), PEOPLE - number, bandit.asks_left or 1)
        numbers = range(number, number + size)
        own = {
            "box": {"n": size},
            "context": {"contexts": [brings(kind, each) for each in numbers]},
            "candidates": {"candidates": [brings(kind, each) for each in numbers]},
        }[kind]
        trials = bandit.ask_many(**own, users=list(numbers))
        told = [number + row for row in trials.rows]
        assert set(trials.refusals) == set(range(size)) - set(trials.rows)
        actions |= dict(zip(told, trials, strict=True))
        if rng.random() < 0.5 and reopen:
            bandit = reopen()
        some = rng.randint(0, len(trials))
        bandit.tell_many(trials[:some], [reward(each) for each in told[:some]])
        bandit.tell_many(trials[some:], np.array([reward(each) for each in told[some:]]))
        number += size
    return bandit, actions


def releases(bandit):
    bandit.finish()
    return [release.integers.tolist() for release in bandit.study.releases]


@pytest.mark.parametrize("privacy", PRIVACY)
@pytest.mark.parametrize("kind", KINDS)
def test_batches_are_single_calls_over_any_grouping_and_resumes(kind, privacy):
    plan = make_plan(kind, privacy)
    single = Bandit(plan, simulation=Simulation(3))
    expected, kept = one_by_one(single), None
    kept = releases(single)
    for seed in range(3):
        journal = ListJournal()

        def reopen(journal=journal):
            return Bandit(plan, journal, simulation=Simulation(3))

        bandit, actions = in_batches(reopen(), seed, reopen)
        assert actions == expected
        assert releases(bandit) == kept


def test_a_batch_turns_epochs_over_as_single_asks_would():
    plan = make_plan("box", "joint")
    many, single = (Bandit(plan, simulation=Simulation(1)) for _ in range(2))
    trials = many.ask_many(30, users=range(30))
    assert list(trials) == [single.ask(user=number) for number in range(30)]
    assert len(many.study.epochs) > 2
    many.tell_many(trials, [0.5] * 30)
    for number in range(30):
        single.tell(number, 0.5)
    assert releases(many) == releases(single)


def test_a_person_counts_within_a_batch():
    bandit = Bandit(make_plan("box", "joint"))
    trials = bandit.ask_many(3, users=["a", "a", "b"])
    assert trials.rows == (0, 2)
    assert "1 of 1 rounds" in str(trials.refusals[1])
    assert bandit.asked == 2


def test_tables_of_every_kind_are_the_same_people():
    ages = np.array([20.0, 40.5, 61.0])
    tables = (
        {"age": ages},
        {"age": ages.tolist()},
        [{"age": each} for each in ages],
        ages[:, None],
    )
    plan = make_plan("context", "joint")
    found = [
        list(Bandit(plan, simulation=Simulation(1)).ask_many(contexts=table, users=[1, 2, "3"]))
        for table in tables
    ]
    assert all(each == found[0] for each in found)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "contexts= and nothing beside it"),
        ({"n": 3}, "contexts= and nothing beside it"),
        ({"contexts": "age"}, "a data frame"),
        ({"contexts": {"age": [1.0], "sex": [1.0]}}, "no columns but 'age'"),
        ({"contexts": np.zeros((2, 3))}, "1 columns: age"),
        ({"contexts": {"age": [20.0, 30.0]}, "users": ["a"]}, "2 values, one a row"),
        ({"contexts": {"age": [20.0, 30.0]}, "users": "ab"}, "a list, an array or a column"),
    ],
)
def test_what_is_no_batch_is_refused_and_nobody_has_asked(arguments, words):
    bandit = Bandit(make_plan("context", "joint"))
    with pytest.raises(InvalidArgument, match=words):
        bandit.ask_many(**arguments)
    assert bandit.asked == 0


def test_rewards_are_told_all_or_none():
    bandit = Bandit(make_plan("box", "joint"))
    trials = bandit.ask_many(4, users=range(4))
    before = bandit.open_trials
    for rewards in ([0.1, 0.2, float("nan"), 0.3], [0.1], ["a", 0.1, 0.2, 0.3], "abcd"):
        with pytest.raises(InvalidArgument, match="rewards"):
            bandit.tell_many(trials, rewards)
    with pytest.raises(InvalidArgument, match="each trial once"):
        bandit.tell_many([0, 0], [0.1, 0.2])
    with pytest.raises(UnknownTrial):
        bandit.tell_many([0, 99], [0.1, 0.2])
    assert bandit.open_trials == before
    bandit.tell_many(trials, [True, np.float32(0.5), 1, 0.2])
    with pytest.raises(TrialClosed):
        bandit.tell_many(trials, [0.1] * 4)


def test_trials_of_another_study_are_not_told():
    plan = make_plan("context", "joint")
    own, other = Bandit(plan), Bandit(plan)
    trials = other.ask_many(contexts={"age": [20.0, 80.0]}, users=[1, 2])
    own.ask_many(contexts={"age": [21.0, 81.0]}, users=[1, 2])
    with pytest.raises(UnknownTrial, match="another study"):
        own.tell_many(trials, [0.1, 0.2])


@pytest.mark.parametrize("kind", ["context", "candidates"])
def test_an_error_that_one_persons_options_lead_to_is_theirs_alone(kind, monkeypatch):
    """Wherever it arises: they take an index, and nobody else's action changes."""
    name = {"context": "search", "candidates": "choose"}[kind]
    plan, real = make_plan(kind, "joint"), getattr(Policy, name)
    ages = [30.0, 89.5, 50.0]
    own = {
        "context": {"contexts": {"age": ages}},
        "candidates": {"candidates": [[{"dose": 1, "age": age}] for age in ages]},
    }[kind]
    expected = Bandit(plan).ask_many(**own, users=range(3))

    def fails(policy, features, indices, *brought):
        if any(np.isclose(each, (89.5 - 18) / 72, atol=1e-9).any() for each in brought[-1]):
            raise FloatingPointError("of a private number")
        return real(policy, features, indices, *brought)

    monkeypatch.setattr(Policy, name, fails)
    bandit = Bandit(plan)
    trials = bandit.ask_many(**own, users=range(3))
    assert (trials.rows, bandit.asked) == ((0, 2), 3)
    assert list(trials) == [expected[0], expected[2]]
    assert isinstance(trials.refusals[1], FloatingPointError)
