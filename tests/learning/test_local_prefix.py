"""Algorithm 3 as proven, in the local model's own roles and on sums of its reports."""

import math

import numpy as np
import pytest

from discreet import Box, Elimination, LocalDP, NonPrivate, Plan, SquaredExponential, Study
from discreet.agreement.release import Release
from discreet.errors import InvalidArgument
from discreet.features.kernels import Learned
from discreet.learning.local_prefix import ReportSums
from discreet.simulation.play import Setting, simulate
from discreet.simulation.problems import find_problem


def make_plan(**changes):
    usual = {
        "domain": Box({"dose": (0, 10)}),
        "kernel": SquaredExponential(0.5),
        "privacy": LocalDP(8.0, 1e-2),
        "decisions": "candidates",
        "confidence": "theory",
        "norm": 1.0,
        "horizon": 64,
    }
    return Plan(**(usual | changes))


def test_every_round_is_released_and_nothing_is_predicted():
    plan = make_plan()
    assert plan.epoch_length(0) == plan.epoch_length(63) == 1
    epoch = Study(plan).next_epoch()
    assert not epoch.encoding.residual.clips
    assert plan.encoding == "gram"
    assert plan.centre == 0.0


def test_it_plays_with_clients_and_a_server():
    changes = {"confidence": "theory", "norm": 1.0}
    setting = Setting(model="local", rounds=6, privacy=LocalDP(8.0, 0.1), changes=changes)
    run = simulate(find_problem("synthetic"), setting, seed=1)
    assert isinstance(run.study.belief, ReportSums)
    assert run.study.belief.reports == 6


def test_intervals_contain_the_function():
    """200 runs, each of which may fail with probability 0.1: more than 50 failures would have a
    probability below 1e-9 (binomial tail)."""
    plan, rng = make_plan(), np.random.default_rng(3)
    points = np.linspace(0.0, 1.0, 30)[:, None]
    phi, failed = plan.map(points), 0
    for _ in range(200):
        truth = plan.kernel(points, rng.random((1, 1)))[:, 0]
        study, chosen, within = Study(plan), 7, True
        for _ in range(8):
            epoch = study.next_epoch()
            answer = np.array([float(rng.random() < truth[chosen])])  # a coin flip of f
            sums = epoch.encoding.total(plan.map, points[[chosen]], answer)
            stds = epoch.encoding.stds(plan.map)
            noise = np.rint(stds * rng.standard_normal(len(stds))).astype(np.int64)
            study = study.opened(epoch).released(
                Release(
                    epoch=epoch.digest,
                    previous=epoch.previous,
                    asks=1,
                    reports=1,
                    integers=sums + noise,
                    private=False,
                )
            )
            found = study.belief
            stds = np.sqrt(found.posterior.variance(points))
            means = found.posterior.mean(points)
            margins = np.array([found.margin(std) for std in stds])
            within &= bool((np.abs(truth - means) <= margins).all())
            chosen = int(np.argmax(means + margins))
        failed += not within
    assert failed <= 50
    assert math.isfinite(found.width)
    assert phi.shape[1] == plan.map.dimension


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"horizon": None}, "horizon"),
        ({"norm": None}, "norm"),
        ({"kernel": Learned()}, "kernel"),
        ({"elimination": Elimination()}, "elimination"),
        ({"privacy": NonPrivate()}, "decisions"),
    ],
)
def test_what_is_not_proven_is_refused(changes, argument):
    with pytest.raises(InvalidArgument) as caught:
        make_plan(**changes)
    assert caught.value.argument == argument
