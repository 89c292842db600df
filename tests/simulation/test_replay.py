"""Replays of a plan on a log: unbiased, honest about their error, and of nothing but the plan."""

import json
import math
from dataclasses import replace
from functools import cache
from typing import ClassVar

import numpy as np
import pytest
from tests.support.single_rounds import BanditPlayer

from discreet import Box, Integer, JointDP, LocalDP, NonPrivate, Plan, Schedule, Simulation
from discreet import SquaredExponential as Smooth
from discreet.errors import InvalidArgument
from discreet.simulation import replay as replays
from discreet.simulation.forecast_report import Estimate
from discreet.simulation.replay import NOT_PRIVATE, Rehearsal, over_runs, replay

DOSES = Box({"dose": Integer(0, 3)})
AGES = Box({"dose": Integer(0, 1), "age": Integer(0, 1)}, context=["age"])
MEANS, CHANCES = np.array([0.2, 0.4, 0.9, 0.3]), np.array([0.4, 0.3, 0.2, 0.1])


def generator(*seed):
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))


def plan(domain=DOSES, **parts):
    given = {"kernel": Smooth(0.5), "privacy": JointDP(8.0, 1e-5)}
    return Plan(domain=domain, **(given | parts))


def log(rows, *seed):
    """Doses by CHANCES, answered by yes or no."""
    rng = generator(1, *seed)
    dose = rng.choice(4, rows, p=CHANCES)
    answers = (rng.random(rows) < MEANS[dose]).astype(float)
    return {"dose": dose, "propensity": CHANCES[dose], "reward": answers}


def log_of_ages(rows, *seed):
    """The young get dose 0 nine times in ten, the old once; dose 0 is better for everyone."""
    rng = generator(2, *seed)
    age, rare = rng.integers(2, size=rows), rng.random(rows) < 0.1
    dose = np.where(rare, 1 - age, age)
    return {
        "age": age,
        "dose": dose,
        "propensity": np.where(rare, 0.1, 0.9),
        "reward": 1.0 - dose,
    }


@cache
def found(shuffles=4):
    return replay(plan(), log(1000), rounds=20, shuffles=shuffles)


# -- the truth


class Told(Rehearsal):
    """Keeps what every bandit of its kind was asked and told."""

    rounds: ClassVar = []

    def ask(self, candidates=None, *, context=None, user=None):
        trial = super().ask(candidates, context=context, user=user)
        self.asked_with = context
        return trial

    def tell(self, trial, reward):
        self.rounds.append((self.asked_with, trial.action["dose"], reward))
        super().tell(trial, reward)


@pytest.fixture
def told(monkeypatch):
    monkeypatch.setattr(replays, "Rehearsal", Told)
    monkeypatch.setattr(Told, "rounds", [])
    return Told.rounds


def test_kept_rows_have_contexts_like_anyones(told):
    """Half of all people are old, though nine in ten who got the better dose were young.

    False alarms: below 10^-6.
    """
    quick = plan(AGES, privacy=NonPrivate(), schedule=Schedule(4, growth=1.5))
    for seed in range(4):
        result = replay(quick, log_of_ages(700, seed), rounds=25, shuffles=1, seed=seed)
        assert result.plan.mean > 0.7  # it learns which dose is better
    ages = [context["age"] for context, _, _ in told]
    assert len(ages) > 200
    assert abs(np.mean(ages) - 0.5) < 5.0 * math.sqrt(0.25 / len(ages))


def test_replays_agree_with_the_plan_played_in_the_world():
    """Their mean within 6 errors, and at most 8 of 16 two errors off: false alarms below 10^-6.

    `benchmarks/replay_coverage.py` has longer ones with contexts.
    """

    def direct(seed):
        rng, means = generator(3, seed), []
        player = BanditPlayer(plan(), Simulation(int(rng.integers(2**63))))
        for _ in range(20):
            means.append(MEANS[int(player.act(None)[0])])
            player.hear(float(rng.random() < means[-1]))
        return np.mean(means)

    played = np.array([direct(seed) for seed in range(60)])
    truth = played.mean()
    each = [replay(plan(), log(600, n), rounds=20, shuffles=3, seed=n).plan for n in range(16)]
    errors = np.array([one.mean - truth for one in each])
    variance = errors.var(ddof=1) / len(errors) + played.var(ddof=1) / len(played)
    assert abs(errors.mean()) < 6.0 * math.sqrt(variance)
    off = sum(abs(error) > 2.0 * one.sem for error, one in zip(errors, each, strict=True))
    print(f"within two standard errors: {16 - off} of 16")
    assert off <= 8


def test_a_run_is_the_bandit_told_the_kept_rows_and_nothing_else(told):
    replay(plan(), log(800), rounds=25, shuffles=1, seed=5)
    rng = generator(5, 0)
    rng.permutation(800), rng.random(800)
    bandit = Rehearsal(plan(), simulation=Simulation(int(rng.integers(2**63))))
    for t, (_, dose, reward) in enumerate(told[:25]):
        trial = bandit.ask(user=t)
        assert trial.action["dose"] == dose
        bandit.tell(trial, reward)


@pytest.mark.parametrize("privacy", [JointDP(8.0, 1e-5), LocalDP(8.0, 1e-5), NonPrivate()])
def test_looking_ahead_uses_no_round_and_changes_no_action(privacy):
    given = plan(AGES, privacy=privacy)
    looked, plain = (Rehearsal(given, simulation=Simulation(3)) for _ in range(2))
    for t in range(25):
        for age in (1.0, 0.0):
            ahead = looked.preview(np.array([age]))
        assert looked.asked == t
        trials = [each.ask(context={"age": 0}, user=f"user {t}") for each in (looked, plain)]
        assert trials[0].action == trials[1].action == given.domain.decode(ahead)
        for each, trial in zip((looked, plain), trials, strict=True):
            each.tell(trial, 0.1 * (t % 7))


# -- what is reported


def test_a_seed_fixes_everything_and_another_one_does_not():
    again = replay(plan(), log(1000), rounds=20, shuffles=4)
    assert again == found()
    assert replay(plan(), log(1000), rounds=20, shuffles=4, seed=1).plan != found().plan


def test_beside_the_plan_stands_the_log():
    result = found()
    assert result.logged.mean == log(1000)["reward"].mean()
    assert result.gain.mean == result.plan.mean - result.logged.mean
    assert result.gain.sem == math.hypot(result.plan.sem, result.logged.sem)
    assert (result.rows, result.least_propensity) == (1000, 0.1)
    assert (result.outside, result.clipped) == (0, 0)


def test_by_default_two_runs_fit_and_the_horizon_is_not_passed():
    assert replay(plan(), log(1000), shuffles=1).rounds == math.floor((100 - 3 * 90**0.5) / 2)
    short = replay(plan(horizon=10), log(1000), shuffles=1)
    assert short.rounds == 10
    assert short.runs[0] > 2


def test_the_error_is_that_of_runs_that_share_nobody():
    """Many shuffles of equal runs: the error of one shuffle's mean, whatever their number."""
    many = over_runs([np.array([0.0, 1.0])] * 10_000)
    assert many == Estimate(0.5, pytest.approx(0.5, rel=1e-3))
    assert over_runs([np.array([1.0]), np.array([0.0, 1.0])]).mean == 0.5  # one run does not count
    assert over_runs([np.array([1.0]), np.array([3.0])]) is None


def test_two_errors_hold_the_truth_however_few_runs_there_are():
    """Normal runs: mean ± 2 sem holds 95.4%. False alarms: below 10^-6 (5 errors, 4 cases)."""
    for number, runs in enumerate((2, 3, 5, 20)):
        draws = generator(4, number).standard_normal((2000, runs))
        each = [over_runs([values]) for values in draws]
        held = np.mean([abs(one.mean) <= 2.0 * one.sem for one in each])
        assert abs(held - 0.9545) < 5.3 * math.sqrt(0.9545 * 0.0455 / 2000)


def test_a_replay_says_when_its_error_is_rough():
    assert "take more shuffles" not in found().advice
    assert "take more shuffles" in replay(plan(), log(800), shuffles=1).advice


def test_a_replay_says_that_it_is_not_private_and_is_plain_data():
    plain = json.loads(json.dumps(found().to_dict()))
    assert plain["private"] is False
    assert plain["advice"].endswith(NOT_PRIVATE)
    assert plain["plan"].keys() == {"mean", "sem"}


def test_what_the_plan_does_not_allow_is_counted_and_never_kept():
    narrow = plan(Box({"dose": Integer(0, 2)}), rewards=(0.0, 0.5))
    result = replay(narrow, log(1000), rounds=20, shuffles=1)
    assert result.outside == int(np.sum(log(1000)["dose"] == 3))
    assert result.clipped == int(log(1000)["reward"].sum())
    assert result.least_propensity == 0.2
    assert result.plan.mean <= 0.5
    assert "does not allow" in result.advice
    assert "clipped" in result.advice


def test_a_rule_that_depends_on_people_is_kept(told):
    box = replace(AGES, feasible="dose + age <= 1")
    replay(plan(box), log_of_ages(600), rounds=4, shuffles=1)
    assert all(context["age"] + dose <= 1 for context, dose, _ in told)


def test_progress_tells_every_shuffle():
    passed = []
    replay(plan(), log(500), rounds=10, shuffles=2, advance=passed.append)
    assert passed == [1, 1]


# -- what is refused


@pytest.mark.parametrize(
    ("rows", "parts", "words"),
    [
        (500, {"rounds": 0}, "rounds: expected a whole number"),
        (500, {"rounds": 40}, "rounds: expected fewer, or a longer log: of its 500 rows about 50"),
        (500, {"shuffles": 0}, "shuffles"),
        (500, {"seed": -1}, "seed"),
        (60, {}, "log: expected more rows"),
    ],
)
def test_what_cannot_be_replayed_is_refused(rows, parts, words):
    with pytest.raises(InvalidArgument, match=words):
        replay(plan(), log(rows), **parts)


def test_a_run_is_not_longer_than_the_plan():
    with pytest.raises(InvalidArgument, match="at most the plan's horizon, 30"):
        replay(plan(horizon=30), log(500), rounds=31)


def test_an_action_that_nobody_got_is_named():
    wide = plan(Box({"dose": Integer(0, 9)}))
    with pytest.raises(InvalidArgument, match=r"but {'dose': [4-9]} is in no row: narrow"):
        replay(wide, log(500))
