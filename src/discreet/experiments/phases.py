"""Elimination, played an epoch at a time: what its certificate and its bound are worth.

Within a phase nobody's action depends on an answer, so an arm's rewards are drawn as their sum:
n answers f + N(0, rho^2) add up to n f + N(0, n rho^2). Epochs, encodings, noise and what is learnt
are those of a study. Nothing is clipped: a plan's range is chosen so that hardly anything would be.
Everything here is seeded and therefore not private.

    python -m discreet.experiments.phases docs/data/privacy-cost.csv

prints the numbers of docs/theory.md, and keeps those of what privacy costs in a file.
"""

import math
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import numpy as np

from discreet.agreement.elimination import Elimination
from discreet.agreement.plan import Plan
from discreet.agreement.release import Release
from discreet.arrays import Floats
from discreet.domain.box import Box
from discreet.errors import LargeDelta
from discreet.features.kernels import SquaredExponential
from discreet.learning.arms import arms_of
from discreet.learning.elimination import Remaining
from discreet.learning.elimination_bounds import regret_bound
from discreet.learning.regret_bounds import crossover
from discreet.learning.study import Study
from discreet.learning.theory import reward_range
from discreet.privacy.budget import JointDP, NonPrivate, Privacy
from discreet.simulation.problems import CAMELBACK

Mean = Callable[[Floats], Floats]
#: The rewards' noise on every problem here.
NOISE = 0.1
#: What uniform play costs a round on camelback, measured.
UNIFORM = 0.443


@dataclass(frozen=True)
class Phase:
    """After a phase: the asks so far, what they cost, and what was certified of them.

    `shortfall` is how much worse than the best the recommended arm is, which `gap` bounds;
    `contained` says whether every estimate is within its width.
    """

    asks: int
    regret: float
    certified: float
    gap: float
    shortfall: float
    active: int
    best_is_active: bool
    contained: bool


def play_phases(
    plan: Plan, mean: Mean, *, rounds: int, best: float, rng: np.random.Generator
) -> list[Phase]:
    """Whole phases until `rounds` asks; `mean` takes scaled points, `best` is what it can reach."""
    study, found, regret = Study(plan), list[Phase](), 0.0
    truth = mean(arms_of(plan).points)
    while study.certificate is not None and study.certificate.asks < rounds:
        epoch = study.next_epoch()
        counts, values = epoch.policy.asked(epoch.length), mean(epoch.policy.menu)
        noise = NOISE * np.sqrt(counts) * rng.standard_normal(len(counts))
        answers = (counts * (values - plan.centre) + noise) / plan.half_width
        phi, encoding = plan.map(epoch.policy.menu), epoch.additive
        residuals = answers - counts * (phi @ encoding.residual.prediction)
        sums = np.append(encoding.along(phi).T @ residuals, 0.0)
        stds = plan.noise_of_sum(encoding, epoch.length).stds(plan.map)
        drawn = np.ldexp(sums, encoding.bits) + stds * rng.standard_normal(len(stds))
        release = Release(
            epoch=epoch.digest,
            previous=epoch.previous,
            asks=epoch.length,
            reports=epoch.length if plan.is_local else None,
            integers=np.rint(drawn).astype(np.int64),
            private=False,
        )
        regret += float(counts @ (best - values))
        study = study.opened(epoch).released(release)
        found.append(_seen(study, regret, truth, best))
    return found


def _seen(study: Study, regret: float, truth: Floats, best: float) -> Phase:
    belief, certificate = study.belief, study.certificate
    if not isinstance(belief, Remaining) or certificate is None:
        raise TypeError("a plan of elimination")
    return Phase(
        asks=certificate.asks,
        regret=regret,
        certified=certificate.regret,
        gap=certificate.gap,
        shortfall=best - float(truth[belief.best]),
        active=certificate.active,
        best_is_active=bool(belief.active[np.argmax(truth)]),
        contained=_contained(belief, truth),
    )


def _contained(belief: Remaining, truth: Floats) -> bool:
    plan = belief.plan
    off = np.abs(belief.estimates - (truth - plan.centre) / plan.half_width)
    return bool((off <= belief.margins).all())


# -- camelback


def camelback_plan(privacy: Privacy, rounds: int = 1_000_000) -> Plan:
    """Camelback's box, with the range that its noise asks for and premises measured on a net.

    Its misfit and norm are those of the best fit of 89 features to 2,500 values of the function: a
    user would have to assume them.
    """
    means = (-1.19, 0.21)
    with warnings.catch_warnings(action="ignore", category=LargeDelta):  # nobody is real here
        return Plan(
            domain=Box({"x1": (-0.5, 0.5), "x2": (-0.5, 0.5)}),
            kernel=SquaredExponential(0.25),
            kernel_error=4e-4,
            rewards=reward_range(means, NOISE, rounds=rounds, failure=0.05),
            privacy=privacy,
            confidence="theory",
            norm=80.0,
            noise_std=NOISE,
            elimination=Elimination(means=means, misfit=1e-3, net_error=1e-3),
        )


def camelback_mean(points: Floats) -> Floats:
    """The function at scaled points."""
    return CAMELBACK.mean(points - 0.5)


# -- random functions of the class


def class_plan(privacy: Privacy, net: int = 40) -> Plan:
    """One coordinate, and functions sum of a_i k(x_i, .) with sum of |a_i| <= 1."""
    with warnings.catch_warnings(action="ignore", category=LargeDelta):
        return Plan(
            domain=Box({"x": (0.0, 1.0)}),
            kernel=SquaredExponential(0.2),
            rewards=reward_range((-1.0, 1.0), NOISE, rounds=10**6, failure=0.05),
            privacy=privacy,
            confidence="theory",
            norm=1.0,
            noise_std=NOISE,
            kernel_error=1e-5,
            elimination=Elimination(means=(-1.0, 1.0), net=net),
        )


def class_function(plan: Plan, rng: np.random.Generator) -> Mean:
    """A function of the class: six centres, weights of either sign from the unit L1 sphere."""
    d = plan.domain.dimension
    centres = rng.random((6, d))
    weights = rng.dirichlet(np.ones(6)) * rng.choice([-1.0, 1.0], 6) * (plan.norm or 1.0)
    return lambda points: plan.kernel(points, centres) @ weights


@dataclass(frozen=True)
class Kept:
    """Over many runs: how often something was not as the theorem says, and regret / bound."""

    runs: int
    dropped: int
    outside_width: int
    above_bound: int
    above_certificate: int
    above_gap: int
    share_of_bound: float

    @property
    def most_failures(self) -> int:
        """How often the promise that failed most did."""
        certified = max(self.above_certificate, self.above_gap)
        return max(self.dropped, self.outside_width, self.above_bound, certified)


def promises_kept(plan: Plan, *, runs: int, rounds: int, seed: int) -> Kept:
    """Play random functions and count what the theorem says to be rare.

    Regret is against the best of a net eight times as fine.
    """
    dropped = outside = above = uncertified = beyond = 0
    share = 0.0
    fine = np.linspace(0.0, 1.0, 8 * len(arms_of(plan).points))[:, None]
    for run in range(runs):
        rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, run])))
        mean = class_function(plan, rng)
        best = float(mean(fine).max())
        phases = play_phases(plan, mean, rounds=rounds, best=best, rng=rng)
        shares = [each.regret / regret_bound(plan, each.asks) for each in phases]
        dropped += not all(each.best_is_active for each in phases)
        outside += not all(each.contained for each in phases)
        above += max(shares) > 1.0
        uncertified += any(each.regret > each.certified for each in phases)
        beyond += any(each.shortfall > each.gap for each in phases)
        share = max(share, *shares)
    return Kept(runs, dropped, outside, above, uncertified, beyond, share)


# -- the figures, a line at a time


def crossing_lines(runs: int = 5) -> Iterator[str]:
    """From which T the bound and the certificate beat uniform play on camelback."""
    yield "| epsilon, delta | bound | certificate (the latest of runs) |"
    yield "|---|---|---|"
    for epsilon, delta in ((10.0, 0.1), (1.0, 0.1), (1.0, 1e-6), (0.1, 0.1)):
        plan = camelback_plan(JointDP(epsilon, delta))
        bound = crossover(lambda rounds, own=plan: regret_bound(own, rounds), uniform=UNIFORM)
        reached = [certified_from(plan, 4 * bound, run) for run in range(runs)]
        yield f"| {epsilon:g}, {delta:g} | {bound:.2e} | {max(reached):.2e} |"


def certified_from(plan: Plan, rounds: int, run: int) -> float:
    """The T from which the certified regret of a run is less than that of uniform play."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([19, run])))
    asks, regret = 0, 0.0
    for phase in play_phases(plan, camelback_mean, rounds=rounds, best=CAMELBACK.maximum, rng=rng):
        if phase.certified < UNIFORM * phase.asks:  # within the phase it grows evenly
            each = (phase.certified - regret) / (phase.asks - asks)
            return math.ceil((regret - each * asks) / (UNIFORM - each))
        asks, regret = phase.asks, phase.certified
    return math.inf


def promise_lines(runs: int = 200, rounds: int = 100_000) -> Iterator[str]:
    """What was rare, over random functions of the class."""
    columns = ("best arm dropped", "outside a width", "above bound", "above certificate, gap")
    yield f"| epsilon | runs | {' | '.join(columns)} | regret / bound |"
    yield "|---|---|---|---|---|---|---|"
    for epsilon in (10.0, 1.0, 0.1):
        found = promises_kept(
            class_plan(JointDP(epsilon, 0.1)), runs=runs, rounds=rounds, seed=int(10 * epsilon)
        )
        yield (
            f"| {epsilon:g} | {found.runs} | {found.dropped} | {found.outside_width} | "
            f"{found.above_bound} | {found.above_certificate}, {found.above_gap} | "
            f"at most {found.share_of_bound:.3f} |"
        )


#: The cost of privacy is measured at these horizons.
HORIZONS = tuple(round(10_000 * 300 ** (k / 5)) for k in range(6))


def privacy_costs(runs: int, *, seed: int = 7) -> Floats:
    """regret(epsilon = 1) - regret(none) on camelback, by run and horizon, with common seeds.

    A plan without a horizon plays every shorter study on the way.
    """
    private, exact = (
        np.array([_regrets(camelback_plan(privacy), seed, run) for run in range(runs)])
        for privacy in (JointDP(1.0, 0.1), NonPrivate())
    )
    return private - exact


def _regrets(plan: Plan, seed: int, run: int) -> Floats:
    """Regret at the horizons; within a phase it grows evenly."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, run])))
    played = play_phases(plan, camelback_mean, rounds=HORIZONS[-1], best=CAMELBACK.maximum, rng=rng)
    asks = [0, *(each.asks for each in played)]
    return np.interp(HORIZONS, asks, [0.0, *(each.regret for each in played)])


def exponent(table: Floats) -> tuple[float, float]:
    """The slope of log mean cost over log T by least squares, and its jackknife error."""

    def slope(rows: Floats) -> float:
        x = np.log(np.array(HORIZONS, dtype=np.float64))
        y = np.log(rows.mean(axis=0))
        return float((x - x.mean()) @ y / np.sum(np.square(x - x.mean())))

    runs = len(table)
    left_out = np.array([slope(np.delete(table, i, axis=0)) for i in range(runs)])
    error = math.sqrt((runs - 1) / runs * float(np.sum(np.square(left_out - left_out.mean()))))
    return slope(table), error


def kept_costs(path: Path, runs: int = 20) -> Floats:
    """What privacy costs, from this file; played and kept there if it does not exist."""
    if not path.exists():
        heading = ",".join(str(rounds) for rounds in HORIZONS)
        np.savetxt(path, privacy_costs(runs), "%.1f", ",", header=heading, comments="")
    return np.loadtxt(path, delimiter=",", skiprows=1)


def cost_lines(table: Floats) -> Iterator[str]:
    """What privacy adds to regret, by horizon, and how it grows."""
    runs = len(table)
    sem = table.std(axis=0, ddof=1) / math.sqrt(runs)
    for rounds, mean, error in zip(HORIZONS, table.mean(axis=0), sem, strict=True):
        yield f"T = {rounds}: privacy costs {mean:.0f} ± {error:.0f}"
    slope, error = exponent(table)
    yield f"grows like T^({slope:.3f} ± {error:.3f}), {runs} runs"


if __name__ == "__main__":
    costs = kept_costs(Path(sys.argv[1]))
    for line in chain(crossing_lines(), promise_lines(), cost_lines(costs)):
        sys.stdout.write(line + "\n")
        sys.stdout.flush()
