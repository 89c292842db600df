"""An adversary looks for two versions of a round that differ most in all releases together.

A round is looked at under several epochs, each with a prediction, a width, directions and noise of
its own, that the adversary chooses too. Its versions may lie anywhere, answer anything, and answer
in the same epoch, some epochs apart, or never.
"""

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from discreet.agreement.plan import Plan, Schedule
from discreet.agreement.release import GENESIS
from discreet.audit.streams import GlassPrivatizer
from discreet.domain.box import Box
from discreet.errors import InvalidArgument
from discreet.features.choose import choose
from discreet.features.kernels import SquaredExponential
from discreet.learning.epoch import Epoch
from discreet.learning.policy import Policy
from discreet.privacy.budget import JointDP
from discreet.privacy.clipping import SLACK_PER_INTEGER, SMALLEST_STD, Noise, Residual
from discreet.privacy.cost import GaussianPrivacy
from discreet.privacy.directed import MOST_DIRECTIONS
from discreet.privacy.looks import FOUR_LOOKS, MOST_LOOKS, ONE_LOOK, check_looks, reach
from discreet.privacy.reward import RewardEncoding
from discreet.protocol.records import Asked, Told

DELTA = 0.01
#: Rounding of norms: `Plan.mu` is a relative 1e-9 below what is promised.
HAIR = 1 + 1e-11
#: A whole first look, then four: the last two are past the sight of an answer in epoch 1 or 2.
EPOCHS = 8


def _plan(mu=1.0, d=1, looks=FOUR_LOOKS, rounds=1, encoding="reward"):
    return Plan(
        domain=Box({f"x{i}": (0.0, 1.0) for i in range(d)}),
        privacy=JointDP(GaussianPrivacy(mu).epsilon(DELTA), DELTA, rounds_per_user=rounds),
        features=FEATURES[d],
        decisions="box" if encoding == "reward" else "candidates",
        encoding=encoding,
        schedule=Schedule(3),
        looks=looks,
    )


FEATURES = {
    1: choose(SquaredExponential(0.2), widths=np.ones(1), error=1e-2),
    2: choose(SquaredExponential(0.4), widths=np.ones(2), error=1e-2),
}
KINDS = ("reward", "directed")
PLANS = {
    (mu, d, kind): _plan(mu, d, encoding=kind)
    for mu, d in ((1.0, 1), (0.05, 1), (4.0, 1), (0.5, 2))
    for kind in KINDS
}


# -- epochs


def _encoding(plan, residual, directions, *, coarse):
    """As `fit` makes it; coarse integers are as few as the smallest noise allows."""
    mu, width = plan.mu, residual.width
    plain = plan.encode_with.fit(plan.map, residual, mu, 1.0, 20_000)
    if coarse and plan.is_directed:
        plain = replace(plain, bits=max(1, int(np.ceil(np.log2(SMALLEST_STD * mu / 2) / 2))))
    elif coarse:
        bits = int(np.ceil(np.log2(SMALLEST_STD * mu / 2 / width**2)))
        plain = replace(plain, bits=bits, noise=Noise(0.0, 2 * width / mu))
        excess = plain.bound(plan.map) / mu
        plain = replace(plain, noise=Noise(0.0, 2 * width / mu * excess))
    encoding = replace(plain, directions=directions)
    assert plan.allows(encoding)
    assert encoding.bound(plan.map) >= plan.mu / HAIR  # no more noise than needed
    return encoding


def _encodings(plan, seed, *, wild=False, count=EPOCHS):
    """Of epochs that differ in everything; wild ones predict no reward, or hardly resolve any."""
    rng, m = np.random.default_rng(seed), plan.map.dimension
    made = []
    for _ in range(count):
        width = float(rng.choice(np.geomspace(1 / 64, 1.0 if wild else 0.6, 7)))
        prediction = rng.standard_normal(m)
        prediction *= (3.0 if wild else 0.35) * rng.random() / np.linalg.norm(prediction)
        directions = rng.standard_normal((rng.integers(1, min(m, MOST_DIRECTIONS) + 1), m))
        residual = Residual(prediction, width)
        made.append(_encoding(plan, residual, directions, coarse=wild and bool(rng.integers(2))))
    return made


# -- two versions of a round: points, rewards, and the epoch of the answer (None: never)


@dataclass
class Versions:
    """Many rounds that answer in the same epoch."""

    points: np.ndarray
    rewards: np.ndarray
    answered: int | None


def _looks_of(plan):
    return lambda answered: plan.looks_from(answered)


def _rows(plan, encoding, number, versions, looks_of):
    """What each round adds to this release."""
    nothing = np.zeros((len(versions.points), encoding.size(plan.map)), dtype=np.int64)
    if versions.answered is None or number < versions.answered:
        return nothing
    looks, age = looks_of(versions.answered), number - versions.answered
    if age >= len(looks):
        return nothing
    return encoding.encode(plan.map, versions.points, versions.rewards, looks[age])


def _costs(plan, encodings, first, second, looks_of=None):
    """The squared whitened change over all releases, pair by pair."""
    looks_of = looks_of or _looks_of(plan)
    total = np.zeros(len(first.points))
    for number, encoding in enumerate(encodings):
        here, there = (_rows(plan, encoding, number, each, looks_of) for each in (first, second))
        total += np.square((here - there) / encoding.stds(plan.map)).sum(axis=1)
    return total


def _largest(plan, encodings, answered, looks_of=None, *, starts=500, keep=6, seed=0):
    """Random pairs, then ever smaller steps from the best; answers lie within [-1, 1]."""
    rng, d = np.random.default_rng(seed), plan.map.inputs
    low, high = np.repeat([0.0, -1.0], [2 * d, 2]), np.ones(2 * d + 2)
    pairs = rng.uniform(low, high, (starts, 2 * d + 2))
    pairs[::2, d : 2 * d] = pairs[::2, :d]
    pairs[::3, 2 * d :] = rng.choice([-1.0, 1.0], pairs[::3, 2 * d :].shape)

    def costs(pairs):
        first = Versions(pairs[:, :d], pairs[:, 2 * d], answered[0])
        second = Versions(pairs[:, d : 2 * d], pairs[:, 2 * d + 1], answered[1])
        return _costs(plan, encodings, first, second, looks_of)

    found = costs(pairs)
    for scale in np.geomspace(0.3, 1e-6, 12):
        best = pairs[np.argsort(found)[-keep:]]
        steps = scale * rng.standard_normal((12, *best.shape))
        tried = np.clip((best + steps).reshape(-1, best.shape[1]), low, high)
        pairs = np.concatenate([best, tried])
        found = costs(pairs)
    return float(np.sqrt(found.max()))


#: Epoch 0 has one look, all others four: same epoch, up to out of sight, and silence.
TIMES = [(0, 0), (0, 1), (0, 2), (0, None), *((1, 1 + apart) for apart in range(5)), (1, None)]


@pytest.mark.parametrize("wild", [False, True], ids=["near", "wild"])
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("plan", PLANS.values(), ids=[str(key) for key in PLANS])
def test_no_two_versions_of_a_round_are_further_apart_than_mu(plan, seed, wild):
    encodings = _encodings(plan, seed, wild=wild)
    found = {times: _largest(plan, encodings, times) for times in TIMES}
    assert max(found.values()) <= plan.mu * HAIR
    # Silence costs half the square at most: two rounds out of each other's sight no more than one.
    assert max(found[0, None], found[1, None]) <= np.sqrt(0.5) * plan.mu * HAIR
    if not wild:  # answers reach both ends of every width
        assert found[0, 0] >= 0.98 * plan.mu
        assert found[1, 1] >= 0.98 * plan.mu
        late = 1.0 if plan.is_directed else np.sqrt(3.70 / 4)
        assert found[1, 2] >= 0.98 * late * plan.mu


@pytest.mark.parametrize("kind", KINDS)
def test_the_search_finds_noise_that_is_a_twentieth_too_small(kind):
    plan = PLANS[1.0, 1, kind]
    encodings = [
        replace(each, noise=Noise(0.95 * each.noise.gram, 0.95 * each.noise.cross))
        for each in _encodings(plan, 1)
    ]
    assert _largest(plan, encodings, (1, 1)) > 1.02 * plan.mu


@pytest.mark.parametrize("looks", [(0.95, 0.31), (1.0, 0.7, 0.5, 0.35), (1.0, 1.0), (0.8, 0.7)])
def test_looks_that_are_refused_would_cost_more(looks):
    with pytest.raises(InvalidArgument, match="looks"):
        check_looks(looks)
    plan = PLANS[1.0, 1, "reward"]
    encodings = _encodings(plan, 5)
    found = max(_largest(plan, encodings, (1, then), lambda _: looks) for then in (1, 2))
    assert found > 1.003 * plan.mu
    assert found <= reach(looks) / 2 * plan.mu * HAIR


def _f(a, e):
    """The squared change of one release, in squared widths over noise."""
    return (a + e) ** 2 + (a**2 - e**2) ** 2


REWARD_PLANS = [plan for key, plan in PLANS.items() if "reward" in key]
DIRECTED_PLANS = [plan for key, plan in PLANS.items() if "directed" in key]
unit, shares = st.floats(0.0, 1.0), st.floats(-1.0, 1.0)


@given(unit, unit, shares, shares, st.sampled_from(REWARD_PLANS), st.integers(0, 10**6))
def test_truncation_takes_no_release_beyond_its_part(a, e, h, other, plan, seed):
    """(mu / 2)^2 f(A, E) in every release by itself: epochs may differ in how coarse they are.

    Noise is enlarged by four integers of the spread for a truncation by one, and a round so small
    that its spread is truncated to nothing can not be moved by it.
    """
    (encoding,) = _encodings(plan, seed, wild=True, count=1)
    point, width = np.full((1, plan.map.inputs), 0.4), encoding.residual.width
    predicted = (plan.map(point) @ encoding.residual.prediction)[0]
    here, there = (
        encoding.encode(plan.map, point, np.array([predicted + width * each]), weight)[0]
        for each, weight in ((h, a), (other, e))
    )
    found = np.square((here - there) / encoding.stds(plan.map)).sum()
    assert found <= (plan.mu / 2) ** 2 * _f(a * abs(h), e * abs(other)) * HAIR + 1e-18


@settings(max_examples=200)
@given(
    unit, unit, shares, shares, unit, unit, st.sampled_from(DIRECTED_PLANS), st.integers(0, 10**6)
)
def test_a_release_along_directions_moves_by_no_more_than_its_weights(
    a, e, h, other, x, y, plan, seed
):
    """(mu^2 / 2) (A^2 + E^2), whatever both versions bring and answer, truncation included."""
    (encoding,) = _encodings(plan, seed, wild=True, count=1)
    points = np.array([[x] * plan.map.inputs, [y] * plan.map.inputs])
    predicted = plan.map(points) @ encoding.residual.prediction
    rewards = predicted + encoding.residual.width * np.array([h, other])
    here, there = (
        encoding.encode(plan.map, points[[i]], rewards[[i]], weight)[0]
        for i, weight in ((0, a), (1, e))
    )
    found = np.square((here - there) / encoding.stds(plan.map)).sum()
    assert found <= plan.mu**2 / 2 * (a**2 + e**2) * HAIR + 1e-18


# -- the same through the privatizer


def _epochs(plan, encodings, length):
    policy = Policy(np.zeros((0, plan.map.dimension)), np.zeros(0), 0.0, np.zeros((1, 1)))
    return [
        Epoch(number, number * length, length, plan.digest, GENESIS, encoding, policy)
        for number, encoding in enumerate(encodings)
    ]


def _totals(plan, epochs, own, *, seed=0):
    """Every release but for its noise. Rounds 0, 1, .. are `own`, asked first; others answer."""
    rng = np.random.default_rng(seed)
    privatizer = GlassPrivatizer(plan)
    for epoch in epochs:
        privatizer.open(epoch)
        points = rng.random((epoch.length, plan.map.inputs))
        rewards = rng.random(epoch.length)
        for number in range(epoch.first, epoch.end):
            is_own = number < len(own)
            point = own[number][0] if is_own else points[number - epoch.first]
            privatizer.ask(Asked(number, np.array(point)))
            if not is_own:
                privatizer.tell(Told(number, rewards[number - epoch.first]))
        for number, (_, reward, answered) in enumerate(own):
            if answered == epoch.number:
                privatizer.tell(Told(number, reward))
        privatizer.release()
    return privatizer.sums


def _whitened(plan, epochs, here, there):
    """The change of each release, divided by its noise."""
    return [
        (a - b) / epoch.encoding.stds(plan.map)
        for epoch, a, b in zip(epochs, here, there, strict=True)
    ]


def _change(plan, epochs, *versions):
    totals = [_totals(plan, epochs, own) for own in versions]
    return float(np.linalg.norm(np.concatenate(_whitened(plan, epochs, *totals))))


answered = st.none() | st.integers(0, EPOCHS - 1)
rounds = st.tuples(st.tuples(unit), st.sampled_from([0.0, 1.0]) | unit, answered)


@st.composite
def accepted_looks(draw, most=5):
    """Any looks that may be agreed on, and the longest of them often."""
    parts = np.array(draw(st.lists(st.floats(1e-5, 1.0), min_size=1, max_size=most)))
    looks = tuple(np.sqrt(parts / parts.sum()).tolist())
    try:
        check_looks(looks)
    except InvalidArgument:
        assume(False)
    return looks


@settings(max_examples=60)
@given(
    accepted_looks(),
    rounds,
    rounds,
    st.integers(0, 10**6),
    st.sampled_from([0.05, 1.0, 4.0]),
    st.sampled_from(KINDS),
)
def test_the_privatizer_spends_no_more_than_mu_on_any_round(looks, here, there, seed, mu, kind):
    plan = _plan(mu, looks=looks, encoding=kind)
    epochs = _epochs(plan, _encodings(plan, seed, wild=bool(seed % 2)), length=3)
    assert _change(plan, epochs, [here], [there]) <= plan.mu * HAIR


@settings(max_examples=30)
@given(*(rounds for _ in range(4)), st.integers(0, 10**6))
def test_two_rounds_of_one_person_cost_no_more_than_two_shares(one, two, three, four, seed):
    plan = _plan(looks=FOUR_LOOKS, rounds=2)
    epochs = _epochs(plan, _encodings(plan, seed), length=3)
    assert plan.mu == pytest.approx(0.5, rel=1e-6)
    assert _change(plan, epochs, [one, two], [three, four]) <= 2 * plan.mu * HAIR


def test_two_late_rounds_of_one_person_can_cost_both_shares():
    plan = _plan(rounds=2)
    epochs = _epochs(plan, _encodings(plan, 1), length=3)
    here, there = ([((0.4,), reward, 2)] * 2 for reward in (0.0, 1.0))
    assert _change(plan, epochs, here, there) >= 0.98 * 2 * plan.mu


def test_the_search_looks_at_what_the_privatizer_releases():
    plan, rng = PLANS[1.0, 1, "reward"], np.random.default_rng(9)
    encodings = _encodings(plan, 3)
    epochs = _epochs(plan, encodings, length=3)
    for times in TIMES:
        points, rewards = rng.random((2, 1, 1)), rng.random((2, 1))
        pair = [
            Versions(x, 2 * y - 1, when) for x, y, when in zip(points, rewards, times, strict=True)
        ]
        versions = [[(x[0], y[0], when)] for x, y, when in zip(points, rewards, times, strict=True)]
        found = _change(plan, epochs, *versions) ** 2
        assert found == pytest.approx(_costs(plan, encodings, *pair)[0], rel=1e-6, abs=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("d", [1, 2])
def test_what_others_add_does_not_depend_on_who_is_looked_at_beside_them(d, kind):
    """Rounds are looked at again as a batch: to the last integer, it is the sum of its rounds."""
    plan = _plan(d=d, encoding=kind)
    encodings = _encodings(plan, 4, count=5)
    epochs = _epochs(plan, encodings, length=1500)
    own = (np.full(d, 0.3), 0.9, 1)
    with_own = _totals(plan, epochs, [own])
    silent = _totals(plan, epochs, [(*own[:2], None)])
    alone = Versions(own[0][None, :], np.array([plan.centred(own[1])]), 1)
    for number, encoding in enumerate(encodings):
        expected = _rows(plan, encoding, number, alone, _looks_of(plan))[0]
        assert np.array_equal(with_own[number] - silent[number], expected)


def test_a_round_moves_no_more_releases_than_finite_precision_was_paid_for():
    """With a delta so small that finite precision takes a third of it."""
    plan = replace(_plan(), privacy=JointDP(1.0, 1e-10))
    epochs = _epochs(plan, _encodings(plan, 6, count=12), length=3)
    totals = [_totals(plan, epochs, [((0.5,), 1.0, when)]) for when in (2, 7)]
    moved = sum(change.any() for change in _whitened(plan, epochs, *totals))
    assert moved == 2 * len(FOUR_LOOKS)
    size = RewardEncoding.most_integers(plan.map)
    slack = moved * (1 + np.e) * size * SLACK_PER_INTEGER
    assert 0.3 < slack / plan.privacy.delta < 0.5
    assert GaussianPrivacy(plan.mu).delta(1.0) + slack <= plan.privacy.delta


def test_an_answer_is_in_the_releases_of_its_looks_and_in_no_other():
    plan = _plan()
    epochs = _epochs(plan, _encodings(plan, 7), length=3)
    silent = _totals(plan, epochs, [((0.5,), 1.0, None)])
    for when in range(EPOCHS):
        totals = _totals(plan, epochs, [((0.5,), 1.0, when)])
        moved = [change.any() for change in _whitened(plan, epochs, totals, silent)]
        seen = len(plan.looks_from(epochs[when].first))
        assert moved == [when <= number < when + seen for number in range(EPOCHS)]


# -- how far apart two answers may come


@given(unit, unit, unit)
def test_a_larger_residual_never_moves_a_release_less(a, more, e):
    larger = a + more * (1 - a)
    assert _f(larger, e) >= _f(a, e) * (1 - 1e-15)
    assert _f(e, larger) >= _f(e, a) * (1 - 1e-15)


def test_weights_above_one_are_refused_for_a_reason():
    """There a smaller residual can move a release more: the proof would not hold."""
    assert _f(0.5, 2.0) > _f(1.0, 2.0)
    with pytest.raises(InvalidArgument, match="looks"):
        check_looks((1.01,))


def _brute(looks):
    """The largest over all times of both answers and all residuals, in every release by itself."""
    shares = np.linspace(0.0, 1.0, 6)
    most, span = 0.0, 2 * len(looks)
    for first, second in itertools.product([0], [*range(len(looks) + 1), None]):
        total = 0.0
        for number in range(span):
            a, e = (
                looks[number - when] if when is not None and 0 <= number - when < len(looks) else 0
                for when in (first, second)
            )
            total += _f(*np.meshgrid(a * shares, e * shares)).max()
        most = max(most, total)
    return np.sqrt(most)


any_looks = st.lists(st.floats(1e-3, 1.0), min_size=1, max_size=MOST_LOOKS).map(tuple)


@given(accepted_looks(most=MOST_LOOKS) | any_looks)
def test_reach_is_the_largest_of_all_times_and_residuals(looks):
    assert reach(looks) == pytest.approx(_brute(looks), rel=1e-12)


@given(accepted_looks(most=MOST_LOOKS))
def test_what_is_accepted_reaches_no_further_than_one_whole_look(looks):
    assert _brute(looks) <= reach(ONE_LOOK) + 1e-11
    # The first epoch has one whole look, and its answer may come in a later one instead.
    assert _f(1.0, 0.0) + sum(_f(weight, 0.0) for weight in looks) <= 4 + 1e-11


@settings(max_examples=60)
@given(any_looks)
def test_what_is_refused_reaches_further(looks):
    """Answers at both ends of the width, to one action, at the worst times: measured."""
    try:
        check_looks(looks)
    except InvalidArgument:
        plan = PLANS[1.0, 1, "reward"]
        assume(reach(looks) > 2.001)
        encodings = _encodings(plan, 8, count=2 * len(looks))
        here, there = ((np.full((1, 1), 0.4), np.array([end])) for end in (-1.0, 1.0))
        found = max(
            _costs(plan, encodings, Versions(*here, 0), Versions(*there, apart), lambda _: looks)[0]
            for apart in range(len(looks) + 1)
        )
        assert np.sqrt(found) > plan.mu
