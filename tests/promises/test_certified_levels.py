"""Epsilon at other deltas: every one that is said is proven, finite precision of noise included.

The proof is computed here once more, with 50 digits: ideal noise costs the mu of the noise that is
really drawn, and every release that a person's rounds touch adds (1 + e^epsilon) 2^-43 an integer.
"""

import itertools
import math
import re

import mpmath
import numpy as np
import pytest

from discreet import Bandit, Box, JointDP, LocalDP, Plan, Schedule, Study
from discreet.cli.budgets import budget, level_words
from discreet.errors import InvalidArgument
from discreet.privacy.cost import GaussianPrivacy, compose

LINE, PAIR = Box({"dose": (0, 10)}), Box({"dose": (0, 10), "age": (18, 90)}, context=["age"])
SHAPES = {
    "reward, four looks": {"domain": LINE},
    "reward, one look": {"domain": LINE, "looks": (1.0,), "horizon": 1000},
    "reward, few directions": {"domain": LINE, "directions": 2},
    "directed, four looks": {"domain": PAIR},
    "directed, one look": {"domain": PAIR, "looks": (1.0,)},
    "fourier": {
        "domain": PAIR,
        "kernel_error": 0.05,
        "features": "grid",
        "encoding": "fourier",
    },
    "gram": {"domain": PAIR, "kernel_error": 0.05, "encoding": "gram", "horizon": 500},
    "announced": {"domain": PAIR, "kernel_error": 0.05, "public_decisions": True},
    "tree": {"domain": LINE, "noise": "tree", "horizon": 300, "encoding": "gram"},
    "blt": {"domain": LINE, "noise": "blt", "schedule": Schedule(8), "horizon": 300},
}
LOCAL = ("reward, four looks", "reward, one look", "fourier", "gram")
CASES = [*((shape, JointDP) for shape in SHAPES), *((shape, LocalDP) for shape in LOCAL)]
PROMISES = list(itertools.product((0.5, 3.0, 8.0), (1e-3, 1e-5, 1e-8), (1, 3)))


def plan_of(shape, kind, epsilon, delta, rounds):
    """The plan, or None where its own delta can not be certified."""
    parts = dict(SHAPES[shape])
    if kind is LocalDP:
        parts.pop("looks", None)
        parts.setdefault("encoding", "reward")  # indices have no slack to certify
        privacy = LocalDP(epsilon, delta, rounds_per_user=rounds)
    else:
        protect = "rewards" if shape == "announced" else "decisions"
        privacy = JointDP(epsilon, delta, protect=protect, rounds_per_user=rounds)
    try:
        return Plan(privacy=privacy, **{"horizon": 100, **parts})
    except InvalidArgument as error:
        if "finite precision" in str(error):
            return None
        raise


def touched(plan):
    """How many releases a person's rounds and their replacements are part of, at most."""
    rounds = plan.privacy.rounds_per_user
    if plan.is_local:
        return rounds
    once = 2 * rounds * len(plan.looks or (1.0,))
    if plan.stream is None:
        return once
    column = {"tree": plan.stream.releases.bit_length()}.get(plan.noise, plan.stream.releases)
    return min(once * column, plan.stream.releases)


def proven(plan, epsilon):
    """The delta that the proof gives at this epsilon, with the noise that plans allow."""
    rounds = plan.privacy.rounds_per_user
    mu = mpmath.mpf(plan.mu) * (1 + mpmath.mpf(10) ** -11)
    mu *= mpmath.sqrt(rounds) if plan.is_local else rounds
    return gaussian(mu, epsilon) + slack(plan) * (1 + mpmath.exp(epsilon))


def gaussian(mu, epsilon):
    shift = mpmath.mpf(epsilon) / mu
    return mpmath.ncdf(mu / 2 - shift) - mpmath.exp(epsilon) * mpmath.ncdf(-mu / 2 - shift)


def integers(plan):
    """How many a release has at most: of few directions, one each and the spread."""
    if plan.directions is not None:
        return plan.directions + 1
    return plan.encode_with.most_integers(plan.map)


def slack(plan):
    return (
        touched(plan)
        * integers(plan)
        * mpmath.mpf(2) ** (-45 if plan.encoding == "directed" else -43)
    )


@pytest.mark.parametrize(("shape", "kind"), CASES)
def test_no_epsilon_is_said_that_is_not_proven(shape, kind):
    plans = [plan_of(shape, kind, *promise) for promise in PROMISES]
    plans = [plan for plan in plans if plan is not None]
    assert len(plans) >= 5
    with mpmath.workdps(50):
        for plan in plans:
            said = budget(Study(plan))
            printed = re.findall(r"(\d[\d.e+]*) at ([\d.e-]+)", level_words(said))
            printed = {delta: float(epsilon) for epsilon, delta in printed}
            for delta, epsilon in said["epsilon_at"].items():
                if epsilon is None:
                    assert delta in level_words(said).partition("not certified at ")[2]
                    grid = np.linspace(0, 60, 200)
                    assert min(proven(plan, each) for each in grid) > float(delta)
                    continue
                assert proven(plan, epsilon) <= float(delta)
                assert printed[delta] >= epsilon
                if 0 < epsilon < plan.privacy.epsilon:  # and no more is said than must be
                    assert proven(plan, epsilon * (1 - 1e-6)) > float(delta)


def test_what_is_said_without_the_slack_would_not_be_proven():
    plan = Plan(domain=LINE, privacy=JointDP(8.0, 1e-5))
    naive = plan.privacy.cost.epsilon(1e-9)
    with mpmath.workdps(50):
        assert proven(plan, naive) > 100 * 1e-9
    assert plan.cost.epsilon(1e-9) == math.inf
    assert "not certified at 1e-09" in level_words(budget(Study(plan)))


@pytest.mark.parametrize("shape", SHAPES)
def test_a_release_has_no_more_integers_than_were_paid_for(shape):
    plan = plan_of(shape, JointDP, 3.0, 1e-3, 1)
    noisy = np.count_nonzero(Bandit(plan).study.open_epoch.encoding.stds(plan.map))
    assert 0 < noisy <= integers(plan)


def test_a_plan_of_twenty_coordinates_is_certified():
    """One integer a feature would leave less than half of delta."""
    box = Box({f"x{i}": (0, 1) for i in range(20)})
    plan = Plan(domain=box, privacy=JointDP(8.0, 1e-6), horizon=500)
    assert plan.map.dimension > 300
    with mpmath.workdps(50):
        assert proven(plan, 8.0) <= 1e-6
    encoding = Study(plan).next_epoch().encoding
    assert encoding.size(plan.map) <= integers(plan) == 33
    with pytest.raises(InvalidArgument, match="finite precision"):
        Plan(domain=box, privacy=JointDP(8.0, 1e-6), horizon=500, directions=400)


def test_the_slack_of_several_studies_is_paid_at_their_common_epsilon():
    plans = [plan_of("reward, four looks", JointDP, *each) for each in PROMISES[:4]]
    plans += [plan_of("fourier", LocalDP, *each) for each in PROMISES[:4]]
    plans = [plan for plan in plans if plan is not None]
    assert len(plans) >= 6
    cost = compose(plan.cost for plan in plans)
    with mpmath.workdps(50):
        mu = mpmath.sqrt(sum(mpmath.mpf(plan.cost.mu) ** 2 for plan in plans))
        for delta in (1e-3, 1e-6, 1e-7):
            epsilon = cost.epsilon(delta)
            total = gaussian(mu, epsilon) + sum(map(slack, plans)) * (1 + mpmath.exp(epsilon))
            assert float(total) == pytest.approx(delta, rel=1e-9)


def test_two_worlds_exist_that_reach_what_slack_adds():
    """Noise that is off by `slack` just where it hurts: a smaller delta would be wrong."""
    mu, off, epsilon = 1.0, 1e-4, 2.0
    with mpmath.workdps(50):
        above, below = mpmath.ncdf(mu / 2 - epsilon / mu), mpmath.ncdf(-mu / 2 - epsilon / mu)
        reached = (above + off) - mpmath.exp(epsilon) * (below - off)
    assert GaussianPrivacy(mu, off).delta(epsilon) == pytest.approx(float(reached), rel=1e-12)
