"""The difference grid against brute force: products of features, autocorrelation, positions."""

import numpy as np
import pytest

from discreet.errors import InvalidArgument
from discreet.features.choose import choose
from discreet.features.difference_grid import difference_grid
from discreet.features.fourier import FourierFeatures
from discreet.features.kernels import Matern, Polynomial, SquaredExponential


def _without_zero():
    """A lattice whose half does not contain the zero frequency."""
    indices = np.array([[1], [2], [4]])
    return FourierFeatures(indices * 0.7, np.array([0.5, 0.3, 0.2]), 1.0, indices, (0.7,))


MAPS = {
    "d=1": choose(SquaredExponential(0.2), widths=np.ones(1), error=1e-2),
    "d=2": choose(SquaredExponential((0.4, 0.9)), widths=np.ones(2), error=1e-2),
    "d=3": choose(SquaredExponential(0.9), widths=np.ones(3), error=5e-2),
    "Matern": choose(Matern(2.5, 0.8), widths=np.ones(2), error=5e-2),
    "without zero": _without_zero(),
}
each_map = pytest.mark.parametrize("features", MAPS.values(), ids=MAPS)


def _full_lattice(features):
    """Every frequency with its weight, as a dictionary from indices."""
    full = {}
    for index, weight in zip(features.indices.tolist(), features.weights, strict=True):
        if any(index):
            full[tuple(index)] = full[tuple(-i for i in index)] = weight / 2
        else:
            full[tuple(index)] = weight
    return full


@each_map
def test_the_gram_matrix_comes_back_from_its_moments(features):
    grid = difference_grid(features)
    points = np.random.default_rng(0).random((50, features.inputs))
    waves = grid.waves(points)
    cosines = np.concatenate([[50.0], waves[0].sum(axis=0)])
    sines = np.concatenate([[0.0], waves[1].sum(axis=0)])
    phi = features(points)
    assert np.allclose(grid.gram(cosines, sines), phi.T @ phi, rtol=0, atol=1e-11)


@each_map
def test_the_autocorrelation_is_that_of_the_whole_lattice(features):
    grid, full = difference_grid(features), _full_lattice(features)
    expected = {}
    for n, weight in full.items():
        for k, other in full.items():
            eta = tuple(a - b for a, b in zip(n, k, strict=True))
            expected[eta] = expected.get(eta, 0.0) + weight * other
    indices = np.rint(grid.frequencies / np.array(features.spacing)).astype(int)
    found = [expected[tuple(index)] for index in indices.tolist()]
    assert np.allclose(grid.autocorrelation, found, rtol=1e-12, atol=0)
    # One of each pair, and nothing but zero is left out.
    assert 2 * len(indices) + 1 == len(expected)
    zero = expected[(0,) * features.inputs]
    assert 2 * grid.autocorrelation.sum() + zero == pytest.approx(1.0, rel=1e-12)


@each_map
def test_the_squared_kernel_is_the_transform_of_the_autocorrelation(features):
    grid = difference_grid(features)
    rng = np.random.default_rng(1)
    x, y = rng.random((2, 200, features.inputs))
    kernel = np.sum(features(x) * features(y), axis=1)
    waves = 2 * (1 - grid.waves(x - y)[0])  # |e^{i eta x} - e^{i eta y}|^2
    assert np.allclose(waves @ grid.autocorrelation, 1 - kernel**2, rtol=0, atol=1e-12)


@each_map
def test_entry_variances_are_those_of_the_linear_map(features):
    """Exactly: the gram matrix is linear in the moments, column by column."""
    grid = difference_grid(features)
    r = len(grid.frequencies)
    variances = np.random.default_rng(2).uniform(0.5, 2.0, r)
    expected = np.zeros((features.dimension, features.dimension))
    for position in range(r):
        unit = np.zeros(r + 1)
        unit[position + 1] = np.sqrt(variances[position])
        expected += grid.gram(unit, np.zeros(r + 1)) ** 2 + grid.gram(np.zeros(r + 1), unit) ** 2
    assert np.allclose(grid.entry_variance(variances), expected, rtol=1e-12, atol=1e-15)


@each_map
def test_one_of_each_pair_is_kept(features):
    frequencies = difference_grid(features).frequencies
    assert frequencies.any(axis=1).all()
    first = [row[row != 0][0] for row in frequencies]
    assert min(first) > 0
    assert len(np.unique(frequencies, axis=0)) == len(frequencies)


@each_map
def test_waves_of_a_row_do_not_depend_on_the_others(features):
    grid = difference_grid(features)
    points = np.random.default_rng(3).random((33, features.inputs))
    batch = np.stack(grid.waves(points))
    single = np.concatenate([np.stack(grid.waves(points[[i]])) for i in range(33)], axis=1)
    assert batch.tobytes() == single.tobytes()


def test_the_noise_on_the_gram_is_never_more_than_that_of_gram_itself():
    """The projection of GOE noise onto the Toeplitz subspace: its expected squared norm."""
    for features in MAPS.values():
        grid, m = difference_grid(features), features.dimension
        total = grid.entry_variance(1.0 / grid.autocorrelation).sum()
        assert total <= m * m + m + 1e-9


@pytest.mark.parametrize(
    "features",
    [
        choose(Polynomial(2), widths=np.ones(2)),
        choose(SquaredExponential(0.5), widths=np.ones(1), error=1e-2, method="hermite"),
    ],
    ids=["polynomial", "hermite"],
)
def test_maps_without_a_lattice_have_no_difference_grid(features):
    with pytest.raises(InvalidArgument, match="grid features"):
        difference_grid(features)
