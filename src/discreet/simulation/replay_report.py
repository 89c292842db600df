"""What a replay says: the plan beside what was done, with standard errors, and its conditions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from discreet.arrays import Floats
from discreet.learning.study import Value
from discreet.simulation.forecast_report import Estimate

NOT_PRIVATE = (
    "Not private: these numbers are computed from the log without noise, and the log is people's "
    "data. Do not publish them. A plan is public: one that is changed because of them tells about "
    "these people, too."
)


@dataclass(frozen=True)
class Replay:
    """The plan on a log: mean rewards a round, clipped to the plan's range.

    - `rounds`: the length of a run, of the plan's `horizon`; `runs`: how many runs were complete in
      each shuffle of the log; runs of a shuffle share nobody.
    - `plan`: over all rounds of a run; `late`: over its last tenth; `recommended`: what following
      `best()` after the run would bring, weighted, on rows that the run did not see.
    - `logged`: what the logging policy brought; `gain`: `plan` minus `logged`, with an error as if
      the two shared nobody.
    - `constant`: the best single action for everyone, `constant_action`, chosen on one half of the
      log and weighted on the other; None where a rule forbids some people some actions.
    - `rows` of the log; `outside`, those with an action that the plan does not allow; `clipped`,
      those whose reward was; `floor`, the least propensity.

    Errors are None where no shuffle has two complete runs.
    """

    rounds: int
    horizon: int | None
    shuffles: int
    runs: tuple[int, ...]
    seed: int
    rows: int
    outside: int
    clipped: int
    floor: float
    plan: Estimate
    late: Estimate
    recommended: Estimate | None
    logged: Estimate
    gain: Estimate
    constant: Estimate | None
    constant_action: dict[str, Value] | None
    private: bool = False

    @property
    def advice(self) -> str:
        """What to take from the numbers, and what not, in a few sentences."""
        return " ".join(_advice(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "runs": list(self.runs), "advice": self.advice}


def over_runs(shuffles: Sequence[Floats]) -> Estimate:
    """The mean over all runs, given the values of the runs of each shuffle.

    Runs of one shuffle share nobody: they are independent, and their variance s^2 within shuffles
    holds everything, the people of the log, their order, the plan's noise and the luck of learning.
    With K runs in a shuffle on average, the error of one shuffle's mean is

        s / sqrt(K),        s^2 = sum (value - its shuffle's mean)^2 / sum (runs - 1).

    Shuffles share people. A mean over several is at most as variable as over one, so its error is
    at most this; more shuffles make both numbers steadier, and no log larger.

    >>> over_runs([np.array([1.0, 3.0]), np.array([2.0, 2.0])])
    Estimate(mean=2.0, sem=0.7071067811865476)
    """
    values = np.concatenate(shuffles)
    spare = len(values) - len(shuffles)
    if spare == 0:
        return Estimate(float(values.mean()), None)
    squares = sum(float(np.square(each - each.mean()).sum()) for each in shuffles)
    runs = len(values) / len(shuffles)
    return Estimate(float(values.mean()), math.sqrt(squares / spare / runs))


def difference(one: Estimate, other: Estimate) -> Estimate:
    """one - other, with an error as if the two were independent.

    >>> difference(Estimate(2.0, 0.3), Estimate(0.5, 0.4))
    Estimate(mean=1.5, sem=0.5)
    """
    if one.sem is None or other.sem is None:
        return Estimate(one.mean - other.mean, None)
    return Estimate(one.mean - other.mean, math.hypot(one.sem, other.sem))


def _advice(found: Replay) -> Iterator[str]:
    gain = found.gain
    if gain.sem is None:
        yield (
            "No shuffle has two complete runs, so there is no standard error: "
            "take fewer rounds, or a longer log."
        )
    elif abs(gain.mean) <= 2.0 * gain.sem:
        yield "The plan and the log do not differ by two standard errors."
    else:
        word = "above" if gain.mean > 0 else "below"
        yield f"The plan is {abs(gain.mean) / gain.sem:.0f} standard errors {word} the log."
    if found.horizon is not None and found.rounds < found.horizon:
        yield (
            f"The log carries runs of {found.rounds:,} rounds, less than the plan's "
            f"{found.horizon:,}: in all of them it would learn more."
        )
    if found.outside:
        yield f"{found.outside:,} rows have an action that the plan does not allow: none matches."
    if found.clipped:
        yield f"{found.clipped:,} rewards were clipped to the plan's range."
    yield NOT_PRIVATE
