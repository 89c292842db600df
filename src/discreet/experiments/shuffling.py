"""Between local and joint privacy: what a shuffler or secure aggregation would buy.

Both stand between devices and server. People of an epoch report under one frozen policy and each
person is in one epoch, so what hides them in an epoch hides them in the study.

*Secure aggregation* shows the server the sum of n reports and nothing else. Reports of noise
sigma / sqrt(n) then have a sum of noise sigma: a report of mu sqrt(n) gives a study of mu.

*Shuffling* shows the n reports in random order. Reports that are (epsilon_0, delta_0)-private are
(epsilon, delta + (e^epsilon + 1) (1 + e^-epsilon_0 / 2) n delta_0)-private together, with

    epsilon = ln(1 + (e^e0 - 1) / (e^e0 + 1) (8 sqrt(e^e0 ln(4 / delta)) / sqrt(n) + 8 e^e0 / n))

for e0 = epsilon_0 <= ln(n / (16 ln(2 / delta))) (Feldman, McMillan and Talwar, "Hiding among the
clones", FOCS 2021, Theorems 3.1 and 3.8).

That bound holds for any report. How much Gaussian reports could gain at the very most is
estimated, not proven: an adversary who knows everybody else weighs the two worlds by the mean of n
likelihood ratios. Others may be mu_0 away from both versions of the person, which are mu_0 apart:
the ratios' difference then has variance 2 (e^(mu_0^2) - e^(mu_0^2 / 2)), and their mean would be
as telling, by the central limit theorem, as

    mu^2 = 2 (e^(mu_0^2) - e^(mu_0^2 / 2)) / n.

It grows so fast in mu_0 that no shuffled report could cost much more than mu_0 = sqrt(ln n).
"""

import argparse
import math
import sys
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from discreet import checks
from discreet.agreement.plan import Schedule
from discreet.arrays import Floats
from discreet.errors import InvalidArgument, LargeDelta
from discreet.privacy.budget import JointDP, LocalDP, Privacy
from discreet.privacy.cost import GaussianPrivacy
from discreet.simulation.epochs import begin, play_study
from discreet.simulation.play import Setting, plan_for, standard_error
from discreet.simulation.problems import find_problem
from discreet.simulation.worlds import World
from discreet.threads import one_thread

#: A bound is searched over so many pure levels for each size of crowd.
LEVELS = 400


@dataclass(frozen=True)
class Reports:
    """The mu that a report may cost for a promise about n people: the larger, the less noise."""

    people: int
    local: float
    shuffled: float
    shuffled_at_most: float
    aggregated: float


def shuffled_epsilon(epsilon: float, delta: float, people: int) -> float:
    """The closed form above for pure reports; infinite where it says nothing.

    >>> round(shuffled_epsilon(1.0, 1e-6, 10_000), 3)
    0.214
    """
    limit = people / (16.0 * math.log(2.0 / delta))
    if limit <= 1.0 or epsilon > math.log(limit):
        return math.inf
    power = math.exp(epsilon)
    noise = 8.0 * math.sqrt(power * math.log(4.0 / delta) / people) + 8.0 * power / people
    return math.log1p(math.tanh(epsilon / 2.0) * noise)


def shuffled_mu(promise: Privacy, people: int) -> float:
    """The largest mu of a Gaussian report for which the bound keeps the promise, 0 if none.

    delta is shared equally between shuffling and the delta_0 of the reports.
    """
    wanted = _levels(promise)
    found = 0.0
    for level in np.linspace(0.01, 12.0, LEVELS):
        if shuffled_epsilon(float(level), wanted.delta / 2, people) > wanted.epsilon:
            break
        factor = (math.exp(wanted.epsilon) + 1.0) * (1.0 + math.exp(-level) / 2.0) * people
        own = GaussianPrivacy.of(float(level), wanted.delta / 2 / factor).mu
        found = max(found, own)
    return found


def shuffled_mu_at_most(promise: Privacy, people: int) -> float:
    """The estimate above, solved for mu_0.

    >>> round(shuffled_mu_at_most(LocalDP(1.0, 0.1), 1024), 2)
    2.47
    """
    target = _levels(promise).cost.mu

    def excess(mu: float) -> float:
        return 2.0 * (math.exp(mu**2) - math.exp(mu**2 / 2)) - people * target**2

    return max(target, float(brentq(excess, 1e-6, 10.0)))


def reports_for(promise: Privacy, people: int) -> Reports:
    """What a report may cost in each model; nobody is forced to shuffle where that is worse."""
    people, local = checks.count("people", people), _levels(promise).cost.mu
    return Reports(
        people=people,
        local=local,
        shuffled=max(local, shuffled_mu(promise, people)),
        shuffled_at_most=shuffled_mu_at_most(promise, people),
        aggregated=local * math.sqrt(people),
    )


def _levels(promise: Privacy) -> JointDP:
    if not isinstance(promise, LocalDP | JointDP):
        raise InvalidArgument("promise", "LocalDP(epsilon, delta) or JointDP(epsilon, delta)")
    if promise.delta is None:
        raise InvalidArgument("promise", "one with a delta: Gaussian reports need one")
    return JointDP(promise.epsilon, promise.delta)


# -- what it does to regret


def regrets(privacy: Privacy, *, rounds: int, schedule: Schedule, runs: int, seed: int) -> Floats:
    """The regret of each run on the synthetic problem, with epochs of the given lengths."""
    model = "local" if isinstance(privacy, LocalDP) else "joint"
    setting = Setting(model=model, rounds=rounds, privacy=privacy)
    totals: list[float] = []
    for run in range(runs):
        world = World.draw(find_problem("synthetic"), seed=seed, run=run)
        plan = plan_for(world.problem, setting, world.decisions, f"between {seed}.{run}")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", LargeDelta)
            plan = replace(plan, schedule=schedule)
        found, _ = play_study(world, begin(plan), rounds)
        totals.append(float(found.sum()))
    return np.array(totals)


def of_mu(mu: float, delta: float) -> LocalDP:
    """A local promise whose reports cost this mu."""
    return LocalDP(GaussianPrivacy(mu).epsilon(delta), delta)


def main(arguments: Sequence[str] | None = None) -> None:
    """Print what reports may cost, and what that does to regret."""
    parser = argparse.ArgumentParser(prog="python -m discreet.experiments.shuffling")
    parser.add_argument("--runs", type=int, default=8, help="runs of each model; 0: costs alone")
    parser.add_argument("--rounds", type=int, default=8192)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    _say("| epsilon, delta | people | local | shuffled, proven | shuffled, at most | aggregated |")
    _say("|---|---|---|---|---|---|")
    for delta in (0.1, 1e-6):
        for people in (512, 8_192, 131_072):
            row = reports_for(LocalDP(1.0, delta), people)
            cells = (row.local, row.shuffled, row.shuffled_at_most, row.aggregated)
            words = " | ".join(f"{cell:.3g}" for cell in cells)
            _say(f"| 1, {delta:g} | {people:,} | {words} |")
    if given.runs < 2:
        return
    schedule = Schedule(first=512, growth=2.0)  # no epoch is shorter: 512 people hide everyone
    row = reports_for(LocalDP(1.0, 0.1), schedule.first)
    local = LocalDP(1.0, 0.1)
    models: dict[str, Privacy] = {
        "local": local,
        "shuffled, proven": of_mu(row.shuffled, 0.1) if row.shuffled > row.local else local,
        "shuffled, at most": of_mu(row.shuffled_at_most, 0.1),
        "aggregated (= joint)": JointDP(1.0, 0.1),
    }
    _say("\n| model | mu of a report | regret |")
    _say("|---|---|---|")
    costs = (row.local, row.shuffled, row.shuffled_at_most, row.aggregated)
    for (name, privacy), mu in zip(models.items(), costs, strict=True):
        with one_thread:
            found = regrets(
                privacy, rounds=given.rounds, schedule=schedule, runs=given.runs, seed=given.seed
            )
        _say(f"| {name} | {mu:.3g} | {found.mean():.0f} ± {standard_error(found):.0f} |")


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
