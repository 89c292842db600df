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

**Weighting.** A policy that no longer learns is valued on rows that it has not seen, by

    m + mean of (1{logged = chosen} / p) (reward - m)

which has the right mean for every m that these rows did not choose.

**Assumed**: rows are different people, alike in law and in any order; propensities are those of the
policy that chose, given the context in the log, and that policy did not learn from the log's own
rewards; every action that the plan may choose had at least the chance c for everyone.

A replay is a simulation, seeded and not private, whatever the plan says.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from discreet import checks
from discreet.agreement.plan import Plan
from discreet.arrays import Floats, Integers, Mask
from discreet.bandit import Bandit
from discreet.errors import InvalidArgument, Refused
from discreet.learning.study import Study, Value
from discreet.privacy.budget import Simulation
from discreet.protocol.records import Passed
from discreet.simulation.forecast_report import Estimate
from discreet.simulation.log import Log, Source
from discreet.simulation.play import standard_error
from discreet.simulation.replay_report import Replay, difference, over_runs

#: A standard error takes runs that share nobody: by default a log is cut into at least so many.
FEWEST_RUNS = 2
#: The values of a context; none without contexts.
Contextual = tuple[Value, ...]


def replay(
    plan: Plan,
    log: Source,
    *,
    rounds: int | None = None,
    shuffles: int = 8,
    floor: float | None = None,
    seed: int = 0,
    advance: Callable[[int], None] = lambda rows: None,
) -> Replay:
    """What the plan would have brought on a log, by rejection, beside what the log itself brought.

    `log` is the path of a CSV file or a mapping of columns: every coordinate of the plan's domain,
    `propensity` and `reward`. Actions must be integers or categories; contexts may be anything. A
    run is the plan's first `rounds` rounds: by default its horizon, or as many as fit twice into
    the log. A shuffle is cut into runs that share nobody. `floor` is the least propensity that the
    logging policy gives, by default the least in the log. `advance` is called with the number of
    rows just passed, shuffles x rows in all.

    >>> from discreet import Box, Integer, NonPrivate
    >>> plan = Plan(domain=Box({"dose": Integer(0, 3)}), privacy=NonPrivate(), horizon=50)
    >>> rng = np.random.Generator(np.random.Philox(0))
    >>> dose = rng.choice(4, 1000, p=[0.4, 0.3, 0.2, 0.1])
    >>> answers = (rng.random(1000) < 0.2 + 0.2 * dose).astype(float)
    >>> columns = {"dose": dose, "propensity": 0.4 - 0.1 * dose, "reward": answers}
    >>> found = replay(plan, columns, rounds=30)
    >>> found.logged.mean < found.plan.mean < found.recommended.mean, found.constant_action
    (True, {'dose': 3})
    """
    read = Log.read(plan, log, floor)
    return replay_log(read, rounds=rounds, shuffles=shuffles, seed=seed, advance=advance)


def replay_log(
    log: Log, *, rounds: int | None, shuffles: int, seed: int, advance: Callable[[int], None]
) -> Replay:
    """The same, of a log that is read."""
    length = _length(log, rounds)
    seed, count = checks.whole("seed", seed), checks.count("shuffles", shuffles)
    passes = [_Pass.play(log, length, seed, number, advance) for number in range(count)]
    whole = [each for each in passes if each.rewards]
    if not whole:
        raise InvalidArgument("rounds", _fits(log), length)
    means = over_runs([np.array([run.mean() for run in each.rewards]) for each in whole])
    last = math.ceil(length / 10)
    late = over_runs([np.array([run[-last:].mean() for run in each.rewards]) for each in whole])
    paired = [np.array(each.recommended) for each in whole if each.recommended]
    logged = Estimate(float(log.rewards.mean()), standard_error(log.rewards))
    position, constant = _constant(log, seed) if log.everyone_may_get_all else (None, None)
    return Replay(
        rounds=length,
        horizon=log.plan.horizon,
        shuffles=count,
        runs=tuple(len(each.rewards) for each in passes),
        seed=seed,
        rows=len(log),
        outside=log.outside,
        clipped=log.clipped,
        floor=log.floor,
        plan=means,
        late=late,
        recommended=over_runs(paired) if paired else None,
        logged=logged,
        gain=difference(means, logged),
        constant=constant,
        constant_action=None if position is None else log.action(position),
    )


class Rehearsal(Bandit):
    """A simulated bandit that can be asked what it would do, before a round is used."""

    def __init__(self, plan: Plan, simulation: Simulation) -> None:
        super().__init__(plan, simulation=simulation)

    def preview(self, context: Mapping[str, object] | None = None) -> dict[str, Value]:
        """The action that the next ask with this context gets.

        >>> from discreet import Box, Integer, NonPrivate
        >>> plan = Plan(domain=Box({"dose": Integer(0, 3)}), privacy=NonPrivate())
        >>> bandit = Rehearsal(plan, Simulation(0))
        >>> bandit.preview() == bandit.preview() == bandit.ask().action, bandit.asked
        (True, 1)
        """
        with self._lock:
            if self.asked == self.study.open_epoch.end:  # everyone asked has answered here
                self._commit(*self._sides.turn())
            entry = self._sides.enter(None, context, f"user {self.asked}")
        if entry.refusal is not None or isinstance(entry.record, Passed):
            raise entry.refusal or Refused("this context leads to no action")
        return self.plan.domain.decode(entry.record.point)


# -- one shuffle of the log


@dataclass(frozen=True, eq=False)
class _Pass:
    """The rewards of each complete run, and the value of what each recommends at its end."""

    rewards: list[Floats]
    recommended: list[float]

    @classmethod
    def play(
        cls, log: Log, length: int, seed: int, number: int, advance: Callable[[int], None]
    ) -> "_Pass":
        rng = _generator(seed, number)
        left: Integers = rng.permutation(len(log))
        heard = rng.random(len(log)) < log.floor / log.propensities  # c / p, decided beforehand
        runs: list[_Run] = []
        while (run := _Run.play(log, left, heard, length, rng, advance)) is not None:
            runs.append(run)
            left = left[len(run.rows) :]
        return cls([run.rewards for run in runs], _recommended(log, runs))


@dataclass(frozen=True, eq=False)
class _Run:
    """The rows that a run passed, the rewards of its rounds, and what it published."""

    rows: Integers
    rewards: Floats
    study: Study

    @classmethod
    def play(
        cls,
        log: Log,
        rows: Integers,
        heard: Mask,
        length: int,
        rng: np.random.Generator,
        advance: Callable[[int], None],
    ) -> "_Run | None":
        """One run over the first of these rows; None when they end before it does."""
        bandit = Rehearsal(log.plan, Simulation(int(rng.integers(2**63))))
        rewards: list[float] = []
        choices: dict[Contextual, int] = {}  # of the next round, by context
        for passed, row in enumerate(rows.tolist()):
            advance(1)
            if not heard[row] or log.actions[row] < 0:
                continue
            context = log.context(row)
            if (key := _key(log, row)) not in choices:
                choices[key] = log.position(bandit.preview(context))
            if choices[key] != log.actions[row]:
                continue
            trial = bandit.ask(context=context, user=f"user {bandit.asked}")
            rewards.append(log.rewards.item(row))
            bandit.tell(trial, rewards[-1])
            choices.clear()
            if len(rewards) == length:
                bandit.finish()
                return cls(rows[: passed + 1], np.array(rewards), bandit.study)
        return None


def _recommended(log: Log, runs: list[_Run]) -> list[float]:
    """What each run's recommendation would bring, on the rows of the run after it.

    Where a run ends follows from its last row, which is always kept. Without that one the rows are
    a fair sample: of n rows until the T-th is kept, E[(T - 1) / (n - 1)] = c.
    """
    if len(runs) < FEWEST_RUNS or len(runs[0].rewards) < 2:
        return []
    found: list[float] = []
    for run, after in zip(runs, [*runs[1:], runs[0]], strict=True):
        held, policy = after.rows[:-1], dict[Contextual, int]()
        for row in held.tolist():
            if (key := _key(log, row)) not in policy:
                policy[key] = log.position(run.study.best(log.context(row)).action)
        chosen = np.array([policy[_key(log, row)] for row in held.tolist()])
        level = float(log.rewards[run.rows].mean())
        found.append(_weighted(log, held, chosen, level).mean)
    return found


def _key(log: Log, row: int) -> Contextual:
    context = log.context(row)
    return () if context is None else tuple(context.values())


# -- weighting


def _weighted(log: Log, rows: Integers, chosen: Integers | int, level: float) -> Estimate:
    """The value of choices on rows that had no part in them, nor in the level."""
    weights = (log.actions[rows] == chosen) / log.propensities[rows]
    terms = level + weights * (log.rewards[rows] - level)
    return Estimate(float(terms.mean()), standard_error(terms))


def _constant(log: Log, seed: int) -> tuple[int, Estimate]:
    """The best action of the whole log, and what one chosen on half of it brings on the other.

    The two halves are averaged. Each chooses for the other, so they are not independent: the error
    is that of one half, which a mean of two never exceeds.
    """
    order = _generator(seed).permutation(len(log))
    halves = np.array_split(order, 2)
    values: list[Estimate] = []
    for learnt, held in (halves, halves[::-1]):
        level = float(log.rewards[learnt].mean())
        values.append(_weighted(log, held, _best_constant(log, learnt), level))
    mean = (values[0].mean + values[1].mean) / 2
    errors = [value.sem for value in values if value.sem is not None]
    sem = math.hypot(*errors) / math.sqrt(2) if len(errors) == 2 else None
    return _best_constant(log, order), Estimate(mean, sem)


def _best_constant(log: Log, rows: Integers) -> int:
    inside = rows[log.actions[rows] >= 0]
    terms = (log.rewards[inside] - log.rewards[rows].mean()) / log.propensities[inside]
    return int(np.bincount(log.actions[inside], terms, minlength=len(log.options)).argmax())


# -- how long


def _length(log: Log, rounds: int | None) -> int:
    """The rounds of a run: as wanted, or the plan's, or what almost surely fits twice."""
    horizon = log.plan.horizon
    if rounds is not None:
        length = checks.count("rounds", rounds)
        if horizon is not None and length > horizon:
            raise InvalidArgument("rounds", f"at most the plan's horizon, {horizon}", length)
        return length
    kept = len(log) * log.floor
    surely = kept - 3.0 * math.sqrt(kept * (1.0 - log.floor))
    length = math.floor(surely / FEWEST_RUNS)
    if length < 1:
        raise InvalidArgument("log", f"more rows: {_kept(log)}")
    return length if horizon is None else min(length, horizon)


def _fits(log: Log) -> str:
    return f"fewer, or a longer log: {_kept(log)}"


def _kept(log: Log) -> str:
    return (
        f"of its {len(log):,} rows about {log.floor * len(log):.0f} can be kept, "
        f"the least propensity being {log.floor:.2g}"
    )


def _generator(*seed: int) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
