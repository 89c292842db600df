"""Encodings: exact on the integers, bounded for one round, linear to decode."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.errors import InvalidArgument
from discreet.features.choose import choose
from discreet.features.kernels import Additive, Linear, Matern, Polynomial, SquaredExponential
from discreet.privacy.announced import AnnouncedEncoding
from discreet.privacy.budget import Simulation
from discreet.privacy.clipping import MOST_ROUNDS, Residual, fixed_point
from discreet.privacy.directed import DirectedEncoding
from discreet.privacy.encodings import ENCODINGS
from discreet.privacy.fourier import FourierEncoding
from discreet.privacy.gram import GramEncoding, no_longer
from discreet.privacy.reward import RewardEncoding
from discreet.trusted.randomness import Seeded, integer_noise


def _map(kernel, d, **options):
    return choose(kernel, widths=np.ones(d), **{"error": 1e-2, **options})


GRIDS = {
    "d=1": _map(SquaredExponential(0.2), 1),
    "d=2": _map(SquaredExponential(0.4), 2),
    "d=2, anisotropic": _map(SquaredExponential((0.3, 0.9)), 2),
    "d=3": _map(SquaredExponential(0.8), 3),
    "d=3, anisotropic": _map(SquaredExponential((0.6, 1.0, 1.5)), 3),
    "Matern": _map(Matern(2.5, 0.8), 2),
}
OTHERS = {
    "hermite": _map(SquaredExponential(0.5), 2, method="hermite"),
    "random": _map(SquaredExponential(0.5), 2, method="random", error=0.9),
    "linear": _map(Linear(), 3),
    "polynomial": _map(Polynomial(3, bias=0.5), 2),
    "additive": _map(Additive.over(SquaredExponential(0.3), 3), 3),
}
ANYWHERE = {name: kind for name, kind in ENCODINGS.items() if name != "fourier"}
CASES = [
    *((kind, features) for features in GRIDS.values() for kind in ENCODINGS.values()),
    *((kind, features) for features in OTHERS.values() for kind in ANYWHERE.values()),
]
NAMES = [
    *(f"{kind}, {name}" for name in GRIDS for kind in ENCODINGS),
    *(f"{kind}, {name}" for name in OTHERS for kind in ANYWHERE),
]


def _fit(kind, features, *, mu=None, share=0.4, rounds=1000, width=1.0, prediction=None):
    prediction = np.zeros(features.dimension) if prediction is None else prediction
    return kind.fit(features, Residual(prediction, width), mu, share, rounds)


def _prediction(features, seed=1):
    return np.random.default_rng(seed).standard_normal(features.dimension) / 4


def _integers(encoding, features, points, rewards):
    """One row a round: what its ask and its answer add."""
    rows = encoding.encode(features, points, rewards)
    if isinstance(encoding, AnnouncedEncoding):
        rows = rows + encoding.announce(features, points)
    return rows


def _rounds(features, count, seed=0):
    rng = np.random.default_rng(seed)
    points = rng.random((count, features.inputs))
    points[: count // 4] = np.rint(points[: count // 4])  # corners too
    rewards = rng.uniform(-1, 1, count)
    rewards[::5] = np.sign(rewards[::5])
    return points, rewards


def _resolution(encoding):
    """How far one entry of one decoded round may be from the truth."""
    # Gram: two truncated factors, each at most 1. Fourier: half a sum of two moments, whose bits
    # are fewer by no more than their weight is smaller (w_i w_j <= 2 a).
    return 2.0 * 2.0**-encoding.bits + 1e-13


def _carried(encoding, phi):
    """What the residual of each round is multiplied by: phi, or g = B phi / ||B phi||."""
    return encoding.along(phi) if isinstance(encoding, RewardEncoding | DirectedEncoding) else phi


@pytest.mark.parametrize("mu", [None, 1.0])
@pytest.mark.parametrize(("kind", "features"), CASES, ids=NAMES)
def test_decoded_sums_are_the_true_moments_within_the_resolution(kind, features, mu):
    prediction = _prediction(features)
    encoding = _fit(kind, features, mu=mu, width=0.6, prediction=prediction)
    points, rewards = _rounds(features, 200)
    phi = features(points)
    residuals = np.clip(rewards - phi @ prediction, -0.6, 0.6)
    total = _integers(encoding, features, points, rewards).sum(axis=0)
    moments = encoding.decode(features, total, asks=200)
    allowed = 200 * _resolution(encoding)
    assert np.abs(moments.cross - _carried(encoding, phi).T @ residuals).max() <= allowed
    assert abs(moments.spread - residuals @ residuals) <= allowed
    if kind is RewardEncoding:
        assert moments.gram is None
    else:
        own = _carried(encoding, phi) if kind is DirectedEncoding else phi
        assert np.abs(moments.gram - own.T @ own).max() <= allowed
        assert np.array_equal(moments.gram, moments.gram.T)


@pytest.mark.parametrize("mu", [None, 1.0])
def test_the_total_of_a_gram_is_the_sum_of_its_rounds_to_the_last_bit(mu):
    for kind, features in CASES:
        if kind is GramEncoding:
            rounds = _rounds(features, 200)
            encoding = _fit(kind, features, mu=mu, prediction=_prediction(features))
            total = encoding.encode(features, *rounds).sum(axis=0)
            assert np.array_equal(encoding.total(features, *rounds), total)


@pytest.mark.parametrize(("kind", "features"), CASES, ids=NAMES)
def test_decoding_is_linear(kind, features):
    encoding = _fit(kind, features)
    rows = _integers(encoding, features, *_rounds(features, 30))
    whole = encoding.decode(features, rows.sum(axis=0), asks=30)
    parts = [encoding.decode(features, row, asks=1) for row in rows]
    assert np.allclose(whole.cross, sum(part.cross for part in parts), rtol=0, atol=1e-12)
    assert whole.spread == pytest.approx(sum(part.spread for part in parts), rel=0, abs=1e-12)
    if whole.gram is not None:
        assert np.allclose(whole.gram, sum(part.gram for part in parts), rtol=0, atol=1e-12)


@pytest.mark.parametrize("mu", [None, 0.3])
@pytest.mark.parametrize(("kind", "features"), CASES, ids=NAMES)
def test_one_round_has_the_stated_size_and_no_entry_above_the_largest(kind, features, mu):
    encoding = _fit(kind, features, mu=mu, rounds=1)
    assert encoding.size(features) <= kind.most_integers(features)
    for rows in (
        encoding.encode(features, *_rounds(features, 400)),
        _integers(encoding, features, *_rounds(features, 400)),
    ):
        assert rows.dtype == np.int64
        assert rows.shape == (400, encoding.size(features))
        assert np.abs(rows).max() <= encoding.largest
    assert encoding.stds(features).shape == (encoding.size(features),)


@pytest.mark.parametrize(("kind", "features"), CASES, ids=NAMES)
def test_rounds_one_by_one_are_the_batch_byte_for_byte(kind, features):
    encoding = _fit(kind, features, mu=1.0, width=0.5, prediction=_prediction(features))
    points, rewards = _rounds(features, 203)
    batch = _integers(encoding, features, points, rewards)
    single = [_integers(encoding, features, points[[i]], rewards[[i]]) for i in range(203)]
    assert np.concatenate(single).tobytes() == batch.tobytes()
    backwards = _integers(encoding, features, points[::-1], rewards[::-1])
    assert backwards[::-1].tobytes() == batch.tobytes()


@pytest.mark.parametrize("features", [*GRIDS.values(), *OTHERS.values()], ids=[*GRIDS, *OTHERS])
def test_the_integers_of_one_round_stay_in_the_unit_ball(features):
    points, rewards = _rounds(features, 1000)
    one = np.ones(len(points))
    for bits in (8, 20, 26):
        # Row sums of Python integers: exact.
        phi = fixed_point(features(points), bits).astype(object)
        assert max((phi * phi).sum(axis=1)) <= (1 << bits) ** 2
    for rounds in (1000, MOST_ROUNDS):
        encoding = _fit(RewardEncoding, features, rounds=rounds)
        cross = encoding.encode(features, points, one)[:, :-1].astype(object)
        assert max((cross * cross).sum(axis=1)) <= encoding.largest**2
    assert np.abs(fixed_point(rewards, 26)).max() <= 1 << 26


# -- the spread


@pytest.mark.parametrize(("kind", "features"), CASES, ids=NAMES)
def test_the_spread_is_the_last_integer_and_does_not_know_the_action(kind, features):
    encoding = _fit(kind, features, mu=1.0, width=0.6)
    points, rewards = _rounds(features, 100)
    elsewhere = points[::-1]
    here, there = (encoding.encode(features, x, rewards)[:, -1] for x in (points, elsewhere))
    assert np.array_equal(here, there)
    assert np.array_equal(here, encoding.encode(features, points, -rewards)[:, -1])
    assert here.min() >= 0
    in_squares = kind in (GramEncoding, DirectedEncoding)
    most = 1.0 if kind is DirectedEncoding else 0.36  # it is in units of the width
    assert here.max() <= np.ldexp(most, 2 * encoding.bits if in_squares else encoding.bits)


@pytest.mark.parametrize("mu", [None, 0.3, 5.0])
@pytest.mark.parametrize(("kind", "features"), CASES, ids=NAMES)
def test_the_spread_is_exact_for_gram_and_otherwise_low_by_less_than_an_integer(kind, features, mu):
    prediction = _prediction(features)
    encoding = _fit(kind, features, mu=mu, width=0.3, prediction=prediction)
    points, rewards = _rounds(features, 300)
    residuals = encoding.residual.of(features(points), rewards)
    total = _integers(encoding, features, points, rewards).sum(axis=0)
    found = encoding.decode(features, total, asks=300).spread
    if kind is GramEncoding:  # of the residuals on the lattice, in Python integers
        fixed = fixed_point(residuals, encoding.bits).astype(object)
        assert total[-1] == (fixed * fixed).sum()
        assert found == np.ldexp(float(total[-1]), -2 * encoding.bits)
        residuals = np.ldexp(fixed.astype(float), -encoding.bits)
        assert found == pytest.approx(residuals @ residuals, rel=1e-12)
    else:
        exact = float(residuals @ residuals)
        assert exact - 300 * 2.0**-encoding.bits - 1e-12 <= found <= exact + 1e-12


@pytest.mark.parametrize("kind", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("width", [1.0, 0.25, 1 / 64])
def test_the_spread_gets_noise_in_proportion_to_that_of_cross(kind, width):
    features = GRIDS["d=1"]
    encoding = _fit(kind, features, mu=0.7, width=width)
    stds = encoding.stds(features)
    q = (width * encoding.noise.gram / encoding.noise.cross) ** 2
    more = 1.0 if kind in (RewardEncoding, AnnouncedEncoding) else np.sqrt(2.0 / q)
    unit = 1.0 if kind is DirectedEncoding else width
    assert stds[-1] == pytest.approx(unit * more * stds[-2], rel=1e-12)


@pytest.mark.parametrize("kind", ENCODINGS.values(), ids=ENCODINGS)
def test_decoded_spread_is_unbiased_with_the_stated_noise(kind):
    """False-alarm rate below 1e-6: a two-sided test of mean and variance at 1e-8 each."""
    features, draws = GRIDS["d=1"], 4000
    encoding = _fit(kind, features, mu=0.7, width=0.5)
    points, rewards = _rounds(features, 50)
    total = _integers(encoding, features, points, rewards).sum(axis=0)
    truth = float(np.sum(encoding.residual.of(features(points), rewards) ** 2))
    stds, bits = encoding.stds(features), Seeded(Simulation(5), 0)
    stated = encoding.noise.spread(0.5)
    found = [
        encoding.decode(features, total + integer_noise(stds, bits=bits), asks=50).spread
        for _ in range(draws)
    ]
    white = (np.array(found) - truth) / stated / np.sqrt(1 + 2.0**-8)
    assert 2 * stats.norm.sf(abs(white.mean()) * draws**0.5) > 1e-8
    assert 5e-9 < stats.chi2.cdf(white @ white, draws) < 1 - 5e-9


# -- directions


def _directions(features, count, seed=7):
    """Any matrix will do: badly scaled, with rows that are nearly equal."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((count, features.dimension))
    matrix *= np.geomspace(1e-6, 1e3, features.dimension)
    matrix[-1] = matrix[0] * (1 + 1e-9) + 1e-9 * rng.standard_normal(features.dimension)
    return matrix


EVERYWHERE = GRIDS | OTHERS


def _along(features, *, count=3, **options):
    encoding = _fit(RewardEncoding, features, **options)
    return replace(encoding, directions=_directions(features, count))


@pytest.mark.parametrize("features", EVERYWHERE.values(), ids=EVERYWHERE)
def test_directions_carry_a_residual_along_a_unit_vector(features):
    prediction = _prediction(features)
    encoding = _along(features, mu=1.0, width=0.6, prediction=prediction)
    points, rewards = _rounds(features, 200)
    phi = features(points)
    seen = phi @ encoding.directions.T
    g = seen / np.linalg.norm(seen, axis=1, keepdims=True)
    assert np.allclose(encoding.along(phi), g, rtol=0, atol=1e-12)
    residuals = np.clip(rewards - phi @ prediction, -0.6, 0.6)
    rows = encoding.encode(features, points, rewards)
    assert rows.shape == (200, encoding.size(features)) == (200, 4)
    assert encoding.stds(features).shape == (4,)
    assert encoding.bound(features) == _fit(RewardEncoding, features, mu=1, width=0.6).bound(
        features
    )
    moments = encoding.decode(features, rows.sum(axis=0), asks=200)
    assert moments.gram is None
    assert np.abs(moments.cross - g.T @ residuals).max() <= 200 * _resolution(encoding)
    assert abs(moments.spread - residuals @ residuals) <= 200 * _resolution(encoding)


@pytest.mark.parametrize("features", EVERYWHERE.values(), ids=EVERYWHERE)
def test_rounds_along_directions_are_the_batch_byte_for_byte(features):
    encoding = _along(features, mu=1.0, width=0.5, prediction=_prediction(features))
    # As many integers as a double has bits: whatever depends on the batch would show.
    encoding = replace(encoding, bits=52)
    points, rewards = _rounds(features, 203)
    batch = encoding.encode(features, points, rewards)
    single = [encoding.encode(features, points[[i]], rewards[[i]]) for i in range(203)]
    assert np.concatenate(single).tobytes() == batch.tobytes()


def test_only_the_ratios_of_directions_matter():
    features = GRIDS["d=2"]
    encoding = _along(features, mu=1.0)
    points, rewards = _rounds(features, 100)
    expected = encoding.encode(features, points, rewards)
    for scale in (2.0**-300, 2.0**20, 2.0**300):
        scaled = replace(encoding, directions=scale * encoding.directions)
        assert np.array_equal(scaled.encode(features, points, rewards), expected)


@pytest.mark.parametrize("scale", [0.0, 1e-320, 1e-200, 1e-150, 1e-140, 1e99])
def test_no_scale_of_the_directions_makes_a_round_longer_than_its_residual(scale):
    features = GRIDS["d=2"]
    encoding = _fit(RewardEncoding, features, mu=1.0)
    matrix = np.random.default_rng(0).standard_normal((3, features.dimension))
    matrix /= np.abs(matrix).max()
    encoding = replace(encoding, directions=scale * matrix)
    points, _ = _rounds(features, 500)
    g = encoding.along(features(points))
    assert np.isfinite(g).all()
    assert np.linalg.norm(g, axis=1).max() <= 1 + 1e-12
    cross = encoding.encode(features, points, np.ones(500))[:, :-1].astype(object)
    assert max((cross * cross).sum(axis=1)) <= encoding.largest**2


def test_a_round_that_the_directions_do_not_see_adds_only_to_the_spread():
    features = _map(Linear(), 2)
    encoding = replace(
        _fit(RewardEncoding, features, mu=1.0), directions=np.zeros((1, features.dimension))
    )
    (row,) = encoding.encode(features, np.array([[0.3, 0.4]]), np.array([0.5]))
    assert row.tolist() == [0, encoding.largest // 4]


@pytest.mark.parametrize(
    "directions",
    [
        lambda m: np.zeros(m),
        lambda m: np.zeros((0, m)),
        lambda m: np.eye(m)[:, 1:],
        lambda m: np.ones((m + 1, m)),
        lambda m: np.full((1, m), np.nan),
        lambda m: np.full((1, m), np.inf),
        lambda m: np.full((1, m), -1e308),
    ],
    ids=["vector", "none", "narrow", "too many", "nan", "infinite", "overflowing"],
)
def test_directions_that_privacy_cannot_rest_on_are_refused(directions):
    features = GRIDS["d=1"]
    encoding = _fit(RewardEncoding, features, mu=1.0)
    with pytest.raises(InvalidArgument, match="directions"):
        replace(encoding, directions=directions(features.dimension))


def test_directions_cannot_be_changed_afterwards():
    features = GRIDS["d=1"]
    given_matrix = _directions(features, 2)
    encoding = replace(_fit(RewardEncoding, features, mu=1.0), directions=given_matrix)
    before = encoding.directions.copy()
    given_matrix[:] = 0.0
    assert np.array_equal(encoding.directions, before)
    with pytest.raises(ValueError, match="read-only"):
        encoding.directions[0, 0] = 1.0


# -- lengths, widths and noise


@pytest.mark.parametrize("bits", [1, 2, 5, 9])
def test_coarse_gram_rounds_stay_in_the_unit_ball(bits):
    for features in (*GRIDS.values(), *OTHERS.values()):
        encoding = GramEncoding(Residual(np.zeros(features.dimension), 1.0), None, bits)
        points, rewards = _rounds(features, 200)
        m = features.dimension
        diagonal = np.cumsum(np.r_[0, np.arange(m, 1, -1)])
        rows = encoding.encode(features, points, rewards)
        assert rows[:, diagonal].sum(axis=1).max() <= encoding.largest


def test_a_vector_that_rounding_made_too_long_is_shortened():
    unit = 1 << 26
    vectors = np.array([[unit, 1, 0], [unit, 0, 0], [-unit, 0, -1], [3, -4, 0]])
    shortened = [[unit - 1, 0, 0], [unit, 0, 0], [1 - unit, 0, 0], [3, -4, 0]]
    assert no_longer(vectors, 1 << 52).tolist() == shortened


@pytest.mark.parametrize("kind", ENCODINGS.values(), ids=ENCODINGS)
@pytest.mark.parametrize("width", [1.0, 0.25])
def test_a_residual_beyond_the_width_counts_as_the_width(kind, width):
    features = GRIDS["d=1"]
    encoding = _fit(kind, features, mu=1.0, width=width)
    point = np.array([[0.3]])
    for sign in (-1.0, 1.0):
        edge, *beyond = (
            encoding.encode(features, point, np.array([sign * reward]))
            for reward in (width, width + 1e-9, 1e300, np.inf)
        )
        assert all(np.array_equal(edge, each) for each in beyond)


@given(
    rounds=st.one_of(
        st.integers(1, MOST_ROUNDS),
        st.sampled_from([1 << k for k in range(MOST_ROUNDS.bit_length())]),
    ),
    mu=st.one_of(st.none(), st.floats(1e-3, 20.0)),
    width=st.floats(1 / 64, 1.0),
    share=st.sampled_from([0.1, 0.3, 1.0]),
)
def test_the_largest_possible_sums_and_their_noise_fit_64_bits(rounds, mu, width, share):
    features = GRIDS["d=1"]
    for kind in ENCODINGS.values():
        encoding = _fit(kind, features, mu=mu, share=share, rounds=rounds, width=width)
        assert encoding.bits >= 6
        assert rounds * encoding.largest + 10 * encoding.stds(features).max() < 2**63


@pytest.mark.parametrize("kind", ENCODINGS.values(), ids=ENCODINGS)
def test_more_rounds_than_sums_can_hold_are_refused(kind):
    with pytest.raises(InvalidArgument, match="rounds"):
        _fit(kind, GRIDS["d=1"], rounds=MOST_ROUNDS + 1)


@pytest.mark.parametrize("kind", ENCODINGS.values(), ids=ENCODINGS)
def test_no_mu_means_no_noise(kind):
    assert not _fit(kind, GRIDS["d=1"]).stds(GRIDS["d=1"]).any()


@pytest.mark.parametrize(("kind", "features"), CASES, ids=NAMES)
def test_the_noise_costs_the_mu_it_was_fit_for(kind, features):
    for mu, width, share in ((0.01, 1.0, 0.1), (0.5, 0.3, 1.0), (7.0, 1 / 64, 0.3)):
        encoding = _fit(kind, features, mu=mu, width=width, share=share)
        assert encoding.bound(features) == pytest.approx(mu, rel=1e-9)


@pytest.mark.parametrize(("kind", "features"), CASES, ids=NAMES)
def test_twice_the_mu_is_half_the_noise(kind, features):
    once, twice = (_fit(kind, features, mu=mu, width=0.5) for mu in (0.4, 0.8))
    # Twice the mu also takes a bit more, up to one for each factor: compare decoded noise.
    for name in ("gram", "cross"):
        assert getattr(once.noise, name) == pytest.approx(2 * getattr(twice.noise, name), rel=1e-3)
    scale = 2.0 ** ((twice.bits - once.bits) * (2 if kind is GramEncoding else 1))
    assert np.allclose(once.stds(features) * scale, 2 * twice.stds(features), rtol=1e-3, atol=0)


def test_announced_asks_have_no_reward_and_answers_no_action():
    features = GRIDS["d=2"]
    encoding = _fit(AnnouncedEncoding, features, mu=1.0)
    points, rewards = _rounds(features, 20)
    private = features.dimension + 1  # cross, and the spread
    assert not encoding.announce(features, points)[:, -private:].any()
    assert not encoding.encode(features, points, rewards)[:, :-private].any()
    assert not encoding.stds(features)[:-private].any()
    assert encoding.stds(features)[-private:].all()


@pytest.mark.parametrize("mu", [0.002, 0.2, 3.0])
def test_announced_actions_are_exact_however_much_noise_rewards_get(mu):
    features = _map(SquaredExponential(0.1), 2, error=1e-3)
    encoding = _fit(AnnouncedEncoding, features, mu=mu, rounds=20_000)
    points, _ = _rounds(features, 50)
    phi = features(points)
    total = encoding.announce(features, points).sum(axis=0)
    gram = encoding.decode(features, total, asks=50).gram
    # A round's resolution is far below the noise of one release.
    assert np.abs(gram - phi.T @ phi).max() <= 50 * encoding.noise.cross * 2.0**-26


@pytest.mark.parametrize("mu", [0.002, 0.2, 3.0])
@pytest.mark.parametrize("kind", [FourierEncoding, RewardEncoding, AnnouncedEncoding])
def test_truncation_is_lost_in_the_noise_of_a_million_rounds(kind, mu):
    features = GRIDS["d=2"]
    encoding = _fit(kind, features, mu=mu, rounds=2_000_000)
    noisy = encoding.stds(features)
    assert noisy[noisy > 0].min() > 1_000_000


@pytest.mark.parametrize("mu", [0.002, 0.2, 3.0])
@pytest.mark.parametrize("kind", [FourierEncoding, RewardEncoding, AnnouncedEncoding])
def test_noise_is_enlarged_for_truncation_and_hardly(kind, mu):
    features, width, share = GRIDS["d=2"], 0.3, 0.4
    encoding = _fit(kind, features, mu=mu, width=width, share=share)
    ideal = (
        (1 + share) * width / (np.sqrt(share) * mu) if kind is FourierEncoding else 2 * width / mu
    )
    excess = encoding.noise.cross / ideal - 1
    # The spread of two rounds is truncated by up to an integer: this much has to be in it.
    assert 1 / encoding.stds(features)[-1] < excess * mu < 1e-3 * mu


@settings(max_examples=50)
@given(bits=st.integers(1, 40), values=st.lists(st.floats(-1, 1), min_size=1))
def test_fixed_point_rounds_toward_zero_by_less_than_one_step(bits, values):
    given_values = np.array(values)
    back = np.ldexp(fixed_point(given_values, bits).astype(float), -bits)
    assert (np.abs(back) <= np.abs(given_values)).all()
    assert (np.abs(given_values - back) < 2.0**-bits).all()
    assert (back * given_values >= 0).all()


@pytest.mark.parametrize("features", OTHERS.values(), ids=OTHERS)
def test_fourier_refuses_maps_without_a_lattice(features):
    with pytest.raises(InvalidArgument, match="grid features for 'fourier'"):
        _fit(FourierEncoding, features, mu=1.0)
    encoding = _fit(FourierEncoding, GRIDS["d=1"])
    with pytest.raises(InvalidArgument, match="grid features for 'fourier'"):
        encoding.size(features)
    with pytest.raises(InvalidArgument, match="gram"):
        encoding.encode(features, np.zeros((1, features.inputs)), np.zeros(1))


@pytest.fixture(scope="module")
def fine():
    """The features of the bar: d = 2, lengthscale 0.1 on the unit square, error 1e-4."""
    return _map(SquaredExponential(0.1), 2, error=1e-4)


def test_fourier_takes_a_twenty_fifth_of_the_integers_of_gram(fine):
    gram, fourier = (
        _fit(kind, fine, mu=1.0).size(fine) for kind in (GramEncoding, FourierEncoding)
    )
    print(f"m = {fine.dimension}: gram {gram}, fourier {fourier}, {gram / fourier:.1f} times")
    assert gram >= 25 * fourier


def test_fourier_noise_on_the_gram_is_a_third_at_the_same_privacy(fine):
    medians = {}
    for kind in (GramEncoding, FourierEncoding):
        encoding = _fit(kind, fine, mu=1.0)
        bits, stds = Seeded(Simulation(1), 0), encoding.stds(fine)
        norms = []
        for _ in range(20):
            noise = integer_noise(stds, bits=bits)
            norms.append(np.linalg.norm(encoding.decode(fine, noise, asks=0).gram, 2))
        medians[kind] = float(np.median(norms))
    ratio = medians[GramEncoding] / medians[FourierEncoding]
    print(f"median spectral norm of the noise: {list(medians.values())}, {ratio:.2f} times less")
    assert ratio >= 3.0


@pytest.mark.parametrize("kind", [GramEncoding, FourierEncoding])
@pytest.mark.parametrize("name", ["d=1", "d=2, anisotropic", "d=3"])
def test_the_stated_gram_noise_is_that_of_decoded_draws(kind, name):
    """False-alarm rate below 1e-6: a two-sided chi-squared test at 1e-11 for each entry."""
    features = GRIDS[name]
    encoding = _fit(kind, features, mu=0.7, width=0.5)
    stds, bits, draws = encoding.stds(features), Seeded(Simulation(2), 0), 400
    squares = np.zeros((features.dimension, features.dimension))
    for _ in range(draws):
        noise = integer_noise(stds, bits=bits)
        squares += encoding.decode(features, noise, asks=0).gram ** 2
    stated = encoding.gram_noise(features, stds**2)
    exact = stated == 0  # the product of the constant feature with itself counts asks
    assert exact.sum() == (kind is FourierEncoding)
    assert not squares[exact].any()
    ratio = squares[~exact] / stated[~exact]
    assert ratio.size < 7_000
    assert stats.chi2.cdf(ratio, draws).min() > 1e-11
    assert stats.chi2.sf(ratio, draws).min() > 1e-11


def test_encodings_without_gram_noise_say_so():
    features = GRIDS["d=1"]
    for kind in (RewardEncoding, AnnouncedEncoding):
        encoding = _fit(kind, features, mu=1.0)
        assert not encoding.gram_noise(features, encoding.stds(features) ** 2).any()


def test_the_zero_moment_of_fourier_is_the_public_number_of_asks():
    features = GRIDS["d=2"]
    encoding = _fit(FourierEncoding, features, mu=1.0)
    blank = np.zeros(encoding.size(features), dtype=np.int64)
    gram = encoding.decode(features, blank, asks=37).gram
    # cos^2 + sin^2 = 1: the trace is the number of asks, whatever was answered.
    assert np.trace(gram) == pytest.approx(37.0, rel=1e-12)
