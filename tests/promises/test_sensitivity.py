"""An adversary looks for the two rounds that differ most, on the integers as encoded."""

from dataclasses import replace

import numpy as np
import pytest

from discreet.features.choose import choose
from discreet.features.kernels import Additive, Linear, Matern, Polynomial, SquaredExponential
from discreet.privacy.announced import AnnouncedEncoding
from discreet.privacy.clipping import Noise, Residual
from discreet.privacy.fourier import FourierEncoding
from discreet.privacy.gram import GramEncoding
from discreet.privacy.reward import RewardEncoding

MAPS = {
    "d=1": choose(SquaredExponential(0.2), widths=np.ones(1), error=1e-2),
    "d=1, Matern": choose(Matern(1.5, 0.2), widths=np.ones(1), error=3e-2),
    "d=2": choose(SquaredExponential(0.4), widths=np.ones(2), error=1e-2),
    "d=3": choose(SquaredExponential((0.6, 0.8, 1.0)), widths=np.ones(3), error=5e-2),
}
#: Vectors shorter than 1, or without a lattice.
OTHERS = {
    "hermite": choose(SquaredExponential(0.6), widths=np.ones(1), error=1e-2, method="hermite"),
    "linear": choose(Linear(), widths=np.ones(2)),
    "polynomial": choose(Polynomial(3, bias=0.5), widths=np.ones(2)),
    "additive": choose(Additive.over(SquaredExponential(0.4), 2), widths=np.ones(2), error=1e-2),
}
SETTINGS = [(1.0, 1.0, 0.3), (0.3, 0.25, 0.1), (2.5, 1 / 64, 1.0), (0.05, 0.6, 0.65)]
EVERY_ROUND = (GramEncoding, FourierEncoding, RewardEncoding)


def _fit(kind, features, mu, width, share, *, predicted):
    rng = np.random.default_rng(3)
    prediction = rng.standard_normal(features.dimension) / 4 * predicted
    return kind.fit(features, Residual(prediction, width), mu, share, 20_000)


def _rows(encoding, features, points, shares):
    """Rounds whose residuals are these shares of the width: beyond 1 they are clipped."""
    predicted = features(points) @ encoding.residual.prediction
    return encoding.encode(features, points, predicted + encoding.residual.width * shares)


def _changes(encoding, features, pairs, stds=None):
    """The whitened change of each pair; a pair is x, x', h / w, h' / w in one row."""
    d = features.inputs
    first = _rows(encoding, features, pairs[:, :d], pairs[:, 2 * d])
    second = _rows(encoding, features, pairs[:, d : 2 * d], pairs[:, 2 * d + 1])
    return _whitened(encoding, features, first - second, stds)


def _whitened(encoding, features, difference, stds=None):
    stds = encoding.stds(features) if stds is None else stds
    assert not difference[:, stds == 0].any(), "a protected round moves an integer without noise"
    return np.linalg.norm(difference[:, stds > 0] / stds[stds > 0], axis=1)


def _largest_change(encoding, features, *, starts=6000, keep=12, seed=0, stds=None):
    """Random pairs, residuals anywhere in the width, then ever smaller steps from the best."""
    rng = np.random.default_rng(seed)
    d = features.inputs

    def legal(pairs):
        pairs[:, : 2 * d] = np.clip(pairs[:, : 2 * d], 0.0, 1.0)
        if isinstance(encoding, AnnouncedEncoding):  # the action is public
            pairs[:, d : 2 * d] = pairs[:, :d]
        return pairs

    pairs = np.concatenate([rng.random((starts, 2 * d)), rng.uniform(-1, 1, (starts, 2))], axis=1)
    near = rng.random(starts) < 0.5  # half of the pairs are neighbours
    pairs[near, d : 2 * d] = pairs[near, :d] + rng.normal(0, 0.2, (near.sum(), d))
    pairs[::3, 2 * d :] = rng.choice([-1.0, 0.0, 1.0], pairs[::3, 2 * d :].shape)
    pairs[::7, 2 * d :] *= 3.0
    extreme = pairs[::49, 2 * d :]
    extreme[:] = rng.choice([-1.0, 1.0], extreme.shape) * np.array([np.inf, 1e300])
    pairs = legal(pairs)
    found = _changes(encoding, features, pairs, stds)
    for scale in np.geomspace(0.3, 1e-7, 24):
        best = pairs[np.argsort(found)[-keep:]]
        steps = scale * rng.standard_normal((20, *best.shape))
        pairs = legal(np.concatenate([best, (best + steps).reshape(-1, best.shape[1])]))
        found = _changes(encoding, features, pairs, stds)
    return float(found.max())


CASES = [
    *((kind, name, MAPS[name]) for name in MAPS for kind in (*EVERY_ROUND, AnnouncedEncoding)),
    *((kind, name, OTHERS[name]) for name in OTHERS for kind in (GramEncoding, RewardEncoding)),
]
IDS = [f"{kind.__name__}, {name}" for kind, name, _ in CASES]


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("predicted", [False, True], ids=["fixed", "residual"])
@pytest.mark.parametrize(("kind", "name", "features"), CASES, ids=IDS)
def test_no_two_rounds_are_further_apart_than_the_bound(kind, name, features, predicted, setting):
    mu, width, share = setting
    encoding = _fit(kind, features, mu, width, share, predicted=predicted)
    bound = encoding.bound(features)
    assert bound <= mu * (1 + 1e-12)
    found = _largest_change(encoding, features)
    assert found <= bound * (1 + 1e-12)
    if name in MAPS:  # the kernel takes the value `share` somewhere in these domains
        assert found >= 0.95 * mu


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize(("kind", "name", "features"), CASES, ids=IDS)
def test_silence_is_closer_to_a_round_than_the_bound(kind, name, features, setting):
    mu, width, share = setting
    encoding = _fit(kind, features, mu, width, share, predicted=True)
    # Two releases moved from or to zero by one late answer cost no more than one replaced round.
    assert _from_silence(encoding, features) <= np.sqrt(0.5) * encoding.bound(features) * (1 + 1e-9)


def _from_silence(encoding, features, stds=None):
    rng = np.random.default_rng(5)
    points, shares = rng.random((3000, features.inputs)), rng.uniform(-1.5, 1.5, 3000)
    rows = _rows(encoding, features, points, shares)
    return _whitened(encoding, features, rows, stds=stds).max()


# -- directions: any public matrix B, g = B phi / ||B phi||


def _directions(features):
    """Matrices an adversary may publish: few rows, equal rows, and rows of any scale."""
    m, rng = features.dimension, np.random.default_rng(11)
    some = rng.standard_normal((min(3, m), m))
    orthogonal = np.linalg.qr(rng.standard_normal((m, m)))[0]
    yield "one row", some[:1]
    yield "three rows", some
    yield "a basis", orthogonal
    yield "equal rows", np.repeat(some[:1], m, axis=0)
    yield "badly scaled", some * np.geomspace(1e-40, 1e40, m)
    yield "nothing seen", np.zeros((1, m))


ALONG = [
    (f"{name}, {label}", features, matrix)
    for name, features in (MAPS | OTHERS).items()
    for label, matrix in _directions(features)
]


@pytest.mark.parametrize("setting", SETTINGS[:3], ids=str)
@pytest.mark.parametrize(("name", "features", "matrix"), ALONG, ids=[case[0] for case in ALONG])
def test_no_directions_take_two_rounds_beyond_the_bound(name, features, matrix, setting):
    mu, width, share = setting
    encoding = _fit(RewardEncoding, features, mu, width, share, predicted=True)
    encoding = replace(encoding, directions=matrix)
    bound = encoding.bound(features)
    assert bound <= mu * (1 + 1e-12)
    found = _largest_change(encoding, features, starts=2000)
    assert found <= bound * (1 + 1e-12)
    assert _from_silence(encoding, features) <= np.sqrt(0.5) * bound * (1 + 1e-9)
    if matrix.any():
        assert found >= 0.95 * mu
    else:  # only the spread moves: 1 of 2
        assert found == pytest.approx(mu / 2, rel=1e-3)


# -- the proof


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("kind", [*EVERY_ROUND, AnnouncedEncoding])
@pytest.mark.parametrize("name", MAPS)
def test_the_whitened_change_is_what_the_proof_says(kind, name, setting):
    """D = h^2 - h'^2: 1 - c^2 + q |h phi - h' phi'|^2 + q^2 D^2 / 2, or |h g - h' g'|^2 + D^2."""
    mu, width, share = setting
    features, rng = MAPS[name], np.random.default_rng(2)
    encoding = _fit(kind, features, mu, width, share, predicted=True)
    here, there = rng.random((2, 200, features.inputs))
    if kind is AnnouncedEncoding:
        there = here
    h, other = rng.uniform(-1, 1, (2, 200))
    pairs = np.concatenate([here, there, h[:, None], other[:, None]], axis=1)
    phi, phi_there = features(here), features(there)
    c = np.sum(phi * phi_there, axis=1)
    cross, spread = h**2 + other**2 - 2 * h * other * c, (h**2 - other**2) ** 2
    if kind in (GramEncoding, FourierEncoding):
        expected = (1 - c**2 + share * (cross + share / 2 * spread)) * mu**2 / (1 + share) ** 2
    else:
        expected = (cross + spread) * mu**2 / 4
    fine = replace(encoding, bits=24 if kind is GramEncoding else 40)  # hardly any truncation
    assert np.allclose(_changes(fine, features, pairs) ** 2, expected, rtol=0, atol=1e-3 * mu**2)


GRID = np.linspace(-1, 1, 81)


@pytest.mark.parametrize("q", [1e-3, 0.1, 0.3, 0.65, 0.99, 1.0, 1.01, 2.0, 10.0, 1e3])
def test_the_largest_change_of_gram_and_fourier_is_where_the_proof_says(q):
    c, h, other = np.meshgrid(GRID, GRID, GRID, indexing="ij")
    free = min(q, 1.0) / 2
    found = 1 - c**2 + q * (h**2 + other**2 - 2 * h * other * c + free * (h**2 - other**2) ** 2)
    noise = Noise(1.0, 1.0 / np.sqrt(q))
    bound = GramEncoding(Residual(np.zeros(1), 1.0), noise, 20).bound(MAPS["d=1"])
    assert found.max() <= bound**2 * (1 + 1e-12)
    assert found.max() >= bound**2 * (1 - 1e-3)
    assert (0.5 + q * (h**2 + free * h**4)).max() <= bound**2 / 2 * (1 + 1e-12)  # silence


def test_the_largest_change_of_rewards_is_where_the_proof_says():
    h, other = np.meshgrid(np.linspace(0, 1, 2001), np.linspace(0, 1, 2001))
    found = (h + other) ** 2 + (h**2 - other**2) ** 2
    assert found.max() == found[-1, -1] == 4.0
    inner = np.ones_like(found, dtype=bool)
    inner[h + other > 1.9] = False
    assert found[inner].max() < 3.9  # the other corner, one residual 0, is well below
    u = np.linspace(0, 0.5, 10_001)
    assert (2 - 5 * u + 8 * u**2 - 4 * u**3).min() > 0.9


@pytest.mark.parametrize("q", [1.2, 3.0, 30.0])
@pytest.mark.parametrize("kind", [GramEncoding, FourierEncoding])
def test_more_noise_on_the_gram_than_is_of_use_is_bounded_as_well(kind, q):
    features, width = MAPS["d=2"], 0.5
    encoding = _fit(kind, features, 1.0, width, 1.0, predicted=True)
    gram = encoding.noise.gram
    encoding = replace(encoding, noise=Noise(gram, width * gram / np.sqrt(q)))
    bound = encoding.bound(features)
    assert bound == pytest.approx(2 * np.sqrt(q) / gram, rel=1e-4)
    found = _largest_change(encoding, features)
    assert 0.95 * bound <= found <= bound * (1 + 1e-12)
    assert _from_silence(encoding, features) <= np.sqrt(0.5) * bound * (1 + 1e-9)


# -- an adversary who is not blind


@pytest.mark.parametrize("kind", [*EVERY_ROUND, AnnouncedEncoding])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
def test_a_tenth_of_the_noise_on_the_spread_would_be_found(kind, setting):
    """By a replaced round, or by a late answer, which moves two releases from or to zero."""
    mu, width, share = setting
    features = MAPS["d=1"]
    encoding = _fit(kind, features, mu, width, share, predicted=True)
    stds = encoding.stds(features)
    stds[-1] /= 10
    replaced = _largest_change(encoding, features, stds=stds)
    late = np.sqrt(2) * _from_silence(encoding, features, stds=stds)
    assert max(replaced, late) > 1.01 * encoding.bound(features)


@pytest.mark.parametrize("kind", EVERY_ROUND)
def test_the_search_finds_noise_that_is_a_tenth_too_small(kind):
    """The adversary is not blind: what it finds exceeds the bound of a tenth less noise."""
    features = MAPS["d=2"]
    encoding = _fit(kind, features, 1.0, 0.5, 0.3, predicted=True)
    assert _largest_change(encoding, features) / 0.9 > encoding.bound(features)


@pytest.mark.parametrize("kind", [GramEncoding, FourierEncoding])
def test_the_worst_pair_has_the_share_as_its_kernel(kind):
    features, share = MAPS["d=1"], 0.4
    encoding = _fit(kind, features, 1.0, 0.5, share, predicted=False)
    second = np.linspace(0.0, 1.0, 2001)
    pairs = np.stack([np.zeros(2001), second, np.full(2001, 9.0), np.full(2001, -9.0)], axis=1)
    found = _changes(encoding, features, pairs)
    worst = pairs[np.argmax(found)]
    kernel = (features(worst[[0]][:, None]) @ features(worst[[1]][:, None]).T).item()
    assert kernel == pytest.approx(share, abs=0.01)
    assert found.max() == pytest.approx(1.0, rel=1e-3)


def test_a_late_answer_with_an_old_action_is_covered_as_well():
    """Reward rounds hide x too: opposite ends of the domain and of the width."""
    features = MAPS["d=1"]
    encoding = _fit(RewardEncoding, features, 0.8, 0.5, 1.0, predicted=True)
    grid = np.linspace(0, 1, 60)
    x, y = (axis.ravel() for axis in np.meshgrid(grid, grid))
    for signs in ((1, 1), (1, -1)):
        pairs = np.stack([x, y, np.full(3600, 9.0 * signs[0]), np.full(3600, 9.0 * signs[1])], 1)
        assert _changes(encoding, features, pairs).max() <= encoding.bound(features) * (1 + 1e-12)
