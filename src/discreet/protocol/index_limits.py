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

      sum_j (2 C w k_j)^2 / (n_j V) <= (2 C w)^2 k^2 / (n V)       for k_j / n_j all alike,
      |d mean(x)| <= std(x) 2 C w k / sqrt(n V).

  Liars who get to choose their asks count as many as the rows they crowd have: k_j = n_j at worst,
  where the sum is (2 C w)^2 k / V.

- *Codebook.* R is n S, S the average covariance of a report given f. dv is at most 2 k long, so
  |d mean(x)| <= std(x) 2 k / sqrt(n s), s the smallest eigenvalue of S. Averaged over directions
  that people fill evenly s is `average_variance`: 1 / r without lift, so the average is at most
  2 k sqrt(r / n). Where S is far from even, liars who push along its smallest eigenvalue do more.
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

    def influence(self, malicious: int, reports: int, noise: float) -> tuple[float, float]:
        """How far liars move the sums, in standard deviations of one report, and a posterior mean.

        See the module's docstring; `noise` is the known variance of rewards, 0 where it is not.
        """
        encoding = self.encoding
        if isinstance(encoding, CodebookEncoding):
            moved = 2.0 * malicious / math.sqrt(encoding.average_variance())
            return moved, moved / math.sqrt(reports)
        furthest, least = encoding.furthest, encoding.variance(0.0)
        moved = 2.0 * malicious * furthest
        return moved / math.sqrt(least), moved / math.sqrt(reports * (least + noise))
