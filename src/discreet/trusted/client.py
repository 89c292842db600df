"""A person's own device in the local model: it trusts no one.

    client = Client(plan, "mine.db")                  # pins the plan
    send(client.request())
    choice = client.choose(offer, candidates)         # checks the epoch, chooses here
    send(client.report(reward))                       # randomised once, kept, then sent
    client.settle(receipt)

What leaves the device is a random id, and one randomised increment for each round. It costs the
person what the plan promises, whatever the server does: the client refuses an epoch that is not
randomised as the plan it pinned says, draws once for each round, repeats the same bytes when asked
again, and takes part in no more rounds than the plan's `rounds_per_user`.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.errors import InvalidArgument, Refused
from discreet.learning.study import Value
from discreet.privacy.budget import LocalDP, Simulation
from discreet.privacy.shuffled import ShuffledDP
from discreet.protocol.batches import Sealed
from discreet.protocol.decisions import decide, decision_set
from discreet.protocol.messages import (
    AnyReport,
    Decline,
    IndexReport,
    Offer,
    Receipt,
    Report,
    Request,
)
from discreet.protocol.records import Chosen, Device, Expired
from discreet.protocol.role import JournalPlace, Role
from discreet.protocol.rounds import OPEN, Event, State, advance, is_repeat
from discreet.protocol.sealing import seal
from discreet.protocol.verifier import Verifier
from discreet.trusted import mechanism
from discreet.trusted.randomness import Source, secret_key, source


@dataclass(frozen=True)
class Choice:
    """The action to try; `chosen` is its position among the candidates, where some were given."""

    action: dict[str, Value]
    chosen: int | None = None


#: What a client may send for a round.
Sent = AnyReport | Sealed
Record = Device | Request | Offer | Chosen | Sent | Decline | Receipt | Expired


def fresh_id() -> str:
    """128 bits from the operating system, in hexadecimal."""
    return secret_key()[:32]


class Client(Role):
    """One person's rounds, one at a time.

    `journal` is the path of an SQLite file on the device; a client given one resumes where it
    stopped, and `outbox` is what it has to send. With a `ShuffledDP` plan it talks to a shuffler:
    reports are sealed for the server's key, which may be pinned here (`key`). With a `simulation`
    noise comes from its seed: that is not private. Threads may share a client.

    >>> import discreet
    >>> from discreet.protocol.server import Server
    >>> privacy = discreet.LocalDP(epsilon=4.0, delta=1e-6)
    >>> plan = discreet.Plan(domain=discreet.Box({"dose": (0, 10)}), privacy=privacy)
    >>> server, client = Server(plan), Client(plan)
    >>> choice = client.choose(server.offer(client.request()))
    >>> receipt = server.receive(client.report(0.7))
    >>> client.settle(receipt); receipt.outcome
    'counted'
    """

    RECORDS = Record

    def __init__(
        self,
        plan: Plan,
        journal: JournalPlace = None,
        *,
        simulation: Simulation | None = None,
        verifier: Verifier | None = None,
        key: str | None = None,
    ) -> None:
        if not isinstance(plan.privacy, LocalDP | ShuffledDP):
            raise InvalidArgument("plan", "one with LocalDP privacy, or ShuffledDP")
        if key is not None:
            checks.hexadecimal("key", key, 64)
        self._key = key
        super().__init__(plan, journal)
        self._simulation = simulation
        self._most = plan.privacy.rounds_per_user
        self._verifier = Verifier(self.plan) if verifier is None else verifier
        self._rounds = 0
        self._state: State | None = None
        self._request: Request | None = None
        self._offer: Offer | None = None
        self._chosen: Chosen | None = None
        self._report: Sent | None = None
        self._settled = True
        self._start()

    # -- a round

    @Role.guarded
    def request(self, id: str | None = None) -> Request:  # noqa: A002
        """Ask to take part; asking again before an offer came gives the same request."""
        if self._request is not None and self._state is None:
            return self._request
        if self._state in OPEN:
            raise Refused("a round is open: report or abandon it first")
        if self._state == "reported" and not self._settled:
            raise Refused("a report waits for its receipt: send it again first")
        if self._rounds >= self._most:
            raise Refused(f"this device took part in {self._rounds} of {self._most} rounds")
        request = Request(fresh_id() if id is None else id, self._verifier.known)
        self._commit(request)
        return request

    @Role.guarded
    def choose(
        self,
        offer: Offer,
        candidates: object = None,
        *,
        context: Mapping[str, object] | None = None,
    ) -> Choice:
        """The action for this offer, chosen here out of what only this device knows.

        An offer that comes again gets the choice that was made, whatever it says now.
        """
        options = decision_set(self._plan, candidates, context)
        if offer.id != self._open_id:
            raise Refused("this offer is not for this client's request")
        if is_repeat(self._state, "choose"):
            return self.choice
        advance("client", self._state, "offer")
        if (offer.key is None) == self._plan.is_shuffled:
            raise Refused("reports of this plan are sealed for a server, and no others are")
        if self._key not in (None, offer.key):
            raise Refused("this offer has another key than the server's")
        self._verifier.check(offer.epoch, offer.releases)
        decided = decide(self._plan, offer.epoch, offer.ask, [options])
        for refusal in decided.refusals.values():
            raise refusal
        position = None if decided.positions is None else int(decided.positions[0])
        self._commit(offer, Chosen(decided.points[0], position))
        return self.choice

    @Role.guarded
    def report(self, reward: float) -> Sent:
        """The answer, clipped, encoded and randomised: once. Later calls give the same bytes."""
        if self._report is not None and is_repeat(self._state, "report"):
            return self._report
        advance("client", self._state, "report")
        value = checks.reward(reward)
        if self._report is None:  # a report that could not be kept is not drawn again
            self._report = self._draw(value)
        report = self._report
        self._commit(report)
        return report

    @Role.guarded
    def abandon(self) -> Decline:
        """Leave the open round without an answer; it was a round all the same."""
        decline = Decline(self._open_id)
        if not is_repeat(self._state, "abandon"):
            advance("client", self._state, "abandon")
            self._commit(decline)
        return decline

    @Role.guarded
    def settle(self, receipt: Receipt) -> None:
        """The server has closed the round; settling again changes nothing."""
        sent = {"reported": "counted", "abandoned": "declined"}.get(self._state or "")
        if receipt.id != self._open_id or receipt.outcome != sent:
            raise Refused("this receipt is for something that was not sent")
        if not self._settled:
            self._commit(receipt)

    @Role.guarded
    def expire(self) -> None:
        """The server no longer takes this round: its epoch is over."""
        if not self._settled:
            self._commit(Expired(self._open_id))

    # -- where the round stands

    @property
    @Role.guarded
    def state(self) -> State | None:
        """The state of the last round: None before its action was chosen."""
        return self._state

    @property
    @Role.guarded
    def rounds(self) -> int:
        """How many rounds this client has taken part in."""
        return self._rounds

    @property
    @Role.guarded
    def choice(self) -> Choice:
        """The action of the last round."""
        chosen = self.chosen
        return Choice(self._plan.domain.decode(chosen.point), chosen.position)

    @property
    @Role.guarded
    def chosen(self) -> Chosen:
        """The scaled action of the last round: private."""
        if self._chosen is None:
            raise Refused("no action was chosen yet")
        return self._chosen

    @property
    @Role.guarded
    def outbox(self) -> Request | Sent | Decline | None:
        """What the server has not answered yet: send it, as often as needed."""
        if self._settled or self._request is None:
            return None
        if self._state is None:
            return self._request
        if self._state == "abandoned":
            return Decline(self._request.id)
        return self._report if self._state == "reported" else None

    # -- records

    @Role.guarded
    def resume(self, *records: Record) -> None:
        """Apply records of this client that were kept elsewhere."""
        for record in records:
            self._apply(record)

    @property
    def _open_id(self) -> str:
        if self._request is None:
            raise Refused("nothing was requested yet")
        return self._request.id

    def _draw(self, reward: float) -> Sent:
        if self._offer is None:
            raise Refused("no action was chosen yet")
        epoch, bits = self._offer.epoch, self._source()
        point, simulated = self.chosen.point, None if bits.private else True
        if self._plan.sends_indices:
            rewards = np.array([reward])
            index = mechanism.indices(self._plan, epoch, point[None, :], rewards, bits=bits)[0]
            if self._offer.key is not None:
                box = seal(int(index), epoch.digest, self._offer.key)
                words = (self._open_id, epoch.digest, self._offer.key, box)
                return Sealed(*words, simulated=simulated)
            return IndexReport(self._open_id, epoch.digest, int(index), simulated=simulated)
        integers = mechanism.report(self._plan, epoch, point, reward, bits=bits)
        return Report(self._open_id, epoch.digest, integers, simulated=simulated)

    def _source(self) -> Source:
        """Where this round's random bits come from."""
        return source(self._simulation, 0 if self._offer is None else self._offer.ask)

    def _first_records(self) -> tuple[Device]:
        return (Device(self._simulation is not None),)

    def _apply(self, record: Record) -> None:
        match record:
            case Request():
                self._open_round(record)
                return
            case Device():
                self._check_kind(record)
                return
            case Offer():
                self._verifier.take(record.epoch, record.releases)
                self._offer = record
                self._step("offer")
            case Chosen():
                self._chosen = record
                self._rounds += 1
                self._step("choose")
            case Report() | IndexReport() | Sealed():
                self._report = record
                self._step("report")
            case Decline():
                self._step("abandon")
            case Receipt():
                self._settled = True
            case Expired():
                self._settled = True
                if self._state is None:
                    self._request = None
                elif self._state in OPEN:
                    self._step("expire")
        if not isinstance(record, Chosen | Expired) and record.id != self._open_id:
            raise InvalidArgument("id", "that of the open request")

    def _check_kind(self, device: Device) -> None:
        if device.simulated != (self._simulation is not None):
            kind = "a simulation" if device.simulated else "a real client"
            raise Refused(f"the journal is that of {kind}: it cannot go on as the other")

    def _open_round(self, request: Request) -> None:
        self._request, self._settled = request, False
        self._state = self._offer = self._chosen = self._report = None

    def _step(self, event: Event) -> None:
        self._state = advance("client", self._state, event)
