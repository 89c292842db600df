"""Every order in which people, a privatizer, a server and a hostile network can act.

The network delivers any message at any time, any number of times, or never: also an answer before
its ask. Custodian and publisher are the real ones, and start from their journals before every
single step: each step is a crash, too. Noise is fresh at every step, and remembered, so that the
sums behind each release can be checked exactly.
"""

from functools import cache

import numpy as np
import pytest
from tests.support.journals import ListJournal, decoded
from tests.support.plain_sums import LookedAt

from discreet import (
    Box,
    Custodian,
    JointDP,
    Plan,
    Publisher,
    Schedule,
    Simulation,
    SquaredExponential,
)
from discreet.agreement.release import Release
from discreet.errors import DiscreetError
from discreet.protocol.messages import Answer, Ask, Decline, Message, Opening, Receipt, write
from discreet.protocol.records import Entered, Told
from discreet.storage import canonical
from discreet.trusted.mechanism import release as release_of
from discreet.trusted.randomness import source
from discreet.trusted.sums import Sums


def make_plan(first, expire_after):
    return Plan(
        domain=Box({"dose": (0, 10)}),
        privacy=JointDP(2.0, 1e-3),
        kernel=SquaredExponential(1.0),
        schedule=Schedule(first=first, growth=2.0),
        expire_after=expire_after,
    )


@pytest.fixture(autouse=True)
def _read_once(monkeypatch):
    """The same bytes are read thousands of times, into the same frozen values."""
    monkeypatch.setattr(canonical, "decode", cache(canonical.decode))


def parsed(data):
    return canonical.decode(Message, data)


def summed(looked_at, epoch, told, points):
    """The answers of this epoch, and those before it that its release looks at again."""
    plan = looked_at.plan
    asked = np.array([points[answer.number] for answer in told])
    rewards = np.array([plan.centred(answer.reward) for answer in told])
    asked = asked.reshape(len(told), plan.domain.dimension)
    return looked_at.sums(epoch, asked, rewards).tolist()


class World:
    """Real roles, each step from journals to journals."""

    def __init__(self, plan, people):
        self.plan, self.seeds, self.steps = plan, {}, 0
        self.people = [
            write(message)
            for n in range(people)
            for message in (
                Ask(f"{n + 1:032x}", f"user {n}"),
                Answer(f"{n + 1:032x}", 0.25 + 0.5 * n),
                *((Decline(f"{n + 1:032x}"),) if n == 0 else ()),  # others' would repeat the story
            )
        ]
        trusted, public = ListJournal(), ListJournal()
        Custodian(plan, trusted, simulation=Simulation(0))
        opening = write(Publisher(plan, public).opening)
        self.start = (tuple(trusted.kept), tuple(public.kept), frozenset({opening}))
        self.custodian_step = cache(self._custodian_step)
        self.publisher_step = cache(self._publisher_step)

    def _custodian_step(self, journal, data):
        """The journal after a message (None: it is told to finish), and what is said."""
        kept = ListJournal(journal)
        self.steps += 1
        custodian = Custodian(self.plan, kept, simulation=Simulation(self.steps))
        act = {Ask: custodian.choose, Answer: custodian.receive, Decline: custodian.decline}
        act[Opening] = custodian.open
        try:
            message = None if data is None else parsed(data)
            reply = custodian.finish() if message is None else act[type(message)](message)
        except DiscreetError:
            assert tuple(kept.kept) == journal  # what is refused changes nothing
            reply = None
        if isinstance(reply, Release):
            self.seeds.setdefault(reply.digest, self.steps)
        return tuple(kept.kept), None if reply is None else write(reply)

    def _publisher_step(self, journal, data):
        kept = ListJournal(journal)
        publisher = Publisher(self.plan, kept)
        try:
            reply = write(publisher.publish(parsed(data)))
        except DiscreetError:
            assert tuple(kept.kept) == journal
            reply = None
        return tuple(kept.kept), reply

    def successors(self, state):
        trusted, public, net = state
        openings = [data for data in net if isinstance(parsed(data), Opening)]
        for data in (*self.people, *openings, None):
            after, reply = self.custodian_step(trusted, data)
            yield after, public, net | ({reply} if reply else set())
        for data in net:
            if isinstance(parsed(data), Release):
                after, reply = self.publisher_step(public, data)
                yield trusted, after, net | ({reply} if reply else set())

    # -- what must hold

    @cache  # noqa: B019
    def counted(self, journal):
        """The rounds counted, after checking every release against the answers behind it."""
        epoch, points, own, told, ids = None, {}, [], [], []
        looked_at = LookedAt(self.plan)
        for record in [decoded(Custodian, data) for data in journal]:
            match record:
                case Opening():
                    assert not own  # an answer after the release would be in none
                    epoch = record.epoch
                case Entered():
                    points[record.asked.number] = record.asked.point
                    ids.append(record.id)
                case Told():
                    own.append(record)
                    told.append(record.number)
                case Release():
                    assert record.epoch == epoch.digest
                    assert self.exact(epoch, record) == summed(looked_at, epoch, own, points)
                    own = []
        assert len(set(told)) == len(told)  # no answer counts twice
        assert len(set(ids)) == len(ids)  # no ask is two rounds
        return {ids[number] for number in told}

    def exact(self, epoch, release):
        """The sums behind a release: its noise taken away."""
        bits = source(Simulation(self.seeds[release.digest]), epoch.number)
        nothing = Sums(release.integers.size)
        noise = release_of(self.plan, epoch, nothing, asks=0, bits=bits).integers
        return (release.integers - noise).tolist()

    def check(self, state):
        trusted, public, net = state
        counted = self.counted(trusted)
        messages = [parsed(data) for data in net]
        shown = [m for m in messages if isinstance(m, Release)]
        assert len({m.epoch for m in shown}) == len(shown)  # nothing is drawn twice
        assert all(write(m) in trusted for m in shown)  # what is shown was kept before
        published = [data for data in public[1:] if b'"type":"Release"' in data]
        assert set(published) <= {write(m) for m in shown}
        receipts = [m for m in messages if isinstance(m, Receipt)]
        assert {m.id for m in receipts if m.outcome == "counted"} <= counted  # none is lost
        assert not {m.id for m in receipts if m.outcome == "declined"} & counted
        assert len({m.previous for m in messages if isinstance(m, Opening)}) <= len(shown) + 1
        for data in public:
            decoded(Publisher, data)  # no message of a person is among them
        return len(counted), len(published)


@pytest.mark.parametrize(
    ("first", "expire_after", "found"),
    [(2, 5, {(2, 1), (2, 2)}), (1, 5, {(2, 2), (2, 3)}), (1, 1, {(0, 3), (1, 3), (2, 3)})],
)
def test_no_order_counts_twice_loses_an_answer_or_draws_twice(first, expire_after, found):
    world = World(make_plan(first, expire_after), people=2)
    seen, frontier, outcomes = {world.start}, [world.start], set()
    while frontier:
        following = []
        for state in frontier:
            outcomes.add(world.check(state))
            for after in world.successors(state):
                if after not in seen:
                    seen.add(after)
                    following.append(after)
        frontier = following
        assert len(seen) < 100_000
    assert len(seen) > 250
    assert found <= outcomes
