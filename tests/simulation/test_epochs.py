"""Everyone of an epoch at once is everyone one after the other.

With a custodian, with correlated noise and without privacy the two are the same study, bit for bit:
people and answers are the same, noise has the same seed. In the local model the noise of the
reports is drawn together: equal in law.
"""

import math
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from scipy.stats import kstest, norm
from tests.support.plain_sums import LookedAt
from tests.support.single_rounds import simulate_singly

from discreet import (
    Bandit,
    Box,
    Categorical,
    Integer,
    JointDP,
    LocalDP,
    NonPrivate,
    Schedule,
    Simulation,
    SquaredExponential,
)
from discreet.errors import InvalidArgument, Refused
from discreet.learning.study import Study
from discreet.protocol.tally import WIDER
from discreet.simulation import epochs, worlds
from discreet.simulation.epochs import Reports, begin, play_study
from discreet.simulation.people import answers, bring, encode_contexts
from discreet.simulation.play import Setting, plan_for, simulate
from discreet.simulation.problems import Bumps, find_problem
from discreet.simulation.worlds import Crowd, World
from discreet.storage import canonical
from discreet.trusted.privatizer import Privatizer

LINE = Box({"dose": (0, 10)})
RULE = "dose + age < 95"
CONTEXT = Box({"dose": (0, 10), "age": Integer(18, 90)}, context=["age"], feasible=RULE)
ARMS = Box({"dose": (0, 1), "arm": Categorical(("a", "b", "c"))})
BALL = Box({"x": (-1, 1), "y": (-1, 1)}, shape="ball", context=["y"])

MODELS = {
    "none": {"model": "none"},
    "joint": {"model": "joint", "privacy": JointDP(4.0, 1e-2)},
    "rewards": {"model": "joint", "privacy": JointDP(4.0, 1e-2, protect="rewards")},
    "tree": {
        "model": "joint",
        "privacy": JointDP(4.0, 1e-2),
        "changes": {"noise": "tree", "schedule": Schedule(9, growth=1.3)},
    },
    "blt": {
        "model": "joint",
        "privacy": JointDP(4.0, 1e-2),
        "changes": {"noise": "blt", "schedule": Schedule(9, growth=1.3)},
    },
}


@dataclass(frozen=True)
class Made:
    """People and answers by plain sums, whose bits do not depend on the rows beside."""

    domain: Box
    brings: object = None
    rewards: tuple[float, float] = (-1.0, 0.5)
    kernel: object = field(default_factory=lambda: SquaredExponential(0.5))
    maximum = 1.0

    def decision_set(self, rng):
        return None if self.brings is None else self.brings(rng)

    def mean(self, x):
        return -np.abs(x[:, 0] / 10 - 0.4) + 0.1 * x[:, -1] / (1 + np.abs(x[:, -1]))

    def reward(self, x, rng):
        return float(self.mean(x[None, :])[0] + 0.2 * rng.standard_normal())

    def maximum_under(self, context):
        return 1.0


def some_candidates(rng):
    """As many as chance will have it."""
    doses = rng.random((int(rng.integers(2, 6)), 2))
    doses[:, 1] = rng.integers(3, size=len(doses))
    return doses


KINDS = {
    "box": Made(LINE),
    "context": Made(CONTEXT, lambda rng: {"age": int(rng.integers(18, 91))}),
    "ball": Made(BALL, lambda rng: {"y": float(rng.uniform(-1, 1))}),
    "candidates": Made(ARMS, some_candidates),
}


def both(problem, rounds=90, **parts):
    setting = Setting(rounds=rounds, **parts)
    return tuple(play(lambda rng: problem, setting, seed=3) for play in (simulate, simulate_singly))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", KINDS)
def test_at_once_is_one_after_the_other_bit_for_bit(kind, model, monkeypatch):
    monkeypatch.setattr(worlds, "TOGETHER", 17)  # people come in groups that cross epochs
    monkeypatch.setattr(epochs, "OPTIONS", 13)
    parts = dict(MODELS[model])
    if model == "rewards" and kind != "box":
        parts["changes"] = {"public_decisions": True}
    together, singly = both(KINDS[kind], **parts)
    assert canonical.encode(together.study) == canonical.encode(singly.study)
    assert together.regrets.tolist() == singly.regrets.tolist()
    assert len(together.study.releases) == len(together.study.epochs) > 1
    assert sum(release.asks for release in together.study.releases) == 90


def test_rounds_are_looked_at_again_as_often_as_one_after_the_other():
    parts = dict(MODELS["joint"], changes={"schedule": Schedule(8, growth=1.2)})
    together, singly = both(KINDS["box"], rounds=150, **parts)
    assert len(together.study.plan.looks) == 4
    assert len(together.study.epochs) > 10
    assert canonical.encode(together.study) == canonical.encode(singly.study)


@pytest.mark.parametrize("name", ["camelback", "ridges", "synthetic"])
def test_the_problems_of_the_library_are_the_same_either_way(name):
    setting = Setting(rounds=60, model="joint", privacy=JointDP(4.0, 1e-2))
    one, two = (play(find_problem(name), setting, seed=1) for play in (simulate, simulate_singly))
    assert one.regrets == pytest.approx(two.regrets, abs=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_local_epoch_has_the_same_actions_and_the_last_as_many_reports(kind):
    """A device chooses as a custodian does; what it sends is randomised, so only that differs."""
    together, singly = both(KINDS[kind], model="local", privacy=LocalDP(12.0, 1e-2))
    first = together.study.epochs[0].length
    assert together.regrets[:first].tolist() == singly.regrets[:first].tolist()
    for mine, other in zip(together.study.releases, singly.study.releases, strict=True):
        assert (mine.asks, mine.reports) == (other.asks, other.reports)
        assert mine.private is other.private is False


def test_the_noise_of_reports_together_has_the_law_of_their_sum():
    """Whitened sums of 40 reports against N(0, 1), both ways: a false alarm once in 1e7 each."""
    problem = KINDS["box"]
    privacy, grid = LocalDP(4.0, 1e-2), {"features": "grid"}
    setting = Setting("local", rounds=40, encoding="reward", privacy=privacy, changes=grid)
    plan = replace(plan_for(problem, setting, "box", "noise"), schedule=Schedule(40))
    epoch = begin(plan).next_epoch()
    rewards = 0.3 * np.ones(40)
    points = epoch.policy.from_menu(np.arange(40))
    exact = epoch.encoding.total(plan.map, points, plan.all_centred(rewards))
    stds = WIDER * math.sqrt(40) * epoch.encoding.stds(plan.map)
    at_once, singly = [], []
    rng = np.random.Generator(np.random.Philox(5))
    for seed in range(60):
        reports = Reports(plan, rng)
        reports.open(epoch)
        reports.simulate(points, rewards)
        at_once.append((reports.release().integers - exact) / stds)
        if seed < 12:
            bandit = Bandit(plan, simulation=Simulation(seed))
            for user in range(40):
                bandit.tell(bandit.ask(user=user), 0.3)
            bandit.finish()
            singly.append((bandit.study.releases[0].integers - exact) / stds)
    for found in (at_once, singly):
        whitened = np.concatenate(found)
        assert kstest(whitened, "norm").pvalue > 1e-7
        spread = float(np.mean(np.square(whitened)) - 1.0) / math.sqrt(2.0 / len(whitened))
        assert abs(spread) < norm.isf(0.5e-7)


def test_regret_in_the_local_model_has_the_same_mean_either_way():
    """24 worlds in pairs; the mean difference lies within 5.5 of its errors (once in 1e7)."""
    setting = Setting("local", rounds=120, privacy=LocalDP(15.0, 0.1))
    differences = []
    for run in range(24):
        one, two = (
            play(lambda rng: KINDS["box"], setting, seed=7, run=run).regrets.sum()
            for play in (simulate, simulate_singly)
        )
        differences.append(one - two)
    error = np.std(differences, ddof=1) / math.sqrt(24)
    assert abs(np.mean(differences)) < 5.5 * error + 1e-12
    assert error > 0


# -- the parts


def test_every_sum_before_its_noise_is_that_of_plain_sums(monkeypatch):
    acted, found = [], []

    class Watched(Privatizer):
        def simulate(self, points, rewards):
            acted.append((points, rewards))
            super().simulate(points, rewards)

        def release(self):
            points = np.concatenate([each[0] for each in acted])
            rewards = self._plan.all_centred(np.concatenate([each[1] for each in acted]))
            expected = looked_at.sums(self._epoch, points, rewards)
            found.append((self._sums.total.tolist(), expected.tolist()))
            acted.clear()
            return super().release()

    monkeypatch.setattr(worlds, "TOGETHER", 7)
    monkeypatch.setattr(epochs, "Privatizer", Watched)
    world = World.draw(find_problem("camelback"), seed=3, run=0)
    setting = Setting(model="joint", rounds=150, privacy=JointDP(5.0, 1e-3))
    plan = plan_for(world.problem, setting, world.decisions, "a crowd")
    plan = replace(plan, schedule=Schedule(12, 1.2))
    looked_at = LookedAt(plan)
    play_study(world, begin(plan), setting.rounds)
    assert len(plan.looks) == 4
    assert len(found) >= 6
    assert all(sums == expected for sums, expected in found)


def test_rounds_of_real_people_are_not_simulated():
    plan = plan_for(KINDS["box"], Setting(rounds=20), "box", "real")
    real = Privatizer(plan)
    real.open(Study(plan).next_epoch())
    with pytest.raises(Refused, match="one by one"):
        real.simulate(np.zeros((1, 1)), np.zeros(1))


def test_a_person_is_the_same_however_many_come_at_once():
    def brought(sizes):
        crowd = Crowd(World.draw(lambda rng: KINDS["candidates"], seed=1), 50)
        return [own.tolist() for size in sizes for own in crowd.next(size).each()]

    assert brought([1] * 50) == brought([20, 30]) == brought([7] * 7 + [1])


def test_a_study_may_stop_within_an_epoch():
    world = World.draw(lambda rng: KINDS["box"], seed=1)
    plan = plan_for(world.problem, Setting(rounds=100), "box", "short")
    regrets, study = play_study(world, begin(plan), 33)
    assert len(regrets) == 33
    assert sum(release.asks for release in study.releases) == 33


def test_progress_and_memory_are_by_the_block(monkeypatch):
    monkeypatch.setattr(worlds, "TOGETHER", 16)
    played = []
    simulate(lambda rng: KINDS["box"], Setting(rounds=100), seed=0, advance=played.append)
    assert sum(played) == 100
    assert max(played) <= 16


def test_people_who_bring_one_kind_of_thing_may_not_bring_another():
    kinds = iter([None, {"age": 50}, None])
    world = World.draw(lambda rng: Made(LINE, lambda rng: next(kinds)), seed=0)
    with pytest.raises(InvalidArgument, match="decision sets in every round, or in none"):
        Crowd(world, 2).next(2)


def test_a_context_without_any_action_is_refused_as_it_is_one_by_one():
    box = Box({"dose": (1, 10), "age": (0, 10)}, context=["age"], feasible="dose * age <= 5")
    nobody = Made(box, lambda rng: {"age": 9.5})
    for play in (simulate, simulate_singly):
        with pytest.raises(Refused, match="no action satisfies"):
            play(lambda rng: nobody, Setting(rounds=5), seed=0)


@pytest.mark.parametrize("answer", [math.nan, math.inf, "high"])
def test_an_answer_must_be_a_finite_number(answer):
    class Odd(Made):
        def reward(self, x, rng):
            return answer

    with pytest.raises((InvalidArgument, ValueError)):
        answers(Odd(LINE), np.zeros((3, 1)), np.random.default_rng(0))


def test_contexts_may_come_as_columns():
    class Clinic(Made):
        def decision_sets(self, count, rng):
            return {"age": rng.integers(18, 91, size=count)}

        def maxima_under(self, contexts):
            return np.asarray(contexts["age"]) / 100

    clinic = Clinic(CONTEXT, lambda rng: {"age": 20})
    people = bring(clinic, "context", None, 5, np.random.default_rng(0))
    ages = [each["age"] for each in people.each()]
    assert people.ceilings().tolist() == [age / 100 for age in ages]
    assert people.rows[:, 0].tolist() == pytest.approx([(age - 18) / 72 for age in ages])
    simulate(lambda rng: clinic, Setting(rounds=20), seed=0)
    for wrong in ({"age": [300]}, {"weight": [50]}, {"age": ["old"]}):
        with pytest.raises(InvalidArgument, match="contexts"):
            encode_contexts(CONTEXT, wrong)


def test_many_decision_sets_have_the_law_of_one():
    problem, rng = Bumps.draw(np.random.default_rng(0)), np.random.default_rng(1)
    sets = np.array(list(bring(problem, "candidates", None, 50, rng).each()))
    assert sets.shape == (50, 25, 2)
    values = problem.mean(sets.reshape(-1, 2)).reshape(50, 25)
    assert (values[:, 0] >= 0.8).all()
    assert (values[:, 1:] <= 0.6).all()
    single = np.array([problem.mean(problem.decision_set(rng)) for _ in range(200)])
    assert np.sort(values)[:, :24].mean() == pytest.approx(np.sort(single)[:, :24].mean(), abs=0.04)


@pytest.mark.parametrize("kind", KINDS)
def test_uniform_play_stays_among_the_options(kind):
    problem = KINDS[kind]
    people = bring(
        problem, kind if kind != "ball" else "context", 1.0, 60, np.random.default_rng(0)
    )
    actions = people.uniform_actions(np.random.default_rng(1))
    problem.domain.encode_numbers(actions)
    for options, action in zip(people.each(), actions, strict=True):
        if isinstance(options, dict):
            assert action[-1] == pytest.approx(options[problem.domain.context[0]])
        elif options is not None:
            assert (options == action).all(axis=1).any()


def test_no_privacy_is_the_model_none():
    assert simulate(lambda rng: KINDS["box"], Setting(rounds=9), seed=0).study.plan.privacy == (
        NonPrivate()
    )
