"""cos and sin on a lattice: by sums of angles, as exact as one by one."""

import gc

import numpy as np
import pytest

from discreet.arrays import frozen, remembered
from discreet.features.waves import ROWS, waves


@pytest.mark.parametrize("most", [1, 2, 3, 8, 21])
@pytest.mark.parametrize("d", [1, 2, 3])
def test_a_lattice_has_the_cosines_and_sines_of_its_frequencies(d, most):
    rng, spacing = np.random.default_rng(most), tuple(np.linspace(0.7, 3.9, d).tolist())
    indices = rng.integers(-most, most + 1, (40, d))
    indices[0] = most
    points = rng.random((ROWS + 5, d))
    cosines, sines = waves(points, indices * np.array(spacing), indices, spacing)
    phases = points @ (indices * np.array(spacing)).T
    error = 1e-15 * (4 + 4 * most * sum(spacing))  # a rounding of each sum, and of the phases
    assert np.abs(cosines - np.cos(phases)).max() < error
    assert np.abs(sines - np.sin(phases)).max() < error


def test_a_row_has_the_same_bits_alone_and_in_a_crowd():
    rng, spacing = np.random.default_rng(0), (1.3, 2.1)
    indices = rng.integers(-9, 10, (30, 2))
    points = rng.random((2 * ROWS + 3, 2))
    whole = np.stack(waves(points, indices * np.array(spacing), indices, spacing))
    for i in (0, 1, ROWS - 1, ROWS, 2 * ROWS + 2):
        one = np.stack(waves(points[[i]], indices * np.array(spacing), indices, spacing))
        assert (one[:, 0] == whole[:, i]).all()


class Doubler:
    def __init__(self):
        self.calls = 0

    @remembered
    def double(self, x):
        self.calls += 1
        return 2 * np.asarray(x)


def test_only_what_nobody_can_change_is_remembered():
    doubler, open_to_all = Doubler(), np.ones(3)
    assert doubler.double(open_to_all).tolist() == doubler.double(open_to_all).tolist() == [2.0] * 3
    open_to_all[0] = 5.0
    assert doubler.double(open_to_all)[0] == 10.0
    view = open_to_all[:]
    view.setflags(write=False)  # a window on what others may change
    doubler.double(view)
    open_to_all[0] = 7.0
    assert doubler.double(view)[0] == 14.0
    assert doubler.calls == 5
    fixed = frozen(open_to_all)
    first = doubler.double(fixed)
    assert doubler.double(fixed) is first
    assert doubler.calls == 6
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1.0


def test_what_is_gone_is_forgotten():
    doubler = Doubler()
    for number in range(50):  # identities are used again
        fixed = frozen(np.full(2, float(number)))
        assert doubler.double(fixed)[0] == 2.0 * number
        del fixed
        gc.collect(0)
