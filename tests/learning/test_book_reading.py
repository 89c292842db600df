"""What sums of codewords say of people whose actions nobody knows."""

from fractions import Fraction

import numpy as np
import pytest

from discreet.agreement.plan import Plan
from discreet.domain.box import Box
from discreet.features.kernels import SquaredExponential
from discreet.learning.book_belief import BookBelief
from discreet.learning.book_reading import Geometry, Heard
from discreet.learning.posterior import Posterior
from discreet.privacy.book import best_cap, book_seed
from discreet.privacy.budget import LocalDP
from discreet.privacy.clipping import Residual
from discreet.privacy.codebook import CodebookEncoding
from discreet.simulation.play import Setting, simulate
from discreet.simulation.problems import find_problem

BOX = Box({"dose": (0.0, 1.0), "age": (0.0, 1.0)}, context=("age",))


def _plan(**parts):
    usual = {
        "domain": BOX,
        "privacy": LocalDP(4.0),
        "kernel": SquaredExponential((0.5, 0.5)),
        "rewards": (-1.0, 1.0),
        "horizon": 5_000,
    }
    return Plan(**(usual | parts))


@pytest.mark.parametrize(("epsilon", "dimension"), [(1, 5), (4, 9), (8, 17)])
def test_the_geometry_is_that_of_real_books_on_average(epsilon, dimension):
    rng = np.random.default_rng(epsilon)
    cap = best_cap(Fraction(epsilon), dimension, 1 << 12)
    shape = Geometry.of(cap, dimension)
    firsts, seconds = [], []
    for number in range(40):
        encoding = CodebookEncoding(
            Residual(np.zeros(40), 1.0),
            cap,
            np.eye(dimension, 40),
            book_seed(str(number)),
            lift=False,
        )
        v = rng.standard_normal(dimension)
        v /= np.linalg.norm(v)
        second, first = encoding.moments_of(v)
        firsts.append(first @ v)
        seconds.append(v @ second @ v)
    assert np.mean(firsts) == pytest.approx(shape.contraction, rel=0.02)
    assert np.mean(seconds) == pytest.approx(shape.along, rel=0.02)
    assert shape.along + (dimension - 1) * shape.across == pytest.approx(1.0)


def _people(plan, count, rng):
    phi = plan.map(rng.random((count, 2)))
    return phi, np.full(count, 1.0 / count)


def _sums(encoding, phi, rewards, reports, rng):
    """The codewords that people of these features, drawn at random, send: one a row."""
    who = rng.integers(len(phi), size=reports)
    h = np.clip(rewards(phi[who], rng), -encoding.residual.width, encoding.residual.width)
    vectors = encoding.vectors(encoding.along(phi[who]), h, rng.integers(1 << 62, size=reports))
    cap = encoding.cap
    near = rng.random(reports) < float(cap.share)
    places = np.where(
        near,
        rng.integers(cap.nearest, size=reports),
        rng.integers(cap.nearest, cap.size, size=reports),
    )
    return encoding.codewords(encoding.nearest_to(vectors, places)) / 2.0**14


@pytest.mark.parametrize("lift", [False, True])
def test_sums_of_codewords_have_the_mean_and_the_covariance_that_is_read(lift):
    plan, rng = _plan(), np.random.default_rng(7)
    m = plan.map.dimension
    phi, weights = _people(plan, 64, rng)
    theta = 0.2 * rng.standard_normal(m)
    before = Posterior(plan.map, 1e8 * np.eye(m), 1e8 * theta)  # f is known
    found, reports, books = [], 400, 12
    for number in range(books):
        encoding = CodebookEncoding.fit(
            Residual(np.zeros(m), 0.6),
            np.eye(3, m),
            Fraction(4),
            book_seed(str(number)),
            lift=lift,
            size=1 << 12,
        )
        draw = lambda phi, rng: phi @ theta + 0.3 * rng.standard_normal(len(phi))  # noqa: E731
        found.append(_sums(encoding, phi, draw, reports, rng)[:, :3])
    each = np.concatenate(found)
    heard = Heard(encoding, phi, weights, 1.0, None, at_ends=False)
    design, covariance = heard.observed(before, 0.09)
    # A coordinate is off by 5 standard errors with probability below 1e-6; books add 1% each.
    error = 5.0 * each.std(axis=0) / np.sqrt(len(each)) + 0.01
    assert (np.abs(each.mean(axis=0) - design @ theta) < error).all()
    assert np.cov(each.T) == pytest.approx(covariance, abs=0.08 * covariance.max())
    isotropic = np.trace(covariance) / 3 * np.eye(3)
    assert np.abs(covariance - isotropic).max() > 0.02  # what would have been wrong


def test_an_update_is_that_of_a_dense_linear_model():
    plan, rng = _plan(), np.random.default_rng(3)
    phi, weights = _people(plan, 50, rng)
    m = plan.map.dimension
    residual = Residual(0.1 * rng.standard_normal(m), 0.5)
    encoding = CodebookEncoding.fit(residual, np.eye(4, m), Fraction(2), book_seed(), lift=True)
    sums = encoding.decode(encoding.statistics(rng.integers(1 << 14, size=300), np.zeros(300, int)))
    before = Posterior.prior(plan.map, 0.25)
    heard = Heard(encoding, phi, weights, 300.0, sums, at_ends=False)
    design, covariance = heard.observed(before, 0.04)
    values = sums.first[:4] + design @ encoding.residual.prediction
    dense = before.observe(design, values, covariance)
    precision, information = heard.told(before, 0.04)
    np.testing.assert_allclose(before.precision + precision, dense.precision, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        before.information + information, dense.information, rtol=1e-7, atol=1e-9
    )


def _run(problem, epsilon, rounds, seed):
    setting = Setting(model="local", rounds=rounds, privacy=LocalDP(epsilon))
    return simulate(find_problem(problem), setting, seed=seed)


def test_doses_for_private_contexts_are_learnt_from_indices():
    run = _run("dosing-1", 8.0, 2_000, seed=1)
    assert isinstance(run.study.belief, BookBelief)
    assert run.regrets[-500:].mean() < 0.03  # one constant dose costs 0.046 a round; seeded


def test_second_moments_tell_who_comes():
    run = _run("dosing-1-skewed", 8.0, 2_000, seed=1)
    people = run.study.belief.law.people
    # Beta(2, 5) has mean 2/7; a uniform law has 1/2. Seeded.
    assert abs(people[:, 0].mean() - 2 / 7) < 0.1


def test_coin_flips_are_told_by_signs_and_not_predicted_away():
    run = _run("synthetic", 8.0, 400, seed=3)
    last = run.study.epochs[-1].encoding
    assert run.study.belief.scales.at_ends
    assert not last.lift
    assert not last.residual.prediction.any()


def test_residuals_are_lifted_where_that_is_expected_to_tell_more():
    run = _run("dosing-1", 8.0, 600, seed=1)
    assert run.study.epochs[-1].encoding.lift


def test_a_book_is_fresh_in_every_epoch():
    seeds = [epoch.encoding.seed for epoch in _run("dosing-1", 8.0, 300, seed=1).study.epochs]
    assert len(set(seeds)) == len(seeds) > 2


def test_reports_without_their_ask_teach_over_the_whole_box():
    setting = Setting(
        model="local", rounds=1_500, privacy=LocalDP(8.0), changes={"encoding": "codebook"}
    )
    run = simulate(find_problem("camelback"), setting, seed=1)
    assert run.study.belief.law is None
    assert run.regrets[-300:].mean() < 0.05  # uniform play costs 0.43 a round; seeded
