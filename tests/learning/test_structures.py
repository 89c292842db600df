"""Structures as priors over one feature map: their covariance, their evidence, their mixture."""

import dataclasses

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from discreet import Bandit, Box, JointDP, NonPrivate, Plan, Simulation
from discreet.learning.belief import Belief
from discreet.learning.personal_belief import PersonalBelief
from discreet.learning.structures import Asked, structures_of

DOMAIN = Box({"dose": (0, 1), "rate": (0, 1)})
PLAN = Plan(DOMAIN, JointDP(epsilon=3.0, delta=1e-6), horizon=1000)


def test_a_structures_coefficients_reproduce_its_kernel():
    structures, points = structures_of(PLAN), np.random.default_rng(0).random((40, 2))
    phi = PLAN.map(points)
    for structure, own in zip(structures.structures, structures.covariances, strict=True):
        covariance, exact = phi @ own @ phi.T, np.ones((40, 40))
        for column in ([0], [1]):
            similar = structure.factor(is_category=False)(points[:, column], points[:, column])
            exact *= structure.share + (1.0 - structure.share) * similar
        scale = covariance[0, 0] / exact[0, 0]  # each is scaled to vary by 1 around its mean
        assert np.abs(covariance / scale - exact).max() < 0.02


def test_evidence_is_that_of_a_dense_calculation():
    structures, rng = structures_of(PLAN), np.random.default_rng(1)
    m, shape, noise = PLAN.map.dimension, 0.2, 0.3
    phi = PLAN.map(rng.random((15, 2)))
    values = rng.standard_normal(15)
    found = structures.mixture(structures.parts(shape, phi.T @ phi / noise, phi.T @ values / noise))
    dense = np.array(
        [
            multivariate_normal.logpdf(values, cov=phi @ (L @ L.T) @ phi.T + noise * np.eye(15))
            for L in structures._roots(shape)
        ]
    )
    expected = np.exp(dense - dense.max())
    assert np.allclose(found.weights, expected / expected.sum(), atol=1e-6)
    roots = structures._roots(shape)
    means = [
        L @ L.T @ phi.T @ np.linalg.solve(phi @ (L @ L.T) @ phi.T + noise * np.eye(15), values)
        for L in roots
    ]
    assert np.allclose(phi @ found.mean, phi @ (found.weights @ np.array(means)), atol=1e-6)
    assert found.covariance.shape == (m, m)


def test_a_mixture_is_less_sure_than_its_parts_where_they_disagree():
    structures, rng = structures_of(PLAN), np.random.default_rng(2)
    phi = PLAN.map(rng.random((30, 2)))
    information = phi.T @ np.sign(rng.standard_normal(30)) / 0.1
    found = structures.mixture(structures.parts(0.2, phi.T @ phi / 0.1, information))
    within = np.zeros_like(found.covariance)
    for weight, root in zip(found.weights, structures._roots(0.2), strict=True):
        half = np.linalg.inv(np.eye(len(root)) + root.T @ phi.T @ phi @ root / 0.1)
        within += weight * (root @ half @ root.T)
    more = np.linalg.eigvalsh(found.covariance - within)
    assert more.min() > -1e-3
    assert more.max() > 0.01


def test_before_any_release_every_structure_is_as_likely():
    believed = Belief.before(PLAN).structures
    assert believed["nearly a sum over coordinates"] == pytest.approx(1 / 3)
    assert sum(believed.values()) == pytest.approx(1.0)


@pytest.mark.parametrize("together", [True, False])
def test_coordinates_that_act_together_are_told_from_a_sum(together):
    plan = Plan(DOMAIN, NonPrivate(), rewards=(-1.0, 1.0), horizon=300)
    rng = np.random.default_rng(3)
    with Bandit(plan, simulation=Simulation(1)) as bandit:
        for _ in range(300):
            trial = bandit.ask()
            x, y = trial.action["dose"] - 0.5, trial.action["rate"] - 0.5
            mean = 3.0 * x * y if together else x - 2.0 * y**2
            bandit.tell(trial, mean + 0.05 * rng.standard_normal())
        bandit.finish()
        sums = bandit.study.structures.get("nearly a sum over coordinates", 0.0)
    assert sums < 1e-3 if together else sums > 0.2


# -- under contexts

PEOPLE = Box({"dose": (0, 1), "age": (0, 1), "weight": (0, 1)}, context=["age", "weight"])
PERSONAL = Plan(PEOPLE, JointDP(epsilon=8.0, delta=1e-6), horizon=2000)


def told(f, points, noise=0.01):
    """What answers without noise at these points say of the coefficients."""
    phi = PERSONAL.map(points)
    return phi.T @ phi / noise, phi.T @ f(points) / noise


@pytest.mark.parametrize("kind", range(3))
def test_answers_tell_what_contexts_do(kind):
    """Functions of each structure: the likeliest kind is their own, on average over 12 of them."""
    structures, rng = structures_of(PERSONAL), np.random.default_rng(3)
    words = structures.structures[kind].words
    root = np.linalg.cholesky(structures.covariances[kind] + 1e-9 * np.eye(PERSONAL.map.dimension))
    points, weights = rng.random((300, 3)), dict[str, float]()
    for _ in range(12):
        theta = np.sqrt(0.2) * root @ rng.standard_normal(len(root))
        believed = structures.believed(
            structures.parts(0.2, *told(lambda x, t=theta: PERSONAL.map(x) @ t, points))
        )
        for name, weight in believed.items():
            weights[name] = weights.get(name, 0.0) + weight / 12
    assert max(weights, key=weights.__getitem__) == words


def test_what_releases_are_made_by_is_wide_whatever_is_believed():
    structures, points = structures_of(PERSONAL), np.random.default_rng(4).random((60, 3))
    parts = structures.parts(0.2, *told(lambda x: -((x[:, 0] - 0.6) ** 2), points, noise=0.1))
    served, wide = (structures.posterior(parts, wide=each) for each in (False, True))
    other = PERSONAL.map(np.array([[0.5, 0.0, 0.0]])) - PERSONAL.map(np.array([[0.5, 1.0, 1.0]]))
    assert wide.variance_of(other) > 2.0 * served.variance_of(other)
    found = structures.mixture(parts, wide=True)
    narrow = [not structure.is_wide for structure in structures.structures]
    assert found.weights[narrow].max() == 0.0


def test_with_few_people_who_differ_little_everyone_gets_nearly_the_same():
    belief = PersonalBelief.before(PERSONAL)
    points = np.random.default_rng(5).random((8, 3))
    precision, information = told(lambda x: -((x[:, 0] - 0.6) ** 2), points, noise=0.05)
    belief = dataclasses.replace(belief, window=belief.window.plus(precision, information))
    ages = np.array([[0.5, 0.1, 0.5], [0.5, 0.9, 0.5]])
    served, wide = (np.ptp(each.mean(ages)) for each in (belief.weighed, belief.posterior))
    assert served < wide


def test_answers_tell_which_contexts_matter():
    points = np.random.default_rng(6).random((400, 3))
    structures = structures_of(PERSONAL)
    parts = structures.parts(
        0.2, *told(lambda x: -((x[:, 0] - 0.2 - 0.6 * x[:, 1]) ** 2), points, noise=0.1)
    )
    needed = structures.needed(parts)
    assert list(needed) == ["age", "weight"]
    assert needed["age"] > 0.99
    assert needed["weight"] < 0.3


def test_before_any_release_each_context_matters_as_likely_as_the_others():
    needed = PersonalBelief.before(PERSONAL).needed
    assert needed["age"] == pytest.approx(needed["weight"])
    assert needed["age"] == pytest.approx(2.5 / 4)  # together, alone, and half of one of the two


# -- what features leave out


def test_what_is_left_out_is_how_far_a_fit_of_the_features_is_from_the_function():
    """Functions drawn with all that features leave out, fitted where people were asked."""
    names = [f"c{j}" for j in range(5)]
    domain = Box({"dose": (0, 1), **dict.fromkeys(names, (0, 1))}, context=names)
    plan = Plan(domain, JointDP(8.0, 1e-6), horizon=2000)
    structures, rng = structures_of(plan), np.random.default_rng(7)
    asked, points = rng.random((600, 6)), rng.random((6, 6))
    features, phi = plan.map(asked), plan.map(points)
    everything = np.concatenate([asked, points])
    one = np.eye(len(structures.structures))[0]
    gram = plan.kernel.under(structures.structures[0], everything, everything)
    gram /= structures.sizes[0]
    root = np.linalg.cholesky(gram + 1e-9 * np.eye(len(gram)))
    f = root @ rng.standard_normal((len(gram), 4000))
    fit = np.linalg.lstsq(features, f[:600], rcond=None)[0]
    expected = np.square(f[600:] - phi @ fit).mean(axis=1)
    everyone = Asked(asked, np.full(600, 1 / 600), np.eye(plan.map.dimension))
    found = structures.left_out(1.0, one, points, everyone)
    assert np.abs(found / expected - 1.0).max() < 0.25


def test_what_was_not_answered_is_left_out_whole():
    structures, rng = structures_of(PERSONAL), np.random.default_rng(8)
    points, m = rng.random((5, 3)), PERSONAL.map.dimension
    one = np.eye(len(structures.structures))[0]
    phi, covariance = PERSONAL.map(points), structures.covariances[0]
    whole = 1.0 / structures.sizes[0] - np.sum((phi @ covariance) * phi, axis=1)
    nobody = Asked(rng.random((50, 3)), np.full(50, 0.02), np.zeros((m, m)))
    found = structures.left_out(0.5, one, points, nobody)
    assert np.allclose(found, 0.5 * np.maximum(whole, 0.0))


@pytest.mark.parametrize("scales", [{"noise_std": 1e-9}, {"signal_std": 1e-6}])
@pytest.mark.parametrize("privacy", [NonPrivate(), JointDP(8.0, 1e-6)])
def test_answers_without_noise_or_signal_leave_posteriors_of_full_rank(scales, privacy):
    people = Box({"dose": (0, 1), "age": (0, 1), "size": (0, 1)}, context=["age", "size"])
    bandit = Bandit(Plan(people, privacy, horizon=200, **scales), simulation=_simulation(privacy))
    for number in range(200):
        context = {"age": number * 0.37 % 1, "size": number * 0.73 % 1}
        bandit.tell(bandit.ask(context=context, user=str(number)), 0.5)
    low, high = bandit.best(context=context).interval
    assert low <= 0.5 <= high


def _simulation(privacy):
    return None if isinstance(privacy, NonPrivate) else Simulation(1)
