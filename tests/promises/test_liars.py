"""Liars move what is learnt by no more than is proven: the worst that they can send is searched."""

import math
from fractions import Fraction

import numpy as np
import pytest

from discreet import Box, LocalDP, Plan, Schedule, SquaredExponential
from discreet.agreement.release import Release
from discreet.learning.study import Study
from discreet.privacy.book import BOOK_BITS, book_seed
from discreet.privacy.budget import Simulation
from discreet.privacy.clipping import Residual
from discreet.privacy.codebook import CodebookEncoding
from discreet.protocol.messages import IndexReport, Request
from discreet.protocol.server import Server
from discreet.protocol.tally import influence
from discreet.trusted import mechanism
from discreet.trusted.randomness import Seeded

REPORTS = 10_000
#: What the protocol's page says of Gaussian reports at epsilon = 8, delta = 0.1, a tenth lying.
GAUSSIAN = 283.0
GRID = np.linspace(0.0, 1.0, 101)[:, None]


def plan_for(epsilon, **parts):
    return Plan(
        domain=Box({"dose": (0, 10)}),
        privacy=LocalDP(epsilon),
        kernel=SquaredExponential(0.4),
        schedule=Schedule(first=REPORTS, growth=2.0),
        **({"signal_std": 0.25, "noise_std": 0.25} | parts),
    )


def after(study, indices):
    """The study once these reports came, one of each ask."""
    epoch = study.open_epoch
    rows = epoch.policy.rows(np.arange(REPORTS))
    return study.released(
        Release(
            epoch=epoch.digest,
            previous=epoch.previous,
            asks=REPORTS,
            reports=REPORTS,
            integers=epoch.encoding.statistics(indices, rows),
            private=False,
        )
    )


def honest_world(epsilon):
    plan = plan_for(epsilon)
    study = Study(plan, simulated=True)
    study = study.opened(study.next_epoch())
    points = study.open_epoch.asked(REPORTS)
    rewards = 0.5 + 0.3 * np.sin(6 * points[:, 0])
    bits = Seeded(Simulation(1), 0)
    indices = mechanism.indices(plan, study.open_epoch, points, rewards, bits=bits)
    return study, points, indices


def shifted(study, clean, sent):
    """How far these reports move the posterior mean, at the worst place, in its deviations."""
    dirty = after(study, sent).posterior
    shift = np.abs(dirty.mean(GRID) - clean.mean(GRID)) / np.sqrt(clean.variance(GRID))
    return float(shift.max())


@pytest.mark.parametrize("epsilon", [1.0, 8.0])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
def test_liars_who_are_spread_move_the_posterior_within_the_typical_bound(epsilon, share):
    """For any aim the worst report is an end of the interval; aims are searched over the box."""
    study, points, honest = honest_world(epsilon)
    epoch, clean = study.open_epoch, after(study, honest).posterior
    liars = np.random.default_rng(7).permutation(REPORTS)[: round(share * REPORTS)]
    bound = influence(study.plan, epoch, malicious=len(liars), reports=REPORTS).typical
    phi, half = study.plan.map(points[liars]), clean.whitening
    worst = 0.0
    for aim in GRID[::5]:
        gain = phi @ half.T @ half @ study.plan.map(aim[None, :])[0]
        sent = honest.copy()
        sent[liars] = np.where(gain > 0, epoch.encoding.cap.size - 1, 0)
        worst = max(worst, shifted(study, clean, sent))
    assert 0.15 * bound < worst <= bound  # neither beyond the bound, nor far below


@pytest.mark.parametrize("epsilon", [1.0, 4.0, 8.0])
@pytest.mark.parametrize("share", [0.01, 0.05, 0.1])
def test_liars_who_choose_their_rows_move_the_posterior_within_the_proven_bound(epsilon, share):
    """They fill the rows nearest to an aim, alone, with one end of the interval or the other."""
    study, _, honest = honest_world(epsilon)
    epoch, clean = study.open_epoch, after(study, honest).posterior
    bound = influence(study.plan, epoch, malicious=round(share * REPORTS), reports=REPORTS)
    rows, menu = epoch.policy.rows(np.arange(REPORTS)), epoch.policy.menu[:, 0]
    worst = 0.0
    for aim in GRID[::5, 0]:
        nearest = np.argsort(np.abs(menu - aim)[rows], kind="stable")
        for end in (0, epoch.encoding.cap.size - 1):
            sent = honest.copy()
            sent[nearest[: round(share * REPORTS)]] = end
            worst = max(worst, shifted(study, clean, sent))
    assert 0.1 * bound.mean < worst <= bound.mean
    if epsilon > 1.0:
        assert worst > bound.typical  # which does not hold for liars like these


def test_liars_among_people_with_private_actions_stay_within_what_is_typical():
    """A tenth, who all send codewords along one aim; aims are searched over the box.

    What is compared is the average over the box. It is a measurement here: no bound is proven.
    """
    plan = plan_for(4.0, decisions="candidates")
    study = Study(plan, simulated=True)
    study = study.opened(study.next_epoch())
    epoch, rng = study.open_epoch, np.random.default_rng(3)
    points = rng.random((REPORTS, 1))
    rewards = 0.5 + 0.3 * np.sin(6 * points[:, 0])
    honest = mechanism.indices(plan, epoch, points, rewards, bits=Seeded(Simulation(1), 0))
    clean = after(study, honest).posterior
    words = epoch.encoding.codewords(np.arange(epoch.encoding.cap.size))
    bound = influence(plan, epoch, malicious=REPORTS // 10, reports=REPORTS).typical
    shifts = []
    for aim in GRID[::25]:
        g = epoch.encoding.along(plan.map(aim[None, :]))[0]
        sent = honest.copy()
        sent[: REPORTS // 10] = np.argmax(words[:, : len(g)] @ g)
        dirty = after(study, sent).posterior
        shift = np.abs(dirty.mean(GRID) - clean.mean(GRID)) / np.sqrt(clean.variance(GRID))
        shifts.append(float(shift.mean()))
    assert 0.02 * bound < max(shifts) <= bound


def test_a_server_counts_a_lie_as_it_counts_an_answer():
    """Nothing tells them apart: what the search above adds is what a server adds."""
    study, _, honest = honest_world(8.0)
    honest[:1000] = study.open_epoch.encoding.cap.size - 1
    server = Server(study.plan, simulated=True)
    ids = [f"{number:032x}" for number in range(REPORTS)]
    server.offer_many([Request(each) for each in ids])
    epoch = server.study.open_epoch.digest
    server.receive_many(
        [IndexReport(i, epoch, int(x), simulated=True) for i, x in zip(ids, honest, strict=True)]
    )
    server.finish()
    assert server.study.releases[0].digest == after(study, honest).releases[0].digest


def test_the_bound_is_below_a_third_of_that_of_gaussian_reports_if_liars_are_spread_alone():
    """Of those who choose their rows less than half is proven; and it takes `noise_std`."""
    plan = plan_for(8.0)
    bound = influence(plan, Study(plan).next_epoch(), malicious=REPORTS // 10, reports=REPORTS)
    assert bound.typical < GAUSSIAN / 3 < bound.mean < GAUSSIAN / 2
    assert (bound.typical, bound.mean) == pytest.approx((42.4, 134.0), abs=0.1)
    blind = plan_for(8.0, noise_std=None)
    bound = influence(blind, Study(blind).next_epoch(), malicious=REPORTS // 10, reports=REPORTS)
    assert (bound.typical, bound.mean) == pytest.approx((363.4, 1149.2), abs=0.1)


@pytest.mark.parametrize("lift", [False, True])
@pytest.mark.parametrize("r", [1, 2, 4, 8])
@pytest.mark.parametrize("epsilon", [1.0, 2.0, 4.0, 8.0])
def test_what_is_typical_of_a_codebook_is_below_a_third_for_up_to_eight_directions(
    r, epsilon, lift
):
    book = codebook(epsilon, r, lift=lift)
    moved = 2 * (REPORTS // 10) / math.sqrt(REPORTS * book.typical_variance())
    assert moved < GAUSSIAN / 3


@pytest.mark.parametrize(("r", "moved"), [(1, 198), (2, 134), (4, 98), (8, 93)])
def test_with_lift_and_no_residuals_it_is_above_a_third_for_few_directions(r, moved):
    """At epsilon = 8 nearly all of a codeword is in the lift: liars need not hide in much."""
    book = codebook(8.0, r, lift=True)
    found = 2 * (REPORTS // 10) / math.sqrt(REPORTS * book.typical_variance(0.0))
    assert found == pytest.approx(moved, abs=1.0)
    assert (found > GAUSSIAN / 3) == (r < 8)


@pytest.mark.parametrize("lift", [False, True])
def test_the_typical_variance_of_a_codebook_is_that_of_its_exact_moments(lift):
    """Over directions drawn evenly, with residuals of either sign; within a few percent."""
    book = codebook(4.0, 4, lift=lift)
    g = np.random.default_rng(0).standard_normal((64, 4))
    g /= np.linalg.norm(g, axis=1, keepdims=True)
    h = np.where(np.arange(64) % 2, 1.0, -1.0) / 3.0
    second = book.second(g, h).mean(axis=0)[:4, :4]
    assert np.trace(second) / 4 == pytest.approx(book.typical_variance(1.0 / 9.0), rel=0.05)


def test_no_codeword_is_longer_than_one_so_a_lie_moves_a_sum_by_at_most_two():
    book = codebook(4.0, 8, lift=True)
    words = np.ldexp(book.codewords(np.arange(book.cap.size)).astype(float), -BOOK_BITS)
    assert np.linalg.norm(words, axis=1).max() < 1.0 + 2.0**-12


def codebook(epsilon, r, *, lift):
    residual = Residual(np.zeros(r), 1.0)
    return CodebookEncoding.fit(
        residual, np.eye(r), Fraction(epsilon), book_seed("liars"), lift=lift
    )
