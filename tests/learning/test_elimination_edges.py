"""Elimination at its edges: adversaries, tiny studies, arms that are one, and bounds of bounds."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet import (
    Box,
    Elimination,
    JointDP,
    NonPrivate,
    Plan,
    Schedule,
    SquaredExponential,
    Study,
)
from discreet.agreement.release import Release
from discreet.experiments.phases import play_phases
from discreet.learning.arms import arms_of
from discreet.learning.elimination_bounds import KAPPA, closed_bound, foreseen, regret_bound
from discreet.learning.phase import Estimates, Phase


def make_plan(**changes):
    usual = {
        "domain": Box({"dose": (0, 10)}),
        "kernel": SquaredExponential(0.4),
        "privacy": JointDP(8.0, 1e-4),
        "rewards": (-0.5, 1.5),
        "confidence": "theory",
        "norm": 1.0,
        "noise_std": 0.1,
        "elimination": Elimination(net=20, means=(0.0, 1.0)),
        "schedule": Schedule(150, growth=2.0),
    }
    return Plan(**(usual | changes))


def bump(points):
    return np.exp(-np.square(points[:, 0] - 0.3) / (2 * 0.4**2))


def _release(plan, epoch, integers):
    return Release(
        epoch=epoch.digest,
        previous=epoch.previous,
        asks=epoch.length,
        reports=None,
        integers=np.asarray(integers).astype(np.int64),
        private=False,
    )


@given(
    rounds=st.integers(1, 10**9),
    first=st.integers(1, 10**5),
    noise=st.floats(1e-3, 1.0),
    private=st.floats(0.0, 100.0),
    lever=st.floats(1.0, 100.0),
)
def test_the_closed_form_is_never_below_the_sum_over_phases(rounds, first, noise, private, lever):
    """The sum of the theorem for phases n, n, 2n, 4n, ..., without misfit and rounding."""
    log, spread, total, asked, price = 4.0, 2.0, 0.0, 0, 2.0
    while asked < rounds:
        n = max(asked, first)
        total += min(n, rounds - asked) * price
        asked += n
        width = log * math.hypot(noise * math.sqrt(KAPPA * lever / n), private * lever / n)
        price = min(price, 4.0 * width)
    numbers = {"noise": noise, "private": private, "lever": lever, "log": log}
    assert total <= closed_bound(rounds, first=first, spread=spread, **numbers) * (1 + 1e-9)


def worst_pattern(plan, arm):
    """A function at the edge of the class: misfit against the first phase's estimate at an arm."""
    epoch, arms = Study(plan).next_epoch(), arms_of(plan)
    phase = _phase(plan, Study(plan), epoch)
    z = np.linalg.solve(phase.matrix.T, phase.rows @ arms.phi[arm])
    theta = np.random.default_rng(arm).standard_normal(plan.map.dimension)
    values = arms.phi @ theta / np.linalg.norm(theta) * plan.norm + plan.premises.misfit
    for point, pull in zip(epoch.policy.menu, phase.along @ z, strict=True):
        values[(arms.points == point).all(axis=1)] -= 2.0 * plan.premises.misfit * (pull > 0.0)
    return (values - plan.centre) / plan.half_width


def _phase(plan, study, epoch, integers=None):
    rows = study.belief.opened(epoch.length).directions
    empty = np.zeros(epoch.encoding.size(plan.map))
    release = _release(plan, epoch, empty if integers is None else integers)
    return Phase.of(plan, epoch, release, rows, study.belief.arms.silence)


@pytest.mark.parametrize(
    ("misfit", "silence", "least"), [(0.02, 0.0, 0.8), (0.0, 0.05, 0.7), (0.02, 0.05, 0.7)]
)
@pytest.mark.parametrize("privacy", [JointDP(1.0, 0.1), NonPrivate()])
def test_an_adversary_takes_most_of_the_bias_and_never_more(privacy, misfit, silence, least):
    """No noise at all: misfit, silence and truncation against one arm, each at its worst."""
    premises = Elimination(net=20, means=(-1.0, 1.0), misfit=misfit, silence=silence)
    plan = make_plan(
        privacy=privacy,
        elimination=premises,
        rewards=(-1.6, 1.6),
        kernel=SquaredExponential(0.2),
        schedule=None,
    )
    worst = 0.0
    for arm in range(0, 20, 4):
        study, truth = Study(plan), worst_pattern(plan, arm)
        for _ in range(4):
            epoch, active = study.next_epoch(), study.belief.active
            phase, arms = _phase(plan, study, epoch), study.belief.arms
            at = [int(np.flatnonzero((arms.points == p).all(axis=1))[0]) for p in epoch.policy.menu]
            g, residual = epoch.encoding.along(phase.menu), epoch.encoding.residual
            told = phase.counts * (truth[at] - phase.menu @ residual.prediction)
            z = np.linalg.solve(phase.matrix.T, phase.rows @ arms.phi[arm])
            pull, left = phase.along @ z, math.floor(silence * epoch.length)
            for place in np.argsort(-np.abs(pull)):  # those who matter most, with extreme answers
                gone = min(left, phase.counts[place])
                told[place] -= gone * residual.width * np.sign(pull[place])
                left -= gone
            integers = np.trunc(np.ldexp(np.append(g.T @ told, 0.0), epoch.encoding.bits))
            found = _phase(plan, study, epoch, integers).at(arms.phi[active], arms, 0.0)
            worst = max(worst, (np.abs(found.values - truth[active]) / found.bias).max())
            study = study.opened(epoch).released(_release(plan, epoch, integers))
            assert study.belief.active[np.argmax(truth)]
    assert least <= worst <= 1.0


def test_arms_that_hardly_differ_are_never_proven_different_by_rounding():
    """Rows apart by less than rounding takes from a squared distance: the width is still theirs."""
    scaled = np.full((2, 60), 1e3 / math.sqrt(60.0))
    scaled[1, 0] += 2e-6
    values = np.array([0.0, 2e-6])
    pair = Estimates(values, scaled, np.zeros(2))
    assert (pair.lead(np.arange(2), np.arange(2), -1.0) <= 0.0).all()


def test_a_horizon_below_the_first_phase_promises_the_whole_spread():
    plan = make_plan(schedule=None)
    first = foreseen(plan)[0].asks
    for rounds in (1, first // 7, first):
        worst = rounds * (arms_of(plan).spread + arms_of(plan).net_error) * plan.half_width
        assert regret_bound(plan, rounds) == pytest.approx(worst)


@pytest.mark.parametrize("horizon", [1, 2, 5, 149, 151, 310])
def test_a_horizon_may_cut_any_phase(horizon):
    plan = make_plan(horizon=horizon)
    phases = play_phases(plan, bump, rounds=horizon, best=1.0, rng=np.random.default_rng(2))
    assert phases[-1].asks == horizon
    assert all(each.regret <= min(each.certified, regret_bound(plan, each.asks)) for each in phases)
    assert all(each.best_is_active for each in phases)


@pytest.mark.parametrize(
    ("arms", "left"), [((3.0, 3.0 + 1e-8, 8.0), 2), ((0.0, 10.0), 1), ((3.0, 3.0 + 1e-9), 2)]
)
def test_arms_that_are_one_to_the_features_stay_together(arms, left):
    premises = Elimination(arms=[(arm,) for arm in arms], means=(0.0, 1.0))
    plan = make_plan(elimination=premises, schedule=None)
    phases = play_phases(plan, bump, rounds=50_000, best=1.0, rng=np.random.default_rng(3))
    assert phases[-1].active == left
    assert all(each.best_is_active for each in phases)


@pytest.mark.parametrize("failure", [1e-300, 0.999999])
def test_any_probability_of_failure_can_be_asked_for(failure):
    premises = Elimination(net=20, means=(0.0, 1.0), failure=failure)
    plan = make_plan(elimination=premises, schedule=None)
    phases = play_phases(plan, bump, rounds=300_000, best=1.0, rng=np.random.default_rng(4))
    assert all(each.best_is_active and each.regret <= each.certified for each in phases)
    assert phases[-1].active < 20
