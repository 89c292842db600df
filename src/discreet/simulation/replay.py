"""A plan on a team's own past experiment: what it would have brought the same kind of people.

**Rejection** (Li, Chu, Langford and Wang, 2011). The plan plays the rows of a log in random order.
Of each row it sees the context alone and chooses an action a. Where that is the logged action, of
propensity p, the row is kept with probability c / p, c being the least propensity; the plan is
told its reward, and that was a round. Any other row is passed over, and the plan forgets that it
was there. Given all rounds so far, and whatever the plan chooses for the context x,

    P[row kept | x] = p(a | x) c / p(a | x) = c.

So a kept row's context is like anyone's and its reward like that of anyone who gets this action:
the kept rows are rounds as the plan itself would have had them, for it chooses by what it was told
and by its own noise. How many rows a round takes depends on c alone, so a run that is cut after a
fixed number of rounds is unbiased. About c times the rows are kept.

**Assumed**: rows are different people, alike in law and in any order; propensities are those of the
policy that chose, given the context in the log, and that policy did not learn from the log's own
rewards; every action that the plan may choose had at least the chance c for everyone.

A replay is a simulation, seeded and not private, whatever the plan says.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from scipy import special

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.arrays import Floats, Indices
from discreet.bandit import Bandit
from discreet.errors import InvalidArgument
from discreet.privacy.budget import Simulation
from discreet.protocol.decisions import decide
from discreet.simulation.forecast_report import Estimate
from discreet.simulation.log import Log, Source

NOT_PRIVATE = (
    "Not private: these numbers are computed from the log without noise, and the log is people's "
    "data. Do not publish them. A plan is public: one that is changed because of them tells about "
    "these people, too."
)
#: A standard error takes so many runs that share nobody.
FEWEST_RUNS = 2
#: With fewer degrees of freedom a replay says that its error is rough.
ENOUGH_FREEDOM = 4


@dataclass(frozen=True)
class Replay:
    """The plan on a log: mean rewards a round, clipped to the plan's range.

    - `rounds`: the length of a run, of the plan's `horizon`; `runs`: how many were complete in
      each shuffle of the log.
    - `plan`: over all rounds of a run; `logged`: what the logging policy brought; `gain`: the
      difference, with an error as if the two shared nobody.
    - `rows` of the log; `outside`, those with an action that the plan does not allow; `clipped`,
      those whose reward was; `least_propensity` of an action that it allows.
    """

    rounds: int
    horizon: int | None
    runs: tuple[int, ...]
    seed: int
    rows: int
    outside: int
    clipped: int
    least_propensity: float
    plan: Estimate
    logged: Estimate
    gain: Estimate
    private: bool = False

    @property
    def advice(self) -> str:
        """What to take from the numbers, and what not, in a few sentences."""
        return " ".join(_advice(self))

    def to_dict(self) -> dict[str, Any]:
        """Plain data, ready for JSON."""
        return {**asdict(self), "runs": list(self.runs), "advice": self.advice}


def replay(
    plan: Plan,
    log: Source,
    *,
    rounds: int | None = None,
    shuffles: int = 8,
    seed: int = 0,
    advance: Callable[[int], None] = lambda shuffles: None,
) -> Replay:
    """What the plan would have brought on a log, by rejection, beside what the log itself brought.

    `log` is the path of a CSV file or a mapping of columns: every coordinate of the plan's domain,
    `propensity` and `reward`. Actions must be integers or categories; contexts may be anything. A
    run is the plan's first `rounds` rounds: by default its horizon, or as many as fit twice into
    the log. Every shuffle of the log is cut into runs that share nobody; it counts if it has two.
    `advance` is called after each shuffle, with 1.

    >>> from discreet import Box, Integer, NonPrivate
    >>> plan = Plan(domain=Box({"dose": Integer(0, 3)}), privacy=NonPrivate(), horizon=50)
    >>> rng = np.random.Generator(np.random.Philox(0))
    >>> dose = rng.choice(4, 1000, p=[0.4, 0.3, 0.2, 0.1])
    >>> answers = (rng.random(1000) < 0.2 + 0.2 * dose).astype(float)
    >>> columns = {"dose": dose, "propensity": 0.4 - 0.1 * dose, "reward": answers}
    >>> found = replay(plan, columns, rounds=30)
    >>> found.plan.mean > found.logged.mean
    True
    """
    read = Log.read(plan, log)
    length = _length(read, rounds)
    seed, count = checks.whole("seed", seed), checks.count("shuffles", shuffles)
    means: list[Floats] = []
    for number in range(count):
        means.append(_shuffle(read, length, seed, number))
        advance(1)
    played, logged = over_runs(means), Estimate.of(read.rewards)
    if played is None:
        raise InvalidArgument("rounds", f"fewer, or a longer log: {_kept(read)}", length)
    gain = Estimate(played.mean - logged.mean, math.hypot(played.sem or 0.0, logged.sem or 0.0))
    return Replay(
        rounds=length,
        horizon=plan.horizon,
        runs=tuple(map(len, means)),
        seed=seed,
        rows=len(read),
        outside=int(np.sum(~read.allowed)),
        clipped=read.clipped,
        least_propensity=read.least,
        plan=played,
        logged=logged,
        gain=gain,
    )


def over_runs(shuffles: Sequence[Floats]) -> Estimate | None:
    """The mean over runs, given the values of each shuffle's; None if no shuffle has two.

    Runs of one shuffle share nobody. They are independent, and their variance within shuffles,

        s^2 = sum (value - its shuffle's mean)^2 / v,        v = sum (runs - 1),

    is without bias that of a run: it holds the people of the log, their order, the plan's noise and
    the luck of learning. With K runs in a shuffle, on average,

        sem = s / sqrt(K) * t / 2

    where t is as rare for Student with v degrees of freedom as 2 is for a normal law: few runs
    give an uncertain s, and mean ± 2 sem is to hold the truth 95 times in 100 even so. (Given the
    log, shuffles are independent, so each adds its own degrees.)

    This is the error of a single shuffle. Shuffles share people: how much surer several are, a log
    does not tell, but they are never less sure. So the error is right for one, and at most too
    large for more, which lower t and steady the mean.

    >>> found = over_runs([np.array([1.0, 3.0]), np.array([2.0, 2.0])])
    >>> found.mean, round(found.sem, 3), round(0.5**0.5, 3)  # as if normal, and with v = 2
    (2.0, 1.6, 0.707)
    """
    counted = [each for each in shuffles if len(each) >= FEWEST_RUNS]
    if not counted:
        return None
    values = np.concatenate(counted)
    freedom = len(values) - len(counted)
    squares = sum(float(np.square(each - each.mean()).sum()) for each in counted)
    error = math.sqrt(squares / freedom / (len(values) / len(counted)))
    student = float(special.stdtrit(freedom, float(special.ndtr(2.0))))
    return Estimate(float(values.mean()), error * student / 2.0)


class Rehearsal(Bandit):
    """A simulated bandit that tells what it would do, before a round is used."""

    def preview(self, context: Floats | None) -> Floats:
        """The scaled action that the next ask gets, given its scaled context.

        >>> from discreet import Box, Integer, NonPrivate
        >>> plan = Plan(domain=Box({"dose": Integer(0, 2)}), privacy=NonPrivate())
        >>> bandit = Rehearsal(plan, simulation=Simulation(0))
        >>> float(bandit.preview(None)[0]) == bandit.ask().action["dose"] / 2
        True
        """
        if self.asks_left == 0:  # everyone has answered, so an ask would turn it over, too
            self._commit(*self._sides.turn())
        found = decide(self.plan, self.study.open_epoch, self.asked, [context])
        for refusal in found.refusals.values():
            raise refusal
        return self.plan.domain.snap(found.points)[0]


def _shuffle(log: Log, length: int, seed: int, number: int) -> Floats:
    """The mean rewards of the complete runs over one random order of the log."""
    rng = np.random.Generator(np.random.Philox(np.random.SeedSequence([seed, number])))
    order: Indices = rng.permutation(len(log))
    heard = log.allowed & (rng.random(len(log)) < log.least / log.propensities)
    rows = iter(order[heard[order]].tolist())
    means: list[float] = []
    while len(rewards := _run(log, rows, length, rng)) == length:
        means.append(float(np.mean(rewards)))
    return np.array(means)


def _run(log: Log, rows: Iterator[int], length: int, rng: np.random.Generator) -> list[float]:
    """The rewards of the plan's first rounds; fewer when the rows end."""
    domain = log.plan.domain
    bandit = Rehearsal(log.plan, simulation=Simulation(int(rng.integers(2**63))))
    rewards: list[float] = []
    choices: dict[bytes, bytes] = {}  # of the next round, by context
    for row in rows:
        context = log.points[row, domain.context_columns] if domain.has_context else None
        key = b"" if context is None else context.tobytes()
        if key not in choices:
            choices[key] = _logged(log, bandit.preview(context))
        if choices[key] != log.actions[row]:
            continue
        brought = None if context is None else log.values(row, domain.context)
        trial = bandit.ask(context=brought, user=bandit.asked)
        rewards.append(float(log.rewards[row]))
        bandit.tell(trial, rewards[-1])
        choices.clear()
        if len(rewards) == length:
            break
    return rewards


def _logged(log: Log, point: Floats) -> bytes:
    """The plan's choice as the log has it; refused if nobody got it."""
    action = point[list(log.plan.domain.free_columns)].tobytes()
    if action not in log.tried:
        named = log.plan.domain.decode(point)
        words = {name: named[name] for name in log.plan.domain.free}
        raise InvalidArgument(
            "log", f"every action of the plan's domain, but {words} is in no row: narrow the domain"
        )
    return action


# -- how long


def _length(log: Log, rounds: int | None) -> int:
    """The rounds of a run: as wanted, or the plan's, or what almost surely fits twice."""
    horizon = log.plan.horizon
    if rounds is not None:
        length = checks.count("rounds", rounds)
        if horizon is not None and length > horizon:
            raise InvalidArgument("rounds", f"at most the plan's horizon, {horizon}", length)
        return length
    kept = len(log) * log.least
    surely = kept - 3.0 * math.sqrt(kept * (1.0 - log.least))
    length = math.floor(surely / FEWEST_RUNS)
    if length < 1:
        raise InvalidArgument("log", f"more rows: {_kept(log)}")
    return length if horizon is None else min(length, horizon)


def _kept(log: Log) -> str:
    return (
        f"of its {len(log):,} rows about {log.least * len(log):.0f} can be kept, the least "
        f"propensity being {log.least:.2g}, and a standard error takes {FEWEST_RUNS} whole runs"
    )


def _advice(found: Replay) -> Iterator[str]:
    if abs(found.gain.mean) <= 2.0 * (found.gain.sem or 0.0):
        yield "The plan and the log do not differ by two standard errors."
    else:
        word = "above" if found.gain.mean > 0 else "below"
        yield f"The plan is {word} the log by more than two standard errors."
    if sum(runs - 1 for runs in found.runs if runs >= FEWEST_RUNS) < ENOUGH_FREEDOM:
        yield "So few runs can agree by chance: take more shuffles, or the error means little."
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
