"""The local model in one process: a client for each ask and the server's tally.

It stands where the privatizer stands in the joint model and has its methods, so that a bandit
asks and tells alike. One process then sees actions and answers, as on a person's own device; what
the tally adds, and what comes out, is the randomised reports alone.
"""

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.errors import InvalidArgument
from discreet.learning.epoch import Epoch
from discreet.privacy.budget import Simulation
from discreet.protocol.messages import Offer, Report, Request
from discreet.protocol.rounds import Abandoned, Asked, Session, Told, UserKey
from discreet.protocol.tally import Tally
from discreet.protocol.verifier import Pin
from discreet.trusted.client import Chosen, Client, fresh_id
from discreet.trusted.participants import Register


class Crowd:
    """Everyone's client, and the sums of the epoch that is open.

    A report carries its epoch's encoding: rounds still open when their epoch closes expire.
    """

    #: Nothing is drawn when an epoch closes.
    drawn = False

    def __init__(self, plan: Plan, simulation: Simulation | None = None) -> None:
        self._plan = plan
        self._simulation = simulation
        self._register = Register(plan, simulated=simulation is not None)
        self._tally = Tally(plan, simulated=simulation is not None)
        self._pin = Pin(plan)  # one device: what one client has verified, all have
        self._epoch: Epoch | None = None
        self._releases: list[Release] = []
        self._clients: dict[int, Client] = {}
        self._choosing: tuple[int, Client] | None = None
        self.session = Session(plan.expire_after, "client")

    def new_key(self) -> UserKey:
        """A fresh key for pseudonyms and round ids; it never leaves the journal."""
        return UserKey(fresh_id() + fresh_id(), simulated=self._simulation is not None)

    def identify(self, key: UserKey) -> None:
        """Use this key; a second one would give everyone all rounds again."""
        self._register.identify(key)

    def open(self, epoch: Epoch) -> None:
        """Begin an epoch with empty sums; rounds of the one before expire."""
        self._register.check_identified()
        if self._epoch is not None:
            self._releases.append(self.release())
        self._tally.open(epoch)
        self.session.expire_before(epoch.first)
        self._clients.clear()
        self._epoch, self._choosing = epoch, None

    def admit(self, user: object) -> str | None:
        """The pseudonym of a user who may take part in one more round; anyone else is refused."""
        return self._register.admit(user)

    def choose(self, number: int, options: Floats | None) -> tuple[Floats, int | None]:
        """The ask's own client chooses: the scaled action, and its position, if any."""
        client, offer = self._offered(number)
        client.choose_from(offer, options)
        self._choosing = number, client
        return client.chosen.point, client.chosen.position

    def ask(self, event: Asked) -> None:
        """The round is offered, and its action chosen."""
        if self._choosing is not None and self._choosing[0] == event.number:
            client = self._choosing[1]
        else:
            client, offer = self._offered(event.number)
            client.resume(offer, Chosen(event.point))
        self._choosing = None
        self._tally.offer(event.number, self._id(event.number))
        self.session.ask(event)
        self._register.count(event.user)
        self._clients[event.number] = client

    def answer(self, number: int, reward: float) -> Report:
        """The client's report: randomised once, however often it is asked for."""
        self.session.find(number)
        return self._clients[number].report(reward)

    def tell(self, event: Told | Report) -> None:
        """A report reaches the tally: counted once."""
        if not isinstance(event, Report):
            raise InvalidArgument("answer", "a report: the local model keeps no rewards")
        self._tally.count(event)
        ticket = self._tally.ticket(event.id)
        if ticket is not None and ticket.number in self._clients:
            self.session.close(ticket.number)
            del self._clients[ticket.number]

    def abandon(self, event: Abandoned) -> None:
        """A user will not answer."""
        self.session.close(event.number, "abandon")
        self._tally.decline(self._id(event.number))
        del self._clients[event.number]

    def release(self) -> Release:
        """The sum of the open epoch's reports."""
        return self._tally.release()

    def _offered(self, number: int) -> tuple[Client, Offer]:
        if self._epoch is None:
            raise InvalidArgument("epoch", "an open one")
        client = Client(self._plan, simulation=self._simulation, pin=self._pin)
        request = client.request(self._id(number))
        return client, self._offer(request, number, self._epoch)

    def _offer(self, request: Request, number: int, epoch: Epoch) -> Offer:
        return Offer(request.id, number, epoch, tuple(self._releases[request.known :]))

    def _id(self, number: int) -> str:
        """A round's id: reproducible for a resumed study, and no one's to guess."""
        return self._register.keyed(b"round %d" % number)
