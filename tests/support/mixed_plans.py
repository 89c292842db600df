"""Plans whose reports are mixed, and a study of them through the real roles."""

from dataclasses import dataclass, field

from discreet import Box, Client, Exploration, Plan, Schedule, ShuffledDP, Shuffler, ShuffleServer
from discreet.features.kernels import SquaredExponential
from discreet.protocol.messages import Request

SECRET = "07" * 32


def mixed_plan(**parts):
    """Epochs of twelve, of four actions with three asks each once the domain is filled."""
    defaults = {
        "domain": Box({"dose": (0, 10)}),
        "privacy": ShuffledDP(1.0, 1e-3, minimum=6, answering=0.6, honest=1.0),
        "kernel": SquaredExponential(0.4),
        "schedule": Schedule(first=12, growth=1.01, least=12),
        "exploration": Exploration(0.0, 0.5, 4),
        "explore": [{"dose": dose} for dose in (1.0, 3.0, 6.0, 9.0)],
    }
    return Plan(**(defaults | parts))


def an_id(number):
    return f"{(number + 1) * 0x9E3779B97F4A7C15F39CC0605CEDC835 % (1 << 128):032x}"


@dataclass
class Crowd:
    """A shuffler and a server, and people who come to them."""

    plan: Plan
    journals: tuple = (None, None)
    simulated: bool = False
    server: ShuffleServer = field(init=False)
    shuffler: Shuffler = field(init=False)

    def __post_init__(self):
        words = {"simulated": self.simulated}
        self.server = ShuffleServer(self.plan, SECRET, self.journals[1], **words)
        self.shuffler = Shuffler(self.plan, self.journals[0], **words)
        self.shuffler.open(self.server.turn)

    def offers(self, count):
        """The next asks, to people who may not answer."""
        first = self.shuffler.asked
        return [self.shuffler.offer(Request(an_id(n), 0)) for n in range(first, first + count)]

    def come(self, count, reward=0.5):
        """So many people come and answer; their reports."""
        sent = []
        for _ in range(count):
            client = Client(self.plan)
            client.choose(self.shuffler.offer(client.request(an_id(self.shuffler.asked))))
            sent.append(client.report(reward))
            client.settle(self.shuffler.receive(sent[-1]))
        return sent

    def turn(self):
        """Hand up the batch and open what follows; the batch."""
        batch = self.shuffler.batch()
        self.shuffler.open(self.server.take(batch))
        return batch
