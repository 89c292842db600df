"""An epoch's indices drawn together are those of devices that draw one by one, in law."""

import numpy as np
import pytest

from discreet.agreement.plan import Plan
from discreet.domain.box import Box
from discreet.features.kernels import SquaredExponential
from discreet.learning.next_epoch import believed_before
from discreet.learning.study import Study
from discreet.privacy.budget import LocalDP, Simulation
from discreet.simulation.epochs import IndexReports
from discreet.trusted import mechanism
from discreet.trusted.randomness import source

BOXES = {
    "interval": Box({"dose": (0.0, 1.0)}),
    "codebook": Box({"dose": (0.0, 1.0), "age": (0.0, 1.0)}, context=("age",)),
}


@pytest.mark.parametrize("encoding", ["interval", "codebook"])
def test_sums_have_the_mean_and_the_variance_of_single_reports(encoding):
    box = BOXES[encoding]
    plan = Plan(
        domain=box,
        privacy=LocalDP(2.0),
        kernel=SquaredExponential(0.5),
        horizon=4_000,
        codewords=256,
    )
    epoch = Study.begun(believed_before(plan)).next_epoch()
    count, times = epoch.length, 300
    rng = np.random.default_rng(5)
    points = rng.random((count, box.dimension))
    if encoding == "interval":
        points = epoch.policy.from_menu(np.arange(count))
    rewards = rng.random(count)
    rows = epoch.policy.rows(np.arange(count))
    together, apart = [], []
    for number in range(times):
        reports = IndexReports(plan, np.random.Generator(np.random.Philox(number)))
        reports.open(epoch)
        reports.simulate(points, rewards)
        together.append(reports.release().integers)
        bits = source(Simulation(number), 0)
        found = mechanism.indices(plan, epoch, points, rewards, bits=bits)
        apart.append(epoch.indexed.statistics(found, rows))
    first, second = np.array(together, float), np.array(apart, float)
    varied = (first.std(axis=0) > 0) & (second.std(axis=0) > 0)
    assert (first[:, ~varied] == second[:, ~varied]).all()
    error = np.sqrt((first.var(axis=0) + second.var(axis=0))[varied] / times)
    # At most 200 numbers: all within 6 standard errors but for a probability below 1e-6.
    assert (np.abs(first.mean(axis=0) - second.mean(axis=0))[varied] < 6.0 * error).all()
    ratio = np.log(first.var(axis=0)[varied].sum() / second.var(axis=0)[varied].sum())
    assert abs(ratio) < 6.0 * np.sqrt(4.0 / times)


def test_a_simulated_release_counts_its_reports():
    plan = Plan(domain=BOXES["interval"], privacy=LocalDP(2.0), horizon=400)
    epoch = Study.begun(believed_before(plan)).next_epoch()
    reports = IndexReports(plan, np.random.default_rng(0))
    reports.open(epoch)
    reports.simulate(epoch.policy.from_menu(np.arange(5)), np.zeros(5))
    reports.simulate(epoch.policy.from_menu(np.arange(5, 8)), np.zeros(3))
    release = reports.release()
    assert (release.asks, release.reports, release.private) == (8, 8, False)
    assert release.integers.reshape(-1, 3)[:, 0].sum() == 8
