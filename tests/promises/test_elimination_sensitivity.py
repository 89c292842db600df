"""The phases of elimination, as they are opened: how far one person can move a release."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import (
    Bandit,
    Box,
    Elimination,
    JointDP,
    LocalDP,
    Plan,
    Schedule,
    Simulation,
    SquaredExponential,
    Study,
)
from discreet.agreement.release import GENESIS, Release
from discreet.protocol.records import Asked, Told
from discreet.protocol.verifier import check_epoch
from discreet.trusted.privatizer import Privatizer


def make_plan(privacy):
    return Plan(
        domain=Box({"x": (0, 1), "y": (0, 1)}),
        kernel=SquaredExponential(0.5),
        privacy=privacy,
        rewards=(-1.0, 1.0),
        confidence="theory",
        norm=1.0,
        noise_std=0.05,
        elimination=Elimination(net=9, means=(-0.5, 0.5)),
        schedule=Schedule(400, growth=2.0),
    )


def opened(plan, phases=4):
    """The first phases, after releases that taught something."""
    study, rng = Study(plan), np.random.default_rng(2)
    for _ in range(phases):
        epoch = study.next_epoch()
        yield epoch
        points = epoch.asked(epoch.length)
        rewards = 0.4 * np.cos(4.0 * points[:, 0]) + 0.05 * rng.standard_normal(len(points))
        sums = epoch.encoding.total(plan.map, points, np.clip(rewards, -1, 1))
        stds = plan.noise_of_sum(epoch.encoding, epoch.length).stds(plan.map)
        noise = np.rint(stds * rng.standard_normal(len(stds))).astype(np.int64)
        release = Release(
            epoch=epoch.digest,
            previous=epoch.previous,
            asks=epoch.length,
            reports=epoch.length if plan.is_local else None,
            integers=sums + noise,
            private=False,
        )
        study = study.opened(epoch).released(release)


@pytest.mark.parametrize("privacy", [JointDP(1.0, 1e-6), JointDP(8.0, 0.01), LocalDP(4.0, 1e-4)])
def test_no_two_rounds_of_a_phase_are_further_apart_than_mu(privacy):
    """An adversary tries every pair of asked arms, and points in between, with extreme answers."""
    plan, rng = make_plan(privacy), np.random.default_rng(1)
    for epoch in opened(plan):
        check_epoch(plan, epoch)
        points = np.concatenate([epoch.policy.menu, rng.random((200, 2))])
        answers = np.array([-40.0, -1.0, -0.3, 0.0, 0.3, 1.0, 40.0])
        rows = np.concatenate(
            [epoch.encoding.encode(plan.map, points, np.full(len(points), y)) for y in answers]
        )
        whitened = rows / epoch.encoding.stds(plan.map)
        squares = np.square(whitened).sum(axis=1)
        apart = squares[:, None] + squares - 2.0 * whitened @ whitened.T
        largest = float(np.sqrt(apart.max()))
        assert 0.95 * plan.mu <= largest <= plan.mu * (1 + 1e-9)


def test_residuals_are_clipped_more_narrowly_as_widths_shrink():
    phases = list(opened(make_plan(JointDP(8.0, 0.01)), 5))
    first, last = phases[0].encoding, phases[-1].encoding
    assert last.residual.width < 0.8 * first.residual.width
    assert last.noise.cross < 0.8 * first.noise.cross


def test_a_late_answer_moves_no_release_of_elimination():
    plan = make_plan(JointDP(8.0, 0.01))
    first, second, *_ = opened(plan, 3)

    def sums(*late):
        privatizer = Privatizer(plan, Simulation(1))
        privatizer.open(replace(first, previous=GENESIS))
        for number, point in enumerate(first.asked(first.length)):
            privatizer.ask(Asked(number, point, None))
        privatizer.release()
        privatizer.open(second)
        privatizer.tell(*late)
        return privatizer.release().integers

    assert (sums() == sums(Told(3, 1.0), Told(4, -1.0))).all()


@pytest.mark.parametrize("stops", [(), (7,), (7, 9, 15)])
def test_late_answers_are_dropped_before_and_after_a_restart(tmp_path, stops):
    """Releases are those of a study in which the late never answer at all."""
    plan = replace(make_plan(JointDP(8.0, 0.01)), schedule=Schedule(6, growth=2.0))

    def played(path, late, stops):
        bandit, trials = Bandit(plan, simulation=Simulation(2), journal=path), []
        for number in range(24):
            trials.append(bandit.ask(user=f"person {number}"))
            if number not in (2, 7):
                bandit.tell(trials[-1], 0.1 * (number % 3))
            if late and number in (8, 13):
                bandit.tell(trials[2 if number == 8 else 7], 0.9)
            if number in stops:
                bandit.close()
                bandit = Bandit(plan, simulation=Simulation(2), journal=path)
        bandit.finish()
        return [release.digest for release in bandit.study.releases]

    silent = played(tmp_path / "silent.db", late=False, stops=())
    assert played(tmp_path / "late.db", late=True, stops=stops) == silent
