"""Search: never worse than a dense grid, always admitted and snapped, always the same."""

import numpy as np
import pytest

from discreet.agreement.plan import Plan
from discreet.domain.box import Box, Categorical, Continuous, Integer
from discreet.errors import Refused
from discreet.features.choose import choose
from discreet.features.kernels import Additive, Linear, Part, Polynomial, SquaredExponential
from discreet.learning.posterior import Posterior
from discreet.learning.search import Score, latin_hypercube, maximise, maximise_under, spread
from discreet.privacy.budget import NonPrivate

XY = {"x": (0, 1), "y": (0, 1)}
# Name: domain, lengthscale, grid points of a continuous coordinate.
DOMAINS = {
    "interval": (Box({"x": (0, 1)}), 0.1, 2001),
    "box": (Box(XY), 0.15, 151),
    "ball": (Box(XY, shape="ball"), 0.3, 201),
    "half plane": (Box(XY, feasible="x + y <= 0.9"), 0.3, 201),
    "disc": (Box(XY, feasible="(x - 0.5)**2 + (y - 0.5)**2 <= 0.16"), 0.3, 201),
    "two islands": (Box(XY, feasible="x + y <= 0.6 or x * y >= 0.5"), 0.3, 201),
    "integer": (Box({"x": (0, 1), "n": Integer(0, 9)}), 0.3, 1001),
    "two integers": (Box({"x": (0, 1), "n": Integer(0, 2), "k": Integer(0, 9)}), 0.4, 301),
    "categorical": (Box({"x": (0, 1), "c": Categorical(("a", "b", "c"))}), 0.4, 1001),
    "mixed": (
        Box({"x": (0, 1), "n": Integer(0, 9), "c": Categorical(("a", "b"))}, feasible="x * n <= 5"),
        0.5,
        501,
    ),
    "only discrete": (Box({"n": Integer(-3, 9), "c": Categorical(("a", "b", "c"))}), 0.4, 2),
}


def _grid(domain, per_axis):
    axes = [
        np.linspace(0, 1, per_axis)[:, None]
        if isinstance(domain.coordinate(name), Continuous)
        else domain.settings(name)
        for name in domain.names
    ]
    positions = np.meshgrid(*(np.arange(len(axis)) for axis in axes), indexing="ij")
    columns = [axis[place.ravel()] for axis, place in zip(axes, positions, strict=True)]
    points = np.concatenate(columns, axis=1)
    return points[domain.admits(points)]


def _learnt(domain, kernel, seed, error=1e-2):
    """A posterior after twenty rewards of pure noise: many peaks, some on the border."""
    rng = np.random.default_rng(seed)
    features = choose(kernel, widths=domain.widths, diameter=domain.diameter, error=error)
    phi = features(spread(domain, 20, rng))
    prior = Posterior.prior(features, 1.0)
    posterior = prior.absorb(phi.T @ phi, phi.T @ rng.standard_normal(20), noise_variance=0.05)
    return posterior, posterior.draws(rng.standard_normal((8, features.dimension)))


@pytest.mark.parametrize("optimism", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("name", DOMAINS)
def test_no_point_of_a_dense_grid_is_better(name, optimism):
    domain, lengthscale, per_axis = DOMAINS[name]
    posterior, tilts = _learnt(domain, SquaredExponential(lengthscale), seed=0)
    score = Score(posterior.features, posterior.whitening, optimism)
    found = maximise(score, domain, tilts)
    pieces = np.array_split(_grid(domain, per_axis), 8)
    best = np.concatenate([score.table(piece, tilts) for piece in pieces], axis=1).max(axis=1)
    assert (score.values(found, tilts) >= best - 1e-6).all()


@pytest.mark.parametrize("name", DOMAINS)
def test_every_point_found_is_admitted_snapped_and_the_same_again(name):
    domain, lengthscale, _ = DOMAINS[name]
    posterior, tilts = _learnt(domain, SquaredExponential(lengthscale), seed=1)
    score = Score(posterior.features, posterior.whitening, 1.0)
    found = maximise(score, domain, tilts)
    assert found.shape == (8, domain.dimension)
    assert domain.admits(found).all()
    assert np.array_equal(domain.snap(found), found)
    assert maximise(score, domain, tilts).tobytes() == found.tobytes()


def _tilt(features, points, values):
    """The least-squares coefficients of a function the features can express exactly."""
    coefficients, *_ = np.linalg.lstsq(features(points), values, rcond=None)
    return coefficients[None, :]


def test_a_parabola_has_its_known_maximum():
    domain = Box(XY)
    features = choose(Polynomial(2), widths=np.ones(2))
    x = np.random.default_rng(0).random((50, 2))
    tilt = _tilt(features, x, -((x[:, 0] - 0.3) ** 2) - 2 * (x[:, 1] - 0.77) ** 2)
    found = maximise(Score(features, np.eye(features.dimension), 0.0), domain, tilt)
    assert np.allclose(found, [[0.3, 0.77]], rtol=0, atol=1e-4)


def test_a_plane_over_a_ball_is_highest_where_the_gradient_leaves_it():
    features = choose(Linear(), widths=np.ones(2))
    x = np.random.default_rng(0).random((50, 2))
    tilt = _tilt(features, x, 3 * x[:, 0] + 4 * x[:, 1])
    found = maximise(Score(features, np.eye(features.dimension), 0.0), Box(XY, shape="ball"), tilt)
    assert np.allclose(found, [[0.5 + 0.3, 0.5 + 0.4]], rtol=0, atol=1e-4)


def test_a_plane_over_a_predicate_is_highest_in_its_corner():
    features = choose(Linear(), widths=np.ones(2))
    x = np.random.default_rng(0).random((50, 2))
    tilt = _tilt(features, x, 2 * x[:, 0] + x[:, 1])
    domain = Box(XY, feasible="x + y <= 1.2")
    score = Score(features, np.eye(features.dimension), 0.0)
    assert score.values(maximise(score, domain, tilt), tilt)[0] > 2.2 - 1e-4


@pytest.mark.parametrize("feasible", [None, "dose * pills <= 3 + age / 90"])
def test_the_context_is_left_exactly_as_it_came(feasible):
    coordinates = {
        "age": (18, 90),
        "dose": (0, 1),
        "sex": Categorical(("f", "m", "x")),
        "pills": Integer(0, 5),
    }
    domain = Box(coordinates, context=["age", "sex"], feasible=feasible)
    posterior, tilts = _learnt(domain, SquaredExponential(0.8), seed=2, error=0.1)
    score = Score(posterior.features, posterior.whitening, 0.5)
    given = domain.encode_context({"age": 33.3, "sex": "x"})
    found = maximise(score, domain, tilts, context=given)
    assert (found[:, domain.context_columns] == given).all()
    assert domain.admits(found).all()
    assert np.array_equal(domain.snap(found), found)
    free = _grid(domain, 51)
    free = free[(free[:, domain.columns("sex")] == given[1:]).all(axis=1)]
    free[:, domain.columns("age")] = given[0]
    free = free[domain.admits(free)]
    assert (score.values(found, tilts) >= score.table(free, tilts).max(axis=1) - 1e-6).all()


def test_a_context_of_a_ball_leaves_a_slice_of_it():
    domain = Box({"x": (0, 1), "y": (0, 1), "age": (0, 1)}, context=["age"], shape="ball")
    posterior, tilts = _learnt(domain, SquaredExponential(0.4), seed=3)
    score = Score(posterior.features, posterior.whitening, 0.5)
    found = maximise(score, domain, tilts, context=np.array([0.9]))
    assert (found[:, 2] == 0.9).all()
    assert domain.admits(found).all()
    grid = np.stack(np.meshgrid(*2 * [np.linspace(0.2, 0.8, 151)], [0.9]), axis=-1).reshape(-1, 3)
    grid = grid[domain.admits(grid)]
    assert (score.values(found, tilts) >= score.table(grid, tilts).max(axis=1) - 1e-6).all()


def test_a_context_that_leaves_no_action_is_refused():
    domain = Box({"dose": (0, 1), "age": (0, 1)}, context=["age"], feasible="age <= 0.5")
    posterior, tilts = _learnt(domain, SquaredExponential(0.5), seed=4)
    with pytest.raises(Refused, match="feasib"):
        maximise(
            Score(posterior.features, posterior.whitening, 0.0),
            domain,
            tilts,
            context=np.array([0.9]),
        )


def test_an_additive_model_in_twenty_dimensions_is_maximised_coordinate_by_coordinate():
    d = 20
    domain = Box({f"x{j}": (0, 1) for j in range(d)})
    features = choose(Additive.over(SquaredExponential(0.15), d), widths=np.ones(d), error=1e-2)
    tilts = np.random.default_rng(5).standard_normal((4, features.dimension))
    score = Score(features, np.eye(features.dimension), 0.0)
    found = maximise(score, domain, tilts)
    line = np.linspace(0, 1, 4001)
    phi = features(np.repeat(line[:, None], d, axis=1))
    best = np.stack(
        [(tilts[:, g.features] @ phi[:, g.features].T).max(axis=1) for g in features.groups]
    )
    assert (score.values(found, tilts) >= best.sum(axis=0) - 1e-6).all()


def test_groups_that_split_a_category_still_give_one_of_its_values():
    domain = Box({"c": Categorical(("a", "b", "c", "d")), "x": (0, 1)})
    kernel = Additive.over(SquaredExponential(0.4), domain.dimension)
    posterior, tilts = _learnt(domain, kernel, seed=6)
    for optimism in (0.0, 1.0):
        score = Score(posterior.features, posterior.whitening, optimism)
        found = maximise(score, domain, tilts)
        assert np.array_equal(domain.snap(found), found)
        best = score.table(_grid(domain, 1001), tilts).max(axis=1)
        assert (score.values(found, tilts) >= best - 1e-6).all()


def test_scores_agree_however_they_are_asked_for():
    domain = Box(XY)
    posterior, tilts = _learnt(domain, SquaredExponential(0.3), seed=7)
    points = np.random.default_rng(0).random((8, 2))
    for optimism in (0.0, 1.5):
        score = Score(posterior.features, posterior.whitening, optimism)
        own = score.values(points, tilts)
        phi = posterior.features(points)
        std = np.sqrt(posterior.variance(points))
        assert np.allclose(own, (phi * tilts).sum(axis=1) + optimism * std, rtol=0, atol=1e-10)
        assert np.allclose(np.diagonal(score.table(points, tilts)), own, rtol=0, atol=1e-10)
        values, gradient = score.values_and_gradient(points, tilts)
        assert np.allclose(values, own, rtol=0, atol=1e-10)
        for j, shift in enumerate(1e-6 * np.eye(2)):
            numeric = score.values(points + shift, tilts) - score.values(points - shift, tilts)
            assert np.allclose(gradient[:, j], numeric / 2e-6, rtol=0, atol=1e-5)


def test_a_latin_hypercube_has_one_point_in_every_slice():
    points = latin_hypercube(50, 4, np.random.default_rng(0))
    for column in points.T:
        assert sorted(np.floor(50 * column)) == list(range(50))


@pytest.mark.parametrize("name", DOMAINS)
def test_spread_points_are_as_many_as_asked_admitted_and_snapped(name):
    domain = DOMAINS[name][0]
    points = spread(domain, 77, np.random.default_rng(0))
    assert points.shape == (77, domain.dimension)
    assert domain.admits(points).all()
    assert np.array_equal(domain.snap(points), points)


@pytest.mark.parametrize("optimism", [0.0, 0.5])
def test_groups_that_share_a_coordinate_are_not_maximised_one_by_one(optimism):
    domain = Box(XY)
    kernel = Additive(
        (
            Part(SquaredExponential(0.1), (0,), 0.4),
            Part(SquaredExponential(0.3), (0,), 0.3),
            Part(SquaredExponential(0.2), (1,), 0.3),
        )
    )
    posterior, tilts = _learnt(domain, kernel, seed=5)
    score = Score(posterior.features, posterior.whitening, optimism)
    best = score.values(maximise(score, domain, tilts), tilts)
    assert (best >= score.table(_grid(domain, 201), tilts).max(axis=1) - 1e-6).all()


@pytest.mark.parametrize("rule", [None, "dose * age <= 400"])
def test_many_contexts_in_one_search_have_the_maxima_of_one_search_each(rule):
    box = Box({"dose": (0, 10), "pills": Integer(1, 4), "age": (18, 90)}, ["age"], rule)
    plan = Plan(domain=box, kernel=SquaredExponential(0.3), privacy=NonPrivate())
    rng = np.random.default_rng(0)
    tilts = rng.standard_normal((12, plan.map.dimension))
    contexts = rng.random((12, 1))
    score = Score(plan.map, np.empty((0, 0)), optimism=0.0)
    together = maximise_under(score, box, tilts, contexts)
    alone = np.concatenate(
        [
            maximise(score, box, tilt[None, :], context=own)
            for tilt, own in zip(tilts, contexts, strict=True)
        ]
    )
    assert (together[:, -1] == contexts[:, 0]).all()
    assert box.admits(together).all()
    scale = score.values(alone, tilts).std()
    assert score.values(together, tilts) == pytest.approx(
        score.values(alone, tilts), abs=0.02 * scale
    )
