"""The server adds each report once, refuses what no honest client sends, and loses nothing."""

import itertools
import math
import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, norm
from tests.support.journals import ListJournal
from tests.support.local_plans import local_plan

from discreet import Client, JointDP, LocalDP, Schedule, Server
from discreet.errors import (
    InvalidArgument,
    JournalDamaged,
    JournalFailed,
    JournalForeign,
    Malformed,
    Refused,
    StudyEnded,
    TrialClosed,
    UnknownTrial,
)
from discreet.learning.posterior import Posterior
from discreet.learning.study import Study
from discreet.privacy.budget import Simulation
from discreet.protocol.messages import Decline, Receipt, Report, Request, read, write
from discreet.protocol.server import compacted
from discreet.protocol.tally import REFUSED, WIDER, Limits, Tally, influence
from discreet.trusted.mechanism import report as randomised
from discreet.trusted.randomness import SMOOTHING, OperatingSystem, Seeded

PLAN = local_plan()
PLANS = {
    "reward": PLAN,
    "fourier": local_plan(decisions="candidates"),
    "gram": local_plan(decisions="candidates", encoding="gram"),
    "strong": local_plan(privacy=LocalDP(0.5, 1e-3)),
    "weak": local_plan(privacy=LocalDP(15.0, 1e-2), decisions="candidates"),
}


def id_of(number):
    return f"{2**100 + number:032x}"


def report_of(server, number, reward=0.5, plan=PLAN, bits=None):
    """The report of an honest client who was given this ask."""
    epoch = server.study.open_epoch
    point = epoch.policy.from_menu(number - epoch.first)
    bits = OperatingSystem() if bits is None else bits
    return Report(id_of(number), epoch.digest, randomised(plan, epoch, point, reward, bits=bits))


def play(server, count, plan=PLAN):
    """Honest clients take the next asks; their reports, in order."""
    reports = []
    for _ in range(count):
        number = server.offer(Request(id_of(server.asked))).ask
        reports.append(report_of(server, number, plan=plan))
        assert server.receive(reports[-1]).outcome == "counted"
    return reports


# -- adding


def test_a_release_is_the_exact_sum_of_its_reports():
    server = Server(PLAN)
    reports = play(server, 7)
    first, second = server.study.releases[0], reports[3:6]
    assert first.integers.tolist() == sum(r.integers.astype(object) for r in reports[:3]).tolist()
    assert (first.asks, first.reports, first.private) == (3, 3, True)
    following = server.study.releases[1]
    assert following.integers.tolist() == sum(r.integers.astype(object) for r in second).tolist()
    assert server.reports == 1


def test_reports_in_any_order_give_the_same_release():
    digests = set()
    epoch = Server(PLAN).study.open_epoch
    points = [epoch.policy.from_menu(n) for n in range(3)]
    drawn = [randomised(PLAN, epoch, p, 0.5, bits=OperatingSystem()) for p in points]
    for order in itertools.permutations(range(3)):
        server = Server(PLAN)
        for number in range(3):
            server.offer(Request(id_of(number)))
        for number in order:
            server.receive(Report(id_of(number), epoch.digest, drawn[number]))
        server.finish()
        digests.add(server.study.releases[-1].digest)
    assert len(digests) == 1


def test_who_does_not_answer_is_not_counted():
    server = Server(PLAN)
    for number in range(3):
        server.offer(Request(id_of(number)))
    report = report_of(server, 1)
    server.receive(report)
    server.decline(Decline(id_of(0)))
    server.finish()
    (release,) = server.study.releases
    assert (release.asks, release.reports) == (3, 1)
    assert release.integers.tolist() == report.integers.tolist()


# -- once


def test_ten_thousand_replays_count_once():
    server = Server(PLAN)
    server.offer(Request(id_of(0)))
    report = report_of(server, 0)
    receipts = {server.receive(report) for _ in range(10_000)}
    assert receipts == {Receipt(id_of(0), "counted")}
    assert server.reports == 1
    server.finish()
    assert server.study.releases[0].integers.tolist() == report.integers.tolist()


def test_another_report_under_the_same_id_is_not_counted():
    server = Server(PLAN)
    server.offer(Request(id_of(0)))
    first = report_of(server, 0)
    server.receive(first)
    server.receive(report_of(server, 0, reward=1.0))
    server.finish()
    assert server.study.releases[0].integers.tolist() == first.integers.tolist()


def test_a_request_that_comes_again_gets_the_same_offer_and_takes_no_ask():
    server = Server(PLAN)
    offers = [server.offer(Request(id_of(7))) for _ in range(100)]
    assert {offer.ask for offer in offers} == {0}
    assert len({write(offer) for offer in offers}) == 1
    assert server.asked == 1


def test_a_report_for_a_closed_epoch_has_expired_whether_it_was_counted_or_not():
    server = Server(PLAN)
    numbers = [server.offer(Request(id_of(n))).ask for n in range(3)]
    late, counted = report_of(server, numbers[0]), report_of(server, numbers[1])
    server.receive(counted)
    server.offer(Request(id_of(3)))
    for report in (late, counted):
        with pytest.raises(TrialClosed, match="it has expired"):
            server.receive(report)
    assert (server.reports, server.study.releases[0].reports) == (0, 1)


def test_rounds_expire_after_the_plans_number_of_asks():
    plan = local_plan(expire_after=2, schedule=Schedule(first=9, growth=2.0))
    server = Server(plan)
    for number in range(4):
        server.offer(Request(id_of(number)))
    for number, expected in ((0, TrialClosed), (1, TrialClosed), (2, None), (3, None)):
        report = report_of(server, number, plan=plan)
        if expected is None:
            server.receive(report)
        else:
            with pytest.raises(expected, match="is expired"):
                server.receive(report)


def test_what_was_never_offered_is_refused():
    server = Server(PLAN)
    server.offer(Request(id_of(0)))
    report = report_of(server, 0)
    with pytest.raises(UnknownTrial):
        server.receive(Report(id_of(9), report.epoch, report.integers))
    with pytest.raises(UnknownTrial):
        server.decline(Decline(id_of(9)))
    with pytest.raises(InvalidArgument, match="known"):
        server.offer(Request(id_of(1), known=5))
    assert (server.asked, server.reports) == (1, 0)


def test_a_tampered_report_is_refused():
    """Each of its bytes changed in turn: nothing but the report itself is ever counted."""
    server = Server(PLAN)
    server.offer(Request(id_of(0)))
    report = report_of(server, 0)
    data, refused = write(report), 0
    for at in range(len(data)):
        for flip in (1, 2, 32):
            changed = bytearray(data)
            changed[at] ^= flip
            with pytest.raises((Malformed, UnknownTrial, TrialClosed, Refused)):
                server.receive(read(Report, bytes(changed)))
            refused += 1
    assert refused == 3 * len(data)
    assert server.reports == 0
    for forged in (
        Report(report.id, "ab" * 32, report.integers),
        Report(id_of(1), report.epoch, report.integers),
        Report(report.id, report.epoch, report.integers * 100),
    ):
        with pytest.raises((UnknownTrial, TrialClosed, Refused)):
            server.receive(forged)
    assert server.receive(read(Report, data)).outcome == "counted"


def test_a_round_ends_once():
    server = Server(PLAN)
    for number in range(2):
        server.offer(Request(id_of(number)))
    told, declined = report_of(server, 0), Decline(id_of(1))
    server.receive(told)
    for _ in range(2):
        assert server.decline(declined).outcome == "declined"
    with pytest.raises(TrialClosed, match="trial 0 is reported"):
        server.decline(Decline(id_of(0)))
    with pytest.raises(TrialClosed, match="trial 1 is abandoned"):
        server.receive(report_of(server, 1))
    with pytest.raises(TrialClosed, match="trial 0 is reported"):
        server.offer(Request(id_of(0)))


# -- what no honest client sends


def test_the_limits_are_those_of_the_docstring():
    epoch = Server(PLAN).study.open_epoch
    limits, encoding = Limits.of(PLAN, epoch), epoch.encoding
    stds, bound = encoding.stds(PLAN.map), encoding.bound(PLAN.map)
    size = stds.size
    tail = (limits.each - np.minimum(encoding.largest, bound * stds)) / stds / WIDER
    assert (2 * size * norm.sf(tail) <= REFUSED / 2 * (1 + 1e-3)).all()
    assert (2 * size * norm.sf(tail * 0.999) > REFUSED / 2).all()
    radius = (limits.norm - bound) / WIDER
    assert chi2.sf(radius**2, size) == pytest.approx(REFUSED / 2, rel=1e-2)
    assert math.sqrt(1 + SMOOTHING**-2) == WIDER


@pytest.mark.parametrize("name", PLANS)
def test_honest_reports_are_within_the_limits_at_every_end_of_the_range(name):
    """A thousand reports; a false alarm has a probability of 1000 * 2^-64."""
    plan = PLANS[name]
    epoch = Study(plan).next_epoch()
    limits = Limits.of(plan, epoch)
    points = np.random.default_rng(0).random((1_000, 1))
    points[:2] = [[0.0], [1.0]]
    rewards = np.resize([-1.0, 1.0, 0.3], 1_000)
    encoded = epoch.encoding.encode(plan.map, points, rewards)
    whitened = np.linalg.norm(encoded / limits.stds, axis=1)
    assert (whitened <= epoch.encoding.bound(plan.map)).all()
    for n in range(1_000):
        bits = Seeded(Simulation(1), n)
        reward = (rewards[n] + 1) / 2
        limits.check(randomised(plan, epoch, points[n], reward, bits=bits))
    extreme = encoded + np.sign(encoded) * (9.0 * limits.stds).astype(np.int64)
    assert (np.abs(extreme) <= limits.each).all()  # one integer nine deviations out is honest


@pytest.mark.parametrize("name", PLANS)
def test_what_is_beyond_a_limit_is_refused_and_never_cut_to_size(name):
    plan = PLANS[name]
    server = Server(plan)
    server.offer(Request(id_of(0)))
    epoch = server.study.open_epoch
    limits = Limits.of(plan, epoch)
    alone = np.zeros(limits.each.size, dtype=np.int64)
    cases = []
    for k, sign in itertools.product((0, -1), (1, -1)):
        for beyond in (limits.each[k] + 1, 2**62, 2**63 - 1):
            case = alone.copy()
            case[k] = sign * beyond
            cases.append(case)
    lowest = alone.copy()
    lowest[0] = -(2**63)  # its absolute value is itself
    together = (limits.stds * limits.norm / math.sqrt(alone.size) * 1.001).astype(np.int64)
    for case in (*cases, lowest, together):
        with pytest.raises(Refused, match="larger than any honest client's"):
            server.receive(Report(id_of(0), epoch.digest, case))
        assert server.reports == 0
    for size in (1, alone.size - 1, alone.size + 1):
        with pytest.raises(InvalidArgument, match="of them in this epoch"):
            server.receive(Report(id_of(0), epoch.digest, np.zeros(size, dtype=np.int64)))
    server.receive(Report(id_of(0), epoch.digest, (together / 1.01).astype(np.int64)))
    server.finish()
    (release,) = server.study.releases
    assert release.integers.tolist() == (together / 1.01).astype(np.int64).tolist()


def test_an_epoch_whose_sums_could_overflow_is_refused():
    epoch = replace(Study(PLAN).next_epoch(), length=1 << 40)
    with pytest.raises(InvalidArgument, match="could overflow"):
        Limits.of(PLAN, epoch)


def test_an_epoch_without_noise_has_no_limits():
    epoch = Study(local_plan(privacy=JointDP(1.0, 1e-3))).next_epoch()
    quiet = replace(epoch, encoding=replace(epoch.encoding, noise=type(epoch.encoding.noise)(0, 0)))
    with pytest.raises(InvalidArgument, match="noise on every integer"):
        Limits.of(PLAN, quiet)


# -- malicious clients


def posterior_after(plan, epoch, prior, total, reports):
    """The Gaussian update that a release of public actions makes, with scales held fixed."""
    encoding = epoch.encoding
    moments = encoding.decode(plan.map, total, asks=reports)
    phi = plan.map(epoch.asked(reports))
    g = encoding.along(phi)
    covariance = 0.25 * g.T @ g + reports * encoding.noise.cross**2 * np.eye(g.shape[1])
    return prior.observe(g.T @ phi, moments.cross, covariance)


def test_ten_thousand_clients_a_tenth_malicious_move_the_posterior_within_the_documented_bound():
    reports, malicious = 10_000, 1_000
    plan = local_plan(schedule=Schedule(first=reports, growth=2.0), signal_std=0.25, noise_std=0.25)
    server, rng = Server(plan, simulated=True), np.random.default_rng(3)
    epoch = server.study.open_epoch
    limits, prior = Limits.of(plan, epoch), Posterior.prior(plan.map, 0.25)
    grid = np.linspace(0.0, 1.0, 101)[:, None]
    # The worst direction for the mean at one action: each attacker sends as much as is counted.
    blank = posterior_after(plan, epoch, prior, np.zeros(limits.each.size), reports)
    unit = np.eye(limits.each.size)
    aim = plan.map(np.array([[0.35]]))[0]
    steps = [
        posterior_after(plan, epoch, prior, limits.stds * unit[k] * 1e6, reports)
        for k in range(limits.each.size)
    ]
    gain = np.array([aim @ (step.coefficients - blank.coefficients) for step in steps])
    direction = gain / np.linalg.norm(gain)
    attack = np.trunc(direction * limits.stds * limits.norm * (1 - 1e-6))
    attack = np.clip(attack, -limits.each, limits.each).astype(np.int64)
    honest = np.zeros(limits.each.size, dtype=np.int64)
    attackers = set(rng.permutation(reports)[:malicious].tolist())
    for number in range(reports):
        server.offer(Request(id_of(number)))
        point = epoch.policy.from_menu(number)
        reward = 0.5 + 0.3 * math.sin(6 * point[0])
        drawn = randomised(plan, epoch, point, reward, bits=Seeded(Simulation(1), number))
        honest += drawn
        sent = attack if number in attackers else drawn
        server.receive(Report(id_of(number), epoch.digest, sent, simulated=True))
    server.finish()
    (release,) = server.study.releases
    assert (release.reports, server.reports) == (reports, reports)  # none was out of bounds
    bound = influence(plan, epoch, malicious=malicious, reports=reports)
    moved = np.linalg.norm((release.integers - honest) / limits.stds)
    assert 0.25 * bound.sums < moved <= bound.sums
    clean = posterior_after(plan, epoch, prior, honest, reports)
    dirty = posterior_after(plan, epoch, prior, release.integers, reports)
    shift = np.abs(dirty.mean(grid) - clean.mean(grid)) / np.sqrt(clean.variance(grid))
    assert 0.2 * bound.mean < shift.max() <= bound.mean


def test_the_influence_grows_with_the_attackers_and_falls_with_the_crowd():
    epoch = Study(PLAN).next_epoch()
    one, two = (influence(PLAN, epoch, malicious=k, reports=10_000) for k in (1, 2))
    many = influence(PLAN, epoch, malicious=1, reports=1_000_000)
    assert (two.sums, two.mean) == (2 * one.sums, 2 * one.mean)
    assert many.mean == pytest.approx(one.mean / 10)
    assert influence(PLAN, epoch, malicious=0, reports=1).sums == 0.0
    with pytest.raises(InvalidArgument, match="reports"):
        influence(PLAN, epoch, malicious=1, reports=0)


# -- memory


def test_nothing_of_a_person_is_held_beyond_the_open_epoch():
    server = Server(PLAN)
    play(server, 3 + 3 + 6)
    state = pickle.dumps(server._tally)
    assert all(id_of(n).encode() not in state for n in range(6))
    assert all(id_of(n).encode() in state for n in range(6, 12))  # to refuse replays
    size = len(state)
    server.offer(Request(id_of(12)))
    assert len(pickle.dumps(server._tally)) < size
    assert all(id_of(n).encode() not in pickle.dumps(server._tally) for n in range(12))


def test_a_server_resumes_with_every_report_it_acknowledged():
    journal, plain = ListJournal(), Server(PLAN)
    reports = []
    for number in range(13):
        server = Server(PLAN, journal)  # a crash before every round
        for each in (server, plain):
            assert each.offer(Request(id_of(number))).ask == number
        reports.append(report_of(server, number))
        again = Server(PLAN, journal)  # and between offer and report
        for each in (again, plain):
            each.receive(reports[-1])
        assert Server(PLAN, journal).receive(reports[-1]).outcome == "counted"
    resumed = Server(PLAN, journal)
    assert (resumed.asked, resumed.reports) == (plain.asked, plain.reports)
    for each in (resumed, plain):
        each.finish()
    assert [r.digest for r in resumed.study.releases] == [r.digest for r in plain.study.releases]
    ended = Server(PLAN, journal)
    assert not ended.study.is_running
    with pytest.raises(StudyEnded):
        ended.offer(Request(id_of(99)))


def test_a_report_that_could_not_be_kept_is_not_acknowledged_and_counts_when_it_comes_again():
    journal = ListJournal()
    server = Server(PLAN, journal)
    server.offer(Request(id_of(0)))
    report = report_of(server, 0)
    journal.failing = True
    with pytest.raises(JournalFailed):
        server.receive(report)
    assert server.reports == 0
    journal.failing = False
    server.receive(report)
    assert (server.reports, Server(PLAN, journal).reports) == (1, 1)


def test_a_compacted_journal_goes_on_where_the_other_stopped():
    journal = ListJournal()
    server = Server(PLAN, journal)
    play(server, 8)
    server.offer(Request(id_of(8)))
    small = ListJournal(compacted(journal))
    assert len(small.kept) < len(journal.kept)
    text = b"".join(small.kept)
    assert all(id_of(n).encode() not in text for n in range(6))
    resumed = Server(PLAN, small)
    assert (resumed.asked, resumed.reports) == (9, 2)
    report = report_of(server, 8)
    for each in (server, resumed):
        each.receive(report)
        each.finish()
    assert server.study.releases[-1].digest == resumed.study.releases[-1].digest


def test_a_server_keeps_its_file_to_itself_and_its_plan(tmp_path):
    path = tmp_path / "server.db"
    with Server(PLAN, path) as server:
        play(server, 4)
    with Server(PLAN, path) as server:
        assert (server.asked, server.reports) == (4, 1)
    with pytest.raises(JournalForeign, match="another plan: privacy"):
        Server(local_plan(privacy=LocalDP(2.0, 1e-3)), path)
    with pytest.raises(Refused, match="that of a real study"):
        Server(PLAN, path, simulated=True)


@pytest.mark.parametrize("cut", [3, 4])
def test_a_damaged_journal_is_not_used(cut):
    journal = ListJournal()
    server = Server(PLAN, journal)
    play(server, 4)
    del journal.kept[cut]  # the epoch, or its first offer
    with pytest.raises(JournalDamaged, match="does not fit the ones before it"):
        Server(PLAN, journal)


def test_the_study_ends_at_its_horizon():
    plan = local_plan(horizon=4)
    server = Server(plan)
    play(server, 4, plan=plan)
    with pytest.raises(StudyEnded, match="the horizon is reached"):
        server.offer(Request(id_of(4)))
    server.finish()
    server.finish()
    assert [release.asks for release in server.study.releases] == [3, 1]
    with pytest.raises(StudyEnded):
        server.receive(Report(id_of(3), server.study.epochs[-1].digest, np.array([1])))


def test_a_simulated_server_claims_no_privacy():
    server = Server(PLAN, simulated=True)
    for _ in range(4):
        client = Client(PLAN, simulation=Simulation(1))
        client.choose(server.offer(client.request()))
        server.receive(client.report(0.5))
    assert server.study.releases[0].private is False


def test_a_plan_that_is_not_local_has_no_server():
    with pytest.raises(InvalidArgument, match="plan: expected one with LocalDP"):
        Tally(local_plan(privacy=JointDP(1.0, 1e-3)))


def test_clients_and_server_play_a_study_over_the_wire():
    server, served = Server(PLAN), 0
    for _ in range(10):
        client = Client(PLAN)
        client.choose(server.offer(client.request()))
        client.settle(server.receive(client.report(0.5)))
        served += 1
    assert server.asked == served
    assert [release.reports for release in server.study.releases] == [3, 3]
