"""What each role does, act by act: how it is begun, what came before, and how it is done once.

An act may be done again, by the same role or by one that is resumed: it is then a repeat, and
shows what it showed before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from tests.support.crash_writer import PRIVATE_PLAN
from tests.support.local_plans import local_plan

from discreet import Bandit, Custodian, LocalDP, Publisher, Schedule, ShuffledDP, ShuffleServer
from discreet.agreement.release import Release
from discreet.learning.epoch import Epoch
from discreet.protocol.batches import Batch, Sealed
from discreet.protocol.messages import Answer, Ask, Decline, IndexReport, Report, Request
from discreet.protocol.records import Asked
from discreet.protocol.server import Server
from discreet.storage import canonical
from discreet.trusted.client import Client
from discreet.trusted.shuffler import Shuffler

LOCAL_PLAN = local_plan(
    privacy=LocalDP(4.0, 1e-3, rounds_per_user=3), schedule=Schedule(first=2, growth=1.01)
)
IDS = tuple(f"{number:032x}" for number in range(9))


@dataclass(frozen=True)
class Act:
    """`prepare` brings a new role to the moment before and returns what the act needs.

    `do` takes the role and that, acts, and says what is shown.
    """

    name: str
    begin: Callable
    prepare: Callable
    do: Callable

    def __str__(self):
        return self.name


def skeleton(record):
    """A record without what is drawn anew in every run."""
    if isinstance(record, Release):
        return "release", record.asks, record.reports
    if isinstance(record, Report):
        return "report", record.epoch, record.integers.size
    if isinstance(record, IndexReport):
        return "index", record.epoch
    if isinstance(record, Sealed):
        return "sealed", record.epoch, record.key
    if isinstance(record, Batch):
        return "batch", record.epoch, record.asks, tuple(map(len, record.groups))
    if isinstance(record, Request):
        return "request", record.known
    if isinstance(record, Epoch):
        return "epoch", record.number, record.first, record.length
    if isinstance(record, Asked):
        return "asked", record.number
    return canonical.encode(record)


# -- a custodian, and the publisher beside it


def custodian(journal):
    return Custodian(PRIVATE_PLAN, journal)


def publisher(journal):
    return Publisher(PRIVATE_PLAN, journal)


@cache
def openings():
    """The first two epochs of a study, by a publisher that is given a release without noise."""
    beside = publisher(None)
    first = beside.opening
    integers = np.ones(first.epoch.encoding.size(PRIVATE_PLAN.map), dtype=np.int64)
    release = Release(first.epoch.digest, first.previous, 2, integers, private=True)
    return first, release, beside.publish(release)


def asks(role, *numbers):
    for number in numbers:
        role.choose(Ask(IDS[number], f"user {number}"))


def opened(role):
    role.open(openings()[0])


def asked(role):
    opened(role)
    asks(role, 0)


def filled(role):
    asked(role)
    role.receive(Answer(IDS[0], 0.7))
    asks(role, 1)


def answered(role):
    """The publisher's answer to this role's release."""
    filled(role)
    return publisher(None).publish(role.release())


def shown(message):
    return canonical.encode(message)


CUSTODIAN = [
    Act("Custodian.open", custodian, lambda role: openings()[0], Custodian.open),
    Act(
        "Custodian.choose", custodian, opened,
        lambda role, _: shown(role.choose(Ask(IDS[0], "user 0"))),
    ),
    Act(
        "Custodian.receive", custodian, asked,
        lambda role, _: shown(role.receive(Answer(IDS[0], 0.7))),
    ),
    Act(
        "Custodian.decline", custodian, asked,
        lambda role, _: shown(role.decline(Decline(IDS[0]))),
    ),
    Act("Custodian.release", custodian, filled, lambda role, _: shown(role.release())),
    Act("Custodian.finish", custodian, asked, lambda role, _: shown(role.finish())),
    Act("Custodian.open the next", custodian, answered, Custodian.open),
]  # fmt: skip

PUBLISHER = [
    Act(
        "Publisher.publish", publisher, lambda role: None,
        lambda role, _: shown(role.publish(openings()[1])),
    ),
]  # fmt: skip


# -- a client, and the server beside it


def client(journal):
    return Client(LOCAL_PLAN, journal)


def server(journal):
    return Server(LOCAL_PLAN, journal)


def offer(role):
    return server(None).offer(role.request())


def chosen(role):
    role.choose(offer(role))


def reported(role):
    """The server's receipt for this role's report."""
    beside = server(None)
    role.choose(beside.offer(role.request()))
    return beside.receive(role.report(0.7))


CLIENT = [
    Act("Client.request", client, lambda role: None, lambda role, _: shown(role.request())),
    Act("Client.choose", client, offer, lambda role, offer: role.choose(offer).action),
    Act("Client.report", client, chosen, lambda role, _: shown(role.report(0.7))),
    Act("Client.abandon", client, chosen, lambda role, _: shown(role.abandon())),
    Act("Client.settle", client, reported, Client.settle),
    Act("Client.expire", client, reported, lambda role, _: (role.expire(), role.state)),
]


@cache
def report_of(number):
    """A client's report, with the same id and the same noise whenever it is sent."""
    beside, device = server(None), client(None)
    for earlier in range(number):
        beside.offer(Request(IDS[earlier], 0))
    device.choose(beside.offer(device.request(IDS[number])))
    return device.report(0.7)


def offered(role):
    role.offer(Request(IDS[0], 0))


def served(role):
    offered(role)
    role.receive(report_of(0))
    role.offer(Request(IDS[1], 0))


SERVER = [
    Act(
        "Server.offer", server, offered,
        lambda role, _: shown(role.offer(Request(IDS[1], 0))),
    ),
    Act(
        "Server.offer the next epoch", server, served,
        lambda role, _: shown(role.offer(Request(IDS[2], 0))),
    ),
    Act("Server.receive", server, offered, lambda role, _: shown(role.receive(report_of(0)))),
    Act("Server.decline", server, offered, lambda role, _: shown(role.decline(Decline(IDS[0])))),
    Act("Server.finish", server, served, lambda role, _: (role.finish(), shown(role.study))[1]),
]  # fmt: skip


# -- a shuffler, and the server behind it

MIXED_PLAN = local_plan(
    privacy=ShuffledDP(4.0, 1e-3, minimum=2, answering=0.5, rounds_per_user=3),
    encoding="auto",
    schedule=Schedule(first=2, growth=1.01, least=2),
)
SECRET = "07" * 32


def shuffler(journal):
    return Shuffler(MIXED_PLAN, journal)


def shuffle_server(journal):
    return ShuffleServer(MIXED_PLAN, SECRET, journal)


def begun(role):
    role.open(shuffle_server(None).turn)


def invited(role):
    begun(role)
    role.offer(Request(IDS[0], 0))


@cache
def sealed(number):
    """A report, with the same id and in the same box whenever it is sent."""
    beside, device = shuffler(None), Client(MIXED_PLAN)
    begun(beside)
    for earlier in range(number):
        beside.offer(Request(IDS[earlier], 0))
    device.choose(beside.offer(device.request(IDS[number])))
    return device.report(0.7)


def gathered(role):
    invited(role)
    role.receive(sealed(0))
    role.offer(Request(IDS[1], 0))
    role.receive(sealed(1))


def taken(role):
    """The server's answer to this role's batch."""
    gathered(role)
    return shuffle_server(None).take(role.batch())


@cache
def batch():
    role = shuffler(None)
    gathered(role)
    return role.batch()


SHUFFLER = [
    Act("Shuffler.open", shuffler, lambda role: shuffle_server(None).turn, Shuffler.open),
    Act(
        "Shuffler.offer", shuffler, begun,
        lambda role, _: shown(role.offer(Request(IDS[0], 0))),
    ),
    Act("Shuffler.receive", shuffler, invited, lambda role, _: shown(role.receive(sealed(0)))),
    Act(
        "Shuffler.decline", shuffler, invited,
        lambda role, _: shown(role.decline(Decline(IDS[0]))),
    ),
    Act("Shuffler.batch", shuffler, gathered, lambda role, _: shown(role.batch())),
    Act("Shuffler.finish", shuffler, invited, lambda role, _: shown(role.finish())),
    Act("Shuffler.open the next", shuffler, taken, Shuffler.open),
    Act(
        "ShuffleServer.take", shuffle_server, lambda role: batch(),
        lambda role, batch: shown(role.take(batch)),
    ),
]  # fmt: skip


# -- a bandit: it has no ids, so whoever repeats looks first


def joint(journal):
    return Bandit(PRIVATE_PLAN, journal)


def local(journal):
    return Bandit(LOCAL_PLAN, journal)


def crowd(journal):
    return Bandit(MIXED_PLAN, journal)


def ask(role, number):
    if role.asked == number:
        role.ask(user=f"user {number}")
    return role.asked, role.open_trials, shown(role.study)


def tell(role, number):
    if number in role.open_trials:
        role.tell(number, 0.7)
    return role.asked, role.open_trials


def abandon(role, number):
    if number in role.open_trials:
        role.abandon(number)
    return role.asked, role.open_trials


def finish(role):
    role.finish()
    return shown(role.study)


def one(role):
    ask(role, 0)


def two(role):
    one(role)
    tell(role, 0)
    ask(role, 1)


def bandit_acts(name, begin):
    return [
        Act(f"{name}.ask", begin, lambda role: None, lambda role, _: ask(role, 0)),
        Act(f"{name}.ask for the next epoch", begin, two, lambda role, _: ask(role, 2)),
        Act(f"{name}.tell", begin, one, lambda role, _: tell(role, 0)),
        Act(f"{name}.abandon", begin, one, lambda role, _: abandon(role, 0)),
        Act(f"{name}.finish", begin, two, lambda role, _: finish(role)),
    ]


ROLES = (custodian, publisher, client, server, shuffler, shuffle_server, joint, local, crowd)
ACTS = [
    *CUSTODIAN,
    *PUBLISHER,
    *CLIENT,
    *SERVER,
    *SHUFFLER,
    *bandit_acts("Bandit", joint),
    *bandit_acts("Local bandit", local),
    *bandit_acts("Shuffled bandit", crowd),
]
