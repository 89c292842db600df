"""Every order in which a few clients, a server and a hostile network can act, crashes included.

The network keeps what was ever sent and delivers any of it, at any time, any number of times, or
never. Client and server are the real ones, and start from their journals before every single
step: each step is a crash, too. A step is run once for each journal it can meet, and remembered.
"""

from collections import Counter
from functools import cache

import numpy as np
import pytest
from tests.support.journals import ListJournal, decoded

from discreet import Box, Client, LocalDP, Plan, Schedule, Server, SquaredExponential
from discreet.errors import DiscreetError
from discreet.privacy.budget import Simulation
from discreet.protocol.messages import (
    Decline,
    Message,
    Offer,
    Receipt,
    Report,
    Request,
    read,
    write,
)
from discreet.storage import canonical


def make_plan(first, rounds):
    return Plan(
        domain=Box({"dose": (0, 10)}),
        privacy=LocalDP(4.0, 1e-3, rounds_per_user=rounds),
        encoding="reward",
        kernel=SquaredExponential(1.0),
        schedule=Schedule(first=first, growth=2.0),
    )


@cache
def parsed(data):
    return canonical.decode(Message, data)


class World:
    """Real roles, each step from journals to journals."""

    def __init__(self, plan, clients):
        self.plan = plan
        self.requests = plan.privacy.rounds_per_user  # others would only repeat the story
        journal = ListJournal()
        Server(plan, journal, simulated=True)
        start = ListJournal()
        Client(plan, start, simulation=Simulation(0))
        self.journals, self.numbers = [], {}
        self.start = (self.number(journal), (self.number(start),) * clients, frozenset())
        self.server_step = cache(self._server_step)
        self.client_step = cache(self._client_step)

    def number(self, journal):
        """A small number for what a journal holds: states are compared often."""
        kept = tuple(journal.kept)
        if kept not in self.numbers:
            self.numbers[kept] = len(self.journals)
            self.journals.append(kept)
        return self.numbers[kept]

    def _server_step(self, journal, data):
        """The server's journal after a message, and its reply, if any."""
        kept = ListJournal(self.journals[journal])
        server = Server(self.plan, kept, simulated=True)
        message = parsed(data)
        act = {Request: server.offer, Report: server.receive, Decline: server.decline}
        try:
            reply = write(act[type(message)](message))
        except DiscreetError:
            assert self.number(kept) == journal  # what is refused changes nothing
            reply = None
        return self.number(kept), reply

    def _client_step(self, number, journal, action, data=None):
        """A client's journal after an action, and what it sends, if anything."""
        kept = ListJournal(self.journals[journal])
        client = Client(self.plan, kept, simulation=Simulation(number))
        sent = None
        try:
            match action:
                case "request" if b"".join(kept.kept).count(b'"Request"') < self.requests:
                    client.request(f"{number + 1:x}{len(kept.kept):031x}")
                case "report":
                    client.report(0.25 * number)
                case "abandon":
                    client.abandon()
                case "expire":
                    client.expire()
                case "choose":
                    client.choose(read(Offer, data))
                case "settle":
                    client.settle(read(Receipt, data))
                case "send":
                    sent = None if client.outbox is None else write(client.outbox)
        except DiscreetError:
            assert self.number(kept) == journal
        return self.number(kept), sent

    def successors(self, state):
        journal, clients, net = state
        for data in net:
            message = parsed(data)
            if isinstance(message, Request | Report | Decline):
                after, reply = self.server_step(journal, data)
                yield after, clients, net | ({reply} if reply else set())
                continue
            action = "choose" if isinstance(message, Offer) else "settle"
            for number in range(len(clients)):
                yield self.after_client(state, number, action, data)
        for number in range(len(clients)):
            for action in ("request", "report", "abandon", "expire", "send"):
                yield self.after_client(state, number, action)

    def after_client(self, state, number, action, data=None):
        journal, clients, net = state
        own, sent = self.client_step(number, clients[number], action, data)
        others = (*clients[:number], own, *clients[number + 1 :])
        return journal, others, net | ({sent} if sent else set())

    # -- what must hold

    @cache  # noqa: B019
    def counted(self, journal):
        """The ids a server counted, after checking its sums against the reports, one by one."""
        records = [decoded(Server, data) for data in self.journals[journal]]
        reports = [record for record in records if isinstance(record, Report)]
        assert max(Counter(r.id for r in reports).values(), default=0) <= 1
        server = Server(self.plan, ListJournal(self.journals[journal]), simulated=True)
        releases = [*server.study.releases, server._tally.release()]
        for epoch, release in zip(server.study.epochs, releases, strict=True):
            own = [r.integers for r in reports if r.epoch == epoch.digest]
            assert release.reports == len(own)
            assert release.integers.tolist() == np.sum([0 * release.integers, *own], 0).tolist()
        assert len(reports) == sum(release.reports for release in releases)
        return frozenset(r.id for r in reports)

    @cache  # noqa: B019
    def answers(self, journal):
        """A client's reports by id: never two for a round, never more rounds than its cap."""
        records = [decoded(Client, data) for data in self.journals[journal]]
        reports = [record for record in records if isinstance(record, Report)]
        assert max(Counter(r.id for r in reports).values(), default=0) <= 1
        assert len(reports) <= self.plan.privacy.rounds_per_user
        settled = {r.id for r in records if isinstance(r, Receipt) and r.outcome == "counted"}
        return {r.id: write(r) for r in reports}, settled

    def check(self, state):
        journal, clients, net = state
        counted = self.counted(journal)
        answers, settled = {}, set()
        for client in clients:
            own, done = self.answers(client)
            answers |= own
            settled |= done
        messages = [parsed(data) for data in net]
        sent = [m for m in messages if isinstance(m, Report)]
        acknowledged = {m.id for m in messages if isinstance(m, Receipt) and m.outcome == "counted"}
        assert len({m.id for m in sent}) == len(sent)  # nobody answers twice
        assert all(write(m) == answers[m.id] for m in sent)  # what is sent was kept before
        assert acknowledged <= counted  # an accepted report is never lost
        assert counted <= {m.id for m in sent}  # nothing is counted that nobody sent
        assert settled <= counted
        return len(counted), len(answers)


def explore(world, most):
    """Every reachable state, breadth first; what must hold is checked in each."""
    seen, frontier, found = {world.start}, [world.start], set()
    while frontier:
        found.update(world.check(state) for state in frontier)
        reached = {after for state in frontier for after in world.successors(state)}
        frontier = list(reached - seen)
        seen |= reached
        assert len(seen) <= most
    return len(seen), found


@pytest.mark.parametrize(
    ("clients", "first", "rounds"),
    [(1, 1, 1), (1, 2, 2), (2, 1, 1), (2, 2, 1)],
    ids=["alone", "twice", "one epoch each", "one epoch for both"],
)
def test_no_interleaving_counts_twice_or_loses_an_accepted_report_or_answers_twice(
    clients, first, rounds
):
    reached, found = explore(World(make_plan(first, rounds), clients), most=20_000)
    assert reached >= 20
    everyone = clients * rounds
    assert (0, 0) in found
    assert (everyone, everyone) in found  # all can be counted
    assert (0, everyone) in found  # and all can be lost on the way, or come too late
