"""What a forecast says: an outlook for each epsilon, estimates with errors, and advice."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from discreet.arrays import Floats
from discreet.simulation.play import Curve, standard_error

#: Privacy does the job, for the advice, if it keeps this share of what learning gains.
ENOUGH = 0.5


@dataclass(frozen=True)
class Estimate:
    """A mean over simulated functions and its standard error, which one function does not have."""

    mean: float
    sem: float | None

    @classmethod
    def of(cls, values: Floats) -> "Estimate":
        """The mean of the values."""
        return cls(float(values.mean()), standard_error(values))

    @classmethod
    def ratio(cls, values: Floats, yardstick: Floats) -> "Estimate":
        """sum of values / sum of yardstick, paired; the error to first order.

        >>> import numpy as np
        >>> Estimate.ratio(np.array([1.0, 3.0]), np.array([2.0, 6.0]))
        Estimate(mean=0.5, sem=0.0)
        """
        ratio = float(values.sum() / yardstick.sum())
        error = standard_error(values - ratio * yardstick)
        return cls(ratio, None if error is None else error / float(yardstick.mean()))


@dataclass(frozen=True)
class Outlook:
    """What one privacy level costs and learns; rewards and regrets in the plan's reward units.

    Known beforehand (None for uniform play, which releases nothing):

    - `mu`: what one round costs, in Gaussian privacy; None without privacy.
    - `encoding`, `epochs`, `first_epoch`: how rounds become integers, how many releases the
      schedule makes, and how many rounds the first of them sums.
    - `noise_std`: the noise on each reward sum of the first release; `noise_in_answers`: the same
      in units of the most that one answer can add.
    - `rounds_to_signal`: the smallest n for which n spread-out asks, released once, explain half
      of the prior variance of f,

          1 - E_x Var[f(x) | release of n asks] / E_x Var[f(x)] >= 1/2        (x over the domain),

      or None when that is beyond the rounds of the study.
    - `explained`: that share when all rounds of the study are spread out and released once.

    Simulated, all over the same functions and users:

    - `regret` over all rounds; `relative_regret`, as a share of that of uniform play;
      `late_regret` a round, in the last tenth; `simple_regret`, what the action that `best()`
      recommends at the end falls short by; and the `curve` of the regret so far.
    """

    label: str
    epsilon: float | None
    mu: float | None
    encoding: str | None
    epochs: int | None
    first_epoch: int | None
    noise_std: float | None
    noise_in_answers: float | None
    rounds_to_signal: int | None
    explained: float | None
    regret: Estimate
    relative_regret: Estimate
    late_regret: Estimate
    simple_regret: Estimate | None
    curve: Curve

    @property
    def meaning(self) -> str:
        """What the noise of the first release means."""
        if self.noise_std is None or self.noise_in_answers is None:
            return "Nothing is released and nothing is learnt."
        if self.noise_std == 0.0:
            return f"The first release sums {self.first_epoch:,} rounds exactly: no noise."
        return (
            f"The first release sums {self.first_epoch:,} rounds; each of its reward sums gets "
            f"Gaussian noise of standard deviation {self.noise_std:.3g}, as much as "
            f"{self.noise_in_answers:.3g} people who all answer at the end of the range."
        )


@dataclass(frozen=True)
class Forecast:
    """One outlook for each epsilon, ascending, and two yardsticks beside them."""

    rounds: int
    functions: int
    seed: int
    delta: float | None
    decisions: str
    features: int
    kernel_error: float
    rewards: tuple[float, float]
    private: tuple[Outlook, ...]
    not_private: Outlook
    uniform: Outlook

    @property
    def outlooks(self) -> tuple[Outlook, ...]:
        """Every outlook: the epsilons, then no privacy, then uniform play."""
        return (*self.private, self.not_private, self.uniform)

    def kept(self, outlook: Outlook) -> float | None:
        """The share of what learning gains over uniform play without privacy that is kept.

        None when there is no clear gain (two standard errors) to keep a share of.
        """
        best = self.not_private.relative_regret
        if best.mean + 2.0 * (best.sem or 0.0) >= 1.0:
            return None
        return (1.0 - outlook.relative_regret.mean) / (1.0 - best.mean)

    @property
    def advice(self) -> str:
        """What to take from the numbers, in a few sentences."""
        return " ".join(_advice(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        plain = asdict(self)
        del plain["private"], plain["not_private"], plain["uniform"]
        rows = [
            {**asdict(outlook), "kept": self.kept(outlook), "meaning": outlook.meaning}
            for outlook in self.outlooks
        ]
        return {**plain, "rewards": list(self.rewards), "rows": rows, "advice": self.advice}


def _advice(found: Forecast) -> Iterator[str]:
    best = found.not_private.relative_regret.mean
    if found.kept(found.not_private) is None:
        yield (
            f"Even without privacy {found.rounds:,} rounds are not clearly better than uniform "
            "play: take more rounds, or a smoother kernel, before choosing epsilon."
        )
    else:
        yield f"Without privacy, learning cuts the regret of uniform play to {best:.0%}."
        shares = [(outlook, found.kept(outlook) or 0.0) for outlook in found.private]
        words = [f"{o.label} keeps {max(share, 0.0):.0%}" for o, share in shares]
        half = [o.label for o, share in shares if share >= ENOUGH]
        if words:
            yield f"Of that gain {', '.join(words)}."
            yield (
                f"The strongest privacy here that keeps at least half is {half[0]}."
                if half
                else "None of these keeps half: take more rounds or a larger epsilon."
            )
    drowned = [f"{o.epsilon:g}" for o in found.private if o.rounds_to_signal is None]
    if drowned:
        yield (
            f"At epsilon = {', '.join(drowned)} even all {found.rounds:,} rounds in one release "
            "would hold more noise than signal."
        )
    if found.delta is not None and found.delta * found.rounds > 1.0:
        yield (
            f"delta = {found.delta:g} would allow publishing some of {found.rounds:,} people "
            "outright: take it well below 1 / rounds."
        )
