"""An adversary looks for the two rounds that differ most, on the integers as encoded."""

import numpy as np
import pytest

from discreet.encodings import (
    AnnouncedEncoding,
    FourierEncoding,
    GramEncoding,
    RewardEncoding,
)
from discreet.features import choose
from discreet.kernels import Additive, Linear, Matern, Polynomial, SquaredExponential
from discreet.residuals import Residual

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


def _changes(encoding, features, pairs):
    """The whitened change of each pair; a pair is x, x', y, y' in one row."""
    d = features.inputs
    first = encoding.encode(features, pairs[:, :d], pairs[:, 2 * d])
    second = encoding.encode(features, pairs[:, d : 2 * d], pairs[:, 2 * d + 1])
    return _whitened(encoding, features, first - second)


def _whitened(encoding, features, difference):
    stds = encoding.stds(features)
    assert not difference[:, stds == 0].any(), "a protected round moves an integer without noise"
    return np.linalg.norm(difference[:, stds > 0] / stds[stds > 0], axis=1)


def _largest_change(encoding, features, *, same_point=False, starts=6000, keep=12, seed=0):
    """Random pairs, then ever smaller steps from the best of them."""
    rng = np.random.default_rng(seed)
    d = features.inputs

    def legal(pairs):
        pairs[:, : 2 * d] = np.clip(pairs[:, : 2 * d], 0.0, 1.0)
        if same_point:
            pairs[:, d : 2 * d] = pairs[:, :d]
        return pairs

    pairs = np.concatenate([rng.random((starts, 2 * d)), rng.uniform(-3, 3, (starts, 2))], axis=1)
    near = rng.random(starts) < 0.5  # half of the pairs are neighbours
    pairs[near, d : 2 * d] = pairs[near, :d] + rng.normal(0, 0.2, (near.sum(), d))
    pairs[::7, 2 * d :] = np.sign(pairs[::7, 2 * d :]) * np.array([np.inf, 1e300])
    pairs = legal(pairs)
    found = _changes(encoding, features, pairs)
    for scale in np.geomspace(0.3, 1e-7, 24):
        best = pairs[np.argsort(found)[-keep:]]
        steps = scale * rng.standard_normal((20, *best.shape))
        pairs = legal(np.concatenate([best, (best + steps).reshape(-1, best.shape[1])]))
        found = _changes(encoding, features, pairs)
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
    found = _largest_change(encoding, features, same_point=kind is AnnouncedEncoding)
    assert found <= bound * (1 + 1e-12)
    if name in MAPS:  # the kernel takes the value `share` somewhere in these domains
        assert found >= 0.95 * mu


@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize(("kind", "name", "features"), CASES, ids=IDS)
def test_silence_is_closer_to_a_round_than_the_bound(kind, name, features, setting):
    mu, width, share = setting
    encoding = _fit(kind, features, mu, width, share, predicted=True)
    rng = np.random.default_rng(5)
    points, rewards = rng.random((2000, features.inputs)), 3 * rng.choice([-1.0, 1.0], 2000)
    rows = encoding.encode(features, points, rewards)
    assert _whitened(encoding, features, rows).max() <= encoding.bound(features) * (1 + 1e-12)


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
