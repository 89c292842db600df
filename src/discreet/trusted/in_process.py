"""The roles of a model in one process, for one journal: what a bandit wires.

Both models answer alike. A decision (`enter`, `answer`, `turn`) changes nothing and returns the
records to keep; `apply` hands a kept record to every role that it concerns. A release and the epoch
that follows are kept in one write, so a journal never ends between them.
"""

from collections.abc import Mapping

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.errors import BetweenEpochs, InvalidArgument
from discreet.learning.epoch import Epoch
from discreet.learning.study import Study
from discreet.privacy.budget import Simulation
from discreet.protocol.decisions import decide, decision_set
from discreet.protocol.messages import Decline, Offer, Report
from discreet.protocol.publisher import Publisher
from discreet.protocol.records import Abandoned, Asked, Chosen, Offered, Told, UserKey
from discreet.protocol.rounds import Session
from discreet.protocol.server import Server
from discreet.protocol.verifier import Verifier
from discreet.trusted.client import Client
from discreet.trusted.custodian import Custodian
from discreet.trusted.participants import Participants

Record = UserKey | Epoch | Release | Asked | Told | Report | Abandoned


class Joint:
    """A custodian and a publisher. The custodian checks what the publisher opens, here too."""

    def __init__(self, plan: Plan, simulation: Simulation | None) -> None:
        self._custodian = Custodian(plan, simulation=simulation, embedded=True)
        self._publisher = Publisher(plan, simulated=simulation is not None, embedded=True)
        self.session = self._custodian.session
        self.enter = self._custodian.enter
        self.answer = self._custodian.answer

    @property
    def study(self) -> Study:
        """The public record so far."""
        return self._publisher.study

    def first_records(self) -> tuple[Record, ...]:
        """What a new study begins with."""
        return *self._custodian.first_records(), *self._publisher.first_records()

    def turn(self) -> tuple[Record, ...]:
        """The open epoch's release, and the epoch that follows it."""
        return self._publisher.follow(self._custodian.draw())

    def last(self) -> Release:
        """The open epoch's release, to be the last one."""
        release = self._custodian.draw()
        self.study.released(release)  # what nobody could learn from is not kept
        return release

    def apply(self, record: Record) -> None:
        """Hand a kept record to the roles it concerns."""
        match record:
            case Release():
                self._custodian.apply(record)
                self._publisher.apply(record)
            case Epoch():
                self._publisher.apply(record)
                self._custodian.apply(self._publisher.opening)
            case Report():
                raise InvalidArgument("answer", "a reward: reports belong to the local model")
            case _:
                self._custodian.apply(record)


class Local:
    """A server, and a client for each ask.

    One process then sees actions and answers, as on a person's own device; what the server adds,
    and what comes out, is the randomised reports alone. A report carries its epoch's encoding:
    rounds still open when their epoch closes expire.
    """

    def __init__(self, plan: Plan, simulation: Simulation | None) -> None:
        simulated = simulation is not None
        self._plan, self._simulation = plan, simulation
        self._participants = Participants(plan, simulated=simulated)
        self._server = Server(plan, simulated=simulated, embedded=True)
        self._verifier = Verifier(plan)  # one device: what one client has verified, all have
        self.session = Session(plan.expire_after, "client")
        self._clients: dict[int, Client] = {}
        self._choosing: tuple[int, Client] | None = None
        self.turn = self._server.turn
        self.last = self._server.last

    @property
    def study(self) -> Study:
        """The public record so far."""
        return self._server.study

    def first_records(self) -> tuple[Record, ...]:
        """What a new study begins with: a key for pseudonyms and ids, and the first epoch."""
        return self._participants.new_key(), self.study.next_epoch()

    def enter(
        self, candidates: object, context: Mapping[str, object] | None, user: object
    ) -> tuple[Asked, int | None]:
        """A new round: the ask's own client chooses."""
        options = decision_set(self._plan, candidates, context)
        pseudonym = self._participants.admit(user)
        epoch, number = self.study.open_epoch, self.session.asked
        if number == epoch.end:
            decide(self._plan, epoch, epoch.first, options)  # no action: no reason for a release
            raise BetweenEpochs("every ask of this epoch is given: its release comes first")
        client, offer = self._offered(number)
        client.choose_from(offer, options)
        self._choosing = number, client
        return Asked(number, client.chosen.point, pseudonym), client.chosen.position

    def answer(self, number: int, reward: float) -> Report:
        """The client's report: randomised once, however often it is asked for."""
        self.session.find(number)
        return self._clients[number].report(reward)

    def apply(self, record: Record) -> None:
        """Hand a kept record to the roles it concerns."""
        match record:
            case Asked():
                self._ask(record)
            case Report():
                self._server.apply(record)
                ticket = self._server.tally.ticket(record.id)
                if ticket is not None and ticket.number in self._clients:
                    self.session.close(ticket.number)
                    del self._clients[ticket.number]
            case Abandoned():
                self.session.close(record.number, "abandon")
                self._server.apply(Decline(self._id(record.number)))
                del self._clients[record.number]
            case Release():
                self._server.apply(record)
            case Epoch():
                self._participants.check_identified()
                self._server.apply(record)
                self.session.expire_before(record.first)
                self._clients.clear()
                self._choosing = None
            case UserKey():
                self._participants.identify(record)
            case Told():
                raise InvalidArgument("answer", "a report: the local model keeps no rewards")

    def _ask(self, record: Asked) -> None:
        if self._choosing is not None and self._choosing[0] == record.number:
            client = self._choosing[1]
        else:
            client, offer = self._offered(record.number)
            client.apply(offer)
            client.apply(Chosen(record.point))
        self._choosing = None
        self._server.apply(Offered(record.number, self._id(record.number)))
        self.session.ask(record)
        self._participants.count(record.user)
        self._clients[record.number] = client

    def _offered(self, number: int) -> tuple[Client, Offer]:
        client = Client(
            self._plan, simulation=self._simulation, verifier=self._verifier, embedded=True
        )
        request = client.request(self._id(number))
        return client, self._server.offered(request, number)

    def _id(self, number: int) -> str:
        """A round's id: reproducible for a resumed study, and no one's to guess."""
        return self._participants.keyed(b"round %d" % number)
