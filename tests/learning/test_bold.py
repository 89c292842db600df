"""Bold scores: no action is given up while it may well turn out the best."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import Box, Categorical, Exploration, JointDP, LocalDP, Plan, Study
from discreet.errors import InvalidArgument, Refused
from discreet.features.given import rest_of
from discreet.learning.next_epoch import _learnt, learner
from discreet.learning.personal import _Reduced
from discreet.learning.policy import Policy, unpacked
from discreet.learning.search import Score
from discreet.protocol.verifier import check_epoch
from discreet.simulation.epochs import begin, play_study
from discreet.simulation.problems import find_problem
from discreet.simulation.worlds import World
from discreet.storage import canonical

ARMS = Box({"arm": Categorical(("a", "b", "c")), "age": (0, 1)}, context=["age"])
PLAN = Plan(ARMS, JointDP(8.0, 1e-6), horizon=4000)


def policy_of(belief, first=1000, length=200):
    """What a study that believes this would play after so many asks."""
    rng = np.random.Generator(np.random.Philox(3))
    return _learnt(belief.plan, belief, first, length, rng)


def told(plan, values, counts):
    """A belief after answers of these means, one and all alike at each arm, from so many people."""
    belief = learner(plan)
    for arm, (value, count) in enumerate(zip(values, counts, strict=True)):
        name = ARMS.coordinate("arm").values[arm]
        points = ARMS.encode({"arm": [name] * 9, "age": np.linspace(0, 1, 9)})
        phi = plan.map(points)
        window = belief.window.plus(count / 9 * phi.T @ phi, count / 9 * phi.T @ np.full(9, value))
        belief = replace(belief, window=window)
    return belief


def arms_of(policy, asks=640):
    """The share of asks that get each arm."""
    ages = np.linspace(0, 1, asks)[:, None]
    points, admitted = policy.search(PLAN.map, np.arange(asks), ARMS, ages)
    assert admitted.all()
    names = [ARMS.decode(point)["arm"] for point in points]
    return np.array([names.count(name) for name in ("a", "b", "c")]) / asks


def test_an_arm_that_little_is_known_of_is_tried_though_it_looks_worse():
    # Arm c was asked of 15 people, who were unlucky; a and b of 2000.
    belief = told(PLAN, (0.05, 0.0, -0.4), (2000, 2000, 15))
    bold = arms_of(policy_of(belief))
    shy_plan = replace(PLAN, exploration=Exploration(0.0, 0.4, foresight=True))
    shy = arms_of(policy_of(replace(belief, plan=shy_plan)))
    assert bold[2] >= 0.1
    assert shy[2] < bold[2] / 2


def test_an_arm_that_is_surely_worse_is_given_up():
    belief = told(PLAN, (0.05, 0.0, -0.4), (2000, 2000, 2000))
    assert arms_of(policy_of(belief))[2] == 0.0


def test_bold_scores_maximise_the_mean_and_how_it_may_still_change():
    belief = told(PLAN, (0.05, 0.0, -0.2), (300, 200, 20))
    policy = policy_of(belief)
    assert policy.bold_scores == 8
    assert (policy.tilts[56:] == belief.weighed.coefficients).all()
    change = unpacked(policy.packed_whitening, PLAN.map.dimension)
    ages = np.linspace(0, 1, 50)
    points, _ = policy.search(PLAN.map, np.full(50, 63), ARMS, ages[:, None])
    for age, point in zip(ages, points, strict=True):
        options = ARMS.encode({"arm": ["a", "b", "c"], "age": [age] * 3})
        phi = PLAN.map(options)
        scores = phi @ policy.tilts[63] + 3.0 * np.linalg.norm(phi @ change.T, axis=1)
        assert point.tolist() == options[scores.argmax()].tolist()


def test_who_is_asked_with_whom_changes_nobodys_action():
    domain = Box({"dose": (0, 1), "rate": (0, 1), "age": (0, 1)}, context=["age"])
    plan, rng = Plan(domain, JointDP(8.0, 1e-6), horizon=4000), np.random.default_rng(0)
    policy, ages = policy_of(learner(plan)), rng.random((130, 1))
    together, _ = policy.search(plan.map, np.arange(130), domain, ages)
    for some in (*rng.permutation(130).reshape(-1, 1), *rng.permutation(130).reshape(10, 13)):
        apart, _ = policy.search(plan.map, some, domain, ages[some])
        assert apart.tobytes() == together[some].tobytes()


@pytest.mark.parametrize("optimism", [0.0, 3.0])
def test_who_is_asked_with_whom_changes_no_bit_of_a_score(optimism):
    domain = Box({"dose": (0, 1), "age": (0, 1)}, context=["age"])
    plan, rng = Plan(domain, JointDP(8.0, 1e-6), horizon=4000), np.random.default_rng(1)
    policy, options = policy_of(learner(plan)), rng.random((60, 20, 2))
    options[:, :, 1] = rng.random((60, 1))
    score = Score(plan.map, unpacked(policy.packed_whitening, plan.map.dimension), optimism)
    rest, tilts = rest_of(plan.map, domain.free_columns), policy.tilts[:60]

    def values(some):
        own = _Reduced.of(score, rest, tilts[some], options[some, 0])
        return own.values(options[some])

    together = values(np.arange(60))
    for some in (*rng.permutation(60).reshape(-1, 1), *rng.permutation(60).reshape(4, 15)):
        assert values(some).tobytes() == together[some].tobytes()


def test_the_last_epoch_explores_nothing():
    world = World.draw(find_problem("dosing-1"), seed=5)
    plan = Plan(world.problem.domain, JointDP(8.0, 1e-6), rewards=(-0.5, 1.5), horizon=300)
    last = play_study(world, begin(plan), 300)[1].epochs[-1].policy
    assert (last.tilts == last.tilts[0]).all()
    assert not last.packed_whitening.any()


def test_a_policy_of_before_reads_as_it_was():
    policy = Policy(np.ones((2, 3)), np.zeros(6), 0.5, np.zeros((0, 2)))
    written = canonical.encode(policy)
    assert b"bold" not in written
    assert canonical.decode(Policy, written).bold_scores is None
    some = replace(policy, bold_scores=1)
    assert canonical.decode(Policy, canonical.encode(some)).bold_scores == 1


@pytest.mark.parametrize("bold", [-1, 3, 1.5])
def test_no_more_scores_are_bold_than_there_are(bold):
    with pytest.raises(InvalidArgument, match="bold_scores"):
        Policy(np.ones((2, 3)), np.zeros(6), 0.5, np.zeros((0, 2)), bold_scores=bold)


def test_only_bold_scores_have_optimism():
    policy = policy_of(told(PLAN, (0.05, 0.0, -0.2), (300, 200, 20)))
    points = np.random.default_rng(2).random((9, ARMS.dimension))
    phi, found = PLAN.map(points), policy.scores(PLAN.map, points)
    change = unpacked(policy.packed_whitening, PLAN.map.dimension)
    bonus = 3.0 * np.linalg.norm(phi @ change.T, axis=1)
    assert np.allclose(found[:56], policy.tilts[:56] @ phi.T)
    assert np.allclose(found[56:], policy.tilts[56:] @ phi.T + bonus)


def test_an_epoch_with_bold_scores_is_refused_where_the_plan_has_none():
    def bold(plan):
        epoch = Study(plan).next_epoch()
        return replace(epoch, policy=policy_of(learner(PLAN), 1000, epoch.length))

    check_epoch(PLAN, bold(PLAN))
    shy = replace(PLAN, exploration=Exploration(0.0, 0.5))
    with pytest.raises(Refused, match="policy does not fit"):
        check_epoch(shy, bold(shy))


@pytest.fixture(scope="module")
def learnt():
    """An open epoch with scores."""
    world = World.draw(find_problem("dosing-1"), seed=7)
    privacy = JointDP(8.0, 1e-6)
    plan = Plan(world.problem.domain, privacy, rewards=world.problem.rewards, horizon=2000)
    study = play_study(world, begin(plan), 2000)[1]
    return plan, next(each for each in study.epochs[5:-1] if len(each.policy.tilts) == 64)


@pytest.mark.parametrize(
    "forged",
    [
        {"bold_scores": None},
        {"bold_scores": 0},
        {"bold_scores": 64},
        {"optimism": 300.0},
        {"optimism": -3.0},
    ],
)
def test_an_epoch_that_explores_otherwise_than_planned_is_refused(learnt, forged):
    plan, epoch = learnt
    check_epoch(plan, epoch)
    with pytest.raises(Refused, match="policy does not fit"):
        check_epoch(plan, replace(epoch, policy=replace(epoch.policy, **forged)))


def test_an_epoch_of_fewer_scores_than_planned_is_refused(learnt):
    plan, epoch = learnt
    fewer = replace(epoch.policy, tilts=epoch.policy.tilts[:8], bold_scores=1)
    with pytest.raises(Refused, match="policy does not fit"):
        check_epoch(plan, replace(epoch, policy=fewer))


def test_a_design_has_no_bold_scores(learnt):
    plan, _ = learnt
    epoch = Study(plan).next_epoch()
    check_epoch(plan, epoch)
    with pytest.raises(Refused, match="policy does not fit"):
        check_epoch(plan, replace(epoch, policy=replace(epoch.policy, bold_scores=0)))


@pytest.mark.parametrize("bold", [0.0, -1.0, float("nan")])
def test_boldness_is_a_positive_number(bold):
    with pytest.raises(InvalidArgument, match=r"exploration\.bold"):
        Exploration(0.0, foresight=True, bold=bold)


def test_boldness_needs_foresight_and_takes_the_place_of_optimism():
    with pytest.raises(InvalidArgument, match="foresight"):
        Exploration(0.0, bold=3.0)
    with pytest.raises(InvalidArgument, match="optimism"):
        Exploration(0.3, foresight=True, bold=3.0)


@pytest.mark.parametrize(
    "changes",
    [
        {"domain": Box({"dose": (0, 1)})},
        {"horizon": None},
        {"privacy": LocalDP(8.0)},
        {"encoding": "gram"},
        {"noise": "tree", "horizon": 64},
    ],
)
def test_bold_scores_are_refused_where_nobody_would_get_them(changes):
    arguments = {"domain": ARMS, "privacy": JointDP(8.0, 1e-6), "horizon": 4000, **changes}
    bold = Exploration(0.0, 0.4, foresight=True, bold=3.0)
    with pytest.raises(InvalidArgument, match=r"exploration\.bold"):
        Plan(**arguments, exploration=bold)


def test_no_epoch_has_more_than_its_share_of_bold_scores():
    policy = policy_of(told(PLAN, (0.05, 0.0, -0.2), (300, 200, 20)), length=74)
    assert (len(policy.tilts), policy.bold_scores) == (64, 8)
    assert Exploration(0.0, foresight=True, bold=3.0).bold_of(1) == 0
