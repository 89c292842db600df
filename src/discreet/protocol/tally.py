"""The reports of an epoch, checked and added exactly: public, for each report is private itself.

**What an honest client can send.** A report is v + e. The encoded round v has |v_k| <= `largest`
and, as replacing it by silence moves no further than the encoding's `bound` b, ||v / s|| <= b with
s the epoch's standard deviations. The noise is e_k = rint(s_k z) + rint(s_k z' / 16), so
|e_k - s_k g_k| <= 1 for independent normals g_k of variance c^2 = 1 + 1/256. Therefore

    |v_k + e_k|    <= min(largest, b s_k) + c t s_k + 1       2 size Phi(-t)            = p / 2
    ||(v + e) / s|| <= b + c r + ||1 / s||                    P[chi^2_size > r^2]       = p / 2

for every k and in norm, but for a probability p = 2^-64. A report outside is refused, never cut
to size: cutting would bend honest reports, too.

**What k malicious clients can do.** A report that is counted is within these limits, whoever made
it, so k reports move the sums by at most k (b + c r + ||1 / s||) in whitened norm from what they
would be without, and by twice that from what any k honest ones would have made of them
(`influence`). With n reports, the cross vector of a release has noise of covariance at least
n sigma_u^2 I, and a Gaussian observation v = A theta + noise of covariance R moves the mean by
Sigma A^T R^-1 dv for a change dv: as A^T R^-1 A <= Sigma^-1, at any x by at most

    |d mean(x)| <= std(x) ||R^-1/2 dv|| <= std(x) ||dv / sigma_u|| / sqrt(n).
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammainccinv, ndtri

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats, Integers
from discreet.errors import InvalidArgument, Refused, TrialClosed, UnknownTrial
from discreet.learning.epoch import Epoch
from discreet.protocol.handed_up import handed_up
from discreet.protocol.index_limits import IndexLimits
from discreet.protocol.messages import AnyReport, Report
from discreet.protocol.rounds import OPEN, Event, State, advance, is_repeat

#: How likely an honest report is refused, at most.
REFUSED = 2.0**-64
#: c: the smoothing noise makes a report's noise this much wider than its standard deviation.
WIDER = math.sqrt(1.0 + 1.0 / 16.0**2)


@dataclass(frozen=True, eq=False)
class Limits:
    """How large an epoch's reports may be: each integer, and all of them in whitened norm."""

    stds: Floats
    each: Integers
    norm: float

    @classmethod
    def of(cls, plan: Plan, epoch: Epoch) -> "Limits":
        """The limits that the module's docstring derives."""
        encoding = epoch.additive
        stds = encoding.stds(plan.map)
        if not (encoding.is_noisy and np.isfinite(stds).all() and (stds > 0.0).all()):
            raise InvalidArgument("epoch", "noise on every integer: a report is private by itself")
        size, bound = stds.size, encoding.bound(plan.map)
        tail = -float(ndtri(REFUSED / 4.0 / size))
        radius = math.sqrt(2.0 * float(gammainccinv(size / 2.0, REFUSED / 2.0)))
        each = np.minimum(float(encoding.largest), bound * stds) + WIDER * tail * stds + 1.0
        if float(each.max()) * epoch.length >= 2.0**62:
            raise InvalidArgument("epoch", "fewer asks: the sums of its reports could overflow")
        norm = bound + WIDER * radius + float(np.linalg.norm(1.0 / stds))
        return cls(stds, each.astype(np.int64), norm)

    @property
    def size(self) -> int:
        """The number of integers of a report."""
        return self.each.size

    def check(self, integers: Integers) -> None:
        """Refuse what no honest client could have sent."""
        if integers.shape != self.each.shape:
            raise InvalidArgument("integers", f"{self.each.size} of them in this epoch")
        inside = ((-self.each <= integers) & (integers <= self.each)).all()
        if not inside or float(np.linalg.norm(integers / self.stds)) > self.norm:
            raise Refused("this report is larger than any honest client's: it was not counted")

    def added(self, report: AnyReport, number: int) -> Integers:
        """What a report adds, itself, or a refusal."""
        if not isinstance(report, Report):
            raise Refused("reports of this epoch are integers, no index: it was not counted")
        self.check(report.integers)
        return report.integers


def limits_of(plan: Plan, epoch: Epoch) -> Limits | IndexLimits:
    """What an epoch's reports are held to."""
    if plan.sends_indices:
        return IndexLimits.of(epoch, epoch.encoding.size(plan.map))
    return Limits.of(plan, epoch)


@dataclass(frozen=True)
class Influence:
    """How far malicious reports can move an epoch, against honest ones in their place.

    - `sums`: the sums, in standard deviations of one report's noise, as a norm (for a codebook in
      typical ones).
    - `mean`: the posterior mean, in its posterior standard deviations there: a bound at any action
      and for liars who choose theirs, where actions are public beforehand and the scales
      (`signal_std`, `noise_std`) are the plan's. For a codebook nothing is proven: inf.
    - `typical`: the same under assumptions that nobody enforces. For an interval: liars are spread
      over actions as everyone is. For a codebook: people fill its directions evenly, with residuals
      of a third of the width, and the law of people is held fixed; averaged over directions, not at
      the worst action. For integers it is `mean`.
    """

    sums: float
    mean: float
    typical: float


def influence(plan: Plan, epoch: Epoch, *, malicious: int, reports: int) -> Influence:
    """What `malicious` of `reports` can do to an epoch: see the module's docstring."""
    checks.whole("malicious", malicious)
    checks.count("reports", reports)
    limits = limits_of(plan, epoch)
    noise = 0.0 if plan.noise_std is None else plan.noise_variance
    if isinstance(limits, IndexLimits):
        return Influence(*limits.influence(malicious, reports, noise))
    sums = 2.0 * malicious * limits.norm
    mean = sums / math.sqrt(reports)
    return Influence(sums, mean, mean)


@dataclass(frozen=True)
class Ticket:
    """A round of the open epoch, as the server sees it."""

    number: int
    state: State


class Tally:
    """The open epoch's sums, and the ids of its rounds: all that is needed to count each once.

    Ids go when their epoch closes: a report says which epoch it is for, so a late one is refused
    without them. Integers are added in 64 bits, which `Limits` keeps from overflowing.
    """

    def __init__(self, plan: Plan, *, simulated: bool = False) -> None:
        if not plan.is_local:
            raise InvalidArgument("plan", "one with LocalDP privacy: nobody reports otherwise")
        self._plan = plan
        self._simulated = simulated
        self.asked = 0

    def open(self, epoch: Epoch) -> None:
        """Begin an epoch: no sums, no ids."""
        self._limits = limits_of(self._plan, epoch)
        self._epoch = epoch
        self._total = np.zeros(self._limits.size, dtype=np.int64)
        self._tickets: dict[str, Ticket] = {}
        self._ids: list[str] = []
        self.asked = epoch.first
        self.reports = 0

    def ticket(self, id: str) -> Ticket | None:  # noqa: A002
        """The open epoch's round of this id, if there is one."""
        return self._tickets.get(id)

    def number_for(self, id: str) -> int:  # noqa: A002
        """The ask number that a round of this id has, or would be given."""
        ticket = self._tickets.get(id)
        if ticket is None:
            return self.asked
        if not is_repeat(ticket.state, "offer"):
            advance("server", ticket.state, "offer", trial=ticket.number)
        return ticket.number

    def offer(self, number: int, id: str) -> None:  # noqa: A002
        """A round was offered; expire the one whose time is over."""
        if number != self.asked or id in self._tickets:
            raise UnknownTrial(f"the next trial is {self.asked}, and has an id of its own")
        if number >= self._epoch.end:
            raise InvalidArgument("number", "an ask of the open epoch", number)
        self._tickets[id] = Ticket(number, advance("server", None, "offer"))
        self._ids.append(id)
        self.asked += 1
        late = len(self._ids) - 1 - self._plan.expire_after
        if late >= 0 and self._tickets[self._ids[late]].state in OPEN:
            self._step(self._ids[late], "expire")

    def is_new(self, report: AnyReport) -> bool:
        """Whether a report would be counted now: False for one that was; errors for others."""
        if report.epoch != self._epoch.digest:
            raise TrialClosed("this report is for another epoch than the open one: it has expired")
        if bool(report.simulated) != self._simulated:
            raise Refused("simulated reports and real ones do not go together")
        ticket = self._tickets.get(report.id)
        if ticket is not None and is_repeat(ticket.state, "report"):
            return False
        state, number = (ticket.state, ticket.number) if ticket else (None, "of this id")
        advance("server", state, "report", trial=number)
        self._limits.added(report, ticket.number if ticket else 0)
        return True

    def count(self, *reports: AnyReport) -> list[int]:
        """Add reports, each once; the numbers of the rounds that this closes."""
        counted: list[int] = []
        for report in reports:
            if self.is_new(report):
                number = self._tickets[report.id].number
                self._total += self._limits.added(report, number)
                self.reports += 1
                self._step(report.id, "report")
                counted.append(number)
        return counted

    def is_open(self, id: str) -> bool:  # noqa: A002
        """Whether a round would be declined now: False for one that was; errors for others."""
        ticket = self._tickets.get(id)
        if ticket is None:
            raise UnknownTrial("no trial of this id was offered in the open epoch")
        if is_repeat(ticket.state, "abandon"):
            return False
        advance("server", ticket.state, "abandon", trial=ticket.number)
        return True

    def decline(self, id: str) -> None:  # noqa: A002
        """A client will not answer."""
        if self.is_open(id):
            self._step(id, "abandon")

    def release(self) -> Release:
        """The sums so far: nothing is drawn, for every report already was."""
        integers, reports = handed_up(self._plan, self._epoch, self._total, self.reports)
        return Release(
            epoch=self._epoch.digest,
            previous=self._epoch.previous,
            asks=self.asked - self._epoch.first,
            integers=integers,
            private=not self._simulated,
            reports=reports,
        )

    def _step(self, id: str, event: Event) -> None:  # noqa: A002
        ticket = self._tickets[id]
        state = advance("server", ticket.state, event, trial=ticket.number)
        self._tickets[id] = Ticket(ticket.number, state)
