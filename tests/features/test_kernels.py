"""Kernels against scikit-learn, their spectral densities against numerical integration."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats
from sklearn.gaussian_process import kernels as oracle

from discreet.errors import InvalidArgument
from discreet.features.kernels import (
    Additive,
    Learned,
    Linear,
    Matern,
    Part,
    Polynomial,
    SquaredExponential,
)

STATIONARY = [
    SquaredExponential(0.3),
    Matern(0.5, 0.3),
    Matern(1.5, 0.3),
    Matern(2.5, 0.3),
    Matern(0.5, 0.3, "product"),
    Matern(1.5, 0.3, "product"),
    Matern(2.5, 0.3, "product"),
]


def _points(seed, count, dimension):
    return np.random.default_rng(seed).uniform(size=(count, dimension))


@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_squared_exponential_is_scikit_learns(dimension):
    x, y = _points(1, 20, dimension), _points(2, 15, dimension)
    scales = (0.2, 0.5, 0.9)[:dimension]
    np.testing.assert_allclose(
        SquaredExponential(scales)(x, y), oracle.RBF(scales)(x, y), rtol=1e-12
    )
    np.testing.assert_allclose(SquaredExponential(0.3)(x, y), oracle.RBF(0.3)(x, y), rtol=1e-12)


@pytest.mark.parametrize("smoothness", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_matern_is_scikit_learns(smoothness, dimension):
    x, y = _points(3, 20, dimension), _points(4, 15, dimension)
    scales = (0.2, 0.5, 0.9)[:dimension]
    isotropic = oracle.Matern(scales, nu=smoothness)(x, y)
    np.testing.assert_allclose(Matern(smoothness, scales)(x, y), isotropic, rtol=1e-12)
    product = math.prod(
        oracle.Matern(scale, nu=smoothness)(x[:, [j]], y[:, [j]]) for j, scale in enumerate(scales)
    )
    np.testing.assert_allclose(Matern(smoothness, scales, "product")(x, y), product, rtol=1e-12)


@pytest.mark.parametrize("degree", [1, 2, 3])
def test_polynomial_is_scikit_learns_dot_product(degree):
    x, y = _points(5, 20, 2), _points(6, 15, 2)
    dot = oracle.DotProduct(sigma_0=0.7)(2 * x - 1, 2 * y - 1) / (0.7**2 + 2)
    np.testing.assert_allclose(Polynomial(degree, 0.7)(x, y), dot**degree, rtol=1e-12)
    if degree == 1:
        np.testing.assert_allclose(Linear(0.7)(x, y), dot, rtol=1e-12)


def test_additive_is_the_weighted_sum_of_its_parts():
    x, y = _points(7, 20, 3), _points(8, 15, 3)
    kernel = Additive((Part(SquaredExponential(0.3), (0, 2), 0.6), Part(Linear(1.0), (1,), 0.3)))
    linear = oracle.DotProduct(1.0)(2 * x[:, [1]] - 1, 2 * y[:, [1]] - 1) / 2
    expected = 0.6 * oracle.RBF(0.3)(x[:, [0, 2]], y[:, [0, 2]]) + 0.3 * linear
    np.testing.assert_allclose(kernel(x, y), expected, rtol=1e-12)


def test_additive_over_deals_out_lengthscales_and_equal_weights():
    kernel = Additive.over(Matern(1.5, (0.1, 0.2, 0.3)), 3)
    assert [part.kernel for part in kernel.parts] == [Matern(1.5, s) for s in (0.1, 0.2, 0.3)]
    assert [part.weight for part in kernel.parts] == [1 / 3] * 3
    assert Additive.over(SquaredExponential((0.1, 0.4)), 2).parts[1].kernel.lengthscale == 0.4
    for dimension in range(1, 60):
        Additive.over(Linear(), dimension)  # weights 1/d never exceed 1 by rounding


@pytest.mark.parametrize("kernel", STATIONARY)
def test_the_spectral_density_is_a_probability_density_whose_transform_is_the_kernel(kernel):
    def density(omega):
        return float(kernel.spectral_density([[omega]])[0])

    assert 2 * integrate.quad(density, 0, np.inf)[0] == pytest.approx(1.0, abs=1e-7)
    for delta in (0.1, 0.5):
        half = integrate.quad(density, 0, np.inf, weight="cos", wvar=delta)[0]
        assert 2 * half == pytest.approx(float(kernel.correlation([[delta]])[0]), abs=1e-7)


@pytest.mark.parametrize("kernel", STATIONARY)
@pytest.mark.parametrize("dimension", [1, 2, 3])
def test_the_spectral_density_is_the_textbook_one(kernel, dimension):
    scales = np.array((0.2, 0.5, 0.9)[:dimension])
    omega = np.random.default_rng(0).normal(size=(10, dimension)) * 3
    if isinstance(kernel, SquaredExponential):
        anisotropic = SquaredExponential(tuple(scales))
        law = stats.multivariate_normal(np.zeros(dimension), np.diag(scales**-2.0))
        expected = law.pdf(omega)
    else:
        anisotropic = Matern(kernel.smoothness, tuple(scales), kernel.form)
        freedom = 2 * kernel.smoothness
        if kernel.form == "product":
            expected = np.prod(stats.t(freedom, scale=1 / scales).pdf(omega), axis=1)
        else:
            expected = stats.multivariate_t(shape=np.diag(scales**-2.0), df=freedom).pdf(omega)
    np.testing.assert_allclose(anisotropic.spectral_density(omega), expected, rtol=1e-10)


@pytest.mark.parametrize("kernel", STATIONARY)
def test_drawn_frequencies_average_to_the_kernel(kernel):
    # Five standard deviations of a mean of 40,000 cosines: a false alarm in a million.
    omega = kernel.frequencies(np.random.default_rng(1), 40_000, 2)
    delta = np.array([[0.2, 0.1], [0.5, 0.4]])
    mean = np.cos(omega @ delta.T).mean(axis=0)
    np.testing.assert_allclose(mean, kernel.correlation(delta), atol=5 * math.sqrt(0.5 / 40_000))


@pytest.mark.parametrize("kernel", STATIONARY)
def test_second_moments_are_the_curvature_at_zero(kernel):
    moments = kernel.second_moment(2)
    if kernel != SquaredExponential(0.3) and kernel.smoothness == 0.5:
        assert np.all(np.isinf(moments))
        return
    step = 1e-5
    bend = 2 * (1 - kernel.correlation([[step, 0.0]])[0]) / step**2
    assert moments[0] == pytest.approx(bend, rel=1e-3)


@pytest.mark.parametrize("kernel", [k for k in STATIONARY if np.isfinite(k.second_moment(1)[0])])
def test_the_curvature_bound_holds_and_decreases(kernel):
    delta = np.random.default_rng(2).exponential(0.5, size=(3000, 2))
    step = 1e-4
    shift = np.array([step, 0.0])
    sides = kernel.correlation(delta + shift) + kernel.correlation(delta - shift)
    bend = (sides - 2 * kernel.correlation(delta)) / step**2
    bound = kernel.curvature(delta)
    assert np.all(np.abs(bend) <= bound[:, 0] * (1 + 1e-3) + 1e-6)
    further = kernel.curvature(delta + np.random.default_rng(3).exponential(0.1, size=(3000, 2)))
    assert np.all(further <= bound)


@given(
    st.sampled_from([*STATIONARY, Linear(0.4), Polynomial(3, 0.0), Additive.over(Linear(), 2)]),
    st.integers(0, 2**32 - 1),
)
def test_every_kernel_is_positive_definite_and_at_most_one_on_the_diagonal(kernel, seed):
    gram = kernel(*(2 * [_points(seed, 8, 2)]))
    assert np.all(np.diagonal(gram) <= 1.0 + 1e-15)
    assert np.linalg.eigvalsh(gram)[0] >= -1e-12


@pytest.mark.parametrize(
    ("build", "argument"),
    [
        (lambda: SquaredExponential(0.0), "lengthscale"),
        (lambda: SquaredExponential(-1), "lengthscale"),
        (lambda: SquaredExponential(math.nan), "lengthscale"),
        (lambda: SquaredExponential(math.inf), "lengthscale"),
        (lambda: SquaredExponential(()), "lengthscale"),
        (lambda: SquaredExponential((0.1, 0.0)), "lengthscale"),
        (lambda: SquaredExponential("long"), "lengthscale"),
        (lambda: SquaredExponential(True), "lengthscale"),
        (lambda: SquaredExponential((0.1, 0.2)).check(3), "lengthscale"),
        (lambda: SquaredExponential((0.1, 0.2))([[0.0]], [[0.0]]), "lengthscale"),
        (lambda: SquaredExponential().check(0), "dimension"),
        (lambda: Matern(1.0), "smoothness"),
        (lambda: Matern(1.5, form="round"), "form"),
        (lambda: Matern(1.5, (0.1,)).check(2), "lengthscale"),
        (lambda: Linear(-1.0), "bias"),
        (lambda: Linear(math.nan), "bias"),
        (lambda: Polynomial(0), "degree"),
        (lambda: Polynomial(1.5), "degree"),
        (lambda: Polynomial(math.inf), "degree"),
        (lambda: Part(Linear(), (), 1.0), "part.columns"),
        (lambda: Part(Linear(), (0, 0), 1.0), "part.columns"),
        (lambda: Part(Linear(), (-1,), 1.0), "part.columns"),
        (lambda: Part(Linear(), (0,), 0.0), "part.weight"),
        (lambda: Part(Additive.over(Linear(), 1), (0,), 1.0), "part.kernel"),
        (lambda: Part(SquaredExponential((0.1, 0.2)), (0,), 1.0), "lengthscale"),
        (lambda: Additive(()), "parts"),
        (lambda: Additive((Part(Linear(), (0,), 0.6), Part(Linear(), (1,), 0.6))), "parts"),
        (lambda: Additive.over(Linear(), 2).check(1), "columns"),
        (lambda: Additive.over(Linear(), 0), "dimension"),
        (lambda: Linear()([0.0], [[0.0]]), "x"),
        (lambda: Linear()([[0.0]], [[0.0, 1.0]]), "y"),
    ],
)
def test_bad_parameters_are_refused_by_name(build, argument):
    with pytest.raises(InvalidArgument) as caught:
        build()
    assert caught.value.argument == argument


def test_kernels_are_plain_values():
    assert SquaredExponential(1) == SquaredExponential(1.0)
    assert SquaredExponential([1, 2]).lengthscale == (1.0, 2.0)
    assert isinstance(SquaredExponential(np.float64(0.2)).lengthscale, float)
    assert type(SquaredExponential(np.float64(0.2)).lengthscale) is float
    assert hash(Additive.over(Matern(2.5), 3)) == hash(Additive.over(Matern(2.5), 3))


# -- kernels to be learnt


@pytest.mark.parametrize("additive", [False, True])
def test_a_learned_kernel_is_the_average_of_its_options(additive):
    options = (SquaredExponential(0.2), Matern(1.5, 0.4))
    x, y = _points(1, 20, 3), _points(2, 15, 3)
    columns = ([0], [1], [2]) if additive else ([0, 1, 2],)
    parts = [option(x[:, c], y[:, c]) for option in options for c in columns]
    np.testing.assert_allclose(
        Learned(options, additive=additive)(x, y), np.mean(parts, axis=0), rtol=1e-12
    )


@pytest.mark.parametrize(
    ("kernel", "factor", "scales"),
    [
        (SquaredExponential(0.2), 1.0, [0.2]),
        (SquaredExponential(0.2), 0.5, [0.2]),
        (SquaredExponential(0.2), 2.0, [0.1, 0.2, 0.4]),
        (SquaredExponential(0.2), 3.9, [0.1, 0.2, 0.4]),
        (SquaredExponential(0.2), 4.0, [0.05, 0.1, 0.2, 0.4, 0.8]),
        (Matern(1.5, (0.2, 0.4)), 2.0, [(0.1, 0.2), (0.2, 0.4), (0.4, 0.8)]),
    ],
    ids=str,
)
def test_options_around_a_kernel_double_within_the_factor(kernel, factor, scales):
    learned = Learned.around(kernel, factor)
    assert not learned.additive
    found = [option.lengthscale for option in learned.options]
    np.testing.assert_allclose(found, scales, rtol=1e-12)
    assert kernel in learned.options
    assert {type(option) for option in learned.options} == {type(kernel)}
    if isinstance(kernel, Matern):
        assert {option.smoothness for option in learned.options} == {kernel.smoothness}


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"options": ()}, "options"),
        ({"options": (Linear(),)}, "options"),
        ({"options": (SquaredExponential(), Polynomial(2))}, "options"),
        ({"options": (0.1, 0.2)}, "options"),
        ({"options": (Learned(),)}, "options"),
        ({"options": SquaredExponential()}, "options"),
        ({"options": None}, "options"),
        ({"options": 0.3}, "options"),
        ({"additive": 1}, "additive"),
        ({"additive": "yes"}, "additive"),
        ({"additive": True, "shares": ()}, "shares"),
        ({"additive": True, "shares": (0.9,)}, "shares"),
        ({"additive": True, "shares": (0.0, 1.0)}, "shares"),
        ({"additive": True, "shares": (0.0, -0.1)}, "shares"),
        ({"additive": True, "shares": (0.0, math.nan)}, "shares"),
        ({"additive": True, "shares": (0.0, "much")}, "shares"),
        ({"additive": True, "shares": 0.9}, "shares"),
        ({"shares": (0.0, 0.9)}, "shares"),
    ],
    ids=str,
)
def test_a_bad_choice_of_kernels_is_refused_by_name(given, argument):
    with pytest.raises(InvalidArgument) as caught:
        Learned(**given)
    assert caught.value.argument == argument


@pytest.mark.parametrize(
    ("kernel", "factor", "argument"),
    [
        (SquaredExponential(), 0.0, "factor"),
        (SquaredExponential(), -1.0, "factor"),
        (SquaredExponential(), math.inf, "factor"),
        (SquaredExponential(), "two", "factor"),
        (Linear(), 2.0, "kernel"),
        (Learned(), 2.0, "kernel"),
        (0.3, 2.0, "kernel"),
    ],
    ids=str,
)
def test_options_around_what_is_not_stationary_are_refused_by_name(kernel, factor, argument):
    with pytest.raises(InvalidArgument) as caught:
        Learned.around(kernel, factor)
    assert caught.value.argument == argument


def test_options_have_to_fit_the_dimension():
    pair = (SquaredExponential((0.1, 0.2)),)
    Learned(pair).check(2)
    for learned, dimension in ((Learned(pair), 3), (Learned(pair, additive=True), 2)):
        with pytest.raises(InvalidArgument):
            learned.check(dimension)
    Learned(additive=True).check(7)
