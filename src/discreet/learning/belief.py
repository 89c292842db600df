"""What the releases say, under the prior and the scales that they themselves suggest.

A release adds to two sums that no prior enters,

    precision += A^T R^-1 A        information += A^T R^-1 v        (see `inference`, `window`)

and it says how far rewards were from the prediction: the spread E[h^2], which clipping at +-w
lowers in a known way. What the posterior does not account for in it is the variance of rewards.
The first epochs spread over the domain; half of the variance they see is taken for the signal's.
The plan may fix either scale. All of it is post-processing of releases and costs no privacy.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.agreement.schedule import Exploration
from discreet.arrays import Floats
from discreet.learning.directions import Prospect, best_directions
from discreet.learning.epoch import Epoch
from discreet.learning.inference import (
    Clipped,
    Statistics,
    expected_posterior,
    look,
    observe,
    read,
    unclipped_variance,
)
from discreet.learning.kernel_bank import Bank, Choice, bank_of
from discreet.learning.policy import Policy
from discreet.learning.posterior import Posterior
from discreet.learning.search import public_points
from discreet.learning.structures import Asked, Parts, Structures, structures_of
from discreet.learning.window import Block, Window
from discreet.privacy.clipping import Residual
from discreet.privacy.encodings import Encoding, Indexed
from discreet.privacy.looks import in_sight
from discreet.privacy.reward import MOST_DIRECTIONS, RewardEncoding

#: Residuals are never clipped more narrowly, in half-widths of the reward range.
SMALLEST_WIDTH = 1 / 64
#: No answer is taken for surer, in half-widths squared: posteriors keep full rank.
SMALLEST_NOISE = 1e-12
#: Shares of the budget tried for the gram matrix.
SHARES = (0.1, 0.2, 0.3, 0.45, 0.65, 1.0)
#: Numbers of directions that are tried under contexts.
COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24)
#: The share of the variance of first answers that is taken for signal.
SIGNAL_SHARE = 0.5
#: First rewards, unclipped, whose mean square is above this share of the largest are at the ends.
AT_ENDS = 0.7
#: Surprises of so many numbers are not yet held against the model.
ASSUMED = 8
#: Rewards keep at least this share of the variance that is left.
LEAST_NOISE = 0.05


@dataclass(frozen=True)
class Scales:
    """Variances in half-widths squared: of f around its level, and of a reward around f.

    `at_ends` says that rewards lie at the ends of their range, like those of coin flips: narrow
    residuals would then tell the commonest reward and not the mean. `designed` is the variance of
    answers over the domain, and `asked` the number of asks so far; `recent` holds (asks, reward
    variance) of the epochs that make up the last half of all asks.
    """

    shape: float | None
    noise: float
    at_ends: bool = False
    designed: float = 0.0
    asked: int = 0
    recent: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True)
class Spending:
    """How a budget is spent: studies have the usual way, experiments take parts of it away.

    Residuals are clipped at `width_in_stds` predictive standard deviations, and `directions` says
    which ones a release over the whole box has. Under contexts, `counts` are the numbers of
    directions to choose from, and `learns_law` says whether grams move who is taken to come.
    """

    width_in_stds: float = 1.0
    directions: Callable[[Posterior, Prospect, float, int], Floats] = best_directions
    counts: tuple[int, ...] = COUNTS
    learns_law: bool = True


@dataclass(frozen=True, eq=False)
class Belief:
    """The sum of what was released, and the prior and scales chosen by it."""

    plan: Plan
    window: Window[Any]
    scales: Scales
    choice: Choice
    spending: Spending = Spending()

    @classmethod
    def before(cls, plan: Plan, spending: Spending = Spending()) -> "Belief":  # noqa: B008
        """Nothing released: the plan's starting point."""
        information = np.zeros(plan.map.dimension) if plan.prior is None else plan.prior.information
        scales = Scales(None, max(plan.noise_variance, SMALLEST_NOISE))
        return cls(plan, Window[Any].empty(information), scales, bank_of(plan).first, spending)

    @cached_property
    def prior(self) -> Floats:
        """The precision of the coefficients before any release.

        Of several structures, what the releases leave of it.
        """
        if self._structures is not None:
            return self.posterior.precision - self.precision
        return self._bank.precision(self.choice, self.signal)

    @cached_property
    def posterior(self) -> Posterior:
        """The Gaussian over coefficients that releases are made and read by.

        Of several structures, the widest (see `structures`).
        """
        if self._structures is not None:
            return self._structures.posterior(self._parts, wide=True)
        return Posterior(self.plan.map, self.prior + self.precision, self.information)

    @cached_property
    def weighed(self) -> Posterior:
        """The Gaussian over coefficients that people are served by: all structures, weighed."""
        if self._structures is None or not self._structures.some_are_narrow:
            return self.posterior
        return self._structures.posterior(self._parts, wide=False)

    @cached_property
    def _parts(self) -> Parts:
        """What each structure makes of the releases."""
        if self._structures is None:
            raise TypeError("a plan that names a kernel has no structures")
        return self._structures.parts(self.scales.shape, self.precision, self.information)

    @property
    def exploration(self) -> Exploration:
        """The plan's."""
        return self.plan.exploring

    @cached_property
    def misfit(self) -> float:
        """How much more releases varied around their predictions than these allowed: at least 1.

        The mean of the squared standardised innovations, as if `ASSUMED` more were as expected: it
        tells what clipping, the law of who comes, features left out or a wrong kernel add, and
        costs nothing.
        """
        told = self.window.theta
        surprise = told.square - float(told.information @ self.posterior.coefficients)
        return max(1.0, (surprise + ASSUMED) / (told.count + ASSUMED))

    def margin(self, std: float) -> float:
        """Half of a 95% credible interval, wider where releases surprised."""
        return 1.96 * std * math.sqrt(self.misfit)

    @property
    def precision(self) -> Floats:
        """What all releases told of the coefficients, without the prior."""
        return self.window.theta.precision

    @property
    def information(self) -> Floats:
        """The right-hand side that goes with it."""
        return self.window.theta.information

    @property
    def signal(self) -> float:
        """The variance that the kernel is multiplied by."""
        return self._bank.signal(self.choice, self.scales.shape)

    @property
    def _structures(self) -> Structures | None:
        return structures_of(self.plan)

    def left_out(self, points: Floats) -> Floats:
        """The variance of f at points that features leave out, beyond where people were asked.

        Known where structures are weighed, over the whole box and under private contexts.
        """
        newest = self._newest_asked()
        if self._structures is None or newest is None:
            return np.zeros(len(points))
        asked, counts = newest
        # The widest structures', by whose prior the releases were read.
        told = self.posterior.covariance @ self.precision
        weights = self._structures.weights(self._parts)
        return self._structures.left_out(
            self.scales.shape, weights, points, Asked(asked, counts / counts.sum(), told)
        )

    def _newest_asked(self) -> tuple[Floats, Floats] | None:
        """Where the newest people were asked, and how many of them at each point."""
        newest = self.window.blocks[:1]
        if not newest or self.plan.decisions != "box":
            return None
        return newest[0].points, newest[0].counts

    @property
    def structures(self) -> dict[str, float]:
        """How likely each kind of structure is; nothing where the kernel is given."""
        if self._structures is None:
            return {}
        return self._structures.believed(self._parts)

    @property
    def needed(self) -> dict[str, float]:
        """How likely it is that each context matters; nothing where the kernel is given."""
        if self._structures is None:
            return {}
        return self._structures.needed(self._parts)

    @property
    def _bank(self) -> Bank:
        return bank_of(self.plan)

    def line(self, residual: Residual, unknown: float) -> Clipped:
        """How a clipped residual depends on f, whose variance around the prediction is given."""
        if not residual.clips:
            return Clipped(1.0, self.scales.noise)
        return Clipped.at(residual.width, unknown, self.scales.noise)

    def lines(
        self, residual: Residual, blocks: Sequence[Block], posterior: Posterior
    ) -> list[Clipped]:
        """How clipped residuals depend on f, as uncertain as the posterior says, in each block."""
        return [self.line(residual, block.mean(posterior.variance)) for block in blocks]

    # -- the next epoch

    def advantage(self, policy: Policy, other: Policy) -> float:
        """How many standard deviations above 0 the gain of a policy over another one is."""
        gain = self._mean_features(policy) - self._mean_features(other)
        mean = float(gain @ self.weighed.coefficients)
        return mean / math.sqrt(max(float(gain @ self.posterior.covariance @ gain), 1e-300))

    def _mean_features(self, policy: Policy) -> Floats:
        """The mean of phi over the people that a policy serves."""
        return self.plan.map(policy.menu).mean(axis=0)

    def tellable(self, asks: int, policy: Policy) -> Floats:
        """How the mean of f may still change, as a lower triangular W.

            W^T W = Cov now - Cov after so many asks under a policy

        What stays unknown after them is no part of it. ||W phi(x)|| is the deviation at x; a policy
        stores W as it does L^-1, which is triangular, too.
        """
        change = self.posterior.covariance - self.expected(asks, policy).covariance
        values, vectors = np.linalg.eigh((change + change.T) / 2)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        # From R R^T to W^T W: the QR factors of R^T, its columns in reverse.
        reversed_root: Floats = np.asarray(np.linalg.qr(root.T[:, ::-1], mode="r"), np.float64)
        return reversed_root[::-1, ::-1]

    def encoding_for(self, first: int, length: int, policy: Policy) -> Encoding | Indexed:
        """Residuals from the current prediction; noise where it leaves the least expected error."""
        return self._noisy_encoding(first, length, policy)

    def _noisy_encoding(self, first: int, length: int, policy: Policy) -> Encoding:
        plan, rounds, menu = self.plan, self.plan.most_rounds(first, length), policy.menu
        if plan.mu is None:
            nothing = Residual(np.zeros(plan.map.dimension), 1.0)
            return plan.encode_with.fit(plan.map, nothing, None, 1.0, rounds)
        points = menu if plan.decisions == "box" else public_points(plan.domain)
        unknown = float(self.posterior.variance(points).mean())
        residual = self._next_residual(unknown)
        if plan.encode_with.public_gram:
            encoding = RewardEncoding.fit(plan.map, residual, plan.mu, 1.0, rounds)
            return self._along_directions(encoding, first, length, menu)
        if plan.encode_with.exact_gram:
            return plan.encode_with.fit(plan.map, residual, plan.mu, 1.0, rounds)
        options = [
            plan.encode_with.fit(plan.map, residual, plan.mu, share, rounds) for share in SHARES
        ]
        line, points = self.line(residual, unknown), public_points(plan.domain)
        sums = [plan.noise_of_sum(option, length) for option in options]
        errors = [
            expected_posterior(self.posterior, each, length, line, points).variance(points).mean()
            for each in sums
        ]
        return options[int(np.argmin(errors))]

    def _next_residual(self, unknown: float) -> Residual:
        """Clipped about where answers will fall; never clipped where they lie at the ends."""
        plan, at_ends = self.plan, self.scales.at_ends
        if at_ends and (plan.is_local or plan.encode_with.exact_gram):
            return Residual(np.zeros(plan.map.dimension), 1.0)
        width = self.spending.width_in_stds * math.sqrt(unknown + self.scales.noise)
        width = 1.0 if at_ends else min(1.0, max(SMALLEST_WIDTH, width))
        return Residual(self.posterior.coefficients, width)

    def _along_directions(
        self, encoding: RewardEncoding, first: int, length: int, menu: Floats
    ) -> RewardEncoding:
        """The encoding with the few directions worth their noise."""
        noise = self.scales.noise
        block = Block.of(menu, length, self.plan.looks_from(first))
        window = self.window.entered(block, noise)
        lines = self.lines(encoding.residual, window.blocks, self.posterior)
        prospect = Prospect.of(self.posterior, window, self.prior, lines, noise)
        released = self.plan.noise_of_sum(encoding, length).noise.cross
        most = self.plan.directions or MOST_DIRECTIONS
        directions = self.spending.directions(self.posterior, prospect, released, most)
        return replace(encoding, directions=directions)

    def expected(self, asks: int, policy: Policy) -> Posterior:
        """The posterior, but for its mean, after an epoch of so many asks all over the domain."""
        plan, points = self.plan, public_points(self.plan.domain)
        encoding = plan.noise_of_sum(self._noisy_encoding(self.scales.asked, asks, policy), asks)
        unknown = float(self.posterior.variance(points).mean())
        line = self.line(encoding.residual, unknown)
        return expected_posterior(self.posterior, encoding, asks, line, points)

    # -- what a release teaches

    def after(self, epoch: Epoch, release: Release) -> "Belief":
        """What is believed after the release of an epoch."""
        plan, points = self.plan, public_points(self.plan.domain)
        rounds = release.asks if release.reports is None else release.reports
        if rounds == 0:
            return self
        encoding = plan.noise_of_sum(epoch.additive, rounds)
        blocks: tuple[Block, ...] = ()
        if encoding.public_gram:
            looks, each = plan.looks_from(epoch.first), rounds / release.asks
            block = Block.of(epoch.policy.menu, release.asks, looks, each=each)
            blocks = in_sight(block, self.window.blocks)
        found = read(
            plan.map,
            encoding,
            release.integers,
            asks=rounds,
            points=points,
            blocks=blocks,
            laws=epoch.policy.laws(plan.map, points),
        )
        filled = plan.is_design(epoch.first) and (plan.decisions == "box" or plan.mu is not None)
        return self.taught(encoding, found, rounds, filled=filled)

    def taught(self, encoding: Encoding, found: Statistics, asks: int, *, filled: bool) -> Self:
        """What is believed after an epoch's statistics; `filled`: its asks filled the domain."""
        before = self.posterior
        unknown = float(np.sum(before.covariance * found.gram)) / found.rounds
        residual = encoding.residual
        seen = max(found.residual_square(before.coefficients - residual.prediction), 0.0)
        total = max(seen, _spread_noise(encoding)) / found.rounds + 1e-9
        if residual.clips:
            total = unclipped_variance(total, residual.width)
        total = min(total, 1.0)  # nothing within a range varies more than by half of it, squared
        blank = self.scales.asked == 0 and self.plan.prior is None
        if blank:
            unknown = SIGNAL_SHARE * total
        scales = self._with_noise(max(total - unknown, LEAST_NOISE * total), asks)
        if blank:
            scales = replace(scales, at_ends=total > AT_ENDS)
        learnt = replace(self, scales=scales)
        learnt = replace(learnt, window=learnt._told(before, encoding, found, unknown))
        if filled and self.plan.signal_std is None and self.plan.prior is None:
            told = learnt.posterior
            least = _spread_noise(encoding) / found.rounds
            learnt = replace(learnt, scales=learnt._with_shape(before, told, total, asks, least))
        return learnt._with_choice()

    def _told(
        self, before: Posterior, encoding: Encoding, found: Statistics, unknown: float
    ) -> Window[Any]:
        """The window after the release."""
        residual, noise = encoding.residual, self.scales.noise
        if found.blocks:
            window = self.window.entered(found.blocks[0], noise)
            lines = self.lines(residual, window.blocks, before)
            if len(lines) == 1:  # of a first epoch, what it saw instead of what was believed
                lines = [self.line(residual, unknown)]
            return look(self.plan.map, window, encoding, found.cross, lines, noise)
        told = observe(before, encoding, found, self.line(residual, unknown))
        return self.window.plus(
            told.precision - before.precision, told.information - before.information
        )

    def _with_noise(self, noise: float, asks: int) -> Scales:
        if self.plan.noise_std is not None:
            return replace(self.scales, asked=self.scales.asked + asks)
        recent = (*self.scales.recent, (asks, noise))
        while sum(n for n, _ in recent[1:]) >= (self.scales.asked + asks) / 2:
            recent = recent[1:]
        mean = math.fsum(n * each for n, each in recent) / sum(n for n, _ in recent)
        return replace(
            self.scales, noise=min(mean, 1.0), recent=recent, asked=self.scales.asked + asks
        )

    def _with_shape(
        self, before: Posterior, told: Posterior, total: float, asks: int, least: float
    ) -> Scales:
        """Half the variance of answers around their level, over all designed epochs so far."""
        points = public_points(self.plan.domain)
        predicted = before.mean(points)
        shift = float(np.mean(told.mean(points) - predicted))
        around = total - shift**2 + float(np.var(predicted))
        around = max(around, least, 1e-4)
        earlier = self.scales.asked - asks
        designed = (earlier * self.scales.designed + asks * around) / self.scales.asked
        noise = (1.0 - SIGNAL_SHARE) * designed
        if self.plan.noise_std is not None:
            noise = self.scales.noise
        return replace(
            self.scales,
            shape=SIGNAL_SHARE * designed,
            designed=designed,
            noise=noise,
            recent=((asks, noise),),
        )

    def _with_choice(self) -> Self:
        best = self._bank.best(self.choice, self.scales.shape, self.precision, self.information)
        return replace(self, choice=best)


def _spread_noise(encoding: Encoding) -> float:
    """About how uncertain the released sum of squared residuals is: below it, nothing is told."""
    noise, width = encoding.noise, encoding.residual.width
    return noise.spread(width) if noise.cross > 0.0 else 0.0
