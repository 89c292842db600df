"""A server of indices: it counts each once, refuses what is none, and adds exact sums."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.trusted.test_index_client import PLANS, SETS, plan_for

from discreet import Client, Server
from discreet.errors import InvalidArgument, Malformed, Refused
from discreet.protocol.index_limits import IndexLimits
from discreet.protocol.messages import LARGEST_INDEX, IndexReport, Report, Request, read, write
from discreet.protocol.tally import influence


def asked(decisions, count=1):
    server, clients = Server(PLANS[decisions]), []
    for _ in range(count):
        client = Client(PLANS[decisions])
        client.choose(server.offer(client.request()), **SETS[decisions])
        clients.append(client)
    return server, clients


@pytest.mark.parametrize("decisions", SETS)
def test_what_is_no_index_of_the_epoch_is_refused_and_not_counted(decisions):
    server, (client,) = asked(decisions)
    epoch, size = server.study.open_epoch, server.study.open_epoch.encoding.cap.size
    name = client._open_id
    for index in (size, size + 1, LARGEST_INDEX):
        with pytest.raises(Refused, match="no index"):
            server.receive(IndexReport(name, epoch.digest, index))
    with pytest.raises(Refused, match="indices"):
        server.receive(Report(name, epoch.digest, np.array([3])))
    assert server.reports == 0
    assert server.receive(IndexReport(name, epoch.digest, size - 1)).outcome == "counted"


def test_a_server_of_noisy_integers_refuses_an_index():
    plan = plan_for("box", privacy=type(PLANS["box"].privacy)(3.0, 1e-3), encoding="reward")
    server, client = Server(plan), Client(plan)
    offer = server.offer(client.request())
    client.choose(offer)
    with pytest.raises(Refused, match="no index"):
        server.receive(IndexReport(offer.id, offer.epoch.digest, 3))


@pytest.mark.parametrize("index", [-1, LARGEST_INDEX + 1, 1.0, True])
def test_an_index_has_at_most_four_bytes(index):
    with pytest.raises(InvalidArgument, match="index"):
        IndexReport("ab" * 16, "cd" * 32, index)


def test_a_report_that_was_changed_on_the_way_does_not_read():
    sent = write(IndexReport("ab" * 16, "cd" * 32, 9173))
    with pytest.raises(Malformed, match="seal"):
        read(IndexReport, sent.replace(b"9173", b"9174"))


@pytest.mark.parametrize("decisions", SETS)
def test_batches_are_counted_as_single_reports_are(decisions):
    server, clients = asked(decisions, 6)
    reports = [client.report(0.1 * i) for i, client in enumerate(clients)]
    alone = Server(PLANS[decisions])
    for report in reports:
        alone.offer(Request(report.id))
        alone.receive(report)
    replies = server.receive_many([*reports, *reports])
    assert [reply.outcome for reply in replies] == 12 * ["counted"]
    assert server.reports == alone.reports == 6
    server.finish(), alone.finish()
    assert server.study.releases[0].digest == alone.study.releases[0].digest


@pytest.mark.parametrize("decisions", SETS)
def test_a_release_is_the_exact_sum_of_what_reports_add(decisions):
    server, clients = asked(decisions, 5)
    epoch = server.study.open_epoch
    reports = [client.report(0.2 * i) for i, client in enumerate(clients)]
    server.receive_many(reports[::-1])  # in any order
    server.finish()
    (release,) = server.study.releases
    indices = np.array([report.index for report in reports])
    rows = epoch.policy.rows(np.arange(5))
    assert np.array_equal(release.integers, epoch.encoding.statistics(indices, rows))
    assert (release.reports, release.private) == (5, True)


def test_a_server_resumes_with_every_index_it_acknowledged(tmp_path):
    plan, place = PLANS["box"], tmp_path / "server.db"
    server = Server(plan, place)
    for i in range(4):
        client = Client(plan)
        client.choose(server.offer(client.request()))
        server.receive(client.report(0.3 * i))
    server.close()
    again = Server(plan, place)
    assert again.reports == 4
    again.finish()
    assert again.study.releases[0].reports == 4


def test_an_epoch_whose_sums_could_overflow_is_refused():
    epoch = Server(PLANS["box"]).study.open_epoch
    with pytest.raises(InvalidArgument, match="overflow"):
        IndexLimits.of(replace(epoch, length=1 << 40), 3)


# -- malicious clients


@pytest.mark.parametrize("decisions", SETS)
def test_liars_move_the_sums_by_no_more_than_the_distance_of_two_codewords_each(decisions):
    """All of k reports replaced by anything: by search over every pair of indices."""
    epoch = Server(PLANS[decisions]).study.open_epoch
    encoding = epoch.encoding
    size = encoding.cap.size
    if decisions == "box":
        values = 2 * np.arange(size) - (size - 1)
        assert values.max() - values.min() == 2 * (size - 1)
        return
    words = np.ldexp(encoding.codewords(np.arange(size)).astype(float), -14)
    assert np.linalg.norm(words, axis=1).max() <= 1.0 + 1e-3


def test_the_influence_grows_with_the_liars_and_falls_with_the_crowd():
    for plan in PLANS.values():
        epoch = Server(plan).study.open_epoch
        one, two = (influence(plan, epoch, malicious=k, reports=10_000) for k in (1, 2))
        many = influence(plan, epoch, malicious=1, reports=1_000_000)
        assert two.sums == pytest.approx(2 * one.sums)
        assert many.typical == pytest.approx(one.typical / 10)
        assert one.typical < one.mean


def test_what_is_proven_of_liars_who_choose_their_action_does_not_fall_with_the_crowd():
    epoch = Server(PLANS["box"]).study.open_epoch
    few, many = (
        influence(PLANS["box"], epoch, malicious=k, reports=n) for k, n in ((4, 100), (16, 10**6))
    )
    assert many.mean == pytest.approx(2 * few.mean)


def test_of_a_codebook_nothing_is_proven_about_the_mean():
    plan = next(plan for decisions, plan in PLANS.items() if decisions != "box")
    epoch = Server(plan).study.open_epoch
    assert influence(plan, epoch, malicious=1, reports=100).mean == math.inf
    assert influence(plan, epoch, malicious=0, reports=100).mean == 0.0
