"""The ball inscribed in the unit cube."""

import numpy as np
import pytest

from discreet.domain import unit_cube


@pytest.mark.parametrize("dimension", [1, 2, 3, 20])
def test_a_spread_ball_is_filled_evenly_in_radius_and_direction(dimension: int) -> None:
    uniforms = np.random.Generator(np.random.Philox(7)).random((20_000, dimension))
    offsets = 2 * (unit_cube.fill_ball(uniforms) - 0.5)
    volumes = np.linalg.norm(offsets, axis=1) ** dimension
    # Seven standard errors of the empirical law: a false alarm in less than 1e-9 of the seeds.
    empirical = np.arange(1, 20_001) / 20_000
    assert np.abs(np.sort(volumes) - empirical).max() < 3.5 / np.sqrt(20_000)
    assert np.abs(offsets.mean(axis=0)).max() < 7 / np.sqrt(20_000)


def test_corners_and_the_centre_of_the_cube_have_a_place_in_the_ball() -> None:
    corners = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [0.5, 0.5]])
    assert unit_cube.in_ball(unit_cube.fill_ball(corners)).all()


def test_far_points_are_drawn_in_without_overflow() -> None:
    drawn = unit_cube.pull_into_ball(np.array([[1e300, 0.5], [1e200, -1e200]]), [0, 1])
    np.testing.assert_allclose(drawn, [[1.0, 0.5], [0.5 + 8**-0.5, 0.5 - 8**-0.5]])
