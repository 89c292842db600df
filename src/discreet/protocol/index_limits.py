"""Reports that are an index: which are counted, what they add, and what a liar can do with one.

**What an honest client can send** is any of the N indices: whatever a person brings, each has a
positive probability. So a server refuses what is no index, and nothing else.

**What k malicious clients can do.** A report is an index, whoever made it, and adds one codeword.
So k reports move the sum of codewords by at most k times the length of the longest from what it
would be without them, and by at most k times the largest distance of two codewords from what any k
honest ones would have made of it: 2 k for unit vectors, 2 k (N - 1) for the codewords of an
interval. No report is worth more than that: there is no noise for a large lie to hide in.

A Gaussian observation with noise R that is moved by dv moves the posterior mean at any x by at most
std(x) ||R^-1/2 dv|| (`tally`). So, where the plan gives its scales and actions are public,

- *Interval.* A report tells h with variance V at least, which is that of `interval` at h = 0 plus
  the plan's `noise_std`^2 (if that is given, and nothing is clipped), and a codeword stands for at
  most C w, C = (N - 1) / (a (N - K)). Row j of a menu has n_j answers, of which k_j lie:

      sum_j (2 C w k_j)^2 / (n_j V) <= (2 C w)^2 k / V             as k_j <= n_j,
      |d mean(x)| <= std(x) 2 C w sqrt(k / V).

  This is the bound. It holds for liars who choose their rows by timing their asks, and is reached
  where they fill rows alone (k_j = n_j). Of liars spread like everyone (k_j / n_j all alike) the
  sum is (2 C w)^2 k^2 / (n V), so they move the mean by at most std(x) 2 C w k / sqrt(n V): this
  one is called *typical*, for nothing makes liars spread.

- *Codebook.* Nothing is proven of the mean. The law of people that a study reads reports by is
  learnt from the same reports, so it is not linear in them. With that law held fixed, R is n S, S
  the average covariance of a report given f. dv is at most 2 k long, so |d mean(x)| <=
  std(x) 2 k / sqrt(n s), s the smallest eigenvalue of S, which people far from even make small.
  *Typical* is the value with `typical_variance` for s: if people fill all directions evenly, and
  with h^2 = w^2 / 9 on average. It is 2 k sqrt(r / n) without lift.
"""

import math
from dataclasses import dataclass

import numpy as np

from discreet.arrays import Integers
from discreet.errors import InvalidArgument, Refused
from discreet.learning.epoch import Epoch
from discreet.privacy.book import BOOK_BITS
from discreet.privacy.codebook import CodebookEncoding
from discreet.privacy.encodings import Indexed
from discreet.protocol.messages import AnyReport, IndexReport

#: Sums of so many integers of so many bits fit 64.
_SUM_BITS = 62


@dataclass(frozen=True, eq=False)
class IndexLimits:
    """The indices of an epoch, and what each adds to its sums."""

    epoch: Epoch
    encoding: Indexed
    size: int

    @classmethod
    def of(cls, epoch: Epoch, size: int) -> "IndexLimits":
        """Those of an epoch whose release has so many integers."""
        encoding = epoch.indexed
        book = isinstance(encoding, CodebookEncoding)
        largest = 1 << (2 * BOOK_BITS) if book else encoding.cap.size**2
        if largest * epoch.length >= 1 << _SUM_BITS:
            raise InvalidArgument("epoch", "fewer asks: the sums of its reports could overflow")
        return cls(epoch, encoding, size)

    def added(self, report: AnyReport, number: int) -> Integers:
        """What the report of ask `number` adds, or a refusal of what is no index of this epoch."""
        if not isinstance(report, IndexReport):
            raise Refused("reports of this epoch are indices: it was not counted")
        if report.index >= self.encoding.cap.size:
            raise Refused("this report is no index of the epoch's list: it was not counted")
        rows = self.epoch.policy.rows(np.array([number - self.epoch.first]))
        return self.encoding.statistics(np.array([report.index]), rows)

    def influence(self, malicious: int, reports: int, noise: float) -> tuple[float, float, float]:
        """How far liars move the sums, in standard deviations of one report, and a posterior mean.

        Of the mean first what is proven (inf where nothing is), then what is typical: see the
        module's docstring. `noise` is the known variance of rewards, 0 where it is not.
        """
        encoding = self.encoding
        if isinstance(encoding, CodebookEncoding):
            moved = 2.0 * malicious / math.sqrt(encoding.typical_variance())
            return moved, math.inf if malicious else 0.0, moved / math.sqrt(reports)
        each, least = 2.0 * encoding.furthest, encoding.variance(0.0)
        deviation = math.sqrt(least + noise)
        crowding, spread = math.sqrt(malicious), malicious / math.sqrt(reports)
        sums = malicious * each / math.sqrt(least)
        return sums, each * crowding / deviation, each * spread / deviation
