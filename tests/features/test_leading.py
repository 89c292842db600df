"""Leading features: what they leave out is small, they are no longer than 1, in any dimension."""

import numpy as np
import pytest

from discreet.agreement.plan import Plan
from discreet.domain.box import Box, Categorical, Integer
from discreet.errors import InvalidArgument, OutOfReach
from discreet.features.choose import choose
from discreet.features.given import rest_of
from discreet.features.kernels import (
    Additive,
    Categories,
    KernelFactor,
    Learned,
    Matern,
    Part,
    Polynomial,
    Product,
    SquaredExponential,
    on_columns,
)
from discreet.features.leading import Coordinate, leading_features
from discreet.features.nystrom import NystromFeatures
from discreet.features.products import CategoryFactor, NumberFactor, ProductFeatures
from discreet.privacy.budget import JointDP, NonPrivate
from discreet.storage import canonical

RNG = np.random.default_rng(0)
ARM = Categorical(("a", "b", "c", "d"))
MIXED = [Coordinate((0,)), Coordinate((1, 2, 3), ARM.vertices), Coordinate((4,))]


def _points(count):
    arms = ARM.vertices[RNG.integers(0, 4, count)]
    return np.column_stack([RNG.random(count), arms, RNG.random(count)])


KERNELS = {
    "squared exponential": SquaredExponential(0.5),
    "lengthscales": SquaredExponential((0.3, 1.0, 1.0, 1.0, 0.8)),
    "product of Matern": Matern(2.5, 0.7, "product"),
    "Matern": Matern(1.5, 0.9),
    "polynomial": Polynomial(3),
    "product": Product.over({0: SquaredExponential(0.4), (1, 2, 3): Categories(0.3)}),
    "learned": Learned((SquaredExponential(0.4), SquaredExponential(0.8))),
}


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_many_features_are_the_kernel(kernel):
    points = _points(300)
    features = leading_features(kernel, MIXED, points, 300)
    x = points[:60]
    phi = features(x)
    wanted = kernel(x, x)
    tolerance = 0.06 if isinstance(kernel, Matern | Learned) else 0.02
    assert np.abs(phi @ phi.T - wanted).max() < tolerance
    assert (np.square(phi).sum(axis=1) <= 1.0 + 1e-12).all()


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_few_features_are_never_longer_than_one(kernel):
    features = leading_features(kernel, MIXED, _points(300), 12)
    phi = features(_points(500))
    assert features.dimension <= 12
    assert (np.square(phi).sum(axis=1) <= 1.0 + 1e-12).all()
    assert 0.2 < features.kept <= 1.0


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_gradients_are_those_of_differences(kernel):
    features = leading_features(kernel, MIXED, _points(300), 30)
    x, c = 0.1 + 0.8 * _points(5), RNG.standard_normal((5, features.dimension))
    numbers = [0, 4] if isinstance(features, ProductFeatures) else range(5)
    slopes = features.gradient(x, c)
    for j in numbers:
        step = 1e-6 * np.eye(5)[j]
        rise = np.sum((features(x + step) - features(x - step)) * c, axis=1) / 2e-6
        assert slopes[:, j] == pytest.approx(rise, abs=1e-4)


def test_a_row_has_its_own_bits_whoever_stands_beside_it():
    for kernel in KERNELS.values():
        features, x = leading_features(kernel, MIXED, _points(300), 30), _points(40)
        alone = np.concatenate([features(row[None, :]) for row in x])
        assert np.array_equal(alone, features(x))


def test_what_a_context_leaves_of_products_is_the_same_function():
    features, x = leading_features(KERNELS["lengthscales"], MIXED, _points(300), 30), _points(20)
    rest = rest_of(features, (0,))
    found = np.einsum("nmk,nk->nm", rest.combinations(x), rest.psi(x))
    assert found == pytest.approx(features(x), abs=1e-12)
    assert rest.dimension < 16


def test_the_leading_products_are_those_of_the_largest_variance():
    numbers = [Coordinate((0,)), Coordinate((1,))]
    kernel = SquaredExponential((0.3, 0.8))
    grid = np.stack(np.meshgrid(*2 * [(np.arange(40) + 0.5) / 40]), axis=-1).reshape(-1, 2)
    few, many = (leading_features(kernel, numbers, grid, count) for count in (8, 60))
    values = np.linalg.eigvalsh(kernel(grid, grid) / len(grid))[::-1]
    assert np.square(few(grid)).sum(axis=1).mean() == pytest.approx(values[:8].sum(), abs=2e-3)
    assert few.kept == pytest.approx(values[:8].sum(), abs=5e-3)
    assert many.kept > 0.999


@pytest.mark.parametrize("seed", range(3))
def test_every_box_of_up_to_twenty_mixed_coordinates_is_accepted(seed):
    rng = np.random.default_rng(seed)
    kinds = [(0.0, 1.0), Integer(1, 9), Categorical(("x", "y", "z"))]
    names = [f"c{i}" for i in range(20)]
    coordinates = {name: kinds[rng.integers(3)] for name in names}
    for context in ((), tuple(names[1:])):
        box = Box(coordinates, context=context)
        for kernel in (SquaredExponential(1.0), Matern(2.5, 1.0), Learned()):
            plan = Plan(domain=box, privacy=JointDP(1.0, 1e-6), kernel=kernel, horizon=10_000)
            assert plan.map.dimension <= 48
            assert canonical.decode(Plan, canonical.encode(plan)).digest == plan.digest


def test_a_hundred_categories_work():
    box = Box(
        {"arm": Categorical(tuple(f"arm {i}" for i in range(100))), "age": (18, 90)},
        context=("age",),
    )
    kernel = Product.over({"arm": Categories(), "age": SquaredExponential(0.5)})
    plan = Plan(domain=box, privacy=JointDP(8.0, 1e-6), kernel=kernel, horizon=50_000)
    assert isinstance(plan.map, ProductFeatures)
    assert len(plan.map.factors[0].table) == 100


def test_names_stand_for_columns_in_sums_and_products():
    box = Box({"dose": (0, 1), "arm": ARM, "age": (18, 90)})
    named = Additive((Part(SquaredExponential(0.3), ("dose", "age"), 0.5),))
    plan = Plan(domain=box, privacy=NonPrivate(), kernel=named)
    assert plan.kernel.parts[0].columns == (0, 4)
    assert on_columns(Product.over({"arm": Categories()}), box.columns).factors[0].columns == (
        1,
        2,
        3,
    )
    with pytest.raises(InvalidArgument, match="one of 'dose', 'arm', 'age'"):
        Plan(domain=box, privacy=NonPrivate(), kernel=Product.over({"doze": Categories()}))


def test_categories_are_for_categories():
    with pytest.raises(InvalidArgument, match="Categorical only"):
        leading_features(Product.over({0: Categories()}), MIXED, _points(30), 8)
    with pytest.raises(OutOfReach, match="leading"):
        choose(Categories(), widths=(1.0,))
    for wrong in (-0.1, 1.0):
        with pytest.raises(InvalidArgument, match="correlation"):
            Categories(wrong)


def test_products_share_no_coordinate():
    factor = KernelFactor(SquaredExponential(0.3), (0,))
    with pytest.raises(InvalidArgument, match="of their own"):
        Product((factor, factor))
    with pytest.raises(InvalidArgument, match="factors"):
        Product(())


def test_terms_must_differ_because_the_length_rests_on_it():
    table = CategoryFactor(np.eye(2), np.array([[0.0], [1.0]]), (0,))
    for terms in ([[0], [0]], [[2]], [[-1]], [[0, 0]]):
        with pytest.raises(InvalidArgument, match="terms"):
            ProductFeatures((table,), np.array(terms), 1, 1.0)
    with pytest.raises(InvalidArgument, match="table"):
        CategoryFactor(1.1 * np.eye(2), np.array([[0.0], [1.0]]), (0,))


def test_a_rotation_that_makes_longer_is_refused():
    features = choose(SquaredExponential(0.5), widths=(1.0,))
    with pytest.raises(InvalidArgument, match="rotation"):
        NumberFactor(features, 1.01 * np.eye(features.dimension), 0)


def test_points_of_a_nystrom_map_are_stored_with_it():
    features = leading_features(Matern(2.5, 0.5), MIXED, _points(300), 20)
    assert isinstance(features, NystromFeatures)
    box = Box({"dose": (0, 1), "arm": ARM, "age": (0, 1)})
    plan = Plan(domain=box, privacy=NonPrivate(), kernel=Matern(2.5, 0.5), features=features)
    again = canonical.decode(Plan, canonical.encode(plan))
    x = _points(7)
    assert np.array_equal(again.map(x), features(x))
