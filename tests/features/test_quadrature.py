"""Rules, and the proofs of their errors: each argument against a brute-force evaluation."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument, OutOfReach
from discreet.features.error_bounds import (
    DifferenceSet,
    Smoothness,
    images,
    lattice_bound,
    radius_of,
    smoothness,
)
from discreet.features.grids import grid_rule
from discreet.features.kernels import Matern, SquaredExponential
from discreet.features.quadrature import (
    features_needed,
    hermite_bound,
    hermite_certificate,
    hermite_nodes,
    hermite_product,
    hermite_remainder,
    hermite_rule,
    random_bound,
    random_rule,
)

BALL = DifferenceSet.of((4.0, 4.0), 4.0)  # differences within a ball of radius 2
UNIT = SquaredExponential(1.0)


def hermite_error_bound(
    nodes: int, lengthscale: float | tuple[float, ...], widths: tuple[float, ...] = (1.0,)
) -> float:
    """The paper's Theorem 2 (QFF Error), on a box of any widths.

    d 2^(d-1) sqrt(pi/2) (e / (4 nu^2 nodes))^nodes, with nu the smallest ratio of lengthscale
    to width. It holds: the Gauss-Hermite remainder is nodes!/(2 nodes)! (D/l)^(2 nodes) in one
    coordinate, Stirling makes that at most 0.77 (e D^2 / (4 l^2 nodes))^nodes, and the d
    coordinates add up. So the factors 2^(d-1) and sqrt(pi/2) are not needed.

    """
    SquaredExponential(lengthscale).check(len(widths))
    scales = SquaredExponential(lengthscale).lengthscales(len(widths))
    nu = float(np.min(scales / np.array(widths)))
    dimension = len(widths)
    constant = dimension * 2.0 ** (dimension - 1) * math.sqrt(math.pi / 2.0)
    exponent = nodes * (1.0 - math.log(4.0 * nu * nu * nodes))
    return constant * math.exp(min(exponent, 700.0))  # Thm. 2


def _features(rule):
    return 2 * len(rule.weights) - int(not rule.frequencies[0].any())


def _brute_error(kernel, rule, differences, count=20_000, seed=0):
    """max |k~ - k| over random differences, many of them on the edge of the set."""
    rng = np.random.default_rng(seed)
    delta = rng.uniform(-1, 1, size=(count, differences.dimension)) * differences.extents
    edge = count // 3
    delta[:edge] = np.sign(delta[:edge]) * differences.extents * rng.uniform(size=(edge, 1)) ** 0.1
    norm = np.linalg.norm(delta, axis=1, keepdims=True)
    delta *= np.minimum(1.0, differences.diameter / norm)
    near = np.cos(delta @ rule.frequencies.T) @ rule.weights
    return float(np.max(np.abs(near - kernel.correlation(delta))))


# -- the difference set


def test_the_difference_set_knows_its_extents_and_projections():
    assert DifferenceSet.of((1, 2, 2)).diameter == 3.0
    assert DifferenceSet.of((1, 2, 2), 99.0) == DifferenceSet.of((1, 2, 2))
    assert BALL.on((1,)) == DifferenceSet.of((4.0,))
    assert DifferenceSet.of(3.0).widths == (3.0,)


@pytest.mark.parametrize("widths", [(), (0.0,), (-1.0, 1.0), (math.nan,), (math.inf,), [[1.0]]])
def test_bad_widths_are_refused(widths):
    with pytest.raises(InvalidArgument, match="widths"):
        DifferenceSet.of(widths)


@pytest.mark.parametrize("diameter", [0.0, -1.0, math.nan])
def test_a_bad_diameter_is_refused(diameter):
    with pytest.raises(InvalidArgument, match="diameter"):
        DifferenceSet.of((1.0,), diameter)


@given(st.integers(2, 9), st.integers(2, 9), st.floats(0.3, 1.5), st.booleans())
@settings(deadline=None, max_examples=40)
def test_every_cell_that_meets_the_set_has_all_its_corners_evaluated(rows, columns, size, signed):
    differences = DifferenceSet.of((1.0, 1.0), size)
    cells = np.array([rows, columns])
    steps = differences.extents / cells
    seen = set()
    for axes, mask in differences.slabs(cells, signed=signed):
        mesh = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)
        seen |= {tuple(rank) for rank in np.rint(mesh[mask.ravel()] / steps).astype(int)}
    rng = np.random.default_rng(rows * columns)
    inside = rng.uniform(-1, 1, size=(2000, 2)) * differences.extents
    inside = inside[np.linalg.norm(inside, axis=1) <= differences.diameter]
    inside = np.sign(inside[:, :1]) * inside if signed else np.abs(inside)  # by symmetry of e
    low = np.floor(inside / steps).astype(int)
    low = np.minimum(low, cells - 1)
    for offset in ((0, 0), (0, 1), (1, 0), (1, 1)):
        assert {tuple(rank) for rank in low + offset} <= seen


# -- Poisson


@pytest.mark.parametrize(
    "kernel", [UNIT, Matern(1.5, 1.0), Matern(2.5, (1.0, 0.5)), Matern(0.5, 1.0, "product")]
)
def test_the_image_sums_bound_the_aliases(kernel):
    extents, periods = np.array([1.0, 2.0]), np.array([4.0, 5.5])
    bounds = images(kernel, extents, periods)
    ranks = np.stack(np.meshgrid(*2 * [np.arange(-12, 13)], indexing="ij"), -1).reshape(-1, 2)
    ranks = ranks[np.any(ranks, axis=1)]
    assert bounds.at_zero == pytest.approx(kernel.correlation(ranks * periods).sum(), rel=1e-9)
    rough = not np.all(np.isfinite(kernel.second_moment(2)))
    at_zero = kernel.curvature(ranks * periods).sum(axis=0)
    if not rough:
        np.testing.assert_allclose(bounds.curvature_at_zero, at_zero, rtol=1e-9)
    for delta in np.random.default_rng(0).uniform(-1, 1, size=(200, 2)) * extents:
        assert kernel.correlation(delta + ranks * periods).sum() <= bounds.largest
        bent = kernel.curvature(delta + ranks * periods).sum(axis=0)
        assert np.all(bent <= bounds.largest_curvature)


def test_the_radius_of_a_level_inverts_the_profile():
    for kernel in (SquaredExponential((0.1, 0.7)), Matern(2.5, 0.3)):
        scale = kernel.lengthscales(2)[0]
        radius = radius_of(kernel, 1e-3)
        assert kernel.correlation([[radius * scale, 0.0]])[0] == pytest.approx(1e-3, rel=1e-6)


@pytest.mark.parametrize(
    ("kernel", "widths", "error"),
    [
        (SquaredExponential(0.3), (1.0,), 1e-4),
        (SquaredExponential((0.3, 0.6)), (1.0, 1.0), 1e-3),
        (SquaredExponential((0.5, 0.8, 1.0)), (1.0, 1.0, 1.0), 1e-3),
        (SquaredExponential(1.5), (1.0,) * 4, 1e-2),
        (SquaredExponential(20.0), (1.0, 1.0), 1e-3),
        (Matern(0.5, 0.5), (1.0,), 2e-2),
        (Matern(0.5, 1.0), (1.0, 1.0), 0.1),
        (Matern(1.5, 0.3), (1.0,), 1e-3),
        (Matern(1.5, (0.3, 0.6)), (1.0, 1.0), 1e-2),
        (Matern(2.5, 0.7), (1.0, 1.0, 1.0), 1e-2),
        (Matern(1.5, 0.5, "product"), (1.0, 1.0), 1e-2),
        (Matern(2.5, 0.7, "product"), (1.0, 1.0, 1.0), 1e-2),
    ],
)
def test_grid_rules_keep_their_word(kernel, widths, error):
    differences = DifferenceSet.of(widths)
    rule = grid_rule(kernel, differences, error, 2048)
    assert _brute_error(kernel, rule, differences) <= rule.error_bound <= error
    assert math.fsum(rule.weights) == pytest.approx(1.0, abs=1e-15)
    np.testing.assert_array_equal(rule.indices * np.array(rule.spacing), rule.frequencies)
    full = {tuple(n) for n in rule.indices} | {tuple(-n) for n in rule.indices}
    assert len(full) == _features(rule)  # one of each pair
    assert {(-n[0], *n[1:]) for n in full} == full  # symmetric under reflection


def test_the_bar_of_49_and_121_grid_features():
    assert _features(grid_rule(UNIT, BALL, 6e-3, 49)) <= 49
    assert _features(grid_rule(UNIT, BALL, 1e-4, 121)) <= 121


@pytest.mark.parametrize(
    ("kernel", "most"),
    [(Matern(1.5, 0.2), 441), (Matern(1.5, 0.5), 209), (Matern(2.5, 0.2), 169)],
)
def test_isotropic_matern_reaches_a_hundredth_on_the_unit_square(kernel, most):
    assert _features(grid_rule(kernel, DifferenceSet.of((1, 1)), 1e-2, most)) <= most


@pytest.mark.parametrize(
    ("lengthscale", "most"), [((0.5,), 17), ((0.5, 1.0), 241), ((0.7, 1.0, 0.8), 2800)]
)
def test_errors_below_1e_9_take_tolerably_many_features(lengthscale, most):
    differences = DifferenceSet.of((1.0,) * len(lengthscale))
    rule = grid_rule(SquaredExponential(lengthscale), differences, 9e-10, most)
    assert rule.error_bound < 1e-9


def test_grid_rules_do_not_depend_on_units():
    scaled = grid_rule(SquaredExponential(0.25), DifferenceSet.of((1, 1), 1.0), 6e-3, 2048)
    plain = grid_rule(UNIT, BALL, 6e-3, 2048)
    assert scaled.error_bound == pytest.approx(plain.error_bound, rel=1e-6)
    np.testing.assert_allclose(scaled.frequencies, 4 * plain.frequencies, rtol=1e-12)


def test_out_of_reach_names_a_number_that_suffices():
    with pytest.raises(OutOfReach, match=r"takes \d+ features, over the limit of 50") as caught:
        grid_rule(UNIT, BALL, 1e-4, 50)
    rule = grid_rule(UNIT, BALL, 1e-4, caught.value.features)
    assert _features(rule) == caught.value.features


def test_out_of_reach_is_a_lower_bound_where_the_search_gave_up():
    with pytest.raises(OutOfReach, match="at least 4097 features"):
        grid_rule(SquaredExponential(3.0), DifferenceSet.of((1.0,) * 7), 0.05, 2048)


def test_long_lengthscales_work_in_six_dimensions():
    differences = DifferenceSet.of((1.0,) * 6)
    rule = grid_rule(SquaredExponential(3.0), differences, 0.05, 2048)
    assert _brute_error(SquaredExponential(3.0), rule, differences, 2000) <= rule.error_bound


@pytest.mark.parametrize("dimension", [6, 40])
@pytest.mark.parametrize(
    "kernel", [SquaredExponential(0.2), Matern(1.5, 0.2), Matern(2.5, 0.2, "product")]
)
def test_hopeless_dimensions_are_refused_with_an_estimate(kernel, dimension):
    with pytest.raises(OutOfReach, match="about") as caught:
        grid_rule(kernel, DifferenceSet.of((1.0,) * dimension), 1e-3, 2048)
    assert caught.value.features > 10_000


@pytest.mark.parametrize(
    ("kernel", "error"), [(SquaredExponential(0.2), 1e-3), (Matern(2.5, 0.2), 1e-2)]
)
def test_the_estimate_is_of_the_right_size(kernel, error):
    differences = DifferenceSet.of((1.0, 1.0))
    exact = _features(grid_rule(kernel, differences, error, 2048))
    assert exact / 3 < features_needed(kernel, differences, error) < 3 * exact


@pytest.mark.parametrize("error", [0.0, -1.0, 1e-13, 1.1, math.nan])
@pytest.mark.parametrize("rule", [grid_rule, hermite_rule])
def test_errors_that_mean_nothing_are_refused(rule, error):
    with pytest.raises(InvalidArgument, match="error"):
        rule(UNIT, BALL, error, 100)


def test_a_limit_below_one_feature_is_refused():
    with pytest.raises(InvalidArgument, match="limit"):
        grid_rule(UNIT, BALL, 1e-3, 0)


# -- lattice


def test_the_lattice_bound_is_above_the_error_and_tight():
    rule = random_rule(UNIT, BALL, 0.3, 2048, seed=3)
    smooth = smoothness(UNIT, rule.frequencies, rule.weights)

    def approximate(axes):
        mesh = np.stack(np.meshgrid(*axes, indexing="ij"), -1)
        return (np.cos(mesh @ rule.frequencies.T) @ rule.weights).reshape(len(axes[0]), -1)

    brute = _brute_error(UNIT, rule, BALL)
    bound = lattice_bound(UNIT, BALL, approximate, smooth, slack=1e-2, signed=True)
    assert brute <= bound <= brute + 2e-2
    few = lattice_bound(UNIT, BALL, approximate, smooth, slack=1e-2, signed=True, largest=10)
    assert few == math.inf


def test_the_slack_is_shared_between_slope_and_curvature():
    smooth = Smoothness(np.array([2.0, 0.5]), np.array([1.0, 3.0]))
    extents = np.array([1.0, 4.0])
    assert smooth.slack(extents / smooth.cells(extents, 0.01)) <= 0.01


# -- Gauss-Hermite


@pytest.mark.parametrize("nodes", [1, 2, 5, 20])
def test_hermite_nodes_integrate_normal_moments(nodes):
    z, w = hermite_nodes(nodes)
    for power in range(0, 2 * nodes, 2):
        moment = math.prod(range(1, power, 2))
        assert float(w @ z**power) == pytest.approx(moment, rel=1e-9)


@pytest.mark.parametrize(("nodes", "dimension"), [(1, 1), (4, 1), (5, 1), (3, 2), (4, 2), (3, 3)])
def test_hermite_keeps_one_of_each_pair_of_the_full_tensor_grid(nodes, dimension):
    kernel = SquaredExponential((0.5, 1.0, 2.0)[:dimension])
    rule = hermite_product(nodes, kernel, dimension, 1.0)
    assert _features(rule) == nodes**dimension
    z, w = hermite_nodes(nodes)
    mesh = np.stack(np.meshgrid(*dimension * [z], indexing="ij"), -1).reshape(-1, dimension)
    weights = math.prod(np.meshgrid(*dimension * [w], indexing="ij")).ravel()
    delta = np.random.default_rng(0).normal(size=(50, dimension))
    full = np.cos(delta / kernel.lengthscales(dimension) @ mesh.T) @ weights
    half = np.cos(delta @ rule.frequencies.T) @ rule.weights
    np.testing.assert_allclose(half, full, atol=1e-13)


@pytest.mark.parametrize("extent", [0.5, 1.0, 3.0])
@pytest.mark.parametrize("nodes", [2, 5, 9])
def test_the_hermite_bounds_hold_and_are_ordered(nodes, extent):
    rule = hermite_product(nodes, UNIT, 1, 1.0)
    brute = _brute_error(UNIT, rule, DifferenceSet.of((extent,)))
    assert brute <= hermite_certificate(nodes, extent, 1e-9) + 1e-15
    assert brute <= hermite_remainder(nodes, extent) + 1e-14
    assert hermite_remainder(nodes, extent) <= hermite_error_bound(nodes, 1.0, (extent,))


@given(
    st.integers(1, 12),
    st.lists(st.floats(0.3, 3.0), min_size=1, max_size=3),
    st.integers(0, 1000),
)
@settings(deadline=None, max_examples=40)
def test_theorem_2_holds_on_boxes_of_any_widths(nodes, widths, seed):
    kernel = SquaredExponential((0.6, 0.9, 1.3)[: len(widths)])
    rule = hermite_product(nodes, kernel, len(widths), 1.0)
    bound = hermite_error_bound(nodes, kernel.lengthscale, tuple(widths))
    brute = _brute_error(kernel, rule, DifferenceSet.of(widths), count=500, seed=seed)
    assert brute <= bound + 1e-13


def test_hermite_with_20_nodes_is_certified_below_1e_7_on_the_ball_of_radius_2():
    rule = hermite_rule(UNIT, BALL, 1e-7, 400)
    assert _features(rule) == 400
    assert _brute_error(UNIT, rule, BALL) <= rule.error_bound < 1e-7


def test_the_hermite_bound_uses_the_ball():
    box = DifferenceSet.of((4.0, 4.0))
    assert hermite_bound(20, UNIT, BALL, 1e-7) < 0.6 * hermite_bound(20, UNIT, box, 1e-7)


def test_hermite_refuses_what_it_cannot_do():
    with pytest.raises(InvalidArgument, match="SquaredExponential"):
        hermite_rule(Matern(1.5), BALL, 1e-3, 2048)
    with pytest.raises(OutOfReach) as caught:
        hermite_rule(UNIT, BALL, 1e-7, 100)
    assert caught.value.features == 400
    with pytest.raises(OutOfReach, match="more than"):
        hermite_rule(SquaredExponential(0.01), BALL, 1e-3, 2048)


# -- random


@pytest.mark.parametrize(
    ("kernel", "widths", "error"),
    [
        (SquaredExponential(0.5), (1.0,), 0.05),
        (SquaredExponential((0.5, 0.8)), (1.0, 1.0), 0.1),
        (SquaredExponential(1.0), (1.0, 1.0, 1.0), 0.1),
        (SquaredExponential(1.0), (1.0,) * 4, 0.3),
        (Matern(0.5, 0.5), (1.0,), 0.2),
        (Matern(1.5, 0.5), (1.0, 1.0), 0.2),
        (Matern(2.5, 0.5, "product"), (1.0, 1.0), 0.1),
    ],
)
def test_random_rules_keep_their_word(kernel, widths, error):
    differences = DifferenceSet.of(widths)
    rule = random_rule(kernel, differences, error, 4096, seed=7)
    assert _brute_error(kernel, rule, differences) <= rule.error_bound <= error
    again = random_rule(kernel, differences, error, 4096, seed=7)
    np.testing.assert_array_equal(rule.frequencies, again.frequencies)
    other = random_rule(kernel, differences, error, 4096, seed=8)
    assert not np.array_equal(rule.frequencies[:3], other.frequencies[:3])


def test_the_union_bound_is_above_the_error_of_a_draw():
    omega = UNIT.frequencies(np.random.default_rng(0), 2000, 2)
    bound = random_bound(UNIT, BALL.extents, omega)
    rule = random_rule(UNIT, BALL, 0.3, 2048, seed=0)._replace(
        frequencies=omega, weights=np.full(2000, 1 / 2000)
    )
    assert _brute_error(UNIT, rule, BALL) < bound < 0.4


def test_random_features_say_how_many_more_they_need():
    with pytest.raises(OutOfReach, match="about") as caught:
        random_rule(UNIT, BALL, 1e-3, 256, seed=0)
    assert caught.value.features > 100_000
