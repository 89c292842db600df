"""The printed calibrations: what the errata says of them, and audits that catch what leaks."""

import itertools

import numpy as np
import pytest
from scipy.optimize import brentq

from discreet.errors import InvalidArgument
from discreet.experiments.as_printed import (
    FORMS,
    LocalPlayer,
    Printed,
    simulate_printed,
)
from discreet.experiments.printed_audit import CASES, PrintedGame, audit_printed
from discreet.learning.prefix_belief import Practical
from discreet.learning.theory import Levels
from discreet.privacy.clipping import Noise
from discreet.privacy.correlation import Independent, Tree
from discreet.privacy.cost import GaussianPrivacy
from discreet.simulation.play import Setting, plan_for
from discreet.simulation.problems import find_problem
from discreet.simulation.worlds import World

GRID = list(itertools.product((0.1, 1.0, 10.0), (0.01, 0.1), (1024, 10_000)))


def excess(form, alpha, beta, horizon):
    """How much more noise than it takes."""
    printed = Printed(form, alpha=alpha, beta=beta, horizon=horizon)
    return printed.claim / printed.cost


# -- what the errata says


def test_the_joint_lemma_adds_as_much_too_much_as_the_errata_says():
    variance = [excess("variance", *where) for where in GRID]
    std = [excess("std", *where) for where in GRID]
    assert f"{min(variance):.1f}" == "4.6"
    assert round(max(variance)) in (46, 47)
    assert round(min(std)) == 40
    assert 45_000 < max(std) < 48_000


def test_the_appendix_form_has_the_true_delta_of_the_errata():
    printed = Printed("appendix", alpha=0.1, beta=0.01, horizon=1024)
    assert not printed.private
    assert f"{GaussianPrivacy(printed.cost).delta(0.1):.3f}" == "0.195"


def test_the_local_lemma_has_the_true_delta_of_the_errata():
    printed = Printed("local", alpha=10.0, beta=0.1, horizon=1)
    assert f"{GaussianPrivacy(printed.cost).delta(10.0):.3f}" == "0.211"
    assert "NOT PRIVATE" in printed.label

    def gap(alpha):
        form = Printed("local", alpha=alpha, beta=0.1, horizon=1)
        return form.cost - form.claim

    assert brentq(gap, 1.0, 10.0) == pytest.approx(7.8, abs=0.1)


def test_the_joint_lemma_under_protects_large_rewards():
    """From R = 9.2 on, says the errata."""

    def gap(norm):
        large = Printed("variance", alpha=10.0, beta=0.1, horizon=1024, norm=norm)
        return large.cost - large.claim

    assert f"{brentq(gap, 1.0, 50.0):.1f}" == "9.2"


@pytest.mark.parametrize("norm", [0.3, 1.0, 1.2, 2.0, 9.2])
def test_no_pair_of_rounds_moves_the_joint_matrix_by_more(norm):
    """A fine grid of rewards and overlaps, against the closed form; one that comes as far."""
    printed = Printed("variance", alpha=1.0, beta=0.1, horizon=64, norm=norm)
    y = np.linspace(-norm, norm, 801)[:, None]
    c = np.linspace(-1.0, 1.0, 401)
    far = ((1 + norm**2) ** 2 + (1 + y**2) ** 2 - 2 * (c + norm * y) ** 2) / 2
    assert printed.change**2 * (1 - 1e-3) <= far.max() <= printed.change**2 * (1 + 1e-9)


def test_the_tail_terms_add_noise():
    for form in FORMS:
        plain, tail = (
            Printed(form, alpha=1.0, beta=0.1, horizon=64, tail=m).noise for m in (None, 10)
        )
        assert tail.cross > plain.cross


@pytest.mark.parametrize("dimension", [16, 69, 400])
def test_the_printed_spectrum_is_several_times_ours(dimension):
    printed = Printed("variance", alpha=1.0, beta=0.1, horizon=1024)
    ours = printed.noise.gram * Levels.of(Tree(), 1024).norm(dimension, failure=0.05)
    assert 3.0 < printed.spectrum(dimension, 0.1).smallest / ours < 8.0
    local = Printed("local", alpha=1.0, beta=0.1, horizon=1024).spectrum(dimension, 0.1)
    assert local.largest == 3.0 * local.smallest


# -- audits


def test_audits_catch_what_leaks_and_nothing_else():
    """Both leaks lie many standard deviations beyond their claims; the rest cost far less.

    All bounds hold together but for 1e-6.
    """
    bounds = audit_printed(30_000, rng=np.random.Generator(np.random.Philox(3)))
    caught = [bound > printed.claim for printed, bound in zip(CASES, bounds, strict=True)]
    assert caught == [True, True, False, False]
    for printed, bound in zip(CASES, bounds, strict=True):
        assert 0.7 * printed.cost < bound <= printed.cost


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("norm", [0.5, 1.0, 3.0])
def test_the_audited_pair_is_the_worst(form, norm):
    printed = Printed(form, alpha=1.0, beta=0.1, horizon=64, norm=norm)
    game = PrintedGame.of(printed)
    distance = np.linalg.norm((game.worlds[1] - game.worlds[0]) / game.stds)
    assert distance == pytest.approx(printed.cost, rel=1e-6)


def test_no_random_pair_of_reports_is_farther_apart_than_the_cost():
    printed = Printed("local", alpha=10.0, beta=0.1, horizon=1)
    rng = np.random.Generator(np.random.Philox(5))
    rows, columns = np.triu_indices(3)
    for _ in range(2000):
        phi = rng.standard_normal((2, 3))
        phi /= np.linalg.norm(phi, axis=1, keepdims=True)
        y = rng.uniform(-1.0, 1.0, 2)
        reports = [
            np.append(np.outer(p, p)[rows, columns], r * p) for p, r in zip(phi, y, strict=True)
        ]
        stds = np.repeat([printed.noise.gram, printed.noise.cross], [6, 3])
        assert np.linalg.norm((reports[0] - reports[1]) / stds) <= printed.cost + 1e-9


# -- playing it


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("confidence", ["practical", "theory"])
def test_every_form_plays(form, confidence):
    printed = Printed(form, alpha=1.0, beta=0.1, horizon=12)
    found = simulate_printed(find_problem("synthetic"), printed, seed=1, confidence=confidence)
    assert found.regrets.shape == (12,)
    assert found.regrets.min() >= -1e-9


def test_the_local_diagonal_has_no_more_noise_than_the_rest():
    world = World.draw(find_problem("synthetic"), seed=1)
    plan = plan_for(world.problem, Setting(rounds=1), world.decisions, "a test")
    seen = []

    class Rigged(Practical):
        def positive(self, gram, std, prior):
            seen.append(gram)
            return np.eye(len(gram))

    normals = np.ones((plan.map.dimension * (plan.map.dimension + 3) // 2,))
    rng = type("Ones", (), {"standard_normal": lambda self, shape: normals})()
    player = LocalPlayer(plan, Independent(), Noise(5.0, 1.0), (1,), Rigged(), rng)
    player._point = np.array([[0.5, 0.5]])
    player.hear(1.0)
    phi = plan.map(player._point)[0]
    np.testing.assert_allclose(seen[0] - np.outer(phi, phi), 5.0, atol=1e-9)


@pytest.mark.parametrize(
    ("options", "argument"),
    [
        ({"form": "guess"}, "form"),
        ({"alpha": 0.0}, "alpha"),
        ({"beta": 1.0}, "beta"),
        ({"horizon": 0}, "horizon"),
        ({"norm": 0.0}, "norm"),
    ],
)
def test_what_makes_no_sense_is_refused(options, argument):
    with pytest.raises(InvalidArgument) as caught:
        Printed(**({"form": "std", "alpha": 1.0, "beta": 0.1, "horizon": 10} | options))
    assert caught.value.argument == argument
