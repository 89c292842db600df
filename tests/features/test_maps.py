"""Feature maps: inner products, norms, gradients, and every error bound under attack."""

import math
from dataclasses import fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.errors import InvalidArgument, OutOfReach
from discreet.experiments.kernel_errors import measured_error
from discreet.features.choose import choose
from discreet.features.error_bounds import DifferenceSet
from discreet.features.grids import common_rule
from discreet.features.kernels import (
    Additive,
    Learned,
    Linear,
    Matern,
    Part,
    Polynomial,
    SquaredExponential,
)
from discreet.features.maps import (
    AdditiveFeatures,
    FeaturePart,
    FourierFeatures,
    PolynomialFeatures,
)

MIXED = Additive(
    (
        Part(SquaredExponential(0.4), (0, 2), 0.5),
        Part(Matern(2.5, 0.6), (1,), 0.3),
        Part(Polynomial(2, 0.5), (0, 1), 0.15),
    )
)

CASES = {
    "grid-1": (SquaredExponential(0.2), {"widths": (1,)}),
    "grid-2": (SquaredExponential((0.3, 0.7)), {"widths": (1, 1)}),
    "grid-3": (SquaredExponential((0.8, 0.6, 1.0)), {"widths": (1, 1, 1), "error": 1e-2}),
    "grid-ball": (SquaredExponential(1.0), {"widths": (4, 4), "diameter": 4.0, "error": 6e-3}),
    "grid-ball-fine": (SquaredExponential(1.0), {"widths": (4, 4), "diameter": 4.0, "error": 1e-4}),
    "grid-1e-9": (SquaredExponential((0.5, 1.0)), {"widths": (1, 1), "error": 1e-9}),
    "grid-box": (SquaredExponential(0.5), {"widths": (0.2, 1.0)}),
    "matern-1/2": (Matern(0.5, 0.5), {"widths": (1,), "error": 3e-2}),
    "matern-3/2": (Matern(1.5, (0.4, 0.7)), {"widths": (1, 1), "error": 2e-2}),
    "matern-5/2": (Matern(2.5, 0.5), {"widths": (1, 1), "error": 1e-2}),
    "matern-5/2-3": (Matern(2.5, 1.0), {"widths": (1, 1, 1), "error": 2e-2}),
    "product-3/2": (Matern(1.5, 0.6, "product"), {"widths": (1, 1), "error": 2e-2}),
    "hermite-1": (SquaredExponential(0.3), {"widths": (1,), "method": "hermite"}),
    "hermite-2": (SquaredExponential((0.4, 0.6)), {"widths": (1, 1), "method": "hermite"}),
    "hermite-3": (SquaredExponential(0.8), {"widths": (1, 1, 1), "method": "hermite"}),
    "random-1": (SquaredExponential(0.5), {"widths": (1,), "error": 0.1, "method": "random"}),
    "random-2": (Matern(1.5, 0.5), {"widths": (1, 1), "error": 0.25, "method": "random"}),
    "random-3": (SquaredExponential(1), {"widths": (1, 1, 1), "error": 0.2, "method": "random"}),
    "linear": (Linear(0.5), {"widths": (1, 1, 1)}),
    "polynomial": (Polynomial(3, 0.7), {"widths": (1, 1)}),
    "additive": (Additive.over(SquaredExponential(0.2), 3), {"widths": (1, 1, 1)}),
    "mixed": (MIXED, {"widths": (1, 1, 1), "error": 5e-3}),
}


@pytest.fixture(scope="module")
def maps():
    return {name: choose(kernel, **wanted) for name, (kernel, wanted) in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_every_bound_survives_random_and_adversarial_pairs(maps, name):
    kernel, wanted = CASES[name]
    features = maps[name]
    found = measured_error(
        kernel,
        features,
        widths=wanted["widths"],
        diameter=wanted.get("diameter"),
        rng=np.random.default_rng(1),
        pairs=100_000,
        starts=8,
    )
    assert features.error_bound <= wanted.get("error", 1e-3)
    assert found <= features.error_bound + 2e-15  # the exact maps still round


def test_the_attack_finds_what_a_fine_lattice_finds(maps):
    kernel, _ = CASES["grid-ball"]
    radius = np.linspace(0.0, 4.0, 1500)
    angle = np.linspace(0.0, math.pi, 200)
    delta = np.stack(
        [np.outer(radius, np.cos(angle)).ravel(), np.outer(radius, np.sin(angle)).ravel()], axis=1
    )
    features = maps["grid-ball"]
    origin = features(np.zeros((1, 2)))[0]
    lattice = np.max(np.abs(features(delta) @ origin - kernel.correlation(delta)))
    rng = np.random.default_rng(0)
    found = measured_error(kernel, features, widths=(4, 4), diameter=4.0, rng=rng)
    assert found == pytest.approx(lattice, rel=1e-2)


def test_a_false_bound_is_found_out(maps):
    honest = maps["grid-2"]
    other = SquaredExponential((0.31, 0.7))
    found = measured_error(other, honest, widths=(1, 1), rng=np.random.default_rng(0), pairs=1000)
    assert found > honest.error_bound


@pytest.mark.parametrize("name", CASES)
def test_norms_are_at_most_one(maps, name):
    features = maps[name]
    x = np.random.default_rng(0).uniform(size=(200, features.inputs))
    norms = np.linalg.norm(features(x), axis=1)
    assert np.all(norms <= 1.0 + 1e-14)
    if isinstance(features, FourierFeatures):
        np.testing.assert_allclose(norms, 1.0, atol=1e-14)


@pytest.mark.parametrize("name", CASES)
def test_shapes_are_as_stated(maps, name):
    features = maps[name]
    x = np.random.default_rng(0).uniform(size=(7, features.inputs))
    assert features(x).shape == (7, features.dimension)
    assert features(x).dtype == np.float64
    assert features(x[:0]).shape == (0, features.dimension)
    stops = [group.features.stop for group in features.groups]
    starts = [group.features.start for group in features.groups]
    assert [0, *stops[:-1]] == starts
    assert stops[-1] == features.dimension


@pytest.mark.parametrize("name", CASES)
def test_gradients_are_derivatives(maps, name):
    features = maps[name]
    rng = np.random.default_rng(3)
    x = rng.uniform(0.1, 0.9, size=(5, features.inputs))
    per_row = rng.normal(size=(5, features.dimension)) / math.sqrt(features.dimension)
    for coefficients in (per_row[0], per_row):
        slopes = features.gradient(x, coefficients)
        step = 1e-6
        for j in range(features.inputs):
            shift = step * np.eye(features.inputs)[j]
            rise = np.sum((features(x + shift) - features(x - shift)) * coefficients, axis=1)
            scale = 1e-5 * max(1.0, float(np.abs(slopes).max()))
            np.testing.assert_allclose(rise / (2 * step), slopes[:, j], atol=scale)


@pytest.mark.parametrize("name", CASES)
def test_a_row_does_not_depend_on_the_rows_beside_it(maps, name):
    features = maps[name]
    x = np.random.default_rng(4).uniform(size=(33, features.inputs))
    alone = np.concatenate([features(x[i : i + 1]) for i in range(len(x))])
    np.testing.assert_array_equal(features(x), alone)


@pytest.mark.parametrize("name", CASES)
def test_maps_are_frozen_and_rebuilt_by_their_fields(maps, name):
    features = maps[name]
    x = np.random.default_rng(5).uniform(size=(4, features.inputs))
    copy = type(features)(
        **{field.name: getattr(features, field.name) for field in fields(features)}
    )
    np.testing.assert_array_equal(copy(x), features(x))
    assert copy.error_bound == features.error_bound
    if isinstance(features, FourierFeatures):
        with pytest.raises(ValueError, match="read-only"):
            features.weights[0] = 2.0
        with pytest.raises(ValueError, match="read-only"):
            features.frequencies[0, 0] = 2.0


def test_grid_maps_know_their_lattice_and_others_do_not(maps):
    grid, hermite = maps["grid-2"], maps["hermite-2"]
    assert grid.indices.dtype == np.int64
    assert not grid.indices.flags.writeable
    np.testing.assert_array_equal(grid.indices * np.array(grid.spacing), grid.frequencies)
    assert not grid.frequencies[0].any()
    assert hermite.indices is None
    assert hermite.spacing is None


def test_choosing_twice_gives_the_same_bytes():
    for name in ("grid-2", "hermite-2", "random-2"):
        kernel, wanted = CASES[name]
        one, two = choose(kernel, **wanted), choose(kernel, **wanted)
        assert one.frequencies.tobytes() == two.frequencies.tobytes()
        assert one.weights.tobytes() == two.weights.tobytes()


@given(st.integers(1, 4), st.integers(1, 3), st.sampled_from([0.0, 0.5, 2.0]))
@settings(deadline=None, max_examples=30)
def test_polynomial_features_are_exact(degree, inputs, bias):
    features = PolynomialFeatures(degree, bias, inputs)
    x = np.random.default_rng(degree).uniform(size=(6, inputs))
    exact = Polynomial(degree, bias)(x, x)
    np.testing.assert_allclose(features(x) @ features(x).T, exact, atol=1e-14)
    assert features.dimension == math.comb(inputs + degree - (bias == 0.0), degree)


def test_additive_maps_are_blocks_of_their_parts(maps):
    features = maps["mixed"]
    x = np.random.default_rng(6).uniform(size=(5, 3))
    assert [group.columns for group in features.groups] == [(0, 2), (1,), (0, 1)]
    for part, group in zip(features.parts, features.groups, strict=True):
        block = math.sqrt(part.weight) * part.features(x[:, list(group.columns)])
        np.testing.assert_array_equal(features(x)[:, group.features], block)
    assert features.error_bound == pytest.approx(
        sum(part.weight * part.features.error_bound for part in features.parts)
    )


def test_exact_parts_leave_the_error_to_the_others():
    kernel = Additive((Part(Linear(), (0,), 0.9), Part(SquaredExponential(0.2), (1,), 0.1)))
    features = choose(kernel, widths=(1, 1), error=1e-3)
    alone = choose(SquaredExponential(0.2), widths=(1,), error=1e-2)
    assert features.parts[1].features.dimension == alone.dimension
    assert choose(Additive.over(Linear(), 2), widths=(1, 1)).error_bound == 0.0


# -- one lattice for several kernels

BANKS = {
    "one": ((SquaredExponential(0.3),), {"widths": (1.0,), "error": 1e-3}),
    "line": (Learned().options, {"widths": (1.0,), "error": 1e-3}),
    "square": (
        (SquaredExponential(0.5), SquaredExponential((0.4, 0.2))),
        {"widths": (1.0, 1.0), "error": 1e-2},
    ),
    "matern": ((Matern(2.5, 0.4), SquaredExponential(0.2)), {"widths": (1.0,), "error": 1e-2}),
    "rectangle": (
        (SquaredExponential((0.1, 0.5)), SquaredExponential((0.05, 0.25))),
        {"widths": (0.2, 1.0), "error": 1e-3},
    ),
    "ball": (
        (SquaredExponential(0.5), SquaredExponential(1.0)),
        {"widths": (2.0, 2.0), "diameter": 2.0, "error": 1e-3},
    ),
}


def _of_option(rule, option):
    """Features of one option on the common frequencies: its own weights."""
    pairs = np.where(rule.frequencies.any(axis=1), 2.0, 1.0)
    weights = pairs * option.spectral_density(rule.frequencies)
    weights = weights / math.fsum(weights) * (1 - 1e-13)
    return FourierFeatures(rule.frequencies, weights, rule.error_bound, rule.indices, rule.spacing)


@pytest.mark.parametrize("name", BANKS)
def test_the_common_bound_holds_for_every_option_up_to_half_the_domain(name):
    options, wanted = BANKS[name]
    space = {key: wanted[key] for key in wanted if key != "error"}
    rule = common_rule(options, DifferenceSet.of(**space), wanted["error"], 2048)
    assert rule.error_bound <= wanted["error"]
    found = [
        measured_error(
            option, _of_option(rule, option), **space, rng=np.random.default_rng(0), pairs=20_000
        )
        for option in options
    ]
    print(f"{name}: {len(rule.weights)} pairs, bound {rule.error_bound:.1e}, found {found}")
    assert max(found) <= rule.error_bound


def test_a_kernel_longer_than_half_the_domain_becomes_its_periodic_sum():
    """Written out: the sum over images, normalised, which is what its weights stand for."""
    option, error = SquaredExponential(2.0), 1e-3
    rule = common_rule((SquaredExponential(0.25), option), DifferenceSet.of([1.0]), error, 2048)
    period = 2 * math.pi / rule.spacing[0]
    assert 1.0 < period < 1.0 + 5 * 2.0  # shorter than the option itself would take
    delta = np.linspace(-1, 1, 401)[:, None]
    images = sum(option(delta + k * period, np.zeros((1, 1))) for k in range(-20, 21))[:, 0]
    at_zero = sum(option([[k * period]], [[0.0]]) for k in range(-20, 21))[0, 0]
    phi = _of_option(rule, option)
    assert np.abs((phi(delta) @ phi(np.zeros((1, 1))).T)[:, 0] - images / at_zero).max() < error


@pytest.mark.parametrize("additive", [False, True], ids=["together", "additive"])
def test_features_to_be_learnt_stand_for_the_average_of_the_options(additive):
    kernel = Learned((SquaredExponential(0.2), SquaredExponential(0.4)), additive=additive)
    features = choose(kernel, widths=(1, 1), error=1e-2)
    found = measured_error(
        kernel, features, widths=(1, 1), rng=np.random.default_rng(0), pairs=20_000
    )
    assert found <= features.error_bound <= 1e-2
    assert isinstance(features, AdditiveFeatures) == additive
    if additive:
        assert [group.columns for group in features.groups] == [(0,), (1,)]


def test_one_option_is_as_good_as_its_own_grid():
    kernel = SquaredExponential(0.2)
    own, common = (choose(k, widths=(1, 1), error=1e-3) for k in (kernel, Learned((kernel,))))
    assert common.dimension <= 1.5 * own.dimension


def test_a_lattice_for_all_out_of_reach_says_how_many():
    with pytest.raises(OutOfReach) as caught:
        choose(Learned((SquaredExponential(0.01),)), widths=(1, 1), error=0.002, limit=100)
    assert caught.value.features > 100
    assert "kernel error 0.002 takes" in str(caught.value)


def test_out_of_reach_says_how_many():
    with pytest.raises(OutOfReach, match="Additive") as caught:
        choose(SquaredExponential(0.2), widths=(1,) * 6)
    assert caught.value.features > 100_000
    with pytest.raises(OutOfReach) as caught:
        choose(Polynomial(9), widths=(1,) * 9)
    assert caught.value.features == math.comb(18, 9)
    with pytest.raises(OutOfReach, match="parts") as caught:
        choose(Additive.over(SquaredExponential(0.2), 3), widths=(1, 1, 1), limit=20)
    assert caught.value.features == 33


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: choose(SquaredExponential(), widths=()), "widths"),
        (lambda: choose(SquaredExponential(), widths=(1,), diameter=0.0), "diameter"),
        (lambda: choose(SquaredExponential(), widths=(1,), error=0.0), "error"),
        (lambda: choose(SquaredExponential(), widths=(1,), limit=0), "limit"),
        (lambda: choose(SquaredExponential(), widths=(1,), method="magic"), "method"),
        (lambda: choose(SquaredExponential((0.1, 0.2)), widths=(1,)), "lengthscale"),
        (lambda: choose(Matern(1.5), widths=(1,), method="hermite"), "kernel"),
        (lambda: choose(MIXED, widths=(1, 1)), "columns"),
        (lambda: FourierFeatures(np.eye(2), np.ones(3) / 3, 0.1), "weights"),
        (lambda: FourierFeatures(np.eye(2), np.ones(2), 0.1), "weights"),
        (lambda: FourierFeatures(np.eye(2), np.array([1.5, -0.5]), 0.1), "weights"),
        (lambda: FourierFeatures(np.zeros((2, 2)), np.ones(2) / 2, 0.1), "frequencies"),
        (lambda: FourierFeatures(np.zeros((0, 2)), np.ones(0), 0.1), "weights"),
        (
            lambda: FourierFeatures(np.eye(2), np.ones(2) / 2, 0.1, spacing=(1.0, 1.0)),
            "indices, spacing",
        ),
        (
            lambda: FourierFeatures(
                np.eye(2), np.ones(2) / 2, 0.1, np.eye(2, dtype=np.int64), (2.0, 1.0)
            ),
            "frequencies",
        ),
        (lambda: PolynomialFeatures(0, 1.0, 1), "degree"),
        (lambda: PolynomialFeatures(1, 1.0, 0), "dimension"),
        (lambda: PolynomialFeatures(1, 1.0, 1)([[1.0, 2.0]]), "x"),
        (lambda: PolynomialFeatures(1, 1.0, 1)([1.0]), "x"),
        (lambda: PolynomialFeatures(1, 1.0, 1).gradient([[1.0]], [1.0]), "coefficients"),
        (lambda: FeaturePart(PolynomialFeatures(1, 1.0, 1), (0, 1), 1.0), "columns"),
        (lambda: AdditiveFeatures((), 2), "parts"),
    ],
)
def test_bad_arguments_are_refused_by_name(build, argument):
    with pytest.raises(InvalidArgument) as caught:
        build()
    assert caught.value.argument == argument


def test_parts_must_fit_the_inputs_and_weigh_at_most_one():
    linear = PolynomialFeatures(1, 1.0, 1)
    with pytest.raises(InvalidArgument, match="columns below 1"):
        AdditiveFeatures((FeaturePart(linear, (1,), 0.5),), 1)
    with pytest.raises(InvalidArgument, match="sum to at most 1"):
        AdditiveFeatures((FeaturePart(linear, (0,), 0.6), FeaturePart(linear, (0,), 0.6)), 1)


@pytest.mark.parametrize("method", ["hermite", "random"])
def test_learned_kernels_are_refused_other_features_than_a_lattice(method):
    with pytest.raises(InvalidArgument, match="'grid' with Learned"):
        choose(Learned(), widths=(1.0,), error=1e-2, method=method)


@pytest.mark.parametrize("lengthscale", [0.1, 0.3])
def test_equal_parts_are_computed_together_as_they_are_one_by_one(lengthscale):
    kernel = Additive.over(SquaredExponential(lengthscale), 5)
    together = choose(kernel, widths=np.ones(5), error=1e-3)
    apart = AdditiveFeatures(together.parts, together.inputs)
    assert together._alike is not None
    apart.__dict__["_alike"] = None
    rng = np.random.default_rng(0)
    x, c = rng.random((7, 5)), rng.standard_normal((7, together.dimension))
    assert (together(x) == apart(x)).all()
    assert together.gradient(x, c) == pytest.approx(apart.gradient(x, c), rel=1e-12, abs=1e-12)


def test_parts_that_differ_or_share_a_column_are_computed_one_by_one():
    one = choose(SquaredExponential(0.3), widths=[1.0], error=1e-2)
    other = choose(SquaredExponential(0.1), widths=[1.0], error=1e-2)
    line = PolynomialFeatures(1, 1.0, 1)
    for parts in (
        [(one, 0, 0.5), (other, 1, 0.5)],
        [(one, 0, 0.5), (one, 0, 0.5)],
        [(one, 0, 0.5), (one, 1, 0.4)],
        [(line, 0, 0.5), (line, 1, 0.5)],
    ):
        features = AdditiveFeatures(
            tuple(FeaturePart(each, (column,), weight) for each, column, weight in parts), 2
        )
        assert features._alike is None


def test_slopes_are_of_one_coordinate():
    two = FourierFeatures(np.array([[2.0, 1.0]]), np.ones(1), error_bound=1.0)
    with pytest.raises(InvalidArgument, match="slopes: expected features of one coordinate, got 2"):
        two.slopes([[0.3]])
