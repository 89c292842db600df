"""A context leaves few functions, and their combinations are the features."""

import numpy as np
import pytest

from discreet.features.given import rest_of
from discreet.features.maps import (
    AdditiveFeatures,
    FeaturePart,
    FourierFeatures,
    PolynomialFeatures,
)

#: One of each two opposite frequencies, the zero first.
LATTICE = [[0, 0], [0, 2], [1.5, -2], [1.5, 0], [1.5, 2], [3, -2], [3, 0], [3, 2]]
WAVES = FourierFeatures(np.array(LATTICE, dtype=float), np.full(8, 0.125), error_bound=1.0)
RANDOM = FourierFeatures(
    np.random.Generator(np.random.Philox(1)).normal(size=(5, 3)), np.full(5, 0.2), 1.0
)
LINE = FourierFeatures(np.array([[0.0], [2.0], [4.0]]), np.array([0.5, 0.25, 0.25]), 1.0)
MAPS = {
    "lattice": WAVES,
    "random": RANDOM,
    "polynomial": PolynomialFeatures(3, 0.7, 3),
    "without a bias": PolynomialFeatures(2, 0.0, 2),
    "additive": AdditiveFeatures(
        (
            FeaturePart(LINE, (0,), 0.3),
            FeaturePart(LINE, (1,), 0.3),
            FeaturePart(PolynomialFeatures(2, 1.0, 2), (1, 2), 0.4),
        ),
        inputs=3,
    ),
}


@pytest.mark.parametrize("name", MAPS)
@pytest.mark.parametrize("free", [(0,), (1,), (0, 1), ()])
def test_the_combinations_of_what_is_left_are_the_features(name, free):
    features = MAPS[name]
    rng = np.random.Generator(np.random.Philox(2))
    points = rng.random((7, features.inputs))
    rest = rest_of(features, free)
    combined, psi = rest.combinations(points), rest.psi(points)
    assert combined.shape == (7, features.dimension, rest.dimension)
    assert np.array_equal(psi[:, 0], np.ones(7))
    found = (combined @ psi[:, :, None])[:, :, 0]
    assert np.abs(found - features(points)).max() < 1e-14


@pytest.mark.parametrize("name", MAPS)
def test_psi_does_not_look_at_what_is_given_nor_combinations_at_the_rest(name):
    features = MAPS[name]
    rng = np.random.Generator(np.random.Philox(3))
    one, other = rng.random((2, 4, features.inputs))
    mixed = np.concatenate([one[:, :1], other[:, 1:]], axis=1)
    rest = rest_of(features, (0,))
    assert np.array_equal(rest.psi(one), rest.psi(mixed))
    assert np.array_equal(rest.combinations(other), rest.combinations(mixed))


@pytest.mark.parametrize("name", MAPS)
def test_a_row_does_not_depend_on_the_rows_beside_it(name):
    features = MAPS[name]
    points = np.random.Generator(np.random.Philox(4)).random((9, features.inputs))
    rest = rest_of(features, (1,))
    for i in range(9):
        assert np.array_equal(rest.psi(points)[i], rest.psi(points[[i]])[0])
        assert np.array_equal(rest.combinations(points)[i], rest.combinations(points[[i]])[0])


def test_a_lattice_leaves_few_functions():
    assert rest_of(WAVES, (0,)).dimension == 5 < WAVES.dimension
    assert rest_of(MAPS["additive"], (0,)).dimension == 5
