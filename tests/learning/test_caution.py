"""Do no harm: first actions are played until something is surely better."""

import math

import numpy as np
import pytest

from discreet import Box, Exploration, JointDP, NonPrivate, Plan
from discreet.errors import InvalidArgument, ShortHorizon
from discreet.learning.caution import is_cautious
from discreet.learning.next_epoch import learner, menu_only
from discreet.learning.search import spread
from discreet.simulation.epochs import begin, play_study
from discreet.simulation.problems import find_problem
from discreet.simulation.worlds import World

PEOPLE = Box({"dose": (0, 1), "age": (0, 1)}, context=["age"])


def played(epsilon, rounds):
    """A simulated study of doses for one context."""
    world = World.draw(find_problem("dosing-1"), seed=7)
    plan = Plan(
        world.problem.domain, JointDP(epsilon, 1e-6), rewards=world.problem.rewards, horizon=rounds
    )
    return play_study(world, begin(plan), rounds)[1]


@pytest.mark.filterwarnings("ignore::discreet.errors.ShortHorizon")
def test_a_study_that_is_too_short_for_its_noise_gives_first_actions_until_the_end():
    study = played(epsilon=0.05, rounds=300)
    assert study.holds_back
    assert not any(len(epoch.policy.tilts) for epoch in study.epochs)


def test_a_study_that_learnt_plays_what_it_learnt():
    study = played(epsilon=8.0, rounds=1000)
    assert not study.holds_back
    later = [epoch for epoch in study.epochs if not study.plan.is_design(epoch.first)]
    assert later
    assert all(len(epoch.policy.tilts) for epoch in later)


@pytest.mark.filterwarnings("ignore::discreet.errors.ShortHorizon")
def test_a_study_says_that_it_holds_back_whenever_it_does():
    whole = played(epsilon=0.3, rounds=1000)
    study, said = begin(whole.plan), []
    for epoch, release in zip(whole.epochs, whole.releases, strict=True):
        study = study.opened(epoch).released(release)
        if epoch.end < 1000 and not study.plan.is_design(epoch.end):
            said.append(study.holds_back)
            assert said[-1] == (len(study.next_epoch().policy.tilts) == 0)
    assert set(said) == {False, True}


def test_who_wants_first_actions_around_a_start_gets_them_again():
    with pytest.warns(ShortHorizon):
        plan = Plan(PEOPLE, JointDP(0.05, 1e-6), horizon=300, start={"dose": 0.3})
    epoch = begin(plan).next_epoch()
    assert np.abs(epoch.policy.menu[:, 0] - 0.3).max() <= 0.1 + 1e-12


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, True),
        ({"horizon": None}, False),
        ({"privacy": NonPrivate()}, False),
        ({"confidence": "theory", "norm": 1.0, "noise": "tree", "horizon": 64}, False),
    ],
)
def test_caution_needs_privacy_and_a_horizon(changes, expected):
    arguments = {"privacy": JointDP(3.0, 1e-6), "horizon": 4000, **changes}
    assert is_cautious(Plan(domain=Box({"dose": (0, 1)}), **arguments)) is expected


def test_the_advantage_of_a_policy_over_itself_is_none():
    plan = Plan(PEOPLE, JointDP(3.0, 1e-6), horizon=4000)
    policy = menu_only(plan, spread(plan.domain, 16, np.random.Generator(np.random.Philox(0))))
    assert learner(plan).advantage(policy, policy) == 0.0


# -- foresight


def test_draws_differ_by_what_can_still_be_learnt_and_no_more():
    plan = Plan(PEOPLE, JointDP(3.0, 1e-6), horizon=4000)
    belief, rng = learner(plan), np.random.Generator(np.random.Philox(1))
    everywhere = menu_only(plan, spread(plan.domain, 64, rng))
    sizes = []
    for asks in (10, 100, 1000, 100_000):
        root = belief.tellable(asks, everywhere)
        left = belief.posterior.covariance - root.T @ root
        assert np.linalg.eigvalsh(left).min() > -1e-6 * np.trace(belief.posterior.covariance)
        sizes.append(float(np.sum(np.square(root))))
    assert sizes == sorted(sizes)
    assert sizes[-1] <= math.fsum(np.diag(belief.posterior.covariance)) * (1.0 + 1e-9)


def test_new_plans_with_contexts_and_a_horizon_have_foresight():
    known = Plan(PEOPLE, JointDP(3.0, 1e-6), horizon=4000)
    open_ended = Plan(PEOPLE, JointDP(3.0, 1e-6))
    assert known.exploration == Exploration(0.0, 0.4, foresight=True, bold=3.0)
    assert open_ended.exploration == Exploration(0.0, 0.5)


def test_foresight_is_there_or_not():
    with pytest.raises(InvalidArgument, match="foresight"):
        Exploration(foresight=False)
