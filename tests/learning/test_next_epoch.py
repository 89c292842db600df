"""Epochs: pure functions of public digests, and what their releases teach."""

import dataclasses

import numpy as np
import pytest

from discreet.agreement.plan import Exploration, Plan, Schedule
from discreet.agreement.prior import Prior
from discreet.agreement.release import GENESIS, Release
from discreet.domain.box import Box, Integer
from discreet.errors import InvalidArgument
from discreet.features.kernels import Learned, Polynomial, SquaredExponential
from discreet.learning.belief import SHARES, SMALLEST_WIDTH, Belief
from discreet.learning.epoch import Epoch
from discreet.learning.inference import expected_posterior
from discreet.learning.next_epoch import learn, open_epoch
from discreet.learning.policy import unpacked
from discreet.learning.search import public_points
from discreet.learning.window import Window
from discreet.privacy.budget import JointDP, NonPrivate
from discreet.simulation.forecast import foreseen
from discreet.storage import canonical

BOX = Box({"x": (0, 1), "n": Integer(0, 5)}, feasible="x * n <= 4")


def _plan(**changes):
    given = {"domain": BOX, "privacy": NonPrivate(), "kernel": SquaredExponential(0.5)}
    return Plan(**{**given, "rewards": (-2.0, 4.0), **changes})


def _open(plan, belief=None, *, number=0, first=0, previous=GENESIS):
    belief = Belief.before(plan) if belief is None else belief
    return open_epoch(plan, belief, number=number, first=first, previous=previous)


def _known(plan, precision=5.0, seed=0):
    m = plan.map.dimension
    normals = np.random.default_rng(seed).standard_normal(m)
    told = Window.empty(np.zeros(m)).plus(precision * np.eye(m), precision * normals / 8)
    return dataclasses.replace(Belief.before(plan), window=told)


def _release(plan, epoch, *, previous=GENESIS):
    """Every ask of a whole-box epoch answered, by a fixed function of the action."""
    points = np.stack([epoch.policy.from_menu(index) for index in range(epoch.length)])
    rewards = np.array([plan.centred(3 * np.sin(5 * point.sum())) for point in points])
    rows = epoch.encoding.encode(plan.map, points, rewards)
    return (
        Release(epoch.digest, previous, epoch.length, rows.sum(axis=0), private=False),
        points,
        rewards,
    )


def test_opening_an_epoch_is_a_pure_function():
    plan = _plan()
    belief = Belief.before(plan)
    assert _open(plan, belief).digest == _open(plan, belief).digest
    assert _open(_plan()).digest == _open(plan).digest
    later = {"number": 3, "first": 40, "previous": "ab" * 32}
    assert _open(plan, belief, **later).digest == _open(_plan(), **later).digest


def test_the_plan_and_the_release_before_decide_what_looks_random():
    epochs = [
        _open(_plan()),
        _open(_plan(name="another study")),
        _open(_plan(), previous="ab" * 32),
    ]
    assert len({epoch.digest for epoch in epochs}) == 3
    assert len({epoch.policy.menu.tobytes() for epoch in epochs}) == 3
    tilts = [
        _open(plan, previous=previous).policy.tilts.tobytes()
        for plan in (_plan(decisions="candidates"), _plan(decisions="candidates", name="another"))
        for previous in (GENESIS, "ab" * 32)
    ]
    assert len(set(tilts)) == 4


def test_an_epoch_names_its_plan_and_the_release_before():
    plan = _plan()
    epoch = _open(plan, number=2, first=30, previous="ab" * 32)
    assert (epoch.plan, epoch.previous) == (plan.digest, "ab" * 32)
    assert (epoch.number, epoch.first, epoch.end) == (2, 30, 30 + epoch.length)


def test_lengths_follow_the_schedule_and_stop_at_the_horizon():
    plan = _plan(schedule=Schedule(first=10, growth=1.5), horizon=100)
    lengths, asked = [], 0
    while asked < 100:
        lengths.append(_open(plan, number=len(lengths), first=asked).length)
        asked += lengths[-1]
    assert lengths == [10, 5, 8, 12, 18, 27, 20]


def test_a_second_epoch_has_the_length_it_was_given_and_growth_follows():
    plan = _plan(schedule=Schedule(first=10, growth=1.5, second=33), horizon=100)
    lengths, asked = [], 0
    while asked < 100:
        lengths.append(_open(plan, number=len(lengths), first=asked).length)
        asked += lengths[-1]
    assert lengths == [10, 33, 22, 33, 2]
    assert plan.design_asks == 43
    assert [plan.is_design(first) for first in (0, 10, 43, 65)] == [True, True, False, False]


@pytest.mark.parametrize("decisions", ["box", "candidates"])
def test_what_is_believed_does_not_guide_the_epochs_that_fill_the_domain(decisions):
    schedule = Schedule(first=10, growth=1.5, second=33)
    plan = _plan(decisions=decisions, schedule=schedule, exploration=Exploration(1.0, 0.5, 5))
    for first, fills in ((0, True), (10, True), (43, False)):
        epoch = _open(plan, _known(plan), number=1, first=first)
        if decisions == "box":
            other = _open(plan, _known(plan, seed=1), number=1, first=first)
            assert (epoch.policy.menu.tobytes() == other.policy.menu.tobytes()) == fills
            assert len(epoch.policy.menu) == (epoch.length if fills else 5)
        else:
            assert epoch.policy.optimism == (0.0 if fills else 1.0)
            assert len(epoch.policy.tilts) == (epoch.length if fills else 5)


@pytest.mark.parametrize("decisions", ["box", "candidates"])
def test_the_first_epoch_spreads_over_the_box_or_draws_from_the_prior(decisions):
    plan = _plan(decisions=decisions)
    epoch = _open(plan)
    assert epoch.policy.optimism == 0.0
    if decisions == "box":
        assert epoch.policy.tilts.size == epoch.policy.packed_whitening.size == 0
        assert len(np.unique(epoch.policy.menu, axis=0)) == epoch.length
        assert BOX.admits(epoch.policy.menu).all()
        assert np.array_equal(BOX.snap(epoch.policy.menu), epoch.policy.menu)
    else:
        assert epoch.policy.menu.shape == (0, BOX.dimension)
        assert epoch.policy.tilts.shape == (epoch.length, plan.map.dimension)


def test_a_context_leaves_the_menu_empty():
    domain = Box({"dose": (0, 1), "age": (0, 1)}, context=["age"])
    plan = _plan(domain=domain)
    for number, first in ((0, 0), (1, 20)):
        assert _open(plan, number=number, first=first).policy.menu.shape == (0, 2)


@pytest.mark.parametrize("decisions", ["box", "candidates"])
def test_a_warm_start_does_not_spread_but_uses_what_is_known(decisions):
    plan = _plan(decisions=decisions)
    learnt = Belief.before(plan).posterior
    m = plan.map.dimension
    prior = Prior(
        canonical.digest(plan.domain),
        canonical.digest(plan.map),
        plan.rewards,
        5 * learnt.precision,
        np.ones(m),
        True,
    )
    warm = _plan(decisions=decisions, features=plan.map, prior=prior)
    assert not warm.is_design(0)
    epoch = _open(warm)
    draws = min(warm.exploration.draws, epoch.length)
    if decisions == "box":
        assert len(epoch.policy.menu) == draws
    else:
        assert epoch.policy.optimism == warm.exploration.optimism
        assert len(epoch.policy.tilts) == draws


def test_tilts_are_the_mean_plus_scaled_draws():
    exploration = Exploration(optimism=1.0, sampling=0.0, draws=4)
    plan = _plan(decisions="candidates", exploration=exploration)
    belief = _known(plan)
    posterior = belief.posterior
    later = _open(plan, belief, number=1, first=500, previous="ab" * 32)
    assert np.allclose(later.policy.tilts, posterior.coefficients, rtol=0, atol=1e-12)
    assert later.policy.optimism == 1.0
    lower = unpacked(later.policy.packed_whitening, plan.map.dimension)
    assert np.allclose(lower, posterior.whitening, rtol=0, atol=1e-12)


def _joint(**changes):
    return _plan(privacy=JointDP(1.0, 1e-6), **changes)


# -- what a private epoch encodes


@pytest.mark.parametrize("decisions", ["box", "candidates"])
def test_a_private_epoch_costs_no_more_than_its_round_was_promised(decisions):
    for rounds in (1, 4):
        privacy = JointDP(1.0, 1e-6, rounds_per_user=rounds)
        plan = _plan(privacy=privacy, decisions=decisions)
        for epoch in (_open(plan), _open(plan, _known(plan), number=1, first=500)):
            assert epoch.encoding.bound(plan.map) <= privacy.mu_per_round
            assert epoch.encoding.bound(plan.map) == pytest.approx(privacy.mu_per_round, rel=1e-4)


@pytest.mark.parametrize("decisions", ["box", "candidates"])
def test_residuals_are_from_what_is_predicted_within_a_width_that_shrinks(decisions):
    plan = _joint(decisions=decisions, signal_std=3.0, noise_std=0.1)
    widths = []
    for precision in (1.0, 50.0, 1e4, 1e12):
        belief = _known(plan, precision)
        residual = _open(plan, belief, number=1, first=5000).encoding.residual
        assert np.array_equal(residual.prediction, belief.posterior.coefficients)
        widths.append(residual.width)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] <= 1.0
    assert widths[-1] >= SMALLEST_WIDTH


def test_the_first_epoch_predicts_nothing():
    assert not _open(_joint()).encoding.residual.prediction.any()


def test_without_privacy_rewards_are_encoded_as_they_are():
    plan = _plan()
    encoding = _open(plan, _known(plan), number=1, first=500).encoding
    assert not encoding.residual.prediction.any()
    assert encoding.residual.width == 1.0
    assert not encoding.stds(plan.map).any()


@pytest.mark.parametrize("encoding", ["gram", "fourier"])
def test_the_share_of_the_budget_minimises_the_expected_error(encoding):
    plan = _joint(decisions="candidates", encoding=encoding)
    belief = Belief.before(plan)
    epoch = _open(plan, belief)
    chosen, points = epoch.encoding, public_points(plan.domain)

    def error(encoding):
        unknown = belief.posterior.variance(points).mean()
        line = belief.line(encoding.residual, unknown)
        after = expected_posterior(belief.posterior, encoding, epoch.length, line, points)
        return after.variance(points).mean()

    rounds = epoch.length + plan.expire_after
    others = [type(chosen).fit(plan.map, chosen.residual, plan.mu, q, rounds) for q in SHARES]
    assert error(chosen) == min(error(other) for other in others)
    assert len({error(other) for other in others}) == len(SHARES)


@pytest.mark.parametrize("length", [1, 7, 16, 17, 50])
def test_the_public_asks_are_what_is_played(length):
    plan = _joint(schedule=Schedule(first=length, growth=2.0), exploration=Exploration(draws=16))
    for number, first in ((0, 0), (1, length)):
        epoch = _open(plan, number=number, first=first)
        assert epoch.length == length
        for asks in {length, (length + 1) // 2}:
            points = np.stack([epoch.policy.from_menu(index) for index in range(asks)])
            assert np.array_equal(epoch.asked(asks), points)


@pytest.mark.parametrize(
    ("kernel", "encodings"),
    [
        (SquaredExponential(0.5), ("gram", "fourier", "reward")),
        (Polynomial(2), ("gram", "reward")),  # features shorter than 1
    ],
    ids=["grid", "polynomial"],
)
@pytest.mark.parametrize("believed", [None, _known], ids=["blank", "known"])
@pytest.mark.parametrize("scales", [{}, {"signal_std": 1.5, "noise_std": 0.6}], ids=["learnt", ""])
def test_every_encoding_teaches_the_same_when_all_answer(kernel, encodings, believed, scales):
    x = BOX.spread(np.random.default_rng(0).random((50, 2)))
    given = {"kernel": kernel, **scales}
    learnt = []
    # Epochs differ with the plan's digest: let all play the menu of one plan.
    policy = _open(_plan(**given)).policy
    for encoding in encodings:
        plan = _plan(encoding=encoding, **given)
        before = (believed or Belief.before)(plan)
        epoch = dataclasses.replace(_open(plan), policy=policy)
        release, points, rewards = _release(plan, epoch)
        learnt.append(learn(plan, before, epoch, release))
    if scales:
        phi = plan.map(points)
        exact = before.posterior.absorb(
            phi.T @ phi, phi.T @ rewards, noise_variance=plan.noise_variance
        )
    else:
        exact = learnt[0].posterior
        assert np.ptp([after.scales.noise for after in learnt]) < 1e-6
        assert np.ptp([after.scales.shape for after in learnt]) < 1e-6
    for after in learnt:
        assert np.allclose(after.posterior.mean(x), exact.mean(x), rtol=0, atol=1e-5)
        assert np.allclose(after.posterior.variance(x), exact.variance(x), rtol=0, atol=1e-5)


def test_a_release_of_another_epoch_teaches_nothing():
    plan = _plan()
    epoch, other = _open(plan), _open(plan, previous="ab" * 32)
    release, *_ = _release(plan, epoch)
    with pytest.raises(InvalidArgument, match="release: expected a release of this epoch"):
        learn(plan, Belief.before(plan), other, release)


@pytest.mark.parametrize("encoding", ["gram", "fourier", "reward"])
def test_a_release_of_the_wrong_size_teaches_nothing(encoding):
    plan = _plan(encoding=encoding)
    epoch = _open(plan)
    release, *_ = _release(plan, epoch)
    for integers in (release.integers[:-1], np.append(release.integers, 0)):
        wrong = Release(epoch.digest, GENESIS, epoch.length, integers, private=False)
        with pytest.raises(InvalidArgument, match=f"{release.integers.size} integers"):
            learn(plan, Belief.before(plan), epoch, wrong)


@pytest.mark.parametrize("decisions", ["box", "candidates"])
@pytest.mark.parametrize("privacy", [NonPrivate(), JointDP(1.0, 1e-6)], ids=["none", "joint"])
def test_a_release_without_asks_changes_nothing(decisions, privacy):
    plan = _plan(decisions=decisions, privacy=privacy)
    belief = _known(plan)
    epoch = _open(plan, belief, number=1, first=500)
    noise = np.full(epoch.encoding.size(plan.map), 1000)
    assert learn(plan, belief, epoch, Release(epoch.digest, GENESIS, 0, noise, False)) is belief


def test_a_mean_that_was_rounded_otherwise_elsewhere_can_still_be_learnt_from():
    """Whoever verifies an export on another machine may differ in the last bits."""
    plan = _joint()
    belief = _known(plan)
    epoch = _open(plan, belief, number=1, first=500)
    assert len(epoch.encoding.directions) < plan.map.dimension
    window = dataclasses.replace(belief.window, information=belief.information * (1 + 1e-15))
    elsewhere = dataclasses.replace(belief, window=window)
    assert (elsewhere.posterior.coefficients != belief.posterior.coefficients).any()
    release, *_ = _release(plan, epoch)
    here, there = (learn(plan, b, epoch, release).posterior for b in (belief, elsewhere))
    assert np.allclose(here.coefficients, there.coefficients, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    "kernel",
    [SquaredExponential(0.5), Learned.around(SquaredExponential(1.0), 2.0)],
    ids=["one", "learnt"],
)
@pytest.mark.parametrize("decisions", ["box", "candidates"])
def test_what_is_foreseen_is_a_share_that_grows_with_the_asks(decisions, kernel):
    plan = _joint(decisions=decisions, kernel=kernel)
    shares = [foreseen(plan, Belief.before(plan), asks) for asks in (1, 50, 1000, 100_000)]
    assert 0.0 <= shares[0] < 0.1
    assert shares == sorted(shares)
    assert 0.5 < shares[-1] < 1.0


@pytest.mark.parametrize("encoding", ["gram", "fourier", "reward"])
def test_sums_of_an_epoch_and_all_late_answers_fit(encoding):
    plan = _plan(encoding=encoding, schedule=Schedule(first=2000), expire_after=10**9)
    rounds = plan.epoch_length(0) + plan.expire_after
    assert rounds * _open(plan).encoding.largest < 2**63


@pytest.mark.parametrize("decisions", ["box", "candidates"])
@pytest.mark.parametrize("privacy", [NonPrivate(), JointDP(1.0, 1e-6)], ids=["none", "joint"])
def test_an_epoch_survives_storage(decisions, privacy):
    plan = _plan(decisions=decisions, privacy=privacy)
    epoch = _open(plan)
    data = canonical.encode(epoch)
    again = canonical.decode(Epoch, data)
    assert canonical.encode(again) == data
    assert again.digest == epoch.digest
    assert np.array_equal(again.encoding.stds(plan.map), epoch.encoding.stds(plan.map))


def test_nobody_can_change_an_epoch_that_is_open():
    epoch = _open(_plan())
    with pytest.raises(AttributeError):
        epoch.length = 5
