"""Games against clients that send an index: their exact law by counting, and what draws show.

The real client is played again and again, as a study would, with random words that we hand it. A
word decides between the cap and the others: the number of words for each is found by halving. The
next word decides which index of them: all of a period are tried. So the law of the index is known
exactly, as rational numbers, in two worlds that one person's candidate and answer tell apart, and
with any coin. The largest ratio of two probabilities is what the client gives away:

    epsilon = log max over indices, worlds and coins of P[index] / P'[index].

Then the report is asked for again: a client that draws once sends the same, whatever words come.

Draws of the real client with the operating system's words are counted, too. The observer looks at
the indices that are likelier in one of the worlds. Clopper-Pearson bounds of their two rates give a
lower bound on epsilon: the logarithm of their ratio.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
from scipy.special import betaincinv

from discreet.agreement.plan import Plan
from discreet.agreement.release import GENESIS
from discreet.audit.contest import audited_plan
from discreet.learning.epoch import Epoch
from discreet.learning.next_epoch import menu_only
from discreet.learning.policy import Policy
from discreet.privacy.book import book_seed
from discreet.privacy.budget import LocalDP
from discreet.privacy.cap import Cap, exp_below
from discreet.privacy.clipping import Residual
from discreet.privacy.codebook import CodebookEncoding
from discreet.privacy.encodings import Indexed
from discreet.privacy.interval import IntervalEncoding
from discreet.protocol.messages import IndexReport, Offer
from discreet.trusted import mechanism
from discreet.trusted.client import Client, Sent
from discreet.trusted.randomness import OperatingSystem, Words

#: Codewords of the audited plans: few, so that every word that matters is tried.
CODEWORDS = 64
CLAIM = 2.0
#: Far outside the range, on either side; and the person's candidate in either world.
REWARDS, DOSES = (-40.0, 41.0), (2.0, 8.0)
#: Coins that are handed out: any two worlds and coins are compared.
COINS = (0, 1 << 62, (1 << 64) - 1)
#: What an exact game has to see of its claim: p is rounded down by less than 2^-60.
SHARPNESS = 1.0 - 1e-9
#: Draws of each world with real words, and how much of a claim is seen by counting them.
DRAWS, DRAWN_SHARPNESS = 3_000, 0.7

#: The words of a report that is asked for again; what stands for an index that comes twice.
FIRST, REPEATED = (0, 0, 0), -1

Law = dict[int, Fraction]


class Handed:
    """Random words that were chosen beforehand: one for each that is asked for."""

    private = True

    def __init__(self, *words: int) -> None:
        self._words = list(words)

    def normals(self, count: int) -> Any:
        """None: an index needs no noise."""
        raise TypeError("a client that sends an index draws no normals")

    def words(self, rows: int, columns: int) -> Words:
        """The next ones."""
        taken = [self._words.pop(0) for _ in range(rows * columns)]
        return np.array(taken, dtype=np.uint64).reshape(rows, columns)


@dataclass(frozen=True, eq=False)
class IndexGame:
    """One person who differs, under a public epoch, and the client that reports for them."""

    name: str
    plan: Plan
    epoch: Epoch
    client: type[Client] = Client

    @property
    def claim(self) -> float:
        """The epsilon that was promised of the one report: not what the plan makes of it."""
        return CLAIM

    def shown(self) -> float:
        """The epsilon of the report, and of what comes when it is asked for again: exactly."""
        laws = [self._law(world, coin) for world in (0, 1) for coin in COINS]
        again = [self._again(world) for world in (0, 1)]
        ratio = _largest(laws) * _largest(again)
        if ratio <= exp_below(Fraction(CLAIM)):
            return min(math.log(ratio), self.claim)  # not the last bits of a logarithm
        return max(math.log(ratio), math.nextafter(self.claim, math.inf))

    def _again(self, world: int) -> Law:
        """The law of the report asked for again, given the first; certainty where it repeats it."""
        law = self._law(world, COINS[0], again=True)
        repeats = list(law) == [self._sent(world, FIRST, again=False)]
        return {REPEATED: Fraction(1)} if repeats else law

    def _law(self, world: int, coin: int, *, again: bool = False) -> Law:
        """How likely each index is, for words that are uniform."""

        def sent(first: int, second: int) -> int:
            return self._sent(world, (first, second, coin), again=again)

        most = (1 << 64) - 1
        law: Law = {}
        flip = _first_other(lambda word: sent(word, 0) != sent(0, 0), most)
        for begin, words in ((0, flip), (flip, most + 1 - flip)):
            period = [sent(begin, 2 * place) for place in range(self.plan.codewords or 0)]
            own = period[: period.index(period[0], 1)] if period[0] in period[1:] else period
            for index in own if words else ():
                law[index] = law.get(index, Fraction(0)) + Fraction(words, most + 1) / len(own)
        return law

    def _sent(self, world: int, words: tuple[int, ...], *, again: bool) -> int:
        """The index for these words: of the report, or of the same report asked for again."""
        role = self._chosen(world)
        role.handed = [Handed(*FIRST), Handed(*words)] if again else [Handed(*words)]
        report = role.report(REWARDS[world])
        return _index(role.report(REWARDS[world]) if again else report)

    def _chosen(self, world: int) -> "_Handing":
        """A fresh client whose person has the action of this world."""
        kind: Any = type(f"Handing{self.client.__name__}", (_Handing, self.client), {})
        role: _Handing = kind(self.plan)
        box = self.plan.decisions == "box"
        role.choose(
            Offer(role.request().id, 0, self.epoch), None if box else [{"dose": DOSES[world]}]
        )
        return role

    def lower_bound(self, draws: int, confidence: float) -> float:
        """epsilon is at least this, with the given confidence: by draws with real words."""
        first, second = (self._law(world, COINS[0]) for world in (0, 1))
        telling = [index for index in second if second[index] > first.get(index, Fraction(0))]
        hits, alarms = (
            sum(self._drawn(world) in telling for _ in range(draws)) for world in (1, 0)
        )
        tail = (1.0 - confidence) / 2
        hit_rate = betaincinv(hits, draws - hits + 1, tail) if hits else 0.0
        alarm_rate = betaincinv(alarms + 1, draws - alarms, 1.0 - tail) if alarms < draws else 1.0
        return max(0.0, math.log(hit_rate / alarm_rate)) if hit_rate else 0.0

    def _drawn(self, world: int) -> int:
        role = self._chosen(world)
        role.handed = [OperatingSystem(), OperatingSystem()]
        return _index(role.report(REWARDS[world]))


class _Handing(Client):
    """The real client, but for where its random words come from."""

    handed: "list[Handed | OperatingSystem]"

    def _source(self) -> Any:
        return self.handed.pop(0)


def index_trials() -> Iterator[tuple[IndexGame, str | None]]:
    """Every encoding as it is, with the client as it is; then clients broken on purpose."""
    for game in games():
        yield game, None
        for control, client in CLIENTS.items():
            yield replace(game, client=client), control


def games() -> Iterator[IndexGame]:
    """The real client under each kind of epoch."""
    box = index_plan("interval")
    residual = Residual(np.zeros(box.map.dimension), 1.0)
    menu = menu_only(box, np.array([[0.2], [0.7]]))
    cap = box.cap_of(IntervalEncoding, 1)
    yield IndexGame(
        "client, interval", box, epoch_of(box, IntervalEncoding(residual, cap, 2), menu)
    )
    brings = index_plan("codebook", decisions="candidates")
    m = brings.map.dimension
    tilts = Policy(np.zeros((1, m)), np.zeros(m * (m + 1) // 2), 0.0, np.zeros((0, 1)))
    residual, seed = Residual(np.zeros(m), 1.0), book_seed(brings.digest, GENESIS)
    for lift in (False, True):
        directions = np.eye(2, m)
        cap = brings.cap_of(CodebookEncoding, 2 + lift)
        book = CodebookEncoding(residual, cap, directions, seed, lift)
        name = f"client, codebook, {'lift' if lift else 'sign'}"
        yield IndexGame(name, brings, epoch_of(brings, book, tilts))


def index_plan(encoding: str, **parts: Any) -> Plan:
    """A small plan whose reports are indices."""
    return audited_plan(
        1.0, privacy=LocalDP(CLAIM), encoding=encoding, codewords=CODEWORDS, **parts
    )


def epoch_of(plan: Plan, encoding: Indexed, policy: Policy) -> Epoch:
    """The first epoch of a plan, with this encoding and policy."""
    return Epoch(0, 0, plan.epoch_length(0), plan.digest, GENESIS, encoding, policy)


# -- broken on purpose


class _OtherCap(Client):
    """A client that draws by another cap than the plan's."""

    def _draw(self, reward: float) -> Sent:
        offer = self._offer
        if offer is None:
            raise TypeError("choose first")
        encoding: Any = offer.epoch.indexed
        other = replace(encoding, cap=self._other(encoding.cap))
        point, rewards = self.chosen.point[None, :], np.array([reward])
        index = mechanism.drawn(self._plan, other, point, rewards, bits=self._source())[0]
        return IndexReport(offer.id, offer.epoch.digest, int(index))

    def _other(self, cap: Cap) -> Cap:
        raise NotImplementedError


class TooSure(_OtherCap):
    """The odds of the cap are too large by 5%."""

    def _other(self, cap: Cap) -> Cap:
        odds = cap.share / (1 - cap.share) * Fraction(21, 20)
        return replace(cap, threshold=int(odds / (1 + odds) * (1 << 62)))


class TooNear(_OtherCap):
    """K is too small by about 10%, with the p of the right one."""

    def _other(self, cap: Cap) -> Cap:
        return replace(cap, nearest=min(cap.nearest - 1, round(0.9 * cap.nearest)))


class Forgetful(Client):
    """It does not keep what it sent: a report asked for again is drawn again."""

    def report(self, reward: float) -> Sent:
        """The real one, as if it had not been called before."""
        return super().report(reward) if self._report is None else self._draw(reward)


CLIENTS: dict[str, type[Client]] = {
    "odds of the cap 5% too large": TooSure,
    "K 10% too small, p unchanged": TooNear,
    "drawn anew when sent again": Forgetful,
}


def _index(report: Sent) -> int:
    if not isinstance(report, IndexReport):
        raise TypeError("this plan's reports are indices")
    return report.index


def _first_other(differs: Callable[[int], bool], most: int) -> int:
    """The first word for which it differs from word 0, or one beyond the last."""
    low, high = 0, most + 1
    if not differs(most):
        return most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if differs(middle) else (middle, high)
    return high


def _largest(laws: list[Law]) -> Fraction:
    """The largest ratio of two laws' probabilities of one index."""
    found = Fraction(1)
    for law in laws:
        for other in laws:
            for index, share in law.items():
                if index not in other:
                    return Fraction(1 << 1000)  # for certain
                found = max(found, share / other[index])
    return found
