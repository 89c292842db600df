"""What releases along directions teach: the function, who comes, and how many answer."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.domain.box import Box
from discreet.features.kernels import SquaredExponential
from discreet.learning.crowds import CrowdBlock, crowd_of
from discreet.learning.next_epoch import believed_before, learner, menu_only
from discreet.learning.personal_belief import Answered, PersonalBelief
from discreet.learning.search import public_points
from discreet.learning.study import Study
from discreet.privacy.budget import JointDP
from discreet.privacy.directed import MOST_DIRECTIONS, DirectedEncoding
from discreet.privacy.looks import FOUR_LOOKS, in_sight

BOX = Box({"dose": (0, 1), "age": (0, 1), "size": (0, 1)}, context=("age", "size"))
KERNEL = SquaredExponential((0.5, 0.8, 0.8))


def _plan(epsilon=8.0, **parts):
    usual = {
        "domain": BOX,
        "privacy": JointDP(epsilon, 1e-6),
        "kernel": KERNEL,
        "rewards": (-1.0, 1.0),
        "horizon": 4_000,
    }
    return Plan(**(usual | parts))


def _mean(points):
    return 0.8 - 3.0 * np.square(points[:, 0] - 0.2 - 0.5 * points[:, 1])


def _played(plan, asks, *, seed=0, answered=1.0, people=None):
    """A study of people whose contexts nobody but this function sees."""
    rng, study, seen = np.random.default_rng(seed), Study.begun(believed_before(plan)), ()
    while not study.epochs or study.epochs[-1].end < asks:
        epoch = study.next_epoch()
        contexts = rng.random((epoch.length, 2)) if people is None else people(epoch.length, rng)
        points, _ = epoch.policy.search(plan.map, np.arange(epoch.length), BOX, contexts)
        told = rng.random(epoch.length) < answered
        rewards = np.clip(_mean(points) + 0.1 * rng.standard_normal(len(points)), -1.0, 1.0)
        newest = _Rounds(plan.looks_from(epoch.first), points[told], rewards[told])
        seen = in_sight(newest, seen)
        sums = sum(
            epoch.encoding.total(plan.map, each.points, each.rewards, each.looks[age])
            for age, each in enumerate(seen)
        )
        stds = epoch.encoding.stds(plan.map)
        noise = np.rint(stds * rng.standard_normal(len(stds))).astype(np.int64)
        release = Release(
            epoch=epoch.digest,
            previous=epoch.previous,
            asks=epoch.length,
            integers=sums + noise,
            private=False,
        )
        study = study.opened(epoch).released(release)
    return study


class _Rounds:
    def __init__(self, looks, points, rewards):
        self.looks, self.points, self.rewards = looks, points, rewards


def test_a_plan_with_contexts_takes_directions_and_four_looks():
    plan = _plan()
    assert plan.encoding == "directed"
    assert plan.looks == FOUR_LOOKS
    assert plan.looks_from(0) == FOUR_LOOKS
    assert isinstance(learner(plan), PersonalBelief)


def test_it_learns_a_dose_that_depends_on_the_person():
    study = _played(_plan(), 2_000)
    for age in (0.1, 0.5, 0.9):
        best = study.best(context={"age": age, "size": 0.5}).action["dose"]
        assert best == pytest.approx(0.2 + 0.5 * age, abs=0.12)


def test_it_learns_who_comes_and_how_many_answer():
    study = _played(_plan(), 3_000, answered=0.6, people=lambda n, rng: rng.beta(2, 5, (n, 2)))
    assert study.belief.law.people.mean(axis=0) == pytest.approx([2 / 7] * 2, abs=0.06)
    assert study.belief.answered.share == pytest.approx(0.6, abs=0.08)


def test_a_study_that_is_read_back_believes_the_same():
    study = _played(_plan(), 400)
    again = Study(study.plan, study.epochs, study.releases)
    assert np.array_equal(again.belief.information, study.belief.information)
    assert np.array_equal(again.belief.law.tilt, study.belief.law.tilt)


@pytest.mark.parametrize("seed", range(3))
def test_a_release_that_looks_at_earlier_people_tells_more_than_one_of_the_newest(seed):
    study = _played(_plan(1.0, looks=FOUR_LOOKS), 600, seed=seed)
    belief, epoch = study.belief, study.next_epoch()
    block, points = belief._block(epoch.policy, epoch.first, epoch.length), public_points(BOX)
    forgotten = belief.window
    while forgotten.blocks:
        forgotten = forgotten._without_oldest()

    def told(window):
        entered = window.entered(block, belief.scales.noise)
        left = belief._foreseen(entered, epoch.encoding).variance(points)
        return (belief.posterior.variance(points) - left).mean()

    assert told(belief.window) > 1.2 * told(forgotten)


def test_directions_are_few_where_noise_is_large():
    sizes = [
        len(Study.begun(believed_before(_plan(epsilon))).next_epoch().encoding.directions)
        for epsilon in (0.3, 8.0)
    ]
    assert sizes[0] <= sizes[1] <= MOST_DIRECTIONS


def test_answers_at_the_ends_are_never_clipped():
    plan = _plan()
    belief = learner(plan)
    ends = replace(belief, scales=replace(belief.scales, at_ends=True))
    moved = replace(ends, window=ends.window.plus(np.eye(48), 2.0 * np.ones(48)))
    encoding = moved.encoding_for(100, 100, menu_only(plan, public_points(BOX)))
    predictions = np.abs(plan.map(public_points(BOX)) @ encoding.residual.prediction)
    assert encoding.residual.width >= min(2.0, 1.0 + 0.99 * predictions.max())
    assert plan.allows(encoding)


def test_the_noise_that_looks_share_is_what_rewards_add_up_to():
    """Cov(sum eta g, sum eta g') over a crowd, of which phi carries all but a remainder."""
    plan = _plan()
    belief = learner(plan)
    crowd = crowd_of(plan, belief.law, menu_only(plan, public_points(BOX)))
    block = CrowdBlock.of(crowd, belief.law, 100.0, FOUR_LOOKS)
    weights = crowd.weights(belief.law)
    encoding = DirectedEncoding.fit(plan.map, belief._next_residual(0.1), plan.mu, 1.0, 100)
    g = encoding.along(crowd.phi)
    along = block.carried((g * weights[:, None]).T @ crowd.phi)
    whole = (g * weights[:, None]).T @ g
    rest = np.linalg.eigvalsh(whole - along @ along.T)
    assert rest.min() > -1e-9
    assert np.trace(along @ along.T) > 0.5 * np.trace(whole)


def test_answers_are_pooled_over_releases():
    told = Answered()
    for _ in range(20):
        told = told.told(50.0, 100.0, 83.0**2)
    assert told.share == pytest.approx(0.65, abs=0.15)
    assert Answered(-1.0).share == 0.05
    assert Answered(1.4).share == 1.0


def test_candidates_beyond_a_grid_take_directions_too():
    box = Box({f"x{i}": (0, 1) for i in range(5)})
    plan = Plan(
        domain=box,
        privacy=JointDP(4.0, 1e-6),
        kernel=SquaredExponential(0.8),
        decisions="candidates",
        horizon=5_000,
    )
    assert plan.encoding == "directed"
    study = Study.begun(believed_before(plan))
    assert study.next_epoch().encoding.size(plan.map) > 1
