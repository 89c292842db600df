"""A client that sends an index: by the plan's own N, K and p, once, and the same bytes again."""

from dataclasses import replace

import numpy as np
import pytest

from discreet import Bandit, Box, Client, LocalDP, Plan, Schedule, Server
from discreet.agreement.release import GENESIS
from discreet.errors import Refused
from discreet.privacy.budget import Simulation
from discreet.privacy.cap import Cap, exp_below
from discreet.privacy.clipping import Residual
from discreet.privacy.cost import PurePrivacy
from discreet.protocol.messages import IndexReport, Offer, read, write
from discreet.protocol.verifier import check_epoch
from discreet.trusted import mechanism, randomness

SETS = {"box": {}, "candidates": {"candidates": [{"dose": 2.0}, {"dose": 8.0}]}}


def plan_for(decisions, **parts):
    usual = {
        "domain": Box({"dose": (0, 10)}),
        "privacy": LocalDP(3.0),
        "decisions": decisions,
        "schedule": Schedule(first=6, growth=1.5),
        "horizon": 60,
    }
    return Plan(**(usual | parts))


PLANS = {decisions: plan_for(decisions) for decisions in SETS}


def chosen(decisions, journal=None, plan=None):
    plan = PLANS[decisions] if plan is None else plan
    server, client = Server(plan), Client(plan, journal)
    client.choose(server.offer(client.request()), **SETS[decisions])
    return server, client


# -- a round


@pytest.mark.parametrize("decisions", SETS)
def test_a_report_is_an_index_of_a_few_bytes_that_a_server_counts(decisions):
    server, client = chosen(decisions)
    report = client.report(0.7)
    size = server.study.open_epoch.encoding.cap.size
    assert isinstance(report, IndexReport)
    assert 0 <= report.index < size <= 1 << 32
    assert len(write(report)) <= 230  # id, epoch and seal are 160 of them
    assert server.receive(report).outcome == "counted"
    assert server.reports == 1


@pytest.mark.parametrize("decisions", SETS)
def test_asked_again_a_client_sends_the_same_bytes_also_after_a_restart(decisions, tmp_path):
    place = tmp_path / "mine.db"
    server, client = chosen(decisions, place)
    first = write(client.report(0.2))
    assert all(write(client.report(reward)) == first for reward in (0.2, 0.9, -5.0))
    client.close()
    again = Client(PLANS[decisions], place)
    assert write(again.outbox) == first
    assert write(again.report(0.9)) == first
    assert read(IndexReport, first) == again.outbox
    again.settle(server.receive(again.outbox))
    assert server.receive(read(IndexReport, first)).outcome == "counted"
    assert server.reports == 1
    with pytest.raises(Refused, match="1 of 1 rounds"):
        again.request()


def test_a_report_is_kept_before_it_is_shown(tmp_path, monkeypatch):
    """Whoever sees a report finds it in the journal: no second draw can follow."""
    place = tmp_path / "mine.db"
    _, client = chosen("box", place)
    kept = []
    commit = client._commit
    monkeypatch.setattr(client, "_commit", lambda *r: (kept.extend(r), commit(*r))[1])
    report = client.report(0.4)
    assert kept == [report]
    client.close()
    assert Client(PLANS["box"], place).outbox == report


def test_of_k_rounds_each_costs_a_kth_and_the_next_is_refused():
    plan = plan_for("box", privacy=LocalDP(3.0, rounds_per_user=3))
    assert plan.report_epsilon * 3 == 3
    assert plan.cost == PurePrivacy(3.0)
    server, client = Server(plan), Client(plan)
    for _ in range(3):
        offer = server.offer(client.request())
        cap = offer.epoch.encoding.cap
        assert cap.inside / cap.outside <= exp_below(plan.report_epsilon)
        client.choose(offer)
        client.settle(server.receive(client.report(0.5)))
    with pytest.raises(Refused, match="3 of 3 rounds"):
        client.request()


@pytest.mark.parametrize("decisions", SETS)
@pytest.mark.parametrize("reward", [1e300, -1e300, 0.0, True])
def test_no_answer_stops_a_report_or_is_seen_in_an_error(decisions, reward):
    server, client = chosen(decisions)
    assert server.receive(client.report(reward)).outcome == "counted"


# -- what is refused


def offer_with(server, client, **encoding):
    offer = server.offer(client.request())
    epoch = replace(offer.epoch, encoding=replace(offer.epoch.encoding, **encoding))
    return Offer(offer.id, offer.ask, epoch, offer.releases)


@pytest.mark.parametrize("decisions", SETS)
@pytest.mark.parametrize("change", ["N", "K", "p", "p a little"])
def test_an_epoch_of_another_n_k_or_p_is_refused(decisions, change):
    plan = PLANS[decisions]
    server, client = Server(plan), Client(plan)
    cap = server.study.open_epoch.encoding.cap
    other = {
        "N": Cap.of(plan.report_epsilon, 2 * cap.size, cap.nearest),
        "K": Cap.of(plan.report_epsilon, cap.size, cap.nearest + 1),
        "p": replace(cap, threshold=cap.threshold + (1 << 55)),
        "p a little": replace(cap, threshold=cap.threshold - 1),
    }[change]
    with pytest.raises(Refused, match="not randomised as the plan promises"):
        client.choose(offer_with(server, client, cap=other), **SETS[decisions])


@pytest.mark.parametrize("decisions", SETS)
@pytest.mark.parametrize("width", [2.0000001, 1e300, np.inf])
def test_a_width_beyond_the_range_is_refused(decisions, width):
    plan = PLANS[decisions]
    server, client = Server(plan), Client(plan)
    residual = Residual(np.zeros(plan.map.dimension), width)
    with pytest.raises(Refused, match="wider range"):
        client.choose(offer_with(server, client, residual=residual), **SETS[decisions])


@pytest.mark.parametrize("decisions", SETS)
def test_a_prediction_beyond_all_bounds_is_refused(decisions):
    plan = PLANS[decisions]
    server, client = Server(plan), Client(plan)
    huge = Residual(np.full(plan.map.dimension, 1e10), 1.0)
    with pytest.raises(Refused, match="prediction"):
        client.choose(offer_with(server, client, residual=huge), **SETS[decisions])


def test_a_prediction_of_other_features_is_refused():
    server, client = Server(PLANS["box"]), Client(PLANS["box"])
    with pytest.raises(Refused, match="prediction"):
        client.choose(offer_with(server, client, residual=Residual(np.zeros(1), 1.0)))


def test_a_codebook_of_another_seed_is_refused():
    server, client = Server(PLANS["candidates"]), Client(PLANS["candidates"])
    with pytest.raises(Refused, match="codebook"):
        client.choose(offer_with(server, client, seed="ab" * 32), **SETS["candidates"])


def test_reports_about_other_rows_than_the_menus_are_refused():
    server, client = Server(PLANS["box"]), Client(PLANS["box"])
    with pytest.raises(Refused, match="rows"):
        client.choose(offer_with(server, client, rows=1_000))


def test_an_epoch_of_gaussian_noise_is_refused_where_indices_were_agreed_and_the_other_way():
    indices, noise = PLANS["box"], plan_for("box", privacy=LocalDP(3.0, 1e-3), encoding="reward")
    for plan, other in ((indices, noise), (noise, indices)):
        epoch = Server(plan).study.open_epoch
        foreign = replace(epoch, encoding=Server(other).study.open_epoch.encoding)
        with pytest.raises(Refused, match="not randomised as the plan promises"):
            check_epoch(plan, foreign)


def test_the_mechanism_itself_refuses_an_epoch_that_the_plan_does_not_allow():
    plan = PLANS["box"]
    epoch = Server(plan).study.open_epoch
    cap = epoch.encoding.cap
    loose = replace(cap, threshold=cap.threshold + 1)
    epoch = replace(epoch, encoding=replace(epoch.encoding, cap=loose))
    with pytest.raises(Refused):
        mechanism.indices(
            plan, epoch, np.zeros((1, 1)), np.zeros(1), bits=randomness.OperatingSystem()
        )


@pytest.mark.parametrize("scale", [0.0, 1e100])
def test_hostile_directions_are_no_reason_to_fail(scale):
    """Privacy holds whatever they are: the client answers, and tells nobody that B phi was 0."""
    plan = PLANS["candidates"]
    server, client = Server(plan), Client(plan)
    directions = server.study.open_epoch.encoding.directions
    offer = offer_with(server, client, directions=scale * directions)
    client.choose(offer, **SETS["candidates"])
    assert 0 <= client.report(0.9).index < offer.epoch.encoding.cap.size


# -- random words


class Handed:
    """Words that were chosen beforehand."""

    def __init__(self, *words):
        self.left = list(words)

    def words(self, rows, columns):
        taken, self.left = self.left[: rows * columns], self.left[rows * columns :]
        return np.array(taken, dtype=np.uint64).reshape(rows, columns)


def test_the_threshold_decides_to_the_last_word():
    cap = Cap.of(PLANS["box"].report_epsilon, 64, 5)
    edge = cap.threshold << 2
    inside = randomness.places(cap, 2, bits=Handed(edge - 1, edge, 8, 8))
    assert inside.tolist() == [4, 5 + 4]  # word 8 is 4 uniform 63-bit integers after the first


def test_words_beyond_a_whole_multiple_are_drawn_again():
    cap = Cap.of(PLANS["box"].report_epsilon, 64, 5)
    beyond = (1 << 64) - 1  # 2^63 - 1 = 2 mod 5 is beyond the last multiple of 5
    assert randomness.places(cap, 1, bits=Handed(0, beyond, beyond, 6)).tolist() == [3]


def test_many_seeded_reports_are_those_of_each_alone():
    plan = PLANS["box"]
    epoch = Server(plan).study.open_epoch
    points, rewards = epoch.asked(5), np.linspace(0.0, 1.0, 5)
    together = mechanism.indices(
        plan, epoch, points, rewards, bits=randomness.sources(Simulation(3), range(5))
    )
    for row in range(5):
        bits = randomness.source(Simulation(3), row)
        alone = mechanism.indices(plan, epoch, points[[row]], rewards[[row]], bits=bits)
        assert alone[0] == together[row]


def test_an_index_is_as_likely_as_its_place_says():
    """10,000 real draws: the share of the cap, within five deviations (false alarms below 1e-6)."""
    cap = Cap.of(PLANS["box"].report_epsilon, 64, 5)
    places = randomness.places(cap, 10_000, bits=randomness.OperatingSystem())
    share = float(cap.share)
    assert abs((places < 5).mean() - share) < 5 * np.sqrt(share * (1 - share) / 10_000)
    assert set(places.tolist()) <= set(range(64))


# -- in one process


@pytest.mark.parametrize("decisions", SETS)
def test_a_bandit_of_clients_keeps_and_resumes_its_indices(decisions, tmp_path):
    place, plan = tmp_path / "study.db", PLANS[decisions]
    own = SETS[decisions].get("candidates")
    with Bandit(plan, place) as bandit:
        trials = [bandit.ask(own, user=f"u{i}") for i in range(6)]
        for trial in trials:
            bandit.tell(trial, 0.5)
        trial = bandit.ask(own, user="next")
        digests = [release.digest for release in bandit.study.releases]
    with Bandit(plan, place) as bandit:
        assert [release.digest for release in bandit.study.releases] == digests
        bandit.tell(trial, 0.7)
        assert bandit.study.releases[0].reports == 6
        assert bandit.study.releases[0].previous == GENESIS


def test_simulated_and_real_indices_do_not_go_together():
    server, client = Server(PLANS["box"]), Client(PLANS["box"], simulation=Simulation(1))
    client.choose(server.offer(client.request()))
    report = client.report(0.5)
    assert report.simulated
    with pytest.raises(Refused, match="simulated"):
        server.receive(report)
